//! Values that are written and read piece by piece: unions, and lists of anything that has no fixed size.
//!
//! They lie in the words of a message, behind those values that have places of their own: each from a multiple of its size,
//! with zeros between, texts and lists behind their lengths, and texts before a zero, which C wants. What is read is
//! checked when it is read, and owned by whoever reads it.

use core::any::{Any, TypeId};

use crate::Uid;
use crate::long::{bytes, bytes_mut};
use crate::{Blank, Box, List, Malformed, Shared, String, Text, Vec};

/// Values within values that may be absent, and lists within lists without a bound, at most: a hostile message cannot nest deeper.
const DEPTH_MAX: usize = 64;
/// Bytes of values that lie on the heap, in one message: a few bytes of it could be a great value.
const HEAP_BYTES_MAX: usize = 64 << 10;
/// Values that may be shared, in one message: C's stubs have their table on the stack.
const SHARED_MAX: usize = 64;

/// Words that are being written. What does not fit is not written, and neither is what comes behind it.
#[derive(Debug)]
pub struct Out<'a> {
    words: &'a mut [u64],
    /// Bytes that are written; more than there are once something did not fit.
    at: usize,
    /// Where values lie that may be shared, and of which types they are; their places are their numbers.
    shared: Vec<(usize, TypeId)>,
}

impl<'a> Out<'a> {
    /// Begins in front of these words, whatever they are.
    pub fn new(words: &'a mut [u64]) -> Out<'a> {
        Out { words, at: 0, shared: Vec::new() }
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
#[derive(Debug)]
pub struct In<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    heap_bytes: usize,
    /// Values that may be shared, by their numbers; none while they are being read.
    shared: Vec<Option<Shared<dyn Any + Send + Sync>>>,
}

impl<'a> In<'a> {
    /// Begins in front of these words.
    pub fn new(words: &'a [u64]) -> In<'a> {
        In { bytes: bytes(words), at: 0, depth: 0, heap_bytes: 0, shared: Vec::new() }
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
        if self.at == self.bytes.len() { Ok(()) } else { Err(Malformed) }
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
mod tests {
    use super::*;

    type Names = List<Text<8>, 3>;

    fn names(all: &[&str]) -> Names {
        let mut left = all.iter();
        let fill = || left.next().and_then(|name| Text::new(name)).ok_or(Malformed);
        List::try_fill(all.len(), fill).unwrap()
    }

    #[test]
    fn values_come_back_and_nothing_shows() {
        let mut words = [u64::MAX; 8];
        let mut out = Out::new(&mut words);
        true.put(&mut out);
        names(&["one", "", "née"]).put(&mut out);
        out.align(8);
        (-7i16).put(&mut out);
        assert_eq!(out.finish(), Some(6));
        assert_eq!(words[..2], [0x3_0000_0001, 0x0065_6e6f_0000_0003]);
        let mut from = In::new(&words[..6]);
        assert_eq!(bool::get(&mut from), Ok(true));
        assert_eq!(Names::get(&mut from), Ok(names(&["one", "", "née"])));
        from.align(8).unwrap();
        assert_eq!(i16::get(&mut from), Ok(-7));
        assert_eq!(from.finish(), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        for room in 0..5 {
            let mut words = [0; 8];
            let mut out = Out::new(&mut words[..room]);
            names(&["one", "two", "three"]).put(&mut out);
            assert_eq!(out.finish(), (room == 4).then_some(4), "{room}");
            assert_eq!(words[room..], [0; 8][room..]);
        }
    }

    #[test]
    fn what_lies_elsewhere_comes_back() {
        type Tree = Vec<Option<Box<Vec<String>>>>;
        let tree: Tree = Vec::from([None, Some(Box::new(Vec::from(["one".into(), String::new()]))), None]);
        let mut words = [u64::MAX; 8];
        let mut out = Out::new(&mut words);
        tree.put(&mut out);
        let end = out.finish().unwrap();
        let mut from = In::new(&words[..end]);
        assert_eq!(Tree::get(&mut from), Ok(tree));
        assert_eq!(from.finish(), Ok(()));
        for cut in 0..end {
            assert_eq!(Tree::get(&mut In::new(&words[..cut])), Err(Malformed), "{cut}");
        }
        let claims = |words: &[u64]| Tree::get(&mut In::new(words)).err();
        assert_eq!(claims(&[u32::MAX.into()]), Some(Malformed), "elements that are not there");
        assert_eq!(claims(&[2 << 32 | 1]), Some(Malformed), "neither there nor absent");
    }

    /// A value that others may share, and a list of such.
    type Pair = (Option<Shared<String>>, Vec<Option<Shared<u8>>>);

    fn write_pair(pair: &Pair, words: &mut [u64]) -> Option<usize> {
        let mut out = Out::new(words);
        pair.0.put(&mut out);
        pair.1.put(&mut out);
        out.finish()
    }

    fn read_pair(words: &[u64]) -> Result<Pair, Malformed> {
        let mut from = In::new(words);
        let pair = (Option::get(&mut from)?, Vec::get(&mut from)?);
        from.finish().map(|()| pair)
    }

    #[test]
    fn what_is_shared_is_there_once() {
        let (one, other) = (Some(Shared::new(7)), Some(Shared::new(7)));
        let pair: Pair = (Some(Shared::new("x".into())), Vec::from([one.clone(), None, other, one]));
        let mut words = [u64::MAX; 8];
        let end = write_pair(&pair, &mut words).unwrap();
        assert_eq!(end, 4);
        let got = read_pair(&words[..end]).unwrap();
        assert_eq!(got, pair);
        let same = |a: usize, b: usize| match (&got.1[a], &got.1[b]) {
            (Some(a), Some(b)) => Shared::ptr_eq(a, b),
            _ => false,
        };
        assert!(same(0, 3) && !same(0, 2));
        for number in [0u64, 3, u32::MAX.into()] {
            let mut bad = words;
            // It is all that the last word has: the text is 0, and there are three.
            bad[end - 1] = number;
            assert_eq!(read_pair(&bad[..end]), Err(Malformed), "{number}");
        }
    }

    #[test]
    fn no_more_is_shared_than_a_table_holds() {
        for count in [SHARED_MAX - 1, SHARED_MAX] {
            let list = (0..count).map(|_| Some(Shared::new(7))).collect();
            let mut words = [0; 64];
            let end = write_pair(&(Some(Shared::new(String::new())), list), &mut words);
            assert_eq!(end.is_some(), count < SHARED_MAX);
            if let Some(end) = end {
                assert!(read_pair(&words[..end]).is_ok());
            }
        }
        // Beginnings of values that are there, one more than a table holds.
        let mut bytes = [1u8; 8 * 24];
        bytes[..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SHARED_MAX as u8, 0, 0, 0]);
        let words: [u64; 24] =
            core::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap()));
        assert_eq!(read_pair(&words[..2 + SHARED_MAX / 4]), Err(Malformed));
    }

    /// A list of lists without an end.
    #[derive(Debug, PartialEq)]
    struct Deep(Option<Box<Deep>>);

    impl Wire for Deep {
        fn put(&self, out: &mut Out) {
            self.0.put(out);
        }
        fn get(from: &mut In) -> Result<Deep, Malformed> {
            Option::get(from).map(Deep)
        }
    }

    #[test]
    fn nothing_nests_deeper_than_it_may() {
        let deep = |levels: usize| {
            let mut bytes = [0u8; 128];
            bytes[..levels].fill(1);
            let words: [u64; 16] =
                core::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap()));
            Deep::get(&mut In::new(&words)).map(drop)
        };
        assert_eq!(deep(DEPTH_MAX), Ok(()));
        assert_eq!(deep(DEPTH_MAX + 1), Err(Malformed));
    }

    #[test]
    fn claims_are_refused() {
        let get = |words: &[u64]| {
            let mut from = In::new(words);
            let got = Names::get(&mut from)?;
            from.finish().map(|()| got)
        };
        assert_eq!(get(&[0]), Ok(names(&[])));
        assert_eq!(get(&[0, 0]), Err(Malformed), "a word more");
        assert_eq!(get(&[4, 0, 0, 0, 0, 0, 0]), Err(Malformed), "too many elements");
        assert_eq!(get(&[2, 0]), Err(Malformed), "an element that is not there");
        assert_eq!(get(&[9 << 32 | 1, 0, 0]), Err(Malformed), "a text that is too long");
        assert_eq!(get(&[u64::MAX - 1, 0, 0]), Err(Malformed), "a length without end");
        assert_eq!(get(&[1 << 32 | 1, 0xff]), Err(Malformed), "a text that is none");
        assert_eq!(get(&[1 << 32 | 1, 0x101]), Err(Malformed), "no zero");
    }
}
