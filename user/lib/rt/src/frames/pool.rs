//! Free frames of a memory manager, and memory set aside for books.

use super::{Colours, FRAME_LOG2, Frame, Supply};
use alloc::vec::Vec;
use sys::abi::PAGE_SIZE;

/// Free frames, and where more come from.
#[derive(Debug)]
pub struct Pool<S> {
    /// Where blocks come from.
    pub supply: S,
    chunk_log2: u32,
    free: Vec<Frame>,
    total: u64,
    /// Bytes that others have got, for which they keep books in memory from this pool.
    booked: u64,
}

/// Of so many bytes that a memory manager hands out, it uses one for its books at most: some 200 bytes for a page. A page that was offered costs up to 161: its place in
/// the task's memory, a count of those who have it, a free frame's place later. The rest is for lists of offers.
const BOOKS_SHARE: u64 = 20;

/// Memory that a memory manager uses besides: its program and its stacks, in bytes.
const BOOKS_MIN: u64 = 256 << 10;

/// For each colour so many free frames are looked at for one of them, and so many are there at most before more memory is asked for. In an order of no order
/// one in ten million of such searches is in vain. A client that has pages of one colour alone neither makes others wait nor takes the machine's memory for that.
const LOOKED_AT: usize = 16;

impl<S: Supply> Pool<S> {
    /// An empty pool that asks for `1 << chunk_log2` bytes at a time, and for less if there is no such block.
    pub const fn new(supply: S, chunk_log2: u32) -> Pool<S> {
        Pool { supply, chunk_log2, free: Vec::new(), total: 0, booked: 0 }
    }

    /// Sets memory aside for the books that a client keeps who gets `bytes` to hand out: when nothing is left for anybody, it must
    /// still be able to take back what it gave. False if there is no memory for that.
    pub fn book(&mut self, bytes: u64) -> bool {
        let wanted = (self.booked + bytes) / BOOKS_SHARE + BOOKS_MIN;
        while self.total * PAGE_SIZE < wanted {
            if !self.grow() {
                return false;
            }
        }
        self.booked += bytes;
        true
    }

    /// A client does not hand out so many bytes any more.
    pub fn unbook(&mut self, bytes: u64) {
        self.booked = self.booked.saturating_sub(bytes);
    }

    /// Asks for more; false if there is none.
    fn grow(&mut self) -> bool {
        (FRAME_LOG2..=self.chunk_log2).rev().any(|log2| self.grow_by(log2))
    }

    /// Asks for a block of this size; false if there is none.
    fn grow_by(&mut self, log2: u32) -> bool {
        let Some(block) = self.supply.block(log2) else { return false };
        self.total += block.len() / PAGE_SIZE;
        // Room for all frames, so that none that comes back needs any.
        self.free.reserve(self.total as usize);
        self.free.extend(block.into_frames());
        true
    }

    /// A frame, if there is one left anywhere.
    pub fn take(&mut self) -> Option<Frame> {
        if self.free.is_empty() {
            self.grow();
        }
        self.free.pop()
    }

    /// A frame of the colour that a page at this address has: the last of those that came back, or one from a new block. `None` if it would take a long search,
    /// or more memory than a few pages are worth; [`Pool::take`] has one of another colour then.
    pub fn take_of(&mut self, colours: Colours, address: u64) -> Option<Frame> {
        let wanted = colours.of(address);
        let mut at = self.last_of(colours, wanted);
        if at.is_none() && self.free.len() < looked_at(colours) && self.grow_by(self.chunk_log2) {
            at = self.last_of(colours, wanted);
        }
        at.map(|at| self.free.swap_remove(at))
    }

    /// Place of the last free frame of a colour.
    fn last_of(&self, colours: Colours, wanted: u64) -> Option<usize> {
        let first = self.free.len().saturating_sub(looked_at(colours));
        let is_wanted = |frame: &Frame| colours.of(frame.physical()) == wanted;
        Some(first + self.free[first..].iter().rposition(is_wanted)?)
    }

    /// Returns a frame.
    pub fn put(&mut self, frame: Frame) {
        self.free.push(frame);
    }

    /// How much memory the pool has, handed out or not.
    pub fn statistics(&self) -> api::memory::MemoryUse {
        let bytes = |frames: u64| frames * PAGE_SIZE;
        api::memory::MemoryUse {
            total: bytes(self.total),
            free: bytes(self.free.len() as u64) + self.supply.left(),
        }
    }
}

/// How many free frames are looked at for one of a colour.
fn looked_at(colours: Colours) -> usize {
    LOOKED_AT * colours.count() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Block;
    use alloc::collections::BTreeSet;

    /// Log2 of the memory that the pool asks for at a time.
    const CHUNK_LOG2: u32 = 20;

    /// Frames of such a block.
    const FRAMES: usize = 256;

    /// So many blocks, which nobody looks into.
    struct Blocks(u64);

    impl Supply for Blocks {
        fn block(&mut self, log2: u32) -> Option<Block> {
            self.0 = self.0.checked_sub(u64::from(log2 == CHUNK_LOG2))?;
            let physical = (16 + self.0) << CHUNK_LOG2;
            (log2 == CHUNK_LOG2).then_some(Block { address: physical, physical, log2 })
        }

        fn give_back(&mut self, _: u64, _: u32) {}
    }

    fn colours(count: u64) -> Colours {
        Colours::new(count).expect("a power of two")
    }

    /// A pool of which all frames came back in an order of no order.
    fn used(blocks: u64) -> Pool<Blocks> {
        let mut pool = Pool::new(Blocks(blocks), CHUNK_LOG2);
        let mut all: Vec<Frame> = core::iter::from_fn(|| pool.take()).collect();
        let mut state = 1u64;
        while !all.is_empty() {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (state >> 33) as usize % all.len();
            pool.put(all.swap_remove(at));
        }
        pool
    }

    #[test]
    fn colours_are_a_power_of_two() {
        let counts: Vec<u64> = (0..=1024).filter(|&count| Colours::new(count).is_some()).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert_eq!(
            [0, 4095, 4096, 0xf000, 0x1_0000].map(|address| colours(16).of(address)),
            [0, 0, 1, 15, 0]
        );
    }

    /// Pages have frames of their colours, whatever order the frames came back in; no frame is two pages', and none is lost.
    #[test]
    fn frames_have_the_colours_of_their_pages() {
        for count in [1, 2, 16, 64, 256] {
            let (mut pool, colours) = (used(8), colours(count));
            let mut seen = BTreeSet::new();
            for page in 0..512 {
                let frame = pool.take_of(colours, page * PAGE_SIZE).expect("there are eight times as many");
                assert_eq!(colours.of(frame.physical()), page % count, "page {page} of {count} colours");
                assert!(seen.insert(frame.physical()), "page {page} has a frame of another one");
            }
            assert!(core::iter::from_fn(|| pool.take()).all(|frame| seen.insert(frame.physical())));
            assert_eq!(seen.len(), 8 * FRAMES);
        }
    }

    /// When all frames of a colour are in use, there are new ones, as long as few frames are free; those of other colours are still there then.
    #[test]
    fn a_colour_that_is_used_up_is_asked_for() {
        let colours = colours(64);
        let enough = looked_at(colours).div_ceil(FRAMES - FRAMES / 64) as u64;
        for (blocks, used) in [(2, 2), (100, enough)] {
            let mut pool = Pool::new(Blocks(blocks), CHUNK_LOG2);
            let of_one: Vec<Frame> = core::iter::from_fn(|| pool.take_of(colours, 5 * PAGE_SIZE)).collect();
            assert_eq!((blocks - pool.supply.0, of_one.len()), (used, used as usize * FRAMES / 64));
            assert!(pool.take_of(colours, 6 * PAGE_SIZE).is_some());
            let others = core::iter::from_fn(|| pool.take()).count();
            assert_eq!(others, blocks as usize * FRAMES - of_one.len() - 1);
        }
    }

    /// Only the last frames are looked at, and memory is not asked for beside many free ones, whatever colours those have.
    #[test]
    fn only_so_many_frames_are_looked_at() {
        let (mut pool, two) = (used(4), colours(2));
        let mut all: Vec<Frame> = core::iter::from_fn(|| pool.take()).collect();
        all.sort_by_key(|frame| two.of(frame.physical()));
        all.into_iter().for_each(|frame| pool.put(frame));
        pool.supply = Blocks(1);
        assert!(pool.take_of(two, 0).is_none());
        assert_eq!(pool.supply.0, 1);
        assert!(pool.take_of(two, PAGE_SIZE).is_some_and(|frame| two.of(frame.physical()) == 1));
        assert!(pool.take().is_some());
    }
}
