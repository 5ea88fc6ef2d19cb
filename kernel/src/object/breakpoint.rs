//! Breakpoints of a thread: the contents of the processor's four debug registers while it runs (row P17).
//!
//! A debugger sets them by `thread_control`; they are loaded when the thread is switched to and switched off when it is left,
//! so that no other thread meets them. Invariant: every address that is on lies in the user half, with all of its
//! length, and the control word has no bit but those of the four breakpoints. So neither the kernel's own accesses nor
//! the debug registers themselves can be made to trap. Intel SDM volume 3, 19.2.

use abi::Error;
use abi::call::{BREAK_ACCESS, BREAK_EXECUTE, BREAK_OFF, BREAK_WRITE};
use core::cell::Cell;

/// Number of breakpoints that a processor has.
pub const COUNT: usize = 4;

/// A thread's breakpoints, in the form of the debug registers.
pub struct Breakpoints {
    /// DR0 to DR3.
    pub addresses: [Cell<u64>; COUNT],
    /// DR7; 0 if all are off.
    pub control: Cell<u64>,
}

impl Breakpoints {
    /// Sets or clears one breakpoint.
    pub fn set(&self, number: u64, address: u64, event: u64, len: u64) -> Result<(), Error> {
        if number >= COUNT as u64 {
            return Err(Error::BadArgument);
        }
        let bits = control_bits(address, event, len)?;
        let (enable, shift) = (2 * number, 16 + 4 * number);
        let others = self.control.get() & !(3 << enable | 0xf << shift);
        let on = if event == BREAK_OFF { 0 } else { 1 << enable };
        self.control.set(others | on | bits << shift);
        self.addresses[number as usize].set(if event == BREAK_OFF { 0 } else { address });
        Ok(())
    }

    /// Whether any breakpoint is on.
    pub fn any(&self) -> bool {
        self.control.get() != 0
    }

    /// Asserts the invariant.
    pub fn check(&self) {
        for (number, address) in self.addresses.iter().enumerate() {
            assert!(address.get() < abi::USER_END, "a breakpoint on the kernel");
            let enabled = self.control.get() >> (2 * number) & 3;
            assert!(enabled <= 1, "a global breakpoint");
        }
        assert_eq!(self.control.get() & 0xff00, 0, "general detect");
    }
}

/// The condition and length of a breakpoint, as in DR7.
fn control_bits(address: u64, event: u64, len: u64) -> Result<u64, Error> {
    let condition = match event {
        BREAK_OFF => return Ok(0),
        BREAK_EXECUTE if len == 1 => 0,
        BREAK_WRITE => 1,
        BREAK_ACCESS => 3,
        _ => return Err(Error::BadArgument),
    };
    let length = match len {
        1 => 0,
        2 => 1,
        4 => 3,
        8 => 2,
        _ => return Err(Error::BadArgument),
    };
    if address >= abi::USER_END || !address.is_multiple_of(len) {
        return Err(Error::BadArgument);
    }
    Ok(length << 2 | condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_arms_the_kernel() {
        let breakpoints = Breakpoints { addresses: Default::default(), control: Cell::new(0) };
        let places = [
            0,
            8,
            0x1001,
            abi::USER_END - 8,
            abi::USER_END,
            0x8000_0000_0000,
            0xffff_ffff_8000_0000,
            u64::MAX,
        ];
        for address in places {
            for event in 0..8 {
                for len in 0..10 {
                    for number in [0, 1, 2, 3, 4, u64::MAX] {
                        let result = breakpoints.set(number, address, event, len);
                        let fits =
                            address < abi::USER_END && [1, 2, 4, 8].contains(&len) && address % len == 0;
                        let known = event == BREAK_OFF
                            || fits && (event == BREAK_EXECUTE && len == 1 || [2, 3].contains(&event));
                        assert_eq!(result.is_ok(), number < 4 && known, "{number} {address:x} {event} {len}");
                        breakpoints.check();
                    }
                }
            }
        }
    }

    #[test]
    fn the_form_is_the_processors() {
        let breakpoints = Breakpoints { addresses: Default::default(), control: Cell::new(0) };
        breakpoints.set(1, 0x1000, BREAK_WRITE, 8).unwrap();
        breakpoints.set(3, 0x2003, BREAK_EXECUTE, 1).unwrap();
        assert_eq!(breakpoints.control.get(), 0b1001 << 20 | 1 << 6 | 1 << 2);
        breakpoints.set(1, 0, BREAK_OFF, 0).unwrap();
        breakpoints.set(3, 0, BREAK_OFF, 0).unwrap();
        assert!(!breakpoints.any());
    }
}
