//! Agents: threads that do one thing after another as the test tells them, so that a test reads as a sequence.
//!
//! An agent lives in the suite's own task or in a child. Children see the suite's memory at the same addresses
//! (see [`pager`](super::pager)), so orders and results are in plain memory and need no ipc. An agent without
//! an order yields the processor; the test never waits for an agent without a limit.

use super::{Failure, Frame, Outcome, pager, seen};
use core::cell::UnsafeCell;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::thread_state::{BUSY, INACTIVE, READY, RECEIVING, SENDING};
use sys::{Fpage, Kind, TaskId, ThreadInfo, Timeout, Uid};

/// Most agents at a time.
const AGENTS: usize = 24;

/// Bytes of stack.
const STACK: usize = 16384;

/// How long an agent may take for one order.
const PATIENCE_NS: u64 = 120_000_000_000;

/// A function for [`Agent::attempt`].
pub type Attempt = unsafe extern "C" fn();

/// A function in Rust for [`Agent::apply`].
pub type Function = extern "C" fn(u64) -> u64;

#[derive(Clone, Copy)]
enum Order {
    System(Frame),
    Apply(Function, u64),
    Attempt(Attempt, u64, u64),
}

/// How an [`Agent::attempt`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempted {
    /// The function returned this.
    Returned(u64),
    /// It ended in an exception, of which the handler got this message.
    Caught([u64; 8]),
}

impl Attempted {
    /// The vector, if an exception was caught.
    pub fn vector(&self) -> Option<u64> {
        match self {
            Attempted::Returned(_) => None,
            Attempted::Caught([vector, ..]) => Some(*vector),
        }
    }

    /// Whether the function returned.
    pub fn is_fine(&self) -> bool {
        matches!(self, Attempted::Returned(_))
    }
}

struct Mailbox {
    /// Number of orders given, 0 while no agent has the mailbox.
    given: AtomicU64,
    /// Number of orders done.
    done: AtomicU64,
    order: UnsafeCell<Order>,
    frame: UnsafeCell<Frame>,
    result: UnsafeCell<u64>,
    caught: UnsafeCell<Option<[u64; 8]>>,
    uid: AtomicU64,
    /// Stack pointer with which the handler continues the thread after an exception; 0 outside of attempts: then there
    /// is nowhere to go on, and the thread stays where it is.
    resume_sp: AtomicU64,
    used: AtomicU64,
}

// SAFETY: the test writes order and frame only while given == done, the agent only while they differ; the
// handler writes `caught` only while the agent waits for it.
unsafe impl Sync for Mailbox {}

static MAILBOXES: [Mailbox; AGENTS] = [const {
    Mailbox {
        given: AtomicU64::new(0),
        done: AtomicU64::new(0),
        order: UnsafeCell::new(Order::Apply(nothing, 0)),
        frame: UnsafeCell::new(Frame::ZERO),
        result: UnsafeCell::new(0),
        caught: UnsafeCell::new(None),
        uid: AtomicU64::new(0),
        resume_sp: AtomicU64::new(0),
        used: AtomicU64::new(0),
    }
}; AGENTS];

/// A stack, with a page below it that an agent in a child cannot get.
#[repr(C, align(4096))]
struct Stack {
    guard: [u8; 4096],
    memory: [u8; STACK],
}

static mut STACKS: [Stack; AGENTS] = [const { Stack { guard: [0; 4096], memory: [0; STACK] } }; AGENTS];

extern "C" fn nothing(_: u64) -> u64 {
    0
}

#[repr(C)]
struct Pair {
    value: u64,
    caught: u64,
}

unsafe extern "C" {
    fn suite_start();
    fn suite_caught();
    fn suite_system_call(frame: *mut Frame);
    fn suite_try(function: Attempt, first: u64, second: u64, resume_sp: *const AtomicU64) -> Pair;
}

/// A door's entry for agents that serve: to the agent a call looks like the result of what it was ordered last.
pub fn door_entry() -> u64 {
    unsafe extern "C" {
        fn suite_door_entry();
    }
    suite_door_entry as *const () as usize as u64
}

/// Whether an address lies in the guard page of some agent's stack.
pub fn is_guard(address: u64) -> bool {
    let offset = address.wrapping_sub(addr_of!(STACKS) as u64) as usize;
    offset < size_of::<[Stack; AGENTS]>() && offset % size_of::<Stack>() < 4096
}

/// Starts a thread of the suite at a Rust function, on the stack of mailbox `index`.
fn start_on(
    index: usize,
    thread: Uid,
    function: extern "C" fn(u64, u64) -> !,
    argument: u64,
) -> sys::Result<()> {
    // SAFETY: the stack is unused: its agent is gone or was never made. The slot for the function lies in it.
    unsafe {
        let top = addr_of!(STACKS[index].memory) as u64 + STACK as u64;
        let slot = top - 8;
        *(slot as *mut u64) = function as *const () as usize as u64;
        sys::thread_start(thread, suite_start as *const () as usize as u64, slot, argument)
    }
}

extern "C" fn agent(index: u64, uid: u64) -> ! {
    let mailbox = &MAILBOXES[index as usize];
    mailbox.uid.store(uid, Ordering::Relaxed);
    loop {
        let given = mailbox.given.load(Ordering::Acquire);
        if given == mailbox.done.load(Ordering::Relaxed) {
            let _ = sys::thread_switch(Uid::NIL);
            continue;
        }
        // SAFETY: given != done, so the mailbox is this thread's; the attempts come from `kit.s`.
        unsafe {
            match *mailbox.order.get() {
                Order::System(frame) => {
                    *mailbox.frame.get() = frame;
                    suite_system_call(mailbox.frame.get());
                }
                Order::Apply(function, argument) => *mailbox.result.get() = function(argument),
                Order::Attempt(function, first, second) => {
                    *mailbox.caught.get() = None;
                    *mailbox.result.get() = suite_try(function, first, second, &mailbox.resume_sp).value;
                    mailbox.resume_sp.store(0, Ordering::Relaxed);
                }
            }
        }
        mailbox.done.store(given, Ordering::Release);
    }
}

/// For the handler: notes an exception of an agent and says where it continues (ip and sp).
pub fn caught(thread: Uid, words: [u64; 8]) -> Option<(u64, u64)> {
    let mailbox = MAILBOXES.iter().find(|mailbox| mailbox.uid.load(Ordering::Relaxed) == thread.0)?;
    let resume_sp = mailbox.resume_sp.load(Ordering::Relaxed);
    if resume_sp == 0 {
        return None;
    }
    // SAFETY: the agent waits for the handler's answer.
    unsafe { *mailbox.caught.get() = Some(words) };
    Some((suite_caught as *const () as usize as u64, resume_sp))
}

/// Makes a system call as the agent with mailbox `index`; false if it ended in an exception.
///
/// # Safety
///
/// Only that agent may do this, and not within an attempt. The call must not take away what the suite needs.
pub unsafe fn guarded(index: usize, frame: &mut Frame) -> bool {
    unsafe extern "C" {
        fn suite_guarded();
    }
    let frame = core::ptr::from_mut(frame) as u64;
    let resume_sp = &MAILBOXES[index].resume_sp;
    // SAFETY: `suite_guarded` gets the frame on to `suite_system_call`.
    let fine = unsafe { suite_try(suite_guarded, frame, 0, resume_sp).caught == 0 };
    resume_sp.store(0, Ordering::Relaxed);
    fine
}

/// A thread that runs one function of its own. It ends when this value is dropped.
pub struct Thread {
    index: usize,
    /// Its uid.
    pub uid: Uid,
}

/// Starts a thread at a function, which gets the argument and the thread's uid.
pub fn spawn(
    task: TaskId,
    priority: u8,
    function: extern "C" fn(u64, u64) -> !,
    argument: u64,
) -> Outcome<Thread> {
    let pager = if task == TaskId::NIL { sys::identity().pager } else { pager::uid() };
    let thread = Thread { index: reserve()?, uid: sys::thread_create(task, priority, pager, pager::uid())? };
    start_on(thread.index, thread.uid, function, argument)?;
    Ok(thread)
}

impl Thread {
    /// Its state.
    pub fn info(&self) -> sys::Result<ThreadInfo> {
        sys::thread_info(self.uid)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // A test may have ended it before.
        let _ = sys::thread_destroy(self.uid);
        MAILBOXES[self.index].used.store(0, Ordering::Relaxed);
    }
}

fn reserve() -> Outcome<usize> {
    let free = MAILBOXES.iter().position(|mailbox| mailbox.used.load(Ordering::Relaxed) == 0);
    let index = free.ok_or_else(|| Failure::new(format_args!("too many agents")))?;
    MAILBOXES[index].used.store(1, Ordering::Relaxed);
    Ok(index)
}

/// A thread under orders. It ends when this value is dropped.
pub struct Agent {
    index: usize,
    /// Its uid.
    pub uid: Uid,
    /// When the present order was given.
    since_ns: u64,
    /// Operation of the present order, if it is a system call.
    eax: u32,
}

impl Agent {
    /// An agent in a task (nil: the suite's own), ready for orders.
    pub fn new(task: TaskId) -> Outcome<Agent> {
        let agent = Agent::create(task, pager::priority())?;
        agent.begin()?;
        Ok(agent)
    }

    /// An agent with a priority of its own.
    pub fn with_priority(task: TaskId, priority: u8) -> Outcome<Agent> {
        let agent = Agent::create(task, priority)?;
        agent.begin()?;
        Ok(agent)
    }

    /// An agent with a priority of its own, not yet started.
    pub fn create(task: TaskId, priority: u8) -> Outcome<Agent> {
        let pager = if task == TaskId::NIL { sys::identity().pager } else { pager::uid() };
        let uid = sys::thread_create(task, priority, pager, pager::uid())?;
        let index = reserve()?;
        let mailbox = &MAILBOXES[index];
        mailbox.given.store(0, Ordering::Relaxed);
        mailbox.done.store(0, Ordering::Relaxed);
        mailbox.uid.store(uid.0, Ordering::Relaxed);
        mailbox.resume_sp.store(0, Ordering::Relaxed);
        Ok(Agent { index, uid, since_ns: 0, eax: 0 })
    }

    /// Starts it.
    pub fn begin(&self) -> sys::Result<()> {
        start_on(self.index, self.uid, agent, self.index as u64)
    }

    /// Which mailbox it has; see [`guarded`].
    pub fn mailbox_index(&self) -> usize {
        self.index
    }

    fn mailbox(&self) -> &'static Mailbox {
        &MAILBOXES[self.index]
    }

    fn order(&mut self, order: Order) {
        let mailbox = self.mailbox();
        self.since_ns = sys::clock();
        self.eax = match order {
            Order::System(frame) => frame.rax as u32,
            _ => 0,
        };
        let given = mailbox.given.load(Ordering::Relaxed);
        assert!(given == mailbox.done.load(Ordering::Relaxed), "an agent was given two orders at once");
        // SAFETY: given == done, so the mailbox is the test's.
        unsafe { *mailbox.order.get() = order };
        mailbox.given.store(given + 1, Ordering::Release);
    }

    /// Orders a system call, and does not wait for its end.
    pub fn start(&mut self, frame: Frame) {
        self.order(Order::System(frame));
    }

    /// Orders a system call, and waits until the agent is blocked in it.
    #[track_caller]
    pub fn block(&mut self, frame: Frame) -> Outcome {
        self.start(frame);
        if self.settle()? {
            return Ok(());
        }
        let frame = self.wait()?;
        let (error, kind, words) = (frame.error(), frame.kind(), frame.words());
        Err(Failure::new(format_args!("agent did not block: {error:?} {kind:?} {words:x?}")))
    }

    /// Whether the last order is done.
    pub fn is_done(&self) -> bool {
        let mailbox = self.mailbox();
        mailbox.given.load(Ordering::Relaxed) == mailbox.done.load(Ordering::Acquire)
    }

    /// Lets the agent run until it is blocked (true) or done with its order (false).
    #[track_caller]
    pub fn settle(&self) -> Outcome<bool> {
        for round in 1.. {
            if self.is_done() {
                return Ok(false);
            }
            if self.is_blocked()? {
                break;
            }
            self.patience()?;
            give_way(self.uid, round);
        }
        Ok(!self.is_done())
    }

    /// Whether it is blocked in its last order, or done with it.
    pub fn rests(&self) -> Outcome<bool> {
        Ok(self.is_done() || self.is_blocked()?)
    }

    fn is_blocked(&self) -> sys::Result<bool> {
        is_blocked(self.uid)
    }

    /// Whether it sends or receives just now. Once that has ended it does not, even if it has not run since.
    pub fn waits(&self) -> sys::Result<bool> {
        const WAITING: [u8; 2] = [RECEIVING, SENDING];
        Ok(WAITING.contains(&self.info()?.state))
    }

    /// Its state.
    pub fn info(&self) -> sys::Result<ThreadInfo> {
        sys::thread_info(self.uid)
    }

    #[track_caller]
    fn patience(&self) -> Outcome {
        if sys::clock() - self.since_ns > PATIENCE_NS {
            let state = self.info().map(|info| sys::abi::call::thread_op::STATES[info.state as usize % 7]);
            return Err(Failure::new(format_args!(
                "agent did not finish: it is {:?}",
                state.unwrap_or("gone")
            )));
        }
        Ok(())
    }

    #[track_caller]
    fn finish(&self) -> Outcome {
        for round in 1.. {
            if self.is_done() {
                break;
            }
            self.patience()?;
            give_way(Uid::NIL, round);
        }
        Ok(())
    }

    /// Waits for the end of a system call.
    #[track_caller]
    pub fn wait(&mut self) -> Outcome<Frame> {
        self.finish()?;
        // SAFETY: given == done.
        let frame = unsafe { *self.mailbox().frame.get() };
        seen::note_raw(self.eax, frame.rax);
        Ok(frame)
    }

    /// Makes a system call.
    #[track_caller]
    pub fn run(&mut self, frame: Frame) -> Outcome<Frame> {
        self.start(frame);
        self.wait()
    }

    /// Makes a system call that ends by a timeout of so many microseconds: not before its time, and not after a timeout of this
    /// thread's that begins when the agent waits already, and is longer. What ends first is up to the kernel alone, however slow the
    /// machine is.
    #[track_caller]
    pub fn run_into_timeout(&mut self, frame: Frame, us: u64) -> Outcome<Frame> {
        const LATE_US: u64 = 20_000;
        let before = sys::clock();
        self.start(frame);
        if self.settle()? {
            sys::sleep_us(us + LATE_US)?;
            crate::check!(!self.waits()?, "{us} us were over, and the agent still waited");
        }
        let frame = self.wait()?;
        let elapsed = sys::clock() - before;
        crate::check!(elapsed >= us * 1000, "{us} us took only {elapsed} ns");
        Ok(frame)
    }

    /// Makes a system call other than ipc; returns `rax` and the six registers.
    #[track_caller]
    pub fn control(&mut self, eax: u32, arguments: [u64; 6]) -> Outcome<(u64, [u64; 6])> {
        let frame = self.run(Frame::control(eax, arguments))?;
        Ok((frame.rax, [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9]))
    }

    /// Runs a Rust function.
    #[track_caller]
    pub fn apply(&mut self, function: Function, argument: u64) -> Outcome<u64> {
        self.start_apply(function, argument);
        self.result()
    }

    /// Starts a Rust function.
    pub fn start_apply(&mut self, function: Function, argument: u64) {
        self.order(Order::Apply(function, argument));
    }

    /// Starts a function of `kit.s`.
    pub fn start_attempt(&mut self, function: Attempt, first: u64, second: u64) {
        self.order(Order::Attempt(function, first, second));
    }

    /// What the function returned that was started last.
    #[track_caller]
    pub fn result(&mut self) -> Outcome<u64> {
        self.finish()?;
        // SAFETY: given == done.
        Ok(unsafe { *self.mailbox().result.get() })
    }

    /// Runs a function of `kit.s` that may end in an exception.
    #[track_caller]
    pub fn attempt(&mut self, function: Attempt, first: u64, second: u64) -> Outcome<Attempted> {
        self.order(Order::Attempt(function, first, second));
        self.attempted()
    }

    /// How the attempt ended that was started last.
    #[track_caller]
    pub fn attempted(&mut self) -> Outcome<Attempted> {
        let value = self.result()?;
        // SAFETY: given == done.
        let caught = unsafe { *self.mailbox().caught.get() };
        Ok(caught.map_or(Attempted::Returned(value), Attempted::Caught))
    }

    /// Attempts something without a pager: a fault on any page that the agent does not have is caught.
    #[track_caller]
    pub fn probe(&mut self, function: Attempt, first: u64, second: u64) -> Outcome<Attempted> {
        unsafe extern "C" {
            fn suite_nothing();
        }
        // The first attempt brings in all pages that an attempt needs.
        self.attempt(suite_nothing, 0, 0)?;
        let pager = self.info()?.pager;
        sys::thread_set_pager(self.uid, Uid::NIL, pager::uid())?;
        let outcome = self.attempt(function, first, second);
        sys::thread_set_pager(self.uid, pager, pager::uid())?;
        outcome
    }

    /// What the agent finds at an address, or `None` if it may not read there.
    #[track_caller]
    pub fn peek(&mut self, address: u64) -> Outcome<Option<u64>> {
        unsafe extern "C" {
            fn suite_load();
        }
        Ok(match self.probe(suite_load, address, 0)? {
            Attempted::Returned(value) => Some(value),
            Attempted::Caught(_) => None,
        })
    }

    /// Writes a word; false if the agent may not.
    #[track_caller]
    pub fn poke(&mut self, address: u64, value: u64) -> Outcome<bool> {
        unsafe extern "C" {
            fn suite_store();
        }
        Ok(self.probe(suite_store, address, value)?.is_fine())
    }

    /// Jumps to an address; false if the agent may not execute there. (What is there must return.)
    #[track_caller]
    pub fn execute(&mut self, address: u64) -> Outcome<bool> {
        unsafe extern "C" {
            fn suite_jump();
        }
        Ok(self.probe(suite_jump, address, 0)?.is_fine())
    }

    /// Sends pages with a hot spot to another agent, which takes them anywhere.
    #[track_caller]
    pub fn hand_on(&mut self, item: (Fpage, u64), taker: &mut Agent) -> Outcome {
        taker.block(Frame::receive(self.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
        let sent = self.run(Frame::send(taker.uid, Timeout::ZERO).item(item.0, item.1))?;
        crate::check_eq!(sent.rax, 0);
        taker.wait()?;
        Ok(())
    }

    /// Lets the agent receive a map item from this thread into a window; returns what it got.
    #[track_caller]
    pub fn take(&mut self, item: (Fpage, u64), window: Fpage) -> Outcome<Frame> {
        self.block(Frame::receive(sys::myself(), Timeout::NEVER).window(window))?;
        let sent = sys::send_item(self.uid, 0, [0; 8], item, Timeout::ZERO);
        if let Err(error) = seen::note(sys::abi::Call::Ipc, sent) {
            sys::thread_abort(self.uid)?;
            self.wait()?;
            return Err(Failure::new(format_args!("map item was not taken: {error}")));
        }
        let frame = self.wait()?;
        crate::check_eq!(frame.kind(), Some(Kind::Reply));
        Ok(frame)
    }
}

/// Whether a thread waits or is stopped, and not only until the suite's pager has dealt with a fault of it.
pub fn is_blocked(thread: Uid) -> sys::Result<bool> {
    const RUNNING: [u8; 3] = [INACTIVE, READY, BUSY];
    let before = sys::thread_info(thread)?;
    if RUNNING.contains(&before.state) || sys::thread_info(pager::uid())?.state != RECEIVING {
        return Ok(false);
    }
    let after = sys::thread_info(thread)?;
    Ok((before.state, before.faults) == (after.state, after.faults))
}

/// Lets others run, and at times those who are less urgent: an agent may wait for a server that answers one of those first.
fn give_way(to: Uid, round: u32) {
    const PATIENT_ROUND: u32 = 64;
    let _ = if round.is_multiple_of(PATIENT_ROUND) { sys::sleep_us(50) } else { sys::thread_switch(to) };
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Its task may have ended before; then so has the agent.
        let _ = sys::thread_destroy(self.uid);
        let mailbox = self.mailbox();
        mailbox.uid.store(0, Ordering::Relaxed);
        mailbox.used.store(0, Ordering::Relaxed);
    }
}
