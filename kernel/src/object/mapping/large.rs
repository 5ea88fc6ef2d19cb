//! Nodes of large pages, and their records.

use super::{LARGE, Node, NodeSlot, PARTS_LEFT, Slabs};
use crate::mem::pool::Pool;
use crate::object::task::TaskRef;
use core::cell::Cell;

/// The node of a large page. Its address is marked as such, and it leads to the record.
#[derive(Clone, Copy)]
pub struct LargePage(pub(super) &'static Node);

impl core::ops::Deref for LargePage {
    type Target = &'static Node;

    fn deref(&self) -> &&'static Node {
        &self.0
    }
}

impl LargePage {
    /// Fills in the node of a large page, whose first frame is `frame`, and its record. Both were just cut.
    pub fn fill(
        (node, record): (&'static Node, &'static Node),
        (address, frame): (u64, u64),
        entry: &'static Cell<u64>,
        slot: &'static NodeSlot,
    ) -> LargePage {
        node.fill(address | LARGE, Some(entry), slot).record.set(Some(record));
        record.address.set(frame);
        record.record.set(None);
        LargePage(node)
    }

    pub(super) fn record(self) -> &'static Node {
        self.0.record.get().expect("a large page has a record")
    }

    /// Entry of the page in its directory.
    pub fn cell(self) -> &'static Cell<u64> {
        self.0.entry.get().expect("a large page has an entry")
    }

    /// Address in its task.
    pub fn address(self) -> u64 {
        self.0.address.get() & !LARGE
    }

    /// Physical address of the page.
    pub fn frame(self) -> u64 {
        self.record().address.get() & !PARTS_LEFT
    }

    /// Number of small pages that are left of it if it is split; 0 if it is not.
    pub fn parts(self) -> u64 {
        self.record().address.get() & PARTS_LEFT
    }

    /// Notes how many small pages are left.
    pub fn set_parts(self, count: u64) {
        let cell = &self.record().address;
        cell.set(cell.get() & !PARTS_LEFT | count);
    }

    /// Takes the node out of its slot and gives it back, with its record; nobody has the page any more, or
    /// [`Node::replace_by`] has given it another node.
    pub fn discard(self, pool: &Pool) {
        let record = self.record();
        debug_assert!(record.record.get().is_none(), "an index of nothing");
        self.0.discard(pool);
        Slabs::give_back(pool, record);
    }

    /// Asserts the promises of the node, and returns its record.
    pub fn check(self, task: TaskRef, slot: &NodeSlot) -> &'static Node {
        self.0.check(task, slot, self.0.entry.get());
        assert_eq!(self.record().task(), task, "a record in another task's slab");
        self.record()
    }
}
