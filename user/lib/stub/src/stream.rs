//! Values that are written and read piece by piece: unions, and lists of anything that has no fixed size.
//!
//! They lie in the words of a message, behind those values that have places of their own: each from a multiple of its size,
//! with zeros between, texts and lists behind their lengths, and texts before a zero, which C wants. What is read is
//! checked when it is read, and owned by whoever reads it.
//!
//! References to objects are handed over beside the words ([`Handing`], [`Arrived`]), in the order in which they are written; among the words
//! is a byte that says whether there is one.

use core::any::{Any, TypeId};
use core::fmt;

use crate::long::{bytes, bytes_mut};
use crate::{Blank, Box, List, Malformed, Shared, String, Text, Vec};
use crate::{Fpage, Uid};

/// Values within values that may be absent, and lists within lists without a bound, at most: a hostile message cannot nest deeper.
const DEPTH_MAX: usize = 64;
/// Bytes of values that lie on the heap, in one message: a few bytes of it could be a great value.
const HEAP_BYTES_MAX: usize = 64 << 10;
/// Values that may be shared, in one message: C's stubs have their table on the stack.
const SHARED_MAX: usize = 64;

/// References that one message hands over at most: who receives has a window for each, which is a number of its task.
pub const HANDED_MAX: usize = 16;

/// References that are handed over with values that are being written: map items.
#[derive(Debug)]
pub struct Handing {
    items: [(Fpage, u64); HANDED_MAX],
    count: usize,
    most: usize,
    granted: bool,
}

impl Handing {
    /// None yet, and at most so many. `granted`: whoever writes them has them no more when they have left.
    pub const fn new(most: usize, granted: bool) -> Handing {
        Handing { items: [(Fpage::NIL, 0); HANDED_MAX], count: 0, most, granted }
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count as u64
    }

    /// Describes them in words that begin so.
    pub fn describe(&self, words: &mut [u64]) {
        for (words, (place, beside)) in words.chunks_exact_mut(2).zip(&self.items[..self.count]) {
            words.copy_from_slice(&[place.0, *beside]);
        }
    }
}

/// References that have come with a message, in order.
pub trait Arrived {
    /// The next one: the identifier's place and what came beside it. It is whoever's who asks. `None` if there is none, or if nothing has arrived
    /// there.
    fn next(&mut self) -> Option<[u64; 2]>;
    /// Whether there is one that nobody has asked for.
    fn is_left(&self) -> bool;
}

/// Words that are being written. What does not fit is not written, and neither is what comes behind it.
#[derive(Debug)]
pub struct Out<'a> {
    words: &'a mut [u64],
    /// Bytes that are written; more than there are once something did not fit.
    at: usize,
    /// Where values lie that may be shared, and of which types they are; their places are their numbers.
    shared: Vec<(usize, TypeId)>,
    /// References that are handed over, if there can be some.
    handing: Option<&'a mut Handing>,
}

impl<'a> Out<'a> {
    /// Begins in front of these words, whatever they are.
    pub fn new(words: &'a mut [u64]) -> Out<'a> {
        Out { words, at: 0, shared: Vec::new(), handing: None }
    }

    /// Begins in front of these words, with references beside them.
    pub fn handing(words: &'a mut [u64], handing: &'a mut Handing) -> Out<'a> {
        Out { words, at: 0, shared: Vec::new(), handing: Some(handing) }
    }

    /// Hands a reference over, whose map item depends on whether it is granted; or none. One too many is as if it did not fit.
    pub fn hand(&mut self, item: Option<impl FnOnce(bool) -> (Fpage, u64)>) {
        item.is_some().put(self);
        let Some(item) = item else { return };
        match self.handing.as_deref_mut().filter(|handing| handing.count < handing.most) {
            Some(handing) => {
                if let Some(place) = handing.items.get_mut(handing.count) {
                    *place = item(handing.granted);
                    handing.count += 1;
                }
            }
            None => self.at = usize::MAX,
        }
    }

    fn write(&mut self, from: &[u8]) {
        let begin = self.at;
        self.at = begin.saturating_add(from.len());
        if let Some(to) = bytes_mut(self.words).get_mut(begin..self.at) {
            to.copy_from_slice(from);
        }
    }

    /// Zeros up to a multiple of `align`, which is at most 8.
    pub fn align(&mut self, align: usize) {
        let missing = self.at.wrapping_neg() % align;
        self.write(&[0; 8][..missing]);
    }

    /// How many words there are now; `None` if not everything did fit.
    pub fn finish(mut self) -> Option<usize> {
        self.align(8);
        (self.at <= 8 * self.words.len()).then_some(self.at / 8)
    }
}

/// Words that are being read. Every step checks that they are there.
pub struct In<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    heap_bytes: usize,
    /// Values that may be shared, by their numbers; none while they are being read.
    shared: Vec<Option<Shared<dyn Any + Send + Sync>>>,
    /// References that have come with the message.
    arrived: Option<&'a mut dyn Arrived>,
}

impl fmt::Debug for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("In").field("bytes", &self.bytes).field("at", &self.at).finish_non_exhaustive()
    }
}

impl<'a> In<'a> {
    /// Begins in front of these words.
    pub fn new(words: &'a [u64]) -> In<'a> {
        In { bytes: bytes(words), at: 0, depth: 0, heap_bytes: 0, shared: Vec::new(), arrived: None }
    }

    /// Values among which are these references.
    pub fn with(self, arrived: &'a mut dyn Arrived) -> In<'a> {
        In { arrived: Some(arrived), ..self }
    }

    /// The next reference: none, or where it is and what came beside it. One that has not come makes the message malformed.
    pub fn handed(&mut self) -> Result<Option<[u64; 2]>, Malformed> {
        if !bool::get(self)? {
            return Ok(None);
        }
        self.arrived.as_deref_mut().and_then(Arrived::next).map(Some).ok_or(Malformed)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(taken)
    }

    /// Steps over what is before a multiple of `align`.
    pub fn align(&mut self, align: usize) -> Result<(), Malformed> {
        self.take(self.at.wrapping_neg() % align).map(drop)
    }

    /// Takes room on the heap.
    fn room(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.heap_bytes = self.heap_bytes.saturating_add(bytes);
        if self.heap_bytes <= HEAP_BYTES_MAX { Ok(()) } else { Err(Malformed) }
    }

    /// Reads one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<T, Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// The end: nothing is left, but for what fills the last word.
    pub fn finish(mut self) -> Result<(), Malformed> {
        self.align(8)?;
        let is_left = self.arrived.is_some_and(|arrived| arrived.is_left());
        if self.at == self.bytes.len() && !is_left { Ok(()) } else { Err(Malformed) }
    }
}

/// A value with references to objects.
pub trait Gives {
    /// The references in it have been given away: it leads nowhere from now on, and nobody gives them back.
    fn give(&mut self);
}

impl<T: Gives> Gives for [T] {
    fn give(&mut self) {
        self.iter_mut().for_each(Gives::give);
    }
}

impl<T: Gives, const N: usize> Gives for [T; N] {
    fn give(&mut self) {
        self[..].give();
    }
}

impl<T: Gives, const N: usize> Gives for List<T, N> {
    fn give(&mut self) {
        self[..].give();
    }
}

impl<T: Gives> Gives for Vec<T> {
    fn give(&mut self) {
        self[..].give();
    }
}

impl<T: Gives> Gives for Option<T> {
    fn give(&mut self) {
        self.iter_mut().for_each(Gives::give);
    }
}

impl<T: Gives> Gives for Box<T> {
    fn give(&mut self) {
        (**self).give();
    }
}

/// A type whose values travel in streams.
pub trait Wire: Sized {
    /// Writes a value.
    fn put(&self, out: &mut Out);
    /// Reads and checks a value.
    fn get(from: &mut In) -> Result<Self, Malformed>;
}

macro_rules! number {
    ($($ty:ident)*) => {$(
        impl Wire for $ty {
            fn put(&self, out: &mut Out) {
                out.align(size_of::<$ty>());
                out.write(&self.to_le_bytes());
            }
            fn get(from: &mut In) -> Result<$ty, Malformed> {
                from.align(size_of::<$ty>())?;
                let bytes = from.take(size_of::<$ty>())?;
                Ok($ty::from_le_bytes(bytes.try_into().map_err(|_| Malformed)?))
            }
        }
    )*};
}

number!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

impl Wire for bool {
    fn put(&self, out: &mut Out) {
        u8::from(*self).put(out);
    }
    fn get(from: &mut In) -> Result<bool, Malformed> {
        match u8::get(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl Wire for char {
    fn put(&self, out: &mut Out) {
        u32::from(*self).put(out);
    }
    fn get(from: &mut In) -> Result<char, Malformed> {
        char::from_u32(u32::get(from)?).ok_or(Malformed)
    }
}

impl Wire for Uid {
    fn put(&self, out: &mut Out) {
        self.0.put(out);
    }
    fn get(from: &mut In) -> Result<Uid, Malformed> {
        u64::get(from).map(Uid)
    }
}

impl<const N: usize> Wire for Text<N> {
    fn put(&self, out: &mut Out) {
        put_count(self.len(), out);
        out.write(self.as_bytes());
        out.write(&[0]);
    }
    fn get(from: &mut In) -> Result<Text<N>, Malformed> {
        let count = u32::get(from)? as usize;
        let text = core::str::from_utf8(from.take(count)?).map_err(|_| Malformed)?;
        if u8::get(from)? != 0 {
            return Err(Malformed);
        }
        Text::new(text).ok_or(Malformed)
    }
}

impl<T: Wire + Blank, const N: usize> Wire for List<T, N> {
    fn put(&self, out: &mut Out) {
        put_elements(self, out);
    }
    fn get(from: &mut In) -> Result<List<T, N>, Malformed> {
        let count = u32::get(from)? as usize;
        List::try_fill(count, || T::get(from))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Out) {
        put_count(self.len(), out);
        out.write(self.as_bytes());
        out.write(&[0]);
    }
    fn get(from: &mut In) -> Result<String, Malformed> {
        let count = u32::get(from)? as usize;
        let text = core::str::from_utf8(from.take(count)?).map_err(|_| Malformed)?;
        if u8::get(from)? != 0 {
            return Err(Malformed);
        }
        Ok(text.into())
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Out) {
        put_elements(self, out);
    }
    fn get(from: &mut In) -> Result<Vec<T>, Malformed> {
        let count = u32::get(from)? as usize;
        from.nested(|from| {
            let mut list = Vec::new();
            for _ in 0..count {
                from.room(size_of::<T>())?;
                list.push(T::get(from)?);
            }
            Ok(list)
        })
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Out) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(from: &mut In) -> Result<Option<T>, Malformed> {
        if bool::get(from)? { from.nested(T::get).map(Some) } else { Ok(None) }
    }
}

/// A value that several others may share: 0 if it is absent, 1 before one that is new, 2 before the number of one that was there before.
impl<T: Wire + Send + Sync + 'static> Wire for Option<Shared<T>> {
    fn put(&self, out: &mut Out) {
        let Some(value) = self else { return 0u8.put(out) };
        let key = (Shared::as_ptr(value).addr(), TypeId::of::<T>());
        match out.shared.iter().position(|known| *known == key) {
            Some(number) => {
                2u8.put(out);
                (number as u32).put(out);
            }
            // It is as if it did not fit.
            None if out.shared.len() == SHARED_MAX => out.at = usize::MAX,
            None => {
                out.shared.push(key);
                1u8.put(out);
                value.as_ref().put(out);
            }
        }
    }
    fn get(from: &mut In) -> Result<Option<Shared<T>>, Malformed> {
        match u8::get(from)? {
            0 => Ok(None),
            1 if from.shared.len() < SHARED_MAX => {
                let number = from.shared.len();
                from.room(size_of::<T>())?;
                from.shared.push(None);
                let value = Shared::new(from.nested(T::get)?);
                from.shared[number] = Some(value.clone());
                Ok(Some(value))
            }
            2 => {
                let number = u32::get(from)? as usize;
                let value = from.shared.get(number).cloned().flatten().ok_or(Malformed)?;
                value.downcast().map(Some).map_err(|_| Malformed)
            }
            _ => Err(Malformed),
        }
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Out) {
        (**self).put(out);
    }
    fn get(from: &mut In) -> Result<Box<T>, Malformed> {
        from.room(size_of::<T>())?;
        T::get(from).map(Box::new)
    }
}

impl Blank for String {
    const BLANK: String = String::new();
}

impl<T> Blank for Vec<T> {
    const BLANK: Vec<T> = Vec::new();
}

impl<T> Blank for Option<T> {
    const BLANK: Option<T> = None;
}

impl<T: Wire + Blank, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Out) {
        self.iter().for_each(|value| value.put(out));
    }
    fn get(from: &mut In) -> Result<[T; N], Malformed> {
        let mut values = Self::BLANK;
        for value in &mut values {
            *value = T::get(from)?;
        }
        Ok(values)
    }
}

/// Writes the number of elements. One that does not fit into 32 bits does not fit into a message either.
fn put_count(count: usize, out: &mut Out) {
    (count as u32).put(out);
}

/// Writes a list: its length, then its elements.
pub fn put_elements<T: Wire>(list: &[T], out: &mut Out) {
    put_count(list.len(), out);
    list.iter().for_each(|value| value.put(out));
}

#[cfg(test)]
mod tests;
