//! From a path to something open, and the working directory.

use super::permissions::whole;
use super::way::Way;
use super::{HERE, number};
use crate::budget::Share;
use crate::errno::{
    EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENFILE, ENOENT, ENOTDIR, ENXIO, EOPNOTSUPP, ERANGE, ESRCH,
    Result,
};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::node::Node;
use crate::open::{Link, OPEN_BYTES, Object, Open};
use crate::process::Process;
use crate::special::{Device, Special};
use crate::store::{PATH_MAX, Store};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{
    AT_EMPTY_PATH, IN_ISDIR, IN_MODIFY, IN_OPEN, O_ACCMODE, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL,
    O_NOFOLLOW, O_PATH, O_RDONLY, O_TRUNC, O_WRONLY, X_OK,
};
use vfs::path::{LINKS_MAX, Last};
use vfs::{Attributes, FileSystem, How, Inode, Kind};

/// The bit of `O_TMPFILE` that no other flag has.
const O_TMPFILE: u32 = 0o20_000_000;

/// Flags that go with `O_PATH`.
const PLACE: u32 = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Object of a call that names a directory, a path and flags.
#[derive(Debug)]
pub(super) enum Meant {
    /// Something open: the path is empty, and may be (`AT_EMPTY_PATH`).
    Open(Rc<Open>),
    /// A path.
    At(Way),
}

/// Names of a path.
pub fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A path of a thread, from the root on. An empty one is an error.
    pub fn path_at(&mut self, tid: Tid, directory: u64, address: u64) -> Result<Way> {
        let path = self.path_or_empty(tid, address)?;
        if path.is_empty() { Err(ENOENT) } else { self.whole_path(tid, directory, path) }
    }

    /// A path of a thread, as it is written.
    pub fn path_or_empty(&mut self, tid: Tid, address: u64) -> Result<Vec<u8>> {
        let room = self.room(tid)?;
        self.store.text(&mut room.borrow_mut().memory, address, PATH_MAX)
    }

    /// Finds the object that a directory, a path and flags mean. An empty path, if it may be, means the directory itself, which need not be one.
    pub(super) fn meant(&mut self, tid: Tid, directory: u64, path: u64, flags: u32) -> Result<Meant> {
        let path = self.path_or_empty(tid, path)?;
        match path.is_empty() {
            true if flags & AT_EMPTY_PATH == 0 => Err(ENOENT),
            true if directory as u32 != HERE as u32 => Ok(Meant::Open(self.open_or_place(tid, directory)?)),
            _ => Ok(Meant::At(self.whole_path(tid, directory, path)?)),
        }
    }

    /// A path from the root on.
    pub fn whole_path(&mut self, tid: Tid, directory: u64, path: Vec<u8>) -> Result<Way> {
        if self.has_root(tid)? {
            return self.path_in_root(tid, directory, &path);
        }
        let way = match path.first() {
            Some(b'/') => Way::new(path),
            _ => Way::below(self.base(tid, directory)?, &path),
        };
        self.look_at_links(tid, &way);
        Ok(way)
    }

    /// The path of a directory in which others begin: that of a descriptor, or the working directory. `ENOENT`: it is not there any more.
    pub(super) fn base(&mut self, tid: Tid, directory: u64) -> Result<Vec<u8>> {
        if directory as u32 == HERE as u32 {
            let filesystem = self.process(tid)?.filesystem.borrow();
            return if filesystem.is_directory_gone { Err(ENOENT) } else { Ok(filesystem.directory.clone()) };
        }
        let open = self.open_or_place(tid, directory)?;
        let Object::Directory { path, inode } = &open.object else { return Err(ENOTDIR) };
        let path = path.borrow().clone();
        self.check_base(tid, &path, *inode)?;
        Ok(path)
    }

    /// Fails unless a path without symbolic links leads to the directory that had it when it was opened: its name may be that of another one by now, or of a link to one.
    fn check_base(&mut self, tid: Tid, path: &[u8], directory: Inode) -> Result<()> {
        // The root stays where it is.
        if path.is_empty() {
            return Ok(());
        }
        self.look_at_links(tid, path);
        match self.look(path, Last::Follow) {
            Ok(found) if found.inode == directory => Ok(()),
            Ok(_) | Err(ENOTDIR | ELOOP) => Err(ENOENT),
            Err(error) => Err(error),
        }
    }

    /// Links of a process in `/proc` are there when somebody looks at them: `exe`, `cwd` and `root`, and those in `fd`, which have their targets only if
    /// the path leads through them.
    pub(super) fn look_at_links(&mut self, tid: Tid, path: &[u8]) {
        if !path.starts_with(b"/proc") && !path.starts_with(b"/dev") {
            return;
        }
        let path = plain(path);
        let mut names = names(&path);
        let own: &[u8] = b"self";
        let (owner, link) = match (names.next(), names.next()) {
            (Some(b"proc"), Some(owner)) => (owner, names.next()),
            (Some(b"dev"), link) => (own, link),
            _ => return,
        };
        let number = |name: &[u8]| core::str::from_utf8(name).ok()?.parse::<u32>().ok();
        let is_own = owner == own || owner == b"thread-self";
        let pid = if is_own { self.pid(tid).ok() } else { number(owner) };
        let Some((pid, process)) = pid.and_then(|pid| Some((pid, self.processes.get(&pid)?))) else { return };
        let wanted = match link {
            Some(b"stdin") => Some(0),
            Some(b"stdout") => Some(1),
            Some(b"stderr") => Some(2),
            Some(b"fd") => names.next().and_then(number),
            Some(b"task") => match (names.next(), names.next()) {
                (_, Some(b"fd")) => names.next().and_then(number),
                _ => None,
            },
            _ if owner == b"thread-self" => None,
            Some(b"exe" | b"cwd" | b"root") => None,
            _ => return,
        };
        self.show_links(pid, process, wanted);
    }

    /// Notes where the links of a process lead; of those in `fd` the wanted one, and that the others are there.
    fn show_links(&self, pid: Tid, process: &Process, wanted: Option<u32>) {
        let mut view = self.store.view.borrow_mut();
        let Some(paths) = view.show(pid) else { return };
        paths.program.clone_from(&process.program);
        paths.threads.clone_from(&process.threads);
        let filesystem = process.filesystem.borrow();
        paths.root = filesystem.root.as_ref().map_or_else(|| whole(&[]), |root| root.name());
        paths.directory.clone_from(&filesystem.directory);
        if paths.directory.is_empty() {
            paths.directory = whole(&[]);
        }
        if filesystem.is_directory_gone {
            paths.directory.extend_from_slice(b" (deleted)");
        }
        let name = |number: u32, open: &Open| if Some(number) == wanted { open.name() } else { Vec::new() };
        let all = process.descriptors.iter();
        paths.descriptors = all.map(|(at, descriptor)| (at, name(at, &descriptor.open))).collect();
    }

    /// Descriptors of a process are about to be listed.
    pub(super) fn show_descriptors(&self, pid: Tid) {
        if let Some(process) = self.processes.get(&pid) {
            self.show_links(pid, process, None);
        }
    }

    /// Attributes of what is at a path.
    pub fn look(&mut self, path: &[u8], last: Last) -> Result<Attributes> {
        let root = self.store.root;
        let found = self.store.volume.attributes_at(root, path, last)?;
        if self.store.is_late(found.inode) { self.store.attributes(found.inode) } else { Ok(found) }
    }

    /// The path of a directory, without symbolic links. It has [`PATH_MAX`] bytes at most, and each name is looked up once, in its directory.
    pub fn canonical(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let root = self.store.root;
        let mut left: Vec<Vec<u8>> = names(path).map(<[u8]>::to_vec).rev().collect();
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut above = Vec::from([root]);
        let mut links = 0;
        while let Some(name) = left.pop() {
            if name == b".." {
                found.pop();
                above.truncate(found.len() + 1);
                continue;
            }
            let directory = above.last().copied().unwrap_or(root);
            let here = self.store.volume.attributes_at(directory, &name, Last::Name)?;
            match here.kind {
                Kind::Symlink => {}
                Kind::Directory => {
                    found.push(name);
                    above.push(here.inode);
                    continue;
                }
                _ if left.is_empty() => {
                    found.push(name);
                    break;
                }
                _ => return Err(ENOTDIR),
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(ELOOP);
            }
            let target = self.store.volume.readlink(directory, &name)?;
            if target.first() == Some(&b'/') {
                found.clear();
                above.truncate(1);
            }
            left.extend(names(&target).map(<[u8]>::to_vec).rev());
            if left.iter().map(|name| name.len() + 1).sum::<usize>() > 2 * PATH_MAX {
                return Err(ENAMETOOLONG);
            }
        }
        let path = joined(&found);
        if path.len() < PATH_MAX { Ok(path) } else { Err(ENAMETOOLONG) }
    }

    /// Opens what is at a path. `ENFILE`: all that is open has too many bytes of paths.
    pub fn open_path(&mut self, tid: Tid, path: &Way, flags: u32, mode: u32) -> Result<Rc<Open>> {
        // A place alone: other flags mean nothing, and neither make nor cut off what is there.
        let flags = if flags & O_PATH != 0 { flags & PLACE } else { flags };
        let open = self.open_found(tid, path, flags, mode)?;
        let has_share = open.share.borrow().is_some();
        if !has_share {
            let Some(share) = self.budget.take(open.name_bytes() + OPEN_BYTES) else {
                self.close(open);
                return Err(ENFILE);
            };
            open.share.replace(Some(share));
        }
        Ok(open)
    }

    fn open_found(&mut self, tid: Tid, path: &Way, flags: u32, mode: u32) -> Result<Rc<Open>> {
        let last = match flags {
            _ if flags & O_CREAT != 0 && flags & O_EXCL != 0 => Last::Name,
            _ if flags & O_NOFOLLOW != 0 => Last::Stay,
            _ => Last::Follow,
        };
        if let Some(again) = self.open_by_descriptor(tid, path, flags)? {
            return Ok(again);
        }
        let path = &self.reach(tid, path, last)?;
        let found = match self.look(path, last) {
            Err(ENOENT) if flags & O_CREAT != 0 => None,
            found => Some(found?),
        };
        let writes = flags & O_ACCMODE != O_RDONLY && flags & O_PATH == 0;
        if let Some(found) = &found
            && flags & (O_CREAT | O_EXCL) != O_CREAT | O_EXCL
        {
            self.may_open(tid, found, flags)?;
        }
        match found {
            Some(_) if flags & O_CREAT != 0 && flags & O_EXCL != 0 => Err(EEXIST),
            Some(found) if found.kind == Kind::Directory => {
                if writes || flags & O_CREAT != 0 {
                    return Err(EISDIR);
                }
                let path = self.canonical(path)?;
                let root = self.store.root;
                let inode = self.store.volume.enter(root, &path)?;
                if flags & O_PATH == 0 {
                    self.noticed(inode, IN_OPEN | IN_ISDIR);
                }
                Ok(Open::new(Object::Directory { inode, path: RefCell::new(path) }, flags))
            }
            Some(_) if flags & O_DIRECTORY != 0 => Err(ENOTDIR),
            Some(found) if found.kind == Kind::Symlink => self.open_link(tid, path, found, flags),
            Some(found) => match Special::of(found.inode) {
                Some(special) => self.open_special(tid, special, path, flags),
                None if found.kind == Kind::Special => Err(ENXIO),
                None if flags & O_PATH != 0 => self.open_own(tid, path, flags, mode),
                None => match self.store.node(&found) {
                    Some(Node::Socket) => Err(ENXIO),
                    Some(Node::Pipe) => self.open_fifo(&found, path, flags),
                    None => {
                        if writes || flags & O_TRUNC != 0 {
                            self.check_not_running(found.inode)?;
                        }
                        self.open_own(tid, path, flags, mode)
                    }
                },
            },
            None => {
                self.may_make(tid, path)?;
                // It is empty, so nothing is cut off.
                let open = self.open_own(tid, path, flags & !O_TRUNC, mode)?;
                match self.give_new(tid, &open) {
                    Ok(()) => Ok(open),
                    Err(error) => {
                        self.close(open);
                        Err(error)
                    }
                }
            }
        }
    }

    /// A share of the budget for what is opened with a path, before anything is made or cut off. `ENFILE`: too much is open.
    pub(super) fn share_of_open(&self, path: &[u8]) -> Result<Share> {
        self.budget.take(path.len() + OPEN_BYTES).ok_or(ENFILE)
    }

    fn open_own(&mut self, tid: Tid, path: &[u8], flags: u32, mode: u32) -> Result<Rc<Open>> {
        let how = How {
            create: flags & O_CREAT != 0,
            exclusive: flags & O_EXCL != 0,
            truncate: flags & O_TRUNC != 0 && flags & O_ACCMODE != O_RDONLY,
        };
        let permissions = mode & 0o7777 & !self.process(tid)?.umask();
        let name = plain(path);
        let share = self.share_of_open(&name)?;
        let root = self.store.root;
        let inode = self.store.volume.open(root, path, how, permissions as u16)?;
        if how.truncate
            && let Err(error) = self.unmark(inode).and_then(|()| self.store.truncate(inode, 0))
        {
            let _ = self.store.volume.close(inode);
            return Err(error);
        }
        if flags & O_PATH == 0 {
            self.noticed(inode, IN_OPEN);
        }
        if how.truncate {
            self.noticed(inode, IN_MODIFY);
        }
        let kept = flags & !(O_CREAT | O_EXCL | O_TRUNC | O_DIRECTORY);
        Ok(with_share(Open::new(Object::File { inode, path: name }, kept), share))
    }

    /// Opens a symbolic link itself, which only a place is.
    fn open_link(&mut self, tid: Tid, path: &[u8], found: Attributes, flags: u32) -> Result<Rc<Open>> {
        if flags & O_PATH == 0 {
            return Err(ELOOP);
        }
        if let Some(Special::OfProcess(pid, _) | Special::Descriptor(pid, _)) = Special::of(found.inode) {
            self.may_inspect(tid, pid)?;
        }
        let root = self.store.root;
        let target = self.store.volume.readlink(root, path)?;
        if Store::<B, F>::is_own(found.inode) {
            self.store.volume.opened(found.inode)?;
        }
        let link = Link { path: plain(path), target, found };
        Ok(Open::new(Object::Link(Box::new(link)), flags))
    }

    pub(super) fn open_special(
        &mut self,
        tid: Tid,
        special: Special,
        path: &[u8],
        flags: u32,
    ) -> Result<Rc<Open>> {
        let inode = special.inode();
        let path = plain(path);
        let object = match special {
            Special::Device(Device::Tty | Device::Console | Device::Ptmx) | Special::Terminal(_)
                if flags & O_PATH == 0 =>
            {
                return self.open_terminal(tid, special, flags);
            }
            Special::Device(_) | Special::Terminal(_) => Object::Device { inode, path },
            _ => {
                if let Special::OfProcess(pid, of) = special
                    && of.is_private()
                {
                    self.may_inspect(tid, pid)?;
                }
                self.proc_text(special)?;
                Object::Text { inode, path }
            }
        };
        Ok(Open::new(object, flags & !(O_CREAT | O_EXCL | O_TRUNC)))
    }

    pub(crate) fn sys_open(&mut self, tid: Tid, [path, flags, mode, ..]: [u64; 6]) -> Answer {
        self.sys_openat(tid, [HERE, path, flags, mode, 0, 0])
    }

    pub(crate) fn sys_creat(&mut self, tid: Tid, [path, mode, ..]: [u64; 6]) -> Answer {
        self.sys_openat(tid, [HERE, path, (O_CREAT | O_WRONLY | O_TRUNC).into(), mode, 0, 0])
    }

    pub(crate) fn sys_openat(&mut self, tid: Tid, [directory, path, flags, mode, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if flags & O_TMPFILE != 0 {
            return Err(EOPNOTSUPP);
        }
        if let Some(answer) = self.go_on_opening(tid) {
            return answer;
        }
        let path = self.path_or_empty(tid, path)?;
        if path.is_empty() {
            return Err(ENOENT);
        }
        let fd = self.reserve_descriptor(tid)?;
        let path = self.whole_path(tid, directory, path)?;
        let open = self.open_path(tid, &path, flags, mode as u32)?;
        self.give_opened(tid, open, flags, fd)
    }

    /// A descriptor of something that was opened, with the number that was [reserved](System::reserve_descriptor) for it. One of a pipe with a name waits for the other end,
    /// and has the number that is free then.
    pub(super) fn give_opened(&mut self, tid: Tid, open: Rc<Open>, flags: u32, fd: u32) -> Answer {
        if let Some(answer) = self.wait_for_other_end(tid, &open, flags) {
            return answer;
        }
        number(self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, fd))
    }

    pub(crate) fn sys_getcwd(&mut self, tid: Tid, [address, len, ..]: [u64; 6]) -> Answer {
        let mut path = self.seen_directory(tid)?;
        path.push(0);
        if (path.len() as u64) > len {
            return Err(ERANGE);
        }
        self.write(tid, address, &path)?;
        Ok(Outcome::Value(path.len() as u64))
    }

    /// The path at an address, of a directory that a thread may search.
    pub(super) fn searchable_at(&mut self, tid: Tid, path: u64) -> Result<Way> {
        let path = self.path_at(tid, HERE, path)?;
        let path = self.reach(tid, &path, Last::Follow)?;
        let found = self.look(&path, Last::Follow)?;
        if found.kind != Kind::Directory {
            return Err(ENOTDIR);
        }
        self.may(tid, &found, X_OK)?;
        Ok(path)
    }

    pub(crate) fn sys_chdir(&mut self, tid: Tid, [path, ..]: [u64; 6]) -> Answer {
        let path = self.searchable_at(tid, path)?;
        let path = self.canonical(&path)?;
        self.enter_directory(tid, path)
    }

    pub(crate) fn sys_fchdir(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let Object::Directory { path, inode } = &open.object else { return Err(ENOTDIR) };
        let found = self.store.attributes(*inode)?;
        self.may(tid, &found, X_OK)?;
        let path = path.borrow().clone();
        self.check_base(tid, &path, *inode)?;
        self.enter_directory(tid, path)
    }

    fn enter_directory(&mut self, tid: Tid, path: Vec<u8>) -> Answer {
        let mut filesystem = self.process(tid)?.filesystem.borrow_mut();
        (filesystem.directory, filesystem.is_directory_gone) = (path, false);
        DONE
    }

    /// A process that is looked at.
    pub fn other(&self, pid: Tid) -> Result<&crate::process::Process> {
        self.processes.get(&pid).ok_or(ESRCH)
    }
}

/// Something open, with its share of the budget.
pub(super) fn with_share(open: Rc<Open>, share: Share) -> Rc<Open> {
    open.share.replace(Some(share));
    open
}

/// Path of names, from the root on. That of the root is empty.
pub(super) fn joined(names: &[Vec<u8>]) -> Vec<u8> {
    names.iter().flat_map(|name| [b"/", name.as_slice()].concat()).collect()
}

/// A path without what changes nothing.
pub fn plain(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len() + 1);
    for name in names(path) {
        if name == b".." {
            let parent = plain.iter().rposition(|byte| *byte == b'/');
            plain.truncate(parent.unwrap_or(0));
        } else {
            plain.push(b'/');
            plain.extend_from_slice(name);
        }
    }
    if plain.is_empty() {
        plain.push(b'/');
    }
    plain
}

/// Flags of a call, if it has no others than these.
pub fn checked(flags: u64, allowed: u32) -> Result<u32> {
    let flags = u32::try_from(flags).map_err(|_| EINVAL)?;
    if flags & !allowed != 0 { Err(EINVAL) } else { Ok(flags) }
}
