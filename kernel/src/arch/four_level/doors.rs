//! Where the fast path finds the door identifiers of the running task: a top-level slot of its own in each task.
//!
//! There is a word for each of 2³² numbers. A task without doors sees the same page everywhere, by tables that all such
//! tasks share; a task with doors has tables of its own on the way to its first numbers, and shares the rest.

use super::{DOORS_THIRD_ENTRIES, Table, pte};
use crate::arch::isa::paging::nowhere;
use crate::layout::DOORS;

/// Entries without the user bit: a table, and a page.
const TABLE: u64 = 1 << 1 | 1;
const PAGE: u64 = 1 << 63 | 1 << 1 | 1;

const SLOT: usize = (DOORS >> 39 & 511) as usize;

/// A table and the frame that it is.
pub type Placed<'a> = (u64, &'a Table);

/// Gives a space tables of its own for its first numbers: those of the third, second and first level, in which
/// anything may be. They show nothing yet. The caller forgets the space's translations.
pub fn show(top: &Table, [third, second, first]: [Placed; 3]) {
    let nowhere = nowhere();
    let fill = |table: &Table, len: usize, value: u64| {
        table.iter().enumerate().for_each(|(i, word)| word.set(if i < len { value } else { 0 }));
    };
    fill(third.1, DOORS_THIRD_ENTRIES, nowhere[0]);
    fill(second.1, 512, nowhere[1]);
    fill(first.1, 512, nowhere[2]);
    third.1[0].set(second.0 | TABLE);
    second.1[0].set(first.0 | TABLE);
    top[SLOT].set(third.0 | TABLE);
}

/// Shows a page of words as the `index`th, in the last table `first`. The caller forgets the page's translation.
pub fn show_page(first: &Table, index: usize, page: u64) {
    first[index].set(page | PAGE);
}

/// The page of words that the last table shows at an index, if it is the task's own.
pub fn page(first: &Table, index: usize) -> Option<u64> {
    let value = first[index].get();
    (value != nowhere()[2]).then_some(pte::address(value))
}

/// Shows nothing any more at an index.
pub fn hide_page(first: &Table, index: usize) {
    first[index].set(nowhere()[2]);
}

/// Takes a space's tables out of it; they are about to be given back.
pub fn hide(top: &Table) {
    top[SLOT].set(0);
}
