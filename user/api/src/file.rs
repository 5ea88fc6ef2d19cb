//! A file of pages that live in its server's memory: a client gets them mapped, one at a time, and nothing is copied.
//!
//! A disk in memory, a file that a pager shows to its clients and one half of a larger file are all the same to those
//! who use them. The server keeps each page and can take it back at any time.

use crate::wire::{self, Failure, Reply, Result, Status, interface::FILE};
use sys::{Fpage, Message, Rights, Uid};

const PAGE: u32 = 0;

/// Gets page `number` into `window`, with these rights.
pub fn page(server: Uid, number: u64, rights: Rights, window: Fpage) -> Result<()> {
    let answer = wire::call_item(server, wire::label(FILE, PAGE), &[number, rights.0 as u64], window)?;
    match answer.item() {
        Some(_) if !answer.flags.item_short() => Ok(()),
        _ => Err(Failure::Refused(Status::Exhausted)),
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// A page of the file.
    Page {
        /// Which.
        number: u64,
        /// To do what with it; not more than to read, write and execute.
        rights: Rights,
    },
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        match (wire::operation_of(message), message.words[1]) {
            (PAGE, rights @ 0..8) => {
                Ok(Request::Page { number: message.words[0], rights: Rights(rights as u8) })
            }
            _ => Err(Status::BadRequest),
        }
    }
}

/// The answer to [`Request::Page`]: a page of the server's.
pub fn shown(page: Fpage) -> Reply {
    Reply::item(&[], page, 0)
}
