//! The Tern microkernel.
//!
//! Read in this order: [`param`] and [`layout`] (every choice and every address), [`object`] (the objects),
//! [`syscall`] (every way in), [`ipc`] (the heart), [`mem`] (spaces), [`sched`] (the thread that runs next), [`kernel`] (where it all
//! hangs together), [`processor`] and [`arch`] (the machine by its objects, and by itself), and last `entry` (boot, fast path, exceptions).
//!
//! Between `entry` and `arch` is safe, hardware-free Rust over cells: unsafe code is an error but where an `allow` says otherwise. Such are
//! these two; [`processor`], [`object::thread`] and [`object::mapping`], which turn words of the machine into objects; [`global`];
//! [`start`]; [`mem::pool`], which turns frames into objects; six lines on objects that may lie in a frame; and the names in [`panic`].
//!
//! **Invariants.** No Rust frame survives a block or a preemption. Interrupts are off in the kernel, but for one
//! instruction between the steps of a long operation. Nothing allocates but the making of an object or a mapping, and that is
//! charged to a task. After the first task is loaded the kernel parses no file format.
#![cfg_attr(target_os = "none", no_std)]
#![deny(missing_docs, unsafe_code)]

#[allow(unsafe_code)]
pub mod arch;
pub mod args;
pub mod boot;
pub mod check;
pub mod checked;
#[cfg(target_os = "none")]
#[allow(unsafe_code)]
pub mod entry;
#[allow(unsafe_code)]
pub mod global;
pub mod inherit;
pub mod ipc;
pub mod kernel;
pub mod layout;
pub mod lend;
pub mod life;
pub mod mem;
pub mod object;
pub mod options;
#[allow(unsafe_code)]
pub mod panic;
pub mod param;
#[allow(unsafe_code)]
pub mod processor;
pub mod sched;
#[cfg(not(target_os = "none"))]
#[allow(unsafe_code)]
pub mod sim;
#[cfg(target_os = "none")]
#[allow(unsafe_code)]
pub mod start;
pub mod syscall;
pub mod trace;
pub mod util;

/// The parser of the machine's tables, and the choice of measures against leaks, are pure, so they are tested here too.
#[cfg(test)]
#[allow(unsafe_code)]
#[path = "arch/x86_64/acpi.rs"]
mod acpi;
#[cfg(test)]
#[path = "arch/x86_64/leaks.rs"]
mod leaks;
