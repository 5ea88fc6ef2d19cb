//! A server of names (DNS).

use crate::frames::{Datagram, datagram};
use crate::streams::Segment;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::wire::EthernetAddress;

/// Port of the server.
pub const PORT: u16 = 53;

/// Address that no question goes to.
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 77);

/// Address that nobody should believe.
pub const LIE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 88);

/// Bytes in front of the question, and behind its name: kind and class.
const HEADER: usize = 12;
/// See [`HEADER`].
const BEHIND_NAME: usize = 4;

/// Kinds of records: an address of IPv4, another name, an address of IPv6.
const A: u16 = 1;
/// See [`A`].
const CNAME: u16 = 5;
/// See [`A`].
const AAAA: u16 = 28;

/// Flags of an answer; with the one that says that it was longer, too; with a code that says that there is no such name.
const ANSWER: u16 = 0x8180;
/// See [`ANSWER`].
const TRUNCATED: u16 = 0x8380;
/// See [`ANSWER`].
const NO_NAME: u16 = 0x8183;

/// Links of a chain of names, at most.
const LINKS_MAX: usize = 8;

/// Manner of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// It answers as it should.
    #[default]
    Honest,
    /// It answers nobody.
    Silent,
    /// Answers have another number.
    WrongNumber,
    /// Answers repeat another question.
    OtherQuestion,
    /// Answers are for another name than the one that is asked for.
    OtherName,
    /// The name of a record points to itself.
    Loop,
    /// Another name points to itself.
    LoopInAlias,
    /// A name is longer than a name can be.
    LongAlias,
    /// The answer ends in the middle of its record.
    Cut,
    /// The answer says that it is not all, and has no records.
    Truncated,
    /// The answer says that there are more records than it has.
    Endless,
    /// The answer comes from another machine.
    Stranger,
}

impl Manner {
    /// Manners that give nobody an address.
    pub const HOSTILE: [Manner; 11] = [
        Manner::Silent,
        Manner::WrongNumber,
        Manner::OtherQuestion,
        Manner::OtherName,
        Manner::Loop,
        Manner::LoopInAlias,
        Manner::LongAlias,
        Manner::Cut,
        Manner::Truncated,
        Manner::Endless,
        Manner::Stranger,
    ];
}

/// Manner of the server's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stream {
    /// They answer as they should.
    #[default]
    Honest,
    /// They answer, and end at once.
    Brief,
    /// There are none.
    Refused,
    /// Nothing says that there are none.
    Silent,
    /// Nothing comes by them.
    Mute,
    /// They end in the middle of an answer.
    Cut,
    /// They end before it.
    Ends,
    /// An answer says that it is longer than it is.
    Long,
    /// It says that it is shorter than it is.
    Short,
    /// It says that it has nothing in it.
    Empty,
    /// It is as long as its length can say.
    Endless,
}

impl Stream {
    /// Manners that give nobody an address.
    pub const HOSTILE: [Stream; 9] = [
        Stream::Refused,
        Stream::Silent,
        Stream::Mute,
        Stream::Cut,
        Stream::Ends,
        Stream::Long,
        Stream::Short,
        Stream::Empty,
        Stream::Endless,
    ];
}

/// A record of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The name has an address of IPv4.
    V4(Ipv4Addr),
    /// The name has an address of IPv6.
    V6(Ipv6Addr),
    /// The name is another's.
    Alias(&'static str),
}

/// The server.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Manner.
    pub manner: Manner,
    /// Records, each with its name.
    pub records: Vec<(&'static str, Record)>,
    /// Whether datagrams never have more of an answer than that it is cut.
    pub cuts: bool,
    /// Manner of connections.
    pub stream: Stream,
    /// Questions that have come, and those of them that came by connections.
    pub questions: u64,
    /// See [`Names::questions`].
    pub by_stream: u64,
}

/// Bytes of an answer in a datagram, at most.
const DATAGRAM_MAX: usize = 512;

impl Names {
    /// Answers to a question.
    pub(crate) fn answer(&mut self, client: EthernetAddress, asked: &Datagram) -> Vec<Vec<u8>> {
        let Some(question) = Question::of(asked.payload) else { return Vec::new() };
        self.questions += 1;
        if self.manner == Manner::Silent {
            return Vec::new();
        }
        let mut message = self.said(&question);
        if self.cuts || message.len() > DATAGRAM_MAX {
            message = Message::new(&question, TRUNCATED).done();
        }
        let from = match asked.to.ip() {
            IpAddr::V4(_) if self.manner == Manner::Stranger => STRANGER.into(),
            own => own,
        };
        vec![datagram(client.0, (from, PORT).into(), asked.from, &message)]
    }

    /// Answers to a segment of a connection.
    pub(crate) fn answer_by_stream(&mut self, segment: &Segment) -> Vec<Vec<u8>> {
        let stream = self.stream;
        match stream {
            Stream::Silent => return Vec::new(),
            Stream::Refused => return segment.refused(),
            _ => {}
        }
        let ends = matches!(stream, Stream::Brief | Stream::Cut | Stream::Ends | Stream::Short);
        segment.answered(ends, |bytes| {
            let question = bytes.get(2..).and_then(Question::of);
            let Some(question) = question.filter(|_| !matches!(stream, Stream::Mute | Stream::Ends)) else {
                return Vec::new();
            };
            self.questions += 1;
            self.by_stream += 1;
            let message = self.said(&question);
            let len = match stream {
                Stream::Long => message.len() + 1,
                Stream::Short => message.len() - 1,
                Stream::Empty => 0,
                Stream::Endless => usize::from(u16::MAX),
                _ => message.len(),
            };
            let mut said = [&(len as u16).to_be_bytes(), &message[..]].concat();
            match stream {
                Stream::Cut => said.truncate(said.len() - 1),
                Stream::Endless => said.resize(4000, 0),
                _ => {}
            }
            said
        })
    }

    /// Answer in the server's manner.
    fn said(&self, question: &Question) -> Vec<u8> {
        if self.manner == Manner::Honest { self.known(question) } else { self.lie(question) }
    }

    /// An honest answer: the chain of names, and all addresses of the last one.
    fn known(&self, question: &Question) -> Vec<u8> {
        let mut message = Message::new(question, ANSWER);
        let mut name = question.name.clone();
        if !self.records.iter().any(|(own, _)| *own == name) {
            return Message::new(question, NO_NAME).done();
        }
        for _ in 0..LINKS_MAX {
            let mut next = None;
            for (_, record) in self.records.iter().filter(|(own, _)| *own == name) {
                match record {
                    Record::V4(address) if question.kind == A => {
                        message.record(&wire(&name), A, &address.octets());
                    }
                    Record::V6(address) if question.kind == AAAA => {
                        message.record(&wire(&name), AAAA, &address.octets());
                    }
                    Record::Alias(other) => {
                        message.record(&wire(&name), CNAME, &wire(other));
                        next = Some(*other);
                    }
                    _ => {}
                }
            }
            let Some(next) = next else { break };
            name = next.into();
        }
        message.done()
    }

    /// An answer that should not be believed.
    fn lie(&self, question: &Question) -> Vec<u8> {
        // A pointer to the name of the question.
        let own = [0xc0, HEADER as u8];
        let (kind, address) = match question.kind {
            AAAA => (AAAA, LIE.to_ipv6_mapped().octets().to_vec()),
            _ => (A, LIE.octets().to_vec()),
        };
        let flags = if self.manner == Manner::Truncated { TRUNCATED } else { ANSWER };
        let mut message = Message::new(question, flags);
        let at = message.bytes.len();
        let here = |behind: usize| (0xc000 | (at + behind) as u16).to_be_bytes();
        match self.manner {
            Manner::WrongNumber => message.bytes[0] ^= 1,
            Manner::OtherQuestion => message.bytes[HEADER + 1] ^= 1,
            _ => {}
        }
        match self.manner {
            Manner::Truncated => {}
            Manner::OtherName => message.record(&wire("other.test"), kind, &address),
            Manner::Loop => message.record(&here(0), kind, &address),
            Manner::LoopInAlias => {
                // The data of the record begins behind two bytes of a name and ten of what the record is.
                message.record(&own, CNAME, &here(12));
                message.record(&own, kind, &address);
            }
            Manner::LongAlias => {
                let labels = [[63; 64]; 5].concat();
                message.record(&own, CNAME, &[&labels[..], &[0]].concat());
            }
            _ => message.record(&own, kind, &address),
        }
        match self.manner {
            Manner::Endless => message.records = u16::MAX,
            Manner::Cut => drop(message.bytes.pop()),
            _ => {}
        }
        message.done()
    }
}

/// A question for a name.
#[derive(Debug)]
struct Question<'a> {
    name: String,
    kind: u16,
    /// The message up to the question's end.
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    fn of(message: &'a [u8]) -> Option<Question<'a>> {
        let (mut at, mut labels) = (HEADER, Vec::new());
        loop {
            let len = usize::from(*message.get(at)?);
            at += 1;
            if len == 0 {
                break;
            }
            labels.push(core::str::from_utf8(message.get(at..at + len)?).ok()?);
            at += len;
        }
        let kind = u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?);
        Some(Question { name: labels.join("."), kind, bytes: message.get(..at + BEHIND_NAME)? })
    }
}

/// An answer.
#[derive(Debug)]
struct Message {
    bytes: Vec<u8>,
    records: u16,
}

impl Message {
    fn new(question: &Question, flags: u16) -> Message {
        let mut bytes = question.bytes.to_vec();
        bytes[2..4].copy_from_slice(&flags.to_be_bytes());
        bytes[4..HEADER].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
        Message { bytes, records: 0 }
    }

    /// One more record, which holds for a minute.
    fn record(&mut self, name: &[u8], kind: u16, data: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(&kind.to_be_bytes());
        self.bytes.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        self.bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
        self.bytes.extend_from_slice(data);
        self.records += 1;
    }

    fn done(mut self) -> Vec<u8> {
        self.bytes[6..8].copy_from_slice(&self.records.to_be_bytes());
        self.bytes
    }
}

/// A name as it is in messages.
fn wire(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
