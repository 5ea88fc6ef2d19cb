//! The interfaces of Tern's servers, as programs use them.
//!
//! They are written in an interface definition language, in `idl/interfaces`; quill makes stubs of them when this crate is
//! built. Each module here takes those of one interface and adds what a type of the language cannot say: how much of a text goes with
//! one message, what a name is made of. Its functions have the server for their first argument.
//!
//! A server that does nothing else implements the trait `Server` and runs `serve`; a module hands its calls to `dispatch`, as
//! [`clock`]'s does. Most others serve several interfaces on
//! one thread, or answer later: they read a `Request` from each message, and reply with an `Answer` or a [`Status`].
//!
//! Start with [`wire`], what all of them share; then [`console`], the smallest.
//! The surprise: this crate lies *below* the runtime, because the runtime prints and exits through it.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod wire;

pub mod block;
pub mod bus;
pub mod calendar;
pub mod clock;
pub mod console;
pub mod copies;
pub mod desk;
pub mod entropy;
pub mod file;
pub mod memory;
pub mod names;
pub mod offers;
pub mod pipe;
pub mod process;
pub mod sigma0;

#[cfg(test)]
mod c_header;
#[cfg(test)]
mod messages;

pub use stub::{self, Reply, interface_of};
pub use wire::{Failure, Name, Result, Status, Text};

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/system.rs"));
}
