//! Inheritance of priorities: a reference in a few lines, and the kernel held against it.
//!
//! *Reference.* Each thread has a priority and works on somebody's time, its own or that of the one who called first; it runs, waits for anybody,
//! has called somebody, or stands in somebody's queue. A thread that runs is as urgent as the most urgent of those on whose time
//! are it and all that wait for it, however indirectly. The reference knows no shuttles, no stored values, and no events.
//!
//! *Kernel.* The same as system calls of the threads themselves. Whoever is the most urgent acts, so the scheduler decides with each step who
//! is next, and must decide as the reference does.

use crate::random::{Random, amount, programs};
use crate::world::World;
use abi::call::thread_op;
use abi::{Fpage, TaskId, Timeout, Uid};
use kernel::life;
use kernel::object::ThreadRef;
use kernel::object::thread::{State, Wait};
use kernel::sched::Next;

/// Threads beside the first one, which never waits.
const THREADS: usize = 7;

/// Priorities are below this one, and not 0, which is the first thread's.
const PRIORITIES: u64 = 6;

const FOREVER: (Timeout, Timeout) = (Timeout::NEVER, Timeout::NEVER);

#[derive(Clone, Debug)]
enum Op {
    /// The most urgent thread calls one.
    Call(u64),
    /// It answers its caller, if it has one, and waits for the next.
    Answer,
    /// It ends the wait of a thread.
    Abort(u64),
    /// It ends a thread.
    End(u64),
    /// It gives a thread a priority.
    SetPriority(u64, u64),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Doing {
    Runs,
    Open,
    Calls(usize),
    Queues(usize),
    Gone,
}

#[derive(Clone, Debug)]
struct Thread {
    uid: Uid,
    priority: u8,
    /// On whose time it works.
    time: usize,
    doing: Doing,
}

/// The reference.
#[derive(Default)]
struct Model(Vec<Thread>);

impl Model {
    fn waits_for(&self, who: usize) -> Option<usize> {
        match self.0[who].doing {
            Doing::Calls(to) | Doing::Queues(to) => Some(to),
            _ => None,
        }
    }

    /// Whether a thread waits for another, however indirectly.
    fn depends(&self, who: usize, on: usize) -> bool {
        let way = std::iter::successors(self.waits_for(who), |&next| self.waits_for(next));
        way.take(self.0.len()).any(|it| it == on)
    }

    /// Priority at which a thread runs.
    fn urgency(&self, who: usize) -> u8 {
        let own = |it: usize| self.0[self.0[it].time].priority;
        let waiting = (0..self.0.len()).filter(|&it| self.depends(it, who)).map(own);
        waiting.chain([own(who)]).max().expect("its own")
    }

    fn caller_of(&self, who: usize) -> Option<usize> {
        self.0.iter().position(|it| it.doing == Doing::Calls(who))
    }

    /// All that a thread called, and those called, go on on their own time; it has its time back.
    fn cut(&mut self, who: usize) {
        let (time, mut next) = (self.0[who].time, self.0[who].doing);
        while let Doing::Calls(to) = next {
            if self.0[to].time != time {
                break;
            }
            self.0[to].time = to;
            next = self.0[to].doing;
        }
    }

    fn abort(&mut self, who: usize) {
        self.cut(who);
        self.0[who].doing = Doing::Runs;
    }

    fn end(&mut self, who: usize) {
        self.cut(who);
        // A thread that waits for it alone has its time back, and so has nobody below it any more.
        if let Some(caller) = self.caller_of(who) {
            self.0[caller].doing = Doing::Runs;
        }
        self.0[who].doing = Doing::Gone;
        self.0[who].time = who;
        for thread in &mut self.0 {
            if thread.doing == Doing::Queues(who) {
                thread.doing = Doing::Runs;
            }
        }
    }
}

struct Both {
    world: World,
    model: Model,
    /// Most threads that were boosted at a time, and messages taken from a queue of several.
    seen: [usize; 3],
}

impl Both {
    fn new() -> Both {
        let world = World::new(512);
        world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
        let root = Thread { uid: world.root.uid(), priority: 0, time: 0, doing: Doing::Runs };
        let mut both = Both { world, model: Model(vec![root]), seen: [0; 3] };
        for i in 1..=THREADS {
            let (me, priority) = (both.world.root.uid().0, 1 + i as u64 % (PRIORITIES - 1));
            let uid = both
                .world
                .thread_control(thread_op::CREATE, [TaskId::NIL.0, priority, me, me])
                .expect("memory")[0];
            both.world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it starts");
            both.world.wait();
            let thread = Thread { uid: Uid(uid), priority: priority as u8, time: i, doing: Doing::Open };
            both.model.0.push(thread);
        }
        both.compare();
        both
    }

    fn kernels(&self, who: usize) -> ThreadRef {
        self.world.k.thread(self.model.0[who].uid).expect("it is there")
    }

    fn current(&self) -> usize {
        let uid = self.world.current().uid();
        self.model.0.iter().position(|it| it.uid == uid).expect("a thread of the model")
    }

    fn step(&mut self, op: &Op) {
        let me = self.current();
        let whom = |number: u64| 1 + number as usize % THREADS;
        match *op {
            Op::Call(to) if me != 0 => self.call(me, whom(to)),
            Op::Answer if me != 0 => self.answer(me),
            Op::Call(who) | Op::Abort(who) => self.abort(me, whom(who)),
            Op::Answer => {}
            Op::End(who) => self.end(me, whom(who)),
            Op::SetPriority(who, priority) => self.set_priority(whom(who), 1 + priority % (PRIORITIES - 1)),
        }
        self.world.settle();
        self.world.check();
        self.compare();
    }

    fn call(&mut self, me: usize, to: usize) {
        let threads = &mut self.model.0;
        // A call back to its caller answers that.
        if to == me || threads[to].doing == Doing::Gone || threads[to].doing == Doing::Calls(me) {
            return;
        }
        if threads[to].doing == Doing::Open {
            threads[to].doing = Doing::Runs;
            threads[to].time = threads[me].time;
            threads[me].doing = Doing::Calls(to);
        } else {
            threads[me].doing = Doing::Queues(to);
        }
        self.world.ipc_call(threads[to].uid);
    }

    fn answer(&mut self, me: usize) {
        let caller = self.model.caller_of(me);
        let queue: Vec<usize> =
            (1..=THREADS).filter(|&it| self.model.0[it].doing == Doing::Queues(me)).collect();
        let urgencies: Vec<u8> = queue.iter().map(|&it| self.model.urgency(it)).collect();
        // A thread that answers has its own time again, and its caller has its own.
        if let Some(caller) = caller {
            self.model.0[caller].doing = Doing::Runs;
        }
        self.model.0[me].time = me;
        self.model.0[me].doing = Doing::Open;
        match caller.map(|caller| self.model.0[caller].uid) {
            Some(uid) => self.world.ipc_reply_wait(uid),
            None => self.world.ipc(Uid::NIL, Uid::ANY, FOREVER, Fpage::NIL, abi::op::TAKES_BLOCK, [0; 8]),
        }
        self.world.settle();
        let taken =
            queue.iter().position(|&it| self.kernels(it).wait() == Wait::Closed(self.model.0[me].uid));
        assert_eq!(taken.is_none(), queue.is_empty(), "somebody is taken from a queue that is not empty");
        if let Some(taken) = taken {
            assert_eq!(
                urgencies.iter().max(),
                Some(&urgencies[taken]),
                "the most urgent of {queue:?} comes first"
            );
            self.seen[1] += (urgencies.iter().min() != urgencies.iter().max()) as usize;
            self.model.0[queue[taken]].doing = Doing::Calls(me);
            self.model.0[me].time = self.model.0[queue[taken]].time;
            self.model.0[me].doing = Doing::Runs;
        }
    }

    fn abort(&mut self, me: usize, who: usize) {
        let wakes = self.model.0[who].doing == Doing::Open && (me == 0 || who.is_multiple_of(2));
        if wakes || matches!(self.model.0[who].doing, Doing::Calls(_) | Doing::Queues(_)) {
            // A thread that runs on the time that is taken back is on its own.
            self.seen[2] += self.model.depends(who, me) as usize;
            self.model.abort(who);
            self.world.thread_control(thread_op::ABORT, [self.model.0[who].uid.0, 0, 0, 0]).ok();
        }
    }

    fn end(&mut self, me: usize, who: usize) {
        let living = self.model.0.iter().filter(|it| it.doing != Doing::Gone).count();
        if who == me || self.model.0[who].doing == Doing::Gone || living < 5 {
            return;
        }
        let victim = self.kernels(who);
        self.model.end(who);
        // All steps at once: who learns of it would otherwise run between two of them.
        life::thread::begin_end(&self.world.k, victim);
        while !life::thread::end_thread_step(&self.world.k, victim, None) {
            // A dispatch would do so between two steps.
            self.world.k.settle_all();
        }
        self.world.leave(Next::Same);
    }

    fn set_priority(&mut self, who: usize, priority: u64) {
        if self.model.0[who].doing != Doing::Gone {
            self.model.0[who].priority = priority as u8;
            let uid = self.model.0[who].uid.0;
            self.world.thread_control(thread_op::SET_PRIORITY, [uid, priority, 0, 0]).ok();
        }
    }

    fn compare(&mut self) {
        // An interrupt comes at once as long as there is more to do than one step does, but for what is less urgent than the thread that runs.
        for _ in 0..100 {
            self.world.advance(0);
        }
        self.world.k.settle_all();
        let (mut most, mut boosted) = (0, 0);
        for who in 0..self.model.0.len() {
            let model = &self.model.0[who];
            if model.doing == Doing::Gone {
                continue;
            }
            let kernels = self.kernels(who);
            let uid = |it: usize| self.model.0[it].uid;
            let agree = match model.doing {
                Doing::Runs => kernels.is_ready(),
                Doing::Open => kernels.wait() == Wait::Open,
                Doing::Calls(to) => kernels.wait() == Wait::Closed(uid(to)),
                Doing::Queues(at) => {
                    kernels.state.get() == State::Sending && kernels.partner.get() == uid(at)
                }
                Doing::Gone => true,
            };
            assert!(
                agree,
                "{who} is {:?} and waits {:?}, not {model:?}",
                kernels.state.get(),
                kernels.wait()
            );
            if model.doing == Doing::Runs {
                let urgency = self.model.urgency(who);
                assert_eq!(self.world.k.priority(kernels), urgency, "priority of {who}, which is {model:?}");
                boosted += (urgency > self.model.0[model.time].priority) as usize;
                most = most.max(urgency);
            }
        }
        let current = self.current();
        assert_eq!(self.model.urgency(current), most, "{current} runs, and is not the most urgent");
        self.seen[0] = self.seen[0].max(boosted);
    }
}

fn operation(random: &mut Random) -> Op {
    match random.below(20) {
        0..10 => Op::Call(random.below(THREADS as u64)),
        10..15 => Op::Answer,
        15..17 => Op::Abort(random.below(THREADS as u64)),
        17..19 => Op::SetPriority(random.below(THREADS as u64), random.below(PRIORITIES)),
        _ if random.one_in(8) => Op::End(random.below(THREADS as u64)),
        _ => Op::Abort(random.below(THREADS as u64)),
    }
}

#[test]
fn kernel_and_reference_agree_who_is_the_most_urgent() {
    let mut seen = [0; 3];
    programs("inherit", amount(40_000), 200, operation, |program| {
        let mut both = Both::new();
        for (i, op) in program.iter().enumerate() {
            if std::env::var_os("TERN_TRACE").is_some() {
                eprintln!("{i}: {} {op:?} {:?}", both.current(), both.model.0);
            }
            both.step(op);
        }
        (0..3).for_each(|i| seen[i] += both.seen[i]);
    });
    assert!(seen.iter().all(|&count| count > 20), "boosted, taken in order, cut: {seen:?}");
}

/// Somebody urgent stands in the queue of the last of seven that called each other: it and the first are as urgent.
#[test]
fn the_end_of_a_chain_of_seven_calls_inherits() {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0; 4]).expect("a priority");
    let begin = |priority| world.k.thread(world.new_thread_uid(priority)).expect("just made");
    let servers = [(); 7].map(|()| {
        let server = begin(2);
        world.wait();
        server
    });
    let client = begin(2);
    for server in servers {
        world.ipc_call(server.uid());
        assert_eq!(world.current(), server);
    }
    let (last, urgent) = (world.current(), begin(9));
    world.ipc_call(last.uid());
    world.settle();
    world.k.settle_all();
    world.check();
    assert_eq!(urgent.state.get(), State::Sending);
    assert_eq!((world.k.priority(last), client.home.effective.get()), (9, 9));
}
