//! Memory that processes share without a file, and memory behind descriptors. Numbers that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{EBUSY, EINVAL, EPERM, Errno};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::memory::{Fault, Rights};
use linux_raw_sys::general::{
    self as nr, F_ADD_SEALS, F_GET_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE,
    MADV_DONTNEED, MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, MFD_ALLOW_SEALING, MREMAP_MAYMOVE, O_CREAT,
    O_RDWR, PROT_READ, PROT_WRITE, S_IFREG, SEEK_END,
};
use std::vec::Vec;

const BOTH: u64 = (PROT_READ | PROT_WRITE) as u64;
const NOBODY: u64 = u64::MAX;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn map(rig: &mut Rig, tid: Tid, len: u64, rights: u64, flags: u32, fd: u64) -> u64 {
    let at = rig.call_by(tid, nr::__NR_mmap, &[0, len, rights, flags.into(), fd, 0]);
    assert!(at > 0, "{at}");
    at as u64
}

fn put(rig: &mut Rig, tid: Tid, at: u64, byte: u8) {
    rig.system.write(tid, at, &[byte]).unwrap();
}

fn byte(rig: &mut Rig, tid: Tid, at: u64) -> u8 {
    rig.get(tid, at, 1)[0]
}

fn exit(rig: &mut Rig, tid: Tid) {
    assert_eq!(rig.try_by(tid, nr::__NR_exit_group, &[0]), None);
    assert_eq!(rig.call(nr::__NR_wait4, &[tid.into(), 0, 0, 0]), tid.into());
}

fn frames(rig: &Rig) -> (usize, usize) {
    (rig.system.store.frames.used(), rig.system.store.frames.object_count())
}

fn create(rig: &mut Rig, flags: u32) -> u64 {
    let name = rig.put(b"name\0");
    let fd = rig.call(nr::__NR_memfd_create, &[name, flags.into()]);
    assert!(fd > 0, "{fd}");
    fd as u64
}

#[test]
fn shared_memory_that_nobody_has_touched_is_shared() {
    let mut rig = Rig::begun();
    let before = frames(&rig);
    let at = map(&mut rig, FIRST, 4 * PAGE, BOTH, MAP_SHARED | MAP_ANONYMOUS, NOBODY);
    let child = rig.fork();
    let grandchild = rig.call_by(child, nr::__NR_fork, &[]) as Tid;
    put(&mut rig, grandchild, at, 5);
    put(&mut rig, FIRST, at + PAGE, 6);
    for tid in [FIRST, child, grandchild] {
        assert_eq!([0, 1, 2].map(|page| byte(&mut rig, tid, at + page * PAGE)), [5, 6, 0]);
    }
    // It outlives who made it, and is gone with the last one that has some of it.
    assert_eq!(rig.call(nr::__NR_munmap, &[at, 4 * PAGE]), 0);
    assert_eq!(rig.call_by(child, nr::__NR_munmap, &[at + PAGE, 3 * PAGE]), 0);
    assert_eq!(rig.try_by(grandchild, nr::__NR_exit_group, &[0]), None);
    assert_eq!(byte(&mut rig, child, at), 5);
    rig.call_by(child, nr::__NR_wait4, &[grandchild.into(), 0, 0, 0]);
    exit(&mut rig, child);
    assert_eq!(frames(&rig).1, before.1);
}

#[test]
fn objects_are_given_back() {
    let mut rig = Rig::begun();
    let before = frames(&rig);
    for _ in 0..3 {
        let at = map(&mut rig, FIRST, 8 * PAGE, BOTH, MAP_SHARED | MAP_ANONYMOUS, NOBODY);
        (0..8).for_each(|page| put(&mut rig, FIRST, at + page * PAGE, 1));
        assert_eq!(frames(&rig), (before.0 + 8, before.1 + 1));
        assert_eq!(rig.call(nr::__NR_mprotect, &[at + PAGE, PAGE, PROT_READ.into()]), 0);
        let moved =
            rig.call(nr::__NR_mremap, &[at + 2 * PAGE, 6 * PAGE, 60 * PAGE, MREMAP_MAYMOVE.into()]) as u64;
        assert_eq!([0, 5, 6].map(|page| byte(&mut rig, FIRST, moved + page * PAGE)), [1, 1, 0]);
        // A page that is given up is not lost: others have it.
        assert_eq!(rig.call(nr::__NR_madvise, &[moved, PAGE, MADV_DONTNEED.into()]), 0);
        assert_eq!(byte(&mut rig, FIRST, moved), 1);
        assert_eq!(rig.call(nr::__NR_munmap, &[moved, 60 * PAGE]), 0);
        assert_eq!(frames(&rig).1, before.1 + 1);
        assert_eq!(rig.call(nr::__NR_munmap, &[at, 2 * PAGE]), 0);
        assert_eq!(frames(&rig), before);
    }
    // A mapping that fails leaves nothing.
    let limit = rig.put(&[1u64 << 20, 1 << 20].map(u64::to_le_bytes).concat());
    let flags = u64::from(MAP_SHARED | MAP_ANONYMOUS | nr::MAP_FIXED_NOREPLACE);
    assert!(rig.call(nr::__NR_mmap, &[DATA, PAGE, BOTH, flags, NOBODY, 0]) < 0);
    assert!(rig.call(nr::__NR_setrlimit, &[nr::RLIMIT_AS.into(), limit]) == 0);
    assert!(rig.call(nr::__NR_mmap, &[0, 1 << 21, BOTH, (MAP_SHARED | MAP_ANONYMOUS).into(), NOBODY, 0]) < 0);
    assert_eq!(frames(&rig).1, before.1);
}

#[test]
fn futexes_of_untouched_memory_are_one() {
    let mut rig = Rig::begun();
    let at = map(&mut rig, FIRST, PAGE, BOTH, MAP_SHARED | MAP_ANONYMOUS, NOBODY);
    let child = rig.fork();
    assert_eq!(rig.try_by(child, nr::__NR_futex, &[at + 8, 0, 0, 0]), None);
    assert_eq!(rig.call(nr::__NR_futex, &[at + 8, 1, 1]), 1);
    assert_eq!(rig.answer(child), Some(0));
}

#[test]
fn memory_behind_a_descriptor_is_a_file() {
    let mut rig = Rig::begun();
    let before = frames(&rig);
    let fd = create(&mut rig, 0);
    assert_eq!((rig.write(fd, b"hello"), rig.read(fd, 9)), (5, Ok(Vec::new())));
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, 0]), 0);
    assert_eq!(rig.read(fd, 3), Ok(b"hel".to_vec()));
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, 3 * PAGE]), 0);
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, SEEK_END.into()]), 3 * PAGE as i64);
    let stat = rig.room(144);
    assert_eq!(rig.call(nr::__NR_fstat, &[fd, stat]), 0);
    let words = [16, 24, 48, 64].map(|at| rig.half(stat + at));
    assert_eq!(words, [0, S_IFREG | 0o777, 3 * PAGE as u32, 8], "names, mode, bytes, blocks");
    let shared = map(&mut rig, FIRST, 4 * PAGE, BOTH, MAP_SHARED, fd);
    let own = map(&mut rig, FIRST, PAGE, BOTH, MAP_PRIVATE, fd);
    put(&mut rig, FIRST, shared, b'H');
    put(&mut rig, FIRST, own, b'X');
    let to = rig.room(8);
    assert_eq!((rig.call(nr::__NR_pread64, &[fd, to, 5, 0]), rig.get(FIRST, to, 5)), (5, b"Hello".to_vec()));
    assert_eq!(byte(&mut rig, FIRST, own), b'X');
    // Behind the end there is nothing.
    let beyond = rig.system.fault(FIRST, shared + 3 * PAGE, Rights::READ);
    assert_eq!(beyond, Err(Fault::BehindEnd));
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, 2]), 0);
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, 8]), 0);
    assert_eq!(rig.call(nr::__NR_pread64, &[fd, to, 8, 0]), 8);
    assert_eq!(rig.get(FIRST, to, 8), b"He\0\0\0\0\0\0");
    assert_eq!(rig.call(nr::__NR_fallocate, &[fd, 0, 100, 100]), 0);
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, SEEK_END.into()]), 200);
    // The mapping holds it.
    assert_eq!(rig.call(nr::__NR_close, &[fd]), 0);
    assert_eq!(byte(&mut rig, FIRST, shared), b'H');
    assert_eq!(rig.call(nr::__NR_munmap, &[shared, 4 * PAGE]), 0);
    assert_eq!(rig.call(nr::__NR_munmap, &[own, PAGE]), 0);
    assert_eq!(frames(&rig).1, before.1);
}

#[test]
fn seals_keep() {
    let mut rig = Rig::begun();
    let plain = create(&mut rig, 0);
    assert_eq!(rig.call(nr::__NR_fcntl, &[plain, F_GET_SEALS.into()]), F_SEAL_SEAL.into());
    assert_eq!(rig.call(nr::__NR_fcntl, &[plain, F_ADD_SEALS.into(), F_SEAL_GROW.into()]), error(EPERM));
    let fd = create(&mut rig, MFD_ALLOW_SEALING);
    let seal = |rig: &mut Rig, seals: u32| rig.call(nr::__NR_fcntl, &[fd, F_ADD_SEALS.into(), seals.into()]);
    rig.write(fd, b"12345678");
    assert_eq!((seal(&mut rig, 1 << 9), seal(&mut rig, F_SEAL_GROW)), (error(EINVAL), 0));
    assert_eq!(rig.write(fd, b"x"), error(EPERM));
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, 9]), error(EPERM));
    assert_eq!((rig.call(nr::__NR_ftruncate, &[fd, 4]), seal(&mut rig, F_SEAL_SHRINK)), (0, 0));
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, 3]), error(EPERM));
    let at = map(&mut rig, FIRST, PAGE, BOTH, MAP_SHARED, fd);
    assert_eq!(seal(&mut rig, F_SEAL_WRITE), error(EBUSY));
    assert_eq!(rig.call(nr::__NR_munmap, &[at, PAGE]), 0);
    assert_eq!(seal(&mut rig, F_SEAL_WRITE), 0);
    assert_eq!(rig.call(nr::__NR_mmap, &[0, PAGE, BOTH, MAP_SHARED.into(), fd, 0]), error(EPERM));
    let at = map(&mut rig, FIRST, PAGE, PROT_READ.into(), MAP_SHARED, fd);
    assert!(rig.call(nr::__NR_mprotect, &[at, PAGE, BOTH]) < 0);
    assert_eq!(byte(&mut rig, FIRST, at), b'1');
    assert_eq!(rig.call(nr::__NR_fcntl, &[fd, F_GET_SEALS.into()]), 14);
    let regular = rig.open("/tmp/file") as u64;
    assert_eq!(rig.call(nr::__NR_fcntl, &[regular, F_GET_SEALS.into()]), error(EINVAL));
    let long = rig.put(&[b'n'; 300]);
    assert_eq!(rig.call(nr::__NR_memfd_create, &[long, 0]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_memfd_create, &[long, 64]), error(EINVAL));
}

/// The calls are those of `shm_open` in the C library.
#[test]
fn files_in_dev_shm_are_shared() {
    let mut rig = Rig::begun();
    let path = rig.put(b"/dev/shm/object\0");
    let flags = u64::from(O_RDWR | O_CREAT | nr::O_EXCL | nr::O_NOFOLLOW | nr::O_CLOEXEC);
    let fd = rig.call(nr::__NR_openat, &[crate::calls::HERE, path, flags, 0o600]);
    assert!(fd > 0, "{fd}");
    let fd = fd as u64;
    assert_eq!(rig.call(nr::__NR_ftruncate, &[fd, 2 * PAGE]), 0);
    let child = rig.fork();
    let at = map(&mut rig, FIRST, 2 * PAGE, BOTH, MAP_SHARED, fd);
    let other = rig.call_by(child, nr::__NR_openat, &[crate::calls::HERE, path, O_RDWR.into(), 0]) as u64;
    let there = map(&mut rig, child, 2 * PAGE, BOTH, MAP_SHARED, other);
    put(&mut rig, FIRST, at + PAGE, 9);
    assert_eq!(byte(&mut rig, child, there + PAGE), 9);
    assert_eq!(rig.call(nr::__NR_unlink, &[path]), 0);
    put(&mut rig, child, there, 8);
    assert_eq!(byte(&mut rig, FIRST, at), 8);
}
