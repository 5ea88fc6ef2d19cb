//! Slot numbers with generations, which make uids unique in time (row C8).
//!
//! A slot's generation rises each time it is given out. A slot whose generations are used up is retired: it never
//! comes back, so that no identifier can ever name two objects. The table grows by whole frames from a source
//! that the caller names, lowest numbers first, so that few slots cost little memory.

use crate::mem::pool::{Frame, Pool, Zeroable};
use core::cell::Cell;

const PER_FRAME: usize = 512;
const FRAMES: usize = 512;
const NONE: u32 = 0;

#[repr(C)]
struct Entry {
    /// Generation given out last; 0 before the first time.
    generation: Cell<u32>,
    /// Next free slot plus 1, while this one is in the free list.
    next_free: Cell<u32>,
}

#[repr(C)]
struct Page([Entry; PER_FRAME]);

#[allow(unsafe_code)]
// SAFETY: integers in cells; zero is a valid value.
unsafe impl Zeroable for Page {}

/// A table of `limit` slots at most.
pub struct Slots {
    pages: [Cell<Option<&'static Page>>; FRAMES],
    /// First free slot plus 1.
    free: Cell<u32>,
    /// Slots below this have been used at some time.
    fresh: Cell<u32>,
    limit: Cell<u32>,
    generation_max: Cell<u32>,
    retired: Cell<u32>,
}

impl Slots {
    /// A table of `limit` slots whose generations go from 1 to `generation_max`. Slot 0 is never given out, so
    /// that no identifier is 0.
    pub const fn new(limit: u32, generation_max: u32) -> Slots {
        Slots {
            pages: [const { Cell::new(None) }; FRAMES],
            free: Cell::new(NONE),
            fresh: Cell::new(1),
            limit: Cell::new(limit),
            generation_max: Cell::new(generation_max),
            retired: Cell::new(0),
        }
    }

    /// Sets fewer slots and generations, for tests.
    pub fn limit(&self, limit: u32, generation_max: u32) {
        self.limit.set(limit);
        self.generation_max.set(generation_max);
    }

    fn entry(&self, slot: u32) -> &'static Entry {
        let page = self.pages[slot as usize / PER_FRAME].get();
        &page.expect("slot was given out before").0[slot as usize % PER_FRAME]
    }

    /// Gives out a slot and its new generation. `None` when all are in use, or no frame is to be had.
    pub fn take(&self, pool: &Pool, frame: impl FnOnce() -> Option<Frame>) -> Option<(u32, u32)> {
        let slot = match self.free.get() {
            NONE => self.take_fresh(pool, frame)?,
            free => {
                self.free.set(self.entry(free - 1).next_free.get());
                free - 1
            }
        };
        let entry = self.entry(slot);
        entry.generation.set(entry.generation.get() + 1);
        Some((slot, entry.generation.get()))
    }

    fn take_fresh(&self, pool: &Pool, frame: impl FnOnce() -> Option<Frame>) -> Option<u32> {
        let slot = self.fresh.get();
        if slot >= self.limit.get() {
            return None;
        }
        let page = &self.pages[slot as usize / PER_FRAME];
        if page.get().is_none() {
            page.set(Some(pool.at::<Page>(frame()?)));
        }
        self.fresh.set(slot + 1);
        Some(slot)
    }

    /// Takes a slot back whose generation named nothing yet: it comes again.
    pub fn return_unused(&self, slot: u32) {
        let entry = self.entry(slot);
        entry.generation.set(entry.generation.get() - 1);
        entry.next_free.set(self.free.replace(slot + 1));
    }

    /// Takes a slot back. If it has used up its generations it is retired.
    pub fn give_back(&self, slot: u32) {
        let entry = self.entry(slot);
        if entry.generation.get() >= self.generation_max.get() {
            self.retired.set(self.retired.get() + 1);
            return;
        }
        entry.next_free.set(self.free.replace(slot + 1));
    }

    /// The lowest slot that was never given out.
    pub fn high_water(&self) -> u32 {
        self.fresh.get()
    }

    /// Number of retired slots.
    pub fn retired(&self) -> u32 {
        self.retired.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn exhausted_slots_are_retired_and_no_pair_repeats() {
        let pool = Pool::for_tests(8);
        let slots = Slots::new(4, 3);
        let mut seen = HashSet::new();
        while let Some((slot, generation)) = slots.take(&pool, || pool.take_zeroed()) {
            assert!((1..4).contains(&slot) && (1..=3).contains(&generation));
            assert!(seen.insert((slot, generation)), "{slot}.{generation} came twice");
            slots.give_back(slot);
        }
        assert_eq!((seen.len(), slots.retired()), (9, 3));
    }

    #[test]
    fn a_missing_frame_is_no_disaster() {
        let pool = Pool::for_tests(8);
        let slots = Slots::new(2000, 3);
        assert_eq!(slots.take(&pool, || None), None);
        assert_eq!(slots.take(&pool, || pool.take_zeroed()), Some((1, 1)));
    }
}
