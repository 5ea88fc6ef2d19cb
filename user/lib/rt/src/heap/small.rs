//! Small blocks that were given back are kept for the next request of their size: a list's node or a short text then costs a few instructions, not a search (decision 0129).
//!
//! Of each class of sizes a few are kept. If memory runs out, all of them go back to the allocator below, so that nothing is refused for their sake.

use core::alloc::Layout;
use core::ptr::NonNull;
use talc::base::Talc;
use talc::base::binning::DefaultBinning;
use talc::source::Source;

/// Bytes by which sizes of neighbouring classes differ: the unit of the allocator below.
const UNIT: usize = 32;

/// Bytes of its first unit that the allocator below keeps for itself.
const TAIL: usize = 8;

/// Number of classes. A larger block is none of a class.
const CLASSES: usize = 16;

/// Most bytes that are kept of a class.
const KEPT_BYTES: usize = 2048;

/// A block that nobody has: it begins with the next one of its class.
struct Free {
    next: Option<NonNull<Free>>,
}

/// Blocks of a class that are kept.
#[derive(Clone, Copy)]
struct Kept {
    first: Option<NonNull<Free>>,
    count: usize,
}

/// A heap.
pub struct Heap<S: Source> {
    kept: [Kept; CLASSES],
    below: Talc<S, DefaultBinning>,
}

// SAFETY: the blocks that are kept belong to the heap, not to a thread.
unsafe impl<S: Source + Send> Send for Heap<S> {}

/// The class of a block.
#[inline]
fn class(layout: Layout) -> Option<usize> {
    let class = (layout.size() + TAIL - 1) / UNIT;
    (class < CLASSES && layout.align() <= UNIT).then_some(class)
}

/// Size and alignment of all blocks of a class, as the allocator below knows them.
#[inline]
fn layout_of(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the size is small.
    unsafe { Layout::from_size_align_unchecked((class + 1) * UNIT - TAIL, UNIT) }
}

impl<S: Source> Heap<S> {
    /// An empty heap on top of memory from this source.
    pub const fn new(source: S) -> Heap<S> {
        Heap { kept: [Kept { first: None, count: 0 }; CLASSES], below: Talc::new(source) }
    }

    /// Gives a block; none if there is no memory.
    ///
    /// # Safety
    ///
    /// The size is not 0.
    #[inline]
    pub unsafe fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let layout = match class(layout) {
            None => layout,
            Some(class) => {
                let kept = &mut self.kept[class];
                if let Some(block) = kept.first {
                    // SAFETY: whatever is kept is nobody's, and begins with the next one.
                    kept.first = unsafe { block.read() }.next;
                    kept.count -= 1;
                    return Some(block.cast());
                }
                layout_of(class)
            }
        };
        // SAFETY: the size is not 0.
        unsafe { self.below.allocate(layout).or_else(|| self.allocate_at_last(layout)) }
    }

    /// Gives back all that is kept, then tries again.
    #[cold]
    unsafe fn allocate_at_last(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        for (class, kept) in self.kept.iter_mut().enumerate() {
            kept.count = 0;
            while let Some(block) = kept.first {
                // SAFETY: as in `allocate`; the block came from below with this layout.
                unsafe {
                    kept.first = block.read().next;
                    self.below.deallocate(block.as_ptr().cast(), layout_of(class));
                }
            }
        }
        // SAFETY: as in `allocate`.
        unsafe { self.below.allocate(layout) }
    }

    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// It was allocated here with this layout, and is used no more.
    #[inline]
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>, layout: Layout) {
        let layout = match class(layout) {
            None => layout,
            Some(class) => {
                let kept = &mut self.kept[class];
                if kept.count < KEPT_BYTES / ((class + 1) * UNIT) {
                    let free = block.cast::<Free>();
                    // SAFETY: the block is aligned to more than a pointer, larger than one, and nobody's.
                    unsafe { free.write(Free { next: kept.first }) };
                    kept.first = Some(free);
                    kept.count += 1;
                    return;
                }
                layout_of(class)
            }
        };
        // SAFETY: the caller's promise; the block came from below with this layout.
        unsafe { self.below.deallocate(block.as_ptr(), layout) };
    }

    /// Changes the size of a block where it is. False if it has to move.
    ///
    /// # Safety
    ///
    /// It was allocated here with this layout; the new size is not 0.
    pub unsafe fn resize(&mut self, block: NonNull<u8>, layout: Layout, len: usize) -> bool {
        // SAFETY: the alignment is one; a size that is too large for a layout is no size of a class.
        let new = unsafe { Layout::from_size_align_unchecked(len, layout.align()) };
        match (class(layout), class(new)) {
            // SAFETY: the caller's promise; a block of no class has its own layout below.
            (None, None) => unsafe { self.below.try_realloc_in_place(block.as_ptr(), layout, len) },
            (old, new) => old == new,
        }
    }

    /// Changes the size of a block where it is, although it becomes one of another class: for when there is no memory to which it could move.
    /// A smaller size always fits.
    ///
    /// # Safety
    ///
    /// It was allocated here with this layout; the new size is not 0.
    #[cold]
    pub unsafe fn resize_at_last(&mut self, block: NonNull<u8>, layout: Layout, len: usize) -> bool {
        let below = |layout| class(layout).map_or(layout, layout_of);
        // SAFETY: the alignment is one; a size that is too large for a layout is no size of a class.
        let new = unsafe { Layout::from_size_align_unchecked(len, layout.align()) };
        // SAFETY: the caller's promise; the allocator below knows the block by its class, and aligns all blocks to its unit.
        unsafe { self.below.try_realloc_in_place(block.as_ptr(), below(layout), below(new).size()) }
    }

    /// The allocator below, for its source.
    #[cfg(test)]
    fn below(&mut self) -> &mut Talc<S, DefaultBinning> {
        &mut self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use talc::source::Manual;

    const ARENA_LEN: usize = 1 << 20;

    /// A block with its layout and the byte of which it is full.
    type Block = (NonNull<u8>, Layout, u8);

    fn fill((block, layout, byte): Block) -> Block {
        // SAFETY: the block is the test's.
        unsafe { block.write_bytes(byte, layout.size()) };
        (block, layout, byte)
    }

    fn is_whole((block, layout, byte): &Block) -> bool {
        // SAFETY: as above; it was filled.
        let bytes = unsafe { core::slice::from_raw_parts(block.as_ptr(), layout.size()) };
        bytes.iter().all(|found| found == byte) && (block.as_ptr() as usize).is_multiple_of(layout.align())
    }

    fn with_heap(work: impl FnOnce(&mut Heap<Manual>)) {
        let mut arena = std::vec![0u8; ARENA_LEN];
        let mut heap = Heap::new(Manual);
        // SAFETY: the arena lives until the heap is not used any more.
        unsafe { heap.below().claim(arena.as_mut_ptr(), ARENA_LEN) }.expect("the arena is large");
        work(&mut heap);
    }

    fn next(random: &mut u64) -> usize {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) as usize
    }

    /// Random blocks are taken, resized and given back; each keeps its bytes.
    #[test]
    fn blocks_are_their_owners_alone() {
        with_heap(|heap| {
            let mut random = 1;
            let mut blocks: Vec<Block> = Vec::new();
            for byte in 0..40_000_u32 {
                let len = if next(&mut random).is_multiple_of(8) {
                    1 + next(&mut random) % 3000
                } else {
                    1 + next(&mut random) % 560
                };
                let at = next(&mut random) % (blocks.len() + 1);
                match next(&mut random) % 3 {
                    0 if at < blocks.len() => {
                        let (block, layout, _) = blocks.swap_remove(at);
                        // SAFETY: it is from this heap.
                        unsafe { heap.deallocate(block, layout) };
                    }
                    1 if at < blocks.len() => {
                        let (block, layout, byte) = blocks[at];
                        // SAFETY: as above.
                        if unsafe { heap.resize(block, layout, len) } {
                            let new = Layout::from_size_align(len, layout.align()).expect("it is small");
                            let kept =
                                Layout::from_size_align(len.min(layout.size()), 1).expect("it is small");
                            assert!(is_whole(&(block, kept, byte)));
                            blocks[at] = fill((block, new, byte));
                        }
                    }
                    _ => {
                        let layout =
                            Layout::from_size_align(len, 1 << (next(&mut random) % 8)).expect("it is small");
                        // SAFETY: the size is not 0.
                        let Some(block) = (unsafe { heap.allocate(layout) }) else { continue };
                        blocks.push(fill((block, layout, byte as u8)));
                    }
                }
                if byte % 64 == 0 {
                    assert!(blocks.iter().all(is_whole), "{byte}");
                }
            }
        });
    }

    /// All that is kept goes back before anything is refused; nothing is lost.
    #[test]
    fn memory_that_is_kept_is_there_for_large_blocks() {
        with_heap(|heap| {
            let large = Layout::from_size_align(ARENA_LEN - 4096, 8).expect("a layout");
            for round in 0..3 {
                let sizes = (1..=CLASSES * UNIT).cycle().take(1000 + round);
                let blocks: Vec<_> = sizes
                    .map(|size| {
                        let layout = Layout::from_size_align(size, 8).expect("a layout");
                        // SAFETY: the size is not 0.
                        (unsafe { heap.allocate(layout) }.expect("there is memory"), layout)
                    })
                    .collect();
                for (block, layout) in blocks {
                    // SAFETY: it is from this heap.
                    unsafe { heap.deallocate(block, layout) };
                }
                assert!(heap.kept.iter().all(|kept| kept.count > 0));
                assert!(heap.kept.iter().map(|kept| kept.count).enumerate().all(|(class, count)| (class
                    + 1)
                    * UNIT
                    * count
                    <= KEPT_BYTES));
                // SAFETY: the size is not 0.
                let block = unsafe { heap.allocate(large) }.expect("all is there");
                assert!(heap.kept.iter().all(|kept| kept.count == 0 && kept.first.is_none()));
                // SAFETY: it is from this heap.
                unsafe { heap.deallocate(block, large) };
            }
        });
    }

    /// The numbers that this knows of the allocator below are right: a block of a class fills whole units.
    #[test]
    fn classes_waste_nothing_below() {
        assert_eq!(UNIT, talc::base::CHUNK_UNIT);
        for class in 0..CLASSES {
            assert_eq!((layout_of(class).size() + TAIL) % talc::base::CHUNK_UNIT, 0);
        }
    }
}
