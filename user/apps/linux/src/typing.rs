//! Keys, and between them what the terminal answers when it is asked for its size: it is asked before the first process begins, if somebody sits there.

use crate::helpers::{KEYS, keys};
use alloc::vec::Vec;
use linux::terminal::Window;
use linux::terminal::question::{Heard, QUESTION, Question};
use rt::sys::{self, Message, Timeout, Uid};
use rt::{io, time};

/// How long the first process waits for the answer, in nanoseconds. It hears of a later one by a signal.
const PATIENCE_NS: u64 = 500_000_000;

/// How long an answer may take, in nanoseconds. Behind it all bytes are keys; until then, one that may begin an answer waits for the next.
const ANSWER_NS: u64 = 10_000_000_000;

/// Bytes that come from the terminal.
#[derive(Debug, Default)]
pub struct Typing {
    question: Option<Question>,
    asked_ns: u64,
}

impl Typing {
    /// Asks, and waits a while for the answer, and for nothing else but keys. The window, if it is known, and keys that were typed.
    pub fn ask(&mut self) -> (Option<Window>, Vec<u8>) {
        io::complain(QUESTION);
        (self.question, self.asked_ns) = (Some(Question::default()), time::now_ns());
        let mut typed = Vec::new();
        loop {
            let left_ns = (self.asked_ns + PATIENCE_NS).saturating_sub(time::now_ns());
            let Ok(message) = sys::receive(Uid::ANY, Timeout::from_us(left_ns.div_ceil(1000))) else {
                return (None, typed);
            };
            let _ = sys::send(message.sender, 0, [0; 8], Timeout::ZERO);
            if message.label != KEYS {
                continue;
            }
            let (keys, window) = self.take(&message);
            typed.extend(keys);
            if window.is_some() {
                return (window, typed);
            }
        }
    }

    /// Keys of a message, and the answer if it came with them.
    pub fn take(&mut self, message: &Message) -> (Vec<u8>, Option<Window>) {
        let (bytes, count) = keys(message);
        let bytes = &bytes[..count];
        let Some(question) = &mut self.question else { return (bytes.to_vec(), None) };
        let (mut typed, mut window) = (Vec::new(), None);
        if time::now_ns() >= self.asked_ns + ANSWER_NS {
            typed = question.give_up();
        }
        for byte in bytes {
            match question.take(*byte) {
                Heard::Keys(keys) => typed.extend(keys),
                Heard::Answer(answer) => window = Some(answer),
            }
        }
        if question.is_over() {
            self.question = None;
        }
        (typed, window)
    }
}
