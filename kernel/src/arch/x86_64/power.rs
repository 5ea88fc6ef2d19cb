//! The end: leave the emulator with an exit code, or stand still on a real machine.

use super::instructions::{halt_forever, outb};
use super::serial;

/// Exit code of a system that ended as it should; QEMU's own is `2 * SUCCESS + 1`.
pub const SUCCESS: u8 = 0x10;

/// Exit code after a panic, or when the kernel refuses to start.
pub const FAILURE: u8 = 0x11;

/// QEMU's "isa-debug-exit" device.
pub const DEBUG_EXIT: u16 = 0xf4;

/// Port of Bochs, which ends when "Shutdown" is written there, one letter at a time.
const BOCHS_SHUTDOWN: u16 = 0x8900;

/// Ends the machine with `code`; a machine that cannot be ended halts.
pub fn exit(code: u8) -> ! {
    serial::drain();
    // SAFETY: both ports belong to emulators and mean nothing elsewhere.
    unsafe {
        outb(DEBUG_EXIT, code);
        for &letter in b"Shutdown" {
            outb(BOCHS_SHUTDOWN, letter);
        }
    }
    halt_forever()
}
