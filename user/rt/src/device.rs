//! Device access: x86 I/O ports.
//!
//! The functions are safe: the kernel checks every access against the ports that were mapped to the task, and an
//! access without permission is an exception. What a *device* then does is the driver's responsibility.
#![allow(unsafe_code)]

use core::arch::asm;

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
