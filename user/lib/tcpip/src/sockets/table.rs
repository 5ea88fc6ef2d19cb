//! Sockets by their numbers, and whose they are.

use super::datagrams::Datagrams;
use super::{Id, Limits, Refusal, Taken};
use crate::queues::{Orphans, Place, listen_again, listens_again_at, meets};
use crate::random::{Ports, Random};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{dns, tcp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::IpListenEndpoint;

/// Socket of a kind, as the stack has it.
pub(super) enum Entry {
    Udp(Datagrams),
    Tcp(SocketHandle),
    Listener { at: IpListenEndpoint, queue: Vec<Place> },
    Echo(SocketHandle, u16),
    Query(Query),
}

/// Question for the address of a name.
pub(super) enum Query {
    /// For an address of IPv4 and for one of IPv6, each as long as it is not known what came of it.
    Asked([Option<dns::QueryHandle>; 2]),
    Answered(Result<IpAddr, Refusal>),
}

/// An entry, and whose it is.
pub(super) struct Slot {
    pub owner: u64,
    pub entry: Entry,
    /// Says whether its owner has it no more, so that it does not count as his. Its port is his still.
    pub is_left: bool,
    /// Says whether its connection was given up, since nobody answers at the address that it was to.
    pub is_silent: bool,
}

impl Slot {
    /// Places that it counts for.
    pub fn weight(&self) -> usize {
        match &self.entry {
            Entry::Listener { queue, .. } => queue.len(),
            _ => 1,
        }
    }

    /// Places that it counts for, of those that its owner may have.
    pub fn own_weight(&self) -> usize {
        if self.is_left { 0 } else { self.weight() }
    }

    /// Whether it has a port, at an address or at one of them at all.
    fn has(&self, sockets: &SocketSet<'static>, at: IpListenEndpoint, is_udp: bool) -> bool {
        match &self.entry {
            Entry::Udp(own) => is_udp && meets(own.at, at),
            Entry::Listener { at: own, .. } => !is_udp && meets(*own, at),
            Entry::Tcp(handle) => {
                let local = sockets.get::<tcp::Socket>(*handle).local_endpoint();
                !is_udp && local.is_some_and(|local| meets(local.into(), at))
            }
            _ => false,
        }
    }
}

/// All sockets.
pub(crate) struct Table {
    pub(super) slots: BTreeMap<Id, Slot>,
    pub(crate) orphans: Orphans,
    limits: Limits,
    pub(crate) random: Random,
    ports: Ports,
    /// Groups that the machine has left, each with the owner of the last socket that had joined it. The network has not been told yet.
    pub(super) leaving: Vec<(u64, IpAddr)>,
    /// Sockets for datagrams that have been bound.
    bound: u64,
}

impl Table {
    pub fn new(random: Random, limits: Limits) -> Table {
        let (slots, orphans) = (BTreeMap::new(), Orphans::default());
        Table { slots, orphans, limits, random, ports: Ports::default(), leaving: Vec::new(), bound: 0 }
    }

    /// A number that is not in use.
    fn id(&mut self) -> Id {
        loop {
            let id = self.random.number();
            if !self.slots.contains_key(&id) {
                return id;
            }
        }
    }

    /// How many more places an owner gets who wants so many: at least one.
    ///
    /// Sockets that their owners have let go of do not count, as connections without an owner do not: otherwise an owner that lets go of its only one would take
    /// what is set aside for another.
    pub fn room(&self, owner: u64, wanted: usize) -> Result<usize, Refusal> {
        let (mut taken, mut owners) = (Taken::default(), BTreeSet::new());
        for slot in self.slots.values().filter(|slot| !slot.is_left) {
            taken.all += slot.weight();
            taken.own += if slot.owner == owner { slot.weight() } else { 0 };
            owners.insert(slot.owner);
        }
        taken.owners = owners.len();
        match self.limits.more(taken, wanted) {
            0 => Err(Refusal::Limit),
            more => Ok(more),
        }
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, owner: u64, entry: Entry) -> Id {
        let id = self.id();
        self.slots.insert(id, Slot { owner, entry, is_left: false, is_silent: false });
        id
    }

    /// Whether some socket has a port, at the same address or one of them at all.
    pub fn has(&self, sockets: &SocketSet<'static>, at: IpListenEndpoint, is_udp: bool) -> bool {
        self.slots.values().any(|slot| slot.has(sockets, at, is_udp))
    }

    /// Whether some socket for datagrams has a port, at the same address or one of them at all, and does not share it.
    pub fn has_unshared(&self, at: IpListenEndpoint, is_shared: bool) -> bool {
        let has = |own: &Datagrams| meets(own.at, at) && !(is_shared && own.is_shared);
        self.datagrams().any(|(_, own)| has(own))
    }

    /// Since when an owner has had a port at an address, if one of his sockets has it there.
    pub(super) fn since(&self, owner: u64, at: IpListenEndpoint) -> Option<u64> {
        let has =
            |own: &Datagrams| own.at.port == at.port && own.at.addr.is_none_or(|addr| at.addr == Some(addr));
        let own = self.datagrams().filter(|(other, own)| *other == owner && has(own));
        own.map(|(_, own)| own.since).min()
    }

    /// Sockets for datagrams, and their owners.
    fn datagrams(&self) -> impl Iterator<Item = (u64, &Datagrams)> {
        self.slots.values().filter_map(|slot| match &slot.entry {
            Entry::Udp(own) => Some((slot.owner, own)),
            _ => None,
        })
    }

    /// Groups that sockets have joined, each with its owner.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u64, IpAddr)> {
        self.datagrams().flat_map(|(owner, own)| own.groups.iter().map(move |group| (owner, *group)))
    }

    /// These groups, each once.
    pub(super) fn joined(&self) -> Vec<IpAddr> {
        let mut all: Vec<IpAddr> = self.groups().map(|(_, group)| group).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Ports that sockets for datagrams share, and those of sockets that take what is for a group alone.
    pub(super) fn shared_ports(&self) -> Vec<u16> {
        let shared = self.datagrams().filter(|(_, own)| own.is_shared || own.is_for_group());
        shared.map(|(_, own)| own.at.port).collect()
    }

    /// A number that is greater than those before.
    pub(super) fn order(&mut self) -> u64 {
        self.bound += 1;
        self.bound
    }

    /// Says whether somebody listens at a port, at the same address or one of them at all.
    pub fn listens(&self, at: IpListenEndpoint) -> bool {
        self.listened().into_iter().any(|own| meets(own, at))
    }

    /// Whether another owner has a port for streams, at this address or one of them at all, or has had it and something is still to be sent from there.
    pub fn has_of_others(&self, sockets: &SocketSet<'static>, at: IpListenEndpoint, owner: u64) -> bool {
        self.is_used_by_others(sockets, at, owner) || self.orphans.has(sockets, at, Some(owner))
    }

    /// Whether another owner has a port for streams, at this address or one of them at all. A server that is started again has the port of the one before it, whose last connections may still end.
    pub fn is_used_by_others(&self, sockets: &SocketSet<'static>, at: IpListenEndpoint, owner: u64) -> bool {
        let has = |slot: &Slot| slot.owner != owner && slot.has(sockets, at, false);
        self.slots.values().any(has)
    }

    /// A port that no socket has.
    pub fn free_port(&mut self, sockets: &SocketSet<'static>, is_udp: bool) -> Result<u16, Refusal> {
        for _ in 0..self.ports.count() {
            let port = self.ports.next(&mut self.random);
            let at = IpListenEndpoint { addr: None, port };
            if !self.has(sockets, at, is_udp) && !self.orphans.has(sockets, at, None) {
                return Ok(port);
            }
        }
        Err(Refusal::Limit)
    }

    /// A number for echo requests that no other socket has.
    pub fn free_ident(&mut self) -> u16 {
        loop {
            let ident = self.random.number() as u16;
            let is_taken = |slot: &Slot| matches!(slot.entry, Entry::Echo(_, other) if other == ident);
            if !self.slots.values().any(is_taken) {
                return ident;
            }
        }
    }

    /// Does what is due after frames have come: listeners listen again, connections without an owner go.
    pub fn look_after(&mut self, now: Instant, sockets: &mut SocketSet<'static>) {
        for slot in self.slots.values_mut() {
            if let Entry::Listener { at, queue } = &mut slot.entry {
                listen_again(now, sockets, *at, queue);
            }
        }
        self.orphans.look_after(now, sockets);
    }

    /// Addresses and ports at which somebody listens.
    pub fn listened(&self) -> Vec<IpListenEndpoint> {
        let at = |slot: &Slot| match &slot.entry {
            Entry::Listener { at, .. } => Some(*at),
            _ => None,
        };
        self.slots.values().filter_map(at).collect()
    }

    /// When something is due that frames do not bring.
    pub fn next(&self, now: Instant, sockets: &SocketSet<'static>) -> Option<Duration> {
        let listeners = self.slots.values().filter_map(|slot| match &slot.entry {
            Entry::Listener { queue, .. } => listens_again_at(sockets, queue),
            _ => None,
        });
        listeners.chain(self.orphans.next()).min().map(|until| until - now.min(until))
    }
}
