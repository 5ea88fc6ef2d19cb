//! The ready queues and the clock of a processor: the scheduler's state, without any decision.

use crate::object::ThreadRef;
use crate::object::shuttle::{Ready, ShuttleRef};
use crate::util::list::List;
use abi::call::PRIORITIES;
use core::cell::Cell;

/// One CPU's queues and clock.
pub struct Scheduler {
    pub(crate) queues: [List<Ready>; PRIORITIES],
    pub(crate) occupied: Cell<u64>,
    /// The shuttle that the processor is on since `since_ns`.
    pub(crate) running: Cell<ShuttleRef>,
    /// Bound of `occupied`: as long as that is not greater, no shuttle above the priority of the running one is ready; 0 while
    /// the processor idles.
    pub(super) running_limit: Cell<u64>,
    pub(super) since_ns: Cell<u64>,
    /// Time at which the timer fires; `u64::MAX` if it does not.
    pub(super) armed_ns: Cell<u64>,
    /// The first thread whose home shuttle's effective priority is to be computed anew; see [`inherit`](crate::inherit).
    pub(crate) unsettled: Cell<Option<ThreadRef>>,
    /// The first of them whose home shuttle is to have its own priority first.
    pub(crate) sinking: Cell<Option<ThreadRef>>,
    /// Highest priority that one of these shuttles has or may get; 0 if there is none.
    pub(crate) unsettled_most: Cell<u8>,
    /// Insertions into and removals from the queues, for the ratio that the paper shows.
    pub queue_updates: Cell<u64>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler::new()
    }
}

impl Scheduler {
    /// Empty queues.
    pub const fn new() -> Scheduler {
        Scheduler {
            queues: [const { List::new() }; PRIORITIES],
            occupied: Cell::new(0),
            running: Cell::new(ShuttleRef(0)),
            running_limit: Cell::new(0),
            since_ns: Cell::new(0),
            armed_ns: Cell::new(u64::MAX),
            unsettled: Cell::new(None),
            sinking: Cell::new(None),
            unsettled_most: Cell::new(0),
            queue_updates: Cell::new(0),
        }
    }

    pub(super) fn count(&self) {
        self.queue_updates.set(self.queue_updates.get() + 1);
    }

    /// Whether a shuttle above `priority` is ready.
    pub(super) fn has_above(&self, priority: u8) -> bool {
        self.occupied.get() > Scheduler::limit(priority)
    }

    /// The bits of `priority` and those below it.
    pub(super) fn limit(priority: u8) -> u64 {
        u64::MAX >> (63 - priority)
    }

    pub(super) fn set_occupied(&self, priority: usize) {
        self.occupied.set(self.occupied.get() | 1 << priority);
    }

    pub(super) fn take_best(&self) -> Option<ThreadRef> {
        let best = 63u32.checked_sub(self.occupied.get().leading_zeros())? as usize;
        let owner = self.queues[best].pop_front()?;
        self.removed(best);
        owner.home.carrier.get()
    }

    pub(super) fn removed(&self, priority: usize) {
        self.count();
        if self.queues[priority].is_empty() {
            self.occupied.set(self.occupied.get() & !(1 << priority));
        }
    }
}
