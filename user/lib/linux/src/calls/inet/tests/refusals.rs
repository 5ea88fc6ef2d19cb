//! Datagrams that were refused or dropped.

use super::*;
use crate::errno::EHOSTUNREACH;
use crate::network::loopback::ABSENT;

/// Bits of `poll` of a socket for datagrams: it can be written, and an error is to be told.
const REFUSED: u32 = 0x304 | 0x8;

fn connected(net: &mut Net, family: u32, to: &str) -> u64 {
    let fd = net.socket(family, DATAGRAM | BRIEF);
    assert_eq!(net.connect(fd, to), 0);
    fd
}

#[test]
fn who_is_connected_hears_that_nobody_has_the_port() {
    for (family, to) in [(AF_INET, "127.0.0.1:9"), (AF_INET6, "[::1]:9")] {
        let mut net = Net::begun();
        let fd = connected(&mut net, family, to);
        let refused = error(ECONNREFUSED);
        assert_eq!((net.send(fd, b"x", 0), net.poll(fd)), (1, REFUSED));
        assert_eq!((net.receive(fd, 9, 0), net.receive(fd, 9, 0)), (Err(refused), Err(error(EAGAIN))));
        assert_eq!((net.send(fd, b"x", 0), net.send(fd, b"x", 0)), (1, refused));
        assert_eq!((net.send(fd, b"x", 0), net.error_of(fd), net.poll(fd)), (1, 111, 0x304));
        assert_eq!((net.rig.write(fd, b"x"), net.rig.read(fd, 9)), (1, Err(refused)));
        // One that names the other end each time does not hear of it.
        let other = net.socket(family, DATAGRAM | BRIEF);
        assert_eq!((net.send_to(other, b"x", to), net.poll(other)), (1, 0x304));
        // Once somebody has the port, all is well.
        let server = net.socket(family, DATAGRAM | BRIEF);
        assert_eq!((net.bind(server, to), net.send(fd, b"at last", 0)), (0, 7));
        assert_eq!(net.receive(server, 9, 0), Ok(b"at last".to_vec()));
    }
}

#[test]
fn who_waits_for_an_answer_hears_of_the_refusal() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM);
    assert_eq!(net.connect(fd, "127.0.0.1:9"), 0);
    let child = net.rig.fork();
    let at = net.rig.room(9);
    assert_eq!(net.rig.try_by(child, nr::__NR_recvfrom, &[fd, at, 9, 0, 0, 0]), None);
    assert_eq!(net.send(fd, b"x", 0), 1);
    assert_eq!(net.rig.answer(child), Some(error(ECONNREFUSED)));
}

#[test]
fn a_refusal_is_not_told_to_who_is_connected_elsewhere() {
    let mut net = Net::begun();
    let fd = connected(&mut net, AF_INET, "127.0.0.1:9");
    assert_eq!((net.send(fd, b"x", 0), net.connect(fd, "127.0.0.1:10")), (1, 0));
    assert_eq!((net.poll(fd), net.receive(fd, 9, 0)), (0x304, Err(error(EAGAIN))));
    assert_eq!(net.send(fd, b"x", 0), 1);
    let nobody = net.rig.put(&[0; 16]);
    assert_eq!(net.call(nr::__NR_connect, &[fd, nobody, 16]), 0);
    assert_eq!((net.poll(fd), net.error_of(fd)), (0x304, 0));
    // A server that is gone is told by the call, and the next one gets another port.
    net.network.lose(net.inet(fd).number);
    assert_eq!((net.connect(fd, "127.0.0.1:9"), net.connect(fd, "127.0.0.1:9")), (error(EINVAL), 0));
}

/// A machine that does not answer is an error of its own.
#[test]
fn who_is_connected_hears_that_nobody_answers() {
    let mut net = Net::begun();
    let fd = connected(&mut net, AF_INET, &format!("{SILENT}:9"));
    let silent = error(EHOSTUNREACH);
    assert_eq!((net.send(fd, b"x", 0), net.poll(fd)), (1, REFUSED));
    assert_eq!((net.receive(fd, 9, 0), net.receive(fd, 9, 0)), (Err(silent), Err(error(EAGAIN))));
    assert_eq!((net.send(fd, b"x", 0), net.send(fd, b"x", 0)), (1, silent));
    assert_eq!((net.send(fd, b"x", 0), net.error_of(fd), net.poll(fd)), (1, 113, 0x304));
    let server = net.socket(AF_INET, DATAGRAM | BRIEF);
    assert_eq!((net.bind(server, "127.0.0.1:9"), net.send_to(fd, b"elsewhere", "127.0.0.1:9")), (0, 9));
    assert_eq!(net.receive(server, 9, 0), Ok(b"elsewhere".to_vec()));
}

/// A connection to a machine that does not answer is given up, with an error of its own.
#[test]
fn who_connects_hears_that_nobody_answers() {
    let mut net = Net::begun();
    let to = format!("{ABSENT}:80");
    let fd = net.socket(AF_INET, STREAM);
    for _ in 0..2 {
        assert_eq!(net.connect(fd, &to), error(EHOSTUNREACH));
        assert_eq!((net.error_of(fd), net.receive(fd, 1, 0)), (0, Ok(Vec::new())));
    }
    assert_eq!(net.network.count(), 0);
    let fd = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect_once(fd, &to), error(EINPROGRESS));
    assert_eq!((net.error_of(fd), net.error_of(fd)), (113, 0));
}
