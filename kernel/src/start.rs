//! The first task: from a machine that is set up to σ0's first instruction.
//!
//! σ0's space maps all physical memory at its own address (C1), but for the kernel's own; above
//! [`SIGMA0_PROGRAM`] lies its program, loaded from the boot archive's file `sigma0`, then its stack and the
//! [`BootInfo`]. This is the only file that the kernel ever reads.

use crate::arch::{self, pte, view};
use crate::boot::{Boot, Range, Regions};
use crate::kernel::Kernel;
use crate::layout;
use crate::layout::SIGMA0_PROGRAM;
use crate::life::{boot_task, boot_thread, start_thread};
use crate::mem::space;
use crate::mem::table;
use crate::object::TaskRef;
use crate::object::thread::{Frame, Tcb};
use crate::processor;
use abi::boot::{BootInfo, memory_kind};
use abi::call::PRIORITIES;
use abi::{INFO_PAGE, PAGE_SIZE, Rights, archive};

const GIB: u64 = 1 << 30;
const MIB2: u64 = 2 << 20;

/// σ0's stack, in bytes.
const STACK: u64 = 64 << 10;

/// Physical addresses below this are mapped for σ0 even where there is no memory: devices.
const DEVICE_SPACE: u64 = 512 * GIB;

/// Makes the kernel's first objects: the thread that idles, σ0, and its first thread, which is ready. The error says in a line why σ0
/// cannot be started.
pub fn start(k: &Kernel, boot: &Boot) -> Result<TaskRef, &'static str> {
    make_idle(k);
    let sigma0 = boot_task(k);
    sigma0.is_sigma0.set(true);
    space::ensure_bitmap(&k.pool, sigma0).expect("σ0 has memory for its port bitmap");
    let mut memory = boot.memory.clone();
    let program = Program::find(boot, &mut memory)?;
    map_memory(k, sigma0, &memory);
    let argument = program.load(k, sigma0, &boot_info(boot, &memory));
    let thread = boot_thread(k, sigma0, PRIORITIES as u8 - 1);
    start_thread(k, thread, program.entry, program.stack_top(), argument);
    Ok(sigma0)
}

/// The thread that waits for interrupts when nothing else can run. It has slot 0, which no uid leads to.
fn make_idle(k: &Kernel) {
    let frame = k.take_reserved().expect("the pool is not empty");
    let idle = processor::map_tcb(k, 0, frame).expect("the pool is not empty");
    idle.set_ready();
    idle.canary.set(Tcb::CANARY);
    idle.frame.mode.set(Frame::IDLE);
    idle.hot.space.set(arch::kernel_space());
    k.set_idle(idle);
}

/// Maps all of the physical address space for σ0, in the largest pages that have one kind of memory.
fn map_memory(k: &Kernel, task: TaskRef, memory: &Regions) {
    let largest = if arch::has_gib_pages() { GIB } else { MIB2 };
    let memory_end = memory.as_slice().last().map_or(0, |region| region.base + region.len);
    let end = if largest == GIB { DEVICE_SPACE } else { 4 * GIB }.max(memory_end.next_multiple_of(GIB));
    let end = end.min(1 << arch::physical_bits().min(46));
    let mut at = 0;
    while at < end {
        let mut size = largest;
        let uniform = loop {
            match uniform_kind(memory, Range { start: at, len: size }) {
                Some(kind) if at % size == 0 => break kind,
                _ => size = if size == GIB { MIB2 } else { PAGE_SIZE },
            }
        };
        // A range that is not listed is a device or nothing. σ0 does not see the kernel's memory.
        if uniform != memory_kind::KERNEL {
            map_range(k, task, at, size, uniform == 0);
        }
        at += size;
    }
}

/// The kind of memory that a range has all over, 0 for none; `None` if it is mixed.
fn uniform_kind(memory: &Regions, range: Range) -> Option<u64> {
    for region in memory.as_slice() {
        let there = Range { start: region.base, len: region.len };
        if there.overlaps(range) {
            let inside = there.start <= range.start && range.end() <= there.end();
            return inside.then_some(region.kind);
        }
    }
    Some(0)
}

fn map_range(k: &Kernel, task: TaskRef, at: u64, size: u64, uncached: bool) {
    let rights = if uncached { Rights::RW } else { Rights::RWX };
    if size == PAGE_SIZE {
        let leaf = table::ensure(&k.pool, task, at).expect("σ0 has memory for its tables");
        leaf.entry.set(pte::leaf(at, rights, uncached));
        return;
    }
    let level = if size == GIB { 2 } else { 1 };
    let entry = table::ensure_level(&k.pool, task, at, level).expect("σ0 has memory for its tables");
    entry.set(pte::large(at, rights, uncached));
}

/// Flag of [`Segment::flags`]: the segment is executed.
const EXECUTE: u32 = 1 << 0;

/// Flag of [`Segment::flags`]: the segment is written.
const WRITE: u32 = 1 << 1;

/// A loadable segment: a line of an ELF program header.
#[derive(Clone, Copy, Default)]
struct Segment {
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    size: u64,
}

const SEGMENTS: usize = 8;

/// σ0's program, and the memory that it goes to.
struct Program {
    /// Physical address of the file.
    file: u64,
    entry: u64,
    segments: [Segment; SEGMENTS],
    /// Bytes from [`SIGMA0_PROGRAM`] to the end of the last segment.
    span: u64,
    /// Physical memory for segments, stack and boot information.
    memory: Range,
}

impl Program {
    /// Finds the program in the archive, checks it, and sets memory for it apart.
    fn find(boot: &Boot, memory: &mut Regions) -> Result<Program, &'static str> {
        let view =
            view::open(boot.archive.start, boot.archive.len).ok_or("the boot archive cannot be read")?;
        let bytes: &[u8] = &view;
        // All files are read: a missing part would be noticed much later.
        if archive::files(bytes).any(|file| file.is_err()) {
            return Err("the boot archive is damaged");
        }
        let file = archive::find(bytes, "sigma0").ok_or("the boot archive has no file \"sigma0\"")?.data;
        let mut program =
            Program::parse(file).ok_or("\"sigma0\" in the boot archive is no program for this machine")?;
        if !program.begins_in_code() {
            return Err("\"sigma0\" in the boot archive begins where it has no code");
        }
        program.file = boot.archive.start + (file.as_ptr() as u64 - bytes.as_ptr() as u64);
        let need = program.span + STACK + size_of::<BootInfo>().next_multiple_of(PAGE_SIZE as usize) as u64;
        let anywhere = Range { start: 0, len: u64::MAX };
        program.memory =
            memory.find(memory_kind::FREE, anywhere, need).ok_or("there is no memory for sigma0")?;
        program.memory.len = need;
        memory.paint(program.memory, memory_kind::SIGMA0);
        Ok(program)
    }

    /// Reads the headers of an ELF file; `None` if anything about it is not as expected.
    fn parse(file: &[u8]) -> Option<Program> {
        let bytes = |at: u64, len: u64| file.get(usize::try_from(at).ok()?..)?.get(..len as usize);
        let word = |at: u64| Some(u64::from_le_bytes(bytes(at, 8)?.try_into().ok()?));
        let half = |at: u64| Some(u32::from_le_bytes(bytes(at, 4)?.try_into().ok()?));
        let short = |at: u64| Some(u16::from_le_bytes(bytes(at, 2)?.try_into().ok()?));
        const EXECUTABLE: u16 = 2;
        if bytes(0, 6)? != b"\x7fELF\x02\x01" || short(16)? != EXECUTABLE || short(18)? != arch::ELF_MACHINE {
            return None;
        }
        let (entry, table, size, count) = (word(24)?, word(32)?, short(54)? as u64, short(56)? as u64);
        let mut program =
            Program { file: 0, entry, segments: Default::default(), span: 0, memory: Range::default() };
        let mut found = 0;
        for i in 0..count {
            let at = table.checked_add(i * size)?;
            const LOAD: u32 = 1;
            if half(at)? != LOAD {
                continue;
            }
            let segment = Segment {
                flags: half(at + 4)?,
                offset: word(at + 8)?,
                address: word(at + 16)?,
                file_size: word(at + 32)?,
                size: word(at + 40)?,
            };
            bytes(segment.offset, segment.file_size)?;
            let end = segment.address.checked_add(segment.size)?;
            let fits = segment.address >= SIGMA0_PROGRAM && end <= SIGMA0_PROGRAM + (64 << 20);
            if !fits || segment.file_size > segment.size {
                return None;
            }
            *program.segments.get_mut(found)? = segment;
            found += 1;
            program.span = program.span.max((end - SIGMA0_PROGRAM).next_multiple_of(PAGE_SIZE));
        }
        (found > 0).then_some(program)
    }

    /// Whether the first instruction lies in a segment that is executed. Nobody could handle its fault otherwise.
    fn begins_in_code(&self) -> bool {
        let holds = |s: &Segment| s.address <= self.entry && self.entry < s.address + s.size;
        self.segments.iter().any(|segment| segment.flags & EXECUTE != 0 && holds(segment))
    }

    fn stack_top(&self) -> u64 {
        SIGMA0_PROGRAM + self.span + STACK
    }

    /// Copies the program into its memory and maps it. Returns the address of the boot information.
    fn load(&self, k: &Kernel, task: TaskRef, info: &BootInfo) -> u64 {
        const WHY: &str = "memory that was found free can be written";
        let mut memory = view::open_mut(self.memory.start, self.memory.len).expect(WHY);
        memory.fill(0);
        for segment in self.segments.iter().filter(|segment| segment.size != 0) {
            let file = view::open(self.file + segment.offset, segment.file_size).expect("it was read before");
            let to = (segment.address - SIGMA0_PROGRAM) as usize;
            memory[to..to + file.len()].copy_from_slice(&file);
        }
        let at = (self.span + STACK) as usize;
        // SAFETY: plain data, and the view reaches to its end; boot information starts on a page.
        unsafe { memory[at..].as_mut_ptr().cast::<BootInfo>().write(*info) };
        for page in (0..self.memory.len).step_by(PAGE_SIZE as usize) {
            let rights = self.rights(SIGMA0_PROGRAM + page);
            let leaf =
                table::ensure(&k.pool, task, SIGMA0_PROGRAM + page).expect("σ0 has memory for its tables");
            leaf.entry.set(pte::leaf(self.memory.start + page, rights, false));
        }
        self.stack_top()
    }

    /// Rights to a page of σ0's program: never both to write and to execute, unless segments share a page.
    fn rights(&self, page: u64) -> Rights {
        let inside = |s: &&Segment| s.size != 0 && page < s.address + s.size && s.address < page + PAGE_SIZE;
        let flags = self.segments.iter().filter(inside).fold(0, |all, segment| all | segment.flags);
        let (execute, write) = (flags & EXECUTE != 0, flags & WRITE != 0 || flags == 0);
        let rights = if write { Rights::RW } else { Rights::R };
        if execute { rights.or(Rights::X) } else { rights }
    }
}

/// Boot information for σ0.
fn boot_info(boot: &Boot, memory: &Regions) -> BootInfo {
    let mut info = BootInfo {
        magic: BootInfo::MAGIC,
        memory_count: memory.as_slice().len() as u64,
        memory: [Default::default(); BootInfo::MEMORY_MAX],
        archive: boot.archive.start,
        archive_len: boot.archive.len,
        rsdp: boot.rsdp,
        command_line_len: boot.command_line_len as u64,
        command_line: boot.command_line,
        serial: boot.serial_port as u64,
        cpus: boot.cpus as u64,
        screen: boot.screen,
    };
    info.memory[..memory.as_slice().len()].copy_from_slice(memory.as_slice());
    info
}

const _: () = assert!(INFO_PAGE == layout::INFO);
