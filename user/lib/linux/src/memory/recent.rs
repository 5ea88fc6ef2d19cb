//! Pages of a process that calls have accessed last, so that the next access finds them without a search.
//!
//! A page that is here has its frame and rights until the process's memory changes. Frames become shared by a copy of the memory alone, and then all is forgotten.

use super::Rights;
use crate::frames::Frame;
use core::cell::Cell;

/// Number of places; a page has one of them.
const COUNT: u64 = 16;

/// No page has this number.
const NONE: u64 = u64::MAX;

/// Pages by the lower bits of their numbers.
#[derive(Debug)]
pub(super) struct Recent([Cell<(u64, Frame, Rights)>; COUNT as usize]);

impl Default for Recent {
    fn default() -> Recent {
        Recent([const { Cell::new((NONE, Frame(0), Rights::NONE)) }; COUNT as usize])
    }
}

impl Recent {
    #[inline]
    fn place(&self, page: u64) -> &Cell<(u64, Frame, Rights)> {
        &self.0[(page % COUNT) as usize]
    }

    /// Frame of a page with what may be done there, if that is enough.
    #[inline]
    pub(super) fn get(&self, page: u64, wanted: Rights) -> Option<(Frame, Rights)> {
        let (known, frame, rights) = self.place(page).get();
        (known == page && rights.has(wanted)).then_some((frame, rights))
    }

    /// Notes a page.
    pub(super) fn put(&self, page: u64, (frame, rights): (Frame, Rights)) {
        self.place(page).set((page, frame, rights));
    }

    /// Forgets all.
    pub(super) fn forget(&self) {
        self.0.iter().for_each(|place| place.set((NONE, Frame(0), Rights::NONE)));
    }
}
