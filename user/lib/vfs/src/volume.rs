//! A file system that is in use: paths in place of inodes, and files that live on without a name while somebody has them open.
//!
//! Inodes that a [`Volume`] hands out are *open*: they stay until each was [closed](Volume::close). A base is an open directory.
//!
//! Whatever changes something tells the [watches](crate::watch) of it, once it is done. A watch keeps nothing open: it is over when what it
//! watches has no name.

mod links;

use crate::page::{PAGE, Paged, Sent};
use crate::path::{self, Last, Place};
use crate::watch::{Change, Event, Watches};
use crate::{Attributes, Before, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry as MapEntry;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

/// Longest file. Offsets beyond are refused before a file system hears of them.
pub const FILE_MAX: u64 = i64::MAX as u64;

/// Most bytes of a symbolic link's target: those of a path, so that it can be read again.
pub const TARGET_MAX: usize = 4095;

/// Entries of a directory that are looked at when it is watched, at most, so many at a time.
const WATCH_ENTRIES_MAX: usize = 1024;
/// See [`WATCH_ENTRIES_MAX`].
const WATCH_ENTRIES: usize = 64;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct How {
    /// Makes the file if there is none.
    pub create: bool,
    /// Fails if there is one. Of no use without `create`.
    pub exclusive: bool,
    /// Empties it.
    pub truncate: bool,
}

/// A file system, and what is open in it.
#[derive(Debug)]
pub struct Volume<F> {
    fs: F,
    open: BTreeMap<Inode, Opened>,
    watches: Watches,
}

/// Names of inodes in a directory.
type Names = Vec<(Inode, Vec<u8>)>;

/// An inode that is open.
#[derive(Default, Debug)]
struct Opened {
    /// How often.
    count: usize,
    /// Of a file: a directory in which it has a name, if one is known. If it has one name alone, that is there.
    directory: Option<Inode>,
}

impl<F: FileSystem> Volume<F> {
    /// The file system in use, with nothing open.
    pub const fn new(fs: F) -> Volume<F> {
        Volume { fs, open: BTreeMap::new(), watches: Watches::new() }
    }

    /// The file system, not in use any more.
    pub fn into_inner(self) -> F {
        self.fs
    }

    /// The root directory, open.
    pub fn root(&mut self) -> Inode {
        let root = self.fs.root();
        // It is there as long as its file system, so nobody needs to keep it open.
        self.open.entry(root).or_default().count += 1;
        root
    }

    /// Opens a file.
    pub fn open(&mut self, base: Inode, path: &[u8], how: How, permissions: u16) -> Result<Inode> {
        let last = if how.create && how.exclusive { Last::Name } else { Last::Follow };
        let place = self.walk(base, path, last)?;
        let inode = match place.found {
            _ if how.create && place.is_directory && place.name.is_some() => return Err(Error::IsDirectory),
            Some(_) if how.create && how.exclusive => return Err(Error::Exists),
            Some((_, Kind::Directory)) => return Err(Error::IsDirectory),
            Some((_, Kind::Special)) => return Err(Error::Unsupported),
            Some(_) => place.existing()?.0,
            None if !how.create => return Err(Error::NotFound),
            None => self.create(&place, New::File, permissions)?,
        };
        let (directory, name) = place.entry()?;
        self.opened(inode)?;
        // It is emptied last: a file that cannot be opened stays as it is.
        if how.truncate
            && place.found.is_some()
            && let Err(error) = self.fs.truncate(inode, 0)
        {
            let _ = self.close(inode);
            return Err(error);
        }
        self.named(inode, directory, name);
        if how.truncate && place.found.is_some() {
            self.touched(inode, Change::Contents);
        }
        Ok(inode)
    }

    /// Opens a directory.
    pub fn enter(&mut self, base: Inode, path: &[u8]) -> Result<Inode> {
        match self.find(base, path, Last::Follow)? {
            (inode, Kind::Directory) => self.opened(inode),
            _ => Err(Error::NotDirectory),
        }
    }

    /// Opens what is open once more.
    pub fn opened(&mut self, inode: Inode) -> Result<Inode> {
        match self.open.entry(inode) {
            MapEntry::Occupied(mut opened) => opened.get_mut().count += 1,
            MapEntry::Vacant(place) => {
                self.fs.hold(inode)?;
                place.insert(Opened { count: 1, directory: None });
            }
        }
        Ok(inode)
    }

    /// Closes what was opened. Without a name it is gone, if nobody else has it open.
    pub fn close(&mut self, inode: Inode) -> Result<()> {
        let Some(opened) = self.open.get_mut(&inode) else { return Err(Error::Invalid) };
        opened.count -= 1;
        if opened.count == 0 {
            self.open.remove(&inode);
            let reaped = self.reap(inode);
            self.fs.release(inode);
            reaped?;
        }
        Ok(())
    }

    /// Something new [begins](FileSystem::begin).
    #[inline]
    pub fn begin(&mut self) {
        self.fs.begin();
    }

    /// A number that is another one when [others](FileSystem::others) may have changed something.
    #[inline]
    pub fn others(&mut self) -> Option<u64> {
        self.fs.others()
    }

    /// How often an inode is open.
    pub fn times_open(&self, inode: Inode) -> usize {
        self.open.get(&inode).map_or(0, |opened| opened.count)
    }

    /// How many inodes are open.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Attributes of what is open.
    pub fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        self.fs.attributes(inode)
    }

    /// Bytes of a file that is open.
    pub fn len(&mut self, file: Inode) -> Result<u64> {
        self.fs.len(file)
    }

    /// Attributes of what is at a path.
    pub fn attributes_at(&mut self, base: Inode, path: &[u8], last: Last) -> Result<Attributes> {
        let (inode, _) = self.find(base, path, last)?;
        self.fs.attributes(inode)
    }

    /// Changes attributes of what is open.
    pub fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        self.fs.change(inode, changes)?;
        self.touched(inode, Change::Attributes);
        Ok(())
    }

    /// Value of an extended attribute of what is open.
    pub fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        self.fs.xattr(inode, name)
    }

    /// Names of all extended attributes of what is open, with a zero behind each.
    pub fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.xattrs(inode)
    }

    /// Gives what is open an extended attribute.
    pub fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        self.fs.set_xattr(inode, name, value, before)?;
        self.touched(inode, Change::Attributes);
        Ok(())
    }

    /// Takes an extended attribute from what is open.
    pub fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        self.fs.remove_xattr(inode, name)?;
        self.touched(inode, Change::Attributes);
        Ok(())
    }

    /// At most so many entries of a directory, from a cursor on. A directory without a name has none.
    pub fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        if self.fs.attributes(directory)?.links == 0 {
            return Ok(Vec::new());
        }
        self.fs.readdir(directory, cursor, count_max)
    }

    /// Makes a directory.
    pub fn mkdir(&mut self, base: Inode, path: &[u8], permissions: u16) -> Result<()> {
        self.make(base, path, New::Directory, permissions)
    }

    /// Makes a symbolic link that leads to a target, wherever that is.
    pub fn symlink(&mut self, base: Inode, target: &[u8], path: &[u8]) -> Result<()> {
        if target.is_empty() || target.contains(&0) {
            return Err(Error::Invalid);
        }
        if target.len() > TARGET_MAX {
            return Err(Error::NameTooLong);
        }
        self.make(base, path, New::Symlink(target), 0o777)
    }

    /// Where the symbolic link at a path leads.
    pub fn readlink(&mut self, base: Inode, path: &[u8]) -> Result<Vec<u8>> {
        match self.find(base, path, Last::Stay)? {
            (inode, Kind::Symlink) => self.fs.readlink(inode),
            _ => Err(Error::Invalid),
        }
    }

    /// Moves a name, and replaces what had the new one. Two names of one inode stay both.
    pub fn rename(&mut self, base: Inode, existing: &[u8], path: &[u8]) -> Result<()> {
        let from = self.walk(base, existing, Last::Name)?;
        let to = self.walk(base, path, Last::Name)?;
        let ((directory, name), (to_directory, to_name)) = (from.entry()?, to.entry()?);
        let (inode, kind) = from.found.ok_or(Error::NotFound)?;
        let is_directory = kind == Kind::Directory;
        if !is_directory && (from.is_directory || to.is_directory) {
            return Err(Error::NotDirectory);
        }
        if to.above.contains(&inode) {
            return Err(Error::Invalid);
        }
        self.is_there(&to)?;
        match to.found {
            Some((target, _)) if from.above.contains(&target) => return Err(Error::NotEmpty),
            Some((target, _)) if target == inode => return Ok(()),
            Some((_, Kind::Directory)) if !is_directory => return Err(Error::IsDirectory),
            Some((_, kind)) if is_directory && kind != Kind::Directory => return Err(Error::NotDirectory),
            _ => {}
        }
        self.fs.rename(directory, name, to_directory, to_name)?;
        let replaced = to.found.map(|(replaced, _)| replaced);
        if let Some(replaced) = replaced {
            self.unnamed(replaced, to_directory);
        }
        if !self.watches.is_empty() {
            let (from, to) = ((directory, name.bytes()), (to_directory, to_name.bytes()));
            self.watches.moved(inode, from, to, replaced);
        }
        if self.watches.has(to_directory) && self.may_change(inode).unwrap_or(true) {
            self.watches.know(inode, to_directory, to_name.bytes());
        }
        self.named(inode, to_directory, to_name);
        replaced.into_iter().for_each(|replaced| self.lost_name(replaced));
        self.reap_if_closed(to.found)
    }

    /// Takes a name away from a file or symbolic link.
    pub fn unlink(&mut self, base: Inode, path: &[u8]) -> Result<()> {
        let place = self.walk(base, path, Last::Name)?;
        if let Some((_, Kind::Directory)) = place.found {
            return Err(Error::IsDirectory);
        }
        let (inode, _) = place.existing()?;
        let (directory, name) = place.entry()?;
        self.fs.unlink(directory, name)?;
        self.removed(inode, directory, name);
        self.reap_if_closed(place.found)
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, base: Inode, path: &[u8]) -> Result<()> {
        let place = self.walk(base, path, Last::Name)?;
        let (directory, name) = place.entry()?;
        match place.existing()? {
            (inode, Kind::Directory) => {
                self.fs.rmdir(directory, name)?;
                self.removed(inode, directory, name);
            }
            _ => return Err(Error::NotDirectory),
        }
        self.reap_if_closed(place.found)
    }

    /// Bytes of a file that is open. Gives back how many there were: none behind its end.
    pub fn read(&mut self, file: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let len = to.len().min(FILE_MAX.saturating_sub(offset) as usize);
        self.fs.read(file, offset, &mut to[..len])
    }

    /// Writes to a file that is open. Gives back how many bytes were written.
    pub fn write(&mut self, file: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        if from.is_empty() {
            return Ok(0);
        }
        if offset.checked_add(from.len() as u64).is_none_or(|end| end > FILE_MAX) {
            return Err(Error::TooLarge);
        }
        let count = self.fs.write(file, offset, from)?;
        if count > 0 {
            self.touched(file, Change::Contents);
        }
        Ok(count)
    }

    /// Writes at the end of a file that is open, all or nothing. Gives back where that was.
    pub fn append(&mut self, file: Inode, from: &[u8]) -> Result<u64> {
        let offset = self.fs.len(file)?;
        if self.write(file, offset, from)? < from.len() {
            self.fs.truncate(file, offset)?;
            return Err(Error::NoSpace);
        }
        Ok(offset)
    }

    /// Makes a file that is open shorter, or longer by zeros.
    pub fn truncate(&mut self, file: Inode, len: u64) -> Result<()> {
        if len > FILE_MAX {
            return Err(Error::TooLarge);
        }
        self.fs.truncate(file, len)?;
        self.touched(file, Change::Contents);
        Ok(())
    }

    /// Done when all of it survives a loss of power.
    pub fn sync(&mut self, inode: Inode) -> Result<()> {
        self.fs.sync(inode)
    }

    /// How much there is.
    pub fn space(&mut self) -> Result<Space> {
        self.fs.space()
    }

    /// Watches what is at a path, from now on. The number is none of another watch; all further calls name it.
    pub fn watch(&mut self, base: Inode, path: &[u8], number: u64) -> Result<()> {
        let (inode, kind) = self.find(base, path, Last::Follow)?;
        if self.watches.is_known(number) {
            return Err(Error::Invalid);
        }
        if self.fs.attributes(inode)?.links == 0 {
            return Err(Error::NotFound);
        }
        let is_new = kind == Kind::Directory && !self.watches.has(inode);
        let (names, is_whole) = if is_new { self.names_that_matter(inode)? } else { (Vec::new(), true) };
        self.watches.add(number, inode);
        names.iter().for_each(|(file, name)| self.watches.know(*file, inode, name));
        if !is_whole {
            self.watches.set_partial(inode);
        }
        Ok(())
    }

    /// Lets [names that watches know](crate::watch) cost so many bytes; for more, events are lost.
    pub fn limit_names(&mut self, bytes: usize) {
        self.watches.limit_names(bytes);
    }

    /// A watch is not wanted any more.
    pub fn unwatch(&mut self, number: u64) {
        self.watches.remove(number);
    }

    /// Takes what has happened since, at most so many events, the first ones. [`Error::NotFound`] if the watch is over, and its owner knows.
    pub fn events(&mut self, number: u64, count_max: usize) -> Result<Vec<Event>> {
        self.watches.take(number, count_max).ok_or(Error::NotFound)
    }

    /// Whether there are events to take, or never will be. If not, [`has_woken`](Volume::has_woken) is true when there are.
    pub fn wait(&mut self, number: u64) -> bool {
        self.watches.wait(number)
    }

    /// Whether there is something for one who [waits](Volume::wait), since this was asked last.
    pub fn has_woken(&mut self) -> bool {
        self.watches.has_woken()
    }

    /// Watches for which there is something, of those for which somebody [waits](Volume::wait), since this or [`has_woken`](Volume::has_woken) was asked last.
    pub fn woken(&mut self) -> Vec<u64> {
        self.watches.woken()
    }

    /// Watches that hear of changes of an inode, with the names by which they know it; without a name those of the inode itself.
    pub fn watches_of(&self, inode: Inode) -> Vec<(u64, Vec<u8>)> {
        self.watches.of(inode)
    }

    /// Names in a directory of inodes that can change without it: those that are open, or have other names. Says whether these are all of them.
    fn names_that_matter(&mut self, directory: Inode) -> Result<(Names, bool)> {
        let mut names = Vec::new();
        let (mut cursor, mut count) = (0, 0);
        while count < WATCH_ENTRIES_MAX {
            let entries = self.fs.readdir(directory, cursor, WATCH_ENTRIES)?;
            let Some(last) = entries.last() else { return Ok((names, true)) };
            cursor = last.next;
            count += entries.len();
            for entry in entries {
                if self.may_change(entry.inode)? {
                    names.push((entry.inode, entry.name));
                }
            }
        }
        Ok((names, false))
    }

    fn may_change(&mut self, inode: Inode) -> Result<bool> {
        Ok(self.open.contains_key(&inode) || self.fs.attributes(inode)?.links > 1)
    }

    /// An inode has this name, and is known to have it if it is open.
    fn named(&mut self, inode: Inode, directory: Inode, name: Name) {
        if let Some(opened) = self.open.get_mut(&inode) {
            opened.directory = Some(directory);
            self.watches.know(inode, directory, name.bytes());
        }
    }

    /// An inode has a name in a directory no more.
    fn unnamed(&mut self, inode: Inode, directory: Inode) {
        if let Some(opened) = self.open.get_mut(&inode)
            && opened.directory == Some(directory)
        {
            opened.directory = None;
        }
    }

    fn removed(&mut self, inode: Inode, directory: Inode, name: Name) {
        self.unnamed(inode, directory);
        if !self.watches.is_empty() {
            self.watches.removed(inode, directory, name.bytes());
            self.lost_name(inode);
        }
    }

    /// An inode has one name less.
    fn lost_name(&mut self, inode: Inode) {
        if self.watches.has(inode) {
            match self.fs.attributes(inode) {
                Ok(found) if found.links == 0 => self.watches.gone(inode),
                Ok(_) => self.watches.tell_itself(inode, Change::Attributes),
                Err(_) => self.watches.lose(inode),
            }
        }
    }

    /// Contents or attributes of an inode have changed.
    fn touched(&mut self, inode: Inode, change: Change) {
        if self.watches.is_empty() {
            return;
        }
        self.watches.changed(inode, change);
        if !self.watches.is_partial() {
            return;
        }
        let names = match self.fs.attributes(inode) {
            Ok(found) if found.kind == Kind::Directory => 1,
            Ok(found) => found.links as usize,
            Err(_) => usize::MAX,
        };
        if names > self.watches.count_names(inode) {
            let known = self.open.get(&inode).and_then(|opened| opened.directory);
            self.watches.lose_partial(known.filter(|_| names == 1));
        }
    }

    fn find(&mut self, base: Inode, path: &[u8], last: Last) -> Result<(Inode, Kind)> {
        path::find(&mut self.fs, base, path, last)
    }

    fn walk(&mut self, base: Inode, path: &[u8], last: Last) -> Result<Place> {
        path::walk(&mut self.fs, base, path, last)
    }

    fn make(&mut self, base: Inode, path: &[u8], new: New, permissions: u16) -> Result<()> {
        let place = self.walk(base, path, Last::Name)?;
        if place.found.is_some() {
            return Err(Error::Exists);
        }
        if place.is_directory && new != New::Directory {
            return Err(Error::NotFound);
        }
        self.create(&place, new, permissions).map(drop)
    }

    fn create(&mut self, place: &Place, new: New, permissions: u16) -> Result<Inode> {
        self.is_there(place)?;
        let (directory, name) = place.entry()?;
        let inode = self.fs.create(directory, name, new, permissions & 0o7777)?;
        if self.watches.has(directory) {
            self.watches.made(directory, name.bytes());
            if new == New::Directory {
                self.watches.know(inode, directory, name.bytes());
            }
        }
        Ok(inode)
    }

    /// The directory that is to have a name has one itself.
    fn is_there(&mut self, place: &Place) -> Result<()> {
        let (directory, _) = place.entry()?;
        if self.fs.attributes(directory)?.links == 0 { Err(Error::NotFound) } else { Ok(()) }
    }

    fn reap_if_closed(&mut self, found: Option<(Inode, Kind)>) -> Result<()> {
        match found {
            Some((inode, _)) if !self.open.contains_key(&inode) => self.reap(inode),
            _ => Ok(()),
        }
    }

    /// Nobody has it open: if it has no names it is not used any more.
    fn reap(&mut self, inode: Inode) -> Result<()> {
        let links = self.fs.attributes(inode)?.links;
        if links <= 1 {
            self.watches.forget(inode);
        }
        if links == 0 { self.fs.forget(inode) } else { Ok(()) }
    }
}

impl<F: Paged> Volume<F> {
    /// The page of an open file that begins at an offset, which is a multiple of [`PAGE`] and in front of the end.
    pub fn page(&mut self, file: Inode, offset: u64, is_writable: bool) -> Result<F::Page> {
        if !offset.is_multiple_of(PAGE as u64) {
            return Err(Error::Invalid);
        }
        if is_writable && self.fs.is_read_only() {
            return Err(Error::ReadOnly);
        }
        self.fs.page(file, offset / PAGE as u64, is_writable)
    }

    /// Bytes of an open file as [`read`](Volume::read) gives them, to be sent from the page where they lie. `None` if they are to be read.
    pub fn send(&mut self, file: Inode, offset: u64, len: usize) -> Result<Option<Sent<F>>> {
        self.fs.send(file, offset, len)
    }

    /// A word with the length of an open file, as it is at each time, if the file system has one.
    pub fn len_word(&mut self, file: Inode) -> Option<Arc<AtomicU64>> {
        self.fs.len_word(file)
    }

    /// Done when all of a directory's file system survives a loss of power, with what others have written to pages.
    pub fn sync_all(&mut self, directory: Inode) -> Result<()> {
        self.fs.write_back_all();
        self.fs.sync(directory)
    }

    /// Somebody who may have [written to pages](Paged::wrote) of a file has said so, or has them no more.
    pub fn wrote(&mut self, file: Inode) {
        self.fs.wrote(file);
    }

    /// Whether bytes of pages [were brought](Paged::take_written) to files since this was asked last.
    #[inline]
    pub fn take_written(&mut self) -> bool {
        self.fs.take_written()
    }

    /// How many pages may be out at once.
    pub fn pages_max(&self) -> usize {
        self.fs.pages_max()
    }
}
