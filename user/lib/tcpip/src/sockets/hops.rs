//! Hops: neighbours by which packets go on their way, and when they are asked for, so that none of them waits for the crate's turn: it asks for one neighbour in a second.
//!
//! A neighbour is asked for when a socket begins to send something there, and routers each half minute in which the stack has something to do. Connections that go on, and those that others begin, are looked at
//! while the crate asks for nobody: then one of them may have something for a neighbour that has been forgotten.

use super::Id;
use super::table::Entry;
use crate::neighbours::{Reason, question};
use crate::queues::Place;
use crate::stack::Stack;
use alloc::vec::Vec;
use core::net::IpAddr;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::wire::{EthernetAddress, IpAddress};

impl Stack {
    /// The neighbour to which a packet goes on its way to an address. `None` if it stays in this machine or is for many, or if no way leads there.
    fn hop(&self, to: IpAddr) -> Option<IpAddr> {
        let address = IpAddress::from(to);
        if to.is_loopback() || self.is_own(address) || self.is_for_many(to) {
            return None;
        }
        if self.interface.ip_addrs().iter().any(|cidr| cidr.contains_addr(&address)) {
            return Some(to);
        }
        match to {
            IpAddr::V4(_) => self.status.router.map(IpAddr::from),
            IpAddr::V6(_) => self.status.router_v6.map(IpAddr::from),
        }
    }

    /// Sees to it that the neighbour is known by which something of a socket's goes to an address.
    pub(super) fn seek(&mut self, id: Id, to: IpAddr) {
        if !self.wire.neighbours.is_settled(to)
            && let Ok(owner) = self.owner(id)
        {
            self.seek_as(owner, to);
        }
    }

    /// Sees to it that the neighbours are known by which a program's questions for names go to their servers.
    pub(super) fn seek_servers(&mut self, owner: u64) {
        for server in self.status.servers.clone() {
            self.seek_as(owner, server);
        }
    }

    /// Sees to it that the neighbour is known by which something of a program's goes to an address. If nothing is known of it, it is asked for; if something is, it is looked at in the next turn.
    fn seek_as(&mut self, owner: u64, to: IpAddr) {
        match self.hop(to) {
            Some(neighbour) if !self.wire.neighbours.notes(owner, neighbour) => {
                self.ask_for(Some(owner), Reason::Waiting, neighbour);
            }
            _ => self.wire.neighbours.settle(to),
        }
    }

    /// Asks for the neighbours to which something was sent since the last turn and of which something was known then, if that is too old.
    pub(crate) fn seek_again(&mut self) {
        while let Some((owner, neighbour)) = self.wire.neighbours.sought() {
            self.seek_neighbour(owner, Reason::Waiting, neighbour);
        }
    }

    /// Asks for a neighbour for a program, if there is a reason, and for this one at most.
    fn seek_neighbour(&mut self, owner: u64, most: Reason, neighbour: IpAddr) {
        if let Some(reason) = self.wire.neighbours.reason(neighbour) {
            self.ask_for(Some(owner), reason.min(most), neighbour);
        }
    }

    /// Asks for a neighbour, unless it has been asked for in the last second, or too many are.
    fn ask_for(&mut self, owner: Option<u64>, reason: Reason, neighbour: IpAddr) {
        if !self.wire.neighbours.may_ask(owner, reason, neighbour) {
            return;
        }
        let own = EthernetAddress(self.wire.own());
        if let Some(question) = question(&self.interface, own, neighbour) {
            self.wire.neighbours.ask(owner, reason, neighbour, question);
        }
    }

    /// Asks for the routers, so that they stay known.
    pub(crate) fn seek_routers(&mut self) {
        if !self.status.is_up {
            return;
        }
        let routers = [self.status.router.map(IpAddr::from), self.status.router_v6.map(IpAddr::from)];
        for router in routers.into_iter().flatten() {
            self.ask_for(None, Reason::Refresh, router);
        }
    }

    /// Asks for the neighbours of connections, as long as the crate does not.
    pub(crate) fn seek_for_connections(&mut self) {
        if !self.wire.neighbours.is_limited() {
            return;
        }
        let sockets = &self.sockets;
        let peer = |handle: SocketHandle| {
            let socket = sockets.get::<tcp::Socket>(handle);
            let remote = socket.remote_endpoint().filter(|_| socket.is_active());
            remote.map(|remote| IpAddr::from(remote.addr))
        };
        let mut all: Vec<(u64, IpAddr)> = Vec::new();
        for slot in self.table.slots.values() {
            let peers = |to| (slot.owner, to);
            match &slot.entry {
                Entry::Tcp(handle) => all.extend(peer(*handle).map(peers)),
                Entry::Listener { queue, .. } => {
                    all.extend(queue.iter().filter_map(|Place { handle, .. }| peer(*handle)).map(peers));
                }
                _ => {}
            }
        }
        for (owner, to) in all {
            // It may have nothing to send, so it is not known whether somebody waits.
            if let Some(neighbour) = self.hop(to) {
                self.seek_neighbour(owner, Reason::Refresh, neighbour);
            }
        }
    }
}
