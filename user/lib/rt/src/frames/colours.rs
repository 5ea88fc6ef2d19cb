//! Colours of pages and frames (row C14).

use sys::abi::PAGE_SIZE;

/// Colours of a cache: memory whose page numbers are the same modulo so many has the same place in each of its ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colours(u64);

impl Colours {
    /// So many has a cache with ways of 1 MiB, which is more than a second level has.
    pub const MAX: u64 = 256;

    /// So many, a power of two. `None` if it is none, or there are more than [`Colours::MAX`].
    pub const fn new(count: u64) -> Option<Colours> {
        if count.is_power_of_two() && count <= Colours::MAX { Some(Colours(count)) } else { None }
    }

    /// How many there are.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// Colour of what lies at an address, from 0 on.
    pub const fn of(self, address: u64) -> u64 {
        (address / PAGE_SIZE) & (self.0 - 1)
    }
}
