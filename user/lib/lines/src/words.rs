//! Words behind the name of a program: flags, and all others.

use alloc::string::String;
use alloc::vec::Vec;

/// Words that were typed, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words<'a> {
    flags: Vec<char>,
    /// Value of the flag that has one.
    pub value: Option<&'a str>,
    /// Words that are no flags.
    pub rest: &'a [String],
}

impl Words<'_> {
    /// Whether a flag is there.
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(&flag)
    }
}

/// Takes words apart as other systems do: flags come first, several may share a word (`-in`), a value is what is left of the flag's word or the next word, `-` alone is no flag, and `--` ends them. `None` if
/// there is a flag of no meaning, or a value is missing.
pub fn words<'a>(typed: &'a [String], flags: &str, valued: Option<char>) -> Option<Words<'a>> {
    let mut words = Words { rest: typed, ..Words::default() };
    while let [first, rest @ ..] = words.rest {
        let Some(letters) = first.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
        words.rest = rest;
        if letters == "-" {
            break;
        }
        for (at, letter) in letters.char_indices() {
            if Some(letter) == valued {
                let behind = &letters[at + letter.len_utf8()..];
                words.value = match (behind, words.rest) {
                    ("", [value, rest @ ..]) => {
                        words.rest = rest;
                        Some(value)
                    }
                    ("", []) => return None,
                    (value, _) => Some(value),
                };
                break;
            }
            if !flags.contains(letter) {
                return None;
            }
            words.flags.push(letter);
        }
    }
    Some(words)
}
