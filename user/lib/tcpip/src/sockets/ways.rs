//! Ways: they say whether something can go from an address of this machine to another address.
//!
//! That is decided here alone, for sockets of all kinds. The surprise is what depends on it: `smoltcp` takes two addresses of different kinds in one packet for a fault of its own, and panics.

use super::Refusal;
use crate::advertisements::is_wide;
use crate::stack::Stack;
use core::net::IpAddr;
use smoltcp::wire::{IpAddress, IpCidr};

impl Stack {
    /// Says whether a way leads from an address of this machine to another address. The address that is none means any of this machine's.
    pub(super) fn leads(&self, from: IpAddr, to: IpAddr) -> Result<(), Refusal> {
        if from.is_unspecified() {
            return self.reaches(to);
        }
        // The others of the loopback network are nobody's, so an answer to one of them would have the stack ask for it.
        if from.is_ipv4() != to.is_ipv4() || !self.is_own(from.into()) {
            return Err(Refusal::Unreachable);
        }
        if !from.is_loopback() {
            return self.reaches(to);
        }
        // Nothing of the loopback network leaves the machine, and what stays in it needs no way.
        if self.is_own(to.into()) || self.is_for_many(to) { Ok(()) } else { Err(Refusal::Unreachable) }
    }

    /// Says whether a way leads to an address.
    pub(crate) fn reaches(&self, to: IpAddr) -> Result<(), Refusal> {
        let address = IpAddress::from(to);
        if address.is_unspecified() {
            return Err(Refusal::Bad);
        }
        let is_near = if to.is_loopback() {
            // Nobody has the others of their network.
            self.is_own(address)
        } else {
            self.interface.ip_addrs().iter().any(|cidr| cidr.contains_addr(&address))
        };
        let is_far = match to {
            IpAddr::V4(to) => self.status.router.is_some() && !to.is_loopback(),
            IpAddr::V6(to) => self.status.router_v6.is_some() && is_wide(to) && self.has_source(&address),
        };
        let is_for_all = self.status.is_up && (address.is_broadcast() || address.is_multicast());
        if is_near || is_far || is_for_all { Ok(()) } else { Err(Refusal::Unreachable) }
    }

    /// Says whether there is an address from which an answer from another network comes back. Without one the stack would say that it is the loopback's.
    fn has_source(&self, to: &IpAddress) -> bool {
        matches!(self.interface.get_source_address(to), Some(IpAddress::Ipv6(own)) if is_wide(own))
    }

    /// Says whether it is an address of this machine.
    pub(super) fn is_own(&self, address: IpAddress) -> bool {
        self.interface.ip_addrs().iter().any(|own| own.address() == address)
    }

    /// Says whether datagrams may be taken for an address: one of this machine's or of its loopback network, a group, or the one that is none.
    pub(super) fn may_bind(&self, at: IpAddr) -> bool {
        at.is_unspecified() || at.is_loopback() || at.is_multicast() || self.is_own(at.into())
    }

    /// Says whether an address means all machines of a network, or a group of them.
    pub(super) fn is_for_many(&self, address: IpAddr) -> bool {
        let is_of_network = |cidr: &IpCidr| match (cidr, address) {
            (IpCidr::Ipv4(own), IpAddr::V4(address)) => own.broadcast() == Some(address),
            _ => false,
        };
        address.is_multicast()
            || IpAddress::from(address).is_broadcast()
            || self.interface.ip_addrs().iter().any(is_of_network)
    }
}
