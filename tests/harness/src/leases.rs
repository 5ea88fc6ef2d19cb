//! Addresses, names and routers, from a machine of the trial's: an honest one, one that goes away, and one that lies.
//!
//! The guest has the emulated card, and the time that the peer has; see `peer.rs`. It tells the time by its address in its own network, which it has from the start, so leases
//! may come and go meanwhile. The lies are those of the tests of the stack (`tests/lan`).

use crate::peer::{ADDRESS, CLOCK, LOCAL, PAGE, Peer};
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use lan::leases::{Counts, Manner};
use lan::names::{self, Record};
use lan::neighbours;
use lan::routers::Prefix;
use lan::{ADDRESS_V6, FAR, FAR_V6, Lan};
use libtest_mimic::Trial;
use std::net::{Ipv4Addr, Ipv6Addr};
use xtask::guest::{End, Guest};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 6] = [
        ("leases_are_renewed_and_lost", |world| wired(world, leases_are_renewed_and_lost)),
        ("lies_give_no_address", |world| wired(world, lies_give_no_address)),
        ("lies_about_names_are_not_believed", |world| wired(world, lies_about_names_are_not_believed)),
        ("long_answers_come_by_connections", |world| wired(world, long_answers_come_by_connections)),
        ("routers_bring_addresses", |world| wired(world, routers_bring_addresses)),
        ("addresses_of_others_are_not_used", |world| wired(world, addresses_of_others_are_not_used)),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("network", format!("leases::{name}"), verdict)))
}

/// Address that the server leases, another one, and the one that the guest takes if none is leased.
const LEASED: &str = "10.1.0.15/24 leased";
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 99);
const FALLBACK: &str = "169.254.52.86/16";

/// Network of the router's, and the guest's and the peer's addresses in it.
const NETWORK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0);
const OWN_V6: &str = "2001:db8:1:0:5054:ff:fe12:3456/64";
const PEER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0x00ff, 0xfe00, 0x0101);

/// Seconds of the guest's in which an address is asked for again, with some to spare.
const AGAIN: u32 = 12;

/// A running guest and its peer.
struct Town {
    guest: Guest,
    peer: Peer,
}

/// A system whose card leads to the servers, and what is tried with it.
fn wired(world: &'static World, tries: fn(&mut Town) -> Result<(), String>) -> Verdict {
    let scratch = Scratch::create()?;
    let mut lan = Lan::default();
    lan.leases.seconds = 20;
    lan.names.records = vec![
        ("tern.test", Record::V4(ADDRESS)),
        ("six.test", Record::V6(PEER_V6)),
        ("first.test", Record::Alias("second.test")),
        ("second.test", Record::Alias("tern.test")),
    ];
    let peer = Peer::listen_beside(&scratch.0.join("wire"), lan)?;
    let mut machine = world.machine().with("init=shell args=script").counting();
    peer.plug_in(&mut machine);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(3 * LIMIT));
    let mut town = Town { guest, peer };
    let outcome = town.begin().and_then(|()| tries(&mut town));
    town.guest.send(b"exit 0\n");
    let end = town.guest.finish();
    let told = town.peer.lan(|lan| format!("{lan:?}"));
    let wrong = town.peer.tally().wrong.map_or(Ok(()), Err);
    if let Err(why) = outcome.and(wrong) {
        return Err(failed(&format!("{why}\n{told}"), &end, &town.guest.text()));
    }
    if end != End::Orderly(0) {
        return Err(failed("it did not end in order", &end, &town.guest.text()));
    }
    Ok(())
}

impl Town {
    /// From now on the peer has the guest's time.
    fn begin(&mut self) -> Result<(), String> {
        if !self.guest.expect_begin() {
            return Err("the shell does not begin".into());
        }
        let clock = format!("run net-test clock [{LOCAL}]:{CLOCK} &");
        self.step("the clock", &[&clock, "run net-test rest 1", "run ip"], &[FALLBACK])
    }

    /// Types lines, and looks for what should be printed, in this order.
    fn step(&mut self, name: &str, lines: &[&str], expected: &[&str]) -> Result<(), String> {
        let begin = self.guest.text().len();
        // Some steps are taken again.
        let end = format!("that was {name}, from {begin} on.");
        self.guest.send(format!("{}\necho {end}\n", lines.join("\n")).as_bytes());
        if !self.guest.expect(&end) {
            return Err(format!("{name}: expected {end:?}"));
        }
        let text = self.guest.text();
        let mut said = text.get(begin..).unwrap_or_default().lines();
        match expected.iter().find(|text| !said.any(|line| line.contains(*text))) {
            None => Ok(()),
            Some(text) => Err(format!("{name}: expected {text:?}, in this order")),
        }
    }

    /// Lets the server of addresses change its manner, and the guest wait.
    fn lease(&mut self, manner: Manner, seconds: u32, expected: &[&str]) -> Result<(), String> {
        self.peer.lan(|lan| lan.leases.manner = manner);
        let rest = format!("run net-test rest {seconds}");
        self.step(&format!("{manner:?}"), &[&rest, "run ip"], expected)
    }

    /// The guest gets an address, and reaches who is there by name, by address, and by the router.
    fn thrives(&mut self, name: &str) -> Result<(), String> {
        self.lease(Manner::Honest, AGAIN, &["leased", "router    10.1.0.3", "names     10.1.0.3"])?;
        self.step(
            name,
            &[
                "run nslookup tern.test first.test",
                &format!("run ping {}", lan::ADDRESS),
                &format!("run ping {FAR}"),
                "run fetch http://first.test/",
            ],
            &[
                &format!("tern.test  {ADDRESS}"),
                &format!("first.test  {ADDRESS}"),
                &format!("56 bytes from {}", lan::ADDRESS),
                &format!("56 bytes from {FAR}"),
                PAGE.trim_end(),
            ],
        )
    }
}

/// Nobody answers; then there is a lease, which is renewed for some minutes; it is lost; it comes back; and it is for another address.
fn leases_are_renewed_and_lost(town: &mut Town) -> Result<(), String> {
    town.step("no server", &["run nslookup tern.test"], &["the name is not known"])?;
    town.thrives("a lease")?;
    let before = town.peer.lan(|lan| lan.leases.counts);
    town.lease(Manner::Honest, 200, &[LEASED])?;
    let after = town.peer.lan(|lan| lan.leases.counts);
    let expected = Counts { renewals: after.renewals, ..before };
    if after != expected || !(15..=25).contains(&(after.renewals - before.renewals)) {
        return Err(format!("in 200 s: {before:?}, then {after:?}"));
    }
    town.lease(Manner::Silent, 30, &[FALLBACK])?;
    let lost = town.peer.lan(|lan| lan.leases.counts);
    if lost.rebinds == after.rebinds {
        return Err(format!("nobody else was asked: {lost:?}"));
    }
    town.step("a lost lease", &[&format!("run ping {FAR}")], &["ping: no way leads there"])?;
    town.thrives("a lease that is back")?;
    town.peer.lan(|lan| lan.leases.address = OTHER);
    town.lease(Manner::Honest, 20, &[&format!("{OTHER}/24 leased")])?;
    town.thrives("another address")
}

/// Word of the complaint about the messages of a server; none if they are no lies by themselves.
fn complaint(manner: Manner) -> &'static str {
    match manner {
        Manner::NoTime | Manner::AtOnce | Manner::ShortOptions => "it has too little time",
        Manner::ForAll | Manner::Everybody => "no machine can have that address",
        Manner::FromNowhere | Manner::Unnamed => "no server is named",
        Manner::Foreign => "another server was asked",
        Manner::LongOptions | Manner::Cut => "the message makes no sense",
        Manner::Hole | Manner::NoMask => "there is no such network",
        _ => "",
    }
}

/// A guest that has lost its lease gets none from a server that lies, says what is wrong, and takes the next honest answer.
fn lies_give_no_address(town: &mut Town) -> Result<(), String> {
    town.peer.lan(|lan| lan.leases.seconds = 10);
    for manner in Manner::HOSTILE {
        let name = format!("the end of {manner:?}");
        town.thrives(&name)?;
        town.lease(Manner::Silent, 20, &[FALLBACK])?;
        let begin = town.guest.text().len();
        town.lease(manner, AGAIN, &[FALLBACK])?;
        let said = town.guest.text();
        if !said.get(begin..).unwrap_or_default().contains(complaint(manner)) {
            return Err(format!("{manner:?}: expected {:?}", complaint(manner)));
        }
    }
    town.thrives("the end")
}

/// Each lie ends in a clear error, and the next question has the right answer.
fn lies_about_names_are_not_believed(town: &mut Town) -> Result<(), String> {
    town.peer.lan(|lan| lan.leases.seconds = u32::MAX);
    town.thrives("a lease")?;
    for manner in names::Manner::HOSTILE {
        town.peer.lan(|lan| lan.names.manner = manner);
        let begin = town.guest.text().len();
        town.step(&format!("{manner:?}"), &["run nslookup tern.test"], &["nslookup: tern.test: "])?;
        let text = town.guest.text();
        let said = text.get(begin..).unwrap_or_default();
        let is_clear = said.contains("the name is not known") || said.contains("it took too long");
        if !is_clear || said.contains(&names::LIE.to_string()) {
            return Err(format!("{manner:?}: no clear error"));
        }
        town.peer.lan(|lan| lan.names.manner = names::Manner::Honest);
        let known = format!("tern.test  {ADDRESS}");
        town.step(&format!("the end of {manner:?}"), &["run nslookup tern.test"], &[&known])?;
    }
    Ok(())
}

/// An answer that is too long for a datagram is asked for by a connection. Where that brings nothing, there is a clear error, and the next question has the right answer.
fn long_answers_come_by_connections(town: &mut Town) -> Result<(), String> {
    town.peer.lan(|lan| {
        lan.leases.seconds = u32::MAX;
        lan.names.records.extend((0..40).map(|_| ("many.test", Record::V4(ADDRESS))));
    });
    town.thrives("a lease")?;
    let known = format!("many.test  {ADDRESS}");
    town.step(
        "a long answer",
        &["run nslookup many.test", "run fetch http://many.test/"],
        &[&known, PAGE.trim_end()],
    )?;
    if town.peer.lan(|lan| lan.names.by_stream) == 0 {
        return Err("nothing came by a connection".into());
    }
    for stream in names::Stream::HOSTILE {
        town.peer.lan(|lan| lan.names.stream = stream);
        town.step(
            &format!("{stream:?}"),
            &["run nslookup many.test"],
            &["nslookup: many.test: the name is not known"],
        )?;
        town.peer.lan(|lan| lan.names.stream = names::Stream::Honest);
        town.step(&format!("the end of {stream:?}"), &["run nslookup many.test"], &[&known])?;
    }
    Ok(())
}

/// A router that is not one of this network is not heard. One that is brings an address and a way, and both go when their times end.
fn routers_bring_addresses(town: &mut Town) -> Result<(), String> {
    town.thrives("a lease")?;
    let reach = format!("run ping {FAR_V6}");
    town.peer.lan(|lan| {
        lan.router.prefixes = vec![Prefix::new(NETWORK, 40, 40)];
        lan.router.names = vec![(ADDRESS_V6, 40)];
        lan.router.hop_limit = 254;
    });
    town.peer.advertise();
    town.step("a far router", &["run net-test rest 2", &reach], &["ping: no way leads there"])?;
    town.peer.lan(|lan| lan.router.hop_limit = 255);
    town.peer.advertise();
    town.step(
        "a router",
        &[
            "run net-test rest 2",
            "run ip",
            "run nslookup six.test",
            &format!("run ping {ADDRESS_V6}"),
            &reach,
            "run fetch http://six.test/",
        ],
        &[
            OWN_V6,
            &format!("router    {ADDRESS_V6}"),
            &format!("names     {}", lan::ADDRESS),
            &format!("names     {ADDRESS_V6}"),
            &format!("six.test  {PEER_V6}"),
            &format!("56 bytes from {ADDRESS_V6}"),
            &format!("56 bytes from {FAR_V6}"),
            PAGE.trim_end(),
        ],
    )?;
    let begin = town.guest.text().len();
    town.step(
        "its end",
        &["run net-test rest 45", "run ip", &reach],
        &["leased", "ping: no way leads there"],
    )?;
    if town.guest.text().get(begin..).unwrap_or_default().contains(OWN_V6) {
        return Err("the address is still there".into());
    }
    town.step("the rest", &[&format!("run ping {FAR}")], &[&format!("56 bytes from {FAR}")])
}

/// Another machine has the address that is leased, and wants the one that a router brings: neither is used, both are called what they are, and the rest works.
fn addresses_of_others_are_not_used(town: &mut Town) -> Result<(), String> {
    let own_v6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0x5054, 0x00ff, 0xfe12, 0x3456);
    town.peer.lan(|lan| {
        lan.leases.seconds = 600;
        lan.neighbours.has = vec![lan.leases.address.into()];
        lan.router.prefixes = vec![Prefix::new(NETWORK, 600, 600)];
    });
    let leased = "the address 10.1.0.15 is not used: 02:00:00:00:07:07 has it, or wants it, too";
    town.lease(Manner::Honest, 2 * AGAIN, &[leased, "10.1.0.16/24 leased"])?;
    town.peer.lan(|lan| {
        lan.neighbours.manner = neighbours::Manner::Wants;
        lan.neighbours.has = vec![own_v6.into()];
    });
    town.peer.advertise();
    let advertised = format!("the address {own_v6} is not used");
    let begin = town.guest.text().len();
    town.step("a router", &["run net-test rest 2", "run ip"], &[&advertised, "10.1.0.16/24 leased"])?;
    if town.guest.text().get(begin..).unwrap_or_default().contains(OWN_V6) {
        return Err("the address is used".into());
    }
    // Another machine that wants the guest's is told that it is not free.
    let wanted = Ipv4Addr::new(10, 1, 0, 16);
    town.peer.say(neighbours::question(wanted.into()));
    town.step("another machine", &["run net-test rest 1"], &[])?;
    let defended = town.peer.lan(|lan| lan.neighbours.defended.clone());
    if defended != [wanted] {
        return Err(format!("nobody has said that the address is his: {defended:?}"));
    }
    town.thrives("the end")
}
