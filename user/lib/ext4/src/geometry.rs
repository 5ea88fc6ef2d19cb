//! Where a file system has bitmaps and tables of inodes, as its superblock and its groups' descriptors say. Looked at once, without the library.

use crate::Disk;
use crate::raw::{half, read, superblock, superblock_of, word};
use alloc::vec::Vec;
use vfs::Result;

/// Descriptors lie elsewhere, in groups of their own.
const META_BG: u32 = 0x10;
/// Numbers of blocks have 64 bits.
const IS_64_BITS: u32 = 0x80;
/// The superblock has the number with which checksums begin.
const HAS_SEED: u32 = 0x2000;
/// Metadata have checksums.
const HAS_CHECKSUMS: u32 = 0x400;

/// Largest group descriptors together that are looked at, in bytes.
const DESCRIPTORS_MAX: u64 = 4 << 20;

/// Fewest bytes of an inode, and of a descriptor.
const INODE_BYTES_MIN: usize = 128;
/// See [`INODE_BYTES_MIN`].
const DESCRIPTOR_BYTES_MIN: usize = 32;

/// Offsets in a descriptor.
mod descriptor {
    pub const INODE_BITMAP: usize = 0x04;
    pub const INODE_TABLE: usize = 0x08;
    pub const FLAGS: usize = 0x12;
    pub const INODE_BITMAP_UPPER: usize = 0x24;
    pub const INODE_TABLE_UPPER: usize = 0x28;
    /// The flag of a group whose inodes were never used.
    pub const INODES_UNUSED: u32 = 1;
}

/// A group of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Block of its bitmap of inodes.
    pub inode_bitmap: u64,
    /// First block of its table of inodes.
    pub inode_table: u64,
    /// None of its inodes was ever used, so there is no bitmap yet.
    pub is_unused: bool,
}

/// Sizes and places of a file system.
#[derive(Clone, Debug)]
pub struct Geometry {
    pub block_bytes: u64,
    pub inode_bytes: usize,
    pub inodes_per_group: u32,
    pub groups: Vec<Group>,
    /// The number with which checksums begin, if there are checksums.
    pub seed: Option<u32>,
}

impl Geometry {
    /// Geometry of what is on a disk. `None` where it is no such file system, or one whose descriptors lie elsewhere. Whether it is sound, the library says.
    pub fn of(disk: &mut impl Disk) -> Result<Option<Geometry>> {
        let Some((bytes, block_bytes)) = superblock_of(disk)? else { return Ok(None) };
        let features = word(&bytes, superblock::INCOMPATIBLE);
        let (per_group, inodes) =
            (word(&bytes, superblock::BLOCKS_PER_GROUP), word(&bytes, superblock::INODES_PER_GROUP));
        if features & META_BG != 0 || per_group == 0 || inodes % 8 != 0 || inodes == 0 {
            return Ok(None);
        }
        let is_wide = features & IS_64_BITS != 0;
        let upper = if is_wide { u64::from(word(&bytes, superblock::BLOCKS_UPPER)) << 32 } else { 0 };
        let first = u64::from(word(&bytes, superblock::FIRST_DATA_BLOCK));
        let blocks = (upper | u64::from(word(&bytes, superblock::BLOCKS))).saturating_sub(first);
        let each =
            if is_wide { half(&bytes, superblock::DESCRIPTOR_BYTES) as usize } else { DESCRIPTOR_BYTES_MIN };
        let len = blocks.div_ceil(per_group.into()).saturating_mul(each as u64);
        let disk_bytes = disk.sectors().saturating_mul(disk.sector_bytes().into());
        let is_there = blocks.checked_add(first).and_then(|end| end.checked_mul(block_bytes));
        let is_sound =
            is_there.is_some_and(|end| end <= disk_bytes) && first == u64::from(block_bytes == 1024);
        if !is_sound || each < DESCRIPTOR_BYTES_MIN || len > DESCRIPTORS_MAX {
            return Ok(None);
        }
        let descriptors = read(disk, (first + 1) * block_bytes, len as usize)?;
        let groups = descriptors.chunks_exact(each).map(group).collect();
        let inode_bytes = half(&bytes, superblock::INODE_BYTES) as usize;
        let seed = (word(&bytes, superblock::READ_ONLY_COMPATIBLE) & HAS_CHECKSUMS != 0).then(|| {
            if features & HAS_SEED != 0 {
                return word(&bytes, superblock::CHECKSUM_SEED);
            }
            let uuid = bytes.get(superblock::UUID..superblock::UUID + 16).unwrap_or_default();
            rsext4::crc32c::crc32c_append(u32::MAX, uuid)
        });
        let inode_bytes = inode_bytes.max(INODE_BYTES_MIN);
        Ok(Some(Geometry { block_bytes, inode_bytes, inodes_per_group: inodes, groups, seed }))
    }
}

fn group(bytes: &[u8]) -> Group {
    let block = |lower, upper| {
        let is_wide = bytes.len() > DESCRIPTOR_BYTES_MIN;
        let upper = if is_wide { word(bytes, upper) } else { 0 };
        u64::from(upper) << 32 | u64::from(word(bytes, lower))
    };
    Group {
        inode_bitmap: block(descriptor::INODE_BITMAP, descriptor::INODE_BITMAP_UPPER),
        inode_table: block(descriptor::INODE_TABLE, descriptor::INODE_TABLE_UPPER),
        is_unused: half(bytes, descriptor::FLAGS) & descriptor::INODES_UNUSED != 0,
    }
}
