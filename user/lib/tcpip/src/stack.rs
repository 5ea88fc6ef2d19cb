//! Addresses, and the turn of the whole: timers, frames, and what sockets have to say.
//!
//! Loopback is always there, with or without a card. With one, an address comes by DHCP; if nobody answers for a while there is a fallback, and a
//! lease that comes later replaces it. The link-local address of IPv6 comes from the hardware address, and so do those of the prefixes that routers advertise. None of them is used
//! before it is known that nobody else has it.

use crate::advertisements::{Advertisement, NEVER, Routers};
use crate::claims::{Conflict, Fate};
use crate::held::Inspection;
use crate::leases::{Complaint, is_host};
use crate::neighbours::{SURE, question};
use crate::random::{Random, SEED};
use crate::sockets::{Limits, Table};
use crate::wire::{Counts, NO_CARD, Wire};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::{dhcpv4, dns};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, Ipv4Cidr};

/// How long nobody may answer before there is the fallback.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between two turns, at least, while the card takes nothing.
const CHOKED: Duration = Duration::from_millis(1);

/// Addresses of an interface, at most.
pub(crate) const ADDRESSES_MAX: usize = 8;

/// Addresses that are tried when nobody gives one, at most: each is one that somebody else may have taken likewise.
const TRIES_MAX: u16 = 10;

/// Servers of names of each kind that are asked, at most. Each has ten seconds before the next one is.
const NAMES_MAX: usize = 2;

/// Rounds of a turn, at most. In each everything that has come is taken, and each socket sends one packet, if it has one.
const ROUNDS_MAX: usize = 32;

/// Frames that are pushed back are none of an interface's business, so times are microseconds since the start.
fn instant(now_us: u64) -> Instant {
    Instant::from_micros(i64::try_from(now_us).unwrap_or(i64::MAX))
}

/// Address that is used when nobody answers: with the length of its network's prefix, and a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Address and length of the prefix.
    pub address: (Ipv4Addr, u8),
    /// Way to all other networks.
    pub router: Option<Ipv4Addr>,
}

/// Address of IPv4, and what belongs to it.
#[derive(Clone, Debug, Default)]
struct Configuration {
    address: Option<Ipv4Cidr>,
    router: Option<Ipv4Addr>,
    /// Servers of names.
    names: Vec<Ipv4Addr>,
    /// Server that has leased it.
    leased_by: Option<Ipv4Addr>,
}

/// State of the interface.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Whether there is a card.
    pub is_up: bool,
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// Whether a server has given the address.
    pub is_leased: bool,
    /// Way to all other networks.
    pub router: Option<Ipv4Addr>,
    /// Way to all other networks of IPv6.
    pub router_v6: Option<Ipv6Addr>,
    /// Servers of names, in the order in which they are asked.
    pub servers: Vec<IpAddr>,
    /// Numbers of frames.
    pub counts: Counts,
}

/// The stack.
pub struct Stack {
    pub(crate) interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
    pub(crate) table: Table,
    pub(crate) wire: Wire,
    pub(crate) inspection: Inspection,
    dhcp: SocketHandle,
    pub(crate) dns: SocketHandle,
    pub(crate) status: Status,
    /// Address of IPv4 that a server has given, or that is used if none does.
    own_v4: Option<Ipv4Cidr>,
    /// Servers of names that belong to it.
    names_v4: Vec<Ipv4Addr>,
    /// Address that is used instead, if nobody else has it.
    asked_v4: Option<Configuration>,
    routers: Routers,
    fallback: Option<Fallback>,
    /// Addresses without a server that were somebody else's.
    tries: u16,
    /// When the fallback is used.
    fallback_at: Option<Instant>,
    /// When the stack may have forgotten that it has its addresses itself, and when routers should be asked for.
    introduced_until: Instant,
    pub(crate) now: Instant,
}

impl Stack {
    /// A stack without a card. `seed` should be nobody's guess: ports, numbers of sockets, and those with which connections begin come from it.
    pub fn new(now_us: u64, seed: [u8; SEED], limits: Limits, fallback: Option<Fallback>) -> Stack {
        let now = instant(now_us);
        let mut wire = Wire::default();
        wire.set(NO_CARD, false);
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(NO_CARD)));
        let mut random = Random::new(seed);
        config.random_seed = random.number();
        let interface = Interface::new(config, &mut wire, now);
        let mut sockets = SocketSet::new(vec![]);
        let dhcp = sockets.add(dhcpv4::Socket::new());
        let dns = sockets.add(dns::Socket::new(&[], vec![]));
        let mut stack = Stack {
            interface,
            sockets,
            table: Table::new(random, limits),
            wire,
            inspection: Inspection::default(),
            dhcp,
            dns,
            status: Status { hardware: NO_CARD, ..Status::default() },
            own_v4: None,
            names_v4: Vec::new(),
            asked_v4: None,
            routers: Routers::default(),
            fallback,
            tries: 0,
            fallback_at: None,
            introduced_until: now,
            now,
        };
        stack.configure(Configuration::default());
        stack
    }

    /// There is a card with this hardware address from now on, or none. An address that is for many is none's. If the same card comes back, since its
    /// driver was started again, addresses and connections are as they were.
    pub fn set_link(&mut self, hardware: Option<[u8; 6]>) {
        let hardware = hardware.filter(|address| address[0] & 1 == 0 && *address != [0; 6]);
        let before = self.status.hardware;
        self.status.is_up = hardware.is_some();
        self.status.hardware = hardware.unwrap_or(before);
        self.wire.set(self.status.hardware, self.status.is_up);
        if self.status.hardware != before {
            self.forget_names();
            self.routers = Routers::default();
            self.status.router_v6 = None;
            self.interface.routes_mut().remove_default_ipv6_route();
        }
        if self.status.is_up {
            self.routers.ask(self.now);
            self.wire.claims.renew(self.now);
            self.tries = 0;
        }
        if self.status.hardware == before {
            return;
        }
        let address = HardwareAddress::Ethernet(EthernetAddress(self.status.hardware));
        self.interface.set_hardware_addr(address);
        self.asked_v4 = None;
        self.configure(Configuration::default());
        self.sockets.get_mut::<dhcpv4::Socket>(self.dhcp).reset();
        self.fallback_at = Some(self.now + PATIENCE);
    }

    /// Takes a frame from the card.
    pub fn push(&mut self, frame: &[u8]) {
        if self.wire.push(frame)
            && let Some(said) = Advertisement::of(frame, self.status.hardware, self.link_local_v6())
        {
            self.routers.keep(said);
        }
    }

    /// The next complaint of a server's message that was refused. There is one at a time, and not more than one in ten seconds.
    pub fn complaint(&mut self) -> Option<Complaint> {
        self.wire.leases.complaint()
    }

    /// The next address that is not used because somebody else has it, each once.
    pub fn conflict(&mut self) -> Option<Conflict> {
        self.wire.claims.conflict()
    }

    /// Whether there is room for another frame from the card.
    pub fn has_room(&self) -> bool {
        self.wire.has_room()
    }

    /// The next frame for the card.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.wire.pop()
    }

    /// State of the interface.
    pub fn status(&self) -> Status {
        Status { counts: self.wire.counts, ..self.status.clone() }
    }

    /// Whether it is known which address of IPv4 there is. A card has none until a server has answered, or nobody has for a while, and until nobody has said that it is his.
    pub fn is_settled(&self) -> bool {
        self.fallback_at.is_none() && !(self.status.is_up && self.asked_v4.is_some())
    }

    /// The address at a place, from 0 on, and the length of its network's prefix.
    pub fn address_at(&self, place: usize) -> Option<(IpAddr, u8)> {
        let cidr = self.interface.ip_addrs().get(place)?;
        Some((cidr.address().into(), cidr.prefix_len()))
    }

    /// A turn: does what is due. Says in how many microseconds the next one is.
    pub fn turn(&mut self, now_us: u64) -> Option<u64> {
        self.now = instant(now_us);
        self.wire.begin(self.now);
        if self.status.is_up {
            self.wire.leases.begin(self.now);
            self.follow_routers();
            self.follow_claims();
        }
        if self.introduced_until <= self.now {
            self.introduced_until = self.now + SURE;
            for cidr in self.interface.ip_addrs() {
                self.wire.introduce(cidr.address().into());
            }
            self.seek_routers();
        }
        self.seek_again();
        self.wire.ask();
        for _ in 0..ROUNDS_MAX {
            while self.interface.poll_ingress_single(self.now, &mut self.wire, &mut self.sockets)
                != PollIngressSingleResult::None
            {}
            self.greet();
            self.follow_refusals();
            self.deal();
            // Before sockets send: the crate would ask for those that have just been given up.
            self.follow_neighbours();
            // Once and not until nothing is sent, which would be another look at each socket: the next round sends more.
            let sent = self.interface.poll_egress(self.now, &mut self.wire, &mut self.sockets);
            self.follow_groups();
            self.table.look_after(self.now, &mut self.sockets);
            self.follow_dhcp();
            self.follow_names();
            if sent == PollResult::None && !self.wire.has_more() {
                break;
            }
        }
        self.seek_for_connections();
        self.wire.ask();
        let fallback = self.fallback_at.map(|at| at - self.now.min(at));
        let next = if self.wire.has_more() {
            Some(Duration::ZERO)
        } else {
            self.interface.poll_delay(self.now, &self.sockets)
        };
        // There is nothing to be done before the card takes something, and its driver says so.
        let next = next.map(|next| if self.wire.is_choked() { next.max(CHOKED) } else { next });
        let next = [next, fallback, self.table.next(self.now, &self.sockets), self.network_next()];
        next.into_iter().flatten().min().map(|next| next.total_micros())
    }

    /// When something is due that routers have said, or of addresses, names or neighbours that are asked for.
    fn network_next(&self) -> Option<Duration> {
        let routers = self.routers.due().min(self.wire.claims.due());
        let due = if self.status.is_up { routers } else { NEVER }.min(self.wire.names.due());
        let due = due.min(self.wire.neighbours.due());
        (due != NEVER).then(|| due - self.now.min(due))
    }

    /// Does what is due of addresses that are asked for.
    fn follow_claims(&mut self) {
        if self.now < self.wire.claims.due() {
            return;
        }
        self.wire.claim(self.now);
        let asked = self.asked_v4.as_ref().and_then(|asked| asked.address);
        match asked.and_then(|cidr| self.wire.claims.fate(cidr.address().into())) {
            Some(Fate::Own) => {
                let asked = self.asked_v4.take().unwrap_or_default();
                self.fallback_at = None;
                self.configure(asked);
            }
            Some(Fate::Taken) => {
                let asked = self.asked_v4.take().unwrap_or_default();
                self.give_up(&asked);
            }
            _ => self.set_addresses(),
        }
    }

    /// Somebody else has an address that was wanted.
    fn give_up(&mut self, asked: &Configuration) {
        if let (Some(cidr), Some(server)) = (asked.address, asked.leased_by) {
            self.wire.decline(cidr.address(), server);
            // If there was a lease before, it has been replaced: the next event says so.
            self.sockets.get_mut::<dhcpv4::Socket>(self.dhcp).reset();
            self.set_addresses();
            return;
        }
        self.tries += 1;
        // One that somebody has chosen is not replaced.
        if self.fallback.is_none() && self.tries < TRIES_MAX {
            self.use_fallback();
        } else {
            self.set_addresses();
        }
    }

    /// Does what is due of what routers have said.
    fn follow_routers(&mut self) {
        if self.now < self.routers.due() {
            return;
        }
        if self.routers.turn(self.now) {
            let own = self.link_local_v6();
            self.wire.solicit(if self.wire.claims.has(own.into()) { own } else { Ipv6Addr::UNSPECIFIED });
        }
        self.set_addresses();
        let router = self.routers.router();
        if core::mem::replace(&mut self.status.router_v6, router) != router {
            let routes = self.interface.routes_mut();
            match router {
                Some(router) => drop(routes.add_default_ipv6_route(router)),
                None => drop(routes.remove_default_ipv6_route()),
            }
            if router.is_none() {
                self.drop_unsent();
            }
            self.seek_routers();
        }
        self.set_names();
    }

    fn follow_dhcp(&mut self) {
        let event = self.sockets.get_mut::<dhcpv4::Socket>(self.dhcp).poll();
        match event {
            // While there is no card, nobody can have answered.
            Some(dhcpv4::Event::Configured(lease)) if self.status.is_up => {
                let names = lease.dns_servers.iter().copied().collect();
                let (address, leased_by) = (Some(lease.address), Some(lease.server.identifier));
                let router = lease.router;
                self.want(Configuration { address, router, names, leased_by });
            }
            Some(dhcpv4::Event::Deconfigured) if self.status.is_leased => {
                self.configure(Configuration::default());
                self.fallback_at = Some(self.now + PATIENCE);
            }
            _ => {}
        }
        // A lease that is looked at is waited for.
        if self.fallback_at.is_some_and(|at| at <= self.now) && self.asked_v4.is_none() {
            self.fallback_at = None;
            self.use_fallback();
        }
    }

    /// Uses the address without a server.
    fn use_fallback(&mut self) {
        let usual = Fallback { address: (self.link_local_v4(), 16), router: None };
        let Fallback { address: (address, len), router } = self.fallback.unwrap_or(usual);
        let address = Some(Ipv4Cidr::new(address, len.min(32)));
        self.want(Configuration { address, router, ..Configuration::default() });
    }

    /// Uses an address as soon as it is known that nobody else has it. Until then there is the one before.
    fn want(&mut self, wanted: Configuration) {
        let is_own = wanted.address.is_some_and(|cidr| self.wire.claims.has(cidr.address().into()));
        if is_own || !wanted.address.is_some_and(|cidr| is_host(cidr.address())) {
            (self.asked_v4, self.fallback_at) = (None, None);
            self.configure(wanted);
        } else {
            self.asked_v4 = Some(wanted);
            self.set_addresses();
        }
    }

    /// An address of 169.254.0.0/16 that is most likely nobody else's, and another one after each that was.
    fn link_local_v4(&self) -> Ipv4Addr {
        let [.., a, b] = self.status.hardware;
        let [a, b] = u16::from_be_bytes([a, b]).wrapping_add(self.tries.wrapping_mul(0x9e37)).to_be_bytes();
        Ipv4Addr::new(169, 254, a.clamp(1, 254), b.clamp(1, 254))
    }

    /// Number of this machine in networks of IPv6: its hardware address, in a way of which it follows that nobody else has it.
    fn number_v6(&self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.status.hardware;
        [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
    }

    fn link_local_v6(&self) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets[..2].copy_from_slice(&[0xfe, 0x80]);
        octets[8..].copy_from_slice(&self.number_v6());
        octets.into()
    }

    /// Sets the address of IPv4, and what belongs to it. One that cannot be an address of this machine is left out.
    fn configure(&mut self, configuration: Configuration) {
        let Configuration { address, router, names, leased_by } = configuration;
        self.own_v4 = address.filter(|cidr| is_host(cidr.address()));
        let own = self.own_v4.map(|cidr| cidr.address());
        // The stack hears of no neighbour outside of its networks, so a way by one leads nowhere.
        let is_near = |router: &Ipv4Addr| self.own_v4.is_some_and(|cidr| cidr.contains_addr(router));
        let router = router.filter(|router| is_host(*router) && Some(*router) != own && is_near(router));
        self.set_addresses();
        let routes = self.interface.routes_mut();
        match router {
            Some(router) => drop(routes.add_default_ipv4_route(router)),
            None => drop(routes.remove_default_ipv4_route()),
        }
        if router.is_none() && self.status.router.is_some() {
            self.drop_unsent();
        }
        (self.status.router, self.status.is_leased) = (router, leased_by.is_some());
        self.seek_routers();
        self.names_v4 = names.into_iter().filter(|server| is_host(*server)).collect();
        self.set_names();
    }

    /// Sets the servers of names: some of each kind, of those to which a way leads.
    fn set_names(&mut self) {
        let is_reached = |server: &IpAddr| self.reaches(*server).is_ok();
        let v4 = self.names_v4.iter().copied().map(IpAddr::from).filter(is_reached).take(NAMES_MAX);
        let v6 = self.routers.names().map(IpAddr::from).filter(is_reached).take(NAMES_MAX);
        let servers: Vec<IpAddr> = v4.chain(v6).collect();
        if servers == self.status.servers {
            return;
        }
        let addresses: Vec<IpAddress> = servers.iter().map(|&server| server.into()).collect();
        self.sockets.get_mut::<dns::Socket>(self.dns).update_servers(&addresses);
        self.status.servers = servers;
    }

    /// Sets all addresses that are this machine's, unless they are as they were: the stack forgets all neighbours with them. The others are asked for.
    fn set_addresses(&mut self) {
        let link_local = (self.status.hardware != NO_CARD).then(|| (self.link_local_v6(), 64));
        let advertised = self.routers.addresses(self.now, self.number_v6());
        let v6 = |(address, len): (Ipv6Addr, u8)| IpCidr::new(address.into(), len);
        let mut own: Vec<IpCidr> = self.own_v4.map(IpCidr::Ipv4).into_iter().collect();
        own.extend(advertised.into_iter().chain(link_local).map(v6));
        let asked = self.asked_v4.iter().filter_map(|asked| asked.address).map(|cidr| cidr.address().into());
        let claimed: Vec<IpAddr> = own.iter().map(|cidr| cidr.address().into()).chain(asked).collect();
        self.wire.claims.set(self.now, &claimed);
        own.retain(|cidr| self.wire.claims.has(cidr.address().into()));
        // The first is the source of what goes elsewhere, so loopback comes last.
        own.extend([
            IpCidr::new(IpAddress::Ipv4(Ipv4Addr::LOCALHOST), 8),
            IpCidr::new(IpAddress::Ipv6(Ipv6Addr::LOCALHOST), 128),
        ]);
        if self.interface.ip_addrs() == own {
            return;
        }
        if self.interface.ip_addrs().iter().any(|had| !own.contains(had)) {
            self.drop_unsent();
        }
        self.interface.update_ip_addrs(|all| {
            all.clear();
            // There is room for eight, and routers have four at most.
            all.extend(own.iter().copied().take(ADDRESSES_MAX));
        });
        self.wire.set_addresses(self.interface.ip_addrs().iter().map(|cidr| cidr.address().into()).collect());
        let (interface, hardware) = (&self.interface, EthernetAddress(self.wire.own()));
        self.wire.neighbours.forget(|neighbour| question(interface, hardware, neighbour));
        self.introduced_until = self.now;
        self.set_names();
    }
}
