//! Places of small pages in a last-level table, and a task's note of the table that it used last.

use super::pool::Words;
use crate::arch::pte;
use crate::object::mapping::{NodeSlot, NodeTable};
use core::cell::Cell;

/// Bits of an address below the number of its last-level table.
const REGION_SHIFT: u32 = 21;

/// Index of an address in its last-level table.
fn index(address: u64) -> usize {
    (address >> 12) as usize % 512
}

/// Place of a small page: a last-level entry with the slot of its node.
#[derive(Clone, Copy)]
pub struct Leaf {
    /// The place of the page.
    pub entry: &'static Cell<u64>,
    /// Slot in which the mapping's node is recorded.
    pub slot: &'static NodeSlot,
}

impl Leaf {
    /// The entry, unless it is absent.
    pub fn entry_if_present(self) -> Option<&'static Cell<u64>> {
        pte::is_present(self.entry.get()).then_some(self.entry)
    }
}

/// Neighbouring entries of a last-level table, and the slots of their nodes.
pub type Places = (&'static [Cell<u64>], &'static [NodeSlot]);

/// The last-level table at which a walk in a task ended, with its shadow. The next walk is mostly to the same 2 MiB,
/// and a table stays as long as its task.
#[derive(Default)]
pub struct Recent {
    /// Address of the first byte that the table covers, in units of 2 MiB.
    region: Cell<u64>,
    tables: Cell<Option<(&'static Words, &'static NodeTable)>>,
}

impl Recent {
    /// Place of a page, if the table covers it.
    #[inline(always)]
    pub fn leaf(&self, address: u64) -> Option<Leaf> {
        let (table, shadow) = self.tables.get()?;
        let i = index(address);
        (self.region.get() == address >> REGION_SHIFT)
            .then(|| Leaf { entry: &table.0[i], slot: &shadow.0[i] })
    }

    /// Places of the pages from `address` on, as far as the table reaches, which covers it.
    #[inline(always)]
    pub fn from(&self, address: u64) -> Option<Places> {
        let (table, shadow) = self.tables.get()?;
        let first = index(address);
        Some((&table.0[first..], &shadow.0[first..]))
    }

    /// Notes the table at which a walk to `address` ended.
    #[inline(always)]
    pub fn note(&self, address: u64, tables: (&'static Words, &'static NodeTable)) {
        self.region.set(address >> REGION_SHIFT);
        self.tables.set(Some(tables));
    }

    /// Forgets the table.
    pub fn forget(&self) {
        self.tables.set(None);
    }
}
