//! Pages that stay in the cache, and pages that go.

use super::{CACHED_MAX, CACHED_MORE};
use crate::frames::{Bytes, Frame, PAGE};
use crate::memory::{FileNumber, Source};
use crate::store::Store;
use alloc::collections::BTreeSet;
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

/// The search for mappings of a file without names runs when that file may go: not as long as somebody has it open, nor when others are closed.
#[test]
fn a_file_without_names_is_looked_for_when_it_may_go() {
    let mut store = Store::new(Blank, Ram::new(1 << 20, || 0));
    let [nameless, other] = [&b"/nameless"[..], b"/other"].map(|path| file(&mut store, path, 1));
    for inode in [nameless, other] {
        store.map_file(inode).unwrap();
    }
    let root = store.root;
    store.volume.unlink(root, b"/nameless").unwrap();
    store.lost_name(nameless);
    assert_eq!([nameless, other].map(|inode| store.has_lost_name(inode)), [true, false]);
    assert!(!store.has_removed(), "a descriptor leads there");
    store.volume.close(other).unwrap();
    assert!(!store.has_removed());
    store.volume.close(nameless).unwrap();
    assert!(store.has_removed());
    store.let_removed_go(&BTreeSet::from([FileNumber(nameless.0)]));
    assert!(store.has_removed(), "a process has it mapped");
    store.let_removed_go(&BTreeSet::new());
    assert_eq!([nameless, other].map(|inode| store.volume.times_open(inode)), [0, 1]);
    assert!(!store.has_removed() && !store.has_lost_name(nameless));
}
