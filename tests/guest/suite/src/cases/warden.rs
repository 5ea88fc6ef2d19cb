//! A thread of the suite's that does to others what only their chief may: stops them, lets them go on, ends their waits, changes how urgent
//! they are, alerts, steps and ends them, in whatever they are in the middle of.
//!
//! It is more urgent than all of them and sleeps in between, so each time it comes by an interrupt of the clock, at an instruction that nobody
//! chose. Whoever is stopped or less urgent is put right some turns later: nobody is kept from its work for long.

use crate::kit::{Agent, Outcome, Random, pager};
use core::sync::atomic::{AtomicU64, Ordering};
use rt::println;
use sys::abi::call::thread_op;
use sys::{TaskId, Uid};

/// What it does, and how its counts are called.
const KINDS: [&str; 8] = ["stop", "resume", "abort", "priority", "alert", "step", "pager", "end"];
const STOP: usize = 0;
const RESUME: usize = 1;
const ABORT: usize = 2;
const PRIORITY: usize = 3;
const ALERT: usize = 4;
const STEP: usize = 5;
const PAGER: usize = 6;
const END: usize = 7;

/// How often each was done to a thread in each state.
static DONE: [[AtomicU64; thread_op::STATES.len()]; KINDS.len()] =
    [const { [const { AtomicU64::new(0) }; thread_op::STATES.len()] }; KINDS.len()];

/// How many may be stopped, or less urgent, at a time.
const AWAY_MAX: usize = 3;

/// Whom the warden looks after.
pub struct Wards {
    /// Threads that lose nothing but time: players, pagers.
    pub spared: &'static [&'static [AtomicU64]],
    /// Threads that may be ended, and that have no code of their own to be stepped through.
    pub others: &'static [AtomicU64],
    /// Who resolves the others' faults.
    pub pager: &'static AtomicU64,
}

/// The wards of the warden that there is.
static WARDS: AtomicU64 = AtomicU64::new(0);

/// Makes a warden, which begins at once; its end is the agent's.
pub fn new(wards: &'static Wards, seed: u64) -> Outcome<Agent> {
    WARDS.store(wards as *const Wards as u64, Ordering::Relaxed);
    let mut agent = Agent::with_priority(TaskId::NIL, pager::priority())?;
    agent.start_apply(watch, seed);
    Ok(agent)
}

/// Forgets what was done.
pub fn forget() {
    DONE.as_flattened().iter().for_each(|count| count.store(0, Ordering::Relaxed));
}

/// Says what was done, by the states in which it met somebody. Returns how often in all.
pub fn tell() -> u64 {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    for (kind, counts) in KINDS.iter().zip(&DONE) {
        println!("WARDEN {kind}: {:?} of {:?}", counts.each_ref().map(count), thread_op::STATES);
    }
    DONE.as_flattened().iter().map(count).sum()
}

struct Warden {
    random: Random,
    wards: &'static Wards,
    /// Who is stopped, less urgent, or stepped.
    away: [Option<(usize, Uid)>; AWAY_MAX],
}

extern "C" fn watch(seed: u64) -> u64 {
    // SAFETY: `new` has stored the address of something that lives for ever.
    let wards = unsafe { &*(WARDS.load(Ordering::Relaxed) as *const Wards) };
    let mut warden = Warden { random: Random::new(seed), wards, away: [None; AWAY_MAX] };
    loop {
        let _ = sys::sleep_us(20 + warden.random.below(400));
        warden.turn();
    }
}

impl Warden {
    /// Somebody, and whether that is one of the others.
    fn ward(&mut self) -> (Uid, bool) {
        let other = self.random.below(2) == 0;
        let list = if other {
            self.wards.others
        } else {
            self.wards.spared[self.random.below(self.wards.spared.len() as u64) as usize]
        };
        let first = Uid(list[self.random.below(list.len() as u64) as usize].load(Ordering::Relaxed));
        // Some of those that nobody knows by name: whoever was made after it in its task, unless that is the warden's own. Nil would be this
        // program itself.
        if !first.is_nil()
            && self.random.below(4) == 0
            && let Ok(info) = sys::thread_info(first)
            && Ok(info.task) != sys::thread_info(Uid::NIL).map(|own| own.task)
            && let Ok(next) = sys::thread_next(info.task, first)
            && !next.is_nil()
        {
            return (next, false);
        }
        (first, other)
    }

    fn turn(&mut self) {
        let place = self.random.below(AWAY_MAX as u64) as usize;
        if let Some((kind, uid)) = self.away[place].take() {
            return self.put_right(kind, uid);
        }
        let (uid, other) = self.ward();
        if uid.is_nil() {
            return;
        }
        let kind = match self.random.below(16) {
            0..5 => STOP,
            5..8 => ABORT,
            8..11 => PRIORITY,
            11 | 12 => ALERT,
            13 if other => STEP,
            14 if other => PAGER,
            15 if other => END,
            _ => STOP,
        };
        if self.act(kind, uid) && matches!(kind, STOP | PRIORITY | STEP) {
            self.away[place] = Some((kind, uid));
        }
    }

    /// Does it, and counts it. False if that was not possible.
    fn act(&mut self, kind: usize, uid: Uid) -> bool {
        let Ok(info) = sys::thread_info(uid) else { return false };
        let result = match kind {
            STOP => sys::thread_stop(uid),
            RESUME => sys::thread_resume(uid),
            ABORT => sys::thread_abort(uid),
            PRIORITY => {
                let less = 1 + self.random.below(3) as u8;
                sys::thread_set_priority(uid, pager::priority().saturating_sub(less), 0)
            }
            ALERT => sys::alert(uid).map(drop),
            STEP => sys::thread_step(uid, true).map(drop),
            PAGER => {
                let (pager, _) = self.ward();
                let pager = if self.random.below(2) == 0 {
                    pager
                } else {
                    Uid(self.wards.pager.load(Ordering::Relaxed))
                };
                sys::thread_set_pager(uid, pager, pager::uid())
            }
            _ => sys::thread_destroy(uid),
        };
        DONE[kind][info.state as usize].fetch_add(1, Ordering::Relaxed);
        result.is_ok()
    }

    /// Undoes what was done to somebody, who may have gone meanwhile.
    fn put_right(&mut self, kind: usize, uid: Uid) {
        match kind {
            STOP => _ = self.act(RESUME, uid),
            PRIORITY => _ = sys::thread_set_priority(uid, pager::priority() - 1, 0),
            _ => _ = sys::thread_step(uid, false),
        }
    }
}
