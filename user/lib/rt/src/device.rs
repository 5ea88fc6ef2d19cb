//! Device access: x86 I/O ports, and device memory.
//!
//! The functions are safe: the kernel checks every access against the ports that were mapped to the task, and an
//! access without permission is an exception. What a *device* then does is the driver's responsibility.
#![allow(unsafe_code)]

use crate::frames;
use api::{Failure, Result, Status, memory};
use core::arch::asm;
use core::ptr::with_exposed_provenance_mut;
use sys::Fpage;

/// Memory of a device, through a window of this program. Nothing but the device is behind it, so writing is safe for the
/// program, whatever the device makes of it.
#[derive(Debug)]
pub struct DeviceMemory {
    window: Fpage,
    physical: u64,
}

impl DeviceMemory {
    /// Asks home for device memory, which the program must be allowed to have.
    pub fn map(wanted: Fpage) -> Result<DeviceMemory> {
        let window = frames::reserve(wanted.log2()).ok_or(Failure::Refused(Status::Exhausted))?;
        memory::resource(crate::home(), wanted, window)?;
        Ok(DeviceMemory { window, physical: wanted.base() })
    }

    /// Physical address of its first byte.
    pub fn physical(&self) -> u64 {
        self.physical
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

    fn write<T>(&mut self, at: usize, value: T) {
        let len = 1usize << self.window.log2();
        if at.is_multiple_of(size_of::<T>()) && at.checked_add(size_of::<T>()).is_some_and(|end| end <= len) {
            let to = with_exposed_provenance_mut::<T>(self.window.base() as usize + at);
            // SAFETY: aligned, and inside of a window that `map` reserved for this value alone; the memory is the device's.
            unsafe { to.write_volatile(value) };
        }
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
