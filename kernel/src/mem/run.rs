//! Runs of pages: map, grant and flush over neighbours in one last-level table.
//!
//! Facts that hold for all pages of a run are found once: tables, slab, the loaded space, the rights. A run ends where a page
//! is not simple; [`super::small`] deals with that one, and the next run begins behind it. A page fares alike
//! on both paths: the model tests go through both.

use super::at::At;
use super::plan::Plan;
use super::pool::Pool;
use super::recent::Places;
use super::table;
use crate::arch::pte;
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::{Cut, Fresh, Node, NodeSlot, Relation, Returned};
use crate::processor::space::Forget;
use abi::{PAGE_SIZE, Rights};
use core::cell::Cell;

/// Pages that are mapped for one unit of a budget.
const MAPPED_PER_UNIT: usize = 6;

/// Price of going on with another slab that has free nodes, in pages.
const SLAB_PAGES: usize = 6;

/// Price of a new slab, in pages: a frame, and the links between the nodes that are left.
const FRESH_PAGES: usize = 12;

/// Pages that were mapped or granted.
#[derive(Clone, Copy)]
pub struct Mapped {
    pages: usize,
    /// Whether the receiver could not pay for the page behind them. That was an answer: nobody is to ask for it again.
    pub is_denied: bool,
}

impl Mapped {
    fn pages(pages: usize) -> Mapped {
        Mapped { pages, is_denied: false }
    }

    /// Their bytes.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        self.pages as u64 * PAGE_SIZE
    }
}

/// Maps or grants pages that `from` has a node for to addresses where `to` has nothing, from byte `done` of the plan on.
#[inline(always)]
pub fn map(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, budget: &mut usize) -> Mapped {
    // σ0 may have pages there without a node, from the machine.
    if !plan.rights.has(Rights::R) || to.is_sigma0.get() {
        return Mapped::pages(0);
    }
    if !plan.rights.has(Rights::GRANT) {
        share(k, plan, (from, to), done, budget)
    } else if from != to {
        Mapped::pages(grant(k, plan, (from, to), done, budget))
    } else {
        // The nodes of a grant within one task come from where they go to.
        Mapped::pages(0)
    }
}

/// Maps pages.
#[inline(never)]
fn share(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, budget: &mut usize) -> Mapped {
    let Some(run) = Run::new(k, plan, (from, to), done) else { return Mapped::pages(0) };
    let rights = pte::Derivation::new(plan.rights);
    let (mut pages, mut left, mut is_denied) = (0, *budget * MAPPED_PER_UNIT, false);
    loop {
        let rest = run.behind(pages).up_to(left);
        if !rest.begins() {
            break;
        }
        let Some(nodes) = to.slabs.cut() else {
            // Apart, so that all is in registers here.
            let shared = share_fresh(k, plan, (from, to), done + pages as u64 * PAGE_SIZE, left);
            is_denied = shared == 0;
            if is_denied {
                break;
            }
            pages += shared;
            left = (left - shared).saturating_sub(FRESH_PAGES);
            continue;
        };
        let shared = rest.share(to, nodes, rights);
        pages += shared;
        left = (left - shared).saturating_sub(SLAB_PAGES);
    }
    to.pages.set(to.pages.get() + pages as u32);
    *budget = left / MAPPED_PER_UNIT;
    Mapped { pages, is_denied }
}

/// Maps pages, of which the first can be mapped, with the nodes of a new slab. Returns their number: 0 if the slab is denied.
#[inline(never)]
fn share_fresh(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, most: usize) -> usize {
    let Some(run) = Run::new(k, plan, (from, to), done) else { return 0 };
    let Some(fresh) = Fresh::new(&k.pool, to) else { return 0 };
    let mut nodes = fresh.nodes().iter();
    let rights = pte::Derivation::new(plan.rights);
    let pages = run.up_to(most).each(|| nodes.next(), rights, |child| fresh.begin(child));
    to.slabs.add(fresh, pages);
    pages
}

/// Grants pages, each for a unit: its slab may have to learn that it gets one node back. Returns their number.
#[inline(never)]
fn grant(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, budget: &mut usize) -> usize {
    let Some(run) = Run::new(k, plan, (from, to), done) else { return 0 };
    let Some(nodes) = to.slabs.cut() else { return 0 };
    let pages = run.up_to(*budget).grant(&k.pool, to, nodes, plan.rights);
    *budget -= pages;
    Forget::of(from).pages(plan.from + done, pages);
    pages
}

/// Pages that the loop over a run takes together: the compiler writes the loop out that many times.
const CHUNK: usize = 4;

/// Entries or slots in chunks, and the rest.
type Chunks<T> = (&'static [[T; CHUNK]], &'static [T]);

#[inline(always)]
fn chunks((entries, slots): Places) -> (Chunks<Cell<u64>>, Chunks<NodeSlot>) {
    (entries.as_chunks(), slots.as_chunks())
}

/// Entries and node slots of the pages to map or grant.
#[derive(Clone, Copy)]
struct Run {
    giver: Places,
    taker: Places,
    target: u64,
}

impl Run {
    /// A run of the pages from byte `done` of the plan on, as far as there are tables for them.
    #[inline(always)]
    fn new(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64) -> Option<Run> {
        let (source, target) = (plan.from + done, plan.to + done);
        let left = ((1 << plan.log2) - done).min(abi::USER_END.saturating_sub(target)) / PAGE_SIZE;
        let (giver, taker) = (table::run(&k.pool, from, source)?, table::run(&k.pool, to, target)?);
        let most = (left as usize).min(giver.0.len()).min(taker.0.len());
        Some(Run { giver, taker, target }.up_to(most))
    }

    /// The first `most` pages of the run, or all.
    #[inline(always)]
    fn up_to(&self, most: usize) -> Run {
        let most = most.min(self.giver.0.len());
        let first = |(entries, slots): Places| (&entries[..most], &slots[..most]);
        Run { giver: first(self.giver), taker: first(self.taker), target: self.target }
    }

    /// Whether the first page of the run is simple.
    #[inline(always)]
    fn begins(&self) -> bool {
        let [giver, taker] = [self.giver, self.taker].map(|(_, slots)| slots.first().map(Cell::get));
        matches!((giver, taker), (Some(Some(_)), Some(None)))
    }

    /// Maps pages with nodes of one slab. Returns their number.
    #[inline(always)]
    fn share(&self, to: TaskRef, mut nodes: Cut, rights: pte::Derivation) -> usize {
        let pages = self.each(|| nodes.take(), rights, |_| ());
        to.slabs.return_cut(nodes, pages as u32);
        pages
    }

    /// Maps each page for whose target `to` has nothing, with the next of `nodes`, which is begun. Returns the number of pages.
    #[inline(always)]
    fn each(
        &self,
        mut nodes: impl FnMut() -> Option<&'static Node>,
        rights: pte::Derivation,
        begin: impl Fn(&'static Node),
    ) -> usize {
        let mut target = self.target;
        let mut one =
            |old: &Cell<u64>, old_slot: &NodeSlot, new: &'static Cell<u64>, new_slot: &'static NodeSlot| {
                let (Some(node), None) = (old_slot.get(), new_slot.get()) else { return false };
                let Some(child) = nodes() else { return false };
                new.set(rights.of(old.get()));
                begin(child);
                node.add_child(child.fill(target, Some(new), new_slot));
                target += PAGE_SIZE;
                true
            };
        let ((old, old_rest), (old_slots, old_slots_rest)) = chunks(self.giver);
        let ((new, new_rest), (new_slots, new_slots_rest)) = chunks(self.taker);
        let mut all = old.iter().zip(old_slots).zip(new).zip(new_slots);
        let all = all.all(|(((old, old_slots), new), new_slots)| {
            (0..CHUNK).all(|i| one(&old[i], &old_slots[i], &new[i], &new_slots[i]))
        });
        if all {
            let mut rest = old_rest.iter().zip(old_slots_rest).zip(new_rest).zip(new_slots_rest);
            rest.all(|(((old, old_slot), new), new_slot)| one(old, old_slot, new, new_slot));
        }
        ((target - self.target) / PAGE_SIZE) as usize
    }

    /// The rest of the run behind its first `pages` pages.
    fn behind(&self, pages: usize) -> Run {
        let rest = |(entries, slots): Places| (&entries[pages..], &slots[pages..]);
        let target = self.target + pages as u64 * PAGE_SIZE;
        Run { giver: rest(self.giver), taker: rest(self.taker), target }
    }

    /// Grants pages whose nodes lie in the slab of `lost`, which gets them. Returns their number.
    #[inline(always)]
    fn grant_of_slab(&self, nodes: &mut Cut, rights: pte::Handover, lost: &mut Returned) -> usize {
        let giver = self.giver.0.iter().zip(self.giver.1);
        let taker = self.taker.0.iter().zip(self.taker.1);
        let (mut pages, mut target) = (0, self.target);
        for ((old, old_slot), (new, new_slot)) in giver.zip(taker) {
            let (Some(node), None) = (old_slot.get(), new_slot.get()) else { break };
            let Some(given) = rights.of(old.get()).filter(|_| lost.is_of(node)) else { break };
            let Some(child) = nodes.take() else { break };
            new.set(given);
            child.fill(target, Some(new), new_slot);
            old.set(0);
            old_slot.set(None);
            node.replace_by(child);
            lost.add(node);
            target += PAGE_SIZE;
            pages += 1;
        }
        pages
    }

    /// Grants pages. Ends before one of which the giver has more rights than it gives: pages below it would have to lose them.
    #[inline(never)]
    fn grant(mut self, pool: &Pool, to: TaskRef, mut nodes: Cut, rights: Rights) -> usize {
        let rights = pte::Handover::new(rights);
        let most = self.giver.1.len().min(self.taker.1.len());
        let mut all = 0;
        // Pages whose nodes lie in one slab are done together: the slab is told once.
        while let Some(first) = self.giver.1.first().and_then(Cell::get) {
            let mut lost = Returned::of(first);
            let pages = self.grant_of_slab(&mut nodes, rights, &mut lost);
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
        to.slabs.return_cut(nodes, all as u32);
        to.pages.set(to.pages.get() + all as u32);
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
    if let Some(first) = slots.first().and_then(Cell::get).and_then(|node| node.below(None))
        && !first.is_bookmark()
        && left >= SETTLING
    {
        left -= SETTLING;
        lost = Losses::of(first, 0);
    }
    let mut done = 0;
    loop {
        if !OWN {
            done += take_plainly(&slots[done..], &mut lost);
        }
        let Some(node) = slots.get(done).and_then(Cell::get) else { break };
        if !take_below(pool, node, &mut lost, &mut left) {
            break;
        }
        if OWN && !(keeps_roots && node.depth() == 0) {
            if !lost_own.has_room_for(pool, node, &mut left) {
                break;
            }
            lost_own.entries |= take(node);
            node.unlink();
            node.leave();
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

/// Takes pages of which each has no mapping below it, or one whose node lies in the slab of `lost`. Returns the number of pages.
#[inline(always)]
fn take_plainly(slots: &'static [NodeSlot], lost: &mut Losses) -> usize {
    if lost.nodes.is_empty() {
        return 0;
    }
    // By value, so that all is in registers.
    let (mut taken, mut done) = (*lost, 0);
    for slot in slots {
        let Some(node) = slot.get() else { break };
        if let Some(below) = node.next()
            && !node.is_beside(below)
        {
            // A bookmark is of no slab.
            if !taken.nodes.is_of(below) || below.next().is_some_and(|next| !node.is_beside(next)) {
                break;
            }
            taken.take(node, below);
        }
        done += 1;
    }
    *lost = taken;
    done
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
    match lost.take(node, first) {
        Some(next) if !node.is_beside(next) => {
            let done;
            // By value, as in `has_room_for`.
            (*lost, *left, done) = lost.take_others(pool, node, *left);
            done
        }
        _ => true,
    }
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

    /// Takes a page from all that are still below `node`, of which there is one: the first was part of the page's price. Returns what is
    /// left of the units, and whether nobody has it any more.
    #[inline(never)]
    fn take_others(mut self, pool: &Pool, node: &'static Node, mut left: usize) -> (Losses, usize, bool) {
        while let Some(below) = node.next() {
            match node.relation(below) {
                Relation::Below if left != 0 && self.has_room_for(pool, below, &mut left) => {}
                Relation::Beside => break,
                _ => return (self, left, false),
            }
            left = left.saturating_sub(1);
            self.take(node, below);
        }
        (self, left, true)
    }

    #[inline(never)]
    fn begin(self, pool: &Pool, node: &'static Node) -> Losses {
        self.nodes.settle(pool);
        Losses::of(node, self.entries)
    }

    /// No losses, for nodes of the slab of `node`.
    #[inline(always)]
    fn of(node: &'static Node, entries: u64) -> Losses {
        Losses { nodes: Returned::of(node), forget: Forget::of(node.task()), entries }
    }
}
