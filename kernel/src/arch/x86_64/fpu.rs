//! FPU and vector registers (row P17): saved lazily, for the thread that used them last, or eagerly, at each switch.
//!
//! Lazily, CR0.TS is set unless the current thread is the owner and has used the FPU since it was last switched to
//! ([`special::FPU_LIVE`]). The first FPU instruction of any other thread traps to [`switch_on`], which saves the owner's
//! state and loads the thread's own. A thread that leaves the FPU alone between two ipcs stays on the fast path.
//!
//! Some processors let a program read the owner's registers speculatively although TS is set. There they hold nobody's
//! state but the current thread's: a thread that has used the FPU keeps [`special::FPU_LIVE`] for good, its state is
//! loaded when it is switched to, and saved and wiped out when it is left. Threads that never use the FPU pay nothing
//! in either way. Intel SDM volume 1, 13; volume 3, 2.5; CVE-2018-3665.
//!
//! On some processors a load leaves the x87 error pointers as they are. There they are set to what says nothing first (decision 0053).

use super::cpu::features;
use super::instructions::{read_cr0, write_cr0};
use super::kernel;
use crate::kernel::Kernel;
use crate::mem::pool::Frame;
use crate::object::ThreadRef;
use crate::object::thread::special;
use crate::options::Fpu;
use abi::PAGE_SIZE;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

const TASK_SWITCHED: u64 = 1 << 3;

/// Initial control words in the legacy part of the save area: all exceptions masked.
const FCW: u64 = 0x37f;
const MXCSR: u64 = 0x1f80;

/// A save area in its initial state, as large as any that the kernel turns on.
#[repr(C, align(64))]
struct Area([u64; 512]);

const INITIAL: Area = {
    let mut words = [0; 512];
    words[0] = FCW;
    words[3] = MXCSR;
    Area(words)
};

/// What wipes the registers out.
static CLEAN: Area = INITIAL;

static EAGER: AtomicBool = AtomicBool::new(false);

/// Chooses, once, by the processor unless the boot options insist. Returns how it is called.
pub fn choose(wanted: Fpu) -> &'static str {
    assert!(features().fpu_area_bytes as u64 <= PAGE_SIZE, "the save area is one frame");
    let eager = match wanted {
        Fpu::ByProcessor => features().lazy_fpu_leaks,
        Fpu::Lazy => false,
        Fpu::Eager => true,
    };
    EAGER.store(eager, Relaxed);
    if eager { "eagerly" } else { "lazily" }
}

fn eager() -> bool {
    EAGER.load(Relaxed)
}

/// The current thread uses the FPU. False if its task cannot pay for the save area.
pub fn switch_on(k: &Kernel, current: ThreadRef) -> bool {
    if current.special.get() & special::FPU_LIVE != 0 || !ensure_area(k, current) {
        return false;
    }
    turn_on();
    if eager() {
        load(area(&current));
    } else {
        match k.fpu_owner.replace(Some(current)) {
            Some(owner) if owner == current => {}
            owner => {
                if let Some(owner) = owner {
                    save(area(&owner));
                }
                load(area(&current));
            }
        }
    }
    current.set_special(special::FPU_LIVE, 0);
    true
}

/// A thread with [`special::FPU_LIVE`] is left, for one that has it too or not.
///
/// Lazily, the state stays in the registers, and any use of them traps; the thread has lost the flag.
pub fn leave(from: ThreadRef, for_another: bool) {
    if !eager() {
        from.set_special(0, special::FPU_LIVE);
        return turn_off();
    }
    // A thread that has just ended has no area any more.
    if from.fpu.get() != 0 {
        save(area(&from));
    }
    if !for_another {
        load((&raw const CLEAN).cast());
        turn_off();
    }
}

/// A thread with [`special::FPU_LIVE`] is switched to, which happens only eagerly.
pub fn arrive(to: ThreadRef) {
    turn_on();
    load(area(&to));
}

fn turn_on() {
    // SAFETY: turns the FPU on; whoever calls settles whose state is in it.
    unsafe { write_cr0(read_cr0() & !TASK_SWITCHED) };
}

fn turn_off() {
    // SAFETY: turns the FPU off.
    unsafe { write_cr0(read_cr0() | TASK_SWITCHED) };
}

fn ensure_area(k: &Kernel, thread: ThreadRef) -> bool {
    if thread.fpu.get() != 0 {
        return true;
    }
    let Some(frame) = thread.task().take_zeroed_frame(&k.pool) else { return false };
    let words = &k.pool.at::<crate::mem::pool::Words>(frame).0;
    for (word, initial) in words.iter().zip(INITIAL.0) {
        word.set(initial);
    }
    thread.fpu.set(frame.0);
    true
}

fn area(thread: &ThreadRef) -> *mut u8 {
    kernel().pool.pointer(Frame(thread.fpu.get()))
}

/// Saves what is not in its initial state; XSAVEOPT also leaves out what has not changed since it was loaded from here.
fn save(area: *mut u8) {
    let all = u32::MAX;
    // SAFETY: the area is a page of its own, large enough for what XCR0 turns on (asserted by `choose`), and nobody
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

fn load(area: *const u8) {
    if features().x87_pointers_leak {
        set_pointers();
    }
    let all = u32::MAX;
    // SAFETY: the area was written by `save` or `ensure_area` alone, or is `CLEAN`; its reserved bits are zero.
    unsafe {
        if features().xsave {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, readonly));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, readonly));
        }
    }
}

/// Sets the x87 error pointers, which a load leaves as they are on some processors, to what says nothing: this place in the kernel's
/// program, whoever was there before. The registers are replaced right after.
#[cold]
fn set_pointers() {
    static ANYTHING: u32 = 0;
    // SAFETY: no exception is pending after the first, no register in use after the second, and the third reads a constant.
    unsafe {
        asm!("fnclex", "emms", "fild dword ptr [{}]", in(reg) &raw const ANYTHING, options(nostack, readonly))
    };
}
