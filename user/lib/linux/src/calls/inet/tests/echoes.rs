//! Sockets for echo requests, as `ping` has them where it may not have packets.

use super::*;

/// A socket of a family for echo requests.
fn echo(net: &mut Net, family: u32) -> u64 {
    let protocol = if family == AF_INET { 1 } else { 58 };
    let fd = net.call(nr::__NR_socket, &[family.into(), (DATAGRAM | BRIEF).into(), protocol]);
    assert!(fd >= 0, "{fd}");
    fd as u64
}

/// A request with the number 5.
fn request(family: u32) -> Vec<u8> {
    let kind = if family == AF_INET { 8 } else { 128 };
    [&[kind, 0, 9, 9, 7, 7, 0, 5], &b"abc"[..]].concat()
}

#[test]
fn echoes_come_back() {
    for (family, to, kind) in [(AF_INET, "127.0.0.1:0", 0), (AF_INET6, "[::1]:0", 129)] {
        let mut net = Net::begun();
        let fd = echo(&mut net, family);
        let protocol = if family == AF_INET { 1 } else { 58 };
        assert_eq!(net.option(fd, SOL_SOCKET, SO_PROTOCOL), Ok(protocol));
        assert_eq!(net.option(fd, SOL_SOCKET, SO_TYPE), Ok(DATAGRAM));
        assert_eq!((net.poll(fd), net.send_to(fd, &request(family), to), net.poll(fd)), (0x304, 11, 0x345));
        let (answer, from) = net.receive_from(fd).unwrap();
        // The socket's number is its port, whatever the program has said.
        let own: SocketAddr = net.own(fd).parse().unwrap();
        assert_ne!(own.port(), 0);
        assert_eq!((answer[0], &answer[4..6]), (kind, &own.port().to_be_bytes()[..]));
        assert_eq!((&answer[6..], from), (&b"\0\x05abc"[..], to.to_string()));
        assert_eq!(net.receive(fd, 100, 0), Err(error(EAGAIN)));
        // One that is connected needs no name, and hears that machine alone.
        assert_eq!((net.connect(fd, to), net.send(fd, &request(family), 0)), (0, 11));
        assert_eq!(net.receive(fd, 100, 0).map(|bytes| bytes.len()), Ok(11));
        net.call(nr::__NR_close, &[fd]);
        assert_eq!(net.network.count(), 0);
    }
}

#[test]
fn who_answers_is_told_apart() {
    let mut net = Net::begun();
    let fd = echo(&mut net, AF_INET);
    assert_eq!(net.send_to(fd, &request(AF_INET), &format!("{OWN}:0")), 11);
    assert_eq!(net.connect(fd, "127.0.0.1:0"), 0);
    assert_eq!(net.poll(fd), 0x304, "another machine has answered");
    assert_eq!(net.send_to(fd, &request(AF_INET), &format!("{SILENT}:0")), 11);
    assert_eq!(net.poll(fd), 0x304);
}

#[test]
fn what_is_no_echo_request() {
    let mut net = Net::begun();
    let [fd, six] = [AF_INET, AF_INET6].map(|family| echo(&mut net, family));
    let to = "127.0.0.1:0";
    for bytes in [&[0; 8][..], &[8, 0, 0], &[13, 0, 0, 0, 0, 0, 0, 0], &[8, 1, 0, 0, 0, 0, 0, 0], &[]] {
        assert_eq!(net.send_to(fd, bytes, to), error(EINVAL), "{bytes:?}");
    }
    assert_eq!(net.send_to(six, &request(AF_INET), "[::1]:0"), error(EINVAL));
    let mut long = vec![0; 1460];
    long[0] = 8;
    assert_eq!(net.send_to(fd, &long, to), 1460);
    long.push(0);
    assert_eq!(net.send_to(fd, &long, to), error(EMSGSIZE));
    assert_eq!(net.send(fd, &request(AF_INET), 0), error(EDESTADDRREQ));
    assert_eq!(net.send_to(fd, &request(AF_INET), "1.2.3.4:0"), error(ENETUNREACH));
    assert_eq!((net.call(nr::__NR_listen, &[fd, 1]), net.accept(fd)), (error(EOPNOTSUPP), error(EOPNOTSUPP)));
}

/// A program may choose the number of its socket, also a low one, and a machine without a network has such sockets, too.
#[test]
fn numbers_that_are_chosen() {
    let mut net = Net::begun();
    assert_eq!(net.call(nr::__NR_setresuid, &[5, 5, 5]), 0);
    let fd = echo(&mut net, AF_INET);
    assert_eq!((net.bind(fd, "0.0.0.0:77"), net.own(fd)), (0, "0.0.0.0:77".into()));
    assert_eq!(net.send_to(fd, &request(AF_INET), "127.0.0.1:0"), 11);
    assert_eq!(net.receive(fd, 6, 0).map(|bytes| bytes[4..].to_vec()), Ok(vec![0, 77]));
    net.rig.system.sockets.network = Below::default();
    let fd = echo(&mut net, AF_INET);
    assert_eq!(net.send_to(fd, &request(AF_INET), "127.0.0.1:0"), error(ENETUNREACH));
    assert_eq!((net.poll(fd), net.receive(fd, 1, 0)), (0x304, Err(error(EAGAIN))));
}
