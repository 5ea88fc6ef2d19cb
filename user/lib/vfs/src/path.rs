//! From a path to an inode.
//!
//! A walk begins at a directory, the *base*, and never leaves what is below it: `..` in the base is the base, and a symbolic link that
//! begins with a slash leads to the base. So a reference to a directory is all the room that its owner has.

use crate::{Error, FileSystem, Inode, Kind, Name, Result};
use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

/// Symbolic links in one walk, at most, as in Linux.
pub const LINKS_MAX: usize = 40;

/// Most bytes of a path, together with the symbolic links on it that are still to be followed.
pub const LEN_MAX: usize = 64 * 1024;

/// Names that are looked up in one walk, at most: twice as many as a path of a message has. Symbolic links, each of which leads through as many directories again, would have
/// all others wait forty times as long.
pub const NAMES_MAX: usize = 4096;

/// Whether a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// Its target is meant.
    Follow,
    /// The link is meant, unless a slash stands behind it.
    Stay,
    /// The link is meant: its name is to be made, moved or removed.
    Name,
}

impl Last {
    fn follows(self, ends_with_slash: bool) -> bool {
        match self {
            Last::Follow => true,
            Last::Stay => ends_with_slash,
            Last::Name => false,
        }
    }
}

/// Place that a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Directories from the base to the one that has the name.
    pub above: Vec<Inode>,
    /// The last name. None if the path ends with the base, with `.` or with `..`: then the place is the last of `above`.
    pub name: Option<Vec<u8>>,
    /// Inode and kind at the place, if there is something.
    pub found: Option<(Inode, Kind)>,
    /// A slash behind the last name says that it is one of a directory.
    pub is_directory: bool,
}

impl Place {
    /// The directory that has the name, and the name. [`Error::Busy`] if the path has no last name.
    pub fn entry(&self) -> Result<(Inode, Name<'_>)> {
        let directory = *self.above.last().ok_or(Error::Invalid)?;
        Ok((directory, Name::new(self.name.as_ref().ok_or(Error::Busy)?)?))
    }

    /// Inode and kind of what is there.
    pub fn existing(&self) -> Result<(Inode, Kind)> {
        let (inode, kind) = self.found.ok_or(Error::NotFound)?;
        if self.is_directory && kind != Kind::Directory {
            Err(Error::NotDirectory)
        } else {
            Ok((inode, kind))
        }
    }
}

/// Walks a path from a directory on.
pub fn walk(fs: &mut impl FileSystem, base: Inode, path: &[u8], last: Last) -> Result<Place> {
    go_on(fs, vec![base], (path, 0), None, last)
}

/// Walks what is left of a path behind its byte `at`, from the last of the directories `above` on. `known`: what its first name leads to, if it was looked up.
fn go_on(
    fs: &mut impl FileSystem,
    mut above: Vec<Inode>,
    (path, mut at): (&[u8], usize),
    mut known: Option<(Inode, Kind)>,
    last: Last,
) -> Result<Place> {
    // A path of many names is not copied once for each, and one without symbolic links not at all.
    let mut left = Cow::Borrowed(path);
    let (mut links, mut names) = (0, 0);
    loop {
        let Some((name, rest)) = next_name(&left[at..]) else {
            return Ok(itself(above));
        };
        let rest_at = left.len() - rest.len();
        let (is_last, ends_with_slash) = (next_name(rest).is_none(), !rest.is_empty());
        let directory = *above.last().ok_or(Error::Invalid)?;
        match name {
            b"." => {}
            b".." => {
                if above.len() > 1 {
                    above.pop();
                }
            }
            _ => {
                names += 1;
                if names > NAMES_MAX {
                    return Err(Error::Loop);
                }
                let found = match known.take() {
                    None => look(fs, directory, Name::new(name)?)?,
                    known => known,
                };
                match found {
                    Some((inode, Kind::Symlink)) if !is_last || last.follows(ends_with_slash) => {
                        links += 1;
                        if links > LINKS_MAX {
                            return Err(Error::Loop);
                        }
                        let target = fs.readlink(inode)?;
                        if target.first() == Some(&b'/') {
                            above.truncate(1);
                        }
                        (left, at) = (Cow::Owned(joined(&target, rest)?), 0);
                        continue;
                    }
                    _ if is_last => {
                        let name = Some(name.to_vec());
                        return Ok(Place { above, name, found, is_directory: ends_with_slash });
                    }
                    Some((inode, Kind::Directory)) => above.push(inode),
                    Some(_) => return Err(Error::NotDirectory),
                    None => return Err(Error::NotFound),
                }
            }
        }
        at = rest_at;
    }
}

/// Directories that [`find`] notes without memory from the heap, the base among them.
const NOTED_MAX: usize = 8;

/// Inode and kind of what is at a path. Each name is looked up once.
///
/// A walk's list of directories is wanted for `..` and for symbolic links, which few paths have. So it is made when the first of them comes, or when the path is
/// a long one.
pub fn find(fs: &mut impl FileSystem, base: Inode, path: &[u8], last: Last) -> Result<(Inode, Kind)> {
    let mut above = [base; NOTED_MAX];
    let (mut count, mut found, mut left) = (1, (base, Kind::Directory), path);
    while let Some((name, rest)) = next_name(left) {
        let mut known = None;
        if name != b"." {
            let is_noted = name != b".." && count < NOTED_MAX;
            if is_noted {
                found = look(fs, above[count - 1], Name::new(name)?)?.ok_or(Error::NotFound)?;
                known = Some(found);
            }
            let (is_last, ends_with_slash) = (next_name(rest).is_none(), !rest.is_empty());
            let is_followed = found.1 == Kind::Symlink && (!is_last || last.follows(ends_with_slash));
            if !is_noted || is_followed {
                let from = (path, path.len() - left.len());
                return go_on(fs, above[..count].to_vec(), from, known, last)?.existing();
            }
            if found.1 == Kind::Directory {
                above[count] = found.0;
                count += 1;
            } else if !is_last || ends_with_slash {
                return Err(Error::NotDirectory);
            }
        }
        left = rest;
    }
    Ok(found)
}

/// The last directory of a walk, without a name.
fn itself(above: Vec<Inode>) -> Place {
    let found = above.last().map(|&inode| (inode, Kind::Directory));
    Place { above, name: None, found, is_directory: true }
}

/// The first name, and what follows it: nothing, or a slash and more.
fn next_name(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = path.iter().position(|&byte| byte != b'/')?;
    let path = &path[start..];
    let len = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
    Some(path.split_at(len))
}

fn joined(target: &[u8], rest: &[u8]) -> Result<Vec<u8>> {
    if target.is_empty() {
        return Err(Error::NotFound);
    }
    if target.len() + rest.len() > LEN_MAX {
        return Err(Error::NameTooLong);
    }
    Ok([target, rest].concat())
}

fn look(fs: &mut impl FileSystem, directory: Inode, name: Name) -> Result<Option<(Inode, Kind)>> {
    match fs.lookup(directory, name) {
        Ok(inode) => Ok(Some((inode, fs.kind_of(inode)?))),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}
