//! Lists that a program fills and empties: what is gone keeps no memory of this program.

use super::world::{DATA, World};
use crate::errno::EAGAIN;
use crate::open::Object;
use linux_raw_sys::general as nr;
use linux_raw_sys::net::{AF_UNIX, SOCK_DGRAM, SOCK_STREAM};
use std::vec::Vec;

/// Places that are left to a list in which there is next to nothing.
const FEW: usize = 8;

const UNIX: u64 = AF_UNIX as u64;

fn world() -> World {
    let mut world = World::new(2048, 32);
    let limit = world.put_words(1, 0, &[4096, 4096]);
    world.good(1, nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]);
    world
}

/// Places of the object behind a descriptor.
fn places(world: &World, fd: u64) -> usize {
    let descriptor = world.system.processes[&1].descriptors.get(fd as u32).unwrap();
    match &descriptor.open.object {
        Object::Socket(socket) => socket.places(),
        Object::Epoll(list) => list.places(),
        Object::Inotify(list) => list.places(),
        other => panic!("{other:?}"),
    }
}

fn socket(world: &mut World, kind: u32) -> u64 {
    world.good(1, nr::__NR_socket, &[UNIX, (kind | nr::O_NONBLOCK).into(), 0])
}

/// Gives a socket a name. Where its address is, and how many bytes it has.
fn bind(world: &mut World, fd: u64, name: &str) -> [u64; 2] {
    let address = ["\x01\0\0", name].concat();
    let at = world.put(1, 2048, address.as_bytes());
    world.good(1, nr::__NR_bind, &[fd, at, address.len() as u64]);
    [at, address.len() as u64]
}

#[test]
fn messages_that_were_read_leave_no_places() {
    for kind in [SOCK_STREAM, SOCK_DGRAM] {
        let mut world = world();
        let kind = (kind | nr::O_NONBLOCK).into();
        world.good(1, nr::__NR_socketpair, &[UNIX, kind, 0, DATA]);
        let [both] = world.system.words(1, DATA).unwrap();
        let (one, other) = (both & 0xffff_ffff, both >> 32);
        let mut sent = 0;
        while let super::world::Did::Value(1) = world.call(1, nr::__NR_write, &[one, DATA, 1]) {
            sent += 1;
        }
        assert!(sent > 200);
        for left in (0..sent).rev() {
            assert_eq!(world.good(1, nr::__NR_read, &[other, DATA, 1]), 1);
            assert!(places(&world, other) <= 2 * left + FEW);
        }
        assert_eq!(world.bad(1, nr::__NR_read, &[other, DATA, 1]), EAGAIN);
        world.check();
    }
}

#[test]
fn connections_that_were_accepted_leave_no_places() {
    let mut world = world();
    let listens = socket(&mut world, SOCK_STREAM);
    let [at, len] = bind(&mut world, listens, "listens");
    world.good(1, nr::__NR_listen, &[listens, 1000]);
    for _ in 0..500 {
        let connects = socket(&mut world, SOCK_STREAM);
        world.good(1, nr::__NR_connect, &[connects, at, len]);
    }
    for _ in 0..500 {
        world.good(1, nr::__NR_accept, &[listens, 0, 0]);
    }
    assert!(places(&world, listens) <= FEW);
    world.check();
}

#[test]
fn sockets_wait_for_room_at_one_other() {
    let mut world = world();
    let full: Vec<(u64, [u64; 2])> = (0..20)
        .map(|number| {
            let fd = socket(&mut world, SOCK_DGRAM);
            let address = bind(&mut world, fd, &std::format!("full{number}"));
            // Each has its address at a place of its own.
            let bytes = ["\x01\0\0", &std::format!("full{number}")].concat();
            (fd, [world.put(1, 4096 + number * 64, bytes.as_bytes()), address[1]])
        })
        .collect();
    let sends = socket(&mut world, SOCK_DGRAM);
    for (_, [at, len]) in &full {
        while let super::world::Did::Value(1) =
            world.call(1, nr::__NR_sendto, &[sends, DATA, 1, 0, *at, *len])
        {}
    }
    let senders: Vec<u64> = (0..40).map(|_| socket(&mut world, SOCK_DGRAM)).collect();
    for sender in &senders {
        for (_, [at, len]) in &full {
            assert_eq!(world.bad(1, nr::__NR_sendto, &[*sender, DATA, 1, 0, *at, *len]), EAGAIN);
            world.good(1, nr::__NR_connect, &[*sender, *at, *len]);
            assert_eq!(world.bad(1, nr::__NR_write, &[*sender, DATA, 1]), EAGAIN);
        }
    }
    let waiting = |world: &World| full.iter().map(|(fd, _)| places(world, *fd)).sum::<usize>();
    // Queues have 11 messages, and other lists four places at least.
    assert!(waiting(&world) <= full.len() * 20 + 2 * senders.len() + FEW, "{}", waiting(&world));
    // All hear of room at the last one, and those that are closed are forgotten.
    for sender in &senders[1..] {
        world.good(1, nr::__NR_close, &[*sender]);
    }
    assert!(waiting(&world) <= full.len() * 20 + FEW);
    let polled = world.put_words(1, 0, &[senders[0] | u64::from(nr::POLLOUT) << 32]);
    assert_eq!(world.good(1, nr::__NR_poll, &[polled, 1, 0]), 0);
    world.good(1, nr::__NR_fork, &[]);
    assert_eq!(world.call(1, nr::__NR_poll, &[polled, 1, u64::MAX]), super::world::Did::Waits);
    world.good(2, nr::__NR_read, &[full[19].0, DATA, 1]);
    assert_eq!(world.outcome(1), super::world::Did::Value(1));
    world.check();
}

#[test]
fn entries_that_were_removed_leave_no_places() {
    let mut world = world();
    let list = world.good(1, nr::__NR_epoll_create1, &[0]);
    let counter = world.good(1, nr::__NR_eventfd2, &[1, 0]);
    let event = world.put_words(1, 64, &[nr::EPOLLIN.into(), 0]);
    for fd in 1000..2000 {
        world.good(1, nr::__NR_dup2, &[counter, fd]);
        world.good(1, nr::__NR_epoll_ctl, &[list, nr::EPOLL_CTL_ADD.into(), fd, event]);
    }
    for fd in 1001..2000 {
        world.good(1, nr::__NR_epoll_ctl, &[list, nr::EPOLL_CTL_DEL.into(), fd, event]);
    }
    assert!(places(&world, list) <= FEW && world.system.watches.places() <= FEW);
    world.check();
}

#[test]
fn events_that_were_read_leave_no_places() {
    let mut world = world();
    let list = world.good(1, nr::__NR_inotify_init1, &[nr::O_NONBLOCK.into()]);
    let path = world.put(1, 0, b"/file");
    world.good(1, nr::__NR_inotify_add_watch, &[list, path, nr::IN_ALL_EVENTS.into()]);
    for _ in 0..1000 {
        let fd = world.good(1, nr::__NR_open, &[path, 0, 0]);
        world.good(1, nr::__NR_close, &[fd]);
    }
    assert!(places(&world, list) >= 2000);
    for left in (0..2000).rev() {
        assert_eq!(world.good(1, nr::__NR_read, &[list, DATA + 256, 20]), 16);
        assert!(places(&world, list) <= 2 * left + FEW);
    }
    world.check();
}

#[test]
fn locks_that_were_given_back_leave_no_places() {
    let mut world = world();
    let path = world.put(1, 0, b"/file");
    let fd = world.good(1, nr::__NR_open, &[path, 2, 0]);
    let mut lock = |kind: u32, first: u64, len: u64| {
        let at = world.put_words(1, 256, &[kind.into(), first, len, 0]);
        world.good(1, nr::__NR_fcntl, &[fd, nr::F_SETLK.into(), at]);
    };
    (0..1000).for_each(|at| lock(nr::F_WRLCK, 2 * at, 1));
    lock(nr::F_UNLCK, 2, 0);
    (0..1000).for_each(|at| lock(nr::F_WRLCK, 2 * at, 1));
    // One lock in the place of all.
    lock(nr::F_WRLCK, 0, 0);
    assert!(world.system.locks.places() <= FEW && world.system.locks.count() == 1);
    world.check();
}
