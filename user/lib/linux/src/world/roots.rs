//! Root directories of processes: `chroot`, and what others see of it. Answers are Linux's.

use super::{OWN, World};
use crate::errno::{
    EACCES, EBUSY, EEXIST, EFAULT, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, Errno, Result,
};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::tests::random::Random;
use linux_raw_sys::general::*;
use std::format;
use std::string::String;
use std::vec::Vec;
use vfs::path::Last;

/// Where answers come, and a second path.
const TO: u64 = OWN + 4 * PAGE;
/// See [`TO`].
const SECOND: u64 = OWN + PAGE / 2;

/// Where `fstat` has the number of an inode, and its kind and permissions.
const INODE_AT: u64 = 8;
/// See [`INODE_AT`].
const MODE_AT: u64 = 24;

impl World {
    /// Makes a call with two paths.
    fn by_paths(&mut self, tid: Tid, number: u32, from: &str, to: &str) -> Result<u64> {
        self.put(tid, SECOND, format!("{to}\0").as_bytes());
        self.by_path(tid, number, from, &[SECOND])
    }

    /// All bytes of a small file.
    fn content(&mut self, tid: Tid, path: &str) -> Result<Vec<u8>> {
        let fd = self.open(tid, path, O_RDONLY)?;
        let bytes = self.read(tid, fd, 100).unwrap();
        self.now(tid, __NR_close, &[fd]).unwrap();
        bytes
    }

    /// A path that a call has written.
    fn answered(&mut self, tid: Tid, count: u64) -> String {
        let mut bytes = std::vec![0; count as usize];
        self.system.read(tid, TO, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn here(&mut self, tid: Tid) -> Result<String> {
        let count = self.now(tid, __NR_getcwd, &[TO, 1000])?;
        Ok(self.answered(tid, count - 1))
    }

    fn link_target(&mut self, tid: Tid, path: &str) -> Result<String> {
        let count = self.by_path(tid, __NR_readlink, path, &[TO, 1000])?;
        Ok(self.answered(tid, count))
    }

    /// Opens what a path means from a directory on.
    fn open_at(&mut self, tid: Tid, directory: u64, path: &str, flags: u32) -> Result<u64> {
        self.put(tid, OWN, format!("{path}\0").as_bytes());
        self.now(tid, __NR_openat, &[directory, OWN, flags.into(), 0o644])
    }

    fn content_at(&mut self, tid: Tid, directory: u64, path: &str) -> Vec<u8> {
        let fd = self.open_at(tid, directory, path, O_RDONLY).unwrap();
        self.read(tid, fd, 100).unwrap().unwrap()
    }

    /// How often directories are open, whose paths these are.
    fn times_open<const N: usize>(&mut self, paths: [&str; N]) -> [usize; N] {
        paths.map(|path| {
            let found = self.system.look(path.as_bytes(), Last::Follow).unwrap();
            self.system.store.volume.times_open(found.inode)
        })
    }

    fn inode(&mut self, tid: Tid, path: &str) -> u32 {
        self.by_path(tid, __NR_stat, path, &[TO]).unwrap();
        self.number(tid, TO + INODE_AT)
    }
}

/// Files inside and outside of `/jail`, with links that lead out of it, and a child that is to have it for its root.
fn jail() -> (World, Tid) {
    let mut world = World::new();
    for path in ["/jail", "/jail/dir", "/empty"] {
        world.by_path(1, __NR_mkdir, path, &[0o755]).unwrap();
    }
    world.file(b"/file", b"outer", 0o644);
    world.file(b"/jail/file", b"inner", 0o644);
    world.file(b"/jail/program", &super::program(), 0o755);
    world.file(b"/jail/script", b"#!/program x\n", 0o755);
    for (target, path) in
        [("/file", "/jail/link"), ("../../file", "/jail/up"), ("../../../file", "/jail/dir/up")]
    {
        world.by_paths(1, __NR_symlink, target, path).unwrap();
    }
    let child = world.fork(1);
    (world, child)
}

#[test]
fn paths_begin_in_the_root() {
    let (mut world, child) = jail();
    assert_eq!(world.by_path(child, __NR_chroot, "/jail", &[]), Ok(0));
    assert_eq!(world.here(child).as_deref(), Ok("(unreachable)/"));
    world.by_path(child, __NR_chdir, "/dir", &[]).unwrap();
    assert_eq!(world.here(child).as_deref(), Ok("/dir"));
    for path in [
        "/file",
        "/link",
        "/up",
        "/dir/up",
        "up",
        "../file",
        "../../../file",
        "/../../file",
        "/dir/../link",
        "./../link",
        "//./link",
    ] {
        assert_eq!(world.content(child, path).as_deref(), Ok(&b"inner"[..]), "{path}");
    }
    for (path, error) in [
        ("/jail/file", ENOENT),
        ("/proc/self/status", ENOENT),
        ("/dev/null", ENOENT),
        ("/none/../file", ENOENT),
        ("/file/", ENOTDIR),
        ("/file/.", ENOTDIR),
        ("/file/..", ENOTDIR),
        ("/link/", ENOTDIR),
    ] {
        assert_eq!(world.content(child, path), Err(error), "{path}");
    }
    let root = world.inode(child, "/");
    assert_eq!([world.inode(child, "/.."), world.inode(child, "..")], [root; 2]);
    assert_eq!(world.inode(1, "/jail"), root);
    assert_eq!(world.content(1, "/file").as_deref(), Ok(&b"outer"[..]));
    // Names that it makes are there.
    world.by_path(child, __NR_mkdir, "/made", &[0o755]).unwrap();
    world.by_paths(child, __NR_rename, "/made", "../dir/../moved").unwrap();
    world.by_paths(child, __NR_link, "/link", "/other").unwrap();
    world.by_paths(child, __NR_symlink, "file", "/moved/new").unwrap();
    assert_eq!(world.link_target(1, "/jail/other").as_deref(), Ok("/file"));
    assert_eq!(world.link_target(1, "/jail/moved/new").as_deref(), Ok("file"));
    assert_eq!(world.open(child, "/link/../made", O_WRONLY | O_CREAT), Err(ENOTDIR));
    world.by_path(child, __NR_unlink, "/file", &[]).unwrap();
    world.open(child, "/link", O_WRONLY | O_CREAT).unwrap();
    assert_eq!(world.content(1, "/jail/file").as_deref(), Ok(&b""[..]));
    assert_eq!(world.content(1, "/file").as_deref(), Ok(&b"outer"[..]));
}

#[test]
fn root_alone_changes_it() {
    let (mut world, user) = jail();
    world.by_path(1, __NR_mkdir, "/closed", &[0o700]).unwrap();
    world.now(user, __NR_setresuid, &[7, 7, 7]).unwrap();
    for (tid, path, expected) in [
        (user, "/none", Err(ENOENT)),
        (user, "/file", Err(ENOTDIR)),
        (user, "/file/", Err(ENOTDIR)),
        (user, "/closed", Err(EACCES)),
        (user, "/closed/none", Err(EACCES)),
        (user, "/jail", Err(EPERM)),
        (user, "/", Err(EPERM)),
        (1, "", Err(ENOENT)),
        (1, "/none", Err(ENOENT)),
        (1, "/jail/link", Err(ENOTDIR)),
        (1, "/", Ok(0)),
    ] {
        assert_eq!(world.by_path(tid, __NR_chroot, path, &[]), expected, "{path} by {tid}");
    }
    assert_eq!(world.content(1, "/file").as_deref(), Ok(&b"outer"[..]));
}

#[test]
fn descriptors_lead_outside() {
    let (mut world, child) = jail();
    let outside = world.open(child, "/", O_RDONLY | O_DIRECTORY).unwrap();
    world.by_path(child, __NR_chroot, "/jail", &[]).unwrap();
    for (path, expected) in [
        ("file", &b"outer"[..]),
        ("../file", b"outer"),
        ("jail/file", b"inner"),
        ("jail/link", b"inner"),
        // The way up ends at the root, by whatever way that was reached.
        ("jail/../file", b"inner"),
        ("jail/dir/../../file", b"inner"),
        ("/file", b"inner"),
    ] {
        assert_eq!(world.content_at(child, outside, path), expected, "{path}");
    }
    world.now(child, __NR_fchdir, &[outside]).unwrap();
    assert_eq!(world.here(child).as_deref(), Ok("(unreachable)/"));
    assert_eq!(world.content(child, "file").as_deref(), Ok(&b"outer"[..]));
    assert_eq!(world.content(child, "/file").as_deref(), Ok(&b"inner"[..]));
    world.by_path(child, __NR_chdir, "empty", &[]).unwrap();
    assert_eq!(world.here(child).as_deref(), Ok("(unreachable)/empty"));
    // A process that is outside, and `root`, leaves its root for good.
    world.by_path(child, __NR_chdir, "..", &[]).unwrap();
    world.by_path(child, __NR_chroot, ".", &[]).unwrap();
    assert_eq!(world.here(child).as_deref(), Ok("/"));
    assert_eq!(world.content(child, "/file").as_deref(), Ok(&b"outer"[..]));
}

#[test]
fn the_root_has_no_name() {
    let (mut world, child) = jail();
    world.by_path(child, __NR_chroot, "/empty", &[]).unwrap();
    for (number, path, error) in [
        (__NR_rmdir, "/", EBUSY),
        (__NR_rmdir, "/.", EINVAL),
        (__NR_mkdir, "/", EEXIST),
        (__NR_mkdir, "/..", EEXIST),
        (__NR_unlink, "/", EISDIR),
        (__NR_unlink, "/..", EISDIR),
    ] {
        assert_eq!(world.by_path(child, number, path, &[0o755]), Err(error), "{number} {path}");
    }
    world.by_path(child, __NR_mkdir, "/dir", &[0o755]).unwrap();
    for (from, to) in [("/", "/x"), ("/..", "/x"), ("/dir/.", "/x"), ("/dir", "/"), ("/none", "/..")] {
        assert_eq!(world.by_paths(child, __NR_rename, from, to), Err(EBUSY), "{from} {to}");
    }
    assert_eq!(world.by_path(1, __NR_rmdir, "/empty", &[]), Err(ENOTEMPTY));
}

#[test]
fn programs_and_children_have_the_root() {
    let (mut world, child) = jail();
    let files = world.open(child, "/proc", O_RDONLY | O_DIRECTORY).unwrap();
    world.by_path(child, __NR_chroot, "/jail", &[]).unwrap();
    world.by_path(child, __NR_chdir, "/dir", &[]).unwrap();
    for (path, arguments) in
        [("/program", "\0"), ("/script", "/program\0x\0/script\0"), ("../script", "/program\0x\0../script\0")]
    {
        world.put(child, OWN, format!("{path}\0").as_bytes());
        assert_eq!(world.call(child, __NR_execve, &[OWN, 0, 0]), None, "{path}");
        world.lay_out(child);
        let process = &world.system.processes[&child];
        assert_eq!(process.program, b"/jail/program");
        assert_eq!(&*process.arguments[0], arguments.as_bytes(), "{path}");
    }
    let grandchild = world.fork(child);
    for tid in [child, grandchild] {
        assert_eq!(world.content(tid, "/file").as_deref(), Ok(&b"inner"[..]));
        for (name, expected) in [("root", "/jail"), ("cwd", "/jail/dir"), ("exe", "/jail/program")] {
            assert_eq!(world.link_target(1, &format!("/proc/{tid}/{name}")).as_deref(), Ok(expected));
        }
        assert_eq!(world.content(1, &format!("/proc/{tid}/root/file")).as_deref(), Ok(&b"inner"[..]));
    }
    // It sees its own paths from its root on.
    for (name, expected) in [("root", "/"), ("cwd", "/dir"), ("exe", "/program")] {
        world.put(child, OWN, format!("self/{name}\0").as_bytes());
        let count = world.now(child, __NR_readlinkat, &[files, OWN, TO, 1000]).unwrap();
        assert_eq!(world.answered(child, count), expected);
    }
    assert_eq!(world.content_at(child, files, "self/root/file"), b"inner");
    for name in ["root", "cwd"] {
        assert_eq!(world.link_target(1, &format!("/proc/self/{name}")).as_deref(), Ok("/"));
    }
}

#[test]
fn clones_share_directories() {
    let (mut world, _) = jail();
    let outside = world.open(1, "/", O_RDONLY | O_DIRECTORY).unwrap();
    let paths = ["/", "/jail", "/empty"];
    let open = world.times_open(paths);
    assert_eq!(open[1..], [0, 0]);
    let child = world.now(1, __NR_clone, &[(CLONE_FS | SIGCHLD).into()]).unwrap() as Tid;
    world.by_path(child, __NR_chdir, "/empty", &[]).unwrap();
    world.now(child, __NR_umask, &[0o70]).unwrap();
    assert_eq!((world.here(1).as_deref(), world.now(1, __NR_umask, &[0o22])), (Ok("/empty"), Ok(0o70)));
    world.by_path(child, __NR_chroot, "/jail", &[]).unwrap();
    assert_eq!(world.content(1, "/file").as_deref(), Ok(&b"inner"[..]));
    assert_eq!(world.times_open(paths), [open[0], 1, 0]);
    world.now(child, __NR_unshare, &[CLONE_FS.into()]).unwrap();
    world.by_path(child, __NR_chdir, "/dir", &[]).unwrap();
    let seen = [1, child].map(|tid| world.here(tid).unwrap());
    assert_eq!(seen, ["(unreachable)/empty", "/dir"]);
    // The working directory becomes the root, and no way leads out of it.
    for path in [".", ".."] {
        world.by_path(1, __NR_chroot, path, &[]).unwrap();
        assert_eq!(world.here(1).as_deref(), Ok("/"));
    }
    assert_eq!(world.times_open(paths), [open[0], 1, 1]);
    world.exit(child);
    world.now(1, __NR_wait4, &[child.into(), 0, 0, 0]).unwrap();
    // The last that has had a root has closed it.
    world.now(1, __NR_fchdir, &[outside]).unwrap();
    world.by_path(1, __NR_chroot, ".", &[]).unwrap();
    assert_eq!(world.content(1, "/file").as_deref(), Ok(&b"outer"[..]));
    assert_eq!(world.times_open(paths), open);
}

#[test]
fn a_root_is_moved_and_removed() {
    let (mut world, child) = jail();
    let other = world.fork(1);
    world.by_path(child, __NR_chroot, "/jail", &[]).unwrap();
    world.by_path(other, __NR_chroot, "/empty", &[]).unwrap();
    world.by_paths(1, __NR_rename, "/jail", "/elsewhere").unwrap();
    assert_eq!(world.content(child, "/link").as_deref(), Ok(&b"inner"[..]));
    assert_eq!(world.link_target(1, &format!("/proc/{child}/root")).as_deref(), Ok("/elsewhere"));
    world.by_path(1, __NR_rmdir, "/empty", &[]).unwrap();
    world.by_path(1, __NR_mkdir, "/empty", &[0o755]).unwrap();
    for path in ["/x", "/../x", "/file"] {
        assert_eq!(world.open(other, path, O_RDONLY | O_CREAT), Err(ENOENT), "{path}");
    }
    assert_eq!(world.by_path(other, __NR_mkdir, "/x", &[0o755]), Err(ENOENT));
    assert_eq!(world.content(other, "file").as_deref(), Ok(&b"outer"[..]));
    assert_eq!(world.here(other).as_deref(), Ok("(unreachable)/"));
    // No way leads up that would have to end at a root which is not there.
    assert_eq!(world.content(other, "elsewhere/../file"), Err(ENOENT));
}

/// Others move the root of a process, whose working directory is in it, and another directory has the path then: no way leads out of that.
#[test]
fn a_root_that_others_move_is_left_by_nobody() {
    let (mut world, child) = jail();
    world.by_path(child, __NR_chroot, "/jail", &[]).unwrap();
    world.by_path(child, __NR_chdir, "/dir", &[]).unwrap();
    let volume = &mut world.system.store.volume;
    let root = volume.root();
    volume.rename(root, b"/jail", b"/elsewhere").unwrap();
    for path in ["/jail", "/jail/dir"] {
        world.by_path(1, __NR_mkdir, path, &[0o755]).unwrap();
    }
    for path in ["../../file", "../file", "/file", "/../file"] {
        assert_eq!(world.content(child, path), Err(ENOENT), "{path}");
    }
}

/// Directories that are shared with others give a program no rights: the others could give it another working directory, and another umask.
#[test]
fn programs_of_others_share_nothing() {
    let (mut world, user) = jail();
    world.file(b"/set", &super::program(), 0o4755);
    world.now(user, __NR_setresuid, &[7, 7, 7]).unwrap();
    let clone =
        |world: &mut World| world.now(user, __NR_clone, &[(CLONE_FS | SIGCHLD).into()]).unwrap() as Tid;
    let owner = |world: &mut World, tid: Tid| {
        world.put(tid, OWN, b"/set\0");
        assert_eq!(world.call(tid, __NR_execve, &[OWN, 0, 0]), None);
        world.lay_out(tid);
        world.now(tid, __NR_geteuid, &[])
    };
    let (shares, separate) = (clone(&mut world), clone(&mut world));
    world.now(separate, __NR_unshare, &[CLONE_FS.into()]).unwrap();
    assert_eq!(owner(&mut world, separate), Ok(0));
    assert_eq!(owner(&mut world, shares), Ok(7));
    // It is shared with nobody once the other one has ended.
    world.exit(shares);
    assert_eq!(owner(&mut world, user), Ok(0));
}

/// Nobody needs rights to what is above the root.
#[test]
fn a_root_in_a_closed_directory_is_open() {
    let (mut world, child) = jail();
    world.by_path(1, __NR_mkdir, "/closed", &[0o700]).unwrap();
    world.by_paths(1, __NR_rename, "/jail", "/closed/jail").unwrap();
    world.by_path(child, __NR_chroot, "/closed/jail", &[]).unwrap();
    world.by_path(child, __NR_chdir, "/", &[]).unwrap();
    world.now(child, __NR_setresuid, &[7, 7, 7]).unwrap();
    for path in ["/file", "file", "link", "dir/up", "../file"] {
        assert_eq!(world.content(child, path).as_deref(), Ok(&b"inner"[..]), "{path}");
    }
    for path in ["/", ".", "/.", "..", "/dir/.."] {
        assert!(world.by_path(child, __NR_stat, path, &[TO]).is_ok(), "{path}");
    }
    assert_eq!(world.open(child, "/new", O_WRONLY | O_CREAT), Err(EACCES));
    assert_eq!(world.by_path(child, __NR_unlink, "/file", &[]), Err(EACCES));
    assert_eq!(world.by_path(child, __NR_chroot, "/", &[]), Err(EPERM));
}

/// With another root, too, paths need rights from where they begin.
#[test]
fn a_path_needs_rights_from_its_beginning() {
    let (mut world, child) = jail();
    for path in ["/jail/hidden", "/jail/hidden/home"] {
        world.by_path(1, __NR_mkdir, path, &[0o755]).unwrap();
    }
    world.file(b"/jail/hidden/home/file", b"text", 0o644);
    for (target, path) in [("/hidden/home/file", "long"), ("/file", "root"), ("file", "short")] {
        world.by_paths(1, __NR_symlink, target, &format!("/jail/hidden/home/{path}")).unwrap();
    }
    world.by_path(child, __NR_chroot, "/jail", &[]).unwrap();
    world.by_path(child, __NR_chdir, "/hidden/home", &[]).unwrap();
    world.by_path(1, __NR_chmod, "/jail/hidden", &[0o700]).unwrap();
    world.now(child, __NR_setresuid, &[7, 7, 7]).unwrap();
    let here = world.open(child, ".", O_RDONLY | O_DIRECTORY).unwrap();
    for (path, expected) in [
        ("file", Ok(&b"text"[..])),
        ("./short", Ok(b"text")),
        ("root", Ok(b"inner")),
        ("/file", Ok(b"inner")),
        ("long", Err(EACCES)),
        ("/hidden/home/file", Err(EACCES)),
        ("../home/file", Err(EACCES)),
        ("../../file", Err(EACCES)),
        ("none", Err(ENOENT)),
    ] {
        assert_eq!(world.content(child, path).as_deref(), expected.as_deref(), "{path}");
        let opened = world.open_at(child, here, path, O_RDONLY);
        assert_eq!(opened.map(drop), expected.map(drop), "{path}");
    }
}

/// Of two names the directories come first, the old one before the new one, and then the names themselves.
#[test]
fn names_are_looked_for_in_turn() {
    for (has_root, is_user) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut world, child) = jail();
        let root = if has_root { "/jail" } else { "" };
        for (path, mode) in [("open", 0o777), ("open/dir", 0o777), ("closed", 0o700), ("gone", 0o755)] {
            let path = format!("{root}/{path}");
            world.by_path(1, __NR_mkdir, &path, &[0]).unwrap();
            world.by_path(1, __NR_chmod, &path, &[mode]).unwrap();
        }
        world.by_paths(1, __NR_symlink, "loop", &format!("{root}/open/loop")).unwrap();
        if has_root {
            world.by_path(child, __NR_chroot, root, &[]).unwrap();
        }
        world.by_path(child, __NR_chdir, "/gone", &[]).unwrap();
        world.by_path(1, __NR_rmdir, &format!("{root}/gone"), &[]).unwrap();
        if is_user {
            world.now(child, __NR_setresuid, &[7, 7, 7]).unwrap();
        }
        let closed = if is_user { EACCES } else { ENOENT };
        for (from, to, flags, expected) in [
            ("/file/x", "here", 0, ENOTDIR),
            ("/open/none", "here", 0, ENOENT),
            ("here", "/file/x", 0, ENOENT),
            ("/open/none", "/file/x", 0, ENOTDIR),
            ("/open/none", "/file/x", RENAME_NOREPLACE, ENOTDIR),
            ("/open/none", "/file/x", RENAME_EXCHANGE, ENOTDIR),
            ("/open/none", "/closed/x", 0, closed),
            ("/closed/x", "/file/x", 0, if is_user { EACCES } else { ENOTDIR }),
            ("/open/none", "/open/dir", RENAME_NOREPLACE, ENOENT),
            ("/file", "/open/dir", RENAME_NOREPLACE, EEXIST),
            ("/file", "/", RENAME_NOREPLACE, EEXIST),
            ("/", "/file", RENAME_NOREPLACE, EBUSY),
            ("/open/none", "/open/..", 0, EBUSY),
            ("/open/dir/.", "/open/x", 0, EBUSY),
            ("/", "/", RENAME_EXCHANGE, EBUSY),
            ("/", "/file/.", 0, ENOTDIR),
            ("/none/..", "/", 0, ENOENT),
            // A link is no directory, wherever it leads, and so not followed.
            ("/open/loop/", "/none/x", 0, ENOENT),
            ("/open/loop/", "/open/x", 0, ENOTDIR),
            ("/open/dir", "/open/loop/", 0, ENOTDIR),
            ("/open/dir", "/open/none", RENAME_EXCHANGE, ENOENT),
        ] {
            world.put(child, OWN, format!("{from}\0").as_bytes());
            world.put(child, SECOND, format!("{to}\0").as_bytes());
            let here = AT_FDCWD as i64 as u64;
            let said = world.now(child, __NR_renameat2, &[here, OWN, here, SECOND, flags.into()]);
            assert_eq!(said, Err(expected), "{from} {to} {flags} {has_root} {is_user}");
        }
        // The second path is read behind the directory of the first one.
        for (from, expected) in [("/file/x", ENOTDIR), ("/open/none", EFAULT)] {
            assert_eq!(world.by_path(child, __NR_rename, from, &[1]), Err(expected), "{from}");
        }
    }
}

/// A path of few names: of files, of nothing, and upwards.
fn some_path(random: &mut Random) -> String {
    let names = ["a", "b", "c", "d", "a", "b", ".", "..", ""];
    let count = 1 + random.below(4);
    let mut path = String::from(if random.below(2) == 0 { "/" } else { "" });
    for at in 0..count {
        path.push_str(names[random.below(names.len() as u64) as usize]);
        if at + 1 < count || random.below(5) == 0 {
            path.push('/');
        }
    }
    path
}

/// A call with random paths, and what it says.
fn one(world: &mut World, tid: Tid, random: &mut Random) -> (String, core::result::Result<String, Errno>) {
    let (kind, from, to) = (random.below(16), some_path(random), some_path(random));
    let first = ["", "/", "../", "./"][random.below(4) as usize];
    let target = format!("{first}{}", ["a", "b", "c", "b/"][random.below(4) as usize]);
    let flags = [O_RDONLY, O_RDONLY | O_DIRECTORY, O_RDWR | O_CREAT, O_RDWR | O_NOFOLLOW, O_PATH];
    let flags = flags[random.below(5) as usize];
    let close = |world: &mut World, fd: u64| world.now(tid, __NR_close, &[fd]).unwrap();
    let text = |value: u64| format!("{value}");
    let said = match kind {
        0 | 1 => world.by_path(tid, __NR_mkdir, &from, &[0o755]).map(text),
        2 => world.by_path(tid, __NR_rmdir, &from, &[]).map(text),
        3 => world.by_path(tid, __NR_unlink, &from, &[]).map(text),
        4 => world.by_paths(tid, __NR_rename, &from, &to).map(text),
        5 | 6 => world.by_paths(tid, __NR_symlink, &target, &from).map(text),
        7 => world.by_paths(tid, __NR_link, &from, &to).map(text),
        8..11 => world.open(tid, &from, flags).map(|fd| {
            close(world, fd);
            text(fd)
        }),
        11 => world.by_path(tid, __NR_chdir, &from, &[]).map(text),
        12 => world.here(tid),
        13 => world.link_target(tid, &from),
        14 => world.by_path(tid, __NR_truncate, &from, &[3]).map(text),
        _ => {
            let number = if random.below(2) == 0 { __NR_stat } else { __NR_lstat };
            world.by_path(tid, number, &from, &[TO]).map(|_| format!("{:o}", world.number(tid, TO + MODE_AT)))
        }
    };
    (format!("{kind} {from} {to} {target} {flags:o}"), said)
}

/// Random calls with paths from a root of its own on, and those of a process that has that of the sandbox: all say the same.
#[test]
fn a_root_is_as_good_as_another() {
    for seed in 1..=40 {
        let is_user = seed > 30;
        let mut worlds = [World::new(), World::new()];
        let children = worlds.each_mut().map(|world| {
            world.by_path(1, __NR_mkdir, "/jail", &[0o755]).unwrap();
            world.by_path(1, __NR_mkdir, "/jail/deep", &[0o755]).unwrap();
            for path in ["/", "/jail/deep"] {
                world.by_path(1, __NR_chmod, path, &[if is_user { 0o777 } else { 0o755 }]).unwrap();
            }
            world.fork(1)
        });
        worlds[1].by_path(children[1], __NR_chroot, "/jail/deep", &[]).unwrap();
        worlds[1].by_path(children[1], __NR_chdir, "/", &[]).unwrap();
        if is_user {
            for at in [0, 1] {
                worlds[at].now(children[at], __NR_setresuid, &[7, 7, 7]).unwrap();
            }
        }
        let mut randoms = [Random(seed), Random(seed)];
        for _ in 0..500 {
            let said = [0, 1].map(|at| one(&mut worlds[at], children[at], &mut randoms[at]));
            assert_eq!(said[0], said[1], "seed {seed}");
        }
    }
}
