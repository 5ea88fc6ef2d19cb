//! Timers and signals that are read. What is expected was asked of Linux.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EAGAIN, EBADF, EFAULT, EINVAL, Errno};
use linux_raw_sys::general::{
    self as nr, EPOLL_CTL_ADD, EPOLLET, EPOLLIN, O_NONBLOCK, SIG_BLOCK, SIGCHLD, SIGUSR1, SIGUSR2,
    TFD_TIMER_ABSTIME,
};
use std::vec;
use std::vec::Vec;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn words(rig: &mut Rig, words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rig.put(&bytes)
}

fn timer(rig: &mut Rig, clock: u32) -> u64 {
    rig.call(nr::__NR_timerfd_create, &[clock.into(), O_NONBLOCK.into()]) as u64
}

/// Sets a timer; the interval and the time that were left.
fn set(rig: &mut Rig, fd: u64, flags: u32, every: u64, first: u64) -> (u64, u64) {
    let new = words(rig, &[0, every, first / 1_000_000_000, first % 1_000_000_000]);
    let old = rig.room(32);
    assert_eq!(rig.call(nr::__NR_timerfd_settime, &[fd, flags.into(), new, old]), 0);
    times(rig, old)
}

fn times(rig: &mut Rig, at: u64) -> (u64, u64) {
    let [every_seconds, every, seconds, rest] =
        [0, 8, 16, 24].map(|word| u64::from_le_bytes(rig.get(FIRST, at + word, 8).try_into().unwrap()));
    (every_seconds * 1_000_000_000 + every, seconds * 1_000_000_000 + rest)
}

fn left(rig: &mut Rig, fd: u64) -> (u64, u64) {
    let to = rig.room(32);
    assert_eq!(rig.call(nr::__NR_timerfd_gettime, &[fd, to]), 0);
    times(rig, to)
}

fn count(rig: &mut Rig, fd: u64) -> Result<u64, i64> {
    rig.read(fd, 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

fn add(rig: &mut Rig, fd: u64) -> u64 {
    let list = rig.call(nr::__NR_epoll_create1, &[0]) as u64;
    let event = rig.put(&[&(EPOLLIN | EPOLLET).to_le_bytes()[..], &[0; 8]].concat());
    assert_eq!(rig.call(nr::__NR_epoll_ctl, &[list, EPOLL_CTL_ADD.into(), fd, event]), 0);
    list
}

fn events(rig: &mut Rig, list: u64) -> i64 {
    let at = rig.room(96);
    rig.call(nr::__NR_epoll_wait, &[list, at, 8, 0])
}

#[test]
fn a_timer_expires_once_or_again() {
    let mut rig = Rig::begun();
    let fd = timer(&mut rig, nr::CLOCK_MONOTONIC);
    assert_eq!((count(&mut rig, fd), rig.read(fd, 4)), (Err(error(EAGAIN)), Err(error(EINVAL))));
    assert_eq!(set(&mut rig, fd, 0, 0, 100), (0, 0));
    assert_eq!(rig.system.machine.wake, Some(1100));
    rig.pass(99);
    assert_eq!((rig.poll(fd), left(&mut rig, fd)), (0, (0, 1)));
    rig.pass(1);
    assert_eq!((rig.poll(fd), left(&mut rig, fd), rig.system.machine.wake), (0x41, (0, 0), None));
    assert_eq!((count(&mut rig, fd), count(&mut rig, fd)), (Ok(1), Err(error(EAGAIN))));

    // One that repeats counts on, and wakes the machine only once until it is read.
    set(&mut rig, fd, 0, 10, 10);
    rig.pass(105);
    assert_eq!((rig.poll(fd), rig.system.machine.wake), (0x41, None));
    assert_eq!((count(&mut rig, fd), count(&mut rig, fd)), (Ok(10), Err(error(EAGAIN))));
    assert_eq!(rig.system.machine.wake, Some(rig.system.machine.now + 5));
    assert_eq!(left(&mut rig, fd), (10, 5));
    rig.pass(20);
    assert_eq!(left(&mut rig, fd), (10, 5));
    assert_eq!((rig.poll(fd), count(&mut rig, fd)), (0x41, Ok(2)));
    // The shortest interval there is.
    set(&mut rig, fd, 0, 1, 1);
    rig.pass(1_000_000);
    assert_eq!(count(&mut rig, fd), Ok(1_000_000));

    // To be set forgets what has been counted, and says what was left.
    rig.pass(10);
    assert_eq!(set(&mut rig, fd, 0, 0, 10_000_000_000), (1, 1));
    assert_eq!((count(&mut rig, fd), left(&mut rig, fd)), (Err(error(EAGAIN)), (0, 10_000_000_000)));
    assert_eq!(set(&mut rig, fd, 0, 5, 0), (0, 10_000_000_000));
    assert_eq!((left(&mut rig, fd), rig.system.machine.wake), ((5, 0), None));
    set(&mut rig, fd, 0, 0, 10);
    rig.call(nr::__NR_close, &[fd]);
    assert_eq!(rig.system.machine.wake, None);
}

#[test]
fn a_timer_at_a_time_of_its_clock() {
    let mut rig = Rig::begun();
    for (clock, offset) in [(nr::CLOCK_MONOTONIC, 0), (nr::CLOCK_REALTIME, 1_700_000_000_000_000_000)] {
        let fd = timer(&mut rig, clock);
        let now = rig.system.machine.now + offset;
        set(&mut rig, fd, TFD_TIMER_ABSTIME, 0, now + 50);
        assert_eq!((rig.poll(fd), left(&mut rig, fd)), (0, (0, 50)));
        rig.pass(50);
        assert_eq!(count(&mut rig, fd), Ok(1));
        set(&mut rig, fd, TFD_TIMER_ABSTIME, 0, now);
        assert_eq!(count(&mut rig, fd), Ok(1));
    }
}

#[test]
fn threads_and_lists_wait_for_timers() {
    let mut rig = Rig::begun();
    let fd = rig.call(nr::__NR_timerfd_create, &[1, 0]) as u64;
    let (thread, at) = (rig.thread(), rig.room(8));
    set(&mut rig, fd, 0, 0, 100);
    assert_eq!(rig.try_by(thread, nr::__NR_read, &[fd, at, 8]), None);
    rig.pass(99);
    assert_eq!(rig.answer(thread), None);
    rig.pass(1);
    assert_eq!((rig.answer(thread), rig.half(at)), (Some(8), 1));
    let list = add(&mut rig, fd);
    set(&mut rig, fd, 0, 10, 10);
    rig.pass(15);
    assert_eq!((events(&mut rig, list), events(&mut rig, list)), (1, 0));
    rig.pass(15);
    assert_eq!(events(&mut rig, list), 0);
    count(&mut rig, fd).unwrap();
    rig.pass(15);
    assert_eq!(events(&mut rig, list), 1);
}

#[test]
fn timers_that_make_no_sense() {
    let mut rig = Rig::begun();
    for (clock, is_one) in [(0, true), (1, true), (2, false), (3, false), (4, false), (7, true), (11, false)]
    {
        assert_eq!(rig.call(nr::__NR_timerfd_create, &[clock, 0]) >= 0, is_one);
    }
    assert_eq!(rig.call(nr::__NR_timerfd_create, &[1, 1]), error(EINVAL));
    let fd = timer(&mut rig, 1);
    let minus = u64::MAX;
    for (flags, new) in
        [(0, [0, 0, minus, 0]), (0, [0, 0, 0, 1_000_000_000]), (0, [0, minus, 0, 0]), (8, [0, 0, 1, 0])]
    {
        let new = words(&mut rig, &new);
        assert_eq!(rig.call(nr::__NR_timerfd_settime, &[fd, flags, new, 0]), error(EINVAL));
    }
    let new = words(&mut rig, &[0, 0, 1, 0]);
    assert_eq!(rig.call(nr::__NR_timerfd_settime, &[0, 0, new, 0]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_timerfd_settime, &[99, 0, new, 0]), error(EBADF));
    assert_eq!(rig.call(nr::__NR_timerfd_settime, &[fd, 0, 0, 0]), error(EFAULT));
    assert_eq!(rig.write(fd, &[0; 8]), error(EINVAL));
}

fn block(rig: &mut Rig, signals: &[u32]) -> u64 {
    let set = signals.iter().fold(0u64, |set, signal| set | 1 << (signal - 1));
    let set = words(rig, &[set]);
    assert_eq!(rig.call(nr::__NR_rt_sigprocmask, &[SIG_BLOCK.into(), set, 0, 8]), 0);
    set
}

/// Signals that are read: number, code, sender, status.
fn signals(rig: &mut Rig, fd: u64, len: usize) -> Result<Vec<[u32; 4]>, i64> {
    let bytes = rig.read(fd, len)?;
    let half = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    Ok(bytes.chunks(128).map(|one| [0, 8, 12, 40].map(|at| half(one, at))).collect())
}

#[test]
fn signals_are_read() {
    let mut rig = Rig::begun();
    let all = block(&mut rig, &[SIGUSR1, SIGUSR2, SIGCHLD]);
    let fd = rig.call(nr::__NR_signalfd4, &[u64::MAX, all, 8, O_NONBLOCK.into()]) as u64;
    let none = Err(error(EAGAIN));
    assert_eq!((signals(&mut rig, fd, 128), signals(&mut rig, fd, 127)), (none.clone(), Err(error(EINVAL))));
    for signal in [SIGUSR2, SIGUSR1, SIGUSR2] {
        rig.call(nr::__NR_kill, &[FIRST.into(), signal.into()]);
    }
    assert_eq!(rig.poll(fd), 0x41);
    let both = vec![[SIGUSR1, 0, FIRST, 0], [SIGUSR2, 0, FIRST, 0]];
    assert_eq!((signals(&mut rig, fd, 1000), signals(&mut rig, fd, 128)), (Ok(both), none.clone()));
    rig.call(nr::__NR_tgkill, &[FIRST.into(), FIRST.into(), SIGUSR2.into()]);
    assert_eq!(signals(&mut rig, fd, 128), Ok(vec![[SIGUSR2, -6i32 as u32, FIRST, 0]]));
    // Other signals are wanted from now on.
    rig.call(nr::__NR_kill, &[FIRST.into(), SIGUSR2.into()]);
    let first = words(&mut rig, &[1 << (SIGUSR1 - 1)]);
    assert_eq!(rig.call(nr::__NR_signalfd4, &[fd, first, 8, 0]), fd as i64);
    assert_eq!((rig.poll(fd), signals(&mut rig, fd, 128)), (0, none));
    rig.call(nr::__NR_signalfd4, &[fd, all, 8, 0]);
    assert_eq!(signals(&mut rig, fd, 128).unwrap().len(), 1);

    // A thread and a list wait for the end of a child.
    let list = add(&mut rig, fd);
    let blocking = rig.call(nr::__NR_signalfd, &[u64::MAX, all, 8]) as u64;
    let (thread, at) = (rig.thread(), rig.room(128));
    let child = rig.fork();
    assert_eq!(events(&mut rig, list), 0);
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[3]), None);
    assert_eq!((events(&mut rig, list), events(&mut rig, list)), (1, 0));
    assert_eq!(rig.try_by(thread, nr::__NR_read, &[blocking, at, 128]), Some(128));
    assert_eq!([0, 12, 40].map(|offset| rig.half(at + offset)), [SIGCHLD, child, 3]);
    assert_eq!(rig.try_by(thread, nr::__NR_read, &[blocking, at, 128]), None);
    rig.call(nr::__NR_kill, &[FIRST.into(), SIGUSR1.into()]);
    assert_eq!((rig.answer(thread), rig.half(at)), (Some(128), SIGUSR1));
    assert_eq!((events(&mut rig, list), rig.write(fd, &[0; 8])), (0, error(EINVAL)));
    rig.call(nr::__NR_kill, &[FIRST.into(), SIGUSR1.into()]);
    assert_eq!((events(&mut rig, list), events(&mut rig, list)), (1, 0));
    rig.call(nr::__NR_close, &[fd]);
    assert!(rig.system.watches.is_empty());
}

#[test]
fn lists_of_signals_that_make_no_sense() {
    let mut rig = Rig::begun();
    let set = block(&mut rig, &[SIGUSR1]);
    for (arguments, expected) in [
        ([u64::MAX, set, 4, 0], EINVAL),
        ([u64::MAX, set, 8, 1], EINVAL),
        ([0, set, 8, 0], EINVAL),
        ([99, set, 8, 0], EBADF),
        ([u64::MAX, 8, 8, 0], EFAULT),
    ] {
        assert_eq!(rig.call(nr::__NR_signalfd4, &arguments), error(expected));
    }
}
