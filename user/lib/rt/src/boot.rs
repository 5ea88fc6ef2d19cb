//! Things that σ0 finds when it starts: boot information and all free memory. And the archive, as σ0 and others see it.
#![allow(unsafe_code)]

use crate::frames::{Block, Supply};
use crate::heap;
use arrayvec::ArrayVec;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicBool, Ordering};
use sys::abi::PAGE_SIZE;
use sys::abi::boot::{BootInfo, memory_kind};

/// Log2 of the size of σ0's heap.
const HEAP_LOG2: u32 = 18;

/// Most pieces of free memory; beyond it the smallest are forgotten.
const PIECES_MAX: usize = 256;

/// Everything that σ0 is given.
#[derive(Debug)]
pub struct Boot {
    /// The kernel's report.
    pub info: &'static BootInfo,
    /// The boot archive; empty if there is none.
    pub archive: &'static [u8],
    /// Free memory.
    pub memory: Memory,
}

/// Takes possession of it, once; also gives the program its heap. Only for the first task of the system.
pub fn take() -> Option<Boot> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let address = crate::start::argument();
    if TAKEN.swap(true, Ordering::Relaxed) || address == 0 {
        return None;
    }
    // SAFETY: the kernel starts the first task with the address of this structure, which never changes.
    let info: &'static BootInfo = unsafe { &*with_exposed_provenance(address as usize) };
    if info.magic != BootInfo::MAGIC {
        return None;
    }
    let mut memory = Memory { pieces: ArrayVec::new(), total: 0 };
    let regions = info.memory.get(..info.memory_count as usize)?;
    for region in regions.iter().filter(|region| region.kind == memory_kind::FREE) {
        // The page at address 0 stays unused: Rust takes no pointer to it.
        memory.add(region.base.max(PAGE_SIZE), region.base + region.len);
    }
    memory.total = memory.left();
    let arena = memory.block(HEAP_LOG2)?.into_address();
    heap::place(arena, 1 << HEAP_LOG2);
    Some(Boot { info, archive: shown_archive(info.archive, info.archive_len), memory })
}

/// The archive as bytes, where kernel or pager show it.
pub(crate) fn shown_archive(address: u64, len: u64) -> &'static [u8] {
    if address == 0 || len == 0 {
        return &[];
    }
    // SAFETY: the kernel (for σ0) or the pager (for others) shows the archive there, and nobody ever writes to it.
    unsafe { core::slice::from_raw_parts(with_exposed_provenance(address as usize), len as usize) }
}

/// Free physical memory, which σ0 sees at its physical address.
#[derive(Debug)]
pub struct Memory {
    pieces: ArrayVec<(u64, u64), PIECES_MAX>,
    /// How much there was at the start, in bytes.
    pub total: u64,
}

impl Memory {
    /// Puts a block back.
    pub fn put(&mut self, block: Block) {
        let len = block.len();
        let start = block.into_address();
        self.add(start, start + len);
    }

    fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some(at) = self.pieces.iter().position(|piece| piece.1 == start || piece.0 == end) {
            let neighbour = self.pieces.swap_remove(at);
            (start, end) = (start.min(neighbour.0), end.max(neighbour.1));
        }
        if self.pieces.is_full() {
            let smallest = (0..self.pieces.len()).min_by_key(|&at| self.pieces[at].1 - self.pieces[at].0);
            let Some(smallest) = smallest.filter(|&at| self.pieces[at].1 - self.pieces[at].0 < end - start)
            else {
                return;
            };
            self.pieces.swap_remove(smallest);
        }
        self.pieces.push((start, end));
    }
}

impl Supply for Memory {
    /// Cuts the block from the upper end of the smallest piece that holds it.
    fn block(&mut self, log2: u32) -> Option<Block> {
        let size = 1 << log2;
        let place = |&(start, end): &(u64, u64)| {
            let base = end.checked_sub(size)? & !(size - 1);
            (base >= start).then_some(base)
        };
        let fitting = (0..self.pieces.len()).filter(|&at| place(&self.pieces[at]).is_some());
        let best = fitting.min_by_key(|&at| self.pieces[at].1 - self.pieces[at].0)?;
        let piece = self.pieces.swap_remove(best);
        let base = place(&piece)?;
        self.add(piece.0, base);
        self.add(base + size, piece.1);
        // SAFETY: the kernel says that the memory is free and has mapped it to σ0 at its physical address; the
        // piece has just been taken off the list.
        Some(unsafe { Block::claim(base, base, log2) })
    }

    /// Nothing is taken back by address here: the owner keeps what it lends as [`Lent`](crate::frames::Lent).
    fn give_back(&mut self, _: u64, _: u32) {}

    fn left(&self) -> u64 {
        self.pieces.iter().map(|(start, end)| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn blocks_are_aligned_and_apart() {
        let mut memory = Memory { pieces: ArrayVec::new(), total: 0 };
        memory.add(0x1000, 0x9_f000);
        memory.add(0x10_0000, 0x123_4000);
        let all = memory.left();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for log2 in [21, 12, 16, 20, 12, 14, 21, 22, 13].into_iter().chain([12; 8192]) {
            let Some(block) = memory.block(log2) else { continue };
            let (start, end) = (block.into_address(), 1 << log2);
            assert_eq!(start % end, 0);
            taken.push((start, start + end));
        }
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two blocks overlap");
        assert_eq!(taken.iter().map(|(start, end)| end - start).sum::<u64>(), all, "memory got lost");
        assert_eq!(memory.left(), 0);
        taken.iter().for_each(|&(start, end)| memory.add(start, end));
        memory.pieces.sort_unstable();
        assert_eq!(memory.pieces.as_slice(), [(0x1000, 0x9_f000), (0x10_0000, 0x123_4000)]);
    }
}
