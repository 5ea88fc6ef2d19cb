//! Echo requests, and their answers.

use super::datagrams::{DATAGRAM_BYTES, DATAGRAMS};
use super::table::Entry;
use super::{DATAGRAM_MAX, Id, Refusal};
use crate::stack::Stack;
use alloc::vec;
use core::net::IpAddr;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress};

/// A socket for echo requests with this number.
pub(super) fn for_echoes(ident: u16) -> Result<icmp::Socket<'static>, Refusal> {
    let buffer =
        || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; DATAGRAMS], vec![0; DATAGRAM_BYTES]);
    let mut socket = icmp::Socket::new(buffer(), buffer());
    socket.bind(icmp::Endpoint::Ident(ident)).map_err(|_| Refusal::Bad)?;
    Ok(socket)
}

impl Stack {
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
        self.seek(id, to);
        Ok(())
    }

    /// Takes the answer to an echo request: from whom, the request's number, and how many bytes came back. What does not fit is lost.
    pub fn echoed(&mut self, id: Id, to: &mut [u8]) -> Result<(IpAddr, u16, usize), Refusal> {
        let Entry::Echo(handle, _) = *self.entry(id)? else { return Err(Refusal::Bad) };
        let socket = self.sockets.get_mut::<icmp::Socket>(handle);
        loop {
            let (bytes, from) = socket.recv().map_err(|_| Refusal::Again)?;
            // A request to this machine itself comes by the same socket, before its answer.
            if let Some((number, data)) = answer_of(bytes, from) {
                let len = data.len().min(to.len());
                to[..len].copy_from_slice(&data[..len]);
                return Ok((from.into(), number, len));
            }
        }
    }
}

/// Number and bytes of an answer. `None` if the message is none.
fn answer_of(bytes: &[u8], from: IpAddress) -> Option<(u16, &[u8])> {
    match from {
        IpAddress::Ipv4(_) => {
            let packet = Icmpv4Packet::new_checked(bytes).ok()?;
            match Icmpv4Repr::parse(&packet, &Default::default()) {
                Ok(Icmpv4Repr::EchoReply { seq_no, data, .. }) => Some((seq_no, data)),
                _ => None,
            }
        }
        // The socket has checked it; type, then after six bytes the number.
        IpAddress::Ipv6(_) => match bytes {
            [129, _, _, _, _, _, high, low, data @ ..] => Some((u16::from_be_bytes([*high, *low]), data)),
            _ => None,
        },
    }
}

fn refused_echo(error: icmp::SendError) -> Refusal {
    match error {
        icmp::SendError::BufferFull => Refusal::Again,
        icmp::SendError::Unaddressable => Refusal::Bad,
    }
}
