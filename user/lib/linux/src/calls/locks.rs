//! Locks of files: `flock`, and those of `fcntl`.

use super::done;
use crate::errno::{EAGAIN, EBADF, EDEADLK, EINVAL, EOVERFLOW, Result};
use crate::frames::Bytes;
use crate::locks::{Kind, LAST, Lock, Owner};
use crate::machine::{Machine, Tid};
use crate::open::{Descriptor, Object, Open};
use crate::process::Event;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    F_GETLK, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_RDLCK, F_SETLK, F_SETLKW, F_UNLCK, F_WRLCK, LOCK_EX,
    LOCK_NB, LOCK_SH, LOCK_UN, SEEK_CUR, SEEK_END, SEEK_SET,
};
use vfs::FileSystem;

/// Processes that wait for one another, of which a circle is looked for.
const CIRCLE_MAX: usize = 10;

/// Bytes of `struct flock`.
const LOCK_BYTES: usize = 32;

/// Number of a process, as `F_GETLK` tells it for a lock of an open file.
const NOBODY: u32 = u32::MAX;

/// Commands of `fcntl` about locks.
pub const COMMANDS: [u32; 6] = [F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW];

/// A `struct flock`.
struct Asked {
    kind: u32,
    whence: u32,
    start: i64,
    len: i64,
    pid: u32,
}

impl Asked {
    fn read(bytes: [u8; LOCK_BYTES]) -> Asked {
        let word = |at: usize| {
            bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        let head = word(0) as u32;
        let (kind, whence) = (head & 0xffff, head >> 16);
        Asked { kind, whence, start: word(8) as i64, len: word(16) as i64, pid: word(24) as u32 }
    }

    /// The first and the last byte; `base` is where the position counts from.
    fn range(&self, base: u64) -> Result<(u64, u64)> {
        let start =
            i64::try_from(base).ok().and_then(|base| base.checked_add(self.start)).ok_or(EOVERFLOW)?;
        let (first, last) = match self.len {
            0 => (start, i64::MAX),
            1.. => (start, start.checked_add(self.len - 1).ok_or(EOVERFLOW)?),
            _ => (start.checked_add(self.len).ok_or(EINVAL)?, start - 1),
        };
        let first = u64::try_from(first).map_err(|_| EINVAL)?;
        Ok((first, u64::try_from(last).map_err(|_| EINVAL)?))
    }
}

/// Inode of a file that can be locked.
fn inode_of(object: &Object) -> Option<u64> {
    match object {
        Object::File { inode, .. } | Object::Directory { inode, .. } => Some(inode.0),
        _ => None,
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A command of `fcntl` about locks.
    pub(super) fn lock_command(&mut self, tid: Tid, open: &Rc<Open>, command: u32, at: u64) -> Answer {
        let mut bytes = [0; LOCK_BYTES];
        self.read(tid, at, &mut bytes)?;
        let asked = Asked::read(bytes);
        let is_of_open = matches!(command, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
        let asks = matches!(command, F_GETLK | F_OFD_GETLK);
        let base = match asked.whence {
            SEEK_SET => 0,
            SEEK_CUR => open.offset.get(),
            SEEK_END => match &open.object {
                Object::File { inode, .. } => self.store.volume.len(*inode)?,
                _ => 0,
            },
            _ => return Err(EINVAL),
        };
        let (first, last) = asked.range(base)?;
        let is_known = matches!(asked.kind, F_RDLCK | F_WRLCK) || asked.kind == F_UNLCK && !asks;
        if !is_known || is_of_open && asked.pid != 0 {
            return Err(EINVAL);
        }
        let owner = if is_of_open { owner_of(open) } else { Owner::Process(self.pid(tid)?) };
        let wanted = Lock { owner, is_exclusive: asked.kind == F_WRLCK, first, last };
        let inode = inode_of(&open.object);
        if asks {
            let found = inode.and_then(|inode| self.locks.find(Kind::Bytes, inode, &wanted));
            return done(self.tell_lock(tid, at, found));
        }
        let may = match asked.kind {
            F_RDLCK => open.is_readable(),
            F_WRLCK => open.is_writable(),
            _ => true,
        };
        if !may {
            return Err(EBADF);
        }
        // Nobody else has what has no inode.
        let Some(inode) = inode else { return DONE };
        if asked.kind == F_UNLCK {
            if self.locks.remove(Kind::Bytes, inode, &wanted) {
                self.tell(Event::FileLock(inode));
            }
            return DONE;
        }
        let waits = matches!(command, F_SETLKW | F_OFD_SETLKW);
        self.take_lock(tid, Kind::Bytes, inode, wanted, waits)
    }

    fn tell_lock(&mut self, tid: Tid, at: u64, found: Option<Lock>) -> Result<()> {
        let Some(found) = found else {
            return self.write(tid, at, &(F_UNLCK as u16).to_le_bytes());
        };
        let kind = if found.is_exclusive { F_WRLCK } else { F_RDLCK };
        let len = if found.last == LAST { 0 } else { found.last - found.first + 1 };
        let pid = match found.owner {
            Owner::Process(pid) => pid,
            Owner::Open(_) => NOBODY,
        };
        // The kind, and positions that count from the beginning.
        self.write(tid, at, &kind.to_le_bytes())?;
        self.write_words(tid, at.wrapping_add(8), &[found.first, len])?;
        self.write(tid, at.wrapping_add(24), &pid.to_le_bytes())
    }

    fn take_lock(&mut self, tid: Tid, kind: Kind, inode: u64, wanted: Lock, waits: bool) -> Answer {
        self.waiting.remove(&tid);
        match self.locks.add(kind, inode, wanted) {
            Ok(()) => {
                // An exclusive lock may have become one that others can have as well.
                self.tell(Event::FileLock(inode));
                DONE
            }
            Err(EAGAIN) if waits => {
                if let (Owner::Process(own), Some(Lock { owner: Owner::Process(other), .. })) =
                    (wanted.owner, self.locks.find(kind, inode, &wanted))
                {
                    if self.is_circle(own, other) {
                        return Err(EDEADLK);
                    }
                    self.waiting.insert(tid, other);
                }
                Ok(Outcome::Wait(Vec::from([Event::FileLock(inode)]), None))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a process waits, perhaps by others between, for locks of the one that is to wait for it.
    fn is_circle(&self, own: Tid, mut other: Tid) -> bool {
        for _ in 0..CIRCLE_MAX {
            if other == own {
                return true;
            }
            let waits = |tid: &Tid| {
                let blocked = self.threads.get(tid)?.blocked.as_ref()?;
                let is_lock = blocked.on.iter().any(|on| matches!(on, Event::FileLock(_)));
                self.waiting.get(tid).filter(|_| is_lock).copied()
            };
            let Some(process) = self.processes.get(&other) else { return false };
            let Some(next) = process.threads.iter().find_map(waits) else { return false };
            other = next;
        }
        false
    }

    pub(crate) fn sys_flock(&mut self, tid: Tid, [fd, operation, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        let operation = operation as u32;
        let wanted = Lock {
            owner: owner_of(&open),
            is_exclusive: operation & !LOCK_NB == LOCK_EX,
            first: 0,
            last: LAST,
        };
        if !matches!(operation & !LOCK_NB, LOCK_SH | LOCK_EX | LOCK_UN) {
            return Err(EINVAL);
        }
        let Some(inode) = inode_of(&open.object) else { return DONE };
        // A lock that is to become another one is given back first, as in Linux.
        if self.locks.remove(Kind::File, inode, &wanted) {
            self.tell(Event::FileLock(inode));
        }
        if operation & !LOCK_NB == LOCK_UN {
            return DONE;
        }
        self.take_lock(tid, Kind::File, inode, wanted, operation & LOCK_NB == 0)
    }

    /// A process closes a descriptor: its locks of the file go, and it hears of no message in a queue.
    pub(super) fn close_descriptor(&mut self, tid: Tid, open: Rc<Open>) {
        if let (Some(inode), Ok(pid)) = (inode_of(&open.object), self.pid(tid)) {
            let all = Lock { owner: Owner::Process(pid), is_exclusive: false, first: 0, last: LAST };
            if self.locks.remove(Kind::Bytes, inode, &all) {
                self.tell(Event::FileLock(inode));
            }
        }
        if let (Object::Queue(queue), Ok(pid)) = (&open.object, self.pid(tid)) {
            self.forget_notice(queue, pid);
        }
        self.close(open);
    }

    /// A file is closed by a call that is not about descriptors, such as `execve`. Locks of processes need a descriptor.
    pub(crate) fn forget_unopened(&mut self, object: &Object) {
        let Some(inode) = inode_of(object).filter(|inode| self.locks.has_bytes(*inode)) else { return };
        let has_it = |(_, descriptor): (u32, &Descriptor)| inode_of(&descriptor.open.object) == Some(inode);
        let is_open = self.processes.values().any(|process| process.descriptors.iter().any(has_it));
        if !is_open && self.locks.forget(inode) {
            self.tell(Event::FileLock(inode));
        }
    }

    /// An owner is gone.
    pub(crate) fn forget_locks(&mut self, owner: Owner) {
        if self.locks.count() == 0 {
            return;
        }
        for inode in self.locks.remove_all(owner) {
            self.tell(Event::FileLock(inode));
        }
    }
}

/// The owner of locks of an open file.
pub fn owner_of(open: &Rc<Open>) -> Owner {
    Owner::Open(Rc::as_ptr(open) as usize)
}

#[cfg(test)]
mod tests;
