//! Numbers of lines, words and bytes.

use crate::{Fault, Filter, Out};
use alloc::format;
use alloc::string::String;
use core::ops::ControlFlow;

/// Numbers of lines, words and bytes.
type Counts = [u64; 3];

/// The program `wc`. A line is counted where it ends, so one without an end is none; words are separated by whitespace of ASCII.
#[derive(Clone, Debug)]
pub struct Wc {
    shown: [bool; 3],
    /// Name of the file, with a blank in front.
    name: String,
    counts: Counts,
    is_in_word: bool,
    total: Counts,
    files: usize,
}

impl Wc {
    /// One that shows lines, words and bytes as they are chosen, or all three if none is.
    pub fn new(chosen: [bool; 3]) -> Wc {
        let shown = if chosen == [false; 3] { [true; 3] } else { chosen };
        Wc { shown, name: String::new(), counts: [0; 3], is_in_word: false, total: [0; 3], files: 0 }
    }

    fn line(&self, counts: &Counts, name: &str) -> String {
        let shown = counts.iter().zip(self.shown).filter(|(_, is_shown)| *is_shown);
        // A number alone is easier to read for a program.
        let width = if shown.clone().count() == 1 { 0 } else { 7 };
        let numbers = shown.map(|(count, _)| format!("{count:>width$}"));
        let mut line = numbers.reduce(|line, number| line + " " + &number).unwrap_or_default();
        line += name;
        line.push('\n');
        line
    }
}

impl Filter for Wc {
    fn begin(&mut self, name: Option<&str>, _: &mut Out) {
        self.name = name.map_or(String::new(), |name| format!(" {name}"));
        (self.counts, self.is_in_word) = ([0; 3], false);
        self.files += 1;
    }

    fn take(&mut self, piece: &[u8], _: &mut Out) -> Result<ControlFlow<()>, Fault> {
        let [lines, words, bytes] = &mut self.counts;
        for byte in piece {
            *lines += u64::from(*byte == b'\n');
            let is_in_word = !byte.is_ascii_whitespace() && *byte != VERTICAL_TAB;
            *words += u64::from(is_in_word && !self.is_in_word);
            self.is_in_word = is_in_word;
        }
        *bytes += piece.len() as u64;
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        out(self.line(&self.counts, &self.name).as_bytes());
        for (total, count) in self.total.iter_mut().zip(self.counts) {
            *total += count;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        if self.files > 1 {
            out(self.line(&self.total, " total").as_bytes());
        }
        Ok(())
    }
}

/// Whitespace that [`u8::is_ascii_whitespace`] leaves out.
const VERTICAL_TAB: u8 = 0x0b;
