//! Sockets that wait, for programs: each operation is tried, and if it cannot be done now the program waits until it can. Served by `network`; the
//! interfaces are `idl/interfaces/sockets.idl` and `network.idl`.
//!
//! Waiting is a call by ipc that the server answers when its time has come, so nobody keeps a thread of the server busy by waiting.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use rt::api::stub::{Failure as Fault, Inbox, View};
use rt::api::{Failure, Name, names};
use rt::door::{Reference, Room};
use rt::sync::Mutex;
use rt::sys::Uid;

pub use crate::streams::Stream;
pub use Network::Entrance;
pub use Sockets::Endpoint;

rt::interface!(ipc, "../../../idl/interfaces/network.idl");
rt::interface!(door, "../../../idl/interfaces/sockets.idl");

/// The name under which the server registers.
pub const NAME: &str = "network";

/// Any address of this machine, and any port.
pub const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Patience without an end.
pub const FOREVER: u64 = u64::MAX;

/// Patience that a name takes, in milliseconds: at most four servers are asked, for ten seconds each.
pub const NAME_PATIENCE_MS: u64 = 45_000;

/// Why something failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The connection has ended, or the other side does not want it.
    Closed,
    /// The port is in use.
    InUse,
    /// This program has as many sockets as it may.
    Limit,
    /// An address, a port or a size that cannot be.
    Bad,
    /// No way leads there.
    Unreachable,
    /// There is no such name, or nobody who knows.
    NotFound,
    /// Nobody has the port that a datagram was for.
    Refused,
    /// Nobody answers at the address that a datagram was for, or a connection.
    Silent,
    /// It took too long.
    TimedOut,
    /// The server did not answer as it should.
    Server(Failure),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Closed => f.write_str("the connection is closed"),
            Error::InUse => f.write_str("the port is in use"),
            Error::Limit => f.write_str("too many sockets"),
            Error::Bad => f.write_str("no such address, port or size"),
            Error::Unreachable => f.write_str("no way leads there"),
            Error::NotFound => f.write_str("the name is not known"),
            Error::Refused => f.write_str("nobody takes what is sent there"),
            Error::Silent => f.write_str("nobody answers there"),
            Error::TimedOut => f.write_str("it took too long"),
            Error::Server(failure) => failure.fmt(f),
        }
    }
}

/// Result of an operation.
pub type Result<T> = core::result::Result<T, Error>;

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::Server(failure)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Refused(Sockets::CLOSED) => Error::Closed,
            Fault::Refused(Sockets::IN_USE) => Error::InUse,
            Fault::Refused(Sockets::LIMIT) => Error::Limit,
            Fault::Refused(Sockets::BAD) => Error::Bad,
            Fault::Refused(Sockets::UNREACHABLE) => Error::Unreachable,
            Fault::Refused(Sockets::NOT_FOUND) => Error::NotFound,
            Fault::Refused(Sockets::REFUSED) => Error::Refused,
            Fault::Refused(Sockets::SILENT) => Error::Silent,
            fault => Error::Server(fault.into()),
        }
    }
}

/// An address as it travels.
pub fn packed(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => [0; 16],
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// An address that has come.
pub fn unpacked(address: [u8; 16]) -> IpAddr {
    let address = Ipv6Addr::from(address);
    address.to_ipv4_mapped().map_or(address.into(), IpAddr::from)
}

/// An address and a port as they travel.
pub fn endpoint(at: SocketAddr) -> Endpoint {
    Endpoint { address: packed(at.ip()), port: at.port() }
}

/// An address and a port that have come.
pub fn socket_address(at: &Endpoint) -> SocketAddr {
    SocketAddr::new(unpacked(at.address), at.port)
}

/// The network, as a program has it.
pub struct Net {
    pub(crate) server: Uid,
    host: Reference<Sockets::Host::Client<View>>,
    /// Room for what a read brings. A new one would have to be zeroed; there is one for all connections, since few read at a time.
    pub(crate) spare: Mutex<Option<Box<Sockets::Stream::Replies>>>,
}

impl Net {
    /// Finds the network server. Waits while it starts.
    pub fn open() -> Result<Net> {
        let server = names::resolve(rt::home(), &Name::new(NAME).ok_or(Failure::Garbled)?)?;
        let room = Room::new().map_err(Failure::Kernel)?;
        Entrance::Client { server }.open(room.window())?;
        Ok(Net { server, host: room.into_door().into(), spare: Mutex::new(None) })
    }

    /// Object of the server that makes sockets, and tells of addresses and the card.
    pub fn host(&self) -> &Sockets::Host::Client<View> {
        &self.host
    }

    /// Does something as soon as it can be done.
    pub(crate) fn when<T>(
        &self,
        ticket: u64,
        event: u32,
        patience_ms: u64,
        mut act: impl FnMut() -> core::result::Result<T, Fault>,
    ) -> Result<T> {
        loop {
            match act() {
                Err(Fault::Refused(Sockets::AGAIN)) => self.wait(ticket, event, patience_ms)?,
                outcome => return Ok(outcome?),
            }
        }
    }

    fn wait(&self, ticket: u64, event: u32, patience_ms: u64) -> Result<()> {
        match (Entrance::Client { server: self.server }).wait(ticket, event, patience_ms)? {
            0 => Err(Error::TimedOut),
            _ => Ok(()),
        }
    }

    /// The address that a name has, or that it is.
    pub fn resolve(&self, name: &str, patience_ms: u64) -> Result<IpAddr> {
        let question = self.host.resolve(name)?;
        let ticket = question.ticket()?;
        self.when(ticket, Sockets::READABLE, patience_ms, || question.answer()).map(unpacked)
    }

    /// A connection.
    pub fn connect(&self, to: SocketAddr, patience_ms: u64) -> Result<Stream<'_>> {
        self.connect_from(ANYWHERE, to, patience_ms)
    }

    /// A connection from an address and a port of this machine. The address that is none, and port 0, mean any. [`Error::Silent`]: nobody answers at the other end's address.
    pub fn connect_from(&self, from: SocketAddr, to: SocketAddr, patience_ms: u64) -> Result<Stream<'_>> {
        let stream = self.host.open_stream()?;
        stream.connect(&endpoint(to), &endpoint(from))?;
        let ticket = stream.ticket()?;
        self.wait(ticket, Sockets::WRITABLE, patience_ms)?;
        match stream.phase()? {
            Sockets::State::OPEN => Ok(Stream::new(self, stream, ticket)),
            _ => Err(Error::Closed),
        }
    }

    /// A listener.
    pub fn listen(&self, at: SocketAddr, backlog: u16) -> Result<Listener<'_>> {
        let listener = self.host.listen(&endpoint(at), backlog)?;
        let ticket = listener.ticket()?;
        Ok(Listener { net: self, listener, ticket })
    }

    /// A socket for datagrams. Without a port it gets one when it sends.
    pub fn datagrams(&self, at: Option<SocketAddr>) -> Result<Datagrams<'_>> {
        let socket = self.host.open_datagrams()?;
        if let Some(at) = at {
            socket.bind(&endpoint(at), false)?;
        }
        let ticket = socket.ticket()?;
        Ok(Datagrams { net: self, socket, ticket })
    }

    /// One at a port that others may share, who say so, too. What is sent to a group is for all of them that have joined it, and anything else for one.
    pub fn shared_datagrams(&self, at: SocketAddr) -> Result<Datagrams<'_>> {
        let socket = self.host.open_datagrams()?;
        socket.bind(&endpoint(at), true)?;
        let ticket = socket.ticket()?;
        Ok(Datagrams { net: self, socket, ticket })
    }

    /// A socket for echo requests.
    pub fn echo(&self) -> Result<Echo<'_>> {
        let echo = self.host.open_echo()?;
        let ticket = echo.ticket()?;
        Ok(Echo { net: self, echo, ticket })
    }
}

/// A listener.
pub struct Listener<'a> {
    net: &'a Net,
    listener: Reference<Sockets::Listener::Client<View>>,
    ticket: u64,
}

impl<'a> Listener<'a> {
    /// Waits for a connection.
    pub fn accept(&self, patience_ms: u64) -> Result<Stream<'a>> {
        let accept = || self.listener.accept();
        let stream = self.net.when(self.ticket, Sockets::READABLE, patience_ms, accept)?;
        let ticket = stream.ticket()?;
        Ok(Stream::new(self.net, stream, ticket))
    }

    /// Whether a connection waits to be accepted.
    pub fn has_waiting(&self) -> Result<bool> {
        match self.net.wait(self.ticket, Sockets::READABLE, 0) {
            Err(Error::TimedOut) => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }
}

/// A socket for datagrams.
pub struct Datagrams<'a> {
    net: &'a Net,
    socket: Reference<Sockets::Datagrams::Client<View>>,
    ticket: u64,
}

impl Datagrams<'_> {
    /// Number by which it is waited for.
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Connects it to an end: it receives from there alone, and hears of a datagram to there that was refused or dropped. `None`: it is connected to nobody.
    pub fn connect(&self, to: Option<SocketAddr>) -> Result<()> {
        Ok(self.socket.connect(&endpoint(to.unwrap_or(ANYWHERE)))?)
    }

    /// Takes what is sent to a group, too.
    pub fn join(&self, group: IpAddr) -> Result<()> {
        Ok(self.socket.join(&packed(group))?)
    }

    /// Takes no more of what is sent to a group.
    pub fn leave(&self, group: IpAddr) -> Result<()> {
        Ok(self.socket.leave(&packed(group))?)
    }

    /// Says how it sends to groups: from which address of this machine (none: any), for how many hops, and whether this machine gets it, too.
    pub fn set_sending(&self, from: IpAddr, hops: u8, loops: bool) -> Result<()> {
        Ok(self.socket.set_sending(&packed(from), hops, loops)?)
    }

    /// Sends a datagram. [`Error::Refused`], [`Error::Silent`]: an earlier one has failed, and this one is not sent.
    pub fn send(&self, to: SocketAddr, bytes: &[u8]) -> Result<()> {
        let to = endpoint(to);
        self.net.when(self.ticket, Sockets::WRITABLE, FOREVER, || self.socket.send(&to, bytes))
    }

    /// Waits for a datagram: from whom, and what. [`Error::Refused`], [`Error::Silent`]: one that was sent has failed.
    pub fn receive(&self, patience_ms: u64) -> Result<(SocketAddr, Vec<u8>)> {
        let mut replies = Box::new(Sockets::Datagrams::Replies::new());
        Inbox::open(&mut *replies, |inbox| {
            let receive = || {
                let (bytes, from) = self.socket.receive(inbox)?;
                Ok((socket_address(&from), bytes.to_vec()))
            };
            self.net.when(self.ticket, Sockets::READABLE, patience_ms, receive)
        })?
    }
}

/// A socket for echo requests.
pub struct Echo<'a> {
    net: &'a Net,
    echo: Reference<Sockets::Echo::Client<View>>,
    ticket: u64,
}

impl Echo<'_> {
    /// Asks for an echo of these bytes.
    pub fn ask(&self, to: IpAddr, number: u16, bytes: &[u8]) -> Result<()> {
        let to = packed(to);
        self.net.when(self.ticket, Sockets::WRITABLE, FOREVER, || self.echo.ask(&to, number, bytes))
    }

    /// Waits for an answer: from whom, to which question, and what has come back.
    pub fn answer(&self, patience_ms: u64) -> Result<(IpAddr, u16, Vec<u8>)> {
        let mut replies = Box::new(Sockets::Echo::Replies::new());
        Inbox::open(&mut *replies, |inbox| {
            let answer = || {
                let (bytes, from, number) = self.echo.answer(inbox)?;
                Ok((unpacked(from), number, bytes.to_vec()))
            };
            self.net.when(self.ticket, Sockets::READABLE, patience_ms, answer)
        })?
    }
}
