//! UDP-Lite. Expected outcomes are those of Linux 6.18.

use super::*;
use crate::errno::ENOPROTOOPT;
use crate::inet::options::{RECEIVE_COVERAGE, SEND_COVERAGE};

/// Number of the protocol, and level of its options.
const LITE: u32 = 136;

fn lite(net: &mut Net, family: u32) -> u64 {
    let kind = DATAGRAM | BRIEF;
    let fd = net.call(nr::__NR_socket, &[family.into(), kind.into(), LITE.into()]);
    assert!(fd >= 0, "{fd}");
    fd as u64
}

/// A socket at an address, and one without any.
fn two(net: &mut Net, at: &str) -> [u64; 2] {
    let all = [(); 2].map(|()| lite(net, family_of(at).number()));
    assert_eq!(net.bind(all[0], at), 0);
    all
}

#[test]
fn datagrams_stay_in_the_sandbox() {
    for (at, to, from) in [
        ("127.0.0.1:700", "127.0.0.1:700", "127.0.0.1:"),
        ("0.0.0.0:700", "127.0.0.5:700", "127.0.0.1:"),
        ("[::]:700", "[::1]:700", "[::1]:"),
        ("10.0.2.15:700", "10.0.2.15:700", "10.0.2.15:"),
    ] {
        let mut net = Net::begun();
        let [server, one] = two(&mut net, at);
        assert_eq!(net.option(server, SOL_SOCKET, SO_PROTOCOL), Ok(LITE));
        assert_eq!((net.poll(server), net.send_to(one, b"question", to)), (0x304, 8));
        assert_eq!((net.poll(server), net.waiting(server)), (0x345, 8));
        let (bytes, seen) = net.receive_from(server).unwrap();
        assert!(bytes == b"question" && seen.starts_with(from), "{seen}");
        assert_eq!((net.connect(server, &seen), net.send(server, b"answer", 0)), (0, 6));
        assert_eq!(net.receive(one, 20, 0), Ok(b"answer".to_vec()));
        assert_eq!(net.receive(one, 20, 0), Err(error(EAGAIN)));
        // The network below knows nothing of it.
        assert_eq!(net.network.count(), 0);
    }
    let mut net = Net::begun();
    let fd = lite(&mut net, AF_INET);
    for to in ["10.0.2.2:9", "1.2.3.4:5", "239.1.2.3:9"] {
        assert_eq!(net.send_to(fd, b"x", to), error(ENETUNREACH), "{to}");
    }
    let name = net.address(fd, "127.0.0.1:9");
    for (len, outcome) in [(65_507, 65_507), (65_508, error(EMSGSIZE))] {
        let at = net.rig.room(len as usize);
        assert_eq!(net.call(nr::__NR_sendto, &[fd, at, len, 0, name[0], name[1]]), outcome);
    }
    let stream = net.call(nr::__NR_socket, &[AF_INET.into(), STREAM.into(), LITE.into()]);
    assert_eq!(stream, error(EPROTONOSUPPORT));
}

/// Its ports are none of UDP's, and the first one of those that share a port has what comes there.
#[test]
fn ports_are_its_own() {
    let mut net = Net::begun();
    let [fd, other] = two(&mut net, "127.0.0.1:700");
    let udp = net.socket(AF_INET, DATAGRAM | BRIEF);
    assert_eq!(net.bind(udp, "127.0.0.1:700"), 0);
    assert_eq!(net.bind(other, "0.0.0.0:700"), error(EADDRINUSE));
    assert_eq!((net.send_to(other, b"lite", "127.0.0.1:700"), net.poll(udp)), (4, 0x304));
    assert_eq!((net.send_to(udp, b"udp", "127.0.0.1:700"), net.poll(udp)), (3, 0x345));
    assert_eq!(net.receive(fd, 20, 0), Ok(b"lite".to_vec()));
    assert_eq!(net.receive(fd, 20, 0), Err(error(EAGAIN)));
    assert_eq!((net.table("udplite").len(), net.table("udplite6").len(), net.table("udp").len()), (2, 0, 1));
    let shared = [(); 2].map(|()| lite(&mut net, AF_INET));
    for fd in shared {
        assert_eq!((net.set(fd, SOL_SOCKET, SO_REUSEADDR, 1), net.bind(fd, "0.0.0.0:701")), (0, 0));
    }
    net.send_to(other, b"x", "127.0.0.1:701");
    assert_eq!(shared.map(|fd| net.poll(fd)), [0x345, 0x304]);
    net.call(nr::__NR_close, &[shared[0]]);
    net.send_to(other, b"x", "127.0.0.1:701");
    assert_eq!(net.poll(shared[1]), 0x345);
}

/// A datagram that nobody has is told of once, to a socket that is connected.
#[test]
fn datagrams_are_refused() {
    let mut net = Net::begun();
    let fd = lite(&mut net, AF_INET);
    assert_eq!((net.send_to(fd, b"x", "127.0.0.1:9"), net.error_of(fd)), (1, 0));
    assert_eq!((net.connect(fd, "127.0.0.1:9"), net.send(fd, b"x", 0)), (0, 1));
    assert_eq!(net.send(fd, b"x", 0), error(ECONNREFUSED));
    assert_eq!((net.send(fd, b"x", 0), net.poll(fd)), (1, 0x30c));
    assert_eq!(net.receive(fd, 1, 0), Err(error(ECONNREFUSED)));
    assert_eq!(net.receive(fd, 1, 0), Err(error(EAGAIN)));
    // Somebody who waits is told, too.
    let thread = net.rig.thread();
    net.call(nr::__NR_fcntl, &[fd, nr::F_SETFL.into(), 0]);
    let at = net.rig.room(16);
    assert_eq!(net.rig.try_by(thread, nr::__NR_recvfrom, &[fd, at, 16, 0, 0, 0]), None);
    assert_eq!(net.send(fd, b"x", 0), 1);
    assert_eq!(net.rig.answer(thread), Some(error(ECONNREFUSED)));
}

#[test]
fn coverage_of_checksums() {
    let mut net = Net::begun();
    let fd = lite(&mut net, AF_INET);
    let udp = net.socket(AF_INET, DATAGRAM);
    for name in [SEND_COVERAGE, RECEIVE_COVERAGE] {
        for level in [LITE, 17] {
            assert_eq!(
                (net.option(udp, level, name), net.set(udp, level, name, 8)),
                (Ok(0), error(ENOPROTOOPT))
            );
            for (value, kept) in [
                (-5, 8),
                (0, 0),
                (1, 8),
                (7, 8),
                (8, 8),
                (9, 9),
                (65_535, 65_535),
                (65_536, 65_535),
                (i32::MAX, 65_535),
            ] {
                assert_eq!(net.set(fd, level, name, value.cast_unsigned()), 0);
                assert_eq!(net.option(fd, level, name), Ok(kept), "{value}");
            }
        }
    }
    // Ten bytes have eighteen with their head.
    for (sent, least) in
        [(None, None), (Some(0), None), (Some(8), None), (Some(17), Some(17)), (Some(9), Some(8))]
            .into_iter()
            .chain([8, 9, 18, 100].map(|least| (Some(18), Some(least))))
            .chain([0, 9, 10, 17].map(|sent| (Some(sent), Some(0))))
            .chain([8, 9, 17].map(|sent| (Some(sent), Some(18))))
    {
        let mut net = Net::begun();
        let [fd, other] = two(&mut net, "127.0.0.1:700");
        for (fd, name, value) in [(other, SEND_COVERAGE, sent), (fd, RECEIVE_COVERAGE, least)] {
            assert_eq!(value.map_or(0, |value| net.set(fd, LITE, name, value)), 0);
        }
        assert_eq!(net.send_to(other, b"0123456789", "127.0.0.1:700"), 10);
        let is_whole = matches!(sent, None | Some(0) | Some(18..));
        let comes = is_whole || least.is_none_or(|least| least != 0 && sent >= Some(least));
        assert_eq!(net.poll(fd), if comes { 0x345 } else { 0x304 }, "{sent:?} {least:?}");
        assert_eq!(net.receive(fd, 20, 0).is_ok(), comes, "{sent:?} {least:?}");
    }
}
