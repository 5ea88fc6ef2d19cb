//! Datagrams.

use super::echoes::for_echoes;
use super::table::{Entry, Slot};
use super::{DATAGRAM_MAX, Id, Refusal, Sending, listened};
use crate::refusals::Refused;
use crate::stack::Stack;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{icmp, udp};
use smoltcp::wire::{IpAddress, IpEndpoint, IpListenEndpoint};

/// Bytes and datagrams that a socket for these keeps each way.
pub(super) const DATAGRAM_BYTES: usize = 8 << 10;
/// See [`DATAGRAM_BYTES`].
pub(super) const DATAGRAMS: usize = 16;

/// A socket for datagrams.
pub(super) fn for_datagrams() -> udp::Socket<'static> {
    let buffer =
        || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; DATAGRAMS], vec![0; DATAGRAM_BYTES]);
    udp::Socket::new(buffer(), buffer())
}

/// The end from which a datagram has come.
fn sender(about: &udp::UdpMetadata) -> SocketAddr {
    SocketAddr::new(about.endpoint.addr.into(), about.endpoint.port)
}

/// The end from which a socket sends. Nothing is sent from a group.
fn sends_from(at: IpListenEndpoint) -> IpListenEndpoint {
    IpListenEndpoint { addr: at.addr.filter(|address| !address.is_multicast()), ..at }
}

/// Fate of the last datagram to the end that a socket is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// There was none, or its failure has been told.
    Settled,
    /// It is under way, or has arrived.
    Sent,
    /// It was refused or dropped, and that is to be told.
    Failed(Refusal),
}

/// A socket for datagrams.
pub(super) struct Datagrams {
    pub handle: SocketHandle,
    /// Where it takes datagrams, which may be a group; port 0: it is not bound.
    pub at: IpListenEndpoint,
    /// Whether others that say so, too, may have the port.
    pub is_shared: bool,
    /// Whether it was bound before another.
    pub order: u64,
    /// Order of its owner's first socket of those that have had the port one after the other: whether he has had it before another.
    pub since: u64,
    /// Groups that it has joined.
    pub groups: Vec<IpAddr>,
    /// How it sends to groups.
    pub sending: Sending,
    /// The end that it is connected to.
    peer: Option<SocketAddr>,
    fate: Fate,
    /// Datagrams that were dealt to it, and their bytes.
    kept: VecDeque<(SocketAddr, Vec<u8>)>,
    kept_bytes: usize,
}

impl Datagrams {
    /// One that is connected to nobody.
    pub fn new(handle: SocketHandle) -> Datagrams {
        Datagrams {
            handle,
            at: IpListenEndpoint { addr: None, port: 0 },
            is_shared: false,
            order: 0,
            since: 0,
            groups: Vec::new(),
            sending: Sending::default(),
            peer: None,
            fate: Fate::Settled,
            kept: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    /// Whether it takes what is for a group alone.
    pub fn is_for_group(&self) -> bool {
        self.at.addr.is_some_and(|own| own.is_multicast())
    }

    /// Whether it is connected to an end.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Address of this machine from which it sends to another one; the one that is none means any.
    fn origin(&self, to: IpAddr) -> IpAddr {
        let of_groups = self.sending.from;
        if to.is_multicast() && !of_groups.is_unspecified() && of_groups.is_ipv4() == to.is_ipv4() {
            return of_groups;
        }
        sends_from(self.at).addr.map_or(Ipv6Addr::UNSPECIFIED.into(), IpAddr::from)
    }

    /// Whether it receives from an end.
    pub fn hears(&self, from: SocketAddr) -> bool {
        self.peer.is_none_or(|peer| peer == from)
    }

    /// Keeps a datagram that was dealt to it, if there is room.
    pub fn keep(&mut self, from: SocketAddr, bytes: &[u8]) {
        if self.kept.len() < DATAGRAMS && self.kept_bytes + bytes.len() <= DATAGRAM_BYTES {
            self.kept_bytes += bytes.len();
            self.kept.push_back((from, bytes.into()));
        }
    }

    /// Whether a datagram was dealt to it.
    pub fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Takes one of these.
    fn take_kept(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let (from, bytes) = self.kept.pop_front()?;
        self.kept_bytes -= bytes.len();
        Some((from, bytes))
    }

    /// Says whether it is to be told that a datagram was refused or dropped.
    pub fn has_failed(&self) -> bool {
        matches!(self.fate, Fate::Failed(_))
    }

    /// Tells of a failure, once.
    fn tell(&mut self) -> Result<(), Refusal> {
        if let Fate::Failed(why) = self.fate {
            self.fate = Fate::Settled;
            return Err(why);
        }
        Ok(())
    }

    /// Says whether it is to hear of a failure: it is connected to that end, and has sent something there since the last one. So nobody who only guesses its port
    /// tells it more refusals than it has sent datagrams.
    fn hears_of(&self, refused: &Refused) -> bool {
        let is_there = self.peer == Some(refused.to) && self.at.port == refused.from.port();
        let is_from = |own: IpAddress| own.is_multicast() || own == refused.from.ip().into();
        self.fate == Fate::Sent && is_there && self.at.addr.is_none_or(is_from)
    }
}

impl Stack {
    pub(super) fn udp(&mut self, id: Id) -> Result<(&mut udp::Socket<'static>, &mut Datagrams), Refusal> {
        match self.table.slots.get_mut(&id).ok_or(Refusal::Closed)? {
            Slot { entry: Entry::Udp(own), .. } => Ok((self.sockets.get_mut(own.handle), own)),
            _ => Err(Refusal::Bad),
        }
    }

    /// Tells sockets of datagrams that were refused or dropped, and of connections that are not made.
    pub(crate) fn follow_refusals(&mut self) {
        self.end_silent();
        for refused in self.wire.refusals.take() {
            for slot in self.table.slots.values_mut() {
                let Entry::Udp(own) = &mut slot.entry else { continue };
                if own.hears_of(&refused) {
                    own.fate = Fate::Failed(refused.why);
                }
            }
        }
    }

    /// Drops what sockets have not sent, since addresses of this machine have gone, or a router: the crate would wait for a way to come back, and send nothing else meanwhile.
    pub(crate) fn drop_unsent(&mut self) {
        for slot in self.table.slots.values_mut() {
            match &mut slot.entry {
                Entry::Udp(own) if own.at.port != 0 => {
                    let socket = self.sockets.get_mut::<udp::Socket>(own.handle);
                    while let Ok((bytes, about)) = socket.recv() {
                        if own.takes_from_stack(about.local_address) {
                            own.keep(sender(&about), bytes);
                        }
                    }
                    socket.close();
                    // It cannot fail: the port is one, and the socket is closed.
                    let _ = socket.bind(sends_from(own.at));
                }
                Entry::Echo(handle, ident) if self.sockets.get::<icmp::Socket>(*handle).send_queue() > 0 => {
                    if let Ok(socket) = for_echoes(*ident) {
                        drop(self.sockets.remove(*handle));
                        *handle = self.sockets.add(socket);
                    }
                }
                _ => {}
            }
        }
    }

    /// Connects a socket to an end: it receives from there alone, and is told once of a datagram to there that was refused or dropped. `None`: it is connected to nobody.
    pub fn connect_datagrams(&mut self, id: Id, to: Option<SocketAddr>) -> Result<(), Refusal> {
        if let Some(to) = to {
            if to.port() == 0 {
                return Err(Refusal::Bad);
            }
            let from = self.udp(id)?.1.origin(to.ip());
            self.leads(from, to.ip())?;
            self.bind_any(id)?;
        }
        let (_, own) = self.udp(id)?;
        (own.peer, own.fate) = (to, Fate::Settled);
        Ok(())
    }

    /// Gives a socket a port, if it has none.
    fn bind_any(&mut self, id: Id) -> Result<(), Refusal> {
        if self.udp(id)?.0.is_open() {
            return Ok(());
        }
        self.bind(id, SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Takes datagrams for an address and a port; for any port, if that is 0. With the address of a group it takes what is for that alone. [`Refusal::Bad`]: this machine does not have the address.
    pub fn bind(&mut self, id: Id, at: SocketAddr) -> Result<(), Refusal> {
        self.bind_as(id, at, false)
    }

    /// Takes datagrams for an address and a port that others may share, if they say so, too. What is for a group is for all that have joined it, and what is for all
    /// machines is for all of them. A socket that has them alone shares them from now on. Any other datagram is for one: of the sockets of the owner that has had the port first, and has it still, the one that is connected to the sender, or the first.
    pub fn share(&mut self, id: Id, at: SocketAddr) -> Result<(), Refusal> {
        self.bind_as(id, at, true)
    }

    fn bind_as(&mut self, id: Id, at: SocketAddr, is_shared: bool) -> Result<(), Refusal> {
        self.udp(id)?;
        if !self.may_bind(at.ip()) {
            return Err(Refusal::Bad);
        }
        let port = match at.port() {
            0 => self.table.free_port(&self.sockets, true)?,
            port => port,
        };
        let at = listened(at, port);
        let (socket, own) = self.udp(id)?;
        if is_shared && socket.is_open() && own.at == at {
            own.is_shared = true;
            self.hold_shared();
            return Ok(());
        }
        if self.table.has_unshared(at, is_shared) {
            return Err(Refusal::InUse);
        }
        let order = self.table.order();
        let since = self.table.since(self.owner(id)?, at).unwrap_or(order);
        let (socket, own) = self.udp(id)?;
        socket.bind(sends_from(at)).map_err(|_| Refusal::Bad)?;
        (own.at, own.is_shared) = (at, is_shared);
        (own.order, own.since) = (order, since);
        self.hold_shared();
        Ok(())
    }

    /// Sends a datagram. [`Refusal::Refused`], [`Refusal::Silent`]: an earlier one has failed, and this one is not sent.
    pub fn send_to(&mut self, id: Id, to: SocketAddr, bytes: &[u8]) -> Result<(), Refusal> {
        let longest = if to.is_ipv4() { DATAGRAM_MAX } else { DATAGRAM_MAX - 20 };
        if to.port() == 0 || bytes.len() > longest {
            return Err(Refusal::Bad);
        }
        let own = self.udp(id)?.1;
        own.tell()?;
        let (from, sending) = (own.origin(to.ip()), own.sending);
        self.leads(from, to.ip())?;
        self.bind_any(id)?;
        self.seek(id, to.ip());
        let from = self.noted(from, to.ip(), sending.passage);
        let (socket, own) = self.udp(id)?;
        let mut about = udp::UdpMetadata::from(IpEndpoint::from(to));
        about.local_address = Some(IpAddress::from(from)).filter(|from| !from.is_unspecified());
        if to.ip().is_multicast() {
            about.meta.id = sending.passage.id();
        }
        match socket.send_slice(bytes, about) {
            Ok(()) => {
                if own.peer == Some(to) {
                    own.fate = Fate::Sent;
                }
                Ok(())
            }
            Err(udp::SendError::BufferFull) => Err(Refusal::Again),
            Err(udp::SendError::Unaddressable) => Err(Refusal::Bad),
        }
    }

    /// Takes a datagram: from whom, and how long it is. What does not fit is lost. [`Refusal::Refused`], [`Refusal::Silent`]: one that was sent has failed.
    pub fn receive_from(&mut self, id: Id, to: &mut [u8]) -> Result<(SocketAddr, usize), Refusal> {
        let (socket, own) = self.udp(id)?;
        own.tell()?;
        let mut copied = |bytes: &[u8]| {
            let len = bytes.len().min(to.len());
            to[..len].copy_from_slice(&bytes[..len]);
            len
        };
        loop {
            let (from, len) = if let Some((from, bytes)) = own.take_kept() {
                (from, copied(&bytes))
            } else {
                let (bytes, about) = socket.recv().map_err(|_| Refusal::Again)?;
                if !own.takes_from_stack(about.local_address) {
                    continue;
                }
                (sender(&about), copied(bytes))
            };
            // Others may have sent something before it was connected, or since then.
            if own.hears(from) {
                return Ok((from, len));
            }
        }
    }
}
