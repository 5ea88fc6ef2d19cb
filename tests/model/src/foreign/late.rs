//! Foreign calls at random, which handlers leave unanswered and return from at once, late or by a message, in any order, while their threads are
//! stopped, aborted, looked at and made more urgent.
//!
//! *Model:* a call that has come to its handler waits for that until it is answered or aborted; then the thread has the registers that it was given.
//! Nothing else lets it go on. Kernel and model are compared after each step, and the kernel with itself: with the fast path, and without.

use crate::fast_path::Machine;
use crate::random::{Random, amount, programs_in_parallel};
use crate::world::Caches;
use abi::call::{
    ALERT_CLEAR, ALERT_SET, FOREIGN, FOREIGN_RETURN, RESUME_AS_IS, task_op, thread_op, timeouts,
};
use abi::foreign::Registers;
use abi::op;
use abi::{Call, Error, Fpage, Kind, Rights, TaskId, ThreadState, Timeout, USER_END, Uid};
use kernel::arch::frame::RETURNED;
use kernel::mem::plan::Plan;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, WORDS};
use kernel::processor::copy;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Operations of a program.
const LEN: usize = 300;

/// Memory of each handler, in its own space.
const BLOCKS: [u64; 2] = [0x4800_0000, 0x10_0000];

/// Threads that make calls: whether they are in the first task, the number of their handler, their priority.
const WARDS: [(bool, usize, u64); 5] =
    [(true, 0, 5), (true, 0, 12), (false, 0, 3), (false, 1, 9), (false, 1, 6)];

/// Something that the current thread does. A number means what makes sense for that thread.
#[derive(Clone, Copy, Debug)]
struct Op {
    choice: u64,
    number: u64,
    place: u64,
}

fn operation(random: &mut Random) -> Op {
    Op { choice: random.below(32), number: random.next() >> 8, place: random.below(8) }
}

/// Reason why a thread waits for its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    Call,
    Exception,
}

/// A thread that makes calls.
struct Ward {
    uid: Uid,
    handler: usize,
    /// Number of the call that it makes, and that has not come yet.
    calls: Option<u64>,
    /// The handler has it.
    asks: Option<Asks>,
    /// Registers that it was given.
    given: Option<u64>,
}

struct Handler {
    uid: Uid,
    /// Whether it waits, as far as it knows.
    waits: bool,
    /// The ward whose call came last.
    does: Option<usize>,
}

/// Counts of what happened.
#[derive(Default)]
struct Counts {
    at_once: AtomicUsize,
    late: AtomicUsize,
    late_on_its_shuttle: AtomicUsize,
    by_message: AtomicUsize,
    refused: AtomicUsize,
    without_memory: AtomicUsize,
    aborted: AtomicUsize,
}

fn count(of: &AtomicUsize) {
    of.fetch_add(1, Relaxed);
}

struct Play<'a> {
    machine: Machine,
    root: Uid,
    wards: Vec<Ward>,
    handlers: Vec<Handler>,
    /// Numbers of calls that were aborted before their handlers looked.
    aborted: BTreeSet<u64>,
    /// Number of the next call, and of the next answer.
    next: u64,
    counts: &'a Counts,
}

/// Registers of a call or an answer with a number: the eleven words, `rdx`, `rax`.
fn registers(number: u64) -> ([u64; WORDS], u64, u64) {
    (std::array::from_fn(|at| number << 8 | at as u64), number << 8 | 0x20, number << 8 | 0x21)
}

/// Block of a late return with the registers of a number.
fn block(number: u64) -> [u64; RETURNED] {
    let ([rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15], rdx, rax) = registers(number);
    [rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, rax]
}

impl<'a> Play<'a> {
    fn new(fast: bool, counts: &'a Counts) -> Play<'a> {
        let machine = Machine::new(1024, fast, Caches::None);
        let root = machine.world.root.uid();
        let (wards, handlers, aborted) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut play = Play { machine, root, wards, handlers, aborted, next: 1, counts };
        play.control(thread_op::SET_PRIORITY, [0, 0, 0, 0]);
        play.call(Call::TaskControl as u64 | u64::from(task_op::CREATE) << 8, [300, 63, 0, 0]);
        let child = TaskId(play.machine.live.w[Frame::RDI]);
        let page = |at: u64| Fpage::memory(at, 12, Rights::RWX);
        let plan = Plan::fit(page(BLOCKS[0] + 0x1000), 0, page(BLOCKS[1])).expect("one page");
        let world = &play.machine.world;
        assert!(world.give(plan, world.task(child)));
        for task in [TaskId::NIL, child] {
            // Nobody brings it pages.
            let uid = play.create(task, 9, Uid::NIL, Uid::NIL);
            play.handlers.push(Handler { uid, waits: false, does: None });
            play.control(thread_op::START, [uid.0, 0x1000, 0x8000, 0]);
            play.wait(play.handlers.len() - 1);
        }
        for (label, (is_first, handler, priority)) in WARDS.into_iter().enumerate() {
            let task = if is_first { TaskId::NIL } else { child };
            let uid = play.create(task, priority, root, play.handlers[handler].uid);
            play.wards.push(Ward { uid, handler, calls: None, asks: None, given: None });
            play.control(thread_op::DENY_NATIVE, [uid.0, 1, label as u64, 0]);
            play.control(thread_op::START, [uid.0, 0x1000, 0x8000, 0]);
            while play.current() != root {
                play.perform(Op { choice: 1, number: 0, place: 0 });
            }
        }
        play
    }

    fn current(&self) -> Uid {
        self.machine.world.current().uid()
    }

    fn thread(&self, uid: Uid) -> ThreadRef {
        self.machine.world.k.thread(uid).expect("nobody ends")
    }

    fn create(&mut self, task: TaskId, priority: u64, pager: Uid, handler: Uid) -> Uid {
        self.control(thread_op::CREATE, [task.0, priority, pager.0, handler.0]);
        Uid(self.machine.live.w[Frame::RDI])
    }

    /// A call but ipc, to its end.
    fn call(&mut self, rax: u64, [rdi, rsi, rdx, r10]: [u64; 4]) {
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI], w[Frame::R10]) = (rdi, rsi, r10);
        self.enter(rax, rdx, w);
    }

    fn enter(&mut self, rax: u64, rdx: u64, w: [u64; WORDS]) {
        let live = &mut self.machine.live;
        (live.rax, live.rdx, live.w) = (rax, rdx, w);
        self.machine.system_call();
        self.settle();
    }

    fn settle(&mut self) {
        while self.machine.world.is_busy() {
            self.machine.go_on();
        }
    }

    /// `thread_control` by the current thread. Its result, wherever the thread is by now.
    fn control(&mut self, operation: u32, arguments: [u64; 4]) -> u64 {
        let caller = self.machine.world.current();
        self.call(Call::ThreadControl as u64 | u64::from(operation) << 8, arguments);
        if self.machine.world.current() == caller { self.machine.live.rax } else { caller.frame.rax.get() }
    }

    /// The handler, which runs, waits for the next call.
    fn wait(&mut self, handler: usize) {
        (self.handlers[handler].waits, self.handlers[handler].does) = (true, None);
        let mut w = [0; WORDS];
        (w[Frame::RBX], w[Frame::R15]) = (Uid::ANY.0, timeouts(Timeout::ZERO, Timeout::NEVER));
        self.enter((Call::Ipc as u32 | op::TAKES_BLOCK | op::TAKES_FOREIGN).into(), 0, w);
    }

    fn perform(&mut self, op: Op) {
        if op.choice == 0 {
            self.machine.advance(1_000_000 << op.place);
            return self.settle();
        }
        let current = self.current();
        if let Some(handler) = self.handlers.iter().position(|it| it.uid == current) {
            self.arrive(handler);
            self.handle(handler, op);
        } else if let Some(ward) = self.wards.iter().position(|it| it.uid == current) {
            self.go(ward, op);
        } else if current == self.root {
            self.rouse(op);
        }
    }

    /// The handler looks what has come.
    fn arrive(&mut self, handler: usize) {
        if !std::mem::take(&mut self.handlers[handler].waits) {
            return;
        }
        let live = &self.machine.live;
        if live.r11 & FOREIGN != 0 {
            let (label, number) = ((live.r11 >> 32 & 0xff) as usize, live.rdx >> 8);
            let (words, rdx, _) = registers(number);
            assert_eq!((live.w, live.rdx, live.rax), (words, rdx, 39), "registers of a call");
            self.handlers[handler].does = Some(label);
            let ward = &mut self.wards[label];
            assert_eq!(ward.handler, handler, "a call comes to somebody else");
            if ward.calls == Some(number) {
                (ward.calls, ward.asks) = (None, Some(Asks::Call));
            } else {
                assert!(self.aborted.contains(&number), "a call comes twice");
            }
        } else if Kind::from_eax(live.rax as u32) == Some(Kind::Exception) {
            let sender = Uid(live.rdx);
            let ward = self.wards.iter_mut().find(|it| it.uid == sender).expect("a ward");
            if ward.calls == Some(0) {
                (ward.calls, ward.asks) = (None, Some(Asks::Exception));
            }
        }
    }

    /// The handler does something.
    fn handle(&mut self, handler: usize, op: Op) {
        match op.choice {
            1..4 => self.wait(handler),
            4..10 => self.return_at_once(handler),
            10..18 => self.return_late(handler, op),
            18..20 => self.answer(handler, op),
            _ => self.meddle(op),
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn return_at_once(&mut self, handler: usize) {
        let number = self.number();
        if let Some(ward) = self.handlers[handler].does.map(|label| &mut self.wards[label])
            && ward.asks == Some(Asks::Call)
        {
            (ward.asks, ward.given) = (None, Some(number));
            count(&self.counts.at_once);
        }
        (self.handlers[handler].waits, self.handlers[handler].does) = (true, None);
        let (w, rdx, rax) = registers(number);
        self.machine.live.rsp = rax;
        self.enter(FOREIGN_RETURN.into(), rdx, w);
    }

    /// A ward whose call the handler has, mostly.
    fn pick(&self, handler: usize, number: u64) -> usize {
        let has = |&label: &usize| {
            let ward = &self.wards[label];
            ward.handler == handler && ward.asks == Some(Asks::Call)
        };
        let having: Vec<usize> = (0..WARDS.len()).filter(has).collect();
        let all: Vec<usize> = (0..WARDS.len()).collect();
        let from = if having.is_empty() || number.is_multiple_of(4) { all } else { having };
        from[(number / 4) as usize % from.len()]
    }

    /// The handler returns late from a call.
    fn return_late(&mut self, handler: usize, op: Op) {
        let (label, number) = (self.pick(handler, op.number), self.number());
        let (me, uid) = (self.machine.world.current(), self.wards[label].uid);
        let (base, task, thread) = (BLOCKS[handler], me.task(), self.thread(uid));
        let (place, is_bad) = match op.place {
            0 => (base + 4, true),
            1 => (USER_END - Registers::LEN_BYTES + 8, true),
            2 => (0x7000_0000_0000, false),
            3 => (base + 0x1000 - Registers::LEN_BYTES, false),
            place => (base + 8 * place, false),
        };
        let is_there = place < base + 0x1000;
        if is_there {
            let k = &self.machine.world.k;
            copy::write_words(k, task, (task, place & !7), block(number)).expect("there is memory");
        }
        let is_due = self.wards[label].handler == handler && self.wards[label].asks == Some(Asks::Call);
        let is_on_its_shuttle = me.hot.shuttle.get() == thread.home_ref();
        let expected = match () {
            () if thread.task() != task && !task.is_chief_of(thread.task()) => Error::Denied as u64,
            () if is_bad => Error::BadArgument as u64,
            () if !is_due => Error::BadState as u64,
            () if !is_there => Error::NoAccess as u64,
            () => 0,
        };
        if expected == 0 {
            (self.wards[label].asks, self.wards[label].given) = (None, Some(number));
        }
        let result = self.control(thread_op::FOREIGN_RETURN, [uid.0, place, 0, 0]);
        assert_eq!(result, expected, "ward {label}, at {place:x}");
        count(match expected {
            0 if is_on_its_shuttle => &self.counts.late_on_its_shuttle,
            0 => &self.counts.late,
            error if error == Error::NoAccess as u64 => &self.counts.without_memory,
            _ => &self.counts.refused,
        });
    }

    /// The handler lets a thread go on by a message, whatever that waits for.
    fn answer(&mut self, handler: usize, op: Op) {
        let ward = &mut self.wards[op.number as usize % WARDS.len()];
        if ward.handler == handler && ward.asks.take().is_some() {
            ward.given = None;
            count(&self.counts.by_message);
        }
        let uid = ward.uid;
        let mut w = [0; WORDS];
        w[Frame::R15] = timeouts(Timeout::ZERO, Timeout::ZERO);
        self.enter(Call::Ipc as u64 | u64::from(RESUME_AS_IS) << 32, uid.0, w);
    }

    /// Somebody does something to a ward that has nothing to do with its call, or aborts that.
    fn meddle(&mut self, op: Op) {
        let label = op.number as usize % WARDS.len();
        let uid = self.wards[label].uid.0;
        let task = self.machine.world.current().task();
        let (ward, is_first) = (self.thread(Uid(uid)).task(), task == self.machine.world.sigma0);
        let state = ThreadState::LEN_BYTES;
        let (operation, rsi, rdx) = match op.choice {
            20 | 21 => (thread_op::STOP, 0, 0),
            22..25 => (thread_op::RESUME, 0, 0),
            25 => (thread_op::SET_PRIORITY, 1 + op.place * 2, 0),
            26 => (thread_op::GET_STATE, BLOCKS[usize::from(!is_first)] + 0x400, state),
            27 => (thread_op::STEP, op.place % 2, 0),
            28 => (thread_op::ALERT, [ALERT_SET, ALERT_CLEAR][op.place as usize % 2], 0),
            // Groups of registers that the simulated processor has.
            29 => (thread_op::GET_REGISTERS, op.place % 2 * 2, 0),
            30 => (thread_op::ABORT, 0, 0),
            _ => (thread_op::INFO, 0, 0),
        };
        let may = ward == task || task.is_chief_of(ward);
        let it = &mut self.wards[label];
        if operation == thread_op::ABORT && may && (it.calls.is_some() || it.asks.is_some()) {
            self.aborted.extend(it.calls.take());
            it.asks = None;
            count(&self.counts.aborted);
        }
        self.control(operation, [uid, rsi, rdx, 0]);
    }

    /// The first thread, which runs when nobody else does, lets somebody go on.
    fn rouse(&mut self, op: Op) {
        match op.choice {
            1..14 => {
                let uid = self.wards[op.number as usize % WARDS.len()].uid.0;
                self.control(thread_op::RESUME, [uid, 0, 0, 0]);
            }
            // A handler gets a message, and may return late.
            14..22 => {
                let to = self.handlers[op.number as usize % 2].uid;
                let mut w = [0; WORDS];
                w[Frame::R15] = timeouts(Timeout::ZERO, Timeout::ZERO);
                self.enter(Call::Ipc as u64, to.0, w);
            }
            _ => self.meddle(op),
        }
    }

    /// A ward looks what it was given, and calls again.
    fn go(&mut self, label: usize, op: Op) {
        let ward = &mut self.wards[label];
        assert_eq!((ward.calls, ward.asks), (None, None), "ward {label} goes on");
        if let Some(number) = ward.given.take() {
            let live = &self.machine.live;
            assert_eq!((live.w, live.rdx, live.rax), registers(number), "ward {label}");
        }
        if op.choice > 28 {
            ward.calls = Some(0);
            self.machine.exception(6);
            return self.settle();
        }
        let number = self.number();
        self.wards[label].calls = Some(number);
        let (w, rdx, _) = registers(number);
        self.enter(39, rdx, w);
    }
}

/// A program, and all that a user could see after each step.
fn play(program: &[Op], fast: bool, counts: &Counts) -> Vec<Option<Vec<u64>>> {
    let mut play = Play::new(fast, counts);
    let threads: Vec<Uid> =
        play.wards.iter().map(|it| it.uid).chain(play.handlers.iter().map(|it| it.uid)).collect();
    let mut all = Vec::with_capacity(program.len());
    for (step, op) in program.iter().enumerate() {
        play.perform(*op);
        for _ in 0..8 {
            if !play.machine.world.k.is_settled() {
                play.machine.advance(0);
                play.settle();
            }
        }
        if step % 16 == 0 {
            play.machine.world.check();
        } else {
            play.machine.world.k.check_threads();
        }
        let is_settled = play.machine.world.k.is_settled();
        all.push(is_settled.then(|| play.machine.observe(&threads)));
    }
    all
}

#[test]
fn random_returns_give_what_they_say_on_both_paths() {
    let (counts, others) = (Counts::default(), Counts::default());
    let steps = amount(60_000);
    programs_in_parallel("foreign calls", steps, LEN, operation, |program| {
        let with = play(program, true, &counts);
        let without = play(program, false, &others);
        for (step, pair) in with.iter().zip(&without).enumerate() {
            if let (Some(with), Some(without)) = pair {
                assert_eq!(with, without, "step {step} differs: {:?}", program[step]);
            }
        }
    });
    let Counts { at_once, late, late_on_its_shuttle, by_message, refused, without_memory, aborted } = counts;
    let counts = [at_once, late, late_on_its_shuttle, by_message, refused, without_memory, aborted];
    let counts = counts.map(AtomicUsize::into_inner);
    println!(
        "returns at once, late, late on the caller's shuttle; by message, refused, without memory, aborted: {counts:?}"
    );
    assert!(counts.iter().all(|&count| count > steps / 1000), "{counts:?}");
}
