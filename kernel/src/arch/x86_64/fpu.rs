//! FPU and vector registers: switched on and off, saved and loaded. Above, `processor/fpu.rs` decides whose state they hold.
//!
//! While the FPU is off (CR0.TS) its first instruction traps. On some processors a load leaves the x87 error pointers as they are. There
//! they are first set to values that say nothing (decision 0053). Intel SDM volume 1, 13; volume 3, 2.5.

use super::cpu::features;
use super::instructions::{read_cr0, write_cr0};
use abi::PAGE_SIZE;
use core::arch::asm;
use core::cell::Cell;

const TASK_SWITCHED: u64 = 1 << 3;

/// Initial control words in the legacy part of the save area: all exceptions masked.
const FCW: u64 = 0x37f;
const MXCSR: u64 = 0x1f80;

/// A save area: a frame. It is large enough for all that the processor saves (see [`lazily_leaks`]).
pub type Saved = [Cell<u64>; 512];

/// A save area in its initial state, as large as any that the kernel turns on.
#[repr(C, align(64))]
struct Area([u64; 512]);

const INITIAL: Area = {
    let mut words = [0; 512];
    words[0] = FCW;
    words[3] = MXCSR;
    Area(words)
};

/// State that wipes the registers out.
static CLEAN: Area = INITIAL;

/// Whether this processor lets a program read the registers while the FPU is off for it.
pub fn lazily_leaks() -> bool {
    assert!(features().fpu_area_bytes as u64 <= PAGE_SIZE, "the save area is one frame");
    features().lazy_fpu_leaks
}

/// Puts a save area into its initial state.
pub fn init(area: &Saved) {
    area.iter().zip(INITIAL.0).for_each(|(word, initial)| word.set(initial));
}

/// Wipes the registers out: from now on they hold nobody's state.
pub fn wipe() {
    load_from((&raw const CLEAN).cast());
}

/// Switches the FPU on. The caller settles whose state it holds.
pub fn turn_on() {
    // SAFETY: turns the FPU on; the caller settles whose state it holds.
    unsafe { write_cr0(read_cr0() & !TASK_SWITCHED) };
}

/// Switches the FPU off: its next instruction traps.
pub fn turn_off() {
    // SAFETY: turns the FPU off.
    unsafe { write_cr0(read_cr0() | TASK_SWITCHED) };
}

/// Saves state that is not initial; XSAVEOPT also leaves out state that has not changed since it was loaded from here.
pub fn save(area: &Saved) {
    let area = area.as_ptr();
    let all = u32::MAX;
    // SAFETY: the area is a page of its own, large enough for what XCR0 turns on (asserted by `lazily_leaks`), and nobody
    // else writes to it.
    unsafe {
        if features().xsaveopt {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack));
        } else if features().xsave {
            asm!("xsave64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack));
        } else {
            asm!("fxsave64 [{}]", in(reg) area, options(nostack));
        }
    }
}

/// Loads what [`save`] or [`init`] left in an area.
pub fn load(area: &Saved) {
    load_from(area.as_ptr().cast());
}

fn load_from(area: *const u8) {
    if features().x87_pointers_leak {
        set_pointers();
    }
    let all = u32::MAX;
    // SAFETY: the area was written by `save` or `init` alone, or is `CLEAN`; its reserved bits are zero.
    unsafe {
        if features().xsave {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, readonly));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, readonly));
        }
    }
}

/// Sets the x87 error pointers, which a load leaves as they are on some processors, to values that say nothing of the last user: an
/// address in the kernel's program, and one of its constants. The registers are replaced right after.
#[cold]
fn set_pointers() {
    static ANYTHING: u32 = 0;
    // SAFETY: no exception is pending after the first, no register in use after the second, and the third reads a constant.
    unsafe {
        asm!("fnclex", "emms", "fild dword ptr [{}]", in(reg) &raw const ANYTHING, options(nostack, readonly))
    };
}
