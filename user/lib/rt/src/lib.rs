//! The runtime of Tern's programs, for `no_std` Rust with `alloc`.
//!
//! A program says `rt::entry!(main);` and has a heap, threads, locks, channels, time, random numbers, [`println!`] and the `log` macros. In reading
//! order: [`layout`] draws the address space, [`start`] is what runs before `main`, [`io`] is how bytes get out and
//! in, to the console or through [`stream`], [`server`] is the loop of a server, [`admission`] says who may call it, [`retry`] the patience of its clients, [`door`] is for objects that others call, [`module`] for servers
//! of which several can share a task, [`page`] and [`region`] for memory that one program lends to another, [`offer`] for pages that a call shows and does not copy, [`interface!`] makes stubs of interface files. The lower half of the list is for memory managers: [`frames`] owns
//! memory, [`image`] reads program files, [`pager`] puts both together; [`boot`] is σ0's.
//!
//! `unsafe` is allowed here, module by module: `entry`, [`start`], [`thread`], [`door`] and `panic` (assembly), [`heap`], [`sync`] (locks),
//! [`random`] (the processor's instructions), [`time`] (a page the kernel provides), [`frames`] and [`boot`] (memory that the kernel says is
//! ours), [`page`], [`region`] and [`offer`] (memory that others use, too), [`device`] (ports, and memory of devices). Servers and
//! programs have none.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(target_os = "none")]
mod entry;
pub mod layout;
pub mod start;

pub mod crash;
pub mod environment;
pub mod io;
mod logger;
mod panic;
pub mod stream;

pub mod admission;
pub mod heap;
pub mod random;
pub mod retry;
pub mod server;
pub mod sync;
pub mod thread;
pub mod time;

pub mod door;
mod lending;
pub mod module;
pub mod offer;
pub mod page;
pub mod region;

pub mod device;
pub mod frames;
pub mod image;
pub mod pager;

pub mod boot;

pub use api;
pub use interface::interface;
pub use log;
pub use start::{argument_text, arguments, exit, home, own_pager, set_hooks};
pub use sys;
