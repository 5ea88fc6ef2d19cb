//! System calls of Tern as Rust functions.
//!
//! Start with [`ipc_call`] and [`ipc_reply_wait`], what a client and a server do all day; [`Ipc`] is the general
//! form with partners, timeouts, map item and window. The rest follows the tables of [`abi::call`], one function
//! per operation: `thread_*`, `task_*`, `door_*`, [`flush`], [`clock`].
//!
//! The surprise: ipc changes every register but `rsp`, and the compiler keeps `rbx` and `rbp` for itself, so the
//! stubs save these two on the stack around the instruction. Words w8 … w10 of the short forms are sent as 0:
//! a register that carries no message would show the partner whatever the compiler had left there.

#![no_std]

mod control;
mod door;
pub mod extended;
pub mod foreign;
mod ipc;
mod message_asm;

pub use abi;
pub use abi::{Dope, Error, Fpage, Kind, Rights, StringPart, TaskId, ThreadState, Timeout, Uid};
pub use control::*;
pub use door::*;
pub use ipc::*;

/// Result of a system call.
pub type Result<T> = core::result::Result<T, Error>;

/// The error in a nonzero `rax`. A number that no kernel of this version returns becomes `BadArgument`.
#[cold]
fn error(code: u64) -> Error {
    Error::from_code(code as u32).unwrap_or(Error::BadArgument)
}
