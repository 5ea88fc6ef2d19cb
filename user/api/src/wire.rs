//! What all interfaces have in common: labels, statuses, names, short texts.
//!
//! A request's label is `interface << 16 | operation`; an answer's label is a [`Status`]. A request is
//! always a *call*: who sends without waiting for the answer gets none.

use sys::{Error, Fpage, Ipc, Kind, Message, Timeout, Uid};

/// Numbers of the interfaces: the upper half of a request's label.
pub mod interface {
    /// See [`memory`](crate::memory).
    pub const MEMORY: u32 = 1;
    /// See [`names`](crate::names).
    pub const NAMES: u32 = 2;
    /// See [`console`](crate::console).
    pub const CONSOLE: u32 = 3;
    /// See [`process`](crate::process).
    pub const PROCESS: u32 = 5;
    /// See [`sigma0`](crate::sigma0).
    pub const SIGMA0: u32 = 6;
    /// See [`file`](crate::file).
    pub const FILE: u32 = 7;
}

/// Which interface a message is for.
pub const fn interface_of(message: &Message) -> u32 {
    message.label >> 16
}

/// Which operation of its interface a message asks for.
pub(crate) const fn operation_of(message: &Message) -> u32 {
    message.label & 0xffff
}

/// How a server answers: the label of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The server knows no such request, or a number in it is out of range.
    BadRequest = 2,
    /// The caller may not do this.
    Denied = 3,
    /// The name or task names nothing.
    NotFound = 4,
    /// Memory or a table of the server is exhausted.
    Exhausted = 5,
    /// The server cannot do this now; try again.
    Busy = 6,
    /// The file is no program for this machine.
    BadImage = 7,
    /// The name is taken.
    Taken = 8,
}

impl Status {
    const ALL: [(Status, &'static str); 8] = [
        (Status::Ok, "done"),
        (Status::BadRequest, "the server does not understand the request"),
        (Status::Denied, "not allowed"),
        (Status::NotFound, "not found"),
        (Status::Exhausted, "out of memory"),
        (Status::Busy, "busy"),
        (Status::BadImage, "not a program for this machine"),
        (Status::Taken, "the name is taken"),
    ];

    fn from_label(label: u32) -> Option<Status> {
        Status::ALL.iter().map(|&(status, _)| status).find(|&status| status as u32 == label)
    }

    /// One line for people.
    pub fn describe(self) -> &'static str {
        Status::ALL.iter().find(|(status, _)| *status == self).map_or("", |(_, text)| text)
    }
}

/// Label of the answer to a page fault that nobody will resolve: the kernel then raises an exception.
pub const UNRESOLVABLE: u32 = sys::abi::call::REFUSE;

/// Why a request failed, as its client sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The message or its answer did not get through.
    Kernel(Error),
    /// The server said no.
    Refused(Status),
    /// What came back is no answer.
    Garbled,
}

impl From<stub::Failure> for Failure {
    /// What servers with generated stubs refuse is what these refuse: a malformed request, or one of no method.
    fn from(failure: stub::Failure) -> Failure {
        match failure {
            stub::Failure::Kernel(error) => Failure::Kernel(error),
            stub::Failure::Refused(label) => {
                Failure::Refused(Status::from_label(label).unwrap_or(Status::BadRequest))
            }
            stub::Failure::TooLong => Failure::Refused(Status::BadRequest),
            stub::Failure::Malformed | stub::Failure::OtherInbox => Failure::Garbled,
        }
    }
}

impl Failure {
    /// Whether the server is gone, so that its name should be resolved again.
    pub const fn server_is_gone(self) -> bool {
        matches!(self, Failure::Kernel(Error::NoSuch | Error::PartnerDied))
    }
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Failure::Kernel(error) => error.fmt(f),
            Failure::Refused(status) => f.write_str(status.describe()),
            Failure::Garbled => f.write_str("the answer makes no sense"),
        }
    }
}

/// What a client function returns.
pub type Result<T> = core::result::Result<T, Failure>;

/// An encoded answer, ready to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Status, or what the kernel expects from a pager or exception handler.
    pub label: u32,
    /// w0 … w7; with an item only the first six count.
    pub words: [u64; 8],
    /// Flexpage and hot spot.
    pub item: Option<(Fpage, u64)>,
}

impl Reply {
    /// An answer that is nothing but a status.
    pub const fn status(status: Status) -> Reply {
        Reply { label: status as u32, words: [0; 8], item: None }
    }

    /// Success with some words.
    pub fn words(words: &[u64]) -> Reply {
        Reply { words: pad(words), ..Reply::status(Status::Ok) }
    }

    /// Success with a map item.
    pub fn item(words: &[u64], item: Fpage, hot_spot: u64) -> Reply {
        Reply { item: Some((item, hot_spot)), ..Reply::words(words) }
    }
}

impl From<Status> for Reply {
    fn from(status: Status) -> Reply {
        Reply::status(status)
    }
}

/// Puts words into registers; the others become 0.
pub(crate) fn pad(words: &[u64]) -> [u64; 8] {
    let mut all = [0; 8];
    all[..words.len()].copy_from_slice(words);
    all
}

/// Label of operation `operation` of an interface.
pub(crate) const fn label(interface: u32, operation: u32) -> u32 {
    interface << 16 | operation
}

/// Calls a server and checks that what comes back is an answer of success.
pub(crate) fn call(server: Uid, label: u32, words: &[u64]) -> Result<Message> {
    check(sys::ipc_call(server, label, pad(words)))
}

/// Like [`call`], and lets a map item into `window`.
pub(crate) fn call_item(server: Uid, label: u32, words: &[u64], window: Fpage) -> Result<Message> {
    check(sys::call_item(server, label, pad(words), window))
}

/// Like [`call`], but gives up after `patience_us` in either direction.
pub(crate) fn call_within(server: Uid, label: u32, words: &[u64], patience_us: u64) -> Result<Message> {
    let timeout = Timeout::from_us(patience_us);
    let ipc = Ipc {
        to: server,
        label,
        words: pad(words),
        from: server,
        send_timeout: timeout,
        receive_timeout: timeout,
        ..Ipc::NONE
    };
    check(ipc.run().and_then(|message| message.ok_or(Error::BadArgument)))
}

fn check(outcome: sys::Result<Message>) -> Result<Message> {
    let message = outcome.map_err(Failure::Kernel)?;
    // A server that asks or crashes in the middle of a call did not answer.
    if message.kind != Kind::Reply {
        return Err(Failure::Garbled);
    }
    match Status::from_label(message.label) {
        Some(Status::Ok) => Ok(message),
        Some(status) => Err(Failure::Refused(status)),
        None => Err(Failure::Garbled),
    }
}

/// A short name: 1 to 16 printable ASCII characters without spaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name([u8; Name::LEN_MAX]);

impl Name {
    /// Longest name, in bytes.
    pub const LEN_MAX: usize = 16;

    /// Checks a name.
    pub fn new(text: &str) -> Option<Name> {
        let fits =
            (1..=Name::LEN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| {
            let mut bytes = [0; Name::LEN_MAX];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            Name(bytes)
        })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap_or(Name::LEN_MAX);
        core::str::from_utf8(&self.0[..len]).unwrap_or_default()
    }

    pub(crate) fn from_words(words: [u64; 2]) -> Option<Name> {
        let mut bytes = [0; Name::LEN_MAX];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        let name = Name(bytes);
        // The check also refuses bytes behind the end, so that a name has one encoding only.
        Name::new(name.as_str()).filter(|checked| *checked == name)
    }

    pub(crate) fn words(&self) -> [u64; 2] {
        let (low, high) = self.0.split_at(8);
        [low, high].map(|half| u64::from_le_bytes(half.try_into().unwrap_or_default()))
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.pad(self.as_str())
    }
}

/// As many bytes as one message carries: the length in w0, the bytes in w1 … w7.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    len: usize,
    bytes: [u8; Text::LEN_MAX],
}

impl Text {
    /// Bytes per message.
    pub const LEN_MAX: usize = 56;

    /// Takes as many bytes as fit, and returns what is left.
    pub fn take(from: &[u8]) -> (Text, &[u8]) {
        let (now, later) = from.split_at(from.len().min(Text::LEN_MAX));
        let mut bytes = [0; Text::LEN_MAX];
        bytes[..now.len()].copy_from_slice(now);
        (Text { len: now.len(), bytes }, later)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The bytes in registers, with `first` in the upper part of w0, which the length leaves free.
    pub(crate) fn words(&self, first: u32) -> [u64; 8] {
        let mut words = [(first as u64) << 32 | self.len as u64; 8];
        for (word, bytes) in words[1..].iter_mut().zip(self.bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        words
    }

    /// The upper part of w0 and the text, if the length is honest.
    pub(crate) fn from_words(words: &[u64; 8]) -> Option<(u32, Text)> {
        let len = words[0] as u32 as usize;
        let mut bytes = [0; Text::LEN_MAX];
        for (word, bytes) in words[1..].iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        (len <= Text::LEN_MAX).then_some(((words[0] >> 32) as u32, Text { len, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_encoding() {
        let name = Name::new("console").unwrap();
        assert_eq!(Name::from_words(name.words()), Some(name));
        assert_eq!(Name::from_words([0, 0]), None);
        assert_eq!(Name::from_words([b'a' as u64, 1]), None, "bytes behind the end");
        assert_eq!(Name::from_words([0xff, 0]), None, "not ASCII");
        assert!(Name::new("exactly-16-bytes").is_some());
        assert!(Name::new("seventeen-bytes--").is_none());
    }

    #[test]
    fn texts_survive() {
        let (text, rest) = Text::take(&[7; 60]);
        assert_eq!((text.as_bytes().len(), rest.len()), (56, 4));
        let (first, back) = Text::from_words(&text.words(9)).unwrap();
        assert_eq!((first, back.as_bytes()), (9, text.as_bytes()));
        assert!(Text::from_words(&[57, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn statuses_are_no_kernel_labels() {
        for (status, text) in Status::ALL {
            assert_eq!(Status::from_label(status as u32), Some(status));
            assert!(!text.is_empty());
            assert!(status as u32 != sys::abi::call::RESUME && status as u32 != UNRESOLVABLE);
        }
    }
}
