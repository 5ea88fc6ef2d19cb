//! Memory of a process, in pieces, from which bytes come, or to which they go. Its end may be anywhere.

use crate::errno::{EINVAL, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::memory::Memory;
use crate::store::Store;
use crate::system::System;
use alloc::vec::Vec;
use smallvec::SmallVec;
use vfs::FileSystem;

/// Pieces of memory that one call may name.
const PIECES_MAX: u64 = 1024;

/// A piece: address and length.
pub(super) type Piece = (u64, u64);

/// Bytes on their way between a process and what it has open. Few of them, as most programs of pipes and sockets move, need no memory of the heap.
pub(super) type Moved = SmallVec<[u8; 64]>;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Pieces that a call names.
    pub(super) fn pieces(&mut self, tid: Tid, address: u64, count: u64) -> Result<Vec<Piece>> {
        if count > PIECES_MAX {
            return Err(EINVAL);
        }
        let mut pieces = Vec::new();
        let mut total = 0u64;
        for index in 0..count {
            let [at, len] = self.words(tid, address.wrapping_add(index * 16))?;
            total = total.checked_add(len).filter(|total| *total <= i64::MAX as u64).ok_or(EINVAL)?;
            pieces.push((at, len));
        }
        Ok(pieces)
    }

    /// How many of so many bytes can be written to pieces of memory.
    pub(super) fn fit(&mut self, tid: Tid, pieces: &[Piece], len: u64) -> Result<u64> {
        let room = self.room(tid)?;
        let memory = &mut room.borrow_mut().memory;
        let mut count = 0;
        for (address, piece) in pieces {
            let wanted = (*piece).min(len - count);
            let fits = self.store.writable(memory, *address, wanted);
            count += fits;
            if fits < wanted {
                break;
            }
        }
        Ok(count)
    }

    /// Writes bytes to pieces of memory, up to where there is none. How many those were.
    pub(super) fn give(&mut self, tid: Tid, pieces: &[Piece], bytes: &[u8]) -> Result<usize> {
        let room = self.room(tid)?;
        Ok(self.store.scatter(&mut room.borrow_mut().memory, pieces, 0, bytes))
    }

    /// Bytes of pieces of memory behind the first `skipped`, at most so many. Whether all of them are there.
    pub(super) fn gather(
        &mut self,
        tid: Tid,
        pieces: &[Piece],
        skipped: u64,
        most: u64,
    ) -> Result<(Moved, bool)> {
        let room = self.room(tid)?;
        let all = pieces.iter().fold(0u64, |all, (_, len)| all.saturating_add(*len));
        let mut bytes = Moved::from_elem(0, all.saturating_sub(skipped).min(most) as usize);
        let found = self.store.gather(&mut room.borrow_mut().memory, pieces, skipped, &mut bytes);
        let is_whole = found == bytes.len();
        bytes.truncate(found);
        Ok((bytes, is_whole))
    }
}

impl<B: Bytes, F: FileSystem> Store<B, F> {
    /// Writes bytes to pieces of memory, behind the first `skipped` bytes of these and up to where there is none. How many those were.
    pub(super) fn scatter(
        &mut self,
        memory: &mut Memory,
        pieces: &[Piece],
        skipped: u64,
        bytes: &[u8],
    ) -> usize {
        let (mut done, mut skipped) = (0, skipped);
        for (address, len) in pieces {
            let from = skipped.min(*len);
            skipped -= from;
            let rest = &bytes[done..];
            let wanted = usize::try_from(len - from).map_or(rest.len(), |len| len.min(rest.len()));
            let given = self.write_some(memory, address.wrapping_add(from), &rest[..wanted]);
            done += given;
            if given < wanted || done == bytes.len() {
                break;
            }
        }
        done
    }

    /// Reads bytes of pieces of memory, behind the first `skipped` of these and up to where there is none. How many those were.
    pub(super) fn gather(
        &mut self,
        memory: &mut Memory,
        pieces: &[Piece],
        skipped: u64,
        to: &mut [u8],
    ) -> usize {
        let (mut done, mut skipped) = (0, skipped);
        for (address, len) in pieces {
            let from = skipped.min(*len);
            skipped -= from;
            let rest = &mut to[done..];
            let wanted = usize::try_from(len - from).map_or(rest.len(), |len| len.min(rest.len()));
            let found = self.read_some(memory, address.wrapping_add(from), &mut rest[..wanted]);
            done += found;
            if found < wanted || done == to.len() {
                break;
            }
        }
        done
    }
}
