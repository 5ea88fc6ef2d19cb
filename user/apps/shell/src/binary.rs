//! Programs that are named by a file: those of Linux, which the program `linux` runs, and those of Tern, which lie in the boot archive.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use files::{Directory, File};
use rt::api::{Failure, Status};
use rt::image::{self, Kind};
use vfs::How;

/// Bytes of a file in which all of its headers are, as with Linux.
const HEAD_BYTES: usize = 4096;

/// Longest path of an interpreter, with the zero behind it.
const INTERPRETER_MAX: usize = 4096;

/// The usual root of Linux.
const ROOT: &str = "/disk/linux";

/// Directory in which the programs of the boot archive are seen.
const ARCHIVE: &str = "/boot/";

/// Program that runs programs of Linux.
const LINUX: &str = "linux";

/// A program to start.
pub struct Found {
    /// Its name in the boot archive.
    pub name: String,
    /// Arguments in front of those of the command.
    pub words: Vec<String>,
}

/// Looks at the file with this path from the root. If it cannot be started: whether it is there, and why.
pub fn find(path: &str) -> Result<Found, (bool, String)> {
    let failed = |failure: Failure| (failure != Failure::Refused(Status::NotFound), failure.to_string());
    let root = Directory::root().map_err(failed)?;
    let file = root.open(inside(path), How::default()).map_err(failed)?;
    let head = read(&file, 0, HEAD_BYTES).map_err(failed)?;
    match image::kind(&head) {
        None => Err((true, "it is no program".into())),
        Some(Kind::Tern) => match path.strip_prefix(ARCHIVE) {
            Some(name) => Ok(Found { name: name.into(), words: Vec::new() }),
            None => {
                Err((true, "it is a program of Tern, and these start from the boot archive alone".into()))
            }
        },
        Some(Kind::Linux(interpreter)) => {
            let directory = match interpreter {
                None => root_of_static(path),
                Some(place) => {
                    let len = usize::try_from(place.end - place.start).unwrap_or(usize::MAX);
                    let name = read(&file, place.start, len.min(INTERPRETER_MAX)).map_err(failed)?;
                    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                    root_with(&root, path, name)?
                }
            };
            let name = path.strip_prefix(directory).unwrap_or(path);
            let directory = if directory.is_empty() { "/" } else { directory };
            let words = ["--root", directory, name].map(String::from).to_vec();
            Ok(Found { name: LINUX.into(), words })
        }
    }
}

/// A path for the server of files, which has no root in front.
fn inside(path: &str) -> &str {
    path.trim_start_matches('/')
}

fn read(file: &File, offset: u64, len: usize) -> rt::api::Result<Vec<u8>> {
    files::reading(|inbox| file.read(inbox, offset, len, <[u8]>::to_vec))
}

/// Directories above a path, the nearest first, without the root of all files.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(at, _)| &path[..at]).filter(|directory| !directory.is_empty())
}

/// Root of a program that needs no other file: the usual one, if the program is there, or the program's own directory.
fn root_of_static(path: &str) -> &str {
    let mut all = above(path);
    let own = all.next().unwrap_or_default();
    if own == ROOT { own } else { all.find(|directory| *directory == ROOT).unwrap_or(own) }
}

/// Root of a program that needs an interpreter: the nearest directory above it in which that is.
fn root_with<'a>(root: &Directory, path: &'a str, interpreter: &[u8]) -> Result<&'a str, (bool, String)> {
    let is_there = |directory: &&str| {
        let whole = [inside(directory).as_bytes(), b"/", interpreter.trim_ascii_start()].concat();
        root.stat(whole, false).is_ok()
    };
    above(path).find(is_there).ok_or_else(|| {
        let name = String::from_utf8_lossy(interpreter).into_owned();
        (true, format!("its interpreter {name} is below none of the directories that it is in"))
    })
}
