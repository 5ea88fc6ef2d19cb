//! Groups of receivers that sockets for datagrams join, and how these send to groups.
//!
//! A socket is not there below before it has a port. What it has joined by then is joined below when it has one.

use super::{Asked, Family, Inet};
use crate::errno::{EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENOBUFS, ENODEV, Result};
use crate::network::layout::{CARD, LOOPBACK};
use crate::network::{Network, Sending};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Groups of a socket, at most: as many as all sockets of a program of Tern have together.
const GROUPS_MAX: usize = 8;

/// Interface by which datagrams to groups go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// Its number, or 0.
    pub interface: u32,
    /// Its address, if that was named.
    pub address: Option<Ipv4Addr>,
}

/// Groups of a socket.
#[derive(Debug, Default)]
pub struct Groups {
    joined: RefCell<Vec<IpAddr>>,
    /// Interface by which it sends.
    pub way: Cell<Way>,
    /// How it sends, as the network knows it.
    told: Cell<Option<Sending>>,
}

impl Way {
    /// The way that a structure of IPv4 names: an address, and maybe a number behind it.
    pub fn of(bytes: &[u8]) -> Option<Way> {
        let octets: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let number = bytes.get(4..8).and_then(|number| number.try_into().ok()).map_or(0, u32::from_le_bytes);
        let address = Some(Ipv4Addr::from(octets)).filter(|address| !address.is_unspecified());
        Some(Way { interface: number, address })
    }

    /// The address from which datagrams go this way; the one that is none means any.
    ///
    /// `ENODEV`: there is no such interface. `EADDRNOTAVAIL`: this machine does not have the address.
    fn source(self, network: &dyn Network, family: Family) -> Result<IpAddr> {
        match (self.interface, self.address) {
            (LOOPBACK, _) if family == Family::Four => Ok(Ipv4Addr::LOCALHOST.into()),
            (LOOPBACK, _) => Ok(Ipv6Addr::LOCALHOST.into()),
            (CARD, _) | (0, None) => Ok(family.any()),
            (0, Some(address)) if network.has(address.into()) => Ok(address.into()),
            (0, Some(_)) => Err(EADDRNOTAVAIL),
            _ => Err(ENODEV),
        }
    }
}

/// Group and way that a structure names: `struct ip_mreq`, `struct ip_mreqn`, `struct ipv6_mreq`.
///
/// `EINVAL`: it is too short.
pub fn parse(family: Family, bytes: &[u8]) -> Result<(IpAddr, Way)> {
    let (group, way) = match family {
        Family::Four => {
            (bytes.first_chunk::<4>().map(|group| IpAddr::from(*group)), bytes.get(4..).and_then(Way::of))
        }
        Family::Six => {
            let number = bytes.get(16..20).and_then(|number| number.try_into().ok()).map(u32::from_le_bytes);
            let way = number.map(|interface| Way { interface, address: None });
            (bytes.first_chunk::<16>().map(|group| IpAddr::from(*group)), way)
        }
    };
    Ok((group.ok_or(EINVAL)?, way.ok_or(EINVAL)?))
}

impl Inet {
    /// Joins a group, or leaves it.
    ///
    /// `EINVAL`: it is none. `ENODEV`: no way leads there. `EADDRINUSE`: the socket has joined it. `EADDRNOTAVAIL`: it has not. `ENOBUFS`: there are too many.
    pub fn set_member(&self, network: &dyn Network, (group, way): (IpAddr, Way), joins: bool) -> Result<()> {
        if !group.is_multicast() {
            return Err(EINVAL);
        }
        let place = self.groups.joined.borrow().iter().position(|own| *own == group);
        if !joins {
            let place = place.ok_or(EADDRNOTAVAIL)?;
            self.groups.joined.borrow_mut().remove(place);
            return if self.is_below.get() { network.set_member(self.number, group, false) } else { Ok(()) };
        }
        let source = way.source(network, self.family).map_err(|_| ENODEV)?;
        if !source.is_loopback() && network.source(group).is_none() {
            return Err(ENODEV);
        }
        if place.is_some() {
            return Err(EADDRINUSE);
        }
        if self.groups.joined.borrow().len() >= GROUPS_MAX {
            return Err(ENOBUFS);
        }
        if self.is_below.get() {
            network.set_member(self.number, group, true)?;
        }
        self.groups.joined.borrow_mut().push(group);
        Ok(())
    }

    /// The socket has come to be below: it joins there what it has joined.
    pub fn join_below(&self, network: &dyn Network) -> Result<()> {
        self.groups.told.set(None);
        self.groups.joined.borrow().iter().try_for_each(|group| network.set_member(self.number, *group, true))
    }

    /// Sets the way of datagrams to groups, if there is one.
    pub fn set_way(&self, network: &dyn Network, way: Way) -> Result<()> {
        way.source(network, self.family)?;
        self.groups.way.set(way);
        Ok(())
    }

    /// Tells the network how the socket sends a datagram to a group, if that is not known there.
    pub fn tell_sending(&self, network: &dyn Network, asked: &Asked) -> Result<()> {
        let (hops, loops) = self.options.to_groups(self.family);
        let hops = asked.hops.unwrap_or(hops);
        let way = match asked.interface {
            0 => self.groups.way.get(),
            interface => Way { interface, address: None },
        };
        let from = match asked.from {
            Some(from) => from,
            None => way.source(network, self.family)?,
        };
        let sending = Sending { from, hops, loops };
        if self.groups.told.get() != Some(sending) {
            network.set_sending(self.number, sending)?;
            self.groups.told.set(Some(sending));
        }
        Ok(())
    }
}
