//! Large pages of users: 2 MiB with one entry, one node and one TLB entry (rows C2, C3, C4).
//!
//! The receiver of a large page has an entry in a directory and a node beside it. Small pages that are mapped out of it do not
//! change it: their nodes hang below its own, and belong to a part of it by their physical address. All large pages of one
//! tree show the same 2 MiB.
//!
//! A change of a part of a large page splits it ([`table::split_node`]): a table of 512 small pages takes its place. They
//! have no nodes of their own; they are marked as parts, and the large page's node counts them. A part that goes is
//! absent from then on, or another page with a node of its own.

use super::at::{At, frames};
use super::budget::Stop;
use super::small;
use super::step::Step;
use super::table::{self, Found, PARTS};
use super::walk::Walk;
use crate::arch::{self, pte};
use crate::layout::SIGMA0_PROGRAM;
use crate::object::mapping::LargePage;
use crate::processor;
use abi::{Fpage, PAGE_SIZE, Rights, Space};
use core::cell::Cell;

/// Bytes of a large page.
pub const SIZE: u64 = PARTS * PAGE_SIZE;

/// Bytes of a directory of large pages, which may be fused.
const FUSED: u64 = PARTS * SIZE;

/// Parts whose loss ends a step; more may have to be looked at.
const TAKEN_MAX: u64 = 128;

/// Entries that are looked at together, before each of them; few more parts than [`TAKEN_MAX`] are taken in a step.
const CHUNK: usize = 8;

/// Small pages in a large one, in a row: some, or all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Number of the first one.
    pub first: u64,
    /// Number of small pages.
    pub count: u64,
}

impl Part {
    /// All small pages of a large one.
    pub const WHOLE: Part = Part { first: 0, count: PARTS };

    /// Half of their number.
    pub const HALF: u64 = PARTS / 2;

    /// Small pages that a flexpage covers of a large page in which it lies, or which lies in it.
    pub fn of(page: Fpage) -> Part {
        if 1 << page.log2() >= SIZE {
            return Part::WHOLE;
        }
        Part { first: page.base() / PAGE_SIZE % PARTS, count: (1 << page.log2()) / PAGE_SIZE }
    }

    /// The small page at an address.
    pub fn at(address: u64) -> Part {
        Part { first: address / PAGE_SIZE % PARTS, count: 1 }
    }

    /// Whether this is all of the large page.
    pub fn is_whole(self) -> bool {
        self == Part::WHOLE
    }

    fn of_cells(self, cells: &[Cell<u64>; PARTS as usize]) -> &[Cell<u64>] {
        &cells[self.first as usize..(self.first + self.count) as usize]
    }
}

/// Fate of a large page of which something was taken.
pub enum Restricted {
    /// The page is still there.
    Kept,
    /// The page, or the last part of it, is gone.
    Gone,
    /// The work was as much as fits into one step, and is not finished.
    Partly,
    /// The page would have to be split, and its task cannot pay.
    NoMemory,
}

/// Splits a large page, as a step of its own.
pub fn split<T>(step: &mut Step, node: LargePage) -> Result<T, Stop> {
    if step.has_room_for_large() && !unfuse(step, node) {
        table::split_node(step.pool(), node).ok_or(Stop::NoMemory)?;
    }
    step.stop()
}

/// Prepares a change of a large page's entry. True if that was more than a look, and the end of a step.
fn unfuse(step: &Step, node: LargePage) -> bool {
    table::unfuse(step.pool(), node.task(), node.address())
}

/// Forgets the node of a large page of which nothing is left.
fn erase(step: &Step, node: LargePage) -> Restricted {
    node.unlink();
    node.discard(step.pool());
    Restricted::Gone
}

/// Heads of an index that are taken out for one unit.
const HEADS_PER_UNIT: usize = 2;

/// Takes the index of a large page out of the list: the page goes, or its place in the tree changes hands.
pub fn dissolve_index(step: &mut Step, node: LargePage) -> Result<(), Stop> {
    while node.index().is_some() {
        step.begin(1)?;
        step.is_fresh = false;
        node.dissolve_index(step.pool(), HEADS_PER_UNIT);
    }
    Ok(())
}

/// Prepares the loss of parts: if no other is left, the page goes with them.
pub fn prepare_loss(step: &mut Step, node: LargePage, part: Part) -> Result<(), Stop> {
    let is_last = node.parts() != 0 && node.parts() <= part.count;
    if is_last { dissolve_index(step, node) } else { Ok(()) }
}

/// Takes `remove` from a large page; with `whole` from all of it, else from `part`. Collects status bits.
pub fn restrict(step: &mut Step, node: LargePage, (part, whole): (Part, bool), remove: Rights) -> Restricted {
    let entry = node.cell();
    if node.parts() != 0 {
        return restrict_parts(step, node, part, remove);
    }
    if unfuse(step, node) {
        return Restricted::Partly;
    }
    if !whole {
        return match table::split_node(step.pool(), node) {
            Some(()) => Restricted::Partly,
            None => Restricted::NoMemory,
        };
    }
    let (task, old) = (node.task(), entry.get());
    step.status |= pte::status(old);
    let new = pte::without_status(pte::restrict(old, remove));
    if new != old {
        entry.set(new);
        processor::space::invalidate(task, node.address());
    }
    if new != 0 {
        return Restricted::Kept;
    }
    task.lose_pages(PARTS as u32);
    erase(step, node)
}

/// Takes `remove` from parts of a large page that is split. Collects status bits.
fn restrict_parts(step: &mut Step, node: LargePage, part: Part, remove: Rights) -> Restricted {
    let (task, entry) = (node.task(), node.cell());
    let cells = part.of_cells(table::parts(step.pool(), entry));
    let takes = remove.has(Rights::R);
    let changes = change_parts(cells, pte::Removal::new(remove), if takes { TAKEN_MAX } else { PARTS + 1 });
    let taken = if takes { changes.count } else { 0 };
    if part.count == 1 {
        processor::space::invalidate(task, node.address() + part.first * PAGE_SIZE);
    } else {
        processor::space::flush_space(task);
    }
    step.status |= pte::status(changes.all);
    task.lose_pages(taken as u32);
    let left = node.parts() - taken;
    if left == 0 {
        entry.set(pte::joined(entry.get()));
        return erase(step, node);
    }
    node.set_parts(left);
    if taken >= TAKEN_MAX { Restricted::Partly } else { Restricted::Kept }
}

/// Changes of parts, and their sum.
struct Changes {
    removal: pte::Removal,
    /// Number of parts that were changed.
    count: u64,
    /// Bits that were in any of them.
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

/// Changes parts until `enough` of them are changed.
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

/// Takes the rights of `page` from everyone who got them out of this large page, and with `own` from its task too.
/// The flexpage lies in the large page, or the large page in it.
pub fn flush(step: &mut Step, root: LargePage, (page, own): (Fpage, bool)) -> Result<(), Stop> {
    let part = Part::of(page);
    let own = own && !root.is_of_machine();
    if own && !part.is_whole() && root.parts() == 0 {
        // This comes first, so that nothing has happened if it is not possible.
        return split(step, root);
    }
    let result = Walk { root: &root, part, remove: page.rights(), own }.run(step);
    step.end_large();
    result
}

/// A large page that is to be mapped.
#[derive(Clone, Copy)]
pub struct Giver {
    /// Task and address at which it is.
    pub at: At,
    /// Its entry.
    pub entry: &'static Cell<u64>,
    /// Number of levels from the last one up to the entry.
    pub level: usize,
    /// Its node; `None` if σ0 has it from the machine.
    pub node: Option<LargePage>,
}

/// Maps a large page whole. False if the target can only take small pages.
pub fn map(step: &mut Step, giver: Giver, to: At, rights: Rights) -> Result<bool, Stop> {
    let is_last = (to.address + SIZE).is_multiple_of(FUSED);
    if is_last {
        step.begin_alone()?;
    }
    if !map_whole(step, giver, to, rights)? {
        return Ok(false);
    }
    if is_last && arch::has_gib_pages() {
        table::fuse(step.pool(), to.task, to.address);
        step.budget = 0;
    }
    Ok(true)
}

fn map_whole(step: &mut Step, giver: Giver, to: At, rights: Rights) -> Result<bool, Stop> {
    let (pool, from, entry) = (step.pool(), giver.at, giver.entry);
    let held = pte::rights(entry.get());
    let given = held.and(rights);
    if from == to || given == Rights::NONE {
        return Ok(true);
    }
    if !step.has_room_for_large() {
        return step.stop();
    }
    if giver.level > 1 {
        // Only σ0 has such pages.
        table::ensure_level(pool, from.task, from.address, 1).ok_or(Stop::NoMemory)?;
        return step.stop();
    }
    if !make_room(step, to)? {
        return Ok(false);
    }
    let before = frames(from.task, to.task);
    let node = match giver.node {
        Some(node) => node,
        None if !from.task.is_sigma0.get() || from.address >= SIGMA0_PROGRAM => return Ok(false),
        None => root(step, from, entry).ok_or(Stop::NoMemory)?,
    };
    let place = table::ensure_large(pool, to.task, to.address).ok_or(Stop::NoMemory)?;
    if frames(from.task, to.task) > before {
        // Tables are a step of their own.
        return step.stop();
    }
    let grants = rights.has(Rights::GRANT);
    if grants {
        // First, since the walk may leave nothing of a step for it; and again, if somebody has made another meanwhile.
        dissolve_index(step, node)?;
        small::narrow_for_grant(step, &node, (held, given))?;
        dissolve_index(step, node)?;
        if unfuse(step, node) {
            return step.stop();
        }
    }
    let nodes = to.task.slabs.take_two(pool, to.task).ok_or(Stop::NoMemory)?;
    let child = LargePage::fill(nodes, (to.address, pte::address(entry.get())), place.entry, place.slot);
    place.entry.set(pte::enlarged(pte::derive(entry.get(), given)));
    to.task.pages.set(to.task.pages.get() + PARTS as u32);
    if grants {
        node.replace_by(&child);
        entry.set(0);
        processor::space::invalidate(from.task, from.address);
        from.task.lose_pages(PARTS as u32);
        node.discard(pool);
    } else {
        node.add_child(&child);
    }
    Ok(true)
}

/// Empties the target of a large page. False if there are small pages.
fn make_room(step: &mut Step, to: At) -> Result<bool, Stop> {
    match to.find(step) {
        Found::Nothing { .. } => Ok(true),
        Found::Large { node: Some(old), .. } => {
            Walk::clear(&old).run(step)?;
            // The page that is given may be gone with it: look again.
            step.stop()
        }
        Found::Leaf(_) if table::remove_empty(step.pool(), to.task, to.address) => step.stop(),
        _ => Ok(false),
    }
}

/// Root of the tree of a large page, made when σ0 hands it on for the first time.
fn root(step: &Step, at: At, entry: &'static Cell<u64>) -> Option<LargePage> {
    let leaf = table::ensure_large(step.pool(), at.task, at.address)?;
    let nodes = at.task.slabs.take_two(step.pool(), at.task)?;
    let node = LargePage::fill(nodes, (at.address, pte::address(entry.get())), entry, leaf.slot);
    node.plant(Space::Memory);
    Some(node)
}
