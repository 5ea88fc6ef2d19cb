//! Pipe: what one program prints is what another reads. Served by a thread of whoever joins the two; the interface is `idl/interfaces/pipe.idl`.
//!
//! A program finds the thread in its environment, under [`OUTPUT`] or [`INPUT`].

use crate::wire::Result;
use sys::{Fpage, Uid};

pub use stubs::Pipes::End;
pub use stubs::Pipes::Pipe::{Answer, Client, NUMBER, Request};

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/pipe.rs"));
}

/// Variable of a program whose output goes into a pipe: the uid of the pipe's thread, in hexadecimal digits.
pub const OUTPUT: &str = "TERN_OUTPUT";

/// Variable of a program whose input comes from a pipe, as [`OUTPUT`].
pub const INPUT: &str = "TERN_INPUT";

/// Status of a program that printed into a pipe from which nobody reads any more: that of a Unix program that is ended by SIGPIPE.
pub const STATUS_CLOSED: i32 = 141;

/// Log2 of the size of a pipe's memory in bytes.
pub const MEMORY_LOG2: u32 = 15;

/// Gets the memory into `window`, which has its size; returns what has arrived.
pub fn attach(server: Uid, window: Fpage, end: End) -> Result<Fpage> {
    Ok(Client { server }.attach(window, end)?)
}

/// Waits until the other end has done something, or is gone.
pub fn wait(server: Uid, end: End) -> Result<()> {
    Ok(Client { server }.wait(end)?)
}

/// Wakes an end.
pub fn wake(server: Uid, end: End) -> Result<()> {
    Ok(Client { server }.wake(end)?)
}

/// Says that nobody will use an end any more.
pub fn close(server: Uid, end: End) -> Result<()> {
    Ok(Client { server }.close(end)?)
}
