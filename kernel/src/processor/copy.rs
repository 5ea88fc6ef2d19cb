//! Copies between tasks: from the memory of the current one to another's, or within it (row P3).
//!
//! Another task's memory has no address here but in a copy window, which the machine opens and closes
//! ([`crate::arch::copy`], with its rules).

use crate::arch::Table;
use crate::arch::copy::{self, Loaded, Target, View};
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

/// A view of a task's memory for the current one, which may be the same.
#[inline(always)]
pub fn view(k: &Kernel, current: TaskRef, other: TaskRef) -> View {
    View::new(loaded(k, current), (other != current).then(|| top(k, other)))
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
