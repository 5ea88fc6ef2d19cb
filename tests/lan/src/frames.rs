//! Frames that this machine sends, and datagrams that it gets.

use crate::HARDWARE;
use core::net::{Ipv4Addr, Ipv6Addr};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv6Packet, IpProtocol, Ipv4Packet,
    Ipv4Repr, Ipv6Packet, Ipv6Repr, UdpPacket, UdpRepr,
};

/// A frame with these bytes.
pub fn ethernet(to: EthernetAddress, kind: EthernetProtocol, payload: &[u8]) -> Vec<u8> {
    let ethernet = EthernetRepr { src_addr: EthernetAddress(HARDWARE), dst_addr: to, ethertype: kind };
    let mut bytes = vec![0; ethernet.buffer_len() + payload.len()];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    frame.payload_mut().copy_from_slice(payload);
    bytes
}

/// A datagram of IPv4 that has come.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Address and port that it comes from.
    pub from: (Ipv4Addr, u16),
    /// Address and port that it is for.
    pub to: (Ipv4Addr, u16),
    /// Its bytes.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// That of a packet.
    pub fn of(packet: &Ipv4Packet<&'a [u8]>) -> Option<Datagram<'a>> {
        let udp = UdpPacket::new_checked(packet.payload()).ok()?;
        Some(Datagram {
            from: (packet.src_addr(), udp.src_port()),
            to: (packet.dst_addr(), udp.dst_port()),
            payload: udp.payload(),
        })
    }
}

/// A frame with a datagram of IPv4.
pub fn datagram(
    hardware: [u8; 6],
    (src_addr, src_port): (Ipv4Addr, u16),
    (dst_addr, dst_port): (Ipv4Addr, u16),
    payload: &[u8],
) -> Vec<u8> {
    let sums = ChecksumCapabilities::default();
    let udp = UdpRepr { src_port, dst_port };
    let payload_len = udp.header_len() + payload.len();
    let ip = Ipv4Repr { src_addr, dst_addr, next_header: IpProtocol::Udp, payload_len, hop_limit: 64 };
    let mut bytes = vec![0; ip.buffer_len() + payload_len];
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    ip.emit(&mut packet, &sums);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    let (from, to) = (src_addr.into(), dst_addr.into());
    udp.emit(&mut datagram, &from, &to, payload.len(), |bytes| bytes.copy_from_slice(payload), &sums);
    ethernet(EthernetAddress(hardware), EthernetProtocol::Ipv4, &bytes)
}

/// A frame with a message of ICMP for IPv6, whose checksum is filled in.
pub fn icmp_v6(
    to: EthernetAddress,
    (src_addr, dst_addr): (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    mut message: Vec<u8>,
) -> Vec<u8> {
    Icmpv6Packet::new_unchecked(&mut message).fill_checksum(&src_addr, &dst_addr);
    let payload_len = message.len();
    let ip = Ipv6Repr { src_addr, dst_addr, next_header: IpProtocol::Icmpv6, payload_len, hop_limit };
    let mut bytes = vec![0; ip.buffer_len() + payload_len];
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    ip.emit(&mut packet);
    packet.payload_mut().copy_from_slice(&message);
    ethernet(to, EthernetProtocol::Ipv6, &bytes)
}
