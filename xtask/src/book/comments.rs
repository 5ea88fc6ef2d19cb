//! Comments of the code, against the rules for text in `docs/style.md`.

use super::text;
use crate::paths;
use std::fs;
use std::path::Path;

/// Words with which a comment begins that names its subject further on, if at all.
const RIDDLES: [&str; 7] = ["What", "Who", "Whom", "Whose", "Whoever", "Which", "As"];

/// Folders in which comments begin so, and how many do. The figures only fall: who mends a comment writes the new one down.
const RIDDLES_LEFT: [(&str, usize); 2] = [("idl/", 298), ("tests/", 238)];

/// Ends of the names of files with code.
const CODE: [&str; 6] = [".rs", ".c", ".h", ".s", ".S", ".ld"];

/// How comments begin. A line of a block comment in C begins with a star.
const MARKS: [&str; 7] = ["///", "//!", "//", "/**", "/*", "*", "#"];

/// How comments begin behind code.
const TRAILING_MARKS: [&str; 3] = [" // ", " /* ", " # "];

/// Text of a comment: of a line that is one, or behind code.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let whole = MARKS.iter().find_map(|mark| line.strip_prefix(mark));
    whole.or_else(|| trailing(line)).map(str::trim_start)
}

/// Text of a comment behind code. What looks like one in a string is none.
fn trailing(line: &str) -> Option<&str> {
    let starts = TRAILING_MARKS.iter().filter_map(|mark| Some((line.find(mark)?, mark.len())));
    let (at, len) = starts.min()?;
    let is_in_string = line[..at].matches('"').count() % 2 == 1;
    (!is_in_string).then(|| &line[at + len..])
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

/// Lines of a file with a comment of which that is true.
fn offenders(name: &str, code: &str, is_wrong: fn(&str) -> bool) -> Vec<String> {
    let lines = code.lines().enumerate().filter(|(_, line)| comment(line).is_some_and(is_wrong));
    lines.map(|(number, line)| format!("{name}:{}: {}", number + 1, line.trim())).collect()
}

/// Adds what `look` finds in files of code in a folder, by their names and texts.
fn look_through(folder: &Path, look: &dyn Fn(&str, &str) -> Vec<String>, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(paths::root()).unwrap().display().to_string();
        let own = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_made = own.starts_with('.') || ["target", "out"].contains(&own.as_str());
        if path.is_dir() && !is_made {
            look_through(&path, look, found);
        } else if path.is_file() && CODE.iter().any(|end| own.ends_with(end)) {
            found.extend(look(&name, &text(&name)));
        }
    }
}

/// Languages of blocks in documentation. In Rust, a block is an example that a runner of cargo's would run, and `./tern test` has none of that kind.
const LANGUAGES: [&str; 2] = ["text", "idl"];

/// First lines of blocks in a file's documentation that are in another language, or in none.
fn examples(name: &str, code: &str) -> Vec<String> {
    let line = |line: &str| -> Option<String> {
        let line = line.trim_start();
        let documentation = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some(documentation.trim_start().strip_prefix("```")?.to_string())
    };
    // Every second line ends a block.
    let languages = code.lines().filter_map(line).step_by(2);
    let others = languages.filter(|language| !LANGUAGES.contains(&language.as_str()));
    others.map(|language| format!("{name}: ```{language}")).collect()
}

#[test]
fn documentation_has_no_examples_that_nobody_runs() {
    let code = "/// ```text\n/// a\n/// ```\nx\n//! ```\n//! a\n//! ```\n/// ```no_run\n/// ```\n// ```\n";
    assert_eq!(examples("x", code), ["x: ```", "x: ```no_run"]);
    let mut found = Vec::new();
    look_through(&paths::root(), &examples, &mut found);
    assert!(found.is_empty(), "blocks that are neither {LANGUAGES:?}:\n{}", found.join("\n"));
}

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let mut found = Vec::new();
    look_through(&paths::root(), &|name, code| offenders(name, code, refers_upwards), &mut found);
    assert!(found.is_empty(), "begin with a noun or a verb (docs/style.md):\n{}", found.join("\n"));
}

#[test]
fn comments_name_their_subject_first() {
    let mut found = Vec::new();
    look_through(&paths::root(), &|name, code| offenders(name, code, is_riddle), &mut found);
    for (folder, left) in RIDDLES_LEFT {
        let (inside, outside): (Vec<_>, _) = found.into_iter().partition(|line| line.starts_with(folder));
        assert_eq!(
            inside.len(),
            left,
            "comments of {folder} that begin with a riddle (docs/style.md):\n{}",
            inside.join("\n")
        );
        found = outside;
    }
    assert!(found.is_empty(), "begin with a noun or a verb (docs/style.md):\n{}", found.join("\n"));
}

#[test]
fn comments_are_found_in_every_language() {
    let code = "/// The same of green.\nlet same = 1; // The same\n/* The same as an expression. */\n * The same; one\n# The same,\nmov a, b  # The same\nprint(\" // The same\")\n";
    let found = offenders("x", code, refers_upwards);
    assert_eq!(found.len(), 6, "{found:?}");
    let fine = "/// The sameness of things.\n/// In the same way.\n";
    assert_eq!(offenders("x", fine, refers_upwards), [""; 0]);
}

#[test]
fn riddles_are_found() {
    let code = "/// What a handler keeps.\n// Who waits.\n//! As above.\n/// Whether it waits.\n/// Assembly.\nx, // What it is.\nsay(\"a // What\");\ny; // The whole.\n";
    assert_eq!(offenders("x", code, is_riddle).len(), 4);
}
