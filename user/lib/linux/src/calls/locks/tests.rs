//! Locks as programs see them. What is expected was asked of Linux.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EAGAIN, EBADF, EDEADLK, EINVAL, EOVERFLOW, Errno};
use crate::machine::Tid;
use linux_raw_sys::general::{
    self as nr, F_GETLK, F_OFD_GETLK, F_OFD_SETLK, F_SETLK, F_SETLKW, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN,
};

const READ: u16 = nr::F_RDLCK as u16;
const WRITE: u16 = nr::F_WRLCK as u16;
const UNLOCK: u16 = nr::F_UNLCK as u16;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// Kind, start, length, origin, process.
type Asked = (u16, i64, i64, u16, u32);

fn structure(rig: &mut Rig, (kind, start, len, whence, pid): Asked) -> u64 {
    let head = u64::from(kind) | u64::from(whence) << 16;
    rig.put(&[head, start as u64, len as u64, pid.into()].map(u64::to_le_bytes).concat())
}

fn lock(rig: &mut Rig, tid: Tid, fd: u64, command: u32, asked: Asked) -> Option<i64> {
    let at = structure(rig, asked);
    let bytes = rig.get(FIRST, at, 32);
    rig.system.write(tid, at, &bytes).unwrap();
    rig.try_by(tid, nr::__NR_fcntl, &[fd, command.into(), at])
}

fn set(rig: &mut Rig, tid: Tid, fd: u64, kind: u16, start: i64, len: i64) -> i64 {
    lock(rig, tid, fd, F_SETLK, (kind, start, len, 0, 0)).unwrap()
}

/// The lock that keeps one out: kind, start, length, process.
fn get(rig: &mut Rig, tid: Tid, fd: u64, command: u32, kind: u16, start: i64, len: i64) -> [i64; 4] {
    let at = structure(rig, (kind, start, len, 0, 0));
    let bytes = rig.get(FIRST, at, 32);
    rig.system.write(tid, at, &bytes).unwrap();
    assert_eq!(rig.call_by(tid, nr::__NR_fcntl, &[fd, command.into(), at]), 0);
    let bytes = rig.get(tid, at, 32);
    let word = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    [word(0) & 0xffff, word(8), word(16), i64::from(word(24) as i32)]
}

#[test]
fn processes_lock_bytes() {
    let mut rig = Rig::begun();
    let fd = rig.open("/tmp/lock") as u64;
    rig.write(fd, &[b'x'; 100]);
    assert_eq!(set(&mut rig, FIRST, fd, WRITE, 10, 20), 0);
    assert_eq!(get(&mut rig, FIRST, fd, F_GETLK, WRITE, 0, 0), [UNLOCK.into(), 0, 0, 0]);
    assert_eq!(set(&mut rig, FIRST, fd, WRITE, 10, 20), 0);
    for (asked, expected) in [
        ((7, 0, 0, 0, 0), EINVAL),
        ((WRITE, -1, 0, 0, 0), EINVAL),
        ((WRITE, 5, -10, 0, 0), EINVAL),
        ((WRITE, 0, 0, 9, 0), EINVAL),
        ((WRITE, i64::MAX, 2, 0, 0), EOVERFLOW),
    ] {
        assert_eq!(lock(&mut rig, FIRST, fd, F_SETLK, asked), Some(error(expected)));
    }
    assert_eq!(set(&mut rig, FIRST, fd, READ, 50, -10), 0);
    assert_eq!(lock(&mut rig, FIRST, fd, F_SETLK, (WRITE, -10, 5, 2, 0)), Some(0));
    let child = rig.fork();
    assert_eq!(get(&mut rig, child, fd, F_GETLK, WRITE, 0, 0), [WRITE.into(), 10, 20, 1]);
    assert_eq!(get(&mut rig, child, fd, F_GETLK, WRITE, 80, 0), [WRITE.into(), 90, 5, 1]);
    assert_eq!(set(&mut rig, child, fd, WRITE, 15, 1), error(EAGAIN));
    assert_eq!(set(&mut rig, child, fd, READ, 41, 2), 0);
    assert_eq!(set(&mut rig, child, fd, WRITE, 0, 10), 0);
    // One waits for the other, who must not wait for him, too.
    assert_eq!(lock(&mut rig, child, fd, F_SETLKW, (WRITE, 15, 1, 0, 0)), None);
    assert_eq!(lock(&mut rig, FIRST, fd, F_SETLKW, (WRITE, 0, 1, 0, 0)), Some(error(EDEADLK)));
    assert_eq!(set(&mut rig, FIRST, fd, UNLOCK, 15, 1), 0);
    assert_eq!(rig.answer(child), Some(0));
    assert_eq!(get(&mut rig, child, fd, F_GETLK, WRITE, 10, 20), [WRITE.into(), 10, 5, 1]);
    // Any descriptor that is closed ends all locks of its process.
    let copy = rig.open("/tmp/lock") as u64;
    rig.call(nr::__NR_close, &[copy]);
    assert_eq!(get(&mut rig, child, fd, F_GETLK, WRITE, 0, 0), [UNLOCK.into(), 0, 0, 0]);
    assert_eq!(set(&mut rig, FIRST, fd, WRITE, 0, 1), error(EAGAIN));
    rig.try_by(child, nr::__NR_exit_group, &[0]);
    assert_eq!((set(&mut rig, FIRST, fd, WRITE, 0, 1), rig.system.locks.count()), (0, 1));
    let path = rig.put(b"/tmp/lock\0");
    let reader = rig.call(nr::__NR_open, &[path, 0]) as u64;
    let writer = rig.call(nr::__NR_open, &[path, 1]) as u64;
    assert_eq!(set(&mut rig, FIRST, reader, WRITE, 0, 1), error(EBADF));
    assert_eq!(set(&mut rig, FIRST, writer, READ, 0, 1), error(EBADF));
}

#[test]
fn a_program_that_begins_has_no_locks_of_files_that_it_has_not() {
    let mut rig = Rig::begun();
    let path = rig.put(b"/tmp/lock\0");
    let flags = (nr::O_RDWR | nr::O_CREAT | nr::O_CLOEXEC).into();
    let fd = rig.call(nr::__NR_open, &[path, flags, 0o644]) as u64;
    assert_eq!((set(&mut rig, FIRST, fd, WRITE, 0, 1), rig.system.locks.count()), (0, 1));
    let program = rig.put(b"/bin/test\0");
    rig.try_by(FIRST, nr::__NR_execve, &[program, 0, 0]);
    assert!(rig.system.processes[&FIRST].descriptors.get(fd as u32).is_err());
    assert_eq!(rig.system.locks.count(), 0);
}

/// A descriptor that is closed by a program that begins ends the locks of its process, whoever else has the file open.
#[test]
fn a_program_that_begins_has_no_locks_of_descriptors_that_it_closes() {
    let mut rig = Rig::begun();
    let path = rig.put(b"/tmp/lock\0");
    let flags = (nr::O_RDWR | nr::O_CREAT | nr::O_CLOEXEC).into();
    let fd = rig.call(nr::__NR_open, &[path, flags, 0o644]) as u64;
    let child = rig.fork();
    assert_eq!(
        (set(&mut rig, FIRST, fd, WRITE, 0, 1), set(&mut rig, child, fd, WRITE, 0, 1)),
        (0, error(EAGAIN))
    );
    assert_eq!(lock(&mut rig, child, fd, F_SETLKW, (WRITE, 0, 1, 0, 0)), None);
    let program = rig.put(b"/bin/test\0");
    rig.try_by(FIRST, nr::__NR_execve, &[program, 0, 0]);
    assert_eq!(rig.answer(child), Some(0));
}

#[test]
fn open_files_lock_bytes() {
    let mut rig = Rig::begun();
    let [fd, other] = [0; 2].map(|_| rig.open("/tmp/lock") as u64);
    let locked = |rig: &mut Rig, fd: u64, command: u32, start: i64, pid: u32| {
        lock(rig, FIRST, fd, command, (WRITE, start, 10, 0, pid)).unwrap()
    };
    assert_eq!(locked(&mut rig, fd, F_OFD_SETLK, 0, 0), 0);
    assert_eq!(locked(&mut rig, other, F_OFD_SETLK, 5, 0), error(EAGAIN));
    assert_eq!(get(&mut rig, FIRST, other, F_OFD_GETLK, WRITE, 5, 10), [WRITE.into(), 0, 10, -1]);
    assert_eq!(locked(&mut rig, fd, F_SETLK, 0, 0), error(EAGAIN));
    assert_eq!(locked(&mut rig, fd, F_OFD_SETLK, 0, 5), error(EINVAL));
    rig.call(nr::__NR_close, &[fd]);
    assert_eq!(locked(&mut rig, other, F_OFD_SETLK, 5, 0), 0);
    rig.call(nr::__NR_close, &[other]);
    assert_eq!(rig.system.locks.count(), 0);
}

#[test]
fn whole_files_are_locked() {
    let mut rig = Rig::begun();
    let [one, two, three] = [0; 3].map(|_| rig.open("/tmp/lock") as u64);
    let says = |rig: &mut Rig, fd: u64, operation: u32| rig.call(nr::__NR_flock, &[fd, operation.into()]);
    assert_eq!((says(&mut rig, one, LOCK_SH), says(&mut rig, two, LOCK_SH | LOCK_NB)), (0, 0));
    assert_eq!(says(&mut rig, two, LOCK_EX | LOCK_NB), error(EAGAIN));
    assert_eq!(says(&mut rig, three, LOCK_EX | LOCK_NB), error(EAGAIN));
    assert_eq!(says(&mut rig, one, LOCK_UN), 0);
    // The lock that could not become another one is gone.
    assert_eq!(says(&mut rig, three, LOCK_EX | LOCK_NB), 0);
    assert_eq!((says(&mut rig, one, 0), says(&mut rig, one, 3)), (error(EINVAL), error(EINVAL)));
    let thread = rig.thread();
    assert_eq!(rig.try_by(thread, nr::__NR_flock, &[one, LOCK_EX.into()]), None);
    rig.call(nr::__NR_close, &[three]);
    assert_eq!(rig.answer(thread), Some(0));
    // A copy is the same open file.
    let copy = rig.call(nr::__NR_dup, &[one]) as u64;
    assert_eq!(says(&mut rig, copy, LOCK_SH | LOCK_NB), 0);
    rig.call(nr::__NR_close, &[one]);
    assert_eq!(says(&mut rig, two, LOCK_EX | LOCK_NB), error(EAGAIN));
    rig.call(nr::__NR_close, &[copy]);
    assert_eq!((says(&mut rig, two, LOCK_EX | LOCK_NB), says(&mut rig, 0, LOCK_SH)), (0, 0));
}
