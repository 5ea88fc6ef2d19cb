//! `seccomp`: a thread gives up calls, for itself and for all that it begins. Each call is looked at then; others pay for one look whether anybody has asked.
//!
//! A thread has a list of filters, to which one is added and nothing is taken away. All of them look at each call, and the most severe action counts. A call that has
//! waited was looked at when it was made.

use super::number;
use crate::budget::Share;
use crate::errno::{EACCES, EINVAL, ENOMEM, ENOSYS, EOPNOTSUPP, ESRCH};
use crate::filter::{self, ARCHITECTURE, CHECKED_BYTES, INSTRUCTION_BYTES, INSTRUCTIONS_MAX, Program};
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::process::Status;
use crate::signal::Cause;
use crate::system::{Answer, DONE, Outcome, System};
use abi::state::register;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    __NR_exit, __NR_read, __NR_rt_sigreturn, __NR_write, CAP_SYS_ADMIN, SIGKILL, SIGSYS, SYS_SECCOMP,
};
use linux_raw_sys::ptrace::{
    SECCOMP_FILTER_FLAG_LOG, SECCOMP_FILTER_FLAG_SPEC_ALLOW, SECCOMP_FILTER_FLAG_TSYNC,
    SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SECCOMP_GET_ACTION_AVAIL, SECCOMP_MODE_FILTER, SECCOMP_MODE_STRICT,
    SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ALLOW, SECCOMP_RET_DATA, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_LOG, SECCOMP_RET_TRACE, SECCOMP_RET_TRAP,
    SECCOMP_RET_USER_NOTIF, SECCOMP_SET_MODE_FILTER, SECCOMP_SET_MODE_STRICT,
};
use vfs::FileSystem;

/// Calls that are left to a thread without filters.
const STRICT: [u32; 4] = [__NR_read, __NR_write, __NR_exit, __NR_rt_sigreturn];

/// Instructions of all filters of a thread, at most, each filter with [`EACH`] more: as in Linux.
const ALL_MAX: usize = 32_768;
/// See [`ALL_MAX`].
const EACH: usize = 4;

/// Bytes of the budget that a filter counts for, beside its instructions, and a list beside its filters.
const FILTER_BYTES: usize = 128;
/// See [`FILTER_BYTES`].
const LIST_BYTES: usize = 96;

/// Calls that are told of, at most: lines are for whoever looks for what a filter forgets.
const TOLD_MAX: usize = 64;

/// Highest number of an error.
const ERROR_MAX: u32 = 4095;

/// A filter.
#[derive(Debug)]
struct Filter {
    program: Program,
    /// Whether calls that it does not just allow are told of.
    tells: bool,
    _share: Share,
}

/// Filters of a thread, from the first one on.
#[derive(Debug)]
pub struct Filters {
    all: Vec<Rc<Filter>>,
    _share: Share,
}

/// Calls that are left to a thread.
#[derive(Clone, Default, Debug)]
pub enum Restriction {
    /// All calls.
    #[default]
    None,
    /// Reading, writing, and ending.
    Strict,
    /// Calls that filters allow.
    Filters(Rc<Filters>),
}

impl Restriction {
    /// Its number, as `prctl` and `/proc` tell it.
    pub const fn mode(&self) -> u32 {
        match self {
            Restriction::None => 0,
            Restriction::Strict => SECCOMP_MODE_STRICT,
            Restriction::Filters(_) => SECCOMP_MODE_FILTER,
        }
    }

    /// How many filters it has.
    pub fn filter_count(&self) -> usize {
        self.list().len()
    }

    fn list(&self) -> &[Rc<Filter>] {
        match self {
            Restriction::Filters(filters) => &filters.all,
            _ => &[],
        }
    }

    /// Whether its filters are the first ones of another's.
    fn is_before(&self, other: &Restriction) -> bool {
        let (own, other) = (self.list(), other.list());
        let is_same = |(own, other): (&Rc<Filter>, &Rc<Filter>)| Rc::ptr_eq(own, other);
        !matches!(self, Restriction::Strict) && own.len() <= other.len() && own.iter().zip(other).all(is_same)
    }

    /// Lists and filters with what they count for, each by its address.
    #[cfg(test)]
    pub fn held(&self) -> Vec<(usize, usize)> {
        let Restriction::Filters(filters) = self else { return Vec::new() };
        let mut held = vec![(Rc::as_ptr(filters) as usize, LIST_BYTES + 8 * filters.all.len())];
        let bytes = |filter: &Rc<Filter>| FILTER_BYTES + CHECKED_BYTES * filter.program.count();
        held.extend(filters.all.iter().map(|filter| (Rc::as_ptr(filter) as usize, bytes(filter))));
        held
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_seccomp(&mut self, tid: Tid, [operation, flags, argument, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        match operation as u32 {
            SECCOMP_SET_MODE_STRICT if flags == 0 && argument == 0 => self.restrict_strictly(tid),
            SECCOMP_SET_MODE_FILTER => self.add_filter(tid, flags, argument),
            SECCOMP_GET_ACTION_AVAIL if flags == 0 => {
                let mut action = [0; 4];
                self.read(tid, argument, &mut action)?;
                match u32::from_le_bytes(action) {
                    SECCOMP_RET_KILL_PROCESS
                    | SECCOMP_RET_KILL_THREAD
                    | SECCOMP_RET_TRAP
                    | SECCOMP_RET_ERRNO
                    | SECCOMP_RET_LOG
                    | SECCOMP_RET_ALLOW => DONE,
                    _ => Err(EOPNOTSUPP),
                }
            }
            _ => Err(EINVAL),
        }
    }

    /// `prctl` with `PR_SET_SECCOMP`.
    pub(super) fn set_restriction(&mut self, tid: Tid, mode: u64, argument: u64) -> Answer {
        match u32::try_from(mode) {
            Ok(SECCOMP_MODE_STRICT) => self.restrict_strictly(tid),
            Ok(SECCOMP_MODE_FILTER) => self.add_filter(tid, 0, argument),
            _ => Err(EINVAL),
        }
    }

    fn restrict_strictly(&mut self, tid: Tid) -> Answer {
        let restriction = &mut self.thread(tid)?.restriction;
        if matches!(restriction, Restriction::Filters(_)) {
            return Err(EINVAL);
        }
        *restriction = Restriction::Strict;
        self.restricts = true;
        DONE
    }

    /// Adds a filter to those of a thread, or of all threads of its process. The number of a thread that has other filters, if there is one: then nothing was done.
    fn add_filter(&mut self, tid: Tid, flags: u32, at: u64) -> Answer {
        let known = SECCOMP_FILTER_FLAG_TSYNC
            | SECCOMP_FILTER_FLAG_LOG
            | SECCOMP_FILTER_FLAG_SPEC_ALLOW
            | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
        if flags & !known != 0 {
            return Err(EINVAL);
        }
        let [count, from] = self.words(tid, at)?;
        let count = usize::from(count as u16);
        if count == 0 || count > INSTRUCTIONS_MAX {
            return Err(EINVAL);
        }
        // Otherwise a program that sets an owner could be misled by calls that do nothing.
        if !self.process(tid)?.has_no_new_rights && !self.can(tid, CAP_SYS_ADMIN) {
            return Err(EACCES);
        }
        let mut bytes = vec![0; count * INSTRUCTION_BYTES];
        self.read(tid, from, &mut bytes)?;
        let share = self.budget.take(FILTER_BYTES + CHECKED_BYTES * count).ok_or(ENOMEM)?;
        let program = Program::new(&bytes)?;
        let before = self.thread(tid)?.restriction.clone();
        if matches!(before, Restriction::Strict) {
            return Err(EINVAL);
        }
        let instructions: usize = before.list().iter().map(|filter| filter.program.count() + EACH).sum();
        if instructions + count > ALL_MAX {
            return Err(ENOMEM);
        }
        let mut threads = Vec::from([tid]);
        if flags & SECCOMP_FILTER_FLAG_TSYNC != 0 {
            threads = self.process(tid)?.threads.clone();
            let differs = |other: &Tid| {
                self.threads.get(other).is_some_and(|other| !other.restriction.is_before(&before))
            };
            if let Some(other) = threads.iter().copied().find(differs) {
                let is_error = flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH != 0;
                return if is_error { Err(ESRCH) } else { number(Ok(other.into())) };
            }
        }
        let list = self.budget.take(LIST_BYTES + 8 * (before.list().len() + 1)).ok_or(ENOMEM)?;
        let filter = Filter { program, tells: flags & SECCOMP_FILTER_FLAG_LOG != 0, _share: share };
        let mut all = Vec::with_capacity(before.list().len() + 1);
        all.extend_from_slice(before.list());
        all.push(Rc::new(filter));
        let after = Restriction::Filters(Rc::new(Filters { all, _share: list }));
        for tid in threads {
            self.thread(tid)?.restriction = after.clone();
        }
        self.restricts = true;
        DONE
    }

    /// The outcome of a call that its thread may not make. None: it may.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&mut self, tid: Tid, registers: &Registers) -> Option<Answer> {
        let thread = self.threads.get(&tid)?;
        if thread.until.is_some() {
            return None;
        }
        let number = registers.rax as u32;
        match thread.restriction.clone() {
            Restriction::None => None,
            Restriction::Strict if STRICT.contains(&number) => None,
            Restriction::Strict => {
                self.end_thread(tid, Status::killed(SIGKILL));
                Some(Ok(Outcome::Gone))
            }
            Restriction::Filters(filters) => self.filter(tid, registers, &filters),
        }
    }

    /// Address behind the call that a thread makes.
    fn call_address(&mut self, tid: Tid) -> u64 {
        let mut state = self.room_for_state();
        let is_known = self.machine.state_in_call(tid, &mut state);
        let address = if is_known { state.registers[register::RIP] } else { 0 };
        self.spare_state = Some(state);
        address
    }

    fn filter(&mut self, tid: Tid, registers: &Registers, filters: &Filters) -> Option<Answer> {
        let number = registers.rax as u32;
        let needs_address = filters.all.iter().any(|filter| filter.program.needs_address);
        let address = if needs_address { self.call_address(tid) } else { 0 };
        let data = filter::data(number, address, registers.arguments());
        let action = |verdict: u32| (verdict & SECCOMP_RET_ACTION_FULL).cast_signed();
        let (mut verdict, mut tells) = (SECCOMP_RET_ALLOW, false);
        for filter in filters.all.iter().rev() {
            let found = filter.program.run(&data);
            if action(found) < action(verdict) {
                (verdict, tells) = (found, filter.tells);
            }
        }
        let (action, value) = (verdict & SECCOMP_RET_ACTION_FULL, verdict & SECCOMP_RET_DATA);
        if action == SECCOMP_RET_LOG || tells && action != SECCOMP_RET_ALLOW {
            self.tell_refused(number, action);
        }
        match action {
            SECCOMP_RET_ALLOW | SECCOMP_RET_LOG => None,
            SECCOMP_RET_ERRNO => Some(super::number(Ok(u64::from(value.min(ERROR_MAX)).wrapping_neg()))),
            SECCOMP_RET_TRAP => Some(self.trap(tid, registers)),
            // Nobody looks on who could say something else.
            SECCOMP_RET_TRACE | SECCOMP_RET_USER_NOTIF => Some(Err(ENOSYS)),
            SECCOMP_RET_KILL_THREAD => {
                self.end_thread(tid, Status::killed(SIGSYS));
                Some(Ok(Outcome::Gone))
            }
            _ => Some(self.end_by_call(tid)),
        }
    }

    fn end_by_call(&mut self, tid: Tid) -> Answer {
        let pid = self.pid(tid)?;
        self.end_process(pid, Status::killed(SIGSYS));
        Ok(Outcome::Gone)
    }

    /// A thread gets a signal in the place of its call, whose number stays where the result would be. A process that does not handle it ends.
    fn trap(&mut self, tid: Tid, registers: &Registers) -> Answer {
        let is_handled =
            self.process(tid)?.actions.get(SIGSYS as usize - 1).is_some_and(|action| action.handler > 1);
        if !is_handled || self.thread(tid)?.mask.has(SIGSYS) {
            return self.end_by_call(tid);
        }
        let address = self.call_address(tid);
        let value = u64::from(ARCHITECTURE) << 32 | registers.rax;
        let sender = (address as u32, (address >> 32) as u32);
        self.thread(tid)?.pending.add(SIGSYS, Cause { code: SYS_SECCOMP as i32, sender, value });
        number(Ok(registers.rax))
    }

    /// Tells of a call that a filter has something against.
    fn tell_refused(&mut self, number: u32, action: u32) {
        if self.kept.refused < TOLD_MAX {
            self.kept.refused += 1;
            let name = crate::decode::name_or_number(number.into());
            self.machine.log(format_args!("a filter is asked for {name}: {action:#x}"));
        }
    }
}

#[cfg(test)]
mod tests;
