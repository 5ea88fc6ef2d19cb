//! Routers of IPv6, and what machines make of their advertisements: addresses, a way to other networks, and nothing else.

use super::hostile::Random;
use super::leases::Town;
use super::{Host, SECOND_US};
use crate::advertisements::{Advertisement, PREFIXES_MAX, ROUTERS_MAX, Told};
use crate::{Kind, Refusal};
use core::net::{IpAddr, Ipv6Addr};
use lan::leases::Manner;
use lan::names::Record;
use lan::routers::{ON_LINK, Prefix, Router};
use lan::{ADDRESS, ADDRESS_V6, FAR_V6};
use smoltcp::time::Duration;
use std::vec::Vec;

const OWN: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe12, 0x3456);

/// Seconds after which an address of an advertisement is used: it is asked for in one of them.
const SOON: u64 = 2;

/// Network of number `number`.
fn network(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0)
}

/// Address of the machine in that network.
fn own(number: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0x5054, 0xff, 0xfe12, 0x3456).into()
}

/// A machine without a server of addresses, and a router with a prefix.
fn town(prefixes: &[Prefix]) -> Town {
    let mut town = Town::new(1, Manner::Silent);
    town.lan.router = Router { is_there: true, prefixes: prefixes.into(), ..Router::default() };
    town
}

/// Addresses of IPv6 that routers have brought.
fn advertised(host: &Host) -> Vec<(IpAddr, u8)> {
    let all = (0..8).filter_map(|place| host.stack.address_at(place));
    let is_own = |address: &IpAddr| match address {
        IpAddr::V6(address) => !address.is_loopback() && *address != LINK_LOCAL,
        IpAddr::V4(_) => false,
    };
    all.filter(|(address, _)| is_own(address)).collect()
}

#[test]
fn a_router_brings_an_address_and_a_way() {
    let mut town = town(&[Prefix::new(network(1), 3600, 1800)]);
    assert_eq!(town.reaches(FAR_V6.into()), Err(Refusal::Unreachable), "nobody has said anything yet");
    town.run(SOON);
    assert_eq!(advertised(&town.host), [(own(1), 64)]);
    assert_eq!(town.host.stack.status().router_v6, Some(ADDRESS_V6));
    assert_eq!(town.lan.router.solicitations, 1, "it was asked for once, and it has answered");
    assert_eq!(town.reaches(ADDRESS_V6.into()), Ok(()));
    assert_eq!(town.reaches(FAR_V6.into()), Ok(()));
    assert_eq!(town.lan.router.far_echoes, 1);
    let loopback: IpAddr = Ipv6Addr::LOCALHOST.into();
    let echo = town.host.stack.open(1, Kind::Echo).unwrap();
    town.host.stack.ask_echo(echo, loopback, 1, b"").unwrap();
    town.run(SOON);
    let answer = town.host.stack.echoed(echo, &mut []);
    assert_eq!(answer, Ok((loopback, 1, 0)));
}

/// Three questions, and then there is nothing to be done. The handling of `smoltcp` 0.14 never rests.
#[test]
fn without_a_router_there_is_rest() {
    let mut town = Town::new(2, Manner::Honest);
    town.lan.leases.seconds = u32::MAX;
    town.run(60);
    assert_eq!(town.lan.router.solicitations, 3);
    let rests = |town: &mut Town| {
        let next = town.host.stack.turn(town.host.now_us);
        assert!(next.is_none_or(|next| next > SECOND_US), "the next turn is in {next:?} us");
    };
    rests(&mut town);
    // A card that comes back may be in another network.
    town.host.stack.set_link(None);
    town.run(10);
    rests(&mut town);
    town.host.stack.set_link(Some(OWN));
    town.run(60);
    assert_eq!(town.lan.router.solicitations, 6);
}

/// Times end without anybody's word: of the prefix, of the router; and then the machine is as it was.
#[test]
fn times_of_prefixes_and_routers_end() {
    let mut town = town(&[Prefix::new(network(1), 60, 30)]);
    town.lan.router.lifetime = 100;
    town.run(SOON);
    town.lan.router.is_there = false;
    town.run(57);
    assert_eq!(advertised(&town.host), [(own(1), 64)]);
    town.run(4);
    assert_eq!(advertised(&town.host), []);
    assert_eq!(town.host.stack.status().router_v6, Some(ADDRESS_V6));
    assert_eq!(town.reaches(FAR_V6.into()), Err(Refusal::Unreachable), "there is no address to come from");
    town.run(40);
    assert_eq!(town.host.stack.status().router_v6, None);
    assert_eq!(town.reaches(ADDRESS_V6.into()), Ok(()), "in this network nothing has changed");
}

/// An advertisement whose time is nothing ends a router at once, and a prefix in two hours.
#[test]
fn nobody_takes_an_address_away_at_once() {
    let mut town = town(&[Prefix::new(network(1), 90_000, 90_000)]);
    town.run(SOON);
    town.lan.router.lifetime = 0;
    town.lan.router.prefixes = [Prefix::new(network(1), 0, 0)].into();
    town.host.stack.push(&town.lan.router.advertisement());
    town.run(SOON);
    assert_eq!(town.host.stack.status().router_v6, None);
    town.run(7100);
    assert_eq!(advertised(&town.host), [(own(1), 64)]);
    town.run(200);
    assert_eq!(advertised(&town.host), []);
}

/// An address that should not be used any more is the source of nothing while there is another.
#[test]
fn preferred_addresses_come_first() {
    let mut town = town(&[Prefix::new(network(1), 3600, 10), Prefix::new(network(2), 3600, 1800)]);
    town.run(SOON);
    assert_eq!(advertised(&town.host), [(own(1), 64), (own(2), 64)]);
    town.lan.router.is_there = false;
    town.run(20);
    assert_eq!(advertised(&town.host), [(own(2), 64), (own(1), 64)]);
}

/// A prefix whose machines are elsewhere brings an address, and no network.
#[test]
fn an_address_may_be_alone_in_its_network() {
    let mut prefix = Prefix::new(network(1), 3600, 1800);
    prefix.flags &= !ON_LINK;
    let mut town = town(&[prefix]);
    town.run(SOON);
    assert_eq!(advertised(&town.host), [(own(1), 128)]);
    assert_eq!(town.reaches(FAR_V6.into()), Ok(()));
}

/// Networks that there cannot be, prefixes without room for a machine's number, and times that make no sense.
#[test]
fn prefixes_that_cannot_be_are_left_out() {
    let usual = Prefix::new(network(1), 3600, 1800);
    let of = |address: &str| Prefix { address: address.parse().unwrap(), ..usual };
    let mut town = town(&[
        of("fe80::"),
        of("::"),
        of("ff02::"),
        of("fec0::"),
        of("64:ff9b::"),
        Prefix { len: 63, ..usual },
        Prefix { len: 65, ..usual },
        Prefix { len: 255, ..usual },
    ]);
    town.run(SOON);
    assert_eq!(advertised(&town.host), []);
    town.lan.router.prefixes = [
        Prefix { flags: ON_LINK, ..usual },
        Prefix { valid: 0, preferred: 0, ..usual },
        Prefix { valid: 10, preferred: 11, ..usual },
        Prefix { valid: 10, preferred: u32::MAX, ..usual },
        of("fd00:1:2:3::"),
    ]
    .into();
    town.host.stack.push(&town.lan.router.advertisement());
    town.run(SOON);
    let owned: IpAddr = "fd00:1:2:3:5054:ff:fe12:3456".parse().unwrap();
    assert_eq!(advertised(&town.host), [(owned, 64)]);
    assert_eq!(
        town.reaches(FAR_V6.into()),
        Err(Refusal::Unreachable),
        "its only address is nobody's elsewhere"
    );
}

/// A town of its own for each: the message is believed as it is, and not with one thing changed.
#[test]
fn messages_from_elsewhere_are_not_believed() {
    let changes: [fn(&mut Router, &mut Vec<u8>); 8] = [
        |router, _| router.hop_limit = 254,
        |router, _| router.hop_limit = 0,
        |router, _| router.from = FAR_V6,
        |router, _| router.from = Ipv6Addr::UNSPECIFIED,
        // A code that there is not.
        |_, message| message[1] = 1,
        // An option without length.
        |_, message| message[17] = 0,
        // One that is longer than the message, and one that ends in the middle of a word.
        |_, message| message[17] = 9,
        |_, message| message.truncate(message.len() - 1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut town = town(&[Prefix::new(network(1), 3600, 1800)]);
        town.lan.router.is_there = false;
        town.run(SOON);
        let (mut router, mut message) = (town.lan.router.clone(), town.lan.router.message());
        change(&mut router, &mut message);
        let wrong = router.told(message);
        town.host.stack.push(&wrong);
        town.run(SOON);
        assert_eq!(advertised(&town.host), [], "change {number}");
        assert_eq!(town.host.stack.status().router_v6, None, "change {number}");
        let mut damaged = town.lan.router.advertisement();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        town.host.stack.push(&damaged);
        town.run(SOON);
        assert_eq!(advertised(&town.host), [], "its sum is wrong");
        town.host.stack.push(&town.lan.router.advertisement());
        town.run(SOON);
        assert_eq!(advertised(&town.host), [(own(1), 64)]);
    }
}

/// Many routers with many prefixes: the first ones stay, and there is room for the machine's other addresses.
#[test]
fn a_flood_of_routers_is_bounded() {
    let mut town = Town::new(3, Manner::Honest);
    town.run(2);
    for number in 0..500u16 {
        let router = Router {
            from: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number),
            prefixes: (0..10).map(|at| Prefix::new(network(number * 10 + at), 3600, 1800)).collect(),
            ..Router::default()
        };
        town.host.stack.push(&router.advertisement());
        if number % 20 == 0 {
            town.run(SOON);
        }
    }
    town.run(SOON);
    let all: Vec<(IpAddr, u8)> = (0..9).map_while(|place| town.host.stack.address_at(place)).collect();
    assert_eq!(advertised(&town.host), (0..4).map(|number| (own(number), 64)).collect::<Vec<_>>());
    assert_eq!((PREFIXES_MAX, ROUTERS_MAX, all.len()), (4, 4, 8));
    for needed in ["10.1.0.15", "127.0.0.1", "::1"] {
        assert!(all.iter().any(|(address, _)| *address == needed.parse::<IpAddr>().unwrap()), "{all:?}");
    }
    let first = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, 0);
    assert_eq!(town.host.stack.status().router_v6, Some(first));
}

/// Addresses of a name that the server of a town knows.
const KNOWN: [u8; 4] = [192, 0, 2, 7];

/// A town without a server of addresses, whose router tells of these servers of names.
fn named(names: &[(Ipv6Addr, u32)]) -> Town {
    let mut town = town(&[Prefix::new(network(1), 90_000, 90_000)]);
    town.lan.router.names = names.into();
    town.lan.names.records = [("tern.test", Record::V4(KNOWN.into()))].into();
    town.run(SOON);
    town
}

/// Servers of names that the machine knows.
fn servers(town: &Town) -> Vec<IpAddr> {
    town.host.stack.status().servers
}

/// Asks for the address of the name that is known, for some seconds.
fn asked(town: &mut Town, seconds: u64) -> Result<IpAddr, Refusal> {
    let query = town.host.stack.resolve(1, "tern.test").unwrap();
    town.run(seconds);
    let found = town.host.stack.found(query);
    town.host.stack.close(query);
    found
}

#[test]
fn a_router_tells_of_servers_of_names() {
    let mut town = named(&[(ADDRESS_V6, 30)]);
    assert_eq!(servers(&town), [IpAddr::from(ADDRESS_V6)]);
    assert_eq!(asked(&mut town, 2), Ok(KNOWN.into()));
    // Its time ends by itself, and nobody is asked any more.
    town.lan.router.is_there = false;
    town.run(24);
    assert_eq!(servers(&town), [IpAddr::from(ADDRESS_V6)]);
    town.run(4);
    assert!(servers(&town).is_empty());
    assert_eq!(asked(&mut town, 0), Err(Refusal::NotFound));
}

/// One that has no time left is not asked from then on, since another one may be told of at once; one that is for ever stays.
#[test]
fn a_server_of_names_may_be_taken_back() {
    let other = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x53);
    let mut town = named(&[(other, 600), (ADDRESS_V6, u32::MAX)]);
    assert_eq!(servers(&town), [IpAddr::from(other), ADDRESS_V6.into()]);
    town.lan.router.names = [(other, 0)].into();
    town.host.stack.push(&town.lan.router.advertisement());
    town.run(1);
    assert_eq!(servers(&town), [IpAddr::from(ADDRESS_V6)]);
    town.lan.router.is_there = false;
    town.run(2000);
    assert_eq!(servers(&town), [IpAddr::from(ADDRESS_V6)]);
}

/// When the first server says nothing, the next one is asked; those of a lease come first.
#[test]
fn servers_of_names_are_asked_in_their_order() {
    let silent = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x53);
    let mut town = named(&[(silent, 600), (ADDRESS_V6, 600)]);
    assert_eq!(asked(&mut town, 9), Err(Refusal::Again));
    assert_eq!(asked(&mut town, 15), Ok(KNOWN.into()));
    town.lan.leases.manner = Manner::Honest;
    town.lan.leases.seconds = u32::MAX;
    town.run(20);
    assert_eq!(servers(&town), [ADDRESS.into(), IpAddr::from(silent), ADDRESS_V6.into()]);
    assert_eq!(asked(&mut town, 2), Ok(KNOWN.into()));
}

/// Addresses that no machine can have, options whose lengths are no servers', more servers than there is room for, and one to which no way leads.
#[test]
fn servers_of_names_that_cannot_be_are_left_out() {
    let lies = ["::", "::1", "ff02::1", "::ffff:10.1.0.3", "fec0::1"].map(|lie| (lie.parse().unwrap(), 600));
    let mut town = named(&lies);
    assert!(servers(&town).is_empty());
    for words in [1, 2, 4] {
        let mut router = town.lan.router.clone();
        router.names.clear();
        let mut message = router.message();
        message.extend([25, words, 0, 0, 0, 0, 2, 0]);
        message.extend(ADDRESS_V6.octets().repeat(2));
        message.truncate(message.len() - 40 + 8 * usize::from(words));
        town.host.stack.push(&router.told(message));
        town.run(1);
        assert!(servers(&town).is_empty(), "{words}");
    }
    // Two of one option, and the first three of many.
    let mut message = Router::default().message();
    message.extend([25, 5, 0, 0, 0, 0, 2, 0]);
    message.extend([FAR_V6, ADDRESS_V6].map(|server| server.octets()).concat());
    town.host.stack.push(&town.lan.router.told(message));
    for number in 0..500u16 {
        let server = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 7, number);
        let router = Router { names: [(server, 600)].into(), ..Router::default() };
        town.host.stack.push(&router.advertisement());
        town.run(u64::from(number % 20 == 0));
    }
    assert_eq!(servers(&town), [IpAddr::from(FAR_V6), ADDRESS_V6.into()]);
    town.run(1);
    town.host.stack.push(&Router { lifetime: 0, ..Router::default() }.advertisement());
    town.run(1);
    let third = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 7, 0);
    assert_eq!(
        servers(&town),
        [IpAddr::from(ADDRESS_V6), third.into()],
        "the first one is in another network"
    );
}

/// A reader of advertisements by the words of the standards alone, byte by byte: the oracle.
fn slow(frame: &[u8]) -> Option<Advertisement> {
    let at = |range: core::ops::Range<usize>| frame.get(range);
    let word = |from: usize| Some(u32::from_be_bytes(at(from..from + 4)?.try_into().ok()?));
    let len = usize::from(u16::from_be_bytes(at(18..20)?.try_into().ok()?));
    let is_mine = at(0..6)? == OWN || at(0..1)?[0] & 1 == 1;
    let is_one = at(12..15)? == [0x86, 0xdd, 0x60] || at(12..14)? == [0x86, 0xdd] && at(14..15)?[0] >> 4 == 6;
    if !is_mine || !is_one || at(20..22)? != [58, 255] || at(22..24)? != [0xfe, 0x80] {
        return None;
    }
    let octets = |from: usize| -> Option<[u8; 16]> { at(from..from + 16)?.try_into().ok() };
    let (router, to) = (octets(22)?, Ipv6Addr::from(octets(38)?));
    let is_local = router[1] & 0xc0 == 0x80;
    let all: Ipv6Addr = "ff02::1".parse().unwrap();
    let message = at(54..54 + len)?;
    if !is_local || to != all && to != LINK_LOCAL || message.len() < 16 || message[..2] != [134, 0] {
        return None;
    }
    let mut sum = 58 + len as u64;
    let pairs = at(22..54)?.chunks(2).chain(message.chunks(2));
    pairs.for_each(|pair| sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into()));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if sum != 0xffff {
        return None;
    }
    let lifetime = Duration::from_secs(u64::from(message[6]) << 8 | u64::from(message[7]));
    let (mut place, mut prefixes, mut names) = (16, Vec::new(), Vec::new());
    let time = |seconds: u32| (seconds != u32::MAX).then(|| Duration::from_secs(seconds.into()));
    while place < message.len() {
        let words = usize::from(*message.get(place + 1)?);
        if words == 0 || place + 8 * words > message.len() {
            return None;
        }
        let from = 54 + place;
        if message[place] == 3 && words == 4 {
            let (valid, preferred) = (word(from + 4)?, word(from + 8)?);
            let address = octets(from + 16)?;
            let is_wide = (0x20..0x40).contains(&address[0]) || [0xfc, 0xfd].contains(&address[0]);
            let is_orderly = preferred <= valid && message[place + 2] == 64 && message[place + 3] & 0x40 != 0;
            if is_wide && is_orderly && prefixes.len() < 8 {
                prefixes.push(Told {
                    bits: *address.first_chunk()?,
                    is_on_link: message[place + 3] & 0x80 != 0,
                    valid: time(valid),
                    preferred: time(preferred),
                });
            }
        }
        // A length of eight bytes and of 16 for each server.
        if message[place] == 25 && words % 2 == 1 {
            for server in 0..words / 2 {
                let address = octets(from + 8 + 16 * server)?;
                let is_wide = (0x20..0x40).contains(&address[0]) || [0xfc, 0xfd].contains(&address[0]);
                let is_near = address[0] == 0xfe && address[1] & 0xc0 == 0x80;
                if (is_wide || is_near) && names.len() < 8 {
                    names.push((address.into(), time(word(from + 4)?)));
                }
            }
        }
        place += 8 * words;
    }
    Some(Advertisement { router: router.into(), lifetime, prefixes, names })
}

/// Frames of the property, plain and full.
const FRAMES: [usize; 2] = [20_000, 2_000_000];

/// Advertisements with changed bytes, with their sums repaired and without: the reader says what the oracle says, and the stack keeps its limits.
#[test]
fn damaged_advertisements_do_no_harm() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let (mut random, mut believed) = (Random(9), 0);
    let mut town = Town::new(4, Manner::Honest);
    town.run(2);
    for number in 0..FRAMES[usize::from(full)] {
        let mut router = Router { hop_limit: [255, 255, 255, 64][random.below(4)], ..Router::default() };
        for _ in 0..random.below(10) {
            let times = [0, 1, 59, 7200, u32::MAX];
            let mut prefix =
                Prefix::new(network(random.below(6) as u16), times[random.below(5)], times[random.below(5)]);
            prefix.len = [64, 64, 64, 63][random.below(4)];
            prefix.flags = random.below(256) as u8;
            router.prefixes.push(prefix);
        }
        for _ in 0..random.below(4) {
            let server = ["fe80::1", "2001:db8::53", "::1", "ff02::1"][random.below(4)].parse().unwrap();
            router.names.push((server, [0, 1, 600, u32::MAX][random.below(4)]));
        }
        let mut message = router.message();
        for _ in 0..random.below(3) {
            let at = random.below(message.len());
            message[at] = [0, 1, 3, 5, 25, 0xff, random.below(256) as u8][random.below(7)];
        }
        if random.below(4) == 0 {
            message.truncate(random.below(message.len() + 1).max(4));
        }
        let mut frame = router.told(message);
        if random.below(4) == 0 {
            let at = random.below(frame.len());
            frame[at] ^= 1 << random.below(8);
        }
        let read = Advertisement::of(&frame, OWN, LINK_LOCAL);
        assert_eq!(read, slow(&frame), "frame {number}: {frame:02x?}");
        believed += usize::from(read.is_some());
        town.host.stack.push(&frame);
        if number % 8 == 0 {
            town.host.now_us += random.below(2_000_000) as u64;
            town.host.stack.turn(town.host.now_us);
            while town.host.stack.pop().is_some() {}
            assert!(advertised(&town.host).len() <= PREFIXES_MAX);
            assert!(town.host.stack.status().servers.len() <= 1 + 2);
        }
    }
    assert!(believed > FRAMES[0] / 10, "{believed} were believed");
    town.run(SOON);
    assert!((0..8).any(|place| {
        town.host.stack.address_at(place).is_some_and(|(address, _)| address == IpAddr::from([127, 0, 0, 1]))
    }));
}
