//! Places (`O_PATH`), symbolic links among them: no call does anything with one but those that are about its name.

use super::{OWN, World};
use crate::errno::{
    EACCES, EBADF, EEXIST, EFAULT, EINVAL, ELOOP, ENOENT, ENOTDIR, EOPNOTSUPP, EPERM, EXDEV, Errno,
};
use crate::frames::PAGE;
use linux_raw_sys::general::*;
use std::format;
use std::string::String;

/// Where `fstat` has the kind and the permissions, how many names there are, and the length.
const MODE_AT: u64 = 24;
const LINKS_AT: u64 = 16;
const LEN_AT: u64 = 48;

/// An empty path.
const EMPTY: u64 = OWN + 5 * PAGE;

/// Where answers come.
const TO: u64 = OWN + 4 * PAGE;

impl World {
    fn link(&mut self, target: &str, path: &str) {
        let [from, to] = [OWN + 1024, OWN + 2048];
        self.put(1, from, format!("{target}\0").as_bytes());
        self.put(1, to, format!("{path}\0").as_bytes());
        self.now(1, __NR_symlink, &[from, to]).unwrap();
    }

    fn target(&mut self, fd: u64) -> core::result::Result<String, Errno> {
        let len = self.now(1, __NR_readlinkat, &[fd, EMPTY, TO, 100])?;
        let mut bytes = std::vec![0; len as usize];
        self.system.read(1, TO, &mut bytes).unwrap();
        Ok(String::from_utf8(bytes).unwrap())
    }

    /// Kind, and how many names.
    fn kind(&mut self, fd: u64) -> (u32, u32) {
        self.now(1, __NR_fstat, &[fd, TO]).unwrap();
        (self.number(1, TO + MODE_AT) & S_IFMT, self.number(1, TO + LINKS_AT))
    }
}

#[test]
fn a_symbolic_link_is_open_itself() {
    let mut world = World::new();
    world.link("no/where", "/link");
    assert_eq!(world.open(1, "/link", O_NOFOLLOW), Err(ELOOP));
    assert_eq!(world.open(1, "/link", O_PATH), Err(ENOENT));
    assert_eq!(world.open(1, "/link", O_PATH | O_NOFOLLOW | O_DIRECTORY), Err(ENOTDIR));
    let fd = world.open(1, "/link", O_PATH | O_NOFOLLOW).unwrap();
    assert_eq!(world.kind(fd), (S_IFLNK, 1));
    assert_eq!(world.number(1, TO + LEN_AT), 8);
    assert_eq!(world.target(fd), Ok("no/where".into()));
    // Links in `/proc` lead to it.
    let path = format!("/proc/self/fd/{fd}");
    assert_eq!(world.by_path(1, __NR_readlink, &path, &[TO, 100]), Ok(5));
    assert_eq!(world.open(1, &path, O_RDONLY), Err(ELOOP));
    let again = world.open(1, &path, O_PATH).unwrap();
    assert_eq!(world.target(again), Ok("no/where".into()));
    let itself = world.open(1, &path, O_PATH | O_NOFOLLOW).unwrap();
    assert_eq!((world.kind(itself).0, world.target(itself)), (S_IFLNK, Ok("/link".into())));
    // It is there as long as it is open.
    world.by_path(1, __NR_unlink, "/link", &[]).unwrap();
    assert_eq!((world.kind(fd), world.target(fd)), ((S_IFLNK, 0), Ok("no/where".into())));
    for fd in [fd, again, itself] {
        world.now(1, __NR_close, &[fd]).unwrap();
    }
    let open = world.system.store.volume.open_count();
    world.link("other", "/link");
    let fd = world.open(1, "/link", O_PATH | O_NOFOLLOW).unwrap();
    assert_eq!(world.system.store.volume.open_count(), open + 1);
    world.now(1, __NR_close, &[fd]).unwrap();
    assert_eq!(world.system.store.volume.open_count(), open);
}

/// A link in `/proc` tells nobody more by being opened than by being read.
#[test]
fn a_link_of_another_process_is_not_open() {
    let mut world = World::new();
    let other = world.fork(1);
    world.file(b"/secret", b"text", 0o600);
    let fd = world.open(1, "/secret", O_RDONLY).unwrap();
    world.now(other, __NR_setresuid, &[7, 7, 7]).unwrap();
    for path in [format!("/proc/1/fd/{fd}"), "/proc/1/exe".into(), "/proc/1/cwd".into()] {
        assert_eq!(world.open(other, &path, O_PATH | O_NOFOLLOW), Err(EACCES), "{path}");
        assert!(world.open(1, &path, O_PATH | O_NOFOLLOW).is_ok(), "{path}");
    }
}

/// Of every kind, each call that takes a descriptor to do something with it, and those that are about the name.
#[test]
fn a_place_is_open_for_nothing() {
    let mut world = World::new();
    world.file(b"/file", b"text", 0o600);
    world.link("file", "/link");
    world.now(1, __NR_pipe, &[TO]).unwrap();
    let [reader, writer] = [TO, TO + 4].map(|at| u64::from(world.number(1, at)));
    let list = world.now(1, __NR_epoll_create1, &[0]).unwrap();
    for path in ["/file", "/", "/link", "/dev/zero", "/proc/uptime"] {
        let fd = world.open(1, path, O_PATH | O_NOFOLLOW).unwrap();
        for (number, arguments) in [
            (__NR_read, [fd, TO, 1, 0]),
            (__NR_write, [fd, TO, 1, 0]),
            (__NR_pread64, [fd, TO, 1, 0]),
            (__NR_lseek, [fd, 0, 0, 0]),
            (__NR_ftruncate, [fd, 0, 0, 0]),
            (__NR_fallocate, [fd, 0, 0, 1]),
            (__NR_fsync, [fd, 0, 0, 0]),
            (__NR_syncfs, [fd, 0, 0, 0]),
            (__NR_fchmod, [fd, 0o777, 0, 0]),
            (__NR_fchown, [fd, 1, 1, 0]),
            (__NR_utimensat, [fd, 0, 0, 0]),
            (__NR_flock, [fd, LOCK_SH.into(), 0, 0]),
            (__NR_ioctl, [fd, 0x5421, TO, 0]),
            (__NR_getdents64, [fd, TO, 100, 0]),
            (__NR_fcntl, [fd, F_SETFL.into(), 0, 0]),
            (__NR_fcntl, [fd, F_GETLK.into(), TO, 0]),
            (__NR_sendfile, [writer, fd, 0, 1]),
            (__NR_tee, [reader, fd, 1, 0]),
            (__NR_epoll_ctl, [list, EPOLL_CTL_ADD.into(), fd, TO]),
            (__NR_epoll_ctl, [fd, EPOLL_CTL_ADD.into(), reader, TO]),
            (__NR_epoll_wait, [fd, TO, 1, 0]),
            (__NR_fadvise64, [fd, 0, 0, 0]),
        ] {
            assert_eq!(world.now(1, number, &arguments), Err(EBADF), "{path}: {number}");
        }
        let mapped = world.now(1, __NR_mmap, &[0, PAGE, 1, 2, fd, 0]);
        assert_eq!(mapped, Err(EBADF), "{path}");
        world.put(1, TO, &[(fd as u32).to_le_bytes(), POLLIN.to_le_bytes()].concat());
        assert_eq!(world.now(1, __NR_poll, &[TO, 1, 0]), Ok(1));
        assert_eq!(world.number(1, TO + 4) >> 16, POLLNVAL, "{path}");
        // It is ready for all that `select` asks for, so that somebody sees that it is nothing.
        world.system.write_words(1, TO, &[1 << fd, 1 << fd, 1 << fd, 0, 0]).unwrap();
        let sets = [fd + 1, TO, TO + 8, TO + 16, TO + 24];
        assert_eq!(world.now(1, __NR_select, &sets), Ok(3), "{path}");
        assert_eq!(world.system.words(1, TO), Ok([1 << fd; 3]), "{path}");
        let copy = world.now(1, __NR_dup, &[fd]).unwrap();
        assert_ne!(world.now(1, __NR_fcntl, &[copy, F_GETFL.into(), 0]).unwrap() as u32 & O_PATH, 0);
        world.now(1, __NR_fcntl, &[copy, F_SETFD.into(), 1]).unwrap();
        world.now(1, __NR_fstat, &[copy, TO]).unwrap();
        world.now(1, __NR_fstatfs, &[copy, TO]).unwrap();
        if path == "/file" || path == "/" {
            let flags = u64::from(AT_EMPTY_PATH);
            world.now(1, __NR_fchownat, &[fd, EMPTY, 3, 4, flags]).unwrap();
            world.now(1, __NR_fchmodat2, &[fd, EMPTY, 0o701, flags]).unwrap();
            world.now(1, __NR_utimensat, &[fd, EMPTY, 0, flags]).unwrap();
            world.now(1, __NR_fstat, &[fd, TO]).unwrap();
            assert_eq!(world.number(1, TO + MODE_AT) & 0o7777, 0o701);
            assert_eq!([4, 8].map(|at| world.number(1, TO + MODE_AT + at)), [3, 4]);
            assert_eq!(world.target(fd), Err(ENOENT));
        }
        let changed = world.now(1, __NR_fchmodat2, &[fd, EMPTY, 0o701, AT_EMPTY_PATH.into()]);
        assert_eq!(changed == Err(EOPNOTSUPP), path == "/link");
        let begun = world.call(1, __NR_execveat, &[fd, EMPTY, 0, 0, AT_EMPTY_PATH.into()]);
        let refused = [Some(Err(EACCES)), Some(Err(ELOOP)), Some(Err(crate::errno::ENOEXEC))];
        assert!(refused.contains(&begun), "{path}: {begun:?}");
        for fd in [fd, copy] {
            world.now(1, __NR_close, &[fd]).unwrap();
        }
    }
    assert_eq!(world.now(1, __NR_readlinkat, &[AT_FDCWD as u64, EMPTY, TO, 9]), Err(ENOENT));
    assert_eq!(world.now(1, __NR_readlinkat, &[reader, EMPTY, TO, 0]), Err(EINVAL));
}

/// Whatever has an open file, a place or a symbolic link open gives it another name, unless it has none any more.
#[test]
fn what_is_open_gets_another_name() {
    let mut world = World::new();
    world.file(b"/file", b"text", 0o600);
    world.link("file", "/link");
    world.now(1, __NR_pipe, &[TO]).unwrap();
    let pipe = world.number(1, TO).into();
    let all =
        ["/file", "/link", "/", "/dev/zero"].map(|path| world.open(1, path, O_PATH | O_NOFOLLOW).unwrap());
    let [file, link, directory, device] = all;
    let other = world.fork(1);
    world.now(other, __NR_setresuid, &[7, 7, 7]).unwrap();
    let (here, flags) = (AT_FDCWD as u64, u64::from(AT_EMPTY_PATH));
    let give = |world: &mut World, by, fd: u64, to: &str, flags: u64| {
        world.put(by, OWN, format!("{to}\0").as_bytes());
        world.now(by, __NR_linkat, &[fd, EMPTY, here, OWN, flags])
    };
    assert_eq!(give(&mut world, 1, file, "/second", 0), Err(ENOENT));
    assert_eq!(give(&mut world, 1, file, "/second", flags), Ok(0));
    assert_eq!(give(&mut world, 1, file, "/second", flags), Err(EEXIST));
    assert_eq!(give(&mut world, other, file, "/third", flags), Err(ENOENT));
    assert_eq!(give(&mut world, 1, link, "/other", flags), Ok(0));
    assert_eq!((world.kind(file), world.kind(link)), ((S_IFREG, 2), (S_IFLNK, 2)));
    for (fd, error) in [(directory, EPERM), (here, EPERM), (device, EXDEV), (pipe, EXDEV), (99, EBADF)] {
        assert_eq!(give(&mut world, 1, fd, "/second", flags), Err(if fd == 99 { EBADF } else { EEXIST }));
        assert_eq!(give(&mut world, 1, fd, "/third", flags), Err(error));
    }
    world.put(1, OWN + 1024, b"/moved\0");
    world.by_path(1, __NR_rename, "/file", &[OWN + 1024]).unwrap();
    world.by_path(1, __NR_unlink, "/second", &[]).unwrap();
    assert_eq!((give(&mut world, 1, file, "/third", flags), world.kind(file).1), (Ok(0), 2));
    for path in ["/moved", "/third", "/link", "/other"] {
        world.by_path(1, __NR_unlink, path, &[]).unwrap();
    }
    assert_eq!(give(&mut world, 1, file, "/third", flags), Err(ENOENT));
    assert_eq!(give(&mut world, 1, link, "/third", flags), Err(ENOENT));
}

/// An empty path means the working directory, too, and no path at all what is open.
#[test]
fn an_empty_path_means_the_directory() {
    let mut world = World::new();
    let (here, flags) = (AT_FDCWD as u64, u64::from(AT_EMPTY_PATH));
    let fd = world.open(1, "/", O_RDONLY).unwrap();
    world.now(1, __NR_fchmodat2, &[here, EMPTY, 0o751, flags]).unwrap();
    world.now(1, __NR_fchownat, &[here, EMPTY, 3, 4, flags]).unwrap();
    world.now(1, __NR_utimensat, &[here, EMPTY, 0, flags]).unwrap();
    world.now(1, __NR_fstat, &[fd, TO]).unwrap();
    let found = [0, 4, 8].map(|at| world.number(1, TO + MODE_AT + at));
    assert_eq!(found, [S_IFDIR | 0o751, 3, 4]);
    for (number, arguments) in [
        (__NR_fchmodat2, [here, EMPTY, 0o700, 0, 0]),
        (__NR_fchownat, [here, EMPTY, 1, 1, 0]),
        (__NR_utimensat, [here, EMPTY, 0, 0, 0]),
        (__NR_newfstatat, [here, EMPTY, TO, 0, 0]),
    ] {
        assert_eq!(world.now(1, number, &arguments), Err(ENOENT), "{number}");
    }
    assert_eq!(world.now(1, __NR_newfstatat, &[fd, 0, TO, flags]), Ok(0));
    assert_eq!(world.now(1, __NR_newfstatat, &[fd, 0, TO, 0]), Err(EFAULT));
    assert_eq!(world.now(1, __NR_statx, &[fd, 0, flags, STATX_ALL.into(), TO]), Ok(0));
    assert_eq!(world.now(1, __NR_faccessat2, &[fd, 0, 0, flags]), Err(EFAULT));
    let sync = flags | u64::from(AT_STATX_SYNC_TYPE);
    assert_eq!(world.now(1, __NR_statx, &[fd, EMPTY, sync, 0, TO]), Err(EINVAL));
    assert_eq!(world.now(1, __NR_statx, &[fd, EMPTY, flags, STATX__RESERVED.into(), TO]), Err(EINVAL));
    assert_eq!(world.now(1, __NR_utimensat, &[fd, 0, 0, flags]), Err(EINVAL));
    assert_eq!(world.now(1, __NR_utimensat, &[here, 0, 0, 0]), Err(EFAULT));
    let omitted = [0, u64::from(UTIME_OMIT)].map(u64::to_le_bytes).concat().repeat(2);
    world.put(1, OWN, &omitted);
    assert_eq!(world.now(1, __NR_utimensat, &[99, EMPTY, OWN, 0]), Ok(0));
}
