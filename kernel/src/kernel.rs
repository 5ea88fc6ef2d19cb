//! The kernel's state in one place, and the look-up of objects by name.
//!
//! There is one [`Kernel`] for a machine; all code gets it as its first argument, so that host tests can have as
//! many as they like.

use crate::mem::pool::{Frame, Pool, Zeroable};
use crate::object::interrupt::Lines;
use crate::object::mapping::Node;
use crate::object::task::UidPrice;
use crate::object::{TaskRef, ThreadRef};
use crate::param;
use crate::sched::queues::Scheduler;
use crate::trace::ring::Trace;
use crate::util::discipline::{Home, Locked, Shared};
use crate::util::slots::Slots;
use crate::util::tags::Tags;
use abi::{TaskId, Uid};
use core::cell::Cell;

const TASKS_PER_PAGE: usize = 512;

/// Table of task numbers: the frame of each task, 0 for none.
#[repr(C, align(4096))]
struct TaskPage([Cell<u64>; TASKS_PER_PAGE]);

#[allow(unsafe_code)]
// SAFETY: integers in cells.
unsafe impl Zeroable for TaskPage {}

/// Calls from `mem` up into `ipc`, as pointers, so that `mem` does not import `ipc`. There is one value:
/// [`crate::ipc::UPCALLS`].
pub struct Upcalls {
    /// Called when the last identifier of a door but its maker's has gone.
    pub unreferenced: fn(&Kernel, &'static Node),
    /// Called when a task has lost an interrupt line.
    pub line_lost: fn(&Kernel, TaskRef, u8),
}

/// The kernel's state. The type of each field says which processor may touch it.
pub struct Kernel {
    /// Slots of thread uids.
    pub thread_slots: Locked<Slots>,
    /// Numbers of tasks.
    pub task_slots: Locked<Slots>,
    task_pages: Locked<[Cell<Option<&'static TaskPage>>; param::TASK_MAX / TASKS_PER_PAGE]>,
    /// Tags of address spaces, for a processor that has them.
    pub tags: Home<Tags>,
    /// Ready queues and accounting.
    pub sched: Home<Scheduler>,
    /// Pending timeouts.
    pub wheel: Home<param::Timeouts>,
    /// Record of what traced threads did.
    pub trace: Home<Trace>,
    /// Interrupt lines.
    pub lines: Home<Lines>,
    /// Whether routes of messages that leave a clan are noted and used ([`crate::ipc::known_route`]).
    pub notes_routes: Shared<Cell<bool>>,
    /// Owner of the shuttle whose extended state the processor holds.
    pub loaded: Home<Cell<Option<ThreadRef>>>,
    /// Prediction domain of the thread that the processor is on.
    pub domain: Home<Cell<TaskId>>,
    /// A thread that ended itself; its block goes when another thread's stack is in use.
    pub zombie: Home<Cell<Option<ThreadRef>>>,
    /// Whether allocations may be made to fail, as the boot option `exhaust=` says.
    pub may_exhaust: Shared<Cell<bool>>,
    /// Frames kept for tables that belong to nobody (slots, task numbers, the array of control blocks).
    reserve: Locked<Cell<usize>>,
    upcalls: Shared<&'static Upcalls>,
    idle: Home<Cell<Option<ThreadRef>>>,
    /// Price of the uids of threads; see [`Kernel::pay_for_uid`].
    uid_price: Shared<Cell<UidPrice>>,
    /// The kernel's memory. Last: messages do not touch it, and its size moves nothing that they touch.
    pub pool: Locked<Pool>,
}

/// Price of uids where there are so many frames of kernel memory.
///
/// A thread holds a frame, and so many uids use up no more slots than they pay for. Hence threads that exist and slots that are
/// used up are together no more than the slots that there are, whoever has made how many.
fn uid_price(frames: u64) -> UidPrice {
    let per_frame = (GENERATIONS * SLOTS / frames).min(GENERATIONS * param::SLOTS_PER_FRAME_MAX);
    UidPrice { free: param::UIDS_FREE, per_frame }
}

/// Threads that a slot can have, one after the other.
const GENERATIONS: u64 = (1 << abi::uid::GENERATION_BITS) - 1;

/// Slots for threads, without those that go with the uids that cost nothing.
const SLOTS: u64 = param::TCB_MAX as u64 - 1 - (param::TASK_MAX as u64 * param::UIDS_FREE / GENERATIONS + 1);

const _: () = assert!(param::POOL_SHARE_MAX / abi::PAGE_SIZE <= SLOTS);

impl Kernel {
    /// A kernel over a pool, without any object yet.
    pub fn new(pool: Pool, upcalls: &'static Upcalls) -> Kernel {
        // One slot table and one page table for each 512 threads that the pool can hold, and the task tables.
        let reserve = pool.frames() / 256 + pool.frames() / 256 + 16;
        let uid_price = uid_price(pool.frames() as u64);
        Kernel {
            pool: Locked::new(pool),
            thread_slots: Locked::new(Slots::new(param::TCB_MAX as u32, GENERATIONS as u32)),
            task_slots: Locked::new(Slots::new(param::TASK_MAX as u32, u32::MAX)),
            task_pages: Locked::new([const { Cell::new(None) }; param::TASK_MAX / TASKS_PER_PAGE]),
            tags: Home::new(Tags::new()),
            sched: Home::new(Scheduler::new()),
            wheel: Home::new(param::Timeouts::new()),
            trace: Home::new(Trace::new()),
            lines: Home::new(Lines::new()),
            notes_routes: Shared::new(Cell::new(false)),
            loaded: Home::new(Cell::new(None)),
            domain: Home::new(Cell::new(TaskId::NIL)),
            zombie: Home::new(Cell::new(None)),
            may_exhaust: Shared::new(Cell::new(false)),
            reserve: Locked::new(Cell::new(reserve)),
            upcalls: Shared::new(upcalls),
            idle: Home::new(Cell::new(None)),
            uid_price: Shared::new(Cell::new(uid_price)),
        }
    }

    /// Charges a task for the uid of a thread that it is about to make: from time to time a frame, for good. `None` if it has none left;
    /// otherwise whether a frame was charged now.
    ///
    /// The frames of all tasks together pay for no more uids than there are (decision 0080). A frame that was charged joins the
    /// reserve, for the tables of the slots that take the place of those which are used up.
    pub fn pay_for_uid(&self, task: TaskRef) -> Option<bool> {
        if task.uids.get() != 0 {
            return Some(false);
        }
        if !task.wear(&self.pool, self.uid_price.get()) {
            return None;
        }
        self.reserve.set(self.reserve.get() + 1);
        Some(true)
    }

    /// Takes back what [`Kernel::pay_for_uid`] charged, if it did.
    pub fn take_back_pay(&self, task: TaskRef, has_paid: bool) {
        if has_paid {
            task.take_back_wear(self.uid_price.get());
            self.reserve.set(self.reserve.get() - 1);
        }
    }

    /// Lets a chief bear what a task that has ended used up of the uids.
    pub fn inherit_wear(&self, chief: TaskRef, child: TaskRef) {
        let charged = chief.inherit_wear(child, self.uid_price.get());
        self.reserve.set((self.reserve.get() as i64 + charged) as usize);
    }

    /// Makes uids scarce, for tests on the host: so many slots, of so many threads each.
    pub fn limit_uids(&self, slots: u32, generations: u32, price: UidPrice) {
        self.thread_slots.limit(slots, generations);
        self.uid_price.set(price);
    }

    /// Uids that a new task has for nothing.
    pub fn free_uids(&self) -> u64 {
        self.uid_price.get().free
    }

    /// Number of frames that tasks pay for uids that were used up; they joined the reserve.
    pub fn worn(&self) -> usize {
        self.tasks().map(|task| task.worn.get() as usize).sum()
    }

    /// Number of frames that the tasks together may use.
    pub fn quota_total(&self) -> u32 {
        (self.pool.free_frames() - self.reserve.get()) as u32
    }

    /// Number of frames that nobody pays for and that are not taken yet.
    pub fn reserve(&self) -> usize {
        self.reserve.get()
    }

    /// Takes a frame of zeroes that is charged to nobody.
    pub fn take_reserved(&self) -> Option<Frame> {
        if self.pool.denies_now() {
            return None;
        }
        self.reserve.set(self.reserve.get().checked_sub(1)?);
        self.pool.take_zeroed()
    }

    /// Tells ipc that the last identifier of a door but its maker's has gone.
    pub fn unreferenced(&self, door: &'static Node) {
        (self.upcalls.unreferenced)(self, door);
    }

    /// Tells ipc that a task has lost an interrupt line.
    #[cold]
    #[inline(never)]
    pub fn line_lost(&self, task: TaskRef, line: u8) {
        (self.upcalls.line_lost)(self, task, line);
    }

    /// The thread that runs when no other can.
    pub fn idle(&self) -> ThreadRef {
        self.idle.get().expect("set by boot")
    }

    /// Names the idle thread; once, by boot.
    pub fn set_idle(&self, idle: ThreadRef) {
        self.idle.set(Some(idle));
    }

    /// The thread with this uid.
    pub fn thread(&self, uid: Uid) -> Option<ThreadRef> {
        let thread = ThreadRef::in_slot(uid.slot())?;
        (thread.hot.uid.get() == uid.0 && !uid.is_nil()).then_some(thread)
    }

    fn task_cell(&self, number: u16) -> Option<&'static Cell<u64>> {
        let page = self.task_pages.get(number as usize / TASKS_PER_PAGE)?.get()?;
        Some(&page.0[number as usize % TASKS_PER_PAGE])
    }

    /// The task with this name.
    pub fn task(&self, id: TaskId) -> Option<TaskRef> {
        let frame = self.task_cell(id.number())?.get();
        if frame == 0 {
            return None;
        }
        Some(TaskRef::at(&self.pool, Frame(frame))).filter(|task| task.id.get() == id)
    }

    /// The frame of the task with this number; 0 if there is none.
    pub fn task_frame(&self, number: u16) -> Frame {
        Frame(self.task_cell(number).map_or(0, Cell::get))
    }

    /// All tasks.
    pub fn tasks(&self) -> impl Iterator<Item = TaskRef> {
        let frames = (1..self.task_slots.high_water()).map(|number| self.task_frame(number as u16));
        frames.filter(|frame| frame.0 != 0).map(|frame| TaskRef::at(&self.pool, frame))
    }

    /// Records where a task is, or with `None` that it is gone. False if there is no memory for the table.
    pub fn set_task(&self, number: u16, frame: Option<Frame>) -> bool {
        let page = &self.task_pages[number as usize / TASKS_PER_PAGE];
        if page.get().is_none() {
            let Some(frame) = self.take_reserved() else { return false };
            page.set(Some(self.pool.at::<TaskPage>(frame)));
        }
        self.task_cell(number).expect("just made").set(frame.map_or(0, |frame| frame.0));
        true
    }
}
