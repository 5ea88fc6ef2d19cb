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
const CHUNK_BYTES: usize = 320;

/// Numbers of frames, plus one; 0 where there is none.
type Chunk = [u32; CHUNK as usize];

impl Pages {
    /// Frame of a page.
    pub(super) fn get(&self, page: u64) -> Option<Frame> {
        let number = self.0.get(&(page / CHUNK))?[(page % CHUNK) as usize];
        number.checked_sub(1).map(Frame)
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
        let chunk = self.0.entry(page / CHUNK).or_insert_with(|| Box::new([0; CHUNK as usize]));
        chunk[(page % CHUNK) as usize] = frame.0 + 1;
    }

    /// Pages of a range that have frames.
    pub(super) fn among(&self, pages: Range<u64>) -> impl Iterator<Item = (u64, Frame)> {
        let chunks = pages.start / CHUNK..pages.end.div_ceil(CHUNK);
        self.0.range(chunks).flat_map(move |(number, chunk)| {
            let first = number * CHUNK;
            let from = pages.start.max(first) - first;
            let to = pages.end.min(first + CHUNK) - first;
            (from..to).filter_map(move |at| {
                chunk[at as usize].checked_sub(1).map(|frame| (first + at, Frame(frame)))
            })
        })
    }

    /// Takes all frames of a range.
    pub(super) fn take(&mut self, pages: Range<u64>) -> Vec<(u64, Frame)> {
        let (mut all, mut empty) = (Vec::new(), Vec::new());
        for (number, chunk) in self.0.range_mut(pages.start / CHUNK..pages.end.div_ceil(CHUNK)) {
            let first = number * CHUNK;
            let (from, to) = (pages.start.max(first) - first, pages.end.min(first + CHUNK) - first);
            for (page, place) in (first + from..).zip(&mut chunk[from as usize..to as usize]) {
                all.extend(core::mem::take(place).checked_sub(1).map(|frame| (page, Frame(frame))));
            }
            if chunk.iter().all(|frame| *frame == 0) {
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
            chunk.iter().filter_map(|frame| frame.checked_sub(1)).for_each(|frame| taken(Frame(frame)));
        }
    }
}
