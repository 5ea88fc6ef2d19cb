//! Pipes: bytes on their way from writers to readers, in pages. A pipe that was written to keeps one of them; the others are there only while they hold something.
//!
//! Nothing waits in here: a call that would have to wait is `EAGAIN`, and the caller makes it again when the other end has done something. A write of up to
//! [`ATOMIC_BYTES`] is never taken apart.

use crate::budget::{Budget, Share};
use crate::errno::{EAGAIN, EBUSY, EINVAL, ENFILE, EPERM, EPIPE, Errno, Result};
use crate::frames::PAGE;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use linux_raw_sys::general;

/// Most bytes of a write that goes into a pipe whole or not at all: `PIPE_BUF`.
pub const ATOMIC_BYTES: usize = general::PIPE_BUF as usize;

/// Bytes that a new pipe holds.
pub const SIZE: usize = 64 << 10;

/// Most bytes that a pipe can be made to hold.
pub const SIZE_MAX: usize = 1 << 20;

const PAGE_BYTES: usize = PAGE as usize;

/// Bits of `poll` that concern pipes.
pub mod ready {
    use linux_raw_sys::general;

    /// There are bytes to read.
    pub const READ: u16 = (general::POLLIN | general::POLLRDNORM) as u16;
    /// A write of [`super::ATOMIC_BYTES`] does not wait.
    pub const WRITE: u16 = (general::POLLOUT | general::POLLWRNORM) as u16;
    /// There are no writers.
    pub const HUNG_UP: u16 = general::POLLHUP as u16;
    /// There are no readers.
    pub const BROKEN: u16 = general::POLLERR as u16;
}

/// One of the ends of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The end from which bytes come.
    Read,
    /// The end into which bytes go.
    Write,
}

/// A pipe.
#[derive(Debug)]
pub struct Pipe {
    /// Pages with bytes, in order. All but the first and the last are full; none is empty but the only one.
    pages: VecDeque<Box<[u8]>>,
    /// Bytes of the first page that have been read.
    first: usize,
    len: usize,
    size: usize,
    readers: u32,
    writers: u32,
    /// How often each end was opened.
    opened: [u64; 2],
    share: Option<Share>,
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe::new()
    }
}

impl Pipe {
    /// An empty pipe without readers and writers: each end is to be opened.
    pub const fn new() -> Pipe {
        let (readers, writers, opened) = (0, 0, [0; 2]);
        Pipe { pages: VecDeque::new(), first: 0, len: 0, size: SIZE, readers, writers, opened, share: None }
    }

    /// An empty pipe within a budget. It holds [`SIZE`], or a page if there is not so much left. `ENFILE`: not even that.
    pub fn within(budget: &Budget) -> Result<Pipe> {
        let mut sizes = [SIZE, PAGE_BYTES].into_iter();
        let (size, share) = sizes.find_map(|size| Some((size, budget.take(size)?))).ok_or(ENFILE)?;
        Ok(Pipe { size, share: Some(share), ..Pipe::new() })
    }

    fn users(&mut self, end: End) -> &mut u32 {
        match end {
            End::Read => &mut self.readers,
            End::Write => &mut self.writers,
        }
    }

    /// One more open file of an end.
    pub fn open(&mut self, end: End) {
        let users = self.users(end);
        *users = users.saturating_add(1);
        self.opened[end as usize] += 1;
    }

    /// One open file less of an end. Whether it was the last one, so that all who wait at the other end have to look again.
    /// Bytes that nobody can read any more are given back.
    pub fn close(&mut self, end: End) -> bool {
        let users = self.users(end);
        let was_last = *users == 1;
        *users = users.saturating_sub(1);
        if self.readers == 0 && self.writers == 0 {
            (self.pages, self.first, self.len) = (VecDeque::new(), 0, 0);
        }
        was_last
    }

    /// How often an end was opened so far.
    pub fn opened(&self, end: End) -> u64 {
        self.opened[end as usize]
    }

    /// Open files of the two ends: readers, writers.
    pub fn ends(&self) -> (u32, u32) {
        (self.readers, self.writers)
    }

    /// Bytes that can be read: `FIONREAD`.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether a read has to wait: nothing is there, and somebody may still write.
    pub fn is_dry(&self) -> bool {
        self.len == 0 && self.writers > 0
    }

    /// Whether nothing can be read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that it holds at most: `F_GETPIPE_SZ`.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Pages of memory that it takes now.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Bytes that can be written.
    pub fn room(&self) -> usize {
        self.size - self.len
    }

    /// Begins to write. Bytes that went in: fewer than there are only if there are more than [`ATOMIC_BYTES`]; [`Pipe::write_rest`] is for the others.
    ///
    /// `EPIPE`: nobody reads, and the writer is to get `SIGPIPE`. `EAGAIN`: no room now.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.write_from(bytes.len(), false, copied(bytes))
    }

    /// Goes on with a write of more than [`ATOMIC_BYTES`], the rest of which may be taken apart however short it is.
    /// Errors are those of [`Pipe::write`].
    pub fn write_rest(&mut self, bytes: &[u8]) -> Result<usize> {
        self.write_from(bytes.len(), true, copied(bytes))
    }

    /// Writes up to `len` bytes from wherever they are: `fill` is told how many it has filled so far, fills a place, and says how many of its bytes it has.
    /// If those are fewer than the place has, they are the last ones.
    ///
    /// `goes_on`: it is [`Pipe::write_rest`], and not [`Pipe::write`]; errors are those of the two.
    pub fn write_from(
        &mut self,
        len: usize,
        goes_on: bool,
        mut fill: impl FnMut(usize, &mut [u8]) -> usize,
    ) -> Result<usize> {
        if len == 0 {
            return Ok(0);
        }
        if self.readers == 0 {
            return Err(EPIPE);
        }
        let is_whole = len <= ATOMIC_BYTES && !goes_on;
        let count = len.min(self.room());
        if count == 0 || is_whole && count < len {
            return Err(EAGAIN);
        }
        self.provide(count)?;
        let mut done = 0;
        while done < count {
            let end = self.first + self.len;
            let page = &mut self.pages[end / PAGE_BYTES][end % PAGE_BYTES..];
            let place = page.len().min(count - done);
            let filled = fill(done, &mut page[..place]);
            self.len += filled;
            done += filled;
            if filled < place {
                self.give_up_empty();
                break;
            }
        }
        Ok(done)
    }

    /// Gets pages for more bytes. All are there before the first byte is, so that a failure loses nothing.
    fn provide(&mut self, more: usize) -> Result<()> {
        let pages = (self.first + self.len + more).div_ceil(PAGE_BYTES);
        let before = self.pages.len();
        while self.pages.len() < pages {
            match page() {
                Ok(page) if self.pages.try_reserve(1).is_ok() => self.pages.push_back(page),
                _ => {
                    self.pages.truncate(before);
                    return Err(Errno::NO_MEMORY);
                }
            }
        }
        Ok(())
    }

    /// Gives up pages without bytes, but for the only one.
    #[cold]
    fn give_up_empty(&mut self) {
        let used = (self.first + self.len).div_ceil(PAGE_BYTES);
        self.pages.truncate(used.max(1));
    }

    /// Reads what there is. None are left if all writers are gone and everything has been read.
    ///
    /// `EAGAIN`: nothing now.
    pub fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        self.read_to(to.len(), |done, bytes| {
            to[done..done + bytes.len()].copy_from_slice(bytes);
            bytes.len()
        })
    }

    /// Reads up to `len` bytes to wherever they go: `take` is told how many it has taken so far, takes some, and says how many it could take. If those are fewer
    /// than it was given, they are the last ones, and the others stay.
    pub fn read_to(&mut self, len: usize, mut take: impl FnMut(usize, &[u8]) -> usize) -> Result<usize> {
        if len == 0 || self.len == 0 && self.writers == 0 {
            return Ok(0);
        }
        if self.len == 0 {
            return Err(EAGAIN);
        }
        let mut done = 0;
        while done < len && self.len > 0 {
            let Some(page) = self.pages.front() else { break };
            let rest = &page[self.first..];
            let count = rest.len().min(self.len).min(len - done);
            let taken = take(done, &rest[..count]);
            done += taken;
            self.let_go(taken);
            if taken < count {
                break;
            }
        }
        Ok(done)
    }

    /// Forgets bytes of the first page, which were read.
    fn let_go(&mut self, count: usize) {
        self.len -= count;
        self.first += count;
        if self.len == 0 {
            // The next byte finds a page.
            self.pages.truncate(1);
            self.pages.shrink_to(1);
            self.first = 0;
        } else if self.first == PAGE_BYTES {
            self.pages.pop_front();
            self.first = 0;
        }
    }

    /// Reads what there is, and leaves it there. How many bytes it was.
    pub fn peek(&self, to: &mut [u8]) -> usize {
        let mut done = 0;
        let mut skip = self.first;
        for page in &self.pages {
            let rest = page.get(skip..).unwrap_or_default();
            let count = rest.len().min(to.len().min(self.len) - done);
            to[done..done + count].copy_from_slice(&rest[..count]);
            (done, skip) = (done + count, 0);
        }
        done
    }

    /// Makes the pipe hold so many bytes, rounded up to a power of two of pages: `F_SETPIPE_SZ`. How many it is then.
    ///
    /// `EPERM`: more than [`SIZE_MAX`], or than its budget has left. `EBUSY`: more bytes are in it. `EINVAL`: no pipe is as large.
    pub fn resize(&mut self, bytes: u64) -> Result<usize> {
        if bytes == 0 || bytes > 1 << 31 {
            return Err(EINVAL);
        }
        let size = (bytes as usize).max(PAGE_BYTES).next_power_of_two();
        if size > SIZE_MAX && size > self.size {
            return Err(EPERM);
        }
        if size < self.len {
            return Err(EBUSY);
        }
        if self.share.as_mut().is_some_and(|share| !share.resize(size)) {
            return Err(EPERM);
        }
        self.size = size;
        Ok(size)
    }

    /// How an end is: bits of [`ready`].
    pub fn poll(&self, end: End) -> u16 {
        let bits = match end {
            End::Read => [(self.len > 0, ready::READ), (self.writers == 0, ready::HUNG_UP)],
            End::Write => [(self.room() >= ATOMIC_BYTES, ready::WRITE), (self.readers == 0, ready::BROKEN)],
        };
        bits.into_iter().filter(|(is_so, _)| *is_so).fold(0, |all, (_, bit)| all | bit)
    }
}

/// Fills places with bytes that are in memory.
fn copied(bytes: &[u8]) -> impl FnMut(usize, &mut [u8]) -> usize {
    |done, place| {
        place.copy_from_slice(&bytes[done..done + place.len()]);
        place.len()
    }
}

/// A page of zeros.
fn page() -> Result<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(PAGE_BYTES).map_err(|_| Errno::NO_MEMORY)?;
    bytes.resize(PAGE_BYTES, 0);
    Ok(bytes.into_boxed_slice())
}

#[cfg(test)]
mod tests;
