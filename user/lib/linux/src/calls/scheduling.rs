//! Turns of threads on the one processor that there is. How much of it they get is in [`niceness`](super::niceness).

use super::number;
use crate::errno::{EINVAL, EPERM};
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::system::{Answer, DONE, Outcome, System};
use linux_raw_sys::general::membarrier_cmd;
use vfs::FileSystem;

/// A mapping of addresses that is always the same one: `ADDR_NO_RANDOMIZE`. They are so here.
const SAME_ADDRESSES: u32 = 0x4_0000;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
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

#[cfg(test)]
mod tests;
