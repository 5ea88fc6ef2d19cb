//! Parts that the programs of this crate share. Each program is a command on files, in `src/bin`, and does one thing with the paths that it is given.
//!
//! A path that does not begin with a slash begins in the working directory. What fails is told with its path, on the console, and what is behind it is done
//! all the same. The status is 0, or 1 if something failed, or 2 if the words are not understood. Commands on lines, of which this crate has no more than how they read and print, have those of Unix:
//! [`filters`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod filters;

use alloc::format;
use alloc::string::String;
use files::{Directory, path_of};
use rt::api::Result;
use rt::eprintln;
use rt::start::name;
use vfs::Kind;

/// The program's status, after this was done with something that was typed. A failure is told.
pub fn told(typed: &str, outcome: Result<()>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("{}: {typed}: {failure}", name());
            1
        }
    }
}

/// The program's status if its words are not these, which is told.
pub fn usage(words: &str) -> i32 {
    eprintln!("usage: {}", [name(), words].join(" ").trim_end());
    2
}

/// Does something with each path, of which there is one at least, and goes on behind one that fails. `run` gets the root, the path from there, and the path as it was
/// typed.
pub fn each(words: &str, paths: &[String], run: impl Fn(&Directory, &str, &str) -> Result<()>) -> i32 {
    if paths.is_empty() {
        return usage(words);
    }
    let root = match Directory::root() {
        Ok(root) => root,
        Err(failure) => return told("/", Err(failure)),
    };
    let run = |typed: &str| run(&root, &path_of(typed), typed);
    paths.iter().fold(0, |status, typed| told(typed, run(typed)).max(status))
}

/// Does that with the working directory if there is no path.
pub fn each_or_here(paths: &[String], run: impl Fn(&Directory, &str, &str) -> Result<()>) -> i32 {
    let here = [String::from(".")];
    each("", if paths.is_empty() { &here } else { paths }, run)
}

/// Does something with two paths, which are all that is typed. A second one that is a directory means the name of the first in there. `run` gets the root, and both paths from
/// there.
pub fn both(run: impl Fn(&Directory, &str, &str) -> Result<()>) -> i32 {
    let arguments = rt::arguments();
    let [typed, to] = &arguments[..] else { return usage("FROM TO") };
    let (from, to) = (path_of(typed), path_of(to));
    let outcome = Directory::root().and_then(|root| {
        let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or(&from);
        let is_directory = root.stat(&to, true).is_ok_and(|found| found.kind == Kind::Directory);
        let to = if is_directory { format!("{to}/{name}") } else { to };
        run(&root, &from, &to)
    });
    told(typed, outcome)
}
