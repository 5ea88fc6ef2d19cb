//! Device access: x86 I/O ports, and device memory.
//!
//! The functions are safe: the kernel checks every access against the ports that were mapped to the task, and an
//! access without permission is an exception. What a *device* then does is the driver's responsibility.
#![allow(unsafe_code)]

use crate::frames;
use api::bus::Kind;
use api::{Failure, Result, Status, memory};
use core::arch::asm;
use core::ptr::with_exposed_provenance_mut;
use sys::{Fpage, Uid};

/// Memory of a device, through a window of this program. Nothing but the device is behind it, so writing is safe for the
/// program, whatever the device makes of it.
#[derive(Debug)]
pub struct DeviceMemory {
    address: u64,
    len: usize,
    physical: u64,
}

impl DeviceMemory {
    /// Asks home for device memory, which the program must be allowed to have.
    pub fn map(wanted: Fpage) -> Result<DeviceMemory> {
        let window = frames::reserve(wanted.log2()).ok_or(Failure::Refused(Status::Exhausted))?;
        memory::resource(crate::home(), wanted, window)?;
        Ok(DeviceMemory { address: window.base(), len: 1 << window.log2(), physical: wanted.base() })
    }

    /// Asks the bus server for what is behind a base address register of a function that this thread has claimed.
    pub fn behind(bus: Uid, place: u32, number: u8) -> Result<DeviceMemory> {
        let (kind, base, len) = api::bus::bar(bus, place, number)?;
        if !matches!(kind, Kind::MEMORY | Kind::PREFETCHABLE) {
            return Err(Failure::Refused(Status::NotFound));
        }
        let log2 = len.ilog2().max(frames::FRAME_LOG2);
        let window = frames::reserve(log2).ok_or(Failure::Refused(Status::Exhausted))?;
        api::bus::part(bus, place, number, window)?;
        // A register that leads to less than a page leads somewhere into one.
        let address = window.base() + base % (1 << frames::FRAME_LOG2);
        Ok(DeviceMemory { address, len: len as usize, physical: base })
    }

    /// Asks the bus server for `1 << log2` bytes of memory that a function may use which this thread has claimed: zeroed, and in one piece.
    /// The device may change it at any time, so it is copied from and to, and nothing refers to it.
    pub fn shared(bus: Uid, place: u32, log2: u32) -> Result<DeviceMemory> {
        let window = frames::reserve(log2).ok_or(Failure::Refused(Status::Exhausted))?;
        let physical = api::bus::pages(bus, place, window)?;
        Ok(DeviceMemory { address: window.base(), len: 1 << window.log2(), physical })
    }

    /// Physical address of its first byte.
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Reads a byte. Outside are all ones, as where no device is.
    pub fn read_u8(&self, at: usize) -> u8 {
        self.read(at).unwrap_or(u8::MAX)
    }

    /// Reads two bytes. Outside are all ones.
    pub fn read_u16(&self, at: usize) -> u16 {
        self.read(at).unwrap_or(u16::MAX)
    }

    /// Reads four bytes. Outside are all ones.
    pub fn read_u32(&self, at: usize) -> u32 {
        self.read(at).unwrap_or(u32::MAX)
    }

    /// Writes a byte. What lies outside is not written.
    pub fn write_u8(&mut self, at: usize, value: u8) {
        self.write(at, value);
    }

    /// Writes two bytes. What lies outside is not written.
    pub fn write_u16(&mut self, at: usize, value: u16) {
        self.write(at, value);
    }

    /// Writes four bytes. What lies outside is not written.
    pub fn write_u32(&mut self, at: usize, value: u32) {
        self.write(at, value);
    }

    /// Copies from there, in units of eight bytes, as far as there are so many. Outside are all ones.
    pub fn copy_from(&self, at: usize, to: &mut [u8]) {
        let (words, rest) = to.as_chunks_mut::<8>();
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.read(at + 8 * index).unwrap_or(u64::MAX).to_ne_bytes();
        }
        for (index, byte) in rest.iter_mut().enumerate() {
            *byte = self.read_u8(at + 8 * words.len() + index);
        }
    }

    /// Copies to there, in units of eight bytes, as far as there are so many. What lies outside is not written.
    pub fn copy_to(&mut self, at: usize, from: &[u8]) {
        let (words, rest) = from.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            self.write(at + 8 * index, u64::from_ne_bytes(*word));
        }
        for (index, &byte) in rest.iter().enumerate() {
            self.write_u8(at + 8 * words.len() + index, byte);
        }
    }

    fn read<T: Copy>(&self, at: usize) -> Option<T> {
        let from = self.place::<T>(at)?;
        // SAFETY: as in `write`; all bits are a value of these types.
        Some(unsafe { from.read_volatile() })
    }

    fn write<T>(&mut self, at: usize, value: T) {
        if let Some(to) = self.place::<T>(at) {
            // SAFETY: aligned, and inside of a window that was reserved for this value alone; the memory is the device's.
            unsafe { to.write_volatile(value) };
        }
    }

    /// Where a value is. `None` if it is not aligned, or a part of it lies outside.
    fn place<T>(&self, at: usize) -> Option<*mut T> {
        let address = (self.address as usize).checked_add(at)?;
        let fits = at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.len);
        (fits && address.is_multiple_of(size_of::<T>())).then_some(with_exposed_provenance_mut(address))
    }
}

/// One I/O port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(pub u16);

impl Port {
    /// The port `offset` above this one.
    pub const fn at(self, offset: u16) -> Port {
        Port(self.0 + offset)
    }

    /// Reads a byte.
    pub fn read(self) -> u8 {
        let value;
        // SAFETY: the instruction changes no memory of this program; see the top of the file.
        unsafe {
            asm!("in al, dx", out("al") value, in("dx") self.0, options(nomem, nostack, preserves_flags))
        };
        value
    }

    /// Reads four bytes.
    pub fn read_u32(self) -> u32 {
        let value;
        // SAFETY: as in `read`.
        unsafe {
            asm!("in eax, dx", out("eax") value, in("dx") self.0, options(nomem, nostack, preserves_flags))
        };
        value
    }

    /// Writes a byte.
    pub fn write(self, value: u8) {
        // SAFETY: as in `read`.
        unsafe {
            asm!("out dx, al", in("al") value, in("dx") self.0, options(nomem, nostack, preserves_flags))
        };
    }

    /// Writes two bytes.
    pub fn write_u16(self, value: u16) {
        // SAFETY: as in `read`.
        unsafe {
            asm!("out dx, ax", in("ax") value, in("dx") self.0, options(nomem, nostack, preserves_flags))
        };
    }

    /// Writes four bytes.
    pub fn write_u32(self, value: u32) {
        // SAFETY: as in `read`.
        unsafe {
            asm!("out dx, eax", in("eax") value, in("dx") self.0, options(nomem, nostack, preserves_flags))
        };
    }
}
