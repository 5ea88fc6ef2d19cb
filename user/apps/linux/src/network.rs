//! The network below: sockets of the server `network`. The thread that does the calls does what can be done now, and [`crate::waiters`] wait for the rest.
//!
//! The server is looked for when a program asks for the first socket, since it may still be starting. When it ends, its sockets have broken off, and it is
//! looked for again.

use crate::waiters::{Waiters, Watch};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use linux::errno::{
    EADDRINUSE, EAGAIN, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, EINVAL, EIO, ENETDOWN, ENETUNREACH, ENOBUFS,
    ENOTCONN, Errno, Result,
};
use linux::network::{
    self, Datagram, Ends, Network, Nowhere, Phase, Presence, Sending, Sent, Ways, readiness,
};
use net::sockets::{ANYWHERE, Entrance, Sockets, endpoint, packed, socket_address, unpacked};
use rt::api::stub::{Failure, Inbox, View};
use rt::door::Reference;
use rt::sys::{self, Uid};

/// Addresses of this machine that are looked at, at most.
const ADDRESSES_MAX: u32 = 32;

/// Both bits of readiness.
const ANY: u32 = readiness::READ | readiness::WRITE;

const _: () = assert!(readiness::READ == Sockets::READABLE && readiness::WRITE == Sockets::WRITABLE);

/// The server.
pub struct Server {
    /// The thread at which sockets are waited for.
    pub entrance: Uid,
    /// The object that makes sockets.
    pub host: Reference<Sockets::Host::Client<View>>,
}

/// Knowledge of the server.
enum State {
    /// Nobody has asked yet, or it has ended.
    Unasked,
    /// It is being looked for.
    Asked,
    /// It is there.
    Found(Server),
    /// There is none for this program.
    Missing(Nowhere),
}

/// A socket of the server.
enum Socket {
    Stream(Reference<Sockets::Stream::Client<View>>),
    Listener(Reference<Sockets::Listener::Client<View>>),
    Datagrams(Reference<Sockets::Datagrams::Client<View>>),
    Echo(Reference<Sockets::Echo::Client<View>>),
}

struct Entry {
    socket: Socket,
    ticket: u64,
    /// The thread at which it is waited for. A server that is started again has another one.
    entrance: Uid,
    /// Bits for which somebody waits.
    watched: u32,
}

/// The network.
pub struct Tern {
    state: RefCell<State>,
    sockets: RefCell<BTreeMap<u64, Entry>>,
    waiters: Waiters,
    /// Room for what a read brings. A new one would have to be zeroed.
    spare: RefCell<Box<Sockets::Stream::Replies>>,
    spare_datagram: RefCell<Box<Sockets::Datagrams::Replies>>,
    spare_answer: RefCell<Box<Sockets::Echo::Replies>>,
}

impl core::fmt::Debug for Tern {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str("network")
    }
}

impl Tern {
    /// A network that nobody has asked for. Its threads tell the caller.
    pub fn new(priority: u8) -> Tern {
        Tern {
            state: RefCell::new(State::Unasked),
            sockets: RefCell::default(),
            waiters: Waiters::new(priority),
            spare: RefCell::new(Box::new(Sockets::Stream::Replies::new())),
            spare_datagram: RefCell::new(Box::new(Sockets::Datagrams::Replies::new())),
            spare_answer: RefCell::new(Box::new(Sockets::Echo::Replies::new())),
        }
    }

    /// A thread has told of this: it does not wait for that any more.
    pub fn told(&self, number: u64, events: u32) {
        if let Some(entry) = self.sockets.borrow_mut().get_mut(&number) {
            entry.watched &= !events;
        }
    }

    /// Error of Linux for a failure of a server, which is looked for again if it is gone.
    fn errno(&self, failure: Failure, entrance: Uid) -> Errno {
        match failure {
            Failure::Refused(Sockets::AGAIN) => EAGAIN,
            Failure::Refused(Sockets::CLOSED) => ECONNRESET,
            Failure::Refused(Sockets::IN_USE) => EADDRINUSE,
            Failure::Refused(Sockets::LIMIT) => ENOBUFS,
            Failure::Refused(Sockets::BAD) => EINVAL,
            Failure::Refused(Sockets::UNREACHABLE) => ENETUNREACH,
            Failure::Refused(Sockets::REFUSED) => ECONNREFUSED,
            Failure::Refused(Sockets::SILENT) => EHOSTUNREACH,
            Failure::Kernel(sys::Error::NoMemory | sys::Error::Limit) => ENOBUFS,
            Failure::Kernel(_) => {
                if self.entrance() == Some(entrance) {
                    self.state.replace(State::Unasked);
                }
                ECONNRESET
            }
            _ => EIO,
        }
    }

    fn entrance(&self) -> Option<Uid> {
        match &*self.state.borrow() {
            State::Found(server) => Some(server.entrance),
            _ => None,
        }
    }

    /// Does something with the object that makes sockets. Its outcome comes with the thread at which its server is waited for.
    fn with_host<T>(
        &self,
        act: impl FnOnce(&Sockets::Host::Client<View>) -> core::result::Result<T, Failure>,
    ) -> Result<(T, Uid)> {
        let (outcome, entrance) = match &*self.state.borrow() {
            State::Found(server) => (act(&server.host), server.entrance),
            State::Missing(_) => return Err(ENETUNREACH),
            State::Unasked | State::Asked => return Err(ENETDOWN),
        };
        let is_kernels = matches!(outcome, Err(Failure::Kernel(_)));
        let outcome = outcome.map_err(|failure| match self.errno(failure, entrance) {
            ECONNRESET if is_kernels => ENETDOWN,
            errno => errno,
        });
        Ok((outcome?, entrance))
    }

    fn add(&self, number: u64, socket: Socket, entrance: Uid) -> Result<()> {
        let ticket = match &socket {
            Socket::Stream(stream) => stream.ticket(),
            Socket::Listener(listener) => listener.ticket(),
            Socket::Datagrams(datagrams) => datagrams.ticket(),
            Socket::Echo(echo) => echo.ticket(),
        };
        let ticket = ticket.map_err(|failure| self.errno(failure, entrance))?;
        self.sockets.borrow_mut().insert(number, Entry { socket, ticket, entrance, watched: 0 });
        Ok(())
    }

    fn with_stream<T>(
        &self,
        number: u64,
        act: impl FnOnce(&Sockets::Stream::Client<View>) -> core::result::Result<T, Failure>,
    ) -> Result<T> {
        match self.sockets.borrow().get(&number) {
            Some(Entry { socket: Socket::Stream(stream), entrance, .. }) => {
                act(stream).map_err(|failure| self.errno(failure, *entrance))
            }
            _ => Err(ENOTCONN),
        }
    }

    fn with_datagrams<T>(
        &self,
        number: u64,
        act: impl FnOnce(&Sockets::Datagrams::Client<View>) -> core::result::Result<T, Failure>,
    ) -> Result<T> {
        match self.sockets.borrow().get(&number) {
            Some(Entry { socket: Socket::Datagrams(datagrams), entrance, .. }) => {
                act(datagrams).map_err(|failure| self.errno(failure, *entrance))
            }
            _ => Err(EINVAL),
        }
    }

    fn with_echo<T>(
        &self,
        number: u64,
        act: impl FnOnce(&Sockets::Echo::Client<View>) -> core::result::Result<T, Failure>,
    ) -> Result<T> {
        match self.sockets.borrow().get(&number) {
            Some(Entry { socket: Socket::Echo(echo), entrance, .. }) => {
                act(echo).map_err(|failure| self.errno(failure, *entrance))
            }
            _ => Err(EINVAL),
        }
    }

    /// Whether a socket is nowhere. One that a server had which is gone has broken off, also if there is none any more.
    fn is_nowhere(&self, number: u64) -> bool {
        !self.sockets.borrow().contains_key(&number) && self.nowhere(|_| ()).is_some()
    }

    /// Nowhere, if there is no server for this program.
    fn nowhere<T>(&self, act: impl FnOnce(&Nowhere) -> T) -> Option<T> {
        match &*self.state.borrow() {
            State::Missing(nowhere) => Some(act(nowhere)),
            _ => None,
        }
    }
}

impl Network for Tern {
    fn presence(&self) -> Presence {
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Unasked) {
            *state = if self.waiters.look() { State::Asked } else { State::Missing(Nowhere::default()) };
        }
        if matches!(*state, State::Asked) {
            match self.waiters.found() {
                None => return Presence::Unknown,
                Some(Some(server)) => *state = State::Found(server),
                Some(None) => *state = State::Missing(Nowhere::default()),
            }
        }
        Presence::Known
    }

    fn source(&self, to: IpAddr) -> Option<IpAddr> {
        if !matches!(*self.state.borrow(), State::Found(_)) {
            return None;
        }
        let ways = || {
            let ((v4, v6), _) = self.with_host(|host| host.router()).ok()?;
            let [v4, v6] = [v4, v6].map(|router| router != [0; 16]);
            Some(Ways { v4, v6 })
        };
        // No server is asked for what is in this machine.
        let own = if to.is_loopback() { Vec::new() } else { self.addresses() };
        network::source(&own, ways, to)
    }

    fn has(&self, address: IpAddr) -> bool {
        let is_found = matches!(*self.state.borrow(), State::Found(_));
        is_found && (address.is_loopback() || self.addresses().iter().any(|(own, _)| *own == address))
    }

    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        let found = (0..ADDRESSES_MAX)
            .map_while(|place| self.with_host(|host| host.address_at(place)).ok())
            .map(|((address, prefix), _)| (unpacked(address), prefix));
        found.collect()
    }

    fn router(&self) -> Option<Ipv4Addr> {
        let ((router, _), _) = self.with_host(|host| host.router()).ok()?;
        match unpacked(router) {
            IpAddr::V4(router) => Some(router),
            // None at all.
            IpAddr::V6(_) => None,
        }
    }

    fn router_v6(&self) -> Option<Ipv6Addr> {
        let ((_, router), _) = self.with_host(|host| host.router()).ok()?;
        match unpacked(router) {
            IpAddr::V6(router) if !router.is_unspecified() => Some(router),
            _ => None,
        }
    }

    fn card(&self) -> Option<[u8; 6]> {
        let ((is_there, hardware, _), _) = self.with_host(|host| host.link()).ok()?;
        let [a, b, c, d, e, f, ..] = hardware.to_le_bytes();
        is_there.then_some([a, b, c, d, e, f])
    }

    fn bind(&self, number: u64, at: SocketAddr, is_shared: bool) -> Result<()> {
        if let Some(outcome) = self.nowhere(|nowhere| nowhere.bind(number, at, is_shared)) {
            return outcome;
        }
        if self.sockets.borrow().contains_key(&number) {
            return self
                .with_datagrams(number, |datagrams| datagrams.bind(&endpoint(at), is_shared).map(drop));
        }
        let (datagrams, entrance) = self.with_host(|host| host.open_datagrams())?;
        datagrams.bind(&endpoint(at), is_shared).map_err(|failure| self.errno(failure, entrance))?;
        self.add(number, Socket::Datagrams(datagrams), entrance)
    }

    fn listen(&self, number: u64, at: SocketAddr, backlog: u16) -> Result<()> {
        if let Some(outcome) = self.nowhere(|nowhere| nowhere.listen(number, at, backlog)) {
            return outcome;
        }
        network::listen_with_fewer(backlog, |backlog| {
            let (listener, entrance) = self.with_host(|host| host.listen(&endpoint(at), backlog))?;
            self.add(number, Socket::Listener(listener), entrance)
        })
    }

    fn connect(&self, number: u64, from: SocketAddr, to: SocketAddr) -> Result<()> {
        let (stream, entrance) = self.with_host(|host| host.open_stream())?;
        let begun = stream.connect(&endpoint(to), &endpoint(from));
        begun.map_err(|failure| self.errno(failure, entrance))?;
        self.add(number, Socket::Stream(stream), entrance)
    }

    fn accept(&self, listener: u64, number: u64) -> Result<()> {
        let (stream, entrance) = match self.sockets.borrow().get(&listener) {
            Some(Entry { socket: Socket::Listener(listener), entrance, .. }) => {
                (listener.accept(), *entrance)
            }
            _ => return Err(if self.nowhere(|_| ()).is_some() { EAGAIN } else { EINVAL }),
        };
        let stream = stream.map_err(|failure| self.errno(failure, entrance))?;
        self.add(number, Socket::Stream(stream), entrance)
    }

    fn phase(&self, number: u64) -> Phase {
        match self.with_stream(number, |stream| stream.phase()) {
            Ok(Sockets::State::CONNECTING) => Phase::Connecting,
            Ok(Sockets::State::OPEN) => Phase::Open,
            Err(EHOSTUNREACH) => Phase::Silent,
            _ => Phase::Closed,
        }
    }

    fn ends(&self, number: u64) -> Ends {
        let ends = [
            self.with_stream(number, |stream| stream.local()),
            self.with_stream(number, |stream| stream.peer()),
        ];
        ends.map(|end| end.ok().map(|end| socket_address(&end)))
    }

    fn write(&self, number: u64, from: &[u8]) -> Result<usize> {
        self.with_stream(number, |stream| stream.write(from)).map(|count| count as usize)
    }

    fn read(&self, number: u64, len_max: usize) -> Result<Vec<u8>> {
        let len_max = len_max.min(Sockets::BYTES_MAX as usize) as u32;
        let mut spare = self.spare.borrow_mut();
        self.with_stream(number, |stream| {
            Inbox::open(&mut **spare, |inbox| stream.read(inbox, len_max).map(<[u8]>::to_vec))?
        })
    }

    fn shut_down(&self, number: u64) -> Result<()> {
        self.with_stream(number, |stream| stream.shutdown())
    }

    fn connect_datagrams(&self, number: u64, to: Option<SocketAddr>) -> Result<()> {
        let to = endpoint(to.unwrap_or(ANYWHERE));
        self.with_datagrams(number, |datagrams| datagrams.connect(&to))
    }

    fn set_member(&self, number: u64, group: IpAddr, is_member: bool) -> Result<()> {
        let group = packed(group);
        self.with_datagrams(
            number,
            |datagrams| {
                if is_member { datagrams.join(&group) } else { datagrams.leave(&group) }
            },
        )
    }

    fn set_sending(&self, number: u64, Sending { from, hops, loops }: Sending) -> Result<()> {
        self.with_datagrams(number, |datagrams| datagrams.set_sending(&packed(from), hops, loops))
    }

    // The server says from where it sends, with how many hops, and knows no classes.
    fn send_to(&self, number: u64, to: SocketAddr, bytes: &[u8], _: &Sent) -> Result<()> {
        if self.nowhere(|_| ()).is_some() {
            return Err(ENETUNREACH);
        }
        self.with_datagrams(number, |datagrams| datagrams.send(&endpoint(to), bytes))
    }

    fn receive_from(&self, number: u64) -> Result<Datagram> {
        if self.is_nowhere(number) {
            return Err(EAGAIN);
        }
        let mut spare = self.spare_datagram.borrow_mut();
        self.with_datagrams(number, |datagrams| {
            Inbox::open(&mut **spare, |inbox| {
                let (bytes, from) = datagrams.receive(inbox)?;
                Ok(Datagram::new(socket_address(&from), bytes.to_vec()))
            })?
        })
    }

    fn open_echo(&self, number: u64) -> Result<()> {
        if let Some(outcome) = self.nowhere(|nowhere| nowhere.open_echo(number)) {
            return outcome;
        }
        let (echo, entrance) = self.with_host(|host| host.open_echo())?;
        self.add(number, Socket::Echo(echo), entrance)
    }

    fn ask(&self, number: u64, to: IpAddr, (request, bytes): (u16, &[u8])) -> Result<()> {
        if self.nowhere(|_| ()).is_some() {
            return Err(ENETUNREACH);
        }
        self.with_echo(number, |echo| echo.ask(&packed(to), request, bytes))
    }

    fn answer(&self, number: u64) -> Result<(IpAddr, u16, Vec<u8>)> {
        if self.is_nowhere(number) {
            return Err(EAGAIN);
        }
        let mut spare = self.spare_answer.borrow_mut();
        self.with_echo(number, |echo| {
            Inbox::open(&mut **spare, |inbox| {
                let (bytes, from, request) = echo.answer(inbox)?;
                Ok((unpacked(from), request, bytes.to_vec()))
            })?
        })
    }

    fn ready(&self, number: u64) -> u32 {
        if let Some(events) = self.nowhere(|nowhere| nowhere.ready(number)) {
            return events;
        }
        let found = self.sockets.borrow().get(&number).map(|entry| (entry.entrance, entry.ticket));
        let Some((server, ticket)) = found else { return ANY };
        (Entrance::Client { server }).wait(ticket, ANY, 0).unwrap_or(ANY)
    }

    fn watch(&self, number: u64, events: u32) {
        let mut sockets = self.sockets.borrow_mut();
        let Some(entry) = sockets.get_mut(&number) else { return };
        // One for each: what is not told now is still waited for.
        for event in [readiness::READ, readiness::WRITE] {
            if events & !entry.watched & event != 0 {
                entry.watched |= event;
                self.waiters.wait(Watch { number, ticket: entry.ticket, event, server: entry.entrance });
            }
        }
    }

    fn close(&self, number: u64) {
        let _ = self.nowhere(|nowhere| nowhere.close(number));
        let socket = self.sockets.borrow_mut().remove(&number);
        drop(socket);
    }
}

/// Looks for the server. None: there is none for this program.
pub fn find() -> Option<Server> {
    let open = || {
        let name = rt::api::Name::new(net::sockets::NAME).ok_or(rt::api::Failure::Garbled)?;
        let entrance = rt::api::names::resolve(rt::home(), &name)?;
        let room = rt::door::Room::new().map_err(rt::api::Failure::Kernel)?;
        Entrance::Client { server: entrance }.open(room.window())?;
        Ok(Server { entrance, host: room.into_door().into() })
    };
    rt::retry::while_gone(open).ok()
}
