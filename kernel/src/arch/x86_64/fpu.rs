//! FPU and vector registers: saved lazily, for the thread that used them last (row P17).
//!
//! CR0.TS is set unless the current thread is the owner and has used the FPU since it was last switched to
//! ([`special::FPU_LIVE`]). The first FPU instruction of any other thread traps to [`switch_on`], which saves the owner's
//! state and loads the thread's own. A thread that leaves the FPU alone between two ipcs stays on the fast path.
//! Intel SDM volume 1, 13; volume 3, 2.5.

use super::cpu::features;
use super::instructions::{read_cr0, write_cr0};
use super::kernel;
use crate::kernel::Kernel;
use crate::mem::pool::Frame;
use crate::object::ThreadRef;
use crate::object::thread::special;
use abi::PAGE_SIZE;
use core::arch::asm;

const TASK_SWITCHED: u64 = 1 << 3;

/// Initial control words in the legacy part of the save area: all exceptions masked.
const FCW: u64 = 0x37f;
const MXCSR: u64 = 0x1f80;

/// The current thread uses the FPU. False if its task cannot pay for the save area.
pub fn switch_on(k: &Kernel, current: ThreadRef) -> bool {
    if current.special.get() & special::FPU_LIVE != 0 || !ensure_area(k, current) {
        return false;
    }
    // SAFETY: turns the FPU on; who owns its registers is settled below.
    unsafe { write_cr0(read_cr0() & !TASK_SWITCHED) };
    match k.fpu_owner.replace(Some(current)) {
        Some(owner) if owner == current => {}
        owner => {
            if let Some(owner) = owner {
                save(area(&owner));
            }
            load(area(&current));
        }
    }
    current.set_special(special::FPU_LIVE, 0);
    true
}

/// The owner is switched away from: its state stays in the registers, and any use of them traps.
pub fn switch_off() {
    // SAFETY: turns the FPU off.
    unsafe { write_cr0(read_cr0() | TASK_SWITCHED) };
}

fn ensure_area(k: &Kernel, thread: ThreadRef) -> bool {
    if thread.fpu.get() != 0 {
        return true;
    }
    assert!(features().fpu_area_bytes as u64 <= PAGE_SIZE);
    let Some(frame) = thread.task().take_zeroed_frame(&k.pool) else { return false };
    let words = &k.pool.at::<crate::mem::pool::Words>(frame).0;
    words[0].set(FCW);
    words[3].set(MXCSR);
    thread.fpu.set(frame.0);
    true
}

fn area(thread: &ThreadRef) -> *mut u8 {
    kernel().pool.pointer(Frame(thread.fpu.get()))
}

fn save(area: *mut u8) {
    // SAFETY: the area is a page of its own, large enough for what XCR0 turns on (asserted when it was made).
    unsafe {
        if features().xsave {
            asm!("xsave64 [{}]", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack));
        } else {
            asm!("fxsave64 [{}]", in(reg) area, options(nostack));
        }
    }
}

fn load(area: *mut u8) {
    // SAFETY: the area was written by `save` or `ensure_area` alone; its reserved bits are zero.
    unsafe {
        if features().xsave {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack));
        }
    }
}
