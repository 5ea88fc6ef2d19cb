//! Doors: a model written from `docs/spec/door.md`, and the kernel held against it.
//!
//! *Model.* Who has which identifier; what each thread does; which callers wait for a server of which task, in order; which doors
//! have lost their last identifier without anybody having been told. It knows no processor: each operation is one step.
//!
//! *Kernel.* The same operations as system calls of the threads themselves, of [`Machine`] with the fast path on and off. All threads are
//! equally urgent and no time passes, so whoever is told to do something does it, and then nothing moves any more.
//!
//! After each operation everything is compared that a user can see: every register of whoever came back from a call, what
//! all others wait for and for whom, which numbers are identifiers, of which door, and whether they may be handed on.
//!
//! Two things are the kernel's choice, and the model follows it if it keeps the rules: which of the free servers
//! gets a call, and which of several unreferenced doors is told of first. A door that loses its last identifier and gets another
//! in one operation may be told of or not; one that has none when the operation is over must be, if a server is free.

use crate::fast_path::{Live, Machine};
use crate::random::{Random, amount, programs};
use crate::world::Caches;
use abi::call::{
    ALERT_CLEAR, ALERT_SET, DOOR_CALL, DOOR_RETURN, DOORS_MAX, FLUSH_SELF, door_op, task_op, thread_op,
};
use abi::op;
use abi::{Call, Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, Operation, State, WORDS, Wait, special};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Tasks, and threads in each, that there are at most.
const TASKS: usize = 4;
const THREADS: usize = 5;

/// What all of them are as urgent as.
const PRIORITY: u64 = crate::world::PRIORITY as u64;

/// The numbers that operations are about: a few, at two borders of the tables, and what can be none.
const NUMBERS: [u32; 11] = [0, 1, 2, 3, 4, 5, 510, 511, 512, 513, DOORS_MAX - 1];

/// A door's entry.
fn entry(datum: u64) -> u64 {
    0x2000 + datum % 64 * 16
}

#[derive(Clone, Debug)]
enum Op {
    Create {
        who: u64,
        number: u32,
    },
    Serve {
        who: u64,
    },
    Shortage {
        who: u64,
    },
    Call {
        who: u64,
        number: u32,
        /// Whether an alert ends it.
        alertable: bool,
    },
    Return {
        who: u64,
    },
    Flush {
        who: u64,
        page: Fpage,
        own: bool,
    },
    /// Hands identifiers on, in a message.
    Hand {
        from: u64,
        to: u64,
        item: Fpage,
        window: Fpage,
    },
    Abort {
        who: u64,
    },
    Alert {
        who: u64,
        set: bool,
    },
    Stop {
        who: u64,
    },
    Resume {
        who: u64,
    },
    EndThread {
        who: u64,
    },
    EndOneself {
        who: u64,
    },
    EndTask {
        task: u64,
    },
    NewThread {
        task: u64,
    },
    NewTask,
}

fn number(random: &mut Random) -> u32 {
    if random.one_in(40) {
        return random.pick(&[DOORS_MAX, 1 << 31, u32::MAX, 1024]);
    }
    if random.one_in(4) { random.pick(&NUMBERS) } else { random.below(4) as u32 }
}

/// One number, mostly; sometimes some of them, or all.
fn page(random: &mut Random, rights: Rights) -> Fpage {
    let log2 = random.pick(&[0, 0, 0, 0, 1, 2, 10]);
    let first = random.pick(&NUMBERS) >> log2 << log2;
    let first = if random.one_in(4) { first } else { random.below(4) as u32 >> log2 << log2 };
    Fpage::doors(first, log2, rights)
}

fn operation(random: &mut Random) -> Op {
    let who = random.next() >> 16;
    match random.below(100) {
        0..7 => Op::Create { who, number: number(random) },
        7..17 => Op::Serve { who },
        17..19 => Op::Shortage { who },
        19..37 => Op::Call { who, number: number(random), alertable: random.one_in(3) },
        37..57 => Op::Return { who },
        57..63 => {
            let rights =
                random.pick(&[Rights::RW, Rights::RW, Rights::RW, Rights::R, Rights::W, Rights::NONE]);
            Op::Flush { who, page: page(random, rights), own: !random.one_in(3) }
        }
        63..77 => {
            let rights = random.pick(&[Rights::RW, Rights::RW, Rights::RW, Rights::RW, Rights::R, Rights::W]);
            let grant = if random.one_in(3) { Rights::GRANT } else { Rights::NONE };
            let item = page(random, rights.or(grant));
            let target = page(random, Rights::RW).base() >> 12 >> item.log2() << item.log2();
            let window = Fpage::doors(target as u32, item.log2(), Rights::RW);
            Op::Hand { from: who, to: random.next() >> 16, item, window }
        }
        77..84 => Op::Abort { who },
        84 => Op::Alert { who, set: random.one_in(2) },
        85..87 => Op::Stop { who },
        87..92 => Op::Resume { who },
        92 => Op::EndThread { who },
        93 => Op::EndOneself { who },
        94 if random.one_in(3) => Op::EndTask { task: who },
        94..99 => Op::NewThread { task: who },
        _ => Op::NewTask,
    }
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// Its own things.
    Runs,
    /// Waits for the return of this thread.
    Calls(Uid),
    /// Waits for a server of this task.
    Queues(TaskId),
    /// Waits for a shortage.
    Watches,
    /// Serves, and waits for a call.
    Idles,
}

/// A thread that serves.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// Where it goes on when it serves no more, and its stack.
    resume: (u64, u64),
    /// Which door's call is under way: that door, by its datum, if it is not gone.
    door: Option<u64>,
}

#[derive(Clone, Debug)]
struct Thread {
    task: TaskId,
    doing: Doing,
    is_stopped: bool,
    is_alerted: bool,
    service: Option<Service>,
    /// What it called with.
    sent: Live,
    /// What it has to find in its registers now, if it came back from a call.
    due: Option<Due>,
}

/// What a thread finds.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// All of this.
    All(Live),
    /// The result of a call that is no ipc, and at times another one.
    Control { error: u64, rdi: Option<u64>, at: (u64, u64) },
    /// A message.
    Arrived,
    /// That one was sent.
    Sent,
}

fn failed(error: Error, (rip, rsp): (u64, u64)) -> Due {
    Due::All(Live { rax: error as u64, rip, rsp, ..Live::default() })
}

/// An identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identifier {
    /// The door's datum; each has another.
    door: u64,
    may_pass: bool,
}

#[derive(Default)]
struct Model {
    threads: BTreeMap<Uid, Thread>,
    /// Callers that wait for a server, first come first served.
    tasks: BTreeMap<TaskId, VecDeque<Uid>>,
    identifiers: BTreeMap<(TaskId, u32), Identifier>,
    /// Who made it, and under which number he has it.
    doors: BTreeMap<u64, (TaskId, u32)>,
    /// Doors that lost their last identifier, which their makers have not been told.
    lost: BTreeSet<u64>,
}

/// What the kernel did with the free servers: what they find in their registers, if they are free no more.
type Started = BTreeMap<Uid, Live>;

impl Model {
    fn thread(&mut self, uid: Uid) -> &mut Thread {
        self.threads.get_mut(&uid).expect("it is there")
    }

    fn finds(&mut self, uid: Uid, due: Due) {
        let thread = self.thread(uid);
        thread.doing = Doing::Runs;
        thread.due = Some(due);
    }

    /// The error of an ipc or call.
    fn fails(&mut self, uid: Uid, error: Error) {
        let at = self.after_call(uid);
        self.finds(uid, failed(error, at));
    }

    /// The result of a call that is no ipc.
    fn done(&mut self, uid: Uid, error: Option<Error>, rdi: Option<u64>) {
        let at = self.after_call(uid);
        self.finds(uid, Due::Control { error: error.map_or(0, |error| error as u64), rdi, at });
    }

    fn after_call(&mut self, uid: Uid) -> (u64, u64) {
        let sent = self.thread(uid).sent;
        (sent.rip + 2, sent.rsp)
    }

    fn may_serve(&self, task: TaskId) -> impl Iterator<Item = Uid> {
        let is_free =
            move |thread: &Thread| thread.task == task && thread.doing == Doing::Idles && !thread.is_stopped;
        self.threads.iter().filter(move |(_, thread)| is_free(thread)).map(|(&uid, _)| uid)
    }

    fn is_referenced(&self, door: u64) -> bool {
        let root = self.doors[&door];
        self.identifiers.iter().any(|(&place, identifier)| identifier.door == door && place != root)
    }

    fn is_busy(&self, door: u64) -> bool {
        self.threads.values().filter_map(|thread| thread.service).any(|service| service.door == Some(door))
    }

    /// A thread is alerted, and so are all that follow in its chain; what they began as alertable ends.
    fn alert(&mut self, first: Uid) {
        let mut next = Some(first).filter(|uid| self.threads[uid].doing != Doing::Idles);
        while let Some(uid) = next {
            let thread = self.thread(uid);
            thread.is_alerted = true;
            let (doing, is_alertable) = (thread.doing, thread.sent.rax as u32 & op::ALERTABLE == 0);
            next = match doing {
                Doing::Calls(server) => Some(server),
                _ => None,
            };
            if is_alertable && matches!(doing, Doing::Calls(_) | Doing::Queues(_)) {
                assert_eq!(self.abort(uid), None);
            }
        }
    }

    /// A thread is going to end: whom it called is alerted.
    fn alert_called(&mut self, uid: Uid) {
        if let Doing::Calls(server) = self.threads[&uid].doing {
            self.alert(server);
        }
    }

    /// An identifier goes which is not its maker's.
    fn remove(&mut self, place: (TaskId, u32), started: &Started) {
        let door = self.identifiers.remove(&place).expect("it is one").door;
        if !self.is_referenced(door) {
            self.lost.insert(door);
            let maker = self.doors[&door].0;
            self.tell(maker, started);
        }
    }

    /// A door is gone, and all identifiers of it.
    fn remove_door(&mut self, door: u64) {
        self.doors.remove(&door);
        self.lost.remove(&door);
        self.identifiers.retain(|_, identifier| identifier.door != door);
        for service in self.threads.values_mut().filter_map(|thread| thread.service.as_mut()) {
            service.door = service.door.filter(|&other| other != door);
        }
    }

    /// A free server begins with a call or message; it finds this.
    fn begin(&mut self, server: Uid, door: u64, rax: u64, w: [u64; WORDS]) {
        let service = self.thread(server).service.as_mut().expect("it serves");
        service.door = Some(door);
        let rsp = service.resume.1;
        self.finds(server, Due::All(Live { w, rdx: door, rax, rip: entry(door), rsp, ..Live::default() }));
    }

    /// Unreferenced doors that the kernel has told of, if the moment is right.
    fn tell(&mut self, task: TaskId, started: &Started) {
        let told = self.may_serve(task).find_map(|server| {
            let found = started.get(&server).filter(|found| found.rax == Kind::Unreferenced as u64)?;
            self.is_to_be_told(found.rdx, task).then_some((server, found.rdx))
        });
        if let Some((server, door)) = told {
            self.lost.remove(&door);
            self.begin(server, door, Kind::Unreferenced as u64, [0; WORDS]);
        }
    }

    fn is_to_be_told(&self, door: u64, task: TaskId) -> bool {
        self.lost.contains(&door)
            && self.doors[&door].0 == task
            && !self.is_referenced(door)
            && !self.is_busy(door)
    }

    /// An operation is over: what waits for a server of a task gets one, if there is one.
    fn settle(&mut self, task: TaskId, started: &Started) {
        while self.may_serve(task).next().is_some() {
            if let Some(caller) = self.tasks[&task].front().copied() {
                self.tasks.get_mut(&task).expect("it is there").pop_front();
                self.serve_caller(task, caller, started);
            } else if let Some(&door) = self.lost.iter().find(|&&door| self.is_to_be_told(door, task)) {
                let count = self.lost.len();
                self.tell(task, started);
                assert!(self.lost.len() < count, "door {door} is unreferenced, and a server free");
            } else {
                break;
            }
        }
    }

    fn serve_caller(&mut self, task: TaskId, caller: Uid, started: &Started) {
        let thread = self.threads[&caller].clone();
        let number = thread.sent.rdx as u32;
        let found = self.identifiers.get(&(thread.task, number)).map(|identifier| identifier.door);
        let Some(door) = found.filter(|door| self.doors[door].0 == task) else {
            return self.no_such(caller);
        };
        // The words say who called.
        let server = self
            .may_serve(task)
            .find(|server| started.get(server).is_some_and(|found| found.w == thread.sent.w));
        let server = server.unwrap_or_else(|| panic!("{caller:?} is not served, and a server free"));
        let rax = thread.sent.rax >> 32 << 32 | Kind::DoorCall as u64;
        self.begin(server, door, rax, thread.sent.w);
        self.thread(caller).doing = Doing::Calls(server);
        self.thread(server).is_alerted = thread.is_alerted;
    }

    fn no_such(&mut self, caller: Uid) {
        let sent = self.thread(caller).sent;
        let (rax, rdx) = (Error::NoSuch as u64, sent.rdx as u32 as u64);
        self.finds(caller, Due::All(Live { rax, rdx, rip: sent.rip + 2, ..sent }));
    }

    fn create(&mut self, who: Uid, number: u32, door: u64) {
        let place = (self.thread(who).task, number);
        let error = if number >= DOORS_MAX {
            Some(Error::BadArgument)
        } else if self.identifiers.contains_key(&place) {
            Some(Error::BadState)
        } else {
            self.doors.insert(door, place);
            self.identifiers.insert(place, Identifier { door, may_pass: true });
            None
        };
        self.done(who, error, None);
    }

    fn serve(&mut self, who: Uid) {
        if self.thread(who).service.is_some() {
            return self.done(who, Some(Error::BadState), None);
        }
        let resume = self.after_call(who);
        let thread = self.thread(who);
        thread.service = Some(Service { resume, door: None });
        thread.doing = Doing::Idles;
        thread.is_alerted = false;
    }

    fn shortage(&mut self, who: Uid) {
        let task = self.thread(who).task;
        let watches = |thread: &Thread| thread.task == task && thread.doing == Doing::Watches;
        if self.threads.values().any(watches) {
            self.done(who, Some(Error::BadState), None);
        } else if self.tasks[&task].is_empty() {
            self.thread(who).doing = Doing::Watches;
        } else {
            self.done(who, None, Some(self.servers(task)));
        }
    }

    fn servers(&self, task: TaskId) -> u64 {
        self.threads.values().filter(|thread| thread.task == task && thread.service.is_some()).count() as u64
    }

    fn call(&mut self, who: Uid) {
        let place = (self.thread(who).task, self.thread(who).sent.rdx as u32);
        let Some(identifier) = self.identifiers.get(&place) else { return self.no_such(who) };
        let task = self.doors[&identifier.door].0;
        let thread = &self.threads[&who];
        if thread.is_alerted && thread.sent.rax as u32 & op::ALERTABLE == 0 {
            return self.fails(who, Error::SendAborted);
        }
        self.thread(who).doing = Doing::Queues(task);
        self.tasks.get_mut(&task).expect("it is there").push_back(who);
        if self.may_serve(task).next().is_some() {
            return;
        }
        let watcher = self.threads.iter().find(|(_, it)| it.task == task && it.doing == Doing::Watches);
        if let Some(watcher) = watcher.map(|(&uid, _)| uid) {
            self.done(watcher, None, Some(self.servers(task)));
        }
    }

    fn give_back(&mut self, who: Uid) {
        let Some(service) = self.thread(who).service.as_mut() else {
            return self.fails(who, Error::BadState);
        };
        service.door = None;
        self.thread(who).doing = Doing::Idles;
        self.thread(who).is_alerted = false;
        let sent = self.thread(who).sent;
        if let Some(caller) = self.caller_of(who) {
            let (rip, rsp) = self.after_call(caller);
            let rax = sent.rax >> 32 << 32 | Kind::DoorReturn as u64;
            self.finds(caller, Due::All(Live { w: sent.w, rdx: 0, rax, rip, rsp, ..Live::default() }));
        }
    }

    fn caller_of(&self, server: Uid) -> Option<Uid> {
        self.threads.iter().find(|(_, thread)| thread.doing == Doing::Calls(server)).map(|(&uid, _)| uid)
    }

    fn flush(&mut self, who: Uid, page: Fpage, own: bool, started: &Started) {
        let task = self.thread(who).task;
        for place in numbers(page).map(|number| (task, number)) {
            let Some(&Identifier { door, .. }) = self.identifiers.get(&place) else { continue };
            let is_root = self.doors[&door] == place;
            if !page.rights().has(Rights::R) {
                if page.rights().has(Rights::W) && own {
                    self.identifiers.get_mut(&place).expect("it is one").may_pass = false;
                }
            } else if is_root && own {
                self.remove_door(door);
            } else if is_root {
                let others =
                    |(&at, it): (&(TaskId, u32), &Identifier)| (it.door == door && at != place).then_some(at);
                let others: Vec<_> = self.identifiers.iter().filter_map(others).collect();
                others.into_iter().for_each(|other| self.remove(other, started));
            } else if own {
                self.remove(place, started);
            }
        }
        let at = self.after_call(who);
        self.finds(who, Due::Control { error: 0, rdi: None, at });
    }

    fn hand(&mut self, [from, to]: [Uid; 2], item: Fpage, window: Fpage, started: &Started) {
        let (giver, taker) = (self.thread(from).task, self.thread(to).task);
        for (number, target) in numbers(item).zip(numbers(window)) {
            let (source, target) = ((giver, number), (taker, target));
            let is_given = |it: &&Identifier| it.may_pass && item.rights().has(Rights::R);
            let Some(&Identifier { door, .. }) = self.identifiers.get(&source).filter(is_given) else {
                continue;
            };
            let is_granted = item.rights().has(Rights::GRANT) && self.doors[&door] != source;
            if source == target || self.doors[&door] == target {
                // It is there.
                if is_granted && source != target {
                    self.remove(source, started);
                }
                continue;
            }
            if let Some(&Identifier { door: old, .. }) = self.identifiers.get(&target) {
                // What the receiver had there is gone, with all that was handed on from it.
                if self.doors[&old] == target { self.remove_door(old) } else { self.remove(target, started) }
            }
            self.identifiers.insert(target, Identifier { door, may_pass: item.rights().has(Rights::W) });
            if is_granted {
                self.identifiers.remove(&source);
            }
        }
        self.finds(from, Due::Sent);
        self.finds(to, Due::Arrived);
    }

    fn abort(&mut self, who: Uid) -> Option<Error> {
        match self.thread(who).doing {
            Doing::Runs => return Some(Error::BadState),
            Doing::Calls(_) => self.fails(who, Error::ReceiveAborted),
            Doing::Queues(task) => {
                self.leave_queue(who, task);
                self.fails(who, Error::SendAborted);
            }
            Doing::Watches => self.done(who, Some(Error::ReceiveAborted), None),
            Doing::Idles => {
                let service = self.thread(who).service.take().expect("it serves");
                self.finds(who, failed(Error::ReceiveAborted, service.resume));
            }
        }
        None
    }

    fn leave_queue(&mut self, who: Uid, task: TaskId) {
        self.tasks.get_mut(&task).expect("it is there").retain(|&other| other != who);
    }

    fn end(&mut self, who: Uid) {
        self.alert_called(who);
        if let Doing::Queues(task) = self.thread(who).doing {
            self.leave_queue(who, task);
        }
        if let Some(caller) = self.caller_of(who) {
            self.fails(caller, Error::PartnerDied);
        }
        self.threads.remove(&who);
    }

    fn end_task(&mut self, task: TaskId, started: &Started) {
        let mine: Vec<Uid> =
            self.threads.iter().filter(|(_, it)| it.task == task).map(|(&uid, _)| uid).collect();
        mine.iter().for_each(|&thread| self.alert_called(thread));
        mine.into_iter().for_each(|thread| self.end(thread));
        for caller in self.tasks.remove(&task).expect("it is there") {
            self.fails(caller, Error::PartnerDied);
        }
        let made: Vec<u64> =
            self.doors.iter().filter(|(_, root)| root.0 == task).map(|(&door, _)| door).collect();
        made.into_iter().for_each(|door| self.remove_door(door));
        let held: Vec<_> = self.identifiers.keys().filter(|place| place.0 == task).copied().collect();
        held.into_iter().for_each(|place| self.remove(place, started));
    }
}

fn numbers(page: Fpage) -> impl Iterator<Item = u32> {
    let first = (page.base() >> 12) as u32;
    first..first + (1 << page.log2())
}

/// How often what is worth testing happened.
#[derive(Default, Debug)]
struct Counts {
    returned: usize,
    told: usize,
    died: usize,
    aborted: usize,
    waited: usize,
    alerted: usize,
    accepted: usize,
    done: usize,
}

/// Both sides.
struct Both {
    machine: Machine,
    root: Uid,
    model: Model,
    /// What threads found when they came back from their last call.
    found: Started,
    /// So many numbers were given out, for doors, words and stacks.
    names: u64,
    /// Operations for which there was somebody.
    done: usize,
}

impl Both {
    fn new(fast: bool) -> Both {
        let machine = Machine::new(4096, fast, Caches::None);
        let root = machine.world.root.uid();
        let mut both =
            Both { machine, root, model: Model::default(), found: Started::new(), names: 0, done: 0 };
        for _ in 0..3 {
            both.new_task();
            for task in 0..3 {
                both.new_thread(task);
            }
        }
        both
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    fn kernels(&self, uid: Uid) -> ThreadRef {
        self.machine.world.k.thread(uid).expect("it is there")
    }

    /// Notes what the thread found that is in user mode now.
    fn note(&mut self) {
        if self.machine.in_user_mode() {
            self.found.entry(self.machine.world.current().uid()).or_insert(self.machine.live);
        }
    }

    /// Until the thread that runs is in user mode.
    fn go_on(&mut self) {
        self.note();
        while self.machine.world.is_busy() {
            self.machine.go_on();
            self.note();
        }
    }

    fn call(&mut self, rax: u64, rdx: u64, w: [u64; WORDS]) {
        (self.machine.live.rax, self.machine.live.rdx, self.machine.live.w) = (rax, rdx, w);
        self.machine.system_call();
        self.go_on();
    }

    fn control(&mut self, call: Call, operation: u32, [rdi, rsi, rdx, r10]: [u64; 4]) {
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI], w[Frame::R10]) = (rdi, rsi, r10);
        self.call(call as u64 | (operation as u64) << 8, rdx, w);
    }

    /// Brings a thread that can run to the processor.
    fn switch_to(&mut self, uid: Uid) {
        if self.machine.world.current().uid() != uid {
            self.control(Call::ThreadSwitch, 0, [uid.0, 0, 0, 0]);
        }
        assert_eq!(self.machine.world.current().uid(), uid, "it does not run");
    }

    /// Brings a thread to the processor, and from now on it is of interest what it finds. Returns its registers.
    fn take_turn(&mut self, uid: Uid) -> Live {
        self.switch_to(uid);
        self.found.remove(&uid);
        self.machine.live
    }

    /// A thread's call, which the model knows of.
    fn act(&mut self, who: Uid, rax: u64, rdx: u64, w: [u64; WORDS]) {
        let live = self.take_turn(who);
        self.model.thread(who).sent = Live { w, rdx, rax, ..live };
        self.call(rax, rdx, w);
    }

    fn act_control(&mut self, who: Uid, call: Call, operation: u32, [rdi, rsi, rdx]: [u64; 3]) {
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI]) = (rdi, rsi);
        self.act(who, call as u64 | (operation as u64) << 8, rdx, w);
    }

    /// A call of the first thread. Its result.
    fn command(&mut self, call: Call, operation: u32, arguments: [u64; 4]) -> Result<u64, u64> {
        self.take_turn(self.root);
        self.control(call, operation, arguments);
        let live = self.found[&self.root];
        if live.rax == 0 { Ok(live.w[Frame::RDI]) } else { Err(live.rax) }
    }

    fn new_task(&mut self) {
        if self.model.tasks.len() < TASKS {
            let made = self.command(Call::TaskControl, task_op::CREATE, [150, PRIORITY, 0, 0]);
            self.model.tasks.insert(TaskId(made.expect("there is memory")), VecDeque::new());
        }
    }

    fn new_thread(&mut self, task: u64) {
        let Some(task) = nth(self.model.tasks.keys().copied(), task) else { return };
        if self.model.threads.values().filter(|thread| thread.task == task).count() == THREADS {
            return;
        }
        let root = self.root.0;
        let made = self.command(Call::ThreadControl, thread_op::CREATE, [task.0, PRIORITY, root, root]);
        let uid = Uid(made.expect("there is memory"));
        let stack = 0x10_0000 + 0x100 * self.name();
        let started = self.command(Call::ThreadControl, thread_op::START, [uid.0, 0x1000, stack, 0]);
        started.expect("it can start");
        let sent = Live::default();
        let thread = Thread {
            task,
            doing: Doing::Runs,
            is_stopped: false,
            is_alerted: false,
            service: None,
            sent,
            due: None,
        };
        self.model.threads.insert(uid, thread);
    }

    /// A thread that can act.
    fn actor(&self, number: u64, suits: impl Fn(&Thread) -> bool) -> Option<Uid> {
        let can = |thread: &Thread| thread.doing == Doing::Runs && !thread.is_stopped;
        let all = self.model.threads.iter().filter(|(_, thread)| can(thread) && suits(thread));
        nth(all.map(|(&uid, _)| uid), number)
    }

    fn any_actor(&self, number: u64) -> Option<Uid> {
        self.actor(number, |_| true)
    }

    /// Mostly one of the identifiers that an actor's task has.
    fn likely(&self, who: u64, number: u32) -> Option<u32> {
        let task = self.model.threads[&self.any_actor(who)?].task;
        let has = self.model.identifiers.keys().filter(|place| place.0 == task).map(|place| place.1);
        Some(if who.is_multiple_of(5) { number } else { nth(has, who / 5).unwrap_or(number) })
    }

    /// A page of such identifiers.
    fn likely_page(&self, who: u64, page: Fpage) -> Option<Fpage> {
        let first = self.likely(who, (page.base() >> 12) as u32)? >> page.log2() << page.log2();
        Some(Fpage::doors(first, page.log2(), page.rights()))
    }

    /// Any thread at all, but rather one that waits.
    fn anybody(&self, number: u64) -> Option<Uid> {
        let waits = |thread: &Thread| thread.doing != Doing::Runs || number.is_multiple_of(4);
        nth(self.model.threads.iter().filter(|(_, it)| waits(it)).map(|(&uid, _)| uid), number / 4)
    }

    /// One operation in the kernel, and then in the model. `None` if there is nobody to do it.
    fn perform(&mut self, op: &Op) -> Option<()> {
        match *op {
            Op::Create { who, number } => {
                let (who, door) = (self.any_actor(who)?, self.name());
                let arguments = [number as u64, entry(door), door];
                self.act_control(who, Call::DoorControl, door_op::CREATE, arguments);
                self.model.create(who, number, door);
            }
            Op::Serve { who } => {
                let is_likely = |thread: &Thread| thread.service.is_none() || who.is_multiple_of(8);
                let who = self.actor(who / 8, is_likely)?;
                self.act_control(who, Call::DoorControl, door_op::SERVE, [0; 3]);
                self.model.serve(who);
            }
            Op::Shortage { who } => {
                let who = self.any_actor(who)?;
                self.act_control(who, Call::DoorControl, door_op::SHORTAGE, [0; 3]);
                self.model.shortage(who);
            }
            Op::Call { who, number, alertable } => {
                let (number, who) = (self.likely(who, number)?, self.any_actor(who)?);
                let name = self.name();
                let rdx = (name << 32) | number as u64;
                let form = if alertable { DOOR_CALL & !op::ALERTABLE } else { DOOR_CALL };
                self.act(who, form as u64 | name << 32, rdx, [name; WORDS]);
                self.model.call(who);
            }
            Op::Return { who } => {
                let is_likely = |thread: &Thread| thread.service.is_some() || who.is_multiple_of(16);
                let (who, name) = (self.actor(who / 16, is_likely)?, self.name());
                self.act(who, DOOR_RETURN as u64 | name << 32, name, [name; WORDS]);
                self.model.give_back(who);
            }
            Op::Flush { who, page, own } => {
                let page = self.likely_page(who, page)?;
                let who = self.any_actor(who)?;
                let flags = if own { FLUSH_SELF } else { 0 };
                self.act_control(who, Call::Flush, 0, [page.0, flags, 0]);
                let found = self.settle();
                self.model.flush(who, page, own, &found);
            }
            Op::Hand { from, to, item, window } => {
                let both = [self.any_actor(from)?, self.any_actor(to)?];
                if both[0] == both[1] {
                    return None;
                }
                let item = self.likely_page(from, item)?;
                self.hand(both, item, window);
                let found = self.settle();
                self.model.hand(both, item, window, &found);
            }
            Op::Abort { who } => {
                let who = self.anybody(who)?;
                let got = self.command(Call::ThreadControl, thread_op::ABORT, [who.0, 0, 0, 0]);
                let expected = self.model.abort(who).map(|error| error as u64);
                assert_eq!(got.err(), expected, "abort of {who:?}");
            }
            Op::Alert { who, set } => {
                let who = self.anybody(who)?;
                let what = if set { ALERT_SET } else { ALERT_CLEAR };
                let was = self.command(Call::ThreadControl, thread_op::ALERT, [who.0, what, 0, 0]);
                assert_eq!(was, Ok(self.model.thread(who).is_alerted as u64), "{who:?} was alerted");
                match set {
                    true => self.model.alert(who),
                    false => self.model.thread(who).is_alerted = false,
                }
            }
            Op::Stop { who } => {
                let who = self.anybody(who)?;
                self.command(Call::ThreadControl, thread_op::STOP, [who.0, 0, 0, 0]).expect("it is ours");
                self.model.thread(who).is_stopped = true;
            }
            Op::Resume { who } => {
                let stopped = self.model.threads.iter().filter(|(_, thread)| thread.is_stopped);
                let who = nth(stopped.map(|(&uid, _)| uid), who)?;
                self.command(Call::ThreadControl, thread_op::RESUME, [who.0, 0, 0, 0]).expect("it is ours");
                self.model.thread(who).is_stopped = false;
            }
            Op::EndThread { who } => {
                let who = self.anybody(who)?;
                let ended = self.command(Call::ThreadControl, thread_op::DESTROY, [who.0, 0, 0, 0]);
                ended.expect("it is ours");
                self.model.end(who);
            }
            Op::EndOneself { who } => {
                let who = self.any_actor(who)?;
                self.act_control(who, Call::ThreadControl, thread_op::DESTROY, [0; 3]);
                self.model.end(who);
            }
            Op::EndTask { task } => {
                let task = nth(self.model.tasks.keys().copied(), task)?;
                let ended = self.command(Call::TaskControl, task_op::DESTROY, [task.0, 0, 0, 0]);
                ended.expect("it is ours");
                let found = self.settle();
                self.model.end_task(task, &found);
            }
            Op::NewThread { task } => self.new_thread(task),
            Op::NewTask => self.new_task(),
        }
        Some(())
    }

    fn hand(&mut self, [from, to]: [Uid; 2], item: Fpage, window: Fpage) {
        let ipc = |dest: Uid, from: Uid, window: Fpage, item: Fpage, timeouts| {
            let mut w = [0; WORDS];
            (w[6], w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (item.0, from.0, window.0, timeouts);
            (dest.0, w)
        };
        let forever = abi::call::timeouts(Timeout::NEVER, Timeout::NEVER);
        let at_once = abi::call::timeouts(Timeout::ZERO, Timeout::ZERO);
        let (rdx, w) = ipc(Uid::NIL, from, window, Fpage::NIL, forever);
        self.act(to, Call::Ipc as u64, rdx, w);
        let (rdx, w) = ipc(to, Uid::NIL, Fpage::NIL, item, at_once);
        self.act(from, (Call::Ipc as u32 | op::ITEM) as u64, rdx, w);
    }

    /// Lets whoever is in the middle of something come to its end. Returns what everybody found who waits no more.
    fn settle(&mut self) -> Started {
        let is_busy = |thread: &ThreadRef| {
            thread.is_ready() && !thread.is_stopped() && thread.operation.get() != Operation::None
        };
        while let Some(busy) = self.living().into_iter().find(is_busy) {
            self.switch_to_busy(busy.uid());
        }
        let mut found = self.found.clone();
        for thread in self.living().into_iter().filter(|thread| thread.is_ready()) {
            found.entry(thread.uid()).or_insert_with(|| registers(thread));
        }
        found
    }

    fn switch_to_busy(&mut self, uid: Uid) {
        self.control(Call::ThreadSwitch, 0, [uid.0, 0, 0, 0]);
        if self.machine.world.current().uid() != uid && self.kernels(uid).operation.get() != Operation::None {
            panic!("{uid:?} does not go on");
        }
    }

    fn living(&self) -> Vec<ThreadRef> {
        self.model.threads.keys().filter_map(|&uid| self.machine.world.k.thread(uid)).collect()
    }

    fn step(&mut self, op: &Op) {
        self.done += self.perform(op).is_some() as usize;
        let found = self.settle();
        let tasks: Vec<TaskId> = self.model.tasks.keys().copied().collect();
        tasks.into_iter().for_each(|task| self.model.settle(task, &found));
        // Whoever waits now will find something else.
        let waits = |uid: &Uid| self.model.threads.get(uid).is_some_and(|it| it.doing != Doing::Runs);
        let stale: Vec<Uid> = self.found.keys().filter(|uid| waits(uid)).copied().collect();
        assert!(
            stale.is_empty(),
            "{stale:?} found something, and should wait: {:?}",
            self.model.threads[&stale[0]]
        );
        self.found = found;
    }

    fn compare(&mut self, counts: &mut Counts) {
        let uids: Vec<Uid> = self.model.threads.keys().copied().collect();
        for uid in uids {
            let kernels = self.kernels(uid);
            let due = self.model.thread(uid).due.take();
            let models = &self.model.threads[&uid];
            assert_eq!(kernels.is_stopped(), models.is_stopped, "{uid:?} is stopped");
            let (wait, state) = (kernels.wait(), kernels.state.get());
            let agree = match models.doing {
                Doing::Runs => kernels.is_ready() && kernels.operation.get() == Operation::None,
                Doing::Calls(server) => wait == Wait::Return(server),
                Doing::Queues(task) => {
                    state == State::Queueing && kernels.queueing_at.get().map(|it| it.id.get()) == Some(task)
                }
                Doing::Watches => state == State::Watching,
                Doing::Idles => wait == Wait::Idle,
            };
            assert!(agree, "{uid:?} is {state:?} and waits {wait:?}, and should be {models:?}");
            assert_eq!(kernels.server.pool.get().is_some(), models.service.is_some(), "{uid:?} serves");
            let is_alerted = kernels.special.get() & special::ALERTED != 0;
            assert_eq!(is_alerted, models.is_alerted, "{uid:?} is alerted");
            counts.alerted += is_alerted as usize;
            counts.waited += matches!(models.doing, Doing::Queues(_)) as usize;
            if let Some(due) = due {
                compare_registers(uid, self.found[&uid], due, counts);
            }
        }
        self.compare_identifiers();
        counts.accepted = self.machine.accepted;
    }

    fn compare_identifiers(&self) {
        let k = &self.machine.world.k;
        for &task in self.model.tasks.keys() {
            for number in NUMBERS {
                let node = kernel::mem::doors::find(k, self.machine.world.task(task), number as u64);
                let kernels =
                    node.map(|it| Identifier { door: it.door().door_target().1, may_pass: it.may_pass() });
                let models = self.model.identifiers.get(&(task, number)).copied();
                assert_eq!(kernels, models, "identifier {number} of {task:?}");
            }
        }
    }
}

/// What a thread that could run would find.
fn registers(thread: ThreadRef) -> Live {
    let frame = &thread.frame;
    Live {
        w: std::array::from_fn(|i| frame.w[i].get()),
        rdx: frame.rdx.get(),
        rax: frame.rax.get(),
        rip: thread.user_ip(),
        rsp: thread.user_sp(),
        r11: frame.r11.get(),
    }
}

fn compare_registers(uid: Uid, found: Live, due: Due, counts: &mut Counts) {
    let agree = match due {
        Due::All(all) => {
            let numbers = |live: Live| (live.rax, live.rdx, live.rip, live.rsp);
            numbers(found) == numbers(all) && found.w == all.w
        }
        Due::Control { error, rdi, at } => {
            found.rax == error
                && rdi.is_none_or(|rdi| found.w[Frame::RDI] == rdi)
                && (found.rip, found.rsp) == at
        }
        Due::Arrived => Kind::from_eax(found.rax as u32) == Some(Kind::Reply),
        Due::Sent => found.rax == 0,
    };
    assert!(agree, "{uid:?} found {found:x?}, and should {due:x?}");
    let Due::All(all) = due else { return };
    counts.returned += (all.rax as u32 == Kind::DoorReturn as u32) as usize;
    counts.told += (all.rax == Kind::Unreferenced as u64) as usize;
    counts.died += (all.rax == Error::PartnerDied as u64) as usize;
    counts.aborted +=
        (all.rax == Error::SendAborted as u64 || all.rax == Error::ReceiveAborted as u64) as usize;
}

fn nth<T>(mut all: impl Iterator<Item = T> + Clone, number: u64) -> Option<T> {
    let count = all.clone().count() as u64;
    if count == 0 { None } else { all.nth((number % count) as usize) }
}

fn run(program: &[Op], fast: bool, counts: &mut Counts) {
    let trace = std::env::var_os("TERN_TRACE").is_some();
    let mut both = Both::new(fast);
    let accepted = counts.accepted;
    for (i, op) in program.iter().enumerate() {
        if trace {
            eprintln!("{i}: {op:?}");
        }
        both.step(op);
        both.compare(counts);
        if i % 16 == 0 || i + 1 == program.len() {
            both.machine.world.check();
        }
    }
    counts.accepted += accepted;
    counts.done += both.done;
    while !both.model.tasks.is_empty() {
        both.step(&Op::EndTask { task: 0 });
        both.compare(&mut Counts::default());
    }
    both.machine.world.check();
    assert!(both.model.lost.is_empty() && both.model.identifiers.is_empty(), "everything has ended");
}

fn compare_with(fast: bool, name: &str, steps: usize, len: usize) -> Counts {
    let mut counts = Counts::default();
    programs(name, steps, len, operation, |program| run(program, fast, &mut counts));
    counts
}

fn assert_much_happened(counts: &Counts, steps: usize) {
    let Counts { returned, told, died, aborted, waited, alerted, done, .. } = *counts;
    let is_much = returned > steps / 30
        && told > steps / 300
        && died > steps / 700
        && aborted > steps / 30
        && waited > steps / 3
        && alerted > steps / 10
        && done > steps / 2;
    assert!(is_much, "next to nothing happened in {steps} steps: {counts:?}");
}

#[test]
fn kernel_and_model_of_doors_agree_on_the_slow_path() {
    let steps = amount(100_000);
    let counts = compare_with(false, "doors", steps, 500);
    assert_much_happened(&counts, steps);
}

#[test]
fn kernel_and_model_of_doors_agree_on_the_fast_path() {
    let steps = amount(100_000);
    let counts = compare_with(true, "doors, fast path", steps, 500);
    assert_much_happened(&counts, steps);
    assert!(counts.accepted > steps / 20, "the fast path accepted next to nothing: {counts:?}");
}

#[test]
fn miri_kernel_and_model_of_doors_agree() {
    let (steps, len) = if cfg!(miri) { (12, 12) } else { (1000, 500) };
    compare_with(true, "doors, small", steps, len);
}

/// One identifier, in the place of the same number.
fn hand_on(from: u64, to: u64, rights: Rights) -> Op {
    Op::Hand { from, to, item: Fpage::doors(0, 0, rights), window: Fpage::doors(0, 0, Rights::RW) }
}

/// Runs a program both ways. Threads are named by their place among those that can run: at first 0 to 3 and 5 are of the first
/// task, 4 and 6 of the second, 7 of the third. Those that are multiples of five choose the number themselves.
fn run_both_ways(program: &[Op]) {
    for fast in [false, true] {
        run(program, fast, &mut Counts::default());
    }
}

#[test]
fn a_server_that_served_a_door_last_is_told_that_it_is_unreferenced() {
    run_both_ways(&[
        Op::Create { who: 0, number: 0 },
        Op::Serve { who: 8 },
        Op::Call { who: 0, number: 0, alertable: false },
        Op::Return { who: 0 },
        hand_on(0, 3, Rights::RW),
        Op::Flush { who: 10, page: Fpage::doors(0, 0, Rights::RW), own: true },
    ]);
}

#[test]
fn a_door_that_comes_back_to_its_place_is_not_lost() {
    for rights in [Rights::RW, Rights::RW.or(Rights::GRANT)] {
        run_both_ways(&[
            Op::Create { who: 0, number: 0 },
            hand_on(0, 4, Rights::RW),
            hand_on(0, 7, Rights::RW),
            hand_on(20, 0, rights),
        ]);
    }
}
