//! Files that are opened once more by way of their descriptors, written at their end, and as long as they may be.

use super::late::{other_reads, pwrite, world};
use crate::calls::HERE;
use crate::errno::{EACCES, EEXIST, EFAULT, EFBIG, EINVAL, EMFILE, ENFILE, ENOENT, ENOTDIR, Errno, Result};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::world::{HANDLER, OWN, World};
use linux_raw_sys::general::*;
use std::vec;
use std::vec::Vec;

#[test]
fn a_descriptor_leads_to_its_file_whatever_its_name_is() {
    let mut world = world();
    world.file(b"/f", b"text", 0o644);
    let fd = world.open(1, "/f", O_RDONLY).unwrap();
    let path = std::format!("/proc/self/fd/{fd}");
    world.put(1, OWN, b"/f\0/g\0");
    world.now(1, __NR_rename, &[OWN, OWN + 3]).unwrap();
    world.file(b"/f", b"another one", 0o644);
    let again = world.open(1, &path, O_RDWR).unwrap();
    assert_eq!(world.read(1, again, 100), Some(Ok(b"text".to_vec())));
    assert_eq!(world.write(1, again, b"more"), Some(Ok(4)));
    assert_eq!(world.open(1, &path, O_RDONLY | O_DIRECTORY), Err(ENOTDIR));
    assert_eq!(world.open(1, &path, O_RDWR | O_CREAT | O_EXCL), Err(EEXIST));
    world.by_path(1, __NR_unlink, "/g", &[]).unwrap();
    world.by_path(1, __NR_stat, &path, &[OWN + PAGE]).unwrap();
    let third = world.open(1, &path, O_RDONLY).unwrap();
    assert_eq!(world.read(1, third, 100), Some(Ok(b"textmore".to_vec())));
    world.open(1, &path, O_WRONLY | O_TRUNC).unwrap();
    assert_eq!(world.now(1, __NR_lseek, &[third, 0, SEEK_END.into()]), Ok(0));
    assert_eq!(other_reads(&mut world, b"/f", 0, 100), b"another one");
}

/// A process that may not read a file may not do so by way of a descriptor that is merely a place.
#[test]
fn a_descriptor_gives_no_more_rights() {
    let mut world = world();
    world.file(b"/f", b"text", 0o600);
    let fd = world.open(1, "/f", O_PATH).unwrap();
    world.now(1, __NR_setresuid, &[7, 7, 7]).unwrap();
    assert_eq!(world.open(1, &std::format!("/proc/self/fd/{fd}"), O_RDONLY), Err(EACCES));
}

#[test]
fn an_appending_file_is_written_at_its_end() {
    let mut world = world();
    world.file(b"/f", b"text", 0o644);
    let fd = world.open(1, "/f", O_WRONLY | O_APPEND).unwrap();
    assert_eq!(pwrite(&mut world, fd, b"more", 0), 4);
    assert_eq!(other_reads(&mut world, b"/f", 0, 100), b"textmore");
    assert_eq!(world.now(1, __NR_lseek, &[fd, 0, SEEK_CUR.into()]), Ok(0));
}

#[test]
fn a_file_is_no_longer_than_it_may_be() {
    let mut world = world();
    world.file(b"/f", b"text", 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let words = [10u64, 10].map(u64::to_le_bytes).concat();
    world.put(1, OWN, &words);
    world.now(1, __NR_prlimit64, &[0, RLIMIT_FSIZE.into(), OWN, 0]).unwrap();
    world.action(1, SIGXFSZ, HANDLER);
    assert_eq!(pwrite(&mut world, fd, b"0123456789", 4), 6);
    assert!(!world.handles(1));
    let full = world.call(1, __NR_pwrite64, &[fd, OWN, 1, 10]);
    assert!(world.handles(1), "{full:?}");
    // The signal is blocked in its handler.
    assert_eq!(world.now(1, __NR_ftruncate, &[fd, 11]), Err(EFBIG));
    world.now(1, __NR_ftruncate, &[fd, 9]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 100), b"text01234");
}

/// Limit of files that are longer already, by whatever call bytes come.
#[test]
fn no_call_writes_behind_the_longest_file() {
    let mut world = world();
    world.file(b"/f", &[b'.'; 20], 0o644);
    world.file(b"/g", b"0123456789", 0o644);
    let (fd, from) = (world.open(1, "/f", O_RDWR).unwrap(), world.open(1, "/g", O_RDWR).unwrap());
    let words = [10u64, 10].map(u64::to_le_bytes).concat();
    world.put(1, OWN, &words);
    world.now(1, __NR_prlimit64, &[0, RLIMIT_FSIZE.into(), OWN, 0]).unwrap();
    world.action(1, SIGXFSZ, 1);
    assert_eq!(world.now(1, __NR_pwrite64, &[fd, OWN, 1, 12]), Err(EFBIG));
    assert_eq!(pwrite(&mut world, fd, b"abc", 8), 2);
    world.put(1, OWN, &[8u64, 0].map(u64::to_le_bytes).concat());
    assert_eq!(world.now(1, __NR_copy_file_range, &[from, OWN + 8, fd, OWN, 5]), Ok(2));
    assert_eq!(world.now(1, __NR_copy_file_range, &[from, OWN + 8, fd, OWN, 5]), Err(EFBIG));
    world.now(1, __NR_lseek, &[fd, 7, SEEK_SET.into()]).unwrap();
    assert_eq!(world.now(1, __NR_sendfile, &[fd, from, 0, 5]), Ok(3));
    assert_eq!(world.now(1, __NR_sendfile, &[fd, from, 0, 5]), Err(EFBIG));
    world.now(1, __NR_pipe2, &[OWN, 0]).unwrap();
    let (reader, writer) = (world.number(1, OWN).into(), world.number(1, OWN + 4).into());
    assert_eq!(world.write(1, writer, b"pipe"), Some(Ok(4)));
    world.now(1, __NR_lseek, &[fd, 9, SEEK_SET.into()]).unwrap();
    assert_eq!(world.now(1, __NR_splice, &[reader, 0, fd, 0, 4, 0]), Ok(1));
    assert_eq!(world.now(1, __NR_splice, &[reader, 0, fd, 0, 4, 0]), Err(EFBIG));
    assert_eq!(world.read(1, reader, 9), Some(Ok(b"ipe".to_vec())), "they are still there");
    world.put(1, OWN, b"m\0");
    let memory = world.now(1, __NR_memfd_create, &[OWN, 0]).unwrap();
    assert_eq!(world.now(1, __NR_fallocate, &[memory, 0, 0, 11]), Err(EFBIG));
    world.now(1, __NR_fallocate, &[memory, 0, 0, 10]).unwrap();
    world.now(1, __NR_fsync, &[fd]).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 7, 13), b"01p..........");
}

#[test]
fn files_end_before_the_last_position() {
    let mut world = world();
    world.file(b"/f", b"text", 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let last = i64::MAX as u64;
    assert_eq!(world.now(1, __NR_pwrite64, &[fd, OWN, 1, last]), Err(EFBIG));
    assert_eq!(world.now(1, __NR_pwrite64, &[fd, OWN, 2 * PAGE, last - PAGE]), Err(EFBIG));
    assert_eq!(world.now(1, __NR_pread64, &[fd, OWN, PAGE, last]), Ok(0));
    assert_eq!(world.now(1, __NR_lseek, &[fd, last, SEEK_SET.into()]), Ok(last));
    assert_eq!(world.write(1, fd, b"x"), Some(Err(EFBIG)));
    assert_eq!(world.read(1, fd, 1), Some(Ok(Vec::new())));
    let fallocate = |world: &mut World, at: u64, len: u64| world.now(1, __NR_fallocate, &[fd, 0, at, len]);
    for (at, len) in [(0, 0), (1 << 63, 1), (0, 1 << 63)] {
        assert_eq!(fallocate(&mut world, at, len), Err(EINVAL));
    }
    assert_eq!(fallocate(&mut world, last, 1), Err(EFBIG));
    assert_eq!(fallocate(&mut world, last - 1, last), Err(EFBIG));
}

/// A call that can have no descriptor, or nothing more that is open, neither makes nor cuts off a file, by whatever path it comes there.
#[test]
fn who_can_open_nothing_changes_nothing() {
    let mut world = world();
    world.file(b"/f", b"text", 0o644);
    let fd = world.open(1, "/f", O_RDWR).unwrap();
    let by_descriptor = std::format!("/proc/self/fd/{fd}");
    let how = OWN + PAGE;
    let words = [O_WRONLY | O_CREAT | O_TRUNC, 0o644, RESOLVE_NO_SYMLINKS].map(u64::from);
    world.put(1, how, &words.map(u64::to_le_bytes).concat());
    let tries = |world: &mut World, error: Errno| {
        for path in ["/f", "/new", by_descriptor.as_str()] {
            let flags = O_WRONLY | O_CREAT | O_TRUNC;
            assert_eq!(world.open(1, path, flags), Err(error), "{path}");
            assert_eq!(world.by_path(1, __NR_creat, path, &[0o644]), Err(error), "{path}");
        }
        for path in [&b"/f\0"[..], b"/new\0"] {
            world.put(1, OWN, path);
            let arguments = [HERE, OWN, how, 24];
            assert_eq!(world.now(1, __NR_openat2, &arguments), Err(error), "{path:?}");
        }
        assert_eq!(world.by_path(1, __NR_stat, "/new", &[OWN + 2 * PAGE]), Err(ENOENT));
        assert_eq!(other_reads(world, b"/f", 0, 9), b"text");
    };
    // All descriptors that there may be are there.
    let limits = |world: &mut World, most: u64| {
        world.put(1, OWN, &[most, 1024].map(u64::to_le_bytes).concat());
        world.now(1, __NR_prlimit64, &[0, RLIMIT_NOFILE.into(), OWN, 0]).unwrap();
    };
    limits(&mut world, fd + 1);
    tries(&mut world, EMFILE);
    assert_eq!(world.open(1, "/nowhere/else", O_RDONLY), Err(EMFILE), "nobody looks for it");
    assert_eq!(world.now(1, __NR_open, &[8, 0]), Err(EFAULT));
    assert_eq!(world.open(1, "", O_RDONLY), Err(ENOENT));
    limits(&mut world, 1024);
    // The budget has no room for anything open.
    let budget = world.system.budget.clone();
    let most = budget.max();
    budget.set_max(budget.used());
    tries(&mut world, ENFILE);
    budget.set_max(most);
    let new = world.open(1, "/new", O_WRONLY | O_CREAT).unwrap();
    assert_eq!(new, fd + 1);
    world.open(1, &by_descriptor, O_WRONLY | O_TRUNC).unwrap();
    assert_eq!(other_reads(&mut world, b"/f", 0, 9), b"");
}

/// A directory that was removed is neither the next one of its name, nor where a link of that name leads.
#[test]
fn a_descriptor_of_a_removed_directory_leads_nowhere() {
    let mut world = world();
    for name in ["/d", "/elsewhere"] {
        world.by_path(1, __NR_mkdir, name, &[0o755]).unwrap();
    }
    world.file(b"/elsewhere/f", b"text", 0o644);
    let fd = world.open(1, "/d", O_RDONLY | O_DIRECTORY).unwrap();
    for is_link in [true, false] {
        world.by_path(1, __NR_rmdir, "/d", &[]).unwrap();
        world.put(1, OWN, b"/elsewhere\0/d\0f\0");
        let name = OWN + 14;
        match is_link {
            true => world.now(1, __NR_symlink, &[OWN, OWN + 11]).unwrap(),
            false => world.now(1, __NR_mkdir, &[OWN + 11, 0o755]).unwrap(),
        };
        assert_eq!(world.now(1, __NR_openat, &[fd, name, (O_RDWR | O_CREAT).into(), 0o644]), Err(ENOENT));
        assert_eq!(world.now(1, __NR_unlinkat, &[fd, name, 0]), Err(ENOENT));
        assert_eq!(world.now(1, __NR_mkdirat, &[fd, name, 0o755]), Err(ENOENT));
        assert_eq!(world.now(1, __NR_fchdir, &[fd]), Err(ENOENT));
        if is_link {
            world.by_path(1, __NR_unlink, "/d", &[]).unwrap();
            world.by_path(1, __NR_mkdir, "/d", &[0o755]).unwrap();
        }
    }
    assert_eq!(other_reads(&mut world, b"/elsewhere/f", 0, 4), b"text");
    // Directories that nobody has moved are where they were, also those of other file systems.
    for (path, name) in
        [("/", "elsewhere/f"), ("/elsewhere", "f"), ("/proc/self", "stat"), ("/proc/self/fd", "0")]
    {
        let base = world.open(1, path, O_RDONLY | O_DIRECTORY).unwrap();
        world.put(1, OWN, &[name.as_bytes(), b"\0"].concat());
        world.now(1, __NR_openat, &[base, OWN, O_RDONLY.into(), 0]).unwrap();
        world.now(1, __NR_fchdir, &[base]).unwrap();
    }
}

fn working_directory(world: &mut World, tid: Tid) -> Result<Vec<u8>> {
    let len = world.now(tid, __NR_getcwd, &[OWN, PAGE])?;
    let mut bytes = vec![0; len as usize];
    world.system.read(tid, OWN, &mut bytes).unwrap();
    Ok(bytes)
}

/// Moves a name; the paths are those of a call with these flags.
fn rename(world: &mut World, from: &str, to: &str, flags: u32) {
    world.put(1, OWN, &[from.as_bytes(), b"\0", to.as_bytes(), b"\0"].concat());
    let second = OWN + from.len() as u64 + 1;
    world.now(1, __NR_renameat2, &[HERE, OWN, HERE, second, flags.into()]).unwrap();
}

/// Makes a directory in one that is open.
fn make_in(world: &mut World, directory: u64, name: &str) -> Result<u64> {
    world.put(1, OWN, &[name.as_bytes(), b"\0"].concat());
    world.now(1, __NR_mkdirat, &[directory, OWN, 0o755])
}

/// Processes that are in a directory, or have it open, go on there when it is moved, or one above it.
#[test]
fn directories_are_followed_when_they_are_moved() {
    let mut world = world();
    for name in ["/a", "/a/b", "/a/b/c", "/ab"] {
        world.by_path(1, __NR_mkdir, name, &[0o755]).unwrap();
    }
    let [inner, other] = ["/a/b", "/ab"].map(|path| world.open(1, path, O_RDONLY | O_DIRECTORY).unwrap());
    let child = world.fork(1);
    world.by_path(child, __NR_chdir, "/a/b/c", &[]).unwrap();
    rename(&mut world, "/a", "/moved", 0);
    assert_eq!(working_directory(&mut world, child).unwrap(), b"/moved/b/c\0");
    make_in(&mut world, inner, "one").unwrap();
    make_in(&mut world, other, "two").unwrap();
    // Two that change places, one of them from within a directory that was moved.
    rename(&mut world, "/moved/b/c", "/ab", RENAME_EXCHANGE);
    assert_eq!(working_directory(&mut world, child).unwrap(), b"/ab\0");
    make_in(&mut world, inner, "three").unwrap();
    make_in(&mut world, other, "four").unwrap();
    for path in ["/moved/b/one", "/moved/b/c/two", "/moved/b/three", "/moved/b/c/four"] {
        world.by_path(1, __NR_stat, path, &[OWN + PAGE]).unwrap();
    }
    // A name is another one, though it begins with the same bytes.
    rename(&mut world, "/moved", "/a", 0);
    assert_eq!(working_directory(&mut world, child).unwrap(), b"/ab\0");
}

/// A process that moves its own directory goes on there, though the new path leads through the old one.
#[test]
fn directories_are_moved_from_within() {
    let mut world = world();
    for name in ["/a", "/a/b", "/a/c"] {
        world.by_path(1, __NR_mkdir, name, &[0o755]).unwrap();
    }
    world.by_path(1, __NR_chdir, "/a/b", &[]).unwrap();
    rename(&mut world, "../b", "../../a/new/", 0);
    assert_eq!(working_directory(&mut world, 1).unwrap(), b"/a/new\0");
    rename(&mut world, "../new", "../c", RENAME_EXCHANGE);
    assert_eq!(working_directory(&mut world, 1).unwrap(), b"/a/c\0");
    rename(&mut world, "../../a/new", "../c", RENAME_EXCHANGE);
    assert_eq!(working_directory(&mut world, 1).unwrap(), b"/a/new\0");
    for name in ["/a/new", "/a/c"] {
        world.by_path(1, __NR_rmdir, name, &[]).unwrap();
    }
    world.by_path(1, __NR_rmdir, "/a", &[]).unwrap();
}

/// A process is nowhere when its directory was removed, or another one has taken its place, and that one is not its own.
#[test]
fn a_directory_that_is_gone_is_no_other() {
    let mut world = world();
    for name in ["/a", "/b"] {
        world.by_path(1, __NR_mkdir, name, &[0o755]).unwrap();
    }
    world.file(b"/a/f", b"text", 0o644);
    let [first, second] = [0; 2].map(|_| world.fork(1));
    for (tid, path) in [(first, "/a"), (second, "/b")] {
        world.by_path(tid, __NR_chdir, path, &[]).unwrap();
    }
    rename(&mut world, "/a", "/b", 0);
    assert_eq!(working_directory(&mut world, first).unwrap(), b"/b\0");
    world.open(first, "f", O_RDONLY).unwrap();
    assert_eq!(working_directory(&mut world, second), Err(ENOENT));
    assert_eq!(world.open(second, "f", O_RDONLY), Err(ENOENT));
    world.by_path(1, __NR_unlink, "/b/f", &[]).unwrap();
    world.by_path(1, __NR_rmdir, "/b", &[]).unwrap();
    world.by_path(1, __NR_mkdir, "/b", &[0o755]).unwrap();
    assert_eq!(working_directory(&mut world, first), Err(ENOENT));
    assert_eq!(world.open(first, "f", O_WRONLY | O_CREAT), Err(ENOENT));
    // Its children are nowhere, too, until they go elsewhere.
    let child = world.fork(first);
    assert_eq!(working_directory(&mut world, child), Err(ENOENT));
    world.by_path(child, __NR_chdir, "/b", &[]).unwrap();
    assert_eq!(working_directory(&mut world, child).unwrap(), b"/b\0");
}
