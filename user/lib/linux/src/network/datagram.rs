//! Datagrams as networks take and give them, with what the head of a packet says.
//!
//! A network that sends real packets need not know any of it: what it does not tell is not known, and no program is told a number that was made up.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// Numbers in the head of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// Hops that the packet may still make: the time to live of IPv4, the hop limit of IPv6.
    pub hops: u8,
    /// Class of its traffic: the type of service of IPv4.
    pub class: u8,
}

/// How a datagram is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Address of this machine from which it goes. None: its socket's, or the one from which the other end is reached.
    pub from: Option<IpAddr>,
    /// Head of its packet.
    pub head: Head,
    /// The date in nanoseconds, if somebody wants to know when it has come; else 0.
    pub date: u64,
    /// Bytes of UDP-Lite that its checksum covers, with the 8 of its head; 0: all.
    pub covered: u16,
}

/// Facts about a datagram that has come, beside its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beside {
    /// The address to which it was sent, if it is known.
    pub to: Option<IpAddr>,
    /// Head of its packet, if it is known.
    pub head: Option<Head>,
    /// The date at which it came, in nanoseconds; 0: not known.
    pub date: u64,
    /// Bytes that its checksum covers; 0: all.
    pub covered: u16,
}

/// A datagram that has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its sender.
    pub from: SocketAddr,
    /// Facts about it.
    pub beside: Beside,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Datagram {
    /// A datagram of which no more is known than its sender and its bytes.
    pub fn new(from: SocketAddr, bytes: Vec<u8>) -> Datagram {
        Datagram { from, beside: Beside::default(), bytes }
    }
}
