//! Files that are opened within limits: expected outcomes are those of Linux's `tools/testing/selftests/openat2`.

use crate::calls::HERE;
use crate::calls::rig::{FIRST, Rig};
use linux_raw_sys::general::*;
use std::format;
use std::vec::Vec;

const AGAIN: i64 = -11;
const BIG: i64 = -7;
const DEVICE: i64 = -18;
const INVALID: i64 = -22;
const LOOP: i64 = -40;
const MISSING: i64 = -2;
const NO_DIRECTORY: i64 = -20;

fn open(rig: &mut Rig, directory: u64, path: &str, how: [u64; 3]) -> i64 {
    let before = rig.free;
    let at = rig.put(&[path.as_bytes(), b"\0"].concat());
    let how = rig.put(&how.map(u64::to_le_bytes).concat());
    let outcome = rig.call(__NR_openat2, &[directory, at, how, 24]);
    rig.free = before;
    outcome
}

/// Path to which a descriptor leads.
fn path_of(rig: &mut Rig, fd: i64) -> Vec<u8> {
    let before = rig.free;
    let link = rig.put(format!("/proc/self/fd/{fd}\0").as_bytes());
    let to = rig.room(256);
    let len = rig.call(__NR_readlink, &[link, to, 256]);
    let path = rig.get(FIRST, to, len as usize);
    rig.free = before;
    path
}

/// A tree of files and links, as the tests of Linux have it, and a descriptor of it.
fn tree(rig: &mut Rig) -> u64 {
    let root = rig.system.store.root;
    let volume = &mut rig.system.store.volume;
    for directory in ["/tree", "/tree/root", "/tree/root/etc", "/tree/root/cheeky"] {
        volume.mkdir(root, directory.as_bytes(), 0o755).unwrap();
    }
    for file in ["/tree/etc", "/tree/root/etc/passwd", "/tree/root/etc/shadow"] {
        let how = vfs::How { create: true, exclusive: true, truncate: false };
        let made = volume.open(root, file.as_bytes(), how, 0o644).unwrap();
        volume.close(made).unwrap();
    }
    for (target, link) in [
        ("/proc/self/exe", "procexe"),
        ("/etc", "abs"),
        ("etc", "creative"),
        ("etc/", "etcsym"),
        ("../", "dotdot"),
        ("cheeky/../etc/passwd", "relative"),
        ("/newfile", "absnew"),
        ("newfile", "new"),
        ("loop", "loop"),
        ("../../../../../../../../etc/passwd", "garbage"),
        ("/etc/passwd", "passwd"),
    ] {
        volume.symlink(root, target.as_bytes(), format!("/tree/root/{link}").as_bytes()).unwrap();
    }
    let at = rig.put(b"/tree/root\0");
    rig.call(__NR_open, &[at, (O_PATH | O_DIRECTORY).into(), 0]) as u64
}

#[test]
fn limits_of_the_way() {
    let mut rig = Rig::begun();
    let tree = tree(&mut rig);
    let [beneath, root, links, magic, device] =
        [RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_XDEV];
    for (path, limit, expected) in [
        // Nothing out of the directory.
        ("..", beneath, Err(DEVICE)),
        ("../root", beneath, Err(DEVICE)),
        (".", beneath, Ok("/tree/root")),
        ("etc/..", beneath, Ok("/tree/root")),
        ("etc/../..", beneath, Err(DEVICE)),
        ("/etc/passwd", beneath, Err(DEVICE)),
        ("abs", beneath, Err(DEVICE)),
        ("dotdot", beneath, Err(DEVICE)),
        ("creative", beneath, Ok("/tree/root/etc")),
        ("etcsym/passwd", beneath, Ok("/tree/root/etc/passwd")),
        ("relative", beneath, Ok("/tree/root/etc/passwd")),
        ("garbage", beneath, Err(DEVICE)),
        ("passwd", beneath, Err(DEVICE)),
        ("etc/none", beneath, Err(MISSING)),
        ("etc/passwd/none", beneath, Err(NO_DIRECTORY)),
        ("loop", beneath, Err(LOOP)),
        // The directory is the root.
        ("..", root, Ok("/tree/root")),
        ("/", root, Ok("/tree/root")),
        ("/etc/passwd", root, Ok("/tree/root/etc/passwd")),
        ("../etc/passwd", root, Ok("/tree/root/etc/passwd")),
        ("abs", root, Ok("/tree/root/etc")),
        ("abs/../../etc/shadow", root, Ok("/tree/root/etc/shadow")),
        ("garbage", root, Ok("/tree/root/etc/passwd")),
        ("passwd", root, Ok("/tree/root/etc/passwd")),
        ("dotdot/etc", root, Ok("/tree/root/etc")),
        ("procexe", root, Err(MISSING)),
        // No links.
        ("etc/passwd", links, Ok("/tree/root/etc/passwd")),
        ("creative", links, Err(LOOP)),
        ("creative/passwd", links, Err(LOOP)),
        ("passwd", links, Err(LOOP)),
        ("/etc", links, Err(MISSING)),
        // No links to what a process has.
        ("procexe", magic, Err(LOOP)),
        ("/proc/self/exe", magic, Err(LOOP)),
        ("/proc/self/fd/0", magic, Err(LOOP)),
        ("/proc/self/cwd/file", magic, Err(LOOP)),
        ("/proc/self/status", magic, Ok("/proc/1/status")),
        ("creative/passwd", magic, Ok("/tree/root/etc/passwd")),
        // One file system.
        ("/proc/self/status", device, Err(DEVICE)),
        ("/dev/null", device, Err(DEVICE)),
        ("/tree/root/etc/passwd", device, Ok("/tree/root/etc/passwd")),
        ("creative/passwd", device, Ok("/tree/root/etc/passwd")),
        ("procexe", device, Err(DEVICE)),
    ] {
        let outcome = open(&mut rig, tree, path, [O_RDONLY.into(), 0, limit.into()]);
        let found = if outcome < 0 { Err(outcome) } else { Ok(path_of(&mut rig, outcome)) };
        assert_eq!(found, expected.map(|path| path.as_bytes().to_vec()), "{path} {limit:#x}");
        if outcome >= 0 {
            rig.call(__NR_close, &[outcome as u64]);
        }
    }
    // Below `/proc` the way out is one, too.
    let at = rig.put(b"/proc/self\0");
    let fd = rig.call(__NR_open, &[at, O_PATH.into(), 0]) as u64;
    assert!(open(&mut rig, fd, "status", [0, 0, device.into()]) > 0);
    assert_eq!(open(&mut rig, fd, "../../bin/test", [0, 0, device.into()]), DEVICE);
    assert_eq!(open(&mut rig, fd, "exe", [0, 0, device.into()]), DEVICE);
    assert_eq!(open(&mut rig, fd, "exe", [0, 0, beneath.into()]), DEVICE);
}

#[test]
fn files_are_made_within_limits() {
    let mut rig = Rig::begun();
    let tree = tree(&mut rig);
    let makes = u64::from(O_CREAT | O_RDWR);
    let [beneath, root, links] = [RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS].map(u64::from);
    assert_eq!(open(&mut rig, tree, "../out", [makes, 0o600, beneath]), DEVICE);
    assert_eq!(open(&mut rig, tree, "absnew", [makes, 0o600, beneath]), DEVICE);
    let fd = open(&mut rig, tree, "absnew", [makes, 0o600, root]);
    assert_eq!(path_of(&mut rig, fd), b"/tree/root/newfile");
    let flags = rig.call(__NR_fcntl, &[fd as u64, F_GETFL.into(), 0]);
    assert_eq!(flags as u32 & (O_NOFOLLOW | O_ACCMODE), O_RDWR);
    assert!(open(&mut rig, tree, "new", [makes, 0o600, beneath]) > 0);
    assert_eq!(open(&mut rig, tree, "new", [makes, 0o600, links]), LOOP);
    assert_eq!(open(&mut rig, tree, "new", [makes | u64::from(O_EXCL), 0o600, beneath]), -17);
    // The last name is no link that is followed.
    let stays = u64::from(O_NOFOLLOW);
    assert_eq!(open(&mut rig, tree, "creative", [stays, 0, beneath]), LOOP);
    let fd = open(&mut rig, tree, "etc/passwd", [stays, 0, beneath]);
    assert_eq!(rig.call(__NR_fcntl, &[fd as u64, F_GETFL.into(), 0]) as u32 & O_NOFOLLOW, O_NOFOLLOW);
    // A descriptor in `/proc` leads to what is open, also without a name.
    let at = rig.put(b"/tree/root/etc/shadow\0");
    rig.call(__NR_unlink, &[at]);
    let path = format!("/proc/self/fd/{fd}");
    assert!(open(&mut rig, HERE, &path, [0, 0, RESOLVE_CACHED.into()]) == AGAIN);
    assert!(open(&mut rig, HERE, &path, [0, 0, 0]) > 0);
}

/// The structure may grow, and what is not known is refused.
#[test]
fn how_is_checked() {
    let mut rig = Rig::begun();
    let both = u64::from(RESOLVE_BENEATH | RESOLVE_IN_ROOT);
    for how in [
        [1 << 40, 0, 0],
        [u64::from(u32::MAX), 0, 0],
        [0, 0, 64],
        [0, 0, 1 << 32],
        [0, 0, both],
        [0, 0o600, 0],
        [O_CREAT.into(), 0o10_600, 0],
        [O_CREAT.into(), 1 << 40, 0],
        [u64::from(O_PATH | O_RDWR), 0, 0],
    ] {
        assert_eq!(open(&mut rig, HERE, "/bin/test", how), INVALID, "{how:?}");
    }
    assert!(open(&mut rig, HERE, "/bin/test", [O_PATH.into(), 0, 0]) > 0);
    assert_eq!(open(&mut rig, HERE, "", [0, 0, RESOLVE_BENEATH.into()]), MISSING);
    assert_eq!(open(&mut rig, 77, "x", [0, 0, RESOLVE_BENEATH.into()]), -9);
    assert_eq!(open(&mut rig, HERE, "/tmp", [O_TMPFILE.into(), 0o600, 0]), -95);
    let path = rig.put(b"/bin/test\0");
    let mut how = [0; 64];
    let at = rig.put(&how);
    for (len, expected) in [(0, INVALID), (23, INVALID), (24, 0), (32, 0), (64, 0), (4097, BIG)] {
        let outcome = rig.call(__NR_openat2, &[HERE, path, at, len]);
        assert_eq!(outcome.min(0), expected, "{len}");
    }
    how[40] = 1;
    let at = rig.put(&how);
    assert!(rig.call(__NR_openat2, &[HERE, path, at, 40]) > 0);
    assert_eq!(rig.call(__NR_openat2, &[HERE, path, at, 48]), BIG);
    assert_eq!(rig.call(__NR_openat2, &[HERE, path, 8, 24]), -14);
}

/// All but `root` need to search each directory on the way, also one that the path leaves again.
#[test]
fn directories_on_the_way_are_searched() {
    let mut rig = Rig::begun();
    let tree = tree(&mut rig);
    let at = rig.put(b"/tree/root/cheeky\0");
    assert_eq!(rig.call(__NR_chmod, &[at, 0o700]), 0);
    assert_eq!(rig.call(__NR_setresuid, &[5, 5, 5]), 0);
    let beneath = u64::from(RESOLVE_BENEATH);
    assert_eq!(open(&mut rig, tree, "relative", [0, 0, beneath]), -13);
    assert!(open(&mut rig, tree, "etc/passwd", [0, 0, beneath]) > 0);
}
