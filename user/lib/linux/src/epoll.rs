//! Lists of open files that programs wait for: `epoll`.
//!
//! A list remembers which of its entries have heard of something, and looks at these alone, so that a wait costs nothing for entries at which nothing happens.
//! An entry that is told of changes only, `EPOLLET`, hears of each once; another one stays in the list for as long as it is ready.
//!
//! [`Watches`] leads from what happens to the entries that hear of it.

use crate::budget::Share;
use crate::errno::{EEXIST, EINVAL, ENOENT, ENOMEM, ENOSPC, Result};
use crate::open::{Object, Open};
use crate::places::shorten_queue;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{
    EPOLLERR, EPOLLET, EPOLLEXCLUSIVE, EPOLLHUP, EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLWAKEUP,
};

/// Entries of all lists, at most.
const ENTRIES_MAX: usize = 16384;

/// Bytes of the budget that an entry counts for, with its places in tables.
pub const ENTRY_BYTES: usize = 320;

/// Lists that are entries of one another, at most, in one direction.
pub const NESTED_MAX: usize = 4;

/// Bits that say how an entry is told, and not of what.
const PRIVATE: u32 = EPOLLWAKEUP | EPOLLONESHOT | EPOLLET | EPOLLEXCLUSIVE;

/// Bits that may stand beside `EPOLLEXCLUSIVE`.
const BESIDE_EXCLUSIVE: u32 =
    EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;

/// Number of something that happens: that of a pipe or the like, or one of [`SIGNALS`], or one of [`TERMINALS`].
pub type Source = u64;

/// Signals of a process, by its number from here on.
pub const SIGNALS: Source = 1 << 63;

/// Number of the first terminal; each has one more than the one before.
pub const TERMINALS: Source = u64::MAX << 32;

/// Descriptor, and address of the open file behind it. No other one has the address for as long as there is an entry.
pub type Key = (u32, usize);

/// Key of a descriptor.
pub fn key(fd: u32, open: &Rc<Open>) -> Key {
    (fd, Rc::as_ptr(open) as usize)
}

/// Events of an entry that a program wants to hear of, and the number by which it knows the entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Bits `EPOLL…`.
    pub events: u32,
    /// The number.
    pub data: u64,
}

/// An entry.
#[derive(Debug)]
struct Entry {
    open: Weak<Open>,
    /// Bits that can happen to the open file.
    possible: u32,
    wanted: Wanted,
    is_queued: bool,
}

impl Entry {
    /// Whether it was told once, and is to be told nothing more.
    fn is_silent(&self) -> bool {
        self.wanted.events & !PRIVATE == 0
    }
}

/// A list.
#[derive(Debug)]
pub struct Epoll {
    /// Number that no other has.
    pub number: u64,
    entries: RefCell<BTreeMap<Key, Entry>>,
    /// Entries that have heard of something since they were looked at.
    heard: RefCell<VecDeque<Key>>,
    /// Share of the budget that the entries have.
    share: RefCell<Share>,
}

/// Everything but what is on the other side of a pipe, each end of which hears of itself alone.
fn possible(open: &Open) -> u32 {
    use crate::pipe::ready;
    match &open.object {
        Object::Fifo(fifo) if !fifo.writes => !u32::from(ready::WRITE),
        Object::Fifo(fifo) if !fifo.reads => !u32::from(ready::READ),
        Object::Reader(_) => !u32::from(ready::WRITE),
        Object::Writer(_) => !u32::from(ready::READ),
        _ => u32::MAX,
    }
}

impl Epoll {
    /// An empty list, with a share that is empty, too.
    pub fn new(number: u64, share: Share) -> Rc<Epoll> {
        let share = RefCell::new(share);
        Rc::new(Epoll { number, entries: RefCell::default(), heard: RefCell::default(), share })
    }

    fn check(wanted: Wanted, is_list: bool) -> Result<()> {
        let is_exclusive = wanted.events & EPOLLEXCLUSIVE != 0;
        if is_exclusive && (is_list || wanted.events & !BESIDE_EXCLUSIVE != 0) { Err(EINVAL) } else { Ok(()) }
    }

    /// Bytes that the entries count for.
    pub fn bytes(&self) -> usize {
        self.entries.borrow().len() * ENTRY_BYTES
    }

    /// Places of the queue of entries that have heard of something.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.heard.borrow().capacity()
    }

    /// Adds an entry. `ENOMEM`: the budget has no room for it.
    pub fn add(&self, fd: u32, open: &Rc<Open>, wanted: Wanted) -> Result<()> {
        Epoll::check(wanted, matches!(open.object, Object::Epoll(_)))?;
        let mut entries = self.entries.borrow_mut();
        if entries.contains_key(&key(fd, open)) {
            return Err(EEXIST);
        }
        if !self.share.borrow_mut().resize((entries.len() + 1) * ENTRY_BYTES) {
            return Err(ENOMEM);
        }
        let wanted = Wanted { events: wanted.events | EPOLLERR | EPOLLHUP, ..wanted };
        let (possible, is_queued) = (possible(open), false);
        let entry = Entry { open: Rc::downgrade(open), possible, wanted, is_queued };
        entries.insert(key(fd, open), entry);
        Ok(())
    }

    /// Changes an entry.
    pub fn change(&self, key: Key, wanted: Wanted) -> Result<()> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(&key).ok_or(ENOENT)?;
        if (entry.wanted.events | wanted.events) & EPOLLEXCLUSIVE != 0 {
            return Err(EINVAL);
        }
        entry.wanted = Wanted { events: wanted.events | EPOLLERR | EPOLLHUP, ..wanted };
        Ok(())
    }

    /// Removes an entry.
    pub fn remove(&self, key: Key) -> Result<()> {
        let entry = self.entries.borrow_mut().remove(&key).ok_or(ENOENT)?;
        self.share.borrow_mut().set(self.bytes());
        let mut heard = self.heard.borrow_mut();
        if entry.is_queued {
            heard.retain(|heard| *heard != key);
        }
        // There have been as many at most as there were entries.
        shorten_queue(&mut heard);
        Ok(())
    }

    /// Keys of the entries.
    pub fn keys(&self) -> Vec<Key> {
        self.entries.borrow().keys().copied().collect()
    }

    /// Open files of the entries.
    pub fn files(&self) -> Vec<Rc<Open>> {
        self.entries.borrow().values().filter_map(|entry| entry.open.upgrade()).collect()
    }

    /// An entry hears that bits may be new. Whether that is of interest.
    pub fn hear(&self, key: Key, bits: u32) -> bool {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(&key) else { return false };
        if entry.is_silent() || entry.wanted.events & !PRIVATE & entry.possible & bits == 0 {
            return false;
        }
        if !entry.is_queued {
            entry.is_queued = true;
            self.heard.borrow_mut().push_back(key);
        }
        true
    }

    /// Entries that have heard of something.
    pub fn heard(&self) -> usize {
        self.heard.borrow().len()
    }

    /// Takes the next entry that has heard of something: its key, its open file, and what is wanted of it.
    pub fn next(&self) -> Option<(Key, Rc<Open>, Wanted)> {
        loop {
            let key = self.heard.borrow_mut().pop_front()?;
            let mut entries = self.entries.borrow_mut();
            let Some(entry) = entries.get_mut(&key) else { continue };
            entry.is_queued = false;
            if let Some(open) = entry.open.upgrade() {
                return Some((key, open, entry.wanted));
            }
        }
    }

    /// Puts an entry back that was [taken](Epoll::next), in front of all or behind them.
    pub fn put_back(&self, key: Key, is_first: bool) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(&key).filter(|entry| !entry.is_queued) else { return };
        entry.is_queued = true;
        let mut heard = self.heard.borrow_mut();
        if is_first {
            heard.push_front(key);
        } else {
            heard.push_back(key);
        }
    }

    /// An entry was told of. It is looked at again the next time, unless it hears of changes alone, or of the first.
    pub fn told(&self, key: Key) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(&key) else { return };
        let events = entry.wanted.events;
        if events & EPOLLONESHOT != 0 {
            entry.wanted.events &= PRIVATE;
            return;
        }
        drop(entries);
        if events & EPOLLET == 0 {
            self.put_back(key, false);
        }
    }
}

/// An entry of a list that hears of something.
#[derive(Debug)]
struct Watch {
    epoll: Weak<Epoll>,
    key: Key,
}

/// Place of an entry among those that hear of one thing: the newest has the greatest.
type Order = u64;

/// An entry by its open file, its descriptor, and its list: addresses that no others have for as long as there is the entry.
type OfFile = (usize, u32, usize);

fn of_file(epoll: &Rc<Epoll>, (fd, open): Key) -> OfFile {
    (open, fd, Rc::as_ptr(epoll) as usize)
}

/// Entries of all lists, by what they hear of, and by their open files. One ends in few steps, however many others hear of the same.
#[derive(Debug, Default)]
pub struct Watches {
    by_source: BTreeMap<(Source, Order), Watch>,
    by_file: BTreeMap<OfFile, (Source, Order)>,
    /// Entries that were added so far.
    added: Order,
}

impl Watches {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_source.is_empty()
    }

    /// Entries that hear of something, from the oldest on.
    fn of(&self, source: Source) -> impl DoubleEndedIterator<Item = &Watch> {
        self.by_source.range((source, 0)..=(source, Order::MAX)).map(|(_, watch)| watch)
    }

    /// Whether somebody hears of something.
    pub fn has(&self, source: Source) -> bool {
        self.of(source).next().is_some()
    }

    /// Places of all entries.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.by_source.len() + self.by_file.len()
    }

    /// Whether there is room for one more.
    pub fn check_room(&self) -> Result<()> {
        if self.by_source.len() >= ENTRIES_MAX { Err(ENOSPC) } else { Ok(()) }
    }

    /// An entry hears of something from now on.
    pub fn add(&mut self, source: Source, epoll: &Rc<Epoll>, key: Key) {
        self.added += 1;
        self.by_source.insert((source, self.added), Watch { epoll: Rc::downgrade(epoll), key });
        self.by_file.insert(of_file(epoll, key), (source, self.added));
    }

    /// An entry hears of nothing more.
    pub fn remove(&mut self, epoll: &Rc<Epoll>, key: Key) {
        if let Some(place) = self.by_file.remove(&of_file(epoll, key)) {
            self.by_source.remove(&place);
        }
    }

    /// An open file is closed, which has been at an address: its entries end.
    pub fn forget(&mut self, open: usize) {
        let all = (open, 0, 0)..=(open, u32::MAX, usize::MAX);
        while let Some((&entry, &place)) = self.by_file.range(all.clone()).next() {
            self.by_file.remove(&entry);
            let Some(Watch { epoll, key }) = self.by_source.remove(&place) else { continue };
            if let Some(epoll) = epoll.upgrade() {
                let _ = epoll.remove(key);
            }
        }
    }

    /// Lists that have an entry which hears of something.
    pub fn lists(&self, source: Source) -> Vec<Rc<Epoll>> {
        self.of(source).filter_map(|watch| watch.epoll.upgrade()).collect()
    }

    /// Entries hear that bits may be new: numbers of the lists for which that is of interest. The entry that is the newest hears first, as in Linux.
    pub fn hear(&self, source: Source, bits: u32) -> Vec<u64> {
        let interested = self.of(source).rev().filter_map(|watch| {
            let epoll = watch.epoll.upgrade()?;
            epoll.hear(watch.key, bits).then_some(epoll.number)
        });
        interested.collect()
    }
}
