//! Pipes that have names: made, opened as Linux opens them, and closed.
//!
//! The name is a file with a [mark](crate::node), and the pipe is there while somebody has it open. A call that opens one end and waits for the other has its end
//! already, so that two of them find each other; a signal closes it again. A pipe without a name that is opened once more, by way of a descriptor, is one of these, too.

use super::{HERE, number};
use crate::errno::{EEXIST, EINVAL, ENFILE, ENXIO, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::node::Node;
use crate::open::{Object, Open, PipeEnds, PipeName};
use crate::pipe::{End, Pipe, ready};
use crate::process::Event;
use crate::system::{Answer, Outcome, System};
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{
    O_ACCMODE, O_CLOEXEC, O_CREAT, O_EXCL, O_NONBLOCK, O_PATH, O_RDONLY, O_TRUNC, O_WRONLY, S_IFBLK, S_IFCHR,
    S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK,
};
use vfs::path::Last;
use vfs::{Attributes, FileSystem, How, Inode};

/// A pipe that has a name, or was opened by way of a descriptor, as it was opened.
#[derive(Debug)]
pub struct Fifo {
    /// The pipe.
    pub ends: Rc<PipeEnds>,
    /// Whether it is a reader.
    pub reads: bool,
    /// Whether it is a writer.
    pub writes: bool,
    /// Number of writers that there had been when a reader came that found none: it hears of their end when there was another.
    before: Option<u64>,
    /// The end that has to be opened once more than so often before the call is done.
    waits_for: Option<(End, u64)>,
}

impl Fifo {
    /// Path by which the pipe was opened first; empty if it has no name.
    pub fn path(&self) -> &[u8] {
        self.ends.name.as_ref().map_or(&[], |name| name.path.as_slice())
    }

    /// The file that is its name.
    pub fn inode(&self) -> Option<Inode> {
        self.ends.name.as_ref().map(|name| name.inode)
    }

    /// Readiness: bits of [`ready`].
    pub fn poll(&self) -> u16 {
        let pipe = self.ends.pipe.borrow();
        let mut bits = if self.writes { pipe.poll(End::Write) } else { 0 };
        if self.reads {
            bits |= pipe.poll(End::Read);
            if self.before == Some(pipe.opened(End::Write)) {
                bits &= !ready::HUNG_UP;
            }
        }
        bits
    }

    /// Ends that it has open.
    fn ends(&self) -> impl Iterator<Item = End> + use<> {
        [(self.reads, End::Read), (self.writes, End::Write)]
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, end)| end)
    }
}

/// Pipes that have names.
#[derive(Debug, Default)]
pub struct Fifos {
    /// Those that are open, by the numbers of the files that are their names.
    places: BTreeMap<u64, Weak<PipeEnds>>,
    /// Ends that threads have opened, and that wait for the other end; with the flags of the call.
    opening: BTreeMap<Tid, (Rc<Open>, u32)>,
}

#[cfg(test)]
impl Fifos {
    /// Whether nobody has one open.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.opening.is_empty()
    }

    /// Ends that wait for other ends.
    pub fn opening(&self) -> impl Iterator<Item = &Rc<Open>> {
        self.opening.values().map(|(open, _)| open)
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_mknod(&mut self, tid: Tid, [path, mode, device, ..]: [u64; 6]) -> Answer {
        self.sys_mknodat(tid, [HERE, path, mode, device, 0, 0])
    }

    pub(crate) fn sys_mknodat(&mut self, tid: Tid, [directory, path, mode, ..]: [u64; 6]) -> Answer {
        let mode = mode as u32;
        let node = match mode & S_IFMT {
            0 | S_IFREG | S_IFCHR | S_IFBLK => None,
            S_IFIFO => Some(Node::Pipe),
            S_IFSOCK => Some(Node::Socket),
            S_IFDIR => return Err(EPERM),
            _ => return Err(EINVAL),
        };
        let path = self.path_at(tid, directory, path)?;
        self.may_make(tid, &path)?;
        if self.look(&path, Last::Name).is_ok() {
            return Err(EEXIST);
        }
        if matches!(mode & S_IFMT, S_IFCHR | S_IFBLK) {
            return Err(EPERM);
        }
        let permissions = (mode & 0o7777 & !self.process(tid)?.umask()) as u16;
        let root = self.store.root;
        let how = How { create: true, exclusive: true, truncate: false };
        let inode = match node {
            Some(node) => self.store.make_node(&path, node, permissions)?,
            None => self.store.volume.open(root, &path, how, permissions)?,
        };
        let owned = match self.new_owner(tid) {
            Ok(Some(changes)) => self.store.volume.change(inode, &changes).map_err(Into::into),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let _ = self.store.volume.close(inode);
        owned.map(|()| Outcome::Value(0))
    }

    /// Opens a pipe at the name that was found. The end is open then, also if the call has to [wait](System::wait_for_other_end).
    pub(super) fn open_fifo(&mut self, found: &Attributes, path: &[u8], flags: u32) -> Result<Rc<Open>> {
        let (reads, writes) = match flags & O_ACCMODE {
            O_RDONLY => (true, false),
            O_WRONLY => (false, true),
            _ => (true, true),
        };
        let known = self.kept.fifos.places.get(&found.inode.0).and_then(Weak::upgrade);
        let has_reader = known.as_ref().is_some_and(|ends| ends.pipe.borrow().ends().0 > 0);
        let has_no_time = flags & O_NONBLOCK != 0;
        if writes && !reads && has_no_time && !has_reader {
            return Err(ENXIO);
        }
        let ends = match known {
            Some(ends) => ends,
            None => self.new_fifo(found, path)?,
        };
        let pipe = ends.pipe.borrow();
        let [readers, writers] = [End::Read, End::Write].map(|end| pipe.opened(end));
        let (before, waits_for) = match pipe.ends() {
            (_, 0) if reads && !writes && has_no_time => (Some(writers), None),
            (_, 0) if reads && !writes => (None, Some((End::Write, writers))),
            (0, _) if writes && !reads => (None, Some((End::Read, readers))),
            _ => (None, None),
        };
        drop(pipe);
        let fifo = Fifo { ends, reads, writes, before, waits_for };
        fifo.ends().for_each(|end| fifo.ends.pipe.borrow_mut().open(end));
        self.happened(fifo.ends.number, u32::MAX);
        Ok(Open::new(Object::Fifo(fifo), flags & !(O_CREAT | O_EXCL | O_TRUNC)))
    }

    /// Opens a pipe without a name once more. Its other end need not be open; a place has none of its ends.
    pub(super) fn open_nameless_pipe(&mut self, ends: &Rc<PipeEnds>, flags: u32) -> Rc<Open> {
        let is_place = flags & O_PATH != 0;
        let reads = !is_place && flags & O_ACCMODE != O_WRONLY;
        let writes = !is_place && flags & O_ACCMODE != O_RDONLY;
        let fifo = Fifo { ends: ends.clone(), reads, writes, before: None, waits_for: None };
        fifo.ends().for_each(|end| ends.pipe.borrow_mut().open(end));
        self.happened(ends.number, u32::MAX);
        Open::new(Object::Fifo(fifo), flags & !(O_CREAT | O_EXCL | O_TRUNC))
    }

    fn new_fifo(&mut self, found: &Attributes, path: &[u8]) -> Result<Rc<PipeEnds>> {
        let (inode, owner) = (found.inode, (found.owner, found.group));
        let pipe = RefCell::new(Pipe::within(&self.budget)?);
        let path = super::paths::plain(path);
        let share = self.budget.take(path.len()).ok_or(ENFILE)?;
        self.store.volume.opened(inode)?;
        let name = Some(PipeName { inode, path, share });
        let ends = Rc::new(PipeEnds { number: self.ring(), pipe, name, owner });
        self.kept.fifos.places.insert(inode.0, Rc::downgrade(&ends));
        Ok(ends)
    }

    /// Lets a call wait that has opened an end of a pipe, if there has to be another end first.
    pub(super) fn wait_for_other_end(&mut self, tid: Tid, open: &Rc<Open>, flags: u32) -> Option<Answer> {
        let Object::Fifo(Fifo { waits_for: Some(_), .. }) = &open.object else { return None };
        self.kept.fifos.opening.insert(tid, (open.clone(), flags));
        self.go_on_opening(tid)
    }

    /// Goes on with a call that has opened an end of a pipe. None: there is no such call.
    pub(super) fn go_on_opening(&mut self, tid: Tid) -> Option<Answer> {
        let (open, flags) = self.kept.fifos.opening.get(&tid)?;
        let Object::Fifo(Fifo { ends, waits_for: Some((end, count)), .. }) = &open.object else {
            return None;
        };
        if ends.pipe.borrow().opened(*end) == *count {
            return Some(Ok(Outcome::Wait(Vec::from([Event::Ring(ends.number)]), None)));
        }
        let closes = flags & O_CLOEXEC != 0;
        let (open, _) = self.kept.fifos.opening.remove(&tid)?;
        Some(number(self.add_descriptor(tid, open, closes, 0)))
    }

    /// A thread opens no pipe any more: the end that waits for another one is closed.
    pub(crate) fn give_up_opening(&mut self, tid: Tid) {
        if let Some((open, _)) = self.kept.fifos.opening.remove(&tid) {
            self.close(open);
        }
    }

    /// An end is closed. With the last one the pipe is over, with all that is in it.
    pub(crate) fn close_fifo(&mut self, fifo: &Fifo) {
        let mut pipe = fifo.ends.pipe.borrow_mut();
        for end in fifo.ends() {
            pipe.close(end);
        }
        let is_over = pipe.ends() == (0, 0);
        drop(pipe);
        if let Some(inode) = fifo.inode().filter(|_| is_over) {
            self.kept.fifos.places.remove(&inode.0);
            let _ = self.store.volume.close(inode);
        }
        self.happened(fifo.ends.number, u32::MAX);
    }
}

#[cfg(test)]
mod tests;
