//! From a path to something open, and the working directory.

use super::{HERE, number};
use crate::errno::{
    EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENXIO, EOPNOTSUPP, ERANGE, ESRCH, Result,
};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::node::Node;
use crate::open::{Object, Open};
use crate::special::{Device, Special};
use crate::store::PATH_MAX;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    O_ACCMODE, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDONLY, O_TRUNC, O_WRONLY,
};
use vfs::path::{LINKS_MAX, Last};
use vfs::{Attributes, FileSystem, How, Kind};

/// The bit of `O_TMPFILE` that no other flag has.
const O_TMPFILE: u32 = 0o20_000_000;

/// Names of a path.
pub fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A path of a thread, from the root on. An empty one is an error.
    pub fn path_at(&mut self, tid: Tid, directory: u64, address: u64) -> Result<Vec<u8>> {
        let path = self.path_or_empty(tid, address)?;
        if path.is_empty() { Err(ENOENT) } else { self.whole_path(tid, directory, path) }
    }

    /// A path of a thread, as it is written.
    pub fn path_or_empty(&mut self, tid: Tid, address: u64) -> Result<Vec<u8>> {
        let room = self.room(tid)?;
        self.store.text(&mut room.borrow_mut().memory, address, PATH_MAX)
    }

    /// A path from the root on.
    pub fn whole_path(&mut self, tid: Tid, directory: u64, path: Vec<u8>) -> Result<Vec<u8>> {
        if path.first() == Some(&b'/') {
            self.look_at_descriptors(&path);
            return Ok(path);
        }
        let mut whole = if directory as u32 == HERE as u32 {
            self.process(tid)?.directory.clone()
        } else {
            match &self.open_file(tid, directory)?.object {
                Object::Directory { path, .. } => path.clone(),
                _ => return Err(ENOTDIR),
            }
        };
        whole.push(b'/');
        whole.extend_from_slice(&path);
        self.look_at_descriptors(&whole);
        Ok(whole)
    }

    /// Names in `/proc/PID/fd` are there when somebody may look at them.
    fn look_at_descriptors(&mut self, path: &[u8]) {
        if !path.starts_with(b"/proc") && !path.starts_with(b"/dev") {
            return;
        }
        let mut view = self.store.view.borrow_mut();
        for (pid, paths) in &mut view.processes {
            let Some(process) = self.processes.get(pid) else { continue };
            paths.program.clone_from(&process.program);
            paths.directory.clone_from(&process.directory);
            let all = process.descriptors.iter();
            paths.descriptors = all.map(|(number, descriptor)| (number, descriptor.open.name())).collect();
        }
    }

    /// Attributes of what is at a path.
    pub fn look(&mut self, path: &[u8], last: Last) -> Result<Attributes> {
        let root = self.store.root;
        Ok(self.store.volume.attributes_at(root, path, last)?)
    }

    /// The path of a directory, without symbolic links.
    pub fn canonical(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let mut left: Vec<Vec<u8>> = names(path).map(<[u8]>::to_vec).rev().collect();
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut links = 0;
        while let Some(name) = left.pop() {
            if name == b".." {
                found.pop();
                continue;
            }
            found.push(name);
            let here = joined(&found);
            if self.look(&here, Last::Name)?.kind != Kind::Symlink {
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(ELOOP);
            }
            let root = self.store.root;
            let target = self.store.volume.readlink(root, &here)?;
            found.pop();
            if target.first() == Some(&b'/') {
                found.clear();
            }
            left.extend(names(&target).map(<[u8]>::to_vec).rev());
        }
        Ok(joined(&found))
    }

    /// Opens what is at a path.
    pub fn open_path(&mut self, tid: Tid, path: &[u8], flags: u32, mode: u32) -> Result<Rc<Open>> {
        let last = match flags {
            _ if flags & O_CREAT != 0 && flags & O_EXCL != 0 => Last::Name,
            _ if flags & O_NOFOLLOW != 0 => Last::Stay,
            _ => Last::Follow,
        };
        if let Some(same) = self.descriptor_at(path)? {
            return Ok(same);
        }
        let found = match self.look(path, last) {
            Err(ENOENT) if flags & O_CREAT != 0 => None,
            found => Some(found?),
        };
        let writes = flags & O_ACCMODE != O_RDONLY && flags & O_PATH == 0;
        match found {
            Some(_) if flags & O_CREAT != 0 && flags & O_EXCL != 0 => Err(EEXIST),
            Some(found) if found.kind == Kind::Directory => {
                if writes || flags & O_CREAT != 0 {
                    return Err(EISDIR);
                }
                let path = self.canonical(path)?;
                let root = self.store.root;
                let inode = self.store.volume.enter(root, &path)?;
                Ok(Open::new(Object::Directory { inode, path }, flags))
            }
            Some(_) if flags & O_DIRECTORY != 0 => Err(ENOTDIR),
            Some(found) if found.kind == Kind::Symlink => Err(ELOOP),
            Some(found) => match Special::of(found.inode) {
                Some(special) => self.open_special(tid, special, path, flags),
                None if found.kind == Kind::Special => Err(ENXIO),
                None if flags & O_PATH == 0 && self.store.node(&found) == Some(Node::Socket) => Err(ENXIO),
                None => self.open_own(tid, path, flags, mode),
            },
            None => self.open_own(tid, path, flags, mode),
        }
    }

    /// The object behind a path of a descriptor, such as `/proc/self/fd/3` or `/dev/stdin`.
    pub(super) fn descriptor_at(&mut self, path: &[u8]) -> Result<Option<Rc<Open>>> {
        if !path.starts_with(b"/proc") && !path.starts_with(b"/dev") {
            return Ok(None);
        }
        let Ok(found) = self.look(path, Last::Stay) else { return Ok(None) };
        let Some(Special::Descriptor(pid, number)) = Special::of(found.inode) else { return Ok(None) };
        let process = self.processes.get(&pid).ok_or(ENOENT)?;
        let open = process.descriptors.get(number).map_err(|_| ENOENT)?.open.clone();
        if matches!(open.object, Object::Socket(_)) {
            return Err(ENXIO);
        }
        // A file that has a name is opened anew by it.
        Ok((!matches!(open.object, Object::File { .. } | Object::Directory { .. })).then_some(open))
    }

    fn open_own(&mut self, tid: Tid, path: &[u8], flags: u32, mode: u32) -> Result<Rc<Open>> {
        let how = How {
            create: flags & O_CREAT != 0,
            exclusive: flags & O_EXCL != 0,
            truncate: flags & O_TRUNC != 0 && flags & O_ACCMODE != O_RDONLY,
        };
        let permissions = mode & 0o7777 & !self.process(tid)?.umask;
        let root = self.store.root;
        let inode = self.store.volume.open(root, path, how, permissions as u16)?;
        if how.truncate {
            self.store.truncate(inode, 0)?;
        }
        let kept = flags & !(O_CREAT | O_EXCL | O_TRUNC | O_DIRECTORY);
        Ok(Open::new(Object::File { inode, path: plain(path) }, kept))
    }

    fn open_special(&mut self, tid: Tid, special: Special, path: &[u8], flags: u32) -> Result<Rc<Open>> {
        let inode = special.inode();
        let path = plain(path);
        let object = match special {
            Special::Device(Device::Tty) if !self.process(tid)?.has_terminal => return Err(ENXIO),
            Special::Device(Device::Tty | Device::Console) => Object::Terminal { inode },
            Special::Device(_) => Object::Device { inode, path },
            _ => {
                let text = self.proc_text(special)?;
                Object::Text { inode, path, text }
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
        let path = self.path_at(tid, directory, path)?;
        let open = self.open_path(tid, &path, flags, mode as u32)?;
        number(self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0))
    }

    pub(crate) fn sys_getcwd(&mut self, tid: Tid, [address, len, ..]: [u64; 6]) -> Answer {
        let mut path = self.process(tid)?.directory.clone();
        if path.is_empty() {
            path.push(b'/');
        }
        path.push(0);
        if (path.len() as u64) > len {
            return Err(ERANGE);
        }
        self.write(tid, address, &path)?;
        Ok(Outcome::Value(path.len() as u64))
    }

    pub(crate) fn sys_chdir(&mut self, tid: Tid, [path, ..]: [u64; 6]) -> Answer {
        let path = self.path_at(tid, HERE, path)?;
        if self.look(&path, Last::Follow)?.kind != Kind::Directory {
            return Err(ENOTDIR);
        }
        let path = self.canonical(&path)?;
        self.process(tid)?.directory = path;
        DONE
    }

    pub(crate) fn sys_fchdir(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        let Object::Directory { path, .. } = &open.object else { return Err(ENOTDIR) };
        self.process(tid)?.directory.clone_from(path);
        DONE
    }

    /// A process that is looked at.
    pub fn other(&self, pid: Tid) -> Result<&crate::process::Process> {
        self.processes.get(&pid).ok_or(ESRCH)
    }
}

/// Path of names, from the root on. That of the root is empty.
fn joined(names: &[Vec<u8>]) -> Vec<u8> {
    names.iter().flat_map(|name| [b"/", name.as_slice()].concat()).collect()
}

/// A path without what changes nothing.
pub fn plain(path: &[u8]) -> Vec<u8> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for name in names(path) {
        if name == b".." {
            found.pop();
        } else {
            found.push(name.to_vec());
        }
    }
    if found.is_empty() { b"/".to_vec() } else { joined(&found) }
}

/// Flags of a call, if it has no others than these.
pub fn checked(flags: u64, allowed: u32) -> Result<u32> {
    let flags = u32::try_from(flags).map_err(|_| EINVAL)?;
    if flags & !allowed != 0 { Err(EINVAL) } else { Ok(flags) }
}
