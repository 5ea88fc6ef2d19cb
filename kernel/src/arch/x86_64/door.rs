//! Where the fast path finds the door identifiers of the running task: a top-level slot of its own in each task.
//!
//! There is a word for each of 2³² numbers. A task without doors sees the same page everywhere, by tables that all such
//! tasks share; a task with doors has tables of its own on the way to its first numbers, and shares the rest.

use super::paging::nowhere;
use super::{invalidate, pte, space};
use crate::kernel::Kernel;
use crate::layout::DOORS;
use crate::mem::pool::{Frame, Words};
use crate::object::TaskRef;
use abi::PAGE_SIZE;
use core::cell::Cell;

/// Entries without the user bit: a table, and a page.
const TABLE: u64 = 1 << 1 | 1;
const PAGE: u64 = 1 << 63 | 1 << 1 | 1;

const SLOT: usize = (DOORS >> 39 & 511) as usize;

/// Third-level entries that 2³² words of 8 bytes take.
pub const THIRD_ENTRIES: usize = 1 << (32 + 3 - 30);

fn entry(k: &Kernel, table: u64, index: usize) -> &'static Cell<u64> {
    &k.pool.at::<Words>(Frame(table)).0[index]
}

/// Gives a task tables of its own for its first numbers: those of the third, second and first level, in which
/// anything may be. They show nothing yet.
pub fn show_doors(k: &Kernel, task: TaskRef, [third, second, first]: [Frame; 3]) {
    let nowhere = nowhere();
    let fill = |table: Frame, len: usize, value: u64| {
        let words = &k.pool.at::<Words>(table).0;
        words.iter().enumerate().for_each(|(i, word)| word.set(if i < len { value } else { 0 }));
    };
    fill(third, THIRD_ENTRIES, nowhere[0]);
    fill(second, 512, nowhere[1]);
    fill(first, 512, nowhere[2]);
    entry(k, third.0, 0).set(second.0 | TABLE);
    entry(k, second.0, 0).set(first.0 | TABLE);
    entry(k, task.top.get(), SLOT).set(third.0 | TABLE);
    space::flush_space(task);
}

/// Shows a page of words as the `index`th of a task, whose last table is `first`.
pub fn show_door_page(k: &Kernel, task: TaskRef, first: Frame, index: usize, page: Frame) {
    entry(k, first.0, index).set(page.0 | PAGE);
    invalidate(task, DOORS + index as u64 * PAGE_SIZE);
}

/// The page of words that the last table shows at an index, if it is the task's own.
pub fn door_page(k: &Kernel, first: Frame, index: usize) -> Option<Frame> {
    let value = entry(k, first.0, index).get();
    (value != nowhere()[2]).then_some(Frame(pte::address(value)))
}

/// Shows nothing any more at an index.
pub fn hide_door_page(k: &Kernel, first: Frame, index: usize) {
    entry(k, first.0, index).set(nowhere()[2]);
}

/// The tables of a task that ends are about to be given back.
pub fn hide_doors(k: &Kernel, task: TaskRef) {
    entry(k, task.top.get(), SLOT).set(0);
}
