//! Several messages by one call: `sendmmsg` and `recvmmsg`.
//!
//! Nothing else is served meanwhile, so a call ends when it has done much, with the messages that it has moved, as it does where one more cannot be moved.

use super::number;
use super::sockets::check_socket;
use crate::errno::Errno;
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::system::{Answer, Outcome, System};
use linux_raw_sys::net::{MSG_DONTWAIT, MSG_WAITALL};
use vfs::FileSystem;

/// Messages of one call, at most.
const MESSAGES_MAX: u64 = 1024;

/// Work of one call, at most but for its last message: a piece of a message is one, and so are [`PIECE_BYTES`]. It takes some milliseconds, and a thousand datagrams as long as they can be do not
/// come near it.
const WORK_MAX: u64 = 16_384;
/// See [`WORK_MAX`].
const PIECE_BYTES: u64 = 256;

/// Bytes of `struct mmsghdr`: a `struct msghdr`, and a length.
const ENTRY_BYTES: u64 = 64;

/// Offset of the length in it.
const ENTRY_LEN_AT: u64 = 56;

/// Flag of `recvmmsg`: only the first message is waited for.
const MSG_WAITFORONE: u32 = 0x10000;

/// Work of a message of so many pieces.
fn work_of(pieces: usize, outcome: &Answer) -> u64 {
    let bytes = match outcome {
        Ok(Outcome::Value(bytes)) => *bytes,
        _ => 0,
    };
    1 + pieces as u64 + bytes / PIECE_BYTES
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Sends messages until one has to wait. The first one waits.
    pub(crate) fn sys_sendmmsg(&mut self, tid: Tid, [fd, at, count, flags, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        check_socket(&open)?;
        let (mut sent, mut work) = (0, 0);
        while sent < u64::from(count as u32).min(MESSAGES_MAX) && work < WORK_MAX {
            let entry = at.wrapping_add(sent * ENTRY_BYTES);
            let flags = flags as u32 | if sent > 0 { MSG_DONTWAIT } else { 0 };
            let header = self.header(tid, entry);
            let pieces = header.as_ref().map_or(0, |header| header.pieces.len());
            let mut outcome = header.and_then(|header| self.send_message(tid, &open, &header, flags, 0));
            let done = core::mem::take(&mut self.thread(tid)?.done);
            if done > 0 && matches!(outcome, Ok(Outcome::Wait(..))) {
                // A part of a message counts as one, and the entry says how long it is.
                outcome = Ok(Outcome::Value(done));
            }
            work += work_of(pieces, &outcome);
            if let Some(stopped) = self.count_message(tid, entry, outcome, sent) {
                return stopped;
            }
            sent += 1;
        }
        number(Ok(sent))
    }

    /// Receives messages: all that are wanted, or by `MSG_WAITFORONE` those that there are, one at least.
    pub(crate) fn sys_recvmmsg(&mut self, tid: Tid, [fd, at, count, flags, timeout, _]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        check_socket(&open)?;
        let mut flags = flags as u32 & !MSG_WAITALL;
        let (mut received, mut work) = (self.thread(tid)?.done, 0);
        let deadline = match timeout {
            0 => None,
            at => Some(super::time::nanoseconds(self.words(tid, at)?)?),
        };
        while received < u64::from(count as u32).min(MESSAGES_MAX) && work < WORK_MAX {
            if received > 0 && (flags & MSG_WAITFORONE != 0 || deadline == Some(0)) {
                flags |= MSG_DONTWAIT;
            }
            let entry = at.wrapping_add(received * ENTRY_BYTES);
            let header = self.header(tid, entry);
            let pieces = header.as_ref().map_or(0, |header| header.pieces.len());
            let outcome = header.and_then(|header| self.receive_whole(tid, &open, &header, flags, 0));
            if let Ok(Outcome::Wait(on, until)) = outcome {
                self.thread(tid)?.done = received;
                return Ok(Outcome::Wait(on, until));
            }
            work += work_of(pieces, &outcome);
            if let Some(stopped) = self.count_message(tid, entry, outcome, received) {
                return stopped;
            }
            received += 1;
        }
        number(Ok(received))
    }

    /// Notes the length of one of several messages. An answer, if the call ends with it.
    fn count_message(&mut self, tid: Tid, entry: u64, outcome: Answer, before: u64) -> Option<Answer> {
        match outcome {
            Ok(Outcome::Value(len)) => {
                let len = (len as u32).to_le_bytes();
                let written = self.write(tid, entry.wrapping_add(ENTRY_LEN_AT), &len);
                written.err().map(|error: Errno| if before > 0 { number(Ok(before)) } else { Err(error) })
            }
            Err(_) if before > 0 => Some(number(Ok(before))),
            other => Some(other),
        }
    }
}
