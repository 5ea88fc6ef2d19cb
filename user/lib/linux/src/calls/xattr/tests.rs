//! Extended attributes. Errors that are expected are those of Linux on a file system that has attributes of users, of `root` and of security, and no others.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{
    E2BIG, EACCES, EBADF, EEXIST, EFAULT, EINVAL, ENODATA, ENOENT, ENOSPC, EOPNOTSUPP, EPERM, ERANGE, Errno,
};
use linux_raw_sys::general::*;

/// Calls for what is at a path, for a symbolic link itself, and for a descriptor.
const GET: [u32; 3] = [__NR_getxattr, __NR_lgetxattr, __NR_fgetxattr];
const SET: [u32; 3] = [__NR_setxattr, __NR_lsetxattr, __NR_fsetxattr];
const LIST: [u32; 3] = [__NR_listxattr, __NR_llistxattr, __NR_flistxattr];
const REMOVE: [u32; 3] = [__NR_removexattr, __NR_lremovexattr, __NR_fremovexattr];

/// An address at which nothing is.
const NOWHERE: u64 = 8;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// Results of reading an attribute that is not there, of setting and of removing it.
fn kept() -> [i64; 3] {
    [error(ENODATA), 0, 0]
}

fn text(rig: &mut Rig, text: &str) -> u64 {
    rig.put(&[text.as_bytes(), b"\0"].concat())
}

/// Errors of reading an attribute, of writing and of removing it.
fn asked(rig: &mut Rig, way: usize, object: u64, name: &str) -> [i64; 3] {
    let before = rig.free;
    let name = text(rig, name);
    let all = [
        rig.call(GET[way], &[object, name, DATA, 100]),
        rig.call(SET[way], &[object, name, DATA, 5, 0]),
        rig.call(REMOVE[way], &[object, name]),
    ];
    rig.free = before;
    all
}

#[test]
fn the_file_is_looked_for_first() {
    let mut rig = Rig::begun();
    let [missing, empty] = ["/tmp/missing", ""].map(|path| text(&mut rig, path));
    rig.open("/tmp/f");
    let path = text(&mut rig, "/tmp/f");
    let place = rig.call(__NR_open, &[path, O_PATH.into()]) as u64;
    for (way, object, expected) in [
        (0, missing, ENOENT),
        (1, missing, ENOENT),
        (0, empty, ENOENT),
        (1, empty, ENOENT),
        (0, NOWHERE, EFAULT),
        (1, NOWHERE, EFAULT),
        (2, 99, EBADF),
        (2, place, EBADF),
    ] {
        for call in [GET[way], SET[way], LIST[way], REMOVE[way]] {
            let outcome = rig.call(call, &[object, NOWHERE, NOWHERE, 1 << 20, 99]);
            assert_eq!(outcome, error(expected), "{call}, {object:#x}");
        }
    }
}

#[test]
fn names_and_values_are_looked_at() {
    let mut rig = Rig::begun();
    let fd = rig.open("/tmp/f") as u64;
    let path = text(&mut rig, "/tmp/f");
    let name = text(&mut rig, "user.name");
    let (longest, too_long) = ("n".repeat(255), "n".repeat(256));
    for (way, object) in [path, path, fd].into_iter().enumerate() {
        for name in ["user.name", "trusted.name", "security.name"] {
            assert_eq!(asked(&mut rig, way, object, name), kept(), "{name}");
        }
        for name in ["system.name", "name", "user", longest.as_str()] {
            assert_eq!(asked(&mut rig, way, object, name), [error(EOPNOTSUPP); 3], "{name}");
        }
        for name in ["", too_long.as_str()] {
            assert_eq!(asked(&mut rig, way, object, name), [error(ERANGE); 3], "{name}");
        }
        assert_eq!(rig.call(GET[way], &[object, NOWHERE, DATA, 100]), error(EFAULT));
        assert_eq!(rig.call(REMOVE[way], &[object, NOWHERE]), error(EFAULT));
        assert_eq!(rig.call(LIST[way], &[object, NOWHERE, 100]), 0);
        for (arguments, expected) in [
            ([NOWHERE, NOWHERE, 1 << 20, 4], EINVAL),
            ([NOWHERE, NOWHERE, 1 << 20, 0], EFAULT),
            ([name, NOWHERE, 65_537, 0], E2BIG),
            ([name, NOWHERE, 65_536, 0], EFAULT),
            ([name, DATA, 65_536, XATTR_REPLACE.into()], ENODATA),
            ([name, DATA, 65_536, XATTR_CREATE.into()], ENOSPC),
        ] {
            let all = [&[object][..], &arguments].concat();
            assert_eq!(rig.call(SET[way], &all), error(expected), "{arguments:x?}");
        }
    }
}

#[test]
fn kinds_of_names_are_for_some() {
    let mut rig = Rig::begun();
    let (file, own) = (rig.open("/tmp/f") as u64, rig.open("/tmp/own") as u64);
    let [link, pipe, directory, target] =
        ["/tmp/link", "/tmp/pipe", "/tmp/all", "/tmp/f"].map(|path| text(&mut rig, path));
    assert_eq!(rig.call(__NR_symlink, &[target, link]), 0);
    assert_eq!(rig.call(__NR_mknod, &[pipe, (S_IFIFO | 0o666).into(), 0]), 0);
    assert_eq!(rig.call(__NR_mkdir, &[directory, 0o777]), 0);
    assert_eq!(rig.call(__NR_chmod, &[directory, 0o1777]), 0);
    assert_eq!(rig.call(__NR_fchown, &[own, 5, 5]), 0);
    // Links and pipes have none of users, whoever asks.
    for (way, object) in [(1, link), (0, pipe)] {
        let expected = [ENODATA, EPERM, EPERM].map(error);
        assert_eq!(asked(&mut rig, way, object, "user.a"), expected);
        assert_eq!(asked(&mut rig, way, object, "trusted.a"), kept());
    }
    assert_eq!(asked(&mut rig, 0, directory, "user.a"), kept());
    // Somebody else than `root`.
    assert_eq!(rig.call(__NR_fchmod, &[file, 0o600]), 0);
    assert_eq!(rig.call(__NR_setgid, &[5]), 0);
    assert_eq!(rig.call(__NR_setuid, &[5]), 0);
    let others = [ENODATA, EPERM, EPERM].map(error);
    for (way, object, name, expected) in [
        (2, file, "user.a", [error(EACCES); 3]),
        (2, file, "a", [error(EACCES); 3]),
        (2, file, "trusted.a", others),
        (2, file, "security.a", others),
        (2, file, "system.a", [error(EOPNOTSUPP); 3]),
        (2, own, "user.a", kept()),
        (2, own, "trusted.a", others),
        (0, directory, "user.a", others),
        (0, directory, "a", [error(EOPNOTSUPP); 3]),
        (0, pipe, "user.a", others),
    ] {
        assert_eq!(asked(&mut rig, way, object, name), expected, "{object:#x} {name}");
        assert_eq!(rig.call(LIST[way], &[object, DATA, 100]), 0);
    }
    assert_eq!(rig.get(FIRST, DATA, 4), [0; 4], "nothing is written");
}

#[test]
fn values_come_back() {
    let mut rig = Rig::begun();
    let fd = rig.open("/tmp/f") as u64;
    let path = text(&mut rig, "/tmp/f");
    let [name, other, secret] =
        ["user.comment", "user.other", "trusted.secret"].map(|name| text(&mut rig, name));
    let value = rig.put(b"hello");
    assert_eq!(rig.call(__NR_fsetxattr, &[fd, name, value, 5, XATTR_REPLACE.into()]), error(ENODATA));
    assert_eq!(rig.call(__NR_fsetxattr, &[fd, name, value, 5, XATTR_CREATE.into()]), 0);
    assert_eq!(rig.call(__NR_fsetxattr, &[fd, name, value, 5, XATTR_CREATE.into()]), error(EEXIST));
    let both = XATTR_CREATE | XATTR_REPLACE;
    assert_eq!(rig.call(__NR_fsetxattr, &[fd, name, value, 5, both.into()]), error(EEXIST));
    assert_eq!(rig.call(__NR_fsetxattr, &[fd, other, value, 5, both.into()]), error(ENODATA));
    for (way, object) in [path, path, fd].into_iter().enumerate() {
        assert_eq!(rig.call(GET[way], &[object, name, NOWHERE, 0]), 5);
        assert_eq!(rig.call(GET[way], &[object, name, DATA, 4]), error(ERANGE));
        assert_eq!(rig.call(GET[way], &[object, name, NOWHERE, 5]), error(EFAULT));
        assert_eq!(rig.call(GET[way], &[object, name, DATA, 100]), 5);
        assert_eq!(rig.get(FIRST, DATA, 5), b"hello");
    }
    assert_eq!(rig.call(__NR_setxattr, &[path, name, value, 0, XATTR_REPLACE.into()]), 0);
    assert_eq!(rig.call(__NR_getxattr, &[path, name, DATA, 100]), 0);
    assert_eq!(rig.call(__NR_setxattr, &[path, name, DATA, 5000, 0]), error(ENOSPC));
    assert_eq!(rig.call(__NR_getxattr, &[path, name, DATA, 100]), 0);
    assert_eq!(rig.call(__NR_setxattr, &[path, secret, value, 1, 0]), 0);
    let shown = b"trusted.secret\0user.comment\0";
    assert_eq!(rig.call(__NR_listxattr, &[path, NOWHERE, 0]), shown.len() as i64);
    assert_eq!(rig.call(__NR_listxattr, &[path, DATA, shown.len() as u64 - 1]), error(ERANGE));
    assert_eq!(rig.call(__NR_listxattr, &[path, DATA, 100]), shown.len() as i64);
    assert_eq!(rig.get(FIRST, DATA, shown.len()), shown);
    assert_eq!(rig.call(__NR_setgid, &[5]), 0);
    assert_eq!(rig.call(__NR_setuid, &[5]), 0);
    assert_eq!(rig.call(__NR_llistxattr, &[path, DATA, 100]), 13);
    assert_eq!(rig.get(FIRST, DATA, 13), b"user.comment\0");
}

#[test]
fn what_is_in_no_file_system_has_none() {
    let mut rig = Rig::begun();
    let [status, zero] = ["/proc/self/status", "/dev/zero"].map(|path| text(&mut rig, path));
    for object in [status, zero] {
        assert_eq!(asked(&mut rig, 0, object, "trusted.a"), [error(EOPNOTSUPP); 3]);
        assert_eq!(rig.call(__NR_listxattr, &[object, DATA, 100]), 0);
    }
}
