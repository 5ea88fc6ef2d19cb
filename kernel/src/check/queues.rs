//! Who runs, who is on which shuttle, and who is in which queue.
//!
//! A control block is in as many lists as it says, and a list holds what its members say: so the two are counted and compared, which
//! takes one walk of each. A list is walked no further than there are control blocks, so a ring is an assertion and no hang.

use super::members;
use crate::arch;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::door::{hot_address, thread_at};
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{NEVER, State, Wait};

/// How many threads say of themselves that they are in some list of each kind.
#[derive(Default, PartialEq, Eq, Debug)]
struct Linked {
    ready: usize,
    sending: usize,
    queueing: usize,
    timeouts: usize,
}

/// What [`Kernel::is_on`] is told of a thread that holds a valid reference to a shuttle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holds {
    /// Its time is the shuttle's, or will be when the thread goes on.
    Uses,
    /// It has lent the shuttle, or waits for somebody who will bring it another: the word is a copy.
    Remembers,
}

impl Kernel {
    /// All threads.
    pub(super) fn threads(&self) -> impl Iterator<Item = ThreadRef> {
        (1..self.thread_slots.high_water()).filter_map(arch::tcb)
    }

    /// Checks what the processor is on, whose shuttle is whose, and the membership in all queues.
    pub(super) fn check_queueing(&self) {
        self.check_running();
        let mut linked = Linked::default();
        for thread in self.threads() {
            linked.ready += thread.home.link.is_linked() as usize;
            linked.timeouts += thread.timeout.is_filed() as usize;
            let waits = if thread.hot.accept.get() == NEVER { thread.state.get() } else { State::Ready };
            linked.sending += (waits == State::Sending) as usize;
            linked.queueing += (waits == State::Queueing) as usize;
            self.check_shuttle(thread);
            self.check_call(thread);
        }
        assert_eq!(linked, self.count_linked(), "who is in a queue, and whom the queues hold (right)");
    }

    fn count_linked(&self) -> Linked {
        let sending =
            |thread: ThreadRef| members(thread.senders.first(), |it| thread.senders.after(it)).count();
        let queueing = |task: crate::object::TaskRef| {
            let callers = &task.doors.servers.callers;
            members(callers.first(), |it| callers.after(it)).count()
        };
        let queues = self.sched.queues.iter();
        Linked {
            ready: queues.map(|queue| members(queue.first(), |it| queue.after(it)).count()).sum(),
            sending: self.threads().map(sending).sum(),
            queueing: self.tasks().map(queueing).sum(),
            timeouts: self.wheel.check(),
        }
    }

    /// The current thread is one that may run, on the shuttle that the processor is on, which is in no queue.
    fn check_running(&self) {
        let current = arch::current();
        if current == self.idle() {
            return;
        }
        assert!(current.is_ready(), "{current:?} runs and waits: {:?}", current.state.get());
        assert!(!current.is_stopped(), "{current:?} runs and is stopped");
        let running = self.sched.running.get();
        // Nil: something about it has changed, and the next dispatch looks.
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

    /// Whether the thread, which holds a valid reference, is on that shuttle.
    ///
    /// **This is the one place that says who may hold a reference beside the one who is on the shuttle**: whoever waits for an
    /// answer or a return, and whoever waits for anybody, since the fast path leaves the word there.
    fn is_on(&self, thread: ThreadRef) -> Holds {
        match (thread.wait(), thread.state.get()) {
            (Wait::No, State::Taking | State::Stalled) => Holds::Remembers,
            (Wait::No, _) => Holds::Uses,
            _ => Holds::Remembers,
        }
    }

    /// Nobody but `thread` is on the shuttle that it is on.
    fn check_shuttle(&self, thread: ThreadRef) {
        let shuttle = thread.hot.shuttle.get();
        let Some(owner) = self.owner(shuttle).filter(|_| self.is_on(thread) == Holds::Uses) else { return };
        // Most are on their own. Of two on one shuttle, one is not.
        if owner == thread {
            return;
        }
        for other in self.threads().filter(|&other| other != thread && other.hot.shuttle.get() == shuttle) {
            assert_eq!(
                self.is_on(other),
                Holds::Remembers,
                "{thread:?} and {other:?} are both on the shuttle of {owner:?}"
            );
        }
    }

    /// A caller's server names that caller.
    fn check_call(&self, caller: ThreadRef) {
        let Wait::Return(server) = caller.wait() else { return };
        // A server that is being ended has lost its uid.
        let Some(server) = self.named(server) else { return };
        assert!(server.server.pool.get().is_some(), "{caller:?} waits for {server:?}, which is no server");
        let serves = server.server.caller.get();
        assert_eq!(serves, hot_address(caller), "{caller:?} waits for a server of {:?}", thread_at(serves));
    }
}
