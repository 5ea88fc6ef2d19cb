//! Wall clock: seconds since the start of 1970, UTC. Served by `rtc`.

use crate::wire::{self, Reply, Result, Status, interface::CLOCK};
use sys::{Message, Uid};

/// The name under which the server registers.
pub const NAME: &str = "clock";

const NOW: u32 = 0;

/// The time.
pub fn now(server: Uid) -> Result<u64> {
    wire::call(server, wire::label(CLOCK, NOW), &[]).map(|answer| answer.words[0])
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// The time.
    Now,
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        match wire::operation_of(message) {
            NOW => Ok(Request::Now),
            _ => Err(Status::BadRequest),
        }
    }
}

/// The answer to [`Request::Now`].
pub fn time(seconds: u64) -> Reply {
    Reply::words(&[seconds])
}
