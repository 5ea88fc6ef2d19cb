//! `clone3`: the call of newer C libraries that makes threads and processes, whose arguments are a structure.

use super::processes::New;
use crate::errno::{E2BIG, EINVAL, EPERM, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::END;
use crate::process::SIGNALS;
use crate::system::{Answer, System};
use alloc::vec;
use linux_raw_sys::general::{
    CLONE_ARGS_SIZE_VER0, CLONE_ARGS_SIZE_VER2, CLONE_CLEAR_SIGHAND, CLONE_DETACHED, CLONE_NEWTIME,
    CLONE_PARENT, CLONE_PIDFD, CLONE_SIGHAND, CLONE_THREAD, CSIGNAL,
};
use vfs::FileSystem;

/// Words of the structure in its longest form.
const WORDS: usize = CLONE_ARGS_SIZE_VER2 as usize / 8;

/// All flags that there are here. One that puts the child into a group of resources is none of them.
const FLAGS: u64 = 0xffff_ffff | CLONE_CLEAR_SIGHAND;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_clone3(&mut self, tid: Tid, [at, len, ..]: [u64; 6]) -> Answer {
        if let Some(answer) = self.goes_on_behind_vfork(tid)? {
            return answer;
        }
        let new = new_of(self.clone_arguments(tid, at, len)?)?;
        self.make(tid, new)
    }

    /// Words of the structure; those that it does not have are zeros. Others behind them have to be zeros.
    fn clone_arguments(&mut self, tid: Tid, at: u64, len: u64) -> Result<[u64; WORDS]> {
        if len > PAGE {
            return Err(E2BIG);
        }
        if len < CLONE_ARGS_SIZE_VER0.into() {
            return Err(EINVAL);
        }
        let mut bytes = vec![0; len as usize];
        self.read(tid, at, &mut bytes)?;
        let known = bytes.len().min(CLONE_ARGS_SIZE_VER2 as usize);
        if bytes.split_off(known).iter().any(|byte| *byte != 0) {
            return Err(E2BIG);
        }
        let mut words = [0; WORDS];
        for (word, piece) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*piece);
        }
        Ok(words)
    }

    /// Makes a process, at its own cost.
    pub(super) fn make_process(&mut self, tid: Tid, new: New) -> Result<Tid> {
        let child = self.number();
        let user = self.process(tid)?.owners.owner[0];
        self.budget.begin(child, user);
        let before = self.budget.serve(child);
        let made = self.copy_process(tid, child, new);
        self.budget.serve(before);
        if made.is_err() {
            self.budget.end(child);
        }
        made
    }
}

/// Arguments of a thread that is to be made, from the words of the structure.
fn new_of(words: [u64; WORDS]) -> Result<New> {
    let [all, pidfd, child_tid, parent_tid, signal, stack, stack_len, fs_base, tids, tid_count, _] = words;
    let flags = (all & u64::from(u32::MAX)) as u32;
    let wrong = CLONE_DETACHED | CSIGNAL & !CLONE_NEWTIME;
    let clears_handlers = all & CLONE_CLEAR_SIGHAND != 0;
    if all & !FLAGS != 0 || flags & wrong != 0 || clears_handlers && flags & CLONE_SIGHAND != 0 {
        return Err(EINVAL);
    }
    if signal > SIGNALS as u64 || signal != 0 && flags & (CLONE_THREAD | CLONE_PARENT) != 0 {
        return Err(EINVAL);
    }
    if (tids == 0) != (tid_count == 0) {
        return Err(EINVAL);
    }
    // Numbers are chosen here, and nobody has spaces of its own.
    if tids != 0 || flags & CLONE_NEWTIME != 0 {
        return Err(EPERM);
    }
    if (stack == 0) != (stack_len == 0) {
        return Err(EINVAL);
    }
    let stack = stack.checked_add(stack_len).filter(|end| *end <= END).ok_or(EINVAL)?;
    let pidfd = (flags & CLONE_PIDFD != 0).then_some(pidfd);
    let exit_signal = signal as u32;
    Ok(New { flags, exit_signal, stack, parent_tid, child_tid, fs_base, pidfd, clears_handlers })
}
