//! The command line of the program that runs a sandbox: options, then a program of Linux and its arguments.

use alloc::vec::Vec;

/// Parts of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLine {
    /// Path of the directory that is the root.
    pub root: Vec<u8>,
    /// Whether the machine has booted for this, so that nobody else says that the terminal is ready.
    pub is_boot: bool,
    /// The program, and its arguments.
    pub words: Vec<Vec<u8>>,
}

/// The root, if nothing is said of it.
pub const ROOT: &[u8] = b"/disk/linux";

impl CommandLine {
    /// Reads a text. None if an option is unknown or incomplete, or if there is no program.
    pub fn read(text: &str) -> Option<CommandLine> {
        let mut read = CommandLine { root: ROOT.to_vec(), is_boot: false, words: Vec::new() };
        // Boot options are words as they are; at a shell there are quotes.
        let is_plain = text.trim_start().starts_with("--boot");
        let plain = || text.split_ascii_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        let mut words = if is_plain { plain() } else { split(text) }.into_iter().peekable();
        let mut is_encoded = false;
        while let Some(option) = words.next_if(|word| word.starts_with(b"--")) {
            match option.as_slice() {
                b"--root" => read.root = words.next()?,
                b"--boot" => read.is_boot = true,
                b"--encoded" => {
                    is_encoded = true;
                    break;
                }
                _ => return None,
            }
        }
        read.words = words.collect();
        if is_encoded {
            read.words = read.words.iter().map(|word| decoded(word)).collect();
        }
        (!read.words.is_empty()).then_some(read)
    }
}

/// Words, between blanks. What is in single or double quotes is one word, or a part of it, and a backslash outside of single quotes takes what follows as it
/// is.
fn split(text: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\'' | b'"', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (byte, Some(open)) if byte == open => quote = None,
            (b'\\', None | Some(b'"')) => word.get_or_insert_default().extend(bytes.next()),
            (byte, None) if byte.is_ascii_whitespace() => words.extend(word.take()),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words
}

/// A word in which each byte that boot options cannot hold is a percent sign and two hexadecimal digits. A percent sign alone is no bytes.
fn decoded(word: &[u8]) -> Vec<u8> {
    if word == b"%" {
        return Vec::new();
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut left = word;
    while let Some((&first, rest)) = left.split_first() {
        let digits = rest.get(..2).and_then(|digits| core::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                left = &rest[2..];
            }
            _ => {
                bytes.push(first);
                left = rest;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        CommandLine::read(text).unwrap().words
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(
            words("sh -c 'echo a  b' \"c 'd\" e\\ f ''"),
            [b"sh".as_slice(), b"-c", b"echo a  b", b"c 'd", b"e f", b""]
        );
        assert_eq!(words("echo don't"), [b"echo".as_slice(), b"dont"]);
        assert_eq!(words("--boot echo don't"), [b"echo".as_slice(), b"don't"]);
    }

    #[test]
    fn options_stand_in_front() {
        let read = CommandLine::read("--boot --root /disk/other --encoded ls a%20b % %zz --root").unwrap();
        assert_eq!((read.root.as_slice(), read.is_boot), (b"/disk/other".as_slice(), true));
        assert_eq!(read.words, [b"ls".as_slice(), b"a b", b"", b"%zz", b"--root"]);
        assert_eq!(CommandLine::read("ls --boot").unwrap().root, ROOT);
        for wrong in ["", "--root", "--root /x", "--other ls", "--boot"] {
            assert_eq!(CommandLine::read(wrong), None, "{wrong}");
        }
    }
}
