//! The interfaces of Tern's servers. All marshalling of the user level is here, or made by quill when this crate is built.
//!
//! One module per interface. [`clock`] is written in an interface definition language; the others follow. Each of those has client functions, whose first argument is the server; `enum Request`,
//! what a server decodes from a message; and `enum Reply`, what it encodes. A decoder trusts nothing: a number
//! out of range or an unknown operation is a [`Status`], never a panic.
//!
//! Start with [`wire`], the common form of every message; then [`console`], the smallest complete interface.
//! The surprise: this crate lies *below* the runtime, because the runtime prints and exits through it.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod wire;

pub mod clock;
pub mod console;
pub mod file;
pub mod memory;
pub mod names;
pub mod process;
pub mod sigma0;

#[cfg(test)]
mod c_header;

pub use stub;
pub use wire::{Failure, Name, Reply, Result, Status, Text};
