//! Ways of packets as Linux tells of them: to the networks of this machine's addresses, to these themselves, and by routers to all others.

use super::message::{Message, To};
use crate::network::layout::{CARD, LOOPBACK, Layout, broadcast_of, network_of};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linux_raw_sys::net::{AF_INET, AF_INET6};
use linux_raw_sys::netlink::{self as nl, rt_class_t, rt_scope_t, rtattr_type_t};

/// Metric of a way of IPv6 to a network. Ways of IPv4 have none.
const NEAR: u32 = 256;

/// Metric of a way of IPv6 by a router.
const FAR: u32 = 1024;

/// Table of the ways to this machine itself.
const LOCAL: u8 = rt_class_t::RT_TABLE_LOCAL as u8;

/// Table of all others.
const MAIN: u8 = rt_class_t::RT_TABLE_MAIN as u8;

/// A way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The first address of the network to which it leads.
    to: IpAddr,
    /// Length of that network's prefix.
    prefix: u8,
    /// Number of the interface.
    interface: u32,
    /// The machine that leads there.
    router: Option<IpAddr>,
    /// The address from which packets go, if they are from none yet.
    source: Option<IpAddr>,
    /// Its table.
    pub table: u8,
    /// Its maker: `RTPROT_…`.
    maker: u8,
    /// How far it leads: `RT_SCOPE_…`.
    scope: u8,
    /// Its kind: `RTN_…`.
    kind: u8,
    /// Its metric, if it has one.
    metric: Option<u32>,
}

/// Bits of an address.
fn longest(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Number of the family of an address.
pub fn family_of(address: IpAddr) -> u32 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// A way to the network of an address, by the card.
fn plain(address: IpAddr, prefix: u8) -> Route {
    Route {
        to: network_of(address, prefix),
        prefix,
        interface: CARD,
        router: None,
        source: None,
        table: MAIN,
        maker: nl::RTPROT_KERNEL as u8,
        scope: rt_scope_t::RT_SCOPE_UNIVERSE as u8,
        kind: nl::RTN_UNICAST as u8,
        metric: None,
    }
}

/// The way by a router to all other networks.
fn by_router(router: IpAddr) -> Route {
    let (any, maker, metric) = match router {
        IpAddr::V4(_) => (IpAddr::from(Ipv4Addr::UNSPECIFIED), nl::RTPROT_BOOT, None),
        IpAddr::V6(_) => (IpAddr::from(Ipv6Addr::UNSPECIFIED), nl::RTPROT_RA, Some(FAR)),
    };
    Route { router: Some(router), maker: maker as u8, metric, ..plain(any, 0) }
}

/// The way to the network of an address that this machine has.
fn to_network(address: IpAddr, prefix: u8) -> Route {
    let way = plain(address, prefix);
    match address {
        IpAddr::V4(_) => Route { source: Some(address), scope: rt_scope_t::RT_SCOPE_LINK as u8, ..way },
        IpAddr::V6(_) => Route { metric: Some(NEAR), ..way },
    }
}

/// The way to an address that this machine has, or to all of loopback.
fn to_itself(interface: u32, address: IpAddr, prefix: u8) -> Route {
    let prefix = if address.is_loopback() { prefix } else { longest(address) };
    let way = Route { interface, table: LOCAL, kind: nl::RTN_LOCAL as u8, ..plain(address, prefix) };
    match address {
        IpAddr::V4(_) => Route { source: Some(address), scope: rt_scope_t::RT_SCOPE_HOST as u8, ..way },
        IpAddr::V6(_) => way,
    }
}

/// All ways: those of IPv4 first, and those that are by routers first of each.
pub fn routes(layout: &Layout) -> Vec<Route> {
    let mut all: Vec<Route> = layout.routers.iter().flatten().map(|router| by_router(*router)).collect();
    for interface in &layout.interfaces {
        for (address, prefix) in interface.addresses.iter().copied() {
            if interface.number == CARD && prefix < longest(address) {
                all.push(to_network(address, prefix));
            }
            all.push(to_itself(interface.number, address, prefix));
        }
    }
    all.sort_by_key(|route| (route.to.is_ipv6(), route.table == LOCAL, route.prefix > 0));
    all
}

/// The way that a packet to an address goes; none if no way leads there.
pub fn find(layout: &Layout, to: IpAddr) -> Option<Route> {
    // The address that is none means this machine.
    let to = match to {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        to => to,
    };
    let source = layout.source(to)?;
    let own = layout.addresses();
    let maker = nl::RTPROT_UNSPEC as u8;
    let found = Route { source: Some(source), maker, ..plain(to, longest(to)) };
    if to.is_loopback() || own.iter().any(|(address, _)| *address == to) {
        return Some(Route { interface: LOOPBACK, table: LOCAL, kind: nl::RTN_LOCAL as u8, ..found });
    }
    let mut networks = own.iter().filter(|(address, _)| !address.is_loopback());
    if to.is_multicast() {
        return Some(Route { kind: nl::RTN_MULTICAST as u8, ..found });
    }
    if networks.clone().any(|(address, prefix)| is_for_all(*address, *prefix, to)) {
        return Some(Route { kind: nl::RTN_BROADCAST as u8, ..found });
    }
    let is_near = networks.any(|(address, prefix)| network_of(*address, *prefix) == network_of(to, *prefix));
    let mut routers = layout.routers.iter().flatten().filter(|router| router.is_ipv4() == to.is_ipv4());
    let router = if is_near { None } else { routers.next().copied() };
    Some(Route { router, ..found })
}

/// Says if an address means all machines of the network of another one.
fn is_for_all(own: IpAddr, prefix: u8, to: IpAddr) -> bool {
    match (own, to) {
        (IpAddr::V4(own), IpAddr::V4(to)) => to.is_broadcast() || broadcast_of(own, prefix) == Some(to),
        _ => false,
    }
}

impl Route {
    /// Says if it is one of a family; every way is one of no family.
    pub fn is_of(&self, family: u32) -> bool {
        match family {
            AF_INET | AF_INET6 => family_of(self.to) == family,
            _ => true,
        }
    }

    /// A message about it: with flags of the message, and its own (`RTM_F_…`).
    pub fn message(&self, to: To, flags: u32, own_flags: u32) -> Vec<u8> {
        let mut message = Message::new(nl::RTM_NEWROUTE as u16, flags, to);
        let family = family_of(self.to) as u8;
        message.put(&[family, self.prefix, 0, 0, self.table, self.maker, self.scope, self.kind]);
        message.put(&own_flags.to_le_bytes());
        message.number(rtattr_type_t::RTA_TABLE as u16, self.table.into());
        if self.prefix > 0 {
            message.address(rtattr_type_t::RTA_DST as u16, self.to);
        }
        if let Some(metric) = self.metric {
            message.number(rtattr_type_t::RTA_PRIORITY as u16, metric);
        }
        if let Some(source) = self.source {
            message.address(rtattr_type_t::RTA_PREFSRC as u16, source);
        }
        if let Some(router) = self.router {
            message.address(rtattr_type_t::RTA_GATEWAY as u16, router);
        }
        message.number(rtattr_type_t::RTA_OIF as u16, self.interface);
        if self.to.is_ipv6() {
            // Preference of its router: neither high nor low.
            message.attribute(rtattr_type_t::RTA_PREF as u16, &[0]);
        }
        message.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Nowhere;
    use crate::network::loopback::Loopback;
    use std::format;
    use std::string::String;

    /// A way as `ip route` prints it, more or less.
    fn text(route: &Route) -> String {
        let Route { to, prefix, interface, router, source, table, maker, scope, kind, metric } = route;
        let shown = |address: &Option<IpAddr>| address.map_or("-".into(), |address| format!("{address}"));
        format!(
            "{to}/{prefix} via {} dev {interface} src {} table {table} proto {maker} scope {scope} type {kind} metric {}",
            shown(router),
            shown(source),
            metric.unwrap_or(0)
        )
    }

    #[test]
    fn ways_lead_to_networks_and_by_routers_to_others() {
        assert!(routes(&Layout::of(&Nowhere::default())).is_empty());
        let all: Vec<String> = routes(&Layout::of(&Loopback::default())).iter().map(text).collect();
        assert_eq!(
            all,
            [
                "0.0.0.0/0 via 10.0.2.2 dev 2 src - table 254 proto 3 scope 0 type 1 metric 0",
                "10.0.2.0/24 via - dev 2 src 10.0.2.15 table 254 proto 2 scope 253 type 1 metric 0",
                "127.0.0.0/8 via - dev 1 src 127.0.0.1 table 255 proto 2 scope 254 type 2 metric 0",
                "10.0.2.15/32 via - dev 2 src 10.0.2.15 table 255 proto 2 scope 254 type 2 metric 0",
                "::/0 via fe80::2 dev 2 src - table 254 proto 9 scope 0 type 1 metric 1024",
                "fe80::/64 via - dev 2 src - table 254 proto 2 scope 0 type 1 metric 256",
                "::1/128 via - dev 1 src - table 255 proto 2 scope 0 type 2 metric 0",
                "fe80::15/128 via - dev 2 src - table 255 proto 2 scope 0 type 2 metric 0",
            ]
        );
    }

    #[test]
    fn a_packet_goes_one_way() {
        let layout = Layout::of(&Loopback::default());
        for (to, expected) in [
            (
                "1.1.1.1",
                "1.1.1.1/32 via 10.0.2.2 dev 2 src 10.0.2.15 table 254 proto 0 scope 0 type 1 metric 0",
            ),
            ("10.0.2.3", "10.0.2.3/32 via - dev 2 src 10.0.2.15 table 254 proto 0 scope 0 type 1 metric 0"),
            ("10.0.2.15", "10.0.2.15/32 via - dev 1 src 10.0.2.15 table 255 proto 0 scope 0 type 2 metric 0"),
            ("127.1.2.3", "127.1.2.3/32 via - dev 1 src 127.0.0.1 table 255 proto 0 scope 0 type 2 metric 0"),
            ("0.0.0.0", "127.0.0.1/32 via - dev 1 src 127.0.0.1 table 255 proto 0 scope 0 type 2 metric 0"),
            (
                "10.0.2.255",
                "10.0.2.255/32 via - dev 2 src 10.0.2.15 table 254 proto 0 scope 0 type 3 metric 0",
            ),
            ("224.0.0.1", "224.0.0.1/32 via - dev 2 src 10.0.2.15 table 254 proto 0 scope 0 type 5 metric 0"),
            ("fe80::3", "fe80::3/128 via - dev 2 src fe80::15 table 254 proto 0 scope 0 type 1 metric 0"),
            ("::", "::1/128 via - dev 1 src ::1 table 255 proto 0 scope 0 type 2 metric 0"),
        ] {
            let found = find(&layout, to.parse().unwrap()).unwrap();
            assert_eq!(text(&found), expected);
        }
        // No address of this machine is known to other networks of IPv6.
        assert_eq!(find(&layout, "2001:db8::1".parse().unwrap()), None);
        assert_eq!(find(&Layout::of(&Nowhere::default()), "127.0.0.1".parse().unwrap()), None);
    }
}
