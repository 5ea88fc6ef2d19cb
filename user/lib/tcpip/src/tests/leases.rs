//! Addresses that a server leases: an honest one, one that goes away, and one that lies. What the stack gets wrong by itself never reaches it.

use super::hostile::Random;
use super::{Host, SECOND_US};
use crate::leases::Fault;
use crate::{Kind, Refusal};
use core::net::{IpAddr, Ipv4Addr};
use lan::leases::{Counts, Manner};
use lan::{ADDRESS, FAR, Lan};
use std::vec::Vec;

pub const OWN: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// Address that the server leases, and the one that the machine takes if none does.
const LEASED: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 15);
const FALLBACK: Ipv4Addr = Ipv4Addr::new(169, 254, 0x34, 0x56);

/// Time between two turns.
const TURN_US: u64 = SECOND_US / 50;

/// Messages of DHCP in a minute, at most, whatever a server does: an offer and a refusal each ten seconds, and a few more.
const MESSAGES_MAX: u64 = 16;

/// A host whose wire leads to the servers.
pub struct Town {
    pub host: Host,
    pub lan: Lan,
    /// Frames that the host has sent.
    pub sent: u64,
    /// Changes frames on their way to the host.
    pub spoils: Option<fn(&mut Random, &mut Vec<u8>)>,
    pub random: Random,
}

impl Town {
    pub fn new(seed: u64, manner: Manner) -> Town {
        let mut host = Host::new(seed, None);
        host.stack.set_link(Some(OWN));
        let mut lan = Lan::default();
        lan.leases.manner = manner;
        Town { host, lan, sent: 0, spoils: None, random: Random(seed) }
    }

    /// Time goes on.
    pub fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * SECOND_US / TURN_US {
            self.step();
        }
    }

    /// A turn.
    pub fn step(&mut self) {
        self.host.stack.turn(self.host.now_us);
        self.host.now_us += TURN_US;
        while let Some(frame) = self.host.stack.pop() {
            self.sent += 1;
            for mut back in self.lan.answer(&frame) {
                if let Some(spoil) = self.spoils {
                    spoil(&mut self.random, &mut back);
                }
                self.host.stack.push(&back);
            }
        }
    }

    /// The first address, if a server has given it.
    fn leased(&self) -> Option<IpAddr> {
        let address = self.host.stack.address_at(0).map(|(address, _)| address);
        address.filter(|_| self.host.stack.status().is_leased)
    }

    /// Whether a machine answers an echo.
    pub fn reaches(&mut self, to: IpAddr) -> Result<(), Refusal> {
        let echo = self.host.stack.open(1, Kind::Echo)?;
        let asked = self.host.stack.ask_echo(echo, to, 1, b"are you there");
        self.run(3);
        let answered = self.host.stack.echoed(echo, &mut []);
        self.host.stack.close(echo);
        asked.and(answered).map(|(from, ..)| assert_eq!(from, to))
    }
}

fn messages(counts: Counts) -> u64 {
    counts.discovers + counts.requests + counts.renewals + counts.rebinds
}

#[test]
fn an_honest_server_is_believed() {
    let mut town = Town::new(1, Manner::Honest);
    town.run(2);
    assert_eq!(town.leased(), Some(LEASED.into()));
    let status = town.host.stack.status();
    assert_eq!((status.router, status.servers), (Some(ADDRESS), [ADDRESS.into()].into()));
    assert_eq!(town.reaches(ADDRESS.into()), Ok(()));
    assert_eq!(town.reaches(FAR.into()), Ok(()), "by the router");
    assert_eq!(town.host.stack.complaint(), None);
}

/// Fault of the messages of a server, or none if the stack sees by itself that it gets no address.
fn fault(manner: Manner) -> Option<Fault> {
    Some(match manner {
        Manner::NoTime | Manner::AtOnce | Manner::ShortOptions => Fault::Time,
        Manner::ForAll | Manner::Everybody => Fault::Address,
        Manner::FromNowhere | Manner::Unnamed => Fault::Unnamed,
        Manner::Foreign => Fault::Foreign,
        Manner::LongOptions | Manner::Cut => Fault::Garbled,
        Manner::Hole | Manner::NoMask => Fault::Mask,
        _ => return None,
    })
}

/// Each lie is refused and called what it is, nobody is asked faster because of it, and the next honest answer counts.
#[test]
fn lies_give_no_address() {
    for manner in Manner::HOSTILE {
        let mut town = Town::new(2, manner);
        town.lan.leases.seconds = 20;
        town.run(4);
        assert!(!town.host.stack.is_settled(), "{manner:?}");
        let complaint = town.host.stack.complaint();
        assert_eq!(complaint.map(|complaint| complaint.fault), fault(manner), "{manner:?}");
        town.run(56);
        assert_eq!(town.leased(), None, "{manner:?}");
        assert_eq!(town.host.stack.address_at(0), Some((FALLBACK.into(), 16)), "{manner:?}");
        let asked = messages(town.lan.leases.counts);
        assert!((3..=MESSAGES_MAX).contains(&asked), "{manner:?}: {asked} messages in a minute");
        town.lan.leases.manner = Manner::Honest;
        town.run(40);
        assert_eq!(town.leased(), Some(LEASED.into()), "{manner:?}");
        assert_eq!(town.reaches(ADDRESS.into()), Ok(()), "{manner:?}");
    }
}

#[test]
fn another_server_takes_no_lease_away() {
    let mut town = Town::new(3, Manner::ForeignRefusal);
    town.lan.leases.seconds = 20;
    town.run(60);
    assert_eq!(town.leased(), Some(LEASED.into()));
    assert_eq!(town.host.stack.complaint().map(|complaint| complaint.fault), Some(Fault::Foreign));
}

#[test]
fn a_short_lease_is_renewed_again_and_again() {
    for seconds in [10, 20, 100] {
        let mut town = Town::new(4, Manner::Honest);
        town.lan.leases.seconds = seconds;
        town.run(2);
        for _ in 0..600 {
            town.run(1);
            assert_eq!(town.leased(), Some(LEASED.into()));
        }
        let Counts { discovers, requests, renewals, rebinds, .. } = town.lan.leases.counts;
        assert_eq!((discovers, requests, rebinds), (1, 1, 0), "for {seconds} s");
        let expected = 2 * 600 / u64::from(seconds);
        assert!((expected - 2..=expected + 2).contains(&renewals), "{renewals} renewals for {seconds} s");
    }
}

/// The server goes away while there is a lease: it is asked by itself, then all are, then the address is gone. When it comes back, so does the address.
#[test]
fn a_lease_is_lost_and_comes_back() {
    let mut town = Town::new(5, Manner::Honest);
    town.lan.leases.seconds = 20;
    town.run(2);
    assert_eq!(town.leased(), Some(LEASED.into()));
    town.lan.leases.manner = Manner::Silent;
    town.run(16);
    assert_eq!(town.leased(), Some(LEASED.into()), "its time is not over");
    town.run(20);
    assert_eq!(town.leased(), None);
    assert_eq!(town.host.stack.address_at(0), Some((FALLBACK.into(), 16)));
    let counts = town.lan.leases.counts;
    assert!(counts.renewals > 0 && counts.rebinds > 0, "{counts:?}");
    assert_eq!(town.reaches(FAR.into()), Err(Refusal::Unreachable), "there is no router");
    town.lan.leases.manner = Manner::Honest;
    town.run(40);
    assert_eq!(town.leased(), Some(LEASED.into()));
    assert_eq!(town.reaches(FAR.into()), Ok(()));
}

/// The server says no to a renewal, since the address is another one now.
#[test]
fn an_address_is_replaced_by_another() {
    let mut town = Town::new(6, Manner::Honest);
    town.lan.leases.seconds = 20;
    town.run(2);
    let other = Ipv4Addr::new(10, 1, 0, 99);
    town.lan.leases.address = other;
    town.run(20);
    assert_eq!(town.leased(), Some(other.into()));
    assert_eq!(town.reaches(ADDRESS.into()), Ok(()));
}

/// A server that lies when the lease is renewed does not make the machine ask faster, nor takes it what it has before its time.
#[test]
fn lies_at_renewals_do_no_harm() {
    for manner in Manner::HOSTILE {
        let mut town = Town::new(7, Manner::Honest);
        town.lan.leases.seconds = 20;
        town.run(2);
        assert_eq!(town.leased(), Some(LEASED.into()));
        town.lan.leases.manner = manner;
        town.run(60);
        let asked = messages(town.lan.leases.counts);
        // An honest lease of 20 seconds is renewed six times in a minute.
        assert!(asked <= 6 + MESSAGES_MAX, "{manner:?}: {asked} messages");
        town.lan.leases.manner = Manner::Honest;
        town.run(40);
        assert_eq!(town.leased(), Some(LEASED.into()), "{manner:?}");
    }
}

/// Bytes of a message that are worth changing: its head and its options, behind the headers of Ethernet, IP and UDP.
const MESSAGE: usize = 42;

/// Changes some bytes of a message of DHCP, or its end, and repairs the sums.
fn spoil(random: &mut Random, frame: &mut [u8]) {
    for _ in 0..random.below(4) {
        if frame.len() <= MESSAGE {
            return;
        }
        let options = MESSAGE + 240;
        let from = if random.below(4) == 0 { MESSAGE } else { options.min(frame.len() - 1) };
        let at = from + random.below((frame.len() - from).min(90));
        frame[at] = [0, 1, 4, 0x7f, 0xff, random.below(256) as u8][random.below(6)];
    }
    super::hostile::repair(frame);
}

/// Runs of the property, plain and full.
const RUNS: [u64; 2] = [60, 6000];

/// Whatever bytes come from a server, the machine has an address that a machine can have, asks no faster than it should, and takes the next honest lease.
#[test]
fn damaged_leases_do_no_harm() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut leased = 0;
    for seed in 0..RUNS[usize::from(full)] {
        let mut town = Town::new(seed, Manner::Honest);
        town.lan.leases.seconds = 20;
        town.spoils = Some(|random, frame| spoil(random, frame));
        town.run(60);
        let asked = messages(town.lan.leases.counts);
        // Times of renewals may have been changed, and are five seconds at least.
        assert!(asked <= 12 + MESSAGES_MAX, "seed {seed}: {asked} messages");
        // When a lease has just ended, there is no address for as long as another may still come.
        if !town.host.stack.is_settled() {
            town.run(6);
        }
        let Some((IpAddr::V4(address), len)) = town.host.stack.address_at(0) else { panic!("seed {seed}") };
        assert!(crate::leases::is_host(address) && len >= 8, "seed {seed}: {address}/{len}");
        leased += u64::from(town.leased().is_some());
        town.spoils = None;
        // A time that was changed may be long: then the lease is still there, and its address may be any.
        town.run(60);
        assert!(town.leased().is_some(), "seed {seed}");
    }
    assert!(leased > RUNS[0] / 10, "{leased} of them had a lease");
}

/// While a lease is renewed only its own server is heard; when its time is nearly over, any may go on with it.
#[test]
fn another_server_renews_nothing_before_all_are_asked() {
    let mut town = Town::new(8, Manner::Honest);
    town.lan.leases.seconds = 40;
    town.run(2);
    town.lan.leases.manner = Manner::Foreign;
    town.run(30);
    assert_eq!(town.host.stack.complaint().map(|complaint| complaint.fault), Some(Fault::Foreign));
    assert_eq!(town.lan.leases.counts.rebinds, 0);
    town.run(30);
    assert_eq!(town.lan.leases.counts.rebinds, 1);
    assert_eq!(town.leased(), Some(LEASED.into()));
}
