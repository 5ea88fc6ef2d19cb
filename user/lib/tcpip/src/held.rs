//! Datagrams that are held back on their way to the stack, since they may be for several sockets, and the way that those to groups take.

use crate::offload::{Upper, may_have};
use crate::once::Once;
use crate::wire::{FRAME_MAX, HEADER, IPV6};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::udp;
use smoltcp::time::Instant;
use smoltcp::wire::{IpProtocol, UdpPacket};

/// Port to which servers that lease addresses send: what comes there is the stack's own.
const LEASES: u16 = 68;

/// Mark of a note in an address, which none of this machine's addresses has there, and its place and that of the number behind it.
const NOTE: [u8; 4] = *b"note";
/// See [`NOTE`].
const NOTE_AT: usize = 8;
/// See [`NOTE`].
const NUMBER_AT: usize = NOTE_AT + NOTE.len();

/// Place of the address in a frame from which a packet of IPv6 comes.
const SOURCE_AT: usize = HEADER + 8;

/// Ends of a datagram, as its frame says. Nothing of it is checked.
pub(crate) struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
}

impl Datagram {
    /// That of a frame. `None` if the stack would not find one.
    pub fn of(frame: &[u8]) -> Option<Datagram> {
        let upper = Upper::of(frame).filter(|upper| upper.protocol == IpProtocol::Udp)?;
        let packet = UdpPacket::new_checked(frame.get(upper.at)?).ok()?;
        let from = SocketAddr::new(upper.from, packet.src_port());
        Some(Datagram { from, to: SocketAddr::new(upper.to, packet.dst_port()) })
    }
}

/// A socket that takes what was held back, one datagram at a time, before the others get it: so the stack checks it as it checks all that is not held back.
pub(crate) struct Inspection {
    sockets: SocketSet<'static>,
    handle: SocketHandle,
}

impl Default for Inspection {
    fn default() -> Inspection {
        let buffer = |len| udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY], vec![0; len]);
        let mut sockets = SocketSet::new(vec![]);
        let handle = sockets.add(udp::Socket::new(buffer(FRAME_MAX), buffer(1)));
        Inspection { sockets, handle }
    }
}

impl Inspection {
    /// Gives a frame to the stack, and back what a socket with this port has of it: from whom it is, and its bytes. `None` if no socket would have anything.
    pub fn pass(
        &mut self,
        interface: &mut Interface,
        now: Instant,
        frame: Vec<u8>,
        port: u16,
    ) -> Option<(SocketAddr, &[u8])> {
        let socket = self.sockets.get_mut::<udp::Socket>(self.handle);
        socket.close();
        socket.bind(port).ok()?;
        interface.poll_ingress_single(now, &mut Once::new(frame), &mut self.sockets);
        let (bytes, about) = self.sockets.get_mut::<udp::Socket>(self.handle).recv().ok()?;
        Some((SocketAddr::new(about.endpoint.addr.into(), about.endpoint.port), bytes))
    }
}

/// Datagrams that are held back.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Groups that sockets have joined.
    groups: Vec<IpAddr>,
    /// Ports that sockets share, or at which one takes nothing but what is for a group.
    ports: Vec<u16>,
    frames: Vec<Vec<u8>>,
}

impl Held {
    /// Says what is to be held back.
    pub fn set(&mut self, groups: Vec<IpAddr>, ports: Vec<u16>) {
        (self.groups, self.ports) = (groups, ports);
    }

    /// Holds a frame back, if it has a datagram for several sockets. If it has none, the stack is to get it.
    pub fn hold(&mut self, frame: Vec<u8>) -> Option<Vec<u8>> {
        let is_idle = self.groups.is_empty() && self.ports.is_empty();
        if is_idle || !may_have(&frame, [IpProtocol::Udp; 2]) {
            return Some(frame);
        }
        let Some(datagram) = Datagram::of(&frame) else { return Some(frame) };
        let (group, port) = (datagram.to.ip(), datagram.to.port());
        if port != LEASES && (self.groups.contains(&group) || self.ports.contains(&port)) {
            self.frames.push(frame);
            return None;
        }
        Some(frame)
    }

    /// Takes all.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.frames)
    }
}

/// How a datagram to a group goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Hops that it may make; with none it stays in this machine.
    pub hops: u8,
    /// Whether sockets of this machine get it, too.
    pub loops: bool,
}

impl Passage {
    /// Number by which the crate takes it along to the frame: 0 is that of a packet which goes as any other.
    pub(crate) fn id(self) -> u32 {
        1 << 16 | u32::from(self.loops) << 8 | u32::from(self.hops)
    }

    /// That of a number.
    pub(crate) fn of(id: u32) -> Option<Passage> {
        let [hops, loops, ..] = id.to_le_bytes();
        (id != 0).then_some(Passage { hops, loops: loops != 0 })
    }

    /// An address of IPv6 of this machine's with a note. The crate takes no number along to frames of IPv6, and so it travels in place of the address' second half; the first one tells this machine's addresses apart.
    pub(crate) fn noted(self, own: Ipv6Addr) -> Ipv6Addr {
        let mut octets = own.octets();
        octets[NOTE_AT..NUMBER_AT].copy_from_slice(&NOTE);
        octets[NUMBER_AT..].copy_from_slice(&self.id().to_be_bytes());
        octets.into()
    }

    /// Takes the note out of a frame to a group of IPv6, and puts the address of this machine's in its place. `None` if there is no note. A datagram from an address that this machine has lost goes nowhere.
    pub(crate) fn take_note(frame: &mut [u8], own: &[IpAddr]) -> Option<Passage> {
        let is_six = frame.get(12..HEADER).is_some_and(|kind| kind == IPV6);
        let source = frame.get_mut(SOURCE_AT..SOURCE_AT + 16).filter(|_| is_six)?;
        let number = source.get(NUMBER_AT..).filter(|_| source[NOTE_AT..NUMBER_AT] == NOTE)?;
        let passage = Passage::of(u32::from_be_bytes(number.try_into().ok()?))?;
        let first = &source[..NOTE_AT];
        let full = own.iter().find_map(|own| match own {
            IpAddr::V6(own) => Some(own.octets()).filter(|octets| octets[..NOTE_AT] == *first),
            IpAddr::V4(_) => None,
        });
        let Some(full) = full else { return Some(Passage { hops: 0, loops: false }) };
        source.copy_from_slice(&full);
        Some(passage)
    }
}
