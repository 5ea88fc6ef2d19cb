//! Copies between spaces, through the window (row P3).
//!
//! The window is a slot of each task's top-level table in the kernel half. While a message is copied it holds the
//! receiver's own top-level entry, without the user bit: so the receiver's tables are walked by the processor, a page
//! that the receiver may not write faults, and its accessed and dirty bits are set where they belong.
//!
//! **Window rules.** (1) The slot is empty unless a message is being copied; that ends before the kernel does anything else; an interrupt
//! that comes in the middle of it ends it.
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
use crate::arch::isa::user_copy::{
    CLOSED, OPEN, Routine, copy_bytes, load_pairs, load_words, store_cells, store_pair, store_words,
};
use crate::layout::{WINDOW, WINDOW_SIZE};
use abi::{PAGE_SIZE, USER_END};
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

/// Bytes, of `len`, that one window shows.
pub fn copy_at_once(address: u64, len: u64) -> u64 {
    len.min(WINDOW_SIZE - address % WINDOW_SIZE)
}

/// Number of no region.
const NO_REGION: u64 = u64::MAX;

/// A window that stays open for all parts of a message: it shows one region of the other space, the size of a top-level entry, and is opened
/// anew for an address in another. On the loaded space itself it is no window, and each address is shown at itself.
pub struct View {
    loaded: Loaded,
    /// Top-level table of the other space, if there is one.
    other: Option<&'static Table>,
    /// Number of the region that is shown.
    region: u64,
    /// Distance from an address in that to where it is shown.
    distance: u64,
}

/// A region of the other space, as a window shows it. All addresses of that space are in it.
#[derive(Clone, Copy)]
pub struct Shown {
    /// First address of the region.
    first: u64,
    /// Distance from an address in it to where it is shown: 0 without a window.
    distance: u64,
}

impl View {
    /// A view that shows nothing yet.
    #[inline(always)]
    pub fn new(loaded: Loaded, other: Option<&'static Table>) -> View {
        View { loaded, other, region: NO_REGION, distance: 0 }
    }

    /// The view, while its window is open already at the region of an address.
    pub fn opened_at(self, address: u64) -> View {
        let region = address / WINDOW_SIZE;
        let distance = if self.other.is_some() { WINDOW.wrapping_sub(region * WINDOW_SIZE) } else { 0 };
        View { region, distance, ..self }
    }

    /// The region of an address of the user half.
    #[inline(always)]
    pub fn show(&mut self, address: u64) -> Shown {
        if address / WINDOW_SIZE != self.region {
            self.open(address);
        }
        Shown::at(address, address.wrapping_add(self.distance))
    }

    #[inline(always)]
    fn open(&mut self, address: u64) {
        debug_assert!(address < USER_END, "a window on the kernel, at {address:#x}");
        let before = core::mem::replace(&mut self.region, address / WINDOW_SIZE);
        let Some(top) = self.other else { return };
        let slot = window_slot(self.loaded.top);
        if tagged() {
            slot.set(0);
            space::load(space::with_window(self.loaded.space));
        } else if before != NO_REGION {
            close(slot, self.loaded.space);
        }
        slot.set(top[self.region as usize % top.len()].get() & !USER);
        self.distance = WINDOW.wrapping_sub(self.region * WINDOW_SIZE);
    }

    /// Ends the view.
    pub fn close(self) {
        if self.other.is_some() && self.region != NO_REGION {
            close_window(self.loaded);
        }
    }

    /// Ends the view where another space is loaded at once, which forgets what it showed.
    #[inline(always)]
    pub fn leave(self) {
        if self.other.is_some() {
            window_slot(self.loaded.top).set(0);
        }
    }

    /// Copies from the loaded space to the user half of the other, which may be several regions.
    pub fn copy(&mut self, from: u64, to: u64, len: u64) -> Result<(), CopyFault> {
        let mut done = 0;
        while done < len {
            let now = copy_at_once(to + done, len - done);
            let result = self.copy_here(from + done, to + done, now);
            result.map_err(|fault| CopyFault { done: done + fault.done, ..fault })?;
            done += now;
        }
        Ok(())
    }

    /// Copies what is in one region of the other space.
    #[inline(always)]
    pub fn copy_here(&mut self, from: u64, to: u64, len: u64) -> Result<(), CopyFault> {
        let shown = self.show(to);
        let result = shown.copy(from, to, len);
        result.map_err(|(left, fault, is_write)| shown.fault(len - left, fault, is_write))
    }

    /// Copies at most [`copy_at_once`] bytes with interrupts let in: one that comes ends the copy, which never returns.
    pub fn copy_openly(&mut self, from: u64, to: u64, len: u64) -> Result<(), CopyFault> {
        let shown = self.show(to);
        let result = shown.copy_openly(from, to, len);
        result.map_err(|(left, fault, is_write)| shown.fault(len - left, fault, is_write))
    }

    /// Reads two words of the loaded space and two of the other, which do not cross into its next region.
    pub fn read_pairs(&mut self, mine: u64, theirs: u64) -> Result<([u64; 2], [u64; 2]), CopyFault> {
        let shown = self.show(theirs);
        let result = load_pairs(mine, theirs.wrapping_add(shown.distance));
        result.map_err(|(fault, at_target)| shown.fault(0, fault, at_target))
    }

    /// Writes two words of the other space, which do not cross into its next region; the error is the address that faults.
    pub fn write_pair(&mut self, to: u64, words: [u64; 2]) -> Result<(), u64> {
        let shown = self.show(to);
        shown.write_pair(to, words).map_err(|fault| fault.wrapping_sub(shown.distance))
    }
}

impl Shown {
    /// The region of an address, which is shown somewhere.
    #[inline(always)]
    pub fn at(address: u64, shown: u64) -> Shown {
        Shown { first: address & !(WINDOW_SIZE - 1), distance: shown.wrapping_sub(address) }
    }

    /// Whether anything of at most a page that begins at an address is in this region, and in the user half.
    #[inline(always)]
    pub fn holds_page_at(self, address: u64) -> bool {
        address.wrapping_sub(self.first) <= WINDOW_SIZE - 2 * PAGE_SIZE
    }

    /// Whether so many bytes at an address, at most a region, are in this region, and in the user half.
    #[inline(always)]
    pub fn holds(self, address: u64, len: u64) -> bool {
        address.wrapping_sub(self.first) <= WINDOW_SIZE - PAGE_SIZE - len
    }

    /// Copies in the same way as [`Shown::copy`] with interrupts let in: one that comes ends the copy, which never returns.
    #[inline(always)]
    pub fn copy_openly(self, from: u64, to: u64, len: u64) -> Result<(), (u64, u64, bool)> {
        self.copy_by(OPEN, from, to, len)
    }

    /// Copies from the loaded space to this region, which the caller knows to be in the user half. The error: bytes left, the address that
    /// faulted, and whether that was a write.
    #[inline(always)]
    pub fn copy(self, from: u64, to: u64, len: u64) -> Result<(), (u64, u64, bool)> {
        self.copy_by(CLOSED, from, to, len)
    }

    #[inline(always)]
    fn copy_by(self, routine: Routine, from: u64, to: u64, len: u64) -> Result<(), (u64, u64, bool)> {
        // SAFETY: the target is a window or the space's own memory: the caller checked that it is in the user half.
        let fault = unsafe { copy_bytes(to.wrapping_add(self.distance), from, len, routine) };
        if fault.0 == 0 { Ok(()) } else { Err(fault) }
    }

    fn fault(self, done: u64, fault: u64, is_write: bool) -> CopyFault {
        let at_target = if self.distance != 0 { fault >= WINDOW } else { is_write };
        let address = if at_target { fault.wrapping_sub(self.distance) } else { fault };
        CopyFault { done, address, at_target }
    }

    /// Reads two words of the loaded space and two of this region; `None` if that faults.
    #[inline(always)]
    pub fn read_pairs(self, mine: u64, theirs: u64) -> Option<([u64; 2], [u64; 2])> {
        load_pairs(mine, theirs.wrapping_add(self.distance)).ok()
    }

    /// Writes two words of this region; the error is the address that faults, where it is shown.
    #[inline(always)]
    pub fn write_pair(self, to: u64, words: [u64; 2]) -> Result<(), u64> {
        // SAFETY: as for `copy`.
        unsafe { store_pair(to.wrapping_add(self.distance), words) }
    }
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
