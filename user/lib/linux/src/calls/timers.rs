//! Descriptors that are read when a time has come, or a signal: `timerfd` and `signalfd`.

use super::files::Taken;
use super::time::{SECOND, nanoseconds};
use super::{done, number};
use crate::epoll::SIGNALS;
use crate::errno::{EAGAIN, EFAULT, EINVAL, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::signal::{Cause, Set, Signal};
use crate::socket::READABLE;
use crate::system::{Answer, System};
use crate::timer::Timer;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::Cell;
use linux_raw_sys::general::{
    CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_ALARM, O_CLOEXEC,
    O_NONBLOCK, O_RDWR, SI_QUEUE, SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, TFD_CREATE_FLAGS,
    TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET,
};
use vfs::FileSystem;

/// Bytes of a set of signals.
const SET_BYTES: u64 = 8;

/// Bytes of `struct signalfd_siginfo`.
const SIGNAL_BYTES: usize = 128;

/// Signals that are read from a descriptor.
#[derive(Debug)]
pub struct SignalList {
    /// The signals.
    pub wanted: Cell<Set>,
    /// Number that no other has.
    pub number: u64,
}

/// Signals that there were, for whoever waits for others.
#[derive(Debug, Default)]
pub struct Known {
    /// Descriptors that are open.
    pub(crate) lists: usize,
    /// Signals that each process has got so far.
    counts: BTreeMap<Tid, u64>,
}

fn timer_of(open: &Open) -> Result<&Rc<Timer>> {
    match &open.object {
        Object::Timer(timer) => Ok(timer),
        _ => Err(EINVAL),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_timerfd_create(&mut self, tid: Tid, [clock, flags, ..]: [u64; 6]) -> Answer {
        let (clock, flags) = (clock as u32, flags as u32);
        let is_known = matches!(
            clock,
            CLOCK_REALTIME | CLOCK_MONOTONIC | CLOCK_BOOTTIME | CLOCK_REALTIME_ALARM | CLOCK_BOOTTIME_ALARM
        );
        if !is_known || flags & !TFD_CREATE_FLAGS != 0 {
            return Err(EINVAL);
        }
        let timer = Timer::new(self.ring(), clock);
        let open = Open::new(Object::Timer(timer), O_RDWR | flags & O_NONBLOCK);
        number(self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0))
    }

    pub(crate) fn sys_timerfd_settime(&mut self, tid: Tid, [fd, flags, new, old, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        let [every_seconds, every, seconds, rest] = self.words(tid, new)?;
        let every = nanoseconds([every_seconds, every])?;
        let wanted = nanoseconds([seconds, rest])?;
        if flags & !(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) != 0 {
            return Err(EINVAL);
        }
        let open = self.open_file(tid, fd)?;
        let timer = timer_of(&open)?;
        let now = self.machine.now();
        let before = timer.left(now);
        let is_of_date = matches!(timer.clock, CLOCK_REALTIME | CLOCK_REALTIME_ALARM);
        let begins = match flags & TFD_TIMER_ABSTIME {
            0 => 0,
            _ if is_of_date => self.machine.date(),
            _ => now,
        };
        let at = now.saturating_add(wanted.saturating_sub(begins));
        timer.set((wanted > 0).then_some(at), every);
        self.times_changed = true;
        self.timers.note(timer);
        self.tell(Event::Ring(timer.number));
        if old != 0 {
            self.write_times(tid, old, before)?;
        }
        done(Ok(()))
    }

    pub(crate) fn sys_timerfd_gettime(&mut self, tid: Tid, [fd, to, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        let timer = timer_of(&open)?;
        let left = timer.left(self.machine.now());
        self.times_changed = true;
        self.timers.note(timer);
        done(self.write_times(tid, to, left))
    }

    fn write_times(&mut self, tid: Tid, to: u64, (every, left): (u64, u64)) -> Result<()> {
        self.write_words(tid, to, &[every / SECOND, every % SECOND, left / SECOND, left % SECOND])
    }

    /// Reads how often a timer has expired.
    pub(super) fn take_expirations(&mut self, timer: &Rc<Timer>, to: &mut [u8]) -> Result<Taken> {
        let to = to.get_mut(..8).ok_or(EINVAL)?;
        let count = timer.read(self.machine.now());
        self.times_changed = true;
        self.timers.note(timer);
        if count == 0 {
            return Ok(Taken::Nothing(None));
        }
        to.copy_from_slice(&count.to_le_bytes());
        Ok(Taken::Bytes(8))
    }

    /// Tells of timers whose time has come.
    pub(crate) fn expire_timers(&mut self) {
        let now = self.machine.now();
        while let Some(timer) = self.timers.take(now) {
            timer.expire(now);
            self.happened(timer.number, READABLE);
        }
        self.expire_alarms();
    }

    pub(crate) fn sys_signalfd(&mut self, tid: Tid, [fd, set, bytes, ..]: [u64; 6]) -> Answer {
        self.sys_signalfd4(tid, [fd, set, bytes, 0, 0, 0])
    }

    pub(crate) fn sys_signalfd4(&mut self, tid: Tid, [fd, set, bytes, flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if bytes != SET_BYTES || flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(EINVAL);
        }
        let [set] = self.words(tid, set).map_err(|_| EFAULT)?;
        let wanted = Set(set).as_mask();
        if fd as i32 != -1 {
            let open = self.open_file(tid, u64::from(fd as u32))?;
            let Object::Signals(list) = &open.object else { return Err(EINVAL) };
            list.wanted.set(wanted);
            let pid = self.pid(tid)?;
            self.tell(Event::Signals(pid));
            self.hear(SIGNALS | u64::from(pid), READABLE);
            return number(Ok(fd));
        }
        if self.known.lists == 0 {
            self.known.counts = self.signal_counts();
        }
        self.known.lists += 1;
        let list = SignalList { wanted: Cell::new(wanted), number: self.ring() };
        let open = Open::new(Object::Signals(list), O_RDWR | flags & O_NONBLOCK);
        number(self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0))
    }

    /// A descriptor of signals is closed.
    pub(crate) fn close_signals(&mut self) {
        self.known.lists = self.known.lists.saturating_sub(1);
    }

    fn signal_counts(&self) -> BTreeMap<Tid, u64> {
        let mut counts: BTreeMap<Tid, u64> = BTreeMap::new();
        for (pid, process) in self.processes.iter() {
            let threads = process.threads.iter().filter_map(|tid| self.threads.get(tid));
            let own: u64 = threads.map(|thread| thread.pending.added()).sum();
            counts.insert(*pid, own + process.pending.added());
        }
        counts
    }

    /// Tells of signals that have come since it was called last.
    pub(crate) fn look_at_signals(&mut self) {
        if self.known.lists == 0 {
            return;
        }
        let counts = self.signal_counts();
        let before = core::mem::replace(&mut self.known.counts, counts.clone());
        for (pid, count) in counts {
            if before.get(&pid).copied().unwrap_or(0) != count {
                self.tell(Event::Signals(pid));
                self.hear(SIGNALS | u64::from(pid), READABLE);
            }
        }
    }

    /// Signals of a list that wait for the thread whose call is made.
    pub(super) fn signals_of(&self, list: &SignalList) -> Set {
        let Some(thread) = self.current.and_then(|tid| self.threads.get(&tid)) else { return Set(0) };
        let process = self.processes.get(&thread.process).map_or(Set(0), |process| process.pending.set());
        Set((process.0 | thread.pending.set().0) & list.wanted.get().0)
    }

    /// The event for which a thread waits that reads signals.
    pub(super) fn signal_event(&self) -> Option<Event> {
        let thread = self.threads.get(&self.current?)?;
        Some(Event::Signals(thread.process))
    }

    /// Reads signals of the thread whose call is made, and of its process.
    pub(super) fn take_signals(&mut self, list: &SignalList, to: &mut [u8]) -> Result<Taken> {
        if to.len() < SIGNAL_BYTES {
            return Err(EINVAL);
        }
        let tid = self.current.ok_or(EAGAIN)?;
        let wanted = list.wanted.get();
        let mut count = 0;
        for place in to.chunks_exact_mut(SIGNAL_BYTES) {
            let own = self.thread(tid)?.pending.take_of(wanted);
            let found = match own {
                Some(found) => Some(found),
                None => self.process(tid)?.pending.take_of(wanted),
            };
            let Some((signal, cause)) = found else { break };
            place.copy_from_slice(&signal_bytes(signal, &cause));
            count += SIGNAL_BYTES;
        }
        Ok(if count > 0 { Taken::Bytes(count) } else { Taken::Nothing(None) })
    }
}

/// Bytes of `struct signalfd_siginfo`.
fn signal_bytes(signal: Signal, cause: &Cause) -> [u8; SIGNAL_BYTES] {
    let mut bytes = [0; SIGNAL_BYTES];
    let mut put = |at: usize, field: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    };
    put(0, &signal.to_le_bytes());
    put(8, &cause.code.to_le_bytes());
    let low = (cause.value as u32).to_le_bytes();
    match signal {
        SIGSEGV | SIGBUS | SIGILL | SIGFPE | SIGTRAP if cause.code > 0 => put(72, &cause.value.to_le_bytes()),
        _ => {
            put(12, &cause.sender.0.to_le_bytes());
            put(16, &cause.sender.1.to_le_bytes());
            if signal == SIGCHLD && cause.code > 0 {
                put(40, &low);
            } else if cause.code == SI_QUEUE {
                put(44, &low);
                put(48, &cause.value.to_le_bytes());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
