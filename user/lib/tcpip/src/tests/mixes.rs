//! Addresses of all kinds at both ends of what a socket sends. None of them ends the stack, and two of different kinds never meet.

use super::pairs::Pair;
use super::{Host, end};
use crate::{Kind, Refusal, Sending, readiness};
use core::net::{IpAddr, SocketAddr};
use std::vec::Vec;

/// Addresses to which a socket is bound, beside none.
const BOUND: [&str; 9] = [
    "10.1.0.1",
    "fe80::ff:fe00:101",
    "0.0.0.0",
    "::",
    "127.0.0.1",
    "127.0.0.9",
    "::1",
    "239.1.2.3",
    "ff02::fb",
];

/// Addresses from which a socket sends to groups.
const FROM: [&str; 5] = ["::", "10.1.0.1", "fe80::ff:fe00:101", "127.0.0.1", "::1"];

/// Addresses to which something is sent: those of the other machine and of nobody, of loopback, of other networks, of groups and of all, and what is none.
const TO: [&str; 17] = [
    "10.1.0.2",
    "fe80::ff:fe00:102",
    "10.1.0.77",
    "fe80::77",
    "10.1.0.1",
    "fe80::ff:fe00:101",
    "127.0.0.1",
    "127.0.0.9",
    "::1",
    "192.0.2.1",
    "2001:db8::1",
    "::ffff:10.1.0.2",
    "239.1.2.3",
    "ff02::fb",
    "10.1.0.255",
    "0.0.0.0",
    "::",
];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Says whether one is an address of this machine of another kind than the other.
fn is_mixed(own: IpAddr, to: IpAddr) -> bool {
    !own.is_unspecified() && !own.is_multicast() && own.is_ipv4() != to.is_ipv4()
}

/// The first machine does what it should, and the other one finds it.
fn still_works(pair: &mut Pair) {
    // Datagrams to nobody are forgotten, and so are those who have been asked for in vain.
    pair.run(1000);
    let echoes = [0, 1].map(|at| pair.hosts[at].stack.open(7, Kind::Echo).unwrap());
    for (at, to) in [(0, "127.0.0.1"), (0, "::1"), (1, "10.1.0.1"), (1, "fe80::ff:fe00:101")] {
        pair.hosts[at].stack.ask_echo(echoes[at], address(to), 1, b"still there?").unwrap();
        pair.run(300);
        let answer = pair.hosts[at].stack.echoed(echoes[at], &mut [0; 20]);
        assert_eq!(answer, Ok((address(to), 1, 12)), "{to}");
    }
}

/// Sends from a socket that is bound to an address, or to none. `connects`: the socket is connected before.
fn send(
    host: &mut Host,
    bound: Option<IpAddr>,
    from: IpAddr,
    to: IpAddr,
    connects: bool,
) -> Result<(), Refusal> {
    let id = host.stack.open(1, Kind::Udp).unwrap();
    if let Some(bound) = bound {
        host.stack.bind(id, SocketAddr::new(bound, 700)).unwrap();
    }
    host.stack.set_sending(id, Sending { from, ..Sending::default() }).unwrap();
    let to = SocketAddr::new(to, 9);
    let connected = if connects { host.stack.connect_datagrams(id, Some(to)) } else { Ok(()) };
    let sent = host.stack.send_to(id, to, b"x");
    assert!(!connects || connected == sent, "{bound:?} {from} {to}: {connected:?} {sent:?}");
    host.turn(2);
    host.stack.close(id);
    sent
}

#[test]
fn datagrams_have_ends_of_one_kind() {
    let mut pair = Pair::new(0);
    let all: Vec<Option<IpAddr>> = BOUND.iter().map(|bound| Some(address(bound))).chain([None]).collect();
    for (bound, from) in all.iter().flat_map(|bound| FROM.map(|from| (*bound, address(from)))) {
        for (to, connects) in TO.iter().flat_map(|to| [false, true].map(|connects| (address(to), connects))) {
            let outcome = send(&mut pair.hosts[0], bound, from, to, connects);
            let is_from = to.is_multicast() && !from.is_unspecified() && from.is_ipv4() == to.is_ipv4();
            let own = if is_from { Some(from) } else { bound };
            if own.is_some_and(|own| is_mixed(own, to)) || to.is_unspecified() {
                assert!(outcome.is_err(), "{bound:?} {from} {to}");
            }
            while pair.hosts[0].stack.pop().is_some() {}
        }
    }
    still_works(&mut pair);
}

#[test]
fn what_can_be_sent_is_sent() {
    let mut pair = Pair::new(0);
    for (bound, to, expected) in [
        ("10.1.0.1", "10.1.0.2", Ok(())),
        ("fe80::ff:fe00:101", "fe80::ff:fe00:102", Ok(())),
        ("0.0.0.0", "fe80::ff:fe00:102", Ok(())),
        ("::", "10.1.0.2", Ok(())),
        ("10.1.0.1", "127.0.0.1", Ok(())),
        ("127.0.0.1", "10.1.0.1", Ok(())),
        ("127.0.0.1", "239.1.2.3", Ok(())),
        ("239.1.2.3", "10.1.0.2", Ok(())),
        ("10.1.0.1", "10.1.0.255", Ok(())),
        ("10.1.0.1", "fe80::ff:fe00:102", Err(Refusal::Unreachable)),
        ("fe80::ff:fe00:101", "10.1.0.2", Err(Refusal::Unreachable)),
        ("::1", "127.0.0.1", Err(Refusal::Unreachable)),
        ("127.0.0.1", "::1", Err(Refusal::Unreachable)),
        ("127.0.0.1", "10.1.0.2", Err(Refusal::Unreachable)),
        ("0.0.0.0", "127.0.0.9", Err(Refusal::Unreachable)),
        ("0.0.0.0", "192.0.2.1", Err(Refusal::Unreachable)),
        ("0.0.0.0", "0.0.0.0", Err(Refusal::Bad)),
    ] {
        let outcome = send(&mut pair.hosts[0], Some(address(bound)), address("::"), address(to), false);
        assert_eq!(outcome, expected, "{bound} {to}");
    }
}

#[test]
fn connections_have_ends_of_one_kind() {
    let mut pair = Pair::new(0);
    for (bound, to) in BOUND.iter().flat_map(|bound| TO.map(|to| (address(bound), address(to)))) {
        let id = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
        let outcome = pair.hosts[0].stack.connect_from(id, SocketAddr::new(bound, 0), SocketAddr::new(to, 9));
        let is_for_many = to.is_multicast() || to == address("10.1.0.255");
        if is_mixed(bound, to) || bound.is_multicast() || is_for_many || to.is_unspecified() {
            assert!(outcome.is_err(), "{bound} {to}");
        }
        pair.run(2);
        pair.hosts[0].stack.close(id);
    }
    still_works(&mut pair);
}

#[test]
fn echoes_are_asked_of_all_kinds() {
    let mut pair = Pair::new(0);
    for to in TO {
        let id = pair.hosts[0].stack.open(1, Kind::Echo).unwrap();
        let _ = pair.hosts[0].stack.ask_echo(id, address(to), 1, b"x");
        pair.run(20);
        let _ = pair.hosts[0].stack.echoed(id, &mut [0; 9]);
        pair.hosts[0].stack.close(id);
    }
    still_works(&mut pair);
}

#[test]
fn nobody_takes_datagrams_for_another_machine() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[0];
    for bound in BOUND {
        let id = host.stack.open(1, Kind::Udp).unwrap();
        assert_eq!(host.stack.bind(id, SocketAddr::new(address(bound), 700)), Ok(()), "{bound}");
        host.stack.close(id);
    }
    for other in
        ["10.1.0.2", "10.1.0.255", "255.255.255.255", "fe80::ff:fe00:102", "2001:db8::1", "::ffff:10.1.0.1"]
    {
        let id = host.stack.open(1, Kind::Udp).unwrap();
        let at = SocketAddr::new(address(other), 700);
        assert_eq!(host.stack.bind(id, at), Err(Refusal::Bad), "{other}");
        assert_eq!(host.stack.share(id, at), Err(Refusal::Bad), "{other}");
        host.stack.close(id);
    }
}

/// A machine may lose an address from which a socket sends.
#[test]
fn an_address_that_is_gone_sends_nothing() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[0];
    let [bound, sender] = [0; 2].map(|_| host.stack.open(1, Kind::Udp).unwrap());
    host.stack.bind(bound, end("10.1.0.1:700")).unwrap();
    host.stack.set_sending(sender, Sending { from: address("10.1.0.1"), ..Sending::default() }).unwrap();
    for (to, has_address) in [("10.1.0.2:9", true), ("239.1.2.3:9", true), ("239.1.2.3:9", false)] {
        if !has_address {
            host.stack.set_link(Some([2, 0, 0, 0, 1, 9]));
        }
        let expected = if has_address { Ok(()) } else { Err(Refusal::Unreachable) };
        assert_eq!(host.stack.send_to(bound, end(to), b"x"), expected, "{to}");
        assert_eq!(host.stack.send_to(sender, end(to), b"x"), expected, "{to}");
        host.turn(2);
    }
    assert_eq!(host.stack.ready(bound), Ok(readiness::WRITABLE));
}

/// A datagram for many comes to sockets that have no address of their own, and so never to one that has the loopback's.
#[test]
fn who_has_an_address_takes_nothing_that_is_for_many() {
    for is_shared in [false, true] {
        let mut pair = Pair::new(0);
        let sockets = ["0.0.0.0:700", "127.0.0.1:701", "[::1]:702", "10.1.0.1:703"].map(|at| {
            let stack = &mut pair.hosts[0].stack;
            let id = stack.open(1, Kind::Udp).unwrap();
            if is_shared { stack.share(id, end(at)) } else { stack.bind(id, end(at)) }.unwrap();
            id
        });
        let sender = pair.hosts[1].stack.open(1, Kind::Udp).unwrap();
        for to in ["10.1.0.255", "255.255.255.255", "224.0.0.1", "ff02::1"] {
            for (at, id) in sockets.iter().enumerate() {
                let port = 700 + at as u16;
                pair.hosts[1].stack.send_to(sender, SocketAddr::new(address(to), port), b"x").unwrap();
                pair.run(50);
                let found = pair.hosts[0].stack.receive_from(*id, &mut [0; 9]).map(drop);
                let expected = if at == 0 { Ok(()) } else { Err(Refusal::Again) };
                assert_eq!(found, expected, "{to} at {port}, shared: {is_shared}");
            }
        }
    }
}

/// A socket that has a port alone may share it, and nobody comes to it in between.
#[test]
fn a_port_that_one_has_alone_is_shared_by_him() {
    let mut pair = Pair::new(0);
    let stack = &mut pair.hosts[0].stack;
    let [own, other] = [1, 2].map(|owner| stack.open(owner, Kind::Udp).unwrap());
    let at = end("0.0.0.0:700");
    assert_eq!((stack.bind(own, at), stack.share(other, at)), (Ok(()), Err(Refusal::InUse)));
    assert_eq!(stack.share(own, end("0.0.0.0:701")), Err(Refusal::Bad));
    assert_eq!((stack.share(own, at), stack.share(other, at)), (Ok(()), Ok(())));
    let sender = stack.open(3, Kind::Udp).unwrap();
    stack.send_to(sender, end("127.0.0.1:700"), b"x").unwrap();
    pair.run(10);
    let stack = &mut pair.hosts[0].stack;
    assert_eq!(stack.receive_from(other, &mut [0; 9]).map(drop), Err(Refusal::Again));
    assert_eq!(stack.receive_from(own, &mut [0; 9]).map(drop), Ok(()));
}
