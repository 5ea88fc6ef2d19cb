//! Capabilities of threads, as they ask for them and give them up, and as owners take them along.

use super::{done, number};
use crate::capabilities::{ALL, Capabilities, KEEP, one};
use crate::errno::{EINVAL, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::system::{Answer, DONE, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    _LINUX_CAPABILITY_U32S_1, _LINUX_CAPABILITY_U32S_3, _LINUX_CAPABILITY_VERSION_1,
    _LINUX_CAPABILITY_VERSION_2, _LINUX_CAPABILITY_VERSION_3, CAP_SETUID,
};
use linux_raw_sys::prctl::{
    PR_CAP_AMBIENT_CLEAR_ALL, PR_CAP_AMBIENT_IS_SET, PR_CAP_AMBIENT_LOWER, PR_CAP_AMBIENT_RAISE,
    PR_CAPBSET_DROP, PR_CAPBSET_READ, PR_GET_KEEPCAPS, PR_GET_SECUREBITS, PR_SET_KEEPCAPS, PR_SET_SECUREBITS,
};
use vfs::FileSystem;

/// Bytes of `struct __user_cap_data_struct`, a half of each of three sets, and how many of them there are at most.
const HALF_BYTES: usize = 12;
/// See [`HALF_BYTES`].
const HALVES_MAX: usize = _LINUX_CAPABILITY_U32S_3 as usize;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Whether a thread has a capability in effect: `CAP_CHOWN` and its like.
    pub(super) fn can(&self, tid: Tid, capability: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.capabilities.can(capability))
    }

    /// Capabilities of a thread; or of a process that has ended, of which its owner is all that is left.
    pub(super) fn capabilities_of(&self, tid: Tid) -> Result<Capabilities> {
        match self.threads.get(&tid) {
            Some(thread) => Ok(thread.capabilities),
            None => Ok(Capabilities::of_owner(self.other(tid)?.owners.owner[1])),
        }
    }

    /// Changes owners of a thread's process, by a function that hears whether they may be any. All of its threads have them, so capabilities of all follow.
    pub(super) fn change_owner(
        &mut self,
        tid: Tid,
        change: impl FnOnce(&mut [u32; 3], bool) -> Answer,
    ) -> Answer {
        let may = self.can(tid, CAP_SETUID);
        let process = self.process(tid)?;
        let before = process.owners.owner;
        let outcome = change(&mut process.owners.owner, may);
        let after = process.owners.owner;
        if after != before {
            let threads = process.threads.clone();
            for thread in threads {
                self.thread(thread)?.capabilities.follow(before, after);
            }
            self.charge_owner(tid);
        }
        outcome
    }

    /// The thread that a header of capabilities names, 0 being the caller, and how many halves of sets belong to its version. One that is not known is answered by the
    /// one that is.
    fn capability_header(&mut self, tid: Tid, at: u64) -> Result<(Tid, usize)> {
        let [header] = self.words(tid, at)?;
        let halves = match header as u32 {
            _LINUX_CAPABILITY_VERSION_1 => _LINUX_CAPABILITY_U32S_1 as usize,
            _LINUX_CAPABILITY_VERSION_2 | _LINUX_CAPABILITY_VERSION_3 => HALVES_MAX,
            _ => {
                self.write(tid, at, &_LINUX_CAPABILITY_VERSION_3.to_le_bytes())?;
                return Err(EINVAL);
            }
        };
        Ok(((header >> 32) as u32, halves))
    }

    pub(crate) fn sys_capget(&mut self, tid: Tid, [header, to, ..]: [u64; 6]) -> Answer {
        let (named, halves) = match self.capability_header(tid, header) {
            // Without a place for them this asks for the version.
            Ok(_) | Err(EINVAL) if to == 0 => return DONE,
            found => found?,
        };
        if (named as i32) < 0 {
            return Err(EINVAL);
        }
        let of = self.capabilities_of(if named == 0 { tid } else { named })?;
        // The lower halves of all, then the upper ones.
        let sets = (0..halves).flat_map(|half| {
            [of.effective, of.permitted, of.inheritable].map(|set| (set >> (32 * half)) as u32)
        });
        let bytes: Vec<u8> = sets.flat_map(u32::to_le_bytes).collect();
        done(self.write(tid, to, &bytes))
    }

    pub(crate) fn sys_capset(&mut self, tid: Tid, [header, from, ..]: [u64; 6]) -> Answer {
        let (named, halves) = self.capability_header(tid, header)?;
        if named != 0 && named != tid {
            return Err(EPERM);
        }
        let mut bytes = [0; HALVES_MAX * HALF_BYTES];
        self.read(tid, from, &mut bytes[..halves * HALF_BYTES])?;
        let (words, _) = bytes.as_chunks();
        let set = |at: usize| {
            let [low, high] = [at, at + 3].map(|at| u64::from(u32::from_le_bytes(words[at])));
            (low | high << 32) & ALL
        };
        done(self.thread(tid)?.capabilities.set(set(0), set(1), set(2)))
    }

    /// Choices about capabilities, by `prctl`.
    pub(super) fn choose_capabilities(
        &mut self,
        tid: Tid,
        [code, argument, capability, more @ ..]: [u64; 6],
    ) -> Answer {
        let own = &mut self.thread(tid)?.capabilities;
        match code as u32 {
            PR_CAPBSET_READ => return number(one(argument).map(|one| (own.bounding & one != 0).into())),
            PR_CAPBSET_DROP => return done(own.drop_bounding(argument)),
            PR_GET_KEEPCAPS => return number(Ok((own.secure & KEEP != 0).into())),
            PR_SET_KEEPCAPS => return done(own.set_keeping(argument)),
            PR_GET_SECUREBITS => return number(Ok(own.secure.into())),
            PR_SET_SECUREBITS => return done(own.set_secure(argument)),
            _ => {}
        }
        // The rest is about those that are ambient.
        let [fourth, fifth, _] = more;
        let is_plain = fourth == 0 && fifth == 0;
        match u32::try_from(argument).map_err(|_| EINVAL)? {
            PR_CAP_AMBIENT_CLEAR_ALL if is_plain && capability == 0 => own.ambient = 0,
            _ if !is_plain => return Err(EINVAL),
            PR_CAP_AMBIENT_IS_SET => {
                return number(one(capability).map(|one| (own.ambient & one != 0).into()));
            }
            PR_CAP_AMBIENT_RAISE => own.raise(one(capability)?)?,
            PR_CAP_AMBIENT_LOWER => own.ambient &= !one(capability)?,
            _ => return Err(EINVAL),
        }
        DONE
    }
}

#[cfg(test)]
mod tests;
