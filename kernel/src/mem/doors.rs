//! The space of doors of a task: numbers, which are mapped and flushed as pages are (rows D1, D4, D5).
//!
//! A page of numbers has two tables side by side: the words that the fast path loads, and the nodes. Doors themselves, and the servers
//! of their calls, are in [`crate::object::door`].

use super::at::At;
use super::budget::{Stop, again};
use super::pool::{Frame, Words};
use crate::arch::{self, Table, doors};
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::door::{NO_DOOR, thread_at};
use crate::object::mapping::{Node, NodeSlot, NodeTable};
use crate::object::thread::Wait;
use crate::{layout, processor};
use abi::call::DOORS_MAX;
use abi::{Error, Fpage, PAGE_SIZE, Rights};
use core::cell::Cell;

/// Word and node slot of a number, whether an identifier is there or not.
#[derive(Clone, Copy)]
struct Place {
    word: &'static Cell<u64>,
    slot: &'static NodeSlot,
}

impl Place {
    fn show(&self, door: &'static Node) {
        self.word.set(core::ptr::from_ref(door) as u64);
    }
}

const PER_PAGE: u64 = 512;

/// Number of identifiers whose place the fast path knows: those of the first page.
pub const NEAR: u64 = PER_PAGE;

/// Node slot of one of the first numbers, if there are tables for them.
#[inline(always)]
fn near_slot(task: TaskRef, number: u64) -> Option<&'static NodeSlot> {
    task.state().doors.nodes.get()?.0.get(number as usize)
}

/// Place of one of the first numbers, if there are tables for them.
#[inline(always)]
fn near_place(task: TaskRef, number: u64) -> Option<Place> {
    let slot = near_slot(task, number)?;
    Some(Place { word: &task.state().doors.words.get()?.0[number as usize], slot })
}

/// Place of a number, if there are tables for it.
#[inline(always)]
fn place(k: &Kernel, task: TaskRef, number: u64) -> Option<Place> {
    near_place(task, number).or_else(|| far_place(k, task, number))
}

fn table(k: &Kernel, frame: Frame) -> &'static Table {
    &k.pool.at::<Words>(frame).0
}

/// Page of words that a task's last-level table shows at an index.
fn page(k: &Kernel, first: Frame, index: usize) -> Option<Frame> {
    doors::page(table(k, first), index).map(Frame)
}

#[inline(never)]
fn far_place(k: &Kernel, task: TaskRef, number: u64) -> Option<Place> {
    let first = task.doors.tables[2].get();
    if first == 0 || number >= DOORS_MAX as u64 {
        return None;
    }
    let words = page(k, Frame(first), (number / PER_PAGE) as usize)?;
    let nodes = Frame(k.pool.note(words));
    let index = (number % PER_PAGE) as usize;
    Some(Place { word: &k.pool.at::<Words>(words).0[index], slot: &k.pool.at::<NodeTable>(nodes).0[index] })
}

/// Place of a number, for which tables are made if there are none. That is a step of its own.
fn ensure(k: &Kernel, task: TaskRef, number: u64, budget: &mut usize) -> Result<Place, Stop> {
    if let Some(place) = place(k, task, number) {
        return Ok(place);
    }
    if task.doors.tables[2].get() == 0 {
        make_tables(k, task).ok_or(Stop::NoMemory)?;
    } else {
        make_page(k, task, number).ok_or(Stop::NoMemory)?;
    }
    again(budget)
}

fn make_tables(k: &Kernel, task: TaskRef) -> Option<()> {
    let tables = &task.doors.tables;
    for table in tables {
        match task.take_frame(&k.pool) {
            Some(frame) => table.set(frame.0),
            None => {
                give_back_tables(k, task);
                return None;
            }
        }
    }
    let placed = tables.each_ref().map(|frame| (frame.get(), table(k, Frame(frame.get()))));
    doors::show(table(k, Frame(task.top.get())), placed);
    processor::space::flush_space(task);
    Some(())
}

fn make_page(k: &Kernel, task: TaskRef, number: u64) -> Option<()> {
    let words = task.take_frame(&k.pool)?;
    let Some(nodes) = task.take_zeroed_frame(&k.pool) else {
        task.give_back_frame(&k.pool, words);
        return None;
    };
    k.pool.at::<Words>(words).0.iter().for_each(|word| word.set(NO_DOOR));
    k.pool.set_note(words, nodes.0);
    let index = number / PER_PAGE;
    doors::show_page(table(k, Frame(task.doors.tables[2].get())), index as usize, words.0);
    processor::space::invalidate(task, layout::DOORS + index * PAGE_SIZE);
    if number < PER_PAGE {
        task.doors.words.set(Some(k.pool.at(words)));
        task.doors.nodes.set(Some(k.pool.at(nodes)));
    }
    Some(())
}

fn give_back_tables(k: &Kernel, task: TaskRef) {
    for table in &task.doors.tables {
        if table.get() != 0 {
            task.give_back_frame(&k.pool, Frame(table.replace(0)));
        }
    }
}

/// The node of an identifier.
pub fn find(k: &Kernel, task: TaskRef, number: u64) -> Option<&'static Node> {
    place(k, task, number)?.slot.get()
}

/// Door to which an identifier of the running task leads, if it is one. Looks where the fast path looks, on a machine that shows that.
#[inline(always)]
pub fn shown(k: &Kernel, task: TaskRef, number: u32) -> Option<&'static Node> {
    if arch::SHOWS_DOORS {
        Node::shown(arch::shown_word(number))
    } else {
        find(k, task, number.into()).map(Node::door)
    }
}

/// Makes a door of `task`. [`Stop::Again`]: a table was made, and it is to be called again.
pub fn create(k: &Kernel, task: TaskRef, number: u64, target: (u64, u64)) -> Result<Result<(), Error>, Stop> {
    if number >= DOORS_MAX as u64 || target.0 >= abi::USER_END {
        return Ok(Err(Error::BadArgument));
    }
    let place = ensure(k, task, number, &mut 0)?;
    if place.slot.get().is_some() {
        return Ok(Err(Error::BadState));
    }
    let (root, door) = task.slabs.take_two(&k.pool, task).ok_or(Stop::NoMemory)?;
    // The fast path needs the word behind that of the first idle server.
    root.init_door(door, (number, place.slot), target, &task.state().doors.servers.odd);
    place.show(door);
    Ok(Ok(()))
}

/// Hands `giver`'s identifier on, as `target` of the receiver's; with [`Rights::GRANT`] the giver has it no more, unless it is the
/// door's maker. An identifier that the receiver had there before is gone. Nothing happens without the right to call, or if the giver
/// may not hand it on.
pub fn map(
    k: &Kernel,
    At { task: from, address: number }: At,
    At { task: to, address: target }: At,
    rights: Rights,
    budget: &mut usize,
) -> Result<u64, Stop> {
    let Some(source) = place(k, from, number) else {
        // Whole tables are missing.
        return Ok(PER_PAGE - number % PER_PAGE);
    };
    let is_given = |node: &&'static Node| node.may_pass() && rights.has(Rights::R);
    if source.slot.get().filter(is_given).is_none() || target >= DOORS_MAX as u64 {
        return Ok(1);
    }
    let place = ensure(k, to, target, budget)?;
    if core::ptr::eq(place.slot, source.slot) {
        return Ok(1);
    }
    let Some(giver) = source.slot.get() else { return Ok(1) };
    if let Some(old) = place.slot.get() {
        if !core::ptr::eq(giver.door().door_root(), old) {
            take_away(k, old, place, true, budget)?;
            return again(budget);
        }
        // The identifier comes back to where its maker has it. To replace that would end the door, and the identifier with it.
        if rights.has(Rights::GRANT) {
            release(k, giver, source, true);
            *budget = 0;
        }
        return Ok(1);
    }
    let child = to.slabs.take(&k.pool, to).ok_or(Stop::NoMemory)?;
    hand_on(k, (from, giver, number), (child, target, place), rights);
    Ok(1)
}

/// Hands on one of the first identifiers, if that is simple: the receiver has a table and a node ready, and nothing at this
/// number. False if nothing was done.
#[inline(always)]
pub fn map_single(
    k: &Kernel,
    At { task: from, address: number }: At,
    At { task: to, address: target }: At,
    rights: Rights,
) -> bool {
    let (Some(source), Some(place)) = (near_slot(from, number), near_place(to, target)) else { return false };
    let Some(giver) = source.get() else { return false };
    if !giver.may_pass() || !rights.has(Rights::R) || place.slot.get().is_some() {
        return false;
    }
    let Some(child) = to.slabs.take_ready() else { return false };
    hand_on(k, (from, giver, number), (child, target, place), rights);
    true
}

/// Makes `child`, just cut, an identifier where there is none.
#[inline(always)]
fn hand_on(
    k: &Kernel,
    (from, giver, number): (TaskRef, &'static Node, u64),
    (child, target, place): (&'static Node, u64, Place),
    rights: Rights,
) {
    let door = giver.door();
    giver.add_identifier(child, target, rights.has(Rights::W), place.slot);
    place.show(door);
    if rights.has(Rights::GRANT) && !core::ptr::eq(giver, door.door_root()) {
        let source = self::place(k, from, number).expect("an identifier has a place");
        release(k, giver, source, true);
    }
}

/// Takes identifiers away: those that others have of doors that `task` made, and with `own` the task's too. Without the right to
/// call among `page`'s, the right to hand on is taken instead.
pub fn flush(
    k: &Kernel,
    task: TaskRef,
    page: Fpage,
    own: bool,
    at: &mut u64,
    budget: &mut usize,
) -> Result<(), Stop> {
    let first = page.base() >> 12;
    let end = first + (1 << page.log2());
    *at = (*at).max(first);
    while *at < end {
        if *budget == 0 {
            return Err(Stop::Again);
        }
        *budget -= 1;
        let Some(place) = place(k, task, *at) else {
            *at = if task.doors.tables[2].get() == 0 { end } else { (*at | (PER_PAGE - 1)) + 1 };
            continue;
        };
        if let Some(node) = place.slot.get() {
            if page.rights().has(Rights::R) {
                take_away(k, node, place, own, budget)?;
            } else if page.rights().has(Rights::W) && own {
                node.forbid_passing();
            }
        }
        *at += 1;
    }
    Ok(())
}

/// Takes one identifier away from a task: clients give theirs back so, and makers end their doors.
#[inline(always)]
pub fn flush_single(k: &Kernel, task: TaskRef, number: u64, budget: &mut usize) -> Result<(), Stop> {
    let Some(place) = place(k, task, number) else { return Ok(()) };
    let Some(node) = place.slot.get() else { return Ok(()) };
    if core::ptr::eq(node.door().door_root(), node) {
        return take_away(k, node, place, true, budget);
    }
    release(k, node, place, true);
    Ok(())
}

/// Takes all identifiers away that hang below one, and with `own` that one itself.
fn take_away(
    k: &Kernel,
    node: &'static Node,
    place: Place,
    own: bool,
    budget: &mut usize,
) -> Result<(), Stop> {
    let door = node.door();
    if !core::ptr::eq(door.door_root(), node) {
        if own {
            release(k, node, place, true);
            // It may have been the door's last.
            *budget = 0;
        }
        return Ok(());
    }
    while let Some(below) = node.below(None) {
        if *budget == 0 {
            return Err(Stop::Again);
        }
        *budget -= 1;
        let there = self::place(k, below.task(), below.number()).expect("an identifier has a place");
        // A maker that gives up the door itself needs not be told.
        release(k, below, there, !own);
        if node.below(None).is_none() {
            *budget = 0;
        }
    }
    if own {
        node.task().doors.servers.forget(door);
        place.word.set(NO_DOOR);
        node.discard_door(&k.pool);
        *budget = 0;
    }
    Ok(())
}

/// Takes one identifier away that is not its maker's. With `tell` ipc learns of it if it was the door's last.
fn release(k: &Kernel, node: &'static Node, place: Place, tell: bool) {
    let door = node.door();
    place.word.set(NO_DOOR);
    node.erase(&k.pool);
    if tell && door.is_unreferenced() {
        k.unreferenced(door);
    }
}

/// Whether a task may have identifiers: it has tables for them.
pub fn has_tables(task: TaskRef) -> bool {
    task.doors.tables[2].get() != 0
}

/// Gives back the tables of a task's identifiers, of which there are none left, some in each step. False if there is nothing to be
/// given back any more.
pub fn release_tables(k: &Kernel, task: TaskRef, pages: u32) -> bool {
    let doors = &task.doors;
    let first = Frame(doors.tables[2].get());
    if first.0 == 0 {
        return false;
    }
    // A look at an entry costs little beside a page.
    const LOOKS_PER_PAGE: u32 = 16;
    let (start, all) = (doors.released.get(), DOORS_MAX / PER_PAGE as u32);
    let end = all.min(start + pages * LOOKS_PER_PAGE);
    doors.released.set(end);
    let mut left = pages;
    for index in start..end {
        if let Some(words) = page(k, first, index as usize) {
            let nodes = Frame(k.pool.note(words));
            k.pool.set_note(words, 0);
            doors::hide_page(table(k, first), index as usize);
            task.give_back_zeroed_frame(&k.pool, nodes);
            task.give_back_frame(&k.pool, words);
            left -= 1;
            if left == 0 {
                doors.released.set(index + 1);
                return true;
            }
        }
    }
    if end == all {
        doors::hide(table(k, Frame(task.top.get())));
        give_back_tables(k, task);
    }
    true
}

/// Asserts the promises of a task's identifiers; `visit` is called with the node of each, its slot, and the door if the task made it.
/// Returns how many frames the tables occupy.
pub fn check(
    k: &Kernel,
    task: TaskRef,
    mut visit: impl FnMut(&'static Node, &'static NodeSlot, Option<&'static Node>),
) -> u32 {
    let servers = &task.doors.servers;
    let mut lists = 0;
    for (list, is_plain) in [(&servers.idle, true), (&servers.odd, false)] {
        let mut next = list.get();
        while let Some(thread) = thread_at(next) {
            assert!(thread.wait() == Wait::Idle && !thread.is_stopped(), "{thread:?} is no idle server");
            let plain = thread.special.get() == 0 && !servers.is_closed();
            assert_eq!((plain, thread.task()), (is_plain, task), "in the wrong list");
            lists += 1;
            next = thread.server.next.get();
        }
    }
    assert_eq!(lists, servers.each().filter(|t| t.wait() == Wait::Idle && !t.is_stopped()).count());
    let first = task.doors.tables[2].get();
    if first == 0 {
        return 0;
    }
    let nearest = page(k, Frame(first), 0).filter(|_| !task.is_dying());
    let expected = nearest.map(|words| k.pool.pointer(words));
    let words = task.state().doors.words.get().map(|words| core::ptr::from_ref(words).cast_mut().cast());
    assert_eq!(words, expected, "the fast path looks elsewhere");
    assert_eq!(words.is_some(), task.doors.nodes.get().is_some());
    let mut frames = 3;
    for index in 0..DOORS_MAX as u64 / PER_PAGE {
        if page(k, Frame(first), index as usize).is_none() {
            continue;
        }
        frames += 2;
        for number in index * PER_PAGE..(index + 1) * PER_PAGE {
            let place = place(k, task, number).expect("its page exists");
            let Some(node) = place.slot.get() else {
                assert_eq!(place.word.get(), NO_DOOR, "the word of what is no identifier");
                continue;
            };
            let door = node.door();
            assert_eq!(place.word.get(), core::ptr::from_ref(door) as u64, "the word of an identifier");
            assert_eq!(node.number(), number, "an identifier is not where it belongs");
            let is_root = core::ptr::eq(door.door_root(), node);
            assert_eq!(node.depth(), !is_root as u32, "a tree of identifiers is not flat");
            assert!(door.door_root().task() == door.task(), "a door is not its maker's");
            visit(node, place.slot, is_root.then_some(door));
        }
    }
    frames
}
