//! Checksums of an ext4 image that somebody has changed: they are made anew, so that the change is not noticed by them.
//!
//! All that is looked at is as the image now says, which may be nonsense. Whatever does not lie in the image stays as it is.

use rsext4::checksum::{
    ext4_block_bitmap_csum32, ext4_group_desc_csum16, ext4_inode_bitmap_csum32, ext4_metadata_csum32,
    ext4_superblock_csum32,
};
use rsext4::crc32c::{ext4_crc32c_seed_from_superblock, ext4_superblock_has_metadata_csum};
use rsext4::endian::DiskFormat;
use rsext4::superblock::Ext4Superblock;

/// Where the superblock is, and its bytes.
const SUPERBLOCK: usize = 1024;
/// See [`SUPERBLOCK`].
const SUPERBLOCK_BYTES: usize = 1024;

/// The first number in every node of a tree of extents, and nodes of one that are looked at, at most.
const EXTENTS: usize = 0xf30a;
const NODES_MAX: usize = 100;

/// Flags of an inode: its directory has an index; its blocks are in a tree of extents.
const INDEX: usize = 0x1000;
const IN_EXTENTS: usize = 0x8_0000;

fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    let bytes = bytes.get(at..at + len).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// An image whose checksums are being repaired.
struct Image<'a> {
    bytes: &'a mut [u8],
    superblock: Ext4Superblock,
    block: usize,
    seed: u32,
}

/// An inode.
struct Inode {
    number: u32,
    generation: u32,
    flags: usize,
    is_directory: bool,
    map: Vec<u8>,
}

/// Repairs all checksums of an image. One without a superblock, or with sizes that no disk has, stays as it is.
pub fn repair(bytes: &mut [u8]) {
    let superblock = Ext4Superblock::from_disk_bytes(&bytes[SUPERBLOCK..SUPERBLOCK + SUPERBLOCK_BYTES]);
    let is_sound = superblock.s_log_block_size <= 6 && superblock.s_blocks_per_group > 0;
    if !is_sound || !ext4_superblock_has_metadata_csum(&superblock) {
        return;
    }
    let seed = ext4_crc32c_seed_from_superblock(&superblock);
    let mut image = Image { bytes, superblock, block: 1024 << superblock.s_log_block_size, seed };
    let blocks = image.bytes.len() / image.block;
    for group in 0..blocks.div_ceil(superblock.s_blocks_per_group as usize) {
        image.repair_group(group);
    }
    let end = SUPERBLOCK + SUPERBLOCK_BYTES;
    bytes[end - 4..end].copy_from_slice(&ext4_superblock_csum32(&superblock).to_le_bytes());
}

impl Image<'_> {
    /// The range of a block, if it is there.
    fn place(&self, block: usize) -> Option<std::ops::Range<usize>> {
        let at = block.checked_mul(self.block)?;
        (block > 0 && at + self.block <= self.bytes.len()).then_some(at..at + self.block)
    }

    fn repair_group(&mut self, group: usize) {
        let is_wide = self.superblock.has_feature_incompat(Ext4Superblock::EXT4_FEATURE_INCOMPAT_64BIT);
        let len = if is_wide { usize::from(self.superblock.s_desc_size).clamp(32, 1024) } else { 32 };
        let first = self.superblock.s_first_data_block as usize;
        let at = (first + 1).saturating_mul(self.block).saturating_add(group * len);
        let Some(mut descriptor) = self.bytes.get(at..at.saturating_add(len)).map(<[u8]>::to_vec) else {
            return;
        };
        let block = |descriptor: &[u8], at| {
            number(descriptor, at, 4) | if len > 32 { number(descriptor, at + 32, 4) << 32 } else { 0 }
        };
        self.repair_inodes(group, block(&descriptor, 8));
        if let Some(place) = self.place(block(&descriptor, 0)) {
            let sum = ext4_block_bitmap_csum32(&self.superblock, &self.bytes[place]);
            put_halves(&mut descriptor, sum, 0x18, 0x38);
        }
        if let Some(place) = self.place(block(&descriptor, 4)) {
            let sum = ext4_inode_bitmap_csum32(&self.superblock, &self.bytes[place]);
            put_halves(&mut descriptor, sum, 0x1a, 0x3a);
        }
        let sum = ext4_group_desc_csum16(&self.superblock, group as u32, &descriptor);
        descriptor[30..32].copy_from_slice(&sum.to_le_bytes());
        self.bytes[at..at + len].copy_from_slice(&descriptor);
    }

    fn repair_inodes(&mut self, group: usize, table: usize) {
        let len = usize::from(self.superblock.s_inode_size);
        let (count, at) = (self.superblock.s_inodes_per_group as usize, table.saturating_mul(self.block));
        if len < 128 {
            return;
        }
        for index in 0..count.min(self.bytes.len() / len) {
            let at = at.saturating_add(index * len);
            let Some(record) = self.bytes.get_mut(at..at.saturating_add(len)) else { return };
            if record.iter().all(|&byte| byte == 0) {
                continue;
            }
            let inode = Inode {
                number: (group * count + index + 1) as u32,
                generation: number(record, 100, 4) as u32,
                flags: number(record, 32, 4),
                is_directory: number(record, 0, 2) & 0xf000 == 0x4000,
                map: record[40..100].to_vec(),
            };
            let has_upper = len > 128 && number(record, 128, 2) >= 4;
            record[124..126].fill(0);
            if has_upper {
                record[130..132].fill(0);
            }
            let sum = sum_of(self.seed, &inode, record);
            put_halves(record, sum, 124, if has_upper { 130 } else { usize::MAX });
            if inode.flags & IN_EXTENTS != 0 {
                self.repair_blocks(&inode);
            }
        }
    }

    /// Repairs the tree of an inode's extents, and the blocks of a directory.
    fn repair_blocks(&mut self, inode: &Inode) {
        let (mut nodes, mut done) = (vec![inode.map.clone()], 0);
        while let Some(node) = nodes.pop()
            && done < NODES_MAX
        {
            done += 1;
            if number(&node, 0, 2) != EXTENTS {
                continue;
            }
            let is_leaf = number(&node, 6, 2) == 0;
            for entry in node[12..].chunks_exact(12).take(number(&node, 2, 2)) {
                if is_leaf {
                    let first = number(entry, 6, 2) << 32 | number(entry, 8, 4);
                    let count = if inode.is_directory { number(entry, 4, 2) } else { 0 };
                    (first..first + count).for_each(|block| self.repair_directory(inode, block));
                } else if let Some(place) = self.place(number(entry, 8, 2) << 32 | number(entry, 4, 4)) {
                    let node = &mut self.bytes[place];
                    let tail = 12 + 12 * number(node, 4, 2);
                    if tail + 4 <= node.len() {
                        let sum = sum_of(self.seed, inode, &node[..tail]);
                        node[tail..tail + 4].copy_from_slice(&sum.to_le_bytes());
                    }
                    nodes.push(node.to_vec());
                }
            }
        }
    }

    /// Repairs a block of a directory: names, or a part of its index.
    fn repair_directory(&mut self, inode: &Inode, block: usize) {
        let Some(place) = self.place(block) else { return };
        let bytes = &mut self.bytes[place];
        let len = bytes.len();
        let counts = match number(bytes, 4, 2) {
            found if found == len && number(bytes, 0, 4) == 0 => 8,
            12 if number(bytes, 16, 2) == len - 12 => 32,
            _ => 0,
        };
        if inode.flags & INDEX == 0 || counts == 0 {
            let sum = sum_of(self.seed, inode, &bytes[..len - 12]);
            bytes[len - 4..].copy_from_slice(&sum.to_le_bytes());
            return;
        }
        let (tail, used) = (counts + 8 * number(bytes, counts, 2), counts + 8 * number(bytes, counts + 2, 2));
        if tail + 8 <= len && used <= tail {
            bytes[tail + 4..tail + 8].fill(0);
            let covered = [&bytes[..used], &bytes[tail..tail + 8]].concat();
            let sum = sum_of(self.seed, inode, &covered);
            bytes[tail + 4..tail + 8].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Checksum of something that is an inode's.
fn sum_of(seed: u32, inode: &Inode, bytes: &[u8]) -> u32 {
    ext4_metadata_csum32(seed, &[&inode.number.to_le_bytes(), &inode.generation.to_le_bytes(), bytes])
}

/// Puts the lower half of a sum to one place, and the upper one to another, if that is there.
fn put_halves(bytes: &mut [u8], sum: u32, lower: usize, upper: usize) {
    bytes[lower..lower + 2].copy_from_slice(&(sum as u16).to_le_bytes());
    if let Some(place) = bytes.get_mut(upper..upper.saturating_add(2)) {
        place.copy_from_slice(&((sum >> 16) as u16).to_le_bytes());
    }
}
