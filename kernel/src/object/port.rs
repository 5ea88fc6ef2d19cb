//! Port: a name for a thread that its holders cannot read, and that its owner can give to another thread (row P18).
//!
//! An experiment after section 7.1 of "Improving IPC by Kernel Design". A task that has to do with ports has one page:
//!
//! ```text
//! words 0–127    links: for each port that the task can call, the address of the entry behind it
//! words 128–255  the same entries as frame and offset, for code that does not load what it finds
//! words 256–511  entries: the uids to which the ports lead that the task has bound
//! ```
//!
//! The links of the running task lie at one address ([`layout::PORT_LINKS`]), where the fast path loads link and entry
//! without a check: a link to nowhere points to an address that is never mapped, and a task without ports has no page.
//! An entry's uid is compared with its thread's as always.
//!
//! A task's links lead to its own entries or to its chief's, and a chief ends after the tasks that it created. So no link
//! leads to a page that is gone.

use super::TaskRef;
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Words};
use crate::{arch, layout};
use abi::call::{PORT_ENTRIES, PORT_LINKS};
use abi::{Error, PAGE_SIZE, Uid};
use core::cell::Cell;

/// A task's port page, and the tables that show it; 0: none.
#[repr(C)]
pub struct Ports {
    page: Cell<u64>,
    tables: [Cell<u64>; 3],
}

impl Ports {
    /// How many frames they are.
    pub fn frames(&self) -> u32 {
        [&self.page].into_iter().chain(&self.tables).filter(|frame| frame.get() != 0).count() as u32
    }
}

const SHADOWS_AT: u64 = PORT_LINKS;
const ENTRIES_AT: u64 = 2 * PORT_LINKS;

const _: () = assert!((ENTRIES_AT + PORT_ENTRIES) * 8 == PAGE_SIZE && PORT_LINKS.is_power_of_two());

fn word(k: &Kernel, frame: Frame, index: u64) -> &'static Cell<u64> {
    &k.pool.at::<Words>(frame).0[index as usize]
}

/// The port page of a task, made if there is none.
fn page(k: &Kernel, task: TaskRef) -> Option<Frame> {
    let ports = &task.links;
    if ports.page.get() != 0 {
        return Some(Frame(ports.page.get()));
    }
    let frame = task.take_zeroed_frame(&k.pool)?;
    for table in &ports.tables {
        match task.take_zeroed_frame(&k.pool) {
            Some(frame) => table.set(frame.0),
            None => {
                give_back_tables(k, task);
                task.give_back_zeroed_frame(&k.pool, frame);
                return None;
            }
        }
    }
    (0..PORT_LINKS).for_each(|index| word(k, frame, index).set(layout::NO_PORT));
    ports.page.set(frame.0);
    arch::show_ports(k, task, frame, ports.tables.each_ref().map(|table| Frame(table.get())));
    Some(frame)
}

/// Binds port `number` of `owner` to a thread, and lets `task` call it as `index`. False if only the owner's page was made, and
/// `task` has none yet.
pub fn set(
    k: &Kernel,
    (owner, number): (TaskRef, u64),
    thread: Uid,
    (task, index): (TaskRef, u64),
) -> Result<bool, Error> {
    if number >= PORT_ENTRIES || index >= PORT_LINKS {
        return Err(Error::BadArgument);
    }
    let lacks = |task: TaskRef| task.links.page.get() == 0;
    let is_first_step = owner != task && lacks(owner) && lacks(task);
    let entries = page(k, owner).ok_or(Error::NoMemory)?;
    if is_first_step {
        return Ok(false);
    }
    let links = page(k, task).ok_or(Error::NoMemory)?;
    let entry = word(k, entries, ENTRIES_AT + number);
    entry.set(thread.0);
    word(k, links, index).set(core::ptr::from_ref(entry) as u64);
    word(k, links, SHADOWS_AT + index).set(entries.0 + ENTRIES_AT + number);
    Ok(true)
}

/// The thread behind a port of a task, or nil: what the fast path does, with checks.
pub fn thread(k: &Kernel, task: TaskRef, index: u64) -> Uid {
    let page = task.links.page.get();
    if page == 0 {
        return Uid::NIL;
    }
    match word(k, Frame(page), SHADOWS_AT + index % PORT_LINKS).get() {
        0 => Uid::NIL,
        at => Uid(word(k, Frame(at & !(PAGE_SIZE - 1)), at % PAGE_SIZE).get()),
    }
}

fn give_back_tables(k: &Kernel, task: TaskRef) {
    for table in &task.links.tables {
        if table.get() != 0 {
            task.give_back_frame(&k.pool, Frame(table.replace(0)));
        }
    }
}

/// Gives back what a task's ports occupy. No translation leads there any more.
pub fn release(k: &Kernel, task: TaskRef) {
    if task.links.page.get() != 0 {
        give_back_tables(k, task);
        task.give_back_frame(&k.pool, Frame(task.links.page.replace(0)));
    }
}
