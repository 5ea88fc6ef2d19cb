//! Attributes.

use super::HERE;
use super::fifo::Fifo;
use super::paths::{Meant, checked};
use super::permissions::Subject;
use super::time::SECOND;
use crate::capabilities::NO_FIXUP;
use crate::errno::{EACCES, EINVAL, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::node::Node;
use crate::open::{Link, Object, Open};
use crate::special::{Device, Special};
use crate::store::Store;
use crate::system::{Answer, DONE, System};
use crate::terminals::SYSTEM;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    self, AT_EACCESS, AT_EMPTY_PATH, AT_NO_AUTOMOUNT, AT_STATX_SYNC_TYPE, AT_SYMLINK_NOFOLLOW, S_IFCHR,
    S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK, STATX__RESERVED,
};
use vfs::path::Last;
use vfs::{Attributes, FileSystem, Inode, Kind};

/// Number of the device of a sandbox's files, and that of `/dev` and `/proc`.
pub(super) const DEVICES: [u64; 2] = [0x801, 0x15];

/// Kinds of file systems, as `statfs` names them.
const EXT4: u64 = 0xef53;
/// See [`EXT4`].
const PROC: u64 = 0x9fa0;

/// Answer of `stat`.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    device: u64,
    inode: u64,
    links: u64,
    /// Kind and permissions.
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    number: u64,
    len: u64,
    blocks: u64,
    /// Accessed, modified, changed, in nanoseconds since 1970.
    times: [u64; 3],
    /// Its inode, if it is in the file system.
    pub(super) file: Option<Inode>,
}

/// Length that a queue of messages has as a file.
pub(super) const QUEUE_FILE_BYTES: u64 = 80;

impl Stat {
    fn of(found: &Attributes) -> Stat {
        let special = Special::of(found.inode);
        let kind = match found.kind {
            Kind::File => S_IFREG,
            Kind::Directory => S_IFDIR,
            Kind::Symlink => S_IFLNK,
            Kind::Special => S_IFCHR,
        };
        Stat {
            device: DEVICES[usize::from(special.is_some())],
            inode: inode_number(found.inode),
            links: found.links.into(),
            mode: kind | u32::from(found.permissions),
            owner: found.owner,
            group: found.group,
            number: special.map_or(0, Special::device_number),
            len: found.len,
            blocks: found.allocated / 512,
            times: [found.accessed, found.modified, found.changed],
            file: if special.is_none() { Some(found.inode) } else { None },
        }
    }

    /// Something that has no name.
    fn nameless(mode: u32, inode: u64, number: u64) -> Stat {
        let (owner, group, len, blocks) = (0, 0, 0, 0);
        let (device, links, times) = (0xf, 1, [0; 3]);
        Stat { device, inode, links, mode, owner, group, number, len, blocks, times, file: None }
    }

    /// Words of `struct stat`.
    fn words(&self) -> [u64; 18] {
        let owners = [u64::from(self.mode) | u64::from(self.owner) << 32, self.group.into()];
        let [accessed, modified, changed] = self.times.map(|time| [time / SECOND, time % SECOND]);
        [
            self.device,
            self.inode,
            self.links,
            owners[0],
            owners[1],
            self.number,
            self.len,
            PAGE,
            self.blocks,
            accessed[0],
            accessed[1],
            modified[0],
            modified[1],
            changed[0],
            changed[1],
            0,
            0,
            0,
        ]
    }

    /// Bytes of `struct statx`.
    fn long_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        let mask = general::STATX_BASIC_STATS;
        let halves = [mask, PAGE as u32, 0, 0, self.links as u32, self.owner, self.group];
        bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        bytes.extend_from_slice(&self.mode.to_le_bytes());
        let words = [self.inode, self.len, self.blocks, 0];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        // Accessed, made, changed, modified.
        let [accessed, modified, changed] = self.times;
        for time in [accessed, 0, changed, modified] {
            bytes.extend_from_slice(&(time / SECOND).to_le_bytes());
            bytes.extend_from_slice(&(time % SECOND).to_le_bytes());
        }
        let numbers = [self.number >> 8, self.number & 0xff, self.device >> 8, self.device & 0xff];
        bytes.extend(numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()));
        bytes.resize(256, 0);
        bytes
    }
}

/// Number of an inode, as processes see it.
pub(super) fn inode_number(inode: Inode) -> u64 {
    inode.0 & (u64::MAX >> 1)
}

/// Whether a symbolic link at the end of a path is followed.
pub(super) fn last(flags: u32) -> Last {
    if flags & AT_SYMLINK_NOFOLLOW != 0 { Last::Stay } else { Last::Follow }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    fn stat_of(&mut self, inode: Inode) -> Result<Stat> {
        let found = self.store.attributes(inode)?;
        Ok(self.stat_found(&found))
    }

    /// Does as [`System::stat_at`]. No path at all is an empty one, if that may be.
    fn stat_at_or_of(&mut self, tid: Tid, directory: u64, path: u64, flags: u32) -> Result<Stat> {
        if path == 0 && flags & AT_EMPTY_PATH != 0 && directory as u32 != HERE as u32 {
            return self.stat_open(tid, directory);
        }
        self.stat_at(tid, directory, path, flags)
    }

    fn stat_open(&mut self, tid: Tid, fd: u64) -> Result<Stat> {
        let open = self.open_or_place(tid, fd)?;
        self.stat_object(&open)
    }

    pub(super) fn stat_object(&mut self, open: &Open) -> Result<Stat> {
        match &open.object {
            Object::File { inode, .. }
            | Object::Directory { inode, .. }
            | Object::Text { inode, .. }
            | Object::Device { inode, .. } => self.stat_of(*inode),
            Object::Link(link) => Ok(self.stat_link(link)),
            Object::Master { inode, .. } => self.stat_of(*inode),
            Object::Terminal { number, .. } => self.stat_of(match *number {
                SYSTEM => Special::Device(Device::Console).inode(),
                number => Special::Terminal(number).inode(),
            }),
            Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                match &ends.name {
                    Some(name) => self.stat_of(name.inode),
                    None => {
                        let (owner, group) = ends.owner;
                        Ok(Stat { owner, group, ..Stat::nameless(S_IFIFO | 0o600, ends.number, 0) })
                    }
                }
            }
            Object::Counter { number, .. } => Ok(Stat::nameless(0o600, *number, 0)),
            Object::Epoll(epoll) => Ok(Stat::nameless(0o600, epoll.number, 0)),
            Object::Timer(timer) => Ok(Stat::nameless(0o600, timer.number, 0)),
            Object::Memory(file) => {
                let frames = &self.store.frames;
                let (len, blocks) = (frames.object_len(file.object), frames.object_bytes(file.object) / 512);
                let stat = Stat::nameless(S_IFREG | 0o777, file.object.object(), 0);
                Ok(Stat { len, blocks, links: 0, ..stat })
            }
            Object::Inotify(list) => Ok(Stat::nameless(0o600, list.number, 0)),
            Object::Process(pidfd) => Ok(Stat::nameless(0o600, pidfd.number, 0)),
            Object::Signals(list) => Ok(Stat::nameless(0o600, list.number, 0)),
            Object::Queue(queue) => {
                let (owner, group) = queue.owner;
                let stat = Stat::nameless(S_IFREG | queue.permissions, queue.number, 0);
                Ok(Stat { owner, group, len: QUEUE_FILE_BYTES, ..stat })
            }
            Object::Socket(socket) => Ok(Stat::nameless(S_IFSOCK | 0o777, socket.number, 0)),
            Object::Inet(inet) => Ok(Stat::nameless(S_IFSOCK | 0o777, inet.number, 0)),
            Object::Netlink(socket) => Ok(Stat::nameless(S_IFSOCK | 0o777, socket.number, 0)),
        }
    }

    /// Attributes of a symbolic link that is open: those that it had, if it is gone.
    fn stat_link(&mut self, link: &Link) -> Stat {
        let gone = Attributes { links: 0, ..link.found };
        let found = self.store.attributes(link.found.inode).unwrap_or(gone);
        Stat::of(&found)
    }

    /// Attributes of the object that a call with a directory, a path and flags means.
    pub(super) fn stat_at(&mut self, tid: Tid, directory: u64, path: u64, flags: u32) -> Result<Stat> {
        let path = match self.meant(tid, directory, path, flags)? {
            Meant::Open(open) => return self.stat_object(&open),
            Meant::At(path) => path,
        };
        if flags & AT_SYMLINK_NOFOLLOW == 0
            && let Some(open) = self.descriptor_at(tid, &path)?
        {
            return self.stat_object(&open);
        }
        let path = self.reach(tid, &path, last(flags))?;
        let found = self.look(&path, last(flags))?;
        Ok(self.stat_found(&found))
    }

    /// Attributes as a process sees them.
    fn stat_found(&mut self, found: &Attributes) -> Stat {
        let stat = Stat::of(found);
        let kind = match self.store.node(found) {
            None => return stat,
            Some(Node::Socket) => S_IFSOCK,
            Some(Node::Pipe) => S_IFIFO,
        };
        Stat { mode: kind | stat.mode & !general::S_IFMT, len: 0, blocks: 0, ..stat }
    }

    pub(crate) fn sys_stat(&mut self, tid: Tid, [path, to, ..]: [u64; 6]) -> Answer {
        self.sys_fstatat(tid, [HERE, path, to, 0, 0, 0])
    }

    pub(crate) fn sys_lstat(&mut self, tid: Tid, [path, to, ..]: [u64; 6]) -> Answer {
        self.sys_fstatat(tid, [HERE, path, to, AT_SYMLINK_NOFOLLOW.into(), 0, 0])
    }

    pub(crate) fn sys_fstat(&mut self, tid: Tid, [fd, to, ..]: [u64; 6]) -> Answer {
        let words = self.stat_open(tid, fd)?.words();
        super::done(self.write_words(tid, to, &words))
    }

    pub(crate) fn sys_fstatat(&mut self, tid: Tid, [directory, path, to, flags, ..]: [u64; 6]) -> Answer {
        let flags = checked(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT)?;
        let words = self.stat_at_or_of(tid, directory, path, flags)?.words();
        super::done(self.write_words(tid, to, &words))
    }

    pub(crate) fn sys_statx(&mut self, tid: Tid, [directory, path, flags, mask, to, _]: [u64; 6]) -> Answer {
        let allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT;
        let flags = checked(flags, allowed | AT_STATX_SYNC_TYPE)?;
        if flags & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE || mask as u32 & STATX__RESERVED != 0 {
            return Err(EINVAL);
        }
        let bytes = self.stat_at_or_of(tid, directory, path, flags)?.long_bytes();
        super::done(self.write(tid, to, &bytes))
    }

    fn write_statfs(&mut self, tid: Tid, to: u64, inode: Inode) -> Answer {
        let words = if Store::<B, F>::is_own(inode) {
            let space = self.store.volume.space()?;
            let blocks = [space.total / PAGE, space.free / PAGE, space.free / PAGE];
            [EXT4, PAGE, blocks[0], blocks[1], blocks[2], space.files, space.files_free, 0, 255, PAGE, 0]
        } else {
            [PROC, PAGE, 0, 0, 0, 0, 0, 0, 255, PAGE, 0]
        };
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(120, 0);
        super::done(self.write(tid, to, &bytes))
    }

    pub(crate) fn sys_statfs(&mut self, tid: Tid, [path, to, ..]: [u64; 6]) -> Answer {
        let path = self.path_at(tid, HERE, path)?;
        let path = self.reach(tid, &path, Last::Follow)?;
        let found = self.look(&path, Last::Follow)?;
        self.write_statfs(tid, to, found.inode)
    }

    pub(crate) fn sys_fstatfs(&mut self, tid: Tid, [fd, to, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let inode = match &open.object {
            Object::File { inode, .. } | Object::Directory { inode, .. } => *inode,
            Object::Link(link) => link.found.inode,
            _ => Special::Devices.inode(),
        };
        self.write_statfs(tid, to, inode)
    }

    pub(crate) fn sys_access(&mut self, tid: Tid, [path, mode, ..]: [u64; 6]) -> Answer {
        self.sys_faccessat2(tid, [HERE, path, mode, 0, 0, 0])
    }

    pub(crate) fn sys_faccessat(&mut self, tid: Tid, [directory, path, mode, ..]: [u64; 6]) -> Answer {
        self.sys_faccessat2(tid, [directory, path, mode, 0, 0, 0])
    }

    pub(crate) fn sys_faccessat2(
        &mut self,
        tid: Tid,
        [directory, path, mode, flags, ..]: [u64; 6],
    ) -> Answer {
        let flags = checked(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_EACCESS)?;
        if mode & !7 != 0 {
            return Err(EINVAL);
        }
        let found = self.stat_at(tid, directory, path, flags)?;
        // The owner of all may do everything, but not begin what nobody can.
        let is_program = found.mode & 0o111 != 0 || found.mode & general::S_IFMT != S_IFREG;
        if mode as u32 & general::X_OK != 0 && !is_program {
            return Err(EACCES);
        }
        // It is the real owner that is asked about, unless the call says otherwise.
        let is_effective = flags & AT_EACCESS != 0;
        let index = usize::from(is_effective);
        let own = self.thread(tid)?.capabilities;
        let owners = &self.process(tid)?.owners;
        let (owner, group) = (owners.owner[index], owners.group[index]);
        let capabilities = match owner {
            _ if is_effective || own.secure & NO_FIXUP != 0 => own.effective,
            0 => own.permitted,
            _ => 0,
        };
        let subject = Subject { owner, group, groups: owners.groups.clone(), capabilities };
        let is_allowed = subject.may(found.mode, (found.owner, found.group), mode as u32);
        if is_allowed { DONE } else { Err(EACCES) }
    }
}
