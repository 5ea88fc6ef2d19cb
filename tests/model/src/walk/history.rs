//! What holds because of what was before: the kernel's own check sees one moment only.

use abi::call::thread_op;
use abi::op;
use abi::{Call, Timeout};
use kernel::arch;
use kernel::kernel::Kernel;
use kernel::object::thread::{Errand, NEVER, Operation, State, Wait};
use kernel::object::{TaskRef, ThreadRef, door};
use kernel::processor;
use std::collections::BTreeMap;
use std::iter::successors;

/// How late a timeout may be: two grains of the wheel.
const LATE_NS: u64 = 2048;

/// State of a task when it was last looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Belongings {
    /// Whether its end had reached it, and not only a task above it.
    is_dying: bool,
    used: u32,
    pages: u32,
    threads: u32,
    quota: u32,
    children: usize,
}

impl Belongings {
    fn of(task: TaskRef) -> Belongings {
        Belongings {
            is_dying: task.is_dying(),
            used: task.used.get(),
            pages: task.pages.get(),
            threads: task.thread_count.get(),
            quota: task.quota.get(),
            children: successors(task.child.get(), |child| child.sibling_next.get()).count(),
        }
    }

    /// Whether there is more of anything than before. Pages and frames come to a task until its end reaches it.
    fn is_more_than(self, had: Belongings) -> bool {
        let made = self.threads > had.threads || self.quota > had.quota || self.children > had.children;
        made || had.is_dying && (self.used > had.used || self.pages > had.pages)
    }
}

/// A wait that has to end by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Timed {
    state: State,
    until_ns: u64,
}

/// When the phases of a thread's last ipc are to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    /// As `r15` says.
    After(u64),
    /// Both at one time.
    At(u64),
}

impl Ends {
    /// When a phase that begins now ends by itself.
    fn until_ns(self, state: State) -> Option<u64> {
        let now = arch::now_ns();
        match self {
            Ends::At(until) => Some(until.max(now)),
            Ends::After(timeouts) => {
                let half = if state == State::Sending { timeouts } else { timeouts >> 32 };
                Timeout(half as u32).us().map(|us| now + us * 1000)
            }
        }
    }
}

/// What was seen of a walk so far.
#[derive(Default)]
pub struct History {
    /// What tasks have that are being ended, or whose chief is.
    dying: BTreeMap<u64, Belongings>,
    /// Servers that are stopped, and whom they serve or will.
    stopped: BTreeMap<u64, u64>,
    /// Of threads whose last call was a general ipc.
    ends: BTreeMap<u64, Ends>,
    timed: BTreeMap<u64, Timed>,
    /// Which operation met which state, and how often.
    pub met: BTreeMap<(u32, &'static str), usize>,
    /// Late returns from foreign calls: on another shuttle than the caller's, and on that.
    pub late: [usize; 2],
}

/// Operations that are done to threads in all states.
pub const DONE_TO_ALL: [u32; 11] = [
    thread_op::STOP,
    thread_op::RESUME,
    thread_op::ABORT,
    thread_op::DESTROY,
    thread_op::SET_PRIORITY,
    thread_op::SET_PAGER,
    thread_op::STEP,
    thread_op::ALERT,
    thread_op::GET_STATE,
    thread_op::SET_STATE,
    thread_op::FOREIGN_RETURN,
];

/// All states that they have to meet.
pub const STATES: [&str; 16] = [
    "inactive",
    "runs",
    "ready",
    "busy",
    "busy with a message",
    "waits for anybody",
    "waits for one",
    "sends",
    "asks",
    "waits for an answer",
    "takes",
    "takes, and asks",
    "stalled",
    "calls",
    "waits for a server",
    "idle",
];

/// What a thread does, in a word.
fn state_of(thread: ThreadRef) -> &'static str {
    let taken = matches!(thread.operation.get(), Operation::Taken { .. });
    match (thread.wait(), thread.state.get()) {
        (Wait::Open, _) => "waits for anybody",
        (Wait::Closed(_), _) => "waits for one",
        (Wait::Answer(_), _) | (_, State::Sending) if taken => "takes, and asks",
        (Wait::Answer(_), _) => "waits for an answer",
        (Wait::Return(_), _) => "calls",
        (Wait::Idle, _) => "idle",
        (_, State::Sending) if thread.errand.get() == Errand::Ipc => "sends",
        (_, State::Sending) => "asks",
        (_, State::Taking) => "takes",
        (_, State::Stalled) => "stalled",
        (_, State::Queueing) => "waits for a server",
        (_, State::Watching) => "watches",
        (_, State::Inactive) => "inactive",
        _ => match thread.operation.get() {
            Operation::None if thread == processor::current() => "runs",
            Operation::None => "ready",
            Operation::Map { .. } | Operation::Transfer { .. } | Operation::Receive => "busy with a message",
            _ => "busy",
        },
    }
}

impl History {
    /// A thread is about to be controlled.
    pub fn controls(&mut self, operation: u32, thread: ThreadRef) {
        *self.met.entry((operation, state_of(thread))).or_default() += 1;
    }

    /// A thread makes a system call, and so is in no wait any more. `until` is its `r15`.
    pub fn calls(&mut self, thread: ThreadRef, rax: u64, until: u64) {
        let uid = thread.uid().0;
        self.timed.remove(&uid);
        self.ends.remove(&uid);
        let eax = rax as u32;
        if eax & (1 << 31 | 0xff) == Call::Ipc as u32 {
            let ends = if eax & op::ABSOLUTE != 0 { Ends::At(until) } else { Ends::After(until) };
            self.ends.insert(uid, ends);
        }
    }

    /// Looks at everything after a step.
    pub fn look(&mut self, k: &Kernel) {
        self.look_at_dying(k);
        self.look_at_stopped(k);
        self.look_at_timeouts(k);
        look_at_patience(k);
    }

    /// A task that is being ended gains nothing.
    fn look_at_dying(&mut self, k: &Kernel) {
        for task in k.tasks().filter(|task| task.is_ending()) {
            let has = Belongings::of(task);
            if let Some(had) = self.dying.insert(task.id.get().0, has) {
                assert!(!has.is_more_than(had), "{task:?} is being ended and gains: {had:?}, then {has:?}");
            }
        }
    }

    /// A server that is stopped is given no call, but for one of which it has a part already.
    fn look_at_stopped(&mut self, k: &Kernel) {
        let before = std::mem::take(&mut self.stopped);
        let servers = k.tasks().flat_map(|task| task.state().doors.servers.each());
        for server in servers.filter(|server| server.is_stopped()) {
            let uid = server.uid();
            let caller = door::thread_at(server.server.caller.get());
            let caller = caller.filter(|caller| caller.wait() == Wait::Return(uid));
            // So it is if the block or item of a call is on its way to it; an answer to its fault may be, too.
            let is_called = server.receiving.from.get().is_nil() && server.errand.get() == Errand::Ipc;
            let serves = match (caller, server.operation.get()) {
                (Some(caller), _) => caller.uid().0,
                (None, Operation::Taken { from, .. }) if is_called => from.0,
                (None, _) if server.state.get() == State::Taking && is_called => server.partner.get().0,
                _ => 0,
            };
            if let Some(&served) = before.get(&uid.0) {
                assert!(serves == 0 || serves == served, "{server:?} is stopped and gets a call");
            }
            self.stopped.insert(uid.0, serves);
        }
    }

    /// A wait with a timeout ends when it should.
    fn look_at_timeouts(&mut self, k: &Kernel) {
        let now = arch::now_ns();
        // One interrupt handles so many only; the next comes soon.
        let is_behind = k.wheel.not_before_ns() <= now;
        let before = std::mem::take(&mut self.timed);
        for (&uid, ends) in &self.ends {
            let Some(thread) = k.thread(abi::Uid(uid)) else { continue };
            let state = thread.state.get();
            let waits = matches!(state, State::Sending | State::Receiving)
                && thread.hot.accept.get() == NEVER
                && thread.errand.get() == Errand::Ipc;
            if !waits {
                continue;
            }
            let timed = before.get(&uid).copied().filter(|timed| timed.state == state);
            let timed = timed.or_else(|| ends.until_ns(state).map(|until_ns| Timed { state, until_ns }));
            if let Some(timed) = timed {
                let ends = is_behind || now <= timed.until_ns.saturating_add(LATE_NS);
                assert!(ends, "{thread:?} waits longer than it wanted to: {timed:?}, now {now}");
                self.timed.insert(uid, timed);
            }
        }
    }
}

/// Whoever is in the middle of a message, or waits for one to go on, and has finite patience, has a timeout.
fn look_at_patience(k: &Kernel) {
    for thread in (1..k.thread_slots.high_water()).filter_map(ThreadRef::in_slot) {
        let takes = thread.state.get() == State::Taking && thread.errand.get() == Errand::Ipc;
        let waits = thread.hot.accept.get() == NEVER && (takes || thread.state.get() == State::Stalled);
        let is_limited = waits && thread.block.patient_until.get() != u64::MAX;
        assert!(!is_limited || thread.timeout.is_pending(), "{thread:?} waits longer than its patience");
    }
}
