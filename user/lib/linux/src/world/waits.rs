//! Threads that wait with a descriptor which another thread closes.

use super::{HANDLER, OWN, World};
use crate::errno::{EBADF, EFAULT, EPIPE};
use crate::frames::PAGE;
use crate::machine::Tid;
use linux_raw_sys::general::*;

impl World {
    /// A process with another thread, and the two ends of a pipe of its.
    fn waiter(&mut self) -> (Tid, Tid, [u64; 2]) {
        let process = self.fork(1);
        self.action(process, SIGUSR1, HANDLER);
        self.action(process, SIGPIPE, 1);
        self.now(process, __NR_pipe, &[OWN]).unwrap();
        let ends = [OWN, OWN + 4].map(|at| u64::from(self.number(process, at)));
        (process, self.thread(process), ends)
    }
}

impl World {
    /// A call of a kind that waits for one descriptor, at most a second.
    fn polls(&mut self, tid: Tid, number: u32, fd: u64) -> Option<crate::errno::Result<u64>> {
        let [list, set, time] = [OWN + 256, OWN + 512, OWN + 768];
        self.put(tid, list, &[fd as u32, POLLIN].map(u32::to_le_bytes).concat());
        self.system.write_words(tid, set, &[1 << fd]).unwrap();
        self.system.write_words(tid, time, &[1, 0]).unwrap();
        if number == __NR_poll {
            return self.call(tid, number, &[list, 1, 1000]);
        }
        if number == __NR_ppoll {
            return self.call(tid, number, &[list, 1, time, 0, 8]);
        }
        self.call(tid, number, &[fd + 1, set, 0, 0, time, 0])
    }
}

/// Two that take turns keep no third one from what all want: the one that has waited longest has it.
#[test]
fn who_has_waited_longest_comes_first() {
    let mut world = World::new();
    let [one, two, three] = [(); 3].map(|()| {
        let process = world.fork(1);
        (process, world.open(process, "/lock", O_RDWR | O_CREAT).unwrap())
    });
    let mut flock = |(process, fd): (Tid, u64), operation: u32, gets: Option<(Tid, u64)>| {
        let done = world.call(process, __NR_flock, &[fd, operation.into()]);
        assert_eq!(done, (operation == LOCK_UN || gets == Some((process, fd))).then_some(Ok(0)));
        for (other, _) in [one, two, three].into_iter().filter(|other| other.0 != process) {
            let expected = gets.is_some_and(|gets| gets.0 == other).then_some(Ok(0));
            assert_eq!(world.answer(other), expected, "{other}");
        }
    };
    flock(one, LOCK_EX, Some(one));
    flock(two, LOCK_EX, None);
    flock(three, LOCK_EX, None);
    flock(one, LOCK_UN, Some(two));
    flock(one, LOCK_EX, None);
    flock(two, LOCK_UN, Some(three));
    flock(two, LOCK_EX, None);
    flock(three, LOCK_UN, Some(one));
    flock(one, LOCK_UN, Some(two));
}

/// The number is soon another file's. Whoever waits reads what he has waited for.
#[test]
fn a_wait_goes_on_with_what_was_open() {
    for closes in [__NR_close, __NR_dup2, __NR_close_range] {
        let mut world = World::new();
        let (process, thread, [reader, writer]) = world.waiter();
        assert_eq!(world.read(thread, reader, 9), None);
        if closes == __NR_dup2 {
            let other = world.open(process, "/program", O_RDONLY).unwrap();
            world.now(process, closes, &[other, reader]).unwrap();
        } else {
            world.now(process, closes, &[reader, reader]).unwrap();
            assert_eq!(world.open(process, "/program", O_RDONLY), Ok(reader));
        }
        assert_eq!(world.write(process, writer, b"text"), Some(Ok(4)), "somebody reads it");
        assert_eq!(world.answer(thread), Some(Ok(4)));
        assert_eq!(world.bytes_read(thread, 4), b"text");
        assert_eq!(world.write(process, writer, b"text"), Some(Err(EPIPE)), "nobody does any more");
        assert_eq!(world.read(process, reader, 4), Some(Ok(b"\x7fELF".to_vec())));
        // Another call is about what is there now.
        world.now(process, __NR_close, &[reader]).unwrap();
        assert_eq!(world.read(thread, reader, 4), Some(Err(EBADF)));
    }
}

/// That is so for all calls that wait, of which the table of their arguments knows which are descriptors.
#[test]
fn all_that_wait_go_on_with_what_was_open() {
    let mut world = World::new();
    let (process, thread, [reader, writer]) = world.waiter();
    let replace = |world: &mut World, fd: u64| {
        world.now(process, __NR_close, &[fd]).unwrap();
        assert_eq!(world.open(process, "/program", O_RDONLY), Ok(fd));
    };
    // Pieces, where a pipe stands.
    world.system.write_words(process, OWN + 512, &[OWN + 8 * PAGE, 9]).unwrap();
    assert_eq!(world.call(thread, __NR_preadv2, &[reader, OWN + 512, 1, u64::MAX, 0, 0]), None);
    replace(&mut world, reader);
    assert_eq!(world.write(process, writer, b"text"), Some(Ok(4)));
    assert_eq!((world.answer(thread), world.bytes_read(thread, 4)), (Some(Ok(4)), b"text".to_vec()));
    // Queues of POSIX: for a message, and for room.
    world.system.write_words(process, OWN + 512, &[0, 1, 16, 0]).unwrap();
    let made = u64::from(O_CREAT | O_RDWR);
    let open = |world: &mut World| world.by_path(process, __NR_mq_open, "queue", &[made, 0o600, OWN + 512]);
    let [receives, sends, other] = [(); 3].map(|()| open(&mut world).unwrap());
    let (at, to) = (OWN + PAGE, OWN + 2 * PAGE);
    assert_eq!(world.call(thread, __NR_mq_timedreceive, &[receives, to, 16, 0, 0]), None);
    replace(&mut world, receives);
    assert_eq!(world.now(process, __NR_mq_timedsend, &[other, at, 4, 0, 0]), Ok(0));
    assert_eq!(world.answer(thread), Some(Ok(4)));
    assert_eq!(world.now(process, __NR_mq_timedsend, &[other, at, 5, 0, 0]), Ok(0));
    assert_eq!(world.call(thread, __NR_mq_timedsend, &[sends, at, 6, 0, 0]), None);
    replace(&mut world, sends);
    for len in [5, 6] {
        assert_eq!(world.now(process, __NR_mq_timedreceive, &[other, to, 16, 0, 0]), Ok(len));
    }
    assert_eq!(world.answer(thread), Some(Ok(0)));
    // A child, by its descriptor.
    let child = world.fork(process);
    let fd = world.now(process, __NR_pidfd_open, &[child.into(), 0]).unwrap();
    assert_eq!(world.call(thread, __NR_waitid, &[P_PIDFD.into(), fd, 0, WEXITED.into(), 0]), None);
    replace(&mut world, fd);
    world.exit(child);
    assert_eq!(world.answer(thread), Some(Ok(0)));
}

/// Descriptors that were held are closed with the wait, however that ends.
#[test]
fn what_is_waited_with_is_closed_with_the_wait() {
    for end in 0..4 {
        let mut world = World::new();
        let (process, thread, [reader, writer]) = world.waiter();
        let copy = world.fork(process);
        world.now(copy, __NR_close, &[reader]).unwrap();
        assert_eq!(world.read(thread, reader, 9), None);
        world.now(process, __NR_close, &[reader]).unwrap();
        assert_eq!(world.write(copy, writer, b""), Some(Ok(0)));
        match end {
            0 => drop(world.now(1, __NR_tkill, &[thread.into(), SIGUSR1.into()]).unwrap()),
            1 => world.exit(process),
            2 => {
                world.put(process, OWN, b"/program\0");
                assert_eq!(world.call(process, __NR_execve, &[OWN, 0, 0]), None);
            }
            _ => drop(world.now(1, __NR_kill, &[process.into(), SIGKILL.into()]).unwrap()),
        }
        assert_eq!(world.write(copy, writer, b"x"), Some(Err(EPIPE)), "way {end}");
    }
}

/// A call that waits again, with others at the same file, and one that has two.
#[test]
fn a_wait_is_as_long_as_without_a_descriptor() {
    let mut world = World::new();
    let (process, thread, [reader, writer]) = world.waiter();
    let other = world.thread(process);
    assert_eq!((world.read(thread, reader, 9), world.read(other, reader, 9)), (None, None));
    world.now(process, __NR_close, &[reader]).unwrap();
    assert_eq!(world.write(process, writer, b"x"), Some(Ok(1)));
    let answers = [thread, other].map(|tid| world.answer(tid));
    assert!(answers.contains(&Some(Ok(1))) && answers.contains(&None), "one has it: {answers:?}");
    assert_eq!(world.write(process, writer, b"y"), Some(Ok(1)));
    let answers = [thread, other].map(|tid| world.answer(tid));
    assert!(answers.contains(&Some(Ok(1))));
    assert_eq!(world.write(process, writer, b"z"), Some(Err(EPIPE)));
    world.now(process, __NR_pipe, &[OWN]).unwrap();
    let [from, to] = [OWN, OWN + 4].map(|at| u64::from(world.number(process, at)));
    world.now(process, __NR_pipe, &[OWN]).unwrap();
    let [end, next] = [OWN, OWN + 4].map(|at| u64::from(world.number(process, at)));
    assert_eq!(world.call(thread, __NR_splice, &[from, 0, next, 0, 100, 0]), None);
    world.now(process, __NR_close_range, &[from, from]).unwrap();
    world.now(process, __NR_close, &[next]).unwrap();
    assert_eq!(world.write(process, to, b"text"), Some(Ok(4)));
    assert_eq!(
        (world.answer(thread), world.read(process, end, 9)),
        (Some(Ok(4)), Some(Ok(b"text".to_vec())))
    );
    assert_eq!(world.read(process, end, 9), Some(Ok(b"".to_vec())), "all writers are gone");
}

/// `poll` and `select` keep open what they begin to wait with, until they are over: then they tell that it was closed, or look at what is there now.
#[test]
fn poll_keeps_open_what_it_waits_with() {
    for number in [__NR_poll, __NR_ppoll, __NR_select, __NR_pselect6] {
        for is_replaced in [false, true] {
            let mut world = World::new();
            let (process, thread, [reader, writer]) = world.waiter();
            let copy = world.fork(process);
            world.now(copy, __NR_close, &[reader]).unwrap();
            assert_eq!(world.polls(thread, number, reader), None);
            if is_replaced {
                let other = world.open(process, "/program", O_RDONLY).unwrap();
                world.now(process, __NR_dup2, &[other, reader]).unwrap();
            } else {
                world.now(process, __NR_close, &[reader]).unwrap();
            }
            assert_eq!(world.answer(thread), None, "nothing has happened");
            assert_eq!(world.write(copy, writer, b"x"), Some(Ok(1)), "somebody has it open");
            assert_eq!(world.answer(thread), Some(Ok(1)));
            let found = if is_replaced { POLLIN } else { POLLNVAL };
            let is_poll = number == __NR_poll || number == __NR_ppoll;
            assert!(!is_poll || world.number(process, OWN + 256 + 4) >> 16 == found);
            assert_eq!(world.write(copy, writer, b"x"), Some(Err(EPIPE)), "nobody has it open any more");
        }
    }
}

/// However the wait ends, what was kept open is closed, and each of many once.
#[test]
fn what_poll_keeps_open_is_closed_with_it() {
    for end in 0..4 {
        let mut world = World::new();
        let (process, thread, [reader, writer]) = world.waiter();
        let copy = world.fork(process);
        world.now(copy, __NR_close, &[reader]).unwrap();
        let before = world.system.budget.used();
        let other = world.thread(process);
        for tid in [thread, other] {
            assert_eq!(world.polls(tid, __NR_poll, reader), None);
        }
        world.now(process, __NR_close_range, &[reader, reader]).unwrap();
        assert_eq!(world.write(copy, writer, b""), Some(Ok(0)));
        for tid in [thread, other] {
            match end {
                0 => drop(world.now(1, __NR_tkill, &[tid.into(), SIGUSR1.into()]).unwrap()),
                1 => drop(world.call(tid, __NR_exit, &[0])),
                2 => world.wait(2_000_000_000),
                _ => world.exit(process),
            }
            if end == 3 {
                break;
            }
        }
        assert_eq!(world.write(copy, writer, b"x"), Some(Err(EPIPE)), "way {end}");
        assert!(end == 3 || world.system.budget.used() <= before + crate::process::THREAD_BYTES, "way {end}");
    }
}

/// Descriptors of a wait count, also if all of them are of one pipe, and go back.
#[test]
fn many_descriptors_of_a_poll_count() {
    let mut world = World::new();
    let (process, thread, [reader, _]) = world.waiter();
    let (len, entry) = (100, [reader as u32, POLLIN].map(u32::to_le_bytes).concat());
    for index in 0..len {
        let fd = world.now(process, __NR_dup, &[reader]).unwrap() as u32;
        world.put(process, OWN + 1024 + 8 * index, &[&fd.to_le_bytes(), &entry[4..]].concat());
    }
    let used = world.system.budget.used();
    assert_eq!(world.call(thread, __NR_poll, &[OWN + 1024, len, 1000]), None);
    assert!(world.system.budget.used() >= used + 24 * len as usize);
    world.now(process, __NR_close_range, &[reader, 300]).unwrap();
    world.wait(2_000_000_000);
    assert_eq!(world.answer(thread), Some(Ok(len)), "all of them are closed");
    assert!(world.system.budget.used() < used);
}

/// A list that cannot be read any more when something happens is told of, and nothing is kept of the wait. Masks and times are read once.
#[test]
fn a_list_that_is_gone_ends_its_wait() {
    let (list, mask, len) = (OWN + 4 * PAGE, OWN + 5 * PAGE, 20);
    for (number, arguments) in [
        (__NR_poll, [list, len, 60_000, 0, 0, 0]),
        (__NR_ppoll, [list, len, mask, mask + 16, 8, 0]),
        (__NR_select, [64, list, 0, 0, mask, 0]),
        (__NR_pselect6, [64, list, 0, 0, mask, mask + 24]),
    ] {
        for is_gone in [false, true] {
            let mut world = World::new();
            let (process, thread, [reader, writer]) = world.waiter();
            let mut bits = 0;
            for index in 0..len {
                let fd = world.now(process, __NR_dup, &[reader]).unwrap();
                bits |= 1 << fd;
                let entry = [fd as u32, POLLIN].map(u32::to_le_bytes).concat();
                world.put(process, list + 8 * index, &entry);
            }
            if arguments[1] == list {
                world.system.write_words(process, list, &[bits]).unwrap();
            }
            // A time, a mask, and where and how long that is.
            world.system.write_words(process, mask, &[60, 0, 0, mask + 16, 8]).unwrap();
            let used = world.system.budget.used();
            assert_eq!(world.call(thread, number, &arguments), None);
            assert!(world.system.budget.used() > used);
            world.now(process, __NR_munmap, &[if is_gone { list } else { mask }, PAGE]).unwrap();
            assert_eq!(world.write(process, writer, b"x"), Some(Ok(1)));
            assert_eq!(world.answer(thread), Some(if is_gone { Err(EFAULT) } else { Ok(len) }), "{number}");
            let state = world.system.thread(thread).unwrap();
            assert!(state.held.is_empty() && !state.polled.close(bits.trailing_zeros()), "{number}");
            assert_eq!((state.polled.bytes(), state.mask_before), (0, None));
        }
    }
}
