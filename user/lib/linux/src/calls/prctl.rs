//! `prctl`: what a process says of itself, or of its thread.

use super::{done, number};
use crate::errno::{EINVAL, ESRCH};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::process::{NAME_BYTES, SIGNALS};
use crate::system::{Answer, DONE, System};
use alloc::vec;
use linux_raw_sys::prctl::*;
use vfs::FileSystem;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_prctl(&mut self, tid: Tid, arguments: [u64; 6]) -> Answer {
        let [code, argument, filter, ..] = arguments;
        match code as u32 {
            PR_SET_NAME => {
                let room = self.room(tid)?;
                let mut name = vec![0; NAME_BYTES + 1];
                self.store.read(&mut room.borrow_mut().memory, argument, &mut name)?;
                let len = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
                name.truncate(len);
                done(self.set_name(tid, name))
            }
            PR_GET_NAME => {
                let mut name = self.name_of(tid).ok_or(ESRCH)?.to_vec();
                name.resize(NAME_BYTES + 1, 0);
                done(self.write(tid, argument, &name))
            }
            PR_SET_PDEATHSIG if argument > SIGNALS as u64 => Err(EINVAL),
            PR_SET_PDEATHSIG => {
                self.process(tid)?.death_signal = argument as u32;
                DONE
            }
            PR_GET_PDEATHSIG => {
                let signal = self.process(tid)?.death_signal;
                done(self.write(tid, argument, &signal.to_le_bytes()))
            }
            PR_SET_NO_NEW_PRIVS if argument != 1 => Err(EINVAL),
            PR_SET_NO_NEW_PRIVS => {
                self.process(tid)?.has_no_new_rights = true;
                DONE
            }
            PR_SET_CHILD_SUBREAPER => {
                self.process(tid)?.is_reaper = argument != 0;
                DONE
            }
            PR_GET_CHILD_SUBREAPER => {
                let is_reaper = u32::from(self.process(tid)?.is_reaper);
                done(self.write(tid, argument, &is_reaper.to_le_bytes()))
            }
            PR_CAPBSET_READ | PR_CAPBSET_DROP | PR_CAP_AMBIENT => self.choose_capabilities(tid, arguments),
            PR_GET_KEEPCAPS | PR_SET_KEEPCAPS | PR_GET_SECUREBITS | PR_SET_SECUREBITS => {
                self.choose_capabilities(tid, arguments)
            }
            PR_SET_VMA => self.name_memory(tid, arguments),
            PR_GET_SECCOMP => number(Ok(self.thread(tid)?.restriction.mode().into())),
            PR_SET_SECCOMP => self.set_restriction(tid, argument, filter),
            PR_GET_TIMING => DONE,
            PR_MCE_KILL_GET => number(Ok(PR_MCE_KILL_DEFAULT.into())),
            PR_GET_NO_NEW_PRIVS => number(Ok(self.process(tid)?.has_no_new_rights.into())),
            _ => self.choose(tid, arguments),
        }
    }

    /// Choices of a process or a thread about which it can ask, though they have no effect here.
    fn choose(&mut self, tid: Tid, [code, argument, more @ ..]: [u64; 6]) -> Answer {
        let has_more = more[..3] != [0; 3];
        let process = self.process(tid)?;
        let owner = (process.owners.owner[1], process.owners.group[1]);
        let choices = &mut process.choices;
        match code as u32 {
            PR_GET_DUMPABLE => number(Ok((choices.dumpable_by == Some(owner)).into())),
            PR_SET_DUMPABLE if argument > 1 => Err(EINVAL),
            PR_SET_DUMPABLE => {
                choices.dumpable_by = (argument == 1).then_some(owner);
                DONE
            }
            PR_GET_THP_DISABLE if argument != 0 || has_more => Err(EINVAL),
            PR_GET_THP_DISABLE => number(Ok(choices.has_no_large_pages.into())),
            PR_SET_THP_DISABLE if has_more => Err(EINVAL),
            PR_SET_THP_DISABLE => {
                choices.has_no_large_pages = argument != 0;
                DONE
            }
            PR_GET_TIMERSLACK => number(Ok(self.thread(tid)?.slack_ns[0])),
            PR_SET_TIMERSLACK => {
                let slack = &mut self.thread(tid)?.slack_ns;
                // None that is given, or a negative one: that which its maker had.
                slack[0] = if argument as i64 <= 0 { slack[1] } else { argument };
                DONE
            }
            PR_GET_TID_ADDRESS => {
                let clear = self.thread(tid)?.clear;
                done(self.write_words(tid, argument, &[clear]))
            }
            _ => Err(EINVAL),
        }
    }
}
