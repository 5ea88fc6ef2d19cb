//! Servers of a local network, on one machine of it: addresses (DHCP), names (DNS), and a router with advertisements of IPv6; beside it there is a machine that may have others' addresses. Each is honest, or lies as it is told.
//!
//! Frames go in and frames come out; there is no clock, no task and no device. So one machine is at the other end of the stack's wire in tests on the host, and of the
//! emulated card's in the booted system, and both hear the same lies. In reading order: `frames`, how frames are made; `streams`, connections; [`leases`], [`names`], [`routers`], [`neighbours`].

#![forbid(unsafe_code)]

mod frames;
pub mod leases;
pub mod names;
pub mod neighbours;
pub mod routers;
mod streams;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use leases::Leases;
use names::Names;
use neighbours::Neighbours;
use routers::Router;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv4Packet,
    Icmpv4Repr, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet,
};

/// Hardware address of the machine.
pub const HARDWARE: [u8; 6] = [2, 0, 0, 0, 9, 9];

/// Its address, at which are all servers of IPv4 and the router.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);

/// Its address of IPv6, as it follows from the hardware address. The server of names is there, too.
pub const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x00ff, 0xfe00, 0x0909);

/// Addresses of other networks. The router answers echoes for them.
pub const FAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
/// See [`FAR`].
pub const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 9);

/// A machine with all servers.
#[derive(Clone, Debug, Default)]
pub struct Lan {
    /// The server of addresses.
    pub leases: Leases,
    /// The server of names.
    pub names: Names,
    /// The router of IPv6.
    pub router: Router,
    /// Another machine, which may have the addresses that somebody wants.
    pub neighbours: Neighbours,
}

impl Lan {
    /// Answers to a frame. None, if it is not for this machine, or if no answer belongs to it.
    pub fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return Vec::new() };
        let to = ethernet.dst_addr();
        let is_mine = [HARDWARE, neighbours::HARDWARE].map(EthernetAddress).contains(&to);
        if !is_mine && !to.is_multicast() && !to.is_broadcast() {
            return Vec::new();
        }
        let from = ethernet.src_addr();
        let mut answers: Vec<Vec<u8>> = self.neighbours.answer(frame).into_iter().collect();
        answers.extend(match ethernet.ethertype() {
            EthernetProtocol::Arp => neighbour(from, ethernet.payload()).into_iter().collect(),
            EthernetProtocol::Ipv4 => self.answer_v4(from, ethernet.payload()),
            EthernetProtocol::Ipv6 => self.answer_v6(from, ethernet.payload()),
            _ => Vec::new(),
        });
        answers
    }

    fn answer_v4(&mut self, from: EthernetAddress, packet: &[u8]) -> Vec<Vec<u8>> {
        let Ok(packet) = Ipv4Packet::new_checked(packet) else { return Vec::new() };
        let ends = (packet.src_addr().into(), packet.dst_addr().into());
        match packet.next_header() {
            IpProtocol::Icmp => echo(from, &packet).into_iter().collect(),
            protocol => self.answer_upper(from, ends, protocol, packet.payload()),
        }
    }

    fn answer_v6(&mut self, from: EthernetAddress, bytes: &[u8]) -> Vec<Vec<u8>> {
        let Ok(packet) = Ipv6Packet::new_checked(bytes) else { return Vec::new() };
        let ends = (packet.src_addr().into(), packet.dst_addr().into());
        match packet.next_header() {
            IpProtocol::Icmpv6 => self.router.answer(from, bytes),
            protocol => self.answer_upper(from, ends, protocol, packet.payload()),
        }
    }

    fn answer_upper(
        &mut self,
        hardware: EthernetAddress,
        (from, to): (IpAddr, IpAddr),
        protocol: IpProtocol,
        bytes: &[u8],
    ) -> Vec<Vec<u8>> {
        let is_mine = [IpAddr::from(ADDRESS), ADDRESS_V6.into()].contains(&to);
        match protocol {
            IpProtocol::Udp => match frames::Datagram::of(from, to, bytes) {
                Some(asked) if asked.to.port() == leases::PORT => self.leases.answer(hardware, &asked),
                Some(asked) if asked.to.port() == names::PORT && is_mine => {
                    self.names.answer(hardware, &asked)
                }
                _ => Vec::new(),
            },
            IpProtocol::Tcp if is_mine => match streams::segment(hardware, (from, to), bytes) {
                Some(segment) if segment.packet.dst_port() == names::PORT => {
                    self.names.answer_by_stream(&segment)
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// Says that this machine has an address, if somebody asks for that.
fn neighbour(from: EthernetAddress, packet: &[u8]) -> Option<Vec<u8>> {
    let asked = ArpRepr::parse(&ArpPacket::new_checked(packet).ok()?).ok()?;
    let ArpRepr::EthernetIpv4 { operation, source_protocol_addr, target_protocol_addr, .. } = asked else {
        return None;
    };
    if operation != ArpOperation::Request || target_protocol_addr != ADDRESS {
        return None;
    }
    let answer = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: EthernetAddress(HARDWARE),
        source_protocol_addr: ADDRESS,
        target_hardware_addr: from,
        target_protocol_addr: source_protocol_addr,
    };
    let mut bytes = vec![0; answer.buffer_len()];
    answer.emit(&mut ArpPacket::new_unchecked(&mut bytes));
    Some(frames::ethernet(from, EthernetProtocol::Arp, &bytes))
}

/// Answers an echo request to this machine, or to one behind the router.
fn echo(from: EthernetAddress, packet: &Ipv4Packet<&[u8]>) -> Option<Vec<u8>> {
    let sums = ChecksumCapabilities::default();
    let to = packet.dst_addr();
    let asked = Icmpv4Packet::new_checked(packet.payload()).ok()?;
    let Icmpv4Repr::EchoRequest { ident, seq_no, data } = Icmpv4Repr::parse(&asked, &sums).ok()? else {
        return None;
    };
    if to != ADDRESS && to != FAR {
        return None;
    }
    let answer = Icmpv4Repr::EchoReply { ident, seq_no, data };
    let ip = Ipv4Repr {
        src_addr: to,
        dst_addr: packet.src_addr(),
        next_header: IpProtocol::Icmp,
        payload_len: answer.buffer_len(),
        hop_limit: 64,
    };
    let mut bytes = vec![0; ip.buffer_len() + answer.buffer_len()];
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    ip.emit(&mut packet, &sums);
    answer.emit(&mut Icmpv4Packet::new_unchecked(packet.payload_mut()), &sums);
    Some(frames::ethernet(from, EthernetProtocol::Ipv4, &bytes))
}
