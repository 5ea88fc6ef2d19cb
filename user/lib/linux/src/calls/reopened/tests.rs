//! Opening `/proc/self/fd/N`: what comes has a position and flags of its own, as on Linux.

use crate::errno::{EACCES, EBADF, EEXIST, ELOOP, ENOTDIR, ENXIO, EPERM, EPIPE, Result};
use crate::frames::PAGE;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;
use linux_raw_sys::net::{AF_UNIX, SOCK_STREAM};
use std::format;
use std::string::String;
use std::vec::Vec;

/// Where answers come.
const TO: u64 = OWN + 4 * PAGE;

/// Opens what is behind a descriptor.
fn again(world: &mut World, fd: u64, flags: u32) -> Result<u64> {
    world.open(1, &format!("/proc/self/fd/{fd}"), flags)
}

fn pipe(world: &mut World) -> [u64; 2] {
    world.now(1, __NR_pipe2, &[TO, 0]).unwrap();
    [TO, TO + 4].map(|at| world.number(1, at).into())
}

fn close(world: &mut World, fd: u64) {
    world.now(1, __NR_close, &[fd]).unwrap();
}

fn flags(world: &mut World, fd: u64) -> u32 {
    world.now(1, __NR_fcntl, &[fd, F_GETFL.into(), 0]).unwrap() as u32
}

/// Kind and number of a file.
fn identity(world: &mut World, fd: u64) -> (u32, u32) {
    world.now(1, __NR_fstat, &[fd, TO]).unwrap();
    (world.number(1, TO + 24) & S_IFMT, world.number(1, TO + 8))
}

fn name(world: &mut World, fd: u64) -> String {
    let path = format!("/proc/self/fd/{fd}");
    let count = world.by_path(1, __NR_readlink, &path, &[TO, 100]).unwrap();
    let mut bytes = std::vec![0; count as usize];
    world.system.read(1, TO, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn memory(world: &mut World, seals: u32) -> u64 {
    world.put(1, TO, b"m\0");
    world.now(1, __NR_memfd_create, &[TO, seals.into()]).unwrap()
}

#[test]
fn a_pipe_has_an_end_more() {
    let mut world = World::new();
    let [reader, writer] = pipe(&mut world);
    // The end that is asked for, and not the one that is there.
    let second = again(&mut world, reader, O_WRONLY | O_NONBLOCK).unwrap();
    assert_eq!(flags(&mut world, second) & !O_LARGEFILE, O_WRONLY | O_NONBLOCK);
    assert_eq!(flags(&mut world, reader) & !O_LARGEFILE, O_RDONLY);
    assert_eq!(world.write(1, second, b"text"), Some(Ok(4)));
    assert_eq!(world.read(1, second, 9), Some(Err(EBADF)));
    assert_eq!(world.read(1, reader, 9), Some(Ok(b"text".to_vec())));
    assert_eq!(identity(&mut world, second), identity(&mut world, reader));
    assert_eq!(name(&mut world, second), name(&mut world, reader));
    // The reader is at the end when the last writer is closed.
    close(&mut world, writer);
    world.now(1, __NR_fcntl, &[reader, F_SETFL.into(), O_NONBLOCK.into()]).unwrap();
    assert_eq!(world.read(1, reader, 9), Some(Err(crate::errno::EAGAIN)));
    close(&mut world, second);
    assert_eq!(world.read(1, reader, 9), Some(Ok(Vec::new())));
    let writer = again(&mut world, reader, O_WRONLY).unwrap();
    assert_eq!(world.write(1, writer, b"more"), Some(Ok(4)));
    assert_eq!(world.read(1, reader, 9), Some(Ok(b"more".to_vec())));
    // Both ends by one descriptor, also where there is no other one.
    close(&mut world, reader);
    world.action(1, SIGPIPE, 1);
    assert_eq!(world.write(1, writer, b"x"), Some(Err(EPIPE)));
    let both = again(&mut world, writer, O_RDWR).unwrap();
    close(&mut world, writer);
    assert_eq!(world.write(1, both, b"both"), Some(Ok(4)));
    assert_eq!(world.read(1, both, 9), Some(Ok(b"both".to_vec())));
    close(&mut world, both);
}

/// An end of a pipe that another owner has made gives nobody the other end.
#[test]
fn a_pipe_is_its_makers() {
    let mut world = World::new();
    let [reader, _] = pipe(&mut world);
    let user = world.fork(1);
    world.now(user, __NR_setresuid, &[7, 7, 7]).unwrap();
    let path = format!("/proc/self/fd/{reader}");
    for flags in [O_RDONLY, O_WRONLY, O_RDWR] {
        assert_eq!(world.open(user, &path, flags | O_NONBLOCK), Err(EACCES), "{flags:o}");
    }
    assert!(world.open(user, &path, O_PATH).is_ok());
    world.now(user, __NR_pipe2, &[TO, 0]).unwrap();
    let own = world.number(user, TO);
    assert!(world.open(user, &format!("/proc/self/fd/{own}"), O_WRONLY).is_ok());
    world.now(user, __NR_fstat, &[own.into(), TO]).unwrap();
    assert_eq!([28, 32].map(|at| world.number(user, TO + at)), [7, 0]);
}

#[test]
fn memory_has_a_position_and_rights_of_its_own() {
    let mut world = World::new();
    let fd = memory(&mut world, MFD_ALLOW_SEALING);
    assert_eq!(world.write(1, fd, b"text"), Some(Ok(4)));
    let reader = again(&mut world, fd, O_RDONLY).unwrap();
    assert_eq!(world.read(1, reader, 2), Some(Ok(b"te".to_vec())));
    assert_eq!(world.read(1, fd, 9), Some(Ok(Vec::new())));
    assert_eq!(world.write(1, reader, b"x"), Some(Err(EBADF)));
    let shared = u64::from(MAP_SHARED);
    let map = |world: &mut World, fd: u64| world.now(1, __NR_mmap, &[0, PAGE, 3, shared, fd, 0]);
    assert_eq!(map(&mut world, reader), Err(EACCES));
    assert_eq!(world.now(1, __NR_fcntl, &[reader, F_ADD_SEALS.into(), F_SEAL_WRITE.into()]), Err(EPERM));
    let appends = again(&mut world, fd, O_WRONLY | O_APPEND).unwrap();
    assert_eq!(world.write(1, appends, b"+"), Some(Ok(1)));
    assert_eq!(world.read(1, reader, 9), Some(Ok(b"xt+".to_vec())));
    // `O_TRUNC` empties it, and it is there while a descriptor leads to it.
    assert_eq!(identity(&mut world, appends), identity(&mut world, fd));
    let empty = again(&mut world, fd, O_RDWR | O_TRUNC).unwrap();
    for fd in [fd, appends] {
        close(&mut world, fd);
    }
    assert_eq!(world.now(1, __NR_lseek, &[reader, 0, SEEK_END.into()]), Ok(0));
    assert_eq!(world.write(1, empty, b"new"), Some(Ok(3)));
    // Seals are those of the memory.
    world.now(1, __NR_fcntl, &[empty, F_ADD_SEALS.into(), (F_SEAL_SHRINK | F_SEAL_WRITE).into()]).unwrap();
    assert_eq!(again(&mut world, reader, O_RDWR | O_TRUNC), Err(EPERM));
    let last = again(&mut world, reader, O_RDWR).unwrap();
    assert_eq!(world.write(1, last, b"x"), Some(Err(EPERM)));
    assert_eq!(world.read(1, last, 9), Some(Ok(b"new".to_vec())));
    let seals = world.now(1, __NR_fcntl, &[last, F_GET_SEALS.into()]);
    assert_eq!(seals, Ok((F_SEAL_SHRINK | F_SEAL_WRITE).into()));
    for fd in [reader, empty, last] {
        assert_eq!(world.system.store.frames.object_count(), 1);
        close(&mut world, fd);
    }
    assert_eq!(world.system.store.frames.object_count(), 0);
}

#[test]
fn flags_are_looked_at_first() {
    let mut world = World::new();
    let [reader, _] = pipe(&mut world);
    let memory = memory(&mut world, 0);
    for fd in [reader, memory] {
        for (flags, error) in [
            (O_RDONLY | O_DIRECTORY, ENOTDIR),
            (O_RDONLY | O_NOFOLLOW, ELOOP),
            (O_RDWR | O_CREAT | O_EXCL, EEXIST),
            (O_PATH | O_DIRECTORY, ENOTDIR),
        ] {
            assert_eq!(again(&mut world, fd, flags), Err(error), "{flags:o}");
        }
        assert!(again(&mut world, fd, O_RDONLY | O_CREAT).is_ok());
        // A place is open for nothing.
        let place = again(&mut world, fd, O_PATH).unwrap();
        assert_eq!(world.read(1, place, 1), Some(Err(EBADF)));
        assert_eq!(world.write(1, place, b"x"), Some(Err(EBADF)));
        assert_eq!(identity(&mut world, place), identity(&mut world, fd));
    }
}

/// A place of a pipe is none of its ends.
#[test]
fn a_place_of_a_pipe_keeps_no_end_open() {
    let mut world = World::new();
    let [reader, writer] = pipe(&mut world);
    let place = again(&mut world, writer, O_PATH).unwrap();
    close(&mut world, writer);
    assert_eq!(world.read(1, reader, 1), Some(Ok(Vec::new())));
    close(&mut world, place);
    let writer = again(&mut world, reader, O_WRONLY).unwrap();
    assert_eq!(world.write(1, writer, b"x"), Some(Ok(1)));
    // A pipe with a name is no other, and its file is closed once.
    world.by_path(1, __NR_mknod, "/fifo", &[(S_IFIFO | 0o600).into(), 0]).unwrap();
    let open = world.system.store.volume.open_count();
    let both = world.open(1, "/fifo", O_RDWR).unwrap();
    let place = again(&mut world, both, O_PATH).unwrap();
    let writer = again(&mut world, both, O_WRONLY).unwrap();
    close(&mut world, both);
    assert_eq!(again(&mut world, writer, O_WRONLY | O_NONBLOCK), Err(ENXIO), "nobody reads");
    assert_eq!(identity(&mut world, place).1, identity(&mut world, writer).1);
    close(&mut world, writer);
    let reader = again(&mut world, place, O_RDONLY | O_NONBLOCK).unwrap();
    assert_eq!(world.read(1, reader, 1), Some(Ok(Vec::new())));
    close(&mut world, reader);
    close(&mut world, place);
    assert_eq!(world.system.store.volume.open_count(), open);
}

#[test]
fn what_has_no_file_is_not_opened() {
    let mut world = World::new();
    world.put(1, TO, &[0; 8]);
    let all = [
        world.now(1, __NR_eventfd2, &[0, 0]),
        world.now(1, __NR_epoll_create1, &[0]),
        world.now(1, __NR_timerfd_create, &[0, 0]),
        world.now(1, __NR_signalfd4, &[u64::MAX, TO, 8, 0]),
        world.now(1, __NR_inotify_init1, &[0]),
        world.now(1, __NR_pidfd_open, &[1, 0]),
        world.now(1, __NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]),
    ];
    for fd in all {
        assert_eq!(again(&mut world, fd.unwrap(), O_RDWR), Err(ENXIO), "{fd:?}");
    }
}

#[test]
fn devices_and_texts_are_opened_anew() {
    let mut world = World::new();
    let null = world.open(1, "/dev/null", O_RDONLY).unwrap();
    let writes = again(&mut world, null, O_WRONLY).unwrap();
    assert_eq!(world.write(1, writes, b"x"), Some(Ok(1)));
    assert_eq!(world.write(1, null, b"x"), Some(Err(EBADF)));
    let text = world.open(1, "/proc/self/comm", O_RDONLY).unwrap();
    assert_eq!(world.read(1, text, 99), Some(Ok(b"program\n".to_vec())));
    let second = again(&mut world, text, O_RDONLY).unwrap();
    assert_eq!(world.read(1, second, 99), Some(Ok(b"program\n".to_vec())));
    let user = world.fork(1);
    world.now(user, __NR_setresuid, &[7, 7, 7]).unwrap();
    assert_eq!(world.open(user, &format!("/proc/self/fd/{text}"), O_RDWR), Err(EACCES));
}
