//! Sockets of netlink as programs see them, over a network in memory: what C libraries and `ip` ask for, and how they ask for it.

mod answers;
mod harm;

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{
    EADDRINUSE, EAGAIN, EINVAL, EMSGSIZE, ENOBUFS, ENODATA, ENOPROTOOPT, ENOTTY, EOPNOTSUPP, EPERM,
    EPROTONOSUPPORT, ESOCKTNOSUPPORT, Errno,
};
use crate::netlink::message::{Message, To, half, requests, word};
use crate::network::loopback::Loopback;
use crate::network::{Below, ITSELF, Presence};
use crate::open::Object;
use linux_raw_sys::general::{self as nr, O_NONBLOCK};
use linux_raw_sys::ioctl::FIONREAD;
use linux_raw_sys::net::*;
use linux_raw_sys::netlink::{
    NETLINK_ADD_MEMBERSHIP, NETLINK_CAP_ACK, NETLINK_DROP_MEMBERSHIP, NETLINK_EXT_ACK,
    NETLINK_GET_STRICT_CHK, NETLINK_LIST_MEMBERSHIPS, NETLINK_PKTINFO, NLM_F_ACK, NLM_F_DUMP,
    NLM_F_DUMP_FILTERED, NLM_F_MULTI, NLM_F_REQUEST,
};
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Kinds of messages.
const DONE: u16 = 3;
const FAILED: u16 = 2;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;

/// Flags of a request for a list.
const ALL: u32 = NLM_F_REQUEST | NLM_F_DUMP;

/// Address of the kernel.
const KERNEL: [u8; 12] = [16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A request with a body.
fn request(kind: u16, flags: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut message = Message::new(kind, flags, To { sequence, port: 0 });
    message.put(body);
    message.into_bytes()
}

/// Messages that were received together. Nothing is left behind the last one.
fn split(datagram: &[u8]) -> Vec<Vec<u8>> {
    let all: Vec<Vec<u8>> = requests(datagram).map(|message| message.whole.to_vec()).collect();
    let len: usize = all.iter().map(|message| message.len().next_multiple_of(4)).sum();
    assert_eq!(len, datagram.len(), "{datagram:?}");
    all
}

/// Value of an attribute of a message, behind a structure.
fn attribute(message: &[u8], structure: usize, kind: u16) -> Option<Vec<u8>> {
    requests(message).next().unwrap().attribute(structure, kind).map(<[u8]>::to_vec)
}

/// A sandbox with a network.
struct Net {
    rig: Rig,
    network: Rc<Loopback>,
    sequence: u32,
}

impl Net {
    fn begun() -> Net {
        let mut rig = Rig::begun();
        let network = Rc::new(Loopback::default());
        rig.system.sockets.network = Below(network.clone());
        Net { rig, network, sequence: 0 }
    }

    fn call(&mut self, number: u32, arguments: &[u64]) -> i64 {
        self.rig.call(number, arguments)
    }

    fn try_socket(&mut self, kind: u32, protocol: u32) -> i64 {
        self.call(nr::__NR_socket, &[AF_NETLINK.into(), kind.into(), protocol.into()])
    }

    fn socket(&mut self) -> u64 {
        let fd = self.try_socket(SOCK_RAW | O_NONBLOCK, 0);
        assert!(fd >= 0, "{fd}");
        fd as u64
    }

    /// A call with an address.
    fn at(&mut self, call: u32, fd: u64, port: u32, groups: u32) -> i64 {
        let bytes = crate::netlink::address_bytes(port, groups);
        let at = self.rig.put(&bytes);
        self.call(call, &[fd, at, bytes.len() as u64])
    }

    /// Port and groups of a socket.
    fn name(&mut self, fd: u64) -> (u32, u32) {
        let (at, len) = (self.rig.room(16), self.rig.put(&16u32.to_le_bytes()));
        assert_eq!(self.call(nr::__NR_getsockname, &[fd, at, len]), 0);
        assert_eq!(self.rig.half(len), 12);
        crate::netlink::parse(&self.rig.get(FIRST, at, 12)).unwrap()
    }

    fn send(&mut self, fd: u64, bytes: &[u8]) -> i64 {
        let before = self.rig.free;
        let (at, to) = (self.rig.put(bytes), self.rig.put(&KERNEL));
        let outcome = self.call(nr::__NR_sendto, &[fd, at, bytes.len() as u64, 0, to, 12]);
        self.rig.free = before;
        outcome
    }

    fn receive(&mut self, fd: u64) -> Result<Vec<u8>, i64> {
        let before = self.rig.free;
        let at = self.rig.room(8192);
        let count = self.call(nr::__NR_recvfrom, &[fd, at, 8192]);
        self.rig.free = before;
        if count < 0 { Err(count) } else { Ok(self.rig.get(FIRST, at, count as usize)) }
    }

    /// Sends a request for a list. Its messages, which all say for whom they are, without its end.
    fn list(&mut self, fd: u64, kind: u16, body: &[u8]) -> Vec<Vec<u8>> {
        self.sequence += 1;
        let sent = request(kind, ALL, self.sequence, body);
        assert_eq!(self.send(fd, &sent), sent.len() as i64);
        let port = self.name(fd).0;
        let mut all = Vec::new();
        loop {
            for message in split(&self.receive(fd).unwrap()) {
                assert_eq!([8, 12].map(|at| word(&message, at)), [self.sequence, port]);
                assert_ne!(u32::from(half(&message, 6)) & NLM_F_MULTI, 0);
                if half(&message, 4) == DONE {
                    assert_eq!((message.len(), word(&message, 16)), (20, 0));
                    assert_eq!(self.receive(fd), Err(error(EAGAIN)));
                    return all;
                }
                all.push(message);
            }
        }
    }

    /// Sends a request. The only message that comes back.
    fn ask(&mut self, fd: u64, kind: u16, flags: u32, body: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let sent = request(kind, NLM_F_REQUEST | flags, self.sequence, body);
        assert_eq!(self.send(fd, &sent), sent.len() as i64);
        let [message] = <[Vec<u8>; 1]>::try_from(split(&self.receive(fd).unwrap())).unwrap();
        assert_eq!(word(&message, 8), self.sequence);
        assert_eq!(self.receive(fd), Err(error(EAGAIN)));
        message
    }

    /// Error that a request gets: 0, if it is acknowledged.
    fn refusal(&mut self, fd: u64, kind: u16, flags: u32, body: &[u8]) -> i64 {
        let message = self.ask(fd, kind, flags, body);
        assert_eq!(half(&message, 4), FAILED, "{message:?}");
        i64::from(word(&message, 16).cast_signed())
    }

    fn option(&mut self, fd: u64, level: u32, name: u32) -> Result<u32, i64> {
        self.rig.option(fd, level, name)
    }

    fn set(&mut self, fd: u64, level: u32, name: u32, value: u32) -> i64 {
        self.rig.set_option(fd, level, name, value)
    }
}

#[test]
fn kinds_of_sockets() {
    let mut net = Net::begun();
    for (kind, protocol, expected) in [
        (SOCK_RAW, 0, None),
        (SOCK_DGRAM, 0, None),
        (SOCK_RAW | nr::O_CLOEXEC, 0, None),
        (SOCK_STREAM, 0, Some(ESOCKTNOSUPPORT)),
        (SOCK_SEQPACKET, 0, Some(ESOCKTNOSUPPORT)),
        (0, 0, Some(EINVAL)),
        (SOCK_RAW | 1 << 20, 0, Some(EINVAL)),
        (SOCK_RAW, 4, Some(EPROTONOSUPPORT)),
        (SOCK_RAW, 15, Some(EPROTONOSUPPORT)),
        (SOCK_RAW, 16, Some(EPROTONOSUPPORT)),
        (SOCK_DGRAM, u32::MAX, Some(EPROTONOSUPPORT)),
    ] {
        assert_eq!(net.try_socket(kind, protocol).min(0), expected.map_or(0, error), "{kind} {protocol}");
    }
    let pair = [AF_NETLINK.into(), SOCK_RAW.into(), 0, 0];
    assert_eq!(net.call(nr::__NR_socketpair, &pair), error(EOPNOTSUPP));
    let fd = net.socket();
    for (call, argument) in [(nr::__NR_listen, 1), (nr::__NR_accept, 0), (nr::__NR_shutdown, 2)] {
        assert_eq!(net.call(call, &[fd, argument, 0]), error(EOPNOTSUPP), "{call}");
    }
    let at = net.rig.room(144);
    assert_eq!(net.call(nr::__NR_ioctl, &[fd, FIONREAD.into(), at]), error(ENOTTY));
    assert_eq!(net.call(nr::__NR_fstat, &[fd, at]), 0);
    assert_eq!(net.rig.half(at + 24), 0o140_777);
    assert!(net.rig.open(&format!("/proc/self/fd/{fd}")) < 0);
    let link = net.rig.put(format!("/proc/self/fd/{fd}\0").as_bytes());
    let len = net.call(nr::__NR_readlink, &[link, at, 64]) as usize;
    assert!(net.rig.get(FIRST, at, len).starts_with(b"socket:["));
}

#[test]
fn sockets_have_ports() {
    let mut net = Net::begun();
    let [one, two, three] = [(); 3].map(|()| net.socket());
    assert_eq!(net.name(one), (0, 0));
    assert_eq!((net.at(nr::__NR_bind, one, 0, 0), net.name(one)), (0, (FIRST, 0)));
    // The number of the process is taken by now.
    assert_eq!((net.at(nr::__NR_bind, two, 0, 0x11), net.name(two)), (0, (0xffff_f000, 0x11)));
    assert_eq!(net.at(nr::__NR_bind, one, 7, 0), error(EINVAL));
    assert_eq!((net.at(nr::__NR_bind, one, FIRST, 1), net.name(one)), (0, (FIRST, 1)));
    assert_eq!(net.at(nr::__NR_bind, three, FIRST, 0), error(EADDRINUSE));
    // One that sends or is connected has one, too.
    let sent = request(GET_LINK, ALL, 1, &[0; 4]);
    assert_eq!((net.rig.write(three, &sent), net.name(three)), (20, (0xffff_efff, 0)));
    net.call(nr::__NR_close, &[one]);
    let one = net.socket();
    assert_eq!((net.at(nr::__NR_connect, one, 0, 0), net.name(one)), (0, (FIRST, 0)));
    assert_eq!(net.at(nr::__NR_connect, one, 9, 0), error(EPERM));
    assert_eq!(net.at(nr::__NR_connect, one, 0, 1), error(EPERM));
    let (at, len) = (net.rig.put(&[0; 12]), net.rig.put(&12u32.to_le_bytes()));
    assert_eq!(net.call(nr::__NR_connect, &[one, at, 2]), 0);
    for call in [nr::__NR_bind, nr::__NR_connect] {
        // Of no family, or too short, or too long.
        let bytes = net.rig.put(&[&[2, 0][..], &KERNEL[2..]].concat());
        assert_eq!(net.call(call, &[one, bytes, 12]), error(EINVAL));
        let bytes = net.rig.put(&KERNEL);
        for len in [0, 1, 11, 129, u64::MAX] {
            assert_eq!(net.call(call, &[one, bytes, len]), error(EINVAL), "{len}");
        }
    }
    assert_eq!(net.call(nr::__NR_getpeername, &[one, at, len]), 0);
    assert_eq!((net.rig.get(FIRST, at, 12), net.rig.half(len)), (KERNEL.to_vec(), 12));
}

#[test]
fn messages_that_are_not_sent() {
    let mut net = Net::begun();
    let fd = net.socket();
    let sent = request(GET_LINK, ALL, 1, &[0; 4]);
    let at = net.rig.put(&sent);
    assert_eq!(net.call(nr::__NR_sendto, &[fd, at, 0]), error(ENODATA));
    assert_eq!(net.call(nr::__NR_sendto, &[fd, at, 20, MSG_OOB.into()]), error(EOPNOTSUPP));
    assert_eq!(net.call(nr::__NR_sendto, &[fd, u64::MAX - 8, 20]), error(crate::errno::EFAULT));
    for (port, groups, len, expected) in
        [(1, 0, 12, EPERM), (0, 1, 12, EPERM), (0, 0, 11, EINVAL), (0, 0, 2, EINVAL)]
    {
        let to = net.rig.put(&crate::netlink::address_bytes(port, groups));
        assert_eq!(net.call(nr::__NR_sendto, &[fd, at, 20, 0, to, len]), error(expected), "{port} {len}");
    }
    let size = net.option(fd, SOL_SOCKET, SO_SNDBUF).unwrap();
    assert_eq!(net.call(nr::__NR_sendto, &[fd, at, u64::from(size) - 31]), error(EMSGSIZE));
    assert_eq!(net.receive(fd), Err(error(EAGAIN)));
    assert_eq!((net.call(nr::__NR_sendto, &[fd, at, 20]), net.receive(fd).is_ok()), (20, true));
}

/// Looks how long a message is before it makes room for it, as `ip` does.
#[test]
fn messages_are_looked_at_before() {
    let mut net = Net::begun();
    let fd = net.socket();
    assert_eq!(net.rig.poll(fd), 0x304);
    let sent = request(GET_LINK, ALL, 1, &[0; 16]);
    assert_eq!(net.send(fd, &sent), 32);
    assert_eq!(net.rig.poll(fd), 0x345);
    let (name, control) = (net.rig.put(&[9; 16]), net.rig.room(64));
    let piece = net.rig.put(&[0u64, 0].map(u64::to_le_bytes).concat());
    let header = net.rig.put(&[name, 16, piece, 1, control, 64, 0].map(u64::to_le_bytes).concat());
    let len = net.call(nr::__NR_recvmsg, &[fd, header, (MSG_PEEK | MSG_TRUNC).into()]);
    assert_eq!([8, 40, 48].map(|at| net.rig.half(header + at)), [12, 0, MSG_TRUNC]);
    assert_eq!(net.rig.get(FIRST, name, 12), KERNEL);
    let whole = net.receive(fd).unwrap();
    assert_eq!(whole.len() as i64, len);
    assert_eq!(net.rig.read(fd, 100).map(|done| done.len()), Ok(20));
    // A message without room is lost.
    assert_eq!(net.send(fd, &sent), 32);
    let at = net.rig.room(64);
    assert_eq!(net.call(nr::__NR_recvfrom, &[fd, at, 20]), 20);
    assert_eq!(net.rig.get(FIRST, at, 20), whole[..20]);
    assert_eq!(net.receive(fd).map(|done| done.len()), Ok(20));
    // Beside it is what was asked for: a group, and who the kernel is.
    assert_eq!(net.set(fd, SOL_NETLINK, NETLINK_PKTINFO, 1), 0);
    assert_eq!(net.set(fd, SOL_SOCKET, SO_PASSCRED, 1), 0);
    assert_eq!(net.send(fd, &sent), 32);
    let header = net.rig.put(&[name, 16, piece, 1, control, 64, 0].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_recvmsg, &[fd, header, 0]), 0);
    assert_eq!([40, 48].map(|at| net.rig.half(header + at)), [24 + 32, MSG_TRUNC]);
    let words = net.rig.get(FIRST, control, 56);
    assert_eq!([0, 8, 12, 16].map(|at| word(&words, at)), [20, SOL_NETLINK, NETLINK_PKTINFO, 0]);
    assert_eq!([24, 32, 36].map(|at| word(&words, at)), [28, SOL_SOCKET, SCM_CREDENTIALS]);
    assert_eq!(words[40..52], [0; 12]);
}

#[test]
fn threads_wait_for_answers() {
    let mut net = Net::begun();
    let fd = net.try_socket(SOCK_RAW, 0) as u64;
    let list = net.call(nr::__NR_epoll_create1, &[0]) as u64;
    let event = net.rig.put(&[&nr::EPOLLIN.to_le_bytes()[..], &5u64.to_le_bytes()].concat());
    assert_eq!(net.call(nr::__NR_epoll_ctl, &[list, nr::EPOLL_CTL_ADD.into(), fd, event]), 0);
    let [reads, waits] = [net.rig.thread(), net.rig.thread()];
    let (at, found) = (net.rig.room(4096), net.rig.room(12));
    assert_eq!(net.rig.try_by(reads, nr::__NR_recvfrom, &[fd, at, 4096]), None);
    assert_eq!(net.rig.try_by(waits, nr::__NR_epoll_wait, &[list, found, 1, u64::MAX]), None);
    let sent = request(GET_ADDRESS, ALL, 1, &[0; 8]);
    assert_eq!(net.send(fd, &sent), 24);
    assert!(net.rig.answer(reads).is_some_and(|len| len > 100));
    assert_eq!((net.rig.answer(waits), net.rig.half(found)), (Some(1), nr::EPOLLIN));
    assert_eq!(net.receive(fd).map(|done| done.len()), Ok(20));
    // A limit of time ends a wait.
    let limit = net.rig.put(&[0u64, 1000].map(u64::to_le_bytes).concat());
    let name = SO_RCVTIMEO_OLD.into();
    assert_eq!(net.call(nr::__NR_setsockopt, &[fd, SOL_SOCKET.into(), name, limit, 16]), 0);
    assert_eq!(net.rig.try_by(reads, nr::__NR_read, &[fd, at, 4096]), None);
    net.rig.pass(2_000_000);
    assert_eq!(net.rig.answer(reads), Some(error(EAGAIN)));
}

#[test]
fn options_are_kept() {
    let mut net = Net::begun();
    let fd = net.socket();
    for (name, expected) in [
        (SO_TYPE, SOCK_RAW),
        (SO_DOMAIN, 16),
        (SO_PROTOCOL, 0),
        (SO_ERROR, 0),
        (SO_SNDBUF, 212_992),
        (SO_RCVBUF, 212_992),
        (SO_PASSCRED, 0),
        (SO_ACCEPTCONN, 0),
    ] {
        assert_eq!(net.option(fd, SOL_SOCKET, name), Ok(expected), "{name}");
    }
    for (name, value, expected) in [
        (SO_SNDBUF, 32_768, 65_536),
        (SO_RCVBUF, 1 << 20, 425_984),
        (SO_RCVBUF, 0, 2304),
        (SO_PASSCRED, 5, 1),
    ] {
        assert_eq!(net.set(fd, SOL_SOCKET, name, value), 0);
        assert_eq!(net.option(fd, SOL_SOCKET, name), Ok(expected), "{name}");
    }
    for name in [NETLINK_PKTINFO, 4, 5, 8, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK] {
        assert_eq!(net.option(fd, SOL_NETLINK, name), Ok(0), "{name}");
        assert_eq!(net.set(fd, SOL_NETLINK, name, 7), 0);
        assert_eq!(net.option(fd, SOL_NETLINK, name), Ok(1), "{name}");
    }
    for (level, name) in [(SOL_NETLINK, 6), (SOL_NETLINK, 13), (SOL_SOCKET, 99), (6, 1)] {
        assert_eq!(net.set(fd, level, name, 1), error(ENOPROTOOPT));
        assert_eq!(net.option(fd, level, name), Err(error(ENOPROTOOPT)));
    }
    // Groups are joined, and nobody hears anything of them.
    assert_eq!(net.at(nr::__NR_bind, fd, 0, 1), 0);
    for (name, group, expected) in [
        (NETLINK_ADD_MEMBERSHIP, 5, 0),
        (NETLINK_ADD_MEMBERSHIP, 33, 0),
        (NETLINK_DROP_MEMBERSHIP, 1, 0),
        (NETLINK_ADD_MEMBERSHIP, 0, error(EINVAL)),
        (NETLINK_ADD_MEMBERSHIP, u32::MAX, error(EINVAL)),
    ] {
        assert_eq!(net.set(fd, SOL_NETLINK, name, group), expected, "{group}");
    }
    assert_eq!(net.name(fd).1, 0x10);
    assert_eq!(net.option(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS), Ok(0x10));
    assert_eq!(net.rig.poll(fd), 0x304);
}

/// A number of netlink is told as a whole, or not at all; an option of all sockets as far as there is room.
#[test]
fn options_of_netlink_need_their_room() {
    let mut net = Net::begun();
    let fd = net.socket();
    let mut told = |level: u32, name: u32, room: u32| {
        let (to, len) = (net.rig.room(16), net.rig.put(&room.to_le_bytes()));
        let outcome = net.call(nr::__NR_getsockopt, &[fd, level.into(), name.into(), to, len]);
        (outcome, net.rig.half(len))
    };
    for name in [NETLINK_PKTINFO, NETLINK_CAP_ACK, NETLINK_EXT_ACK] {
        for room in 0..4 {
            assert_eq!(told(SOL_NETLINK, name, room), (error(EINVAL), room));
        }
        assert_eq!((told(SOL_NETLINK, name, 4), told(SOL_NETLINK, name, 9)), ((0, 4), (0, 4)));
    }
    // That there is none such comes first.
    assert_eq!(told(SOL_NETLINK, 13, 0), (error(ENOPROTOOPT), 0));
    assert_eq!(told(SOL_SOCKET, SO_TYPE, 2), (0, 2));
}

#[test]
fn answers_without_room_are_lost() {
    let mut net = Net::begun();
    let fd = net.socket();
    assert_eq!(net.set(fd, SOL_SOCKET, SO_RCVBUF, 5000), 0);
    let one = request(GET_LINK, ALL, 1, &[0; 4]);
    let many = one.repeat(100);
    assert_eq!(net.send(fd, &many), 2000);
    assert_eq!(net.rig.poll(fd), 0x34d);
    assert_eq!(net.receive(fd), Err(error(ENOBUFS)));
    let mut got = 0;
    while let Ok(datagram) = net.receive(fd) {
        split(&datagram);
        got += 1;
    }
    assert!((4..20).contains(&got) && got % 2 == 0, "{got}");
    assert_eq!(net.list(fd, GET_LINK, &[0; 4]).len(), 2);
    // It may be asked of by an option instead.
    assert_eq!(net.send(fd, &many), 2000);
    assert_eq!(
        (net.option(fd, SOL_SOCKET, SO_ERROR), net.option(fd, SOL_SOCKET, SO_ERROR)),
        (Ok(105), Ok(0))
    );
}

#[test]
fn the_first_socket_waits_for_the_network() {
    let mut net = Net::begun();
    net.network.presence.set(Presence::Unknown);
    assert_eq!(net.rig.try_by(FIRST, nr::__NR_socket, &[AF_NETLINK.into(), SOCK_RAW.into(), 0]), None);
    net.network.presence.set(Presence::Known);
    net.rig.system.network_happened(ITSELF, 0);
    assert_eq!(net.rig.answer(FIRST), Some(3));
}

/// Several requests of one message are answered in order, and several messages are sent by one call.
#[test]
fn requests_have_answers_in_order() {
    let mut net = Net::begun();
    let fd = net.socket();
    let both = [request(GET_LINK, ALL, 1, &[0; 4]), request(99, NLM_F_REQUEST, 2, &[0; 4])].concat();
    let at = net.rig.put(&both);
    let piece = net.rig.put(&[at, both.len() as u64].map(u64::to_le_bytes).concat());
    let entry = [0, 0, piece, 1, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    let entries = net.rig.put(&entry.repeat(2));
    assert_eq!(net.call(nr::__NR_sendmmsg, &[fd, entries, 2, 0]), 2);
    assert_eq!([56, 120].map(|at| net.rig.half(entries + at)), [40, 40]);
    for expected in [NEW_LINK, DONE, FAILED, NEW_LINK, DONE, FAILED] {
        assert_eq!(half(&net.receive(fd).unwrap(), 4), expected);
    }
    assert_eq!(net.receive(fd), Err(error(EAGAIN)));
}
