//! Mapping: a node in a frame's mapping tree (row C3).
//!
//! The tree of a frame is a list in preorder; each node knows its depth. A child goes right behind its parent, a
//! subtree is the run of nodes behind its root that are deeper, and erasing it is a walk along the list without
//! recursion. The node of a mapping is reached from its page-table entry through the shadow table that lies beside
//! each last-level table; a node knows its entry, so erasing needs no walk through tables.
//!
//! Nodes are cut from slabs, frames that belong to (and are charged to) the task whose mapping they record.

use super::task::TaskRef;
use crate::mem::pool::{Frame, Pool, Zeroable};
use core::cell::Cell;

/// Place for the node of one page, port or line.
pub type NodeSlot = Cell<Option<&'static Node>>;

/// The shadow of a last-level table, or a table of ports or lines itself.
#[repr(C, align(4096))]
pub struct NodeTable(pub [NodeSlot; 512]);

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
    /// Where the owner's table refers to this node.
    slot: Cell<Option<&'static NodeSlot>>,
    /// Address in the owner's space (memory), or the number (ports, interrupts).
    address: Cell<u64>,
    depth: Cell<u32>,
    /// [`abi::Space`] as a number.
    space: Cell<u8>,
}

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

// SAFETY: cells of integers and optional references.
unsafe impl Zeroable for SlabFrame {}

const _: () = assert!(size_of::<Node>() == 64 && size_of::<SlabFrame>() == 4096);

impl Slab {
    /// Lays a slab over a frame.
    fn create(pool: &Pool, frame: Frame, task: TaskRef) -> &'static Slab {
        let slab = &pool.at::<SlabFrame>(frame).head;
        slab.task.set(Some(task));
        slab.frame.set(frame.0);
        slab.used.set(0);
        let nodes = &pool.at::<SlabFrame>(frame).nodes;
        slab.free.set(nodes.first());
        for (i, node) in nodes.iter().enumerate() {
            node.next.set(nodes.get(i + 1));
        }
        slab
    }
}

/// The slabs of a task that have free nodes.
#[derive(Default)]
pub struct Slabs {
    first: Cell<Option<&'static Slab>>,
}

impl Slabs {
    /// Cuts a node. `None` if the task cannot pay for a new slab.
    #[inline]
    pub fn take(&self, pool: &Pool, task: TaskRef) -> Option<&'static Node> {
        if self.first.get().is_none() {
            self.push(Slab::create(pool, task.take_frame(pool)?, task));
        }
        self.take_ready()
    }

    /// Cuts a node if that needs no new slab.
    #[inline(always)]
    pub fn take_ready(&self) -> Option<&'static Node> {
        let slab = self.first.get()?;
        let node = slab.free.get()?;
        slab.free.set(node.next.get());
        node.slab.set(Some(slab));
        slab.used.set(slab.used.get() + 1);
        if node.next.get().is_none() {
            self.remove(slab);
        }
        Some(node)
    }

    #[inline(always)]
    fn give_back(&self, pool: &Pool, node: &'static Node) {
        let slab = node.slab.take().expect("a node in use has a slab");
        let used = slab.used.get();
        node.next.set(slab.free.replace(Some(node)));
        slab.used.set(used - 1);
        if used as usize == NODES || used == 1 {
            self.settle(pool, slab, used);
        }
    }

    /// A slab was full or is empty now.
    #[inline(never)]
    fn settle(&self, pool: &Pool, slab: &'static Slab, used: u32) {
        if used as usize == NODES {
            self.push(slab);
        }
        let only = slab.prev.get().is_none() && slab.next.get().is_none();
        if used == 1 && !only {
            self.release(pool, slab);
        }
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

impl Node {
    /// Fills in a node just cut. It belongs to no tree yet.
    pub fn init(
        &'static self,
        space: abi::Space,
        address: u64,
        entry: Option<&'static Cell<u64>>,
        slot: &'static NodeSlot,
    ) {
        self.next.set(None);
        self.prev.set(None);
        self.entry.set(entry);
        self.slot.set(Some(slot));
        self.address.set(address);
        self.depth.set(0);
        self.space.set(space as u8);
        slot.set(Some(self));
    }

    /// The task whose mapping this is.
    pub fn task(&self) -> TaskRef {
        self.slab.get().and_then(|slab| slab.task.get()).expect("a node in use has a task")
    }

    /// Address in that task, or number.
    pub fn address(&self) -> u64 {
        self.address.get()
    }

    /// The page-table entry, for memory.
    pub fn entry(&self) -> Option<&'static Cell<u64>> {
        self.entry.get()
    }

    /// Which space the mapping is in.
    pub fn is_port(&self) -> bool {
        self.space.get() == abi::Space::Port as u8
    }

    /// Which space the mapping is in.
    pub fn is_interrupt(&self) -> bool {
        self.space.get() == abi::Space::Interrupt as u8
    }

    /// Distance from the root of the tree.
    pub fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Makes `child` a child of this node.
    pub fn add_child(&'static self, child: &'static Node) {
        child.depth.set(self.depth.get() + 1);
        self.link_behind(child);
    }

    fn link_behind(&'static self, node: &'static Node) {
        node.prev.set(Some(self));
        node.next.set(self.next.get());
        if let Some(next) = self.next.replace(Some(node)) {
            next.prev.set(Some(node));
        }
    }

    /// Puts `node` in this one's place in the tree, children and all. This one belongs to no tree afterwards.
    pub fn replace_by(&'static self, node: &'static Node) {
        node.depth.set(self.depth.get());
        self.link_behind(node);
        self.unlink();
    }

    /// The first node of the subtree below this one, or the next after `Some(previous)`.
    pub fn below(&self, previous: Option<&'static Node>) -> Option<&'static Node> {
        let next = previous.map_or(self.next.get(), |node| node.next.get())?;
        (next.depth.get() > self.depth.get()).then_some(next)
    }

    fn unlink(&self) {
        if let Some(prev) = self.prev.get() {
            prev.next.set(self.next.get());
        }
        if let Some(next) = self.next.get() {
            next.prev.set(self.prev.get());
        }
    }

    /// Takes the node out of tree and table and gives it back. Whoever erases a subtree does so front to back: what
    /// hung below the node still lies in the run of those above it, and is erased next.
    #[inline(always)]
    pub fn erase(&'static self, pool: &Pool) {
        self.unlink();
        self.discard(pool);
    }

    /// Gives back a node that [`Node::replace_by`] has taken out of its tree.
    #[inline(always)]
    pub fn discard(&'static self, pool: &Pool) {
        if let Some(slot) = self.slot.take() {
            slot.set(None);
        }
        let task = self.task();
        task.slabs.give_back(pool, self);
    }
}

impl Node {
    /// Asserts what the node at a place promises about the place and about its neighbours in the tree.
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
            None => assert_eq!(self.depth.get(), 0, "a tree without a root"),
        }
        if let Some(next) = self.next.get() {
            assert!(next.prev.get().is_some_and(|prev| core::ptr::eq(prev, self)));
            // A gap in depth is left by a flush that is under way.
            assert_ne!(next.depth.get(), 0, "a tree with two roots");
        }
    }

    /// Number of nodes in the tree of which this is the root, 0 if it is not one.
    pub fn count_tree(&'static self) -> usize {
        if self.prev.get().is_some() {
            return 0;
        }
        1 + core::iter::successors(self.next.get(), |node| node.next.get()).count()
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
