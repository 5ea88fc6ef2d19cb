//! Positions: the protocol counts lines and units of UTF-16, quill counts bytes.

use lsp_types::{Position, Range};
use quill::source::{SourceFile, Span};

/// Bytes between places of which the number of units before them is kept: one line may be all of a text.
const STEP: usize = 256;

/// A text, with what finds positions in it quickly.
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// Units of UTF-16 before every [`STEP`]th byte.
    units: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Looks through a text once.
    pub fn new(text: &'a str) -> Lines<'a> {
        let bytes = text.as_bytes();
        let (mut starts, mut units, mut count) = (vec![0], Vec::new(), 0);
        for (at, &byte) in bytes.iter().enumerate() {
            if at % STEP == 0 {
                units.push(count);
            }
            count += units_of(byte);
            if byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            }
        }
        Lines { text, starts, units }
    }

    fn units_before(&self, offset: usize) -> usize {
        let step = (offset / STEP).min(self.units.len().saturating_sub(1));
        let known = self.units.get(step).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(step * STEP..offset).unwrap_or_default();
        known + rest.iter().map(|&byte| units_of(byte)).sum::<usize>()
    }

    /// Where a byte of the text is.
    pub fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let units = self.units_before(offset) - self.units_before(self.starts[line]);
        Position { line: line as u32, character: units as u32 }
    }

    /// The byte that is at a position; the end of its line if the line is shorter, and of the text if that is.
    pub fn offset(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let mut units = 0;
        for (at, c) in self.text[start..].char_indices() {
            if units >= position.character as usize || c == '\n' || c == '\r' {
                return start + at;
            }
            units += c.len_utf16();
        }
        self.text.len()
    }

    /// The range of a span in the file that has this text.
    pub fn range(&self, file: &SourceFile, span: Span) -> Range {
        let place = |at: u32| self.position(at.saturating_sub(file.start) as usize);
        Range { start: place(span.lo), end: place(span.hi.max(span.lo)) }
    }
}

/// Units of UTF-16 that begin with a byte of UTF-8.
fn units_of(byte: u8) -> usize {
    match byte {
        0x80..0xC0 => 0,
        0xF0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, byte: usize, line: u32, character: u32) {
        let (lines, place) = (Lines::new(text), Position { line, character });
        assert_eq!(lines.position(byte), place, "{text:?}");
        assert_eq!(lines.offset(place), byte, "{text:?}");
    }

    #[test]
    fn positions() {
        check("", 0, 0, 0);
        check("ab\ncd", 0, 0, 0);
        check("ab\ncd", 4, 1, 1);
        check("ab\r\ncd", 5, 1, 1);
        check("ab\rcd", 3, 1, 0);
        check("ab\n", 3, 1, 0);
        // Two bytes and one unit; four bytes and two units.
        check("ä x", 3, 0, 2);
        check("𝄞 x", 5, 0, 3);
        check("/* 𝄞ä */ x", 13, 0, 10);
        for (bytes, units, sign) in [(1, 1, 'x'), (2, 1, 'ä'), (3, 1, '€'), (4, 2, '𝄞')] {
            let text = format!("\n{}", sign.to_string().repeat(1000));
            for n in [0, 63, 64, 65, 128, 500, 1000] {
                check(&text, 1 + n * bytes, 1, (n * units) as u32);
            }
        }
    }

    #[test]
    fn positions_that_are_none() {
        assert_eq!(Lines::new("ä").position(1), Position { line: 0, character: 0 });
        assert_eq!(Lines::new("ä").position(9), Position { line: 0, character: 1 });
        assert_eq!(Lines::new("ab\ncd").offset(Position { line: 0, character: 9 }), 2);
        assert_eq!(Lines::new("ab\r\ncd").offset(Position { line: 0, character: 9 }), 2);
        assert_eq!(Lines::new("ab").offset(Position { line: 3, character: 0 }), 2);
        // Within a character of two units: the one behind it.
        assert_eq!(Lines::new("𝄞x").offset(Position { line: 0, character: 1 }), 4);
    }
}
