//! Copies between tasks: from the memory of the current one to another's, or within it (row P3).
//!
//! Another task's memory has no address here but in a copy window, which the machine opens and closes
//! ([`crate::arch::copy`], with its rules).

use crate::arch::copy::{self, Loaded, Target};
use crate::arch::{CopyFault, Table};
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Words};
use crate::object::TaskRef;
use core::cell::Cell;

/// The top-level table of a task.
pub fn top(k: &Kernel, task: TaskRef) -> &'static Table {
    &k.pool.at::<Words>(Frame(task.top.get())).0
}

/// The space of the current thread's task.
#[inline(always)]
pub fn loaded(k: &Kernel, current: TaskRef) -> Loaded {
    Loaded { top: top(k, current), space: current.space.get() }
}

#[inline(always)]
fn target(k: &Kernel, current: TaskRef, (task, address): (TaskRef, u64)) -> Target {
    Target { top: (task != current).then(|| top(k, task)), address }
}

/// Copies from the current task to another one, or within the current one, at most [`copy::copy_at_once`] bytes, with interrupts let
/// in. An interrupt ends the copy, which then never returns; so the current thread has to be busy with a transfer.
pub fn copy_openly(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    copy::copy_openly(loaded(k, from.0), from.1, target(k, from.0, to), len)
}

/// Copies from the current task to another one, or within the current one.
#[inline(always)]
pub fn copy(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    if len == 0 { Ok(()) } else { copy_some(k, from, to, len) }
}

#[inline(never)]
fn copy_some(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    copy::copy(loaded(k, from.0), from.1, target(k, from.0, to), len)
}

/// Reads words of a task, the current one or another; the error is the address that faults. Words do not cross into
/// the next 512 GiB unless they are the current task's.
pub fn read_words<const N: usize>(
    k: &Kernel,
    current: TaskRef,
    from: (TaskRef, u64),
) -> Result<[u64; N], u64> {
    copy::read_words(loaded(k, current), target(k, current, from))
}

/// Writes words of a task, the current one or another; the error is the address that faults.
pub fn write_words<const N: usize>(
    k: &Kernel,
    current: TaskRef,
    to: (TaskRef, u64),
    words: [u64; N],
) -> Result<(), u64> {
    copy::write_words(loaded(k, current), target(k, current, to), words)
}

/// Fills words of the kernel's from memory of the current task; the error is the address that faults.
pub fn load(from: u64, words: &[Cell<u64>]) -> Result<(), u64> {
    copy::load(from, words)
}

/// Stores words of the kernel's in memory of the current task; the error is the address that faults.
pub fn store(to: u64, words: &[Cell<u64>]) -> Result<(), u64> {
    copy::store(to, words)
}

/// Closes the window of the current task, after a copy that ended in the middle.
pub fn close_window(k: &Kernel, current: TaskRef) {
    copy::close_window(loaded(k, current));
}
