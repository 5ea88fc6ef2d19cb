//! Sockets with names: paths of the file system, and names that are nowhere else.

use super::messages::address_bytes;
use super::sockets::socket_of;
use super::{HERE, done, number};
use crate::errno::{
    EADDRINUSE, EAGAIN, ECONNREFUSED, EEXIST, EINVAL, EISCONN, EOPNOTSUPP, EPERM, EPROTOTYPE, Result,
};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::netlink;
use crate::node::Node;
use crate::open::Object;
use crate::process::Event;
use crate::socket::{ANY, Kind, READABLE, SHUT_READ, Socket, SocketName};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::format;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, W_OK};
use linux_raw_sys::net::{AF_UNIX, AF_UNSPEC};
use vfs::FileSystem;
use vfs::path::Last;

/// Bytes of the family of an address, which is in front.
const FAMILY_BYTES: usize = 2;

/// Bytes of the longest address.
const ADDRESS_MAX: usize = 110;

/// Connections that wait at a socket to be accepted, at most.
const BACKLOG_MAX: u32 = 1024;

/// Names that are chosen: five hexadecimal digits.
const CHOSEN: u64 = 0xf_ffff;

/// Address that a call names.
enum Address {
    /// None.
    Nobody,
    /// A family alone: any name.
    Any,
    /// A path, or a name that begins with a zero.
    Name(SocketName),
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    fn address(&mut self, tid: Tid, (at, len): (u64, u64)) -> Result<Address> {
        let len = usize::try_from(len as u32).unwrap_or(usize::MAX);
        if !(FAMILY_BYTES..=ADDRESS_MAX).contains(&len) {
            return Err(EINVAL);
        }
        let mut bytes = vec![0; len];
        self.read(tid, at, &mut bytes)?;
        let name = bytes.split_off(FAMILY_BYTES);
        let family = bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
        match (family, name.first().copied()) {
            (AF_UNSPEC, _) => Ok(Address::Nobody),
            (AF_UNIX, None) => Ok(Address::Any),
            (AF_UNIX, Some(0)) => Ok(Address::Name(name.into())),
            (AF_UNIX, Some(_)) => {
                let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
                Ok(Address::Name(path.into()))
            }
            _ => Err(EINVAL),
        }
    }

    /// The socket of a kind with a name.
    fn find_socket(&mut self, tid: Tid, name: &SocketName, kind: Kind) -> Result<Rc<Socket>> {
        let found = if name.first() == Some(&0) {
            self.sockets.names.get(name).cloned()
        } else {
            let path = self.whole_path(tid, HERE, name.to_vec())?;
            let path = self.reach(tid, &path, Last::Follow)?;
            let found = self.look(&path, Last::Follow)?;
            self.may(tid, &found, W_OK)?;
            if self.store.node(&found) != Some(Node::Socket) {
                return Err(ECONNREFUSED);
            }
            self.sockets.places.get(&found.inode.0).cloned()
        };
        let socket = found.and_then(|found| found.upgrade()).ok_or(ECONNREFUSED)?;
        if socket.kind == kind { Ok(socket) } else { Err(EPROTOTYPE) }
    }

    /// The socket to which a message goes that names one.
    pub(super) fn addressee(&mut self, tid: Tid, own: &Socket, address: (u64, u64)) -> Result<Rc<Socket>> {
        let Address::Name(name) = self.address(tid, address)? else { return Err(EINVAL) };
        let found = self.find_socket(tid, &name, own.kind)?;
        if found.hears(own) { Ok(found) } else { Err(EPERM) }
    }

    pub(crate) fn sys_bind(&mut self, tid: Tid, [fd, at, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.bind_inet(tid, inet, (at, len));
        }
        if let Object::Netlink(socket) = &open.object {
            return self.bind_netlink(tid, socket, (at, len));
        }
        let socket = socket_of(&open)?;
        let address = self.address(tid, (at, len))?;
        let has_name = socket.name.borrow().is_some();
        let name = match address {
            Address::Nobody => return Err(EINVAL),
            Address::Any if has_name => return DONE,
            _ if has_name => return Err(EINVAL),
            Address::Any => self.choose_name()?,
            Address::Name(name) => name,
        };
        if name.first() == Some(&0) {
            if self.sockets.names.contains_key(&name) {
                return Err(EADDRINUSE);
            }
            self.sockets.names.insert(name.clone(), Rc::downgrade(socket));
        } else {
            let path = self.whole_path(tid, HERE, name.to_vec())?;
            self.may_make(tid, &path)?;
            let permissions = 0o777 & !self.process(tid)?.umask();
            let owner = self.new_owner(tid)?;
            let made = self.store.make_node(&path, Node::Socket, permissions as u16);
            let inode = made.map_err(|error| if error == EEXIST { EADDRINUSE } else { error })?;
            if let Some(changes) = owner
                && let Err(error) = self.store.volume.change(inode, &changes)
            {
                let root = self.store.root;
                let _ = self.store.volume.unlink(root, &path);
                let _ = self.store.volume.close(inode);
                return Err(error.into());
            }
            socket.place.set(Some(inode));
            self.sockets.places.insert(inode.0, Rc::downgrade(socket));
        }
        socket.name.replace(Some(name));
        DONE
    }

    fn choose_name(&mut self) -> Result<SocketName> {
        for _ in 0..=CHOSEN {
            self.sockets.chosen = (self.sockets.chosen + 1) & CHOSEN;
            let name: SocketName = format!("\0{:05x}", self.sockets.chosen).into_bytes().into();
            if !self.sockets.names.contains_key(&name) {
                return Ok(name);
            }
        }
        Err(crate::errno::ENOSPC)
    }

    /// A socket is closed: its name leads nowhere any more.
    pub(super) fn forget_name(&mut self, socket: &Socket) {
        if let Some(inode) = socket.place.take() {
            self.sockets.places.remove(&inode.0);
            let _ = self.store.volume.close(inode);
        }
        // Sockets that were accepted have the name, too.
        if let Some(name) = &*socket.name.borrow()
            && self.sockets.names.get(name).is_some_and(|found| found.as_ptr() == core::ptr::from_ref(socket))
        {
            self.sockets.names.remove(name);
        }
    }

    pub(crate) fn sys_listen(&mut self, tid: Tid, [fd, backlog, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.listen_inet(inet, backlog);
        }
        let socket = socket_of(&open)?;
        if socket.kind == Kind::Datagram {
            return Err(EOPNOTSUPP);
        }
        if socket.name.borrow().is_none() || socket.is_connected() {
            return Err(EINVAL);
        }
        let own = self.credentials(tid)?;
        socket.listen((backlog as u32).min(BACKLOG_MAX) as usize, own);
        self.tell(Event::Ring(socket.number));
        DONE
    }

    pub(crate) fn sys_connect(&mut self, tid: Tid, [fd, at, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.connect_inet(tid, &open, inet, (at, len));
        }
        if let Object::Netlink(socket) = &open.object {
            return self.connect_netlink(tid, socket, (at, len));
        }
        let socket = socket_of(&open)?;
        let name = match self.address(tid, (at, len))? {
            Address::Name(name) => name,
            Address::Nobody if socket.kind == Kind::Datagram => {
                self.change_peer(socket, None);
                return DONE;
            }
            _ => return Err(EINVAL),
        };
        let other = self.find_socket(tid, &name, socket.kind)?;
        if socket.kind == Kind::Datagram {
            if !other.hears(socket) {
                return Err(EPERM);
            }
            self.change_peer(socket, Some(&other));
            return DONE;
        }
        if !other.is_listening() || other.shut.get() & SHUT_READ != 0 {
            return Err(ECONNREFUSED);
        }
        if !other.has_room_for_connection() {
            if open.has(O_NONBLOCK) {
                return Err(EAGAIN);
            }
            let until = self.socket_deadline(tid, socket.timeouts[1].get())?;
            return Ok(Outcome::Wait(Vec::from([Event::Ring(other.number)]), until));
        }
        if socket.is_listening() {
            return Err(EINVAL);
        }
        if socket.is_connected() {
            return Err(EISCONN);
        }
        let own = self.credentials(tid)?;
        let accepted = self.new_socket(socket.kind)?;
        accepted.name.replace(other.name.borrow().clone());
        accepted.connect(socket, own);
        let listener = other.add_connection(accepted.clone());
        socket.connect(&accepted, listener);
        self.happened(other.number, READABLE);
        self.happened(socket.number, ANY);
        DONE
    }

    /// A socket for datagrams has another peer from now on. Messages of others are forgotten.
    fn change_peer(&mut self, socket: &Rc<Socket>, other: Option<&Rc<Socket>>) {
        let before = socket.peer();
        let is_same = before.as_ref().map(|before| before.number) == other.map(|other| other.number);
        match other {
            Some(other) => socket.connect(other, crate::socket::Credentials::NOBODY),
            None => socket.disconnect(),
        }
        let Some(before) = before.filter(|_| !is_same && !socket.is_empty()) else { return };
        let (mut files, told) = socket.empty();
        for (number, bits) in told {
            self.happened(number, bits);
        }
        self.close_all(&mut files);
        if before.peer().is_some_and(|peer| peer.number == socket.number) {
            before.error.set(Some(crate::errno::ECONNRESET));
            self.happened(before.number, ANY);
        }
    }

    pub(crate) fn sys_accept(&mut self, tid: Tid, [fd, at, len, ..]: [u64; 6]) -> Answer {
        self.sys_accept4(tid, [fd, at, len, 0, 0, 0])
    }

    pub(crate) fn sys_accept4(&mut self, tid: Tid, [fd, at, len, flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(EINVAL);
        }
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.accept_inet(tid, &open, inet, (at, len), flags);
        }
        let socket = socket_of(&open)?;
        if socket.kind == Kind::Datagram {
            return Err(EOPNOTSUPP);
        }
        if !socket.is_listening() {
            return Err(EINVAL);
        }
        self.reserve_descriptor(tid)?;
        let Some(accepted) = socket.take_connection() else {
            if socket.shut.get() & SHUT_READ != 0 {
                return Err(EINVAL);
            }
            if open.has(O_NONBLOCK) {
                return Err(EAGAIN);
            }
            let until = self.socket_deadline(tid, socket.timeouts[0].get())?;
            return Ok(Outcome::Wait(Vec::from([Event::Ring(socket.number)]), until));
        };
        self.tell(Event::Ring(socket.number));
        let name = accepted.peer_name().unwrap_or_default();
        let fd = self.add_socket(tid, accepted, flags)?;
        if at != 0
            && let Err(error) = self.write_address(tid, (at, len), &address_bytes(name.as_ref()))
        {
            self.take_back(tid, fd);
            return Err(error);
        }
        number(Ok(fd))
    }

    pub(crate) fn sys_getsockname(&mut self, tid: Tid, [fd, at, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.name_of_inet(tid, inet, false, (at, len));
        }
        if let Object::Netlink(socket) = &open.object {
            return done(self.write_address(tid, (at, len), &socket.address()));
        }
        let bytes = address_bytes(socket_of(&open)?.name.borrow().as_ref());
        done(self.write_address(tid, (at, len), &bytes))
    }

    pub(crate) fn sys_getpeername(&mut self, tid: Tid, [fd, at, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Inet(inet) = &open.object {
            return self.name_of_inet(tid, inet, true, (at, len));
        }
        if matches!(open.object, Object::Netlink(_)) {
            return done(self.write_address(tid, (at, len), &netlink::address_bytes(0, 0)));
        }
        let name = socket_of(&open)?.peer_name()?;
        done(self.write_address(tid, (at, len), &address_bytes(name.as_ref())))
    }
}

#[cfg(test)]
mod tests;
