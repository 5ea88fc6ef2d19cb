//! Copies between tasks, through the window (row P3).
//!
//! The window is a slot of each task's top-level table in the kernel half. While a message is copied it holds the
//! receiver's own top-level entry, without the user bit: so the receiver's tables are walked by the processor, a page
//! that the receiver may not write faults, and its accessed and dirty bits are set where they belong.
//!
//! **Window rules.** (1) The slot is empty unless a copy is under way; copies end before the kernel does anything else; an interrupt
//! that comes in the middle of one ends it.
//! (2) What the processor may have cached of a window, it can no longer use once the slot is empty: with tags a window is
//! open only while a tag of its own is loaded, which each such load empties; without tags the space is loaded anew when the
//! slot is empty, or left at once. (3) Within a task no window is used.
//!
//! INVLPG on the pages that were copied to would not do: the processor walks ahead, so that any page of the 512 GiB in the
//! window may be cached, used or not. `arch/host/tlb.rs` shows that, and the model tests hold the rules against it.
//!
//! The paper's window holds two directory entries; here one is enough, since a copy that crosses into the next 512 GiB is
//! done in two steps.

use super::instructions::write_cr3;
use super::user_copy::{CLOSED, OPEN, Routine, copy_bytes, load_words, store_words};
use super::{pte, space};
use crate::arch::CopyFault;
use crate::kernel::Kernel;
use crate::layout::{WINDOW, WINDOW_SIZE};
use crate::mem::pool::{Frame, Words};
use crate::object::TaskRef;
use abi::USER_END;
use core::cell::Cell;

const USER: u64 = 1 << 2;
const SLOT: usize = (WINDOW >> 39 & 511) as usize;

fn top_entry(k: &Kernel, task: TaskRef, index: usize) -> &'static Cell<u64> {
    &k.pool.at::<Words>(Frame(task.top.get())).0[index]
}

/// Where a task keeps the top-level entry of its window.
pub fn window_slot(k: &Kernel, task: TaskRef) -> u64 {
    core::ptr::from_ref(top_entry(k, task, SLOT)) as u64
}

/// The top-level entry that shows `len` bytes at `address` of a task in a window, and where. `None` if that takes two
/// entries, or there is no table yet.
pub fn window_view(k: &Kernel, task: TaskRef, address: u64, len: u64) -> Option<(u64, u64)> {
    let entry = top_entry(k, task, (address >> 39) as usize).get();
    let fits = address % WINDOW_SIZE + len <= WINDOW_SIZE;
    (fits && pte::is_present(entry)).then_some((entry & !USER, WINDOW + address % WINDOW_SIZE))
}

/// Empties the window of the current task, and makes the processor forget what it showed.
pub fn close_window(k: &Kernel, current: TaskRef) {
    close(top_entry(k, current, SLOT), current);
}

fn close(slot: &Cell<u64>, current: TaskRef) {
    slot.set(0);
    // SAFETY: the space that is loaded, under its own tag; without tags the load forgets everything.
    unsafe { write_cr3(current.space.get()) };
}

/// A window of the current space on another task, or nothing if that is the same task.
struct Window {
    slot: Option<&'static Cell<u64>>,
    address: u64,
}

impl Window {
    fn open(k: &Kernel, current: TaskRef, task: TaskRef, address: u64) -> Window {
        debug_assert!(address < USER_END, "a window on the kernel, at {address:#x}");
        if current == task {
            return Window { slot: None, address };
        }
        let slot = top_entry(k, current, SLOT);
        if space::tagged() {
            // SAFETY: the space that is loaded, under the tag of windows.
            unsafe { write_cr3(space::with_window(current)) };
        }
        slot.set(top_entry(k, task, (address >> 39) as usize).get() & !USER);
        Window { slot: Some(slot), address: WINDOW + address % WINDOW_SIZE }
    }

    fn close(self, current: TaskRef) {
        if let Some(slot) = self.slot {
            close(slot, current);
        }
    }
}

/// How many of `len` bytes [`copy`] takes at once: what one window shows.
pub fn copy_at_once(address: u64, len: u64) -> u64 {
    len.min(WINDOW_SIZE - address % WINDOW_SIZE)
}

/// Copies from the current task to another one, or within the current one, at most [`copy_at_once`] bytes, with interrupts let in.
/// The current thread is busy with a transfer: one that comes ends the copy without a return.
pub fn copy_openly(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    copy_once(k, from, to, len, OPEN).map(drop)
}

/// Copies from the current task to another one, or within the current one.
#[inline(never)]
pub fn copy(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    let mut done = 0;
    while done < len {
        let (source, target) = ((from.0, from.1 + done), (to.0, to.1 + done));
        let result = copy_once(k, source, target, len - done, CLOSED);
        done += result.map_err(|fault| CopyFault { done: done + fault.done, ..fault })?;
    }
    Ok(())
}

/// Returns how many bytes were copied: [`copy_at_once`].
#[inline(always)]
fn copy_once(
    k: &Kernel,
    from: (TaskRef, u64),
    to: (TaskRef, u64),
    len: u64,
    routine: Routine,
) -> Result<u64, CopyFault> {
    let now = copy_at_once(to.1, len);
    let window = Window::open(k, from.0, to.0, to.1);
    let (shown, is_window) = (window.address, window.slot.is_some());
    // SAFETY: the target is a window or the task's own memory: the caller checked that it is in the user half.
    let (left, fault, is_write) = unsafe { copy_bytes(shown, from.1, now, routine) };
    window.close(from.0);
    if left == 0 {
        return Ok(now);
    }
    let at_target = if is_window { fault >= WINDOW } else { is_write };
    let address = if at_target { to.1 + fault.wrapping_sub(shown) } else { fault };
    Err(CopyFault { done: now - left, address, at_target })
}

/// Reads words of a task, the current one or another; the error is the address that faults. Words do not cross into
/// the next 512 GiB unless they are the current task's.
pub fn read_words<const N: usize>(
    k: &Kernel,
    current: TaskRef,
    (task, address): (TaskRef, u64),
) -> Result<[u64; N], u64> {
    let words = [const { Cell::new(0) }; N];
    let window = Window::open(k, current, task, address);
    let shown = window.address;
    let (left, fault, _) = load_words(&words, shown);
    window.close(current);
    if left != 0 {
        Err(address.wrapping_add(fault.wrapping_sub(shown)))
    } else {
        Ok(words.map(Cell::into_inner))
    }
}

/// Writes words of a task, the current one or another; the error is the address that faults.
pub fn write_words<const N: usize>(
    k: &Kernel,
    current: TaskRef,
    (task, address): (TaskRef, u64),
    words: [u64; N],
) -> Result<(), u64> {
    let window = Window::open(k, current, task, address);
    let shown = window.address;
    // SAFETY: as for `copy`.
    let (left, fault, _) = unsafe { store_words(shown, &words) };
    window.close(current);
    if left != 0 { Err(address.wrapping_add(fault.wrapping_sub(shown))) } else { Ok(()) }
}
