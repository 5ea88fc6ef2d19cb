//! A simulated machine: the kernel above runs on it as a library. Tests that act on tasks use it by way of `sim.rs`.
//!
//! Page tables are the real ones (the form of an entry is x86-64's), read by [`tlb`] instead of a processor. What the
//! kernel does to a processor's translation caches is the real code too, over the caches that [`tlb`] simulates. The
//! current thread is a variable, time is a number that tests advance, interrupts come when a test says so. The state
//! is per host thread, so that tests do not meet.
//!
//! Control blocks live in host memory; a slot without one shows nothing.

pub mod debug;
pub mod extended;
pub mod tlb;
pub mod user_copy;

/// Features of the processor that `four_level` asks for.
pub mod cpu {
    /// Features, as far as they are asked for.
    pub struct Features {
        /// Whether spaces are tagged.
        pub pcid: bool,
        /// Whether there is the instruction that forgets by tag.
        pub invpcid: bool,
        /// Whether page tables are isolated.
        pub isolates: bool,
    }

    /// The features of this processor.
    pub fn features() -> Features {
        let tagged = super::tlb::is_tagged();
        Features { pcid: tagged, invpcid: tagged, isolates: false }
    }
}

/// The kernel half of a space: empty but for the slots that each task has for itself.
pub mod paging {
    /// The upper half of every top-level table.
    pub fn kernel_top() -> &'static [u64; 256] {
        &[0; 256]
    }

    /// The upper half that users see under page-table isolation.
    pub fn shown_top() -> &'static [u64; 256] {
        kernel_top()
    }

    /// Entries that a task without doors has on the way to its identifiers: none here.
    pub fn nowhere() -> [u64; 3] {
        [0; 3]
    }
}

use abi::{PAGE_SIZE, Rights};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ptr;
pub use tlb as instructions;
pub use user_copy::COPIES_OPENLY;

#[derive(Default)]
struct Machine {
    blocks: HashMap<u32, *const ()>,
    /// Groups of 512 slots that have a table in the array of blocks.
    tables: BTreeSet<u32>,
    unmasked: BTreeSet<u8>,
    memory: HashMap<u64, [u8; PAGE_SIZE as usize]>,
}

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::new(Machine::default());
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static NOW_NS: Cell<u64> = const { Cell::new(START_NS) };
    static ARMED_NS: Cell<u64> = const { Cell::new(u64::MAX) };
    static FORGOTTEN: Cell<u64> = const { Cell::new(0) };
}

/// Slots that one table of the array of blocks covers.
pub const SLOTS_PER_TABLE: u32 = 512;

/// Time of the clock when a machine starts, in nanoseconds.
const START_NS: u64 = 1_000_000;

/// Forgets all blocks and interrupts: a new machine.
pub fn reset() {
    MACHINE.with(|machine| *machine.borrow_mut() = Machine::default());
    CURRENT.set(ptr::null());
    NOW_NS.set(START_NS);
    ARMED_NS.set(u64::MAX);
    FORGOTTEN.set(0);
    tlb::reset();
}

/// Whether [`shown_word`] can be used: not here, where no table shows the kernel anything.
pub const SHOWS_DOORS: bool = false;

/// The word that the running task's tables show for an identifier.
pub fn shown_word(_number: u32) -> u64 {
    unreachable!("the simulated machine does not show identifiers")
}

/// The control block in a slot.
pub fn slot_block(slot: u32) -> Option<*const ()> {
    MACHINE.with(|machine| machine.borrow().blocks.get(&slot).copied())
}

/// No frame was left for a table of the array of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

/// Puts a block into a slot. `alloc_table` is called at most once.
pub fn map_slot(
    slot: u32,
    _frame: u64,
    block: *const (),
    alloc_table: impl FnOnce() -> Option<u64>,
) -> Result<(), OutOfMemory> {
    let table = slot / SLOTS_PER_TABLE;
    if !MACHINE.with(|machine| machine.borrow().tables.contains(&table)) {
        alloc_table().ok_or(OutOfMemory)?;
        MACHINE.with(|machine| machine.borrow_mut().tables.insert(table));
    }
    MACHINE.with(|machine| machine.borrow_mut().blocks.insert(slot, block));
    Ok(())
}

/// Takes the block out of a slot.
pub fn unmap_slot(slot: u32) {
    MACHINE.with(|machine| machine.borrow_mut().blocks.remove(&slot));
}

/// Where the hot line of the current thread is; null before there is one.
pub fn current_line() -> *const () {
    CURRENT.get()
}

/// Makes a thread the current one.
pub fn set_current_line(line: *const ()) {
    CURRENT.set(line);
}

/// Loads a space, as the instruction that writes CR3 does.
pub fn load_space(space: u64) {
    // SAFETY: `write_cr3` asks for nothing on this machine.
    unsafe { tlb::write_cr3(space) };
}

/// Does nothing; a real machine lets user mode use the ports of these two frames.
pub fn ports_on(_frames: [u64; 2]) {}

/// Does nothing; a real machine forbids user mode all ports.
pub fn ports_off() {}

/// Byte that a program reads; `None` if the access faults.
pub fn load_user(address: u64) -> Option<u8> {
    tlb::access(address, Rights::R).map(|physical| load(physical, 1)[0])
}

/// Contents of physical memory in whole pages: at least `len` bytes.
pub fn memory(physical: u64, len: usize) -> Vec<u8> {
    (0..len)
        .step_by(PAGE_SIZE as usize)
        .flat_map(|at| load(physical + at as u64, PAGE_SIZE as usize))
        .collect()
}

/// Copies as the fast path does. False if it faults.
pub fn copy_user(to: u64, from: u64, len: u64) -> bool {
    // SAFETY: `copy_bytes` asks for nothing on this machine.
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

/// Lines below this one end at pins.
const PINS: u8 = 24;

/// Whether a line is level-triggered: those of PCI's pins are.
pub fn irq_is_level(line: u8) -> bool {
    (16..PINS).contains(&line)
}

/// Message that fires a line which has no pin: an address and a word that tell which line it is.
pub fn irq_message(line: u8) -> Option<(u64, u32)> {
    (line >= PINS).then(|| (0xfee0_0000, 32 + u32::from(line)))
}

/// Does nothing; a real machine tells the controller that the interrupt was taken.
pub fn irq_acknowledge() {}

/// Does nothing; a real machine loads the FS base.
pub fn load_fs(_base: u64) {}

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

/// Counts; a real machine forgets what it has learned of branches.
pub fn forget_predictions() {
    FORGOTTEN.set(FORGOTTEN.get() + 1);
}

/// Number of times that [`forget_predictions`] was called since the machine started.
pub fn predictions_forgotten() -> u64 {
    FORGOTTEN.get()
}

/// Whether the machine forgets what it has learned of branches.
pub fn forgets_predictions() -> bool {
    true
}

/// Whether there are pages of 1 GiB.
pub fn has_gib_pages() -> bool {
    true
}
