//! Watches of files as programs see them. What is expected was recorded on Linux.

use crate::calls::HERE;
use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EAGAIN, EBADF, EEXIST, EINVAL, ENOENT, ENOSPC, ENOTDIR, EOPNOTSUPP, Errno};
use linux_raw_sys::general::*;
use linux_raw_sys::ioctl::FIONREAD;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// An event: watch, bits, whether it has a cookie, name.
type Seen = (i32, u32, bool, String);

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn seen(watch: i32, bits: u32, name: &str) -> Seen {
    (watch, bits, bits & IN_MOVE != 0, name.into())
}

struct Watcher {
    rig: Rig,
    fd: u64,
}

impl Watcher {
    /// A rig with `/tmp/w`, a file `f` and a directory `sub` in it, and `/tmp/o`. The first three are watched.
    fn new() -> Watcher {
        let mut rig = Rig::begun();
        let fd = rig.call(__NR_inotify_init1, &[IN_NONBLOCK.into()]) as u64;
        let mut watcher = Watcher { rig, fd };
        for name in ["/tmp/w", "/tmp/w/sub", "/tmp/o"] {
            assert_eq!(watcher.at(__NR_mkdir, name, &[0o755]), 0);
        }
        watcher.make("/tmp/w/f");
        for (name, number) in [("/tmp/w", 1), ("/tmp/w/f", 2), ("/tmp/w/sub", 3)] {
            assert_eq!(watcher.watch(name, IN_ALL_EVENTS), number);
        }
        watcher
    }

    fn path(&mut self, path: &str) -> u64 {
        self.rig.put(&[path.as_bytes(), b"\0"].concat())
    }

    fn at(&mut self, number: u32, path: &str, more: &[u64]) -> i64 {
        let at = self.path(path);
        self.rig.call(number, &[&[at], more].concat())
    }

    fn two(&mut self, number: u32, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        assert_eq!(self.rig.call(number, &[from, to]), 0);
    }

    fn open(&mut self, path: &str, flags: u32) -> u64 {
        let fd = self.at(__NR_open, path, &[flags.into(), 0o644]);
        assert!(fd >= 0, "{fd}");
        fd as u64
    }

    fn close(&mut self, fd: u64) {
        assert_eq!(self.rig.call(__NR_close, &[fd]), 0);
    }

    fn make(&mut self, path: &str) {
        let fd = self.open(path, O_CREAT | O_WRONLY);
        self.rig.write(fd, b"x");
        self.close(fd);
    }

    fn watch(&mut self, path: &str, mask: u32) -> i64 {
        let at = self.path(path);
        self.rig.call(__NR_inotify_add_watch, &[self.fd, at, mask.into()])
    }

    fn events(&mut self) -> Vec<Seen> {
        let bytes = match self.rig.read(self.fd, 8192) {
            Ok(bytes) => bytes,
            Err(errno) => {
                assert_eq!(errno, error(EAGAIN));
                return Vec::new();
            }
        };
        let (mut events, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let end = 16 + word(12) as usize;
            let name: Vec<u8> = rest[16..end].iter().copied().take_while(|byte| *byte != 0).collect();
            assert_eq!(end - 16, if name.is_empty() { 0 } else { (name.len() + 1).next_multiple_of(16) });
            events.push((word(0) as i32, word(4), word(8) != 0, String::from_utf8(name).unwrap()));
            rest = &rest[end..];
        }
        events
    }
}

#[test]
fn files_are_opened_written_read_and_closed() {
    let mut watcher = Watcher::new();
    let fd = watcher.open("/tmp/w/new", O_CREAT | O_WRONLY);
    watcher.rig.write(fd, b"a");
    watcher.rig.write(fd, b"b");
    watcher.close(fd);
    let all = [IN_CREATE, IN_OPEN, IN_MODIFY, IN_CLOSE_WRITE].map(|bits| seen(1, bits, "new"));
    assert_eq!(watcher.events(), all);
    let fd = watcher.open("/tmp/w/f", O_RDONLY);
    watcher.rig.read(fd, 9).unwrap();
    watcher.rig.read(fd, 9).unwrap();
    watcher.close(fd);
    let both = |bits: &[u32]| -> Vec<Seen> {
        bits.iter().flat_map(|bits| [seen(1, *bits, "f"), seen(2, *bits, "")]).collect()
    };
    assert_eq!(watcher.events(), both(&[IN_OPEN, IN_ACCESS, IN_CLOSE_NOWRITE]));
    let fd = watcher.open("/tmp/w/f", O_WRONLY | O_TRUNC);
    watcher.close(fd);
    assert_eq!(watcher.events(), both(&[IN_OPEN, IN_MODIFY, IN_CLOSE_WRITE]));
    // Bytes that a file gets later are told of at once, and once.
    let fd = watcher.open("/tmp/w/f", O_RDWR);
    watcher.rig.write(fd, b"12345");
    watcher.rig.call(__NR_lseek, &[fd, 0, 0]);
    watcher.events();
    watcher.rig.write(fd, b"123");
    assert_eq!(watcher.events(), both(&[IN_MODIFY]));
    watcher.rig.pass(3_000_000_000);
    assert_eq!(watcher.events(), []);
    watcher.close(fd);
    watcher.events();
    let fd = watcher.open("/tmp/w", O_RDONLY | O_DIRECTORY);
    let to = watcher.rig.room(1024);
    watcher.rig.call(__NR_getdents64, &[fd, to, 1024]);
    watcher.rig.call(__NR_getdents64, &[fd, to, 1024]);
    watcher.close(fd);
    let all = [IN_OPEN, IN_ACCESS, IN_CLOSE_NOWRITE].map(|bits| seen(1, bits | IN_ISDIR, ""));
    assert_eq!(watcher.events(), all);
    let fd = watcher.open("/tmp/w/f", O_PATH);
    watcher.close(fd);
    assert_eq!(watcher.events(), []);
}

#[test]
fn attributes_change() {
    let mut watcher = Watcher::new();
    let change = |watcher: &mut Watcher, name: &str| {
        assert_eq!(watcher.at(__NR_chmod, name, &[0o700]), 0);
        watcher.events()
    };
    assert_eq!(change(&mut watcher, "/tmp/w/f"), [seen(1, IN_ATTRIB, "f"), seen(2, IN_ATTRIB, "")]);
    let bits = IN_ATTRIB | IN_ISDIR;
    assert_eq!(change(&mut watcher, "/tmp/w/sub"), [seen(1, bits, "sub"), seen(3, bits, "")]);
    assert_eq!(change(&mut watcher, "/tmp/w"), [seen(1, bits, "")]);
    let at = watcher.path("/tmp/w/f");
    assert_eq!(watcher.rig.call(__NR_utimensat, &[HERE, at, 0, 0]), 0);
    assert_eq!(watcher.events(), [seen(1, IN_ATTRIB, "f"), seen(2, IN_ATTRIB, "")]);
    assert_eq!(watcher.at(__NR_truncate, "/tmp/w/f", &[5]), 0);
    let events = watcher.events();
    assert!(
        events.contains(&seen(1, IN_MODIFY, "f")) && events.contains(&seen(2, IN_MODIFY, "")),
        "{events:?}"
    );
}

#[test]
fn names_come_and_go() {
    let mut watcher = Watcher::new();
    watcher.two(__NR_link, "/tmp/w/f", "/tmp/w/l");
    assert_eq!(watcher.events(), [seen(1, IN_CREATE, "l"), seen(2, IN_ATTRIB, "")]);
    watcher.two(__NR_symlink, "f", "/tmp/w/s");
    watcher.at(__NR_mkdir, "/tmp/w/d", &[0o755]);
    let expected = [seen(1, IN_CREATE, "s"), seen(1, IN_CREATE | IN_ISDIR, "d")];
    assert_eq!(watcher.events(), expected);
    watcher.at(__NR_mknod, "/tmp/w/p", &[u64::from(S_IFIFO) | 0o644, 0]);
    assert_eq!(watcher.events().first(), Some(&seen(1, IN_CREATE, "p")));
    watcher.two(__NR_rename, "/tmp/w/d", "/tmp/o/d");
    assert_eq!(watcher.events(), [seen(1, IN_MOVED_FROM | IN_ISDIR, "d")]);
    watcher.two(__NR_rename, "/tmp/o/d", "/tmp/w/d2");
    assert_eq!(watcher.events(), [seen(1, IN_MOVED_TO | IN_ISDIR, "d2")]);
    watcher.two(__NR_rename, "/tmp/w/f", "/tmp/w/g");
    let expected = [seen(1, IN_MOVED_FROM, "f"), seen(1, IN_MOVED_TO, "g"), seen(2, IN_MOVE_SELF, "")];
    assert_eq!(watcher.events(), expected);
    for (call, name, bits) in [(__NR_unlink, "s", 0), (__NR_rmdir, "d2", IN_ISDIR), (__NR_unlink, "l", 0)] {
        assert_eq!(watcher.at(call, &["/tmp/w/", name].concat(), &[]), 0);
        assert_eq!(watcher.events().first(), Some(&seen(1, IN_DELETE | bits, name)));
    }
    assert_eq!(watcher.at(__NR_unlink, "/tmp/w/g", &[]), 0);
    let end = [IN_ATTRIB, IN_DELETE_SELF, IN_IGNORED].map(|bits| seen(2, bits, ""));
    assert_eq!(watcher.events(), [&[seen(1, IN_DELETE, "g")][..], &end].concat());
    assert_eq!(watcher.rig.call(__NR_inotify_rm_watch, &[watcher.fd, 2]), error(EINVAL));
    assert_eq!(watcher.watch("/tmp/w/sub", IN_ALL_EVENTS), 3, "the others are there");
    watcher.two(__NR_rename, "/tmp/w", "/tmp/v");
    assert_eq!(watcher.events(), [seen(1, IN_MOVE_SELF, "")]);
    watcher.make("/tmp/v/z");
    assert_eq!(
        watcher.events().first(),
        Some(&seen(1, IN_CREATE, "z")),
        "it is the directory that is watched"
    );
}

#[test]
fn moves_have_cookies_of_their_own() {
    let mut watcher = Watcher::new();
    watcher.make("/tmp/w/a");
    watcher.events();
    let mut cookies = Vec::new();
    for (from, to) in [("/tmp/w/a", "/tmp/w/b"), ("/tmp/w/b", "/tmp/w/a")] {
        watcher.two(__NR_rename, from, to);
        let bytes = watcher.rig.read(watcher.fd, 99).unwrap();
        assert_eq!(bytes[8..12], bytes[40..44]);
        cookies.push(bytes[8..12].to_vec());
    }
    assert_ne!(cookies[0], cookies[1]);
}

#[test]
fn masks_are_kept() {
    let mut watcher = Watcher::new();
    for mask in [0, 1 << 27, IN_ISDIR, IN_MASK_ADD | IN_MASK_CREATE | IN_CREATE, IN_ONLYDIR] {
        assert_eq!(watcher.watch("/tmp/w", mask), error(EINVAL), "{mask:x}");
    }
    assert_eq!(watcher.watch("/tmp/w/f", IN_ONLYDIR | IN_CREATE), error(ENOTDIR));
    assert_eq!(watcher.watch("/tmp/w/nothing", IN_CREATE), error(ENOENT));
    assert_eq!(watcher.watch("/tmp/w", IN_MASK_CREATE | IN_CREATE), error(EEXIST));
    watcher.two(__NR_symlink, "/tmp/o", "/tmp/link");
    assert_eq!(watcher.watch("/tmp/link", IN_DONT_FOLLOW | IN_CREATE), error(EOPNOTSUPP));
    let at = watcher.path("/tmp/o");
    assert_eq!(watcher.rig.call(__NR_inotify_add_watch, &[0, at, IN_CREATE.into()]), error(EINVAL));
    assert_eq!(watcher.rig.call(__NR_inotify_add_watch, &[99, at, IN_CREATE.into()]), error(EBADF));
    assert_eq!(watcher.rig.call(__NR_inotify_init1, &[1]), error(EINVAL));
    // Another mask replaces the first, unless it is added.
    assert_eq!(watcher.watch("/tmp/link", IN_CREATE), 4);
    assert_eq!(watcher.watch("/tmp/o", IN_DELETE), 4);
    watcher.make("/tmp/o/a");
    assert_eq!(watcher.events(), []);
    assert_eq!(watcher.watch("/tmp/o", IN_CREATE | IN_MASK_ADD), 4);
    watcher.make("/tmp/o/b");
    watcher.at(__NR_unlink, "/tmp/o/b", &[]);
    assert_eq!(watcher.events(), [seen(4, IN_CREATE, "b"), seen(4, IN_DELETE, "b")]);
    // One that hears once.
    assert_eq!(watcher.watch("/tmp/o", IN_CREATE | IN_ONESHOT), 4);
    watcher.make("/tmp/o/c");
    watcher.make("/tmp/o/d");
    assert_eq!(watcher.events(), [seen(4, IN_CREATE, "c"), seen(4, IN_IGNORED, "")]);
    assert_eq!(watcher.watch("/tmp/o", IN_CREATE), 5, "numbers are not used again");
    assert_eq!(watcher.rig.call(__NR_inotify_rm_watch, &[watcher.fd, 5]), 0);
    assert_eq!(watcher.events(), [seen(5, IN_IGNORED, "")]);
    watcher.make("/tmp/o/e");
    assert_eq!(watcher.events(), []);
}

#[test]
fn readers_wait_and_lists_hear() {
    let mut watcher = Watcher::new();
    let (fd, child) = (watcher.fd, watcher.rig.fork());
    assert_eq!(watcher.rig.call_by(child, __NR_fcntl, &[fd, F_SETFL.into(), 0]), 0);
    let list = watcher.rig.call(__NR_epoll_create1, &[0]) as u64;
    let event = watcher.rig.put(&[&EPOLLIN.to_le_bytes()[..], &7u64.to_le_bytes()].concat());
    assert_eq!(watcher.rig.call(__NR_epoll_ctl, &[list, EPOLL_CTL_ADD.into(), fd, event]), 0);
    let to = watcher.rig.room(64);
    assert_eq!(watcher.rig.try_by(child, __NR_read, &[fd, to, 64]), None);
    assert_eq!(watcher.rig.call(__NR_epoll_wait, &[list, to, 1, 0]), 0);
    assert_eq!(watcher.at(__NR_chmod, "/tmp/w/f", &[0o600]), 0);
    assert_eq!(watcher.rig.answer(child), Some(48));
    assert_eq!(watcher.rig.poll(fd), 0);
    watcher.at(__NR_chmod, "/tmp/w/f", &[0o644]);
    assert_eq!(watcher.rig.poll(fd), POLLIN | POLLRDNORM);
    assert_eq!(watcher.rig.call(__NR_epoll_wait, &[list, to, 1, 0]), 1);
    assert_eq!(watcher.rig.call(__NR_ioctl, &[fd, FIONREAD.into(), to]), 0);
    assert_eq!(watcher.rig.half(to), 48);
    // Events are read whole.
    assert_eq!(watcher.rig.read(fd, 20), Err(error(EINVAL)));
    assert_eq!((watcher.rig.read(fd, 47).unwrap().len(), watcher.rig.read(fd, 47).unwrap().len()), (32, 16));
    assert_eq!(watcher.rig.write(fd, b"x"), error(EBADF));
    // A list that is closed watches nothing.
    watcher.rig.call(__NR_close, &[fd]);
    watcher.rig.call_by(child, __NR_close, &[fd]);
    assert_eq!(
        (watcher.rig.system.kept.notices.watches.len(), watcher.rig.system.kept.notices.lists),
        (0, 0)
    );
    watcher.make("/tmp/w/h");
    assert_eq!(FIRST, 1);
}

#[test]
fn queues_and_lists_have_ends() {
    let mut watcher = Watcher::new();
    let names = [0, 1].map(|number| std::format!("/tmp/w/{}{number}", "n".repeat(250)));
    for name in &names {
        watcher.make(name);
    }
    watcher.events();
    // One process has half of it.
    watcher.rig.system.budget.set_max(8 << 20);
    let names = names.map(|name| watcher.path(&name));
    for round in 0..16_000 {
        watcher.rig.call(__NR_chmod, &[names[round % 2], 0o600]);
    }
    let to = watcher.rig.room(64 << 10);
    let (mut bytes, mut last) = (0, vec![0; 16]);
    loop {
        let count = watcher.rig.call(__NR_read, &[watcher.fd, to, 64 << 10]);
        if count < 0 {
            break;
        }
        bytes += count;
        last = watcher.rig.get(FIRST, to + count as u64 - 16, 16);
    }
    assert!(bytes > 1 << 20);
    assert_eq!(last[..8], [&u32::MAX.to_le_bytes()[..], &IN_Q_OVERFLOW.to_le_bytes()].concat());
    watcher.rig.call(__NR_chmod, &[names[0], 0o600]);
    assert_eq!(watcher.events().len(), 1, "there is room again");
    let limit = watcher.rig.put(&[4096u64, 4096].map(u64::to_le_bytes).concat());
    watcher.rig.call(__NR_setrlimit, &[RLIMIT_NOFILE.into(), limit]);
    let made = (0..200).take_while(|_| watcher.rig.call(__NR_inotify_init1, &[0]) > 0).count();
    assert_eq!(made, 127);
    let at = watcher.path("/tmp");
    let made = (4..131).filter(|fd| watcher.rig.call(__NR_inotify_add_watch, &[*fd, at, 2]) > 0).count();
    assert_eq!(made, 127);
    for number in 0..4096 - 130 {
        let name = std::format!("/tmp/w/{number}");
        assert_eq!(watcher.at(__NR_mknod, &name, &[0o644, 0]), 0);
        assert!(watcher.watch(&name, IN_MODIFY) > 0);
    }
    assert_eq!(watcher.watch("/tmp/o", IN_MODIFY), error(ENOSPC));
}
