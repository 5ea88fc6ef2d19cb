//! Imports between the kernel's files, as paths from the root of the crate.

use crate::paths;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A Rust file of the kernel.
pub struct File {
    /// Path below `kernel/src`.
    pub name: String,
    /// Names of the module, from the root of the crate.
    pub module: Vec<String>,
    /// Text without comments and without the tests at its end.
    pub code: String,
}

impl File {
    /// Takes a file's text apart.
    pub fn new(name: &str, text: &str) -> File {
        let stem = name.trim_end_matches(".rs");
        let module =
            stem.split('/').filter(|part| !["mod", "lib"].contains(part)).map(String::from).collect();
        File { name: name.into(), module, code: code(text) }
    }

    /// Paths that the file imports or names, whether they begin with `crate`, `super` or `self`.
    pub fn imports(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for start in ["crate::", "super::", "self::"] {
            for (at, _) in self.code.match_indices(start) {
                let is_whole = !self.code[..at].ends_with(|c: char| is_name(c) || c == ':' || c == '$');
                let (base, tree) = match start {
                    "crate::" => (Vec::new(), &self.code[at + start.len()..]),
                    _ => (self.module.clone(), &self.code[at..]),
                };
                if is_whole {
                    expand(tree, base, &mut found);
                }
            }
        }
        found
    }

    /// First names of the imports: the crate's modules of the top.
    pub fn heads(&self) -> BTreeSet<String> {
        self.imports().iter().map(|path| path.split("::").next().unwrap().to_string()).collect()
    }
}

/// All Rust files of the kernel, sorted.
pub fn kernel() -> Vec<File> {
    let root = paths::root().join("kernel/src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found.sort_by(|one: &File, other| one.name.cmp(&other.name));
    assert!(found.len() > 50, "the kernel has moved");
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<File>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.push(File::new(&name, &fs::read_to_string(&path).unwrap()));
        }
    }
}

/// A text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.map(|line| format!("{line}\n")).collect()
}

/// Whether a character can be part of a name.
pub fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Adds the paths of a tree such as `a::{b, c::d}`, all of which begin with `path`. Returns the text behind the tree.
fn expand<'a>(tree: &'a str, mut path: Vec<String>, found: &mut BTreeSet<String>) -> &'a str {
    let mut rest = tree.trim_start();
    loop {
        if let Some(mut list) = rest.strip_prefix('{') {
            while !list.trim_start().starts_with('}') && !list.is_empty() {
                let behind = expand(list, path.clone(), found);
                list = behind.split_once([',', '}']).map_or("", |(before, _)| &behind[before.len()..]);
                list = list.strip_prefix(',').unwrap_or(list);
            }
            return list.trim_start().strip_prefix('}').unwrap_or("");
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        match &rest[..end] {
            "" | "self" => {}
            "super" => drop(path.pop()),
            name => path.push(name.into()),
        }
        rest = &rest[end..];
        let goes_on = |more: &&str| more.starts_with(|c| is_name(c) || c == '{' || c == '*');
        match rest.strip_prefix("::").filter(goes_on) {
            Some(more) => rest = more,
            None => break,
        }
    }
    found.insert(path.join("::"));
    rest
}

#[test]
fn imports_are_found_in_all_their_forms() {
    let found =
        |name: &str, text: &str| File::new(name, text).imports().into_iter().collect::<Vec<_>>().join(" ");
    let text = "use super::wait::{self, Sent};\nuse super::{\n    item as it,\n    end::{abort, *},\n};\n// super::x";
    assert_eq!(found("ipc/send.rs", text), "ipc::end ipc::end::abort ipc::item ipc::wait ipc::wait::Sent");
    assert_eq!(found("ipc/mod.rs", "crate::ipc::end::abort(k); $crate::arch::print"), "ipc::end::abort");
    assert_eq!(found("arch/x86_64/timer.rs", "use super::super::super::kernel::Kernel;"), "kernel::Kernel");
    assert_eq!(found("a.rs", "use self::b;\nuse crate::{c, d::<e>()};"), "a::b c d");
    assert_eq!(found("lib.rs", "use lend::Sent;\n#[cfg(test)]\nmod tests {\nuse crate::x;"), "");
}
