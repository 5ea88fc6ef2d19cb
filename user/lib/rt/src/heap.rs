//! The heap behind `alloc`: grows through its region step by step; the pager fills it with zeroes on demand.
#![allow(unsafe_code)]

use crate::layout::HEAP;
use crate::sync::RawLock;
use core::alloc::Layout;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU64, Ordering};
use talc::TalcLock;
use talc::base::{Talc, binning::Binning};
use talc::source::Source;

/// The heap grows by a multiple of this, in bytes. The last page of a step is touched, hence not too small.
const STEP: u64 = 256 << 10;

#[cfg_attr(target_os = "none", global_allocator)]
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
static ALLOCATOR: TalcLock<RawLock, Region> = TalcLock::new(Region { end: None });

static BASE: AtomicU64 = AtomicU64::new(HEAP.start);
static LIMIT: AtomicU64 = AtomicU64::new(HEAP.end);

/// Does something while no thread of the program can take memory or give it back, as it may be whenever a thread has a page fault. For tests of pagers that are threads of the
/// program: whoever takes memory meanwhile waits for ever.
pub fn hold<T>(run: impl FnOnce() -> T) -> T {
    let _held = ALLOCATOR.lock();
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
