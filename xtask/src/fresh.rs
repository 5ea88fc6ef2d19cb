//! Compilations in C that would come out the same are left out: most of the time that it takes to start the system again after a small change.
//!
//! Beside each file that a compiler makes lies a note: what the compiler was told, and which files it has read, with sums of their contents. Paths of the checkout are noted as they
//! are within it, so notes hold in a copy of it, too.

use crate::build::run_builder;
use crate::{Context, Result, paths};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable by which gcc is told to add the files that it reads, without those of the system, to a list in the form of a rule for `make`.
const LIST: &str = "DEPENDENCIES_OUTPUT";

/// Stands for the checkout in notes.
const ROOT: &str = "/checkout/";

/// Has a compiler make a file, which the command names behind `-o`, unless that would be what is there. `what` completes the sentence "building … failed".
///
/// A header that appears where nobody has looked for it yet, in front of one that was read, goes unnoticed, as it does by `make`.
pub fn make(command: &mut Command, output: &Path, what: &str) -> Result<()> {
    let (note, list) = (beside(output, "note"), beside(output, "read"));
    if output.exists() && is_fresh(&note, command, output) {
        return Ok(());
    }
    for stale in [&note, &list, output] {
        let _ = fs::remove_file(stale);
    }
    // The variable's value ends at a blank.
    if list.to_string_lossy().contains(' ') {
        return run_builder(command, what);
    }
    run_builder(command.env(LIST, &list), what)?;
    let read = fs::read_to_string(&list).unwrap_or_default();
    let _ = fs::remove_file(&list);
    let files = named(command, output).into_iter().chain(prerequisites(&read));
    paths::write(&note, note_of(command, files)?.as_bytes())
}

fn beside(output: &Path, end: &str) -> PathBuf {
    let mut path = output.to_path_buf();
    path.as_mut_os_string().push(format!(".{end}"));
    path
}

/// A sum of bytes. It has to change when they do, and nobody chooses them to deceive it: FNV-1a.
pub fn sum<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A text in which the checkout's own path is [`ROOT`], and back.
fn within(text: &str) -> String {
    text.replace(&format!("{}/", paths::root().display()), ROOT)
}

fn outside(text: &str) -> String {
    text.replace(ROOT, &format!("{}/", paths::root().display()))
}

/// Sum of what a compiler is told.
fn told(command: &Command) -> u64 {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let text: String = words.map(|word| word.to_string_lossy().into_owned() + "\n").collect();
    sum(within(&text).as_bytes())
}

/// Files that a command names, but what it makes: sources, objects, a script for the linker.
fn named(command: &Command, output: &Path) -> Vec<PathBuf> {
    let paths = command.get_args().map(PathBuf::from);
    paths.filter(|path| path != output && path.is_file()).collect()
}

/// A note: the sum of what the compiler was told, and a line for each file.
fn note_of(command: &Command, files: impl Iterator<Item = PathBuf>) -> Result<String> {
    let mut lines = BTreeSet::new();
    for file in files {
        let content = fs::read(&file).context(|| format!("read {}", file.display()))?;
        lines.insert(format!("{} {:016x}\n", within(&file.display().to_string()), sum(&content)));
    }
    Ok(format!("{:016x}\n", told(command)) + &lines.into_iter().collect::<String>())
}

/// Whether a command would read what it has read when the note was made.
fn is_fresh(note: &Path, command: &Command, output: &Path) -> bool {
    let Ok(noted) = fs::read_to_string(note) else { return false };
    let files = noted.lines().filter_map(|line| line.rsplit_once(' '));
    let files = files.map(|(path, _)| PathBuf::from(outside(path))).chain(named(command, output));
    note_of(command, files).is_ok_and(|note| note == noted)
}

/// Files behind the colon of each rule, in a text for `make`: a line that ends with a backslash goes on, and blanks that are part of a name have one in front.
fn prerequisites(rules: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for rule in rules.replace("\\\n", " ").lines() {
        let files = rule.split_once(": ").map_or("", |(_, files)| files).replace("\\ ", "\0");
        all.extend(files.split_whitespace().map(|file| PathBuf::from(file.replace('\0', " "))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Scratch;

    #[test]
    fn rules_of_make_are_read() {
        let rules = "a.o: /x/a.c /x/b.h \\\n /y/a\\ name.h\nb.o: /x/b.c\n";
        let expected = ["/x/a.c", "/x/b.h", "/y/a name.h", "/x/b.c"].map(PathBuf::from);
        assert_eq!(prerequisites(rules), expected);
        assert!(prerequisites("").is_empty());
    }

    #[test]
    fn notes_hold_in_copies() {
        let text = format!("-I{}/user -o x", paths::root().display());
        assert_eq!(within(&text), "-I/checkout/user -o x");
        assert_eq!(outside(&within(&text)), text);
    }

    /// A program of two sources and a header that one of them includes.
    #[test]
    fn what_would_be_the_same_is_not_made() {
        let scratch = Scratch::create("fresh").unwrap();
        let at = |name: &str| scratch.0.join(name);
        let write = |name: &str, text: &str| fs::write(at(name), text).unwrap();
        write("one.c", "#include \"one.h\"\nint main(void) { return two() - TWO; }\n");
        write("one.h", "#define TWO 2\nint two(void);\n");
        write("two.c", "int two(void) { return 2; }\n");
        let output = at("program");
        // Whatever lies there in its place stays until it is made.
        let is_made = |options: &[&str]| {
            fs::write(&output, "an older one").unwrap();
            let mut command = Command::new("gcc");
            command.args(options).arg("-o").arg(&output).args([at("one.c"), at("two.c")]);
            make(&mut command, &output, "a program").unwrap();
            fs::read(&output).unwrap() != b"an older one"
        };
        assert!(is_made(&[]));
        assert!(!is_made(&[]));
        assert!(is_made(&["-O1"]));
        assert!(!is_made(&["-O1"]));
        for (name, text) in
            [("one.h", "#define TWO 2 \nint two(void);\n"), ("two.c", "int two(void) { return 2 ; }\n")]
        {
            write(name, text);
            assert!(is_made(&["-O1"]), "{name}");
            assert!(!is_made(&["-O1"]), "{name}");
        }
        // A compilation that fails leaves no note.
        write("two.c", "int two(void) { return }\n");
        let mut command = Command::new("gcc");
        command.arg("-o").arg(&output).args([at("one.c"), at("two.c")]).stderr(std::process::Stdio::null());
        assert!(make(&mut command, &output, "a program").is_err());
        assert!(!beside(&output, "note").exists());
    }
}
