//! Inheritance: a shuttle is scheduled at the priority of the most urgent thread that it has to serve (row D6, decision 0081).
//!
//! A thread that works for others should be as urgent as the most urgent of those that wait for it. They wait in its queue, or, if it serves
//! doors, in the queue of its task. What they wait for may wait itself:
//!
//! * **Along a chain of calls** one shuttle carries all threads, from its owner, which called the first, to the one that works. So a queue at
//!   any of them counts for that shuttle.
//! * **From shuttle to shuttle.** Whoever stands in a queue stands there at the effective priority of the shuttle that it holds. If that
//!   changes, it changes its place, and the next shuttle follows.
//! * **Past a cut.** When a shuttle was taken away from a chain, a caller in it is on no shuttle and waits. Its own one, at home, stands for it
//!   among the [callers that are cut off](crate::object::thread::Inherited::cut_off) of the thread that it called.
//!
//! **The effective priority of a shuttle is the greatest of** its own priority, what waits for its owner, and what waits for each thread
//! that is on the shuttle in the chain below the owner ([`Kernel::inherited`]). What waits for a thread is the most urgent of its queue and of
//! its callers that are cut off; for the first servers of a task that of the task's callers, in place of its queue.
//!
//! The value is stored beside the priority, and the queues of the scheduler go by it. Whatever may change it *unsettles* the shuttle, in a few
//! instructions; the next dispatch computes it anew, and goes on to the shuttle that depends on it, within a budget.
//!
//! **No ring supports itself.** Shuttles may depend on each other in a ring: a server that waits for a caller of its own task does, and all other
//! servers of the task with it. So a shuttle that waits and may have lost what it inherits *sinks* to its own priority first, and so do those
//! that have the priority from it; only then are all of them computed anew, from what is left ([`Kernel::settle`]).
//!
//! **The fast path changes nothing of this.** It answers for no thread for which anybody waits, and calls none: such a thread has no key
//! that it can show, is not open, and is no idle server that the path finds ([`special::CUT_OFF`], [`Tcb::refold`], [`Servers::WANTED`]). Such a
//! thread may call; but then the shuttle carries both.
//!
//! [`Tcb::refold`]: crate::object::thread::Tcb::refold
//! [`Servers::WANTED`]: crate::object::door::Servers::WANTED

use crate::kernel::Kernel;
use crate::lend::word::Stake;
use crate::object::ThreadRef;
use crate::object::door::{Servers, thread_at};
use crate::object::queue::Queue;
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{State, Wait, special};
use crate::param;

/// Change of what waits for a thread.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    /// Priority of the most urgent, before and after.
    before: u8,
    after: u8,
    /// Whether one of that priority has gone, or fallen. Another one that has it may have it from this queue.
    has_left: bool,
}

impl Change {
    /// Change of a queue in which nobody was looked at before.
    fn to(after: u8) -> Change {
        Change { before: 0, after, has_left: false }
    }

    /// Whether nothing follows from it.
    fn is_none(self) -> bool {
        self.before == self.after && !self.has_left
    }
}

impl Kernel {
    /// The thread whose home shuttle `word` names, by whatever epoch.
    fn named_by(&self, word: ShuttleRef) -> Option<ThreadRef> {
        ThreadRef::in_slot(word.slot()).filter(|owner| word.slot() != 0 && owner.home_ref().same_owner(word))
    }

    /// The thread below `thread` in the chain that the shuttle of `owner` carries.
    fn below(&self, owner: ThreadRef, thread: ThreadRef) -> Option<ThreadRef> {
        let is_on = |it: ThreadRef| it.hot.shuttle.get().same_owner(owner.home_ref());
        match thread.stake() {
            Stake::Claims(to) if is_on(thread) => self.thread(to).filter(|&below| is_on(below)),
            _ => None,
        }
    }

    /// Priority of the most urgent that stands in the queue of a thread, or is cut off from it. A server of doors takes nothing from its queue.
    fn waits_for(thread: ThreadRef) -> u8 {
        Self::waits_by(thread, Queue::urgency)
    }

    fn waits_by(thread: ThreadRef, urgency: impl Fn(&Queue) -> u8) -> u8 {
        let queue = if thread.server.pool.get().is_none() { urgency(&thread.senders) } else { 0 };
        queue.max(urgency(&thread.inherited.cut_off))
    }

    /// Priority of the most urgent caller that waits for a server of doors, if this is one that inherits it, or is to make one.
    fn callers_of(server: ThreadRef) -> u8 {
        Self::callers_by(server, Queue::urgency)
    }

    fn callers_by(server: ThreadRef, urgency: impl Fn(&Queue) -> u8) -> u8 {
        let servers = &server.task().state().doors.servers;
        let urgency = urgency(&servers.callers);
        let is_server = || server.server.pool.get().is_some() && servers.helped().any(|it| it == server);
        if urgency != 0 && (servers.maker.get() == Some(server) || is_server()) { urgency } else { 0 }
    }

    /// Whether a caller waits for the return from its call of a door, by this server; or takes what that returns, in steps.
    fn is_served_by(caller: ThreadRef, server: ThreadRef) -> bool {
        let takes = || {
            let is_taking = caller.state.get() == State::Taking && caller.partner.get() == server.uid();
            is_taking && caller.stake() == Stake::Claims(server.uid()) && server.frame.op().is_door_return()
        };
        match caller.wait() {
            Wait::Return(of) => of == server.uid(),
            Wait::No => takes(),
            _ => false,
        }
    }

    /// The caller of a door for whom a server works.
    fn served_by(server: ThreadRef) -> Option<ThreadRef> {
        thread_at(server.server.caller.get()).filter(|&caller| Self::is_served_by(caller, server))
    }

    /// Computes the effective priority of the home shuttle of `owner`, from the definition. With the number of threads looked at.
    pub(crate) fn inherited(&self, owner: ThreadRef) -> (u8, u32) {
        self.inherited_by(owner, Queue::urgency)
    }

    /// Computes it with another notion of the most urgent that stands in a queue; for tests on the host.
    #[inline(always)]
    pub fn inherited_by(&self, owner: ThreadRef, urgency: impl Fn(&Queue) -> u8 + Copy) -> (u8, u32) {
        let mut most = owner
            .home
            .priority
            .get()
            .max(Self::waits_by(owner, urgency))
            .max(Self::callers_by(owner, urgency));
        let (mut thread, mut looked) = (owner, 1);
        for _ in 0..param::INHERIT_CHAIN {
            if let Stake::Claims(to) = thread.stake()
                && let Some(server) = self.thread(to)
                && thread.hot.shuttle.get().same_owner(owner.home_ref())
                && Self::is_served_by(thread, server)
            {
                most = most.max(Self::callers_by(server, urgency));
                looked += param::INHERIT_SERVERS as u32 / 2;
            }
            let Some(below) = self.below(owner, thread) else { break };
            most = most.max(Self::waits_by(below, urgency));
            looked += 1;
            thread = below;
        }
        (most, looked)
    }

    /// Whether a caller that is on another's shuttle, by its word, is not in the chain which that carries.
    pub(crate) fn is_cut_off(&self, caller: ThreadRef) -> bool {
        self.may_be_cut_off(caller) == Some(true)
    }

    /// Whether it is; `None` if the shuttle has got a chain since that is too long to know.
    pub(crate) fn may_be_cut_off(&self, caller: ThreadRef) -> Option<bool> {
        let word = caller.hot.shuttle.get();
        if word.same_owner(caller.home_ref()) {
            return Some(false);
        }
        let Some(owner) = self.named_by(word) else { return Some(true) };
        self.is_in_chain(owner, caller).map(|is_in_it| !is_in_it)
    }

    /// Owner of the shuttle that a caller claims by a word of whatever epoch, if it still is in the chain which that carries: the chain was
    /// cut below.
    pub(crate) fn still_carried_by(&self, caller: ThreadRef) -> Option<ThreadRef> {
        self.named_by(caller.hot.shuttle.get()).filter(|&owner| self.is_carried(owner, caller))
    }

    /// Whether a thread is known to be in the chain that the shuttle of `owner` carries.
    pub(crate) fn is_carried(&self, owner: ThreadRef, thread: ThreadRef) -> bool {
        self.is_in_chain(owner, thread) == Some(true)
    }

    /// Whether a thread is in the chain that the shuttle of `owner` carries; `None` if that is too long to know.
    fn is_in_chain(&self, owner: ThreadRef, thread: ThreadRef) -> Option<bool> {
        let mut above = owner;
        for _ in 0..param::INHERIT_CHAIN {
            match self.below(owner, above) {
                Some(below) if below == thread => return Some(true),
                Some(below) => above = below,
                None => return Some(false),
            }
        }
        None
    }

    /// Notes that the effective priority of the home shuttle of `owner` is to be computed anew.
    #[inline(never)]
    pub(crate) fn unsettle(&self, owner: ThreadRef) {
        self.expect(owner.home.effective.get());
        if owner.uid().is_nil() || owner.home.unsettled.replace(true) {
            return;
        }
        owner.inherited.next.set(self.sched.unsettled.replace(Some(owner)));
        self.look_anew();
    }

    /// Notes that a shuttle whose effective priority is to be computed anew has this one, or may get it.
    fn expect(&self, priority: u8) {
        let most = &self.sched.unsettled_most;
        most.set(most.get().max(priority));
    }

    /// Notes that the home shuttle of `owner` may have lost what it inherits.
    pub(crate) fn reconsider(&self, owner: ThreadRef) {
        self.unsettle(owner);
        let is_in_ring = owner.inherited.waiter.get().is_some();
        let inherits = owner.home.effective.get() > owner.home.priority.get();
        if is_in_ring && inherits && owner.home.unsettled.get() && !owner.home.sinks.replace(true) {
            owner.inherited.next_to_sink.set(self.sched.sinking.replace(Some(owner)));
        }
    }

    /// Notes a change for a shuttle: the most urgent of those who wait for a thread on it.
    fn follow(&self, owner: ThreadRef, Change { before, after, has_left }: Change) {
        let (priority, effective) = (owner.home.priority.get(), owner.home.effective.get());
        let loses = after < before || has_left && owner.inherited.waiter.get().is_some();
        if after > effective {
            self.expect(after);
            self.unsettle(owner);
        } else if before == effective && priority < before && loses {
            self.expect(after);
            self.reconsider(owner);
        }
    }

    /// Notes a change of what waits for a thread, for its own shuttle and the one that it is on.
    fn unsettle_waited(&self, thread: ThreadRef, change: Change) {
        if !change.is_none() {
            self.follow(thread, change);
            self.named_by(thread.hot.shuttle.get()).into_iter().for_each(|owner| self.follow(owner, change));
        }
    }

    /// Notes a change of the callers that wait for a server of a task.
    pub(crate) fn unsettle_servers(&self, servers: &Servers, change: Change) {
        if change.is_none() {
            return;
        }
        servers.maker.get().into_iter().for_each(|maker| self.follow(maker, change));
        for server in servers.helped() {
            self.follow(server, change);
            let caller = Self::served_by(server);
            let owner = caller.and_then(|caller| self.named_by(caller.hot.shuttle.get()));
            owner.into_iter().for_each(|owner| self.follow(owner, change));
        }
    }

    /// Notes that a thread has become a server of its task, or is one no more.
    #[cold]
    pub(crate) fn unsettle_server(&self, servers: &Servers, server: ThreadRef) {
        self.reconsider(server);
        self.shrinks(server.hot.shuttle.get());
        // Another one may be among the first now.
        self.unsettle_servers(servers, Change::to(servers.callers.urgency()));
    }

    /// Notes that a thread is to make a server of its task, for which callers wait.
    #[cold]
    pub(crate) fn begins_to_make(&self, servers: &Servers, maker: ThreadRef) {
        // Another one, which was told before, makes none for them any more.
        self.ends_to_make(servers);
        servers.maker.set(Some(maker));
        self.follow(maker, Change::to(servers.callers.urgency()));
    }

    /// Notes that nobody is to make a server of a task any more.
    pub(crate) fn ends_to_make(&self, servers: &Servers) {
        servers.maker.take().into_iter().for_each(|maker| self.reconsider(maker));
    }

    /// Notes that the call which a server works for is about to end.
    #[inline(always)]
    pub(crate) fn ends_service(&self, server: ThreadRef) {
        if server.server.pool.get().is_some() {
            self.ends_call(server);
        }
    }

    /// Does so for a thread that is a server.
    #[inline(always)]
    pub(crate) fn ends_call(&self, server: ThreadRef) {
        if !server.task().state().doors.servers.callers.is_empty() {
            self.ends_awaited_service(server);
        }
    }

    #[cold]
    fn ends_awaited_service(&self, server: ThreadRef) {
        Self::served_by(server).into_iter().for_each(|caller| self.shrinks(caller.hot.shuttle.get()));
    }

    /// Notes that a server has begun to work for a caller.
    #[inline(always)]
    pub(crate) fn begins_service(&self, server: ThreadRef) {
        if !server.task().state().doors.servers.callers.is_empty() {
            self.unsettle_waited(server, Change::to(Self::callers_of(server)));
        }
    }

    /// Notes that a thread for which somebody waits is about to leave the shuttle that it is on.
    #[cold]
    #[inline(never)]
    pub(crate) fn leaves(&self, thread: ThreadRef) {
        if Self::waits_for(thread) != 0 {
            self.shrinks(thread.hot.shuttle.get());
        }
    }

    /// Notes that a thread for which somebody waits has come to the shuttle that it is on.
    #[cold]
    #[inline(never)]
    pub(crate) fn comes(&self, thread: ThreadRef) {
        self.unsettle_waited(thread, Change::to(Self::waits_for(thread)));
    }

    /// Notes that the chain which a shuttle carries loses threads.
    pub(crate) fn shrinks(&self, shuttle: ShuttleRef) {
        let owner = self.named_by(shuttle);
        if let Some(owner) = owner.filter(|it| it.home.effective.get() > it.home.priority.get()) {
            self.reconsider(owner);
        }
    }

    /// Lets a thread stand in a queue, on the shuttle that it holds. Returns how the queue has changed.
    pub(crate) fn stand(&self, waiter: ThreadRef, queue: &Queue) -> Change {
        let owner = self.shuttle_of(waiter);
        self.set_waiter(owner, waiter);
        let before = queue.urgency();
        queue.insert(waiter, owner.home.effective.get());
        Change { before, after: queue.urgency(), has_left: false }
    }

    /// From now on `waiter` stands for the home shuttle of `owner`. So others may have its priority, which it may have lost already.
    fn set_waiter(&self, owner: ThreadRef, waiter: ThreadRef) {
        owner.inherited.waiter.set(Some(waiter));
        if owner.home.unsettled.get() {
            self.reconsider(owner);
        }
    }

    /// Takes a thread out of a queue. Returns how the queue has changed.
    pub(crate) fn step_out(&self, waiter: ThreadRef, queue: &Queue) -> Change {
        self.shuttle_of(waiter).inherited.waiter.set(None);
        Self::leave_queue(waiter, queue)
    }

    fn leave_queue(waiter: ThreadRef, queue: &Queue) -> Change {
        let before = queue.urgency();
        queue.remove(waiter);
        Change { before, after: queue.urgency(), has_left: waiter.home.stands_at.get() == before }
    }

    /// Lets a thread stand in the queue of another one.
    pub(crate) fn stand_before(&self, waiter: ThreadRef, thread: ThreadRef) {
        let change = self.stand(waiter, &thread.senders);
        self.unsettle_waited(thread, change);
    }

    /// Takes a thread out of the queue of another one.
    pub(crate) fn step_back(&self, waiter: ThreadRef, thread: ThreadRef) {
        let change = self.step_out(waiter, &thread.senders);
        self.unsettle_waited(thread, change);
    }

    /// Computes effective priorities anew, within a budget.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle(&self) {
        let mut work = 0;
        while work < param::SETTLE_WORK {
            work += param::SETTLE_LOOK;
            // All sink before any rises: what is left then has its priority from elsewhere.
            if let Some(thread) = self.sched.sinking.get() {
                self.sched.sinking.set(thread.inherited.next_to_sink.take());
                thread.home.sinks.set(false);
                work += self.sink(thread);
            } else if let Some(thread) = self.sched.unsettled.get() {
                self.sched.unsettled.set(thread.inherited.next.take());
                thread.home.unsettled.set(false);
                if !thread.uid().is_nil() {
                    work += self.settle_claim(thread) + self.settle_shuttle(thread);
                }
            } else {
                break;
            }
        }
        if self.sched.unsettled.get().is_none() {
            self.sched.unsettled_most.set(0);
        }
    }

    /// Whether no effective priority is to be computed anew.
    pub fn is_settled(&self) -> bool {
        self.sched.unsettled.get().is_none()
    }

    /// Computes all effective priorities that are to be computed anew, in one step; for tests on the host.
    pub fn settle_all(&self) {
        while self.sched.unsettled.get().is_some() {
            self.settle();
        }
    }

    /// Computes the effective priority of one shuttle anew. Returns how much work that was.
    pub(crate) fn settle_shuttle(&self, owner: ThreadRef) -> u32 {
        let (effective, looked) = self.inherited(owner);
        looked + self.set_effective(owner, effective)
    }

    /// Gives a shuttle that waits its own priority. Returns how much work that was.
    fn sink(&self, owner: ThreadRef) -> u32 {
        let waits = owner.inherited.waiter.get().is_some();
        if waits { self.set_effective(owner, owner.home.priority.get()) } else { 0 }
    }

    /// Returns how much work that was.
    fn set_effective(&self, owner: ThreadRef, effective: u8) -> u32 {
        if effective == owner.home.effective.get() {
            return 0;
        }
        let carrier = self.unqueue(owner);
        self.stop_counting(owner);
        owner.home.effective.set(effective);
        if let Some(carrier) = carrier {
            self.wake(carrier);
        }
        let waiter = owner.inherited.waiter.get();
        param::SETTLE_LINK + waiter.map_or(0, |waiter| self.move_waiter(waiter, effective))
    }

    /// Moves a thread that stands in a queue to another priority. Returns how much work that was.
    fn move_waiter(&self, waiter: ThreadRef, priority: u8) -> u32 {
        // A waiter that stands at this priority already keeps its place.
        if waiter.home.stands_at.get() == priority {
            return 0;
        }
        let falls = priority < waiter.home.stands_at.get();
        let shift = |queue: &Queue| {
            let Change { before, has_left, .. } = Self::leave_queue(waiter, queue);
            let work = queue.insert(waiter, priority);
            (work, Change { before, after: queue.urgency(), has_left: has_left && falls })
        };
        if waiter.is_queued() && waiter.state.get() == State::Queueing {
            let task = waiter.queueing_at.get().expect("it waits somewhere");
            let (work, change) = shift(&task.doors.servers.callers);
            self.unsettle_servers(&task.doors.servers, change);
            return work + 3 * param::INHERIT_SERVERS as u32;
        }
        let (name, queued) = match waiter.stake() {
            Stake::Claims(to) => (to, false),
            _ => (waiter.partner.get(), true),
        };
        let thread = ThreadRef::named(name).expect("a queue ends before its thread does");
        let (work, change) = shift(if queued { &thread.senders } else { &thread.inherited.cut_off });
        self.unsettle_waited(thread, change);
        work
    }

    /// Lets a caller that is cut off stand among those of the thread that it called, if it does not yet. The next one of the chain may be cut off, too.
    /// Returns how much work that was.
    fn settle_claim(&self, caller: ThreadRef) -> u32 {
        let Stake::Claims(to) = caller.stake() else { return 0 };
        if caller.sender_link.is_linked() {
            return 0;
        }
        let work = param::INHERIT_CHAIN as u32;
        let Some(called) = self.thread(to).filter(|_| self.is_cut_off(caller)) else { return work };
        if called.inherited.cut_off.is_empty() {
            called.set_special(special::CUT_OFF, 0);
        }
        self.set_waiter(caller, caller);
        let before = called.inherited.cut_off.urgency();
        let looked = called.inherited.cut_off.insert(caller, caller.home.effective.get());
        let after = called.inherited.cut_off.urgency();
        self.unsettle_waited(called, Change { before, after, has_left: false });
        self.expect(called.inherited.cut_off.urgency());
        self.unsettle(called);
        work + looked
    }

    /// Takes a caller whose claim is about to end out of those that are cut off from `called`, if it is there.
    pub(crate) fn end_claim(&self, caller: ThreadRef, called: ThreadRef) {
        if !caller.sender_link.is_linked() {
            return;
        }
        caller.inherited.waiter.set(None);
        let cut_off = &called.inherited.cut_off;
        self.unsettle_waited(called, Self::leave_queue(caller, cut_off));
        if cut_off.is_empty() {
            called.set_special(0, special::CUT_OFF);
        }
    }

    /// Does so for a caller of whom it is known whom it called.
    pub(crate) fn end_claim_from(&self, caller: ThreadRef, called: abi::Uid) {
        if let Some(called) = ThreadRef::named(called).filter(|_| caller.sender_link.is_linked()) {
            self.end_claim(caller, called);
        }
    }

    /// Forgets, some in each step, the callers that are cut off from a thread which ends. True if nothing of it has to do with inheritance
    /// any more.
    pub(crate) fn end_inheritance(&self, thread: ThreadRef) -> bool {
        for _ in 0..param::PREEMPTION_CUT_OFF {
            let Some(caller) = thread.inherited.cut_off.first() else { break };
            self.end_claim(caller, thread);
        }
        if thread.home.unsettled.get() {
            // The dispatch behind this step computes some, even if none of them is as urgent as the thread that takes these steps.
            self.look_anew();
            return false;
        }
        thread.inherited.cut_off.is_empty()
    }

    /// Follows a shuttle that was taken from whoever was on it: `lent` is the thread to which the taker had lent it.
    pub(crate) fn follow_cut(&self, owner: ThreadRef, taker: ThreadRef, lent: abi::Uid) {
        self.shrinks(owner.home_ref());
        if let Some(waiter) =
            owner.inherited.waiter.get().filter(|&waiter| waiter != owner && waiter != taker)
        {
            owner.inherited.waiter.set(None);
            self.lose_shuttle(waiter);
            waiter.inherited.waiter.set(Some(waiter));
            self.move_waiter(waiter, waiter.home.effective.get());
            // It may have that by way of the shuttle which is gone from here.
            self.reconsider(waiter);
        }
        if let Some(called) = self.thread(lent).filter(|it| matches!(it.stake(), Stake::Claims(_))) {
            self.unsettle(called);
        }
    }
}
