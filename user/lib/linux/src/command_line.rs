//! The command line of the program that runs a sandbox: options, then a program of Linux and its arguments.

use alloc::vec::Vec;

/// Parts of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLine {
    /// Path of the directory that is the root.
    pub root: Vec<u8>,
    /// Whether the machine has booted for this, so that nobody else says that the terminal is ready.
    pub is_boot: bool,
    /// Whether each call is told of.
    pub has_trace: bool,
    /// The file of Tern's that gets it, in the place of the console.
    pub trace_file: Option<Vec<u8>>,
    /// Name of the server that gets it, in the place of the console.
    pub monitor: Option<Vec<u8>>,
    /// Whether calls are counted, for a table at the end.
    pub has_profile: bool,
    /// Whether keys of the console are the program's. If not, nobody types at its terminal.
    pub has_keys: bool,
    /// Whether somebody sits at a terminal, which can be asked for its size.
    pub has_person: bool,
    /// Memory of all processes together in MiB, at most.
    pub memory_mib: Option<u32>,
    /// Memory of the program that runs the sandbox in MiB, with its own image: what processes make it keep is a part of that.
    pub own_mib: Option<u32>,
    /// Processes and threads, at most.
    pub processes: Option<u32>,
    /// Bytes of the root's files and directories together in MiB, at most.
    pub disk_mib: Option<u32>,
    /// Files, directories and symbolic links in the root, at most.
    pub files: Option<u32>,
    /// The program, and its arguments.
    pub words: Vec<Vec<u8>>,
}

/// The root, if nothing is said of it.
pub const ROOT: &[u8] = b"/disk/linux";

impl CommandLine {
    /// Reads a text. None if an option is unknown or incomplete, or if there is no program.
    pub fn read(text: &str) -> Option<CommandLine> {
        let mut read = CommandLine::new();
        // Boot options are words as they are; at a shell there are quotes.
        let is_plain = text.trim_start().starts_with("--boot");
        let plain = || text.split_ascii_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        let mut words = if is_plain { plain() } else { split(text) }.into_iter().peekable();
        let mut is_encoded = false;
        while let Some(option) = words.next_if(|word| word.starts_with(b"-")) {
            match option.as_slice() {
                b"--encoded" => {
                    is_encoded = true;
                    break;
                }
                option => read.take(option, &mut words)?,
            }
        }
        if read.root.is_empty() {
            read.root = ROOT.to_vec();
        }
        read.words = words.collect();
        if is_encoded {
            read.words = read.words.iter().map(|word| decoded(word)).collect();
        }
        // A file is for something.
        let is_whole = read.trace_file.is_none() || read.has_trace || read.has_profile;
        (is_whole && !read.words.is_empty()).then_some(read)
    }

    /// Nothing is asked for.
    const fn new() -> CommandLine {
        CommandLine {
            root: Vec::new(),
            is_boot: false,
            has_trace: false,
            trace_file: None,
            monitor: None,
            has_profile: false,
            has_keys: true,
            has_person: false,
            memory_mib: None,
            own_mib: None,
            processes: None,
            disk_mib: None,
            files: None,
            words: Vec::new(),
        }
    }

    /// Takes an option, and what stands behind it. None if there is no such option, or nothing behind it that it needs.
    fn take(&mut self, option: &[u8], words: &mut impl Iterator<Item = Vec<u8>>) -> Option<()> {
        match option {
            b"--root" => self.root = words.next()?,
            b"--boot" => self.is_boot = true,
            b"--strace" => self.has_trace = true,
            b"-o" => self.trace_file = Some(words.next()?),
            b"--monitor" => (self.has_trace, self.monitor) = (true, Some(words.next()?)),
            b"--profile" => self.has_profile = true,
            b"--no-keys" => self.has_keys = false,
            b"--terminal" => self.has_person = true,
            b"--memory" => self.memory_mib = Some(number(&words.next()?)?),
            b"--own-memory" => self.own_mib = Some(number(&words.next()?)?),
            b"--processes" => self.processes = Some(number(&words.next()?)?),
            b"--disk" => self.disk_mib = Some(number(&words.next()?)?),
            b"--files" => self.files = Some(number(&words.next()?)?),
            _ => {
                let file = option.strip_prefix(b"--strace=").filter(|file| !file.is_empty())?;
                (self.has_trace, self.trace_file) = (true, Some(file.to_vec()));
            }
        }
        Some(())
    }
}

/// A number above zero.
fn number(word: &[u8]) -> Option<u32> {
    core::str::from_utf8(word).ok()?.parse().ok().filter(|number| *number > 0)
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
        for wrong in [
            "",
            "--root",
            "--root /x",
            "--other ls",
            "--boot",
            "-x ls",
            "--strace",
            "--strace= ls",
            "-o ls",
            "-o file ls",
            "--memory 0 ls",
            "--own-memory ls",
            "--processes many ls",
            "--disk ls",
            "--files 0 ls",
        ] {
            assert_eq!(CommandLine::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn somebody_may_sit_at_a_terminal() {
        assert!(!CommandLine::read("--boot ls").unwrap().has_person);
        let read = CommandLine::read("--boot --terminal ls --terminal").unwrap();
        assert_eq!((read.has_person, read.words.len()), (true, 2));
    }

    #[test]
    fn calls_are_told_where_it_is_wanted() {
        let read = CommandLine::read("--strace --profile ls --strace=x").unwrap();
        assert!(read.has_trace && read.has_profile && read.has_keys && read.trace_file.is_none());
        assert_eq!(read.words, [b"ls".as_slice(), b"--strace=x"]);
        for line in ["--strace=/disk/calls ls", "--strace -o /disk/calls ls"] {
            let read = CommandLine::read(line).unwrap();
            assert_eq!((read.has_trace, read.trace_file.as_deref()), (true, Some(b"/disk/calls".as_slice())));
        }
        let read = CommandLine::read("--monitor log --no-keys --memory 16 --own-memory 24 --processes 8 ls")
            .unwrap();
        assert_eq!(
            (read.monitor.as_deref(), read.has_trace, read.has_keys),
            (Some(b"log".as_slice()), true, false)
        );
        assert_eq!((read.memory_mib, read.own_mib, read.processes), (Some(16), Some(24), Some(8)));
        assert_eq!((read.disk_mib, read.files), (None, None));
        let read = CommandLine::read("--disk 64 --files 4000 ls").unwrap();
        assert_eq!((read.disk_mib, read.files), (Some(64), Some(4000)));
    }
}
