//! Clans and chiefs: a model of who hears what, and the kernel held against it.
//!
//! *Model.* A tree of tasks; the thread that made a task hears what crosses the border of its clan. The way of a message is found
//! from the two lines of chiefs above its ends, as the page *clan* of the specification says it: it goes directly within a task or a clan, to
//! the own chief and to the own clan; out of a clan to the chief; into another one to the outermost chief that it meets. A chief
//! may show a message as another one's if the border of its clan is between the two.
//!
//! *Implementation.* Threads that never run: each waits for anybody, is made the current one for as long as a call of its takes,
//! and waits again. After each message it is looked at who has got it, from whom it seems to be, and for whom it was meant; all
//! others still wait.

use crate::fast_path::{Live, fast_path};
use crate::random::{Random, amount, programs};
use crate::world::World;
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, DOOR_LONG_RETURN, DOOR_RETURN, IPC_CALL,
    IPC_REPLY_WAIT, NOT_DIVERTED, door_op, task_op, thread_op, timeouts,
};
use abi::op;
use abi::{Call, Dope, Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};
use kernel::mem::at::At;
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Progress};
use kernel::object::thread::{Frame, NEVER, State, WORDS, Wait};
use kernel::object::{TaskRef, ThreadRef};
use kernel::processor;
use kernel::{arch, ipc, life, syscall};

/// How deeply tasks may be nested.
const DEPTH_MAX: usize = 32;

/// Frames for a task, by its depth.
const QUOTAS: [u64; 6] = [500, 200, 80, 35, 16, 8];

/// A task as the model knows it.
#[derive(Clone, Copy, Debug)]
struct Task {
    id: TaskId,
    chief: Option<usize>,
    /// Who made it: number of a thread.
    maker: usize,
}

/// A thread as the model knows it; `uid` stays when it has ended.
#[derive(Clone, Copy, Debug)]
struct Thread {
    uid: Uid,
    task: usize,
    lives: bool,
}

struct Trial {
    world: World,
    tasks: Vec<Task>,
    threads: Vec<Thread>,
}

/// What goes between threads; all are numbers in a list.
#[derive(Clone, Debug)]
enum Op {
    NewTask {
        by: u64,
    },
    End {
        who: u64,
    },
    Send {
        from: u64,
        to: u64,
    },
    Show {
        from: u64,
        to: u64,
        shown: u64,
    },
    /// A call, and an attempt at an answer by somebody else.
    Call {
        from: u64,
        to: u64,
        by: u64,
    },
    /// A call that a chief passes on, and its answer.
    PassOn {
        from: u64,
        to: u64,
    },
}

fn operation(random: &mut Random) -> Op {
    let [from, to, third] = [random.next() >> 8, random.next() >> 8, random.next() >> 8];
    match random.below(30) {
        0 | 1 => Op::NewTask { by: from },
        2 if random.one_in(3) => Op::End { who: from },
        3..10 => Op::Send { from, to },
        10..16 => Op::Show { from, to, shown: third },
        16..23 => Op::Call { from, to, by: third },
        _ => Op::PassOn { from, to },
    }
}

impl Trial {
    fn new() -> Trial {
        let world = World::new(1 << 12);
        // So that ways are remembered, as with the fast path on.
        world.k.notes_routes.set(true);
        let (root, id) = (world.root.uid(), world.sigma0.id.get());
        let first = Thread { uid: root, task: 0, lives: true };
        let mut trial =
            Trial { world, tasks: vec![Task { id, chief: None, maker: 0 }], threads: vec![first] };
        // Two clans in the first one, one of them with a clan in it.
        for chief in [0, 1, 0, 1, 2] {
            let by = trial.threads.iter().rposition(|thread| thread.task == chief);
            trial.new_task(by.expect("each task has threads"));
        }
        trial
    }

    fn thread_ref(&self, thread: usize) -> ThreadRef {
        self.world.k.thread(self.threads[thread].uid).expect("it lives")
    }

    fn task_ref(&self, task: usize) -> TaskRef {
        self.world.task(self.tasks[task].id)
    }

    /// A call in the name of a thread, to its end.
    fn call(&self, thread: ThreadRef, rax: u64, rdx: u64, w: [u64; WORDS]) {
        let frame = &thread.frame;
        frame.rax.set(rax);
        frame.rdx.set(rdx);
        frame.w.iter().zip(w).for_each(|(register, word)| register.set(word));
        self.world.acting(thread, || {
            arch::load_space(thread.hot.space.get());
            let k = &self.world.k;
            if rax as u32 != IPC_CALL || ipc::known_route::call(k, thread).is_none() {
                let _ = crate::world::system_call(k, thread);
            }
            self.world.finish(thread);
        });
        arch::load_space(self.world.root.hot.space.get());
    }

    /// A call but ipc: its error and its first result.
    fn control(&self, thread: ThreadRef, call: Call, operation: u32, arguments: [u64; 4]) -> (u64, u64) {
        let mut w = [0; WORDS];
        let rdx;
        [w[Frame::RDI], w[Frame::RSI], rdx, w[Frame::R10]] = arguments;
        self.call(thread, call as u64 | (operation as u64) << 8, rdx, w);
        (thread.frame.rax.get(), thread.frame.w[Frame::RDI].get())
    }

    /// The thread begins to do something, whatever it waited for.
    fn rouse(&self, thread: ThreadRef) {
        if thread.wait() != Wait::No {
            ipc::end::fail_blocked(&self.world.k, thread, Error::ReceiveAborted);
        }
        self.world.k.unqueue_thread(thread);
    }

    /// The thread waits for anybody.
    fn rest(&self, thread: ThreadRef) {
        if thread == self.world.root {
            return;
        }
        self.rouse(thread);
        self.world.k.shuttle_of(thread);
        let mut w = [0; WORDS];
        (w[Frame::RBX], w[Frame::R15]) = (Uid::ANY.0, timeouts(Timeout::NEVER, Timeout::NEVER));
        self.call(thread, (Call::Ipc as u32 | op::TAKES_BLOCK) as u64, 0, w);
        assert_eq!(thread.wait(), Wait::Open);
    }

    /// All wait for anybody, and nothing is wrong.
    fn rest_all(&self) {
        let all: Vec<usize> = self.living(|_| true);
        for &thread in &all {
            self.rest(self.thread_ref(thread));
        }
        self.world.k.check();
    }

    /// The threads for which something holds.
    fn living(&self, fits: impl Fn(&Thread) -> bool) -> Vec<usize> {
        let lives = |&i: &usize| self.threads[i].lives && fits(&self.threads[i]);
        (0..self.threads.len()).filter(lives).collect()
    }

    /// One who may send and receive: all but the first, which runs.
    fn any(&self, number: u64) -> usize {
        let all: Vec<usize> = self.living(|thread| thread.uid != self.threads[0].uid);
        all[number as usize % all.len()]
    }

    /// One who may send and receive, and at times one who has ended.
    fn any_that_was(&self, number: u64) -> usize {
        let ended: Vec<usize> = (0..self.threads.len()).filter(|&i| !self.threads[i].lives).collect();
        if number.is_multiple_of(16) && !ended.is_empty() {
            return ended[(number / 16) as usize % ended.len()];
        }
        self.any(number / 16)
    }

    /// A thread makes a task with two threads.
    fn new_task(&mut self, by: usize) {
        let creator = self.thread_ref(by);
        self.rouse(creator);
        let depth = self.line(self.threads[by].task).len();
        let quota = QUOTAS[depth.min(QUOTAS.len()) - 1];
        let left = creator.task().quota.get() - creator.task().used.get();
        if (left as u64) < quota + 4 {
            return;
        }
        let (error, id) = self.control(creator, Call::TaskControl, task_op::CREATE, [quota, 63, 0, 0]);
        assert_eq!(error, 0);
        let task = self.tasks.len();
        let chief = Some(self.threads[by].task);
        self.tasks.push(Task { id: TaskId(id), chief, maker: by });
        for _ in 0..2 {
            let (error, uid) = self.control(creator, Call::ThreadControl, thread_op::CREATE, [id, 1, 0, 0]);
            assert_eq!(error, 0);
            self.threads.push(Thread { uid: Uid(uid), task, lives: true });
        }
    }

    fn end(&mut self, who: usize) {
        let mates = self.living(|thread| thread.task == self.threads[who].task);
        if let Some(&mate) = mates.iter().find(|&&mate| mate != who) {
            let uid = self.threads[who].uid.0;
            let mate = self.thread_ref(mate);
            self.rouse(mate);
            let (error, _) = self.control(mate, Call::ThreadControl, thread_op::DESTROY, [uid, 0, 0, 0]);
            assert_eq!(error, 0);
            self.threads[who].lives = false;
        }
    }

    /// A task and its chiefs, outermost last.
    fn line(&self, task: usize) -> Vec<usize> {
        std::iter::successors(Some(task), |&task| self.tasks[task].chief).collect()
    }

    fn is_below(&self, task: usize, chief: usize) -> bool {
        self.line(task)[1..].contains(&chief)
    }

    /// The thread to which a message between two tasks is diverted.
    fn chief_on_the_way(&self, from: usize, to: usize) -> Option<usize> {
        let (mine, theirs) = (self.tasks[from].chief, self.tasks[to].chief);
        let is_direct = from == to || mine == Some(to) || theirs == Some(from) || mine == theirs;
        if is_direct {
            return None;
        }
        // Down into a clan: the first task on the way that is a chief, seen from the sender's clan or from the sender.
        let way = self.line(to);
        for pair in way.windows(2) {
            let [below, above] = [pair[0], pair[1]];
            let is_here =
                self.tasks[above].chief == mine && above != from || self.tasks[above].chief == Some(from);
            if is_here {
                return Some(self.tasks[below].maker);
            }
        }
        // Out of the own.
        Some(self.tasks[from].maker)
    }

    /// Who has to get a message from one thread to another, and whether it is diverted.
    fn hearer(&self, from: usize, to: usize) -> (usize, bool) {
        let chief = self.chief_on_the_way(self.threads[from].task, self.threads[to].task);
        (chief.unwrap_or(to), chief.is_some())
    }

    fn may_show(&self, chief: usize, to: usize, shown: usize) -> bool {
        let [chief, to, shown] = [chief, to, shown].map(|thread| self.threads[thread].task);
        chief != to && chief != shown && self.is_below(to, chief) != self.is_below(shown, chief)
    }

    /// A message that does not wait for an answer. Returns the sender's error.
    fn send(&self, from: usize, to: usize, shown: Option<usize>, asks: bool) -> u64 {
        let sender = self.thread_ref(from);
        self.rouse(sender);
        let mut w = std::array::from_fn(|i| 100 + i as u64);
        let to = self.threads[to].uid.0;
        w[Frame::RBX] = if asks { to } else { 0 };
        w[Frame::RBP] = 0;
        w[Frame::R15] = timeouts(Timeout::ZERO, Timeout::NEVER);
        let flag = match shown {
            Some(shown) => {
                w[5] = self.threads[shown].uid.0;
                op::SHOWN
            }
            None => 0,
        };
        self.call(sender, (Call::Ipc as u32 | flag) as u64, to, w);
        sender.frame.rax.get()
    }

    /// Only `hearer` has got something: from one thread, meant for another.
    fn check_heard(&self, hearer: usize, from: usize, meant: usize, diverted: bool, shown: bool) {
        let frame = &self.thread_ref(hearer).frame;
        assert_eq!(Uid(frame.rdx.get()), self.threads[from].uid, "from whom it seems to be");
        assert_eq!(frame.rax.get() as u32 & NOT_DIVERTED == 0, diverted, "whether it is diverted");
        if diverted {
            assert_eq!(Uid(frame.w[Frame::R15].get()), self.threads[meant].uid, "for whom it was meant");
        }
        if shown {
            assert_eq!(frame.w[5].get(), 0, "who shows something keeps it to himself");
        }
    }

    /// Who waits for anybody, but for some.
    fn check_others_wait(&self, some: &[usize]) {
        for other in self.living(|_| true) {
            let waits = other == 0 || self.thread_ref(other).wait() == Wait::Open;
            assert!(waits || some.contains(&other), "thread {other} has heard something");
        }
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::NewTask { by } => self.new_task(self.any(by)),
            Op::End { who } => self.end(self.any(who)),
            Op::Send { from, to } => self.try_send(self.any(from), self.any_that_was(to)),
            Op::Show { from, to, shown } => {
                self.try_show(self.any(from), self.any_that_was(to), self.any_that_was(shown))
            }
            Op::Call { from, to, by } => self.try_call(self.any(from), self.any(to), self.any(by)),
            Op::PassOn { from, to } => self.try_pass_on(self.any(from), self.any(to)),
        }
        self.rest_all();
    }

    fn try_send(&self, from: usize, to: usize) {
        let error = self.send(from, to, None, false);
        if !self.threads[to].lives {
            assert_eq!(error, Error::NoSuch as u64);
            return self.check_others_wait(&[from]);
        }
        if from == to {
            assert_eq!(error, Error::BadArgument as u64);
            return self.check_others_wait(&[from]);
        }
        let (hearer, diverted) = self.hearer(from, to);
        if !self.threads[hearer].lives || hearer == 0 {
            // Its chief has ended; or is the first thread, which does not wait.
            let expected = if hearer == 0 { Error::SendTimeout } else { Error::NoSuch };
            assert_eq!(error, expected as u64);
            return self.check_others_wait(&[from]);
        }
        assert_eq!(error, 0);
        self.check_heard(hearer, from, to, diverted, false);
        self.check_others_wait(&[from, hearer]);
    }

    fn try_show(&self, from: usize, to: usize, shown: usize) {
        let error = self.send(from, to, Some(shown), false);
        let expected = match () {
            () if !self.threads[to].lives => Err(Error::NoSuch),
            () if from == to => Err(Error::BadArgument),
            () if !self.threads[shown].lives => Err(Error::NoSuch),
            () if !self.may_show(from, to, shown) => Err(Error::Denied),
            () => Ok(self.hearer(from, to)),
        };
        let heard = expected.and_then(|(hearer, diverted)| match self.threads[hearer].lives {
            true if hearer == 0 => Err(Error::SendTimeout),
            true => Ok((hearer, diverted)),
            false => Err(Error::NoSuch),
        });
        assert_eq!(error, heard.err().map_or(0, |error| error as u64), "{from} shows {shown} to {to}");
        match heard {
            Ok((hearer, diverted)) => {
                self.check_heard(hearer, shown, to, diverted, true);
                self.check_others_wait(&[from, hearer]);
            }
            Err(_) => self.check_others_wait(&[from]),
        }
    }

    /// Calls. Returns who has got it, if anybody.
    fn begin_call(&self, from: usize, to: usize) -> Option<(usize, bool)> {
        if from == to {
            return None;
        }
        let caller = self.thread_ref(from);
        self.rouse(caller);
        let (hearer, diverted) = self.hearer(from, to);
        self.call(caller, IPC_CALL as u64, self.threads[to].uid.0, [7; WORDS]);
        if hearer == 0 || !self.threads[hearer].lives {
            return None;
        }
        self.check_heard(hearer, from, to, diverted, false);
        assert_eq!(caller.wait(), Wait::Closed(self.threads[to].uid));
        // What the fast path may answer is what came directly.
        assert!(caller.hot.accept.get() == NEVER || !diverted, "the fast path would cross a border");
        Some((hearer, diverted))
    }

    fn try_call(&self, from: usize, to: usize, by: usize) {
        let Some((hearer, _)) = self.begin_call(from, to) else { return };
        self.check_others_wait(&[from, hearer]);
        if by == from {
            return;
        }
        // Somebody sends to the caller: only the one who was called reaches it, and only directly.
        let error = self.send(by, from, None, false);
        let caller = self.thread_ref(from);
        let (reached, diverted) = self.hearer(by, from);
        let answers = by == to && !diverted;
        assert_eq!(caller.wait() == Wait::No, answers, "{by} answers a call of {from} to {to}");
        if answers {
            assert_eq!(error, 0);
            self.check_heard(from, to, from, false, false);
        } else if diverted && error == 0 {
            self.check_heard(reached, by, from, true, false);
        }
    }

    /// The chief who hears a call passes it on as the caller's; the answer comes to him again.
    fn try_pass_on(&self, from: usize, to: usize) {
        let Some((chief, true)) = self.begin_call(from, to) else { return };
        if chief == to || self.hearer(chief, to).1 || !self.may_show(chief, to, from) {
            return;
        }
        self.send_on(chief, to, from);
        self.check_heard(to, from, to, false, true);
        let called = self.thread_ref(to);
        // It is on the caller's shuttle, so that the fast path sees nothing wrong but the border.
        let mut live = Live {
            w: [5; WORDS],
            rdx: self.threads[from].uid.0,
            rax: IPC_REPLY_WAIT as u64,
            rip: 0,
            rsp: 0,
            r11: 0,
        };
        let taken = self.world.acting(called, || fast_path(&self.world.k, &mut live));
        assert!(!taken, "the fast path took an answer across a border");
        self.call(called, IPC_REPLY_WAIT as u64, self.threads[from].uid.0, [5; WORDS]);
        let (hearer, diverted) = self.hearer(to, from);
        assert!(diverted, "what does not go directly does not come so");
        assert_eq!(self.thread_ref(from).wait(), Wait::Closed(self.threads[to].uid));
        if hearer != chief {
            return;
        }
        self.check_heard(chief, to, from, true, false);
        // At last the caller has its answer, as the one's whom it called.
        self.world.k.unqueue_thread(self.thread_ref(chief));
        let error = self.send_shown(chief, from, to);
        assert_eq!(error, 0);
        self.check_heard(from, to, from, false, true);
        assert_eq!(self.thread_ref(from).frame.rax.get() as u32, Kind::Reply as u32);
    }

    fn send_on(&self, chief: usize, to: usize, shown: usize) {
        let sender = self.thread_ref(chief);
        self.world.k.unqueue_thread(sender);
        let mut w = [9; WORDS];
        w[5] = self.threads[shown].uid.0;
        (w[Frame::RBX], w[Frame::RBP]) = (self.threads[to].uid.0, 0);
        w[Frame::R15] = timeouts(Timeout::ZERO, Timeout::NEVER);
        self.call(sender, (Call::Ipc as u32 | op::SHOWN) as u64, self.threads[to].uid.0, w);
    }

    fn send_shown(&self, chief: usize, to: usize, shown: usize) -> u64 {
        let sender = self.thread_ref(chief);
        let mut w = [9; WORDS];
        w[5] = self.threads[shown].uid.0;
        (w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (0, 0, timeouts(Timeout::ZERO, Timeout::ZERO));
        self.call(sender, (Call::Ipc as u32 | op::SHOWN) as u64, self.threads[to].uid.0, w);
        sender.frame.rax.get()
    }
}

#[test]
fn kernel_and_model_of_clans_agree() {
    programs("clans", amount(4000), 60, operation, |program| {
        let mut trial = Trial::new();
        trial.rest_all();
        for op in program {
            trial.perform(op);
        }
    });
}

impl Trial {
    /// A chief answers as somebody else, in the form that takes a way that is known. Says whether it has arrived.
    fn answer_as(&self, chief: usize, to: usize, shown: usize) -> bool {
        let sender = self.thread_ref(chief);
        self.world.k.unqueue_thread(sender);
        let mut w = [7; WORDS];
        w[5] = self.threads[shown].uid.0;
        (w[Frame::RBX], w[Frame::RBP]) = (Uid::ANY.0, sender.receiving.standing.get().0);
        w[Frame::R15] = timeouts(Timeout::ZERO, Timeout::NEVER);
        self.call(sender, (Call::Ipc as u32 | op::SHOWN | op::TAKES_BLOCK) as u64, self.threads[to].uid.0, w);
        self.thread_ref(to).wait() == Wait::No
    }
}

#[test]
fn a_known_route_is_for_the_thread_that_was_called() {
    let trial = Trial::new();
    let [asks, chief, one, other] = [3, 2, 5, 6];
    let ask = |whom: usize, diverted: bool| {
        trial.rest_all();
        assert_eq!(trial.begin_call(asks, whom), Some((chief, diverted)));
    };
    for _ in 0..2 {
        ask(one, true);
        assert!(trial.answer_as(chief, asks, one), "the second time by the way of the first");
        trial.check_heard(asks, one, asks, false, true);
    }
    ask(other, true);
    assert!(!trial.answer_as(chief, asks, one), "it waits for another");
    ask(one, true);
    assert!(trial.answer_as(chief, asks, one));
    ask(chief, false);
    assert!(!trial.answer_as(chief, asks, chief), "a chief does not show itself");
}

#[test]
fn clans_are_nested_so_deeply_and_no_deeper() {
    let world = World::new(1 << 12);
    let mut above = world.root;
    for depth in 0..=DEPTH_MAX {
        let (rax, quota) =
            (Call::TaskControl as u64 | (task_op::CREATE as u64) << 8, 10 * (40 - depth as u64));
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI]) = (quota, 1);
        above.frame.rax.set(rax);
        above.frame.w.iter().zip(w).for_each(|(register, word)| register.set(word));
        let _ = world.acting(above, || syscall::system_call(&world.k, above, kernel::sched::Next::To));
        let expected = if depth < DEPTH_MAX { 0 } else { Error::Limit as u64 };
        assert_eq!(above.frame.rax.get(), expected, "the task at depth {}", depth + 1);
        if depth == DEPTH_MAX {
            break;
        }
        let task = world.task(TaskId(above.frame.w[Frame::RDI].get()));
        above = life::boot_thread(&world.k, task, 1);
    }
    world.k.check();
}

/// Where those who hand over memory have some.
const BASE: u64 = 0x4000_0000;

/// What is handed over through a door.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Handed {
    Identifier,
    Page,
    PageInBlock,
}

impl Trial {
    /// A page of memory.
    fn give_memory(&self, task: TaskRef, physical: u64) {
        let plan = Plan { space: abi::Space::Memory, from: physical, to: BASE, log2: 12, rights: Rights::RW };
        let mut progress = Progress::START;
        while space::map(&self.world.k, plan, self.world.sigma0, task, &mut progress, &mut 16).is_err() {}
        assert!(progress.whole);
    }

    fn write(&self, task: TaskRef, words: [u64; 2]) {
        arch::load_space(task.space.get());
        processor::copy::write_words(&self.world.k, task, (task, BASE), words).expect("it has memory");
        arch::load_space(self.world.root.hot.space.get());
    }

    /// A thread of a task that serves its doors, of which it makes two, and takes what comes.
    fn make_server(&self, task: usize) -> ThreadRef {
        let server = self.thread_ref(self.living(|thread| thread.task == task)[0]);
        self.rouse(server);
        for number in [4, 5] {
            let door = [number, 0x1000, 0, 0];
            assert_eq!(self.control(server, Call::DoorControl, door_op::CREATE, door).0, 0);
        }
        server
    }

    fn serve(&self, server: ThreadRef) {
        if server.wait() != Wait::Idle {
            self.rouse(server);
            self.control(server, Call::DoorControl, door_op::SERVE, [0; 4]);
        }
        assert_eq!(server.wait(), Wait::Idle);
    }

    /// One hands something to another, who has a window for it; `form` is a call or a return. Returns both ends' errors.
    fn hand(&self, from: ThreadRef, to: ThreadRef, what: Handed, [item, long]: [u32; 2]) -> [u64; 2] {
        let (page, window) = match what {
            Handed::Identifier => (Fpage::doors(7, 0, Rights::R), Fpage::doors(20, 0, Rights::RW)),
            _ => (Fpage::memory(BASE, 12, Rights::R), Fpage::memory(2 * BASE, 12, Rights::RW)),
        };
        to.receiving.standing.set(window);
        self.write(from.task(), [page.0, 0]);
        self.write(to.task(), [window.0, 0]);
        let mut w = [0; WORDS];
        if what == Handed::PageInBlock {
            (w[0], w[1]) = (Dope::used(0, 0, 1).0, BASE);
            self.call(from, long as u64, 6, w);
        } else {
            (w[6], w[7]) = (page.0, 0);
            self.call(from, item as u64, 6, w);
        }
        [from, to].map(|thread| match thread.frame.rax.get() as u32 {
            kind if kind >> 31 != 0 => 0,
            error => error as u64,
        })
    }
}

#[test]
fn nothing_is_handed_past_a_chief_through_a_door() {
    let denied = Error::Denied as u64;
    for (client, server) in (1..6).flat_map(|client| (1..6).map(move |server| (client, server))) {
        for what in [Handed::Identifier, Handed::Page, Handed::PageInBlock] {
            let trial = Trial::new();
            if client == server {
                continue;
            }
            let k = &trial.world.k;
            let server_task = trial.task_ref(server);
            let serving = trial.make_server(server);
            let calling = trial.thread_ref(trial.living(|thread| thread.task == client)[0]);
            trial.rouse(calling);
            for (i, thread) in [calling, serving].into_iter().enumerate() {
                trial.give_memory(thread.task(), 0x100_0000 * (i as u64 + 1));
                let room = Dope::room(0, 0, 1).0;
                let block = [0, BASE, room, Timeout::NEVER.0 as u64];
                assert_eq!(trial.control(thread, Call::ThreadControl, thread_op::SET_BLOCK, block).0, 0);
            }
            for (number, target) in [(4, 6), (5, 7)] {
                let to = At::new(calling.task(), target);
                while kernel::mem::doors::map(k, At::new(server_task, number), to, Rights::RW, &mut 16)
                    .is_err()
                {}
            }
            let (there, back) = (
                trial.chief_on_the_way(client, server).is_some(),
                trial.chief_on_the_way(server, client).is_some(),
            );
            trial.serve(serving);
            let [caller, _] = trial.hand(calling, serving, what, [DOOR_ITEM_CALL, DOOR_LONG_CALL]);
            assert_eq!(caller == denied, there, "{client} calls {server} with {what:?}");
            assert_eq!(calling.wait() == Wait::No, there, "{client} calls {server} with {what:?}");
            if !there {
                trial.call(serving, DOOR_RETURN as u64, 0, [0; WORDS]);
            }
            // The way back, to somebody who takes everything.
            trial.rouse(calling);
            trial.serve(serving);
            let form = DOOR_CALL & !op::TAKES_BLOCK & !op::TAKES_ITEM;
            trial.call(calling, form as u64, 6, [0; WORDS]);
            assert!(matches!(calling.wait(), Wait::Return(_)));
            let mine = At::new(serving.task(), 7);
            while kernel::mem::doors::map(k, At::new(server_task, 5), mine, Rights::RW, &mut 16).is_err() {}
            let ends = trial.hand(serving, calling, what, [DOOR_ITEM_RETURN, DOOR_LONG_RETURN]);
            let got_denied = ends.contains(&denied);
            assert_eq!(got_denied, back, "{server} returns to {client} with {what:?}: {ends:?}");
            for thread in [calling, serving].into_iter().filter(|thread| thread.wait() == Wait::No) {
                k.unqueue_thread(thread);
                thread.state.set(State::Inactive);
            }
        }
    }
}
