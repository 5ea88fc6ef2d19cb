//! Calls that move bytes between descriptors, and small calls of which each has one answer. Numbers that are expected are Linux's own.

use crate::calls::HERE;
use crate::calls::rig::{FIRST, Rig};
use crate::errno::{
    EAGAIN, EBADF, EEXIST, EFAULT, EINVAL, EISDIR, ENOENT, EOPNOTSUPP, EPERM, EPIPE, ESPIPE, Errno,
};
use linux_raw_sys::general::*;
use std::vec::Vec;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn pipe(rig: &mut Rig, flags: u32) -> [u64; 2] {
    rig.two(__NR_pipe2, &[flags.into()], 0)
}

fn file(rig: &mut Rig, path: &str, bytes: &[u8]) -> u64 {
    let fd = rig.open(path) as u64;
    rig.write(fd, bytes);
    rig.call(__NR_lseek, &[fd, 0, 0]);
    fd
}

fn splice(rig: &mut Rig, from: (u64, u64), to: (u64, u64), len: u64, flags: u32) -> i64 {
    rig.call(__NR_splice, &[from.0, from.1, to.0, to.1, len, flags.into()])
}

fn whole(rig: &mut Rig, fd: u64) -> Vec<u8> {
    let to = rig.room(64);
    let count = rig.call(__NR_pread64, &[fd, to, 64, 0]);
    rig.get(FIRST, to, count as usize)
}

#[test]
fn bytes_go_through_pipes() {
    let mut rig = Rig::begun();
    let [reader, writer] = pipe(&mut rig, 0);
    let (source, target) = (file(&mut rig, "/tmp/a", b"hello world"), file(&mut rig, "/tmp/b", b""));
    assert_eq!(splice(&mut rig, (source, 0), (writer, 0), 5, 0), 5);
    let at = rig.put(&6u64.to_le_bytes());
    assert_eq!(splice(&mut rig, (source, at), (writer, 0), 99, 0), 5);
    assert_eq!((rig.half(at), rig.call(__NR_lseek, &[source, 0, 1])), (11, 5));
    assert_eq!(splice(&mut rig, (source, at), (writer, 0), 99, 0), 0, "the end");
    assert_eq!(splice(&mut rig, (reader, 0), (target, 0), 7, 0), 7);
    let at = rig.put(&1u64.to_le_bytes());
    assert_eq!(splice(&mut rig, (reader, 0), (target, at), 99, 0), 3);
    assert_eq!(whole(&mut rig, target), b"hrldowo");
    assert_eq!((rig.half(at), rig.call(__NR_lseek, &[target, 0, 1])), (4, 7));
    // Nothing is there.
    assert_eq!(splice(&mut rig, (reader, 0), (target, 0), 9, SPLICE_F_NONBLOCK), error(EAGAIN));
    let child = rig.fork();
    assert_eq!(rig.try_by(child, __NR_splice, &[reader, 0, target, 0, 9, 0]), None);
    rig.write(writer, b"late");
    assert_eq!(rig.answer(child), Some(4));
    rig.call(__NR_close, &[writer]);
    rig.call_by(child, __NR_close, &[writer]);
    assert_eq!(splice(&mut rig, (reader, 0), (target, 0), 9, 0), 0);
}

#[test]
fn what_is_no_pipe_is_refused() {
    let mut rig = Rig::begun();
    let [reader, writer] = pipe(&mut rig, 0);
    let fd = file(&mut rig, "/tmp/a", b"hello");
    let at = rig.put(&[0; 8]);
    assert_eq!(splice(&mut rig, (fd, 0), (fd, 0), 5, 0), error(EINVAL));
    assert_eq!(splice(&mut rig, (reader, 0), (writer, 0), 5, 0), error(EINVAL));
    assert_eq!(splice(&mut rig, (fd, 0), (writer, at), 5, 0), error(ESPIPE));
    assert_eq!(splice(&mut rig, (fd, 0), (writer, 0), 5, 16), error(EINVAL));
    assert_eq!(splice(&mut rig, (writer, 0), (fd, 0), 5, 0), error(EBADF));
    assert_eq!(splice(&mut rig, (99, 0), (fd, 0), 0, 0), 0);
    assert_eq!(rig.call(__NR_tee, &[fd, writer, 5, 0]), error(EINVAL));
    rig.ignore(SIGPIPE);
    rig.call(__NR_close, &[reader]);
    assert_eq!(splice(&mut rig, (fd, 0), (writer, 0), 5, 0), error(EPIPE));
}

#[test]
fn a_pipe_is_copied() {
    let mut rig = Rig::begun();
    let ([reader, writer], [other, to]) = (pipe(&mut rig, 0), pipe(&mut rig, O_NONBLOCK));
    rig.write(writer, b"hello");
    assert_eq!(rig.call(__NR_tee, &[reader, to, 4, 0]), 4);
    assert_eq!((rig.read(other, 9), rig.read(reader, 9)), (Ok(b"hell".to_vec()), Ok(b"hello".to_vec())));
    assert_eq!(rig.call(__NR_tee, &[reader, to, 4, SPLICE_F_NONBLOCK.into()]), error(EAGAIN));
    rig.write(writer, b"more");
    assert_eq!(splice(&mut rig, (reader, 0), (to, 0), 9, 0), 4);
    assert_eq!(rig.read(other, 9), Ok(b"more".to_vec()));
    // A full one takes no more, and nothing is lost.
    rig.write(to, &[0; 65536]);
    rig.write(writer, b"rest");
    assert_eq!(splice(&mut rig, (reader, 0), (to, 0), 9, 0), error(EAGAIN));
    assert_eq!(rig.read(reader, 9), Ok(b"rest".to_vec()));
    let words = rig.room(16);
    let bytes = rig.put(b"memory");
    rig.system.write_words(FIRST, words, &[bytes, 6]).unwrap();
    assert_eq!(rig.call(__NR_vmsplice, &[writer, words, 1, 0]), 6);
    assert_eq!(rig.read(reader, 9), Ok(b"memory".to_vec()));
    assert_eq!(rig.call(__NR_vmsplice, &[0, words, 1, 0]), error(EBADF));
}

#[test]
fn files_are_copied() {
    let mut rig = Rig::begun();
    let (from, to) = (file(&mut rig, "/tmp/a", b"0123456789"), file(&mut rig, "/tmp/b", b"abc"));
    let copy = |rig: &mut Rig, from: (u64, u64), to: (u64, u64), len: u64| {
        rig.call(__NR_copy_file_range, &[from.0, from.1, to.0, to.1, len, 0])
    };
    assert_eq!(copy(&mut rig, (from, 0), (to, 0), 4), 4);
    let at = rig.put(&[8u64, 5].map(u64::to_le_bytes).concat());
    assert_eq!(copy(&mut rig, (from, at), (to, at + 8), 99), 2);
    assert_eq!(whole(&mut rig, to), b"0123\x0089");
    assert_eq!((rig.half(at), rig.half(at + 8)), (10, 7));
    assert_eq!(copy(&mut rig, (from, at), (to, 0), 99), 0);
    // Pieces of one file may not have something in common.
    let at = rig.put(&[0u64, 3].map(u64::to_le_bytes).concat());
    assert_eq!(copy(&mut rig, (from, at), (from, at + 8), 4), error(EINVAL));
    assert_eq!(copy(&mut rig, (from, at), (from, at + 8), 3), 3);
    assert_eq!(whole(&mut rig, from), b"0120126789");
    let [reader, _] = pipe(&mut rig, 0);
    assert_eq!(copy(&mut rig, (reader, 0), (to, 0), 4), error(EINVAL));
    let path = rig.put(b"/tmp\0");
    let directory = rig.call(__NR_open, &[path, (O_RDONLY | O_DIRECTORY).into(), 0]) as u64;
    assert_eq!(copy(&mut rig, (directory, 0), (to, 0), 4), error(EISDIR));
    assert_eq!(rig.call(__NR_copy_file_range, &[from, 0, to, 0, 4, 1]), error(EINVAL));
}

#[test]
fn pieces_are_read_and_written_with_flags() {
    let mut rig = Rig::begun();
    let fd = file(&mut rig, "/tmp/a", b"0123456789");
    let to = rig.room(16);
    let pieces = rig.put(&[to, 4].map(u64::to_le_bytes).concat());
    let here = u64::MAX;
    assert_eq!(rig.call(__NR_preadv2, &[fd, pieces, 1, 2, 0, 0]), 4);
    assert_eq!(rig.get(FIRST, to, 4), b"2345");
    assert_eq!(rig.call(__NR_preadv2, &[fd, pieces, 1, here, here, RWF_HIPRI.into()]), 4);
    assert_eq!((rig.get(FIRST, to, 4), rig.call(__NR_lseek, &[fd, 0, 1])), (b"0123".to_vec(), 4));
    assert_eq!(rig.call(__NR_pwritev2, &[fd, pieces, 1, 6, 0, RWF_DSYNC.into()]), 4);
    assert_eq!(whole(&mut rig, fd), b"0123450123");
    assert_eq!(rig.call(__NR_pwritev2, &[fd, pieces, 1, here, here, 0]), 4);
    assert_eq!(rig.call(__NR_pwritev2, &[fd, pieces, 1, 0, 0, RWF_APPEND.into()]), error(EOPNOTSUPP));
    assert_eq!(rig.call(__NR_preadv2, &[fd, pieces, 1, 0, 0, 1 << 20]), error(EOPNOTSUPP));
    assert_eq!(rig.call(__NR_preadv2, &[fd, pieces, 1, 1 << 63, 0, 0]), error(EINVAL));
}

#[test]
fn names_are_exchanged() {
    let mut rig = Rig::begun();
    let [a, b, d, none] = ["/tmp/a", "/tmp/b", "/tmp/d", "/tmp/none"].map(|path| [path, "\0"].concat());
    let [a, b, d, none] = [a, b, d, none].map(|path| rig.put(path.as_bytes()));
    for (path, bytes) in [("/tmp/a", b"aa"), ("/tmp/b", b"bb")] {
        let fd = file(&mut rig, path, bytes);
        rig.call(__NR_close, &[fd]);
    }
    rig.call(__NR_mkdir, &[d, 0o755]);
    let mut rename =
        |from: u64, to: u64, flags: u32| rig.call(__NR_renameat2, &[HERE, from, HERE, to, flags.into()]);
    assert_eq!(rename(a, b, RENAME_NOREPLACE), error(EEXIST));
    assert_eq!(rename(a, b, RENAME_NOREPLACE | RENAME_EXCHANGE), error(EINVAL));
    assert_eq!(rename(a, b, RENAME_WHITEOUT), error(EINVAL));
    assert_eq!(rename(a, none, RENAME_EXCHANGE), error(ENOENT));
    assert_eq!(rename(a, a, RENAME_EXCHANGE), 0);
    assert_eq!(rename(a, b, RENAME_EXCHANGE), 0);
    assert_eq!(rename(a, d, RENAME_EXCHANGE), 0, "a file and a directory");
    let (fd, other) = (rig.open("/tmp/d") as u64, rig.open("/tmp/b") as u64);
    assert_eq!((whole(&mut rig, fd), whole(&mut rig, other)), (b"bb".to_vec(), b"aa".to_vec()));
    assert_eq!(rig.call(__NR_rmdir, &[a]), 0);
    let inside = rig.put(b"/tmp/d2/x\0");
    let outer = rig.put(b"/tmp/d2\0");
    rig.call(__NR_mkdir, &[outer, 0o755]);
    rig.call(__NR_mkdir, &[inside, 0o755]);
    assert_eq!(rig.call(__NR_renameat2, &[HERE, outer, HERE, inside, RENAME_EXCHANGE.into()]), error(EINVAL));
    assert_eq!(rig.call(__NR_rmdir, &[inside]), 0, "all is as it was");
}

#[test]
fn small_calls_are_there() {
    let mut rig = Rig::begun();
    let fd = file(&mut rig, "/tmp/a", b"hello");
    let [reader, _] = pipe(&mut rig, 0);
    assert_eq!(rig.call(__NR_sync_file_range, &[fd, 0, 5, 7]), 0);
    assert_eq!(rig.call(__NR_sync_file_range, &[fd, 0, 5, 8]), error(EINVAL));
    assert_eq!(rig.call(__NR_sync_file_range, &[reader, 0, 5, 7]), error(ESPIPE));
    assert_eq!((rig.call(__NR_syncfs, &[fd]), rig.call(__NR_syncfs, &[99])), (0, error(EBADF)));
    let [link, path, empty] = [&b"/tmp/link\0"[..], b"/tmp/a\0", b"\0"].map(|bytes| rig.put(bytes));
    rig.call(__NR_symlink, &[path, link]);
    let mut chmod =
        |fd: u64, path: u64, flags: u32| rig.call(__NR_fchmodat2, &[fd, path, 0o600, flags.into()]);
    assert_eq!((chmod(HERE, link, AT_SYMLINK_NOFOLLOW), chmod(HERE, link, 0)), (error(EOPNOTSUPP), 0));
    assert_eq!((chmod(HERE, path, AT_SYMLINK_NOFOLLOW), chmod(fd, empty, AT_EMPTY_PATH)), (0, 0));
    assert_eq!((chmod(HERE, path, 1), chmod(HERE, empty, 0)), (error(EINVAL), error(ENOENT)));
    let to = rig.room(16);
    assert_eq!(rig.call(__NR_set_robust_list, &[to, 24]), 0);
    assert_eq!(rig.call(__NR_get_robust_list, &[0, to, to + 8]), 0);
    assert_eq!((u64::from(rig.half(to)), rig.half(to + 8)), (to, 24));
}

#[test]
fn a_sandbox_has_a_name_and_no_machine() {
    let mut rig = Rig::begun();
    let name = rig.put(b"box\0/\0");
    let to = rig.room(400);
    assert_eq!(rig.call(__NR_sethostname, &[name, 65]), error(EINVAL));
    assert_eq!(rig.call(__NR_sethostname, &[name, 3]), 0);
    assert_eq!((rig.call(__NR_uname, &[to]), rig.get(FIRST, to + 65, 5)), (0, b"box\0\0".to_vec()));
    for call in [__NR_mount, __NR_umount2, __NR_pivot_root, __NR_reboot, __NR_settimeofday, __NR_ptrace] {
        assert_eq!(rig.call(call, &[name, name, name]), error(EPERM));
    }
    assert_eq!(rig.call(__NR_chroot, &[name + 4]), 0);
    assert_eq!(
        (rig.call(__NR_unshare, &[CLONE_FILES.into()]), rig.call(__NR_unshare, &[CLONE_NEWNET.into()])),
        (0, error(EPERM))
    );
    // A process that gives the rights of `root` up gets them back by what is saved, and no others.
    let same = u64::from(u32::MAX);
    assert_eq!(rig.call(__NR_setregid, &[7, 8]), 0);
    assert_eq!(rig.call(__NR_setreuid, &[same, 5]), 0);
    assert_eq!((rig.call(__NR_geteuid, &[]), rig.call(__NR_getuid, &[])), (5, 0));
    assert_eq!(rig.call(__NR_setreuid, &[6, same]), error(EPERM));
    assert_eq!((rig.call(__NR_setfsuid, &[9]), rig.call(__NR_setfsgid, &[9])), (5, 8));
    assert_eq!(rig.call(__NR_sethostname, &[name, 3]), error(EPERM));
    assert_eq!(rig.call(__NR_setreuid, &[5, 0]), 0);
    assert_eq!(rig.call(__NR_getresuid, &[to, to + 4, to + 8]), 0);
    assert_eq!([0, 4, 8].map(|at| rig.half(to + at)), [5, 0, 0]);
    assert_eq!(rig.call(__NR_setregid, &[8, same]), 0);
}

/// A call that is answered by `EPIPE` comes with a signal, as that of a write does.
#[test]
fn nobody_who_reads_is_told_by_a_signal() {
    for number in [__NR_sendfile, __NR_splice] {
        let mut rig = Rig::begun();
        let fd = file(&mut rig, "/tmp/a", b"hello");
        let [reader, writer] = pipe(&mut rig, 0);
        let unix = linux_raw_sys::net::AF_UNIX.into();
        let [one, other] = rig.two(__NR_socketpair, &[unix, 1, 0], 3);
        rig.write(writer, b"hello");
        rig.call(__NR_close, &[other]);
        let set = rig.put(&(1u64 << (SIGPIPE - 1)).to_le_bytes());
        rig.call(__NR_rt_sigprocmask, &[SIG_BLOCK.into(), set, 0, 8]);
        let arguments = if number == __NR_splice { [reader, 0, one, 0, 5, 0] } else { [one, fd, 0, 5, 0, 0] };
        assert_eq!(rig.call(number, &arguments), error(EPIPE));
        assert_eq!((rig.call(__NR_rt_sigpending, &[set, 8]), rig.half(set)), (0, 1 << (SIGPIPE - 1)));
    }
}

#[test]
fn files_are_sent_into_pipes() {
    for is_memory in [false, true] {
        let mut rig = Rig::begun();
        let [reader, writer] = pipe(&mut rig, 0);
        let mut source = file(&mut rig, "/tmp/a", b"hello world");
        if is_memory {
            let name = rig.put(b"m\0");
            source = rig.call(__NR_memfd_create, &[name, 0]) as u64;
            rig.write(source, b"hello world");
            rig.call(__NR_lseek, &[source, 0, 0]);
        }
        assert_eq!(rig.call(__NR_sendfile, &[writer, source, 0, 5]), 5);
        assert_eq!((rig.read(reader, 99), rig.call(__NR_lseek, &[source, 0, 1])), (Ok(b"hello".to_vec()), 5));
        let at = rig.put(&6u64.to_le_bytes());
        assert_eq!(rig.call(__NR_sendfile, &[writer, source, at, 99]), 5);
        assert_eq!((rig.half(at), rig.call(__NR_lseek, &[source, 0, 1])), (11, 5));
        assert_eq!(rig.read(reader, 99), Ok(b"world".to_vec()));
        assert_eq!(rig.call(__NR_sendfile, &[writer, source, at, 99]), 0, "the end");
        assert_eq!(rig.call(__NR_sendfile, &[writer, source, 0, 0]), 0);
        rig.ignore(SIGPIPE);
        rig.call(__NR_close, &[reader]);
        assert_eq!(rig.call(__NR_sendfile, &[writer, source, 0, 5]), error(EPIPE));
    }
}

/// A pipe gets what it has room for, and whoever would get nothing in waits for room.
#[test]
fn a_full_pipe_is_waited_for() {
    let mut rig = Rig::begun();
    let [reader, writer] = pipe(&mut rig, 0);
    let source = file(&mut rig, "/tmp/a", &[b'x'; 100_000]);
    assert_eq!(rig.call(__NR_sendfile, &[writer, source, 0, 100_000]), 65_536);
    let child = rig.fork();
    assert_eq!(rig.try_by(child, __NR_sendfile, &[writer, source, 0, 100_000]), None);
    assert_eq!(rig.read(reader, 1000).map(|bytes| bytes.len()), Ok(1000));
    assert_eq!(rig.answer(child), Some(1000));
    rig.call(__NR_fcntl, &[writer, F_SETFL.into(), O_NONBLOCK.into()]);
    assert_eq!(rig.call(__NR_sendfile, &[writer, source, 0, 5]), error(EAGAIN));
    assert_eq!(rig.call(__NR_lseek, &[source, 0, 1]), 66_536);
    assert_eq!(rig.read(reader, 70_000), Ok([b'x'; 65_536].to_vec()));
    assert_eq!(rig.call(__NR_sendfile, &[writer, source, 0, 100_000]), 33_464);
}

/// Several things are wrong at once: the first that Linux looks at is told.
#[test]
fn what_is_not_sent_is_refused_in_order() {
    let mut rig = Rig::begun();
    let [reader, writer] = pipe(&mut rig, 0);
    let source = file(&mut rig, "/tmp/a", b"hello");
    let path = rig.put(b"/tmp/a\0");
    let closed = rig.call(__NR_open, &[path, O_WRONLY.into(), 0]) as u64;
    let [good, bad] = [0, u64::MAX].map(|position: u64| rig.put(&position.to_le_bytes()));
    for (arguments, expected) in [
        ([99, 99, 8, 5], EFAULT),
        ([99, 99, bad, 5], EBADF),
        ([99, closed, bad, 5], EBADF),
        ([99, reader, good, 5], ESPIPE),
        ([99, source, bad, 5], EINVAL),
        ([99, source, good, 5], EBADF),
        ([reader, source, good, 5], EBADF),
        ([writer, reader, 0, 5], EINVAL),
        ([source, reader, 0, 5], EINVAL),
    ] {
        assert_eq!(rig.call(__NR_sendfile, &arguments), error(expected), "{arguments:x?}");
    }
}
