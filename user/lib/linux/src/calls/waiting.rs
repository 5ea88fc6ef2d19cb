//! Waiting for several open files at once.

use super::number;
use super::time::{MICROSECONDS, SECOND, microseconds};
use crate::errno::{EBADF, EFAULT, EINVAL, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::pipe::End;
use crate::process::Event;
use crate::system::{Answer, Outcome, System};
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general::{O_PATH, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLRDNORM, POLLWRNORM};
use vfs::FileSystem;

/// Most descriptors of one call.
const POLL_MAX: u64 = 4096;

/// Descriptors of a set.
const SET_BITS: u64 = 1024;

/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// Readiness of files and most devices, at any time.
const ALWAYS: u32 = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Readiness of something open: what does not wait.
    pub fn ready(&self, open: &Open) -> u32 {
        match &open.object {
            Object::Reader(ends) => ends.pipe.borrow().poll(End::Read).into(),
            Object::Writer(ends) => ends.pipe.borrow().poll(End::Write).into(),
            Object::Fifo(fifo) => fifo.poll().into(),
            Object::Terminal { number, .. } => self.terminal_ready(*number),
            Object::Master { number, .. } => self.master_ready(*number),
            Object::Counter { value, .. } => {
                let input = if value.get() > 0 { POLLIN | POLLRDNORM } else { 0 };
                let output = if value.get() < u64::MAX - 1 { POLLOUT | POLLWRNORM } else { 0 };
                input | output
            }
            Object::Socket(socket) => socket.poll(),
            Object::Inet(inet) => self.inet_ready(inet),
            Object::Netlink(socket) => socket.poll(),
            Object::Queue(queue) => queue.ready(),
            Object::Epoll(epoll) => self.list_ready(epoll),
            Object::Timer(timer) if timer.count(self.machine.now()) == 0 => 0,
            Object::Signals(list) if self.signals_of(list).0 == 0 => 0,
            Object::Inotify(list) if list.is_empty() => 0,
            Object::Process(pidfd) if !self.has_ended(pidfd) => 0,
            // These are read and not written.
            Object::Timer(_) | Object::Signals(_) | Object::Process(_) | Object::Inotify(_) => {
                POLLIN | POLLRDNORM
            }
            // A place is open for nothing.
            _ if open.has(O_PATH) => POLLNVAL,
            _ => ALWAYS,
        }
    }

    pub(crate) fn sys_poll(&mut self, tid: Tid, [list, count, timeout, ..]: [u64; 6]) -> Answer {
        let timeout = timeout as i32;
        let until = match self.thread(tid)?.until {
            Some(until) => until,
            None if timeout < 0 => None,
            None => Some(self.machine.now() + timeout as u64 * MILLISECOND),
        };
        let answer = self.poll(tid, list, count, until);
        self.is_over(tid, answer)
    }

    pub(crate) fn sys_ppoll(&mut self, tid: Tid, [list, count, timeout, set, bytes, _]: [u64; 6]) -> Answer {
        let until = self.deadline(tid, timeout)?;
        self.mask_meanwhile(tid, set, bytes)?;
        let answer = self.poll(tid, list, count, until);
        self.leave_rest(tid, (timeout, SECOND), until, answer)
    }

    /// Leaves the time that is left to who has named one, as Linux does when a wait is over. The place has seconds, and so many parts of one.
    fn leave_rest(&mut self, tid: Tid, place: (u64, u64), until: Option<u64>, answer: Answer) -> Answer {
        if !matches!(answer, Ok(Outcome::Wait(..))) {
            self.write_rest(tid, place, until);
        }
        self.is_over(tid, answer)
    }

    /// Unless it waits, nothing is kept of a call: also if its list cannot be read any more.
    fn is_over(&mut self, tid: Tid, answer: Answer) -> Answer {
        if !matches!(answer, Ok(Outcome::Wait(..)))
            && let Ok(thread) = self.thread(tid)
        {
            thread.polled.clear();
        }
        answer
    }

    fn poll(&mut self, tid: Tid, list: u64, count: u64, until: Option<u64>) -> Answer {
        if count > POLL_MAX {
            return Err(EINVAL);
        }
        let mut bytes = vec![0; count as usize * 8];
        self.read(tid, list, &mut bytes)?;
        let descriptors = &self.processes.get(&self.pid(tid)?).ok_or(ESRCH)?.descriptors;
        let polled = |entry: &[u8]| i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        let mut found = 0;
        for entry in bytes.chunks_exact_mut(8) {
            let wanted = u32::from(u16::from_le_bytes([entry[4], entry[5]]));
            let ready = match u32::try_from(polled(entry)).map(|fd| descriptors.get(fd)) {
                Err(_) => 0,
                Ok(Err(_)) => POLLNVAL,
                Ok(Ok(descriptor)) => self.ready(&descriptor.open) & (wanted | POLLERR | POLLHUP | POLLNVAL),
            };
            entry[6..8].copy_from_slice(&(ready as u16).to_le_bytes());
            found += u64::from(ready != 0);
        }
        if found == 0 && until.is_none_or(|until| until > self.machine.now()) {
            let open = |entry| Some(&descriptors.get(u32::try_from(polled(entry)).ok()?).ok()?.open);
            let event = |entry| self.event_of(open(entry)?);
            let mut on: Vec<Event> = bytes.chunks_exact(8).filter_map(event).collect();
            on.sort_unstable();
            on.dedup();
            let numbers = bytes.chunks_exact(8).filter_map(|entry| u32::try_from(polled(entry)).ok());
            return self.wait_with(tid, numbers, (on, until));
        }
        self.write(tid, list, &bytes)?;
        number(Ok(found))
    }

    pub(crate) fn sys_select(
        &mut self,
        tid: Tid,
        [count, read, write, except, timeout, _]: [u64; 6],
    ) -> Answer {
        let until = match (self.thread(tid)?.until, timeout) {
            (Some(until), _) => until,
            (None, 0) => None,
            (None, at) => Some(self.machine.now().saturating_add(microseconds(self.words(tid, at)?)?)),
        };
        let answer = self.wait_for_sets(tid, count, [read, write, except], until);
        self.leave_rest(tid, (timeout, MICROSECONDS), until, answer)
    }

    pub(crate) fn sys_pselect(
        &mut self,
        tid: Tid,
        [count, read, write, except, timeout, mask]: [u64; 6],
    ) -> Answer {
        let until = self.deadline(tid, timeout)?;
        // It is read once, as the time.
        if mask != 0 && self.thread(tid)?.until.is_none() {
            let [set, bytes] = self.words(tid, mask)?;
            self.mask_meanwhile(tid, set, bytes)?;
        }
        let answer = self.wait_for_sets(tid, count, [read, write, except], until);
        self.leave_rest(tid, (timeout, SECOND), until, answer)
    }

    fn wait_for_sets(&mut self, tid: Tid, count: u64, sets: [u64; 3], until: Option<u64>) -> Answer {
        let count =
            if count as i32 >= 0 { u64::from(count as u32).min(SET_BITS) } else { return Err(EINVAL) };
        let words = count.div_ceil(64) as usize;
        let mut wanted: Vec<Vec<u64>> = Vec::new();
        for set in sets {
            wanted.push(self.set(tid, set, words)?);
        }
        // One that was closed meanwhile is ready for all, as in Linux.
        let kinds = [POLLIN | POLLHUP | POLLERR | POLLNVAL, POLLOUT | POLLERR | POLLNVAL, POLLNVAL];
        let has_waited = self.thread(tid)?.until.is_some();
        let mut found = vec![vec![0u64; words]; sets.len()];
        let (mut total, mut on) = (0, Vec::new());
        let is_wanted = |fd: u64| wanted.iter().any(|set| set[(fd / 64) as usize] & 1 << (fd % 64) != 0);
        for fd in 0..count {
            let (word, bit) = ((fd / 64) as usize, 1 << (fd % 64));
            if !is_wanted(fd) {
                continue;
            }
            let ready = match self.open_or_place(tid, fd) {
                Ok(open) => {
                    on.extend(self.event_of(&open));
                    self.ready(&open)
                }
                Err(_) if has_waited => POLLNVAL,
                Err(_) => return Err(EBADF),
            };
            for ((wanted, found), kind) in wanted.iter().zip(&mut found).zip(kinds) {
                if wanted[word] & bit != 0 && ready & kind != 0 {
                    found[word] |= bit;
                    total += 1;
                }
            }
        }
        if total == 0 && until.is_none_or(|until| until > self.machine.now()) {
            let numbers = (0..count).filter(|fd| is_wanted(*fd)).map(|fd| fd as u32);
            return self.wait_with(tid, numbers, (on, until));
        }
        for (set, found) in sets.into_iter().zip(&found).filter(|(set, _)| *set != 0) {
            self.write_list(tid, set, found)?;
        }
        number(Ok(total))
    }

    fn set(&mut self, tid: Tid, at: u64, words: usize) -> Result<Vec<u64>> {
        let mut set = Vec::with_capacity(words);
        for word in 0..words as u64 {
            let place = at.checked_add(word * 8).ok_or(EFAULT)?;
            set.push(if at == 0 { 0 } else { self.words::<1>(tid, place)?[0] });
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests;
