//! Scheduling: the choice of the thread that runs next (rows P9, P10, D6).
//!
//! Shuttles are scheduled, threads run. There are 64 first-in-first-out queues, one for each priority; a queue
//! holds the shuttles whose carriers could run, **except the one that runs**. That exception is lazy scheduling:
//! the running shuttle passes from thread to thread by ipc, threads block and wake along its way, and no queue is
//! touched until the processor changes shuttles (end of slice, interrupt, block without a partner).
//!
//! Time is charged in the same way: to a shuttle, when the processor leaves it.

pub mod queues;
pub mod timer;

use crate::arch;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{Frame, special};
use crate::processor::{self, extended};
use queues::Scheduler;

/// Hint of a handler: the thread that should run next.
#[must_use]
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Next {
    /// The current thread goes on, unless somebody more urgent is ready.
    Same,
    /// This thread, which is ready and in no queue, goes on in the current one's place.
    To(ThreadRef),
    /// The current thread cannot go on, or is in a queue.
    Any,
}

impl Kernel {
    /// The priority at which `thread` runs now: the effective one of the shuttle that it is on.
    #[inline]
    pub fn priority(&self, thread: ThreadRef) -> u8 {
        self.shuttle_of(thread).home.effective.get()
    }

    #[inline(never)]
    fn enqueue(&self, thread: ThreadRef, front: bool) {
        if thread.is_stopped() || thread == self.idle() {
            return;
        }
        let owner = self.shuttle_of(thread);
        owner.home.carrier.set(Some(thread));
        if owner.home.link.is_linked() {
            return;
        }
        self.insert(owner, front);
    }

    /// Puts a shuttle that is in no queue into its own.
    #[inline(always)]
    fn insert(&self, owner: ThreadRef, front: bool) {
        let priority = owner.home.effective.get() as usize;
        let queue = &self.sched.queues[priority];
        if front {
            queue.push_front(owner)
        } else {
            queue.push_back(owner)
        }
        self.sched.set_occupied(priority);
        self.sched.count();
    }

    /// Puts a thread that is ready behind all others of its priority, unless it is stopped.
    pub fn wake(&self, thread: ThreadRef) {
        self.enqueue(thread, false);
    }

    /// Takes the home shuttle of `owner` out of its queue, if it is in one. Returns its carrier.
    pub fn unqueue(&self, owner: ThreadRef) -> Option<ThreadRef> {
        if !owner.home.link.is_linked() {
            return None;
        }
        let priority = owner.home.effective.get() as usize;
        self.sched.queues[priority].remove(owner);
        self.sched.removed(priority);
        owner.home.carrier.get()
    }

    /// Takes a thread out of the queue in which it waits to run. False if it is in none.
    pub fn unqueue_thread(&self, thread: ThreadRef) -> bool {
        let owner = self.owner(thread.hot.shuttle.get()).filter(|owner| {
            thread.is_ready() && owner.home.link.is_linked() && owner.home.carrier.get() == Some(thread)
        });
        owner.is_some_and(|owner| self.unqueue(owner).is_some())
    }

    /// Decides which thread runs, charges time, and returns the thread to leave the kernel with.
    ///
    /// Ipc mostly stays on the shuttle that runs, and then nothing is to be decided unless a more urgent thread is ready.
    #[inline(always)]
    pub fn dispatch(&self, next: Next) -> ThreadRef {
        match self.dispatch_plainly(next) {
            Some(thread) => thread,
            None => self.dispatch_anew(next),
        }
    }

    /// Dispatches where nothing is to be decided and nothing but the address space to be switched. Elsewhere it does nothing and returns
    /// `None`. It is part of each exit from the kernel, and calls nothing, so that it costs the exits no registers.
    #[inline(always)]
    fn dispatch_plainly(&self, next: Next) -> Option<ThreadRef> {
        let current = processor::current();
        let thread = match next {
            Next::Same => current,
            Next::To(thread) => thread,
            Next::Any => return None,
        };
        if !self.stays(thread) {
            return None;
        }
        if thread != current {
            // If both are ready, or either has more than an address space, a closer look is needed.
            if current.is_ready() || (current.special.get() | thread.special.get()) & special::SWITCHED != 0 {
                return None;
            }
            processor::switch_space(current, thread);
        }
        Some(thread)
    }

    /// Whether `thread` holds the shuttle that the processor is on.
    #[inline(always)]
    fn holds_running(&self, thread: ThreadRef) -> bool {
        thread.hot.shuttle.get() == self.sched.running.get()
    }

    /// Whether `thread` may run now on the shuttle that the processor is on: it holds it, and no more urgent one is ready.
    #[inline(always)]
    fn stays(&self, thread: ThreadRef) -> bool {
        self.holds_running(thread) && self.sched.occupied.get() <= self.sched.running_limit.get()
    }

    /// Lets the next thread take away one that ended itself, which is still there since the processor is on its stack.
    fn after_end(&self, next: ThreadRef) -> ThreadRef {
        if self.zombie.get().is_some() {
            self.set_busy(next);
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn dispatch_anew(&self, next: Next) -> ThreadRef {
        let current = processor::current();
        if self.sched.unsettled.get().is_some() {
            self.settle();
        }
        let thread = match next {
            Next::Same if !self.sched.has_above(self.priority(current)) => current,
            Next::Same => {
                self.enqueue(current, true);
                self.best()
            }
            Next::To(thread) => {
                if current != thread && current.is_ready() {
                    self.enqueue(current, true);
                }
                if self.sched.has_above(self.priority(thread)) {
                    self.enqueue(thread, true);
                    self.best()
                } else {
                    thread
                }
            }
            Next::Any => self.after_end(self.best()),
        };
        if thread.hot.shuttle.get() != self.sched.running.get() {
            self.change_shuttle(thread);
        }
        if thread != current {
            processor::switch(self, current, thread);
        }
        if self.sched.unsettled.get().is_some() { self.settle_soon(thread) } else { thread }
    }

    /// Goes on with the computation of effective priorities as soon as an interrupt comes, and at each exit from the kernel until then; unless
    /// none of them can be as urgent as the thread that runs, which does not pay for the others.
    #[cold]
    #[inline(never)]
    fn settle_soon(&self, next: ThreadRef) -> ThreadRef {
        if self.sched.unsettled_most.get() >= self.priority(next) {
            self.look_anew();
            self.arm(arch::now_ns());
        }
        next
    }

    /// Makes the next dispatch look at everything anew.
    #[inline(never)]
    pub(crate) fn look_anew(&self) {
        let _ = self.charge(arch::now_ns());
        self.sched.running.set(ShuttleRef(0));
    }

    /// Dispatches after an interrupt made `thread` ready, which is in no queue: if it is more urgent than the
    /// current one, the shuttle that runs goes to the front of its queue.
    #[inline(always)]
    pub fn preempt(&self, thread: ThreadRef) -> ThreadRef {
        let current = processor::current();
        let owner = self.shuttle_of(thread);
        let priority = owner.home.effective.get();
        let limit = Scheduler::limit(priority);
        let most_urgent = limit > self.sched.running_limit.get() && self.sched.occupied.get() <= limit;
        let plain = self.holds_running(current) && current.is_ready() && !thread.is_stopped();
        if !(most_urgent && plain) {
            self.wake(thread);
            return self.dispatch_anew(if current.is_ready() { Next::Same } else { Next::Any });
        }
        let now = arch::now_ns();
        if let Some(left) = self.charge(now)
            && current != self.idle()
        {
            left.home.carrier.set(Some(current));
            self.insert(left, true);
        }
        self.start_slice(thread, owner, now);
        processor::switch(self, current, thread);
        thread
    }

    fn best(&self) -> ThreadRef {
        self.sched.take_best().unwrap_or(self.idle())
    }

    /// Charges the shuttle that the processor leaves, and starts the slice of the one it goes to.
    fn change_shuttle(&self, thread: ThreadRef) {
        let now = arch::now_ns();
        let _ = self.charge(now);
        let owner = self.shuttle_of(thread);
        self.start_slice(thread, owner, now);
    }

    /// Moves the processor to the shuttle of `owner`, which `thread` holds, with its extended state, and arms the timer for its slice.
    #[inline(always)]
    fn start_slice(&self, thread: ThreadRef, owner: ThreadRef, now: u64) {
        let current = processor::current();
        self.sched.running.set(thread.hot.shuttle.get());
        if thread == self.idle() {
            // The idle thread has no priority: a shuttle of the lowest one is above it, too.
            self.sched.running_limit.set(0);
            extended::rest(self, current);
            self.arm(u64::MAX);
            return;
        }
        self.sched.running_limit.set(Scheduler::limit(owner.home.effective.get()));
        extended::bring(self, current, owner);
        if owner.home.left_ns.get() == 0 {
            owner.home.left_ns.set(owner.home.slice_ns.get());
        }
        self.arm(now + owner.home.left_ns.get());
    }

    /// Charges the time since the last charge to the shuttle that the processor is on. Returns its owner, if there still is
    /// one.
    #[inline]
    pub fn charge(&self, now: u64) -> Option<ThreadRef> {
        let (owner, used) = self.uncharged(now);
        self.sched.since_ns.set(now);
        let owner = owner?;
        owner.home.time_ns.set(owner.home.time_ns.get() + used);
        owner.home.left_ns.set(owner.home.left_ns.get().saturating_sub(used));
        Some(owner)
    }

    /// Owner of the shuttle that the processor is on, if there still is one, and the time since the last charge.
    #[inline]
    pub fn uncharged(&self, now: u64) -> (Option<ThreadRef>, u64) {
        let running = self.sched.running.get();
        let owner = ThreadRef::in_slot(running.slot())
            .filter(|owner| running.slot() != 0 && owner.home_ref().same_owner(running));
        (owner, now - self.sched.since_ns.get())
    }

    /// Charges the shuttle of `owner`, which is about to change: if the processor is on it, the next dispatch looks at it anew.
    pub fn stop_counting(&self, owner: ThreadRef) {
        if self.sched.running.get().same_owner(owner.home_ref()) {
            self.look_anew();
        }
    }

    /// Makes sure that the timer fires at `slice_end` and at the next timeout, or earlier.
    pub fn arm(&self, slice_end: u64) {
        self.arm_at(self.wheel.not_before_ns().min(slice_end));
    }

    #[inline]
    fn arm_at(&self, deadline: u64) {
        if deadline < self.sched.armed_ns.get() {
            self.sched.armed_ns.set(deadline);
            arch::arm_timer(deadline);
        }
    }

    /// Puts the current thread behind the others of its priority, with a new slice.
    pub fn yield_now(&self, current: ThreadRef) -> Next {
        let owner = self.shuttle_of(current);
        // The slice starts anew even if the same shuttle is the best again.
        self.stop_counting(owner);
        owner.home.left_ns.set(0);
        self.enqueue(current, false);
        Next::Any
    }

    /// Marks a thread's frame so that it continues its operation before it leaves the kernel.
    pub fn set_busy(&self, thread: ThreadRef) {
        thread.frame.mode.set(thread.frame.mode.get() | Frame::BUSY);
    }
}
