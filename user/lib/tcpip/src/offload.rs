//! Offload: work that the stack leaves to its device, since frames that stay in the machine do not need it. Checksums of TCP and UDP are computed and checked
//! only for frames of the card; and a segment of TCP may be as long as an IP packet can be, and is cut when it goes to the card.
//!
//! The surprise is what is not checked: a frame in which the stack will find neither TCP nor UDP, since the stack drops it, or checks it itself.

use crate::wire::{HEADER, IPV4, IPV6};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::num::NonZeroU16;
use core::ops::Range;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, Ipv6ExtHeader, Ipv6ExtHeaderRepr, Ipv6Packet,
    TcpPacket, UdpPacket,
};

/// Bytes of a frame that the stack sends, at most: the header of Ethernet and the longest packet of IP.
pub const WHOLE_MAX: usize = HEADER + u16::MAX as usize;

/// Packet above IP, as the stack will find it.
pub(crate) struct Upper {
    pub from: IpAddr,
    pub to: IpAddr,
    pub protocol: IpProtocol,
    /// Place in the frame.
    pub at: Range<usize>,
}

/// Says whether a frame may have a packet of a protocol above IP, the one over IPv4 or the one over IPv6. Most frames have not, and cost no more than this look at three of their bytes.
pub(crate) fn may_have(frame: &[u8], [over_four, over_six]: [IpProtocol; 2]) -> bool {
    let Some(kind) = frame.get(12..HEADER) else { return false };
    let is = |at: usize, protocol: IpProtocol| frame.get(HEADER + at) == Some(&u8::from(protocol));
    if kind == IPV4 {
        is(9, over_four)
    } else {
        // Options may come before it.
        kind == IPV6 && (is(6, over_six) || is(6, IpProtocol::HopByHop))
    }
}

impl Upper {
    /// That of a frame. `None` if the stack will find none.
    pub fn of(frame: &[u8]) -> Option<Upper> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        match ethernet.ethertype() {
            EthernetProtocol::Ipv4 => {
                let packet = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
                let at = HEADER + usize::from(packet.header_len())..HEADER + usize::from(packet.total_len());
                let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
                Some(Upper { from, to, protocol: packet.next_header(), at })
            }
            EthernetProtocol::Ipv6 => {
                let packet = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
                let mut at = HEADER + packet.header_len()..HEADER + packet.total_len();
                let mut protocol = packet.next_header();
                if protocol == IpProtocol::HopByHop {
                    let header = Ipv6ExtHeader::new_checked(packet.payload()).ok()?;
                    let header = Ipv6ExtHeaderRepr::parse(&header).ok()?;
                    at.start += header.header_len() + header.data.len();
                    protocol = header.next_header;
                }
                Some(Upper { from: packet.src_addr().into(), to: packet.dst_addr().into(), protocol, at })
            }
            _ => None,
        }
    }

    /// Sum of the packet and of the addresses that belong to it: all ones if its checksum is right.
    fn sum(&self, bytes: &[u8]) -> u16 {
        let protocol = u16::from(u8::from(self.protocol)).to_be();
        // No packet of IP is longer than a word of 32 bits can say.
        let length = (bytes.len() as u32).to_be();
        let total = [self.from, self.to].iter().fold(0, |total, address| match address {
            IpAddr::V4(address) => add_all(total, &address.octets()),
            IpAddr::V6(address) => add_all(total, &address.octets()),
        });
        folded(add_all(add(add(total, protocol.into()), length.into()), bytes))
    }
}

/// Adds with the carry at the other end, as checksums do: so the order of a word's bytes does not matter before the end.
fn add(total: u64, word: u64) -> u64 {
    let (total, carries) = total.overflowing_add(word);
    total + u64::from(carries)
}

/// Adds bytes, eight at a time; zeroes are added to the last.
fn add_all(total: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let total = words.iter().fold(total, |total, word| add(total, u64::from_ne_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    add(total, u64::from_ne_bytes(last))
}

/// Sum of the four parts of a word.
fn folded(mut total: u64) -> u16 {
    while total > u16::MAX.into() {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Fills in the checksums that the stack has left to its device.
pub fn fill(frame: &mut [u8]) {
    let Some(upper) = Upper::of(frame) else { return };
    let Some(bytes) = frame.get_mut(upper.at.clone()) else { return };
    if upper.protocol == IpProtocol::Tcp
        && let Ok(mut segment) = TcpPacket::new_checked(&mut *bytes)
    {
        segment.set_checksum(0);
        let sum = !upper.sum(bytes);
        TcpPacket::new_unchecked(bytes).set_checksum(u16::from_be(sum));
    } else if upper.protocol == IpProtocol::Udp
        && let Ok(mut datagram) = UdpPacket::new_checked(&mut *bytes)
    {
        datagram.set_checksum(0);
        let len = usize::from(datagram.len());
        // 0 would say that there is none; all ones are the same number.
        let sum = match !upper.sum(&bytes[..len]) {
            0 => u16::MAX,
            sum => sum,
        };
        UdpPacket::new_unchecked(bytes).set_checksum(u16::from_be(sum));
    }
}

/// Whether the checksum of TCP or UDP in a frame is right. True if there is none: over IPv4 a datagram needs none.
pub fn is_sound(frame: &[u8]) -> bool {
    let Some(upper) = Upper::of(frame) else { return true };
    let Some(bytes) = frame.get(upper.at.clone()) else { return true };
    match upper.protocol {
        IpProtocol::Tcp => TcpPacket::new_checked(bytes).is_err() || upper.sum(bytes) == u16::MAX,
        IpProtocol::Udp => UdpPacket::new_checked(bytes).map_or(true, |datagram| {
            let has_none = datagram.checksum() == 0 && upper.from.is_ipv4();
            has_none || upper.sum(&bytes[..usize::from(datagram.len())]) == u16::MAX
        }),
        _ => true,
    }
}

/// Cuts a segment of TCP over IPv4 into some of at most `size` bytes, without their checksums. What the segment says of its end is said of the last one's.
/// A frame that is none is one piece.
pub fn cut(frame: Vec<u8>, size: NonZeroU16, mut send: impl FnMut(Vec<u8>)) {
    let found = Upper::of(&frame).filter(|upper| upper.protocol == IpProtocol::Tcp && upper.from.is_ipv4());
    let parts = found.and_then(|Upper { at, .. }| {
        let segment = TcpPacket::new_checked(frame.get(at.clone())?).ok()?;
        let start = at.start + usize::from(segment.header_len());
        Some((at.start, segment.seq_number(), frame.get(..start)?, frame.get(start..at.end)?))
    });
    let Some((tcp, first, headers, payload)) = parts.filter(|parts| !parts.3.is_empty()) else {
        return send(frame);
    };
    let size = usize::from(size.get());
    for (number, piece) in payload.chunks(size).enumerate() {
        let mut all = Vec::with_capacity(headers.len() + piece.len());
        all.extend_from_slice(headers);
        all.extend_from_slice(piece);
        let len = (all.len() - HEADER) as u16;
        let mut packet = Ipv4Packet::new_unchecked(&mut all[HEADER..]);
        packet.set_total_len(len);
        packet.fill_checksum();
        let mut segment = TcpPacket::new_unchecked(&mut all[tcp..]);
        segment.set_seq_number(first + number * size);
        if (number + 1) * size < payload.len() {
            segment.set_fin(false);
            segment.set_psh(false);
        }
        send(all);
    }
}
