//! Sockets: made, shut, asked for their options, and read and written as files are.

use super::files::{PIECE_MAX, Taken};
use super::netlink::netlink_option;
use super::pieces::Piece;
use super::{done, number};
use crate::budget::Budget;
use crate::errno::{
    EAFNOSUPPORT, EAGAIN, EDOM, EFAULT, EINVAL, ENFILE, ENOBUFS, ENOPROTOOPT, ENOTSOCK, EOPNOTSUPP, EPIPE,
    EPROTONOSUPPORT, ESOCKTNOSUPPORT, Result,
};
use crate::frames::Bytes;
use crate::inet::{Family, Inet, Ports};
use crate::machine::{Machine, Tid};
use crate::network::{Below, Near, Network};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::socket::{
    ANY, Credentials, Enclosed, Kind, READABLE, Received, SHUT_READ, SHUT_WRITE, SIZES_MIN, Socket,
    SocketName, Traffic, WRITABLE, buffer_bytes, may_be_lost,
};
use crate::system::{Answer, DONE, System};
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::Cell;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use linux_raw_sys::net::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, SHUT_RD, SHUT_RDWR, SHUT_WR, SO_ACCEPTCONN, SO_BROADCAST,
    SO_DEBUG, SO_DOMAIN, SO_DONTROUTE, SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_MARK, SO_OOBINLINE, SO_PASSCRED,
    SO_PEERCRED, SO_PRIORITY, SO_PROTOCOL, SO_RCVBUF, SO_RCVBUFFORCE, SO_RCVLOWAT, SO_RCVTIMEO_NEW,
    SO_RCVTIMEO_OLD, SO_REUSEADDR, SO_REUSEPORT, SO_SNDBUF, SO_SNDBUFFORCE, SO_SNDLOWAT, SO_SNDTIMEO_NEW,
    SO_SNDTIMEO_OLD, SO_TIMESTAMP, SO_TYPE, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};
use vfs::FileSystem;

/// Bits of the kind of a socket; the others are flags.
pub(super) const KIND_MASK: u32 = 0xf;

/// Highest number of a kind.
const KIND_MAX: u32 = 11;

/// Nanoseconds of a microsecond.
const MICROSECOND: u64 = 1000;

/// Sockets of a sandbox.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Sums over all of them.
    pub traffic: Rc<Traffic>,
    /// Sockets by names that are no paths.
    pub(super) names: BTreeMap<SocketName, Weak<Socket>>,
    /// Sockets by the numbers of the files that have their names. These are open meanwhile, so no other file gets a number.
    pub(super) places: BTreeMap<u64, Weak<Socket>>,
    /// The name that was chosen last.
    pub(super) chosen: u64,
    /// The network.
    pub network: Below,
    /// Whether the network has something [to tell](crate::network::Network::due).
    pub(crate) is_due: Rc<Cell<bool>>,
    /// Streams and sockets for datagrams of the network that have an address.
    pub(super) bound: BTreeMap<u64, Weak<Inet>>,
    /// Those of them that listen.
    pub(super) ports: Ports,
    /// The next port for a socket that does not say which; 0: none has asked yet.
    pub(super) next_port: u16,
    /// Whether a socket of the network has ever wanted to know when datagrams come.
    pub(super) wants_dates: bool,
    /// Ports of sockets of netlink.
    pub(super) netlinks: crate::netlink::Ports,
}

impl Sockets {
    /// No sockets. They and their messages have shares of a budget.
    pub fn within(budget: &Budget) -> Sockets {
        Sockets { traffic: Rc::new(Traffic::within(budget)), ..Sockets::default() }
    }

    /// Puts connections of the sandbox with itself in front of a network.
    pub fn use_network(&mut self, below: Rc<dyn Network>, budget: &Budget) {
        self.network = Below(Rc::new(Near::new(below, budget, self.is_due.clone())));
    }
}

/// Kind, and flags of its descriptor.
pub(super) fn kind_of(kind: u64) -> Result<(Kind, u32)> {
    let kind = kind as u32;
    let flags = kind & !KIND_MASK;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(EINVAL);
    }
    match kind & KIND_MASK {
        SOCK_STREAM => Ok((Kind::Stream, flags)),
        SOCK_DGRAM | SOCK_RAW => Ok((Kind::Datagram, flags)),
        SOCK_SEQPACKET => Ok((Kind::Packet, flags)),
        0 | KIND_MAX.. => Err(EINVAL),
        _ => Err(ESOCKTNOSUPPORT),
    }
}

fn check_protocol(protocol: u64) -> Result<()> {
    if matches!(protocol as u32, 0 | AF_UNIX) { Ok(()) } else { Err(EPROTONOSUPPORT) }
}

/// Whether it is a socket that is open.
pub fn check_socket(open: &Open) -> Result<()> {
    let is_one = matches!(open.object, Object::Socket(_) | Object::Inet(_) | Object::Netlink(_));
    if is_one { Ok(()) } else { Err(ENOTSOCK) }
}

/// Longest wait of a socket to send; none if it is no socket.
pub fn send_timeout(open: &Open) -> Option<u64> {
    match &open.object {
        Object::Socket(socket) => Some(socket.timeouts[1].get()),
        Object::Inet(inet) => Some(inet.timeouts[1].get()),
        _ => None,
    }
}

/// The socket that is open. `EOPNOTSUPP`: it is one of netlink, which neither listens nor is shut.
pub fn socket_of(open: &Open) -> Result<&Rc<Socket>> {
    match &open.object {
        Object::Socket(socket) => Ok(socket),
        Object::Netlink(_) => Err(EOPNOTSUPP),
        _ => Err(ENOTSOCK),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Identity of a thread's process.
    pub fn credentials(&mut self, tid: Tid) -> Result<Credentials> {
        let pid = self.pid(tid)?;
        let owners = &self.process(tid)?.owners;
        Ok(Credentials { pid, owner: owners.owner[1], group: owners.group[1] })
    }

    /// A socket. `ENFILE`: there are too many, in all processes together. `ENOBUFS`: no memory for it.
    pub(super) fn new_socket(&mut self, kind: Kind) -> Result<Rc<Socket>> {
        if !self.sockets.traffic.has_room() {
            return Err(ENFILE);
        }
        let number = self.ring();
        Socket::new(number, kind, &self.sockets.traffic).ok_or(ENOBUFS)
    }

    /// Gives a process a descriptor of a socket.
    pub(super) fn add_socket(&mut self, tid: Tid, socket: Rc<Socket>, flags: u32) -> Result<u64> {
        let open = Open::new(Object::Socket(socket), O_RDWR | flags & O_NONBLOCK);
        self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0)
    }

    pub(crate) fn sys_socket(&mut self, tid: Tid, [family, kind, protocol, ..]: [u64; 6]) -> Answer {
        if let Some(family) = Family::of(family as u32) {
            return self.inet_socket(tid, family, kind, protocol);
        }
        match family as u32 {
            AF_UNIX => {}
            AF_NETLINK => return self.netlink_socket(tid, kind, protocol),
            _ => return Err(EAFNOSUPPORT),
        }
        let (kind, flags) = kind_of(kind)?;
        check_protocol(protocol)?;
        let socket = self.new_socket(kind)?;
        number(self.add_socket(tid, socket, flags))
    }

    pub(crate) fn sys_socketpair(&mut self, tid: Tid, [family, kind, protocol, to, ..]: [u64; 6]) -> Answer {
        match family as u32 {
            AF_UNIX => {}
            AF_INET | AF_INET6 | AF_NETLINK => return Err(EOPNOTSUPP),
            _ => return Err(EAFNOSUPPORT),
        }
        let (kind, flags) = kind_of(kind)?;
        check_protocol(protocol)?;
        let own = self.credentials(tid)?;
        let (one, other) = (self.new_socket(kind)?, self.new_socket(kind)?);
        one.connect(&other, own);
        other.connect(&one, own);
        let first = self.add_socket(tid, one, flags)?;
        let second = match self.add_socket(tid, other, flags) {
            Ok(second) => second,
            Err(error) => {
                self.take_back(tid, first);
                return Err(error);
            }
        };
        if let Err(error) = self.write(tid, to, &(first | second << 32).to_le_bytes()) {
            self.take_back(tid, first);
            self.take_back(tid, second);
            return Err(error);
        }
        DONE
    }

    /// Closes a socket, and what was on the way to it. That may be sockets, too, so it is done one after the other.
    pub(crate) fn close_socket(&mut self, socket: &Rc<Socket>) {
        let mut left = self.release_socket(socket);
        while let Some(open) = left.pop() {
            // Locks belong to an open file by its place in memory, so it is closed where it is.
            let Object::Socket(socket) = &open.object else {
                self.close(open);
                continue;
            };
            let (socket, address) = (Rc::clone(socket), Rc::as_ptr(&open) as usize);
            match Rc::try_unwrap(open) {
                Ok(_) => {
                    self.watches.forget(address);
                    left.extend(self.release_socket(&socket));
                }
                Err(open) => self.left_open(open),
            }
        }
    }

    /// A descriptor is closed, and others lead there, too. If those are on the way, it may be that nobody will ever get them: such sockets are emptied,
    /// and so closed.
    pub(crate) fn left_open(&mut self, open: Rc<Open>) {
        if !may_be_lost(&open, 1) {
            return;
        }
        drop(open);
        let mut files = Vec::new();
        for socket in self.sockets.traffic.lost() {
            let (more, told) = socket.empty_all();
            files.extend(more);
            for (number, bits) in told {
                self.happened(number, bits);
            }
        }
        self.close_all(&mut files);
    }

    fn release_socket(&mut self, socket: &Rc<Socket>) -> Vec<Rc<Open>> {
        self.forget_name(socket);
        let (files, told) = socket.release(false);
        for (number, bits) in told {
            self.happened(number, bits);
        }
        files
    }

    /// When a call that waits for a socket gives up. `EAGAIN`: it has waited so long.
    pub(super) fn socket_deadline(&mut self, tid: Tid, timeout: u64) -> Result<Option<u64>> {
        let now = self.machine.now();
        match self.thread(tid)?.until {
            Some(Some(until)) if until <= now => Err(EAGAIN),
            Some(until) => Ok(until),
            None => Ok((timeout > 0).then(|| now.saturating_add(timeout))),
        }
    }

    /// Tells senders that their messages were read.
    pub(super) fn tell_read(&mut self, socket: &Socket, received: &mut Received) {
        let senders = core::mem::take(&mut received.senders);
        if !senders.is_empty() {
            self.tell(Event::Ring(socket.number));
        }
        for sender in senders {
            self.happened(sender, WRITABLE);
        }
    }

    /// Reads into pieces of memory, which have `wanted` bytes, as from a file: descriptors that come along are closed.
    pub(super) fn read_socket(
        &mut self,
        tid: Tid,
        open: &Open,
        socket: &Rc<Socket>,
        (pieces, wanted): (&[Piece], u64),
    ) -> Answer {
        let room = wanted.min(PIECE_MAX) as usize;
        let Some(bytes) = self.receive_bytes(socket, room)? else {
            let until = self.socket_deadline(tid, socket.timeouts[0].get())?;
            return self.nothing_to_read(open, until);
        };
        let given = self.give(tid, pieces, &bytes)?;
        if given == 0 && !bytes.is_empty() { Err(EFAULT) } else { number(Ok(given as u64)) }
    }

    /// Takes bytes of a socket, for a call that has its own place for them.
    pub(super) fn take_socket(&mut self, socket: &Rc<Socket>, to: &mut [u8]) -> Result<Taken> {
        let Some(bytes) = self.receive_bytes(socket, to.len())? else {
            let tid = self.current.ok_or(EAGAIN)?;
            return self.socket_deadline(tid, socket.timeouts[0].get()).map(Taken::Nothing);
        };
        to[..bytes.len()].copy_from_slice(&bytes);
        Ok(Taken::Bytes(bytes.len()))
    }

    /// Bytes of a socket, at most so many; none if nothing has come.
    fn receive_bytes(&mut self, socket: &Rc<Socket>, room: usize) -> Result<Option<Vec<u8>>> {
        let mut received = match socket.receive(room, false) {
            Err(EAGAIN) => return Ok(None),
            received => received?,
        };
        self.tell_read(socket, &mut received);
        for open in core::mem::take(&mut received.files) {
            self.close(open);
        }
        Ok(Some(received.bytes))
    }

    /// Writes as to a file.
    pub(super) fn put_socket(&mut self, socket: &Rc<Socket>, from: &[u8]) -> Result<usize> {
        let tid = self.current.ok_or(EPIPE)?;
        let mut enclosed = Enclosed { files: Vec::new(), files_max: 0, credentials: self.credentials(tid)? };
        let (count, peer) = socket.send(from, &mut enclosed)?;
        self.happened(peer.number, READABLE);
        Ok(count)
    }

    pub(crate) fn sys_shutdown(&mut self, tid: Tid, [fd, how, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        check_socket(&open)?;
        let directions = match how as u32 {
            SHUT_RD => SHUT_READ,
            SHUT_WR => SHUT_WRITE,
            SHUT_RDWR => SHUT_READ | SHUT_WRITE,
            _ => return Err(EINVAL),
        };
        if let Object::Inet(inet) = &open.object {
            return self.shut_inet(inet, directions);
        }
        let socket = socket_of(&open)?;
        let peer = socket.shut_down(directions);
        self.happened(socket.number, ANY);
        if let Some(peer) = peer {
            self.happened(peer.number, ANY);
        }
        DONE
    }

    pub(crate) fn sys_getsockopt(&mut self, tid: Tid, [fd, level, name, to, len, _]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        check_socket(&open)?;
        let mut room = [0; 4];
        self.read(tid, len, &mut room)?;
        let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| EINVAL)?;
        let bytes = match &open.object {
            Object::Inet(inet) => self.inet_option(inet, level as u32, name as u32)?,
            Object::Netlink(socket) => netlink_option(socket, level as u32, name as u32, room)?,
            _ if level as u32 != SOL_SOCKET => return Err(EOPNOTSUPP),
            _ => option(socket_of(&open)?, name as u32)?,
        };
        let bytes = &bytes[..bytes.len().min(room)];
        self.write(tid, to, bytes)?;
        done(self.write(tid, len, &(bytes.len() as u32).to_le_bytes()))
    }

    pub(crate) fn sys_setsockopt(&mut self, tid: Tid, [fd, level, name, at, len, _]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.set_inet_option(tid, inet, (level as u32, name as u32), (at, len));
        }
        if let Object::Netlink(socket) = &open.object {
            return self.set_netlink_option(tid, socket, (level as u32, name as u32), (at, len));
        }
        let socket = socket_of(&open)?;
        if level as u32 != SOL_SOCKET {
            return Err(EOPNOTSUPP);
        }
        if (len as i32) < 4 {
            return Err(EINVAL);
        }
        let mut bytes = [0; 4];
        self.read(tid, at, &mut bytes)?;
        let value = i32::from_le_bytes(bytes);
        match name as u32 {
            SO_SNDBUF | SO_SNDBUFFORCE => {
                socket.send_size.set(buffer_bytes(value, SIZES_MIN[0]));
                self.happened(socket.number, WRITABLE);
            }
            SO_RCVBUF | SO_RCVBUFFORCE => socket.receive_size.set(buffer_bytes(value, SIZES_MIN[1])),
            SO_PASSCRED => socket.tells_sender.set(value != 0),
            SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW => {
                return self.set_timeout(tid, &socket.timeouts[0], (at, len));
            }
            SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW => {
                return self.set_timeout(tid, &socket.timeouts[1], (at, len));
            }
            // Options of other families, which have no effect on this one.
            SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST | SO_LINGER | SO_PRIORITY
            | SO_OOBINLINE | SO_RCVLOWAT | SO_DEBUG | SO_DONTROUTE | SO_TIMESTAMP | SO_MARK => {}
            _ => return Err(ENOPROTOOPT),
        }
        DONE
    }

    pub(super) fn set_timeout(&mut self, tid: Tid, timeout: &Cell<u64>, (at, len): (u64, u64)) -> Answer {
        if (len as i32) < 16 {
            return Err(EINVAL);
        }
        let [seconds, rest] = self.words(tid, at)?;
        if rest >= 1_000_000 {
            return Err(EDOM);
        }
        // A time before now gives up at once.
        timeout.set(match seconds as i64 {
            ..0 => 1,
            _ => seconds.saturating_mul(super::time::SECOND).saturating_add(rest * MICROSECOND),
        });
        DONE
    }
}

/// Value of an option.
fn option(socket: &Socket, name: u32) -> Result<Vec<u8>> {
    let value = match name {
        SO_TYPE => socket.kind.number(),
        SO_DOMAIN => AF_UNIX,
        SO_ERROR => socket.error.take().map_or(0, |error| error.0.into()),
        SO_SNDBUF => socket.send_size.get() as u32,
        SO_RCVBUF => socket.receive_size.get() as u32,
        SO_PASSCRED => socket.tells_sender.get().into(),
        SO_RCVLOWAT | SO_SNDLOWAT => 1,
        SO_ACCEPTCONN => socket.is_listening().into(),
        SO_PROTOCOL | SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST | SO_PRIORITY
        | SO_OOBINLINE | SO_DEBUG | SO_DONTROUTE | SO_TIMESTAMP | SO_MARK => 0,
        SO_LINGER => return Ok([0; 8].to_vec()),
        SO_PEERCRED => return Ok(socket.peer_credentials.get().bytes()),
        SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW => return Ok(time_bytes(socket.timeouts[0].get())),
        SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW => return Ok(time_bytes(socket.timeouts[1].get())),
        _ => return Err(ENOPROTOOPT),
    };
    Ok(value.to_le_bytes().to_vec())
}

/// Bytes of `struct timeval`.
pub(super) fn time_bytes(time: u64) -> Vec<u8> {
    let words = [time / super::time::SECOND, time % super::time::SECOND / MICROSECOND];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests;
