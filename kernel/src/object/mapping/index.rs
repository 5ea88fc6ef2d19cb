//! Index of a large page: where the mappings of each of its parts are in the list of its tree.
//!
//! All that came out of a large page is below its node, in one list. From the first small page on that is mapped out of it, part of that list
//! is sorted: between two *borders*, nodes without a page that stand directly below the large page's, there is a *head* for each part
//! that was ever handed on, a border too, and behind it the mappings of that part. Large pages, and small ones that were added while a
//! walk was in there, are outside. A walk that looks for one part passes from one end to the other by way of that part alone.
//!
//! Borders belong to the owner of the large page, as the frame does that leads from a part to its head. For a walk below a small page
//! they are beside it. The second field of all links is used thus:
//!
//! | node | `slot` | `record` | `address` |
//! |---|---|---|---|
//! | record of the large page | | the end | |
//! | start | leads to the end | first head, else the end | its tag |
//! | head | leads to the start | next head, else the end | its tag, the part |
//! | end | | the start | its tag, flags, the frame |

use super::{LargePage, Node, NodeSlot, NodeTable, SPACE_SHIFT, Slabs};
use crate::mem::pool::{Frame, Pool};
use core::ptr;

/// Tags of borders in their addresses.
const START: u64 = 1;
const END: u64 = 2;
const HEAD: u64 = 3;
const TAG: u64 = 3;

/// Flag of the end: a walk is under way below the large page, so whatever is added goes right behind that.
const SUSPENDED: u64 = 1 << 2;

/// Flag of the end: heads were taken out already, so the index leads nowhere.
const DISSOLVING: u64 = 1 << 3;

/// First bit of the frame's address in that of the end, and of the part in that of a head.
const REST_SHIFT: u32 = 12;

/// Index of a large page, known by its end.
#[derive(Clone, Copy)]
pub struct Index(&'static Node);

/// Border in the list of a tree.
#[derive(Clone, Copy)]
pub enum Border {
    /// First border of an index.
    Start(Index),
    /// Head of a part's mappings.
    Head(Index, u64),
    /// Last border of an index.
    End(Index),
}

impl Node {
    /// The node as a border, if it is one. Only they are in a tree of memory without an entry.
    #[inline(always)]
    pub fn border(&self) -> Option<Border> {
        let is_border = self.entry.get().is_none() && self.kind.get() >> SPACE_SHIFT == 0;
        if is_border { Some(self.border_kind()) } else { None }
    }

    fn border_kind(&self) -> Border {
        let behind_slot = || self.slot.get().and_then(|slot| slot.get()).expect("a border leads to another");
        match self.address.get() & TAG {
            START => Border::Start(Index(behind_slot())),
            HEAD => Border::Head(Index(behind_slot().end_of_start()), self.address.get() >> REST_SHIFT),
            _ => Border::End(Index(self.start_of_end().end_of_start())),
        }
    }

    fn end_of_start(&self) -> &'static Node {
        self.slot.get().and_then(|slot| slot.get()).expect("a start leads to the end")
    }

    fn start_of_end(&self) -> &'static Node {
        self.record.get().expect("an end leads to the start")
    }

    fn border_behind(&self) -> &'static Node {
        self.record.get().expect("a border leads to the next")
    }

    /// Fills in a border, just cut, that stands directly below a large page.
    fn fill_border(
        &self,
        large: LargePage,
        address: u64,
        slot: Option<&'static NodeSlot>,
        record: &'static Node,
    ) {
        self.entry.set(None);
        self.slot.set(slot);
        self.address.set(address);
        self.kind.set(large.kind.get() + 1);
        self.record.set(Some(record));
    }
}

impl Index {
    /// Last border.
    pub fn end(self) -> &'static Node {
        self.0
    }

    /// First border.
    pub fn start(self) -> &'static Node {
        self.0.start_of_end()
    }

    fn frame(self) -> Frame {
        Frame(self.0.address.get() >> REST_SHIFT << REST_SHIFT)
    }

    fn slot(self, pool: &Pool, part: u64) -> &'static NodeSlot {
        &pool.at::<NodeTable>(self.frame()).0[part as usize]
    }

    /// Node behind which a walk comes back into the mappings of a part: the last of them, or the head, or, if there never was one,
    /// the start.
    pub fn last_of(self, pool: &Pool, part: u64) -> &'static Node {
        match self.slot(pool, part).get() {
            Some(head) => head.border_behind().before().expect("the head is before the next"),
            None => self.start(),
        }
    }

    fn flag(self, flag: u64) -> bool {
        self.0.address.get() & flag != 0
    }

    fn set_flag(self, flag: u64) {
        self.0.address.set(self.0.address.get() | flag);
    }

    /// Whether all mappings between the borders are behind the heads of their parts.
    pub fn is_usable(self) -> bool {
        !self.flag(DISSOLVING)
    }

    /// Whether nothing is added between the borders.
    pub fn is_suspended(self) -> bool {
        self.flag(SUSPENDED | DISSOLVING)
    }

    /// Begins a walk back from the end: whatever is added from now on stands where the walk comes last.
    pub fn suspend(self) {
        self.set_flag(SUSPENDED);
    }

    /// Ends a walk that has come back to the large page.
    pub fn resume(self) {
        self.0.address.set(self.0.address.get() & !SUSPENDED);
    }
}

impl LargePage {
    /// Index of what was mapped out of the page, if there is one.
    pub fn index(self) -> Option<Index> {
        self.record().record.get().map(Index)
    }

    /// Node behind which a mapping of a part is to be put, if there is one already.
    pub fn place_of(self, pool: &Pool, part: u64) -> Option<&'static Node> {
        let index = self.index()?;
        if index.is_suspended() { Some(self.0) } else { index.slot(pool, part).get() }
    }

    /// Node behind which a mapping of a part is to be put. `None` if the page's owner cannot pay for the index.
    pub fn ensure_place_of(self, pool: &Pool, part: u64) -> Option<&'static Node> {
        let index = match self.index() {
            Some(index) => index,
            None => self.add_index(pool)?,
        };
        match self.place_of(pool, part) {
            Some(place) => Some(place),
            None => self.add_head(pool, index, part),
        }
    }

    fn add_index(self, pool: &Pool) -> Option<Index> {
        let task = self.task();
        let (start, end) = task.slabs.take_two(pool, task)?;
        let Some(frame) = task.take_zeroed_frame(pool) else {
            Slabs::give_back(pool, start);
            Slabs::give_back(pool, end);
            return None;
        };
        let leads_to_end = &self.record().record;
        start.fill_border(self, START, Some(leads_to_end), end);
        end.fill_border(self, END | frame.0, None, start);
        self.link_behind(end);
        self.link_behind(start);
        leads_to_end.set(Some(end));
        Some(Index(end))
    }

    fn add_head(self, pool: &Pool, index: Index, part: u64) -> Option<&'static Node> {
        let head = self.task().slabs.take(pool, self.task())?;
        let start = index.start();
        let leads_to_start = &index.0.record;
        head.fill_border(self, HEAD | part << REST_SHIFT, Some(leads_to_start), start.border_behind());
        start.record.set(Some(head));
        start.link_behind(head);
        index.slot(pool, part).set(Some(head));
        Some(head)
    }

    /// Makes `child` a child that stands behind `place`, which is where [`LargePage::ensure_place_of`] said.
    #[inline(always)]
    pub fn add_child_behind(self, place: &'static Node, child: &'static Node) {
        child.kind.set(self.kind.get() + 1);
        place.link_behind(child);
    }

    /// Takes the index out of the list, `most` heads at a time; all mappings stay where they are. True when it is gone.
    pub fn dissolve_index(self, pool: &Pool, most: usize) -> bool {
        let Some(index) = self.index() else { return true };
        index.set_flag(DISSOLVING);
        let (start, end) = (index.start(), index.end());
        for _ in 0..most {
            let first = start.border_behind();
            if ptr::eq(first, end) {
                self.record().record.set(None);
                for border in [start, end] {
                    border.unlink();
                }
                self.task().give_back_zeroed_frame(pool, index.frame());
                Slabs::give_back(pool, start);
                Slabs::give_back(pool, end);
                return true;
            }
            start.record.set(first.record.get());
            index.slot(pool, first.address.get() >> REST_SHIFT).set(None);
            first.unlink();
            Slabs::give_back(pool, first);
        }
        false
    }

    /// Asserts the promises of the index, and returns its borders from the end on.
    pub fn check_index(self, pool: &Pool) -> impl Iterator<Item = &'static Node> {
        let index = self.index();
        if let Some(index) = index.filter(|index| index.is_usable()) {
            let mut part = None;
            let mut next = index.start().next();
            while let Some(node) = next.filter(|node| !ptr::eq(*node, index.end())) {
                match (node.border(), node.entry(), part) {
                    (Some(Border::Head(_, number)), ..) => part = Some(number),
                    (None, Some(entry), Some(number)) => {
                        let frame = self.frame() + number * abi::PAGE_SIZE;
                        assert_eq!(crate::arch::pte::address(entry.get()), frame, "behind a wrong head");
                    }
                    _ => assert!(node.is_bookmark(), "something between two borders that belongs elsewhere"),
                }
                assert!(node.depth() > self.depth());
                next = node.next();
            }
            let slots = pool.at::<NodeTable>(index.frame()).0.iter().filter(|slot| slot.get().is_some());
            assert_eq!(slots.count(), index.borders().count() - 2, "heads that the index does not know");
        }
        index.into_iter().flat_map(Index::borders)
    }
}

impl Index {
    /// The end, the start, and the heads.
    fn borders(self) -> impl Iterator<Item = &'static Node> {
        let others = core::iter::successors(Some(self.start()), move |border| {
            Some(border.border_behind()).filter(|next| !ptr::eq(*next, self.0))
        });
        core::iter::once(self.0).chain(others)
    }
}
