use super::*;
use crate::errno::{ECONNREFUSED, ENETUNREACH};
use crate::network::loopback::{DATAGRAMS, Loopback, OWN, STREAM_BYTES};
use crate::network::near::datagrams::{HEAD, IN_A_ROW};
use crate::network::{Beside, Head};
use std::format;
use std::string::String;
use std::vec;

/// Numbers of sockets that listen, and of those that connect and are accepted.
const LISTENERS: Range<u64> = 1..4;
const SOCKETS: Range<u64> = 10..20;

const ANY: u32 = readiness::READ | readiness::WRITE;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn any() -> SocketAddr {
    at("0.0.0.0:0")
}

fn near(room: usize, budget: &Budget) -> (Near, Rc<Loopback>) {
    let below = Rc::new(Loopback::default());
    (Near::with_room(below.clone(), budget, Rc::default(), room), below)
}

/// A connection: the socket that has connected, and the one that was accepted.
fn pair(near: &Near) -> [u64; 2] {
    near.listen(1, at("127.0.0.1:80"), 8).unwrap();
    near.connect(10, any(), at("127.0.0.1:80")).unwrap();
    near.accept(1, 11).unwrap();
    [10, 11]
}

fn due(near: &Near) -> Vec<(u64, u32)> {
    core::iter::from_fn(|| near.due()).collect()
}

/// Does something at random, and says what came of it.
fn act(network: &dyn Network, backlog: u16, random: &mut Random) -> String {
    let listener = LISTENERS.start + random.below(LISTENERS.end - LISTENERS.start);
    let socket = SOCKETS.start + random.below(SOCKETS.end - SOCKETS.start);
    let (choice, size, byte) = (random.below(12), random.below(5000) as usize, random.below(256) as u8);
    let is_free = network.ready(socket) == u32::MAX;
    match choice {
        0 if network.ready(listener) == u32::MAX => {
            format!(
                "{:?}",
                network.listen(
                    listener,
                    SocketAddr::new(at(&format!("{OWN}:1")).ip(), 80 + listener as u16),
                    backlog
                )
            )
        }
        0 => String::new(),
        // Connections that nobody has accepted break off with their listener, which is another matter.
        1 if byte < 16 && network.ready(listener) & readiness::READ == 0 => {
            format!("{:?}", network.close(listener))
        }
        1 | 2 if is_free => {
            let to = SocketAddr::new(at(&format!("{OWN}:1")).ip(), 80 + listener as u16);
            let from = if byte < 64 { 1000 + u16::from(byte % 4) } else { 0 };
            let begun = network.connect(socket, SocketAddr::new(any().ip(), from), to);
            // The network below of the tests makes no connection of one for which there is no room yet.
            let phase = network.phase(socket);
            if phase != Phase::Open {
                network.close(socket);
            }
            format!("{begun:?} {phase:?}")
        }
        3 if is_free => format!("{:?}", network.accept(listener, socket)),
        1..4 => String::new(),
        4..7 => format!("{:?}", network.write(socket, &vec![byte; size])),
        7 | 8 => format!("{:?}", network.read(socket, size.min(4096))),
        9 if byte < 64 => format!("{:?}", network.shut_down(socket)),
        9 => format!("{:?}", network.watch(socket, 1 + u32::from(byte) % 3)),
        10 => format!("{:?}", network.watch(listener, readiness::READ)),
        _ if byte < 64 => {
            // Bytes that nobody has read are another matter.
            while network.read(socket, 4096).is_ok_and(|bytes| !bytes.is_empty()) {}
            network.close(socket);
            String::new()
        }
        _ => String::new(),
    }
}

/// Whether connections are near or not makes no difference.
#[test]
fn a_near_network_is_like_one_below() {
    let (mut open, mut told) = (0, 0);
    for seed in 1..=200 {
        let (near, below) = near(STREAM_BYTES, &Budget::new(64 << 20));
        let far = Loopback::default();
        let (mut one, mut other) = (Random(seed), Random(seed));
        for step in 0..200 {
            // One more is kept here, like Linux.
            let done = [act(&near, 1, &mut one), act(&far, 2, &mut other)];
            assert_eq!(done[0], done[1], "seed {seed}, step {step}");
            let mut all: BTreeMap<u64, u32> = BTreeMap::new();
            for (number, events) in due(&near).into_iter().chain(below.due()) {
                *all.entry(number).or_default() |= events;
            }
            // A socket that is closed has nobody who waits for it.
            let is_there = |(number, _): &(u64, u32)| far.ready(*number) != u32::MAX;
            let [near_due, far_due] = [all.clone().into_iter().collect(), far.due()]
                .map(|due: Vec<_>| due.into_iter().filter(is_there).collect::<Vec<_>>());
            assert_eq!(near_due, far_due, "seed {seed}, step {step}: {}", done[0]);
            told += all.len();
            for number in LISTENERS.chain(SOCKETS) {
                assert_eq!(
                    (near.phase(number), near.ready(number)),
                    (far.phase(number), far.ready(number)),
                    "seed {seed}, step {step}, {number}"
                );
                open += usize::from(near.phase(number) == Phase::Open);
            }
        }
    }
    assert!(open > 1000 && told > 1000, "{open} open, {told} told");
}

#[test]
fn bytes_that_nobody_has_read_break_a_connection() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    let [one, other] = pair(&near);
    near.write(one, b"question").unwrap();
    near.write(other, b"answer").unwrap();
    near.watch(one, readiness::WRITE);
    assert_eq!(due(&near), [(one, readiness::WRITE)]);
    near.close(other);
    assert_eq!(near.ready(one), ANY);
    // Bytes that have come before are still there.
    assert_eq!(near.read(one, 100), Ok(b"answer".to_vec()));
    assert_eq!(near.read(one, 100), Err(ECONNRESET));
    assert_eq!(near.write(one, b"more"), Err(ECONNRESET));
    assert_eq!(near.end(one).unwrap().share.borrow().bytes(), PIECE);
}

#[test]
fn bytes_behind_an_end_break_a_connection() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    let [one, other] = pair(&near);
    near.close(other);
    assert_eq!((near.read(one, 100), near.write(one, b"bytes")), (Ok(Vec::new()), Ok(5)));
    assert_eq!((near.write(one, b"bytes"), near.read(one, 100)), (Err(ECONNRESET), Ok(Vec::new())));
}

/// A socket keeps as many connections as it has said, and one more. The next ones are made as soon as it accepts one.
#[test]
fn connections_wait_for_room() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    near.listen(1, at("127.0.0.1:80"), 1).unwrap();
    for number in 10..15 {
        near.connect(number, any(), at("127.0.0.1:80")).unwrap();
        near.watch(number, ANY);
    }
    let phases = |near: &Near| [10, 11, 12, 13, 14].map(|number| near.phase(number));
    let (open, connecting) = (Phase::Open, Phase::Connecting);
    assert_eq!(phases(&near), [open, open, connecting, connecting, connecting]);
    assert_eq!(due(&near), [(10, readiness::WRITE), (11, readiness::WRITE)]);
    assert_eq!(near.ready(12), 0);
    // One gives up.
    near.close(13);
    near.accept(1, 20).unwrap();
    assert_eq!(due(&near), [(12, readiness::WRITE)]);
    assert_eq!(phases(&near), [open, open, open, Phase::Closed, connecting]);
    for (number, from) in [(21, 11), (22, 12), (23, 14)] {
        near.accept(1, number).unwrap();
        assert_eq!(near.ends(number)[1], near.ends(from)[0]);
    }
    assert_eq!(near.accept(1, 24), Err(EAGAIN));
}

/// Connections that nobody accepts break off when the socket that listens is closed.
#[test]
fn a_listener_that_is_closed_breaks_what_waits() {
    let (near, below) = near(ROOM, &Budget::new(1 << 20));
    near.listen(1, at("127.0.0.1:80"), 1).unwrap();
    for number in 10..13 {
        near.connect(number, any(), at("127.0.0.1:80")).unwrap();
        near.watch(number, readiness::READ);
    }
    near.close(1);
    assert_eq!(due(&near), [(10, readiness::READ), (11, readiness::READ), (12, readiness::READ)]);
    assert_eq!((near.read(10, 1), near.phase(12)), (Err(ECONNRESET), Phase::Refused));
    assert_eq!(below.count(), 0);
}

/// A connection has some room in each direction whatever others have, and more as long as there is some.
#[test]
fn room_is_charged() {
    let budget = Budget::new(6 * PIECE);
    let (near, below) = near(ROOM, &budget);
    let [one, other] = pair(&near);
    assert_eq!(budget.used(), 2 * PIECE);
    let bytes = vec![7; ROOM];
    assert_eq!(near.write(one, &bytes), Ok(5 * PIECE));
    assert_eq!((near.write(one, &bytes), near.ready(one)), (Err(EAGAIN), 0));
    assert_eq!(near.write(other, &bytes), Ok(PIECE));
    near.watch(one, readiness::WRITE);
    assert_eq!(due(&near), []);
    // No other connection has room here, so it is made below.
    near.connect(12, any(), at("127.0.0.1:80")).unwrap();
    assert_eq!(
        (near.state.borrow().ends.len(), near.phase(12), below.phase(12)),
        (2, Phase::Open, Phase::Open)
    );
    let mut all = 0;
    while let Ok(bytes) = near.read(other, 4096) {
        all += bytes.len();
    }
    assert_eq!((all, due(&near)), (5 * PIECE, vec![(one, readiness::WRITE)]));
    assert_eq!(budget.used(), 2 * PIECE);
    near.close(one);
    near.close(other);
    assert_eq!(budget.used(), 0);
}

#[test]
fn other_addresses_are_below() {
    let (near, below) = near(ROOM, &Budget::new(1 << 20));
    near.listen(1, at("0.0.0.0:80"), 8).unwrap();
    assert_eq!(near.connect(10, any(), at("1.2.3.4:80")), Err(ENETUNREACH));
    near.connect(10, any(), at(&format!("{OWN}:80"))).unwrap();
    assert_eq!(near.ends(10)[0].map(|from| from.ip()), Some(at(&format!("{OWN}:1")).ip()));
    near.connect(11, any(), at("127.0.0.1:81")).unwrap();
    assert_eq!((near.phase(11), below.phase(11)), (Phase::Closed, Phase::Closed));
    // Two connections have no ends in common.
    near.connect(12, at("127.0.0.1:5"), at("127.0.0.1:80")).unwrap();
    let again = near.connect(13, at("127.0.0.1:5"), at("127.0.0.1:80"));
    assert_eq!(again, Err(EADDRINUSE));
    assert_ne!(again, Err(ECONNREFUSED));
}

/// There are no more places for bytes than are charged.
#[test]
fn places_are_charged() {
    let budget = Budget::new(1 << 20);
    let (near, _) = near(ROOM, &budget);
    let [one, other] = pair(&near);
    for _ in 0..9 {
        assert_eq!(near.write(one, &[0; 4096]), Ok(4096));
        let end = near.end(other).unwrap();
        assert!(end.bytes.borrow().capacity() <= end.share.borrow().bytes());
    }
}

#[test]
fn ports_of_those_that_listen_are_left_out() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    near.listen(1, at("127.0.0.1:32768"), 8).unwrap();
    near.connect(10, any(), at("127.0.0.1:32768")).unwrap();
    assert_eq!(near.ends(10)[0], Some(at("127.0.0.1:32769")));
}

/// Does something at random with sockets for datagrams, and says what came of it.
fn act_by_datagrams(network: &dyn Network, random: &mut Random) -> String {
    let socket = 1 + random.below(6);
    let (choice, byte) = (random.below(12), random.below(256) as u8);
    let address = |byte: u8| match byte % 4 {
        0 => at("127.0.0.1:1").ip(),
        1 => at(&format!("{OWN}:1")).ip(),
        2 => at("[::1]:1").ip(),
        _ => at("10.0.2.99:1").ip(),
    };
    let end = SocketAddr::new(address(byte), 80 + u16::from(byte / 4 % 6));
    let is_free = network.ready(socket) == u32::MAX;
    match choice {
        0 | 1 if is_free => {
            let any = [at("0.0.0.0:1"), at("[::]:1")][usize::from(byte & 1)];
            let ip = if byte < 128 { any.ip() } else { end.ip() };
            format!("{:?}", network.bind(socket, SocketAddr::new(ip, 80 + socket as u16 % 5), byte % 8 == 0))
        }
        0 | 1 if byte < 32 => format!("{:?}", network.close(socket)),
        2 if !is_free && byte < 128 => {
            format!("{:?}", network.connect_datagrams(socket, Some(end).filter(|_| byte > 32)))
        }
        3..8 if !is_free => format!("{:?}", network.send_to(socket, end, &[byte; 8], &PLAIN)),
        8 | 9 if !is_free => {
            let mut all: Vec<_> = core::iter::from_fn(|| match network.receive_from(socket) {
                Err(EAGAIN) => None,
                received => Some(format!("{:?}", received.map(|datagram| (datagram.from, datagram.bytes)))),
            })
            .collect();
            // Those from near and far come in no order.
            all.sort();
            format!("{all:?}")
        }
        10 if !is_free => format!("{:?}", network.watch(socket, readiness::READ)),
        _ => String::new(),
    }
}

/// Whether datagrams are near or not makes no difference.
#[test]
fn near_datagrams_are_like_those_below() {
    let (mut received, mut near_ones) = (0, 0);
    for seed in 1..=400 {
        let (mut near, below) = near(ROOM, &Budget::new(64 << 20));
        near.datagram_room = DATAGRAMS * (8 + HEAD);
        let far = Loopback::default();
        let (mut one, mut other) = (Random(seed), Random(seed));
        for step in 0..300 {
            let done = [act_by_datagrams(&near, &mut one), act_by_datagrams(&far, &mut other)];
            assert_eq!(done[0], done[1], "seed {seed}, step {step}");
            received += usize::from(done[0].contains("Ok(("));
            let all: BTreeSet<_> = due(&near).into_iter().chain(below.due()).collect();
            let all: BTreeSet<_> =
                all.into_iter().filter(|(number, _)| far.ready(*number) != u32::MAX).collect();
            // A socket that is watched both here and below may be told of by both.
            let others: BTreeSet<_> =
                far.due().into_iter().filter(|(number, _)| far.ready(*number) != u32::MAX).collect();
            assert!(
                all.is_superset(&others),
                "seed {seed}, step {step}: {} tells {others:?}, not {all:?}",
                done[0]
            );
            for number in 1..7 {
                assert_eq!(near.ready(number), far.ready(number), "seed {seed}, step {step}, {number}");
                near_ones += usize::from(near.state.borrow().datagrams.is_waiting(number));
            }
        }
    }
    assert!(received > 1000 && near_ones > 1000, "{received} received, {near_ones} times one was near");
}

/// A datagram without anything beside it.
const PLAIN: Sent = Sent { from: None, head: Head { hops: 64, class: 0 }, date: 0, covered: 0 };

/// Takes a datagram: from whom, and what.
fn taken(near: &Near, number: u64) -> Result<(SocketAddr, Vec<u8>)> {
    near.receive_from(number).map(|datagram| (datagram.from, datagram.bytes))
}

/// Two sockets for datagrams, at ports 81 and 82 of loopback.
fn bound(near: &Near) {
    near.bind(1, at("127.0.0.1:81"), false).unwrap();
    near.bind(2, at("127.0.0.1:82"), false).unwrap();
}

/// A datagram that waits is charged to whoever has made the socket where it does, until it is read or the socket is closed. Without room it is lost.
#[test]
fn datagrams_are_charged_to_their_receiver() {
    let budget = Budget::new(8192);
    let (mut near, _) = near(ROOM, &budget);
    near.datagram_room = 1500;
    for (process, number) in [(7, 1), (8, 2)] {
        budget.begin(process, 0);
        budget.serve(process);
        near.bind(number, at(&format!("127.0.0.1:8{number}")), false).unwrap();
    }
    budget.serve(7);
    for byte in 0..6 {
        assert_eq!(near.send_to(1, at("127.0.0.1:82"), &[byte; 200], &PLAIN), Ok(()));
    }
    let whole = 200 + HEAD;
    assert_eq!([7, 8].map(|process| budget.used_by(process)), [0, 3 * whole]);
    for byte in 0..3 {
        assert_eq!(taken(&near, 2), Ok((at("127.0.0.1:81"), vec![byte; 200])));
    }
    assert_eq!((taken(&near, 2), budget.used()), (Err(EAGAIN), 0));
    near.send_to(1, at("127.0.0.1:82"), &[4; 200], &PLAIN).unwrap();
    near.close(2);
    assert_eq!(budget.used(), 0);
}

/// However many come from here, one from below has its turn at each socket; and one that waits here is had, though below there was nothing in the end.
#[test]
fn datagrams_from_below_have_their_turn() {
    let (near, below) = near(ROOM, &Budget::new(1 << 20));
    for number in 1..4 {
        near.bind(number, SocketAddr::new(any().ip(), 80 + number as u16), false).unwrap();
    }
    for port in [82, 83] {
        below.deliver(at("10.0.2.2:53"), at(&format!("{OWN}:{port}")), b"answer");
    }
    let mut answers = 0;
    for port in (0..2 * IN_A_ROW).flat_map(|_| [82, 83]) {
        for _ in 0..2 {
            near.send_to(1, SocketAddr::new(at("127.0.0.1:1").ip(), port), b"flood", &PLAIN).unwrap();
        }
        answers += usize::from(taken(&near, u64::from(port) - 80).unwrap().1 == b"answer");
    }
    assert_eq!(answers, 2);
}

/// A datagram that was refused below is told of in front of those that have come here; then the way is near.
#[test]
fn a_refusal_is_told_of_first() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    near.bind(1, at("127.0.0.1:81"), false).unwrap();
    near.connect_datagrams(1, Some(at("127.0.0.1:82"))).unwrap();
    near.send_to(1, at("127.0.0.1:82"), b"too early", &PLAIN).unwrap();
    near.bind(2, at("127.0.0.1:82"), false).unwrap();
    near.send_to(2, at("127.0.0.1:81"), b"answer", &PLAIN).unwrap();
    assert_eq!(near.receive_from(1), Err(ECONNREFUSED));
    assert_eq!(taken(&near, 1).map(|(_, bytes)| bytes), Ok(b"answer".to_vec()));
    near.send_to(1, at("127.0.0.1:82"), b"again", &PLAIN).unwrap();
    assert!(near.state.borrow().datagrams.is_waiting(2));
}

/// Datagrams of others are gone when a socket is connected, and so is their share.
#[test]
fn a_connected_socket_keeps_what_its_peer_has_sent() {
    let budget = Budget::new(1 << 20);
    let (near, _) = near(ROOM, &budget);
    bound(&near);
    near.bind(3, at("127.0.0.1:83"), false).unwrap();
    near.send_to(1, at("127.0.0.1:82"), b"one", &PLAIN).unwrap();
    near.send_to(3, at("127.0.0.1:82"), b"other", &PLAIN).unwrap();
    near.connect_datagrams(2, Some(at("127.0.0.1:83"))).unwrap();
    assert_eq!(budget.used(), 5 + HEAD);
    assert_eq!(taken(&near, 2), Ok((at("127.0.0.1:83"), b"other".to_vec())));
}

/// A sender has an address of loopback for those that it reaches by it, whatever it is bound to.
#[test]
fn senders_have_addresses_of_loopback() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    near.bind(2, at("[::]:82"), false).unwrap();
    for (number, from, to, seen) in [
        (10, "0.0.0.0:90", "127.0.0.1:82", "127.0.0.1:90"),
        (11, "[::]:91", "127.0.0.1:82", "127.0.0.1:91"),
        (12, "[::]:92", "[::1]:82", "[::1]:92"),
        (13, "224.0.0.251:93", "127.0.0.1:82", "127.0.0.1:93"),
        (14, "127.0.0.1:94", "127.0.0.1:82", "127.0.0.1:94"),
    ] {
        near.bind(number, at(from), false).unwrap();
        near.send_to(number, at(to), b"?", &PLAIN).unwrap();
        assert!(near.state.borrow().datagrams.is_waiting(2), "{from}");
        assert_eq!(taken(&near, 2), Ok((at(seen), b"?".to_vec())));
    }
}

/// A queue does not keep the places of what was read.
#[test]
fn places_of_datagrams_are_given_back() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    bound(&near);
    let send = || near.send_to(1, at("127.0.0.1:82"), b"", &PLAIN).unwrap();
    (0..1000).for_each(|_| send());
    (0..999).for_each(|_| assert!(near.receive_from(2).is_ok()));
    assert!(near.state.borrow().datagrams.places(2) <= 16);
}

/// A datagram says how it was sent. Its sender may name another address of loopback, and no address that the network below does not send from anyway.
#[test]
fn heads_of_datagrams_come_with_them() {
    let (near, _) = near(ROOM, &Budget::new(1 << 20));
    bound(&near);
    let (to, head) = (at("127.0.0.1:82"), Head { hops: 7, class: 0xb8 });
    near.send_to(1, to, b"x", &Sent { from: Some(at("127.0.0.9:1").ip()), head, date: 5, covered: 9 })
        .unwrap();
    let beside = Beside { to: Some(to.ip()), head: Some(head), date: 5, covered: 9 };
    let come = Datagram { from: at("127.0.0.9:81"), beside, bytes: b"x".to_vec() };
    assert_eq!(near.receive_from(2), Ok(come));
    let by = |from: &str| Sent { from: Some(at(from).ip()), ..PLAIN };
    assert_eq!(near.send_to(1, to, b"x", &by(&format!("{OWN}:1"))), Err(ENETUNREACH));
    // Nobody has this port here.
    let nobody = at("127.0.0.1:99");
    assert_eq!(near.send_to(1, nobody, b"x", &by("127.0.0.9:1")), Err(ENETUNREACH));
    assert_eq!(near.send_to(1, nobody, b"x", &by("127.0.0.1:1")), Ok(()));
    // Those from below say nothing.
    near.bind(3, at("0.0.0.0:83"), true).unwrap();
    near.send_to(1, at("127.0.0.1:83"), b"x", &PLAIN).unwrap();
    assert_eq!(near.receive_from(3).map(|datagram| datagram.beside), Ok(Beside::default()));
}
