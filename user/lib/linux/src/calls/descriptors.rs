//! Descriptors: copies, flags, and objects that have no name.

use super::fifo::Fifo;
use super::locks::COMMANDS;
use super::{done, number};
use crate::errno::{EBADF, EINVAL, ENFILE, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Descriptor, OPEN_BYTES, Object, Open, PipeEnds};
use crate::pipe::{End, Pipe};
use crate::process::{Event, Process};
use crate::system::{Answer, DONE, System};
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use linux_raw_sys::general::{
    self, EFD_CLOEXEC, EFD_NONBLOCK, EFD_SEMAPHORE, F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFD,
    FASYNC, FD_CLOEXEC, O_APPEND, O_CLOEXEC, O_DIRECT, O_NOATIME, O_NONBLOCK, O_PATH, O_RDONLY, O_RDWR,
    O_WRONLY, RLIMIT_NOFILE,
};
use vfs::FileSystem;

/// Flags of an open file that `fcntl` changes.
const CHANGEABLE: u32 = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME;

/// Commands of `fcntl` for places: they are about the descriptor alone.
const OF_PLACES: [u32; 5] = [F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL];

/// Flags of `close_range`.
const CLOSE_RANGE_UNSHARE: u32 = 2;
/// See [`CLOSE_RANGE_UNSHARE`].
const CLOSE_RANGE_CLOEXEC: u32 = 4;

/// Numbers of descriptors of a process are below this.
fn descriptors_max(process: &Process) -> u32 {
    process.limits[RLIMIT_NOFILE as usize][0].min(u32::MAX.into()) as u32
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The number of the next descriptor of a thread's process, which has a place for it from now on. `EMFILE`: it has as many as it may; `ENOMEM`: its table cannot grow.
    pub(super) fn reserve_descriptor(&mut self, tid: Tid) -> Result<u32> {
        let process = self.process(tid)?;
        let limit = descriptors_max(process);
        process.descriptors.reserve(0, limit)
    }

    /// Gives a thread's process a descriptor. `ENFILE`: too much is open in all processes together.
    pub fn add_descriptor(&mut self, tid: Tid, open: Rc<Open>, closes: bool, from: u32) -> Result<u64> {
        let has_share = open.share.borrow().is_some();
        if !has_share {
            let share = self.budget.take(OPEN_BYTES);
            if share.is_none() {
                self.close(open);
                return Err(ENFILE);
            }
            open.share.replace(share);
        }
        let process = self.process(tid)?;
        let limit = descriptors_max(process);
        match process.descriptors.add(open.clone(), closes, from, limit) {
            Ok(number) => Ok(number.into()),
            Err(error) => {
                self.close(open);
                Err(error)
            }
        }
    }

    pub(crate) fn sys_close(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        let fd = u32::try_from(fd).map_err(|_| EBADF)?;
        let taken = self.process(tid)?.descriptors.take(fd)?;
        self.hold_for_others(tid, fd, &taken.open);
        // The last one to close a file hears that late bytes cannot be written; closed it is all the same.
        let written = match &taken.open.object {
            Object::File { inode, .. } if Rc::strong_count(&taken.open) == 1 => self.store.write_late(*inode),
            _ => Ok(()),
        };
        self.close_descriptor(tid, taken.open);
        done(written)
    }

    pub(crate) fn sys_close_range(&mut self, tid: Tid, [first, last, flags, ..]: [u64; 6]) -> Answer {
        let (first, last) = (first as u32, last as u32);
        if first > last || flags as u32 & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0 {
            return Err(EINVAL);
        }
        let descriptors = &mut self.process(tid)?.descriptors;
        let numbers: alloc::vec::Vec<u32> = descriptors
            .iter()
            .map(|(number, _)| number)
            .filter(|number| (first..=last).contains(number))
            .collect();
        for number in numbers {
            if flags as u32 & CLOSE_RANGE_CLOEXEC != 0 {
                self.process(tid)?.descriptors.get_mut(number)?.closes = true;
            } else {
                let taken = self.process(tid)?.descriptors.take(number)?;
                self.hold_for_others(tid, number, &taken.open);
                self.close_descriptor(tid, taken.open);
            }
        }
        DONE
    }

    pub(crate) fn sys_dup(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        number(self.add_descriptor(tid, open, false, 0))
    }

    pub(crate) fn sys_dup2(&mut self, tid: Tid, [from, to, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, from)?;
        if from == to {
            return number(Ok(to));
        }
        self.put_descriptor(tid, to, open, false)
    }

    pub(crate) fn sys_dup3(&mut self, tid: Tid, [from, to, flags, ..]: [u64; 6]) -> Answer {
        if from == to || flags as u32 & !O_CLOEXEC != 0 {
            return Err(EINVAL);
        }
        let open = self.open_or_place(tid, from)?;
        self.put_descriptor(tid, to, open, flags as u32 & O_CLOEXEC != 0)
    }

    fn put_descriptor(&mut self, tid: Tid, to: u64, open: Rc<Open>, closes: bool) -> Answer {
        let process = self.process(tid)?;
        let limit = process.limits[RLIMIT_NOFILE as usize][0];
        let at = u32::try_from(to).ok().filter(|_| to < limit).ok_or(EBADF)?;
        let before = process.descriptors.replace(at, Descriptor { open, closes })?;
        if let Some(before) = before {
            self.hold_for_others(tid, at, &before.open);
            self.close_descriptor(tid, before.open);
        }
        number(Ok(to))
    }

    pub(crate) fn sys_fcntl(&mut self, tid: Tid, [fd, command, argument, ..]: [u64; 6]) -> Answer {
        let open = self.open_or_place(tid, fd)?;
        let at = fd as u32;
        if open.has(O_PATH) && !OF_PLACES.contains(&(command as u32)) {
            return Err(EBADF);
        }
        match command as u32 {
            general::F_DUPFD | general::F_DUPFD_CLOEXEC => {
                let limit = self.process(tid)?.limits[RLIMIT_NOFILE as usize][0];
                let from = u32::try_from(argument).ok().filter(|_| argument < limit).ok_or(EINVAL)?;
                number(self.add_descriptor(tid, open, command as u32 == general::F_DUPFD_CLOEXEC, from))
            }
            general::F_GETFD => number(Ok(self.process(tid)?.descriptors.get(at)?.closes.into())),
            general::F_SETFD => {
                self.process(tid)?.descriptors.get_mut(at)?.closes = argument as u32 & FD_CLOEXEC != 0;
                DONE
            }
            // A program of 64 bits opens every file as one that may be large.
            general::F_GETFL => number(Ok((open.flags.get() | 0o100_000).into())),
            general::F_SETFL => {
                let mode = if open.can_be_asynchronous() { FASYNC } else { 0 };
                let changeable = CHANGEABLE | mode;
                open.flags.set(open.flags.get() & !changeable | argument as u32 & changeable);
                DONE
            }
            command if COMMANDS.contains(&command) => self.lock_command(tid, &open, command, argument),
            general::F_ADD_SEALS => self.add_seals(&open, argument),
            general::F_GET_SEALS => self.seals(&open),
            general::F_GETOWN => DONE,
            general::F_SETOWN => DONE,
            general::F_GETPIPE_SZ => match &open.object {
                Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                    number(Ok(ends.pipe.borrow().size() as u64))
                }
                _ => Err(EBADF),
            },
            general::F_SETPIPE_SZ => match &open.object {
                Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                    let size = ends.pipe.borrow_mut().resize(argument)?;
                    // There may be room for those who wait.
                    self.tell(Event::Ring(ends.number));
                    number(Ok(size as u64))
                }
                _ => Err(EBADF),
            },
            _ => Err(EINVAL),
        }
    }

    pub(crate) fn sys_pipe(&mut self, tid: Tid, [address, ..]: [u64; 6]) -> Answer {
        self.make_pipe(tid, address, 0)
    }

    pub(crate) fn sys_pipe2(&mut self, tid: Tid, [address, flags, ..]: [u64; 6]) -> Answer {
        if flags as u32 & !(O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0 {
            return Err(EINVAL);
        }
        self.make_pipe(tid, address, flags as u32)
    }

    fn make_pipe(&mut self, tid: Tid, address: u64, flags: u32) -> Answer {
        let mut pipe = Pipe::within(&self.budget)?;
        pipe.open(End::Read);
        pipe.open(End::Write);
        let owners = &self.process(tid)?.owners;
        let (pipe, owner) = (RefCell::new(pipe), (owners.owner[1], owners.group[1]));
        let ends = Rc::new(PipeEnds { number: self.ring(), pipe, name: None, owner });
        let closes = flags & O_CLOEXEC != 0;
        let kept = flags & O_NONBLOCK;
        let reader = Open::new(Object::Reader(ends.clone()), O_RDONLY | kept);
        let writer = Open::new(Object::Writer(ends), O_WRONLY | kept);
        let first = match self.add_descriptor(tid, reader, closes, 0) {
            Ok(first) => first,
            Err(error) => {
                self.close(writer);
                return Err(error);
            }
        };
        let second = match self.add_descriptor(tid, writer, closes, 0) {
            Ok(second) => second,
            Err(error) => {
                self.take_back(tid, first);
                return Err(error);
            }
        };
        let bytes = (first | second << 32).to_le_bytes();
        if let Err(error) = self.write(tid, address, &bytes) {
            self.take_back(tid, first);
            self.take_back(tid, second);
            return Err(error);
        }
        DONE
    }

    pub(super) fn take_back(&mut self, tid: Tid, fd: u64) {
        let taken = self.process(tid).and_then(|process| process.descriptors.take(fd as u32));
        if let Ok(taken) = taken {
            self.close(taken.open);
        }
    }

    pub(crate) fn sys_eventfd(&mut self, tid: Tid, [value, ..]: [u64; 6]) -> Answer {
        self.make_counter(tid, value, 0)
    }

    pub(crate) fn sys_eventfd2(&mut self, tid: Tid, [value, flags, ..]: [u64; 6]) -> Answer {
        self.make_counter(tid, value, flags as u32)
    }

    fn make_counter(&mut self, tid: Tid, value: u64, flags: u32) -> Answer {
        if flags & !(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE) != 0 {
            return Err(EINVAL);
        }
        let value = Cell::new(u64::from(value as u32));
        let object = Object::Counter { value, is_semaphore: flags & EFD_SEMAPHORE != 0, number: self.ring() };
        let open = Open::new(object, O_RDWR | flags & EFD_NONBLOCK);
        number(self.add_descriptor(tid, open, flags & EFD_CLOEXEC != 0, 0))
    }
}

#[cfg(test)]
mod tests;
