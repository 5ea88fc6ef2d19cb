//! Bytes that reach their file later, and others who write to the file meanwhile.

use super::counted::Counted;
use crate::frames::PAGE;
use crate::store::Clock;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;
use std::boxed::Box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{How, Inode, Ram};

fn clock() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(1);
    NOW.fetch_add(1_000_000, Ordering::Relaxed)
}

pub(super) fn world() -> World {
    let mut world = World::on(Ram::<Plain>::new(8 << 20, clock));
    // All changes are over, and each has its own time.
    world.system.store.clock = Clock(Box::new(|| u64::MAX));
    world
}

/// Writes as another client does: past the store.
pub(super) fn other_writes(world: &mut World, path: &[u8], at: u64, bytes: &[u8]) {
    let store = &mut world.system.store;
    let inode = store.volume.open(store.root, path, How::default(), 0).unwrap();
    assert_eq!(store.volume.write(inode, at, bytes), Ok(bytes.len()));
    store.volume.close(inode).unwrap();
}

pub(super) fn other_reads(world: &mut World, path: &[u8], at: u64, len: usize) -> Vec<u8> {
    let store = &mut world.system.store;
    let inode = store.volume.open(store.root, path, How::default(), 0).unwrap();
    let mut bytes = vec![0; len];
    let count = store.volume.read(inode, at, &mut bytes).unwrap();
    store.volume.close(inode).unwrap();
    bytes.truncate(count);
    bytes
}

pub(super) fn pwrite(world: &mut World, fd: u64, bytes: &[u8], at: u64) -> u64 {
    world.put(1, OWN + PAGE, bytes);
    world.now(1, __NR_pwrite64, &[fd, OWN + PAGE, bytes.len() as u64, at]).unwrap()
}

/// A process writes the first byte of a file of 100; others write somewhere, before that is in the file.
fn others_keep(at: u64, bytes: &[u8]) {
    let mut world = world();
    world.file(b"/f", &[b'.'; 100], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    pwrite(&mut world, fd, b"A", 0);
    other_writes(&mut world, b"/f", at, bytes);
    world.wait(2_000_000_000);
    assert_eq!(other_reads(&mut world, b"/f", at, bytes.len()), bytes);
}

#[test]
fn bytes_of_others_in_the_same_page_stay() {
    others_keep(50, b"B");
}

#[test]
fn bytes_that_others_append_stay() {
    others_keep(100, b"appended");
}

/// A late write into a hole of the file `/sparse`, which is open, on a disk that another file has filled; and the time when it should have been made
/// is over.
pub(super) fn late_on_a_full_disk() -> (World, u64, Inode) {
    let mut world = World::on(Ram::<Plain>::new(1 << 20, clock));
    world.file(b"/sparse", b"", 0o644);
    let fd = world.open(1, "/sparse", O_RDWR).unwrap();
    world.now(1, __NR_ftruncate, &[fd, 8 * PAGE]).unwrap();
    world.file(b"/full", b"", 0o644);
    let store = &mut world.system.store;
    let full = store.volume.open(store.root, b"/full", How::default(), 0).unwrap();
    let mut at = 0;
    while let Ok(count) = store.volume.write(full, at, &[1; PAGE as usize]) {
        at += count as u64;
    }
    assert_eq!(pwrite(&mut world, fd, b"text", PAGE), 4);
    world.wait(2_000_000_000);
    (world, fd, full)
}

#[test]
fn a_sync_tells_that_bytes_cannot_be_written() {
    let (mut world, fd, _) = late_on_a_full_disk();
    let synced = world.now(1, __NR_fsync, &[fd]);
    let there = other_reads(&mut world, b"/sparse", PAGE, 4);
    assert!(synced.is_err() || there == b"text", "{synced:?} {there:?}");
}

#[test]
fn bytes_that_cannot_be_written_stay_late() {
    let (mut world, fd, full) = late_on_a_full_disk();
    // Room comes, and a sync could write it now.
    world.system.store.volume.truncate(full, 0).unwrap();
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/sparse", PAGE, 4), b"text");
}

/// A write through a descriptor of `O_DSYNC` or `O_SYNC` is over when the disk has its bytes, by whichever call: within the file, or behind its end.
#[test]
fn a_synchronous_write_waits_for_the_disk() {
    let (files, _) = Counted::new(8 << 20);
    let syncs = files.syncs();
    let mut world = World::on(files);
    world.file(b"/f", &[b'.'; 100], 0o644);
    for (flags, expected) in [(0, 0), (O_DSYNC, 1), (O_SYNC, 1), (O_DSYNC | O_APPEND, 1)] {
        let fd = world.open(1, "/f", O_WRONLY | flags).unwrap();
        let before = syncs.get();
        assert_eq!(world.write(1, fd, b"text"), Some(Ok(4)));
        assert_eq!(syncs.get() - before, expected, "{flags:#x}");
        let end = world.now(1, __NR_lseek, &[fd, 0, SEEK_END.into()]).unwrap();
        let before = syncs.get();
        assert_eq!(world.now(1, __NR_pwrite64, &[fd, OWN + PAGE, 4, end]), Ok(4));
        assert_eq!(syncs.get() - before, expected, "{flags:#x}");
    }
}

#[test]
fn files_that_are_written_are_closed() {
    let mut world = world();
    let before = world.system.store.volume.open_count();
    for round in 0..400 {
        let path = std::format!("/{round}");
        let fd = world.open(1, &path, O_WRONLY | O_CREAT).unwrap();
        assert_eq!(world.write(1, fd, b"text"), Some(Ok(4)));
        world.now(1, __NR_close, &[fd]).unwrap();
    }
    let now = world.system.store.volume.open_count();
    assert!(now < before + 140, "{before} {now}");
}

/// A file that is overwritten is kept open for its pages, and not for ever.
#[test]
fn files_that_are_overwritten_are_closed() {
    let mut world = world();
    let before = world.system.store.volume.open_count();
    for round in 0..400 {
        let path = std::format!("/{round}");
        world.file(path.as_bytes(), b"text", 0o644);
        let fd = world.open(1, &path, O_WRONLY).unwrap();
        assert_eq!(world.write(1, fd, b"T"), Some(Ok(1)));
        world.now(1, __NR_close, &[fd]).unwrap();
        let now = world.system.store.volume.open_count();
        assert!(now < before + 140, "{before} {now}");
    }
    assert_eq!(other_reads(&mut world, b"/399", 0, 4), b"Text");
}
