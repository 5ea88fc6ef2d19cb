//! The one kernel of a machine. Tests on the host have as many as they like, and each gets its own as an argument.

use crate::kernel::Kernel;

#[cfg(target_os = "none")]
pub use machine::{install, kernel, known};

#[cfg(target_os = "none")]
mod machine {
    use super::Kernel;
    use core::cell::UnsafeCell;
    use core::mem::MaybeUninit;

    /// Memory of the kernel. Aligned, so that the fields which share a cache line do not depend on what else is linked.
    #[repr(align(64))]
    struct Global(UnsafeCell<MaybeUninit<Kernel>>);

    // SAFETY: written once by `install` before any other use; the kernel runs on one CPU, with interrupts off.
    unsafe impl Sync for Global {}

    static KERNEL: Global = Global(UnsafeCell::new(MaybeUninit::uninit()));

    /// Puts the kernel in its place; once, by boot.
    pub fn install(kernel: Kernel) -> &'static Kernel {
        // SAFETY: boot calls this once, before anything calls `kernel`.
        unsafe { (*KERNEL.0.get()).write(kernel) }
    }

    /// The kernel's state; for entries, which are given nothing.
    #[inline]
    pub fn kernel() -> &'static Kernel {
        // SAFETY: every entry into the kernel happens after `install`.
        unsafe { (*KERNEL.0.get()).assume_init_ref() }
    }

    /// The one kernel. A function that is called through a pointer gets `k` as an address unknown to the compiler, which then passes it in a
    /// register through all calls below; this replaces it by the constant one.
    #[inline(always)]
    pub fn known(_: &Kernel) -> &'static Kernel {
        kernel()
    }
}

/// The kernel that was given, for functions that are called through a pointer. On a real machine it is a constant.
#[cfg(not(target_os = "none"))]
pub fn known(k: &Kernel) -> &Kernel {
    k
}
