//! Connections that begin at an address and a port that their owner has chosen.

use super::pairs::Pair;
use super::{Host, connection, end};
use crate::{Kind, Refusal, State};
use core::net::SocketAddr;

/// Begins a connection of an owner's.
fn begin(host: &mut Host, owner: u64, from: &str, to: &str) -> Result<u64, Refusal> {
    let id = host.stack.open(owner, Kind::Tcp)?;
    let outcome = host.stack.connect_from(id, end(from), end(to));
    if outcome.is_err() {
        host.stack.close(id);
    }
    outcome.map(|()| id)
}

#[test]
fn a_connection_begins_where_its_owner_says() {
    for (from, to, expected) in [
        ("127.0.0.1:700", "127.0.0.1:80", "127.0.0.1:700"),
        ("0.0.0.0:700", "127.0.0.1:80", "127.0.0.1:700"),
        ("[::]:700", "127.0.0.1:80", "127.0.0.1:700"),
        ("[::1]:700", "[::1]:80", "[::1]:700"),
    ] {
        let mut host = Host::new(1, None);
        let listener = host.stack.listen(2, end(to), 2).unwrap();
        let id = begin(&mut host, 1, from, to).unwrap();
        host.turn(8);
        let server = host.stack.accept(listener).unwrap();
        assert_eq!(host.stack.state(server), Ok((State::Open, [Some(end(to)), Some(end(expected))])));
        assert_eq!(host.stack.state(id), Ok((State::Open, [Some(end(expected)), Some(end(to))])));
    }
}

#[test]
fn addresses_from_which_nothing_can_begin() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[0];
    for (from, to, expected) in [
        ("10.9.9.9:700", "10.1.0.2:80", Refusal::Bad),
        ("127.0.0.9:700", "127.0.0.1:80", Refusal::Bad),
        ("127.0.0.1:700", "10.1.0.2:80", Refusal::Unreachable),
        ("[::1]:700", "127.0.0.1:80", Refusal::Unreachable),
        ("10.1.0.1:700", "[::1]:80", Refusal::Unreachable),
        ("127.0.0.1:700", "127.0.0.1:700", Refusal::InUse),
        ("0.0.0.0:700", "127.0.0.1:700", Refusal::InUse),
    ] {
        assert_eq!(begin(host, 1, from, to), Err(expected), "{from} {to}");
    }
    assert_eq!(host.stack.kept(), 0);
    // A connection that stays in the machine may begin at any address of it.
    let listener = host.stack.listen(1, end("10.1.0.1:80"), 2).unwrap();
    begin(host, 1, "127.0.0.1:700", "10.1.0.1:80").unwrap();
    host.turn(8);
    assert!(host.stack.accept(listener).is_ok());
}

/// A port is its owner's, who may begin several connections there, to different ends.
#[test]
fn a_port_belongs_to_one_owner() {
    let mut host = Host::new(2, None);
    let (listener, client, _) = connection(&mut host, "127.0.0.1:80");
    host.stack.listen(3, end("127.0.0.1:81"), 2).unwrap();
    let taken: SocketAddr = host.stack.state(client).unwrap().1[0].unwrap();
    let taken = std::format!("{taken}");
    // Owner 1 has a connection there, and owner 2 listens at 80.
    assert_eq!(begin(&mut host, 2, &taken, "127.0.0.1:81"), Err(Refusal::InUse));
    assert_eq!(begin(&mut host, 1, &taken, "127.0.0.1:80"), Err(Refusal::InUse), "it is there");
    assert_eq!(begin(&mut host, 1, "127.0.0.1:80", "127.0.0.1:81"), Err(Refusal::InUse));
    assert!(begin(&mut host, 1, &taken, "127.0.0.1:81").is_ok());
    let own = begin(&mut host, 2, "127.0.0.1:80", "127.0.0.1:81").unwrap();
    host.turn(8);
    assert_eq!(host.stack.state(own).unwrap().0, State::Open);
    // Another address has the port, too.
    host.stack.listen(3, end("[::1]:81"), 2).unwrap();
    assert!(begin(&mut host, 1, "[::1]:80", "[::1]:81").is_ok());
    assert_eq!(host.stack.ready(listener), Ok(0), "nobody has connected there");
}

/// An owner who has sent something from a port, and has gone, keeps others from it until that has arrived.
#[test]
fn what_is_still_to_be_sent_keeps_its_port() {
    let mut pair = Pair::new(0);
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 2).unwrap();
    let id = begin(&mut pair.hosts[0], 1, "0.0.0.0:700", "10.1.0.2:80").unwrap();
    pair.run(20);
    assert!(pair.hosts[1].stack.accept(listener).is_ok());
    assert_eq!(pair.hosts[0].stack.write(id, b"last"), Ok(4));
    pair.hosts[0].stack.close(id);
    assert_eq!(begin(&mut pair.hosts[0], 2, "0.0.0.0:700", "10.1.0.2:81"), Err(Refusal::InUse));
    assert_eq!(begin(&mut pair.hosts[0], 1, "0.0.0.0:700", "10.1.0.2:80"), Err(Refusal::InUse));
    assert!(begin(&mut pair.hosts[0], 1, "0.0.0.0:700", "10.1.0.2:81").is_ok());
}

/// A connection that its owner has let go, and that has something to send, keeps others from its port, and not him. It does not count as his.
#[test]
fn a_connection_that_is_let_go_has_its_owners_port() {
    let mut host = Host::new(2, None);
    connection(&mut host, "127.0.0.1:80");
    host.stack.listen(3, end("127.0.0.1:81"), 2).unwrap();
    let id = begin(&mut host, 1, "127.0.0.1:700", "127.0.0.1:80").unwrap();
    host.turn(8);
    let owned = host.stack.owned(1);
    host.stack.let_go(id);
    assert_eq!(host.stack.owned(1), owned - 1);
    assert_eq!(begin(&mut host, 2, "127.0.0.1:700", "127.0.0.1:81"), Err(Refusal::InUse));
    assert_eq!(begin(&mut host, 1, "127.0.0.1:700", "127.0.0.1:80"), Err(Refusal::InUse), "it is there");
    assert!(begin(&mut host, 1, "127.0.0.1:700", "127.0.0.1:81").is_ok());
    assert_eq!(host.stack.listen(2, end("127.0.0.1:700"), 1), Err(Refusal::InUse));
    assert!(host.stack.listen(1, end("127.0.0.1:700"), 1).is_ok());
    assert_eq!(host.stack.write(id, b"last"), Ok(4));
    host.stack.close(id);
}

/// A server that is started again listens where connections of the one before are left, if it has the same owner.
#[test]
fn a_listener_comes_back_to_its_connections() {
    let mut host = Host::new(3, None);
    let (listener, client, server) = connection(&mut host, "127.0.0.1:80");
    host.stack.close(listener);
    assert_eq!(host.stack.listen(1, end("127.0.0.1:80"), 2), Err(Refusal::InUse));
    let listener = host.stack.listen(2, end("0.0.0.0:80"), 2).unwrap();
    assert_eq!(host.stack.listen(2, end("127.0.0.1:80"), 2), Err(Refusal::InUse), "it listens");
    let other = begin(&mut host, 1, "0.0.0.0:0", "127.0.0.1:80").unwrap();
    host.turn(8);
    let accepted = host.stack.accept(listener).unwrap();
    for (from, to) in [(client, server), (other, accepted)] {
        assert_eq!(host.stack.write(from, b"to you"), Ok(6));
        host.turn(4);
        assert_eq!(host.stack.read(to, &mut [0; 9]), Ok(6));
    }
}

/// A server that is started again listens where the one before it has, whose client has not ended its connection.
#[test]
fn another_owner_listens_behind_connections_that_end() {
    let mut host = Host::new(6, None);
    let (listener, client, server) = connection(&mut host, "127.0.0.1:80");
    host.stack.close(listener);
    assert_eq!(host.stack.listen(3, end("127.0.0.1:80"), 1), Err(Refusal::InUse), "it is used");
    host.stack.close(server);
    host.turn(4);
    assert_eq!(host.stack.state(client).unwrap().0, State::Open, "it has not ended");
    assert!(host.stack.listen(3, end("127.0.0.1:80"), 1).is_ok());
}
