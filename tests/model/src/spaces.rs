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

use crate::random::{Random, amount, programs};
use crate::world::World;
use abi::{Fpage, PAGE_SIZE, Rights, Space};
use kernel::arch;
use kernel::mem::pool::{Frame, Words};
use kernel::mem::space;
use kernel::mem::table::{self, Found};
use kernel::object::TaskRef;
use kernel::object::mapping::{Node, NodeTable};
use std::collections::BTreeMap;

const TASKS: usize = 6;

/// The addresses that operations are about lie around this one, where tables of all levels meet.
const MIDDLE: u64 = 1 << 30;
const PAGES: u64 = 32;
const FIRST: u64 = MIDDLE - PAGES / 2 * PAGE_SIZE;
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
    fn new() -> Model {
        let mut model = Model::default();
        let all = Mapping { origin: None, page: 0, rights: Rights::RWX, status: 0 };
        for i in 0..PAGES {
            let address = FIRST + i * PAGE_SIZE;
            model.places.insert((0, 0, address), Mapping { page: address, ..all });
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

    fn map(&mut self, from: Place, to: Place, rights: Rights) {
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
    Map { from: usize, to: usize, item: Fpage, hot_spot: u64, window: Fpage, budget: usize },
    Flush { task: usize, page: Fpage, own: bool, budget: usize },
    Touch { task: usize, address: u64, write: bool },
}

fn pages(random: &mut Random) -> Fpage {
    let log2 = 12 + random.pick(&[0, 0, 0, 1, 2, 3, 4]);
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
    Fpage::memory(FIRST + random.below(PAGES) * PAGE_SIZE, log2, rights)
}

/// A window for memory: sometimes much larger than what is sent.
fn window(random: &mut Random) -> Fpage {
    match random.below(6) {
        0 => Fpage::memory(FIRST, random.pick(&[20, 21, 29, 30]), Rights::RWX),
        1 => Fpage::WHOLE,
        _ => pages(random),
    }
}

fn small(random: &mut Random, space: Space) -> Fpage {
    let log2 = random.pick(&[0, 0, 1, 2, 3]);
    let i = random.below(PAGES);
    let page = match space {
        Space::Port => Fpage::ports((FIRST_PORT + i) as u16, log2),
        _ => Fpage(Fpage::interrupt(((FIRST_LINE + i) >> log2 << log2) as u8).0 | (log2 as u64) << 4),
    };
    page.with_rights(random.pick(&[Rights::RW, Rights::RWX, Rights::RW, Rights::W, Rights::X, Rights::NONE]))
}

fn operation(random: &mut Random) -> Op {
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
    let page =
        |random: &mut Random| if space == Space::Memory { pages(random) } else { small(random, space) };
    match random.below(16) {
        0..10 => {
            let item = page(random);
            let grant = if random.one_in(4) { Rights::GRANT } else { Rights::NONE };
            let window = if space == Space::Memory { window(random) } else { page(random) };
            Op::Map {
                from: task(random),
                to: task(random),
                item: item.with_rights(item.rights().or(grant)),
                hot_spot: FIRST + random.below(PAGES) * PAGE_SIZE + random.below(PAGE_SIZE),
                window,
                budget,
            }
        }
        10..13 => {
            // Mostly about as large as what was mapped, sometimes much larger, with pages of all origins in it.
            let is_large = space == Space::Memory && random.one_in(4);
            let rights = page(random).rights();
            let page = if is_large { window(random).with_rights(rights) } else { page(random) };
            Op::Flush { task: task(random), page, own: random.one_in(2), budget }
        }
        _ => Op::Touch {
            task: task(random),
            address: FIRST + random.below(PAGES) * PAGE_SIZE,
            write: random.one_in(2),
        },
    }
}

/// Both sides.
struct Both {
    world: World,
    tasks: Vec<TaskRef>,
    model: Model,
}

impl Both {
    fn new() -> Both {
        let world = World::new(2048);
        let mut tasks = vec![world.sigma0];
        for _ in 1..TASKS {
            tasks.push(world.task(world.new_task(300)));
        }
        Both { world, tasks, model: Model::new() }
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::Map { from, to, item, hot_spot, window, budget } => {
                let Some(plan) = space::plan(item, hot_spot, window) else { return };
                if plan.space == Space::Memory && from == 0 && !inside(plan.from, plan.log2) {
                    return;
                }
                let (mut done, mut whole) = (0, true);
                let unit = if plan.space == Space::Memory { PAGE_SIZE } else { 1 };
                let space = plan.space as u8;
                // A map back to where the page came from flushes its own source. Broken off between the two, it ends
                // with nothing to map and the ancestor flushed but not replaced; the model knows only the whole.
                let back = (0..1 << plan.log2).step_by(unit as usize).any(|offset| {
                    self.model.descends((space, from, plan.from + offset), (space, to, plan.to + offset))
                });
                let budget = if back { 100_000 } else { budget };
                self.repeat(budget, |k, tasks, budget| {
                    space::map(k, plan, tasks[from], tasks[to], &mut done, &mut whole, budget).is_ok()
                });
                assert!(whole, "the quota is large");
                for offset in (0..1 << plan.log2).step_by(unit as usize) {
                    self.model.map(
                        (space, from, plan.from + offset),
                        (space, to, plan.to + offset),
                        plan.rights,
                    );
                }
            }
            Op::Flush { task, page, own, budget } => self.flush(task, page, own, budget),
            Op::Touch { task, address, write } => {
                let done = arch::touch(&self.world.k.pool, self.tasks[task], address, write);
                let Some(mapping) = self.model.places.get_mut(&(0, task, address)) else {
                    return assert!(!done, "touched what is not there");
                };
                if done {
                    mapping.status |= 1 | (write as u64) << 1;
                } else {
                    // A large page has no node and no status.
                    assert!(task == 0 || (write && !mapping.rights.has(Rights::W)), "an access faulted");
                }
            }
        }
    }

    /// Calls an operation that is broken off by its budget until it is done, and a bounded number of times.
    fn repeat(
        &self,
        budget: usize,
        mut step: impl FnMut(&kernel::kernel::Kernel, &[TaskRef], &mut usize) -> bool,
    ) {
        for _ in 0..10_000 {
            let mut left = budget;
            if step(&self.world.k, &self.tasks, &mut left) {
                return;
            }
            assert_eq!(left, 0, "broken off with budget left");
        }
        panic!("no progress");
    }

    fn flush(&mut self, task: usize, page: Fpage, own: bool, budget: usize) {
        let (mut at, mut status) = (0, 0);
        self.repeat(budget, |k, tasks, budget| {
            space::flush(k, tasks[task], page, own, &mut at, &mut status, budget).is_ok()
        });
        let space = page.space().expect("valid") as u8;
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
        assert_eq!(status, expected, "status bits of {page:?}");
    }

    /// Compares complete states.
    fn compare(&self) {
        let pool = &self.world.k.pool;
        let mut parents = BTreeMap::new();
        let mut nodes = BTreeMap::new();
        for (number, &task) in self.tasks.iter().enumerate() {
            for i in 0..PAGES {
                let address = FIRST + i * PAGE_SIZE;
                let walked = arch::walk(pool, task, address);
                let expected = self.model.places.get(&(0, number, address));
                assert_eq!(
                    walked,
                    expected.map(|mapping| (mapping.page, mapping.rights)),
                    "task {number} at {address:#x}"
                );
            }
            let mine = self.model.places.range((0, number, 0)..(0, number, u64::MAX)).count();
            assert!(number == 0 || task.pages.get() as usize == mine, "task {number} has pages elsewhere");
        }
        for &place in self.model.places.keys() {
            if let Some(node) = self.node(place) {
                nodes.insert(place, node);
                for child in below(node).filter(|child| child.depth() == node.depth() + 1) {
                    parents.insert(std::ptr::from_ref(child), place);
                }
            }
        }
        for (place, mapping) in &self.model.places {
            let Some(node) = nodes.get(place) else {
                assert!(place.1 == 0 && self.model.children(*place).is_empty(), "{place:x?} has no node");
                continue;
            };
            assert_eq!(
                parents.get(&std::ptr::from_ref(*node)),
                mapping.origin.as_ref(),
                "origin of {place:x?}"
            );
        }
        for space in [1, 2] {
            for task in 1..TASKS {
                for i in 0..PAGES {
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
            let Found::Leaf(leaf) = table::find(pool, task, address) else { return None };
            return leaf.slot.get();
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

/// Whether a range lies where the model knows σ0's pages.
fn inside(address: u64, log2: u32) -> bool {
    address >= FIRST && address + (1 << log2) <= FIRST + PAGES * PAGE_SIZE
}

fn below(node: &'static Node) -> impl Iterator<Item = &'static Node> {
    std::iter::successors(node.below(None), |previous| node.below(Some(previous)))
}

fn run(program: &[Op]) {
    let mut both = Both::new();
    for (i, op) in program.iter().enumerate() {
        both.perform(op);
        both.compare();
        if i % 16 == 0 || i + 1 == program.len() {
            both.world.check();
        }
    }
}

#[test]
fn kernel_and_model_agree() {
    programs("Appendix A", amount(100_000), 1000, operation, run);
}

#[test]
fn miri_kernel_and_model_agree() {
    let (steps, len) = if cfg!(miri) { (12, 12) } else { (1000, 500) };
    programs("Appendix A, small", steps, len, operation, run);
}
