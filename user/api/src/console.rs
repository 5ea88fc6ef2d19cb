//! Console: bytes out, bytes in. Served by `console`; σ0 serves [`Request::Write`] until that runs.

use crate::wire::{self, Failure, Reply, Result, Status, Text, interface::CONSOLE};
use sys::{Message, Uid};

/// The name under which the server registers.
pub const NAME: &str = "console";

const WRITE: u32 = 0;
const READ: u32 = 1;
const DRAIN: u32 = 2;
const WATCH: u32 = 3;

/// The key that a watcher waits for: Ctrl-C. Without a watcher it is input like any other.
pub const INTERRUPT_KEY: u8 = 3;

/// Prints bytes. Returns when the server has taken all of them.
pub fn write(server: Uid, bytes: &[u8]) -> Result<()> {
    write_by(bytes, |words| wire::call(server, wire::label(CONSOLE, WRITE), words))
}

/// Like [`write()`], but gives up when the server takes longer than `patience_us` for any part.
pub fn write_within(server: Uid, bytes: &[u8], patience_us: u64) -> Result<()> {
    write_by(bytes, |words| wire::call_within(server, wire::label(CONSOLE, WRITE), words, patience_us))
}

fn write_by(mut bytes: &[u8], send: impl Fn(&[u64]) -> Result<Message>) -> Result<()> {
    while !bytes.is_empty() {
        let (text, rest) = Text::take(bytes);
        send(&text.words(!rest.is_empty() as u32))?;
        bytes = rest;
    }
    Ok(())
}

/// Waits for input, at most as much as `buffer` holds; returns how much came.
pub fn read(server: Uid, buffer: &mut [u8]) -> Result<usize> {
    let answer = wire::call(server, wire::label(CONSOLE, READ), &[buffer.len().min(Text::LEN_MAX) as u64])?;
    let (_, text) = Text::from_words(&answer.words).ok_or(Failure::Garbled)?;
    let bytes = text.as_bytes();
    buffer.get_mut(..bytes.len()).ok_or(Failure::Garbled)?.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// Waits until everything written has left the machine, at most `patience_us`.
pub fn drain(server: Uid, patience_us: u64) -> Result<()> {
    wire::call_within(server, wire::label(CONSOLE, DRAIN), &[], patience_us).map(drop)
}

/// Waits until somebody types [`INTERRUPT_KEY`], at most `patience_us`. There is one watcher at a time, the last.
pub fn watch(server: Uid, patience_us: u64) -> Result<()> {
    wire::call_within(server, wire::label(CONSOLE, WATCH), &[], patience_us).map(drop)
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Print.
    Write {
        /// What.
        text: Text,
        /// More of the same line follows at once: nobody else's output should come between.
        more: bool,
    },
    /// Wait for at most this much input.
    Read {
        /// In bytes, at least 1.
        len_max: usize,
    },
    /// Wait until all output is out.
    Drain,
    /// Wait for [`INTERRUPT_KEY`].
    Watch,
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        match wire::operation_of(message) {
            WRITE => {
                let (more, text) = Text::from_words(&message.words).ok_or(Status::BadRequest)?;
                Ok(Request::Write { text, more: more & 1 != 0 })
            }
            READ if message.words[0] > 0 => {
                Ok(Request::Read { len_max: message.words[0].min(Text::LEN_MAX as u64) as usize })
            }
            DRAIN => Ok(Request::Drain),
            WATCH => Ok(Request::Watch),
            _ => Err(Status::BadRequest),
        }
    }
}

/// The answer to [`Request::Read`]. The others are answered with a status.
pub fn input(text: &Text) -> Reply {
    Reply::words(&text.words(0))
}
