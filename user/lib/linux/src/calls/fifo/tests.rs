//! Pipes that have names, as programs see them. Numbers that are expected are Linux's own.

use crate::calls::HERE;
use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EACCES, EEXIST, EINTR, EINVAL, ENOENT, ENXIO, EPERM, EPIPE, ESPIPE, Errno};
use crate::machine::Tid;
use linux_raw_sys::general::{
    self as nr, EPOLL_CTL_ADD, EPOLLIN, O_CREAT, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY, POLLERR, POLLHUP,
    POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK,
    SIGALRM, SIGPIPE,
};
use std::vec::Vec;

const READ: u32 = POLLIN | POLLRDNORM;
const WRITE: u32 = POLLOUT | POLLWRNORM;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn path(rig: &mut Rig, path: &str) -> u64 {
    rig.put(&[path.as_bytes(), b"\0"].concat())
}

fn make(rig: &mut Rig, name: &str, mode: u32) -> i64 {
    let at = path(rig, name);
    rig.call(nr::__NR_mknodat, &[HERE, at, mode.into(), 0])
}

/// A rig with a pipe at `/tmp/pipe`.
fn rig() -> Rig {
    let mut rig = Rig::begun();
    assert_eq!(make(&mut rig, "/tmp/pipe", S_IFIFO | 0o640), 0);
    rig
}

fn open_by(rig: &mut Rig, tid: Tid, flags: u32) -> Option<i64> {
    let at = path(rig, "/tmp/pipe");
    let bytes = rig.get(FIRST, at, 10);
    rig.system.write(tid, at, &bytes).unwrap();
    rig.try_by(tid, nr::__NR_open, &[at, flags.into(), 0])
}

fn open(rig: &mut Rig, flags: u32) -> u64 {
    let fd = open_by(rig, FIRST, flags).expect("the call waits");
    assert!(fd >= 0, "{fd}");
    fd as u64
}

fn mode(rig: &mut Rig, name: &str) -> u32 {
    let (at, to) = (path(rig, name), rig.room(144));
    assert_eq!(rig.call(nr::__NR_lstat, &[at, to]), 0);
    rig.half(to + 24)
}

fn close(rig: &mut Rig, tid: Tid, fd: u64) {
    assert_eq!(rig.call_by(tid, nr::__NR_close, &[fd]), 0);
}

/// Names in a directory with their kinds.
fn list(rig: &mut Rig, name: &str) -> Vec<(Vec<u8>, u8)> {
    let (at, to) = (path(rig, name), rig.room(1024));
    let fd = rig.call(nr::__NR_open, &[at, O_RDONLY.into(), 0]) as u64;
    let count = rig.call(nr::__NR_getdents64, &[fd, to, 1024]) as usize;
    close(rig, FIRST, fd);
    let bytes = rig.get(FIRST, to, count);
    let (mut found, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let len = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
        let name = rest[19..len].split(|byte| *byte == 0).next().unwrap();
        found.push((name.to_vec(), rest[18]));
        rest = &rest[len..];
    }
    found
}

#[test]
fn nodes_are_made_and_have_kinds() {
    let mut rig = rig();
    assert_eq!(make(&mut rig, "/tmp/pipe", S_IFIFO), error(EEXIST));
    assert_eq!(make(&mut rig, "/tmp/socket", S_IFSOCK | 0o777), 0);
    assert_eq!(make(&mut rig, "/tmp/file", 0o666), 0);
    assert_eq!(make(&mut rig, "/tmp/other", S_IFREG | 0o4755), 0);
    assert_eq!(make(&mut rig, "/tmp/null", S_IFCHR | 0o666), error(EPERM));
    assert_eq!(make(&mut rig, "/tmp/disk", S_IFBLK | 0o666), error(EPERM));
    assert_eq!(make(&mut rig, "/tmp/pipe", S_IFBLK | 0o666), error(EEXIST));
    assert_eq!(make(&mut rig, "/tmp/dir", S_IFDIR), error(EPERM));
    assert_eq!(make(&mut rig, "/tmp/link", S_IFLNK), error(EINVAL));
    assert_eq!(make(&mut rig, "/nothing/pipe", S_IFIFO), error(ENOENT));
    assert_eq!(mode(&mut rig, "/tmp/pipe"), S_IFIFO | 0o640);
    assert_eq!(mode(&mut rig, "/tmp/socket"), S_IFSOCK | 0o755);
    assert_eq!(mode(&mut rig, "/tmp/file"), S_IFREG | 0o644);
    assert_eq!(mode(&mut rig, "/tmp/other"), S_IFREG | 0o4755);
    let kinds = list(&mut rig, "/tmp");
    for (name, kind) in [("pipe", nr::DT_FIFO), ("socket", nr::DT_SOCK), ("file", nr::DT_REG)] {
        assert!(kinds.contains(&(name.as_bytes().to_vec(), kind as u8)), "{name}: {kinds:?}");
    }
    let at = path(&mut rig, "/tmp/pipe");
    assert_eq!(rig.call(nr::__NR_chmod, &[at, 0o777]), 0);
    assert_eq!(rig.call(nr::__NR_execve, &[at, 0, 0]), error(EACCES));
    let at = path(&mut rig, "/tmp/socket");
    assert_eq!(rig.call(nr::__NR_open, &[at, O_RDWR.into(), 0]), error(ENXIO));
}

#[test]
fn the_ends_find_each_other() {
    let mut rig = rig();
    let child = rig.fork();
    assert_eq!(open_by(&mut rig, child, O_RDONLY), None);
    let writer = open(&mut rig, O_WRONLY);
    let reader = rig.answer(child).expect("it reads") as u64;
    assert_eq!(rig.write(writer, b"hello"), 5);
    let to = rig.room(16);
    assert_eq!(rig.call_by(child, nr::__NR_read, &[reader, to, 16]), 5);
    assert_eq!(rig.get(child, to, 5), b"hello");
    assert_eq!(rig.try_by(child, nr::__NR_read, &[reader, to, 16]), None);
    close(&mut rig, FIRST, writer);
    assert_eq!(rig.answer(child), Some(0));
    // The other way round.
    close(&mut rig, child, reader);
    assert_eq!(open_by(&mut rig, child, O_WRONLY | O_CREAT), None);
    let reader = open(&mut rig, O_RDONLY);
    assert!(rig.answer(child).is_some_and(|fd| fd > 0));
    close(&mut rig, FIRST, reader);
}

#[test]
fn a_reader_that_waits_is_a_reader() {
    let mut rig = rig();
    let child = rig.fork();
    assert_eq!(open_by(&mut rig, FIRST, O_WRONLY | O_NONBLOCK), Some(error(ENXIO)));
    assert_eq!(open_by(&mut rig, child, O_RDONLY), None);
    let thread = rig.thread();
    let writer = open(&mut rig, O_WRONLY | O_NONBLOCK);
    assert!(rig.answer(child).is_some());
    close(&mut rig, FIRST, writer);
    // Nobody waits for itself.
    let both = open(&mut rig, O_RDWR);
    assert_eq!(rig.write(both, b"me"), 2);
    assert_eq!(rig.read(both, 9), Ok(b"me".to_vec()));
    assert_eq!(rig.poll(both), WRITE);
    let _ = thread;
}

#[test]
fn a_reader_without_writers_hears_of_their_end_later() {
    let mut rig = rig();
    let reader = open(&mut rig, O_RDONLY | O_NONBLOCK);
    assert_eq!((rig.poll(reader), rig.read(reader, 9)), (0, Ok(Vec::new())));
    let writer = open(&mut rig, O_WRONLY);
    assert_eq!(rig.poll(writer), WRITE);
    rig.write(writer, b"x");
    assert_eq!(rig.poll(reader), READ);
    close(&mut rig, FIRST, writer);
    assert_eq!(rig.poll(reader), READ | POLLHUP);
    assert_eq!((rig.read(reader, 9), rig.poll(reader)), (Ok(b"x".to_vec()), POLLHUP));
    // Another writer comes, and the reader goes.
    let writer = open(&mut rig, O_WRONLY | O_NONBLOCK);
    assert_eq!(rig.poll(reader), 0);
    close(&mut rig, FIRST, reader);
    assert_eq!(rig.poll(writer), WRITE | POLLERR);
    rig.ignore(SIGPIPE);
    assert_eq!(rig.write(writer, b"x"), error(EPIPE));
}

#[test]
fn a_pipe_ends_with_what_has_it_open() {
    let mut rig = rig();
    let both = open(&mut rig, O_RDWR);
    rig.write(both, b"lost");
    let at = path(&mut rig, "/tmp/pipe");
    assert_eq!(rig.call(nr::__NR_unlink, &[at]), 0);
    let to = rig.room(144);
    assert_eq!((rig.call(nr::__NR_fstat, &[both, to]), rig.half(to + 24)), (0, S_IFIFO | 0o640));
    assert_eq!(rig.half(to + 16), 0, "it has no name");
    assert_eq!(make(&mut rig, "/tmp/pipe", S_IFIFO | 0o600), 0);
    let other = open(&mut rig, O_RDWR | O_NONBLOCK);
    assert_eq!(rig.read(other, 9), Err(error(crate::errno::EAGAIN)));
    rig.write(other, b"gone");
    assert_eq!(rig.read(both, 9), Ok(b"lost".to_vec()));
    close(&mut rig, FIRST, other);
    close(&mut rig, FIRST, both);
    let again = open(&mut rig, O_RDWR | O_NONBLOCK);
    assert_eq!(rig.read(again, 9), Err(error(crate::errno::EAGAIN)));
    assert_eq!(rig.call(nr::__NR_lseek, &[again, 0, 0]), error(ESPIPE));
    assert_eq!(rig.call(nr::__NR_fchmod, &[again, 0o622]), 0);
    assert_eq!(mode(&mut rig, "/tmp/pipe"), S_IFIFO | 0o622);
}

#[test]
fn a_signal_ends_the_wait_for_the_other_end() {
    let mut rig = rig();
    let child = rig.fork();
    let action = rig.put(&[0x5000u64, 0, 0, 0].map(u64::to_le_bytes).concat());
    let bytes = rig.get(FIRST, action, 32);
    rig.system.write(child, action, &bytes).unwrap();
    assert_eq!(rig.call_by(child, nr::__NR_rt_sigaction, &[SIGALRM.into(), action, 0, 8]), 0);
    assert_eq!(open_by(&mut rig, child, O_RDONLY), None);
    assert_eq!(rig.call(nr::__NR_kill, &[child.into(), SIGALRM.into()]), 0);
    assert!(rig.answer(child).is_some(), "{EINTR:?}");
    assert_eq!(open_by(&mut rig, FIRST, O_WRONLY | O_NONBLOCK), Some(error(ENXIO)), "it reads no longer");
    // The end of a process is one, too.
    assert_eq!(open_by(&mut rig, child, O_RDONLY), None);
    assert_eq!(rig.call(nr::__NR_kill, &[child.into(), 9]), 0);
    assert_eq!(open_by(&mut rig, FIRST, O_WRONLY | O_NONBLOCK), Some(error(ENXIO)));
    assert!(rig.system.kept.fifos.is_empty());
}

#[test]
fn lists_hear_of_pipes_with_names() {
    let mut rig = rig();
    let list = rig.call(nr::__NR_epoll_create1, &[0]) as u64;
    let reader = open(&mut rig, O_RDONLY | O_NONBLOCK);
    let event = rig.put(&[&EPOLLIN.to_le_bytes()[..], &7u64.to_le_bytes()].concat());
    assert_eq!(rig.call(nr::__NR_epoll_ctl, &[list, EPOLL_CTL_ADD.into(), reader, event]), 0);
    let to = rig.room(64);
    assert_eq!(rig.call(nr::__NR_epoll_wait, &[list, to, 4, 0]), 0);
    let writer = open(&mut rig, O_WRONLY);
    assert_eq!(rig.call(nr::__NR_epoll_wait, &[list, to, 4, 0]), 0);
    rig.write(writer, b"x");
    assert_eq!((rig.call(nr::__NR_epoll_wait, &[list, to, 4, 0]), rig.half(to)), (1, EPOLLIN));
    close(&mut rig, FIRST, writer);
    assert_eq!(rig.call(nr::__NR_epoll_wait, &[list, to, 4, 0]), 1);
    assert_eq!(rig.half(to), EPOLLIN | POLLHUP);
}
