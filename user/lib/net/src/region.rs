//! Memory that two tasks have: a piece of the heap of one, mapped over a piece of the heap of the other.
//!
//! The surprise is where the window lies. When the task that lent the memory ends, its pages go, and whoever touches them next gets pages of zeroes from
//! the memory manager, since that is what the manager does for a heap: the rings in them are broken then, which their reader finds out, and
//! nobody crashes.
#![allow(unsafe_code)]

use alloc::alloc::{Layout, alloc_zeroed};
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU64, Ordering};
use rt::sys::{self, Fpage, Rights};

/// Log2 of the size of a ring in bytes.
pub const RING_LOG2: u32 = 16;

/// Words of a ring.
const RING_WORDS: usize = (1 << RING_LOG2) / size_of::<u64>();

/// Two rings, one behind the other. It is never given back, since somebody else may have it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    address: usize,
}

impl Region {
    /// Log2 of its size in bytes.
    pub const LOG2: u32 = RING_LOG2 + 1;

    /// A piece of this program's heap, zeroed.
    pub fn new() -> Option<Region> {
        let layout = Layout::from_size_align(1 << Region::LOG2, 1 << Region::LOG2).ok()?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then(|| Region { address: start.expose_provenance() })
    }

    /// Flexpage to map it to somebody, and to let somebody else's be mapped over it.
    pub fn fpage(self) -> Fpage {
        Fpage::memory(self.address as u64, Region::LOG2, Rights::RW)
    }

    /// Whether this is the whole of what came, so that what its owner says of the memory is about this.
    pub fn is(self, arrived: Fpage) -> bool {
        arrived.base() == self.address as u64
            && arrived.log2() == Region::LOG2
            && arrived.rights().has(Rights::RW)
    }

    /// Gives back what was mapped over it.
    pub fn clear(self) {
        // SAFETY: these pages are memory that others may change at any time, and is used by atomic words only.
        let _ = unsafe { sys::flush_self(self.fpage().with_rights(Rights::RWX)) };
    }

    /// Makes both rings empty. For the owner, while nobody else has it.
    pub fn reset(self) {
        for ring in self.rings() {
            ring.iter().take(ring::SLOT_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Words of both rings.
    pub fn rings(self) -> [&'static [AtomicU64]; 2] {
        let words = with_exposed_provenance::<AtomicU64>(self.address);
        // SAFETY: it is allocated, initialised and aligned, and never given back. Whatever is mapped there instead is memory, too, whose every
        // word is a value; nobody has another kind of reference to it.
        let words = unsafe { core::slice::from_raw_parts(words, 2 * RING_WORDS) };
        let (received, to_send) = words.split_at(RING_WORDS);
        [received, to_send]
    }
}
