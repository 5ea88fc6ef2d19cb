//! The address space of a program, drawn as text.
//!
//! ```text
//! 0000_0000_0000  never mapped: null pointers
//! 0000_0040_0000  image: text, constants, data, zeroes
//! 0000_1000_0000  heap, zero-filled on demand
//! 0000_3b00_0000  the task's key, then windows of 1 MiB in which it looks at pages that others offer
//! 0000_3c00_0000  stacks, one slot of 1 MiB per thread, the first thread's on top; the lowest 64 KiB of a slot
//!                 stay unmapped, so that an overflow is a fault and not somebody else's data
//! 0000_4000_0000  (free)
//! 0040_0000_0000  the boot archive, in tasks that may read it
//! 0100_0000_0000  blocks of memory that a memory manager gets from the one above it
//! ```
//!
//! Everything an ordinary program touches lies in one gigabyte: few page tables, little kernel memory. σ0 is
//! different: physical memory lies at the bottom and its image at the top (see its linker script).

use core::ops::Range;
use sys::abi::PAGE_SIZE;

/// Where an image may lie.
pub const IMAGE: Range<u64> = 0x40_0000..0x1000_0000;

/// Text and constants of this program, where nobody writes.
pub fn constants() -> Range<u64> {
    #[allow(unsafe_code)]
    unsafe extern "C" {
        static rt_constants_end: u8;
    }
    IMAGE.start..&raw const rt_constants_end as u64
}

/// The heap.
pub const HEAP: Range<u64> = 0x1000_0000..0x3b00_0000;

/// The page with the task's [key](crate::pager::offers), and windows.
pub const OFFERS: Range<u64> = 0x3b00_0000..0x3c00_0000;

/// The page with the task's key.
pub const KEY: u64 = OFFERS.start;

/// Size of a window.
pub const WINDOW: u64 = 1 << 20;

/// Begin of a window; their numbers begin with 1.
pub const fn window(at: u64) -> u64 {
    OFFERS.start + at * WINDOW
}

/// Number of the window and of the page in it at an address in [`OFFERS`].
pub const fn window_page(address: u64) -> (u64, u64) {
    let offset = address - OFFERS.start;
    (offset / WINDOW, offset % WINDOW / PAGE_SIZE)
}

/// All stacks.
pub const STACKS: Range<u64> = 0x3c00_0000..0x4000_0000;

/// Size of a stack's slot.
pub const STACK_SLOT: u64 = 1 << 20;

/// Part of a slot that is never mapped.
pub const STACK_GUARD: u64 = 64 << 10;

/// Where the boot archive is shown. Its offset from here keeps the low 30 bits of its physical address, so that
/// it can be mapped with pages of any size.
pub const ARCHIVE: u64 = 0x40_0000_0000;

/// Blocks of memory.
pub const BLOCKS: Range<u64> = 0x100_0000_0000..0x4000_0000_0000;

/// Whether a page may be filled with zeroes on demand.
pub fn is_zero_filled(address: u64) -> bool {
    HEAP.contains(&address) || (STACKS.contains(&address) && address % STACK_SLOT >= STACK_GUARD)
}
