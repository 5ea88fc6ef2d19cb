//! Two sandboxes on one disk, each with a root of its own: a hostile program in one reaches nothing of the other.

use super::{OWN, World};
use crate::errno::{EACCES, ECONNREFUSED, EINVAL, ENOENT, ENOSYS, EPERM, ESRCH, Errno};
use linux_raw_sys::general::*;
use linux_raw_sys::net::{AF_UNIX, SOCK_STREAM};
use std::cell::RefCell;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{Attributes, Changes, Entry, FileSystem, Inode, Name, New, Ram, Result, Space, Volume};

/// Files of a disk below one of its directories, as the program `linux` has them.
#[derive(Clone)]
struct Below {
    disk: Rc<RefCell<Ram<Plain>>>,
    root: Inode,
}

/// Hands calls on to the disk.
macro_rules! handed_on {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl FileSystem for Below {
            fn root(&self) -> Inode {
                self.root
            }
            fn is_read_only(&self) -> bool {
                false
            }
            fn hold(&mut self, inode: Inode) -> Result<()> {
                self.disk.borrow_mut().hold(inode)
            }
            fn release(&mut self, inode: Inode) {
                self.disk.borrow_mut().release(inode);
            }
            $(fn $name(&mut self, $($argument: $kind),*) -> $result {
                self.disk.borrow_mut().$name($($argument),*)
            })*
        }
    };
}

handed_on! {
    fn attributes(inode: Inode) -> Result<Attributes>;
    fn change(inode: Inode, changes: &Changes) -> Result<()>;
    fn lookup(directory: Inode, name: Name) -> Result<Inode>;
    fn readdir(directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>>;
    fn create(directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode>;
    fn link(inode: Inode, directory: Inode, name: Name) -> Result<()>;
    fn unlink(directory: Inode, name: Name) -> Result<()>;
    fn rmdir(directory: Inode, name: Name) -> Result<()>;
    fn rename(from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()>;
    fn forget(inode: Inode) -> Result<()>;
    fn readlink(inode: Inode) -> Result<Vec<u8>>;
    fn read(inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize>;
    fn write(inode: Inode, offset: u64, from: &[u8]) -> Result<usize>;
    fn truncate(inode: Inode, len: u64) -> Result<()>;
    fn sync(inode: Inode) -> Result<()>;
    fn space() -> Result<Space>;
}

/// Sandboxes with the roots `/one` and `/two` of a disk. The second has a file `secret`, three processes, and a socket with an abstract name.
fn sandboxes() -> [World<Below>; 2] {
    let disk = Rc::new(RefCell::new(Ram::new(1 << 24, || 7)));
    let top = disk.borrow().root();
    let mut all = Volume::new(Below { disk: disk.clone(), root: top });
    let mut below = |name: &[u8]| {
        all.mkdir(top, name, 0o755).unwrap();
        let root = all.attributes_at(top, name, vfs::path::Last::Follow).unwrap().inode;
        World::on(Below { disk: disk.clone(), root })
    };
    let (one, mut two) = (below(b"one"), below(b"two"));
    two.file(b"/secret", b"of two", 0o666);
    two.fork(1);
    two.fork(1);
    let fd = socket(&mut two);
    let hidden = name(&mut two, b"\0hidden");
    assert_eq!(two.now(1, __NR_bind, &[fd, hidden, 9]), Ok(0));
    assert_eq!(two.now(1, __NR_listen, &[fd, 5]), Ok(0));
    [one, two]
}

fn socket(world: &mut World<Below>) -> u64 {
    world.now(1, __NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]).unwrap()
}

/// An address with a name.
fn name(world: &mut World<Below>, name: &[u8]) -> u64 {
    world.put(1, OWN + 512, &[&[1, 0], name].concat());
    OWN + 512
}

/// Results of opening a path to read, write, and make it.
fn opened(world: &mut World<Below>, path: &str) -> Vec<core::result::Result<u64, Errno>> {
    [O_RDONLY, O_RDWR, O_RDONLY | O_PATH].map(|flags| world.open(1, path, flags)).to_vec()
}

#[test]
fn paths_lead_to_no_other_root() {
    let [mut one, mut two] = sandboxes();
    assert!(two.open(1, "/secret", O_RDONLY).is_ok());
    one.by_path(1, __NR_mkdir, "/deep", &[0o755]).unwrap();
    for (number, target) in [
        "../two/secret",
        "/../two/secret",
        "/two/secret",
        "/proc/self/root/../two/secret",
        "/proc/1/cwd/../two/secret",
    ]
    .into_iter()
    .enumerate()
    {
        for path in [String::from(target), format!("/deep/../../{target}"), format!("./deep/../{target}")] {
            assert!(opened(&mut one, &path).iter().all(|found| *found == Err(ENOENT)), "{path}");
        }
        let link = format!("/link{number}");
        one.put(1, OWN + 1024, &[target.as_bytes(), b"\0"].concat());
        one.put(1, OWN + 512, &[link.as_bytes(), b"\0"].concat());
        assert_eq!(one.now(1, __NR_symlink, &[OWN + 1024, OWN + 512]), Ok(0));
        assert!(opened(&mut one, &link).iter().take(2).all(|found| *found == Err(ENOENT)), "{link}");
        for call in [__NR_chdir, __NR_unlink, __NR_truncate, __NR_rmdir] {
            assert!(one.by_path(1, call, &format!("/../{target}"), &[0]).is_err(), "{target}");
        }
    }
    // A directory that is open is left by no `..`.
    let root = one.open(1, "/", O_RDONLY | O_DIRECTORY).unwrap();
    one.put(1, OWN + 512, b"../two/secret\0");
    assert_eq!(one.now(1, __NR_openat, &[root, OWN + 512, 0, 0]), Err(ENOENT));
    assert_eq!(one.by_path(1, __NR_chdir, "/../../..", &[]), Ok(0));
    assert!(opened(&mut one, "two/secret").iter().all(|found| *found == Err(ENOENT)));
    // A file that one makes is not there for the other.
    one.open(1, "/made", O_CREAT | O_RDWR).unwrap();
    assert_eq!(two.open(1, "/made", O_RDONLY), Err(ENOENT));
    assert_eq!(two.open(1, "/link0", O_RDONLY), Err(ENOENT));
}

#[test]
fn processes_are_those_of_the_sandbox() {
    let [mut one, mut two] = sandboxes();
    for pid in [2, 3] {
        assert!(two.open(1, &format!("/proc/{pid}/status"), O_RDONLY).is_ok());
        for file in ["status", "mem", "environ", "fd/0", "root/secret", "cwd/secret", "exe"] {
            assert_eq!(one.open(1, &format!("/proc/{pid}/{file}"), O_RDONLY), Err(ENOENT), "{pid} {file}");
        }
        assert_eq!(one.now(1, __NR_kill, &[pid, SIGKILL.into()]), Err(ESRCH));
        assert_eq!(one.now(1, __NR_tgkill, &[pid, pid, SIGKILL.into()]), Err(ESRCH));
        assert_eq!(one.now(1, __NR_kill, &[pid.wrapping_neg(), SIGKILL.into()]), Err(ESRCH));
        assert_eq!(one.now(1, __NR_getsid, &[pid]), Err(ESRCH));
        // To attach, to read another's memory, to have its descriptor.
        for (call, arguments) in [
            (__NR_ptrace, [16, pid, 0, 0, 0, 0]),
            (__NR_process_vm_readv, [pid, OWN, 1, OWN, 1, 0]),
            (__NR_pidfd_open, [pid, 0, 0, 0, 0, 0]),
        ] {
            let found = one.now(1, call, &arguments);
            assert!([ENOSYS, ESRCH, EPERM].map(Err).contains(&found), "{call}: {found:?}");
        }
    }
    // All, but those of the other.
    one.now(1, __NR_kill, &[u64::MAX, SIGTERM.into()]).unwrap_or_default();
    for pid in [1, 2, 3] {
        assert_eq!(two.now(pid as u32, __NR_getpid, &[]), Ok(pid));
    }
}

#[test]
fn sockets_and_devices_are_those_of_the_sandbox() {
    let [mut one, mut two] = sandboxes();
    let (fd, client) = (socket(&mut one), socket(&mut two));
    let hidden = name(&mut one, b"\0hidden");
    assert_eq!(one.now(1, __NR_connect, &[fd, hidden, 9]), Err(ECONNREFUSED));
    let hidden = name(&mut two, b"\0hidden");
    assert_eq!(two.now(1, __NR_connect, &[client, hidden, 9]), Ok(0));
    // The name is free here, and who has it gets no client of the other.
    let hidden = name(&mut one, b"\0hidden");
    assert_eq!(one.now(1, __NR_bind, &[fd, hidden, 9]), Ok(0));
    // Pseudo-terminals have the same numbers, and are others.
    let master = two.open(1, "/dev/ptmx", O_RDWR).unwrap();
    two.now(1, __NR_ioctl, &[master, linux_raw_sys::ioctl::TIOCSPTLCK.into(), OWN + 8192]).unwrap();
    assert!(two.open(1, "/dev/pts/1", O_RDWR | O_NOCTTY).is_ok());
    assert_eq!(one.open(1, "/dev/pts/1", O_RDWR | O_NOCTTY), Err(ENOENT));
    for device in ["mem", "kmem", "port", "sda", "vda", "kmsg", "../two/secret"] {
        assert_eq!(one.open(1, &format!("/dev/{device}"), O_RDWR), Err(ENOENT), "{device}");
    }
    for (call, kind) in [(__NR_mknod, S_IFCHR), (__NR_mknod, S_IFBLK)] {
        let made = one.by_path(1, call, "/device", &[(kind | 0o666).into(), 0x801]);
        assert!([EPERM, EINVAL, ENOSYS, EACCES].map(Err).contains(&made), "{made:?}");
    }
}

/// Nobody makes another root, or another view of processes.
#[test]
fn there_is_no_way_to_another_root() {
    let [mut one, _] = sandboxes();
    // The root itself is no other one, by whatever name.
    assert_eq!(one.by_path(1, __NR_chroot, "/..", &[]), Ok(0));
    // Out of a root below, with something open outside of that, the way leads to the sandbox's root and ends there.
    let outside = one.open(1, "/", O_RDONLY | O_DIRECTORY).unwrap();
    assert_eq!(one.by_path(1, __NR_chroot, "/dev", &[]), Ok(0));
    assert_eq!(one.now(1, __NR_fchdir, &[outside]), Ok(0));
    for path in ["../two/secret", "two/secret", "../../two/secret", "/../two/secret"] {
        assert_eq!(one.open(1, path, O_RDONLY), Err(ENOENT), "{path}");
    }
    assert_eq!(one.by_path(1, __NR_chroot, "../..", &[]), Ok(0));
    for path in ["/../two/secret", "/two/secret"] {
        assert_eq!(one.open(1, path, O_RDONLY), Err(ENOENT), "{path}");
    }
    for call in [__NR_pivot_root, __NR_mount, __NR_umount2, __NR_swapon, __NR_acct] {
        assert!(one.by_path(1, call, "/..", &[OWN, OWN, 0, 0]).is_err(), "{call}");
    }
    for call in
        [__NR_unshare, __NR_setns, __NR_open_by_handle_at, __NR_name_to_handle_at, __NR_bpf, __NR_init_module]
    {
        assert!(one.now(1, call, &[0x2000_0000, OWN, 0, 0]).is_err(), "{call}");
    }
}
