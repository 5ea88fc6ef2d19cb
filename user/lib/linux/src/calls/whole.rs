//! Reads and writes of files that are longer than what is moved at once: as on Linux, they end early only where the file does, or memory.

use super::files::{PIECE_MAX, TERMINAL_MAX};
use super::number;
use super::pieces::Piece;
use crate::errno::Result;
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::system::{Answer, Outcome, System};
use crate::terminals::SYSTEM;
use alloc::rc::Rc;
use alloc::vec::Vec;
use vfs::FileSystem;

/// Most bytes of one call: all processes stand still meanwhile.
pub(super) const WHOLE_MAX: u64 = 32 << 20;

/// Pieces of [`PIECE_MAX`] together, behind the bytes that are done.
fn next(pieces: &[Piece], done: u64) -> Vec<Piece> {
    let (mut skipped, mut left) = (done, PIECE_MAX);
    let rest = pieces.iter().map(|(address, len)| {
        let from = skipped.min(*len);
        skipped -= from;
        let count = (len - from).min(left);
        left -= count;
        (address.wrapping_add(from), count)
    });
    rest.filter(|(_, count)| *count > 0).collect()
}

/// Whether a read of something waits for nothing, and takes from nobody.
pub(super) fn is_row(open: &Open) -> bool {
    matches!(open.object, Object::File { .. } | Object::Memory(_) | Object::Device { .. })
}

/// Most bytes of a write that are moved at once. None: it is one to a file, which gets more than that in one piece after the other.
#[inline]
pub(super) fn moved_at_once(open: &Open, wanted: u64) -> Option<u64> {
    match &open.object {
        Object::Terminal { number: SYSTEM, .. } | Object::Master { .. } => Some(TERMINAL_MAX as u64),
        Object::Inet(inet) if inet.is_stream() => Some(super::inet::PIECE),
        Object::File { .. } | Object::Memory(_) if wanted > PIECE_MAX => None,
        _ => Some(PIECE_MAX),
    }
}

/// Makes a call for one piece after the other, until one is done in part.
fn in_pieces(
    pieces: &[Piece],
    (wanted, at): (u64, Option<u64>),
    mut call: impl FnMut(&[Piece], Option<u64>) -> Answer,
) -> Answer {
    let mut done = 0;
    while done < wanted {
        let now = next(pieces, done);
        let len: u64 = now.iter().map(|piece| piece.1).sum();
        match call(&now, at.map(|at| at + done)) {
            Ok(Outcome::Value(count)) => {
                done += count;
                if count < len {
                    break;
                }
            }
            _ if done > 0 => break,
            other => return other,
        }
    }
    number(Ok(done))
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Reads more than is moved at once.
    #[cold]
    pub(super) fn read_whole(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        pieces: &[Piece],
        (wanted, at): (u64, Option<u64>),
    ) -> Answer {
        in_pieces(pieces, (wanted.min(WHOLE_MAX), at), |now, at| self.read_into(tid, open, now, at))
    }

    /// Writes more than is moved at once.
    #[cold]
    pub(super) fn write_whole(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        pieces: &[Piece],
        (wanted, at): (u64, Option<u64>),
    ) -> Answer {
        let wanted = self.limit_whole(tid, open, (wanted.min(WHOLE_MAX), at))?;
        in_pieces(pieces, (wanted, at), |now, at| self.write_from(tid, open, now, at))
    }

    /// How many of so many bytes a file may get: a limit in front of the last ones is no error.
    fn limit_whole(&mut self, tid: Tid, open: &Open, (wanted, at): (u64, Option<u64>)) -> Result<u64> {
        self.limit_write(tid, open, at, wanted as usize).map(|count| count as u64)
    }
}

#[cfg(test)]
mod tests;
