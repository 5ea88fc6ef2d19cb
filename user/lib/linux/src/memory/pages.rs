//! Frames of the pages of a process, in chunks, so that few pages that lie far apart take little.

use crate::frames::Frame;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// Frames of pages, by the pages' numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(BTreeMap<u64, Box<Chunk>>);

/// Pages of a chunk. A process that touches one page of each has tables of [`CHUNK_BYTES`] for each page.
const CHUNK: u64 = 64;

/// Most chunks of a process.
const CHUNKS_MAX: usize = 16_384;

/// Bytes that a chunk counts for, with its place in the list.
const CHUNK_BYTES: usize = 328;

/// Frames of the pages of a chunk.
#[derive(Clone, Debug)]
struct Chunk {
    /// A bit for each page that has one.
    used: u64,
    /// Their frames; the others mean nothing.
    frames: [Frame; CHUNK as usize],
}

impl Chunk {
    const EMPTY: Chunk = Chunk { used: 0, frames: [Frame(0); CHUNK as usize] };

    /// Bits of the pages of a range that are in the chunk with a number.
    fn bits(number: u64, pages: &Range<u64>) -> u64 {
        let first = number * CHUNK;
        let from = pages.start.max(first) - first;
        let to = pages.end.min(first + CHUNK).saturating_sub(first);
        if from >= to { 0 } else { u64::MAX >> (CHUNK - (to - from)) << from }
    }
}

/// Numbers of the bits of a word, from the lowest on.
fn each(mut bits: u64) -> impl Iterator<Item = u64> {
    core::iter::from_fn(move || {
        let at = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (at < u64::BITS).then_some(u64::from(at))
    })
}

impl Pages {
    /// Frame of a page.
    pub(super) fn get(&self, page: u64) -> Option<Frame> {
        let chunk = self.0.get(&(page / CHUNK))?;
        let at = page % CHUNK;
        (chunk.used >> at & 1 != 0).then(|| chunk.frames[at as usize])
    }

    /// Bytes that all of it counts for.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * CHUNK_BYTES
    }

    /// Bytes that it counts for in addition when a page gets a frame. None if it cannot get one.
    pub(super) fn more_bytes(&self, page: u64) -> Option<usize> {
        match self.0.contains_key(&(page / CHUNK)) {
            true => Some(0),
            false => (self.0.len() < CHUNKS_MAX).then_some(CHUNK_BYTES),
        }
    }

    /// Gives a page a frame.
    pub(super) fn set(&mut self, page: u64, frame: Frame) {
        let chunk = self.0.entry(page / CHUNK).or_insert_with(|| Box::new(Chunk::EMPTY));
        chunk.used |= 1 << (page % CHUNK);
        chunk.frames[(page % CHUNK) as usize] = frame;
    }

    /// Pages of a range that have frames.
    pub(super) fn among(&self, pages: Range<u64>) -> impl Iterator<Item = (u64, Frame)> {
        let chunks = pages.start / CHUNK..pages.end.div_ceil(CHUNK);
        self.0.range(chunks).flat_map(move |(number, chunk)| {
            let bits = chunk.used & Chunk::bits(*number, &pages);
            each(bits).map(move |at| (number * CHUNK + at, chunk.frames[at as usize]))
        })
    }

    /// Takes all frames of a range.
    pub(super) fn take(&mut self, pages: Range<u64>) -> Vec<(u64, Frame)> {
        let (mut all, mut empty) = (Vec::new(), Vec::new());
        for (number, chunk) in self.0.range_mut(pages.start / CHUNK..pages.end.div_ceil(CHUNK)) {
            let bits = chunk.used & Chunk::bits(*number, &pages);
            all.extend(each(bits).map(|at| (number * CHUNK + at, chunk.frames[at as usize])));
            chunk.used &= !bits;
            if chunk.used == 0 {
                empty.push(*number);
            }
        }
        for number in empty {
            self.0.remove(&number);
        }
        all
    }

    /// Takes all frames.
    pub(super) fn take_all(&mut self, mut taken: impl FnMut(Frame)) {
        for chunk in core::mem::take(&mut self.0).into_values() {
            each(chunk.used).for_each(|at| taken(chunk.frames[at as usize]));
        }
    }
}
