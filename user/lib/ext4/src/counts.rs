//! Counts of blocks that directories have.
//!
//! An inode says how many blocks it has, those of its tree of extents included. When a directory with an index gets a block, the library puts the count of before and that
//! block over the one with the tree's new blocks (rsext4 0.9.2). So the count is corrected here, in each block of inodes that is written: to the [journal](crate::log), and to
//! its place. It is found from the tree's nodes and the directory's length, so it does not matter how often it was wrong before, nor who was wrong.
//!
//! Nothing else is touched: a count that no forgotten block of a tree explains stays, and so does an inode whose checksum is another one already.

use crate::Disk;
use crate::geometry::Geometry;
use crate::raw::{half, read, word};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rsext4::crc32c::crc32c_append;

/// Bytes in which blocks of an inode are counted.
const SECTOR: u64 = 512;

/// The number in every node of a tree of extents.
pub const EXTENTS: u32 = 0xf30a;

/// Bytes of a node's header, and of an entry.
const ENTRY: usize = 12;

/// Blocks of a tree that are looked at, at most: as many as the directory of 10⁷ files has.
const TREE_MAX: usize = 1 << 14;

/// Offsets in an inode (Linux, `Documentation/filesystems/ext4/inodes.rst`).
mod inode {
    pub const MODE: usize = 0x00;
    pub const LEN: usize = 0x04;
    pub const BLOCKS: usize = 0x1c;
    pub const FLAGS: usize = 0x20;
    pub const MAP: usize = 0x28;
    pub const MAP_END: usize = 0x64;
    pub const GENERATION: usize = 0x64;
    pub const ATTRIBUTES: usize = 0x68;
    pub const LEN_UPPER: usize = 0x6c;
    pub const BLOCKS_UPPER: usize = 0x74;
    pub const ATTRIBUTES_UPPER: usize = 0x76;
    pub const CHECKSUM: usize = 0x7c;
    pub const EXTRA: usize = 0x80;
    pub const CHECKSUM_UPPER: usize = 0x82;

    /// Kind among the bits of the mode, and that of directories.
    pub const KINDS: u32 = 0xf000;
    /// See [`KINDS`].
    pub const DIRECTORY: u32 = 0x4000;
    /// Flags: it has a tree of extents; its blocks are counted as such and not in sectors.
    pub const IN_EXTENTS: u32 = 0x8_0000;
    /// See [`IN_EXTENTS`].
    pub const IN_BLOCKS: u32 = 0x4_0000;
}

/// Corrects counts.
#[derive(Debug)]
pub struct Counts {
    geometry: Geometry,
    /// First blocks of the tables of inodes, in order, with the number of their groups.
    tables: Vec<(u64, u32)>,
    /// Blocks of one table.
    table_blocks: u64,
    /// Nodes of trees that lead to other nodes, with the blocks of these: as far as they are in the journal and not yet at their places.
    nodes: BTreeMap<u64, Vec<u64>>,
}

impl Counts {
    pub fn of(geometry: &Geometry) -> Counts {
        let bytes = u64::from(geometry.inodes_per_group) * geometry.inode_bytes as u64;
        let mut tables: Vec<_> = geometry.groups.iter().map(|group| group.inode_table).zip(0..).collect();
        tables.sort_unstable();
        Counts {
            geometry: Geometry { groups: Vec::new(), ..geometry.clone() },
            tables,
            table_blocks: bytes.div_ceil(geometry.block_bytes),
            nodes: BTreeMap::new(),
        }
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.geometry.block_bytes as usize
    }

    /// A block was written to the journal.
    pub fn journalled(&mut self, block: u64, bytes: &[u8]) {
        match children(bytes) {
            Some((depth, below)) if depth > 0 => drop(self.nodes.insert(block, below)),
            _ => drop(self.nodes.remove(&block)),
        }
    }

    /// Blocks were written to their places.
    pub fn written(&mut self, block: u64) {
        if !self.nodes.is_empty() {
            self.nodes.remove(&block);
        }
    }

    /// Whether a block is one of inodes, among which there are directories with a tree.
    pub fn concerns(&self, block: u64, bytes: &[u8]) -> bool {
        self.first_inode(block).is_some() && self.records(bytes).any(has_tree)
    }

    fn records<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        bytes.chunks_exact(self.geometry.inode_bytes)
    }

    /// Number of the first inode in a block, if there are inodes in it.
    fn first_inode(&self, block: u64) -> Option<u32> {
        let behind = self.tables.partition_point(|&(first, _)| first <= block);
        let &(first, group) = self.tables.get(behind.checked_sub(1)?)?;
        let each = self.geometry.block_bytes / self.geometry.inode_bytes as u64;
        let before = u32::try_from((block - first).checked_mul(each)?).ok()?;
        let in_table = block - first < self.table_blocks && before < self.geometry.inodes_per_group;
        in_table.then_some(())?;
        group.checked_mul(self.geometry.inodes_per_group)?.checked_add(before)?.checked_add(1)
    }

    /// Corrects the counts in a block. Whether there was one to correct.
    pub fn correct(&self, disk: &mut impl Disk, block: u64, bytes: &mut [u8]) -> bool {
        let Some(first) = self.first_inode(block) else { return false };
        let mut is_changed = false;
        for (number, record) in (first..).zip(bytes.chunks_exact_mut(self.geometry.inode_bytes)) {
            if has_tree(record)
                && self.checksum(number, record).is_none_or(|sum| sum == recorded_sum(record))
                && let Some(count) = self.count(disk, record)
            {
                put(record, inode::BLOCKS, &(count as u32).to_le_bytes());
                put(record, inode::BLOCKS_UPPER, &((count >> 32) as u16).to_le_bytes());
                if let Some(sum) = self.checksum(number, record) {
                    put_sum(record, sum);
                }
                is_changed = true;
            }
        }
        is_changed
    }

    /// Sectors of a directory, if it says that it has fewer, and the blocks of its tree may be what is missing.
    fn count(&self, disk: &mut impl Disk, record: &[u8]) -> Option<u64> {
        let block_bytes = self.geometry.block_bytes;
        let joined = |lower, upper| u64::from(upper) << 32 | u64::from(lower);
        let len = joined(word(record, inode::LEN), word(record, inode::LEN_UPPER));
        let attributes = joined(word(record, inode::ATTRIBUTES), half(record, inode::ATTRIBUTES_UPPER));
        let found = joined(word(record, inode::BLOCKS), half(record, inode::BLOCKS_UPPER));
        let own = len.div_ceil(block_bytes).checked_add(u64::from(attributes > 0))?;
        let least = own.checked_mul(block_bytes / SECTOR)?;
        if found < least || found >> 48 > 0 {
            return None;
        }
        let tree = self.tree_blocks(disk, record.get(inode::MAP..inode::MAP_END)?)?;
        let all = least.checked_add(tree * (block_bytes / SECTOR))?;
        (found < all && all >> 32 == 0).then_some(all)
    }

    /// Blocks of a tree below a node. `None` if it is damaged, does not read, or has too many.
    fn tree_blocks(&self, disk: &mut impl Disk, root: &[u8]) -> Option<u64> {
        let (mut depth, mut level) = children(root)?;
        let mut count = level.len();
        while depth > 1 && count <= TREE_MAX {
            depth -= 1;
            let mut next = Vec::new();
            for block in level {
                match self.nodes.get(&block) {
                    Some(below) => next.extend(below),
                    None => {
                        let at = block.checked_mul(self.geometry.block_bytes)?;
                        at.checked_add(self.geometry.block_bytes)?;
                        let (found, below) = children(&read(disk, at, self.block_bytes()).ok()?)?;
                        (found == depth).then_some(())?;
                        next.extend(below);
                    }
                }
            }
            count += next.len();
            level = next;
        }
        (count <= TREE_MAX).then_some(count as u64)
    }

    /// Checksum of an inode, if there are checksums.
    fn checksum(&self, number: u32, record: &[u8]) -> Option<u32> {
        let seed = crc32c_append(self.geometry.seed?, &number.to_le_bytes());
        let generation = record.get(inode::GENERATION..inode::GENERATION + 4)?;
        let mut record = record.to_vec();
        put_sum(&mut record, 0);
        let sum = crc32c_append(crc32c_append(seed, generation), &record);
        Some(if has_upper(&record) { sum } else { sum & 0xffff })
    }
}

/// Whether an inode is a directory with a tree that has a block at least.
fn has_tree(record: &[u8]) -> bool {
    let flags = word(record, inode::FLAGS);
    half(record, inode::MODE) & inode::KINDS == inode::DIRECTORY
        && flags & (inode::IN_EXTENTS | inode::IN_BLOCKS) == inode::IN_EXTENTS
        && record.get(inode::MAP..).is_some_and(|map| half(map, 0) == EXTENTS && half(map, 6) > 0)
}

/// Depth of a node, and the blocks of the nodes to which it leads. `None` if it is no node.
fn children(node: &[u8]) -> Option<(u32, Vec<u64>)> {
    let (count, count_max, depth) = (half(node, 2) as usize, half(node, 4) as usize, half(node, 6));
    let has_room = count <= count_max && (count + 1) * ENTRY <= node.len();
    if half(node, 0) != EXTENTS || !has_room || depth > 5 {
        return None;
    }
    // Entries of a leaf lead to no nodes.
    let entries = node[ENTRY..].chunks_exact(ENTRY).take(if depth > 0 { count } else { 0 });
    Some((depth, entries.map(|entry| u64::from(half(entry, 8)) << 32 | u64::from(word(entry, 4))).collect()))
}

/// Whether an inode has the upper half of its checksum.
fn has_upper(record: &[u8]) -> bool {
    record.len() > inode::EXTRA && half(record, inode::EXTRA) >= 4
}

fn recorded_sum(record: &[u8]) -> u32 {
    let upper = if has_upper(record) { half(record, inode::CHECKSUM_UPPER) } else { 0 };
    upper << 16 | half(record, inode::CHECKSUM)
}

fn put_sum(record: &mut [u8], sum: u32) {
    put(record, inode::CHECKSUM, &(sum as u16).to_le_bytes());
    if has_upper(record) {
        put(record, inode::CHECKSUM_UPPER, &((sum >> 16) as u16).to_le_bytes());
    }
}

fn put(bytes: &mut [u8], at: usize, from: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + from.len()) {
        place.copy_from_slice(from);
    }
}
