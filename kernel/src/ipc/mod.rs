//! Ipc: everything that the fast path leaves to Rust, which is everything (rows P1, P8–P12, C6, C7).
//!
//! The modules, from the ground up. Each imports only modules that come before it in this table. A module never calls one above it: it
//! returns a value that says what is left to do, and its caller does that.
//!
//! | floor | modules |
//! |---|---|
//! | the operation in the registers, borders of clans, the result in the registers | [`request`], [`clan`], [`outcome`] |
//! | waiting, its timeouts, and the thread that runs next | [`wait`], [`known_route`], [`plain`] |
//! | parts of a message beside words, and the threads that work on them and wait for them | [`taking`], [`item`], [`block`] |
//! | servers of doors; transfers that fail | [`serve`], [`broken`] |
//! | messages that the kernel sends; calls through doors | [`fault`], [`door`] |
//! | waits that end without a message; messages of interrupts | [`end`], [`interrupt`] |
//! | the phases of an ipc; returns from foreign calls | [`receive`], [`carry`], [`send`], [`foreign`] |
//! | alerts along a chain of calls | [`alert`] |
//!
//! The property that ties this folder to the fast path (`entry/x86_64/fast_path/`): *if the fast path accepts, [`send`], or
//! [`carry`] for doors, would have done the same.* The guest tests run the same random program both ways and compare.

pub mod alert;
pub mod block;
mod broken;
pub mod carry;
pub mod clan;
mod door;
pub mod end;
pub mod fault;
pub mod foreign;
pub mod interrupt;
mod item;
pub mod known_route;
mod outcome;
mod plain;
pub mod receive;
mod request;
pub mod send;
pub mod serve;
pub mod taking;
mod wait;

use crate::global::known;
use crate::kernel::Upcalls;

/// Functions of ipc that `mem` calls through the kernel, since it may not import ipc.
pub const UPCALLS: Upcalls = Upcalls {
    unreferenced: |k, door| serve::unreferenced(known(k), door),
    line_lost: |k, task, line| interrupt::revoked(known(k), task, line),
};
