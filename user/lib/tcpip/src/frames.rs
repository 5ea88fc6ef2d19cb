//! Frames that the crate does not make: messages about the network, questions for the owner of an address, and datagrams of our own; and addresses in frames.

use crate::discovery::HOPS;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use smoltcp::wire::{
    ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv6Packet,
    Icmpv6Repr, IpProtocol, IpRepr, Ipv4Packet, Ipv6Packet, Ipv6Repr, NdiscRepr, UdpPacket, UdpRepr,
};

/// Hops of a datagram.
const HOP_LIMIT: u8 = 64;

/// Hardware addresses of a frame: of the sender, and the one that it is for.
pub type Hardware = [EthernetAddress; 2];

/// Address of IPv4 at a place.
pub fn v4_at(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(octets.into())
}

/// Address of IPv6 at a place.
pub fn v6_at(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(octets.into())
}

/// A frame with room for so many bytes.
fn ethernet([src_addr, dst_addr]: Hardware, ethertype: EthernetProtocol, len: usize) -> Vec<u8> {
    let ethernet = EthernetRepr { src_addr, dst_addr, ethertype };
    let mut bytes = vec![0; ethernet.buffer_len() + len];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
    bytes
}

/// A message about the network, whose sum is not there yet.
pub fn message(told: NdiscRepr) -> Vec<u8> {
    let told = Icmpv6Repr::Ndisc(told);
    let mut bytes = vec![0; told.buffer_len()];
    let nobody = Ipv6Addr::UNSPECIFIED;
    told.emit(&nobody, &nobody, &mut Icmpv6Packet::new_unchecked(&mut bytes), &Default::default());
    bytes
}

/// A frame with such a message.
pub fn about_network(hardware: Hardware, from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let ip = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.len(),
        hop_limit: HOPS,
    };
    let mut bytes = ethernet(hardware, EthernetProtocol::Ipv6, ip.buffer_len() + message.len());
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet);
    packet.payload_mut().copy_from_slice(message);
    Icmpv6Packet::new_unchecked(packet.payload_mut()).fill_checksum(&from, &to);
    bytes
}

/// A frame with a message about owners of addresses of IPv4.
pub fn arp(hardware: Hardware, said: ArpRepr) -> Vec<u8> {
    let mut bytes = ethernet(hardware, EthernetProtocol::Arp, said.buffer_len());
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    said.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    bytes
}

/// Sets the hops that a packet of IP may make.
pub fn set_hops(frame: &mut [u8], hops: u8) {
    let mut ethernet = EthernetFrame::new_unchecked(frame);
    match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => {
            let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
            packet.set_hop_limit(hops);
            packet.fill_checksum();
        }
        EthernetProtocol::Ipv6 => Ipv6Packet::new_unchecked(ethernet.payload_mut()).set_hop_limit(hops),
        _ => {}
    }
}

/// A frame with a datagram. `None` if its ends are of two kinds, or if it is too long for one.
pub fn datagram(hardware: Hardware, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
    let udp = UdpRepr { src_port: from.port(), dst_port: to.port() };
    let len = udp.header_len() + payload.len();
    if from.is_ipv4() != to.is_ipv4() || len > usize::from(u16::MAX) - 20 {
        return None;
    }
    let ip = IpRepr::new(from.ip().into(), to.ip().into(), IpProtocol::Udp, len, HOP_LIMIT);
    let kind = if from.is_ipv4() { EthernetProtocol::Ipv4 } else { EthernetProtocol::Ipv6 };
    let mut bytes = ethernet(hardware, kind, ip.header_len() + len);
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ip.emit(&mut *frame.payload_mut(), &Default::default());
    let mut datagram = UdpPacket::new_unchecked(&mut frame.payload_mut()[ip.header_len()..]);
    let fill = |bytes: &mut [u8]| bytes.copy_from_slice(payload);
    udp.emit(&mut datagram, &ip.src_addr(), &ip.dst_addr(), payload.len(), fill, &Default::default());
    Some(bytes)
}
