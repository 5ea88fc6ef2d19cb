//! The kernel half of the address space: built once at boot, copied into every task's top-level table.
//!
//! Invariants. Nothing is both writable and executable. Only the info page can be seen by users. Every leaf is
//! global, with accessed and dirty set, so the processor never writes to these tables. Entries of the top-level
//! table never change after [`init`]. All tables lie in the pool, where [`table`] reaches them; that holds under
//! the temporary tables too, because [`init`] maps the start of the pool there first. Intel SDM volume 3,
//! chapter 5.

use super::cpu::features;
use super::instructions::{invlpg, read_cr3, read_cr4, write_cr3, write_cr4};
use super::stack::{BOOT_STACK, Stack};
use super::{per_cpu, tables, tcb_array};
use crate::arch::four_level::DOORS_THIRD_ENTRIES;
use crate::layout;
use abi::PAGE_SIZE;
use abi::boot::InfoPage;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Flag: the entry is in use.
pub const PRESENT: u64 = 1 << 0;
/// Flag: the page can be written.
pub const WRITE: u64 = 1 << 1;
/// Flag: users may use the page; every level on the way must agree.
pub const USER: u64 = 1 << 2;
/// Flags: the page is not cached, for device registers (PAT entry 3).
pub const UNCACHED: u64 = 1 << 3 | 1 << 4;
/// Flags: accessed and dirty.
pub const USED: u64 = 1 << 5 | 1 << 6;
/// Flag of an entry of level 2: it is a page of 2 MiB.
pub const LARGE: u64 = 1 << 7;
/// Flag: the translation survives a change of address space.
pub const GLOBAL: u64 = 1 << 8;
/// Flag: the page cannot be executed.
pub const NO_EXECUTE: u64 = 1 << 63;
/// Mask of the physical address in an entry.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

const LEAF: u64 = PRESENT | USED | GLOBAL;
const CODE: u64 = LEAF;
const CONSTANTS: u64 = LEAF | NO_EXECUTE;
const DATA: u64 = LEAF | WRITE | NO_EXECUTE;
const DEVICE: u64 = DATA | UNCACHED;
/// Bytes of a large page.
pub const LARGE_SIZE: u64 = 2 << 20;

/// A table of any level.
#[repr(C, align(4096))]
pub struct Table(pub [u64; 512]);

/// The temporary tables: one of level 4, one of level 3, four of level 2 for 4 GiB, and two for the pool.
pub static mut BOOT_TABLES: [Table; 8] = [const { Table([0; 512]) }; 8];

/// The memory that is the kernel's own.
pub struct Pool<'a> {
    /// Physical addresses; both bounds are multiples of [`LARGE_SIZE`].
    pub range: Range<u64>,
    /// Bytes from its start that are in use.
    pub used: &'a mut u64,
}

/// Index into the table of `level` (1: pages, 4: top) on the way to an address.
const fn index(address: u64, level: u32) -> usize {
    (address >> (3 + 9 * level)) as usize & 511
}

/// Address of the top-level table that shows users their part of the kernel half; 0 without page-table isolation.
static SHOWN: AtomicU64 = AtomicU64::new(0);

static POOL_START: AtomicU64 = AtomicU64::new(0);
static POOL_LEN: AtomicU64 = AtomicU64::new(0);
/// Physical addresses: the kernel's own top-level table; the level-2 table of the image's GiB; the table
/// that holds devices, per-CPU page and port bitmap.
static TOP: AtomicU64 = AtomicU64::new(0);
static IMAGE_DIRECTORY: AtomicU64 = AtomicU64::new(0);
static DEVICE_TABLE: AtomicU64 = AtomicU64::new(0);

/// Entries of levels 3, 2 and 1 that a task without doors has on the way to its door identifiers.
static NOWHERE: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Entries of levels 3, 2 and 1 that a task without doors has on the way to its door identifiers. The last leads to a page which
/// says that there are none.
pub fn nowhere() -> [u64; 3] {
    [0, 1, 2].map(|level| NOWHERE[level].load(Relaxed))
}

/// Whether the final tables are in use.
pub fn ready() -> bool {
    TOP.load(Relaxed) != 0
}

/// The value of CR3 for the kernel's own table, which maps nothing for users: for idling and for ending tasks.
pub fn kernel_cr3() -> u64 {
    TOP.load(Relaxed)
}

/// The upper half of every top-level table; it never changes.
pub fn kernel_top() -> &'static [u64; 256] {
    // SAFETY: `init` ran, so TOP is a table in the pool; its entries never change again.
    let top = unsafe { &(*table(kernel_cr3())).0 };
    top.last_chunk().expect("a table has 512 entries")
}

/// The upper half of the top-level tables that users run on under page-table isolation; it never changes.
pub fn shown_top() -> &'static [u64; 256] {
    // SAFETY: `init` ran under isolation, so SHOWN is a table in the pool; its entries never change again.
    let top = unsafe { &(*table(SHOWN.load(Relaxed))).0 };
    top.last_chunk().expect("a table has 512 entries")
}

/// Address at which a frame of the pool can be written.
fn table(frame: u64) -> *mut Table {
    debug_assert!(in_pool(frame));
    (layout::POOL + (frame - POOL_START.load(Relaxed))) as *mut Table
}

fn in_pool(frame: u64) -> bool {
    frame.wrapping_sub(POOL_START.load(Relaxed)) < POOL_LEN.load(Relaxed)
}

/// One entry of a table in the pool.
fn entry(frame: u64, index: usize) -> *mut u64 {
    // SAFETY: `table` lies in the mapped pool, and the index is within the table.
    unsafe { (&raw mut (*table(frame)).0).cast::<u64>().add(index & 511) }
}

fn read(entry: *mut u64) -> u64 {
    // SAFETY: entries come from `entry`; the processor does not write to the kernel's tables.
    unsafe { entry.read_volatile() }
}

fn write(entry: *mut u64, value: u64) {
    // SAFETY: entries come from `entry`. Only the boot CPU writes to the kernel's tables.
    unsafe { entry.write_volatile(value) }
}

/// Builds the final tables in the pool and switches to them. `no_door`: the word that is shown for a number which is no identifier. Returns
/// the address at which the info page can be written.
pub fn init(pool: Pool, no_door: u64) -> *mut InfoPage {
    let Range { start, end } = pool.range;
    POOL_START.store(start, Relaxed);
    POOL_LEN.store(end - start, Relaxed);
    map_pool_start(start..end);

    let mut builder = Builder::new(pool);
    builder.map_image();
    builder.map_pool();
    let info_page = builder.map_info();
    builder.map_per_cpu();
    builder.map_tcb_array();
    builder.map_no_doors(no_door);
    // Made now, so that neither boot views nor devices need memory later.
    let image_directory = builder.directory(layout::IMAGE);
    let device_table = builder.table(layout::DEVICES);
    let top = builder.top;
    IMAGE_DIRECTORY.store(image_directory, Relaxed);
    DEVICE_TABLE.store(device_table, Relaxed);
    if features().isolates {
        builder.map_shown();
    }
    // SAFETY: the table maps the running code, its data and its stack where they are now.
    unsafe { write_cr3(top) };
    TOP.store(top, Relaxed);
    info_page
}

/// Makes the start of the pool writable at its final address in the temporary tables.
fn map_pool_start(pool: Range<u64>) {
    let tables = &raw mut BOOT_TABLES;
    // SAFETY: only the boot CPU runs, and it does not yet use these entries of its tables.
    let [top, .., second, third] = unsafe { &mut *tables };
    let link = |table: &Table| (&raw const *table as u64 - layout::IMAGE) | PRESENT | WRITE;
    top.0[index(layout::POOL, 4)] = link(second);
    second.0[index(layout::POOL, 3)] = link(third);
    for (slot, page) in third.0.iter_mut().zip(pool.step_by(LARGE_SIZE as usize)) {
        *slot = page | PRESENT | WRITE | LARGE;
    }
}

/// Takes frames from the start of the pool and hangs tables into each other.
struct Builder<'a> {
    pool: Pool<'a>,
    top: u64,
}

impl<'a> Builder<'a> {
    fn new(pool: Pool<'a>) -> Builder<'a> {
        let mut builder = Builder { pool, top: 0 };
        builder.top = builder.frame();
        builder
    }

    /// A frame full of zeroes. The smallest pool is large enough for all frames that the boot needs. A larger pool needs more
    /// tables: one byte for 2¹⁸ of it.
    fn frame(&mut self) -> u64 {
        let frame = self.pool.range.start + *self.pool.used;
        assert!(frame < self.pool.range.end, "the kernel's memory pool is too small to start");
        *self.pool.used += PAGE_SIZE;
        // SAFETY: the frame belongs to the pool and nobody uses it yet.
        unsafe { (*table(frame)).0.fill(0) };
        frame
    }

    /// The table of `level` on the way to `address`, made where it is missing.
    fn descend(&mut self, address: u64, level: u32, link: u64) -> u64 {
        let mut frame = self.top;
        for above in (level + 1..=4).rev() {
            let slot = entry(frame, index(address, above));
            if read(slot) == 0 {
                write(slot, self.frame() | PRESENT | WRITE | 1 << 5 | link);
            }
            frame = read(slot) & ADDRESS;
        }
        frame
    }

    fn directory(&mut self, address: u64) -> u64 {
        self.descend(address, 2, 0)
    }

    fn table(&mut self, address: u64) -> u64 {
        self.descend(address, 1, 0)
    }

    fn map(&mut self, address: u64, frame: u64, flags: u64) {
        let table = self.descend(address, 1, flags & USER);
        write(entry(table, index(address, 1)), frame | flags);
    }

    /// Maps the program: text, constants, data. The boot section stays out, and so does the page under each stack.
    fn map_image(&mut self) {
        unsafe extern "C" {
            static text_start: u8;
            static text_end: u8;
            static rodata_start: u8;
            static rodata_end: u8;
            static data_start: u8;
            static data_end: u8;
        }
        let parts = [
            (&raw const text_start, &raw const text_end, CODE),
            (&raw const rodata_start, &raw const rodata_end, CONSTANTS),
            (&raw const data_start, &raw const data_end, DATA),
        ];
        for (start, end, flags) in parts {
            for page in (start as u64..end as u64).step_by(PAGE_SIZE as usize) {
                self.map(page, page - layout::IMAGE, flags);
            }
        }
        let boot_guard = Stack::bounds(&raw const BOOT_STACK).guard;
        for guard in tables::guard_pages().into_iter().chain([boot_guard]) {
            self.map(guard as u64, 0, 0);
        }
    }

    fn map_pool(&mut self) {
        let Range { start, end } = self.pool.range;
        for offset in (0..end - start).step_by(LARGE_SIZE as usize) {
            let directory = self.directory(layout::POOL + offset);
            write(entry(directory, index(layout::POOL + offset, 2)), (start + offset) | DATA | LARGE);
        }
    }

    fn map_info(&mut self) -> *mut InfoPage {
        let frame = self.frame();
        self.map(layout::INFO, frame, CONSTANTS | USER);
        table(frame).cast()
    }

    /// Maps the per-CPU page, and a port bitmap that allows nothing.
    fn map_per_cpu(&mut self) {
        let frame = self.frame();
        self.map(layout::PER_CPU, frame, DATA);
        let ones = self.frame();
        // SAFETY: the frame was just allocated.
        unsafe { (*table(ones)).0.fill(u64::MAX) };
        for page in 0..3 {
            self.map(layout::PORT_BITMAP + page * PAGE_SIZE, ones, CONSTANTS);
        }
    }

    /// Builds the top-level table of users under page-table isolation. Of the kernel half it shows the program's text, which everybody
    /// may know; the interrupt descriptor table, the per-CPU page and the port bitmap behind it, which the processor reads in user mode
    /// and on its way out of it, with device registers in the same last-level table; and the info page.
    fn map_shown(&mut self) {
        unsafe extern "C" {
            static text_start: u8;
            static text_end: u8;
        }
        let top = self.top;
        let devices = read(entry(self.directory(layout::DEVICES), index(layout::DEVICES, 2)));
        let info = read(entry(top, index(layout::INFO, 4)));
        self.top = self.frame();
        SHOWN.store(self.top, Relaxed);
        for page in (&raw const text_start as u64..&raw const text_end as u64).step_by(PAGE_SIZE as usize) {
            self.map(page, page - layout::IMAGE, CODE);
        }
        self.map(tables::gates_page(), tables::gates_page() - layout::IMAGE, CONSTANTS);
        let directory = self.directory(layout::DEVICES);
        write(entry(directory, index(layout::DEVICES, 2)), devices);
        write(entry(self.top, index(layout::INFO, 4)), info);
        self.top = top;
    }

    /// Maps the door identifiers of a task that has none: everywhere one page of `no_door`, by shared tables. Not global, since
    /// other tasks have other pages there.
    fn map_no_doors(&mut self, no_door: u64) {
        const LINK: u64 = PRESENT | WRITE | 1 << 5;
        let mut below = self.frame();
        // SAFETY: the frame was just allocated.
        unsafe { (*table(below)).0.fill(no_door) };
        below |= PRESENT | USED | NO_EXECUTE;
        NOWHERE[2].store(below, Relaxed);
        for level in [1, 0] {
            let frame = self.frame();
            (0..512).for_each(|index| write(entry(frame, index), below));
            below = frame | LINK;
            NOWHERE[level].store(below, Relaxed);
        }
        let third = self.descend(layout::DOORS, 3, 0);
        (0..DOORS_THIRD_ENTRIES).for_each(|index| write(entry(third, index), below));
    }

    /// Maps the array of control blocks: 512 times one table, which is 512 times one page of zeroes.
    fn map_tcb_array(&mut self) {
        let zeroes = self.frame();
        let shared = self.frame();
        let directory = self.directory(layout::TCBS);
        for index in 0..512 {
            write(entry(shared, index), zeroes | CONSTANTS);
            write(entry(directory, index), shared | PRESENT | WRITE | 1 << 5);
        }
        tcb_array::init(directory, shared, zeroes);
    }
}

/// Sets a leaf in a table of the pool and forgets the old translation of the page on this CPU.
pub(super) fn set_leaf(table: u64, address: u64, frame: u64, writable: bool) {
    let flags = if writable { DATA } else { CONSTANTS };
    write(entry(table, index(address, 1)), frame | flags);
    invlpg(address);
}

/// Reads any entry of a table in the pool.
pub(super) fn table_entry(table: u64, index: usize) -> u64 {
    read(entry(table, index))
}

/// Hangs `table` into a level-2 table in place of another one. Every address space may have cached the old
/// link, whatever its tag, so everything is forgotten.
pub(super) fn relink(directory: u64, index: usize, table: u64) {
    write(entry(directory, index), table | PRESENT | WRITE | 1 << 5);
    flush_everything();
}

/// Copies all entries of one table of the pool into another.
pub(super) fn copy_table(from: u64, to: u64) {
    // SAFETY: both are frames of the pool, and different ones.
    unsafe { table(from).copy_to_nonoverlapping(table(to), 1) };
}

/// Forgets all translations on this CPU: global ones, tagged ones, and cached upper entries.
pub fn flush_everything() {
    const GLOBAL_PAGES: u64 = 1 << 7;
    let control = read_cr4();
    if control & GLOBAL_PAGES == 0 {
        // SAFETY: loads the value that is there; without global pages and tags nothing survives that.
        unsafe { write_cr3(read_cr3()) };
        return;
    }
    // SAFETY: global pages are off for one instruction, which only costs time.
    unsafe { write_cr4(control & !GLOBAL_PAGES) };
    // SAFETY: the value that was there.
    unsafe { write_cr4(control) };
}

/// Points the two pages of the port bitmap to other frames.
pub(super) fn set_port_bitmap(frames: [u64; 2]) {
    let table = DEVICE_TABLE.load(Relaxed);
    for (page, frame) in (0..).zip(frames) {
        set_leaf(table, layout::PORT_BITMAP + page * PAGE_SIZE, frame, false);
    }
}

/// Maps pages of device registers for good, and returns where. Boot only.
pub fn map_device(physical: u64, pages: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(layout::DEVICES);
    let start = NEXT.fetch_add(pages * PAGE_SIZE, Relaxed);
    assert!(start + pages * PAGE_SIZE <= layout::PER_CPU, "no room for another device");
    for page in 0..pages {
        let address = start + page * PAGE_SIZE;
        let slot = entry(DEVICE_TABLE.load(Relaxed), index(address, 1));
        write(slot, ((physical & ADDRESS) + page * PAGE_SIZE) | DEVICE);
        invlpg(address);
    }
    start + physical % PAGE_SIZE
}

/// Sets the level-2 entry for a large page of the image's GiB. `frame`: nothing, or the page to map and whether it may be
/// written.
pub(super) fn set_image_page(slot: usize, frame: Option<(u64, bool)>) {
    let flags = |writable| LARGE | if writable { DATA } else { CONSTANTS };
    let value = frame.map_or(0, |(frame, writable)| frame | flags(writable));
    write(entry(IMAGE_DIRECTORY.load(Relaxed), slot), value);
    invlpg(layout::IMAGE + slot as u64 * LARGE_SIZE);
}

/// Whether a large page of the image's GiB is unused.
pub(super) fn image_page_is_free(slot: usize) -> bool {
    table_entry(IMAGE_DIRECTORY.load(Relaxed), slot) == 0
}

/// The physical memory of the pool.
pub fn pool() -> Range<u64> {
    let start = POOL_START.load(Relaxed);
    start..start + POOL_LEN.load(Relaxed)
}

/// The physical memory of the kernel's image, boot section included.
pub fn image() -> Range<u64> {
    unsafe extern "C" {
        static image_start: u8;
        static image_end: u8;
    }
    (&raw const image_start) as u64 - layout::IMAGE..(&raw const image_end) as u64 - layout::IMAGE
}

/// Reads a word of kernel memory if it is mapped: for a backtrace, which must not fault.
pub fn read_mapped(address: u64) -> Option<u64> {
    if !address.is_multiple_of(8) || address < layout::KERNEL_HALF || !ready() {
        return None;
    }
    let mut frame = read_cr3() & ADDRESS;
    for level in (1..=4).rev() {
        if !in_pool(frame) {
            return None;
        }
        let value = table_entry(frame, index(address, level));
        if value & PRESENT == 0 {
            return None;
        }
        if level == 1 || (level < 4 && value & LARGE != 0) {
            break;
        }
        frame = value & ADDRESS;
    }
    // SAFETY: the walk found the page present, and kernel pages are readable.
    Some(unsafe { (address as *const u64).read_volatile() })
}

const _: () = assert!(layout::PER_CPU == per_cpu::ADDRESS && index(layout::POOL, 4) == 256);
