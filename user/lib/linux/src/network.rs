//! The network below: sockets of TCP and UDP that never wait. A socket is known there by the number that it has here.
//!
//! An operation that cannot be done now is `EAGAIN`, and [`Network::watch`] asks to be told when it can: then [`crate::system::System::network_happened`] is called.

use crate::errno::{EADDRNOTAVAIL, EAGAIN, ENETUNREACH, ENOBUFS, ENODEV, ENOTCONN, EPROTONOSUPPORT, Result};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub mod datagram;
pub mod layout;
#[cfg(test)]
pub mod loopback;
mod near;
mod source;

pub use datagram::{Beside, Datagram, Head, Sent};
pub use layout::{Interface, Layout};
pub use near::Near;
pub use source::{Ways, source};

/// Bytes of a datagram, at most, to an address of IPv4 and to one of IPv6.
pub const DATAGRAM_MAX: [usize; 2] = [1472, 1452];

/// Bytes of a datagram within a sandbox, at most, as on Linux: what the 16 bits of a packet's length leave.
pub const NEAR_DATAGRAM_MAX: [usize; 2] = [65_507, 65_527];

/// Bytes of an echo request, with the head of its message, at most.
pub const ECHO_MAX: usize = 1460;

/// Connections that wait at a socket of the machine's network to be accepted, at most.
pub const BACKLOG_MAX: u16 = 8;

/// Number that no socket has: the network itself, when it is known whether it is there.
pub const ITSELF: u64 = 0;

/// Bits of what a socket is ready for.
pub mod readiness {
    /// To be read, to accept, or to tell its end.
    pub const READ: u32 = 1;
    /// To be written, or to tell that it cannot be written any more.
    pub const WRITE: u32 = 2;
}

/// Whether it is known what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It is known.
    Known,
    /// Not yet. [`ITSELF`] is told of when it is.
    Unknown,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// There is none.
    Closed,
    /// There is none, since the other end does not want it, whenever it has said so.
    Refused,
    /// There is none, since nobody answers at the address of the other end.
    Silent,
    /// The other side has not answered.
    Connecting,
    /// There is one, in one direction at least.
    Open,
}

/// Ends of a connection, as far as they are known: this one, and the other.
pub type Ends = [Option<SocketAddr>; 2];

/// How a socket sends to groups of receivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// Address of this machine from which it sends; the one that is none means any.
    pub from: IpAddr,
    /// Hops that a datagram may make.
    pub hops: u8,
    /// Whether this machine gets it, too.
    pub loops: bool,
}

/// The network. An address of IPv4 is never one of IPv6 that stands for it.
pub trait Network: core::fmt::Debug {
    /// Whether it is known what there is. If not, that is found out from now on.
    fn presence(&self) -> Presence;

    /// The address of this machine from which an address is reached; none if no way leads there.
    fn source(&self, to: IpAddr) -> Option<IpAddr>;

    /// Whether this machine has an address.
    fn has(&self, address: IpAddr) -> bool;

    /// Addresses of this machine, with the lengths of their networks' prefixes.
    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        Vec::new()
    }

    /// The machine that leads to all other networks of IPv4, if there is one.
    fn router(&self) -> Option<Ipv4Addr> {
        None
    }

    /// That machine for networks of IPv6.
    fn router_v6(&self) -> Option<Ipv6Addr> {
        None
    }

    /// Hardware address of the card, if there is one.
    fn card(&self) -> Option<[u8; 6]> {
        None
    }

    /// Makes a socket for datagrams, at an address, which may be a group, and a port. `is_shared`: others may have it who say so, too; a socket that has it alone shares it from now on.
    /// `EADDRINUSE`: somebody has the port.
    fn bind(&self, number: u64, at: SocketAddr, is_shared: bool) -> Result<()>;

    /// Makes a socket for datagrams of UDP-Lite, whose ports are none of UDP's. `EPROTONOSUPPORT`: the network has no such.
    fn bind_lite(&self, _: u64, _: SocketAddr) -> Result<()> {
        Err(EPROTONOSUPPORT)
    }

    /// Makes a socket that listens at an address and a port, and keeps so many connections that nobody has accepted, or fewer.
    fn listen(&self, number: u64, at: SocketAddr, backlog: u16) -> Result<()>;

    /// Begins a connection from an address and a port of this machine, of which none means any. It is there, or has failed, when the socket can be written.
    /// `EADDRINUSE`: the port is another program's, or there is a connection between these ends.
    fn connect(&self, number: u64, from: SocketAddr, to: SocketAddr) -> Result<()>;

    /// Takes a connection from a socket that listens. It has a number of its own.
    fn accept(&self, listener: u64, number: u64) -> Result<()>;

    /// State of a connection.
    fn phase(&self, number: u64) -> Phase;

    /// Ends of a connection.
    fn ends(&self, number: u64) -> Ends;

    /// Writes to a connection, as much as there is room for. `ECONNRESET`: there is none any more.
    fn write(&self, number: u64, from: &[u8]) -> Result<usize>;

    /// Reads what has come by a connection, at most so many bytes: none at its end. `ECONNRESET`: it has broken off.
    fn read(&self, number: u64, len_max: usize) -> Result<Vec<u8>>;

    /// Nothing more is written to a connection.
    fn shut_down(&self, number: u64) -> Result<()>;

    /// Connects a socket for datagrams to an end: it receives from there alone, and hears of a datagram to there that was refused or dropped. None: it is connected to nobody.
    fn connect_datagrams(&self, number: u64, to: Option<SocketAddr>) -> Result<()>;

    /// Lets a socket for datagrams have what is sent to a group, or takes it back. `EADDRINUSE`: it has joined it. `ENOBUFS`: there are too many.
    fn set_member(&self, number: u64, group: IpAddr, is_member: bool) -> Result<()>;

    /// Says how a socket sends to groups.
    fn set_sending(&self, number: u64, sending: Sending) -> Result<()>;

    /// Bytes of a datagram of a socket to an end, at most.
    fn datagram_max(&self, _: u64, to: SocketAddr) -> usize {
        DATAGRAM_MAX[usize::from(to.is_ipv6())]
    }

    /// Sends a datagram, as far as the network can so. `ECONNREFUSED`, `EHOSTUNREACH`: an earlier one was refused or dropped, and this one is not sent.
    fn send_to(&self, number: u64, to: SocketAddr, bytes: &[u8], sent: &Sent) -> Result<()>;

    /// Takes a datagram. `ECONNREFUSED`, `EHOSTUNREACH`: one that was sent was refused or dropped.
    fn receive_from(&self, number: u64) -> Result<Datagram>;

    /// Makes a socket for echo requests.
    fn open_echo(&self, number: u64) -> Result<()>;

    /// Sends an echo request: to whom, with which number and which bytes.
    fn ask(&self, number: u64, to: IpAddr, request: (u16, &[u8])) -> Result<()>;

    /// Takes an answer: from whom, to which request, and what has come back.
    fn answer(&self, number: u64) -> Result<(IpAddr, u16, Vec<u8>)>;

    /// Readiness of a socket: bits of [`readiness`]. One that is not there is ready for everything.
    fn ready(&self, number: u64) -> u32;

    /// Tells when a socket is ready for one of these, once for each.
    fn watch(&self, number: u64, events: u32);

    /// Whether a connection uses a socket of the machine's network, of which there are few.
    fn is_scarce(&self, _: u64) -> bool {
        true
    }

    /// The next one of those that are to be told, and what it is ready for, of a network that tells nobody by itself.
    fn due(&self) -> Option<(u64, u32)> {
        None
    }

    /// Closes a socket. It may not be there.
    fn close(&self, number: u64);
}

/// A network in which this machine has no address: sockets can be made, and no way leads anywhere.
#[derive(Debug, Default)]
pub struct Nowhere {
    /// Sockets for datagrams, and those that listen, by their numbers.
    bound: RefCell<BTreeMap<u64, SocketAddr>>,
}

impl Network for Nowhere {
    fn presence(&self) -> Presence {
        Presence::Known
    }
    fn source(&self, _: IpAddr) -> Option<IpAddr> {
        None
    }
    fn has(&self, _: IpAddr) -> bool {
        false
    }
    fn bind(&self, number: u64, at: SocketAddr, _: bool) -> Result<()> {
        if !at.ip().is_unspecified() {
            return Err(EADDRNOTAVAIL);
        }
        self.bound.borrow_mut().insert(number, at);
        Ok(())
    }
    fn listen(&self, number: u64, at: SocketAddr, _: u16) -> Result<()> {
        self.bind(number, at, false)
    }
    fn connect(&self, _: u64, _: SocketAddr, _: SocketAddr) -> Result<()> {
        Err(ENETUNREACH)
    }
    fn accept(&self, _: u64, _: u64) -> Result<()> {
        Err(EAGAIN)
    }
    fn phase(&self, _: u64) -> Phase {
        Phase::Closed
    }
    fn ends(&self, _: u64) -> Ends {
        [None; 2]
    }
    fn write(&self, _: u64, _: &[u8]) -> Result<usize> {
        Err(ENOTCONN)
    }
    fn read(&self, _: u64, _: usize) -> Result<Vec<u8>> {
        Err(ENOTCONN)
    }
    fn shut_down(&self, _: u64) -> Result<()> {
        Err(ENOTCONN)
    }
    fn connect_datagrams(&self, _: u64, _: Option<SocketAddr>) -> Result<()> {
        Err(ENETUNREACH)
    }
    fn set_member(&self, _: u64, _: IpAddr, _: bool) -> Result<()> {
        Err(ENODEV)
    }
    fn set_sending(&self, _: u64, _: Sending) -> Result<()> {
        Err(ENETUNREACH)
    }
    fn send_to(&self, _: u64, _: SocketAddr, _: &[u8], _: &Sent) -> Result<()> {
        Err(ENETUNREACH)
    }
    fn receive_from(&self, _: u64) -> Result<Datagram> {
        Err(EAGAIN)
    }
    fn open_echo(&self, number: u64) -> Result<()> {
        self.bind(number, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), false)
    }
    fn ask(&self, _: u64, _: IpAddr, _: (u16, &[u8])) -> Result<()> {
        Err(ENETUNREACH)
    }
    fn answer(&self, _: u64) -> Result<(IpAddr, u16, Vec<u8>)> {
        Err(EAGAIN)
    }
    fn ready(&self, number: u64) -> u32 {
        if self.bound.borrow().contains_key(&number) { readiness::WRITE } else { u32::MAX }
    }
    fn watch(&self, _: u64, _: u32) {}
    fn close(&self, number: u64) {
        self.bound.borrow_mut().remove(&number);
    }
}

/// Makes a socket that listens, by a network on which all connections that wait are limited together: if there are no more, one is kept.
pub fn listen_with_fewer(backlog: u16, mut listen: impl FnMut(u16) -> Result<()>) -> Result<()> {
    match listen(backlog.clamp(1, BACKLOG_MAX)) {
        Err(ENOBUFS) => listen(1),
        outcome => outcome,
    }
}

/// The network that a sandbox has.
#[derive(Clone, Debug)]
pub struct Below(pub Rc<dyn Network>);

impl Default for Below {
    fn default() -> Below {
        Below(Rc::new(Nowhere::default()))
    }
}
