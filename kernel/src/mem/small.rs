//! Small pages, one by one: the page that is handed on, the place where it goes, and its loss.
//!
//! A place (a last-level page-table entry with its node slot) leads to the node of its mapping: map puts a child behind the giver's
//! node; grant puts the receiver's node in the giver's place. A part of a large page has no node of its own: a page mapped out
//! of it hangs below the large page's.

use super::at::At;
use super::budget::Stop;
use super::large::{self, Part};
use super::numbers::Lost;
use super::recent::Leaf;
use super::step::{Gap, Step};
use super::table::{self, Found, PARTS};
use super::walk::Walk;
use crate::arch::pte;
use crate::kernel::Kernel;
use crate::layout::SIGMA0_PROGRAM;
use crate::object::mapping::{LargePage, Node};
use crate::processor;
use abi::{PAGE_SIZE, Rights, Space};

/// A page to be mapped, with its entry, as a small one.
struct Giver {
    entry: u64,
    node: &'static Node,
    /// The large page whose part it is, and which has the node; and whether that must be split before the page can be taken out of it.
    part_of: Option<(LargePage, bool)>,
}

impl Giver {
    /// A page with a node of its own.
    #[inline(always)]
    fn own(leaf: Leaf, node: &'static Node) -> Giver {
        Giver { entry: leaf.entry.get(), node, part_of: None }
    }

    /// Part of a large page.
    #[cold]
    fn part(found: Found, address: u64) -> Option<Giver> {
        match found {
            Found::Large { entry, node: Some(node), .. } => {
                let entry = pte::part(entry.get(), address / PAGE_SIZE % PARTS, PAGE_SIZE, true);
                Some(Giver { entry, node: &node, part_of: Some((node, true)) })
            }
            Found::Part { leaf, node } if pte::is_part(leaf.entry.get()) => {
                Some(Giver { entry: leaf.entry.get(), node: &node, part_of: Some((node, false)) })
            }
            Found::Part { leaf, .. } => leaf.slot.get().map(|node| Giver::own(leaf, node)),
            Found::Large { .. } | Found::Nothing { .. } | Found::Leaf(_) => None,
        }
    }

    /// The page at an address. It gets a node if it is σ0's and has none.
    #[inline(always)]
    fn find(step: &mut Step, at: At) -> Result<Giver, Gap> {
        let leaf = match at.find(step) {
            Found::Leaf(leaf) => leaf,
            Found::Nothing { until } => return Err(Gap::hole(until)),
            Found::Large { node: None, .. } => {
                step.begin_alone()?;
                table::ensure(step.pool(), at.task, at.address).ok_or(Stop::NoMemory)?;
                return Ok(step.stop()?);
            }
            found => return Giver::part(found, at.address).ok_or_else(|| Gap::hole(at.address + PAGE_SIZE)),
        };
        let node = match leaf.slot.get() {
            Some(node) => node,
            None => root(step, at, leaf)?,
        };
        Ok(Giver::own(leaf, node))
    }
}

/// Root of a page's tree, made when σ0 hands it on for the first time. Nobody else has a page without a node.
#[cold]
fn root(step: &Step, at: At, leaf: Leaf) -> Result<&'static Node, Gap> {
    let absent = !pte::is_present(leaf.entry.get());
    if !at.task.is_sigma0.get() || absent || at.address >= SIGMA0_PROGRAM {
        return Err(Gap::hole(at.address + PAGE_SIZE));
    }
    let node = at.task.slabs.take(step.pool(), at.task).ok_or(Stop::NoMemory)?;
    node.fill(at.address, Some(leaf.entry), leaf.slot).plant(Space::Memory);
    Ok(node)
}

/// Maps one page, if that is simple: the giver has it in its tables, nothing was ever granted or mapped over, and the receiver
/// has its table and a node ready. This is what pagers do all day. False if nothing was done.
#[inline(always)]
pub fn map_single(k: &Kernel, from: At, to: At, rights: Rights) -> bool {
    let Found::Leaf(giver) = table::find(&k.pool, from.task, from.address) else {
        return map_part_single(k, from, to, rights);
    };
    let Some(node) = giver.slot.get() else { return false };
    let Some(place) = single_place(k, to) else { return false };
    share_single((giver.entry.get(), node), to, place, rights)
}

/// Maps one part of a large page, if that is simple.
#[cold]
fn map_part_single(k: &Kernel, from: At, to: At, rights: Rights) -> bool {
    let giver = Giver::part(table::find(&k.pool, from.task, from.address), from.address);
    let (Some(giver), Some(place)) = (giver, single_place(k, to)) else { return false };
    let Some((large, _)) = giver.part_of else {
        return share_single((giver.entry, giver.node), to, place, rights);
    };
    let Some(behind) = large.place_of(&k.pool, Part::at(from.address).first) else { return false };
    match take_single(giver.entry, to, place, rights) {
        Some(child) => large.add_child_behind(behind, child),
        None => return false,
    }
    true
}

/// Place to which a single page goes, if there is a table.
#[inline(always)]
fn single_place(k: &Kernel, to: At) -> Option<Leaf> {
    if to.address >= abi::USER_END {
        return None;
    }
    match table::find(&k.pool, to.task, to.address) {
        Found::Leaf(place) => Some(place),
        _ => None,
    }
}

#[inline(always)]
fn share_single((entry, node): (u64, &'static Node), to: At, place: Leaf, rights: Rights) -> bool {
    let Some(child) = take_single(entry, to, place, rights) else { return false };
    node.add_child(child);
    true
}

/// Fills in the place of a single page if there is nothing. Returns the node, which is to get a place in the tree.
#[inline(always)]
fn take_single(entry: u64, to: At, place: Leaf, rights: Rights) -> Option<&'static Node> {
    let given = pte::rights(entry).and(rights);
    // σ0 may have a page from the machine there, without a node.
    if place.entry.get() != 0 || given == Rights::NONE {
        return None;
    }
    let child = to.task.slabs.take_ready()?;
    add_page(child, place, to, pte::derive(entry, given));
    Some(child)
}

/// Fills in the node of a page, and its entry.
#[inline(always)]
fn add_page(child: &'static Node, place: Leaf, to: At, entry: u64) {
    child.fill(to.address, Some(place.entry), place.slot);
    place.entry.set(entry);
    to.task.pages.set(to.task.pages.get() + 1);
}

/// Maps the page at `from`, whatever is there and at `to`. Returns the number of bytes that are done: more than a page at a hole.
pub fn map(step: &mut Step, from: At, to: At, rights: Rights) -> Result<u64, Stop> {
    match map_page(step, from, to, rights) {
        Ok(()) => Ok(PAGE_SIZE),
        Err(Gap::Until(until)) => Ok(until.get() - from.address),
        Err(Gap::Stop(stop)) => Err(stop),
    }
}

fn map_page(step: &mut Step, from: At, to: At, rights: Rights) -> Result<(), Gap> {
    let mut giver = Giver::find(step, from)?;
    let mut held = pte::rights(giver.entry);
    // Without any right there is nothing to map, and nothing is replaced.
    if from == to || held.and(rights) == Rights::NONE {
        return Ok(());
    }
    let grants = rights.has(Rights::GRANT);
    if grants && let Some((large, true)) = giver.part_of {
        return Ok(large::split(step, large)?);
    }
    let place = match to.find(step) {
        Found::Leaf(leaf) if leaf.entry.get() == 0 => leaf,
        found => {
            let place = make_room(step, to, found)?;
            // The giver's page may have been derived from the one that was just replaced: look again.
            giver = Giver::find(step, from)?;
            held = pte::rights(giver.entry);
            place
        }
    };
    let given = held.and(rights);
    if let Some((large, _)) = giver.part_of {
        return Ok(map_part(step, (large, giver.entry), from, (to, place), rights)?);
    }
    if grants {
        narrow_for_grant(step, giver.node, (held, given))?;
    }
    let child = to.task.slabs.take(step.pool(), to.task).ok_or(Stop::NoMemory)?;
    add_page(child, place, to, pte::derive(giver.entry, given));
    if grants {
        grant(step.k(), giver.node, child)
    } else {
        giver.node.add_child(child)
    }
    Ok(())
}

/// Maps or grants a part of a large page, which is split if it is to be granted, to a place where there is nothing.
#[inline(never)]
fn map_part(
    step: &mut Step,
    (large, entry): (LargePage, u64),
    from: At,
    (to, place): (At, Leaf),
    rights: Rights,
) -> Result<(), Stop> {
    let (pool, part) = (step.pool(), Part::at(from.address));
    let given = pte::derive(entry, pte::rights(entry).and(rights));
    // Six walks, none of them remembered.
    if rights.has(Rights::GRANT) {
        // First, since the walk may leave nothing of a step for it; and again, if somebody has made another meanwhile.
        large::prepare_loss(step, large, part)?;
        // The receiver's node begins a tree of its own beside the large page, so nobody may be below that.
        Walk { part, own: false, ..Walk::clear(&large) }.run(step)?;
        large::prepare_loss(step, large, part)?;
        let child = to.task.slabs.take(pool, to.task).ok_or(Stop::NoMemory)?;
        add_page(child, place, to, given);
        large.add_beside(child);
        large::restrict(step, large, (part, false), Rights::RWX);
    } else {
        if large.index().is_none() && !step.has_room_for_large() {
            // A frame for the index is a step of its own.
            return step.stop();
        }
        let behind = large.ensure_place_of(pool, part.first).ok_or(Stop::NoMemory)?;
        let child = to.task.slabs.take(pool, to.task).ok_or(Stop::NoMemory)?;
        add_page(child, place, to, given);
        large.add_child_behind(behind, child);
    }
    step.charge(3);
    Ok(())
}

/// Empties the place of a small page, which `found` describes: its page is taken from everyone who got it from there.
#[inline(never)]
fn make_room(step: &mut Step, to: At, found: Found) -> Result<Leaf, Stop> {
    let leaf = match found {
        Found::Leaf(leaf) => leaf,
        Found::Large { node: Some(node), .. } => return large::split(step, node),
        Found::Part { leaf, node } if pte::is_part(leaf.entry.get()) => {
            Walk { part: Part::at(to.address), ..Walk::clear(&node) }.run(step)?;
            return Ok(leaf);
        }
        Found::Part { leaf, .. } => leaf,
        Found::Large { node: None, .. } | Found::Nothing { .. } => {
            step.begin_alone()?;
            step.is_fresh = false;
            table::ensure(step.pool(), to.task, to.address).ok_or(Stop::NoMemory)?
        }
    };
    if let Some(old) = leaf.slot.get() {
        Walk::clear(old).run(step)?;
    } else if leaf.entry.get() != 0 {
        // σ0 has it from the machine, without a node: nobody has anything from it.
        leaf.entry.set(0);
        processor::space::invalidate(to.task, to.address);
    }
    Ok(leaf)
}

/// Prepares a grant of `given`, of the rights that are `held` in a page: nobody below may have more than its giver.
#[inline(always)]
pub fn narrow_for_grant(
    step: &mut Step,
    root: &'static Node,
    (held, given): (Rights, Rights),
) -> Result<(), Stop> {
    // A right that goes along with others on this machine is not lost.
    let remove = if held == given { Rights::NONE } else { held.without(pte::rights(pte::derive(0, given))) };
    if remove == Rights::NONE {
        return Ok(());
    }
    Walk { root, part: Part::WHOLE, remove, own: false }.run(step)
}

/// Puts `child` in the place of `node` in the tree, whose page, port or line is gone from its owner. Nobody below has more
/// rights than `child`: see [`narrow_for_grant`].
pub fn grant(k: &Kernel, node: &'static Node, child: &'static Node) {
    let (owner, address) = (node.task(), node.address());
    node.replace_by(child);
    if let Some(entry) = node.entry() {
        entry.set(0);
        owner.lose_pages(1);
        processor::space::invalidate(owner, address);
        return node.discard(&k.pool);
    }
    let lost = Lost::of(node);
    node.discard(&k.pool);
    lost.tell(k);
}

/// Takes `remove` from one mapping. Without reading nothing is left, nor of a port or line: the node goes. Returns the status bits.
pub fn restrict(k: &Kernel, node: &'static Node, remove: Rights) -> u64 {
    let task = node.task();
    let Some(entry) = node.entry() else {
        let lost = Lost::of(node);
        node.erase(&k.pool);
        lost.tell(k);
        return 0;
    };
    let old = entry.get();
    entry.set(pte::without_status(pte::restrict(old, remove)));
    if entry.get() != old {
        processor::space::invalidate(task, node.address());
    }
    if entry.get() == 0 {
        task.lose_pages(1);
        node.erase(&k.pool);
    }
    pte::status(old)
}

/// Takes a page from one mapping. Returns the status bits.
#[inline(always)]
pub fn erase(k: &Kernel, node: &'static Node, entry: &core::cell::Cell<u64>) -> u64 {
    let task = node.task();
    let old = entry.replace(0);
    processor::space::invalidate(task, node.address());
    task.lose_pages(1);
    node.erase(&k.pool);
    pte::status(old)
}
