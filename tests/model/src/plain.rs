//! Plain messages against the general way: faults, calls and exceptions that a pager answers, once as it does all day and once with a
//! timeout at each of its receives, which the plain way leaves alone. All that anybody can see is the same.

mod pager;

use crate::random::{Random, amount, first_seed};
use crate::world::World;
use abi::call::{self, RESUME, RESUME_AS_IS, thread_op, vector};
use abi::op::{self, Op};
use abi::{Fpage, Kind, PAGE_SIZE, Rights, Timeout, Uid};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, WORDS};
use kernel::sim;

/// Where the ward gets pages.
const PLACE: u64 = 0x40_0000;

/// Pages that are looked at.
const PAGES: u64 = 64;

/// A message of the ward, and the pager's answer to it.
#[derive(Clone, Copy, Debug)]
enum Round {
    /// A fault or a call, answered with an item.
    Item { faults: bool, takes: bool, item: Fpage, hot_spot: u64 },
    /// An exception, answered with a label and words.
    Exception { label: u32, words: [u64; 4] },
}

/// Outcome of a round: whether the ward goes on, the two heads, the ward's registers, and its pages.
type Seen = (bool, u64, [u64; WORDS + 4], Vec<Option<(u64, Rights)>>);

struct Stage {
    world: World,
    ward: ThreadRef,
    timeout: Timeout,
}

impl Stage {
    fn new(timeout: Timeout) -> Stage {
        let world = World::new(1024);
        world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
        let task = world.new_task(200);
        let ward = world.new_stand_in(task);
        world
            .thread_control(thread_op::SET_WINDOW, [ward.uid().0, Fpage::WHOLE.0, 0, 0])
            .expect("it is a window");
        world.thread_control(thread_op::START, [ward.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
        let stage = Stage { world, ward, timeout };
        // The ward runs already. From here on the pager waits when it does.
        stage.world.page_fault(PLACE, Rights::R);
        stage.reply(Uid::NIL, 0, 0, [0; WORDS]);
        stage.reply(ward.uid(), 0, 0, [0; WORDS]);
        stage
    }

    /// The pager replies, or only waits, in the general form; then it waits for anybody.
    fn reply(&self, to: Uid, flags: u32, label: u32, mut w: [u64; WORDS]) {
        w[Frame::RBX] = Uid::ANY.0;
        w[Frame::RBP] = 0;
        w[Frame::R15] = call::timeouts(Timeout::ZERO, self.timeout);
        let head = Op::GENERAL.with(op::TAKES_BLOCK | flags).0 as u64 | (label as u64) << 32;
        self.world.system_call(head, to.0, w);
    }

    fn play(&self, round: Round) -> Seen {
        let (world, root) = (&self.world, self.world.root);
        if world.current() == root {
            self.reply(Uid::NIL, 0, 0, [0; WORDS]);
        }
        assert_eq!(world.current(), self.ward, "{round:?} {:x}", root.frame.rax.get());
        let (flags, label, mut w) = match round {
            Round::Item { faults: true, .. } => {
                world.page_fault(PLACE + 5 * PAGE_SIZE, Rights::R);
                (op::ITEM, 0, [3; WORDS])
            }
            Round::Item { takes, .. } => {
                let call = if takes { Op::CALL.with(op::TAKES_ITEM) } else { Op::CALL };
                world.system_call(call.0 as u64, root.uid().0, [9; WORDS]);
                (op::ITEM, 7, [4; WORDS])
            }
            Round::Exception { label, .. } => {
                world.exception(6);
                (0, label, [0; WORDS])
            }
        };
        assert_eq!(world.current(), root, "{round:?}");
        match round {
            Round::Item { item, hot_spot, .. } => (w[6], w[7]) = (item.0, hot_spot),
            Round::Exception { words, .. } => w[2..6].copy_from_slice(&words),
        }
        let is_short = flags == 0 && self.timeout == Timeout::NEVER;
        if is_short {
            let head = Op::REPLY_WAIT.0 as u64 | (label as u64) << 32;
            world.system_call(head, self.ward.uid().0, w);
        } else {
            self.reply(self.ward.uid(), flags, label, w);
        }
        let goes_on = world.current() == self.ward;
        let error = if goes_on { 0 } else { root.frame.rax.get() };
        let frame = &self.ward.frame;
        let others = [frame.rax.get(), frame.rdx.get(), self.ward.user_ip(), self.ward.user_sp()];
        let registers = std::array::from_fn(|i| if i < WORDS { frame.w[i].get() } else { others[i - WORDS] });
        let pages = (0..PAGES).map(|i| sim::walk(&world.k.pool, self.ward.task(), PLACE + i * PAGE_SIZE));
        let seen = (goes_on, error, registers, pages.collect());
        self.recover();
        world.check();
        seen
    }

    /// Lets the ward go on if it does not.
    fn recover(&self) {
        let world = &self.world;
        if world.current() == world.root && !self.ward.is_ready() {
            self.reply(self.ward.uid(), 0, RESUME_AS_IS, [0; WORDS]);
        }
    }
}

fn round(random: &mut Random) -> Round {
    if random.one_in(4) {
        let label = random.pick(&[RESUME, RESUME, RESUME_AS_IS]);
        let ip = random.pick(&[0x2000, 0x3000]);
        return Round::Exception { label, words: [ip, 0x9000, random.next(), random.next()] };
    }
    let log2 = random.pick(&[12, 12, 12, 13, 16, 17]);
    let rights =
        random.pick(&[Rights::RW, Rights::RWX, Rights::R, Rights::NONE, Rights::RW.or(Rights::GRANT)]);
    // The last is no address, but leads through the tables to one.
    let first = random.pick(&[0x10_0000, 0x20_0000, 1 << 48 | 0x10_0000]) + random.below(32) * PAGE_SIZE;
    let item = Fpage((first & !((1 << log2) - 1)) | log2 << 4 | rights.0 as u64);
    Round::Item {
        faults: random.one_in(2),
        takes: !random.one_in(4),
        item,
        hot_spot: PLACE + random.below(PAGES) * PAGE_SIZE,
    }
}

#[test]
fn a_pager_in_a_hurry_does_what_a_patient_one_does() {
    let mut random = Random::new(first_seed());
    let mut went_on = 0;
    for _ in 0..amount(20) {
        let stages = [Timeout::NEVER, Timeout::from_us(1_000_000_000)];
        let rounds: Vec<Round> = (0..60).map(|_| round(&mut random)).collect();
        let seen = stages.map(|timeout| {
            let stage = Stage::new(timeout);
            rounds.iter().map(|&round| stage.play(round)).collect::<Vec<Seen>>()
        });
        for ((round, plain), general) in rounds.iter().zip(&seen[0]).zip(&seen[1]) {
            assert_eq!(plain, general, "{round:?}");
            went_on += plain.0 as u32;
        }
    }
    assert!(went_on > 100, "it went on {went_on} times");
}

#[test]
fn a_pager_that_waits_is_asked_for_the_user_half_alone() {
    let stage = Stage::new(Timeout::NEVER);
    for (address, kind) in [(PLACE, Kind::Fault), (1 << 47, Kind::Exception), (u64::MAX, Kind::Exception)] {
        stage.world.page_fault(address, Rights::R);
        let frame = &stage.world.root.frame;
        assert_eq!(Kind::from_eax(frame.rax.get() as u32), Some(kind), "{address:x}");
        let is_exception = kind == Kind::Exception;
        assert!(!is_exception || frame.w[0].get() == vector::UNRESOLVED_FAULT);
        stage.reply(stage.ward.uid(), 0, RESUME_AS_IS, [0; WORDS]);
        assert_eq!(stage.world.current(), stage.ward);
    }
}
