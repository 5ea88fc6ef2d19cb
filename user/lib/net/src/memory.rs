//! Memory of a connection, which its program and the network server have: a stream of bytes each way, as [`ring::stream`] has them.
//!
//! ```text
//! page 0     word 0: not zero, when the program uses it
//!            words of the stream of what is to be sent, then of the stream of what has come
//! 12 KiB     bytes that are to be sent: fewer than a socket keeps, so that all of them fit there
//! 16 KiB     bytes that have come
//! ```

use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use ring::stream::{Store, WORDS};
use rt::region::Region;

/// Log2 of its bytes.
const LOG2: u32 = 15;

/// Where the bytes that are to be sent begin, and those that have come, and where they end.
const BOUNDS: [usize; 3] = [4 << 10, 16 << 10, 32 << 10];

/// Where the words of the streams begin.
const FIRST_WORD: usize = 16;

/// Memory of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Memory(Region);

/// Bytes of one of its streams.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    region: Region,
    begin: usize,
    size: usize,
}

impl Half {
    /// Copies bytes from `at` on, all of which lie in it, behind those that a list has.
    pub(crate) fn append(&self, at: usize, len: usize, to: &mut Vec<u8>) {
        self.region.append(self.begin + at, len, to);
    }
}

impl Store for Half {
    fn size(&self) -> usize {
        self.size
    }

    fn get(&self, at: usize, to: &mut [u8]) {
        self.region.read(self.begin + at, to);
    }

    fn put(&self, at: usize, from: &[u8]) {
        self.region.write(self.begin + at, from);
    }
}

impl Memory {
    /// Zeroes, if there is memory.
    pub fn new() -> Option<Memory> {
        Region::new(LOG2).map(Memory)
    }

    /// All of it.
    pub const fn region(self) -> Region {
        self.0
    }

    /// Word that is not zero when the program uses the streams.
    pub fn begun(self) -> &'static AtomicU64 {
        &self.0.words()[0]
    }

    /// Words and bytes of the stream of what is to be sent.
    pub fn to_send(self) -> (&'static [AtomicU64], Half) {
        self.half(0)
    }

    /// Words and bytes of the stream of what has come.
    pub fn received(self) -> (&'static [AtomicU64], Half) {
        self.half(1)
    }

    fn half(self, number: usize) -> (&'static [AtomicU64], Half) {
        let (begin, end) = (BOUNDS[number], BOUNDS[number + 1]);
        let words = &self.0.words()[FIRST_WORD + number * WORDS..][..WORDS];
        (words, Half { region: self.0, begin, size: end - begin })
    }

    /// Overwrites all of it, since its bytes are not the next program's affair. For its owner, while nobody else has it.
    pub fn wipe(self) {
        let zeroes = [0; BOUNDS[0]];
        (0..self.0.size()).step_by(zeroes.len()).for_each(|at| self.0.write(at, &zeroes));
    }
}
