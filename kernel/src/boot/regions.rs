//! Physical memory as a list of regions: sorted, merged, page-aligned, each byte of one kind.
//!
//! Surprise: where ranges of a loader's map overlap, the more restrictive kind wins, whatever the order.

use super::loader::{MemoryMap, TYPE_ACPI, TYPE_ACPI_STORAGE, TYPE_AVAILABLE};
use abi::PAGE_SIZE;
use abi::boot::{BootInfo, MemoryRegion, memory_kind};

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

/// End of physical addresses: a range beyond it comes from a damaged entry.
pub(super) const ADDRESS_END: u64 = 1 << 52;

/// End of low memory, which holds real-mode firmware, its data, and the code that starts other processors.
const LOW_END: u64 = 1 << 20;

/// Memory of the BIOS, in which the ACPI root pointer of a PC is found.
const BIOS: Range = Range::new(0xe_0000, LOW_END);

/// Sorted regions of memory that do not overlap; neighbours of one kind are merged.
#[derive(Clone)]
pub struct Regions {
    list: [MemoryRegion; BootInfo::MEMORY_MAX],
    count: usize,
}

/// Kind of a range that is no memory: painted with it, the range disappears from the list.
pub(super) const HOLE: u64 = 0;

impl Regions {
    /// A list without any region.
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
        let old = core::mem::take(self);
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
    /// Regions, with the use of each.
    pub regions: Regions,
    /// Bytes of memory, whatever their use.
    pub ram_bytes: u64,
}

/// Puts the loader's map in order, and marks the memory of the kernel's image and of the archive.
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
