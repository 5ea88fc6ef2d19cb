//! Datagrams that are held back on their way to the stack, since they may be for several sockets, and the way that those to groups take.

use crate::offload::Upper;
use crate::wire::HEADER;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, UDP_HEADER_LEN, UdpPacket};

/// Port to which servers that lease addresses send: what comes there is the stack's own.
const LEASES: u16 = 68;

/// A datagram on its way to the stack.
pub(crate) struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Place of its bytes in the frame.
    pub at: Range<usize>,
}

impl Datagram {
    /// That of a frame. `None` if the stack would not find one that is whole.
    pub fn of(frame: &[u8]) -> Option<Datagram> {
        let upper = Upper::of(frame).filter(|upper| upper.protocol == IpProtocol::Udp)?;
        if upper.to.is_ipv4() {
            let packet = Ipv4Packet::new_checked(frame.get(HEADER..)?).ok()?;
            Ipv4Repr::parse(&packet, &Default::default()).ok()?;
        }
        let from = IpAddress::from(upper.from);
        let packet = UdpPacket::new_checked(frame.get(upper.at.clone())?).ok()?;
        let at = upper.at.start + UDP_HEADER_LEN..upper.at.start + usize::from(packet.len());
        let is_somebodys = !from.is_unspecified() && !from.is_multicast() && !from.is_broadcast();
        is_somebodys.then_some(Datagram {
            from: SocketAddr::new(upper.from, packet.src_port()),
            to: SocketAddr::new(upper.to, packet.dst_port()),
            at,
        })
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
        let Some(datagram) = (!is_idle).then(|| Datagram::of(&frame)).flatten() else { return Some(frame) };
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
pub(crate) struct Passage {
    /// Hops that it may make; with none it stays in this machine.
    pub hops: u8,
    /// Whether sockets of this machine get it, too.
    pub loops: bool,
}

impl Passage {
    /// Number by which the crate takes it along to the frame: 0 is that of a packet which goes as any other.
    pub fn id(self) -> u32 {
        1 << 16 | u32::from(self.loops) << 8 | u32::from(self.hops)
    }

    /// That of a number.
    pub fn of(id: u32) -> Option<Passage> {
        let [hops, loops, ..] = id.to_le_bytes();
        (id != 0).then_some(Passage { hops, loops: loops != 0 })
    }
}
