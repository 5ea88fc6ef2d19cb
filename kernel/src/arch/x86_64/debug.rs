//! The processor's debug registers: loaded for threads that have breakpoints, off for all others. Intel SDM volume 3, 19.2.

use super::instructions::{read_dr6, write_dr0, write_dr1, write_dr2, write_dr3, write_dr6, write_dr7};

/// Bits of DR7 that are always set.
const CONTROL_ONES: u64 = 1 << 10;
/// Bits of DR6 that are set while nothing happened.
pub const STATUS_ONES: u64 = 0xffff_0ff0;
/// Bits of DR6 that a debugger is told: the breakpoint, and single step.
const STATUS_TOLD: u64 = 0xf | 1 << 14;

/// Loads breakpoints of the current thread; `control`: which of them are on, and for what.
pub fn load_breakpoints([d0, d1, d2, d3]: [u64; 4], control: u64) {
    // SAFETY: the addresses lie in the user half and the control word has no other bits, as `object::breakpoint` promises. All
    // are off while the addresses change.
    unsafe {
        write_dr7(CONTROL_ONES);
        write_dr0(d0);
        write_dr1(d1);
        write_dr2(d2);
        write_dr3(d3);
        write_dr7(control | CONTROL_ONES);
    }
}

/// Turns breakpoints off: their thread is left, or the kernel works for it.
pub fn breakpoints_off() {
    // SAFETY: turns all breakpoints off.
    unsafe { write_dr7(CONTROL_ONES) };
}

/// Cause of the last debug exception. Clears it, since the processor does not.
pub fn take_status() -> u64 {
    let status = read_dr6();
    // SAFETY: the register's value after reset.
    unsafe { write_dr6(STATUS_ONES) };
    status & STATUS_TOLD
}
