//! Numbers of the crate's that others must not guess: with which a connection begins, and those of a question for a name.
//!
//! `smoltcp` 0.14 takes all of them from one generator of 64 bits, and shows its numbers: who has begun a few connections with this machine knows its state, and so all numbers that come later, with which he can answer
//! a question in a server's place, or send bytes in a peer's. It has one generator for each interface, and no way to give it another seed. So the stack's own interface draws none of these numbers. Each is drawn by an interface that has
//! a seed of its own, knows the same addresses, and is gone afterwards.
//!
//! A segment that begins a connection is therefore held back until the others of its round were received.
//!
//! The number with which a connection begins is not any: it grows with time, from connection to connection of the same ends ([`Random::beginning`](crate::random::Random::beginning)). The interface for it has
//! a seed of which its generator draws this number when it is asked for one.

use crate::offload::Upper;
use crate::once::Once;
use crate::stack::Stack;
use core::net::SocketAddr;
use smoltcp::iface::{Config, Interface};
use smoltcp::socket::tcp;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpEndpoint, IpProtocol, TcpPacket};

/// Ends of a connection that a frame begins: where it comes from, and where it goes to.
pub(crate) fn begins(frame: &[u8]) -> Option<[IpEndpoint; 2]> {
    let upper = Upper::of(frame).filter(|upper| upper.protocol == IpProtocol::Tcp)?;
    let segment = TcpPacket::new_checked(frame.get(upper.at)?).ok()?;
    let begins = segment.syn() && !segment.ack() && !segment.rst();
    let ends = [(upper.from, segment.src_port()), (upper.to, segment.dst_port())];
    begins.then(|| ends.map(|(address, port)| IpEndpoint::new(address.into(), port)))
}

/// Factor and summand of the generator of `smoltcp` 0.14.
const FACTOR: u64 = 0xbb2e_fcec_3c39_611d;
/// See [`FACTOR`].
const SUMMAND: u64 = 0x7590_ef39;

/// Bits of its state below the number that it draws, if the three bits above that are zero.
const BELOW: u32 = 29;

/// Inverse of [`FACTOR`]. An odd number is its own inverse in the lowest three bits, and each step has twice as many bits right.
const INVERSE: u64 = {
    let mut inverse = FACTOR;
    let mut bits = 3;
    while bits < u64::BITS {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(inverse)));
        bits *= 2;
    }
    assert!(inverse.wrapping_mul(FACTOR) == 1);
    inverse
};

/// State of the generator before the one that it has now.
const fn before(state: u64) -> u64 {
    state.wrapping_sub(SUMMAND).wrapping_mul(INVERSE)
}

/// Number that the generator has drawn when it has this state.
const fn drawn(state: u64) -> u32 {
    (state >> (BELOW as u64 - (state >> 61))) as u32
}

/// The seed of an interface that draws `number` for a connection. Its later numbers depend on `rest`, too.
///
/// A new interface draws one number for fragments of IPv4, of which it uses both halves together, and another one if that is zero. A seed with which it would do so is none for this.
pub(crate) fn seed_of(number: u32, rest: u64) -> u64 {
    let states = (0..).map(|more| u64::from(number) << BELOW | rest.wrapping_add(more) & ((1 << BELOW) - 1));
    let is_one_number = |&fragments: &u64| (drawn(fragments) ^ drawn(fragments) >> 16) as u16 != 0;
    // All but one of 65,536 states are fine.
    states.map(before).find(is_one_number).map_or(0, before)
}

impl Stack {
    /// An interface as the stack's, with a seed of its own.
    pub(crate) fn once(&mut self) -> Interface {
        let seed = self.table.random.number();
        self.seeded(seed)
    }

    /// One for a connection that begins now, from this machine's end.
    pub(crate) fn once_for(&mut self, own: IpEndpoint, other: IpEndpoint) -> Interface {
        let ends = [own, other].map(|end| SocketAddr::new(end.addr.into(), end.port));
        let number = self.table.random.beginning(ends, self.now.total_micros() as u64);
        let seed = seed_of(number, self.table.random.number());
        self.seeded(seed)
    }

    /// One for a connection that this machine begins from a port.
    pub(crate) fn once_from(&mut self, port: u16, to: IpEndpoint) -> Interface {
        // Without an address from which it could be, there will be no connection.
        let own = self.interface.get_source_address(&to.addr).unwrap_or(to.addr);
        self.once_for(IpEndpoint::new(own, port), to)
    }

    fn seeded(&mut self, seed: u64) -> Interface {
        let hardware = EthernetAddress(self.wire.own());
        let mut config = Config::new(HardwareAddress::Ethernet(hardware));
        config.random_seed = seed;
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
            let mut once = Once::new(frame);
            self.once_for(to, from).poll_ingress_single(self.now, &mut once, &mut self.sockets);
        }
    }
}

/// Whether a connection is one between these ends.
pub(crate) fn has_ends(socket: &tcp::Socket, local: IpEndpoint, remote: IpEndpoint) -> bool {
    socket.local_endpoint() == Some(local) && socket.remote_endpoint() == Some(remote)
}
