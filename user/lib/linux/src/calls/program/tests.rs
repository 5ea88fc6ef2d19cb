//! Programs that are named by a directory, or by a descriptor alone.

use crate::calls::HERE;
use crate::calls::rig::{FIRST, Rig};
use linux_raw_sys::general::*;
use std::vec;
use vfs::How;

/// Makes a file.
fn file(rig: &mut Rig, path: &str, content: &[u8], permissions: u16) {
    let root = rig.system.store.root;
    let how = How { create: true, exclusive: true, truncate: false };
    let made = rig.system.store.volume.open(root, path.as_bytes(), how, permissions).unwrap();
    rig.system.store.volume.write(made, 0, content).unwrap();
    rig.system.store.volume.close(made).unwrap();
}

fn open(rig: &mut Rig, path: &str, flags: u32) -> u64 {
    let at = rig.put(&[path.as_bytes(), b"\0"].concat());
    rig.call(__NR_open, &[at, flags.into(), 0]) as u64
}

/// Begins a program. None: it has begun.
fn begin(rig: &mut Rig, directory: u64, path: &str, flags: u32) -> Option<i64> {
    let at = rig.put(&[path.as_bytes(), b"\0"].concat());
    let outcome = rig.try_by(FIRST, __NR_execveat, &[directory, at, 0, 0, flags.into()]);
    outcome.filter(|outcome| *outcome < 0)
}

#[test]
fn a_program_is_named_by_its_directory() {
    let mut rig = Rig::begun();
    let root = rig.system.store.root;
    rig.system.store.volume.symlink(root, b"test", b"/bin/link").unwrap();
    let bin = open(&mut rig, "/bin", O_PATH);
    assert_eq!(begin(&mut rig, bin, "link", AT_SYMLINK_NOFOLLOW), Some(-40));
    assert_eq!(begin(&mut rig, bin, "nothing", 0), Some(-2));
    assert_eq!(begin(&mut rig, bin, "", 0), Some(-2));
    assert_eq!(begin(&mut rig, bin, "", AT_EMPTY_PATH), Some(-13));
    assert_eq!(begin(&mut rig, HERE, "", AT_EMPTY_PATH), Some(-13));
    assert_eq!(begin(&mut rig, 77, "", AT_EMPTY_PATH), Some(-9));
    assert_eq!(begin(&mut rig, 77, "test", 0), Some(-9));
    assert_eq!(begin(&mut rig, bin, "test", 1 << 20), Some(-22));
    assert_eq!(begin(&mut rig, bin, "test", 0), None);
    assert_eq!(rig.system.processes[&FIRST].program, b"/bin/test");
    assert_eq!(begin(&mut rig, bin, "link", 0), None);
    assert_eq!(begin(&mut rig, 77, "/bin/test", AT_SYMLINK_NOFOLLOW), None);
}

/// A list of arguments may be empty, or missing: the program has one argument then, as Linux gives it, which is empty.
#[test]
fn a_program_has_at_least_one_argument() {
    let mut rig = Rig::begun();
    for is_missing in [true, false] {
        let path = rig.put(b"/bin/test\0");
        let none = if is_missing { 0 } else { rig.put(&0u64.to_le_bytes()) };
        let outcome = rig.try_by(FIRST, __NR_execve, &[path, none, none]);
        assert!(outcome.is_none_or(|outcome| outcome >= 0));
        let arguments = core::mem::take(&mut rig.system.processes.get_mut(&FIRST).unwrap().arguments);
        assert_eq!(arguments.map(|texts| texts.to_vec()), [vec![0], vec![]]);
    }
}

/// The file need not have a name any more.
#[test]
fn a_program_is_named_by_a_descriptor() {
    let mut rig = Rig::begun();
    file(&mut rig, "/tmp/text", b"text", 0o644);
    let text = open(&mut rig, "/tmp/text", O_RDONLY);
    assert_eq!(begin(&mut rig, text, "", AT_EMPTY_PATH), Some(-13));
    let fd = open(&mut rig, "/bin/test", O_RDONLY | O_CLOEXEC);
    let path = rig.put(b"/bin/test\0");
    assert_eq!(rig.call(__NR_unlink, &[path]), 0);
    let before = rig.system.store.volume.open_count();
    assert_eq!(begin(&mut rig, fd, "", AT_EMPTY_PATH), None);
    let process = &rig.system.processes[&FIRST];
    assert_eq!((&process.name[..], &process.program[..]), (&b"test"[..], &b"/bin/test"[..]));
    assert!(process.descriptors.get(fd as u32).is_err());
    assert!(rig.system.store.volume.open_count() <= before);
}

/// The interpreter of a script opens the descriptor's file anew, so the descriptor has to stay.
#[test]
fn a_script_is_named_by_a_descriptor() {
    let mut rig = Rig::begun();
    file(&mut rig, "/tmp/script", b"#!/bin/test word\n", 0o755);
    let closing = open(&mut rig, "/tmp/script", O_RDONLY | O_CLOEXEC);
    let count = rig.system.store.volume.open_count();
    assert_eq!(begin(&mut rig, closing, "", AT_EMPTY_PATH), Some(-2));
    assert_eq!(rig.system.store.volume.open_count(), count);
    let fd = open(&mut rig, "/tmp/script", O_RDONLY);
    assert_eq!(begin(&mut rig, fd, "", AT_EMPTY_PATH), None);
    let process = &rig.system.processes[&FIRST];
    assert_eq!(&*process.arguments[0], std::format!("/bin/test\0word\0/dev/fd/{fd}\0").as_bytes());
    assert_eq!((&process.name[..], &process.program[..]), (&b"script"[..], &b"/bin/test"[..]));
    // A script whose interpreter is a script is the one that was named.
    file(&mut rig, "/tmp/outer", b"#!/tmp/script\n", 0o755);
    assert_eq!(begin(&mut rig, HERE, "/tmp/outer", 0), None);
    assert_eq!(rig.system.processes[&FIRST].name, b"outer");
}
