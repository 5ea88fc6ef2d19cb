//! Numbers of the crate's that others must not guess: with which a connection begins, and those of a question for a name.
//!
//! `smoltcp` 0.14 takes all of them from one generator of 64 bits, and shows its numbers: who has begun a few connections with this machine knows its state, and so all numbers that come later, with which he can answer
//! a question in a server's place, or send bytes in a peer's. It has one generator for each interface, and no way to give it another seed. So the stack's own interface draws none of these numbers. Each is drawn by an interface that has
//! a seed of its own, knows the same addresses, and is gone afterwards.
//!
//! A segment that begins a connection is therefore held back until the others of its round were received.

use crate::offload::Upper;
use crate::stack::Stack;
use crate::wire::{Received, Wire};
use alloc::vec;
use alloc::vec::Vec;
use smoltcp::iface::{Config, Interface};
use smoltcp::phy::{Device, DeviceCapabilities, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpEndpoint, IpProtocol, TcpPacket};

/// Ends of a connection that a frame begins: where it comes from, and where it goes to.
pub(crate) fn begins(frame: &[u8]) -> Option<[IpEndpoint; 2]> {
    let upper = Upper::of(frame).filter(|upper| upper.protocol == IpProtocol::Tcp)?;
    let segment = TcpPacket::new_checked(frame.get(upper.at)?).ok()?;
    let begins = segment.syn() && !segment.ack() && !segment.rst();
    let ends = [(upper.from, segment.src_port()), (upper.to, segment.dst_port())];
    begins.then(|| ends.map(|(address, port)| IpEndpoint::new(address.into(), port)))
}

/// A device with one frame, which sends nothing.
struct Once {
    frame: Option<Vec<u8>>,
    capabilities: DeviceCapabilities,
}

/// A place for a frame that is not sent.
struct Unsent;

impl TxToken for Unsent {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        fill(&mut vec![0; len])
    }
}

impl Device for Once {
    type RxToken<'a> = Received;
    type TxToken<'a> = Unsent;

    fn receive(&mut self, _: Instant) -> Option<(Received, Unsent)> {
        self.frame.take().map(|frame| (Received::new(frame), Unsent))
    }

    fn transmit(&mut self, _: Instant) -> Option<Unsent> {
        None
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.capabilities.clone()
    }
}

impl Stack {
    /// An interface as the stack's, with a seed of its own.
    pub(crate) fn once(&mut self) -> Interface {
        let hardware = EthernetAddress(self.wire.own());
        let mut config = Config::new(HardwareAddress::Ethernet(hardware));
        config.random_seed = self.table.random.number();
        let mut interface = Interface::new(config, &mut self.wire, self.now);
        interface.update_ip_addrs(|all| all.extend(self.interface.ip_addrs().iter().copied()));
        interface
    }

    /// Lets listeners hear of connections that others begin. One that is one too many gets no answer instead of a refusal, and is asked for again soon.
    pub(crate) fn greet(&mut self) {
        for (frame, [from, to]) in self.wire.take_begun() {
            let is_known = self.sockets.iter().any(|(_, socket)| match socket {
                smoltcp::socket::Socket::Tcp(socket) => has_ends(socket, to, from),
                _ => false,
            });
            if is_known {
                // It is for a connection that there is.
                self.wire.give_back(frame);
                continue;
            }
            let mut once = Once { frame: Some(frame), capabilities: Wire::default().capabilities() };
            self.once().poll_ingress_single(self.now, &mut once, &mut self.sockets);
        }
    }
}

fn has_ends(socket: &tcp::Socket, local: IpEndpoint, remote: IpEndpoint) -> bool {
    socket.local_endpoint() == Some(local) && socket.remote_endpoint() == Some(remote)
}
