//! Sockets with names as programs see them. What is expected was asked of Linux.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{
    EADDRINUSE, EAGAIN, ECONNREFUSED, ECONNRESET, EINVAL, EISCONN, EMFILE, ENOENT, ENOTCONN, ENXIO,
    EOPNOTSUPP, EPERM, EPROTOTYPE, Errno,
};
use linux_raw_sys::general::{self as nr, O_NONBLOCK};
use linux_raw_sys::ioctl::FIONREAD;
use linux_raw_sys::net::*;
use std::vec::Vec;

const STREAM: u32 = SOCK_STREAM;
const DATAGRAM: u32 = SOCK_DGRAM;
const PACKET: u32 = SOCK_SEQPACKET;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A socket that does not wait.
fn socket(rig: &mut Rig, kind: u32) -> u64 {
    rig.call(nr::__NR_socket, &[AF_UNIX.into(), (kind | O_NONBLOCK).into(), 0]) as u64
}

fn raw(rig: &mut Rig, call: u32, fd: u64, bytes: &[u8]) -> i64 {
    let at = rig.put(bytes);
    rig.call(call, &[fd, at, bytes.len() as u64])
}

fn with_name(rig: &mut Rig, call: u32, fd: u64, name: &[u8]) -> i64 {
    raw(rig, call, fd, &[&[1, 0], name].concat())
}

fn bind(rig: &mut Rig, fd: u64, name: &[u8]) -> i64 {
    with_name(rig, nr::__NR_bind, fd, name)
}

fn connect(rig: &mut Rig, fd: u64, name: &[u8]) -> i64 {
    with_name(rig, nr::__NR_connect, fd, name)
}

fn listen(rig: &mut Rig, fd: u64, backlog: u64) -> i64 {
    rig.call(nr::__NR_listen, &[fd, backlog])
}

fn listener(rig: &mut Rig, kind: u32, name: &[u8], backlog: u64) -> u64 {
    let fd = socket(rig, kind);
    assert_eq!((bind(rig, fd, name), listen(rig, fd, backlog)), (0, 0));
    fd
}

fn accept(rig: &mut Rig, fd: u64) -> i64 {
    rig.call(nr::__NR_accept4, &[fd, 0, 0, O_NONBLOCK.into()])
}

/// Name of a socket, or of the other end: what follows the family.
fn name(rig: &mut Rig, call: u32, fd: u64) -> Result<Vec<u8>, i64> {
    let (at, len) = (rig.room(110), rig.put(&110u32.to_le_bytes()));
    let outcome = rig.call(call, &[fd, at, len]);
    let len = rig.half(len) as usize;
    if outcome < 0 { Err(outcome) } else { Ok(rig.get(FIRST, at + 2, len - 2)) }
}

fn send_to(rig: &mut Rig, fd: u64, bytes: &[u8], name: &[u8]) -> i64 {
    let (at, address) = (rig.put(bytes), rig.put(&[&[1, 0], name].concat()));
    rig.call(nr::__NR_sendto, &[fd, at, bytes.len() as u64, 0, address, 2 + name.len() as u64])
}

/// Bytes, and the name of their sender.
fn receive_from(rig: &mut Rig, fd: u64) -> Result<(Vec<u8>, Vec<u8>), i64> {
    let (at, from, len) = (rig.room(16), rig.room(110), rig.put(&110u32.to_le_bytes()));
    let count = rig.call(nr::__NR_recvfrom, &[fd, at, 16, 0, from, len]);
    if count < 0 {
        return Err(count);
    }
    let len = (rig.half(len) as usize).saturating_sub(2);
    Ok((rig.get(FIRST, at, count as usize), rig.get(FIRST, from + 2, len)))
}

fn on_path(rig: &mut Rig, call: u32, path: &str, arguments: &[u64]) -> i64 {
    let at = rig.put(&[path.as_bytes(), &[0]].concat());
    let all: Vec<u64> = [&[at], arguments].concat();
    rig.call(call, &all)
}

fn mode(rig: &mut Rig, path: &str) -> (u32, u32) {
    let to = rig.room(144);
    assert_eq!(on_path(rig, nr::__NR_stat, path, &[to]), 0);
    (rig.half(to + 24), rig.half(to + 48))
}

#[test]
fn names_are_files() {
    let mut rig = Rig::begun();
    let fd = socket(&mut rig, STREAM);
    assert_eq!(bind(&mut rig, fd, b"a.sock"), 0);
    assert_eq!(mode(&mut rig, "/tmp/a.sock"), (0o140_755, 0));
    assert_eq!(name(&mut rig, nr::__NR_getsockname, fd), Ok(b"a.sock\0".to_vec()));
    let other = socket(&mut rig, STREAM);
    rig.open("/tmp/plain");
    for (call, path, expected) in [
        (nr::__NR_bind, "a.sock", EADDRINUSE),
        (nr::__NR_bind, "none/x", ENOENT),
        (nr::__NR_connect, "a.sock", ECONNREFUSED),
        (nr::__NR_connect, "none", ENOENT),
        (nr::__NR_connect, "plain", ECONNREFUSED),
        (nr::__NR_connect, "/tmp", ECONNREFUSED),
    ] {
        assert_eq!(with_name(&mut rig, call, other, path.as_bytes()), error(expected), "{path}");
    }
    assert_eq!(rig.open("/tmp/a.sock"), error(ENXIO));
    assert_eq!(on_path(&mut rig, nr::__NR_truncate, "/tmp/a.sock", &[0]), error(EINVAL));
    for kind in [DATAGRAM, PACKET] {
        let other = socket(&mut rig, kind);
        assert_eq!(connect(&mut rig, other, b"a.sock"), error(EPROTOTYPE));
    }
    assert_eq!(listen(&mut rig, fd, 5), 0);
    // It is found where it was moved to, and by a link.
    let to = rig.put(b"/tmp/l.sock\0");
    assert_eq!(on_path(&mut rig, nr::__NR_rename, "/tmp/a.sock", &[to]), 0);
    assert_eq!(connect(&mut rig, other, b"a.sock"), error(ENOENT));
    assert_eq!(connect(&mut rig, other, b"l.sock"), 0);
    assert_eq!(name(&mut rig, nr::__NR_getpeername, other), Ok(b"a.sock\0".to_vec()));
    let to = rig.put(b"/tmp/a.sock\0");
    assert_eq!(on_path(&mut rig, nr::__NR_symlink, "l.sock", &[to]), 0);
    let third = socket(&mut rig, STREAM);
    assert_eq!(connect(&mut rig, third, b"/tmp/a.sock"), 0);
    // The name stays when the socket is closed, until somebody removes it.
    rig.call(nr::__NR_close, &[fd]);
    let new = socket(&mut rig, STREAM);
    assert_eq!(connect(&mut rig, new, b"l.sock"), error(ECONNREFUSED));
    assert_eq!(bind(&mut rig, new, b"l.sock"), error(EADDRINUSE));
    assert_eq!(mode(&mut rig, "/tmp/l.sock").0, 0o140_755);
    assert_eq!(on_path(&mut rig, nr::__NR_unlink, "/tmp/l.sock", &[]), 0);
    assert_eq!(bind(&mut rig, new, b"l.sock"), 0);
    let before = rig.system.store.volume.open_count();
    rig.call(nr::__NR_close, &[new]);
    assert_eq!((rig.system.store.volume.open_count(), rig.system.sockets.places.len()), (before - 1, 0));
}

#[test]
fn connections_wait_to_be_accepted() {
    for kind in [STREAM, PACKET] {
        let mut rig = Rig::begun();
        let fd = socket(&mut rig, kind);
        assert_eq!((listen(&mut rig, fd, 1), accept(&mut rig, fd)), (error(EINVAL), error(EINVAL)));
        assert_eq!((bind(&mut rig, fd, b"s"), listen(&mut rig, fd, 1)), (0, 0));
        assert_eq!((rig.poll(fd), accept(&mut rig, fd)), (0, error(EAGAIN)));
        let clients = [0; 4].map(|_| socket(&mut rig, kind));
        let connected = clients.map(|client| connect(&mut rig, client, b"s"));
        assert_eq!(connected, [0, 0, error(EAGAIN), error(EAGAIN)]);
        assert_eq!([fd, clients[0], clients[3]].map(|fd| rig.poll(fd)), [0x41, 0x304, 0x314]);
        assert_eq!(rig.write(clients[0], b"early"), 5);
        let accepted = accept(&mut rig, fd) as u64;
        assert_eq!(connect(&mut rig, clients[0], b"s"), error(EISCONN));
        let names = [(nr::__NR_getsockname, accepted), (nr::__NR_getpeername, clients[0])];
        for (call, fd) in names {
            assert_eq!(name(&mut rig, call, fd), Ok(b"s\0".to_vec()));
        }
        assert_eq!(name(&mut rig, nr::__NR_getpeername, accepted), Ok(Vec::new()));
        assert_eq!(receive_from(&mut rig, accepted), Ok((b"early".to_vec(), Vec::new())));
        rig.write(accepted, b"x");
        assert_eq!(receive_from(&mut rig, clients[0]), Ok((b"x".to_vec(), b"s\0".to_vec())));
        assert_eq!(rig.write(fd, b"x"), error(ENOTCONN));
        assert_eq!(connect(&mut rig, fd, b"s"), error(EINVAL));
        assert_eq!(name(&mut rig, nr::__NR_getpeername, fd), Err(error(ENOTCONN)));
        let at = rig.room(4);
        assert_eq!(rig.call(nr::__NR_ioctl, &[fd, FIONREAD.into(), at]), error(EINVAL));
        // Those that nobody has accepted hear that nobody will.
        rig.call(nr::__NR_close, &[fd]);
        assert_eq!(rig.poll(clients[1]), 0x235d);
        assert_eq!([0; 2].map(|_| rig.read(clients[1], 1)), [Err(error(ECONNRESET)), Ok(Vec::new())]);
        assert_eq!(rig.write(clients[0], b"x"), 1);

        // A client that has gone before it was accepted.
        let fd = listener(&mut rig, kind, b"\0m", 5);
        let client = socket(&mut rig, kind);
        connect(&mut rig, client, b"\0m");
        rig.write(client, b"zz");
        rig.call(nr::__NR_close, &[client]);
        let accepted = accept(&mut rig, fd) as u64;
        assert_eq!([0; 2].map(|_| rig.read(accepted, 9)), [Ok(b"zz".to_vec()), Ok(Vec::new())]);
        assert_eq!(rig.poll(accepted), 0x2355);
        rig.call(nr::__NR_shutdown, &[fd, SHUT_RD.into()]);
        assert_eq!((rig.poll(fd), accept(&mut rig, fd)), (0x2041, error(EINVAL)));
        let client = socket(&mut rig, kind);
        assert_eq!(connect(&mut rig, client, b"\0m"), error(ECONNREFUSED));
    }
}

#[test]
fn both_sides_wait() {
    let mut rig = Rig::begun();
    let fd = listener(&mut rig, STREAM, b"\0w", 0);
    rig.call(nr::__NR_fcntl, &[fd, nr::F_SETFL.into(), 0]);
    let thread = rig.thread();
    assert_eq!(rig.try_by(thread, nr::__NR_accept, &[fd, 0, 0]), None);
    let client = socket(&mut rig, STREAM);
    assert_eq!(connect(&mut rig, client, b"\0w"), 0);
    assert!(rig.answer(thread).is_some_and(|accepted| accepted > client as i64));
    let [second, third] = [0; 2].map(|_| socket(&mut rig, STREAM));
    assert_eq!(connect(&mut rig, second, b"\0w"), 0);
    rig.call(nr::__NR_fcntl, &[third, nr::F_SETFL.into(), 0]);
    let at = rig.put(b"\x01\0\0w");
    assert_eq!(rig.try_by(thread, nr::__NR_connect, &[third, at, 4]), None);
    assert!(accept(&mut rig, fd) > 0);
    assert_eq!(rig.answer(thread), Some(0));
    // A process that may have no more descriptors leaves the connection where it is.
    let limit = rig.put(&[8u64, 8].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]), 0);
    assert_eq!(accept(&mut rig, fd), error(EMFILE));
    assert_eq!(rig.poll(fd), 0x41);
}

#[test]
fn names_that_are_no_paths() {
    let mut rig = Rig::begun();
    let fd = listener(&mut rig, STREAM, b"\0abc\0d", 5);
    let [client, other] = [0; 2].map(|_| socket(&mut rig, STREAM));
    assert_eq!(bind(&mut rig, client, b"\0abc\0d"), error(EADDRINUSE));
    assert_eq!(connect(&mut rig, client, b"\0abc\0"), error(ECONNREFUSED));
    assert_eq!(connect(&mut rig, client, b"\0abc\0d"), 0);
    assert_eq!(name(&mut rig, nr::__NR_getpeername, client), Ok(b"\0abc\0d".to_vec()));
    let accepted = accept(&mut rig, fd) as u64;
    rig.call(nr::__NR_close, &[accepted]);
    assert_eq!(connect(&mut rig, other, b"\0abc\0d"), 0);
    rig.call(nr::__NR_close, &[fd]);
    let third = socket(&mut rig, STREAM);
    assert_eq!(connect(&mut rig, third, b"\0abc\0d"), error(ECONNREFUSED));
    // A family alone is a name that is chosen.
    assert_eq!(bind(&mut rig, third, b""), 0);
    assert_eq!(name(&mut rig, nr::__NR_getsockname, third), Ok(b"\x0000001".to_vec()));
    assert_eq!((bind(&mut rig, third, b""), bind(&mut rig, third, b"\0x")), (0, error(EINVAL)));
    let fresh = socket(&mut rig, STREAM);
    for bytes in [&b"\x01"[..], b"\x02\0xx", &[1; 111]] {
        assert_eq!(raw(&mut rig, nr::__NR_bind, fresh, bytes), error(EINVAL));
    }
    for bytes in [&b"\x02\0xx"[..], b"\x01\0", b"\0\0"] {
        assert_eq!(raw(&mut rig, nr::__NR_connect, fresh, bytes), error(EINVAL));
    }
}

#[test]
fn datagrams_have_senders() {
    let mut rig = Rig::begun();
    let [fd, other, third] = [0; 3].map(|_| socket(&mut rig, DATAGRAM));
    assert_eq!(bind(&mut rig, fd, b"d.sock"), 0);
    assert_eq!((listen(&mut rig, fd, 1), accept(&mut rig, fd)), (error(EOPNOTSUPP), error(EOPNOTSUPP)));
    assert_eq!(send_to(&mut rig, other, b"hi", b"d.sock"), 2);
    assert_eq!(receive_from(&mut rig, fd), Ok((b"hi".to_vec(), Vec::new())));
    bind(&mut rig, other, b"\0e");
    send_to(&mut rig, other, b"hi", b"d.sock");
    assert_eq!(receive_from(&mut rig, fd), Ok((b"hi".to_vec(), b"\0e".to_vec())));
    assert_eq!(send_to(&mut rig, fd, b"yo", b"\0e"), 2);
    assert_eq!(receive_from(&mut rig, other), Ok((b"yo".to_vec(), b"d.sock\0".to_vec())));
    assert_eq!((connect(&mut rig, other, b"d.sock"), rig.write(other, b"1")), (0, 1));
    assert_eq!(name(&mut rig, nr::__NR_getpeername, other), Ok(b"d.sock\0".to_vec()));
    assert_eq!(connect(&mut rig, fd, b"\0e"), 0);
    assert_eq!(send_to(&mut rig, third, b"x", b"d.sock"), error(EPERM));
    assert_eq!(connect(&mut rig, third, b"d.sock"), error(EPERM));
    assert_eq!(raw(&mut rig, nr::__NR_connect, other, &[0, 0]), 0);
    assert_eq!(name(&mut rig, nr::__NR_getpeername, other), Err(error(ENOTCONN)));
    assert_eq!(rig.write(other, b"x"), error(ENOTCONN));
    let itself = socket(&mut rig, DATAGRAM);
    assert_eq!((bind(&mut rig, itself, b"\0w"), connect(&mut rig, itself, b"\0w")), (0, 0));
    assert_eq!(rig.write(itself, b"me"), 2);
    assert_eq!(receive_from(&mut rig, itself), Ok((b"me".to_vec(), b"\0w".to_vec())));
    rig.call(nr::__NR_close, &[itself]);
    assert_eq!(rig.system.sockets.traffic.bytes(), 768);
}

#[test]
fn few_datagrams_of_strangers_fit() {
    let mut rig = Rig::begun();
    let [fd, other] = [0; 2].map(|_| socket(&mut rig, DATAGRAM));
    bind(&mut rig, fd, b"q.sock");
    connect(&mut rig, other, b"q.sock");
    let fits = (0..).find(|_| rig.write(other, b"x") != 1).unwrap();
    assert_eq!((fits, rig.write(other, b"x"), rig.poll(other)), (11, error(EAGAIN), 0));
    let list = rig.call(nr::__NR_epoll_create1, &[0]) as u64;
    let event = rig.put(&[&(nr::EPOLLOUT | nr::EPOLLET).to_le_bytes()[..], &[0; 8]].concat());
    assert_eq!(rig.call(nr::__NR_epoll_ctl, &[list, nr::EPOLL_CTL_ADD.into(), other, event]), 0);
    let at = rig.room(12);
    assert_eq!(rig.call(nr::__NR_epoll_wait, &[list, at, 1, 0]), 0);
    // A thread waits for room, and so does the list.
    let thread = rig.thread();
    rig.call(nr::__NR_fcntl, &[other, nr::F_SETFL.into(), 0]);
    let bytes = rig.put(b"more");
    assert_eq!(rig.try_by(thread, nr::__NR_write, &[other, bytes, 4]), None);
    rig.read(fd, 1).unwrap();
    assert_eq!((rig.answer(thread), rig.poll(other)), (Some(4), 0));
    rig.read(fd, 1).unwrap();
    assert_eq!(rig.poll(other), 0x304);
    assert_eq!(rig.call(nr::__NR_epoll_wait, &[list, at, 1, 0]), 1);
    rig.call(nr::__NR_close, &[fd]);
    assert_eq!((rig.poll(other), rig.write(other, b"x")), (0x304, error(ECONNREFUSED)));
    assert_eq!(rig.write(other, b"x"), error(ENOTCONN));
    assert_eq!(send_to(&mut rig, other, b"x", b"q.sock"), error(ECONNREFUSED));
    let stream = listener(&mut rig, STREAM, b"l.sock", 1);
    assert_eq!(send_to(&mut rig, other, b"x", b"l.sock"), error(EPROTOTYPE));
    assert_eq!(rig.poll(stream), 0);
}
