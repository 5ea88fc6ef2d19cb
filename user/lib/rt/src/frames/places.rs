//! Places in a program's address space for blocks and windows: those that were given back come first, then what nobody has had.
//!
//! A place is used again for one of its own size only, so that its page tables are used again, too. So there are as many of a size as were in
//! use at once, however often they are taken and given back.

use alloc::vec::Vec;
use core::ops::Range;
use sys::{Fpage, Rights};

/// All places of a range.
#[derive(Debug)]
pub(super) struct Places {
    /// Nobody has had what lies from here on.
    next: u64,
    end: u64,
    free: Vec<Fpage>,
    /// The place of the last block that was granted away.
    granted: Option<Fpage>,
}

impl Places {
    /// Those of a range of addresses, none of which is used.
    pub(super) const fn new(range: Range<u64>) -> Places {
        Places { next: range.start, end: range.end, free: Vec::new(), granted: None }
    }

    /// A place of `1 << log2` bytes, aligned to its size.
    pub(super) fn take(&mut self, log2: u32) -> Option<Fpage> {
        match self.free.iter().position(|place| place.log2() == log2) {
            Some(index) => Some(self.free.swap_remove(index)),
            None => self.new_place(log2),
        }
    }

    /// One that nobody has had.
    pub(super) fn new_place(&mut self, log2: u32) -> Option<Fpage> {
        let size = 1u64.checked_shl(log2)?;
        let base = self.next.checked_next_multiple_of(size)?;
        let end = base.checked_add(size).filter(|&end| end <= self.end)?;
        self.next = end;
        Some(Fpage::memory(base, log2, Rights::RWX))
    }

    /// Takes a place back. Nothing is mapped there any more.
    pub(super) fn put(&mut self, place: Fpage) {
        self.free.push(place);
    }

    /// Takes back the place of a block that goes away with the next message of the thread that grants blocks. Only when that thread grants another one is it
    /// known that the message was sent, and that the place is empty.
    pub(super) fn grant(&mut self, place: Fpage) {
        let before = self.granted.replace(place);
        self.free.extend(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Of each size there are 15 at once at most, which have room here.
    const RANGE: Range<u64> = 0x1000..0x400_0000;

    fn range(place: Fpage) -> Range<u64> {
        place.base()..place.base() + (1 << place.log2())
    }

    /// Programs get windows and blocks of many sizes, end, and start again: nothing is used up, and no place is two programs' at once.
    #[test]
    fn ten_thousand_restarts_use_up_nothing() {
        let mut places = Places::new(RANGE);
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        for life in 0..10_000 {
            let count = random(16);
            let held: Vec<Fpage> = (0..count)
                .map(|_| places.take(12 + random(9) as u32).unwrap_or_else(|| panic!("none in life {life}")))
                .collect();
            let mut all: Vec<Range<u64>> = held.iter().copied().map(range).collect();
            all.sort_by_key(|range| range.start);
            assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start), "two places overlap");
            assert!(held.iter().all(|place| place.base().is_multiple_of(1 << place.log2())));
            held.into_iter().for_each(|place| places.put(place));
        }
        let free: BTreeSet<u64> = places.free.iter().map(|place| place.base()).collect();
        assert_eq!(free.len(), places.free.len(), "a place is there twice");
    }

    /// The place of a block that is being granted is nobody else's before the next one is granted.
    #[test]
    fn a_granted_place_waits_for_the_next_grant() {
        let mut places = Places::new(RANGE);
        let (first, second) = (places.take(12).expect("room"), places.take(12).expect("room"));
        places.grant(first);
        assert_ne!(places.take(12), Some(first));
        places.grant(second);
        assert_eq!(places.take(12), Some(first));
        assert_ne!(places.take(12), Some(second));
    }

    /// Address space ends, and sizes that are none are refused.
    #[test]
    fn there_is_an_end() {
        let mut places = Places::new(0x1000..0x4000);
        assert_eq!(places.take(13).map(Fpage::base), Some(0x2000));
        assert_eq!(
            (places.take(12), places.take(40), places.take(64), places.take(200)),
            (None, None, None, None)
        );
    }
}
