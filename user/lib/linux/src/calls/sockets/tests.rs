//! Sockets as programs see them. Numbers that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{
    self, EAGAIN, EBADF, ECONNREFUSED, ECONNRESET, EINTR, EINVAL, EMSGSIZE, ENOTCONN, ENOTSOCK, EPIPE,
    ETOOMANYREFS, Errno,
};
use crate::socket::{Kind, Socket};
use linux_raw_sys::general::{self as nr, O_CLOEXEC, O_NONBLOCK, SIGPIPE};
use linux_raw_sys::ioctl::{FIONREAD, TIOCOUTQ};
use linux_raw_sys::net::*;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

const STREAM: u32 = SOCK_STREAM;
const DATAGRAM: u32 = SOCK_DGRAM;
const PACKET: u32 = SOCK_SEQPACKET;
const KINDS: [u32; 3] = [STREAM, DATAGRAM, PACKET];

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn pair(rig: &mut Rig, kind: u32) -> [u64; 2] {
    rig.two(nr::__NR_socketpair, &[AF_UNIX.into(), kind.into(), 0], 3)
}

fn shut(rig: &mut Rig, fd: u64, how: u32) {
    assert_eq!(rig.call(nr::__NR_shutdown, &[fd, how.into()]), 0);
}

fn send(rig: &mut Rig, fd: u64, bytes: &[u8], flags: u32) -> i64 {
    let at = rig.put(bytes);
    rig.call(nr::__NR_sendto, &[fd, at, bytes.len() as u64, flags.into()])
}

fn receive(rig: &mut Rig, fd: u64, len: usize, flags: u32) -> Result<Vec<u8>, i64> {
    let at = rig.room(len);
    let count = rig.call(nr::__NR_recvfrom, &[fd, at, len as u64, flags.into()]);
    if count < 0 { Err(count) } else { Ok(rig.get(FIRST, at, len.min(count as usize))) }
}

fn ioctl(rig: &mut Rig, fd: u64, request: u32) -> u32 {
    let at = rig.room(4);
    assert_eq!(rig.call(nr::__NR_ioctl, &[fd, request.into(), at]), 0);
    rig.half(at)
}

fn option(rig: &mut Rig, fd: u64, name: u32) -> u32 {
    let (at, len) = (rig.room(16), rig.put(&4u32.to_le_bytes()));
    assert_eq!(rig.call(nr::__NR_getsockopt, &[fd, SOL_SOCKET.into(), name.into(), at, len]), 0);
    rig.half(at)
}

#[test]
fn bytes_have_borders_but_in_streams() {
    for (kind, queued, first, flags, second) in [
        (STREAM, 12, &b"hel"[..], 0, &b"loworld!!"[..]),
        (DATAGRAM, 5, b"hel", MSG_TRUNC, b"world!!"),
        (PACKET, 12, b"hel", MSG_TRUNC, b"world!!"),
    ] {
        let mut rig = Rig::begun();
        let [one, other] = pair(&mut rig, kind);
        assert_eq!(rig.poll(one), 0x304);
        assert_eq!((rig.write(one, b"hello"), rig.write(one, b"world!!")), (5, 7));
        assert_eq!((ioctl(&mut rig, other, FIONREAD), ioctl(&mut rig, one, TIOCOUTQ)), (queued, 1536));
        assert_eq!(rig.poll(other), 0x345);
        assert_eq!(receive(&mut rig, other, 3, MSG_PEEK), Ok(b"hel".to_vec()));
        let whole = if kind == STREAM { 3 } else { 5 };
        let at = rig.room(8);
        let peek = (MSG_PEEK | MSG_TRUNC).into();
        assert_eq!(rig.call(nr::__NR_recvfrom, &[other, at, 3, peek]), whole);
        let (header, buffer) = message(&mut rig, 3, &[], 0);
        assert_eq!(rig.call(nr::__NR_recvmsg, &[other, header, 0]), 3);
        assert_eq!((rig.get(FIRST, buffer, 3), rig.half(header + 48)), (first.to_vec(), flags));
        assert_eq!(rig.read(other, 100), Ok(second.to_vec()));
        assert_eq!(ioctl(&mut rig, one, TIOCOUTQ), 0);
        assert_eq!(send(&mut rig, one, b"", 0), 0);
        let empty = if kind == STREAM { Err(error(EAGAIN)) } else { Ok(Vec::new()) };
        assert_eq!(receive(&mut rig, other, 10, MSG_DONTWAIT), empty);
        assert_eq!(option(&mut rig, one, SO_TYPE), kind);
    }
}

/// A `struct msghdr` with one piece of memory and room for things beside it.
fn message(rig: &mut Rig, len: usize, control: &[u8], room: usize) -> (u64, u64) {
    let buffer = rig.room(len);
    let piece = rig.put(&[buffer, len as u64].map(u64::to_le_bytes).concat());
    let mut beside = control.to_vec();
    beside.resize(control.len().max(room), 0);
    let control = rig.put(&beside);
    let words = [0, 0, piece, 1, control, beside.len() as u64, 0];
    (rig.put(&words.map(u64::to_le_bytes).concat()), buffer)
}

#[test]
fn ends_that_are_shut_or_closed() {
    let (again, pipe, reset) = (Err(error(EAGAIN)), error(EPIPE), error(ECONNRESET));
    let end = Ok(Vec::new());
    for (kind, far, near, read) in
        [(STREAM, 0x2345, 0x304, &end), (DATAGRAM, 0x304, 0x304, &again), (PACKET, 0x2345, 0x304, &end)]
    {
        let mut rig = Rig::begun();
        rig.ignore(SIGPIPE);
        let [one, other] = pair(&mut rig, kind);
        shut(&mut rig, one, SHUT_WR);
        assert_eq!((rig.poll(one), rig.poll(other)), (near, far));
        assert_eq!(&receive(&mut rig, other, 10, MSG_DONTWAIT), read);
        assert_eq!((rig.write(one, b"x"), send(&mut rig, one, b"x", MSG_NOSIGNAL)), (pipe, pipe));
        assert_eq!(rig.call(nr::__NR_shutdown, &[one, 5]), error(EINVAL));

        let [one, other] = pair(&mut rig, kind);
        shut(&mut rig, other, SHUT_RD);
        assert_eq!((rig.poll(one), rig.poll(other)), (0x304, 0x2345));
        assert_eq!(rig.write(one, b"x"), pipe);

        let [one, other] = pair(&mut rig, kind);
        assert_eq!((rig.write(one, b"unread"), rig.write(other, b"tor")), (6, 3));
        rig.call(nr::__NR_close, &[other]);
        let is_datagram = kind == DATAGRAM;
        assert_eq!(rig.poll(one), if is_datagram { 0x345 } else { 0x235d });
        let told = option(&mut rig, one, SO_ERROR);
        assert_eq!(told, if is_datagram { 0 } else { ECONNRESET.0.into() });
        assert_eq!(rig.poll(one), if is_datagram { 0x345 } else { 0x2355 });
        assert_eq!(receive(&mut rig, one, 10, MSG_DONTWAIT), Ok(b"tor".to_vec()));
        assert_eq!(&receive(&mut rig, one, 10, MSG_DONTWAIT), read);
        let gone = if is_datagram { [error(ECONNREFUSED), error(ENOTCONN)] } else { [pipe; 2] };
        assert_eq!([rig.write(one, b"x"), rig.write(one, b"x")], gone);

        let [one, other] = pair(&mut rig, kind);
        rig.write(one, b"unread");
        rig.call(nr::__NR_close, &[other]);
        let first = receive(&mut rig, one, 10, MSG_DONTWAIT);
        assert_eq!(first, if is_datagram { again.clone() } else { Err(reset) });
        assert_eq!(&receive(&mut rig, one, 10, MSG_DONTWAIT), read);
    }
}

#[test]
fn a_signal_comes_with_a_broken_stream_alone() {
    for kind in KINDS {
        for (flags, is_ended) in [(0, kind == STREAM), (MSG_NOSIGNAL, false)] {
            let mut rig = Rig::begun();
            let child = rig.fork();
            let [one, _] = pair(&mut rig, kind);
            let at = rig.put(b"x");
            let place = rig.room(8);
            let unix = AF_UNIX.into();
            assert_eq!(rig.call_by(child, nr::__NR_socketpair, &[unix, kind.into(), 0, place]), 0);
            let fd = u64::from(u32::from_le_bytes(rig.get(child, place, 4).try_into().unwrap()));
            rig.call_by(child, nr::__NR_shutdown, &[fd, SHUT_RDWR.into()]);
            let outcome = rig.try_by(child, nr::__NR_sendto, &[fd, at, 1, flags.into()]);
            assert_eq!(outcome, if is_ended { None } else { Some(error(EPIPE)) });
            assert_eq!(rig.system.processes[&child].ended.is_some(), is_ended);
            assert_eq!(rig.poll(one), 0x304);
        }
    }
}

#[test]
fn as_many_bytes_fit_as_in_linux() {
    for kind in KINDS {
        let mut rig = Rig::begun();
        let [one, other] = pair(&mut rig, kind | O_NONBLOCK);
        let fits = (0..).find(|_| rig.write(one, b"x") != 1).unwrap();
        assert_eq!((fits, ioctl(&mut rig, one, TIOCOUTQ)), (278, 213_504));
        assert_eq!(rig.poll(one), 0);
        let read = (0..).find(|_| rig.poll(one) != 0 || rig.read(other, 1).is_err()).unwrap();
        assert_eq!((read, rig.poll(one)), (209, 0x304));

        let [one, _] = pair(&mut rig, kind | O_NONBLOCK);
        let at = rig.room(1 << 20);
        let [whole, fits, more] = [1 << 20, 212_960, 212_961].map(|len| {
            let [fresh, _] = pair(&mut rig, kind | O_NONBLOCK);
            rig.call(nr::__NR_sendto, &[fresh, at, len])
        });
        let too_long = error(EMSGSIZE);
        match kind {
            STREAM => assert!(whole > 200_000 && whole < 400_000, "{whole}"),
            _ => assert_eq!([whole, fits, more], [too_long, 212_960, too_long]),
        }
        assert_eq!(option(&mut rig, one, SO_SNDBUF), 212_992);
        for (wanted, had) in [(1, 4608), (100_000, 200_000), (u32::MAX >> 1, 425_984)] {
            let value = rig.put(&wanted.to_le_bytes());
            let [level, name] = [SOL_SOCKET, SO_SNDBUF].map(u64::from);
            assert_eq!(rig.call(nr::__NR_setsockopt, &[one, level, name, value, 4]), 0);
            assert_eq!(option(&mut rig, one, SO_SNDBUF), had);
        }
    }
}

#[test]
fn calls_wait_and_go_on() {
    let mut rig = Rig::begun();
    let [one, other] = pair(&mut rig, STREAM);
    let thread = rig.thread();
    let at = rig.room(1 << 20);
    // A read waits for the first bytes, by `MSG_WAITALL` for all.
    assert_eq!(rig.try_by(thread, nr::__NR_read, &[other, at, 10]), None);
    rig.write(one, b"abc");
    assert_eq!((rig.answer(thread), rig.get(FIRST, at, 3)), (Some(3), b"abc".to_vec()));
    assert_eq!(rig.try_by(thread, nr::__NR_recvfrom, &[other, at, 6, MSG_WAITALL.into()]), None);
    rig.write(one, b"abc");
    assert_eq!(rig.answer(thread), None);
    rig.write(one, b"defg");
    assert_eq!((rig.answer(thread), rig.get(FIRST, at, 6)), (Some(6), b"abcdef".to_vec()));
    assert_eq!(rig.read(other, 9), Ok(b"g".to_vec()));
    // The end comes in the middle of it.
    rig.try_by(thread, nr::__NR_recvfrom, &[other, at, 6, MSG_WAITALL.into()]);
    rig.write(one, b"hi");
    shut(&mut rig, one, SHUT_WR);
    assert_eq!(rig.answer(thread), Some(2));

    // A write goes on until all of it is in.
    let [one, other] = pair(&mut rig, STREAM);
    rig.system.write(FIRST, at, &[5; 1 << 20]).unwrap();
    assert_eq!(rig.try_by(thread, nr::__NR_write, &[one, at, 1 << 20]), None);
    let mut total = 0;
    while rig.answer(thread).is_none() {
        total += rig.read(other, 50_000).unwrap().len();
    }
    while let Ok(more) = receive(&mut rig, other, 50_000, MSG_DONTWAIT) {
        assert!(more.iter().all(|byte| *byte == 5));
        total += more.len();
    }
    assert_eq!(total, 1 << 20);
    assert_eq!(rig.system.sockets.traffic.bytes(), 0);

    // An option says how long a call waits.
    let time = rig.put(&[0u64, 5000].map(u64::to_le_bytes).concat());
    let level = SOL_SOCKET.into();
    assert_eq!(rig.call(nr::__NR_setsockopt, &[other, level, SO_RCVTIMEO.into(), time, 16]), 0);
    assert_eq!(rig.try_by(thread, nr::__NR_read, &[other, at, 10]), None);
    rig.pass(4_999_999);
    assert_eq!(rig.answer(thread), None);
    rig.pass(1);
    assert_eq!(rig.answer(thread), Some(error(EAGAIN)));
}

/// Things beside a message that pass descriptors.
fn rights(fds: &[u64]) -> Vec<u8> {
    let mut bytes = (16 + 4 * fds.len() as u64).to_le_bytes().to_vec();
    bytes.extend([SOL_SOCKET, SCM_RIGHTS].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend(fds.iter().flat_map(|fd| (*fd as u32).to_le_bytes()));
    bytes
}

fn pass(rig: &mut Rig, fd: u64, fds: &[u64]) -> i64 {
    let (header, _) = message(rig, 1, &rights(fds), 0);
    rig.call(nr::__NR_sendmsg, &[fd, header, MSG_DONTWAIT.into()])
}

#[test]
fn descriptors_travel() {
    for kind in KINDS {
        let mut rig = Rig::begun();
        let [one, other] = pair(&mut rig, kind);
        let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
        assert_eq!(pass(&mut rig, one, &[writer, reader]), 1);
        for fd in [reader, writer] {
            assert_eq!(rig.call(nr::__NR_close, &[fd]), 0);
        }
        assert_eq!(rig.system.sockets.traffic.files(), 2);
        let (header, _) = message(&mut rig, 1, &[], 64);
        assert_eq!(rig.call(nr::__NR_recvmsg, &[other, header, MSG_CMSG_CLOEXEC.into()]), 1);
        assert_eq!((rig.half(header + 40), rig.half(header + 48)), (24, MSG_CMSG_CLOEXEC));
        let control = u64::from(rig.half(header + 32));
        assert_eq!(rig.get(FIRST, control, 16), rights(&[1, 2])[..16]);
        let [writer, reader] = [16, 20].map(|at| u64::from(rig.half(control + at)));
        assert_eq!((rig.write(writer, b"through"), rig.read(reader, 9)), (7, Ok(b"through".to_vec())));
        assert_eq!(rig.call(nr::__NR_fcntl, &[reader, nr::F_GETFD.into()]), 1);

        // The second has no room, and is closed, so nobody reads the pipe any more.
        assert_eq!(pass(&mut rig, one, &[writer, reader]), 1);
        rig.call(nr::__NR_close, &[reader]);
        let (header, _) = message(&mut rig, 1, &[], 20);
        assert_eq!(rig.call(nr::__NR_recvmsg, &[other, header, 0]), 1);
        assert_eq!((rig.half(header + 40), rig.half(header + 48)), (20, MSG_CTRUNC));
        assert_eq!(rig.poll(writer) & nr::POLLERR, nr::POLLERR);

        // A read leaves descriptors behind, and they are closed.
        let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
        pass(&mut rig, one, &[writer]);
        rig.call(nr::__NR_close, &[writer]);
        assert_eq!(rig.poll(reader), 0);
        assert_eq!(rig.read(other, 1), Ok(vec![0]));
        assert_eq!((rig.poll(reader), rig.system.sockets.traffic.files()), (nr::POLLHUP, 0));

        assert_eq!(pass(&mut rig, one, &[99]), error(EBADF));
        assert_eq!(pass(&mut rig, one, &[0; 254]), error(EINVAL));
        assert_eq!(rig.system.sockets.traffic.files(), 0);
    }
}

#[test]
fn descriptors_on_the_way_are_closed_with_the_queue() {
    let mut rig = Rig::begun();
    // A socket in a socket in a socket, and a pipe in the last one.
    let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
    let mut inner = writer;
    for _ in 0..100 {
        let [one, other] = pair(&mut rig, DATAGRAM);
        assert_eq!(pass(&mut rig, one, &[inner]), 1);
        rig.call(nr::__NR_close, &[one]);
        rig.call(nr::__NR_close, &[inner]);
        inner = other;
    }
    assert_eq!((rig.poll(reader), rig.system.sockets.traffic.files()), (0, 100));
    rig.call(nr::__NR_close, &[inner]);
    assert_eq!((rig.poll(reader), rig.system.sockets.traffic.files()), (nr::POLLHUP, 0));
    assert_eq!(rig.system.sockets.traffic.bytes(), 0);

    // Too many on the way are an error, and nothing is sent.
    let [one, other] = pair(&mut rig, DATAGRAM);
    let sent = (0..).find(|_| pass(&mut rig, one, &[0; 100]) != 1).unwrap();
    assert_eq!((sent, pass(&mut rig, one, &[0; 100])), (10, error(ETOOMANYREFS)));
    assert_eq!(rig.write(one, b"without"), 7);
    rig.call(nr::__NR_close, &[other]);
    assert_eq!(rig.system.sockets.traffic.files(), 0);
}

/// A lock belongs to an open file by its place in memory. Here that place is not used again, whatever the allocator likes best.
#[test]
fn locks_of_a_file_on_the_way_end_with_it() {
    let exclusive = u64::from(nr::LOCK_EX | nr::LOCK_NB);
    for kind in KINDS {
        let mut rig = Rig::begun();
        let [one, other] = pair(&mut rig, kind);
        let file = rig.open("/tmp/lock") as u64;
        assert_eq!(rig.call(nr::__NR_flock, &[file, exclusive]), 0);
        let place = Rc::downgrade(&rig.system.open_file(FIRST, file).unwrap());
        assert_eq!(pass(&mut rig, one, &[file]), 1);
        assert_eq!(rig.call(nr::__NR_close, &[file]), 0);
        let again = rig.open("/tmp/lock") as u64;
        assert_eq!(rig.call(nr::__NR_flock, &[again, exclusive]), error(EAGAIN));
        assert_eq!(rig.call(nr::__NR_close, &[other]), 0);
        assert!(place.upgrade().is_none());
        assert_eq!(rig.call(nr::__NR_flock, &[again, exclusive]), 0);
    }
}

#[test]
fn a_peek_leaves_descriptors_and_shows_copies() {
    let mut rig = Rig::begun();
    let [one, other] = pair(&mut rig, STREAM);
    let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
    pass(&mut rig, one, &[writer]);
    rig.call(nr::__NR_close, &[writer]);
    let mut copies = Vec::new();
    for flags in [MSG_PEEK, 0] {
        let (header, _) = message(&mut rig, 1, &[], 64);
        assert_eq!(rig.call(nr::__NR_recvmsg, &[other, header, flags.into()]), 1);
        let control = u64::from(rig.half(header + 32));
        copies.push(u64::from(rig.half(control + 16)));
    }
    assert_ne!(copies[0], copies[1]);
    rig.call(nr::__NR_close, &[copies[0]]);
    assert_eq!(rig.poll(reader), 0);
    rig.call(nr::__NR_close, &[copies[1]]);
    assert_eq!(rig.poll(reader), nr::POLLHUP);
}

#[test]
fn senders_are_known() {
    let mut rig = Rig::begun();
    let [one, other] = pair(&mut rig, STREAM);
    let on = rig.put(&1u32.to_le_bytes());
    rig.call(nr::__NR_setsockopt, &[other, SOL_SOCKET.into(), SO_PASSCRED.into(), on, 4]);
    let child = rig.fork();
    let at = rig.put(b"parent");
    rig.call(nr::__NR_write, &[one, at, 6]);
    rig.call_by(child, nr::__NR_write, &[one, at, 6]);
    // Bytes of different senders do not come together.
    for sender in [FIRST, child] {
        let (header, _) = message(&mut rig, 100, &[], 64);
        assert_eq!(rig.call(nr::__NR_recvmsg, &[other, header, 0]), 6);
        let control = u64::from(rig.half(header + 32));
        assert_eq!((rig.half(control + 12), rig.half(control + 16)), (SCM_CREDENTIALS, sender));
        assert_eq!(rig.half(header + 40), 32);
    }
    assert_eq!(option(&mut rig, one, SO_PEERCRED), FIRST);
}

#[test]
fn many_messages_in_one_call() {
    let mut rig = Rig::begun();
    let [one, other] = pair(&mut rig, DATAGRAM);
    let entries = |rig: &mut Rig| {
        let buffer = rig.put(b"abcdef");
        let mut bytes = Vec::new();
        for index in 0..3u64 {
            let piece = rig.put(&[buffer + index, 2 + index].map(u64::to_le_bytes).concat());
            bytes.extend([0, 0, piece, 1, 0, 0, 0, 0].map(u64::to_le_bytes).concat());
        }
        rig.put(&bytes)
    };
    let at = entries(&mut rig);
    assert_eq!(rig.call(nr::__NR_sendmmsg, &[one, at, 3, 0]), 3);
    assert_eq!([56, 120, 184].map(|entry| rig.half(at + entry)), [2, 3, 4]);
    let at = entries(&mut rig);
    assert_eq!(rig.call(nr::__NR_recvmmsg, &[other, at, 2, 0, 0]), 2);
    assert_eq!(rig.call(nr::__NR_recvmmsg, &[other, at, 3, 0x10000, 0]), 1);
    // A stream takes a part of a message, which counts as one.
    let [stream, _] = pair(&mut rig, STREAM);
    let buffer = rig.room(1 << 19);
    let piece = rig.put(&[buffer, 1 << 19].map(u64::to_le_bytes).concat());
    let large = rig.put(&[0, 0, piece, 1, 0, 0, 0, 0].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_sendmmsg, &[stream, large, 1, 0]), 1);
    assert!(rig.half(large + 56) > 200_000);
    let thread = rig.thread();
    assert_eq!(rig.try_by(thread, nr::__NR_recvmmsg, &[other, at, 2, 0, 0]), None);
    rig.write(one, b"1");
    assert_eq!(rig.answer(thread), None);
    rig.write(one, b"2");
    assert_eq!(rig.answer(thread), Some(2));
}

/// A call with a million pieces, or that looks a thousand times at a full buffer, ends with the messages that it has moved.
#[test]
fn many_messages_are_no_more_than_a_call_may_do() {
    let mut rig = Rig::begun();
    let [one, other] = pair(&mut rig, STREAM);
    let sent = rig.write(one, &vec![7; 100_000]) as u64;
    assert!(sent > 50_000);
    let buffer = rig.room(100_000);
    let entry = |pieces: u64, count: u64| [0, 0, pieces, count, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    // One piece of a byte, and a thousand of none.
    let mut pieces = vec![0; 1024 * 16];
    pieces[..16].copy_from_slice(&[buffer, 1].map(u64::to_le_bytes).concat());
    let pieces = rig.put(&pieces);
    let at = rig.put(&entry(pieces, 1024).repeat(1024));
    let peek = u64::from(MSG_PEEK);
    assert_eq!(rig.call(nr::__NR_recvmmsg, &[other, at, 1024, peek, 0]), 16);
    assert_eq!([56, 15 * 64 + 56, 16 * 64 + 56].map(|entry| rig.half(at + entry)), [1, 1, 0]);
    assert_eq!(rig.call(nr::__NR_recvmmsg, &[other, at, 3, peek, 0]), 3);
    // Few pieces, and all that is there.
    let large = rig.put(&[buffer, sent].map(u64::to_le_bytes).concat());
    let at = rig.put(&entry(large, 1).repeat(1024));
    let looks = rig.call(nr::__NR_recvmmsg, &[other, at, 1024, peek, 0]) as u64;
    assert!(looks > 1 && (looks - 1) * sent < 5 << 20, "{looks} times {sent} bytes");
    // A thousand small ones are no more than one call does.
    let small = rig.put(&[buffer, 1].map(u64::to_le_bytes).concat());
    let at = rig.put(&entry(small, 1).repeat(1024));
    assert_eq!(rig.call(nr::__NR_recvmmsg, &[other, at, 1024, 0, 0]), 1024);
    let at = rig.put(&entry(pieces, 1024).repeat(1024));
    assert_eq!(rig.call(nr::__NR_sendmmsg, &[one, at, 1024, 0]), 16);
}

#[test]
fn calls_that_make_no_sense() {
    let mut rig = Rig::begun();
    let mut socket = |family: u32, kind: u32, protocol: u64| {
        rig.call(nr::__NR_socket, &[family.into(), kind.into(), protocol])
    };
    assert_eq!(socket(AF_UNIX, 4, 0), error(errno::ESOCKTNOSUPPORT));
    assert_eq!(socket(AF_UNIX, 0x101, 0), error(EINVAL));
    assert_eq!(socket(AF_UNIX, STREAM, 7), error(errno::EPROTONOSUPPORT));
    assert_eq!(socket(99, STREAM, 0), error(errno::EAFNOSUPPORT));
    let fd = socket(AF_UNIX, STREAM | O_CLOEXEC, 1) as u64;
    let packets = socket(AF_UNIX, PACKET, 0) as u64;
    let datagrams = socket(AF_UNIX, DATAGRAM, 0) as u64;
    assert_eq!([fd, packets, datagrams].map(|fd| rig.poll(fd)), [0x314, 0x314, 0x304]);
    assert_eq!(receive(&mut rig, fd, 1, MSG_DONTWAIT), Err(error(EINVAL)));
    assert_eq!(receive(&mut rig, packets, 1, MSG_DONTWAIT), Err(error(ENOTCONN)));
    assert_eq!(receive(&mut rig, datagrams, 1, MSG_DONTWAIT), Err(error(EAGAIN)));
    for fd in [fd, packets, datagrams] {
        assert_eq!(send(&mut rig, fd, b"x", 0), error(ENOTCONN));
        assert_eq!(rig.call(nr::__NR_shutdown, &[fd, SHUT_RDWR.into()]), 0);
        assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, 0]), error(errno::ESPIPE));
    }
    assert_eq!(rig.call(nr::__NR_shutdown, &[0, 0]), error(ENOTSOCK));
    assert_eq!(rig.call(nr::__NR_sendmsg, &[0, DATA, 0]), error(ENOTSOCK));
    let (at, len) = (rig.room(8), rig.put(&4u32.to_le_bytes()));
    assert_eq!(rig.call(nr::__NR_getsockopt, &[fd, 1, 99, at, len]), error(errno::ENOPROTOOPT));
    assert_eq!(rig.call(nr::__NR_getsockopt, &[fd, 6, 1, at, len]), error(errno::EOPNOTSUPP));
    // A handler ends the wait.
    let [one, _] = pair(&mut rig, STREAM);
    let action = rig.put(&[DATA, 0, 0, 0].map(u64::to_le_bytes).concat());
    rig.call(nr::__NR_rt_sigaction, &[10, action, 0, 8]);
    let child = rig.fork();
    assert_eq!(rig.try_by(child, nr::__NR_read, &[one, DATA, 1]), None);
    rig.call(nr::__NR_kill, &[child.into(), 10]);
    assert!(rig.system.threads[&child].blocked.is_none(), "{EINTR:?}");
}

/// Connections that nobody accepts, and whose other ends are closed, are no way to fill the memory of this program.
#[test]
fn sockets_are_limited() {
    let mut rig = Rig::begun();
    let traffic = rig.system.sockets.traffic.clone();
    let make = |count| {
        let make = |_| traffic.has_room().then(|| Socket::new(1, Kind::Stream, &traffic)).flatten();
        (0..count).map_while(make).collect::<Vec<_>>()
    };
    let made = make(2000);
    assert_eq!(made.len(), 2000);
    let before = made.iter().map(Rc::strong_count).sum::<usize>();
    assert_eq!(before, 2000);
    drop(made);
    let all = make(10_000);
    assert_eq!(all.len(), 8192, "those that are gone do not count");
    let refused = rig.call(linux_raw_sys::general::__NR_socket, &[1, 1, 0]);
    assert_eq!(refused, -i64::from(crate::errno::ENFILE.0));
}
