//! Queues of POSIX. Errors and numbers that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::calls::time::SECOND;
use crate::errno::{
    EACCES, EAGAIN, EBADF, EBUSY, EEXIST, EFAULT, EINVAL, EMFILE, EMSGSIZE, ENAMETOOLONG, ENOENT, ENOMEM,
    ENOSPC, EPERM, ETIMEDOUT, Errno,
};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::socket::READABLE;
use crate::world::{HANDLER, OWN, World};
use linux_raw_sys::general::{self as nr, *};
use std::string::String;
use std::vec;
use std::vec::Vec;

const MAKE: u32 = O_CREAT | O_RDWR;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn open(rig: &mut Rig, tid: Tid, name: &str, flags: u32, most: Option<[u64; 2]>) -> i64 {
    let before = rig.free;
    let at = rig.room(512);
    rig.system.write(tid, at, &[name.as_bytes(), b"\0"].concat()).unwrap();
    let attributes = most.map(|most| {
        let at = rig.room(64);
        rig.system.write_words(tid, at, &[0, most[0], most[1], 0]).unwrap();
        at
    });
    let fd = rig.call_by(tid, nr::__NR_mq_open, &[at, flags.into(), 0o640, attributes.unwrap_or(0)]);
    rig.free = before;
    fd
}

/// A queue of three messages of 16 bytes.
fn small(rig: &mut Rig, flags: u32) -> u64 {
    let fd = open(rig, FIRST, "small", MAKE | flags, Some([3, 16]));
    assert!(fd > 0, "{fd}");
    fd as u64
}

fn send(rig: &mut Rig, tid: Tid, fd: u64, text: &[u8], priority: u64) -> Option<i64> {
    let at = rig.room(text.len());
    rig.system.write(tid, at, text).unwrap();
    rig.try_by(tid, nr::__NR_mq_timedsend, &[fd, at, text.len() as u64, priority, 0])
}

/// Text and priority of a message.
fn receive(rig: &mut Rig, fd: u64) -> Result<(Vec<u8>, u32), i64> {
    let (at, priority) = (rig.room(16), rig.room(4));
    let count = rig.call(nr::__NR_mq_timedreceive, &[fd, at, 16, priority, 0]);
    if count < 0 { Err(count) } else { Ok((rig.get(FIRST, at, count as usize), rig.half(priority))) }
}

fn attributes(rig: &mut Rig, fd: u64) -> [u64; 4] {
    let at = rig.room(64);
    assert_eq!(rig.call(nr::__NR_mq_getsetattr, &[fd, 0, at]), 0);
    rig.system.words(FIRST, at).unwrap()
}

#[test]
fn a_queue_has_a_name() {
    let mut rig = Rig::begun();
    let open = |rig: &mut Rig, name: &str, flags| open(rig, FIRST, name, flags, None);
    assert_eq!(open(&mut rig, "one", O_RDONLY), error(ENOENT));
    let fd = open(&mut rig, "one", MAKE);
    assert_eq!(attributes(&mut rig, fd as u64), [0, 10, 8192, 0]);
    assert_eq!(open(&mut rig, "one", MAKE | O_EXCL), error(EEXIST));
    let again = open(&mut rig, "one", O_RDONLY | O_NONBLOCK) as u64;
    assert_eq!(attributes(&mut rig, again)[0], O_NONBLOCK.into());
    for (name, expected) in [("", ENOENT), (".", EACCES), ("..", EACCES), ("/one", EACCES), ("a/b", EACCES)] {
        assert_eq!(open(&mut rig, name, MAKE), error(expected), "{name}");
    }
    assert_eq!(open(&mut rig, &"n".repeat(256), MAKE), error(ENAMETOOLONG));
    assert!(open(&mut rig, &"n".repeat(255), MAKE) > 0);
    // It is closed by another program.
    assert_eq!(rig.call(nr::__NR_fcntl, &[again, F_GETFD.into()]), FD_CLOEXEC.into());
    let name = rig.put(b"one\0");
    assert_eq!(rig.call(nr::__NR_mq_unlink, &[name]), 0);
    assert_eq!(rig.call(nr::__NR_mq_unlink, &[name]), error(ENOENT));
    assert_eq!(open(&mut rig, "one", O_RDONLY), error(ENOENT));
    assert_eq!(send(&mut rig, FIRST, fd as u64, b"still there", 0), Some(0));
    assert_eq!(rig.poll(again), READABLE | POLLOUT | POLLWRNORM);
    let stat = rig.room(144);
    assert_eq!(rig.call(nr::__NR_fstat, &[again, stat]), 0);
    assert_eq!(rig.half(stat + 24), S_IFREG | 0o640);
}

#[test]
fn the_highest_priority_comes_first() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, O_NONBLOCK);
    assert_eq!(receive(&mut rig, fd), Err(error(EAGAIN)));
    assert_eq!(rig.poll(fd), POLLOUT | POLLWRNORM);
    for (text, priority) in [("low", 1), ("high", 32_767), ("also low", 1)] {
        assert_eq!(send(&mut rig, FIRST, fd, text.as_bytes(), priority), Some(0));
    }
    assert_eq!(send(&mut rig, FIRST, fd, b"too many", 0), Some(error(EAGAIN)));
    assert_eq!(rig.poll(fd), READABLE);
    assert_eq!(attributes(&mut rig, fd), [O_NONBLOCK.into(), 3, 16, 3]);
    assert_eq!(send(&mut rig, FIRST, fd, &[0; 17], 0), Some(error(EMSGSIZE)));
    assert_eq!(send(&mut rig, FIRST, fd, b"", 32_768), Some(error(EINVAL)));
    assert_eq!(rig.call(nr::__NR_mq_timedreceive, &[fd, DATA, 15, 0, 0]), error(EMSGSIZE));
    assert_eq!(rig.call(nr::__NR_mq_timedreceive, &[fd, 8, 16, 0, 0]), error(EFAULT));
    assert_eq!(rig.call(nr::__NR_mq_timedreceive, &[fd, DATA, 16, 8, 0]), error(EFAULT), "it stays");
    assert_eq!(receive(&mut rig, fd), Ok((b"high".to_vec(), 32_767)));
    assert_eq!(receive(&mut rig, fd), Ok((b"low".to_vec(), 1)));
    assert_eq!(receive(&mut rig, fd), Ok((b"also low".to_vec(), 1)));
    assert_eq!(rig.read(fd, 16), Ok(b"QSIZE:0         ".to_vec()));
    assert_eq!(rig.call(nr::__NR_mq_timedreceive, &[0, DATA, 16, 0, 0]), error(EBADF));
    assert_eq!(rig.call(nr::__NR_mq_timedreceive, &[77, DATA, 16, 0, 0]), error(EBADF));
    let reader = open(&mut rig, FIRST, "small", O_RDONLY, None) as u64;
    assert_eq!(send(&mut rig, FIRST, reader, b"", 0), Some(error(EBADF)));
    let writer = open(&mut rig, FIRST, "small", O_WRONLY, None) as u64;
    assert_eq!(receive(&mut rig, writer), Err(error(EBADF)));
}

#[test]
fn who_waits_longest_is_served_first() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    let [one, two] = [rig.fork(), rig.fork()];
    let at = rig.room(16);
    for tid in [one, two] {
        assert_eq!(rig.try_by(tid, nr::__NR_mq_timedreceive, &[fd, at, 16, 0, 0]), None);
    }
    assert_eq!(send(&mut rig, FIRST, fd, b"first", 0), Some(0));
    assert_eq!((rig.answer(one), rig.answer(two)), (Some(5), None));
    assert_eq!(send(&mut rig, FIRST, fd, b"second", 0), Some(0));
    assert_eq!((rig.get(one, at, 5), rig.answer(two)), (b"first".to_vec(), Some(6)));
    for _ in 0..3 {
        assert_eq!(send(&mut rig, FIRST, fd, b"full", 5), Some(0));
    }
    assert_eq!(send(&mut rig, one, fd, b"waits", 1), None);
    assert_eq!(send(&mut rig, two, fd, b"waits, too", 9), None);
    assert_eq!(receive(&mut rig, fd), Ok((b"full".to_vec(), 5)));
    assert_eq!((rig.answer(one), rig.answer(two)), (Some(0), None));
    assert_eq!(receive(&mut rig, fd), Ok((b"full".to_vec(), 5)));
    assert_eq!((rig.answer(two), attributes(&mut rig, fd)[3]), (Some(0), 3));
    assert_eq!(receive(&mut rig, fd), Ok((b"waits, too".to_vec(), 9)));
}

#[test]
fn a_wait_ends_at_a_date() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    let date = 1_700_000_003;
    let time = rig.put(&[date, 0u64].map(u64::to_le_bytes).concat());
    let child = rig.fork();
    let call = [fd, DATA, 16, 0, time];
    assert_eq!(rig.try_by(child, nr::__NR_mq_timedreceive, &call), None);
    rig.pass(2 * SECOND);
    assert_eq!(rig.answer(child), None);
    rig.pass(SECOND);
    assert_eq!(rig.answer(child), Some(error(ETIMEDOUT)));
    assert_eq!(rig.try_by(child, nr::__NR_mq_timedreceive, &call), Some(error(ETIMEDOUT)));
    rig.system.write_words(child, time, &[0, SECOND]).unwrap();
    assert_eq!(rig.try_by(child, nr::__NR_mq_timedreceive, &call), Some(error(EINVAL)));
    assert_eq!(send(&mut rig, FIRST, fd, b"x", 0), Some(0));
    rig.system.write_words(child, time, &[0, 0]).unwrap();
    assert_eq!(rig.try_by(child, nr::__NR_mq_timedreceive, &call), Some(1), "it is there already");
}

#[test]
fn one_process_hears_of_the_next_message() {
    let mut world = World::new();
    let name = OWN + 64;
    world.put(1, name, b"queue\0");
    let fd = world.now(1, nr::__NR_mq_open, &[name, MAKE.into(), 0o600, 0]).unwrap();
    let child = world.fork(1);
    world.action(child, SIGUSR1, HANDLER);
    world.action(child, SIGUSR2, HANDLER);
    let notify = |world: &mut World, tid, words: [u64; 2]| {
        world.system.write_words(tid, OWN, &words).unwrap();
        world.now(tid, nr::__NR_mq_notify, &[fd, OWN])
    };
    let by_signal = [7, SIGUSR1.into()];
    assert_eq!(notify(&mut world, child, by_signal), Ok(0));
    assert_eq!(notify(&mut world, 1, by_signal), Err(EBUSY));
    assert_eq!(notify(&mut world, 1, [0, u64::from(SIGEV_THREAD) << 32]), Err(EFAULT));
    assert_eq!(notify(&mut world, 1, [0, u64::from(SIGEV_THREAD_ID) << 32]), Err(EINVAL));
    assert_eq!(notify(&mut world, 1, [0, 65]), Err(EINVAL));
    let send = |world: &mut World| world.now(1, nr::__NR_mq_timedsend, &[fd, OWN, 4, 0, 0]).unwrap();
    let receive = |world: &mut World| world.now(1, nr::__NR_mq_timedreceive, &[fd, OWN + PAGE, 8192, 0, 0]);
    send(&mut world);
    assert!(world.handles(child));
    // Once: it has to ask again, and hears of no other message while one is there.
    assert_eq!(notify(&mut world, child, [7, SIGUSR2.into()]), Ok(0));
    send(&mut world);
    assert!(!world.handles(child));
    assert_eq!((receive(&mut world), receive(&mut world)), (Ok(4), Ok(4)));
    // A thread that waits for it has it before.
    let other = world.fork(1);
    assert_eq!(world.call(other, nr::__NR_mq_timedreceive, &[fd, OWN, 8192, 0, 0]), None);
    send(&mut world);
    assert_eq!((world.answer(other), world.handles(child)), (Some(Ok(4)), false));
    send(&mut world);
    assert!(world.handles(child));
    assert_eq!(receive(&mut world), Ok(4));
    // By closing a descriptor, by taking it back, and by its end it hears no more.
    assert_eq!(notify(&mut world, other, [0, u64::from(SIGEV_NONE) << 32]), Ok(0));
    assert_eq!(notify(&mut world, child, by_signal), Err(EBUSY));
    assert_eq!(world.now(other, nr::__NR_close, &[fd]), Ok(0));
    assert_eq!(notify(&mut world, child, by_signal), Ok(0));
    assert_eq!(world.now(1, nr::__NR_mq_notify, &[fd, 0]), Ok(0));
    assert_eq!(notify(&mut world, 1, by_signal), Err(EBUSY), "that was another one's");
    assert_eq!(world.now(child, nr::__NR_mq_notify, &[fd, 0]), Ok(0));
    assert_eq!(notify(&mut world, child, by_signal), Ok(0));
    world.exit(child);
    assert_eq!(notify(&mut world, 1, by_signal), Ok(0));
}

/// A descriptor that another program closes takes the notice with it. With one that stays, the notice is there until a message comes, and the other program hears nothing.
#[test]
fn another_program_hears_of_no_message() {
    for stays in [false, true] {
        let mut world = World::new();
        let name = OWN + 64;
        world.put(1, name, b"queue\0");
        let fd = world.now(1, nr::__NR_mq_open, &[name, MAKE.into(), 0o600, 0]).unwrap();
        let child = world.fork(1);
        assert_eq!(world.now(child, nr::__NR_fcntl, &[fd, F_SETFD.into(), u64::from(!stays)]), Ok(0));
        let notify = |world: &mut World, tid| {
            world.system.write_words(tid, OWN, &[7, SIGUSR1.into()]).unwrap();
            world.now(tid, nr::__NR_mq_notify, &[fd, OWN])
        };
        assert_eq!(notify(&mut world, child), Ok(0));
        world.put(child, OWN, b"/program\0");
        let _ = world.call(child, nr::__NR_execve, &[OWN, 0, 0]);
        assert_eq!(notify(&mut world, 1), if stays { Err(EBUSY) } else { Ok(0) });
        assert_eq!(world.now(1, nr::__NR_mq_notify, &[fd, 0]), Ok(0));
        assert_eq!(world.now(1, nr::__NR_mq_timedsend, &[fd, OWN, 4, 0, 0]), Ok(0));
        assert_eq!(world.status(1, child), None, "it is not ended by a signal for another");
        assert_eq!(notify(&mut world, 1), Ok(0), "nobody waits any more");
        if stays {
            world.lay_out(child);
            assert_eq!(world.now(1, nr::__NR_mq_notify, &[fd, 0]), Ok(0));
            assert_eq!(notify(&mut world, child), Ok(0));
        }
    }
}

#[test]
fn queues_belong_to_somebody() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    let child = rig.fork();
    assert_eq!(rig.call_by(child, nr::__NR_setgid, &[0]), 0);
    assert_eq!(rig.call_by(child, nr::__NR_setuid, &[5]), 0);
    let open_by = |rig: &mut Rig, name: &str, flags, most| open(rig, child, name, flags, most);
    assert!(open_by(&mut rig, "small", O_RDONLY, None) > 0, "its group may read");
    assert_eq!(open_by(&mut rig, "small", O_RDWR, None), error(EACCES));
    assert_eq!(open_by(&mut rig, "small", O_ACCMODE, None), error(EINVAL));
    let name = rig.room(16);
    rig.system.write(child, name, b"small\0").unwrap();
    assert_eq!(rig.call_by(child, nr::__NR_mq_unlink, &[name]), error(EPERM));
    for most in [[0, 1], [1, 0], [11, 1], [1, 8193], [1 << 63, 1]] {
        assert_eq!(open_by(&mut rig, "other", MAKE, Some(most)), error(EINVAL), "{most:?}");
    }
    let own = open_by(&mut rig, "other", MAKE, Some([10, 8192])) as u64;
    rig.system.write(child, name, b"other\0").unwrap();
    assert_eq!(rig.call_by(child, nr::__NR_mq_unlink, &[name]), 0);
    // A queue without a name counts for as long as it is open.
    let more = |rig: &mut Rig, number: u32| open_by(rig, &std::format!("{number}"), MAKE, Some([10, 8192]));
    for number in 0..8 {
        assert!(more(&mut rig, number) > 0);
    }
    assert_eq!(more(&mut rig, 8), error(EMFILE));
    assert_eq!(rig.call_by(child, nr::__NR_close, &[own]), 0);
    assert!(more(&mut rig, 8) > 0);
    assert!(open(&mut rig, FIRST, "large", MAKE, Some([11, 16_384])) > 0, "`root` may have more");
    assert_eq!(open(&mut rig, FIRST, "larger", MAKE, Some([65_536, 1 << 20])), error(EMFILE));
    assert_eq!(open(&mut rig, FIRST, "largest", MAKE, Some([65_537, 1])), error(EINVAL));
    assert_eq!(attributes(&mut rig, fd), [0, 3, 16, 0]);
}

#[test]
fn attributes_are_flags() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    let (new, old) =
        (rig.put(&[u64::from(O_NONBLOCK), 9, 9, 9, 0, 0, 0, 0].map(u64::to_le_bytes).concat()), rig.room(64));
    assert_eq!(rig.call(nr::__NR_mq_getsetattr, &[fd, new, old]), 0);
    assert_eq!(rig.system.words(FIRST, old), Ok([0, 3, 16, 0]));
    assert_eq!(attributes(&mut rig, fd), [O_NONBLOCK.into(), 3, 16, 0]);
    rig.system.write_words(FIRST, new, &[u64::from(O_NONBLOCK | O_APPEND)]).unwrap();
    assert_eq!(rig.call(nr::__NR_mq_getsetattr, &[fd, new, old]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_mq_getsetattr, &[0, 0, old]), error(EBADF));
}

/// A sender that finds no room is told so, whatever is left of the budget. One that waits has a share of it for its message, and hears that there is none.
#[test]
fn who_finds_no_room_takes_none() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    let quick = open(&mut rig, FIRST, "small", O_WRONLY | O_NONBLOCK, None) as u64;
    let child = rig.fork();
    for _ in 0..3 {
        assert_eq!(send(&mut rig, FIRST, fd, b"full", 1), Some(0));
    }
    rig.system.write(child, DATA, b"waits").unwrap();
    let last = DATA + (4 << 20) - 2;
    assert_eq!((rig.get(FIRST, DATA, 1), rig.get(FIRST, last, 1)), (vec![0], vec![0]), "pages are there");
    let (used, lasting) = (rig.system.budget.used(), rig.system.kept.ipc.lasting.bytes());
    let max = rig.system.budget.max();
    rig.system.budget.set_max(used);
    let sends = |fd: u64, at: u64| [fd, at, 5, 0, 0];
    assert_eq!(rig.call(nr::__NR_mq_timedsend, &sends(quick, DATA)), error(EAGAIN));
    for fd in [quick, fd] {
        // Also if it begins well, and ends where nothing is.
        for at in [8, last] {
            assert_eq!(rig.call(nr::__NR_mq_timedsend, &sends(fd, at)), error(EFAULT));
        }
    }
    assert_eq!(rig.try_by(child, nr::__NR_mq_timedsend, &sends(fd, DATA)), Some(error(ENOMEM)));
    assert_eq!((rig.system.budget.used(), rig.system.kept.ipc.lasting.bytes()), (used, lasting));
    rig.system.budget.set_max(max);
    assert_eq!(rig.try_by(child, nr::__NR_mq_timedsend, &sends(fd, DATA)), None);
    assert_eq!(rig.system.kept.ipc.lasting.bytes(), lasting);
    assert_eq!(receive(&mut rig, fd), Ok((b"full".to_vec(), 1)));
    assert_eq!((rig.answer(child), attributes(&mut rig, fd)[3]), (Some(0), 3));
}

/// Queues and messages outlast their makers, and are at most a part of the budget.
#[test]
fn messages_have_limits() {
    let mut rig = Rig::begun();
    rig.system.budget.set_max(1 << 20);
    let before = (rig.system.kept.ipc.lasting.bytes(), rig.system.budget.used());
    let (mut sent, mut queues) = (0, 0);
    let full = loop {
        let fd = open(&mut rig, FIRST, &std::format!("{queues}"), MAKE | O_NONBLOCK, Some([10, 8192]));
        assert!(fd > 0, "{fd}");
        queues += 1;
        let last = loop {
            match send(&mut rig, FIRST, fd as u64, &[1; 8192], 0) {
                Some(0) => sent += 1,
                other => break other,
            }
        };
        rig.free = DATA + PAGE;
        if last != Some(error(EAGAIN)) {
            break last;
        }
    };
    assert_eq!(full, Some(error(ENOMEM)));
    assert!((24..32).contains(&sent), "{sent} messages in {queues} queues");
    let refused = loop {
        let fd = open(&mut rig, FIRST, &std::format!("more {queues}"), MAKE, Some([1, 1]));
        if fd < 0 {
            break fd;
        }
        assert_eq!(rig.call(nr::__NR_close, &[fd as u64]), 0);
        queues += 1;
    };
    assert_eq!(refused, error(ENOSPC));
    rig.call(nr::__NR_close_range, &[3, u32::MAX.into(), 0]);
    for number in 0..queues {
        for name in [std::format!("{number}\0"), std::format!("more {number}\0")] {
            let at = rig.put(name.as_bytes());
            rig.call(nr::__NR_mq_unlink, &[at]);
            rig.free = at;
        }
    }
    let after = (rig.system.kept.ipc.lasting.bytes(), rig.system.budget.used());
    assert_eq!(after.0, before.0);
    assert!(after.1 <= before.1 + 4096, "{after:?}, {before:?}");
}

/// A message that waits for room is what it was when the call was made.
#[test]
fn who_waits_for_room_sends_what_there_was() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    for text in [&b"one"[..], b"two", b"three"] {
        assert_eq!(send(&mut rig, FIRST, fd, text, 0), Some(0));
    }
    let (thread, held) = (rig.thread(), rig.system.budget.used());
    let at = rig.put(b"before");
    let wait = |rig: &mut Rig, at: u64| rig.try_by(thread, nr::__NR_mq_timedsend, &[fd, at, 6, 5, 0]);
    assert_eq!(wait(&mut rig, 8), Some(error(EFAULT)));
    assert_eq!(wait(&mut rig, at), None);
    assert!(rig.system.budget.used() > held + 6);
    rig.system.write(FIRST, at, b"behind").unwrap();
    assert_eq!(receive(&mut rig, fd), Ok((b"one".to_vec(), 0)));
    assert_eq!(rig.answer(thread), Some(0));
    assert_eq!(receive(&mut rig, fd), Ok((b"before".to_vec(), 5)));
    // A sender that does not wait keeps nothing, and hears of a wrong address first.
    assert_eq!(send(&mut rig, FIRST, fd, b"four", 0), Some(0));
    assert_eq!(rig.call(nr::__NR_fcntl, &[fd, F_SETFL.into(), O_NONBLOCK.into()]), 0);
    let before = rig.system.budget.used();
    assert_eq!(wait(&mut rig, 8), Some(error(EFAULT)));
    assert_eq!((wait(&mut rig, at), rig.system.budget.used()), (Some(error(EAGAIN)), before));
}

/// A read of a queue's descriptor tells of the queue, from where the last one ended.
#[test]
fn reads_tell_of_the_queue() {
    let mut rig = Rig::begun();
    let fd = small(&mut rig, 0);
    let read = |rig: &mut Rig, len: u64| {
        let count = rig.call(nr::__NR_read, &[fd, DATA, len]);
        String::from_utf8(rig.get(FIRST, DATA, count as usize)).unwrap()
    };
    let empty = "QSIZE:0          NOTIFY:0     SIGNO:0     NOTIFY_PID:0     \n";
    assert_eq!(read(&mut rig, 9), empty[..9]);
    assert_eq!(read(&mut rig, 100), empty[9..]);
    assert_eq!(read(&mut rig, 100), "");
    for text in [&b"one"[..], b"three"] {
        assert_eq!(send(&mut rig, FIRST, fd, text, 0), Some(0));
    }
    let event = rig.room(64);
    rig.system.write_words(FIRST, event, &[0, u64::from(SIGEV_NONE) << 32]).unwrap();
    assert_eq!(rig.call(nr::__NR_mq_notify, &[fd, event]), 0);
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, 0]), 0);
    assert_eq!(read(&mut rig, 100), "QSIZE:8          NOTIFY:1     SIGNO:0     NOTIFY_PID:1     \n");
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, 2]), 80);
    assert_eq!(rig.call(nr::__NR_write, &[fd, DATA, 1]), error(EINVAL));
}
