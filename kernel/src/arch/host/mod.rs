//! A simulated machine: the kernel above the arch border runs on it as a library.
//!
//! Page tables are the real ones (the form of an entry is x86-64's), read by [`walk`] instead of a processor. The
//! current thread is a variable, time is a number that tests advance, interrupts come when a test says so. The state
//! is per host thread, so that tests do not meet.
//!
//! Control blocks live in host memory; a slot without one shows a block of zeroes, as the shared page of the
//! virtual array does.

#[path = "../x86_64/pte.rs"]
pub mod pte;

use crate::arch::CopyFault;
use crate::kernel::Kernel;
use crate::mem::pool::{Frame as PoolFrame, Pool};
use crate::mem::table::{self, Found};
use crate::object::breakpoint::Breakpoints;
use crate::object::thread::{Frame, Tcb, special};
use crate::object::{TaskRef, ThreadRef};
use abi::{PAGE_SIZE, Rights};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

#[derive(Default)]
struct Machine {
    blocks: HashMap<u32, &'static Tcb>,
    unmasked: BTreeSet<u8>,
    memory: HashMap<u64, [u8; PAGE_SIZE as usize]>,
}

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::default());
    static CURRENT: Cell<Option<ThreadRef>> = const { Cell::new(None) };
    static NOW_NS: Cell<u64> = const { Cell::new(START_NS) };
    static ARMED_NS: Cell<u64> = const { Cell::new(u64::MAX) };
    static INVALIDATIONS: Cell<u64> = const { Cell::new(0) };
}

/// What the clock shows when a machine starts.
const START_NS: u64 = 1_000_000;

/// Forgets all blocks and interrupts: a new machine.
pub fn reset() {
    MACHINE.with(|machine| *machine.borrow_mut() = Machine::default());
    CURRENT.set(None);
    NOW_NS.set(START_NS);
    ARMED_NS.set(u64::MAX);
}

/// The control block in a slot.
pub fn tcb(slot: u32) -> Option<ThreadRef> {
    MACHINE.with(|machine| machine.borrow().blocks.get(&slot).map(|tcb| ThreadRef::new(tcb)))
}

/// Puts a block into a slot.
pub fn map_tcb(k: &Kernel, slot: u32, frame: PoolFrame) -> Option<ThreadRef> {
    k.pool.clear_prefix(frame, Tcb::COLD_BYTES);
    let tcb = k.pool.at::<Tcb>(frame);
    MACHINE.with(|machine| machine.borrow_mut().blocks.insert(slot, tcb));
    Some(ThreadRef::new(tcb))
}

/// Takes the block out of a slot.
pub fn unmap_tcb(slot: u32) {
    MACHINE.with(|machine| machine.borrow_mut().blocks.remove(&slot));
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
    CURRENT.set(Some(to));
}

/// The part of a switch that every thread needs.
pub fn switch_space(_from: ThreadRef, to: ThreadRef) {
    CURRENT.set(Some(to));
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

/// Gives a task the kernel half. There is none here.
pub fn init_space(_k: &Kernel, task: TaskRef) {
    task.space.set(task.top.get());
}

/// The task's space is going away.
pub fn end_space(_task: TaskRef) {}

/// Drops all translations of a task.
pub fn flush_space(_task: TaskRef) {}

/// Drops the translation of one page.
pub fn invalidate(task: TaskRef, address: u64) {
    Forget::of(task).page(address);
}

/// Drops translations of one task, page by page.
#[derive(Clone, Copy, Default)]
pub struct Forget;

impl Forget {
    /// As long as the loaded space stays the same.
    pub fn of(_task: TaskRef) -> Forget {
        Forget
    }

    /// Drops the translation of one page.
    pub fn page(self, _address: u64) {
        INVALIDATIONS.set(INVALIDATIONS.get() + 1);
    }
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

/// Loads the FS base.
pub fn load_fs(_base: u64) {}

/// What the processor's page walk finds: physical address and rights.
pub fn walk(pool: &Pool, task: TaskRef, address: u64) -> Option<(u64, Rights)> {
    let entry = match table::find(pool, task, address) {
        Found::Nothing { .. } => return None,
        Found::Large { entry, level } => {
            let size = 1u64 << (12 + 9 * level);
            return Some((
                (pte::address(entry.get()) & !(size - 1)) + address % size,
                pte::rights(entry.get()),
            ));
        }
        Found::Leaf(leaf) => leaf.entry,
    };
    let value = entry.get();
    pte::is_present(value).then(|| (pte::address(value) | address & 0xfff, pte::rights(value)))
}

/// A user access: sets the status bits that the processor would set. False if it faults.
pub fn touch(pool: &Pool, task: TaskRef, address: u64, write: bool) -> bool {
    let Found::Leaf(leaf) = table::find(pool, task, address) else { return false };
    let rights = pte::rights(leaf.entry.get());
    let allowed = rights.has(if write { Rights::RW } else { Rights::R });
    if allowed {
        leaf.entry.set(pte::touched(leaf.entry.get(), write));
    }
    allowed
}

/// Where a task keeps the top-level entry of its window. There is none here.
pub fn window_slot(_k: &Kernel, _task: TaskRef) -> u64 {
    0
}

/// Shows a page of port links to the fast path. There is none here.
pub fn show_ports(_k: &Kernel, _task: TaskRef, _page: PoolFrame, _tables: [PoolFrame; 3]) {}

/// What shows `address` of a task in a window. Nothing does.
pub fn window_view(_k: &Kernel, _task: TaskRef, _address: u64, _len: u64) -> Option<(u64, u64)> {
    None
}

/// The bytes of one page from `address` on, at most `len`, as an offset into a frame; `None` if access faults.
fn frame_part(k: &Kernel, (task, address): (TaskRef, u64), len: u64, right: Rights) -> Option<(u64, usize)> {
    let (physical, rights) = walk(&k.pool, task, address)?;
    let here = len.min(PAGE_SIZE - address % PAGE_SIZE);
    rights.has(right).then_some((physical, here as usize))
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

/// Nothing interrupts a copy here: all are done in short steps.
pub const COPIES_OPENLY: bool = false;

/// How many of `len` bytes [`copy`] takes at once: all.
pub fn copy_at_once(_from: TaskRef, _to: (TaskRef, u64), len: u64) -> u64 {
    len
}

/// The same as [`copy`].
pub fn copy_openly(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    copy(k, from, to, len)
}

/// Copies from one task to another.
pub fn copy(k: &Kernel, from: (TaskRef, u64), to: (TaskRef, u64), len: u64) -> Result<(), CopyFault> {
    let mut done = 0;
    while done < len {
        let (source, target) = (from.1 + done, to.1 + done);
        let fault = |address, at_target| CopyFault { done, address, at_target };
        let (read, here) =
            frame_part(k, (from.0, source), len - done, Rights::R).ok_or(fault(source, false))?;
        let (write, there) =
            frame_part(k, (to.0, target), len - done, Rights::W).ok_or(fault(target, true))?;
        let now = here.min(there);
        store(write, &load(read, now));
        touch(&k.pool, to.0, target, true);
        touch(&k.pool, from.0, source, false);
        done += now as u64;
    }
    Ok(())
}

/// Reads words of a task; the error is the address that faults.
pub fn read_words<const N: usize>(
    k: &Kernel,
    _current: TaskRef,
    (task, address): (TaskRef, u64),
) -> Result<[u64; N], u64> {
    let mut words = [0; N];
    for (i, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        for (j, byte) in bytes.iter_mut().enumerate() {
            let at = address + 8 * i as u64 + j as u64;
            let (physical, _) = frame_part(k, (task, at), 1, Rights::R).ok_or(at)?;
            *byte = load(physical, 1)[0];
        }
        *word = u64::from_le_bytes(bytes);
    }
    Ok(words)
}

/// Writes words of a task; the error is the address that faults.
pub fn write_words<const N: usize>(
    k: &Kernel,
    _current: TaskRef,
    (task, address): (TaskRef, u64),
    words: [u64; N],
) -> Result<(), u64> {
    for (at, byte) in (address..).zip(words.iter().flat_map(|word| word.to_le_bytes())) {
        let (physical, _) = frame_part(k, (task, at), 1, Rights::W).ok_or(at)?;
        store(physical, &[byte]);
    }
    Ok(())
}

/// Maps memory 1:1 for the first task, as boot does: `gib` pages of 1 GiB from 0 on.
pub fn map_all_memory(k: &Kernel, task: TaskRef, gib: u64) {
    for i in 0..gib {
        let entry = table::ensure_level(&k.pool, task, i << 30, 2).expect("memory for a table");
        entry.set(pte::large(i << 30, Rights::RWX, false));
    }
}
