//! Datagrams.

use super::table::{Entry, Slot};
use super::{DATAGRAM_MAX, Id, Refusal, listened};
use crate::refusals::Refused;
use crate::stack::Stack;
use alloc::vec;
use core::net::SocketAddr;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::{IpEndpoint, IpListenEndpoint};

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

/// What has become of the last datagram to the end that a socket is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// There was none, or its refusal has been told.
    Settled,
    /// It is under way, or has arrived.
    Sent,
    /// It was refused, and that is to be told.
    Refused,
}

/// A socket for datagrams.
pub(super) struct Datagrams {
    pub handle: SocketHandle,
    /// The end that it is connected to.
    peer: Option<SocketAddr>,
    fate: Fate,
}

impl Datagrams {
    /// One that is connected to nobody.
    pub fn new(handle: SocketHandle) -> Datagrams {
        Datagrams { handle, peer: None, fate: Fate::Settled }
    }

    /// Whether it is to be told that a datagram was refused.
    pub fn is_refused(&self) -> bool {
        self.fate == Fate::Refused
    }

    /// Tells of a refusal, once.
    fn tell(&mut self) -> Result<(), Refusal> {
        if self.is_refused() {
            self.fate = Fate::Settled;
            return Err(Refusal::Refused);
        }
        Ok(())
    }

    /// Whether it is to hear of a refusal: it is connected to that end, and has sent something there since the last one. So nobody who only guesses its port
    /// tells it more refusals than it has sent datagrams.
    fn hears_of(&self, at: IpListenEndpoint, refused: &Refused) -> bool {
        let is_there = self.peer == Some(refused.to) && at.port == refused.from.port();
        self.fate == Fate::Sent && is_there && at.addr.is_none_or(|own| own == refused.from.ip().into())
    }
}

impl Stack {
    fn udp(&mut self, id: Id) -> Result<(&mut udp::Socket<'static>, &mut Datagrams), Refusal> {
        match self.table.slots.get_mut(&id).ok_or(Refusal::Closed)? {
            Slot { entry: Entry::Udp(own), .. } => Ok((self.sockets.get_mut(own.handle), own)),
            _ => Err(Refusal::Bad),
        }
    }

    /// Tells sockets of datagrams that were refused.
    pub(crate) fn follow_refusals(&mut self) {
        for refused in self.wire.refusals.take() {
            for slot in self.table.slots.values_mut() {
                let Entry::Udp(own) = &mut slot.entry else { continue };
                if own.hears_of(self.sockets.get::<udp::Socket>(own.handle).endpoint(), &refused) {
                    own.fate = Fate::Refused;
                }
            }
        }
    }

    /// Connects a socket to an end: it receives from there alone, and is told once of a datagram to there that was refused. `None`: it is connected to nobody.
    pub fn connect_datagrams(&mut self, id: Id, to: Option<SocketAddr>) -> Result<(), Refusal> {
        if let Some(to) = to {
            if to.port() == 0 {
                return Err(Refusal::Bad);
            }
            self.reaches(to.ip())?;
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

    /// Sends a datagram. [`Refusal::Refused`]: an earlier one was, and this one is not sent.
    pub fn send_to(&mut self, id: Id, to: SocketAddr, bytes: &[u8]) -> Result<(), Refusal> {
        let longest = if to.is_ipv4() { DATAGRAM_MAX } else { DATAGRAM_MAX - 20 };
        if to.port() == 0 || bytes.len() > longest {
            return Err(Refusal::Bad);
        }
        self.udp(id)?.1.tell()?;
        self.reaches(to.ip())?;
        self.bind_any(id)?;
        let (socket, own) = self.udp(id)?;
        match socket.send_slice(bytes, IpEndpoint::from(to)) {
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

    /// Takes a datagram: from whom, and how long it is. What does not fit is lost. [`Refusal::Refused`]: one that was sent was refused.
    pub fn receive_from(&mut self, id: Id, to: &mut [u8]) -> Result<(SocketAddr, usize), Refusal> {
        let (socket, own) = self.udp(id)?;
        own.tell()?;
        loop {
            let (bytes, about) = socket.recv().map_err(|_| Refusal::Again)?;
            let from = SocketAddr::new(about.endpoint.addr.into(), about.endpoint.port);
            // Others may have sent something before it was connected, or since then.
            if own.peer.is_some_and(|peer| peer != from) {
                continue;
            }
            let len = bytes.len().min(to.len());
            to[..len].copy_from_slice(&bytes[..len]);
            return Ok((from, len));
        }
    }
}
