//! Answers about names that are too long for a datagram. A server cuts such an answer and says so; then the same question goes to it by a connection (RFC 7766).
//!
//! `smoltcp` 0.14 asks by datagrams, and takes an answer that is cut for a whole one. So one that is cut is held back here, and the one that comes by a connection goes to the crate in its
//! place, as a datagram that is longer than any on a wire. The crate reads both, so there is one reader of answers, with one idea of whom they are for and what they mean.
//!
//! If no whole answer comes, for whatever reason, the one that was cut counts: it may have the address that is asked for. So it is with answers to programs that ask servers of names by datagrams of their own.

use crate::advertisements::NEVER;
use crate::frames;
use crate::offload::Upper;
use crate::stack::Stack;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    DnsFlags, DnsOpcode, DnsPacket, DnsRcode, EthernetFrame, IpEndpoint, IpProtocol, UdpPacket,
};

/// Port of servers of names.
const PORT: u16 = 53;

/// Questions that are under way, at most: one that is too many is answered by a datagram or not at all.
const QUESTIONS_MAX: usize = 32;

/// How long a question is under way, at most.
const PATIENCE: Duration = Duration::from_secs(45);

/// Connections for answers at once, at most, and how long each may take: less than the crate waits for one server.
const TALKS_MAX: usize = 4;
/// See [`TALKS_MAX`].
const TALK: Duration = Duration::from_secs(5);

/// Bytes of an answer, at most. They are kept by the connection.
pub const ANSWER_MAX: usize = 8 << 10;

/// Bytes of a message in front of its question.
const HEAD: usize = 12;

/// Bytes in front of a message that say how long it is.
const LENGTH: usize = 2;

/// Number that no client has: connections of the stack's own are left to it when they end.
const OWNER: u64 = u64::MAX;

/// A question, from here to a server.
#[derive(Debug)]
struct Question {
    client: SocketAddr,
    server: SocketAddr,
    message: Vec<u8>,
    until: Instant,
}

impl Question {
    /// Whether a message between these two is an answer to it that is cut.
    fn is_cut(&self, from: SocketAddr, to: SocketAddr, message: &[u8]) -> bool {
        let Ok(packet) = DnsPacket::new_checked(message) else { return false };
        let is_answer = packet.flags().contains(DnsFlags::RESPONSE | DnsFlags::TRUNCATED)
            && packet.opcode() == DnsOpcode::Query
            && packet.rcode() == DnsRcode::NoError;
        let is_to_this = self.message.len() > HEAD
            && message.get(..2) == self.message.get(..2)
            && message.get(HEAD..self.message.len()) == self.message.get(HEAD..);
        is_answer && is_to_this && from == self.server && to == self.client
    }
}

/// A question that is asked by a connection.
#[derive(Debug)]
struct Talk {
    question: Question,
    /// Frame with the answer that was cut.
    cut: Vec<u8>,
    /// The connection, if it is begun.
    handle: Option<SocketHandle>,
    is_asked: bool,
    until: Instant,
}

/// Questions that are under way.
#[derive(Debug)]
pub(crate) struct Names {
    now: Instant,
    /// Until when there may be questions among the frames that leave.
    expected_until: Instant,
    questions: VecDeque<Question>,
    talks: Vec<Talk>,
}

impl Default for Names {
    fn default() -> Names {
        let now = Instant::ZERO;
        Names { now, expected_until: now, questions: VecDeque::new(), talks: Vec::new() }
    }
}

/// A datagram in a frame: from where, to where, and its bytes.
fn datagram(frame: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let upper = Upper::of(frame).filter(|upper| upper.protocol == IpProtocol::Udp)?;
    let datagram = UdpPacket::new_checked(frame.get(upper.at)?).ok()?;
    let from = SocketAddr::new(upper.from, datagram.src_port());
    Some((from, SocketAddr::new(upper.to, datagram.dst_port()), datagram.payload()))
}

impl Names {
    /// A question is to be asked: the next frames are looked at.
    pub fn expect(&mut self, now: Instant) {
        self.now = now;
        self.expected_until = now + PATIENCE;
    }

    /// Looks at a frame that leaves.
    pub fn sent(&mut self, frame: &[u8]) {
        if self.expected_until <= self.now {
            return;
        }
        let Some((client, server, message)) = datagram(frame).filter(|(_, to, _)| to.port() == PORT) else {
            return;
        };
        let until = self.now + PATIENCE;
        self.questions.retain(|known| known.client != client && known.until > self.now);
        if self.questions.len() >= QUESTIONS_MAX {
            self.questions.pop_front();
        }
        self.questions.push_back(Question { client, server, message: message.into(), until });
    }

    /// Whether a frame of the card's is an answer that is cut. It is held back.
    pub fn refuses(&mut self, frame: &[u8]) -> bool {
        if self.questions.is_empty() && self.talks.is_empty() {
            return false;
        }
        let Some((from, to, message)) = datagram(frame).filter(|(from, ..)| from.port() == PORT) else {
            return false;
        };
        if self.talks.iter().any(|talk| talk.question.is_cut(from, to, message)) {
            // It was asked again meanwhile.
            return true;
        }
        let place = self.questions.iter().position(|question| question.is_cut(from, to, message));
        let Some(question) =
            place.filter(|_| self.talks.len() < TALKS_MAX).and_then(|place| self.questions.remove(place))
        else {
            return false;
        };
        let until = self.now + TALK;
        self.talks.push(Talk { question, cut: frame.into(), handle: None, is_asked: false, until });
        true
    }

    /// When the time of the next connection is over.
    pub fn due(&self) -> Instant {
        self.talks.iter().map(|talk| talk.until).min().unwrap_or(NEVER)
    }
}

/// State of a connection for an answer.
enum Step {
    GoesOn,
    /// The answer.
    Answered(Vec<u8>),
    /// There is none.
    Failed,
}

impl Talk {
    /// Asks, and takes the answer as soon as all of it is there.
    fn step(&mut self, now: Instant, socket: &mut tcp::Socket) -> Step {
        if self.until <= now || !socket.is_active() {
            return Step::Failed;
        }
        if !self.is_asked && socket.may_send() {
            let message = &self.question.message;
            // A name has 255 bytes at most, so there is room for all of it.
            let length = (message.len() as u16).to_be_bytes();
            let asked = socket.send_slice(&[&length[..], message].concat());
            self.is_asked = asked.is_ok_and(|len| len == LENGTH + message.len());
        }
        let mut length = [0; LENGTH];
        if socket.recv_queue() < LENGTH || socket.peek_slice(&mut length).is_err() {
            return if socket.may_recv() || !self.is_asked { Step::GoesOn } else { Step::Failed };
        }
        let len = usize::from(u16::from_be_bytes(length));
        if !(HEAD..=ANSWER_MAX).contains(&len) {
            return Step::Failed;
        }
        if socket.recv_queue() < LENGTH + len {
            return if socket.may_recv() { Step::GoesOn } else { Step::Failed };
        }
        let mut bytes = vec![0; LENGTH + len];
        match socket.recv_slice(&mut bytes) {
            Ok(read) if read == bytes.len() => Step::Answered(bytes.split_off(LENGTH)),
            _ => Step::Failed,
        }
    }

    /// Frame for the stack with the answer; with the one that was cut, if there is none.
    fn told(self, answer: Option<Vec<u8>>) -> Vec<u8> {
        let Ok(ethernet) = EthernetFrame::new_checked(&self.cut[..]) else { return self.cut };
        let hardware = [ethernet.src_addr(), ethernet.dst_addr()];
        let Question { client, server, .. } = self.question;
        let whole = answer.and_then(|answer| frames::datagram(hardware, server, client, &answer));
        whole.unwrap_or(self.cut)
    }
}

impl Stack {
    /// Asks by connections where that is needed, and gives the answers to whom they are for.
    pub(crate) fn follow_names(&mut self) {
        self.wire.names.now = self.now;
        for mut talk in core::mem::take(&mut self.wire.names.talks) {
            let step = match talk.handle {
                None => self.begin_talk(&mut talk),
                Some(handle) => talk.step(self.now, self.sockets.get_mut(handle)),
            };
            let answer = match step {
                Step::GoesOn => {
                    self.wire.names.talks.push(talk);
                    continue;
                }
                Step::Answered(answer) => Some(answer),
                Step::Failed => None,
            };
            if let Some(handle) = talk.handle {
                match answer {
                    Some(_) => self.table.orphans.add(self.now, &mut self.sockets, OWNER, handle),
                    None => self.table.orphans.refuse(self.now, &mut self.sockets, OWNER, handle),
                }
            }
            self.wire.hand_in(talk.told(answer));
        }
    }

    fn begin_talk(&mut self, talk: &mut Talk) -> Step {
        // A program that has asked by its own datagram gets the answer as it is.
        let asker = IpEndpoint::from(talk.question.client).into();
        if self.table.has(&self.sockets, asker, true) {
            return Step::Failed;
        }
        let Ok(port) = self.table.free_port(&self.sockets, false) else { return Step::Failed };
        let buffer = |len| tcp::SocketBuffer::new(vec![0; len]);
        let mut socket = tcp::Socket::new(buffer(LENGTH + ANSWER_MAX), buffer(LENGTH + 512));
        let to = IpEndpoint::from(talk.question.server);
        if socket.connect(self.once_from(port, to).context(), to, port).is_err() {
            return Step::Failed;
        }
        talk.handle = Some(self.sockets.add(socket));
        Step::GoesOn
    }

    /// Connections for answers.
    pub(crate) fn talks(&self) -> usize {
        self.wire.names.talks.iter().filter(|talk| talk.handle.is_some()).count()
    }

    /// There is another card: nobody is asked any more.
    pub(crate) fn forget_names(&mut self) {
        for handle in self.wire.names.talks.drain(..).filter_map(|talk| talk.handle) {
            self.sockets.remove(handle);
        }
        self.wire.names.questions.clear();
    }
}
