//! The guest test suite: what the kernel promises, tried from user level.
//!
//! `init=suite` runs all tests in one boot; `args=` takes, separated by commas, `full` (more of the long ones), `timed` or
//! `untimed` (only the tests that are judged by the clock, or all others), parts of names (only those tests), `list`,
//! `seed=N`, `calls=N` for the random system calls and `kills=N` for the chaos, `crowd` (the chosen tests again and again, among [very many
//! tasks](cases::crowd)), or `transcript` with `seed=N`, `steps=N` and `verbose`. The last line is `SUITE-END ran=N failed=M`;
//! the exit status is 0 if nothing failed.
//!
//! Tests are in [`cases`], what they are made of in [`kit`]. A test gives orders to agents, threads in this
//! task or in children of it, and never waits for one without a limit; a watchdog ends the suite all the same
//! if the main thread does not come back.

#![no_std]
#![no_main]

extern crate alloc;

mod cases;
mod kit;

use alloc::string::String;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use kit::Outcome;
use rt::println;
use sys::abi::call::{REGISTERS, thread_op};
use sys::{TaskId, Uid};

/// Random system calls in an ordinary run, and in a full one.
const RANDOM_CALLS: [u64; 2] = [1_000_000, 10_000_000];

/// Threads and tasks that are ended among doors, in an ordinary run and in a full one.
const CHAOS_KILLS: [u64; 2] = [10_000, 100_000];

/// Threads that are made one after the other, to use up uids, in an ordinary run (more than cost nothing) and in a full one.
const UIDS: [u64; 2] = [20_000, 1_000_000];

static CALLS: AtomicU64 = AtomicU64::new(RANDOM_CALLS[0]);
static KILLS: AtomicU64 = AtomicU64::new(CHAOS_KILLS[0]);
static USED_UIDS: AtomicU64 = AtomicU64::new(UIDS[0]);
static RANDOM_SEED: AtomicU64 = AtomicU64::new(1);

/// How many random system calls to make.
fn random_calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// How many threads and tasks to end among doors.
fn chaos_kills() -> u64 {
    KILLS.load(Ordering::Relaxed)
}

/// How many uids to use up.
fn uids_to_use_up() -> u64 {
    USED_UIDS.load(Ordering::Relaxed)
}

/// What both follow from.
fn random_seed() -> u64 {
    RANDOM_SEED.load(Ordering::Relaxed)
}

/// Longest time without progress.
const PATIENCE_S: u64 = 60;

/// Index of the running test.
static RUNNING: AtomicUsize = AtomicUsize::new(usize::MAX);

/// One line for each thread of this task, and of those that it made.
fn describe_threads() {
    let next_task = |&task: &TaskId| sys::task_next(task).ok().filter(|&next| next != TaskId::NIL);
    println!("    {:?}", sys::task_info(TaskId::NIL));
    describe_threads_of(TaskId::NIL);
    core::iter::successors(next_task(&TaskId::NIL), next_task).for_each(describe_threads_of);
}

fn describe_threads_of(task: TaskId) {
    let next = |&thread: &Uid| sys::thread_next(task, thread).ok().filter(|&next| next != Uid::NIL);
    for thread in core::iter::successors(next(&Uid::NIL), next) {
        let Ok(info) = sys::thread_info(thread) else { continue };
        let state = thread_op::STATES.get(info.state as usize).unwrap_or(&"?");
        println!(
            "    {thread:?} {state} at {:#x}, {} us, {} faults",
            info.ip,
            info.cpu_ns / 1000,
            info.faults
        );
        for (group, names) in REGISTERS.iter().enumerate() {
            // Those of a thread that stands still.
            let Ok([a, b, c, d]) = sys::thread_registers(thread, group) else { break };
            println!("        {names:?}: {a:#x} {b:#x} {c:#x} {d:#x}");
        }
    }
}

extern "C" fn watch(_: u64, _: u64) -> ! {
    let (mut last, mut idle_s) = ((0, 0), 0);
    loop {
        let _ = sys::sleep_us(1_000_000);
        let now = (RUNNING.load(Ordering::Relaxed) as u64, kit::progress_so_far());
        idle_s = if now == last { idle_s + 1 } else { 0 };
        last = now;
        if idle_s >= PATIENCE_S {
            let name = cases::CASES.get(now.0 as usize).map_or("start", |(name, _)| name);
            println!("TEST {name} ... FAILED: no progress for {PATIENCE_S} s; what its threads do:");
            describe_threads();
            println!("SUITE-END ran={} failed=1", now.0.wrapping_add(1));
            rt::exit(1);
        }
    }
}

/// Tests with these names are judged by the clock: they want a machine whose time is what it has executed.
const TIMED: &str = "sched.";

/// Tests with these names make kernel memory run out, which the boot option `exhaust=on` has to allow.
const EXHAUSTING: &str = "exhaust.";

fn run_all(filters: &[String], timed: Option<bool>) -> i32 {
    let may_exhaust = cases::exhaust::is_allowed();
    let chosen = |name: &str| {
        (filters.is_empty() || filters.iter().any(|part| name.contains(part.as_str())))
            && timed.is_none_or(|timed| name.starts_with(TIMED) == timed)
            && (may_exhaust || !name.starts_with(EXHAUSTING))
    };
    let (mut ran, mut failed) = (0, 0);
    for (index, (name, case)) in cases::CASES.iter().enumerate().filter(|(_, (name, _))| chosen(name)) {
        RUNNING.store(index, Ordering::Relaxed);
        ran += 1;
        match case() {
            Ok(()) => println!("TEST {name} ... ok"),
            Err(failure) => {
                failed += 1;
                println!("TEST {name} ... FAILED: {failure}");
            }
        }
    }
    println!("SUITE-END ran={ran} failed={failed}");
    if failed == 0 && ran > 0 { 0 } else { 1 }
}

/// All chosen tests at each stage of a crowd.
fn run_crowded(filters: &[String]) -> Outcome<i32> {
    let mut crowd = cases::crowd::Crowd::gather()?;
    let mut status = 0;
    for (tasks, numbers) in cases::crowd::STAGES {
        crowd.leave(&numbers)?;
        println!("tasks that {tasks}");
        status |= run_all(filters, None);
    }
    Ok(status)
}

fn prepare() -> Outcome {
    kit::pager::start()?;
    core::mem::forget(kit::spawn(TaskId::NIL, kit::pager::priority(), watch, 0)?);
    Ok(())
}

fn cannot_start(failure: &kit::Failure) -> i32 {
    println!("TEST start ... FAILED: {failure}");
    println!("SUITE-END ran=1 failed=1");
    1
}

fn main() -> i32 {
    let text = rt::argument_text();
    let mut filters = alloc::vec::Vec::new();
    let (mut steps, mut transcript, mut verbose) = (4000, false, false);
    let (mut timed, mut crowded) = (None, false);
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word {
            "full" => {
                CALLS.store(RANDOM_CALLS[1], Ordering::Relaxed);
                KILLS.store(CHAOS_KILLS[1], Ordering::Relaxed);
                USED_UIDS.store(UIDS[1], Ordering::Relaxed);
            }
            "timed" => timed = Some(true),
            "untimed" => timed = Some(false),
            "transcript" => transcript = true,
            "crowd" => crowded = true,
            "verbose" => verbose = true,
            "list" => {
                cases::CASES.iter().for_each(|(name, _)| println!("{name}"));
                return 0;
            }
            word => match word.split_once('=') {
                Some(("seed", number)) => RANDOM_SEED.store(number.parse().unwrap_or(1), Ordering::Relaxed),
                Some(("calls", number)) => {
                    CALLS.store(number.parse().unwrap_or(RANDOM_CALLS[0]), Ordering::Relaxed)
                }
                Some(("kills", number)) => {
                    KILLS.store(number.parse().unwrap_or(CHAOS_KILLS[0]), Ordering::Relaxed)
                }
                Some(("steps", number)) => steps = number.parse().unwrap_or(steps),
                _ => filters.push(String::from(word)),
            },
        }
    }
    if let Err(failure) = prepare() {
        return cannot_start(&failure);
    }
    if crowded {
        return run_crowded(&filters).unwrap_or_else(|failure| cannot_start(&failure));
    }
    if !transcript {
        return run_all(&filters, timed);
    }
    match cases::transcript::run(random_seed(), steps, verbose) {
        Ok(()) => 0,
        Err(failure) => {
            println!("TRANSCRIPT FAILED: {failure}");
            1
        }
    }
}

rt::entry!(main);
