//! Mapping: a node in a frame's mapping tree (row C3).
//!
//! The tree of a frame is a list in preorder; each node knows its depth. A child goes right behind its parent, a
//! subtree is the run of nodes behind its root that are deeper, and erasing it is a walk along the list without
//! recursion. The node of a mapping is reached from its page-table entry through the shadow table that lies beside
//! each last-level table; a node knows its entry, so erasing needs no walk through tables.
//!
//! Nodes are cut from slabs, frames that belong to (and are charged to) the task whose mapping they record.
//!
//! A large page has one node too, and a second one that stands in no tree, its *record*: what is left when the page is split. What is mapped
//! out of its parts is found by its [`Index`].
//!
//! Each thread has a [`Bookmark`], which stands in a list where its walk through everything below a page was broken off. For a walk that
//! meets it there it is deeper than any mapping, so it ends no subtree, and has no entry.
//!
//! A door identifier has a node as well. The root of its tree is its maker's, and all others hang directly below that: a task that hands
//! one on has no say over it afterwards. The root's second node is the door itself; it stands in no tree.

mod index;

pub use index::{Border, Index};

use super::task::TaskRef;
use crate::mem::pool::{Frame, Pool, Zeroable};
use core::cell::Cell;

/// Slot in a table for the node of one page, port or line.
pub type NodeSlot = Cell<Option<&'static Node>>;

/// The shadow of a last-level table, or a table of ports or lines itself.
#[repr(C, align(4096))]
pub struct NodeTable(pub [NodeSlot; 512]);

#[allow(unsafe_code)]
// SAFETY: cells of optional references, for which zero is `None`.
unsafe impl Zeroable for NodeTable {}

/// One mapping: a cache line.
#[repr(C, align(64))]
pub struct Node {
    next: Cell<Option<&'static Node>>,
    prev: Cell<Option<&'static Node>>,
    slab: Cell<Option<&'static Slab>>,
    /// The page-table entry; `None` for ports and interrupts.
    entry: Cell<Option<&'static Cell<u64>>>,
    /// Slot of the owner's table that leads to this node.
    slot: Cell<Option<&'static NodeSlot>>,
    /// Address in the owner's space (memory; with [`LARGE`] in a large page), or the number (ports, interrupts). In a record
    /// the physical address of the large page, and how many small pages are left of it if it is split, else 0. In a bookmark the former
    /// losses of [`TaskRef`].
    address: Cell<u64>,
    /// Distance from the root, and from bit 32 on [`abi::Space`] as a number: a child's kind is its parent's plus one.
    kind: Cell<u64>,
    /// The record of a large page, and in that the end of its index ([`Index`]), whose borders lead to one another here; in a bookmark the root
    /// of the walk; of a door identifier the door, and in that the root. Means nothing in others.
    record: Cell<Option<&'static Node>>,
}

const SPACE_SHIFT: u32 = 32;

/// Flag of [`Node::address`]: the page is large.
const LARGE: u64 = 1;

/// Flag of the address of a door identifier: it may be handed on.
const DOOR_RIGHTS: u64 = 1 << 63;

/// Bits of the address of a record: the number of parts that are left.
const PARTS_LEFT: u64 = 0xfff;

/// Mark of a bookmark in [`Node::kind`]; the bits in between hold the walk's note. Not 0 in the half that is otherwise the depth.
const BOOKMARK: u64 = 1 << 63 | 1;

const NODES: usize = 63;

/// A frame of nodes of one task.
#[repr(C, align(64))]
pub struct Slab {
    task: Cell<Option<TaskRef>>,
    next: Cell<Option<&'static Slab>>,
    prev: Cell<Option<&'static Slab>>,
    free: Cell<Option<&'static Node>>,
    frame: Cell<u64>,
    used: Cell<u32>,
}

#[repr(C, align(4096))]
struct SlabFrame {
    head: Slab,
    nodes: [Node; NODES],
}

#[allow(unsafe_code)]
// SAFETY: cells of integers and optional references.
unsafe impl Zeroable for SlabFrame {}

const _: () = assert!(size_of::<Node>() == 64 && size_of::<SlabFrame>() == 4096);

impl Slab {
    /// Offset of the first free node in a slab, for the fast path.
    pub const FREE: usize = core::mem::offset_of!(Slab, free);
    /// Offset of the number of its nodes in use, 32 bits, for the fast path.
    pub const USED: usize = core::mem::offset_of!(Slab, used);
    /// Number of nodes in a slab.
    pub const NODES: usize = NODES;

    /// List in which the slab is when it has free nodes.
    fn list(&self) -> &'static Slabs {
        let task = self.task.get().expect("a slab has a task").state();
        if task.is_dying() { &task.closed_slabs } else { &task.slabs }
    }
}

/// The slabs of a task that have free nodes. The fast path knows that this is the address of the first, or 0.
///
/// A task that is being ended gets no node any more: its slabs are moved to [`Task::closed_slabs`], where only nodes that are
/// given back find them.
#[derive(Default)]
#[repr(transparent)]
pub struct Slabs {
    first: Cell<Option<&'static Slab>>,
}

impl Slabs {
    /// Cuts a node. `None` if the task cannot pay for a new slab.
    #[inline]
    pub fn take(&self, pool: &Pool, task: TaskRef) -> Option<&'static Node> {
        if self.first.get().is_none() {
            self.add(Fresh::new(pool, task)?, 0);
        }
        self.take_ready()
    }

    /// Cuts a node if that needs no new slab.
    #[inline(always)]
    pub fn take_ready(&self) -> Option<&'static Node> {
        let slab = self.first.get()?;
        let node = slab.free.get()?;
        slab.free.set(node.next.get());
        slab.used.set(slab.used.get() + 1);
        if node.next.get().is_none() {
            self.remove(slab);
        }
        Some(node)
    }

    /// Cuts two nodes. `None` if the task cannot pay for a new slab.
    pub fn take_two(&self, pool: &Pool, task: TaskRef) -> Option<(&'static Node, &'static Node)> {
        let first = self.take(pool, task)?;
        match self.take(pool, task) {
            Some(second) => Some((first, second)),
            None => {
                Slabs::give_back(pool, first);
                None
            }
        }
    }

    /// Gives a node back to its slab.
    #[inline(always)]
    fn give_back(pool: &Pool, node: &'static Node) {
        let slab = node.slab();
        node.next.set(slab.free.replace(Some(node)));
        Slabs::count_returned(pool, slab, 1);
    }

    #[inline(always)]
    fn count_returned(pool: &Pool, slab: &'static Slab, count: u32) {
        let used = slab.used.get();
        slab.used.set(used - count);
        if used as usize == NODES || used == count {
            Slabs::settle(pool, slab, used);
        }
    }

    /// Files or frees a slab that was full or is empty now.
    #[inline(never)]
    fn settle(pool: &Pool, slab: &'static Slab, used: u32) {
        let list = slab.list();
        if used as usize == NODES {
            list.push(slab);
        }
        let only = slab.prev.get().is_none() && slab.next.get().is_none();
        if slab.used.get() == 0 && !only {
            list.release(pool, slab);
        }
    }

    /// Closes the slabs of a task that is being ended: from now on its nodes are given back, and none is cut.
    pub fn close(&self, closed: &Slabs) {
        closed.first.set(self.first.take().or(closed.first.get()));
    }

    /// Begins to cut nodes from one slab in a row, if there is one with free nodes.
    #[inline(always)]
    pub fn cut(&self) -> Option<Cut> {
        let slab = self.first.get()?;
        Some(Cut { slab, free: slab.free.get() })
    }

    /// Ends the cutting that [`Slabs::cut`] began, when `taken` nodes were taken.
    #[inline(always)]
    pub fn return_cut(&self, cut: Cut, taken: u32) {
        cut.slab.free.set(cut.free);
        cut.slab.used.set(cut.slab.used.get() + taken);
        if cut.free.is_none() {
            self.remove(cut.slab);
        }
    }

    /// Adds a slab of whose nodes the first `taken` were taken.
    pub fn add(&self, fresh: Fresh, taken: usize) {
        let Fresh { slab, nodes } = fresh;
        let free = &nodes[taken..];
        for pair in free.windows(2) {
            pair[0].slab.set(Some(slab));
            pair[0].next.set(Some(&pair[1]));
        }
        if let Some(last) = free.last() {
            last.slab.set(Some(slab));
            last.next.set(None);
            self.push(slab);
        }
        slab.free.set(free.first());
        slab.used.set(taken as u32);
    }

    fn release(&self, pool: &Pool, slab: &'static Slab) {
        self.remove(slab);
        let task = slab.task.get().expect("a slab has a task");
        task.give_back_frame(pool, Frame(slab.frame.get()));
    }

    /// Gives back the slab that is kept for the next node. To be called when the task has no node left.
    pub fn release_last(&self, pool: &Pool) {
        if let Some(slab) = self.first.get() {
            assert_eq!(slab.used.get(), 0);
            self.release(pool, slab);
        }
    }

    fn push(&self, slab: &'static Slab) {
        slab.prev.set(None);
        slab.next.set(self.first.get());
        if let Some(next) = self.first.replace(Some(slab)) {
            next.prev.set(Some(slab));
        }
    }

    fn remove(&self, slab: &'static Slab) {
        match slab.prev.get() {
            Some(prev) => prev.next.set(slab.next.get()),
            None => self.first.set(slab.next.get()),
        }
        if let Some(next) = slab.next.get() {
            next.prev.set(slab.prev.get());
        }
    }
}

/// Nodes cut from one slab in a row; the slab learns of it at the end.
pub struct Cut {
    slab: &'static Slab,
    free: Option<&'static Node>,
}

impl Cut {
    /// The next node, if the slab has one more.
    #[inline(always)]
    pub fn take(&mut self) -> Option<&'static Node> {
        let node = self.free?;
        self.free = node.next.get();
        Some(node)
    }
}

/// A slab that is not yet in its task's list: its nodes are taken from the first on.
pub struct Fresh {
    slab: &'static Slab,
    nodes: &'static [Node; NODES],
}

impl Fresh {
    /// Lays a slab over a frame. `None` if the task cannot pay for that. It is to be [added](Slabs::add).
    #[inline(never)]
    pub fn new(pool: &Pool, task: TaskRef) -> Option<Fresh> {
        let frame = task.take_frame(pool)?;
        let SlabFrame { head, nodes } = pool.at::<SlabFrame>(frame);
        head.task.set(Some(task));
        head.frame.set(frame.0);
        Some(Fresh { slab: head, nodes })
    }

    /// The nodes in their order. Each that is used has to [`begin`](Fresh::begin).
    #[inline(always)]
    pub fn nodes(&self) -> &'static [Node; NODES] {
        self.nodes
    }

    /// Begins the life of one of the nodes.
    #[inline(always)]
    pub fn begin(&self, node: &Node) {
        node.slab.set(Some(self.slab));
    }
}

/// Nodes of one slab that are given back together: a chain, with its two ends.
#[derive(Clone, Copy, Default)]
pub struct Returned {
    slab: Option<&'static Slab>,
    first: Option<&'static Node>,
    last: Option<&'static Node>,
    count: u32,
}

/// Address of a slab, or null: compared as pointers, two options need no look at whether they are there.
fn pointer(slab: Option<&'static Slab>) -> *const Slab {
    slab.map_or(core::ptr::null(), core::ptr::from_ref)
}

impl Returned {
    /// A chain without a node, for nodes of the slab of `node`.
    pub fn of(node: &'static Node) -> Returned {
        Returned { slab: Some(node.slab()), first: None, last: Some(node), count: 0 }
    }

    /// Whether the chain is of no slab.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.slab.is_none()
    }

    /// Whether `node` lies in the slab of this chain.
    #[inline(always)]
    pub fn is_of(&self, node: &'static Node) -> bool {
        pointer(node.slab.get()) == pointer(self.slab)
    }

    /// Adds a node of this slab, which is in no tree and no slot any more. The first is the one that [`Returned::of`]
    /// was given.
    #[inline(always)]
    pub fn add(&mut self, node: &'static Node) {
        node.next.set(self.first.replace(node));
        self.count += 1;
    }

    /// Gives the nodes back. Their task has lost as many pages.
    pub fn settle(self, pool: &Pool) {
        let (Some(slab), Some(last)) = (self.slab, self.last) else { return };
        let task = last.task();
        task.lose_pages(self.count);
        last.next.set(slab.free.replace(self.first));
        Slabs::count_returned(pool, slab, self.count);
    }
}

/// Relation of a node in the list of a tree to one before it.
#[derive(Clone, Copy)]
pub enum Relation {
    /// A mapping below it.
    Below,
    /// A thread's bookmark; mappings below it may come behind that.
    Bookmark,
    /// No mapping below it.
    Beside,
}

impl Node {
    fn slab(&self) -> &'static Slab {
        self.slab.get().expect("a node has a slab")
    }

    /// Fills in a node just cut, which gets a place in a tree next.
    #[inline(always)]
    pub fn fill(
        &'static self,
        address: u64,
        entry: Option<&'static Cell<u64>>,
        slot: &'static NodeSlot,
    ) -> &'static Node {
        self.entry.set(entry);
        self.slot.set(Some(slot));
        self.address.set(address);
        slot.set(Some(self));
        self
    }

    fn stand_alone(&self) {
        self.next.set(None);
        self.prev.set(None);
    }

    /// Makes it the root of a tree.
    pub fn plant(&self, space: abi::Space) {
        self.stand_alone();
        self.kind.set((space as u64) << SPACE_SHIFT);
    }

    /// The node as that of a large page, if it is one; parts of the page may be all that is left.
    pub fn large(&'static self) -> Option<LargePage> {
        (self.entry.get().is_some() && self.address.get() & LARGE != 0).then_some(LargePage(self))
    }

    /// Whether this is a thread's bookmark.
    pub fn is_bookmark(&self) -> bool {
        self.kind.get() & BOOKMARK == BOOKMARK
    }

    /// Task whose mapping this is.
    #[inline(always)]
    pub fn task(&self) -> TaskRef {
        self.slab().task.get().expect("a slab has a task")
    }

    /// Address in that task, or number.
    pub fn address(&self) -> u64 {
        self.address.get()
    }

    /// The page-table entry, for memory.
    pub fn entry(&self) -> Option<&'static Cell<u64>> {
        self.entry.get()
    }

    /// Whether it is a port.
    pub fn is_port(&self) -> bool {
        self.kind.get() >> SPACE_SHIFT == abi::Space::Port as u64
    }

    /// Whether σ0 has it from the machine, and keeps it.
    pub fn is_of_machine(&self) -> bool {
        self.depth() == 0 && self.task().is_sigma0.get()
    }

    /// Distance from the root of the tree.
    pub fn depth(&self) -> u32 {
        self.kind.get() as u32
    }

    /// Makes `child` a child of this node.
    #[inline(always)]
    pub fn add_child(&'static self, child: &'static Node) {
        child.kind.set(self.kind.get() + 1);
        self.link_behind(child);
    }

    fn link_behind(&'static self, node: &'static Node) {
        node.prev.set(Some(self));
        node.next.set(self.next.get());
        if let Some(next) = self.next.replace(Some(node)) {
            next.prev.set(Some(node));
        }
    }

    /// Puts `node` beside this one: it came from where this one came from, and nobody has anything from it. A root stands
    /// alone.
    pub fn add_beside(&'static self, node: &'static Node) {
        node.kind.set(self.kind.get());
        match self.prev.get() {
            Some(prev) => prev.link_behind(node),
            None => node.stand_alone(),
        }
    }

    /// Puts `node` in this one's place in the tree, with all children. This one belongs to no tree afterwards.
    #[inline(always)]
    pub fn replace_by(&'static self, node: &'static Node) {
        let (prev, next) = (self.prev.get(), self.next.get());
        node.kind.set(self.kind.get());
        node.prev.set(prev);
        node.next.set(next);
        if let Some(prev) = prev {
            prev.next.set(Some(node));
        }
        if let Some(next) = next {
            next.prev.set(Some(node));
        }
    }

    /// The first node of the subtree below this one, or the next after `Some(previous)`.
    pub fn below(&self, previous: Option<&'static Node>) -> Option<&'static Node> {
        let next = previous.map_or(self.next.get(), |node| node.next.get())?;
        (next.kind.get() > self.kind.get()).then_some(next)
    }

    /// The node before this one in the list of the tree.
    pub fn before(&self) -> Option<&'static Node> {
        self.prev.get()
    }

    /// The node behind this one in the list of the tree.
    #[inline(always)]
    pub fn next(&self) -> Option<&'static Node> {
        self.next.get()
    }

    /// Relation of a node that comes behind this one.
    #[inline(always)]
    pub fn relation(&self, next: &'static Node) -> Relation {
        // A bookmark's kind is negative, so one comparison is enough to tell nodes below.
        let (kind, other) = (self.kind.get() as i64, next.kind.get() as i64);
        if other > kind {
            Relation::Below
        } else if other < 0 {
            Relation::Bookmark
        } else {
            Relation::Beside
        }
    }

    /// Whether a node that comes behind this one is neither below it nor a bookmark, whose kind is more than any other.
    #[inline(always)]
    pub fn is_beside(&self, next: &'static Node) -> bool {
        next.kind.get() <= self.kind.get()
    }

    /// Takes `below`, the next node, out of the tree. Returns the node that comes behind this one then.
    #[inline(always)]
    pub fn cut_below(&'static self, below: &'static Node) -> Option<&'static Node> {
        let next = below.next.get();
        self.next.set(next);
        if let Some(next) = next {
            next.prev.set(Some(self));
        }
        next
    }

    /// Empties the node's slot.
    #[inline(always)]
    pub fn leave(&self) {
        if let Some(slot) = self.slot.get() {
            slot.set(None);
        }
    }

    /// Takes the node out of the tree.
    pub fn unlink(&self) {
        if let Some(prev) = self.prev.get() {
            prev.next.set(self.next.get());
        }
        if let Some(next) = self.next.get() {
            next.prev.set(self.prev.get());
        }
    }

    /// Takes a bookmark, or a door, out of the list that it is in, if any.
    pub fn take_out(&self) {
        self.unlink();
        self.stand_alone();
    }

    /// Takes the node out of tree and table and gives it back. A subtree is erased front to back: nodes
    /// that hung below this one still lie in the run of those above it, and are erased next.
    #[inline(always)]
    pub fn erase(&'static self, pool: &Pool) {
        self.unlink();
        self.discard(pool);
    }

    /// Gives back a node that [`Node::replace_by`] has taken out of its tree.
    #[inline(always)]
    pub fn discard(&'static self, pool: &Pool) {
        self.leave();
        Slabs::give_back(pool, self);
    }
}

/// The node of a large page. Its address is marked as such, and it leads to the record.
#[derive(Clone, Copy)]
pub struct LargePage(&'static Node);

impl core::ops::Deref for LargePage {
    type Target = &'static Node;

    fn deref(&self) -> &&'static Node {
        &self.0
    }
}

impl LargePage {
    /// Fills in the node of a large page, whose first frame is `frame`, and its record. Both were just cut.
    pub fn fill(
        (node, record): (&'static Node, &'static Node),
        (address, frame): (u64, u64),
        entry: &'static Cell<u64>,
        slot: &'static NodeSlot,
    ) -> LargePage {
        node.fill(address | LARGE, Some(entry), slot).record.set(Some(record));
        record.address.set(frame);
        record.record.set(None);
        LargePage(node)
    }

    fn record(self) -> &'static Node {
        self.0.record.get().expect("a large page has a record")
    }

    /// Entry of the page in its directory.
    pub fn cell(self) -> &'static Cell<u64> {
        self.0.entry.get().expect("a large page has an entry")
    }

    /// Address in its task.
    pub fn address(self) -> u64 {
        self.0.address.get() & !LARGE
    }

    /// Physical address of the page.
    pub fn frame(self) -> u64 {
        self.record().address.get() & !PARTS_LEFT
    }

    /// Number of small pages that are left of it if it is split; 0 if it is not.
    pub fn parts(self) -> u64 {
        self.record().address.get() & PARTS_LEFT
    }

    /// Notes how many small pages are left.
    pub fn set_parts(self, count: u64) {
        let cell = &self.record().address;
        cell.set(cell.get() & !PARTS_LEFT | count);
    }

    /// Takes the node out of its slot and gives it back, with its record; nobody has the page any more, or
    /// [`Node::replace_by`] has given it another node.
    pub fn discard(self, pool: &Pool) {
        let record = self.record();
        debug_assert!(record.record.get().is_none(), "an index of nothing");
        self.0.discard(pool);
        Slabs::give_back(pool, record);
    }

    /// Asserts the promises of the node, and returns its record.
    pub fn check(self, task: TaskRef, slot: &NodeSlot) -> &'static Node {
        self.0.check(task, slot, self.0.entry.get());
        assert_eq!(self.record().task(), task, "a record in another task's slab");
        self.record()
    }
}

/// A door lies in the second node of its maker's identifier. The address is the entry, the kind the datum, the entry leads to
/// the pool of servers, and the slot, if there is one, says that it is in a list of unreferenced doors.
impl Node {
    /// Offset of `next`, for the fast path.
    pub const NEXT: usize = core::mem::offset_of!(Node, next);
    /// Offset of `prev`, for the fast path.
    pub const PREV: usize = core::mem::offset_of!(Node, prev);
    /// Offset of `slab`, for the fast path.
    pub const SLAB: usize = core::mem::offset_of!(Node, slab);
    /// Offset of `entry`, for the fast path.
    pub const ENTRY: usize = core::mem::offset_of!(Node, entry);
    /// Offset of `slot`, for the fast path.
    pub const SLOT: usize = core::mem::offset_of!(Node, slot);
    /// Offset of the address, for the fast path. It is negative if the identifier may be handed on.
    pub const ADDRESS: usize = core::mem::offset_of!(Node, address);
    /// Offset of `kind`, for the fast path.
    pub const KIND: usize = core::mem::offset_of!(Node, kind);
    /// Offset of the door's node in an identifier, for the fast path.
    pub const DOOR: usize = core::mem::offset_of!(Node, record);
    /// The kind of an identifier that is not its maker's: the tree is flat.
    pub const IDENTIFIER_KIND: u64 = (abi::Space::Door as u64) << SPACE_SHIFT | 1;
    /// Offset of the entry point in a door's node.
    pub const DOOR_ENTRY: usize = core::mem::offset_of!(Node, address);
    /// Offset of the datum in a door's node.
    pub const DOOR_DATUM: usize = core::mem::offset_of!(Node, kind);
    /// Offset, in a door's node, of the address behind the word of the first idle server.
    pub const DOOR_POOL: usize = core::mem::offset_of!(Node, entry);

    /// Fills in the maker's identifier of a new door, which is the root of a tree, and the door's own node. Both were just cut.
    pub fn init_door(
        &'static self,
        door: &'static Node,
        (number, slot): (u64, &'static NodeSlot),
        (entry, datum): (u64, u64),
        pool: &'static Cell<u64>,
    ) {
        self.fill(number | DOOR_RIGHTS, None, slot).plant(abi::Space::Door);
        self.record.set(Some(door));
        door.next.set(None);
        door.prev.set(None);
        door.slot.set(None);
        door.record.set(Some(self));
        door.address.set(entry);
        door.kind.set(datum);
        door.entry.set(Some(pool));
    }

    /// Fills in another identifier of the door, just cut, that comes from this one.
    #[inline(always)]
    pub fn add_identifier(
        &'static self,
        child: &'static Node,
        number: u64,
        may_pass: bool,
        slot: &'static NodeSlot,
    ) {
        child.fill(number | if may_pass { DOOR_RIGHTS } else { 0 }, None, slot);
        child.kind.set(Node::IDENTIFIER_KIND);
        child.record.set(self.record.get());
        self.link_behind(child);
    }

    /// Door that a word shows in the tables for the fast path, if it shows one.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn shown(word: u64) -> Option<&'static Node> {
        // SAFETY: a word with the highest bit is the address of a door's node, and is taken out of the table before the door goes.
        (word >> 63 == 1).then(|| unsafe { &*(word as *const Node) })
    }

    /// Node of the door to which an identifier leads.
    pub fn door(&self) -> &'static Node {
        self.record.get().expect("an identifier has a door")
    }

    /// The maker's identifier of a door.
    pub fn door_root(&self) -> &'static Node {
        self.door()
    }

    /// Entry point and datum of a door.
    pub fn door_target(&self) -> (u64, u64) {
        (self.address.get(), self.kind.get())
    }

    /// The number of an identifier.
    pub fn number(&self) -> u64 {
        self.address.get() & !DOOR_RIGHTS
    }

    /// Whether an identifier may be handed on.
    pub fn may_pass(&self) -> bool {
        self.address.get() & DOOR_RIGHTS != 0
    }

    /// Forbids to hand an identifier on.
    pub fn forbid_passing(&self) {
        self.address.set(self.number());
    }

    /// Whether nobody but a door's maker has an identifier of it.
    pub fn is_unreferenced(&self) -> bool {
        self.door_root().below(None).is_none()
    }

    /// Puts a door that nobody refers to before another one in a list, if it is in none.
    pub fn link_unreferenced(&'static self, first: Option<&'static Node>) -> bool {
        if self.slot.get().is_some() {
            return false;
        }
        self.slot.set(self.door_root().slot.get());
        self.prev.set(None);
        self.next.set(first);
        if let Some(next) = first {
            next.prev.set(Some(self));
        }
        true
    }

    /// Takes a door out of the list of unreferenced ones that it is in, if any; `head` is that list.
    pub fn unlink_unreferenced(&self, head: &Cell<Option<&'static Node>>) {
        if self.slot.take().is_some() {
            if self.prev.get().is_none() {
                head.set(self.next.get());
            }
            self.take_out();
        }
    }

    /// Takes a door's last identifier, the maker's, out of its slot, and gives both nodes back.
    pub fn discard_door(&'static self, pool: &Pool) {
        let door = self.door();
        self.erase(pool);
        Slabs::give_back(pool, door);
    }
}

/// Bookmark of a walk through everything below a page that a thread broke off to look at the interrupts.
#[repr(transparent)]
pub struct Bookmark(Node);

/// Point at which a walk goes on.
#[derive(Clone, Copy)]
pub struct Mark {
    /// Node behind which the bookmark stands.
    pub place: &'static Node,
    /// Note of the walk, in 62 bits.
    pub note: u64,
}

impl Bookmark {
    /// Makes an empty bookmark out of any contents: it is in no list.
    pub fn init(&self) {
        self.0.stand_alone();
    }

    /// Leaves the bookmark where a walk through everything below `root` is broken off.
    pub fn leave(&'static self, root: &'static Node, mark: Mark) {
        let Bookmark(node) = self;
        self.remove();
        node.slab.set(None);
        node.entry.set(None);
        node.slot.set(None);
        node.record.set(Some(root));
        node.address.set(root.task().losses.get());
        node.kind.set(BOOKMARK | mark.note << 1);
        mark.place.link_behind(node);
    }

    /// Mark at which the walk below `root` was broken off. `None` if it was another walk, or if the root may have gone since: then its
    /// task has lost a page. Takes the bookmark out in any case.
    pub fn resume(&self, root: &'static Node) -> Option<Mark> {
        let Bookmark(node) = self;
        let place = node.prev.get();
        let is_valid = node.record.get().is_some_and(|of| core::ptr::eq(of, root))
            && node.address.get() == root.task().losses.get();
        self.remove();
        place.filter(|_| is_valid).map(|place| Mark { place, note: (node.kind.get() & !BOOKMARK) >> 1 })
    }

    /// Takes the bookmark out of the list that it is in, if any.
    pub fn remove(&self) {
        self.0.take_out();
    }
}

impl Node {
    /// Asserts the promises of a node in a slot about that slot and about its neighbours in the tree.
    pub fn check(&'static self, task: TaskRef, place: &NodeSlot, entry: Option<&Cell<u64>>) {
        let same = |a: Option<&Cell<u64>>, b: Option<&Cell<u64>>| {
            a.map(core::ptr::from_ref) == b.map(core::ptr::from_ref)
        };
        assert!(
            self.slot.get().is_some_and(|slot| core::ptr::eq(slot, place)),
            "a node does not know its place"
        );
        assert!(same(self.entry.get(), entry), "a node does not know its entry");
        assert_eq!(self.task(), task, "a node in another task's slab");
        match self.prev.get() {
            Some(prev) => assert!(prev.next.get().is_some_and(|next| core::ptr::eq(next, self))),
            None => assert_eq!(self.depth(), 0, "a tree without a root"),
        }
        if let Some(next) = self.next.get() {
            assert!(next.prev.get().is_some_and(|prev| core::ptr::eq(prev, self)));
            // A gap in depth is left by a flush that is under way.
            assert_ne!(next.depth(), 0, "a tree with two roots");
        }
    }

    /// Number of nodes in the tree of which this is the root, 0 if it is not one.
    pub fn count_tree(&'static self) -> usize {
        if self.prev.get().is_some() {
            return 0;
        }
        let others = core::iter::successors(self.next.get(), |node| node.next.get());
        1 + others.filter(|node| !node.is_bookmark() && node.border().is_none()).count()
    }

    /// Whether the node's slab has no free node.
    pub fn is_slab_full(&self) -> bool {
        self.slab.get().is_some_and(|slab| slab.used.get() as usize == NODES)
    }
}

impl Slabs {
    /// Number of frames that a task's nodes occupy, if `in_full` of its nodes lie in slabs that are full and
    /// `elsewhere` in others.
    pub fn check(&self, in_full: usize, elsewhere: usize) -> u32 {
        let (mut slabs, mut used) = (0, 0);
        let mut next = self.first.get();
        while let Some(slab) = next {
            assert!((slab.used.get() as usize) < NODES, "a full slab in the list of those with room");
            used += slab.used.get() as usize;
            slabs += 1;
            next = slab.next.get();
        }
        assert_eq!((used, in_full % NODES), (elsewhere, 0), "slabs and tables count different nodes");
        slabs + (in_full / NODES) as u32
    }
}
