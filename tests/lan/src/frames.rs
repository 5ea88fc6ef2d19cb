//! Frames that this machine sends, and datagrams that it gets.

use crate::HARDWARE;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv6Packet, IpProtocol, IpRepr,
    Ipv6Packet, Ipv6Repr, UdpPacket, UdpRepr,
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

/// A datagram that has come.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Address and port that it comes from.
    pub from: SocketAddr,
    /// Address and port that it is for.
    pub to: SocketAddr,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// That of a packet between two addresses.
    pub fn of(from: IpAddr, to: IpAddr, packet: &'a [u8]) -> Option<Datagram<'a>> {
        let udp = UdpPacket::new_checked(packet).ok()?;
        let (from, to) = (SocketAddr::new(from, udp.src_port()), SocketAddr::new(to, udp.dst_port()));
        Some(Datagram { from, to, payload: udp.payload() })
    }
}

/// A frame with a packet between two addresses of one kind, which is filled in.
pub fn packet(
    hardware: [u8; 6],
    (from, to): (IpAddr, IpAddr),
    protocol: IpProtocol,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let ip = IpRepr::new(from.into(), to.into(), protocol, len, 64);
    let mut bytes = vec![0; ip.header_len() + len];
    ip.emit(&mut bytes, &ChecksumCapabilities::default());
    fill(&mut bytes[ip.header_len()..]);
    let kind = if from.is_ipv4() { EthernetProtocol::Ipv4 } else { EthernetProtocol::Ipv6 };
    ethernet(EthernetAddress(hardware), kind, &bytes)
}

/// A frame with a datagram.
pub fn datagram(hardware: [u8; 6], from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let udp = UdpRepr { src_port: from.port(), dst_port: to.port() };
    let len = udp.header_len() + payload.len();
    packet(hardware, (from.ip(), to.ip()), IpProtocol::Udp, len, |bytes| {
        let mut datagram = UdpPacket::new_unchecked(bytes);
        let (from, to) = (from.ip().into(), to.ip().into());
        let fill = |bytes: &mut [u8]| bytes.copy_from_slice(payload);
        udp.emit(&mut datagram, &from, &to, payload.len(), fill, &ChecksumCapabilities::default());
    })
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
