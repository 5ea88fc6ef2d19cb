//! Pieces of a disk that lie anywhere, numbers in them, which have their lowest byte first, and what of the superblock is looked at without the library.

use crate::Disk;
use alloc::vec;
use alloc::vec::Vec;
use vfs::Result;

/// Where the superblock is, and its bytes.
const SUPERBLOCK: u64 = 1024;
/// See [`SUPERBLOCK`].
const SUPERBLOCK_BYTES: usize = 1024;

/// The number in every superblock.
const MAGIC: u32 = 0xef53;

/// Largest block that a superblock may tell of: 64 KiB, as a power of two times 1 KiB.
const LOG_BLOCK_SIZE_MAX: u32 = 6;

/// Offsets in the superblock (Linux, `Documentation/filesystems/ext4/super.rst`).
pub mod superblock {
    pub const BLOCKS: usize = 0x04;
    pub const FIRST_DATA_BLOCK: usize = 0x14;
    pub const LOG_BLOCK_SIZE: usize = 0x18;
    pub const BLOCKS_PER_GROUP: usize = 0x20;
    pub const INODES_PER_GROUP: usize = 0x28;
    pub const MAGIC: usize = 0x38;
    pub const INODE_BYTES: usize = 0x58;
    pub const COMPATIBLE: usize = 0x5c;
    pub const INCOMPATIBLE: usize = 0x60;
    pub const READ_ONLY_COMPATIBLE: usize = 0x64;
    pub const UUID: usize = 0x68;
    pub const JOURNAL_DEVICE: usize = 0xe4;
    pub const JOURNAL_BACKUP_TYPE: usize = 0xfd;
    pub const DESCRIPTOR_BYTES: usize = 0xfe;
    pub const JOURNAL_BLOCKS: usize = 0x10c;
    /// Behind the map of the journal's blocks come its length's two words.
    pub const JOURNAL_BLOCKS_END: usize = 0x148;
    pub const BLOCKS_UPPER: usize = 0x150;
    pub const CHECKSUM_SEED: usize = 0x270;
}

/// The superblock of a disk, and bytes of a block. `None` if there is no such file system.
pub fn superblock_of(disk: &mut impl Disk) -> Result<Option<(Vec<u8>, u64)>> {
    let bytes = read(disk, SUPERBLOCK, SUPERBLOCK_BYTES)?;
    let log_size = word(&bytes, superblock::LOG_BLOCK_SIZE);
    let is_one = half(&bytes, superblock::MAGIC) == MAGIC && log_size <= LOG_BLOCK_SIZE_MAX;
    // Nothing is shifted by a number that makes no sense.
    Ok(is_one.then(|| (bytes, 1024 << log_size)))
}

/// First sector of a range of bytes, the one behind its last, and bytes in front of the range in the first.
fn sectors(disk: &impl Disk, at: u64, len: usize) -> (u64, u64, usize) {
    let sector = u64::from(disk.sector_bytes());
    let (first, end) = (at / sector, (at + len as u64).div_ceil(sector));
    (first, end, (at - first * sector) as usize)
}

/// Bytes of a disk, from one on that lies anywhere.
pub fn read(disk: &mut impl Disk, at: u64, len: usize) -> Result<Vec<u8>> {
    let (first, end, skip) = sectors(&*disk, at, len);
    let mut bytes = vec![0; (end - first) as usize * disk.sector_bytes() as usize];
    disk.read(first, &mut bytes)?;
    bytes.truncate(skip + len);
    bytes.drain(..skip);
    Ok(bytes)
}

/// Overwrites bytes of a disk, from one on that lies anywhere.
pub fn write(disk: &mut impl Disk, at: u64, from: &[u8]) -> Result<()> {
    let (first, end, skip) = sectors(&*disk, at, from.len());
    let mut bytes = vec![0; (end - first) as usize * disk.sector_bytes() as usize];
    disk.read(first, &mut bytes)?;
    bytes[skip..skip + from.len()].copy_from_slice(from);
    disk.write(first, &bytes)
}

/// A number of four bytes; 0 if they are not there.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

/// A number of two bytes; 0 if two more are not there behind them.
pub fn half(bytes: &[u8], at: usize) -> u32 {
    word(bytes, at) & 0xffff
}
