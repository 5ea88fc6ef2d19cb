//! Others who write to files of which pages are in frames: each read is of today, and none of their bytes is lost.

use super::late::{other_reads, other_writes, pwrite, world};
use crate::errno::{EFAULT, ENOSPC};
use crate::frames::PAGE;
use crate::memory::{Fault, Rights};
use crate::signal::Cause;
use crate::tests::late::late_on_a_full_disk;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::path::Last;
use vfs::{Inode, Ram};

const PLACE: u64 = OWN + 4 * PAGE;

fn pread(world: &mut World, fd: u64, len: u64, at: u64) -> Vec<u8> {
    let count = world.now(1, __NR_pread64, &[fd, PLACE, len, at]).unwrap();
    let mut bytes = vec![0; count as usize];
    world.system.read(1, PLACE, &mut bytes).unwrap();
    bytes
}

fn inode(world: &mut World, path: &[u8]) -> Inode {
    let store = &mut world.system.store;
    store.volume.attributes_at(store.root, path, Last::Follow).unwrap().inode
}

/// Maps the first page of what is open.
fn map(world: &mut World, fd: u64, rights: u32, kind: u32) -> u64 {
    world.now(1, __NR_mmap, &[0, PAGE, rights.into(), kind.into(), fd, 0]).unwrap()
}

/// The byte that a process sees at an address.
fn byte(world: &mut World, at: u64) -> u8 {
    let mut byte = [0];
    world.system.read(1, at, &mut byte).unwrap();
    byte[0]
}

#[test]
fn what_was_written_while_a_page_was_late_is_seen() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 2 * PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    pread(&mut world, fd, 1, PAGE);
    pwrite(&mut world, fd, b"A", 0);
    other_writes(&mut world, b"/f", PAGE, b"B");
    assert_eq!(pread(&mut world, fd, 1, PAGE), b"B");
    other_writes(&mut world, b"/f", PAGE, b"C");
    world.wait(2_000_000_000);
    world.wait(20_000_000_000);
    assert_eq!(pread(&mut world, fd, 1, PAGE), b"C");
    assert_eq!(other_reads(&mut world, b"/f", 0, 2), b"A.");
}

#[test]
fn what_was_written_beside_late_bytes_is_seen() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 100], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    pwrite(&mut world, fd, b"AA", 10);
    other_writes(&mut world, b"/f", 9, b"BBBB");
    // The late ones come after those of others.
    assert_eq!(pread(&mut world, fd, 5, 8), b".BAAB");
    world.wait(2_000_000_000);
    assert_eq!(other_reads(&mut world, b"/f", 8, 5), b".BAAB");
}

#[test]
fn what_was_written_before_an_append_is_seen() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 2 * PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let more = world.open(1, "/f", O_WRONLY | O_APPEND).unwrap();
    pread(&mut world, fd, 1, PAGE);
    other_writes(&mut world, b"/f", PAGE, b"B");
    assert_eq!(world.write(1, more, b"x"), Some(Ok(1)));
    assert_eq!(pread(&mut world, fd, 1, PAGE), b"B");
}

#[test]
fn what_was_written_before_a_truncation_is_seen() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 2 * PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    pread(&mut world, fd, 1, 0);
    other_writes(&mut world, b"/f", 0, b"B");
    world.now(1, __NR_ftruncate, &[fd, PAGE]).unwrap();
    assert_eq!(pread(&mut world, fd, 1, 0), b"B");
}

#[test]
fn a_large_read_is_of_today() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 8 * PAGE as usize], 0o644);
    world.file(b"/g", b"text", 0o644);
    let (f, g) = (world.open(1, "/f", O_RDWR).unwrap(), world.open(1, "/g", O_RDWR).unwrap());
    pread(&mut world, f, 1, 0);
    other_writes(&mut world, b"/f", 0, b"B");
    pwrite(&mut world, g, b"A", 0);
    assert_eq!(pread(&mut world, f, 6 * PAGE, 0)[0], b'B');
}

#[test]
fn a_page_that_somebody_has_mapped_is_read_again() {
    let mut world = world();
    world.file(b"/f", &[b'.'; PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let places = [
        map(&mut world, fd, PROT_READ, MAP_PRIVATE),
        map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_SHARED),
    ];
    assert_eq!(places.map(|at| byte(&mut world, at)), *b"..");
    other_writes(&mut world, b"/f", 0, b"B");
    assert_eq!(pread(&mut world, fd, 1, 0), b"B");
    assert_eq!(places.map(|at| byte(&mut world, at)), *b"BB");
    // It is nobody's writing, so what others write next is not overwritten.
    other_writes(&mut world, b"/f", 0, b"C");
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 1), b"C");
    assert_eq!(places.map(|at| byte(&mut world, at)), *b"CC");
}

/// Bytes that a process has written to a page that it has mapped are the file's, and those that others have appended stay.
#[test]
fn a_page_that_two_have_written_to_has_both() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 100], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let at = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    world.put(1, at, b"A");
    other_writes(&mut world, b"/f", 100, b"BB");
    world.now(1, __NR_msync, &[at, PAGE, MS_SYNC.into()]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 1), b"A");
    assert_eq!(other_reads(&mut world, b"/f", 99, 3), b".BB");
    assert_eq!(byte(&mut world, at + 101), b'B');
}

/// Without a clock that is beyond it, no time of a file is believed.
#[test]
fn a_write_at_the_same_time_is_seen() {
    let mut world = World::on(Ram::<Plain>::new(8 << 20, || 7_000_000_000));
    world.file(b"/f", b"one", 0o644);
    let fd = world.open(1, "/f", O_RDONLY).unwrap();
    for now in [0, 7_000_000_000, 9_000_000_000] {
        world.system.store.clock = crate::store::Clock(Box::new(move || now));
        for text in [b"two", b"six"] {
            pread(&mut world, fd, 3, 0);
            other_writes(&mut world, b"/f", 0, text);
            assert_eq!(pread(&mut world, fd, 3, 0), text);
        }
    }
}

#[test]
fn a_write_whose_time_is_set_back_is_seen() {
    let mut world = world();
    world.file(b"/f", b"one", 0o644);
    let fd = world.open(1, "/f", O_RDONLY).unwrap();
    pread(&mut world, fd, 3, 0);
    let inode = inode(&mut world, b"/f");
    let before = world.system.store.volume.attributes(inode).unwrap();
    other_writes(&mut world, b"/f", 0, b"two");
    let times = Some((before.accessed, before.modified));
    let changes = vfs::Changes { times, ..Default::default() };
    world.system.store.volume.change(inode, &changes).unwrap();
    assert_eq!(pread(&mut world, fd, 3, 0), b"two");
}

#[test]
fn a_mapping_shows_the_file_after_it_was_cut_off() {
    let mut world = world();
    world.file(b"/f", &[b'.'; PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let shared = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    let private = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    world.put(1, shared, b"1");
    world.put(1, private, b"1");
    world.now(1, __NR_ftruncate, &[fd, 0]).unwrap();
    for at in [shared, private] {
        assert_eq!(world.system.fault(1, at, Rights::READ), Err(Fault::BehindEnd));
    }
    world.now(1, __NR_ftruncate, &[fd, PAGE]).unwrap();
    assert_eq!(byte(&mut world, private), 0);
    world.put(1, shared, b"2");
    world.now(1, __NR_msync, &[shared, PAGE, MS_SYNC.into()]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 1), b"2");
    assert_eq!(pread(&mut world, fd, 1, 0), b"2");
}

#[test]
fn a_mapping_of_an_object_shows_it_after_it_was_cut_off() {
    let mut world = world();
    world.put(1, OWN, b"m\0");
    let fd = world.now(1, __NR_memfd_create, &[OWN, 0]).unwrap();
    world.now(1, __NR_ftruncate, &[fd, PAGE]).unwrap();
    let at = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    world.put(1, at, b"1");
    world.now(1, __NR_ftruncate, &[fd, 0]).unwrap();
    assert_eq!(world.system.fault(1, at, Rights::READ), Err(Fault::BehindEnd));
    world.now(1, __NR_ftruncate, &[fd, PAGE]).unwrap();
    world.put(1, at, b"2");
    assert_eq!(pread(&mut world, fd, 1, 0), b"2");
}

/// Bytes that a process has put behind the end do not become the file's when it gets longer.
#[test]
fn behind_the_end_there_are_zeros() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 100], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let at = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    world.put(1, at + 200, b"hidden");
    world.now(1, __NR_ftruncate, &[fd, 300]).unwrap();
    assert_eq!(pread(&mut world, fd, 6, 200), [0; 6]);
    world.put(1, at + 400, b"hidden");
    pwrite(&mut world, fd, b"x", 500);
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 400, 6), [0; 6]);
}

/// Others cut a file off: who has it mapped has no more of it, and late bytes behind the end are nobody's.
#[test]
fn a_file_that_others_cut_off_ends_there() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 2 * PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let at = world.now(1, __NR_mmap, &[0, 2 * PAGE, 3, MAP_SHARED.into(), fd, 0]).unwrap();
    world.put(1, at + PAGE, b"A");
    pwrite(&mut world, fd, b"A", PAGE + 1);
    pwrite(&mut world, fd, b"A", 5);
    let inode = inode(&mut world, b"/f");
    world.system.store.volume.truncate(inode, 10).unwrap();
    assert_eq!(world.now(1, __NR_pread64, &[fd, PLACE, 10, PAGE]), Ok(0));
    assert_eq!(world.system.fault(1, at + PAGE, Rights::READ), Err(Fault::BehindEnd));
    assert_eq!(byte(&mut world, at + 10), 0);
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 20), b".....A....");
    assert_eq!(world.now(1, __NR_pread64, &[fd, 8, 10, 0]), Err(EFAULT));
}

/// The end of a process by an exception is no call, and finds all the same that a file was cut off. Where others have it mapped, they write to the next page then.
#[test]
fn a_page_goes_when_the_end_of_a_process_finds_it_behind_the_end() {
    let mut world = world();
    world.file(b"/f", &[b'.'; PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let shared = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    let private = map(&mut world, fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    assert_eq!(byte(&mut world, private), b'.');
    let child = world.fork(1);
    world.put(child, shared, b"1");
    let inode = inode(&mut world, b"/f");
    world.system.store.volume.truncate(inode, 0).unwrap();
    world.system.exception(child, 11, Cause::KERNEL, [0; 3]);
    assert_eq!(world.system.fault(1, private, Rights::READ), Err(Fault::BehindEnd));
    other_writes(&mut world, b"/f", 0, &[b'B'; PAGE as usize]);
    world.put(1, private, b"2");
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!([private, private + 1].map(|at| byte(&mut world, at)), *b"2B");
}

/// A fault for which frames are short writes late bytes first, and finds that their file was cut off.
#[test]
fn a_page_goes_when_a_fault_finds_it_behind_the_end() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 2 * PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let private = world.now(1, __NR_mmap, &[0, 2 * PAGE, 3, MAP_PRIVATE.into(), fd, 0]).unwrap() + PAGE;
    assert_eq!(byte(&mut world, private), b'.');
    pwrite(&mut world, fd, b"A", 0);
    let kind = (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE).into();
    let many = world.now(1, __NR_mmap, &[0, 2000 * PAGE, 3, kind, u64::MAX, 0]).unwrap();
    let inode = inode(&mut world, b"/f");
    world.system.store.volume.truncate(inode, 0).unwrap();
    for page in 0..2000 {
        if world.system.fault(1, many + page * PAGE, Rights::WRITE).is_err() {
            break;
        }
        world.system.after_fault(1);
    }
    assert_eq!(world.system.fault(1, private, Rights::READ), Err(Fault::BehindEnd));
}

#[test]
fn a_file_that_is_removed_and_closed_is_gone() {
    let mut world = world();
    let free = world.system.store.volume.space().unwrap().free;
    let open = world.system.store.volume.open_count();
    for is_mapped in [false, true] {
        let fd = world.open(1, "/f", O_RDWR | O_CREAT).unwrap();
        for at in 0..100 {
            pwrite(&mut world, fd, &[1; PAGE as usize], at * PAGE);
            pwrite(&mut world, fd, &[2; 10], at * PAGE);
        }
        let at = is_mapped.then(|| map(&mut world, fd, PROT_READ, MAP_PRIVATE));
        world.by_path(1, __NR_unlink, "/f", &[]).unwrap();
        assert_eq!(pread(&mut world, fd, 1, PAGE), [2]);
        world.now(1, __NR_close, &[fd]).unwrap();
        if let Some(at) = at {
            assert_eq!(byte(&mut world, at), 2);
            world.now(1, __NR_munmap, &[at, PAGE]).unwrap();
        }
        let now = world.system.store.volume.space().unwrap().free;
        assert!(now + 8 * PAGE >= free, "{free} {now}");
    }
    // A name that is moved to itself stays, with its late bytes.
    world.file(b"/f", b"text", 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    pwrite(&mut world, fd, b"T", 0);
    world.put(1, OWN, b"/f\0");
    world.now(1, __NR_rename, &[OWN, OWN]).unwrap();
    world.now(1, __NR_close, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 4), b"Text");
    assert!(world.system.store.volume.open_count() <= open + 1);
}

/// The process that closes a file hears that its bytes cannot be written, and they are when there is room.
#[test]
fn bytes_that_cannot_be_written_outlive_their_descriptor() {
    let (mut world, fd, full) = late_on_a_full_disk();
    assert_eq!(world.now(1, __NR_close, &[fd]), Err(ENOSPC));
    for number in 0..200 {
        let path = std::format!("/{number}");
        if let Ok(fd) = world.open(1, &path, O_RDWR | O_CREAT) {
            pread(&mut world, fd, 1, 0);
            let _ = world.now(1, __NR_close, &[fd]);
        }
    }
    world.system.store.volume.truncate(full, 0).unwrap();
    world.wait(2_000_000_000);
    assert_eq!(other_reads(&mut world, b"/sparse", PAGE, 4), b"text");
}

/// Bytes that a process has written where it has a file mapped are the file's also if something else is mapped there, or what is mapped becomes shorter.
#[test]
fn a_mapping_that_goes_leaves_its_bytes() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 2 * PAGE as usize], 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let anonymous = u64::from(MAP_PRIVATE | MAP_ANONYMOUS);
    let fixed = u64::from(MREMAP_MAYMOVE | MREMAP_FIXED);
    for kind in 0..4u8 {
        let at = world.now(1, __NR_mmap, &[0, 2 * PAGE, 3, MAP_SHARED.into(), fd, 0]).unwrap();
        let other = world.now(1, __NR_mmap, &[0, PAGE, 3, anonymous, 0, 0]).unwrap();
        world.put(1, at + PAGE, &[b'a' + kind]);
        let done = match kind {
            0 => {
                let over = anonymous | u64::from(MAP_FIXED);
                world.now(1, __NR_mmap, &[at + PAGE, PAGE, 3, over, 0, 0])
            }
            1 => world.now(1, __NR_mremap, &[at, 2 * PAGE, PAGE, 0]),
            2 => world.now(1, __NR_mremap, &[other, PAGE, PAGE, fixed, at + PAGE]),
            _ => {
                let to = world.now(1, __NR_mmap, &[0, PAGE, 3, anonymous, 0, 0]).unwrap();
                world.now(1, __NR_mremap, &[at, 2 * PAGE, PAGE, fixed, to])
            }
        };
        done.unwrap();
        assert_eq!(other_reads(&mut world, b"/f", PAGE, 1), [b'a' + kind], "kind {kind}");
    }
}

/// Bytes that cannot be written back when they are unmapped keep nobody from unmapping them, nor other files from getting theirs; a sync tells.
#[test]
fn unmapping_does_not_fail_for_want_of_room() {
    let (mut world, fd, full) = late_on_a_full_disk();
    world.system.store.volume.truncate(full, 0).unwrap();
    world.file(b"/other", b"other", 0o644);
    let other = world.open(1, "/other", O_RDWR).unwrap();
    let at = world.now(1, __NR_mmap, &[0, 2 * PAGE, 3, MAP_SHARED.into(), fd, 4 * PAGE]).unwrap();
    let over = u64::from(MAP_SHARED | MAP_FIXED);
    world.now(1, __NR_mmap, &[at + PAGE, PAGE, 3, over, other, 0]).unwrap();
    world.put(1, at, b"sparse");
    world.put(1, at + PAGE, b"OTHER");
    let mut end = 0;
    while let Ok(count) = world.system.store.volume.write(full, end, &[1; PAGE as usize]) {
        end += count as u64;
    }
    world.now(1, __NR_munmap, &[at, 2 * PAGE]).unwrap();
    assert_eq!(other_reads(&mut world, b"/other", 0, 5), b"OTHER");
    assert_eq!(world.now(1, __NR_fsync, &[fd]), Err(ENOSPC));
    world.system.store.volume.truncate(full, 0).unwrap();
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/sparse", 4 * PAGE, 6), b"sparse");
}
