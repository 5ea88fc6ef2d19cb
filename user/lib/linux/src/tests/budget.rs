//! Programs that make this program keep as much as they can: they are refused at some time, others are not, and all of it is given back.

use super::random::Random;
use super::world::{DATA, Did, World};
use crate::errno::{EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC, EPERM, ETOOMANYREFS, Errno};
use crate::frames::PAGE;
use crate::process::PROCESS_BYTES;
use linux_raw_sys::general::{self as nr, MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED};
use linux_raw_sys::net::{AF_NETLINK, AF_UNIX, SCM_RIGHTS, SOCK_DGRAM, SOCK_RAW, SOCK_STREAM, SOL_SOCKET};
use std::vec::Vec;

/// Bytes of the budget of most tests.
const BUDGET: usize = 1 << 20;

const PRIVATE: u64 = (MAP_PRIVATE | MAP_ANONYMOUS) as u64;

/// A world with a small budget, and a second process.
fn world() -> World {
    let mut world = World::new(2048, 32);
    world.system.budget.set_max(BUDGET);
    let limit = world.put_words(1, 0, &[4096, 4096]);
    world.good(1, nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]);
    assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
    world
}

/// Does something until it is refused. How often it was done, and the error.
fn until_refused(mut act: impl FnMut() -> Did) -> (usize, Errno) {
    for count in 0..100_000 {
        match act() {
            Did::Value(value) if (-4095..0).contains(&value) => return (count, Errno(-value as u16)),
            Did::Value(_) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("it has no end");
}

/// Descriptors of a call that makes two.
fn two(world: &mut World, tid: u32, number: u32, arguments: &[u64], to: usize) -> Option<[u64; 2]> {
    let mut all = arguments.to_vec();
    all.insert(to, DATA);
    if world.call(tid, number, &all) != Did::Value(0) {
        return None;
    }
    let [both] = world.system.words(tid, DATA).unwrap();
    Some([both & 0xffff_ffff, both >> 32])
}

fn sockets(world: &mut World, tid: u32, kind: u32) -> Option<[u64; 2]> {
    two(world, tid, nr::__NR_socketpair, &[AF_UNIX.into(), (kind | nr::O_NONBLOCK).into(), 0], 3)
}

/// Sends descriptors. Where in the data the call has what it needs is up to it.
fn send(world: &mut World, tid: u32, socket: u64, files: &[u64]) -> Did {
    let mut control = (16 + 4 * files.len() as u64).to_le_bytes().to_vec();
    control.extend([SOL_SOCKET, SCM_RIGHTS].iter().flat_map(|half| half.to_le_bytes()));
    control.extend(files.iter().flat_map(|fd| (*fd as u32).to_le_bytes()));
    let at = world.put(tid, 1024, &control);
    let piece = world.put_words(tid, 512, &[DATA, 1]);
    let header = world.put_words(tid, 256, &[0, 0, piece, 1, at, control.len() as u64, 0]);
    world.call(tid, nr::__NR_sendmsg, &[socket, header, 0])
}

/// Another process does what a shell does: opens a pipe, begins a child with another program, and waits for it.
fn others_go_on(world: &mut World, tid: u32) {
    let [reader, writer] = two(world, tid, nr::__NR_pipe2, &[0], 0).expect("a pipe");
    let child = world.good(tid, nr::__NR_fork, &[]) as u32;
    let path = world.put(child, 0, b"/program");
    let _ = world.call(child, nr::__NR_execve, &[path, 0, 0]);
    assert_eq!(world.good(child, nr::__NR_write, &[writer, DATA, 100]), 100);
    let name = world.put(child, 0, b"/file");
    world.good(child, nr::__NR_open, &[name, 0, 0]);
    assert_eq!(world.good(tid, nr::__NR_read, &[reader, DATA, 100]), 100);
    assert_eq!(world.call(child, nr::__NR_exit_group, &[0]), Did::Gone);
    assert_eq!(world.good(tid, nr::__NR_wait4, &[child.into(), 0, 0, 0]), u64::from(child));
    for fd in [reader, writer] {
        world.good(tid, nr::__NR_close, &[fd]);
    }
    world.check();
}

/// Another socket of netlink asks for all interfaces, and nobody receives the answers.
fn ask_without_end(world: &mut World) -> Did {
    let request = [20, 0, 0, 0, 18, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let Did::Value(fd @ 0..) = world.call(2, nr::__NR_socket, &[AF_NETLINK.into(), SOCK_RAW.into(), 0])
    else {
        return Did::Value(-105);
    };
    let at = world.put(2, 64, &request);
    for _ in 0..8 {
        assert_eq!(world.good(2, nr::__NR_sendto, &[fd as u64, at, request.len() as u64]), 20);
    }
    Did::Value(fd)
}

/// One process takes all that it gets of one kind.
fn hog(world: &mut World, kind: usize) -> (usize, Errno) {
    let at = world.put(2, 0, b"/file");
    match kind {
        0 => until_refused(|| world.call(2, nr::__NR_pipe2, &[DATA, 0])),
        1 => until_refused(|| world.call(2, nr::__NR_socketpair, &[AF_UNIX.into(), 1, 0, DATA])),
        2 => until_refused(|| world.call(2, nr::__NR_open, &[at, 0, 0])),
        3 => {
            let len = 40_000 * PAGE;
            let Did::Value(at) = world.call(2, nr::__NR_mmap, &[0, len, 1, PRIVATE, u64::MAX, 0]) else {
                panic!("no room")
            };
            let mut page = at as u64;
            until_refused(|| {
                page += 2 * PAGE;
                world.call(2, nr::__NR_mprotect, &[page, PAGE, 0])
            })
        }
        4 => until_refused(|| {
            let Some([one, _]) = sockets(world, 2, SOCK_STREAM) else { return Did::Value(-105) };
            world.call(2, nr::__NR_write, &[one, DATA, 16 * PAGE])
        }),
        5 => {
            let list = world.good(2, nr::__NR_epoll_create1, &[0]);
            let counter = world.good(2, nr::__NR_eventfd2, &[0, 0]);
            let mut to = counter;
            until_refused(|| {
                to += 1;
                match world.call(2, nr::__NR_dup2, &[counter, to]) {
                    Did::Value(0..) => world.call(2, nr::__NR_epoll_ctl, &[list, 1, to, DATA]),
                    other => other,
                }
            })
        }
        6 => {
            let shared = u64::from(MAP_SHARED | MAP_ANONYMOUS);
            until_refused(|| world.call(2, nr::__NR_mmap, &[0, PAGE, 3, shared, u64::MAX, 0]))
        }
        7 => {
            let at = world.put(2, 0, b"/dev/ptmx");
            until_refused(|| world.call(2, nr::__NR_open, &[at, 2, 0]))
        }
        8 => {
            let list = world.good(2, nr::__NR_inotify_init1, &[0]);
            let mut made = 0;
            until_refused(|| {
                made += 1;
                let at = world.put(2, 0, std::format!("/tmp/{made}").as_bytes());
                world.good(2, nr::__NR_mkdir, &[at, 0o777]);
                world.call(2, nr::__NR_inotify_add_watch, &[list, at, 0xfff])
            })
        }
        9 => until_refused(|| ask_without_end(world)),
        _ => {
            let set = world.put_words(2, 0, &[u64::MAX]);
            world.good(2, nr::__NR_rt_sigprocmask, &[0, set, 0, 8]);
            let info = world.put_words(2, 64, &[0, 0xffff_ffff, 0, 0]);
            until_refused(|| world.call(2, nr::__NR_rt_sigqueueinfo, &[2, 40, info]))
        }
    }
}

#[test]
fn one_process_leaves_memory_to_others() {
    // The table of descriptors may be the first that cannot grow.
    let errors = [ENFILE, ENOBUFS, ENFILE, ENOMEM, ENOBUFS, ENOMEM, ENOMEM, ENOMEM, ENOMEM, ENOBUFS, EAGAIN];
    for (kind, wanted) in errors.into_iter().enumerate() {
        let mut world = world();
        let before = world.system.budget.used();
        let (count, error) = hog(&mut world, kind);
        let (used, by_it) = (world.system.budget.used(), world.system.budget.used_by(2));
        let is_expected = error == wanted || kind < 3 && [ENFILE, ENOMEM].contains(&error);
        assert!(is_expected, "kind {kind}, after {count}: {error:?}");
        assert!(count >= 5 && by_it <= used / 2 + BUDGET / 2, "kind {kind}: {count}, {by_it} bytes");
        world.check();
        others_go_on(&mut world, 1);
        // That process can give it back and go on.
        world.good(2, nr::__NR_close_range, &[3, u32::MAX.into(), 0]);
        assert_eq!(world.call(2, nr::__NR_exit_group, &[0]), Did::Gone);
        world.good(1, nr::__NR_wait4, &[2, 0, 0, 0]);
        world.check();
        assert!(world.system.budget.used() < before, "kind {kind}");
    }
}

#[test]
fn many_processes_leave_memory_to_others() {
    let mut world = world();
    let before = world.system.budget.used();
    for hog in 2..8 {
        if hog > 2 {
            assert_eq!(world.good(1, nr::__NR_fork, &[]), hog);
        }
        until_refused(|| world.call(hog as u32, nr::__NR_pipe2, &[DATA, 0]));
        world.check();
    }
    assert!(world.system.budget.used() <= BUDGET);
    // A process that has little still gets little.
    world.good(1, nr::__NR_eventfd2, &[0, 0]);
    for hog in 2..8 {
        world.good(1, nr::__NR_kill, &[hog, 9]);
        world.good(1, nr::__NR_wait4, &[hog, 0, 0, 0]);
    }
    others_go_on(&mut world, 1);
    assert!(world.system.budget.used() < before + 1024);
}

#[test]
fn a_user_leaves_memory_to_root() {
    let mut world = world();
    let mut hogs = Vec::from([2]);
    world.good(2, nr::__NR_setuid, &[1000]);
    loop {
        let tid = hogs[hogs.len() - 1];
        until_refused(|| world.call(tid, nr::__NR_pipe2, &[DATA, 0]));
        match world.call(2, nr::__NR_fork, &[]) {
            Did::Value(child @ 1..) => hogs.push(child as u32),
            other => {
                assert_eq!(other, Did::Value(-i64::from(ENOMEM.0)));
                break;
            }
        }
        world.good(hogs[hogs.len() - 1], nr::__NR_close_range, &[3, u32::MAX.into(), 0]);
    }
    assert!(world.system.budget.used() < BUDGET * 4 / 5);
    others_go_on(&mut world, 1);
}

#[test]
fn a_full_budget_keeps_nobody_from_ending() {
    let mut world = world();
    hog(&mut world, 0);
    hog(&mut world, 3);
    // Even if there is less than is had.
    world.system.budget.set_max(1000);
    assert_eq!(world.bad(1, nr::__NR_pipe2, &[DATA, 0]), ENFILE);
    assert_eq!(world.bad(1, nr::__NR_fork, &[]), ENOMEM);
    assert_eq!(world.bad(2, nr::__NR_fcntl, &[3, nr::F_SETPIPE_SZ.into(), 1 << 20]), EPERM);
    world.good(1, nr::__NR_kill, &[2, 15]);
    assert_eq!(world.good(1, nr::__NR_wait4, &[2, 0, 0, 0]), 2);
    world.check();
    world.system.budget.set_max(BUDGET);
    others_go_on(&mut world, 1);
}

/// Arguments of no bytes take memory of this program, too: 14 MiB for as many as Linux allows. They have a share while the program begins.
#[test]
fn arguments_have_a_budget() {
    let mut world = world();
    let before = world.system.budget.used();
    let path = world.put(2, 0, b"/program");
    let empty = path + 8;
    let begin = |world: &mut World, count: usize| {
        let list = [std::vec![empty; count], Vec::from([0])].concat();
        let at = world.put_words(2, 64, &list);
        world.call(2, nr::__NR_execve, &[path, at, 0])
    };
    world.system.budget.set_max(before + 400_000);
    assert_eq!(begin(&mut world, 7000), Did::Value(-i64::from(ENOMEM.0)));
    assert_eq!(world.system.budget.used(), before);
    world.system.budget.set_max(before + 4_000_000);
    world.put(2, 0, b"/program");
    assert_eq!(begin(&mut world, 7000), Did::Value(0));
    world.check();
    // Some are nobody's concern.
    world.system.budget.set_max(world.system.budget.used() + 20_000);
    world.put(2, 0, b"/program");
    assert_eq!(begin(&mut world, 1000), Did::Value(0));
    world.check();
}

#[test]
fn sockets_that_are_only_on_the_way_are_found() {
    for kind in [SOCK_DGRAM, SOCK_STREAM] {
        let mut world = world();
        let before = (world.system.budget.used(), world.system.budget.files());
        for _ in 0..200 {
            // One is on the way to itself, two to each other, and with them goes a pipe that nobody else has.
            let [one, other] = sockets(&mut world, 2, kind).unwrap();
            let [third, fourth] = sockets(&mut world, 2, kind).unwrap();
            let [reader, writer] = two(&mut world, 2, nr::__NR_pipe2, &[0], 0).unwrap();
            assert_eq!(send(&mut world, 2, one, &[other, one]), Did::Value(1));
            assert_eq!(send(&mut world, 2, other, &[third, writer]), Did::Value(1));
            assert_eq!(send(&mut world, 2, fourth, &[one, other, third, fourth]), Did::Value(1));
            for fd in [writer, third, one, fourth] {
                world.good(2, nr::__NR_close, &[fd]);
            }
            assert_eq!(world.system.budget.files(), 8, "the last one still leads to all");
            world.good(2, nr::__NR_close, &[other]);
            assert_eq!(world.system.budget.files(), 0);
            assert_eq!(world.good(2, nr::__NR_read, &[reader, DATA, 1]), 0, "nobody writes any more");
            world.good(2, nr::__NR_close, &[reader]);
        }
        world.check();
        assert_eq!((world.system.budget.used(), world.system.budget.files()), before);
    }
}

#[test]
fn connections_that_nobody_accepts_are_found_too() {
    let mut world = world();
    let before = world.system.budget.used();
    for round in 0..50 {
        let listens = world.good(2, nr::__NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]);
        let name = std::format!("\x01\0\0name{round}");
        let at = world.put(2, 2048, name.as_bytes());
        world.good(2, nr::__NR_bind, &[listens, at, name.len() as u64]);
        world.good(2, nr::__NR_listen, &[listens, 5]);
        let connects = world.good(2, nr::__NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]);
        world.good(2, nr::__NR_connect, &[connects, at, name.len() as u64]);
        // The connection waits at a socket that is on the way to it.
        assert_eq!(send(&mut world, 2, connects, &[listens, connects]), Did::Value(1));
        world.good(2, nr::__NR_close, &[connects]);
        assert_eq!(world.system.budget.files(), 2);
        world.good(2, nr::__NR_close, &[listens]);
        assert_eq!(world.system.budget.files(), 0);
        world.check();
    }
    assert_eq!(world.system.budget.used(), before);
}

#[test]
fn sockets_that_somebody_can_still_get_stay() {
    let mut world = world();
    let [one, other] = sockets(&mut world, 2, SOCK_DGRAM).unwrap();
    let [inner, outer] = sockets(&mut world, 2, SOCK_DGRAM).unwrap();
    assert_eq!(send(&mut world, 2, inner, &[outer, inner]), Did::Value(1));
    assert_eq!(send(&mut world, 2, one, &[outer]), Did::Value(1));
    for fd in [inner, outer] {
        world.good(2, nr::__NR_close, &[fd]);
    }
    assert_eq!(world.system.budget.files(), 3);
    let control = DATA + 1024;
    let piece = world.put_words(2, 512, &[DATA, 1]);
    let header = world.put_words(2, 256, &[0, 0, piece, 1, control, 64, 0]);
    assert_eq!(world.good(2, nr::__NR_recvmsg, &[other, header, 0]), 1);
    let [fd] = world.system.words(2, control + 16).unwrap();
    let got = fd & 0xffff_ffff;
    let header = world.put_words(2, 256, &[0, 0, piece, 1, control, 64, 0]);
    assert_eq!(world.good(2, nr::__NR_recvmsg, &[got, header, 0]), 1, "its own message is there");
    assert_eq!(world.system.budget.files(), 0);
    // An end frees it all, also what is on the way then.
    assert_eq!(send(&mut world, 2, one, &[one, other, got]), Did::Value(1));
    assert_eq!(world.call(2, nr::__NR_exit_group, &[0]), Did::Gone);
    assert_eq!(world.system.budget.files(), 0);
    world.check();
}

#[test]
fn descriptors_on_the_way_have_limits() {
    let mut world = world();
    let [one, _] = sockets(&mut world, 2, SOCK_DGRAM).unwrap();
    let limit = world.put_words(2, 0, &[20, 4096]);
    world.good(2, nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]);
    let (count, error) = until_refused(|| send(&mut world, 2, one, &[0, 1]));
    assert_eq!((count, error), (10, ETOOMANYREFS));
    // Another process has a number of its own.
    let [other, _] = sockets(&mut world, 1, SOCK_DGRAM).unwrap();
    assert_eq!(send(&mut world, 1, other, &[0, 1]), Did::Value(1));
    world.check();
}

/// One call of a hostile program that wants a lot. Descriptors are small numbers.
fn want(world: &mut World, random: &mut Random, tid: u32) -> Did {
    // Without memory for that page it can do nothing at all.
    if world.system.write(tid, DATA, &[0]).is_err() {
        return world.call(tid, nr::__NR_exit_group, &[0]);
    }
    let fd = 3 + random.below(24);
    let path = std::format!("/tmp/{}", random.below(6));
    let path = world.put(tid, 3000, path.as_bytes());
    let mapped = 0x1000_0000 + random.below(600) * PAGE;
    let len = (1 + random.below(8)) * PAGE;
    let private = PRIVATE | u64::from(nr::MAP_FIXED);
    let shared = u64::from(MAP_SHARED | MAP_ANONYMOUS | nr::MAP_FIXED);
    let (number, arguments) = match random.below(34) {
        0 => (nr::__NR_pipe2, [DATA, nr::O_NONBLOCK.into(), 0, 0, 0, 0]),
        1 => {
            let kind = (1 + random.below(2)) | u64::from(nr::O_NONBLOCK);
            (nr::__NR_socketpair, [AF_UNIX.into(), kind, 0, DATA, 0, 0])
        }
        2 => (nr::__NR_eventfd2, [0, nr::O_NONBLOCK.into(), 0, 0, 0, 0]),
        3 => (nr::__NR_open, [path, u64::from(nr::O_RDWR | nr::O_CREAT), 0o666, 0, 0, 0]),
        4 => (nr::__NR_memfd_create, [path, 0, 0, 0, 0, 0]),
        5..=7 => {
            (nr::__NR_mmap, [mapped, len, 3, if len > 4 * PAGE { shared } else { private }, u64::MAX, 0])
        }
        8 => (nr::__NR_munmap, [mapped, len, 0, 0, 0, 0]),
        9..=10 => (nr::__NR_mprotect, [mapped, PAGE, random.below(4), 0, 0, 0]),
        11 => {
            let _ = world.system.write(tid, mapped, b"x");
            return Did::Value(0);
        }
        12 => (nr::__NR_fork, [0; 6]),
        13 => {
            let flags = nr::CLONE_VM | nr::CLONE_SIGHAND | nr::CLONE_THREAD;
            (nr::__NR_clone, [flags.into(), 0, 0, 0, 0, 0])
        }
        14 if world.running().len() > 4 => (nr::__NR_exit, [0; 6]),
        15 => (nr::__NR_wait4, [u64::MAX, 0, nr::WNOHANG.into(), 0, 0, 0]),
        16 => (nr::__NR_dup2, [fd, random.of(&[4, 9, 40, 700, 4000]), 0, 0, 0, 0]),
        17..=18 => (nr::__NR_close, [fd, 0, 0, 0, 0, 0]),
        19 => (nr::__NR_close_range, [fd, random.of(&[10, 5000]), 0, 0, 0, 0]),
        20..=21 => (nr::__NR_write, [fd, DATA, random.below(4 * PAGE), 0, 0, 0]),
        22 => (nr::__NR_read, [fd, DATA, random.below(4 * PAGE), 0, 0, 0]),
        23..=25 => {
            let count = random.below(6);
            let files: Vec<u64> = (0..count).map(|_| 3 + random.below(24)).collect();
            return send(world, tid, fd, &files);
        }
        26 => {
            let piece = world.put_words(tid, 512, &[DATA + 4096, 1 + random.below(2)]);
            let header = world.put_words(tid, 256, &[0, 0, piece, 1, DATA + 1024, random.below(64), 0]);
            let flags = random.of(&[0, 0, 2]);
            (nr::__NR_recvmsg, [fd, header, flags, 0, 0, 0])
        }
        27 => (nr::__NR_fcntl, [fd, nr::F_SETPIPE_SZ.into(), random.of(&[4096, 1 << 16, 1 << 19]), 0, 0, 0]),
        28 => match random.below(3) {
            0 => (nr::__NR_epoll_create1, [0; 6]),
            _ => (nr::__NR_epoll_ctl, [fd, 1 + random.below(3), 3 + random.below(24), DATA, 0, 0]),
        },
        29 => match random.below(4) {
            0 => (nr::__NR_inotify_init1, [nr::O_NONBLOCK.into(), 0, 0, 0, 0, 0]),
            1 => (nr::__NR_inotify_rm_watch, [fd, 1 + random.below(4), 0, 0, 0, 0]),
            2 => (nr::__NR_unlink, [path, 0, 0, 0, 0, 0]),
            _ => (nr::__NR_inotify_add_watch, [fd, path, 0xfff, 0, 0, 0]),
        },
        30 => {
            let set = world.put_words(tid, 0, &[if random.below(3) == 0 { 0 } else { 1 << 39 }]);
            let _ = world.call(tid, nr::__NR_rt_sigprocmask, &[2, set, 0, 8]);
            let info = world.put_words(tid, 64, &[0, 0xffff_ffff, 0, 0]);
            let action = world.put_words(tid, 128, &[1, 0, 0, 0]);
            let _ = world.call(tid, nr::__NR_rt_sigaction, &[40, action, 0, 8]);
            let to = u64::from(world.system.pid(tid).unwrap_or(2));
            for _ in 0..random.below(60) {
                let _ = world.call(tid, nr::__NR_rt_sigqueueinfo, &[to, 40, info]);
            }
            return Did::Value(0);
        }
        31 => {
            let at = world.put(tid, 3200, b"/dev/ptmx");
            (nr::__NR_open, [at, u64::from(nr::O_RDWR | nr::O_NONBLOCK), 0, 0, 0, 0])
        }
        32 => {
            let at = world.put(tid, 3200, if random.below(2) == 0 { b"/program" } else { b"/tmp/0xx" });
            let list = world.put_words(tid, 3300, &[at, at, 0]);
            (nr::__NR_execve, [at, list, list, 0, 0, 0])
        }
        _ => {
            let entries: Vec<u8> = (3..40u32).flat_map(|fd| [fd.to_le_bytes(), [0; 4]].concat()).collect();
            let at = world.put(tid, 4096, &entries);
            (nr::__NR_poll, [at, 37, 5, 0, 0, 0])
        }
    };
    world.call(tid, number, &arguments)
}

#[test]
fn a_hostile_program_is_charged_what_it_holds() {
    let mut random = Random(119);
    let is_full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let (mut refused, mut good) = (0, 0);
    for round in 0..if is_full { 400 } else { 16 } {
        let mut world = World::new(2048, 12);
        // Nobody ends by a pipe that nobody reads.
        let ignore = world.put_words(1, 0, &[1, 0, 0, 0]);
        world.good(1, nr::__NR_rt_sigaction, &[nr::SIGPIPE.into(), ignore, 0, 8]);
        let start = world.system.budget.used();
        world.check();
        world.system.budget.set_max(start + [200_000, 500_000, 1 << 20][round % 3]);
        assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
        for _ in 0..600 {
            let tids: Vec<u32> = world.running().into_iter().filter(|tid| *tid != 1).collect();
            if tids.is_empty() {
                world.pass(10_000_000);
                if world.running().len() > 1 {
                    continue;
                }
                break;
            }
            let tid = tids[random.below(tids.len() as u64) as usize];
            let did = want(&mut world, &mut random, tid);
            let lacks = [ENOMEM, ENOBUFS, ENFILE, EAGAIN, EMFILE, ENOSPC, ETOOMANYREFS];
            refused += usize::from(lacks.iter().any(|error| did == Did::Value(-i64::from(error.0))));
            good += usize::from(matches!(did, Did::Value(0..)));
            world.check();
        }
        // All but the first end, and nothing is left of them.
        let others: Vec<u32> = world.system.processes.keys().copied().filter(|pid| *pid != 1).collect();
        for pid in others {
            let _ = world.call(1, nr::__NR_kill, &[pid.into(), 9]);
        }
        while let Did::Value(1..) = world.call(1, nr::__NR_wait4, &[u64::MAX, 0, nr::WNOHANG.into(), 0]) {}
        world.check();
        assert_eq!((world.system.budget.used(), world.system.budget.files()), (start, 0), "round {round}");
        world.good(1, nr::__NR_getpid, &[]);
        assert_eq!(world.call(1, nr::__NR_exit_group, &[0]), Did::Gone);
        assert_eq!(world.system.budget.used(), PROCESS_BYTES[1]);
    }
    assert!(refused > 100 && good > 1000, "{refused} refused, {good} good");
}
