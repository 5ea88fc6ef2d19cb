//! A file system of which no more than a part is used: so many bytes, and so many files, directories and symbolic links.
//!
//! All that is there is counted when it begins, and from then on whatever is made, written and removed by way of this value. Nobody else should change anything there: no
//! harm is done, but the count is right again only when it is made anew.
//!
//! To ask how much a file takes after each write would be one more call for each, where somebody else serves it. So a write is charged with all blocks that it touches, and the
//! file is looked at when nobody has it open any more, or when there seems to be no room for something. Blocks in which a file system notes where bytes lie are found
//! by that look alone. So what is used may be a little more than it should, once.
//!
//! The surprise: a name takes a block that is free, though its directory may have room for it. To remove one never does.

use crate::{Attributes, Before, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

/// Bytes of a block, of which a write touches some. A file system with smaller ones takes less than is charged.
const BLOCK: u64 = 4096;

/// Files that were written to and not looked at since, at most.
const CHARGED_MAX: usize = 64;

/// Entries of a directory that are counted at once.
const ENTRIES: usize = 64;

/// Bytes, and files with directories and symbolic links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Amount {
    /// Bytes that files and directories take, in whole blocks.
    pub bytes: u64,
    /// Files, directories and symbolic links, without the root.
    pub files: u64,
}

/// A file system of which a part is used, or all of it.
#[derive(Debug)]
pub struct Quota<F> {
    fs: F,
    books: Option<Books>,
}

/// Count of what is there.
#[derive(Debug)]
struct Books {
    limit: Amount,
    used: Amount,
    /// Files that were written to since they were looked at.
    charged: BTreeMap<Inode, Charge>,
}

/// Share of a file in what is used.
#[derive(Debug)]
struct Charge {
    bytes: u64,
    /// Its length.
    len: u64,
}

impl<F> Quota<F> {
    /// All of a file system. Nothing is counted.
    pub const fn without(fs: F) -> Quota<F> {
        Quota { fs, books: None }
    }

    /// The file system.
    pub fn into_inner(self) -> F {
        self.fs
    }
}

impl<F: FileSystem> Quota<F> {
    /// A part of a file system, in which everything that is there is counted first. [`Error::NoSpace`] if there are more files than may be. More bytes are no
    /// reason not to begin: then none are added.
    pub fn new(mut fs: F, limit: Amount) -> Result<Quota<F>> {
        let used = count(&mut fs, limit.files)?;
        Ok(Quota { fs, books: Some(Books { limit, used, charged: BTreeMap::new() }) })
    }

    /// Amount that is used; `None` if nothing is counted.
    pub fn used(&mut self) -> Option<Amount> {
        let books = self.books.as_mut()?;
        books.settle(&mut self.fs);
        Some(books.used)
    }
}

/// Counts all below the root. A file with several names counts once.
fn count(fs: &mut impl FileSystem, files_max: u64) -> Result<Amount> {
    let root = fs.root();
    let mut used = Amount { bytes: fs.attributes(root)?.allocated, files: 0 };
    // Files with several names that were counted.
    let mut shared = BTreeSet::new();
    // Directories from the root to where the walk is, and the cursor in each. So a file system that forgets what was found long ago knows them all.
    let mut way = Vec::from([(root, 0)]);
    while let Some((directory, cursor)) = way.last_mut() {
        let entries = match fs.readdir(*directory, *cursor, ENTRIES) {
            // It was removed meanwhile.
            Err(Error::NotFound) => Vec::new(),
            entries => entries?,
        };
        let mut below = None;
        let is_end = entries.is_empty();
        for entry in entries {
            *cursor = entry.next;
            let found = match fs.attributes(entry.inode) {
                Err(Error::NotFound) => continue,
                found => found?,
            };
            let is_directory = found.kind == Kind::Directory;
            if !is_directory && found.links > 1 && !shared.insert(found.inode) {
                continue;
            }
            used.bytes = used.bytes.saturating_add(found.allocated);
            used.files += 1;
            if used.files > files_max {
                return Err(Error::NoSpace);
            }
            if is_directory {
                below = Some((found.inode, 0));
                break;
            }
        }
        if is_end {
            way.pop();
        }
        way.extend(below);
    }
    Ok(used)
}

/// Bytes of the blocks that a piece of a file touches.
fn touched(offset: u64, end: u64) -> u64 {
    rounded_up(end) - rounded_down(offset)
}

fn rounded_down(offset: u64) -> u64 {
    offset / BLOCK * BLOCK
}

fn rounded_up(offset: u64) -> u64 {
    rounded_down(offset.saturating_add(BLOCK - 1))
}

impl Books {
    /// Something takes so many bytes that was counted with so many.
    fn recount(&mut self, before: u64, now: u64) {
        self.used.bytes = self.used.bytes.saturating_add(now).saturating_sub(before);
    }

    /// Bytes that are left.
    fn room(&self) -> u64 {
        self.limit.bytes.saturating_sub(self.used.bytes)
    }

    /// Looks at all files that were written to. One that cannot be looked at stays charged.
    fn settle(&mut self, fs: &mut impl FileSystem) {
        for (inode, charge) in mem::take(&mut self.charged) {
            if let Ok(found) = fs.attributes(inode) {
                self.recount(charge.bytes, found.allocated);
            }
        }
    }

    /// Whether there is room for so many bytes.
    fn has_room(&mut self, fs: &mut impl FileSystem, bytes: u64) -> bool {
        if bytes > self.room() {
            self.settle(fs);
        }
        bytes <= self.room()
    }

    /// Share of a file.
    fn charge(&mut self, fs: &mut impl FileSystem, inode: Inode) -> Result<&mut Charge> {
        if !self.charged.contains_key(&inode) {
            if self.charged.len() >= CHARGED_MAX {
                self.settle(fs);
            }
            let found = fs.attributes(inode)?;
            self.charged.insert(inode, Charge { bytes: found.allocated, len: found.len });
        }
        self.charged.get_mut(&inode).ok_or(Error::NotFound)
    }

    /// Looks at a file, whose share is right then.
    fn look(&mut self, fs: &mut impl FileSystem, inode: Inode) -> Result<Attributes> {
        let found = fs.attributes(inode)?;
        let now = Charge { bytes: found.allocated, len: found.len };
        // One that was not charged takes what it took when it was counted.
        if let Some(before) = self.charged.insert(inode, now) {
            self.recount(before.bytes, found.allocated);
        }
        Ok(found)
    }

    /// Nobody has a file open any more.
    fn close(&mut self, fs: &mut impl FileSystem, inode: Inode) {
        if self.charged.contains_key(&inode) {
            let _ = self.look(fs, inode);
            self.charged.remove(&inode);
        }
    }

    /// Bytes of a write for which there is room, of so many; all of them if they need none.
    fn fitting(&self, fs: &mut impl FileSystem, inode: Inode, offset: u64, len: usize) -> Result<usize> {
        let found = fs.attributes(inode)?;
        // A file without holes takes nothing more where it has bytes.
        let is_dense = found.allocated >= found.len;
        let has = if is_dense { rounded_up(found.len).min(found.allocated) } else { rounded_down(offset) };
        let end = has.saturating_add(rounded_down(self.room()));
        Ok(end.saturating_sub(offset).min(len as u64) as usize)
    }

    /// Writes to a file that has no end in front of the offset.
    fn write_within<F: FileSystem>(
        &mut self,
        fs: &mut F,
        inode: Inode,
        offset: u64,
        from: &[u8],
    ) -> Result<usize> {
        let end = |count: usize| offset.checked_add(count as u64).ok_or(Error::TooLarge);
        let mut from = from;
        if !self.has_room(fs, touched(offset, end(from.len())?)) {
            let count = self.fitting(fs, inode, offset, from.len())?;
            from = from.get(..count).unwrap_or_default();
        }
        if from.is_empty() {
            return Err(Error::NoSpace);
        }
        let bytes = touched(offset, end(from.len())?);
        let charge = self.charge(fs, inode)?;
        charge.bytes = charge.bytes.saturating_add(bytes);
        self.recount(0, bytes);
        let written = fs.write(inode, offset, from);
        match &written {
            Ok(count) => {
                let end = end(*count)?;
                let charge = self.charge(fs, inode)?;
                charge.len = charge.len.max(end);
            }
            Err(_) => {
                let _ = self.look(fs, inode);
            }
        }
        written
    }

    fn write<F: FileSystem>(&mut self, fs: &mut F, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        let before = self.charge(fs, inode)?.len;
        if offset <= before {
            return self.write_within(fs, inode, offset, from);
        }
        // Between its end and the offset there is a hole, or zeros that take room.
        self.truncate(fs, inode, offset)?;
        let written = self.write_within(fs, inode, offset, from);
        if written.is_err() {
            let _ = self.truncate(fs, inode, before);
        }
        written
    }

    /// Moves the end of a file. A longer one may take more or not, so it is looked at, and made what it was if that was too much.
    fn truncate<F: FileSystem>(&mut self, fs: &mut F, inode: Inode, len: u64) -> Result<()> {
        let before = self.look(fs, inode)?;
        fs.truncate(inode, len)?;
        if len <= before.len {
            self.charge(fs, inode)?.len = len;
            return Ok(());
        }
        let after = self.look(fs, inode)?;
        if after.allocated <= before.allocated || self.used.bytes <= self.limit.bytes {
            return Ok(());
        }
        self.settle(fs);
        if self.used.bytes <= self.limit.bytes {
            return Ok(());
        }
        fs.truncate(inode, before.len)?;
        self.recount(after.allocated, fs.attributes(inode)?.allocated);
        Err(Error::NoSpace)
    }

    /// Does something that directories may take more or less room by.
    fn around<F: FileSystem, T>(
        &mut self,
        fs: &mut F,
        directories: &[Inode],
        run: impl FnOnce(&mut F) -> Result<T>,
    ) -> Result<T> {
        // Room that one of them takes more is counted here, and not when it is looked at.
        directories.iter().for_each(|&directory| self.close(fs, directory));
        let sum = |fs: &mut F| {
            directories.iter().try_fold(0u64, |sum, &directory| {
                Ok::<u64, Error>(sum.saturating_add(fs.attributes(directory)?.allocated))
            })
        };
        let before = sum(fs)?;
        let done = run(fs);
        let after = sum(fs).unwrap_or(before);
        self.recount(before, after);
        done
    }

    /// Changes extended attributes of an inode, if there is room for blocks of so many bytes.
    fn attaching<F: FileSystem>(
        &mut self,
        fs: &mut F,
        inode: Inode,
        bytes: u64,
        run: impl FnOnce(&mut F) -> Result<()>,
    ) -> Result<()> {
        if !self.has_room(fs, bytes) {
            return Err(Error::NoSpace);
        }
        self.charge(fs, inode)?;
        let done = run(fs);
        self.look(fs, inode)?;
        done
    }

    /// Makes a name in the last of these directories, if there is room for blocks of so many bytes.
    fn naming<F: FileSystem, T>(
        &mut self,
        fs: &mut F,
        directories: &[Inode],
        bytes: u64,
        run: impl FnOnce(&mut F) -> Result<T>,
    ) -> Result<T> {
        if !self.has_room(fs, bytes) {
            return Err(Error::NoSpace);
        }
        self.around(fs, directories, run)
    }

    fn create<F: FileSystem>(
        &mut self,
        fs: &mut F,
        directory: Inode,
        name: Name,
        new: New,
        permissions: u16,
    ) -> Result<Inode> {
        if self.used.files >= self.limit.files {
            return Err(Error::NoSpace);
        }
        let bytes = if new == New::File { BLOCK } else { 2 * BLOCK };
        let made = self.naming(fs, &[directory], bytes, |fs| fs.create(directory, name, new, permissions))?;
        self.used.files += 1;
        // It is found by the next one who asks, so to ask costs nothing.
        let found = fs.attributes(made).map_or(0, |found| found.allocated);
        self.recount(0, found);
        Ok(made)
    }

    fn rename<F: FileSystem>(&mut self, fs: &mut F, from: (Inode, Name), to: (Inode, Name)) -> Result<()> {
        let both = [from.0, to.0];
        let directories = if from.0 == to.0 { &both[..1] } else { &both[..] };
        self.naming(fs, directories, BLOCK, |fs| fs.rename(from.0, from.1, to.0, to.1))
    }

    /// An inode without names goes.
    fn forget<F: FileSystem>(&mut self, fs: &mut F, inode: Inode) -> Result<()> {
        let bytes = match self.charged.get(&inode) {
            Some(charge) => charge.bytes,
            None => fs.attributes(inode)?.allocated,
        };
        fs.forget(inode)?;
        self.charged.remove(&inode);
        self.recount(bytes, 0);
        self.used.files = self.used.files.saturating_sub(1);
        Ok(())
    }

    /// How much there is, and how much of the part.
    fn space(&mut self, fs: &mut impl FileSystem) -> Result<Space> {
        self.settle(fs);
        let found = fs.space()?;
        Ok(Space {
            total: found.total.min(self.limit.bytes),
            free: found.free.min(self.room()),
            files: found.files.min(self.limit.files),
            files_free: found.files_free.min(self.limit.files.saturating_sub(self.used.files)),
        })
    }
}

/// Operations that take room or give some back are counted; all others are the file system's own.
impl<F: FileSystem> FileSystem for Quota<F> {
    fn root(&self) -> Inode {
        self.fs.root()
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        self.fs.attributes(inode)
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        self.fs.len(file)
    }

    fn kind_of(&mut self, inode: Inode) -> Result<Kind> {
        self.fs.kind_of(inode)
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        self.fs.change(inode, changes)
    }

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        self.fs.xattr(inode, name)
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.xattrs(inode)
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        match &mut self.books {
            Some(books) => {
                books.attaching(&mut self.fs, inode, BLOCK, |fs| fs.set_xattr(inode, name, value, before))
            }
            None => self.fs.set_xattr(inode, name, value, before),
        }
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        match &mut self.books {
            Some(books) => books.attaching(&mut self.fs, inode, 0, |fs| fs.remove_xattr(inode, name)),
            None => self.fs.remove_xattr(inode, name),
        }
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.fs.lookup(directory, name)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        self.fs.readdir(directory, cursor, count_max)
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        match &mut self.books {
            Some(books) => books.create(&mut self.fs, directory, name, new, permissions),
            None => self.fs.create(directory, name, new, permissions),
        }
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        match &mut self.books {
            Some(books) => {
                books.naming(&mut self.fs, &[directory], BLOCK, |fs| fs.link(inode, directory, name))
            }
            None => self.fs.link(inode, directory, name),
        }
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        match &mut self.books {
            Some(books) => books.around(&mut self.fs, &[directory], |fs| fs.unlink(directory, name)),
            None => self.fs.unlink(directory, name),
        }
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        match &mut self.books {
            Some(books) => books.around(&mut self.fs, &[directory], |fs| fs.rmdir(directory, name)),
            None => self.fs.rmdir(directory, name),
        }
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        match &mut self.books {
            Some(books) => books.rename(&mut self.fs, (from, name), (to, new_name)),
            None => self.fs.rename(from, name, to, new_name),
        }
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        match &mut self.books {
            Some(books) => books.forget(&mut self.fs, inode),
            None => self.fs.forget(inode),
        }
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.readlink(inode)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        self.fs.read(inode, offset, to)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        match &mut self.books {
            Some(books) if !from.is_empty() => books.write(&mut self.fs, inode, offset, from),
            _ => self.fs.write(inode, offset, from),
        }
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        match &mut self.books {
            Some(books) => books.truncate(&mut self.fs, inode, len),
            None => self.fs.truncate(inode, len),
        }
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        self.fs.sync(inode)
    }

    fn space(&mut self) -> Result<Space> {
        match &mut self.books {
            Some(books) => books.space(&mut self.fs),
            None => self.fs.space(),
        }
    }

    fn is_read_only(&self) -> bool {
        self.fs.is_read_only()
    }

    #[inline]
    fn begin(&mut self) {
        self.fs.begin();
    }

    #[inline]
    fn others(&mut self) -> Option<u64> {
        self.fs.others()
    }

    fn knows_all_changes(&self) -> bool {
        self.fs.knows_all_changes()
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        self.fs.hold(inode)
    }

    fn release(&mut self, inode: Inode) {
        if let Some(books) = &mut self.books {
            books.close(&mut self.fs, inode);
        }
        self.fs.release(inode);
    }
}

#[cfg(test)]
mod tests;
