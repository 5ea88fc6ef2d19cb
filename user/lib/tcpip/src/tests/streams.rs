//! Answers about names that are too long for a datagram, and connections by which they come, or do not.

use super::leases::Town;
use super::names::ask;
use crate::names::ANSWER_MAX;
use crate::{Kind, Refusal};
use core::net::{Ipv4Addr, SocketAddr};
use lan::ADDRESS_V6;
use lan::leases::Manner;
use lan::names::{self, Record, Stream};
use lan::routers::Router;
use std::vec::Vec;

const KNOWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// A machine with a server that knows a name with this many addresses, and one with one.
fn town(addresses: usize) -> Town {
    let mut town = Town::new(3, Manner::Honest);
    town.lan.leases.seconds = u32::MAX;
    let many = (0..addresses).map(|_| ("many.test", Record::V4(KNOWN)));
    town.lan.names.records = many.chain([("one.test", Record::V4(KNOWN))]).collect();
    town.run(2);
    town
}

/// Nothing is left of connections after a while.
fn rest(town: &mut Town) {
    town.run(12);
    assert_eq!((town.host.stack.kept(), town.host.stack.talks()), (0, 0));
}

#[test]
fn long_answers_come_by_a_connection() {
    for stream in [Stream::Honest, Stream::Brief] {
        // A record of the server's has 25 bytes, and a message 27 more.
        for addresses in [19, 20, 100, 300] {
            let mut town = town(addresses);
            town.lan.names.stream = stream;
            assert_eq!(ask(&mut town, "many.test"), (Ok(KNOWN.into()), 1), "{addresses}");
            assert_eq!(town.lan.names.by_stream, u64::from(addresses > 19), "{addresses}");
            rest(&mut town);
            assert_eq!(ask(&mut town, "one.test"), (Ok(KNOWN.into()), 1));
            assert_eq!(town.lan.names.by_stream, u64::from(addresses > 19), "{addresses}");
        }
    }
    // Longer than anything that is taken.
    let mut town = town(ANSWER_MAX / 25 + 1);
    assert_eq!(ask(&mut town, "many.test").0, Err(Refusal::NotFound));
    rest(&mut town);
}

#[test]
fn long_answers_come_by_ipv6_too() {
    let mut town = Town::new(4, Manner::Silent);
    town.lan.router = Router { is_there: true, names: [(ADDRESS_V6, 600)].into(), ..Router::default() };
    town.lan.names.records = (0..100).map(|_| ("many.test", Record::V4(KNOWN))).collect();
    town.run(2);
    assert_eq!(ask(&mut town, "many.test"), (Ok(KNOWN.into()), 1));
    assert_eq!(town.lan.names.by_stream, 1);
    rest(&mut town);
}

/// Lies in what a connection brings are decided as those of datagrams are, and nothing of them stays.
#[test]
fn lies_by_connections_are_not_believed() {
    for manner in names::Manner::HOSTILE {
        let mut town = town(1);
        town.lan.names.cuts = true;
        town.lan.names.manner = manner;
        let (found, seconds) = ask(&mut town, "one.test");
        assert_eq!(found, Err(Refusal::NotFound), "{manner:?}");
        assert!(seconds <= 17, "{manner:?}: {seconds} s");
        rest(&mut town);
        town.lan.names.manner = names::Manner::Honest;
        assert_eq!(ask(&mut town, "one.test"), (Ok(KNOWN.into()), 1), "{manner:?}");
        rest(&mut town);
    }
}

/// A connection that does not bring an answer, in each of many ways, ends in time.
#[test]
fn connections_that_lie_do_no_harm() {
    for stream in Stream::HOSTILE {
        let mut town = town(1);
        town.lan.names.cuts = true;
        town.lan.names.stream = stream;
        let (found, seconds) = ask(&mut town, "one.test");
        assert_eq!(found, Err(Refusal::NotFound), "{stream:?}");
        assert!(seconds <= 17, "{stream:?}: {seconds} s");
        rest(&mut town);
        town.lan.names.stream = Stream::Honest;
        assert_eq!(ask(&mut town, "one.test"), (Ok(KNOWN.into()), 1), "{stream:?}");
    }
}

/// An answer that is cut may have what is asked for: if there is no connection, it counts.
#[test]
fn an_answer_that_is_cut_is_better_than_none() {
    for stream in [Stream::Refused, Stream::Silent, Stream::Cut] {
        let mut town = town(1);
        town.lan.names.stream = stream;
        town.spoils = Some(|_, frame| {
            // From the port of names by a datagram: more was to be said.
            if frame.get(23..36) == Some(&[&[17][..], &frame[24..34], &[0, 53]].concat()[..]) {
                frame[44] |= 2;
                super::hostile::repair(frame);
            }
        });
        let (found, seconds) = ask(&mut town, "one.test");
        assert_eq!(found, Ok(KNOWN.into()), "{stream:?}");
        assert!(seconds <= 6, "{stream:?}: {seconds} s");
        rest(&mut town);
    }
}

/// A program that asks servers of names itself, by its own datagrams, gets their answers as they are: it knows better whether it wants all of one that is cut.
#[test]
fn answers_to_programs_are_theirs() {
    let mut town = town(100);
    let server = town.host.stack.status().servers[0];
    let asked =
        [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4][..], b"many\x04test\0", &[0, 1, 0, 1]].concat();
    let socket = town.host.stack.open(2, Kind::Udp).unwrap();
    // The stack asks at the same time, so frames are looked at.
    let query = town.host.stack.resolve(1, "one.test").unwrap();
    town.host.stack.send_to(socket, SocketAddr::new(server, 53), &asked).unwrap();
    town.run(1);
    let mut answer = [0; 1472];
    let (from, len) = town.host.stack.receive_from(socket, &mut answer).unwrap();
    assert_eq!((from, len <= 512, &answer[..2]), (SocketAddr::new(server, 53), true, &asked[..2]));
    assert!(answer[2] & 2 != 0, "it is cut, and says so");
    assert_eq!((town.host.stack.found(query), town.lan.names.by_stream), (Ok(KNOWN.into()), 0));
    town.host.stack.close(socket);
    town.host.stack.close(query);
    rest(&mut town);
}

/// Many questions at once: so many have a connection, and all are decided.
#[test]
fn connections_for_answers_are_few() {
    let mut town = town(100);
    town.lan.names.stream = Stream::Mute;
    let ask = |town: &mut Town| -> Vec<u64> {
        (0..20).map(|_| town.host.stack.resolve(1, "many.test").unwrap()).collect()
    };
    let mut queries = ask(&mut town);
    for _ in 0..50 * 20 {
        town.step();
        assert!(town.host.stack.talks() <= 4);
    }
    let is_decided = |town: &mut Town, query: u64| town.host.stack.found(query) != Err(Refusal::Again);
    assert!(queries.iter().all(|&query| is_decided(&mut town, query)));
    queries.drain(..).for_each(|query| town.host.stack.close(query));
    // An owner who closes his questions leaves nothing, nor does a card that goes.
    let queries = ask(&mut town);
    town.run(1);
    queries.into_iter().for_each(|query| town.host.stack.close(query));
    town.run(1);
    town.host.stack.set_link(None);
    rest(&mut town);
    town.host.stack.set_link(Some(super::leases::OWN));
    town.run(1);
    let queries = ask(&mut town);
    town.run(1);
    assert!(town.host.stack.talks() > 0);
    town.host.stack.set_link(Some([2, 0, 0, 0, 0, 0x17]));
    assert_eq!(town.host.stack.talks(), 0);
    queries.into_iter().for_each(|query| town.host.stack.close(query));
    rest(&mut town);
}

/// A word that an answer is cut opens no connection if it is not an answer to a question.
#[test]
fn only_answers_open_connections() {
    use names::Manner::{OtherQuestion, Stranger, WrongNumber};
    for manner in [WrongNumber, OtherQuestion, Stranger] {
        let mut town = town(1);
        town.lan.names.manner = manner;
        town.spoils = Some(|_, frame| {
            if frame.get(34..36) == Some(&[0, 53]) {
                frame[44] |= 2;
                super::hostile::repair(frame);
            }
        });
        let query = town.host.stack.resolve(1, "one.test").unwrap();
        for _ in 0..50 * 9 {
            town.step();
            assert_eq!(town.host.stack.talks(), 0, "{manner:?}");
        }
        town.host.stack.close(query);
        assert_eq!(town.lan.names.by_stream, 0, "{manner:?}");
    }
}

/// Runs of the property, plain and full.
const RUNS: [u64; 2] = [100, 10_000];

/// Segments with changed bytes, sums repaired: each question is decided, nothing stays, and the next answer is right.
#[test]
fn damaged_connections_do_no_harm() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut found = 0;
    for seed in 0..RUNS[usize::from(full)] {
        let mut town = town(60);
        town.random = super::hostile::Random(seed);
        town.spoils = Some(|random, frame| {
            if frame.len() < 60 {
                return;
            }
            for _ in 0..random.below(3) {
                let at = 34 + random.below((frame.len() - 34).min(90));
                frame[at] = [0, 1, 0xc0, 0xff, random.below(256) as u8][random.below(5)];
            }
            super::hostile::repair(frame);
        });
        found += usize::from(ask(&mut town, "many.test").0 == Ok(KNOWN.into()));
        town.spoils = None;
        town.run(75);
        assert_eq!((town.host.stack.kept(), town.host.stack.talks()), (0, 0), "seed {seed}");
        assert_eq!(ask(&mut town, "many.test"), (Ok(KNOWN.into()), 1), "seed {seed}");
    }
    assert!(found > 10, "{found}");
}
