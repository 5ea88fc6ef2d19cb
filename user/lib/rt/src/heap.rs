//! The heap behind `alloc`: grows through its region step by step; the pager fills it with zeroes on demand.
#![allow(unsafe_code)]

mod small;

use crate::layout::HEAP;
use crate::sync::Mutex;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU64, Ordering};
use small::Heap;
use talc::base::{Talc, binning::Binning};
use talc::source::Source;

/// The heap grows by a multiple of this, in bytes. The last page of a step is touched, hence not too small.
const STEP: u64 = 256 << 10;

#[cfg_attr(target_os = "none", global_allocator)]
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
static ALLOCATOR: Allocator = Allocator(Mutex::new(Heap::new(Region { end: None })));

/// A block that moves is copied without the lock if it has more bytes than this.
const COPIED_LOCKED_MAX: usize = 16 << 10;

/// The heap of all threads.
struct Allocator(Mutex<Heap<Region>>);

// SAFETY: the heap gives each block once; the lock is held while it works.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.lock().allocate(layout) }.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller's promise.
            unsafe { self.0.lock().deallocate(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        let Some(old) = NonNull::new(block) else { return null_mut() };
        let mut heap = self.0.lock();
        // SAFETY: the caller's promise: the block is from here, the new size is one, and nobody has the new block yet.
        unsafe {
            if heap.resize(old, layout, len) {
                return block;
            }
            let Some(new) = heap.allocate(Layout::from_size_align_unchecked(len, layout.align())) else {
                // A program that makes a block smaller does not expect that to fail.
                return if heap.resize_at_last(old, layout, len) { block } else { null_mut() };
            };
            let copied = layout.size().min(len);
            if copied > COPIED_LOCKED_MAX {
                drop(heap);
                old.copy_to_nonoverlapping(new, copied);
                heap = self.0.lock();
            } else {
                old.copy_to_nonoverlapping(new, copied);
            }
            heap.deallocate(old, layout);
            new.as_ptr()
        }
    }
}

static BASE: AtomicU64 = AtomicU64::new(HEAP.start);
static LIMIT: AtomicU64 = AtomicU64::new(HEAP.end);

/// Does something while no thread of the program can take memory or give it back, as it may be whenever a thread has a page fault. For tests of pagers that are threads of the
/// program: whoever takes memory meanwhile waits for ever.
pub fn hold<T>(run: impl FnOnce() -> T) -> T {
    let _held = ALLOCATOR.0.lock();
    run()
}

/// Puts the heap elsewhere: into memory that is the caller's alone, before the first allocation.
pub(crate) fn place(base: u64, len: u64) {
    BASE.store(base, Ordering::Relaxed);
    LIMIT.store(base + len, Ordering::Relaxed);
}

/// The part of the region that the allocator has so far.
#[derive(Debug)]
struct Region {
    end: Option<NonNull<u8>>,
}

// SAFETY: the pointer is a position in a region that belongs to the heap, not to a thread.
unsafe impl Send for Region {}

// SAFETY: `acquire` allocates nothing.
unsafe impl Source for Region {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let base = BASE.load(Ordering::Relaxed);
        let end = talc.source.end.map_or(base, |end| end.as_ptr() as u64);
        // The allocator's own bookkeeping needs less than a page.
        let needed = layout.size() as u64 + layout.align() as u64 + 4096;
        let limit = LIMIT.load(Ordering::Relaxed);
        let new_end = end.saturating_add(needed).next_multiple_of(STEP).min(limit);
        if new_end < end.saturating_add(needed) {
            return Err(());
        }
        let new_end = with_exposed_provenance_mut::<u8>(new_end as usize);
        // SAFETY: BASE to LIMIT is the heap's alone, mapped or zero-filled on demand; the end only grows.
        talc.source.end = unsafe {
            match talc.source.end {
                None => {
                    talc.claim(with_exposed_provenance_mut(base as usize), new_end as usize - base as usize)
                }
                Some(end) => Some(talc.extend(end, new_end)),
            }
        };
        talc.source.end.map(drop).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const LEN: usize = 1 << 20;

    /// A heap in memory that is as large as this.
    fn heap() -> Allocator {
        let arena = std::vec![0u64; LEN / 8].leak();
        place(arena.as_mut_ptr().expose_provenance() as u64, LEN as u64);
        Allocator(Mutex::new(Heap::new(Region { end: None })))
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 8).expect("it is small")
    }

    /// Blocks of a length, as many as there are.
    fn fill(heap: &Allocator, len: usize) -> Vec<*mut u8> {
        // SAFETY: the length is not 0.
        let blocks = std::iter::repeat_with(|| unsafe { heap.alloc(layout(len)) });
        blocks.take_while(|block| !block.is_null()).collect()
    }

    /// Units of the allocator below that a block of a length takes.
    fn units(len: usize) -> usize {
        (len + 8).div_ceil(32)
    }

    /// A list that is made shorter gives a part of its memory back, and needs none for that: perhaps somebody makes it shorter since there is none.
    #[test]
    fn a_block_becomes_smaller_although_memory_is_full() {
        let heap = heap();
        for (from, to) in [(3000, 100), (505, 504), (504, 472), (100, 1), (3000, 600)] {
            let mut blocks = fill(&heap, from);
            let rest = fill(&heap, 1);
            assert!(blocks.len() > 300);
            for block in &mut blocks {
                // SAFETY: each block is from this heap, with this layout, and has so many bytes.
                unsafe {
                    let byte = *block as usize as u8 | 1;
                    block.write_bytes(byte, from);
                    *block = heap.realloc(*block, layout(from), to);
                    assert!(!block.is_null(), "{from} to {to}");
                    assert!(core::slice::from_raw_parts(*block, to).iter().all(|found| *found == byte));
                }
            }
            let others = fill(&heap, 1);
            assert!(others.len() >= blocks.len() * (units(from) - units(to)), "{from} to {to}");
            for (blocks, len) in [(blocks, to), (rest, 1), (others, 1)] {
                // SAFETY: as above; nobody uses them any more.
                blocks.into_iter().for_each(|block| unsafe { heap.dealloc(block, layout(len)) });
            }
        }
        // Nothing is lost.
        // SAFETY: the length is not 0.
        assert!(!unsafe { heap.alloc(layout(LEN * 9 / 10)) }.is_null());
    }
}
