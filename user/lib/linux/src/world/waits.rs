//! Threads that wait with a descriptor which another thread closes.

use super::{HANDLER, OWN, World};
use crate::errno::{EBADF, EPIPE};
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
