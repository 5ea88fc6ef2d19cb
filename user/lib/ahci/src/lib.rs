//! SATA disks behind an AHCI controller: one disk, one request at a time.
//!
//! It works on any [`Hardware`], so that the tests bring one of their own, and believes nothing that the device says: each wait has an end,
//! each outcome is judged, and the device is told of no memory but that which it was given. Reading order: [`registers`], [`command`],
//! [`identify`], [`disk`]. Sections are those of AHCI 1.3.1 and of ATA8-ACS.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod command;
pub mod disk;
pub mod identify;
pub mod registers;
#[cfg(test)]
mod tests;

pub use disk::{Disk, Trouble};
pub use identify::Geometry;

/// Bytes that one request moves, at most.
pub const BYTES_MAX: usize = 4096;

/// Memory that the device uses, in bytes: see [`command`].
pub const MEMORY_BYTES: usize = command::DATA + BYTES_MAX;

/// A controller, memory that it may use, and time.
pub trait Hardware {
    /// Reads the register at an offset. Where nothing is, all ones are read.
    fn read(&mut self, at: usize) -> u32;
    /// Writes it.
    fn write(&mut self, at: usize, value: u32);
    /// Copies from the memory that the device may use, which has [`MEMORY_BYTES`].
    fn load(&mut self, at: usize, to: &mut [u8]);
    /// Copies to it.
    fn store(&mut self, at: usize, from: &[u8]);
    /// Address by which the device knows that memory, a multiple of 1 KiB.
    fn device_address(&self) -> u64;
    /// Nanoseconds since some time.
    fn now_ns(&self) -> u64;
    /// Waits for an interrupt, which may come for any reason, but no longer than this.
    fn pause(&mut self, ns: u64);
}
