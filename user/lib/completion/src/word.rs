//! The word before the cursor.

use alloc::vec::Vec;

/// Words that are marks of a line, and no names.
pub(crate) const MARKS: [&str; 5] = ["|", "<", ">", ">>", "&"];

/// Place where the names are that a word may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<'a> {
    /// Commands and programs.
    Command,
    /// Programs.
    Program,
    /// Tasks.
    Task,
    /// Files and directories of the directory with this path; the working directory, if that is empty.
    File(&'a str),
    /// Directories of the directory with this path.
    Directory(&'a str),
}

/// Word that is to be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word<'a> {
    /// Place of its names.
    pub place: Place<'a>,
    /// Characters with which the name begins.
    pub begin: &'a str,
}

impl Word<'_> {
    /// Whether the name is a whole word of the line, so that it must not look like a mark.
    pub(crate) fn is_alone(&self) -> bool {
        !matches!(self.place, Place::File(path) | Place::Directory(path) if !path.is_empty())
    }
}

/// The word at the end of what stands before the cursor. `None` if nothing can stand there, or a comment does.
pub fn word(before: &str) -> Option<Word<'_>> {
    let blank = before.char_indices().rev().find(|(_, character)| character.is_whitespace());
    let start = blank.map_or(0, |(at, character)| at + character.len_utf8());
    let (earlier, last) = before.split_at(start);
    let words: Vec<&str> = earlier.split_whitespace().collect();
    if last.starts_with('#') || words.iter().any(|word| word.starts_with('#')) || words.last() == Some(&"&") {
        return None;
    }
    let mut command = words.rsplit(|word| *word == "|").next().unwrap_or_default();
    while let ["time", behind @ ..] = command {
        command = behind;
    }
    let (directory, begin) = last.split_at(last.rfind('/').map_or(0, |slash| slash + 1));
    let (place, begin) = match command {
        [] | ["help"] => (Place::Command, last),
        ["run"] => (Place::Program, last),
        ["kill"] => (Place::Task, last),
        [.., "<" | ">" | ">>"] => (Place::File(directory), begin),
        ["cd" | "rmdir" | "df" | "mkdir" | "mount" | "umount", ..] => (Place::Directory(directory), begin),
        _ => (Place::File(directory), begin),
    };
    Some(Word { place, begin })
}
