//! Sockets that share a port: each family its own, several at one address, and who gets a connection.

use super::*;
use crate::inet::ports::DEALT_MAX;
use crate::network::Network;

/// A stream with options, bound to an address, or why it cannot be. ` only` behind an address of IPv6 keeps those of IPv4 from it.
fn bound(net: &mut Net, text: &str, options: &[u32]) -> Result<u64, i64> {
    let (address, is_six_only) = text.strip_suffix(" only").map_or((text, 0), |address| (address, 1));
    let family = family_of(address);
    let fd = net.socket(family.number(), STREAM | BRIEF);
    if family == Family::Six {
        assert_eq!(net.set(fd, 41, IPV6_V6ONLY, is_six_only), 0);
    }
    for option in options {
        assert_eq!(net.set(fd, SOL_SOCKET, *option, 1), 0);
    }
    match net.bind(fd, address) {
        0 => Ok(fd),
        error => Err(error),
    }
}

fn listening(net: &mut Net, text: &str, options: &[u32]) -> u64 {
    let fd = bound(net, text, options).unwrap();
    assert_eq!(net.call(nr::__NR_listen, &[fd, 4]), 0, "{text}");
    fd
}

/// Connects to an address. Sockets of a list that poll says a connection waits at, each of which accepts it.
fn heirs(net: &mut Net, to: &str, all: &[u64]) -> Vec<u64> {
    let one = net.socket(family_of(to).number(), STREAM | BRIEF);
    assert_eq!(net.connect(one, to), 0, "{to}");
    net.turn();
    let ready: Vec<u64> = all.iter().copied().filter(|fd| net.poll(*fd) & 1 != 0).collect();
    for fd in all {
        let taken = net.accept(*fd);
        assert_eq!(taken > 0, ready.contains(fd), "{to} {fd} {taken}");
        if taken > 0 {
            assert_eq!(net.own(taken as u64), to);
            let own = net.own(one);
            assert_eq!(net.name(nr::__NR_getpeername, taken as u64), Ok(own));
            assert_eq!(
                (net.send(one, b"to you", 0), net.rig.read(taken as u64, 9)),
                (6, Ok(b"to you".into()))
            );
            net.call(nr::__NR_close, &[taken as u64]);
        }
    }
    net.call(nr::__NR_close, &[one]);
    ready
}

/// Servers that bind a port once for each family, as `redis-server` does.
#[test]
fn each_family_has_its_own_socket() {
    for [first, second] in [["0.0.0.0:6379", "[::]:6379 only"], ["[::]:6379 only", "0.0.0.0:6379"]] {
        let mut net = Net::begun();
        let pair = [first, second].map(|text| listening(&mut net, text, &[SO_REUSEADDR]));
        let [four, six] = if first.starts_with('0') { pair } else { [pair[1], pair[0]] };
        assert_eq!(heirs(&mut net, "127.0.0.1:6379", &pair), [four]);
        assert_eq!(heirs(&mut net, "[::1]:6379", &pair), [six]);
        assert_eq!(heirs(&mut net, "10.0.2.15:6379", &pair), [four]);
        // The one that is left goes on, whichever it is.
        net.call(nr::__NR_close, &[pair[0]]);
        let at = if first.starts_with('0') { "[::1]:6379" } else { "127.0.0.1:6379" };
        assert_eq!(heirs(&mut net, at, &pair[1..]), &pair[1..]);
        net.call(nr::__NR_close, &[pair[1]]);
        assert_eq!(net.network.count(), 0);
    }
}

#[test]
fn addresses_of_their_own_are_told_apart() {
    let mut net = Net::begun();
    let all = ["127.0.0.1:1", "[::1]:1", "10.0.2.15:1"].map(|text| listening(&mut net, text, &[]));
    assert_eq!(heirs(&mut net, "127.0.0.1:1", &all), [all[0]]);
    assert_eq!(heirs(&mut net, "[::1]:1", &all), [all[1]]);
    assert_eq!(heirs(&mut net, "10.0.2.15:1", &all), [all[2]]);
}

/// One that listens at more addresses comes later. Connections that had come before stay whose they are.
#[test]
fn a_listener_for_all_comes_behind_one_for_an_address() {
    let mut net = Net::begun();
    let four = listening(&mut net, "127.0.0.1:1", &[]);
    let early = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect(early, "127.0.0.1:1"), 0);
    let six = listening(&mut net, "[::]:1 only", &[]);
    assert_eq!((net.poll(four), net.poll(six)), (0x41, 0));
    let taken = net.accept(four);
    assert!(taken > 0, "{taken}");
    assert_eq!((net.send(early, b"x", 0), net.rig.read(taken as u64, 9)), (1, Ok(b"x".into())));
    for fd in [early, taken as u64] {
        net.call(nr::__NR_close, &[fd]);
    }
    assert_eq!(heirs(&mut net, "127.0.0.1:1", &[four, six]), [four]);
    assert_eq!(heirs(&mut net, "[::1]:1", &[four, six]), [six]);
    // Nobody listens at that one.
    let one = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!((net.connect(one, "10.0.2.15:1"), net.accept(four), net.accept(six)), (0, -11, -11));
    assert_eq!(net.receive(one, 1, 0), Ok(Vec::new()));
    for fd in [one, four, six] {
        net.call(nr::__NR_close, &[fd]);
    }
    assert_eq!(net.network.count(), 0);
}

/// Two sockets, what each has been set, and whether the second may have its address: as Linux has it (`inet_csk_bind_conflict`).
#[test]
fn options_that_share() {
    const A: &[u32] = &[SO_REUSEADDR];
    const P: &[u32] = &[SO_REUSEPORT];
    let in_use = Err(error(EADDRINUSE));
    for (one, options, is_listening, other, others, expected) in [
        ("0.0.0.0:1", A, true, "[::]:1", A, in_use),
        ("0.0.0.0:1", A, true, "[::]:1 only", A, Ok(())),
        ("0.0.0.0:1", &[], true, "[::]:1 only", &[], Ok(())),
        ("[::]:1", A, true, "0.0.0.0:1", A, in_use),
        ("[::]:1", A, false, "0.0.0.0:1", A, Ok(())),
        ("[::]:1", A, false, "0.0.0.0:1", &[], in_use),
        ("[::]:1", &[], false, "0.0.0.0:1", A, in_use),
        ("[::]:1 only", &[], false, "127.0.0.1:1", &[], Ok(())),
        ("[::]:1 only", &[], false, "[::1]:1", &[], in_use),
        ("127.0.0.1:1", A, true, "127.0.0.1:1", A, in_use),
        ("127.0.0.1:1", P, true, "127.0.0.1:1", P, Ok(())),
        ("127.0.0.1:1", P, true, "0.0.0.0:1", P, Ok(())),
        ("127.0.0.1:1", P, true, "127.0.0.1:1", A, in_use),
        ("127.0.0.1:1", P, true, "127.0.0.1:1", &[], in_use),
    ] {
        let mut net = Net::begun();
        let first = bound(&mut net, one, options).unwrap();
        if is_listening {
            assert_eq!(net.call(nr::__NR_listen, &[first, 4]), 0);
        }
        let found = bound(&mut net, other, others);
        assert_eq!(found.map(|_| ()), expected, "{one} {options:?}, {other} {others:?}");
        if let Ok(second) = found {
            // The first that listens keeps others from it, unless the port is shared.
            let may = is_listening || options == P || (options != A && expected.is_ok());
            assert_eq!(net.call(nr::__NR_listen, &[second, 4]), 0);
            let outcome = net.call(nr::__NR_listen, &[first, 4]);
            assert_eq!(outcome, if may { 0 } else { error(EADDRINUSE) }, "{one}, {other}");
        }
    }
    // A port that is chosen is nobody else's, whatever the options.
    let mut net = Net::begun();
    let first = bound(&mut net, "127.0.0.1:0", P).unwrap();
    let second = bound(&mut net, "127.0.0.1:0", P).unwrap();
    assert_ne!(net.own(first), net.own(second));
    // Nor is one shared with another user.
    let at = net.own(first);
    assert!(bound(&mut net, &at, P).is_ok());
    assert_eq!(net.call(nr::__NR_setresuid, &[5, 5, 5]), 0);
    assert_eq!(bound(&mut net, &at, P), in_use.map(|()| 0));
}

/// A socket for datagrams with options, bound to an address, or why it cannot be.
fn for_datagrams(net: &mut Net, address: &str, options: &[u32]) -> Result<u64, i64> {
    let fd = net.socket(family_of(address).number(), DATAGRAM | BRIEF);
    for option in options {
        assert_eq!(net.set(fd, SOL_SOCKET, *option, 1), 0);
    }
    match net.bind(fd, address) {
        0 => Ok(fd),
        error => Err(error),
    }
}

/// Sockets for datagrams share an address if both say so in one way.
#[test]
fn datagrams_that_share() {
    const A: &[u32] = &[SO_REUSEADDR];
    const P: &[u32] = &[SO_REUSEPORT];
    let in_use = Err(error(EADDRINUSE));
    for (one, options, other, others, expected) in [
        ("0.0.0.0:1", A, "0.0.0.0:1", A, Ok(())),
        ("0.0.0.0:1", P, "127.0.0.1:1", P, Ok(())),
        ("[::]:1", A, "0.0.0.0:1", A, Ok(())),
        ("0.0.0.0:1", A, "0.0.0.0:1", P, in_use),
        ("0.0.0.0:1", A, "127.0.0.1:1", &[], in_use),
        ("0.0.0.0:1", &[], "127.0.0.1:1", A, in_use),
        ("127.0.0.1:1", &[], "10.0.2.15:1", &[], Ok(())),
    ] {
        let mut net = Net::begun();
        for_datagrams(&mut net, one, options).unwrap();
        // A stream at the port is another matter.
        bound(&mut net, one, &[]).unwrap();
        let found = for_datagrams(&mut net, other, others);
        assert_eq!(found.map(|_| ()), expected, "{one} {options:?}, {other} {others:?}");
    }
    // By `SO_REUSEPORT` an address is shared with those of the same user alone.
    for (options, expected) in [(A, Ok(())), (P, in_use)] {
        let mut net = Net::begun();
        for_datagrams(&mut net, "0.0.0.0:5353", options).unwrap();
        assert_eq!(net.call(nr::__NR_setresuid, &[5, 5, 5]), 0);
        assert_eq!(for_datagrams(&mut net, "0.0.0.0:5353", options).map(|_| ()), expected, "{options:?}");
    }
}

/// A port that is chosen is nobody else's, also if others would share it: neither of this sandbox, nor of another program of Tern.
#[test]
fn a_port_that_is_chosen_is_free() {
    const SHARED: [&[u32]; 2] = [&[SO_REUSEADDR], &[SO_REUSEPORT]];
    for options in SHARED {
        let mut net = Net::begun();
        let at = SocketAddr::from(([0, 0, 0, 0], 40_000));
        net.network.bind(u64::MAX, at, true).unwrap();
        for _ in 0..3 {
            net.rig.system.sockets.next_port = at.port();
            for_datagrams(&mut net, "0.0.0.0:0", options).unwrap();
        }
        let first = for_datagrams(&mut net, "127.0.0.1:0", options).unwrap();
        let chosen = net.own(first);
        net.rig.system.sockets.next_port = chosen.parse::<SocketAddr>().unwrap().port();
        let second = for_datagrams(&mut net, "127.0.0.1:0", options).unwrap();
        assert_ne!(net.own(second), chosen);
        net.network.deliver("10.0.2.2:9".parse().unwrap(), at, b"for another");
        assert_eq!(
            net.network.receive_from(u64::MAX).map(|datagram| datagram.bytes),
            Ok(b"for another".to_vec())
        );
        // A program that names it shares it, as it shares the other program's.
        assert!(for_datagrams(&mut net, &chosen, options).is_ok());
        assert!(for_datagrams(&mut net, "0.0.0.0:40000", options).is_ok());
    }
}

/// Sockets that share an address share what comes, and one that has it for itself goes before one that has all.
#[test]
fn a_port_that_is_shared_is_shared_by_connections() {
    let mut net = Net::begun();
    let all: Vec<u64> = (0..3).map(|_| listening(&mut net, "0.0.0.0:1", &[SO_REUSEPORT])).collect();
    let mut found: Vec<u64> = (0..30).flat_map(|_| heirs(&mut net, "127.0.0.1:1", &all)).collect();
    assert_eq!(found.len(), 30);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, all);
    let own = listening(&mut net, "127.0.0.1:1", &[SO_REUSEPORT]);
    let six = listening(&mut net, "[::]:1", &[SO_REUSEPORT]);
    let all = [&all[..], &[own, six]].concat();
    assert_eq!(heirs(&mut net, "127.0.0.1:1", &all), [own]);
    assert_eq!(heirs(&mut net, "[::1]:1", &all), [six]);
    let fours = heirs(&mut net, "10.0.2.15:1", &all);
    assert!(fours.len() == 1 && !fours.contains(&own) && !fours.contains(&six), "{fours:?}");
}

/// A thread waits for a connection that another thread's call takes from below.
#[test]
fn who_waits_is_told_of_connections_that_are_dealt() {
    let mut net = Net::begun();
    let [four, six] = ["0.0.0.0:1", "[::]:1 only"].map(|text| listening(&mut net, text, &[]));
    net.call(nr::__NR_fcntl, &[four, nr::F_SETFL.into(), 0]);
    let thread = net.rig.thread();
    assert_eq!(net.rig.try_by(thread, nr::__NR_accept4, &[four, 0, 0, 0]), None);
    let one = net.socket(AF_INET, STREAM | BRIEF);
    let [name, len] = net.address(one, "127.0.0.1:1");
    // Nobody has been told of it yet.
    assert_eq!(net.rig.call(nr::__NR_connect, &[one, name, len]), error(EINPROGRESS));
    assert_eq!(net.rig.call(nr::__NR_accept4, &[six, 0, 0, BRIEF.into()]), error(EAGAIN));
    assert!(net.rig.answer(thread).is_some_and(|fd| fd > 0));
    // More come than anybody accepts: they are broken off, and the other socket is reached all the same.
    for _ in 0..DEALT_MAX + 4 {
        let one = net.socket(AF_INET, STREAM | BRIEF);
        assert_eq!(net.connect(one, "127.0.0.1:1"), 0);
        net.call(nr::__NR_close, &[one]);
    }
    let seven = net.socket(AF_INET6, STREAM | BRIEF);
    assert_eq!(net.connect(seven, "[::1]:1"), 0);
    assert!(net.accept(six) > 0);
    net.call(nr::__NR_close, &[four]);
    net.call(nr::__NR_close, &[six]);
}

/// If the network has no room for a connection, who accepts hears so, and nobody is told for ever.
#[test]
fn a_connection_without_room_is_an_error() {
    let mut net = Net::far();
    let pair = ["0.0.0.0:1", "[::]:1 only"].map(|text| listening(&mut net, text, &[]));
    let one = net.socket(AF_INET, STREAM | BRIEF);
    let mut others = Vec::new();
    loop {
        let fd = net.socket(AF_INET, DATAGRAM);
        if net.bind(fd, "127.0.0.1:0") != 0 {
            break;
        }
        others.push(fd);
    }
    net.call(nr::__NR_close, &[others[0]]);
    assert_eq!(net.connect(one, "127.0.0.1:1"), 0);
    assert_eq!((net.poll(pair[0]), net.accept(pair[0])), (0x41, error(crate::errno::ENOBUFS)));
    net.call(nr::__NR_close, &[others[1]]);
    assert!(net.accept(pair[0]) > 0);
    assert_eq!((net.poll(pair[0]), net.poll(pair[1])), (0, 0));
}

/// A connection begins where its socket was bound, and is there again when it is over.
#[test]
fn a_connection_begins_where_it_was_bound() {
    let mut net = Net::begun();
    let listener = net.listener("0.0.0.0:80");
    let fd = bound(&mut net, "0.0.0.0:700", &[]).unwrap();
    assert_eq!((net.connect(fd, "127.0.0.1:80"), net.own(fd)), (0, "127.0.0.1:700".into()));
    let taken = net.accept(listener) as u64;
    assert_eq!(net.name(nr::__NR_getpeername, taken), Ok("127.0.0.1:700".into()));
    assert_eq!(bound(&mut net, "0.0.0.0:700", &[]), Err(error(EADDRINUSE)));
    let nobody = net.rig.put(&[0; 16]);
    assert_eq!(net.call(nr::__NR_connect, &[fd, nobody, 16]), 0);
    assert_eq!(net.own(fd), "0.0.0.0:700");
    // A refusal leaves it its address, too.
    assert_eq!((net.connect(fd, "127.0.0.1:9"), net.own(fd)), (error(ECONNREFUSED), "0.0.0.0:700".into()));
    assert_eq!((net.connect(fd, "10.0.2.15:80"), net.own(fd)), (0, "10.0.2.15:700".into()));
}

/// Several connections begin at a port that their sockets share, if they lead to different ends.
#[test]
fn connections_from_one_port() {
    let mut net = Net::begun();
    let listeners = [net.listener("127.0.0.1:80"), net.listener("127.0.0.1:81")];
    let fds: [u64; 3] = core::array::from_fn(|_| bound(&mut net, "127.0.0.1:700", &[SO_REUSEADDR]).unwrap());
    assert_eq!(net.connect(fds[0], "127.0.0.1:80"), 0);
    assert_eq!(net.connect(fds[1], "127.0.0.1:80"), error(EADDRNOTAVAIL));
    assert_eq!((net.connect(fds[1], "127.0.0.1:81"), net.own(fds[1])), (0, "127.0.0.1:700".into()));
    for listener in listeners {
        let taken = net.accept(listener) as u64;
        assert_eq!(net.name(nr::__NR_getpeername, taken), Ok("127.0.0.1:700".into()));
    }
    net.call(nr::__NR_close, &[fds[0]]);
    assert_eq!(net.connect(fds[2], "127.0.0.1:80"), 0);
}
