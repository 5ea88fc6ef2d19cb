//! Names that a word may become.

use crate::word::{MARKS, Word};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Names that are kept, at most. Where there are more, the word is not completed.
pub const NAMES_MAX: usize = 1000;

/// Names that are listed, at most.
const LISTED_MAX: usize = 200;

/// Columns between two names.
const GAP: usize = 2;

/// Rows with names, which are read from top to bottom and from left to right, on a terminal of that width. A name that is wider has a row of its own.
pub fn rows(names: &[impl AsRef<str>], columns: usize) -> Vec<String> {
    let width = names.iter().map(|name| name.as_ref().chars().count() + GAP).max().unwrap_or(1);
    // The gap behind the last column may lie beyond the edge.
    let across = ((columns + GAP) / width).max(1);
    let height = names.len().div_ceil(across).max(1);
    let mut rows: Vec<String> = (0..height.min(names.len())).map(|_| String::new()).collect();
    for (number, name) in names.iter().enumerate() {
        if let Some(row) = rows.get_mut(number % height) {
            let (left, name) = (number / height * width, name.as_ref());
            *row = format!("{row:left$}{name}");
        }
    }
    rows
}

/// Names that begin as a word does.
#[derive(Clone, Debug)]
pub struct Found {
    begin: String,
    is_alone: bool,
    /// Each with whether it is a directory's.
    names: BTreeMap<String, bool>,
    is_whole: bool,
}

impl Found {
    /// None yet.
    pub fn new(word: &Word) -> Found {
        Found { begin: word.begin.into(), is_alone: word.is_alone(), names: BTreeMap::new(), is_whole: true }
    }

    /// Takes a name of the word's place, if the word may become it, and says whether more are wanted. Names that cannot be typed at the shell are left out; so are
    /// those with a dot in front, as long as none is typed.
    pub fn offer(&mut self, name: &[u8], is_directory: bool) -> bool {
        if let Ok(name) = core::str::from_utf8(name)
            && self.fits(name)
        {
            if self.names.len() >= NAMES_MAX && !self.names.contains_key(name) {
                self.is_whole = false;
            } else {
                self.names.insert(name.into(), is_directory);
            }
        }
        self.is_whole
    }

    fn fits(&self, name: &str) -> bool {
        let is_hidden = name.starts_with('.') && !self.begin.starts_with('.');
        let is_typed = |character: char| !character.is_whitespace() && !character.is_control();
        let is_word = !self.is_alone || !name.starts_with('#') && !MARKS.contains(&name);
        let is_name = !matches!(name, "" | "." | "..") && name.chars().all(is_typed);
        is_name && is_word && !is_hidden && name.starts_with(&self.begin)
    }

    /// Says that there are names that nobody has looked at.
    pub fn cut(&mut self) {
        self.is_whole = false;
    }

    /// The name, if there is only one.
    pub fn only(&self) -> Option<&str> {
        match self.names.keys().next() {
            Some(name) if self.names.len() == 1 && self.is_whole => Some(name),
            _ => None,
        }
    }

    /// Characters with which the word goes on, whichever name is meant: a whole name has a blank or, if it is a directory's, a slash behind it.
    pub fn addition(&self) -> String {
        let (Some((first, is_directory)), true) = (self.names.first_key_value(), self.is_whole) else {
            return String::new();
        };
        let Some((last, _)) = self.names.last_key_value().filter(|_| self.names.len() > 1) else {
            let end = if *is_directory { '/' } else { ' ' };
            return format!("{}{end}", first.get(self.begin.len()..).unwrap_or_default());
        };
        // The names are sorted, so those in between begin as these two do.
        let alike = first.chars().zip(last.chars()).take_while(|(one, other)| one == other);
        alike.map(|(one, _)| one).skip(self.begin.chars().count()).collect()
    }

    /// Rows with all names, sorted from top to bottom and from left to right, on a terminal of that width. There are none where nothing is found.
    pub fn rows(&self, columns: usize) -> Vec<String> {
        let shown = self.names.iter().take(LISTED_MAX);
        let names: Vec<String> = shown
            .map(|(name, is_directory)| format!("{name}{}", if *is_directory { "/" } else { "" }))
            .collect();
        let mut rows = rows(&names, columns);
        let more = self.names.len() - names.len();
        if !self.is_whole {
            rows.push("... and more".into());
        } else if more > 0 {
            rows.push(format!("... and {more} more"));
        }
        rows
    }
}
