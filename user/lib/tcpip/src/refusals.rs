//! Datagrams that were refused: messages of ICMP which say that nobody has the port. And datagrams and first segments of connections that were dropped, since nobody answers at the address that they were for.
//!
//! `smoltcp` shows such a message to sockets for ICMP alone, and to none if it quotes no more than the eight bytes that RFC 792 asks for. So they are read here,
//! from frames on their way to the stack.

use crate::frames::{v4_at, v6_at};
use crate::held::Datagram;
use crate::offload::{Upper, may_have};
use crate::secrets::begins;
use crate::sockets::Refusal;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, IpEndpoint, IpProtocol};

/// Refusals that are kept until the stack looks at them, at most. One that is too many is lost, as its message might have been.
const REFUSALS_MAX: usize = 64;

/// Kind and reason of a message that says so, of ICMP for IPv4 and for IPv6.
const PORT_UNREACHABLE: [[u8; 2]; 2] = [[3, 3], [1, 4]];

/// Bytes of a message before what it quotes.
const QUOTE_AT: usize = 8;

/// Number of UDP.
const UDP: u8 = 17;

/// A datagram that was refused: this machine's end, the one that it was for, and what its sender is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub why: Refusal,
}

impl Refused {
    /// The datagram of which a frame says that it was refused. `None` if it does not say so, or should not be believed.
    fn of(frame: &[u8]) -> Option<Refused> {
        let upper = Upper::of(frame)?;
        let message = frame.get(upper.at.clone())?;
        let is_sound = match (upper.protocol, upper.from, upper.to) {
            (IpProtocol::Icmp, IpAddr::V4(_), _) => {
                Icmpv4Packet::new_checked(message).ok()?.verify_checksum()
            }
            (IpProtocol::Icmpv6, IpAddr::V6(from), IpAddr::V6(to)) => {
                Icmpv6Packet::new_checked(message).ok()?.verify_checksum(&from, &to)
            }
            _ => return None,
        };
        let [of_four, of_six] = PORT_UNREACHABLE;
        if !is_sound || !message.starts_with(if upper.to.is_ipv4() { &of_four } else { &of_six }) {
            return None;
        }
        let quoted = message.get(QUOTE_AT..)?;
        let first = *quoted.first()?;
        let (from, to, protocol, ports_at) = match upper.to {
            IpAddr::V4(_) if first >> 4 == 4 => {
                (v4_at(quoted, 12)?, v4_at(quoted, 16)?, *quoted.get(9)?, usize::from(first & 0xf) * 4)
            }
            IpAddr::V6(_) if first >> 4 == 6 => (v6_at(quoted, 8)?, v6_at(quoted, 24)?, *quoted.get(6)?, 40),
            _ => return None,
        };
        let port = |at: usize| Some(u16::from_be_bytes([*quoted.get(at)?, *quoted.get(at + 1)?]));
        let (from, to) = (SocketAddr::new(from, port(ports_at)?), SocketAddr::new(to, port(ports_at + 2)?));
        // The message is for whoever has sent what it quotes.
        let why = Refusal::Refused;
        (protocol == UDP && from.ip() == upper.to).then_some(Refused { from, to, why })
    }
}

/// Refusals that the stack has not looked at.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    datagrams: Vec<Refused>,
    /// Ends of connections whose first segments were dropped: this one, and the other.
    begun: Vec<[IpEndpoint; 2]>,
}

impl Refusals {
    /// Looks at a frame that the stack gets.
    pub fn hear(&mut self, frame: &[u8]) {
        if may_have(frame, [IpProtocol::Icmp, IpProtocol::Icmpv6]) && self.datagrams.len() < REFUSALS_MAX {
            self.datagrams.extend(Refused::of(frame));
        }
    }

    /// Looks at a frame of the stack's that is dropped.
    pub fn lose(&mut self, frame: &[u8]) {
        if self.datagrams.len() < REFUSALS_MAX
            && let Some(Datagram { from, to }) = Datagram::of(frame)
        {
            self.datagrams.push(Refused { from, to, why: Refusal::Silent });
        }
        if self.begun.len() < REFUSALS_MAX {
            self.begun.extend(begins(frame));
        }
    }

    /// Whether there are some.
    pub fn has_some(&self) -> bool {
        !self.datagrams.is_empty() || !self.begun.is_empty()
    }

    /// Takes all datagrams.
    pub fn take(&mut self) -> Vec<Refused> {
        core::mem::take(&mut self.datagrams)
    }

    /// Takes all connections.
    pub fn take_begun(&mut self) -> Vec<[IpEndpoint; 2]> {
        core::mem::take(&mut self.begun)
    }
}
