//! Health figures of the source: how long files and functions are, how much is unsafe, what was left behind.
//!
//! The figures are for people to look at; only leftovers fail the check. Functions are found by their braces in
//! text whose comments and strings are blanked out, which is exact enough to count lines.

use crate::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that mark unfinished work. Split, so that this file does not find itself.
const LEFTOVERS: [&str; 7] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("to", "do!("),
    concat!("unimplem", "ented!("),
    concat!("db", "g!("),
];

/// Directories that hold no source of ours.
const FOREIGN: [&str; 4] = ["target", "out", ".git", "corpus"];

/// Files of the kernel's crate that do not ship: the simulated machine, and the invariants that tests assert.
/// It is counted apart, in a line of its own.
const BESIDE_THE_KERNEL: [&str; 4] =
    ["kernel/src/arch/host/", "kernel/src/sim.rs", "kernel/src/check/", "kernel/src/check.rs"];

/// The name of that line.
const SIMULATOR: &str = "kernel: simulator, checks";

/// Functions with more lines are listed.
const LONG_FUNCTION: usize = 70;

/// Figures that were found.
#[derive(Debug, Default)]
pub struct Health {
    crates: BTreeMap<PathBuf, Figures>,
    long_functions: Vec<String>,
    leftovers: Vec<String>,
}

/// Figures of a crate.
#[derive(Debug, Default)]
struct Figures {
    files: Vec<usize>,
    /// Lines that are neither blank nor comment, nor of tests at a file's end.
    code: usize,
    functions: Vec<usize>,
    unsafes: usize,
}

/// Reads all Rust files below a directory.
pub fn examine(root: &Path) -> Result<Health> {
    let mut health = Health::default();
    for path in rust_files(root)? {
        let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path);
        health.add(counted_as(root, shown), shown, &text);
    }
    Ok(health)
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        let entries = fs::read_dir(&directory).context(|| format!("read {}", directory.display()))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !FOREIGN.contains(&name.as_str()) {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// In which line a file is counted: its crate's, but for what is beside the kernel.
fn counted_as(root: &Path, path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    let is_beside = BESIDE_THE_KERNEL.iter().any(|part| name.starts_with(part));
    if is_beside { PathBuf::from(SIMULATOR) } else { crate_of(root, path) }
}

/// The nearest directory above with a manifest.
fn crate_of(root: &Path, path: &Path) -> PathBuf {
    let mut above = path.ancestors().skip(1);
    above.find(|directory| root.join(directory).join("Cargo.toml").is_file()).unwrap_or(path).to_path_buf()
}

impl Health {
    fn add(&mut self, directory: PathBuf, path: &Path, text: &str) {
        let code = blank_out(text);
        let figures = self.crates.entry(directory).or_default();
        figures.files.push(text.lines().count());
        figures.code += code_lines(&code);
        figures.unsafes += words(&code).filter(|(_, word)| *word == "unsafe").count();
        for (name, line, length) in functions(&code) {
            figures.functions.push(length);
            if length > LONG_FUNCTION {
                self.long_functions.push(format!("{}:{line} {name}: {length} lines", path.display()));
            }
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = LEFTOVERS.iter().find(|word| line.contains(*word)) {
                self.leftovers.push(format!("{}:{}: {word}", path.display(), index + 1));
            }
        }
    }

    /// Whether the check fails.
    pub fn is_bad(&self) -> bool {
        !self.leftovers.is_empty()
    }

    /// The figures as a table, then what deserves a look.
    pub fn report(&self) -> String {
        let mut out = format!(
            "{:<25} {:>6} {:>7} {:>7} {:>11} {:>10} {:>8} {:>9} {:>7}\n",
            "crate", "files", "lines", "code", "file median", "functions", "median", "nine in 10", "unsafe"
        );
        let mut all = Figures::default();
        for (name, figures) in &self.crates {
            out += &figures.line(&name.display().to_string());
            all.files.extend(&figures.files);
            all.code += figures.code;
            all.functions.extend(&figures.functions);
            all.unsafes += figures.unsafes;
        }
        out += &all.line("all");
        for (what, list) in [("long functions", &self.long_functions), ("leftovers", &self.leftovers)] {
            if !list.is_empty() {
                let _ = writeln!(out, "{what}:\n  {}", list.join("\n  "));
            }
        }
        out
    }
}

impl Figures {
    fn line(&self, name: &str) -> String {
        format!(
            "{:<25} {:>6} {:>7} {:>7} {:>11} {:>10} {:>8} {:>9} {:>7}\n",
            name,
            self.files.len(),
            self.files.iter().sum::<usize>(),
            self.code,
            quantile(&self.files, 50),
            self.functions.len(),
            quantile(&self.functions, 50),
            quantile(&self.functions, 90),
            self.unsafes
        )
    }
}

/// Lines with something on them, of a text without comments, as far as its tests.
fn code_lines(code: &str) -> usize {
    let shipped = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or(code);
    shipped.lines().filter(|line| !line.trim().is_empty()).count()
}

fn quantile(values: &[usize], percent: usize) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// Replaces comments, strings and character literals by blanks; newlines stay.
fn blank_out(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        match end {
            Some(end) => {
                out[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The end of the comment or literal that starts here.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let until = |from: usize, pattern: &[u8]| {
        let found = rest[from..].windows(pattern.len()).position(|window| window == pattern);
        found.map_or(bytes.len(), |found| at + from + found + pattern.len())
    };
    match rest {
        [b'/', b'/', ..] => Some(until(2, b"\n") - 1),
        [b'/', b'*', ..] => Some(until(2, b"*/")),
        [b'r', b'#', b'"', ..] => Some(until(3, b"\"#")),
        [b'r', b'"', ..] if at == 0 || !is_word(bytes[at - 1]) => Some(until(2, b"\"")),
        [b'"', ..] => Some(quoted_end(bytes, at)),
        [b'\'', b'\\', ..] => Some(until(3, b"'")),
        [b'\'', _, b'\'', ..] => Some(at + 3),
        _ => None,
    }
}

fn quoted_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The words of a text with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let place = move |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let split = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    split.filter(|word| !word.is_empty()).map(move |word| (place(word), word))
}

/// Name, first line and number of lines of each function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let all: Vec<(usize, &str)> = words(code).collect();
    let named = all.windows(2).filter(|pair| pair[0].1 == "fn");
    named
        .filter_map(|pair| {
            let end = body_end(&code.as_bytes()[pair[1].0..])?;
            let line = |to: usize| code.as_bytes()[..to].iter().filter(|byte| **byte == b'\n').count() + 1;
            let first = line(pair[0].0);
            Some((pair[1].1.to_string(), first, line(pair[1].0 + end) - first + 1))
        })
        .collect()
}

/// The end of the first braces; `None` if a semicolon outside of brackets comes first.
fn body_end(code: &[u8]) -> Option<usize> {
    let (mut braces, mut brackets) = (0, 0);
    for (at, byte) in code.iter().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' if braces == 1 => return Some(at),
            b'}' => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let code =
            "fn one() {\n  let x = \"}\"; // }\n  '}';\n}\nfn decl(a: [u8; 2]);\nfn two(a: [u8; 2]) {}\n";
        let found = functions(&blank_out(code));
        assert_eq!(found, [("one".into(), 1, 4), ("two".into(), 6, 1)]);
    }

    #[test]
    fn unsafe_is_counted_in_code_only() {
        let mut health = Health::default();
        health.add("a".into(), Path::new("a/src/lib.rs"), "// unsafe\nunsafe { f(\"unsafe\") }\n");
        assert_eq!(health.crates[Path::new("a")].unsafes, 1);
        assert!(!health.is_bad());
        health.add("a".into(), Path::new("a/src/b.rs"), concat!("// TO", "DO later\n"));
        assert!(health.is_bad());
    }

    #[test]
    fn the_simulator_is_counted_apart() {
        let root = crate::paths::root();
        for part in BESIDE_THE_KERNEL {
            assert!(root.join(part).exists(), "{part}");
        }
        let at = |path: &str| counted_as(&root, Path::new(path));
        assert_eq!(at("kernel/src/arch/host/tlb.rs"), Path::new(SIMULATOR));
        assert_eq!(at("kernel/src/check/queues.rs"), Path::new(SIMULATOR));
        assert_eq!(at("kernel/src/checked.rs"), Path::new("kernel"));
        assert_eq!(at("kernel/src/arch/x86_64/acpi.rs"), Path::new("kernel"));
    }

    #[test]
    fn lines_of_code_are_those_before_the_tests() {
        let text = "// a\n\nfn one() {}\n/* b */\nfn two() {} // c\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
        assert_eq!(code_lines(&blank_out(text)), 2);
    }

    #[test]
    fn crates_are_found_by_their_manifests() {
        let root = crate::paths::root();
        assert_eq!(crate_of(&root, Path::new("xtask/src/health.rs")), Path::new("xtask"));
        assert_eq!(crate_of(&root, Path::new("tests/harness/src/main.rs")), Path::new("tests/harness"));
    }
}
