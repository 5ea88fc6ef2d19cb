//! A ring, from both of its sides.
//!
//! ```text
//! slot 0   tail: packets ever put    head: packets ever taken    asleep: the consumer wants to be woken
//! slot 1   length in bytes, then the packet
//! ...
//! ```
//!
//! Slots have [`SLOT_WORDS`] words each. Packet number n lies in slot `1 + n % slots`. A side keeps its own number to itself and only tells it; of the other's it
//! believes what is possible, and anything else is [`Broken`]. What is in a packet is copied once, so it cannot change while somebody looks.
//! Memory is read and written by atomic words: whatever the other side does at the same time, the bytes may be nonsense and nothing else is.
//!
//! **Sleep and wake.** The consumer says that it will sleep and then looks once more ([`Consumer::may_sleep`]); the producer puts and then looks whether
//! somebody sleeps ([`Producer::wakes`]). Each has a fence between its two steps, so at least one of them sees the other.

use super::word::{AtomicU64, Ordering, fence};

/// Words of a slot.
pub const SLOT_WORDS: usize = 256;

/// Bytes of a packet, at most.
pub const PACKET_MAX: usize = (SLOT_WORDS - 1) * WORD_BYTES;

const WORD_BYTES: usize = size_of::<u64>();

/// Words of slot 0: a cache line apart.
const TAIL: usize = 0;
const HEAD: usize = 8;
const ASLEEP: usize = 16;

/// The other side says what cannot be. The ring is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

/// Words of a ring, and how many slots are for packets.
#[derive(Clone, Copy, Debug)]
struct Ring<'a> {
    words: &'a [AtomicU64],
    slots: u64,
}

impl<'a> Ring<'a> {
    fn new(words: &'a [AtomicU64]) -> Option<Ring<'a>> {
        let slots = (words.len() / SLOT_WORDS) as u64;
        (slots >= 2).then(|| Ring { words, slots: slots - 1 })
    }

    /// How many packets there are between two numbers, the other side's of which is not to be believed.
    fn between(&self, head: u64, tail: u64) -> Result<u64, Broken> {
        let count = tail.wrapping_sub(head);
        if count <= self.slots { Ok(count) } else { Err(Broken) }
    }

    /// The words of a packet's slot: its length and its bytes.
    fn slot(&self, number: u64) -> (&AtomicU64, &[AtomicU64]) {
        let at = (1 + (number % self.slots) as usize) * SLOT_WORDS;
        (&self.words[at], &self.words[at + 1..at + SLOT_WORDS])
    }
}

/// The side that puts.
#[derive(Debug)]
pub struct Producer<'a> {
    ring: Ring<'a>,
    tail: u64,
}

impl<'a> Producer<'a> {
    /// The side that puts, of a ring whose slot 0 is zeroed. `None` if it has no room for a packet.
    pub fn new(words: &'a [AtomicU64]) -> Option<Producer<'a>> {
        Ring::new(words).map(|ring| Producer { ring, tail: 0 })
    }

    /// How many packets wait to be taken.
    pub fn waiting(&self) -> Result<u64, Broken> {
        self.ring.between(self.ring.words[HEAD].load(Ordering::Acquire), self.tail)
    }

    /// Whether there is room for a packet.
    pub fn has_room(&self) -> Result<bool, Broken> {
        self.waiting().map(|waiting| waiting < self.ring.slots)
    }

    /// Puts a packet. False, and nothing is put, if there is no room or it is longer than [`PACKET_MAX`].
    pub fn put(&mut self, packet: &[u8]) -> Result<bool, Broken> {
        if packet.len() > PACKET_MAX || !self.has_room()? {
            return Ok(false);
        }
        let (length, words) = self.ring.slot(self.tail);
        let (whole, rest) = packet.as_chunks::<WORD_BYTES>();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if let Some(word) = words.get(whole.len()).filter(|_| !rest.is_empty()) {
            let mut last = [0; WORD_BYTES];
            last[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        length.store(packet.len() as u64, Ordering::Relaxed);
        self.tail = self.tail.wrapping_add(1);
        // Pairs with the consumer's acquire: the packet is there before its number is.
        self.ring.words[TAIL].store(self.tail, Ordering::Release);
        Ok(true)
    }

    /// Whether the consumer sleeps, and is to be woken by who calls this. To be asked after putting.
    pub fn wakes(&self) -> bool {
        fence(Ordering::SeqCst);
        let asleep = &self.ring.words[ASLEEP];
        asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::Relaxed) != 0
    }

    /// The consumer could not be woken; it still wants to be.
    pub fn could_not_wake(&self) {
        self.ring.words[ASLEEP].store(1, Ordering::Relaxed);
    }
}

/// The side that takes.
#[derive(Debug)]
pub struct Consumer<'a> {
    ring: Ring<'a>,
    head: u64,
}

impl<'a> Consumer<'a> {
    /// The side that takes, of a ring whose slot 0 is zeroed. `None` if it has no room for a packet.
    pub fn new(words: &'a [AtomicU64]) -> Option<Consumer<'a>> {
        Ring::new(words).map(|ring| Consumer { ring, head: 0 })
    }

    /// How many packets wait to be taken.
    pub fn waiting(&self) -> Result<u64, Broken> {
        self.ring.between(self.head, self.ring.words[TAIL].load(Ordering::Acquire))
    }

    /// Takes a packet: copies it, and says how long it is. `None` if there is none.
    pub fn take(&mut self, to: &mut [u8; PACKET_MAX]) -> Result<Option<usize>, Broken> {
        if self.waiting()? == 0 {
            return Ok(None);
        }
        let (length, words) = self.ring.slot(self.head);
        let len = usize::try_from(length.load(Ordering::Relaxed)).map_err(|_| Broken)?;
        let (whole, rest) = to.get_mut(..len).ok_or(Broken)?.as_chunks_mut::<WORD_BYTES>();
        let last = words.get(whole.len());
        for (bytes, word) in whole.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if let Some(word) = last.filter(|_| !rest.is_empty()) {
            rest.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..rest.len()]);
        }
        self.head = self.head.wrapping_add(1);
        // Pairs with the producer's acquire: the packet is copied before its slot is free.
        self.ring.words[HEAD].store(self.head, Ordering::Release);
        Ok(Some(len))
    }

    /// Says that this side will sleep until it is woken. False if there is something to take: then it must not.
    pub fn may_sleep(&self) -> Result<bool, Broken> {
        // Exchanged and not stored, so that this word's changes by both sides are in one order.
        let asleep = &self.ring.words[ASLEEP];
        asleep.swap(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.waiting()? == 0 {
            return Ok(true);
        }
        asleep.swap(0, Ordering::Relaxed);
        Ok(false)
    }
}
