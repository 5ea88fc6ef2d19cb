//! Unix sockets: what waits in each, and how messages get there.
//!
//! Nothing waits in here: a call that would have to wait is `EAGAIN`, and is made again when something has happened. A message is charged to its sender until
//! it has been read, as in Linux, so a sender has a limit and not a receiver. Beside that, sockets and messages have shares of the budget.
//! Descriptors on the way are in `flight`.

pub mod beside;
mod flight;
mod listening;
mod stuck;
mod traffic;

use crate::budget::Share;
use crate::errno::{
    EAGAIN, ECONNRESET, EINVAL, EMSGSIZE, ENOBUFS, ENOTCONN, EPIPE, ETOOMANYREFS, Errno, Result,
};
use crate::open::Open;
use crate::places::shorten_queue;
use alloc::collections::VecDeque;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use flight::Flight;
pub use flight::may_be_lost;
use linux_raw_sys::general::{
    POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRBAND, POLLWRNORM,
};
use linux_raw_sys::net::{SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
use listening::Listening;
use traffic::Message;
pub use traffic::Traffic;
use vfs::Inode;

/// Bytes that a new socket may have on the way: `SO_SNDBUF`, as Linux has it by default.
pub const SIZE: usize = 212_992;

/// Most bytes that a socket can be allowed to have on the way.
pub const SIZE_MAX: usize = 2 * SIZE;

/// Least bytes for which [`Socket::send_size`] is set, and those for the other direction, which has no effect.
pub const SIZES_MIN: [usize; 2] = [4608, 2304];

/// Bytes that a message counts for beside its own: as many as in Linux, so that as many fit.
const OVERHEAD: usize = 704;

/// Bytes of a piece of a stream.
const PIECE: usize = 32 << 10;

/// Bytes of a packet that are kept for its head: it has so many fewer than [`Socket::send_size`].
const HEAD: usize = 32;

/// Messages on the way to a socket that is not connected to their sender, at most, beside one.
pub const STRANGERS_MAX: usize = 10;

/// Bytes of the budget that a socket counts for.
pub const SOCKET_BYTES: usize = 1024;

/// Bytes of the budget that a descriptor on the way counts for.
const FILE_BYTES: usize = 16;

/// `poll` of a socket from which something can be read.
pub const READABLE: u32 = POLLIN | POLLRDNORM;

/// `poll` of a socket to which something can be written.
pub const WRITABLE: u32 = POLLOUT | POLLWRNORM | POLLWRBAND;

/// Everything that `poll` tells: something has changed.
pub const ANY: u32 = u32::MAX;

/// Directions that are shut: nothing more is received.
pub const SHUT_READ: u32 = 1;
/// Nothing more is sent. See [`SHUT_READ`].
pub const SHUT_WRITE: u32 = 2;

/// Kind of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes in order, without borders.
    Stream,
    /// Messages, each on its own, from anybody.
    Datagram,
    /// Messages in order, between two.
    Packet,
}

impl Kind {
    /// Number of the kind in Linux.
    pub const fn number(self) -> u32 {
        match self {
            Kind::Stream => SOCK_STREAM,
            Kind::Datagram => SOCK_DGRAM,
            Kind::Packet => SOCK_SEQPACKET,
        }
    }
}

/// Identity of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Its number.
    pub pid: u32,
    /// Its owner.
    pub owner: u32,
    /// Its group.
    pub group: u32,
}

impl Credentials {
    /// Those of nobody.
    pub const NOBODY: Credentials = Credentials { pid: 0, owner: u32::MAX, group: u32::MAX };

    /// Bytes of `struct ucred`.
    pub fn bytes(&self) -> Vec<u8> {
        [self.pid, self.owner, self.group].iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

/// Name of a socket: a path, or a zero and any bytes.
pub type SocketName = Rc<[u8]>;

/// Something to be sent, beside its bytes.
#[derive(Clone, Debug)]
pub struct Enclosed {
    /// Descriptors.
    pub files: Vec<Rc<Open>>,
    /// Descriptors that the sender may have on the way, at most.
    pub files_max: usize,
    /// The sender.
    pub credentials: Credentials,
}

/// Something received.
#[derive(Debug, Default)]
pub struct Received {
    /// Bytes.
    pub bytes: Vec<u8>,
    /// Bytes that a packet had, which may be more.
    pub whole: usize,
    /// Descriptors.
    pub files: Vec<Rc<Open>>,
    /// The sender of the first byte.
    pub credentials: Option<Credentials>,
    /// Its name.
    pub from: Option<SocketName>,
    /// Numbers of sockets whose senders can go on.
    pub senders: Vec<u64>,
    /// Whether nothing more will come.
    pub is_end: bool,
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    /// Number that no other has.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    queue: RefCell<VecDeque<Message>>,
    /// The socket at the other end, and whether there is one, or was.
    peer: RefCell<Weak<Socket>>,
    is_connected: Cell<bool>,
    /// Directions that are shut.
    pub shut: Cell<u32>,
    /// An error to be told once.
    pub error: Cell<Option<Errno>>,
    /// Bytes on the way that are charged to it.
    sent: Cell<usize>,
    /// Bytes that it may have on the way.
    pub send_size: Cell<usize>,
    /// Number without effect: `SO_RCVBUF`.
    pub receive_size: Cell<usize>,
    /// Longest wait to receive and to send in nanoseconds; 0: for ever.
    pub timeouts: [Cell<u64>; 2],
    /// Whether receivers want to know the sender.
    pub tells_sender: Cell<bool>,
    /// Its name.
    pub name: RefCell<Option<SocketName>>,
    /// Name of the other end when that was closed.
    peer_name: RefCell<Option<SocketName>>,
    /// The file that has its name, which is open for that.
    pub place: Cell<Option<Inode>>,
    listening: RefCell<Option<Listening>>,
    /// Sockets that have found no room here.
    stuck: RefCell<Vec<Weak<Socket>>>,
    /// The socket that has it in such a list.
    stuck_at: RefCell<Weak<Socket>>,
    /// The process at the other end.
    pub peer_credentials: Cell<Credentials>,
    /// How often its descriptor is on the way.
    in_flight: Cell<usize>,
    _share: Share,
    traffic: Rc<Traffic>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.traffic.sockets.set(self.traffic.sockets.get().saturating_sub(1));
        self.traffic.carriers.borrow_mut().remove(&self.number);
        self.leave_stuck();
    }
}

/// Bytes that a message of a length is charged.
pub fn charge(len: usize) -> usize {
    OVERHEAD + len.max(1).next_multiple_of(64)
}

/// Bytes for which a program asks by `SO_SNDBUF` or `SO_RCVBUF`: Linux gives it twice as many, within limits.
pub fn buffer_bytes(asked: i32, least: usize) -> usize {
    let half = usize::try_from(asked).unwrap_or(SIZE_MAX).min(SIZE_MAX / 2);
    (half * 2).max(least)
}

impl Socket {
    /// A socket that is connected to nobody. None: the budget has no room for it.
    pub fn new(number: u64, kind: Kind, traffic: &Rc<Traffic>) -> Option<Rc<Socket>> {
        let share = traffic.budget.take(SOCKET_BYTES)?;
        traffic.sockets.set(traffic.sockets.get() + 1);
        Some(Rc::new(Socket {
            number,
            kind,
            queue: RefCell::default(),
            peer: RefCell::default(),
            is_connected: Cell::new(false),
            shut: Cell::new(0),
            error: Cell::new(None),
            sent: Cell::new(0),
            send_size: Cell::new(SIZE),
            receive_size: Cell::new(SIZE),
            timeouts: Default::default(),
            tells_sender: Cell::new(false),
            name: RefCell::default(),
            peer_name: RefCell::default(),
            place: Cell::new(None),
            listening: RefCell::default(),
            stuck: RefCell::default(),
            stuck_at: RefCell::default(),
            peer_credentials: Cell::new(Credentials::NOBODY),
            in_flight: Cell::new(0),
            _share: share,
            traffic: traffic.clone(),
        }))
    }

    /// Connects a socket to another one: messages go there. It is not connected in the other direction.
    pub fn connect(&self, other: &Rc<Socket>, credentials: Credentials) {
        self.peer.replace(Rc::downgrade(other));
        self.is_connected.set(true);
        self.peer_credentials.set(credentials);
    }

    /// Ends the connection of a socket for datagrams.
    pub fn disconnect(&self) {
        self.peer.take();
        self.is_connected.set(false);
        self.peer_credentials.set(Credentials::NOBODY);
    }

    /// Whether it is connected, also to a socket that is closed by now.
    pub fn is_connected(&self) -> bool {
        self.is_connected.get()
    }

    /// The socket at the other end, unless it is closed.
    pub fn peer(&self) -> Option<Rc<Socket>> {
        self.peer.borrow().upgrade()
    }

    /// Name of the other end.
    pub fn peer_name(&self) -> Result<Option<SocketName>> {
        match self.peer() {
            Some(peer) => Ok(peer.name.borrow().clone()),
            None if self.is_connected() && self.kind != Kind::Datagram => Ok(self.peer_name.borrow().clone()),
            None => Err(ENOTCONN),
        }
    }

    /// Whether it takes messages from another one: it is connected to nobody else.
    pub fn hears(&self, other: &Socket) -> bool {
        self.peer().is_none_or(|peer| peer.number == other.number)
    }

    fn is_shut(&self, direction: u32) -> bool {
        self.shut.get() & direction != 0
    }

    /// Bytes that can be read, or those of the first datagram: `FIONREAD`.
    pub fn len(&self) -> usize {
        let queue = self.queue.borrow();
        match self.kind {
            Kind::Datagram => queue.front().map_or(0, |message| message.left().len()),
            _ => queue.iter().map(|message| message.left().len()).sum(),
        }
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    /// Bytes on the way that are charged to it: `TIOCOUTQ`.
    pub fn sent(&self) -> usize {
        self.sent.get()
    }

    /// Readiness: bits of `poll`.
    pub fn poll(self: &Rc<Self>) -> u32 {
        let shut = self.shut.get();
        let is_full = self.kind == Kind::Datagram && self.peer().is_some_and(|peer| peer.is_full_for(self));
        let bits = [
            (self.error.get().is_some(), POLLERR),
            (shut == SHUT_READ | SHUT_WRITE, POLLHUP),
            (self.kind != Kind::Datagram && !self.is_connected() && !self.is_listening(), POLLHUP),
            (shut & SHUT_READ != 0, POLLRDHUP | READABLE),
            (!self.is_empty() || self.has_connection(), READABLE),
            (self.sent.get() * 4 <= self.send_size.get() && !is_full && !self.is_listening(), WRITABLE),
        ];
        bits.into_iter().filter(|(is_so, _)| *is_so).fold(0, |all, (_, bit)| all | bit)
    }

    /// Sends to the other end: a stream as much as there is room for, else all. The descriptors go with the first byte, and are taken out of `enclosed`.
    /// How many bytes, and the socket which has them now.
    ///
    /// `EPIPE`: nobody reads there. `EAGAIN`: no room. `EMSGSIZE`: more than there is ever room for.
    pub fn send(self: &Rc<Self>, bytes: &[u8], enclosed: &mut Enclosed) -> Result<(usize, Rc<Socket>)> {
        if !self.is_connected() {
            return Err(ENOTCONN);
        }
        if self.kind == Kind::Datagram {
            let Some(peer) = self.peer() else {
                self.check_packet(bytes)?;
                self.disconnect();
                return Err(crate::errno::ECONNREFUSED);
            };
            return self.send_packet(&peer, bytes, enclosed).map(|count| (count, peer));
        }
        if self.kind == Kind::Packet {
            self.check_packet(bytes)?;
        }
        let peer = self.peer().filter(|_| !self.is_shut(SHUT_WRITE)).ok_or(EPIPE)?;
        let count = match self.kind {
            Kind::Stream => self.send_stream(&peer, bytes, enclosed)?,
            _ => self.send_packet(&peer, bytes, enclosed)?,
        };
        Ok((count, peer))
    }

    fn send_stream(
        self: &Rc<Self>,
        peer: &Rc<Socket>,
        bytes: &[u8],
        enclosed: &mut Enclosed,
    ) -> Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if peer.is_shut(SHUT_READ) {
            return Err(EPIPE);
        }
        let mut done = 0;
        let piece = PIECE.min(self.send_size.get() / 2 - 64);
        for piece in bytes.chunks(piece) {
            let outcome =
                if self.has_room() { self.queue_message(peer, piece, enclosed) } else { Err(EAGAIN) };
            match outcome {
                Ok(()) => done += piece.len(),
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn check_packet(&self, bytes: &[u8]) -> Result<()> {
        match bytes.len() {
            len if len > self.send_size.get() - HEAD => Err(EMSGSIZE),
            _ if self.is_shut(SHUT_WRITE) => Err(EPIPE),
            _ => Ok(()),
        }
    }

    /// Sends a packet to a socket. See [`Socket::send`].
    pub fn send_packet(
        self: &Rc<Self>,
        to: &Rc<Socket>,
        bytes: &[u8],
        enclosed: &mut Enclosed,
    ) -> Result<usize> {
        self.check_packet(bytes)?;
        if !self.has_room() {
            return Err(EAGAIN);
        }
        if to.is_shut(SHUT_READ) {
            return Err(EPIPE);
        }
        if to.is_full_for(self) {
            return Err(EAGAIN);
        }
        self.queue_message(to, bytes, enclosed)?;
        Ok(bytes.len())
    }

    fn has_room(&self) -> bool {
        self.sent.get() < self.send_size.get()
    }

    fn queue_message(self: &Rc<Self>, to: &Rc<Socket>, bytes: &[u8], enclosed: &mut Enclosed) -> Result<()> {
        let charge = charge(bytes.len());
        let count = enclosed.files.len();
        let budget = &self.traffic.budget;
        let share = budget.take(charge + count * FILE_BYTES).ok_or(ENOBUFS)?;
        let passage = budget.pass(count, enclosed.files_max).ok_or(ETOOMANYREFS)?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len()).map_err(|_| ENOBUFS)?;
        copy.extend_from_slice(bytes);
        to.queue.borrow_mut().try_reserve(1).map_err(|_| ENOBUFS)?;
        let flight = Flight::new(core::mem::take(&mut enclosed.files), passage);
        if count > 0 {
            self.traffic.carriers.borrow_mut().insert(to.number, Rc::downgrade(to));
        }
        self.sent.set(self.sent.get() + charge);
        self.traffic.bytes.set(self.traffic.bytes.get() + charge);
        to.queue.borrow_mut().push_back(Message {
            bytes: copy,
            read: 0,
            flight,
            credentials: enclosed.credentials,
            from: self.name.borrow().clone(),
            sender: Rc::downgrade(self),
            charge,
            _share: share,
            traffic: self.traffic.clone(),
        });
        Ok(())
    }

    /// Receives at most so many bytes. `peeks`: they stay.
    ///
    /// `EAGAIN`: nothing now. `EINVAL`, `ENOTCONN`: not connected. Other errors are those that were to be told.
    pub fn receive(&self, room: usize, peeks: bool) -> Result<Received> {
        match self.kind {
            Kind::Stream if !self.is_connected() => Err(EINVAL),
            Kind::Packet if !self.is_connected() => Err(ENOTCONN),
            Kind::Stream => self.receive_stream(room, peeks),
            _ => self.receive_packet(room, peeks),
        }
    }

    /// Outcome where nothing is in the queue.
    fn nothing(&self) -> Result<Received> {
        match self.error.take() {
            Some(error) => Err(error),
            None if self.is_shut(SHUT_READ) => Ok(Received { is_end: true, ..Received::default() }),
            None => Err(EAGAIN),
        }
    }

    fn receive_stream(&self, room: usize, peeks: bool) -> Result<Received> {
        let mut queue = self.queue.borrow_mut();
        if queue.is_empty() {
            drop(queue);
            return self.nothing();
        }
        let mut found = Received::default();
        let mut at = 0;
        while let Some(message) = queue.get_mut(at) {
            let is_other = found.credentials.is_some_and(|before| before != message.credentials);
            if is_other && self.tells_sender.get() {
                break;
            }
            found.credentials.get_or_insert(message.credentials);
            if found.from.is_none() {
                found.from.clone_from(&message.from);
            }
            let left = message.left().len();
            let count = left.min(room - found.bytes.len());
            let is_read = count == left;
            if is_read && !peeks && message.read == 0 && found.bytes.is_empty() {
                // All of it, and nothing before: its memory goes along.
                found.bytes = core::mem::take(&mut message.bytes);
            } else {
                found.bytes.try_reserve(count).map_err(|_| Errno::NO_MEMORY)?;
                found.bytes.extend_from_slice(&message.left()[..count]);
                message.read += if peeks { 0 } else { count };
            }
            if peeks {
                found.files.extend(message.flight.files().iter().cloned());
                at += 1;
            } else {
                found.files.append(&mut message.flight.take());
                if is_read && let Some(message) = queue.pop_front() {
                    found.senders.extend(message.sender.upgrade().map(|sender| sender.number));
                }
            }
            // Descriptors come with bytes of their message and not with those of the next.
            if !is_read || !found.files.is_empty() || found.bytes.len() == room {
                break;
            }
        }
        shorten_queue(&mut queue);
        found.senders.dedup();
        found.whole = found.bytes.len();
        Ok(found)
    }

    fn receive_packet(&self, room: usize, peeks: bool) -> Result<Received> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut queue = self.queue.borrow_mut();
        let Some(message) = queue.front_mut() else {
            drop(queue);
            return self.nothing();
        };
        let whole = message.bytes.len();
        let mut found = Received {
            whole,
            credentials: Some(message.credentials),
            from: message.from.clone(),
            ..Received::default()
        };
        let count = whole.min(room);
        if peeks {
            found.files.extend(message.flight.files().iter().cloned());
            found.bytes.try_reserve_exact(count).map_err(|_| Errno::NO_MEMORY)?;
            found.bytes.extend_from_slice(&message.bytes[..count]);
        } else if let Some(mut message) = queue.pop_front() {
            found.files = message.flight.take();
            found.bytes = core::mem::take(&mut message.bytes);
            found.bytes.truncate(count);
            found.senders.extend(message.sender.upgrade().map(|sender| sender.number));
            found.senders.extend(self.take_stuck());
            shorten_queue(&mut queue);
        }
        Ok(found)
    }

    /// Shuts directions. The other end of a connection, if it has one that hears of it.
    pub fn shut_down(&self, directions: u32) -> Option<Rc<Socket>> {
        self.shut.set(self.shut.get() | directions);
        let peer = self.peer().filter(|_| self.kind != Kind::Datagram)?;
        let turned = (directions & SHUT_READ) << 1 | (directions & SHUT_WRITE) >> 1;
        peer.shut.set(peer.shut.get() | turned);
        Some(peer)
    }

    /// Empties a socket that is closed, and tells the other end. `is_refused`: nobody has accepted it.
    /// Descriptors that were on the way to it, and the sockets that hear of it.
    pub fn release(&self, is_refused: bool) -> (Vec<Rc<Open>>, Vec<(u64, u32)>) {
        let mut told = Vec::new();
        let had_unread = !self.is_empty() || is_refused;
        if let Some(peer) = self.shut_down(SHUT_READ | SHUT_WRITE) {
            if had_unread {
                peer.error.set(Some(ECONNRESET));
            }
            peer.peer_name.replace(self.name.borrow().clone());
            told.push((peer.number, ANY));
        }
        let (mut files, senders) = self.empty();
        told.extend(senders);
        told.push((self.number, ANY));
        // Nobody will accept those that wait. They do not listen themselves.
        let listening = self.listening.take();
        for waiting in listening.into_iter().flat_map(|listening| listening.waiting) {
            let (more, others) = waiting.release(true);
            files.extend(more);
            told.extend(others);
        }
        (files, told)
    }

    /// Forgets all messages, and those of connections that wait to be accepted. See [`Socket::empty`].
    pub fn empty_all(&self) -> (Vec<Rc<Open>>, Vec<(u64, u32)>) {
        let (mut files, mut told) = self.empty();
        for waiting in self.waiting() {
            let (more, others) = waiting.empty();
            files.extend(more);
            told.extend(others);
        }
        (files, told)
    }

    /// Forgets all messages. Their descriptors, and the sockets that hear of it.
    pub fn empty(&self) -> (Vec<Rc<Open>>, Vec<(u64, u32)>) {
        let queue = core::mem::take(&mut *self.queue.borrow_mut());
        let mut files = Vec::new();
        let mut told: Vec<(u64, u32)> = self.take_stuck().map(|number| (number, WRITABLE)).collect();
        for mut message in queue {
            files.append(&mut message.flight.take());
            told.extend(message.sender.upgrade().map(|sender| (sender.number, WRITABLE)));
        }
        (files, told)
    }
}
