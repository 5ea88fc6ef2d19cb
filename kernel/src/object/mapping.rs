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

mod bookmark;
mod door;
mod index;
mod large;
mod slab;

pub use bookmark::{Bookmark, Mark};
pub use index::{Border, Index};
pub use large::LargePage;
pub use slab::{Cut, Fresh, Returned, Slab, Slabs};

use super::task::TaskRef;
use crate::mem::pool::{Pool, Zeroable};
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
}
