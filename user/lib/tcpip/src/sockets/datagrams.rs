//! Datagrams, and echo requests.

use super::table::Entry;
use super::{DATAGRAM_MAX, Id, Refusal, listened};
use crate::stack::Stack;
use alloc::vec;
use core::net::{IpAddr, SocketAddr};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{icmp, udp};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress, IpEndpoint};

/// Bytes and datagrams that a socket for these keeps each way.
const DATAGRAM_BYTES: usize = 8 << 10;
/// See [`DATAGRAM_BYTES`].
const DATAGRAMS: usize = 16;

/// A socket for datagrams.
pub(super) fn for_datagrams() -> udp::Socket<'static> {
    let buffer =
        || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; DATAGRAMS], vec![0; DATAGRAM_BYTES]);
    udp::Socket::new(buffer(), buffer())
}

/// A socket for echo requests with this number.
pub(super) fn for_echoes(ident: u16) -> Result<icmp::Socket<'static>, Refusal> {
    let buffer =
        || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; DATAGRAMS], vec![0; DATAGRAM_BYTES]);
    let mut socket = icmp::Socket::new(buffer(), buffer());
    socket.bind(icmp::Endpoint::Ident(ident)).map_err(|_| Refusal::Bad)?;
    Ok(socket)
}

impl Stack {
    fn udp(&mut self, id: Id) -> Result<(&mut udp::Socket<'static>, SocketHandle), Refusal> {
        match *self.entry(id)? {
            Entry::Udp(handle) => Ok((self.sockets.get_mut(handle), handle)),
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
