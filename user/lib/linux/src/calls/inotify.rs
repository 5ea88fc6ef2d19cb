//! Calls that watch files: `inotify`.
//!
//! The volume tells of names and attributes, whoever's call changes them. What is opened, read, written and closed is told here, since a file gets what was
//! written to it later. Only calls of the sandbox are heard of.

use super::files::Taken;
use super::{HERE, number};
use crate::epoll::Source;
use crate::errno::{EINVAL, EMFILE, ENOSPC, ENOTDIR, EOPNOTSUPP, Result};
use crate::frames::Bytes;
use crate::inotify::{Descriptor, Event, Inotify};
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::socket::READABLE;
use crate::system::{Answer, DONE, System};
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    IN_ALL_EVENTS, IN_ATTRIB, IN_CLOEXEC, IN_CLOSE_NOWRITE, IN_CLOSE_WRITE, IN_CREATE, IN_DELETE,
    IN_DELETE_SELF, IN_DONT_FOLLOW, IN_EXCL_UNLINK, IN_ISDIR, IN_MASK_ADD, IN_MASK_CREATE, IN_MOVE_SELF,
    IN_MOVED_FROM, IN_MOVED_TO, IN_NONBLOCK, IN_ONESHOT, IN_ONLYDIR, O_PATH, O_RDONLY, R_OK,
};
use vfs::path::Last;
use vfs::watch::Change;
use vfs::{FileSystem, Inode, Kind};

/// Lists of a sandbox, at most.
const LISTS_MAX: usize = 128;

/// Watches of all lists, at most.
const WATCHES_MAX: usize = 4096;

/// Bits that a program may want.
const BITS: u32 =
    IN_ALL_EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_CREATE | IN_MASK_ADD | IN_ONESHOT;

/// Lists of watches.
#[derive(Debug, Default)]
pub struct Notices {
    /// The list of each watch of the volume, and the number of the watch there.
    watches: BTreeMap<u64, (Weak<Inotify>, Descriptor)>,
    lists: usize,
    /// Whether the names of which the volume tells next are those of directories.
    is_about_directory: bool,
}

fn list_of(open: &Open) -> Result<&Rc<Inotify>> {
    match &open.object {
        Object::Inotify(list) => Ok(list),
        _ => Err(EINVAL),
    }
}

/// Bits of a change that a volume tells of.
const fn bits_of(change: Change) -> u32 {
    match change {
        Change::Made => IN_CREATE,
        Change::Removed => IN_DELETE,
        Change::MovedFrom => IN_MOVED_FROM,
        Change::MovedTo => IN_MOVED_TO,
        Change::Attributes => IN_ATTRIB,
        Change::Moved => IN_MOVE_SELF,
        Change::Gone => IN_DELETE_SELF,
        // It is told of at once, when a call writes.
        Change::Contents | Change::Lost => 0,
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_inotify_init(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        self.sys_inotify_init1(tid, [0; 6])
    }

    pub(crate) fn sys_inotify_init1(&mut self, tid: Tid, [flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if flags & !(IN_CLOEXEC | IN_NONBLOCK) != 0 {
            return Err(EINVAL);
        }
        if self.kept.notices.lists >= LISTS_MAX {
            return Err(EMFILE);
        }
        let ring = self.ring();
        let list = Inotify::new(ring, &self.budget);
        self.kept.notices.lists += 1;
        let open = Open::new(Object::Inotify(list), O_RDONLY | flags & IN_NONBLOCK);
        number(self.add_descriptor(tid, open, flags & IN_CLOEXEC != 0, 0))
    }

    pub(crate) fn sys_inotify_add_watch(&mut self, tid: Tid, [fd, path, mask, ..]: [u64; 6]) -> Answer {
        let mask = mask as u32;
        let both = IN_MASK_ADD | IN_MASK_CREATE;
        if mask & !BITS != 0 || mask & IN_ALL_EVENTS == 0 || mask & both == both {
            return Err(EINVAL);
        }
        let open = self.open_file(tid, fd)?;
        let list = list_of(&open)?;
        let path = self.path_at(tid, HERE, path)?;
        let last = if mask & IN_DONT_FOLLOW != 0 { Last::Stay } else { Last::Follow };
        let path = self.reach(tid, &path, last)?;
        let found = self.look(&path, last)?;
        if mask & IN_ONLYDIR != 0 && found.kind != Kind::Directory {
            return Err(ENOTDIR);
        }
        if found.kind == Kind::Symlink {
            return Err(EOPNOTSUPP);
        }
        self.may(tid, &found, R_OK)?;
        if let Some(known) = list.change(found.inode.0, mask) {
            return number(known.map(|known| u64::from(known.cast_unsigned())));
        }
        if self.kept.notices.watches.len() >= WATCHES_MAX {
            return Err(ENOSPC);
        }
        let source = self.ring();
        let root = self.store.root;
        self.store.volume.watch(root, &path, source)?;
        self.store.volume.wait(source);
        let watch = match list.add(found.inode.0, mask, source) {
            Ok(watch) => watch,
            Err(error) => {
                self.store.volume.unwatch(source);
                return Err(error);
            }
        };
        self.kept.notices.watches.insert(source, (Rc::downgrade(list), watch));
        number(Ok(watch.cast_unsigned().into()))
    }

    pub(crate) fn sys_inotify_rm_watch(&mut self, tid: Tid, [fd, watch, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        let list = list_of(&open)?;
        let source = list.remove(watch as i32).ok_or(EINVAL)?;
        self.forget_source(source);
        self.happened(list.number, READABLE);
        DONE
    }

    fn forget_source(&mut self, source: Source) {
        self.kept.notices.watches.remove(&source);
        self.store.volume.unwatch(source);
    }

    /// A list is closed, with all of its watches.
    pub(crate) fn close_inotify(&mut self, list: &Inotify) {
        list.sources().into_iter().for_each(|source| self.forget_source(source));
        self.kept.notices.lists -= 1;
    }

    /// Reads events of a list.
    pub(super) fn take_notices(&mut self, list: &Inotify, to: &mut [u8]) -> Result<Taken> {
        Ok(match list.read(to)? {
            0 => Taken::Nothing(None),
            count => Taken::Bytes(count),
        })
    }

    /// Whether anything is watched.
    pub(super) fn has_watches(&self) -> bool {
        !self.kept.notices.watches.is_empty()
    }

    /// The call is about a directory: so are the names of which the volume tells until it is done.
    pub(super) fn is_about_directory(&mut self) {
        self.kept.notices.is_about_directory = true;
    }

    /// Tells lists of what the volume has told of since it was called last.
    pub(crate) fn look_at_files(&mut self) {
        if self.kept.notices.watches.is_empty() {
            return;
        }
        let is_directory = core::mem::take(&mut self.kept.notices.is_about_directory);
        let mut all = Vec::new();
        for source in self.store.volume.woken() {
            let events = self.store.volume.events(source, usize::MAX).unwrap_or_default();
            all.extend(events.into_iter().map(|event| (source, event)));
            self.store.volume.wait(source);
        }
        // First a directory hears of its entry, and then that itself.
        all.sort_by_key(|(_, event)| event.name.is_empty());
        for (source, event) in all {
            match event.change {
                Change::Lost => self.notice_loss(source),
                Change::Gone => {
                    self.notice(source, IN_ATTRIB, 0, Vec::new());
                    self.notice(source, IN_DELETE_SELF, 0, Vec::new());
                    self.end_watch(source);
                }
                Change::Moved => self.notice(source, IN_MOVE_SELF, 0, Vec::new()),
                change => {
                    let bits = bits_of(change);
                    let kind = if is_directory { IN_ISDIR } else { 0 };
                    self.notice(source, bits | kind, event.pair, event.name);
                }
            }
        }
    }

    fn notice(&mut self, source: Source, bits: u32, cookie: u32, name: Vec<u8>) {
        let Some((list, watch)) = self.kept.notices.watches.get(&source) else { return };
        let (Some(list), watch) = (list.upgrade(), *watch) else { return };
        let (is_new, is_over) = list.put(Event { watch, bits, cookie, name });
        if is_new {
            self.happened(list.number, READABLE);
        }
        if is_over {
            self.forget_source(source);
        }
    }

    fn notice_loss(&mut self, source: Source) {
        let list = self.kept.notices.watches.get(&source).and_then(|(list, _)| list.upgrade());
        if let Some(list) = list.filter(|list| list.lose()) {
            self.happened(list.number, READABLE);
        }
    }

    fn end_watch(&mut self, source: Source) {
        let Some((list, watch)) = self.kept.notices.watches.get(&source).cloned() else { return };
        if let Some(list) = list.upgrade() {
            list.remove(watch);
            self.happened(list.number, READABLE);
        }
        self.forget_source(source);
    }

    /// Something was done with a file or directory that is open.
    pub(super) fn noticed(&mut self, inode: Inode, bits: u32) {
        if self.kept.notices.watches.is_empty() {
            return;
        }
        self.look_at_files();
        for (source, name) in self.store.volume.watches_of(inode) {
            self.notice(source, bits, 0, name);
        }
    }

    /// A file or directory is closed.
    pub(crate) fn noticed_close(&mut self, open: &Open) {
        match &open.object {
            _ if open.has(O_PATH) => {}
            Object::Directory { inode, .. } => self.noticed(*inode, IN_CLOSE_NOWRITE | IN_ISDIR),
            Object::File { inode, .. } if open.is_writable() => self.noticed(*inode, IN_CLOSE_WRITE),
            Object::File { inode, .. } => self.noticed(*inode, IN_CLOSE_NOWRITE),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
