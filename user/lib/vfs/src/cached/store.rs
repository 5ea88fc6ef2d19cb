//! Pages of files, each with the time of its last use, and lengths of files.

use crate::Inode;
use crate::page::{PAGE, Page};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Part of all pages that goes at once when there is no room: to look for the oldest means to look at all.
const PART: usize = 16;

/// A page of a file.
#[derive(Debug)]
pub struct Copy<P> {
    pub page: P,
    /// Somebody may write to it, or has.
    pub is_writable: bool,
    /// When it was used last.
    used: u64,
}

/// A file.
#[derive(Debug)]
pub struct Contents<P> {
    pages: BTreeMap<u64, Copy<P>>,
    /// How many of them are writable.
    writable: usize,
    /// Its length, if that is known.
    len: Option<Arc<AtomicU64>>,
    /// The file system has heard that it is read, since it was changed.
    pub is_marked: bool,
}

impl<P: Page> Contents<P> {
    pub fn len(&self) -> Option<u64> {
        self.len.as_ref().map(|len| len.load(Ordering::Acquire))
    }

    pub fn len_word(&self) -> Option<Arc<AtomicU64>> {
        self.len.clone()
    }

    pub fn set_len(&self, now: u64) {
        if let Some(len) = &self.len {
            len.store(now, Ordering::Release);
        }
    }

    pub fn page(&self, number: u64) -> Option<&Copy<P>> {
        self.pages.get(&number)
    }

    /// Pages that are writable, with their numbers. [`count_writable`](Contents::count_writable) comes next.
    pub fn writable(&mut self) -> impl Iterator<Item = (&u64, &mut Copy<P>)> {
        // To look at none is to look at no page that is kept.
        let any = if self.writable > 0 { Some(self.pages.iter_mut()) } else { None };
        any.into_iter().flatten().filter(|(_, copy)| copy.is_writable)
    }

    /// Pages have become writable, or are it no more.
    pub fn count_writable(&mut self) {
        self.writable = self.pages.values().filter(|copy| copy.is_writable).count();
    }
}

/// All pages.
#[derive(Debug)]
pub struct Store<P> {
    files: BTreeMap<Inode, Contents<P>>,
    count: usize,
    count_max: usize,
    /// Counts uses.
    now: u64,
}

impl<P: Page> Store<P> {
    pub const fn new(count_max: usize) -> Store<P> {
        Store { files: BTreeMap::new(), count: 0, count_max, now: 0 }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn count_max(&self) -> usize {
        self.count_max
    }

    pub fn is_full(&self) -> bool {
        self.count >= self.count_max
    }

    pub fn has(&self, file: Inode) -> bool {
        self.files.contains_key(&file)
    }

    /// A file that is not there yet, with its length if that is known.
    pub fn insert(&mut self, file: Inode, len: Option<u64>) {
        let len = len.map(|len| Arc::new(AtomicU64::new(len)));
        self.files.insert(file, Contents { pages: BTreeMap::new(), writable: 0, len, is_marked: false });
    }

    #[inline]
    pub fn get(&mut self, file: Inode) -> Option<&mut Contents<P>> {
        self.files.get_mut(&file)
    }

    pub fn has_page(&self, file: Inode, number: u64) -> bool {
        self.files.get(&file).is_some_and(|contents| contents.pages.contains_key(&number))
    }

    /// A file gets a page that it does not have yet.
    pub fn put(&mut self, file: Inode, number: u64, page: P) {
        self.now += 1;
        if let Some(contents) = self.files.get_mut(&file) {
            contents.pages.insert(number, Copy { page, is_writable: false, used: self.now });
            self.count += 1;
        }
    }

    /// A page that is used now.
    #[inline]
    pub fn used(&mut self, file: Inode, number: u64) -> Option<&mut Copy<P>> {
        let copy = self.files.get_mut(&file)?.pages.get_mut(&number)?;
        self.now += 1;
        copy.used = self.now;
        Some(copy)
    }

    /// Bytes of a file to be sent from a page. `None` if something is to be done before; inside, `None` if they do not lie in one page that nobody holds.
    #[inline]
    pub fn send(&mut self, file: Inode, offset: u64, len: usize) -> Option<Option<P::Sent>> {
        let (number, first) = (offset / PAGE as u64, (offset % PAGE as u64) as usize);
        let contents = self.files.get_mut(&file).filter(|contents| contents.is_marked)?;
        let end = contents.len()?;
        let copy = contents.pages.get_mut(&number).filter(|copy| !copy.is_writable)?;
        self.now += 1;
        copy.used = self.now;
        let count = end.saturating_sub(offset).min(len as u64) as usize;
        Some(if count == 0 || count > PAGE - first { None } else { copy.page.send(first, count) })
    }

    /// Changes a page, if it is there. One of which bytes are being sent is another one from now on, or none: the file system has all of it.
    pub fn change(&mut self, file: Inode, number: u64, change: impl FnOnce(&P)) {
        let Some(contents) = self.files.get_mut(&file) else { return };
        let Some(copy) = contents.pages.get_mut(&number) else { return };
        if copy.page.is_sent() {
            let Some(page) = copy.page.copied() else {
                contents.pages.remove(&number);
                self.count -= 1;
                return;
            };
            copy.page = page;
        }
        change(&copy.page);
    }

    /// Files with pages that are writable.
    pub fn writable(&self) -> Vec<Inode> {
        let writable = self.files.iter().filter(|(_, contents)| contents.writable > 0);
        writable.map(|(&file, _)| file).collect()
    }

    /// Forgets some pages of a file.
    pub fn lose(&mut self, file: Inode, is_meant: impl Fn(&Copy<P>) -> bool) {
        if let Some(contents) = self.files.get_mut(&file) {
            let before = contents.pages.len();
            contents.pages.retain(|_, copy| !is_meant(copy));
            self.count -= before - contents.pages.len();
            contents.count_writable();
        }
    }

    /// Forgets pages of a file from a number on.
    pub fn cut(&mut self, file: Inode, first: u64) {
        if let Some(contents) = self.files.get_mut(&file) {
            self.count -= contents.pages.split_off(&first).len();
            contents.count_writable();
        }
    }

    /// Forgets a file.
    pub fn remove(&mut self, file: Inode) {
        if let Some(contents) = self.files.remove(&file) {
            self.count -= contents.pages.len();
        }
    }

    /// Nobody has a file open any more.
    pub fn released(&mut self, file: Inode) {
        if self.files.get(&file).is_some_and(|contents| contents.pages.is_empty()) {
            self.files.remove(&file);
        }
    }

    /// Forgets all pages that nobody holds.
    pub fn lose_unheld(&mut self) {
        self.lose_all(|copy| !copy.page.is_shared());
    }

    /// Forgets those of the pages that nobody holds that were not used for the longest time, a part of all. Gives back how many these are.
    pub fn lose_oldest(&mut self) -> usize {
        let copies = self.files.values().flat_map(|contents| contents.pages.values());
        let unheld = copies.filter(|copy| !copy.is_writable && !copy.page.is_shared());
        let mut times: Vec<u64> = unheld.map(|copy| copy.used).collect();
        times.sort_unstable();
        let Some(&last) = times.get((self.count_max / PART).min(times.len().saturating_sub(1))) else {
            return 0;
        };
        let before = self.count;
        self.lose_all(|copy| copy.used <= last && !copy.is_writable && !copy.page.is_shared());
        before - self.count
    }

    /// Forgets pages, and files of which nothing is left that somebody asks for.
    fn lose_all(&mut self, is_meant: impl Fn(&Copy<P>) -> bool) {
        self.files.retain(|_, contents| {
            let before = contents.pages.len();
            contents.pages.retain(|_, copy| !is_meant(copy));
            self.count -= before - contents.pages.len();
            let is_asked = contents.len.as_ref().is_some_and(|len| Arc::strong_count(len) > 1);
            !contents.pages.is_empty() || is_asked
        });
    }
}
