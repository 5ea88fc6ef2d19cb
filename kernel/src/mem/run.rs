//! Runs of pages: map, grant and flush over neighbours in one last-level table.
//!
//! What the pages of a run have in common is found once: tables, slab, the loaded space, the rights. A run ends where a page
//! is not simple; [`super::space`] deals with that one, and the next run begins behind it. What happens to a page is the same
//! on both ways: the model tests go through both.

use super::plan::Plan;
use super::table::{self, Leaf, Places};
use crate::arch::{self, pte};
use crate::kernel::Kernel;
use crate::mem::pool::Pool;
use crate::object::TaskRef;
use crate::object::mapping::{Cut, Node, Relation, Returned};
use abi::{PAGE_SIZE, Rights};
use core::cell::Cell;

/// Maps or grants pages that `from` got from someone to places where `to` has nothing, at most `most` pages from byte
/// `done` of the plan on. Returns how many.
pub fn map(k: &Kernel, plan: &Plan, (from, to): (TaskRef, TaskRef), done: u64, most: usize) -> usize {
    let (source, target) = (plan.from + done, plan.to + done);
    let left = ((1 << plan.log2) - done).min(abi::USER_END.saturating_sub(target)) / PAGE_SIZE;
    let most = most.min(left as usize);
    let grants = plan.rights.has(Rights::GRANT);
    // The nodes of a grant within one task come from where they go to.
    if most == 0 || !plan.rights.has(Rights::R) || grants && from == to {
        return 0;
    }
    let Some(giver) = table::run(&k.pool, from, source, most) else { return 0 };
    let Some(taker) = table::run(&k.pool, to, target, most) else { return 0 };
    let Some(nodes) = to.slabs.cut() else { return 0 };
    let run = Run { giver, taker, target };
    let (pages, nodes) = if grants {
        let (pages, nodes) = run.grant(&k.pool, nodes, plan.rights);
        arch::Forget::of(from).pages(source, pages);
        (pages, nodes)
    } else {
        run.share(nodes, plan.rights)
    };
    to.slabs.return_cut(nodes, pages as u32);
    to.pages.set(to.pages.get() + pages as u32);
    pages
}

/// Pages to map or grant.
#[derive(Clone, Copy)]
struct Run {
    giver: Places,
    taker: Places,
    target: u64,
}

impl Run {
    /// Calls `page` for each page that `to` has nothing in place of, with a node for it, as long as `entry` says what `to` gets for
    /// what `from` has.
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
            child.init_page(target, new, new_slot);
            page(Leaf { entry: old, slot: old_slot }, node, child);
            target += PAGE_SIZE;
            pages += 1;
        }
        (pages, nodes)
    }

    /// What is left behind the first `pages` pages.
    fn behind(&self, pages: usize) -> Run {
        let rest = |(entries, slots): Places| (&entries[pages..], &slots[pages..]);
        let target = self.target + pages as u64 * PAGE_SIZE;
        Run { giver: rest(self.giver), taker: rest(self.taker), target }
    }

    #[inline(always)]
    fn share(&self, nodes: Cut, rights: Rights) -> (usize, Cut) {
        let rights = pte::Derivation::new(rights);
        self.each(nodes, |_, entry| Some(rights.of(entry)), |_, node, child| node.add_child(child))
    }

    /// Ends before a page of which the giver has more rights than it gives: those below it would lose them.
    #[inline(never)]
    fn grant(mut self, pool: &Pool, mut nodes: Cut, rights: Rights) -> (usize, Cut) {
        let rights = pte::Handover::new(rights);
        let most = self.giver.1.len().min(self.taker.1.len());
        let mut all = 0;
        // Those whose nodes lie in one slab at a time: the slab is told once.
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
        (all, nodes)
    }
}

/// Takes pages from everyone who got them from `task`, and if it is to lose them `OWN` too, starting at `at`: at most `most`
/// pages, for half of `budget`; the other half is for what was derived from them more than once. Ends early where mappings lie
/// in too many slabs. Returns how many pages are done.
#[inline(never)]
pub fn flush<const OWN: bool>(
    k: &Kernel,
    task: TaskRef,
    (at, most): (u64, u64),
    status: &mut u64,
    budget: &mut usize,
) -> u64 {
    let most = most.min(*budget as u64 / 2) as usize;
    let Some((_, slots)) = table::run(&k.pool, task, at, most) else { return 0 };
    // σ0 keeps what it has from the machine.
    let keeps_roots = task.is_sigma0.get();
    let (mut lost, mut lost_own) = (Losses::default(), Losses::default());
    let (mut entries, mut own_entries, mut left) = (0, 0, *budget - most);
    let mut take_below = |lost: &mut Losses, node: &'static Node, below: &'static Node| {
        let next = node.cut_below(below);
        entries |= take(below);
        below.leave();
        lost.add(below);
        next
    };
    let mut done = 0;
    'pages: while let Some(slot) = slots.get(done) {
        let Some(node) = slot.get() else { break };
        let mut next = node.next();
        if let Some(first) = next {
            match node.relation(first) {
                Relation::Below if lost.has_room_for(&k.pool, first) => {
                    next = take_below(&mut lost, node, first)
                }
                Relation::Beside => next = None,
                _ => break,
            }
            while let Some(other) = next {
                match node.relation(other) {
                    Relation::Below if left != 0 && lost.has_room_for(&k.pool, other) => {
                        left -= 1;
                        next = take_below(&mut lost, node, other);
                    }
                    Relation::Beside => break,
                    _ => break 'pages,
                }
            }
        }
        if OWN && !(keeps_roots && node.depth() == 0) {
            if !lost_own.has_room_for(&k.pool, node) {
                break;
            }
            own_entries |= take(node);
            node.unlink();
            slot.set(None);
            lost_own.add(node);
        }
        done += 1;
    }
    lost.nodes.settle(&k.pool);
    lost_own.nodes.settle(&k.pool);
    *status |= pte::status(entries | own_entries);
    *budget = (left + most - done).saturating_sub(lost.settled + lost_own.settled);
    done as u64
}

/// Makes a page absent. Returns what its entry was.
#[inline(always)]
fn take(node: &'static Node) -> u64 {
    node.entry().expect("a page has an entry").replace(0)
}

/// Slabs that a step settles because the next mapping lies in another, for mappings that tasks got and for their own each.
const SLABS_PER_STEP: usize = 8;

/// Mappings that tasks lose, gathered as long as they lie in one slab: the slab and its task are told once.
#[derive(Clone, Copy, Default)]
struct Losses {
    nodes: Returned,
    forget: arch::Forget,
    settled: usize,
}

impl Losses {
    /// Gets ready for one more node. False if too many slabs were settled already, and it lies in another.
    #[inline(always)]
    fn has_room_for(&mut self, pool: &Pool, node: &'static Node) -> bool {
        if !self.nodes.is_of(node) {
            if self.settled == SLABS_PER_STEP {
                return false;
            }
            // By value, so that all is in registers as long as the slab is the same.
            *self = self.begin(pool, node);
        }
        true
    }

    /// A node that is in no tree and at no place any more, and whose entry is absent already: what is forgotten must not come
    /// back.
    #[inline(always)]
    fn add(&mut self, node: &'static Node) {
        self.forget.page(node.address());
        self.nodes.add(node);
    }

    #[inline(never)]
    fn begin(self, pool: &Pool, node: &'static Node) -> Losses {
        self.nodes.settle(pool);
        Losses { nodes: Returned::of(node), forget: arch::Forget::of(node.task()), settled: self.settled + 1 }
    }
}
