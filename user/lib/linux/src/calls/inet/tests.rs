//! Sockets of networks as programs see them, over a network in memory.

mod beside;
mod echoes;
mod groups;
mod harm;
mod lite;
mod near;
mod options;
mod ports;
mod refusals;
mod tables;
mod waits;

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{
    EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, ECONNREFUSED, ECONNRESET,
    EDESTADDRREQ, EINPROGRESS, EINVAL, EISCONN, EMSGSIZE, ENETUNREACH, ENOTCONN, EOPNOTSUPP, EPERM, EPIPE,
    EPROTONOSUPPORT, ESOCKTNOSUPPORT, Errno,
};
use crate::inet::{Family, Inet, address_bytes, parse};
use crate::network::loopback::{Loopback, OWN, SILENT, STREAM_BYTES};
use crate::network::{Below, ITSELF, Near, Network, Presence};
use crate::open::Object;
use core::net::SocketAddr;
use linux_raw_sys::general::{self as nr, O_NONBLOCK, SIGPIPE};
use linux_raw_sys::ioctl::FIONREAD;
use linux_raw_sys::net::*;
use std::format;
use std::rc::Rc;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

const STREAM: u32 = SOCK_STREAM;
const DATAGRAM: u32 = SOCK_DGRAM;
const BRIEF: u32 = O_NONBLOCK;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A sandbox with a network.
struct Net {
    rig: Rig,
    /// The one below.
    network: Rc<Loopback>,
}

fn family_of(address: &str) -> Family {
    if address.contains("::") { Family::Six } else { Family::Four }
}

impl Net {
    /// A sandbox whose connections with itself are near.
    fn begun() -> Net {
        Net::with(|network, rig| {
            let (budget, is_due) = (&rig.system.budget, rig.system.sockets.is_due.clone());
            Rc::new(Near::with_room(network, budget, is_due, STREAM_BYTES))
        })
    }

    /// A sandbox of which all connections are below, as if their other ends were elsewhere.
    fn far() -> Net {
        Net::with(|network, _| network)
    }

    fn with(above: impl FnOnce(Rc<Loopback>, &Rig) -> Rc<dyn Network>) -> Net {
        let mut rig = Rig::begun();
        let network = Rc::new(Loopback::default());
        rig.system.sockets.network = Below(above(network.clone(), &rig));
        rig.ignore(SIGPIPE);
        Net { rig, network }
    }

    /// Tells of all that has happened.
    fn turn(&mut self) {
        for _ in 0..100 {
            let due = self.network.due();
            if due.is_empty() {
                return;
            }
            for (number, events) in due {
                self.rig.system.network_happened(number, events);
            }
        }
        panic!("it never ends");
    }

    fn call(&mut self, number: u32, arguments: &[u64]) -> i64 {
        let outcome = self.rig.call(number, arguments);
        self.turn();
        outcome
    }

    fn socket(&mut self, family: u32, kind: u32) -> u64 {
        let fd = self.call(nr::__NR_socket, &[family.into(), kind.into(), 0]);
        assert!(fd >= 0, "{fd}");
        fd as u64
    }

    fn inet(&self, fd: u64) -> Rc<Inet> {
        let open = self.rig.system.processes[&FIRST].descriptors.get(fd as u32).unwrap().open.clone();
        let Object::Inet(inet) = &open.object else { panic!("no socket") };
        inet.clone()
    }

    /// Puts an address into memory, as a socket of a family has it.
    fn address_as(&mut self, family: Family, address: &str) -> [u64; 2] {
        let bytes = address_bytes(family, address.parse().unwrap());
        [self.rig.put(&bytes), bytes.len() as u64]
    }

    fn address(&mut self, fd: u64, address: &str) -> [u64; 2] {
        let family = self.inet(fd).family;
        self.address_as(family, address)
    }

    fn bind(&mut self, fd: u64, address: &str) -> i64 {
        let [at, len] = self.address(fd, address);
        self.call(nr::__NR_bind, &[fd, at, len])
    }

    fn connect_once(&mut self, fd: u64, address: &str) -> i64 {
        let [at, len] = self.address(fd, address);
        self.call(nr::__NR_connect, &[fd, at, len])
    }

    /// Connects, and asks how that went if the call does not wait for it.
    fn connect(&mut self, fd: u64, address: &str) -> i64 {
        let begun = self.connect_once(fd, address);
        if begun != error(EINPROGRESS) {
            return begun;
        }
        let outcome = self.connect_once(fd, address);
        if outcome == error(EALREADY) { begun } else { outcome }
    }

    fn listener(&mut self, address: &str) -> u64 {
        let fd = self.socket(family_of(address).number(), STREAM | BRIEF);
        assert_eq!((self.bind(fd, address), self.call(nr::__NR_listen, &[fd, 4])), (0, 0));
        fd
    }

    fn accept(&mut self, fd: u64) -> i64 {
        self.call(nr::__NR_accept4, &[fd, 0, 0, BRIEF.into()])
    }

    /// Address of a socket, or of the other end.
    fn name(&mut self, call: u32, fd: u64) -> Result<String, i64> {
        let (at, len) = (self.rig.room(128), self.rig.put(&128u32.to_le_bytes()));
        let outcome = self.call(call, &[fd, at, len]);
        if outcome < 0 {
            return Err(outcome);
        }
        let len = self.rig.half(len) as usize;
        let bytes = self.rig.get(FIRST, at, len);
        Ok(parse(self.inet(fd).family, &bytes).unwrap().unwrap().to_string())
    }

    fn own(&mut self, fd: u64) -> String {
        self.name(nr::__NR_getsockname, fd).unwrap()
    }

    /// A connection: this end, and the other.
    fn pair(&mut self) -> [u64; 2] {
        let listener = self.listener("127.0.0.1:0");
        let at = self.own(listener);
        let one = self.socket(AF_INET, STREAM | BRIEF);
        assert_eq!(self.connect(one, &at), 0);
        let other = self.accept(listener);
        assert!(other > 0, "{other}");
        self.call(nr::__NR_close, &[listener]);
        [one, other as u64]
    }

    fn send(&mut self, fd: u64, bytes: &[u8], flags: u32) -> i64 {
        let at = self.rig.put(bytes);
        self.call(nr::__NR_sendto, &[fd, at, bytes.len() as u64, flags.into()])
    }

    fn receive(&mut self, fd: u64, len: usize, flags: u32) -> Result<Vec<u8>, i64> {
        let at = self.rig.room(len);
        let count = self.call(nr::__NR_recvfrom, &[fd, at, len as u64, flags.into()]);
        if count < 0 { Err(count) } else { Ok(self.rig.get(FIRST, at, len.min(count as usize))) }
    }

    fn send_to(&mut self, fd: u64, bytes: &[u8], to: &str) -> i64 {
        let at = self.rig.put(bytes);
        let [name, len] = self.address(fd, to);
        self.call(nr::__NR_sendto, &[fd, at, bytes.len() as u64, 0, name, len])
    }

    /// Bytes of the next datagram.
    fn receive_len(&mut self, fd: u64) -> Result<i64, i64> {
        let at = self.rig.room(2);
        let len = self.call(nr::__NR_recvfrom, &[fd, at, 2, MSG_TRUNC.into(), 0, 0]);
        if len < 0 { Err(len) } else { Ok(len) }
    }

    /// A datagram, and its sender.
    fn receive_from(&mut self, fd: u64) -> Result<(Vec<u8>, String), i64> {
        let (at, name, len) = (self.rig.room(2000), self.rig.room(128), self.rig.put(&128u32.to_le_bytes()));
        let count = self.call(nr::__NR_recvfrom, &[fd, at, 2000, 0, name, len]);
        if count < 0 {
            return Err(count);
        }
        let len = self.rig.half(len) as usize;
        let name = self.rig.get(FIRST, name, len);
        let from = parse(self.inet(fd).family, &name).unwrap().unwrap();
        Ok((self.rig.get(FIRST, at, count as usize), from.to_string()))
    }

    fn waiting(&mut self, fd: u64) -> u32 {
        let at = self.rig.room(4);
        assert_eq!(self.call(nr::__NR_ioctl, &[fd, FIONREAD.into(), at]), 0);
        self.rig.half(at)
    }

    fn poll(&mut self, fd: u64) -> u32 {
        let bits = self.rig.poll(fd);
        self.turn();
        bits
    }

    fn option(&mut self, fd: u64, level: u32, name: u32) -> Result<u32, i64> {
        let outcome = self.rig.option(fd, level, name);
        self.turn();
        outcome
    }

    fn set(&mut self, fd: u64, level: u32, name: u32, value: u32) -> i64 {
        let outcome = self.rig.set_option(fd, level, name, value);
        self.turn();
        outcome
    }

    fn error_of(&mut self, fd: u64) -> u32 {
        self.option(fd, SOL_SOCKET, SO_ERROR).unwrap()
    }
}

#[test]
fn kinds_of_sockets() {
    let mut net = Net::begun();
    for family in [AF_INET, AF_INET6] {
        for (kind, protocol, expected) in [
            (STREAM, 0, None),
            (STREAM, 6, None),
            (DATAGRAM, 17, None),
            (STREAM, 17, Some(EPROTONOSUPPORT)),
            (DATAGRAM, 6, Some(EPROTONOSUPPORT)),
            (DATAGRAM, if family == AF_INET { 1 } else { 58 }, None),
            (DATAGRAM, if family == AF_INET { 58 } else { 1 }, Some(EPROTONOSUPPORT)),
            (STREAM, if family == AF_INET { 1 } else { 58 }, Some(EPROTONOSUPPORT)),
            (SOCK_RAW, 1, Some(EPERM)),
            (SOCK_SEQPACKET, 0, Some(ESOCKTNOSUPPORT)),
            (0, 0, Some(EINVAL)),
            (STREAM | 1 << 20, 0, Some(EINVAL)),
        ] {
            let outcome = net.call(nr::__NR_socket, &[family.into(), kind.into(), protocol]);
            assert_eq!(outcome.min(0), expected.map_or(0, error), "{kind} {protocol}");
        }
        assert_eq!(net.call(nr::__NR_socketpair, &[family.into(), STREAM.into(), 0, 0]), error(EOPNOTSUPP));
    }
    assert_eq!(net.call(nr::__NR_socket, &[AF_PACKET.into(), DATAGRAM.into(), 0]), error(EAFNOSUPPORT));
    assert_eq!(net.network.count(), 0);
}

#[test]
fn bytes_travel_both_ways() {
    for (at, own, other, mut net) in [
        ("127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:32768", Net::begun()),
        ("0.0.0.0:8080", "127.0.0.1:8080", "127.0.0.1:49153", Net::far()),
        ("[::]:8080", "[::1]:8080", "[::1]:32768", Net::begun()),
        ("[::1]:8080", "[::1]:8080", "[::1]:49153", Net::far()),
    ] {
        let listener = net.listener(at);
        assert_eq!((net.own(listener), net.accept(listener)), (at.to_string(), error(EAGAIN)));
        assert_eq!((net.poll(listener), net.option(listener, SOL_SOCKET, SO_ACCEPTCONN)), (0, Ok(1)));
        let one = net.socket(family_of(at).number(), STREAM | BRIEF);
        assert_eq!(net.poll(one), 0x114);
        assert_eq!((net.connect(one, own), net.connect(one, own)), (0, error(EISCONN)));
        assert_eq!(net.poll(listener), 0x41);
        let two = net.accept(listener) as u64;
        assert_eq!((net.own(two), net.name(nr::__NR_getpeername, two)), (own.into(), Ok(other.into())));
        assert_eq!((net.own(one), net.name(nr::__NR_getpeername, one)), (other.into(), Ok(own.into())));
        assert_eq!((net.poll(one), net.poll(two)), (0x104, 0x104));
        assert_eq!(net.receive(one, 10, 0), Err(error(EAGAIN)));
        assert_eq!((net.send(two, b"hello", 0), net.rig.write(two, b" world")), (5, 6));
        assert_eq!((net.waiting(one), net.poll(one)), (11, 0x145));
        assert_eq!(net.receive(one, 4, MSG_PEEK), Ok(b"hell".to_vec()));
        assert_eq!(net.receive(one, 4, 0), Ok(b"hell".to_vec()));
        assert_eq!(net.rig.read(one, 100), Ok(b"o world".to_vec()));
        assert_eq!(net.rig.write(one, &[7; 5000]), 5000);
        assert_eq!(net.receive(two, 10_000, 0), Ok(vec![7; 5000]));
        for fd in [one, two, listener] {
            assert_eq!(net.call(nr::__NR_close, &[fd]), 0);
        }
        assert_eq!(net.network.count(), 0);
    }
}

#[test]
fn a_socket_of_both_families() {
    let mut net = Net::begun();
    let listener = net.listener("[::]:80");
    let one = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect(one, "127.0.0.1:80"), 0);
    let two = net.accept(listener) as u64;
    // An address of IPv4 is seen as one that stands for it.
    let (at, len) = (net.rig.room(28), net.rig.put(&28u32.to_le_bytes()));
    assert_eq!(net.call(nr::__NR_getpeername, &[two, at, len]), 0);
    assert_eq!(net.rig.half(len), 28);
    assert_eq!(net.rig.get(FIRST, at + 8, 16), [&[0; 10][..], &[0xff, 0xff, 127, 0, 0, 1]].concat());
    // One of IPv6 alone throws others away.
    let only = net.socket(AF_INET6, STREAM | BRIEF);
    assert_eq!(net.set(only, 41, IPV6_V6ONLY, 1), 0);
    assert_eq!((net.bind(only, "[::]:81"), net.call(nr::__NR_listen, &[only, 4])), (0, 0));
    assert_eq!(net.set(only, 41, IPV6_V6ONLY, 0), error(EINVAL));
    let one = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!((net.connect(one, "127.0.0.1:81"), net.accept(only)), (0, error(EAGAIN)));
    assert_eq!(net.receive(one, 1, 0), Ok(Vec::new()));
    let other = net.socket(AF_INET6, STREAM | BRIEF);
    net.set(other, 41, IPV6_V6ONLY, 1);
    assert_eq!(net.connect(other, "127.0.0.1:80"), error(ENETUNREACH));
}

#[test]
fn addresses_that_cannot_be_had() {
    let mut net = Net::begun();
    net.listener("127.0.0.1:80");
    for (address, expected) in [
        ("127.0.0.1:80", Err(EADDRINUSE)),
        ("0.0.0.0:80", Err(EADDRINUSE)),
        ("127.0.0.2:80", Ok(())),
        ("1.2.3.4:81", Err(EADDRNOTAVAIL)),
        ("10.0.2.15:81", Ok(())),
    ] {
        let fd = net.socket(AF_INET, STREAM);
        let outcome = net.bind(fd, address);
        assert_eq!(outcome, expected.map_or_else(error, |()| 0), "{address}");
        assert_eq!(net.bind(fd, "127.0.0.1:0"), if outcome == 0 { error(EINVAL) } else { 0 });
    }
    let shared: Vec<u64> = (0..2)
        .map(|_| {
            let fd = net.socket(AF_INET, STREAM);
            assert_eq!(net.set(fd, SOL_SOCKET, SO_REUSEADDR, 1), 0);
            assert_eq!(net.bind(fd, "127.0.0.1:90"), 0);
            fd
        })
        .collect();
    assert_eq!(net.call(nr::__NR_listen, &[shared[0], 1]), 0);
    assert_eq!(net.call(nr::__NR_listen, &[shared[1], 1]), error(EADDRINUSE));
    // Families and lengths.
    let [four, six] = [AF_INET, AF_INET6].map(|family| net.socket(family, STREAM));
    let [at, len] = net.address_as(Family::Six, "[::1]:99");
    for call in [nr::__NR_bind, nr::__NR_connect] {
        assert_eq!(net.call(call, &[four, at, len]), error(EAFNOSUPPORT));
        assert_eq!(net.call(call, &[six, at, 20]), error(EINVAL));
        assert_eq!(net.call(call, &[four, at, 1]), error(EINVAL));
        assert_eq!(net.call(call, &[four, at, 129]), error(EINVAL));
        assert_eq!(net.call(call, &[four, at, u64::MAX]), error(EINVAL));
    }
    // A port below 1024 is for whoever has `CAP_NET_BIND_SERVICE`, as `root` does.
    let other = net.socket(AF_INET, STREAM);
    assert_eq!(net.call(nr::__NR_setresuid, &[5, 5, 5]), 0);
    assert_eq!((net.bind(four, "127.0.0.1:1023"), net.bind(four, "127.0.0.1:1024")), (error(EACCES), 0));
    let thread = net.rig.system.threads.get_mut(&FIRST).unwrap();
    thread.capabilities.effective = 1 << nr::CAP_NET_BIND_SERVICE;
    assert_eq!(net.bind(other, "127.0.0.1:1023"), 0);
}

#[test]
fn connections_that_are_refused() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, STREAM);
    for _ in 0..2 {
        assert_eq!(net.connect(fd, "127.0.0.1:9"), error(ECONNREFUSED));
        assert_eq!((net.error_of(fd), net.receive(fd, 1, 0)), (0, Ok(Vec::new())));
    }
    assert_eq!(net.connect(fd, "1.2.3.4:9"), error(ENETUNREACH));
    assert_eq!(net.network.count(), 0);
    // Nobody listens any more at a listener that is shut.
    let listener = net.listener("127.0.0.1:80");
    assert_eq!(net.call(nr::__NR_shutdown, &[listener, SHUT_RD.into()]), 0);
    assert_eq!((net.connect(fd, "127.0.0.1:80"), net.accept(listener)), (error(ECONNREFUSED), error(EINVAL)));
    assert_eq!(net.call(nr::__NR_listen, &[listener, 1]), 0);
    assert_eq!(net.connect(fd, "0.0.0.0:80"), 0);
    let none = net.socket(AF_INET, STREAM);
    assert_eq!(net.receive(none, 1, 0), Err(error(ENOTCONN)));
    assert_eq!((net.send(none, b"x", 0), net.rig.write(none, b"x")), (error(EPIPE), error(EPIPE)));
    assert_eq!(net.call(nr::__NR_shutdown, &[none, SHUT_WR.into()]), error(ENOTCONN));
    assert_eq!(net.name(nr::__NR_getpeername, none), Err(error(ENOTCONN)));
    assert_eq!(net.own(none), "0.0.0.0:0");
}

/// Linux tells it later also if the other end is near and has answered at once.
#[test]
fn a_call_that_does_not_wait_never_says_that_it_is_connected() {
    let mut net = Net::begun();
    let listener = net.listener("127.0.0.1:80");
    let fd = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect_once(fd, "127.0.0.1:80"), error(EINPROGRESS));
    assert_eq!((net.poll(fd), net.error_of(fd)), (0x104, 0), "it can be written");
    assert!(net.accept(listener) > 0);
    assert_eq!(
        (net.connect_once(fd, "127.0.0.1:80"), net.connect_once(fd, "127.0.0.1:80")),
        (0, error(EISCONN))
    );
    let fd = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect_once(fd, "127.0.0.1:9"), error(EINPROGRESS));
    assert_eq!((net.error_of(fd), net.error_of(fd)), (111, 0));
}

#[test]
fn connections_that_take_time() {
    let mut net = Net::far();
    let to = format!("{SILENT}:80");
    let fd = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!((net.connect(fd, &to), net.connect(fd, &to)), (error(EINPROGRESS), error(EALREADY)));
    assert_eq!(
        (net.poll(fd), net.send(fd, b"x", 0), net.receive(fd, 1, 0)),
        (0, error(EAGAIN), Err(error(EAGAIN)))
    );
    // The backlog of a listener is full.
    let listener = net.listener("127.0.0.1:80");
    let all: Vec<u64> = (0..5).map(|_| net.socket(AF_INET, STREAM | BRIEF)).collect();
    let outcomes: Vec<i64> = all.iter().map(|fd| net.connect(*fd, "127.0.0.1:80")).collect();
    assert_eq!(outcomes, [0, 0, 0, 0, error(EINPROGRESS)]);
    // It is given up.
    assert_eq!(net.call(nr::__NR_shutdown, &[all[4], SHUT_RDWR.into()]), 0);
    assert_eq!(net.poll(all[4]), 0x114);
    assert!(net.accept(listener) > 0);
    assert_eq!(net.connect(all[4], "127.0.0.1:80"), 0);
    // A connection that was ended leaves no address.
    let nobody = net.rig.put(&[0; 16]);
    assert_ne!(net.own(all[4]), "0.0.0.0:0");
    assert_eq!(net.call(nr::__NR_connect, &[all[4], nobody, 16]), 0);
    assert_eq!(net.own(all[4]), "0.0.0.0:0");
}

#[test]
fn ends_of_streams() {
    let mut net = Net::far();
    let [one, two] = net.pair();
    assert_eq!((net.send(one, b"last", 0), net.call(nr::__NR_shutdown, &[one, SHUT_WR.into()])), (4, 0));
    assert_eq!((net.send(one, b"x", 0), net.send(one, b"x", MSG_NOSIGNAL)), (error(EPIPE), error(EPIPE)));
    assert_eq!(net.poll(one), 0x104);
    assert_eq!((net.poll(two), net.receive(two, 10, 0)), (0x145, Ok(b"last".to_vec())));
    assert_eq!((net.poll(two), net.receive(two, 10, 0)), (0x2145, Ok(Vec::new())));
    // The other half goes on.
    assert_eq!((net.send(two, b"answer", 0), net.receive(one, 10, 0)), (6, Ok(b"answer".to_vec())));
    assert_eq!(net.call(nr::__NR_shutdown, &[two, SHUT_WR.into()]), 0);
    assert_eq!((net.poll(one), net.poll(two)), (0x2155, 0x2155));
    assert_eq!((net.receive(one, 10, 0), net.rig.read(one, 10)), (Ok(Vec::new()), Ok(Vec::new())));

    let [one, two] = net.pair();
    assert_eq!((net.send(one, b"unread", 0), net.call(nr::__NR_close, &[two])), (6, 0));
    assert_eq!(net.receive(one, 1, 0), Ok(Vec::new()));
    let [one, two] = net.pair();
    let number = net.inet(one).number;
    net.network.reset(number);
    assert_eq!(
        (net.poll(one), net.send(one, b"x", 0), net.send(one, b"x", 0)),
        (0x215d, error(ECONNRESET), error(EPIPE))
    );
    assert_eq!((net.receive(two, 1, 0), net.receive(two, 1, 0)), (Err(error(ECONNRESET)), Ok(Vec::new())));
    assert_eq!(net.error_of(two), 0);
    let [one, two] = net.pair();
    net.call(nr::__NR_close, &[two]);
    // The first bytes after the end of the other side are lost.
    assert_eq!((net.send(one, b"x", 0), net.send(one, b"x", 0)), (1, error(EPIPE)));
    // Nothing is received in a direction that is shut.
    let [one, _] = net.pair();
    assert_eq!(net.call(nr::__NR_shutdown, &[one, SHUT_RD.into()]), 0);
    assert_eq!((net.receive(one, 1, 0), net.poll(one)), (Ok(Vec::new()), 0x2145));
}

#[test]
fn a_signal_for_who_writes_to_nobody() {
    let mut net = Net::begun();
    let [one, _] = net.pair();
    net.call(nr::__NR_shutdown, &[one, SHUT_WR.into()]);
    let child = net.rig.fork();
    let usual = net.rig.put(&[0; 32]);
    net.rig.call_by(child, nr::__NR_rt_sigaction, &[SIGPIPE.into(), usual, 0, 8]);
    assert_eq!(net.rig.call_by(child, nr::__NR_sendto, &[one, usual, 1, MSG_NOSIGNAL.into()]), error(EPIPE));
    assert_eq!(net.rig.try_by(child, nr::__NR_sendto, &[one, usual, 1, 0]), None);
    assert_eq!(net.rig.system.processes[&child].ended, Some(crate::process::Status::killed(SIGPIPE)));
}

#[test]
fn datagrams() {
    for (family, own, unspecified) in [(AF_INET, "127.0.0.1:53", "0.0.0.0"), (AF_INET6, "[::1]:53", "[::]")] {
        let mut net = Net::begun();
        let server = net.socket(family, DATAGRAM | BRIEF);
        assert_eq!((net.poll(server), net.bind(server, own)), (0x304, 0));
        let one = net.socket(family, DATAGRAM | BRIEF);
        assert_eq!(net.receive(one, 1, 0), Err(error(EAGAIN)));
        assert_eq!((net.send(one, b"x", 0), net.own(one)), (error(EDESTADDRREQ), format!("{unspecified}:0")));
        assert_eq!(
            (net.send_to(one, b"question", own), net.poll(server), net.waiting(server)),
            (8, 0x345, 8)
        );
        let from = own.replace("53", "33063");
        assert_eq!(
            net.own(one),
            format!("{unspecified}:33063").replace("33063", net.own(one).rsplit(':').next().unwrap())
        );
        let port = net.own(one).rsplit(':').next().unwrap().to_string();
        let from = from.replace("33063", &port);
        assert_eq!(net.receive(server, 3, MSG_PEEK), Ok(b"que".to_vec()));
        assert_eq!(net.receive_from(server), Ok((b"question".to_vec(), from.clone())));
        assert_eq!((net.send_to(server, b"", &from), net.poll(one)), (0, 0x345));
        assert_eq!(net.receive_from(one), Ok((Vec::new(), own.to_string())));
        // One that is connected hears nobody else.
        assert_eq!((net.connect(one, own), net.own(one)), (0, from.clone()));
        let third = net.socket(family, DATAGRAM | BRIEF);
        assert_eq!((net.send_to(third, b"stranger", &from), net.poll(one)), (8, 0x304));
        assert_eq!((net.send(one, b"by name", 0), net.send_to(server, b"answer", &from)), (7, 6));
        assert_eq!(
            (net.receive(one, 2, MSG_TRUNC), net.receive(one, 2, 0)),
            (Ok(b"an".to_vec()), Err(error(EAGAIN)))
        );
        let [at, _] = net.address(one, own);
        let nobody = net.rig.put(&[0; 16]);
        assert_eq!(net.call(nr::__NR_connect, &[one, nobody, 16]), 0);
        assert_eq!(net.name(nr::__NR_getpeername, one), Err(error(ENOTCONN)));
        // A socket of the sandbox gets as much as a packet can have; nobody else hears so much.
        let (len, most) = (3000, if family == AF_INET { 65_507 } else { 65_527 });
        let bytes = net.rig.put(&[7; 65_528]);
        while net.receive_from(server).is_ok() {}
        assert_eq!(net.call(nr::__NR_sendto, &[one, bytes, len, 0, at, 28]), len as i64);
        assert_eq!(net.receive_len(server), Ok(len as i64));
        assert_eq!(net.call(nr::__NR_sendto, &[one, bytes, most + 1, 0, at, 28]), error(EMSGSIZE));
        assert_eq!(net.call(nr::__NR_sendto, &[one, bytes, most, 0, at, 28]), most as i64);
        assert_eq!(net.receive_len(server), Ok(most as i64));
        let [far, _] = net.address(one, &own.replace(":53", ":54"));
        assert_eq!(net.call(nr::__NR_sendto, &[one, bytes, 1473, 0, far, 28]), error(EMSGSIZE));
        assert_eq!(
            (net.call(nr::__NR_listen, &[one, 1]), net.accept(one)),
            (error(EOPNOTSUPP), error(EOPNOTSUPP))
        );
        let other = net.socket(family, DATAGRAM);
        assert_eq!(net.bind(other, own), error(EADDRINUSE));
        assert_eq!(net.call(nr::__NR_shutdown, &[other, SHUT_WR.into()]), error(ENOTCONN));
    }
}

#[test]
fn datagrams_that_go_nowhere() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM | BRIEF);
    assert_eq!(net.send_to(fd, b"x", "1.2.3.4:5"), error(ENETUNREACH));
    assert_eq!(net.connect(fd, "1.2.3.4:5"), error(ENETUNREACH));
    assert_eq!(net.send_to(fd, b"x", "127.0.0.1:0"), error(EINVAL));
    assert_eq!(net.send_to(fd, b"x", "255.255.255.255:9"), error(EACCES));
    // The address from which others are reached is known without a packet.
    assert_eq!(net.connect(fd, &format!("{SILENT}:9")), 0);
    assert!(net.own(fd).starts_with(OWN));
    // Datagrams of the other family are not for it.
    let six: SocketAddr = "[::1]:5".parse().unwrap();
    let other = net.socket(AF_INET, DATAGRAM | BRIEF);
    assert_eq!(net.bind(other, "0.0.0.0:700"), 0);
    net.network.deliver(six, "127.0.0.1:700".parse().unwrap(), b"six");
    assert_eq!(net.poll(other), 0x304);
}

#[test]
fn messages_in_pieces() {
    let mut net = Net::begun();
    let server = net.socket(AF_INET, DATAGRAM | BRIEF);
    net.bind(server, "127.0.0.1:53");
    let fd = net.socket(AF_INET, DATAGRAM | BRIEF);
    let [to, len] = net.address(fd, "127.0.0.1:53");
    let bytes = net.rig.put(b"two pieces");
    let pieces = net.rig.put(&[bytes, 4, bytes + 4, 6].map(u64::to_le_bytes).concat());
    let header = net.rig.put(&[to, len, pieces, 2, 0, 0, 0].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_sendmsg, &[fd, header, 0]), 10);
    let (name, room) = (net.rig.room(64), net.rig.room(64));
    let piece = net.rig.put(&[room, 7].map(u64::to_le_bytes).concat());
    let header = net.rig.put(&[name, 64, piece, 1, room + 32, 32, 0].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_recvmsg, &[server, header, 0]), 7);
    assert_eq!(net.rig.get(FIRST, room, 7), b"two pie");
    assert_eq!([8, 40, 48].map(|at| net.rig.half(header + at)), [16, 0, MSG_TRUNC]);
    // Several at once.
    let entries = net.rig.room(2 * 64);
    let header = [to, len, pieces, 2, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    for at in [entries, entries + 64] {
        net.rig.system.write(FIRST, at, &header).unwrap();
    }
    assert_eq!(net.call(nr::__NR_sendmmsg, &[fd, entries, 2, 0]), 2);
    assert_eq!([56, 120].map(|at| net.rig.half(entries + at)), [10, 10]);
    assert_eq!((net.receive(server, 20, 0).unwrap().len(), net.waiting(server)), (10, 10));
}

#[test]
fn sockets_are_files_of_their_own_kind() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, STREAM);
    let at = net.rig.room(144);
    assert_eq!(net.call(nr::__NR_fstat, &[fd, at]), 0);
    assert_eq!(net.rig.half(at + 24), 0o140_777);
    assert!(net.rig.open(&format!("/proc/self/fd/{fd}")) < 0);
    assert_eq!(net.call(nr::__NR_lseek, &[fd, 0, 0]), error(crate::errno::ESPIPE));
    let copy = net.call(nr::__NR_dup, &[fd]) as u64;
    net.listener("127.0.0.1:80");
    assert_eq!(net.connect(copy, "127.0.0.1:80"), 0);
    net.call(nr::__NR_close, &[copy]);
    assert_eq!(net.poll(fd), 0x104);
}

#[test]
fn all_sockets_are_given_back() {
    let mut net = Net::far();
    let child = net.rig.fork();
    for _ in 0..3 {
        let fd = net.rig.call_by(child, nr::__NR_socket, &[AF_INET.into(), STREAM.into(), 0]) as u64;
        assert_eq!(net.rig.call_by(child, nr::__NR_listen, &[fd, 1000]), 0);
    }
    // There is room for less than all want: the fifth keeps one connection.
    assert_eq!(net.network.count(), 24);
    for backlog in [4, 8] {
        let fd = net.rig.call_by(child, nr::__NR_socket, &[AF_INET.into(), STREAM.into(), 0]) as u64;
        assert_eq!(net.rig.call_by(child, nr::__NR_listen, &[fd, backlog]), 0);
    }
    assert_eq!(net.network.count(), 29);
    net.rig.system.end_process(child, crate::process::Status::killed(9));
    assert_eq!(net.network.count(), 0);
}

#[test]
fn a_sandbox_without_a_network() {
    let mut net = Net::begun();
    net.rig.system.sockets.network = Below::default();
    let fd = net.socket(AF_INET, STREAM);
    assert_eq!(net.connect(fd, "127.0.0.1:80"), error(ENETUNREACH));
    assert_eq!((net.bind(fd, "127.0.0.1:80"), net.bind(fd, "0.0.0.0:80")), (error(EADDRNOTAVAIL), 0));
    assert_eq!((net.call(nr::__NR_listen, &[fd, 1]), net.poll(fd)), (0, 0));
    let fd = net.socket(AF_INET6, DATAGRAM | BRIEF);
    assert_eq!(net.send_to(fd, b"x", "[::1]:80"), error(ENETUNREACH));
    assert_eq!((net.poll(fd), net.receive(fd, 1, 0)), (0x304, Err(error(EAGAIN))));
}

#[test]
fn the_first_socket_waits_for_the_network() {
    let mut net = Net::begun();
    net.network.presence.set(Presence::Unknown);
    assert_eq!(net.rig.try_by(FIRST, nr::__NR_socket, &[AF_INET.into(), STREAM.into(), 0]), None);
    net.network.presence.set(Presence::Known);
    net.rig.system.network_happened(ITSELF, 0);
    assert_eq!(net.rig.answer(FIRST), Some(3));
}
