//! How threads are scheduled, as far as programs ask: all are in one class, with one priority, on one processor.

use super::{done, number};
use crate::errno::{E2BIG, EINVAL, EPERM, ESRCH, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Registers, Tid};
use crate::system::{Answer, DONE, Outcome, System};
use linux_raw_sys::general::{
    SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO, SCHED_IDLE, SCHED_NORMAL, SCHED_RESET_ON_FORK, SCHED_RR,
    membarrier_cmd,
};
use vfs::FileSystem;

/// Nanoseconds of a slice, as a program is told.
const SLICE_NS: u64 = 4_000_000;

/// Bytes of `struct sched_attr` in its first form.
const ATTRIBUTES_BYTES: u64 = 48;

/// A mapping of addresses that is always the same one: `ADDR_NO_RANDOMIZE`. They are so here.
const SAME_ADDRESSES: u32 = 0x4_0000;

/// A priority of I/O that is the usual one: `IOPRIO_CLASS_BE`, 4.
const USUAL_IO: u64 = 2 << 13 | 4;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Fails unless there is a thread of that number. 0 is the caller.
    fn check_thread(&self, tid: u64) -> Result<()> {
        let tid = tid as i32;
        if tid < 0 {
            return Err(EINVAL);
        }
        let is_there = tid == 0 || self.threads.contains_key(&tid.unsigned_abs());
        if is_there { Ok(()) } else { Err(ESRCH) }
    }

    /// All others that can run do so before the caller goes on. A signal that has come meanwhile does not wait for them.
    pub(crate) fn sys_sched_yield(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        if self.has_signal(tid) {
            return DONE;
        }
        let registers = Registers { rax: 0, ..self.registers };
        self.machine.answer_behind_others(tid, &registers);
        Ok(Outcome::Gone)
    }

    pub(crate) fn sys_sched_getaffinity(&mut self, tid: Tid, [_, len, to, ..]: [u64; 6]) -> Answer {
        if len < 8 {
            return Err(EINVAL);
        }
        self.write_words(tid, to, &[1])?;
        number(Ok(8))
    }

    pub(crate) fn sys_sched_setaffinity(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        DONE
    }

    /// All have one priority, which this call says as 20 less it.
    pub(crate) fn sys_getpriority(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        number(Ok(20))
    }

    pub(crate) fn sys_setpriority(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        DONE
    }

    pub(crate) fn sys_sched_getscheduler(&mut self, _: Tid, [thread, ..]: [u64; 6]) -> Answer {
        done(self.check_thread(thread))
    }

    pub(crate) fn sys_sched_setscheduler(&mut self, tid: Tid, [thread, policy, at, ..]: [u64; 6]) -> Answer {
        self.check_thread(thread)?;
        let mut bytes = [0; 4];
        self.read(tid, at, &mut bytes)?;
        done(check_class(policy as u32 & !SCHED_RESET_ON_FORK, u32::from_le_bytes(bytes)))
    }

    pub(crate) fn sys_sched_setparam(&mut self, tid: Tid, [thread, at, ..]: [u64; 6]) -> Answer {
        self.sys_sched_setscheduler(tid, [thread, SCHED_NORMAL.into(), at, 0, 0, 0])
    }

    pub(crate) fn sys_sched_getparam(&mut self, tid: Tid, [thread, to, ..]: [u64; 6]) -> Answer {
        self.check_thread(thread)?;
        done(self.write(tid, to, &[0; 4]))
    }

    pub(crate) fn sys_sched_getattr(&mut self, tid: Tid, [thread, to, len, flags, ..]: [u64; 6]) -> Answer {
        self.check_thread(thread)?;
        if !(ATTRIBUTES_BYTES..=PAGE).contains(&len) || flags != 0 {
            return Err(EINVAL);
        }
        done(self.write_words(tid, to, &[ATTRIBUTES_BYTES, 0, 0, 0, 0, 0]))
    }

    pub(crate) fn sys_sched_setattr(&mut self, tid: Tid, [thread, at, flags, ..]: [u64; 6]) -> Answer {
        self.check_thread(thread)?;
        let [head, _, other] = self.words(tid, at)?;
        let (len, policy, priority) = (head as u32, (head >> 32) as u32, (other >> 32) as u32);
        if flags != 0 {
            return Err(EINVAL);
        }
        if u64::from(len) > PAGE || len > 0 && u64::from(len) < ATTRIBUTES_BYTES {
            return Err(E2BIG);
        }
        done(check_class(policy, priority))
    }

    pub(crate) fn sys_sched_get_priority_max(&mut self, _: Tid, [policy, ..]: [u64; 6]) -> Answer {
        number(priorities(policy as u32).map(|[_, most]| most.into()))
    }

    pub(crate) fn sys_sched_get_priority_min(&mut self, _: Tid, [policy, ..]: [u64; 6]) -> Answer {
        number(priorities(policy as u32).map(|[least, _]| least.into()))
    }

    pub(crate) fn sys_sched_rr_get_interval(&mut self, tid: Tid, [thread, to, ..]: [u64; 6]) -> Answer {
        self.check_thread(thread)?;
        done(self.write_words(tid, to, &[0, SLICE_NS]))
    }

    /// All have the usual priority of I/O.
    pub(crate) fn sys_ioprio_get(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        number(Ok(USUAL_IO))
    }

    pub(crate) fn sys_ioprio_set(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        DONE
    }

    /// Threads take turns on one processor, and each turn begins with a barrier. A process that has not said it would ask for those of its own may not.
    pub(crate) fn sys_membarrier(&mut self, tid: Tid, [command, flags, ..]: [u64; 6]) -> Answer {
        use membarrier_cmd::{
            MEMBARRIER_CMD_GLOBAL, MEMBARRIER_CMD_GLOBAL_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED,
            MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
        };
        let known = [
            MEMBARRIER_CMD_GLOBAL,
            MEMBARRIER_CMD_GLOBAL_EXPEDITED,
            MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
            MEMBARRIER_CMD_PRIVATE_EXPEDITED,
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
        ];
        let command = command as u32;
        if flags as u32 != 0 {
            return Err(EINVAL);
        }
        if command == 0 {
            return number(Ok(known.iter().fold(0, |all, bit| all | *bit as u64)));
        }
        let own = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as u32;
        let barriers = &mut self.process(tid)?.choices.barriers;
        match known.into_iter().find(|bit| *bit as u32 == command) {
            None => Err(EINVAL),
            Some(MEMBARRIER_CMD_PRIVATE_EXPEDITED) if *barriers & own == 0 => Err(EPERM),
            Some(_) => {
                *barriers |= command;
                DONE
            }
        }
    }

    /// There is one kind of processes.
    pub(crate) fn sys_personality(&mut self, _: Tid, [kind, ..]: [u64; 6]) -> Answer {
        if matches!(kind as u32, 0 | u32::MAX | SAME_ADDRESSES) { DONE } else { Err(EINVAL) }
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

/// Fails unless a thread may have a class with a priority: nobody has one before others.
fn check_class(policy: u32, priority: u32) -> Result<()> {
    let [least, most] = priorities(policy)?;
    if !(least..=most).contains(&priority) {
        return Err(EINVAL);
    }
    if matches!(policy, SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE) { Ok(()) } else { Err(EPERM) }
}

#[cfg(test)]
mod tests;
