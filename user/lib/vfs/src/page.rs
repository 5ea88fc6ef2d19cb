//! Pages of files where they lie: others may look at them and write to them there.
//!
//! A file system gives a page out as a [`Page`], and has it no more to itself: whoever holds one reads and writes the file's own bytes. The page lives until
//! nobody holds it, also when the file was cut off in front of it meanwhile, or is gone. So nobody loses a page that he has mapped, whatever others do.

use crate::{FileSystem, Inode, Result};
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell, RefMut};
use core::ops::Deref;
use core::sync::atomic::AtomicU64;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// A page of memory. A clone is the same page.
pub trait Page: Clone {
    /// A page of zeros that nobody has, if there is memory for one.
    fn zeroed() -> Option<Self>;

    /// Copies bytes from `at` on, which lie in the page.
    fn read(&self, at: usize, to: &mut [u8]);

    /// Overwrites bytes from `at` on, which lie in the page.
    fn write(&self, at: usize, from: &[u8]);

    /// Makes all bytes from `at` on zeros.
    fn clear(&self, at: usize);

    /// Whether somebody has it beside the one who asks, and beside what is [sent](Page::send) of it.
    fn is_shared(&self) -> bool;

    /// Bytes that do not change as long as this is there.
    type Sent: Deref<Target = [u8]>;

    /// Bytes from `at` on, which lie in the page, to be sent from there. `None` if the page [is shared](Page::is_shared), and so could be written meanwhile.
    fn send(&mut self, at: usize, len: usize) -> Option<Self::Sent>;

    /// Whether bytes of it are sent. Nobody may write to it then, nor give it to others who could.
    fn is_sent(&self) -> bool;

    /// Another page with the same bytes, if there is memory for one.
    fn copied(&self) -> Option<Self>;
}

/// Bytes of a file system's page that do not change as long as this is there.
pub type Sent<F> = <<F as Paged>::Page as Page>::Sent;

/// A file system that gives out pages of its files.
pub trait Paged: FileSystem {
    /// Its pages.
    type Page: Page;

    /// The page of a file with that number. It begins in front of the file's end, and what lies behind the end is zeros. Who takes it to be written asks for
    /// one that is `writable`.
    fn page(&mut self, file: Inode, number: u64, is_writable: bool) -> Result<Self::Page>;

    /// How many pages may be out at once.
    fn pages_max(&self) -> usize;

    /// Bytes of a file from an offset on, as [`read`](FileSystem::read) gives them, to be sent from the page where they lie. `None` if they do not lie in one, or
    /// others have it: then they are to be read.
    fn send(&mut self, _file: Inode, _offset: u64, _len: usize) -> Result<Option<Sent<Self>>> {
        Ok(None)
    }

    /// A word with the file's length, as it is at each time, if the file system has one.
    fn len_word(&mut self, _file: Inode) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Somebody who may have written to pages of a file has said so, or has them no more: the file's times are those of now, if nobody knows better.
    fn wrote(&mut self, _file: Inode) {}

    /// Whether bytes of pages were brought to files, which have other times since, since this was asked last.
    fn take_written(&mut self) -> bool {
        false
    }

    /// Brings what was written to pages to their files, as far as it can be.
    fn write_back_all(&mut self) {}
}

/// A page of a program without a machine, such as a test.
#[derive(Clone, Debug)]
pub struct Plain {
    bytes: Rc<RefCell<[u8; PAGE]>>,
    /// How many [`PlainSent`] there are.
    sent: Rc<Cell<usize>>,
}

/// Bytes that are sent of one. In the end they are what they were in the beginning, or there is a panic.
#[derive(Debug)]
pub struct PlainSent {
    page: Plain,
    at: usize,
    bytes: Vec<u8>,
}

impl Deref for PlainSent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PlainSent {
    fn drop(&mut self) {
        let end = self.at + self.bytes.len();
        assert_eq!(self.page.bytes.borrow()[self.at..end], self.bytes, "bytes have changed that are sent");
        self.page.sent.update(|sent| sent - 1);
    }
}

impl Plain {
    fn to_change(&self) -> RefMut<'_, [u8; PAGE]> {
        assert!(!self.is_sent(), "bytes of the page are sent");
        self.bytes.borrow_mut()
    }
}

impl Page for Plain {
    fn zeroed() -> Option<Plain> {
        Some(Plain { bytes: Rc::new(RefCell::new([0; PAGE])), sent: Rc::default() })
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes.borrow()[at..at + to.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.to_change()[at..at + from.len()].copy_from_slice(from);
    }

    fn clear(&self, at: usize) {
        self.to_change()[at..].fill(0);
    }

    fn is_shared(&self) -> bool {
        Rc::strong_count(&self.bytes) > 1 + self.sent.get()
    }

    type Sent = PlainSent;

    fn send(&mut self, at: usize, len: usize) -> Option<PlainSent> {
        let page = (!self.is_shared()).then(|| self.clone())?;
        let bytes = self.bytes.borrow()[at..at + len].to_vec();
        self.sent.update(|sent| sent + 1);
        Some(PlainSent { page, at, bytes })
    }

    fn is_sent(&self) -> bool {
        self.sent.get() > 0
    }

    fn copied(&self) -> Option<Plain> {
        let bytes = *self.bytes.borrow();
        Some(Plain { bytes: Rc::new(RefCell::new(bytes)), sent: Rc::default() })
    }
}

/// Parts of a range that lie in one page each: number of the page, and where in it.
pub(crate) fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset + len as u64;
    core::iter::from_fn(move || {
        let (number, first) = (at / PAGE as u64, (at % PAGE as u64) as usize);
        let count = (end - at).min((PAGE - first) as u64);
        at += count;
        (count > 0).then_some((number, first, count as usize))
    })
}
