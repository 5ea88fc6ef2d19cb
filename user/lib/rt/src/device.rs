//! Device access: x86 I/O ports, and device memory.
//!
//! The functions are safe: the kernel checks every access against the ports that were mapped to the task, and an
//! access without permission is an exception. What a *device* then does is the driver's responsibility.
#![allow(unsafe_code)]

use crate::frames::{self, Block};
use api::bus::Kind;
use api::{Failure, Result, Status, memory};
use core::arch::asm;
use core::ptr::with_exposed_provenance_mut;
use sys::{Fpage, Uid};

/// Bytes that a processor keeps together, at least.
const CACHE_LINE: u64 = 64;

/// Memory of a device, or memory that one uses, through a window of this program. Nothing of the program's is behind it, so writing is safe
/// for the program, whatever the device makes of it.
#[derive(Debug)]
pub struct DeviceMemory {
    address: u64,
    len: usize,
    device_address: u64,
}

impl DeviceMemory {
    /// Asks home for device memory, which the program must be allowed to have.
    pub fn map(wanted: Fpage) -> Result<DeviceMemory> {
        let window = frames::reserve(wanted.log2()).ok_or(Failure::Refused(Status::Exhausted))?;
        memory::resource(crate::home(), wanted, window)?;
        Ok(DeviceMemory { address: window.base(), len: 1 << window.log2(), device_address: wanted.base() })
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
        Ok(DeviceMemory { address, len: len as usize, device_address: base })
    }

    /// Asks the bus server for `1 << log2` bytes of memory that a function may use which this thread has claimed: zeroed, and in one piece.
    /// The device may change it at any time, so it is copied from and to, and nothing refers to it.
    pub fn shared(bus: Uid, place: u32, log2: u32) -> Result<DeviceMemory> {
        let window = frames::reserve(log2).ok_or(Failure::Refused(Status::Exhausted))?;
        let device_address = api::bus::pages(bus, place, window)?;
        Ok(DeviceMemory { address: window.base(), len: 1 << window.log2(), device_address })
    }

    /// Lets devices use a block of this program's own, by its physical address. For good: nobody knows when they are done with it.
    pub fn of(block: Block) -> DeviceMemory {
        let (device_address, len) = (block.physical(), block.len() as usize);
        DeviceMemory { address: block.into_address(), len, device_address }
    }

    /// Address by which devices know its first byte: what a driver tells its device.
    pub fn device_address(&self) -> u64 {
        self.device_address
    }

    /// Its size.
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Brings what was written to a range out of the processor's cache, for a device that does not look there. The range is cut where this ends.
    pub fn write_back(&self, at: usize, len: usize) {
        let end = at.saturating_add(len).min(self.len);
        let (first, end) = (self.address + at as u64, self.address + end as u64);
        for line in (first / CACHE_LINE * CACHE_LINE..end).step_by(CACHE_LINE as usize) {
            // SAFETY: the line lies in the window, whose base is aligned; nothing but the cache changes.
            unsafe { asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: it orders accesses, and does nothing else.
        unsafe { asm!("mfence", options(nostack, preserves_flags)) };
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

    /// Reads eight bytes. Outside are all ones.
    pub fn read_u64(&self, at: usize) -> u64 {
        self.read(at).unwrap_or(u64::MAX)
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

    /// Writes eight bytes. What lies outside is not written.
    pub fn write_u64(&mut self, at: usize, value: u64) {
        self.write(at, value);
    }

    /// Copies from there, in units of eight bytes, as far as there are so many. Outside are all ones.
    pub fn copy_from(&self, at: usize, to: &mut [u8]) {
        let (words, rest) = to.as_chunks_mut::<8>();
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.read_u64(at + 8 * index).to_ne_bytes();
        }
        for (index, byte) in rest.iter_mut().enumerate() {
            *byte = self.read_u8(at + 8 * words.len() + index);
        }
    }

    /// Copies to there, in units of eight bytes, as far as there are so many. What lies outside is not written.
    pub fn copy_to(&mut self, at: usize, from: &[u8]) {
        let (words, rest) = from.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            self.write_u64(at + 8 * index, u64::from_ne_bytes(*word));
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
            // SAFETY: aligned, and inside of a window that was reserved for this value alone; the memory is the device's, or nobody else's.
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
