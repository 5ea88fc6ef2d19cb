//! Sockets of networks: made, named, connected, accepted, shut and closed.

mod messages;
mod options;

pub use messages::{PIECE, sender_bytes};

use super::sockets::kind_of;
use super::{done, number};
use crate::errno::{
    EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, ECONNABORTED, ECONNREFUSED,
    ECONNRESET, EINPROGRESS, EINVAL, EISCONN, ENETUNREACH, ENOBUFS, ENOTCONN, EOPNOTSUPP, EPERM,
    ESOCKTNOSUPPORT, Result,
};
use crate::frames::Bytes;
use crate::inet::{AHEAD_MAX, Family, INET_BYTES, Inet, Protocol, Scope, Stage, address_bytes, parse};
use crate::machine::{Machine, Tid};
use crate::network::{DATAGRAM_MAX, Network, readiness};
use crate::open::{OPEN_BYTES, Object, Open};
use crate::process::Event;
use crate::socket::{ANY, Kind, READABLE, SHUT_READ, SHUT_WRITE, WRITABLE};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use linux_raw_sys::general::{
    CAP_NET_BIND_SERVICE, O_CLOEXEC, O_NONBLOCK, O_RDWR, POLLERR, POLLHUP, POLLRDHUP,
};
use linux_raw_sys::net::SOCK_RAW;
use vfs::FileSystem;

/// Bytes of the longest address of any family.
const ADDRESS_MAX: usize = 128;

/// Ports that are given to a socket that does not say which. The network below has others for those that connect.
const PORTS: core::ops::Range<u16> = 32_768..49_152;

/// Sockets of a sandbox that have an address, at most: to find a port that is free, each may be compared with all of them.
const BOUND_MAX: usize = 1024;

/// Ports below this one are for whoever has `CAP_NET_BIND_SERVICE`.
const FIRST_COMMON_PORT: u16 = 1024;

/// Connections that wait at a socket to be accepted, at most: `net.core.somaxconn`. The network below may keep fewer.
const BACKLOG_MAX: u32 = 4096;

/// Connections that one call throws away since they are of another family, at most.
const OTHERS_MAX: usize = 64;

/// The address for one that means all of this machine.
fn reached(to: SocketAddr) -> SocketAddr {
    let address = match to.ip() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    SocketAddr::new(address, to.port())
}

/// Makes a socket for datagrams or for echo requests below, or one of UDP-Lite, which is in front of that. A port that its program has not named is nobody else's, which is only told by asking for it alone; then others may come to it who
/// say so, as if it had been named.
fn bind_below(network: &dyn Network, inet: &Inet, at: SocketAddr, is_named: bool) -> Result<()> {
    match inet.protocol {
        Protocol::Echo => return network.open_echo(inet.number),
        Protocol::Lite => return network.bind_lite(inet.number, at),
        Protocol::Tcp | Protocol::Udp => {}
    }
    let is_shared = inet.options.shares().contains(&true);
    if is_shared && !is_named {
        network.bind(inet.number, at, false)?;
        let shared = network.bind(inet.number, at, true);
        if shared.is_err() {
            network.close(inet.number);
        }
        return shared;
    }
    network.bind(inet.number, at, is_shared)
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Something has happened to a socket of the network: bits of [`readiness`]. [`ITSELF`](crate::network::ITSELF): it is known what there is.
    pub fn network_happened(&mut self, number: u64, events: u32) {
        self.network_told(number, events);
        self.settle();
    }

    /// Hears of what calls have done to sockets whose other ends are near. Whether there was something.
    pub(crate) fn hear_network(&mut self) -> bool {
        if !self.sockets.is_due.replace(false) {
            return false;
        }
        while let Some((number, events)) = self.sockets.network.0.due() {
            self.network_told(number, events);
        }
        true
    }

    fn network_told(&mut self, number: u64, events: u32) {
        let read = if events & readiness::READ != 0 { READABLE | POLLRDHUP } else { 0 };
        let write = if events & readiness::WRITE != 0 { WRITABLE } else { 0 };
        let network = self.network();
        match self.sockets.ports.heard(&*network, &mut self.next_ring, number) {
            None => self.happened(number, read | write | POLLERR | POLLHUP),
            Some(told) => self.connections_came(&told),
        }
    }

    fn network(&self) -> Rc<dyn Network> {
        self.sockets.network.0.clone()
    }

    /// Connections have come to sockets that listen.
    fn connections_came(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.happened(*number, READABLE);
        }
    }

    /// Readiness of a socket. What it is not ready for is watched.
    pub(super) fn inet_ready(&self, inet: &Inet) -> u32 {
        if inet.is_listening()
            && let Some(is_ready) = self.sockets.ports.readiness(inet.number)
        {
            return if is_ready { READABLE } else { 0 };
        }
        let network = &self.sockets.network.0;
        let (bits, watched) = inet.poll(&**network, self.machine.now());
        if watched != 0 {
            network.watch(inet.number, watched);
        }
        bits
    }

    /// Asks to be told when a socket is ready for something. A connection that is dealt is told of anyway.
    fn watch_inet(&self, inet: &Inet, events: u32) {
        if !inet.is_listening() || self.sockets.ports.readiness(inet.number).is_none() {
            self.sockets.network.0.watch(inet.number, events);
        }
    }

    /// Waits until a socket is ready for something, as long as it may. `EAGAIN`: it has waited so long.
    fn wait_for_inet(&mut self, tid: Tid, inet: &Inet, events: u32) -> Answer {
        let which = usize::from(events == readiness::WRITE);
        let timeout = inet.timeouts.get(which).map_or(0, core::cell::Cell::get);
        let until = self.socket_deadline(tid, timeout)?;
        self.watch_inet(inet, events);
        Ok(Outcome::Wait(Vec::from([Event::Ring(inet.number)]), until))
    }

    pub(super) fn inet_socket(&mut self, tid: Tid, family: Family, kind: u64, protocol: u64) -> Answer {
        // Nobody may have packets as they are. Programs that ask for echoes have a socket for these instead, if they are told so.
        let (kind, flags) = if kind as u32 & 0xf == SOCK_RAW { return Err(EPERM) } else { kind_of(kind)? };
        if kind == Kind::Packet {
            return Err(ESOCKTNOSUPPORT);
        }
        let protocol = Protocol::of(family, kind, protocol as u32)?;
        if let Some(wait) = self.awaits_network() {
            return Ok(wait);
        }
        let owner = self.credentials(tid)?.owner;
        let inet = Rc::new(Inet::new(self.ring(), family, protocol, owner));
        number(self.add_inet(tid, inet, flags))
    }

    fn add_inet(&mut self, tid: Tid, inet: Rc<Inet>, flags: u32) -> Result<u64> {
        let ahead = if inet.is_stream() { AHEAD_MAX } else { DATAGRAM_MAX[0] };
        let share = self.budget.take(OPEN_BYTES + INET_BYTES + ahead);
        let open = Open::new(Object::Inet(inet), O_RDWR | flags & O_NONBLOCK);
        if share.is_none() {
            self.close(open);
            return Err(ENOBUFS);
        }
        open.share.replace(share);
        self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0)
    }

    /// An address that a call names. None: one of no family.
    fn inet_address(&mut self, tid: Tid, inet: &Inet, (at, len): (u64, u64)) -> Result<Option<SocketAddr>> {
        let len = usize::try_from(len as u32).ok().filter(|len| *len <= ADDRESS_MAX).ok_or(EINVAL)?;
        let mut bytes = vec![0; len];
        self.read(tid, at, &mut bytes)?;
        parse(inet.family, &bytes)
    }

    /// The next port for a socket that does not say which.
    fn next_port(&mut self) -> u16 {
        if self.sockets.next_port == 0 {
            let mut bytes = [0; 2];
            self.machine.random(&mut bytes);
            self.sockets.next_port = PORTS.start + u16::from_le_bytes(bytes) % (PORTS.end - PORTS.start);
        }
        let port = self.sockets.next_port;
        self.sockets.next_port = if port + 1 < PORTS.end { port + 1 } else { PORTS.start };
        port
    }

    /// Says whether another socket of the sandbox keeps one of its protocol from having an address. `SO_REUSEADDR` shares it with those that do not listen, `SO_REUSEPORT` with those of the
    /// same user; a port that was not named is shared with nobody.
    fn is_taken(&self, inet: &Inet, at: SocketAddr, is_named: bool) -> bool {
        let own = inet.options.shares();
        let scope = Scope { at, is_six_only: inet.options.is_six_only() };
        let others = self.sockets.bound.values().filter_map(alloc::rc::Weak::upgrade);
        let is_alike = |other: &Rc<Inet>| other.number != inet.number && other.protocol == inet.protocol;
        others.filter(is_alike).any(|other| {
            let [address, port] = other.options.shares();
            let is_shared =
                own[0] && address && !other.is_listening() || own[1] && port && inet.owner == other.owner;
            !(is_named && is_shared) && other.scope().is_some_and(|other| other.meets(&scope))
        })
    }

    /// Gives a socket an address. Port 0: any that is free.
    fn name_inet(&mut self, inet: &Rc<Inet>, at: SocketAddr) -> Result<()> {
        let network = self.network();
        if !inet.is_echo() && self.sockets.bound.len() >= BOUND_MAX {
            return Err(ENOBUFS);
        }
        let is_named = at.port() != 0;
        let tries = if is_named { 1 } else { PORTS.len() };
        for _ in 0..tries {
            let port = if is_named { at.port() } else { self.next_port() };
            let at = SocketAddr::new(at.ip(), port);
            if !inet.is_echo() && self.is_taken(inet, at, is_named) {
                continue;
            }
            if !inet.is_stream() {
                match bind_below(&*network, inet, at, is_named) {
                    Err(EADDRINUSE) => continue,
                    made => made?,
                }
                inet.is_below.set(true);
                if let Err(error) = inet.join_below(&*network) {
                    inet.is_below.set(false);
                    network.close(inet.number);
                    return Err(error);
                }
                // Threads that wait already have asked nobody to be told.
                self.happened(inet.number, ANY);
            }
            if !inet.is_echo() {
                self.sockets.bound.insert(inet.number, Rc::downgrade(inet));
            }
            inet.local.set(Some(at));
            inet.bound.set(Some(at));
            return Ok(());
        }
        Err(EADDRINUSE)
    }

    pub(super) fn bind_inet(&mut self, tid: Tid, inet: &Rc<Inet>, address: (u64, u64)) -> Answer {
        let at = self.inet_address(tid, inet, address)?.ok_or(EAFNOSUPPORT)?;
        if inet.stage.get() != Stage::Fresh || inet.local.get().is_some() {
            return Err(EINVAL);
        }
        if !inet.family.has(at.ip(), inet.options.is_six_only()) {
            return Err(EINVAL);
        }
        let is_group = at.ip().is_multicast() && inet.protocol == Protocol::Udp;
        if !at.ip().is_unspecified() && !is_group && !self.network().has(at.ip()) {
            return Err(EADDRNOTAVAIL);
        }
        let is_common = inet.is_echo() || !(1..FIRST_COMMON_PORT).contains(&at.port());
        if !is_common && !self.can(tid, CAP_NET_BIND_SERVICE) {
            return Err(EACCES);
        }
        done(self.name_inet(inet, at))
    }

    /// The address of a socket. One that has none gets one.
    fn address_of_inet(&mut self, inet: &Rc<Inet>) -> Result<SocketAddr> {
        if inet.local.get().is_none() {
            self.name_inet(inet, SocketAddr::new(inet.family.any(), 0))?;
        }
        inet.local.get().ok_or(EINVAL)
    }

    pub(super) fn listen_inet(&mut self, inet: &Rc<Inet>, backlog: u64) -> Answer {
        if !inet.is_stream() {
            return Err(EOPNOTSUPP);
        }
        match inet.stage.get() {
            Stage::Listening => return DONE,
            Stage::Fresh => {}
            _ => return Err(EINVAL),
        }
        let at = self.address_of_inet(inet)?;
        if self.is_taken(inet, at, true) {
            return Err(EADDRINUSE);
        }
        let network = self.network();
        let scope = Scope { at, is_six_only: inet.options.is_six_only() };
        let backlog = (backlog as u32).min(BACKLOG_MAX) as u16;
        self.sockets.ports.listen(&*network, &mut self.next_ring, (inet.number, scope, backlog))?;
        inet.disconnect();
        inet.is_below.set(true);
        inet.stage.set(Stage::Listening);
        self.happened(inet.number, ANY);
        DONE
    }

    /// The connection of a socket ends, or what it does instead. It has its address no longer than that.
    fn disconnect_inet(&mut self, inet: &Inet) {
        if inet.is_stream() {
            self.close_below(inet.number);
            inet.is_below.set(false);
            inet.local.set(inet.bound.get());
        } else if inet.is_below.get() && !inet.is_echo() {
            // It cannot fail unless the socket is lost, which is told when it is used.
            let _ = self.network().connect_datagrams(inet.number, None);
        }
        inet.disconnect();
        self.happened(inet.number, ANY);
    }

    pub(super) fn connect_inet(
        &mut self,
        tid: Tid,
        open: &Open,
        inet: &Rc<Inet>,
        address: (u64, u64),
    ) -> Answer {
        let Some(to) = self.inet_address(tid, inet, address)? else {
            self.disconnect_inet(inet);
            return DONE;
        };
        if !inet.family.has(to.ip(), inet.options.is_six_only()) {
            return Err(ENETUNREACH);
        }
        let to = reached(to);
        if !inet.is_stream() {
            return done(self.connect_datagrams(inet, to));
        }
        let network = self.network();
        let is_again = self.thread(tid)?.until.is_some();
        inet.follow(&*network, self.machine.now());
        let mut is_new = false;
        if inet.stage.get() == Stage::Fresh {
            match inet.error.take() {
                Some(error) => return Err(error),
                None if is_again => return Err(ECONNABORTED),
                None => {}
            }
            if to.port() == 0 {
                return Err(ECONNREFUSED);
            }
            let from = inet.bound.get().unwrap_or(SocketAddr::new(inet.family.any(), 0));
            let begun = network.connect(inet.number, from, to);
            begun.map_err(|error| if error == EADDRINUSE { EADDRNOTAVAIL } else { error })?;
            inet.disconnect();
            inet.is_below.set(true);
            inet.peer.set(Some(to));
            inet.stage.set(Stage::Connecting(self.machine.now()));
            self.happened(inet.number, ANY);
            is_new = true;
            inet.follow(&*network, self.machine.now());
        }
        match inet.stage.get() {
            // The other end may have answered or refused already. Linux looks at that behind the call, however near it is.
            Stage::Connected | Stage::Fresh if is_new && open.has(O_NONBLOCK) => Err(EINPROGRESS),
            Stage::Connected if !inet.is_acknowledged.replace(true) => DONE,
            Stage::Connected | Stage::Listening => Err(EISCONN),
            Stage::Fresh => Err(inet.error.take().unwrap_or(ECONNABORTED)),
            Stage::Connecting(_) if open.has(O_NONBLOCK) => {
                network.watch(inet.number, readiness::WRITE);
                Err(if is_new { EINPROGRESS } else { EALREADY })
            }
            Stage::Connecting(_) => {
                let outcome = self.wait_for_inet(tid, inet, readiness::WRITE);
                outcome.map_err(|error| if error == EAGAIN { EINPROGRESS } else { error })
            }
        }
    }

    fn connect_datagrams(&mut self, inet: &Rc<Inet>, to: SocketAddr) -> Result<()> {
        if self.network().source(to.ip()).is_none() {
            return Err(ENETUNREACH);
        }
        self.address_of_inet(inet)?;
        if !inet.is_echo() {
            self.connect_below(inet, to)?;
        }
        inet.disconnect();
        inet.peer.set(Some(to));
        inet.stage.set(Stage::Connected);
        self.happened(inet.number, ANY);
        Ok(())
    }

    /// Connects a socket for datagrams below.
    fn connect_below(&self, inet: &Inet, to: SocketAddr) -> Result<()> {
        let network = self.network();
        // One without a port can be connected to, and nothing is sent there.
        let to = Some(to).filter(|to| to.port() != 0);
        network.connect_datagrams(inet.number, to).map_err(|error| {
            if matches!(error, ECONNRESET | EINVAL) {
                inet.lose(&*network, error);
            }
            inet.error.take().unwrap_or(error)
        })
    }

    pub(super) fn accept_inet(
        &mut self,
        tid: Tid,
        open: &Open,
        inet: &Rc<Inet>,
        (at, len): (u64, u64),
        flags: u32,
    ) -> Answer {
        if !inet.is_stream() {
            return Err(EOPNOTSUPP);
        }
        if !inet.is_listening() {
            return Err(EINVAL);
        }
        self.reserve_descriptor(tid)?;
        let accepted = match self.take_inet_connection(inet) {
            Err(EAGAIN) if open.has(O_NONBLOCK) => {
                self.watch_inet(inet, readiness::READ);
                return Err(EAGAIN);
            }
            Err(EAGAIN) => return self.wait_for_inet(tid, inet, readiness::READ),
            accepted => accepted?,
        };
        if self.watches.has(inet.number) {
            // Each connection is told of, also to whoever takes one of several.
            self.watch_inet(inet, readiness::READ);
        }
        let (below, peer) = (accepted.number, accepted.peer.get());
        let fd = self.add_inet(tid, accepted, flags).inspect_err(|_| self.sockets.network.0.close(below))?;
        let name = peer.map(|peer| address_bytes(inet.family, peer)).unwrap_or_default();
        if at != 0
            && let Err(error) = self.write_address(tid, (at, len), &name)
        {
            self.take_back(tid, fd);
            return Err(error);
        }
        number(Ok(fd))
    }

    /// Takes a connection that has arrived. Others than the family has are thrown away.
    fn take_inet_connection(&mut self, inet: &Inet) -> Result<Rc<Inet>> {
        let network = self.network();
        for _ in 0..OTHERS_MAX {
            let (taken, told) = self.sockets.ports.accept(&*network, &mut self.next_ring, inet.number);
            self.connections_came(&told);
            let accepted = Inet::new(taken?, inet.family, Protocol::Tcp, inet.owner);
            let local = inet.local.get();
            accepted.local.set(local);
            accepted.set_connected(&*network);
            let peer = accepted.peer.get();
            if !peer.is_some_and(|peer| inet.family.has(peer.ip(), inet.options.is_six_only())) {
                network.close(accepted.number);
                continue;
            }
            if let (Some(local), Some(peer)) = (accepted.local.get(), peer)
                && local.ip().is_unspecified()
            {
                let address = network.source(peer.ip()).unwrap_or(local.ip());
                accepted.local.set(Some(SocketAddr::new(address, local.port())));
            }
            accepted.is_acknowledged.set(true);
            accepted.options.copy(&inet.options);
            for (to, from) in accepted.timeouts.iter().zip(&inet.timeouts) {
                to.set(from.get());
            }
            return Ok(Rc::new(accepted));
        }
        Err(EAGAIN)
    }

    /// Writes the address of a socket, or of its other end.
    pub(super) fn name_of_inet(&mut self, tid: Tid, inet: &Inet, is_other: bool, to: (u64, u64)) -> Answer {
        let network = self.network();
        inet.follow(&*network, self.machine.now());
        let peer = inet.peer.get().filter(|_| inet.stage.get() == Stage::Connected);
        let address = if is_other {
            peer.ok_or(ENOTCONN)?
        } else {
            let local = inet.local.get().unwrap_or(SocketAddr::new(inet.family.any(), 0));
            let source = peer.filter(|_| local.ip().is_unspecified());
            let source = source.and_then(|peer| network.source(peer.ip()));
            SocketAddr::new(source.unwrap_or(local.ip()), local.port())
        };
        done(self.write_address(tid, to, &address_bytes(inet.family, address)))
    }

    pub(super) fn shut_inet(&mut self, inet: &Inet, directions: u32) -> Answer {
        let network = self.network();
        inet.follow(&*network, self.machine.now());
        match inet.stage.get() {
            Stage::Fresh => return Err(ENOTCONN),
            Stage::Listening if directions & SHUT_READ == 0 => {}
            Stage::Listening | Stage::Connecting(_) => self.disconnect_inet(inet),
            Stage::Connected => {
                if inet.is_stream() && directions & SHUT_WRITE != 0 && !inet.is_shut(SHUT_WRITE) {
                    // A connection that has broken off is shut anyway.
                    let _ = network.shut_down(inet.number);
                }
                inet.shut.set(inet.shut.get() | directions);
            }
        }
        self.happened(inet.number, ANY);
        DONE
    }

    /// A socket is closed below, or leaves the listener that it has there with others.
    fn close_below(&mut self, number: u64) {
        let network = self.network();
        match self.sockets.ports.leave(&*network, &mut self.next_ring, number) {
            Some(told) => self.connections_came(&told),
            None => network.close(number),
        }
    }

    /// A socket is closed.
    pub(crate) fn close_inet(&mut self, inet: &Inet) {
        if inet.is_below.get() {
            self.close_below(inet.number);
        }
        self.sockets.bound.remove(&inet.number);
        self.happened(inet.number, ANY);
    }
}

#[cfg(test)]
mod tests;
