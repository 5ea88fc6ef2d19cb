//! Clocks, sleep and alarms. Times are nanoseconds inside.

use super::{done, number};
use crate::errno::{EFAULT, EINTR, EINVAL, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::process::Blocked;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    self, CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW,
    CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI, CLOCK_THREAD_CPUTIME_ID,
    TIMER_ABSTIME,
};
use vfs::FileSystem;

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;

/// Microseconds of a second.
pub const MICROSECONDS: u64 = 1_000_000;

/// Nanoseconds of a tick, in which `times` and `/proc` count.
pub const TICK: u64 = 10_000_000;

/// Bytes of `struct timex`.
const TIMEX_BYTES: usize = 208;

/// Mode of `adjtimex` that changes nothing: `ADJ_OFFSET_SS_READ`.
const READS_OFFSET: u32 = 0xa001;

/// Result of `adjtimex` for a clock that nobody keeps with others: `TIME_ERROR`.
const IS_NOT_KEPT: u64 = 5;

/// Shortest time after which a timer comes again, in nanoseconds. Each time is work of this server, so one that asks for less would keep it from all others.
/// `getitimer` says this time then.
pub(super) const PERIOD_MIN: u64 = 1_000_000;

/// Bits of a clock of CPU time for its kind: all of it, that in programs, or that of the scheduler.
const CPU_KIND: u32 = 3;

/// The bit of a clock of CPU time that is that of a thread.
const CPU_OF_THREAD: u32 = 4;

/// Something that uses CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum User {
    /// A process, with all of its threads.
    Process(Tid),
    /// A thread of the process that asks.
    Thread(Tid),
}

/// Nanoseconds of `struct timespec`.
pub fn nanoseconds([seconds, rest]: [u64; 2]) -> Result<u64> {
    if rest >= SECOND || seconds > i64::MAX as u64 {
        return Err(EINVAL);
    }
    Ok(seconds.saturating_mul(SECOND).saturating_add(rest).min(i64::MAX as u64))
}

/// Nanoseconds of `struct timeval`.
pub fn microseconds([seconds, rest]: [u64; 2]) -> Result<u64> {
    if rest >= MICROSECONDS {
        return Err(EINVAL);
    }
    nanoseconds([seconds, rest * 1000])
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// When a call that waits gives up: it names a time from now on, or none. A call that is made again has begun before.
    pub fn deadline(&mut self, tid: Tid, timeout: u64) -> Result<Option<u64>> {
        if let Some(until) = self.thread(tid)?.until {
            return Ok(until);
        }
        match timeout {
            0 => Ok(None),
            at => {
                let time = nanoseconds(self.words(tid, at)?)?;
                Ok(Some(self.machine.now().saturating_add(time)))
            }
        }
    }

    fn clock(&self, tid: Tid, clock: u64) -> Result<u64> {
        match clock as u32 {
            CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI => Ok(self.machine.date()),
            CLOCK_MONOTONIC | CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME => {
                Ok(self.machine.now())
            }
            CLOCK_PROCESS_CPUTIME_ID => Ok(self.used(self.pid(tid)?)[0]),
            CLOCK_THREAD_CPUTIME_ID => Ok(self.machine.used(tid)),
            // The number of the thread itself means its process here.
            clock if (clock as i32) < 0 => match self.user_of(tid, clock, tid)? {
                User::Process(pid) => Ok(self.used(pid)[0]),
                User::Thread(thread) => Ok(self.machine.used(thread)),
            },
            _ => Err(EINVAL),
        }
    }

    /// Any process, or a thread of the same process, as `clock_getcpuclockid` and `pthread_getcpuclockid` name the clock of its CPU time: the complement of a number, where
    /// 0 is the thread or process itself, in front of three bits. `own` is a number that means the process itself, too.
    pub(super) fn user_of(&self, tid: Tid, clock: u32, own: Tid) -> Result<User> {
        let number = !((clock as i32) >> 3) as u32;
        // All kinds of CPU time are one here. Three is no kind: with it, a clock is that of a device.
        if clock & CPU_KIND == CPU_KIND {
            return Err(EINVAL);
        }
        let caller = self.pid(tid)?;
        if clock & CPU_OF_THREAD != 0 {
            let thread = if number == 0 { tid } else { number };
            return if self.pid(thread) == Ok(caller) { Ok(User::Thread(thread)) } else { Err(EINVAL) };
        }
        let pid = if number == 0 || number == own { caller } else { number };
        if self.processes.contains_key(&pid) { Ok(User::Process(pid)) } else { Err(EINVAL) }
    }

    pub(crate) fn sys_clock_gettime(&mut self, tid: Tid, [clock, to, ..]: [u64; 6]) -> Answer {
        let now = self.clock(tid, clock)?;
        done(self.write_words(tid, to, &[now / SECOND, now % SECOND]))
    }

    pub(crate) fn sys_clock_getres(&mut self, tid: Tid, [clock, to, ..]: [u64; 6]) -> Answer {
        self.clock(tid, clock)?;
        if to != 0 {
            self.write_words(tid, to, &[0, 1])?;
        }
        DONE
    }

    pub(crate) fn sys_gettimeofday(&mut self, tid: Tid, [to, zone, ..]: [u64; 6]) -> Answer {
        let now = self.machine.date();
        if to != 0 {
            self.write_words(tid, to, &[now / SECOND, now % SECOND / 1000])?;
        }
        if zone != 0 {
            self.write_words(tid, zone, &[0])?;
        }
        DONE
    }

    pub(crate) fn sys_time(&mut self, tid: Tid, [to, ..]: [u64; 6]) -> Answer {
        let now = self.machine.date() / SECOND;
        if to != 0 {
            self.write_words(tid, to, &[now])?;
        }
        number(Ok(now))
    }

    pub(crate) fn sys_times(&mut self, tid: Tid, [to, ..]: [u64; 6]) -> Answer {
        let [own, children] = self.used(self.pid(tid)?);
        if to != 0 {
            self.write_words(tid, to, &[own / TICK, 0, children / TICK, 0])?;
        }
        number(Ok(self.machine.now() / TICK))
    }

    /// The clock as nobody keeps it with others: all may ask, and nobody changes it.
    pub(crate) fn sys_adjtimex(&mut self, tid: Tid, [at, ..]: [u64; 6]) -> Answer {
        let mut bytes = [0; TIMEX_BYTES];
        self.read(tid, at, &mut bytes)?;
        let modes = bytes.first_chunk().map_or(0, |half| u32::from_le_bytes(*half));
        if modes != 0 && modes != READS_OFFSET {
            return Err(EPERM);
        }
        let date = self.machine.date();
        // Errors, that nobody keeps it, precision, tolerance, the time, and a tick.
        let words = [
            (24, 16_000_000),
            (32, 16_000_000),
            (40, 0x40),
            (56, 1),
            (64, 32_768_000),
            (72, date / SECOND),
            (80, date % SECOND / 1000),
            (88, 10_000),
        ];
        bytes.fill(0);
        for (place, word) in words {
            bytes[place..place + 8].copy_from_slice(&u64::to_le_bytes(word));
        }
        bytes[..4].copy_from_slice(&modes.to_le_bytes());
        self.write(tid, at, &bytes)?;
        number(Ok(IS_NOT_KEPT))
    }

    pub(crate) fn sys_clock_adjtime(&mut self, tid: Tid, [clock, at, ..]: [u64; 6]) -> Answer {
        if clock as u32 == CLOCK_REALTIME { self.sys_adjtimex(tid, [at, 0, 0, 0, 0, 0]) } else { Err(EINVAL) }
    }

    /// A call that goes on behind a signal is made anew here, so there is none that could.
    pub(crate) fn sys_restart_syscall(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        Err(EINTR)
    }

    pub(crate) fn sys_nanosleep(&mut self, tid: Tid, [time, ..]: [u64; 6]) -> Answer {
        self.sys_clock_nanosleep(tid, [CLOCK_MONOTONIC.into(), 0, time, 0, 0, 0])
    }

    pub(crate) fn sys_clock_nanosleep(&mut self, tid: Tid, [clock, flags, time, ..]: [u64; 6]) -> Answer {
        if time == 0 {
            return Err(EFAULT);
        }
        let until = match self.thread(tid)?.until {
            Some(until) => until,
            None => {
                let wanted = nanoseconds(self.words(tid, time)?)?;
                let now = self.machine.now();
                let until = if flags as u32 & TIMER_ABSTIME == 0 {
                    now.saturating_add(wanted)
                } else {
                    now.saturating_add(wanted.saturating_sub(self.clock(tid, clock)?))
                };
                Some(until)
            }
        };
        if until.is_some_and(|until| until <= self.machine.now()) {
            return DONE;
        }
        Ok(Outcome::Wait(Vec::new(), until))
    }

    /// A handler ends a wait: of one that names a time, the time that is left is written where the call wants it. Who sleeps for that again, and again, wakes in the end.
    pub(crate) fn tell_rest(&mut self, tid: Tid, blocked: &Blocked) {
        let Registers { rax, rsi, rdx, r8, r10, .. } = blocked.registers;
        let (left, parts) = match u32::try_from(rax) {
            Ok(general::__NR_nanosleep) => (rsi, SECOND),
            Ok(general::__NR_clock_nanosleep) if rsi as u32 & TIMER_ABSTIME == 0 => (r10, SECOND),
            Ok(general::__NR_select) => (r8, MICROSECONDS),
            Ok(general::__NR_pselect6) => (r8, SECOND),
            Ok(general::__NR_ppoll) => (rdx, SECOND),
            _ => (0, SECOND),
        };
        self.write_rest(tid, (left, parts), blocked.until);
    }

    /// Writes how long it is until then, if there is a place for it: seconds, and so many parts of one.
    pub(super) fn write_rest(&mut self, tid: Tid, (at, parts): (u64, u64), until: Option<u64>) {
        if at != 0 {
            let rest = until.unwrap_or(0).saturating_sub(self.machine.now());
            // The wait is over all the same.
            let _ = self.write_words(tid, at, &[rest / SECOND, rest % SECOND / (SECOND / parts)]);
        }
    }

    pub(crate) fn sys_alarm(&mut self, tid: Tid, [seconds, ..]: [u64; 6]) -> Answer {
        let now = self.machine.now();
        let process = self.process(tid)?;
        let left = process.alarm.0.map_or(0, |at| at.saturating_sub(now).div_ceil(SECOND));
        let seconds = u64::from(seconds as u32);
        process.alarm = ((seconds > 0).then(|| now.saturating_add(seconds * SECOND)), 0);
        self.times_changed = true;
        number(Ok(left))
    }

    pub(crate) fn sys_setitimer(&mut self, tid: Tid, [kind, new, old, ..]: [u64; 6]) -> Answer {
        let [every_seconds, every, seconds, rest] = match new {
            0 => [0; 4],
            at => self.words(tid, at)?,
        };
        let every = match microseconds([every_seconds, every])? {
            0 => 0,
            every => every.max(PERIOD_MIN),
        };
        let first = microseconds([seconds, rest])?;
        if kind as u32 != general::ITIMER_REAL {
            let before = self.set_cpu_timer(tid, kind, Some((every, first)))?;
            return self.write_timer(tid, old, before);
        }
        if old != 0 {
            self.sys_getitimer(tid, [kind, old, 0, 0, 0, 0])?;
        }
        let now = self.machine.now();
        self.times_changed = true;
        self.process(tid)?.alarm = ((first > 0).then(|| now.saturating_add(first)), every);
        DONE
    }

    pub(crate) fn sys_getitimer(&mut self, tid: Tid, [kind, to, ..]: [u64; 6]) -> Answer {
        if kind as u32 != general::ITIMER_REAL {
            let found = self.set_cpu_timer(tid, kind, None)?;
            return self.write_timer(tid, to, found);
        }
        let now = self.machine.now();
        let (at, every) = self.process(tid)?.alarm;
        let left = at.map_or(0, |at| at.saturating_sub(now).max(1000));
        done(self.write_interval(tid, to, (every, left)))
    }

    /// Writes what a timer has left, if somebody asks.
    fn write_timer(&mut self, tid: Tid, to: u64, found: (u64, u64)) -> Answer {
        if to != 0 {
            self.write_interval(tid, to, found)?;
        }
        DONE
    }

    /// Writes `struct itimerval`.
    fn write_interval(&mut self, tid: Tid, to: u64, (every, left): (u64, u64)) -> Result<()> {
        let words = [every / SECOND, every % SECOND / 1000, left / SECOND, left % SECOND / 1000];
        self.write_words(tid, to, &words)
    }
}

#[cfg(test)]
mod tests;
