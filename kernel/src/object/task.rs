//! Task: an address space with its threads, its chief and its share of kernel memory.
//!
//! A task is one frame. Memory that the kernel allocates for it (tables, mapping nodes, control blocks, its own frame)
//! is charged to its quota in frames; a child's quota is carved from its creator's. The creator is the task's
//! *chief*: it alone controls the task, and the end of a task ends all tasks that it created.

use super::checked::{Checked, Generation};
use super::door::Doors;
use super::mapping::Slabs;
use super::thread::OfTask;
use crate::mem::pool::{Frame, Pool, Zeroable};
use crate::mem::recent::Recent;
use crate::util::list::List;
use abi::{TaskId, Uid};
use core::cell::Cell;

/// A task's state.
#[repr(C)]
pub struct Task {
    /// Name of the task; nil in a frame that holds no task.
    pub id: Cell<TaskId>,
    /// Its creator; `None` for the first task.
    pub chief: Cell<Option<TaskRef>>,
    /// The thread that created it: messages across the border of its clan go there.
    pub supervisor: Cell<Uid>,
    /// Number of tasks above it.
    pub depth: Cell<u8>,
    /// The last task it created that still exists; the others follow by `sibling_next`.
    pub child: Cell<Option<TaskRef>>,
    /// Next task of the same chief.
    pub sibling_next: Cell<Option<TaskRef>>,
    /// Previous task of the same chief.
    pub sibling_prev: Cell<Option<TaskRef>>,
    /// Its threads.
    pub threads: List<OfTask>,
    /// Number of its threads.
    pub thread_count: Cell<u32>,
    /// Top-level page table.
    pub top: Cell<u64>,
    /// Word that selects the address space in the processor; copied into each thread's hot line.
    pub space: Cell<u64>,
    /// End of the last walk through the tables.
    pub recent: Recent,
    /// Table of the port space, 0 if there is none: 128 entries, each the frame of a table of 512 ports.
    pub ports: Cell<u64>,
    /// The two frames of the port permission bitmap, 0 if there are none.
    pub port_bitmap: [Cell<u64>; 2],
    /// Table of the interrupt space, 0 if there is none.
    pub interrupts: Cell<u64>,
    /// Door identifiers, and the servers of the task's own doors.
    pub doors: Doors,
    /// Slabs with free mapping nodes.
    pub slabs: Slabs,
    /// Frames that the task may use, itself and its children included.
    pub quota: Cell<u32>,
    /// Frames in use or given to children.
    pub used: Cell<u32>,
    /// Pages of memory mapped.
    pub pages: Cell<u32>,
    /// Pages that it has lost so far.
    pub losses: Cell<u64>,
    /// Page faults so far.
    pub faults: Cell<u32>,
    /// Highest priority of its threads.
    pub priority_max: Cell<u8>,
    /// While the task is being ended: slots below this were searched for threads that wait for one of its own.
    pub searched: Cell<u32>,
    /// While the task is being ended: everything below this address is flushed.
    pub cursor: Cell<u64>,
    /// While the task is being ended: progress of the flush within a large page there, as [`flush`](crate::mem::space::flush) collects it.
    pub flushing: Cell<u64>,
    /// Reasons why it may get no kernel memory, whatever its quota; see [`hindrance`].
    pub hindrance: Cell<u8>,
    /// Whether it is the first task: its space is all of memory, ports and interrupts.
    pub is_sigma0: Cell<bool>,
    /// Under page-table isolation: the top-level table that users run on, which shows next to nothing of the kernel half. 0
    /// otherwise.
    pub user_space: Cell<u64>,
    /// While the task is being ended: its former slabs.
    pub closed_slabs: Slabs,
    /// Uids that it may use up before the next frame is charged for them.
    pub uids: Cell<u64>,
    /// Frames charged for uids that were used up; they are lost to it for good.
    pub worn: Cell<u32>,
    /// Prediction domain: the task for which it was made, that one itself or one above it; nil for the domain of all others (decision 0088).
    pub domain: Cell<TaskId>,
}

#[allow(unsafe_code)]
// SAFETY: cells; zero means nil, none, empty, false.
unsafe impl Zeroable for Task {}

/// Bits of [`Task::hindrance`]. A charge looks at all of them with one compare.
pub mod hindrance {
    /// The task is being ended; nothing can be made in it any more.
    pub const DYING: u8 = 1 << 0;
    /// Its allocations count towards a denial that was ordered; see [`Pool::deny`](crate::mem::pool::Pool::deny).
    pub const COUNTED: u8 = 1 << 1;
}

/// Price of uids, which are used up for good: each names one thread, ever (decision 0080).
#[derive(Clone, Copy)]
pub struct UidPrice {
    /// Uids that each task gets for nothing.
    pub free: u64,
    /// Uids that a frame pays for.
    pub per_frame: u64,
}

/// A task that exists.
#[derive(Clone, Copy)]
pub struct TaskRef(Checked<Task>);

impl Generation for Task {
    fn generation(&self) -> u32 {
        self.id.get().generation()
    }
}

impl Task {
    /// Whether the task is being ended, and its end has reached it.
    pub fn is_dying(&self) -> bool {
        self.hindrance.get() & hindrance::DYING != 0
    }
}

impl core::ops::Deref for TaskRef {
    type Target = Task;

    #[inline(always)]
    fn deref(&self) -> &Task {
        self.0.get()
    }
}

impl PartialEq for TaskRef {
    fn eq(&self, other: &TaskRef) -> bool {
        core::ptr::eq(self.0.place(), other.0.place())
    }
}

impl core::fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "{:?}", self.id.get())
    }
}

impl TaskRef {
    /// The task in a frame.
    pub fn at(pool: &Pool, frame: Frame) -> TaskRef {
        TaskRef(Checked::new(pool.at::<Task>(frame)))
    }

    /// The state itself, for as long as the task exists.
    pub fn state(self) -> &'static Task {
        self.0.get()
    }

    /// Counts pages that are gone.
    #[inline(always)]
    pub fn lose_pages(self, count: u32) {
        // σ0's pages are not counted from the start, so it can lose more than it got.
        self.pages.set(self.pages.get().saturating_sub(count));
        self.losses.set(self.losses.get() + count as u64);
    }

    /// Charges one frame. False if the quota is used up.
    fn charge(self, pool: &Pool) -> bool {
        let used = self.used.get();
        if used >= self.quota.get() || self.hindrance.get() != 0 && self.is_hindered(pool) {
            return false;
        }
        self.used.set(used + 1);
        true
    }

    #[cold]
    fn is_hindered(self, pool: &Pool) -> bool {
        self.is_dying() || pool.denies_now()
    }

    /// Whether a task above it, or it itself, is being ended: it will be too, and nothing can be made in it or by it, so that the
    /// end of a family ends.
    pub fn is_ending(self) -> bool {
        core::iter::successors(Some(self), |task| task.chief.get()).any(|task| task.is_dying())
    }

    /// Marks the task as being ended: it gains nothing any more. Its tasks are marked when their turn comes.
    pub fn set_dying(self) {
        self.hindrance.set(self.hindrance.get() | hindrance::DYING);
        self.doors.hide();
        self.doors.servers.close();
        self.slabs.close(&self.closed_slabs);
    }

    /// Sets whether the task's allocations count towards a denial.
    pub fn set_counted(self, counted: bool) {
        let others = self.hindrance.get() & !hindrance::COUNTED;
        self.hindrance.set(others | if counted { hindrance::COUNTED } else { 0 });
    }

    /// Takes back what [`TaskRef::charge`] charged.
    fn refund(self) {
        debug_assert!(self.used.get() > 0);
        self.used.set(self.used.get() - 1);
    }

    /// A frame with any contents, charged to the task.
    pub fn take_frame(self, pool: &Pool) -> Option<Frame> {
        self.charge(pool).then(|| pool.take().expect("quotas never exceed the pool"))
    }

    /// A frame of zeroes, charged to the task.
    pub fn take_zeroed_frame(self, pool: &Pool) -> Option<Frame> {
        self.charge(pool).then(|| pool.take_zeroed().expect("quotas never exceed the pool"))
    }

    /// Gives back a frame with any contents.
    pub fn give_back_frame(self, pool: &Pool, frame: Frame) {
        pool.give_back(frame);
        self.refund();
    }

    /// Gives back a frame that holds zeroes.
    pub fn give_back_zeroed_frame(self, pool: &Pool, frame: Frame) {
        pool.give_back_zeroed(frame);
        self.refund();
    }

    /// Lets it use up more uids, for a frame that is charged for good. False if it has none left.
    pub fn wear(self, pool: &Pool, price: UidPrice) -> bool {
        let charged = self.charge(pool);
        if charged {
            self.worn.set(self.worn.get() + 1);
            self.uids.set(self.uids.get() + price.per_frame);
        }
        charged
    }

    /// Takes back what [`TaskRef::wear`] charged.
    pub fn take_back_wear(self, price: UidPrice) {
        self.refund();
        self.worn.set(self.worn.get() - 1);
        self.uids.set(self.uids.get() - price.per_frame);
    }

    /// Takes over what a child, which has ended and whose quota is its chief's again, has used up. Returns the number of
    /// frames charged beside those of the child; fewer than 0 where two rests of a frame make a whole one.
    pub fn inherit_wear(self, child: TaskRef, price: UidPrice) -> i64 {
        let mut rest = self.uids.get() + child.uids.get();
        let worn = self.worn.get() + child.worn.get();
        let mut charged = 0;
        // One task less gets uids for nothing.
        if rest < price.free {
            rest += price.per_frame;
            charged = 1;
        }
        rest -= price.free;
        let unused = (rest / price.per_frame).min(worn as u64);
        charged -= unused as i64;
        self.uids.set(rest - unused * price.per_frame);
        let used = self.used.get() as i64 + child.worn.get() as i64 + charged;
        self.used.set(used as u32);
        self.worn.set((worn as i64 + charged) as u32);
        charged
    }

    /// Puts a child into the task's list.
    pub fn adopt(self, child: TaskRef) {
        child.chief.set(Some(self));
        child.sibling_prev.set(None);
        child.sibling_next.set(self.child.get());
        if let Some(next) = self.child.replace(Some(child)) {
            next.sibling_prev.set(Some(child));
        }
    }

    /// Takes the task out of its chief's list.
    pub fn disown(self) {
        let chief = self.chief.get().expect("the first task never ends");
        match self.sibling_prev.get() {
            Some(prev) => prev.sibling_next.set(self.sibling_next.get()),
            None => chief.child.set(self.sibling_next.get()),
        }
        if let Some(next) = self.sibling_next.get() {
            next.sibling_prev.set(self.sibling_prev.get());
        }
    }

    /// Whether `self` may change `target`: it is the target's chief.
    pub fn is_chief_of(self, target: TaskRef) -> bool {
        target.chief.get() == Some(self)
    }

    /// Whether this task owns ports and therefore a permission bitmap.
    pub fn has_ports(self) -> bool {
        self.port_bitmap[0].get() != 0
    }

    /// Number of the chief, which every uid of this task's threads carries; 0 for the first task.
    pub fn clan(self) -> u16 {
        self.chief.get().map_or(0, |chief| chief.id.get().number())
    }
}
