//! Neighbours that do not answer, and what waits for them.

use super::hostile::Random;
use super::pairs::Pair;
use super::{Host, SECOND_US, end};
use crate::sockets::DATAGRAM_MAX;
use crate::{Id, Kind, Refusal, readiness};
use core::net::SocketAddr;

const BOTH: u32 = readiness::READABLE | readiness::WRITABLE;

/// Ends of each kind: one at an address that nobody has, and one of the other machine's.
const KINDS: [[&str; 2]; 2] = [["10.1.0.77:9", "10.1.0.2:9"], ["[fe80::77]:9", "[fe80::ff:fe00:102]:9"]];

fn udp(host: &mut Host) -> Id {
    host.stack.open(1, Kind::Udp).unwrap()
}

fn receive(host: &mut Host, id: Id) -> Result<(SocketAddr, usize), Refusal> {
    host.stack.receive_from(id, &mut [0; 2000])
}

fn count(host: &mut Host, id: Id) -> usize {
    core::iter::from_fn(|| receive(host, id).ok()).count()
}

#[test]
fn a_machine_that_is_not_there_keeps_nothing_from_others() {
    for [silent, other] in KINDS {
        let mut pair = Pair::new(0);
        let server = udp(&mut pair.hosts[1]);
        pair.hosts[1].stack.bind(server, end(other)).unwrap();
        let (id, echo) = (udp(&mut pair.hosts[0]), pair.hosts[0].stack.open(1, Kind::Echo).unwrap());
        for to in [silent, other, silent, silent, other] {
            pair.hosts[0].stack.send_to(id, end(to), b"x").unwrap();
            pair.hosts[0].stack.ask_echo(echo, end(to).ip(), 7, b"x").unwrap();
        }
        // One without a byte waits as any other.
        pair.hosts[0].stack.send_to(id, end(silent), b"").unwrap();
        pair.hosts[0].stack.send_to(id, end(other), b"").unwrap();
        pair.run(700);
        assert_eq!(count(&mut pair.hosts[1], server), 3, "{silent}");
        let answers = core::iter::from_fn(|| pair.hosts[0].stack.echoed(echo, &mut [0; 9]).ok()).count();
        assert_eq!(answers, 2, "{silent}");
        // One that is connected to nobody hears of nothing.
        assert_eq!(pair.hosts[0].stack.ready(id), Ok(readiness::WRITABLE));
        // While it is known that nobody is there, nothing waits.
        for to in [silent, other] {
            pair.hosts[0].stack.send_to(id, end(to), b"x").unwrap();
        }
        pair.run(3);
        assert_eq!(count(&mut pair.hosts[1], server), 1, "{silent}");
    }
}

#[test]
fn who_is_connected_hears_that_nobody_answers() {
    for [silent, other] in KINDS {
        let mut pair = Pair::new(0);
        let id = udp(&mut pair.hosts[0]);
        pair.hosts[0].stack.connect_datagrams(id, Some(end(silent))).unwrap();
        pair.hosts[0].stack.send_to(id, end(silent), &[7; 1400]).unwrap();
        pair.run(200);
        assert_eq!(pair.hosts[0].stack.ready(id), Ok(readiness::WRITABLE), "it may still answer");
        pair.run(200);
        assert_eq!(pair.hosts[0].stack.ready(id), Ok(BOTH), "{silent}");
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Silent));
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Again), "it is told once");
        // It is told by what comes first.
        pair.hosts[0].stack.send_to(id, end(silent), b"x").unwrap();
        pair.run(3);
        assert_eq!(pair.hosts[0].stack.send_to(id, end(other), b"x"), Err(Refusal::Silent));
        assert_eq!(pair.hosts[0].stack.send_to(id, end(other), b"x"), Ok(()));
        pair.run(300);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Again));
    }
}

/// A machine that comes back is found as soon as something is sent to it and it answers; one whose answer does not take the place of what was known, some seconds later.
#[test]
fn who_comes_back_is_found() {
    for ([_, other], patience) in KINDS.into_iter().zip([100, 1000]) {
        let mut pair = Pair::new(0);
        let server = udp(&mut pair.hosts[1]);
        pair.hosts[1].stack.bind(server, end(other)).unwrap();
        let id = udp(&mut pair.hosts[0]);
        pair.hosts[0].stack.connect_datagrams(id, Some(end(other))).unwrap();
        pair.loss = 1;
        pair.hosts[0].stack.send_to(id, end(other), b"lost").unwrap();
        pair.run(500);
        assert_eq!(receive(&mut pair.hosts[0], id), Err(Refusal::Silent), "{other}");
        pair.loss = 0;
        let _ = pair.hosts[0].stack.send_to(id, end(other), b"a question that goes before");
        pair.run(patience);
        let _ = receive(&mut pair.hosts[0], id);
        pair.hosts[0].stack.send_to(id, end(other), b"here").unwrap();
        pair.run(200);
        assert_eq!(receive(&mut pair.hosts[1], server).map(|(_, len)| len), Ok(4), "{other}");
    }
}

/// Programs that go on sending to machines which are not there keep others waiting for some seconds, and not for ever.
#[test]
fn some_that_are_not_there_delay_others_for_a_while() {
    let mut pair = Pair::new(0);
    let lost = ["10.1.0.77:9", "[fe80::77]:9"].map(|to| (udp(&mut pair.hosts[0]), end(to)));
    let server = udp(&mut pair.hosts[1]);
    pair.hosts[1].stack.bind(server, end("10.1.0.2:9")).unwrap();
    let id = udp(&mut pair.hosts[0]);
    for step in 0..3000 {
        for (lost, to) in lost {
            let _ = pair.hosts[0].stack.send_to(lost, to, b"x");
        }
        if step == 10 {
            pair.hosts[0].stack.send_to(id, end("10.1.0.2:9"), b"x").unwrap();
        }
        pair.run(1);
    }
    assert_eq!(count(&mut pair.hosts[1], server), 1);
}

/// A datagram that was to go from an address that the machine has lost, or by a router, waits for nothing.
#[test]
fn a_lost_address_keeps_nothing_waiting() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[0];
    let [server, id] = [0; 2].map(|_| udp(host));
    let echo = host.stack.open(1, Kind::Echo).unwrap();
    host.stack.bind(server, end("127.0.0.1:9")).unwrap();
    host.stack.send_to(id, end("127.0.0.1:9"), b"x").unwrap();
    host.turn(3);
    for to in ["10.1.0.2:9", "10.1.0.77:9"] {
        host.stack.send_to(id, end(to), b"x").unwrap();
        host.stack.ask_echo(echo, end(to).ip(), 1, b"x").unwrap();
    }
    host.turn(2);
    host.stack.set_link(Some([2, 0, 0, 0, 1, 9]));
    host.stack.send_to(id, end("127.0.0.1:9"), b"x").unwrap();
    host.stack.ask_echo(echo, end("127.0.0.1:9").ip(), 2, b"x").unwrap();
    // A datagram that had come before stays.
    host.turn(8);
    assert_eq!(count(host, server), 2);
    assert_eq!(host.stack.echoed(echo, &mut [0; 9]).map(|(_, number, _)| number), Ok(2));
}

/// A socket that says that it can be written takes the longest datagram, however its buffer is filled.
#[test]
fn who_can_be_written_takes_what_is_written() {
    let mut random = Random(5);
    for _ in 0..200 {
        let mut host = Host::new(1, None);
        let (udp, echo) = (udp(&mut host), host.stack.open(1, Kind::Echo).unwrap());
        for at in 0..=40 {
            // Some are sent meanwhile, so that the buffer goes on in its middle.
            if random.below(4) == 0 {
                host.stack.turn(host.now_us);
                host.now_us += SECOND_US / 1000;
            }
            let len = match (at, random.below(2)) {
                (40, _) => 0,
                (_, 0) => DATAGRAM_MAX,
                _ => random.below(DATAGRAM_MAX + 1),
            };
            let is_ready = host.stack.ready(udp).unwrap() & readiness::WRITABLE != 0;
            let sent = host.stack.send_to(udp, end("127.0.0.1:9"), &std::vec![0; len]);
            assert!(sent == Ok(()) || !is_ready && sent == Err(Refusal::Again), "{len}: {sent:?}");
            let len = len.min(DATAGRAM_MAX - 20);
            let is_ready = host.stack.ready(echo).unwrap() & readiness::WRITABLE != 0;
            let asked = host.stack.ask_echo(echo, end("127.0.0.1:9").ip(), 1, &std::vec![0; len]);
            assert!(asked == Ok(()) || !is_ready && asked == Err(Refusal::Again), "{len}: {asked:?}");
        }
    }
}
