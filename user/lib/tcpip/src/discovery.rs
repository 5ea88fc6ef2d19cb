//! Messages about the network (neighbour discovery, IPv6), read with what holds for all of them: nobody has forwarded them, they are whole, and their sums are right.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv6Message, Icmpv6Packet, IpProtocol, Ipv6Packet,
};

/// Hops of a message that nobody has forwarded.
pub const HOPS: u8 = 255;

/// Address of all machines of a network.
pub const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Address of the machines whose addresses of IPv6 end like this one, by which they are asked for (RFC 4291: solicited-node multicast).
pub fn group(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// Hardware address of a group of IPv6.
pub fn group_hardware(group: Ipv6Addr) -> EthernetAddress {
    let [.., a, b, c, d] = group.octets();
    EthernetAddress([0x33, 0x33, a, b, c, d])
}

/// A message, and where it comes from and goes to.
pub struct Message<'a> {
    /// Hardware addresses: of the sender, and the one that it is for.
    pub hardware: [EthernetAddress; 2],
    /// Address that it comes from.
    pub from: Ipv6Addr,
    /// Address that it is for.
    pub to: Ipv6Addr,
    /// Kind.
    pub kind: Icmpv6Message,
    /// Its bytes, from the kind on.
    pub bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// That of a frame. `None` if there is none, or if it should not be believed.
    pub fn of(frame: &'a [u8]) -> Option<Message<'a>> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        if ethernet.ethertype() != EthernetProtocol::Ipv6 {
            return None;
        }
        let packet = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
        if packet.version() != 6 || packet.hop_limit() != HOPS || packet.next_header() != IpProtocol::Icmpv6 {
            return None;
        }
        let (from, to, bytes) = (packet.src_addr(), packet.dst_addr(), packet.payload());
        let message = Icmpv6Packet::new_checked(bytes).ok()?;
        if message.msg_code() != 0 || !message.verify_checksum(&from, &to) {
            return None;
        }
        let hardware = [ethernet.src_addr(), ethernet.dst_addr()];
        Some(Message { hardware, from, to, kind: message.msg_type(), bytes })
    }
}

/// Options behind the head of a message, each with its kind and its length in front. `None` if they are not orderly.
pub fn options(mut rest: &[u8]) -> Option<Vec<&[u8]>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        // Kind, and length in words of eight bytes.
        let &[_, words, ..] = rest else { return None };
        let option;
        (option, rest) = rest.split_at_checked(8 * usize::from(words)).filter(|_| words > 0)?;
        all.push(option);
    }
    Some(all)
}
