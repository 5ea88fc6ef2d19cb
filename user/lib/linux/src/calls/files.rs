//! Bytes of open files.

use super::fifo::Fifo;
use super::pieces::{Moved, Piece};
use super::pty::is_typed;
use super::stat::QUEUE_FILE_BYTES;
use super::whole::{is_row, moved_at_once};
use super::{done, number};
use crate::errno::{EAGAIN, EBADF, EFAULT, EINVAL, EISDIR, ENOENT, ENOSPC, EPIPE, ESPIPE, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::pipe::{End, ready};
use crate::process::Event;
use crate::signal::Cause;
use crate::socket::{READABLE, WRITABLE};
use crate::special::{Device, Special};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    self, IN_ACCESS, IN_MODIFY, O_APPEND, O_NONBLOCK, O_PATH, SIGPIPE, SIGTTIN, SIGTTOU,
};
use vfs::{FileSystem, Inode};

/// Most bytes that a call moves at once: a longer one moves fewer than were asked for.
pub(super) const PIECE_MAX: u64 = 1 << 20;

/// Most bytes of a file that go by way of the cache: more at once are read and written past it, as one piece.
const CACHED_MAX: u64 = 16 << 10;

/// Longest time in nanoseconds that a file waits for what was written to it.
pub(crate) const LATE_NS: u64 = 1_000_000_000;
/// Most bytes of one call to or from the terminal. A line of the machine is slow, and all processes stand still meanwhile.
pub(super) const TERMINAL_MAX: usize = 4096;

/// Bytes of the value of a counter.
const COUNTER_BYTES: u64 = 8;

/// Most bytes of one call in Linux.
const COUNT_MAX: u64 = 0x7fff_f000;

/// Outcome of taking bytes.
pub(super) enum Taken {
    /// So many; none at the end.
    Bytes(usize),
    /// None yet: again when something has happened, or at a time.
    Nothing(Option<u64>),
}

/// Copies what a text has from a position on, as far as there is room. Gives back how many bytes it were.
fn part_of(text: &[u8], position: u64, to: &mut [u8]) -> usize {
    let rest = usize::try_from(position).ok().and_then(|position| text.get(position..)).unwrap_or_default();
    let count = rest.len().min(to.len());
    to[..count].copy_from_slice(&rest[..count]);
    count
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The object behind a descriptor of a thread. `EBADF`: nothing is there, or a place alone (`O_PATH`), which is open for nothing.
    pub fn open_file(&mut self, tid: Tid, number: u64) -> Result<Rc<Open>> {
        let open = self.open_or_place(tid, number)?;
        if open.has(O_PATH) { Err(EBADF) } else { Ok(open) }
    }

    /// Finds a place, too: for calls that are about the descriptor or a name, and for those that look at the rights to what is open themselves.
    pub fn open_or_place(&mut self, tid: Tid, number: u64) -> Result<Rc<Open>> {
        let number = u32::try_from(number).map_err(|_| EBADF)?;
        Ok(self.process(tid)?.descriptors.get(number)?.open.clone())
    }

    /// Reads into pieces of memory, at a position or where the file stands.
    pub(super) fn read_into(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        pieces: &[Piece],
        at: Option<u64>,
    ) -> Answer {
        let wanted: u64 = pieces.iter().map(|piece| piece.1).sum();
        if !open.is_readable() {
            return Err(EBADF);
        }
        if wanted == 0 {
            return DONE;
        }
        if let Object::Terminal { number, .. } = open.object
            && let Some(stopped) = self.keep_from_terminal(tid, number, SIGTTIN)?
        {
            return Ok(stopped);
        }
        if let (Object::File { inode, .. }, [piece]) = (&open.object, pieces)
            && piece.1 <= CACHED_MAX
        {
            return self.read_cached(tid, open, *inode, *piece, at);
        }
        if let (Object::Reader(ends) | Object::Fifo(Fifo { ends, .. }), None) = (&open.object, at) {
            return self.read_pipe(tid, open, ends, (pieces, wanted));
        }
        if let (Object::Socket(socket), None) = (&open.object, at) {
            return self.read_socket(tid, open, socket, (pieces, wanted));
        }
        let (there, most) = self.to_be_read(open);
        let mut len = wanted.min(most);
        if there > 0 {
            // Bytes that are taken away are lost if they cannot be given to the process.
            let fits = self.fit(tid, pieces, len.min(there))?;
            if fits == 0 || fits < there && matches!(open.object, Object::Counter { .. }) {
                return Err(EFAULT);
            }
            len = if fits < len.min(there) { fits } else { len };
        } else if wanted > PIECE_MAX && is_row(open) {
            return self.read_whole(tid, open, pieces, (wanted, at));
        }
        let mut bytes = Moved::from_elem(0, len as usize);
        let count = match self.take(open, &mut bytes, at)? {
            Taken::Bytes(count) => count,
            Taken::Nothing(until) => return self.nothing_to_read(open, until),
        };
        let given = self.give(tid, pieces, &bytes[..count])?;
        let has_place = matches!(open.object, Object::File { .. } | Object::Text { .. } | Object::Memory(_));
        if given < count && at.is_none() && has_place {
            open.offset.set(open.offset.get().saturating_sub((count - given) as u64));
        }
        if given == 0 && count > 0 { Err(EFAULT) } else { number(Ok(given as u64)) }
    }

    /// Nothing can be read now: a read waits for it, if it may.
    pub(super) fn nothing_to_read(&self, open: &Open, until: Option<u64>) -> Answer {
        if open.has(O_NONBLOCK) { Err(EAGAIN) } else { Ok(Outcome::Wait(self.events_of(open), until)) }
    }

    /// Bytes that a read takes away for ever, and most bytes that it can have.
    fn to_be_read(&self, open: &Open) -> (u64, u64) {
        match &open.object {
            Object::Counter { value, .. } => (if value.get() > 0 { COUNTER_BYTES } else { 0 }, COUNTER_BYTES),
            Object::Terminal { number, .. } => {
                let line = self.terminals.get(*number);
                (line.map_or(0, |line| line.terminal.bytes_to_read() as u64), TERMINAL_MAX as u64)
            }
            _ => (0, PIECE_MAX),
        }
    }

    /// Reads a little of a file.
    fn read_cached(&mut self, tid: Tid, open: &Open, inode: Inode, piece: Piece, at: Option<u64>) -> Answer {
        let position = at.unwrap_or(open.offset.get());
        let room = self.room(tid)?;
        let count = self.store.read_cached(&mut room.borrow_mut().memory, inode, position, piece)?;
        self.let_mapped_files_go();
        if at.is_none() {
            open.offset.set(position + count);
        }
        if count > 0 {
            self.noticed(inode, IN_ACCESS);
        }
        number(Ok(count))
    }

    /// Overwrites a little of a file. Nothing if it has to become longer, or is to be written to at once, or only up to some byte.
    fn write_cached(&mut self, tid: Tid, open: &Open, piece: Piece, at: Option<u64>) -> Result<Option<u64>> {
        let Object::File { inode, .. } = &open.object else { return Ok(None) };
        if open.has(O_APPEND)
            || open.has(general::O_DSYNC)
            || piece.1 > CACHED_MAX
            || self.has_longest(tid)?
        {
            return Ok(None);
        }
        self.unmark(*inode)?;
        let position = at.unwrap_or(open.offset.get());
        let room = self.room(tid)?;
        let count = self.store.write_cached(&mut room.borrow_mut().memory, *inode, position, piece)?;
        self.let_mapped_files_go();
        if let Some(count) = count {
            if at.is_none() {
                open.offset.set(position + count);
            }
            if self.late_at.is_none() {
                self.late_at = Some(self.machine.now() + LATE_NS);
                self.times_changed = true;
            }
            self.noticed(*inode, IN_MODIFY);
        }
        Ok(count)
    }

    /// Takes bytes out of what is open.
    pub(super) fn take(&mut self, open: &Rc<Open>, to: &mut [u8], at: Option<u64>) -> Result<Taken> {
        let position = at.unwrap_or(open.offset.get());
        let advance = |count: usize| {
            if at.is_none() {
                open.offset.set(position + count as u64);
            }
            Ok(Taken::Bytes(count))
        };
        match &open.object {
            Object::File { inode, .. } => {
                let count = self.store.read_at(*inode, position, to)?;
                if count > 0 {
                    self.noticed(*inode, IN_ACCESS);
                }
                advance(count)
            }
            Object::Text { inode, .. } => advance(part_of(&self.text_of(*inode)?, position, to)),
            Object::Queue(queue) => advance(part_of(queue.text().as_bytes(), position, to)),
            Object::Memory(file) => advance(self.store.frames.read_object(file.object, position, to)),
            Object::Directory { .. } => Err(EISDIR),
            Object::Device { inode, .. } => self.read_device(*inode, to).map(Taken::Bytes),
            _ if at.is_some() => Err(ESPIPE),
            Object::Reader(ends) | Object::Fifo(Fifo { ends, .. }) => {
                let was_full = ends.pipe.borrow().poll(End::Write) & ready::WRITE == 0;
                let count = ends.pipe.borrow_mut().read(to);
                match count {
                    Ok(count) => {
                        // A thread that waits for room waits since there was too little of it for a write of any size.
                        if was_full {
                            self.happened(ends.number, ready::WRITE.into());
                        }
                        Ok(Taken::Bytes(count))
                    }
                    Err(EAGAIN) => Ok(Taken::Nothing(None)),
                    Err(error) => Err(error),
                }
            }
            Object::Terminal { number, .. } => self.read_terminal(*number, to),
            Object::Master { number, .. } => self.read_master(*number, to),
            Object::Counter { value, is_semaphore, number } => {
                if to.len() < 8 {
                    return Err(EINVAL);
                }
                let now = value.get();
                if now == 0 {
                    return Ok(Taken::Nothing(None));
                }
                let taken = if *is_semaphore { 1 } else { now };
                value.set(now - taken);
                to[..8].copy_from_slice(&taken.to_le_bytes());
                self.happened(*number, WRITABLE);
                Ok(Taken::Bytes(8))
            }
            Object::Socket(socket) => self.take_socket(socket, to),
            Object::Inet(inet) => self.take_inet(inet, to),
            Object::Netlink(socket) => self.take_netlink(socket, to),
            Object::Inotify(list) => self.take_notices(list, to),
            Object::Timer(timer) => self.take_expirations(timer, to),
            Object::Signals(list) => self.take_signals(list, to),
            Object::Epoll(_) | Object::Process(_) => Err(EINVAL),
            Object::Writer(_) | Object::Link(_) => Err(EBADF),
        }
    }

    /// Text of an open file of `/proc`.
    fn text_of(&self, inode: Inode) -> Result<Rc<[u8]>> {
        let special = Special::of(inode).ok_or(EINVAL)?;
        self.proc_text(special).map_err(|error| if error == ENOENT { ESRCH } else { error })
    }

    fn read_device(&mut self, inode: Inode, to: &mut [u8]) -> Result<usize> {
        match Special::of(inode) {
            Some(Special::Device(Device::Zero | Device::Full)) => to.fill(0),
            Some(Special::Device(Device::Random | Device::Urandom)) => self.machine.random(to),
            _ => return Ok(0),
        }
        Ok(to.len())
    }

    /// The event for which a thread waits that reads or writes.
    pub fn event_of(&self, open: &Open) -> Option<Event> {
        let ring = match &open.object {
            Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => ends.number,
            Object::Counter { number, .. } => *number,
            Object::Terminal { number, .. } | Object::Master { number, .. } => {
                return Some(Event::Terminal(*number));
            }
            Object::Socket(socket) => socket.number,
            Object::Inet(inet) => inet.number,
            Object::Netlink(socket) => socket.number,
            Object::Epoll(epoll) => epoll.number,
            Object::Timer(timer) => timer.number,
            Object::Inotify(list) => list.number,
            Object::Process(pidfd) => pidfd.number,
            Object::Queue(queue) => queue.number,
            Object::Signals(_) => return self.signal_event(),
            _ => return None,
        };
        Some(Event::Ring(ring))
    }

    /// Events for which a thread waits that reads or writes.
    pub fn events_of(&self, open: &Open) -> Vec<Event> {
        self.event_of(open).into_iter().collect()
    }

    /// Writes from pieces of memory, at a position or where the file stands.
    pub(super) fn write_from(
        &mut self,
        tid: Tid,
        open: &Rc<Open>,
        pieces: &[Piece],
        at: Option<u64>,
    ) -> Answer {
        let wanted: u64 = pieces.iter().map(|piece| piece.1).sum();
        if !open.is_writable() {
            return Err(EBADF);
        }
        if let [piece] = pieces
            && let Some(count) = self.write_cached(tid, open, *piece, at)?
        {
            return number(Ok(count));
        }
        if let (Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }), None) = (&open.object, at) {
            return self.write_pipe(tid, open, ends, (pieces, wanted));
        }
        if let Object::Terminal { number, .. } = open.object
            && self.stops_writers(number)
            && let Some(stopped) = self.keep_from_terminal(tid, number, SIGTTOU)?
        {
            return Ok(stopped);
        }
        let done = self.thread(tid)?.done;
        let Some(most) = moved_at_once(open, wanted) else {
            return self.write_whole(tid, open, pieces, (wanted, at));
        };
        let (mut bytes, is_there) = self.gather(tid, pieces, done, most)?;
        if !is_there && bytes.is_empty() {
            return if done > 0 { number(Ok(done)) } else { Err(EFAULT) };
        }
        bytes.truncate(self.limit_write(tid, open, at, bytes.len())?);
        let outcome = self.put(open, &bytes, at, done > 0);
        let count = match outcome {
            Err(EAGAIN) => 0,
            Err(EPIPE) if !is_stream(open) => return Err(EPIPE),
            Err(EPIPE) => {
                let pid = self.pid(tid)?;
                let _ = self.send_to_thread(tid, SIGPIPE, Cause::process(pid, 0));
                return if done > 0 { number(Ok(done)) } else { Err(EPIPE) };
            }
            Err(_) if done > 0 => return number(Ok(done)),
            other => other?,
        };
        let all = done + count as u64;
        let is_stuck = match open.object {
            Object::Terminal { .. } | Object::Master { .. } => count < bytes.len(),
            _ => outcome == Err(EAGAIN),
        };
        let goes_on = all < wanted && is_typed(open, bytes.len());
        let is_end = !is_stream(open) && !goes_on || !is_there && count == bytes.len();
        let is_whole = !is_stuck && is_end || all >= wanted;
        if is_whole {
            return number(Ok(all));
        }
        if open.has(O_NONBLOCK) {
            return if all > 0 { number(Ok(all)) } else { Err(EAGAIN) };
        }
        let timeout = super::sockets::send_timeout(open);
        let until = match timeout.map_or(Ok(None), |timeout| self.socket_deadline(tid, timeout)) {
            Err(error) => return if all > 0 { number(Ok(all)) } else { Err(error) },
            Ok(until) => until,
        };
        // A pipe takes all of it, when there is room.
        self.thread(tid)?.done = all;
        if goes_on && !is_stuck && self.ready(open) & WRITABLE != 0 {
            return Ok(Outcome::Wait(Vec::new(), Some(self.machine.now())));
        }
        Ok(Outcome::Wait(self.events_of(open), until))
    }

    /// Puts bytes into what is open: as many as it takes now. `goes_on`: these are the rest of a call.
    pub(super) fn put(
        &mut self,
        open: &Rc<Open>,
        from: &[u8],
        at: Option<u64>,
        goes_on: bool,
    ) -> Result<usize> {
        match &open.object {
            Object::File { inode, .. } => self.put_file(open, *inode, from, at),
            Object::Memory(file) => {
                let len = self.store.frames.object_len(file.object);
                let place = if open.has(O_APPEND) { len } else { at.unwrap_or(open.offset.get()) };
                let count = self.write_memory(file, place, from)?;
                if at.is_none() {
                    open.offset.set(place + count as u64);
                }
                Ok(count)
            }
            Object::Directory { .. } => Err(EISDIR),
            Object::Device { inode, .. } => match Special::of(*inode) {
                Some(Special::Device(Device::Full)) if !from.is_empty() => Err(ENOSPC),
                _ => Ok(from.len()),
            },
            Object::Text { inode, .. } => self.write_text(*inode, from),
            _ if at.is_some() => Err(ESPIPE),
            Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                let mut pipe = ends.pipe.borrow_mut();
                let count = if goes_on { pipe.write_rest(from) } else { pipe.write(from) }?;
                drop(pipe);
                self.happened(ends.number, ready::READ.into());
                Ok(count)
            }
            Object::Terminal { number, .. } => self.write_terminal(*number, from),
            Object::Master { number, .. } => self.write_master(*number, from),
            Object::Counter { value, number, .. } => {
                let bytes = from.get(..8).ok_or(EINVAL)?;
                let more = u64::from_le_bytes(bytes.try_into().map_err(|_| EINVAL)?);
                if more == u64::MAX {
                    return Err(EINVAL);
                }
                let sum = value.get().checked_add(more).filter(|sum| *sum < u64::MAX).ok_or(EAGAIN)?;
                value.set(sum);
                self.happened(*number, READABLE);
                Ok(8)
            }
            Object::Socket(socket) => self.put_socket(socket, from),
            Object::Inet(inet) => self.put_inet(inet, from),
            Object::Netlink(socket) => self.put_netlink(socket, from),
            Object::Epoll(_) | Object::Timer(_) | Object::Signals(_) => Err(EINVAL),
            Object::Process(_) | Object::Queue(_) => Err(EINVAL),
            Object::Reader(_) | Object::Inotify(_) | Object::Link(_) => Err(EBADF),
        }
    }

    /// Puts bytes into a file. A descriptor of `O_DSYNC`, which `O_SYNC` has within it, takes them when they are on the disk.
    fn put_file(&mut self, open: &Open, inode: Inode, from: &[u8], at: Option<u64>) -> Result<usize> {
        // Also with a position, as Linux has it.
        let position = match at {
            _ if open.has(O_APPEND) => self.store.volume.len(inode)?,
            Some(at) => at,
            None => open.offset.get(),
        };
        self.unmark(inode)?;
        let count = self.store.write_at(inode, position, from)?;
        if count == 0 && !from.is_empty() {
            return Err(ENOSPC);
        }
        self.noticed(inode, IN_MODIFY);
        if at.is_none() {
            open.offset.set(position + count as u64);
        }
        if count > 0 && open.has(general::O_DSYNC) {
            self.store.volume.sync(inode)?;
        }
        Ok(count)
    }
}

/// Whether a write goes on until all bytes are in, and somebody who writes without readers hears of it by a signal.
pub(super) fn is_stream(open: &Open) -> bool {
    match &open.object {
        Object::Writer(_) | Object::Fifo(_) => true,
        Object::Socket(socket) => socket.kind == crate::socket::Kind::Stream,
        Object::Inet(inet) => inet.is_stream(),
        _ => false,
    }
}

/// A position that a call names.
pub(super) fn position(at: u64) -> Result<u64> {
    if at > i64::MAX as u64 { Err(EINVAL) } else { Ok(at) }
}

/// Results that are errors: so many numbers below zero.
const ERRORS: u64 = 4095;

fn set_offset(open: &Open, to: u64) -> Answer {
    open.offset.set(to);
    number(Ok(to))
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_read(&mut self, tid: Tid, [fd, address, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        self.read_into(tid, &open, &[(address, len.min(COUNT_MAX))], None)
    }

    pub(crate) fn sys_write(&mut self, tid: Tid, [fd, address, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        self.write_from(tid, &open, &[(address, len.min(COUNT_MAX))], None)
    }

    pub(crate) fn sys_readv(&mut self, tid: Tid, [fd, address, count, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let pieces = self.pieces(tid, address, count)?;
        self.read_into(tid, &open, &pieces, None)
    }

    pub(crate) fn sys_writev(&mut self, tid: Tid, [fd, address, count, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let pieces = self.pieces(tid, address, count)?;
        self.write_from(tid, &open, &pieces, None)
    }

    pub(crate) fn sys_pread(&mut self, tid: Tid, [fd, address, len, at, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        self.read_into(tid, &open, &[(address, len.min(COUNT_MAX))], Some(position(at)?))
    }

    pub(crate) fn sys_pwrite(&mut self, tid: Tid, [fd, address, len, at, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        self.write_from(tid, &open, &[(address, len.min(COUNT_MAX))], Some(position(at)?))
    }

    pub(crate) fn sys_preadv(&mut self, tid: Tid, [fd, address, count, at, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let pieces = self.pieces(tid, address, count)?;
        self.read_into(tid, &open, &pieces, Some(position(at)?))
    }

    pub(crate) fn sys_pwritev(&mut self, tid: Tid, [fd, address, count, at, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let pieces = self.pieces(tid, address, count)?;
        self.write_from(tid, &open, &pieces, Some(position(at)?))
    }

    pub(crate) fn sys_lseek(&mut self, tid: Tid, [fd, offset, whence, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        let is_directory = matches!(open.object, Object::Directory { .. });
        let len = match &open.object {
            Object::File { inode, .. } => self.store.volume.len(*inode)?,
            Object::Memory(file) => self.store.frames.object_len(file.object),
            Object::Text { inode, .. } => self.text_of(*inode)?.len() as u64,
            Object::Queue(_) => QUEUE_FILE_BYTES,
            Object::Directory { .. } => 0,
            Object::Device { .. } | Object::Epoll(_) | Object::Timer(_) | Object::Signals(_) => return DONE,
            _ => return Err(ESPIPE),
        };
        let base = match whence as u32 {
            // Places in directories are whatever the file system makes of them, but for numbers that are errors.
            general::SEEK_SET if is_directory && offset < u64::MAX - ERRORS => {
                return set_offset(&open, offset);
            }
            general::SEEK_SET => 0,
            general::SEEK_CUR if is_directory && offset == 0 => return set_offset(&open, open.offset.get()),
            general::SEEK_CUR => open.offset.get(),
            general::SEEK_END => len,
            general::SEEK_DATA if offset < len => return set_offset(&open, offset),
            general::SEEK_HOLE if offset < len => return set_offset(&open, len),
            general::SEEK_DATA | general::SEEK_HOLE => return Err(crate::errno::ENXIO),
            _ => return Err(EINVAL),
        };
        let to = base.checked_add_signed(offset as i64).filter(|to| *to <= i64::MAX as u64).ok_or(EINVAL)?;
        set_offset(&open, to)
    }

    pub(crate) fn sys_ftruncate(&mut self, tid: Tid, [fd, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        match &open.object {
            Object::File { inode, .. } if open.is_writable() && len <= i64::MAX as u64 => {
                let before = self.store.volume.len(*inode)?;
                self.check_length(tid, before, len)?;
                self.unmark(*inode)?;
                self.store.truncate(*inode, len)?;
                self.noticed(*inode, IN_MODIFY);
                DONE
            }
            Object::Memory(file) if len <= i64::MAX as u64 => {
                self.check_length(tid, self.store.frames.object_len(file.object), len)?;
                done(self.truncate_memory(file, len))
            }
            _ => Err(EINVAL),
        }
    }
}
