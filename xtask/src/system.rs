//! System descriptions: TOML files that say what runs, checked when an image is built, and packed for `root`.
//!
//! [`file`] is what a person writes, word by word; [`base`] puts it over what it begins with. [`check`] makes a [`description::System`] of it, or says what is wrong, with the line;
//! [`sandbox`] does so for a sandbox of Linux.

mod base;
mod check;
mod file;
mod sandbox;
mod show;

use crate::cli::{SystemOptions, SystemVerb};
use crate::{Error, Result, paths, programs};
use description::System;
use std::path::{Path, PathBuf};

/// Folder of the descriptions, in the checkout.
const FOLDER: &str = "systems";

/// Ending of their names.
const ENDING: &str = "toml";

/// Mistake in a description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Line, from 1 on. Behind the description's own lines are those of its bases.
    pub line: u32,
    /// Reason, in a sentence without a full stop.
    pub reason: String,
}

/// The verb `system`.
pub fn perform(options: SystemOptions) -> Result<u8> {
    let files = programs::names()?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    match options.verb {
        SystemVerb::Check { name } => {
            let names = name.map_or_else(names, |name| Ok(vec![name]))?;
            for name in names {
                let system = read(&name, &files)?;
                let servers = system.programs.iter().filter(|program| !program.serves.is_empty()).count();
                println!("{}: {} programs, {servers} of them servers", system.source, system.programs.len());
            }
        }
        SystemVerb::Show { name, svg } => {
            let system = read(&name, &files)?;
            print!("{}", show::text(&system));
            if let Some(file) = svg {
                paths::write(&file, show::drawing(&system)?.as_bytes())?;
            }
        }
    }
    Ok(0)
}

/// Reads the description of this name, for a boot archive with these files.
pub fn read(name: &str, files: &[&str]) -> Result<System> {
    let (source, text) = fetch(name)?;
    of_text(&source, &text, files)
}

/// Reads a description that is called `source`, for a boot archive with these files. It may begin with one of the folder.
pub fn of_text(source: &str, text: &str, files: &[&str]) -> Result<System> {
    system_of(source, text, files, &|name| fetch(name).map_err(|error| error.message)).map_err(Error::new)
}

/// Reads a description that may begin with those that `fetch` knows. Lines of programs are the description's own.
fn system_of(
    source: &str,
    text: &str,
    files: &[&str],
    fetch: &base::Fetch,
) -> std::result::Result<System, String> {
    let (sources, file) = base::read(source, text, fetch);
    let checked = file.map_err(|it| vec![it]).and_then(|file| check::check(&sources, &file, files));
    let mut system = checked.map_err(|mistakes| {
        let told = |mistake: &Mistake| {
            let (source, line) = sources.place(mistake.line);
            format!("{source}, line {line}: {}", mistake.reason)
        };
        mistakes.iter().map(told).collect::<Vec<_>>().join("\n")
    })?;
    for program in system.programs.iter_mut().chain([&mut system.usual]) {
        program.line = sources.own_line(program.line);
    }
    Ok(system)
}

/// Source and text of the description of a name.
fn fetch(name: &str) -> Result<(String, String)> {
    let source = path(name)?;
    let text = String::from_utf8_lossy(&paths::read(&paths::root().join(&source))?).into_owned();
    Ok((source.display().to_string(), text))
}

/// The file of a name, relative to the checkout.
fn path(name: &str) -> Result<PathBuf> {
    let all = names()?;
    if all.iter().any(|known| known == name) {
        return Ok(Path::new(FOLDER).join(name).with_extension(ENDING));
    }
    Err(Error::new(format!("there is no system {name:?}; there are: {}", all.join(", "))))
}

/// Names of all descriptions, sorted.
pub fn names() -> Result<Vec<String>> {
    let files = programs::files_with_extension(&paths::root().join(FOLDER), &[ENDING])?;
    Ok(files.iter().filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect())
}

#[cfg(test)]
mod tests;
