//! The screen, if the machine has one: shows what goes out by the serial port, as a terminal would.
//!
//! [`Terminal`] is the text, in cells; [`crate::display`] draws it. Cells are drawn when all output that is there has been taken, and
//! only those that changed: device memory is slow, and reading it slower.

use crate::display::Display;
use alloc::vec;
use alloc::vec::Vec;
use vte::{Params, Parser, Perform};

/// In a cell: its colours are exchanged.
pub const INVERSE: u8 = 0x80;

const BLANK: u8 = b' ';

/// Columns between the places where tabulators stop.
const TABULATOR: usize = 8;

/// A screen with what it shows.
pub struct Screen {
    display: Display,
    parser: Parser,
    terminal: Terminal,
    /// The cells as they were drawn last.
    drawn: Vec<u8>,
}

/// Text in rows and columns, and the place of the cursor.
struct Terminal {
    columns: usize,
    rows: usize,
    cells: Vec<u8>,
    row: usize,
    /// May be one beyond the last: then the next character begins a new row.
    column: usize,
    saved: (usize, usize),
}

impl Screen {
    /// Clears a display.
    pub fn new(display: Display) -> Screen {
        let (columns, rows) = (display.columns(), display.rows());
        let cells = vec![BLANK; columns * rows];
        let terminal = Terminal { columns, rows, cells, row: 0, column: 0, saved: (0, 0) };
        // Nothing is known of what the firmware left there.
        let drawn = vec![0; columns * rows];
        Screen { display, parser: Parser::new(), terminal, drawn }
    }

    /// Takes output.
    pub fn write(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.terminal, bytes);
    }

    /// Draws what has changed.
    pub fn draw(&mut self) {
        let Terminal { columns, row, column, cells, .. } = &self.terminal;
        let cursor = row * columns + column.min(&(columns - 1));
        for (at, (drawn, &cell)) in self.drawn.iter_mut().zip(cells).enumerate() {
            let cell = if at == cursor { cell | INVERSE } else { cell };
            if *drawn != cell {
                *drawn = cell;
                self.display.draw(at / columns, at % columns, cell);
            }
        }
    }
}

impl Terminal {
    fn line_feed(&mut self) {
        if self.row + 1 < self.rows {
            self.row += 1;
            return;
        }
        self.cells.copy_within(self.columns.., 0);
        let last = self.cells.len() - self.columns;
        self.cells[last..].fill(BLANK);
    }

    /// The cell of the cursor.
    fn place(&self) -> usize {
        self.row * self.columns + self.column.min(self.columns - 1)
    }

    fn go_to(&mut self, row: usize, column: usize) {
        (self.row, self.column) = (row.min(self.rows - 1), column.min(self.columns - 1));
    }

    /// Clears cells as the sequences J and K say: to the end, from the start, or all of them.
    fn clear(&mut self, first: usize, end: usize, how: usize) {
        let at = self.place();
        match how {
            0 => self.cells[at..end].fill(BLANK),
            1 => self.cells[first..=at].fill(BLANK),
            _ => self.cells[first..end].fill(BLANK),
        }
    }
}

impl Perform for Terminal {
    fn print(&mut self, character: char) {
        if self.column == self.columns {
            self.column = 0;
            self.line_feed();
        }
        // Common part of the display's fonts.
        let byte = if character.is_ascii() { character as u8 } else { b'?' };
        let at = self.place();
        self.cells[at] = byte;
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            b'\n' => self.line_feed(),
            8 => self.column = self.column.saturating_sub(1),
            b'\t' => self.column = ((self.column / TABULATOR + 1) * TABULATOR).min(self.columns - 1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, words: &Params, _: &[u8], _: bool, last: char) {
        let word = |place: usize| {
            words.iter().nth(place).and_then(|word| word.first()).map_or(0, |&word| word.into())
        };
        let count = word(0).max(1);
        match last {
            'A' => self.row = self.row.saturating_sub(count),
            'B' => self.go_to(self.row + count, self.column),
            'C' => self.go_to(self.row, self.column + count),
            'D' => self.column = self.column.saturating_sub(count),
            'H' | 'f' => self.go_to(count - 1, word(1).max(1) - 1),
            'J' => self.clear(0, self.cells.len(), word(0)),
            'K' => self.clear(self.row * self.columns, (self.row + 1) * self.columns, word(0)),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, byte: u8) {
        match byte {
            b'7' => self.saved = (self.row, self.column),
            b'8' => self.go_to(self.saved.0, self.saved.1),
            _ => {}
        }
    }
}
