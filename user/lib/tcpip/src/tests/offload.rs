//! Checksums that the stack leaves to its device, with the crate's own as the oracle, and segments that are cut.

use super::hostile::Random;
use super::pairs::Pair;
use super::{Host, connection};
use crate::offload::{cut, fill, is_sound};
use crate::{Kind, Refusal};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU16;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, IpRepr, Ipv4Packet,
    Ipv6Packet, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket, UdpRepr,
};
use std::vec;
use std::vec::Vec;

/// Addresses of both versions.
const ENDS: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2))],
    [
        IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0xff, 0xfe00, 1, 2)),
        IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0xff, 0xfe00, 1, 3)),
    ],
];

/// A frame as the crate makes it, whose checksums are there or not.
fn frame([from, to]: [IpAddr; 2], is_tcp: bool, payload: &[u8], sums: &ChecksumCapabilities) -> Vec<u8> {
    let segment = TcpRepr {
        src_port: 7,
        dst_port: 9,
        control: TcpControl::Fin,
        seq_number: TcpSeqNumber(-3),
        ack_number: Some(TcpSeqNumber(5)),
        window_len: 1000,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload,
    };
    let datagram = UdpRepr { src_port: 7, dst_port: 9 };
    let protocol = if is_tcp { IpProtocol::Tcp } else { IpProtocol::Udp };
    let len = if is_tcp { segment.buffer_len() } else { datagram.header_len() + payload.len() };
    let ip = IpRepr::new(from.into(), to.into(), protocol, len, 64);
    let ethertype = if from.is_ipv4() { EthernetProtocol::Ipv4 } else { EthernetProtocol::Ipv6 };
    let (src_addr, dst_addr) = (EthernetAddress([2; 6]), EthernetAddress([4; 6]));
    let mut bytes = vec![0; 14 + ip.buffer_len()];
    EthernetRepr { src_addr, dst_addr, ethertype }.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
    ip.emit(&mut bytes[14..], sums);
    let upper = &mut bytes[14 + ip.header_len()..];
    if is_tcp {
        segment.emit(&mut TcpPacket::new_unchecked(upper), &from.into(), &to.into(), sums);
    } else {
        let mut packet = UdpPacket::new_unchecked(upper);
        let put = |to: &mut [u8]| to.copy_from_slice(payload);
        datagram.emit(&mut packet, &from.into(), &to.into(), payload.len(), put, sums);
    }
    bytes
}

/// Whether the crate finds that a frame's checksums are right.
pub fn crate_finds_sound(frame: &[u8]) -> bool {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return true };
    let (from, to, protocol, upper) = match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => {
            let packet = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
            assert!(packet.verify_checksum());
            (packet.src_addr().into(), packet.dst_addr().into(), packet.next_header(), packet.payload())
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(ethernet.payload()).unwrap();
            (packet.src_addr().into(), packet.dst_addr().into(), packet.next_header(), packet.payload())
        }
        _ => return true,
    };
    match protocol {
        IpProtocol::Tcp => TcpPacket::new_checked(upper).unwrap().verify_checksum(&from, &to),
        IpProtocol::Udp => {
            let datagram = UdpPacket::new_checked(upper).unwrap();
            datagram.checksum() != 0 && datagram.verify_checksum(&from, &to)
        }
        _ => true,
    }
}

fn none() -> ChecksumCapabilities {
    let mut sums = ChecksumCapabilities::default();
    (sums.tcp, sums.udp) = (smoltcp::phy::Checksum::None, smoltcp::phy::Checksum::None);
    sums
}

/// Sums are the crate's, for all lengths and some contents; and a byte that changes is noticed.
#[test]
fn checksums_are_those_of_the_crate() {
    let mut random = Random(5);
    for len in (0..64).chain([255, 256, 1459, 1460]) {
        for (ends, is_tcp) in [(ENDS[0], true), (ENDS[0], false), (ENDS[1], true), (ENDS[1], false)] {
            let payload: Vec<u8> =
                (0..len).map(|_| [0, 0xff, random.below(256) as u8][random.below(3)]).collect();
            let expected = frame(ends, is_tcp, &payload, &ChecksumCapabilities::default());
            assert!(is_sound(&expected));
            let mut filled = frame(ends, is_tcp, &payload, &none());
            fill(&mut filled);
            assert_eq!(filled, expected, "{len} bytes, {ends:?}, TCP: {is_tcp}");
            let addresses = if ends[0].is_ipv4() { 26..34 } else { 22..54 };
            let at = match random.below(2) {
                0 if len > 0 => filled.len() - 1 - random.below(len),
                _ => addresses.start + random.below(addresses.len()),
            };
            filled[at] ^= 1 << random.below(8);
            assert!(!is_sound(&filled), "{len} bytes, byte {at}");
        }
    }
}

/// Pieces are what the card takes, and together they are what was cut.
#[test]
fn long_segments_are_cut() {
    for len in [1, 99, 100, 101, 200, 1459, 16_384] {
        let payload: Vec<u8> = (0..len).map(|at: usize| ((at * 7) >> 2) as u8).collect();
        let whole = frame(ENDS[0], true, &payload, &none());
        let (mut all, mut count) = (Vec::new(), 0);
        cut(whole, NonZeroU16::new(100).unwrap(), |mut piece| {
            fill(&mut piece);
            assert!(crate_finds_sound(&piece) && piece.len() <= 154);
            let packet = Ipv4Packet::new_checked(&piece[14..]).unwrap();
            let segment = TcpPacket::new_checked(packet.payload()).unwrap();
            assert_eq!(segment.seq_number(), TcpSeqNumber(-3) + all.len());
            assert_eq!(segment.ack_number(), TcpSeqNumber(5));
            all.extend_from_slice(segment.payload());
            assert_eq!(segment.fin(), all.len() == len, "the end is the last one's");
            count += 1;
        });
        assert_eq!((all, count), (payload, len.div_ceil(100)));
    }
    // Nothing else is cut.
    for whole in
        [frame(ENDS[1], true, &[1; 300], &none()), frame(ENDS[0], false, &[1; 300], &none()), vec![9; 3]]
    {
        let mut pieces = Vec::new();
        cut(whole.clone(), NonZeroU16::new(100).unwrap(), |piece| pieces.push(piece));
        assert_eq!(pieces, [whole]);
    }
}

/// Bytes that a wire changes do not arrive as they are, and are sent again.
#[test]
fn a_wire_that_changes_bytes_changes_none_of_a_stream() {
    let mut pair = Pair::new(0);
    let (_, client, server) = pair.connect(80);
    pair.damage = 12;
    let all: Vec<u8> = (0..50_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    let (mut written, mut read, mut bytes) = (0, Vec::new(), [0; 4096]);
    for _ in 0..100_000 {
        written += pair.hosts[0].stack.write(client, &all[written..]).unwrap_or(0);
        pair.run(1);
        match pair.hosts[1].stack.read(server, &mut bytes) {
            Ok(len) => read.extend_from_slice(&bytes[..len]),
            Err(error) => assert_eq!(error, Refusal::Again),
        }
        if read.len() == all.len() {
            break;
        }
    }
    assert!(read == all, "{} of {} bytes, or other ones", read.len(), all.len());
}

/// A writer that found no room goes on when its reader has made some, though only a reader whose buffer is crowded says so.
#[test]
fn room_is_told_of_in_time() {
    for piece in [100, 700, 1460, 4096, 9000] {
        let mut host = Host::new(21, None);
        let (_, client, server) = connection(&mut host, "127.0.0.1:80");
        let (all, mut bytes) = (vec![5; 4096], vec![0; piece]);
        let (mut written, mut read, mut turns) = (0, 0, 0);
        while read < 60_000 {
            match host.stack.write(client, &all) {
                Ok(len) => {
                    written += len;
                    host.turn(1);
                }
                Err(error) => assert_eq!(error, Refusal::Again),
            }
            let was_crowded = host.stack.is_crowded(server);
            match host.stack.read(server, &mut bytes) {
                Ok(len) => {
                    read += len;
                    if was_crowded {
                        host.turn(1);
                    }
                }
                // Nobody pokes the stack: it has its timers.
                Err(_) => {
                    host.turn(1);
                    turns += 1;
                }
            }
        }
        assert!(read <= written && turns < 100, "{turns} turns without a reason, pieces of {piece}");
    }
}

/// Datagrams by loopback have no checksums, and those to others do.
#[test]
fn sums_are_there_where_frames_leave() {
    let mut pair = Pair::new(0);
    let udp = pair.hosts[0].stack.open(1, Kind::Udp).unwrap();
    for to in ["10.1.0.2:9", "[fe80::ff:fe00:102]:9", "10.1.0.255:9"] {
        // Each frame is looked at on its way.
        pair.hosts[0].stack.send_to(udp, super::end(to), b"datagram").unwrap();
        pair.run(250);
    }
    assert!(pair.seen > 3, "{} frames", pair.seen);
}
