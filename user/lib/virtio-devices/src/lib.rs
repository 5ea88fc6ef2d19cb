//! Virtio devices, none of which is believed. It works on any [`Registers`], [`Line`] and [`Pool`] of pages, so that the tests bring a device of their own, which lies.
//!
//! Queues and requests are understood by the crate `virtio-drivers`, which trusts a device in some places: it ends the program if a device says that its
//! doorbell is where it has none, and waits for ever for one that does not answer. So it never sees registers by its own way, but by [`pci`], which has
//! checked them; and nothing here calls those of its functions that wait. Reading order: [`pci`]; [`pool`], memory that a device may use; [`disk`], [`net`],
//! [`entropy`] and [`console`], the devices.
//!
//! A device that does what it must not is [`Broken`]: it may still have buffers, so its driver must end, and the bus server silences it.
//!
//! **Unsafe code** is in `pool`, which answers for addresses, and in the devices, where one has buffers while a request is under way.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod console;
pub mod disk;
pub mod entropy;
pub mod net;
pub mod pci;
pub mod pool;
#[cfg(test)]
mod tests;

pub use console::Console;
pub use disk::Disk;
pub use entropy::Entropy;
pub use net::Card;
pub use pci::{Pci, Registers, Width};
pub use pool::{Hardware, Place, Pool};

use core::fmt;
use virtio_drivers::Error;

/// A device on which nobody should rely any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

/// Reason why a device is not driven at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It does not say where its registers are, or says that they are where it has none.
    Place(&'static str),
    /// It does not start as a device must.
    Start(Error),
    /// It says that it has more sectors than any disk.
    Capacity(u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Place(what) => write!(formatter, "the device does not say where its {what} is"),
            Refusal::Start(error) => write!(formatter, "the device does not start: {error}"),
            Refusal::Capacity(sectors) => write!(formatter, "no disk has {sectors} sectors"),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Start(error)
    }
}

/// A device's interrupt line, and a clock.
pub trait Line {
    /// Time since some moment, in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Waits for its interrupt, or for so many nanoseconds. It can come too often, and for somebody else's reason.
    fn wait(&mut self, ns: u64) -> Result<(), Broken>;
}

/// Time that a device may take for a request.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Interrupts for one request, beyond which the device does nothing else.
const INTERRUPTS_MAX: u32 = 100_000;

/// Waits until the device is done with a request, as `look` finds: the token of what it is done with, if there is something.
fn wait_for(token: u16, line: &mut impl Line, mut look: impl FnMut() -> Option<u16>) -> Result<(), Broken> {
    let end = line.now_ns().saturating_add(PATIENCE_NS);
    for _ in 0..INTERRUPTS_MAX {
        match look() {
            Some(done) if done == token => return Ok(()),
            Some(_) => return Err(Broken),
            None => {}
        }
        let left = end.checked_sub(line.now_ns()).ok_or(Broken)?;
        line.wait(left)?;
    }
    Err(Broken)
}
