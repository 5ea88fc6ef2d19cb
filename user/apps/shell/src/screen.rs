//! Picture of a line on the terminal: prompt and text, wrapped at its width, and where the cursor stands.
//!
//! The terminal is asked for its width; one that does not answer has 80 columns. Every character counts as one column.

use alloc::format;
use alloc::string::String;
use rt::print;

const PROMPT: &str = "tern> ";

/// Columns of a terminal that has not told how many it has.
const COLUMNS: usize = 80;

/// Fewer columns than this are no width, but a key that looks like an answer (Shift-F3 does).
const COLUMNS_MIN: usize = 16;

/// The terminal, as far as the line being edited matters.
pub struct Screen {
    columns: usize,
    /// How many rows below the prompt the cursor was left.
    row: usize,
}

impl Default for Screen {
    fn default() -> Screen {
        Screen { columns: COLUMNS, row: 0 }
    }
}

impl Screen {
    /// Asks the terminal for its width: where does the cursor stand when it has gone as far right as it can? The answer
    /// comes like a key, for [`Screen::set_columns`].
    pub fn ask_columns(&self) {
        print!("\x1b7\x1b[999C\x1b[6n\x1b8");
    }

    /// Notes the terminal's answer.
    pub fn set_columns(&mut self, columns: usize) {
        if columns >= COLUMNS_MIN {
            self.columns = columns;
        }
    }

    /// How many columns the terminal has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Goes to an empty line, from where the next [`Screen::draw`] begins.
    pub fn begin(&mut self) {
        self.row = 0;
    }

    /// Clears all of the terminal.
    pub fn clear(&mut self) {
        print!("\x1b[H\x1b[2J");
        self.row = 0;
    }

    /// Shows one more character at the end of the line, where the cursor is; `len` counts it already. False if that
    /// needs [`Screen::draw`].
    pub fn append(&self, character: char, len: usize) -> bool {
        let fits = !(PROMPT.len() + len).is_multiple_of(self.columns);
        if fits {
            print!("{character}");
        }
        fits
    }

    /// Draws prompt and line anew, in one piece.
    pub fn draw(&mut self, line: &[char], cursor: usize) {
        let mut out = up(self.row);
        out += "\r\x1b[J";
        out += PROMPT;
        out.extend(line);
        let (end, at) = (PROMPT.len() + line.len(), PROMPT.len() + cursor);
        if end.is_multiple_of(self.columns) {
            // A terminal goes to the next row only with the next character.
            out += "\n";
        }
        self.row = at / self.columns;
        out += &up(end / self.columns - self.row);
        out += "\r";
        match at % self.columns {
            0 => {}
            column => out += &format!("\x1b[{column}C"),
        }
        print!("{out}");
    }

    /// Goes from a line of `len` characters to the empty line behind it.
    pub fn leave(&mut self, line: &[char], mark: &str) {
        self.draw(line, line.len());
        let is_empty = mark.is_empty() && (PROMPT.len() + line.len()).is_multiple_of(self.columns);
        print!("{mark}{}", if is_empty { "" } else { "\n" });
        self.row = 0;
    }
}

/// Sequence that moves the cursor up.
fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}
