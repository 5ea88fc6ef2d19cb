//! Tests of the stack: alone with itself, two of them over a wire that loses frames, with a server that gives addresses, and with frames that are
//! not meant well.

mod claims;
mod floods;
mod flows;
mod groups;
mod held;
mod hostile;
mod leases;
mod locals;
mod mixes;
mod names;
mod neighbours;
mod offload;
mod pairs;
mod refusals;
mod routers;
mod secrets;
mod silent;
mod streams;

use crate::random::SEED;
use crate::sockets::Limits;
use crate::{Fallback, Id, Kind, Refusal, Stack, State, readiness};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::vec::Vec;

const SECOND_US: u64 = 1_000_000;

/// Seed of a host with this number.
fn seed_of(number: u64) -> [u8; SEED] {
    let mut seed = [0; SEED];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    seed
}

/// A stack and its time.
struct Host {
    stack: Stack,
    now_us: u64,
}

impl Host {
    fn new(seed: u64, fallback: Option<Fallback>) -> Host {
        Host { stack: Stack::new(0, seed_of(seed), Limits::default(), fallback), now_us: 0 }
    }

    /// Turns, with as much time between them as the stack wants.
    fn turn(&mut self, turns: usize) {
        for _ in 0..turns {
            let next = self.stack.turn(self.now_us).unwrap_or(SECOND_US);
            self.now_us += next.clamp(1, SECOND_US);
        }
    }
}

fn end(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

/// A connection between two owners of one machine: the ends of who connected and of who accepted.
fn connection(host: &mut Host, at: &str) -> (Id, Id, Id) {
    let listener = host.stack.listen(2, end(at), 2).unwrap();
    let client = host.stack.open(1, Kind::Tcp).unwrap();
    assert_eq!(host.stack.accept(listener), Err(Refusal::Again));
    host.stack.connect(client, end(at)).unwrap();
    assert_eq!(host.stack.ready(client), Ok(0), "it is not decided");
    host.turn(8);
    assert_eq!(host.stack.ready(listener), Ok(readiness::READABLE));
    let server = host.stack.accept(listener).unwrap();
    assert_eq!(host.stack.state(client).unwrap().0, State::Open);
    (listener, client, server)
}

#[test]
fn datagrams_go_from_one_owner_to_another() {
    for address in ["127.0.0.1", "[::1]"] {
        let mut host = Host::new(1, None);
        let (a, b) = (host.stack.open(1, Kind::Udp).unwrap(), host.stack.open(2, Kind::Udp).unwrap());
        let at = end(&std::format!("{address}:7"));
        host.stack.bind(b, at).unwrap();
        assert_eq!(host.stack.bind(a, at), Err(Refusal::InUse));
        host.stack.send_to(a, at, b"to seven").unwrap();
        host.turn(4);
        let mut bytes = [0; 100];
        let (from, len) = host.stack.receive_from(b, &mut bytes).unwrap();
        assert_eq!(&bytes[..len], b"to seven");
        assert_eq!(host.stack.receive_from(b, &mut bytes), Err(Refusal::Again));
        host.stack.send_to(b, from, b"back").unwrap();
        host.turn(4);
        assert_eq!(host.stack.receive_from(a, &mut bytes), Ok((at, 4)));
        assert_eq!(host.stack.pop(), None, "nothing leaves");
    }
}

#[test]
fn connections_stay_in_the_machine() {
    for address in ["127.0.0.1:80", "[::1]:80"] {
        let mut host = Host::new(2, None);
        let (listener, client, server) = connection(&mut host, address);
        let mut bytes = [0; 64];
        assert_eq!(host.stack.write(client, b"question"), Ok(8));
        host.turn(4);
        assert_eq!(host.stack.read(server, &mut bytes), Ok(8));
        assert_eq!(host.stack.read(server, &mut bytes), Err(Refusal::Again));
        assert_eq!(host.stack.write(server, b"answer"), Ok(6));
        host.stack.shutdown(server).unwrap();
        host.turn(4);
        assert_eq!(host.stack.read(client, &mut bytes), Ok(6));
        assert_eq!(host.stack.read(client, &mut bytes), Ok(0), "the end");
        for id in [listener, client, server] {
            host.stack.close(id);
        }
        host.turn(40);
        assert_eq!((host.stack.kept(), host.stack.owned(1), host.stack.owned(2)), (0, 0, 0));
        assert_eq!(host.stack.pop(), None, "nothing leaves");
    }
}

/// A port belongs to those who have different addresses, and to one alone who has all.
#[test]
fn a_port_is_had_once_for_each_address() {
    let mut host = Host::new(9, None);
    let all = ["127.0.0.1:80", "[::1]:80"].map(|at| (at, host.stack.listen(2, end(at), 2).unwrap()));
    for at in ["127.0.0.1:80", "0.0.0.0:80", "[::]:80"] {
        assert_eq!(host.stack.listen(3, end(at), 2), Err(Refusal::InUse), "{at}");
    }
    for (at, listener) in all {
        let client = host.stack.open(1, Kind::Tcp).unwrap();
        host.stack.connect(client, end(at)).unwrap();
        host.turn(8);
        for (other, id) in all {
            assert_eq!(host.stack.accept(id).is_ok(), id == listener, "{at} {other}");
        }
    }
    let udp = [0; 3].map(|_| host.stack.open(1, Kind::Udp).unwrap());
    assert_eq!(host.stack.bind(udp[0], end("127.0.0.1:7")), Ok(()));
    assert_eq!(host.stack.bind(udp[1], end("0.0.0.0:7")), Err(Refusal::InUse));
    assert_eq!(host.stack.bind(udp[1], end("[::1]:7")), Ok(()));
    host.stack.send_to(udp[2], end("[::1]:7"), b"six").unwrap();
    host.turn(4);
    let mut bytes = [0; 9];
    assert_eq!(host.stack.receive_from(udp[0], &mut bytes), Err(Refusal::Again));
    assert_eq!(host.stack.receive_from(udp[1], &mut bytes).map(|(_, len)| len), Ok(3));
}

#[test]
fn nobody_listens() {
    let mut host = Host::new(3, None);
    let client = host.stack.open(1, Kind::Tcp).unwrap();
    assert_eq!(host.stack.read(client, &mut [0]), Err(Refusal::Closed));
    host.stack.connect(client, end("127.0.0.1:81")).unwrap();
    assert_eq!(host.stack.write(client, b"x"), Err(Refusal::Again));
    host.turn(8);
    assert_eq!(host.stack.state(client).unwrap().0, State::Closed);
    assert_eq!(host.stack.ready(client), Ok(readiness::READABLE | readiness::WRITABLE));
    assert_eq!(host.stack.write(client, b"x"), Err(Refusal::Closed));
    assert_eq!(host.stack.connect(client, end("10.9.9.9:1")), Err(Refusal::Unreachable));
    assert_eq!(host.stack.connect(client, end("0.0.0.0:1")), Err(Refusal::Bad));
    assert_eq!(host.stack.connect(client, end("127.0.0.1:0")), Err(Refusal::Bad));
}

/// Bytes that were written before their socket went arrive.
#[test]
fn a_socket_that_goes_has_sent_everything() {
    let mut host = Host::new(4, None);
    let (_, client, server) = connection(&mut host, "127.0.0.1:80");
    let all: Vec<u8> = (0..16_000).map(|at| at as u8).collect();
    assert_eq!(host.stack.write(client, &all), Ok(all.len()));
    host.stack.close(client);
    assert_eq!(host.stack.write(client, b"x"), Err(Refusal::Closed), "it is gone");
    let (mut read, mut bytes) = (Vec::new(), [0; 999]);
    for _ in 0..200 {
        host.turn(1);
        match host.stack.read(server, &mut bytes) {
            Ok(0) => break,
            Ok(len) => read.extend_from_slice(&bytes[..len]),
            Err(error) => assert_eq!(error, Refusal::Again),
        }
    }
    assert_eq!(read, all);
}

/// However many sockets clients open, whoever comes gets one; and all are free again when they are closed.
#[test]
fn each_owner_gets_a_socket() {
    let mut host = Host::new(5, None);
    let limits = Limits::default();
    let mut all = Vec::new();
    for owner in 1..=limits.owners as u64 {
        let mut own = 0;
        for turn in 0..150 {
            let opened = match turn % 4 {
                0 => host.stack.open(owner, Kind::Udp),
                1 => host.stack.open(owner, Kind::Tcp),
                2 => host.stack.listen(owner, end("0.0.0.0:0"), 2),
                _ => host.stack.open(owner, Kind::Echo),
            };
            own += usize::from(opened.is_ok());
            all.extend(opened);
        }
        assert!(own > 0, "owner {owner} has none");
        let (owned, least) = (host.stack.owned(owner), if owner == 1 { 64 } else { 1 });
        assert!((least..=65).contains(&owned), "owner {owner} has {owned}");
    }
    assert!(host.stack.kept() <= limits.all);
    assert_eq!(host.stack.open(1, Kind::Udp), Err(Refusal::Limit));
    for id in all {
        host.stack.close(id);
        host.stack.close(id);
    }
    host.turn(40);
    assert_eq!(host.stack.kept(), 0);
}

/// A listener is no longer than that its owner has as many sockets for connections, and whoever gets one socket gets a listener.
#[test]
fn a_listener_leaves_sockets_for_connections() {
    let limits = Limits { all: 40, owners: 4, own: Some(12) };
    let mut host = Host { stack: Stack::new(0, seed_of(5), limits, None), now_us: 0 };
    host.stack.listen(1, end("0.0.0.0:80"), 8).unwrap();
    assert_eq!(host.stack.owned(1), 6);
    host.stack.listen(1, end("0.0.0.0:81"), 2).unwrap();
    assert_eq!(host.stack.owned(1), 8);
    for (port, owned) in [(82, 10), (83, 11), (84, 12)] {
        host.stack.listen(1, end(&std::format!("0.0.0.0:{port}")), 8).unwrap();
        assert_eq!(host.stack.owned(1), owned);
    }
    assert_eq!(host.stack.listen(1, end("0.0.0.0:85"), 1), Err(Refusal::Limit));
    assert_eq!(host.stack.open(1, Kind::Tcp), Err(Refusal::Limit));
}

/// An owner that lets go of its only connection again and again does not take what is set aside for others.
#[test]
fn what_is_let_go_is_not_another_owners_first() {
    let limits = Limits { all: 12, owners: 4, own: None };
    let mut host = Host { stack: Stack::new(0, seed_of(5), limits, None), now_us: 0 };
    for _ in 0..20 {
        let id = host.stack.open(1, Kind::Tcp).unwrap();
        host.stack.let_go(id);
    }
    for owner in 1..=4 {
        assert!(host.stack.open(owner, Kind::Tcp).is_ok(), "owner {owner}");
    }
}

#[test]
fn sockets_do_what_their_kind_does() {
    let mut host = Host::new(6, None);
    let udp = host.stack.open(1, Kind::Udp).unwrap();
    let tcp = host.stack.open(1, Kind::Tcp).unwrap();
    assert_eq!(host.stack.write(udp, b"x"), Err(Refusal::Bad));
    assert_eq!(host.stack.bind(tcp, end("0.0.0.0:1")), Err(Refusal::Bad));
    assert_eq!(host.stack.accept(tcp), Err(Refusal::Bad));
    assert_eq!(host.stack.echoed(udp, &mut []), Err(Refusal::Bad));
    assert_eq!(host.stack.found(udp), Err(Refusal::Bad));
    assert_eq!(host.stack.ready(udp ^ 1), Err(Refusal::Closed), "nobody has this one");
    assert_eq!(host.stack.send_to(udp, end("127.0.0.1:9"), &[0; 1473]), Err(Refusal::Bad));
}

#[test]
fn echoes_come_back() {
    let mut host = Host::new(7, None);
    for address in ["127.0.0.1", "::1"] {
        let address: IpAddr = address.parse().unwrap();
        let echo = host.stack.open(1, Kind::Echo).unwrap();
        host.stack.ask_echo(echo, address, 5, b"payload").unwrap();
        assert_eq!(host.stack.ready(echo).unwrap() & readiness::READABLE, 0);
        host.turn(6);
        let mut bytes = [0; 9];
        assert_eq!(host.stack.echoed(echo, &mut bytes), Ok((address, 5, 7)));
        assert_eq!(&bytes, b"payload\0\0");
        assert_eq!(host.stack.echoed(echo, &mut bytes), Err(Refusal::Again));
        // Bytes that do not fit are lost.
        host.stack.ask_echo(echo, address, 6, b"payload").unwrap();
        host.turn(6);
        assert_eq!(host.stack.echoed(echo, &mut bytes[..3]), Ok((address, 6, 3)));
    }
}

#[test]
fn names_that_are_addresses_need_nobody() {
    let mut host = Host::new(8, None);
    for (name, expected) in [
        ("localhost", Ok(IpAddr::from([127, 0, 0, 1]))),
        ("10.0.2.2", Ok(IpAddr::from(Ipv4Addr::new(10, 0, 2, 2)))),
        ("tern.example", Err(Refusal::NotFound)),
        ("", Err(Refusal::NotFound)),
    ] {
        let query = host.stack.resolve(1, name).unwrap();
        assert_eq!(host.stack.ready(query), Ok(readiness::READABLE));
        assert_eq!(host.stack.found(query), expected, "{name}");
    }
}
