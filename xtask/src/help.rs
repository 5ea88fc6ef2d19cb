//! Texts of programs for the shell's `help`: a file of the boot archive with a line for each, made of the comments at the heads of their sources.

use crate::archive::Entry;
use crate::programs::Package;
use crate::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file.
pub const FILE: &str = "etc/help";

/// The file. `c_programs` are folders with their sources.
pub fn entry(root: &Path, packages: &[Package], c_programs: &[(PathBuf, Vec<PathBuf>)]) -> Result<Entry> {
    let mut lines = Vec::new();
    let programs = packages.iter().filter(|package| package.is_program());
    for (package, name) in
        programs.flat_map(|package| package.binaries.iter().map(move |name| (package, name)))
    {
        let folder = root.join(&package.directory).join("src");
        let own = folder.join("bin").join(format!("{name}.rs"));
        lines.extend(line(name, &if own.exists() { own } else { folder.join("main.rs") })?);
    }
    for (folder, sources) in c_programs {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_main =
            |source: &&PathBuf| source.file_stem().is_some_and(|stem| stem == name.trim_end_matches("-c"));
        if let Some(source) = sources.iter().find(is_main).or(sources.first()) {
            lines.extend(line(&name, source)?);
        }
    }
    lines.sort();
    Ok(Entry { name: FILE.into(), data: lines.concat().into_bytes() })
}

/// The line of a program.
fn line(name: &str, source: &Path) -> Result<Option<String>> {
    let text = fs::read_to_string(source).context(|| format!("read {}", source.display()))?;
    Ok(text_of(name, &text).map(|text| format!("{name}: {text}\n")))
}

/// Text of the comment at the head of a source: its first paragraph, and others that say how the program is called.
fn text_of(name: &str, source: &str) -> Option<String> {
    let head = match source.strip_prefix("/*") {
        Some(comment) => comment.split("*/").next().unwrap_or_default().lines().collect(),
        None => source.lines().map_while(|line| line.strip_prefix("//!")).collect::<Vec<_>>(),
    };
    let lines: Vec<&str> = head.iter().map(|line| line.trim_start().trim_start_matches('*').trim()).collect();
    let mut paragraphs =
        lines.split(|line| line.is_empty()).map(|lines| lines.join(" ")).filter(|text| !text.is_empty());
    let first = paragraphs.next()?;
    let call = format!("`{name} ");
    let all = std::iter::once(first).chain(paragraphs.filter(|text| text.contains(&call)));
    // Names that the documentation links are names; other code is quoted as the shell does.
    let plain = |text: String| text.replace("[`", "`").replace("`]", "`").replace('`', "\"");
    Some(all.map(plain).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn the_comment_at_the_head_is_what_help_says() {
        let source = "//! Sends texts\n//! over [`net`].\n//!\n//! **Threads.** There are some.\n//!\n//! `nc HOST [PORT]` calls.\n\n//! x\n";
        let text = "Sends texts over \"net\". \"nc HOST [PORT]\" calls.";
        assert_eq!(text_of("nc", source).as_deref(), Some(text));
        let source =
            "/* A program in C, whose comment\n * has two lines.\n *\n * And more. */\n\n/* Another. */\n";
        assert_eq!(text_of("x-c", source).as_deref(), Some("A program in C, whose comment has two lines."));
        assert_eq!(text_of("none", "fn main() {}\n"), None);
    }

    #[test]
    fn every_program_says_something() {
        let root = crate::paths::root();
        let packages = crate::programs::packages().unwrap();
        let entry = super::entry(&root, &packages, &[]).unwrap();
        let text = String::from_utf8(entry.data).unwrap();
        let programs =
            packages.iter().filter(|package| package.is_program()).flat_map(|package| &package.binaries);
        for name in programs {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            assert!(line.is_some_and(|text| text.len() > 10), "{name}: no text at the head of its source");
        }
    }
}
