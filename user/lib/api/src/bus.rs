//! Bus: devices behind PCI, and who drives them. Served by `bus`; its interface is `idl/interfaces/bus.idl`.
//!
//! A driver claims a function and keeps the lease. From then on only the thread that claimed can have its parts, by its place.

use crate::wire::Result;
use sys::{Fpage, Uid};

pub use stubs::Bus::Devices::{Answer, Client, NUMBER, Request};
pub use stubs::Bus::{Entry, Kind};

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/bus.rs"));
}

/// The name under which the server registers.
pub const NAME: &str = "bus";

/// Vendor or device of a claim that takes any.
pub const ANY: u16 = u16::MAX;

/// Bits of [`command`].
pub mod command {
    /// The function answers at ports.
    pub const PORTS: u16 = 1 << 0;
    /// The function answers in memory.
    pub const MEMORY: u16 = 1 << 1;
    /// The function may read and write memory itself.
    pub const MASTER: u16 = 1 << 2;
    /// The function does not interrupt.
    pub const NO_INTERRUPT: u16 = 1 << 10;
    /// All of them: the rest of the register is the bus server's.
    pub const ALL: u16 = PORTS | MEMORY | MASTER | NO_INTERRUPT;
}

/// Asks for the function at a place.
pub fn device(server: Uid, place: u32) -> Result<Entry> {
    Ok(Client { server }.device(place)?)
}

/// A base address register: kind, base, size in bytes.
pub fn bar(server: Uid, place: u32, number: u8) -> Result<(Kind, u64, u64)> {
    Ok(Client { server }.bar(place, number)?)
}

/// Four bytes of configuration space.
pub fn read(server: Uid, place: u32, offset: u8) -> Result<u32> {
    Ok(Client { server }.read(place, offset)?)
}

/// Claims a function of a class; its lease arrives in `window`, its place comes back.
pub fn claim(server: Uid, class: u8, vendor: u16, device: u16, window: Fpage) -> Result<u32> {
    let (_, place) = Client { server }.claim(window, class, vendor, device)?;
    Ok(place)
}

/// Says what a function may do: bits of [`command`](mod@command).
pub fn set_command(server: Uid, place: u32, bits: u16) -> Result<()> {
    Ok(Client { server }.command(place, bits)?)
}

/// Gets what is behind a base address register into `window`.
pub fn part(server: Uid, place: u32, number: u8, window: Fpage) -> Result<()> {
    Client { server }.part(window, place, number)?;
    Ok(())
}

/// Gets the interrupt line; returns its number.
pub fn interrupt(server: Uid, place: u32) -> Result<u8> {
    let line = device(server, place)?.line;
    Client { server }.interrupt(Fpage::interrupt(line), place)?;
    Ok(line)
}

/// Gets the interrupt line of a message, which the function sends from now on; returns the line's number.
pub fn message(server: Uid, place: u32, number: u16) -> Result<u8> {
    let line = Client { server }.message(Fpage::interrupts(), place, number)?;
    Ok((line.base() >> 12) as u8)
}

/// Gets memory that the device may use into a window of exactly that size; returns the address by which the device knows it.
pub fn pages(server: Uid, place: u32, window: Fpage) -> Result<u64> {
    let (device_address, _) = Client { server }.pages(window, place, window.log2() as u8)?;
    Ok(device_address)
}
