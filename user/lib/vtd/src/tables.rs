//! Tables that a unit walks, each one page. The root table has two words for each bus and leads to context tables, which have two words for each
//! function and lead to the first table of its domain. From there on it is as in a processor's tables. Chapter 9.

/// Log2 of the size of a page.
pub const PAGE_LOG2: u32 = 12;

/// Bits of an address that one level takes.
const LEVEL_BITS: u32 = 9;

/// Bit of the first word of a root or context entry: it is there.
pub const PRESENT: u64 = 1;

/// Bits of a domain's entry: the device may read, and write.
pub const READ: u64 = 1;
/// See [`READ`].
pub const WRITE: u64 = 2;

/// Place of a bus in the root table.
pub fn place_of_bus(source: u16) -> usize {
    2 * usize::from(source >> 8)
}

/// Place of a function in its bus's context table.
pub fn place_of_function(source: u16) -> usize {
    2 * usize::from(source & 0xff)
}

/// Words of a context entry.
pub fn context(first_table: u64, levels: u32, domain: u16) -> [u64; 2] {
    [first_table | PRESENT, u64::from(domain) << 8 | u64::from(levels - 2)]
}

/// Address that an entry leads to.
pub fn address(entry: u64) -> u64 {
    entry >> PAGE_LOG2 << PAGE_LOG2 & ((1 << 52) - 1)
}

/// Place of a device's address in a table of this level: 1 is the last.
pub fn place(address: u64, level: u32) -> usize {
    (address >> (PAGE_LOG2 + LEVEL_BITS * (level - 1)) & ((1 << LEVEL_BITS) - 1)) as usize
}
