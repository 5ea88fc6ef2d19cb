//! Notices at sockets of netlink, as glibc's `mq_notify` asks for them. Errors that are expected are Linux's own.

use super::{REMOVED, WOKEN_UP};
use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EAGAIN, EBADF, EBUSY, EFAULT, EINVAL, ENOTSOCK, Errno};
use crate::machine::Tid;
use linux_raw_sys::general::{self as nr, *};
use linux_raw_sys::net::{AF_NETLINK, AF_UNIX, SO_RCVBUF, SOCK_RAW, SOCK_STREAM, SOL_SOCKET};

const THREAD: u64 = (SIGEV_THREAD as u64) << 32;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A queue, and a socket of netlink.
fn begun() -> (Rig, u64, u64) {
    let mut rig = Rig::begun();
    let name = rig.put(b"queue\0");
    let queue = rig.call(nr::__NR_mq_open, &[name, (O_CREAT | O_RDWR).into(), 0o600, 0]);
    let socket = socket(&mut rig);
    assert!(queue > 0, "{queue}");
    (rig, queue as u64, socket)
}

fn socket(rig: &mut Rig) -> u64 {
    let kind = SOCK_RAW | O_NONBLOCK | O_CLOEXEC;
    let socket = rig.call(nr::__NR_socket, &[AF_NETLINK.into(), kind.into(), 0]);
    assert!(socket > 0, "{socket}");
    socket as u64
}

/// Asks for a notice at a socket, by 32 bytes of a kind.
fn ask(rig: &mut Rig, tid: Tid, queue: u64, socket: u64, byte: u8) -> Option<i64> {
    let before = rig.free;
    let (cookie, event) = (rig.room(32), rig.room(64));
    rig.system.write(tid, cookie, &[byte; 32]).unwrap();
    rig.system.write_words(tid, event, &[cookie, THREAD | socket]).unwrap();
    let asked = rig.try_by(tid, nr::__NR_mq_notify, &[queue, event]);
    // A call that waits reads it once more.
    rig.free = if asked.is_some() { before } else { rig.free };
    asked
}

fn send(rig: &mut Rig, queue: u64) {
    let at = rig.put(b"text");
    assert_eq!(rig.call(nr::__NR_mq_timedsend, &[queue, at, 4, 0, 0]), 0);
}

fn receive(rig: &mut Rig, queue: u64) {
    let before = rig.free;
    let at = rig.room(8192);
    assert_eq!(rig.call(nr::__NR_mq_timedreceive, &[queue, at, 8192, 0, 0]), 4);
    rig.free = before;
}

/// Message that a socket has: the first byte of 32, and the last one.
fn told(rig: &mut Rig, socket: u64) -> Result<(u8, u8), i64> {
    let before = rig.free;
    let at = rig.room(64);
    let len = rig.call(nr::__NR_recvfrom, &[socket, at, 64]);
    rig.free = before;
    if len < 0 {
        return Err(len);
    }
    assert_eq!(len, 32);
    let bytes = rig.get(FIRST, at, 32);
    Ok((bytes[0], bytes[31]))
}

#[test]
fn a_socket_hears_of_the_next_message() {
    let (mut rig, queue, socket) = begun();
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 7), Some(0));
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 8), Some(error(EBUSY)));
    assert_eq!(told(&mut rig, socket), Err(error(EAGAIN)));
    let thread = rig.thread();
    let entry = rig.put(&[socket as u32, POLLIN].map(u32::to_le_bytes).concat());
    assert_eq!(rig.try_by(thread, nr::__NR_poll, &[entry, 1, u64::MAX]), None);
    send(&mut rig, queue);
    assert_eq!(rig.answer(thread), Some(1));
    assert_eq!(told(&mut rig, socket), Ok((7, WOKEN_UP)));
    // Once, and of one that comes when there is none.
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 9), Some(0));
    send(&mut rig, queue);
    assert_eq!(told(&mut rig, socket), Err(error(EAGAIN)));
    receive(&mut rig, queue);
    receive(&mut rig, queue);
    send(&mut rig, queue);
    assert_eq!((told(&mut rig, socket), told(&mut rig, socket)), (Ok((9, WOKEN_UP)), Err(error(EAGAIN))));
}

#[test]
fn a_socket_hears_that_there_is_no_notice_any_more() {
    let (mut rig, queue, socket) = begun();
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 1), Some(0));
    assert_eq!(rig.call(nr::__NR_mq_notify, &[queue, 0]), 0);
    assert_eq!(told(&mut rig, socket), Ok((1, REMOVED)));
    let child = rig.fork();
    assert_eq!(ask(&mut rig, child, queue, socket, 2), Some(0));
    assert_eq!(rig.call(nr::__NR_mq_notify, &[queue, 0]), 0, "it is another process's");
    assert_eq!(told(&mut rig, socket), Err(error(EAGAIN)));
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[0]), None);
    assert_eq!(told(&mut rig, socket), Ok((2, REMOVED)));
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 3), Some(0));
    assert_eq!(rig.call(nr::__NR_close, &[queue]), 0);
    assert_eq!(told(&mut rig, socket), Ok((3, REMOVED)));
}

#[test]
fn nobody_hears_at_a_socket_that_is_closed() {
    let (mut rig, queue, socket_before) = begun();
    assert_eq!(ask(&mut rig, FIRST, queue, socket_before, 1), Some(0));
    assert_eq!(rig.call(nr::__NR_close, &[socket_before]), 0);
    let socket = socket(&mut rig);
    assert_eq!(socket, socket_before);
    send(&mut rig, queue);
    assert_eq!(told(&mut rig, socket), Err(error(EAGAIN)));
    receive(&mut rig, queue);
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 2), Some(0), "nobody else has asked");
}

/// The message has its room when somebody asks, so who asks waits while there is none.
#[test]
fn a_socket_without_room_is_waited_for() {
    let (mut rig, queue, socket) = begun();
    let thread = rig.thread();
    assert_eq!(rig.set_option(socket, SOL_SOCKET, SO_RCVBUF, 0), 0);
    let mut count = 0;
    while ask(&mut rig, thread, queue, socket, 1) == Some(0) {
        assert_eq!(rig.call(nr::__NR_mq_notify, &[queue, 0]), 0);
        count += 1;
        assert!(count < 100, "no end");
    }
    assert!(count > 1);
    assert_eq!(rig.answer(thread), None);
    assert_eq!(told(&mut rig, socket), Ok((1, REMOVED)));
    assert_eq!(rig.answer(thread), Some(0));
    send(&mut rig, queue);
    for _ in 1..count {
        assert_eq!(told(&mut rig, socket), Ok((1, REMOVED)));
    }
    assert_eq!((told(&mut rig, socket), told(&mut rig, socket)), (Ok((1, WOKEN_UP)), Err(error(EAGAIN))));
}

#[test]
fn errors_come_in_order() {
    let (mut rig, queue, socket) = begun();
    let stream = rig.call(nr::__NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]) as u64;
    let cookie = rig.put(&[0; 32]);
    for (fd, words, expected) in [
        (99, [8, u64::from(SIGEV_THREAD_ID) << 32], EINVAL),
        (99, [8, 65], EINVAL),
        (99, [8, THREAD | 99], EFAULT),
        (99, [cookie, THREAD | 99], EBADF),
        (99, [cookie, THREAD | u64::from(u32::MAX)], EBADF),
        (99, [cookie, THREAD | queue], ENOTSOCK),
        (99, [cookie, THREAD | stream], EINVAL),
        (99, [cookie, THREAD | socket], EBADF),
        (socket, [cookie, THREAD | socket], EBADF),
    ] {
        let event = rig.room(64);
        rig.system.write_words(FIRST, event, &words).unwrap();
        assert_eq!(rig.call(nr::__NR_mq_notify, &[fd, event]), error(expected), "{fd}, {words:x?}");
    }
    assert_eq!(rig.call(nr::__NR_mq_notify, &[queue, 8]), error(EFAULT));
    assert_eq!(ask(&mut rig, FIRST, queue, socket, 1), Some(0), "nothing is left of them");
}
