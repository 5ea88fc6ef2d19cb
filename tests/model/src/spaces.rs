//! Appendix A of "On µ-Kernel Construction": the model, and the kernel's map, grant and flush held against it.
//!
//! *Model.* σ0 maps addresses to real pages; any other space maps an address to an address of a space, or to nothing.
//! Here a [`Mapping`] records that origin, and beside it what the model derives: the page and the rights, which are
//! never more than the origin's. *flush* erases whatever has its origin in an address, recursively; *replace* flushes an
//! address before it is set; *grant* moves the origin along; *map* makes a new one.
//!
//! *Implementation.* [`space::map`] and [`space::flush`] with small budgets, so that every operation is broken off and
//! continued. After each operation the two states are compared completely: which page each address of each task shows
//! in the page tables and with which rights, where each mapping's node lies in which tree, and the status bits.
//!
//! What the model adds to the paper: rights; flush of single rights; accessed and dirty bits, which belong to a mapping
//! and are gone with it; ports and interrupt lines, which map only to themselves and of which σ0 keeps the root.
//!
//! Two [`Ground`]s: small pages, all of which the model knows; and three times 2 MiB with large pages, of which it knows some
//! pages in each, since every page is a matter of its own. Which pages are large is the kernel's decision, and shows in two
//! things only, in which the model follows it: a large page has one set of status bits, and granting a part of one takes that
//! part from everyone below.

use crate::random::{Random, amount, programs};
use crate::world::World;
use abi::{Fpage, PAGE_SIZE, Rights, Space};
use kernel::mem::plan::Plan;
use kernel::mem::pool::{Frame, Words};
use kernel::mem::space::{self, Flush, Progress};
use kernel::mem::table::{self, Found};
use kernel::object::mapping::{Node, NodeTable};
use kernel::object::{TaskRef, ThreadRef};
use kernel::sim;
use std::collections::BTreeMap;

const TASKS: usize = 6;

/// The addresses that operations are about lie around this one, where tables of all levels meet.
const MIDDLE: u64 = 1 << 30;
/// Ports and lines.
const NUMBERS: u64 = 32;
/// Bytes of a large page.
const LARGE: u64 = 2 << 20;

/// The addresses that operations are about.
#[derive(Clone, Copy)]
struct Ground {
    first: u64,
    pages: u64,
    /// Of so many pages the model knows the first [`Ground::KNOWN`]; all if it is that.
    period: u64,
    /// Log2 of the sizes of what is mapped.
    sizes: &'static [u32],
}

impl Ground {
    const KNOWN: u64 = 2;
    const SMALL: Ground = Ground {
        first: MIDDLE - 16 * PAGE_SIZE,
        pages: 32,
        period: Ground::KNOWN,
        sizes: &[12, 12, 12, 13, 14, 15, 16],
    };
    /// What is smaller than the period is two pages at most, and they are known.
    const LARGE: Ground = Ground {
        first: MIDDLE - LARGE,
        pages: 3 * LARGE / PAGE_SIZE,
        period: 64,
        sizes: &[12, 12, 12, 13, 18, 19, 20, 21, 21, 21, 22],
    };

    fn knows(self, address: u64) -> bool {
        address / PAGE_SIZE % self.period < Ground::KNOWN
    }

    /// The pages that the model knows.
    fn known(self) -> impl Iterator<Item = u64> {
        (0..self.pages).map(move |i| self.first + i * PAGE_SIZE).filter(move |&page| self.knows(page))
    }

    /// Any of them.
    fn page(self, random: &mut Random) -> u64 {
        let page = random.below(self.pages / self.period) * self.period + random.below(Ground::KNOWN);
        self.first + page * PAGE_SIZE
    }

    /// Whether a range lies in it.
    fn has(self, address: u64, log2: u32) -> bool {
        address >= self.first && address + (1 << log2) <= self.first + self.pages * PAGE_SIZE
    }
}

/// The ports, around the border of two tables, and the lines.
const FIRST_PORT: u64 = 512 - 16;
const FIRST_LINE: u64 = 0;

/// A place: space, task, address or number. Task 0 is σ0.
type Place = (u8, usize, u64);

/// What is at a place.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mapping {
    /// `None` for what σ0 has from the beginning.
    origin: Option<Place>,
    page: u64,
    rights: Rights,
    /// Accessed and dirty, as flush returns them.
    status: u64,
}

/// All spaces.
#[derive(Default)]
struct Model {
    places: BTreeMap<Place, Mapping>,
}

impl Model {
    fn new(ground: Ground) -> Model {
        let mut model = Model::default();
        let all = Mapping { origin: None, page: 0, rights: Rights::RWX, status: 0 };
        for address in ground.known() {
            model.places.insert((0, 0, address), Mapping { page: address, ..all });
        }
        for i in 0..NUMBERS {
            let (port, line) = (FIRST_PORT + i, FIRST_LINE + i);
            model.places.insert((1, 0, port), Mapping { page: port, rights: Rights::RW, ..all });
            model.places.insert((2, 0, line), Mapping { page: line, rights: Rights::RW, ..all });
        }
        model
    }

    fn children(&self, of: Place) -> Vec<Place> {
        self.places
            .iter()
            .filter(|(_, mapping)| mapping.origin == Some(of))
            .map(|(&place, _)| place)
            .collect()
    }

    /// Whether a place has its page, directly or indirectly, from another.
    fn descends(&self, place: Place, from: Place) -> bool {
        let origin = |place: &Place| self.places.get(place).and_then(|mapping| mapping.origin);
        std::iter::successors(origin(&place), origin).any(|origin| origin == from)
    }

    /// Takes `remove` from everything that has its origin in `place`. Returns the status bits.
    fn flush(&mut self, place: Place, remove: Rights) -> u64 {
        let mut status = 0;
        for child in self.children(place) {
            status |= self.flush(child, remove) | self.restrict(child, remove);
        }
        status
    }

    /// Takes `remove` from a place; without reading nothing is left.
    fn restrict(&mut self, place: Place, remove: Rights) -> u64 {
        let Some(mapping) = self.places.get_mut(&place) else { return 0 };
        let status = std::mem::take(&mut mapping.status);
        mapping.rights = mapping.rights.without(remove);
        let small = place.0 != 0 && remove.and(Rights::RW) != Rights::NONE;
        if !mapping.rights.has(Rights::R) || small {
            self.places.remove(&place);
        }
        status
    }

    /// Maps or grants; `apart` if the page is taken out of a large one.
    fn map(&mut self, from: Place, to: Place, rights: Rights, apart: bool) {
        let Some(given) = self.places.get(&from).map(|source| source.rights.and(rights)) else { return };
        if from == to || given.and(if to.0 == 0 { Rights::RWX } else { Rights::RW }) == Rights::NONE {
            return;
        }
        if self.places.contains_key(&to) {
            self.flush(to, Rights::RWX);
            // σ0 cannot lose a port or line, not even to itself.
            if to.0 == 0 || to.1 != 0 {
                self.places.remove(&to);
            }
        }
        let Some(&source) = self.places.get(&from) else { return };
        // On this processor whatever can be written or executed can be read. A port has one right.
        let given = if to.0 == 0 { given.or(Rights::R) } else { Rights::RW };
        let child = Mapping { origin: Some(from), page: source.page, rights: given, status: 0 };
        let keeps_root = from.0 != 0 && from.1 == 0;
        if !rights.has(Rights::GRANT) || keeps_root {
            self.places.insert(to, child);
            return;
        }
        let lost = source.rights.without(given);
        if apart {
            self.flush(from, Rights::RWX);
        }
        for below in self.children(from) {
            self.places.get_mut(&below).expect("just found").origin = Some(to);
        }
        self.places.remove(&from);
        self.places.insert(to, Mapping { origin: source.origin, ..child });
        if lost != Rights::NONE {
            self.flush(to, lost);
        }
    }
}

/// An operation; everything it needs is in it, so that any part of a program is a program.
#[derive(Clone, Debug)]
enum Op {
    Map {
        from: usize,
        to: usize,
        item: Fpage,
        hot_spot: u64,
        window: Fpage,
        budget: usize,
    },
    Flush {
        task: usize,
        page: Fpage,
        own: bool,
        budget: usize,
    },
    /// Two of them by two threads of a task: after one step of the first comes all of the second.
    FlushBoth {
        task: usize,
        pages: [Fpage; 2],
        own: bool,
        budget: usize,
    },
    Touch {
        task: usize,
        address: u64,
        write: bool,
    },
}

fn pages(random: &mut Random, ground: Ground) -> Fpage {
    let log2 = random.pick(ground.sizes);
    let rights = random.pick(&[
        Rights::RWX,
        Rights::RWX,
        Rights::RW,
        Rights::R,
        Rights::RX,
        Rights::W,
        Rights::X,
        Rights::NONE,
    ]);
    Fpage::memory(ground.page(random), log2, rights)
}

/// A window for memory: sometimes much larger than what is sent.
fn window(random: &mut Random, ground: Ground) -> Fpage {
    match random.below(6) {
        0 => Fpage::memory(ground.first, random.pick(&[20, 21, 29, 30]), Rights::RWX),
        1 => Fpage::WHOLE,
        _ => pages(random, ground),
    }
}

fn small(random: &mut Random, space: Space) -> Fpage {
    let log2 = random.pick(&[0, 0, 1, 2, 3]);
    let i = random.below(NUMBERS);
    let page = match space {
        Space::Port => Fpage::ports((FIRST_PORT + i) as u16, log2),
        _ => Fpage(Fpage::interrupt(((FIRST_LINE + i) >> log2 << log2) as u8).0 | (log2 as u64) << 4),
    };
    page.with_rights(random.pick(&[Rights::RW, Rights::RWX, Rights::RW, Rights::W, Rights::X, Rights::NONE]))
}

fn operation(random: &mut Random, ground: Ground) -> Op {
    let task = |random: &mut Random| random.below(TASKS as u64) as usize;
    let budget = random.pick(&[2, 3, 5, 16]);
    let space = random.pick(&[
        Space::Memory,
        Space::Memory,
        Space::Memory,
        Space::Memory,
        Space::Port,
        Space::Interrupt,
    ]);
    let page = |random: &mut Random| {
        if space == Space::Memory { pages(random, ground) } else { small(random, space) }
    };
    match random.below(16) {
        0..10 => {
            let item = page(random);
            let grant = if random.one_in(4) { Rights::GRANT } else { Rights::NONE };
            let window = if space == Space::Memory { window(random, ground) } else { page(random) };
            Op::Map {
                from: task(random),
                to: task(random),
                item: item.with_rights(item.rights().or(grant)),
                hot_spot: ground.page(random) + random.below(PAGE_SIZE),
                window,
                budget,
            }
        }
        10..13 => {
            // Mostly about as large as what was mapped, sometimes much larger, with pages of all origins in it.
            let is_large = space == Space::Memory && random.one_in(4);
            let rights = page(random).rights();
            let page = if is_large { window(random, ground).with_rights(rights) } else { page(random) };
            let (task, own) = (task(random), random.one_in(2));
            if space == Space::Memory && random.one_in(4) {
                return Op::FlushBoth { task, pages: [page, pages(random, ground)], own, budget };
            }
            Op::Flush { task, page, own, budget }
        }
        _ => Op::Touch { task: task(random), address: ground.page(random), write: random.one_in(2) },
    }
}

/// Effect of a map item, as the model sees it. It knows nothing of the kernel's own [`Plan`]: an error in that shows in the states.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    space: u8,
    /// Addresses or numbers of the first byte, port or line, at the giver and at the taker.
    from: u64,
    to: u64,
    /// Bytes, ports or lines.
    size: u64,
    rights: Rights,
}

impl Arrival {
    /// The item's effect, as the specification says it: the smaller of item and window is mapped whole, and the hot spot, as far as it lies
    /// in the larger one, selects its place there. A number of a port or line has one place only, which both must have.
    fn of(item: Fpage, hot_spot: u64, window: Fpage) -> Option<Arrival> {
        let space = item.space();
        if window == Fpage(0) || window.space() != space {
            return None;
        }
        let first = |page: Fpage| if space == Space::Memory { page.base() } else { page.base() / PAGE_SIZE };
        let [item_at, window_at] = [item, window].map(|page| first(page)..first(page) + (1 << page.log2()));
        let size = 1 << item.log2().min(window.log2());
        let arrival = |from, to| Arrival { space: space as u8, from, to, size, rights: item.rights() };
        if matches!(space, Space::Port | Space::Interrupt) {
            let from = item_at.start.max(window_at.start);
            let is_in_both = from + size <= item_at.end.min(window_at.end);
            return is_in_both.then(|| arrival(from, from));
        }
        let place = |range: std::ops::Range<u64>| {
            let places = (range.end - range.start) / size;
            range.start + hot_spot / size % places * size
        };
        Some(arrival(place(item_at), place(window_at)))
    }

    fn is_memory(self) -> bool {
        self.space == Space::Memory as u8
    }

    /// Giver's and taker's place at an offset.
    fn places(self, (from, to): (usize, usize), offset: u64) -> [Place; 2] {
        [(self.space, from, self.from + offset), (self.space, to, self.to + offset)]
    }
}

/// Both sides.
struct Both {
    world: World,
    tasks: Vec<TaskRef>,
    /// Two threads of each task.
    actors: Vec<[ThreadRef; 2]>,
    model: Model,
    ground: Ground,
}

impl Both {
    fn new(ground: Ground) -> Both {
        let world = World::new(2048);
        let mut tasks = vec![world.sigma0];
        for _ in 1..TASKS {
            tasks.push(world.task(world.new_task(300)));
        }
        let actor = |task: &TaskRef| world.new_stand_in(task.id.get());
        let actors = tasks.iter().map(|task| [actor(task), actor(task)]).collect();
        Both { world, tasks, actors, model: Model::new(ground), ground }
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::Map { from, to, item, hot_spot, window, budget } => {
                self.map((from, to), (item, hot_spot, window), budget);
            }
            Op::Flush { task, page, own, budget } => self.flush(task, &[page], own, budget),
            Op::FlushBoth { task, pages, own, budget } => self.flush(task, &pages, own, budget),
            Op::Touch { task, address, write } => {
                let done = sim::touch(&self.world.k.pool, self.tasks[task], address, write);
                let large = self.large(task, address).is_some();
                let Some(mapping) = self.model.places.get_mut(&(0, task, address)) else {
                    return assert!(!done, "touched what is not there");
                };
                if done {
                    let first = if large { address / LARGE * LARGE } else { address };
                    let len = if large { LARGE } else { PAGE_SIZE };
                    let touched = (0, task, first)..(0, task, first + len);
                    for (_, mapping) in self.model.places.range_mut(touched) {
                        mapping.status |= 1 | (write as u64) << 1;
                    }
                } else {
                    // A large page has no node and no status.
                    assert!(task == 0 || (write && !mapping.rights.has(Rights::W)), "an access faulted");
                }
            }
        }
    }

    /// Maps on both sides. The kernel makes its plan; the model is told the item and the window.
    fn map(
        &mut self,
        (from, to): (usize, usize),
        (item, hot_spot, window): (Fpage, u64, Fpage),
        budget: usize,
    ) {
        let plan = Plan::fit(item, hot_spot, window);
        let arrival = Arrival::of(item, hot_spot, window);
        assert_eq!(plan.is_some(), arrival.is_some(), "{item:?} at {hot_spot:#x} in {window:?}");
        let (Some(plan), Some(arrival)) = (plan, arrival) else { return };
        let of_machine = arrival.is_memory() && from == 0;
        if of_machine && !self.ground.has(arrival.from, arrival.size.ilog2()) {
            return;
        }
        let offsets = self.offsets(arrival);
        let is_of_large = |task, first: u64| -> Vec<bool> {
            offsets.iter().map(|at| arrival.is_memory() && self.is_of_large(task, first + at)).collect()
        };
        let was_large = is_of_large(from, arrival.from);
        // A map back to where the page came from flushes its own source. Broken off between the two, it ends
        // with nothing to map and the ancestor flushed but not replaced; the model knows only the whole.
        let back = offsets.iter().any(|&offset| {
            let [source, target] = arrival.places((from, to), offset);
            self.model.descends(source, target)
        });
        if back && is_of_large(to, arrival.to).contains(&true) {
            // The split of a large page is a step of its own: here it is always broken off.
            return;
        }
        let budget = if back { 100_000 } else { budget };
        let mut progress = Progress::START;
        // With an odd budget as a plain reply does it: a run comes first.
        let mut begins_with_run = budget % 2 == 1;
        self.repeat((self.actors[from][0], budget), |k, tasks, left| {
            if std::mem::take(&mut begins_with_run)
                && let Some(begun) = space::map_run(k, &plan, (tasks[from], tasks[to]), *left)
            {
                progress = begun;
                *left = 0;
                return progress.is_done(plan);
            }
            space::map(k, plan, tasks[from], tasks[to], &mut progress, left).is_ok()
        });
        assert!(progress.whole, "the quota is large");
        for (offset, was_large) in offsets.into_iter().zip(was_large) {
            let [source, target] = arrival.places((from, to), offset);
            let apart = was_large && self.large(to, target.2).is_none();
            self.model.map(source, target, arrival.rights, apart);
        }
    }

    /// Offsets in an item of the pages, ports or lines that the model knows.
    fn offsets(&self, arrival: Arrival) -> Vec<u64> {
        if !arrival.is_memory() {
            return (0..arrival.size).collect();
        }
        let all = (0..arrival.size).step_by(PAGE_SIZE as usize);
        all.filter(|offset| self.ground.knows(arrival.from + offset)).collect()
    }

    /// The node of the large page that is at an address.
    fn large(&self, task: usize, address: u64) -> Option<&'static Node> {
        match table::find(&self.world.k.pool, self.tasks[task], address) {
            Found::Large { node, .. } => node.map(|large| *large),
            _ => None,
        }
    }

    /// Whether the page at an address belongs to a large one, split or not.
    fn is_of_large(&self, task: usize, address: u64) -> bool {
        match table::find(&self.world.k.pool, self.tasks[task], address) {
            Found::Large { node, .. } => node.is_some(),
            Found::Part { leaf, .. } => leaf.slot.get().is_none(),
            _ => false,
        }
    }

    /// Steps after which an operation counts as endless. The longest one grants the parts of a split large page with a budget of 2: each of
    /// 512 parts passes the mappings of all others, some 600 of them, there and back, three in a step.
    const STEPS_MAX: usize = 512 * 600;

    /// Calls an operation of a thread that is broken off by its budget until it is done, and a bounded number of times.
    fn repeat(
        &self,
        (by, budget): (ThreadRef, usize),
        mut step: impl FnMut(&kernel::kernel::Kernel, &[TaskRef], &mut usize) -> bool,
    ) {
        for _ in 0..Both::STEPS_MAX {
            let mut left = budget;
            if self.world.acting(by, || step(&self.world.k, &self.tasks, &mut left)) {
                return;
            }
            assert_eq!(left, 0, "broken off with budget left");
        }
        panic!("no progress");
    }

    fn flush(&mut self, task: usize, pages: &[Fpage], own: bool, budget: usize) {
        let (first, later) = pages.split_first().expect("one at least");
        let (mut at, mut status) = (0, 0);
        let step = |page: Fpage, at: &mut u64, status: &mut u64, left: &mut usize| {
            space::flush(&self.world.k, Flush { task: self.tasks[task], page, own }, at, status, left).is_ok()
        };
        let [actor, other] = self.actors[task];
        let is_done = self.world.acting(actor, || step(*first, &mut at, &mut status, &mut budget.clone()));
        for &page in later {
            let (mut at, mut others) = (0, 0);
            self.repeat((other, budget), |_, _, left| step(page, &mut at, &mut others, left));
            status |= others;
        }
        if !is_done {
            self.repeat((actor, budget), |_, _, left| step(*first, &mut at, &mut status, left));
        }
        let status = status & 3;
        let expected = pages.iter().fold(0, |all, &page| all | self.model_flush(task, page, own));
        assert_eq!(status, expected, "status bits of {pages:?}");
    }

    /// Flushes in the model. Returns the status bits.
    fn model_flush(&mut self, task: usize, page: Fpage, own: bool) -> u64 {
        let space = page.space() as u8;
        let shift = if space == 0 { 0 } else { 12 };
        let first = page.base() >> shift;
        let places: Vec<Place> = self
            .model
            .places
            .range((space, task, first)..)
            .map(|(&place, _)| place)
            .take_while(|&(s, t, address)| (s, t) == (space, task) && address - first < 1 << page.log2())
            .collect();
        let mut expected = 0;
        for place in places {
            expected |= self.model.flush(place, page.rights());
            let root =
                task == 0 && self.model.places.get(&place).is_some_and(|mapping| mapping.origin.is_none());
            if own && !root {
                expected |= self.model.restrict(place, page.rights());
            }
        }
        expected
    }

    /// Compares complete states.
    fn compare(&self) {
        let pool = &self.world.k.pool;
        for (number, &task) in self.tasks.iter().enumerate() {
            for address in self.ground.known() {
                let walked = sim::walk(pool, task, address);
                let expected = self.model.places.get(&(0, number, address));
                assert_eq!(
                    walked,
                    expected.map(|mapping| (mapping.page, mapping.rights)),
                    "task {number} at {address:#x}"
                );
            }
            let mine = self.model.places.range((0, number, 0)..(0, number, u64::MAX)).count();
            let all_known = self.ground.period == Ground::KNOWN;
            assert!(
                !all_known || number == 0 || task.pages.get() as usize == mine,
                "task {number} has pages elsewhere"
            );
        }
        for (place, mapping) in &self.model.places {
            let Some(node) = self.node(*place) else {
                assert!(place.1 == 0 && self.model.children(*place).is_empty(), "{place:x?} has no node");
                continue;
            };
            let origin = mapping.origin.map(|origin| self.node(origin).expect("checked"));
            assert_eq!(
                parent(node).map(std::ptr::from_ref),
                origin.map(std::ptr::from_ref),
                "origin of {place:x?}"
            );
        }
        for space in [1, 2] {
            for task in 1..TASKS {
                for i in 0..NUMBERS {
                    let number = i + if space == 1 { FIRST_PORT } else { FIRST_LINE };
                    let there = self.node((space, task, number)).is_some();
                    assert_eq!(
                        there,
                        self.model.places.contains_key(&(space, task, number)),
                        "{space} {task} {number}"
                    );
                }
            }
        }
    }

    /// The node at a place, if there is one.
    fn node(&self, (space, task, address): Place) -> Option<&'static Node> {
        let (pool, task) = (&self.world.k.pool, self.tasks[task]);
        if space == 0 {
            return match table::find(pool, task, address) {
                Found::Leaf(leaf) => leaf.slot.get(),
                Found::Part { leaf, node } => leaf.slot.get().or(Some(*node)),
                Found::Large { node, .. } => node.map(|large| *large),
                Found::Nothing { .. } => None,
            };
        }
        let root = if space == 1 { task.ports.get() } else { task.interrupts.get() };
        let table = match (root, space) {
            (0, _) => 0,
            (root, 1) => pool.at::<Words>(Frame(root)).0[address as usize / 512].get(),
            (root, _) => root,
        };
        if table == 0 { None } else { pool.at::<NodeTable>(Frame(table)).0[address as usize % 512].get() }
    }
}

/// What a node hangs below.
fn parent(node: &'static Node) -> Option<&'static Node> {
    let before = std::iter::successors(node.before(), |node| node.before());
    before.filter(|other| !other.is_bookmark()).find(|other| other.depth() < node.depth())
}

fn run(program: &[Op], ground: Ground) {
    let mut both = Both::new(ground);
    for (i, op) in program.iter().enumerate() {
        both.perform(op);
        both.compare();
        if i % 16 == 0 || i + 1 == program.len() {
            both.world.check();
        }
    }
}

fn compare_on(ground: Ground, name: &str, steps: usize, len: usize) {
    programs(name, steps, len, |random| operation(random, ground), |program| run(program, ground));
}

#[test]
fn kernel_and_model_agree() {
    compare_on(Ground::SMALL, "Appendix A", amount(100_000), 1000);
}

#[test]
fn kernel_and_model_agree_about_large_pages() {
    compare_on(Ground::LARGE, "Appendix A, large pages", amount(20_000), 400);
}

#[test]
fn miri_kernel_and_model_agree() {
    let (steps, len) = if cfg!(miri) { (12, 12) } else { (1000, 500) };
    compare_on(Ground::SMALL, "Appendix A, small", steps, len);
}
