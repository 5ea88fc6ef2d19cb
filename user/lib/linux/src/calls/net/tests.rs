//! Files of `/proc/net` without a network, and sockets of `AF_UNIX` in theirs. Lines that are expected are those of Linux.

use crate::calls::rig::{FIRST, Rig};
use crate::machine::Tid;
use crate::open::Object;
use linux_raw_sys::general::{self as nr, O_DIRECTORY};
use linux_raw_sys::net::{AF_UNIX, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
use std::format;
use std::string::String;
use std::vec::Vec;

fn text(rig: &mut Rig, path: &str) -> String {
    let at = rig.put(&[path.as_bytes(), b"\0"].concat());
    let fd = rig.call(nr::__NR_open, &[at, 0, 0]);
    assert!(fd >= 0, "{path}: {fd}");
    let text = rig.read(fd as u64, 16 << 10).unwrap();
    rig.call(nr::__NR_close, &[fd as u64]);
    String::from_utf8(text).unwrap()
}

/// Number of a socket, as its descriptor is called.
fn number(rig: &Rig, tid: Tid, fd: u64) -> u64 {
    let open = rig.system.processes[&tid].descriptors.get(fd as u32).unwrap().open.clone();
    let Object::Socket(socket) = &open.object else { panic!("no socket") };
    socket.number
}

fn bind(rig: &mut Rig, fd: u64, name: &[u8]) {
    let at = rig.put(&[&(AF_UNIX as u16).to_le_bytes()[..], name].concat());
    assert_eq!(rig.call(nr::__NR_bind, &[fd, at, 2 + name.len() as u64]), 0);
}

#[test]
fn sockets_of_this_machine_are_in_a_table() {
    let mut rig = Rig::begun();
    let head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
    assert_eq!(text(&mut rig, "/proc/net/unix"), head);
    let socket = |rig: &mut Rig, kind: u32| {
        let fd = rig.call(nr::__NR_socket, &[AF_UNIX.into(), kind.into(), 0]);
        (fd as u64, number(rig, FIRST, fd as u64))
    };
    let (listener, first) = socket(&mut rig, SOCK_STREAM);
    bind(&mut rig, listener, b"/tmp/socket\0");
    assert_eq!(rig.call(nr::__NR_listen, &[listener, 1]), 0);
    let (datagrams, second) = socket(&mut rig, SOCK_DGRAM);
    bind(&mut rig, datagrams, b"\0a\0b");
    let pair = rig.two(nr::__NR_socketpair, &[AF_UNIX.into(), SOCK_SEQPACKET.into(), 0], 3);
    let [third, fourth] = pair.map(|fd| number(&rig, FIRST, fd));
    let zeros = "0000000000000000";
    let lines = [
        format!("{zeros}: 00000002 00000000 00010000 0001 01 {first:5} /tmp/socket\n"),
        format!("{zeros}: 00000002 00000000 00000000 0002 01 {second:5} @a@b\n"),
        format!("{zeros}: 00000003 00000000 00000000 0005 03 {third:5}\n"),
        format!("{zeros}: 00000003 00000000 00000000 0005 03 {fourth:5}\n"),
    ];
    // All processes have the same.
    let child = rig.fork();
    for path in [
        "/proc/net/unix",
        "/proc/self/net/unix",
        "/proc/1/task/1/net/unix",
        &format!("/proc/{child}/net/unix"),
    ] {
        assert_eq!(text(&mut rig, path), [head, &lines.concat()].concat(), "{path}");
    }
    // The name leads from a descriptor to its line.
    let link = rig.put(format!("/proc/self/fd/{listener}\0").as_bytes());
    let to = rig.room(64);
    let len = rig.call(nr::__NR_readlink, &[link, to, 64]) as usize;
    assert_eq!(rig.get(FIRST, to, len), format!("socket:[{first}]").as_bytes());
}

#[test]
fn without_a_network_there_is_loopback() {
    let mut rig = Rig::begun();
    let dev = text(&mut rig, "/proc/net/dev");
    assert!(dev.lines().count() == 3 && dev.lines().nth(2).unwrap().starts_with("    lo:       0 "), "{dev}");
    let route = text(&mut rig, "/proc/net/route");
    assert!(route.len() == 128 && route.starts_with("Iface\tDestination\tGateway \tFlags\t"), "{route}");
    for name in ["tcp", "tcp6", "udp", "udp6", "udplite", "udplite6"] {
        assert_eq!(text(&mut rig, &["/proc/net/", name].concat()).lines().count(), 1, "{name}");
    }
    // It is a directory behind a link, in which nothing is made.
    let at = rig.put(b"/proc/net\0/proc/self/net/tcp\0");
    let to = rig.room(64);
    let len = rig.call(nr::__NR_readlink, &[at, to, 64]) as usize;
    assert_eq!(rig.get(FIRST, to, len), b"self/net");
    assert!(rig.call(nr::__NR_open, &[at, O_DIRECTORY.into(), 0]) > 0);
    assert!(rig.call(nr::__NR_unlink, &[at + 10]) < 0);
    let names: Vec<&str> = crate::tree::names(crate::tree::NET).collect();
    assert_eq!(names, ["dev", "route", "tcp", "tcp6", "udp", "udp6", "unix", "udplite", "udplite6"]);
}
