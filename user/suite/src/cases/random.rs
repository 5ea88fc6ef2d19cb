//! Random system calls: a program that calls the kernel with whatever comes to mind, from a child with little
//! quota. Nothing it does may matter to anybody else.
//!
//! Arguments are half-way plausible: uids that exist, existed or nearly exist, flexpages of memory that is
//! there, small timeouts. Two things it does not do, because it shares the suite's memory: receive pages over
//! that memory, and let another thread run at a made-up address.

use crate::kit::{Agent, Child, Frame, Outcome, Random, guarded, image, pager};
use crate::{check, check_eq};
use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::call::{
    Call, FLUSH_SELF, IPC_CALL, IPC_MAP, IPC_REPLY_WAIT, NULL, task_op, thread_op, timeouts,
};
use sys::abi::{INFO_PAGE, USER_END};
use sys::{Fpage, Rights, TaskId, Timeout, Uid};

/// Threads that make random calls.
const PLAYERS: usize = 4;

/// Who makes fewer calls in so many milliseconds is replaced.
const REVIEW_CALLS_MIN: u64 = 64;
/// See [`REVIEW_CALLS_MIN`].
const REVIEW_ROUNDS: u64 = 16;

/// Uids and tasks that the players know. New ones replace old ones.
static KNOWN: [AtomicU64; 32] = [const { AtomicU64::new(0) }; 32];
/// Calls made so far, by each player.
static MADE: [AtomicU64; PLAYERS] = [const { AtomicU64::new(0) }; PLAYERS];
static SEED: AtomicU64 = AtomicU64::new(1);
// `suite_end` ends its own thread.
unsafe extern "C" {
    fn suite_end();
}

/// Where players let pages in.
const WINDOW: u64 = 0xa0_0000_0000;

struct Player {
    random: Random,
}

impl Player {
    fn known(&mut self) -> u64 {
        let value = KNOWN[self.random.below(KNOWN.len() as u64) as usize].load(Ordering::Relaxed);
        match self.random.below(16) {
            0 => value ^ 1 << self.random.below(64),
            1 => self.random.next(),
            2 => Uid::interrupt(self.random.next() as u8).0,
            3 => 0,
            4 => u64::MAX,
            _ => value,
        }
    }

    fn learn(&mut self, value: u64) {
        KNOWN[8 + self.random.below(KNOWN.len() as u64 - 8) as usize].store(value, Ordering::Relaxed);
    }

    fn address(&mut self) -> u64 {
        let (start, end) = image();
        match self.random.below(8) {
            0 => {
                self.random.pick(&[0, INFO_PAGE, USER_END, USER_END - 0x1000, 1 << 47, 0xffff_8000_0000_0000])
            }
            1 => self.random.next(),
            2 | 3 => WINDOW + self.random.below(1 << 24),
            _ => start + self.random.below(end - start),
        }
    }

    fn fpage(&mut self) -> Fpage {
        let rights = Rights(self.random.next() as u8 & 15);
        match self.random.below(16) {
            0 => Fpage(self.random.next()),
            1 => Fpage::ports(self.random.next() as u16, self.random.below(17) as u32),
            2 => Fpage::interrupt(self.random.next() as u8),
            3 => Fpage::NIL,
            4 => Fpage::WHOLE.with_rights(rights),
            _ => {
                let log2 = 12 + self.random.below(4) as u32 * self.random.below(4) as u32;
                Fpage::memory(self.address(), log2, rights)
            }
        }
    }

    fn window(&mut self) -> Fpage {
        match self.random.below(8) {
            0 => Fpage(self.random.next() & !0xfff | 0x3f << 4),
            1 => Fpage::ports(0, 16),
            2 | 3 => Fpage::NIL,
            _ => Fpage::memory(
                WINDOW + self.random.below(1 << 24),
                12 + self.random.below(12) as u32,
                Rights::RWX,
            ),
        }
    }

    /// Short as a rule; one in a thousand waits until somebody ends it.
    fn timeout(&mut self) -> Timeout {
        match self.random.below(1024) {
            0 => Timeout::NEVER,
            1..100 => Timeout::from_us(self.random.below(50)),
            _ => Timeout::ZERO,
        }
    }

    fn label(&mut self) -> u64 {
        // Not 1: that would resume a thread at an address of our making.
        self.random.pick(&[0, 2, 0xffff_ffff, 0x8000_0000]) << 32
    }

    fn ipc(&mut self) -> Frame {
        let mut frame = self.noise();
        let flags = match self.random.below(64) {
            0 => self.random.next() as u32 & 0x7fff_ff00,
            1..24 => IPC_MAP,
            _ => 0,
        };
        frame.rax = self.label() | (Call::Ipc as u32 | flags) as u64;
        (frame.rdx, frame.rbx) = (self.known(), self.known());
        frame.rbp = self.window().0;
        frame.r15 = timeouts(self.timeout(), self.timeout());
        if flags == IPC_MAP {
            (frame.r13, frame.r14) = (self.fpage().0, self.address());
        }
        frame
    }

    fn short(&mut self) -> Frame {
        let mut frame = self.noise();
        // These wait forever if somebody is there: mostly to those who are not.
        let to = if self.random.below(128) == 0 { self.known() } else { self.random.next() };
        let wait = self.random.below(256) == 0;
        frame.rax = self.label() | if wait { IPC_REPLY_WAIT } else { IPC_CALL } as u64;
        frame.rdx = to;
        frame
    }

    /// A frame of noise.
    fn noise(&mut self) -> Frame {
        let mut frame = Frame::call(Uid::NIL, 0, core::array::from_fn(|_| self.random.next()));
        frame.flags |= self.random.next() & 0x4_0cd5;
        frame
    }

    fn control(&mut self, eax: u32, arguments: [u64; 6]) -> Frame {
        let high = if self.random.below(64) == 0 { self.random.next() << 32 } else { 0 };
        let mut frame = Frame::control(eax, arguments);
        frame.rax |= high;
        frame.flags |= self.random.next() & 0x4_0cd5;
        frame
    }

    fn thread(&mut self) -> Frame {
        let op = self.random.below(thread_op::COUNT as u64 + 1) as u32;
        let target = match self.random.below(4) {
            0 => 0,
            _ => self.known(),
        };
        let (second, third) = match op {
            thread_op::CREATE => (self.random.below(4), self.known()),
            thread_op::START => {
                let end = suite_end as *const () as usize as u64;
                (
                    self.random.pick(&[end, 0, 0x1000, 1 << 47, 0xffff_ffff_8000_0000, INFO_PAGE]),
                    self.random.next(),
                )
            }
            thread_op::SET_PAGER => (self.known(), self.known()),
            thread_op::SET_PRIORITY => (self.random.below(70), self.random.below(20_000)),
            thread_op::NEXT | thread_op::INFO => (self.known(), 0),
            thread_op::DENY_NATIVE => (self.random.below(3), 0),
            _ => (self.address(), self.random.next()),
        };
        // A player that ends itself has to be made again: not too often.
        let kills = matches!(op, thread_op::DESTROY | thread_op::STOP | thread_op::SET_PAGER);
        let op = if kills && self.random.below(32) != 0 { thread_op::INFO } else { op };
        let arguments = [target, second, third, self.known(), self.random.next(), self.random.next()];
        self.control(Call::ThreadControl as u32 | op << 8, arguments)
    }

    fn task(&mut self) -> Frame {
        let op = self.random.below(task_op::COUNT as u64 + 1) as u32;
        let arguments = match op {
            task_op::CREATE => [self.random.below(12), self.random.below(70), 1, 2, 3, 4],
            _ => [self.known(), self.random.below(20), 1, 2, 3, 4],
        };
        self.control(Call::TaskControl as u32 | op << 8, arguments)
    }

    fn frame(&mut self) -> Frame {
        match self.random.below(32) {
            0..12 => self.ipc(),
            12..17 => self.short(),
            17..20 => {
                let mut fpage = self.fpage();
                let flags = if self.random.below(8) == 0 { FLUSH_SELF } else { self.random.below(4) & 2 };
                if self.random.below(2) == 0 {
                    fpage = fpage.with_rights(Rights::NONE);
                }
                self.control(Call::Flush as u32, [fpage.0, flags, 0, 0, 0, 0])
            }
            20..25 => self.thread(),
            25..28 => self.task(),
            28 => {
                let to = self.known();
                self.control(Call::ThreadSwitch as u32, [to, 1, 2, 3, 4, 5])
            }
            29 => self.control(NULL, [0, 1, 2, 3, 4, 5]),
            30 => self.control(Call::Clock as u32, [0, 1, 2, 3, 4, 5]),
            _ => {
                // Any number but those that the branches above choose with care.
                let number = (self.random.next() as u32 & !0x8000_0000) | self.random.pick(&[0, 0x8000_0000]);
                let number = if number & 0x8000_0000 != 0 { number & 0xffff_ff00 | 0x40 } else { number };
                self.control(number, [0, 1, 2, 3, 4, 5])
            }
        }
    }
}

/// The body of a player; its mailbox is `index`.
extern "C" fn play(argument: u64) -> u64 {
    let (player, mailbox) = ((argument & 0xff) as usize, (argument >> 8) as usize);
    let made = &MADE[player];
    let seed = SEED.load(Ordering::Relaxed) ^ (player as u64) << 56 ^ made.load(Ordering::Relaxed) << 20;
    let mut it = Player { random: Random::new(seed) };
    loop {
        let mut frame = it.frame();
        let creates = frame.rax as u32 & 0xffff == Call::ThreadControl as u32 & 0xffff
            || frame.rax as u32 & 0xffff == Call::TaskControl as u32 & 0xffff;
        made.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the module's text says why nothing that the suite needs is taken away.
        let fine = unsafe { guarded(mailbox, &mut frame) };
        if fine && creates && frame.rax == 0 {
            it.learn(frame.rdi);
        }
    }
}

fn made() -> u64 {
    MADE.iter().map(|made| made.load(Ordering::Relaxed)).sum()
}

/// The players and their tasks.
struct Troupe {
    players: [Agent; PLAYERS],
    /// After the players: they end first.
    tasks: [Child; 2],
}

impl Troupe {
    fn new() -> Outcome<Troupe> {
        let priority = pager::priority() - 1;
        let tasks = [Child(sys::task_create(48, priority)?), Child(sys::task_create(24, priority)?)];
        let fixed = [pager::uid().0, sys::myself().0, tasks[0].0.0, tasks[1].0.0];
        for (known, value) in KNOWN[4..].iter().zip(fixed) {
            known.store(value, Ordering::Relaxed);
        }
        let player = |index| Troupe::player(&tasks, index);
        Ok(Troupe { players: [player(0)?, player(1)?, player(2)?, player(3)?], tasks })
    }

    fn player(tasks: &[Child; 2], index: usize) -> Outcome<Agent> {
        let mut agent = Agent::with_priority(tasks[index / 3].0, pager::priority() - 1)?;
        KNOWN[index].store(agent.uid.0, Ordering::Relaxed);
        agent.start_apply(play, index as u64 | (agent.mailbox_index() as u64) << 8);
        Ok(agent)
    }

    /// Puts another player in the place of one that is gone or stuck. False if its task cannot pay for it.
    fn replace(&mut self, index: usize) -> bool {
        let _ = sys::thread_destroy(self.players[index].uid);
        let Ok(player) = Troupe::player(&self.tasks, index) else { return false };
        self.players[index] = player;
        true
    }
}

/// Watches the players until they made `calls` calls: ends what waits for ever, replaces who is gone.
fn supervise(calls: u64, seed: u64) -> Outcome {
    SEED.store(seed, Ordering::Relaxed);
    MADE.iter().for_each(|made| made.store(0, Ordering::Relaxed));
    let mut troupe = Troupe::new()?;
    let (mut before, mut at_last_review) = ([0; PLAYERS], [0; PLAYERS]);
    let mut round = 0;
    while made() < calls {
        sys::sleep_us(1000)?;
        crate::kit::progress();
        round += 1;
        for index in 0..PLAYERS {
            let now = MADE[index].load(Ordering::Relaxed);
            let state = sys::thread_info(troupe.players[index].uid).map(|info| info.state);
            if now == before[index] && matches!(state, Ok(2 | 3)) {
                let _ = sys::thread_abort(troupe.players[index].uid);
            }
            before[index] = now;
            // They end, stop and hinder each other, or lose pager and handler. Who is slow is replaced.
            let is_slow = round % REVIEW_ROUNDS == 0 && now - at_last_review[index] < REVIEW_CALLS_MIN;
            if !(state.is_err() || is_slow) || troupe.replace(index) {
                continue;
            }
            // They used up their quota, and their children cannot be taken from them one by one.
            drop(troupe);
            troupe = Troupe::new()?;
            break;
        }
        if round % REVIEW_ROUNDS == 0 {
            at_last_review = before;
        }
    }
    check!(made() >= calls);
    Ok(())
}

/// Random calls, and then a look whether the system is what it was.
pub fn random_system_calls() -> Outcome {
    // The first time this program's own pages come in, and are paid for.
    supervise(1000, 0)?;
    let before = sys::task_info(TaskId::NIL)?;
    let calls = crate::random_calls();
    supervise(calls, 1)?;
    let after = sys::task_info(TaskId::NIL)?;
    check_eq!((after.quota, after.threads), (before.quota, before.threads));
    // Pages of its own that this program touched for the first time may have cost something.
    let new_pages = after.pages - before.pages;
    check!(after.used - before.used <= new_pages, "{before:?}, then {after:?}");
    // The system still answers.
    super::ipc::words_and_label_between_tasks()?;
    super::map::mapped_page_is_shared()?;
    super::task::everything_comes_back()?;
    let served = pager::served();
    check!(served > 0);
    Ok(())
}
