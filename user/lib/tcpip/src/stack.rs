//! Addresses, and the turn of the whole: timers, frames, and what sockets have to say.
//!
//! Loopback is always there, with or without a card. With one, an address comes by DHCP; if nobody answers for a while there is a fallback, and a
//! lease that comes later replaces it. The link-local address of IPv6 comes from the hardware address.

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

/// How long the stack knows a neighbour for sure: half of what it forgets one after.
const INTRODUCTION: Duration = Duration::from_secs(30);

/// Time between two turns, at least, while the card takes nothing.
const CHOKED: Duration = Duration::from_millis(1);

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
    /// Servers of names.
    pub servers: Vec<Ipv4Addr>,
    /// Numbers of frames.
    pub counts: Counts,
}

/// The stack.
pub struct Stack {
    pub(crate) interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
    pub(crate) table: Table,
    pub(crate) wire: Wire,
    dhcp: SocketHandle,
    pub(crate) dns: SocketHandle,
    status: Status,
    fallback: Option<Fallback>,
    /// When the fallback is used.
    fallback_at: Option<Instant>,
    /// When the stack may have forgotten that it has its addresses itself.
    introduced_until: Instant,
    pub(crate) now: Instant,
}

impl Stack {
    /// A stack without a card. `seed` should be nobody's guess: ports and sequence numbers come from it.
    pub fn new(now_us: u64, seed: u64, limits: Limits, fallback: Option<Fallback>) -> Stack {
        let now = instant(now_us);
        let mut wire = Wire::default();
        wire.set(NO_CARD, false);
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(NO_CARD)));
        config.random_seed = seed;
        let interface = Interface::new(config, &mut wire, now);
        let mut sockets = SocketSet::new(vec![]);
        let dhcp = sockets.add(dhcpv4::Socket::new());
        let dns = sockets.add(dns::Socket::new(&[], vec![]));
        let mut stack = Stack {
            interface,
            sockets,
            table: Table::new(seed, limits),
            wire,
            dhcp,
            dns,
            status: Status { hardware: NO_CARD, ..Status::default() },
            fallback,
            fallback_at: None,
            introduced_until: now,
            now,
        };
        stack.configure(None, None, &[]);
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
        if self.status.hardware == before {
            return;
        }
        let address = HardwareAddress::Ethernet(EthernetAddress(self.status.hardware));
        self.interface.set_hardware_addr(address);
        self.configure(None, None, &[]);
        self.sockets.get_mut::<dhcpv4::Socket>(self.dhcp).reset();
        self.fallback_at = Some(self.now + PATIENCE);
    }

    /// Takes a frame from the card.
    pub fn push(&mut self, frame: &[u8]) {
        self.wire.push(frame);
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

    /// Whether it is known which addresses there are. A card has none until a server has answered, or nobody has for a while.
    pub fn is_settled(&self) -> bool {
        self.fallback_at.is_none()
    }

    /// The address at a place, from 0 on, and the length of its network's prefix.
    pub fn address_at(&self, place: usize) -> Option<(IpAddr, u8)> {
        let cidr = self.interface.ip_addrs().get(place)?;
        Some((cidr.address().into(), cidr.prefix_len()))
    }

    /// A turn: does what is due. Says in how many microseconds the next one is.
    pub fn turn(&mut self, now_us: u64) -> Option<u64> {
        self.now = instant(now_us);
        self.wire.begin();
        self.wire.ends.look_after(self.now);
        if self.introduced_until <= self.now {
            self.introduced_until = self.now + INTRODUCTION;
            for cidr in self.interface.ip_addrs() {
                match cidr.address() {
                    IpAddress::Ipv4(address) => self.wire.introduce(address.octets()),
                    IpAddress::Ipv6(address) => self.wire.introduce_v6(address),
                }
            }
        }
        for _ in 0..ROUNDS_MAX {
            while self.interface.poll_ingress_single(self.now, &mut self.wire, &mut self.sockets)
                != PollIngressSingleResult::None
            {}
            // Once and not until nothing is sent, which would be another look at each socket: the next round sends more.
            let sent = self.interface.poll_egress(self.now, &mut self.wire, &mut self.sockets);
            self.table.look_after(self.now, &mut self.sockets);
            self.follow_dhcp();
            if sent == PollResult::None && !self.wire.has_more() {
                break;
            }
        }
        let fallback = self.fallback_at.map(|at| at - self.now.min(at));
        let next = if self.wire.has_more() {
            Some(Duration::ZERO)
        } else {
            self.interface.poll_delay(self.now, &self.sockets)
        };
        // There is nothing to be done before the card takes something, and its driver says so.
        let next = next.map(|next| if self.wire.is_choked() { next.max(CHOKED) } else { next });
        let next = [next, fallback, self.table.next(self.now, &self.sockets)].into_iter().flatten().min();
        next.map(|next| next.total_micros())
    }

    fn follow_dhcp(&mut self) {
        let event = self.sockets.get_mut::<dhcpv4::Socket>(self.dhcp).poll();
        match event {
            // While there is no card, nobody can have answered.
            Some(dhcpv4::Event::Configured(lease)) if self.status.is_up => {
                let (address, router) = (lease.address, lease.router);
                let servers: Vec<Ipv4Addr> = lease.dns_servers.iter().copied().collect();
                self.fallback_at = None;
                self.configure(Some(address), router, &servers);
                self.status.is_leased = true;
            }
            Some(dhcpv4::Event::Deconfigured) if self.status.is_leased => {
                self.configure(None, None, &[]);
                self.fallback_at = Some(self.now + PATIENCE);
            }
            _ => {}
        }
        if self.fallback_at.is_some_and(|at| at <= self.now) {
            self.fallback_at = None;
            let usual = Fallback { address: (self.link_local_v4(), 16), router: None };
            let Fallback { address: (address, len), router } = self.fallback.unwrap_or(usual);
            self.configure(Some(Ipv4Cidr::new(address, len.min(32))), router, &[]);
        }
    }

    /// An address of 169.254.0.0/16 that is most likely nobody else's.
    fn link_local_v4(&self) -> Ipv4Addr {
        let [.., a, b] = self.status.hardware;
        Ipv4Addr::new(169, 254, a.clamp(1, 254), b.clamp(1, 254))
    }

    fn link_local_v6(&self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.status.hardware.map(u16::from);
        let part = |high: u16, low: u16| high << 8 | low;
        Ipv6Addr::new(0xfe80, 0, 0, 0, part(a ^ 2, b), part(c, 0xff), part(0xfe, d), part(e, f))
    }

    /// Sets all addresses. One that cannot be an address of this machine is left out.
    fn configure(&mut self, address: Option<Ipv4Cidr>, router: Option<Ipv4Addr>, servers: &[Ipv4Addr]) {
        let can_be_own = |address: &Ipv4Addr| {
            !(address.is_multicast()
                || address.is_broadcast()
                || address.is_unspecified()
                || address.is_loopback())
        };
        let address = address.filter(|cidr| can_be_own(&cidr.address()));
        let router = router.filter(can_be_own);
        let link_local = (self.status.hardware != NO_CARD).then(|| self.link_local_v6());
        self.interface.update_ip_addrs(|all| {
            all.clear();
            // The first is the source of what goes elsewhere, so loopback comes last.
            let own = address.map(IpCidr::Ipv4).into_iter();
            let own = own.chain(link_local.map(|address| IpCidr::new(address.into(), 64)));
            let loopback = [
                IpCidr::new(IpAddress::Ipv4(Ipv4Addr::LOCALHOST), 8),
                IpCidr::new(IpAddress::Ipv6(Ipv6Addr::LOCALHOST), 128),
            ];
            for cidr in own.chain(loopback) {
                // There is room for eight.
                let _ = all.push(cidr);
            }
        });
        self.wire.set_addresses(self.interface.ip_addrs().iter().map(|cidr| cidr.address().into()).collect());
        // The stack has forgotten all neighbours with the addresses.
        self.introduced_until = self.now;
        let routes = self.interface.routes_mut();
        match router {
            Some(router) => drop(routes.add_default_ipv4_route(router)),
            None => drop(routes.remove_default_ipv4_route()),
        }
        let servers: Vec<Ipv4Addr> = servers.iter().copied().filter(can_be_own).take(1).collect();
        let addresses: Vec<IpAddress> = servers.iter().map(|&server| server.into()).collect();
        self.sockets.get_mut::<dns::Socket>(self.dns).update_servers(&addresses);
        (self.status.router, self.status.servers, self.status.is_leased) = (router, servers, false);
    }
}
