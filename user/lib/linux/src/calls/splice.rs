//! Bytes that go from one descriptor to another and not through memory of the process: `splice`, `tee`, `vmsplice`, `copy_file_range`, `sendfile`.

use super::files::{PIECE_MAX, Taken, is_stream, position};
use super::number;
use crate::errno::{EAGAIN, EBADF, EINVAL, EISDIR, EOPNOTSUPP, EPIPE, ESPIPE, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open, PipeEnds};
use crate::signal::Cause;
use crate::system::{Answer, DONE, Outcome, System};
use crate::terminals::SYSTEM;
use alloc::rc::Rc;
use alloc::vec;
use linux_raw_sys::general::{
    O_APPEND, O_NONBLOCK, RWF_DSYNC, RWF_HIPRI, RWF_SYNC, SIGPIPE, SPLICE_F_GIFT, SPLICE_F_MORE,
    SPLICE_F_MOVE, SPLICE_F_NONBLOCK,
};
use vfs::FileSystem;

/// Flags of calls about pipes.
const FLAGS: u32 = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;

/// A descriptor of a call, and where the position in it is that the call names; none: the file's own.
#[derive(Clone, Copy, Debug)]
struct Side<'a> {
    open: &'a Rc<Open>,
    position_at: u64,
}

/// The pipe that is open, if it is one.
fn pipe_of(open: &Open) -> Option<&Rc<PipeEnds>> {
    match &open.object {
        Object::Reader(ends) | Object::Writer(ends) => Some(ends),
        Object::Fifo(fifo) => Some(&fifo.ends),
        _ => None,
    }
}

fn checked(flags: u64) -> Result<bool> {
    if flags as u32 & !FLAGS != 0 { Err(EINVAL) } else { Ok(flags as u32 & SPLICE_F_NONBLOCK != 0) }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_splice(
        &mut self,
        tid: Tid,
        [from, from_at, to, to_at, len, flags]: [u64; 6],
    ) -> Answer {
        let has_no_time = checked(flags)?;
        if len == 0 {
            return DONE;
        }
        let (source, target) = self.both(tid, from, to)?;
        let from = Side { open: &source, position_at: from_at };
        let to = Side { open: &target, position_at: to_at };
        let sides = [from, to].map(|side| (pipe_of(side.open), side.position_at));
        if sides.iter().any(|(pipe, position_at)| pipe.is_some() && *position_at != 0) {
            return Err(ESPIPE);
        }
        match sides.map(|(pipe, _)| pipe) {
            [None, None] => Err(EINVAL),
            [Some(pipe), Some(other)] if pipe.number == other.number => Err(EINVAL),
            [_, Some(pipe)] if pipe.pipe.borrow().ends().0 == 0 => self.tell_broken(tid),
            [None, Some(pipe)] => self.fill_pipe(tid, pipe, [from, to], len, has_no_time),
            [Some(pipe), _] => self.drain_pipe(tid, pipe, [from, to], len, has_no_time),
        }
    }

    /// Descriptors from which bytes come and to which they go.
    fn both(&mut self, tid: Tid, from: u64, to: u64) -> Result<(Rc<Open>, Rc<Open>)> {
        let (from, to) = (self.open_file(tid, from)?, self.open_file(tid, to)?);
        if !from.is_readable() || !to.is_writable() {
            return Err(EBADF);
        }
        Ok((from, to))
    }

    /// Nobody reads what a call writes: its thread hears so by a signal, too.
    pub(super) fn tell_broken(&mut self, tid: Tid) -> Answer {
        let pid = self.pid(tid)?;
        let _ = self.send_to_thread(tid, SIGPIPE, Cause::process(pid, 0));
        Err(EPIPE)
    }

    /// Position of a side: the one that the call names, if it names one.
    fn position_of(&mut self, tid: Tid, side: Side) -> Result<Option<u64>> {
        match side.position_at {
            0 => Ok(None),
            at => Ok(Some(position(self.words::<1>(tid, at)?[0])?)),
        }
    }

    /// Takes note of how far a side is.
    fn move_position(&mut self, tid: Tid, side: Side, before: Option<u64>, by: usize) -> Result<()> {
        match before {
            Some(before) => self.write_words(tid, side.position_at, &[before + by as u64]),
            None => Ok(()),
        }
    }

    /// Moves bytes into a pipe: as many as it has room for.
    fn fill_pipe(
        &mut self,
        tid: Tid,
        pipe: &Rc<PipeEnds>,
        [from, to]: [Side; 2],
        len: u64,
        has_no_time: bool,
    ) -> Answer {
        let room = pipe.pipe.borrow().room() as u64;
        if room == 0 {
            return wait(self, to, has_no_time);
        }
        let at = self.position_of(tid, from)?;
        let mut bytes = vec![0; len.min(room).min(PIECE_MAX) as usize];
        let count = match self.take(from.open, &mut bytes, at)? {
            Taken::Bytes(count) => count,
            Taken::Nothing(_) => return wait(self, from, has_no_time),
        };
        if count > 0 {
            self.put(to.open, &bytes[..count], None, true)?;
        }
        self.move_position(tid, from, at, count)?;
        number(Ok(count as u64))
    }

    /// Moves bytes out of a pipe: as many as the other side takes.
    fn drain_pipe(
        &mut self,
        tid: Tid,
        pipe: &Rc<PipeEnds>,
        [from, to]: [Side; 2],
        len: u64,
        has_no_time: bool,
    ) -> Answer {
        if to.open.has(O_APPEND) {
            return Err(EINVAL);
        }
        let at = self.position_of(tid, to)?;
        let mut bytes = vec![0; len.min(pipe.pipe.borrow().len() as u64) as usize];
        if bytes.is_empty() {
            return self.nothing_in(pipe, from, has_no_time);
        }
        pipe.pipe.borrow().peek(&mut bytes);
        bytes.truncate(self.limit_write(tid, to.open, at, bytes.len())?);
        let count = match self.put(to.open, &bytes, at, true) {
            Err(EAGAIN) => return wait(self, to, has_no_time),
            Err(EPIPE) if is_stream(to.open) => return self.tell_broken(tid),
            count => count?,
        };
        // They are the other side's now.
        self.take(from.open, &mut bytes[..count], None)?;
        self.move_position(tid, to, at, count)?;
        number(Ok(count as u64))
    }

    fn nothing_in(&mut self, pipe: &Rc<PipeEnds>, from: Side, has_no_time: bool) -> Answer {
        if pipe.pipe.borrow().ends().1 == 0 { DONE } else { wait(self, from, has_no_time) }
    }

    pub(crate) fn sys_tee(&mut self, tid: Tid, [from, to, len, flags, ..]: [u64; 6]) -> Answer {
        let has_no_time = checked(flags)?;
        if len == 0 {
            return DONE;
        }
        let (source, target) = self.both(tid, from, to)?;
        let [from, to] = [&source, &target].map(|open| Side { open, position_at: 0 });
        let (Some(pipe), Some(other)) = (pipe_of(&source), pipe_of(&target)) else { return Err(EINVAL) };
        if pipe.number == other.number {
            return Err(EINVAL);
        }
        if other.pipe.borrow().ends().0 == 0 {
            return self.tell_broken(tid);
        }
        let (there, room) = (pipe.pipe.borrow().len(), other.pipe.borrow().room());
        if there == 0 {
            return self.nothing_in(pipe, from, has_no_time);
        }
        if room == 0 {
            return wait(self, to, has_no_time);
        }
        let mut bytes = vec![0; len.min(there.min(room) as u64) as usize];
        pipe.pipe.borrow().peek(&mut bytes);
        number(self.put(to.open, &bytes, None, true).map(|count| count as u64))
    }

    /// Memory of the process goes into a pipe, or comes out of it, by copies.
    pub(crate) fn sys_vmsplice(&mut self, tid: Tid, [fd, pieces, count, flags, ..]: [u64; 6]) -> Answer {
        checked(flags)?;
        let open = self.open_file(tid, fd)?;
        match pipe_of(&open) {
            None => Err(EBADF),
            Some(_) if open.is_writable() => self.sys_writev(tid, [fd, pieces, count, 0, 0, 0]),
            Some(_) => self.sys_readv(tid, [fd, pieces, count, 0, 0, 0]),
        }
    }

    pub(crate) fn sys_preadv2(
        &mut self,
        tid: Tid,
        [fd, address, count, at, high, flags]: [u64; 6],
    ) -> Answer {
        check_flags(flags)?;
        match at {
            u64::MAX => self.sys_readv(tid, [fd, address, count, 0, 0, 0]),
            _ => self.sys_preadv(tid, [fd, address, count, at, high, 0]),
        }
    }

    pub(crate) fn sys_pwritev2(
        &mut self,
        tid: Tid,
        [fd, address, count, at, high, flags]: [u64; 6],
    ) -> Answer {
        check_flags(flags)?;
        let written = match at {
            u64::MAX => self.sys_writev(tid, [fd, address, count, 0, 0, 0]),
            _ => self.sys_pwritev(tid, [fd, address, count, at, high, 0]),
        };
        self.synced(tid, fd, flags as u32, written)
    }

    /// Copies from a file to what takes bytes. Programs go on with reads and writes where it cannot be done.
    pub(crate) fn sys_sendfile(&mut self, tid: Tid, [to, from, at, count, ..]: [u64; 6]) -> Answer {
        let named = if at == 0 { None } else { Some(self.words::<1>(tid, at)?[0]) };
        let source = self.open_file(tid, from)?;
        if !source.is_readable() {
            return Err(EBADF);
        }
        let is_row = matches!(source.object, Object::File { .. } | Object::Memory(_));
        if named.is_some() && self.event_of(&source).is_some() {
            return Err(ESPIPE);
        }
        let named = named.map(position).transpose()?;
        let target = self.open_file(tid, to)?;
        if !target.is_writable() {
            return Err(EBADF);
        }
        let may_wait = match target.object {
            Object::Master { .. } => true,
            Object::Terminal { number, .. } => number != SYSTEM,
            _ => false,
        };
        if !is_row || may_wait {
            return Err(EINVAL);
        }
        if count == 0 {
            return DONE;
        }
        let from = Side { open: &source, position_at: at };
        let to = Side { open: &target, position_at: 0 };
        match pipe_of(&target) {
            Some(pipe) if pipe.pipe.borrow().ends().0 == 0 => self.tell_broken(tid),
            Some(pipe) => self.fill_pipe(tid, pipe, [from, to], count, false),
            None => self.send_piece(tid, [from, to], named, count),
        }
    }

    /// Copies from a file to something that is no pipe, from a position on or where the file stands.
    fn send_piece(&mut self, tid: Tid, [from, to]: [Side; 2], named: Option<u64>, count: u64) -> Answer {
        let start = named.unwrap_or(from.open.offset.get());
        let mut bytes = vec![0; count.min(PIECE_MAX) as usize];
        let Taken::Bytes(found) = self.take(from.open, &mut bytes, Some(start))? else { return Err(EINVAL) };
        bytes.truncate(self.limit_write(tid, to.open, None, found)?);
        if found == 0 {
            return DONE;
        }
        let is_socket = matches!(to.open.object, Object::Socket(_) | Object::Inet(_));
        let count = match self.put(to.open, &bytes, None, false) {
            Err(EAGAIN) if is_socket => return wait(self, to, false),
            Err(EPIPE) if is_stream(to.open) => return self.tell_broken(tid),
            count => count?,
        };
        self.move_position(tid, from, named, count)?;
        if named.is_none() {
            from.open.offset.set(start + count as u64);
        }
        number(Ok(count as u64))
    }

    pub(crate) fn sys_copy_file_range(
        &mut self,
        tid: Tid,
        [from, from_at, to, to_at, len, flags]: [u64; 6],
    ) -> Answer {
        if flags != 0 {
            return Err(EINVAL);
        }
        let (source, target) = self.both(tid, from, to)?;
        if target.has(O_APPEND) {
            return Err(EBADF);
        }
        for open in [&source, &target] {
            match open.object {
                Object::File { .. } | Object::Memory(_) => {}
                Object::Directory { .. } => return Err(EISDIR),
                _ => return Err(EINVAL),
            }
        }
        let from = Side { open: &source, position_at: from_at };
        let to = Side { open: &target, position_at: to_at };
        let (named, other) = (self.position_of(tid, from)?, self.position_of(tid, to)?);
        let [begin, end] =
            [(named, from), (other, to)].map(|(at, side)| at.unwrap_or(side.open.offset.get()));
        let is_same = source.file().is_some() && source.file() == target.file();
        if is_same && begin < end.saturating_add(len) && end < begin.saturating_add(len) {
            return Err(EINVAL);
        }
        let mut bytes = vec![0; len.min(PIECE_MAX) as usize];
        let Taken::Bytes(found) = self.take(from.open, &mut bytes, Some(begin))? else { return Err(EINVAL) };
        bytes.truncate(self.limit_write(tid, to.open, Some(end), found)?);
        let count = if found > 0 { self.put(to.open, &bytes, Some(end), false)? } else { 0 };
        for (side, at, before) in [(from, named, begin), (to, other, end)] {
            self.move_position(tid, side, at, count)?;
            if at.is_none() {
                side.open.offset.set(before + count as u64);
            }
        }
        number(Ok(count as u64))
    }
}

/// Fails for flags of reads and writes that have an effect which calls cannot have here.
pub(super) fn check_flags(flags: u64) -> Result<()> {
    if flags as u32 & !(RWF_HIPRI | RWF_DSYNC | RWF_SYNC) != 0 { Err(EOPNOTSUPP) } else { Ok(()) }
}

/// Waits at a side, if there is time.
fn wait<M: Machine, B: Bytes, F: FileSystem>(
    system: &System<M, B, F>,
    side: Side,
    has_no_time: bool,
) -> Answer {
    if has_no_time || side.open.has(O_NONBLOCK) {
        return Err(EAGAIN);
    }
    Ok(Outcome::Wait(system.events_of(side.open), None))
}

#[cfg(test)]
mod tests;
