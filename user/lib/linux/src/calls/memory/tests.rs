//! Advice about copies and holes. Errors that are expected are Linux's own.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EACCES, EBADF, EFAULT, EINVAL, ENOMEM, ENOSPC, EOPNOTSUPP, EOVERFLOW, EPERM, Errno};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::memory::{Fault, Kind, Rights, Source};
use crate::special::{OfProcess, Special};
use linux_raw_sys::general::{self as nr, *};
use linux_raw_sys::prctl::{PR_SET_VMA, PR_SET_VMA_ANON_NAME};
use std::format;
use std::string::String;
use std::vec::Vec;

const ANYWHERE: u32 = MAP_PRIVATE | MAP_ANONYMOUS;
const HOLE: u32 = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn map(rig: &mut Rig, pages: u64, flags: u32, fd: u64) -> u64 {
    let rights = u64::from(PROT_READ | PROT_WRITE);
    let at = rig.call(nr::__NR_mmap, &[0, pages * PAGE, rights, flags.into(), fd, 0]);
    assert!(at > 0, "{at}");
    at as u64
}

fn fill(rig: &mut Rig, at: u64, pages: u64, byte: u8) {
    rig.system.write(FIRST, at, &std::vec![byte; (pages * PAGE) as usize]).unwrap();
}

fn advise(rig: &mut Rig, at: u64, pages: u64, advice: u32) -> i64 {
    rig.call(nr::__NR_madvise, &[at, pages * PAGE, advice.into()])
}

/// The first byte of each page; `None`: nothing is there.
fn seen<const N: usize>(rig: &mut Rig, tid: Tid, at: u64) -> [Option<u8>; N] {
    let mut seen = [None; N];
    for (page, byte) in (0..).zip(&mut seen) {
        let mut found = [0];
        let read = rig.system.read(tid, at + page * PAGE, &mut found);
        *byte = read.is_ok().then_some(found[0]);
    }
    seen
}

fn memory(rig: &mut Rig, pages: u64) -> u64 {
    let name = rig.put(b"name\0");
    let fd = rig.call(nr::__NR_memfd_create, &[name, MFD_ALLOW_SEALING.into()]) as u64;
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, pages * PAGE]), 0);
    fd
}

#[test]
fn copies_do_not_have_what_is_left_out() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 4, ANYWHERE, u64::MAX);
    fill(&mut rig, at, 4, 5);
    let shared = map(&mut rig, 1, MAP_SHARED | MAP_ANONYMOUS, u64::MAX);
    let (used, objects) = (rig.system.store.frames.used(), rig.system.store.frames.object_count());
    assert_eq!(advise(&mut rig, at + PAGE, 2, MADV_DONTFORK), 0);
    assert_eq!(advise(&mut rig, shared, 1, MADV_DONTFORK), 0);
    let child = rig.fork();
    assert_eq!(seen(&mut rig, child, at), [Some(5), None, None, Some(5)]);
    assert_eq!(rig.system.fault(child, shared, Rights::READ), Err(Fault::Nothing));
    assert_eq!(seen(&mut rig, FIRST, at), [Some(5); 4]);
    // Nobody keeps memory of others by that.
    assert_eq!(rig.call(nr::__NR_munmap, &[shared, PAGE]), 0);
    assert_eq!(rig.system.store.frames.object_count(), objects - 1);
    assert_eq!(rig.call(nr::__NR_munmap, &[at + PAGE, PAGE]), 0);
    assert!(rig.system.store.frames.used() < used + 4, "frames that nobody has are free");
    assert_eq!(advise(&mut rig, at + 2 * PAGE, 2, MADV_DOFORK), 0);
    let other = rig.fork();
    assert_eq!(seen(&mut rig, other, at), [Some(5), None, Some(5), Some(5)]);
}

/// Pages of shared memory change places without a descriptor, and stay the object's.
#[test]
fn shared_memory_shows_other_pieces() {
    let mut rig = Rig::begun();
    let fd = memory(&mut rig, 4);
    let objects = rig.system.store.frames.object_count();
    for (flags, fd) in [(MAP_SHARED | MAP_ANONYMOUS, u64::MAX), (MAP_SHARED, fd)] {
        let at = map(&mut rig, 4, flags, fd);
        (0..4).for_each(|page| fill(&mut rig, at + page * PAGE, 1, 1 + page as u8));
        let show = |rig: &mut Rig, page: u64, pages: u64, shown: u64| {
            rig.call(nr::__NR_remap_file_pages, &[at + page * PAGE + 7, pages * PAGE + 7, 0, shown, 0])
        };
        assert_eq!((show(&mut rig, 0, 1, 3), show(&mut rig, 1, 2, 0)), (0, 0));
        assert_eq!(seen(&mut rig, FIRST, at), [4, 1, 2, 4].map(Some));
        rig.system.write(FIRST, at + 3 * PAGE, &[9]).unwrap();
        assert_eq!(seen(&mut rig, FIRST, at), [9, 1, 2, 9].map(Some));
        let child = rig.fork();
        assert_eq!(seen(&mut rig, child, at), [9, 1, 2, 9].map(Some));
        assert_eq!(show(&mut rig, 0, 4, 0), 0);
        assert_eq!(seen(&mut rig, FIRST, at), [1, 2, 3, 9].map(Some));
        for (arguments, expected) in [
            ([at, PAGE, PROT_READ.into(), 0], EINVAL),
            ([at, PAGE - 1, 0, 0], EINVAL),
            ([at, 5 * PAGE, 0, 0], EINVAL),
            ([at, PAGE, 0, u64::MAX], EINVAL),
            ([at, PAGE, 0, 1 << 60], EOVERFLOW),
            ([at, 0u64.wrapping_sub(PAGE), 0, 0], EINVAL),
        ] {
            let found = rig.call(nr::__NR_remap_file_pages, &arguments);
            assert_eq!(found, error(expected), "{arguments:x?}");
        }
        assert_eq!(seen(&mut rig, FIRST, at), [1, 2, 3, 9].map(Some));
        for tid in [FIRST, child] {
            assert_eq!(rig.call_by(tid, nr::__NR_munmap, &[at, 4 * PAGE]), 0);
        }
    }
    assert_eq!(rig.system.store.frames.object_count(), objects);
    let private = map(&mut rig, 1, ANYWHERE, u64::MAX);
    assert_eq!(rig.call(nr::__NR_remap_file_pages, &[private, PAGE, 0, 0]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_remap_file_pages, &[PAGE, PAGE, 0, 0]), error(EINVAL));
}

#[test]
fn copies_have_zeros_where_memory_is_wiped() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 3, ANYWHERE, u64::MAX);
    fill(&mut rig, at, 3, 5);
    assert_eq!(advise(&mut rig, at + PAGE, 1, MADV_WIPEONFORK), 0);
    let child = rig.fork();
    assert_eq!(seen(&mut rig, child, at), [Some(5), Some(0), Some(5)]);
    assert_eq!(seen(&mut rig, FIRST, at), [Some(5); 3]);
    // The copy hands it on, as it is.
    rig.system.write(child, at + PAGE, &[7]).unwrap();
    let grandchild = rig.call_by(child, nr::__NR_fork, &[]) as Tid;
    assert_eq!(seen(&mut rig, grandchild, at), [Some(5), Some(0), Some(5)]);
    assert_eq!(seen(&mut rig, child, at), [Some(5), Some(7), Some(5)]);
    assert_eq!(advise(&mut rig, at, 3, MADV_KEEPONFORK), 0);
    assert_eq!(advise(&mut rig, at, 3, MADV_DOFORK), 0);
    let other = rig.fork();
    assert_eq!(seen(&mut rig, other, at), [Some(5); 3]);
    // Pieces that were cut apart are one again.
    let room = rig.system.room(FIRST).unwrap();
    assert_eq!(
        room.borrow().memory.regions().filter(|(start, ..)| (at..at + 3 * PAGE).contains(start)).count(),
        1
    );
}

#[test]
fn advice_is_for_what_is_there() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 3, ANYWHERE, u64::MAX);
    fill(&mut rig, at, 3, 5);
    let fd = memory(&mut rig, 1);
    for flags in [MAP_SHARED, MAP_PRIVATE] {
        let other = map(&mut rig, 1, flags, fd);
        assert_eq!(advise(&mut rig, other, 1, MADV_WIPEONFORK), error(EINVAL));
        assert_eq!(advise(&mut rig, other, 1, MADV_KEEPONFORK), 0);
    }
    assert_eq!(rig.call(nr::__NR_munmap, &[at + PAGE, PAGE]), 0);
    assert_eq!(advise(&mut rig, at, 3, MADV_WIPEONFORK), error(ENOMEM));
    let child = rig.fork();
    assert_eq!(seen(&mut rig, child, at), [Some(0), None, Some(0)], "what is there has taken it");
    assert_eq!(rig.call(nr::__NR_madvise, &[at + 1, PAGE, MADV_DONTFORK.into()]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_madvise, &[at, u64::MAX - PAGE, MADV_DONTFORK.into()]), error(ENOMEM));
    assert_eq!(rig.call(nr::__NR_madvise, &[at, PAGE, 7777]), error(EINVAL));
}

#[test]
fn shared_memory_has_holes() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 4, MAP_SHARED | MAP_ANONYMOUS, u64::MAX);
    fill(&mut rig, at, 4, 5);
    let child = rig.fork();
    assert_eq!(seen(&mut rig, child, at), [Some(5); 4]);
    let used = rig.system.store.frames.used();
    assert_eq!(advise(&mut rig, at + PAGE, 2, MADV_REMOVE), 0);
    assert_eq!(rig.system.store.frames.used(), used - 2);
    assert_eq!(seen(&mut rig, child, at), [Some(5), Some(0), Some(0), Some(5)]);
    rig.system.write(child, at + PAGE, &[6]).unwrap();
    assert_eq!(seen(&mut rig, FIRST, at), [Some(5), Some(6), Some(0), Some(5)], "it is shared as before");
    // Part of a region that begins before.
    assert_eq!(advise(&mut rig, at + 3 * PAGE, 2, MADV_REMOVE), error(ENOMEM));
    assert_eq!(seen(&mut rig, FIRST, at), [Some(5), Some(6), Some(0), Some(0)]);
    let own = map(&mut rig, 1, ANYWHERE, u64::MAX);
    assert_eq!(advise(&mut rig, own, 1, MADV_REMOVE), error(EINVAL));
    let fd = memory(&mut rig, 1);
    let private = map(&mut rig, 1, MAP_PRIVATE, fd);
    assert_eq!(advise(&mut rig, private, 1, MADV_REMOVE), error(EACCES));
    let path = rig.open("/tmp/file") as u64;
    assert_eq!(rig.write(path, b"bytes"), 5);
    let file = map(&mut rig, 1, MAP_SHARED, path);
    assert_eq!(advise(&mut rig, file, 1, MADV_REMOVE), error(EOPNOTSUPP));
}

/// A hole over many pages, in mappings that show it in pieces, from the middle on, and with copies between.
#[test]
fn a_long_hole_leaves_all_copies() {
    let mut rig = Rig::begun();
    let (pages, hole) = (300, 70..291);
    let fd = memory(&mut rig, pages);
    let shared = map(&mut rig, pages, MAP_SHARED, fd);
    fill(&mut rig, shared, pages, 5);
    let rights = u64::from(PROT_READ | PROT_WRITE);
    let (from, kind) = (65, MAP_PRIVATE.into());
    let private = rig.call(nr::__NR_mmap, &[0, 200 * PAGE, rights, kind, fd, from * PAGE]) as u64;
    for page in 0..200 {
        let at = private + page * PAGE;
        // Some were never seen, some are copies, and the others are the object's.
        match page % 7 {
            0 => {}
            1 | 2 => rig.system.write(FIRST, at, &[9]).unwrap(),
            _ => assert_eq!(rig.get(FIRST, at, 1), [5]),
        }
    }
    assert_eq!(rig.call(nr::__NR_mprotect, &[shared + 100 * PAGE, PAGE, PROT_READ.into()]), 0);
    let used = rig.system.store.frames.used();
    let args = [fd, HOLE.into(), hole.start * PAGE, (hole.end - hole.start) * PAGE];
    assert_eq!(rig.call(nr::__NR_fallocate, &args), 0);
    assert_eq!(rig.system.store.frames.used() as u64, used as u64 - (hole.end - hole.start));
    for page in 0..pages {
        let expected = if hole.contains(&page) { 0 } else { 5 };
        assert_eq!(rig.get(FIRST, shared + page * PAGE, 1), [expected], "page {page}");
        if let Some(own) = page.checked_sub(from).filter(|own| *own < 200) {
            let expected = if matches!(own % 7, 1 | 2) { 9 } else { expected };
            assert_eq!(rig.get(FIRST, private + own * PAGE, 1), [expected], "page {page}");
        }
    }
}

#[test]
fn memory_behind_descriptors_has_holes() {
    let mut rig = Rig::begun();
    let fd = memory(&mut rig, 4);
    let (shared, private) = (map(&mut rig, 4, MAP_SHARED, fd), map(&mut rig, 4, MAP_PRIVATE, fd));
    fill(&mut rig, shared, 4, 5);
    assert_eq!(seen(&mut rig, FIRST, private), [Some(5); 4]);
    rig.system.write(FIRST, private + PAGE, &[9]).unwrap();
    let hole = |rig: &mut Rig, mode: u32, at: u64, len: u64| {
        rig.call(nr::__NR_fallocate, &[fd, mode.into(), at, len])
    };
    assert_eq!(hole(&mut rig, FALLOC_FL_PUNCH_HOLE, 0, PAGE), error(EOPNOTSUPP));
    assert_eq!(hole(&mut rig, FALLOC_FL_ZERO_RANGE, 0, PAGE), error(EOPNOTSUPP));
    assert_eq!(hole(&mut rig, HOLE, 0, 0), error(EINVAL));
    assert_eq!(hole(&mut rig, HOLE, u64::MAX, 1), error(EINVAL));
    let used = rig.system.store.frames.used();
    assert_eq!(hole(&mut rig, HOLE, PAGE - 2, 2 * PAGE + 4), 0);
    assert_eq!(rig.system.store.frames.used(), used - 2);
    assert_eq!(seen(&mut rig, FIRST, shared), [Some(5), Some(0), Some(0), Some(0)]);
    assert_eq!(rig.get(FIRST, shared + PAGE - 4, 4), [5, 5, 0, 0]);
    assert_eq!(rig.get(FIRST, shared + 3 * PAGE, 4), [0, 0, 5, 5]);
    assert_eq!(seen(&mut rig, FIRST, private), [Some(5), Some(9), Some(0), Some(0)], "what was copied stays");
    assert_eq!(hole(&mut rig, HOLE, 10, 3), 0);
    assert_eq!(rig.get(FIRST, shared + 8, 6), [5, 5, 0, 0, 0, 5]);
    // Behind the end nothing changes, and it gets no longer.
    assert_eq!(hole(&mut rig, HOLE, 3 * PAGE, 9 * PAGE), 0);
    assert_eq!(hole(&mut rig, FALLOC_FL_KEEP_SIZE, 3 * PAGE, 9 * PAGE), 0);
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, SEEK_END.into()]), 4 * PAGE as i64);
    assert_eq!(rig.call(nr::__NR_munmap, &[shared, 4 * PAGE]), 0);
    assert_eq!(rig.call(nr::__NR_fcntl, &[fd, F_ADD_SEALS.into(), F_SEAL_WRITE.into()]), 0);
    assert_eq!(hole(&mut rig, HOLE, 0, PAGE), error(EPERM));
    assert_eq!(rig.call(nr::__NR_fallocate, &[77, 0, 0, PAGE]), error(EBADF));
}

/// A processor without keys of protection for programs: none can be had, and none is one.
#[test]
fn no_keys_of_protection_are_there() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 2, ANYWHERE, u64::MAX);
    let none = u64::from(u32::MAX);
    for (at, len, rights, key, expected) in [
        (at, PAGE, PROT_READ, none, 0),
        (at, PAGE, PROT_READ, u64::MAX, 0),
        (at, PAGE, PROT_READ, 0, error(EINVAL)),
        (at, PAGE, PROT_READ, 1, error(EINVAL)),
        (at + 1, 0, PROT_READ, 1, error(EINVAL)),
        (at, 0, PROT_READ, 1, 0),
        (at, 0, PROT_GROWSDOWN | PROT_GROWSUP, 1, error(EINVAL)),
        (at, u64::MAX, PROT_READ, 1, error(ENOMEM)),
    ] {
        let outcome = rig.call(nr::__NR_pkey_mprotect, &[at, len, rights.into(), key]);
        assert_eq!(outcome, expected, "{len:#x}, {rights}, {key}");
    }
    assert!(rig.system.write(FIRST, at, &[1]).is_err());
    for (flags, rights, expected) in [(0, 0, ENOSPC), (0, 3, ENOSPC), (1, 0, EINVAL), (0, 4, EINVAL)] {
        assert_eq!(rig.call(nr::__NR_pkey_alloc, &[flags, rights]), error(expected), "{flags}, {rights}");
    }
    assert_eq!(rig.call(nr::__NR_pkey_free, &[0]), error(EINVAL));
}

/// All memory is locked, so calls say whether it is there, and whether somebody may.
#[test]
fn memory_that_is_there_is_locked() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 3, ANYWHERE, u64::MAX);
    assert_eq!(rig.call(nr::__NR_munmap, &[at + PAGE, PAGE]), 0);
    for (start, len, expected) in [
        (at, PAGE, 0),
        (at + 5, 10, 0),
        (at + PAGE - 1, 2, error(ENOMEM)),
        (at, 3 * PAGE, error(ENOMEM)),
        (at + 2 * PAGE, 1, 0),
        (at + PAGE, 0, 0),
        (8, 0, error(ENOMEM)),
    ] {
        for call in [nr::__NR_mlock, nr::__NR_mlock2, nr::__NR_munlock] {
            assert_eq!(rig.call(call, &[start, len, 0]), expected, "{call}, {start:#x}, {len}");
        }
    }
    assert_eq!([1, 2].map(|flags| rig.call(nr::__NR_mlock2, &[at, PAGE, flags])), [0, error(EINVAL)]);
    for (flags, expected) in [(0, EINVAL), (MCL_ONFAULT, EINVAL), (8 | MCL_CURRENT, EINVAL)] {
        assert_eq!(rig.call(nr::__NR_mlockall, &[flags.into()]), error(expected), "{flags}");
    }
    assert_eq!([1, 2, 3, 7].map(|flags| rig.call(nr::__NR_mlockall, &[flags])), [0; 4]);
    assert_eq!(rig.call(nr::__NR_munlockall, &[]), 0);
    // Others than `root` have a limit.
    let limits = rig.room(16);
    let limit = |rig: &mut Rig, bytes: u64| {
        rig.system.write_words(FIRST, limits, &[bytes, 1 << 20]).unwrap();
        assert_eq!(rig.call(nr::__NR_setrlimit, &[RLIMIT_MEMLOCK.into(), limits]), 0);
    };
    limit(&mut rig, 0);
    assert_eq!(rig.call(nr::__NR_mlock, &[at, PAGE]), 0);
    assert_eq!(rig.call(nr::__NR_setuid, &[5]), 0);
    assert_eq!(rig.call(nr::__NR_mlock, &[at, PAGE]), error(EPERM));
    assert_eq!(rig.call(nr::__NR_mlockall, &[MCL_FUTURE.into()]), error(EPERM));
    assert_eq!(rig.call(nr::__NR_munlock, &[at, PAGE]), 0);
    limit(&mut rig, PAGE);
    assert_eq!(rig.call(nr::__NR_mlock, &[at, PAGE]), 0);
    assert_eq!(rig.call(nr::__NR_mlock, &[at, PAGE + 1]), error(ENOMEM));
    assert_eq!(rig.call(nr::__NR_mlockall, &[MCL_CURRENT.into()]), error(ENOMEM));
    assert_eq!(rig.call(nr::__NR_mlockall, &[MCL_FUTURE.into()]), 0);
}

/// A mapping with `MAP_32BIT`, or an error.
fn map_low(rig: &mut Rig, hint: u64, len: u64) -> i64 {
    rig.call(nr::__NR_mmap, &[hint, len, PROT_READ.into(), (ANYWHERE | MAP_32BIT).into(), u64::MAX, 0])
}

#[test]
fn low_addresses_are_given_from_the_lowest_on() {
    const LOW: i64 = 0x4000_0000;
    const PAGES: i64 = PAGE as i64;
    let mut rig = Rig::begun();
    let all = [1, PAGE, 3 * PAGE].map(|len| map_low(&mut rig, 0, len));
    assert_eq!(all, [LOW, LOW + PAGES, LOW + 2 * PAGES]);
    assert_eq!(rig.call(nr::__NR_munmap, &[all[1] as u64, 2 * PAGE]), 0);
    assert_eq!(map_low(&mut rig, 0, 3 * PAGE), LOW + 5 * PAGES, "the hole is too small");
    assert_eq!(map_low(&mut rig, 0, 2 * PAGE), LOW + PAGES);
    // An address that is wished is taken if it is below, also before the place that is searched.
    assert_eq!(map_low(&mut rig, 0x3000_0fff, PAGE), 0x3000_0000);
    assert_eq!(map_low(&mut rig, 0x7fff_f000, PAGE), 0x7fff_f000);
    assert_eq!(map_low(&mut rig, 0x7fff_f000, PAGE), LOW + 8 * PAGES, "it is there already");
    assert_eq!(map_low(&mut rig, 0x7fff_e000, 2 * PAGE), LOW + 9 * PAGES);
    assert_eq!(map_low(&mut rig, 0x8000_0000, PAGE), LOW + 11 * PAGES);
    // One that is there where the search begins.
    assert_eq!(rig.call(nr::__NR_munmap, &[LOW as u64, 64 * PAGE]), 0);
    let fixed = u64::from(ANYWHERE | MAP_FIXED | MAP_32BIT);
    let at = rig.call(nr::__NR_mmap, &[LOW as u64 - PAGE, 2 * PAGE, 0, fixed, u64::MAX, 0]);
    assert_eq!(at, LOW - PAGES);
    assert_eq!(map_low(&mut rig, 0, PAGE), LOW + PAGES);
}

#[test]
fn low_addresses_have_an_end() {
    let mut rig = Rig::begun();
    for (len, outcome) in [(0, EINVAL), (0x4000_1000, ENOMEM), (1 << 47, ENOMEM), (u64::MAX, ENOMEM)] {
        assert_eq!(map_low(&mut rig, 0, len), error(outcome), "{len:#x}");
    }
    assert_eq!(map_low(&mut rig, 0, 0x4000_0000), 0x4000_0000);
    assert_eq!(map_low(&mut rig, 0, PAGE), error(ENOMEM));
    // Others have their places as before.
    assert!(map(&mut rig, 1, ANYWHERE, u64::MAX) > 0x8000_0000);
}

/// Gives pages a name; an address of 0 takes it from them.
fn name(rig: &mut Rig, at: u64, pages: u64, name: u64) -> i64 {
    let what = PR_SET_VMA_ANON_NAME.into();
    rig.call(nr::__NR_prctl, &[PR_SET_VMA.into(), what, at, pages * PAGE, name])
}

/// Pages of each region with a name, and the name, in order of addresses.
fn named(rig: &Rig, tid: Tid) -> Vec<String> {
    let text = rig.system.proc_text(Special::OfProcess(tid, OfProcess::Maps)).unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let named = text.lines().filter_map(|line| {
        let (range, name) = (line.split(' ').next()?, line.split_once("  [anon")?.1);
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        Some(format!("{}{}", (end - start) / PAGE, name.trim_end_matches(']')))
    });
    named.collect()
}

#[test]
fn memory_has_names() {
    let mut rig = Rig::begun();
    let (heap, stack) = (rig.put(b"heap of mine\0"), rig.put(b"\0"));
    let at = map(&mut rig, 4, ANYWHERE, u64::MAX);
    assert_eq!(name(&mut rig, at, 4, heap), 0);
    assert_eq!(named(&rig, FIRST), ["4:heap of mine"]);
    assert_eq!(name(&mut rig, at + PAGE, 1, stack), 0);
    let three = ["1:heap of mine", "1:", "2:heap of mine"];
    assert_eq!(named(&rig, FIRST), three);
    let child = rig.fork();
    assert_eq!(named(&rig, child), three);
    // It goes along, and pieces with one name are one.
    assert_eq!(name(&mut rig, at + PAGE, 1, heap), 0);
    let to = rig.call(nr::__NR_mremap, &[at, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE.into()]) as u64;
    assert_eq!(named(&rig, FIRST), ["8:heap of mine"]);
    assert_eq!(name(&mut rig, to, 8, 0), 0);
    assert!(named(&rig, FIRST).is_empty());
    let shared = map(&mut rig, 1, MAP_SHARED | MAP_ANONYMOUS, u64::MAX);
    assert_eq!(name(&mut rig, shared, 1, heap), 0);
    assert_eq!(named(&rig, FIRST), ["1_shmem:heap of mine"]);
}

#[test]
fn names_have_rules() {
    let mut rig = Rig::begun();
    let good = rig.put(b"name\0");
    let at = map(&mut rig, 3, ANYWHERE, u64::MAX);
    let long = "x".repeat(80);
    for text in ["a[b", "a]b", "a$b", "a`b", "a\\b", "a\nb", "a\u{7f}b", long.as_str()] {
        let bad = rig.put(format!("{text}\0").as_bytes());
        assert_eq!(name(&mut rig, at, 1, bad), error(EINVAL), "{text:?}");
    }
    let longest = rig.put(format!("{}\0", "x".repeat(79)).as_bytes());
    assert_eq!(name(&mut rig, at, 1, longest), 0);
    assert_eq!(name(&mut rig, at, 1, 8), error(EFAULT));
    assert_eq!(name(&mut rig, at + 1, 1, good), error(EINVAL));
    assert_eq!(name(&mut rig, at, 0, good), 0);
    assert_eq!(name(&mut rig, 0u64.wrapping_sub(PAGE), 2, good), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_prctl, &[PR_SET_VMA.into(), 1, at, PAGE, good]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_munmap, &[at + PAGE, PAGE]), 0);
    assert_eq!(name(&mut rig, at, 3, good), error(ENOMEM));
    assert_eq!(named(&rig, FIRST), ["1:name", "1:name"], "what is there has it");
    let fd = memory(&mut rig, 1);
    let file = map(&mut rig, 1, MAP_SHARED, fd);
    assert_eq!(name(&mut rig, file, 1, good), error(EBADF));
}

/// Names that no memory has any more make room for others.
#[test]
fn names_are_forgotten() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, 2, ANYWHERE, u64::MAX);
    let keeps = rig.put(b"kept\0");
    assert_eq!(name(&mut rig, at + PAGE, 1, keeps), 0);
    let before = rig.free;
    for number in 0..1000 {
        rig.free = before;
        let text = rig.put(format!("name {number}\0").as_bytes());
        assert_eq!(name(&mut rig, at, 1, text), 0);
        assert_eq!(named(&rig, FIRST), [format!("1:name {number}"), "1:kept".into()]);
    }
    assert_eq!(rig.call(nr::__NR_munmap, &[at, 2 * PAGE]), 0);
    // So many as there may be at once, and no more.
    let at = map(&mut rig, 256, ANYWHERE, u64::MAX);
    for number in 0..256 {
        rig.free = before;
        let text = rig.put(format!("name {number}\0").as_bytes());
        let expected = if number < 255 { 0 } else { error(ENOMEM) };
        assert_eq!(name(&mut rig, at + number * PAGE, 1, text), expected, "{number}");
    }
}

/// Memory that shows the last pages that there can be does not grow beyond them, however it was made longer before.
#[test]
fn mappings_end_where_places_do() {
    let mut rig = Rig::begun();
    let file = rig.system.store.frames.make_object(None, None).unwrap();
    let source = Some(Source { file, offset: 0u64.wrapping_sub(3 * PAGE) });
    let kind = Kind { is_shared: true, source, ..Kind::private(Rights::READ_WRITE) };
    let room = rig.system.room(FIRST).unwrap();
    let at = 0x1000_0000;
    let mapped = room.borrow_mut().memory.map(&mut rig.system.store.frames, Some(at), PAGE, kind, false);
    assert_eq!(mapped, Ok(at));
    let remap = |rig: &mut Rig, old: u64, pages: [u64; 2], flags: u32, to: u64| {
        let [before, after] = pages.map(|pages| pages * PAGE);
        rig.call(nr::__NR_mremap, &[old, before, after, flags.into(), to])
    };
    for pages in [3, 4, 1 << 30] {
        assert_eq!(remap(&mut rig, at, [1, pages], MREMAP_MAYMOVE, 0), error(EINVAL), "{pages} pages");
        assert_eq!(remap(&mut rig, at, [1, pages], 0, 0), error(EINVAL));
    }
    let both = MREMAP_MAYMOVE | MREMAP_FIXED;
    assert_eq!(remap(&mut rig, at, [1, 3], both, 0x2000_0000), error(EINVAL));
    assert_eq!(remap(&mut rig, at, [1, 2], 0, 0), at as i64);
    fill(&mut rig, at, 2, 5);
    // The end of it, by itself, has no more places.
    assert_eq!(remap(&mut rig, at + PAGE, [1, 2], MREMAP_MAYMOVE, 0), error(EINVAL));
    let moved = remap(&mut rig, at + PAGE, [1, 1], both, 0x2000_0000) as u64;
    assert_eq!(moved, 0x2000_0000);
    assert_eq!(seen(&mut rig, FIRST, moved - PAGE), [None, Some(5), None]);
    // Memory of zeros has no places that could end.
    let other = map(&mut rig, 1, ANYWHERE, u64::MAX);
    assert!(remap(&mut rig, other, [1, 1 << 20], MREMAP_MAYMOVE, 0) > 0);
    rig.system.store.frames.leave_object(file);
}
