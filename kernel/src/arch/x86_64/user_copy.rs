//! Copies between addresses of the loaded space, ended by a fault (see [`copy_fault`](super::fast_path::copy_fault)) or, if they
//! let them in, by an interrupt.
//!
//! Each returns how many bytes are left, and if there are any, the address that faulted and whether that was a write.

use super::{copy, fast_path};
use crate::kernel::Kernel;
use crate::object::thread::Frame;
use core::arch::asm;
use core::cell::Cell;

/// How to copy.
pub type Routine = unsafe extern "C" fn();

/// With interrupts off.
pub const CLOSED: Routine = fast_path::copy_bytes;

/// With interrupts let in: see [`interrupted`].
pub const OPEN: Routine = fast_path::copy_openly;

/// Whether a copy can let interrupts in.
pub const COPIES_OPENLY: bool = true;

/// Copies bytes.
///
/// # Safety
/// Kernel memory among the target must be the caller's to write. User memory and windows may be anything.
#[inline(always)]
pub unsafe fn copy_bytes(to: u64, from: u64, len: u64, routine: Routine) -> (u64, u64, bool) {
    let (left, address, error): (u64, u64, u64);
    // SAFETY: the routine writes to the target only; its faults end it.
    unsafe {
        asm!(
            "call {routine}",
            routine = in(reg) routine,
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rcx") len => _,
            out("rax") left,
            out("rdx") address,
            out("r8") error,
        );
    }
    (left, address, error & 2 != 0)
}

/// Reads words of a user.
#[inline(always)]
pub fn load_words(words: &[Cell<u64>], from: u64) -> (u64, u64, bool) {
    // SAFETY: the target is `words`.
    unsafe { copy_bytes(words.as_ptr() as u64, from, size_of_val(words) as u64, CLOSED) }
}

/// Writes words of a user.
///
/// # Safety
/// As for [`copy_bytes`].
#[inline(always)]
pub unsafe fn store_words(to: u64, words: &[u64]) -> (u64, u64, bool) {
    // SAFETY: the caller answers for the target.
    unsafe { copy_bytes(to, words.as_ptr() as u64, size_of_val(words) as u64, CLOSED) }
}

/// An interrupt of the kernel: if it came in the middle of an [`OPEN`] copy, how many bytes are left. The window is closed.
pub fn interrupted(k: &Kernel, frame: &Frame) -> Option<u64> {
    let left = fast_path::interrupted_copy(frame)?;
    copy::close_window(k, super::current().task());
    Some(left)
}
