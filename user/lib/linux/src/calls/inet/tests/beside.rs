//! Things beside datagrams, as Linux has them.

use super::*;
use crate::errno::{EFAULT, ENOBUFS, ENODEV};
use crate::socket::beside::{half, things};

/// Level, type and bytes.
type Thing<'a> = ((u32, u32), &'a [u8]);

/// Levels of IPv4 and of IPv6.
const FOUR: u32 = 0;
const SIX: u32 = 41;

/// A socket for datagrams at an address, and another one without any.
fn two(net: &mut Net, at: &str) -> [u64; 2] {
    let all = [(); 2].map(|()| net.socket(family_of(at).number(), DATAGRAM | BRIEF));
    assert_eq!(net.bind(all[0], at), 0);
    all
}

fn things_bytes(all: &[Thing]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((level, kind), body) in all {
        bytes.extend_from_slice(&(16 + body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&[level.to_le_bytes(), kind.to_le_bytes()].concat());
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}

/// Sends a byte with bytes beside it.
fn send_raw(net: &mut Net, fd: u64, to: &str, control: [u64; 2]) -> i64 {
    let [name, len] = if to.is_empty() { [0; 2] } else { net.address(fd, to) };
    let bytes = net.rig.put(b"x");
    let pieces = net.rig.put(&[bytes, 1].map(u64::to_le_bytes).concat());
    let header = [name, len, pieces, 1, control[0], control[1], 0];
    let header = net.rig.put(&header.map(u64::to_le_bytes).concat());
    net.call(nr::__NR_sendmsg, &[fd, header, 0])
}

fn send_with(net: &mut Net, fd: u64, to: &str, all: &[Thing]) -> i64 {
    let bytes = things_bytes(all);
    let at = net.rig.put(&bytes);
    send_raw(net, fd, to, [at, bytes.len() as u64])
}

/// Receives a datagram with so much room for what is beside it: that, and the flags.
fn receive_with(net: &mut Net, fd: u64, room: usize, flags: u32) -> Result<(Vec<u8>, u32), i64> {
    let (bytes, control) = (net.rig.room(8), net.rig.room(512));
    let pieces = net.rig.put(&[bytes, 8].map(u64::to_le_bytes).concat());
    let header = [0, 0, pieces, 1, control, room as u64, u64::MAX];
    let header = net.rig.put(&header.map(u64::to_le_bytes).concat());
    let outcome = net.call(nr::__NR_recvmsg, &[fd, header, flags.into()]);
    if outcome < 0 {
        return Err(outcome);
    }
    let len = net.rig.half(header + 40) as usize;
    Ok((net.rig.get(FIRST, control, len), net.rig.half(header + 48)))
}

/// Checks what is beside the next datagram.
#[track_caller]
fn check(net: &mut Net, fd: u64, expected: &[Thing]) {
    let (bytes, flags) = receive_with(net, fd, 512, 0).unwrap();
    let found: Vec<_> = things(&bytes).map(Result::unwrap).collect();
    assert_eq!((found.as_slice(), flags), (expected, 0));
}

fn four_info(interface: u32, own: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    [interface.to_le_bytes(), own, to].concat()
}

fn six_info(address: &str, interface: u32) -> Vec<u8> {
    let address: core::net::Ipv6Addr = address.parse().unwrap();
    [&address.octets()[..], &interface.to_le_bytes()].concat()
}

fn number(value: i32) -> [u8; 4] {
    value.to_le_bytes()
}

#[test]
fn ipv4_tells_address_hops_and_class() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "127.0.0.1:700");
    let to = "127.0.0.1:700";
    send_with(&mut net, other, to, &[]);
    check(&mut net, fd, &[]);
    for name in [IP_RECVTOS, IP_RECVTTL, IP_PKTINFO] {
        assert_eq!(net.set(fd, FOUR, name, 1), 0);
    }
    let info = four_info(1, [127, 0, 0, 1], [127, 0, 0, 1]);
    let expect = |net: &mut Net, hops: i32, class: u8| {
        let all: [Thing; 3] =
            [((FOUR, IP_PKTINFO), &info), ((FOUR, IP_TTL), &number(hops)), ((FOUR, IP_TOS), &[class])];
        check(net, fd, &all);
    };
    send_with(&mut net, other, to, &[]);
    expect(&mut net, 64, 0);
    assert_eq!((net.set(other, FOUR, IP_TTL, 3), net.set(other, FOUR, IP_TOS, 0x1ff)), (0, 0));
    assert_eq!(net.option(other, FOUR, IP_TOS), Ok(0xff));
    send_with(&mut net, other, to, &[]);
    expect(&mut net, 3, 0xff);
    let all: [Thing; 3] = [
        ((FOUR, IP_TTL), &number(200)),
        ((FOUR, IP_TOS), &[0x11]),
        // Levels of others are not looked at.
        ((SIX, IPV6_HOPLIMIT), b""),
    ];
    assert_eq!(send_with(&mut net, other, to, &all), 1);
    expect(&mut net, 200, 0x11);
    // By `sendto` and `write`, too, and it is told of one that stays.
    net.send_to(other, b"x", to);
    assert!(receive_with(&mut net, fd, 512, MSG_PEEK).unwrap().0.len() == 80);
    expect(&mut net, 3, 0xff);
}

#[test]
fn ipv6_tells_address_hops_and_class() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "[::1]:700");
    let to = "[::1]:700";
    for name in [IPV6_RECVTCLASS, IPV6_RECVHOPLIMIT, IPV6_RECVPKTINFO] {
        assert_eq!(net.set(fd, SIX, name, 1), 0);
    }
    let info = six_info("::1", 1);
    let expect = |net: &mut Net, hops: i32, class: i32| {
        let [hops, class] = [hops, class].map(number);
        let all: [Thing; 3] =
            [((SIX, IPV6_PKTINFO), &info), ((SIX, IPV6_HOPLIMIT), &hops), ((SIX, IPV6_TCLASS), &class)];
        check(net, fd, &all);
    };
    send_with(&mut net, other, to, &[]);
    expect(&mut net, 64, 0);
    let with = |hops: i32, class: i32| {
        let [hops, class] = [hops, class].map(number);
        things_bytes(&[((SIX, IPV6_HOPLIMIT), &hops), ((SIX, IPV6_TCLASS), &class)])
    };
    let send = |net: &mut Net, hops, class| {
        let bytes = with(hops, class);
        let at = net.rig.put(&bytes);
        assert_eq!(send_raw(net, other, to, [at, bytes.len() as u64]), 1);
    };
    send(&mut net, 9, 0xb8);
    expect(&mut net, 9, 0xb8);
    send(&mut net, 0, 255);
    expect(&mut net, 0, 255);
    assert_eq!((net.set(other, SIX, IPV6_UNICAST_HOPS, 5), net.set(other, SIX, IPV6_TCLASS, 0x33)), (0, 0));
    send(&mut net, -1, -1);
    expect(&mut net, 5, 0x33);
}

/// A socket of IPv6 is told of datagrams of IPv4 by things of both, as it has asked for.
#[test]
fn ipv4_comes_to_sockets_of_ipv6() {
    let mut net = Net::begun();
    let [fd, six] = two(&mut net, "[::]:700");
    let four = net.socket(AF_INET, DATAGRAM | BRIEF);
    for name in [IPV6_RECVTCLASS, IPV6_RECVHOPLIMIT, IPV6_RECVPKTINFO] {
        assert_eq!(net.set(fd, SIX, name, 1), 0);
    }
    send_with(&mut net, four, "127.0.0.1:700", &[]);
    let mapped = six_info("::ffff:127.0.0.1", 1);
    check(&mut net, fd, &[((SIX, IPV6_PKTINFO), &mapped)]);
    for name in [IP_RECVTOS, IP_RECVTTL, IP_PKTINFO] {
        assert_eq!(net.set(fd, FOUR, name, 1), 0);
    }
    let own = four_info(1, [127, 0, 0, 1], [127, 0, 0, 1]);
    for (sender, things, hops) in [
        (four, vec![((FOUR, IP_TTL), number(9))], 9),
        (six, vec![((FOUR, IP_TTL), number(8))], 8),
        (six, vec![((SIX, IPV6_HOPLIMIT), number(7))], 64),
    ] {
        let things: Vec<Thing> = things.iter().map(|(which, body)| (*which, &body[..])).collect();
        assert_eq!(send_with(&mut net, sender, "127.0.0.1:700", &things), 1);
        let hops = number(hops);
        let all: [Thing; 4] = [
            ((SIX, IPV6_PKTINFO), &mapped),
            ((FOUR, IP_PKTINFO), &own),
            ((FOUR, IP_TTL), &hops),
            ((FOUR, IP_TOS), &[0]),
        ];
        check(&mut net, fd, &all);
    }
    for (source, outcome) in [("::", EINVAL), ("::1", EINVAL)] {
        let info = six_info(source, 0);
        let all = [((SIX, IPV6_PKTINFO), &info[..])];
        assert_eq!(send_with(&mut net, six, "127.0.0.1:700", &all), error(outcome));
    }
    for (source, seen) in [("::ffff:127.0.0.9", "127.0.0.9:"), ("::ffff:0.0.0.0", "127.0.0.1:")] {
        let info = six_info(source, 0);
        assert_eq!(send_with(&mut net, six, "127.0.0.1:700", &[((SIX, IPV6_PKTINFO), &info)]), 1);
        assert!(net.receive_from(fd).unwrap().1.starts_with(seen));
    }
}

/// Each option for dates takes the place of the one before, and each is read as Linux reads it.
#[test]
fn dates_are_told_in_four_forms() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "127.0.0.1:700");
    let names = [SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW];
    for (name, value, told, fine) in [
        (SO_TIMESTAMP, 1, [1, 0, 0, 0], false),
        (SO_TIMESTAMPNS, 1, [0, 1, 0, 0], true),
        (SO_TIMESTAMP_NEW, 7, [0, 0, 1, 0], false),
        (SO_TIMESTAMPNS_NEW, 1, [0, 0, 1, 1], true),
        (SO_TIMESTAMPNS, 0, [0; 4], false),
    ] {
        assert_eq!(net.set(fd, SOL_SOCKET, name, value), 0);
        assert_eq!(names.map(|name| net.option(fd, SOL_SOCKET, name)), told.map(Ok));
        let date = crate::machine::Machine::date(&net.rig.system.machine);
        send_with(&mut net, other, "127.0.0.1:700", &[]);
        // The date is that at which it came.
        net.rig.pass(1_234_567_890);
        let rest = date % 1_000_000_000;
        let words = [date / 1_000_000_000, if fine { rest } else { rest / 1000 }];
        let bytes = words.map(u64::to_le_bytes).concat();
        let all: [Thing; 1] = [((SOL_SOCKET, name), &bytes)];
        check(&mut net, fd, if value == 0 { &[] } else { &all });
    }
}

/// Bytes are told as far as there is room, with the flag that says so.
#[test]
fn room_for_what_is_beside_a_datagram() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "127.0.0.1:700");
    for name in [IP_RECVTOS, IP_RECVTTL, IP_PKTINFO] {
        assert_eq!(net.set(fd, FOUR, name, 1), 0);
    }
    send_with(&mut net, other, "127.0.0.1:700", &[]);
    for room in 0..100 {
        let (bytes, flags) = receive_with(&mut net, fd, room, MSG_PEEK).unwrap();
        assert_eq!(flags, if room < 73 { MSG_CTRUNC } else { 0 }, "{room}");
        assert!(bytes.len() <= room && bytes.len() < 81);
    }
    assert_eq!(
        receive_with(&mut net, fd, 0, MSG_PEEK | MSG_CMSG_CLOEXEC).unwrap().1,
        MSG_CTRUNC | MSG_CMSG_CLOEXEC
    );
    // Nobody who only reads is told of it, and without a place there is no room.
    assert_eq!(net.receive(fd, 8, MSG_PEEK), Ok(b"x".to_vec()));
    let header = net.rig.put(&[0u64, 0, 0, 0, 0, 64, 0].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_recvmsg, &[fd, header, 0]), 0);
    assert_eq!([net.rig.half(header + 40), net.rig.half(header + 48)], [0, MSG_CTRUNC | MSG_TRUNC]);
}

/// Outcomes for lengths of 15 to 40 bytes, and for values from -2 to 256, are those of Linux.
#[test]
fn wrong_things_beside_a_datagram() {
    let mut net = Net::begun();
    let [_, six] = two(&mut net, "[::1]:700");
    let [_, four] = two(&mut net, "127.0.0.1:700");
    let values = [-2, -1, 0, 1, 255, 256];
    for (which, by_six, by_four) in [
        ((SIX, IPV6_HOPLIMIT), [0, 1, 1, 1, 1, 0], [1; 6]),
        ((SIX, IPV6_2292HOPLIMIT), [0, 1, 1, 1, 1, 0], [1; 6]),
        ((SIX, IPV6_TCLASS), [0, 1, 1, 1, 1, 0], [1; 6]),
        ((SIX, IPV6_DONTFRAG), [0, 0, 1, 1, 0, 0], [1; 6]),
        ((SIX, IPV6_FLOWINFO), [1; 6], [1; 6]),
        ((SIX, IPV6_PKTINFO), [0; 6], [1; 6]),
        ((SIX, 77), [0; 6], [1; 6]),
        ((FOUR, IP_TTL), [1; 6], [0, 0, 0, 1, 1, 0]),
        ((FOUR, IP_TOS), [1; 6], [0, 0, 1, 1, 1, 0]),
        ((FOUR, IP_PKTINFO), [1; 6], [0; 6]),
        ((FOUR, 77), [1; 6], [0; 6]),
        ((SOL_SOCKET, SO_TIMESTAMP), [0; 6], [0; 6]),
        ((SOL_SOCKET, SCM_RIGHTS), [1; 6], [1; 6]),
        ((SOL_SOCKET, SCM_CREDENTIALS), [1; 6], [1; 6]),
        ((SOL_SOCKET, SO_MARK), [1; 6], [1; 6]),
        ((17, 103), [0; 6], [0; 6]),
        ((6, 1), [1; 6], [1; 6]),
    ] {
        for (fd, to, expected) in [(six, "[::1]:700", by_six), (four, "127.0.0.1:700", by_four)] {
            let outcome = |good: bool| if good { 1 } else { error(EINVAL) };
            for (value, is_good) in values.iter().zip(expected) {
                let sent = send_with(&mut net, fd, to, &[(which, &number(*value))]);
                assert_eq!(sent, outcome(is_good == 1), "{which:?} {value}");
            }
            // Other lengths than that of a number.
            for len in [0, 1, 3, 5, 8] {
                let sent = send_with(&mut net, fd, to, &[(which, &[7; 8][..len])]);
                let is_good = match which {
                    (FOUR, IP_TOS) if len == 1 => true,
                    (SIX, IPV6_FLOWINFO) => fd == four || len > 4,
                    (SOL_SOCKET, SO_MARK) => false,
                    _ => expected == [1; 6],
                };
                assert_eq!(sent, outcome(is_good), "{which:?} of {len} bytes");
            }
        }
    }
}

/// Lengths of all that is beside a datagram, and memory that is not there.
#[test]
fn wrong_lengths_beside_a_datagram() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "[::1]:700");
    let to = "[::1]:700";
    let bytes = things_bytes(&[((SIX, IPV6_HOPLIMIT), &number(9)), ((SIX, 999), b"")]);
    let at = net.rig.put(&bytes);
    for len in 0..=40 {
        let expected = if matches!(len, 16..20 | 40) { error(EINVAL) } else { 1 };
        assert_eq!(send_raw(&mut net, other, to, [at, len]), expected, "{len}");
        while net.receive(fd, 8, 0).is_ok() {}
    }
    for (control, expected) in
        [([0, 24], EFAULT), ([8, 24], EFAULT), ([at, 1 << 20], ENOBUFS), ([at, u64::MAX], ENOBUFS)]
    {
        assert_eq!(send_raw(&mut net, other, to, control), error(expected), "{control:x?}");
    }
    // An address is looked for first.
    let wrong = net.rig.put(&[1; 24]);
    assert_eq!(send_raw(&mut net, other, "", [wrong, 24]), error(EDESTADDRREQ));
    for len in [0u64, 15, 41, u64::MAX, 1 << 32 | 20] {
        let thing: Thing = ((SIX, IPV6_HOPLIMIT), &number(9));
        let mut bytes = things_bytes(&[thing; 2]);
        bytes[24..32].copy_from_slice(&len.to_le_bytes());
        let at = net.rig.put(&bytes);
        assert_eq!(send_raw(&mut net, other, to, [at, 48]), error(EINVAL), "{len}");
    }
}

/// Sources and interfaces by which a datagram goes, for one to loopback.
#[test]
fn sources_of_datagrams() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "127.0.0.1:700");
    let (none, no_way) = (error(ENODEV), error(ENETUNREACH));
    let sources = [[0; 4], [127, 0, 0, 1], [127, 0, 0, 5], [1, 2, 3, 4], [224, 0, 0, 1]];
    for (interface, expected) in [
        (0, [1, 1, 1, no_way, error(EINVAL)]),
        (1, [1, 1, 1, no_way, error(EINVAL)]),
        (2, [no_way, no_way, no_way, no_way, error(EINVAL)]),
        (99, [none, none, none, no_way, error(EINVAL)]),
    ] {
        for (source, expected) in sources.iter().zip(expected) {
            let info = four_info(interface, *source, [9; 4]);
            let sent = send_with(&mut net, other, "127.0.0.1:700", &[((FOUR, IP_PKTINFO), &info)]);
            assert_eq!(sent, expected, "{interface} {source:?}");
            if sent == 1 {
                let seen = if source[0] == 0 {
                    "127.0.0.1"
                } else {
                    &core::net::Ipv4Addr::from(*source).to_string()
                };
                assert!(net.receive_from(fd).unwrap().1.starts_with(seen));
            }
        }
    }
    let [fd, other] = two(&mut net, "[::1]:700");
    let bad = error(EINVAL);
    let sources = ["::", "::1", "::ffff:127.0.0.1", "fe80::1", "1:2::3", "ff02::1"];
    for (interface, expected) in [
        (0, [1, 1, bad, bad, bad, bad]),
        (1, [1, 1, bad, bad, bad, bad]),
        (2, [no_way, bad, bad, bad, bad, bad]),
        (99, [none, none, bad, none, none, none]),
    ] {
        for (source, expected) in sources.iter().zip(expected) {
            let info = six_info(source, interface);
            let sent = send_with(&mut net, other, "[::1]:700", &[((SIX, IPV6_PKTINFO), &info)]);
            assert_eq!(sent, expected, "{interface} {source}");
            if sent == 1 {
                assert!(net.receive_from(fd).unwrap().1.starts_with("[::1]"));
            }
        }
    }
}

/// Of a datagram that has come by the network below, no more is told than its date, and the address that its socket has.
#[test]
fn datagrams_from_elsewhere_tell_what_is_known() {
    for (at, knows) in [(format!("{OWN}:700"), true), ("0.0.0.0:700".into(), false)] {
        let mut net = Net::begun();
        let [fd, _] = two(&mut net, &at);
        for name in [IP_RECVTOS, IP_RECVTTL, IP_PKTINFO] {
            assert_eq!(net.set(fd, FOUR, name, 1), 0);
        }
        net.network.deliver("10.0.2.2:53".parse().unwrap(), format!("{OWN}:700").parse().unwrap(), b"x");
        let info = four_info(2, [10, 0, 2, 15], [10, 0, 2, 15]);
        let all: [Thing; 1] = [((FOUR, IP_PKTINFO), &info)];
        check(&mut net, fd, if knows { &all } else { &[] });
        net.set(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
        net.network.deliver("10.0.2.2:53".parse().unwrap(), format!("{OWN}:700").parse().unwrap(), b"x");
        let (bytes, _) = receive_with(&mut net, fd, 32, 0).unwrap();
        assert_eq!((half(&bytes, 12), bytes.len()), (SO_TIMESTAMPNS, 32));
    }
}

/// Hops and the interface of a datagram to a group are told to the network.
#[test]
fn things_beside_datagrams_to_groups() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM | BRIEF);
    let info = four_info(1, [0; 4], [0; 4]);
    let all: [Thing; 2] = [((FOUR, IP_TTL), &number(9)), ((FOUR, IP_PKTINFO), &info)];
    assert_eq!(send_with(&mut net, fd, "239.1.2.3:9", &all), 1);
    let sending = net.network.groups(net.inet(fd).number).1.unwrap();
    assert_eq!((sending.hops, sending.from.to_string().as_str()), (9, "127.0.0.1"));
    assert_eq!(send_with(&mut net, fd, "239.1.2.3:9", &[]), 1);
    let sending = net.network.groups(net.inet(fd).number).1.unwrap();
    assert_eq!((sending.hops, sending.from.to_string().as_str()), (1, "0.0.0.0"));
}
