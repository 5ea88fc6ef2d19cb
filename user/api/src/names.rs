//! Names: from a short name to the thread that serves it. Served by `root`, every program's exception handler.

use crate::wire::{self, Name, Reply, Result, Status, interface::NAMES};
use sys::{Message, Uid};

const REGISTER: u32 = 0;
const RESOLVE: u32 = 1;

/// Makes the calling thread the one behind a name. The name is free again when the task ends.
pub fn register(registry: Uid, name: &Name) -> Result<()> {
    wire::call(registry, wire::label(NAMES, REGISTER), &name.words()).map(drop)
}

/// Finds the thread behind a name. Waits while a boot server of that name starts (again).
pub fn resolve(registry: Uid, name: &Name) -> Result<Uid> {
    wire::call(registry, wire::label(NAMES, RESOLVE), &name.words()).map(|answer| Uid(answer.words[0]))
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Bind a name to the sender.
    Register(Name),
    /// Look a name up.
    Resolve(Name),
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        let name = Name::from_words([message.words[0], message.words[1]]).ok_or(Status::BadRequest)?;
        match wire::operation_of(message) {
            REGISTER => Ok(Request::Register(name)),
            RESOLVE => Ok(Request::Resolve(name)),
            _ => Err(Status::BadRequest),
        }
    }
}

/// The answer to [`Request::Resolve`].
pub fn resolved(server: Uid) -> Reply {
    Reply::words(&[server.0])
}
