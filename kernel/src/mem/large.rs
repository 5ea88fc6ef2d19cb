//! Large pages of users: 2 MiB with one entry, one node and one TLB entry (rows C2, C3, C4).
//!
//! The receiver of a large page has an entry in a directory and a node beside it. Small pages are mapped out of it without
//! changing it: their nodes hang below its own, and belong to a part of it by their physical address. All large pages of one
//! tree show the same 2 MiB.
//!
//! What happens to a part of a large page splits it ([`table::split_node`]): a table of 512 small pages takes its place. They
//! have no nodes of their own; they are marked as parts, and the large page's node counts them. A part that goes is
//! absent from then on, or another page with a node of its own.
//!
//! A walk through everything below a large page meets nodes of other parts too and makes no progress by passing them. Where
//! it is broken off it leaves the page's marker in the list, with a note of what it is about; whoever begins another one
//! takes the marker away, and the first begins anew.

use super::budget::{Stop, again};
use super::space::{self, Gap, PASSED_PER_UNIT, SIGMA0_PROGRAM};
use super::table::{self, Found, Leaf, PARTS};
use crate::arch::{self, pte};
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::Node;
use abi::{Fpage, PAGE_SIZE, Rights};
use core::cell::Cell;

/// Bytes of a large page.
pub const SIZE: u64 = PARTS * PAGE_SIZE;

/// Bytes of a directory of large pages, which may be fused.
const FUSED: u64 = PARTS * SIZE;

/// What splitting a large page, or changing all its parts, costs of a budget.
const LARGE_UNITS: usize = 24;

/// With less than this left of a budget, a step has done something large.
pub const STEP_REST: usize = LARGE_UNITS / 2;

/// With so many parts taken away, a step is over; more may have to be looked at.
const TAKEN_MAX: u64 = 128;

/// Entries that are looked at together, before each of them; few more than [`TAKEN_MAX`] are taken in a step.
const CHUNK: usize = 8;

/// Some of the small pages in a large one, or all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    first: u64,
    count: u64,
}

impl Part {
    const WHOLE: Part = Part { first: 0, count: PARTS };

    /// What a flexpage covers of a large page that it lies in, or that lies in it.
    fn of(page: Fpage) -> Part {
        if 1 << page.log2() >= SIZE {
            return Part::WHOLE;
        }
        Part { first: page.base() / PAGE_SIZE % PARTS, count: (1 << page.log2()) / PAGE_SIZE }
    }

    fn at(address: u64) -> Part {
        Part { first: address / PAGE_SIZE % PARTS, count: 1 }
    }

    fn is_whole(self) -> bool {
        self == Part::WHOLE
    }

    fn of_cells(self, cells: &[Cell<u64>; PARTS as usize]) -> &[Cell<u64>] {
        &cells[self.first as usize..(self.first + self.count) as usize]
    }
}

/// Rights that are taken from a part of a large page, from everyone below, and with `own` from the page itself at last.
#[derive(Clone, Copy)]
struct Walk {
    node: &'static Node,
    part: Part,
    remove: Rights,
    own: bool,
}

/// What became of a large page.
enum Restricted {
    /// It is there.
    Kept,
    /// It, or the last part of it, is gone.
    Gone,
    /// This was as much as fits in one step.
    Partly,
    /// It would have to be split, and its task cannot pay.
    NoMemory,
}

/// Whether something as long as [`LARGE_UNITS`] fits into this step; `fresh` if nothing was done in it yet.
fn fits(fresh: bool, budget: usize) -> bool {
    fresh || budget >= LARGE_UNITS
}

/// Splits a large page, as a step of its own.
fn split<T>(k: &Kernel, node: &'static Node, fresh: bool, budget: &mut usize) -> Result<T, Stop> {
    if fits(fresh, *budget) && !unfuse(k, node) {
        table::split_node(&k.pool, node).ok_or(Stop::NoMemory)?;
    }
    again(budget)
}

/// Before the entry of a large page changes. True if that was more than to look, and the end of a step.
fn unfuse(k: &Kernel, node: &'static Node) -> bool {
    table::unfuse(&k.pool, node.task(), node.large_address())
}

/// Forgets the node of a large page of which nothing is left.
fn erase(k: &Kernel, node: &'static Node) -> Restricted {
    node.unlink();
    node.discard_large(&k.pool);
    Restricted::Gone
}

/// Takes `remove` from a large page; `whole` if that is for all of it, else from `part`. Collects status bits.
fn restrict(
    k: &Kernel,
    node: &'static Node,
    (part, whole): (Part, bool),
    remove: Rights,
    status: &mut u64,
) -> Restricted {
    let entry = node.entry().expect("memory");
    if node.parts() != 0 {
        return restrict_parts(k, node, entry, part, remove, status);
    }
    if unfuse(k, node) {
        return Restricted::Partly;
    }
    if !whole {
        return match table::split_node(&k.pool, node) {
            Some(()) => Restricted::Partly,
            None => Restricted::NoMemory,
        };
    }
    let (task, old) = (node.task(), entry.get());
    *status |= pte::status(old);
    let new = pte::without_status(pte::restrict(old, remove));
    if new != old {
        entry.set(new);
        arch::invalidate(task, node.large_address());
    }
    if new != 0 {
        return Restricted::Kept;
    }
    task.lose_pages(PARTS as u32);
    erase(k, node)
}

/// The same where it is split.
fn restrict_parts(
    k: &Kernel,
    node: &'static Node,
    entry: &Cell<u64>,
    part: Part,
    remove: Rights,
    status: &mut u64,
) -> Restricted {
    let (task, cells) = (node.task(), part.of_cells(table::parts(&k.pool, entry)));
    let takes = remove.has(Rights::R);
    let changes = change_parts(cells, pte::Removal::new(remove), if takes { TAKEN_MAX } else { PARTS + 1 });
    let taken = if takes { changes.count } else { 0 };
    if part.count == 1 {
        arch::invalidate(task, node.large_address() + part.first * PAGE_SIZE);
    } else {
        arch::flush_space(task);
    }
    *status |= pte::status(changes.all);
    task.lose_pages(taken as u32);
    let left = node.parts() - taken;
    if left == 0 {
        entry.set(pte::joined(entry.get()));
        return erase(k, node);
    }
    node.set_parts(left);
    if taken >= TAKEN_MAX { Restricted::Partly } else { Restricted::Kept }
}

/// What was done to parts.
struct Changes {
    removal: pte::Removal,
    /// How many were changed.
    count: u64,
    /// The bits that were in any.
    all: u64,
}

impl Changes {
    #[inline(always)]
    fn apply(&mut self, cells: &[Cell<u64>]) {
        for cell in cells {
            let old = cell.get();
            if pte::is_part(old) {
                self.all |= old;
                self.count += 1;
                cell.set(self.removal.of(old));
            }
        }
    }
}

/// Changes parts until `enough` are changed.
fn change_parts(cells: &[Cell<u64>], removal: pte::Removal, enough: u64) -> Changes {
    let mut changes = Changes { removal, count: 0, all: 0 };
    let (chunks, rest) = cells.as_chunks::<CHUNK>();
    changes.apply(rest);
    for some in chunks {
        if pte::is_part(some.iter().fold(0, |all, cell| all | cell.get())) {
            changes.apply(some);
        }
        if changes.count >= enough {
            break;
        }
    }
    changes
}

impl Walk {
    /// What the marker is left with.
    fn note(self, half: u64) -> u64 {
        let part = self.part.first | self.part.count << 9;
        part | (self.remove.0 as u64) << 19 | half << 27 | (self.own as u64) << 28
    }

    /// What may be restricted in one step: all, or half of all the parts there can be.
    fn half(self, half: u64) -> Part {
        if self.halves() == 1 {
            return self.part;
        }
        Part { first: half * PARTS / 2, count: PARTS / 2 }
    }

    /// What is taken away is not looked at again, so that needs no halves.
    fn halves(self) -> u64 {
        if self.part.is_whole() && !self.remove.has(Rights::R) { 2 } else { 1 }
    }

    /// Goes on if `walking`, or begins. With an error of [`Stop::Again`] it is to be called again, `walking`.
    fn run(
        self,
        k: &Kernel,
        mut fresh: bool,
        walking: &mut bool,
        status: &mut u64,
        budget: &mut usize,
    ) -> Result<(), Stop> {
        let left = self.node.unmark().filter(|_| core::mem::replace(walking, false));
        let (mut half, mut place) = match left {
            Some((place, note)) if note == self.note(0) => (0, place),
            Some((place, note)) if note == self.note(1) => (1, place),
            _ => (0, self.node),
        };
        loop {
            let result = self.run_half(k, half, &mut place, &mut fresh, status, budget);
            if result == Err(Stop::Again) {
                // Of the two, `walking` means what was left last.
                arch::current().bookmark.remove();
                self.node.mark(place, self.note(half));
                *walking = true;
                *budget = 0;
            }
            result?;
            half += 1;
            if half == self.halves() {
                return Ok(());
            }
            place = self.node;
        }
    }

    /// From behind `place` on.
    fn run_half(
        self,
        k: &Kernel,
        half: u64,
        place: &mut &'static Node,
        fresh: &mut bool,
        status: &mut u64,
        budget: &mut usize,
    ) -> Result<(), Stop> {
        let part = self.half(half);
        while let Some(next) = self.next_concerned(part, place, fresh, budget)? {
            if next.is_large() {
                let gone = self.restrict_large(k, next, part, fresh, status, budget)?;
                if !gone {
                    *place = next;
                }
                continue;
            }
            if *budget == 0 {
                return Err(Stop::Again);
            }
            // As long as to find a page and to take it from its only other owner.
            *budget = budget.saturating_sub(2);
            *fresh = false;
            *status |= space::restrict(k, next, self.remove);
            if !self.remove.has(Rights::R) {
                *place = next;
            }
        }
        if self.own {
            self.restrict_large(k, self.node, part, fresh, status, budget)?;
        }
        Ok(())
    }

    /// Passes the nodes of other parts, and markers.
    fn next_concerned(
        self,
        part: Part,
        place: &mut &'static Node,
        fresh: &mut bool,
        budget: &mut usize,
    ) -> Result<Option<&'static Node>, Stop> {
        let (first, bytes) = (self.node.large_frame() + part.first * PAGE_SIZE, part.count * PAGE_SIZE);
        let most = *budget * PASSED_PER_UNIT;
        let (mut left, mut at) = (most, *place);
        let found = loop {
            let Some(next) = self.node.below(Some(at)) else { break Ok(None) };
            if let Some(entry) = next.entry()
                && (next.is_large() || pte::address(entry.get()).wrapping_sub(first) < bytes)
            {
                break Ok(Some(next));
            }
            if left == 0 {
                break Err(Stop::Again);
            }
            left -= 1;
            at = next;
        };
        *place = at;
        *fresh &= left == most;
        *budget -= (most - left).div_ceil(PASSED_PER_UNIT);
        found
    }

    /// A large page, as a step of its own. True if it is gone.
    #[inline(always)]
    fn restrict_large(
        self,
        k: &Kernel,
        node: &'static Node,
        part: Part,
        fresh: &mut bool,
        status: &mut u64,
        budget: &mut usize,
    ) -> Result<bool, Stop> {
        if !fits(*fresh, *budget) {
            return Err(Stop::Again);
        }
        *budget = budget.saturating_sub(LARGE_UNITS);
        *fresh = false;
        match restrict(k, node, (part, self.part.is_whole()), self.remove, status) {
            Restricted::Kept => Ok(false),
            Restricted::Gone => Ok(true),
            Restricted::Partly => Err(Stop::Again),
            Restricted::NoMemory if self.remove == Rights::NONE => {
                *status |= pte::status(node.entry().expect("memory").get());
                Ok(false)
            }
            // Who cannot pay for what the others have to lose no more than that loses everything.
            Restricted::NoMemory => {
                let everything = Walk { node, part: Part::WHOLE, remove: Rights::RWX, own: true };
                everything.run(k, true, &mut false, status, budget).map(|()| true)
            }
        }
    }
}

/// Takes the rights of `page` from everyone who got them out of this large page of `task`, and with `own` from `task` too.
/// The flexpage lies in the large page, or the large page in it.
pub fn flush(
    k: &Kernel,
    node: &'static Node,
    (page, own): (Fpage, bool),
    fresh: bool,
    walking: &mut bool,
    status: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let part = Part::of(page);
    // σ0 keeps what it has from the machine.
    let own = own && !(node.task().is_sigma0.get() && node.depth() == 0);
    if own && !part.is_whole() && node.parts() == 0 {
        // First, so that nothing has happened if that is not possible.
        return split(k, node, fresh, budget);
    }
    Walk { node, part, remove: page.rights(), own }.run(k, fresh, walking, status, budget)
}

/// A page to be mapped, with its entry, as a small one.
struct Giver {
    entry: u64,
    node: &'static Node,
    /// The page is part of the node's large page.
    is_part: bool,
    /// The large page must be split before the page can be taken out of it.
    is_whole: bool,
}

fn giver(k: &Kernel, task: TaskRef, address: u64) -> Result<Giver, Gap> {
    let giver = match table::find(&k.pool, task, address) {
        Found::Large { entry, node: Some(node), .. } => {
            let entry = pte::part(entry.get(), address / PAGE_SIZE % PARTS, PAGE_SIZE, true);
            Giver { entry, node, is_part: true, is_whole: true }
        }
        Found::Part { leaf, node } if pte::is_part(leaf.entry.get()) => {
            Giver { entry: leaf.entry.get(), node, is_part: true, is_whole: false }
        }
        Found::Part { leaf, .. } => {
            own_page(leaf, leaf.slot.get().ok_or_else(|| Gap::hole(address + PAGE_SIZE))?)
        }
        _ => space::source_page(k, task, address).map(|(leaf, node)| own_page(leaf, node))?,
    };
    Ok(giver)
}

impl Giver {
    /// Hangs a page below the giver's. A walk that was broken off below a large page begins anew, for it may be past the place.
    /// (Below a small one it comes by, or has taken from the giver what it takes.)
    fn add_child(&self, child: &'static Node) {
        if self.is_part {
            self.node.unmark();
        }
        self.node.add_child(child);
    }
}

fn own_page(leaf: Leaf, node: &'static Node) -> Giver {
    Giver { entry: leaf.entry.get(), node, is_part: false, is_whole: false }
}

/// [`space::map_single`] out of a large page.
#[cold]
pub fn map_single(
    k: &Kernel,
    (from, address): (TaskRef, u64),
    (to, target): (TaskRef, u64),
    rights: Rights,
) -> bool {
    let is_plain = matches!(table::find(&k.pool, from, address), Found::Leaf(_) | Found::Nothing { .. });
    if is_plain || from.is_sigma0.get() || target >= abi::USER_END {
        return false;
    }
    let Ok(giver) = giver(k, from, address) else { return false };
    let Found::Leaf(place) = table::find(&k.pool, to, target) else { return false };
    let given = pte::rights(giver.entry).and(rights);
    if place.entry.get() != 0 || given == Rights::NONE {
        return false;
    }
    let Some(child) = to.slabs.take_ready() else { return false };
    space::add_page(child, place, (to, target), pte::derive(giver.entry, given));
    giver.add_child(child);
    true
}

/// Maps what the giver has at an address where that, or what the receiver has in its place, is large or part of a large page:
/// a large page if that is possible with the `left` bytes that are still to be mapped, else a small one. Returns how many bytes
/// are done, or `None` if no large page with a node is concerned.
pub fn map(
    k: &Kernel,
    (giver, from): (Place, &Found),
    (taker, to): (Place, &Found),
    (rights, left): (Rights, u64),
    fresh: bool,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<Option<u64>, Stop> {
    let is_aligned = (giver.address | taker.address).is_multiple_of(SIZE) && left >= SIZE;
    let is_last = (taker.address + SIZE).is_multiple_of(FUSED);
    if is_aligned && is_last && !fresh {
        return again(budget);
    }
    if is_aligned
        && let Found::Large { entry, level, node } = *from
        && taker.address + SIZE <= abi::USER_END
        && map_large(k, (giver, entry, level, node), (taker, to), rights, fresh, walking, budget)?
    {
        if is_last && arch::has_gib_pages() {
            table::fuse(&k.pool, taker.task, taker.address);
            *budget = 0;
        }
        return Ok(Some(SIZE));
    }
    if !concerns_node(from) && !concerns_node(to) {
        return Ok(None);
    }
    map_part(k, (giver, taker), rights, fresh, walking, budget)?;
    // Six walks, none of them remembered.
    *budget = budget.saturating_sub(3);
    Ok(Some(PAGE_SIZE))
}

/// An address in a task.
#[derive(Clone, Copy)]
pub struct Place {
    /// The task.
    pub task: TaskRef,
    /// The address.
    pub address: u64,
}

impl Place {
    /// What is there.
    pub fn find(self, k: &Kernel) -> Found {
        table::find(&k.pool, self.task, self.address)
    }
}

fn concerns_node(found: &Found) -> bool {
    matches!(found, Found::Part { .. } | Found::Large { node: Some(_), .. })
}

/// A large page, to where there is room for one. False if that is not possible.
fn map_large(
    k: &Kernel,
    (giver, entry, level, node): (Place, &'static Cell<u64>, usize, Option<&'static Node>),
    (taker, to_be_replaced): (Place, &Found),
    rights: Rights,
    fresh: bool,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<bool, Stop> {
    let ((from, to), pool) = ((giver.task, taker.task), &k.pool);
    let given = pte::rights(entry.get()).and(rights);
    if from == to && giver.address == taker.address || given == Rights::NONE {
        return Ok(true);
    }
    if !fits(fresh, *budget) {
        return again(budget);
    }
    if level > 1 {
        // Only σ0 has those.
        table::ensure_level(pool, from, giver.address, 1).ok_or(Stop::NoMemory)?;
        return again(budget);
    }
    match *to_be_replaced {
        Found::Nothing { .. } => {}
        Found::Large { node: Some(old), .. } => {
            let replaced = Walk { node: old, part: Part::WHOLE, remove: Rights::RWX, own: true };
            replaced.run(k, fresh, walking, &mut 0, budget)?;
            // What is given may be gone with it: look again.
            return again(budget);
        }
        Found::Leaf(_) if table::remove_empty(pool, to, taker.address) => return again(budget),
        _ => return Ok(false),
    }
    let before = space::frames(from, to);
    let node = match node {
        Some(node) => node,
        None if !from.is_sigma0.get() || giver.address >= SIGMA0_PROGRAM => return Ok(false),
        None => root(k, giver, entry).ok_or(Stop::NoMemory)?,
    };
    let place = table::ensure_large(pool, to, taker.address).ok_or(Stop::NoMemory)?;
    if space::frames(from, to) > before {
        // Tables are a step of their own.
        return again(budget);
    }
    let lost = space::lost(entry.get(), given);
    let grants = rights.has(Rights::GRANT);
    if grants && lost != Rights::NONE {
        // See [`space::narrow_for_grant`].
        let walk = Walk { node, part: Part::WHOLE, remove: lost, own: false };
        walk.run(k, fresh, walking, &mut 0, budget)?;
    }
    if grants && unfuse(k, node) {
        return again(budget);
    }
    let (child, marker) = to.slabs.take_two(pool, to).ok_or(Stop::NoMemory)?;
    child.init_large(marker, (taker.address, pte::address(entry.get())), place.entry, place.slot);
    place.entry.set(pte::enlarged(pte::derive(entry.get(), given)));
    to.pages.set(to.pages.get() + PARTS as u32);
    if grants {
        node.replace_by(child);
        entry.set(0);
        arch::invalidate(from, giver.address);
        from.lose_pages(PARTS as u32);
        node.discard_large(pool);
    } else {
        // See [`Giver::add_child`].
        node.unmark();
        node.add_child(child);
    }
    Ok(true)
}

/// The root of the tree of a large page, made when σ0 hands it on for the first time.
fn root(k: &Kernel, place: Place, entry: &'static Cell<u64>) -> Option<&'static Node> {
    let Place { task, address } = place;
    let leaf = table::ensure_large(&k.pool, task, address)?;
    let (node, marker) = task.slabs.take_two(&k.pool, task)?;
    node.init_large(marker, (address, pte::address(entry.get())), entry, leaf.slot);
    Some(node)
}

/// A small page out of a large one, or to where part of a large one is.
fn map_part(
    k: &Kernel,
    (from, to): (Place, Place),
    rights: Rights,
    fresh: bool,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<(), Stop> {
    let grants = rights.has(Rights::GRANT);
    if let Found::Large { node: None, .. } = from.find(k) {
        // σ0's, from the machine.
        if fits(fresh, *budget) {
            table::ensure(&k.pool, from.task, from.address).ok_or(Stop::NoMemory)?;
        }
        return again(budget);
    }
    let page = match giver(k, from.task, from.address) {
        Ok(page) => page,
        Err(gap) => return gap.skip(),
    };
    let is_same = from.task == to.task && from.address == to.address;
    if is_same || pte::rights(page.entry).and(rights) == Rights::NONE {
        return Ok(());
    }
    if grants && page.is_whole {
        return split(k, page.node, fresh, budget);
    }
    let place = make_room(k, to, fresh, walking, budget)?;
    // The giver's page may have been derived from what was just replaced: look again.
    let page = match giver(k, from.task, from.address) {
        Ok(page) => page,
        Err(gap) => return gap.skip(),
    };
    let part = Part::at(from.address);
    if grants && page.is_part {
        // The receiver's node begins a tree of its own beside the large page, so nobody may be below that.
        let walk = Walk { node: page.node, part, remove: Rights::RWX, own: false };
        walk.run(k, fresh, walking, &mut 0, budget)?;
    }
    let given = pte::rights(page.entry).and(rights);
    if grants && !page.is_part {
        space::narrow_for_grant(k, page.node, given, walking, budget)?;
    }
    let child = to.task.slabs.take(&k.pool, to.task).ok_or(Stop::NoMemory)?;
    space::add_page(child, place, (to.task, to.address), pte::derive(page.entry, given));
    if grants && page.is_part {
        page.node.add_beside(child);
        restrict(k, page.node, (part, false), Rights::RWX, &mut 0);
    } else if grants {
        space::grant(k, page.node, child);
    } else {
        page.add_child(child);
    }
    Ok(())
}

/// The place for a small page, which is absent: what was there is taken from everyone who got it from there.
fn make_room(
    k: &Kernel,
    to: Place,
    fresh: bool,
    walking: &mut bool,
    budget: &mut usize,
) -> Result<Leaf, Stop> {
    let (leaf, node) = match to.find(k) {
        Found::Large { node: Some(node), .. } => return split(k, node, fresh, budget),
        Found::Part { leaf, node } => (leaf, Some(node)),
        Found::Leaf(leaf) => (leaf, None),
        _ if !fits(fresh, *budget) => return again(budget),
        _ => (table::ensure(&k.pool, to.task, to.address).ok_or(Stop::NoMemory)?, None),
    };
    if let Some(old) = leaf.slot.get() {
        space::clear(k, old, budget)?;
    } else if let Some(node) = node
        && pte::is_part(leaf.entry.get())
    {
        let walk = Walk { node, part: Part::at(to.address), remove: Rights::RWX, own: true };
        walk.run(k, fresh, walking, &mut 0, budget)?;
    }
    Ok(leaf)
}
