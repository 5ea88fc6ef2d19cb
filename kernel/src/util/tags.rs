//! Tags of address spaces: those that are given out, and the search for one to take away.
//!
//! The processor has 4,096. Tag 0 is shared by all spaces without one of their own, the last is for open windows; see
//! `arch/four_level/space.rs`.

use core::cell::Cell;

/// The highest tag that is given out.
pub const TAG_MAX: u16 = 4094;

const WORDS: usize = (TAG_MAX as usize + 2) / 64;

/// One bit for each tag, set while it is free.
pub struct Tags {
    free: [Cell<u64>; WORDS],
    /// Task after which the search for one that loses its tag goes on.
    hand: Cell<u16>,
}

impl Tags {
    /// A set in which all tags are free.
    pub const fn new() -> Tags {
        let mut tags = Tags { free: [const { Cell::new(u64::MAX) }; WORDS], hand: Cell::new(0) };
        tags.free[0] = Cell::new(!1);
        tags.free[WORDS - 1] = Cell::new(u64::MAX >> 1);
        tags
    }

    /// Gives out only the tags up to `most`. Before any is given out.
    pub fn limit(&self, most: u16) {
        (most + 1..=TAG_MAX).for_each(|tag| self.mark(tag, false));
    }

    /// The lowest free tag, which is given out now.
    pub fn take(&self) -> Option<u16> {
        let (word, free) = (0..).zip(&self.free).find(|(_, free)| free.get() != 0)?;
        let tag = 64 * word + free.get().trailing_zeros() as u16;
        self.mark(tag, false);
        Some(tag)
    }

    /// Takes a tag back.
    pub fn give_back(&self, tag: u16) {
        debug_assert!(!self.is_free(tag));
        self.mark(tag, true);
    }

    /// Whether a tag is free.
    pub fn is_free(&self, tag: u16) -> bool {
        self.free[tag as usize / 64].get() >> (tag % 64) & 1 != 0
    }

    fn mark(&self, tag: u16, free: bool) {
        let (word, bit) = (&self.free[tag as usize / 64], 1 << (tag % 64));
        word.set(if free { word.get() | bit } else { word.get() & !bit });
    }

    /// Number of the task to look at next, below `end`; round and round.
    pub fn next_task(&self, end: u16) -> u16 {
        let next = self.hand.get() + 1;
        self.hand.set(if next < end { next } else { 1 });
        self.hand.get()
    }
}

impl Default for Tags {
    fn default() -> Self {
        Tags::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn each_tag_is_given_out_once() {
        let tags = Tags::new();
        let all: Vec<u16> = core::iter::from_fn(|| tags.take()).collect();
        assert_eq!(all, (1..=TAG_MAX).collect::<Vec<u16>>());
        tags.give_back(4000);
        tags.give_back(64);
        assert_eq!([tags.take(), tags.take(), tags.take()], [Some(64), Some(4000), None]);
    }

    #[test]
    fn a_limit() {
        let tags = Tags::new();
        tags.limit(2);
        assert_eq!([tags.take(), tags.take(), tags.take()], [Some(1), Some(2), None]);
    }

    #[test]
    fn the_hand_goes_round() {
        let tags = Tags::new();
        assert_eq!([0; 5].map(|_| tags.next_task(4)), [1, 2, 3, 1, 2]);
    }
}
