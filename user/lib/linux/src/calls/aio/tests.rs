//! Asynchronous requests. Errors and numbers that are expected are Linux's own.

use super::{FREE_AT, HEAD_BYTES, KEY_AT, MAGIC, NEXT_AT, READ, READ_PIECES, SYNC, WRITE};
use crate::calls::rig::{DATA, FIRST, Rig};
use crate::calls::time::SECOND;
use crate::errno::{EAGAIN, EBADF, EFAULT, EINVAL, EOPNOTSUPP, Errno};
use crate::frames::PAGE;
use crate::machine::Tid;
use linux_raw_sys::general::{self as nr, *};
use std::vec::Vec;

/// An address at which nothing is.
const NOWHERE: u64 = 8;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn words(rig: &mut Rig, words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rig.put(&bytes)
}

fn try_setup(rig: &mut Rig, tid: Tid, count: u64) -> Result<u64, i64> {
    let at = rig.room(8);
    rig.system.write_words(tid, at, &[0]).unwrap();
    match rig.call_by(tid, nr::__NR_io_setup, &[count, at]) {
        0 => Ok(rig.system.words::<1>(tid, at).unwrap()[0]),
        error => Err(error),
    }
}

fn setup(rig: &mut Rig, count: u64) -> u64 {
    try_setup(rig, FIRST, count).unwrap()
}

/// A request: what it brings back, operation, descriptor, memory, offset.
fn request(
    rig: &mut Rig,
    data: u64,
    (operation, fd): (u16, u64),
    (address, len): (u64, u64),
    offset: u64,
) -> u64 {
    words(rig, &[data, 77, u64::from(operation) | fd << 32, address, len, offset, 0, 0])
}

fn submit(rig: &mut Rig, id: u64, requests: &[u64]) -> i64 {
    let list = words(rig, requests);
    rig.call(nr::__NR_io_submit, &[id, requests.len() as u64, list])
}

/// Outcomes that there are, at most so many: data, request, result.
fn outcomes(rig: &mut Rig, id: u64, most: u64) -> Vec<[i64; 3]> {
    let before = rig.free;
    let (to, time) = (rig.room(most as usize * 32), words(rig, &[0, 0]));
    let count = rig.call(nr::__NR_io_getevents, &[id, 0, most, to, time]);
    assert!(count >= 0, "{count}");
    let outcome = |at: u64| rig.system.words::<4>(FIRST, at).unwrap().map(u64::cast_signed);
    let all: Vec<[i64; 4]> = (0..count as u64).map(|index| to + index * 32).map(outcome).collect();
    rig.free = before;
    assert!(all.iter().all(|outcome| outcome[3] == 0));
    all.into_iter().map(|[data, request, result, _]| [data, request, result]).collect()
}

#[test]
fn requests_are_done_in_order() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 10);
    let head: [u64; 4] = rig.system.words(FIRST, id).unwrap();
    assert_eq!([head[0] >> 32, head[2] & 0xffff_ffff, head[3] >> 32], [127, MAGIC, HEAD_BYTES]);
    let fd = rig.open("/tmp/f") as u64;
    let (text, to) = (rig.put(b"hello"), rig.room(16));
    let pieces = words(&mut rig, &[to, 3, to + 8, 9]);
    let all = [
        request(&mut rig, 1, (WRITE, fd), (text, 5), 2),
        request(&mut rig, 2, (READ_PIECES, fd), (pieces, 2), 1),
        request(&mut rig, 3, (SYNC, fd), (0, 0), 0),
        request(&mut rig, 4, (READ, fd), (to, 5), 100),
        request(&mut rig, 5, (READ, fd), (NOWHERE, 5), 0),
    ];
    assert_eq!(submit(&mut rig, id, &all), 5);
    assert_eq!(rig.half(all[0] + KEY_AT), 0);
    assert_eq!((rig.get(FIRST, to, 3), rig.get(FIRST, to + 8, 4)), (b"\0he".to_vec(), b"llo\0".to_vec()));
    let of = |index: usize, result: i64| [index as i64 + 1, all[index] as i64, result];
    assert_eq!(outcomes(&mut rig, id, 2), [of(0, 5), of(1, 6)]);
    assert_eq!(outcomes(&mut rig, id, 9), [of(2, 0), of(3, 0), of(4, error(EFAULT))]);
    assert!(outcomes(&mut rig, id, 9).is_empty());
}

#[test]
fn contexts_are_made_and_removed() {
    let mut rig = Rig::begun();
    let held = rig.system.budget.used();
    let used = words(&mut rig, &[1]);
    for (count, to, expected) in [
        (1, NOWHERE, EFAULT),
        (1, used, EINVAL),
        (0, used + 8, EINVAL),
        (4_194_305, used + 8, EINVAL),
        (65_537, used + 8, EAGAIN),
    ] {
        assert_eq!(rig.call(nr::__NR_io_setup, &[count, to]), error(expected), "{count}");
    }
    let id = setup(&mut rig, 65_536);
    assert_eq!(try_setup(&mut rig, FIRST, 1), Err(error(EAGAIN)), "there is one limit for all");
    let child = rig.fork();
    for (tid, id) in [(child, id), (FIRST, id + 1), (FIRST, NOWHERE)] {
        assert_eq!(rig.call_by(tid, nr::__NR_io_destroy, &[id]), error(EINVAL));
        assert_eq!(rig.call_by(tid, nr::__NR_io_submit, &[id, 0, 0]), error(EINVAL));
        assert_eq!(rig.call_by(tid, nr::__NR_io_getevents, &[id, 0, 0, 0, 0]), error(EINVAL));
    }
    assert_eq!(rig.call(nr::__NR_io_destroy, &[id]), 0);
    assert_eq!(rig.call(nr::__NR_io_destroy, &[id]), error(EINVAL));
    assert!(rig.system.read(FIRST, id, &mut [0]).is_err(), "its ring is gone");
    // Those of a process go with it, and those whose ring is gone are none.
    assert!(try_setup(&mut rig, child, 60_000).is_ok());
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[0]), None);
    assert_eq!(rig.system.kept.aio.requests, 0);
    let id = setup(&mut rig, 1);
    assert_eq!(rig.call(nr::__NR_munmap, &[id, PAGE]), 0);
    assert_eq!(rig.call(nr::__NR_io_submit, &[id, 0, 0]), error(EINVAL));
    assert!(rig.system.budget.used() > held && rig.system.kept.aio.held() > 0);
    let key = words(&mut rig, &[0, 0]);
    assert_eq!(rig.call(nr::__NR_io_cancel, &[id, key, DATA]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_io_cancel, &[id, NOWHERE, DATA]), error(EFAULT));
}

#[test]
fn requests_that_are_none_are_refused() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 10);
    let fd = rig.open("/tmp/f") as u64;
    let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
    let path = rig.put(b"/tmp/f\0");
    let read_only = rig.call(nr::__NR_open, &[path, O_RDONLY.into()]) as u64;
    let sync = |fd: u64| [0, 0, u64::from(SYNC) | fd << 32, 0, 0, 0, 0, 0];
    let write = |fd: u64| [0, 0, u64::from(WRITE) | fd << 32, DATA, 1, 0, 0, 0];
    let with = |mut request: [u64; 8], place: usize, word: u64| {
        request[place] = word;
        request
    };
    let good = words(&mut rig, &sync(fd));
    for (request, expected) in [
        (with(sync(99), 6, 1), EINVAL),
        (with(sync(99), 4, 1 << 63), EINVAL),
        (sync(99), EBADF),
        (with(sync(fd), 7, 1 | 99 << 32), EBADF),
        (with(sync(fd), 7, 1 | fd << 32), EINVAL),
        (with(sync(fd), 5, 1), EINVAL),
        (sync(reader), EINVAL),
        (with(write(fd), 2, 5 | fd << 32), EINVAL),
        (with(write(fd), 2, 6 | fd << 32), EINVAL),
        (with(write(read_only), 1, 8 << 32), EOPNOTSUPP),
        (write(read_only), EBADF),
        (write(reader), EBADF),
        (with(write(fd), 3, 1 << 62), EFAULT),
        (with(write(fd), 5, 1 << 63), EINVAL),
        (with(write(writer), 5, 1 << 63), EINVAL),
    ] {
        let bad = words(&mut rig, &request);
        assert_eq!(submit(&mut rig, id, &[bad]), error(expected), "{request:x?}");
        assert_eq!(submit(&mut rig, id, &[good, bad, good]), 1, "{request:x?}");
        assert_eq!(outcomes(&mut rig, id, 9).len(), 1);
    }
    assert_eq!(rig.call(nr::__NR_io_submit, &[id, u64::MAX, DATA]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_io_submit, &[id, 1, NOWHERE]), error(EFAULT));
    assert_eq!(submit(&mut rig, id, &[NOWHERE]), error(EFAULT));
    assert_eq!(submit(&mut rig, id, &[]), 0);
    for (least, most) in [(2, 1), (u64::MAX, 1), (0, u64::MAX)] {
        assert_eq!(rig.call(nr::__NR_io_getevents, &[id, least, most, DATA, 0]), error(EINVAL));
    }
}

/// A ring has as many outcomes as there are slots but one, and whoever has them may take them itself.
#[test]
fn a_ring_is_full_at_some_time() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 1);
    let fd = rig.open("/tmp/f") as u64;
    let read = request(&mut rig, 1, (READ, fd), (DATA, 1), 0);
    let many = std::vec![read; 200];
    assert_eq!(submit(&mut rig, id, &many), 126);
    assert_eq!(submit(&mut rig, id, &many), error(EAGAIN));
    assert_eq!((rig.half(id + NEXT_AT), rig.half(id + FREE_AT)), (0, 126));
    rig.system.write(FIRST, id + NEXT_AT, &120u32.to_le_bytes()).unwrap();
    assert_eq!(submit(&mut rig, id, &many), 120);
    assert_eq!(outcomes(&mut rig, id, 200).len(), 126, "over the end of the ring");
    assert_eq!(rig.half(id + NEXT_AT), rig.half(id + FREE_AT));
    // It may also say what it wants of the ring.
    rig.system.write(FIRST, id + NEXT_AT, &u32::MAX.to_le_bytes()).unwrap();
    assert!(outcomes(&mut rig, id, 200).len() < 127);
}

/// No call does more than others can wait for: the rest is for the next one.
#[test]
fn a_call_ends_at_some_time() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 1000);
    let fd = rig.open("/tmp/f") as u64;
    let sync = request(&mut rig, 1, (SYNC, fd), (0, 0), 0);
    assert_eq!(submit(&mut rig, id, &[sync; 100]), 8);
    let write = request(&mut rig, 2, (WRITE, fd), (DATA, 500 << 10), 0);
    assert_eq!(submit(&mut rig, id, &[write; 100]), 3);
    let bad = request(&mut rig, 3, (READ, fd), (NOWHERE, 5), 0);
    assert_eq!(submit(&mut rig, id, &[bad; 100]), 100);
    let read = request(&mut rig, 4, (READ, fd), (DATA, 0), 0);
    assert_eq!(submit(&mut rig, id, &[read; 1000]), 256);
}

#[test]
fn threads_wait_for_outcomes() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 10);
    let fd = rig.open("/tmp/f") as u64;
    let sync = request(&mut rig, 7, (SYNC, fd), (0, 0), 0);
    let (thread, to, time) = (rig.thread(), rig.room(128), words(&mut rig, &[1, 0]));
    let wait = |rig: &mut Rig, least: u64, time: u64| {
        rig.try_by(thread, nr::__NR_io_getevents, &[id, least, 4, to, time])
    };
    assert_eq!(wait(&mut rig, 2, 0), None);
    assert_eq!(submit(&mut rig, id, &[sync]), 1);
    assert_eq!(rig.answer(thread), None);
    assert_eq!(submit(&mut rig, id, &[sync, sync, sync, sync]), 4);
    assert_eq!(rig.answer(thread), Some(4), "as many as there are, and it wants");
    assert_eq!(rig.system.words(FIRST, to + 96), Ok([7, sync, 0]));
    assert_eq!(outcomes(&mut rig, id, 9).len(), 1);
    // All that there are come when the time is over.
    assert_eq!(wait(&mut rig, 3, time), None);
    assert_eq!(submit(&mut rig, id, &[sync]), 1);
    assert_eq!(rig.answer(thread), None);
    rig.pass(SECOND);
    assert_eq!(rig.answer(thread), Some(1));
    assert_eq!(wait(&mut rig, 1, time), None);
    rig.pass(SECOND);
    assert_eq!(rig.answer(thread), Some(0));
    assert_eq!(wait(&mut rig, 1, NOWHERE), Some(error(EFAULT)));
    // The context goes.
    assert_eq!(wait(&mut rig, 1, 0), None);
    assert_eq!(rig.call(nr::__NR_io_destroy, &[id]), 0);
    assert_eq!(rig.answer(thread), Some(error(EINVAL)));
}

#[test]
fn requests_for_pipes_wait_if_they_are_first() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 10);
    let fd = rig.open("/tmp/f") as u64;
    let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
    let to = rig.room(16);
    let sync = request(&mut rig, 1, (SYNC, fd), (0, 0), 0);
    let read = request(&mut rig, 2, (READ, reader), (to, 16), 0);
    assert_eq!(submit(&mut rig, id, &[sync, read]), 1);
    assert_eq!(outcomes(&mut rig, id, 9).len(), 1);
    let (thread, list) = (rig.thread(), words(&mut rig, &[read, sync]));
    assert_eq!(rig.try_by(thread, nr::__NR_io_submit, &[id, 2, list]), None);
    assert_eq!(rig.write(writer, b"text"), 4);
    assert_eq!(rig.answer(thread), Some(2));
    assert_eq!(outcomes(&mut rig, id, 9), [[2, read as i64, 4], [1, sync as i64, 0]]);
    assert_eq!(rig.get(FIRST, to, 4), b"text");
    // More than a pipe takes: what it has taken is the outcome.
    let large = request(&mut rig, 3, (WRITE, writer), (DATA, 1 << 20), 0);
    assert_eq!(submit(&mut rig, id, &[large]), 1);
    let [[3, _, count]] = outcomes(&mut rig, id, 9)[..] else { panic!("one outcome") };
    assert!((1..1 << 20).contains(&count), "{count}");
}

#[test]
fn counters_hear_of_outcomes() {
    let mut rig = Rig::begun();
    let id = setup(&mut rig, 10);
    let fd = rig.open("/tmp/f") as u64;
    let counter = rig.call(nr::__NR_eventfd2, &[0, EFD_NONBLOCK.into()]) as u64;
    let told = words(&mut rig, &[0, 0, u64::from(SYNC) | fd << 32, 0, 0, 0, 0, 1 | counter << 32]);
    assert_eq!(submit(&mut rig, id, &[told, told]), 2);
    assert_eq!(rig.read(counter, 8), Ok(2u64.to_le_bytes().to_vec()));
}
