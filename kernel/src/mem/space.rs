//! Map, grant and flush: how spaces are built out of other spaces (rows C2, C3, C4).
//!
//! The four kinds of space work alike: a place (a last-level page-table entry with its shadow, or a place in a
//! table of ports or lines) refers to the node of its mapping. Flush of a page walks its subtree; map puts a child
//! behind the giver's node; grant puts the receiver's node in the giver's place.
//!
//! The model is Appendix A of the 1995 paper; `tests` hold this code against it. A mapping replaces whatever was there
//! before (the model's *replace*: flush, then set), which also is why no cycle can arise.
//!
//! Every loop has a budget, counted in pages and nodes touched; when it is used up the caller looks for interrupts
//! and calls again. Nothing is lost or done twice.

use super::budget::{Again, Stop, again};
use super::plan::Plan;
use super::pool::{Frame, Pool, Words};
use super::run;
use super::table::{self, Found, Leaf};
use super::{doors, large};
use crate::arch::{self, pte};
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::{Mark, Node, NodeSlot, NodeTable};
use abi::{Fpage, PAGE_SIZE, Rights, Space};
use core::cell::Cell;
use core::num::NonZero;

/// Where σ0's own program lies; it cannot be handed on. Below it, σ0's addresses are physical addresses.
pub const SIGMA0_PROGRAM: u64 = 0x7000_0000_0000;

/// Why there is nothing to be mapped at a place of the giver's. (One word, since the way of every page leads past it.)
pub struct Gap {
    /// It has nothing before this address; `None`: it has, and cannot pay for a table or a node.
    until: Option<NonZero<u64>>,
}

impl Gap {
    /// The giver cannot pay.
    pub const NO_MEMORY: Gap = Gap { until: None };

    /// It has nothing before this address.
    pub fn hole(until: u64) -> Gap {
        Gap { until: NonZero::new(until) }
    }

    /// A hole is left out.
    pub fn skip(self) -> Result<(), Stop> {
        self.until.map(drop).ok_or(Stop::NoMemory)
    }
}

/// How far a map item is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes, ports or lines handled.
    pub done: u64,
    /// Whether everything so far could be mapped.
    pub whole: bool,
    /// A walk below a page was broken off.
    pub walking: bool,
    /// Nothing was done in this step yet, so there is room for what takes a whole one.
    pub fresh: bool,
}

impl Progress {
    /// Nothing is done.
    pub const START: Progress = Progress { done: 0, whole: true, walking: false, fresh: true };

    /// The same behind something else in this step.
    pub const START_BEHIND: Progress = Progress { fresh: false, ..Progress::START };

    /// From what [`Progress::noted`] gave for `done`.
    pub fn resumed(noted: u64, whole: bool) -> Progress {
        Progress { done: noted >> 1, whole, walking: noted & 1 != 0, fresh: true }
    }

    /// How far it is, in a word.
    pub fn noted(self) -> u64 {
        self.done << 1 | self.walking as u64
    }
}

fn unit(space: Space) -> u64 {
    match space {
        Space::Memory => PAGE_SIZE,
        Space::Port | Space::Interrupt | Space::Door => 1,
    }
}

/// Ports and lines lie in small tables of 512 node places; a task's port table leads to up to 128 of them.
fn small_place(
    pool: &Pool,
    task: TaskRef,
    space: Space,
    number: u64,
    create: bool,
) -> Option<&'static NodeSlot> {
    let root = if space == Space::Port { &task.ports } else { &task.interrupts };
    let frame = |cell: &Cell<u64>| -> Option<Frame> {
        if cell.get() == 0 && create {
            cell.set(task.take_zeroed_frame(pool)?.0);
        }
        (cell.get() != 0).then_some(Frame(cell.get()))
    };
    let mut table = frame(root)?;
    if space == Space::Port {
        table = frame(&pool.at::<Words>(table).0[number as usize / 512])?;
    }
    Some(&pool.at::<NodeTable>(table).0[number as usize % 512])
}

/// Whether `task` holds an interrupt line.
pub fn holds_interrupt(k: &Kernel, task: TaskRef, line: u8) -> bool {
    holds(k, task, Space::Interrupt, line as u64)
}

/// Whether `task` holds a port.
pub fn holds_port(k: &Kernel, task: TaskRef, port: u16) -> bool {
    holds(k, task, Space::Port, port as u64)
}

fn holds(k: &Kernel, task: TaskRef, space: Space, number: u64) -> bool {
    task.is_sigma0.get()
        || small_place(&k.pool, task, space, number, false).is_some_and(|slot| slot.get().is_some())
}

/// The giver's page and its node.
#[inline(always)]
pub fn source_page(k: &Kernel, task: TaskRef, address: u64) -> Result<(Leaf, &'static Node), Gap> {
    source_at(k, task, address, table::find(&k.pool, task, address))
}

/// The same where it is known what is there.
#[inline(always)]
fn source_at(k: &Kernel, task: TaskRef, address: u64, found: Found) -> Result<(Leaf, &'static Node), Gap> {
    let leaf = match found {
        Found::Nothing { until } => return Err(Gap::hole(until)),
        Found::Leaf(leaf) => leaf,
        Found::Large { node: None, .. } => table::ensure(&k.pool, task, address).ok_or(Gap::NO_MEMORY)?,
        // These are the business of [`large::map`].
        Found::Large { .. } | Found::Part { .. } => return Err(Gap::hole(address + PAGE_SIZE)),
    };
    match leaf.slot.get() {
        Some(node) => Ok((leaf, node)),
        None => {
            root(k, task, Space::Memory, address, leaf.entry_if_present(), leaf.slot).map(|node| (leaf, node))
        }
    }
}

/// The giver's place and node for one port or line.
fn source_small(
    k: &Kernel,
    task: TaskRef,
    space: Space,
    number: u64,
) -> Result<(&'static NodeSlot, &'static Node), Gap> {
    let is_sigma0 = task.is_sigma0.get();
    let slot = small_place(&k.pool, task, space, number, is_sigma0).ok_or(if is_sigma0 {
        Gap::NO_MEMORY
    } else {
        Gap::hole(number + 1)
    })?;
    let node = match slot.get() {
        Some(node) => node,
        None => root(k, task, space, number, None, slot)?,
    };
    Ok((slot, node))
}

/// The root of a mapping tree, made when σ0 hands something on for the first time. Nobody else has a page, port or line
/// without a node.
#[cold]
fn root(
    k: &Kernel,
    task: TaskRef,
    space: Space,
    address: u64,
    entry: Option<&'static Cell<u64>>,
    slot: &'static NodeSlot,
) -> Result<&'static Node, Gap> {
    let absent = space == Space::Memory && entry.is_none();
    if !task.is_sigma0.get() || absent || address >= SIGMA0_PROGRAM {
        return Err(Gap::hole(address + unit(space)));
    }
    let node = task.slabs.take(&k.pool, task).ok_or(Gap::NO_MEMORY)?;
    node.init(space, address, entry, slot);
    Ok(node)
}

/// Makes the port permission bitmap of `task`, everything denied (for σ0: allowed).
pub fn ensure_bitmap(pool: &Pool, task: TaskRef) -> Option<()> {
    if task.has_ports() {
        return Some(());
    }
    let first = task.take_zeroed_frame(pool)?;
    let Some(second) = task.take_zeroed_frame(pool) else {
        task.give_back_zeroed_frame(pool, first);
        return None;
    };
    let frames = [first, second];
    for (cell, frame) in task.port_bitmap.iter().zip(frames) {
        if !task.is_sigma0.get() {
            pool.at::<Words>(frame).0.iter().for_each(|word| word.set(!0));
        }
        cell.set(frame.0);
    }
    Some(())
}

fn set_port_denied(pool: &Pool, task: TaskRef, port: u64, denied: bool) {
    let frame = Frame(task.port_bitmap[(port >> 15) as usize].get());
    let word = &pool.at::<Words>(frame).0[(port >> 6) as usize % 512];
    let bit = 1 << (port % 64);
    word.set(if denied { word.get() | bit } else { word.get() & !bit });
}

/// Takes `remove` from one mapping. Without reading nothing is left: the node goes. Returns the status bits.
pub fn restrict(k: &Kernel, node: &'static Node, remove: Rights) -> u64 {
    let task = node.task();
    let Some(entry) = node.entry() else {
        if remove.and(Rights::RW) == Rights::NONE {
            return 0;
        }
        let number = node.address();
        if node.is_port() {
            set_port_denied(&k.pool, task, number, true);
        }
        let lost_line = node.is_interrupt();
        node.erase(&k.pool);
        if lost_line {
            k.line_lost(task, number as u8);
        }
        return 0;
    };
    let old = entry.get();
    entry.set(pte::without_status(pte::restrict(old, remove)));
    if entry.get() != old {
        arch::invalidate(task, node.address());
    }
    if entry.get() == 0 {
        task.lose_pages(1);
        node.erase(&k.pool);
    }
    pte::status(old)
}

/// Takes a page from one mapping. Returns the status bits.
#[inline(always)]
fn erase_page(k: &Kernel, node: &'static Node, entry: &'static Cell<u64>) -> u64 {
    let task = node.task();
    let old = entry.replace(0);
    arch::invalidate(task, node.address());
    task.lose_pages(1);
    node.erase(&k.pool);
    pte::status(old)
}

/// Takes `remove` from everyone below `node`.
#[inline(always)]
fn restrict_below(
    k: &Kernel,
    node: &'static Node,
    remove: Rights,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    if node.entry().is_none() || !remove.has(Rights::R) {
        return restrict_otherwise(k, node, remove, status, budget);
    }
    while let Some(below) = node.below(None) {
        // A marker has none.
        let Some(entry) = below.entry() else {
            return erase_each_below(k, node, status, budget);
        };
        if *budget == 0 {
            return Err(Stop::Again);
        }
        *budget -= 1;
        *status |= erase_page(k, below, entry);
    }
    Ok(())
}

#[inline(never)]
fn restrict_otherwise(
    k: &Kernel,
    node: &'static Node,
    remove: Rights,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    if node.entry().is_some() {
        let mut walking = *status & WALKING != 0;
        let result = narrow_below(k, node, remove, &mut walking, status, budget);
        *status = with_walking(*status, walking);
        return result;
    }
    // A port or line has one right, which goes with reading or writing.
    if remove.and(Rights::RW) == Rights::NONE { Ok(()) } else { erase_each_below(k, node, status, budget) }
}

/// Takes everything from everyone below `node`, whatever is there.
#[inline(never)]
fn erase_each_below(
    k: &Kernel,
    node: &'static Node,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    while let Some(below) = node.below(None) {
        if *budget == 0 {
            return Err(Stop::Again);
        }
        *budget -= 1;
        if below.is_marker() {
            // Where it stands nothing will be left; who left it begins anew.
            below.take_out();
        } else {
            *status |= restrict(k, below, Rights::RWX);
        }
    }
    Ok(())
}

/// How many nodes are passed for one unit of a budget.
pub const PASSED_PER_UNIT: usize = 6;

/// In the note of a bookmark: on the way back. Above it the rights that are taken.
const BACK: u64 = 1;

/// Takes `remove` from everyone below `root`, a small page of the current thread's task; reading is not among it, so nobody goes.
/// With an error it is to be called again, `walking`.
///
/// First the walk passes all who are below, then it comes back to the root and takes the rights. So at any time nobody has more
/// than who gave it to him. Whoever maps meanwhile adds a node right behind his own: either has lost the rights already, or the
/// walk meets both later.
pub fn narrow_below(
    k: &Kernel,
    root: &'static Node,
    remove: Rights,
    walking: &mut bool,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let walker = arch::current().tcb();
    let note = (remove.0 as u64) << 1;
    let left = if core::mem::take(walking) { walker.bookmark.resume(root) } else { None };
    let left = left.filter(|mark| mark.note & !BACK == note);
    let (mut place, is_back) = left.map_or((root, false), |mark| (mark.place, mark.note & BACK != 0));
    let mut stop = |place, note, budget: &mut usize| {
        // Who takes a message for its sender leaves a long walk to that.
        if walker.task() == root.task() {
            walker.bookmark.leave(root, Mark { place, note });
            *walking = true;
        }
        *budget = 0;
        Err(Stop::Again)
    };
    if !is_back {
        let most = *budget * PASSED_PER_UNIT;
        let mut left = most;
        while let Some(next) = root.below(Some(place)) {
            if left == 0 {
                return stop(place, note, budget);
            }
            left -= 1;
            place = next;
        }
        // One more, since both ways begin and end.
        *budget = budget.saturating_sub((most - left).div_ceil(PASSED_PER_UNIT) + 1);
    }
    while !core::ptr::eq(place, root) {
        if *budget == 0 {
            return stop(place, note | BACK, budget);
        }
        *budget -= 1;
        let before = place.before().expect("the root is before those below it");
        if !place.is_marker() {
            *status |= restrict(k, place, remove);
        }
        place = before;
    }
    Ok(())
}

/// Which rights who gets `given` of a page has not, and who gives has.
pub fn lost(entry: u64, given: Rights) -> Rights {
    pte::rights(entry).without(pte::rights(pte::derive(entry, given)))
}

/// Before `given` of a small page is granted: nobody below may have more than the one who gave.
pub fn narrow_for_grant(
    k: &Kernel,
    node: &'static Node,
    given: Rights,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<(), Stop> {
    let lost = node.entry().map_or(Rights::NONE, |entry| lost(entry.get(), given));
    if lost == Rights::NONE { Ok(()) } else { narrow_below(k, node, lost, walking, &mut 0, budget) }
}

/// Empties a place: the model's flush followed by φ.
#[cold]
pub fn clear(k: &Kernel, node: &'static Node, budget: &mut usize) -> Result<(), Stop> {
    restrict_below(k, node, Rights::RWX, &mut 0, budget)?;
    restrict(k, node, Rights::RWX);
    Ok(())
}

/// One page, if that is simple: the giver has it in its tables, nothing was ever granted or mapped over, and the receiver
/// has its table and a node ready. This is what pagers do all day. False if nothing was done.
#[inline(always)]
pub fn map_single(
    k: &Kernel,
    (from, address): (TaskRef, u64),
    (to, target): (TaskRef, u64),
    rights: Rights,
) -> bool {
    let Found::Leaf(giver) = table::find(&k.pool, from, address) else {
        return large::map_single(k, (from, address), (to, target), rights);
    };
    let Some(node) = giver.slot.get() else { return false };
    if target >= abi::USER_END {
        return false;
    }
    let Found::Leaf(place) = table::find(&k.pool, to, target) else { return false };
    let source = giver.entry.get();
    let given = pte::rights(source).and(rights);
    // σ0 may have a page from the machine there, without a node.
    if place.entry.get() != 0 || given == Rights::NONE {
        return false;
    }
    let Some(child) = to.slabs.take_ready() else { return false };
    add_page(child, place, (to, target), pte::derive(source, given));
    node.add_child(child);
    true
}

/// Fills in the node of a page, and its entry.
#[inline(always)]
pub fn add_page(child: &'static Node, place: Leaf, (to, address): (TaskRef, u64), entry: u64) {
    child.init(Space::Memory, address, Some(place.entry), place.slot);
    place.entry.set(entry);
    to.pages.set(to.pages.get() + 1);
}

/// One page from `from` to `to`. The giver's mapping was found at `source_address`.
#[inline(always)]
fn map_page(
    k: &Kernel,
    (from, source_address, mut giver, mut node): (TaskRef, u64, Leaf, &'static Node),
    (to, address, place): (TaskRef, u64, Leaf),
    rights: Rights,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<(), Stop> {
    // Without any right there is nothing to map, and nothing is replaced.
    let given = pte::rights(giver.entry.get()).and(rights);
    if given == Rights::NONE {
        return Ok(());
    }
    if let Some(old) = place.slot.get() {
        if core::ptr::eq(place.slot, giver.slot) {
            return Ok(());
        }
        clear(k, old, budget)?;
        // The giver's mapping may have been derived from what was just replaced: look again.
        match source_page(k, from, source_address) {
            Ok(found) => (giver, node) = found,
            Err(gap) => return gap.skip(),
        }
    } else if place.entry.get() != 0 {
        // σ0's, from the machine, and without a node: nobody has anything from it.
        place.entry.set(0);
        arch::invalidate(to, address);
    }
    if rights.has(Rights::GRANT) {
        narrow_for_grant(k, node, given, walking, budget)?;
    }
    let child = to.slabs.take(&k.pool, to).ok_or(Stop::NoMemory)?;
    child.init(Space::Memory, address, Some(place.entry), place.slot);
    place.entry.set(pte::derive(giver.entry.get(), given));
    to.pages.set(to.pages.get() + 1);
    if rights.has(Rights::GRANT) {
        grant(k, node, child)
    } else {
        node.add_child(child)
    }
    Ok(())
}

/// One port or line, which maps to itself.
fn map_small(
    k: &Kernel,
    space: Space,
    number: u64,
    (from, to): (TaskRef, TaskRef),
    rights: Rights,
    fresh: bool,
    budget: &mut usize,
) -> Result<(), Stop> {
    let before = frames(from, to);
    // Tables are a step of their own.
    let lacks_table = |task| small_place(&k.pool, task, space, number, false).is_none();
    if !fresh && from.is_sigma0.get() && lacks_table(from) {
        return again(budget);
    }
    let giver = match source_small(k, from, space, number) {
        Ok((giver, _)) => giver,
        Err(gap) => return gap.skip(),
    };
    if !fresh && lacks_table(to) {
        return again(budget);
    }
    let place = small_place(&k.pool, to, space, number, true).ok_or(Stop::NoMemory)?;
    if frames(from, to) > before {
        return again(budget);
    }
    if core::ptr::eq(place, giver) || rights.and(Rights::RW) == Rights::NONE {
        return Ok(());
    }
    if space == Space::Port && !to.has_ports() {
        if fresh {
            ensure_bitmap(&k.pool, to).ok_or(Stop::NoMemory)?;
        }
        return again(budget);
    }
    if let Some(old) = place.get() {
        clear(k, old, budget)?;
    }
    // The giver's mapping may have been derived from what was just replaced.
    let Ok((_, node)) = source_small(k, from, space, number) else { return Ok(()) };
    let child = to.slabs.take(&k.pool, to).ok_or(Stop::NoMemory)?;
    child.init(space, number, None, place);
    if space == Space::Port {
        set_port_denied(&k.pool, to, number, false);
    }
    // σ0 keeps the root of ports and lines: its tables cannot express that one is gone.
    if rights.has(Rights::GRANT) && !from.is_sigma0.get() {
        grant(k, node, child)
    } else {
        node.add_child(child)
    }
    Ok(())
}

/// `child` takes the place of `node` in the tree, and `node`'s page, port or line is gone from its owner. Nobody below has more
/// rights than `child`: see [`narrow_for_grant`].
pub fn grant(k: &Kernel, node: &'static Node, child: &'static Node) {
    let (owner, address) = (node.task(), node.address());
    node.replace_by(child);
    if let Some(entry) = node.entry() {
        entry.set(0);
        owner.lose_pages(1);
        arch::invalidate(owner, address);
    } else if node.is_port() {
        set_port_denied(&k.pool, owner, address, true);
    }
    let line = node.is_interrupt();
    node.discard(&k.pool);
    if line {
        k.line_lost(owner, address as u8);
    }
}

/// Carries out a plan from where `progress` is on, and counts that up. It is not `whole` any more when the receiver, or σ0
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
    // σ0 may have pages there without a node, from the machine.
    if plan.space == Space::Memory && plan.log2 > 12 && !to.is_sigma0.get() {
        let pages = run::map(k, &plan, (from, to), progress.done, *budget);
        progress.fresh &= pages == 0;
        *budget -= pages;
        progress.done += pages as u64 * PAGE_SIZE;
        if progress.done >> plan.log2 != 0 {
            return Ok(());
        }
    }
    map_each(k, plan, (from, to), progress, budget)
}

/// What a new frame costs of a budget: clearing it takes about as long as three pages.
const FRAME_UNITS: usize = 3;

/// Frames of two tasks; the difference says how many were made.
pub fn frames(from: TaskRef, to: TaskRef) -> usize {
    from.used.get() as usize + to.used.get() as usize
}

/// Page by page.
#[inline(never)]
fn map_each(
    k: &Kernel,
    plan: Plan,
    (from, to): (TaskRef, TaskRef),
    progress: &mut Progress,
    budget: &mut usize,
) -> Result<(), Again> {
    let size = 1u64 << plan.log2;
    let mut fresh = core::mem::replace(&mut progress.fresh, true);
    while progress.done < size {
        if *budget == 0 {
            return Err(Again);
        }
        *budget -= 1;
        let before = frames(from, to);
        let number = plan.from + progress.done;
        let result = if plan.space == Space::Memory {
            let target = plan.to + progress.done;
            if target >= abi::USER_END {
                break;
            }
            map_at(
                k,
                (from, number),
                (to, target),
                (plan.rights, size - progress.done),
                fresh,
                &mut progress.walking,
                budget,
            )
        } else if plan.space == Space::Door {
            let (giver, taker) = ((from, number), (to, plan.to + progress.done));
            doors::map(k, giver, taker, plan.rights, budget).map(|done| done.min(size - progress.done))
        } else {
            map_small(k, plan.space, number, (from, to), plan.rights, fresh, budget).map(|()| 1)
        };
        fresh = false;
        *budget = budget.saturating_sub(FRAME_UNITS * frames(from, to).saturating_sub(before));
        match result {
            Ok(done) => {
                progress.done += done;
                // As long as two steps of a flush: up to three walks, and a mapping that is replaced.
                *budget = budget.saturating_sub(1);
            }
            Err(Stop::Again) => return Err(Again),
            Err(Stop::NoMemory) => {
                progress.whole = false;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Maps what lies at `address`, of which there is `left` to be mapped. Returns how many bytes are done.
#[inline(always)]
fn map_at(
    k: &Kernel,
    (from, address): (TaskRef, u64),
    (to, target): (TaskRef, u64),
    (rights, left): (Rights, u64),
    fresh: bool,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<u64, Stop> {
    if let Some(giver) = from.recent.leaf(address)
        && let Some(node) = giver.slot.get()
        && let Some(place) = to.recent.leaf(target)
    {
        let done = map_page(k, (from, address, giver, node), (to, target, place), rights, walking, budget);
        return done.map(|()| PAGE_SIZE);
    }
    let places = (large::Place { task: from, address }, large::Place { task: to, address: target });
    map_anything(k, places, (rights, left), fresh, walking, budget)
}

/// The same where tables may be missing, and pages may be large.
#[inline(never)]
fn map_anything(
    k: &Kernel,
    (giver, taker): (large::Place, large::Place),
    (rights, left): (Rights, u64),
    fresh: bool,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<u64, Stop> {
    let (from, to) = (giver.find(k), taker.find(k));
    let is_small = |found: &Found| matches!(found, Found::Leaf(_) | Found::Nothing { .. });
    if !(is_small(&from) && is_small(&to))
        && let Some(done) =
            large::map(k, (giver, &from), (taker, &to), (rights, left), fresh, walking, budget)?
    {
        return Ok(done);
    }
    let is_split = matches!(from, Found::Large { .. });
    // Tables are a step of their own.
    if !fresh && (is_split || !matches!(to, Found::Leaf(_))) {
        return again(budget);
    }
    let (leaf, node) = match source_at(k, giver.task, giver.address, from) {
        Ok(found) => found,
        Err(Gap { until: Some(until) }) => return Ok(until.get() - giver.address),
        Err(Gap { until: None }) => return Err(Stop::NoMemory),
    };
    if is_split {
        return again(budget);
    }
    // Without any right nothing is mapped, and no table is made.
    if pte::rights(leaf.entry.get()).and(rights) == Rights::NONE {
        return Ok(PAGE_SIZE);
    }
    let place = match to {
        Found::Leaf(place) => place,
        _ => table::ensure(&k.pool, taker.task, taker.address).ok_or(Stop::NoMemory)?,
    };
    let from = (giver.task, giver.address, leaf, node);
    map_page(k, from, (taker.task, taker.address, place), rights, walking, budget)?;
    // Two walks more than where both are remembered.
    *budget = budget.saturating_sub(1);
    Ok(PAGE_SIZE)
}

/// In what [`flush`] collects: a walk below a page was broken off.
const WALKING: u64 = 1 << 8;
/// From this bit on, the number plus one of the 2 MiB whose large page was dealt with; small ones may be in its place.
const PASSED: u32 = 12;
/// What is collected for the user.
const STATUS: u64 = 3;

/// Takes the rights of `page` from everyone who got them from `task`, and with `own` from `task` too. Starts at
/// address (number) `at` and counts it up; collects status bits, and beside them how far it is. There may be no memory if
/// part of a large page of `task`'s own is to be taken away; then nothing has happened.
pub fn flush(
    k: &Kernel,
    task: TaskRef,
    page: Fpage,
    own: bool,
    at: &mut u64,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    match page.space() {
        Space::Memory if page.log2() == 12 => flush_page(k, task, page, own, at, status, budget),
        Space::Memory => flush_memory(k, task, page, own, at, status, budget),
        Space::Door => doors::flush(k, task, page, own, at, budget),
        space => flush_small(k, task, space, page, own, at, budget),
    }
}

/// One page.
fn flush_page(
    k: &Kernel,
    task: TaskRef,
    page: Fpage,
    own: bool,
    at: &mut u64,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    if let Some(leaf) = task.recent.leaf(page.base()) {
        return flush_place(k, task, leaf.slot, page.rights(), own, status, budget);
    }
    *at = page.base();
    flush_each(k, task, (page, page.base() + PAGE_SIZE, own), true, at, status, budget)
}

fn flush_memory(
    k: &Kernel,
    task: TaskRef,
    page: Fpage,
    own: bool,
    at: &mut u64,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let end = page.base() + (1 << page.log2());
    *at = (*at).max(page.base());
    let start = *at;
    if page.rights().has(Rights::R) {
        let rest = (*at, (end - *at) / PAGE_SIZE);
        let pages = if own {
            run::flush::<true>(k, task, rest, status, budget)
        } else {
            run::flush::<false>(k, task, rest, status, budget)
        };
        *at += pages * PAGE_SIZE;
        if *at == end {
            *status &= STATUS;
            return Ok(());
        }
    }
    flush_each(k, task, (page, end, own), *at == start, at, status, budget)
}

/// Page by page. `fresh` if this step has done nothing else.
#[inline(never)]
fn flush_each(
    k: &Kernel,
    task: TaskRef,
    (page, end, own): (Fpage, u64, bool),
    mut fresh: bool,
    at: &mut u64,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    while *at < end {
        if *budget == 0 {
            return Err(Stop::Again);
        }
        *budget -= 1;
        match table::find(&k.pool, task, *at) {
            Found::Leaf(leaf) if leaf.entry.get() != 0 => {
                flush_place(k, task, leaf.slot, page.rights(), own, status, budget)?;
                *at += PAGE_SIZE;
            }
            // What was a task's only page is gone: nothing else is left to find.
            Found::Leaf(_) if task.pages.get() == 0 && !task.is_sigma0.get() => *at = end,
            Found::Leaf(_) | Found::Nothing { .. } => {
                *at = table::next(&k.pool, task, *at, end, budget);
                // Two walks, to the hole and through it.
                *budget = budget.saturating_sub(2);
            }
            Found::Part { leaf, .. } if *status >> PASSED == *at / large::SIZE + 1 => {
                // Parts are done with; what is left are pages of their own.
                if leaf.slot.get().is_some() {
                    flush_place(k, task, leaf.slot, page.rights(), own, status, budget)?;
                    *at += PAGE_SIZE;
                } else {
                    let next = table::next_own(&k.pool, task, *at);
                    *budget = budget.saturating_sub(((next - *at) / PAGE_SIZE) as usize / 16);
                    *at = next;
                }
                // A longer walk than to others.
                *budget = budget.saturating_sub(3);
            }
            Found::Part { node, .. } => {
                flush_large(k, node, (page, own), fresh, status, budget)?;
                *status = *status & STATUS | (*at / large::SIZE + 1) << PASSED;
            }
            Found::Large { entry, node: Some(node), .. } => {
                flush_large(k, node, (page, own), fresh, status, budget)?;
                *status = *status & STATUS | (*at / large::SIZE + 1) << PASSED;
                if entry.get() == 0 || pte::is_large(entry.get()) {
                    *at = (*at | (large::SIZE - 1)) + 1;
                }
            }
            // Nothing was handed on from a large page without a node, and only σ0 has them.
            Found::Large { level, .. } => {
                *at = (*at | ((1u64 << (12 + 9 * level)) - 1)) + 1;
                // The walk to it is longer than to others.
                *budget = budget.saturating_sub(1);
            }
        }
        fresh = false;
    }
    *status &= STATUS;
    Ok(())
}

fn flush_large(
    k: &Kernel,
    node: &'static Node,
    which: (Fpage, bool),
    fresh: bool,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let mut walking = *status & WALKING != 0;
    let result = large::flush(k, node, which, fresh, &mut walking, status, budget);
    // Longer walks than to others; behind a large step, nothing more fits into this one.
    *budget = if *budget < large::STEP_REST { 0 } else { budget.saturating_sub(3) };
    *status = with_walking(*status, walking);
    result
}

fn with_walking(status: u64, walking: bool) -> u64 {
    status & !WALKING | if walking { WALKING } else { 0 }
}

#[inline(never)]
fn flush_small(
    k: &Kernel,
    task: TaskRef,
    space: Space,
    page: Fpage,
    own: bool,
    at: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let first = page.base() >> 12;
    let end = first + (1 << page.log2());
    *at = (*at).max(first);
    while *at < end {
        if *budget == 0 {
            return Err(Stop::Again);
        }
        *budget -= 1;
        match small_place(&k.pool, task, space, *at, false) {
            Some(slot) => {
                flush_place(k, task, slot, page.rights(), own, &mut 0, budget)?;
                *at += 1;
            }
            None if space == Space::Interrupt || task.ports.get() == 0 => break,
            None => *at = (*at | 511) + 1,
        }
    }
    Ok(())
}

/// The subtree of one place, and with `own` the place itself. σ0 keeps what it has from the machine.
#[inline(always)]
fn flush_place(
    k: &Kernel,
    task: TaskRef,
    slot: &'static NodeSlot,
    remove: Rights,
    own: bool,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let Some(node) = slot.get() else { return Ok(()) };
    restrict_below(k, node, remove, status, budget)?;
    if own && !(task.is_sigma0.get() && node.depth() == 0) {
        *status |= restrict(k, node, remove);
    }
    Ok(())
}

/// Whether a task may have ports or interrupt lines.
pub fn has_small(task: TaskRef) -> bool {
    task.ports.get() | task.interrupts.get() != 0
}

/// Gives back what `task`'s port and interrupt spaces occupy; they are empty. False if they occupied nothing.
pub fn release_small(k: &Kernel, task: TaskRef) -> bool {
    let before = task.used.get();
    if task.ports.get() != 0 {
        for cell in &k.pool.at::<Words>(Frame(task.ports.get())).0 {
            if cell.get() != 0 {
                task.give_back_zeroed_frame(&k.pool, Frame(cell.replace(0)));
            }
        }
        task.give_back_zeroed_frame(&k.pool, Frame(task.ports.replace(0)));
    }
    if task.interrupts.get() != 0 {
        task.give_back_zeroed_frame(&k.pool, Frame(task.interrupts.replace(0)));
    }
    for cell in &task.port_bitmap {
        if cell.get() != 0 {
            task.give_back_frame(&k.pool, Frame(cell.replace(0)));
        }
    }
    task.used.get() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page goes from σ0 to one task and on to another, is granted, and is taken back from all. Small enough for Miri.
    #[test]
    fn a_page_goes_on_and_comes_back() {
        arch::reset();
        let k = Kernel::new(Pool::for_tests(160), &crate::ipc::UPCALLS);
        let [sigma0, first, second] = core::array::from_fn(|_| crate::life::boot_task(&k));
        arch::set_current(crate::life::boot_thread(&k, sigma0, 1));
        sigma0.is_sigma0.set(true);
        arch::map_all_memory(&k, sigma0, 1);
        let send = |from: TaskRef, to: TaskRef, source, target, rights| {
            let plan = Plan { space: Space::Memory, from: source, to: target, log2: 12, rights };
            let mut progress = Progress::START;
            while map(&k, plan, from, to, &mut progress, &mut 16) == Err(Again) {}
            assert!(progress.whole && progress.done == PAGE_SIZE);
        };
        send(sigma0, first, 0x5000, 0x9000, Rights::RW);
        send(first, second, 0x9000, 0x7_0000_0000, Rights::RWX);
        send(second, second, 0x7_0000_0000, 0x8_0000_0000, Rights::R.or(Rights::GRANT));
        assert_eq!(arch::walk(&k.pool, first, 0x9008), Some((0x5008, Rights::RW)));
        assert_eq!(arch::walk(&k.pool, second, 0x7_0000_0000), None);
        assert_eq!(arch::walk(&k.pool, second, 0x8_0000_0000), Some((0x5000, Rights::R)));
        assert!(arch::touch(&k.pool, first, 0x9000, true));
        let (mut at, mut status) = (0, 0);
        let page = Fpage::memory(0x5000, 12, Rights::RWX);
        assert_eq!(flush(&k, sigma0, page, false, &mut at, &mut status, &mut 16), Ok(()));
        assert_eq!(status, 3);
        for (task, address) in [(first, 0x9000), (second, 0x8_0000_0000)] {
            assert_eq!(arch::walk(&k.pool, task, address), None);
            assert_eq!(task.pages.get(), 0);
        }
    }
}
