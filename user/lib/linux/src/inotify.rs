//! Lists of files and directories that are watched, each with a queue of what has happened: `inotify`.
//!
//! A queue has an end: when it is full, or the budget is, one event says that others are lost.

use crate::budget::{Budget, Share};
use crate::errno::{EEXIST, EINVAL, ENOMEM, Result};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{
    IN_ALL_EVENTS, IN_IGNORED, IN_ISDIR, IN_MASK_ADD, IN_MASK_CREATE, IN_ONESHOT, IN_Q_OVERFLOW,
};

/// Number of a watch in its list.
pub type Descriptor = i32;

/// Events of a queue, at most.
const EVENTS_MAX: usize = 16_384;

/// Bytes that a watch counts for, with what the file system keeps of it.
const WATCH_BYTES: usize = 512;

/// Bytes that an event counts for beside its name.
const OVERHEAD: usize = 80;

/// Bytes of `struct inotify_event`, and of what names are padded to.
const HEAD_BYTES: usize = 16;

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The watch that heard of it; -1 for none.
    pub watch: Descriptor,
    /// Bits `IN_…`.
    pub bits: u32,
    /// Number that the two events of a move have.
    pub cookie: u32,
    /// Name in the directory that is watched; empty for what is watched itself.
    pub name: Vec<u8>,
}

impl Event {
    /// Bytes as they are read.
    fn len(&self) -> usize {
        let name = if self.name.is_empty() { 0 } else { (self.name.len() + 1).next_multiple_of(HEAD_BYTES) };
        HEAD_BYTES + name
    }

    fn cost(&self) -> usize {
        OVERHEAD + self.name.len()
    }

    fn bytes(&self) -> Vec<u8> {
        let len = self.len();
        let words = [self.watch.cast_unsigned(), self.bits, self.cookie, (len - HEAD_BYTES) as u32];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(&self.name);
        bytes.resize(len, 0);
        bytes
    }
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    inode: u64,
    /// Bits `IN_…` that are wanted.
    wanted: u32,
    /// Number of the watch in the file system.
    source: u64,
}

#[derive(Debug)]
struct State {
    events: VecDeque<Event>,
    /// Bytes of the events, as [`Event::cost`] counts them.
    cost: usize,
    /// Share of the budget that events and watches have.
    share: Share,
    watches: BTreeMap<Descriptor, Watch>,
    by_inode: BTreeMap<u64, Descriptor>,
    last: Descriptor,
}

/// A list.
#[derive(Debug)]
pub struct Inotify {
    /// Number that no other has.
    pub number: u64,
    state: RefCell<State>,
}

impl State {
    /// Adds an event. Whether there is a new one.
    fn put(&mut self, event: Event) -> bool {
        // One that says what the last one says is no news.
        if self.events.back() == Some(&event) {
            return false;
        }
        let cost = self.cost + event.cost();
        let is_loss = event.bits == IN_Q_OVERFLOW;
        if !is_loss && self.events.len() < EVENTS_MAX && self.share.resize(self.bytes_with(cost)) {
            self.cost = cost;
            self.events.push_back(event);
            return true;
        }
        let lost = Event { watch: -1, bits: IN_Q_OVERFLOW, cookie: 0, name: Vec::new() };
        if self.events.back() == Some(&lost) {
            return false;
        }
        // It needs no share: there is one of them for each other event, at most.
        self.events.push_back(lost);
        true
    }

    /// Bytes of the share, if events have so many.
    fn bytes_with(&self, cost: usize) -> usize {
        cost + self.watches.len() * WATCH_BYTES
    }

    fn remove(&mut self, watch: Descriptor) -> Option<u64> {
        let Watch { inode, source, .. } = self.watches.remove(&watch)?;
        self.by_inode.remove(&inode);
        self.share.set(self.bytes_with(self.cost));
        self.put(Event { watch, bits: IN_IGNORED, cookie: 0, name: Vec::new() });
        Some(source)
    }
}

impl Inotify {
    /// An empty list, whose events and watches have a share of a budget.
    pub fn new(number: u64, budget: &Budget) -> Rc<Inotify> {
        let state = State {
            events: VecDeque::new(),
            cost: 0,
            share: budget.empty(),
            watches: BTreeMap::new(),
            by_inode: BTreeMap::new(),
            last: 0,
        };
        Rc::new(Inotify { number, state: RefCell::new(state) })
    }

    /// Changes what is wanted of an inode that is watched already. None: it is not.
    pub fn change(&self, inode: u64, mask: u32) -> Option<Result<Descriptor>> {
        let mut state = self.state.borrow_mut();
        let number = *state.by_inode.get(&inode)?;
        let watch = state.watches.get_mut(&number)?;
        if mask & IN_MASK_CREATE != 0 {
            return Some(Err(EEXIST));
        }
        let before = if mask & IN_MASK_ADD != 0 { watch.wanted } else { 0 };
        watch.wanted = before | mask;
        Some(Ok(number))
    }

    /// Bytes of its events and watches, as they are counted.
    pub fn bytes(&self) -> usize {
        let state = self.state.borrow();
        let has_share = |event: &&Event| event.bits != IN_Q_OVERFLOW;
        state.bytes_with(state.events.iter().filter(has_share).map(Event::cost).sum())
    }

    /// Watches an inode. `source`: number of the watch in the file system. `ENOMEM`: the budget has no room for it.
    pub fn add(&self, inode: u64, mask: u32, source: u64) -> Result<Descriptor> {
        let mut state = self.state.borrow_mut();
        let bytes = state.bytes_with(state.cost) + WATCH_BYTES;
        if !state.share.resize(bytes) {
            return Err(ENOMEM);
        }
        state.last = state.last.checked_add(1).unwrap_or(1);
        let number = state.last;
        state.watches.insert(number, Watch { inode, wanted: mask, source });
        state.by_inode.insert(inode, number);
        Ok(number)
    }

    /// Ends a watch, which the queue says. Number of the watch in the file system.
    pub fn remove(&self, watch: Descriptor) -> Option<u64> {
        self.state.borrow_mut().remove(watch)
    }

    /// Numbers of all watches in the file system.
    pub fn sources(&self) -> Vec<u64> {
        self.state.borrow().watches.values().map(|watch| watch.source).collect()
    }

    /// Something has happened. Whether the queue has something new, and whether the watch is over by it.
    pub fn put(&self, event: Event) -> (bool, bool) {
        let mut state = self.state.borrow_mut();
        let (watch, bits) = (event.watch, event.bits);
        let Some(wanted) = state.watches.get(&watch).map(|watch| watch.wanted) else { return (false, false) };
        if bits & IN_ALL_EVENTS & wanted == 0 {
            return (false, false);
        }
        let is_new = state.put(Event { bits: bits & (IN_ALL_EVENTS & wanted | IN_ISDIR), ..event });
        let is_over = wanted & IN_ONESHOT != 0;
        if is_over {
            state.remove(watch);
        }
        (is_new || is_over, is_over)
    }

    /// Something was missed. Whether the queue has something new.
    pub fn lose(&self) -> bool {
        let lost = Event { watch: -1, bits: IN_Q_OVERFLOW, cookie: 0, name: Vec::new() };
        self.state.borrow_mut().put(lost)
    }

    /// Bytes that can be read.
    pub fn len(&self) -> usize {
        self.state.borrow().events.iter().map(Event::len).sum()
    }

    /// Whether nothing can be read.
    pub fn is_empty(&self) -> bool {
        self.state.borrow().events.is_empty()
    }

    /// Places of the queue.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.state.borrow().events.capacity()
    }

    /// Reads events that fit, whole ones. `EINVAL`: not even the first one does.
    pub fn read(&self, to: &mut [u8]) -> Result<usize> {
        let mut state = self.state.borrow_mut();
        let mut done = 0;
        while let Some(event) = state.events.front() {
            let bytes = event.bytes();
            let Some(place) = to.get_mut(done..done + bytes.len()) else { break };
            place.copy_from_slice(&bytes);
            done += bytes.len();
            let Some(event) = state.events.pop_front() else { break };
            let has_share = event.bits != IN_Q_OVERFLOW;
            state.cost = state.cost.saturating_sub(if has_share { event.cost() } else { 0 });
        }
        let bytes = state.bytes_with(state.cost);
        state.share.set(bytes);
        crate::places::shorten_queue(&mut state.events);
        if done == 0 && !state.events.is_empty() { Err(EINVAL) } else { Ok(done) }
    }
}
