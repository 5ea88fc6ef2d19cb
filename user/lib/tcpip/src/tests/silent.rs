//! When the stack finds that neighbours do not answer: by its own wake-ups, many at once, and after a rest.

use super::neighbours::{BOTH, KINDS, asked, lost, send_all, udp};
use super::pairs::Pair;
use super::{Host, SECOND_US, end};
use crate::frames;
use crate::neighbours::{OWN_MAX, PROGRAMS_MAX};
use crate::{Kind, Refusal, readiness};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use smoltcp::wire::{EthernetAddress, NdiscNeighborFlags, NdiscRepr};
use std::vec::Vec;

/// Hardware addresses: of the host, and of a neighbour.
const HARDWARE: [EthernetAddress; 2] =
    [EthernetAddress([2, 0, 0, 0, 1, 1]), EthernetAddress([2, 0, 0, 0, 7, 7])];

/// A host that nobody answers.
fn lone() -> Host {
    let [host, _] = Pair::new(0).hosts;
    host
}

/// A turn, ten milliseconds after the last one. Gives the neighbours for which the host asks.
fn step(host: &mut Host) -> Vec<IpAddr> {
    host.now_us += SECOND_US / 100;
    host.stack.turn(host.now_us);
    asked(host)
}

/// A stack that nothing else wakes takes the turn in which it gives a neighbour up, and few others.
#[test]
fn the_stack_wakes_up_to_give_up() {
    for [silent, _] in KINDS {
        let mut host = lone();
        let [connected, other] = [0; 2].map(|_| udp(&mut host));
        host.stack.connect_datagrams(connected, Some(end(silent))).unwrap();
        host.stack.send_to(connected, end(silent), b"x").unwrap();
        host.stack.send_to(other, end(silent), b"x").unwrap();
        let stream = host.stack.open(1, Kind::Tcp).unwrap();
        host.stack.connect(stream, end(silent)).unwrap();
        let echo = host.stack.open(1, Kind::Echo).unwrap();
        host.stack.ask_echo(echo, end(silent).ip(), 1, b"x").unwrap();
        let (begun, mut taken_us, mut turns) = (host.now_us, 0, 0);
        while host.stack.ready(connected) != Ok(BOTH) || host.stack.state(stream) != Err(Refusal::Silent) {
            turns += 1;
            taken_us = host.now_us - begun;
            assert!(turns < 50, "{silent}: {turns} turns in {taken_us} us");
            host.now_us += host.stack.turn(host.now_us).expect("somebody waits");
        }
        assert_eq!(taken_us, 3 * SECOND_US, "{silent}");
    }
}

/// All neighbours that may be asked for at a time are given up at once, and all that have sent something to them are told.
#[test]
fn many_are_given_up_at_once() {
    let mut host = lone();
    let mut all = Vec::new();
    for owner in 0..11u16 {
        for number in 0..if owner < 3 { OWN_MAX as u16 } else { 2 } {
            let to = SocketAddr::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 7, owner, number).into(), 9);
            let id = host.stack.open(owner.into(), Kind::Udp).unwrap();
            host.stack.connect_datagrams(id, Some(to)).unwrap();
            host.stack.send_to(id, to, b"x").unwrap();
            all.push(id);
        }
    }
    assert_eq!((all.len(), step(&mut host).len()), (PROGRAMS_MAX, PROGRAMS_MAX));
    for _ in 0..290 {
        step(&mut host);
    }
    assert!(all.iter().all(|&id| host.stack.ready(id) == Ok(readiness::WRITABLE)), "they may still answer");
    for _ in 0..20 {
        step(&mut host);
    }
    let told = all.iter().filter(|&&id| host.stack.receive_from(id, &mut []) == Err(Refusal::Silent)).count();
    assert_eq!(told, all.len());
}

/// After a rest in which no turn was taken, each neighbour of which too little is known is asked for in the first turn, and not one of them by the crate alone.
#[test]
fn a_rest_makes_old_what_is_known() {
    for (seconds, are_known) in [(20, true), (40, false), (70, false)] {
        let mut pair = Pair::new(0);
        let ends = KINDS.as_flattened().iter().map(|at| (udp(&mut pair.hosts[0]), end(at)));
        let ends: Vec<_> = ends.collect();
        for &(id, to) in &ends {
            pair.hosts[0].stack.send_to(id, to, b"x").unwrap();
        }
        pair.run(500);
        let host = &mut pair.hosts[0];
        host.now_us += seconds * SECOND_US;
        for &(id, to) in &ends {
            host.stack.send_to(id, to, b"x").unwrap();
        }
        let expected = ends.iter().enumerate().filter(|&(place, _)| place % 2 == 0 || !are_known);
        let mut expected: Vec<IpAddr> = expected.map(|(_, (_, to))| to.ip()).collect();
        let mut all = step(host);
        expected.sort();
        all.sort();
        assert_eq!(all, expected, "{seconds} s");
    }
}

/// A neighbour that has been nowhere until a moment ago, and asked for until then, is asked for as soon as it may be, though others keep the crate from asking.
#[test]
fn who_is_nowhere_no_more_is_asked_for() {
    for [silent, _] in KINDS {
        let mut host = lone();
        let lost = lost(&mut host);
        let id = udp(&mut host);
        host.stack.connect_datagrams(id, Some(end(silent))).unwrap();
        // Steps at which something is sent: at first; when that was given up, just before the end of its ten seconds; and just after that.
        let (mut told, mut questions) = (Vec::new(), Vec::new());
        for at in 0..2000 {
            if [0, 1290, 1320].contains(&at) {
                host.stack.send_to(id, end(silent), b"x").unwrap();
            }
            send_all(&mut host, &lost);
            let all = step(&mut host);
            questions.extend(all.iter().filter(|&&asked| asked == end(silent).ip()).map(|_| at));
            if host.stack.receive_from(id, &mut []) == Err(Refusal::Silent) {
                told.push(at);
            }
        }
        assert_eq!(questions, [0, 100, 200, 300, 1290, 1390, 1490, 1590, 1690], "{silent}");
        assert_eq!(told, [300, 1290, 1690], "{silent}");
    }
}

/// An answer that the crate does not believe, since it is for another address, is none to us either: the neighbour is asked for once more, though others keep the crate from asking.
#[test]
fn an_answer_for_others_is_none() {
    let neighbour: Ipv6Addr = "fe80::77".parse().unwrap();
    for (to, is_believed) in [
        ("fe80::ff:fe00:101", true),
        ("ff02::1:ff00:101", true),
        ("ff02::1", true),
        ("fe80::ff:fe00:103", false),
        ("ff02::1:ff00:103", false),
        ("ff02::fb", false),
    ] {
        let mut host = lone();
        let (lost, id) = (lost(&mut host), udp(&mut host));
        send_all(&mut host, &lost);
        host.stack.connect_datagrams(id, Some(SocketAddr::new(neighbour.into(), 9))).unwrap();
        host.stack.send_to(id, SocketAddr::new(neighbour.into(), 9), b"x").unwrap();
        let asks = |host: &mut Host| step(host).contains(&neighbour.into());
        assert!(asks(&mut host));
        let told = NdiscRepr::NeighborAdvert {
            flags: NdiscNeighborFlags::SOLICITED,
            target_addr: neighbour,
            lladdr: Some(HARDWARE[1].into()),
        };
        let hardware = [HARDWARE[1], HARDWARE[0]];
        let answer = frames::about_network(hardware, neighbour, to.parse().unwrap(), &frames::message(told));
        host.stack.push(&answer);
        let mut questions = 0;
        for _ in 0..410 {
            send_all(&mut host, &lost);
            questions += usize::from(asks(&mut host));
        }
        // Three more, since something has come from it, and one when the datagram is dropped.
        assert_eq!(questions, if is_believed { 0 } else { 4 }, "{to}");
        let told = host.stack.receive_from(id, &mut []);
        assert_eq!(told, Err(if is_believed { Refusal::Again } else { Refusal::Silent }), "{to}");
    }
}

/// A neighbour that sends something and does not answer is given up, too, after as many questions more.
#[test]
fn who_talks_and_does_not_answer_is_given_up() {
    let mut host = lone();
    let id = udp(&mut host);
    let [own, other] = ["10.1.0.1:9", "10.1.0.77:9"].map(end);
    host.stack.connect_datagrams(id, Some(other)).unwrap();
    host.stack.send_to(id, other, b"x").unwrap();
    let mut told = Vec::new();
    for at in 0..800 {
        if at % 50 == 10 {
            let mut frame = frames::datagram([HARDWARE[1], HARDWARE[0]], other, own, b"x").unwrap();
            crate::offload::fill(&mut frame);
            host.stack.push(&frame);
        }
        step(&mut host);
        if host.stack.receive_from(id, &mut []) == Err(Refusal::Silent) {
            told.push(at);
        }
    }
    assert_eq!(told, [400]);
}
