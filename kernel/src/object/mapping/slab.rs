//! Slabs: the frames of which a task's nodes are cut.

use super::Node;
use crate::mem::pool::{Frame, Pool, Zeroable};
use crate::object::task::TaskRef;
use core::cell::Cell;

const NODES: usize = 63;

/// A frame of nodes of one task.
#[repr(C, align(64))]
pub struct Slab {
    pub(super) task: Cell<Option<TaskRef>>,
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
    pub(super) fn give_back(pool: &Pool, node: &'static Node) {
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

impl Node {
    pub(super) fn slab(&self) -> &'static Slab {
        self.slab.get().expect("a node has a slab")
    }

    /// Whether the node's slab has no free node.
    pub fn is_slab_full(&self) -> bool {
        self.slab.get().is_some_and(|slab| slab.used.get() as usize == NODES)
    }
}
