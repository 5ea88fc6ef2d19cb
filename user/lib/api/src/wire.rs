//! Parts that all interfaces have in common: statuses, failures, names, short texts.

use stub::{Blank, List, Reply};
use sys::Error;

/// Why a server says no: the label of its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Status {
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
    /// A name in front of a slash is none of a directory.
    NotDirectory = 9,
    /// A directory is no file.
    IsDirectory = 10,
    /// A directory has entries.
    NotEmpty = 11,
    /// Nobody may write there.
    ReadOnly = 12,
    /// There is no room left for files.
    Full = 13,
    /// A name is too long.
    NameTooLong = 14,
    /// A file would be too large.
    TooLarge = 15,
    /// A file has as many names as it can have.
    TooManyLinks = 16,
    /// Symbolic links lead to one another.
    Loop = 17,
    /// A device does not do its work.
    Io = 18,
    /// Stored bytes make no sense as a file system, or as a file of one.
    Damaged = 19,
    /// The server knows what is wanted, and does not do that.
    Unsupported = 20,
    /// The two places are in two file systems.
    OtherFileSystem = 21,
    /// The caller has as much open as its share is.
    TooManyOpen = 22,
}

impl Status {
    pub(crate) const ALL: [(Status, &'static str); 21] = [
        (Status::BadRequest, "the server does not understand the request"),
        (Status::Denied, "not allowed"),
        (Status::NotFound, "not found"),
        (Status::Exhausted, "out of memory"),
        (Status::Busy, "busy"),
        (Status::BadImage, "not a program for this machine"),
        (Status::Taken, "the name is taken"),
        (Status::NotDirectory, "not a directory"),
        (Status::IsDirectory, "is a directory"),
        (Status::NotEmpty, "the directory is not empty"),
        (Status::ReadOnly, "read-only"),
        (Status::Full, "no space left"),
        (Status::NameTooLong, "the name is too long"),
        (Status::TooLarge, "the file is too large"),
        (Status::TooManyLinks, "too many links"),
        (Status::Loop, "too many symbolic links"),
        (Status::Io, "input/output error"),
        (Status::Damaged, "what is stored there makes no sense"),
        (Status::Unsupported, "not supported"),
        (Status::OtherFileSystem, "in another file system"),
        (Status::TooManyOpen, "too many open files"),
    ];

    fn from_label(label: u32) -> Option<Status> {
        Status::ALL.iter().map(|&(status, _)| status).find(|&status| status as u32 == label)
    }

    /// One line for people.
    pub fn describe(self) -> &'static str {
        Status::ALL.iter().find(|(status, _)| *status == self).map_or("", |(_, text)| text)
    }
}

/// Fault of a message that is no request.
impl From<stub::Failure> for Status {
    fn from(_: stub::Failure) -> Status {
        Status::BadRequest
    }
}

impl From<Status> for Reply {
    fn from(status: Status) -> Reply {
        Reply::label(status as u32)
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
    /// The message that came back is no answer.
    Garbled,
}

impl From<stub::Failure> for Failure {
    /// A malformed request, or one of no method, is a bad request.
    fn from(failure: stub::Failure) -> Failure {
        match failure {
            stub::Failure::Kernel(error) => Failure::Kernel(error),
            stub::Failure::Refused(label) => {
                Failure::Refused(Status::from_label(label).unwrap_or(Status::BadRequest))
            }
            stub::Failure::TooLong => Failure::Refused(Status::BadRequest),
            stub::Failure::PagesShort => Failure::Refused(Status::Exhausted),
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

/// Result of a client function.
pub type Result<T> = core::result::Result<T, Failure>;

/// A short name: 1 to 16 printable ASCII characters without spaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name([u8; Name::LEN_MAX]);

impl Name {
    /// Longest name, in bytes.
    pub const LEN_MAX: usize = 16;

    /// Bytes that stand where a name should be and are none.
    pub const UNKNOWN: Name = Name(*b"?\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");

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

    /// The name of a message. It has one encoding only: there is nothing behind its end.
    pub fn from_bytes(bytes: [u8; Name::LEN_MAX]) -> Option<Name> {
        let name = Name(bytes);
        Name::new(name.as_str()).filter(|checked| *checked == name)
    }

    /// The name in a message.
    pub const fn bytes(&self) -> &[u8; Name::LEN_MAX] {
        &self.0
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

/// Bytes of one message, at most.
pub type Text = List<u8, TEXT_LEN_MAX>;

/// Takes as many bytes as fit, and returns what is left.
pub fn take(from: &[u8]) -> (Text, &[u8]) {
    let (now, later) = from.split_at(from.len().min(TEXT_LEN_MAX));
    (Text::new(now).unwrap_or(Text::BLANK), later)
}

/// Bytes of a [`Text`].
pub const TEXT_LEN_MAX: usize = crate::stubs::System::BYTES_MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_encoding() {
        let name = Name::new("console").unwrap();
        assert_eq!(Name::from_bytes(*name.bytes()), Some(name));
        assert_eq!(Name::from_bytes([0; 16]), None);
        assert_eq!(Name::from_bytes(*b"a\0\0\0\0\0\0\0a\0\0\0\0\0\0\0"), None, "bytes behind the end");
        assert_eq!(Name::from_bytes([0xff; 16]), None, "not ASCII");
        assert!(Name::new("exactly-16-bytes").is_some());
        assert!(Name::new("seventeen-bytes--").is_none());
    }

    #[test]
    fn as_much_is_taken_as_fits() {
        let (text, rest) = take(&[7; 60]);
        assert_eq!((&text[..], rest.len()), (&[7; 56][..], 4));
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
