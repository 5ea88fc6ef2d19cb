//! Pages that stay in the cache, and pages that go.

use super::{CACHED_MAX, CACHED_MORE};
use crate::frames::{Bytes, Frame, PAGE};
use crate::memory::{FileNumber, Source};
use crate::store::Store;
use vfs::page::Plain;
use vfs::{How, Inode, Ram};

/// Frames whose bytes nobody looks at.
struct Blank;

impl Bytes for Blank {
    fn count(&self) -> u32 {
        1 << 20
    }
    fn make(&mut self, _: Frame) -> bool {
        true
    }
    fn clear(&mut self, _: Frame) {}
    fn copy(&mut self, _: Frame, _: Frame) {}
    fn copy_part(&mut self, _: (Frame, usize), _: (Frame, usize), _: usize) {}
    fn read(&self, _: Frame, _: usize, to: &mut [u8]) {
        to.fill(0);
    }
    fn write(&mut self, _: Frame, _: usize, _: &[u8]) {}
    fn protect(&mut self, _: Frame) {}
    fn withdraw(&mut self, _: Frame) {}
}

/// Makes a file of so many pages.
fn file(store: &mut Store<Blank, Ram<Plain>>, path: &[u8], pages: usize) -> Inode {
    let how = How { create: true, ..How::default() };
    let inode = store.volume.open(store.root, path, how, 0o644).unwrap();
    store.volume.truncate(inode, pages as u64 * PAGE).unwrap();
    inode
}

/// The frame of a page of a file, by way of the cache.
fn cached(store: &mut Store<Blank, Ram<Plain>>, file: Inode, page: usize) -> Frame {
    let source = Source { file: FileNumber(file.0), offset: page as u64 * PAGE };
    store.cached(source).unwrap().unwrap()
}

/// Pages that are mapped cannot go. So it is not looked at each page that comes whether one can, by way of all of them, and pages that come stay for a while.
#[test]
fn pages_stay_beside_many_that_are_mapped() {
    let mut store = Store::new(Blank, Ram::new(1 << 20, || 0));
    let mapped = file(&mut store, b"/mapped", 2 * CACHED_MAX);
    let small = file(&mut store, b"/small", 100);
    let large = file(&mut store, b"/large", 3 * CACHED_MORE);
    for page in 0..2 * CACHED_MAX {
        let frame = cached(&mut store, mapped, page);
        store.frames.share(frame);
    }
    // The first of them may be the one at which it is looked.
    cached(&mut store, small, 0);
    let before = store.cache.len();
    for page in 1..100 {
        cached(&mut store, small, page);
    }
    assert_eq!(store.cache.len(), before + 99);
    // Pages that nobody has mapped are no more than those for all that.
    for page in 0..3 * CACHED_MORE {
        cached(&mut store, large, page);
        assert!(store.cache.len() <= 2 * CACHED_MAX + CACHED_MORE);
    }
}

/// Without mapped pages there are as many as there may be, and never more.
#[test]
fn pages_that_nobody_has_mapped_go() {
    let mut store = Store::new(Blank, Ram::new(1 << 20, || 0));
    let large = file(&mut store, b"/large", 2 * CACHED_MAX + 1);
    for page in 0..=2 * CACHED_MAX {
        cached(&mut store, large, page);
        assert_eq!(store.cache.len(), page % CACHED_MAX + 1);
    }
}
