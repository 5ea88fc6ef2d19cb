//! Transactions on their way to the journal, with [counts](crate::counts) that are corrected before they get there.
//!
//! The library writes a descriptor, which says where on the disk each of the next blocks belongs, then these blocks, and so on; then it flushes, and writes the commit
//! (rsext4 0.9.2). A descriptor, and blocks of inodes whose counts may be wrong, are held back until then: only by then it is known which nodes all trees have. So what is
//! corrected is a part of the transaction itself.

use crate::Disk;
use crate::counts::Counts;
use crate::journal::Journal;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use rsext4::crc32c::crc32c_append;
use rsext4::jbd2::jbdstruct::{
    JBD2_BLOCKTYPE_DESCRIPTOR, JBD2_DESCRIPTOR_HEADER_SIZE, JBD2_FLAG_LAST_TAG, JBD2_FLAG_SAME_UUID,
    JBD2_MAGIC, JBD2_TAG_BLOCKNR_HIGH_SIZE, JBD2_TAG_SIZE, JBD2_TAG3_SIZE, JBD2_UUID_SIZE, JOURNAL_ESCAPE,
};
use vfs::Result;

/// Bytes of a checksum at the end of a descriptor.
const TAIL: usize = 4;

/// How a journal's descriptors are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sums {
    /// Without checksums.
    None,
    /// Each block's has 16 bits.
    Short,
    /// Each block's has 32 bits.
    Long,
}

/// Where a block of the journal belongs.
#[derive(Clone, Copy, Debug)]
struct Tag {
    /// Its block on the disk.
    block: u64,
    /// Its first bytes are those with which blocks of the journal's own begin, and are zeros here.
    is_escaped: bool,
    /// Where in the descriptor its checksum is.
    sum: usize,
}

/// A block of inodes that is held back.
#[derive(Debug)]
struct Held {
    /// Its block of the journal.
    at: u64,
    tag: Tag,
    bytes: Vec<u8>,
}

/// A descriptor that is held back, with blocks of inodes.
#[derive(Debug)]
struct Descriptor {
    at: u64,
    bytes: Vec<u8>,
    held: Vec<Held>,
}

/// Blocks that were not written yet.
#[derive(Debug)]
pub struct Log {
    journal: Journal,
    /// Blocks of the last descriptor that are still to come.
    next: VecDeque<Tag>,
    /// The last block of the journal was one of a descriptor's.
    is_in_descriptor: bool,
    descriptors: Vec<Descriptor>,
}

fn number(bytes: &[u8], range: Range<usize>) -> u64 {
    bytes.get(range).unwrap_or_default().iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Log {
    pub fn of(journal: Journal) -> Log {
        Log { journal, next: VecDeque::new(), is_in_descriptor: false, descriptors: Vec::new() }
    }

    /// Whether a block is the journal's.
    pub fn has(&self, block: u64) -> bool {
        let behind = self.journal.blocks.partition_point(|range| range.start <= block);
        behind.checked_sub(1).is_some_and(|at| self.journal.blocks[at].contains(&block))
    }

    /// A block of the journal is to be written. Whether it is held back.
    pub fn write(&mut self, at: u64, bytes: &[u8], counts: &mut Counts) -> bool {
        let tag = self.next.pop_front();
        self.is_in_descriptor = tag.is_some();
        let Some(tag) = tag else { return self.begin(at, bytes) };
        if tag.is_escaped {
            // It begins with the journal's number, so it is no node.
            counts.journalled(tag.block, &[]);
        } else {
            counts.journalled(tag.block, bytes);
        }
        let is_held = !tag.is_escaped && counts.concerns(tag.block, bytes);
        if is_held && let Some(descriptor) = self.descriptors.last_mut() {
            descriptor.held.push(Held { at, tag, bytes: bytes.to_vec() });
        }
        is_held
    }

    /// A block of the journal's own. A descriptor is held back.
    fn begin(&mut self, at: u64, bytes: &[u8]) -> bool {
        let is_descriptor = number(bytes, 0..4) == u64::from(JBD2_MAGIC)
            && number(bytes, 4..8) == u64::from(JBD2_BLOCKTYPE_DESCRIPTOR);
        if is_descriptor {
            self.next = self.tags(bytes);
            self.descriptors.push(Descriptor { at, bytes: bytes.to_vec(), held: Vec::new() });
        }
        is_descriptor
    }

    /// Tags of a descriptor: where the blocks behind it belong.
    fn tags(&self, bytes: &[u8]) -> VecDeque<Tag> {
        let mut tags = VecDeque::new();
        let mut at = JBD2_DESCRIPTOR_HEADER_SIZE;
        while at + JBD2_TAG3_SIZE <= bytes.len() {
            let lower = number(bytes, at..at + 4);
            let (flags, upper, sum, len);
            if self.journal.sums == Sums::Long {
                flags = number(bytes, at + 4..at + 8);
                upper = number(bytes, at + 8..at + 12);
                sum = at + 12;
                len = JBD2_TAG3_SIZE;
            } else {
                let wide = if self.journal.is_wide { JBD2_TAG_BLOCKNR_HIGH_SIZE } else { 0 };
                flags = number(bytes, at + 6..at + 8);
                upper = number(bytes, at + 8..at + 8 + wide);
                sum = at + 4;
                // With checksums there are two bytes that are nobody's.
                len = JBD2_TAG_SIZE + wide + if self.journal.sums == Sums::Short { 2 } else { 0 };
            }
            let has = |flag: u16| flags & u64::from(flag) != 0;
            tags.push_back(Tag { block: upper << 32 | lower, is_escaped: has(JOURNAL_ESCAPE), sum });
            at += len + if has(JBD2_FLAG_SAME_UUID) { 0 } else { JBD2_UUID_SIZE };
            if has(JBD2_FLAG_LAST_TAG) {
                break;
            }
        }
        tags
    }

    /// Whether blocks of the last descriptor are still to come, or came right now.
    pub fn is_in_descriptor(&self) -> bool {
        self.is_in_descriptor
    }

    /// Whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Corrects all that was held back, and gives each block to be written, with its place.
    pub fn finish<D: Disk>(
        &mut self,
        counts: &Counts,
        disk: &mut D,
        mut write: impl FnMut(&mut D, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.next.clear();
        for mut descriptor in core::mem::take(&mut self.descriptors) {
            let mut is_changed = false;
            for held in &mut descriptor.held {
                if counts.correct(disk, held.tag.block, &mut held.bytes) {
                    is_changed = true;
                    self.sum_up(&mut descriptor.bytes, held);
                }
            }
            let end = descriptor.bytes.len() - TAIL;
            if is_changed && self.journal.sums != Sums::None {
                descriptor.bytes[end..].fill(0);
                let sum = crc32c_append(self.seed(), &descriptor.bytes);
                descriptor.bytes[end..].copy_from_slice(&sum.to_be_bytes());
            }
            write(disk, descriptor.at, &descriptor.bytes)?;
            for held in &descriptor.held {
                write(disk, held.at, &held.bytes)?;
            }
        }
        Ok(())
    }

    fn seed(&self) -> u32 {
        crc32c_append(u32::MAX, &self.journal.uuid)
    }

    /// Puts the checksum of a block into its descriptor.
    fn sum_up(&self, descriptor: &mut [u8], held: &Held) {
        let sequence = number(descriptor, 8..12) as u32;
        let sum = crc32c_append(crc32c_append(self.seed(), &sequence.to_be_bytes()), &held.bytes);
        let place = &mut descriptor[held.tag.sum..];
        match self.journal.sums {
            Sums::None => {}
            Sums::Short => place[..2].copy_from_slice(&(sum as u16).to_be_bytes()),
            Sums::Long => place[..4].copy_from_slice(&sum.to_be_bytes()),
        }
    }
}
