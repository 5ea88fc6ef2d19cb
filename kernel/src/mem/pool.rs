//! The kernel's own memory: one region of physical memory, handed out in frames of 4 KiB.
//!
//! Everything that the kernel makes for a user (control blocks, tables, tasks, mapping nodes) is made of whole frames
//! that are charged to a task's quota. The sum of all quotas never exceeds the pool, so an allocation within a
//! quota cannot fail, whatever other tasks do.
//!
//! Frames that held page tables come back full of zeroes and are kept apart, so that making a table seldom
//! has to clear one.
//!
//! Unsafe: turns frame addresses into references. Invariant: a frame is referred to as one [`Zeroable`] type from
//! the time it is taken to the time it is given back, and all such types are made of cells.

use abi::PAGE_SIZE;
use core::cell::Cell;

/// Physical address of a frame of the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Frame(pub u64);

/// Types that may be laid over a frame of zeroes and shared by reference.
///
/// # Safety
/// The type is at most 4 KiB large and at most 4 KiB aligned, all-zero bytes are a valid value, and every field is
/// a cell, so that shared references to it stay valid while it changes.
pub unsafe trait Zeroable {}

/// A frame as 512 words; page tables of any kind.
#[repr(C, align(4096))]
pub struct Words(pub [Cell<u64>; 512]);

// SAFETY: integers in cells.
unsafe impl Zeroable for Words {}

/// The kernel's own memory, and its free frames.
pub struct Pool {
    /// Address that the frame with the physical address 0 would have, if it were in the pool.
    base: *mut u8,
    start: u64,
    frames: usize,
    /// One word for each frame: link of a free list (index plus 1), or the word that [`Pool::set_note`] left.
    notes: &'static [Cell<u64>],
    /// Frames below this index were taken at least once.
    fresh: Cell<usize>,
    free_zeroed: Cell<u64>,
    free_dirty: Cell<u64>,
    free: Cell<usize>,
    /// Number of frames until one is denied, counting from 1; 0: none is.
    denied_in: Cell<u64>,
    /// Number of frames that are denied from there on.
    denials: Cell<u64>,
}

impl Pool {
    /// A pool over `frames` frames of memory at `memory`, whose physical address is `start`; the first
    /// `used_bytes` are taken already.
    ///
    /// # Safety
    /// The memory is valid for reads and writes, nobody else uses the part behind `used_bytes`, and it stays so
    /// forever.
    pub unsafe fn new(memory: *mut u8, start: u64, frames: usize, used_bytes: u64) -> Pool {
        let used = used_bytes.div_ceil(PAGE_SIZE) as usize;
        let notes_frames = (frames * 8).div_ceil(PAGE_SIZE as usize);
        assert!(used + notes_frames < frames, "the pool is too small for its own records");
        // SAFETY: 1. the range lies in the pool behind the used part; 2. words have no invalid values once written.
        let notes = unsafe {
            let first = memory.add(used * PAGE_SIZE as usize).cast::<Cell<u64>>();
            first.write_bytes(0, frames);
            core::slice::from_raw_parts(first, frames)
        };
        let fresh = used + notes_frames;
        Pool {
            base: memory.wrapping_sub(start as usize),
            start,
            frames,
            notes,
            fresh: Cell::new(fresh),
            free_zeroed: Cell::new(0),
            free_dirty: Cell::new(0),
            free: Cell::new(frames - fresh),
            denied_in: Cell::new(0),
            denials: Cell::new(0),
        }
    }

    /// Number of frames not taken.
    pub fn free_frames(&self) -> usize {
        self.free.get()
    }

    /// Number of frames in all.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Orders, for tests, that frames be denied: of those that certain tasks ask for, and of those charged to nobody, the one that comes
    /// as number `first` from now on, and the following, `count` in all; 0 ends an earlier order. Returns the rest of that. A task
    /// is told as if its quota were used up.
    pub fn deny(&self, first: u64, count: u64) -> [u64; 2] {
        let first = if count == 0 { 0 } else { first };
        [self.denied_in.replace(first), self.denials.replace(if first == 0 { 0 } else { count })]
    }

    /// Whether the frame that is asked for now is to be denied. Counts it.
    #[cold]
    pub fn denies_now(&self) -> bool {
        match self.denied_in.get() {
            0 => false,
            1 => {
                self.denials.set(self.denials.get() - 1);
                self.denied_in.set((self.denials.get() != 0) as u64);
                true
            }
            left => {
                self.denied_in.set(left - 1);
                false
            }
        }
    }

    fn index(&self, frame: Frame) -> usize {
        let index = ((frame.0 - self.start) / PAGE_SIZE) as usize;
        debug_assert!(index < self.frames);
        index
    }

    fn pop(&self, list: &Cell<u64>) -> Option<usize> {
        let index = (list.get() as usize).checked_sub(1)?;
        list.set(self.notes[index].replace(0));
        Some(index)
    }

    fn frame(&self, index: usize) -> Frame {
        self.free.set(self.free.get() - 1);
        Frame(self.start + index as u64 * PAGE_SIZE)
    }

    /// Takes a frame full of zeroes.
    pub fn take_zeroed(&self) -> Option<Frame> {
        if let Some(index) = self.pop(&self.free_zeroed) {
            return Some(self.frame(index));
        }
        let frame = self.take()?;
        // SAFETY: the frame was just taken; nobody refers to it.
        unsafe { self.pointer(frame).cast::<[u64; 512]>().write_bytes(0, 1) };
        Some(frame)
    }

    /// Takes a frame with any contents.
    pub fn take(&self) -> Option<Frame> {
        if let Some(index) = self.pop(&self.free_dirty) {
            return Some(self.frame(index));
        }
        if self.fresh.get() < self.frames {
            self.fresh.set(self.fresh.get() + 1);
            return Some(self.frame(self.fresh.get() - 1));
        }
        self.pop(&self.free_zeroed).map(|index| self.frame(index))
    }

    fn push(&self, list: &Cell<u64>, frame: Frame) {
        let index = self.index(frame);
        self.notes[index].set(list.replace(index as u64 + 1));
        self.free.set(self.free.get() + 1);
    }

    /// Gives back a frame with any contents, to which no reference is left.
    pub fn give_back(&self, frame: Frame) {
        self.push(&self.free_dirty, frame);
    }

    /// Fills the first `len` bytes of a frame with zeroes; nothing refers to them any more, and the rest of the frame is
    /// zero. Then gives it back.
    pub fn give_back_cleared(&self, frame: Frame, len: usize) {
        self.clear_prefix(frame, len);
        self.give_back_zeroed(frame);
    }

    /// Gives back a frame that holds only zeroes, to which no reference is left.
    pub fn give_back_zeroed(&self, frame: Frame) {
        debug_assert!(self.at::<Words>(frame).0.iter().all(|word| word.get() == 0));
        self.push(&self.free_zeroed, frame);
    }

    /// Fills the first `len` bytes of a frame that was just taken with zeroes.
    pub fn clear_prefix(&self, frame: Frame, len: usize) {
        assert!(len <= PAGE_SIZE as usize);
        // SAFETY: the frame was just taken; nobody refers to it.
        unsafe { self.pointer(frame).write_bytes(0, len) };
    }

    /// Address of the frame's memory.
    #[inline]
    pub fn pointer(&self, frame: Frame) -> *mut u8 {
        debug_assert!(self.index(frame) < self.frames);
        self.base.wrapping_add(frame.0 as usize)
    }

    /// The frame as a `T`. The caller keeps to one type for each frame between taking and giving back.
    #[inline]
    pub fn at<T: Zeroable>(&self, frame: Frame) -> &'static T {
        const { assert!(size_of::<T>() <= PAGE_SIZE as usize && align_of::<T>() <= PAGE_SIZE as usize) };
        // SAFETY: `Zeroable` promises that any contents of a kernel frame under the module's invariant are a `T`, and
        // that sharing it is sound.
        unsafe { &*self.pointer(frame).cast::<T>() }
    }

    /// Leaves a word with a frame that is taken.
    pub fn set_note(&self, frame: Frame, note: u64) {
        self.notes[self.index(frame)].set(note);
    }

    /// The word that was left with a frame, 0 at first.
    pub fn note(&self, frame: Frame) -> u64 {
        self.notes[self.index(frame)].get()
    }
}

#[cfg(not(target_os = "none"))]
impl Pool {
    /// The first frame.
    pub fn start(&self) -> Frame {
        Frame(self.start)
    }

    /// A pool over leaked memory of the host.
    pub fn for_tests(frames: usize) -> Pool {
        let memory = (0..frames).map(|_| Words([const { Cell::new(0) }; 512])).collect::<Vec<_>>().leak();
        // SAFETY: the memory is leaked and belongs to the pool alone.
        unsafe { Pool::new(memory.as_mut_ptr().cast(), 0x10_0000, frames, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_comes_once_and_zeroed_when_asked() {
        let pool = Pool::for_tests(10);
        let frames: Vec<Frame> = core::iter::from_fn(|| pool.take()).collect();
        assert_eq!((frames.len(), pool.free_frames()), (9, 0));
        for frame in &frames {
            pool.at::<Words>(*frame).0[7].set(1);
            pool.give_back(*frame);
        }
        for _ in 0..9 {
            let frame = pool.take_zeroed().unwrap();
            assert!(pool.at::<Words>(frame).0.iter().all(|word| word.get() == 0));
        }
        assert_eq!(pool.take_zeroed(), None);
    }

    #[test]
    fn what_is_ordered_is_denied_and_nothing_else() {
        let pool = Pool::for_tests(10);
        assert!(!pool.denies_now());
        assert_eq!(pool.deny(3, 2), [0, 0]);
        assert_eq!([(); 6].map(|()| pool.denies_now()), [false, false, true, true, false, false]);
        pool.deny(2, u64::MAX);
        assert_eq!([(); 4].map(|()| pool.denies_now()), [false, true, true, true]);
        assert_eq!(pool.deny(0, 7), [1, u64::MAX - 3]);
        assert!(!pool.denies_now());
    }
}
