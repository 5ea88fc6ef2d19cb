//! A simulated machine: the kernel above the arch border runs on it as a library.
//!
//! Page tables are the real ones (the form of an entry is x86-64's), read by [`walk`] instead of a processor. What the
//! kernel does to a processor's translation caches is the real code too, over the caches that [`tlb`] simulates. The
//! current thread is a variable, time is a number that tests advance, interrupts come when a test says so. The state
//! is per host thread, so that tests do not meet.
//!
//! Control blocks live in host memory; a slot without one shows a block of zeroes, as the shared page of the
//! virtual array does.

#[path = "../x86_64/copy.rs"]
mod copy;
#[path = "../x86_64/door.rs"]
mod door;
#[path = "../x86_64/pte.rs"]
pub mod pte;
#[path = "../x86_64/space.rs"]
mod space;
pub mod tlb;
mod user_copy;

/// What `space` and `copy` ask the processor.
mod cpu {
    /// As far as it is asked.
    pub struct Features {
        /// Spaces are tagged.
        pub pcid: bool,
        /// The instruction that forgets by tag.
        pub invpcid: bool,
        /// Page tables are isolated.
        pub isolates: bool,
    }

    /// The features of this processor.
    pub fn features() -> Features {
        let tagged = super::tlb::is_tagged();
        Features { pcid: tagged, invpcid: tagged, isolates: false }
    }
}

/// The kernel half of a space: nothing but what each task has for itself.
mod paging {
    /// The upper half of every top-level table.
    pub fn kernel_top() -> &'static [u64; 256] {
        &[0; 256]
    }

    /// What users see of it under page-table isolation.
    pub fn shown_top() -> &'static [u64; 256] {
        kernel_top()
    }

    /// What a task without doors sees.
    pub fn nowhere() -> [u64; 3] {
        [0; 3]
    }
}

use crate::kernel::Kernel;
use crate::mem::pool::{Frame as PoolFrame, Pool};
use crate::mem::table::{self, Found};
use crate::object::breakpoint::Breakpoints;
use crate::object::mapping::Node;
use crate::object::thread::{Frame, Tcb, special};
use crate::object::{TaskRef, ThreadRef};
use abi::{PAGE_SIZE, Rights};
pub use copy::{
    close_window, copy, copy_at_once, copy_openly, read_words, window_slot, window_view, write_words,
};
pub use door::{door_page, hide_door_page, hide_doors, show_door_page, show_doors};
pub use space::{
    Forget, end_space, flush_space, init_space, invalidate, renew_tag, show, space_frames, tag_of,
    with_window,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use tlb as instructions;
pub use user_copy::COPIES_OPENLY;

#[derive(Default)]
struct Machine {
    blocks: HashMap<u32, &'static Tcb>,
    /// Groups of 512 slots that have a table in the array of blocks.
    tables: BTreeSet<u32>,
    unmasked: BTreeSet<u8>,
    memory: HashMap<u64, [u8; PAGE_SIZE as usize]>,
}

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::default());
    static CURRENT: Cell<Option<ThreadRef>> = const { Cell::new(None) };
    static NOW_NS: Cell<u64> = const { Cell::new(START_NS) };
    static ARMED_NS: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Slots that one table of the array of blocks covers.
pub const SLOTS_PER_TABLE: u32 = 512;

/// What the clock shows when a machine starts.
const START_NS: u64 = 1_000_000;

/// Forgets all blocks and interrupts: a new machine.
pub fn reset() {
    MACHINE.with(|machine| *machine.borrow_mut() = Machine::default());
    CURRENT.set(None);
    NOW_NS.set(START_NS);
    ARMED_NS.set(u64::MAX);
    tlb::reset();
}

/// The kernel that a function was given which is called through a pointer. On a machine it is a constant.
pub fn known(k: &Kernel) -> &Kernel {
    k
}

/// The control block in a slot.
pub fn tcb(slot: u32) -> Option<ThreadRef> {
    MACHINE.with(|machine| machine.borrow().blocks.get(&slot).map(|tcb| ThreadRef::new(tcb)))
}

/// What an identifier of a task leads to, if it is one.
pub fn shown_door(k: &Kernel, task: TaskRef, number: u32) -> Option<&'static Node> {
    crate::mem::doors::find(k, task, number.into()).map(Node::door)
}

/// Puts a block into a slot. `None` if there is no memory for a table of the array.
pub fn map_tcb(k: &Kernel, slot: u32, frame: PoolFrame) -> Option<ThreadRef> {
    tlb::attach(&k.pool);
    k.pool.clear_prefix(frame, Tcb::COLD_BYTES);
    let table = slot / SLOTS_PER_TABLE;
    if !MACHINE.with(|machine| machine.borrow().tables.contains(&table)) {
        k.take_reserved()?;
        MACHINE.with(|machine| machine.borrow_mut().tables.insert(table));
    }
    let tcb = k.pool.at::<Tcb>(frame);
    MACHINE.with(|machine| machine.borrow_mut().blocks.insert(slot, tcb));
    Some(ThreadRef::new(tcb))
}

/// Takes the block out of a slot.
pub fn unmap_tcb(slot: u32) {
    MACHINE.with(|machine| machine.borrow_mut().blocks.remove(&slot));
}

/// Whether there is a current thread.
pub fn is_started() -> bool {
    CURRENT.get().is_some()
}

/// The thread that the processor is on.
pub fn current() -> ThreadRef {
    CURRENT.get().expect("a test has started the machine")
}

/// Starts the machine on a thread.
pub fn set_current(thread: ThreadRef) {
    CURRENT.set(Some(thread));
}

/// Switches to another thread.
pub fn switch(k: &Kernel, from: ThreadRef, to: ThreadRef) {
    if (from.special.get() | to.special.get()) & special::TRACED != 0 {
        crate::trace::switch(k, from, to);
    }
    from.set_special(0, special::FPU_LIVE | special::PORTS_LIVE);
    switch_space(from, to);
}

/// The part of a switch that every thread needs: current thread and address space.
pub fn switch_space(from: ThreadRef, to: ThreadRef) {
    set_current(to);
    let space = to.hot.space.get();
    if space != from.hot.space.get() {
        load_space(space);
    }
}

/// The instruction that loads CR3.
pub fn load_space(space: u64) {
    // SAFETY: see there.
    unsafe { tlb::write_cr3(space) };
}

/// A byte that a program reads; `None` if that faults.
pub fn load_user(address: u64) -> Option<u8> {
    tlb::access(address, Rights::R).map(|physical| load(physical, 1)[0])
}

/// Contents of memory.
pub fn memory(physical: u64, len: usize) -> Vec<u8> {
    (0..len)
        .step_by(PAGE_SIZE as usize)
        .flat_map(|at| load(physical + at as u64, PAGE_SIZE as usize))
        .collect()
}

/// The copy of the fast path. False if it faults.
pub fn copy_user(to: u64, from: u64, len: u64) -> bool {
    // SAFETY: see there.
    let (left, _, _) = unsafe { user_copy::copy_bytes(to, from, len, user_copy::CLOSED) };
    left == 0
}

/// The kernel's clock.
pub fn now_ns() -> u64 {
    NOW_NS.get()
}

/// Advances the clock. True if the timer fires.
pub fn advance(ns: u64) -> bool {
    NOW_NS.set(NOW_NS.get() + ns);
    let fires = NOW_NS.get() >= ARMED_NS.get();
    if fires {
        ARMED_NS.set(u64::MAX);
    }
    fires
}

/// Programs the timer.
pub fn arm_timer(deadline_ns: u64) {
    ARMED_NS.set(deadline_ns);
}

/// Closes an interrupt line.
pub fn irq_mask(line: u8) {
    MACHINE.with(|machine| machine.borrow_mut().unmasked.remove(&line));
}

/// Opens an interrupt line.
pub fn irq_unmask(line: u8) {
    MACHINE.with(|machine| machine.borrow_mut().unmasked.insert(line));
}

/// Whether a line is open.
pub fn irq_is_open(line: u8) -> bool {
    MACHINE.with(|machine| machine.borrow().unmasked.contains(&line))
}

/// Lines from 16 on are level-triggered.
pub fn irq_is_level(line: u8) -> bool {
    line >= 16
}

/// Tells the controller that the interrupt was taken.
pub fn irq_acknowledge() {}

/// Selectors of user mode in a trap frame.
pub fn set_user_segments(frame: &Frame) {
    frame.cs.set(3);
    frame.ss.set(3);
}

/// The current thread runs with these breakpoints. The simulated machine has none.
pub fn load_breakpoints(_breakpoints: &Breakpoints) {}

/// Nor is there anything to be switched off.
pub fn breakpoints_off() {}

/// Loads the FS base.
pub fn load_fs(_base: u64) {}

/// What the processor's page walk finds: physical address and rights.
pub fn walk(pool: &Pool, task: TaskRef, address: u64) -> Option<(u64, Rights)> {
    let entry = match table::find(pool, task, address) {
        Found::Nothing { .. } => return None,
        Found::Large { entry, level, .. } => {
            let size = 1u64 << (12 + 9 * level);
            return Some((
                (pte::address(entry.get()) & !(size - 1)) + address % size,
                pte::rights(entry.get()),
            ));
        }
        Found::Leaf(leaf) | Found::Part { leaf, .. } => leaf.entry,
    };
    let value = entry.get();
    pte::is_present(value).then(|| (pte::address(value) | address & 0xfff, pte::rights(value)))
}

/// A user access: sets the status bits that the processor would set. False if it faults.
pub fn touch(pool: &Pool, task: TaskRef, address: u64, write: bool) -> bool {
    let entry = match table::find(pool, task, address) {
        Found::Leaf(leaf) | Found::Part { leaf, .. } => leaf.entry,
        Found::Large { entry, node: Some(_), .. } => table::seen(pool, task, address).unwrap_or(entry),
        _ => return false,
    };
    let rights = pte::rights(entry.get());
    let allowed = rights.has(if write { Rights::RW } else { Rights::R });
    if allowed {
        entry.set(pte::touched(entry.get(), write));
    }
    allowed
}

fn load(physical: u64, len: usize) -> Vec<u8> {
    let (frame, offset) = (physical / PAGE_SIZE, (physical % PAGE_SIZE) as usize);
    MACHINE.with(|machine| match machine.borrow().memory.get(&frame) {
        Some(page) => page[offset..offset + len].to_vec(),
        None => vec![0; len],
    })
}

fn store(physical: u64, bytes: &[u8]) {
    let (frame, offset) = (physical / PAGE_SIZE, (physical % PAGE_SIZE) as usize);
    MACHINE.with(|machine| {
        let mut machine = machine.borrow_mut();
        let page = machine.memory.entry(frame).or_insert([0; PAGE_SIZE as usize]);
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
    });
}

/// Whether there are pages of 1 GiB.
pub fn has_gib_pages() -> bool {
    true
}

/// Maps memory 1:1 for the first task, as boot does: `gib` pages of 1 GiB from 0 on.
pub fn map_all_memory(k: &Kernel, task: TaskRef, gib: u64) {
    for i in 0..gib {
        let entry = table::ensure_level(&k.pool, task, i << 30, 2).expect("memory for a table");
        entry.set(pte::large(i << 30, Rights::RWX, false));
    }
}
