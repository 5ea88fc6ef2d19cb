//! Large pages, test by test: when one is made, what splits it, what that costs, and what happens without memory for it. The
//! random operations of [`crate::spaces`] hold the kernel against the model with large pages, too.

use crate::world::World;
use abi::call::task_op;
use abi::{Fpage, PAGE_SIZE, Rights};
use kernel::kernel::Kernel;
use kernel::mem::budget::Stop;
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Flush, Progress};
use kernel::mem::table::{self, Found};
use kernel::object::{TaskRef, ThreadRef};
use kernel::sim;

const SIZE: u64 = 2 << 20;
/// Where σ0's memory comes from, and where tasks get it.
const MEMORY: u64 = 64 << 20;
const PLACE: u64 = 1 << 30;

/// σ0 and two other tasks.
struct Stage {
    world: World,
    sigma0: TaskRef,
    near: TaskRef,
    far: TaskRef,
    /// Threads of these.
    actors: [ThreadRef; 3],
    /// Another thread of the first of the two.
    second: ThreadRef,
}

impl Stage {
    fn new() -> Stage {
        let world = World::new(1024);
        let [near, far] = [(); 2].map(|()| world.task(world.new_task(100)));
        let [in_near, in_far, second] = [near, far, near].map(|task| world.new_stand_in(task.id.get()));
        Stage { sigma0: world.sigma0, near, far, actors: [world.root, in_near, in_far], second, world }
    }

    /// A step of something that a thread of `task` does.
    fn step<R>(&self, task: TaskRef, step: impl FnOnce(&Kernel) -> R) -> R {
        self.world.acting(self.actor(task), || step(&self.world.k))
    }

    fn actor(&self, task: TaskRef) -> ThreadRef {
        self.actors.into_iter().find(|actor| actor.task() == task).expect("on the stage")
    }

    /// Maps with the budget of a step, until done. Returns whether all arrived.
    fn map(
        &self,
        (from, source): (TaskRef, u64),
        (to, target): (TaskRef, u64),
        log2: u32,
        rights: Rights,
    ) -> bool {
        let plan = Plan { space: abi::Space::Memory, from: source, to: target, log2, rights };
        let mut progress = Progress::START;
        while self.step(from, |k| space::map(k, plan, from, to, &mut progress, &mut 16)).is_err() {}
        self.world.check();
        progress.whole
    }

    fn flush(&self, task: TaskRef, page: Fpage, own: bool) -> Result<u64, Stop> {
        self.flush_by(self.actor(task), page, own)
    }

    fn flush_by(&self, actor: ThreadRef, page: Fpage, own: bool) -> Result<u64, Stop> {
        let (mut at, mut status) = (0, 0);
        let what = Flush { task: actor.task(), page, own };
        loop {
            let step = || space::flush(&self.world.k, what, &mut at, &mut status, &mut 32);
            let result = self.world.acting(actor, step);
            self.world.check();
            match result {
                Err(Stop::Again) => {}
                result => return result.map(|()| status),
            }
        }
    }

    fn is_large(&self, task: TaskRef, address: u64) -> bool {
        matches!(table::find(&self.world.k.pool, task, address), Found::Large { .. })
    }

    fn shows(&self, task: TaskRef, address: u64) -> Option<(u64, Rights)> {
        sim::walk(&self.world.k.pool, task, address)
    }

    /// σ0 → near → far, all large.
    fn chain(&self) {
        assert!(self.map((self.sigma0, MEMORY), (self.near, PLACE), 21, Rights::RW));
        assert!(self.map((self.near, PLACE), (self.far, PLACE), 21, Rights::RW));
        assert!(self.is_large(self.near, PLACE) && self.is_large(self.far, PLACE));
    }

    /// The task can pay for nothing more.
    fn exhaust(&self, task: TaskRef) {
        let arguments = [task.id.get().0, task.used.get() as u64, 0, 0];
        self.world.task_control(task_op::SET_QUOTA, arguments).expect("it is ours");
    }
}

/// Two pages of the large one, which a walk looks for among all others.
fn pair(index: u64, rights: Rights) -> Fpage {
    Fpage::memory(PLACE + index * PAGE_SIZE, 13, rights)
}

fn page(index: u64, rights: Rights) -> Fpage {
    Fpage::memory(PLACE + index * PAGE_SIZE, 12, rights)
}

#[test]
fn a_large_page_costs_a_directory_and_two_nodes() {
    let stage = Stage::new();
    let before = stage.near.used.get();
    assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
    assert!(stage.is_large(stage.near, PLACE));
    // Two tables, the shadow of the second, a slab; the same again for the next, which is there already.
    assert_eq!(stage.near.used.get(), before + 4);
    assert!(stage.map((stage.sigma0, MEMORY + SIZE), (stage.near, PLACE + SIZE), 21, Rights::RW));
    assert_eq!((stage.near.used.get(), stage.near.pages.get()), (before + 4, 1024));
    // Half of one cannot be large, nor can one that arrives in another place in its 2 MiB.
    assert!(stage.map((stage.sigma0, MEMORY + 2 * SIZE), (stage.near, PLACE + 2 * SIZE), 20, Rights::RW));
    assert!(!stage.is_large(stage.near, PLACE + 2 * SIZE));
}

#[test]
fn small_pages_out_of_a_large_one_leave_it_whole() {
    let stage = Stage::new();
    assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
    for index in [0, 7, 511] {
        let at = index * PAGE_SIZE;
        assert!(stage.map((stage.near, PLACE + at), (stage.far, at), 12, Rights::RWX));
        assert_eq!(stage.shows(stage.far, at), Some((MEMORY + at, Rights::RW)));
    }
    stage.flush(stage.near, page(7, Rights::RWX), false).expect("nothing of one's own goes");
    assert_eq!(stage.shows(stage.far, 7 * PAGE_SIZE), None);
    assert!(stage.shows(stage.far, 0).is_some() && stage.shows(stage.far, 511 * PAGE_SIZE).is_some());
    assert!(stage.is_large(stage.near, PLACE));
}

#[test]
fn only_who_loses_a_part_is_split() {
    let stage = Stage::new();
    stage.chain();
    stage.flush(stage.near, page(3, Rights::W), false).expect("nothing of one's own goes");
    assert!(stage.is_large(stage.near, PLACE) && !stage.is_large(stage.far, PLACE));
    assert_eq!(stage.shows(stage.far, PLACE + 3 * PAGE_SIZE).expect("it is there").1, Rights::R);
    assert_eq!(stage.shows(stage.far, PLACE + 4 * PAGE_SIZE).expect("it is there").1, Rights::RW);
    let everything = Fpage::memory(PLACE, 21, Rights::RWX);
    stage.flush(stage.near, everything, true).expect("no part of it");
    assert_eq!((stage.near.pages.get(), stage.far.pages.get()), (0, 0));
    // The table of small pages makes room for the next large one.
    stage.chain();
}

#[test]
fn without_memory_nothing_of_ones_own_is_lost() {
    let stage = Stage::new();
    stage.chain();
    stage.exhaust(stage.near);
    let used = stage.near.used.get();
    for rights in [Rights::RWX, Rights::W, Rights::NONE] {
        assert_eq!(stage.flush(stage.near, page(3, rights), true), Err(Stop::NoMemory));
    }
    // Nor by a part that is granted, or by what is mapped over a part.
    let grant = Rights::RW.or(Rights::GRANT);
    assert!(!stage.map((stage.near, PLACE), (stage.far, 0), 12, grant));
    assert!(!stage.map((stage.sigma0, MEMORY + SIZE), (stage.near, PLACE), 12, Rights::RW));
    assert!(stage.is_large(stage.near, PLACE) && stage.is_large(stage.far, PLACE));
    assert_eq!((stage.near.used.get(), stage.near.pages.get(), stage.far.pages.get()), (used, 512, 512));
    assert_eq!(stage.shows(stage.far, PLACE), Some((MEMORY, Rights::RW)));
}

#[test]
fn who_cannot_pay_for_the_split_loses_the_large_page() {
    let stage = Stage::new();
    stage.chain();
    stage.exhaust(stage.near);
    let part = Fpage::memory(MEMORY, 12, Rights::RWX);
    // What it says about a part is said of the whole; nothing goes.
    assert!(sim::touch(&stage.world.k.pool, stage.near, PLACE + SIZE / 2, true));
    assert_eq!(stage.flush(stage.sigma0, part.with_rights(Rights::NONE), false), Ok(3));
    assert!(stage.is_large(stage.near, PLACE));
    stage.flush(stage.sigma0, part, false).expect("σ0 loses nothing");
    assert_eq!((stage.near.pages.get(), stage.far.pages.get()), (0, 0));
}

#[test]
fn a_part_is_granted_without_those_who_had_it() {
    let stage = Stage::new();
    stage.chain();
    let grant = Rights::RW.or(Rights::GRANT);
    assert!(stage.map((stage.near, PLACE + PAGE_SIZE), (stage.far, 0), 12, grant));
    assert_eq!(stage.shows(stage.far, 0), Some((MEMORY + PAGE_SIZE, Rights::RW)));
    assert_eq!(stage.shows(stage.near, PLACE + PAGE_SIZE), None);
    assert_eq!(stage.shows(stage.far, PLACE + PAGE_SIZE), None);
    assert!(stage.shows(stage.far, PLACE).is_some());
    // The giver cannot take it back, the one above can.
    stage.flush(stage.near, Fpage::memory(PLACE, 21, Rights::RWX), true).expect("no part of it");
    assert!(stage.shows(stage.far, 0).is_some());
    stage.flush(stage.sigma0, Fpage::memory(MEMORY, 21, Rights::RWX), false).expect("σ0 loses nothing");
    assert_eq!(stage.far.pages.get(), 0);
}

/// A flush of two small pages, of which hundreds were mapped out of the large one: it is broken off many times, and what
/// changes meanwhile is no trouble.
#[test]
fn a_long_list_is_walked_in_steps() {
    let stage = Stage::new();
    assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
    assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), 20, Rights::RW));
    assert!(!stage.is_large(stage.far, PLACE));
    let what = Flush { task: stage.near, page: pair(0, Rights::W), own: false };
    let (mut at, mut status, mut steps) = (0, 0, 0);
    while stage.step(stage.near, |k| space::flush(k, what, &mut at, &mut status, &mut 2)).is_err() {
        stage.world.check();
        steps += 1;
        let index = steps * 2;
        stage.flush(stage.far, page(index, Rights::RWX), true).expect("small pages");
        if steps == 5 {
            // Another thread of the same task: the first begins anew.
            stage.flush(stage.near, pair(254, Rights::W), false).expect("nothing of one's own goes");
        }
    }
    assert!(steps > 5, "it was not broken off");
    for (index, rights) in [(0, Rights::R), (1, Rights::R), (3, Rights::RW), (255, Rights::R)] {
        assert_eq!(stage.shows(stage.far, PLACE + index * PAGE_SIZE).map(|(_, rights)| rights), Some(rights));
    }
}

/// A task that ends in the middle of a walk through what it handed on.
#[test]
fn a_bookmark_goes_with_its_page() {
    let stage = Stage::new();
    assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
    assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), 20, Rights::RW));
    let what = Flush { task: stage.near, page: pair(0, Rights::W), own: false };
    let result = stage.step(stage.near, |k| space::flush(k, what, &mut 0, &mut 0, &mut 2));
    assert_eq!(result, Err(Stop::Again));
    stage.world.check();
    // Runs over the list meet the bookmark.
    stage.flush(stage.far, Fpage::memory(PLACE, 20, Rights::RWX), false).expect("small pages");
    let id = stage.near.id.get().0;
    stage.world.task_control(task_op::DESTROY, [id, 0, 0, 0]).expect("it is ours");
    stage.world.check();
    assert_eq!(stage.far.pages.get(), 0);
}

/// While a flush of one's own is under way, another thread of the same task hands on what is to go, where the walk was already.
#[test]
fn nothing_slips_past_a_walk() {
    for (rights, left) in [(Rights::W, Some(Rights::R)), (Rights::RWX, None)] {
        let stage = Stage::new();
        assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
        assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), 20, Rights::RW));
        let what = Flush { task: stage.near, page: Fpage::memory(PLACE, 13, rights), own: true };
        let (mut at, mut status, mut steps) = (0, 0, 0);
        while stage.step(stage.near, |k| space::flush(k, what, &mut at, &mut status, &mut 2)).is_err() {
            steps += 1;
            if steps == 6 {
                assert!(stage.map((stage.near, PLACE + PAGE_SIZE), (stage.far, 0), 12, Rights::RW));
                assert_eq!(stage.shows(stage.far, 0), Some((MEMORY + PAGE_SIZE, Rights::RW)));
            }
        }
        assert!(steps > 10, "it was not broken off");
        for address in [0, PLACE + PAGE_SIZE] {
            assert_eq!(stage.shows(stage.far, address).map(|(_, rights)| rights), left);
        }
        assert_eq!(stage.shows(stage.near, PLACE + PAGE_SIZE).map(|(_, rights)| rights), left);
        stage.world.check();
    }
}

/// Units that a flush of one small page takes, of which `copies` were mapped out of a large page, as were `others` other pages.
fn units_of_flush(others: u64, copies: u64, rights: Rights) -> usize {
    let stage = Stage::new();
    assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
    let map = |index: u64, to: u64| {
        assert!(stage.map(
            (stage.near, PLACE + index * PAGE_SIZE),
            (stage.far, PLACE + to * PAGE_SIZE),
            12,
            Rights::RW
        ));
    };
    (0..others / 2).for_each(|index| map(index, index));
    (0..copies).for_each(|copy| map(300, 400 + copy));
    (others / 2..others).for_each(|index| map(index, index));
    let what = Flush { task: stage.near, page: page(300, rights), own: false };
    let (mut at, mut status, mut budget) = (0, 0, 1000);
    stage
        .step(stage.near, |k| space::flush(k, what, &mut at, &mut status, &mut budget))
        .expect("units enough");
    stage.world.check();
    let left = if rights.has(Rights::R) { None } else { Some(Rights::R) };
    for copy in 0..copies {
        let place = PLACE + (400 + copy) * PAGE_SIZE;
        assert_eq!(stage.shows(stage.far, place).map(|(_, rights)| rights), left);
    }
    for index in 0..others {
        assert!(stage.shows(stage.far, PLACE + index * PAGE_SIZE).is_some());
    }
    1000 - budget
}

/// The cost of a flush of one small page depends on the mappings of that page alone.
#[test]
fn a_flush_of_a_part_passes_no_other_part() {
    for rights in [Rights::RWX, Rights::W] {
        for copies in [1, 5] {
            let alone = units_of_flush(0, copies, rights);
            assert_eq!(units_of_flush(256, copies, rights), alone, "{rights:?}, {copies}");
            assert!(alone < 40, "{alone} units for {copies}");
        }
    }
}

/// While a walk through the mappings of one part is broken off, that part and others are handed on, and another walk comes and goes.
#[test]
fn nothing_slips_past_a_walk_through_one_part() {
    walk_through_one_part(|stage| stage.actor(stage.near));
}

/// The other walk is one of another thread, so that both are under way.
#[test]
fn nothing_slips_past_two_walks_through_parts() {
    walk_through_one_part(|stage| stage.second);
}

fn walk_through_one_part(of_other_walk: impl Fn(&Stage) -> ThreadRef) {
    const COPIES: u64 = 40;
    for (rights, left) in [(Rights::W, Some(Rights::R)), (Rights::RWX, None)] {
        for disturbed in 1..60 {
            let stage = Stage::new();
            assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
            assert!(stage.map((stage.near, PLACE), (stage.far, 1 << 30), 21, Rights::RW));
            let map = |index: u64, to: u64| {
                assert!(stage.map(
                    (stage.near, PLACE + index * PAGE_SIZE),
                    (stage.far, to * PAGE_SIZE),
                    12,
                    Rights::RW
                ));
            };
            (0..COPIES).for_each(|copy| map(7, copy));
            map(8, COPIES);
            let what = Flush { task: stage.near, page: page(7, rights), own: true };
            let (mut at, mut status, mut steps) = (0, 0, 0);
            while stage.step(stage.near, |k| space::flush(k, what, &mut at, &mut status, &mut 2)).is_err() {
                steps += 1;
                if steps == disturbed {
                    map(7, COPIES + 1);
                    map(9, COPIES + 2);
                    let other = of_other_walk(&stage);
                    stage.flush_by(other, page(8, Rights::W), false).expect("nothing of one's own goes");
                    map(7, COPIES + 3);
                    assert!(stage.map((stage.near, PLACE), (stage.far, 2 << 30), 12, Rights::RW));
                }
            }
            assert!(steps > 10, "it was not broken off");
            for copy in (0..COPIES).chain([COPIES + 1, COPIES + 3]).take(if steps < disturbed {
                COPIES as usize
            } else {
                99
            }) {
                let shown = stage.shows(stage.far, copy * PAGE_SIZE).map(|(_, rights)| rights);
                assert_eq!(shown, left, "{rights:?}, {copy}, in step {disturbed}");
            }
            assert_eq!(stage.shows(stage.far, (1 << 30) + 7 * PAGE_SIZE).map(|(_, rights)| rights), left);
            stage.world.check();
        }
    }
}

/// A large page of which parts were mapped is granted, and goes: the index goes before, in steps.
#[test]
fn an_index_goes_before_its_page() {
    for grants in [true, false] {
        let stage = Stage::new();
        assert!(stage.map((stage.sigma0, MEMORY), (stage.near, PLACE), 21, Rights::RW));
        assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), 20, Rights::RW));
        if grants {
            assert!(stage.map((stage.near, PLACE), (stage.far, 3 << 30), 21, Rights::RW.or(Rights::GRANT)));
            assert!(stage.is_large(stage.far, 3 << 30));
            stage
                .flush(stage.far, Fpage::memory(3 << 30, 12, Rights::RWX), false)
                .expect("nothing of one's own goes");
        } else {
            stage.flush(stage.near, Fpage::memory(PLACE, 12, Rights::RWX), true).expect("it is split");
        }
        assert_eq!(stage.shows(stage.far, PLACE), None);
        assert!(stage.shows(stage.far, PLACE + PAGE_SIZE).is_some());
        stage.flush(stage.sigma0, Fpage::memory(MEMORY, 21, Rights::RWX), false).expect("σ0 loses nothing");
        assert_eq!((stage.near.pages.get(), stage.far.pages.get()), (0, 0));
        stage.world.check();
    }
}

/// A large page, one that was split and has pages of others in it, and small ones, at once.
#[test]
fn a_flush_meets_all_sizes() {
    let stage = Stage::new();
    let grown = |page: u64| (stage.near, PLACE + page * PAGE_SIZE);
    assert!(stage.map((stage.sigma0, MEMORY), grown(0), 22, Rights::RW));
    assert!(stage.map((stage.sigma0, MEMORY + 3 * SIZE), grown(1024), 16, Rights::RW));
    assert!(stage.map((stage.sigma0, MEMORY + 2 * SIZE), grown(517), 12, Rights::RW));
    assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), 23, Rights::RW));
    assert!(stage.is_large(stage.far, PLACE) && !stage.is_large(stage.near, PLACE + SIZE));
    let had = stage.near.pages.get();
    assert_eq!((had, stage.far.pages.get()), (1024 + 16, had));
    let all = Fpage::memory(PLACE, 23, Rights::RWX);
    stage.flush(stage.near, all.with_rights(Rights::W), false).expect("nothing of one's own goes");
    for page in [0, 511, 512, 517, 1023, 1024, 1039] {
        let address = PLACE + page * PAGE_SIZE;
        let frame = stage.shows(stage.near, address).expect("it keeps everything").0;
        assert_eq!(stage.shows(stage.far, address), Some((frame, Rights::R)));
    }
    stage.flush(stage.near, all, true).expect("all of everything");
    assert_eq!((stage.near.pages.get(), stage.far.pages.get()), (0, 0));
}

/// A gibibyte of 512 large pages.
const FUSED_LOG2: u32 = 30;

impl Stage {
    /// Whether the processor sees one entry for the gibibyte around an address.
    fn is_fused(&self, task: TaskRef, address: u64) -> bool {
        table::seen(&self.world.k.pool, task, address).is_some()
    }

    fn large_part(index: u64, rights: Rights) -> Fpage {
        Fpage::memory(PLACE + index * SIZE, 21, rights)
    }
}

#[test]
fn a_gibibyte_is_one_entry_until_part_of_it_changes() {
    let stage = Stage::new();
    let before = (stage.near.used.get(), stage.far.used.get());
    assert!(stage.map((stage.sigma0, 0), (stage.near, PLACE), FUSED_LOG2, Rights::RW));
    assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), FUSED_LOG2, Rights::RW));
    assert!(stage.is_fused(stage.near, PLACE + 7 * SIZE) && stage.is_fused(stage.far, PLACE + 7 * SIZE));
    assert_eq!(stage.shows(stage.far, PLACE + 300 * SIZE + 5), Some((300 * SIZE + 5, Rights::RW)));
    // What is handed on from it leaves it whole, small or large.
    assert!(stage.map((stage.near, PLACE + 3 * SIZE), (stage.far, 0), 12, Rights::R));
    assert!(stage.map((stage.near, PLACE + 4 * SIZE), (stage.far, SIZE), 21, Rights::R));
    assert!(stage.is_fused(stage.near, PLACE));
    // Part of it is taken from whom it was handed to.
    stage.flush(stage.near, Stage::large_part(7, Rights::W), false).expect("nothing of one's own goes");
    assert!(stage.is_fused(stage.near, PLACE) && !stage.is_fused(stage.far, PLACE));
    for (index, rights) in [(6, Rights::RW), (7, Rights::R), (8, Rights::RW)] {
        let at = index * SIZE;
        assert_eq!(stage.shows(stage.far, PLACE + at), Some((at, rights)));
        assert!(stage.is_large(stage.far, PLACE + at));
    }
    // And a small part from oneself.
    stage.flush(stage.near, page(9, Rights::RWX), true).expect("there is memory to split it");
    assert!(!stage.is_fused(stage.near, PLACE) && !stage.is_large(stage.near, PLACE));
    assert_eq!(stage.shows(stage.near, PLACE + 9 * PAGE_SIZE), None);
    assert_eq!(stage.shows(stage.far, PLACE + 9 * PAGE_SIZE), None);
    assert_eq!(stage.shows(stage.near, PLACE + SIZE), Some((SIZE, Rights::RW)));
    for task in [stage.near, stage.far] {
        let id = task.id.get().0;
        stage.world.task_control(task_op::DESTROY, [id, 0, 0, 0]).expect("it is ours");
        stage.world.check();
    }
    assert!(before.0 < 10 && before.1 < 10);
}

#[test]
fn a_gibibyte_is_touched_as_a_whole() {
    let stage = Stage::new();
    assert!(stage.map((stage.sigma0, 0), (stage.near, PLACE), FUSED_LOG2, Rights::RW));
    assert!(stage.map((stage.near, PLACE), (stage.far, PLACE), FUSED_LOG2, Rights::RW));
    assert!(sim::touch(&stage.world.k.pool, stage.far, PLACE + 100 * SIZE, true));
    // The processor notes no more than that somebody wrote to it.
    assert_eq!(stage.flush(stage.near, Stage::large_part(5, Rights::NONE), false), Ok(3));
    assert_eq!(stage.flush(stage.near, Stage::large_part(5, Rights::NONE), false), Ok(0));
    assert!(sim::touch(&stage.world.k.pool, stage.far, PLACE + 6 * SIZE, false));
    assert_eq!(stage.flush(stage.near, Stage::large_part(6, Rights::NONE), false), Ok(3));
    assert_eq!(stage.flush(stage.near, Stage::large_part(6, Rights::NONE), false), Ok(0));
}

#[test]
fn a_gibibyte_is_granted_and_replaced() {
    let stage = Stage::new();
    let grant = Rights::RW.or(Rights::GRANT);
    assert!(stage.map((stage.sigma0, 0), (stage.near, PLACE), FUSED_LOG2, Rights::RW));
    assert!(stage.map((stage.near, PLACE), (stage.far, 2 * PLACE), FUSED_LOG2, grant));
    assert!(stage.is_fused(stage.far, 2 * PLACE) && stage.near.pages.get() == 0);
    assert_eq!(stage.shows(stage.near, PLACE), None);
    // Once more, over it: with one right less.
    assert!(stage.map((stage.sigma0, 0), (stage.far, 2 * PLACE), FUSED_LOG2, Rights::R));
    assert!(stage.is_fused(stage.far, 2 * PLACE));
    assert_eq!(stage.shows(stage.far, 2 * PLACE + SIZE), Some((SIZE, Rights::R)));
    // A small page over a part of it.
    assert!(stage.map((stage.sigma0, PLACE + PAGE_SIZE), (stage.far, 2 * PLACE + SIZE), 12, Rights::RW));
    assert!(!stage.is_fused(stage.far, 2 * PLACE));
    assert_eq!(stage.shows(stage.far, 2 * PLACE + SIZE), Some((PLACE + PAGE_SIZE, Rights::RW)));
    assert_eq!(stage.shows(stage.far, 2 * PLACE + SIZE + PAGE_SIZE), Some((SIZE + PAGE_SIZE, Rights::R)));
    // Pages that are not neighbours, or not all there, are not fused.
    assert!(stage.map((stage.sigma0, SIZE), (stage.near, PLACE), 21, Rights::RW));
    assert!(stage.map((stage.sigma0, PLACE - SIZE), (stage.near, 2 * PLACE - SIZE), 21, Rights::RW));
    assert!(!stage.is_fused(stage.near, PLACE));
}

#[test]
fn a_task_ends_although_somebody_elses_flush_is_broken_off_below_its_page() {
    (0..60).for_each(end_in_mid_flush);
}

fn end_in_mid_flush(steps: usize) {
    let stage = Stage::new();
    stage.chain();
    // A part of near's page goes, so that it has a list of parts; far has more of it one by one.
    for i in 1..40 {
        assert!(stage.map(
            (stage.near, PLACE + i * PAGE_SIZE),
            (stage.far, 2 * PLACE + i * PAGE_SIZE),
            12,
            Rights::RW
        ));
    }
    stage.flush(stage.near, Fpage::memory(PLACE, 12, Rights::RWX), true).expect("it can pay");
    // σ0 takes the right to write from everyone, step by step, and is interrupted.
    let (mut at, mut status) = (0, 0);
    let page = Fpage::memory(MEMORY, 21, Rights::W);
    for _ in 0..steps {
        let step = |k: &Kernel| {
            space::flush(k, Flush { task: stage.sigma0, page, own: false }, &mut at, &mut status, &mut 3)
        };
        if stage.step(stage.sigma0, step).is_ok() {
            break;
        }
    }
    stage.world.check();
    for task in [stage.near, stage.far] {
        stage.world.task_control(task_op::DESTROY, [task.id.get().0, 0, 0, 0]).expect("it is ours");
        stage.world.check();
    }
}
