//! Bytes from the console, one by one.

use crate::place::Place;
use rt::api::process::ARGUMENTS_LEN_MAX;
use rt::api::wire::TEXT_LEN_MAX;

/// End of input.
pub const END: u8 = 4;

/// Longest line that is typed, in bytes.
pub const TYPED_LEN_MAX: usize = 4096;

/// Longest line of a script, in bytes: a command with all the arguments that a program can have.
pub const LINE_LEN_MAX: usize = ARGUMENTS_LEN_MAX + TYPED_LEN_MAX;

/// Result of a source of lines.
pub enum Line {
    /// A line without its end.
    Text(alloc::string::String),
    /// Something that is no command; this is why.
    Bad(&'static str),
    /// There are no more lines.
    End,
}

/// Where lines come from.
pub trait Source {
    /// The next line. Paths in it begin at that place.
    fn next_line(&mut self, place: &Place) -> Line;
}

/// The console's bytes.
pub struct Bytes {
    buffer: [u8; TEXT_LEN_MAX],
    len: usize,
    at: usize,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes { buffer: [0; TEXT_LEN_MAX], len: 0, at: 0 }
    }
}

impl Bytes {
    /// Waits for the next byte; `None` if there is no console any more.
    pub fn next_byte(&mut self) -> Option<u8> {
        while self.at == self.len {
            // Nothing is the end of a pipe.
            self.len = rt::io::read(&mut self.buffer).ok().filter(|&len| len > 0)?;
            self.at = 0;
        }
        self.at += 1;
        Some(self.buffer[self.at - 1])
    }
}
