//! Datagrams from one socket of a sandbox to another one, by loopback.

use super::{Share, readiness};
use crate::budget::Budget;
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
    /// The end that it is connected to.
    peer: Option<SocketAddr>,
    /// A datagram to its peer went to the network below, and it is not known what became of it.
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
    /// Numbers of sockets whose addresses nobody shares, by these. Among those that share one the network below chooses.
    alone: BTreeMap<(IpAddr, u16), u64>,
}

fn place(at: SocketAddr) -> (IpAddr, u16) {
    (at.ip(), at.port())
}

fn cost(bytes: &[u8]) -> usize {
    bytes.len() + HEAD
}

impl Datagrams {
    /// The network below has made a socket at an address, or has found that it is shared from now on.
    pub fn bind(&mut self, number: u64, at: SocketAddr, is_shared: bool, budget: &Budget) {
        if is_shared && self.alone.get(&place(at)) == Some(&number) {
            self.alone.remove(&place(at));
            return;
        }
        self.close(number);
        let (peer, queue, share) = (None, VecDeque::new(), budget.empty());
        let socket = Socket { at, peer, is_far: false, queue, share, taken: 0, in_a_row: 0, watched: 0 };
        self.sockets.insert(number, socket);
        if !is_shared {
            self.alone.insert(place(at), number);
        }
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
        if self.alone.get(&place(socket.at)) == Some(&number) {
            self.alone.remove(&place(socket.at));
        }
    }

    /// The socket that a datagram of another one is for, by loopback, and the sender as that sees it, with the address that it has named or its own. None: the network below finds it.
    pub fn way(&self, number: u64, named: Option<IpAddr>, to: SocketAddr) -> Option<(u64, SocketAddr)> {
        let own = self.sockets.get(&number).filter(|socket| !socket.is_far)?.at;
        let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let any = if to.is_ipv4() { &any[..] } else { &any[..1] };
        let mut places = any.iter().map(|any| (*any, to.port()));
        let receiver =
            *self.alone.get(&place(to)).or_else(|| places.find_map(|place| self.alone.get(&place)))?;
        let from = match named.unwrap_or(own.ip()) {
            from if from.is_loopback() => from,
            from if !from.is_unspecified() && !from.is_multicast() => return None,
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
        let beside = Beside { to: Some(to.ip()), head: Some(sent.head), date: sent.date };
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

    /// Whether the network below is to be asked for a datagram first, though one waits here: it has not had its turn for long, or may know what became of one that was
    /// sent.
    pub fn is_turn_of_below(&mut self, number: u64) -> bool {
        let Some(socket) = self.sockets.get_mut(&number).filter(|socket| !socket.queue.is_empty()) else {
            return false;
        };
        let is_turn = socket.is_far || socket.in_a_row >= IN_A_ROW;
        if is_turn {
            socket.in_a_row = 0;
        }
        is_turn
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

    /// Whether a datagram waits at a socket.
    pub fn is_waiting(&self, number: u64) -> bool {
        self.sockets.get(&number).is_some_and(|socket| !socket.queue.is_empty())
    }

    /// Places of a socket's queue.
    #[cfg(test)]
    pub fn places(&self, number: u64) -> usize {
        self.sockets.get(&number).map_or(0, |socket| socket.queue.capacity())
    }

    /// A socket is watched. Bits that are to be told now.
    pub fn watch(&mut self, number: u64, events: u32) -> u32 {
        let Some(socket) = self.sockets.get_mut(&number) else { return 0 };
        if socket.queue.is_empty() {
            socket.watched |= events;
            return 0;
        }
        events & readiness::READ
    }
}
