//! Files that are opened once more by way of their descriptors, written at their end, and as long as they may be.

use super::late::{other_reads, pwrite, world};
use crate::errno::{EACCES, EEXIST, EFBIG, ENOTDIR};
use crate::frames::PAGE;
use crate::world::{HANDLER, OWN};
use linux_raw_sys::general::*;

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
