//! Names that complete what is typed, fetched where they are: commands and programs, tasks, directories. What a word may become is the library `completion`'s business.

use crate::place::Place;
use crate::{commands, manual};
use alloc::string::String;
use completion::{Found, Word};
use files::Directory;
use rt::api::Result;
use rt::api::process;
use vfs::{Entry, Kind};

/// Pieces of a directory that are looked at, at most.
const PIECES_MAX: usize = 2000;

/// Finds the names that a word may become. What cannot be read has none.
pub fn find(place: &Place, word: &Word) -> Found {
    let mut found = Found::new(word);
    match word.place {
        completion::Place::Command => {
            for command in &commands::COMMANDS {
                found.offer(command.name.as_bytes(), false);
            }
            programs(&mut found);
        }
        completion::Place::Program => programs(&mut found),
        completion::Place::Task => tasks(&mut found),
        completion::Place::File(path) => {
            let _ = entries(place, path, false, &mut found);
        }
        completion::Place::Directory(path) => {
            let _ = entries(place, path, true, &mut found);
        }
    }
    found
}

fn programs(found: &mut Found) {
    for (name, _) in manual::texts() {
        found.offer(name.as_bytes(), false);
    }
}

fn tasks(found: &mut Found) {
    for index in 0.. {
        match process::task_at(rt::home(), index) {
            Ok(Some(task)) if found.offer(task.program().as_str().as_bytes(), false) => {}
            _ => break,
        }
    }
}

fn entries(place: &Place, path: &str, only_directories: bool, found: &mut Found) -> Result<()> {
    let path = place.path_of(if path.is_empty() { "." } else { path });
    let directory = Directory::root()?.enter(path)?;
    let mut next = 0;
    for _ in 0..PIECES_MAX {
        let entries = directory.some_entries(next)?;
        let Some(Entry { next: behind, .. }) = entries.last() else { return resolve(&directory, found) };
        next = *behind;
        for Entry { name, kind, .. } in &entries {
            let is_directory = *kind == Kind::Directory;
            let is_wanted = !only_directories || is_directory || *kind == Kind::Symlink;
            if is_wanted && !found.offer(name, is_directory) {
                return Ok(());
            }
        }
    }
    found.cut();
    Ok(())
}

/// A symbolic link that leads to a directory goes on as one.
fn resolve(directory: &Directory, found: &mut Found) -> Result<()> {
    if let Some(name) = found.only().map(String::from) {
        let is_directory = directory.stat(&name, true)?.kind == Kind::Directory;
        found.offer(name.as_bytes(), is_directory);
    }
    Ok(())
}
