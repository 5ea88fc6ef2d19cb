//! A text, which is in the heap as long as it is short.

use alloc::vec::Vec;
use api::Status;

/// Longest text in the heap, in bytes: all that is kept for servers is.
pub const SHORT_LEN_MAX: usize = api::process::KEPT_LEN_MAX;

/// Memory of one long text, which is given back when it is dropped.
pub trait Memory {
    /// Its bytes, of which there are as many as a text may have. What an earlier owner left there is still there.
    fn bytes(&self) -> &[u8];

    /// See [`Memory::bytes`].
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A text.
#[derive(Debug)]
pub enum Text<M> {
    /// In the heap.
    Short(Vec<u8>),
    /// So many bytes in memory of its own.
    Long(M, usize),
}

impl<M> Default for Text<M> {
    fn default() -> Text<M> {
        Text::Short(Vec::new())
    }
}

impl<M> Text<M> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Text::Short(bytes) => bytes.len(),
            Text::Long(_, len) => *len,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has memory of its own.
    pub fn is_long(&self) -> bool {
        matches!(self, Text::Long(..))
    }
}

impl<M: Memory> Text<M> {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Text::Short(bytes) => bytes,
            Text::Long(memory, len) => &memory.bytes()[..*len],
        }
    }

    /// Leaves its first bytes, and forgets the others. A short text keeps no more than twice the memory that these need.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Text::Short(bytes) => {
                bytes.truncate(len);
                bytes.shrink_to(2 * len);
            }
            Text::Long(_, long) => *long = len.min(*long),
        }
    }

    /// Adds bytes at its end. `memory` is asked when the text becomes long. Errors, after which it is as it was: [`Status::TooLarge`] if the memory of a text has
    /// fewer bytes, [`Status::Exhausted`] if there is none.
    pub fn append(&mut self, more: &[u8], memory: impl FnOnce() -> Option<M>) -> Result<(), Status> {
        let len = self.len().saturating_add(more.len());
        if let Text::Short(bytes) = self {
            if len <= SHORT_LEN_MAX {
                bytes.extend(more);
                return Ok(());
            }
            let mut memory = memory().ok_or(Status::Exhausted)?;
            memory.bytes_mut().get_mut(..bytes.len()).ok_or(Status::TooLarge)?.copy_from_slice(bytes);
            let before = bytes.len();
            put(&mut memory, before, more)?;
            *self = Text::Long(memory, len);
            return Ok(());
        }
        if let Text::Long(memory, before) = self {
            put(memory, *before, more)?;
            *before = len;
        }
        Ok(())
    }
}

fn put(memory: &mut impl Memory, at: usize, more: &[u8]) -> Result<(), Status> {
    let end = at.checked_add(more.len()).ok_or(Status::TooLarge)?;
    memory.bytes_mut().get_mut(at..end).ok_or(Status::TooLarge)?.copy_from_slice(more);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::rc::Rc;
    use std::vec;

    /// Most bytes of a long text, here.
    pub(crate) const LONG_LEN_MAX: usize = 20_000;

    /// Memory that counts how much of it there is.
    #[derive(Debug)]
    pub(crate) struct Counted {
        bytes: Vec<u8>,
        _all: Rc<()>,
    }

    impl Counted {
        /// With what others have left there. `None` if there are so many already.
        pub(crate) fn new(all: &Rc<()>, most: usize) -> Option<Counted> {
            (Rc::strong_count(all) <= most)
                .then(|| Counted { bytes: vec![b'#'; LONG_LEN_MAX], _all: all.clone() })
        }
    }

    impl Memory for Counted {
        fn bytes(&self) -> &[u8] {
            &self.bytes
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.bytes
        }
    }

    /// A text of any length, put together from pieces of any length, is what was put together; memory is asked for once, and given back.
    #[test]
    fn pieces_make_a_text() {
        let all = Rc::new(());
        for piece_len in [1, 7, 56, 4000, LONG_LEN_MAX] {
            for len in [0, 1, SHORT_LEN_MAX - 1, SHORT_LEN_MAX, SHORT_LEN_MAX + 1, LONG_LEN_MAX] {
                let wanted: Vec<u8> = (0..len).map(|at| b'a' + (at % 23) as u8).collect();
                let mut text = Text::default();
                for piece in wanted.chunks(piece_len) {
                    text.append(piece, || Counted::new(&all, 1)).expect("there is memory for one");
                }
                assert_eq!((text.len(), text.bytes()), (len, &wanted[..]));
                assert_eq!(
                    (text.is_long(), Rc::strong_count(&all)),
                    (len > SHORT_LEN_MAX, 1 + usize::from(text.is_long()))
                );
                let half = len / 2;
                text.truncate(half);
                text.truncate(len);
                assert_eq!(text.bytes(), &wanted[..half]);
            }
        }
        assert_eq!(Rc::strong_count(&all), 1, "all memory was given back");
    }

    /// Bytes that do not fit, or for which there is no memory, change nothing.
    #[test]
    fn a_refusal_leaves_the_text() {
        let all = Rc::new(());
        let mut text = Text::default();
        text.append(&[b'a'; SHORT_LEN_MAX], || None).expect("it is short");
        assert_eq!(text.append(b"b", || None), Err(Status::Exhausted));
        assert_eq!(text.append(&[b'b'; LONG_LEN_MAX], || Counted::new(&all, 1)), Err(Status::TooLarge));
        assert_eq!((text.bytes(), Rc::strong_count(&all)), (&[b'a'; SHORT_LEN_MAX][..], 1));
        let rest = [b'b'; LONG_LEN_MAX - SHORT_LEN_MAX];
        text.append(&rest, || Counted::new(&all, 1)).expect("it fits");
        assert_eq!(text.append(b"c", || None), Err(Status::TooLarge));
        assert_eq!((text.len(), text.bytes().last()), (LONG_LEN_MAX, Some(&b'b')));
    }
}
