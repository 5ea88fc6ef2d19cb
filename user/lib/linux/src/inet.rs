//! Sockets of networks, IPv4 and IPv6: streams of TCP and datagrams of UDP, with what Linux keeps about them beside the [network](crate::network) below.
//!
//! A stream is not there below before it is connected or listens, and a socket for datagrams not before it has a port, so sockets that are merely made take
//! nothing from anybody. The network below tells neither how much there is to be read nor shows it without giving it away; therefore something is read
//! ahead of the program: see [`Inet::fill`].

mod address;
mod beside;
mod echo;
pub mod groups;
mod lines;
pub mod options;
pub mod ports;

use crate::errno::{
    EAGAIN, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENOTCONN, EPIPE, EPROTONOSUPPORT, ETIMEDOUT, Errno,
    Result,
};
use crate::network::{Beside, Datagram, Network, Phase, readiness};
use crate::places::take_front;
use crate::socket::{Kind, READABLE, SHUT_READ, SHUT_WRITE};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::net::SocketAddr;
use linux_raw_sys::general::{POLLERR, POLLHUP, POLLOUT, POLLRDHUP, POLLWRBAND, POLLWRNORM};

pub use address::{Family, address_bytes, parse};
pub use beside::Asked;
pub use echo::request;
pub use groups::Groups;
pub use lines::head;
pub use options::Options;
pub use ports::{Ports, Scope};

/// Bytes of a stream that are read ahead, at most.
pub const AHEAD_MAX: usize = 16 << 10;

/// Bytes of the budget that a socket counts for, beside what is read ahead.
pub const INET_BYTES: usize = 1024;

/// Bytes that are read from the network at a time.
const PIECE: usize = 4096;

/// Datagrams that are thrown away by one call, since they are not for this socket, at most.
const STRANGERS_MAX: usize = 64;

/// Nanoseconds after which a connection that was not made has failed by silence.
const SILENCE: u64 = 50_000_000_000;

/// `poll` of a stream that can be written.
const STREAM_WRITABLE: u32 = POLLOUT | POLLWRNORM;

/// `poll` of a stream that has broken off.
const BROKEN: u32 = READABLE | STREAM_WRITABLE | POLLRDHUP | POLLHUP;

/// State of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Neither connected nor listening.
    Fresh,
    /// A connection is being made, since that time.
    Connecting(u64),
    /// It is connected.
    Connected,
    /// Connections arrive.
    Listening,
}

/// Bytes that the program has not asked for yet.
#[derive(Debug, Default)]
struct Ahead {
    /// Bytes of a stream.
    bytes: VecDeque<u8>,
    /// A datagram.
    datagram: Option<Datagram>,
}

/// Something received.
#[derive(Debug, Default)]
pub struct Arrived {
    /// Bytes.
    pub bytes: Vec<u8>,
    /// Bytes that a datagram had, which may be more.
    pub whole: usize,
    /// The sender of a datagram.
    pub from: Option<SocketAddr>,
    /// Facts about it.
    pub beside: Beside,
    /// Whether nothing more will come.
    pub is_end: bool,
}

/// Protocol of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
    /// Datagrams whose checksums may leave bytes out. They stay within the sandbox.
    Lite,
    /// Echo requests, each a datagram with a message of ICMP.
    Echo,
}

impl Protocol {
    /// Protocol of a kind of sockets of a family; number 0: the usual one. `EPROTONOSUPPORT`: there is no such.
    pub fn of(family: Family, kind: Kind, number: u32) -> Result<Protocol> {
        let all = [Protocol::Tcp, Protocol::Udp, Protocol::Lite, Protocol::Echo];
        let fits = |protocol: &&Protocol| {
            let is_usual = matches!(protocol, Protocol::Tcp | Protocol::Udp);
            let is_meant = number == 0 && is_usual || number == protocol.number(family);
            is_meant && (**protocol == Protocol::Tcp) == (kind == Kind::Stream)
        };
        all.iter().find(fits).copied().ok_or(EPROTONOSUPPORT)
    }

    /// Its number.
    pub const fn number(self, family: Family) -> u32 {
        match (self, family) {
            (Protocol::Tcp, _) => 6,
            (Protocol::Udp, _) => 17,
            (Protocol::Lite, _) => 136,
            (Protocol::Echo, Family::Four) => 1,
            (Protocol::Echo, Family::Six) => 58,
        }
    }
}

/// A socket.
#[derive(Debug)]
pub struct Inet {
    /// Number that no other has.
    pub number: u64,
    /// Its kind: a stream, or one for datagrams.
    pub kind: Kind,
    /// Its family.
    pub family: Family,
    /// Its protocol.
    pub protocol: Protocol,
    /// The user who has made it.
    pub owner: u32,
    /// Its state.
    pub stage: Cell<Stage>,
    /// Whether a call has said that it is connected.
    pub is_acknowledged: Cell<bool>,
    /// Whether it is there below.
    pub is_below: Cell<bool>,
    /// Its own address, as far as it was chosen.
    pub local: Cell<Option<SocketAddr>>,
    /// The one that it was bound to, which it has again when a connection is over.
    pub bound: Cell<Option<SocketAddr>>,
    /// The other end.
    pub peer: Cell<Option<SocketAddr>>,
    /// Directions that are shut by this side.
    pub shut: Cell<u32>,
    /// An error to be told once.
    pub error: Cell<Option<Errno>>,
    /// Whether the other side sends nothing more.
    is_end: Cell<bool>,
    /// Whether the connection has broken off.
    is_broken: Cell<bool>,
    ahead: RefCell<Ahead>,
    /// Longest wait to receive and to send in nanoseconds; 0: for ever.
    pub timeouts: [Cell<u64>; 2],
    /// Options that were set.
    pub options: Options,
    /// Groups that it has joined.
    pub groups: Groups,
}

impl Inet {
    /// A socket of a user's that is connected to nobody.
    pub fn new(number: u64, family: Family, protocol: Protocol, owner: u32) -> Inet {
        Inet {
            number,
            kind: if protocol == Protocol::Tcp { Kind::Stream } else { Kind::Datagram },
            family,
            protocol,
            owner,
            stage: Cell::new(Stage::Fresh),
            is_acknowledged: Cell::new(false),
            is_below: Cell::new(false),
            local: Cell::new(None),
            bound: Cell::new(None),
            peer: Cell::new(None),
            shut: Cell::new(0),
            error: Cell::new(None),
            is_end: Cell::new(false),
            is_broken: Cell::new(false),
            ahead: RefCell::default(),
            timeouts: Default::default(),
            options: Options::default(),
            groups: Groups::default(),
        }
    }

    /// Whether it is a stream.
    pub fn is_stream(&self) -> bool {
        self.kind == Kind::Stream
    }

    /// Whether it is for echo requests.
    pub fn is_echo(&self) -> bool {
        self.protocol == Protocol::Echo
    }

    /// Whether it is one of UDP-Lite.
    pub fn is_lite(&self) -> bool {
        self.protocol == Protocol::Lite
    }

    /// Whether it listens.
    pub fn is_listening(&self) -> bool {
        self.stage.get() == Stage::Listening
    }

    /// Addresses of its own, if it has one.
    pub fn scope(&self) -> Option<Scope> {
        Some(Scope { at: self.local.get()?, is_six_only: self.options.is_six_only() })
    }

    /// Whether a direction is shut by this side.
    pub fn is_shut(&self, direction: u32) -> bool {
        self.shut.get() & direction != 0
    }

    /// Nothing is left of what it was, but its own address and its options.
    pub fn disconnect(&self) {
        self.stage.set(Stage::Fresh);
        self.is_acknowledged.set(false);
        self.peer.set(None);
        self.shut.set(0);
        self.is_end.set(false);
        self.is_broken.set(false);
        self.forget_ahead();
    }

    /// Forgets what was read ahead.
    pub fn forget_ahead(&self) {
        self.ahead.take();
    }

    /// It is connected to another end, as far as the network knows that.
    pub fn set_connected(&self, network: &dyn Network) {
        let [local, peer] = network.ends(self.number);
        self.stage.set(Stage::Connected);
        self.is_below.set(true);
        self.local.set(local.or(self.local.get()));
        self.peer.set(peer.or(self.peer.get()));
    }

    /// Sees whether a connection that is being made is there, or has failed.
    pub fn follow(&self, network: &dyn Network, now: u64) {
        let Stage::Connecting(since) = self.stage.get() else { return };
        match network.phase(self.number) {
            Phase::Connecting => {}
            Phase::Open => self.set_connected(network),
            phase @ (Phase::Closed | Phase::Refused | Phase::Silent) => {
                network.close(self.number);
                self.is_below.set(false);
                self.disconnect();
                self.break_off(match phase {
                    Phase::Silent => EHOSTUNREACH,
                    Phase::Refused => ECONNREFUSED,
                    _ if now.saturating_sub(since) < SILENCE => ECONNREFUSED,
                    _ => ETIMEDOUT,
                });
            }
        }
    }

    /// The connection is over, for a reason that is told once.
    fn break_off(&self, error: Errno) {
        self.error.set(Some(error));
        self.is_end.set(true);
        self.is_broken.set(true);
    }

    /// Reads ahead, if nothing was: one piece of a stream, or a datagram. `EAGAIN`: there is nothing.
    pub fn fill(&self, network: &dyn Network) -> Result<()> {
        if !self.is_stream() {
            return self.fill_datagram(network);
        }
        if !self.ahead.borrow().bytes.is_empty() || self.is_end.get() {
            Ok(())
        } else {
            self.fill_more(network)
        }
    }

    /// Reads another piece of a stream ahead.
    fn fill_more(&self, network: &dyn Network) -> Result<()> {
        match network.read(self.number, PIECE) {
            Ok(bytes) if bytes.is_empty() => self.is_end.set(true),
            Ok(bytes) => self.ahead.borrow_mut().bytes.extend(bytes),
            Err(EAGAIN) => return Err(EAGAIN),
            Err(error) => self.break_off(error),
        }
        Ok(())
    }

    fn fill_datagram(&self, network: &dyn Network) -> Result<()> {
        if self.ahead.borrow().datagram.is_some() {
            return Ok(());
        }
        if !self.is_below.get() {
            return Err(EAGAIN);
        }
        for _ in 0..STRANGERS_MAX {
            let mut datagram = match self.receive_from(network) {
                Err(error @ (ECONNREFUSED | EHOSTUNREACH)) => {
                    self.error.set(Some(error));
                    return Err(EAGAIN);
                }
                Err(error) if error != EAGAIN => {
                    self.lose(network, error);
                    return Err(EAGAIN);
                }
                received => received?,
            };
            let from = datagram.from;
            let is_known = self.peer.get().is_none_or(|peer| self.is_same(peer, from));
            let is_covered = self.options.takes(datagram.beside.covered);
            if is_known && is_covered && self.family.has(from.ip(), self.options.is_six_only()) {
                // The address of a socket that has one says where a datagram was sent to.
                let own = self.local.get().map(|local| local.ip()).filter(|own| !own.is_unspecified());
                datagram.beside.to = datagram.beside.to.or(own);
                self.ahead.borrow_mut().datagram = Some(datagram);
                return Ok(());
            }
        }
        Err(EAGAIN)
    }

    /// Takes a datagram from below, or the answer to an echo request.
    fn receive_from(&self, network: &dyn Network) -> Result<Datagram> {
        if !self.is_echo() {
            return network.receive_from(self.number);
        }
        let (from, number, bytes) = network.answer(self.number)?;
        let port = self.local.get().map_or(0, |local| local.port());
        Ok(Datagram::new(SocketAddr::new(from, 0), echo::answer(self.family, port, number, &bytes)))
    }

    /// Whether a sender is the other end. Those that answer echo requests have no ports.
    fn is_same(&self, peer: SocketAddr, from: SocketAddr) -> bool {
        peer.ip() == from.ip() && (self.is_echo() || peer.port() == from.port())
    }

    /// Looks whether there is something to be told about datagrams that were sent.
    pub fn look(&self, network: &dyn Network) {
        if !self.is_stream() {
            // An error is kept, and a datagram stays ahead.
            let _ = self.fill_datagram(network);
        }
    }

    /// A socket for datagrams is not there below any more. Its program is told once, and it gets another port when it sends: whoever went on waiting for it
    /// would be told at once that it is ready, again and again.
    pub fn lose(&self, network: &dyn Network, error: Errno) {
        network.close(self.number);
        self.is_below.set(false);
        self.local.set(None);
        self.error.set(Some(error));
    }

    /// Bytes that can be read, or those of the first datagram: `FIONREAD`.
    pub fn len(&self, network: &dyn Network) -> usize {
        if self.is_stream() {
            self.fill_to(network, AHEAD_MAX);
            return self.ahead.borrow().bytes.len();
        }
        let _ = self.fill(network);
        self.ahead.borrow().datagram.as_ref().map_or(0, |datagram| datagram.bytes.len())
    }

    /// Reads so many bytes of a stream ahead, if there are as many.
    fn fill_to(&self, network: &dyn Network, len: usize) {
        if self.stage.get() != Stage::Connected {
            return;
        }
        while self.ahead.borrow().bytes.len() < len.min(AHEAD_MAX) && !self.is_end.get() {
            if self.fill_more(network).is_err() {
                break;
            }
        }
    }

    /// Readiness: bits of `poll`, and what is to be watched for so that others are heard of.
    pub fn poll(&self, network: &dyn Network, now: u64) -> (u32, u32) {
        self.follow(network, now);
        let (bits, watched) = match self.stage.get() {
            _ if !self.is_stream() => self.poll_datagrams(network),
            Stage::Fresh if self.is_broken.get() => (BROKEN, 0),
            Stage::Fresh => (POLLHUP | STREAM_WRITABLE, 0),
            Stage::Connecting(_) => (0, readiness::WRITE),
            Stage::Listening if network.ready(self.number) & readiness::READ != 0 => (READABLE, 0),
            Stage::Listening => (0, readiness::READ),
            Stage::Connected => self.poll_stream(network),
        };
        (bits | if self.error.get().is_some() { POLLERR } else { 0 }, watched)
    }

    fn poll_stream(&self, network: &dyn Network) -> (u32, u32) {
        let ready = network.ready(self.number);
        if ready & readiness::READ != 0 {
            let _ = self.fill(network);
        }
        if self.is_broken.get() {
            return (BROKEN, 0);
        }
        let is_end = self.is_end.get() || self.is_shut(SHUT_READ);
        let can_read = is_end || !self.ahead.borrow().bytes.is_empty();
        let can_write = ready & readiness::WRITE != 0 || self.is_shut(SHUT_WRITE);
        let bits = [
            (can_read, READABLE),
            (is_end, POLLRDHUP),
            (can_write, STREAM_WRITABLE),
            (is_end && self.is_shut(SHUT_WRITE), POLLHUP),
        ];
        let watched = [(can_read, readiness::READ), (can_write, readiness::WRITE)];
        let sum = |all: u32, (_, bit): &(bool, u32)| all | bit;
        (
            bits.iter().filter(|(is_so, _)| *is_so).fold(0, sum),
            watched.iter().filter(|(is_so, _)| !is_so).fold(0, sum),
        )
    }

    fn poll_datagrams(&self, network: &dyn Network) -> (u32, u32) {
        let shut = self.shut.get();
        let can_read = self.fill(network).is_ok();
        let can_write = !self.is_below.get() || network.ready(self.number) & readiness::WRITE != 0;
        let bits = [
            (can_read, READABLE),
            (can_write, STREAM_WRITABLE | POLLWRBAND),
            (shut & SHUT_READ != 0, READABLE | POLLRDHUP),
            (shut == SHUT_READ | SHUT_WRITE, POLLHUP),
        ];
        let read = if can_read || !self.is_below.get() { 0 } else { readiness::READ };
        let write = if can_write { 0 } else { readiness::WRITE };
        (bits.iter().filter(|(is_so, _)| *is_so).fold(0, |all, (_, bit)| all | bit), read | write)
    }

    /// Writes to a stream, as much as there is room for.
    ///
    /// `EAGAIN`: none now. `EPIPE`: there is no connection that can be written.
    pub fn write(&self, network: &dyn Network, from: &[u8]) -> Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.stage.get() {
            Stage::Connecting(_) => return Err(EAGAIN),
            Stage::Connected if !self.is_shut(SHUT_WRITE) && !self.is_broken.get() => {}
            _ => return Err(EPIPE),
        }
        let mut done = 0;
        for piece in from.chunks(PIECE) {
            match network.write(self.number, piece) {
                Ok(count) => {
                    done += count;
                    if count < piece.len() {
                        break;
                    }
                }
                Err(EAGAIN) if done == 0 => return Err(EAGAIN),
                Err(ECONNRESET) if done == 0 => {
                    // It may have come to a good end before.
                    let _ = self.fill(network);
                    return Err(self.error.take().unwrap_or(EPIPE));
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Receives at most so many bytes. `peeks`: they stay.
    ///
    /// `EAGAIN`: nothing now. `ENOTCONN`: not connected. Other errors are those that were to be told.
    pub fn receive(&self, network: &dyn Network, room: usize, peeks: bool) -> Result<Arrived> {
        if !self.is_stream() {
            return self.receive_datagram(network, room, peeks);
        }
        match self.stage.get() {
            Stage::Connected => {}
            Stage::Connecting(_) => return Err(EAGAIN),
            _ => match self.error.take() {
                Some(error) => return Err(error),
                None if self.is_broken.get() => return Ok(Arrived { is_end: true, ..Arrived::default() }),
                None => return Err(ENOTCONN),
            },
        }
        let bytes = if peeks {
            self.fill_to(network, room.max(1));
            let ahead = self.ahead.borrow();
            ahead.bytes.iter().take(room).copied().collect()
        } else {
            self.take_bytes(network, room)
        };
        if bytes.is_empty() && room > 0 {
            return match self.error.take() {
                Some(error) => Err(error),
                None if self.is_end.get() || self.is_shut(SHUT_READ) => {
                    Ok(Arrived { is_end: true, ..Arrived::default() })
                }
                None => Err(EAGAIN),
            };
        }
        Ok(Arrived { whole: bytes.len(), bytes, ..Arrived::default() })
    }

    /// Bytes of a stream: those that were read ahead, and more from the network.
    fn take_bytes(&self, network: &dyn Network, room: usize) -> Vec<u8> {
        let mut bytes = take_front(&mut self.ahead.borrow_mut().bytes, room);
        while bytes.len() < room && !self.is_end.get() {
            match network.read(self.number, PIECE.min(room - bytes.len())) {
                Ok(more) if more.is_empty() => self.is_end.set(true),
                Ok(more) => bytes.extend(more),
                Err(EAGAIN) => break,
                Err(error) => self.break_off(error),
            }
        }
        bytes
    }

    fn receive_datagram(&self, network: &dyn Network, room: usize, peeks: bool) -> Result<Arrived> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.fill(network) {
            Err(EAGAIN) if self.is_shut(SHUT_READ) => {
                return Ok(Arrived { is_end: true, ..Arrived::default() });
            }
            Err(error) => return Err(self.error.take().unwrap_or(error)),
            Ok(()) => {}
        }
        let ahead = &mut self.ahead.borrow_mut().datagram;
        let found = if peeks { ahead.clone() } else { ahead.take() };
        let Datagram { from, beside, mut bytes } = found.ok_or(EAGAIN)?;
        let whole = bytes.len();
        bytes.truncate(room);
        Ok(Arrived { bytes, whole, from: Some(from), beside, is_end: false })
    }
}
