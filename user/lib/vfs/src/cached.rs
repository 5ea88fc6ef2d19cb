//! Pages for a file system that has none of its own: copies of what it reads, while somebody holds them.
//!
//! A page is written back when its file is synced, if it has changed. Whoever reads or writes the file as before finds what is in the page.

use crate::page::{PAGE, Page, Paged, parts};
use crate::{Attributes, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A file system with pages.
#[derive(Debug)]
pub struct Cached<F, P> {
    fs: F,
    pages: BTreeMap<(Inode, u64), Copy<P>>,
    pages_max: usize,
    /// Whether bytes of pages were brought to files since it was asked for.
    has_written: bool,
}

#[derive(Debug)]
struct Copy<P> {
    page: P,
    /// Somebody may write to it, or has.
    is_writable: bool,
}

impl<F: FileSystem, P: Page> Cached<F, P> {
    /// At most so many pages of a file system.
    pub const fn new(fs: F, pages_max: usize) -> Cached<F, P> {
        Cached { fs, pages: BTreeMap::new(), pages_max, has_written: false }
    }

    /// The file system. Nobody has pages of it any more; what was written to them was synced before, or is lost.
    pub fn into_inner(self) -> F {
        self.fs
    }

    /// The end of a file is there, or was. Bytes behind it are zeros, whatever somebody has put there who has the page.
    fn clear_behind(&mut self, file: Inode, end: u64) {
        let at = (end % PAGE as u64) as usize;
        if at > 0
            && let Some(copy) = self.pages.get(&(file, end / PAGE as u64))
        {
            copy.page.clear(at);
        }
    }

    /// Writes pages back that have changed and are meant, and goes on when one cannot be written: a page of one client is no reason for another's not to be.
    /// Gives back the first error.
    fn write_back(&mut self, is_meant: impl Fn((Inode, u64)) -> bool) -> Result<()> {
        let mut outcome = Ok(());
        for (&(inode, number), copy) in &mut self.pages {
            if copy.is_writable && is_meant((inode, number)) {
                let written = write_page(&mut self.fs, inode, number, &copy.page);
                // One that cannot be written may have been in part.
                self.has_written |= written != Ok(false);
                let written = written.map(drop);
                if written.is_ok() {
                    // A holder may go on to write.
                    copy.is_writable = copy.page.is_shared();
                }
                outcome = outcome.and(written);
            }
        }
        outcome
    }

    /// Forgets pages that nobody holds, and lets the others be, which may be many. One that cannot be written back is lost: its last holder was told so when he synced.
    fn prune(&mut self) {
        // Looked at once: one that is let go meanwhile, when it was not written back, stays until the next time.
        let unheld = self.pages.iter().filter(|(_, copy)| !copy.page.is_shared());
        let unheld: Vec<(Inode, u64)> = unheld.map(|(&place, _)| place).collect();
        if !unheld.is_empty() {
            let _ = self.write_back(|place| unheld.binary_search(&place).is_ok());
            self.pages.retain(|place, _| unheld.binary_search(place).is_err());
        }
    }

    fn new_page(&mut self, file: Inode, number: u64) -> Result<P> {
        self.prune();
        if self.pages.len() >= self.pages_max {
            return Err(Error::NoSpace);
        }
        let page = P::zeroed().ok_or(Error::NoSpace)?;
        let mut bytes = [0; PAGE];
        let len = self.fs.read(file, number * PAGE as u64, &mut bytes)?;
        page.write(0, &bytes[..len]);
        Ok(page)
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
        if number >= self.fs.len(file)?.div_ceil(PAGE as u64) {
            return Err(Error::Invalid);
        }
        if !self.pages.contains_key(&(file, number)) {
            let page = self.new_page(file, number)?;
            self.pages.insert((file, number), Copy { page, is_writable: false });
        }
        let copy = self.pages.get_mut(&(file, number)).ok_or(Error::NotFound)?;
        copy.is_writable |= is_writable;
        Ok(copy.page.clone())
    }

    fn pages_max(&self) -> usize {
        self.pages_max
    }

    fn take_written(&mut self) -> bool {
        core::mem::take(&mut self.has_written)
    }

    fn write_back_all(&mut self) {
        // Each holder is told when he syncs.
        let _ = self.write_back(|_| true);
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
        self.fs.len(file)
    }

    fn kind_of(&mut self, inode: Inode) -> Result<Kind> {
        self.fs.kind_of(inode)
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        self.fs.change(inode, changes)
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
        self.fs.forget(inode)?;
        self.pages.retain(|&(of, _), _| of != inode);
        Ok(())
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.readlink(inode)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let count = self.fs.read(inode, offset, to)?;
        if !self.pages.is_empty() {
            let mut done = 0;
            for (number, first, len) in parts(offset, count) {
                if let Some(copy) = self.pages.get(&(inode, number)) {
                    copy.page.read(first, &mut to[done..done + len]);
                }
                done += len;
            }
        }
        Ok(count)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        if self.pages.is_empty() {
            return self.fs.write(inode, offset, from);
        }
        let end = self.fs.len(inode)?;
        let count = self.fs.write(inode, offset, from)?;
        if offset > end {
            self.clear_behind(inode, end);
        }
        let mut done = 0;
        for (number, first, len) in parts(offset, count) {
            if let Some(copy) = self.pages.get(&(inode, number)) {
                copy.page.write(first, &from[done..done + len]);
            }
            done += len;
        }
        Ok(count)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        let before = self.fs.len(inode)?;
        self.fs.truncate(inode, len)?;
        self.clear_behind(inode, len.min(before));
        let first = len.div_ceil(PAGE as u64);
        self.pages.retain(|&(of, number), _| of != inode || number < first);
        Ok(())
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        let written = if self.pages.is_empty() { Ok(()) } else { self.write_back(|(of, _)| of == inode) };
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
        self.fs.release(inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ram;
    use crate::page::Plain;

    /// A new page costs the writing back of those that nobody holds, and not of all that others have mapped.
    #[test]
    fn pages_of_others_are_left_alone() -> Result<()> {
        let mut cached: Cached<Ram<Plain>, Plain> = Cached::new(Ram::new(1 << 20, || 0), 10);
        let root = cached.root();
        let mut files = [Inode(0); 3];
        for (file, name) in files.iter_mut().zip([&b"held"[..], b"gone", b"new"]) {
            *file = cached.create(root, Name::new(name)?, New::File, 0o644)?;
            cached.write(*file, 0, b"text")?;
        }
        let [held, gone, new] = files;
        let page = cached.page(held, 0, true)?;
        page.write(0, b"more");
        cached.page(gone, 0, true)?.write(0, b"last");
        cached.page(new, 0, false)?;
        let mut bytes = [0; 4];
        assert_eq!((cached.read(held, 0, &mut bytes)?, &bytes), (4, b"more"));
        let mut fs = cached.into_inner();
        assert_eq!((fs.read(held, 0, &mut bytes)?, &bytes), (4, b"text"));
        assert_eq!((fs.read(gone, 0, &mut bytes)?, &bytes), (4, b"last"));
        Ok(())
    }
}
