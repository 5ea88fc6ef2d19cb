//! Entries: every way into the kernel, and the ways out. This is the roof: it calls down into everything, and nothing calls up into it.
//!
//! Each machine has its own: boot, the entries of system calls with the fast path, exceptions and interrupts, and the code with which a
//! thread leaves the kernel. What they need of the machine they take from [`crate::arch`], which is the floor.

mod x86_64;

pub use x86_64::*;
