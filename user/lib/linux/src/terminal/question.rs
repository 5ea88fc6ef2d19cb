//! The question for a terminal's size, and its answer, which comes like keys: where does the cursor stand when it has gone as far as it can?

use super::Window;
use alloc::vec::Vec;

/// Control sequences that ask. The cursor is where it was behind them.
pub const QUESTION: &[u8] = b"\x1b7\x1b[999;999H\x1b[6n\x1b8";

/// Rows and columns of the smallest window. Less is no answer, but a key that looks like one: Shift-F3 does.
const SMALLEST: (u16, u16) = (2, 16);

/// Most bytes of an answer: two numbers with what stands around them.
const ANSWER_MAX: usize = 14;

/// A question that may be answered, between keys.
#[derive(Debug, Default)]
pub struct Question {
    /// Bytes that may be the beginning of the answer.
    begun: Vec<u8>,
    is_answered: bool,
}

/// Meaning of bytes up to some byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Keys, or nothing yet.
    Keys(Vec<u8>),
    /// The answer.
    Answer(Window),
}

impl Question {
    /// Takes a byte from the terminal.
    pub fn take(&mut self, byte: u8) -> Heard {
        if self.is_answered {
            return Heard::Keys(Vec::from([byte]));
        }
        if byte == 0x1b {
            // Another beginning.
            return Heard::Keys(core::mem::replace(&mut self.begun, Vec::from([byte])));
        }
        if self.begun.is_empty() {
            return Heard::Keys(Vec::from([byte]));
        }
        self.begun.push(byte);
        match (byte, self.begun.len()) {
            (b'[', 2) => Heard::Keys(Vec::new()),
            (b'0'..=b'9' | b';', 3..ANSWER_MAX) => Heard::Keys(Vec::new()),
            (b'R', 3..) => match window(&self.begun) {
                Some(window) => {
                    (self.begun, self.is_answered) = (Vec::new(), true);
                    Heard::Answer(window)
                }
                None => Heard::Keys(self.leave()),
            },
            _ => Heard::Keys(self.leave()),
        }
    }

    /// Takes what may have been an answer for keys, since no answer is waited for any longer.
    pub fn give_up(&mut self) -> Vec<u8> {
        self.is_answered = true;
        self.leave()
    }

    /// Whether nobody answers any more.
    pub fn is_over(&self) -> bool {
        self.is_answered
    }

    fn leave(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.begun)
    }
}

/// The window of a whole answer, `ESC [ row ; column R`.
fn window(answer: &[u8]) -> Option<Window> {
    let text = core::str::from_utf8(answer).ok()?;
    let (rows, columns) = text.strip_prefix("\x1b[")?.strip_suffix('R')?.split_once(';')?;
    let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
    (rows >= SMALLEST.0 && columns >= SMALLEST.1).then_some(Window { rows, columns, pixels: (0, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys behind each other, and the window if there was one.
    fn hear(question: &mut Question, bytes: &[u8]) -> (Vec<u8>, Option<(u16, u16)>) {
        let (mut keys, mut size) = (Vec::new(), None);
        for byte in bytes {
            match question.take(*byte) {
                Heard::Keys(more) => keys.extend(more),
                Heard::Answer(window) => size = Some((window.rows, window.columns)),
            }
        }
        (keys, size)
    }

    #[test]
    fn an_answer_stands_between_keys() {
        for (bytes, keys, size) in [
            (b"\x1b[24;80R".as_slice(), b"".as_slice(), Some((24, 80))),
            (b"ls\x1b[50;132R -l\r", b"ls -l\r", Some((50, 132))),
            // An arrow, and an escape, in front of it.
            (b"\x1b[A\x1b\x1b[30;100Rx", b"\x1b[A\x1bx", Some((30, 100))),
            // Shift-F3 is a key.
            (b"\x1b[1;2R\x1b[24;80R", b"\x1b[1;2R", Some((24, 80))),
            (b"\x1b[;80R", b"\x1b[;80R", None),
            (b"\x1b[24;80;3R", b"\x1b[24;80;3R", None),
            (b"\x1b[99999;80R", b"\x1b[99999;80R", None),
            (b"\x1b[0000000024;80R", b"\x1b[0000000024;80R", None),
            (b"\x1bOP", b"\x1bOP", None),
            // The second answer is for whoever else has asked.
            (b"\x1b[24;80R\x1b[9;20R", b"\x1b[9;20R", Some((24, 80))),
        ] {
            assert_eq!(hear(&mut Question::default(), bytes), (keys.to_vec(), size), "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_that_does_not_come_holds_no_keys() {
        let mut question = Question::default();
        assert_eq!(hear(&mut question, b"a\x1b[2"), (b"a".to_vec(), None));
        assert_eq!(question.give_up(), b"\x1b[2");
        assert!(question.is_over());
        assert_eq!(hear(&mut question, b"4;80R\x1b"), (b"4;80R\x1b".to_vec(), None));
    }
}
