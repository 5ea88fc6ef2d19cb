//! Ends of inode bitmaps: bits for inodes that a group does not have are ones, so that nobody takes them for free.
//!
//! The library makes the bitmap of a group when the first inode of it is used, and leaves these bits zero (rsext4 0.9.2); `e2fsck` calls that a mistake.
//! No checksum covers them. So they are set here, when such a bitmap goes to its place on the disk. One that still lies in the journal when power is
//! lost has them zero, and `e2fsck -p` sets them without a word.

use crate::geometry::Geometry;
use alloc::vec::Vec;

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
    /// Bitmaps of a file system that are still to be made.
    pub fn of(geometry: &Geometry) -> Padding {
        let (block_bytes, inode_bytes) = (geometry.block_bytes, geometry.inodes_per_group as usize / 8);
        if inode_bytes as u64 >= block_bytes {
            return Padding::default();
        }
        let unused = geometry.groups.iter().filter(|group| group.is_unused);
        // Those of a damaged file system may be anywhere.
        let mut bitmaps: Vec<u64> = unused.map(|group| group.inode_bitmap).collect();
        bitmaps.retain(|&bitmap| bitmap < u64::MAX / block_bytes - 1);
        bitmaps.sort_unstable();
        Padding { block_bytes, inode_bytes, bitmaps }
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
