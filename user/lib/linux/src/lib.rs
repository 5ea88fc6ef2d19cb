//! Linux's system calls without a machine: what processes are, and what their calls do.
//!
//! In reading order: [`errno`], how calls fail; [`frames`], pages of memory, each used by as many as have it; [`memory`], the address space of a process; [`executable`], what is mapped when a program begins;
//! [`pipe`], bytes between processes; [`terminal`],
//! between one that types and processes; [`decode`], calls as text.
//! The machine is behind traits, so all of it runs on the host.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod decode;
pub mod errno;
pub mod executable;
pub mod frames;
pub mod memory;
pub mod pipe;
pub mod terminal;
#[cfg(test)]
mod tests;
