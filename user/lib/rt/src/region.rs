//! Memory that two tasks have: a piece of the heap of one, mapped over a piece of the heap of the other.
//!
//! The surprise is where the second one's lies. When the task that lent the memory ends, its pages go, and whoever touches them next gets pages of zeroes from
//! the memory manager, since that is what the manager does for a heap: rings in them are broken then, which their reader finds out, and
//! nobody crashes.
#![allow(unsafe_code)]

use crate::lending;
use crate::page::{PAGE, copy};
use alloc::alloc::{Layout, alloc_zeroed};
use alloc::vec::Vec;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::AtomicU64;
use sys::{Fpage, Rights};

/// A piece of this program's heap. It is never given back, since somebody else may have it; what others had is used again
/// after [`take_back`](Region::take_back).
#[derive(Clone, Copy, Debug)]
pub struct Region {
    address: usize,
    log2: u32,
}

impl Region {
    /// `1 << log2` bytes of zeroes, a page at least, if there is memory.
    pub fn new(log2: u32) -> Option<Region> {
        let size = 1usize.checked_shl(log2).filter(|&size| size >= PAGE)?;
        let layout = Layout::from_size_align(size, size).ok()?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then(|| Region { address: start.expose_provenance(), log2 })
    }

    /// Bytes that it has.
    pub const fn size(self) -> usize {
        1 << self.log2
    }

    /// Flexpage to map it to somebody, and to let somebody else's be mapped over it. From then on it is not [offered](crate::offer).
    pub fn fpage(self) -> Fpage {
        if !lending::is_noted(self.address(), 1) {
            lending::note(self.address(), self.size());
        }
        self.whole()
    }

    fn whole(self) -> Fpage {
        Fpage::memory(self.address(), self.log2, Rights::RW)
    }

    /// Where it begins.
    pub const fn address(self) -> u64 {
        self.address as u64
    }

    /// Whether this is the whole of what came, so that what its owner says of the memory is about this.
    pub fn is(self, arrived: Fpage) -> bool {
        arrived.base() == self.address as u64
            && arrived.log2() == self.log2
            && arrived.rights().has(Rights::RW)
    }

    /// Gives back what was mapped over it.
    pub fn clear(self) {
        // SAFETY: these pages are memory that others may change at any time, and is used by atomic words and copies only.
        let _ = unsafe { sys::flush_self(self.whole().with_rights(Rights::RWX)) };
    }

    /// Takes it from all to whom it was mapped. A flush of one's own memory cannot fail; if it did, somebody else would have what is used for another.
    pub fn take_back(self) {
        let _ = sys::flush(self.whole().with_rights(Rights::RWX)).expect("flush failed");
    }

    /// All of its words. Others may change them at any time.
    pub fn words(self) -> &'static [AtomicU64] {
        let words = with_exposed_provenance::<AtomicU64>(self.address);
        // SAFETY: it is allocated, initialised and aligned, and never given back. Whatever is mapped there instead is memory, too, whose every
        // word is a value; nobody has another kind of reference to it.
        unsafe { core::slice::from_raw_parts(words, self.size() / size_of::<AtomicU64>()) }
    }

    /// Copies bytes from `at` on, which lie in it.
    pub fn read(self, at: usize, to: &mut [u8]) {
        assert!(
            at <= self.size() && to.len() <= self.size() - at,
            "{} bytes from {at} on lie outside",
            to.len()
        );
        // SAFETY: these bytes are there, and nobody has a reference to them but atomic words. Others write to them at most, which the copy allows.
        unsafe { copy(to.as_mut_ptr() as usize, self.address + at, to.len()) };
    }

    /// Copies bytes from `at` on, which lie in it, behind those that a list has.
    pub fn append(self, at: usize, len: usize, to: &mut Vec<u8>) {
        assert!(at <= self.size() && len <= self.size() - at, "{len} bytes from {at} on lie outside");
        to.reserve(len);
        let end = to.spare_capacity_mut().as_mut_ptr() as usize;
        // SAFETY: these bytes are there, others write to them at most, and the list has room for as many.
        unsafe { copy(end, self.address + at, len) };
        // SAFETY: so many bytes behind its own have been written.
        unsafe { to.set_len(to.len() + len) };
    }

    /// Overwrites bytes from `at` on, which lie in it.
    pub fn write(self, at: usize, from: &[u8]) {
        assert!(
            at <= self.size() && from.len() <= self.size() - at,
            "{} bytes from {at} on lie outside",
            from.len()
        );
        // SAFETY: these bytes are there, and nobody has a reference to them but atomic words.
        unsafe { copy(self.address + at, from.as_ptr() as usize, from.len()) };
    }
}
