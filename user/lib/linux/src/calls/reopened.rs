//! Objects behind descriptors, opened once more by paths such as `/proc/self/fd/3` or `/dev/stdin`: each time with a position and flags of its own, as on Linux.
//!
//! Terminals, queues and symbolic links are not opened anew: their open file gets one more descriptor.

use super::fifo::Fifo;
use super::paths::with_share;
use super::permissions::wanted;
use crate::errno::{EACCES, EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR, ENXIO, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::node::Node;
use crate::open::{Object, Open, PipeEnds};
use crate::special::Special;
use crate::system::System;
use alloc::rc::Rc;
use core::cell::RefCell;
use linux_raw_sys::general::{
    IN_ISDIR, IN_MODIFY, IN_OPEN, O_ACCMODE, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDONLY,
    O_TRUNC,
};
use vfs::path::Last;
use vfs::{FileSystem, Inode};

/// Whether flags ask for the right to write.
fn writes(flags: u32) -> bool {
    flags & O_ACCMODE != O_RDONLY && flags & O_PATH == 0
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The object behind a path of a descriptor, such as `/proc/self/fd/3` or `/dev/stdin`.
    pub(super) fn descriptor_at(&mut self, tid: Tid, path: &[u8]) -> Result<Option<Rc<Open>>> {
        if !path.starts_with(b"/proc") && !path.starts_with(b"/dev") {
            return Ok(None);
        }
        let Ok(found) = self.look(path, Last::Stay) else { return Ok(None) };
        let Some(Special::Descriptor(pid, number)) = Special::of(found.inode) else { return Ok(None) };
        self.may_inspect(tid, pid)?;
        let process = self.processes.get(&pid).ok_or(ENOENT)?;
        let open = process.descriptors.get(number).map_err(|_| ENOENT)?.open.clone();
        if matches!(open.object, Object::Socket(_) | Object::Inet(_) | Object::Netlink(_)) {
            return Err(ENXIO);
        }
        Ok(Some(open))
    }

    /// Opens what is behind a path of a descriptor, if it is one. A place may be the link in `/proc` itself.
    pub(super) fn open_by_descriptor(
        &mut self,
        tid: Tid,
        path: &[u8],
        flags: u32,
    ) -> Result<Option<Rc<Open>>> {
        let is_place = flags & O_PATH != 0;
        if is_place && flags & O_NOFOLLOW != 0 {
            return Ok(None);
        }
        let Some(same) = self.descriptor_at(tid, path)? else { return Ok(None) };
        let is_link = matches!(same.object, Object::Link(_));
        if flags & O_CREAT != 0 && flags & O_EXCL != 0 {
            return Err(EEXIST);
        }
        if flags & O_NOFOLLOW != 0 || is_link && !is_place {
            return Err(ELOOP);
        }
        self.open_again(tid, &same, flags).map(Some)
    }

    /// Opens once more what is open, whatever names it has by now.
    fn open_again(&mut self, tid: Tid, open: &Rc<Open>, flags: u32) -> Result<Rc<Open>> {
        let is_place = flags & O_PATH != 0;
        let is_directory = matches!(open.object, Object::Directory { .. });
        if !is_directory && flags & O_DIRECTORY != 0 {
            return Err(ENOTDIR);
        }
        match &open.object {
            Object::File { inode, .. } | Object::Directory { inode, .. } => {
                self.open_file_again(tid, open, *inode, flags)
            }
            Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                self.open_pipe_again(tid, ends, flags)
            }
            Object::Memory(file) => self.open_memory_again(file, flags),
            Object::Device { inode, path } | Object::Text { inode, path } => {
                let found = self.store.attributes(*inode)?;
                self.may_open(tid, &found, flags)?;
                self.open_special(tid, Special::of(*inode).ok_or(ENXIO)?, path, flags)
            }
            // These have no file that could be opened.
            Object::Counter { .. } | Object::Epoll(_) | Object::Timer(_) if !is_place => Err(ENXIO),
            Object::Signals(_) | Object::Inotify(_) | Object::Process(_) if !is_place => Err(ENXIO),
            _ => Ok(open.clone()),
        }
    }

    /// Opens a pipe once more. One without a name waits for nobody, and is its maker's alone.
    fn open_pipe_again(&mut self, tid: Tid, ends: &Rc<PipeEnds>, flags: u32) -> Result<Rc<Open>> {
        let is_place = flags & O_PATH != 0;
        let Some(name) = &ends.name else {
            let may = is_place || self.identity(tid)?.may(0o600, ends.owner, wanted(flags));
            return if may { Ok(self.open_nameless_pipe(ends, flags)) } else { Err(EACCES) };
        };
        if is_place {
            self.store.volume.opened(name.inode)?;
            let (inode, path) = (name.inode, name.path.clone());
            return Ok(Open::new(Object::File { inode, path }, flags));
        }
        let found = self.store.attributes(name.inode)?;
        self.may_open(tid, &found, flags)?;
        self.open_fifo(&found, &name.path, flags)
    }

    /// Opens a file or directory once more.
    fn open_file_again(&mut self, tid: Tid, open: &Open, inode: Inode, flags: u32) -> Result<Rc<Open>> {
        let (path, is_directory) = match &open.object {
            Object::File { path, .. } => (path.clone(), false),
            Object::Directory { path, .. } => (path.borrow().clone(), true),
            _ => return Err(ENXIO),
        };
        if is_directory && (writes(flags) || flags & O_CREAT != 0) {
            return Err(EISDIR);
        }
        let found = self.store.attributes(inode)?;
        self.may_open(tid, &found, flags)?;
        let node = if flags & O_PATH == 0 { self.store.node(&found) } else { None };
        match node {
            Some(Node::Socket) => return Err(ENXIO),
            Some(Node::Pipe) => return self.open_fifo(&found, &path, flags),
            None => {}
        }
        if writes(flags) || flags & (O_TRUNC | O_PATH) == O_TRUNC {
            self.check_not_running(inode)?;
        }
        let share = self.share_of_open(&path)?;
        if flags & O_TRUNC != 0 && writes(flags) {
            self.unmark(inode)?;
            self.store.truncate(inode, 0)?;
            self.noticed(inode, IN_MODIFY);
        }
        self.store.volume.opened(inode)?;
        if flags & O_PATH == 0 {
            self.noticed(inode, if is_directory { IN_OPEN | IN_ISDIR } else { IN_OPEN });
        }
        let (object, flags) = if is_directory {
            (Object::Directory { inode, path: RefCell::new(path) }, flags)
        } else {
            (Object::File { inode, path }, flags & !(O_CREAT | O_EXCL | O_TRUNC))
        };
        Ok(with_share(Open::new(object, flags), share))
    }
}

#[cfg(test)]
mod tests;
