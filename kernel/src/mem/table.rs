//! Page tables: a tree of four levels of 512 entries, the last with a shadow table of mapping nodes.
//!
//! The form of an entry is the machine's ([`crate::arch::pte`]); the tree is common. Tables are frames of the pool,
//! charged to the task. They stay until the task ends, so that an address that was mapped once costs no
//! allocation again; only a last-level table that is in the way of a large page goes before.
//!
//! A *large page* is an entry above the last level. Those of 2 MiB are mapped like small ones ([`super::large`]): the table
//! that holds the entry, a *directory*, has a shadow of nodes too, from its first large page on. Large pages without a node
//! are those that the kernel made at boot, in the first task's map of all memory.
//!
//! A directory whose 512 large pages are neighbours with the same rights is *fused*: the processor sees one page of 1 GiB in its
//! place. The directory stays as it is, aside; everything that is looked up is found there. It comes back before one of its
//! entries changes.
//!
//! A large page is *split* when something happens to a part of it: a table of small pages takes its place in the
//! directory, and the node stays where it is.

use super::pool::{Frame, Pool, Words};
use super::recent::{Leaf, Places};
use crate::arch::pte;
use crate::object::TaskRef;
use crate::object::mapping::{LargePage, NodeTable};
use crate::processor::space::{flush_space, show};
use abi::PAGE_SIZE;
use core::cell::Cell;

/// Bits of an address below the index of each level; level 0 is the last.
const SHIFTS: [u32; 4] = [12, 21, 30, 39];

/// Extent that a walk finds at an address.
pub enum Found {
    /// A last-level table; its entry may be absent.
    Leaf(Leaf),
    /// A last-level table of a large page that was split. The page may belong to that ([`pte::is_part`]), to itself, or be absent.
    Part {
        /// The place of the page.
        leaf: Leaf,
        /// The node of the large page.
        node: LargePage,
    },
    /// A large page.
    Large {
        /// Its entry.
        entry: &'static Cell<u64>,
        /// 1 for 2 MiB, 2 for 1 GiB.
        level: usize,
        /// Its node, if it has one.
        node: Option<LargePage>,
    },
    /// No table; nothing is mapped from here to the given address.
    Nothing {
        /// First address that may have a table.
        until: u64,
    },
}

/// Note of a table above the last level: the lowest and the highest entry ever used, so that walks over a sparse space do
/// not look at entries that were never used. The note is `highest + 1` and, in the top bits, `512 - lowest`, for
/// which 0 means that nothing was used; between the two lies the address of a directory's shadow, if it has one, or, in the table above
/// directories, of the frame that names those that are fused. The note
/// of a last-level table is the address of its shadow.
#[derive(Clone, Copy)]
struct Used(u64);

impl Used {
    const LOWEST: u32 = 54;
    const HIGHEST: u64 = PAGE_SIZE - 1;
    const SHADOW: u64 = (1 << Used::LOWEST) - PAGE_SIZE;

    fn of(pool: &Pool, table: Frame) -> Used {
        Used(pool.note(table))
    }

    fn range(self) -> core::ops::Range<usize> {
        512 - (self.0 >> Used::LOWEST) as usize..(self.0 & Used::HIGHEST) as usize
    }

    fn with(self, index: usize) -> Used {
        let index = index as u64;
        let lowest = (self.0 >> Used::LOWEST).max(512 - index);
        let highest = (self.0 & Used::HIGHEST).max(index + 1);
        Used(lowest << Used::LOWEST | self.0 & Used::SHADOW | highest)
    }

    fn shadow(self) -> Option<Frame> {
        let frame = self.0 & Used::SHADOW;
        (frame != 0).then_some(Frame(frame))
    }
}

fn index(address: u64, level: usize) -> usize {
    (address >> SHIFTS[level]) as usize % 512
}

fn leaf(pool: &Pool, table: Frame, address: u64) -> Leaf {
    let i = index(address, 0);
    let shadow = pool.at::<NodeTable>(Frame(pool.note(table)));
    Leaf { entry: &pool.at::<Words>(table).0[i], slot: &shadow.0[i] }
}

/// Entries and node slots of the pages from `address` on, as far as its last-level table reaches. `None` if it has none.
#[inline(always)]
pub fn run(pool: &Pool, task: TaskRef, address: u64) -> Option<Places> {
    if task.recent.leaf(address).is_none() {
        let Found::Leaf(_) = walk(pool, task, address) else { return None };
    }
    task.recent.from(address)
}

/// Finds `address` in the user half of `task`.
#[inline(always)]
pub fn find(pool: &Pool, task: TaskRef, address: u64) -> Found {
    match task.recent.leaf(address) {
        Some(leaf) => Found::Leaf(leaf),
        None => walk(pool, task, address),
    }
}

#[inline(never)]
fn walk(pool: &Pool, task: TaskRef, address: u64) -> Found {
    let mut table = Frame(task.top.get());
    for level in (1..4).rev() {
        let entry = &pool.at::<Words>(table).0[index(address, level)];
        let value = entry.get();
        if !pte::is_present(value) {
            return Found::Nothing { until: ((address >> SHIFTS[level]) + 1) << SHIFTS[level] };
        }
        if level < 3 && pte::is_large_or_split(value) {
            return found_large(pool, table, (address, level), entry);
        }
        table = Frame(pte::address(value));
    }
    task.recent.note(address, (pool.at(table), pool.at(Frame(pool.note(table)))));
    Found::Leaf(leaf(pool, table, address))
}

/// Shadow of a directory, which records the nodes of its large pages, if it ever had one.
pub fn shadow(pool: &Pool, directory: Frame) -> Option<&'static NodeTable> {
    Some(pool.at::<NodeTable>(Used::of(pool, directory).shadow()?))
}

/// Frame in which a table above directories names those that are fused, if it ever had one.
pub fn fused_of(pool: &Pool, table: Frame) -> Option<&'static Words> {
    Some(pool.at::<Words>(Used::of(pool, table).shadow()?))
}

/// The directory that is fused in an entry of the table above.
fn fused(pool: &Pool, table: Frame, index: usize) -> Option<Frame> {
    let directory = fused_of(pool, table)?.0[index].get();
    (directory != 0).then_some(Frame(directory))
}

/// The table above directories on the way to `address`, and its entry, if there is one.
fn above_directory(pool: &Pool, task: TaskRef, address: u64) -> Option<(Frame, &'static Cell<u64>)> {
    let top = pool.at::<Words>(Frame(task.top.get())).0[index(address, 3)].get();
    let table = Frame(pte::address(top));
    pte::is_present(top).then(|| (table, &pool.at::<Words>(table).0[index(address, 2)]))
}

/// The entry of 1 GiB that the processor sees in place of the directory of `address`, if that is fused.
pub fn seen(pool: &Pool, task: TaskRef, address: u64) -> Option<&'static Cell<u64>> {
    let (table, entry) = above_directory(pool, task, address)?;
    (pte::is_large(entry.get()) && fused(pool, table, index(address, 2)).is_some()).then_some(entry)
}

/// Fuses the directory of `address` if that is possible, and the task can pay for the frame in which it is named.
pub fn fuse(pool: &Pool, task: TaskRef, address: u64) {
    const STEP: u64 = 1 << SHIFTS[1];
    let Some((table, entry)) = above_directory(pool, task, address) else { return };
    if !pte::is_present(entry.get()) || pte::is_large(entry.get()) {
        return;
    }
    let directory = Frame(pte::address(entry.get()));
    let words = &pool.at::<Words>(directory).0;
    let first = pte::without_status(words[0].get());
    if !pte::is_large(first) || !pte::address(first).is_multiple_of(1 << SHIFTS[2]) {
        return;
    }
    let (mut expected, mut differences) = (first, 0);
    for word in words {
        differences |= word.get() ^ expected;
        expected += STEP;
    }
    if pte::without_status(differences) != 0 {
        return;
    }
    let used = Used::of(pool, table);
    if used.shadow().is_none() {
        let Some(names) = task.take_zeroed_frame(pool) else { return };
        pool.set_note(table, used.0 | names.0);
    }
    let names = fused_of(pool, table).expect("just made");
    names.0[index(address, 2)].set(directory.0);
    change_size(task, entry, first);
}

/// Brings a directory back, if it is fused, with the status that the processor noted of the whole. True if it was.
pub fn unfuse(pool: &Pool, task: TaskRef, address: u64) -> bool {
    let Some((table, entry)) = above_directory(pool, task, address) else { return false };
    if !pte::is_large(entry.get()) {
        return false;
    }
    let Some(directory) = fused(pool, table, index(address, 2)) else { return false };
    fused_of(pool, table).expect("it names the directory").0[index(address, 2)].set(0);
    let seen = entry.get();
    change_size(task, entry, pte::table(directory.0));
    for word in &pool.at::<Words>(directory).0 {
        word.set(pte::with_status_of(word.get(), seen));
    }
    true
}

/// Replaces an entry by one that shows equal pages in another size. It is absent in between: some processors want no two
/// sizes of one page in their caches (iTLB multihit).
fn change_size(task: TaskRef, entry: &Cell<u64>, value: u64) {
    entry.set(0);
    flush_space(task);
    entry.set(value);
}

/// The node of a directory's entry.
fn node(pool: &Pool, directory: Frame, index: usize) -> Option<LargePage> {
    shadow(pool, directory)?.0[index].get()?.large()
}

/// An entry of `table` that is a large page or was one. The tables of split pages are not remembered, so that
/// work on runs of pages does not meet their parts.
#[cold]
fn found_large(
    pool: &Pool,
    table: Frame,
    (address, level): (u64, usize),
    entry: &'static Cell<u64>,
) -> Found {
    if level == 2
        && let Some(directory) = fused(pool, table, index(address, 2))
    {
        let entry = &pool.at::<Words>(directory).0[index(address, 1)];
        return Found::Large { entry, level: 1, node: node(pool, directory, index(address, 1)) };
    }
    let node = if level == 1 { node(pool, table, index(address, 1)) } else { None };
    if pte::is_large(entry.get()) {
        return Found::Large { entry, level, node };
    }
    let leaf = leaf(pool, Frame(pte::address(entry.get())), address);
    Found::Part { leaf, node: node.expect("a page that was split has a node") }
}

/// Walks to `address`, making tables and splitting large pages as needed. `None` if the task cannot pay.
#[inline]
pub fn ensure(pool: &Pool, task: TaskRef, address: u64) -> Option<Leaf> {
    match find(pool, task, address) {
        Found::Leaf(leaf) => Some(leaf),
        _ => make(pool, task, address),
    }
}

/// Makes the tables that are missing on the way to `address`; a large page may be there. `None` if the task cannot pay.
pub fn ensure_way(pool: &Pool, task: TaskRef, address: u64) -> Option<()> {
    match find(pool, task, address) {
        Found::Nothing { .. } => make(pool, task, address).map(drop),
        _ => Some(()),
    }
}

/// Place of a large page of 2 MiB at `address`: the entry of a directory, and the slot of its node. The entry may
/// lead to a table. Makes tables that are missing. `None` if the task cannot pay.
pub fn ensure_large(pool: &Pool, task: TaskRef, address: u64) -> Option<Leaf> {
    let entry = ensure_level(pool, task, address, 1)?;
    let directory = directory(pool, task, address);
    let used = Used::of(pool, directory);
    let shadow = match used.shadow() {
        Some(shadow) => shadow,
        None => {
            let shadow = task.take_zeroed_frame(pool)?;
            pool.set_note(directory, used.0 | shadow.0);
            shadow
        }
    };
    Some(Leaf { entry, slot: &pool.at::<NodeTable>(shadow).0[index(address, 1)] })
}

/// The directory on the way to `address`, which is there.
fn directory(pool: &Pool, task: TaskRef, address: u64) -> Frame {
    let (table, entry) = above_directory(pool, task, address).expect("the way is there");
    fused(pool, table, index(address, 2)).unwrap_or(Frame(pte::address(entry.get())))
}

/// Takes the last-level table of `address`, in which nothing of a large page is left, out of its directory if it maps
/// nothing. True if so.
pub fn remove_empty(pool: &Pool, task: TaskRef, address: u64) -> bool {
    let entry = &pool.at::<Words>(directory(pool, task, address)).0[index(address, 1)];
    let table = Frame(pte::address(entry.get()));
    if first_in_use(&pool.at::<Words>(table).0, 0..512).is_some() {
        return false;
    }
    task.recent.forget();
    entry.set(0);
    // The processor may remember the entry that led to the table.
    flush_space(task);
    task.give_back_zeroed_frame(pool, Frame(pool.note(table)));
    pool.set_note(table, 0);
    task.give_back_zeroed_frame(pool, table);
    true
}

/// Entries of the table of a large page that was split, with `entry` in its directory.
pub fn parts(pool: &Pool, entry: &Cell<u64>) -> &'static [Cell<u64>; 512] {
    &pool.at::<Words>(Frame(pte::address(entry.get()))).0
}

#[cold]
fn make(pool: &Pool, task: TaskRef, address: u64) -> Option<Leaf> {
    Some(leaf(pool, ensure_table(pool, task, address, 0)?, address))
}

/// The entry of `level` on the way to `address`, tables above it made and larger pages split as needed.
pub fn ensure_level(pool: &Pool, task: TaskRef, address: u64, level: usize) -> Option<&'static Cell<u64>> {
    let table = ensure_table(pool, task, address, level)?;
    pool.set_note(table, Used::of(pool, table).with(index(address, level)).0);
    Some(&pool.at::<Words>(table).0[index(address, level)])
}

/// The table of `level` on the way to `address`, it and those above it made and larger pages split as needed.
fn ensure_table(pool: &Pool, task: TaskRef, address: u64, level: usize) -> Option<Frame> {
    let mut table = Frame(task.top.get());
    for above in (level + 1..4).rev() {
        let entry = &pool.at::<Words>(table).0[index(address, above)];
        let value = entry.get();
        if !pte::is_present(value) {
            entry.set(pte::table(new_table(pool, task, above == 1)?.0));
            pool.set_note(table, Used::of(pool, table).with(index(address, above)).0);
            if above == 3 {
                show(pool, task, index(address, above));
            }
        } else if above < 3 && pte::is_large(value) {
            let node = if above == 1 { node(pool, table, index(address, 1)) } else { None };
            split_at(pool, task, (address, above), entry, node)?;
        }
        table = Frame(pte::address(entry.get()));
    }
    Some(table)
}

fn new_table(pool: &Pool, task: TaskRef, last: bool) -> Option<Frame> {
    let table = task.take_zeroed_frame(pool)?;
    if last {
        let Some(shadow) = task.take_zeroed_frame(pool) else {
            task.give_back_zeroed_frame(pool, table);
            return None;
        };
        pool.set_note(table, shadow.0);
    }
    Some(table)
}

/// Replaces a large page, or a fused directory, at `address` by the next smaller pages.
fn split_at(
    pool: &Pool,
    task: TaskRef,
    (address, level): (u64, usize),
    entry: &Cell<u64>,
    node: Option<LargePage>,
) -> Option<()> {
    if level == 2 && unfuse(pool, task, address) {
        return Some(());
    }
    split(pool, task, entry, level, node)
}

/// Replaces a large page of `level` by a table of pages of the level below, with the same meaning; if it had a node,
/// that node has them still.
fn split(pool: &Pool, task: TaskRef, entry: &Cell<u64>, level: usize, node: Option<LargePage>) -> Option<()> {
    let table = new_table(pool, task, level == 1)?;
    if level > 1 {
        pool.set_note(table, Used(0).with(0).with(511).0);
    }
    let part = |i| pte::part(entry.get(), i, 1 << SHIFTS[level - 1], level == 1);
    let (mut value, step) = (part(0), part(1) - part(0));
    if node.is_some() {
        value = pte::as_part(value);
    }
    for cell in &pool.at::<Words>(table).0 {
        cell.set(value);
        value += step;
    }
    match node {
        Some(node) => {
            node.set_parts(PARTS);
            change_size(task, entry, pte::split_table(table.0));
        }
        None => change_size(task, entry, pte::table(table.0)),
    }
    Some(())
}

/// Splits the large page of a node, whose directory is not fused. `None` if its task cannot pay for the table.
pub fn split_node(pool: &Pool, node: LargePage) -> Option<()> {
    split(pool, node.task(), node.cell(), 1, Some(node))
}

/// Number of small pages in a large one.
pub const PARTS: u64 = 512;

/// Entries that are looked at for one unit of a budget.
const ENTRIES_PER_UNIT: usize = 16;

/// The first address from `at` on, below `end`, that may have a mapping: in a last-level table an entry in use.
/// `end` if there is none. With the budget used up, an address up to which there is nothing.
pub fn next(pool: &Pool, task: TaskRef, mut at: u64, end: u64, budget: &mut usize) -> u64 {
    'walk: while at < end {
        *budget = budget.saturating_sub(2);
        let mut table = Frame(task.top.get());
        for level in (0..4).rev() {
            let words = &pool.at::<Words>(table).0;
            let used = if level == 0 { 0..512 } else { Used::of(pool, table).range() };
            let from = index(at, level);
            let last = used.end.min(if level == 3 { 256 } else { 512 });
            let above = SHIFTS[level] + 9;
            let Some((i, in_use)) = search(words, from.max(used.start)..last, budget) else {
                at = ((at >> above) + 1) << above;
                // A space may have any number of tables that lead nowhere.
                if *budget == 0 {
                    return at.min(end);
                }
                continue 'walk;
            };
            if i > from {
                at = (at >> above << above) | (i as u64) << SHIFTS[level];
            }
            let value = words[i].get();
            if !in_use || level == 0 || (level < 3 && pte::is_large(value)) {
                return at.min(end);
            }
            table = Frame(pte::address(value));
        }
    }
    end
}

/// The first address behind the page at `at` that has a node of its own, in the table of a large page that was split; if there is
/// none, the end of that.
pub fn next_own(pool: &Pool, task: TaskRef, at: u64) -> u64 {
    let entry = &pool.at::<Words>(directory(pool, task, at)).0[index(at, 1)];
    let shadow = pool.at::<NodeTable>(Frame(pool.note(Frame(pte::address(entry.get())))));
    let (first, start) = (index(at, 0) + 1, at >> SHIFTS[1] << SHIFTS[1]);
    let found = shadow.0[first..].iter().position(|slot| slot.get().is_some());
    start + (found.map_or(512, |i| first + i) as u64) * PAGE_SIZE
}

/// First entry of a range that is in use, with `true`, or the one at which the budget ends. `None` if none is in use.
#[inline(always)]
fn search(
    words: &[Cell<u64>; 512],
    range: core::ops::Range<usize>,
    budget: &mut usize,
) -> Option<(usize, bool)> {
    // The first entry that was ever used mostly still is, and tables of small tasks have only one.
    if range.start < range.end && words[range.start].get() != 0 {
        return Some((range.start, true));
    }
    search_behind(words, range, budget)
}

#[inline(never)]
fn search_behind(
    words: &[Cell<u64>; 512],
    range: core::ops::Range<usize>,
    budget: &mut usize,
) -> Option<(usize, bool)> {
    let limit = range.end.min(range.start + ENTRIES_PER_UNIT * (*budget).max(1));
    let found = first_in_use(words, range.start..limit);
    let looked_at = found.unwrap_or(limit).saturating_sub(range.start);
    *budget = budget.saturating_sub(looked_at.div_ceil(ENTRIES_PER_UNIT));
    found.map(|i| (i, true)).or((limit < range.end).then_some((limit, false)))
}

/// First entry of a range that is in use. Looks at eight at a time: most are empty.
fn first_in_use(words: &[Cell<u64>; 512], range: core::ops::Range<usize>) -> Option<usize> {
    let mut i = range.start;
    while i < range.end {
        if i.is_multiple_of(8)
            && i + 8 <= range.end
            && words[i..i + 8].iter().fold(0, |all, word| all | word.get()) == 0
        {
            i += 8;
        } else if words[i].get() != 0 {
            return Some(i);
        } else {
            i += 1;
        }
    }
    None
}

/// Price, in tables of the last level, of a table above that leads nowhere: all of it may have to be looked through.
const EMPTY_TABLE: usize = 2;

/// Gives back the tables of the user half, which maps nothing any more; at most `limit` tables of the last level, or fewer if others lead
/// nowhere. True when all are gone.
pub fn release(pool: &Pool, task: TaskRef, mut limit: usize) -> bool {
    let top = Frame(task.top.get());
    task.recent.forget();
    let done = release_below(pool, task, top, 3, &mut limit);
    if done {
        pool.set_note(top, 0);
    }
    done
}

/// Gives back all tables that the entries of `table` lead to. The depth is 3 at most.
fn release_below(pool: &Pool, task: TaskRef, table: Frame, level: usize, limit: &mut usize) -> bool {
    let words = &pool.at::<Words>(table).0;
    let mut used = Used::of(pool, table).range();
    while let Some(i) = first_in_use(words, used.clone()) {
        used.start = i;
        let below = Frame(pte::address(words[i].get()));
        if level > 1 {
            let left = *limit;
            if !release_below(pool, task, below, level - 1, limit) {
                return false;
            }
            if *limit == left {
                if left == 0 {
                    return false;
                }
                *limit = left.saturating_sub(EMPTY_TABLE);
            }
            if let Some(shadow) = Used::of(pool, below).shadow() {
                task.give_back_zeroed_frame(pool, shadow);
            }
        } else if *limit == 0 {
            return false;
        } else {
            *limit -= 1;
            task.give_back_zeroed_frame(pool, Frame(pool.note(below)));
        }
        pool.set_note(below, 0);
        words[i].set(0);
        if level == 3 {
            show(pool, task, i);
        }
        task.give_back_zeroed_frame(pool, below);
    }
    true
}
