//! Comments of the code, against the rules for text in `docs/style.md`.

use super::text;
use crate::paths;
use std::fs;
use std::path::Path;

/// Words with which a comment begins that names its subject further on, if at all.
const RIDDLES: [&str; 7] = ["What", "Who", "Whom", "Whose", "Whoever", "Which", "As"];

/// Paths, from the root, of code in which no comment begins with one of them.
const PLAIN: [&str; 2] = ["abi/", "kernel/"];

/// Ends of the names of files with code.
const CODE: [&str; 6] = [".rs", ".c", ".h", ".s", ".S", ".ld"];

/// How comments begin. A line of a block comment in C begins with a star.
const MARKS: [&str; 7] = ["///", "//!", "//", "/**", "/*", "*", "#"];

/// Text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim_start)
}

/// Whether a comment refers to whatever stands above it: who reads it alone, in the documentation of one item, learns nothing.
fn refers_upwards(comment: &str) -> bool {
    let rest = comment.strip_prefix("The same");
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Whether a comment begins with a riddle instead of a noun or a verb.
fn is_riddle(comment: &str) -> bool {
    let end = comment.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(comment.len());
    RIDDLES.contains(&&comment[..end])
}

/// Lines that begin a comment, or a paragraph of one, with "The same", by file; in plain code also those that begin with a riddle.
fn offenders(name: &str, code: &str) -> Vec<String> {
    let is_plain = PLAIN.iter().any(|start| name.starts_with(start));
    let is_wrong = |comment: &str| refers_upwards(comment) || is_plain && is_riddle(comment);
    let lines = code.lines().enumerate().filter(|(_, line)| comment(line).is_some_and(is_wrong));
    lines.map(|(number, line)| format!("{name}:{}: {}", number + 1, line.trim())).collect()
}

fn look_through(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(paths::root()).unwrap().display().to_string();
        let own = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_made = own.starts_with('.') || ["target", "out"].contains(&own.as_str());
        if path.is_dir() && !is_made {
            look_through(&path, found);
        } else if path.is_file() && CODE.iter().any(|end| own.ends_with(end)) {
            found.extend(offenders(&name, &text(&name)));
        }
    }
}

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let mut found = Vec::new();
    look_through(&paths::root(), &mut found);
    assert!(found.is_empty(), "begin with a noun or a verb (docs/style.md):\n{}", found.join("\n"));
}

#[test]
fn comments_are_found_in_every_language() {
    let code = "/// The same of green.\nlet same = 1; // The same\n/* The same as an expression. */\n * The same; one\n# The same,\n";
    let found = offenders("x", code);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(offenders("x", "/// The sameness of things.\n/// In the same way.\n"), [""; 0]);
}

#[test]
fn riddles_are_found_in_plain_code() {
    let code =
        "/// What a handler keeps.\n// Who waits.\n//! As above.\n/// Whether it waits.\n/// Assembly.\n";
    assert_eq!(offenders("kernel/x", code).len(), 3);
    assert_eq!(offenders("x", code), [""; 0]);
}
