//! Page-table entries of x86-64 (Intel SDM volume 3, 4.5). Plain arithmetic; the simulated machine uses it too.
//!
//! An entry that is not present is 0: it must carry no frame address (L1 terminal fault).

use abi::Rights;

const PRESENT: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const WRITE_THROUGH: u64 = 1 << 3;
const CACHE_DISABLE: u64 = 1 << 4;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
/// Bit that the processor ignores. In an entry that leads to a last-level table: the table holds pages of a large page that was split.
const SPLIT: u64 = 1 << 9;
/// Bit that the processor ignores. In a last-level entry: the page belongs to a large page that was split.
const PART: u64 = 1 << 10;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

const fn rights_bits(rights: Rights) -> u64 {
    let write = if rights.has(Rights::W) { WRITE } else { 0 };
    let execute = if rights.has(Rights::X) { 0 } else { NO_EXECUTE };
    write | execute
}

/// Entry for a user page; 0, which is absent, if there is no right.
pub const fn leaf(address: u64, rights: Rights, uncached: bool) -> u64 {
    if rights.and(Rights::RWX).0 == 0 {
        return 0;
    }
    let cache = if uncached { CACHE_DISABLE | WRITE_THROUGH } else { 0 };
    address | PRESENT | USER | cache | rights_bits(rights)
}

/// Entry for the frame of `source` with the rights `rights`, of which there is at least one.
pub const fn derive(source: u64, rights: Rights) -> u64 {
    source & (ADDRESS | CACHE_DISABLE | WRITE_THROUGH) | PRESENT | USER | rights_bits(rights)
}

/// Masks of [`derive`], computed once for many entries.
#[derive(Clone, Copy)]
pub struct Derivation {
    keep: u64,
    set: u64,
}

impl Derivation {
    /// Masks for the rights `rights`, as far as each source has them; reading is one of them.
    pub const fn new(rights: Rights) -> Derivation {
        let write = if rights.has(Rights::W) { WRITE } else { 0 };
        let no_execute = if rights.has(Rights::X) { 0 } else { NO_EXECUTE };
        Derivation {
            keep: ADDRESS | CACHE_DISABLE | WRITE_THROUGH | NO_EXECUTE | write,
            set: PRESENT | USER | no_execute,
        }
    }

    /// Entry for the frame of `source`.
    pub const fn of(self, source: u64) -> u64 {
        source & self.keep | self.set
    }
}

/// Masks of a grant, by which an entry goes to a new owner with all its rights; computed once for many entries.
#[derive(Clone, Copy)]
pub struct Handover {
    /// Bits of an entry that are compared; those of rights that the new owner may have are not.
    limits: u64,
    limited: u64,
}

impl Handover {
    /// Masks for pages that have no right but `rights`; reading is one of them.
    pub const fn new(rights: Rights) -> Handover {
        let write = if rights.has(Rights::W) { 0 } else { WRITE };
        let no_execute = if rights.has(Rights::X) { 0 } else { NO_EXECUTE };
        Handover { limits: write | no_execute, limited: no_execute }
    }

    /// Entry of the new owner. `None` if the old owner's, which is present, has a right that may not go along.
    pub const fn of(self, entry: u64) -> Option<u64> {
        if entry & self.limits == self.limited { Some(without_status(entry)) } else { None }
    }
}

/// Masks of [`restrict`] and [`without_status`] together, for entries that are present; computed once for many entries.
#[derive(Clone, Copy)]
pub struct Removal {
    keep: u64,
    set: u64,
}

impl Removal {
    /// Masks that take these rights away; without reading nothing is left of an entry.
    pub const fn new(remove: Rights) -> Removal {
        if remove.has(Rights::R) {
            return Removal { keep: 0, set: 0 };
        }
        let write = if remove.has(Rights::W) { WRITE } else { 0 };
        let no_execute = if remove.has(Rights::X) { NO_EXECUTE } else { 0 };
        Removal { keep: !(ACCESSED | DIRTY | write), set: no_execute }
    }

    /// Entry without these rights, and with its status bits cleared.
    pub const fn of(self, entry: u64) -> u64 {
        entry & self.keep | self.set
    }
}

/// Entry for a large page, on a level above the last; see [`leaf`].
pub const fn large(address: u64, rights: Rights, uncached: bool) -> u64 {
    leaf(address, rights, uncached) | LARGE
}

/// Entry that leads to the next table of a user region; rights are decided at the leaf.
pub const fn table(address: u64) -> u64 {
    address | PRESENT | WRITE | USER
}

/// Entry that leads to a last-level table, which stands for a large page that was split and has a node.
pub const fn split_table(address: u64) -> u64 {
    table(address) | SPLIT
}

/// Entry that leads to a last-level table, once no page of the split large page is in it any more.
pub const fn joined(entry: u64) -> u64 {
    entry & !SPLIT
}

/// Turns the entry of a page into that of a large page.
pub const fn enlarged(entry: u64) -> u64 {
    entry | LARGE
}

/// Marks a last-level entry as a page of a large page that was split.
pub const fn as_part(entry: u64) -> u64 {
    entry | PART
}

/// Whether the page belongs to a large page that was split.
pub const fn is_part(entry: u64) -> bool {
    entry & PART != 0
}

/// Whether the entry is in use.
pub const fn is_present(entry: u64) -> bool {
    entry & PRESENT != 0
}

/// Whether the entry, on a level above the last, is a large page.
pub const fn is_large(entry: u64) -> bool {
    entry & LARGE != 0
}

/// Whether the entry, on a level above the last, is a large page or leads to the table of one that was split.
pub const fn is_large_or_split(entry: u64) -> bool {
    entry & (LARGE | SPLIT) != 0
}

/// Address of the frame or table that the entry leads to.
pub const fn address(entry: u64) -> u64 {
    entry & ADDRESS
}

/// The rights of a leaf. Reading comes with any other right on this processor.
pub const fn rights(entry: u64) -> Rights {
    if !is_present(entry) {
        return Rights::NONE;
    }
    let write = if entry & WRITE != 0 { Rights::W } else { Rights::NONE };
    let execute = if entry & NO_EXECUTE == 0 { Rights::X } else { Rights::NONE };
    Rights::R.or(write).or(execute)
}

/// The leaf with fewer rights; absent if reading goes too.
pub const fn restrict(entry: u64, remove: Rights) -> u64 {
    if remove.has(Rights::R) {
        return 0;
    }
    let write = if remove.has(Rights::W) { entry & !WRITE } else { entry };
    if remove.has(Rights::X) { write | NO_EXECUTE } else { write }
}

/// Status of an entry, as `flush` reports it: bit 0 accessed, bit 1 dirty.
pub const fn status(entry: u64) -> u64 {
    (entry & ACCESSED != 0) as u64 | ((entry & DIRTY != 0) as u64) << 1
}

/// The entry with its status bits cleared.
pub const fn without_status(entry: u64) -> u64 {
    entry & !(ACCESSED | DIRTY)
}

/// The entry with the status bits of another one added.
pub const fn with_status_of(entry: u64, other: u64) -> u64 {
    entry | other & (ACCESSED | DIRTY)
}

/// Entry for one of the 512 pages of the next level that a large page consists of; `last`: that level is the last.
pub const fn part(entry: u64, index: u64, part_size: u64, last: bool) -> u64 {
    (entry & !(if last { LARGE } else { 0 })) + index * part_size
}

/// Marks a page as used, as the processor's page walk would.
pub const fn touched(entry: u64, write: bool) -> u64 {
    entry | ACCESSED | if write { DIRTY } else { 0 }
}
