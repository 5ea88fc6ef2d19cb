//! `epoll`: calls about lists of open files.

use super::fifo::Fifo;
use super::{done, number};
use crate::epoll::{Epoll, NESTED_MAX, SIGNALS, Source, TERMINALS, Wanted, key};
use crate::errno::{EFAULT, EINVAL, ELOOP, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::socket::READABLE;
use crate::system::{Answer, Outcome, System};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLHUP, O_RDWR, POLLIN,
    POLLRDNORM,
};
use vfs::FileSystem;

/// Bytes of `struct epoll_event`: bits, and a number that is not aligned.
const EVENT_BYTES: u64 = 12;

/// Most events of one call in Linux.
const EVENTS_MAX: u32 = i32::MAX as u32 / EVENT_BYTES as u32;

/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;

fn list_of(open: &Open) -> Result<&Rc<Epoll>> {
    match &open.object {
        Object::Epoll(epoll) => Ok(epoll),
        _ => Err(EINVAL),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Says that something has happened to an object with a number: bits of `poll` that may be new. Whoever waits looks again, and entries of lists hear of it.
    pub fn happened(&mut self, number: u64, bits: u32) {
        self.tell(Event::Ring(number));
        self.hear(number, bits);
    }

    /// Something has happened at a side of a terminal.
    pub(crate) fn terminal_changed(&mut self, number: u32) {
        self.tell(Event::Terminal(number));
        self.hear(TERMINALS + u64::from(number), u32::MAX);
    }

    /// Lists hear of something, and lists of which they are entries. Each hears once, however the one is in the other.
    pub(crate) fn hear(&mut self, source: Source, bits: u32) {
        if self.watches.is_empty() {
            return;
        }
        let mut heard = BTreeSet::new();
        let mut left = Vec::from([(source, bits)]);
        while let Some((source, bits)) = left.pop() {
            for list in self.watches.hear(source, bits) {
                if heard.insert(list) {
                    self.tell(Event::Ring(list));
                    left.push((list, READABLE));
                }
            }
        }
    }

    /// Something open is closed, which has been at an address: entries of lists end.
    pub(crate) fn forget_watches(&mut self, address: usize, object: &Object) {
        if self.watches.is_empty() {
            return;
        }
        if let Object::Epoll(epoll) = object {
            for key in epoll.keys() {
                self.watches.remove(epoll, key);
            }
        }
        self.watches.forget(address);
    }

    /// Whether a list has an entry that is ready. Entries that are not are looked at when they hear of something.
    pub(super) fn list_ready(&self, epoll: &Epoll) -> u32 {
        for _ in 0..epoll.heard() {
            let Some((key, open, wanted)) = epoll.next() else { break };
            if self.ready(&open) & wanted.events != 0 {
                epoll.put_back(key, true);
                return POLLIN | POLLRDNORM;
            }
        }
        0
    }

    pub(crate) fn sys_epoll_create(&mut self, tid: Tid, [size, ..]: [u64; 6]) -> Answer {
        if size as i32 <= 0 { Err(EINVAL) } else { self.sys_epoll_create1(tid, [0; 6]) }
    }

    pub(crate) fn sys_epoll_create1(&mut self, tid: Tid, [flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if flags & !EPOLL_CLOEXEC != 0 {
            return Err(EINVAL);
        }
        let open = Open::new(Object::Epoll(Epoll::new(self.ring(), self.budget.empty())), O_RDWR);
        number(self.add_descriptor(tid, open, flags != 0, 0))
    }

    pub(crate) fn sys_epoll_ctl(&mut self, tid: Tid, [list, operation, fd, event, ..]: [u64; 6]) -> Answer {
        let operation = operation as u32;
        let mut bytes = [0; EVENT_BYTES as usize];
        if operation != EPOLL_CTL_DEL {
            self.read(tid, event, &mut bytes)?;
        }
        let [events, low, high] = [0, 4, 8].map(|at| {
            bytes.get(at..at + 4).and_then(|half| half.try_into().ok()).map_or(0, u32::from_le_bytes)
        });
        let wanted = Wanted { events, data: u64::from(low) | u64::from(high) << 32 };
        let (list, fd) = (u64::from(list as u32), fd as u32);
        let (holder, open) = (self.open_file(tid, list)?, self.open_file(tid, fd.into())?);
        let source = match &open.object {
            Object::Signals(_) => SIGNALS | u64::from(self.pid(tid)?),
            object => source_of(object).ok_or(EPERM)?,
        };
        let epoll = list_of(&holder)?;
        if Rc::ptr_eq(&holder, &open) {
            return Err(EINVAL);
        }
        let at = key(fd, &open);
        match operation {
            EPOLL_CTL_ADD => {
                if let Object::Epoll(inner) = &open.object {
                    self.check_nesting(epoll, inner)?;
                }
                self.watches.check_room()?;
                epoll.add(fd, &open, wanted)?;
                self.watches.add(source, epoll, at);
            }
            EPOLL_CTL_MOD => epoll.change(at, wanted)?,
            EPOLL_CTL_DEL => {
                epoll.remove(at)?;
                self.watches.remove(epoll, at);
                return done(Ok(()));
            }
            _ => return Err(EINVAL),
        }
        // An entry hears of what has happened before.
        let ready = self.ready(&open) & (wanted.events | EPOLLERR | EPOLLHUP);
        if ready != 0 && epoll.hear(at, ready) {
            self.happened(epoll.number, READABLE);
        }
        done(Ok(()))
    }

    /// A list is to be an entry of another one: neither in itself, nor deeper than [`NESTED_MAX`].
    fn check_nesting(&self, outer: &Rc<Epoll>, inner: &Rc<Epoll>) -> Result<()> {
        let mut known = BTreeMap::new();
        let below = self.depth_below(inner, outer.number, 0, &mut known)?;
        let above = self.depth_above(outer, 0, &mut BTreeMap::new())?;
        if below + 1 + above > NESTED_MAX { Err(ELOOP) } else { Ok(()) }
    }

    fn depth_below(
        &self,
        list: &Epoll,
        outer: u64,
        level: usize,
        known: &mut BTreeMap<u64, usize>,
    ) -> Result<usize> {
        if list.number == outer || level > NESTED_MAX {
            return Err(ELOOP);
        }
        if let Some(depth) = known.get(&list.number) {
            return Ok(*depth);
        }
        let mut depth = 0;
        for open in list.files() {
            if let Object::Epoll(inner) = &open.object {
                depth = depth.max(1 + self.depth_below(inner, outer, level + 1, known)?);
            }
        }
        known.insert(list.number, depth);
        Ok(depth)
    }

    fn depth_above(&self, list: &Epoll, level: usize, known: &mut BTreeMap<u64, usize>) -> Result<usize> {
        if level > NESTED_MAX {
            return Err(ELOOP);
        }
        if let Some(depth) = known.get(&list.number) {
            return Ok(*depth);
        }
        let mut depth = 0;
        for outer in self.watches.lists(list.number) {
            depth = depth.max(1 + self.depth_above(&outer, level + 1, known)?);
        }
        known.insert(list.number, depth);
        Ok(depth)
    }

    pub(crate) fn sys_epoll_wait(&mut self, tid: Tid, [list, to, count, timeout, ..]: [u64; 6]) -> Answer {
        let timeout = timeout as i32;
        let until = match self.thread(tid)?.until {
            Some(until) => until,
            None if timeout < 0 => None,
            None => Some(self.machine.now() + timeout.unsigned_abs() as u64 * MILLISECOND),
        };
        self.wait_for_list(tid, list, (to, count), until)
    }

    pub(crate) fn sys_epoll_pwait(
        &mut self,
        tid: Tid,
        [list, to, count, timeout, set, bytes]: [u64; 6],
    ) -> Answer {
        self.mask_meanwhile(tid, set, bytes)?;
        self.sys_epoll_wait(tid, [list, to, count, timeout, 0, 0])
    }

    pub(crate) fn sys_epoll_pwait2(
        &mut self,
        tid: Tid,
        [list, to, count, timeout, set, bytes]: [u64; 6],
    ) -> Answer {
        let until = self.deadline(tid, timeout)?;
        self.mask_meanwhile(tid, set, bytes)?;
        self.wait_for_list(tid, list, (to, count), until)
    }

    fn wait_for_list(&mut self, tid: Tid, list: u64, (to, count): (u64, u64), until: Option<u64>) -> Answer {
        let count = count as u32;
        if !(1..=EVENTS_MAX).contains(&count) {
            return Err(EINVAL);
        }
        let holder = self.open_file(tid, list)?;
        let epoll = list_of(&holder)?;
        let found = self.take_events(tid, epoll, to, count.into())?;
        if found == 0 && until.is_none_or(|until| until > self.machine.now()) {
            return Ok(Outcome::Wait(Vec::from([Event::Ring(epoll.number)]), until));
        }
        number(Ok(found))
    }

    /// Tells a thread which entries are ready, at most so many. How many it was.
    fn take_events(&mut self, tid: Tid, epoll: &Epoll, to: u64, count: u64) -> Result<u64> {
        let mut found = 0;
        // Entries that are put back meanwhile wait until the next time.
        for _ in 0..epoll.heard() {
            if found == count {
                break;
            }
            let Some((key, open, wanted)) = epoll.next() else { break };
            let ready = self.ready(&open) & wanted.events;
            if ready == 0 {
                continue;
            }
            let bytes = [&ready.to_le_bytes()[..], &wanted.data.to_le_bytes()].concat();
            if self.write(tid, to.wrapping_add(found * EVENT_BYTES), &bytes).is_err() {
                epoll.put_back(key, true);
                return if found > 0 { Ok(found) } else { Err(EFAULT) };
            }
            found += 1;
            epoll.told(key);
        }
        Ok(found)
    }
}

/// Number of what happens to an object. None: it is always ready.
fn source_of(object: &Object) -> Option<Source> {
    match object {
        Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => Some(ends.number),
        Object::Counter { number, .. } => Some(*number),
        Object::Socket(socket) => Some(socket.number),
        Object::Inet(inet) => Some(inet.number),
        Object::Netlink(socket) => Some(socket.number),
        Object::Epoll(epoll) => Some(epoll.number),
        Object::Timer(timer) => Some(timer.number),
        Object::Process(pidfd) => Some(pidfd.number),
        Object::Inotify(list) => Some(list.number),
        Object::Queue(queue) => Some(queue.number),
        Object::Terminal { number, .. } | Object::Master { number, .. } => {
            Some(TERMINALS + u64::from(*number))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
