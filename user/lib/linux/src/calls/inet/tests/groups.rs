//! Groups of receivers.

use super::*;
use crate::errno::{ENOBUFS, ENODEV, ENOPROTOOPT};
use crate::network::Sending;
use core::net::Ipv4Addr;

fn set_bytes(net: &mut Net, fd: u64, (level, name): (u32, u32), bytes: &[u8]) -> i64 {
    let at = net.rig.put(bytes);
    net.call(nr::__NR_setsockopt, &[fd, level.into(), name.into(), at, bytes.len() as u64])
}

/// Joins a group of IPv4, or leaves it, by the interface with this address.
fn member(net: &mut Net, fd: u64, name: u32, group: [u8; 4], by: [u8; 4]) -> i64 {
    set_bytes(net, fd, (0, name), &[group, by].concat())
}

fn shared(net: &mut Net, at: &str) -> u64 {
    let fd = net.socket(family_of(at).number(), DATAGRAM | BRIEF);
    assert_eq!((net.set(fd, SOL_SOCKET, SO_REUSEADDR, 1), net.bind(fd, at)), (0, 0), "{at}");
    fd
}

const GROUP: [u8; 4] = [239, 1, 2, 3];
const ANY: [u8; 4] = [0; 4];

#[test]
fn all_members_have_what_is_sent_to_a_group() {
    let mut net = Net::begun();
    let all = ["0.0.0.0:700", "239.1.2.3:700", "0.0.0.0:700"].map(|at| shared(&mut net, at));
    for fd in &all[..2] {
        assert_eq!(member(&mut net, *fd, IP_ADD_MEMBERSHIP, GROUP, ANY), 0);
        assert_eq!(member(&mut net, *fd, IP_ADD_MEMBERSHIP, GROUP, ANY), error(EADDRINUSE));
    }
    assert_eq!(net.send_to(all[2], b"to all", "239.1.2.3:700"), 6);
    assert_eq!(all.map(|fd| net.poll(fd)), [0x345, 0x345, 0x304]);
    assert_eq!(net.receive_from(all[1]), Ok((b"to all".to_vec(), format!("{OWN}:700"))));
    assert_eq!(member(&mut net, all[0], IP_DROP_MEMBERSHIP, GROUP, ANY), 0);
    assert_eq!(member(&mut net, all[0], IP_DROP_MEMBERSHIP, GROUP, ANY), error(EADDRNOTAVAIL));
    assert!(net.network.groups(net.inet(all[0]).number).0.is_empty());
    // A socket that does not share has the port alone.
    let alone = net.socket(AF_INET, DATAGRAM);
    assert_eq!(net.bind(alone, "0.0.0.0:700"), error(EADDRINUSE));
}

/// A socket that has no port yet joins when it gets one.
#[test]
fn a_group_is_joined_before_there_is_a_port() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM | BRIEF);
    assert_eq!(member(&mut net, fd, IP_ADD_MEMBERSHIP, GROUP, ANY), 0);
    assert_eq!(net.network.count(), 0);
    assert_eq!(net.bind(fd, "0.0.0.0:700"), 0);
    assert_eq!(net.network.groups(net.inet(fd).number).0, [Ipv4Addr::from(GROUP)]);
    let mreqn = [&GROUP[..], &ANY, &2u32.to_le_bytes()].concat();
    assert_eq!(set_bytes(&mut net, fd, (0, IP_DROP_MEMBERSHIP), &mreqn), 0);
    assert!(net.network.groups(net.inet(fd).number).0.is_empty());
}

#[test]
fn groups_of_ipv6() {
    let mut net = Net::begun();
    let fd = shared(&mut net, "[::]:700");
    let group: SocketAddr = "[ff02::fb]:700".parse().unwrap();
    let mreq = |interface: u32| {
        let std::net::IpAddr::V6(group) = group.ip() else { panic!("no group of IPv6") };
        [&group.octets()[..], &interface.to_le_bytes()].concat()
    };
    // The network in memory has no way to others of IPv6 than loopback.
    for (interface, expected) in [(0, error(ENODEV)), (3, error(ENODEV)), (1, 0), (1, error(EADDRINUSE))] {
        assert_eq!(set_bytes(&mut net, fd, (41, IPV6_ADD_MEMBERSHIP), &mreq(interface)), expected);
    }
    assert_eq!(net.network.groups(net.inet(fd).number).0, [group.ip()]);
    assert_eq!(set_bytes(&mut net, fd, (41, IPV6_ADD_MEMBERSHIP), &mreq(1)[..19]), error(EINVAL));
    assert_eq!((net.set(fd, 41, IPV6_MULTICAST_IF, 1), net.option(fd, 41, IPV6_MULTICAST_IF)), (0, Ok(1)));
    assert_eq!(net.set(fd, 41, IPV6_MULTICAST_IF, 9), error(ENODEV));
}

#[test]
fn a_sender_says_how_datagrams_go() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM | BRIEF);
    let number = net.inet(fd).number;
    let sending = |from: &str, hops, loops| Some(Sending { from: from.parse().unwrap(), hops, loops });
    assert_eq!(net.send_to(fd, b"x", "239.1.2.3:9"), 1);
    assert_eq!(net.network.groups(number).1, sending("0.0.0.0", 1, true));
    assert_eq!((net.set(fd, 0, IP_MULTICAST_TTL, 255), net.set(fd, 0, IP_MULTICAST_LOOP, 0)), (0, 0));
    assert_eq!(set_bytes(&mut net, fd, (0, IP_MULTICAST_IF), &[127, 0, 0, 1]), 0);
    assert_eq!(net.option(fd, 0, IP_MULTICAST_IF), Ok(u32::from_le_bytes([127, 0, 0, 1])));
    assert_eq!(net.send_to(fd, b"x", "239.1.2.3:9"), 1);
    assert_eq!(net.network.groups(number).1, sending("127.0.0.1", 255, false));
    assert_eq!(set_bytes(&mut net, fd, (0, IP_MULTICAST_IF), &[1, 2, 3, 4]), error(EADDRNOTAVAIL));
    let six = net.socket(AF_INET6, DATAGRAM | BRIEF);
    let number = net.inet(six).number;
    assert_eq!(net.send_to(six, b"x", "[ff02::fb]:9"), 1);
    assert_eq!(net.network.groups(number).1, sending("::", 1, true));
    for (name, value) in [(IPV6_MULTICAST_HOPS, 255), (IPV6_MULTICAST_LOOP, 0)] {
        assert_eq!(net.set(six, 41, name, value), 0);
    }
    assert_eq!(net.send_to(six, b"x", "[ff02::fb]:9"), 1);
    assert_eq!(net.network.groups(number).1, sending("::", 255, false));
}

#[test]
fn groups_that_cannot_be() {
    let mut net = Net::begun();
    let fd = shared(&mut net, "0.0.0.0:700");
    for (group, by, expected) in [([10, 0, 2, 2], ANY, EINVAL), (GROUP, [1, 2, 3, 4], ENODEV)] {
        assert_eq!(member(&mut net, fd, IP_ADD_MEMBERSHIP, group, by), error(expected), "{group:?}");
    }
    assert_eq!(set_bytes(&mut net, fd, (0, IP_ADD_MEMBERSHIP), &GROUP), error(EINVAL));
    assert_eq!(set_bytes(&mut net, fd, (41, IPV6_ADD_MEMBERSHIP), &[0; 20]), error(ENOPROTOOPT));
    for number in 0..9 {
        let expected = if number < 8 { 0 } else { error(ENOBUFS) };
        assert_eq!(member(&mut net, fd, IP_ADD_MEMBERSHIP, [239, 0, 0, number], ANY), expected);
    }
    let stream = net.socket(AF_INET, STREAM);
    assert_eq!(net.bind(stream, "239.1.2.3:700"), error(EADDRNOTAVAIL));
    assert_eq!(member(&mut net, stream, IP_ADD_MEMBERSHIP, GROUP, ANY), error(ENOPROTOOPT));
}
