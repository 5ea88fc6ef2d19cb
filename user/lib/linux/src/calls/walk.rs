//! Walks along paths: each name is looked up once, in its directory, which has to be searchable, and symbolic links are followed as far as the caller lets them be.

use super::paths::names;
use super::permissions::{Subject, whole};
use crate::errno::{ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::special::{OfProcess, Special};
use crate::store::PATH_MAX;
use crate::system::System;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV, X_OK,
};
use vfs::path::{LINKS_MAX, Last};
use vfs::{Attributes, FileSystem, Kind};

/// Both limits that keep a walk below the directory in which it begins.
const SCOPED: u32 = RESOLVE_BENEATH | RESOLVE_IN_ROOT;

/// The end of a walk.
#[derive(Debug)]
pub(super) struct Reached {
    /// The path without symbolic links. Its last name need not be there, and is a link if it was not to be followed.
    pub path: Vec<u8>,
    /// Whether its last name is that of a descriptor in `/proc`, which leads to what is open, not to a path.
    pub is_descriptor: bool,
}

/// A directory: names of its path, and what has each of them.
#[derive(Default)]
struct Trail {
    names: Vec<Vec<u8>>,
    /// The sandbox's root is the first. Nothing: the directory is not there any more.
    above: Vec<Attributes>,
}

/// A walk.
struct Walk {
    /// Owner for which directories have to be searchable; `root` may search all.
    subject: Option<Subject>,
    /// `RESOLVE_…`.
    limits: u32,
    /// Names that are left, from the last on.
    left: Vec<Vec<u8>>,
    /// Names so far.
    found: Vec<Vec<u8>>,
    /// The root, and what has each of the names.
    above: Vec<Attributes>,
    /// Names out of which no path leads.
    floor: usize,
    /// The root directory of the process, if it has another one than the sandbox.
    root: Option<Trail>,
    /// Symbolic links that were followed.
    links: usize,
    /// Whether a slash stands at the end, so that it has to be a directory.
    is_directory: bool,
}

/// Names of a path from the last on. A dot at its end is one of them, since what is in front of it has to be a directory.
fn backwards(path: &[u8]) -> Vec<Vec<u8>> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let last = path.split_at(end).0.rsplit(|byte| *byte == b'/').next();
    let dot = last.filter(|name| *name == b".").map(<[u8]>::to_vec);
    dot.into_iter().chain(names(path).map(<[u8]>::to_vec).rev()).collect()
}

/// Whether something is of another file system than the files are.
fn is_special(found: &Attributes) -> bool {
    Special::of(found.inode).is_some()
}

impl Walk {
    fn has(&self, limits: u32) -> bool {
        self.limits & limits != 0
    }

    fn here(&self) -> Result<Attributes> {
        self.above.last().copied().ok_or(ENOTDIR)
    }

    /// The walk goes on in another directory, or ends at something else.
    fn enter(&mut self, name: Vec<u8>, next: Attributes) -> Result<()> {
        self.check_device(&next)?;
        self.found.push(name);
        self.above.push(next);
        Ok(())
    }

    fn check_device(&self, next: &Attributes) -> Result<()> {
        let is_other = is_special(next) != is_special(&self.here()?);
        if is_other && self.has(RESOLVE_NO_XDEV) { Err(EXDEV) } else { Ok(()) }
    }

    /// `..`: out of a directory, but not out of that in which the walk has to stay. `ENOENT`: that is not there any more.
    fn leave(&mut self) -> Result<()> {
        if self.found.len() <= self.floor {
            return if self.has(RESOLVE_BENEATH) { Err(EXDEV) } else { Ok(()) };
        }
        match &self.root {
            _ if self.has(SCOPED) => {}
            // Nobody knows where the way up ends.
            Some(root) if root.above.is_empty() => return Err(ENOENT),
            Some(root) if root.names == self.found => return Ok(()),
            _ => {}
        }
        if let [.., parent, _] = self.above.as_slice() {
            self.check_device(parent)?;
        }
        self.found.pop();
        self.above.truncate(self.found.len() + 1);
        Ok(())
    }

    /// A symbolic link may be followed. `is_magic`: it leads to something that a process has, wherever that is.
    fn check_link(&self, is_magic: bool) -> Result<()> {
        if self.has(RESOLVE_NO_SYMLINKS) || is_magic && self.has(RESOLVE_NO_MAGICLINKS) {
            return Err(ELOOP);
        }
        if is_magic && self.has(SCOPED | RESOLVE_NO_XDEV) { Err(EXDEV) } else { Ok(()) }
    }

    /// Goes on in the directory where paths begin that begin with a slash. `ENOENT`: it is not there any more.
    fn begin_anew(&mut self) -> Result<()> {
        match &self.root {
            Some(root) if !self.has(SCOPED) => {
                self.found.clone_from(&root.names);
                self.above.clone_from(&root.above);
            }
            _ => {
                self.found.truncate(self.floor);
                self.above.truncate(self.floor + 1);
            }
        }
        if self.above.is_empty() { Err(ENOENT) } else { Ok(()) }
    }

    /// Goes on with the target of a symbolic link. `is_magic`: it is a path from the sandbox's root on, whatever the root of the process is.
    fn follow(&mut self, target: &[u8], is_magic: bool) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(ELOOP);
        }
        if target.first() == Some(&b'/') {
            if self.has(RESOLVE_BENEATH) || self.has(RESOLVE_NO_XDEV) && is_special(&self.here()?) {
                return Err(EXDEV);
            }
            if is_magic {
                self.found.clear();
                self.above.truncate(1);
            } else {
                self.begin_anew()?;
            }
        }
        self.is_directory |= self.left.is_empty() && target.ends_with(b"/");
        self.left.append(&mut backwards(target));
        let bytes: usize = self.left.iter().map(|name| name.len() + 1).sum();
        if bytes > 2 * PATH_MAX { Err(ENAMETOOLONG) } else { Ok(()) }
    }

    /// The end of a path. A slash there says that it has to be a directory.
    fn reached(&self, is_descriptor: bool) -> Reached {
        let mut path = whole(&self.found);
        if self.is_directory && !self.found.is_empty() {
            path.push(b'/');
        }
        Reached { path, is_descriptor }
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Begins a walk in a directory, which has a path without symbolic links.
    fn begin_walk(&mut self, tid: Tid, start: &[u8], path: &[u8], limits: u32) -> Result<Walk> {
        let is_scoped = limits & SCOPED != 0;
        let is_absolute = path.first() == Some(&b'/');
        if is_absolute && limits & RESOLVE_BENEATH != 0 {
            return Err(EXDEV);
        }
        let root = self.trail_to_root(tid)?;
        let begins_anew = is_absolute && !is_scoped;
        let Trail { names: found, above } = self.trail(if begins_anew { b"" } else { start })?;
        let (subject, left, is_directory) = (self.subject(tid)?, backwards(path), path.ends_with(b"/"));
        let (floor, links) = (0, 0);
        let mut walk = Walk { subject, limits, left, found, above, floor, root, links, is_directory };
        if begins_anew {
            walk.begin_anew()?;
        }
        walk.floor = if is_scoped { walk.found.len() } else { 0 };
        Ok(walk)
    }

    /// The trail along a path without symbolic links, from the sandbox's root on. A process that has a directory open, or is in it, needs no rights to those above.
    fn trail(&mut self, path: &[u8]) -> Result<Trail> {
        let root = self.store.root;
        let mut trail = Trail { names: Vec::new(), above: Vec::from([self.store.volume.attributes(root)?]) };
        let mut here = root;
        for name in names(path) {
            let next = self.store.volume.attributes_at(here, name, Last::Name)?;
            here = next.inode;
            trail.names.push(name.to_vec());
            trail.above.push(next);
        }
        Ok(trail)
    }

    /// The trail to the root directory of a thread's process, if it has another one than the sandbox. Another directory may have its path by now.
    fn trail_to_root(&mut self, tid: Tid) -> Result<Option<Trail>> {
        let Some(root) = self.root_directory(tid)? else { return Ok(None) };
        let trail = self.trail(&root.name()).unwrap_or_default();
        let is_it = trail.above.last().is_some_and(|last| Some(last.inode) == root.file());
        Ok(Some(if is_it { trail } else { Trail::default() }))
    }

    /// Walks a path from a directory on, within limits: `RESOLVE_…`.
    pub(super) fn walk(
        &mut self,
        tid: Tid,
        start: &[u8],
        path: &[u8],
        last: Last,
        limits: u32,
    ) -> Result<Reached> {
        let mut walk = self.begin_walk(tid, start, path, limits)?;
        let is_followed = last == Last::Follow || last == Last::Stay && path.ends_with(b"/");
        while let Some(name) = walk.left.pop() {
            let directory = walk.here()?;
            if directory.kind != Kind::Directory {
                return Err(ENOTDIR);
            }
            walk.subject.as_ref().map_or(Ok(()), |subject| subject.check(&directory, X_OK))?;
            if name == b".." {
                walk.leave()?;
                continue;
            }
            if name == b"." {
                continue;
            }
            let is_last = walk.left.is_empty();
            let next = match self.store.volume.attributes_at(directory.inode, &name, Last::Name) {
                Err(vfs::Error::NotFound) if is_last => {
                    walk.found.push(name);
                    break;
                }
                next => next?,
            };
            if next.kind != Kind::Symlink {
                walk.enter(name, next)?;
                continue;
            }
            let special = Special::of(next.inode);
            if is_last && !is_followed {
                // A descriptor is shown to those alone who may have what it leads to.
                if let Some(Special::Descriptor(pid, _)) = special {
                    self.may_inspect(tid, pid)?;
                }
                walk.enter(name, next)?;
                continue;
            }
            walk.check_device(&next)?;
            let is_descriptor = matches!(special, Some(Special::Descriptor(..)));
            let is_link = matches!(
                special,
                Some(Special::OfProcess(_, OfProcess::Exe | OfProcess::Cwd | OfProcess::Root))
            );
            if let Some(Special::Descriptor(pid, _) | Special::OfProcess(pid, _)) = special {
                self.may_inspect(tid, pid)?;
            }
            walk.check_link(is_descriptor || is_link)?;
            if is_last && is_descriptor {
                walk.enter(name, next)?;
                return Ok(walk.reached(true));
            }
            let target = self.store.volume.readlink(directory.inode, &name)?;
            walk.follow(&target, is_descriptor || is_link)?;
        }
        Ok(walk.reached(false))
    }
}
