//! How much of a journal is used.
//!
//! The library keeps in memory what its journal has and the disk does not have at its place yet: up to two thirds of the journal, and besides, twice a third of it
//! while a transaction is open (rsext4 0.9.2). A large disk comes from Linux with a journal of up to a gibibyte, and whoever makes a thousand directories on it would have the
//! server end for want of memory. So of a long journal only the first [`LEN_MAX`] bytes are used. Its first block says how long it is, and may say less than its
//! file has: Linux and its tools go by the number, too. It is changed only while the journal is empty, so nobody ever looks for something behind its end.

use crate::Disk;
use crate::counts::EXTENTS;
use crate::log::Sums;
use crate::raw::{half, read, superblock, superblock_of, word, write};
use alloc::vec::Vec;
use core::ops::Range;
use rsext4::checksum::jbd2_superblock_csum32;
use rsext4::endian::DiskFormat;
use rsext4::jbd2::jbdstruct::{
    JBD2_BLOCKTYPE_SUPERBLOCK_V1, JBD2_BLOCKTYPE_SUPERBLOCK_V2, JBD2_FEATURE_COMPAT_CHECKSUM,
    JBD2_FEATURE_INCOMPAT_64BIT, JBD2_FEATURE_INCOMPAT_CSUM_V2, JBD2_FEATURE_INCOMPAT_CSUM_V3,
    JBD2_FEATURE_INCOMPAT_REVOKE, JBD2_MAGIC, JournalSuperBlock,
};
use vfs::Result;

/// Most bytes of a journal that are used. A disk of less than 1 GiB has no longer one.
pub const LEN_MAX: u64 = 16 << 20;

/// The file system has a journal.
const HAS_JOURNAL: u32 = 0x4;

/// The superblock has a copy of the journal's map of blocks.
const HAS_BLOCKS: u8 = 1;

/// Features of a journal that the library knows. Others may have a say in what lies at its end.
const FEATURES: u32 = JBD2_FEATURE_INCOMPAT_REVOKE
    | JBD2_FEATURE_INCOMPAT_64BIT
    | JBD2_FEATURE_INCOMPAT_CSUM_V2
    | JBD2_FEATURE_INCOMPAT_CSUM_V3;

/// Offsets in such a node, whose first entry begins behind its header: one that leads to blocks, or, above, to a node.
mod extents {
    pub const COUNT: usize = 2;
    pub const DEPTH: usize = 6;
    pub const FIRST: usize = 12;
    pub const NODE: usize = 16;
    pub const NODE_UPPER: usize = 20;
    pub const START_UPPER: usize = 18;
    pub const START: usize = 20;
    pub const LEN: usize = 16;
    /// Bytes of an entry, and of a header and an entry.
    pub const ENTRY: usize = 12;
    /// See [`ENTRY`].
    pub const BYTES: usize = 24;
}

/// Most nodes from the root of such a tree to a leaf.
const NODES_MAX: usize = 6;

/// Nodes and pieces of a journal that are looked at, at most.
const PIECES_MAX: usize = 1 << 12;

/// A journal, as who looks at what is written to it has to know it.
#[derive(Debug)]
pub struct Journal {
    /// Its blocks on the disk, in order.
    pub blocks: Vec<Range<u64>>,
    pub sums: Sums,
    /// Numbers of blocks have 64 bits.
    pub is_wide: bool,
    pub uuid: [u8; 16],
}

impl Journal {
    /// The journal of a disk. `None` if there is none, if its place cannot be told, or if a transaction has one checksum for all of it.
    pub fn of(disk: &mut impl Disk) -> Result<Option<Journal>> {
        let (Some((superblock, block_bytes)), Some((at, _))) = (superblock_of(disk)?, place(disk)?) else {
            return Ok(None);
        };
        let bytes = read(disk, at, JournalSuperBlock::DISK_SIZE)?;
        let Ok(journal) = JournalSuperBlock::decode_checked(&bytes) else { return Ok(None) };
        let is_first = journal.s_header.h_blocktype == JBD2_BLOCKTYPE_SUPERBLOCK_V1;
        let features = if is_first { 0 } else { journal.s_feature_incompat };
        let has = |feature| features & feature != 0;
        let has_one_sum = !is_first && journal.s_feature_compat & JBD2_FEATURE_COMPAT_CHECKSUM != 0;
        if !is_known(&journal, block_bytes) || has_one_sum {
            return Ok(None);
        }
        let sums = match () {
            () if has(JBD2_FEATURE_INCOMPAT_CSUM_V3) => Sums::Long,
            () if has(JBD2_FEATURE_INCOMPAT_CSUM_V2) => Sums::Short,
            () => Sums::None,
        };
        let is_wide = has(JBD2_FEATURE_INCOMPAT_64BIT);
        let map = superblock.get(superblock::JOURNAL_BLOCKS..superblock::JOURNAL_BLOCKS_END);
        let Some(blocks) = pieces(disk, map.unwrap_or_default(), block_bytes)? else { return Ok(None) };
        Ok(Some(Journal { blocks, sums, is_wide, uuid: journal.s_uuid }))
    }
}

/// Pieces of a file with this tree of extents, by their places. `None` if it has none, has too many, or is damaged.
fn pieces(disk: &mut impl Disk, root: &[u8], block_bytes: u64) -> Result<Option<Vec<Range<u64>>>> {
    let disk_bytes = disk.sectors().saturating_mul(disk.sector_bytes().into());
    let (mut node, mut below, mut found) = (root.to_vec(), Vec::new(), Vec::new());
    let mut looked_at = 0;
    loop {
        let (count, depth) = (half(&node, extents::COUNT) as usize, half(&node, extents::DEPTH));
        let is_whole = half(&node, 0) == EXTENTS && extents::FIRST + count * extents::ENTRY <= node.len();
        looked_at += 1 + count;
        if !is_whole || looked_at > PIECES_MAX {
            return Ok(None);
        }
        for entry in node[extents::FIRST..].chunks_exact(extents::ENTRY).take(count) {
            // Offsets are those from the beginning of a node.
            let number = |upper, lower| {
                let [upper, lower] = [upper, lower].map(|at: usize| at - extents::FIRST);
                u64::from(half(entry, upper)) << 32 | u64::from(word(entry, lower))
            };
            if depth > 0 {
                below.push(number(extents::NODE_UPPER, extents::NODE));
            } else {
                let first = number(extents::START_UPPER, extents::START);
                let len = u64::from(half(entry, extents::LEN - extents::FIRST));
                found.push(first..first.saturating_add(len));
            }
        }
        let Some(block) = below.pop() else { break };
        if block >= disk_bytes / block_bytes {
            return Ok(None);
        }
        node = read(disk, block * block_bytes, block_bytes as usize)?;
    }
    found.sort_unstable_by_key(|piece| piece.start);
    Ok(Some(found))
}

/// Finding of [`shorten`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// No journal, or one that is not too long by now.
    Short,
    /// One that is too long, and has something. When that has come to its end, it can be made shorter.
    InUse,
}

/// Has a long journal be used in part, if it is empty. Errors: the disk does not read or write.
pub fn shorten(disk: &mut impl Disk) -> Result<Found> {
    let Some((at, block_bytes)) = place(disk)? else { return Ok(Found::Short) };
    let mut bytes = read(disk, at, JournalSuperBlock::DISK_SIZE)?;
    let Ok(mut journal) = JournalSuperBlock::decode_checked(&bytes) else { return Ok(Found::Short) };
    let blocks_max = (LEN_MAX / block_bytes) as u32;
    if !is_known(&journal, block_bytes) || journal.s_maxlen <= blocks_max || journal.s_first >= blocks_max {
        return Ok(Found::Short);
    }
    if journal.s_start != 0 {
        return Ok(Found::InUse);
    }
    let has_checksum = journal.s_checksum == jbd2_superblock_csum32(&journal);
    if !has_checksum && journal.s_checksum != 0 {
        // It is damaged.
        return Ok(Found::Short);
    }
    journal.s_maxlen = blocks_max;
    if has_checksum {
        journal.s_checksum = jbd2_superblock_csum32(&journal);
    }
    journal.to_disk_bytes(&mut bytes);
    // The number and the checksum lie in one sector.
    write(disk, at, &bytes)?;
    disk.flush()?;
    Ok(Found::Short)
}

/// Whether this is the first block of a journal that the library would use, with blocks of so many bytes.
fn is_known(journal: &JournalSuperBlock, block_bytes: u64) -> bool {
    let has_known_features = match journal.s_header.h_blocktype {
        JBD2_BLOCKTYPE_SUPERBLOCK_V1 => true,
        JBD2_BLOCKTYPE_SUPERBLOCK_V2 => {
            journal.s_feature_incompat & !FEATURES == 0 && journal.s_feature_ro_compat == 0
        }
        _ => false,
    };
    journal.s_header.h_magic == JBD2_MAGIC
        && u64::from(journal.s_blocksize) == block_bytes
        && has_known_features
}

/// Where a journal's first block is on a disk, and bytes of a block. `None` if there is no journal, or if its place cannot be told.
fn place(disk: &mut impl Disk) -> Result<Option<(u64, u64)>> {
    let Some((bytes, block_bytes)) = superblock_of(disk)? else { return Ok(None) };
    let has_journal = word(&bytes, superblock::COMPATIBLE) & HAS_JOURNAL != 0
        && word(&bytes, superblock::JOURNAL_DEVICE) == 0
        && bytes.get(superblock::JOURNAL_BACKUP_TYPE) == Some(&HAS_BLOCKS);
    if !has_journal {
        return Ok(None);
    }
    let map = bytes[superblock::JOURNAL_BLOCKS..].to_vec();
    Ok(first_block(disk, map, block_bytes)?.map(|block| (block * block_bytes, block_bytes)))
}

/// The first block of a file with this map of its blocks. `None` if it cannot be told, or is not on the disk.
fn first_block(disk: &mut impl Disk, mut map: Vec<u8>, block_bytes: u64) -> Result<Option<u64>> {
    let disk_bytes = disk.sectors().saturating_mul(disk.sector_bytes().into());
    let on_disk = |block: u64| (block > 0 && block < disk_bytes / block_bytes).then_some(block);
    if half(&map, 0) != EXTENTS {
        return Ok(on_disk(word(&map, 0).into()));
    }
    for _ in 0..NODES_MAX {
        let is_node = half(&map, 0) == EXTENTS && half(&map, extents::COUNT) > 0;
        if !is_node || word(&map, extents::FIRST) != 0 {
            break;
        }
        let number = |upper, lower| u64::from(half(&map, upper)) << 32 | u64::from(word(&map, lower));
        if half(&map, extents::DEPTH) == 0 {
            return Ok(on_disk(number(extents::START_UPPER, extents::START)));
        }
        let Some(node) = on_disk(number(extents::NODE_UPPER, extents::NODE)) else { break };
        map = read(disk, node * block_bytes, extents::BYTES)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A disk of sectors of 4 KiB, so that a journal's first block is a part of one.
    struct Bytes(Vec<u8>);

    const SECTOR: usize = 4096;

    impl Disk for Bytes {
        fn sector_bytes(&self) -> u32 {
            SECTOR as u32
        }

        fn sectors(&self) -> u64 {
            (self.0.len() / SECTOR) as u64
        }

        fn is_read_only(&self) -> bool {
            false
        }

        fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
            let at = first as usize * SECTOR;
            to.copy_from_slice(self.0.get(at..at + to.len()).ok_or(vfs::Error::Io)?);
            Ok(())
        }

        fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
            let at = first as usize * SECTOR;
            self.0.get_mut(at..at + from.len()).ok_or(vfs::Error::Io)?.copy_from_slice(from);
            Ok(())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// Where the journal's first block is, of 1 KiB.
    const AT: usize = 9 << 10;

    /// A disk with blocks of 1 KiB, and a journal of so many that begins at [`AT`].
    fn disk(blocks: u32, has_checksum: bool) -> Bytes {
        let mut bytes = vec![0x55; 16 << 10];
        let superblock = &mut bytes[1024..2048];
        superblock.fill(0);
        superblock[superblock::MAGIC..][..2].copy_from_slice(&0xef53u16.to_le_bytes());
        superblock[superblock::COMPATIBLE] = HAS_JOURNAL as u8;
        superblock[superblock::JOURNAL_BACKUP_TYPE] = HAS_BLOCKS;
        let map = &mut superblock[superblock::JOURNAL_BLOCKS..];
        map[..2].copy_from_slice(&(EXTENTS as u16).to_le_bytes());
        map[extents::COUNT] = 1;
        map[extents::START] = (AT >> 10) as u8;
        let mut journal = JournalSuperBlock { s_blocksize: 1024, s_maxlen: blocks, ..Default::default() };
        journal.s_checksum = if has_checksum { jbd2_superblock_csum32(&journal) } else { 0 };
        journal.to_disk_bytes(&mut bytes[AT..]);
        Bytes(bytes)
    }

    /// Such a disk whose tree of extents has a node more.
    fn with_node(mut disk: Bytes) -> Bytes {
        let map = 1024 + superblock::JOURNAL_BLOCKS;
        let node: Vec<u8> = disk.0[map..map + extents::BYTES].to_vec();
        disk.0[8 << 10..][..node.len()].copy_from_slice(&node);
        disk.0[map + extents::DEPTH] = 1;
        disk.0[map + extents::NODE..map + extents::BYTES].fill(0);
        disk.0[map + extents::NODE] = 8;
        disk
    }

    fn journal_of(disk: &Bytes) -> JournalSuperBlock {
        JournalSuperBlock::from_disk_bytes(&disk.0[AT..AT + 1024])
    }

    const MOST: u32 = (LEN_MAX / 1024) as u32;

    #[test]
    fn a_long_journal_is_made_shorter_and_nothing_else() {
        for (blocks, has_checksum) in [(MOST + 1, true), (MOST + 1, false), (u32::MAX, true)] {
            let mut long = disk(blocks, has_checksum);
            assert_eq!(shorten(&mut long), Ok(Found::Short));
            assert!(long.0 == disk(MOST, has_checksum).0, "{blocks} blocks, {has_checksum}");
            let mut long = with_node(disk(blocks, has_checksum));
            assert_eq!(shorten(&mut long), Ok(Found::Short));
            assert!(
                long.0 == with_node(disk(MOST, has_checksum)).0,
                "{blocks} blocks, {has_checksum}, a node"
            );
        }
        for blocks in [2, 1024, MOST] {
            let mut short = disk(blocks, true);
            assert_eq!(shorten(&mut short), Ok(Found::Short));
            assert!(short.0 == disk(blocks, true).0, "{blocks} blocks");
        }
    }

    #[test]
    fn a_journal_that_has_something_stays() {
        let mut long = disk(MOST + 1, false);
        long.0[AT + 0x1f] = 7;
        assert_eq!(journal_of(&long).s_start, 7);
        let before = long.0.clone();
        assert_eq!(shorten(&mut long), Ok(Found::InUse));
        assert!(long.0 == before);
    }

    /// Whatever a disk says, nothing is written but to what is a journal's first block, and there is no panic.
    #[test]
    fn nonsense_is_left_alone() {
        let whole = disk(MOST + 1, true).0;
        for at in (1024..2048).chain(AT..AT + 0x110) {
            for value in [0x00, 0x01, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                let mut disk = Bytes(changed.clone());
                let _ = shorten(&mut disk);
                let touched = (0..whole.len()).filter(|&place| disk.0[place] != changed[place]);
                let is_there = |place: usize| {
                    (AT + 0x10..AT + 0x14).contains(&place) || (AT + 0xfc..AT + 0x100).contains(&place)
                };
                assert!(
                    touched.clone().all(is_there),
                    "byte {at} as {value}: {:?}",
                    touched.collect::<Vec<_>>()
                );
            }
        }
        assert_eq!(shorten(&mut Bytes(vec![0; 0])), Err(vfs::Error::Io));
    }
}
