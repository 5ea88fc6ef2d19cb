//! Sockets, as clients have them: numbers that nobody guesses, each with an owner. Nothing here waits; what cannot be done now is
//! [`Refusal::Again`], and [`readiness`] says when it can.
//!
//! **A socket that goes does not go at once**: what its owner has written is still sent. Connections without an owner end by themselves, or
//! after a while; there are so many of them at most, and of who has let go of the most the oldest has to go first.
//!
//! **A connection that is begun and not made** has a place of its listener's. If all are taken, the oldest that has had its place for a while
//! loses it: whoever begins and does not go on keeps others away no longer than that.
//!
//! In reading order: this file, what all kinds have; `limits`, how many each owner gets; `table`, their numbers and owners; `ways`, what can go where; `hops`, neighbours on the way; `streams`; `datagrams`; `groups`, datagrams for several; `echoes`; `queries`, names.

mod datagrams;
mod echoes;
mod groups;
mod hops;
mod limits;
mod queries;
mod streams;
mod table;
mod ways;

pub use crate::held::Passage;
use crate::queues::Place;
use crate::stack::Stack;
use core::net::SocketAddr;
use datagrams::{Datagrams, for_datagrams};
use echoes::for_echoes;
pub use groups::{FEW_MAX, GROUPS_MAX, OWN_GROUPS_MAX, Sending};
pub use limits::{Limits, Taken};
use smoltcp::socket::{dns, icmp, tcp, udp};
use smoltcp::wire::{IpAddress, IpListenEndpoint};
pub use streams::Connection;
use streams::{is_connected, state_of, stream};
use table::{Entry, Query, Slot};

pub(crate) use table::Table;

/// A socket: a number that nobody guesses.
pub type Id = u64;

/// Connections that a listener keeps before they are accepted, at most.
pub const BACKLOG_MAX: usize = 8;

/// Bytes that a connection keeps each way.
pub const STREAM_BYTES: usize = 16 << 10;

/// Bytes of a datagram, at most: none is sent in pieces. With IPv6 it is 20 less.
pub const DATAGRAM_MAX: usize = 1472;

/// Kind of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Datagrams.
    Udp,
    /// A connection.
    Tcp,
    /// Echo requests.
    Echo,
}

/// Why something cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Not now.
    Again,
    /// The connection has ended, or there never was one.
    Closed,
    /// The port is in use.
    InUse,
    /// The owner has as many sockets as it gets: see [`Limits`].
    Limit,
    /// An address, a port or a size that cannot be, or nothing that this kind of socket does.
    Bad,
    /// No way leads there.
    Unreachable,
    /// There is no such name, or nobody who knows.
    NotFound,
    /// Nobody has the port that a datagram was for.
    Refused,
    /// Nobody answers at the address that a datagram was for, so it was not sent; or at the one of a connection, so it was given up.
    Silent,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// There is none.
    Closed,
    /// The other side has not answered yet.
    Connecting,
    /// There is one, at least in one direction.
    Open,
}

/// Bits for what a socket is ready for.
pub mod readiness {
    /// To receive, to accept, or to hear that there is nothing more to come.
    pub const READABLE: u32 = 1;
    /// To send, or to hear that nothing can be sent.
    pub const WRITABLE: u32 = 2;
}

/// An address and a port to listen at; the address that is none means all.
fn listened(at: SocketAddr, port: u16) -> IpListenEndpoint {
    let addr = Some(IpAddress::from(at.ip())).filter(|address| !address.is_unspecified());
    IpListenEndpoint { addr, port }
}

/// Says whether a buffer that has so many bytes in it takes the longest datagram. That lies in one piece, so as much again may be left out at the buffer's end.
fn takes_longest(capacity: usize, queued: usize) -> bool {
    capacity >= queued + 2 * DATAGRAM_MAX
}

impl Stack {
    /// A socket of a kind.
    pub fn open(&mut self, owner: u64, kind: Kind) -> Result<Id, Refusal> {
        self.table.room(owner, 1)?;
        let entry = match kind {
            Kind::Tcp => Entry::Tcp(self.sockets.add(stream())),
            Kind::Udp => Entry::Udp(Datagrams::new(self.sockets.add(for_datagrams()))),
            Kind::Echo => {
                let ident = self.table.free_ident();
                Entry::Echo(self.sockets.add(for_echoes(ident)?), ident)
            }
        };
        Ok(self.table.insert(owner, entry))
    }

    /// Its owner has it no more.
    pub fn close(&mut self, id: Id) {
        let Some(slot) = self.table.slots.remove(&id) else { return };
        match slot.entry {
            Entry::Tcp(handle) => {
                self.end(handle);
                self.table.orphans.add(self.now, &mut self.sockets, slot.owner, handle);
            }
            Entry::Listener { queue, .. } => {
                for Place { handle, .. } in queue {
                    let socket = self.sockets.get_mut::<tcp::Socket>(handle);
                    if is_connected(socket) {
                        self.table.orphans.refuse(self.now, &mut self.sockets, slot.owner, handle);
                    } else {
                        self.sockets.remove(handle);
                    }
                }
                self.wire.set_listened(self.table.listened());
            }
            Entry::Udp(own) => {
                self.sockets.remove(own.handle);
                self.left(slot.owner, &own.groups);
            }
            Entry::Echo(handle, _) => drop(self.sockets.remove(handle)),
            Entry::Query(Query::Asked(asked)) => {
                let socket = self.sockets.get_mut::<dns::Socket>(self.dns);
                asked.into_iter().flatten().for_each(|handle| socket.cancel_query(handle));
            }
            Entry::Query(Query::Answered(_)) => {}
        }
    }

    /// The owner of a socket.
    pub fn owner(&self, id: Id) -> Result<u64, Refusal> {
        self.table.slots.get(&id).map(|slot| slot.owner).ok_or(Refusal::Closed)
    }

    /// Its owner has a connection no more, and not all that was written can be sent: the other side hears that it is broken off.
    pub fn break_off(&mut self, id: Id) {
        match self.table.slots.remove(&id) {
            Some(Slot { entry: Entry::Tcp(handle), owner, .. }) => {
                self.table.orphans.refuse(self.now, &mut self.sockets, owner, handle);
            }
            Some(slot) => drop(self.table.slots.insert(id, slot)),
            None => {}
        }
    }

    /// Its owner has a socket no more, which is still there for what it has to send. It does not count as his from now on; its port is his as before.
    pub fn let_go(&mut self, id: Id) {
        if let Some(slot) = self.table.slots.get_mut(&id) {
            slot.is_left = true;
        }
    }

    /// How many sockets an owner has.
    pub fn owned(&self, owner: u64) -> usize {
        self.table.slots.values().filter(|slot| slot.owner == owner).map(Slot::own_weight).sum()
    }

    /// All sockets that the stack keeps, with those that have no owner.
    pub fn kept(&self) -> usize {
        // Two are the stack's own, and so are connections for answers about names.
        self.sockets.iter().count() - 2 - self.talks()
    }

    fn entry(&self, id: Id) -> Result<&Entry, Refusal> {
        self.table.slots.get(&id).map(|slot| &slot.entry).ok_or(Refusal::Closed)
    }

    /// Says for what a socket is ready: bits of [`readiness`]. Nothing is ready that is not there.
    pub fn ready(&mut self, id: Id) -> Result<u32, Refusal> {
        self.follow(id);
        let bits = |can_read, can_write| {
            let read = if can_read { readiness::READABLE } else { 0 };
            read | if can_write { readiness::WRITABLE } else { 0 }
        };
        Ok(match self.entry(id)? {
            Entry::Udp(own) => {
                let socket = self.sockets.get::<udp::Socket>(own.handle);
                let can_read = own.has_failed() || own.has_kept() || socket.can_recv();
                let has_room = takes_longest(socket.payload_send_capacity(), socket.send_queue());
                bits(can_read, own.has_failed() || socket.can_send() && has_room)
            }
            Entry::Echo(handle, _) => {
                let socket = self.sockets.get::<icmp::Socket>(*handle);
                let has_room = takes_longest(socket.payload_send_capacity(), socket.send_queue());
                bits(socket.can_recv(), socket.can_send() && has_room)
            }
            Entry::Tcp(handle) => {
                let socket = self.sockets.get::<tcp::Socket>(*handle);
                let is_settled = state_of(socket) != State::Connecting;
                let can_read = socket.can_recv() || is_settled && !socket.may_recv();
                bits(can_read, socket.can_send() || is_settled && !socket.may_send())
            }
            Entry::Listener { queue, .. } => {
                let mut queue = queue.iter().map(|place| place.socket(&self.sockets));
                bits(queue.any(is_connected), false)
            }
            Entry::Query(query) => bits(matches!(query, Query::Answered(_)), false),
        })
    }
}
