//! Advertisements of routers (IPv6): what they say of the network, and what becomes of it, which is addresses of this machine, a way to other networks, and servers of names.
//!
//! The handling of `smoltcp` 0.14 is not used. When it has asked three times and no router is there, it names a moment that is over as the next one to be polled at, for ever;
//! of an advertisement it knows one prefix, whatever its bits are; and it takes a lifetime of nothing at its word.
//!
//! **Who may say what.** Anybody in the network may say that it is a router, and nobody from elsewhere: a message that has been forwarded has fewer than 255 hops left. What one
//! that lies can do is bounded: so many routers, prefixes and servers, addresses of networks that there can be, and none that goes at once because somebody says so.

use crate::discovery::{ALL, Message, options};
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::Icmpv6Message;

/// Prefixes of which there are addresses, at most: the interface has places for these beside its four others.
pub const PREFIXES_MAX: usize = 4;

/// Routers that are known, at most.
pub const ROUTERS_MAX: usize = 4;

/// Servers of names that are known, at most.
pub const NAMES_MAX: usize = 3;

/// Prefixes, and servers of names, of one advertisement, and advertisements of one turn, that are looked at.
const TOLD_MAX: usize = 8;
/// See [`TOLD_MAX`].
const PENDING_MAX: usize = 8;

/// How often it is asked for routers, and the time between two questions.
const ASKS: u8 = 3;
/// See [`ASKS`].
const ASKS_AGAIN: Duration = Duration::from_secs(4);

/// Time that an address has left, at least, when somebody says that it has less: two hours.
const LEFT_MIN: Duration = Duration::from_secs(7200);

/// Bytes of an advertisement in front of its options.
const HEAD: usize = 16;

/// Kind and bytes of the option that tells of a prefix.
const PREFIX: u8 = 3;
/// See [`PREFIX`].
const PREFIX_LEN: usize = 32;

/// Kind of the option that tells of servers of names, and bytes in front of their addresses.
const NAMES: u8 = 25;
/// See [`NAMES`].
const NAMES_HEAD: usize = 8;

/// Bits of a prefix that leaves room for this machine's number.
const BITS: u8 = 64;

/// Flags of a prefix: its addresses are in this network; machines make addresses of it.
const ON_LINK: u8 = 0x80;
/// See [`ON_LINK`].
const FOR_ADDRESSES: u8 = 0x40;

/// Whether an address is one that other networks may know: of the internet, or of one owner's networks.
pub(crate) fn is_wide(address: Ipv6Addr) -> bool {
    let [first, ..] = address.octets();
    first >> 5 == 1 || first >> 1 == 0x7e
}

/// A prefix that is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its bits.
    pub bits: [u8; 8],
    /// Whether its addresses are in this network.
    pub is_on_link: bool,
    /// Time in which addresses can be used; `None` is for ever.
    pub valid: Option<Duration>,
    /// Time in which they should be.
    pub preferred: Option<Duration>,
}

/// An advertisement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Address of the router in this network.
    pub router: Ipv6Addr,
    /// Time in which it is a way to other networks.
    pub lifetime: Duration,
    /// Prefixes of which machines make addresses.
    pub prefixes: Vec<Told>,
    /// Servers of names, and the time in which each can be asked; `None` is for ever.
    pub names: Vec<(Ipv6Addr, Option<Duration>)>,
}

/// Time of so many seconds; all ones are for ever.
fn seconds(bytes: [u8; 4]) -> Option<Duration> {
    match u32::from_be_bytes(bytes) {
        u32::MAX => None,
        seconds => Some(Duration::from_secs(seconds.into())),
    }
}

/// Prefix of an option, if machines make addresses of it, and if there can be such a network.
fn told(option: &[u8]) -> Option<Told> {
    let option: &[u8; PREFIX_LEN] = option.try_into().ok()?;
    let [_, _, len, flags, v0, v1, v2, v3, p0, p1, p2, p3, _, _, _, _, address @ ..] = *option;
    let (valid, preferred) = (seconds([v0, v1, v2, v3]), seconds([p0, p1, p2, p3]));
    // A time that is for ever is the longest.
    let is_orderly = valid.is_none_or(|valid| preferred.is_some_and(|preferred| preferred <= valid));
    let is_usable = len == BITS && flags & FOR_ADDRESSES != 0 && is_wide(address.into());
    let bits = *address.first_chunk()?;
    let told = Told { bits, is_on_link: flags & ON_LINK != 0, valid, preferred };
    (is_orderly && is_usable).then_some(told)
}

/// Servers of names that an option tells of, if machines can have their addresses. None, if its length is none of such an option.
fn named(option: &[u8]) -> Vec<(Ipv6Addr, Option<Duration>)> {
    let Some((&[_, _, _, _, time @ ..], addresses)) = option.split_first_chunk::<NAMES_HEAD>() else {
        return Vec::new();
    };
    let (addresses, rest) = addresses.as_chunks::<16>();
    let all = addresses.iter().copied().map(Ipv6Addr::from).filter(|_| rest.is_empty());
    let is_usable = |address: &Ipv6Addr| is_wide(*address) || address.is_unicast_link_local();
    all.filter(is_usable).map(|address| (address, seconds(time))).collect()
}

impl Advertisement {
    /// That of a frame which is for a machine with this hardware address and this address in its network. `None` if there is none, or if it should not be believed.
    pub fn of(frame: &[u8], hardware: [u8; 6], own: Ipv6Addr) -> Option<Advertisement> {
        let Message { hardware: [_, for_hardware], from: router, to, kind, bytes } = Message::of(frame)?;
        let is_mine = for_hardware.is_multicast() || for_hardware.0 == hardware;
        let is_near = router.is_unicast_link_local() && (to == ALL || to == own);
        if !is_mine || !is_near || kind != Icmpv6Message::RouterAdvert {
            return None;
        }
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let &[.., high, low, _, _, _, _, _, _, _, _] = head else { return None };
        let lifetime = Duration::from_secs(u16::from_be_bytes([high, low]).into());
        let options = options(rest)?;
        let of_kind = |kind: u8| options.iter().copied().filter(move |option| option[0] == kind);
        let prefixes = of_kind(PREFIX).filter_map(told).take(TOLD_MAX).collect();
        let names = of_kind(NAMES).flat_map(named).take(TOLD_MAX).collect();
        Some(Advertisement { router, lifetime, prefixes, names })
    }
}

/// A prefix of which there is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    bits: [u8; 8],
    is_on_link: bool,
    valid_until: Instant,
    preferred_until: Instant,
}

/// A machine that does something for others, for some time: a router, or a server of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Helper {
    address: Ipv6Addr,
    until: Instant,
}

/// Keeps what is said of a machine, if there is room for one more.
fn keep(helpers: &mut Vec<Helper>, max: usize, said: Helper) {
    match helpers.iter().position(|helper| helper.address == said.address) {
        // One without time goes with those whose time is over.
        Some(place) => helpers[place] = said,
        None if helpers.len() < max => helpers.push(said),
        None => {}
    }
}

/// Moment that does not come.
pub(crate) const NEVER: Instant = Instant::from_micros_const(i64::MAX);

fn until(now: Instant, time: Option<Duration>) -> Instant {
    time.map_or(NEVER, |time| now + time)
}

/// Routers, prefixes and servers of names of the network.
#[derive(Debug)]
pub(crate) struct Routers {
    /// Advertisements of this turn.
    pending: Vec<Advertisement>,
    routers: Vec<Helper>,
    names: Vec<Helper>,
    prefixes: Vec<Prefix>,
    /// Questions that may still be asked, and when.
    asks: u8,
    asks_at: Instant,
    /// When something is due.
    due: Instant,
}

impl Default for Routers {
    fn default() -> Routers {
        Routers {
            pending: Vec::new(),
            routers: Vec::new(),
            names: Vec::new(),
            prefixes: Vec::new(),
            asks: 0,
            asks_at: NEVER,
            due: NEVER,
        }
    }
}

impl Routers {
    /// There is a card from now on: it is asked for routers, since the network may be another.
    pub fn ask(&mut self, now: Instant) {
        (self.asks, self.asks_at, self.due) = (ASKS, now, now);
    }

    /// Keeps an advertisement for the next turn.
    pub fn keep(&mut self, said: Advertisement) {
        if self.pending.len() < PENDING_MAX {
            self.pending.push(said);
            self.due = Instant::ZERO;
        }
    }

    /// When something is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Does what is due. Says whether routers are to be asked for.
    pub fn turn(&mut self, now: Instant) -> bool {
        for said in core::mem::take(&mut self.pending) {
            self.hear(now, &said);
        }
        self.routers.retain(|router| router.until > now);
        self.names.retain(|server| server.until > now);
        self.prefixes.retain(|prefix| prefix.valid_until > now);
        let asks = self.asks > 0 && self.asks_at <= now;
        if asks {
            self.asks -= 1;
            self.asks_at = now + ASKS_AGAIN;
        }
        let later = |moment: &Instant| *moment > now;
        let asked = (self.asks > 0).then_some(self.asks_at);
        let helpers = self.routers.iter().chain(&self.names).map(|helper| helper.until);
        let prefixes = self.prefixes.iter().flat_map(|prefix| [prefix.valid_until, prefix.preferred_until]);
        self.due = asked.into_iter().chain(helpers).chain(prefixes).filter(later).min().unwrap_or(NEVER);
        asks
    }

    fn hear(&mut self, now: Instant, said: &Advertisement) {
        let router = Helper { address: said.router, until: now + said.lifetime };
        keep(&mut self.routers, ROUTERS_MAX, router);
        if said.lifetime > Duration::ZERO {
            self.asks = 0;
        }
        for told in &said.prefixes {
            self.hear_prefix(now, told);
        }
        for &(address, time) in &said.names {
            keep(&mut self.names, NAMES_MAX, Helper { address, until: until(now, time) });
        }
    }

    fn hear_prefix(&mut self, now: Instant, told: &Told) {
        let valid_until = until(now, told.valid);
        let preferred_until = until(now, told.preferred);
        let has_room = self.prefixes.len() < PREFIXES_MAX;
        match self.prefixes.iter_mut().find(|prefix| prefix.bits == told.bits) {
            Some(prefix) => {
                // Nobody is heard who says that an address is over at once: two hours are left, or what was.
                let left = prefix.valid_until.min(now + LEFT_MIN);
                prefix.valid_until = valid_until.max(left);
                prefix.preferred_until = preferred_until.min(prefix.valid_until);
                prefix.is_on_link |= told.is_on_link;
            }
            None if valid_until > now && has_room => {
                let Told { bits, is_on_link, .. } = *told;
                self.prefixes.push(Prefix { bits, is_on_link, valid_until, preferred_until });
            }
            None => {}
        }
    }

    /// Addresses of a machine with this number, each with the bits that are the same for all machines of the network: 128 if nobody has said that others are there. Those
    /// that should be used come first.
    pub fn addresses(&self, now: Instant, number: [u8; 8]) -> Vec<(Ipv6Addr, u8)> {
        let address = |prefix: &Prefix| {
            let mut octets = [0; 16];
            octets[..8].copy_from_slice(&prefix.bits);
            octets[8..].copy_from_slice(&number);
            (octets.into(), if prefix.is_on_link { BITS } else { 128 })
        };
        let (preferred, others): (Vec<&Prefix>, Vec<&Prefix>) =
            self.prefixes.iter().partition(|prefix| prefix.preferred_until > now);
        preferred.into_iter().chain(others).map(address).collect()
    }

    /// Way to other networks: the router that has been known for the longest.
    pub fn router(&self) -> Option<Ipv6Addr> {
        self.routers.first().map(|router| router.address)
    }

    /// Servers of names, from the one on that has been known for the longest.
    pub fn names(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.names.iter().map(|server| server.address)
    }
}
