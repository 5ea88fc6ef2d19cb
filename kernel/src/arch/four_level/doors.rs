//! Door identifiers of the running task, as the fast path finds them: words behind a top-level slot that each task has for itself.
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

/// A table, after the address of the frame that holds it.
pub type Placed<'a> = (u64, &'a Table);

/// Gives a space its own tables for its first numbers, of the third, second and first level. Whatever was in them is
/// overwritten: they show no door yet. The caller forgets the space's translations.
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

/// Shows a page of words at `index` of the last-level table `first`. The caller forgets the page's translation.
pub fn show_page(first: &Table, index: usize, page: u64) {
    first[index].set(page | PAGE);
}

/// The page of words that the last-level table shows at an index; `None` if that is the page which all tasks share.
pub fn page(first: &Table, index: usize) -> Option<u64> {
    let value = first[index].get();
    (value != nowhere()[2]).then_some(pte::address(value))
}

/// Shows the shared page again at an index of the last-level table: no door.
pub fn hide_page(first: &Table, index: usize) {
    first[index].set(nowhere()[2]);
}

/// Takes a space's tables of identifiers out of it, before their frames are given back.
pub fn hide(top: &Table) {
    top[SLOT].set(0);
}
