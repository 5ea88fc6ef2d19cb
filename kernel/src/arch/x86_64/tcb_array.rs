//! The virtual array of thread control blocks: which frame is behind each slot.
//!
//! The array has no holes. A slot without a thread reads as zeroes, from one shared page, so that looking up a uid
//! needs no check and costs no memory (the compare with the uid fails). One directory covers the whole GiB; its
//! 512 entries start as the same shared table, and get a table of their own when the first of their slots is
//! mapped. Such a table is kept for good.

use super::paging;
use crate::layout;
use crate::param::{TCB_MAX, TCB_SHIFT};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Physical addresses of the directory, of the table that all unused entries share, and of the page of zeroes.
static DIRECTORY: AtomicU64 = AtomicU64::new(0);
static SHARED: AtomicU64 = AtomicU64::new(0);
static ZEROES: AtomicU64 = AtomicU64::new(0);

/// No frame was left for a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

/// Slots that one table covers.
pub const SLOTS_PER_TABLE: u32 = 512;

/// The directory entry of a slot.
const fn directory_index(slot: u32) -> usize {
    (slot / SLOTS_PER_TABLE) as usize
}

/// The virtual address of a slot.
pub const fn address(slot: u32) -> u64 {
    layout::TCBS + ((slot as u64) << TCB_SHIFT)
}

const _: () = assert!(directory_index(TCB_MAX as u32 - 1) == 511 && TCB_SHIFT == 12);

pub(super) fn init(directory: u64, shared: u64, zeroes: u64) {
    DIRECTORY.store(directory, Relaxed);
    SHARED.store(shared, Relaxed);
    ZEROES.store(zeroes, Relaxed);
}

fn table_of(slot: u32) -> u64 {
    paging::table_entry(DIRECTORY.load(Relaxed), directory_index(slot)) & paging::ADDRESS
}

/// Puts a frame behind a slot, readable and writable. `alloc_table` gives a frame of the pool and is called at
/// most once. `_in_pool`, the frame's address in the pool, is for a machine without the array.
pub fn map(
    slot: u32,
    frame: u64,
    _in_pool: *const (),
    alloc_table: impl FnOnce() -> Option<u64>,
) -> Result<(), OutOfMemory> {
    assert!((slot as usize) < TCB_MAX, "no such slot");
    let shared = SHARED.load(Relaxed);
    if table_of(slot) == shared {
        let table = alloc_table().ok_or(OutOfMemory)?;
        paging::copy_table(shared, table);
        paging::relink(DIRECTORY.load(Relaxed), directory_index(slot), table);
    }
    paging::set_leaf(table_of(slot), address(slot), frame, true);
    Ok(())
}

/// Lets a slot read as zeroes again. The frame is the caller's afterwards.
pub fn unmap(slot: u32) {
    assert!((slot as usize) < TCB_MAX, "no such slot");
    let table = table_of(slot);
    if table != SHARED.load(Relaxed) {
        paging::set_leaf(table, address(slot), ZEROES.load(Relaxed), false);
    }
}
