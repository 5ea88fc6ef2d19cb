//! The border between the kernel and the machine: the same names in every `arch/<isa>`.
//!
//! `x86_64` is the real machine; `host` is a simulated one, on which the whole kernel above this line runs as
//! an ordinary library under unit tests, property tests and Miri.

#[cfg(target_os = "none")]
#[path = "x86_64/mod.rs"]
mod isa;
#[cfg(not(target_os = "none"))]
#[path = "host/mod.rs"]
mod isa;

pub use isa::*;

/// What ended a copy between two tasks early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyFault {
    /// Bytes copied before.
    pub done: u64,
    /// The address that faults, in its task's space.
    pub address: u64,
    /// Whether that is where the copy goes, and not where it comes from.
    pub at_target: bool,
}
