//! Runs of pages: map, grant and flush over neighbours in one last-level table.
//!
//! Facts that hold for all pages of a run are found once: tables, slab, the loaded space, the rights. A run ends where a page
//! is not simple; [`super::small`] deals with that one, and the next run begins behind it. A page fares alike
//! on both paths: the model tests go through both.

use super::at::At;
use super::plan::Plan;
use super::pool::Pool;
use super::recent::{Leaf, Places};
use super::table;
use crate::arch::pte;
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::{Cut, Node, Relation, Returned};
use crate::processor::space::Forget;
use abi::{PAGE_SIZE, Rights};
use core::cell::Cell;

/// Pages that are mapped for one unit of a budget.
const MAPPED_PER_UNIT: usize = 4;

/// Maps or grants pages that `from` has a node for to addresses where `to` has nothing, from byte `done` of the plan on. Returns the
/// number of bytes that are done.
#[inline(always)]
pub fn map(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, budget: &mut usize) -> u64 {
    // σ0 may have pages there without a node, from the machine.
    if !plan.rights.has(Rights::R) || to.is_sigma0.get() {
        return 0;
    }
    let pages = if !plan.rights.has(Rights::GRANT) {
        share(k, plan, (from, to), done, budget)
    } else if from != to {
        grant(k, plan, (from, to), done, budget)
    } else {
        // The nodes of a grant within one task come from where they go to.
        0
    };
    pages as u64 * PAGE_SIZE
}

/// Maps pages. Returns their number.
#[inline(never)]
fn share(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, budget: &mut usize) -> usize {
    let most = *budget * MAPPED_PER_UNIT;
    let Some((run, nodes)) = Run::new(k, plan, (from, to), (done, most)) else { return 0 };
    let rights = pte::Derivation::new(plan.rights);
    let (pages, nodes) =
        run.each(nodes, |_, entry| Some(rights.of(entry)), |_, node, child| node.add_child(child));
    end_map(to, nodes, pages);
    *budget = (*budget * MAPPED_PER_UNIT - pages) / MAPPED_PER_UNIT;
    pages
}

/// Grants pages, each for a unit: its slab may have to learn that it gets one node back. Returns their number.
#[inline(never)]
fn grant(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, budget: &mut usize) -> usize {
    let Some((run, nodes)) = Run::new(k, plan, (from, to), (done, *budget)) else { return 0 };
    let pages = run.grant(&k.pool, to, nodes, plan.rights);
    *budget -= pages;
    Forget::of(from).pages(plan.from + done, pages);
    pages
}

/// Ends a mapping: the receiver has so many pages more.
#[inline(always)]
fn end_map(to: TaskRef, nodes: Cut, pages: usize) {
    to.slabs.return_cut(nodes, pages as u32);
    to.pages.set(to.pages.get() + pages as u32);
}

/// Entries and node slots of the pages to map or grant.
#[derive(Clone, Copy)]
struct Run {
    giver: Places,
    taker: Places,
    target: u64,
}

impl Run {
    /// A run of at most `most` pages from byte `done` of the plan on, as far as there are tables and a slab with nodes for them.
    #[inline(always)]
    fn new(
        k: &Kernel,
        plan: &Plan,
        (from, to): (TaskRef, TaskRef),
        (done, most): (u64, usize),
    ) -> Option<(Run, Cut)> {
        let (source, target) = (plan.from + done, plan.to + done);
        let left = ((1 << plan.log2) - done).min(abi::USER_END.saturating_sub(target)) / PAGE_SIZE;
        let (giver, taker) = (table::run(&k.pool, from, source)?, table::run(&k.pool, to, target)?);
        let most = most.min(left as usize).min(giver.0.len()).min(taker.0.len());
        let first = |(entries, slots): Places| (&entries[..most], &slots[..most]);
        Some((Run { giver: first(giver), taker: first(taker), target }, to.slabs.cut()?))
    }

    /// Calls `page` for each page in whose target `to` has nothing, with a node for it. `entry` gives the entry of `to` for that of `from`,
    /// or ends the run.
    #[inline(always)]
    fn each(
        &self,
        mut nodes: Cut,
        entry: impl Fn(&'static Node, u64) -> Option<u64>,
        mut page: impl FnMut(Leaf, &'static Node, &'static Node),
    ) -> (usize, Cut) {
        let giver = self.giver.0.iter().zip(self.giver.1);
        let taker = self.taker.0.iter().zip(self.taker.1);
        let (mut pages, mut target) = (0, self.target);
        for ((old, old_slot), (new, new_slot)) in giver.zip(taker) {
            let (Some(node), None) = (old_slot.get(), new_slot.get()) else { break };
            let Some(given) = entry(node, old.get()) else { break };
            let Some(child) = nodes.take() else { break };
            new.set(given);
            child.fill(target, Some(new), new_slot);
            page(Leaf { entry: old, slot: old_slot }, node, child);
            target += PAGE_SIZE;
            pages += 1;
        }
        (pages, nodes)
    }

    /// The rest of the run behind its first `pages` pages.
    fn behind(&self, pages: usize) -> Run {
        let rest = |(entries, slots): Places| (&entries[pages..], &slots[pages..]);
        let target = self.target + pages as u64 * PAGE_SIZE;
        Run { giver: rest(self.giver), taker: rest(self.taker), target }
    }

    /// Grants pages. Ends before one of which the giver has more rights than it gives: pages below it would have to lose them.
    #[inline(never)]
    fn grant(mut self, pool: &Pool, to: TaskRef, mut nodes: Cut, rights: Rights) -> usize {
        let rights = pte::Handover::new(rights);
        let most = self.giver.1.len().min(self.taker.1.len());
        let mut all = 0;
        // Pages whose nodes lie in one slab are done together: the slab is told once.
        while let Some(first) = self.giver.1.first().and_then(Cell::get) {
            let (slab, mut lost) = (Returned::of(first), Returned::of(first));
            let (pages, left) = self.each(
                nodes,
                |node, entry| rights.of(entry).filter(|_| slab.is_of(node)),
                |from, node, child| {
                    from.entry.set(0);
                    from.slot.set(None);
                    node.replace_by(child);
                    lost.add(node);
                },
            );
            nodes = left;
            if pages == 0 {
                break;
            }
            lost.settle(pool);
            all += pages;
            if all == most {
                break;
            }
            self = self.behind(pages);
        }
        end_map(to, nodes, all);
        all
    }
}

/// Pages that are looked at for one unit if their owner keeps them.
const KEPT_PER_UNIT: usize = 2;
/// Pages that are looked at for one unit if their owner loses them too.
const LOST_PER_UNIT: usize = 1;

/// Price of a slab that learns which nodes it gets back, in mappings below a page beside the first.
const SETTLING: usize = 4;

/// Takes pages from everyone who got them from a task, and with `OWN` from the task too, starting at an address: at most `most`
/// pages. Collects status bits. Returns the number of pages that are done.
#[inline(never)]
pub fn flush<const OWN: bool>(k: &Kernel, at: At, most: u64, status: &mut u64, budget: &mut usize) -> u64 {
    let (pool, task) = (&k.pool, at.task);
    let per_unit = if OWN { LOST_PER_UNIT } else { KEPT_PER_UNIT };
    let most = most.min((*budget * per_unit) as u64) as usize;
    let Some((_, slots)) = table::run(pool, task, at.address) else { return 0 };
    let slots = &slots[..most.min(slots.len())];
    // σ0 keeps the pages that it has from the machine.
    let keeps_roots = task.is_sigma0.get();
    // Units for more than a page and one mapping below it.
    let mut left = *budget;
    let (mut lost, mut lost_own) = (Losses::default(), Losses::default());
    let mut done = 0;
    while let Some(slot) = slots.get(done) {
        let Some(node) = slot.get() else { break };
        if !take_below(pool, node, &mut lost, &mut left) {
            break;
        }
        if OWN && !(keeps_roots && node.depth() == 0) {
            if !lost_own.has_room_for(pool, node, &mut left) {
                break;
            }
            lost_own.entries |= take(node);
            node.unlink();
            slot.set(None);
            lost_own.add(node);
        }
        done += 1;
    }
    lost.nodes.settle(pool);
    lost_own.nodes.settle(pool);
    *status |= pte::status(lost.entries | lost_own.entries);
    *budget = left.saturating_sub(done.div_ceil(per_unit));
    done as u64
}

/// Takes a page from all mappings below `node`. False if something is in the way, or this was enough for one step.
#[inline(always)]
fn take_below(pool: &Pool, node: &'static Node, lost: &mut Losses, left: &mut usize) -> bool {
    let Some(first) = node.next() else { return true };
    match node.relation(first) {
        Relation::Below if lost.has_room_for(pool, first, left) => {}
        Relation::Beside => return true,
        _ => return false,
    }
    let mut next = lost.take(node, first);
    // The first is part of the price of the page; those behind it are not.
    while let Some(below) = next {
        match node.relation(below) {
            Relation::Below if *left != 0 && lost.has_room_for(pool, below, left) => {}
            Relation::Beside => return true,
            _ => return false,
        }
        *left = left.saturating_sub(1);
        next = lost.take(node, below);
    }
    true
}

/// Makes a page absent. Returns its former entry.
#[inline(always)]
fn take(node: &'static Node) -> u64 {
    node.entry().expect("a page has an entry").replace(0)
}

/// Mappings that tasks lose, gathered as long as they lie in one slab: the slab and its task are told once.
#[derive(Clone, Copy, Default)]
struct Losses {
    nodes: Returned,
    forget: Forget,
    /// Bits that were in any of their entries.
    entries: u64,
}

impl Losses {
    /// Prepares for one more node. False if that is too much for this step.
    #[inline(always)]
    fn has_room_for(&mut self, pool: &Pool, node: &'static Node, left: &mut usize) -> bool {
        if !self.nodes.is_of(node) {
            if *left < SETTLING {
                return false;
            }
            *left -= SETTLING;
            // By value, so that all is in registers as long as the slab stays.
            *self = self.begin(pool, node);
        }
        true
    }

    /// Takes the page from `below`, which is next to `node` in the tree. Returns the node that comes behind that then.
    #[inline(always)]
    fn take(&mut self, node: &'static Node, below: &'static Node) -> Option<&'static Node> {
        let next = node.cut_below(below);
        self.entries |= take(below);
        below.leave();
        self.add(below);
        next
    }

    /// Adds a node that is in no tree and no slot any more, and whose entry is absent already: a translation that is forgotten must not
    /// come back.
    #[inline(always)]
    fn add(&mut self, node: &'static Node) {
        self.forget.page(node.address());
        self.nodes.add(node);
    }

    #[inline(never)]
    fn begin(self, pool: &Pool, node: &'static Node) -> Losses {
        self.nodes.settle(pool);
        Losses { nodes: Returned::of(node), forget: Forget::of(node.task()), entries: self.entries }
    }
}
