//! Bytes and datagrams of sockets of networks.

use crate::calls::files::Taken;
use crate::calls::messages::Header;
use crate::calls::number;
use crate::errno::{
    EACCES, EAFNOSUPPORT, EAGAIN, EDESTADDRREQ, EFAULT, EINVAL, EMSGSIZE, ENETUNREACH, EOPNOTSUPP, EPIPE,
    Result,
};
use crate::frames::Bytes;
use crate::inet::{Arrived, Asked, Family, Inet, Protocol, address_bytes};
use crate::machine::{Machine, Tid};
use crate::network::{DATAGRAM_MAX, ECHO_MAX, NEAR_DATAGRAM_MAX, readiness};
use crate::open::Open;
use crate::process::Event;
use crate::signal::Cause;
use crate::socket::SHUT_WRITE;
use crate::system::{Answer, Outcome, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use linux_raw_sys::general::{CAP_NET_ADMIN, CAP_NET_RAW, O_NONBLOCK, SIGPIPE};
use linux_raw_sys::net::{
    MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK, MSG_TRUNC, MSG_WAITALL,
};
use vfs::FileSystem;

/// Bytes that are written to a stream at a time.
pub const PIECE: u64 = 64 << 10;

/// Pieces that one call writes before others get their turn.
const PIECES_MAX: usize = 16;

/// Most bytes that a call receives at once.
const RECEIVED_MAX: u64 = 1 << 20;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Writes to a stream. What it has no room for is watched.
    fn write_stream(&mut self, inet: &Inet, from: &[u8]) -> Result<usize> {
        let network = self.network();
        inet.follow(&*network, self.machine.now());
        let outcome = inet.write(&*network, from);
        // There may be more behind a whole piece: then the caller waits, and is told at once.
        let is_whole = matches!(outcome, Ok(count) if count == from.len() && (count as u64) < PIECE);
        if !is_whole && matches!(outcome, Ok(_) | Err(EAGAIN)) {
            network.watch(inet.number, readiness::WRITE);
        }
        outcome
    }

    /// Writes as to a file.
    pub(in crate::calls) fn put_inet(&mut self, inet: &Rc<Inet>, from: &[u8]) -> Result<usize> {
        if inet.is_stream() {
            return self.write_stream(inet, from);
        }
        let to = inet.peer.get().ok_or(EDESTADDRREQ)?;
        self.send_datagram(inet, to, from, &Asked::default())?;
        Ok(from.len())
    }

    /// Reads as from a file.
    pub(in crate::calls) fn take_inet(&mut self, inet: &Inet, to: &mut [u8]) -> Result<Taken> {
        match self.receive_inet(inet, to.len(), false) {
            Ok(arrived) => {
                let count = arrived.bytes.len().min(to.len());
                to.iter_mut().zip(&arrived.bytes).for_each(|(to, byte)| *to = *byte);
                Ok(Taken::Bytes(count))
            }
            Err(EAGAIN) => {
                let tid = self.current.ok_or(EAGAIN)?;
                self.socket_deadline(tid, inet.timeouts[0].get()).map(Taken::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Receives. If nothing is there, or somebody waits by a list, more is watched.
    fn receive_inet(&mut self, inet: &Inet, room: usize, peeks: bool) -> Result<Arrived> {
        let network = self.network();
        inet.follow(&*network, self.machine.now());
        let received = inet.receive(&*network, room, peeks);
        let wants_more = match &received {
            Err(error) => *error == EAGAIN,
            // Somebody who takes all that there is, or less, is told of what comes next.
            Ok(arrived) => !arrived.is_end && self.watches.has(inet.number),
        };
        if wants_more {
            network.watch(inet.number, readiness::READ);
        }
        received
    }

    /// Sends a datagram.
    fn send_datagram(&mut self, inet: &Rc<Inet>, to: SocketAddr, bytes: &[u8], asked: &Asked) -> Result<()> {
        if let Some(error) = inet.error.take() {
            return Err(error);
        }
        if inet.is_shut(SHUT_WRITE) {
            return Err(EPIPE);
        }
        let request = match inet.is_echo() {
            true if bytes.len() > ECHO_MAX => return Err(EMSGSIZE),
            true => Some(crate::inet::request(inet.family, bytes)?),
            false => None,
        };
        let network = self.network();
        if !inet.is_below.get() {
            self.address_of_inet(inet)?;
        }
        let is_usual = bytes.len() <= DATAGRAM_MAX[usize::from(to.is_ipv6())];
        if request.is_none() && !is_usual && bytes.len() > network.datagram_max(inet.number, to) {
            return Err(EMSGSIZE);
        }
        if to.ip().is_multicast() && inet.protocol == Protocol::Udp {
            inet.tell_sending(&*network, asked)?;
        }
        let outcome = match request {
            Some(request) => network.ask(inet.number, to.ip(), request),
            None => {
                let date = if self.sockets.wants_dates { self.machine.date() } else { 0 };
                network.send_to(inet.number, to, bytes, &asked.sent(inet, to.ip(), bytes.len(), date))
            }
        };
        if outcome == Err(EAGAIN) {
            network.watch(inet.number, readiness::WRITE);
        }
        outcome
    }

    /// The address to which a datagram goes.
    fn datagram_target(&mut self, tid: Tid, inet: &Inet, (at, len): (u64, u32)) -> Result<SocketAddr> {
        let named = match len {
            0 => None,
            len => Some(self.inet_address(tid, inet, (at, len.into()))?.ok_or(EAFNOSUPPORT)?),
        };
        let to = named.map(super::reached).or(inet.peer.get()).ok_or(EDESTADDRREQ)?;
        if to.port() == 0 && !inet.is_echo() {
            return Err(EINVAL);
        }
        if !inet.family.has(to.ip(), inet.options.is_six_only()) {
            return Err(ENETUNREACH);
        }
        let is_for_all = matches!(to.ip(), IpAddr::V4(address) if address.is_broadcast());
        if is_for_all && !inet.options.may_broadcast() {
            return Err(EACCES);
        }
        Ok(to)
    }

    /// How a datagram is to be sent by what is beside it.
    fn asked(&mut self, tid: Tid, inet: &Inet, to: SocketAddr, beside: &[u8]) -> Result<Asked> {
        if beside.is_empty() {
            return Ok(Asked::default());
        }
        let may_mark = self.can(tid, CAP_NET_ADMIN) || self.can(tid, CAP_NET_RAW);
        let family = if to.is_ipv4() { Family::Four } else { Family::Six };
        let asked = Asked::parse(beside, inet.family, family, may_mark)?;
        asked.check(&*self.network(), to.ip())?;
        Ok(asked)
    }

    /// Sends a message. `done`: bytes of it that are sent.
    pub(in crate::calls) fn send_by_inet(
        &mut self,
        tid: Tid,
        (open, inet): (&Open, &Rc<Inet>),
        header: &Header,
        flags: u32,
        done: u64,
    ) -> Answer {
        if flags & MSG_OOB != 0 {
            return Err(EOPNOTSUPP);
        }
        let is_brief = open.has(O_NONBLOCK) || flags & MSG_DONTWAIT != 0;
        if inet.is_stream() {
            return self.send_by_stream(tid, inet, header, (is_brief, flags & MSG_NOSIGNAL != 0), done);
        }
        let beside = self.beside(tid, header.control)?;
        let to = self.datagram_target(tid, inet, header.name)?;
        let asked = self.asked(tid, inet, to, &beside)?;
        if header.len() > NEAR_DATAGRAM_MAX[1] as u64 {
            return Err(EMSGSIZE);
        }
        let (bytes, is_there) = self.gather(tid, &header.pieces, 0, header.len())?;
        if !is_there {
            return Err(EFAULT);
        }
        match self.send_datagram(inet, to, &bytes, &asked) {
            Err(EAGAIN) if !is_brief => self.wait_for_inet(tid, inet, readiness::WRITE),
            outcome => outcome.map(|()| Outcome::Value(bytes.len() as u64)),
        }
    }

    fn send_by_stream(
        &mut self,
        tid: Tid,
        inet: &Rc<Inet>,
        header: &Header,
        (is_brief, is_silent): (bool, bool),
        done: u64,
    ) -> Answer {
        let mut all = done;
        for _ in 0..PIECES_MAX {
            let (bytes, is_there) = self.gather(tid, &header.pieces, all, PIECE)?;
            if !is_there && bytes.is_empty() {
                return if all > 0 { number(Ok(all)) } else { Err(EFAULT) };
            }
            let count = match self.write_stream(inet, &bytes) {
                Ok(count) => count,
                Err(EAGAIN) => 0,
                Err(_) if all > 0 => return number(Ok(all)),
                Err(EPIPE) if !is_silent => {
                    let pid = self.pid(tid)?;
                    let _ = self.send_to_thread(tid, SIGPIPE, Cause::process(pid, 0));
                    return Err(EPIPE);
                }
                Err(error) => return Err(error),
            };
            all += count as u64;
            if all >= header.len() || !is_there && count == bytes.len() {
                return number(Ok(all));
            }
            if count < bytes.len() {
                break;
            }
        }
        match self.socket_deadline(tid, inet.timeouts[1].get()) {
            Ok(until) if !is_brief => {
                self.thread(tid)?.done = all;
                self.network().watch(inet.number, readiness::WRITE);
                Ok(Outcome::Wait(Vec::from([Event::Ring(inet.number)]), until))
            }
            _ if all > 0 => number(Ok(all)),
            _ => Err(EAGAIN),
        }
    }

    /// Receives a message. `done`: bytes of it that have been received.
    pub(in crate::calls) fn receive_by_inet(
        &mut self,
        tid: Tid,
        (open, inet): (&Open, &Rc<Inet>),
        header: &Header,
        flags: u32,
        done: u64,
    ) -> Result<(Outcome, Arrived)> {
        if flags & MSG_OOB != 0 {
            return Err(if inet.is_stream() { EINVAL } else { EOPNOTSUPP });
        }
        if flags & MSG_ERRQUEUE != 0 {
            return Err(EAGAIN);
        }
        let wanted = header.len();
        let room = wanted.saturating_sub(done).min(RECEIVED_MAX) as usize;
        let is_brief = open.has(O_NONBLOCK) || flags & MSG_DONTWAIT != 0;
        let peeks = flags & MSG_PEEK != 0;
        let arrived = match self.receive_inet(inet, room, peeks) {
            Err(EAGAIN) if !is_brief => match self.wait_for_inet(tid, inet, readiness::READ) {
                Ok(wait) => {
                    self.thread(tid)?.done = done;
                    return Ok((wait, Arrived::default()));
                }
                Err(_) if done > 0 => Arrived::default(),
                Err(error) => return Err(error),
            },
            Err(_) if done > 0 => Arrived { is_end: true, ..Arrived::default() },
            arrived => arrived?,
        };
        self.scatter(tid, &header.pieces, done, &arrived.bytes)?;
        let all = done + arrived.bytes.len() as u64;
        let is_short = all < wanted && !arrived.is_end && !is_brief && !peeks;
        if inet.is_stream()
            && flags & MSG_WAITALL != 0
            && is_short
            && let Ok(wait) = self.wait_for_inet(tid, inet, readiness::READ)
        {
            self.thread(tid)?.done = all;
            return Ok((wait, Arrived::default()));
        }
        let is_told_whole = flags & MSG_TRUNC != 0 && !inet.is_stream();
        Ok((Outcome::Value(if is_told_whole { arrived.whole as u64 } else { all }), arrived))
    }

    /// Receives a message, and tells its sender, what is known beside it, and its flags.
    pub(in crate::calls) fn receive_whole_by_inet(
        &mut self,
        tid: Tid,
        (open, inet): (&Open, &Rc<Inet>),
        header: &Header,
        flags: u32,
        done: u64,
    ) -> Answer {
        let (outcome, arrived) = self.receive_by_inet(tid, (open, inet), header, flags, done)?;
        if !matches!(outcome, Outcome::Value(_)) {
            return Ok(outcome);
        }
        let mut control = header.beside();
        inet.tell_beside(&*self.network(), &arrived, self.machine.date(), &mut control);
        let is_cut = !inet.is_stream() && arrived.whole > arrived.bytes.len();
        let told = flags & MSG_CMSG_CLOEXEC | if is_cut { MSG_TRUNC } else { 0 };
        self.write_back(tid, header, &sender_bytes(inet, &arrived), &control, told)?;
        Ok(outcome)
    }
}

/// Address of the sender of a datagram; none for bytes of a stream.
pub fn sender_bytes(inet: &Inet, arrived: &Arrived) -> Vec<u8> {
    arrived.from.map(|from| address_bytes(inet.family, from)).unwrap_or_default()
}
