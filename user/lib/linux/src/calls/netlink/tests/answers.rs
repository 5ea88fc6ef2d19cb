//! Interfaces, addresses and ways as they are answered. Numbers and structures that are expected are Linux's.

use super::*;
use crate::errno::{EADDRNOTAVAIL, ENETUNREACH, ENODEV};
use crate::network::loopback::{HARDWARE, OWN};
use core::net::{IpAddr, Ipv4Addr};

/// A body of zeros with some bytes at places.
fn body(len: usize, places: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, value) in places {
        bytes[*at..*at + value.len()].copy_from_slice(value);
    }
    bytes
}

/// Bytes of an attribute.
fn put(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_le_bytes().to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute of a message that is a number.
fn number(message: &[u8], structure: usize, kind: u16) -> Option<u32> {
    attribute(message, structure, kind).map(|value| word(&value, 0))
}

#[test]
fn interfaces_are_listed() {
    let mut net = Net::begun();
    let fd = net.socket();
    // Libraries send one byte of the structure, with zeros behind it; `ip` sends all of it, and what it does not want to hear.
    for body in [vec![0; 4], vec![17, 0, 0, 0], [vec![0; 16], put(29, &[9, 0, 0, 0])].concat()] {
        let all = net.list(fd, GET_LINK, &body);
        let [lo, eth] = all.as_slice() else { panic!("{all:?}") };
        for (link, kind, index, flags, name, mtu, state) in
            [(lo, 772u16, 1u32, 0x1_0049u32, "lo\0", 65_536, 0), (eth, 1, 2, 0x1_1043, "eth0\0", 1500, 6)]
        {
            let head =
                [&[0; 2][..], &kind.to_le_bytes(), &index.to_le_bytes(), &flags.to_le_bytes(), &[0; 4]];
            assert_eq!((half(link, 4), &link[16..32]), (NEW_LINK, &head.concat()[..]));
            assert_eq!(attribute(link, 16, 3), Some(name.as_bytes().to_vec()));
            assert_eq!((number(link, 16, 4), number(link, 16, 13)), (Some(mtu), Some(1000)));
            assert_eq!(
                (attribute(link, 16, 16), attribute(link, 16, 33)),
                (Some(vec![state]), Some(vec![1]))
            );
            assert_eq!(attribute(link, 16, 6), Some(b"noqueue\0".to_vec()));
            assert_eq!([23, 7].map(|kind| attribute(link, 16, kind).unwrap().len()), [200, 96]);
        }
        assert_eq!((attribute(lo, 16, 1), attribute(lo, 16, 2)), (Some(vec![0; 6]), Some(vec![0; 6])));
        assert_eq!(attribute(eth, 16, 1), Some(HARDWARE.to_vec()));
        assert_eq!(attribute(eth, 16, 2), Some(vec![0xff; 6]));
    }
    assert!(net.list(fd, GET_LINK, &body(16, &[(0, &[7])])).is_empty(), "nothing is in a bridge");
    // Without a network there is loopback, which is not in use.
    net.rig.system.sockets.network = Below::default();
    let all = net.list(fd, GET_LINK, &[0; 4]);
    let [lo] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((word(lo, 24), attribute(lo, 16, 16)), (8, Some(vec![2])));
    assert!(net.list(fd, GET_ADDRESS, &[0; 8]).is_empty() && net.list(fd, GET_ROUTE, &[0; 12]).is_empty());
}

#[test]
fn one_interface_is_asked_for() {
    let mut net = Net::begun();
    let fd = net.socket();
    let named = |kind: u16, name: &[u8]| [vec![0; 16], put(kind, name)].concat();
    for (asked, expected) in [
        (body(16, &[(4, &[1])]), 1),
        (body(16, &[(4, &[2])]), 2),
        (named(3, b"eth0\0"), 2),
        (named(3, b"lo"), 1),
        (named(53, b"lo\0"), 1),
        // A number is looked at before a name.
        ([body(16, &[(4, &[1])]), put(3, b"eth0\0")].concat(), 1),
    ] {
        let message = net.ask(fd, GET_LINK, 0, &asked);
        assert_eq!((half(&message, 4), half(&message, 6), word(&message, 20)), (NEW_LINK, 0, expected));
    }
    for (asked, expected) in [
        (body(16, &[(4, &[3])]), ENODEV),
        (named(3, b"eth1\0"), ENODEV),
        (named(3, b""), ENODEV),
        (body(16, &[(4, &[0xff; 4])]), EINVAL),
        (vec![0; 16], EINVAL),
        (vec![0; 12], EINVAL),
    ] {
        assert_eq!(net.refusal(fd, GET_LINK, 0, &asked), error(expected), "{asked:?}");
    }
}

#[test]
fn addresses_are_listed() {
    let mut net = Net::begun();
    let fd = net.socket();
    let text = |message: &Vec<u8>| {
        let octets = attribute(message, 8, 1).unwrap();
        let address = match octets.as_slice() {
            [a, b, c, d] => IpAddr::from([*a, *b, *c, *d]),
            octets => IpAddr::from(<[u8; 16]>::try_from(octets).unwrap()),
        };
        let [prefix, scope, index] = [17, 19, 20].map(|at| message[at]);
        format!("{address}/{prefix} {scope} {index}")
    };
    let [four, six] = [["127.0.0.1/8 254 1", "10.0.2.15/24 0 2"], ["::1/128 254 1", "fe80::15/64 253 2"]];
    for (family, expected) in
        [(0, [four, six].concat()), (2, four.to_vec()), (10, six.to_vec()), (17, [four, six].concat())]
    {
        let all = net.list(fd, GET_ADDRESS, &[family, 0, 0, 0]);
        assert_eq!(all.iter().map(text).collect::<Vec<String>>(), expected, "{family}");
    }
    let all = net.list(fd, GET_ADDRESS, &[0; 8]);
    let (lo, eth, six) = (&all[0], &all[1], &all[3]);
    let own = OWN.parse::<Ipv4Addr>().unwrap().octets();
    assert_eq!((half(eth, 4), eth[16], eth[18]), (NEW_ADDRESS, 2, 0x80));
    let local = [2, 4, 3].map(|kind| attribute(eth, 8, kind));
    assert_eq!(local, [Some(own.to_vec()), Some(vec![10, 0, 2, 255]), Some(b"eth0\0".to_vec())]);
    assert_eq!((attribute(lo, 8, 4), attribute(lo, 8, 3)), (None, Some(b"lo\0".to_vec())));
    assert_eq!([2, 4, 3].map(|kind| attribute(six, 8, kind)), [None, None, None]);
    for message in &all {
        let times = attribute(message, 8, 6).unwrap();
        assert_eq!((number(message, 8, 8), times.len()), (Some(0x80), 16));
        assert_eq!([0, 4].map(|at| word(&times, at)), [u32::MAX; 2]);
    }
    // Those of one interface, if it is to be looked at.
    let of_card = body(8, &[(4, &[2])]);
    assert_eq!(net.list(fd, GET_ADDRESS, &of_card).len(), 4);
    assert_eq!(net.set(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1), 0);
    let all = net.list(fd, GET_ADDRESS, &of_card);
    assert_eq!(all.iter().map(text).collect::<Vec<_>>(), [four[1], "fe80::15/64 253 2"]);
    assert_eq!(u32::from(half(&all[0], 6)), NLM_F_MULTI | NLM_F_DUMP_FILTERED);
    assert!(net.list(fd, GET_ADDRESS, &body(8, &[(4, &[9])])).is_empty());
    for kind in [GET_LINK, GET_ADDRESS, GET_ROUTE] {
        assert_eq!(net.refusal(fd, kind, NLM_F_DUMP, &[0; 4]), error(EINVAL), "{kind}");
    }
}

#[test]
fn one_address_is_asked_for() {
    let mut net = Net::begun();
    let fd = net.socket();
    let head = body(8, &[(0, &[10])]);
    let own = body(16, &[(0, &[0xfe, 0x80]), (15, &[0x15])]);
    for kind in [1, 2] {
        let message = net.ask(fd, GET_ADDRESS, 0, &[head.clone(), put(kind, &own)].concat());
        assert_eq!((half(&message, 4), word(&message, 20)), (NEW_ADDRESS, 2));
        assert_eq!(attribute(&message, 8, 1), Some(own.clone()));
    }
    for (asked, expected) in [
        ([head.clone(), put(1, &[1; 16])].concat(), EADDRNOTAVAIL),
        ([head.clone(), put(1, &[1; 15])].concat(), EINVAL),
        (head.clone(), EINVAL),
        (vec![10, 0, 0, 0], EINVAL),
        (body(8, &[(0, &[2])]), EOPNOTSUPP),
        (body(8, &[]), EOPNOTSUPP),
    ] {
        assert_eq!(net.refusal(fd, GET_ADDRESS, 0, &asked), error(expected), "{asked:?}");
    }
}

#[test]
fn ways_are_listed() {
    let mut net = Net::begun();
    let fd = net.socket();
    // Family, length of the prefix, table, protocol, scope, kind.
    let head = |message: &Vec<u8>| [16, 17, 20, 21, 22, 23].map(|at| message[at]);
    let main = [[2, 0, 254, 3, 0, 1], [2, 24, 254, 2, 253, 1]];
    let local = [[2, 8, 255, 2, 254, 2], [2, 32, 255, 2, 254, 2]];
    let six =
        [[10, 0, 254, 9, 0, 1], [10, 64, 254, 2, 0, 1], [10, 128, 255, 2, 0, 2], [10, 128, 255, 2, 0, 2]];
    for (family, expected) in [
        (0, [&main[..], &local, &six].concat()),
        (2, [main, local].concat()),
        (10, six.to_vec()),
        (128, vec![]),
    ] {
        let all = net.list(fd, GET_ROUTE, &[family, 0, 0, 0]);
        assert_eq!(all.iter().map(head).collect::<Vec<_>>(), expected, "{family}");
    }
    let all = net.list(fd, GET_ROUTE, &[2, 0, 0, 0]);
    let parts = |message: &[u8]| [1, 5, 7].map(|kind| attribute(message, 12, kind));
    assert_eq!(parts(&all[0]), [None, Some(vec![10, 0, 2, 2]), None]);
    assert_eq!(parts(&all[1]), [Some(vec![10, 0, 2, 0]), None, Some(vec![10, 0, 2, 15])]);
    assert_eq!([4, 15].map(|kind| number(&all[1], 12, kind)), [Some(2), Some(254)]);
    // None are remembered. A table is looked at if everything of a request is.
    assert!(net.list(fd, GET_ROUTE, &body(12, &[(0, &[2]), (9, &[2])])).is_empty());
    let table = [body(12, &[(0, &[2])]), put(15, &[255, 0, 0, 0])].concat();
    assert_eq!(net.list(fd, GET_ROUTE, &table).len(), 4);
    assert_eq!(net.set(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1), 0);
    let all = net.list(fd, GET_ROUTE, &table);
    assert_eq!(all.iter().map(head).collect::<Vec<_>>(), local);
    let all = net.list(fd, GET_ROUTE, &body(12, &[(0, &[2]), (4, &[254])]));
    assert_eq!(all.iter().map(head).collect::<Vec<_>>(), main);
}

#[test]
fn the_way_to_an_address_is_asked_for() {
    let mut net = Net::begun();
    let fd = net.socket();
    let asked = |family: u8, to: &[u8]| [body(12, &[(0, &[family])]), put(1, to)].concat();
    for (to, interface, router) in
        [([1, 1, 1, 1], 2, Some(vec![10, 0, 2, 2])), ([10, 0, 2, 3], 2, None), ([10, 0, 2, 15], 1, None)]
    {
        let message = net.ask(fd, GET_ROUTE, 0, &asked(2, &to));
        assert_eq!((half(&message, 4), message[17], word(&message, 24)), (NEW_ROUTE, 32, 0x200));
        assert_eq!(attribute(&message, 12, 1), Some(to.to_vec()));
        assert_eq!((number(&message, 12, 4), attribute(&message, 12, 5)), (Some(interface), router));
        assert_eq!(attribute(&message, 12, 7), Some(vec![10, 0, 2, 15]));
    }
    let near = body(16, &[(0, &[0xfe, 0x80]), (15, &[3])]);
    assert_eq!(number(&net.ask(fd, GET_ROUTE, 0, &asked(10, &near)), 12, 4), Some(2));
    assert_eq!(number(&net.ask(fd, GET_ROUTE, 0, &body(12, &[(0, &[2])])), 12, 4), Some(1));
    for (asked, expected) in [
        (asked(10, &[0x20; 16]), ENETUNREACH),
        (asked(2, &[1; 3]), EINVAL),
        (asked(2, &[1; 16]), EINVAL),
        (asked(10, &[1; 4]), EINVAL),
        (asked(0, &[1; 4]), EOPNOTSUPP),
        (vec![2, 32, 0, 0], EINVAL),
    ] {
        assert_eq!(net.refusal(fd, GET_ROUTE, 0, &asked), error(expected), "{asked:?}");
    }
}

#[test]
fn nothing_is_changed_and_the_rest_is_unknown() {
    let mut net = Net::begun();
    let fd = net.socket();
    for (kind, expected) in [
        (NEW_LINK, EPERM),
        (17, EPERM),
        (19, EPERM),
        (NEW_ADDRESS, EPERM),
        (21, EPERM),
        (NEW_ROUTE, EPERM),
        (25, EPERM),
        (28, EPERM),
        (30, EOPNOTSUPP),
        (34, EOPNOTSUPP),
        (38, EOPNOTSUPP),
        (124, EOPNOTSUPP),
        (u16::MAX, EOPNOTSUPP),
    ] {
        for flags in [0, NLM_F_ACK, NLM_F_DUMP] {
            assert_eq!(net.refusal(fd, kind, flags, &[0; 16]), error(expected), "{kind} {flags:x}");
        }
    }
    // An error has its request behind it, or the head of that alone.
    let told = net.ask(fd, NEW_LINK, 0, &[7; 6]);
    let sent = request(NEW_LINK, NLM_F_REQUEST, net.sequence, &[7; 6]);
    assert_eq!((told.len(), half(&told, 6), &told[20..42]), (42, 0, &sent[..22]));
    assert_eq!(net.set(fd, SOL_NETLINK, NETLINK_CAP_ACK, 1), 0);
    let told = net.ask(fd, NEW_LINK, 0, &[7; 6]);
    assert_eq!((told.len(), half(&told, 6), word(&told, 20)), (36, 0x100, 22));
}

#[test]
fn requests_are_acknowledged_if_they_want_to_be() {
    let mut net = Net::begun();
    let fd = net.socket();
    // A message that asks for nothing has no answer.
    for (kind, flags) in [(GET_LINK, 0), (1, NLM_F_REQUEST), (3, NLM_F_REQUEST), (0, NLM_F_REQUEST)] {
        let sent = request(kind, flags, 5, &[0; 16]);
        assert_eq!((net.send(fd, &sent), net.receive(fd)), (32, Err(error(EAGAIN))), "{kind}");
        let sent = request(kind, flags | NLM_F_ACK, 5, &[0; 16]);
        assert_eq!(net.send(fd, &sent), 32);
        let told = net.receive(fd).unwrap();
        assert_eq!((half(&told, 4), half(&told, 6), word(&told, 16)), (FAILED, 0x100, 0), "{kind}");
        assert_eq!((told.len(), &told[20..]), (36, &sent[..16]));
    }
    let empty = request(NEW_LINK, NLM_F_REQUEST | NLM_F_ACK, 6, &[]);
    assert_eq!((net.send(fd, &empty), net.receive(fd).map(|told| word(&told, 16))), (16, Ok(0)));
    // One that has an answer has both, and a list has an end instead.
    let sent = request(GET_LINK, NLM_F_REQUEST | NLM_F_ACK, 7, &body(16, &[(4, &[1])]));
    assert_eq!(net.send(fd, &sent), 32);
    for expected in [NEW_LINK, FAILED] {
        assert_eq!(half(&net.receive(fd).unwrap(), 4), expected);
    }
    assert_eq!(net.send(fd, &request(GET_LINK, ALL | NLM_F_ACK, 8, &[0; 4])), 20);
    for expected in [NEW_LINK, DONE] {
        assert_eq!(half(&net.receive(fd).unwrap(), 4), expected);
    }
    assert_eq!(net.receive(fd), Err(error(EAGAIN)));
}
