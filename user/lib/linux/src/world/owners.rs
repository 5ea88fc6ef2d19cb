//! Permissions of files: a process that is not `root` against what `root` has made.

use super::{OWN, World};
use crate::errno::{EACCES, EBADF, ECONNREFUSED, EEXIST, ENOENT, EPERM, Result};
use crate::frames::PAGE;
use crate::machine::Tid;
use linux_raw_sys::general::*;
use linux_raw_sys::net::{AF_UNIX, SOCK_STREAM};
use std::format;
use std::time::Instant;

/// The owner that is not `root`.
const USER: u64 = 1000;

/// A group of it, beside its own.
const OTHER_GROUP: u64 = 77;

impl World {
    /// A child of `root` that is another owner's.
    fn user(&mut self) -> Tid {
        let child = self.fork(1);
        self.put(child, OWN, &(OTHER_GROUP as u32).to_le_bytes());
        self.now(child, __NR_setgroups, &[1, OWN]).unwrap();
        self.now(child, __NR_setresgid, &[USER; 3]).unwrap();
        self.now(child, __NR_setresuid, &[USER; 3]).unwrap();
        child
    }

    /// Makes a file or, with a slash at the end, a directory, with owner, group and permissions.
    fn make(&mut self, path: &str, (owner, group): (u64, u64), mode: u64) {
        if path.ends_with('/') {
            self.by_path(1, __NR_mkdir, path, &[0o777]).unwrap();
        } else {
            self.file(path.as_bytes(), b"text", 0o644);
        }
        self.by_path(1, __NR_chown, path, &[owner, group]).unwrap();
        self.by_path(1, __NR_chmod, path, &[mode]).unwrap();
    }

    /// Renames, or makes links: two paths.
    fn two_paths(&mut self, tid: Tid, number: u32, from: &str, to: &str) -> Result<u64> {
        self.put(tid, OWN, &[from.as_bytes(), b"\0"].concat());
        self.put(tid, OWN + 256, &[to.as_bytes(), b"\0"].concat());
        self.now(tid, number, &[OWN, OWN + 256])
    }

    /// Permissions, owner and group.
    fn attributes(&mut self, path: &str) -> (u32, u32, u32) {
        self.by_path(1, __NR_lstat, path, &[OWN + 512]).unwrap();
        let [mode, owner, group] = [24, 28, 32].map(|at| self.number(1, OWN + 512 + at));
        (mode & 0o7777, owner, group)
    }
}

#[test]
fn files_open_for_owner_group_and_others() {
    let mut world = World::new();
    let user = world.user();
    for (name, owners, mode, expected) in [
        ("/own", (USER, 0), 0o600, [true, true]),
        ("/own-but-not", (USER, USER), 0o066, [false, false]),
        ("/group", (0, USER), 0o640, [true, false]),
        ("/group-but-not", (0, USER), 0o606, [false, false]),
        ("/other-group", (0, OTHER_GROUP), 0o020, [false, true]),
        ("/others", (0, 0), 0o004, [true, false]),
        ("/nobody", (0, 0), 0o770, [false, false]),
    ] {
        world.make(name, owners, mode);
        let access = [(O_RDONLY, R_OK), (O_WRONLY, W_OK)];
        for ((flags, right), expected) in access.into_iter().zip(expected) {
            let opened = world.open(user, name, flags);
            assert_eq!(opened.map(|_| ()), if expected { Ok(()) } else { Err(EACCES) }, "{name}");
            let asked = world.by_path(user, __NR_access, name, &[right.into()]);
            assert_eq!(asked.is_ok(), expected, "{name}");
            assert!(world.open(1, name, flags).is_ok(), "root passes");
        }
    }
    assert_eq!(world.open(user, "/others", O_RDONLY | O_TRUNC), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_truncate, "/others", &[0]), Err(EACCES));
    assert!(world.open(user, "/dev/null", O_RDWR).is_ok());
    assert!(world.open(user, "/proc/self/status", O_RDONLY).is_ok());
    // A terminal that it makes is its own.
    let master = world.open(user, "/dev/ptmx", O_RDWR).unwrap();
    world.put(user, OWN, &[0; 4]);
    let unlock = linux_raw_sys::ioctl::TIOCSPTLCK;
    world.now(user, __NR_ioctl, &[master, unlock.into(), OWN]).unwrap();
    assert!(world.open(user, "/dev/pts/1", O_RDWR | O_NOCTTY).is_ok());
    assert_eq!(world.open(user, "/dev/pts/0", O_RDWR | O_NOCTTY), Err(EACCES));
}

#[test]
fn directories_are_searched_listed_and_changed() {
    let mut world = World::new();
    let user = world.user();
    world.make("/hidden/", (0, 0), 0o755);
    world.make("/hidden/file", (0, 0), 0o666);
    world.by_path(1, __NR_chmod, "/hidden", &[0o700]).unwrap();
    world.make("/home/", (USER, USER), 0o700);
    for path in ["/hidden/file", "/home/../hidden/file", "/hidden/none"] {
        assert_eq!(world.open(user, path, O_RDONLY), Err(EACCES));
        assert_eq!(world.by_path(user, __NR_stat, path, &[OWN + 512]), Err(EACCES));
    }
    assert_eq!(world.by_path(user, __NR_chdir, "/hidden", &[]), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_chdir, "/home", &[]), Ok(0));
    // Neither a link nor a file that it would make leads there.
    world.two_paths(user, __NR_symlink, "/hidden/file", "link").unwrap();
    world.two_paths(user, __NR_symlink, "/hidden/new", "dangling").unwrap();
    world.two_paths(user, __NR_symlink, "/new", "other").unwrap();
    assert_eq!(world.open(user, "link", O_RDONLY), Err(EACCES));
    assert_eq!(world.open(user, "dangling", O_WRONLY | O_CREAT), Err(EACCES));
    assert_eq!(world.open(user, "other", O_WRONLY | O_CREAT), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_readlink, "link", &[OWN + 512, 99]), Ok(12));
    // It is listed by whoever may read it, and searched by whoever may go there.
    world.make("/listed/", (0, 0), 0o744);
    assert!(world.open(user, "/listed", O_RDONLY | O_DIRECTORY).is_ok());
    assert_eq!(world.by_path(user, __NR_stat, "/listed/x", &[OWN + 512]), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_stat, "none", &[OWN + 512]), Err(ENOENT));
    // Names.
    assert_eq!(world.open(user, "/new", O_WRONLY | O_CREAT), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_mkdir, "/new", &[0o777]), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_mkdir, "/home", &[0o777]), Err(EEXIST));
    assert_eq!(world.by_path(user, __NR_mkdir, "sub", &[0o777]), Ok(0));
    assert_eq!(world.attributes("/home/sub"), (0o755, 1000, 1000));
    assert!(world.open(user, "file", O_WRONLY | O_CREAT).is_ok());
    assert_eq!(world.attributes("/home/file"), (0o644, 1000, 1000));
    world.now(user, __NR_umask, &[0o077]).unwrap();
    assert!(world.open(user, "private", O_WRONLY | O_CREAT).is_ok());
    assert_eq!(world.attributes("/home/private").0, 0o600);
    assert_eq!(world.two_paths(user, __NR_link, "file", "/new"), Err(EACCES));
    assert_eq!(world.two_paths(user, __NR_rename, "file", "/new"), Err(EACCES));
    assert_eq!(world.two_paths(user, __NR_rename, "/listed", "mine"), Err(EACCES));
    assert_eq!(world.two_paths(user, __NR_rename, "file", "sub/file"), Ok(0));
    assert_eq!(world.by_path(user, __NR_unlink, "/program", &[]), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_unlink, "/none", &[]), Err(ENOENT));
    assert_eq!(world.by_path(user, __NR_unlink, "sub/file", &[]), Ok(0));
    assert_eq!(world.by_path(user, __NR_rmdir, "sub", &[]), Ok(0));
}

/// Nothing above the directory in which a path begins has to be searchable: whoever is there goes on from there.
#[test]
fn paths_begin_where_a_process_is() {
    let mut world = World::new();
    let user = world.user();
    for (path, owner) in
        [("/hidden/", 0), ("/hidden/home/", USER), ("/hidden/home/file", USER), ("/hidden/other", 0)]
    {
        world.make(path, (owner, owner), if path.ends_with('/') { 0o755 } else { 0o644 });
    }
    world.by_path(user, __NR_chdir, "/hidden/home", &[]).unwrap();
    let fd = world.open(user, ".", O_RDONLY | O_DIRECTORY).unwrap();
    world.by_path(1, __NR_chmod, "/hidden", &[0o700]).unwrap();
    world.two_paths(user, __NR_symlink, "/hidden/home/file", "long").unwrap();
    world.two_paths(user, __NR_symlink, "./file", "short").unwrap();
    world.by_path(user, __NR_mkdir, "sub", &[0o755]).unwrap();
    let at = |world: &mut World, path: &str| {
        world.put(user, OWN, &[path.as_bytes(), b"\0"].concat());
        world.now(user, __NR_openat, &[fd, OWN, O_RDWR.into(), 0]).map(drop)
    };
    for (path, expected) in [
        ("file", Ok(())),
        ("short", Ok(())),
        ("sub/../file", Ok(())),
        ("long", Err(EACCES)),
        ("/hidden/home/file", Err(EACCES)),
        ("../home/file", Err(EACCES)),
        ("../other", Err(EACCES)),
        ("../none", Err(EACCES)),
        ("none", Err(ENOENT)),
    ] {
        assert_eq!(world.open(user, path, O_RDWR).map(drop), expected, "{path}");
        assert_eq!(at(&mut world, path), expected, "{path}");
    }
    // Names are made, moved and removed, and the directory above is seen.
    assert!(world.open(user, "new", O_WRONLY | O_CREAT).is_ok());
    assert_eq!(world.two_paths(user, __NR_rename, "new", "sub/new"), Ok(0));
    assert_eq!(world.two_paths(user, __NR_link, "sub/new", "again"), Ok(0));
    assert_eq!(world.two_paths(user, __NR_rename, "again", "../again"), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_stat, "..", &[OWN + 512]), Ok(0));
    assert_eq!(world.by_path(user, __NR_chmod, "again", &[0o600]), Ok(0));
    assert_eq!(world.by_path(user, __NR_truncate, "again", &[5]), Ok(0));
    assert_eq!(world.by_path(user, __NR_unlink, "again", &[]), Ok(0));
    assert_eq!(world.by_path(user, __NR_chdir, "sub", &[]), Ok(0));
    assert_eq!(world.by_path(user, __NR_unlink, "../sub/new", &[]), Ok(0));
    assert_eq!(world.by_path(user, __NR_chdir, "..", &[]), Ok(0));
    assert_eq!(world.by_path(user, __NR_chdir, "..", &[]), Err(EACCES));
    // The directory itself is another matter.
    world.by_path(1, __NR_chmod, "/hidden/home", &[0]).unwrap();
    assert_eq!(world.open(user, "file", O_RDWR).map(drop), Err(EACCES));
    assert_eq!(at(&mut world, "file"), Err(EACCES));
}

#[test]
fn sticky_directories_keep_what_is_others() {
    let mut world = World::new();
    let user = world.user();
    world.make("/tmp/", (0, 0), 0o1777);
    world.make("/tmp/roots", (0, 0), 0o666);
    world.make("/tmp/users", (USER, USER), 0o600);
    assert_eq!(world.by_path(user, __NR_unlink, "/tmp/roots", &[]), Err(EPERM));
    assert_eq!(world.two_paths(user, __NR_rename, "/tmp/roots", "/tmp/x"), Err(EPERM));
    assert_eq!(world.two_paths(user, __NR_rename, "/tmp/users", "/tmp/roots"), Err(EPERM));
    assert_eq!(world.two_paths(user, __NR_rename, "/tmp/users", "/tmp/x"), Ok(0));
    assert_eq!(world.by_path(user, __NR_unlink, "/tmp/x", &[]), Ok(0));
}

#[test]
fn attributes_are_changed_by_owners() {
    let mut world = World::new();
    let user = world.user();
    world.make("/own", (USER, USER), 0o4755);
    world.make("/roots", (0, 0), 0o666);
    assert_eq!(world.by_path(user, __NR_chmod, "/roots", &[0o777]), Err(EPERM));
    assert_eq!(world.by_path(user, __NR_chown, "/roots", &[USER, USER]), Err(EPERM));
    assert_eq!(world.by_path(user, __NR_chown, "/own", &[0, USER]), Err(EPERM));
    assert_eq!(world.by_path(user, __NR_chown, "/own", &[u64::from(u32::MAX), 5]), Err(EPERM));
    assert_eq!(world.by_path(user, __NR_chown, "/own", &[u64::from(u32::MAX), OTHER_GROUP]), Ok(0));
    assert_eq!(world.attributes("/own"), (0o755, 1000, 77), "it is a program of its owner no more");
    assert_eq!(world.by_path(user, __NR_chmod, "/own", &[0o2710]), Ok(0));
    assert_eq!(world.attributes("/own").0, 0o2710);
    world.by_path(1, __NR_chown, "/own", &[USER, 5]).unwrap();
    assert_eq!(world.by_path(user, __NR_chmod, "/own", &[0o2710]), Ok(0));
    assert_eq!(world.attributes("/own").0, 0o710, "it is not in that group");
    // Times of now may be set by whoever may write, others by the owner.
    assert_eq!(world.by_path(user, __NR_utimes, "/roots", &[0]), Ok(0));
    world.system.write_words(user, OWN + 512, &[1, 0, 1, 0]).unwrap();
    assert_eq!(world.by_path(user, __NR_utimes, "/roots", &[OWN + 512]), Err(EPERM));
    assert_eq!(world.by_path(user, __NR_utimes, "/own", &[OWN + 512]), Ok(0));
}

#[test]
fn programs_are_begun_by_whoever_may() {
    let mut world = World::new();
    let user = world.user();
    let begin = |world: &mut World, path: &str| {
        world.put(user, OWN, &[path.as_bytes(), b"\0"].concat());
        let begun = world.call(user, __NR_execve, &[OWN, 0, 0]);
        if begun.is_none() {
            world.lay_out(user);
        }
        begun
    };
    world.by_path(1, __NR_chmod, "/program", &[0o754]).unwrap();
    assert_eq!(begin(&mut world, "/program"), Some(Err(EACCES)));
    world.by_path(1, __NR_chmod, "/program", &[0o711]).unwrap();
    assert_eq!(begin(&mut world, "/program"), None);
}

#[test]
fn programs_set_owners_and_groups() {
    let mut world = World::new();
    let bytes = super::program();
    for (name, owners, mode) in
        [("/su", (0, 5), 0o6755), ("/group", (0, 5), 0o2745), ("/script", (0, 0), 0o6755)]
    {
        world.file(name.as_bytes(), if name == "/script" { b"#!/program\n" } else { &bytes }, 0o755);
        world.by_path(1, __NR_chown, name, &[owners.0, owners.1]).unwrap();
        world.by_path(1, __NR_chmod, name, &[mode]).unwrap();
    }
    let owners = |world: &mut World, path: &str, keeps: bool| {
        let user = world.user();
        if keeps {
            world.now(user, __NR_prctl, &[linux_raw_sys::prctl::PR_SET_NO_NEW_PRIVS.into(), 1]).unwrap();
        }
        world.put(user, OWN, &[path.as_bytes(), b"\0"].concat());
        assert_eq!(world.call(user, __NR_execve, &[OWN, 0, 0]), None);
        let owners = &world.system.processes[&user].owners;
        (owners.owner, owners.group)
    };
    let user = [1000; 3];
    assert_eq!(owners(&mut world, "/program", false), (user, user));
    assert_eq!(owners(&mut world, "/su", false), ([1000, 0, 0], [1000, 5, 5]));
    assert_eq!(owners(&mut world, "/su", true), (user, user));
    assert_eq!(owners(&mut world, "/group", false), (user, user), "its group may not begin it");
    assert_eq!(owners(&mut world, "/script", false), (user, user), "it is the interpreter that begins");
}

#[test]
fn capabilities_are_those_of_the_owner() {
    let mut world = World::new();
    let user = world.user();
    for (tid, all) in [(1, 0xffff_ffff), (user, 0)] {
        world.system.write_words(tid, OWN, &[_LINUX_CAPABILITY_VERSION_3.into()]).unwrap();
        assert_eq!(world.now(tid, __NR_capget, &[OWN, OWN + 64]), Ok(0));
        assert_eq!((world.number(tid, OWN + 64), world.number(tid, OWN + 76)), (all, all & 0x1ff));
        assert_eq!(world.now(tid, __NR_capset, &[OWN, OWN + 64]), Ok(0));
        world.put(tid, OWN + 64, &[1]);
        assert_eq!(world.now(tid, __NR_capset, &[OWN, OWN + 64]), if tid == 1 { Ok(0) } else { Err(EPERM) });
    }
}

/// A socket gets its name where its maker may make one, and belongs to it.
#[test]
fn names_of_sockets_are_made_as_files_are() {
    let mut world = World::new();
    let user = world.user();
    world.make("/own/", (USER, USER), 0o755);
    world.make("/others/", (0, 0), 0o755);
    let bind = |world: &mut World, path: &str| {
        let kind = u64::from(SOCK_STREAM);
        let fd = world.now(user, __NR_socket, &[AF_UNIX.into(), kind, 0])?;
        let address = [&(AF_UNIX as u16).to_le_bytes(), path.as_bytes(), b"\0"].concat();
        world.put(user, OWN, &address);
        world.now(user, __NR_bind, &[fd, OWN, address.len() as u64])
    };
    assert_eq!(bind(&mut world, "/others/socket"), Err(EACCES));
    assert_eq!(bind(&mut world, "/own/socket"), Ok(0));
    assert_eq!(world.attributes("/own/socket"), (0o755, USER as u32, USER as u32));
}

/// Descriptors of `root` are nobody's else: neither by `/proc`, nor by a descriptor of the process, nor through a symbolic link that leads there.
#[test]
fn processes_of_others_keep_what_they_have() {
    let mut world = World::new();
    let user = world.user();
    world.now(1, __NR_pipe, &[OWN]).unwrap();
    let [reader, writer] = [0, 4].map(|at| world.number(1, OWN + at));
    world.make("/hidden/", (0, 0), 0o700);
    world.make("/hidden/file", (0, 0), 0o644);
    let file = world.open(1, "/hidden/file", O_RDONLY).unwrap();
    world.make("/tmp/", (0, 0), 0o1777);
    let open = |world: &mut World, path: &str, flags: u32| world.open(user, path, flags);
    for (fd, flags) in [(reader, O_RDONLY), (writer, O_WRONLY), (file as u32, O_RDONLY), (0, O_RDWR)] {
        let path = format!("/proc/1/fd/{fd}");
        assert_eq!(open(&mut world, &path, flags), Err(EACCES), "{path}");
        assert_eq!(world.by_path(user, __NR_readlink, &path, &[OWN + 512, 99]), Err(EACCES), "{path}");
        assert_eq!(world.by_path(user, __NR_stat, &path, &[OWN + 512]), Err(EACCES), "{path}");
        world.two_paths(user, __NR_symlink, &path, &format!("/tmp/{fd}")).unwrap();
        // The link has its target by now, since somebody has looked who may.
        assert!(world.by_path(1, __NR_stat, &path, &[OWN + 512]).is_ok());
        assert_eq!(open(&mut world, &format!("/tmp/{fd}"), flags), Err(EACCES), "{path}");
    }
    for name in ["environ", "maps", "smaps", "smaps_rollup", "auxv", "io"] {
        assert_eq!(open(&mut world, &format!("/proc/1/{name}"), O_RDONLY), Err(EACCES), "{name}");
    }
    for name in ["exe", "cwd", "root"] {
        let found = world.by_path(user, __NR_readlink, &format!("/proc/1/{name}"), &[OWN + 512, 99]);
        assert_eq!(found, Err(EACCES), "{name}");
    }
    for name in ["status", "stat", "cmdline"] {
        assert!(open(&mut world, &format!("/proc/1/{name}"), O_RDONLY).is_ok(), "{name}");
    }
    // Its own, and all of `root`'s.
    assert!(open(&mut world, "/proc/self/environ", O_RDONLY).is_ok());
    assert!(open(&mut world, "/proc/self/fd/0", O_RDWR).is_ok());
    assert!(world.open(1, &format!("/proc/{user}/environ"), O_RDONLY).is_ok());
}

/// A program that sets another owner has descriptors which who began it must not get.
#[test]
fn descriptors_of_programs_that_set_owners() {
    let mut world = World::new();
    let bytes = super::program();
    world.file(b"/su", &bytes, 0o755);
    world.by_path(1, __NR_chmod, "/su", &[0o4755]).unwrap();
    let (user, other) = (world.user(), world.user());
    world.put(user, OWN, b"/su\0");
    assert_eq!(world.call(user, __NR_execve, &[OWN, 0, 0]), None);
    let fd = world.now(other, __NR_pidfd_open, &[user.into(), 0]).unwrap();
    assert_eq!(world.now(other, __NR_pidfd_getfd, &[fd, 0, 0]), Err(EPERM));
    let same = world.user();
    let fd = world.now(other, __NR_pidfd_open, &[same.into(), 0]).unwrap();
    assert!(world.now(other, __NR_pidfd_getfd, &[fd, 0, 0]).is_ok());
    // Nor are limits of others anybody's.
    for (pid, expected) in [(user, Err(EPERM)), (1, Err(EPERM)), (same, Ok(0)), (other, Ok(0))] {
        world.system.write_words(other, OWN, &[10, 20]).unwrap();
        let limit = u64::from(RLIMIT_NOFILE);
        assert_eq!(world.now(other, __NR_prlimit64, &[pid.into(), limit, OWN, 0]), expected, "{pid}");
        assert_eq!(world.now(other, __NR_prlimit64, &[pid.into(), limit, 0, OWN]), expected, "{pid}");
    }
}

/// A socket with a name is reached by whoever may write to it, and search its directory.
#[test]
fn sockets_are_reached_by_whoever_may() {
    let mut world = World::new();
    let user = world.user();
    world.make("/hidden/", (0, 0), 0o755);
    let address = |path: &str| [&(AF_UNIX as u16).to_le_bytes(), path.as_bytes(), b"\0"].concat();
    let socket = |world: &mut World, tid| {
        world.now(tid, __NR_socket, &[AF_UNIX.into(), u64::from(SOCK_STREAM), 0]).unwrap()
    };
    let connect = |world: &mut World, path: &str| {
        let fd = socket(world, user);
        let name = address(path);
        world.put(user, OWN, &name);
        world.now(user, __NR_connect, &[fd, OWN, name.len() as u64])
    };
    for path in ["/socket", "/hidden/socket"] {
        let (fd, name) = (socket(&mut world, 1), address(path));
        world.put(1, OWN, &name);
        world.now(1, __NR_bind, &[fd, OWN, name.len() as u64]).unwrap();
        world.now(1, __NR_listen, &[fd, 5]).unwrap();
    }
    assert_eq!(connect(&mut world, "/socket"), Err(EACCES), "its mode is 0755");
    world.by_path(1, __NR_chmod, "/socket", &[0o777]).unwrap();
    assert_eq!(connect(&mut world, "/socket"), Ok(0));
    world.by_path(1, __NR_chmod, "/hidden/socket", &[0o777]).unwrap();
    world.by_path(1, __NR_chmod, "/hidden", &[0o700]).unwrap();
    assert_eq!(connect(&mut world, "/hidden/socket"), Err(EACCES));
    assert_eq!(connect(&mut world, "/hidden/none"), Err(EACCES), "nobody learns what is there");
    world.make("/plain", (USER, USER), 0o600);
    assert_eq!(connect(&mut world, "/plain"), Err(ECONNREFUSED));
}

/// A descriptor of a place alone gives no right to what is there.
#[test]
fn places_are_neither_listed_nor_locked() {
    let mut world = World::new();
    let user = world.user();
    world.make("/searched/", (0, 0), 0o711);
    world.make("/searched/file", (0, 0), 0o600);
    assert_eq!(world.open(user, "/searched", O_RDONLY | O_DIRECTORY), Err(EACCES));
    let fd = world.open(user, "/searched", O_PATH | O_DIRECTORY).unwrap();
    assert_eq!(world.now(user, __NR_getdents64, &[fd, OWN + 512, 1024]), Err(EBADF));
    let fd = world.open(user, "/searched/file", O_PATH).unwrap();
    assert_eq!(world.now(user, __NR_flock, &[fd, u64::from(LOCK_EX)]), Err(EBADF));
    assert_eq!(world.read(user, fd, 4), Some(Err(EBADF)));
    // Nor is it cut off, or made.
    for access in [O_RDONLY, O_WRONLY, O_RDWR] {
        let flags = O_PATH | O_TRUNC | O_CREAT | access;
        assert!(world.open(user, "/searched/file", flags).is_ok());
        assert_eq!(world.open(1, "/none", flags), Err(ENOENT));
    }
    let fd = world.open(1, "/searched/file", O_RDONLY).unwrap();
    assert_eq!(world.read(1, fd, 10), Some(Ok(b"text".to_vec())));
}

/// A write to a program that sets an owner makes it one that does not.
#[test]
fn a_write_takes_the_marks_of_a_program() {
    let mut world = World::new();
    let user = world.user();
    for (change, expected) in [("write", 0o775), ("truncate", 0o775), ("open", 0o775), ("none", 0o6775)] {
        let path = format!("/{change}");
        world.make(&path, (0, USER), 0o6775);
        let fd = world.open(user, &path, O_RDWR).unwrap();
        match change {
            "write" => assert_eq!(world.write(user, fd, b"x"), Some(Ok(1))),
            "truncate" => assert_eq!(world.now(user, __NR_ftruncate, &[fd, 1]), Ok(0)),
            "open" => assert!(world.open(user, &path, O_RDWR | O_TRUNC).is_ok()),
            _ => assert!(world.read(user, fd, 1).is_some()),
        }
        assert_eq!(world.attributes(&path).0, expected, "{change}");
    }
    world.make("/roots", (0, 0), 0o6775);
    let fd = world.open(1, "/roots", O_RDWR).unwrap();
    assert_eq!(world.write(1, fd, b"x"), Some(Ok(1)));
    assert_eq!(world.attributes("/roots").0, 0o6775, "as in Linux, `root` keeps them");
}

/// A walk costs as much as its path and the links on it have names, however deep they lead.
#[test]
fn a_deep_path_is_walked_once() {
    let mut world = World::new();
    let user = world.user();
    world.make("/deep/", (USER, USER), 0o755);
    world.by_path(user, __NR_chdir, "/deep", &[]).unwrap();
    for _ in 0..240 {
        world.by_path(user, __NR_mkdir, "d", &[0o755]).unwrap();
        world.by_path(user, __NR_chdir, "d", &[]).unwrap();
    }
    world.by_path(user, __NR_mkdir, "d", &[0o755]).unwrap();
    let there_and_back = "d/../".repeat(700);
    for link in 0..39 {
        let target = format!("{there_and_back}l{}\0", link + 1);
        world.put(user, OWN + PAGE, target.as_bytes());
        world.put(user, OWN, format!("l{link}\0").as_bytes());
        world.now(user, __NR_symlink, &[OWN + PAGE, OWN]).unwrap();
    }
    world.by_path(user, __NR_mkdir, "l39", &[0o755]).unwrap();
    let begun = Instant::now();
    let found = world.by_path(user, __NR_stat, "l0", &[OWN + 8192]);
    std::eprintln!("a deep path: {found:?} after {:?}", begun.elapsed());
    assert_eq!(found, Ok(0));
}
