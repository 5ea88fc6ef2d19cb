//! Registers of a unit: where they are, and what their bits say. Chapter 11.

use crate::REGISTERS_BYTES;

/// Version.
pub const VERSION: usize = 0x00;
/// Abilities of the unit, in 64 bits.
pub const CAPABILITY: usize = 0x08;
/// More of them, in 64 bits.
pub const EXTENDED: usize = 0x10;
/// Commands to the whole unit; what they have led to is in the status.
pub const COMMAND: usize = 0x18;
/// See [`COMMAND`].
pub const STATUS: usize = 0x1c;
/// Physical address of the root table, in 64 bits.
pub const ROOT: usize = 0x20;
/// Commands about what is kept of context tables, in 64 bits.
pub const CONTEXT: usize = 0x28;
/// Whether there are faults.
pub const FAULTS: usize = 0x34;
/// Protected memory.
pub const PROTECTED: usize = 0x64;

/// Bits of the command, and of the status.
pub mod command {
    /// Translates.
    pub const TRANSLATE: u32 = 1 << 31;
    /// Takes the root table.
    pub const TAKE_ROOT: u32 = 1 << 30;
    /// Empties its buffer of what was written.
    pub const EMPTY_BUFFER: u32 = 1 << 27;
    /// Takes commands from a queue in memory.
    pub const QUEUE: u32 = 1 << 26;
    /// Bits of the status that stay as they are if the command has them; the others are done once.
    pub const LASTING: u32 = 0x96ff_ffff;
}

/// Bits of the upper half of [`CONTEXT`].
pub mod context {
    /// Does it; 0 when that is done.
    pub const FORGET: u32 = 1 << 31;
    /// Everything.
    pub const ALL: u32 = 1 << 29;
    /// Entries of one domain, whose number is in the lower half.
    pub const DOMAIN: u32 = 2 << 29;
    /// Outcome; 0 if nothing was done.
    pub const DONE: u32 = 3 << 27;
}

/// Bits of the upper half of the register about kept translations, and where that half is behind the place that [`Limits::translations`] says.
pub mod translations {
    /// Offset.
    pub const UPPER: usize = 12;
    /// Does it; 0 when that is done.
    pub const FORGET: u32 = 1 << 31;
    /// Everything.
    pub const ALL: u32 = 1 << 28;
    /// Translations of the domain with the number in the lowest bits.
    pub const DOMAIN: u32 = 2 << 28;
    /// Outcome; 0 if nothing was done.
    pub const DONE: u32 = 3 << 25;
    /// Waits for reads, and for writes, that are under way.
    pub const DRAIN: u32 = 3 << 16;
}

/// Bits of [`FAULTS`].
pub mod faults {
    /// There were more than records: a one clears it.
    pub const LOST: u32 = 1 << 0;
    /// A record has one.
    pub const PENDING: u32 = 1 << 1;
}

/// Bits of the upper quarter of a record.
pub mod record {
    /// It has a fault: a one clears it.
    pub const FAULT: u32 = 1 << 31;
    /// The device wanted to read.
    pub const IS_READ: u32 = 1 << 30;
    /// Bytes of one.
    pub const BYTES: usize = 16;
}

/// Memory that no device reaches, whatever tables say: it is on, and the unit says so.
pub const PROTECTED_ON: u32 = 1 << 31;
/// See [`PROTECTED_ON`].
pub const PROTECTED_STATUS: u32 = 1;

/// Abilities of a unit, and where its further registers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Levels of a domain's tables: 3 or 4.
    pub levels: u32,
    /// Bits of a device's addresses.
    pub width: u32,
    /// How many numbers of domains there are.
    pub domains: u32,
    /// Whether it keeps that something is not there.
    pub keeps_absence: bool,
    /// Whether what is written to memory must be brought out of its buffer.
    pub has_buffer: bool,
    /// Whether it may have protected memory.
    pub protects: bool,
    /// Offset of the registers about kept translations.
    pub translations: usize,
    /// Offset of the first record of a fault.
    pub first_record: usize,
    /// How many there are.
    pub records: usize,
}

impl Limits {
    /// From the two registers. `None` if a unit like this cannot be used.
    pub fn of(capability: u64, extended: u64) -> Option<Limits> {
        let bit = |number: u32| capability >> number & 1 != 0;
        let bits = |number: u32, mask: u64| (capability >> number & mask) as u32;
        // The fewest levels, since each is a page for each domain.
        let levels = (3..=4).find(|levels| bit(8 + levels - 2))?;
        let limits = Limits {
            levels,
            width: (bits(16, 63) + 1).min(12 + 9 * levels),
            domains: 1 << (4 + 2 * bits(0, 7)),
            keeps_absence: bit(7),
            has_buffer: bit(4),
            protects: bit(5) || bit(6),
            translations: 16 * (extended >> 8 & 0x3ff) as usize,
            first_record: 16 * bits(24, 0x3ff) as usize,
            records: bits(40, 0xff) as usize + 1,
        };
        let records_end = limits.first_record + record::BYTES * limits.records;
        let translations_end = limits.translations + translations::UPPER + 4;
        let is_inside = records_end <= REGISTERS_BYTES && translations_end <= REGISTERS_BYTES;
        (is_inside && limits.width > 12).then_some(limits)
    }
}
