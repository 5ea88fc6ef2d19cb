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
        let all: Vec<(u64, Frame)> = self.among(pages.clone()).collect();
        for (page, _) in &all {
            if let Some(chunk) = self.0.get_mut(&(page / CHUNK)) {
                chunk[(page % CHUNK) as usize] = 0;
            }
        }
        let touched = pages.start / CHUNK..pages.end.div_ceil(CHUNK);
        let is_empty = |chunk: &Chunk| chunk.iter().all(|frame| *frame == 0);
        let empty = self.0.range(touched).filter(|(_, chunk)| is_empty(chunk));
        for number in empty.map(|(number, _)| *number).collect::<Vec<u64>>() {
            self.0.remove(&number);
        }
        all
    }
}
