//! Datagrams that were refused, and who hears of it.

use super::pairs::Pair;
use super::{Host, end};
use crate::{Id, Kind, Refusal, readiness};
use core::net::SocketAddr;
use std::vec::Vec;

const BOTH: u32 = readiness::READABLE | readiness::WRITABLE;

/// A socket that is connected to an end.
fn connected(host: &mut Host, to: &str) -> Id {
    let id = host.stack.open(1, Kind::Udp).unwrap();
    host.stack.connect_datagrams(id, Some(end(to))).unwrap();
    id
}

fn receive(host: &mut Host, id: Id) -> Result<(SocketAddr, usize), Refusal> {
    host.stack.receive_from(id, &mut [0; 100])
}

#[test]
fn this_machine_refuses_what_nobody_takes() {
    for to in ["127.0.0.1:9", "[::1]:9"] {
        let mut host = Host::new(1, None);
        let (id, other) = (connected(&mut host, to), host.stack.open(1, Kind::Udp).unwrap());
        for _ in 0..3 {
            host.stack.send_to(id, end(to), b"question").unwrap();
            host.stack.send_to(other, end(to), b"question").unwrap();
            host.turn(4);
            assert_eq!(host.stack.ready(id), Ok(BOTH), "{to}");
            assert_eq!(receive(&mut host, id), Err(Refusal::Refused));
            assert_eq!(receive(&mut host, id), Err(Refusal::Again), "it is told once");
            assert_eq!(host.stack.ready(id), Ok(readiness::WRITABLE));
            // One that is connected to nobody does not hear of it.
            assert_eq!(receive(&mut host, other), Err(Refusal::Again));
        }
        // It is told by what comes first, and then sent again.
        host.stack.send_to(id, end(to), b"question").unwrap();
        host.turn(4);
        assert_eq!(host.stack.send_to(id, end(to), b"again"), Err(Refusal::Refused));
        let server = host.stack.open(2, Kind::Udp).unwrap();
        host.stack.bind(server, end(to)).unwrap();
        assert_eq!(host.stack.send_to(id, end(to), b"again"), Ok(()));
        host.turn(4);
        let (from, len) = receive(&mut host, server).unwrap();
        assert_eq!((len, receive(&mut host, id)), (5, Err(Refusal::Again)));
        host.stack.send_to(server, from, b"answer").unwrap();
        host.turn(4);
        assert_eq!(receive(&mut host, id), Ok((end(to), 6)));
    }
}

#[test]
fn another_machine_refuses_it() {
    for to in ["10.1.0.2:9", "[fe80::ff:fe00:102]:9"] {
        let mut pair = Pair::new(0);
        let id = connected(&mut pair.hosts[0], to);
        pair.hosts[0].stack.send_to(id, end(to), &[7; 1400]).unwrap();
        pair.run(300);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Refused), "{to}");
        // Datagrams to others have nothing to do with it.
        let other = end(&to.replace(":9", ":10"));
        pair.hosts[0].stack.send_to(id, other, b"elsewhere").unwrap();
        pair.run(300);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Again));
        assert_eq!(pair.hosts[0].stack.connect_datagrams(id, None), Ok(()));
        pair.hosts[0].stack.send_to(id, end(to), b"question").unwrap();
        pair.run(300);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Again));
    }
}

/// A socket that is connected hears that end alone, and one that is connected to nobody hears all.
#[test]
fn strangers_are_not_heard() {
    let mut host = Host::new(2, None);
    let sockets = [0; 3].map(|_| host.stack.open(1, Kind::Udp).unwrap());
    let at = [end("127.0.0.1:1"), end("127.0.0.1:2"), end("127.0.0.1:3")];
    for (id, at) in sockets.iter().zip(at) {
        host.stack.bind(*id, at).unwrap();
    }
    host.stack.connect_datagrams(sockets[0], Some(at[1])).unwrap();
    for (expected, peer) in [(Err(Refusal::Again), Some(at[1])), (Ok((at[2], 8)), None)] {
        host.stack.connect_datagrams(sockets[0], peer).unwrap();
        host.stack.send_to(sockets[2], at[0], b"stranger").unwrap();
        host.turn(4);
        assert_eq!(receive(&mut host, sockets[0]), expected);
    }
    for (to, expected) in [("127.0.0.1:0", Refusal::Bad), ("10.9.9.9:1", Refusal::Unreachable)] {
        assert_eq!(host.stack.connect_datagrams(sockets[0], Some(end(to))), Err(expected));
    }
    let stream = host.stack.open(1, Kind::Tcp).unwrap();
    assert_eq!(host.stack.connect_datagrams(stream, None), Err(Refusal::Bad));
}

/// Messages that quote something else than was sent, or are damaged, or come when nothing was sent, tell nothing.
#[test]
fn messages_that_are_made_up() {
    let mut pair = Pair::new(0);
    let id = connected(&mut pair.hosts[0], "10.1.0.2:9");
    pair.hosts[0].stack.send_to(id, end("10.1.0.2:9"), b"question").unwrap();
    // The second host answers, and the first gets nothing of it yet.
    let mut answers: Vec<Vec<u8>> = Vec::new();
    for _ in 0..300 {
        for from in 0..2 {
            let now_us = pair.hosts[from].now_us;
            pair.hosts[from].now_us += 10_000;
            pair.hosts[from].stack.turn(now_us);
            while let Some(frame) = pair.hosts[from].stack.pop() {
                let is_answer = from == 1 && frame[12..14] == [8, 0] && frame[23] == 1;
                if is_answer {
                    answers.push(frame);
                } else {
                    pair.hosts[1 - from].stack.push(&frame);
                }
            }
        }
    }
    let [answer] = &answers[..] else { panic!("{} answers", answers.len()) };
    let tell = |pair: &mut Pair, at: usize, bit: u8, is_summed: bool| {
        let mut frame = answer.clone();
        frame[at] ^= bit;
        if is_summed {
            smoltcp::wire::Icmpv4Packet::new_unchecked(&mut frame[34..]).fill_checksum();
        }
        pair.hosts[0].stack.push(&frame);
        pair.run(2);
        receive(&mut pair.hosts[0], id)
    };
    // Kind and reason, and in the quote: version, protocol, sender, receiver, ports.
    for at in [34, 35, 42, 51, 57, 61, 62, 63, 64, 65] {
        for is_summed in [false, true] {
            assert_eq!(tell(&mut pair, at, 1, is_summed), Err(Refusal::Again), "byte {at}");
        }
    }
    assert_eq!(tell(&mut pair, 60, 0, true), Err(Refusal::Refused));
    assert_eq!(tell(&mut pair, 60, 0, true), Err(Refusal::Again), "nothing was sent since");
}
