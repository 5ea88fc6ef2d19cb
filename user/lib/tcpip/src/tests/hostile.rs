//! Frames that are not meant well: mutations of those that two stacks exchange, and martians.

use super::groups::{received, shared};
use super::pairs::Pair;
use super::{Host, SECOND_US, end};
use crate::wire::{FRAME_MAX, is_martian};
use crate::{Kind, readiness};
use core::net::IpAddr;
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

/// Repairs the sums of a frame with IPv4, so that mutations come further.
pub fn repair(frame: &mut [u8]) {
    use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, TcpPacket, UdpPacket};
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else { return };
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return;
    }
    let Ok(mut ip) = Ipv4Packet::new_checked(ethernet.payload_mut()) else { return };
    ip.fill_checksum();
    let (from, to, protocol) = (ip.src_addr().into(), ip.dst_addr().into(), ip.next_header());
    match protocol {
        IpProtocol::Tcp => {
            if let Ok(mut packet) = TcpPacket::new_checked(ip.payload_mut()) {
                packet.fill_checksum(&from, &to);
            }
        }
        IpProtocol::Udp => {
            if let Ok(mut packet) = UdpPacket::new_checked(ip.payload_mut()) {
                packet.fill_checksum(&from, &to);
            }
        }
        _ => {}
    }
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
    let (mut accepted, mut datagrams, mut dealt, mut bytes) = (0, 0, [0; 2], [0; 2048]);
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
        datagrams += usize::from(host.stack.receive_from(udp, &mut bytes).is_ok());
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
