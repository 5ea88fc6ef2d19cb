//! What the machine told the kernel: memory, boot archive, command line.
//!
//! Two loaders are understood: PVH (`qemu -kernel`) and multiboot2 (GRUB). Both hand over a list of memory ranges
//! that may be unsorted, overlapping and misaligned, and put the archive and their own tables into memory that
//! the list calls available. [`memory`] makes an orderly list of it: sorted, merged, page-aligned, each byte of
//! one kind. Everything here works on borrowed bytes and never reads outside them.
//!
//! Surprise: where ranges overlap, the more restrictive kind wins, whatever the order.

use crate::layout;
use crate::param::{MEMORY_MIN, POOL_MIN, POOL_SHARE};
use abi::PAGE_SIZE;
use abi::boot::{BootInfo, InfoPage, MemoryRegion, memory_kind};
use core::fmt;

/// A range of physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// Physical address of the first byte.
    pub start: u64,
    /// Size in bytes.
    pub len: u64,
}

impl Range {
    /// A range by its bounds; empty if they are in the wrong order.
    pub const fn new(start: u64, end: u64) -> Range {
        Range { start, len: end.saturating_sub(start) }
    }

    /// First address behind the range.
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Whether the two share a byte.
    pub const fn overlaps(self, other: Range) -> bool {
        self.len != 0 && other.len != 0 && self.start < other.end() && other.start < self.end()
    }

    /// The whole pages inside the range.
    fn pages_inside(self) -> Range {
        Range::new(self.start.min(ADDRESS_END).next_multiple_of(PAGE_SIZE), self.end() & !(PAGE_SIZE - 1))
    }

    /// The pages that the range touches.
    fn pages_touched(self) -> Range {
        Range::new(self.start & !(PAGE_SIZE - 1), self.end().min(ADDRESS_END).next_multiple_of(PAGE_SIZE))
    }

    fn intersection(self, other: Range) -> Range {
        Range::new(self.start.max(other.start), self.end().min(other.end()))
    }
}

/// Everything the portable kernel learns from the boot.
pub struct Boot {
    /// Physical memory, sorted, merged and page-aligned.
    pub memory: Regions,
    /// The boot archive.
    pub archive: Range,
    /// The command line; valid up to `command_line_len`.
    pub command_line: [u8; COMMAND_LINE_MAX],
    /// Bytes of `command_line`.
    pub command_line_len: usize,
    /// Physical address of the ACPI root pointer, 0 if there is none.
    pub rsdp: u64,
    /// The kernel's own memory, mapped at [`layout::POOL`].
    pub pool: Pool,
    /// The page at [`layout::INFO`], by an address at which the kernel may write.
    pub info_page: *mut InfoPage,
    /// I/O port of the console, 0 if there is none.
    pub serial_port: u16,
    /// Processors found; all but the first are parked.
    pub cpus: u32,
}

/// Longest command line, in bytes.
pub const COMMAND_LINE_MAX: usize = 512;

impl Boot {
    /// Nothing known yet.
    pub const fn new() -> Boot {
        Boot {
            memory: Regions::new(),
            archive: Range { start: 0, len: 0 },
            command_line: [0; COMMAND_LINE_MAX],
            command_line_len: 0,
            rsdp: 0,
            pool: Pool { range: Range { start: 0, len: 0 }, used: 0 },
            info_page: core::ptr::null_mut(),
            serial_port: 0,
            cpus: 1,
        }
    }

    /// The command line as text.
    pub fn command_line(&self) -> Result<&str, Refusal> {
        core::str::from_utf8(&self.command_line[..self.command_line_len])
            .map_err(|_| Refusal::BadInfo("the boot command line is not text"))
    }

    /// Keeps what has to survive the loader's own memory.
    pub fn set_command_line(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let target = self.command_line.get_mut(..bytes.len()).ok_or(Refusal::LongCommandLine)?;
        target.copy_from_slice(bytes);
        self.command_line_len = bytes.len();
        Ok(())
    }
}

impl Default for Boot {
    fn default() -> Boot {
        Boot::new()
    }
}

/// The kernel's own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pool {
    /// Where it is; both bounds are multiples of [`POOL_UNIT`].
    pub range: Range,
    /// Bytes from its start that the boot has used.
    pub used: u64,
}

/// Alignment and granularity of the pool: a large page, so that mapping it costs the fewest TLB entries.
pub const POOL_UNIT: u64 = 2 << 20;

/// Why the kernel does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The processor lacks something.
    Processor(&'static str),
    /// What the loader handed over makes no sense.
    BadInfo(&'static str),
    /// The command line does not fit.
    LongCommandLine,
    /// No boot module.
    NoArchive,
    /// The archive is empty or lies where it cannot be.
    BadArchive(Range),
    /// Less memory than [`MEMORY_MIN`]; in bytes.
    LittleMemory(u64),
    /// The option `kmem` asks for less than [`POOL_MIN`]; in bytes.
    SmallPool(u64),
    /// The option `kmem` asks for more than half of memory; both in bytes.
    LargePool(u64, u64),
    /// Memory is too fragmented for a pool of so many bytes.
    NoRoomForPool(u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Refusal::Processor(what) => write!(f, "this processor lacks {what}"),
            Refusal::BadInfo(what) => f.write_str(what),
            Refusal::LongCommandLine => {
                write!(f, "the boot command line is longer than {COMMAND_LINE_MAX} bytes")
            }
            Refusal::NoArchive => f.write_str("no boot archive (qemu: -initrd FILE, GRUB: module2 FILE)"),
            Refusal::BadArchive(range) => {
                write!(f, "the boot archive cannot be {} bytes at {:#x}", range.len, range.start)
            }
            Refusal::LittleMemory(bytes) => write!(
                f,
                "this machine has {} MiB of memory, Tern needs at least {}",
                bytes.div_ceil(MIB),
                MEMORY_MIN / MIB
            ),
            Refusal::SmallPool(bytes) => {
                write!(f, "kmem={} is too small, Tern needs at least {}", Size(bytes), Size(POOL_MIN))
            }
            Refusal::LargePool(bytes, memory) => write!(
                f,
                "kmem={} is more than half of the machine's {} MiB of memory",
                Size(bytes),
                memory.div_ceil(MIB)
            ),
            Refusal::NoRoomForPool(bytes) => {
                write!(f, "no {} of contiguous memory for the kernel", Size(bytes))
            }
        }
    }
}

const MIB: u64 = 1 << 20;

/// A size for people: in the largest unit that divides it.
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            bytes if bytes != 0 && bytes % (1 << 30) == 0 => write!(f, "{} GiB", bytes >> 30),
            bytes if bytes != 0 && bytes % (1 << 20) == 0 => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes != 0 && bytes % (1 << 10) == 0 => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

/// No physical address reaches here: what lies beyond is a damaged entry.
const ADDRESS_END: u64 = 1 << 52;

/// Below it live real-mode firmware, its data, and the code that starts other processors.
const LOW_END: u64 = 1 << 20;

/// The BIOS, where the ACPI root pointer of a PC is found.
const BIOS: Range = Range::new(0xe_0000, LOW_END);

/// What a loader handed over, still in the loader's memory.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'a> {
    /// Ranges of physical memory.
    pub map: MemoryMap<'a>,
    /// The first boot module.
    pub archive: Option<Range>,
    /// The command line without its terminating zero.
    pub command_line: &'a [u8],
    /// The ACPI root pointer.
    pub rsdp: Rsdp<'a>,
}

/// How a loader tells where ACPI starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rsdp<'a> {
    /// It does not.
    Unknown,
    /// A physical address.
    At(u64),
    /// A copy of the structure.
    Copy(&'a [u8]),
}

/// The memory map; both loaders use the same entries.
///
/// ```text
///  0        8        16      20      24
/// +--------+--------+-------+-------+
/// |  base  | length | type  |   -   |
/// +--------+--------+-------+-------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryMap<'a> {
    bytes: &'a [u8],
    entry_len: usize,
}

const MAP_ENTRY: usize = 24;
const TYPE_AVAILABLE: u32 = 1;
const TYPE_ACPI: u32 = 3;
const TYPE_ACPI_STORAGE: u32 = 4;

impl<'a> MemoryMap<'a> {
    fn entries(self) -> impl Iterator<Item = (Range, u32)> + 'a {
        self.bytes.chunks_exact(self.entry_len).filter_map(|entry| {
            let range = Range { start: word64(entry, 0)?, len: word64(entry, 8)? };
            Some((range, word32(entry, 16)?))
        })
    }
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// In `eax` when a multiboot2 loader enters the kernel.
pub const MULTIBOOT_MAGIC: u32 = 0x36d7_6289;

/// Reads the information structure of a multiboot2 loader (specification 2.0, section 3.6).
pub fn parse_multiboot(info: &[u8]) -> Result<Loaded<'_>, Refusal> {
    const END: u32 = 0;
    const COMMAND_LINE: u32 = 1;
    const MODULE: u32 = 3;
    const MEMORY_MAP: u32 = 6;
    const ACPI_OLD: u32 = 14;
    const ACPI_NEW: u32 = 15;

    let mut map = None;
    let mut archive = None;
    let mut command_line: &[u8] = &[];
    let mut rsdp = Rsdp::Unknown;
    let mut at = 8;
    while let (Some(kind), Some(len)) = (word32(info, at), word32(info, at + 4)) {
        let Some(tag) = info.get(at..at.saturating_add(len as usize)).filter(|tag| tag.len() >= 8) else {
            break;
        };
        match kind {
            END => break,
            COMMAND_LINE => command_line = until_zero(&tag[8..]),
            MODULE if archive.is_none() => {
                if let (Some(start), Some(end)) = (word32(tag, 8), word32(tag, 12)) {
                    archive = Some(Range::new(start as u64, end as u64));
                }
            }
            MEMORY_MAP => {
                let entry_len = word32(tag, 8).unwrap_or(0) as usize;
                if entry_len >= MAP_ENTRY && tag.len() >= 16 {
                    map = Some(MemoryMap { bytes: &tag[16..], entry_len });
                }
            }
            // The newer one has the wider pointers, so it wins over the older one.
            ACPI_NEW => rsdp = Rsdp::Copy(&tag[8..]),
            ACPI_OLD if rsdp == Rsdp::Unknown => rsdp = Rsdp::Copy(&tag[8..]),
            _ => {}
        }
        at += tag.len().next_multiple_of(8);
    }
    let map = map.ok_or(Refusal::BadInfo("the boot loader gave no memory map"))?;
    Ok(Loaded { map, archive, command_line, rsdp })
}

/// First word of the structure to which `ebx` points at the PVH entry.
pub const PVH_MAGIC: u32 = 0x336e_c578;

/// Reads the start structure of a PVH loader (Xen's `arch-x86/hvm/start_info.h`, version 1). `read` gives bytes of
/// physical memory.
pub fn parse_pvh<'a>(
    start_info: u64,
    read: impl Fn(u64, u64) -> Option<&'a [u8]>,
) -> Result<Loaded<'a>, Refusal> {
    const LEN: u64 = 56;
    const MODULE_LEN: u64 = 32;
    let missing = Refusal::BadInfo("the boot loader gave no memory map");
    let info = read(start_info, LEN).ok_or(missing)?;
    let word32 = |at| word32(info, at).ok_or(missing);
    let word64 = |at| word64(info, at).ok_or(missing);
    if word32(0)? != PVH_MAGIC || word32(4)? < 1 {
        return Err(missing);
    }
    let map = read(word64(40)?, word32(48)? as u64 * MAP_ENTRY as u64).ok_or(missing)?;
    let module = if word32(12)? > 0 { read(word64(16)?, MODULE_LEN) } else { None };
    let archive = module.and_then(|module| {
        Some(Range { start: self::word64(module, 0)?, len: self::word64(module, 8)? })
    });
    let command_line = match word64(24)? {
        0 => &[],
        // One byte more than fits, so that a longer line is noticed and not cut.
        at => until_zero(read(at, COMMAND_LINE_MAX as u64 + 1).unwrap_or(&[])),
    };
    let rsdp = match word64(32)? {
        0 => Rsdp::Unknown,
        at => Rsdp::At(at),
    };
    Ok(Loaded { map: MemoryMap { bytes: map, entry_len: MAP_ENTRY }, archive, command_line, rsdp })
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
}

/// Sorted regions of memory that do not overlap; neighbours of one kind are merged.
#[derive(Clone)]
pub struct Regions {
    list: [MemoryRegion; BootInfo::MEMORY_MAX],
    count: usize,
}

/// No kind of memory: what is painted with it disappears from the list.
const HOLE: u64 = 0;

impl Regions {
    /// No memory.
    pub const fn new() -> Regions {
        Regions { list: [MemoryRegion { base: 0, len: 0, kind: HOLE }; BootInfo::MEMORY_MAX], count: 0 }
    }

    /// The regions.
    pub fn as_slice(&self) -> &[MemoryRegion] {
        &self.list[..self.count]
    }

    /// Gives a range a kind, whatever it was before.
    pub fn paint(&mut self, range: Range, kind: u64) {
        if range.len == 0 {
            return;
        }
        // A new range in the middle of an old one makes three of it.
        while self.count > self.list.len() - 2 {
            self.drop_smallest();
        }
        let old = core::mem::replace(self, Regions::new());
        let parts = |of: Range| {
            old.as_slice().iter().map(move |region| {
                (Range { start: region.base, len: region.len }.intersection(of), region.kind)
            })
        };
        let before = parts(Range::new(0, range.start));
        let behind = parts(Range::new(range.end(), u64::MAX));
        for (part, kind) in before.chain([(range, kind)]).chain(behind) {
            self.push(part, kind);
        }
    }

    fn push(&mut self, range: Range, kind: u64) {
        if range.len == 0 || kind == HOLE {
            return;
        }
        match self.list[..self.count].last_mut() {
            Some(last) if last.kind == kind && last.base + last.len == range.start => last.len += range.len,
            _ => {
                self.list[self.count] = MemoryRegion { base: range.start, len: range.len, kind };
                self.count += 1;
            }
        }
    }

    /// Forgets the smallest region that the kernel does not depend on.
    fn drop_smallest(&mut self) {
        let expendable = |kind| matches!(kind, memory_kind::FREE | memory_kind::FIRMWARE);
        let smallest = (0..self.count)
            .filter(|&index| expendable(self.list[index].kind))
            .min_by_key(|&index| self.list[index].len)
            .expect("the kernel's own regions are few");
        self.list.copy_within(smallest + 1..self.count, smallest);
        self.count -= 1;
    }

    /// The first range of a kind inside `within` that has `len` bytes.
    pub fn find(&self, kind: u64, within: Range, len: u64) -> Option<Range> {
        self.ranges(kind).map(|range| range.intersection(within)).find(|range| range.len >= len)
    }

    /// All ranges of a kind.
    pub fn ranges(&self, kind: u64) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.as_slice()
            .iter()
            .filter(move |region| region.kind == kind)
            .map(|region| Range { start: region.base, len: region.len })
    }

    /// Bytes of a kind.
    pub fn total(&self, kind: u64) -> u64 {
        self.ranges(kind).map(|range| range.len).sum()
    }
}

impl Default for Regions {
    fn default() -> Regions {
        Regions::new()
    }
}

/// The memory of the machine, and how much of it is memory at all.
pub struct Memory {
    /// What is where.
    pub regions: Regions,
    /// Bytes of memory, whatever their use.
    pub ram_bytes: u64,
}

/// Puts the loader's map in order, and marks what holds the kernel's image and the archive.
pub fn memory(map: MemoryMap, image: Range, archive: Range) -> Memory {
    let low = Range::new(0, LOW_END);
    let high = Range::new(LOW_END, ADDRESS_END);
    let of_type = |wanted: fn(u32) -> bool| {
        map.entries().filter(move |(_, kind)| wanted(*kind)).map(|(range, _)| range)
    };
    let mut regions = Regions::new();
    for range in of_type(|kind| kind == TYPE_AVAILABLE) {
        regions.paint(range.pages_inside().intersection(low), memory_kind::FIRMWARE);
        regions.paint(range.pages_inside().intersection(high), memory_kind::FREE);
    }
    let ram_bytes = regions.total(memory_kind::FREE) + regions.total(memory_kind::FIRMWARE);
    for range in of_type(|kind| matches!(kind, TYPE_ACPI | TYPE_ACPI_STORAGE)) {
        regions.paint(range.pages_touched(), memory_kind::FIRMWARE);
    }
    for range in of_type(|kind| !matches!(kind, TYPE_AVAILABLE | TYPE_ACPI | TYPE_ACPI_STORAGE)) {
        regions.paint(range.pages_touched(), HOLE);
    }
    regions.paint(BIOS, memory_kind::FIRMWARE);
    regions.paint(archive.pages_touched(), memory_kind::ARCHIVE);
    regions.paint(image.pages_touched(), memory_kind::KERNEL);
    Memory { regions, ram_bytes }
}

/// Checks that the archive can be where the loader says.
pub fn check_archive(archive: Option<Range>, image: Range) -> Result<Range, Refusal> {
    let archive = archive.ok_or(Refusal::NoArchive)?;
    let end = archive.start.checked_add(archive.len);
    if archive.len == 0 || end.is_none_or(|end| end > ADDRESS_END) || archive.overlaps(image) {
        return Err(Refusal::BadArchive(archive));
    }
    Ok(archive)
}

/// Takes the kernel's pool from free memory: as high as possible, because low memory is what devices with narrow
/// addresses need. `wanted` is the boot option `kmem`, in bytes.
pub fn take_pool(memory: &mut Memory, wanted: Option<u64>) -> Result<Pool, Refusal> {
    let ram_bytes = memory.ram_bytes;
    // Firmware keeps a few hundred KiB for itself, so the smallest machine counts in whole MiB.
    if ram_bytes.next_multiple_of(MIB) < MEMORY_MIN {
        return Err(Refusal::LittleMemory(ram_bytes));
    }
    match wanted {
        Some(bytes) if bytes < POOL_MIN => return Err(Refusal::SmallPool(bytes)),
        Some(bytes) if bytes > ram_bytes / 2 => return Err(Refusal::LargePool(bytes, ram_bytes)),
        _ => {}
    }
    let share = (ram_bytes / POOL_SHARE / POOL_UNIT * POOL_UNIT).max(POOL_MIN);
    let len = wanted.map_or(share, |bytes| bytes.next_multiple_of(POOL_UNIT)).min(POOL_MAX);
    let start = memory
        .regions
        .ranges(memory_kind::FREE)
        .rev()
        .filter_map(|range| Some((range, range.end().checked_sub(len)? & !(POOL_UNIT - 1))))
        .find(|(range, start)| *start >= range.start)
        .ok_or(Refusal::NoRoomForPool(len))?
        .1;
    let range = Range { start, len };
    memory.regions.paint(range, memory_kind::KERNEL);
    Ok(Pool { range, used: 0 })
}

/// The pool has one entry of the top-level table.
const POOL_MAX: u64 = 1 << 39;

const _: () = assert!(POOL_MIN.is_multiple_of(POOL_UNIT) && layout::POOL.is_multiple_of(POOL_MAX));

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const IMAGE: Range = Range { start: 0x10_0000, len: 0x8_0000 };
    const ARCHIVE: Range = Range { start: 0x80_0123, len: 0x4567 };

    fn encode(entries: &[(u64, u64, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (start, len, kind) in entries {
            bytes.extend(start.to_le_bytes());
            bytes.extend(len.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    }

    fn memory_of(entries: &[(u64, u64, u32)]) -> Memory {
        let bytes = encode(entries);
        let memory = memory(MemoryMap { bytes: &bytes, entry_len: MAP_ENTRY }, IMAGE, ARCHIVE);
        check(&memory.regions);
        memory
    }

    /// The invariant of [`Regions`].
    fn check(regions: &Regions) {
        for region in regions.as_slice() {
            assert!(region.len > 0 && region.kind != HOLE);
            assert_eq!((region.base % PAGE_SIZE, region.len % PAGE_SIZE), (0, 0));
        }
        for pair in regions.as_slice().windows(2) {
            let end = pair[0].base + pair[0].len;
            assert!(end < pair[1].base || (end == pair[1].base && pair[0].kind != pair[1].kind));
        }
    }

    fn kind_at(regions: &Regions, address: u64) -> u64 {
        let holds = |region: &&MemoryRegion| region.base <= address && address - region.base < region.len;
        regions.as_slice().iter().find(holds).map_or(HOLE, |region| region.kind)
    }

    const PC: [(u64, u64, u32); 4] = [
        (0x7fe_0000, 0x2_0000, 2),
        (0x10_0000, 0x7ee_0000, 1),
        (0, 0x9_fc00, 1),
        (0x9_fc00, 0x400, 2),
    ];

    #[test]
    fn an_ordinary_pc() {
        let memory = memory_of(&PC);
        let regions = &memory.regions;
        assert_eq!(kind_at(regions, 0), memory_kind::FIRMWARE);
        assert_eq!(kind_at(regions, 0x9_f000), HOLE, "half a page of memory is none");
        assert_eq!(kind_at(regions, 0xa_0000), HOLE, "screen memory is a device");
        assert_eq!(kind_at(regions, 0xf_0000), memory_kind::FIRMWARE);
        assert_eq!(kind_at(regions, IMAGE.start), memory_kind::KERNEL);
        assert_eq!(kind_at(regions, IMAGE.end()), memory_kind::FREE);
        assert_eq!(kind_at(regions, 0x80_0000), memory_kind::ARCHIVE);
        assert_eq!(kind_at(regions, 0x80_4fff), memory_kind::ARCHIVE);
        assert_eq!(kind_at(regions, 0x80_5000), memory_kind::FREE);
        assert_eq!(kind_at(regions, 0x7fe_0000), HOLE);
        assert_eq!(memory.ram_bytes, 0x9_f000 + 0x7ee_0000);
    }

    #[test]
    fn the_restrictive_kind_wins_in_any_order() {
        let mut entries =
            [(0x100_0000, 0x100_0000, 1), (0x110_0800, 0x1000, 2), (0x120_0000, 0x800, 3), (0, 1, 7)];
        for _ in 0..entries.len() {
            entries.rotate_left(1);
            let regions = memory_of(&entries).regions;
            assert_eq!(kind_at(&regions, 0x110_0000), HOLE);
            assert_eq!(kind_at(&regions, 0x110_1000), HOLE);
            assert_eq!(kind_at(&regions, 0x110_2000), memory_kind::FREE);
            assert_eq!(kind_at(&regions, 0x120_0000), memory_kind::FIRMWARE);
        }
    }

    /// A small generator: tests print nothing and need no seed from outside.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn hostile_maps_keep_the_invariant() {
        let mut state = 1;
        for _ in 0..2000 {
            let entries: Vec<_> = (0..random(&mut state) % 200)
                .map(|_| {
                    let scale = random(&mut state) % 64;
                    let mut word = || (random(&mut state) << 33 | random(&mut state)) >> scale;
                    (word(), word(), (word() % 6) as u32)
                })
                .collect();
            let mut memory = memory_of(&entries);
            assert_eq!(kind_at(&memory.regions, IMAGE.start), memory_kind::KERNEL);
            assert_eq!(kind_at(&memory.regions, ARCHIVE.start), memory_kind::ARCHIVE);
            let before = memory.regions.clone();
            if let Ok(pool) = take_pool(&mut memory, None) {
                check(&memory.regions);
                assert_eq!(pool.range.start % POOL_UNIT, 0);
                assert_eq!(kind_at(&before, pool.range.start), memory_kind::FREE);
                assert_eq!(kind_at(&before, pool.range.end() - 1), memory_kind::FREE);
                assert!(!pool.range.overlaps(IMAGE) && !pool.range.overlaps(ARCHIVE));
            }
        }
    }

    #[test]
    fn too_many_regions_lose_the_smallest() {
        let entries: Vec<_> = (0..300).map(|i| (0x1000_0000 + i * 0x10_0000, 0x1000 * (1 + i % 37), 1)).collect();
        let regions = memory_of(&entries).regions;
        assert!(regions.as_slice().len() <= BootInfo::MEMORY_MAX);
        assert!(regions.ranges(memory_kind::FREE).all(|range| range.len > 0x1000));
    }

    #[test]
    fn the_pool_is_high_and_has_its_share() {
        let mut memory = memory_of(&PC);
        let pool = take_pool(&mut memory, None).unwrap();
        assert_eq!(pool.range, Range { start: 0x700_0000, len: 14 << 20 });
        assert_eq!(kind_at(&memory.regions, 0x700_0000), memory_kind::KERNEL);
        assert_eq!(kind_at(&memory.regions, 0x7e0_0000), memory_kind::FREE);
        let mut memory = memory_of(&PC);
        assert_eq!(take_pool(&mut memory, Some(5 << 20)).unwrap().range.len, 6 << 20);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        let refusal = |wanted| take_pool(&mut memory_of(&PC), wanted).unwrap_err();
        assert_eq!(refusal(Some(4096)), Refusal::SmallPool(4096));
        assert_eq!(refusal(Some(100 << 20)), Refusal::LargePool(100 << 20, 0x9_f000 + 0x7ee_0000));
        assert_eq!(refusal(Some(u64::MAX)), Refusal::LargePool(u64::MAX, 0x9_f000 + 0x7ee_0000));
        let small = [(0, 0x9_fc00, 1), (0x10_0000, 0xee_0000, 1)];
        let refusal = take_pool(&mut memory_of(&small), None).unwrap_err();
        assert_eq!(
            std::format!("{refusal}"),
            "this machine has 16 MiB of memory, Tern needs at least 24"
        );
        let scattered: Vec<_> = (1..40).map(|i| (i << 21, (2 << 20) - 4096, 1)).collect();
        assert_eq!(take_pool(&mut memory_of(&scattered), None), Err(Refusal::NoRoomForPool(8 << 20)));
    }

    #[test]
    fn archives_that_cannot_be() {
        let range = |start, len| Some(Range { start, len });
        assert_eq!(check_archive(None, IMAGE), Err(Refusal::NoArchive));
        for bad in [range(0x80_0000, 0), range(u64::MAX, 2), range(0x17_0000, 0x10_0000), range(1 << 51, 1 << 51 | 1)] {
            assert!(matches!(check_archive(bad, IMAGE), Err(Refusal::BadArchive(_))));
        }
        assert_eq!(check_archive(Some(ARCHIVE), IMAGE), Ok(ARCHIVE));
    }

    fn multiboot() -> Vec<u8> {
        let mut info = std::vec![0; 8];
        let mut tag = |kind: u32, body: &[u8]| {
            info.extend(kind.to_le_bytes());
            info.extend((8 + body.len() as u32).to_le_bytes());
            info.extend(body);
            info.resize(info.len().next_multiple_of(8), 0);
        };
        tag(1, b"seed=5\0");
        tag(3, &[0, 0, 0x80, 0, 0x10, 0, 0x80, 0, 0]);
        tag(3, &[0, 0, 0x90, 0, 0x10, 0, 0x90, 0, 0]);
        let mut map = std::vec![24, 0, 0, 0, 0, 0, 0, 0];
        map.extend(encode(&PC));
        tag(6, &map);
        tag(15, b"RSD PTR new");
        tag(14, b"RSD PTR old");
        tag(0, &[]);
        info
    }

    #[test]
    fn multiboot_information() {
        let info = multiboot();
        let loaded = parse_multiboot(&info).unwrap();
        assert_eq!(loaded.command_line, b"seed=5");
        assert_eq!(loaded.archive, Some(Range { start: 0x80_0000, len: 16 }));
        assert_eq!(loaded.rsdp, Rsdp::Copy(b"RSD PTR new"));
        assert_eq!(loaded.map.entries().count(), 4);
    }

    #[test]
    fn damaged_multiboot_information_never_panics() {
        let info = multiboot();
        for cut in 0..info.len() {
            if let Ok(loaded) = parse_multiboot(&info[..cut]) {
                memory(loaded.map, IMAGE, ARCHIVE);
            }
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = info.clone();
                bad[cut] = value;
                if let Ok(loaded) = parse_multiboot(&bad) {
                    check(&memory(loaded.map, IMAGE, ARCHIVE).regions);
                }
            }
        }
    }

    /// A machine whose memory is one vector at 0x1000.
    fn pvh() -> Vec<u8> {
        let mut image = Vec::new();
        for word in [PVH_MAGIC, 1, 0, 1] {
            image.extend(word.to_le_bytes());
        }
        for word in [0x1040u64, 0x1060, 0xf_0000, 0x1080, PC.len() as u64] {
            image.extend(word.to_le_bytes());
        }
        image.resize(0x40, 0);
        for word in [0x80_0000u64, 16, 0, 0] {
            image.extend(word.to_le_bytes());
        }
        image.extend(b"kmem=4M\0");
        image.resize(0x80, 0);
        image.extend(encode(&PC));
        image.resize(0x400, 0);
        image
    }

    fn reader<'a>(image: &'a [u8]) -> impl Fn(u64, u64) -> Option<&'a [u8]> {
        move |at, len| {
            let at = usize::try_from(at.checked_sub(0x1000)?).ok()?;
            image.get(at..at.checked_add(usize::try_from(len).ok()?)?)
        }
    }

    #[test]
    fn pvh_information() {
        let image = pvh();
        let loaded = parse_pvh(0x1000, reader(&image)).unwrap();
        assert_eq!(loaded.command_line, b"kmem=4M");
        assert_eq!(loaded.archive, Some(Range { start: 0x80_0000, len: 16 }));
        assert_eq!(loaded.rsdp, Rsdp::At(0xf_0000));
        assert_eq!(loaded.map.entries().count(), 4);
    }

    #[test]
    fn damaged_pvh_information_never_panics() {
        let image = pvh();
        for at in 0..0x100 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = image.clone();
                bad[at] = value;
                if let Ok(loaded) = parse_pvh(0x1000, reader(&bad)) {
                    check(&memory(loaded.map, IMAGE, ARCHIVE).regions);
                }
            }
        }
        assert!(parse_pvh(0, reader(&image)).is_err());
    }

    #[test]
    fn long_command_lines_are_refused() {
        let mut boot = Boot::new();
        assert_eq!(boot.set_command_line(&[b'x'; COMMAND_LINE_MAX + 1]), Err(Refusal::LongCommandLine));
        boot.set_command_line(&[0xff; 4]).unwrap();
        assert!(boot.command_line().is_err());
        boot.set_command_line(b"seed=1").unwrap();
        assert_eq!(boot.command_line(), Ok("seed=1"));
    }
}
