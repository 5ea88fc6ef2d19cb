//! Numbers of processes, groups and owners, and what the system says of itself.

use super::time::SECOND;
use super::{done, number};
use crate::errno::{EACCES, EFAULT, EINVAL, ENOSYS, EPERM, ESRCH, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general as nr;
use vfs::FileSystem;

/// Bytes of each text of `uname`.
const NAME_BYTES: usize = 65;

/// Texts of `uname`: the interface is that of this version of Linux.
const NAMES: [&str; 6] = ["Linux", "tern", "6.1.0-tern", "#1 Tern", "x86_64", "(none)"];

/// Most groups of a process.
const GROUPS_MAX: usize = 64;

/// Most random bytes that one call fills.
const RANDOM_MAX: u64 = 1 << 20;

/// A number that changes nothing.
const SAME: u32 = u32::MAX;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The result of a call that only says who asks: it needs neither files nor memory, waits for nothing and tells nobody, so nothing has to be prepared for it or looked at behind
    /// it. None: any other call, or a signal is to be taken behind it, or somebody wants to be told of it.
    #[inline]
    pub(crate) fn says_who(&self, tid: Tid, number: u32) -> Option<u64> {
        let is_one = matches!(
            number,
            nr::__NR_getpid
                | nr::__NR_gettid
                | nr::__NR_getppid
                | nr::__NR_getpgrp
                | nr::__NR_getuid
                | nr::__NR_geteuid
                | nr::__NR_getgid
                | nr::__NR_getegid
        );
        if !is_one || self.trace.is_some() || self.restricts {
            return None;
        }
        let thread = self.threads.get(&tid)?;
        let process = self.processes.get(&thread.process)?;
        if (process.pending.set().0 | thread.pending.set().0) & !thread.mask.0 != 0 {
            return None;
        }
        let value = match number {
            nr::__NR_getpid => thread.process,
            nr::__NR_gettid => tid,
            nr::__NR_getppid => process.parent,
            nr::__NR_getpgrp => process.group,
            nr::__NR_getuid => process.owners.owner[0],
            nr::__NR_geteuid => process.owners.owner[1],
            nr::__NR_getgid => process.owners.group[0],
            _ => process.owners.group[1],
        };
        Some(value.into())
    }

    pub(crate) fn sys_getpid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(self.pid(tid).map(u64::from))
    }

    pub(crate) fn sys_gettid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(tid.into()))
    }

    pub(crate) fn sys_getppid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(self.process(tid)?.parent.into()))
    }

    pub(crate) fn sys_getpgrp(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(self.process(tid)?.group.into()))
    }

    /// The process that a number means, 0 being the caller's.
    fn named(&self, tid: Tid, pid: u64) -> Result<Tid> {
        match pid as u32 {
            0 => self.pid(tid),
            pid => self.processes.get(&pid).map(|_| pid).ok_or(ESRCH),
        }
    }

    pub(crate) fn sys_getpgid(&mut self, tid: Tid, [pid, ..]: [u64; 6]) -> Answer {
        let pid = self.named(tid, pid)?;
        number(self.other(pid).map(|process| process.group.into()))
    }

    pub(crate) fn sys_getsid(&mut self, tid: Tid, [pid, ..]: [u64; 6]) -> Answer {
        let pid = self.named(tid, pid)?;
        number(self.other(pid).map(|process| process.session.into()))
    }

    pub(crate) fn sys_setpgid(&mut self, tid: Tid, [pid, group, ..]: [u64; 6]) -> Answer {
        let own = self.pid(tid)?;
        let pid = self.named(tid, pid)?;
        if (group as i32) < 0 {
            return Err(EINVAL);
        }
        let group = if group == 0 { pid } else { group as u32 };
        let session = self.process(tid)?.session;
        let process = self.other(pid)?;
        if pid != own && process.parent != own {
            return Err(ESRCH);
        }
        if pid != own && process.has_begun {
            return Err(EACCES);
        }
        let is_there = group == pid
            || self.processes.values().any(|other| other.group == group && other.session == session);
        if process.session != session || process.session == pid || !is_there {
            return Err(EPERM);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.group = group;
        }
        DONE
    }

    pub(crate) fn sys_setsid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        let pid = self.pid(tid)?;
        if self.processes.values().any(|process| process.group == pid) {
            return Err(EPERM);
        }
        let process = self.process(tid)?;
        (process.session, process.group, process.terminal) = (pid, pid, None);
        number(Ok(pid.into()))
    }

    pub(crate) fn sys_getuid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(self.process(tid)?.owners.owner[0].into()))
    }

    pub(crate) fn sys_geteuid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(self.process(tid)?.owners.owner[1].into()))
    }

    pub(crate) fn sys_getgid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(self.process(tid)?.owners.group[0].into()))
    }

    pub(crate) fn sys_getegid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        number(Ok(self.process(tid)?.owners.group[1].into()))
    }

    pub(crate) fn sys_getresuid(&mut self, tid: Tid, to: [u64; 6]) -> Answer {
        let numbers = self.process(tid)?.owners.owner;
        self.write_numbers(tid, to, numbers)
    }

    pub(crate) fn sys_getresgid(&mut self, tid: Tid, to: [u64; 6]) -> Answer {
        let numbers = self.process(tid)?.owners.group;
        self.write_numbers(tid, to, numbers)
    }

    fn write_numbers(&mut self, tid: Tid, to: [u64; 6], numbers: [u32; 3]) -> Answer {
        for (at, number) in to.into_iter().zip(numbers) {
            self.write(tid, at, &number.to_le_bytes())?;
        }
        DONE
    }

    pub(crate) fn sys_setuid(&mut self, tid: Tid, [owner, ..]: [u64; 6]) -> Answer {
        self.change_owner(tid, |owners, may| set_one(owners, owner as u32, may))
    }

    /// A process may have another owner, who has what it is charged from now on.
    pub(super) fn charge_owner(&mut self, tid: Tid) {
        if let Ok(pid) = self.pid(tid)
            && let Some(process) = self.processes.get(&pid)
        {
            self.budget.set_user(pid, process.owners.owner[0]);
        }
    }

    pub(crate) fn sys_setgid(&mut self, tid: Tid, [group, ..]: [u64; 6]) -> Answer {
        let may = self.can(tid, nr::CAP_SETGID);
        set_one(&mut self.process(tid)?.owners.group, group as u32, may)
    }

    pub(crate) fn sys_setresuid(&mut self, tid: Tid, [real, effective, saved, ..]: [u64; 6]) -> Answer {
        self.change_owner(tid, |owners, may| set_all(owners, [real, effective, saved], may))
    }

    pub(crate) fn sys_setresgid(&mut self, tid: Tid, [real, effective, saved, ..]: [u64; 6]) -> Answer {
        let may = self.can(tid, nr::CAP_SETGID);
        set_all(&mut self.process(tid)?.owners.group, [real, effective, saved], may)
    }

    pub(crate) fn sys_getgroups(&mut self, tid: Tid, [count, to, ..]: [u64; 6]) -> Answer {
        let groups = self.process(tid)?.owners.groups.clone();
        if count != 0 {
            if (count as usize) < groups.len() {
                return Err(EINVAL);
            }
            let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
            self.write(tid, to, &bytes)?;
        }
        number(Ok(groups.len() as u64))
    }

    pub(crate) fn sys_setgroups(&mut self, tid: Tid, [count, from, ..]: [u64; 6]) -> Answer {
        if !self.can(tid, nr::CAP_SETGID) {
            return Err(EPERM);
        }
        if count as usize > GROUPS_MAX {
            return Err(EINVAL);
        }
        let mut bytes = vec![0; count as usize * 4];
        self.read(tid, from, &mut bytes)?;
        let number = |piece: &[u8]| piece.try_into().map_or(0, u32::from_le_bytes);
        self.process(tid)?.owners.groups = bytes.chunks_exact(4).map(number).collect();
        DONE
    }

    pub(crate) fn sys_uname(&mut self, tid: Tid, [to, ..]: [u64; 6]) -> Answer {
        let mut bytes = vec![0; NAMES.len() * NAME_BYTES];
        for (place, name) in bytes.chunks_exact_mut(NAME_BYTES).zip(NAMES) {
            place[..name.len()].copy_from_slice(name.as_bytes());
        }
        if let (Some(place), Some(name)) = (bytes.chunks_exact_mut(NAME_BYTES).nth(1), &self.kept.host_name) {
            place.fill(0);
            place.iter_mut().zip(name).for_each(|(place, byte)| *place = *byte);
        }
        done(self.write(tid, to, &bytes))
    }

    pub(crate) fn sys_sysinfo(&mut self, tid: Tid, [to, ..]: [u64; 6]) -> Answer {
        let (total, free) = self.memory_bytes();
        let processes = self.processes.len() as u64;
        let mut words =
            Vec::from([self.machine.now() / SECOND, 0, 0, 0, total, free, 0, 0, 0, 0, processes, 0, 0]);
        // One byte is a unit.
        words.push(1);
        done(self.write_list(tid, to, &words))
    }

    /// Bytes of memory that there are for processes, and that are free.
    pub fn memory_bytes(&self) -> (u64, u64) {
        let (used, left) = (self.store.frames.used() as u64, self.store.frames.left() as u64);
        ((used + left) * PAGE, left * PAGE)
    }

    pub(crate) fn sys_getrandom(&mut self, tid: Tid, [to, len, flags, ..]: [u64; 6]) -> Answer {
        if flags & !7 != 0 {
            return Err(EINVAL);
        }
        let mut bytes = vec![0; len.min(RANDOM_MAX) as usize];
        self.machine.random(&mut bytes);
        self.write(tid, to, &bytes).map_err(|_| EFAULT)?;
        number(Ok(bytes.len() as u64))
    }

    pub(crate) fn sys_getcpu(&mut self, tid: Tid, [cpu, node, ..]: [u64; 6]) -> Answer {
        for at in [cpu, node].into_iter().filter(|at| *at != 0) {
            self.write(tid, at, &[0; 4])?;
        }
        Ok(Outcome::Value(0))
    }

    /// Restartable sequences: a C library does without them.
    pub(crate) fn sys_rseq(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        Err(ENOSYS)
    }
}

fn set_one(numbers: &mut [u32; 3], new: u32, may: bool) -> Answer {
    if may {
        *numbers = [new; 3];
    } else if numbers.contains(&new) {
        numbers[1] = new;
    } else {
        return Err(EPERM);
    }
    DONE
}

fn set_all(numbers: &mut [u32; 3], new: [u64; 3], may: bool) -> Answer {
    let new = new.map(|new| new as u32);
    if !may && new.iter().any(|new| *new != SAME && !numbers.contains(new)) {
        return Err(EPERM);
    }
    for (number, new) in numbers.iter_mut().zip(new).filter(|(_, new)| *new != SAME) {
        *number = new;
    }
    DONE
}
