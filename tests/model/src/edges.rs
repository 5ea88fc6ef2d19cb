//! The edges of memory: the last page of the user half, which nobody gets, and the first task's own program, which nobody gets
//! from it.
//!
//! Code that ends with the user half would make the processor leave the kernel for an address that is none. Each way by which
//! a page can be mapped has to stop before that: alone, in a run, page by page, and large.

use crate::world::{Caches, World};
use abi::{Fpage, PAGE_SIZE, Rights, Space};
use kernel::arch::pte;
use kernel::layout::SIGMA0_PROGRAM;
use kernel::mem::at::At;
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Progress};
use kernel::mem::table;
use kernel::object::TaskRef;
use kernel::sim;

/// First address that no user has; a page before it is the last that somebody has.
const USER_END: u64 = 0x7fff_ffff_f000;
const LAST: u64 = USER_END - PAGE_SIZE;

/// Where the giver has its pages, small and large.
const SMALL: u64 = 0x4000_0000;
const LARGE: u64 = 0x8000_0000;
const LARGE_LOG2: u32 = 21;

/// A giver with pages, and a taker with tables up to the end.
struct Edge {
    world: World,
    giver: TaskRef,
    taker: TaskRef,
}

fn map(world: &World, (from, to): (TaskRef, TaskRef), item: (u64, u64, u32), rights: Rights) {
    let (from_address, to_address, log2) = item;
    let plan = Plan { space: Space::Memory, from: from_address, to: to_address, log2, rights };
    let mut progress = Progress::START;
    while space::map(&world.k, plan, from, to, &mut progress, &mut 64).is_err() {}
    assert!(progress.whole, "there is memory");
}

impl Edge {
    fn new() -> Edge {
        Edge::on(Caches::None)
    }

    fn on(caches: Caches) -> Edge {
        let world = World::on(1 << 11, caches);
        let [giver, taker] = [world.new_task(100), world.new_task(100)].map(|id| world.task(id));
        map(&world, (world.sigma0, giver), (0x100_0000, SMALL, 14), Rights::RWX);
        map(&world, (world.sigma0, giver), (0x200_0000, LARGE, LARGE_LOG2), Rights::RWX);
        // So that it has tables, and a node is ready.
        map(&world, (world.sigma0, taker), (0x100_0000, LAST - 16 * PAGE_SIZE, 12), Rights::R);
        Edge { world, giver, taker }
    }

    /// The giver maps pages; those before the end arrive, and none behind it.
    fn check(&self, from: u64, to: u64, log2: u32, rights: Rights) {
        let (giver, taker) = (At { task: self.giver, address: from }, At { task: self.taker, address: to });
        let by_one = log2 == 12 && space::map_single(&self.world.k, giver, taker, rights);
        if !by_one {
            map(&self.world, (self.giver, self.taker), (from, to, log2), rights);
        }
        let is_there = |page| sim::walk(&self.world.k.pool, self.taker, page).is_some();
        assert!(!is_there(USER_END), "{log2} {rights:?}: a page at the end of the user half");
        let before = (to..to + (1 << log2)).step_by(PAGE_SIZE as usize).filter(|&page| page < USER_END);
        assert!({ before }.all(is_there), "{log2} {rights:?}: what comes before the end is missing");
        self.world.k.check();
    }
}

#[test]
fn the_last_page_of_the_user_half_is_nobodys() {
    for rights in [Rights::R, Rights::RWX, Rights::W, Rights::RWX.or(Rights::GRANT)] {
        // Alone, out of a small page and out of a large one.
        Edge::new().check(SMALL, USER_END, 12, rights);
        Edge::new().check(LARGE, USER_END, 12, rights);
        // Behind others.
        for (from, log2) in [(SMALL, 13), (SMALL, 14), (LARGE, 13), (LARGE, 16)] {
            Edge::new().check(from, (USER_END + PAGE_SIZE) - (1 << log2), log2, rights);
        }
        // In the place of a large page.
        Edge::new().check(LARGE, (USER_END + PAGE_SIZE) - (1 << LARGE_LOG2), LARGE_LOG2, rights);
    }
}

#[test]
fn the_last_large_page_of_the_user_half_is_nobodys() {
    // No table is there, so that a large page would find its place.
    let world = World::new(1 << 11);
    let [giver, taker] = [world.new_task(100), world.new_task(100)].map(|id| world.task(id));
    map(&world, (world.sigma0, giver), (0x200_0000, LARGE, LARGE_LOG2), Rights::RWX);
    let edge = Edge { world, giver, taker };
    edge.check(LARGE, (USER_END + PAGE_SIZE) - (1 << LARGE_LOG2), LARGE_LOG2, Rights::RWX);
}

#[test]
fn the_first_task_keeps_its_program() {
    for (log2, rights) in [(12, Rights::RWX), (12, Rights::R), (14, Rights::RW), (14, Rights::W)] {
        for grant in [Rights::NONE, Rights::GRANT] {
            let world = World::new(1 << 11);
            let taker = world.task(world.new_task(100));
            for page in (0..4).map(|i| SIGMA0_PROGRAM + i * PAGE_SIZE) {
                let leaf = table::ensure(&world.k.pool, world.sigma0, page).expect("there is memory");
                leaf.entry.set(pte::leaf(0x30_0000 + page - SIGMA0_PROGRAM, Rights::RWX, false));
            }
            let plan = Plan::fit(
                Fpage::memory(SIGMA0_PROGRAM, log2, rights.or(grant)),
                0,
                Fpage::memory(SMALL, log2, Rights::RWX),
            );
            let (plan, mut progress) = (plan.expect("both are memory"), Progress::START);
            while space::map(&world.k, plan, world.sigma0, taker, &mut progress, &mut 16).is_err() {}
            assert_eq!(sim::walk(&world.k.pool, taker, SMALL), None, "{log2} {rights:?} {grant:?}");
            let own = sim::walk(&world.k.pool, world.sigma0, SIGMA0_PROGRAM);
            assert!(own.is_some(), "the first task has lost its program");
            world.k.check();
        }
    }
}

/// The first task has memory from the machine, for which there are no nodes. Pages that it is given take the place of that, and it
/// uses what it had no more.
#[test]
fn the_first_task_forgets_the_memory_that_it_had() {
    for grant in [Rights::NONE, Rights::GRANT] {
        let edge = Edge::on(Caches::Tagged);
        let (world, sigma0) = (&edge.world, edge.world.sigma0);
        // Behind a page that was given away, so that there is a table, and a slab.
        let place = 0x180_0000;
        map(world, (sigma0, edge.taker), (place, LAST - 8 * PAGE_SIZE, 12), Rights::R);
        let pages = [4, 5, 6, 7].map(|i| place + i * PAGE_SIZE);
        assert!(pages.iter().all(|&page| sim::touch(&world.k.pool, sigma0, page, true)));
        sim::audit(&world.k).expect("nothing has changed");
        map(world, (edge.giver, sigma0), (SMALL, pages[0], 14), Rights::RW.or(grant));
        let given = pages.map(|page| sim::walk(&world.k.pool, sigma0, page).expect("it is there").0);
        assert_eq!(given, [0, 1, 2, 3].map(|i| 0x100_0000 + i * PAGE_SIZE));
        sim::audit(&world.k).expect("what it had is forgotten");
        world.check();
    }
}

/// Pages that a task grants to itself move. Their nodes go back to where the new ones come from: none is lost, so no frame is taken
/// however often that happens.
#[test]
fn pages_that_a_task_grants_to_itself_move() {
    let edge = Edge::new();
    let (giver, places) = (edge.giver, [SMALL, SMALL + 0x1_0000]);
    let pages =
        |first: u64| [0, 1, 2, 3].map(|i| sim::walk(&edge.world.k.pool, giver, first + i * PAGE_SIZE));
    let (before, used) = (pages(SMALL), giver.used.get());
    for i in 0..64 {
        let (from, to) = (places[i % 2], places[(i + 1) % 2]);
        map(&edge.world, (giver, giver), (from, to, 14), Rights::RWX.or(Rights::GRANT));
        assert_eq!((pages(to), pages(from)), (before, [None; 4]));
        assert_eq!(giver.used.get(), used, "after {i} times");
    }
    edge.world.check();
}
