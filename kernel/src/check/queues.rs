//! Checks of the current thread, of the holders of shuttles, and of the members of queues.
//!
//! A control block says in which lists it is. The blocks that say so are counted, and so are the members of the lists: the numbers must be
//! equal. A list is walked no further than there are control blocks, so that a ring fails an assertion and does not hang the kernel.

use super::{members, present};
use crate::kernel::Kernel;
use crate::lend::word::Stake;
use crate::object::ThreadRef;
use crate::object::door::{hot_address, thread_at};
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{NEVER, State, Wait};
use crate::param::INHERIT_CHAIN;
use crate::processor;

/// Numbers of threads that say of themselves that they are in a list, by kind of list.
#[derive(Default, PartialEq, Eq, Debug)]
struct Linked {
    ready: usize,
    sending: usize,
    queueing: usize,
    cut_off: usize,
    timeouts: usize,
}

impl Kernel {
    /// All threads.
    pub(super) fn threads(&self) -> impl Iterator<Item = ThreadRef> {
        (1..self.thread_slots.high_water()).filter_map(present)
    }

    /// Checks the shuttle that the processor is on, the holder of each shuttle, and the membership in all queues.
    pub(super) fn check_queueing(&self) {
        self.check_running();
        let mut linked = Linked::default();
        for thread in self.threads() {
            linked.ready += thread.home.link.is_linked() as usize;
            linked.timeouts += thread.timeout.is_filed() as usize;
            let waits = if thread.hot.accept.get() == NEVER { thread.state.get() } else { State::Ready };
            linked.sending += (waits == State::Sending) as usize;
            linked.queueing += (waits == State::Queueing) as usize;
            linked.cut_off += (thread.sender_link.is_linked() && !thread.is_queued()) as usize;
            self.check_shuttle(thread);
            self.check_call(thread);
            self.check_priority(thread);
        }
        assert_eq!(linked, self.count_linked(), "who is in a queue, and whom the queues hold (right)");
    }

    fn count_linked(&self) -> Linked {
        let sending =
            |thread: ThreadRef| members(thread.senders.first(), |it| thread.senders.after(it)).count();
        let cut_off = |thread: ThreadRef| self.check_cut_off(thread);
        let queueing = |task: crate::object::TaskRef| {
            let callers = &task.doors.servers.callers;
            members(callers.first(), |it| callers.after(it)).count()
        };
        let queues = self.sched.queues.iter();
        Linked {
            ready: queues.map(|queue| members(queue.first(), |it| queue.after(it)).count()).sum(),
            sending: self.threads().map(sending).sum(),
            queueing: self.tasks().map(queueing).sum(),
            cut_off: self.threads().map(cut_off).sum(),
            timeouts: self.wheel.check(),
        }
    }

    /// Checks that the current thread may run, and that the shuttle which the processor is on is its own word, and in no queue.
    fn check_running(&self) {
        let current = processor::current();
        if current == self.idle() {
            return;
        }
        assert!(current.is_ready(), "{current:?} runs and waits: {:?}", current.state.get());
        assert!(!current.is_stopped(), "{current:?} runs and is stopped");
        let running = self.sched.running.get();
        // Nil: the shuttle has changed in some way, and the next dispatch looks at it.
        if running == ShuttleRef::default() {
            return;
        }
        assert_eq!(
            current.hot.shuttle.get(),
            running,
            "{current:?} runs on another shuttle than the processor"
        );
        let owner = self.owner(running).expect("the processor is on a shuttle that is valid");
        assert!(
            !owner.home.link.is_linked(),
            "the shuttle of {owner:?}, on which the processor is, is in a queue"
        );
    }

    /// Checks the two rules of [`lend`](crate::lend): each shuttle has one holder; and it is with its owner or with nobody unless the owner
    /// claims it.
    fn check_shuttle(&self, thread: ThreadRef) {
        let (shuttle, stake) = (thread.hot.shuttle.get(), thread.stake());
        let is_own = shuttle.same_owner(thread.home_ref());
        if stake == Stake::Holds {
            assert!(
                !is_own || shuttle == thread.home_ref(),
                "{thread:?} runs on a stale reference to its own shuttle"
            );
        }
        if matches!(stake, Stake::Claims(_)) && is_own && shuttle != thread.home_ref() {
            assert_eq!(
                thread.hot.accept.get(),
                NEVER,
                "the fast path could give {thread:?} a stale reference back"
            );
        }
        if stake == Stake::Nothing || is_own {
            return;
        }
        let Some(owner) = self.owner(shuttle) else { return };
        let claims = matches!(owner.stake(), Stake::Claims(_)) && owner.hot.shuttle.get().same_owner(shuttle);
        assert!(claims, "{thread:?} has to do with the shuttle of {owner:?}, which has not lent it");
        assert!(
            self.may_be_carried(owner, thread),
            "{thread:?} has to do with the shuttle of {owner:?}, whose chain has not come to it"
        );
        let holds = |it: &ThreadRef| it.stake() == Stake::Holds && it.hot.shuttle.get() == shuttle;
        if let Some(other) = self.threads().find(|it| *it != thread && holds(it)) {
            assert_ne!(stake, Stake::Holds, "{thread:?} and {other:?} are both on the shuttle of {owner:?}");
        }
    }

    /// Whether a thread may be in the chain that the shuttle of `owner` carries: it is, or the chain is too long to know, or a thread in it is being
    /// ended.
    fn may_be_carried(&self, owner: ThreadRef, thread: ThreadRef) -> bool {
        let below = |above: &ThreadRef| match above.stake() {
            Stake::Claims(to) => self.thread(to),
            _ => None,
        };
        let chain = core::iter::successors(Some(owner), below).take(INHERIT_CHAIN + 1);
        let last = chain.take_while(|&it| it != thread).last();
        let is_ending =
            last.is_some_and(|last| matches!(last.stake(), Stake::Claims(to) if self.thread(to).is_none()));
        is_ending || self.may_be_cut_off(thread) != Some(true)
    }

    /// Checks the effective priority of a thread's home shuttle against its definition, and the waiter on it.
    fn check_priority(&self, thread: ThreadRef) {
        let is_exact = thread.uid().is_nil() || thread.home.unsettled.get();
        let effective = thread.home.effective.get();
        if !is_exact {
            assert_eq!(
                effective,
                self.inherited(thread).0,
                "effective priority of {thread:?} (right: the definition's)"
            );
        }
        if let Some(waiter) = thread.inherited.waiter.get() {
            assert!(waiter.sender_link.is_linked(), "{waiter:?} stands in no queue");
            let holds = if waiter.is_queued() { waiter.hot.shuttle.get() } else { waiter.home_ref() };
            assert_eq!(holds, thread.home_ref(), "{waiter:?} is on another shuttle than that of {thread:?}");
        }
        if thread.sender_link.is_linked() {
            let owner = if thread.is_queued() { self.owner(thread.hot.shuttle.get()) } else { Some(thread) };
            let owner = owner.expect("who stands in a queue knows its shuttle");
            assert_eq!(owner.inherited.waiter.get(), Some(thread), "a shuttle does not know its waiter");
            assert_eq!(
                thread.home.stands_at.get(),
                owner.home.effective.get(),
                "{thread:?} stands in the wrong place"
            );
        }
        thread.senders.check();
        thread.inherited.cut_off.check();
    }

    /// Checks the callers that are cut off from a thread. Returns their number.
    fn check_cut_off(&self, thread: ThreadRef) -> usize {
        let cut_off = &thread.inherited.cut_off;
        members(cut_off.first(), |it| cut_off.after(it))
            .inspect(|caller| {
                assert_eq!(caller.stake(), Stake::Claims(thread.name.get()), "{caller:?} waits for another");
                assert_ne!(self.may_be_cut_off(*caller), Some(false), "{caller:?} is on a shuttle");
            })
            .count()
    }

    /// Checks that a caller's server names that caller.
    fn check_call(&self, caller: ThreadRef) {
        let Wait::Return(server) = caller.wait() else { return };
        // A server that is being ended has lost its uid, and is no server any more.
        let Some(server) = self.thread(server) else { return };
        assert!(server.server.pool.get().is_some(), "{caller:?} waits for {server:?}, which is no server");
        let serves = server.server.caller.get();
        assert_eq!(serves, hot_address(caller), "{caller:?} waits for a server of {:?}", thread_at(serves));
    }
}
