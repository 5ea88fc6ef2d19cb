//! Copies between spaces, through the window (row P3).
//!
//! The window is a slot of each task's top-level table in the kernel half. While a message is copied it holds the
//! receiver's own top-level entry, without the user bit: so the receiver's tables are walked by the processor, a page
//! that the receiver may not write faults, and its accessed and dirty bits are set where they belong.
//!
//! **Window rules.** (1) The slot is empty unless a copy is under way; copies end before the kernel does anything else; an interrupt
//! that comes in the middle of one ends it.
//! (2) Translations of a window that the processor has cached cannot be used once the slot is empty: with tags a window is
//! open only under a tag of its own, and each load with that tag forgets what it finds; without tags the space is loaded anew
//! when the slot is empty, or left at once. (3) Within a task no window is used.
//!
//! INVLPG on the pages that were copied to would not do: the processor walks ahead, so that any page of the 512 GiB in the
//! window may be cached, used or not. `arch/host/tlb.rs` shows that, and the model tests hold the rules against it.
//!
//! The paper's window holds two directory entries; here one is enough, since a copy that crosses into the next 512 GiB is
//! done in two steps.

use super::space::{self, tagged};
use super::{Table, pte};
use crate::arch::CopyFault;
use crate::arch::isa::user_copy::{CLOSED, OPEN, Routine, copy_bytes, load_words, store_cells, store_words};
use crate::layout::{WINDOW, WINDOW_SIZE};
use abi::USER_END;
use core::cell::Cell;

const USER: u64 = 1 << 2;
const SLOT: usize = (WINDOW >> 39 & 511) as usize;

/// The space that is loaded; copies go out from it.
#[derive(Clone, Copy)]
pub struct Loaded {
    /// Its top-level table.
    pub top: &'static Table,
    /// The word that selects it.
    pub space: u64,
}

/// Address that a copy goes to, or that words are read from.
#[derive(Clone, Copy)]
pub struct Target {
    /// Top-level table of the address's space; `None`: that of the loaded space.
    pub top: Option<&'static Table>,
    /// Address in that space.
    pub address: u64,
}

/// Slot of a top-level table that holds the entry of the space's window.
pub fn window_slot(top: &'static Table) -> &'static Cell<u64> {
    &top[SLOT]
}

/// Top-level entry that shows `len` bytes at `address` of a space in a window, and their address there. `None` if that takes two
/// entries, or there is no table yet.
pub fn window_view(top: &Table, address: u64, len: u64) -> Option<(u64, u64)> {
    let entry = top[(address >> 39) as usize].get();
    let fits = address % WINDOW_SIZE + len <= WINDOW_SIZE;
    (fits && pte::is_present(entry)).then_some((entry & !USER, WINDOW + address % WINDOW_SIZE))
}

/// Empties the window of the loaded space, and makes the processor forget what it showed.
pub fn close_window(loaded: Loaded) {
    close(window_slot(loaded.top), loaded.space);
}

fn close(slot: &Cell<u64>, space: u64) {
    slot.set(0);
    // With tags the load goes back to the space's own tag; without tags it forgets everything.
    space::load(space);
}

/// A window of the loaded space on another one; without a slot if no window is needed, since that is the loaded one too.
struct Window {
    slot: Option<&'static Cell<u64>>,
    address: u64,
}

impl Window {
    fn open(loaded: Loaded, target: Target) -> Window {
        let address = target.address;
        debug_assert!(address < USER_END, "a window on the kernel, at {address:#x}");
        let Some(top) = target.top else { return Window { slot: None, address } };
        let slot = window_slot(loaded.top);
        if tagged() {
            space::load(space::with_window(loaded.space));
        }
        slot.set(top[(address >> 39) as usize].get() & !USER);
        Window { slot: Some(slot), address: WINDOW + address % WINDOW_SIZE }
    }

    fn close(self, loaded: Loaded) {
        if let Some(slot) = self.slot {
            close(slot, loaded.space);
        }
    }
}

/// Bytes, of `len`, that [`copy_openly`] takes at once: as many as one window shows.
pub fn copy_at_once(address: u64, len: u64) -> u64 {
    len.min(WINDOW_SIZE - address % WINDOW_SIZE)
}

/// Copies at most [`copy_at_once`] bytes from the loaded space with interrupts let in: one that comes ends the copy, which never returns.
#[inline(always)]
pub fn copy_openly(loaded: Loaded, from: u64, to: Target, len: u64) -> Result<(), CopyFault> {
    copy_once(loaded, from, to, len, OPEN).map(drop)
}

/// Copies from the loaded space.
#[inline(always)]
pub fn copy(loaded: Loaded, from: u64, to: Target, len: u64) -> Result<(), CopyFault> {
    let done = copy_once(loaded, from, to, len, CLOSED)?;
    if done < len { copy_on(loaded, from, to, (done, len)) } else { Ok(()) }
}

/// Goes on with a copy of which one window showed only a part.
#[cold]
#[inline(never)]
fn copy_on(loaded: Loaded, from: u64, to: Target, (mut done, len): (u64, u64)) -> Result<(), CopyFault> {
    while done < len {
        let target = Target { address: to.address + done, ..to };
        let result = copy_once(loaded, from + done, target, len - done, CLOSED);
        done += result.map_err(|fault| CopyFault { done: done + fault.done, ..fault })?;
    }
    Ok(())
}

/// Copies as much as one window shows. Returns how many bytes that was: [`copy_at_once`].
#[inline(always)]
fn copy_once(loaded: Loaded, from: u64, to: Target, len: u64, routine: Routine) -> Result<u64, CopyFault> {
    let now = copy_at_once(to.address, len);
    let window = Window::open(loaded, to);
    let (shown, is_window) = (window.address, window.slot.is_some());
    // SAFETY: the target is a window or the space's own memory: the caller checked that it is in the user half.
    let (left, fault, is_write) = unsafe { copy_bytes(shown, from, now, routine) };
    window.close(loaded);
    if left == 0 {
        return Ok(now);
    }
    let at_target = if is_window { fault >= WINDOW } else { is_write };
    let address = if at_target { to.address + fault.wrapping_sub(shown) } else { fault };
    Err(CopyFault { done: now - left, address, at_target })
}

/// Reads words of the loaded space or another; the error is the address that faults. Words do not cross into
/// the next 512 GiB unless they are the loaded space's.
#[inline(always)]
pub fn read_words<const N: usize>(loaded: Loaded, from: Target) -> Result<[u64; N], u64> {
    let words = [const { Cell::new(0) }; N];
    let window = Window::open(loaded, from);
    let shown = window.address;
    let (left, fault, _) = load_words(&words, shown);
    window.close(loaded);
    if left != 0 {
        Err(from.address.wrapping_add(fault.wrapping_sub(shown)))
    } else {
        Ok(words.map(Cell::into_inner))
    }
}

/// Writes words of the loaded space or another; the error is the address that faults.
#[inline(always)]
pub fn write_words<const N: usize>(loaded: Loaded, to: Target, words: [u64; N]) -> Result<(), u64> {
    let window = Window::open(loaded, to);
    let shown = window.address;
    // SAFETY: as for `copy`.
    let (left, fault, _) = unsafe { store_words(shown, &words) };
    window.close(loaded);
    if left != 0 { Err(to.address.wrapping_add(fault.wrapping_sub(shown))) } else { Ok(()) }
}

/// Fills words of the kernel's from the loaded space; the error is the address that faults.
pub fn load(from: u64, words: &[Cell<u64>]) -> Result<(), u64> {
    debug_assert!(from < USER_END, "words of the kernel's, at {from:#x}");
    let (left, fault, _) = load_words(words, from);
    if left != 0 { Err(fault) } else { Ok(()) }
}

/// Stores words of the kernel's in the loaded space; the error is the address that faults.
pub fn store(to: u64, words: &[Cell<u64>]) -> Result<(), u64> {
    debug_assert!(to < USER_END, "words to the kernel's, at {to:#x}");
    // SAFETY: the caller checked that the target is in the user half.
    let (left, fault, _) = unsafe { store_cells(to, words) };
    if left != 0 { Err(fault) } else { Ok(()) }
}
