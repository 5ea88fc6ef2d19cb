//! A file of pages that live in its server's memory: a client gets them mapped, one at a time, and nothing is copied.
//!
//! A disk in memory, a file that a pager shows to its clients and one half of a larger file are all the same to those
//! who use them. The server keeps each page and can take it back at any time.

use crate::stubs::System::File::Client;
use crate::wire::{Result, Status};
use sys::{Fpage, Rights, Uid};

pub use crate::stubs::System::File::{Answer, NUMBER, Request};

/// Gets page `number` into `window`, with these rights.
pub fn page(server: Uid, number: u64, rights: Rights, window: Fpage) -> Result<()> {
    Client { server }.page(window, number, rights.0)?;
    Ok(())
}

/// The rights of a [`Request`]: not more than to read, write and execute.
pub fn rights(bits: u8) -> core::result::Result<Rights, Status> {
    if bits < 8 { Ok(Rights(bits)) } else { Err(Status::BadRequest) }
}
