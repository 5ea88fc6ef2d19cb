//! Lists of open files as programs see them. What is expected was asked of Linux.

use crate::calls::rig::Rig;
use crate::errno::{EBADF, EEXIST, EFAULT, EINVAL, ELOOP, ENOENT, EPERM, Errno};
use linux_raw_sys::general::{
    self as nr, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLET, EPOLLEXCLUSIVE, EPOLLHUP,
    EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLRDHUP, O_NONBLOCK,
};
use std::time::{Duration, Instant};
use std::vec;
use std::vec::Vec;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn list(rig: &mut Rig) -> u64 {
    rig.call(nr::__NR_epoll_create1, &[0]) as u64
}

fn control(rig: &mut Rig, list: u64, operation: u32, fd: u64, events: u32, data: u64) -> i64 {
    let at = rig.put(&[&events.to_le_bytes()[..], &data.to_le_bytes()].concat());
    rig.call(nr::__NR_epoll_ctl, &[list, operation.into(), fd, at])
}

fn add(rig: &mut Rig, list: u64, fd: u64, events: u32, data: u64) {
    assert_eq!(control(rig, list, EPOLL_CTL_ADD, fd, events, data), 0);
}

/// Events of a list, at most so many.
fn few(rig: &mut Rig, list: u64, count: u64) -> Vec<(u32, u64)> {
    let at = rig.room(count as usize * 12);
    let found = rig.call(nr::__NR_epoll_wait, &[list, at, count, 0]);
    assert!(found >= 0, "{found}");
    let events = (0..found as u64).map(|index| at + index * 12);
    events.map(|at| (rig.half(at), u64::from(rig.half(at + 4)))).collect()
}

fn all(rig: &mut Rig, list: u64) -> Vec<(u32, u64)> {
    few(rig, list, 8)
}

fn pipe(rig: &mut Rig) -> [u64; 2] {
    rig.two(nr::__NR_pipe2, &[O_NONBLOCK.into()], 0)
}

fn close(rig: &mut Rig, fd: u64) {
    assert_eq!(rig.call(nr::__NR_close, &[fd]), 0);
}

const NONE: [(u32, u64); 0] = [];

#[test]
fn what_is_ready_stays_ready_and_takes_turns() {
    let mut rig = Rig::begun();
    let list = list(&mut rig);
    let pipes = [0; 3].map(|_| pipe(&mut rig));
    for (data, [reader, _]) in (0..).zip(pipes) {
        add(&mut rig, list, reader, EPOLLIN, data);
    }
    assert_eq!(all(&mut rig, list), NONE);
    for index in [2, 0, 1] {
        rig.write(pipes[index][1], b"x");
    }
    let turns = [[2, 0], [1, 2], [0, 1], [2, 0]];
    for turn in turns {
        assert_eq!(few(&mut rig, list, 2), turn.map(|data| (EPOLLIN, data)));
    }
    rig.read(pipes[1][0], 9).unwrap();
    assert_eq!(all(&mut rig, list).len(), 2);
    close(&mut rig, pipes[1][1]);
    assert_eq!(all(&mut rig, list).last(), Some(&(EPOLLHUP, 1)));
}

#[test]
fn changes_are_told_once() {
    let mut rig = Rig::begun();
    let list = list(&mut rig);
    let [reader, writer] = pipe(&mut rig);
    add(&mut rig, list, reader, EPOLLIN | EPOLLET, 5);
    add(&mut rig, list, writer, EPOLLOUT | EPOLLET, 6);
    let (input, room) = (vec![(EPOLLIN, 5)], vec![(EPOLLOUT, 6)]);
    let told = |rig: &mut Rig, expected: &[(u32, u64)]| {
        assert_eq!(all(rig, list), expected);
        assert_eq!(all(rig, list), NONE);
    };
    told(&mut rig, &room);
    rig.write(writer, b"abc");
    told(&mut rig, &input);
    rig.write(writer, b"d");
    told(&mut rig, &input);
    rig.read(reader, 1).unwrap();
    told(&mut rig, &NONE);
    rig.read(reader, 10).unwrap();
    told(&mut rig, &NONE);
    control(&mut rig, list, EPOLL_CTL_MOD, writer, EPOLLOUT | EPOLLET, 6);
    told(&mut rig, &room);
    while rig.write(writer, &[0; 4096]) > 0 {}
    told(&mut rig, &input);
    rig.read(reader, 100).unwrap();
    told(&mut rig, &NONE);
    rig.read(reader, 8192).unwrap();
    told(&mut rig, &room);
    close(&mut rig, writer);
    told(&mut rig, &[(EPOLLIN | EPOLLHUP, 5)]);
}

#[test]
fn sockets_and_counters_tell_of_both_directions() {
    let mut rig = Rig::begun();
    let both = EPOLLIN | EPOLLOUT;
    let first = list(&mut rig);
    let [one, other] = rig.two(nr::__NR_socketpair, &[1, 1, 0], 3);
    add(&mut rig, first, one, both | EPOLLRDHUP | EPOLLET, 1);
    let told = |rig: &mut Rig, list: u64, events: u32| {
        let expected = if events == 0 { Vec::new() } else { vec![(events, 1)] };
        assert_eq!(all(rig, list), expected);
        assert_eq!(all(rig, list), NONE);
    };
    told(&mut rig, first, EPOLLOUT);
    rig.write(other, b"x");
    told(&mut rig, first, both);
    rig.write(one, b"y");
    told(&mut rig, first, 0);
    rig.read(other, 10).unwrap();
    told(&mut rig, first, both);
    rig.read(one, 10).unwrap();
    told(&mut rig, first, 0);
    close(&mut rig, other);
    told(&mut rig, first, both | EPOLLHUP | EPOLLRDHUP);

    let second = list(&mut rig);
    let counter = rig.call(nr::__NR_eventfd2, &[0, 0]) as u64;
    add(&mut rig, second, counter, both | EPOLLET, 1);
    told(&mut rig, second, EPOLLOUT);
    for _ in 0..2 {
        rig.write(counter, &1u64.to_le_bytes());
        told(&mut rig, second, both);
    }
    rig.read(counter, 8).unwrap();
    told(&mut rig, second, EPOLLOUT);
}

#[test]
fn one_event_and_no_more() {
    let mut rig = Rig::begun();
    let list = list(&mut rig);
    let [reader, writer] = pipe(&mut rig);
    add(&mut rig, list, reader, EPOLLIN | EPOLLONESHOT, 5);
    rig.write(writer, b"x");
    assert_eq!(all(&mut rig, list), [(EPOLLIN, 5)]);
    rig.write(writer, b"x");
    assert_eq!(all(&mut rig, list), NONE);
    control(&mut rig, list, EPOLL_CTL_MOD, reader, EPOLLIN | EPOLLONESHOT, 7);
    assert_eq!(all(&mut rig, list), [(EPOLLIN, 7)]);
    close(&mut rig, writer);
    assert_eq!(all(&mut rig, list), NONE);
    // Nothing wanted is still told of the end.
    let [reader, writer] = pipe(&mut rig);
    add(&mut rig, list, reader, 0, 3);
    rig.write(writer, b"x");
    assert_eq!(all(&mut rig, list), NONE);
    close(&mut rig, writer);
    assert_eq!(all(&mut rig, list), [(EPOLLHUP, 3)]);
}

#[test]
fn an_entry_lives_as_long_as_the_open_file() {
    let mut rig = Rig::begun();
    let list = list(&mut rig);
    let [reader, writer] = pipe(&mut rig);
    let copy = rig.call(nr::__NR_dup, &[reader]) as u64;
    add(&mut rig, list, reader, EPOLLIN, 5);
    close(&mut rig, reader);
    rig.write(writer, b"x");
    assert_eq!(all(&mut rig, list), [(EPOLLIN, 5)]);
    assert_eq!(control(&mut rig, list, EPOLL_CTL_DEL, reader, 0, 0), error(EBADF));
    close(&mut rig, copy);
    assert_eq!(all(&mut rig, list), NONE);
    assert!(rig.system.watches.is_empty());
    // Two descriptors of one file are two entries.
    let [reader, writer] = pipe(&mut rig);
    let copy = rig.call(nr::__NR_dup, &[reader]) as u64;
    add(&mut rig, list, reader, EPOLLIN, 1);
    add(&mut rig, list, copy, EPOLLIN, 2);
    rig.write(writer, b"x");
    assert_eq!(all(&mut rig, list), [(EPOLLIN, 2), (EPOLLIN, 1)]);
    // A process that goes on with a copy of the list sees it, too.
    let child = rig.fork();
    let at = rig.room(12);
    close(&mut rig, reader);
    assert_eq!(rig.call_by(child, nr::__NR_epoll_wait, &[list, at, 1, 0]), 1);
    close(&mut rig, list);
    assert!(!rig.system.watches.is_empty());
    rig.call_by(child, nr::__NR_close, &[list]);
    assert!(rig.system.watches.is_empty());
}

#[test]
fn lists_in_lists() {
    let mut rig = Rig::begun();
    let (outer, inner) = (list(&mut rig), list(&mut rig));
    let [reader, writer] = pipe(&mut rig);
    add(&mut rig, inner, reader, EPOLLIN, 1);
    add(&mut rig, outer, inner, EPOLLIN | EPOLLET, 2);
    assert_eq!((all(&mut rig, outer), rig.poll(inner)), (NONE.to_vec(), 0));
    for _ in 0..2 {
        rig.write(writer, b"x");
        assert_eq!(all(&mut rig, outer), [(EPOLLIN, 2)]);
        assert_eq!(all(&mut rig, outer), NONE);
    }
    assert_eq!((all(&mut rig, inner), rig.poll(inner)), (vec![(EPOLLIN, 1)], 0x41));
    rig.read(reader, 10).unwrap();
    assert_eq!((all(&mut rig, inner), all(&mut rig, outer), rig.poll(inner)), (vec![], vec![], 0));

    let chain = |rig: &mut Rig, order: &[usize]| -> Vec<usize> {
        let lists = [0; 9].map(|_| list(rig));
        let refused = |index: &&usize| {
            let outcome = control(rig, lists[**index + 1], EPOLL_CTL_ADD, lists[**index], EPOLLIN, 0);
            assert!(outcome == 0 || outcome == error(ELOOP));
            outcome != 0
        };
        order.iter().filter(refused).copied().collect()
    };
    assert_eq!(chain(&mut rig, &[0, 1, 2, 3, 4, 5, 6, 7]), [4]);
    assert_eq!(chain(&mut rig, &[7, 6, 5, 4, 3, 2, 1, 0]), [3]);
    assert_eq!(chain(&mut rig, &[0, 1, 3, 4, 2]), [2]);
    let (one, other) = (list(&mut rig), list(&mut rig));
    add(&mut rig, one, other, EPOLLIN, 0);
    assert_eq!(control(&mut rig, other, EPOLL_CTL_ADD, one, EPOLLIN, 0), error(ELOOP));
    assert_eq!(control(&mut rig, one, EPOLL_CTL_ADD, one, EPOLLIN, 0), error(EINVAL));
}

#[test]
fn waits_end_with_an_event_a_time_or_a_signal() {
    let mut rig = Rig::begun();
    let list = list(&mut rig);
    let [reader, writer] = pipe(&mut rig);
    add(&mut rig, list, reader, EPOLLIN, 5);
    let (thread, at) = (rig.thread(), rig.room(24));
    assert_eq!(rig.try_by(thread, nr::__NR_epoll_wait, &[list, at, 2, u64::MAX]), None);
    rig.write(writer, b"x");
    assert_eq!((rig.answer(thread), rig.half(at + 4)), (Some(1), 5));
    rig.read(reader, 1).unwrap();
    assert_eq!(rig.try_by(thread, nr::__NR_epoll_wait, &[list, at, 2, 3]), None);
    rig.pass(2_999_999);
    assert_eq!(rig.answer(thread), None);
    rig.pass(1);
    assert_eq!(rig.answer(thread), Some(0));
    let time = rig.put(&[0u64, 10].map(u64::to_le_bytes).concat());
    assert_eq!(rig.try_by(thread, nr::__NR_epoll_pwait2, &[list, at, 2, time, 0, 8]), None);
    rig.pass(10);
    assert_eq!(rig.answer(thread), Some(0));
    // An entry that is added while a thread waits.
    assert_eq!(rig.try_by(thread, nr::__NR_epoll_wait, &[list, at, 2, u64::MAX]), None);
    add(&mut rig, list, writer, EPOLLOUT, 6);
    assert_eq!((rig.answer(thread), rig.half(at + 4)), (Some(1), 6));
    assert_eq!(rig.call(nr::__NR_epoll_wait, &[list, 8, 2, 0]), error(EFAULT));
    assert_eq!(all(&mut rig, list), [(EPOLLOUT, 6)]);
    // The terminal has input.
    add(&mut rig, list, 0, EPOLLIN | EPOLLET, 9);
    rig.system.input(b"word\n");
    assert_eq!(all(&mut rig, list), [(EPOLLOUT, 6), (EPOLLIN, 9)]);
}

#[test]
fn calls_that_make_no_sense() {
    let mut rig = Rig::begun();
    let (list, inner) = (list(&mut rig), list(&mut rig));
    let [reader, _] = pipe(&mut rig);
    let file = rig.open("/tmp/file") as u64;
    let mut says =
        |list: u64, operation: u32, fd: u64, events: u32| control(&mut rig, list, operation, fd, events, 0);
    assert_eq!(says(list, EPOLL_CTL_ADD, file, EPOLLIN), error(EPERM));
    assert_eq!(says(list, EPOLL_CTL_ADD, 99, EPOLLIN), error(EBADF));
    assert_eq!(says(99, EPOLL_CTL_ADD, reader, EPOLLIN), error(EBADF));
    assert_eq!(says(reader, EPOLL_CTL_ADD, list, EPOLLIN), error(EINVAL));
    assert_eq!(says(list, 7, reader, EPOLLIN), error(EINVAL));
    assert_eq!(says(list, EPOLL_CTL_MOD, reader, EPOLLIN), error(ENOENT));
    assert_eq!(says(list, EPOLL_CTL_DEL, reader, EPOLLIN), error(ENOENT));
    assert_eq!(says(list, EPOLL_CTL_ADD, reader, EPOLLIN), 0);
    assert_eq!(says(list, EPOLL_CTL_ADD, reader, EPOLLIN), error(EEXIST));
    assert_eq!(says(list, EPOLL_CTL_MOD, reader, EPOLLIN | EPOLLEXCLUSIVE), error(EINVAL));
    assert_eq!(says(list, EPOLL_CTL_DEL, reader, 0), 0);
    assert_eq!(says(list, EPOLL_CTL_ADD, reader, EPOLLIN | EPOLLEXCLUSIVE), 0);
    assert_eq!(says(list, EPOLL_CTL_MOD, reader, EPOLLIN), error(EINVAL));
    assert_eq!(says(list, EPOLL_CTL_ADD, inner, EPOLLIN | EPOLLEXCLUSIVE), error(EINVAL));
    let at = rig.room(12);
    for (fd, count, expected) in
        [(list, 0, EINVAL), (list, u64::MAX, EINVAL), (reader, 1, EINVAL), (99, 1, EBADF)]
    {
        assert_eq!(rig.call(nr::__NR_epoll_wait, &[fd, at, count, 0]), error(expected));
    }
    assert_eq!(rig.call(nr::__NR_epoll_create1, &[1]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_epoll_create, &[0]), error(EINVAL));
    assert_eq!((rig.read(list, 8), rig.call(nr::__NR_lseek, &[list, 0, 0])), (Err(error(EINVAL)), 0));
}

/// Random calls, against a model that looks at all entries: what is ready is told, in whatever order.
#[test]
fn a_list_and_poll_agree() {
    let mut random = 1u64;
    let mut below = move |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    for _ in 0..20 {
        let mut rig = Rig::begun();
        rig.ignore(nr::SIGPIPE);
        let list = list(&mut rig);
        let mut ends: Vec<u64> = Vec::new();
        let mut wanted: Vec<Option<u32>> = Vec::new();
        for _ in 0..4 {
            let kinds: [[u64; 2]; 2] =
                [pipe(&mut rig), rig.two(nr::__NR_socketpair, &[1, u64::from(1 | O_NONBLOCK), 0], 3)];
            ends.extend(kinds.concat());
        }
        wanted.resize(ends.len(), None);
        for _ in 0..300 {
            let index = below(ends.len() as u64) as usize;
            let (fd, events) = (ends[index], [EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT][below(3) as usize]);
            match below(8) {
                0 => {
                    let operation = if wanted[index].is_some() { EPOLL_CTL_MOD } else { EPOLL_CTL_ADD };
                    if control(&mut rig, list, operation, fd, events, index as u64) == 0 {
                        wanted[index] = Some(events);
                    }
                }
                1 if wanted[index].is_some() => {
                    control(&mut rig, list, EPOLL_CTL_DEL, fd, 0, 0);
                    wanted[index] = None;
                }
                2 if below(8) == 0 => {
                    rig.call(nr::__NR_close, &[fd]);
                    wanted[index] = None;
                }
                3 | 4 => drop(rig.write(fd, &[1; 30_000][..1 + below(29_999) as usize])),
                _ => drop(rig.read(fd, 1 + below(60_000) as usize)),
            }
            let mut found = few(&mut rig, list, 64);
            found.sort_by_key(|(_, data)| *data);
            let mut expected = Vec::new();
            for (index, events) in wanted.iter().enumerate() {
                let Some(events) = events else { continue };
                let ready = rig.poll(ends[index]) & (events | EPOLLHUP | nr::EPOLLERR);
                if ready != 0 {
                    expected.push((ready, index as u64));
                }
            }
            assert_eq!(found, expected);
        }
    }
}

/// Descriptors of one counter, all of which are entries of a list. How long it takes to close that.
fn time_to_close(count: u64) -> Duration {
    let mut rig = Rig::begun();
    let limit = rig.put(&[4096u64, 4096].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]), 0);
    let (list, counter) = (list(&mut rig), rig.call(nr::__NR_eventfd2, &[0, 0]) as u64);
    for fd in 50..50 + count {
        assert_eq!(rig.call(nr::__NR_dup2, &[counter, fd]), fd as i64);
        add(&mut rig, list, fd, EPOLLIN, fd);
    }
    // One that is removed, and one of which another is made, are in nobody's way.
    assert_eq!(control(&mut rig, list, EPOLL_CTL_DEL, 60, 0, 0), 0);
    assert_eq!(control(&mut rig, list, EPOLL_CTL_DEL, 60, 0, 0), error(ENOENT));
    add(&mut rig, list, 60, EPOLLIN, 7);
    rig.write(counter, &1u64.to_le_bytes());
    assert_eq!(few(&mut rig, list, 2), [(EPOLLIN, 7), (EPOLLIN, 49 + count)], "the newest hear first");
    let begun = Instant::now();
    close(&mut rig, list);
    let took = begun.elapsed();
    assert!(rig.system.watches.is_empty() && rig.system.watches.places() == 0);
    took
}

/// Ten times as many entries take some ten times as long to close, and not a hundred times.
#[test]
fn many_entries_of_one_thing_are_closed_one_by_one() {
    let [few, many] = [400, 4000].map(|count| (0..5).map(|_| time_to_close(count)).min().unwrap());
    assert!(many < 40 * few, "400 entries take {few:?}, and 4000 take {many:?}");
}

#[test]
fn an_open_file_takes_its_entries_along() {
    let mut rig = Rig::begun();
    let lists = [list(&mut rig), list(&mut rig)];
    let [reader, writer] = pipe(&mut rig);
    let copy = rig.call(nr::__NR_dup, &[reader]) as u64;
    for list in lists {
        add(&mut rig, list, reader, EPOLLIN, 1);
        add(&mut rig, list, copy, EPOLLIN, 2);
        add(&mut rig, list, writer, EPOLLOUT, 3);
    }
    // A list is an entry of the other one, too.
    add(&mut rig, lists[0], lists[1], EPOLLIN, 4);
    assert_eq!(rig.system.watches.places(), 2 * 7);
    close(&mut rig, reader);
    assert_eq!(rig.system.watches.places(), 2 * 7, "its open file is there");
    close(&mut rig, copy);
    assert_eq!(rig.system.watches.places(), 2 * 3);
    close(&mut rig, lists[1]);
    assert_eq!(rig.system.watches.places(), 2);
    assert_eq!(all(&mut rig, lists[0]), [(EPOLLOUT | EPOLLERR, 3)], "nobody reads");
    close(&mut rig, writer);
    assert!(rig.system.watches.is_empty());
}
