//! PCI functions: finds them, and finds out what they answer at.
//!
//! It works on any [`Configuration`], so that the tests bring one of their own, and believes nothing that it reads: a device may be
//! broken or hostile. PCI Local Bus Specification 3.0, chapter 6.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bar;
mod message;
#[cfg(test)]
mod tests;

pub use bar::{BARS, Bar, piece, share_a_page};
pub use message::{ENTRY_BYTES, Messages, entry, send_from_table, send_none, send_one};

use alloc::vec::Vec;
use core::fmt;

/// Bus (bits 8 to 15), device (3 to 7) and function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address(pub u16);

impl Address {
    /// A function of a device on a bus.
    pub const fn new(bus: u8, device: u8, function: u8) -> Address {
        Address((bus as u16) << 8 | (device as u16 & 31) << 3 | function as u16 & 7)
    }

    /// Bus, device and function.
    pub const fn parts(self) -> (u8, u8, u8) {
        ((self.0 >> 8) as u8, self.0 as u8 >> 3, self.0 as u8 & 7)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bus, device, function) = self.parts();
        write!(formatter, "{bus:02x}:{device:02x}.{function}")
    }
}

/// The configuration spaces of all functions, in units of four bytes. Where nothing is, all ones are read.
pub trait Configuration {
    /// Reads the four bytes at an offset, of which the lowest two bits do not count.
    fn read(&self, address: Address, offset: u8) -> u32;
    /// Writes them.
    fn write(&mut self, address: Address, offset: u8, value: u32);
}

/// Offsets in a configuration space.
pub mod offset {
    /// Device (upper half) and vendor.
    pub const NUMBERS: u8 = 0x00;
    /// Status (upper half) and command.
    pub const COMMAND: u8 = 0x04;
    /// Class code (upper three bytes) and revision.
    pub const CLASS: u8 = 0x08;
    /// Type of the header in byte 2.
    pub const HEADER: u8 = 0x0c;
    /// First base address register.
    pub const BAR: u8 = 0x10;
    /// Of a bridge: number of the bus behind it in byte 1, and of the last one there in byte 2.
    pub const BUSES: u8 = 0x18;
    /// First capability in byte 0.
    pub const CAPABILITIES: u8 = 0x34;
    /// Interrupt pin (byte 1) and line.
    pub const INTERRUPT: u8 = 0x3c;
    /// Capabilities begin here.
    pub const HEADER_END: u8 = 0x40;
}

/// Bits of the command register.
pub mod command {
    /// Answers at ports.
    pub const PORTS: u32 = 1 << 0;
    /// Answers in memory.
    pub const MEMORY: u32 = 1 << 1;
    /// Uses memory itself.
    pub const MASTER: u32 = 1 << 2;
    /// Does not interrupt.
    pub const NO_INTERRUPT: u32 = 1 << 10;
}

const HAS_CAPABILITIES: u32 = 1 << 20;
const MULTIPLE_FUNCTIONS: u32 = 1 << 23;

/// No list can be longer: each capability has four bytes at least, behind the header.
const CAPABILITIES_MAX: usize = 48;

/// Functions that are kept, at most.
pub const FUNCTIONS_MAX: usize = 256;

/// The number of no vendor.
const NOBODY: u16 = 0xffff;

/// Class of bridges, which stay as firmware has set them up.
pub const CLASS_BRIDGE: u8 = 6;

/// A function of a device.
#[derive(Clone, Debug)]
pub struct Function {
    /// Where it is.
    pub address: Address,
    /// Vendor.
    pub vendor: u16,
    /// The vendor's number of the device.
    pub device: u16,
    /// Class, subclass and programming interface, from the highest of three bytes down.
    pub class_code: u32,
    /// Interrupt line, as firmware noted it.
    pub line: u8,
    /// Interrupt pin from 1 on; 0 if it has none.
    pub pin: u8,
    /// Memory and ports that it answers at.
    pub bars: [Bar; BARS],
    /// Interrupts that it can send as messages.
    pub messages: Option<Messages>,
}

impl Function {
    /// Its class.
    pub fn class(&self) -> u8 {
        (self.class_code >> 16) as u8
    }
}

/// Finds all functions, bus by bus, and sizes what they answer at. None of them uses memory by itself or interrupts afterwards, but for
/// bridges, which use memory on behalf of others.
pub fn find(configuration: &mut impl Configuration) -> Vec<Function> {
    let mut functions = Vec::new();
    // A bridge may say that any bus is behind it, and several may say the same.
    let mut buses = Vec::from([0]);
    let mut next = 0;
    while let Some(&bus) = buses.get(next) {
        next += 1;
        for device in 0..32 {
            for function in 0..functions_of(configuration, bus, device) {
                let address = Address::new(bus, device, function);
                if let Some((behind, _)) = buses_behind(configuration, address)
                    && !buses.contains(&behind)
                {
                    buses.push(behind);
                }
                if functions.len() < FUNCTIONS_MAX {
                    functions.extend(look_at(configuration, address));
                }
            }
        }
    }
    functions
}

fn vendor_at(configuration: &impl Configuration, address: Address) -> Option<u16> {
    let vendor = configuration.read(address, offset::NUMBERS) as u16;
    (vendor != NOBODY && vendor != 0).then_some(vendor)
}

/// How many functions of a device are to be looked at.
fn functions_of(configuration: &impl Configuration, bus: u8, device: u8) -> u8 {
    let first = Address::new(bus, device, 0);
    match vendor_at(configuration, first) {
        None => 0,
        Some(_) if configuration.read(first, offset::HEADER) & MULTIPLE_FUNCTIONS != 0 => 8,
        Some(_) => 1,
    }
}

fn header_type(configuration: &impl Configuration, address: Address) -> u8 {
    (configuration.read(address, offset::HEADER) >> 16) as u8 & 0x7f
}

/// Numbers of the bus behind a function, if it is a bridge to one, and of the last one there.
pub fn buses_behind(configuration: &impl Configuration, address: Address) -> Option<(u8, u8)> {
    const BRIDGE: u8 = 1;
    vendor_at(configuration, address)?;
    let [_, behind, last, _] = configuration.read(address, offset::BUSES).to_le_bytes();
    (header_type(configuration, address) == BRIDGE && behind != 0).then_some((behind, last))
}

fn look_at(configuration: &mut impl Configuration, address: Address) -> Option<Function> {
    let vendor = vendor_at(configuration, address)?;
    let device = (configuration.read(address, offset::NUMBERS) >> 16) as u16;
    let class_code = configuration.read(address, offset::CLASS) >> 8;
    let interrupt = configuration.read(address, offset::INTERRUPT);
    let is_plain = header_type(configuration, address) == 0 && class_code >> 16 != CLASS_BRIDGE as u32;
    let bars = if is_plain { bar::sized(configuration, address) } else { [Bar::Nothing; BARS] };
    let messages = if is_plain { Messages::of(configuration, address, &bars) } else { None };
    let (line, pin) = (interrupt as u8, (interrupt >> 8) as u8);
    let function = Function { address, vendor, device, class_code, line, pin, bars, messages };
    // Firmware, or a bus server before this one, may have had it send some, in whichever way.
    send_none(configuration, address);
    Some(function)
}

/// Offsets and identifiers of a function's capabilities. A list that goes in a circle ends.
fn capabilities(configuration: &impl Configuration, address: Address) -> impl Iterator<Item = (u8, u8)> {
    let has_list = configuration.read(address, offset::COMMAND) & HAS_CAPABILITIES != 0;
    let mut at = if has_list { configuration.read(address, offset::CAPABILITIES) as u8 & !3 } else { 0 };
    core::iter::from_fn(move || {
        if at < offset::HEADER_END {
            return None;
        }
        let head = configuration.read(address, at);
        let found = (at, head as u8);
        at = (head >> 8) as u8 & !3;
        Some(found)
    })
    .take(CAPABILITIES_MAX)
}
