//! Control sequences by which programs of Tern speak to the tool at the other end of the serial line: how a machine ends, what is told of calls, where a program
//! has crashed. No program of Linux can print one, whatever it prints, and in whatever pieces.

use alloc::borrow::Cow;

/// Begin of all of them.
pub const START: &[u8] = b"\x1b]tern;";

/// Byte that a terminal takes for the end of a control sequence which means nothing (`CAN`).
const CANCEL: u8 = 0x18;

/// Bytes on their way from programs of Linux to the console.
#[derive(Debug, Default)]
pub struct Marks {
    /// Bytes of a begin that were the last to be printed.
    matched: usize,
}

impl Marks {
    /// Bytes as they are printed: in front of the last byte of a begin stands one that keeps it from being one.
    pub fn printed<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let [escape, .., last] = START else { return bytes.into() };
        if self.matched == 0 && !bytes.contains(escape) {
            return bytes.into();
        }
        let mut printed = alloc::vec::Vec::with_capacity(bytes.len());
        for byte in bytes {
            if self.matched + 1 == START.len() && byte == last {
                printed.push(CANCEL);
                self.matched = 0;
            }
            printed.push(*byte);
            // The first byte is nowhere else in it.
            let is_next = START.get(self.matched) == Some(byte);
            self.matched = if is_next { self.matched + 1 } else { usize::from(byte == escape) };
        }
        printed.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{CANCEL, Marks, START};
    use std::vec::Vec;

    fn printed(pieces: &[&[u8]]) -> Vec<u8> {
        let mut marks = Marks::default();
        pieces.iter().flat_map(|piece| marks.printed(piece).into_owned()).collect()
    }

    fn has_mark(bytes: &[u8]) -> bool {
        bytes.windows(START.len()).any(|window| window == START)
    }

    #[test]
    fn a_mark_is_none_wherever_it_is_cut() {
        let text = b"a\x1b\x1b]tern;exit=0\x07b\x1b]tern;trace x\n\x07";
        let expected = b"a\x1b\x1b]tern\x18;exit=0\x07b\x1b]tern\x18;trace x\n\x07";
        for first in 0..text.len() {
            for second in first..text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(printed(&pieces), expected, "{first} {second}");
            }
        }
    }

    #[test]
    fn all_else_is_printed_as_it_is() {
        let texts: [&[u8]; 5] =
            [b"", b"plain\n", b"\x1b[1mbold\x1b[0m", b"\x1b]0;title\x07", b"\x1b]tern\x1b]terns;]tern;"];
        for text in texts {
            assert_eq!(printed(&[text]), text);
        }
    }

    /// Random streams of the bytes that matter: none has a mark in it, and without the bytes that were put in they are what they were.
    #[test]
    fn no_stream_has_a_mark() {
        let mut random = 1u64;
        let mut next = |end: usize| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 33) as usize % end
        };
        let mut marks_before = 0;
        for _ in 0..2000 {
            let has_whole = next(2) == 0;
            let stream: Vec<u8> = (0..12)
                .flat_map(|_| {
                    let start = next(START.len());
                    START[start..(start + 1 + next(START.len())).min(START.len())].to_vec()
                })
                .chain(if has_whole { START.to_vec() } else { Vec::new() })
                .collect();
            let mut marks = Marks::default();
            let pieces = stream.chunks(1 + next(9));
            let printed: Vec<u8> = pieces.flat_map(|piece| marks.printed(piece).into_owned()).collect();
            assert!(!has_mark(&printed), "{printed:?}");
            let without: Vec<u8> = printed.iter().copied().filter(|byte| *byte != CANCEL).collect();
            assert_eq!(without, stream);
            marks_before += usize::from(has_mark(&stream));
        }
        assert!(marks_before > 900);
    }
}
