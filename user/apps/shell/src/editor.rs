//! Line editing with history, for terminals that understand the usual escape sequences.
//!
//! Left and right, Home and End, ^A ^E ^B ^F move; backspace, Delete, ^D, ^K, ^U, ^W delete; up and down, ^P ^N walk the
//! history; Tab completes the word before the cursor, and lists what it may become when it is pressed again; ^L clears the screen; ^C drops the line; ^D twice on an empty line is the end of input, since with the first shell the
//! system ends. A line that is longer than the terminal is wide is wrapped: see [`screen`](crate::screen).

use crate::complete;
use crate::input::{Bytes, Line, Source, TYPED_LEN_MAX};
use crate::place::Place;
use crate::screen::Screen;
use alloc::string::String;
use alloc::vec::Vec;
use rt::println;

/// Lines that are remembered.
const HISTORY_LEN_MAX: usize = 100;

/// A person at the console.
#[derive(Default)]
pub struct Editor {
    bytes: Bytes,
    history: Vec<String>,
    screen: Screen,
    /// The terminal has been asked for its width.
    has_asked: bool,
    /// The line before the cursor when Tab was pressed last.
    completed: Option<String>,
    /// Ends with the shell, besides it: the end of a sentence.
    ends_too: &'static str,
}

/// Meaning of a key.
enum Key {
    Character(char),
    Enter,
    End,
    Cancel,
    Clear,
    Edit(Edit),
    Older,
    Newer,
    Complete,
    /// Not a key: the terminal says how wide it is.
    Columns(usize),
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
    fn next_line(&mut self, directory: &Place) -> Line {
        let mut line = Edited::default();
        // Place in the history; its length stands for the new line, which is kept while others are looked at.
        let mut place = self.history.len();
        let mut kept = Edited::default();
        let mut is_warned = false;
        self.begin();
        loop {
            self.screen.draw(&line.characters, line.cursor);
            let Some(key) = self.next_change(&mut line) else { return Line::End };
            let was_warned = core::mem::take(&mut is_warned);
            match key {
                Key::Edit(edit) => line.edit(edit),
                Key::Complete => self.complete(&mut line, directory),
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
                    self.screen.leave(&line.characters, "");
                    let text = line.text();
                    self.remember(&text);
                    return Line::Text(text);
                }
                Key::Cancel => {
                    self.screen.leave(&line.characters, "^C");
                    (line, place) = (Edited::default(), self.history.len());
                }
                Key::End => {
                    self.screen.leave(&[], "^D");
                    if was_warned {
                        return Line::End;
                    }
                    println!("Ctrl-D once more ends the shell{}.", self.ends_too);
                    is_warned = true;
                }
                Key::Clear => {
                    self.screen.clear();
                    self.screen.ask_columns();
                }
                Key::Columns(columns) => {
                    self.screen.set_columns(columns);
                    is_warned = was_warned;
                }
                Key::Character(_) | Key::Nothing => {}
            }
        }
    }
}

impl Editor {
    /// The person with whose shell the system ends.
    pub fn of_system() -> Editor {
        Editor { ends_too: ", and with it the system", ..Editor::default() }
    }

    /// Completes the word before the cursor. Where it does not go on in one way only, the second time lists the ways.
    fn complete(&mut self, line: &mut Edited, directory: &Place) {
        let before = line.before_cursor();
        let Some(word) = completion::word(&before) else { return };
        let found = complete::find(directory, &word);
        let addition = found.addition();
        // A blank that is there already is enough.
        let behind = line.characters.get(line.cursor);
        let added = if behind == Some(&' ') { addition.trim_end() } else { &addition };
        if added.chars().all(|character| line.insert(character)) && !added.is_empty() {
            self.completed = Some(line.before_cursor());
            return;
        }
        let rows = found.rows(self.screen.columns());
        if self.completed.replace(before.clone()) == Some(before) && !rows.is_empty() {
            self.screen.leave(&line.characters, "");
            rows.iter().for_each(|row| println!("{row}"));
        }
    }

    fn begin(&mut self) {
        self.completed = None;
        self.screen.begin();
        if !core::mem::replace(&mut self.has_asked, true) {
            self.screen.ask_columns();
        }
    }

    /// The next key after which the line has to be drawn anew. Characters that are typed at the end of the line only follow it.
    fn next_change(&mut self, line: &mut Edited) -> Option<Key> {
        loop {
            match self.next_key(line.characters.is_empty())? {
                Key::Nothing => {}
                Key::Character(character) => {
                    let is_shown = !line.insert(character)
                        || line.cursor == line.characters.len()
                            && self.screen.append(character, line.characters.len());
                    if !is_shown {
                        return Some(Key::Character(character));
                    }
                }
                key => return Some(key),
            }
        }
    }

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
            b'\t' => Key::Complete,
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
                        (b'R', columns) => Key::Columns(columns as usize),
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

    fn before_cursor(&self) -> String {
        self.characters.iter().take(self.cursor).collect()
    }

    /// Inserts a character; false if there is no room for it.
    fn insert(&mut self, character: char) -> bool {
        let len: usize = self.characters.iter().map(|character| character.len_utf8()).sum();
        if len + character.len_utf8() > TYPED_LEN_MAX {
            return false;
        }
        self.characters.insert(self.cursor, character);
        self.cursor += 1;
        true
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
}
