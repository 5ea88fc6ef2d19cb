//! Tests of what the book says: its figures against the committed tables, its lists against the code.
//!
//! The rules that a writer follows are in `docs/style.md`. Each test names the page and the line to mend.

mod border;
mod comments;
mod figures;
mod floors;
mod imports;
mod lists;

use crate::paths;
use std::fs;
use std::path::{Path, PathBuf};

/// Text of a file of the tree.
fn text(path: &str) -> String {
    let path = paths::root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All pages: the book and the READMEs, as paths from the root.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    collect(&paths::root(), &mut pages);
    let root = paths::root();
    let mut names: Vec<String> =
        pages.iter().map(|page| page.strip_prefix(&root).unwrap().display().to_string()).collect();
    names.sort();
    names
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "out"].contains(&name.as_str()) {
                collect(&path, pages);
            }
        } else if name.ends_with(".md") {
            pages.push(path);
        }
    }
}

/// Names of the entries of a folder that end so, without that end, sorted.
fn names(folder: &str, end: &str) -> Vec<String> {
    let entries = fs::read_dir(paths::root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(end)?.to_string())).collect();
    names.sort();
    names
}
