//! Options of sockets.

use super::*;
use crate::errno::{EDOM, EFAULT, ENOPROTOOPT};

#[test]
fn options_are_kept() {
    let mut net = Net::begun();
    for family in [AF_INET, AF_INET6] {
        let fd = net.socket(family, STREAM);
        for (level, name, first, set, then) in [
            (SOL_SOCKET, SO_REUSEADDR, 0, 5, 1),
            (SOL_SOCKET, SO_KEEPALIVE, 0, 1, 1),
            (SOL_SOCKET, SO_SNDBUF, 212_992, 10_000, 20_000),
            (SOL_SOCKET, SO_RCVBUF, 212_992, 1, 2304),
            (6, TCP_NODELAY, 0, 1, 1),
            (6, TCP_KEEPIDLE, 7200, 60, 60),
            (0, IP_TTL, 64, 7, 7),
            (0, IP_TTL, 7, u32::MAX, 64),
            (0, IP_TOS, 0, 16, 16),
        ] {
            assert_eq!(net.option(fd, level, name), Ok(first), "{level} {name}");
            assert_eq!(net.set(fd, level, name, set), 0);
            assert_eq!(net.option(fd, level, name), Ok(then), "{level} {name}");
        }
        assert_eq!(net.option(fd, SOL_SOCKET, SO_DOMAIN), Ok(family));
        assert_eq!(net.option(fd, SOL_SOCKET, SO_TYPE), Ok(STREAM));
        assert_eq!(net.option(fd, SOL_SOCKET, SO_PROTOCOL), Ok(6));
    }
}

#[test]
fn options_that_cannot_be() {
    let mut net = Net::begun();
    let [stream, datagram] = [STREAM, DATAGRAM].map(|kind| net.socket(AF_INET, kind));
    let none = error(ENOPROTOOPT);
    for (fd, level, name, expected) in [
        (stream, SOL_SOCKET, 999, none),
        (stream, 6, 999, none),
        (datagram, 6, TCP_NODELAY, none),
        (stream, 41, IPV6_V6ONLY, none),
        (stream, 17, 1, none),
        (stream, 12345, 1, none),
        (stream, SOL_SOCKET, SO_ERROR, none),
        (stream, 0, IP_TTL, error(EINVAL)),
        (stream, 0, IP_ADD_MEMBERSHIP, none),
        (datagram, 0, IP_ADD_MEMBERSHIP, error(EINVAL)),
        (datagram, 41, IPV6_ADD_MEMBERSHIP, none),
    ] {
        assert_eq!(net.set(fd, level, name, 1000), expected, "{level} {name}");
    }
    let set = |net: &mut Net, name: u32, at, len| {
        net.call(nr::__NR_setsockopt, &[stream, SOL_SOCKET.into(), name.into(), at, len])
    };
    let bad = net.rig.put(&[1u64, 1_000_000].map(u64::to_le_bytes).concat());
    assert_eq!(set(&mut net, SO_REUSEADDR, bad, 3), error(EINVAL));
    assert_eq!(set(&mut net, SO_REUSEADDR, 8, 4), error(EFAULT));
    assert_eq!(set(&mut net, SO_REUSEADDR, bad, u64::MAX), error(EINVAL));
    assert_eq!(set(&mut net, SO_RCVTIMEO_OLD, bad, 16), error(EDOM));
    // A byte will do for a protocol.
    assert_eq!(net.call(nr::__NR_setsockopt, &[stream, 0, IP_TTL.into(), bad, 1]), 0);
    assert_eq!(net.option(stream, 0, IP_TTL), Ok(1));
    assert_eq!(net.option(stream, 0, IP_MTU), Err(error(ENOTCONN)));
}
