//! Messages with a part in memory: what a client sends from where it lies, and a server's room to receive into.
//!
//! A message has words, strings, or both in memory. A single list is its words, and goes from where it lies: in whole
//! words, since a word that is half of something else would show that. What is left of it, its **tail**, is a register: the
//! list's last eight bytes, which the receiver puts behind the words that are there. Several lists are a string each.
//!
//! A part in memory that has come is used where it is. The kernel says in the dope how much that is, and in each string's descriptor how long
//! it is; both are compared with what the message must have before anything is looked at.
//!
//! **Unsafe code** reads lists as bytes and bytes as lists; [`Flat`] says which types allow that.

#![allow(unsafe_code)]

use crate::{Arrived, In, Malformed};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::hint::cold_path;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::slice;
use core::sync::atomic::{AtomicBool, Ordering};

/// A type of which every bit pattern is a value.
///
/// # Safety
///
/// It has no holes, its alignment is at most 8, and whoever forgets a value loses nothing.
pub unsafe trait Flat {}

macro_rules! flat {
    ($($ty:ident)*) => {$(
        // SAFETY: a number.
        unsafe impl Flat for $ty {}
    )*};
}

flat!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

// SAFETY: a number, transparently.
unsafe impl Flat for crate::Uid {}

// SAFETY: elements lie side by side.
unsafe impl<T: Flat, const N: usize> Flat for [T; N] {}

/// Says that a struct is [`Flat`]: its fields are, and leave no holes. Generated code does.
#[macro_export]
macro_rules! flat_struct {
    ($name:ident { $($field:ty),* }) => {
        const _: () = {
            const fn is_flat<T: $crate::Flat>() {}
            $(is_flat::<$field>();)*
            assert!(::core::mem::size_of::<$name>() == 0 $(+ ::core::mem::size_of::<$field>())*);
        };
        // SAFETY: asserted above.
        unsafe impl $crate::Flat for $name {}
    };
}

/// The bytes of a list.
#[inline(always)]
pub(crate) fn bytes<T: Flat>(list: &[T]) -> &[u8] {
    // SAFETY: they are all there, and have no holes.
    unsafe { slice::from_raw_parts(list.as_ptr().cast(), size_of_val(list)) }
}

/// The bytes of a list, to be written.
#[inline(always)]
pub(crate) fn bytes_mut<T: Flat>(list: &mut [T]) -> &mut [u8] {
    // SAFETY: they are all there, and any bytes are values.
    unsafe { slice::from_raw_parts_mut(list.as_mut_ptr().cast(), size_of_val(list)) }
}

/// The dope of a message that has nothing but whole words of a list in memory.
#[inline(always)]
pub fn whole_words<T: Flat>(list: &[T]) -> u64 {
    (size_of_val(list) / 8) as u64
}

/// Beside the number of strings in a dope: something is handed over, too.
pub const ITEM: u64 = 1 << 8;

/// All that a dope says of what is handed over.
const ITEMS: u64 = 0xff << 20;

/// Window in which nothing can arrive.
pub const NO_WINDOW: [u64; 2] = [0; 2];

/// The dope of a message with so many words and strings in memory.
pub const fn dope(words: u64, strings: u64) -> u64 {
    words | strings << 12
}

/// Where something lies that the kernel will read.
#[inline(always)]
pub fn address<T: Flat>(list: &[T]) -> u64 {
    list.as_ptr().expose_provenance() as u64
}

/// How long a string is, for its descriptor.
#[inline(always)]
pub fn string_len<T: Flat>(list: &[T]) -> u64 {
    size_of_val(list) as u64
}

/// Copies a list to words that stay where they are until a reply is sent.
pub fn keep<T: Flat>(list: &[T], to: &mut [u64]) {
    for (word, bytes) in to.iter_mut().zip(bytes(list).chunks(8)) {
        *word = tail_of(bytes);
    }
}

/// The last eight bytes of a list, or all of them if there are fewer.
#[inline(always)]
pub fn tail<T: Flat>(list: &[T]) -> u64 {
    tail_of(bytes(list))
}

#[inline(always)]
fn tail_of(bytes: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => few(bytes),
    }
}

/// Up to seven bytes as a number. From both ends, which may overlap: no loop.
#[cold]
#[inline(never)]
fn few(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u32;
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u16::from_le_bytes(*first)) | u64::from(u16::from_le_bytes(*last)) << (8 * (len - 2))
    } else {
        bytes.first().map_or(0, |&byte| byte.into())
    }
}

/// How long strings may be. A type, so that what is known of them is known before the program runs.
pub trait Strings {
    /// For each, the bytes of its buffer.
    const CAPACITIES: &'static [u32];
    /// Windows for references to objects, behind them.
    const WINDOWS: usize = 0;
}

/// No strings.
impl Strings for () {
    const CAPACITIES: &'static [u32] = &[];
}

/// Where the buffer of a string begins: one behind the other, each from a multiple of 8.
const fn begin(capacities: &[u32], number: usize) -> usize {
    let (mut at, mut i) = (0, 0);
    while i < number {
        at += (capacities[i] as usize).next_multiple_of(8);
        i += 1;
    }
    at
}

/// The part of a message in memory, as it has arrived: words, and where strings are and how long.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Block<const WORDS: usize, const STRINGS: usize> {
    words: [u64; WORDS],
    /// Invariant: where each string's buffer begins, of which so many bytes are there.
    pub(crate) strings: [[u64; 2]; STRINGS],
}

impl<const WORDS: usize, const STRINGS: usize> Block<WORDS, STRINGS> {
    /// Nothing is there, and no buffer.
    pub(crate) const fn new() -> Self {
        Block { words: [0; WORDS], strings: [[align_of::<u64>() as u64, 0]; STRINGS] }
    }

    /// Where it is, for the kernel.
    pub(crate) fn address(&mut self) -> u64 {
        (&raw mut *self).expose_provenance() as u64
    }

    /// The words of a message that must have so many, and so many strings.
    #[inline(always)]
    pub fn words(&self, got: u64, words: u64, strings: u64) -> Result<&[u64; WORDS], Malformed> {
        if self.has(got, words, strings) { Ok(&self.words) } else { Err(Malformed) }
    }

    /// The words of a message that must have so many at least, and so many strings; and what comes behind those words.
    #[inline(always)]
    pub fn streams(&self, got: u64, words: u64, strings: u64) -> Result<(&[u64; WORDS], In<'_>), Malformed> {
        let all = got & 0xfff;
        if !self.has(got, all, strings) {
            return Err(Malformed);
        }
        let behind = self.words.get(words as usize..all as usize).ok_or(Malformed)?;
        Ok((&self.words, In::new(behind)))
    }

    /// [`streams`](Block::streams) of a message that hands over any number of references, among them those that `arrived` has.
    #[inline(always)]
    pub fn streams_with<'a>(
        &'a self,
        got: u64,
        words: u64,
        strings: u64,
        arrived: &'a mut dyn Arrived,
    ) -> Result<(&'a [u64; WORDS], In<'a>), Malformed> {
        let (words, stream) = self.streams(got & !ITEMS, words, strings)?;
        Ok((words, stream.with(arrived)))
    }

    /// Whether that is what is used of the room. The rest of the dope is the room itself, of which the kernel has kept it.
    #[inline(always)]
    fn has(&self, got: u64, words: u64, strings: u64) -> bool {
        debug_assert!(got >> 32 & 0xfff == WORDS as u64);
        got as u32 == dope(words, strings) as u32
    }

    /// The list that is all that a message has in memory, and what comes of looking at its words: `len` bytes, at most
    /// `bound`, of which the last are in `tail`.
    #[inline(always)]
    fn bytes<R>(
        &mut self,
        got: u64,
        len: u64,
        bound: usize,
        tail: u64,
        look: fn(*mut u8, usize, u64) -> R,
    ) -> Result<(&[u8], R), Malformed> {
        if len > bound as u64 || bound > 8 * WORDS || WORDS == 0 {
            cold_path();
            return Err(Malformed);
        }
        if !self.has(got, len / 8, 0) {
            cold_path();
            return Err(Malformed);
        }
        let (first, len) = (self.words.as_mut_ptr().cast(), len as usize);
        let seen = look(first, len, tail);
        // SAFETY: words have no holes, and there are enough.
        Ok((unsafe { slice::from_raw_parts(first, len) }, seen))
    }

    /// The list that is all that a message has in memory: `count` elements, at most `bound`.
    #[inline(always)]
    pub fn list<T: Flat>(
        &mut self,
        got: u64,
        count: u64,
        bound: usize,
        tail: u64,
    ) -> Result<&[T], Malformed> {
        const { assert!(align_of::<T>() <= 8) };
        let bytes = if size_of::<T>().is_multiple_of(8) {
            let words = count.saturating_mul(size_of::<T>() as u64 / 8);
            if count > bound as u64 || !self.has(got, words, 0) {
                return Err(Malformed);
            }
            bytes(self.words.get(..words as usize).ok_or(Malformed)?)
        } else {
            let len = count.saturating_mul(size_of::<T>() as u64);
            self.bytes(got, len, bound * size_of::<T>(), tail, complete)?.0
        };
        // SAFETY: so many are there, from a multiple of 8, and any bits are values.
        Ok(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), count as usize) })
    }

    /// The text that is all that a message has in memory: `len` bytes, at most `bound`. `which` texts are read; whoever
    /// looks for the second time finds the tail in its place.
    #[inline(always)]
    pub fn text(
        &mut self,
        got: u64,
        len: u64,
        bound: usize,
        tail: u64,
        which: Texts,
    ) -> Result<&str, Malformed> {
        if which == Texts::All {
            return other_text(self.bytes(got, len, bound, 0, |_, _, _| ())?.0);
        }
        // One comparison for both ends of what texts mostly have: eight bytes or more, and no more than may come.
        let most = bound.saturating_sub(8) as u64;
        let (bytes, bits) = if bound >= 8 && len.wrapping_sub(8) <= most {
            self.bytes(got, len, bound, tail, complete_text)?
        } else {
            cold_path();
            self.bytes(got, len, bound, tail, complete_few)?
        };
        known_text(bytes, bits, which)
    }
}

/// Memory for a message: room for words, and a buffer for each string.
#[derive(Debug)]
#[repr(C)]
pub struct Room<S, const WORDS: usize, const STRINGS: usize, const BYTES: usize> {
    /// Invariant: each length is at most the capacity, which the kernel sees to.
    block: Block<WORDS, STRINGS>,
    buffers: [u8; BYTES],
    capacities: PhantomData<S>,
}

impl<S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize> Default
    for Room<S, WORDS, STRINGS, BYTES>
{
    fn default() -> Self {
        Room::new()
    }
}

impl<S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize>
    Room<S, WORDS, STRINGS, BYTES>
{
    /// The dope of the room.
    pub const DOPE: u64 = dope(WORDS as u64, S::CAPACITIES.len() as u64 + S::WINDOWS as u64 * ITEM) << 32;

    /// A room in which nothing is.
    pub const fn new() -> Self {
        const {
            assert!(S::CAPACITIES.len() + S::WINDOWS == STRINGS);
            assert!(begin(S::CAPACITIES, S::CAPACITIES.len()) <= BYTES);
            assert!(WORDS < 1 << 12 && STRINGS < 1 << 8);
            assert!(WORDS > 0 || STRINGS > 0);
        }
        let mut block = Block::new();
        let mut number = 0;
        while number < S::CAPACITIES.len() {
            block.strings[number][1] = (S::CAPACITIES[number] as u64) << 32;
            number += 1;
        }
        while number < STRINGS {
            block.strings[number] = NO_WINDOW;
            number += 1;
        }
        Room { block, buffers: [0; BYTES], capacities: PhantomData }
    }

    /// One in memory that is somebody's for so long, in which nothing is; `None` if that is too small.
    pub fn in_place(memory: &mut [u128]) -> Option<&mut Self> {
        const { assert!(align_of::<Self>() <= align_of::<u128>()) };
        if size_of_val(memory) < size_of::<Self>() {
            return None;
        }
        // SAFETY: there are as many bytes, they begin where they may, and are initialized; words, descriptors and buffers are numbers. What
        // is more to a room than that follows at once.
        let room = unsafe { &mut *memory.as_mut_ptr().cast::<Self>() };
        for (string, &capacity) in room.block.strings.iter_mut().zip(S::CAPACITIES) {
            *string = [align_of::<u64>() as u64, u64::from(capacity) << 32];
        }
        room.windows().fill(NO_WINDOW);
        Some(room)
    }

    /// Windows for references; as many as the room has for them.
    pub(crate) fn windows(&mut self) -> &mut [[u64; 2]] {
        &mut self.block.strings[S::CAPACITIES.len().min(STRINGS)..]
    }

    /// Fills in where the buffers are. The address of the room, for the kernel.
    pub fn describe(&mut self) -> u64 {
        let mut at = self.buffers.as_mut_ptr().expose_provenance() as u64;
        for string in self.block.strings.iter_mut().take(S::CAPACITIES.len()) {
            string[0] = at;
            at += (string[1] >> 32).next_multiple_of(8);
        }
        self.block.address()
    }

    /// The elements of a string; at most `bound`.
    #[inline(always)]
    pub fn string<T: Flat, const NUMBER: usize>(&self, bound: usize) -> Result<&[T], Malformed> {
        const { assert!(align_of::<T>() <= 8) };
        let capacity = const { S::CAPACITIES[NUMBER] as usize };
        let len = self.block.strings[NUMBER][1] as u32 as usize;
        // SAFETY: the kernel keeps it to the capacity. Where that is the bound, nothing is left of any check.
        unsafe { core::hint::assert_unchecked(len <= capacity) };
        if len > bound * size_of::<T>() || !len.is_multiple_of(size_of::<T>()) {
            return Err(Malformed);
        }
        let first = &self.buffers[const { begin(S::CAPACITIES, NUMBER) }..];
        // SAFETY: `new` knows that the capacity is there; `len` is no more; they begin at a multiple of 8, and any bits are
        // values.
        Ok(unsafe { slice::from_raw_parts(first.as_ptr().cast(), len / size_of::<T>()) })
    }
}

impl<S, const WORDS: usize, const STRINGS: usize, const BYTES: usize> Deref
    for Room<S, WORDS, STRINGS, BYTES>
{
    type Target = Block<WORDS, STRINGS>;
    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.block
    }
}

impl<S, const WORDS: usize, const STRINGS: usize, const BYTES: usize> DerefMut
    for Room<S, WORDS, STRINGS, BYTES>
{
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.block
    }
}

/// Memory for a value that is used for so long.
#[derive(Debug)]
pub struct Space<'a, V> {
    /// Invariant: large enough.
    memory: &'a mut [u128],
    value: PhantomData<V>,
}

impl<'a, V: 'a> Space<'a, V> {
    /// In memory; `None` if that is too small.
    pub fn new(memory: &'a mut [u128]) -> Option<Space<'a, V>> {
        let is_enough = size_of_val(memory) >= size_of::<V>();
        is_enough.then_some(Space { memory, value: PhantomData })
    }

    /// Puts it there.
    pub fn put(self, value: V) -> &'a V {
        const { assert!(align_of::<V>() <= align_of::<u128>() && !core::mem::needs_drop::<V>()) };
        let place = self.memory.as_mut_ptr().cast::<V>();
        // SAFETY: it is large enough, begins where it may, and is this value's alone for so long.
        unsafe {
            place.write(value);
            &*place
        }
    }
}

/// Copies values to memory, which must be large enough for them.
pub fn put_all<'a, T: Clone>(memory: &'a mut [u128], values: &[T]) -> &'a [T] {
    const { assert!(align_of::<T>() <= align_of::<u128>() && !core::mem::needs_drop::<T>()) };
    assert!(size_of_val(memory) >= size_of_val(values));
    let place = memory.as_mut_ptr().cast::<T>();
    for (number, value) in values.iter().enumerate() {
        // SAFETY: there is room for all of them, it begins where they may, and is theirs alone for so long.
        unsafe { place.add(number).write(value.clone()) };
    }
    // SAFETY: the same, and each of them is there.
    unsafe { slice::from_raw_parts(place, values.len()) }
}

/// The first bytes of memory, which must have so many.
pub fn bytes_of(memory: &mut [u128], len: usize) -> &mut [u8] {
    assert!(size_of_val(memory) >= len);
    // SAFETY: so many are there, they have values, and nobody else has them for so long.
    unsafe { slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), len) }
}

/// Copies a text to memory, which must be large enough for it.
pub fn put_text<'a>(memory: &'a mut [u128], text: &str) -> &'a str {
    let bytes = put_all(memory, text.as_bytes());
    // SAFETY: these are the bytes of a text.
    unsafe { core::str::from_utf8_unchecked(bytes) }
}

/// Set of the texts that a handler reads.
///
/// A function that calls another one saves registers for that, whether it comes to the call or not. Most text is ASCII, for
/// which there is nothing to call; so a handler reads only that, and hands everything else to a copy of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Texts {
    /// Those in ASCII.
    Ascii,
    /// All, at the second look.
    All,
    /// All, at the only look: a client's.
    Once,
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Puts the tail of `len` bytes behind their words, which are there.
#[inline(always)]
fn complete(first: *mut u8, len: usize, tail: u64) {
    let begin = len.saturating_sub(8);
    // SAFETY: there is a whole number of words, and one at least.
    unsafe { first.add(begin).cast::<u64>().write_unaligned(tail) };
}

/// [`complete`] for less than eight bytes; says what they are.
#[inline(always)]
fn complete_few(first: *mut u8, len: usize, tail: u64) -> u64 {
    complete(first, len, tail);
    tail
}

/// [`complete`] for eight bytes or more; says which bits are set in some word.
///
/// In assembly because a compiler makes eight loops of one, and most texts are done before it has decided which to take.
#[inline(always)]
fn complete_text(first: *mut u8, len: usize, tail: u64) -> u64 {
    debug_assert!(len >= 8);
    let mut all = tail;
    // SAFETY: so many words are there, and one at least.
    unsafe {
        asm!(
            "mov [{first} + {len} - 8], {all}",
            "2:",
            "or {all}, [{first} + {words} * 8 - 8]",
            "dec {words}",
            "jnz 2b",
            all = inout(reg) all,
            first = in(reg) first,
            len = in(reg) len,
            words = inout(reg) len / 8 => _,
            options(nostack)
        );
    }
    all
}

/// Bytes as text, if they are.
#[inline(always)]
pub fn text(bytes: &[u8], which: Texts) -> Result<&str, Malformed> {
    let (words, _) = bytes.as_chunks::<8>();
    let bits = words.iter().fold(tail(bytes), |all, word| all | u64::from_le_bytes(*word));
    known_text(bytes, bits, which)
}

/// Bytes with these bits as text, if they are.
#[inline(always)]
fn known_text(bytes: &[u8], bits: u64, which: Texts) -> Result<&str, Malformed> {
    if bits & HIGH_BITS == 0 {
        // SAFETY: no byte has its high bit set.
        Ok(unsafe { core::str::from_utf8_unchecked(bytes) })
    } else if which != Texts::Ascii {
        other_text(bytes)
    } else {
        Err(Malformed)
    }
}

#[inline(never)]
fn other_text(bytes: &[u8]) -> Result<&str, Malformed> {
    core::str::from_utf8(bytes).map_err(|_| Malformed)
}

/// Something static that one thread gets for itself: a server's [`Room`], say, which is too large for a stack.
#[derive(Debug)]
pub struct Once<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: whoever takes the value has it alone.
unsafe impl<T: Send> Sync for Once<T> {}

impl<T> Once<T> {
    /// Something that nobody has taken.
    pub const fn new(value: T) -> Once<T> {
        Once { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// It, the first time; `None` ever after.
    #[expect(clippy::mut_from_ref, reason = "only one caller gets it")]
    pub fn take(&'static self) -> Option<&'static mut T> {
        if self.taken.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: only one caller gets here.
        Some(unsafe { &mut *self.value.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;
    impl Strings for One {
        const CAPACITIES: &'static [u32] = &[16];
    }

    #[test]
    fn lists_of_any_length_arrive() {
        let sent: [u8; 40] = core::array::from_fn(|i| i as u8 + 1);
        for len in 0..=sent.len() {
            let list = &sent[..len];
            let mut room = Room::<(), 8, 0, 0>::new();
            let words = whole_words(list);
            for (to, from) in room.block.words.iter_mut().zip(list.as_chunks().0) {
                *to = u64::from_le_bytes(*from);
            }
            let got = Room::<(), 8, 0, 0>::DOPE | words;
            assert_eq!(room.list::<u8>(got, len as u64, 40, tail(list)), Ok(list));
            assert_eq!(room.text(got, len as u64, 40, tail(list), Texts::Ascii).map(str::as_bytes), Ok(list));
            assert_eq!(room.list::<u8>(got + 1, len as u64, 40, tail(list)), Err(Malformed));
            assert_eq!(room.list::<u8>(got, len as u64 + 8, 40, tail(list)), Err(Malformed));
        }
    }

    #[test]
    fn claims_are_refused() {
        let mut room = Room::<One, 8, 1, 16>::new();
        let dope = Room::<One, 8, 1, 16>::DOPE;
        for len in [65, 1 << 15, 1 << 20, 1 << 35, u32::MAX.into()] {
            assert_eq!(room.list::<u8>(dope + len / 8, len, 64, 0), Err(Malformed));
            assert_eq!(room.list::<u64>(dope + len, len, 8, 0), Err(Malformed));
        }
        assert_eq!(room.words(dope | 3, 3, 1), Err(Malformed));
        assert!(room.words(dope | 3 | 1 << 12, 3, 1).is_ok());
        room.block.strings[0][1] |= 12;
        assert_eq!(room.string::<u32, 0>(3).map(<[u32]>::len), Ok(3));
        assert_eq!(room.string::<u32, 0>(2), Err(Malformed));
        assert_eq!(room.string::<u64, 0>(2), Err(Malformed));
    }

    #[test]
    fn text_is_utf8() {
        for good in ["", "a", "seventeen letters", "née", "ein längerer Text"] {
            assert_eq!(text(good.as_bytes(), Texts::All), Ok(good));
        }
        assert_eq!(text("née".as_bytes(), Texts::Ascii), Err(Malformed));
        assert_eq!(text(b"caf\xe9", Texts::All), Err(Malformed));
        assert_eq!(text(b"\xe9 long enough for words", Texts::All), Err(Malformed));
    }

    #[test]
    fn rooms_and_values_lie_in_memory_that_is_there() {
        type Small = Room<One, 8, 1, 16>;
        const WORDS: usize = size_of::<Small>().div_ceil(16);
        let mut memory = [u128::MAX; WORDS + 2];
        assert!(Small::in_place(&mut memory[..WORDS - 1]).is_none());
        let (first, rest) = memory.split_at_mut(WORDS);
        let room = Small::in_place(first).unwrap();
        assert_eq!(room.string::<u32, 0>(4), Ok(&[][..]));
        assert!(Space::<[u64; 5]>::new(rest).is_none());
        let kept = Space::new(rest).unwrap().put((7u8, [1u64, 2]));
        assert_eq!((room.block.strings[0][1], kept), (16 << 32, &(7, [1, 2])));
    }

    #[test]
    fn something_is_taken_once() {
        static IT: Once<u32> = Once::new(7);
        assert_eq!(IT.take(), Some(&mut 7));
        assert_eq!(IT.take(), None);
    }
}
