//! The directory `.merge` of the upper file system's root: files that are being made, covers, directories that are out of the way, and what is known of
//! files with several names.

use super::{ALONE, BACK, COVER, Merge, OLD, OWED, OWN, Seen, let_go, lookup, number_of_lower, own_name};
use crate::path::{self, Last};
use crate::{Entry, Error, FileSystem, Inode, Kind, Name, New, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Entries that are looked at together. There may be as many as a directory of the lower one has, and all of them at once take more memory than a server has.
const ENTRIES: usize = 32;

/// A cover that is owed: its name in the upper one's directory `.merge`.
#[derive(Debug)]
pub(super) struct Owed {
    name: Vec<u8>,
    inode: Inode,
}

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// Does something with each entry of a directory of the upper one, which may remove it.
    fn each(
        &mut self,
        directory: Inode,
        mut run: impl FnMut(&mut Merge<U, L>, Entry) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = 0;
        loop {
            let entries = self.upper.readdir(directory, cursor, ENTRIES)?;
            let Some(last) = entries.last() else { return Ok(()) };
            cursor = last.next;
            for entry in entries {
                run(self, entry)?;
            }
        }
    }

    /// Reads what is known of files with several names, and removes what was being made.
    pub(super) fn recall(&mut self) -> Result<()> {
        self.each(self.own, Merge::recall_one)
    }

    fn recall_one(&mut self, entry: Entry) -> Result<()> {
        let text = core::str::from_utf8(&entry.name).unwrap_or_default();
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok().map(Inode);
        if let Some(lower) = text.strip_prefix("copy-").and_then(number) {
            self.shared.entry(lower).or_default().copy = Some(entry.inode);
            self.of_upper.insert(entry.inode, number_of_lower(lower)?);
        } else if let Some((lower, count)) =
            text.strip_prefix("covered-").and_then(|text| text.split_once('-'))
        {
            if let (Some(lower), Ok(count)) = (number(lower), count.parse()) {
                let shared = self.shared.entry(lower).or_default();
                shared.covered = shared.covered.max(count);
            }
        } else {
            self.discard(Name::new(&entry.name)?, entry.inode)?;
        }
        Ok(())
    }

    /// Puts covers that are owed, and directories that were moved out of the way, to where they belong, if there is nothing else.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.each(self.own, Merge::settle_one)?;
        self.owes = false;
        Ok(())
    }

    fn settle_one(&mut self, entry: Entry) -> Result<()> {
        let owed = Name::new(&entry.name)?;
        // A directory goes back, and a cover is one itself.
        let aside = match entry.name.strip_prefix(BACK) {
            Some(number) => [OLD, number].concat(),
            None if entry.name.starts_with(OWED) => entry.name.clone(),
            None => return Ok(()),
        };
        let target = self.upper.readlink(entry.inode)?;
        let path = target.strip_prefix(COVER).unwrap_or_default();
        let root = self.upper.root();
        if lookup(&mut self.upper, self.own, Name::new(&aside)?)?.is_some()
            && let Ok(place) = path::walk(&mut self.upper, root, path, Last::Name)
            && place.found.is_none()
            && let Ok((directory, name)) = place.entry()
        {
            self.upper.rename(self.own, Name::new(&aside)?, directory, name)?;
        }
        if lookup(&mut self.upper, self.own, owed)?.is_some() {
            self.discard(owed, entry.inode)?;
        }
        Ok(())
    }

    /// Removes a name of [`own`](Merge::own), and what has it. A directory has nothing but covers and its mark.
    pub(super) fn discard(&mut self, name: Name, inode: Inode) -> Result<()> {
        if self.upper.attributes(inode)?.kind == Kind::Directory {
            self.empty(inode)?;
            self.upper.rmdir(self.own, name)?;
        } else {
            self.upper.unlink(self.own, name)?;
        }
        let_go(&mut self.upper, inode);
        Ok(())
    }

    /// Removes covers and the mark from a directory of the upper one.
    fn empty(&mut self, directory: Inode) -> Result<()> {
        self.each(directory, |merge, entry| {
            let name = Name::new(&entry.name)?;
            if entry.kind == Kind::Symlink && (entry.name == OWN || merge.is_cover(entry.inode)?) {
                merge.upper.unlink(directory, name)?;
                let_go(&mut merge.upper, entry.inode);
            }
            Ok(())
        })
    }

    /// A name of [`own`](Merge::own) that is not used.
    pub(super) fn new_name(&mut self, kind: &str) -> Result<String> {
        self.find_own()?;
        self.next += 1;
        Ok(format!("{kind}{:x}", self.next))
    }

    /// If the upper one has lost everything, as one in memory does whose server ends, nothing is known of it any more, and it begins anew.
    pub(super) fn find_own(&mut self) -> Result<()> {
        match self.upper.attributes(self.own) {
            Err(Error::NotFound) => {}
            outcome => return outcome.map(drop),
        }
        let root = self.upper.root();
        self.own = match lookup(&mut self.upper, root, own_name()?)? {
            Some(own) => own,
            None => self.upper.create(root, own_name()?, New::Directory, 0o700)?,
        };
        self.upper.hold(self.own)?;
        self.shared.clear();
        self.of_upper.retain(|upper, _| *upper == root);
        Ok(())
    }

    pub(super) fn is_cover(&mut self, upper: Inode) -> Result<bool> {
        let found = self.upper.attributes(upper)?;
        if found.kind != Kind::Symlink || found.len < COVER.len() as u64 {
            return Ok(false);
        }
        let target = self.upper.readlink(upper)?;
        Ok(target.strip_prefix(COVER).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")))
    }

    /// Makes a cover in the place of what the upper one has at a name.
    pub(super) fn cover(&mut self, upper: Inode, name: Name, is_above: bool) -> Result<()> {
        if !is_above {
            return self.upper.create(upper, name, New::Symlink(COVER), 0o777).map(drop);
        }
        let made = self.new_name("new-")?;
        let made = Name::new(made.as_bytes())?;
        let cover = self.upper.create(self.own, made, New::Symlink(COVER), 0o777)?;
        let moved = self.upper.rename(self.own, made, upper, name);
        if moved.is_err() {
            let _ = self.discard(made, cover);
        }
        moved
    }

    /// Makes a cover that is put to a name of a directory as soon as there is nothing, by whoever sees that first.
    pub(super) fn owe(&mut self, directory: Inode, name: Name) -> Result<Owed> {
        let owed = self.new_name("owed-")?.into_bytes();
        self.owe_as(owed, directory, name)
    }

    pub(super) fn owe_as(&mut self, owed: Vec<u8>, directory: Inode, name: Name) -> Result<Owed> {
        let path = self.places.path(directory)?;
        let target = [COVER, b"/", &path, b"/", name.bytes()].concat();
        let inode = self.upper.create(self.own, Name::new(&owed)?, New::Symlink(&target), 0o777)?;
        Ok(Owed { name: owed, inode })
    }

    /// Puts a cover that is owed. What it covers is not seen in any case.
    pub(super) fn pay(&mut self, owed: &Owed, upper: Inode, name: Name) {
        let paid = Name::new(&owed.name).and_then(|owed| self.upper.rename(self.own, owed, upper, name));
        self.owes |= paid.is_err();
    }

    /// A cover that is owed is not needed. If it stays, the next to settle removes it.
    pub(super) fn waive(&mut self, owed: &Owed) {
        if let Ok(name) = Name::new(&owed.name) {
            let _ = self.discard(name, owed.inode);
        }
    }

    /// Removes a directory that was moved out of the way, but for its inode, which stays for whoever has it. If that fails, the next start does it.
    pub(super) fn remove_aside(&mut self, aside: &[u8], inode: Inode) {
        if self.empty(inode).is_ok()
            && let Ok(aside) = Name::new(aside)
        {
            let _ = self.upper.rmdir(self.own, aside);
        }
    }

    /// Moves a directory that was made in [`own`](Merge::own) to where a cover is. In between the cover is owed.
    pub(super) fn uncover(
        &mut self,
        made: Inode,
        made_name: Name,
        at: (Inode, Name),
        upper: Inode,
        seen: &Seen,
    ) -> Result<()> {
        if seen.below.is_some() {
            self.upper.create(made, own_name()?, New::Symlink(ALONE), 0o777)?;
        }
        let owed = self.owe(at.0, at.1)?;
        let moved =
            self.upper.unlink(upper, at.1).and_then(|()| self.upper.rename(self.own, made_name, upper, at.1));
        if moved.is_err() {
            self.owes = self.settle().is_err();
            return moved;
        }
        self.waive(&owed);
        Ok(())
    }
}
