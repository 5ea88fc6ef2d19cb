//! Things beside datagrams: how a program says how one is sent, and what it is told of one that has come.
//!
//! Parts that the network does not tell of a datagram are left out, as if the program had not asked for them.

use super::options::{LEVEL_IP, LEVEL_IPV6, LEVEL_UDP};
use super::{Arrived, Family, Inet};
use crate::errno::{EINVAL, ENETUNREACH, ENODEV, EPERM, Result};
use crate::network::layout::{CARD, LOOPBACK};
use crate::network::{Network, Sent};
use crate::socket::beside::{Control, half, things};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linux_raw_sys::net::*;

/// Bytes of `struct in_pktinfo`: an interface, and two addresses.
const FOUR_BYTES: usize = 12;

/// Bytes of `struct in6_pktinfo`: an address, and an interface.
const SIX_BYTES: usize = 20;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Nanoseconds of a microsecond.
const MICROSECOND: u64 = 1000;

/// How a program wants a datagram to be sent, beside what its socket's options say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// Address of this machine from which it goes.
    pub from: Option<IpAddr>,
    /// Number of the interface; 0: any.
    pub interface: u32,
    /// Hops that it may make.
    pub hops: Option<u8>,
    /// Class of its traffic.
    pub class: Option<u8>,
}

/// A number of 32 bits, which is all of a thing.
fn whole(body: &[u8]) -> Result<i32> {
    body.try_into().map(i32::from_le_bytes).map_err(|_| EINVAL)
}

/// A number of a byte that lies between two others.
fn byte(value: i32, least: i32) -> Result<u8> {
    u8::try_from(value).ok().filter(|_| value >= least).ok_or(EINVAL)
}

/// A number of a byte, or -1 for that of the socket.
fn byte_or_usual(value: i32) -> Result<Option<u8>> {
    if value == -1 { Ok(None) } else { byte(value, 0).map(Some) }
}

impl Asked {
    /// Reads what is beside a datagram of a socket to an address of a family. `may_mark`: its program may set `SO_MARK`, which changes nothing here.
    ///
    /// `EINVAL`: a length, a type or a value is wrong. Types of other levels are for others.
    pub fn parse(bytes: &[u8], socket: Family, to: Family, may_mark: bool) -> Result<Asked> {
        let mut asked = Asked::default();
        for thing in things(bytes) {
            let ((level, kind), body) = thing?;
            match (level, to) {
                (SOL_SOCKET, _) => look_at_socket(kind, body, may_mark)?,
                // Datagrams that are cut into several.
                (LEVEL_UDP, _) => return Err(EINVAL),
                (LEVEL_IPV6, Family::Four) if socket == Family::Six && kind == IPV6_PKTINFO => {
                    let (IpAddr::V4(from), interface) = six_of(body)? else { return Err(EINVAL) };
                    asked.set_source(from.into(), interface);
                }
                (LEVEL_IP, Family::Four) => asked.set_four(kind, body)?,
                (LEVEL_IPV6, Family::Six) => asked.set_six(kind, body)?,
                _ => {}
            }
        }
        Ok(asked)
    }

    /// The address that means all of this machine leaves the choice to others, and so does interface 0.
    fn set_source(&mut self, from: IpAddr, interface: u32) {
        self.from = Some(from).filter(|from| !from.is_unspecified());
        if interface != 0 {
            self.interface = interface;
        }
    }

    fn set_four(&mut self, kind: u32, body: &[u8]) -> Result<()> {
        match kind {
            IP_PKTINFO if body.len() == FOUR_BYTES => {
                let octets: [u8; 4] =
                    body.get(4..8).and_then(|octets| octets.try_into().ok()).ok_or(EINVAL)?;
                self.set_source(octets.into(), half(body, 0));
            }
            IP_TTL => self.hops = Some(byte(whole(body)?, 1)?),
            IP_TOS => {
                self.class = Some(match body {
                    [class] => *class,
                    _ => byte(whole(body)?, 0)?,
                });
            }
            _ => return Err(EINVAL),
        }
        Ok(())
    }

    fn set_six(&mut self, kind: u32, body: &[u8]) -> Result<()> {
        match kind {
            IPV6_PKTINFO | IPV6_2292PKTINFO => {
                let (from, interface) = six_of(body)?;
                // One that stands for IPv4 is no address from which IPv6 goes.
                let IpAddr::V6(own) = from else { return Err(EINVAL) };
                if own.is_unicast_link_local() && interface == 0 && self.interface == 0 {
                    return Err(EINVAL);
                }
                self.set_source(from, interface);
            }
            IPV6_HOPLIMIT | IPV6_2292HOPLIMIT => self.hops = byte_or_usual(whole(body)?)?,
            IPV6_TCLASS => self.class = byte_or_usual(whole(body)?)?,
            // All of them are whole here, and no label says more of a packet.
            IPV6_DONTFRAG if matches!(whole(body)?, 0 | 1) => {}
            IPV6_FLOWINFO if body.len() >= 4 => {}
            _ => return Err(EINVAL),
        }
        Ok(())
    }

    /// Whether a datagram can go so to an address.
    ///
    /// `ENODEV`: there is no such interface. `EINVAL`, `ENETUNREACH`: this machine does not have the source, or no way leads from it, or by the interface, to the address.
    pub fn check(&self, network: &dyn Network, to: IpAddr) -> Result<()> {
        let is_there =
            matches!(self.interface, 0 | LOOPBACK) || self.interface == CARD && network.card().is_some();
        let source = self.from.map_or(Ok(()), |from| source_check(network, from, self.interface));
        if to.is_ipv4() {
            source?;
        }
        if !is_there {
            return Err(ENODEV);
        }
        source?;
        let is_reached = match self.interface {
            _ if to.is_multicast() => true,
            LOOPBACK => network.has(to),
            CARD => !to.is_loopback(),
            _ => true,
        };
        if is_reached { Ok(()) } else { Err(ENETUNREACH) }
    }

    /// How a datagram of a socket, with so many bytes, is sent to an address at a date.
    pub fn sent(&self, inet: &Inet, to: IpAddr, len: usize, date: u64) -> Sent {
        let mut head = inet.options.head(if to.is_ipv4() { Family::Four } else { Family::Six });
        head.hops = self.hops.unwrap_or(head.hops);
        head.class = self.class.unwrap_or(head.class);
        let covered = if inet.is_lite() { inet.options.covered(len) } else { 0 };
        Sent { from: self.from, head, date, covered }
    }
}

/// Things at the level of sockets. Descriptors and identities are for sockets of other families.
fn look_at_socket(kind: u32, body: &[u8], may_mark: bool) -> Result<()> {
    match kind {
        SCM_RIGHTS | SCM_CREDENTIALS => Ok(()),
        SO_MARK if !may_mark => Err(EPERM),
        SO_MARK => whole(body).map(|_| ()),
        _ => Err(EINVAL),
    }
}

/// Address and interface of a `struct in6_pktinfo`, behind which there may be more.
fn six_of(body: &[u8]) -> Result<(IpAddr, u32)> {
    let octets: [u8; 16] = body.get(..16).and_then(|octets| octets.try_into().ok()).ok_or(EINVAL)?;
    if body.len() < SIX_BYTES {
        return Err(EINVAL);
    }
    let address = Ipv6Addr::from(octets);
    Ok((address.to_ipv4_mapped().map_or(address.into(), IpAddr::from), half(body, 16)))
}

/// Whether a datagram can go from an address by an interface.
fn source_check(network: &dyn Network, from: IpAddr, interface: u32) -> Result<()> {
    match from {
        IpAddr::V4(own) if own.is_multicast() || own.is_broadcast() || own.octets()[0] == 0 => Err(EINVAL),
        IpAddr::V4(_) if !network.has(from) => Err(ENETUNREACH),
        // Each address of IPv6 belongs to its interface.
        IpAddr::V6(own)
            if !network.has(from) || interface != 0 && own.is_loopback() != (interface == LOOPBACK) =>
        {
            Err(EINVAL)
        }
        _ => Ok(()),
    }
}

/// Bytes of a date as an option wants them: `struct timeval`, or `struct timespec`.
fn date_bytes(option: u32, date: u64) -> [u8; 16] {
    let rest = date % SECOND;
    let is_fine = matches!(option, SO_TIMESTAMPNS | SO_TIMESTAMPNS_NEW);
    let mut bytes = [0; 16];
    let rest = if is_fine { rest } else { rest / MICROSECOND };
    let all = (date / SECOND).to_le_bytes().into_iter().chain(rest.to_le_bytes());
    bytes.iter_mut().zip(all).for_each(|(to, byte)| *to = byte);
    bytes
}

impl Inet {
    /// Tells what is known beside a datagram that has come, as far as the socket's options ask for it. `date`: now, which is when it has come if nobody has noted that.
    pub fn tell_beside(&self, network: &dyn Network, arrived: &Arrived, date: u64, control: &mut Control) {
        let Some(from) = arrived.from.filter(|_| self.options.are_changed()) else { return };
        let beside = arrived.beside;
        if let Some(option) = self.options.date_option() {
            let date = if beside.date == 0 { date } else { beside.date };
            control.put((SOL_SOCKET, option), &date_bytes(option, date));
        }
        if let Some(to) = beside.to.filter(|_| self.options.is_set((LEVEL_IPV6, IPV6_RECVPKTINFO))) {
            control.put((LEVEL_IPV6, IPV6_PKTINFO), &six_bytes(network, to, from.ip()));
        }
        if from.is_ipv4() {
            if let Some(IpAddr::V4(to)) = beside.to.filter(|_| self.options.is_set((LEVEL_IP, IP_PKTINFO))) {
                control.put((LEVEL_IP, IP_PKTINFO), &four_bytes(network, to, from.ip()));
            }
            self.tell_head([IP_RECVTTL, IP_RECVTOS], arrived, control);
        } else {
            self.tell_head([IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS], arrived, control);
        }
    }

    /// Tells the numbers in the head of a packet, if they are known, and asked for by the options for hops and for the class.
    fn tell_head(&self, [hops, class]: [u32; 2], arrived: &Arrived, control: &mut Control) {
        let Some(head) = arrived.beside.head else { return };
        let is_four = hops == IP_RECVTTL;
        let level = if is_four { LEVEL_IP } else { LEVEL_IPV6 };
        if self.options.is_set((level, hops)) {
            let kind = if is_four { IP_TTL } else { IPV6_HOPLIMIT };
            control.put((level, kind), &u32::from(head.hops).to_le_bytes());
        }
        if self.options.is_set((level, class)) {
            match is_four {
                true => control.put((level, IP_TOS), &[head.class]),
                false => control.put((level, IPV6_TCLASS), &u32::from(head.class).to_le_bytes()),
            }
        }
    }
}

/// A `struct in_pktinfo`: the interface, the address from which an answer would go, and the one to which the datagram was sent.
fn four_bytes(network: &dyn Network, to: Ipv4Addr, from: IpAddr) -> [u8; FOUR_BYTES] {
    let is_own = !to.is_multicast() && !to.is_broadcast();
    let own = match network.source(from) {
        _ if is_own => to,
        Some(IpAddr::V4(own)) => own,
        _ => Ipv4Addr::UNSPECIFIED,
    };
    let mut bytes = [0; FOUR_BYTES];
    let interface = interface(network, to.into(), from);
    let all = interface.to_le_bytes().into_iter().chain(own.octets()).chain(to.octets());
    bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
    bytes
}

/// A `struct in6_pktinfo`: the address to which the datagram was sent, and the interface.
fn six_bytes(network: &dyn Network, to: IpAddr, from: IpAddr) -> [u8; SIX_BYTES] {
    let address = match to {
        IpAddr::V4(to) => to.to_ipv6_mapped(),
        IpAddr::V6(to) => to,
    };
    let mut bytes = [0; SIX_BYTES];
    let all = address.octets().into_iter().chain(interface(network, to, from).to_le_bytes());
    bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
    bytes
}

/// The interface by which a datagram has come. This machine reaches itself by loopback, and groups by the card.
fn interface(network: &dyn Network, to: IpAddr, from: IpAddr) -> u32 {
    let is_near = if to.is_multicast() { from.is_loopback() } else { network.has(from) };
    if is_near { LOOPBACK } else { CARD }
}
