//! Messages of netlink: a head, a structure, and attributes behind it, each of which begins at a multiple of four bytes.
//!
//! Programs send what they like. Requests end in front of the first one whose head is cut off, or whose length is not that of a message, as in Linux.

use alloc::vec::Vec;
use core::net::IpAddr;
use linux_raw_sys::netlink::{NLA_TYPE_MASK, NLMSG_ALIGNTO, nlmsghdr, rtattr};

/// Bytes of the head of a message.
pub const HEAD_BYTES: usize = size_of::<nlmsghdr>();

/// Bytes of the head of an attribute.
const ATTRIBUTE_BYTES: usize = size_of::<rtattr>();

/// Everything begins at multiples of this.
const ALIGN: usize = NLMSG_ALIGNTO as usize;

/// Bits of the kind of an attribute; the others say how its value is to be read.
const KIND_MASK: u16 = NLA_TYPE_MASK as u16;

/// Bytes of messages that are received together, at most: programs have room for a page.
const PART_MAX: usize = 3072;

/// A number of 16 bits in bytes; 0 where there are none.
pub fn half(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    found.map_or(0, |half| u16::from_le_bytes(*half))
}

/// A number of 32 bits in bytes; 0 where there are none.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    found.map_or(0, |word| u32::from_le_bytes(*word))
}

/// A request of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// Its kind: `RTM_…`, or less for messages of netlink itself.
    pub kind: u16,
    flags: u32,
    /// Number that its answers have, too.
    pub sequence: u32,
    /// All of its bytes.
    pub whole: &'a [u8],
}

/// Requests of a message of a program.
pub fn requests(message: &[u8]) -> impl Iterator<Item = Request<'_>> {
    let mut rest = message;
    core::iter::from_fn(move || {
        let len = word(rest, 0) as usize;
        let whole = rest.get(..len).filter(|whole| whole.len() >= HEAD_BYTES)?;
        rest = rest.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        let (kind, flags) = (half(whole, 4), half(whole, 6).into());
        Some(Request { kind, flags, sequence: word(whole, 8), whole })
    })
}

impl<'a> Request<'a> {
    /// Says if one of some flags is set.
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Bytes behind the head.
    pub fn body(&self) -> &'a [u8] {
        self.whole.get(HEAD_BYTES..).unwrap_or_default()
    }

    /// Family of addresses, which is the first byte behind the head of every request.
    pub fn family(&self) -> u32 {
        self.body().first().copied().unwrap_or(0).into()
    }

    /// Value of an attribute behind a structure of so many bytes. Nothing is found behind an attribute whose length is wrong.
    pub fn attribute(&self, structure: usize, kind: u16) -> Option<&'a [u8]> {
        let mut rest = self.body().get(structure..)?;
        loop {
            let len = usize::from(half(rest, 0));
            let value = rest.get(ATTRIBUTE_BYTES..len)?;
            if half(rest, 2) & KIND_MASK == kind {
                return Some(value);
            }
            rest = rest.get(len.next_multiple_of(ALIGN)..)?;
        }
    }
}

/// Addressee of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct To {
    /// Number of the request.
    pub sequence: u32,
    /// Port of the socket.
    pub port: u32,
}

/// A message that is being made.
#[derive(Debug)]
pub struct Message(Vec<u8>);

impl Message {
    /// The head of an answer of a kind, with flags.
    pub fn new(kind: u16, flags: u32, to: To) -> Message {
        let mut bytes = Vec::with_capacity(4 * HEAD_BYTES);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&(flags as u16).to_le_bytes());
        bytes.extend_from_slice(&to.sequence.to_le_bytes());
        bytes.extend_from_slice(&to.port.to_le_bytes());
        Message(bytes)
    }

    /// Bytes of the structure behind the head.
    pub fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// An attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        let len = (ATTRIBUTE_BYTES + value.len()) as u16;
        self.put(&len.to_le_bytes());
        self.put(&kind.to_le_bytes());
        self.put(value);
        self.fill();
    }

    /// An attribute that is a number.
    pub fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_le_bytes());
    }

    /// An attribute that is a text, with a zero behind it.
    pub fn text(&mut self, kind: u16, value: &str) {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat());
    }

    /// An attribute that is an address.
    pub fn address(&mut self, kind: u16, value: IpAddr) {
        match value {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    fn fill(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(ALIGN), 0);
    }

    /// All of its bytes, and zeros up to where another one can begin.
    pub fn into_bytes(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        if let Some(place) = self.0.first_chunk_mut() {
            *place = len.to_le_bytes();
        }
        self.fill();
        self.0.shrink_to_fit();
        self.0
    }
}

/// Puts messages together that are received together.
pub fn packed(messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for message in messages {
        match parts.last_mut() {
            Some(part) if part.len() + message.len() <= PART_MAX => part.extend(message),
            _ => parts.push(message),
        }
    }
    parts.iter_mut().for_each(Vec::shrink_to_fit);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    const TO: To = To { sequence: 7, port: 9 };

    #[test]
    fn messages_are_what_is_put_into_them() {
        let mut message = Message::new(16, 0x302, TO);
        message.put(&[1, 2, 3, 4]);
        message.text(3, "lo");
        message.number(4, 0x0102_0304);
        message.address(1, "10.0.2.15".parse().unwrap());
        let bytes = message.into_bytes();
        let head = [44, 0, 0, 0, 16, 0, 2, 3, 7, 0, 0, 0, 9, 0, 0, 0, 1, 2, 3, 4];
        let attributes = [7, 0, 3, 0, b'l', b'o', 0, 0, 8, 0, 4, 0, 4, 3, 2, 1, 8, 0, 1, 0, 10, 0, 2, 15];
        assert_eq!(bytes, [&head[..], &attributes].concat());
        let all: Vec<Request> = requests(&bytes).collect();
        let [request] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((request.kind, request.sequence, request.family()), (16, 7, 1));
        assert!(request.has(0x100) && request.has(2) && !request.has(4));
        assert_eq!(request.attribute(4, 3), Some(&b"lo\0"[..]));
        assert_eq!(request.attribute(4, 1), Some(&[10, 0, 2, 15][..]));
        assert_eq!((request.attribute(4, 2), request.attribute(100, 3)), (None, None));
    }

    #[test]
    fn requests_end_where_one_lies() {
        let one = |kind| Message::new(kind, 1, TO).into_bytes();
        let two = [one(18), one(22)].concat();
        let kinds = |bytes: &[u8]| requests(bytes).map(|request| request.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&two), [18, 22]);
        for cut in 0..two.len() {
            assert_eq!(kinds(&two[..cut]), if cut < 16 { vec![] } else { vec![18] }, "{cut}");
        }
        for len in [0, 1, 15, 33, 1 << 31, u32::MAX] {
            let mut bytes = two.clone();
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            assert!(kinds(&bytes).is_empty(), "{len}");
        }
        // One whose length is no multiple of four goes on to the next one.
        let mut bytes = [one(18), one(22), one(26)].concat();
        bytes[0] = 29;
        assert_eq!(kinds(&bytes), [18, 26]);
        bytes[0] = 47;
        assert_eq!(kinds(&bytes), [18]);
    }

    #[test]
    fn attributes_end_where_one_lies() {
        for (attributes, expected) in [
            (&[4, 0, 1, 0, 5, 0, 3, 0, 9][..], Some(&[9][..])),
            // Bits above the kind do not belong to it.
            (&[5, 0, 3, 0xc0, 8, 0, 0, 0], Some(&[8])),
            (&[3, 0, 1, 0, 5, 0, 3, 0, 9], None),
            (&[0, 0, 0, 0, 5, 0, 3, 0, 9], None),
            (&[255, 255, 1, 0, 5, 0, 3, 0, 9], None),
            (&[4, 0, 1, 0, 6, 0, 3, 0, 9], None),
            (&[4, 0, 1, 0, 5, 0, 3], None),
            (&[4, 0, 3, 0], Some(&[])),
            (&[4, 0], None),
            (&[], None),
        ] {
            let mut message = Message::new(18, 1, TO);
            message.put(attributes);
            let bytes = message.into_bytes();
            let whole = &bytes[..16 + attributes.len()];
            let request = Request { kind: 18, flags: 1, sequence: 7, whole };
            assert_eq!(request.attribute(0, 3), expected, "{attributes:?}");
        }
    }

    #[test]
    fn parts_have_an_end() {
        let messages: Vec<Vec<u8>> = (0..10).map(|number| vec![number; 1000]).collect();
        let parts = packed(messages.clone());
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [3000, 3000, 3000, 1000]);
        assert_eq!(parts.concat(), messages.concat());
        assert_eq!(packed(vec![vec![1; 5000], vec![2; 4]]), [vec![1; 5000], vec![2; 4]]);
        assert!(packed(vec![]).is_empty());
    }
}
