//! Names of inodes in directories that are watched: which of them [watches](crate::watch) know.
//!
//! An event of a file comes with all of its names in watched directories, so those are known of all inodes that are open or have several names. Or it comes, as on Linux,
//! with the names by which the file was opened ([`Volume::tell_by_path`]): then nothing is known of an inode that is not open, and no attributes are asked for.

use super::{Opened, Volume};
use crate::path::Place;
use crate::watch::Change;
use crate::{FileSystem, Inode, Kind, Name, Result};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Entries of a directory that are looked at when it is watched, at most, so many at a time.
const WATCH_ENTRIES_MAX: usize = 1024;
/// See [`WATCH_ENTRIES_MAX`].
const WATCH_ENTRIES: usize = 64;

/// Names of inodes in a directory.
type Names = Vec<(Inode, Vec<u8>)>;

impl<F: FileSystem> Volume<F> {
    /// Events of a file or directory come with the names by which it was opened, and not with others that it has. To be said before anything is open.
    pub fn tell_by_path(&mut self) {
        self.is_by_path = true;
    }

    /// Looks at the entries of a directory until none is left, or so many were looked at, or `look` has said that it is enough. Says whether these are all that matter.
    fn each_entry(
        &mut self,
        directory: Inode,
        mut look: impl FnMut(&mut Self, Inode, Vec<u8>) -> Result<bool>,
    ) -> Result<bool> {
        let (mut cursor, mut count) = (0, 0);
        while count < WATCH_ENTRIES_MAX {
            let entries = self.fs.readdir(directory, cursor, WATCH_ENTRIES)?;
            let Some(last) = entries.last() else { return Ok(true) };
            cursor = last.next;
            count += entries.len();
            for entry in entries {
                if look(self, entry.inode, entry.name)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Names in a directory of inodes that can change without it. Says whether these are all of them.
    pub(super) fn names_that_matter(&mut self, directory: Inode) -> Result<(Names, bool)> {
        let mut names = Vec::new();
        if !self.is_by_path {
            let is_whole = self.each_entry(directory, |volume, inode, name| {
                if volume.may_change(inode)? {
                    names.push((inode, name));
                }
                Ok(false)
            })?;
            return Ok((names, is_whole));
        }
        let has_name_there = |opened: &Opened| opened.directory == Some(directory);
        let open = self.open.iter().filter(|(_, opened)| has_name_there(opened));
        let mut left: BTreeSet<Inode> = open.map(|(inode, _)| *inode).collect();
        if left.is_empty() {
            return Ok((names, true));
        }
        let is_whole = self.each_entry(directory, |_, inode, name| {
            if left.remove(&inode) {
                names.push((inode, name));
            }
            Ok(left.is_empty())
        })?;
        Ok((names, is_whole))
    }

    /// Whether an inode that is not open may change, or is open.
    fn may_change(&mut self, inode: Inode) -> Result<bool> {
        Ok(self.open.contains_key(&inode) || self.fs.attributes(inode)?.links > 1)
    }

    /// An inode has a name in place of one that it had in a directory. What was opened by another name still is.
    pub(super) fn renamed(&mut self, inode: Inode, from: Inode, (directory, name): (Inode, Name)) {
        if self.is_by_path {
            let opened = self.open.get(&inode);
            if opened.is_none_or(|opened| opened.directory != Some(from)) {
                return;
            }
        } else if self.watches.has(directory) && self.may_change(inode).unwrap_or(true) {
            self.watches.know(inode, directory, name.bytes());
        }
        self.named(inode, directory, name);
    }

    /// An inode has this name, and is known to have it if it is open.
    pub(super) fn named(&mut self, inode: Inode, directory: Inode, name: Name) {
        if let Some(opened) = self.open.get_mut(&inode) {
            opened.directory = Some(directory);
            self.watches.know(inode, directory, name.bytes());
        }
    }

    /// An inode has a name in a directory no more.
    pub(super) fn unnamed(&mut self, inode: Inode, directory: Inode) {
        if let Some(opened) = self.open.get_mut(&inode)
            && opened.directory == Some(directory)
        {
            opened.directory = None;
        }
    }

    /// A directory was opened at a place. It may have a name also where the path ends with none.
    pub(super) fn entered(&mut self, place: &Place, inode: Inode) -> Result<()> {
        if let Ok((directory, name)) = place.entry() {
            self.named(inode, directory, name);
            return Ok(());
        }
        // It is the last of those on the way, and the one before has its name.
        let Some(&above) = place.above.iter().nth_back(1).filter(|above| self.watches.has(**above)) else {
            return Ok(());
        };
        let mut found = None;
        self.each_entry(above, |_, entry, name| {
            found = (entry == inode).then_some(name);
            Ok(found.is_some())
        })?;
        if let Some(name) = found {
            self.named(inode, above, Name::new(&name)?);
        }
        Ok(())
    }

    /// Contents or attributes of an inode have changed.
    pub(super) fn touched(&mut self, inode: Inode, change: Change) {
        if self.watches.is_empty() {
            return;
        }
        self.watches.changed(inode, change);
        if !self.watches.is_partial() {
            return;
        }
        let known = self.open.get(&inode).and_then(|opened| opened.directory);
        if self.is_by_path {
            if let Some(directory) = known.filter(|directory| !self.watches.knows(inode, *directory)) {
                self.watches.lose_partial(Some(directory));
            }
            return;
        }
        let names = match self.fs.attributes(inode) {
            Ok(found) if found.kind == Kind::Directory => 1,
            Ok(found) => found.links as usize,
            Err(_) => usize::MAX,
        };
        if names > self.watches.count_names(inode) {
            self.watches.lose_partial(known.filter(|_| names == 1));
        }
    }
}
