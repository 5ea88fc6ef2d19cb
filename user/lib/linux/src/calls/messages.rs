//! Messages of sockets: bytes in pieces of memory, with descriptors and the identity of the sender beside them.

use super::inet::sender_bytes;
use super::number;
use super::sockets::{check_socket, socket_of};
use crate::errno::{EAGAIN, EBADF, EINVAL, EISCONN, EMSGSIZE, ENOBUFS, EOPNOTSUPP, EPERM, EPIPE, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::netlink;
use crate::open::{Object, Open};
use crate::process::Event;
use crate::signal::Cause;
use crate::socket::beside::{Control, HEAD_BYTES, half, things};
use crate::socket::{Credentials, Enclosed, Kind, READABLE, Received, Socket, SocketName};
use crate::system::{Answer, Outcome, System};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general::{CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN, O_NONBLOCK, RLIMIT_NOFILE, SIGPIPE};
use linux_raw_sys::net::{
    AF_UNIX, MSG_CMSG_CLOEXEC, MSG_CTRUNC, MSG_DONTWAIT, MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK,
    MSG_TRUNC, MSG_WAITALL, SCM_CREDENTIALS, SCM_RIGHTS, SOL_SOCKET,
};
use vfs::FileSystem;

/// Most bytes that a call moves at once.
const PIECE_MAX: u64 = 1 << 20;

/// Most bytes of one call in Linux.
const COUNT_MAX: u64 = 0x7fff_f000;

/// Pieces of memory that one message may name.
const PIECES_MAX: u64 = 1024;

/// Most bytes beside those of a message.
const CONTROL_MAX: u64 = 20 << 10;

/// Descriptors of one message, at most.
const RIGHTS_MAX: usize = 253;

/// Bytes of `struct ucred`.
const CREDENTIALS_BYTES: usize = 12;

/// A `struct msghdr`.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// Where it is, if the process has one.
    pub(super) at: Option<u64>,
    /// Where the name is, and its bytes.
    pub(super) name: (u64, u32),
    /// Addresses and lengths.
    pub(super) pieces: Vec<(u64, u64)>,
    /// Where the things beside the message are, and their bytes.
    pub(super) control: (u64, u64),
}

impl Header {
    pub(super) fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.1).sum()
    }

    /// Nothing beside the message yet, and the room that there is for it.
    pub(super) fn beside(&self) -> Control {
        let (at, len) = self.control;
        Control::with_room(if at == 0 { 0 } else { len.min(CONTROL_MAX) as usize })
    }
}

/// Bytes of the address of a socket with a name.
pub fn address_bytes(name: Option<&SocketName>) -> Vec<u8> {
    let mut bytes = (AF_UNIX as u16).to_le_bytes().to_vec();
    if let Some(name) = name {
        bytes.extend_from_slice(name);
        // A path ends with a zero; other names begin with one.
        if name.first() != Some(&0) {
            bytes.push(0);
        }
    }
    bytes
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(super) fn header(&mut self, tid: Tid, at: u64) -> Result<Header> {
        let [name, name_len, pieces, count, control, control_len, _] = self.words(tid, at)?;
        let name_len = name_len as u32;
        if name_len > i32::MAX as u32 {
            return Err(EINVAL);
        }
        if count > PIECES_MAX {
            return Err(EMSGSIZE);
        }
        let mut header = Header {
            at: Some(at),
            name: if name == 0 { (0, 0) } else { (name, name_len) },
            pieces: Vec::new(),
            control: (control, control_len),
        };
        let mut total = 0u64;
        for index in 0..count {
            let [at, len] = self.words(tid, pieces.wrapping_add(index * 16))?;
            if len > i64::MAX as u64 {
                return Err(EINVAL);
            }
            // Linux moves no more than this by one call.
            let len = len.min(COUNT_MAX - total);
            total += len;
            header.pieces.push((at, len));
        }
        Ok(header)
    }

    /// Bytes of pieces behind those that are done.
    fn gathered(&mut self, tid: Tid, pieces: &[(u64, u64)], mut skipped: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for (address, len) in pieces {
            let from = skipped.min(*len);
            skipped -= from;
            let room = PIECE_MAX - bytes.len() as u64;
            let start = bytes.len();
            bytes.resize(start + (len - from).min(room) as usize, 0);
            self.read(tid, address.wrapping_add(from), &mut bytes[start..])?;
        }
        Ok(bytes)
    }

    pub(super) fn scatter(
        &mut self,
        tid: Tid,
        pieces: &[(u64, u64)],
        mut skipped: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let mut rest = bytes;
        for (address, len) in pieces {
            let from = skipped.min(*len);
            skipped -= from;
            let (now, later) = rest.split_at(rest.len().min((len - from) as usize));
            self.write(tid, address.wrapping_add(from), now)?;
            rest = later;
        }
        Ok(())
    }

    /// Bytes beside a message that is sent.
    pub(super) fn beside(&mut self, tid: Tid, (address, len): (u64, u64)) -> Result<Vec<u8>> {
        if len > CONTROL_MAX {
            return Err(ENOBUFS);
        }
        let mut bytes = vec![0; len as usize];
        self.read(tid, address, &mut bytes)?;
        Ok(bytes)
    }

    /// Things that go with a message.
    fn enclosed(&mut self, tid: Tid, control: (u64, u64)) -> Result<Enclosed> {
        let files_max = self.process(tid)?.limits[RLIMIT_NOFILE as usize][0];
        let files_max = usize::try_from(files_max).unwrap_or(usize::MAX);
        let mut enclosed = Enclosed { files: Vec::new(), files_max, credentials: self.credentials(tid)? };
        let bytes = self.beside(tid, control)?;
        for thing in things(&bytes) {
            let (which, body) = thing?;
            match which {
                (SOL_SOCKET, SCM_RIGHTS) => self.enclose_files(tid, body, &mut enclosed)?,
                (SOL_SOCKET, SCM_CREDENTIALS) => {
                    let own = enclosed.credentials;
                    let [pid, owner, group] = [0, 4, 8].map(|at| half(body, at));
                    let told = Credentials { pid, owner, group };
                    if body.len() != CREDENTIALS_BYTES {
                        return Err(EINVAL);
                    }
                    if told != own && !self.may_tell(tid, told)? {
                        return Err(EPERM);
                    }
                    enclosed.credentials = told;
                }
                (SOL_SOCKET, _) => return Err(EINVAL),
                _ => {}
            }
        }
        Ok(enclosed)
    }

    /// Whether a thread may tell others that it is somebody: itself, with any of its owners and groups, or whoever it could become.
    fn may_tell(&mut self, tid: Tid, told: Credentials) -> Result<bool> {
        let is_own = told.pid == self.pid(tid)?;
        let owners = &self.process(tid)?.owners;
        let (has_owner, has_group) = (owners.owner.contains(&told.owner), owners.group.contains(&told.group));
        Ok((is_own || self.can(tid, CAP_SYS_ADMIN))
            && (has_owner || self.can(tid, CAP_SETUID))
            && (has_group || self.can(tid, CAP_SETGID)))
    }

    fn enclose_files(&mut self, tid: Tid, body: &[u8], enclosed: &mut Enclosed) -> Result<()> {
        if enclosed.files.len() + body.len() / 4 > RIGHTS_MAX {
            return Err(EINVAL);
        }
        for at in (0..body.len() / 4).map(|index| index * 4) {
            enclosed.files.push(self.open_or_place(tid, half(body, at).into())?);
        }
        Ok(())
    }

    /// Sends a message. `done`: bytes of it that are sent.
    pub(super) fn send_message(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        header: &Header,
        flags: u32,
        done: u64,
    ) -> Answer {
        if let Object::Inet(inet) = &open.object {
            return self.send_by_inet(tid, (open, inet), header, flags, done);
        }
        if let Object::Netlink(socket) = &open.object {
            return self.send_by_netlink(tid, socket, header, flags);
        }
        let socket = socket_of(open)?;
        if flags & MSG_OOB != 0 {
            return Err(EOPNOTSUPP);
        }
        let control = if done > 0 { (0, 0) } else { header.control };
        let mut enclosed = self.enclosed(tid, control)?;
        let target = self.target(tid, socket, header.name)?;
        let bytes = self.gathered(tid, &header.pieces, done)?;
        let outcome = match &target {
            Some(to) => socket.send_packet(to, &bytes, &mut enclosed).map(|count| (count, to.clone())),
            None => socket.send(&bytes, &mut enclosed),
        };
        let (count, is_stuck) = match outcome {
            Ok((count, to)) => {
                self.happened(to.number, READABLE);
                (count as u64, count < bytes.len())
            }
            Err(EAGAIN) => (0, true),
            Err(_) if done > 0 => return number(Ok(done)),
            Err(EPIPE) if socket.kind == Kind::Stream && flags & MSG_NOSIGNAL == 0 => {
                let pid = self.pid(tid)?;
                let _ = self.send_to_thread(tid, SIGPIPE, Cause::process(pid, 0));
                return Err(EPIPE);
            }
            Err(error) => return Err(error),
        };
        let all = done + count;
        if !is_stuck {
            return number(Ok(all));
        }
        let is_brief = open.has(O_NONBLOCK) || flags & MSG_DONTWAIT != 0;
        match self.socket_deadline(tid, socket.timeouts[1].get()) {
            Ok(until) if !is_brief => {
                self.thread(tid)?.done = all;
                let full = target.or_else(|| socket.peer()).filter(|_| socket.kind == Kind::Datagram);
                let numbers = full.map(|full| full.number).into_iter().chain([socket.number]);
                Ok(Outcome::Wait(numbers.map(Event::Ring).collect(), until))
            }
            _ if all > 0 => number(Ok(all)),
            _ => Err(EAGAIN),
        }
    }

    /// The socket that a message names.
    fn target(&mut self, tid: Tid, socket: &Socket, (at, len): (u64, u32)) -> Result<Option<Rc<Socket>>> {
        match socket.kind {
            _ if len == 0 => Ok(None),
            // A name is not looked at.
            Kind::Packet => Ok(None),
            Kind::Stream if socket.is_connected() => Err(EISCONN),
            Kind::Stream => Err(EOPNOTSUPP),
            Kind::Datagram => self.addressee(tid, socket, (at, len.into())).map(Some),
        }
    }

    /// Receives a message. `done`: bytes of it that have been received.
    fn receive_message(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        header: &Header,
        flags: u32,
        done: u64,
    ) -> Result<(Outcome, Received)> {
        let socket = socket_of(open)?;
        if flags & MSG_OOB != 0 {
            return Err(if socket.kind == Kind::Stream { EINVAL } else { EOPNOTSUPP });
        }
        if flags & MSG_ERRQUEUE != 0 {
            return Err(EAGAIN);
        }
        let wanted = header.len();
        let room = (wanted - done.min(wanted)).min(PIECE_MAX) as usize;
        let is_brief = open.has(O_NONBLOCK) || flags & MSG_DONTWAIT != 0;
        let peeks = flags & MSG_PEEK != 0;
        let mut received = match socket.receive(room, peeks) {
            Err(EAGAIN) if !is_brief => match self.socket_deadline(tid, socket.timeouts[0].get()) {
                Ok(until) => {
                    self.thread(tid)?.done = done;
                    return Ok((self.wait_for(socket, until), Received::default()));
                }
                Err(_) if done > 0 => Received::default(),
                Err(error) => return Err(error),
            },
            Err(_) if done > 0 => Received { is_end: true, ..Received::default() },
            received => received?,
        };
        self.tell_read(socket, &mut received);
        if let Err(error) = self.scatter(tid, &header.pieces, done, &received.bytes) {
            self.close_all(&mut received.files);
            return Err(error);
        }
        let all = done + received.bytes.len() as u64;
        let is_short = all < wanted && !received.is_end && !is_brief && !peeks;
        if socket.kind == Kind::Stream && flags & MSG_WAITALL != 0 && is_short && received.files.is_empty() {
            // Tried again at once, in case that only another sender has come next.
            if let Ok(until) = self.socket_deadline(tid, socket.timeouts[0].get()) {
                self.thread(tid)?.done = all;
                self.tell(Event::Ring(socket.number));
                return Ok((self.wait_for(socket, until), Received::default()));
            }
        }
        let told =
            if flags & MSG_TRUNC != 0 && socket.kind != Kind::Stream { received.whole as u64 } else { all };
        Ok((Outcome::Value(told), received))
    }

    fn wait_for(&self, socket: &Socket, until: Option<u64>) -> Outcome {
        Outcome::Wait(Vec::from([Event::Ring(socket.number)]), until)
    }

    pub(super) fn close_all(&mut self, files: &mut Vec<Rc<Open>>) {
        for open in core::mem::take(files) {
            self.close(open);
        }
    }

    /// Receives a message with all that is beside it.
    pub(super) fn receive_whole(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        header: &Header,
        flags: u32,
        done: u64,
    ) -> Answer {
        if let Object::Inet(inet) = &open.object {
            return self.receive_whole_by_inet(tid, (open, inet), header, flags, done);
        }
        if let Object::Netlink(socket) = &open.object {
            return self.receive_whole_by_netlink(tid, (open, socket), header, flags);
        }
        let (outcome, mut received) = self.receive_message(tid, open, header, flags, done)?;
        if matches!(outcome, Outcome::Wait(..)) {
            return Ok(outcome);
        }
        let told = self.write_beside(tid, open, header, flags, &mut received);
        self.close_all(&mut received.files);
        told.map(|()| outcome)
    }

    fn write_beside(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        header: &Header,
        flags: u32,
        received: &mut Received,
    ) -> Result<()> {
        if header.at.is_none() {
            return Ok(());
        }
        let socket = socket_of(open)?;
        let is_cut = socket.kind != Kind::Stream && received.whole > received.bytes.len();
        let told = flags & MSG_CMSG_CLOEXEC | if is_cut { MSG_TRUNC } else { 0 };
        let mut control = header.beside();
        if let Some(credentials) = received.credentials.filter(|_| socket.tells_sender.get()) {
            control.put((SOL_SOCKET, SCM_CREDENTIALS), &credentials.bytes());
        }
        self.put_files(tid, flags, &mut control, &mut received.files);
        let name = received.from.as_ref().map(|name| address_bytes(Some(name))).unwrap_or_default();
        self.write_back(tid, header, &name, &control, told)
    }

    /// Writes what is told of a message that was received: its sender, things beside it, flags.
    pub(super) fn write_back(
        &mut self,
        tid: Tid,
        header: &Header,
        name: &[u8],
        control: &Control,
        flags: u32,
    ) -> Result<()> {
        let Some(at) = header.at else { return Ok(()) };
        let told = flags | if control.is_cut { MSG_CTRUNC } else { 0 };
        self.write(tid, header.control.0, &control.bytes)?;
        if header.name.0 != 0 {
            let count = name.len().min(header.name.1 as usize);
            self.write(tid, header.name.0, name.get(..count).unwrap_or_default())?;
            self.write(tid, at.wrapping_add(8), &(name.len() as u32).to_le_bytes())?;
        }
        self.write_words(tid, at.wrapping_add(40), &[control.bytes.len() as u64])?;
        self.write(tid, at.wrapping_add(48), &told.to_le_bytes())
    }

    /// Gives a process the descriptors that have come, as many as there is room for.
    fn put_files(&mut self, tid: Tid, flags: u32, control: &mut Control, files: &mut Vec<Rc<Open>>) {
        if files.is_empty() {
            return;
        }
        let room = control.left().saturating_sub(HEAD_BYTES) / 4;
        let mut numbers = Vec::new();
        for open in core::mem::take(files) {
            let fits = numbers.len() < room * 4 && !control.is_cut;
            let added = if fits {
                self.add_descriptor(tid, open, flags & MSG_CMSG_CLOEXEC != 0, 0)
            } else {
                self.close(open);
                Err(EBADF)
            };
            match added {
                Ok(fd) => numbers.extend_from_slice(&(fd as u32).to_le_bytes()),
                Err(_) => control.is_cut = true,
            }
        }
        if !numbers.is_empty() {
            control.put((SOL_SOCKET, SCM_RIGHTS), &numbers);
        }
    }

    pub(crate) fn sys_sendto(&mut self, tid: Tid, [fd, at, len, flags, name, name_len]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        let name = if name == 0 { (0, 0) } else { (name, name_len as u32) };
        let pieces = Vec::from([(at, len.min(COUNT_MAX))]);
        let header = Header { name, pieces, ..Header::default() };
        let done = self.thread(tid)?.done;
        self.send_message(tid, &open, &header, flags as u32, done)
    }

    pub(crate) fn sys_recvfrom(
        &mut self,
        tid: Tid,
        [fd, at, len, flags, name, name_len]: [u64; 6],
    ) -> Answer {
        let open = self.open_file(tid, fd)?;
        let header = Header { pieces: Vec::from([(at, len.min(COUNT_MAX))]), ..Header::default() };
        let done = self.thread(tid)?.done;
        let (outcome, bytes) = match &open.object {
            Object::Inet(inet) => {
                let received = self.receive_by_inet(tid, (&open, inet), &header, flags as u32, done)?;
                (received.0, sender_bytes(inet, &received.1))
            }
            Object::Netlink(socket) => {
                let (outcome, _) = self.receive_by_netlink(tid, (&open, socket), &header, flags as u32)?;
                (outcome, netlink::address_bytes(0, 0))
            }
            _ => {
                let (outcome, mut received) =
                    self.receive_message(tid, &open, &header, flags as u32, done)?;
                self.close_all(&mut received.files);
                let name = received.from.as_ref().map(|name| address_bytes(Some(name)));
                (outcome, name.unwrap_or_default())
            }
        };
        if name != 0 && matches!(outcome, Outcome::Value(_)) {
            self.write_address(tid, (name, name_len), &bytes)?;
        }
        Ok(outcome)
    }

    /// Writes an address as far as there is room, and its whole length.
    pub(super) fn write_address(&mut self, tid: Tid, (at, len_at): (u64, u64), bytes: &[u8]) -> Result<()> {
        let mut room = [0; 4];
        self.read(tid, len_at, &mut room)?;
        let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| EINVAL)?;
        self.write(tid, at, &bytes[..bytes.len().min(room)])?;
        self.write(tid, len_at, &(bytes.len() as u32).to_le_bytes())
    }

    pub(crate) fn sys_sendmsg(&mut self, tid: Tid, [fd, at, flags, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        check_socket(&open)?;
        let header = self.header(tid, at)?;
        let done = self.thread(tid)?.done;
        self.send_message(tid, &open, &header, flags as u32, done)
    }

    pub(crate) fn sys_recvmsg(&mut self, tid: Tid, [fd, at, flags, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        check_socket(&open)?;
        let header = self.header(tid, at)?;
        let done = self.thread(tid)?.done;
        self.receive_whole(tid, &open, &header, flags as u32, done)
    }
}
