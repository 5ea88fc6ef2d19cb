//! A random walk: threads of several tasks make system calls with good and bad arguments, fault, are interrupted, stopped, resumed,
//! aborted and ended in every state, and after each step all of the kernel's invariants hold.
//!
//! A program runs with the fast path (see [`crate::fast_path`]) on and off, and every step must look the same
//! to every user. At the end everything is ended, and all frames must be back.
//!
//! [`program`] is what a walk is made of, [`player`] performs it, [`history`] holds what one moment does not show.

mod history;
mod player;
mod program;

use crate::random::{amount, programs_in_parallel};
use crate::world::Caches;
use abi::op;
use history::{DONE_TO_ALL, STATES};
use kernel::sim;
use player::Walk;
use program::{Ipc, Op, operation};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Operations of a program.
const LEN: usize = 500;

/// Steps after which memory is checked, too. The tables of all tasks take longer than all else.
const MEMORY_STEPS: usize = 8;

/// Alarms, at most, that come one after the other while effective priorities are computed.
const SETTLE_STEPS: usize = 8;

/// What walks had to do with.
#[derive(Default)]
struct Seen {
    /// How often the fast path accepted.
    accepted: usize,
    /// How often a known route across a border was taken.
    crossed: usize,
    /// Steps that were compared.
    compared: usize,
    /// Which operation of `thread_control` met which state.
    met: BTreeMap<(u32, &'static str), usize>,
    /// Late returns from foreign calls: on another shuttle than the caller's, and on that.
    late: [usize; 2],
}

fn walk(program: &[Op], fast: bool, caches: Caches, mut each: impl FnMut(usize, Option<Vec<u64>>)) -> Seen {
    let trace = std::env::var_os("TERN_TRACE").is_some();
    let mut walk = Walk::new(fast, caches);
    walk.machine.world.check();
    for (i, op) in program.iter().enumerate() {
        walk.perform(op);
        // An alarm that a dispatch has set for this comes before the next instruction.
        for _ in 0..SETTLE_STEPS {
            if !walk.machine.world.k.is_settled() {
                walk.perform(&Op::Advance { us: 0 });
            }
        }
        if trace {
            walk.print(i, op);
        }
        let world = &walk.machine.world;
        if i % MEMORY_STEPS == 0 {
            world.check();
        } else {
            world.k.check_threads();
        }
        walk.history.look(&world.k);
        if let Err(what) = sim::audit(&world.k) {
            panic!("step {i}: {what}, after {op:?}");
        }
        let is_settled = walk.machine.world.k.is_settled();
        each(i, is_settled.then(|| walk.machine.observe(&walk.threads)));
    }
    walk.end();
    Seen {
        accepted: walk.machine.accepted,
        crossed: walk.machine.crossed,
        compared: 0,
        met: walk.history.met,
        late: walk.history.late,
    }
}

/// The program with the fast path on, then off: every step looks the same, but where effective priorities are still to be computed. A
/// dispatch does that, and the fast path makes none.
fn run(program: &[Op], sum: &Mutex<Seen>) {
    let mut seen = Vec::with_capacity(program.len());
    let with = walk(program, true, Caches::None, |_, all| seen.push(all));
    let mut compared = 0;
    walk(program, false, Caches::None, |i, all| {
        let (Some(seen), Some(all)) = (&seen[i], all) else { return };
        compared += 1;
        let differs = seen.iter().zip(&all).position(|(with, without)| with != without);
        if let Some(at) = differs {
            let around = at.saturating_sub(30)..(at + 4).min(all.len());
            let (with, without) = (&seen[around.clone()], &all[around]);
            panic!(
                "step {i} differs with the fast path and without:\n{with:x?}\n{without:x?}\n{:?}",
                program[i]
            );
        }
        assert_eq!(seen.len(), all.len());
    });
    let mut sum = sum.lock().expect("nobody panics with it");
    sum.accepted += with.accepted;
    sum.crossed += with.crossed;
    sum.compared += compared;
    with.met.into_iter().for_each(|(what, count)| *sum.met.entry(what).or_default() += count);
    sum.late.iter_mut().zip(with.late).for_each(|(sum, count)| *sum += count);
}

#[test]
fn random_system_calls_keep_every_invariant_on_both_paths() {
    let sum = Mutex::new(Seen::default());
    let steps = amount(1_000_000);
    programs_in_parallel("random walk", steps, LEN, operation, |program| run(program, &sum));
    let Seen { accepted, crossed, compared, met, late } = sum.into_inner().expect("nobody panics with it");
    assert!(accepted > steps / 200, "the fast path accepted next to nothing: {accepted} of {steps}");
    assert!(compared > steps * 9 / 10, "only {compared} of {steps} steps were compared");
    assert!(crossed > steps / 2000, "next to nothing took a known route: {crossed} of {steps}");
    println!("late returns on other shuttles than their callers', and on those: {late:?}");
    assert!(late.iter().all(|&count| count > steps / 100_000), "next to nothing returned late: {late:?}");
    let mut never = Vec::new();
    for operation in DONE_TO_ALL {
        let counts = STATES.map(|state| met.get(&(operation, state)).copied().unwrap_or_default());
        println!("thread_control {operation:2}: {counts:?}");
        never.extend(
            STATES.iter().zip(counts).filter(|(_, count)| *count == 0).map(|(state, _)| (operation, state)),
        );
    }
    assert!(never.is_empty(), "operations that met no thread in some state: {never:?}");
}

/// A return with a block, to a caller that takes one: random walks of a million steps did not come to it.
#[test]
fn a_server_that_has_returned_a_block_is_free_on_both_paths() {
    let call = Op::DoorCall { number: 2, takes: op::TAKES_BLOCK, item: 0x4003_90c1 };
    let ipc = Ipc { dest: 0, from: 0, timeouts: u64::MAX, window: 0, flags: 0, shown: 0, item: None };
    let back = Op::Long { form: 4, ipc, dope: 0, address: 0x4000_f000 };
    let sum = Mutex::default();
    run(&[call, back], &sum);
    let Seen { accepted, compared, .. } = sum.into_inner().expect("nobody panics with it");
    assert!(accepted > 0 && compared == 2, "{accepted} were accepted, {compared} compared");
}

#[test]
fn miri_random_system_calls_keep_every_invariant() {
    let (steps, len) = if cfg!(miri) { (12, 12) } else { (1000, LEN) };
    let run = |program: &[Op]| run(program, &Mutex::default());
    crate::random::programs("random walk, small", steps, len, operation, run);
}

/// Walks on a processor with translation caches.
fn nothing_stale(name: &str, caches: Caches) {
    programs_in_parallel(name, amount(8_000), LEN, operation, |program| {
        walk(program, true, caches, |_, _| ());
    });
}

#[test]
fn nothing_stale_is_left_without_tags() {
    nothing_stale("hostile caches", Caches::Untagged);
}

#[test]
fn nothing_stale_is_left_under_tags() {
    nothing_stale("hostile tagged caches", Caches::Tagged);
}

#[test]
fn nothing_stale_is_left_where_tags_change_hands() {
    nothing_stale("hostile caches, few tags", Caches::FewTags);
}
