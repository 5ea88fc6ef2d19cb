//! Memory in which configuration spaces lie, 4 KiB for each function. PCI Firmware Specification 3.3, chapter 4.1.2.

use crate::{HEADER_BYTES, number};

/// Name of the table.
pub const NAME: [u8; 4] = *b"MCFG";

/// Bytes before the first entry, and of each.
const FIRST: usize = HEADER_BYTES + 8;
/// See [`FIRST`].
const ENTRY_BYTES: usize = 16;

/// Log2 of the bytes that belong to one bus.
pub const BUS_LOG2: u32 = 20;

/// No physical address is as large.
const ADDRESS_END: u64 = 1 << 46;

/// Configuration spaces of some buses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spaces {
    /// Physical address of bus 0, whether that is among them or not.
    base: u64,
    /// The first bus.
    first: u8,
    /// The last one.
    last: u8,
}

impl Spaces {
    /// Physical address of a bus, if it is among them.
    pub fn of_bus(&self, bus: u8) -> Option<u64> {
        (self.first..=self.last).contains(&bus).then_some(self.base + (u64::from(bus) << BUS_LOG2))
    }

    /// First and end of all that they take.
    pub fn range(&self) -> (u64, u64) {
        let at = |bus: u64| self.base + (bus << BUS_LOG2);
        (at(self.first.into()), at(u64::from(self.last) + 1))
    }
}

/// Spaces of the first segment, which is the one that ports reach. `None` if nothing makes sense.
pub fn spaces(table: &[u8]) -> Option<Spaces> {
    let entries = table.get(FIRST..)?.chunks_exact(ENTRY_BYTES);
    entries.filter(|entry| number(entry, 8, 2) == 0).find_map(|entry| {
        let spaces = Spaces { base: number(entry, 0, 8), first: entry[10], last: entry[11] };
        let is_sound = spaces.first <= spaces.last
            && spaces.base != 0
            && spaces.base.is_multiple_of(1 << BUS_LOG2)
            && spaces.base < ADDRESS_END;
        is_sound.then_some(spaces)
    })
}
