//! Directories that are moved or removed while processes work in them, or have them open: the paths of both follow. Of what others move nothing is known here.

use super::way::split;
use crate::errno::{ENAMETOOLONG, Result};
use crate::frames::Bytes;
use crate::machine::Machine;
use crate::open::{OPEN_BYTES, Object, Open};
use crate::store::PATH_MAX;
use crate::system::System;
use alloc::vec::Vec;
use vfs::path::Last;
use vfs::{FileSystem, Kind};

/// The end of a path that leads to a directory, or into it, behind the path of that.
pub(super) fn rest<'path>(path: &'path [u8], directory: &[u8]) -> Option<&'path [u8]> {
    path.strip_prefix(directory).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// A directory that is open has another path now. If that would be too long, it keeps the old one, which does not lead there.
fn follow(open: &Open, before: &[u8], after: &[u8]) {
    let Object::Directory { path, .. } = &open.object else { return };
    let mut path = path.borrow_mut();
    let Some(new) = rest(&path, before).map(|rest| [after, rest].concat()) else { return };
    let mut share = open.share.borrow_mut();
    if new.len() < PATH_MAX && share.as_mut().is_none_or(|share| share.resize(new.len() + OPEN_BYTES)) {
        *path = new;
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Path of a directory without symbolic links. None: a path leads to something else, or nowhere.
    fn directory_at(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let found = self.look(path, Last::Name).ok()?;
        if found.kind == Kind::Directory { self.canonical(path).ok() } else { None }
    }

    /// Path without symbolic links of a name that need not be there, in a directory.
    pub(super) fn name_at(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let (directory, name) = split(path);
        let mut whole = self.canonical(directory)?;
        whole.push(b'/');
        whole.extend(name.iter().take_while(|byte| **byte != b'/'));
        if whole.len() < PATH_MAX { Ok(whole) } else { Err(ENAMETOOLONG) }
    }

    /// Moves a name, and replaces what had the new one.
    pub(super) fn move_name(&mut self, from: &[u8], to: &[u8]) -> Result<()> {
        let moved = self.directory_at(from);
        // The way to the new name may lead through what is moved, as `../new` does for who is there.
        let after = if moved.is_some() { self.name_at(to).ok() } else { None };
        let root = self.store.root;
        self.store.volume.rename(root, from, to)?;
        let Some(before) = moved else { return Ok(()) };
        match after {
            Some(after) if after == before => {}
            Some(after) => {
                // It may have taken the place of an empty one.
                self.lose_directory(&after);
                self.follow_directory(&before, &after);
            }
            // Its path is too long.
            None => self.lose_directory(&before),
        }
        Ok(())
    }

    /// Removes a directory.
    pub(super) fn remove_directory(&mut self, path: &[u8]) -> Result<()> {
        let removed = self.directory_at(path);
        let root = self.store.root;
        self.store.volume.rmdir(root, path)?;
        if let Some(removed) = removed {
            self.lose_directory(&removed);
        }
        Ok(())
    }

    /// A directory is not there any more, nor what was in it. Processes there find nothing, whatever has its path later.
    fn lose_directory(&mut self, path: &[u8]) {
        for process in self.processes.values() {
            let mut filesystem = process.filesystem.borrow_mut();
            let is_lost = rest(&filesystem.directory, path).is_some();
            filesystem.is_directory_gone |= is_lost;
        }
    }

    /// A directory has another path now.
    fn follow_directory(&mut self, before: &[u8], after: &[u8]) {
        for process in self.processes.values() {
            let mut filesystem = process.filesystem.borrow_mut();
            filesystem.root.iter().for_each(|root| follow(root, before, after));
            let moved = rest(&filesystem.directory, before).filter(|_| !filesystem.is_directory_gone);
            if let Some(path) = moved.map(|rest| [after, rest].concat()) {
                filesystem.is_directory_gone = path.len() >= PATH_MAX;
                if !filesystem.is_directory_gone {
                    filesystem.directory = path;
                }
            }
            process.descriptors.iter().for_each(|(_, descriptor)| follow(&descriptor.open, before, after));
        }
    }
}
