//! Two file systems as one: an upper one that is written to, over a lower one that stays as it is.
//!
//! A name is the upper one's if that has it, and else the lower one's. A directory of both has the names of both. What is to be changed in the lower one is
//! copied up before, with the directories above it. A name of the lower one that was removed has a *cover* in the upper one: a symbolic link with a target that
//! nobody else may use. So each name of the upper one is one thing at any time, and an operation is a single rename there, or a row of operations of which
//! each, if nothing follows, leaves what a program sees as it was.
//!
//! The upper one's root has a directory `.merge` for that: files that are being copied, covers that are to be put somewhere (*owed* ones, whose targets say where), and
//! files of the lower one that have several names there, since all names must lead to one copy. Other directories have a symbolic link `.merge` if they do not lie over
//! the directory of that name in the lower one: over none, or over another one, because they were moved. Nobody sees these names.
//!
//! Numbers of inodes: the lower one's are odd here, those of the upper one even. A copy keeps the number of its original as long as somebody has it open.

mod listing;
mod own;
mod raise;
mod rename;
mod seen;

use crate::{
    Attributes, Before, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Places, Result, Space,
};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use listing::{Side, from_cursor};

/// The name that nobody else may have, as seen from outside.
const OWN: &[u8] = b".merge";

/// The beginning of targets that nobody else may use.
const OWN_TARGET: &[u8] = b".merge/";

/// Target of a cover. In one that is owed a slash and the path follow.
const COVER: &[u8] = b".merge/removed";

/// Target of a directory's mark: it lies over no other one.
const ALONE: &[u8] = b".merge/alone";

/// Target of a directory's mark: it lies over the one with the path that follows.
const OVER: &[u8] = b".merge/over/";

/// Target of the link whose name tells how many names of a file are covered.
const COUNT: &[u8] = b".merge/covered";

/// Beginnings of names in the upper one's `.merge`: covers that are owed; directories that are out of the way, and what says to where they go back.
const OWED: &[u8] = b"owed-";
const OLD: &[u8] = b"old-";
const BACK: &[u8] = b"back-";

/// Bytes that are copied at once.
const PIECE: usize = 64 * 1024;

/// Most files of the lower one with several names that were copied up, or of which a name was removed. They are all kept in mind.
const SHARED_MAX: usize = 1 << 16;

/// An upper file system over a lower one.
#[derive(Debug)]
pub struct Merge<U, L> {
    upper: U,
    lower: L,
    /// The directory `.merge` of the upper one's root.
    own: Inode,
    places: Places<Sides>,
    /// Inodes by those of the upper one whose number does not say it.
    of_upper: BTreeMap<Inode, Inode>,
    /// Files of the lower one that have, or had, several names there.
    shared: BTreeMap<Inode, Shared>,
    /// The next name in [`own`](Merge::own).
    next: u64,
    /// A cover that is owed could not be put to its place. Nothing is seen before it is.
    owes: bool,
}

/// Path from the lower one's root.
type Path = Box<[u8]>;

/// Inodes that one is made of.
#[derive(Clone, Default, Debug)]
struct Sides {
    upper: Option<Inode>,
    lower: Option<Inode>,
    /// Path of the lower directory, if it is not that of the name in the one above.
    over: Option<Path>,
    /// Its last name was removed, which neither side says.
    is_gone: bool,
}

/// A file of the lower one with several names.
#[derive(Clone, Copy, Default, Debug)]
struct Shared {
    /// The copy, if there is one.
    copy: Option<Inode>,
    /// How many of its names are covered.
    covered: u32,
}

/// Finding of the upper one at a name.
#[derive(Clone, Copy, Debug)]
enum Above {
    Nothing,
    Cover(Inode),
    Found(Attributes),
}

/// Findings of both at a name.
#[derive(Clone, Copy, Debug)]
struct Seen {
    above: Above,
    below: Option<Attributes>,
}

fn own_name() -> Result<Name<'static>> {
    Name::new(OWN)
}

/// Name in the upper one's `.merge` of the copy of a file that has several names in the lower one.
fn copy_name(lower: Inode) -> String {
    format!("copy-{:x}", lower.0)
}

fn number_of_upper(upper: Inode) -> Result<Inode> {
    upper.0.checked_mul(2).map(Inode).ok_or(Error::Unsupported)
}

fn number_of_lower(lower: Inode) -> Result<Inode> {
    lower.0.checked_mul(2).map(|number| Inode(number + 1)).ok_or(Error::Unsupported)
}

fn none_if_not_found<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn lookup(fs: &mut impl FileSystem, directory: Inode, name: Name) -> Result<Option<Inode>> {
    none_if_not_found(fs.lookup(directory, name))
}

/// An inode that nobody else knows has lost its name. If that cannot be said, it takes room, and nothing else.
fn let_go(fs: &mut impl FileSystem, inode: Inode) {
    if fs.attributes(inode).is_ok_and(|found| found.links == 0) {
        let _ = fs.forget(inode);
    }
}

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// The two as one. What was begun in the upper one when it was used last is brought to its end, or undone.
    pub fn new(mut upper: U, mut lower: L) -> Result<Merge<U, L>> {
        if upper.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let root = upper.root();
        let own = match lookup(&mut upper, root, own_name()?)? {
            Some(own) if upper.attributes(own)?.kind == Kind::Directory => own,
            Some(_) => return Err(Error::Damaged),
            None => {
                // Used for the first time: the directory of all looks like that of the lower one.
                let top = lower.attributes(lower.root())?;
                upper.change(root, &copied(&top))?;
                upper.create(root, own_name()?, New::Directory, 0o700)?
            }
        };
        // It is needed as long as the file system is in use.
        upper.hold(own)?;
        let top = Sides { upper: Some(root), lower: Some(lower.root()), over: None, is_gone: false };
        let number = number_of_lower(lower.root())?;
        let mut merge = Merge {
            upper,
            lower,
            own,
            places: Places::new(number, top),
            of_upper: BTreeMap::from([(root, number)]),
            shared: BTreeMap::new(),
            next: 0,
            owes: false,
        };
        merge.settle()?;
        merge.recall()?;
        Ok(merge)
    }

    /// The two file systems, not in use any more.
    pub fn into_inner(self) -> (U, L) {
        (self.upper, self.lower)
    }
}

/// Attributes that a copy has from its original.
fn copied(found: &Attributes) -> Changes {
    Changes {
        permissions: Some(found.permissions),
        owner: Some((found.owner, found.group)),
        times: Some((found.accessed, found.modified)),
    }
}

impl<U: FileSystem, L: FileSystem> FileSystem for Merge<U, L> {
    fn root(&self) -> Inode {
        Inode(self.lower.root().0 * 2 + 1)
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let sides = self.places.get(inode)?.clone();
        let shared = sides.lower.and_then(|lower| self.shared.get(&lower).copied());
        let mut found = match (sides.upper, sides.lower) {
            (Some(upper), _) => self.upper.attributes(upper)?,
            (None, Some(lower)) => self.lower.attributes(lower)?,
            (None, None) => return Err(Error::NotFound),
        };
        found.links = match (shared, sides.lower) {
            _ if sides.is_gone => 0,
            // How many directories are in both of them together nobody has counted, and 1 says so, as usual.
            _ if found.kind == Kind::Directory && sides.upper.is_some() && sides.lower.is_some() => {
                found.links.min(1)
            }
            (Some(shared), Some(lower)) if shared.copy == sides.upper => {
                let left = self.lower.attributes(lower)?.links.saturating_sub(shared.covered);
                // The copy has one more, which nobody sees.
                let own = if sides.upper.is_some() { found.links.saturating_sub(1) } else { 0 };
                left + own
            }
            _ => found.links,
        };
        Ok(Attributes { inode, ..found })
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        match self.places.get(file)?.clone() {
            Sides { upper: Some(upper), .. } => self.upper.len(upper),
            Sides { lower: Some(lower), .. } => self.lower.len(lower),
            _ => Err(Error::NotFound),
        }
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        let upper = self.raise(inode)?;
        self.upper.change(upper, changes)
    }

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        match self.places.get(inode)?.clone() {
            Sides { upper: Some(upper), .. } => self.upper.xattr(upper, name),
            Sides { lower: Some(lower), .. } => self.lower.xattr(lower, name),
            _ => Err(Error::NotFound),
        }
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match self.places.get(inode)?.clone() {
            Sides { upper: Some(upper), .. } => self.upper.xattrs(upper),
            Sides { lower: Some(lower), .. } => self.lower.xattrs(lower),
            _ => Err(Error::NotFound),
        }
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        let upper = self.raise(inode)?;
        self.upper.set_xattr(upper, name, value, before)
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        let upper = self.raise(inode)?;
        self.upper.remove_xattr(upper, name)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        let seen = self.look(directory, name)?;
        self.found(directory, name, &seen)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        let (mut side, mut from) = from_cursor(cursor);
        loop {
            let sides = self.places.get(directory)?;
            let entries = match (side, sides.lower, sides.upper) {
                (Side::Lower, Some(lower), _) => self.lower.readdir(lower, from, count_max)?,
                (Side::Upper, _, Some(upper)) => self.upper.readdir(upper, from, count_max)?,
                _ => Vec::new(),
            };
            match (entries.last(), side) {
                (None, Side::Upper) => return Ok(Vec::new()),
                (None, Side::Lower) => (side, from) = (Side::Upper, 0),
                (Some(last), _) => {
                    let next = last.next;
                    let merged = self.merged(directory, side, entries, from)?;
                    if !merged.is_empty() {
                        return Ok(merged);
                    }
                    from = next;
                }
            }
        }
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        if name.bytes() == OWN {
            return Err(Error::Invalid);
        }
        if let New::Symlink(target) = new
            && target.starts_with(OWN_TARGET)
        {
            return Err(Error::Invalid);
        }
        let seen = self.look(directory, name)?;
        let cover = match (seen.above, seen.below) {
            (Above::Found(_), _) | (Above::Nothing, Some(_)) => return Err(Error::Exists),
            (Above::Nothing, None) => None,
            (Above::Cover(cover), _) => Some(cover),
        };
        let upper = self.raise(directory)?;
        let inode = match cover {
            None => self.upper.create(upper, name, new, permissions)?,
            Some(cover) => {
                let made_name = self.new_name("new-")?;
                let made_name = Name::new(made_name.as_bytes())?;
                let made = self.upper.create(self.own, made_name, new, permissions)?;
                let moved = if new == New::Directory {
                    self.uncover(made, made_name, (directory, name), upper, &seen)
                } else {
                    self.upper.rename(self.own, made_name, upper, name)
                };
                if let Err(error) = moved {
                    let _ = self.discard(made_name, made);
                    return Err(error);
                }
                let_go(&mut self.upper, cover);
                made
            }
        };
        let number = number_of_upper(inode)?;
        self.of_upper.remove(&inode);
        self.note(number, directory, name, Sides { upper: Some(inode), ..Sides::default() })?;
        Ok(number)
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        if name.bytes() == OWN {
            return Err(Error::Invalid);
        }
        let seen = self.look(directory, name)?;
        let upper = self.raise(inode)?;
        let to = self.raise(directory)?;
        match (seen.above, seen.below) {
            (Above::Found(_), _) | (Above::Nothing, Some(_)) => Err(Error::Exists),
            (Above::Nothing, None) => self.upper.link(upper, to, name),
            (Above::Cover(cover), _) => {
                self.link_over(upper, to, name)?;
                let_go(&mut self.upper, cover);
                Ok(())
            }
        }
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        let seen = self.look(directory, name)?;
        let inode = self.found(directory, name, &seen)?;
        if self.attributes(inode)?.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        let upper = self.raise(directory)?;
        match (seen.above, &seen.below) {
            (Above::Found(_), None) => self.upper.unlink(upper, name),
            (Above::Found(_), Some(_)) => self.cover(upper, name, true),
            (_, below) => {
                self.cover(upper, name, false)?;
                below.as_ref().map_or(Ok(()), |below| self.covered(below))
            }
        }
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        let seen = self.look(directory, name)?;
        let inode = self.found(directory, name, &seen)?;
        if self.attributes(inode)?.kind != Kind::Directory {
            return Err(Error::NotDirectory);
        }
        if !self.is_empty(inode)? {
            return Err(Error::NotEmpty);
        }
        let upper = self.raise(directory)?;
        if let Above::Found(above) = seen.above {
            let owed = seen.below.map(|_| self.owe(directory, name)).transpose()?;
            let aside = [OLD, self.new_name("")?.as_bytes()].concat();
            let moved = self.upper.rename(upper, name, self.own, Name::new(&aside)?);
            match owed {
                Some(owed) if moved.is_ok() => self.pay(&owed, upper, name),
                Some(owed) => self.waive(&owed),
                None => {}
            }
            moved?;
            self.remove_aside(&aside, above.inode);
        } else {
            self.cover(upper, name, false)?;
        }
        self.places.get_mut(inode)?.is_gone = true;
        Ok(())
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        if new_name.bytes() == OWN {
            return Err(Error::Invalid);
        }
        let inode = self.lookup(from, name)?;
        if self.attributes(inode)?.kind == Kind::Directory {
            self.rename_directory(inode, (from, name), (to, new_name))?;
        } else {
            self.rename_file(inode, (from, name), (to, new_name))?;
        }
        self.places.moved(inode, to, new_name);
        Ok(())
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        if self.attributes(inode)?.links > 0 {
            return Err(Error::Busy);
        }
        let sides = self.places.get(inode)?.clone();
        if let Some(lower) = sides.lower
            && let Some(shared) = self.shared.remove(&lower)
        {
            if shared.copy.is_some() {
                self.upper.unlink(self.own, Name::new(copy_name(lower).as_bytes())?)?;
            }
            let name = format!("covered-{:x}-{}", lower.0, shared.covered);
            let name = Name::new(name.as_bytes())?;
            if let Some(count) = lookup(&mut self.upper, self.own, name)? {
                self.discard(name, count)?;
            }
        }
        if let Some(upper) = sides.upper {
            self.of_upper.remove(&upper);
            match self.upper.forget(upper) {
                // A directory that could not be removed from `.merge`: the next start does it.
                Err(Error::Busy) if sides.is_gone => {}
                outcome => outcome?,
            }
        }
        self.places.remove(inode);
        Ok(())
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match self.places.get(inode)?.clone() {
            Sides { upper: Some(upper), .. } => self.upper.readlink(upper),
            Sides { lower: Some(lower), .. } => self.lower.readlink(lower),
            _ => Err(Error::NotFound),
        }
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        match self.places.get(inode)? {
            Sides { upper: Some(upper), .. } => self.upper.read(*upper, offset, to),
            Sides { lower: Some(lower), .. } => self.lower.read(*lower, offset, to),
            _ => Err(Error::NotFound),
        }
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        let upper = self.raise(inode)?;
        self.upper.write(upper, offset, from)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        let upper = self.raise_until(inode, len)?;
        self.upper.truncate(upper, len)
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        let upper = self.places.get(inode)?.upper.unwrap_or(self.upper.root());
        self.upper.sync(upper)
    }

    fn space(&mut self) -> Result<Space> {
        self.upper.space()
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        let is_directory = self.attributes(inode)?.kind == Kind::Directory;
        let sides = self.places.get(inode)?.clone();
        if let Some(upper) = sides.upper {
            self.upper.hold(upper)?;
        }
        if let Some(lower) = sides.lower
            && (is_directory || sides.upper.is_none())
            && let Err(error) = self.lower.hold(lower)
        {
            self.release(inode);
            return Err(error);
        }
        let held = self.places.hold(inode);
        if held.is_err() {
            self.release(inode);
        }
        held
    }

    fn release(&mut self, inode: Inode) {
        if let Ok(sides) = self.places.get(inode) {
            if let Some(upper) = sides.upper {
                self.upper.release(upper);
            }
            if let Some(lower) = sides.lower {
                self.lower.release(lower);
            }
        }
        self.places.release(inode);
    }
}
