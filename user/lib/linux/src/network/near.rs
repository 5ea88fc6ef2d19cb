//! Connections and datagrams whose both ends are in one sandbox: their bytes go from one program to the other, and never to the network below.
//!
//! Everything else is below. A socket that listens, and one for datagrams, is there, too, since others may send to it. One that connects to an address of this machine finds the
//! socket of its sandbox that listens there, if there is one; if the budget has no room for one more, the connection is made below as any other. Datagrams that are
//! sent by loopback find the socket of the sandbox that has the address, if nobody shares it.

mod datagrams;

use super::{Datagram, Ends, NEAR_DATAGRAM_MAX, Network, Phase, Presence, Sending, Sent, readiness};
use crate::budget::{Budget, Share};
use crate::errno::{EADDRINUSE, EAGAIN, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, Result};
use crate::places::take_front;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::Range;
use datagrams::{Datagrams, Turn};

/// Bytes that wait in one direction, at most.
pub const ROOM: usize = 64 << 10;

/// Bytes that wait in one direction of any connection, for which there is always room.
const PIECE: usize = 4 << 10;

/// Ports of those that connect and do not say from which.
const PORTS: Range<u16> = 32_768..49_152;

/// An end of a connection.
#[derive(Debug)]
struct End {
    /// Number of the socket; 0: nobody has accepted the connection yet.
    number: Cell<u64>,
    ends: [SocketAddr; 2],
    peer: RefCell<Weak<End>>,
    /// Bytes that have come.
    bytes: RefCell<VecDeque<u8>>,
    /// Share of the budget for bytes that wait here. All of a connection is charged to whoever has made it, so none is charged for another that does not read.
    share: RefCell<Share>,
    /// The budget had no room for more when somebody wanted to write.
    is_cramped: Cell<bool>,
    /// It is the end of a socket that has listened.
    is_accepted: Cell<bool>,
    /// It has connected, and the socket that listens keeps as many connections as it may.
    is_hopeful: Cell<bool>,
    /// Nothing comes behind the bytes: the other side has said so.
    is_end: Cell<bool>,
    /// Nothing more is written: this side has said so.
    is_shut: Cell<bool>,
    /// The connection has broken off.
    is_reset: Cell<bool>,
    /// Bits of readiness that are to be told.
    watched: Cell<u32>,
}

/// A socket that listens.
#[derive(Debug)]
struct Listener {
    at: SocketAddr,
    backlog: usize,
    /// Connections that nobody has accepted. Those behind as many as it keeps are hopeful.
    waiting: VecDeque<Rc<End>>,
    watched: u32,
}

#[derive(Debug, Default)]
struct State {
    ends: BTreeMap<u64, Rc<End>>,
    listeners: BTreeMap<u64, Listener>,
    datagrams: Datagrams,
    /// Ends of the connections that were made here, each as the one has it who has made it.
    made: BTreeSet<[SocketAddr; 2]>,
    /// Numbers, and bits of readiness, that are to be told.
    due: VecDeque<(u64, u32)>,
    /// Set when something is to be told.
    is_due: Rc<Cell<bool>>,
    next_port: u16,
}

/// A network with connections of its own in front of another one.
pub struct Near {
    below: Rc<dyn Network>,
    budget: Budget,
    /// Bytes that wait in one direction, at most.
    room: usize,
    /// Bytes of datagrams that wait at a socket, at most.
    datagram_room: usize,
    state: RefCell<State>,
}

impl fmt::Debug for Near {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} connections in front of {:?}", self.state.borrow().ends.len(), self.below)
    }
}

impl End {
    fn new(number: u64, ends: [SocketAddr; 2], share: Share) -> Rc<End> {
        Rc::new(End {
            number: Cell::new(number),
            ends,
            peer: RefCell::default(),
            bytes: RefCell::default(),
            share: RefCell::new(share),
            is_cramped: Cell::new(false),
            is_hopeful: Cell::new(false),
            is_accepted: Cell::new(number == 0),
            is_end: Cell::new(false),
            is_shut: Cell::new(false),
            is_reset: Cell::new(false),
            watched: Cell::new(0),
        })
    }

    fn peer(&self) -> Option<Rc<End>> {
        self.peer.borrow().upgrade()
    }

    /// Bytes for which there is room here now, of so many. There is a place for each of them.
    fn room(&self, room: usize, wanted: usize) -> usize {
        let mut bytes = self.bytes.borrow_mut();
        let wanted = wanted.min(room.saturating_sub(bytes.len()));
        let mut share = self.share.borrow_mut();
        let needed = (bytes.len() + wanted).next_multiple_of(PIECE);
        if needed > share.bytes() && !share.resize(needed) {
            let mut more = share.bytes() + PIECE;
            while share.resize(more) {
                more += PIECE;
            }
        }
        let found = wanted.min(share.bytes().saturating_sub(bytes.len()));
        self.is_cramped.set(found < wanted);
        if bytes.capacity() < bytes.len() + found {
            // No more places than are charged.
            let more = share.bytes().saturating_sub(bytes.len());
            bytes.reserve_exact(more);
        }
        found
    }

    /// Whether there is room for something here.
    fn has_room(&self, room: usize) -> bool {
        let room = if self.is_cramped.get() { self.share.borrow().bytes() } else { room };
        self.bytes.borrow().len() < room
    }

    fn ready(&self, room: usize) -> u32 {
        if self.is_reset.get() {
            return readiness::READ | readiness::WRITE;
        }
        if self.is_hopeful.get() {
            return 0;
        }
        let can_read = self.is_end.get() || !self.bytes.borrow().is_empty();
        let can_write = self.peer().is_none_or(|peer| peer.has_room(room));
        (if can_read { readiness::READ } else { 0 }) | if can_write { readiness::WRITE } else { 0 }
    }
}

impl State {
    /// An end is ready for something.
    fn tell(&mut self, end: &End, events: u32) {
        let told = end.watched.get() & events;
        if told != 0 {
            end.watched.set(end.watched.get() & !told);
            self.push((end.number.get(), told));
        }
    }

    fn push(&mut self, told: (u64, u32)) {
        self.due.push_back(told);
        self.is_due.set(true);
    }

    /// An end is given up. Bytes that nobody has read make it a break.
    fn give_up(&mut self, end: &End) {
        let Some(peer) = end.peer() else { return };
        if end.is_hopeful.get() {
            // Nothing is left of it.
            self.listeners
                .values_mut()
                .for_each(|listener| listener.waiting.retain(|end| !Rc::ptr_eq(end, &peer)));
            return;
        }
        if end.bytes.borrow().is_empty() {
            peer.is_end.set(true);
        } else {
            peer.is_reset.set(true);
        }
        self.tell(&peer, readiness::READ | readiness::WRITE);
    }

    /// The next port from which there is no connection to an address, and at which nobody listens.
    fn port(&mut self, from: IpAddr, to: SocketAddr) -> Option<u16> {
        for _ in PORTS {
            let next = self.next_port.max(PORTS.start);
            self.next_port = if next + 1 < PORTS.end { next + 1 } else { PORTS.start };
            let is_heard = self.listeners.values().any(|listener| listener.at.port() == next);
            if !is_heard && !self.made.contains(&[SocketAddr::new(from, next), to]) {
                return Some(next);
            }
        }
        None
    }
}

impl Near {
    /// Connections in front of a network, whose bytes have shares of a budget. The flag is set when something is [to be told](Network::due).
    pub fn new(below: Rc<dyn Network>, budget: &Budget, is_due: Rc<Cell<bool>>) -> Near {
        let state = RefCell::new(State { is_due, ..State::default() });
        Near { below, budget: budget.clone(), room: ROOM, datagram_room: datagrams::ROOM, state }
    }

    /// Connections as by [`new`](Near::new), with so many bytes that may wait in one direction.
    #[cfg(test)]
    pub fn with_room(below: Rc<dyn Network>, budget: &Budget, is_due: Rc<Cell<bool>>, room: usize) -> Near {
        Near { room, ..Near::new(below, budget, is_due) }
    }

    fn end(&self, number: u64) -> Option<Rc<End>> {
        self.state.borrow().ends.get(&number).cloned()
    }

    /// The socket of this sandbox that listens at an address of this machine.
    fn listener(&self, to: SocketAddr) -> Option<u64> {
        let hears = |listener: &Listener| {
            listener.at.port() == to.port()
                && (listener.at.ip().is_unspecified() || listener.at.ip() == to.ip())
        };
        let found =
            self.state.borrow().listeners.iter().find(|(_, listener)| hears(listener)).map(|(at, _)| *at);
        found.filter(|_| self.below.has(to.ip()))
    }

    /// Connects a socket to one that listens here. None: it is to be done below.
    fn connect_here(&self, number: u64, from: SocketAddr, to: SocketAddr) -> Result<Option<()>> {
        let source = || if from.ip().is_unspecified() { self.below.source(to.ip()) } else { Some(from.ip()) };
        let is_taken =
            |at: IpAddr| self.state.borrow().made.contains(&[SocketAddr::new(at, from.port()), to]);
        if from.port() != 0 && source().is_some_and(is_taken) {
            return Err(EADDRINUSE);
        }
        let Some(listener) = self.listener(to) else { return Ok(None) };
        let (Some(source), Some(own), Some(far)) =
            (source(), self.budget.take(PIECE), self.budget.take(PIECE))
        else {
            return Ok(None);
        };
        let state = &mut *self.state.borrow_mut();
        let port = match from.port() {
            0 => state.port(source, to).ok_or(EADDRINUSE)?,
            port => port,
        };
        let from = SocketAddr::new(source, port);
        let (own, far) = (End::new(number, [from, to], own), End::new(0, [to, from], far));
        own.peer.replace(Rc::downgrade(&far));
        far.peer.replace(Rc::downgrade(&own));
        let Some(heard) = state.listeners.get_mut(&listener) else { return Ok(None) };
        // One more than the backlog says, like Linux.
        own.is_hopeful.set(heard.waiting.len() > heard.backlog);
        heard.waiting.push_back(far);
        let told = heard.watched & readiness::READ;
        heard.watched &= !told;
        if told != 0 {
            state.push((listener, told));
        }
        state.made.insert([from, to]);
        state.ends.insert(number, own);
        Ok(Some(()))
    }

    /// The socket here that a datagram is for, and its sender as that sees it. Other addresses of this machine than those of loopback are the network's to know.
    fn way(&self, number: u64, named: Option<IpAddr>, to: SocketAddr) -> Option<(u64, SocketAddr)> {
        let is_here = (to.ip().is_loopback() || self.is_lite(number)) && self.below.has(to.ip());
        is_here.then(|| self.state.borrow().datagrams.way(number, named, to)).flatten()
    }

    /// Whether a socket is one of UDP-Lite, which there is here alone.
    fn is_lite(&self, number: u64) -> bool {
        self.state.borrow().datagrams.is_lite(number)
    }

    /// A datagram of UDP-Lite that nobody has here: it is refused, or no way leads to where it goes.
    fn refuse(&self, number: u64, to: SocketAddr) -> Result<()> {
        if !self.below.has(to.ip()) {
            return Err(ENETUNREACH);
        }
        let state = &mut *self.state.borrow_mut();
        let told = state.datagrams.refuse(number, to)?;
        if told != 0 {
            state.push((number, told));
        }
        Ok(())
    }

    /// Gives a datagram to the socket here that it is for. Whether there is one; if it has no room, the datagram is lost.
    fn send_here(&self, number: u64, to: SocketAddr, bytes: &[u8], sent: &Sent) -> bool {
        let Some((receiver, from)) = self.way(number, sent.from, to) else { return false };
        let state = &mut *self.state.borrow_mut();
        let told = state.datagrams.push(receiver, (from, to), (bytes, sent), self.datagram_room);
        if told != 0 {
            state.push((receiver, told));
        }
        true
    }

    /// Whether datagrams that the network below sends go from an address anyway. It takes none from a program.
    fn is_source_below(&self, number: u64, from: IpAddr, to: SocketAddr) -> bool {
        match self.state.borrow().datagrams.address(number) {
            // It was told so.
            _ if to.ip().is_multicast() => true,
            Some(own) if !own.is_unspecified() && !own.is_multicast() => own == from,
            _ => self.below.source(to.ip()) == Some(from),
        }
    }

    /// An outcome of the network below: if it tells of a failure, it is known what has become of the datagrams that went there.
    fn settled<T>(&self, number: u64, outcome: Result<T>) -> Result<T> {
        if matches!(outcome, Err(ECONNREFUSED | EHOSTUNREACH)) {
            self.state.borrow_mut().datagrams.settle(number);
        }
        outcome
    }
}

impl Network for Near {
    fn presence(&self) -> Presence {
        self.below.presence()
    }
    fn source(&self, to: IpAddr) -> Option<IpAddr> {
        self.below.source(to)
    }
    fn has(&self, address: IpAddr) -> bool {
        self.below.has(address)
    }
    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        self.below.addresses()
    }
    fn router(&self) -> Option<Ipv4Addr> {
        self.below.router()
    }
    fn router_v6(&self) -> Option<Ipv6Addr> {
        self.below.router_v6()
    }
    fn card(&self) -> Option<[u8; 6]> {
        self.below.card()
    }
    fn bind(&self, number: u64, at: SocketAddr, is_shared: bool) -> Result<()> {
        self.below.bind(number, at, is_shared)?;
        self.state.borrow_mut().datagrams.bind(number, at, is_shared, &self.budget);
        Ok(())
    }

    fn bind_lite(&self, number: u64, at: SocketAddr) -> Result<()> {
        self.state.borrow_mut().datagrams.bind_lite(number, at, &self.budget);
        Ok(())
    }

    fn listen(&self, number: u64, at: SocketAddr, backlog: u16) -> Result<()> {
        self.below.listen(number, at, backlog)?;
        let listener = Listener { at, backlog: backlog.into(), waiting: VecDeque::new(), watched: 0 };
        self.state.borrow_mut().listeners.insert(number, listener);
        Ok(())
    }

    fn connect(&self, number: u64, from: SocketAddr, to: SocketAddr) -> Result<()> {
        match self.connect_here(number, from, to)? {
            Some(()) => Ok(()),
            None => self.below.connect(number, from, to),
        }
    }

    fn accept(&self, listener: u64, number: u64) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let heard = state.listeners.get_mut(&listener);
        let taken = heard.and_then(|heard| Some((heard.waiting.pop_front()?, heard)));
        let Some((end, heard)) = taken else { return self.below.accept(listener, number) };
        end.number.set(number);
        // One more is kept.
        let kept = heard.waiting.get(heard.backlog).and_then(|end| end.peer());
        state.ends.insert(number, end);
        if let Some(own) = kept.filter(|own| own.is_hopeful.replace(false)) {
            state.tell(&own, own.ready(self.room));
        }
        Ok(())
    }

    fn phase(&self, number: u64) -> Phase {
        match self.end(number) {
            Some(end) if end.is_hopeful.get() && end.is_reset.get() => Phase::Refused,
            Some(end) if end.is_hopeful.get() => Phase::Connecting,
            Some(_) => Phase::Open,
            None => self.below.phase(number),
        }
    }

    fn ends(&self, number: u64) -> Ends {
        match self.end(number) {
            Some(end) => end.ends.map(Some),
            None => self.below.ends(number),
        }
    }

    fn write(&self, number: u64, from: &[u8]) -> Result<usize> {
        let Some(end) = self.end(number) else { return self.below.write(number, from) };
        if end.is_reset.get() || end.is_shut.get() {
            return Err(ECONNRESET);
        }
        let Some(peer) = end.peer() else {
            // The other side takes what comes behind its end for a reason to break off.
            end.is_reset.set(true);
            self.state.borrow_mut().tell(&end, readiness::READ | readiness::WRITE);
            return Ok(from.len());
        };
        let count = peer.room(self.room, from.len());
        let Some(bytes) = from.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return if from.is_empty() { Ok(0) } else { Err(EAGAIN) };
        };
        peer.bytes.borrow_mut().extend(bytes);
        self.state.borrow_mut().tell(&peer, readiness::READ);
        Ok(count)
    }

    fn read(&self, number: u64, len_max: usize) -> Result<Vec<u8>> {
        let Some(end) = self.end(number) else { return self.below.read(number, len_max) };
        let read = take_front(&mut end.bytes.borrow_mut(), len_max);
        if read.is_empty() {
            return match () {
                () if end.is_end.get() => Ok(read),
                () if end.is_reset.get() => Err(ECONNRESET),
                () => Err(EAGAIN),
            };
        }
        if end.bytes.borrow().is_empty() {
            // Room that was used for once is given back.
            end.share.borrow_mut().resize(PIECE);
            end.bytes.borrow_mut().shrink_to(PIECE);
            end.is_cramped.set(false);
        }
        if let Some(peer) = end.peer() {
            self.state.borrow_mut().tell(&peer, readiness::WRITE);
        }
        Ok(read)
    }

    fn shut_down(&self, number: u64) -> Result<()> {
        let Some(end) = self.end(number) else { return self.below.shut_down(number) };
        end.is_shut.set(true);
        if let Some(peer) = end.peer() {
            peer.is_end.set(true);
            self.state.borrow_mut().tell(&peer, readiness::READ);
        }
        Ok(())
    }

    fn connect_datagrams(&self, number: u64, to: Option<SocketAddr>) -> Result<()> {
        if !self.is_lite(number) {
            self.below.connect_datagrams(number, to)?;
        }
        self.state.borrow_mut().datagrams.connect(number, to);
        Ok(())
    }
    fn set_member(&self, number: u64, group: IpAddr, is_member: bool) -> Result<()> {
        self.below.set_member(number, group, is_member)
    }
    fn set_sending(&self, number: u64, sending: Sending) -> Result<()> {
        self.below.set_sending(number, sending)
    }
    fn datagram_max(&self, number: u64, to: SocketAddr) -> usize {
        let least = self.below.datagram_max(number, to);
        if self.way(number, None, to).is_some() || self.is_lite(number) {
            NEAR_DATAGRAM_MAX[usize::from(to.is_ipv6())]
        } else {
            least
        }
    }
    fn send_to(&self, number: u64, to: SocketAddr, bytes: &[u8], sent: &Sent) -> Result<()> {
        if self.send_here(number, to, bytes, sent) {
            return Ok(());
        }
        if self.is_lite(number) {
            return self.refuse(number, to);
        }
        if sent.from.is_some_and(|from| !self.is_source_below(number, from, to)) {
            return Err(ENETUNREACH);
        }
        self.state.borrow_mut().datagrams.send_below(number, to);
        self.settled(number, self.below.send_to(number, to, bytes, sent))
    }
    fn receive_from(&self, number: u64) -> Result<Datagram> {
        let turn = self.state.borrow_mut().datagrams.turn(number);
        match turn {
            Turn::Refused => return Err(ECONNREFUSED),
            Turn::Below if self.below.ready(number) & readiness::READ != 0 => {
                match self.below.receive_from(number) {
                    Err(EAGAIN) => {}
                    outcome => return self.settled(number, outcome),
                }
            }
            Turn::Here | Turn::Below => {}
        }
        let taken = self.state.borrow_mut().datagrams.take(number);
        match taken {
            Some(taken) => Ok(taken),
            None if self.is_lite(number) => Err(EAGAIN),
            None => self.settled(number, self.below.receive_from(number)),
        }
    }
    fn open_echo(&self, number: u64) -> Result<()> {
        self.below.open_echo(number)
    }
    fn ask(&self, number: u64, to: IpAddr, request: (u16, &[u8])) -> Result<()> {
        self.below.ask(number, to, request)
    }
    fn answer(&self, number: u64) -> Result<(IpAddr, u16, Vec<u8>)> {
        self.below.answer(number)
    }

    fn ready(&self, number: u64) -> u32 {
        let state = self.state.borrow();
        if let Some(end) = state.ends.get(&number) {
            return end.ready(self.room);
        }
        if let Some(ready) = state.datagrams.ready(number, || self.below.ready(number)) {
            return ready;
        }
        let has_waiting = state.listeners.get(&number).is_some_and(|listener| !listener.waiting.is_empty());
        if has_waiting { readiness::READ } else { self.below.ready(number) }
    }

    fn watch(&self, number: u64, events: u32) {
        let state = &mut *self.state.borrow_mut();
        if let Some(end) = state.ends.get(&number).cloned() {
            end.watched.set(end.watched.get() | events);
            return state.tell(&end, end.ready(self.room));
        }
        if let Some(listener) = state.listeners.get_mut(&number) {
            if !listener.waiting.is_empty() {
                return state.push((number, events & readiness::READ));
            }
            listener.watched |= events;
        }
        let [told, left] = state.datagrams.watch(number, events);
        if told != 0 {
            state.push((number, told));
        }
        if left != 0 {
            self.below.watch(number, left);
        }
    }

    fn is_scarce(&self, number: u64) -> bool {
        !self.state.borrow().ends.contains_key(&number)
    }

    fn due(&self) -> Option<(u64, u32)> {
        self.state.borrow_mut().due.pop_front()
    }

    fn close(&self, number: u64) {
        let state = &mut *self.state.borrow_mut();
        if let Some(end) = state.ends.remove(&number) {
            if !end.is_accepted.get() {
                state.made.remove(&end.ends);
            }
            state.give_up(&end);
            return;
        }
        state.datagrams.close(number);
        for end in state.listeners.remove(&number).map(|listener| listener.waiting).unwrap_or_default() {
            if let Some(peer) = end.peer() {
                // The listener ends without having accepted it.
                peer.is_reset.set(true);
                state.tell(&peer, readiness::READ | readiness::WRITE);
            }
        }
        self.below.close(number);
    }
}

#[cfg(test)]
mod tests;
