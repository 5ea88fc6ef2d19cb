//! Where the fast path finds the port links of the running task: a top-level slot of its own in each task.

use crate::kernel::Kernel;
use crate::layout::PORT_LINKS;
use crate::mem::pool::{Frame, Words};
use crate::object::TaskRef;

/// Entries without the user bit: a table, and a page that is only read.
const TABLE: u64 = 1 << 1 | 1;
const PAGE: u64 = 1 << 63 | 1;

const SLOT: usize = (PORT_LINKS >> 39 & 511) as usize;

/// Shows a page of port links in a task, by three tables of zeroes. Nothing was there before.
pub fn show_ports(k: &Kernel, task: TaskRef, page: Frame, [third, second, first]: [Frame; 3]) {
    let entry = |table: Frame, index: usize| &k.pool.at::<Words>(table).0[index];
    entry(first, 0).set(page.0 | PAGE);
    entry(second, 0).set(first.0 | TABLE);
    entry(third, 0).set(second.0 | TABLE);
    entry(Frame(task.top.get()), SLOT).set(third.0 | TABLE);
}
