//! All files that a process sees: those of a file system, and in its root directory `/dev`, `/proc` and `/sys`, whatever the file system has there.

use crate::special::{Device, Link, OfProcess, Special};
use crate::tree::SYSTEM;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use vfs::{Attributes, Before, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};

/// Names in `/proc` that depend on processes.
#[derive(Default, Debug)]
pub struct View {
    /// The process that looks.
    pub own: u32,
    /// Its thread that looks.
    pub thread: u32,
    /// All processes.
    pub processes: BTreeMap<u32, Paths>,
    /// The process whose descriptors were looked at last: the one of which they are in [`Paths`].
    shown: u32,
    /// Pseudo-terminals with names: owner and group of each.
    pub terminals: BTreeMap<u32, (u32, u32)>,
    /// Code that processes call in place of system calls: pages that are mapped where a program begins, if there are some.
    pub vdso: Rc<[u8]>,
}

impl View {
    /// Paths of a process, to be made anew. Descriptors of the one before are forgotten: those of all would be more than this program has memory for.
    pub fn show(&mut self, pid: u32) -> Option<&mut Paths> {
        let before = core::mem::replace(&mut self.shown, pid);
        if before != pid
            && let Some(paths) = self.processes.get_mut(&before)
        {
            paths.descriptors = BTreeMap::new();
        }
        self.processes.get_mut(&pid)
    }

    /// Whether a directory has a number in it.
    fn has(&self, directory: Special, number: u32) -> bool {
        match directory {
            Special::Terminals => self.terminals.contains_key(&number),
            Special::Tasks(process) => {
                self.processes.get(&process).is_some_and(|paths| paths.threads.contains(&number))
            }
            _ => self.processes.contains_key(&number),
        }
    }
}

/// Paths of a process.
#[derive(Clone, Default, Debug)]
pub struct Paths {
    /// Its program.
    pub program: Vec<u8>,
    /// Its working directory.
    pub directory: Vec<u8>,
    /// Its root directory.
    pub root: Vec<u8>,
    /// Its threads.
    pub threads: Vec<u32>,
    /// Objects behind its descriptors.
    pub descriptors: BTreeMap<u32, Vec<u8>>,
}

/// A file system with the names that Linux adds.
#[derive(Debug)]
pub struct Namespace<F> {
    files: F,
    view: Rc<RefCell<View>>,
}

/// Names in the root directory that are no files of the file system.
const ADDED: [(&[u8], Special); 3] =
    [(b"dev", Special::Devices), (b"proc", Special::Processes), (b"sys", Special::Tree(SYSTEM))];

/// Cursor in the root directory from which the file system's own entries begin; in front are those of [`ADDED`].
const FIRST_OWN: u64 = ADDED.len() as u64;

impl<F: FileSystem> Namespace<F> {
    /// A file system, and what is known of processes.
    pub fn new(files: F, view: Rc<RefCell<View>>) -> Namespace<F> {
        Namespace { files, view }
    }

    fn target(&self, special: Special) -> Result<Vec<u8>> {
        let view = self.view.borrow();
        let of = |process: u32| view.processes.get(&process).ok_or(Error::NotFound);
        let target = match special {
            Special::Link(Link::Own) => format!("{}", view.own).into_bytes(),
            Special::Link(Link::Thread) => format!("{}/task/{}", view.own, view.thread).into_bytes(),
            Special::Link(Link::Mounts) => b"self/mounts".to_vec(),
            Special::Link(Link::Net) => b"self/net".to_vec(),
            Special::Link(Link::Descriptors) => b"/proc/self/fd".to_vec(),
            Special::Link(Link::Shared) => b"/tmp".to_vec(),
            Special::OfProcess(process, OfProcess::Exe) => of(process)?.program.clone(),
            Special::OfProcess(process, OfProcess::Cwd) => of(process)?.directory.clone(),
            // Roots of processes are unknown until somebody looks at their links.
            Special::OfProcess(process, OfProcess::Root) if of(process)?.root.is_empty() => b"/".to_vec(),
            Special::OfProcess(process, OfProcess::Root) => of(process)?.root.clone(),
            Special::Descriptor(process, number) => {
                of(process)?.descriptors.get(&number).cloned().ok_or(Error::NotFound)?
            }
            _ => return Err(Error::Invalid),
        };
        Ok(target)
    }

    fn special_attributes(&self, special: Special) -> Attributes {
        let (kind, permissions) = match special {
            _ if special.is_directory() => (Kind::Directory, 0o555),
            _ if special.is_link() => (Kind::Symlink, 0o777),
            Special::Device(Device::Console) | Special::Terminal(_) => (Kind::Special, 0o620),
            Special::Device(_) => (Kind::Special, 0o666),
            _ => (Kind::File, 0o444),
        };
        let links = if kind == Kind::Directory { 2 } else { 1 };
        let (owner, group) = match special {
            Special::Terminal(number) => {
                self.view.borrow().terminals.get(&number).copied().unwrap_or_default()
            }
            _ => (0, 0),
        };
        let len = if special == Special::Vdso { self.view.borrow().vdso.len() as u64 } else { 0 };
        let allocated = 0;
        let (accessed, modified, changed) = (0, 0, 0);
        let inode = special.inode();
        Attributes {
            inode,
            kind,
            permissions,
            links,
            owner,
            group,
            len,
            allocated,
            accessed,
            modified,
            changed,
        }
    }

    fn special_entries(&self, special: Special, cursor: u64, count_max: usize) -> Vec<Entry> {
        let view = self.view.borrow();
        let mut names: Vec<Vec<u8>> =
            special.names().into_iter().map(|name| name.as_bytes().to_vec()).collect();
        match special {
            Special::Processes => {
                names.extend(view.processes.keys().map(|pid| format!("{pid}").into_bytes()))
            }
            Special::Terminals => {
                names.extend(view.terminals.keys().map(|number| format!("{number}").into_bytes()))
            }
            Special::Tasks(process) => {
                let of = view.processes.get(&process);
                let threads = of.into_iter().flat_map(|of| &of.threads);
                names.extend(threads.map(|thread| format!("{thread}").into_bytes()));
            }
            _ => {}
        }
        // A cursor is the number of the next descriptor: programs that close those which they have found get the others all the same.
        let first = u32::try_from(cursor).unwrap_or(u32::MAX);
        let of = match special {
            Special::Descriptors(process) => view.processes.get(&process),
            _ => None,
        };
        let numbers = of.into_iter().flat_map(|of| of.descriptors.range(first..));
        let descriptors =
            numbers.map(|(number, _)| (format!("{number}").into_bytes(), u64::from(*number) + 1));
        let found = names.into_iter().zip(1..).skip(cursor as usize).chain(descriptors).take(count_max);
        let entry = |(name, next): (Vec<u8>, u64)| {
            let found = special.lookup(&name, view.own, |number| view.has(special, number))?;
            let kind = self.special_attributes(found).kind;
            Some(Entry { name, inode: found.inode(), kind, next })
        };
        found.filter_map(entry).collect()
    }

    fn is_root(&self, inode: Inode) -> bool {
        inode == self.files.root()
    }
}

/// A change of something special.
fn refuse<T>(inode: Inode) -> Option<Result<T>> {
    Special::of(inode).map(|_| Err(Error::Unsupported))
}

impl<F: FileSystem> FileSystem for Namespace<F> {
    fn root(&self) -> Inode {
        self.files.root()
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        match Special::of(inode) {
            Some(special) => Ok(self.special_attributes(special)),
            None => self.files.attributes(inode),
        }
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        match Special::of(file) {
            Some(special) => Ok(self.special_attributes(special).len),
            None => self.files.len(file),
        }
    }

    fn kind_of(&mut self, inode: Inode) -> Result<Kind> {
        match Special::of(inode) {
            Some(special) => Ok(self.special_attributes(special).kind),
            None => self.files.kind_of(inode),
        }
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        // Times and modes of devices are nobody's concern.
        if Special::of(inode).is_some() { Ok(()) } else { self.files.change(inode, changes) }
    }

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        refuse(inode).unwrap_or_else(|| self.files.xattr(inode, name))
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        if Special::of(inode).is_some() { Ok(Vec::new()) } else { self.files.xattrs(inode) }
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        refuse(inode).unwrap_or_else(|| self.files.set_xattr(inode, name, value, before))
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        refuse(inode).unwrap_or_else(|| self.files.remove_xattr(inode, name))
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        if let Some(special) = Special::of(directory) {
            let view = self.view.borrow();
            let found = special.lookup(name.bytes(), view.own, |number| view.has(special, number));
            return found.map(Special::inode).ok_or(Error::NotFound);
        }
        match ADDED.iter().find(|(added, _)| *added == name.bytes()) {
            Some((_, special)) if self.is_root(directory) => Ok(special.inode()),
            _ => self.files.lookup(directory, name),
        }
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        if let Some(special) = Special::of(directory) {
            return Ok(self.special_entries(special, cursor, count_max));
        }
        if !self.is_root(directory) {
            return self.files.readdir(directory, cursor, count_max);
        }
        let added =
            ADDED.iter().zip(1..).skip(cursor.min(FIRST_OWN) as usize).map(|(&(name, special), next)| {
                Entry { name: name.to_vec(), inode: special.inode(), kind: Kind::Directory, next }
            });
        let mut entries: Vec<Entry> = added.take(count_max).collect();
        let mut own = cursor.saturating_sub(FIRST_OWN);
        while entries.len() < count_max {
            let more = self.files.readdir(directory, own, count_max - entries.len())?;
            let Some(last) = more.last() else { break };
            own = last.next;
            let is_hidden = |entry: &Entry| ADDED.iter().any(|(name, _)| *name == entry.name);
            let moved = |entry: Entry| Entry { next: entry.next + FIRST_OWN, ..entry };
            entries.extend(more.into_iter().filter(|entry| !is_hidden(entry)).map(moved));
        }
        Ok(entries)
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        refuse(directory).unwrap_or_else(|| self.files.create(directory, name, new, permissions))
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        refuse(inode).or(refuse(directory)).unwrap_or_else(|| self.files.link(inode, directory, name))
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        refuse(directory).unwrap_or_else(|| self.files.unlink(directory, name))
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        let is_added = self.is_root(directory) && ADDED.iter().any(|(added, _)| *added == name.bytes());
        if is_added {
            return Err(Error::Busy);
        }
        refuse(directory).unwrap_or_else(|| self.files.rmdir(directory, name))
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        let is_added = |directory, name: Name| {
            self.is_root(directory) && ADDED.iter().any(|(added, _)| *added == name.bytes())
        };
        if is_added(from, name) || is_added(to, new_name) {
            return Err(Error::Busy);
        }
        refuse(from).or(refuse(to)).unwrap_or_else(|| self.files.rename(from, name, to, new_name))
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        if Special::of(inode).is_some() { Ok(()) } else { self.files.forget(inode) }
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match Special::of(inode) {
            Some(special) => self.target(special),
            None => self.files.readlink(inode),
        }
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        if Special::of(inode) == Some(Special::Vdso) {
            let bytes = self.view.borrow().vdso.clone();
            let from =
                usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
            let count = from.len().min(to.len());
            to[..count].copy_from_slice(&from[..count]);
            return Ok(count);
        }
        refuse(inode).unwrap_or_else(|| self.files.read(inode, offset, to))
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        refuse(inode).unwrap_or_else(|| self.files.write(inode, offset, from))
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        refuse(inode).unwrap_or_else(|| self.files.truncate(inode, len))
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        if Special::of(inode).is_some() { Ok(()) } else { self.files.sync(inode) }
    }

    fn space(&mut self) -> Result<Space> {
        self.files.space()
    }

    fn is_read_only(&self) -> bool {
        self.files.is_read_only()
    }

    #[inline]
    fn begin(&mut self) {
        self.files.begin();
    }

    #[inline]
    fn others(&mut self) -> Option<u64> {
        self.files.others()
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        if Special::of(inode).is_some() { Ok(()) } else { self.files.hold(inode) }
    }

    fn release(&mut self, inode: Inode) {
        if Special::of(inode).is_none() {
            self.files.release(inode);
        }
    }
}
