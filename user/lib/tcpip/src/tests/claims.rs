//! Addresses that somebody else has, or wants at the same time, and questions of others for those of this machine.

use super::SECOND_US;
use super::hostile::Random;
use super::leases::Town;
use crate::Refusal;
use crate::claims::{Claims, Fate};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use lan::leases::Manner;
use lan::neighbours::{self, question};
use lan::routers::{Prefix, Router};
use lan::{ADDRESS, ADDRESS_V6};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, Icmpv6Packet};
use std::string::ToString;
use std::vec::Vec;

const LEASED: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 15);
const FALLBACK: Ipv4Addr = Ipv4Addr::new(169, 254, 0x34, 0x56);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe12, 0x3456);
const NETWORK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0);
const ADVERTISED: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0x5054, 0xff, 0xfe12, 0x3456);

/// A machine in a network with a server of addresses, a router, and another machine that has some.
fn town(manner: neighbours::Manner, has: &[IpAddr]) -> Town {
    let mut town = Town::new(1, Manner::Honest);
    town.lan.leases.seconds = u32::MAX;
    let prefixes = [Prefix::new(NETWORK, 90_000, 90_000)].into();
    town.lan.router = Router { is_there: true, prefixes, ..Router::default() };
    town.lan.neighbours.manner = manner;
    town.lan.neighbours.has = has.into();
    town
}

/// Addresses of the machine, without those that stay in it.
fn addresses(town: &Town) -> Vec<IpAddr> {
    let all = (0..8).filter_map(|place| town.host.stack.address_at(place));
    all.map(|(address, _)| address).filter(|address| !address.is_loopback()).collect()
}

/// Conflicts that were told of.
fn conflicts(town: &mut Town) -> Vec<IpAddr> {
    let mut all = Vec::new();
    while let Some(conflict) = town.host.stack.conflict() {
        assert!(conflict.to_string().ends_with("is not used: 02:00:00:00:07:07 has it, or wants it, too"));
        assert_eq!(conflict.hardware, neighbours::HARDWARE);
        all.push(conflict.address);
    }
    all.sort();
    all
}

/// Without anybody else each address is asked for, of IPv4 twice, and is not used before the time of the answer is over.
#[test]
fn addresses_are_asked_for_before_they_are_used() {
    let mut town = town(neighbours::Manner::Has, &[]);
    let mut first = Vec::new();
    for _ in 0..3 * 50 {
        town.step();
        for address in addresses(&town) {
            let wanted = &town.lan.neighbours.wanted;
            let asked = wanted.iter().filter(|wanted| **wanted == address).count();
            assert_eq!(asked, if address.is_ipv4() { 2 } else { 1 }, "{address}");
            if !first.iter().any(|(known, _)| *known == address) {
                first.push((address, town.host.now_us));
            }
        }
    }
    first.sort();
    let [(v4, v4_us), (advertised, advertised_us), (local, local_us)] = *first else { panic!("{first:?}") };
    assert_eq!([v4, advertised, local], [IpAddr::from(LEASED), ADVERTISED.into(), LINK_LOCAL.into()]);
    assert!((200_000..400_000).contains(&v4_us), "{v4_us}");
    assert!((SECOND_US..SECOND_US * 3 / 2).contains(&local_us), "{local_us}");
    assert!((local_us..2 * SECOND_US).contains(&advertised_us), "{advertised_us}");
    assert_eq!((town.lan.neighbours.wanted.len(), conflicts(&mut town)), (4, [].into()));
    // Nothing is asked for again, and there is rest.
    town.run(60);
    assert_eq!(town.lan.neighbours.wanted.len(), 4);
}

/// An address that another machine has, or wants at once, is left to it, whichever it is; the others are used, and it is said once.
#[test]
fn an_address_of_somebody_else_is_not_used() {
    for manner in [neighbours::Manner::Has, neighbours::Manner::Wants] {
        for taken in [IpAddr::from(ADVERTISED), LINK_LOCAL.into()] {
            let mut town = town(manner, &[taken]);
            town.run(30);
            let all = [IpAddr::from(LEASED), ADVERTISED.into(), LINK_LOCAL.into()];
            let expected: Vec<IpAddr> = all.into_iter().filter(|address| *address != taken).collect();
            assert_eq!(addresses(&town), expected, "{manner:?}");
            assert!(town.host.stack.is_settled());
            assert_eq!(conflicts(&mut town), [taken], "{manner:?}");
            let said = town.lan.neighbours.wanted.iter().filter(|wanted| **wanted == taken).count();
            assert_eq!(said, 1, "it is not asked for again");
            // The network can still be used with the others.
            assert_eq!(town.reaches(ADDRESS.into()), Ok(()));
            let near = town.reaches(ADDRESS_V6.into());
            assert_eq!(near, if taken == LINK_LOCAL { Err(Refusal::Unreachable) } else { Ok(()) });
            // When the card comes back, the other machine may have gone.
            town.lan.neighbours.has.clear();
            town.host.stack.set_link(None);
            town.run(1);
            town.host.stack.set_link(Some(super::leases::OWN));
            town.run(3);
            assert_eq!(addresses(&town), all, "{manner:?}");
        }
    }
}

/// Two machines with one hardware address: the second one to come has none of the first one's addresses.
#[test]
fn all_addresses_may_be_taken() {
    let all = [IpAddr::from(LEASED), ADVERTISED.into(), LINK_LOCAL.into()];
    let mut town = town(neighbours::Manner::Has, &all);
    town.run(3);
    assert!(addresses(&town).is_empty());
    assert_eq!(conflicts(&mut town), all);
    town.run(30);
    assert_eq!(addresses(&town), [IpAddr::from(Ipv4Addr::new(10, 1, 0, 16))], "the server has another one");
}

/// Messages that are not orderly, from elsewhere, about other addresses; and this machine's own question, which comes back.
#[test]
fn what_is_no_conflict_takes_nothing() {
    for manner in neighbours::Manner::HARMLESS {
        let mut town = town(manner, &[ADVERTISED.into(), LINK_LOCAL.into()]);
        town.run(5);
        let expected = [IpAddr::from(LEASED), ADVERTISED.into(), LINK_LOCAL.into()];
        assert_eq!(addresses(&town), expected, "{manner:?}");
        assert!(conflicts(&mut town).is_empty(), "{manner:?}");
    }
}

/// The server is told that its address is somebody's, and leases another one; until then there is the one without a server.
#[test]
fn a_leased_address_of_somebody_else_is_declined() {
    for manner in [neighbours::Manner::Has, neighbours::Manner::Wants] {
        let mut town = town(manner, &[LEASED.into()]);
        town.run(4);
        assert_eq!(town.lan.leases.counts.declines, 1);
        assert!(!addresses(&town).contains(&LEASED.into()));
        assert_eq!(conflicts(&mut town), [IpAddr::from(LEASED)]);
        town.run(4);
        assert!(addresses(&town).contains(&FALLBACK.into()));
        town.run(22);
        assert_eq!(addresses(&town)[0], IpAddr::from(Ipv4Addr::new(10, 1, 0, 16)));
        assert!(town.host.stack.status().is_leased);
        assert_eq!(town.lan.leases.counts.declines, 1);
        assert_eq!(town.reaches(ADDRESS.into()), Ok(()));
    }
}

/// A server that leases the same address for ever does not make the machine use it, nor ask faster; and the network is usable without.
#[test]
fn a_server_may_not_listen() {
    let mut town = town(neighbours::Manner::Has, &[LEASED.into()]);
    town.lan.leases.manner = Manner::Stubborn;
    town.run(120);
    assert!(addresses(&town).contains(&FALLBACK.into()) && town.host.stack.is_settled());
    assert!(!addresses(&town).contains(&LEASED.into()));
    let counts = town.lan.leases.counts;
    assert!((5..=13).contains(&counts.declines) && counts.discovers <= 14, "{counts:?}");
    let told = conflicts(&mut town);
    assert!(told.len() <= 13 && told.iter().all(|address| *address == LEASED), "{told:?}");
}

/// An address that a renewal would bring is asked for, too; if it is somebody's, there is none until the next lease.
#[test]
fn a_renewal_may_bring_a_conflict() {
    let mut town = town(neighbours::Manner::Has, &[]);
    town.lan.leases.seconds = 20;
    town.run(15);
    assert_eq!(addresses(&town)[0], IpAddr::from(LEASED));
    let (next, third) = (Ipv4Addr::new(10, 1, 0, 99), Ipv4Addr::new(10, 1, 0, 100));
    town.lan.leases.address = next;
    town.lan.neighbours.has = [next.into()].into();
    for _ in 0..60 * 50 {
        town.step();
        assert!(!addresses(&town).contains(&next.into()));
    }
    assert_eq!(addresses(&town)[0], IpAddr::from(third));
    assert_eq!(conflicts(&mut town), [IpAddr::from(next)]);
}

/// Addresses without a server are many: those that are taken are passed over, and not for ever.
#[test]
fn an_address_without_a_server_is_one_that_nobody_has() {
    let mut town = town(neighbours::Manner::Has, &[FALLBACK.into()]);
    town.lan.leases.manner = Manner::Silent;
    town.run(10);
    let second = addresses(&town)[0];
    assert!(second.to_string().starts_with("169.254.") && second != FALLBACK, "{second}");
    assert_eq!(conflicts(&mut town), [IpAddr::from(FALLBACK)]);
    // Everybody's.
    let mut town = self::town(neighbours::Manner::Has, &[]);
    town.lan.leases.manner = Manner::Silent;
    town.lan.neighbours.has =
        (0..=u16::MAX).map(|number| Ipv4Addr::from_bits(0xa9fe_0000 | u32::from(number)).into()).collect();
    town.run(60);
    assert!(addresses(&town).iter().all(IpAddr::is_ipv6) && town.host.stack.is_settled());
    let wanted = town.lan.neighbours.wanted.iter().filter(|wanted| wanted.is_ipv4()).count();
    assert_eq!(wanted, 10);
    assert!(conflicts(&mut town).len() <= 8);
}

/// Another machine that wants an address of this one is told who has it, and nobody is told of others.
#[test]
fn own_addresses_are_defended() {
    let mut town = town(neighbours::Manner::Has, &[]);
    town.run(3);
    let own = [IpAddr::from(LEASED), ADVERTISED.into(), LINK_LOCAL.into()];
    for address in own {
        town.lan.neighbours.defended.clear();
        town.host.stack.push(&question(address));
        town.run(1);
        assert_eq!(town.lan.neighbours.defended, [address]);
    }
    town.lan.neighbours.defended.clear();
    let others = ["10.1.0.16", "127.0.0.1", "::1", "fe80::1", "ff02::1"];
    for address in others {
        town.host.stack.push(&question(address.parse().unwrap()));
        town.run(1);
    }
    assert!(town.lan.neighbours.defended.is_empty());
    assert_eq!(addresses(&town), own, "nobody takes one that is used");
}

/// Prefixes that come and go with a conflict each: few lines say so.
#[test]
fn a_flood_of_conflicts_is_not_told_of() {
    let mut town = Town::new(2, Manner::Honest);
    town.run(2);
    let mut told = 0;
    for number in 0..200u16 {
        let network = Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0);
        let own = Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0x5054, 0xff, 0xfe12, 0x3456);
        town.lan.neighbours.has = [own.into()].into();
        let router = Router { prefixes: [Prefix::new(network, 1, 1)].into(), ..Router::default() };
        town.host.stack.push(&router.advertisement());
        for _ in 0..20 {
            town.step();
        }
        told += conflicts(&mut town).len();
    }
    // In 80 seconds.
    assert!((8..=72).contains(&told), "{told}");
}

/// A reader of messages about owners by the words of the standards alone, byte by byte: the address that somebody else has or wants.
fn slow(frame: &[u8]) -> Option<IpAddr> {
    let at = |range: core::ops::Range<usize>| frame.get(range);
    if at(12..14)? == [8, 6] {
        let v4 = |from: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(at(from..from + 4)?).ok()?));
        // Ethernet, IPv4, and the lengths of their addresses.
        let is_one =
            at(14..20)? == [0, 1, 8, 0, 6, 4] && [[0, 1], [0, 2]].contains(&at(20..22)?.try_into().ok()?);
        at(0..42)?;
        let (has, wants) = (v4(28)?, v4(38)?);
        let is_own = at(22..28)? == super::leases::OWN;
        let is_question = at(20..22)? == [0, 1];
        let address = if has.is_unspecified() && is_question { wants } else { has };
        return (is_one && !is_own).then_some(address.into());
    }
    let len = usize::from(u16::from_be_bytes(at(18..20)?.try_into().ok()?));
    if at(12..14)? != [0x86, 0xdd] || at(14..15)?[0] >> 4 != 6 || at(20..22)? != [58, 255] {
        return None;
    }
    let (from, to, message) = (at(22..38)?, at(38..54)?, at(54..54 + len)?);
    let mut sum = 58 + len as u64;
    let pairs = at(22..54)?.chunks(2).chain(message.chunks(2));
    pairs.for_each(|pair| sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into()));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if sum != 0xffff || message.len() < 24 || message[1] != 0 {
        return None;
    }
    let (mut place, mut tells) = (24, false);
    while place < message.len() {
        let words = usize::from(*message.get(place + 1)?);
        if words == 0 || place + 8 * words > message.len() {
            return None;
        }
        tells |= message[place] == 1;
        place += 8 * words;
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(&message[8..24]).ok()?);
    let is_for_group =
        to[..13] == [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff] && to[13..] == message[21..24];
    let is_conflict = match message[0] {
        135 => from == [0; 16] && is_for_group && !tells,
        136 => to[0] != 0xff || message[4] & 0x40 == 0,
        _ => false,
    };
    is_conflict.then_some(address.into())
}

/// Frames of the property, plain and full.
const FRAMES: [usize; 2] = [20_000, 2_000_000];

/// Messages with changed bytes, with their sums repaired and without: an address is lost if the oracle says so, and only then.
#[test]
fn damaged_messages_do_no_harm() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let (mut random, mut lost) = (Random(5), 0);
    let all = [IpAddr::from(LEASED), ADVERTISED.into(), LINK_LOCAL.into()];
    let manners = [&[neighbours::Manner::Has, neighbours::Manner::Wants][..], &neighbours::Manner::HARMLESS];
    let manners = manners.concat();
    let own = EthernetAddress(super::leases::OWN);
    let mut lan = lan::Lan::default();
    lan.neighbours.has = all.into();
    for number in 0..FRAMES[usize::from(full)] {
        let mut claims = Claims::default();
        claims.set(Instant::ZERO, &all);
        let questions = claims.turn(Instant::from_millis(1), own);
        lan.neighbours.manner = manners[random.below(manners.len())];
        if lan.neighbours.manner == neighbours::Manner::SendsBack {
            continue;
        }
        let Some(mut frame) = lan.answer(&questions[random.below(3)]).pop() else { continue };
        for _ in 0..random.below(3) {
            let at = random.below(frame.len());
            frame[at] = [0, 1, 2, 0xff, random.below(256) as u8, frame[at] ^ 1][random.below(6)];
        }
        if random.below(8) == 0 {
            frame.truncate(random.below(frame.len()));
        }
        if random.below(2) == 0 && frame.len() >= 58 && frame[12..14] == [0x86, 0xdd] {
            let ends: [[u8; 16]; 2] = [frame[22..38].try_into().unwrap(), frame[38..54].try_into().unwrap()];
            let [from, to] = ends.map(Ipv6Addr::from);
            Icmpv6Packet::new_unchecked(&mut frame[54..]).fill_checksum(&from, &to);
        }
        assert_eq!(claims.hears(&frame, own), None, "nothing is this machine's yet");
        let taken: Vec<IpAddr> =
            all.into_iter().filter(|&address| claims.fate(address) == Some(Fate::Taken)).collect();
        let expected = slow(&frame).filter(|address| all.contains(address));
        assert_eq!(taken, Vec::from_iter(expected), "frame {number}: {frame:02x?}");
        lost += taken.len();
    }
    assert!(lost > FRAMES[0] / 20, "{lost}");
}
