//! Ends of inode bitmaps: bits for inodes that a group does not have are ones, so that nobody takes them for free.
//!
//! The library makes the bitmap of a group when the first inode of it is used, and leaves these bits zero (rsext4 0.9.2); `e2fsck` calls that a mistake.
//! No checksum covers them. So they are set here, when such a bitmap goes to its place on the disk. One that still lies in the journal when power is
//! lost has them zero, and `e2fsck -p` sets them without a word.

use crate::Disk;
use crate::raw::{half, read, superblock, superblock_of, word};
use alloc::vec::Vec;
use vfs::Result;

/// Descriptors lie elsewhere, in groups of their own.
const META_BG: u32 = 0x10;
/// Numbers of blocks have 64 bits.
const IS_64_BITS: u32 = 0x80;

/// Offsets in a descriptor, and the bit of a group whose inodes were never used.
mod descriptor {
    pub const INODE_BITMAP: usize = 0x04;
    pub const FLAGS: usize = 0x12;
    pub const INODE_BITMAP_UPPER: usize = 0x24;
    pub const BYTES: usize = 32;
    pub const INODES_UNUSED: u32 = 1;
}

/// Largest group descriptors together that are looked at, in bytes.
const DESCRIPTORS_MAX: u64 = 4 << 20;

/// Bitmaps whose ends are to be set.
#[derive(Debug, Default)]
pub struct Padding {
    block_bytes: u64,
    /// Bytes of a bitmap that have inodes.
    inode_bytes: usize,
    /// Blocks of bitmaps that are still to be made, in order.
    bitmaps: Vec<u64>,
}

impl Padding {
    /// Looks at a disk which bitmaps are still to be made. None where it is no such file system, or one whose descriptors lie elsewhere: whether it is sound, the
    /// library says.
    pub fn of(disk: &mut impl Disk) -> Padding {
        Padding::found(disk).ok().flatten().unwrap_or_default()
    }

    fn found(disk: &mut impl Disk) -> Result<Option<Padding>> {
        let Some((bytes, block_bytes)) = superblock_of(disk)? else { return Ok(None) };
        let features = word(&bytes, superblock::INCOMPATIBLE);
        let (per_group, inodes) =
            (word(&bytes, superblock::BLOCKS_PER_GROUP), word(&bytes, superblock::INODES_PER_GROUP));
        if features & META_BG != 0 || per_group == 0 || inodes % 8 != 0 {
            return Ok(None);
        }
        let is_wide = features & IS_64_BITS != 0;
        let upper = if is_wide { u64::from(word(&bytes, superblock::BLOCKS_UPPER)) << 32 } else { 0 };
        let first = u64::from(word(&bytes, superblock::FIRST_DATA_BLOCK));
        let blocks = (upper | u64::from(word(&bytes, superblock::BLOCKS))).saturating_sub(first);
        let each =
            if is_wide { half(&bytes, superblock::DESCRIPTOR_BYTES) as usize } else { descriptor::BYTES };
        let len = blocks.div_ceil(per_group.into()).saturating_mul(each as u64);
        let disk_bytes = disk.sectors().saturating_mul(disk.sector_bytes().into());
        let is_there = blocks.checked_add(first).and_then(|end| end.checked_mul(block_bytes));
        let is_sound =
            is_there.is_some_and(|end| end <= disk_bytes) && first == u64::from(block_bytes == 1024);
        if !is_sound || each < descriptor::BYTES || len > DESCRIPTORS_MAX {
            return Ok(None);
        }
        let inode_bytes = inodes as usize / 8;
        let descriptors = read(disk, (first + 1) * block_bytes, len as usize)?;
        let unused = descriptors
            .chunks_exact(each)
            .filter(|group| half(group, descriptor::FLAGS) & descriptor::INODES_UNUSED != 0);
        let mut bitmaps: Vec<u64> = unused
            .map(|group| {
                let upper =
                    if each > descriptor::BYTES { word(group, descriptor::INODE_BITMAP_UPPER) } else { 0 };
                u64::from(upper) << 32 | u64::from(word(group, descriptor::INODE_BITMAP))
            })
            // Those of a damaged file system may be anywhere.
            .filter(|&bitmap| bitmap < first + blocks)
            .collect();
        bitmaps.sort_unstable();
        Ok(((inode_bytes as u64) < block_bytes).then_some(Padding { block_bytes, inode_bytes, bitmaps }))
    }

    /// Sets the ends of bitmaps among bytes that are to be written to a place of the disk. None if there are none.
    pub fn set(&self, at: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let end = at + bytes.len() as u64;
        let block_bytes = self.block_bytes;
        let first = self.bitmaps.partition_point(|block| (block + 1).saturating_mul(block_bytes) <= at);
        let mut set = None;
        for block in self.bitmaps[first..].iter().take_while(|block| *block * block_bytes < end) {
            let (from, to) = (block * block_bytes + self.inode_bytes as u64, (block + 1) * block_bytes);
            let range = (from.max(at) - at) as usize..(to.min(end).max(at) - at) as usize;
            if let Some(padding) = set.get_or_insert_with(|| bytes.to_vec()).get_mut(range) {
                padding.fill(0xff);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn ends_of_bitmaps_are_set_and_nothing_else() {
        let padding = Padding { block_bytes: 1024, inode_bytes: 100, bitmaps: vec![3, 5] };
        for (at, len) in [(0, 3 << 10), (4 << 10, 1 << 10), (6 << 10, 1 << 10)] {
            assert_eq!(padding.set(at, &vec![7; len]), None, "{at}");
        }
        for (at, len) in
            [(3 << 10, 1 << 10), (0, 8 << 10), (3 << 10, 512), ((3 << 10) + 512, 512), (5 << 10, 2048)]
        {
            let set = padding.set(at, &vec![7; len]).expect("there is a bitmap");
            for (place, byte) in (at as usize..).zip(set) {
                let is_end = [3, 5].contains(&(place / 1024)) && place % 1024 >= 100;
                assert_eq!(byte, if is_end { 0xff } else { 7 }, "{place} of a write to {at}");
            }
        }
    }
}
