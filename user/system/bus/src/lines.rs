//! Interrupt lines for messages: those that no pin of an interrupt controller leads to. The kernel says for each what a device writes to fire it.

use alloc::vec::Vec;
use rt::api::memory;
use rt::sys::{self, Fpage};

/// Number of lines that there can be. Line numbers of firmware from here on mean that there is none.
pub const COUNT: u8 = 192;

/// Lines below this one are pins of each PC.
const FIRST: u8 = 24;

/// A line, and the message that fires it: address and word.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Its number.
    pub number: u8,
    /// The message.
    pub message: (u64, u32),
}

/// Lines that no function has.
#[derive(Debug)]
pub struct Lines {
    /// Those that a function had before.
    free: Vec<Line>,
    /// Nobody has asked yet for those below this one.
    end: u8,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { free: Vec::new(), end: COUNT }
    }
}

impl Lines {
    /// Takes one. From the highest down, since pins of further interrupt controllers have numbers from below.
    pub fn take(&mut self) -> Option<Line> {
        self.free.pop().or_else(|| {
            let end = self.end;
            (FIRST..end).rev().find_map(|number| {
                self.end = number;
                let line = Fpage::interrupt(number);
                // The description may have given it to another program, and a pin may lead to it.
                memory::resource(rt::home(), line, line).ok()?;
                let message = sys::interrupt_message(number).ok()?;
                Some(Line { number, message })
            })
        })
    }

    /// Takes one back that no function sends any more.
    pub fn give_back(&mut self, line: Line) {
        self.free.push(line);
    }
}
