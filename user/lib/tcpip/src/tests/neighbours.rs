//! Neighbours that do not answer, and what waits for them.

use super::hostile::Random;
use super::leases::Town;
use super::pairs::Pair;
use super::{Host, SECOND_US, end, floods};
use crate::neighbours::{OWN_MAX, PROGRAMS_MAX, wanted};
use crate::sockets::DATAGRAM_MAX;
use crate::{Id, Kind, Refusal, State, readiness};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use lan::leases::Manner;
use lan::routers::{Prefix, Router};
use lan::{FAR, FAR_V6};
use std::collections::BTreeMap;
use std::vec::Vec;

/// Bits of a socket that is ready for everything.
pub const BOTH: u32 = readiness::READABLE | readiness::WRITABLE;

/// Ends of each kind: one at an address that nobody has, and one of the other machine's.
pub const KINDS: [[&str; 2]; 2] = [["10.1.0.77:9", "10.1.0.2:9"], ["[fe80::77]:9", "[fe80::ff:fe00:102]:9"]];

/// Ends at addresses that nobody has, four of each kind.
const ABSENT: [&str; 8] = [
    "10.1.0.71:9",
    "[fe80::71]:9",
    "10.1.0.72:9",
    "[fe80::72]:9",
    "10.1.0.73:9",
    "[fe80::73]:9",
    "10.1.0.74:9",
    "[fe80::74]:9",
];

/// Sockets of a program's, each of which sends to one of these.
pub fn lost(host: &mut Host) -> [(Id, SocketAddr); 8] {
    ABSENT.map(|to| (host.stack.open(9, Kind::Udp).unwrap(), end(to)))
}

/// Each of them sends something, if there is room.
pub fn send_all(host: &mut Host, lost: &[(Id, SocketAddr)]) {
    for &(id, to) in lost {
        let _ = host.stack.send_to(id, to, b"x");
    }
}

/// Neighbours for which a host asks, of all that it has to send.
pub fn asked(host: &mut Host) -> Vec<IpAddr> {
    let frames = core::iter::from_fn(|| host.stack.pop());
    frames.filter_map(|frame| wanted(&frame)).collect()
}

/// Time goes on for both, and each gets what the other one has sent. Gives the neighbours for which the first one has asked.
fn exchange(pair: &mut Pair, us: u64) -> Vec<IpAddr> {
    let mut questions = Vec::new();
    for from in 0..2 {
        let host = &mut pair.hosts[from];
        host.now_us += us;
        host.stack.turn(host.now_us);
        while let Some(frame) = pair.hosts[from].stack.pop() {
            questions.extend(wanted(&frame).filter(|_| from == 0));
            pair.hosts[1 - from].stack.push(&frame);
        }
    }
    questions
}

/// A socket for datagrams.
pub fn udp(host: &mut Host) -> Id {
    host.stack.open(1, Kind::Udp).unwrap()
}

fn receive(host: &mut Host, id: Id) -> Result<(SocketAddr, usize), Refusal> {
    host.stack.receive_from(id, &mut [0; 2000])
}

fn count(host: &mut Host, id: Id) -> usize {
    core::iter::from_fn(|| receive(host, id).ok()).count()
}

#[test]
fn a_machine_that_is_not_there_keeps_nothing_from_others() {
    for [silent, other] in KINDS {
        let mut pair = Pair::new(0);
        let server = udp(&mut pair.hosts[1]);
        pair.hosts[1].stack.bind(server, end(other)).unwrap();
        let (id, echo) = (udp(&mut pair.hosts[0]), pair.hosts[0].stack.open(1, Kind::Echo).unwrap());
        for to in [silent, other, silent, silent, other] {
            pair.hosts[0].stack.send_to(id, end(to), b"x").unwrap();
            pair.hosts[0].stack.ask_echo(echo, end(to).ip(), 7, b"x").unwrap();
        }
        // One without a byte waits as any other.
        pair.hosts[0].stack.send_to(id, end(silent), b"").unwrap();
        pair.hosts[0].stack.send_to(id, end(other), b"").unwrap();
        pair.run(700);
        assert_eq!(count(&mut pair.hosts[1], server), 3, "{silent}");
        let answers = core::iter::from_fn(|| pair.hosts[0].stack.echoed(echo, &mut [0; 9]).ok()).count();
        assert_eq!(answers, 2, "{silent}");
        // One that is connected to nobody hears of nothing.
        assert_eq!(pair.hosts[0].stack.ready(id), Ok(readiness::WRITABLE));
        // While it is known that nobody is there, nothing waits.
        for to in [silent, other] {
            pair.hosts[0].stack.send_to(id, end(to), b"x").unwrap();
        }
        pair.run(3);
        assert_eq!(count(&mut pair.hosts[1], server), 1, "{silent}");
    }
}

#[test]
fn who_is_connected_hears_that_nobody_answers() {
    for [silent, other] in KINDS {
        let mut pair = Pair::new(0);
        let id = udp(&mut pair.hosts[0]);
        pair.hosts[0].stack.connect_datagrams(id, Some(end(silent))).unwrap();
        pair.hosts[0].stack.send_to(id, end(silent), &[7; 1400]).unwrap();
        pair.run(200);
        assert_eq!(pair.hosts[0].stack.ready(id), Ok(readiness::WRITABLE), "it may still answer");
        pair.run(200);
        assert_eq!(pair.hosts[0].stack.ready(id), Ok(BOTH), "{silent}");
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Silent));
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Again), "it is told once");
        // It is told by what comes first.
        pair.hosts[0].stack.send_to(id, end(silent), b"x").unwrap();
        pair.run(3);
        assert_eq!(pair.hosts[0].stack.send_to(id, end(other), b"x"), Err(Refusal::Silent));
        assert_eq!(pair.hosts[0].stack.send_to(id, end(other), b"x"), Ok(()));
        pair.run(300);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Again));
    }
}

/// A machine that comes back is found as soon as something is sent to it and it answers, also if its answer does not say that it replaces what was known.
#[test]
fn who_comes_back_is_found() {
    for [_, other] in KINDS {
        let mut pair = Pair::new(0);
        let server = udp(&mut pair.hosts[1]);
        pair.hosts[1].stack.bind(server, end(other)).unwrap();
        let id = udp(&mut pair.hosts[0]);
        pair.hosts[0].stack.connect_datagrams(id, Some(end(other))).unwrap();
        pair.loss = 1;
        pair.hosts[0].stack.send_to(id, end(other), b"lost").unwrap();
        pair.run(500);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Silent), "{other}");
        pair.loss = 0;
        let _ = pair.hosts[0].stack.send_to(id, end(other), b"a question that goes before");
        pair.run(100);
        let _ = receive(&mut pair.hosts[0], id);
        pair.hosts[0].stack.send_to(id, end(other), b"here").unwrap();
        pair.run(4);
        assert_eq!(receive(&mut pair.hosts[1], server).map(|(_, len)| len), Ok(4), "{other}");
    }
}

/// Programs that go on sending to machines which are not there delay nobody: the first frame to another one leaves as soon as that has answered, also when the stack has forgotten it.
#[test]
fn some_that_are_not_there_delay_nobody() {
    for [_, other] in KINDS {
        let mut pair = Pair::new(0);
        let server = udp(&mut pair.hosts[1]);
        pair.hosts[1].stack.bind(server, end(other)).unwrap();
        let lost = lost(&mut pair.hosts[0]);
        for round in 0..2 {
            for step in 0..7000 {
                send_all(&mut pair.hosts[0], &lost);
                if step == 50 {
                    let id = udp(&mut pair.hosts[0]);
                    pair.hosts[0].stack.send_to(id, end(other), b"x").unwrap();
                }
                pair.run(1);
                if step == 52 {
                    assert_eq!(count(&mut pair.hosts[1], server), 1, "{other}, round {round}");
                }
            }
        }
    }
}

/// Nor do they delay connections.
#[test]
fn some_that_are_not_there_delay_no_connection() {
    for [_, other] in KINDS {
        let mut pair = Pair::new(0);
        let listener = pair.hosts[1].stack.listen(1, end(other), 2).unwrap();
        let lost = lost(&mut pair.hosts[0]);
        for _ in 0..150 {
            send_all(&mut pair.hosts[0], &lost);
            pair.run(1);
        }
        let id = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
        pair.hosts[0].stack.connect(id, end(other)).unwrap();
        pair.run(4);
        assert_eq!(pair.hosts[0].stack.state(id).unwrap().0, State::Open, "{other}");
        assert!(pair.hosts[1].stack.accept(listener).is_ok());
    }
}

/// Nor the ways to other networks: routers are asked for before they are forgotten.
#[test]
fn some_that_are_not_there_delay_no_router() {
    let mut town = Town::new(1, Manner::Honest);
    town.lan.leases.seconds = u32::MAX;
    let prefix = Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0), 90_000, 90_000);
    town.lan.router = Router { is_there: true, prefixes: [prefix].into(), ..Router::default() };
    town.run(3);
    let lost = lost(&mut town.host);
    for step in 0..10_000 {
        send_all(&mut town.host, &lost);
        if step % 333 == 100 {
            for to in [IpAddr::from(FAR), FAR_V6.into()] {
                let echo = town.host.stack.open(2, Kind::Echo).unwrap();
                town.host.stack.ask_echo(echo, to, 1, b"").unwrap();
                // It is sent in the first turn, and the answer comes in the second.
                town.step();
                town.step();
                assert_eq!(town.host.stack.echoed(echo, &mut []), Ok((to, 1, 0)), "step {step}");
                town.host.stack.close(echo);
            }
        }
        town.step();
    }
}

/// A client of a listener is asked for, though the crate asks for somebody else.
#[test]
fn a_listener_asks_for_its_client() {
    let mut host = floods::host();
    host.stack.listen(2, end("0.0.0.0:80"), 2).unwrap();
    let id = udp(&mut host);
    host.stack.send_to(id, end("10.1.0.71:9"), b"x").unwrap();
    floods::step(&mut host, 1);
    assert_eq!(asked(&mut host), [IpAddr::from([10, 1, 0, 71])]);
    let ends = ["10.1.0.9:1000", "10.1.0.2:80"].map(|end| end.parse().unwrap());
    host.stack.push(&floods::syn(ends[0], ends[1]));
    floods::step(&mut host, 2);
    assert_eq!(asked(&mut host), [IpAddr::from([10, 1, 0, 9])]);
}

/// Programs with many neighbours that do not answer have so many of them asked for, and leave some for others.
#[test]
fn one_program_leaves_questions_for_others() {
    let mut host = Pair::new(0).hosts.into_iter().next().unwrap();
    for owner in 0..12u16 {
        let ids = [0; 2].map(|_| host.stack.open(owner.into(), Kind::Udp).unwrap());
        for number in 0..20u16 {
            let to = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, owner, number);
            let id = ids[usize::from(number % 2)];
            host.stack.send_to(id, SocketAddr::new(to.into(), 9), b"x").unwrap();
        }
    }
    host.stack.turn(host.now_us);
    let all = asked(&mut host);
    let of = |owner: u16| {
        let is_his = |asked: &&IpAddr| matches!(asked, IpAddr::V6(asked) if asked.segments()[6] == owner);
        all.iter().filter(is_his).count()
    };
    let expected = [[OWN_MAX; 3].to_vec(), [2; 8].to_vec(), [0].to_vec()].concat();
    assert_eq!(((0..12).map(of).collect::<Vec<usize>>(), all.len()), (expected, PROGRAMS_MAX));
    // They are given up, and then others have their places.
    for _ in 0..400 {
        host.now_us += SECOND_US / 100;
        host.stack.turn(host.now_us);
    }
    asked(&mut host);
    let id = host.stack.open(11, Kind::Udp).unwrap();
    host.stack.send_to(id, end("[fe80::77]:9"), b"x").unwrap();
    host.stack.turn(host.now_us);
    assert!(asked(&mut host).contains(&"fe80::77".parse().unwrap()));
}

/// Turns of the property.
const TURNS: usize = 20_000;

/// Whatever programs send, and however long the stack rests, a neighbour is asked for once in a second, by the stack and by the crate together.
#[test]
fn a_neighbour_is_asked_for_once_in_a_second() {
    let (mut random, mut pair) = (Random(7), Pair::new(0));
    let stack = &mut pair.hosts[0].stack;
    let sockets: Vec<Id> = (0..24).map(|number| stack.open(number % 6, Kind::Udp).unwrap()).collect();
    let echo = stack.open(1, Kind::Echo).unwrap();
    let mut stream = stack.open(1, Kind::Tcp).unwrap();
    let mut last: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for _ in 0..TURNS {
        let stack = &mut pair.hosts[0].stack;
        for _ in 0..random.below(4) {
            // The first one of each kind is the other machine.
            let number = random.below(40) as u16;
            let to = match random.below(2) {
                0 => IpAddr::from([10, 1, 0, 2 + number as u8]),
                _ => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 0x102 + number).into(),
            };
            match random.below(8) {
                0 => _ = stack.ask_echo(echo, to, number, b"x"),
                1 => {
                    stack.close(stream);
                    stream = stack.open(1, Kind::Tcp).unwrap();
                    stack.connect(stream, SocketAddr::new(to, 9)).unwrap();
                }
                _ => _ = stack.send_to(sockets[random.below(24)], SocketAddr::new(to, 9), b"x"),
            }
        }
        let us = [1000, 10_000, 300_000, SECOND_US, 7 * SECOND_US][random.below(5)];
        for address in exchange(&mut pair, us) {
            let now_us = pair.hosts[0].now_us;
            let before = last.insert(address, now_us);
            assert!(before.is_none_or(|before| now_us - before >= SECOND_US), "{address} at {now_us} us");
        }
    }
    assert_eq!(last.len(), 80, "all were asked for");
}

/// A neighbour to which something goes all the time is asked for twice a minute.
#[test]
fn who_answers_is_asked_for_seldom() {
    for [_, other] in KINDS {
        let mut pair = Pair::new(0);
        let id = udp(&mut pair.hosts[0]);
        let mut questions = 0;
        // Two minutes.
        for _ in 0..1200 {
            pair.hosts[0].stack.send_to(id, end(other), b"x").unwrap();
            questions += exchange(&mut pair, SECOND_US / 10).len();
        }
        assert!((4..=5).contains(&questions), "{questions} for {other}");
    }
}

/// A connection to a machine that is not there is given up when it has been asked for in vain. Then its socket may have another one.
#[test]
fn who_connects_hears_that_nobody_answers() {
    for [silent, other] in KINDS {
        let mut pair = Pair::new(0);
        let listener = pair.hosts[1].stack.listen(1, end(other), 2).unwrap();
        let id = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
        pair.hosts[0].stack.connect(id, end(silent)).unwrap();
        pair.run(200);
        assert_eq!(pair.hosts[0].stack.state(id).unwrap().0, State::Connecting, "it may still answer");
        pair.run(200);
        let stack = &mut pair.hosts[0].stack;
        assert_eq!((stack.state(id), stack.ready(id)), (Err(Refusal::Silent), Ok(BOTH)), "{silent}");
        stack.connect(id, end(other)).unwrap();
        pair.run(4);
        assert_eq!(pair.hosts[0].stack.state(id).unwrap().0, State::Open, "{other}");
        assert!(pair.hosts[1].stack.accept(listener).is_ok());
        // One that is made does not end at once when the other machine goes.
        pair.loss = 1;
        pair.hosts[0].stack.write(id, b"x").unwrap();
        pair.run(1000);
        assert_eq!(pair.hosts[0].stack.state(id).unwrap().0, State::Open);
    }
}

/// A datagram that was to go from an address that the machine has lost, or by a router, waits for nothing.
#[test]
fn a_lost_address_keeps_nothing_waiting() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[0];
    let [server, id] = [0; 2].map(|_| udp(host));
    let echo = host.stack.open(1, Kind::Echo).unwrap();
    host.stack.bind(server, end("127.0.0.1:9")).unwrap();
    host.stack.send_to(id, end("127.0.0.1:9"), b"x").unwrap();
    host.turn(3);
    for to in ["10.1.0.2:9", "10.1.0.77:9"] {
        host.stack.send_to(id, end(to), b"x").unwrap();
        host.stack.ask_echo(echo, end(to).ip(), 1, b"x").unwrap();
    }
    host.turn(2);
    host.stack.set_link(Some([2, 0, 0, 0, 1, 9]));
    host.stack.send_to(id, end("127.0.0.1:9"), b"x").unwrap();
    host.stack.ask_echo(echo, end("127.0.0.1:9").ip(), 2, b"x").unwrap();
    // A datagram that had come before stays.
    host.turn(8);
    assert_eq!(count(host, server), 2);
    assert_eq!(host.stack.echoed(echo, &mut [0; 9]).map(|(_, number, _)| number), Ok(2));
}

/// A socket that says that it can be written takes the longest datagram, however its buffer is filled.
#[test]
fn who_can_be_written_takes_what_is_written() {
    let mut random = Random(5);
    for _ in 0..200 {
        let mut host = Host::new(1, None);
        let (udp, echo) = (udp(&mut host), host.stack.open(1, Kind::Echo).unwrap());
        for at in 0..=40 {
            // Some are sent meanwhile, so that the buffer goes on in its middle.
            if random.below(4) == 0 {
                host.stack.turn(host.now_us);
                host.now_us += SECOND_US / 1000;
            }
            let len = match (at, random.below(2)) {
                (40, _) => 0,
                (_, 0) => DATAGRAM_MAX,
                _ => random.below(DATAGRAM_MAX + 1),
            };
            let is_ready = host.stack.ready(udp).unwrap() & readiness::WRITABLE != 0;
            let sent = host.stack.send_to(udp, end("127.0.0.1:9"), &std::vec![0; len]);
            assert!(sent == Ok(()) || !is_ready && sent == Err(Refusal::Again), "{len}: {sent:?}");
            let len = len.min(DATAGRAM_MAX - 20);
            let is_ready = host.stack.ready(echo).unwrap() & readiness::WRITABLE != 0;
            let asked = host.stack.ask_echo(echo, end("127.0.0.1:9").ip(), 1, &std::vec![0; len]);
            assert!(asked == Ok(()) || !is_ready && asked == Err(Refusal::Again), "{len}: {asked:?}");
        }
    }
}
