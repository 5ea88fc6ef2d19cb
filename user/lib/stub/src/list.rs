//! Short lists and texts: what a bounded sequence or string is when it travels in registers.

use crate::{Blank, Malformed, Piece};
use core::array::IntoIter;
use core::fmt;
use core::iter::Take;
use core::ops::{Deref, DerefMut};

/// At most `N` values.
#[derive(Clone, Copy)]
pub struct List<T, const N: usize> {
    len: usize,
    items: [T; N],
}

impl<T: Blank, const N: usize> Blank for List<T, N> {
    const BLANK: List<T, N> = List { len: 0, items: <[T; N]>::BLANK };
}

impl<T: Blank, const N: usize> List<T, N> {
    /// A list of so many values, if there may be so many.
    pub fn try_fill(
        len: usize,
        mut value: impl FnMut() -> Result<T, Malformed>,
    ) -> Result<List<T, N>, Malformed> {
        let mut items = <[T; N]>::BLANK;
        for item in items.get_mut(..len).ok_or(Malformed)? {
            *item = value()?;
        }
        Ok(List { len, items })
    }

    /// A list of these values, which need not be of a type that can be copied; `None` if they are too many.
    pub fn of(values: impl IntoIterator<Item = T>) -> Option<List<T, N>> {
        let (mut len, mut items) = (0, <[T; N]>::BLANK);
        for value in values {
            *items.get_mut(len)? = value;
            len += 1;
        }
        Some(List { len, items })
    }
}

impl<T, const N: usize> IntoIterator for List<T, N> {
    type Item = T;
    type IntoIter = Take<IntoIter<T, N>>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter().take(self.len)
    }
}

impl<T: Blank + Clone, const N: usize> List<T, N> {
    /// A list of these values; `None` if they are too many.
    #[inline(always)]
    pub fn new(values: &[T]) -> Option<List<T, N>> {
        let mut items = <[T; N]>::BLANK;
        items.get_mut(..values.len())?.clone_from_slice(values);
        Some(List { len: values.len(), items })
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.items[..self.len.min(N)]
    }
}

impl<T, const N: usize> DerefMut for List<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len.min(N)]
    }
}

impl<T: PartialEq, const N: usize> PartialEq for List<T, N> {
    fn eq(&self, other: &List<T, N>) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for List<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Text of at most `N` bytes.
#[derive(Clone, Copy, PartialEq)]
pub struct Text<const N: usize>(List<u8, N>);

impl<const N: usize> Blank for Text<N> {
    const BLANK: Text<N> = Text(List::BLANK);
}

impl<const N: usize> Text<N> {
    /// A text of this content; `None` if it is too long.
    pub fn new(text: &str) -> Option<Text<N>> {
        List::new(text.as_bytes()).map(Text)
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;
    fn deref(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Writes elements over zeros.
#[inline(always)]
pub fn put_list<T: Piece>(list: &[T], words: &mut [u64], at: usize) {
    for (i, value) in list.iter().enumerate() {
        value.put(words, at + i * T::BYTES);
    }
}

/// Reads `count` elements, if there may be so many.
#[inline(always)]
pub fn get_list<T: Piece, const N: usize>(
    words: &[u64],
    at: usize,
    count: u32,
) -> Result<List<T, N>, Malformed> {
    let len = count as usize;
    if len > N {
        return Err(Malformed);
    }
    let mut items = <[T; N]>::BLANK;
    for (i, item) in items[..len].iter_mut().enumerate() {
        *item = T::get(words, at + i * T::BYTES)?;
    }
    Ok(List { len, items })
}

/// Reads text of `count` bytes.
#[inline(always)]
pub fn get_text<const N: usize>(words: &[u64], at: usize, count: u32) -> Result<Text<N>, Malformed> {
    let bytes = get_list::<u8, N>(words, at, count)?;
    if core::str::from_utf8(&bytes).is_err() {
        return Err(Malformed);
    }
    Ok(Text(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WORDS;

    #[test]
    fn lists_come_back_and_claims_do_not() {
        let mut words = [0; WORDS];
        put_list(&[1u16, 2, 3], &mut words, 8);
        assert_eq!(&*get_list::<u16, 8>(&words, 8, 3).unwrap(), &[1, 2, 3]);
        assert_eq!(get_list::<u16, 8>(&words, 8, 9), Err(Malformed));
        assert_eq!(get_list::<u16, 8>(&words, 8, u32::MAX), Err(Malformed));
    }

    #[test]
    fn text_is_utf8() {
        let mut words = [0; WORDS];
        put_list("née".as_bytes(), &mut words, 0);
        assert_eq!(&*get_text::<16>(&words, 0, 4).unwrap(), "née");
        assert_eq!(get_text::<16>(&words, 0, 2).err(), Some(Malformed));
    }
}
