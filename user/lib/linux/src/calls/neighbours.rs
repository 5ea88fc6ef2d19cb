//! Calls that look into another process: its memory, and whether two have something in common.

use super::files::PIECE_MAX;
use super::number;
use super::pieces::Piece;
use super::whole::WHOLE_MAX;
use crate::errno::{EACCES, EFAULT, EINVAL, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::system::{Answer, DONE, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use vfs::FileSystem;

/// Kinds of things that `kcmp` compares: an open file, memory; and from the table of descriptors to semaphores others of a process.
const FILE: u32 = 0;
/// See [`FILE`].
const MEMORY: u32 = 1;
/// See [`FILE`].
const DESCRIPTORS: u32 = 2;
/// See [`FILE`].
const SEMAPHORES: u32 = 6;

/// Pieces of memory behind the first so many bytes.
fn behind(pieces: &[Piece], skipped: u64) -> Vec<Piece> {
    let mut skipped = skipped;
    let rest = |(at, len): &Piece| {
        let gone = skipped.min(*len);
        skipped -= gone;
        (at.wrapping_add(gone), len - gone)
    };
    pieces.iter().map(rest).collect()
}

fn bytes(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|(_, len)| len).sum()
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_process_vm_readv(&mut self, tid: Tid, arguments: [u64; 6]) -> Answer {
        let Some((other, own, theirs)) = self.pieces_of_both(tid, arguments)? else { return DONE };
        self.move_pieces((other, &theirs), (tid, &own))
    }

    pub(crate) fn sys_process_vm_writev(&mut self, tid: Tid, arguments: [u64; 6]) -> Answer {
        let Some((other, own, theirs)) = self.pieces_of_both(tid, arguments)? else { return DONE };
        self.move_pieces((tid, &own), (other, &theirs))
    }

    /// A thread of the other process, and pieces of memory here and there. None if there are no bytes here.
    #[expect(clippy::type_complexity, reason = "a pair of lists, taken apart at once")]
    fn pieces_of_both(
        &mut self,
        tid: Tid,
        [pid, own, own_count, theirs, their_count, flags]: [u64; 6],
    ) -> Result<Option<(Tid, Vec<Piece>, Vec<Piece>)>> {
        if flags != 0 {
            return Err(EINVAL);
        }
        let own = self.pieces(tid, own, own_count)?;
        let theirs = self.pieces(tid, theirs, their_count)?;
        if bytes(&own) == 0 || bytes(&theirs) == 0 {
            return Ok(None);
        }
        let other = self.inspected(tid, pid)?;
        Ok(Some((other, own, theirs)))
    }

    /// A thread, of a process into which another thread may look.
    fn inspected(&mut self, tid: Tid, number: u64) -> Result<Tid> {
        let other = number as u32;
        let pid = self.pid(other)?;
        self.may_inspect(tid, pid).map_err(|error| if error == EACCES { EPERM } else { error })?;
        Ok(other)
    }

    /// Moves bytes from pieces of one thread's memory to another's, up to where there is none, and at most so many as a call may move.
    fn move_pieces(&mut self, from: (Tid, &[Piece]), to: (Tid, &[Piece])) -> Answer {
        let total = bytes(from.1).min(bytes(to.1)).min(WHOLE_MAX);
        let mut done = 0;
        while done < total {
            let (found, is_all) = self.gather(from.0, from.1, done, (total - done).min(PIECE_MAX))?;
            let given = self.give(to.0, &behind(to.1, done), &found)?;
            done += given as u64;
            if given < found.len() || !is_all {
                break;
            }
        }
        if done == 0 { Err(EFAULT) } else { number(Ok(done)) }
    }

    pub(crate) fn sys_kcmp(&mut self, tid: Tid, [one, other, kind, first, second, _]: [u64; 6]) -> Answer {
        let [one, other] = [self.inspected(tid, one)?, self.inspected(tid, other)?];
        let [one_pid, other_pid] = [self.pid(one)?, self.pid(other)?];
        let order = match kind as u32 {
            FILE => {
                let one = self.open_or_place(one, (first as u32).into())?;
                let other = self.open_or_place(other, (second as u32).into())?;
                Rc::as_ptr(&one).cmp(&Rc::as_ptr(&other))
            }
            MEMORY => Rc::as_ptr(&self.room(one)?).cmp(&Rc::as_ptr(&self.room(other)?)),
            // No process shares these with another one.
            DESCRIPTORS..=SEMAPHORES => one_pid.cmp(&other_pid),
            _ => return Err(EINVAL),
        };
        number(Ok(match order {
            Ordering::Equal => 0,
            Ordering::Less => 1,
            Ordering::Greater => 2,
        }))
    }
}

#[cfg(test)]
mod tests;
