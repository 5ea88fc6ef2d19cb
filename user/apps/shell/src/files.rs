//! Commands for files and directories.

use crate::pipe;
use crate::shell::{STATUS_USAGE, Shell};
use alloc::string::String;
use alloc::vec::Vec;
use files::wire::BYTES_MAX;
use files::{Directory, File};
use rt::api::{Failure, Result, Status};
use rt::{print, println};
use vfs::{Attributes, How, Kind};

/// Runs a command, and says of which path why it failed.
fn told(command: &str, path: &str, outcome: Result<()>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            println!("{command}: {path}: {failure}");
            1
        }
    }
}

fn usage(text: &str) -> i32 {
    println!("usage: {text}");
    STATUS_USAGE
}

/// Carries out the same for each path, and goes on behind one that fails. `run` gets the path from the root, and as it was typed.
fn each(
    shell: &Shell,
    command: &str,
    paths: &[&str],
    run: impl Fn(&Directory, &str, &str) -> Result<()>,
) -> i32 {
    if paths.is_empty() {
        return usage(&alloc::format!("{command} PATH..."));
    }
    let root = match Directory::root() {
        Ok(root) => root,
        Err(failure) => return told(command, "/", Err(failure)),
    };
    let run = |typed: &str| run(&root, &shell.place.path_of(typed), typed);
    paths.iter().fold(0, |status, path| told(command, path, run(path)).max(status))
}

/// Carries out something with two paths. A second one that is a directory means the name of the first in there.
fn both(
    shell: &Shell,
    command: &str,
    words: &[&str],
    run: impl Fn(&Directory, &str, &str) -> Result<()>,
) -> i32 {
    let &[typed, to] = words else { return usage(&alloc::format!("{command} FROM TO")) };
    let (from, to) = (&*shell.place.path_of(typed), &*shell.place.path_of(to));
    let outcome = Directory::root().and_then(|root| {
        let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or(from);
        let is_directory = root.stat(to, true).is_ok_and(|found| found.kind == Kind::Directory);
        let to = if is_directory { alloc::format!("{to}/{name}") } else { String::from(to) };
        run(&root, from, &to)
    });
    told(command, typed, outcome)
}

/// `ls`.
pub fn list(shell: &mut Shell, words: &[&str]) -> i32 {
    let (is_long, paths) = match words {
        ["-l", paths @ ..] => (true, paths),
        paths => (false, paths),
    };
    let paths = if paths.is_empty() { &["."] } else { paths };
    each(shell, "ls", paths, |root, path, typed| {
        let found = root.stat(path, true)?;
        if found.kind != Kind::Directory {
            line(typed, &found, None, is_long);
            return Ok(());
        }
        let directory = root.enter(path)?;
        let mut entries = directory.entries()?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name);
            let target =
                if entry.kind == Kind::Symlink { directory.readlink(&entry.name).ok() } else { None };
            // One that is gone meanwhile is none. Where a file system is not there, its directory still has a name.
            match directory.stat(&entry.name, false) {
                Ok(found) => line(&name, &found, target, is_long),
                Err(_) if entry.kind == Kind::Directory => println!("{name}/ (not there)"),
                Err(_) => {}
            }
        }
        Ok(())
    })
}

fn line(name: &str, found: &Attributes, target: Option<Vec<u8>>, is_long: bool) {
    let (letter, mark) = match found.kind {
        Kind::File => ('-', ""),
        Kind::Directory => ('d', "/"),
        Kind::Symlink => ('l', ""),
        Kind::Special => ('?', ""),
    };
    if is_long {
        let bit = |bit: u16, letter| if found.permissions & bit != 0 { letter } else { '-' };
        let bits: String = (0..9).rev().map(|at| bit(1 << at, ['x', 'w', 'r'][at % 3])).collect();
        print!("{letter}{bits} {:>3} {:>10} ", found.links, found.len);
    }
    match target {
        Some(target) if is_long => println!("{name} -> {}", String::from_utf8_lossy(&target)),
        _ => println!("{name}{mark}"),
    }
}

/// `cat`.
pub fn show(shell: &mut Shell, words: &[&str]) -> i32 {
    each(shell, "cat", words, |root, path, _| {
        let mut left = Vec::new();
        root.open(path, How::default())?.pieces(|_, piece| {
            left.extend_from_slice(piece);
            // A character that is not whole yet waits for its end.
            let whole = whole_characters(&left);
            print!("{}", String::from_utf8_lossy(&left[..whole]));
            left.drain(..whole);
            Ok(())
        })?;
        print!("{}", String::from_utf8_lossy(&left));
        Ok(())
    })
}

/// Bytes up to a character that may go on behind them.
fn whole_characters(bytes: &[u8]) -> usize {
    match core::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// `cp`.
pub fn copy(shell: &mut Shell, words: &[&str]) -> i32 {
    both(shell, "cp", words, |root, from, to| {
        let source = root.open(from, How::default())?;
        if root.stat(to, true).is_ok_and(|there| source.stat().is_ok_and(|own| is_one(&own, &there))) {
            return Err(Failure::Refused(Status::BadRequest));
        }
        let target = root.open(to, How { create: true, truncate: true, ..How::default() })?;
        source.pieces(|offset, piece| target.write_at(offset, piece))?;
        target.sync()
    })
}

/// Whether two are most likely one file: numbers are those of a file system, and there are several.
fn is_one(first: &Attributes, second: &Attributes) -> bool {
    (first.inode, first.len, first.changed) == (second.inode, second.len, second.changed)
}

/// `mv`.
pub fn rename(shell: &mut Shell, words: &[&str]) -> i32 {
    both(shell, "mv", words, |root, from, to| root.rename(from, to))
}

/// `ln`.
pub fn link(shell: &mut Shell, words: &[&str]) -> i32 {
    let place = |path: &str| shell.place.path_of(path);
    match words {
        ["-s", target, path] => {
            told("ln", path, Directory::root().and_then(|root| root.symlink(target, place(path))))
        }
        [existing, path] => {
            told("ln", path, Directory::root().and_then(|root| root.link(place(existing), place(path))))
        }
        _ => usage("ln [-s] EXISTING PATH"),
    }
}

/// `rm`.
pub fn unlink(shell: &mut Shell, words: &[&str]) -> i32 {
    each(shell, "rm", words, |root, path, _| root.unlink(path))
}

/// `mkdir`.
pub fn mkdir(shell: &mut Shell, words: &[&str]) -> i32 {
    each(shell, "mkdir", words, |root, path, _| root.mkdir(path))
}

/// `rmdir`.
pub fn rmdir(shell: &mut Shell, words: &[&str]) -> i32 {
    each(shell, "rmdir", words, |root, path, _| root.rmdir(path))
}

/// `sync`.
pub fn sync(_: &mut Shell, words: &[&str]) -> i32 {
    if !words.is_empty() {
        return usage("sync");
    }
    told("sync", "/", Directory::root().and_then(|root| root.sync()))
}

/// `df`.
pub fn space(shell: &mut Shell, words: &[&str]) -> i32 {
    let paths = if words.is_empty() { &["."] } else { words };
    println!("{:>12} {:>12} {:>10}  PATH", "KIB", "FREE", "FILES FREE");
    each(shell, "df", paths, |root, path, typed| {
        let space = root.enter(path)?.space()?;
        println!("{:>12} {:>12} {:>10}  {typed}", space.total >> 10, space.free >> 10, space.files_free);
        Ok(())
    })
}

/// `mount`.
pub fn mount(shell: &mut Shell, words: &[&str]) -> i32 {
    let (source, path) = match *words {
        [] => return mounts(),
        [source, path] => (source, path),
        _ => return usage("mount [SOURCE PATH]"),
    };
    // A name alone is a server's.
    let is_path = source.starts_with('/') || source.starts_with('.');
    let from = if is_path { shell.place.path_of(source) } else { source.into() };
    let at = shell.place.path_of(path);
    let root = match Directory::root() {
        Ok(root) => root,
        Err(failure) => return told("mount", "/", Err(failure)),
    };
    // A failure that is not the path's is the source's.
    match root.stat(&at, false) {
        Ok(_) => told("mount", source, root.mount(from, at)),
        Err(failure) => told("mount", path, Err(failure)),
    }
}

/// `umount`.
pub fn unmount(shell: &mut Shell, words: &[&str]) -> i32 {
    if words.is_empty() {
        return usage("umount PATH...");
    }
    words.iter().fold(0, |status, typed| {
        let outcome = Directory::root().and_then(|root| root.unmount(shell.place.path_of(typed)));
        let own = if outcome == Err(Failure::Refused(Status::NotFound)) {
            println!("umount: {typed}: nothing is mounted there");
            1
        } else {
            told("umount", typed, outcome)
        };
        own.max(status)
    })
}

fn mounts() -> i32 {
    let mounts = Directory::root().and_then(|root| root.mounts());
    told(
        "mount",
        "/",
        mounts.map(|mounts| {
            for mount in mounts {
                let [path, source] = [&mount.path, &mount.source].map(|text| String::from_utf8_lossy(text));
                println!("{path:<12} {source}");
            }
        }),
    )
}

/// A file whose content a command of the shell reads, or the status of the line without it.
pub fn content(shell: &Shell, command: &str, typed: &str) -> core::result::Result<Vec<u8>, i32> {
    let content = Directory::root().and_then(|root| root.read(shell.place.path_of(typed), pipe::HELD_MAX));
    content.map_err(|failure| told(command, typed, Err(failure)))
}

/// Writes a command's output to a file: in the place of what it has, or behind that.
pub fn write(shell: &Shell, command: &str, typed: &str, text: &[u8], is_more: bool) -> i32 {
    let path = shell.place.path_of(typed);
    let outcome = Directory::root().and_then(|root| {
        let file: File = root.open(path, How { create: true, truncate: !is_more, ..How::default() })?;
        text.chunks(BYTES_MAX).try_for_each(|piece| file.append(piece).map(drop))?;
        file.sync()
    });
    told(command, typed, outcome)
}

/// Whether there is a directory at a path, for a command that got it as it was typed.
pub fn check_directory(command: &str, typed: &str, path: &str) -> i32 {
    told(command, typed, Directory::root().and_then(|root| root.enter(path)).map(drop))
}
