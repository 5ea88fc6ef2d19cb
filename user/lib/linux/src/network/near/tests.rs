use super::*;
use crate::errno::{ECONNREFUSED, ENETUNREACH};
use crate::network::loopback::{Loopback, OWN, STREAM_BYTES};
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
