//! A stream of bytes in shared memory: one side writes, one side reads.
//!
//! ```text
//! word  0   written: bytes ever written     word  8   taken: bytes ever read
//! word 16   the reader sleeps               word 24   the writer sleeps
//! word 32   1: no more is written           word 40   1: no more is read
//! ```
//!
//! These words lie in cache lines of their own, and the bytes in a [`Store`]. Byte number n lies at `n % store.size()`. A side keeps its own number to itself
//! and only tells it; of the other's it believes what is possible, and anything else is [`Broken`].
//!
//! **Sleep and wake** go as in a ring of packets. The reader is woken by every byte. The writer is woken when half of the store is free, so that a reader who takes a
//! little at a time does not wake it each time.
//!
//! **The end** is set by a third party, who knows when a side has ended: see [`close`].

use super::ring::Broken;
use super::word::{AtomicU64, Ordering, fence};

/// Words that a stream needs beside its bytes.
pub const WORDS: usize = 48;

const WRITTEN: usize = 0;
const TAKEN: usize = 8;
const READER_SLEEPS: usize = 16;
const WRITER_SLEEPS: usize = 24;
const NO_WRITER: usize = 32;
const NO_READER: usize = 40;

/// Memory for the bytes. Others may write to it meanwhile: the bytes may be nonsense then, and nothing else is.
pub trait Store {
    /// Bytes that it has: at least 2.
    fn size(&self) -> usize;

    /// Copies bytes from `at` on, all of which lie in it.
    fn get(&self, at: usize, to: &mut [u8]);

    /// Overwrites bytes from `at` on, all of which lie in it.
    fn put(&self, at: usize, from: &[u8]);
}

/// A side of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It writes.
    Writer,
    /// It reads.
    Reader,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Side {
        match self {
            Side::Writer => Side::Reader,
            Side::Reader => Side::Writer,
        }
    }

    const fn sleeps(self) -> usize {
        match self {
            Side::Writer => WRITER_SLEEPS,
            Side::Reader => READER_SLEEPS,
        }
    }

    const fn is_gone(self) -> usize {
        match self {
            Side::Writer => NO_WRITER,
            Side::Reader => NO_READER,
        }
    }
}

/// Makes a stream empty, with both of its sides there. For its owner, while nobody else has the memory.
pub fn reset(words: &[AtomicU64]) {
    words.iter().take(WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
}

/// Says that a side has ended. Whether the other one sleeps and is to be woken now by whoever calls this.
pub fn close(words: &[AtomicU64], side: Side) -> bool {
    words[side.is_gone()].store(1, Ordering::Release);
    wakes(words, side.other())
}

/// Whether a side sleeps, and is to be woken by whoever asks. What it sleeps for has been done before.
fn wakes(words: &[AtomicU64], side: Side) -> bool {
    fence(Ordering::SeqCst);
    let sleeps = &words[side.sleeps()];
    sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::Relaxed) != 0
}

/// Says that a side will sleep, and takes that back if there is something for it after all.
fn may_sleep(
    words: &[AtomicU64],
    side: Side,
    has_something: impl Fn() -> Result<bool, Broken>,
) -> Result<bool, Broken> {
    // Exchanged and not stored, so that this word's changes by both sides are in one order.
    words[side.sleeps()].swap(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if !has_something()? {
        return Ok(true);
    }
    words[side.sleeps()].swap(0, Ordering::Relaxed);
    Ok(false)
}

/// Bytes between two numbers, of which one is not to be believed.
fn between(taken: u64, written: u64, len: usize) -> Result<usize, Broken> {
    usize::try_from(written.wrapping_sub(taken)).ok().filter(|&count| count <= len).ok_or(Broken)
}

/// Cuts a piece that may go over the end of the store: how much of it lies at its place, the rest at the beginning.
fn cut<S: Store>(store: &S, number: u64, count: usize) -> (usize, usize) {
    let at = (number % store.size() as u64) as usize;
    (at, count.min(store.size() - at))
}

/// The side that writes.
#[derive(Debug)]
pub struct Writer<'a, S> {
    words: &'a [AtomicU64],
    store: S,
    written: u64,
}

impl<'a, S: Store> Writer<'a, S> {
    /// The side that writes, of a stream to which nobody has written. `None` if there is no room for one.
    pub fn new(words: &'a [AtomicU64], store: S) -> Option<Writer<'a, S>> {
        (words.len() >= WORDS && store.size() >= 2).then_some(Writer { words, store, written: 0 })
    }

    /// Bytes that wait to be read.
    pub fn waiting(&self) -> Result<usize, Broken> {
        between(self.words[TAKEN].load(Ordering::Acquire), self.written, self.store.size())
    }

    /// Bytes that there is room for.
    pub fn room(&self) -> Result<usize, Broken> {
        self.waiting().map(|waiting| self.store.size() - waiting)
    }

    /// Whether nobody will read any more.
    pub fn is_over(&self) -> bool {
        self.words[NO_READER].load(Ordering::Relaxed) != 0
    }

    /// Writes as much as there is room for, and gives back how much that was.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let count = self.room()?.min(bytes.len());
        let (at, first) = cut(&self.store, self.written, count);
        self.store.put(at, &bytes[..first]);
        if first < count {
            self.store.put(0, &bytes[first..count]);
        }
        self.written = self.written.wrapping_add(count as u64);
        // Pairs with the reader's acquire: the bytes are there before their number is.
        self.words[WRITTEN].store(self.written, Ordering::Release);
        Ok(count)
    }

    /// Whether the reader sleeps, and is to be woken by whoever calls this. To be asked after writing.
    pub fn wakes(&self) -> bool {
        wakes(self.words, Side::Reader)
    }

    /// The reader could not be woken; it still wants to be.
    pub fn could_not_wake(&self) {
        self.words[READER_SLEEPS].store(1, Ordering::Relaxed);
    }

    /// Whether this side has said that it sleeps, and nobody has woken it since.
    pub fn is_asleep(&self) -> bool {
        self.words[WRITER_SLEEPS].load(Ordering::Relaxed) != 0
    }

    /// Says that this side will sleep until it is woken. False if there is room, or if nobody reads any more: then it must not.
    pub fn may_sleep(&self) -> Result<bool, Broken> {
        may_sleep(self.words, Side::Writer, || Ok(self.room()? > 0 || self.is_over()))
    }
}

/// The side that reads.
#[derive(Debug)]
pub struct Reader<'a, S> {
    words: &'a [AtomicU64],
    store: S,
    taken: u64,
}

impl<'a, S: Store> Reader<'a, S> {
    /// The side that reads, of a stream of which nobody has read. `None` if there is no room for one.
    pub fn new(words: &'a [AtomicU64], store: S) -> Option<Reader<'a, S>> {
        (words.len() >= WORDS && store.size() >= 2).then_some(Reader { words, store, taken: 0 })
    }

    /// Bytes that wait to be read.
    pub fn waiting(&self) -> Result<usize, Broken> {
        between(self.taken, self.words[WRITTEN].load(Ordering::Acquire), self.store.size())
    }

    /// Bytes that the writer has room for.
    pub fn room(&self) -> Result<usize, Broken> {
        self.waiting().map(|waiting| self.store.size() - waiting)
    }

    /// Whether all has been read that was written, and no more will be.
    pub fn is_over(&self) -> Result<bool, Broken> {
        // In this order: what was written before the end is seen.
        let is_closed = self.words[NO_WRITER].load(Ordering::Acquire) != 0;
        Ok(self.waiting()? == 0 && is_closed)
    }

    /// Reads as much as there is, and gives back how much that was.
    pub fn read(&mut self, to: &mut [u8]) -> Result<usize, Broken> {
        let count = self.waiting()?.min(to.len());
        let (at, first) = cut(&self.store, self.taken, count);
        self.store.get(at, &mut to[..first]);
        if first < count {
            self.store.get(0, &mut to[first..count]);
        }
        self.taken = self.taken.wrapping_add(count as u64);
        // Pairs with the writer's acquire: the bytes are copied before their place is free.
        self.words[TAKEN].store(self.taken, Ordering::Release);
        Ok(count)
    }

    /// Lets `take` copy as much as there is, `len_max` bytes at most, in up to two pieces: where each of them lies in the store, and how long it is. Gives back
    /// how much that was.
    pub fn read_with(
        &mut self,
        len_max: usize,
        mut take: impl FnMut(&S, usize, usize),
    ) -> Result<usize, Broken> {
        let count = self.waiting()?.min(len_max);
        let (at, first) = cut(&self.store, self.taken, count);
        take(&self.store, at, first);
        if first < count {
            take(&self.store, 0, count - first);
        }
        self.taken = self.taken.wrapping_add(count as u64);
        // Pairs with the writer's acquire: the bytes are copied before their place is free.
        self.words[TAKEN].store(self.taken, Ordering::Release);
        Ok(count)
    }

    /// Whether this side has said that it sleeps, and nobody has woken it since.
    pub fn is_asleep(&self) -> bool {
        self.words[READER_SLEEPS].load(Ordering::Relaxed) != 0
    }

    /// Whether the writer sleeps, and is to be woken by whoever calls this. To be asked after reading.
    pub fn wakes(&self) -> Result<bool, Broken> {
        let is_roomy = self.waiting()? <= self.store.size() / 2;
        Ok(is_roomy && wakes(self.words, Side::Writer))
    }

    /// The writer could not be woken; it still wants to be.
    pub fn could_not_wake(&self) {
        self.words[WRITER_SLEEPS].store(1, Ordering::Relaxed);
    }

    /// Says that this side will sleep until it is woken. False if there is something to read, or if no more will be: then it must not.
    pub fn may_sleep(&self) -> Result<bool, Broken> {
        may_sleep(self.words, Side::Reader, || {
            Ok(self.waiting()? > 0 || self.words[NO_WRITER].load(Ordering::Acquire) != 0)
        })
    }
}
