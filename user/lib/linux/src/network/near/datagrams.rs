//! Datagrams from one socket of a sandbox to another one, by loopback.
//!
//! Those of UDP-Lite go nowhere else: the network below has none, so their sockets are here alone.

use super::{Share, readiness};
use crate::budget::Budget;
use crate::errno::{ECONNREFUSED, Result};
use crate::network::{Beside, Datagram, Sent};
use alloc::collections::{BTreeMap, VecDeque};
use core::mem::{size_of, take};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes that datagrams of a socket count for, at most. More are lost, as on Linux.
pub const ROOM: usize = 208 << 10;

/// Bytes that a datagram counts for, beside its own: its place, and as much again, since places are made ahead.
pub const HEAD: usize = 192;

const _: () = assert!(2 * size_of::<Datagram>() <= HEAD);

/// Datagrams from here in a row, behind which those from below have their turn.
pub const IN_A_ROW: usize = 16;

/// Places that a queue keeps when there are fewer datagrams.
const PLACES: usize = 8;

/// A socket.
#[derive(Debug)]
struct Socket {
    at: SocketAddr,
    /// Whether it is one of UDP-Lite, which the network below does not know.
    is_lite: bool,
    /// The end that it is connected to.
    peer: Option<SocketAddr>,
    /// A datagram to its peer went to the network below, and it is not known what became of it; or one of UDP-Lite was refused.
    is_far: bool,
    /// Datagrams that wait.
    queue: VecDeque<Datagram>,
    /// Share of the budget for them, of whoever has made the socket: nobody else is charged if it does not read.
    share: Share,
    /// Cost of the last one that was taken. It is charged until the next one is asked for, since whoever asks keeps it for its program.
    taken: usize,
    /// Datagrams from here that were taken since one from below could have been.
    in_a_row: usize,
    watched: u32,
}

/// Sockets for datagrams.
#[derive(Debug, Default)]
pub struct Datagrams {
    sockets: BTreeMap<u64, Socket>,
    /// Numbers of sockets that have what is sent to an address, by these: those of UDP whose address nobody shares, since among others the network below chooses, and of UDP-Lite the first ones.
    heirs: BTreeMap<Place, u64>,
}

/// Whether it is one of UDP-Lite, address and port.
type Place = (bool, IpAddr, u16);

fn place(is_lite: bool, at: SocketAddr) -> Place {
    (is_lite, at.ip(), at.port())
}

/// The one that is asked first for a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Those that wait here.
    Here,
    /// The network below, though one waits here: it has not had its turn for long, or may know what became of one that was sent.
    Below,
    /// Nobody: one that was sent was refused.
    Refused,
}

fn cost(bytes: &[u8]) -> usize {
    bytes.len() + HEAD
}

impl Datagrams {
    /// The network below has made a socket at an address, or has found that it is shared from now on.
    pub fn bind(&mut self, number: u64, at: SocketAddr, is_shared: bool, budget: &Budget) {
        if is_shared && self.heirs.get(&place(false, at)) == Some(&number) {
            self.heirs.remove(&place(false, at));
            return;
        }
        self.add(number, at, false, budget);
        if !is_shared {
            self.heirs.insert(place(false, at), number);
        }
    }

    /// Makes a socket of UDP-Lite. Whoever calls has found that it may have the address.
    pub fn bind_lite(&mut self, number: u64, at: SocketAddr, budget: &Budget) {
        self.add(number, at, true, budget);
        self.heirs.entry(place(true, at)).or_insert(number);
    }

    fn add(&mut self, number: u64, at: SocketAddr, is_lite: bool, budget: &Budget) {
        self.close(number);
        let (peer, queue, share) = (None, VecDeque::new(), budget.empty());
        let socket =
            Socket { at, is_lite, peer, is_far: false, queue, share, taken: 0, in_a_row: 0, watched: 0 };
        self.sockets.insert(number, socket);
    }

    /// A socket is connected to an end, or to nobody. Datagrams of others go.
    pub fn connect(&mut self, number: u64, to: Option<SocketAddr>) {
        let Some(socket) = self.sockets.get_mut(&number) else { return };
        (socket.peer, socket.is_far) = (to, false);
        if to.is_some() {
            socket.queue.retain(|datagram| Some(datagram.from) == to);
            let left: usize = socket.queue.iter().map(|datagram| cost(&datagram.bytes)).sum();
            socket.share.resize(left + socket.taken);
        }
    }

    /// Nothing is left of a socket.
    pub fn close(&mut self, number: u64) {
        let Some(socket) = self.sockets.remove(&number) else { return };
        let place = place(socket.is_lite, socket.at);
        if self.heirs.get(&place) != Some(&number) {
            return;
        }
        self.heirs.remove(&place);
        if socket.is_lite {
            let is_next = |other: &Socket| other.is_lite && other.at == socket.at;
            let next = self.sockets.iter().find(|(_, other)| is_next(other)).map(|(number, _)| *number);
            self.heirs.extend(next.map(|next| (place, next)));
        }
    }

    /// The socket that a datagram of another one is for, by loopback, and the sender as that sees it, with the address that it has named or its own. None: the network below finds it.
    pub fn way(&self, number: u64, named: Option<IpAddr>, to: SocketAddr) -> Option<(u64, SocketAddr)> {
        let sender = self.sockets.get(&number).filter(|socket| !socket.is_far)?;
        let (own, is_lite) = (sender.at, sender.is_lite);
        let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let any = if to.is_ipv4() { &any[..] } else { &any[..1] };
        let mut places = any.iter().map(|any| (is_lite, *any, to.port()));
        let receiver = *self
            .heirs
            .get(&place(is_lite, to))
            .or_else(|| places.find_map(|place| self.heirs.get(&place)))?;
        let from = match named.unwrap_or(own.ip()) {
            from if from.is_loopback() => from,
            from if !from.is_unspecified() && !from.is_multicast() => is_lite.then_some(from)?,
            // A machine reaches an address of its own from there.
            _ if !to.ip().is_loopback() => to.ip(),
            _ if to.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
            _ => Ipv6Addr::LOCALHOST.into(),
        };
        let from = SocketAddr::new(from, own.port());
        let socket = self.sockets.get(&receiver)?;
        let is_heard = from.is_ipv4() == to.is_ipv4() && socket.peer.is_none_or(|peer| peer == from);
        is_heard.then_some((receiver, from))
    }

    /// A datagram has come. If there is no room for it, it is lost. Bits of [`readiness`] that are to be told.
    pub fn push(
        &mut self,
        number: u64,
        (from, to): (SocketAddr, SocketAddr),
        (bytes, sent): (&[u8], &Sent),
        room: usize,
    ) -> u32 {
        let Some(socket) = self.sockets.get_mut(&number) else { return 0 };
        let used = socket.share.bytes() + cost(bytes);
        if used > room || !socket.share.resize(used) {
            return 0;
        }
        let Sent { head, date, covered, .. } = *sent;
        let beside = Beside { to: Some(to.ip()), head: Some(head), date, covered };
        socket.queue.push_back(Datagram { from, beside, bytes: bytes.to_vec() });
        let told = socket.watched & readiness::READ;
        socket.watched &= !told;
        told
    }

    /// Takes the first datagram of a socket.
    pub fn take(&mut self, number: u64) -> Option<Datagram> {
        let socket = self.sockets.get_mut(&number)?;
        socket.share.resize(socket.share.bytes() - take(&mut socket.taken));
        let datagram = socket.queue.pop_front()?;
        socket.taken = cost(&datagram.bytes);
        socket.in_a_row += 1;
        if socket.queue.capacity() > PLACES.max(4 * socket.queue.len()) {
            socket.queue.shrink_to(PLACES.max(2 * socket.queue.len()));
        }
        Some(datagram)
    }

    /// The one that is asked for the next datagram of a socket. A refusal is told once.
    pub fn turn(&mut self, number: u64) -> Turn {
        let Some(socket) = self.sockets.get_mut(&number) else { return Turn::Here };
        if socket.is_lite {
            return if take(&mut socket.is_far) { Turn::Refused } else { Turn::Here };
        }
        if socket.queue.is_empty() || !socket.is_far && socket.in_a_row < IN_A_ROW {
            return Turn::Here;
        }
        socket.in_a_row = 0;
        Turn::Below
    }

    /// Whether a socket is one of UDP-Lite.
    pub fn is_lite(&self, number: u64) -> bool {
        self.sockets.get(&number).is_some_and(|socket| socket.is_lite)
    }

    /// A datagram of UDP-Lite finds nobody at this machine, which is told to a socket that is connected. Bits of [`readiness`] that are to be told now. `ECONNREFUSED`: an earlier one did
    /// not, either.
    pub fn refuse(&mut self, number: u64, to: SocketAddr) -> Result<u32> {
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(0) };
        if take(&mut socket.is_far) {
            return Err(ECONNREFUSED);
        }
        if socket.peer != Some(to) {
            return Ok(0);
        }
        socket.is_far = true;
        let told = socket.watched & readiness::READ;
        socket.watched &= !told;
        Ok(told)
    }

    /// A datagram goes to the network below.
    pub fn send_below(&mut self, number: u64, to: SocketAddr) {
        if let Some(socket) = self.sockets.get_mut(&number) {
            socket.is_far |= socket.peer == Some(to);
        }
    }

    /// It is known what became of the datagrams that went to the network below.
    pub fn settle(&mut self, number: u64) {
        if let Some(socket) = self.sockets.get_mut(&number) {
            socket.is_far = false;
        }
    }

    /// Address of a socket.
    pub fn address(&self, number: u64) -> Option<IpAddr> {
        self.sockets.get(&number).map(|socket| socket.at.ip())
    }

    /// Readiness of a socket, to which that below belongs, unless it is one of UDP-Lite. None: all of it is below.
    pub fn ready(&self, number: u64, below: impl FnOnce() -> u32) -> Option<u32> {
        let socket = self.sockets.get(&number)?;
        match socket.queue.is_empty() && !(socket.is_lite && socket.is_far) {
            true if socket.is_lite => Some(readiness::WRITE),
            true => None,
            false if socket.is_lite => Some(readiness::READ | readiness::WRITE),
            false => Some(readiness::READ | below()),
        }
    }

    /// Whether a datagram waits at a socket.
    #[cfg(test)]
    pub fn is_waiting(&self, number: u64) -> bool {
        self.sockets.get(&number).is_some_and(|socket| !socket.queue.is_empty())
    }

    /// Places of a socket's queue.
    #[cfg(test)]
    pub fn places(&self, number: u64) -> usize {
        self.sockets.get(&number).map_or(0, |socket| socket.queue.capacity())
    }

    /// A socket is watched. Bits that are to be told now, and those to be watched for below.
    pub fn watch(&mut self, number: u64, events: u32) -> [u32; 2] {
        let Some(socket) = self.sockets.get_mut(&number) else { return [0, events] };
        if socket.is_lite {
            let is_ready = !socket.queue.is_empty() || socket.is_far;
            let told = events & if is_ready { readiness::READ | readiness::WRITE } else { readiness::WRITE };
            socket.watched |= events & !told;
            return [told, 0];
        }
        if socket.queue.is_empty() {
            socket.watched |= events;
            return [0, events];
        }
        [events & readiness::READ, events & !readiness::READ]
    }
}
