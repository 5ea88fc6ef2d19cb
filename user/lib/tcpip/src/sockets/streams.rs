//! Connections, and listeners, which hand them out.

use super::table::{Entry, Slot};
use super::{BACKLOG_MAX, Id, Refusal, STREAM_BYTES, State, listened};
use crate::queues::Place;
use crate::secrets::has_ends;
use crate::stack::Stack;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{Socket, tcp};
use smoltcp::time::Duration;
use smoltcp::wire::{IpAddress, IpEndpoint};

/// How long the other side may be silent before a connection is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a connection is idle until the other side is asked whether it is there. It is asked twice before its silence is too long.
const IDLE_MAX: Duration = Duration::from_secs(25);

/// A socket for a connection.
pub(super) fn stream() -> tcp::Socket<'static> {
    let mut socket = tcp::Socket::new(
        tcp::SocketBuffer::new(vec![0; STREAM_BYTES]),
        tcp::SocketBuffer::new(vec![0; STREAM_BYTES]),
    );
    socket.set_timeout(Some(SILENCE_MAX));
    // Without it the stack gives up a connection that nobody needs for so long, since it counts all silence.
    socket.set_keep_alive(Some(IDLE_MAX));
    socket
}

/// State of a connection.
pub(super) fn state_of(socket: &tcp::Socket) -> State {
    match socket.state() {
        tcp::State::Closed | tcp::State::TimeWait | tcp::State::Listen => State::Closed,
        tcp::State::SynSent | tcp::State::SynReceived => State::Connecting,
        _ => State::Open,
    }
}

/// Whether a listener's socket has a connection to hand out.
pub(super) fn is_connected(socket: &tcp::Socket) -> bool {
    state_of(socket) == State::Open
}

/// A connection, of which several things are asked.
pub struct Connection<'a>(&'a mut tcp::Socket<'static>);

impl Connection<'_> {
    fn is_begun(&self) -> bool {
        state_of(self.0) == State::Connecting
    }

    /// Lets `fill` write to a part of the room for bytes that are to be sent, and say how many it wrote. It is not called where there is none.
    pub fn send(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refusal> {
        if self.is_begun() || self.0.may_send() && !self.0.can_send() {
            return Err(Refusal::Again);
        }
        let filled = self.0.send(|room| (fill(room).min(room.len()), ()));
        filled.map_err(|tcp::SendError::InvalidState| Refusal::Closed)
    }

    /// Lets `take` look at a part of what has come, and say how many bytes of it are not needed any more. It is not called where nothing has.
    pub fn receive(&mut self, take: impl FnOnce(&[u8]) -> usize) {
        if self.0.can_recv() {
            // It cannot fail: there is something.
            let _ = self.0.recv(|bytes| (take(bytes).min(bytes.len()), ()));
        }
    }

    /// Whether something has come.
    pub fn has_received(&self) -> bool {
        self.0.can_recv()
    }

    /// Whether all has been received that there will ever be.
    pub fn is_over(&self) -> bool {
        !self.is_begun() && !self.0.may_recv()
    }

    /// Whether nothing can be sent any more, however long somebody waits.
    pub fn is_shut(&self) -> bool {
        !self.is_begun() && !self.0.may_send()
    }

    /// Whether the other side may wait for room: more than half of what is kept for reading has come. When less has, the other side knows of enough room.
    pub fn is_crowded(&self) -> bool {
        self.0.recv_queue() > self.0.recv_capacity() / 2
    }
}

impl Stack {
    fn tcp(&mut self, id: Id) -> Result<&mut tcp::Socket<'static>, Refusal> {
        match *self.entry(id)? {
            Entry::Tcp(handle) => Ok(self.sockets.get_mut(handle)),
            _ => Err(Refusal::Bad),
        }
    }

    /// A listener at a port, with room for so many connections that nobody has accepted, or for fewer if the owner gets not twice as many sockets: so many are left
    /// for connections that it accepts. Its owner may have connections there already.
    pub fn listen(&mut self, owner: u64, at: SocketAddr, backlog: usize) -> Result<Id, Refusal> {
        let wanted = backlog.clamp(1, BACKLOG_MAX);
        let backlog = (self.table.room(owner, 2 * wanted)? / 2).max(1);
        let port = match at.port() {
            0 => self.table.free_port(&self.sockets, false)?,
            port => port,
        };
        let at = listened(at, port);
        if self.table.listens(at) || self.table.is_used_by_others(&self.sockets, at, owner) {
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

    /// Begins a connection, from a port that nobody has.
    pub fn connect(&mut self, id: Id, to: SocketAddr) -> Result<(), Refusal> {
        self.connect_from(id, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), to)
    }

    /// Begins a connection from an address and a port of this machine. The address that is none, and port 0, mean any.
    ///
    /// A port is in use if another owner has it for anything. Its own owner may have it for connections to other ends, and for a listener.
    pub fn connect_from(&mut self, id: Id, from: SocketAddr, to: SocketAddr) -> Result<(), Refusal> {
        let address = self.beginning(from.ip(), to.ip())?;
        if to.port() == 0 || state_of(self.tcp(id)?) != State::Closed {
            return Err(Refusal::Bad);
        }
        let Entry::Tcp(handle) = *self.entry(id)? else { return Err(Refusal::Bad) };
        let (peer, to) = (to.ip(), IpEndpoint::from(to));
        let from = match from.port() {
            0 => IpEndpoint::new(address, self.table.free_port(&self.sockets, false)?),
            port => self.unused(id, IpEndpoint::new(address, port), to)?,
        };
        let mut once = self.once_for(from, to);
        let socket = self.sockets.get_mut::<tcp::Socket>(handle);
        socket.connect(once.context(), to, from).map_err(|_| Refusal::Unreachable)?;
        if let Some(slot) = self.table.slots.get_mut(&id) {
            slot.is_silent = false;
        }
        self.seek(id, peer);
        Ok(())
    }

    /// Ends connections whose first segments were dropped, since nobody answers where they were to go.
    pub(super) fn end_silent(&mut self) {
        for [own, other] in self.wire.refusals.take_begun() {
            for slot in self.table.slots.values_mut() {
                let Entry::Tcp(handle) = slot.entry else { continue };
                let socket = self.sockets.get_mut::<tcp::Socket>(handle);
                if socket.state() == tcp::State::SynSent && has_ends(socket, own, other) {
                    socket.abort();
                    slot.is_silent = true;
                }
            }
        }
    }

    /// The address of this machine from which a connection begins. The address that is none means any.
    fn beginning(&self, from: IpAddr, to: IpAddr) -> Result<IpAddress, Refusal> {
        let is_any = from.is_unspecified();
        if !is_any && !self.is_own(from.into()) {
            return Err(Refusal::Bad);
        }
        self.leads(from, to)?;
        // No connection is one with many.
        if self.is_for_many(to) {
            return Err(Refusal::Unreachable);
        }
        let own = if is_any { self.interface.get_source_address(&to.into()) } else { Some(from.into()) };
        own.ok_or(Refusal::Unreachable)
    }

    /// This end of a connection, if it can be had.
    fn unused(&self, id: Id, from: IpEndpoint, to: IpEndpoint) -> Result<IpEndpoint, Refusal> {
        let owner = self.owner(id)?;
        let is_there = self.sockets.iter().any(|(_, socket)| match socket {
            Socket::Tcp(socket) => socket.state() != tcp::State::Closed && has_ends(socket, from, to),
            _ => false,
        });
        let is_anothers = self.table.has_of_others(&self.sockets, from.into(), owner);
        if from == to || is_there || is_anothers { Err(Refusal::InUse) } else { Ok(from) }
    }

    /// State of a connection, and its ends, if it has them: this one and the other. [`Refusal::Silent`]: it was given up, since nobody answers at the address that it was to.
    pub fn state(&mut self, id: Id) -> Result<(State, [Option<SocketAddr>; 2]), Refusal> {
        let slot = self.table.slots.get(&id).ok_or(Refusal::Closed)?;
        let Entry::Tcp(handle) = slot.entry else { return Err(Refusal::Bad) };
        if slot.is_silent {
            return Err(Refusal::Silent);
        }
        let socket = self.sockets.get::<tcp::Socket>(handle);
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

    /// A connection, for several looks at it.
    pub fn connection(&mut self, id: Id) -> Result<Connection<'_>, Refusal> {
        self.tcp(id).map(Connection)
    }

    /// Whether the other side of a connection may wait for room: see [`Connection::is_crowded`].
    pub fn is_crowded(&mut self, id: Id) -> bool {
        self.connection(id).is_ok_and(|connection| connection.is_crowded())
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
    pub(super) fn end(&mut self, handle: SocketHandle) {
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
}
