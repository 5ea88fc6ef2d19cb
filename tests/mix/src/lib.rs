//! Mixes of operations on files. A seed gives the same steps to the program that does them, on the host or in the booted system, and to the test that
//! judges what is left of the files after a loss of power.
//!
//! Contents are made so that each byte tells of which file it is and where it belongs: a byte that is lost, doubled or another file's is seen.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Directories in which the files are. Whoever does the steps makes them before the first.
pub const DIRECTORIES: [&str; 2] = ["one", "two"];

/// Names that a file can have, half of them in each directory.
const NAMES: u8 = 8;

/// Bytes of a file, after which it grows no more.
const LEN_MAX: u64 = 60_000;

/// Bytes of a stamp, which is written where the file's first page is mapped, to its beginning.
pub const STAMP: usize = 8;

/// A name that a file can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name(u8);

impl Name {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Name> {
        (0..NAMES).map(Name)
    }

    /// Its path.
    pub fn path(self) -> String {
        format!("{}/file-{}", DIRECTORIES[usize::from(self.0) % DIRECTORIES.len()], self.0)
    }

    /// The name of a path, if it is one of them.
    pub fn of(path: &str) -> Option<Name> {
        Name::all().find(|name| name.path() == path)
    }
}

/// Number of a file. A file that is made has a new one; a name that moves takes the number with it.
pub type File = usize;

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Makes an empty file of a name that nothing has.
    Create(Name),
    /// Writes [`bytes`] of a file from `at`, its end, on.
    Append {
        /// The file's name.
        name: Name,
        /// Its number.
        file: File,
        /// Its length before.
        at: u64,
        /// How many bytes are written.
        len: usize,
    },
    /// Writes a number to the beginning of a file's first page, where it is mapped.
    Stamp {
        /// The file's name.
        name: Name,
        /// The number, as eight bytes, the lowest first. It grows from step to step.
        number: u64,
    },
    /// Waits until a file is safe, pages that are mapped, too.
    Sync(Name),
    /// Moves the first name to the second, in the place of the file that has it, if there is one.
    Rename(Name, Name),
    /// Takes a name away from a file.
    Unlink(Name),
}

impl Step {
    /// Whether it changes names. A server of files acknowledges such a step when it is safe.
    pub fn changes_names(self) -> bool {
        matches!(self, Step::Create(_) | Step::Rename(..) | Step::Unlink(_))
    }

    /// Whether names are safe when it is done, by a file system itself: ext4 has one journal, and whatever it holds is safe with any file.
    pub fn is_sync(self) -> bool {
        matches!(self, Step::Sync(_))
    }
}

/// Bytes of a file from an offset on.
pub fn bytes(file: File, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    let mut word = [0; 8];
    for offset in at..at + len as u64 {
        if bytes.is_empty() || offset % 8 == 0 {
            word = mixed(((file as u64) << 32) | (offset / 8)).to_le_bytes();
        }
        bytes.push(word[(offset % 8) as usize]);
    }
    bytes
}

/// A word without any order, and never 0: its upper half is no small number, so no stamp looks like it.
fn mixed(word: u64) -> u64 {
    let mut mixed = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) | (1 << 63)
}

/// A number by which contents are compared that cannot be brought together (FNV-1a).
pub fn sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// How far a program was. It is written to the disk, so that a log of all writes says so at each place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Steps whose calls have come back.
    pub acknowledged: u64,
    /// Steps whose calls were made, or will be next.
    pub begun: u64,
}

impl Mark {
    /// First bytes of a mark.
    const MAGIC: [u8; 8] = *b"tern-mix";

    /// Its bytes.
    pub fn bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let words = [Mark::MAGIC, self.acknowledged.to_le_bytes(), self.begun.to_le_bytes()];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word));
        bytes
    }

    /// The mark with which bytes begin, if they do.
    pub fn of(bytes: &[u8]) -> Option<Mark> {
        let mut words =
            bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)));
        let is_mark = words.next()? == u64::from_le_bytes(Mark::MAGIC);
        let (acknowledged, begun) = (words.next()?, words.next()?);
        is_mark.then_some(Mark { acknowledged, begun })
    }
}

/// Length and stamp of a file, now and when it was synced last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Content {
    /// Bytes.
    pub len: u64,
    /// Bytes when it was synced last.
    pub len_safe: u64,
    /// The last stamp; 0 if there is none.
    pub stamp: u64,
    /// The last stamp when it was synced last.
    pub stamp_safe: u64,
}

/// Names and files after a step.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// Files by their names.
    pub names: BTreeMap<Name, File>,
    /// Contents by the file's number, also of files that have no name any more.
    pub files: Vec<Content>,
}

impl State {
    fn content(&mut self, name: Name) -> Option<&mut Content> {
        self.names.get(&name).and_then(|file| self.files.get_mut(*file))
    }

    /// Does a step.
    fn take(&mut self, step: Step) {
        match step {
            Step::Create(name) => {
                self.names.insert(name, self.files.len());
                self.files.push(Content::default());
            }
            Step::Append { name, len, .. } => {
                self.content(name).into_iter().for_each(|content| content.len += len as u64);
            }
            Step::Stamp { name, number } => {
                self.content(name).into_iter().for_each(|content| content.stamp = number);
            }
            Step::Sync(name) => {
                if let Some(content) = self.content(name) {
                    (content.len_safe, content.stamp_safe) = (content.len, content.stamp);
                }
            }
            Step::Rename(from, to) => {
                if let Some(file) = self.names.remove(&from) {
                    self.names.insert(to, file);
                }
            }
            Step::Unlink(name) => drop(self.names.remove(&name)),
        }
    }
}

/// Steps without an end, by a seed.
#[derive(Clone, Debug)]
pub struct Mix {
    random: u64,
    state: State,
    /// How many steps there were.
    count: u64,
    /// A file that is to be synced next.
    to_sync: Option<Name>,
}

impl Mix {
    /// Steps of a seed.
    pub fn new(seed: u64) -> Mix {
        Mix { random: seed, state: State::default(), count: 0, to_sync: None }
    }

    /// Names and files after the last step.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.random >> 33) % end
    }

    fn name(&mut self) -> Name {
        Name(self.below(NAMES.into()) as u8)
    }

    /// A step for a name, if it makes sense for it.
    fn step(&mut self, name: Name) -> Option<Step> {
        let Some(&file) = self.state.names.get(&name) else { return Some(Step::Create(name)) };
        let content = self.state.files.get(file).copied().unwrap_or_default();
        let choice = self.below(12);
        match choice {
            0..5 if content.len < LEN_MAX => {
                let len_max = [60, 5000, 20_000][self.below(3) as usize];
                let len = 1 + self.below(len_max) as usize;
                self.to_sync = (self.below(2) == 0).then_some(name);
                Some(Step::Append { name, file, at: content.len, len })
            }
            5 | 6 if content.len >= STAMP as u64 => {
                self.to_sync = (self.below(2) == 0).then_some(name);
                Some(Step::Stamp { name, number: self.count })
            }
            7..10 => {
                let to = self.name();
                (to != name).then_some(Step::Rename(name, to))
            }
            10 => Some(Step::Unlink(name)),
            11 => Some(Step::Sync(name)),
            _ => None,
        }
    }
}

impl Iterator for Mix {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.count += 1;
        let step = match self.to_sync.take() {
            Some(name) => Step::Sync(name),
            None => loop {
                let name = self.name();
                if let Some(step) = self.step(name) {
                    break step;
                }
            },
        };
        self.state.take(step);
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_make_sense_and_are_of_each_kind() {
        let mut mix = Mix::new(1);
        let mut counts = [0; 6];
        for _ in 0..1000 {
            let before = mix.state().clone();
            let step = mix.next().expect("there is no end");
            let has = |name: &Name| before.names.contains_key(name);
            let (kind, is_sound) = match &step {
                Step::Create(name) => (0, !has(name)),
                Step::Append { name, file, at, .. } => {
                    (1, before.names.get(name) == Some(file) && before.files[*file].len == *at)
                }
                Step::Stamp { name, .. } => (2, before.files[before.names[name]].len >= STAMP as u64),
                Step::Sync(name) => (3, has(name)),
                Step::Rename(name, to) => (4, has(name) && name != to),
                Step::Unlink(name) => (5, has(name)),
            };
            assert!(is_sound, "{step:?} {before:?}");
            counts[kind] += 1;
        }
        assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
    }

    #[test]
    fn bytes_are_alike_wherever_they_begin() {
        let all = bytes(3, 0, 100);
        for at in 0..100 {
            assert_eq!(bytes(3, at as u64, 100 - at), all[at..]);
        }
        assert_ne!(bytes(4, 0, 100), all);
    }

    #[test]
    fn marks_are_read_again() {
        let mark = Mark { acknowledged: 7, begun: 1 << 40 };
        assert_eq!(Mark::of(&mark.bytes()), Some(mark));
        assert_eq!(Mark::of(&mark.bytes()[..23]), None);
        assert_eq!(Mark::of(&[0; 24]), None);
    }

    #[test]
    fn paths_are_names() {
        assert!(Name::all().all(|name| Name::of(&name.path()) == Some(name)));
        assert_eq!(Name::of("one/file-9"), None);
    }
}
