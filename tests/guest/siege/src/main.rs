//! Servers that are killed at random moments while this program uses all of them: `siege SEED PLACE NAME=KILLS...` kills each program of these names so often,
//! keeps files below the directory `PLACE` ([`kept`]), and has a [`work`] for each other server that is killed. A kill counts if there was somebody to kill.
//! When the last is over, each work must succeed once more. It must be an operator.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod kept;
mod work;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use rt::api::{Failure, Name, Result, process};
use rt::thread::{self, Handle};
use rt::time::sleep;
use rt::{home, println};

rt::entry!(main);

/// Longest time between two kills, in microseconds.
const PAUSE_US: u64 = 40_000;

/// Kills in which at least one file is kept: a busy machine kills no faster than that.
const KILLS_A_ROUND: usize = 8;

/// How often a server is looked for that is just starting, or a file waited for that is being kept, and how long to wait in between.
const TRIES: usize = 6000;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

/// Priority of what works, and of what kills it.
const PRIORITY: u8 = 32;

/// Nobody is killed any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Something has failed, so that it is in vain to go on.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Rounds in which a file was kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A server that is killed.
struct Victim {
    name: Name,
    /// How often it is still to be killed.
    left: usize,
    /// How often it was.
    killed: usize,
}

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let Some((seed, place, victims)) = understood(&words) else {
        println!("usage: siege SEED PLACE NAME=KILLS...");
        return 2;
    };
    let outcome = besiege(seed, place, victims);
    match outcome {
        Ok(()) => println!("siege: all is well"),
        Err(failure) => println!("siege: {failure}"),
    }
    println!("siege: it is over");
    i32::from(outcome.is_err())
}

/// Reads the arguments: seed, place, and whom to kill.
fn understood<'a>(words: &[&'a str]) -> Option<(u64, &'a str, Vec<Victim>)> {
    let [seed, place, victims @ ..] = words else { return None };
    let victims = victims.iter().map(|word| victim(word)).collect::<Option<_>>()?;
    Some((seed.parse().ok()?, place, victims))
}

/// Reads `NAME=KILLS`.
fn victim(word: &str) -> Option<Victim> {
    let (name, kills) = word.split_once('=')?;
    Some(Victim { name: Name::new(name)?, left: kills.parse().ok()?, killed: 0 })
}

/// Says that something is wrong, if it is.
fn check(is_so: bool, what: &str) -> Result<()> {
    if is_so {
        return Ok(());
    }
    println!("siege: {what}");
    Err(Failure::Garbled)
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end.max(1)
    }
}

/// A thread that fails ends all others.
fn begin(body: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Handle<Result<()>>> {
    let body = move || {
        let outcome = body();
        if outcome.is_err() {
            HAS_FAILED.store(true, Ordering::Relaxed);
        }
        outcome
    };
    thread::spawn(PRIORITY, body).map_err(Failure::Kernel)
}

fn besiege(seed: u64, place: &str, mut victims: Vec<Victim>) -> Result<()> {
    let place = place.as_bytes().to_vec();
    let mut threads = Vec::new();
    threads.push(("files", begin(move || kept::all(place))?));
    for (name, once) in work::ALL {
        if victims.iter().any(|victim| victim.name.as_str() == name) {
            threads.push((name, begin(move || work::go_on(name, once))?));
        }
    }
    let killed = kill(Random(seed), &mut victims);
    if killed.is_err() {
        HAS_FAILED.store(true, Ordering::Relaxed);
    }
    IS_OVER.store(true, Ordering::Relaxed);
    let mut outcome = killed;
    for (name, thread) in threads {
        let ended = thread.join().unwrap_or(Err(Failure::Garbled));
        if let Err(failure) = ended {
            println!("siege: {name}: {failure}");
        }
        outcome = outcome.and(ended);
    }
    for Victim { name, killed, .. } in &victims {
        println!("siege: {} was killed {killed} times", name.as_str());
    }
    outcome
}

/// Kills until each was killed as often as it should be.
fn kill(mut random: Random, victims: &mut [Victim]) -> Result<()> {
    let (mut kills, mut missed) = (0, 0);
    while !HAS_FAILED.load(Ordering::Relaxed) {
        let mut left: Vec<&mut Victim> = victims.iter_mut().filter(|victim| victim.left > 0).collect();
        if left.is_empty() {
            break;
        }
        sleep(Duration::from_micros(random.below(PAUSE_US)));
        // The more kills are left, the likelier: so all of them come to their end together.
        let mut at = random.below(left.iter().map(|victim| victim.left as u64).sum());
        let place = left.iter().position(|victim| {
            let is_it = at < victim.left as u64;
            at = at.saturating_sub(victim.left as u64);
            is_it
        });
        let victim = &mut *left[place.unwrap_or(0)];
        if !kill_one(&victim.name)? {
            missed += 1;
            check(missed < TRIES, "somebody who was killed does not come back")?;
            continue;
        }
        missed = 0;
        victim.left -= 1;
        victim.killed += 1;
        kills += 1;
        if kills % KILLS_A_ROUND == 0 {
            wait_for_round()?;
        }
    }
    Ok(())
}

/// Kills a program, if it is there.
fn kill_one(name: &Name) -> Result<bool> {
    for place in 0.. {
        let Some(entry) = process::task_at(home(), place)? else { break };
        if entry.program() == *name {
            return Ok(process::kill(home(), entry.id()).is_ok());
        }
    }
    Ok(false)
}

/// Waits until one more file is kept.
fn wait_for_round() -> Result<()> {
    let before = KEPT.load(Ordering::Relaxed);
    for _ in 0..TRIES {
        if KEPT.load(Ordering::Relaxed) != before || HAS_FAILED.load(Ordering::Relaxed) {
            return Ok(());
        }
        sleep(PAUSE);
    }
    check(false, "no file is kept any more")
}
