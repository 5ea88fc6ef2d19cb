//! Calls that change the machine for all. A sandbox has a name, and that is all of the machine that it has; who calls itself `root` in it has no more.

use super::done;
use crate::errno::{EINVAL, EPERM};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec;
use linux_raw_sys::general::{
    CAP_SETGID, CAP_SYS_ADMIN, CLONE_FILES, CLONE_FS, CLONE_SIGHAND, CLONE_SYSVSEM, CLONE_THREAD, CLONE_VM,
};
use vfs::FileSystem;

/// Longest name of a sandbox.
const NAME_MAX: u64 = 64;

/// Things of its own that `unshare` gives a process, as far as it has them anyway.
const OWN: u32 = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VM;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Nobody may do that.
    pub(crate) fn sys_refused(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        Err(EPERM)
    }

    pub(crate) fn sys_sethostname(&mut self, tid: Tid, [at, len, ..]: [u64; 6]) -> Answer {
        if !self.can(tid, CAP_SYS_ADMIN) {
            return Err(EPERM);
        }
        if len > NAME_MAX {
            return Err(EINVAL);
        }
        let mut name = vec![0; len as usize];
        self.read(tid, at, &mut name)?;
        self.kept.host_name = Some(name);
        DONE
    }

    /// A process shares with others what `CLONE_FS` has let it share, and else nothing; spaces of names are everybody's.
    pub(crate) fn sys_unshare(&mut self, tid: Tid, [flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if flags & !OWN != 0 {
            return Err(EPERM);
        }
        if flags & CLONE_FS != 0 {
            self.separate_filesystem(tid)?;
        }
        DONE
    }

    pub(crate) fn sys_setreuid(&mut self, tid: Tid, [real, effective, ..]: [u64; 6]) -> Answer {
        self.change_owner(tid, |owners, may| set_two(owners, [real as u32, effective as u32], may))
    }

    pub(crate) fn sys_setregid(&mut self, tid: Tid, [real, effective, ..]: [u64; 6]) -> Answer {
        let may = self.can(tid, CAP_SETGID);
        set_two(&mut self.process(tid)?.owners.group, [real as u32, effective as u32], may)
    }

    /// The owner for files is the effective one. The answer is the one before, so a caller sees that it stays.
    pub(crate) fn sys_setfsuid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        Ok(Outcome::Value(self.process(tid)?.owners.owner[1].into()))
    }

    /// See [`System::sys_setfsuid`].
    pub(crate) fn sys_setfsgid(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        Ok(Outcome::Value(self.process(tid)?.owners.group[1].into()))
    }
}

/// Sets real and effective number, unless they are to stay.
fn set_two(numbers: &mut [u32; 3], [real, effective]: [u32; 2], may: bool) -> Answer {
    const SAME: u32 = u32::MAX;
    let before = *numbers;
    let may_real = real == SAME || before[..2].contains(&real);
    let may_effective = effective == SAME || before.contains(&effective);
    if !(may || may_real && may_effective) {
        return Err(EPERM);
    }
    if real != SAME {
        numbers[0] = real;
    }
    if effective != SAME {
        numbers[1] = effective;
    }
    // It can come back to what it was made by: the saved one follows when it becomes another one.
    if real != SAME || effective != SAME && effective != before[0] {
        numbers[2] = numbers[1];
    }
    done(Ok(()))
}
