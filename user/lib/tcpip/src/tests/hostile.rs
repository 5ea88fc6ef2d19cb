//! Frames that are not meant well: mutations of those that two stacks exchange, and martians.

use super::groups::{received, shared};
use super::pairs::Pair;
use super::{Host, SECOND_US, end};
use crate::wire::{FRAME_MAX, is_martian};
use crate::{Kind, readiness};
use core::net::IpAddr;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, Icmpv4Packet, Icmpv6Packet, IpAddress, IpProtocol, Ipv4Packet,
    Ipv6Packet, TcpPacket, UdpPacket,
};
use std::vec::Vec;

/// Frames, plain and full.
const FRAMES: [usize; 2] = [10_000, 1_000_000];

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }
}

/// Frames of all kinds that the second of two hosts receives.
fn corpus() -> Vec<Vec<u8>> {
    let mut pair = Pair::new(0);
    let (udp, echo) =
        (pair.hosts[0].stack.open(1, Kind::Udp).unwrap(), pair.hosts[0].stack.open(1, Kind::Echo).unwrap());
    let client = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 2).unwrap();
    let mut frames = Vec::new();
    pair.hosts[0].stack.connect(client, end("10.1.0.2:80")).unwrap();
    for step in 0..60 {
        let first = &mut pair.hosts[0].stack;
        let _ = first.write(client, b"some bytes of a stream");
        let _ = first.send_to(udp, end("10.1.0.2:9"), b"a datagram");
        let _ = first.send_to(udp, end("[fe80::ff:fe00:102]:9"), b"another");
        for to in ["224.0.0.251:5353", "[ff02::fb]:5353", "10.1.0.2:5353"] {
            let _ = first.send_to(udp, end(to), b"one for several");
        }
        let _ = first.ask_echo(echo, [10, 1, 0, 2].into(), step, b"echo");
        let _ = first.ask_echo(echo, "fe80::ff:fe00:102".parse::<IpAddr>().unwrap(), step, b"echo");
        for from in 0..2 {
            let now_us = pair.hosts[from].now_us;
            pair.hosts[from].now_us += SECOND_US / 10;
            pair.hosts[from].stack.turn(now_us);
            while let Some(frame) = pair.hosts[from].stack.pop() {
                pair.hosts[1 - from].stack.push(&frame);
                if from == 0 {
                    frames.push(frame);
                }
            }
        }
        let _ = pair.hosts[1].stack.accept(listener);
    }
    assert!(frames.len() > 60, "{} frames", frames.len());
    frames
}

/// Repairs the sums of a frame, so that mutations come further.
pub fn repair(frame: &mut [u8]) {
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else { return };
    match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => {
            let Ok(mut ip) = Ipv4Packet::new_checked(ethernet.payload_mut()) else { return };
            ip.fill_checksum();
            let (from, to, protocol) = (ip.src_addr(), ip.dst_addr(), ip.next_header());
            repair_inside(protocol, (from.into(), to.into()), ip.payload_mut());
        }
        EthernetProtocol::Ipv6 => {
            let Ok(mut ip) = Ipv6Packet::new_checked(ethernet.payload_mut()) else { return };
            let (from, to, mut protocol) = (ip.src_addr(), ip.dst_addr(), ip.next_header());
            let mut inside = ip.payload_mut();
            if protocol == IpProtocol::HopByHop
                && let Some(len) = inside.get(1).map(|len| (usize::from(*len) + 1) * 8)
                && len <= inside.len()
            {
                protocol = inside[0].into();
                let whole = inside;
                inside = &mut whole[len..];
            }
            repair_inside(protocol, (from.into(), to.into()), inside);
        }
        _ => {}
    }
}

/// Repairs the sum of what is inside a packet with these addresses.
fn repair_inside(protocol: IpProtocol, (from, to): (IpAddress, IpAddress), bytes: &mut [u8]) {
    match (protocol, from, to) {
        (IpProtocol::Tcp, ..) => {
            if let Ok(mut packet) = TcpPacket::new_checked(bytes) {
                packet.fill_checksum(&from, &to);
            }
        }
        (IpProtocol::Udp, ..) => {
            if let Ok(mut packet) = UdpPacket::new_checked(bytes) {
                packet.fill_checksum(&from, &to);
            }
        }
        (IpProtocol::Icmp, ..) => {
            if let Ok(mut packet) = Icmpv4Packet::new_checked(bytes) {
                packet.fill_checksum();
            }
        }
        (IpProtocol::Icmpv6, IpAddress::Ipv6(from), IpAddress::Ipv6(to)) => {
            if let Ok(mut packet) = Icmpv6Packet::new_checked(bytes) {
                packet.fill_checksum(&from, &to);
            }
        }
        _ => {}
    }
}

/// Sums of all kinds of frames are repaired, those of IPv6 included.
#[test]
fn sums_are_repaired() {
    let mut kinds = std::collections::BTreeSet::new();
    for frame in corpus() {
        // Where the packet ends that is inside, its protocol, and where that has its sum.
        let (mut at, mut protocol) = match frame[12..14] {
            [8, 0] => (34, frame[23]),
            [0x86, 0xdd] => (54, frame[20]),
            _ => continue,
        };
        if protocol == 0 {
            (protocol, at) = (frame[at], at + 8);
        }
        let sum = match protocol {
            1 | 58 => 2,
            6 => 16,
            17 => 6,
            _ => continue,
        };
        let mut changed = frame.clone();
        changed[at + sum] ^= 0x5a;
        repair(&mut changed);
        assert!(changed == frame, "protocol {protocol}");
        kinds.insert((frame[12], protocol));
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), [(8, 1), (8, 6), (8, 17), (0x86, 17), (0x86, 58)]);
}

fn mutate(random: &mut Random, frame: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let len = frame.len();
        match random.below(6) {
            0 => frame.truncate(random.below(len + 1)),
            1 => frame.extend((0..random.below(64)).map(|at| at as u8)),
            _ if len > 0 => {
                // Most mutations are in headers.
                let at = random.below(len.min(80));
                frame[at] = [0, 1, 0x7f, 0xff, random.below(256) as u8][random.below(5)];
            }
            _ => {}
        }
    }
    if random.below(2) == 0 {
        repair(frame);
    }
}

/// Whatever comes, the stack goes on: it answers others, keeps its limits, and sends nothing of the loopback network.
#[test]
fn mutated_frames_do_no_harm() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let (corpus, mut random) = (corpus(), Random(3));
    let mut pair = Pair::new(0);
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 4).unwrap();
    let udp = pair.hosts[1].stack.open(1, Kind::Udp).unwrap();
    pair.hosts[1].stack.bind(udp, end("0.0.0.0:9")).unwrap();
    let members = [1, 2].map(|owner| shared(&mut pair.hosts[1], owner, "0.0.0.0:5353"));
    for (id, group) in members.into_iter().zip(["224.0.0.251", "ff02::fb"]) {
        pair.hosts[1].stack.join(id, group.parse::<IpAddr>().unwrap()).unwrap();
    }
    let (mut accepted, mut datagrams, mut wide_ones) = (0, 0, 0);
    let (mut dealt, mut bytes) = ([0; 2], [0; 2048]);
    for number in 0..FRAMES[usize::from(full)] {
        if number % 500 == 0 {
            // Somebody means it well.
            let friend = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
            pair.hosts[0].stack.connect(friend, end("10.1.0.2:80")).unwrap();
            pair.run(150);
            let _ = pair.hosts[0].stack.write(friend, b"hello");
            pair.run(10);
            pair.hosts[0].stack.close(friend);
        }
        let mut frame = corpus[random.below(corpus.len())].clone();
        mutate(&mut random, &mut frame);
        let host = &mut pair.hosts[1];
        host.stack.push(&frame);
        host.now_us += random.below(20_000) as u64;
        host.stack.turn(host.now_us);
        while let Some(frame) = host.stack.pop() {
            assert!(frame.len() <= FRAME_MAX && !is_martian(&frame), "frame {number}");
        }
        if let Ok((from, _)) = host.stack.receive_from(udp, &mut bytes) {
            datagrams += 1;
            wide_ones += usize::from(from.is_ipv6());
        }
        for (id, dealt) in members.iter().zip(&mut dealt) {
            *dealt += received(host, *id).len();
        }
        if let Ok(id) = host.stack.accept(listener) {
            accepted += 1;
            let _ = host.stack.read(id, &mut bytes);
            host.stack.close(id);
        }
        assert!(host.stack.kept() < 64, "frame {number}: {} sockets", host.stack.kept());
    }
    assert!(datagrams > 10 && accepted > 0, "{datagrams} datagrams and {accepted} connections came through");
    assert!(wide_ones > 10, "{wide_ones} datagrams of IPv6 came through");
    assert!(dealt.iter().all(|count| *count > 10), "{dealt:?} datagrams came through");
    still_answers(&mut pair);
}

/// The other host finds it as it was. It may have been told lies about who has which address, which it forgets in a minute.
fn still_answers(pair: &mut Pair) {
    pair.hosts[0].now_us = pair.hosts[1].now_us;
    pair.run(9000);
    let echo = pair.hosts[0].stack.open(7, Kind::Echo).unwrap();
    for number in 0..10 {
        let _ = pair.hosts[0].stack.ask_echo(echo, [10, 1, 0, 2].into(), number, b"still there?");
        pair.run(200);
        if pair.hosts[0].stack.ready(echo).unwrap() & readiness::READABLE != 0 {
            return;
        }
    }
    panic!("it does not answer");
}

/// Frames with addresses that are on no wire are not heard, wherever these are: those of loopback, and those of IPv6 that stand for some of IPv4.
#[test]
fn martians_are_dropped() {
    const V4: &[&[u8]] = &[&[127, 0, 0, 1], &[127, 9, 9, 9]];
    const V6: &[&[u8]] = &[
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 9],
    ];
    let mut host = Host::new(1, None);
    host.stack.set_link(Some([2, 0, 0, 0, 1, 2]));
    let mut kinds = [0; 3];
    for mut frame in corpus() {
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 1, 2]);
        // Kind of the frame, addresses, and places of them.
        let (kind, locals, places) = match frame[12..14] {
            [8, 0] => (0, V4, [26, 30]),
            [8, 6] => (1, V4, [28, 38]),
            _ => (2, V6, [22, 38]),
        };
        kinds[kind] += 1;
        assert!(!is_martian(&frame));
        for (at, local) in places.iter().flat_map(|at| locals.iter().map(move |local| (*at, *local))) {
            let mut martian = frame.clone();
            martian[at..at + local.len()].copy_from_slice(local);
            assert!(is_martian(&martian), "{at} {local:?}");
            let before = host.stack.status().counts.dropped;
            host.stack.push(&martian);
            assert_eq!(host.stack.status().counts.dropped, before + 1);
        }
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}
