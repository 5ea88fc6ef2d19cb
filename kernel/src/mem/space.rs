//! Map, grant and flush: how spaces are built out of other spaces (rows C2, C3, C4).
//!
//! The four kinds of space work alike: a place (a last-level page-table entry with its node slot, or a slot in a
//! table of ports, lines or doors) leads to the node of its mapping. Flush of a page walks its subtree ([`super::walk`]); map puts a
//! child behind the giver's node; grant puts the receiver's node in the giver's place.
//!
//! Memory is walked in extents: at an address there is a hole up to another address, a last-level table, a large page, or part of one
//! ([`table::Found`]). In tables, neighbours are handled as runs ([`super::run`]) as long as they are simple.
//!
//! The model is Appendix A of the 1995 paper; `tests` hold this code against it. A mapping replaces any former one
//! (the model's *replace*: flush, then set), which also is why no cycle can arise.

pub use super::numbers::{
    ensure_bitmap, has_tables as has_small, holds_interrupt, holds_port, release as release_small,
};
pub use super::small::map_single;

use super::at::{At, frames};
use super::budget::{Again, Stop};
use super::doors;
use super::large::{self, Part};
use super::numbers;
use super::plan::Plan;
use super::recent::Leaf;
use super::run;
use super::small;
use super::step::Step;
use super::table::{self, Found};
use super::walk::Walk;
use crate::arch::pte;
use crate::kernel::Kernel;
use crate::object::TaskRef;
use abi::{Fpage, PAGE_SIZE, Rights, Space};

/// Progress of a map item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of bytes, ports or lines that are done.
    pub done: u64,
    /// Whether everything so far could be mapped.
    pub whole: bool,
    /// Whether a walk below a page was broken off.
    pub walking: bool,
    /// Whether nothing was done in this step yet, so that work that takes a whole one may begin.
    pub fresh: bool,
}

impl Progress {
    /// Progress of an item of which nothing is done.
    pub const START: Progress = Progress { done: 0, whole: true, walking: false, fresh: true };

    /// Progress of an item of which nothing is done, in a step in which something else was.
    pub const START_BEHIND: Progress = Progress { fresh: false, ..Progress::START };

    /// Progress from the word that [`Progress::noted`] gave for `done`.
    pub fn resumed(noted: u64, whole: bool) -> Progress {
        Progress { done: noted >> 1, whole, walking: noted & 1 != 0, fresh: true }
    }

    /// Whether all of a plan is carried out.
    #[inline(always)]
    pub fn is_done(self, plan: Plan) -> bool {
        self.whole && self.is_over(&plan)
    }

    /// Whether nothing of a plan is left to be done.
    #[inline(always)]
    fn is_over(self, plan: &Plan) -> bool {
        self.done >> plan.log2 != 0
    }

    /// Progress in one word.
    pub fn noted(self) -> u64 {
        self.done << 1 | self.walking as u64
    }
}

/// Begins to carry out a plan about several pages with a run of them. `None` if nothing could be done.
#[inline(always)]
pub fn map_run(k: &Kernel, plan: &Plan, tasks: (TaskRef, TaskRef), mut budget: usize) -> Option<Progress> {
    if !is_range(plan) {
        return None;
    }
    let mapped = run::map(k, plan, tasks, 0, &mut budget);
    if mapped.is_denied {
        return Some(Progress { done: 1 << plan.log2, whole: false, ..Progress::START });
    }
    let done = mapped.bytes();
    (done != 0).then_some(Progress { done, fresh: false, ..Progress::START })
}

/// Carries out a plan from `progress` on, and counts that up. It is not `whole` any more when the receiver, or σ0
/// as the giver, cannot pay; the rest is then left out.
#[inline(always)]
pub fn map(
    k: &Kernel,
    plan: Plan,
    from: TaskRef,
    to: TaskRef,
    progress: &mut Progress,
    budget: &mut usize,
) -> Result<(), Again> {
    // The beginning may have been denied.
    if progress.is_over(&plan) {
        return Ok(());
    }
    // Most are one run.
    if is_range(&plan) {
        let mapped = run::map(k, &plan, (from, to), progress.done, budget);
        let bytes = mapped.bytes();
        progress.done += bytes;
        if mapped.is_denied {
            progress.whole = false;
            return Ok(());
        }
        if progress.is_over(&plan) {
            return Ok(());
        }
        progress.fresh &= bytes == 0;
        if *budget == 0 {
            progress.fresh = true;
            return Err(Again);
        }
    }
    map_extents(k, &plan, (from, to), progress, budget)
}

/// Whether a plan is about several pages.
fn is_range(plan: &Plan) -> bool {
    plan.space == Space::Memory && plan.log2 > 12
}

/// Price of a new frame, in units: clearing it takes about as long as three pages.
const FRAME_UNITS: usize = 3;

#[inline(always)]
fn map_extents(
    k: &Kernel,
    plan: &Plan,
    tasks: (TaskRef, TaskRef),
    progress: &mut Progress,
    budget: &mut usize,
) -> Result<(), Again> {
    let mut step = Step::new(k, *budget, tasks.0);
    (step.is_fresh, step.walking) = (progress.fresh, progress.walking);
    let result = loop {
        if progress.is_over(plan) {
            break Ok(());
        }
        match map_extent(&mut step, plan, tasks, progress.done) {
            Ok(done) => progress.done += done,
            Err(stop) => break Err(stop),
        }
        if is_range(plan) && !progress.is_over(plan) {
            let mapped = run::map(k, plan, tasks, progress.done, &mut step.budget);
            progress.done += mapped.bytes();
            // Up to two walks and the ends of two slabs, however short the run was.
            step.charge(2);
            if mapped.is_denied {
                break Err(Stop::NoMemory);
            }
        }
    };
    *budget = step.budget;
    match result {
        Err(Stop::Again) => {
            (progress.fresh, progress.walking) = (true, step.walking);
            return Err(Again);
        }
        Err(Stop::NoMemory) => progress.whole = false,
        Ok(()) => {}
    }
    Ok(())
}

/// Maps the next extent, from byte (number) `done` of the plan on. Returns how many bytes, or numbers, are done.
#[inline(never)]
fn map_extent(step: &mut Step, plan: &Plan, tasks: (TaskRef, TaskRef), done: u64) -> Result<u64, Stop> {
    let from = At { task: tasks.0, address: plan.from + done };
    let to = At { task: tasks.1, address: plan.to + done };
    let left = (1 << plan.log2) - done;
    if plan.space == Space::Memory && to.address >= abi::USER_END {
        return Ok(left);
    }
    // This takes as long as two steps of a flush: up to three walks, and a mapping that is replaced.
    step.begin(1)?;
    let before = frames(from.task, to.task);
    let result = match plan.space {
        Space::Memory => map_memory(step, (from, to), plan.rights, left),
        Space::Door => {
            doors::map(step.k(), from, to, plan.rights, &mut step.budget).map(|done| done.min(left))
        }
        space => numbers::map(step, space, (from, to), plan.rights).map(|()| 1),
    };
    step.charge(1);
    let after = frames(from.task, to.task);
    if after > before {
        step.charge(FRAME_UNITS * (after - before));
    }
    step.is_fresh = false;
    result
}

/// Maps a large page if that is possible with the `left` bytes that are still to be mapped, else a small one.
fn map_memory(step: &mut Step, (from, to): (At, At), rights: Rights, left: u64) -> Result<u64, Stop> {
    if left >= large::SIZE
        && (from.address | to.address).is_multiple_of(large::SIZE)
        && to.address + large::SIZE <= abi::USER_END
        && let Found::Large { entry, level, node } = from.find(step)
        && large::map(step, large::Giver { at: from, entry, level, node }, to, rights)?
    {
        return Ok(large::SIZE);
    }
    small::map(step, from, to, rights)
}

/// Pages, ports, lines or identifiers that are taken back.
#[derive(Clone, Copy)]
pub struct Flush {
    /// Task from which others have them.
    pub task: TaskRef,
    /// Their address in its space, and the rights to take.
    pub page: Fpage,
    /// Whether the task loses them too.
    pub own: bool,
}

/// Bit that [`flush`] adds to the status: a walk below a page was broken off.
const WALKING: u64 = 1 << 8;
/// First bit of the number plus one of the 2 MiB whose large page was dealt with; small ones may be in its place.
const PASSED: u32 = 12;
/// Bits of the status for the user.
const STATUS: u64 = 3;

/// Takes rights back. Starts at address (number) `at` and counts it up; collects status bits, and beside them the progress. There may
/// be no memory if part of a large page of the task's own is to be taken away; then nothing has happened.
#[inline(always)]
pub fn flush(
    k: &Kernel,
    what: Flush,
    at: &mut u64,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let page = what.page;
    if page.space() == Space::Memory && page.rights().has(Rights::R) {
        if page.log2() == 12 {
            if flush_single_apart(k, what, status).is_some() {
                return Ok(());
            }
        } else if flush_remembered(k, what, at, status, budget) {
            return Ok(());
        }
    }
    flush_extents(k, what, at, status, budget)
}

#[inline(never)]
fn flush_single_apart(k: &Kernel, what: Flush, status: &mut u64) -> Option<()> {
    flush_single(k, what, status)
}

/// Takes back one page whose place a task still remembers, and which one other got from it at most. `None` if there is more to be done.
#[inline(always)]
pub fn flush_single(k: &Kernel, what: Flush, status: &mut u64) -> Option<()> {
    let leaf = what.task.recent.leaf(what.page.base())?;
    let Some(node) = leaf.slot.get() else { return Some(()) };
    if let Some(below) = node.below(None) {
        *status |= small::erase(k, below, below.entry()?);
        if node.below(None).is_some() {
            return None;
        }
    }
    if what.own && !node.is_of_machine() {
        *status |= small::erase(k, node, leaf.entry);
    }
    *status &= STATUS;
    Some(())
}

/// Pages that a task still remembers the places of, as far as they are a run. True if these are all.
#[inline(always)]
fn flush_remembered(k: &Kernel, what: Flush, at: &mut u64, status: &mut u64, budget: &mut usize) -> bool {
    let end = what.page.base() + (1 << what.page.log2());
    let first = (*at).max(what.page.base());
    if what.task.recent.leaf(first).is_none() {
        return false;
    }
    *at = first + PAGE_SIZE * flush_run(k, what, first, status, budget);
    if *at != end {
        return false;
    }
    *status &= STATUS;
    true
}

/// Takes back a run of pages. Returns how many.
#[inline(always)]
fn flush_run(k: &Kernel, what: Flush, address: u64, status: &mut u64, budget: &mut usize) -> u64 {
    let at = At { task: what.task, address };
    let most = (what.page.base() + (1 << what.page.log2()) - address) / PAGE_SIZE;
    if what.own {
        run::flush::<true>(k, at, most, status, budget)
    } else {
        run::flush::<false>(k, at, most, status, budget)
    }
}

#[inline(never)]
fn flush_extents(
    k: &Kernel,
    what: Flush,
    at: &mut u64,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let Flush { task, page, own } = what;
    let mut step = Step::new(k, *budget, task);
    (step.status, step.walking) = (*status & STATUS, *status & WALKING != 0);
    let mut passed = *status >> PASSED;
    let result = match page.space() {
        Space::Memory => flush_memory(&mut step, what, at, &mut passed),
        Space::Door => doors::flush(k, task, page, own, at, &mut step.budget),
        _ => numbers::flush(&mut step, task, (page, own), at),
    };
    *budget = step.budget;
    *status = step.status;
    if result.is_err() {
        *status |= passed << PASSED | if step.walking { WALKING } else { 0 };
    }
    result
}

fn flush_memory(step: &mut Step, what: Flush, at: &mut u64, passed: &mut u64) -> Result<(), Stop> {
    let end = what.page.base() + (1 << what.page.log2());
    *at = (*at).max(what.page.base());
    while *at < end {
        *at = flush_extent(step, what, At { task: what.task, address: *at }, passed)?.min(end);
    }
    Ok(())
}

/// Takes back the pages at one address. Returns the next one.
fn flush_extent(step: &mut Step, what: Flush, place: At, passed: &mut u64) -> Result<u64, Stop> {
    let found = place.find(step);
    if let Found::Leaf(leaf) = found
        && leaf.entry.get() != 0
        && what.page.rights().has(Rights::R)
        && what.task.pages.get() > 1
    {
        let pages = flush_run(step.k(), what, place.address, &mut step.status, &mut step.budget);
        if pages != 0 {
            step.is_fresh = false;
            return Ok(place.address + pages * PAGE_SIZE);
        }
    }
    step.begin(1)?;
    let next = flush_found(step, what, (place, found), passed)?;
    step.is_fresh = false;
    Ok(next)
}

/// Takes back pages that are no simple run. Returns the next address.
fn flush_found(
    step: &mut Step,
    what: Flush,
    (place, found): (At, Found),
    passed: &mut u64,
) -> Result<u64, Stop> {
    let Flush { task, page, own } = what;
    let (at, end) = (place.address, page.base() + (1 << page.log2()));
    let region = at / large::SIZE + 1;
    match found {
        Found::Leaf(leaf) if leaf.entry.get() != 0 => flush_leaf(step, what, leaf).map(|()| at + PAGE_SIZE),
        // The task's only page is gone: nothing else is left to find.
        Found::Leaf(_) if task.pages.get() == 0 && !task.is_sigma0.get() => Ok(end),
        Found::Leaf(_) | Found::Nothing { .. } => {
            let next = table::next(step.pool(), task, at, end, &mut step.budget);
            // Two walks were made, to the hole and through it.
            step.charge(2);
            Ok(next)
        }
        Found::Part { leaf, .. } if *passed == region => {
            // Parts are done with: pages of their own are left.
            flush_leaf(step, what, leaf)?;
            let next = table::next_own(step.pool(), task, at);
            // Walks are longer here than elsewhere.
            step.charge(3 + ((next - at) / PAGE_SIZE) as usize / 16);
            Ok(next)
        }
        Found::Part { node, .. } => {
            large::flush(step, node, (page, own))?;
            *passed = region;
            Ok(at)
        }
        Found::Large { entry, node: Some(node), .. } => {
            large::flush(step, node, (page, own))?;
            *passed = region;
            let is_done = entry.get() == 0 || pte::is_large(entry.get());
            Ok(if is_done { region * large::SIZE } else { at })
        }
        // Nothing was handed on from a large page without a node, and only σ0 has them. The walk to it is longer than to others.
        Found::Large { level, .. } => {
            step.charge(1);
            Ok((at | ((1u64 << (12 + 9 * level)) - 1)) + 1)
        }
    }
}

/// Takes back a small page.
fn flush_leaf(step: &mut Step, what: Flush, leaf: Leaf) -> Result<(), Stop> {
    let Some(root) = leaf.slot.get() else { return Ok(()) };
    let own = what.own && !root.is_of_machine();
    Walk { root, part: Part::WHOLE, remove: what.page.rights(), own }.run(step)?;
    // To begin a walk and to end it, even if it meets nobody.
    step.charge(1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::pool::Pool;
    use crate::{arch, processor, sim};

    /// A page goes from σ0 to one task and on to another, is granted, and is taken back from all. Small enough for Miri.
    #[test]
    fn a_page_goes_on_and_comes_back() {
        arch::reset();
        let k = Kernel::new(Pool::for_tests(160), &crate::ipc::UPCALLS);
        let [sigma0, first, second] = core::array::from_fn(|_| crate::life::boot_task(&k));
        processor::set_current(crate::life::boot_thread(&k, sigma0, 1));
        sigma0.is_sigma0.set(true);
        sim::map_all_memory(&k, sigma0, 1);
        let send = |from: TaskRef, to: TaskRef, source, target, rights| {
            let plan = Plan { space: Space::Memory, from: source, to: target, log2: 12, rights };
            let mut progress = Progress::START;
            while map(&k, plan, from, to, &mut progress, &mut 16) == Err(Again) {}
            assert!(progress.whole && progress.done == PAGE_SIZE);
        };
        send(sigma0, first, 0x5000, 0x9000, Rights::RW);
        send(first, second, 0x9000, 0x7_0000_0000, Rights::RWX);
        send(second, second, 0x7_0000_0000, 0x8_0000_0000, Rights::R.or(Rights::GRANT));
        assert_eq!(sim::walk(&k.pool, first, 0x9008), Some((0x5008, Rights::RW)));
        assert_eq!(sim::walk(&k.pool, second, 0x7_0000_0000), None);
        assert_eq!(sim::walk(&k.pool, second, 0x8_0000_0000), Some((0x5000, Rights::R)));
        assert!(sim::touch(&k.pool, first, 0x9000, true));
        let (mut at, mut status) = (0, 0);
        let page = Fpage::memory(0x5000, 12, Rights::RWX);
        assert_eq!(
            flush(&k, Flush { task: sigma0, page, own: false }, &mut at, &mut status, &mut 16),
            Ok(())
        );
        assert_eq!(status, 3);
        for (task, address) in [(first, 0x9000), (second, 0x8_0000_0000)] {
            assert_eq!(sim::walk(&k.pool, task, address), None);
            assert_eq!(task.pages.get(), 0);
        }
    }
}
