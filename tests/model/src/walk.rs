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

/// Time that is not charged yet is seen, so that no step differs for when it is: a walk of ten million steps found one that did.
#[test]
fn time_is_seen_before_it_is_charged() {
    let mut walk = Walk::new(true, Caches::None);
    walk.perform(&Op::Advance { us: 3 });
    let now = kernel::arch::now_ns();
    let k = &walk.machine.world.k;
    assert!(k.uncharged(now).1 > 0);
    let before = walk.machine.observe(&walk.threads);
    assert!(k.charge(now).is_some());
    assert_eq!(walk.machine.observe(&walk.threads), before);
}

/// An idle server to which native calls were denied is allowed them again: its words for the fast path of foreign calls go.
#[test]
fn foreign_calls_of_an_idle_server_leave_the_fast_path() {
    let program = [
        Op::Long {
            form: 2,
            ipc: Ipc {
                dest: 33972312906385436,
                from: 5266267120,
                timeouts: 12884901888000,
                window: 759,
                flags: 0,
                shown: 38419158510017441,
                item: None,
            },
            dope: 0,
            address: 1073954816,
        },
        Op::Answer { label: 1, item: 2179 },
        Op::Thread(program::Control {
            operation: 4,
            whom: program::Whom::Busy,
            target: 30387586629617230,
            rsi: 1,
            rdx: 0,
            r10: 86,
        }),
        Op::ReplyWait { dest: 62650214714537644, label: 0 },
        Op::React { number: 18872727652270225, long: 0 },
        Op::React { number: 36189339740877182, long: 1 },
        Op::React { number: 23705191493563013, long: 2 },
        Op::ReplyWait { dest: 22032603189934427, label: 0 },
        Op::Long {
            form: 1,
            ipc: Ipc {
                dest: 28495512911344757,
                from: 5624047972,
                timeouts: 4294967299000,
                window: 1073836231,
                flags: 8192,
                shown: 23213266404046705,
                item: None,
            },
            dope: 8191,
            address: 1073868792,
        },
        Op::React { number: 56130902524369318, long: 1 },
        Op::React { number: 4250140730490922, long: 1 },
        Op::React { number: 54459291270281471, long: 2 },
        Op::ReplyWait { dest: 22716978070720704, label: 0 },
        Op::Converse { dest: 67027201681679100 },
        Op::Intrude(Some(program::Control {
            operation: 9,
            whom: program::Whom::Busy,
            target: 47837765185882529,
            rsi: 1,
            rdx: 200,
            r10: 40,
        })),
        Op::NewTask { quota: 40, priority: 3 },
        Op::Spawn { task: 46120839258266341, priority: 2, pager: 50549793870128524 },
        Op::Thread(program::Control {
            operation: 9,
            whom: program::Whom::Controlled,
            target: 31120484553298580,
            rsi: 0,
            rdx: 0,
            r10: 82,
        }),
    ];
    run(&program, &Mutex::default());
}

/// A thread faults on a borrowed shuttle, which is taken back before its pager takes the fault: so it lends its own. Its pager calls a third thread on that, which is
/// interrupted. The state that was kept of the thread lay where that of its shuttle lies, so that it found the third one's.
#[test]
fn a_kept_state_goes_with_the_shuttle_of_its_thread() {
    let program = [
        Op::React { number: 20875978529227318, long: 6 },
        Op::Advance { us: 11000 },
        Op::Long {
            form: 2,
            ipc: Ipc {
                dest: 30792611084387056,
                from: 8140378694,
                timeouts: 219043332095,
                window: 0,
                flags: 16896,
                shown: 51924042607213378,
                item: Some((1073856707, 1073765692)),
            },
            dope: 1056767,
            address: 1073786872,
        },
        Op::Long {
            form: 0,
            ipc: Ipc {
                dest: 0,
                from: 1459697872,
                timeouts: 214748364800,
                window: 0,
                flags: 36864,
                shown: 13062331002590948,
                item: None,
            },
            dope: 8192,
            address: 1073942536,
        },
        Op::Intrude(Some(program::Control {
            operation: 7,
            whom: program::Whom::Partner,
            target: 40429526786519610,
            rsi: 70368744177664,
            rdx: 0,
            r10: 23,
        })),
        Op::ReplyWait { dest: 5335511797486605, label: 0 },
        Op::Thread(program::Control {
            operation: 7,
            whom: program::Whom::Any,
            target: 19092757225530616,
            rsi: 1,
            rdx: 200,
            r10: 58,
        }),
        Op::React { number: 25626752765294503, long: 6 },
        Op::React { number: 23834748891413897, long: 6 },
        Op::React { number: 70849889408949528, long: 5 },
        Op::DoorCall { number: 1, takes: 0, item: 0 },
        Op::React { number: 18013375505521457, long: 4 },
        Op::Fault { address: 1073839422, rights: 4 },
        Op::Fault { address: 1073809199, rights: 2 },
        Op::React { number: 58547506866568665, long: 4 },
        Op::AnswerShown(Ipc {
            dest: 50230664433937615,
            from: 1310801805,
            timeouts: 18446744071562067988,
            window: 0,
            flags: 4608,
            shown: 16461097247174963,
            item: Some((759, 1073911115)),
        }),
        Op::React { number: 25584321990072877, long: 6 },
        Op::Flush { page: 3107, own: true },
        Op::Intrude(Some(program::Control {
            operation: 6,
            whom: program::Whom::Stopped,
            target: 56758268107193155,
            rsi: 70368744177664,
            rdx: 32768,
            r10: 82,
        })),
        Op::ReplyWait { dest: 15202701915521705, label: 0 },
        Op::React { number: 56552387020488420, long: 0 },
        Op::Call { dest: 50761619579941573, takes: 2048 },
        Op::Intrude(Some(program::Control {
            operation: 4,
            whom: program::Whom::Controlled,
            target: 53738867801637954,
            rsi: 2,
            rdx: 0,
            r10: 63,
        })),
        Op::Answer { label: 3, item: 0 },
        Op::Long {
            form: 0,
            ipc: Ipc {
                dest: 49190206206694066,
                from: 2014855569,
                timeouts: 4294967295,
                window: 3367,
                flags: 49664,
                shown: 26568223710366726,
                item: None,
            },
            dope: 2105345,
            address: 1073827840,
        },
    ];
    run(&program, &Mutex::default());
}
