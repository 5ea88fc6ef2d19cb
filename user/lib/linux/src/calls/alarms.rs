//! Timers that send signals when a time has come, or when a process has used so much CPU time: `timer_create` and its like, and two kinds of `setitimer`.
//!
//! Nobody tells when CPU time has been used, so this looks again when it can have been used at the earliest. The surprise: a signal that still waits is
//! not sent again, it counts how often it was missed.

use super::time::{PERIOD_MIN, SECOND, User, nanoseconds};
use super::{done, number};
use crate::errno::{EAGAIN, EINVAL, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::process::SIGNALS;
use crate::signal::{Cause, Signal};
use crate::system::{Answer, DONE, System};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME,
    CLOCK_REALTIME_ALARM, CLOCK_TAI, CLOCK_THREAD_CPUTIME_ID, ITIMER_PROF, ITIMER_VIRTUAL, SI_TIMER, SIGALRM,
    SIGEV_NONE, SIGEV_SIGNAL, SIGEV_THREAD, SIGEV_THREAD_ID, SIGPROF, SIGVTALRM, TIMER_ABSTIME,
};
use vfs::FileSystem;

/// Timers of a sandbox, at most.
const ALARMS_MAX: usize = 1024;

/// Timers for each of which, beyond the first so many, the shortest time until one comes again is [`PERIOD_MIN`] longer: many of them cost no more than these.
const QUICK_MAX: u64 = 16;

/// Shortest time in nanoseconds after which CPU time is looked at again.
const LOOK_MIN: u64 = 10_000_000;

/// Clock of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clock {
    /// Time since the machine began.
    Machine,
    /// Time since 1970, as it is when the timer is set.
    Date,
    /// CPU time of its process, or of another one, or of a thread of its process.
    Used(User),
    /// CPU time of another process, which has ended.
    Ended,
}

/// Effect of a timer.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Nothing,
    /// A signal for the process, or for a thread of it, with a value.
    Signal(Signal, Option<Tid>, u64),
    /// A signal of `setitimer`.
    Plain(Signal),
}

#[derive(Clone, Copy, Debug)]
struct Alarm {
    clock: Clock,
    effect: Effect,
    /// When it expires, by its clock.
    at: Option<u64>,
    /// Time until it expires again; 0: it does not.
    every: u64,
    /// When it is looked at, by the machine's time.
    look: u64,
    /// Times that it was missed before its last signal.
    missed: u32,
}

/// Number of a timer in its process. Those of `setitimer` are negative.
type Number = i32;

/// All timers that send signals.
#[derive(Debug, Default)]
pub struct Alarms(BTreeMap<(Tid, Number), Alarm>);

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A clock's time now. Absolute times of a date are the machine's by then.
    fn clock_time(&self, pid: Tid, clock: Clock) -> u64 {
        match clock {
            Clock::Machine | Clock::Date => self.machine.now(),
            Clock::Used(User::Process(user)) => self.used(user)[0],
            // Another process may have a thread with the number of one that is gone.
            Clock::Used(User::Thread(thread)) if self.pid(thread) == Ok(pid) => self.machine.used(thread),
            Clock::Used(User::Thread(_)) | Clock::Ended => 0,
        }
    }

    /// Fails unless there is a clock whose time a timer of a process can wait for.
    fn check_clock(&self, pid: Tid, clock: Clock) -> Result<()> {
        let is_there = match clock {
            Clock::Used(User::Thread(thread)) => self.pid(thread) == Ok(pid),
            clock => clock != Clock::Ended,
        };
        if is_there { Ok(()) } else { Err(ESRCH) }
    }

    /// Timers have changed: the machine has to wake when the next is due.
    fn alarms_changed(&mut self) {
        let armed = self.kept.alarms.0.values().filter(|alarm| alarm.at.is_some());
        self.timers.also = armed.map(|alarm| alarm.look).min();
        self.times_changed = true;
    }

    /// When a timer is to be looked at that expires at a time of its clock.
    fn look_at(&self, pid: Tid, clock: Clock, at: u64) -> u64 {
        let (now, left) = (self.machine.now(), at.saturating_sub(self.clock_time(pid, clock)));
        match clock {
            Clock::Machine | Clock::Date => at,
            _ => now.saturating_add(left.max(LOOK_MIN)),
        }
    }

    fn alarm(&mut self, tid: Tid, number: u64) -> Result<((Tid, Number), Alarm)> {
        let key = (self.pid(tid)?, Number::try_from(number as i32).ok().filter(|at| *at >= 0).ok_or(EINVAL)?);
        self.kept.alarms.0.get(&key).map(|alarm| (key, *alarm)).ok_or(EINVAL)
    }

    pub(crate) fn sys_timer_create(&mut self, tid: Tid, [clock, event, to, ..]: [u64; 6]) -> Answer {
        let clock = match clock as u32 {
            CLOCK_REALTIME | CLOCK_REALTIME_ALARM | CLOCK_TAI => Clock::Date,
            CLOCK_MONOTONIC | CLOCK_BOOTTIME | CLOCK_BOOTTIME_ALARM => Clock::Machine,
            CLOCK_PROCESS_CPUTIME_ID => Clock::Used(User::Process(self.pid(tid)?)),
            CLOCK_THREAD_CPUTIME_ID => Clock::Used(User::Thread(tid)),
            clock if (clock as i32) < 0 => match self.user_of(tid, clock, 0)? {
                User::Process(pid) if self.other(pid)?.ended.is_some() => Clock::Ended,
                user => Clock::Used(user),
            },
            _ => return Err(EINVAL),
        };
        let pid = self.pid(tid)?;
        let mut used =
            self.kept.alarms.0.range((pid, 0)..=(pid, Number::MAX)).map(|((_, number), _)| *number);
        let free = (0..).find(|free| used.next() != Some(*free)).ok_or(EAGAIN)?;
        let effect = match event {
            0 => Effect::Signal(SIGALRM, None, u64::from(free.cast_unsigned())),
            at => self.effect_of(tid, at)?,
        };
        if self.kept.alarms.0.len() >= ALARMS_MAX {
            return Err(EAGAIN);
        }
        self.write(tid, to, &free.to_le_bytes())?;
        let alarm = Alarm { clock, effect, at: None, every: 0, look: 0, missed: 0 };
        self.kept.alarms.0.insert((pid, free), alarm);
        DONE
    }

    /// Effect that `struct sigevent` names.
    fn effect_of(&mut self, tid: Tid, at: u64) -> Result<Effect> {
        let [value, kind, thread] = self.words(tid, at)?;
        let (signal, kind) = (kind as u32, (kind >> 32) as u32);
        let is_signal = (1..=SIGNALS as u32).contains(&signal);
        match kind {
            SIGEV_NONE => Ok(Effect::Nothing),
            SIGEV_SIGNAL | SIGEV_THREAD if is_signal => Ok(Effect::Signal(signal, None, value)),
            SIGEV_THREAD_ID if is_signal && self.pid(thread as u32).ok() == self.pid(tid).ok() => {
                Ok(Effect::Signal(signal, Some(thread as u32), value))
            }
            _ => Err(EINVAL),
        }
    }

    pub(crate) fn sys_timer_settime(&mut self, tid: Tid, [timer, flags, new, old, ..]: [u64; 6]) -> Answer {
        let ((pid, number), alarm) = self.alarm(tid, timer)?;
        let [every_seconds, every, seconds, rest] = self.words(tid, new)?;
        let (every, wanted) = (nanoseconds([every_seconds, every])?, nanoseconds([seconds, rest])?);
        self.check_clock(pid, alarm.clock)?;
        if old != 0 {
            self.write_left(tid, pid, old, Some(alarm))?;
        }
        let now = self.clock_time(pid, alarm.clock);
        let at = match (flags as u32 & TIMER_ABSTIME, alarm.clock) {
            (0, _) => now.saturating_add(wanted),
            (_, Clock::Date) => now.saturating_add(wanted.saturating_sub(self.machine.date())),
            _ => wanted,
        };
        let at = (wanted > 0).then_some(at);
        self.set_alarm((pid, number), Alarm { at, every, missed: 0, ..alarm });
        DONE
    }

    fn set_alarm(&mut self, (pid, number): (Tid, Number), alarm: Alarm) {
        let look = alarm.at.map_or(0, |at| self.look_at(pid, alarm.clock, at));
        self.kept.alarms.0.insert((pid, number), Alarm { look, ..alarm });
        self.alarms_changed();
    }

    /// Interval of a timer, and the time that is left.
    fn left(&self, pid: Tid, alarm: Option<Alarm>) -> (u64, u64) {
        let Some(alarm) = alarm else { return (0, 0) };
        let now = self.clock_time(pid, alarm.clock);
        (alarm.every, alarm.at.map_or(0, |at| at.saturating_sub(now).max(1)))
    }

    fn write_left(&mut self, tid: Tid, pid: Tid, to: u64, alarm: Option<Alarm>) -> Result<()> {
        let (every, left) = self.left(pid, alarm);
        self.write_words(tid, to, &[every / SECOND, every % SECOND, left / SECOND, left % SECOND])
    }

    pub(crate) fn sys_timer_gettime(&mut self, tid: Tid, [timer, to, ..]: [u64; 6]) -> Answer {
        let ((pid, _), alarm) = self.alarm(tid, timer)?;
        done(self.write_left(tid, pid, to, Some(alarm)))
    }

    pub(crate) fn sys_timer_getoverrun(&mut self, tid: Tid, [timer, ..]: [u64; 6]) -> Answer {
        let (_, alarm) = self.alarm(tid, timer)?;
        number(Ok(alarm.missed.into()))
    }

    pub(crate) fn sys_timer_delete(&mut self, tid: Tid, [timer, ..]: [u64; 6]) -> Answer {
        let (key, _) = self.alarm(tid, timer)?;
        self.kept.alarms.0.remove(&key);
        self.alarms_changed();
        DONE
    }

    /// Sets a timer of `setitimer` that runs with the CPU time of a process: what was left of the one before, and its interval.
    pub(super) fn set_cpu_timer(
        &mut self,
        tid: Tid,
        kind: u64,
        new: Option<(u64, u64)>,
    ) -> Result<(u64, u64)> {
        let (key, signal) = match kind as u32 {
            ITIMER_VIRTUAL => (-1, SIGVTALRM),
            ITIMER_PROF => (-2, SIGPROF),
            _ => return Err(EINVAL),
        };
        let pid = self.pid(tid)?;
        let before = self.left(pid, self.kept.alarms.0.get(&(pid, key)).copied());
        let Some((every, first)) = new else { return Ok(before) };
        if first == 0 {
            self.kept.alarms.0.remove(&(pid, key));
            self.alarms_changed();
            return Ok(before);
        }
        let (clock, effect) = (Clock::Used(User::Process(pid)), Effect::Plain(signal));
        let at = Some(self.clock_time(pid, clock).saturating_add(first));
        self.set_alarm((pid, key), Alarm { clock, effect, at, every, look: 0, missed: 0 });
        Ok(before)
    }

    /// Sends signals of timers whose time has come.
    pub(crate) fn expire_alarms(&mut self) {
        let now = self.machine.now();
        let is_due = |alarm: &Alarm| alarm.at.is_some() && alarm.look <= now;
        let armed = self.kept.alarms.0.values().filter(|alarm| alarm.at.is_some()).count() as u64;
        let factor = 1 + armed / QUICK_MAX;
        let due: Vec<(Tid, Number)> =
            self.kept.alarms.0.iter().filter(|(_, alarm)| is_due(alarm)).map(|(key, _)| *key).collect();
        for (pid, number) in due {
            // One that was sent before may have ended the process of this one.
            let Some(mut alarm) = self.kept.alarms.0.get(&(pid, number)).copied() else { continue };
            let (Some(at), time) = (alarm.at, self.clock_time(pid, alarm.clock)) else { continue };
            let mut expired = 0;
            if at <= time {
                expired = (time - at).checked_div(alarm.every).map_or(1, |more| more + 1);
                alarm.at = (alarm.every > 0).then(|| at.saturating_add(alarm.every.saturating_mul(expired)));
            }
            alarm.look = alarm.at.map_or(0, |at| {
                let look = self.look_at(pid, alarm.clock, at);
                let is_used = matches!(alarm.clock, Clock::Used(_));
                let least = now.saturating_add(if is_used { LOOK_MIN } else { PERIOD_MIN } * factor);
                // Those that are too quick come together.
                let least = if factor > 1 { least.next_multiple_of(PERIOD_MIN) } else { least };
                look.max(least)
            });
            if let Some(more) = expired.checked_sub(1) {
                let more = more.min(i32::MAX as u64) as u32;
                let missed = self.told_late(pid, number, alarm.effect, more.saturating_add(1));
                alarm.missed = missed.unwrap_or(more).min(i32::MAX as u32);
                self.kept.alarms.0.insert((pid, number), alarm);
                if missed.is_none() {
                    self.send_alarm(pid, number, alarm);
                }
            } else {
                self.kept.alarms.0.insert((pid, number), alarm);
            }
        }
        self.alarms_changed();
    }

    /// A timer expires so often more. How often its signal was missed, if that still waits.
    fn told_late(&mut self, pid: Tid, number: Number, effect: Effect, more: u32) -> Option<u32> {
        let Effect::Signal(_, thread, _) = effect else { return None };
        let pending = match thread {
            Some(thread) => &mut self.threads.get_mut(&thread)?.pending,
            None => &mut self.processes.get_mut(&pid)?.pending,
        };
        pending.miss(number.cast_unsigned(), more)
    }

    fn send_alarm(&mut self, pid: Tid, number: Number, alarm: Alarm) {
        let cause = |value| Cause { code: SI_TIMER, sender: (number.cast_unsigned(), alarm.missed), value };
        let _ = match alarm.effect {
            Effect::Nothing => Ok(()),
            Effect::Plain(signal) => self.send(pid, signal, Cause::KERNEL),
            Effect::Signal(signal, None, value) => self.send(pid, signal, cause(value)),
            Effect::Signal(signal, Some(thread), value) => match self.pid(thread) {
                Ok(owner) if owner == pid => self.send_to_thread(thread, signal, cause(value)),
                _ => Ok(()),
            },
        };
    }

    /// A process begins a program: timers that it has made are gone, and those of `setitimer` go on.
    pub(super) fn forget_made_alarms(&mut self, pid: Tid) {
        self.kept.alarms.0.retain(|(owner, number), _| *owner != pid || *number < 0);
        self.alarms_changed();
    }

    /// A process has ended: its timers and its contexts of requests are gone, and descriptors of it tell so.
    pub(crate) fn process_ended(&mut self, pid: Tid) {
        let all = &mut self.kept.alarms.0;
        let before = all.len();
        all.retain(|(owner, _), _| *owner != pid);
        let mut has_changed = all.len() < before;
        // Those of others that wait for its time do so no longer.
        let ended = Clock::Used(User::Process(pid));
        for alarm in all.values_mut().filter(|alarm| alarm.clock == ended) {
            (alarm.clock, alarm.at, has_changed) = (Clock::Ended, None, true);
        }
        if has_changed {
            self.alarms_changed();
        }
        self.forget_contexts(pid);
        self.tell_pidfd(pid);
    }
}

#[cfg(test)]
mod tests;
