//! What a processor may have cached, held against what the tables give: on the most hostile caches ([`tlb`]), after each
//! step of each operation, nothing is cached that a space in which somebody can run does not have in its tables.
//!
//! Operations are map, grant, flush, accesses of users, switches, copies through the window as the slow path and as the fast
//! path make them, ends of time slices, at which tags change hands, and the end of tasks, whose numbers, tables and pages go to
//! the next ones. After each copy the contents of all pages are compared with what the copy ought to have done. The [random
//! walk](crate::walk) goes on the same caches through whole system calls.
//!
//! That the tests notice is shown on processors that forget less than they should, one for each rule.

use crate::fast_path::{Live, copy_block};
use crate::random::{Random, amount, first_seed, programs};
use crate::world::{Caches, World};
use abi::call::{task_op, thread_op};
use abi::op;
use abi::{Call, Dope, Error, Fpage, PAGE_SIZE, Rights, Space, StringPart, Timeout};
use kernel::arch::tlb::{self, Defect};
use kernel::arch::{self, CopyFault};
use kernel::kernel::Kernel;
use kernel::layout::WINDOW_SIZE;
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Flush, Progress};
use kernel::object::thread::Frame;
use kernel::object::{TaskRef, ThreadRef};
use kernel::processor;
use kernel::{param, sim};

const TASKS: usize = 4;

/// The pages that operations are about, in all tasks, where tables of all levels meet.
const PAGES: u64 = 16;
const FIRST: u64 = (1 << 39) - PAGES / 2 * PAGE_SIZE;
/// Where σ0 has them.
const FRAMES_AT: u64 = 1 << 30;
/// Where a large page can be: half of the pages are the first of that.
const LARGE_AT: u64 = 1 << 39;
const LARGE_LOG2: u32 = 21;

/// An operation on tasks 1 to `TASKS`; a giver 0 is σ0.
#[derive(Clone, Debug)]
enum Op {
    Map { from: usize, to: usize, plan: Plan, budget: usize },
    Flush { task: usize, page: Fpage, own: bool, budget: usize },
    Access { address: u64, write: bool },
    Switch { to: usize },
    Copy { to: usize, source: u64, target: u64, len: u64 },
    Words { to: usize, address: u64, write: bool },
    FastCopy { to: usize, source: u64, target: u64, words: u64 },
    SliceEnd,
    End { task: usize },
}

fn operation(random: &mut Random) -> Op {
    let task = |random: &mut Random| 1 + random.below(TASKS as u64) as usize;
    let page = |random: &mut Random| FIRST + random.below(PAGES) * PAGE_SIZE;
    let byte = |random: &mut Random| page(random) + random.pick(&[0, 8, 2048, 4088]);
    let rights = random.pick(&[Rights::RWX, Rights::RW, Rights::RW, Rights::R]);
    let budget = random.pick(&[2, 3, 5, 1000]);
    match random.below(32) {
        0 => {
            let from = random.below(TASKS as u64 + 1) as usize;
            let at = if from == 0 { FRAMES_AT } else { LARGE_AT };
            let grant = if from != 0 && random.one_in(3) { Rights::GRANT } else { Rights::NONE };
            let (log2, rights) = (LARGE_LOG2, rights.or(grant));
            let plan = Plan { space: Space::Memory, from: at, to: LARGE_AT, log2, rights };
            Op::Map { from, to: task(random), plan, budget: 1000 }
        }
        1 => {
            let remove = random.pick(&[Rights::RWX, Rights::RWX, Rights::W]);
            let page = Fpage::memory(LARGE_AT, LARGE_LOG2, remove);
            Op::Flush { task: task(random), page, own: random.one_in(2), budget: 1000 }
        }
        2..8 => {
            let from = if random.one_in(2) { 0 } else { task(random) };
            let base = if from == 0 { FRAMES_AT } else { FIRST };
            let grant = if from != 0 && random.one_in(3) { Rights::GRANT } else { Rights::NONE };
            let log2 = random.pick(&[12, 12, 13, 14]);
            let mut place = || random.below((PAGES * PAGE_SIZE) >> log2) << log2;
            let (from_offset, to_offset) = (place(), place());
            let (at, to_at) = (base + from_offset, FIRST + to_offset);
            let plan = Plan { space: Space::Memory, from: at, to: to_at, log2, rights: rights.or(grant) };
            Op::Map { from, to: task(random), plan, budget }
        }
        8..11 => {
            let (log2, remove) = (random.pick(&[12, 12, 14]), random.pick(&[Rights::RWX, Rights::W]));
            let base = page(random) >> log2 << log2;
            Op::Flush { task: task(random), page: Fpage::memory(base, log2, remove), own: true, budget }
        }
        // From σ0, so that its pages are nobody's.
        11..13 => {
            let page = Fpage::memory(FRAMES_AT + random.below(PAGES) * PAGE_SIZE, 12, Rights::RWX);
            Op::Flush { task: 0, page, own: false, budget }
        }
        13..16 => Op::Access { address: byte(random), write: random.one_in(2) },
        16..19 => Op::Switch { to: task(random) },
        19 => Op::SliceEnd,
        20..24 => {
            let len = random.pick(&[1, 64, 4096, 3 * 4096, 10 * 4096]);
            Op::Copy { to: task(random), source: byte(random), target: byte(random), len }
        }
        24..27 => Op::Words { to: task(random), address: byte(random), write: random.one_in(2) },
        27..31 => {
            let words = random.pick(&[0, 1, 8, param::FAST_WORDS_MAX]);
            Op::FastCopy { to: task(random), source: byte(random), target: byte(random), words }
        }
        _ => Op::End { task: task(random) },
    }
}

/// A kernel on hostile caches, and a thread in each task.
struct Spaces {
    world: World,
    threads: Vec<ThreadRef>,
}

type Audit = Result<(), String>;

impl Spaces {
    fn new(caches: Caches, defect: Option<Defect>) -> Spaces {
        let world = World::on(1024, caches);
        let mut spaces = Spaces { threads: vec![world.root], world };
        for _ in 0..TASKS {
            let thread = spaces.new_task();
            spaces.threads.push(thread);
        }
        defect.into_iter().for_each(tlb::break_down);
        spaces
    }

    /// A task with a thread that never runs: the operations are done in its name.
    fn new_task(&self) -> ThreadRef {
        self.world.new_stand_in(self.world.new_task(100))
    }

    fn task(&self, number: usize) -> TaskRef {
        self.threads[number].task()
    }

    fn audit(&self) -> Audit {
        sim::audit(&self.world.k)
    }

    fn switch(&self, to: ThreadRef) {
        processor::switch_space(processor::current(), to);
    }

    fn perform(&mut self, op: &Op) -> Audit {
        match *op {
            Op::Map { from, to, plan, budget } => {
                let (from, to) = (self.task(from), self.task(to));
                let mut progress = Progress::START;
                self.steps(budget, |k, budget| space::map(k, plan, from, to, &mut progress, budget).is_ok())
            }
            Op::Flush { task, page, own, budget } => {
                let (task, mut at, mut status) = (self.task(task), 0, 0);
                self.steps(budget, |k, budget| {
                    space::flush(k, Flush { task, page, own }, &mut at, &mut status, budget).is_ok()
                })
            }
            Op::Access { address, write } => self.access(address, write),
            Op::Switch { to } => {
                self.switch(self.threads[to]);
                self.audit()
            }
            Op::SliceEnd => {
                processor::space::renew_tag(&self.world.k, processor::current().task());
                self.audit()
            }
            Op::Copy { to, source, target, len } => {
                let task = self.task(to);
                self.compared((source, (task, target), len), |k, from| {
                    copy(k, (from, source), (task, target), len)
                })
            }
            Op::FastCopy { to, source, target, words } => self.fast_copy(to, (source, target, words)),
            Op::Words { to, address, write } => self.words((self.task(to), address), write),
            Op::End { task } => self.end(task),
        }
    }

    /// Calls an operation that is broken off by its budget until it is done.
    fn steps(
        &self,
        budget: usize,
        mut step: impl FnMut(&kernel::kernel::Kernel, &mut usize) -> bool,
    ) -> Audit {
        for round in 0..1000 {
            // The processor is on whose translations are watched, not on who does this; a walk that its own thread would break
            // off and go on with has to be whole.
            let budget = if round < 100 { budget } else { 1000 };
            let done = step(&self.world.k, &mut { budget });
            self.audit()?;
            if done {
                return Ok(());
            }
        }
        panic!("no progress");
    }

    /// An access as the current thread makes it in user mode.
    fn access(&self, address: u64, write: bool) -> Audit {
        let task = processor::current().task();
        let needed = if write { Rights::W } else { Rights::R };
        let allowed = sim::walk(&self.world.k.pool, task, address).is_some_and(|(_, has)| has.has(needed));
        let worked = match write {
            true => arch::copy_user(address, address, 1),
            false => arch::load_user(address).is_some(),
        };
        self.audit()?;
        if worked == allowed { Ok(()) } else { Err(format!("an access to {address:#x} worked: {worked}")) }
    }

    /// Where the byte at an address is.
    fn place(&self, task: TaskRef, address: u64, right: Rights) -> Option<u64> {
        let (place, rights) = sim::walk(&self.world.k.pool, task, address)?;
        rights.has(right).then_some(place)
    }

    /// Contents of all pages, and of those behind them that a copy gets to in a large page.
    fn contents(&self) -> Vec<u8> {
        arch::memory(FRAMES_AT, (2 * PAGES * PAGE_SIZE) as usize)
    }

    /// A copy by the current task, and byte by byte what it ought to do.
    fn compared(
        &self,
        (source, to, len): (u64, (TaskRef, u64), u64),
        copy: impl FnOnce(&kernel::kernel::Kernel, TaskRef) -> Result<(), CopyFault>,
    ) -> Audit {
        let from = processor::current().task();
        let mut expected = self.contents();
        let (mut fault, mut written, mut overlaps) = (None, vec![false; expected.len()], false);
        for done in 0..len {
            let (address, target) = (source + done, to.1 + done);
            let Some(read) = self.place(from, address, Rights::R) else {
                fault = Some((done, false));
                break;
            };
            let Some(write) = self.place(to.0, target, Rights::W) else {
                fault = Some((done, true));
                break;
            };
            let [read, write] = [read, write].map(|place| (place - FRAMES_AT) as usize);
            overlaps |= written[read];
            written[write] = true;
            expected[write] = expected[read];
        }
        let result = copy(&self.world.k, from).err().map(|fault| (fault.done, fault.at_target));
        self.audit()?;
        // What comes of a copy onto what it still has to read depends on the steps it is made in.
        let is_right = overlaps || self.contents() == expected;
        if !is_right || result != fault {
            return Err(format!("a copy ended with {result:?}, not {fault:?}, or went elsewhere"));
        }
        Ok(())
    }

    /// A message with a block as the fast path copies it, switch included.
    fn fast_copy(&self, to: usize, (source, target, words): (u64, u64, u64)) -> Audit {
        let (me, partner) = (processor::current(), self.threads[to]);
        let room = Dope::room(param::FAST_WORDS_MAX, 0, 0);
        let registered = partner.block.set(&self.world.k, partner.task(), target, room);
        // A block may not cross into the next top-level entry.
        if registered.is_err() || me == partner || partner.block.fast_below.get() == 0 {
            return Ok(());
        }
        let (to, len) = ((partner.task(), target), 8 * words);
        self.compared((source, to, len), |k, _| {
            let mut live = Live::default();
            (live.w[0], live.w[1]) = (words, source);
            if copy_block(k, &mut live, me, partner) {
                processor::switch_space(me, partner);
                return Ok(());
            }
            // As far as it came; the slow path would do it anew.
            copy(k, (me.task(), source), to, len)
        })
    }

    fn words(&self, (task, address): (TaskRef, u64), write: bool) -> Audit {
        let (k, current) = (&self.world.k, processor::current().task());
        // What callers see to.
        if task != current && address % WINDOW_SIZE + 16 > WINDOW_SIZE {
            return Ok(());
        }
        let right = if write { Rights::W } else { Rights::R };
        let allowed = [0, 15].map(|offset| self.place(task, address + offset, right).is_some()) == [true; 2];
        let worked = match write {
            true => processor::copy::write_words(k, current, (task, address), [7, 8]).is_ok(),
            false => processor::copy::read_words::<2>(k, current, (task, address)).is_ok(),
        };
        self.audit()?;
        if worked == allowed { Ok(()) } else { Err(format!("words at {address:#x}: {worked}")) }
    }

    /// Ends a task step by step, and makes another one of what it leaves.
    fn end(&mut self, number: usize) -> Audit {
        self.switch(self.world.root);
        let id = self.task(number).id.get();
        self.world.begin_call(Call::TaskControl, task_op::DESTROY, id.0);
        self.audit()?;
        while self.world.is_busy() {
            self.world.go_on_once();
            self.audit()?;
        }
        self.threads[number] = self.new_task();
        assert_eq!(self.task(number).id.get().number(), id.number(), "numbers are used again at once");
        self.audit()
    }
}

/// Copies as a message does that is nothing else.
fn copy(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    let mut view = processor::copy::view(k, from.0, to.0);
    let result = if len == 0 { Ok(()) } else { view.copy(from.1, to.1, len) };
    view.close();
    result
}

/// Runs a program; what is wrong with it, if anything is.
fn run(program: &[Op], caches: Caches, defect: Option<Defect>) -> Result<(), String> {
    let mut spaces = Spaces::new(caches, defect);
    for (i, op) in program.iter().enumerate() {
        spaces.perform(op).map_err(|what| format!("step {i}: {what}, after {op:?}"))?;
        if i % 16 == 0 || i + 1 == program.len() {
            // Of scheduling only the first thread knows.
            let current = processor::current();
            spaces.switch(spaces.world.root);
            spaces.world.check();
            spaces.switch(current);
        }
    }
    Ok(())
}

fn run_whole(program: &[Op], caches: Caches) {
    if let Err(what) = run(program, caches, None) {
        panic!("{what}");
    }
}

#[test]
fn no_translation_outlives_its_page_without_tags() {
    programs("hostile caches", amount(8_000), 400, operation, |ops| run_whole(ops, Caches::Untagged));
}

#[test]
fn no_translation_outlives_its_page_under_tags() {
    programs("hostile tagged caches", amount(8_000), 400, operation, |ops| run_whole(ops, Caches::Tagged));
}

/// Five tasks that have to do with three tags.
#[test]
fn no_translation_outlives_its_page_where_tags_change_hands() {
    programs("hostile caches, few tags", amount(8_000), 400, operation, |ops| {
        run_whole(ops, Caches::FewTags)
    });
}

#[test]
fn miri_no_translation_outlives_its_page() {
    let (steps, len) = if cfg!(miri) { (8, 8) } else { (400, 400) };
    programs("hostile caches, small", steps, len, operation, |ops| run_whole(ops, Caches::FewTags));
}

/// Whatever a processor does not forget that it should is noticed, and so would be a kernel that does not make it forget.
#[test]
fn every_rule_is_needed() {
    let rules = [
        (Caches::Untagged, Defect::PageOfLoaded),
        (Caches::Untagged, Defect::Load),
        (Caches::Tagged, Defect::PageOfLoaded),
        (Caches::Tagged, Defect::PageOfTag),
        (Caches::Tagged, Defect::Tag),
        (Caches::Tagged, Defect::Links),
        (Caches::Tagged, Defect::Load),
        (Caches::Tagged, Defect::WindowTag),
        (Caches::FewTags, Defect::Tag),
    ];
    for (caches, defect) in rules {
        let noticed = (first_seed()..first_seed() + 20).find_map(|seed| {
            let mut random = Random::new(seed);
            let program: Vec<Op> = (0..400).map(|_| operation(&mut random)).collect();
            run(&program, caches, Some(defect)).err()
        });
        let what = noticed.unwrap_or_else(|| panic!("{caches:?} caches with {defect:?} do no harm"));
        println!("{caches:?} {defect:?}: {what}");
    }
}

/// A task without a tag for itself gets one when a time slice finds it running, and another one loses it.
#[test]
fn a_tag_goes_to_who_runs() {
    let world = World::on(1024, Caches::FewTags);
    let tasks = [0; 4].map(|_| world.new_task(100)).map(|id| world.k.task(id).expect("just made"));
    let owners = || tasks.map(processor::space::tag_of);
    assert_eq!(owners(), [Some(2), Some(3), None, None]);
    let threads = tasks.map(|task| world.new_thread(task.id.get(), 63));
    let run_and_end_slice = |number: usize| {
        processor::switch_space(processor::current(), threads[number]);
        processor::space::renew_tag(&world.k, tasks[number]);
        sim::audit(&world.k).expect("nothing is stale");
    };
    // The first task of the machine is the first to lose its own.
    run_and_end_slice(2);
    assert_eq!(owners(), [Some(2), Some(3), Some(1), None]);
    run_and_end_slice(3);
    assert_eq!(owners(), [None, Some(3), Some(1), Some(2)]);
    run_and_end_slice(2);
    assert_eq!(owners(), [None, Some(3), Some(1), Some(2)]);
    processor::switch_space(processor::current(), world.root);
    world.check();
}

/// A gibibyte that the processor sees as one page comes apart under its eyes.
#[test]
fn no_translation_outlives_its_gibibyte() {
    for caches in [Caches::Untagged, Caches::Tagged, Caches::FewTags] {
        let mut spaces = Spaces::new(caches, None);
        let (at, budget) = (LARGE_AT, 1000);
        let map = |from, to, base: u64, log2| Op::Map {
            from,
            to,
            plan: Plan { space: Space::Memory, from: base, to: at, log2, rights: Rights::RW },
            budget,
        };
        let access = |offset| Op::Access { address: at + offset, write: true };
        let flush = |task, offset, log2, rights, own| Op::Flush {
            task,
            page: Fpage::memory(at + offset, log2, rights),
            own,
            budget,
        };
        for op in [
            map(0, 1, 0, 30),
            map(1, 2, at, 30),
            Op::Switch { to: 2 },
            access(0),
            access(40 << 20),
            flush(1, 40 << 20, 21, Rights::W, false),
            access(40 << 20),
            access(0),
            Op::Switch { to: 1 },
            access(44 << 20),
            flush(1, 44 << 20, 12, Rights::RWX, true),
            access(44 << 20),
            access(44 << 20 | PAGE_SIZE),
            Op::End { task: 2 },
            access(46 << 20),
        ] {
            spaces.perform(&op).unwrap_or_else(|stale| panic!("{stale}, after {op:?}"));
        }
    }
}

/// Pages of a task, all of them: for a string of 64 KiB.
fn give_pages(world: &World, to: TaskRef, first: u64) {
    let plan =
        Plan { space: Space::Memory, from: FRAMES_AT + first, to: FIRST, log2: 16, rights: Rights::RW };
    let mut progress = Progress::START;
    while space::map(&world.k, plan, world.sigma0, to, &mut progress, &mut 100).is_err() {}
    assert!(progress.whole, "the quota is large enough");
}

/// A receiver ends in the middle of a transfer, and another task gets its number, its tables and its pages at once.
#[test]
fn a_receiver_that_ends_in_mid_transfer_leaves_no_way_to_its_pages() {
    const LEN: u32 = 64 << 10;
    let string = StringPart { address: FIRST, len: LEN, capacity: LEN };
    let block = FIRST + u64::from(LEN) - PAGE_SIZE;
    for caches in [Caches::Untagged, Caches::Tagged] {
        let world = World::on(1024, caches);
        let audit = || sim::audit(&world.k).expect("nothing is stale");
        let [to, from] = [0; 2].map(|_| world.new_task(100));
        let (receiver, sender) = (world.new_thread(to, 63), world.new_thread(from, 63));
        let number = to.number();
        give_pages(&world, sender.task(), 0);
        give_pages(&world, receiver.task(), 1 << 20);
        world.thread_control(thread_op::SET_PRIORITY, [0, 1, 0, 0]).expect("a priority");
        for (thread, dope) in [(receiver, Dope::room(0, 1, 0)), (sender, Dope::used(0, 1, 0))] {
            assert_eq!(world.current(), thread);
            let task = thread.task();
            let descriptor = [string.address, string.sizes()];
            processor::copy::write_words(&world.k, task, (task, block), descriptor).expect("it has the page");
            if thread == receiver {
                let patience = u64::from(u32::MAX);
                world.thread_control(thread_op::SET_BLOCK, [0, block, dope.0, patience]).expect("a block");
                world.wait();
            }
        }
        audit();
        let frame = &sender.frame;
        frame.rax.set((Call::Ipc as u32 | op::BLOCK).into());
        frame.rdx.set(receiver.uid().0);
        let timeouts = abi::call::timeouts(Timeout::NEVER, Timeout::ZERO);
        for (at, word) in [(0, Dope::used(0, 1, 0).0), (1, block), (Frame::RBX, 0), (Frame::RBP, 0)] {
            frame.w[at].set(word);
        }
        frame.w[Frame::R15].set(timeouts);
        assert!(!world.enter(), "it takes several steps");
        audit();
        world.go_on_once();
        assert!(world.is_busy(), "it takes more steps");
        audit();

        // As the chief would, who is more urgent.
        processor::switch_space(sender, world.root);
        world.begin_call(Call::TaskControl, task_op::DESTROY, to.0);
        world.settle();
        audit();
        let heir = world.new_task(100);
        assert_eq!(heir.number(), number);
        give_pages(&world, world.task(heir), 1 << 20);
        let before = arch::memory(FRAMES_AT + (1 << 20), LEN as usize);
        assert!(before.iter().any(|&byte| byte != 0) || LEN == 0, "a part of the string has arrived");
        processor::switch_space(processor::current(), sender);
        world.settle();
        audit();
        assert_eq!(sender.frame.rax.get(), Error::PartnerDied as u64);
        assert_eq!(arch::memory(FRAMES_AT + (1 << 20), LEN as usize), before);
    }
}
