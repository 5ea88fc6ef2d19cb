//! Intrusive doubly linked lists of threads (row P7).
//!
//! The links lie in the thread control block, so no list operation can fail or fault. A thread can be in one
//! list for each [`Tag`]; the tag selects the pair of links.

use crate::object::ThreadRef;
use core::cell::Cell;
use core::marker::PhantomData;

/// Links of a thread for the lists of one tag.
#[derive(Default)]
pub struct Link {
    next: Cell<Option<ThreadRef>>,
    /// The element before the owner, or the owner itself if it is the first. `None` while it is in no list.
    prev: Cell<Option<ThreadRef>>,
}

impl Link {
    /// Whether the owner is in a list now.
    pub fn is_linked(&self) -> bool {
        self.prev.get().is_some()
    }
}

/// Selects a pair of links in a control block.
pub trait Tag {
    /// The pair of links in a control block.
    fn link(thread: &ThreadRef) -> &Link;
}

/// A first-in, first-out list with removal from anywhere.
pub struct List<T> {
    head: Cell<Option<ThreadRef>>,
    tail: Cell<Option<ThreadRef>>,
    tag: PhantomData<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List::new()
    }
}

impl<T> List<T> {
    /// An empty list.
    pub const fn new() -> Self {
        List { head: Cell::new(None), tail: Cell::new(None), tag: PhantomData }
    }
}

impl<T: Tag> List<T> {
    /// The first element.
    pub fn first(&self) -> Option<ThreadRef> {
        self.head.get()
    }

    /// The element after `thread`, which is in this list.
    pub fn after(&self, thread: ThreadRef) -> Option<ThreadRef> {
        T::link(&thread).next.get()
    }

    /// The element before `thread`, which is in this list.
    pub fn before(&self, thread: ThreadRef) -> Option<ThreadRef> {
        T::link(&thread).prev.get().filter(|&before| before != thread)
    }

    /// Whether nothing is in the list.
    pub fn is_empty(&self) -> bool {
        self.head.get().is_none()
    }

    /// Appends an element that is in no list of this tag.
    pub fn push_back(&self, thread: ThreadRef) {
        let link = T::link(&thread);
        debug_assert!(!link.is_linked(), "thread is in a list already");
        link.next.set(None);
        match self.tail.replace(Some(thread)) {
            Some(last) => {
                link.prev.set(Some(last));
                T::link(&last).next.set(Some(thread));
            }
            None => {
                link.prev.set(Some(thread));
                self.head.set(Some(thread));
            }
        }
    }

    /// Puts an element that is in no list of this tag behind `before`, which is in this list.
    pub fn insert_after(&self, before: ThreadRef, thread: ThreadRef) {
        let Some(behind) = self.after(before) else { return self.push_back(thread) };
        let link = T::link(&thread);
        debug_assert!(!link.is_linked(), "thread is in a list already");
        link.prev.set(Some(before));
        link.next.set(Some(behind));
        T::link(&before).next.set(Some(thread));
        T::link(&behind).prev.set(Some(thread));
    }

    /// Puts an element that is in no list of this tag before all others.
    pub fn push_front(&self, thread: ThreadRef) {
        let link = T::link(&thread);
        debug_assert!(!link.is_linked(), "thread is in a list already");
        link.prev.set(Some(thread));
        link.next.set(self.head.get());
        match self.head.replace(Some(thread)) {
            Some(first) => T::link(&first).prev.set(Some(thread)),
            None => self.tail.set(Some(thread)),
        }
    }

    /// Takes out an element of this list.
    pub fn remove(&self, thread: ThreadRef) {
        let link = T::link(&thread);
        debug_assert!(link.is_linked(), "thread is in no list");
        let (before, next) = (self.before(thread), link.next.get());
        link.prev.set(None);
        match before {
            Some(before) => T::link(&before).next.set(next),
            None => self.head.set(next),
        }
        match next {
            Some(next) => T::link(&next).prev.set(before.or(Some(next))),
            None => self.tail.set(before),
        }
    }

    /// Takes out the first element.
    pub fn pop_front(&self) -> Option<ThreadRef> {
        let first = self.head.get()?;
        self.remove(first);
        Some(first)
    }
}
