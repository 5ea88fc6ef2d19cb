//! Answers to requests of `NETLINK_ROUTE`: lists of interfaces, addresses and ways, and one of each. What would change something is not permitted, and all other requests are
//! unknown.

use super::message::{HEAD_BYTES, Message, Request, To, packed, word};
use super::routes::{self, family_of};
use crate::errno::{EADDRNOTAVAIL, EINVAL, ENETUNREACH, ENODEV, EOPNOTSUPP, EPERM, Errno, Result};
use crate::network::layout::{Interface, LOOPBACK_KIND, Layout, QUEUE, broadcast_of};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linux_raw_sys::net::{AF_BRIDGE, AF_INET, AF_INET6};
use linux_raw_sys::netlink::{
    self as nl, NLM_F_ACK, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_FILTERED, NLM_F_MULTI, NLM_F_REQUEST,
    RTM_F_CLONED, RTNL_FAMILY_IP6MR, RTNL_FAMILY_IPMR, ifaddrmsg, ifinfomsg, rt_scope_t, rtattr_type_t,
    rtmsg,
};

/// Kinds of requests begin here; those of netlink itself are below.
const FIRST: u16 = nl::RTM_BASE as u16;

/// The last kind.
const LAST: u16 = nl::__RTM_MAX as u16;

/// Of four kinds one after the other, this one asks; the others make, remove and change.
const ASKS: u16 = 2;

/// Asks for interfaces.
const GET_LINK: u16 = nl::RTM_GETLINK as u16;

/// Asks for addresses.
const GET_ADDRESS: u16 = nl::RTM_GETADDR as u16;

/// Asks for ways.
const GET_ROUTE: u16 = nl::RTM_GETROUTE as u16;

/// Bytes of the structures behind the heads of these three.
const LINK_BYTES: usize = size_of::<ifinfomsg>();
/// See [`LINK_BYTES`].
const ADDRESS_BYTES: usize = size_of::<ifaddrmsg>();
/// See [`LINK_BYTES`].
const ROUTE_BYTES: usize = size_of::<rtmsg>();

/// States of an interface, as RFC 2863 has them: nothing is known (loopback), down, up.
const STATES: [u8; 3] = [0, 2, 6];

/// Times of an address that it has for ever: preferred, valid, made, changed.
const FOR_EVER: [u32; 4] = [u32::MAX, u32::MAX, 0, 0];

/// A socket that asks.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Its port.
    pub port: u32,
    /// Says if structures have to be whole, and lists to have only what these name: `NETLINK_GET_STRICT_CHK`.
    pub is_strict: bool,
    /// Says if errors come without their requests: `NETLINK_CAP_ACK`.
    pub is_capped: bool,
}

/// Something that was asked for.
enum Found {
    /// A list of messages.
    All(Vec<Vec<u8>>),
    /// One message.
    One(Vec<u8>),
    /// Nothing.
    Nothing,
}

/// Answers to a request, each of which is received by itself. The end of a list is one of them, since there are programs that wait for it.
pub fn answers(request: &Request, layout: &Layout, asker: &Asker) -> Vec<Vec<u8>> {
    let to = To { sequence: request.sequence, port: asker.port };
    let mut answers = match find(request, layout, to, asker.is_strict) {
        Ok(Found::All(messages)) => {
            let mut parts = packed(messages);
            parts.push(done(to));
            return parts;
        }
        Ok(Found::One(message)) => Vec::from([message]),
        Ok(Found::Nothing) => Vec::new(),
        Err(error) => return Vec::from([told(request, to, Some(error), asker.is_capped)]),
    };
    if request.has(NLM_F_ACK) {
        answers.push(told(request, to, None, true));
    }
    answers
}

/// The end of a list.
fn done(to: To) -> Vec<u8> {
    let mut message = Message::new(nl::NLMSG_DONE as u16, NLM_F_MULTI, to);
    message.put(&[0; 4]);
    message.into_bytes()
}

/// Tells that a request has failed, or that it has not. The request is behind it, or its head alone.
fn told(request: &Request, to: To, error: Option<Errno>, is_capped: bool) -> Vec<u8> {
    let flags = if is_capped { NLM_F_CAPPED } else { 0 };
    let mut message = Message::new(nl::NLMSG_ERROR as u16, flags, to);
    let number = error.map_or(0, |error| -i32::from(error.0));
    message.put(&number.to_le_bytes());
    let shown = if is_capped { HEAD_BYTES } else { request.whole.len() };
    message.put(request.whole.get(..shown).unwrap_or_default());
    message.into_bytes()
}

fn find(request: &Request, layout: &Layout, to: To, is_strict: bool) -> Result<Found> {
    let is_asked = request.has(NLM_F_REQUEST) && request.kind >= FIRST;
    if is_asked && request.kind > LAST {
        return Err(EOPNOTSUPP);
    }
    if !is_asked || request.body().is_empty() {
        return Ok(Found::Nothing);
    }
    if (request.kind - FIRST) % 4 != ASKS {
        return Err(EPERM);
    }
    match (request.kind, request.has(NLM_F_DUMP)) {
        (GET_LINK, true) => links(request, layout, to, is_strict).map(Found::All),
        (GET_LINK, false) => link_asked(request, layout, to).map(Found::One),
        (GET_ADDRESS, true) => addresses(request, layout, to, is_strict).map(Found::All),
        (GET_ADDRESS, false) => address_asked(request, layout, to).map(Found::One),
        (GET_ROUTE, true) => ways(request, layout, to, is_strict).map(Found::All),
        (GET_ROUTE, false) => way_asked(request, layout, to).map(Found::One),
        _ => Err(EOPNOTSUPP),
    }
}

/// Fails unless a request has the whole structure behind its head.
fn check(request: &Request, bytes: usize) -> Result<()> {
    if request.body().len() < bytes { Err(EINVAL) } else { Ok(()) }
}

fn links(request: &Request, layout: &Layout, to: To, is_strict: bool) -> Result<Vec<Vec<u8>>> {
    if is_strict {
        check(request, LINK_BYTES)?;
    }
    // There are no bridges, so nothing is a port of one.
    if request.family() == AF_BRIDGE {
        return Ok(Vec::new());
    }
    Ok(layout.interfaces.iter().map(|interface| link(interface, to, NLM_F_MULTI)).collect())
}

/// The interface that a request names: by its number, or by its name.
fn link_asked(request: &Request, layout: &Layout, to: To) -> Result<Vec<u8>> {
    check(request, LINK_BYTES)?;
    let number = word(request.body(), 4).cast_signed();
    let names = [nl::IFLA_IFNAME, nl::IFLA_ALT_IFNAME];
    let name = names.into_iter().find_map(|name| request.attribute(LINK_BYTES, name as u16));
    let found = match (number, name) {
        (1.., _) => layout.numbered(number.cast_unsigned()),
        (_, Some(name)) => layout.named(name.split(|byte| *byte == 0).next().unwrap_or_default()),
        _ => return Err(EINVAL),
    };
    Ok(link(found.ok_or(ENODEV)?, to, 0))
}

/// A message about an interface.
fn link(interface: &Interface, to: To, flags: u32) -> Vec<u8> {
    let mut message = Message::new(nl::RTM_NEWLINK as u16, flags, to);
    message.put(&[0; 2]);
    message.put(&interface.kind.to_le_bytes());
    message.put(&interface.number.to_le_bytes());
    message.put(&interface.flags.to_le_bytes());
    message.put(&[0; 4]);
    let [unknown, down, up] = STATES;
    let state = match (interface.is_up(), interface.is_running()) {
        (false, _) | (true, false) => down,
        (true, true) if interface.kind == LOOPBACK_KIND => unknown,
        (true, true) => up,
    };
    message.text(nl::IFLA_IFNAME as u16, interface.name);
    message.number(nl::IFLA_TXQLEN as u16, QUEUE);
    message.attribute(nl::IFLA_OPERSTATE as u16, &[state]);
    message.attribute(nl::IFLA_LINKMODE as u16, &[0]);
    message.number(nl::IFLA_MTU as u16, interface.mtu);
    message.number(nl::IFLA_GROUP as u16, 0);
    message.number(nl::IFLA_PROMISCUITY as u16, 0);
    message.number(nl::IFLA_NUM_TX_QUEUES as u16, 1);
    message.number(nl::IFLA_NUM_RX_QUEUES as u16, 1);
    message.attribute(nl::IFLA_CARRIER as u16, &[interface.is_running().into()]);
    message.text(nl::IFLA_QDISC as u16, if interface.is_up() { "noqueue" } else { "noop" });
    message.attribute(nl::IFLA_ADDRESS as u16, &interface.hardware);
    message.attribute(nl::IFLA_BROADCAST as u16, &interface.broadcast);
    // Nobody counts, and there are programs that look at the numbers without a look whether they are there.
    message.attribute(nl::IFLA_STATS64 as u16, &[0; size_of::<nl::rtnl_link_stats64>()]);
    message.attribute(nl::IFLA_STATS as u16, &[0; size_of::<nl::rtnl_link_stats>()]);
    message.into_bytes()
}

fn addresses(request: &Request, layout: &Layout, to: To, is_strict: bool) -> Result<Vec<Vec<u8>>> {
    let mut wanted = 0;
    if is_strict {
        check(request, ADDRESS_BYTES)?;
        wanted = word(request.body(), 4);
    }
    let flags = NLM_F_MULTI | if wanted != 0 { NLM_F_DUMP_FILTERED } else { 0 };
    let family = request.family();
    let is_meant = |at: IpAddr| !matches!(family, AF_INET | AF_INET6) || family_of(at) == family;
    let mut all = Vec::new();
    for interface in layout.interfaces.iter().filter(|interface| [0, interface.number].contains(&wanted)) {
        let meant = interface.addresses.iter().copied().filter(|(at, _)| is_meant(*at));
        all.extend(meant.map(|own| (interface, own)));
    }
    all.sort_by_key(|(_, (at, _))| at.is_ipv6());
    Ok(all.into_iter().map(|(interface, own)| address(interface, own, to, flags)).collect())
}

/// The address of IPv6 that a request names. Linux finds none of IPv4 in this way.
fn address_asked(request: &Request, layout: &Layout, to: To) -> Result<Vec<u8>> {
    if request.family() != AF_INET6 {
        return Err(EOPNOTSUPP);
    }
    check(request, ADDRESS_BYTES)?;
    let names = [nl::IFA_ADDRESS, nl::IFA_LOCAL];
    let named = names.into_iter().find_map(|name| request.attribute(ADDRESS_BYTES, name as u16));
    let named = named.and_then(|octets| <[u8; 16]>::try_from(octets).ok()).ok_or(EINVAL)?;
    let named = IpAddr::from(named);
    for interface in &layout.interfaces {
        if let Some(own) = interface.addresses.iter().find(|(own, _)| *own == named) {
            return Ok(address(interface, *own, to, 0));
        }
    }
    Err(EADDRNOTAVAIL)
}

/// How far an address is known.
fn scope(address: IpAddr) -> u8 {
    let is_near = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    match (address.is_loopback(), is_near) {
        (true, _) => rt_scope_t::RT_SCOPE_HOST as u8,
        (_, true) => rt_scope_t::RT_SCOPE_LINK as u8,
        _ => rt_scope_t::RT_SCOPE_UNIVERSE as u8,
    }
}

/// A message about an address of an interface.
fn address(interface: &Interface, (own, prefix): (IpAddr, u8), to: To, flags: u32) -> Vec<u8> {
    let mut message = Message::new(nl::RTM_NEWADDR as u16, flags, to);
    message.put(&[family_of(own) as u8, prefix, nl::IFA_F_PERMANENT as u8, scope(own)]);
    message.put(&interface.number.to_le_bytes());
    message.address(nl::IFA_ADDRESS as u16, own);
    if let IpAddr::V4(own) = own {
        message.address(nl::IFA_LOCAL as u16, own.into());
        if let Some(all) = broadcast_of(own, prefix) {
            message.address(nl::IFA_BROADCAST as u16, all.into());
        }
        message.text(nl::IFA_LABEL as u16, interface.name);
    }
    message.number(nl::IFA_FLAGS as u16, nl::IFA_F_PERMANENT);
    message.attribute(nl::IFA_CACHEINFO as u16, &FOR_EVER.map(u32::to_le_bytes).concat());
    message.into_bytes()
}

fn ways(request: &Request, layout: &Layout, to: To, is_strict: bool) -> Result<Vec<Vec<u8>>> {
    let family = request.family();
    let mut table = 0;
    if is_strict {
        check(request, ROUTE_BYTES)?;
        let named = request.attribute(ROUTE_BYTES, rtattr_type_t::RTA_TABLE as u16);
        let short = request.body().get(4).copied().unwrap_or(0);
        table = named.map_or(short.into(), |named| word(named, 0));
    }
    // None is remembered because it was used, and none leads to groups.
    let is_remembered = word(request.body(), 8) & RTM_F_CLONED != 0;
    if is_remembered || [RTNL_FAMILY_IPMR, RTNL_FAMILY_IP6MR].contains(&family) {
        return Ok(Vec::new());
    }
    let flags = NLM_F_MULTI | if table != 0 { NLM_F_DUMP_FILTERED } else { 0 };
    let all = routes::routes(layout).into_iter();
    let meant = all.filter(|route| route.is_of(family) && [0, u32::from(route.table)].contains(&table));
    Ok(meant.map(|route| route.message(to, flags, 0)).collect())
}

/// The way to an address that a request names; without one, to this machine.
fn way_asked(request: &Request, layout: &Layout, to: To) -> Result<Vec<u8>> {
    let family = request.family();
    if !matches!(family, AF_INET | AF_INET6) {
        return Err(EOPNOTSUPP);
    }
    check(request, ROUTE_BYTES)?;
    let named = match (request.attribute(ROUTE_BYTES, rtattr_type_t::RTA_DST as u16), family) {
        (None, AF_INET) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        (None, _) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        (Some(octets), AF_INET) => IpAddr::from(<[u8; 4]>::try_from(octets).map_err(|_| EINVAL)?),
        (Some(octets), _) => IpAddr::from(<[u8; 16]>::try_from(octets).map_err(|_| EINVAL)?),
    };
    let route = routes::find(layout, named).ok_or(ENETUNREACH)?;
    Ok(route.message(to, 0, RTM_F_CLONED))
}
