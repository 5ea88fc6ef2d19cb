//! Pages for a file system that has none of its own: copies of what it reads.
//!
//! A page is written back when its file is synced, if somebody who has mapped it has changed it. Whoever reads or writes the file as before finds what is in the page.
//!
//! One in front of a file system that [knows all changes](FileSystem::knows_all_changes) may [keep](Cached::keeping) pages that nobody holds: a file that is read again costs
//! the file system nothing, and its length is known. What is written goes to the file system at once, and to the page as well, so a page that is kept never has anything that
//! the file system has not. Others are forgotten when nobody holds them.

mod store;

use crate::page::{PAGE, Page, Paged, parts};
use crate::{Attributes, Before, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use store::{Contents, Store};

/// A file system with pages.
#[derive(Debug)]
pub struct Cached<F, P> {
    fs: F,
    store: Store<P>,
    /// Pages that nobody holds are kept, and lengths of files are known.
    is_keeping: bool,
    /// Whether bytes of pages were brought to files since it was asked for.
    has_written: bool,
}

impl<F: FileSystem, P: Page> Cached<F, P> {
    /// At most so many pages of a file system, each as long as somebody holds it.
    pub const fn new(fs: F, pages_max: usize) -> Cached<F, P> {
        Cached { fs, store: Store::new(pages_max), is_keeping: false, has_written: false }
    }

    /// At most so many pages of a file system, which are kept. One that does not [know all changes](FileSystem::knows_all_changes) is as by [`new`](Cached::new).
    pub fn keeping(fs: F, pages_max: usize) -> Cached<F, P> {
        let is_keeping = fs.knows_all_changes();
        Cached { fs, store: Store::new(pages_max), is_keeping, has_written: false }
    }

    /// The file system. Nobody has pages of it any more; what was written to them was synced before, or is lost.
    pub fn into_inner(self) -> F {
        self.fs
    }

    /// How many pages there are.
    pub fn pages_count(&self) -> usize {
        self.store.count()
    }

    /// Pages of a file, and its length if it is known.
    fn contents(&mut self, file: Inode) -> Result<&mut Contents<P>> {
        if !self.store.has(file) {
            let len = if self.is_keeping { Some(self.fs.len(file)?) } else { None };
            self.store.insert(file, len);
        }
        self.store.get(file).ok_or(Error::NotFound)
    }

    /// Bytes of a file. They are known if pages are kept.
    fn end(&mut self, file: Inode) -> Result<u64> {
        match self.contents(file)?.len() {
            Some(len) => Ok(len),
            None => self.fs.len(file),
        }
    }

    /// Writes pages of a file back that have changed, and goes on when one cannot be written: a page of one client is no reason for another's not to be.
    /// Gives back the first error.
    fn write_back(&mut self, file: Inode, is_meant: impl Fn(&P) -> bool) -> Result<()> {
        let mut outcome = Ok(());
        let Some(contents) = self.store.get(file) else { return outcome };
        for (&number, copy) in contents.writable() {
            if !is_meant(&copy.page) {
                continue;
            }
            let written = write_page(&mut self.fs, file, number, &copy.page);
            // One that cannot be written may have been in part.
            self.has_written |= written != Ok(false);
            let written = written.map(drop);
            if written.is_ok() {
                // A holder may go on to write.
                copy.is_writable = copy.page.is_shared();
            }
            outcome = outcome.and(written);
        }
        contents.count_writable();
        outcome
    }

    /// Writes pages back that somebody has changed who holds them no more. One that cannot be written is lost: its last holder was told so when he synced.
    fn settle(&mut self) {
        for file in self.store.writable() {
            let _ = self.write_back(file, |page| !page.is_shared());
            self.store.lose(file, |copy| copy.is_writable && !copy.page.is_shared());
        }
    }

    /// Makes room for a page, if there is none: those that were not used for the longest time go. Where pages are not kept, all go that nobody holds.
    fn make_room(&mut self) {
        self.settle();
        if !self.is_keeping {
            self.store.lose_unheld();
        } else if self.store.is_full() {
            self.store.lose_oldest();
        }
    }

    /// A page of zeros. If there is no memory for one, those that are kept are given up, some of them at a time.
    fn zeroed(&mut self) -> Result<P> {
        loop {
            if let Some(page) = P::zeroed() {
                return Ok(page);
            }
            if self.store.lose_oldest() == 0 {
                return Err(Error::NoSpace);
            }
        }
    }

    /// Reads a page that is not there yet.
    fn load(&mut self, file: Inode, number: u64) -> Result<()> {
        self.make_room();
        if self.store.is_full() {
            return Err(Error::NoSpace);
        }
        let page = self.zeroed()?;
        let mut bytes = [0; PAGE];
        let len = self.fs.read(file, number * PAGE as u64, &mut bytes)?;
        page.write(0, &bytes[..len]);
        let contents = self.contents(file)?;
        // The file system knows that it was read.
        contents.is_marked = true;
        self.store.put(file, number, page);
        Ok(())
    }

    /// Tells the file system that a file is read, if it was not since it was changed: it may have a time to note.
    fn mark(&mut self, file: Inode) -> Result<()> {
        let contents = self.contents(file)?;
        if !contents.is_marked {
            contents.is_marked = true;
            self.fs.read(file, 0, &mut [0])?;
        }
        Ok(())
    }

    /// Does what is to be done before bytes of a page can be sent. Whether there is such a page.
    fn make_ready(&mut self, file: Inode, number: u64) -> Result<bool> {
        if !self.is_keeping || number >= self.end(file)?.div_ceil(PAGE as u64) {
            return Ok(false);
        }
        if !self.store.has_page(file, number) && self.load(file, number).is_err() {
            return Ok(false);
        }
        self.mark(file)?;
        // The file system has all that is sent.
        self.write_back(file, |page| !page.is_shared())?;
        Ok(true)
    }

    /// Puts what pages have over bytes that were read.
    fn overlay(&mut self, file: Inode, offset: u64, to: &mut [u8]) {
        let Some(contents) = self.store.get(file) else { return };
        let mut done = 0;
        for (number, first, len) in parts(offset, to.len()) {
            if let Some(copy) = contents.page(number) {
                copy.page.read(first, &mut to[done..done + len]);
            }
            done += len;
        }
    }

    /// Reads at most a page's bytes, by way of pages that are kept.
    fn read_kept(&mut self, file: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let count = self.end(file)?.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut done = 0;
        for (number, first, len) in parts(offset, count) {
            let part = &mut to[done..done + len];
            let is_there = self.store.has_page(file, number) || self.load(file, number).is_ok();
            if is_there && let Some(copy) = self.store.used(file, number) {
                copy.page.read(first, part);
            } else if self.fs.read(file, offset + done as u64, part)? < len {
                return Err(Error::Io);
            }
            done += len;
        }
        if count > 0 {
            self.mark(file)?;
        }
        Ok(count)
    }

    /// A change of a file has failed, maybe after a part of it: nothing that was known of it is, but what others hold.
    fn doubt(&mut self, file: Inode) {
        self.store.lose(file, |copy| !copy.is_writable && !copy.page.is_shared());
        if self.is_keeping
            && let Ok(len) = self.fs.len(file)
            && let Some(contents) = self.store.get(file)
        {
            contents.set_len(len);
        }
    }

    /// Pages get bytes that were written to the file.
    fn write_pages(&mut self, file: Inode, offset: u64, from: &[u8]) {
        let mut done = 0;
        for (number, first, len) in parts(offset, from.len()) {
            self.store.change(file, number, |page| page.write(first, &from[done..done + len]));
            done += len;
        }
    }

    /// The end of a file is there, or was. Bytes behind it are zeros, whatever somebody has put there who has the page.
    fn clear_behind(&mut self, file: Inode, end: u64) {
        let at = (end % PAGE as u64) as usize;
        if at > 0 {
            self.store.change(file, end / PAGE as u64, |page| page.clear(at));
        }
    }
}

/// Writes a page of a file, as far as the file goes, unless it is there already. Whether it was not.
fn write_page<F: FileSystem, P: Page>(fs: &mut F, file: Inode, number: u64, page: &P) -> Result<bool> {
    let (mut now, mut before) = ([0; PAGE], [0; PAGE]);
    let offset = number * PAGE as u64;
    let len = fs.read(file, offset, &mut before)?;
    page.read(0, &mut now[..len]);
    let is_there = now[..len] == before[..len];
    let mut written = if is_there { len } else { 0 };
    while written < len {
        match fs.write(file, offset + written as u64, &now[written..len])? {
            0 => return Err(Error::NoSpace),
            more => written += more,
        }
    }
    Ok(!is_there)
}

impl<F: FileSystem, P: Page> Paged for Cached<F, P> {
    type Page = P;

    fn page(&mut self, file: Inode, number: u64, is_writable: bool) -> Result<P> {
        let end = self.end(file)?;
        if number >= end.div_ceil(PAGE as u64) {
            return Err(Error::Invalid);
        }
        if !self.store.has_page(file, number) {
            self.load(file, number)?;
        }
        let copy = self.store.used(file, number).ok_or(Error::NotFound)?;
        if copy.page.is_sent() {
            copy.page = copy.page.copied().ok_or(Error::NoSpace)?;
        }
        let there = end - number * PAGE as u64;
        if there < PAGE as u64 && !copy.page.is_shared() {
            // Somebody may have written behind the end who held it.
            copy.page.clear(there as usize);
        }
        let page = copy.page.clone();
        if is_writable {
            copy.is_writable = true;
            self.contents(file)?.count_writable();
        }
        Ok(page)
    }

    fn pages_max(&self) -> usize {
        self.store.count_max()
    }

    fn send(&mut self, file: Inode, offset: u64, len: usize) -> Result<Option<P::Sent>> {
        if let Some(outcome) = self.store.send(file, offset, len) {
            return Ok(outcome);
        }
        let is_ready = self.make_ready(file, offset / PAGE as u64)?;
        Ok(if is_ready { self.store.send(file, offset, len).flatten() } else { None })
    }

    fn len_word(&mut self, file: Inode) -> Option<Arc<AtomicU64>> {
        let is_known = self.is_keeping && self.fs.kind_of(file) == Ok(Kind::File);
        if is_known { self.contents(file).ok()?.len_word() } else { None }
    }

    fn take_written(&mut self) -> bool {
        core::mem::take(&mut self.has_written)
    }

    fn write_back_all(&mut self) {
        for file in self.store.writable() {
            // Each holder is told when he syncs.
            let _ = self.write_back(file, |_| true);
        }
    }
}

/// Reading, writing and moving the end look at pages; all else is as it was.
impl<F: FileSystem, P: Page> FileSystem for Cached<F, P> {
    fn root(&self) -> Inode {
        self.fs.root()
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        self.fs.attributes(inode)
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        match self.store.get(file).and_then(|contents| contents.len()) {
            Some(len) => Ok(len),
            None => self.fs.len(file),
        }
    }

    fn kind_of(&mut self, inode: Inode) -> Result<Kind> {
        self.fs.kind_of(inode)
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        if let Some(contents) = self.store.get(inode) {
            contents.is_marked = false;
        }
        self.fs.change(inode, changes)
    }

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        self.fs.xattr(inode, name)
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.xattrs(inode)
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        self.fs.set_xattr(inode, name, value, before)
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        self.fs.remove_xattr(inode, name)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.fs.lookup(directory, name)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        self.fs.readdir(directory, cursor, count_max)
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        self.fs.create(directory, name, new, permissions)
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        self.fs.link(inode, directory, name)
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.fs.unlink(directory, name)
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.fs.rmdir(directory, name)
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        self.fs.rename(from, name, to, new_name)
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        // Another file may get the number.
        self.store.remove(inode);
        self.fs.forget(inode)
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.readlink(inode)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        if self.is_keeping && to.len() <= PAGE {
            return self.read_kept(inode, offset, to);
        }
        let count = self.fs.read(inode, offset, to)?;
        self.overlay(inode, offset, &mut to[..count]);
        Ok(count)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        if !self.store.has(inode) {
            return self.fs.write(inode, offset, from);
        }
        let end = self.end(inode)?;
        let count = self.fs.write(inode, offset, from).inspect_err(|_| self.doubt(inode))?;
        if offset > end {
            self.clear_behind(inode, end);
        }
        self.write_pages(inode, offset, &from[..count]);
        if let Some(contents) = self.store.get(inode) {
            contents.is_marked = false;
            contents.set_len(end.max(offset + count as u64));
        }
        Ok(count)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        if !self.store.has(inode) {
            return self.fs.truncate(inode, len);
        }
        let before = self.end(inode)?;
        self.fs.truncate(inode, len).inspect_err(|_| self.doubt(inode))?;
        self.clear_behind(inode, len.min(before));
        self.store.cut(inode, len.div_ceil(PAGE as u64));
        if let Some(contents) = self.store.get(inode) {
            contents.is_marked = false;
            contents.set_len(len);
        }
        Ok(())
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        let written = self.write_back(inode, |_| true);
        self.fs.sync(inode).and(written)
    }

    fn space(&mut self) -> Result<Space> {
        self.fs.space()
    }

    fn is_read_only(&self) -> bool {
        self.fs.is_read_only()
    }

    fn knows_all_changes(&self) -> bool {
        self.fs.knows_all_changes()
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        self.fs.hold(inode)
    }

    fn release(&mut self, inode: Inode) {
        self.store.released(inode);
        self.fs.release(inode);
    }
}
