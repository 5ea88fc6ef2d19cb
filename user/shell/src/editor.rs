//! Line editing with history, for terminals that understand the usual escape sequences.
//!
//! Left and right, Home and End, ^A ^E ^B ^F move; backspace, Delete, ^D, ^K, ^U, ^W delete; up and down, ^P ^N walk the
//! history; ^L clears the screen; ^C drops the line; ^D on an empty line is the end of input.

use crate::input::{Bytes, LINE_LEN_MAX, Line, Source};
use alloc::string::String;
use alloc::vec::Vec;
use rt::print;

const PROMPT: &str = "tern> ";

/// Characters of a line that are shown: what fits beside the prompt on a terminal of 80 columns.
const VISIBLE_LEN_MAX: usize = 72;

/// Lines that are remembered.
const HISTORY_LEN_MAX: usize = 100;

/// A person at the console.
#[derive(Default)]
pub struct Editor {
    bytes: Bytes,
    history: Vec<String>,
}

/// What a key means.
enum Key {
    Character(char),
    Enter,
    End,
    Cancel,
    Clear,
    Edit(Edit),
    Older,
    Newer,
    Nothing,
}

#[derive(Clone, Copy)]
enum Edit {
    Left,
    Right,
    Home,
    ToEnd,
    Backspace,
    Delete,
    DeleteToEnd,
    DeleteToStart,
    DeleteWord,
}

const fn control(letter: u8) -> u8 {
    letter & 0x1f
}

const EDITS: [(u8, Edit); 9] = [
    (control(b'A'), Edit::Home),
    (control(b'B'), Edit::Left),
    (control(b'E'), Edit::ToEnd),
    (control(b'F'), Edit::Right),
    (control(b'H'), Edit::Backspace),
    (0x7f, Edit::Backspace),
    (control(b'K'), Edit::DeleteToEnd),
    (control(b'U'), Edit::DeleteToStart),
    (control(b'W'), Edit::DeleteWord),
];

/// The line being edited: characters, and the place of the cursor among them.
#[derive(Default)]
struct Edited {
    characters: Vec<char>,
    cursor: usize,
}

impl Source for Editor {
    fn next_line(&mut self) -> Line {
        let mut line = Edited::default();
        // Place in the history; its length stands for the new line, which is kept while others are looked at.
        let mut place = self.history.len();
        let mut kept = Edited::default();
        line.show();
        loop {
            let Some(key) = self.next_key(line.characters.is_empty()) else { return Line::End };
            match key {
                Key::Character(character) => {
                    if line.insert(character) {
                        print!("{character}");
                        continue;
                    }
                }
                Key::Edit(edit) => line.edit(edit),
                Key::Older | Key::Newer => {
                    let older = matches!(key, Key::Older);
                    let next = if older { place.wrapping_sub(1) } else { place + 1 };
                    if next > self.history.len() {
                        continue;
                    }
                    if place == self.history.len() {
                        core::mem::swap(&mut kept, &mut line);
                    }
                    line = match self.history.get(next) {
                        Some(text) => Edited::from(text.as_str()),
                        None => core::mem::take(&mut kept),
                    };
                    place = next;
                }
                Key::Enter => {
                    print!("\n");
                    let text = line.text();
                    self.remember(&text);
                    return Line::Text(text);
                }
                Key::Cancel => {
                    print!("^C\n");
                    (line, place) = (Edited::default(), self.history.len());
                }
                Key::End => {
                    print!("\n");
                    return Line::End;
                }
                Key::Clear => print!("\x1b[H\x1b[2J"),
                Key::Nothing => continue,
            }
            line.show();
        }
    }
}

impl Editor {
    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        if self.history.len() == HISTORY_LEN_MAX {
            self.history.remove(0);
        }
        self.history.push(String::from(text));
    }

    /// The next key; `None` if there is no console any more.
    fn next_key(&mut self, line_is_empty: bool) -> Option<Key> {
        let byte = self.bytes.next_byte()?;
        if let Some((_, edit)) = EDITS.iter().find(|(code, _)| *code == byte) {
            return Some(Key::Edit(*edit));
        }
        Some(match byte {
            b'\r' | b'\n' => Key::Enter,
            0x1b => return self.escape_sequence(),
            _ if byte == control(b'D') && line_is_empty => Key::End,
            _ if byte == control(b'D') => Key::Edit(Edit::Delete),
            _ if byte == control(b'C') => Key::Cancel,
            _ if byte == control(b'L') => Key::Clear,
            _ if byte == control(b'P') => Key::Older,
            _ if byte == control(b'N') => Key::Newer,
            0..0x20 => Key::Nothing,
            _ => return self.character(byte),
        })
    }

    fn escape_sequence(&mut self) -> Option<Key> {
        let introducer = self.bytes.next_byte()?;
        if introducer != b'[' && introducer != b'O' {
            return Some(Key::Nothing);
        }
        let mut number = 0u32;
        loop {
            match self.bytes.next_byte()? {
                digit @ b'0'..=b'9' => number = number.wrapping_mul(10).wrapping_add((digit - b'0') as u32),
                b';' => number = 0,
                last => {
                    return Some(match (last, number) {
                        (b'A', _) => Key::Older,
                        (b'B', _) => Key::Newer,
                        (b'C', _) => Key::Edit(Edit::Right),
                        (b'D', _) => Key::Edit(Edit::Left),
                        (b'H', _) | (b'~', 1 | 7) => Key::Edit(Edit::Home),
                        (b'F', _) | (b'~', 4 | 8) => Key::Edit(Edit::ToEnd),
                        (b'~', 3) => Key::Edit(Edit::Delete),
                        _ => Key::Nothing,
                    });
                }
            }
        }
    }

    /// A character that begins with this byte; what is no UTF-8 is dropped.
    fn character(&mut self, first: u8) -> Option<Key> {
        let len = match first {
            ..0x80 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0..0xf8 => 4,
            _ => return Some(Key::Nothing),
        };
        let mut bytes = [first, 0, 0, 0];
        for byte in &mut bytes[1..len] {
            *byte = self.bytes.next_byte()?;
        }
        let text = core::str::from_utf8(&bytes[..len]).unwrap_or_default();
        Some(text.chars().next().map_or(Key::Nothing, Key::Character))
    }
}

impl From<&str> for Edited {
    fn from(text: &str) -> Edited {
        let characters: Vec<char> = text.chars().collect();
        Edited { cursor: characters.len(), characters }
    }
}

impl Edited {
    fn text(&self) -> String {
        self.characters.iter().collect()
    }

    /// Inserts a character if there is room. True if it is enough to print it.
    fn insert(&mut self, character: char) -> bool {
        let len: usize = self.characters.iter().map(|character| character.len_utf8()).sum();
        if len + character.len_utf8() > LINE_LEN_MAX {
            return false;
        }
        self.characters.insert(self.cursor, character);
        self.cursor += 1;
        self.cursor == self.characters.len() && self.cursor < VISIBLE_LEN_MAX
    }

    fn edit(&mut self, edit: Edit) {
        let (cursor, len) = (self.cursor, self.characters.len());
        match edit {
            Edit::Left => self.cursor = cursor.saturating_sub(1),
            Edit::Right => self.cursor = len.min(cursor + 1),
            Edit::Home => self.cursor = 0,
            Edit::ToEnd => self.cursor = len,
            Edit::Backspace => self.delete(cursor.saturating_sub(1), cursor),
            Edit::Delete => self.delete(cursor, len.min(cursor + 1)),
            Edit::DeleteToEnd => self.delete(cursor, len),
            Edit::DeleteToStart => self.delete(0, cursor),
            Edit::DeleteWord => self.delete(self.start_of_word(), cursor),
        }
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.characters.drain(from..to);
        self.cursor = from;
    }

    fn start_of_word(&self) -> usize {
        let before = &self.characters[..self.cursor];
        let word_end = before.iter().rposition(|character| *character != ' ').map_or(0, |at| at + 1);
        before[..word_end].iter().rposition(|character| *character == ' ').map_or(0, |at| at + 1)
    }

    /// Draws prompt and line anew, in one piece: as much of the line as fits before and behind the cursor.
    fn show(&self) {
        let start = self.cursor.saturating_sub(VISIBLE_LEN_MAX);
        let end = self.characters.len().min(start + VISIBLE_LEN_MAX);
        let text: String = self.characters[start..end].iter().collect();
        match end - self.cursor {
            0 => print!("\r\x1b[K{PROMPT}{text}"),
            back => print!("\r\x1b[K{PROMPT}{text}\x1b[{back}D"),
        }
    }
}
