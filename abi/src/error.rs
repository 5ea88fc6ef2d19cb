//! Error codes, and the calls that may return each of them.

use crate::Call;

/// Code in `rax` of a system call that failed: a small positive number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Error {
    /// The uid or task names nothing that exists: stale, invented, or nil where it may not be.
    NoSuch = 1,
    /// The partner did not receive in time.
    SendTimeout = 2,
    /// No message came in time.
    ReceiveTimeout = 3,
    /// Somebody ended the ipc by `thread_control` while it waited to send.
    SendAborted = 4,
    /// Somebody ended the ipc by `thread_control` while it waited to receive.
    ReceiveAborted = 5,
    /// The partner ended while this thread waited for it.
    PartnerDied = 6,
    /// A number, flag or flexpage is out of range, or a reserved bit is set.
    BadArgument = 7,
    /// The partner accepts no map item, or not in this space.
    NoWindow = 8,
    /// The quota of the task that would have to pay is exhausted.
    NoMemory = 9,
    /// The caller has no authority over the target.
    Denied = 10,
    /// The target is not in a state that allows this.
    BadState = 11,
    /// Clans are nested too deeply, or a task has as many servers as it may.
    Limit = 12,
    /// The message does not fit into the receiver's block. w0: bytes of strings and direct words that were
    /// transferred before.
    Overflow = 13,
    /// Memory of the message could not be accessed: nobody resolved a page fault, or not in time. w0: as for
    /// [`Error::Overflow`].
    NoAccess = 14,
}

impl Error {
    /// Every error, by number from 1.
    pub const ALL: [(Error, &'static str); 14] = [
        (Error::NoSuch, "no such thread or task"),
        (Error::SendTimeout, "send timed out"),
        (Error::ReceiveTimeout, "receive timed out"),
        (Error::SendAborted, "send aborted"),
        (Error::ReceiveAborted, "receive aborted"),
        (Error::PartnerDied, "partner ended"),
        (Error::BadArgument, "bad argument"),
        (Error::NoWindow, "partner accepts no mapping"),
        (Error::NoMemory, "out of kernel memory"),
        (Error::Denied, "denied"),
        (Error::BadState, "wrong state"),
        (Error::Limit, "a limit is reached"),
        (Error::Overflow, "message too long"),
        (Error::NoAccess, "message not accessible"),
    ];

    /// The error with this number.
    pub fn from_code(code: u32) -> Option<Error> {
        Error::ALL.get((code as usize).wrapping_sub(1)).map(|&(error, _)| error)
    }

    /// One line for people.
    pub fn describe(self) -> &'static str {
        Error::ALL[self as usize - 1].1
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(self.describe())
    }
}

/// Errors that each call can return. The guest tests fail if one of these pairs was never seen, and if another one was.
pub const POSSIBLE: [(Call, &[Error]); 7] = [
    (
        Call::Ipc,
        &[
            Error::NoSuch,
            Error::SendTimeout,
            Error::ReceiveTimeout,
            Error::SendAborted,
            Error::ReceiveAborted,
            Error::PartnerDied,
            Error::BadArgument,
            Error::NoWindow,
            Error::Denied,
            Error::Overflow,
            Error::NoAccess,
        ],
    ),
    (Call::Flush, &[Error::BadArgument, Error::NoMemory]),
    (
        Call::ThreadControl,
        &[
            Error::NoSuch,
            Error::BadArgument,
            Error::NoMemory,
            Error::Denied,
            Error::BadState,
            Error::NoAccess,
        ],
    ),
    (
        Call::TaskControl,
        &[Error::NoSuch, Error::BadArgument, Error::NoMemory, Error::Denied, Error::BadState, Error::Limit],
    ),
    (Call::ThreadSwitch, &[Error::NoSuch]),
    (Call::Clock, &[]),
    // The short forms for doors belong to it.
    (
        Call::DoorControl,
        &[
            Error::NoSuch,
            Error::SendAborted,
            Error::ReceiveAborted,
            Error::PartnerDied,
            Error::BadArgument,
            Error::NoMemory,
            Error::NoWindow,
            Error::Denied,
            Error::BadState,
            Error::Limit,
            Error::Overflow,
            Error::NoAccess,
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions() {
        for (i, (error, _)) in Error::ALL.iter().enumerate() {
            assert_eq!(*error as usize, i + 1);
            assert_eq!(Error::from_code(i as u32 + 1), Some(*error));
        }
        assert_eq!(Error::from_code(0), None);
        assert_eq!(Error::from_code(Error::ALL.len() as u32 + 1), None);
    }
}
