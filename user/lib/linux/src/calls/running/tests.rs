//! `ETXTBSY`, where Linux has it, and the errors that come before it.

use crate::errno::{EACCES, EEXIST, EISDIR, ENOENT, ENOEXEC, ETXTBSY, Errno, Result};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;
use std::format;
use std::vec::Vec;

/// A copy of the program that runs, a script for it, and a child.
fn world() -> (World, Tid) {
    let mut world = World::new();
    let fd = world.open(1, "/program", O_RDONLY).unwrap();
    let program: Vec<u8> = world.read(1, fd, PAGE).unwrap().unwrap();
    world.now(1, __NR_close, &[fd]).unwrap();
    world.file(b"/other", &program, 0o755);
    world.file(b"/script", b"#!/other\n", 0o755);
    world.file(b"/text", b"text", 0o755);
    world.file(b"/closed", &program, 0o644);
    let child = world.fork(1);
    (world, child)
}

/// Begins a program. Nothing: it runs.
fn begin(world: &mut World, tid: Tid, path: &str) -> Option<Errno> {
    world.put(tid, OWN, format!("{path}\0").as_bytes());
    match world.call(tid, __NR_execve, &[OWN, 0, 0]) {
        None => world.lay_out(tid),
        Some(outcome) => return Some(outcome.unwrap_err()),
    }
    None
}

fn opened(outcome: Result<u64>) -> Result<()> {
    outcome.map(drop)
}

#[test]
fn a_program_that_runs_is_not_written_to() {
    let (mut world, child) = world();
    assert_eq!(begin(&mut world, child, "/other"), None);
    let fd = world.open(1, "/other", O_RDONLY).unwrap();
    let by_descriptor = format!("/proc/self/fd/{fd}");
    let by_process = format!("/proc/{child}/exe");
    for path in ["/other", by_descriptor.as_str(), by_process.as_str()] {
        for (flags, expected) in [
            (O_WRONLY, Err(ETXTBSY)),
            (O_RDWR, Err(ETXTBSY)),
            (O_WRONLY | O_CREAT, Err(ETXTBSY)),
            (O_WRONLY | O_TRUNC, Err(ETXTBSY)),
            (O_RDONLY | O_TRUNC, Err(ETXTBSY)),
            (O_WRONLY | O_CREAT | O_EXCL, Err(EEXIST)),
            (O_RDONLY, Ok(())),
            (O_RDWR | O_PATH, Ok(())),
        ] {
            assert_eq!(opened(world.open(1, path, flags)), expected, "{path} {flags:o}");
        }
    }
    assert_eq!(world.by_path(1, __NR_truncate, "/other", &[0]), Err(ETXTBSY));
    // Errors about rights come first, and so do those about kinds of files.
    let user = world.fork(1);
    world.now(user, __NR_setresuid, &[7, 7, 7]).unwrap();
    assert_eq!(opened(world.open(user, "/other", O_WRONLY)), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_truncate, "/other", &[0]), Err(EACCES));
    assert_eq!(world.by_path(user, __NR_truncate, "/proc", &[0]), Err(EISDIR));
    // Its names and its attributes may change.
    world.by_path(1, __NR_chmod, "/other", &[0o777]).unwrap();
    world.put(1, OWN + PAGE, b"/moved\0");
    world.by_path(1, __NR_rename, "/other", &[OWN + PAGE]).unwrap();
    assert_eq!(opened(world.open(1, "/moved", O_WRONLY)), Err(ETXTBSY));
    assert_eq!(opened(world.open(1, "/other", O_WRONLY)), Err(ENOENT));
    world.by_path(1, __NR_unlink, "/moved", &[]).unwrap();
    assert_eq!(opened(world.open(1, "/moved", O_WRONLY | O_CREAT)), Ok(()), "it is another file");
}

#[test]
fn a_program_runs_until_the_last_process_has_ended() {
    let (mut world, child) = world();
    assert_eq!(begin(&mut world, child, "/script"), None);
    let write = |world: &mut World, path: &str| {
        world.open(1, path, O_WRONLY).map(|fd| world.now(1, __NR_close, &[fd]).unwrap())
    };
    assert_eq!((write(&mut world, "/other"), write(&mut world, "/script")), (Err(ETXTBSY), Ok(0)));
    let grandchild = world.fork(child);
    assert_eq!(begin(&mut world, child, "/program"), None);
    assert_eq!(write(&mut world, "/other"), Err(ETXTBSY));
    world.exit(grandchild);
    assert_eq!(write(&mut world, "/other"), Ok(0), "also if nobody has waited for it");
    assert_eq!(write(&mut world, "/program"), Err(ETXTBSY));
}

/// A process may go on in memory that shows no file. Its program is a file like others then.
#[test]
fn a_program_that_is_unmapped_runs_no_more() {
    let (mut world, child) = world();
    assert_eq!(begin(&mut world, child, "/other"), None);
    assert_eq!(opened(world.open(1, "/other", O_WRONLY)), Err(ETXTBSY));
    world.now(child, __NR_munmap, &[0x40_0000, PAGE]).unwrap();
    assert_eq!(opened(world.open(1, "/other", O_WRONLY)), Ok(()));
}

#[test]
fn a_file_that_is_written_to_does_not_begin() {
    let (mut world, child) = world();
    for path in ["/other", "/text"] {
        for flags in [O_WRONLY, O_RDWR] {
            let fd = world.open(1, path, flags).unwrap();
            assert_eq!(begin(&mut world, child, path), Some(ETXTBSY), "{path}");
            assert_eq!(begin(&mut world, 1, path), Some(ETXTBSY), "{path}");
            world.now(1, __NR_close, &[fd]).unwrap();
        }
    }
    // A script is a program, too, and so is its interpreter.
    for written in ["/script", "/other"] {
        let fd = world.open(1, written, O_WRONLY).unwrap();
        let copy = world.now(1, __NR_dup, &[fd]).unwrap();
        world.now(1, __NR_close, &[fd]).unwrap();
        assert_eq!(begin(&mut world, child, "/script"), Some(ETXTBSY), "{written}");
        world.now(1, __NR_close, &[copy]).unwrap();
    }
    let fd = world.open(1, "/closed", O_WRONLY).unwrap();
    assert_eq!(begin(&mut world, child, "/closed"), Some(EACCES));
    world.now(1, __NR_close, &[fd]).unwrap();
    assert_eq!(begin(&mut world, child, "/text"), Some(ENOEXEC));
    for flags in [O_RDONLY, O_PATH] {
        world.open(1, "/other", flags).unwrap();
    }
    assert_eq!(begin(&mut world, child, "/script"), None);
}

/// A file that is mapped to be written to need not be open.
#[test]
fn a_file_that_is_mapped_to_be_written_does_not_begin() {
    let (mut world, child) = world();
    let fd = world.open(1, "/other", O_RDWR).unwrap();
    let rights = u64::from(PROT_READ | PROT_WRITE);
    let [shared, private] = [MAP_SHARED, MAP_PRIVATE].map(|flags| {
        let at = world.now(1, __NR_mmap, &[0, PAGE, rights, flags.into(), fd, 0]).unwrap();
        world.put(1, at + 200, b"x");
        at
    });
    world.now(1, __NR_close, &[fd]).unwrap();
    assert_eq!(begin(&mut world, child, "/other"), Some(ETXTBSY));
    world.now(1, __NR_munmap, &[shared, PAGE]).unwrap();
    assert_eq!(begin(&mut world, child, "/other"), None);
    world.now(1, __NR_munmap, &[private, PAGE]).unwrap();
}
