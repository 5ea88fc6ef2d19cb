//! Values in words: each type knows how many bytes it takes, and how to be read with a check. The words are registers, or
//! the part of a message in memory.
//!
//! Places are bytes from the start of the first word, decided by quill's layout and constant after inlining: a value in a
//! register of its own is a move.

use crate::Uid;

/// Words of a message.
pub const WORDS: usize = 11;

/// All words of a message.
pub type Words = [u64; WORDS];

/// The bits are no value of the type that is expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// A type that knows some value, to fill places of which nothing is said.
pub trait Blank: Sized {
    /// Any value will do.
    const BLANK: Self;
}

impl<T: Blank, const N: usize> Blank for [T; N] {
    const BLANK: [T; N] = [const { T::BLANK }; N];
}

/// A type of fixed size whose values travel in words.
pub trait Piece: Blank {
    /// Its size.
    const BYTES: usize;
    /// Writes a value over zeros.
    fn put(&self, words: &mut [u64], at: usize);
    /// Reads and checks a value.
    fn get(words: &[u64], at: usize) -> Result<Self, Malformed>;
}

macro_rules! number {
    ($($ty:ident $unsigned:ident)*) => {$(
        impl Blank for $ty {
            const BLANK: $ty = 0;
        }
        impl Piece for $ty {
            const BYTES: usize = size_of::<$ty>();
            #[inline(always)]
            fn put(&self, words: &mut [u64], at: usize) {
                words[at / 8] |= (*self as $unsigned as u64) << (at % 8 * 8);
            }
            #[inline(always)]
            fn get(words: &[u64], at: usize) -> Result<$ty, Malformed> {
                Ok((words[at / 8] >> (at % 8 * 8)) as $ty)
            }
        }
    )*};
}

number!(u8 u8 u16 u16 u32 u32 u64 u64 i8 u8 i16 u16 i32 u32 i64 u64);

/// A type that travels as another one.
macro_rules! through {
    ($ty:ident, $carrier:ident, $any:expr, $to:expr, $from:expr) => {
        impl Blank for $ty {
            const BLANK: $ty = $any;
        }
        impl Piece for $ty {
            const BYTES: usize = size_of::<$carrier>();
            #[inline(always)]
            fn put(&self, words: &mut [u64], at: usize) {
                let to: fn($ty) -> $carrier = $to;
                to(*self).put(words, at);
            }
            #[inline(always)]
            fn get(words: &[u64], at: usize) -> Result<$ty, Malformed> {
                let from: fn($carrier) -> Option<$ty> = $from;
                from($carrier::get(words, at)?).ok_or(Malformed)
            }
        }
    };
}

through!(f32, u32, 0.0, f32::to_bits, |bits| Some(f32::from_bits(bits)));
through!(f64, u64, 0.0, f64::to_bits, |bits| Some(f64::from_bits(bits)));
through!(bool, u8, false, u8::from, |byte| if byte > 1 { None } else { Some(byte == 1) });
through!(char, u32, '\0', u32::from, char::from_u32);
through!(Uid, u64, Uid::NIL, |uid| uid.0, |word| Some(Uid(word)));

impl<T: Piece, const N: usize> Piece for [T; N] {
    const BYTES: usize = T::BYTES * N;
    #[inline(always)]
    fn put(&self, words: &mut [u64], at: usize) {
        for (i, value) in self.iter().enumerate() {
            value.put(words, at + i * T::BYTES);
        }
    }
    #[inline(always)]
    fn get(words: &[u64], at: usize) -> Result<[T; N], Malformed> {
        let mut values = Self::BLANK;
        for (i, value) in values.iter_mut().enumerate() {
            *value = T::get(words, at + i * T::BYTES)?;
        }
        Ok(values)
    }
}

/// The first bytes of a value as a value of another type, of which all bit patterns are values. Zeros stand behind them.
#[inline(always)]
pub fn view<A: Piece, B: Piece, const WORDS: usize>(value: &A) -> B {
    let mut words = [0; WORDS];
    value.put(&mut words, 0);
    B::get(&words, 0).unwrap_or_else(|_| unreachable!("all bytes are values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Piece + PartialEq + core::fmt::Debug>(value: T, at: usize) {
        let mut words = [0; WORDS];
        value.put(&mut words, at);
        assert_eq!(T::get(&words, at), Ok(value));
    }

    #[test]
    fn values_come_back() {
        there_and_back(-5i32, 4);
        there_and_back(u64::MAX, 80);
        there_and_back(-1i8, 87);
        there_and_back(true, 3);
        there_and_back('ß', 8);
        there_and_back(-0.5f64, 16);
        there_and_back([[1u16, 2, 3], [4, 5, 6]], 12);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let words = [0xd802; WORDS];
        assert_eq!(bool::get(&words, 0), Err(Malformed));
        assert_eq!(char::get(&words, 0), Err(Malformed));
        assert_eq!(<[bool; 2]>::get(&words, 0), Err(Malformed));
    }

    #[test]
    fn neighbours_are_left_alone() {
        let mut words = [0; WORDS];
        (-1i16).put(&mut words, 2);
        assert_eq!(words[0], 0xffff_0000);
    }
}
