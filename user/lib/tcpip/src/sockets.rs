//! Sockets, as clients have them: numbers that nobody guesses, each with an owner. Nothing here waits; what cannot be done now is
//! [`Refusal::Again`], and [`readiness`] says when it can.
//!
//! **A socket that goes does not go at once**: what its owner has written is still sent. Connections without an owner end by themselves, or
//! after a while; there are so many of them at most, and of who has let go of the most the oldest has to go first.
//!
//! **A connection that is begun and not made** has a place of its listener's. If all are taken, the oldest that has had its place for a while
//! loses it: whoever begins and does not go on keeps others away no longer than that.

use crate::advertisements::is_wide;
use crate::queues::{Orphans, Place, listen_again, listens_again_at};
use crate::stack::Stack;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{dns, icmp, tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    DnsQueryType, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress, IpEndpoint, IpListenEndpoint,
};

/// A socket: a number that nobody guesses.
pub type Id = u64;

/// How many sockets there may be, with each place of a listener's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Of all owners.
    pub all: usize,
    /// Of each.
    pub own: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { all: 192, own: 32 }
    }
}

/// Connections that a listener keeps before they are accepted, at most.
pub const BACKLOG_MAX: usize = 8;

/// Bytes that a connection keeps each way.
pub const STREAM_BYTES: usize = 16 << 10;

/// Bytes and datagrams that a socket for these keeps each way.
const DATAGRAM_BYTES: usize = 8 << 10;
/// See [`DATAGRAM_BYTES`].
const DATAGRAMS: usize = 16;

/// Bytes of a datagram, at most: none is sent in pieces. With IPv6 it is 20 less.
pub const DATAGRAM_MAX: usize = 1472;

/// How long the other side may be silent before a connection is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Ports that are given to who does not say which.
const FIRST_FREE_PORT: u16 = 49152;

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
    /// The owner has as many sockets as it may, or there are as many as there can be.
    Limit,
    /// An address, a port or a size that cannot be, or nothing that this kind of socket does.
    Bad,
    /// No way leads there.
    Unreachable,
    /// There is no such name, or nobody who knows.
    NotFound,
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

enum Entry {
    Udp(SocketHandle),
    Tcp(SocketHandle),
    Listener { at: IpListenEndpoint, queue: Vec<Place> },
    Echo(SocketHandle, u16),
    Query(Query),
}

enum Query {
    /// For an address of IPv4 and for one of IPv6, each as long as it is not known what came of it.
    Asked([Option<dns::QueryHandle>; 2]),
    Answered(Result<IpAddr, Refusal>),
}

struct Slot {
    owner: u64,
    entry: Entry,
}

impl Slot {
    fn weight(&self) -> usize {
        match &self.entry {
            Entry::Listener { queue, .. } => queue.len(),
            _ => 1,
        }
    }
}

/// All sockets.
pub(crate) struct Table {
    slots: BTreeMap<Id, Slot>,
    pub(crate) orphans: Orphans,
    limits: Limits,
    random: u64,
    next_port: u16,
}

impl Table {
    pub fn new(seed: u64, limits: Limits) -> Table {
        let next_port = FIRST_FREE_PORT + (seed >> 50) as u16;
        Table { slots: BTreeMap::new(), orphans: Orphans::default(), limits, random: seed, next_port }
    }

    /// A number that is not in use: the generator SplitMix64.
    fn id(&mut self) -> Id {
        loop {
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut id = self.random;
            id = (id ^ id >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            id = (id ^ id >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            id ^= id >> 31;
            if !self.slots.contains_key(&id) {
                return id;
            }
        }
    }

    /// Refuses more than an owner may have.
    fn room(&self, owner: u64, wanted: usize) -> Result<(), Refusal> {
        let (mut own, mut all) = (0, 0);
        for slot in self.slots.values() {
            all += slot.weight();
            own += if slot.owner == owner { slot.weight() } else { 0 };
        }
        let is_over = own + wanted > self.limits.own || all + wanted > self.limits.all;
        if is_over { Err(Refusal::Limit) } else { Ok(()) }
    }

    fn insert(&mut self, owner: u64, entry: Entry) -> Id {
        let id = self.id();
        self.slots.insert(id, Slot { owner, entry });
        id
    }

    /// Whether some socket has a port, at the same address or one of them at all.
    fn has(&self, sockets: &SocketSet<'static>, at: IpListenEndpoint, is_udp: bool) -> bool {
        let meets = |other: IpListenEndpoint| {
            let is_apart = other.addr.zip(at.addr).is_some_and(|(one, other)| one != other);
            other.port == at.port && !is_apart
        };
        self.slots.values().any(|slot| match &slot.entry {
            Entry::Udp(handle) => is_udp && meets(sockets.get::<udp::Socket>(*handle).endpoint()),
            Entry::Listener { at, .. } => !is_udp && meets(*at),
            Entry::Tcp(handle) => {
                let local = sockets.get::<tcp::Socket>(*handle).local_endpoint();
                !is_udp && local.is_some_and(|local| meets(local.into()))
            }
            _ => false,
        })
    }

    pub(crate) fn free_port(&mut self, sockets: &SocketSet<'static>, is_udp: bool) -> Result<u16, Refusal> {
        for _ in FIRST_FREE_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
            let at = IpListenEndpoint { addr: None, port };
            if !self.has(sockets, at, is_udp) && !self.orphans.has_port(sockets, port) {
                return Ok(port);
            }
        }
        Err(Refusal::Limit)
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

fn stream() -> tcp::Socket<'static> {
    let mut socket = tcp::Socket::new(
        tcp::SocketBuffer::new(vec![0; STREAM_BYTES]),
        tcp::SocketBuffer::new(vec![0; STREAM_BYTES]),
    );
    socket.set_timeout(Some(SILENCE_MAX));
    socket
}

/// An address and a port to listen at; the address that is none means all.
fn listened(at: SocketAddr, port: u16) -> IpListenEndpoint {
    let addr = Some(IpAddress::from(at.ip())).filter(|address| !address.is_unspecified());
    IpListenEndpoint { addr, port }
}

fn state_of(socket: &tcp::Socket) -> State {
    match socket.state() {
        tcp::State::Closed | tcp::State::TimeWait | tcp::State::Listen => State::Closed,
        tcp::State::SynSent | tcp::State::SynReceived => State::Connecting,
        _ => State::Open,
    }
}

/// Whether a listener's socket has a connection to hand out.
fn is_connected(socket: &tcp::Socket) -> bool {
    state_of(socket) == State::Open
}

impl Stack {
    /// A socket of a kind.
    pub fn open(&mut self, owner: u64, kind: Kind) -> Result<Id, Refusal> {
        self.table.room(owner, 1)?;
        let entry = match kind {
            Kind::Tcp => Entry::Tcp(self.sockets.add(stream())),
            Kind::Udp => {
                let buffer = || {
                    udp::PacketBuffer::new(
                        vec![udp::PacketMetadata::EMPTY; DATAGRAMS],
                        vec![0; DATAGRAM_BYTES],
                    )
                };
                Entry::Udp(self.sockets.add(udp::Socket::new(buffer(), buffer())))
            }
            Kind::Echo => {
                let buffer = || {
                    icmp::PacketBuffer::new(
                        vec![icmp::PacketMetadata::EMPTY; DATAGRAMS],
                        vec![0; DATAGRAM_BYTES],
                    )
                };
                let mut socket = icmp::Socket::new(buffer(), buffer());
                let taken = |ident: u16| {
                    let mut all = self.table.slots.values();
                    all.any(|slot| matches!(slot.entry, Entry::Echo(_, other) if other == ident))
                };
                let ident = (1..).find(|&ident| !taken(ident)).ok_or(Refusal::Limit)?;
                socket.bind(icmp::Endpoint::Ident(ident)).map_err(|_| Refusal::Bad)?;
                Entry::Echo(self.sockets.add(socket), ident)
            }
        };
        Ok(self.table.insert(owner, entry))
    }

    /// A listener at a port, with room for so many connections that nobody has accepted.
    pub fn listen(&mut self, owner: u64, at: SocketAddr, backlog: usize) -> Result<Id, Refusal> {
        let backlog = backlog.clamp(1, BACKLOG_MAX);
        self.table.room(owner, backlog)?;
        let port = match at.port() {
            0 => self.table.free_port(&self.sockets, false)?,
            port => port,
        };
        let at = listened(at, port);
        if self.table.has(&self.sockets, at, false) {
            return Err(Refusal::InUse);
        }
        let mut queue = Vec::new();
        for _ in 0..backlog {
            let mut socket = stream();
            socket.listen(at).map_err(|_| Refusal::Bad)?;
            queue.push(Place { handle: self.sockets.add(socket), begun: None });
        }
        let id = self.table.insert(owner, Entry::Listener { at, queue });
        self.wire.set_listened(self.table.listened());
        Ok(id)
    }

    /// Asks for the address of a name: one of IPv4, or if it has none, one of IPv6. What is an address already needs nobody.
    pub fn resolve(&mut self, owner: u64, name: &str) -> Result<Id, Refusal> {
        self.table.room(owner, 1)?;
        let known = match name {
            "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
            _ => name.parse().ok(),
        };
        let query = match known {
            Some(address) => Query::Answered(Ok(address)),
            None if self.status().servers.is_empty() => Query::Answered(Err(Refusal::NotFound)),
            None => {
                self.wire.names.expect(self.now);
                let socket = self.sockets.get_mut::<dns::Socket>(self.dns);
                let mut ask = |kind| socket.start_query(self.interface.context(), name, kind);
                let asked = ask(DnsQueryType::A).map_err(|_| Refusal::Bad)?;
                Query::Asked([Some(asked), ask(DnsQueryType::Aaaa).ok()])
            }
        };
        Ok(self.table.insert(owner, Entry::Query(query)))
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
            Entry::Udp(handle) | Entry::Echo(handle, _) => drop(self.sockets.remove(handle)),
            Entry::Query(Query::Asked(asked)) => {
                let socket = self.sockets.get_mut::<dns::Socket>(self.dns);
                asked.into_iter().flatten().for_each(|handle| socket.cancel_query(handle));
            }
            Entry::Query(Query::Answered(_)) => {}
        }
    }

    /// How many sockets an owner has.
    pub fn owned(&self, owner: u64) -> usize {
        self.table.slots.values().filter(|slot| slot.owner == owner).map(Slot::weight).sum()
    }

    /// All sockets that the stack keeps, with those that have no owner.
    pub fn kept(&self) -> usize {
        // Two are the stack's own, and so are connections for answers about names.
        self.sockets.iter().count() - 2 - self.talks()
    }

    fn entry(&self, id: Id) -> Result<&Entry, Refusal> {
        self.table.slots.get(&id).map(|slot| &slot.entry).ok_or(Refusal::Closed)
    }

    fn tcp(&mut self, id: Id) -> Result<&mut tcp::Socket<'static>, Refusal> {
        match *self.entry(id)? {
            Entry::Tcp(handle) => Ok(self.sockets.get_mut(handle)),
            _ => Err(Refusal::Bad),
        }
    }

    fn udp(&mut self, id: Id) -> Result<(&mut udp::Socket<'static>, SocketHandle), Refusal> {
        match *self.entry(id)? {
            Entry::Udp(handle) => Ok((self.sockets.get_mut(handle), handle)),
            _ => Err(Refusal::Bad),
        }
    }

    /// Whether a way leads to an address.
    pub(crate) fn reaches(&self, to: IpAddr) -> Result<(), Refusal> {
        let address = IpAddress::from(to);
        if address.is_unspecified() {
            return Err(Refusal::Bad);
        }
        let is_near = self.interface.ip_addrs().iter().any(|cidr| cidr.contains_addr(&address));
        let is_far = match to {
            IpAddr::V4(_) => self.status().router.is_some(),
            IpAddr::V6(to) => self.status().router_v6.is_some() && is_wide(to) && self.has_source(&address),
        };
        let is_for_all = self.status().is_up && (address.is_broadcast() || address.is_multicast());
        if is_near || is_far || is_for_all { Ok(()) } else { Err(Refusal::Unreachable) }
    }

    /// Whether there is an address from which an answer from another network comes back. Without one the stack would say that it is the loopback's.
    fn has_source(&self, to: &IpAddress) -> bool {
        matches!(self.interface.get_source_address(to), Some(IpAddress::Ipv6(own)) if is_wide(own))
    }

    /// Says for what a socket is ready: bits of [`readiness`]. Nothing is ready that is not there.
    pub fn ready(&mut self, id: Id) -> Result<u32, Refusal> {
        self.follow(id);
        let bits = |can_read, can_write| {
            let read = if can_read { readiness::READABLE } else { 0 };
            read | if can_write { readiness::WRITABLE } else { 0 }
        };
        Ok(match self.entry(id)? {
            Entry::Udp(handle) => {
                let socket = self.sockets.get::<udp::Socket>(*handle);
                bits(socket.can_recv(), socket.can_send())
            }
            Entry::Echo(handle, _) => {
                let socket = self.sockets.get::<icmp::Socket>(*handle);
                bits(socket.can_recv(), socket.can_send())
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

    /// Sees whether a name was found.
    fn follow(&mut self, id: Id) {
        let Some(Slot { entry: Entry::Query(query), .. }) = self.table.slots.get_mut(&id) else { return };
        let Query::Asked(asked) = query else { return };
        let socket = self.sockets.get_mut::<dns::Socket>(self.dns);
        let mut found = None;
        for place in asked.iter_mut() {
            let Some(handle) = *place else { continue };
            if found.is_some() {
                socket.cancel_query(handle);
                continue;
            }
            found = match socket.get_query_result(handle) {
                Ok(all) => all.first().map(|&address| address.into()),
                Err(dns::GetQueryResultError::Pending) => return,
                Err(dns::GetQueryResultError::Failed) => None,
            };
            *place = None;
        }
        *query = Query::Answered(found.ok_or(Refusal::NotFound));
    }

    /// The address that a name has.
    pub fn found(&mut self, id: Id) -> Result<IpAddr, Refusal> {
        self.follow(id);
        match self.entry(id)? {
            Entry::Query(Query::Answered(answer)) => *answer,
            Entry::Query(Query::Asked(..)) => Err(Refusal::Again),
            _ => Err(Refusal::Bad),
        }
    }

    /// Takes datagrams for an address and a port; for any port, if that is 0.
    pub fn bind(&mut self, id: Id, at: SocketAddr) -> Result<(), Refusal> {
        self.udp(id)?;
        let port = match at.port() {
            0 => self.table.free_port(&self.sockets, true)?,
            port => port,
        };
        let at = listened(at, port);
        if self.table.has(&self.sockets, at, true) {
            return Err(Refusal::InUse);
        }
        self.udp(id)?.0.bind(at).map_err(|_| Refusal::Bad)
    }

    /// Sends a datagram.
    pub fn send_to(&mut self, id: Id, to: SocketAddr, bytes: &[u8]) -> Result<(), Refusal> {
        let longest = if to.is_ipv4() { DATAGRAM_MAX } else { DATAGRAM_MAX - 20 };
        if to.port() == 0 || bytes.len() > longest {
            return Err(Refusal::Bad);
        }
        self.reaches(to.ip())?;
        if !self.udp(id)?.0.is_open() {
            self.bind(id, SocketAddr::from(([0, 0, 0, 0], 0)))?;
        }
        match self.udp(id)?.0.send_slice(bytes, IpEndpoint::from(to)) {
            Ok(()) => Ok(()),
            Err(udp::SendError::BufferFull) => Err(Refusal::Again),
            Err(udp::SendError::Unaddressable) => Err(Refusal::Bad),
        }
    }

    /// Takes a datagram: from whom, and how long it is. What does not fit is lost.
    pub fn receive_from(&mut self, id: Id, to: &mut [u8]) -> Result<(SocketAddr, usize), Refusal> {
        let (bytes, about) = self.udp(id)?.0.recv().map_err(|_| Refusal::Again)?;
        let len = bytes.len().min(to.len());
        to[..len].copy_from_slice(&bytes[..len]);
        Ok((SocketAddr::new(about.endpoint.addr.into(), about.endpoint.port), len))
    }

    /// Begins a connection.
    pub fn connect(&mut self, id: Id, to: SocketAddr) -> Result<(), Refusal> {
        self.reaches(to.ip())?;
        if to.port() == 0 || state_of(self.tcp(id)?) != State::Closed {
            return Err(Refusal::Bad);
        }
        let port = self.table.free_port(&self.sockets, false)?;
        let Entry::Tcp(handle) = *self.entry(id)? else { return Err(Refusal::Bad) };
        let socket = self.sockets.get_mut::<tcp::Socket>(handle);
        socket.connect(self.interface.context(), IpEndpoint::from(to), port).map_err(|_| Refusal::Unreachable)
    }

    /// State of a connection, and its ends, if it has them: this one and the other.
    pub fn state(&mut self, id: Id) -> Result<(State, [Option<SocketAddr>; 2]), Refusal> {
        let socket = self.tcp(id)?;
        let address = |end: IpEndpoint| SocketAddr::new(end.addr.into(), end.port);
        let ends = [socket.local_endpoint().map(address), socket.remote_endpoint().map(address)];
        Ok((state_of(socket), ends))
    }

    /// Writes as much as there is room for: at least a byte, if there is one.
    pub fn write(&mut self, id: Id, bytes: &[u8]) -> Result<usize, Refusal> {
        let socket = self.tcp(id)?;
        if state_of(socket) == State::Connecting {
            return Err(Refusal::Again);
        }
        match socket.send_slice(bytes) {
            Ok(0) if !bytes.is_empty() => Err(Refusal::Again),
            Ok(len) => Ok(len),
            Err(tcp::SendError::InvalidState) => Err(Refusal::Closed),
        }
    }

    /// Reads what has come: 0 bytes if nothing more will.
    pub fn read(&mut self, id: Id, to: &mut [u8]) -> Result<usize, Refusal> {
        let socket = self.tcp(id)?;
        if state_of(socket) == State::Connecting {
            return Err(Refusal::Again);
        }
        match socket.recv_slice(to) {
            Ok(0) if !to.is_empty() => Err(Refusal::Again),
            Ok(len) => Ok(len),
            Err(tcp::RecvError::Finished) => Ok(0),
            Err(tcp::RecvError::InvalidState) if socket.remote_endpoint().is_some() => Ok(0),
            Err(tcp::RecvError::InvalidState) => Err(Refusal::Closed),
        }
    }

    /// Whether the other side of a connection may wait for room: more than half of what is kept for reading has come. When less has, the other side knows
    /// of enough room.
    pub fn is_crowded(&mut self, id: Id) -> bool {
        self.tcp(id).is_ok_and(|socket| socket.recv_queue() > socket.recv_capacity() / 2)
    }

    /// Nothing more will be written.
    pub fn shutdown(&mut self, id: Id) -> Result<(), Refusal> {
        match *self.entry(id)? {
            Entry::Tcp(handle) => self.end(handle),
            _ => return Err(Refusal::Bad),
        }
        Ok(())
    }

    /// Ends a stream, and sees to it that its end arrives.
    fn end(&mut self, handle: SocketHandle) {
        let socket = self.sockets.get_mut::<tcp::Socket>(handle);
        socket.close();
        let is_under_way =
            matches!(socket.state(), tcp::State::FinWait1 | tcp::State::Closing | tcp::State::LastAck);
        if is_under_way
            && let (Some(local), Some(remote)) = (socket.local_endpoint(), socket.remote_endpoint())
        {
            self.wire.ends.add(self.now, local, remote);
        }
    }

    /// Takes a connection from a listener. It is its owner's.
    pub fn accept(&mut self, id: Id) -> Result<Id, Refusal> {
        let slot = self.table.slots.get(&id).ok_or(Refusal::Closed)?;
        let (Entry::Listener { at, queue }, owner) = (&slot.entry, slot.owner) else {
            return Err(Refusal::Bad);
        };
        let mut places = queue.iter();
        let place = places.position(|place| is_connected(place.socket(&self.sockets)));
        let (at, place) = (*at, place.ok_or(Refusal::Again)?);
        self.table.room(owner, 1)?;
        let mut next = stream();
        // It cannot fail: the port is one, and the socket is new.
        let _ = next.listen(at);
        let next = self.sockets.add(next);
        let Some(Slot { entry: Entry::Listener { queue, .. }, .. }) = self.table.slots.get_mut(&id) else {
            return Err(Refusal::Closed);
        };
        let connected = core::mem::replace(&mut queue[place], Place { handle: next, begun: None });
        Ok(self.table.insert(owner, Entry::Tcp(connected.handle)))
    }

    /// Sends an echo request.
    pub fn ask_echo(&mut self, id: Id, to: IpAddr, number: u16, bytes: &[u8]) -> Result<(), Refusal> {
        let Entry::Echo(handle, ident) = *self.entry(id)? else { return Err(Refusal::Bad) };
        if bytes.len() > DATAGRAM_MAX - 20 {
            return Err(Refusal::Bad);
        }
        self.reaches(to)?;
        let source = self.interface.get_source_address(&to.into()).ok_or(Refusal::Unreachable)?;
        let socket = self.sockets.get_mut::<icmp::Socket>(handle);
        match (to, source) {
            (IpAddr::V4(_), _) => {
                let request = Icmpv4Repr::EchoRequest { ident, seq_no: number, data: bytes };
                let buffer = socket.send(request.buffer_len(), to.into()).map_err(refused_echo)?;
                request.emit(&mut Icmpv4Packet::new_unchecked(buffer), &Default::default());
            }
            (IpAddr::V6(to), IpAddress::Ipv6(source)) => {
                let request = Icmpv6Repr::EchoRequest { ident, seq_no: number, data: bytes };
                let buffer = socket.send(request.buffer_len(), to.into()).map_err(refused_echo)?;
                request.emit(&source, &to, &mut Icmpv6Packet::new_unchecked(buffer), &Default::default());
            }
            _ => return Err(Refusal::Unreachable),
        }
        Ok(())
    }

    /// Takes the answer to an echo request: from whom, the request's number, and how many bytes came back.
    pub fn echoed(&mut self, id: Id) -> Result<(IpAddr, u16, usize), Refusal> {
        let Entry::Echo(handle, _) = *self.entry(id)? else { return Err(Refusal::Bad) };
        let socket = self.sockets.get_mut::<icmp::Socket>(handle);
        let (bytes, from) = socket.recv().map_err(|_| Refusal::Again)?;
        let answer = match from {
            IpAddress::Ipv4(_) => Icmpv4Packet::new_checked(bytes).ok().and_then(|packet| {
                match Icmpv4Repr::parse(&packet, &Default::default()) {
                    Ok(Icmpv4Repr::EchoReply { seq_no, data, .. }) => Some((seq_no, data.len())),
                    _ => None,
                }
            }),
            // The socket has checked it; type, then after six bytes the number.
            IpAddress::Ipv6(_) => match bytes {
                [129, _, _, _, _, _, high, low, data @ ..] => {
                    Some((u16::from_be_bytes([*high, *low]), data.len()))
                }
                _ => None,
            },
        };
        let (number, len) = answer.ok_or(Refusal::Again)?;
        Ok((from.into(), number, len))
    }
}

fn refused_echo(error: icmp::SendError) -> Refusal {
    match error {
        icmp::SendError::BufferFull => Refusal::Again,
        icmp::SendError::Unaddressable => Refusal::Bad,
    }
}
