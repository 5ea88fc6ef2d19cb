//! Signals: what is done with them, which are blocked, and who sends them.

use super::done;
use crate::errno::{EAGAIN, EINVAL, ENOMEM, EPERM, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::process::{Event, SIGNALS};
use crate::signal::{ACTION_BYTES, Action, Cause, Set, Signal, Stack, info};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    CAP_KILL, MINSIGSTKSZ, SI_TKILL, SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK, SIGCONT, SIGKILL, SIGSTOP,
    SS_DISABLE, SS_ONSTACK,
};
use vfs::FileSystem;

/// Bytes of a set of signals.
const SET_BYTES: u64 = 8;

/// A signal that a call names.
pub(super) fn signal(number: u64) -> Result<Signal> {
    if (1..=SIGNALS as u64).contains(&number) { Ok(number as Signal) } else { Err(EINVAL) }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_sigaction(&mut self, tid: Tid, [number, new, old, bytes, ..]: [u64; 6]) -> Answer {
        let signal = signal(number)?;
        if bytes != SET_BYTES || new != 0 && matches!(signal, SIGKILL | SIGSTOP) {
            return Err(EINVAL);
        }
        let new = match new {
            0 => None,
            at => Some(Action::read(self.words::<{ ACTION_BYTES / 8 }>(tid, at)?)),
        };
        let index = signal as usize - 1;
        if old != 0 {
            let words = self.process(tid)?.actions[index].words();
            self.write_words(tid, old, &words)?;
        }
        if let Some(new) = new {
            self.process(tid)?.actions[index] = new;
            if new.ignores(signal) {
                let pid = self.pid(tid)?;
                self.forget_signal(pid, signal);
            }
        }
        DONE
    }

    pub(crate) fn sys_sigprocmask(&mut self, tid: Tid, [how, new, old, bytes, ..]: [u64; 6]) -> Answer {
        if bytes != SET_BYTES {
            return Err(EINVAL);
        }
        let before = self.thread(tid)?.mask;
        if new != 0 {
            let [set] = self.words(tid, new)?;
            let mask = match how as u32 {
                SIG_BLOCK => before.0 | set,
                SIG_UNBLOCK => before.0 & !set,
                SIG_SETMASK => set,
                _ => return Err(EINVAL),
            };
            self.thread(tid)?.mask = Set(mask).as_mask();
            if mask & !before.0 != 0 {
                let pid = self.pid(tid)?;
                self.hand_on(pid);
            }
        }
        if old != 0 {
            self.write_words(tid, old, &[before.0])?;
        }
        DONE
    }

    pub(crate) fn sys_sigreturn(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        match self.return_from_handler(tid) {
            Ok(true) => return Ok(Outcome::Registers),
            Ok(false) => {}
            Err(_) => self.exception(tid, linux_raw_sys::general::SIGSEGV, Cause::KERNEL, [0; 3]),
        }
        Ok(Outcome::Gone)
    }

    /// Blocks other signals while a call waits.
    pub fn mask_meanwhile(&mut self, tid: Tid, set: u64, bytes: u64) -> Result<()> {
        // A call that is made again has read it before.
        if set == 0 || self.thread(tid)?.mask_before.is_some() {
            return Ok(());
        }
        if bytes != SET_BYTES {
            return Err(EINVAL);
        }
        let [mask] = self.words(tid, set)?;
        let thread = self.thread(tid)?;
        thread.mask_before = Some(thread.mask);
        thread.mask = Set(mask).as_mask();
        Ok(())
    }

    pub(crate) fn sys_sigsuspend(&mut self, tid: Tid, [set, bytes, ..]: [u64; 6]) -> Answer {
        if set == 0 {
            return Err(crate::errno::EFAULT);
        }
        self.mask_meanwhile(tid, set, bytes)?;
        Ok(Outcome::Wait(Vec::new(), None))
    }

    pub(crate) fn sys_pause(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        Ok(Outcome::Wait(Vec::new(), None))
    }

    pub(crate) fn sys_sigpending(&mut self, tid: Tid, [to, bytes, ..]: [u64; 6]) -> Answer {
        if bytes != SET_BYTES {
            return Err(EINVAL);
        }
        let process = self.process(tid)?.pending.set();
        let thread = self.thread(tid)?;
        let waiting = (process.0 | thread.pending.set().0) & thread.mask.0;
        done(self.write_words(tid, to, &[waiting]))
    }

    pub(crate) fn sys_sigtimedwait(&mut self, tid: Tid, [set, to, timeout, bytes, ..]: [u64; 6]) -> Answer {
        if bytes != SET_BYTES {
            return Err(EINVAL);
        }
        let [set] = self.words(tid, set)?;
        let wanted = Set(set).as_mask();
        let own = self.thread(tid)?.pending.take_of(wanted);
        let found = match own {
            Some(found) => Some(found),
            None => self.process(tid)?.pending.take_of(wanted),
        };
        let Some((signal, cause)) = found else {
            let until = self.deadline(tid, timeout)?;
            if until.is_some_and(|until| until <= self.machine.now()) {
                return Err(EAGAIN);
            }
            let pid = self.pid(tid)?;
            let thread = self.thread(tid)?;
            // Signals that are waited for have no other effect meanwhile, also those that are ignored otherwise.
            if thread.mask_before.is_none() {
                thread.mask_before = Some(thread.mask);
                thread.mask = Set(thread.mask.0 | wanted.0).as_mask();
            }
            return Ok(Outcome::Wait(Vec::from([Event::Signal(pid)]), until));
        };
        if to != 0 {
            self.write(tid, to, &info(signal, &cause))?;
        }
        Ok(Outcome::Value(signal.into()))
    }

    pub(crate) fn sys_sigaltstack(&mut self, tid: Tid, [new, old, ..]: [u64; 6]) -> Answer {
        let mut state = self.room_for_state();
        let is_there = self.machine.state_in_call(tid, &mut state);
        let sp = state.registers[abi::state::register::RSP];
        self.spare_state = Some(state);
        if !is_there {
            return Err(ESRCH);
        }
        let before = self.thread(tid)?.stack;
        let new = match new {
            0 => None,
            at => Some(self.words::<3>(tid, at)?),
        };
        if let Some([address, flags, len]) = new {
            let flags = flags as u32;
            if before.len > 0 && before.has(sp) {
                return Err(EPERM);
            }
            self.thread(tid)?.stack = match flags {
                SS_DISABLE => Stack::NONE,
                0 | SS_ONSTACK if len < MINSIGSTKSZ.into() => return Err(ENOMEM),
                // It is on it when a handler is: to say so changes nothing.
                0 | SS_ONSTACK => Stack { address, flags: 0, len },
                _ => return Err(EINVAL),
            };
        }
        if old != 0 {
            self.write_words(tid, old, &before.words(sp))?;
        }
        DONE
    }

    /// Whether a thread may send a signal to a process. Whoever has a process in his session may let it go on, whatever owner it has set.
    pub(super) fn may_signal(&self, tid: Tid, pid: Tid, number: u64) -> bool {
        let own = self.pid(tid).ok().and_then(|own| self.processes.get(&own));
        let (Some(own), Some(other)) = (own, self.processes.get(&pid)) else { return false };
        let [real, effective, _] = own.owners.owner;
        let [other_real, _, other_saved] = other.owners.owner;
        self.can(tid, CAP_KILL)
            || [real, effective].iter().any(|owner| [other_real, other_saved].contains(owner))
            || number == u64::from(SIGCONT) && own.session == other.session
    }

    pub(crate) fn sys_kill(&mut self, tid: Tid, [pid, number, ..]: [u64; 6]) -> Answer {
        let own = self.pid(tid)?;
        let owner = self.process(tid)?.owners.owner[0];
        let cause = Cause::process(own, owner);
        let pid = pid as i32;
        let meant: Vec<Tid> = match pid {
            0 => self.members(self.other(own)?.group),
            -1 => self.processes.keys().copied().filter(|pid| *pid != 1 && *pid != own).collect(),
            pid if pid < 0 => self.members(pid.unsigned_abs()),
            pid => self.process_with(pid as u32).into_iter().collect(),
        };
        if meant.is_empty() {
            return Err(ESRCH);
        }
        if number > SIGNALS as u64 {
            return Err(EINVAL);
        }
        let mut allowed: Vec<Tid> =
            meant.into_iter().filter(|pid| self.may_signal(tid, *pid, number)).collect();
        if allowed.is_empty() {
            return Err(EPERM);
        }
        if number != 0 {
            // The caller last: it may end by it. One that another has taken along keeps the rest from nothing.
            allowed.sort_by_key(|pid| *pid == own);
            let mut outcome = Err(ESRCH);
            for pid in allowed {
                let sent = self.send(pid, signal(number)?, cause);
                outcome = if outcome.is_ok() { outcome } else { sent };
            }
            outcome?;
        }
        self.unless_gone(tid)
    }

    /// The process that has a number itself, or as that of one of its threads.
    fn process_with(&self, number: Tid) -> Option<Tid> {
        if self.processes.contains_key(&number) { Some(number) } else { self.pid(number).ok() }
    }

    /// Done, if the caller is still there, and goes on.
    pub(super) fn unless_gone(&self, tid: Tid) -> Answer {
        if self.threads.contains_key(&tid) && !self.is_killed(tid) { DONE } else { Ok(Outcome::Gone) }
    }

    pub(crate) fn sys_tkill(&mut self, tid: Tid, [thread, number, ..]: [u64; 6]) -> Answer {
        let pid = self.pid(thread as u32)?;
        self.sys_tgkill(tid, [pid.into(), thread, number, 0, 0, 0])
    }

    pub(crate) fn sys_tgkill(&mut self, tid: Tid, [pid, thread, number, ..]: [u64; 6]) -> Answer {
        let own = self.pid(tid)?;
        let thread = thread as u32;
        if self.pid(thread)? != pid as u32 {
            return Err(ESRCH);
        }
        if number > SIGNALS as u64 {
            return Err(EINVAL);
        }
        if !self.may_signal(tid, pid as u32, number) {
            return Err(EPERM);
        }
        if number != 0 {
            let owner = self.process(tid)?.owners.owner[0];
            let cause = Cause { code: SI_TKILL, ..Cause::process(own, owner) };
            self.send_to_thread(thread, signal(number)?, cause)?;
        }
        self.unless_gone(tid)
    }
}
