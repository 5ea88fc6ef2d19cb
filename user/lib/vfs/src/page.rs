//! Pages of files where they lie: others may look at them and write to them there.
//!
//! A file system gives a page out as a [`Page`], and has it no more to itself: whoever holds one reads and writes the file's own bytes. The page lives until
//! nobody holds it, also when the file was cut off in front of it meanwhile, or is gone. So nobody loses a page that he has mapped, whatever others do.

use crate::{FileSystem, Inode, Result};
use alloc::rc::Rc;
use core::cell::RefCell;

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

    /// Whether somebody has it beside the one who asks.
    fn is_shared(&self) -> bool;
}

/// A file system that gives out pages of its files.
pub trait Paged: FileSystem {
    /// Its pages.
    type Page: Page;

    /// The page of a file with that number. It begins in front of the file's end, and what lies behind the end is zeros. Who takes it to be written asks for
    /// one that is `writable`.
    fn page(&mut self, file: Inode, number: u64, is_writable: bool) -> Result<Self::Page>;

    /// How many pages may be out at once.
    fn pages_max(&self) -> usize;

    /// Brings what was written to pages to their files, as far as it can be.
    fn write_back_all(&mut self) {}
}

/// A page of a program without a machine, such as a test.
#[derive(Clone, Debug)]
pub struct Plain(Rc<RefCell<[u8; PAGE]>>);

impl Page for Plain {
    fn zeroed() -> Option<Plain> {
        Some(Plain(Rc::new(RefCell::new([0; PAGE]))))
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }

    fn clear(&self, at: usize) {
        self.0.borrow_mut()[at..].fill(0);
    }

    fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
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
