//! Copies between addresses of the loaded space. A fault ends them (see [`end_by_fault`]), and so does an interrupt that they let in.
//!
//! The routines are in `copy.s`, which the entry code assembles, since its macros say when users' memory may be touched.
//!
//! Each returns how many bytes are left, and if there are any, the address that faulted and whether that was a write.

use crate::arch::frame::Frame;
use core::arch::asm;
use core::cell::Cell;

/// A routine that copies.
pub type Routine = unsafe extern "C" fn();

unsafe extern "C" {
    /// Copies `rcx` bytes from `rsi` to `rdi`.
    fn copy_closed();
    /// Copies as `copy_closed` does, but with interrupts let in.
    fn copy_openly();
    fn copy_words();
    fn copy_open_words();
    fn copy_open_end();
    fn copy_rest();
    fn copy_ended();
    fn load_two_pairs();
    fn load_first_pair();
    fn load_second_pair();
    fn pairs_end();
    fn store_one_pair();
    fn store_pair_words();
    fn store_pair_end();
}

/// The flag of RFLAGS with which interrupts are taken.
const INTERRUPTS: u64 = 1 << 9;

/// Routine that copies with interrupts off.
pub const CLOSED: Routine = copy_closed;

/// Routine that copies with interrupts let in: see [`interrupted`].
pub const OPEN: Routine = copy_openly;

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
/// See [`copy_bytes`].
#[inline(always)]
pub unsafe fn store_words(to: u64, words: &[u64]) -> (u64, u64, bool) {
    // SAFETY: the caller answers for the target.
    unsafe { copy_bytes(to, words.as_ptr() as u64, size_of_val(words) as u64, CLOSED) }
}

/// Writes words of a user from cells.
///
/// # Safety
/// See [`copy_bytes`].
pub unsafe fn store_cells(to: u64, words: &[Cell<u64>]) -> (u64, u64, bool) {
    // SAFETY: the caller answers for the target.
    unsafe { copy_bytes(to, words.as_ptr() as u64, size_of_val(words) as u64, CLOSED) }
}

/// Reads two words of a user, or of a window, at each of two addresses. The error is the address that faulted, and whether it was at the second.
#[inline(always)]
pub fn load_pairs(first: u64, second: u64) -> Result<([u64; 2], [u64; 2]), (u64, bool)> {
    let (a, b, c, d, faulted): (u64, u64, u64, u64, u32);
    // SAFETY: the routine only reads; its faults end it.
    unsafe {
        asm!(
            "call {routine}",
            routine = sym load_two_pairs,
            inout("rsi") first => c,
            inout("rdi") second => d,
            out("rax") a,
            out("rdx") b,
            out("ecx") faulted,
        );
    }
    if faulted == 0 { Ok(([a, b], [c, d])) } else { Err((b, faulted == 2)) }
}

/// Writes two words of a user, or of a window; the error is the address that faulted.
///
/// # Safety
/// See [`copy_bytes`].
#[inline(always)]
pub unsafe fn store_pair(to: u64, words: [u64; 2]) -> Result<(), u64> {
    let (fault, faulted): (u64, u32);
    // SAFETY: the caller answers for the target; faults end the routine.
    unsafe {
        asm!(
            "call {routine}",
            routine = sym store_one_pair,
            in("rdi") to,
            in("rax") words[0],
            inout("rdx") words[1] => fault,
            out("ecx") faulted,
        );
    }
    if faulted == 0 { Ok(()) } else { Err(fault) }
}

/// Ends a copy by a fault at `address`: `frame`, the kernel's, goes on at the copy's end. False if the fault did not come in a copy.
pub fn end_by_fault(frame: &Frame, address: u64) -> bool {
    if end_pair_by_fault(frame, address) {
        return true;
    }
    let at = |site: unsafe extern "C" fn()| frame.rip.get() == site as *const () as u64;
    if !(at(copy_words) || at(copy_open_words) || at(copy_rest)) {
        return false;
    }
    let bytes = if at(copy_rest) { frame.rcx.get() } else { bytes_left(frame) };
    frame.rflags.set(frame.rflags.get() & !INTERRUPTS);
    frame.rax.set(bytes);
    frame.rdx.set(address);
    frame.w[Frame::R8].set(frame.error.get());
    frame.rip.set(copy_ended as *const () as u64);
    true
}

/// Ends an access to pairs of words by a fault.
fn end_pair_by_fault(frame: &Frame, address: u64) -> bool {
    let ip = frame.rip.get();
    let within = |from: unsafe extern "C" fn(), to: unsafe extern "C" fn()| {
        (from as *const () as u64..to as *const () as u64).contains(&ip)
    };
    let (pair, end): (u64, unsafe extern "C" fn()) = match () {
        () if within(load_first_pair, load_second_pair) => (1, pairs_end),
        () if within(load_second_pair, pairs_end) => (2, pairs_end),
        () if within(store_pair_words, store_pair_end) => (1, store_pair_end),
        () => return false,
    };
    frame.rcx.set(pair);
    frame.rdx.set(address);
    frame.rip.set(end as *const () as u64);
    true
}

/// Bytes left of a copy that is at its words.
fn bytes_left(frame: &Frame) -> u64 {
    frame.rcx.get() * 8 + frame.rdx.get()
}

/// Bytes left of an [`OPEN`] copy that an interrupt of the kernel ends, while the window is still open. `None` if it came in no such copy.
pub fn interrupted(frame: &Frame) -> Option<u64> {
    let open = copy_open_words as *const () as u64..=copy_open_end as *const () as u64;
    open.contains(&frame.rip.get()).then(|| bytes_left(frame))
}
