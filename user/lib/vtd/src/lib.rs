//! IOMMUs of Intel's (VT-d): each function behind PCI that is given a [`Domain`] reaches the memory that is mapped there, at the addresses that it is
//! mapped to, and no other function reaches any.
//!
//! A unit walks tables in memory as a processor does, from the number of the function that asks, and keeps what it has found. So what is taken
//! away is taken out of the tables, then out of what the unit keeps, and only when the unit says that this is done can memory be used otherwise.
//!
//! It works on any [`Hardware`]. The tests have a model of a unit, which keeps whatever it may until it is told not to. Intel Virtualization
//! Technology for Directed I/O, revision 4.1: chapters 3 (translation), 6 (what is kept), 7 (faults) and 11 (registers).
//!
//! Reading order: [`unit`], then `tables` and `registers`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod registers;
mod tables;
#[cfg(test)]
mod tests;
pub mod unit;

pub use unit::{Domain, Fault, Trouble, Unit, is_on};

/// Bytes of a unit's registers that are used.
pub const REGISTERS_BYTES: usize = 4096;

/// Registers of a unit, pages for its tables, and time.
pub trait Hardware {
    /// Reads the register at an offset below [`REGISTERS_BYTES`]. Where nothing is, all ones are read.
    fn read(&mut self, at: usize) -> u32;
    /// Writes it.
    fn write(&mut self, at: usize, value: u32);
    /// A page of 4 KiB with nothing but zeroes, which nobody uses: its physical address.
    fn take_page(&mut self) -> Option<u64>;
    /// Takes a page back. The unit does not know it any more.
    fn give_back(&mut self, page: u64);
    /// Entry of a page, from 0 to 511.
    fn load(&mut self, page: u64, index: usize) -> u64;
    /// Writes an entry, out of the processor's cache.
    fn store(&mut self, page: u64, index: usize, entry: u64);
    /// Nanoseconds since some time.
    fn now_ns(&self) -> u64;
    /// Waits for a moment.
    fn pause(&mut self);
}
