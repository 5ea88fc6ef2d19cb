//! Descriptors of processes: `pidfd_open` and what is done with them. They are ready when the process has ended.
//!
//! All descriptors of a process lead to one [`Pidfd`], which knows when the process is forgotten: another one that gets its number later is not meant.

use super::number;
use super::signals::signal;
use crate::errno::{EBADF, EINVAL, EMFILE, EPERM, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::SIGNALS;
use crate::signal::{Cause, Signal};
use crate::socket::READABLE;
use crate::special::Special;
use crate::system::{Answer, System};
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::Cell;
use linux_raw_sys::general::{O_NONBLOCK, O_RDWR, RLIMIT_NOFILE, SI_TKILL};
use vfs::FileSystem;

/// A process that descriptors lead to.
#[derive(Debug)]
pub struct Pidfd {
    /// Number of the process.
    pid: Tid,
    /// Whether nobody knows the process any more.
    is_gone: Cell<bool>,
    /// Number that no other has.
    pub number: u64,
}

/// Processes that descriptors lead to, by their numbers.
#[derive(Debug, Default)]
pub struct Pidfds(BTreeMap<Tid, Weak<Pidfd>>);

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A descriptor of a process, for a thread.
    pub(super) fn add_pidfd(&mut self, tid: Tid, pid: Tid, flags: u32) -> Result<u64> {
        let known = self.kept.pidfds.0.get(&pid).and_then(Weak::upgrade);
        let pidfd = match known {
            Some(known) => known,
            None => {
                let new = Rc::new(Pidfd { pid, is_gone: Cell::new(false), number: self.ring() });
                self.kept.pidfds.0.insert(pid, Rc::downgrade(&new));
                new
            }
        };
        self.add_descriptor(tid, Open::new(Object::Process(pidfd), O_RDWR | flags), true, 0)
    }

    /// Fails unless a descriptor that a new process gets can be given to its maker.
    pub(super) fn check_pidfd(&mut self, tid: Tid, at: u64) -> Result<()> {
        let process = self.process(tid)?;
        if process.descriptors.iter().count() as u64 >= process.limits[RLIMIT_NOFILE as usize][0] {
            return Err(EMFILE);
        }
        self.write(tid, at, &[0; 4])
    }

    /// Gives a descriptor of a new process to its maker.
    pub(super) fn tell_new_pidfd(&mut self, tid: Tid, child: Tid, at: u64) -> Result<()> {
        let fd = self.add_pidfd(tid, child, 0)?;
        let told = self.write(tid, at, &(fd as u32).to_le_bytes());
        if told.is_err() {
            self.take_back(tid, fd);
        }
        told
    }

    /// Whether the process of a descriptor has ended.
    pub(super) fn has_ended(&self, pidfd: &Pidfd) -> bool {
        pidfd.is_gone.get() || self.processes.get(&pidfd.pid).is_none_or(|process| process.ended.is_some())
    }

    /// A process has ended: its descriptors are ready.
    pub(crate) fn tell_pidfd(&mut self, pid: Tid) {
        if let Some(pidfd) = self.kept.pidfds.0.get(&pid).and_then(Weak::upgrade) {
            self.happened(pidfd.number, READABLE);
        }
    }

    /// A process is forgotten, and its number may be another one's from now on.
    pub(crate) fn forget_pidfd(&mut self, pid: Tid) {
        if let Some(pidfd) = self.kept.pidfds.0.remove(&pid).and_then(|pidfd| pidfd.upgrade()) {
            pidfd.is_gone.set(true);
        }
    }

    /// The process of a descriptor, and whether nobody waits with it. `EBADF`: it is none of a process. No process: it is forgotten.
    pub(super) fn process_of(&mut self, tid: Tid, fd: u64) -> Result<(Option<Tid>, bool)> {
        let open = self.open_file(tid, fd)?;
        let Object::Process(pidfd) = &open.object else { return Err(EBADF) };
        Ok(((!pidfd.is_gone.get()).then_some(pidfd.pid), open.has(O_NONBLOCK)))
    }

    pub(crate) fn sys_pidfd_open(&mut self, tid: Tid, [pid, flags, ..]: [u64; 6]) -> Answer {
        let (pid, flags) = (pid as i32, flags as u32);
        if pid <= 0 || flags & !O_NONBLOCK != 0 {
            return Err(EINVAL);
        }
        let pid = pid.unsigned_abs();
        if !self.processes.contains_key(&pid) {
            return Err(if self.threads.contains_key(&pid) { EINVAL } else { ESRCH });
        }
        number(self.add_pidfd(tid, pid, flags))
    }

    pub(crate) fn sys_pidfd_send_signal(
        &mut self,
        tid: Tid,
        [fd, number, info, flags, ..]: [u64; 6],
    ) -> Answer {
        if flags as u32 != 0 {
            return Err(EINVAL);
        }
        // The directory of a process stands for it, too: for whoever has its number now.
        let directory = match &self.open_file(tid, fd)?.object {
            Object::Directory { inode, .. } => Special::of(*inode),
            _ => None,
        };
        let pid = match directory {
            Some(Special::Process(pid)) => Some(pid),
            _ => self.process_of(tid, fd)?.0,
        };
        if number > SIGNALS as u64 {
            return Err(EINVAL);
        }
        let cause = match info {
            0 => None,
            at => Some(self.cause_at(tid, at, Some(number as Signal))?),
        };
        self.send_with(tid, pid.ok_or(ESRCH)?, number, cause)
    }

    pub(crate) fn sys_pidfd_getfd(&mut self, tid: Tid, [pidfd, fd, flags, ..]: [u64; 6]) -> Answer {
        if flags as u32 != 0 {
            return Err(EINVAL);
        }
        let (pid, _) = self.process_of(tid, pidfd)?;
        let pid = pid.ok_or(ESRCH)?;
        self.may_inspect(tid, pid).map_err(|_| EPERM)?;
        let other = self.processes.get(&pid).filter(|other| other.ended.is_none()).ok_or(ESRCH)?;
        let open = other.descriptors.get(u32::try_from(fd).map_err(|_| EBADF)?)?.open.clone();
        number(self.add_descriptor(tid, open, true, 0))
    }

    /// Cause of a signal that a thread has written: the number in it has to be that of the signal, if one is given.
    fn cause_at(&mut self, tid: Tid, at: u64, signal: Option<Signal>) -> Result<Cause> {
        let [head, code, sender, value] = self.words(tid, at)?;
        if signal.is_some_and(|signal| head as u32 != signal) {
            return Err(EINVAL);
        }
        Ok(Cause { code: code as i32, sender: (sender as u32, (sender >> 32) as u32), value })
    }

    /// Sends a signal to a process, with a cause that the sender has chosen. It may not look like one of the kernel's to others.
    fn send_with(&mut self, tid: Tid, pid: Tid, number: u64, cause: Option<Cause>) -> Answer {
        let own = self.pid(tid)?;
        let owner = self.process(tid)?.owners.owner[0];
        let is_false = |cause: &Cause| cause.code >= 0 || cause.code == SI_TKILL;
        if pid != own && cause.as_ref().is_some_and(is_false) {
            return Err(EPERM);
        }
        if !self.processes.contains_key(&pid) {
            return Err(ESRCH);
        }
        if !self.may_signal(tid, pid, number) {
            return Err(EPERM);
        }
        if number != 0 {
            self.send(pid, signal(number)?, cause.unwrap_or(Cause::process(own, owner)))?;
        }
        self.unless_gone(tid)
    }

    pub(crate) fn sys_sigqueueinfo(&mut self, tid: Tid, [pid, number, info, ..]: [u64; 6]) -> Answer {
        let cause = self.cause_at(tid, info, None)?;
        if number > SIGNALS as u64 {
            return Err(EINVAL);
        }
        self.send_with(tid, pid as u32, number, Some(cause))
    }

    pub(crate) fn sys_tgsigqueueinfo(
        &mut self,
        tid: Tid,
        [pid, thread, number, info, ..]: [u64; 6],
    ) -> Answer {
        let cause = self.cause_at(tid, info, None)?;
        let (own, pid, thread) = (self.pid(tid)?, pid as u32, thread as u32);
        if number > SIGNALS as u64 {
            return Err(EINVAL);
        }
        if self.pid(thread)? != pid {
            return Err(ESRCH);
        }
        if pid != own && (cause.code >= 0 || cause.code == SI_TKILL) || !self.may_signal(tid, pid, number) {
            return Err(EPERM);
        }
        if number != 0 {
            self.send_to_thread(thread, signal(number)?, cause)?;
        }
        self.unless_gone(tid)
    }
}

#[cfg(test)]
mod tests;
