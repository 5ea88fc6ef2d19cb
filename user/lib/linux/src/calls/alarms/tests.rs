//! Timers that send signals, as programs see them. Numbers that are expected are Linux's own.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EAGAIN, EINVAL, ESRCH, Errno};
use crate::machine::Tid;
use linux_raw_sys::general::*;
use std::vec::Vec;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const TESTED: u32 = SIGUSR1;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn put(rig: &mut Rig, words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rig.put(&bytes)
}

/// A rig that blocks the signals of its timers.
fn rig() -> Rig {
    let mut rig = Rig::begun();
    let set = put(&mut rig, &[u64::MAX]);
    assert_eq!(rig.call(__NR_rt_sigprocmask, &[SIG_BLOCK.into(), set, 0, 8]), 0);
    rig
}

fn create(rig: &mut Rig, clock: u32, event: &[u64]) -> i64 {
    let at = if event.is_empty() { 0 } else { put(rig, event) };
    let to = rig.room(4);
    match rig.call(__NR_timer_create, &[clock.into(), at, to]) {
        0 => rig.half(to).into(),
        error => error,
    }
}

fn event(signal: u32, kind: u32, value: u64) -> [u64; 3] {
    [value, u64::from(signal) | u64::from(kind) << 32, u64::from(FIRST)]
}

fn set(rig: &mut Rig, timer: i64, flags: u32, every: u64, first: u64) {
    let times = put(rig, &[every / SECOND, every % SECOND, first / SECOND, first % SECOND]);
    assert_eq!(rig.call(__NR_timer_settime, &[timer as u64, flags.into(), times, 0]), 0);
}

fn left(rig: &mut Rig, timer: i64) -> [u64; 2] {
    let to = rig.room(32);
    assert_eq!(rig.call(__NR_timer_gettime, &[timer as u64, to]), 0);
    let words = [0, 8, 16, 24].map(|at| u64::from(rig.half(to + at)));
    [words[0] * SECOND + words[1], words[2] * SECOND + words[3]]
}

/// The next signal: number, code, timer, times that it was missed, value.
fn next(rig: &mut Rig, tid: Tid) -> Option<[u32; 5]> {
    let (set, to, now) = (put(rig, &[u64::MAX]), rig.room(128), put(rig, &[0, 0]));
    for at in [set, now] {
        let bytes = rig.get(FIRST, at, 16);
        rig.system.write(tid, at, &bytes).unwrap();
    }
    match rig.call_by(tid, __NR_rt_sigtimedwait, &[set, to, now, 8]) {
        0.. => {
            let bytes = rig.get(tid, to, 32);
            let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            Some([0, 8, 16, 20, 24].map(half))
        }
        errno => {
            assert_eq!(errno, error(EAGAIN));
            None
        }
    }
}

#[test]
fn timers_send_signals_with_values() {
    let mut rig = rig();
    let first = create(&mut rig, CLOCK_MONOTONIC, &[]);
    let second = create(&mut rig, CLOCK_REALTIME, &event(TESTED, SIGEV_SIGNAL, 77));
    assert_eq!((first, second), (0, 1));
    set(&mut rig, first, 0, 0, SECOND);
    set(&mut rig, second, 0, 0, 2 * SECOND);
    assert_eq!((left(&mut rig, first), left(&mut rig, second)), ([0, SECOND], [0, 2 * SECOND]));
    assert_eq!(rig.system.machine.wake, Some(1000 + SECOND));
    rig.pass(SECOND - 1);
    assert_eq!(next(&mut rig, FIRST), None);
    rig.pass(1);
    assert_eq!(next(&mut rig, FIRST), Some([SIGALRM, SI_TIMER as u32, 0, 0, 0]));
    assert_eq!(left(&mut rig, first), [0, 0]);
    rig.pass(SECOND);
    assert_eq!(next(&mut rig, FIRST), Some([TESTED, SI_TIMER as u32, 1, 0, 77]));
    assert_eq!(rig.system.machine.wake, None);
    // A time that is over comes at once; one that is set anew does not come.
    set(&mut rig, first, TIMER_ABSTIME, 0, SECOND);
    set(&mut rig, second, 0, 0, SECOND);
    set(&mut rig, second, 0, 0, 0);
    rig.pass(1);
    assert_eq!(next(&mut rig, FIRST).map(|signal| signal[0]), Some(SIGALRM));
    rig.pass(9 * SECOND);
    assert_eq!(next(&mut rig, FIRST), None);
    assert_eq!(rig.call(__NR_timer_delete, &[0]), 0);
    assert_eq!(rig.call(__NR_timer_delete, &[0]), error(EINVAL));
    assert_eq!(create(&mut rig, CLOCK_MONOTONIC, &event(0, SIGEV_NONE, 0)), 0, "the number is free");
}

#[test]
fn signals_that_wait_count_what_they_miss() {
    let mut rig = rig();
    let timer = create(&mut rig, CLOCK_MONOTONIC, &event(TESTED, SIGEV_THREAD_ID, 5));
    set(&mut rig, timer, 0, 10 * MS, 10 * MS);
    for _ in 0..5 {
        rig.pass(10 * MS);
    }
    assert_eq!(next(&mut rig, FIRST), Some([TESTED, SI_TIMER as u32, 0, 4, 5]));
    assert_eq!(rig.call(__NR_timer_getoverrun, &[timer as u64]), 4);
    assert_eq!(next(&mut rig, FIRST), None);
    rig.pass(35 * MS);
    assert_eq!(next(&mut rig, FIRST).map(|signal| signal[3]), Some(2));
    assert_eq!(left(&mut rig, timer), [10 * MS, 5 * MS]);
    // A short interval is counted, and costs no more than a millisecond.
    set(&mut rig, timer, 0, 1000, 1000);
    rig.pass(1000);
    let wake = rig.system.machine.wake.unwrap();
    assert_eq!(wake, rig.system.machine.now + MS);
    rig.pass(MS);
    assert_eq!(next(&mut rig, FIRST).map(|signal| signal[3]), Some(1000));
}

#[test]
fn timers_have_owners() {
    let mut rig = rig();
    for (clock, event) in [
        (CLOCK_MONOTONIC_RAW, event(TESTED, SIGEV_SIGNAL, 0)),
        (99, event(TESTED, SIGEV_SIGNAL, 0)),
        (CLOCK_MONOTONIC, event(65, SIGEV_SIGNAL, 0)),
        (CLOCK_MONOTONIC, event(TESTED, 7, 0)),
        (CLOCK_MONOTONIC, [0, u64::from(TESTED) | u64::from(SIGEV_THREAD_ID) << 32, 99]),
    ] {
        assert_eq!(create(&mut rig, clock, &event), error(EINVAL));
    }
    let timer = create(&mut rig, CLOCK_MONOTONIC, &[]);
    set(&mut rig, timer, 0, SECOND, SECOND);
    let child = rig.fork();
    assert_eq!(rig.call_by(child, __NR_timer_delete, &[timer as u64]), error(EINVAL));
    rig.pass(SECOND);
    assert_eq!(next(&mut rig, child), None);
    assert!(next(&mut rig, FIRST).is_some());
    // With the process its timers go.
    let to = rig.room(4);
    assert_eq!(rig.call_by(child, __NR_timer_create, &[CLOCK_MONOTONIC.into(), 0, to]), 0);
    assert_eq!(rig.try_by(child, __NR_exit_group, &[0]), None);
    assert_eq!(rig.call(__NR_timer_delete, &[timer as u64]), 0);
    assert_eq!(rig.system.machine.wake, None);
    let made = (0..1100).take_while(|_| create(&mut rig, CLOCK_MONOTONIC, &[]) >= 0).count();
    assert_eq!(made, 1024);
}

#[test]
fn cpu_time_has_timers() {
    let mut rig = rig();
    let timer = create(&mut rig, CLOCK_PROCESS_CPUTIME_ID, &event(TESTED, SIGEV_SIGNAL, 0));
    set(&mut rig, timer, 0, 0, 50 * MS);
    assert_eq!(rig.system.machine.wake, Some(1000 + 50 * MS));
    rig.pass(SECOND);
    assert_eq!(next(&mut rig, FIRST), None, "it has used nothing");
    rig.system.process(FIRST).unwrap().used[0] = 30 * MS;
    assert_eq!(left(&mut rig, timer), [0, 20 * MS]);
    rig.pass(SECOND);
    assert_eq!(rig.system.machine.wake, Some(rig.system.machine.now + 20 * MS));
    rig.system.process(FIRST).unwrap().used[0] = 50 * MS;
    rig.pass(20 * MS);
    assert_eq!(next(&mut rig, FIRST).map(|signal| signal[0]), Some(TESTED));
    for (kind, signal) in [(ITIMER_VIRTUAL, SIGVTALRM), (ITIMER_PROF, SIGPROF)] {
        let new = put(&mut rig, &[0, 10_000, 0, 20_000]);
        let old = rig.room(32);
        assert_eq!(rig.call(__NR_setitimer, &[kind.into(), new, 0]), 0);
        assert_eq!(rig.call(__NR_getitimer, &[kind.into(), old]), 0);
        assert_eq!([0, 8, 16, 24].map(|at| rig.half(old + at)), [0, 10_000, 0, 20_000]);
        rig.system.process(FIRST).unwrap().used[0] += 20 * MS;
        rig.pass(20 * MS);
        assert_eq!(
            next(&mut rig, FIRST).map(|found| found[..2].to_vec()),
            Some(Vec::from([signal, SI_KERNEL]))
        );
        let stop = put(&mut rig, &[0; 4]);
        assert_eq!(rig.call(__NR_setitimer, &[kind.into(), stop, old]), 0);
        assert_eq!(rig.half(old + 24), 10_000);
    }
    assert_eq!(rig.system.machine.wake, None);
    assert_eq!(rig.call(__NR_getitimer, &[3, 0]), error(EINVAL));
}

/// Many quick timers cost no more than a few: they come together, and seldom.
#[test]
fn many_timers_wake_the_machine_seldom() {
    let mut rig = rig();
    for number in 0..1024 {
        let timer = create(&mut rig, CLOCK_MONOTONIC, &event(SIGRTMIN, SIGEV_SIGNAL, number));
        // Each at another time.
        set(&mut rig, timer, 0, 1, 1000 + 977 * number);
        rig.free = crate::calls::rig::DATA + 4096;
    }
    let (mut wakes, end) = (0, rig.system.machine.now + SECOND);
    while let Some(wake) = rig.system.machine.wake.filter(|wake| *wake < end) {
        rig.system.machine.now = wake.max(rig.system.machine.now);
        rig.system.time();
        wakes += 1;
    }
    std::eprintln!("wakes in a second: {wakes}");
    assert!(wakes < 2100, "{wakes}");
}

/// The clock of somebody's CPU time, as C libraries name it.
fn clock_of(number: Tid, bits: i32) -> u32 {
    (!(number as i32) << 3 | bits) as u32
}

#[test]
fn the_cpu_time_of_another_process_has_timers() {
    let mut rig = rig();
    let child = rig.fork();
    let timer = create(&mut rig, clock_of(child, 2), &event(TESTED, SIGEV_SIGNAL, 9));
    assert_eq!(timer, 0);
    set(&mut rig, timer, 0, 0, 50 * MS);
    rig.system.process(FIRST).unwrap().used[0] = SECOND;
    rig.system.process(child).unwrap().used[0] = 30 * MS;
    rig.pass(SECOND);
    assert_eq!((left(&mut rig, timer), next(&mut rig, FIRST)), ([0, 20 * MS], None));
    rig.system.process(child).unwrap().used[0] = 50 * MS;
    rig.pass(SECOND);
    assert_eq!(next(&mut rig, FIRST), Some([TESTED, SI_TIMER as u32, 0, 0, 9]), "it is the maker's");
    assert_eq!(next(&mut rig, child), None);
    // By its end it is nobody's, and no other process is taken for it.
    set(&mut rig, timer, 0, SECOND, SECOND);
    assert_eq!(rig.try_by(child, __NR_exit_group, &[0]), None);
    assert_eq!(left(&mut rig, timer), [SECOND, 0]);
    let times = put(&mut rig, &[0, 0, 1, 0]);
    assert_eq!(rig.call(__NR_timer_settime, &[timer as u64, 0, times, 0]), error(ESRCH));
    let late = create(&mut rig, clock_of(child, 2), &[]);
    assert_eq!(late, 1, "nobody has waited for it yet");
    assert_eq!(rig.call(__NR_timer_settime, &[late as u64, 0, times, 0]), error(ESRCH));
    assert_eq!(rig.call(__NR_wait4, &[child.into(), 0, 0, 0]), child.into());
    assert_eq!(create(&mut rig, clock_of(child, 2), &[]), error(EINVAL));
    rig.pass(9 * SECOND);
    assert_eq!(rig.system.machine.wake, None);
}

#[test]
fn clocks_of_cpu_time_are_those_of_somebody() {
    let mut rig = rig();
    let (thread, child) = (rig.thread(), rig.fork());
    for kind in 0..3 {
        for good in [0, FIRST, child] {
            assert!(create(&mut rig, clock_of(good, kind), &[]) >= 0, "{good}");
        }
        for good in [0, FIRST, thread] {
            assert!(create(&mut rig, clock_of(good, 4 | kind), &[]) >= 0, "{good}");
        }
        for bad in [clock_of(thread, kind), clock_of(99, kind), clock_of(child, 4 | kind)] {
            assert_eq!(create(&mut rig, bad, &[]), error(EINVAL), "{bad:#x}");
        }
    }
    for bad in [clock_of(FIRST, 3), clock_of(FIRST, 7)] {
        assert_eq!(create(&mut rig, bad, &[]), error(EINVAL));
    }
    // One of a thread that is gone waits for nothing more.
    let timer = create(&mut rig, clock_of(thread, 6), &[]);
    set(&mut rig, timer, 0, 0, SECOND);
    assert_eq!(rig.try_by(thread, __NR_exit, &[0]), None);
    let times = put(&mut rig, &[0, 0, 1, 0]);
    assert_eq!(rig.call(__NR_timer_settime, &[timer as u64, 0, times, 0]), error(ESRCH));
}
