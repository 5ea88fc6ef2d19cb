//! Datagrams for several: those to groups of receivers, and those to ports that sockets share.
//!
//! `smoltcp` gives a datagram to one socket, the first that has the port, whether that has joined the group or not. So these are held back on their way to
//! the stack, and dealt here, after the stack has checked them. What is for nobody goes on to the stack, which refuses it.

use super::datagrams::Datagrams;
use super::table::{Entry, Slot};
use super::{Id, Refusal};
use crate::held::{Datagram, Passage};
use crate::stack::Stack;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::wire::IpAddress;

/// Groups that the sockets of one owner have joined, at most: each socket's count.
pub const OWN_GROUPS_MAX: usize = 8;

/// Groups that are joined, at most.
pub const GROUPS_MAX: usize = 48;

/// Groups that are joined until an owner with so many gets no more that nobody else has joined. So those with many leave something for others, who mostly want one.
const PLENTY: usize = 32;
/// See [`PLENTY`].
pub const FEW_MAX: usize = 2;

/// Groups that are joined, and those that were left before the network has been told, at most. The stack has room for 64, of which the others are for its own, by which its addresses are asked for.
const ROOM: usize = 56;

/// Groups of all machines of a network, which each has joined without saying so.
const EVERYBODY: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1))];

/// Whether a group is the stack's own, by which neighbours ask for an address of IPv6.
fn is_for_neighbours(group: IpAddr) -> bool {
    matches!(group, IpAddr::V6(group) if group.octets()[..13] == [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff])
}

/// How a socket sends to groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// Address of this machine from which it sends to groups of the same kind; the one that is none means any.
    pub from: IpAddr,
    /// How each datagram goes.
    pub passage: Passage,
}

impl Default for Sending {
    fn default() -> Sending {
        Sending { from: Ipv6Addr::UNSPECIFIED.into(), passage: Passage { hops: 1, loops: true } }
    }
}

impl Datagrams {
    /// Whether a datagram to this address is for it, as far as addresses go. One with an address of its own takes nothing that is for many, as in Linux: so nothing of the network comes to one that has
    /// the loopback's.
    fn is_at(&self, to: IpAddress) -> bool {
        self.at.addr.is_none_or(|own| own == to)
    }

    /// Whether it takes what the stack has for it, which knows its port alone. What is for a group comes another way to one that is for nothing else.
    pub(super) fn takes_from_stack(&self, to: Option<IpAddress>) -> bool {
        !self.is_for_group() && to.is_some_and(|to| self.is_at(to))
    }

    /// Whether a datagram is for it.
    fn takes(&self, datagram: &Datagram) -> bool {
        let to = datagram.to.ip();
        let is_member = !to.is_multicast() || self.groups.contains(&to) || EVERYBODY.contains(&to);
        self.at.port == datagram.to.port() && is_member && self.is_at(to.into()) && self.hears(datagram.from)
    }
}

impl Stack {
    /// Lets a socket have what is sent to a group.
    ///
    /// [`Refusal::Bad`]: it is no group, or one of the stack's own. [`Refusal::InUse`]: it has joined it already. [`Refusal::Limit`]: there are as many as there may be, or the owner has left many
    /// and the network has not been told yet.
    pub fn join(&mut self, id: Id, group: IpAddr) -> Result<(), Refusal> {
        let address = IpAddress::from(group);
        if !address.is_multicast() || is_for_neighbours(group) {
            return Err(Refusal::Bad);
        }
        if self.udp(id)?.1.groups.contains(&group) {
            return Err(Refusal::InUse);
        }
        let owner = self.owner(id)?;
        let joined = self.table.joined();
        let own = self.table.groups().filter(|(other, _)| *other == owner).count();
        let is_new = !joined.contains(&group);
        if own >= OWN_GROUPS_MAX || is_new && !self.may_join(owner, own, joined.len()) {
            return Err(Refusal::Limit);
        }
        if is_new && !EVERYBODY.contains(&group) {
            self.interface.join_multicast_group(address).map_err(|_| Refusal::Limit)?;
            self.table.leaving.retain(|(_, left)| *left != group);
        }
        self.udp(id)?.1.groups.push(group);
        self.hold_shared();
        Ok(())
    }

    /// Says whether an owner who has so many groups may join one that nobody has joined, where so many are joined.
    fn may_join(&self, owner: u64, own: usize, joined: usize) -> bool {
        let leaving = &self.table.leaving;
        let own_leaving = leaving.iter().filter(|(other, _)| *other == owner).count();
        let has_share = joined < PLENTY || joined < GROUPS_MAX && own < FEW_MAX;
        has_share && own_leaving < OWN_GROUPS_MAX && joined + leaving.len() < ROOM
    }

    /// A socket has no more of what is sent to a group. [`Refusal::NotFound`]: it has not joined it.
    pub fn leave(&mut self, id: Id, group: IpAddr) -> Result<(), Refusal> {
        let owner = self.owner(id)?;
        let groups = &mut self.udp(id)?.1.groups;
        let place = groups.iter().position(|own| *own == group).ok_or(Refusal::NotFound)?;
        groups.remove(place);
        self.left(owner, &[group]);
        Ok(())
    }

    /// A socket of an owner's has left groups: this machine does, too, if no other socket has joined them.
    pub(super) fn left(&mut self, owner: u64, groups: &[IpAddr]) {
        let joined = self.table.joined();
        for group in groups.iter().filter(|group| !joined.contains(group) && !EVERYBODY.contains(group)) {
            // It cannot fail: it is a group.
            let _ = self.interface.leave_multicast_group(IpAddress::from(*group));
            self.table.leaving.push((owner, *group));
        }
        self.hold_shared();
    }

    /// Forgets groups that were left, once the network has been told. The crate tells it before it sends anything else, unless the wire takes nothing.
    pub(crate) fn follow_groups(&mut self) {
        if self.wire.takes_more() {
            self.table.leaving.clear();
        }
    }

    /// Says how a socket sends to groups. [`Refusal::Bad`]: this machine does not have the address.
    pub fn set_sending(&mut self, id: Id, sending: Sending) -> Result<(), Refusal> {
        if !sending.from.is_unspecified() && !self.is_own(sending.from.into()) {
            return Err(Refusal::Bad);
        }
        self.udp(id)?.1.sending = sending;
        Ok(())
    }

    /// Address from which a datagram goes, as the crate is told. To a group of IPv6 it goes with a note for the wire; the address that is none means any.
    pub(super) fn noted(&self, from: IpAddr, to: IpAddr, passage: Passage) -> IpAddr {
        if to.is_ipv4() || !to.is_multicast() {
            return from;
        }
        let own = match from {
            IpAddr::V6(from) if !from.is_unspecified() => Some(from),
            _ => match self.interface.get_source_address(&IpAddress::from(to)) {
                Some(IpAddress::Ipv6(from)) => Some(from),
                _ => None,
            },
        };
        own.map_or(from, |own| passage.noted(own).into())
    }

    /// Says which datagrams are held back.
    pub(super) fn hold_shared(&mut self) {
        let (groups, ports) = (self.table.joined(), self.table.shared_ports());
        self.wire.held.set(groups, ports);
    }

    /// Deals datagrams that were held back.
    pub(crate) fn deal(&mut self) {
        for frame in self.wire.held.take() {
            let Some(datagram) = Datagram::of(&frame) else { continue };
            let is_for_many = self.is_for_many(datagram.to.ip());
            let heirs = if is_for_many { self.all_heirs(&datagram) } else { self.one_heir(&datagram) };
            if heirs.is_empty() {
                // A datagram for this machine alone is refused.
                if !is_for_many {
                    self.wire.give_back(frame);
                }
                continue;
            }
            let passed = self.inspection.pass(&mut self.interface, self.now, frame, datagram.to.port());
            let Some((from, bytes)) = passed else { continue };
            for id in heirs {
                if let Some(Slot { entry: Entry::Udp(own), .. }) = self.table.slots.get_mut(&id) {
                    own.keep(from, bytes);
                }
            }
        }
    }

    /// Sockets that have a datagram for several.
    fn all_heirs(&self, datagram: &Datagram) -> Vec<Id> {
        let takes = |slot: &Slot| matches!(&slot.entry, Entry::Udp(own) if own.takes(datagram));
        self.table.slots.iter().filter(|(_, slot)| takes(slot)).map(|(id, _)| *id).collect()
    }

    /// The socket, of those that share a port, that has a datagram for one of them: of the owner's who has had it first the one that is connected to the sender,
    /// or that he has bound first. So nobody else takes what is his by sharing the port.
    fn one_heir(&self, datagram: &Datagram) -> Vec<Id> {
        let takers = self.table.slots.iter().filter_map(|(id, Slot { owner, entry, .. })| match entry {
            Entry::Udp(own) if own.takes(datagram) => Some((*id, *owner, own)),
            _ => None,
        });
        let all: Vec<(Id, u64, &Datagrams)> = takers.collect();
        let first = all.iter().min_by_key(|(_, _, own)| own.since).map(|(_, owner, _)| *owner);
        let of_first = all.iter().filter(|(_, owner, _)| Some(*owner) == first);
        let heir = of_first.min_by_key(|(_, _, own)| (!own.is_connected(), own.order));
        heir.map(|(id, _, _)| *id).into_iter().collect()
    }
}
