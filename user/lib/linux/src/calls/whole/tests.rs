//! Long reads and writes, and memory of which calls ask whether it is there.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{EFBIG, EINVAL, ENOMEM, Errno};
use crate::frames::PAGE;
use linux_raw_sys::general as nr;
use linux_raw_sys::net::{AF_UNIX, MSG_DONTWAIT, SOCK_SEQPACKET};
use std::vec;
use std::vec::Vec;

/// More than is moved at once, and no multiple of it.
const LEN: u64 = (3 << 20) + 100;

fn error(error: Errno) -> i64 {
    error.result() as i64
}

/// A file opened by the first process, and as many bytes of its memory, which are not the same everywhere.
fn begun() -> (Rig, u64, u64, Vec<u8>) {
    let mut rig = Rig::begun();
    let fd = rig.open("/tmp/long") as u64;
    let bytes: Vec<u8> = (0..LEN).map(|at| (at >> 12) as u8 ^ at as u8).collect();
    let at = rig.put(&bytes);
    (rig, fd, at, bytes)
}

#[test]
fn a_long_write_and_a_long_read_are_whole() {
    let (mut rig, fd, at, bytes) = begun();
    assert_eq!(rig.call(nr::__NR_write, &[fd, at, LEN]), LEN as i64);
    assert_eq!(rig.call(nr::__NR_lseek, &[fd, 0, nr::SEEK_CUR.into()]), LEN as i64);
    rig.system.write(FIRST, at, &vec![0; LEN as usize]).unwrap();
    assert_eq!(rig.call(nr::__NR_pread64, &[fd, at, LEN + 5, 0]), LEN as i64);
    assert!(rig.get(FIRST, at, LEN as usize) == bytes);
    // In pieces, behind a part of the file.
    rig.system.write(FIRST, at, &vec![0; LEN as usize]).unwrap();
    let [first, second] = [100, LEN - 200];
    let list = rig.put(&[at, first, at + first, second].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_preadv, &[fd, list, 2, 100]), LEN as i64 - 100);
    assert!(rig.get(FIRST, at, LEN as usize - 100) == bytes[100..]);
    // It ends where memory does.
    let last = DATA + (4 << 20) - (2 << 20);
    assert_eq!(rig.call(nr::__NR_pread64, &[fd, last, LEN, 0]), 2 << 20);
    assert_eq!(rig.call(nr::__NR_pwrite64, &[fd, last, LEN, 0]), 2 << 20);
    let zero = rig.open("/dev/zero") as u64;
    assert_eq!(rig.call(nr::__NR_read, &[zero, at, LEN]), LEN as i64);
}

#[test]
fn a_long_write_ends_at_the_longest_file() {
    let (mut rig, fd, at, _) = begun();
    rig.ignore(nr::SIGXFSZ);
    // The limit lies between two of the pieces in which bytes are moved.
    let limit = rig.put(&[2u64 << 20, u64::MAX].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_setrlimit, &[nr::RLIMIT_FSIZE.into(), limit]), 0);
    assert_eq!(rig.call(nr::__NR_write, &[fd, at, LEN]), 2 << 20);
    assert_eq!(rig.call(nr::__NR_write, &[fd, at, LEN]), error(EFBIG));
}

#[test]
fn nothing_is_sent_of_a_file_that_is_over() {
    let mut rig = Rig::begun();
    let fd = rig.open("/tmp/empty") as u64;
    let pair = rig.two(nr::__NR_socketpair, &[AF_UNIX.into(), SOCK_SEQPACKET.into(), 0], 3);
    assert_eq!(rig.call(nr::__NR_sendfile, &[pair[0], fd, 0, 100]), 0);
    let room = rig.room(16);
    let received = rig.call(nr::__NR_recvfrom, &[pair[1], room, 16, MSG_DONTWAIT.into(), 0, 0]);
    assert_eq!(received, error(crate::errno::EAGAIN));
}

/// Programs ask by these calls whether there is memory, and whether advice has an effect.
#[test]
fn memory_that_is_not_there_is_told_so() {
    let mut rig = Rig::begun();
    let kind = u64::from(nr::MAP_PRIVATE | nr::MAP_ANONYMOUS);
    let at = rig.call(nr::__NR_mmap, &[0, 3 * PAGE, 3, kind, u64::MAX, 0]) as u64;
    assert_eq!(rig.call(nr::__NR_munmap, &[at + PAGE, PAGE]), 0);
    for (len, expected) in [(PAGE, 0), (3 * PAGE, error(ENOMEM)), (0, 0)] {
        assert_eq!(rig.call(nr::__NR_msync, &[at, len, nr::MS_ASYNC.into()]), expected);
        for advice in [nr::MADV_NORMAL, nr::MADV_WILLNEED, nr::MADV_HUGEPAGE, nr::MADV_DODUMP, nr::MADV_COLD]
        {
            assert_eq!(rig.call(nr::__NR_madvise, &[at, len, advice.into()]), expected);
        }
    }
    assert_eq!(rig.call(nr::__NR_msync, &[at + PAGE, PAGE, nr::MS_SYNC.into()]), error(ENOMEM));
    for advice in [nr::MADV_REMOVE, 5, 26] {
        assert_eq!(rig.call(nr::__NR_madvise, &[at, PAGE, advice.into()]), error(EINVAL));
    }
}

#[test]
fn a_heap_has_the_limit_of_all_memory() {
    let mut rig = Rig::begun();
    let heap = rig.call(nr::__NR_brk, &[0]) as u64;
    let limit = rig.put(&[16u64 << 20, u64::MAX].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_setrlimit, &[nr::RLIMIT_AS.into(), limit]), 0);
    assert_eq!(rig.call(nr::__NR_brk, &[heap + (4 << 20)]) as u64, heap + (4 << 20));
    assert_eq!(rig.call(nr::__NR_brk, &[heap + (16 << 20)]) as u64, heap + (4 << 20));
    assert_eq!(rig.call(nr::__NR_brk, &[heap]) as u64, heap);
}
