//! Tasks on the simulated machine, for tests: a user's accesses, σ0's memory, and the hostile look at the caches.
//!
//! Part of the library on the host alone; nothing of it ships.

use crate::arch::{pte, tlb};
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Pool, Words};
use crate::mem::table::{self, Found};
use crate::object::TaskRef;
use crate::processor;
use abi::Rights;

/// Tells the machine where the tables of spaces lie: in the kernel's pool, which has to stay as long as the machine.
pub fn attach(pool: &Pool) {
    let start = pool.start();
    // SAFETY: the pool's memory is never given back, and all that the kernel keeps there are cells.
    unsafe { tlb::attach(pool.pointer(start), start.0, pool.frames()) };
}

/// Physical address and rights that the processor's page walk finds.
pub fn walk(pool: &Pool, task: TaskRef, address: u64) -> Option<(u64, Rights)> {
    let entry = match table::find(pool, task, address) {
        Found::Nothing { .. } => return None,
        Found::Large { entry, level, .. } => {
            let size = 1u64 << (12 + 9 * level);
            return Some((
                (pte::address(entry.get()) & !(size - 1)) + address % size,
                pte::rights(entry.get()),
            ));
        }
        Found::Leaf(leaf) | Found::Part { leaf, .. } => leaf.entry,
    };
    let value = entry.get();
    pte::is_present(value).then(|| (pte::address(value) | address & 0xfff, pte::rights(value)))
}

/// Accesses memory as a user: sets the status bits that the processor would set. False if it faults.
pub fn touch(pool: &Pool, task: TaskRef, address: u64, write: bool) -> bool {
    let entry = match table::find(pool, task, address) {
        Found::Leaf(leaf) | Found::Part { leaf, .. } => leaf.entry,
        Found::Large { entry, node: Some(_), .. } => table::seen(pool, task, address).unwrap_or(entry),
        _ => return false,
    };
    let rights = pte::rights(entry.get());
    let allowed = rights.has(if write { Rights::RW } else { Rights::R });
    if allowed {
        entry.set(pte::touched(entry.get(), write));
    }
    allowed
}

/// Maps memory 1:1 for the first task, as boot does: `gib` pages of 1 GiB from 0 on.
pub fn map_all_memory(k: &Kernel, task: TaskRef, gib: u64) {
    for i in 0..gib {
        let entry = table::ensure_level(&k.pool, task, i << 30, 2).expect("memory for a table");
        entry.set(pte::large(i << 30, Rights::RWX, false));
    }
}

/// Checks the processor's caches for what they must not hold, while no kernel code runs: see [`tlb::audit`].
pub fn audit(k: &Kernel) -> Result<(), String> {
    let top = |task: TaskRef| &k.pool.at::<Words>(Frame(task.top.get())).0;
    let can_run = |task: &TaskRef| !task.is_dying() || task.thread_count.get() > 0;
    let spaces = k.tasks().filter(can_run);
    let spaces = spaces.map(|task| (task, tlb::Space { word: task.space.get(), top: top(task) }));
    tlb::audit(processor::current().hot.space.get(), spaces)
}
