//! How much of the processor threads get beside others that compute: niceness, and classes of scheduling. Threads take turns, and whoever is to have less has shorter ones.

use super::{done, number};
use crate::errno::{E2BIG, EACCES, EINVAL, EPERM, ESRCH, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::system::{Answer, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    CAP_SYS_NICE, PRIO_PGRP, PRIO_PROCESS, PRIO_USER, RLIMIT_NICE, SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO,
    SCHED_FLAG_KEEP_PARAMS, SCHED_FLAG_KEEP_POLICY, SCHED_FLAG_RESET_ON_FORK, SCHED_IDLE, SCHED_NORMAL,
    SCHED_RESET_ON_FORK, SCHED_RR,
};
use vfs::FileSystem;

/// Share of a thread that is as nice as most.
pub const USUAL_SHARE: u32 = 1024;

/// Share of a thread of the class `SCHED_IDLE`.
const IDLE_SHARE: u32 = 3;

/// Least and greatest niceness.
const NICENESS: [i32; 2] = [-20, 19];

/// Nanoseconds of a usual turn, as a program is told.
const SLICE_NS: u64 = 4_000_000;

/// Bytes of `struct sched_attr` in its first form.
const ATTRIBUTES_BYTES: u64 = 48;

/// Bit of a priority of I/O at which its class begins.
const IO_CLASS_SHIFT: u32 = 13;

/// Levels of a class of I/O.
const IO_LEVELS: u64 = 8;

/// A priority of I/O for who has none: that of the usual class, in the middle.
const USUAL_IO: u64 = 2 << IO_CLASS_SHIFT | 4;

/// Wishes of a thread about when it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wishes {
    /// From -20, for most of the processor, to 19.
    pub niceness: i8,
    /// `SCHED_NORMAL`, `SCHED_BATCH` or `SCHED_IDLE`.
    pub class: u32,
    /// Whether threads that it makes get no more than usual (`SCHED_RESET_ON_FORK`).
    pub resets: bool,
    /// Priority of its I/O, which it is told, and nothing heeds.
    pub io: u16,
}

impl Wishes {
    /// A thread without any.
    pub const USUAL: Wishes = Wishes { niceness: 0, class: SCHED_NORMAL, resets: false, io: 0 };

    /// Those of a thread that this one makes.
    pub fn inherited(self) -> Wishes {
        match self.resets {
            true => Wishes { niceness: self.niceness.max(0), resets: false, ..self },
            false => self,
        }
    }

    /// Its share of the processor in parts of [`USUAL_SHARE`]: a step of niceness is a quarter more, or a fifth less.
    pub fn share(self) -> u32 {
        let step = |share: u32, _| if self.niceness < 0 { share * 5 / 4 } else { share * 4 / 5 };
        match self.class {
            SCHED_IDLE => IDLE_SHARE,
            _ => (0..self.niceness.unsigned_abs()).fold(USUAL_SHARE, step),
        }
    }

    /// Class as calls give it and get it, with the mark of [`Wishes::resets`].
    fn policy(self) -> u32 {
        self.class | if self.resets { SCHED_RESET_ON_FORK } else { 0 }
    }
}

/// A class of scheduling that is asked for, with the niceness that goes with it if any does.
struct Asked {
    class: u32,
    priority: u32,
    resets: bool,
    niceness: Option<i8>,
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The thread of a number, 0 for the caller.
    fn named_thread(&self, tid: Tid, named: u64) -> Result<Tid> {
        let named = named as i32;
        match u32::try_from(named).map_err(|_| EINVAL)? {
            0 => Ok(tid),
            named if self.threads.contains_key(&named) => Ok(named),
            _ => Err(ESRCH),
        }
    }

    /// Threads that calls about priorities mean: one, those of a process group, or all of an owner.
    fn scheduled(&mut self, tid: Tid, kind: u32, number: u64) -> Result<Vec<Tid>> {
        let number = number as u32;
        let own = self.process(tid)?;
        let (group, owner) = (own.group, own.owners.owner[0]);
        let all = |is_meant: &dyn Fn(&crate::process::Process) -> bool| {
            let threads = self
                .threads
                .iter()
                .filter(|(_, thread)| self.processes.get(&thread.process).is_some_and(is_meant));
            threads.map(|(tid, _)| *tid).collect()
        };
        let meant: Vec<Tid> = match kind {
            PRIO_PROCESS if number == 0 => Vec::from([tid]),
            PRIO_PROCESS => Vec::from_iter(self.threads.contains_key(&number).then_some(number)),
            PRIO_PGRP => {
                let group = if number == 0 { group } else { number };
                all(&|process| process.group == group)
            }
            PRIO_USER => {
                let owner = if number == 0 { owner } else { number };
                all(&|process| process.owners.owner[0] == owner)
            }
            _ => return Err(EINVAL),
        };
        if meant.is_empty() { Err(ESRCH) } else { Ok(meant) }
    }

    fn wishes(&self, of: Tid) -> Wishes {
        self.threads.get(&of).map_or(Wishes::USUAL, |thread| thread.wishes)
    }

    /// Tells the machine of a thread that it was just given, if it is not like most.
    pub(super) fn share_out(&mut self, of: Tid) {
        let share = self.wishes(of).share();
        if share != USUAL_SHARE {
            self.machine.set_share(of, share);
        }
    }

    fn set_wishes(&mut self, of: Tid, wishes: Wishes) -> Result<()> {
        let before = core::mem::replace(&mut self.thread(of)?.wishes, wishes);
        if before.share() != wishes.share() {
            self.machine.set_share(of, wishes.share());
        }
        Ok(())
    }

    /// Whether a thread may say when another one runs: its owner in effect has that one's process, or it may say so of all.
    fn may_schedule(&mut self, tid: Tid, of: Tid) -> Result<bool> {
        let own = self.process(tid)?.owners.owner[1];
        let [real, effective, _] = self.process(of)?.owners.owner;
        Ok(own == real || own == effective || self.can(tid, CAP_SYS_NICE))
    }

    /// Whether a thread may make another one less nice than it is.
    fn may_be_less_nice(&mut self, tid: Tid, of: Tid, niceness: i8) -> Result<bool> {
        let [most, _] = self.process(of)?.limits[RLIMIT_NICE as usize];
        Ok((20 - i64::from(niceness)) as u64 <= most || self.can(tid, CAP_SYS_NICE))
    }

    pub(crate) fn sys_setpriority(&mut self, tid: Tid, [kind, who, niceness, ..]: [u64; 6]) -> Answer {
        let niceness = (niceness as i32).clamp(NICENESS[0], NICENESS[1]) as i8;
        let mut outcome = Ok(());
        for of in self.scheduled(tid, kind as u32, who)? {
            let wishes = self.wishes(of);
            // The last failure is told, though others may have succeeded.
            if !self.may_schedule(tid, of)? {
                outcome = Err(EPERM);
            } else if niceness < wishes.niceness && !self.may_be_less_nice(tid, of, niceness)? {
                outcome = Err(EACCES);
            } else {
                self.set_wishes(of, Wishes { niceness, ..wishes })?;
            }
        }
        done(outcome)
    }

    /// The least niceness of threads, as 20 less it.
    pub(crate) fn sys_getpriority(&mut self, tid: Tid, [kind, who, ..]: [u64; 6]) -> Answer {
        let meant = self.scheduled(tid, kind as u32, who)?;
        let least = meant.into_iter().map(|of| self.wishes(of).niceness).min();
        number(Ok((20 - i64::from(least.unwrap_or(0))) as u64))
    }

    pub(crate) fn sys_ioprio_set(&mut self, tid: Tid, [kind, who, priority, ..]: [u64; 6]) -> Answer {
        let priority = u64::from(priority as u32);
        let (class, level) = (priority >> IO_CLASS_SHIFT, priority & ((1 << IO_CLASS_SHIFT) - 1));
        // Classes: none, before all others, the usual one, behind all others.
        match class {
            0 if level > 0 => return Err(EINVAL),
            1 if !self.can(tid, CAP_SYS_NICE) => return Err(EPERM),
            1 | 2 if level >= IO_LEVELS => return Err(EINVAL),
            0..=3 => {}
            _ => return Err(EINVAL),
        }
        // Kinds of threads are numbered from 1 here.
        for of in self.scheduled(tid, (kind as u32).wrapping_sub(1), who)? {
            if !self.may_schedule(tid, of)? {
                return Err(EPERM);
            }
            self.set_wishes(of, Wishes { io: priority as u16, ..self.wishes(of) })?;
        }
        done(Ok(()))
    }

    /// The best priority of I/O that one of the threads has. The priority of one thread is as it was set.
    pub(crate) fn sys_ioprio_get(&mut self, tid: Tid, [kind, who, ..]: [u64; 6]) -> Answer {
        let meant = self.scheduled(tid, (kind as u32).wrapping_sub(1), who)?;
        let of = |thread: &Tid| u64::from(self.wishes(*thread).io);
        number(Ok(match meant.as_slice() {
            [one] => of(one),
            all => all.iter().map(of).map(|io| if io == 0 { USUAL_IO } else { io }).min().unwrap_or(USUAL_IO),
        }))
    }

    /// Gives a thread a class, if the caller may. Nobody has one in which threads run before all others.
    fn set_class(&mut self, tid: Tid, of: Tid, asked: Asked) -> Result<()> {
        let Asked { class, priority, resets, niceness } = asked;
        let [least, most] = priorities(class)?;
        if !(least..=most).contains(&priority) {
            return Err(EINVAL);
        }
        let wishes = self.wishes(of);
        if !matches!(class, SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE) {
            return Err(EPERM);
        }
        let niceness = niceness.filter(|_| class != SCHED_IDLE).unwrap_or(wishes.niceness);
        let has_less = wishes.class == SCHED_IDLE && class != SCHED_IDLE || niceness < wishes.niceness;
        let keeps_mark = resets || !wishes.resets || self.can(tid, CAP_SYS_NICE);
        if has_less && !self.may_be_less_nice(tid, of, niceness)?
            || !self.may_schedule(tid, of)?
            || !keeps_mark
        {
            return Err(EPERM);
        }
        self.set_wishes(of, Wishes { niceness, class, resets, ..wishes })
    }

    pub(crate) fn sys_sched_getscheduler(&mut self, tid: Tid, [thread, ..]: [u64; 6]) -> Answer {
        let of = self.named_thread(tid, thread)?;
        number(Ok(self.wishes(of).policy().into()))
    }

    pub(crate) fn sys_sched_setscheduler(&mut self, tid: Tid, [thread, policy, at, ..]: [u64; 6]) -> Answer {
        let of = self.named_thread(tid, thread)?;
        let mut bytes = [0; 4];
        self.read(tid, at, &mut bytes)?;
        let (class, resets) =
            (policy as u32 & !SCHED_RESET_ON_FORK, policy as u32 & SCHED_RESET_ON_FORK != 0);
        let asked = Asked { class, priority: u32::from_le_bytes(bytes), resets, niceness: None };
        done(self.set_class(tid, of, asked))
    }

    pub(crate) fn sys_sched_setparam(&mut self, tid: Tid, [thread, at, ..]: [u64; 6]) -> Answer {
        let of = self.named_thread(tid, thread)?;
        self.sys_sched_setscheduler(tid, [thread, self.wishes(of).policy().into(), at, 0, 0, 0])
    }

    pub(crate) fn sys_sched_getparam(&mut self, tid: Tid, [thread, to, ..]: [u64; 6]) -> Answer {
        self.named_thread(tid, thread)?;
        done(self.write(tid, to, &[0; 4]))
    }

    pub(crate) fn sys_sched_getattr(&mut self, tid: Tid, [thread, to, len, flags, ..]: [u64; 6]) -> Answer {
        let of = self.named_thread(tid, thread)?;
        if !(ATTRIBUTES_BYTES..=PAGE).contains(&len) || flags != 0 {
            return Err(EINVAL);
        }
        let Wishes { niceness, class, resets, .. } = self.wishes(of);
        let head = ATTRIBUTES_BYTES | u64::from(class) << 32;
        let flags = if resets { SCHED_FLAG_RESET_ON_FORK.into() } else { 0 };
        let niceness = u64::from(i32::from(niceness) as u32);
        done(self.write_words(tid, to, &[head, flags, niceness, 0, 0, 0]))
    }

    pub(crate) fn sys_sched_setattr(&mut self, tid: Tid, [thread, at, flags, ..]: [u64; 6]) -> Answer {
        let of = self.named_thread(tid, thread)?;
        let [head, marks, other] = self.words(tid, at)?;
        let (len, class, priority) = (head as u32, (head >> 32) as u32, (other >> 32) as u32);
        if flags != 0 {
            return Err(EINVAL);
        }
        if u64::from(len) > PAGE || len > 0 && u64::from(len) < ATTRIBUTES_BYTES {
            return Err(E2BIG);
        }
        let known = [SCHED_FLAG_RESET_ON_FORK, SCHED_FLAG_KEEP_POLICY, SCHED_FLAG_KEEP_PARAMS];
        if known.iter().fold(marks, |left, flag| left & !u64::from(*flag)) != 0 {
            return Err(EINVAL);
        }
        let has = |flag: u32| marks & u64::from(flag) != 0;
        let class = if has(SCHED_FLAG_KEEP_POLICY) { self.wishes(of).class } else { class };
        let niceness = (other as i32).clamp(NICENESS[0], NICENESS[1]) as i8;
        let niceness = (!has(SCHED_FLAG_KEEP_PARAMS)).then_some(niceness);
        let priority = if niceness.is_some() { priority } else { 0 };
        let resets = has(SCHED_FLAG_RESET_ON_FORK);
        done(self.set_class(tid, of, Asked { class, priority, resets, niceness }))
    }

    pub(crate) fn sys_sched_get_priority_max(&mut self, _: Tid, [policy, ..]: [u64; 6]) -> Answer {
        number(priorities(policy as u32).map(|[_, most]| most.into()))
    }

    pub(crate) fn sys_sched_get_priority_min(&mut self, _: Tid, [policy, ..]: [u64; 6]) -> Answer {
        number(priorities(policy as u32).map(|[least, _]| least.into()))
    }

    pub(crate) fn sys_sched_rr_get_interval(&mut self, tid: Tid, [thread, to, ..]: [u64; 6]) -> Answer {
        self.named_thread(tid, thread)?;
        done(self.write_words(tid, to, &[0, SLICE_NS]))
    }
}

/// Least and highest priority of a class.
fn priorities(policy: u32) -> Result<[u32; 2]> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok([1, 99]),
        SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok([0, 0]),
        _ => Err(EINVAL),
    }
}

#[cfg(test)]
mod tests;
