//! Copies between tasks, through the window (row P3).
//!
//! The window is a slot of each task's top-level table in the kernel half. While a message is copied it holds the
//! receiver's own top-level entry, without the user bit: so the receiver's tables are walked by the processor, a page
//! that the receiver may not write faults, and its accessed and dirty bits are set where they belong.
//!
//! **Window rules.** (1) The slot is empty unless a copy is under way; copies end before the kernel does anything else; an
//! interrupt that comes in the middle of one ends it.
//! (2) Whoever empties it makes the processor forget what it showed, unless the address space is left at once and that
//! forgets by itself, which it does without tags. (3) Within a task no window is used. The paper's window holds two
//! directory entries; here one is enough, since a copy that crosses into the next 512 GiB is done in two steps.
//!
//! The other arm ([`Copying::DirectMap`](crate::options::Copying)) writes through a map of all memory. It needs no rules
//! about forgetting, but walks the receiver's tables in software, page by page. Descriptors, which are a few words, go
//! through the window in both arms.

use super::fast_path;
use super::instructions::invlpg;
use super::{paging, pte, space};
use crate::arch::CopyFault;
use crate::kernel::Kernel;
use crate::layout::{WINDOW, WINDOW_SIZE};
use crate::mem::pool::{Frame, Words};
use crate::mem::table::{self, Found};
use crate::object::TaskRef;
use crate::object::thread::Frame as ThreadFrame;
use abi::{PAGE_SIZE, Rights};
use core::arch::asm;
use core::cell::Cell;

/// Whether a copy can let interrupts in.
pub const COPIES_OPENLY: bool = true;

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

/// Empties the window of the current task after a copy that the fast path did not finish.
pub(super) fn close_window(k: &Kernel, current: TaskRef) {
    top_entry(k, current, SLOT).set(0);
    space::flush_space(current);
}

/// A window of the current space on another task, or nothing if that is the same task.
struct Window {
    slot: Option<&'static Cell<u64>>,
    address: u64,
    len: u64,
}

impl Window {
    fn open(k: &Kernel, current: TaskRef, task: TaskRef, address: u64, len: u64) -> Window {
        if current == task {
            return Window { slot: None, address, len };
        }
        let slot = top_entry(k, current, SLOT);
        slot.set(top_entry(k, task, (address >> 39) as usize).get() & !USER);
        Window { slot: Some(slot), address: WINDOW + address % WINDOW_SIZE, len }
    }

    /// Empties the slot, and makes the processor forget what it showed.
    fn close(self, current: TaskRef) {
        /// From here on forgetting everything is cheaper.
        const PAGES_MAX: u64 = 8;
        let Some(slot) = self.slot else { return };
        slot.set(0);
        let first = self.address & !(PAGE_SIZE - 1);
        let end = self.address + self.len;
        if end - first <= PAGES_MAX * PAGE_SIZE {
            (first..end).step_by(PAGE_SIZE as usize).for_each(invlpg);
        } else {
            space::flush_space(current);
        }
    }
}

/// [`fast_path::copy_bytes`] or [`fast_path::copy_openly`].
type Routine = unsafe extern "C" fn();

/// Copies bytes between addresses of the current space. Returns how many are left, and if there are any, the address
/// that faulted and whether that was a write.
///
/// # Safety
/// Kernel memory among the target must be the caller's to write. User memory and windows may be anything.
#[inline(always)]
unsafe fn copy_bytes(to: u64, from: u64, len: u64, routine: Routine) -> (u64, u64, bool) {
    let (left, address, error): (u64, u64, u64);
    // SAFETY: the routine writes to the target only; its faults end it (see `fast_path::copy_fault`).
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

/// What the direct map shows of a byte of a task that is about to be written.
enum Shown {
    At(u64),
    /// There is no page, or it may not be written.
    Fault,
    /// It is not ordinary memory, or there is no direct map: the window can show it.
    Otherwise,
}

fn show(k: &Kernel, task: TaskRef, address: u64) -> Shown {
    let leaf = match table::find(&k.pool, task, address) {
        Found::Leaf(leaf) => leaf,
        Found::Large { .. } => return Shown::Otherwise,
        Found::Nothing { .. } => return Shown::Fault,
    };
    let entry = leaf.entry.get();
    if !pte::is_writable_memory(entry) {
        return if pte::rights(entry).has(Rights::W) { Shown::Otherwise } else { Shown::Fault };
    }
    let Some(frame) = paging::direct(pte::address(entry)) else { return Shown::Otherwise };
    leaf.entry.set(pte::touched(entry, true));
    Shown::At(frame + address % PAGE_SIZE)
}

/// Copies what is left of the page at the target. `None` if the window has to do it.
fn copy_directly(
    k: &Kernel,
    source: u64,
    to: (TaskRef, u64),
    len: u64,
    routine: Routine,
) -> Option<Result<u64, CopyFault>> {
    let shown = match show(k, to.0, to.1) {
        Shown::At(shown) => shown,
        Shown::Fault => return Some(Err(CopyFault { done: 0, address: to.1, at_target: true })),
        Shown::Otherwise => return None,
    };
    let now = len.min(PAGE_SIZE - to.1 % PAGE_SIZE);
    // SAFETY: the target is a page that belongs to a user, who may write it.
    let (left, address, _) = unsafe { copy_bytes(shown, source, now, routine) };
    let fault = CopyFault { done: now - left, address, at_target: false };
    Some(if left == 0 { Ok(now) } else { Err(fault) })
}

/// How many of `len` bytes [`copy`] takes at once: what one window shows, or one page of the direct map.
pub fn copy_at_once(from: TaskRef, (to, address): (TaskRef, u64), len: u64) -> u64 {
    let unit = if paging::has_direct_map() && from != to { PAGE_SIZE } else { WINDOW_SIZE };
    len.min(unit - address % unit)
}

/// Copies from the current task to another one, or within the current one, at most [`copy_at_once`] bytes, with interrupts let in.
/// The current thread is busy with a transfer: one that comes ends the copy without a return (see [`interrupted`]).
pub fn copy_openly(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    copy_once(k, from, to, len, fast_path::copy_openly).map(drop)
}

/// Copies from the current task to another one, or within the current one.
#[inline(never)]
pub fn copy(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    let mut done = 0;
    while done < len {
        let (source, target) = ((from.0, from.1 + done), (to.0, to.1 + done));
        let result = copy_once(k, source, target, len - done, fast_path::copy_bytes);
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
    if paging::has_direct_map()
        && from.0 != to.0
        && let Some(result) = copy_directly(k, from.1, to, len, routine)
    {
        return result;
    }
    let now = len.min(WINDOW_SIZE - to.1 % WINDOW_SIZE);
    let window = Window::open(k, from.0, to.0, to.1, now);
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

/// An interrupt of the kernel: if it came in the middle of [`copy`], how many bytes are left. The window is closed.
pub fn interrupted(k: &Kernel, frame: &ThreadFrame) -> Option<u64> {
    let left = fast_path::interrupted_copy(frame)?;
    close_window(k, super::current().task());
    Some(left)
}

/// Reads words of a task, the current one or another; the error is the address that faults. Words do not cross into
/// the next 512 GiB unless they are the current task's.
pub fn read_words<const N: usize>(
    k: &Kernel,
    current: TaskRef,
    (task, address): (TaskRef, u64),
) -> Result<[u64; N], u64> {
    let words = [const { Cell::new(0) }; N];
    let len = 8 * N as u64;
    let window = Window::open(k, current, task, address, len);
    let shown = window.address;
    // SAFETY: the target is `words`.
    let (left, fault, _) = unsafe { copy_bytes(&raw const words as u64, shown, len, fast_path::copy_bytes) };
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
    let len = 8 * N as u64;
    let window = Window::open(k, current, task, address, len);
    let shown = window.address;
    // SAFETY: as for `copy`.
    let (left, fault, _) = unsafe { copy_bytes(shown, &raw const words as u64, len, fast_path::copy_bytes) };
    window.close(current);
    if left != 0 { Err(address.wrapping_add(fault.wrapping_sub(shown))) } else { Ok(()) }
}
