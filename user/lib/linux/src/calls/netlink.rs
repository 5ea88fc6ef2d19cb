//! Sockets of netlink as programs see them: made, given ports, asked, and read.

mod options;

pub use options::netlink_option;

use super::files::Taken;
use super::messages::Header;
use super::number;
use super::sockets::{KIND_MASK, kind_of};
use crate::errno::{
    EAGAIN, EFAULT, EINVAL, EMSGSIZE, ENOBUFS, ENODATA, EOPNOTSUPP, EPERM, EPIPE, EPROTONOSUPPORT,
    ESOCKTNOSUPPORT, Result,
};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::netlink::answers::{Asker, answers};
use crate::netlink::message::requests;
use crate::netlink::{ADDRESS_BYTES, NETLINK_BYTES, Netlink, address_bytes, parse};
use crate::open::{OPEN_BYTES, Object, Open};
use crate::process::Event;
use crate::socket::{ANY, Credentials, Kind, READABLE};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::boxed::Box;
use alloc::vec::Vec;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDWR, POLLERR};
use linux_raw_sys::net::{
    AF_UNSPEC, MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_OOB, MSG_PEEK, MSG_TRUNC, SCM_CREDENTIALS, SOL_NETLINK,
    SOL_SOCKET,
};
use linux_raw_sys::netlink::{NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK, NETLINK_PKTINFO, NETLINK_ROUTE};
use vfs::FileSystem;

/// Bytes of the longest address of any family.
const ADDRESS_MAX: u64 = 128;

/// Bytes of a message that are kept for its head: it has so many fewer than [`Netlink::send_size`].
const HEAD: usize = 32;

/// Most bytes that a call receives at once.
const RECEIVED_MAX: u64 = 1 << 20;

/// Port and groups of the kernel, to which all messages go.
const KERNEL: (u32, u32) = (0, 0);

/// Identity of the kernel, from which all answers are.
const SENDER: Credentials = Credentials { pid: 0, owner: 0, group: 0 };

/// Fails unless a socket sends messages of so many bytes.
fn check_length(socket: &Netlink, len: u64) -> Result<()> {
    match len {
        0 => Err(ENODATA),
        len if len > (socket.send_size.get() - HEAD) as u64 => Err(EMSGSIZE),
        _ => Ok(()),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(super) fn netlink_socket(&mut self, tid: Tid, kind: u64, protocol: u64) -> Answer {
        let kind_number = kind as u32 & KIND_MASK;
        let (kind, flags) = kind_of(kind)?;
        if kind != Kind::Datagram {
            return Err(ESOCKTNOSUPPORT);
        }
        if protocol as u32 != NETLINK_ROUTE {
            return Err(EPROTONOSUPPORT);
        }
        if let Some(wait) = self.awaits_network() {
            return Ok(wait);
        }
        let share = self.budget.take(OPEN_BYTES + NETLINK_BYTES).ok_or(ENOBUFS)?;
        let socket = Netlink::new(self.ring(), kind_number, &self.budget);
        let open = Open::new(Object::Netlink(Box::new(socket)), O_RDWR | flags & O_NONBLOCK);
        open.share.replace(Some(share));
        number(self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0))
    }

    /// Port and groups of an address that a call names.
    fn netlink_address(&mut self, tid: Tid, (at, len): (u64, u64)) -> Result<(u32, u32)> {
        let len = u64::from(len as u32);
        if !(ADDRESS_BYTES as u64..=ADDRESS_MAX).contains(&len) {
            return Err(EINVAL);
        }
        let mut bytes = [0; ADDRESS_BYTES];
        self.read(tid, at, &mut bytes)?;
        parse(&bytes)
    }

    /// Gives a socket the port that it wants, or any if that is 0.
    fn give_port(&mut self, tid: Tid, socket: &Netlink, wanted: u32) -> Result<()> {
        let process = self.pid(tid)?;
        socket.port.set(self.sockets.netlinks.take(wanted, process)?);
        Ok(())
    }

    /// Gives a socket a port that has none.
    fn give_any_port(&mut self, tid: Tid, socket: &Netlink) -> Result<()> {
        if socket.port.get() == 0 { self.give_port(tid, socket, 0) } else { Ok(()) }
    }

    pub(super) fn bind_netlink(&mut self, tid: Tid, socket: &Netlink, address: (u64, u64)) -> Answer {
        let (port, groups) = self.netlink_address(tid, address)?;
        match socket.port.get() {
            0 => self.give_port(tid, socket, port)?,
            own if own != port => return Err(EINVAL),
            _ => {}
        }
        socket.set_groups(groups);
        DONE
    }

    /// Connects a socket to the kernel, to which it is anyway; to others it cannot be.
    pub(super) fn connect_netlink(&mut self, tid: Tid, socket: &Netlink, (at, len): (u64, u64)) -> Answer {
        let mut family = [0; 2];
        if !(family.len() as u64..=ADDRESS_MAX).contains(&u64::from(len as u32)) {
            return Err(EINVAL);
        }
        self.read(tid, at, &mut family)?;
        if u32::from(u16::from_le_bytes(family)) == AF_UNSPEC {
            return DONE;
        }
        if self.netlink_address(tid, (at, len))? != KERNEL {
            return Err(EPERM);
        }
        self.give_any_port(tid, socket)?;
        DONE
    }

    pub(crate) fn close_netlink(&mut self, socket: &Netlink) {
        self.sockets.netlinks.leave(socket.port.get());
        self.happened(socket.number, ANY);
    }

    /// Answers the requests of a message.
    fn answer_requests(&mut self, socket: &Netlink, message: &[u8]) {
        let layout = self.layout();
        let asker = Asker {
            port: socket.port.get(),
            is_strict: socket.has(NETLINK_GET_STRICT_CHK),
            is_capped: socket.has(NETLINK_CAP_ACK),
        };
        for request in requests(message) {
            // Behind answers that were lost all others are, too: so a message costs no more than the socket has room for.
            if socket.arrive(answers(&request, &layout, &asker)).is_err() {
                break;
            }
        }
        let ready = socket.poll() & (READABLE | POLLERR);
        if ready != 0 {
            self.happened(socket.number, ready);
        }
    }

    pub(super) fn send_by_netlink(
        &mut self,
        tid: Tid,
        socket: &Netlink,
        header: &Header,
        flags: u32,
    ) -> Answer {
        if flags & MSG_OOB != 0 {
            return Err(EOPNOTSUPP);
        }
        let len = header.len();
        if len == 0 {
            return Err(ENODATA);
        }
        let (at, name_len) = header.name;
        if name_len != 0 && self.netlink_address(tid, (at, name_len.into()))? != KERNEL {
            return Err(EPERM);
        }
        self.give_any_port(tid, socket)?;
        check_length(socket, len)?;
        let (message, is_there) = self.gather(tid, &header.pieces, 0, len)?;
        if !is_there {
            return Err(EFAULT);
        }
        self.answer_requests(socket, &message);
        Ok(Outcome::Value(len))
    }

    /// Writes as to a file.
    pub(super) fn put_netlink(&mut self, socket: &Netlink, from: &[u8]) -> Result<usize> {
        let tid = self.current.ok_or(EPIPE)?;
        check_length(socket, from.len() as u64)?;
        self.give_any_port(tid, socket)?;
        self.answer_requests(socket, from);
        Ok(from.len())
    }

    /// Receives from a socket, and lets those go on who wait for its room.
    fn receive_netlink(&mut self, socket: &Netlink, room: usize, peeks: bool) -> Result<(Vec<u8>, usize)> {
        let was_full = socket.is_full();
        let received = socket.receive(room, peeks)?;
        if was_full && !peeks {
            self.tell(Event::Ring(socket.number));
        }
        Ok(received)
    }

    /// Reads as from a file.
    pub(super) fn take_netlink(&mut self, socket: &Netlink, to: &mut [u8]) -> Result<Taken> {
        match self.receive_netlink(socket, to.len(), false) {
            Ok((bytes, _)) => {
                to.iter_mut().zip(&bytes).for_each(|(to, byte)| *to = *byte);
                Ok(Taken::Bytes(bytes.len()))
            }
            Err(EAGAIN) => {
                let tid = self.current.ok_or(EAGAIN)?;
                self.socket_deadline(tid, socket.timeouts[0].get()).map(Taken::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Receives what waits together. The outcome, and true if some of it is cut off.
    pub(super) fn receive_by_netlink(
        &mut self,
        tid: Tid,
        (open, socket): (&Open, &Netlink),
        header: &Header,
        flags: u32,
    ) -> Result<(Outcome, bool)> {
        if flags & MSG_OOB != 0 {
            return Err(EOPNOTSUPP);
        }
        let room = header.len().min(RECEIVED_MAX) as usize;
        let is_brief = open.has(O_NONBLOCK) || flags & MSG_DONTWAIT != 0;
        let (bytes, whole) = match self.receive_netlink(socket, room, flags & MSG_PEEK != 0) {
            Err(EAGAIN) if !is_brief => {
                let until = self.socket_deadline(tid, socket.timeouts[0].get())?;
                return Ok((Outcome::Wait(Vec::from([Event::Ring(socket.number)]), until), false));
            }
            received => received?,
        };
        self.scatter(tid, &header.pieces, 0, &bytes)?;
        let told = if flags & MSG_TRUNC != 0 { whole } else { bytes.len() };
        Ok((Outcome::Value(told as u64), whole > bytes.len()))
    }

    /// Receives, and tells the sender and flags.
    pub(super) fn receive_whole_by_netlink(
        &mut self,
        tid: Tid,
        (open, socket): (&Open, &Netlink),
        header: &Header,
        flags: u32,
    ) -> Answer {
        let (outcome, is_cut) = self.receive_by_netlink(tid, (open, socket), header, flags)?;
        if matches!(outcome, Outcome::Wait(..)) {
            return Ok(outcome);
        }
        let mut control = header.beside();
        if socket.has(NETLINK_PKTINFO) {
            // Its only number is that of a group, and answers are for none.
            control.put((SOL_NETLINK, NETLINK_PKTINFO), &[0; 4]);
        }
        if socket.tells_sender.get() {
            control.put((SOL_SOCKET, SCM_CREDENTIALS), &SENDER.bytes());
        }
        let told = flags & MSG_CMSG_CLOEXEC | if is_cut { MSG_TRUNC } else { 0 };
        let (port, groups) = KERNEL;
        self.write_back(tid, header, &address_bytes(port, groups), &control, told)?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
