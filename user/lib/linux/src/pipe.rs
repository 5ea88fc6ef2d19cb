//! Bytes of a pipe.

use alloc::collections::VecDeque;
use linux_raw_sys::general::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM};

/// Bytes that are written as a whole, or not at all.
pub const WHOLE_BYTES: usize = 4096;

/// Bytes of a pipe.
const CAPACITY: usize = 64 << 10;

/// Most bytes of a pipe that somebody has made larger.
const CAPACITY_MAX: usize = 1 << 20;

/// What a read or write has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// So many bytes.
    Bytes(usize),
    /// None: there are none, or there is no room.
    Nothing,
    /// None, and there will be none: the other end is closed.
    Over,
}

/// A pipe with its two ends.
#[derive(Debug)]
pub struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    has_reader: bool,
    has_writer: bool,
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe::new()
    }
}

impl Pipe {
    /// An empty one, with both ends open.
    pub const fn new() -> Pipe {
        Pipe { bytes: VecDeque::new(), capacity: CAPACITY, has_reader: true, has_writer: true }
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes for which there is room in all.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Changes that. It is rounded up to a power of two; none if there is more in it, or that is too much.
    pub fn set_capacity(&mut self, bytes: usize) -> Option<usize> {
        let wanted = bytes.max(WHOLE_BYTES).checked_next_power_of_two()?;
        if wanted > CAPACITY_MAX || wanted < self.bytes.len() {
            return None;
        }
        self.capacity = wanted;
        Some(wanted)
    }

    /// Nobody reads any more.
    pub fn close_reader(&mut self) {
        self.has_reader = false;
        self.bytes = VecDeque::new();
    }

    /// Nobody writes any more.
    pub const fn close_writer(&mut self) {
        self.has_writer = false;
    }

    /// Takes bytes out.
    pub fn read(&mut self, to: &mut [u8]) -> Moved {
        let count = to.len().min(self.bytes.len());
        if count == 0 {
            return if self.has_writer { Moved::Nothing } else { Moved::Over };
        }
        for (to, from) in to.iter_mut().zip(self.bytes.drain(..count)) {
            *to = from;
        }
        if self.bytes.is_empty() {
            self.bytes = VecDeque::new();
        }
        Moved::Bytes(count)
    }

    /// Puts bytes in: all of few, as many as there is room for of more.
    pub fn write(&mut self, from: &[u8]) -> Moved {
        if !self.has_reader {
            return Moved::Over;
        }
        let room = self.capacity - self.bytes.len();
        let count = if from.len() <= WHOLE_BYTES && from.len() > room { 0 } else { from.len().min(room) };
        if count == 0 && !from.is_empty() {
            return Moved::Nothing;
        }
        self.bytes.extend(&from[..count]);
        Moved::Bytes(count)
    }

    /// What its reader can do, as `poll` says it.
    pub fn reader_ready(&self) -> u32 {
        let input = if self.bytes.is_empty() { 0 } else { POLLIN | POLLRDNORM };
        input | if self.has_writer { 0 } else { POLLHUP }
    }

    /// What its writer can do.
    pub fn writer_ready(&self) -> u32 {
        if !self.has_reader {
            return POLLOUT | POLLWRNORM | POLLERR;
        }
        if self.capacity - self.bytes.len() >= WHOLE_BYTES { POLLOUT | POLLWRNORM } else { 0 }
    }
}
