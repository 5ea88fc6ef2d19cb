//! A host that sends too much, or in somebody else's name, takes nothing from others.

use super::pairs::Pair;
use super::{Host, SECOND_US, end};
use crate::sockets::STREAM_BYTES;
use crate::waiters::OF_ONE_MAX;
use crate::{Fallback, Kind, Refusal, State, Waiters, readiness};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags,
    NdiscRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};
use std::vec;
use std::vec::Vec;

/// Hardware addresses: of the host under attack, and of the attacker.
const OWN: EthernetAddress = EthernetAddress([2, 0, 0, 0, 1, 2]);
/// See [`OWN`].
const ATTACKER: EthernetAddress = EthernetAddress([2, 0, 0, 0, 6, 6]);

fn ethernet(ethertype: EthernetProtocol, len: usize) -> Vec<u8> {
    let header = EthernetRepr { src_addr: ATTACKER, dst_addr: OWN, ethertype };
    let mut bytes = vec![0; header.buffer_len() + len];
    header.emit(&mut EthernetFrame::new_unchecked(&mut bytes));
    bytes
}

/// The first segment of a connection.
pub fn syn(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let tcp = TcpRepr {
        src_port: from.port(),
        dst_port: to.port(),
        control: TcpControl::Syn,
        seq_number: TcpSeqNumber(7),
        ack_number: None,
        window_len: 1000,
        window_scale: None,
        max_seg_size: Some(536),
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let ip = Ipv4Repr {
        src_addr: *from.ip(),
        dst_addr: *to.ip(),
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    };
    let mut bytes = ethernet(EthernetProtocol::Ipv4, ip.buffer_len() + tcp.buffer_len());
    let sums = ChecksumCapabilities::default();
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes[14..]);
    ip.emit(&mut packet, &sums);
    let mut segment = TcpPacket::new_unchecked(packet.payload_mut());
    tcp.emit(&mut segment, &(*from.ip()).into(), &(*to.ip()).into(), &sums);
    bytes
}

/// Somebody says that he has an address of IPv4.
fn arp(operation: ArpOperation, address: Ipv4Addr) -> Vec<u8> {
    let arp = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: ATTACKER,
        source_protocol_addr: address,
        target_hardware_addr: OWN,
        target_protocol_addr: address,
    };
    let mut bytes = ethernet(EthernetProtocol::Arp, arp.buffer_len());
    arp.emit(&mut ArpPacket::new_unchecked(&mut bytes[14..]));
    bytes
}

/// Somebody says that he has an address of IPv6.
fn neighbour(from: Ipv6Addr, address: Ipv6Addr) -> Vec<u8> {
    let told = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags: NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
        target_addr: address,
        lladdr: Some(ATTACKER.into()),
    });
    let ip = Ipv6Repr {
        src_addr: from,
        dst_addr: address,
        next_header: IpProtocol::Icmpv6,
        payload_len: told.buffer_len(),
        hop_limit: 255,
    };
    let mut bytes = ethernet(EthernetProtocol::Ipv6, ip.buffer_len() + told.buffer_len());
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes[14..]);
    ip.emit(&mut packet);
    let mut message = Icmpv6Packet::new_unchecked(packet.payload_mut());
    told.emit(&from, &address, &mut message, &Default::default());
    bytes
}

/// The host under attack.
pub fn host() -> Host {
    let fallback = Fallback { address: (Ipv4Addr::new(10, 1, 0, 2), 24), router: None };
    let mut host = Host::new(2, Some(fallback));
    host.stack.set_link(Some(OWN.0));
    host.turn(20);
    while host.stack.pop().is_some() {}
    assert_eq!(host.stack.address_at(0), Some((IpAddr::from([10, 1, 0, 2]), 24)));
    host
}

/// A host that claims an address of this machine gets nothing of what the machine sends to itself.
#[test]
fn nobody_else_has_our_addresses() {
    let mut host = host();
    let (own, own_v6) = (Ipv4Addr::new(10, 1, 0, 2), "fe80::ff:fe00:102".parse::<Ipv6Addr>().unwrap());
    let stranger: Ipv6Addr = "fe80::ff:fe00:606".parse().unwrap();
    let echo = host.stack.open(1, Kind::Echo).unwrap();
    for number in 0..3 {
        let before = host.stack.status().counts.dropped;
        for frame in [
            arp(ArpOperation::Request, own),
            arp(ArpOperation::Reply, own),
            neighbour(stranger, own_v6),
            neighbour(own_v6, own_v6),
        ] {
            host.stack.push(&frame);
        }
        assert_eq!(host.stack.status().counts.dropped, before + 4);
        host.turn(4);
        for address in [IpAddr::from(own), IpAddr::from(own_v6)] {
            host.stack.ask_echo(echo, address, number, b"to myself").unwrap();
            host.turn(4);
            while let Some(frame) = host.stack.pop() {
                assert_ne!(frame[..6], ATTACKER.0, "{address}: it was sent to somebody else");
            }
            let answer = host.stack.echoed(echo, &mut [0; 99]);
            assert_eq!(answer, Ok((address, number, 9)));
        }
    }
}

/// Nor does a listener get a connection with itself.
#[test]
fn nobody_else_connects_in_our_name() {
    let mut host = host();
    let listener = host.stack.listen(1, end("0.0.0.0:80"), 2).unwrap();
    let own = SocketAddrV4::new([10, 1, 0, 2].into(), 80);
    for _ in 0..3 {
        host.stack.push(&syn(own, own));
        host.turn(10);
        assert_eq!(host.stack.accept(listener), Err(Refusal::Again));
    }
    // Programs in this machine may still connect by the address.
    let client = host.stack.open(1, Kind::Tcp).unwrap();
    host.stack.connect(client, end("10.1.0.2:80")).unwrap();
    host.turn(10);
    assert!(host.stack.accept(listener).is_ok());
}

/// Connections that are begun by the hundred and never made keep a listener for no more than a moment, and others' not at all.
#[test]
fn a_flood_of_beginnings_passes() {
    let mut pair = Pair::new(0);
    let flooded = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 4).unwrap();
    let other = pair.hosts[1].stack.listen(2, end("0.0.0.0:81"), 1).unwrap();
    // The two know each other.
    let (_, _, _) = pair.connect(7);
    for number in 0..500u16 {
        let from = SocketAddrV4::new(Ipv4Addr::new(99, 0, (number >> 8) as u8, number as u8), 1000 + number);
        pair.hosts[1].stack.push(&syn(from, SocketAddrV4::new([10, 1, 0, 2].into(), 80)));
        pair.run(1);
        if number == 250 {
            let client = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
            pair.hosts[0].stack.connect(client, end("10.1.0.2:81")).unwrap();
            pair.run(10);
            assert!(pair.hosts[1].stack.accept(other).is_ok());
        }
    }
    pair.run(100);
    let client = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
    pair.hosts[0].stack.connect(client, end("10.1.0.2:80")).unwrap();
    pair.run(10);
    assert_eq!(pair.hosts[0].stack.state(client).unwrap().0, State::Open);
    assert!(pair.hosts[1].stack.accept(flooded).is_ok());
}

/// More connections at once than a listener has places for: nobody is refused, and those that had no place come when there is one. Where nobody listens, who connects
/// hears so at once.
#[test]
fn who_comes_with_many_others_waits() {
    let mut pair = Pair::new(0);
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 2).unwrap();
    let (_, _, _) = pair.connect(7);
    let clients: Vec<_> = (0..8).map(|_| pair.hosts[0].stack.open(3, Kind::Tcp).unwrap()).collect();
    for &client in &clients {
        pair.hosts[0].stack.connect(client, end("10.1.0.2:80")).unwrap();
    }
    let nowhere = pair.hosts[0].stack.open(3, Kind::Tcp).unwrap();
    pair.hosts[0].stack.connect(nowhere, end("10.1.0.2:82")).unwrap();
    let mut accepted = 0;
    for step in 0..3000 {
        pair.run(1);
        if step == 10 {
            assert_eq!(pair.hosts[0].stack.state(nowhere).unwrap().0, State::Closed);
        }
        for &client in &clients {
            assert_ne!(pair.hosts[0].stack.state(client).unwrap().0, State::Closed);
        }
        if step > 20 {
            accepted += usize::from(pair.hosts[1].stack.accept(listener).is_ok());
        }
    }
    assert_eq!(accepted, clients.len());
}

/// A slow host has time, as long as nobody else wants the place.
#[test]
fn a_slow_beginning_has_time() {
    let mut pair = Pair::new(0);
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 2).unwrap();
    let (_, _, _) = pair.connect(7);
    let client = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
    pair.hosts[0].stack.connect(client, end("10.1.0.2:80")).unwrap();
    let mut to = Vec::new();
    // The answer is five seconds on its way.
    for step in 0..500 {
        for from in 0..2 {
            let now_us = pair.hosts[from].now_us;
            pair.hosts[from].now_us += SECOND_US / 100;
            pair.hosts[from].stack.turn(now_us);
        }
        while let Some(frame) = pair.hosts[0].stack.pop() {
            if step == 0 {
                pair.hosts[1].stack.push(&frame);
            }
        }
        while let Some(frame) = pair.hosts[1].stack.pop() {
            to.push(frame);
        }
    }
    to.iter().for_each(|frame| pair.hosts[0].stack.push(frame));
    pair.run(10);
    assert!(pair.hosts[1].stack.accept(listener).is_ok());
}

/// Turns a millisecond apart, so that nothing is over by time alone.
pub fn step(host: &mut Host, turns: usize) {
    for _ in 0..turns {
        host.stack.turn(host.now_us);
        host.now_us += SECOND_US / 1000;
    }
}

/// Bytes that a client has written before it went arrive, however many connections another client lets go.
#[test]
fn who_lets_go_of_many_connections_takes_nothing_from_others() {
    let mut host = Host::new(3, None);
    let (_, slow, server) = super::connection(&mut host, "127.0.0.1:80");
    let all: Vec<u8> = (0..2 * STREAM_BYTES).map(|at| (at / 3) as u8).collect();
    let mut written = 0;
    while written < all.len() {
        written += host.stack.write(slow, &all[written..]).unwrap_or(0);
        step(&mut host, 20);
    }
    host.stack.close(slow);
    let greedy = host.stack.listen(3, end("127.0.0.1:81"), 4).unwrap();
    for round in 0..60 {
        // Some never had a connection, others have one, with bytes that nobody reads.
        let client = host.stack.open(3, Kind::Tcp).unwrap();
        if round % 2 == 0 {
            host.stack.connect(client, end("127.0.0.1:81")).unwrap();
            step(&mut host, 6);
            let server = host.stack.accept(greedy).unwrap();
            while host.stack.ready(client).unwrap() & readiness::WRITABLE != 0 {
                host.stack.write(client, &[0; 4096]).unwrap();
                step(&mut host, 4);
            }
            host.stack.close(client);
            host.stack.close(server);
        } else {
            host.stack.close(client);
        }
    }
    let (mut read, mut bytes) = (Vec::new(), [0; 4096]);
    for _ in 0..400 {
        match host.stack.read(server, &mut bytes) {
            Ok(0) => break,
            Ok(len) => read.extend_from_slice(&bytes[..len]),
            Err(error) => assert_eq!(error, Refusal::Again),
        }
        step(&mut host, 5);
    }
    assert!(read == all, "{} of {} bytes", read.len(), all.len());
}

/// Threads that wait for what never comes, and have perhaps ended, keep nobody else from waiting.
#[test]
fn who_waits_for_ever_keeps_nobody_out() {
    let mut waiters = Waiters::default();
    for who in 0..1000 {
        let outcome = waiters.add(who, 5, readiness::READABLE, u64::MAX);
        assert_eq!(outcome, if who < OF_ONE_MAX { Ok(()) } else { Err(Refusal::Limit) });
        // Nothing and everything are no events: nobody would be answered.
        assert_eq!(waiters.add(who + 1000, 5, 0, u64::MAX), Err(Refusal::Bad));
        assert_eq!(waiters.add(who + 1000, 5, 4, u64::MAX), Err(Refusal::Bad));
    }
    assert_eq!(waiters.count(), OF_ONE_MAX);
    assert_eq!(waiters.add(2000, 6, readiness::READABLE, 70), Ok(()));
    // A program that asks again waits once.
    assert_eq!(waiters.add(2000, 6, readiness::READABLE, 80), Ok(()));
    assert_eq!(waiters.add(2001, 7, readiness::WRITABLE, 90), Ok(()));
    let mut told = Vec::new();
    let next = waiters.answer(10, |_| Ok(0), |who, events| told.push((who, events)));
    assert_eq!((next, &told[..]), (Some(80), &[][..]));
    // A socket that is gone; one whose time is over; and one that is ready for something else.
    let ready = |socket| if socket == 5 { Err(Refusal::Closed) } else { Ok(readiness::READABLE) };
    let next = waiters.answer(90, ready, |who, events| told.push((who, events)));
    assert_eq!((next, waiters.count(), told.len()), (None, 0, OF_ONE_MAX + 2));
    assert!(
        told[..OF_ONE_MAX].iter().all(|&(who, events)| who < OF_ONE_MAX && events == readiness::READABLE)
    );
    assert_eq!(told[OF_ONE_MAX..], [(2000, readiness::READABLE), (2001, 0)]);
}

/// Frames that nobody has looked at yet, and a card that says what no card can.
#[test]
fn a_card_has_bounds() {
    let mut host = host();
    let before = host.stack.status().counts.dropped;
    for _ in 0..200 {
        host.stack.push(&arp(ArpOperation::Request, Ipv4Addr::new(10, 1, 0, 9)));
    }
    assert!(host.stack.status().counts.dropped >= before + 100, "a queue is no longer than it is");
    for address in [[1, 0, 0, 0, 1, 2], [0xff; 6], [0; 6]] {
        let mut host = Host::new(4, None);
        host.stack.set_link(Some(address));
        assert!(!host.stack.status().is_up, "{address:?}");
    }
}

/// Each refusal by itself.
#[test]
fn what_is_too_much_is_refused() {
    let mut host = host();
    let echo = host.stack.open(1, Kind::Echo).unwrap();
    let neighbour = IpAddr::from([10, 1, 0, 9]);
    assert_eq!(host.stack.ask_echo(echo, neighbour, 1, &[0; 1453]), Err(Refusal::Bad));
    assert_eq!(host.stack.ask_echo(echo, neighbour, 1, &[0; 1452]), Ok(()));
    let udp = host.stack.open(1, Kind::Udp).unwrap();
    assert_eq!(host.stack.send_to(udp, end("10.9.0.1:9"), b""), Err(Refusal::Unreachable));
    assert_eq!(host.stack.send_to(udp, end("10.1.0.9:9"), b""), Ok(()));
    // A client with as many sockets as it may have accepts none.
    let listener = host.stack.listen(2, end("127.0.0.1:80"), 2).unwrap();
    let mut all = Vec::new();
    while let Ok(id) = host.stack.open(2, Kind::Udp) {
        all.push(id);
    }
    let client = host.stack.open(1, Kind::Tcp).unwrap();
    host.stack.connect(client, end("127.0.0.1:80")).unwrap();
    step(&mut host, 20);
    assert_eq!(host.stack.accept(listener), Err(Refusal::Limit));
    host.stack.close(all[0]);
    assert!(host.stack.accept(listener).is_ok());
}
