//! Frames: pages of memory that processes have, each of them as often as it is used.
//!
//! The machine has the bytes, by the frames' numbers; who uses a frame how often is known here. A frame that more than one uses is written to by nobody:
//! who wants to write to it gets a copy.

use crate::budget::Budget;
use crate::errno::{ENOMEM, Errno, Result};
use crate::memory::{Objects, Rights};
use alloc::vec::Vec;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Number of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame(pub u32);

/// The bytes of frames, and processes that have them mapped.
pub trait Bytes {
    /// Frames that there can be: numbers from 0 on.
    fn count(&self) -> u32;
    /// Makes a frame that was never used. False if there is no memory for it.
    fn make(&mut self, frame: Frame) -> bool;
    /// Makes all bytes of a frame zero.
    fn clear(&mut self, frame: Frame);
    /// Copies a frame into another one.
    fn copy(&mut self, from: Frame, to: Frame);
    /// Copies bytes from a place in a frame to one in another, all of which lie in them.
    fn copy_part(&mut self, from: (Frame, usize), to: (Frame, usize), len: usize);
    /// Reads bytes of a frame, all of which lie in it.
    fn read(&self, frame: Frame, at: usize, to: &mut [u8]);
    /// Writes bytes of a frame, all of which lie in it.
    fn write(&mut self, frame: Frame, at: usize, from: &[u8]);
    /// Nobody can write to a frame any more until it is mapped again.
    fn protect(&mut self, frame: Frame);
    /// Nobody has a frame mapped any more.
    fn withdraw(&mut self, frame: Frame);
}

/// Use of a frame.
#[derive(Clone, Copy, Debug)]
struct Use {
    /// How often it is used: 0 if it is free.
    count: u32,
    /// Nobody has it mapped with more rights than these.
    mapped: Rights,
}

impl Use {
    /// Used once, and not mapped yet.
    const ONE: Use = Use { count: 1, mapped: Rights::NONE };
}

/// All frames.
#[derive(Debug)]
pub struct Frames<B> {
    /// Their bytes.
    pub bytes: B,
    /// Use of each. Those that were never used are not in it.
    uses: Vec<Use>,
    free: Vec<Frame>,
    /// No frame was to be had for somebody since this was cleared.
    pub(crate) was_out: bool,
    /// Memory for tables of all that have frames, and for everything else that processes make this program keep.
    pub budget: Budget,
    /// Memory without a file that several share.
    pub objects: Objects,
}

impl<B: Bytes> Frames<B> {
    /// All of them free.
    pub fn new(bytes: B) -> Frames<B> {
        let (uses, free) = (Vec::new(), Vec::new());
        Frames { bytes, uses, free, was_out: false, budget: Budget::default(), objects: Objects::new() }
    }

    /// Frames that can still be had.
    pub fn left(&self) -> usize {
        self.bytes.count() as usize - self.uses.len() + self.free.len()
    }

    /// Frames that are used.
    pub fn used(&self) -> usize {
        self.uses.len() - self.free.len()
    }

    /// A frame of zeros, used once.
    pub fn zeroed(&mut self) -> Result<Frame> {
        let frame = self.take()?;
        self.bytes.clear(frame);
        Ok(frame)
    }

    /// A frame that is filled with a copy of another one, used once.
    pub fn copied(&mut self, from: Frame) -> Result<Frame> {
        let frame = self.take()?;
        self.bytes.copy(from, frame);
        Ok(frame)
    }

    fn take(&mut self) -> Result<Frame> {
        if let Some(frame) = self.free.pop() {
            self.uses[frame.0 as usize] = Use::ONE;
            return Ok(frame);
        }
        let number = self.uses.len() as u32;
        self.uses.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
        if number >= self.bytes.count() || !self.bytes.make(Frame(number)) {
            self.was_out = true;
            return Err(ENOMEM);
        }
        self.uses.push(Use::ONE);
        Ok(Frame(number))
    }

    /// Whether more than one uses a frame.
    pub fn is_shared(&self, frame: Frame) -> bool {
        self.uses[frame.0 as usize].count > 1
    }

    /// How often a frame is used.
    pub fn use_count(&self, frame: Frame) -> u32 {
        self.uses[frame.0 as usize].count
    }

    /// Uses a frame once more.
    pub fn share(&mut self, frame: Frame) {
        self.uses[frame.0 as usize].count += 1;
    }

    /// Uses a frame once less. The last use takes it from all that have it mapped.
    pub fn release(&mut self, frame: Frame) {
        let used = &mut self.uses[frame.0 as usize];
        used.count -= 1;
        if used.count == 0 {
            self.withdraw(frame);
            self.free.push(frame);
        }
    }

    /// Uses a frame once less, of a process whose address space is gone. Whoever has stopped using it before has it mapped no more.
    pub fn leave(&mut self, frame: Frame) {
        let used = &mut self.uses[frame.0 as usize];
        used.count -= 1;
        if used.count == 0 {
            used.mapped = Rights::NONE;
            self.free.push(frame);
        }
    }

    /// Notes that a process gets a frame mapped with these rights.
    pub fn note_mapped(&mut self, frame: Frame, rights: Rights) {
        let used = &mut self.uses[frame.0 as usize];
        used.mapped = used.mapped | rights;
    }

    /// Nobody can write to a frame any more until it is mapped again.
    pub fn protect(&mut self, frame: Frame) {
        let used = &mut self.uses[frame.0 as usize];
        if used.mapped.has(Rights::WRITE) {
            used.mapped.0 &= !Rights::WRITE.0;
            self.bytes.protect(frame);
        }
    }

    /// Nobody has a frame mapped any more.
    pub fn withdraw(&mut self, frame: Frame) {
        let used = &mut self.uses[frame.0 as usize];
        if used.mapped != Rights::NONE {
            used.mapped = Rights::NONE;
            self.bytes.withdraw(frame);
        }
    }
}
