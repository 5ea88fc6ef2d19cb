//! System descriptions: TOML files that say what runs, checked when an image is built, and packed for `root`.
//!
//! [`file`] is what a person writes, word by word. [`check`] makes a [`description::System`] of it, or says what is wrong, with the line.

mod check;
mod file;
mod show;

use crate::cli::{SystemOptions, SystemVerb};
use crate::{Error, Result, paths, programs};
use description::System;
use std::fmt;
use std::path::{Path, PathBuf};

/// Folder of the descriptions, in the checkout.
const FOLDER: &str = "systems";

/// Ending of their names.
const ENDING: &str = "toml";

/// Mistake in a description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Line, from 1 on.
    pub line: u32,
    /// Reason, in a sentence without a full stop.
    pub reason: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
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
    let source = path(name)?;
    let text = String::from_utf8_lossy(&paths::read(&paths::root().join(&source))?).into_owned();
    of_text(&source.display().to_string(), &text, files)
}

/// Reads a description that is called `source`, for a boot archive with these files.
pub fn of_text(source: &str, text: &str, files: &[&str]) -> Result<System> {
    let told = |mistakes: &[Mistake]| {
        let lines: Vec<String> = mistakes.iter().map(|mistake| format!("{source}, {mistake}")).collect();
        Error::new(lines.join("\n"))
    };
    let file = file::parse(text).map_err(|mistake| told(&[mistake]))?;
    check::check(source, text, &file, files).map_err(|mistakes| told(&mistakes))
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
