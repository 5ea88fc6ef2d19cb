//! FPU and vector registers (row P17): saved lazily, for the thread that used them last, or eagerly, at each switch.
//!
//! Lazily, the FPU is off unless the current thread is the owner and has used the FPU since it was last switched to
//! ([`special::FPU_LIVE`]). The first FPU instruction of any other thread traps to [`switch_on`], which saves the owner's
//! state and loads the thread's own. A thread that leaves the FPU alone between two ipcs stays on the fast path.
//!
//! Some processors let a program read the owner's registers speculatively although the FPU is off. There they hold nobody's
//! state but the current thread's: a thread that has used the FPU keeps [`special::FPU_LIVE`] for good, its state is
//! loaded when it is switched to, and saved and wiped out when it is left. Threads that never use the FPU pay nothing
//! in either way. Intel SDM volume 1, 13; volume 3, 2.5; CVE-2018-3665.
//!
//! The machine saves and loads the registers ([`crate::arch::fpu`]).

use crate::arch::fpu;
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Words};
use crate::object::ThreadRef;
use crate::object::thread::special;
use crate::options::Fpu;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

static EAGER: AtomicBool = AtomicBool::new(false);

/// Chooses one of the two, once: by the processor, unless the boot options insist. Returns the name of the choice.
pub fn choose(wanted: Fpu) -> &'static str {
    let leaks = fpu::lazily_leaks();
    let eager = match wanted {
        Fpu::ByProcessor => leaks,
        Fpu::Lazy => false,
        Fpu::Eager => true,
    };
    EAGER.store(eager, Relaxed);
    if eager { "eagerly" } else { "lazily" }
}

fn eager() -> bool {
    EAGER.load(Relaxed)
}

/// Switches the FPU on for the current thread. False if it is on already, or if the task cannot pay for the save area.
pub fn switch_on(k: &Kernel, current: ThreadRef) -> bool {
    if current.special.get() & special::FPU_LIVE != 0 || !ensure_area(k, current) {
        return false;
    }
    fpu::turn_on();
    if eager() {
        fpu::load(area(k, current));
    } else {
        match k.fpu_owner.replace(Some(current)) {
            Some(owner) if owner == current => {}
            owner => {
                if let Some(owner) = owner {
                    fpu::save(area(k, owner));
                }
                fpu::load(area(k, current));
            }
        }
    }
    current.set_special(special::FPU_LIVE, 0);
    true
}

/// Leaves a thread with [`special::FPU_LIVE`]; `for_another`: the next thread has the flag too.
///
/// Lazily, the state stays in the registers, and any use of them traps; the thread loses the flag.
pub fn leave(k: &Kernel, from: ThreadRef, for_another: bool) {
    if !eager() {
        from.set_special(0, special::FPU_LIVE);
        return fpu::turn_off();
    }
    // A thread that has just ended has no area any more.
    if from.context.fpu.get() != 0 {
        fpu::save(area(k, from));
    }
    if !for_another {
        fpu::wipe();
        fpu::turn_off();
    }
}

/// Loads the state of a thread with [`special::FPU_LIVE`] that is switched to. Threads keep the flag until then only eagerly.
pub fn arrive(k: &Kernel, to: ThreadRef) {
    fpu::turn_on();
    fpu::load(area(k, to));
}

fn ensure_area(k: &Kernel, thread: ThreadRef) -> bool {
    if thread.context.fpu.get() != 0 {
        return true;
    }
    let Some(frame) = thread.task().take_zeroed_frame(&k.pool) else { return false };
    fpu::init(&k.pool.at::<Words>(frame).0);
    thread.context.fpu.set(frame.0);
    true
}

fn area(k: &Kernel, thread: ThreadRef) -> &'static fpu::Saved {
    &k.pool.at::<Words>(Frame(thread.context.fpu.get())).0
}
