//! A network in memory for tests: whatever is sent comes back to this machine. Nothing happens by itself; [`Loopback::due`] says what is to be told.

use super::{DATAGRAM_MAX, Datagram, Ends, Network, Phase, Presence, Sending, Sent, readiness};
use crate::errno::{
    EADDRINUSE, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, EINVAL, EMSGSIZE, ENETUNREACH,
    ENOBUFS, ENOTCONN, Errno, Result,
};
use core::cell::{Cell, RefCell};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

/// Bytes that a connection keeps in each direction.
pub const STREAM_BYTES: usize = 16 << 10;

/// Datagrams that a socket keeps.
pub const DATAGRAMS: usize = 16;

/// Sockets that there may be, with each connection that nobody has accepted.
pub const SOCKETS: usize = 32;

/// Own address of the machine beside those of loopback.
pub const OWN: &str = "10.0.2.15";

/// Own address of IPv6.
pub const OWN_V6: &str = "fe80::15";

/// The machine that leads to all other networks of IPv6.
pub const ROUTER_V6: &str = "fe80::2";

/// Hardware address of the card.
pub const HARDWARE: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// An address that is reached and never answers.
pub const SILENT: &str = "10.0.2.99";

/// An address of which it is known at once that nobody has it, so that connections to it are given up.
pub const ABSENT: &str = "10.0.2.98";

#[derive(Debug)]
struct Stream {
    ends: [SocketAddr; 2],
    phase: Phase,
    incoming: VecDeque<u8>,
    is_end: bool,
    is_reset: bool,
    is_shut: bool,
    /// Key of the other side.
    other: u64,
}

#[derive(Debug)]
struct Listener {
    at: SocketAddr,
    backlog: usize,
    waiting: VecDeque<u64>,
}

#[derive(Debug)]
struct Datagrams {
    at: SocketAddr,
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    is_shared: bool,
    groups: Vec<IpAddr>,
    sending: Option<Sending>,
    peer: Option<SocketAddr>,
    /// Why the last datagram to the peer has failed.
    failure: Option<Errno>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<u64, Stream>,
    /// Keys of streams by numbers.
    keys: BTreeMap<u64, u64>,
    listeners: BTreeMap<u64, Listener>,
    datagrams: BTreeMap<u64, Datagrams>,
    /// Answers at sockets for echo requests.
    echoes: BTreeMap<u64, VecDeque<(IpAddr, u16, Vec<u8>)>>,
    watched: BTreeMap<u64, u32>,
    next_key: u64,
    next_port: u16,
}

/// The network.
#[derive(Debug)]
pub struct Loopback {
    state: RefCell<State>,
    /// Whether it is known what there is.
    pub presence: Cell<Presence>,
}

impl Default for Loopback {
    fn default() -> Loopback {
        Loopback { state: RefCell::default(), presence: Cell::new(Presence::Known) }
    }
}

fn hears(at: SocketAddr, to: SocketAddr) -> bool {
    at.port() == to.port() && (at.ip().is_unspecified() || at.ip() == to.ip())
}

impl State {
    fn stream(&mut self, number: u64) -> Result<&mut Stream> {
        let key = self.keys.get(&number).ok_or(ENOTCONN)?;
        self.streams.get_mut(key).ok_or(ENOTCONN)
    }

    fn count(&self) -> usize {
        let waiting: usize = self.listeners.values().map(|listener| listener.backlog).sum();
        self.keys.len() + self.datagrams.len() + self.echoes.len() + waiting
    }

    fn room(&self, wanted: usize) -> Result<()> {
        if self.count() + wanted > SOCKETS { Err(ENOBUFS) } else { Ok(()) }
    }

    fn ready(&self, number: u64) -> u32 {
        let bits =
            |read, write| (if read { readiness::READ } else { 0 }) | if write { readiness::WRITE } else { 0 };
        if let Some(listener) = self.listeners.get(&number) {
            return bits(!listener.waiting.is_empty(), false);
        }
        if let Some(datagrams) = self.datagrams.get(&number) {
            return bits(!datagrams.queue.is_empty() || datagrams.failure.is_some(), true);
        }
        if let Some(answers) = self.echoes.get(&number) {
            return bits(!answers.is_empty(), true);
        }
        let Some(stream) = self.keys.get(&number).and_then(|key| self.streams.get(key)) else {
            return u32::MAX;
        };
        let is_full =
            self.streams.get(&stream.other).is_some_and(|other| other.incoming.len() >= STREAM_BYTES);
        match stream.phase {
            Phase::Connecting => 0,
            Phase::Closed | Phase::Refused | Phase::Silent => bits(true, true),
            Phase::Open => bits(!stream.incoming.is_empty() || stream.is_end || stream.is_reset, !is_full),
        }
    }

    fn close_key(&mut self, key: u64) {
        let Some(stream) = self.streams.remove(&key) else { return };
        if let Some(other) = self.streams.get_mut(&stream.other) {
            // Bytes that nobody has read make it a break.
            other.is_reset |= !stream.incoming.is_empty();
            other.is_end = true;
        }
    }
}

impl Loopback {
    /// Sockets that are watched and ready, with what they are ready for: each is told once.
    pub fn due(&self) -> Vec<(u64, u32)> {
        let state = &mut *self.state.borrow_mut();
        let mut due = Vec::new();
        for (number, events) in core::mem::take(&mut state.watched) {
            let ready = state.ready(number) & events;
            if ready != 0 {
                due.push((number, ready));
            }
            if events & !ready != 0 {
                state.watched.insert(number, events & !ready);
            }
        }
        due
    }

    /// Sockets that there are.
    pub fn count(&self) -> usize {
        self.state.borrow().count()
    }

    /// Breaks a connection off.
    pub fn reset(&self, number: u64) {
        let state = &mut *self.state.borrow_mut();
        let key = state.keys[&number];
        let other = state.streams[&key].other;
        for key in [key, other] {
            if let Some(stream) = state.streams.get_mut(&key) {
                stream.incoming.clear();
                stream.is_reset = true;
            }
        }
    }

    /// The server has ended, and with it a socket; who has it does not know.
    pub fn lose(&self, number: u64) {
        self.state.borrow_mut().datagrams.remove(&number);
    }

    /// Groups that a socket has joined, and how it sends to groups.
    pub fn groups(&self, number: u64) -> (Vec<IpAddr>, Option<Sending>) {
        let state = self.state.borrow();
        let socket = &state.datagrams[&number];
        (socket.groups.clone(), socket.sending)
    }

    fn send_to_group(&self, number: u64, to: SocketAddr, bytes: &[u8]) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let own = state.datagrams.get(&number).ok_or(EINVAL)?;
        let from = SocketAddr::new(OWN.parse().unwrap(), own.at.port());
        if own.sending.is_none_or(|sending| sending.loops) {
            let is_member =
                |socket: &&mut Datagrams| socket.groups.contains(&to.ip()) && hears(socket.at, to);
            for member in state.datagrams.values_mut().filter(is_member) {
                member.queue.push_back((from, bytes.to_vec()));
            }
        }
        Ok(())
    }

    /// A datagram comes from elsewhere.
    pub fn deliver(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        if let Some(socket) = state.datagrams.values_mut().find(|socket| hears(socket.at, to)) {
            socket.queue.push_back((from, bytes.to_vec()));
        }
    }
}

impl Network for Loopback {
    fn presence(&self) -> Presence {
        self.presence.get()
    }

    fn source(&self, to: IpAddr) -> Option<IpAddr> {
        let own: IpAddr = OWN.parse().unwrap();
        match to {
            _ if to.is_loopback() => Some(to),
            IpAddr::V4(address) if address.octets()[..3] == [10, 0, 2] || address.is_multicast() => Some(own),
            _ => None,
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses().iter().any(|(own, _)| *own == address)
    }

    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        let all = [(OWN, 24), (OWN_V6, 64), ("127.0.0.1", 8), ("::1", 128)];
        all.map(|(at, len)| (at.parse().unwrap(), len)).to_vec()
    }

    fn router(&self) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::new(10, 0, 2, 2))
    }

    fn router_v6(&self) -> Option<Ipv6Addr> {
        Some(ROUTER_V6.parse().unwrap())
    }

    fn card(&self) -> Option<[u8; 6]> {
        Some(HARDWARE)
    }

    fn bind(&self, number: u64, at: SocketAddr, is_shared: bool) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        assert_ne!(at.port(), 0);
        if let Some(own) = state.datagrams.get_mut(&number).filter(|own| is_shared && own.at == at) {
            own.is_shared = true;
            return Ok(());
        }
        let meets = |other: &Datagrams| hears(other.at, at) || hears(at, other.at);
        if state.datagrams.values().any(|other| meets(other) && !(is_shared && other.is_shared)) {
            return Err(EADDRINUSE);
        }
        state.room(1)?;
        let (queue, groups) = (VecDeque::new(), Vec::new());
        let socket = Datagrams { at, queue, is_shared, groups, sending: None, peer: None, failure: None };
        state.datagrams.insert(number, socket);
        Ok(())
    }

    fn listen(&self, number: u64, at: SocketAddr, backlog: u16) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        assert_ne!(at.port(), 0);
        if state.listeners.values().any(|listener| hears(listener.at, at) || hears(at, listener.at)) {
            return Err(EADDRINUSE);
        }
        let mut wanted = 0;
        super::listen_with_fewer(backlog, |backlog| {
            wanted = backlog.into();
            state.room(wanted)
        })?;
        let backlog = wanted;
        state.listeners.insert(number, Listener { at, backlog, waiting: VecDeque::new() });
        Ok(())
    }

    fn connect(&self, number: u64, from: SocketAddr, to: SocketAddr) -> Result<()> {
        let source = self.source(to.ip()).ok_or(ENETUNREACH)?;
        let source = if from.ip().is_unspecified() { source } else { from.ip() };
        let state = &mut *self.state.borrow_mut();
        if to.port() == 0 {
            return Err(EINVAL);
        }
        assert!(!state.keys.contains_key(&number));
        state.room(1)?;
        let port = match from.port() {
            0 => {
                state.next_port += 1;
                49_152 + state.next_port
            }
            port => port,
        };
        let from = SocketAddr::new(source, port);
        if state.streams.values().any(|stream| stream.ends == [from, to]) {
            return Err(EADDRINUSE);
        }
        let (own, far) = (state.next_key, state.next_key + 1);
        state.next_key += 2;
        let [is_silent, is_absent] = [SILENT, ABSENT].map(|at| to.ip() == at.parse::<IpAddr>().unwrap());
        let mut heard = state.listeners.values_mut().filter(|listener| hears(listener.at, to));
        let phase = match heard.next() {
            _ if is_silent => Phase::Connecting,
            _ if is_absent => Phase::Silent,
            Some(listener) if listener.waiting.len() < listener.backlog => {
                listener.waiting.push_back(far);
                Phase::Open
            }
            Some(_) => Phase::Connecting,
            None => Phase::Closed,
        };
        let stream = |ends, other| Stream {
            ends,
            phase,
            incoming: VecDeque::new(),
            is_end: false,
            is_reset: false,
            is_shut: false,
            other,
        };
        state.streams.insert(own, stream([from, to], far));
        if phase == Phase::Open {
            state.streams.insert(far, stream([to, from], own));
        }
        state.keys.insert(number, own);
        Ok(())
    }

    fn accept(&self, listener: u64, number: u64) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        if state.listeners.get(&listener).ok_or(EINVAL)?.waiting.is_empty() {
            return Err(EAGAIN);
        }
        state.room(1)?;
        let listener = state.listeners.get_mut(&listener).ok_or(EINVAL)?;
        let key = listener.waiting.pop_front().ok_or(EAGAIN)?;
        state.keys.insert(number, key);
        Ok(())
    }

    fn phase(&self, number: u64) -> Phase {
        self.state.borrow_mut().stream(number).map_or(Phase::Closed, |stream| stream.phase)
    }

    fn ends(&self, number: u64) -> Ends {
        self.state.borrow_mut().stream(number).map_or([None; 2], |stream| stream.ends.map(Some))
    }

    fn write(&self, number: u64, from: &[u8]) -> Result<usize> {
        let state = &mut *self.state.borrow_mut();
        let stream = state.stream(number)?;
        if stream.is_reset || stream.is_shut {
            return Err(ECONNRESET);
        }
        let other = stream.other;
        let Some(other) = state.streams.get_mut(&other) else {
            // It takes what comes behind its end for a reason to break off.
            state.stream(number)?.is_reset = true;
            return Ok(from.len());
        };
        let count = from.len().min(STREAM_BYTES - other.incoming.len());
        other.incoming.extend(&from[..count]);
        if count == 0 && !from.is_empty() { Err(EAGAIN) } else { Ok(count) }
    }

    fn read(&self, number: u64, len_max: usize) -> Result<Vec<u8>> {
        assert!(len_max <= 4096);
        let state = &mut *self.state.borrow_mut();
        let stream = state.stream(number)?;
        let count = stream.incoming.len().min(len_max);
        let bytes: Vec<u8> = stream.incoming.drain(..count).collect();
        match bytes.len() {
            0 if stream.is_end => Ok(bytes),
            0 if stream.is_reset => Err(ECONNRESET),
            0 => Err(EAGAIN),
            _ => Ok(bytes),
        }
    }

    fn shut_down(&self, number: u64) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let stream = state.stream(number)?;
        stream.is_shut = true;
        let other = stream.other;
        if let Some(other) = state.streams.get_mut(&other) {
            other.is_end = true;
        }
        Ok(())
    }

    fn connect_datagrams(&self, number: u64, to: Option<SocketAddr>) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let socket = state.datagrams.get_mut(&number).ok_or(EINVAL)?;
        (socket.peer, socket.failure) = (to, None);
        socket.queue.retain(|(from, _)| to.is_none_or(|to| to == *from));
        Ok(())
    }

    fn set_member(&self, number: u64, group: IpAddr, is_member: bool) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let groups = &mut state.datagrams.get_mut(&number).ok_or(EINVAL)?.groups;
        match groups.iter().position(|own| *own == group) {
            Some(_) if is_member => return Err(EADDRINUSE),
            None if is_member => groups.push(group),
            Some(place) => drop(groups.remove(place)),
            None => return Err(EADDRNOTAVAIL),
        }
        Ok(())
    }

    fn set_sending(&self, number: u64, sending: Sending) -> Result<()> {
        self.state.borrow_mut().datagrams.get_mut(&number).ok_or(EINVAL)?.sending = Some(sending);
        Ok(())
    }

    fn send_to(&self, number: u64, to: SocketAddr, bytes: &[u8], _: &Sent) -> Result<()> {
        if to.ip().is_multicast() {
            return self.send_to_group(number, to, bytes);
        }
        let source = self.source(to.ip()).ok_or(ENETUNREACH)?;
        if bytes.len() > DATAGRAM_MAX[0] {
            return Err(EMSGSIZE);
        }
        let state = &mut *self.state.borrow_mut();
        let own = state.datagrams.get_mut(&number).ok_or(EINVAL)?;
        if let Some(error) = own.failure.take() {
            return Err(error);
        }
        let (from, peer) = (own.at, own.peer);
        let address = if from.ip().is_unspecified() { source } else { from.ip() };
        match state.datagrams.values_mut().find(|socket| hears(socket.at, to)) {
            Some(socket) if socket.queue.len() < DATAGRAMS => {
                socket.queue.push_back((SocketAddr::new(address, from.port()), bytes.to_vec()));
            }
            None if peer == Some(to) => {
                let is_silent = to.ip() == SILENT.parse::<IpAddr>().unwrap();
                let error = if is_silent { EHOSTUNREACH } else { ECONNREFUSED };
                state.datagrams.get_mut(&number).ok_or(EINVAL)?.failure = Some(error);
            }
            _ => {}
        }
        Ok(())
    }

    fn receive_from(&self, number: u64) -> Result<Datagram> {
        let state = &mut *self.state.borrow_mut();
        let socket = state.datagrams.get_mut(&number).ok_or(EINVAL)?;
        if let Some(error) = socket.failure.take() {
            return Err(error);
        }
        let (from, bytes) = socket.queue.pop_front().ok_or(EAGAIN)?;
        Ok(Datagram::new(from, bytes))
    }

    fn open_echo(&self, number: u64) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        state.room(1)?;
        state.echoes.insert(number, VecDeque::new());
        Ok(())
    }

    fn ask(&self, number: u64, to: IpAddr, (request, bytes): (u16, &[u8])) -> Result<()> {
        self.source(to).ok_or(ENETUNREACH)?;
        let state = &mut *self.state.borrow_mut();
        let answers = state.echoes.get_mut(&number).ok_or(EINVAL)?;
        if to != SILENT.parse::<IpAddr>().unwrap() && answers.len() < DATAGRAMS {
            answers.push_back((to, request, bytes.to_vec()));
        }
        Ok(())
    }

    fn answer(&self, number: u64) -> Result<(IpAddr, u16, Vec<u8>)> {
        self.state.borrow_mut().echoes.get_mut(&number).ok_or(EINVAL)?.pop_front().ok_or(EAGAIN)
    }

    fn ready(&self, number: u64) -> u32 {
        self.state.borrow().ready(number)
    }

    fn watch(&self, number: u64, events: u32) {
        assert!(events & !(readiness::READ | readiness::WRITE) == 0 && events != 0);
        *self.state.borrow_mut().watched.entry(number).or_default() |= events;
    }

    fn close(&self, number: u64) {
        let state = &mut *self.state.borrow_mut();
        state.datagrams.remove(&number);
        state.echoes.remove(&number);
        if let Some(listener) = state.listeners.remove(&number) {
            for key in listener.waiting {
                state.close_key(key);
            }
        }
        if let Some(key) = state.keys.remove(&number) {
            state.close_key(key);
        }
    }
}
