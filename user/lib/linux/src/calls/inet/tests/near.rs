//! Connections of a sandbox with itself, which are near, and those that are below: what is told of both, and what becomes of them.

use super::*;

/// A socket that shares its port, and listens.
fn shared(net: &mut Net, at: &str) -> u64 {
    let fd = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.set(fd, SOL_SOCKET, SO_REUSEPORT, 1), 0);
    assert_eq!((net.bind(fd, at), net.call(nr::__NR_listen, &[fd, 4])), (0, 0));
    fd
}

/// A socket that keeps many connections.
fn patient(net: &mut Net, at: &str) -> u64 {
    let fd = net.socket(family_of(at).number(), STREAM | BRIEF);
    if family_of(at) == Family::Six {
        assert_eq!(net.set(fd, 41, IPV6_V6ONLY, 1), 0);
    }
    assert_eq!((net.bind(fd, at), net.call(nr::__NR_listen, &[fd, 128])), (0, 0));
    fd
}

fn connected(net: &mut Net, at: &str) -> u64 {
    let fd = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect(fd, at), 0);
    fd
}

/// Lists by which somebody waits for edges.
fn list(net: &mut Net, fd: u64, events: u32) -> u64 {
    let list = net.call(nr::__NR_epoll_create1, &[0]) as u64;
    let event = net.rig.put(&[&(events | nr::EPOLLET).to_le_bytes()[..], &fd.to_le_bytes()].concat());
    assert_eq!(net.call(nr::__NR_epoll_ctl, &[list, nr::EPOLL_CTL_ADD.into(), fd, event]), 0);
    list
}

fn events(net: &mut Net, list: u64) -> i64 {
    let at = net.rig.room(24);
    net.call(nr::__NR_epoll_wait, &[list, at, 2, 0])
}

fn both() -> [Net; 2] {
    [Net::begun(), Net::far()]
}

/// A socket that joins a port at which a connection waits has connections dealt, and somebody hears of it.
#[test]
fn a_connection_waits_while_another_socket_joins() {
    for mut net in both() {
        let one = shared(&mut net, "127.0.0.1:80");
        connected(&mut net, "127.0.0.1:80");
        assert_eq!(net.poll(one), 0x41);
        let other = shared(&mut net, "127.0.0.1:80");
        let all = [net.poll(one), net.poll(other)];
        assert!(all.contains(&0x41), "{all:x?}");
    }
}

/// The number of a socket that has left a port which others share is its own again.
#[test]
fn a_socket_that_has_left_a_port_connects() {
    for mut net in both() {
        let [one, other] = [(); 2].map(|()| shared(&mut net, "127.0.0.1:80"));
        assert_eq!(net.call(nr::__NR_shutdown, &[one, SHUT_RD.into()]), 0);
        let listener = net.listener("127.0.0.1:81");
        net.set(one, SOL_SOCKET, SO_REUSEADDR, 1);
        assert_eq!(net.connect(one, "127.0.0.1:81"), 0);
        assert!(net.accept(listener) > 0);
        for _ in 0..2 {
            connected(&mut net, "127.0.0.1:80");
            assert_eq!(net.poll(other), 0x41);
            assert!(net.accept(other) > 0);
        }
        net.call(nr::__NR_close, &[other]);
        assert_eq!((net.send(one, b"x", 0), net.receive(one, 1, 0)), (1, Err(error(EAGAIN))));
        let last = net.socket(AF_INET, STREAM | BRIEF);
        assert_eq!(net.connect(last, "127.0.0.1:80"), error(ECONNREFUSED));
    }
}

/// A socket for one family has as many connections as it keeps, also when another one listens at the port, before or later.
#[test]
fn many_connections_wait_at_a_port_of_both_families() {
    for is_first in [true, false] {
        let mut net = Net::begun();
        patient(&mut net, if is_first { "0.0.0.0:80" } else { "127.0.0.1:80" });
        if is_first {
            patient(&mut net, "[::]:80");
        }
        let all: Vec<u64> = (0..80).map(|_| connected(&mut net, "127.0.0.1:80")).collect();
        if !is_first {
            patient(&mut net, "[::]:80");
        }
        let count = all.iter().filter(|fd| net.receive(**fd, 1, 0) == Err(error(EAGAIN))).count();
        assert_eq!(count, 80, "{is_first}");
    }
}

/// A program that only looks how much there is has it read ahead, so there is room for more.
#[test]
fn writers_hear_of_room_that_reading_ahead_has_made() {
    for mut net in both() {
        let [one, two] = net.pair();
        net.call(nr::__NR_fcntl, &[one, nr::F_SETFL.into(), 0]);
        let thread = net.rig.thread();
        let at = net.rig.put(&[9; 20_000]);
        assert_eq!(net.rig.try_by(thread, nr::__NR_write, &[one, at, 20_000]), None);
        net.turn();
        for _ in 0..3 {
            net.poll(two);
            net.waiting(two);
        }
        assert_eq!(net.rig.answer(thread), Some(20_000));
    }
}

/// A list tells of each piece that comes, also to whoever takes exactly what there is, and of each connection.
#[test]
fn edges_are_told_each_time() {
    for mut net in both() {
        let [one, two] = net.pair();
        let bytes = list(&mut net, one, nr::EPOLLIN);
        for _ in 0..3 {
            net.send(two, b"four", 0);
            assert_eq!(events(&mut net, bytes), 1);
            assert_eq!(net.receive(one, 4, 0), Ok(b"four".to_vec()));
            assert_eq!(events(&mut net, bytes), 0);
        }
        let listener = net.listener("127.0.0.1:80");
        let connections = list(&mut net, listener, nr::EPOLLIN);
        for _ in 0..3 {
            connected(&mut net, "127.0.0.1:80");
            assert_eq!(events(&mut net, connections), 1);
            assert!(net.accept(listener) > 0);
        }
    }
}

/// A connection for which there is no room is refused when nobody listens any more, however long it has waited.
#[test]
fn a_hopeful_connection_is_refused() {
    let mut net = Net::begun();
    let listener = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!((net.bind(listener, "127.0.0.1:80"), net.call(nr::__NR_listen, &[listener, 1])), (0, 0));
    for _ in 0..2 {
        connected(&mut net, "127.0.0.1:80");
    }
    let waits = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect(waits, "127.0.0.1:80"), error(EINPROGRESS));
    net.rig.pass(600_000_000_000);
    net.call(nr::__NR_close, &[listener]);
    assert_eq!(net.error_of(waits), ECONNREFUSED.0.into());
}
