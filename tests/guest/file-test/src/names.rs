//! `file-test names DIRECTORY`: names and paths as long as they may be, and longer ones, in all that takes one.

use crate::{CREATE, check};
use alloc::format;
use alloc::vec::Vec;
use files::Directory;
use rt::api::{Failure, Result, Status};
use vfs::{How, NAME_MAX};

/// Most bytes of a path.
const PATH_MAX: usize = 4095;

/// Refusal of a name or path for its length, and for nothing else.
const TOO_LONG: Failure = Failure::Refused(Status::NameTooLong);

/// Tries all of it in that directory, by itself and by way of the root of all files. It leaves nothing there.
pub fn all(place: &str) -> Result<()> {
    let root = Directory::root()?;
    let directory = root.enter(place)?;
    // Sixteen of the longest names, with slashes in between: the longest path.
    let deep = [[b'd'; NAME_MAX]; 16].join(&b'/');
    check(deep.len() == PATH_MAX, "the longest path is another")?;
    names_have_an_end(&directory)?;
    for end in (NAME_MAX..PATH_MAX).step_by(NAME_MAX + 1) {
        directory.mkdir(&deep[..end])?;
    }
    paths_have_an_end(&directory, &deep)?;
    let at = |path: &[u8]| [place.as_bytes(), b"/", path].concat();
    let rest = &deep[..(NAME_MAX + 1) * 15 - 1];
    paths_have_an_end(&root, &as_long_as(PATH_MAX, &at(b"last")))?;
    check(directory.read("last", 9).is_err(), "something is left")?;
    for end in (NAME_MAX..rest.len() + 1).step_by(NAME_MAX + 1).rev() {
        directory.rmdir(&rest[..end])?;
    }
    targets_have_an_end(&directory)
}

/// A path that is so long, and leads to the same place.
fn as_long_as(len: usize, path: &[u8]) -> Vec<u8> {
    let missing = len.saturating_sub(path.len());
    [&b"/".repeat(missing), path].concat()
}

/// An operation on a path.
type Operation = fn(&Directory, &[u8]) -> Result<()>;

/// Operations that take a path to something that is not there, or that is a file.
const OPERATIONS: [(&str, Operation); 15] = [
    ("open", |directory, path| directory.open(path, How::default()).map(drop)),
    ("make a file", |directory, path| directory.open(path, CREATE).map(drop)),
    ("enter", |directory, path| directory.enter(path).map(drop)),
    ("stat", |directory, path| directory.stat(path, true).map(drop)),
    ("stat a link", |directory, path| directory.stat(path, false).map(drop)),
    ("make a directory", |directory, path| directory.mkdir(path)),
    ("make a symbolic link", |directory, path| directory.symlink("where", path)),
    ("read a link", |directory, path| directory.readlink(path).map(drop)),
    ("link to", |directory, path| directory.link("short", path)),
    ("link from", |directory, path| directory.link(path, "other")),
    ("move to", |directory, path| directory.rename("short", path)),
    ("move from", |directory, path| directory.rename(path, "other")),
    ("unlink", |directory, path| directory.unlink(path)),
    ("remove a directory", |directory, path| directory.rmdir(path)),
    ("watch", |directory, path| directory.watch(path).map(drop)),
];

/// Each operation refuses a path for its length, and for nothing else.
fn all_refuse(directory: &Directory, path: &[u8]) -> Result<()> {
    for (name, operation) in OPERATIONS {
        let outcome = operation(directory, path);
        check(outcome == Err(TOO_LONG), &format!("{name}, {} bytes: {outcome:?}", path.len()))?;
    }
    Ok(())
}

/// A file of this path does all that a file can.
fn is_of_use(directory: &Directory, path: &[u8]) -> Result<()> {
    directory.write(path, b"text")?;
    check(directory.read(path, 9)? == b"text", "another file has the name")?;
    check(directory.stat(path, false)?.len == 4, "another file is there")?;
    check(directory.enter(path).err() == Some(Failure::Refused(Status::NotDirectory)), "a file is entered")?;
    let mut watch = directory.watch(path)?;
    directory.open(path, How::default())?.write_at(0, b"more")?;
    check(watch.take()?.len() == 1, "nothing has happened to a file that was written")?;
    directory.rename(path, path)?;
    directory.unlink(path)?;
    directory.mkdir(path)?;
    directory.enter(path)?;
    directory.rmdir(path)?;
    directory.symlink("where", path)?;
    check(directory.readlink(path)? == b"where", "a link leads elsewhere")?;
    directory.unlink(path)
}

fn names_have_an_end(directory: &Directory) -> Result<()> {
    directory.write("short", b"text")?;
    let (name, longer) = ([b'n'; NAME_MAX], [b'n'; NAME_MAX + 1]);
    is_of_use(directory, &name)?;
    all_refuse(directory, &longer)?;
    all_refuse(directory, &[&b"./"[..], &longer].concat())?;
    directory.link("short", name)?;
    directory.unlink("short")?;
    directory.rename(name, [b'm'; NAME_MAX])?;
    let found = directory.entries()?.into_iter().any(|entry| entry.name == [b'm'; NAME_MAX]);
    check(found, "a long name is not listed")?;
    directory.rename([b'm'; NAME_MAX], "short")?;
    directory.unlink("short")
}

/// `path` is one of the longest, of a file that is not there.
fn paths_have_an_end(directory: &Directory, path: &[u8]) -> Result<()> {
    check(path.len() == PATH_MAX, "this is not the longest path")?;
    is_of_use(directory, path)?;
    // Both are as long as they may be.
    directory.write(path, b"text")?;
    let mut other = path.to_vec();
    other[PATH_MAX - 1] = b'e';
    directory.link(path, &other)?;
    directory.rename(&other, path)?;
    directory.unlink(&other)?;
    directory.unlink(path)?;
    all_refuse(directory, &as_long_as(PATH_MAX + 1, path))?;
    all_refuse(directory, &as_long_as(2 * PATH_MAX, path))
}

/// Targets of symbolic links are paths.
fn targets_have_an_end(directory: &Directory) -> Result<()> {
    for len in [PATH_MAX, PATH_MAX + 1] {
        let target = as_long_as(len, b"there");
        let outcome = directory.symlink(&target, "link");
        if len > PATH_MAX {
            return check(outcome == Err(TOO_LONG), "a target has no end");
        }
        outcome?;
        check(directory.readlink("link")? == target, "a link leads elsewhere")?;
        directory.unlink("link")?;
    }
    Ok(())
}
