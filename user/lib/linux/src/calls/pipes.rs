//! Bytes of pipes: they go from the memory of a process to that of another by way of the pipe's pages, and are nowhere else between.

use super::number;
use super::pieces::Piece;
use crate::errno::{EAGAIN, EFAULT, EPIPE, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Open, PipeEnds};
use crate::pipe::{End, ready};
use crate::signal::Cause;
use crate::system::{Answer, Outcome, System};
use linux_raw_sys::general::{O_NONBLOCK, SIGPIPE};
use vfs::FileSystem;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Reads what a pipe has into pieces of memory, which have `wanted` bytes. Bytes for which there is no memory stay in the pipe.
    pub(super) fn read_pipe(
        &mut self,
        tid: Tid,
        open: &Open,
        ends: &PipeEnds,
        (pieces, wanted): (&[Piece], u64),
    ) -> Answer {
        if ends.pipe.borrow().is_dry() {
            return self.nothing_to_read(open, None);
        }
        let len = usize::try_from(wanted).unwrap_or(usize::MAX);
        let (was_full, has_bytes) = {
            let pipe = ends.pipe.borrow();
            (pipe.poll(End::Write) & ready::WRITE == 0, !pipe.is_empty())
        };
        let room = self.room(tid)?;
        let count = {
            let (store, memory) = (&mut self.store, &mut room.borrow_mut().memory);
            let take = |done: usize, bytes: &[u8]| store.scatter(memory, pieces, done as u64, bytes);
            ends.pipe.borrow_mut().read_to(len, take)?
        };
        if count == 0 && has_bytes {
            return Err(EFAULT);
        }
        // A thread that waits for room waits since there was too little of it for a write of any size.
        if was_full && count > 0 {
            self.happened(ends.number, ready::WRITE.into());
        }
        number(Ok(count as u64))
    }

    /// Writes pieces of memory, which have `wanted` bytes, into a pipe: all of them, unless it is not to wait.
    pub(super) fn write_pipe(
        &mut self,
        tid: Tid,
        open: &Open,
        ends: &PipeEnds,
        (pieces, wanted): (&[Piece], u64),
    ) -> Answer {
        let done = self.thread(tid)?.done;
        let (count, is_there) = match self.put_pieces(tid, ends, (pieces, wanted), done) {
            Err(EAGAIN) => (0, true),
            Err(_) if done > 0 => return number(Ok(done)),
            other => other?,
        };
        let all = done + count;
        match all {
            0 if !is_there => Err(EFAULT),
            _ if all >= wanted || !is_there => number(Ok(all)),
            0 if open.has(O_NONBLOCK) => Err(EAGAIN),
            _ if open.has(O_NONBLOCK) => number(Ok(all)),
            _ => {
                // It takes all of it, when there is room.
                self.thread(tid)?.done = all;
                Ok(Outcome::Wait(self.events_of(open), None))
            }
        }
    }

    /// Puts bytes of pieces of memory behind the first `done` into a pipe, as many as it takes now. How many, and whether there was memory for all that it would have taken.
    fn put_pieces(
        &mut self,
        tid: Tid,
        ends: &PipeEnds,
        (pieces, wanted): (&[Piece], u64),
        done: u64,
    ) -> Result<(u64, bool)> {
        let len = usize::try_from(wanted - done).unwrap_or(usize::MAX);
        let room = self.room(tid)?;
        let mut is_there = true;
        let put = {
            let (store, memory) = (&mut self.store, &mut room.borrow_mut().memory);
            ends.pipe.borrow_mut().write_from(len, done > 0, |by, place| {
                let found = store.gather(memory, pieces, done + by as u64, place);
                is_there = found == place.len();
                found
            })
        };
        match put {
            Err(EPIPE) => {
                let pid = self.pid(tid)?;
                let _ = self.send_to_thread(tid, SIGPIPE, Cause::process(pid, 0));
            }
            Ok(1..) => self.happened(ends.number, ready::READ.into()),
            _ => {}
        }
        Ok((put? as u64, is_there))
    }
}
