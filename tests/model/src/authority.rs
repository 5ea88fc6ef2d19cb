//! Who may do what to whom: a model of authority, and the kernel held against it.
//!
//! *Model.* A tree of tasks with their threads. A task controls its own threads and those of the tasks that it made; it
//! controls the tasks that it made; nobody else controls anybody. Beside that stands what each argument may be: addresses of
//! the user half, priorities up to the task's, quotas within what there is. The model says of each call what it returns, and
//! what has changed afterwards: nothing, if it fails.
//!
//! *Implementation.* The calls are made by threads that never run: [`World::acting`] makes one the current thread for as long
//! as its call takes, so that nothing but the call itself changes anything. After each call all that the model knows of all
//! tasks and threads is compared.
//!
//! Who waits for the answer to a fault or an exception is the matter of [`crate::answers`].

use crate::answers::flags;
use crate::random::{Random, amount, programs};
use crate::strings::is_flexpage;
use crate::world::World;
use abi::call::FOREIGN_LABEL_MAX;
use abi::call::{
    BREAK_ACCESS, BREAK_EXECUTE, BREAK_OFF, BREAK_WRITE, DOORS_MAX, FLUSH_SELF, TRACE_COUNTERS, door_op,
    task_op, thread_op,
};
use abi::foreign::Registers;
use abi::{Call, Dope, Error, Fpage, Rights, Space, TaskId, ThreadState, Uid};
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Progress};
use kernel::object::thread::{Frame, State, special};
use kernel::object::{TaskRef, ThreadRef};
use kernel::processor::{self, extended};
use kernel::sched::Next;
use kernel::syscall;

/// First address that no user has.
const USER_END: u64 = 0x7fff_ffff_f000;

/// How deeply tasks may be nested.
const DEPTH_MAX: u8 = 32;

/// The interrupt lines that programs are about.
const LINES: [u8; 3] = [3, 20, 100];

/// A thread as the model knows it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Thread {
    uid: Uid,
    task: usize,
    started: bool,
    stopped: bool,
    denied: bool,
    priority: u64,
    pager: Uid,
    handler: Uid,
    window: u64,
    fs: u64,
    /// Instruction and stack pointer and flags, where it was started or a debugger has put it.
    at: [u64; 3],
}

/// A task as the model knows it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Task {
    id: TaskId,
    chief: Option<usize>,
    priority_max: u64,
    quota: u64,
    lines: [bool; LINES.len()],
}

/// A call; whom it is about are numbers in the lists of all that ever were.
#[derive(Clone, Debug)]
enum Op {
    Thread { by: u64, operation: u32, target: u64, arguments: [u64; 4] },
    Create { by: u64, task: u64, priority: u64, pager: u64 },
    NextThread { by: u64, task: u64, after: u64 },
    ReadTrace { by: u64 },
    Task { by: u64, operation: u32, target: u64, argument: u64 },
    NewTask { by: u64, quota: u64, priority: u64 },
    Flush { by: u64, page: u64, flags: u64 },
    Switch { by: u64, to: u64 },
    Door { by: u64, number: u64, entry: u64 },
    GiveLine { to: u64, line: usize },
    Listen { by: u64, line: usize },
    Message { by: u64, line: usize },
}

/// Addresses and numbers around what is allowed.
fn argument(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.pick(&[0, 1, 2, 3, 4, 5, 8, 62, 63, 64, 255, 256, u64::MAX]),
        1 => random.pick(&[USER_END - 8, USER_END - 1, USER_END, 1 << 47, (1 << 47) - 8, 1 << 63, !0 << 47]),
        2 => random.next() >> random.below(64),
        _ => 0x1000 * random.below(100),
    }
}

fn flexpage(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => random.next(),
        1 => Fpage::WHOLE.0 ^ if random.one_in(2) { 1 << random.below(64) } else { 0 },
        2 => Fpage::memory(argument(random), random.pick(&[11, 12, 13, 21, 47, 48, 63]), Rights::RWX).0,
        3 => Fpage::ports(random.next() as u16, random.pick(&[0, 3, 16, 17])).0 | argument(random) << 12,
        4 => Fpage::doors(random.next() as u32 % DOORS_MAX, random.pick(&[0, 2, 18, 19]), Rights::RW).0,
        _ => 0,
    }
}

fn operation(random: &mut Random) -> Op {
    let by = random.next() >> 8;
    let target = random.next() >> 8;
    match random.below(20) {
        0..9 => {
            // Some things matter only one after the other.
            let one_of = [thread_op::START, thread_op::STOP, thread_op::SET_REGISTERS];
            let operation = match random.below(3) {
                0 => random.pick(&one_of),
                _ => 1 + random.below(thread_op::COUNT as u64 + 1) as u32,
            };
            let first = match operation {
                thread_op::SET_REGISTERS => random.pick(&[0, 0, 0, 1, 4, 5]),
                thread_op::SET_WINDOW => flexpage(random),
                thread_op::SET_PRIORITY => random.pick(&[0, 3, 10, 11, 62, 63, 64, 65, 256, u64::MAX]),
                _ => argument(random),
            };
            let slice = random.pick(&[0, 1, 99, 100, 10_000_000, 10_000_001]);
            let second = if random.one_in(2) { slice } else { argument(random) };
            let fourth = if random.one_in(2) { random.next() } else { random.pick(&[1, 2, 4, 8]) };
            let third = if random.one_in(2) { random.below(5) } else { argument(random) };
            Op::Thread { by, operation, target, arguments: [first, second, third, fourth] }
        }
        9 | 10 => Op::Create {
            by,
            task: target,
            priority: random.pick(&[0, 1, 2, 3, 4, 63, 64, 300]),
            pager: random.next() >> 8,
        },
        11 => Op::NextThread { by, task: target, after: random.next() >> 8 },
        12 => Op::ReadTrace { by },
        13 | 14 => {
            let operation = 1 + random.below(task_op::COUNT as u64) as u32;
            Op::Task { by, operation, target, argument: random.pick(&[0, 1, 5, 20, 60, 200, 1 << 20]) }
        }
        15 => Op::NewTask {
            by,
            quota: random.pick(&[0, 1, 2, 30, 60, 1 << 20]),
            priority: random.pick(&[1, 2, 3, 63, 64]),
        },
        16 => Op::Flush { by, page: flexpage(random), flags: random.pick(&[0, FLUSH_SELF, FLUSH_SELF, 2]) },
        17 => Op::Switch { by, to: target },
        18 => {
            let number = if random.one_in(4) { argument(random) } else { random.below(4) };
            Op::Door { by, number, entry: argument(random) }
        }
        _ if random.one_in(3) => Op::GiveLine { to: target, line: random.below(LINES.len() as u64) as usize },
        _ if random.one_in(2) => Op::Message { by, line: random.below(LINES.len() as u64) as usize },
        _ => Op::Listen { by, line: random.below(LINES.len() as u64) as usize },
    }
}

/// What a call returns: an error, or up to two results that the model knows.
type Answer = Result<[Option<u64>; 2], Error>;

const FINE: Answer = Ok([None; 2]);

fn bad(wrong: bool) -> Answer {
    if wrong { Err(Error::BadArgument) } else { FINE }
}

impl Thread {
    /// Operations for debuggers, and what is set about receiving.
    fn set(&mut self, may_trace: bool, operation: u32, [rsi, rdx, r10, r8]: [u64; 4]) -> Answer {
        let stands_still = self.started && self.stopped;
        match operation {
            thread_op::GET_REGISTERS => {
                bad(rsi >= 5)?;
                return if stands_still { FINE } else { Err(Error::BadState) };
            }
            thread_op::SET_REGISTERS => {
                bad(rsi >= 5)?;
                if !stands_still {
                    return Err(Error::BadState);
                }
                if rsi == 0 {
                    bad(rdx >= USER_END || r10 >= 1 << 47)?;
                    self.at = [rdx, r10, flags(r8)];
                }
            }
            thread_op::GET_STATE | thread_op::SET_STATE => {
                let is_short = rdx == ThreadState::GENERAL_BYTES;
                let (len, align) =
                    if is_short { (ThreadState::GENERAL_BYTES, 8) } else { (ThreadState::LEN_BYTES, 64) };
                bad(rsi % align != 0 || rsi > USER_END - len || rdx < len)?;
                let begins = operation == thread_op::SET_STATE && !self.started && !is_short;
                return if stands_still || begins { FINE } else { Err(Error::BadState) };
            }
            thread_op::FOREIGN_RETURN => {
                bad(rsi % 8 != 0 || rsi > USER_END - Registers::LEN_BYTES)?;
                // Nobody here makes foreign calls.
                return Err(Error::BadState);
            }
            thread_op::TRACE if !may_trace => return Err(Error::Denied),
            thread_op::BREAKPOINT => {
                let fits = [1, 2, 4, 8].contains(&r8) && rdx < USER_END && rdx % r8 == 0;
                let known = match r10 {
                    BREAK_OFF => true,
                    BREAK_EXECUTE => fits && r8 == 1,
                    BREAK_WRITE | BREAK_ACCESS => fits,
                    _ => false,
                };
                return bad(rsi >= 4 || !known);
            }
            thread_op::ALERT => return bad(rsi > 2),
            thread_op::SET_WINDOW => {
                bad(rsi != 0 && !is_flexpage(rsi))?;
                return Ok([None, Some(std::mem::replace(&mut self.window, rsi))]);
            }
            thread_op::SET_BLOCK => {
                let room = Dope(rdx);
                let end = rsi.checked_add(room.size()).filter(|&end| end <= USER_END);
                let crosses = |end: u64| rdx != 0 && rsi >> 39 != (end - 1) >> 39;
                let is_room = rdx & !(0x0fff_ffff << 32) == 0;
                bad(!is_room || end.is_none_or(crosses))?;
            }
            _ => {}
        }
        FINE
    }
}

struct Trial {
    world: World,
    /// All that ever were; `None` instead of those that have ended.
    tasks: Vec<Option<Task>>,
    threads: Vec<Option<Thread>>,
    /// Uids and tasks that named somebody once, or never did.
    gone: (Vec<Uid>, Vec<TaskId>),
    /// Doors that tasks have made.
    doors: Vec<(usize, u64)>,
}

impl Trial {
    fn new() -> Trial {
        let world = World::new(1 << 12);
        let sigma0 = Task {
            id: world.sigma0.id.get(),
            chief: None,
            priority_max: 63,
            quota: world.sigma0.quota.get() as u64,
            lines: [true; LINES.len()],
        };
        let gone = (vec![Uid(0x1234_5678_9abc_d000), Uid::ANY], vec![TaskId::new(999, 1), TaskId(77)]);
        let mut trial =
            Trial { world, tasks: vec![Some(sigma0)], threads: Vec::new(), gone, doors: Vec::new() };
        // A first thread that is nobody's business, and a family of three generations with two threads each.
        let root = trial.world.root;
        let first = trial.made(root.uid(), 0, 63, [Uid::NIL; 2]);
        trial.threads.push(Some(Thread {
            started: true,
            at: [root.frame.rip.get(), root.frame.rsp.get(), flags(0)],
            ..first
        }));
        trial.create(0, 0, 5, 0).expect("there is memory");
        let quotas = [400, 400, 120, 120, 40];
        for (i, (chief, quota)) in [0, 0, 1, 1, 3].into_iter().zip(quotas).enumerate() {
            let by = trial.somebody_of(chief);
            trial.new_task(by, quota, 10).expect("there is memory");
            for priority in [2, 3] {
                trial.create(by, i + 1, priority, 0).expect("there is memory");
            }
        }
        trial
    }

    fn somebody_of(&self, task: usize) -> usize {
        let is_there = |thread: &Option<Thread>| thread.is_some_and(|thread| thread.task == task);
        self.threads.iter().rposition(is_there).expect("each task has threads")
    }

    fn made(&self, uid: Uid, task: usize, priority: u64, [pager, handler]: [Uid; 2]) -> Thread {
        let (window, fs, at) = (0, 0, [0; 3]);
        let (started, stopped, denied) = (false, false, false);
        Thread { uid, task, started, stopped, denied, priority, pager, handler, window, fs, at }
    }

    /// One who may make calls, and has no place in user mode that they would change.
    fn caller(&self, number: u64) -> Option<usize> {
        let may = |i: &usize| self.threads[*i].is_some_and(|thread| !thread.denied && !thread.started);
        let all: Vec<usize> = (0..self.threads.len()).filter(may).collect();
        all.get(number as usize % all.len().max(1)).copied()
    }

    /// A thread by its number: itself, one that lives, one that has ended.
    fn thread(&self, by: usize, number: u64) -> (Uid, Option<usize>) {
        let rest = (number >> 4) as usize;
        match number % 16 {
            0 => (Uid::NIL, Some(by)),
            1 => (self.gone.0[rest % self.gone.0.len()], None),
            _ => {
                let all: Vec<usize> =
                    (0..self.threads.len()).filter(|&i| self.threads[i].is_some()).collect();
                let i = all[rest % all.len()];
                (self.threads[i].expect("it lives").uid, Some(i))
            }
        }
    }

    /// A task likewise.
    fn task(&self, number: u64) -> (TaskId, Option<usize>) {
        let rest = (number >> 4) as usize;
        match number % 16 {
            0 => (TaskId::NIL, None),
            1 => (self.gone.1[rest % self.gone.1.len()], None),
            _ => {
                let all: Vec<usize> = (0..self.tasks.len()).filter(|&i| self.tasks[i].is_some()).collect();
                let i = all[rest % all.len()];
                (self.tasks[i].expect("it lives").id, Some(i))
            }
        }
    }

    fn living(&self, task: usize) -> Task {
        self.tasks[task].expect("it lives")
    }

    fn task_ref(&self, task: usize) -> TaskRef {
        self.world.task(self.living(task).id)
    }

    fn thread_ref(&self, thread: usize) -> ThreadRef {
        self.world.k.thread(self.threads[thread].expect("it lives").uid).expect("the model knows it")
    }

    /// The model's rule.
    fn controls(&self, by: usize, task: usize) -> Result<(), Error> {
        let mine = self.threads[by].expect("it calls").task;
        let may = mine == task || self.living(task).chief == Some(mine);
        may.then_some(()).ok_or(Error::Denied)
    }

    /// The task that is meant, if the caller may control its threads.
    fn controlled(&self, by: usize, (id, task): (TaskId, Option<usize>)) -> Result<usize, Error> {
        let own = self.threads[by].expect("it calls").task;
        let task = if id == TaskId::NIL { own } else { task.ok_or(Error::NoSuch)? };
        self.controls(by, task).map(|()| task)
    }

    /// The task that is meant, if it is a child of the caller's.
    fn child(&self, by: usize, (id, task): (TaskId, Option<usize>)) -> Result<usize, Error> {
        if id == TaskId::NIL {
            return Err(Error::Denied);
        }
        let task = task.ok_or(Error::NoSuch)?;
        let mine = self.threads[by].expect("it calls").task;
        (self.living(task).chief == Some(mine)).then_some(task).ok_or(Error::Denied)
    }

    /// Whether the caller may trace: the first task, and its children.
    fn may_trace(&self, by: usize) -> bool {
        let mine = self.threads[by].expect("it calls").task;
        mine == 0 || self.living(mine).chief == Some(0)
    }

    /// Makes a call in a thread's name and gives back what it left in the registers.
    fn call(&self, by: usize, call: Call, operation: u32, [rdi, rsi, rdx, r10, r8]: [u64; 5]) -> [u64; 3] {
        let thread = self.thread_ref(by);
        let frame = &thread.frame;
        frame.rax.set(call as u64 | (operation as u64) << 8);
        frame.rdx.set(rdx);
        frame.w.iter().for_each(|word| word.set(0));
        frame.w[Frame::RDI].set(rdi);
        frame.w[Frame::RSI].set(rsi);
        frame.w[Frame::R10].set(r10);
        frame.w[Frame::R8].set(r8);
        self.world.acting(thread, || {
            let _ = syscall::system_call(&self.world.k, thread, Next::To);
            self.world.finish(thread);
        });
        [frame.rax.get(), frame.w[Frame::RDI].get(), frame.w[Frame::RSI].get()]
    }

    fn create(&mut self, by: usize, task: usize, priority: u64, pager: usize) -> Answer {
        let pager = self.threads[pager].expect("it lives").uid;
        let id = self.living(task).id;
        let expected = self.controlled(by, (id, Some(task))).and_then(|task| {
            let fits = priority < 64 && priority <= self.living(task).priority_max;
            bad(!fits)?;
            self.may_hear(by, task, pager)?;
            let task = self.task_ref(task);
            // A thread is a frame.
            (task.used.get() < task.quota.get()).then_some(()).ok_or(Error::NoMemory)
        });
        let arguments = [id.0, priority, pager.0, pager.0, 0];
        let [rax, uid, _] = self.call(by, Call::ThreadControl, thread_op::CREATE, arguments);
        if expected.is_ok() && rax == 0 {
            let made = self.made(Uid(uid), task, priority, [pager, pager]);
            self.threads.push(Some(made));
        }
        compare("create a thread", expected.map(|()| [None; 2]), [rax, uid, 0])
    }

    fn new_task(&mut self, by: usize, quota: u64, priority: u64) -> Answer {
        let mine = self.threads[by].expect("it calls").task;
        let chief = self.task_ref(mine);
        let left = (chief.quota.get() - chief.used.get()) as u64;
        let depth = std::iter::successors(Some(mine), |&task| self.living(task).chief).count() as u8 - 1;
        let expected = match () {
            () if priority >= 64 || priority > self.living(mine).priority_max => Err(Error::BadArgument),
            () if quota < 1 + processor::space::space_frames() as u64 || quota > left => Err(Error::NoMemory),
            () if depth >= DEPTH_MAX => Err(Error::Limit),
            () => FINE,
        };
        let got = self.call(by, Call::TaskControl, task_op::CREATE, [quota, priority, 0, 0, 0]);
        if expected.is_ok() && got[0] == 0 {
            let task = Task {
                id: TaskId(got[1]),
                chief: Some(mine),
                priority_max: priority,
                quota,
                lines: [false; LINES.len()],
            };
            self.tasks.push(Some(task));
        }
        compare("create a task", expected, got)
    }

    /// Performs an operation. Whether it succeeded.
    fn perform(&mut self, op: &Op) -> bool {
        let by = match *op {
            Op::GiveLine { to, line } => {
                self.give_line(to, line);
                return true;
            }
            Op::Thread { by, .. }
            | Op::Create { by, .. }
            | Op::NextThread { by, .. }
            | Op::ReadTrace { by }
            | Op::Task { by, .. }
            | Op::NewTask { by, .. }
            | Op::Flush { by, .. }
            | Op::Switch { by, .. }
            | Op::Door { by, .. }
            | Op::Message { by, .. }
            | Op::Listen { by, .. } => by,
        };
        let Some(by) = self.caller(by) else { return false };
        let answer = match *op {
            Op::Thread { operation, target, arguments, .. } => self.control(by, operation, target, arguments),
            Op::Create { task, priority, pager, .. } => {
                let ((_, task), (_, pager)) = (self.task(task), self.thread(by, pager));
                match (task, pager) {
                    (Some(task), Some(pager)) => self.create(by, task, priority, pager),
                    _ => FINE,
                }
            }
            Op::NextThread { task, after, .. } => self.next_thread(by, task, after),
            Op::ReadTrace { .. } => {
                let expected = if self.may_trace(by) { FINE } else { Err(Error::Denied) };
                let arguments = [TRACE_COUNTERS, 0, 0, 0, 0];
                let got = self.call(by, Call::ThreadControl, thread_op::READ_TRACE, arguments);
                compare("read the trace", expected, got)
            }
            Op::Task { operation, target, argument, .. } => {
                self.control_task(by, operation, target, argument)
            }
            Op::NewTask { quota, priority, .. } => self.new_task(by, quota, priority),
            Op::Flush { page, flags, .. } => self.flush(by, page, flags),
            Op::Switch { to, .. } => self.switch(by, to),
            Op::Door { number, entry, .. } => self.make_door(by, number, entry),
            Op::Listen { line, .. } => self.listen(by, line),
            Op::Message { line, .. } => self.message(by, line),
            Op::GiveLine { .. } => unreachable!("done above"),
        };
        answer.is_ok()
    }

    /// An operation of `thread_control` on a thread.
    fn control(&mut self, by: usize, operation: u32, target: u64, arguments: [u64; 4]) -> Answer {
        let (uid, target) = self.thread(by, target);
        let arguments = match (operation, arguments) {
            // Mostly somebody who is there.
            (thread_op::SET_PAGER, [pager, handler, ..]) if pager % 8 != 0 => {
                [self.thread(by, pager).0.0, self.thread(by, handler).0.0, 0, 0]
            }
            _ => arguments,
        };
        let [rsi, rdx, r10, r8] = arguments;
        // Who ends or stops itself has nothing to compare, and the first thread is needed.
        let leaves = matches!(operation, thread_op::DESTROY | thread_op::STOP | thread_op::DENY_NATIVE);
        let is_listed = matches!(operation, thread_op::NEXT | thread_op::READ_TRACE);
        if is_listed || leaves && (target == Some(by) || target == Some(0)) {
            return FINE;
        }
        let known = operation < thread_op::COUNT;
        let expected = match target {
            _ if !known => Err(Error::BadArgument),
            // No thread is a line.
            _ if operation == thread_op::INTERRUPT_MESSAGE => Err(Error::BadArgument),
            None => Err(Error::NoSuch),
            Some(target) => {
                let task = self.threads[target].expect("it lives").task;
                let allowed = self.controls(by, task);
                allowed.and_then(|()| self.effect(by, target, operation, arguments))
            }
        };
        // Contents of memory are no matter of authority.
        if expected.is_ok() && matches!(operation, thread_op::GET_STATE | thread_op::SET_STATE) {
            return FINE;
        }
        let got = self.call(by, Call::ThreadControl, operation, [uid.0, rsi, rdx, r10, r8]);
        compare(&format!("operation {operation} on a thread with {arguments:x?}"), expected, got)
    }

    /// Whether a thread may let somebody hear of the faults of a task's threads.
    fn may_hear(&self, by: usize, task: usize, named: Uid) -> Result<(), Error> {
        let caller = self.threads[by].expect("it calls");
        if named.is_nil() || [caller.pager, caller.handler].contains(&named) {
            return Ok(());
        }
        let to = self.threads.iter().flatten().find(|thread| thread.uid == named).ok_or(Error::NoSuch)?.task;
        let chief = |task: usize| self.living(task).chief;
        let is_near = |from: usize| {
            from == to || chief(from) == Some(to) || chief(to) == Some(from) || chief(from) == chief(to)
        };
        if is_near(caller.task) || is_near(task) { Ok(()) } else { Err(Error::Denied) }
    }

    /// What an operation on a thread does that the caller may control.
    fn effect(&mut self, by: usize, target: usize, operation: u32, [rsi, rdx, r10, r8]: [u64; 4]) -> Answer {
        let may_trace = self.may_trace(by);
        let before = self.threads[target].expect("it lives");
        let priority_max = self.living(before.task).priority_max;
        if operation == thread_op::SET_PAGER {
            for named in
                [rsi, rdx].map(Uid).into_iter().filter(|uid| ![before.pager, before.handler].contains(uid))
            {
                self.may_hear(by, before.task, named)?;
            }
        }
        let slot = &mut self.threads[target];
        let thread = slot.as_mut().expect("it lives");
        match operation {
            thread_op::START => {
                if thread.started && !thread.stopped {
                    return Err(Error::BadState);
                }
                bad(rsi >= USER_END || rdx >= 1 << 47)?;
                (thread.started, thread.stopped) = (true, false);
                thread.at = [rsi, rdx, flags(0)];
            }
            thread_op::DESTROY => {
                self.gone.0.push(thread.uid);
                *slot = None;
            }
            thread_op::SET_PAGER => (thread.pager, thread.handler) = (Uid(rsi), Uid(rdx)),
            thread_op::SET_PRIORITY => {
                let slice_fits = rdx == 0 || (100..=10_000_000).contains(&rdx);
                bad(rsi >= 64 || rsi > priority_max || !slice_fits)?;
                thread.priority = rsi;
            }
            thread_op::STOP => thread.stopped = true,
            thread_op::RESUME => thread.stopped = false,
            thread_op::ABORT => return Err(Error::BadState),
            thread_op::SET_FS => {
                bad(rsi >= 1 << 47)?;
                thread.fs = rsi;
            }
            thread_op::DENY_NATIVE => {
                bad(rdx > FOREIGN_LABEL_MAX)?;
                thread.denied = rsi != 0;
            }
            _ => return thread.set(may_trace, operation, [rsi, rdx, r10, r8]),
        }
        FINE
    }

    fn next_thread(&self, by: usize, task: u64, after: u64) -> Answer {
        let ((id, task), (uid, after)) = (self.task(task), self.thread(by, after));
        let expected = self.controlled(by, (id, task)).and_then(|task| {
            // Those of a task stand in the order in which they were made.
            let is_of = |i: &usize| self.threads[*i].is_some_and(|thread| thread.task == task);
            let mut of_task = (0..self.threads.len()).filter(is_of);
            if !uid.is_nil() {
                let after = after.ok_or(Error::NoSuch)?;
                of_task.find(|&i| i == after).ok_or(Error::NoSuch)?;
            }
            let next = of_task.next().and_then(|i| self.threads[i]);
            Ok([Some(next.map_or(0, |thread| thread.uid.0)), None])
        });
        let got = self.call(by, Call::ThreadControl, thread_op::NEXT, [uid.0, id.0, 0, 0, 0]);
        compare("list threads", expected, got)
    }

    fn control_task(&mut self, by: usize, operation: u32, target: u64, argument: u64) -> Answer {
        let (id, target) = self.task(target);
        let own = self.threads[by].expect("it calls").task;
        let child = self.child(by, (id, target));
        let (mine, uid) = (self.living(own), self.threads[by].expect("it calls"));
        let expected = match operation {
            task_op::DESTROY => child.map(|task| {
                self.end(task);
                [None; 2]
            }),
            task_op::INFO => {
                let asked = if id == TaskId::NIL || id == mine.id { Ok(own) } else { child };
                asked.map(|task| [Some(self.living(task).quota), None])
            }
            task_op::SET_QUOTA => child.and_then(|task| {
                let (chief, used) = (self.task_ref(own), self.task_ref(task).used.get() as u64);
                let left = (chief.quota.get() - chief.used.get()) as u64;
                let task = self.tasks[task].as_mut().expect("it lives");
                if argument < used || argument > task.quota + left {
                    return Err(Error::NoMemory);
                }
                task.quota = argument;
                FINE
            }),
            task_op::NEXT => {
                // The last that was made comes first.
                let is_mine = |i: &usize| self.tasks[*i].is_some_and(|task| task.chief == Some(own));
                let mut children = (0..self.tasks.len()).rev().filter(is_mine);
                let found =
                    if id == TaskId::NIL { Ok(()) } else { child.map(|of| _ = children.find(|&i| i == of)) };
                found.map(|()| [Some(children.next().map_or(0, |next| self.living(next).id.0)), None])
            }
            task_op::SELF => Ok([Some(uid.uid.0), Some(mine.id.0)]),
            task_op::SET_DOMAIN => child.and_then(|task| {
                let is_used = self.threads.iter().flatten().any(|thread| thread.task == task)
                    || self.tasks.iter().flatten().any(|other| other.chief == Some(task));
                if is_used { Err(Error::BadState) } else { Ok([Some(1), None]) }
            }),
            // Nobody has allowed it.
            task_op::EXHAUST => Err(Error::Denied),
            _ => Err(Error::BadArgument),
        };
        let got = self.call(by, Call::TaskControl, operation, [id.0, argument, 0, 0, 0]);
        compare(&format!("operation {operation} on a task with {argument}"), expected, got)
    }

    /// A task ends with all below it.
    fn end(&mut self, task: usize) {
        for child in 0..self.tasks.len() {
            if self.tasks[child].is_some_and(|child| child.chief == Some(task)) {
                self.end(child);
            }
        }
        for thread in self.threads.iter_mut().filter(|thread| thread.is_some_and(|it| it.task == task)) {
            self.gone.0.push(thread.take().expect("just looked").uid);
        }
        self.gone.1.push(self.tasks[task].take().expect("it lives").id);
        self.doors.retain(|&(of, _)| of != task);
    }

    fn flush(&mut self, by: usize, page: u64, flags: u64) -> Answer {
        let is_valid = is_flexpage(page) && flags & !FLUSH_SELF == 0;
        let expected = if is_valid { FINE } else { Err(Error::BadArgument) };
        let mine = self.threads[by].expect("it calls").task;
        let (space, first, own) = (Fpage(page).space(), page >> 12, flags == FLUSH_SELF);
        let (end, takes) = (first + (1 << Fpage(page).log2().min(47)), Fpage(page).rights().has(Rights::R));
        if is_valid && space == Space::Interrupt && page & Rights::RW.0 as u64 != 0 {
            // All others have their lines from the first task, which keeps its own.
            for (i, task) in self.tasks.iter_mut().enumerate().skip(1) {
                let loses = mine == 0 || mine == i && own;
                for (has, line) in task.iter_mut().flat_map(|task| &mut task.lines).zip(LINES) {
                    *has &= !(loses && (first..end).contains(&(line as u64)));
                }
            }
        }
        if is_valid && own && space == Space::Door && takes {
            self.doors.retain(|&(of, number)| of != mine || !(first..end).contains(&number));
        }
        let got = self.call(by, Call::Flush, 0, [page, flags, 0, 0, 0]);
        compare(&format!("flush {page:x} with {flags}"), expected, got)
    }

    /// Only who can run is switched to.
    fn switch(&self, by: usize, to: u64) -> Answer {
        let (uid, to) = self.thread(by, to);
        if to == Some(0) {
            // It runs all the time.
            return FINE;
        }
        let thread = self.thread_ref(by);
        let frame = &thread.frame;
        let mode = frame.mode.get();
        frame.rax.set(Call::ThreadSwitch as u64);
        frame.w[Frame::RDI].set(uid.0);
        let next = self.world.acting(thread, || {
            let next = syscall::system_call(&self.world.k, thread, Next::To);
            // It never ran, and is on its own shuttle.
            self.world.k.unqueue(thread);
            next
        });
        frame.mode.set(mode);
        if let Next::To(next) = next {
            let chosen = to.and_then(|to| self.threads[to]).expect("somebody was meant");
            assert_eq!(next.uid(), chosen.uid);
            assert!(chosen.started && !chosen.stopped, "a switch to {chosen:?}");
            self.world.k.wake(next);
        }
        let expected = if uid.is_nil() || to.is_some() { FINE } else { Err(Error::NoSuch) };
        compare("switch", expected, [frame.rax.get(), 0, 0])
    }

    fn make_door(&mut self, by: usize, number: u64, entry: u64) -> Answer {
        let mine = self.threads[by].expect("it calls").task;
        let task = self.task_ref(mine);
        let expected = match () {
            () if number >= 1 << 18 || entry >= USER_END => Err(Error::BadArgument),
            () if self.doors.contains(&(mine, number)) => Err(Error::BadState),
            () => FINE,
        };
        let scarce = task.quota.get() - task.used.get() < 8;
        let got = self.call(by, Call::DoorControl, door_op::CREATE, [number, entry, 0, 0, 0]);
        if scarce && got[0] == Error::NoMemory as u64 {
            return Err(Error::NoMemory);
        }
        if expected.is_ok() {
            self.doors.push((mine, number));
        }
        compare(&format!("a door {number:x} to {entry:x}"), expected, got)
    }

    /// The first task gives a line.
    fn give_line(&mut self, to: u64, line: usize) {
        let (_, Some(to)) = self.task(to) else { return };
        let (giver, taker) = (self.world.sigma0, self.task_ref(to));
        if to == 0 || taker.quota.get() - taker.used.get() < 8 {
            return;
        }
        let page = Fpage::interrupt(LINES[line]);
        let plan = Plan::fit(page, 0, Fpage::interrupts()).expect("a line fits among all");
        let mut progress = Progress::START;
        while space::map(&self.world.k, plan, giver, taker, &mut progress, &mut 16).is_err() {}
        self.tasks[to].as_mut().expect("it lives").lines[line] = progress.whole;
    }

    /// Waits for an interrupt, for no time at all.
    fn listen(&self, by: usize, line: usize) -> Answer {
        let mine = self.threads[by].expect("it calls").task;
        let expected = if self.living(mine).lines[line] { Error::ReceiveTimeout } else { Error::Denied };
        let thread = self.thread_ref(by);
        let (frame, mode) = (&thread.frame, thread.frame.mode.get());
        frame.rax.set(Call::Ipc as u64);
        frame.rdx.set(0);
        frame.w.iter().for_each(|word| word.set(0));
        frame.w[Frame::RBX].set(Uid::interrupt(LINES[line]).0);
        let state = thread.state.get();
        let next = self.world.acting(thread, || syscall::system_call(&self.world.k, thread, Next::To));
        assert_eq!((next, thread.state.get()), (Next::Same, state));
        frame.mode.set(mode);
        compare("listen", Err(expected), [frame.rax.get(), 0, 0])
    }

    /// Asks for the message of a line. Those below 24 end at pins.
    fn message(&self, by: usize, line: usize) -> Answer {
        let (mine, number) = (self.threads[by].expect("it calls").task, LINES[line]);
        let expected = match (self.living(mine).lines[line], number) {
            (false, _) => Err(Error::Denied),
            (true, ..24) => Err(Error::NoSuch),
            (true, _) => Ok([Some(0xfee0_0000), Some(32 + u64::from(number))]),
        };
        let arguments = [Uid::interrupt(number).0, 0, 0, 0, 0];
        let got = self.call(by, Call::ThreadControl, thread_op::INTERRUPT_MESSAGE, arguments);
        compare("ask for the message of a line", expected, got)
    }

    /// All that the model knows of everybody.
    fn compare_all(&self) {
        let k = &self.world.k;
        for task in self.tasks.iter().flatten() {
            let there = k.task(task.id).unwrap_or_else(|| panic!("{task:?} is gone"));
            let chief = task.chief.map(|chief| self.living(chief).id);
            assert_eq!(there.chief.get().map(|chief| chief.id.get()), chief, "the chief of {task:?}");
            let limits = (there.quota.get() as u64, there.priority_max.get() as u64);
            assert_eq!(limits, (task.quota, task.priority_max), "the limits of {task:?}");
            for (line, has) in LINES.into_iter().zip(task.lines) {
                assert_eq!(space::holds_interrupt(k, there, line), has, "line {line} of {task:?}");
            }
        }
        for thread in self.threads.iter().flatten() {
            let there = k.thread(thread.uid).unwrap_or_else(|| panic!("{thread:?} is gone"));
            let special = there.special.get();
            let found = Thread {
                uid: there.uid(),
                task: thread.task,
                started: there.state.get() != State::Inactive,
                stopped: special & special::STOPPED != 0,
                denied: special & special::DENY_NATIVE != 0,
                priority: there.home.priority.get() as u64,
                pager: there.fault.pager.get(),
                handler: there.fault.handler.get(),
                window: there.receiving.standing.get().0,
                fs: extended::with(k, there, |state| state.fs_base.get()),
                at: thread.at,
            };
            assert_eq!(found, *thread);
            assert_eq!(there.task().id.get(), self.living(thread.task).id, "the task of {thread:?}");
            if thread.started && there.is_trapped() {
                let frame = &there.frame;
                // Single steps show in the flags.
                let without = |flags| flags & !(1 << 8);
                let at = [frame.rip.get(), frame.rsp.get(), without(frame.rflags.get())];
                let [ip, sp, flags] = thread.at;
                assert_eq!(at, [ip, sp, without(flags)], "where {thread:?} goes on");
            }
        }
        for thread in self.threads.iter().flatten().filter_map(|thread| k.thread(thread.uid)) {
            if let Some(line) = thread.line.get().checked_sub(1) {
                assert!(space::holds_interrupt(k, thread.task(), line as u8), "{thread:?} hears line {line}");
            }
        }
        for uid in &self.gone.0 {
            assert!(k.thread(*uid).is_none(), "{uid:?} lives");
        }
        for id in &self.gone.1 {
            assert!(k.task(*id).is_none(), "{id:?} lives");
        }
    }
}

/// The kernel's answer against the model's. Memory for tables may be short where the model does not count it.
fn compare(what: &str, expected: Answer, [rax, first, second]: [u64; 3]) -> Answer {
    let got = if rax == 0 { Ok(()) } else { Err(Error::from_code(rax as u32)) };
    assert_eq!(got, expected.map(|_| ()).map_err(Some), "{what}");
    if let Ok(results) = expected {
        for (result, got) in results.into_iter().zip([first, second]) {
            assert_eq!(result.unwrap_or(got), got, "a result of: {what}");
        }
    }
    expected
}

#[test]
fn kernel_and_model_of_authority_agree() {
    let mut calls = [0; 2];
    programs("authority", amount(20_000), 200, operation, |program| {
        let mut trial = Trial::new();
        trial.compare_all();
        for op in program {
            let fine = trial.perform(op);
            calls[fine as usize] += 1;
            trial.compare_all();
            trial.world.check();
        }
    });
    let [failed, fine] = calls;
    assert!(failed > 5000 && fine > 5000, "{failed} calls failed, {fine} did not");
}
