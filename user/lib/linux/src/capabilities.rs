//! Capabilities of a thread: parts of the power of `root`, each of which it may give up.
//!
//! The rules are Linux's, where no file has capabilities of its own: owner 0 stands for all of them, unless a thread has said that it does not.

use crate::errno::{EINVAL, EPERM, Result};
use crate::process::Owners;
use linux_raw_sys::general::{CAP_LAST_CAP, CAP_SETPCAP};

/// A set of capabilities: a bit for each.
pub type Set = u64;

/// All that there are.
pub const ALL: Set = (1 << (CAP_LAST_CAP + 1)) - 1;

/// Bit of [`Capabilities::secure`]: a program that owner 0 begins has no capabilities by that (`SECBIT_NOROOT`). The bit above each of these keeps it as it is.
pub const NO_ROOT: u32 = 1 << 0;
/// Bit of [`Capabilities::secure`]: capabilities stay when an owner is set (`SECBIT_NO_SETUID_FIXUP`).
pub const NO_FIXUP: u32 = 1 << 2;
/// Bit of [`Capabilities::secure`]: permitted capabilities stay when all owners cease to be 0 (`SECBIT_KEEP_CAPS`).
pub const KEEP: u32 = 1 << 4;
/// Bit of [`Capabilities::secure`]: no capability becomes ambient (`SECBIT_NO_CAP_AMBIENT_RAISE`).
pub const NO_AMBIENT: u32 = 1 << 6;

/// Bits of [`Capabilities::secure`] that say something.
const SECURE_BITS: u32 = NO_ROOT | NO_FIXUP | KEEP | NO_AMBIENT;
/// Bits of [`Capabilities::secure`] that keep these as they are.
const SECURE_LOCKS: u32 = SECURE_BITS << 1;

/// The set with one capability. `EINVAL`: there is no such.
pub fn one(capability: u64) -> Result<Set> {
    if capability <= CAP_LAST_CAP.into() { Ok(1 << capability) } else { Err(EINVAL) }
}

/// Capabilities of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Those in effect.
    pub effective: Set,
    /// Those that it may put into effect.
    pub permitted: Set,
    /// Those that a program which it begins may have.
    pub inheritable: Set,
    /// Those that a program of owner 0 gets.
    pub bounding: Set,
    /// Those that any program which it begins has.
    pub ambient: Set,
    /// Choices: [`NO_ROOT`] and the like, and locks.
    pub secure: u32,
}

impl Capabilities {
    /// Those of owner 0 who has given up nothing.
    pub const ROOT: Capabilities =
        Capabilities { effective: ALL, permitted: ALL, inheritable: 0, bounding: ALL, ambient: 0, secure: 0 };

    /// Those of an owner of whose threads none is left.
    pub const fn of_owner(owner: u32) -> Capabilities {
        match owner {
            0 => Capabilities::ROOT,
            _ => Capabilities { effective: 0, permitted: 0, ..Capabilities::ROOT },
        }
    }

    /// Whether one is in effect.
    pub const fn can(&self, capability: u32) -> bool {
        self.effective & 1 << capability != 0
    }

    /// Real, effective and saved owner have changed.
    pub fn follow(&mut self, before: [u32; 3], after: [u32; 3]) {
        if self.secure & NO_FIXUP != 0 {
            return;
        }
        if before.contains(&0) && !after.contains(&0) {
            if self.secure & KEEP == 0 {
                (self.permitted, self.effective) = (0, 0);
            }
            self.ambient = 0;
        }
        match (before[1], after[1]) {
            (0, 0) => {}
            (0, _) => self.effective = 0,
            (_, 0) => self.effective = self.permitted,
            _ => {}
        }
    }

    /// Those of a thread when it begins a program by which its owners become others. `is_bound`: no program gives it anything that it does not have, and an owner or group that
    /// would be another than the real one is that one again.
    pub fn of_program(&self, owners: &mut Owners, before: &Owners, is_bound: bool) -> Capabilities {
        let stands_for_all = self.secure & NO_ROOT == 0;
        let by_root = stands_for_all && owners.owner[..2].contains(&0);
        let puts_into_effect = stands_for_all && owners.owner[1] == 0;
        let mut permitted = if by_root { self.bounding | self.inheritable } else { 0 };
        let is_other = owners.owner[1] != before.owner[0] || owners.group[1] != before.group[0];
        if is_bound && (is_other || permitted & !self.permitted != 0) {
            (owners.owner[1], owners.group[1]) = (owners.owner[0], owners.group[0]);
            permitted &= self.permitted;
        }
        let ambient = if is_other { 0 } else { self.ambient };
        permitted |= ambient;
        let effective = if puts_into_effect { permitted } else { ambient };
        Capabilities { effective, permitted, ambient, secure: self.secure & !KEEP, ..*self }
    }

    /// Sets those in effect, permitted and inheritable: `capset`. `EPERM`: it would have more than it may.
    pub fn set(&mut self, effective: Set, permitted: Set, inheritable: Set) -> Result<()> {
        let most = self.inheritable | if self.can(CAP_SETPCAP) { ALL } else { self.permitted };
        let is_bounded = inheritable & !(self.inheritable | self.bounding) == 0;
        let is_less = permitted & !self.permitted == 0 && effective & !permitted == 0;
        if inheritable & !most != 0 || !is_bounded || !is_less {
            return Err(EPERM);
        }
        (self.effective, self.permitted, self.inheritable) = (effective, permitted, inheritable);
        self.ambient &= permitted & inheritable;
        Ok(())
    }

    /// Takes one out of those that programs get: `PR_CAPBSET_DROP`.
    pub fn drop_bounding(&mut self, capability: u64) -> Result<()> {
        if !self.can(CAP_SETPCAP) {
            return Err(EPERM);
        }
        self.bounding &= !one(capability)?;
        Ok(())
    }

    /// Makes one ambient: `PR_CAP_AMBIENT_RAISE`. `EPERM`: it is not both permitted and inheritable.
    pub fn raise(&mut self, capability: Set) -> Result<()> {
        if capability & !(self.permitted & self.inheritable) != 0 || self.secure & NO_AMBIENT != 0 {
            return Err(EPERM);
        }
        self.ambient |= capability;
        Ok(())
    }

    /// Sets whether permitted ones stay when all owners cease to be 0: `PR_SET_KEEPCAPS`.
    pub fn set_keeping(&mut self, keeps: u64) -> Result<()> {
        if keeps > 1 {
            return Err(EINVAL);
        }
        if self.secure & KEEP << 1 != 0 {
            return Err(EPERM);
        }
        self.secure = if keeps == 1 { self.secure | KEEP } else { self.secure & !KEEP };
        Ok(())
    }

    /// Sets all choices: `PR_SET_SECUREBITS`. `EPERM`: a lock keeps one of them, or would be opened; there is no such; or it may not.
    pub fn set_secure(&mut self, bits: u64) -> Result<()> {
        let before = u64::from(self.secure);
        let (locks, known) = (u64::from(SECURE_LOCKS), u64::from(SECURE_BITS | SECURE_LOCKS));
        let changes_locked = (before & locks) >> 1 & (before ^ bits) != 0;
        if changes_locked || before & locks & !bits != 0 || bits & !known != 0 || !self.can(CAP_SETPCAP) {
            return Err(EPERM);
        }
        self.secure = bits as u32;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: [u32; 3] = [1000; 3];
    const NONE: Capabilities = Capabilities::of_owner(1000);

    fn owners(owner: [u32; 3]) -> Owners {
        Owners { owner, ..Owners::default() }
    }

    /// After a change of owners.
    fn followed(of: Capabilities, before: [u32; 3], after: [u32; 3]) -> [Set; 2] {
        let mut of = of;
        of.follow(before, after);
        [of.effective, of.permitted]
    }

    #[test]
    fn owners_take_them_along() {
        let (root, keeping) = (Capabilities::ROOT, Capabilities { secure: KEEP, ..Capabilities::ROOT });
        assert_eq!(followed(root, [0; 3], USER), [0, 0]);
        assert_eq!(followed(root, [0; 3], [0, 1000, 0]), [0, ALL]);
        assert_eq!(followed(root, [0; 3], [1000, 0, 0]), [ALL, ALL]);
        assert_eq!(followed(Capabilities { effective: 0, ..root }, [0, 1000, 0], [0; 3]), [ALL, ALL]);
        assert_eq!(followed(keeping, [0; 3], USER), [0, ALL]);
        assert_eq!(followed(Capabilities { secure: NO_FIXUP, ..root }, [0; 3], USER), [ALL, ALL]);
        assert_eq!(followed(NONE, USER, [1000, 1001, 1000]), [0, 0]);
        let mut ambient = Capabilities { ambient: 4, inheritable: 4, ..keeping };
        ambient.follow([0; 3], USER);
        assert_eq!(ambient.ambient, 0, "they are not kept");
    }

    #[test]
    fn programs_have_those_of_their_owner() {
        let program = |of: Capabilities, before: [u32; 3], after: [u32; 3], is_bound: bool| {
            let mut owners_after = owners(after);
            let new = of.of_program(&mut owners_after, &owners(before), is_bound);
            ([new.effective, new.permitted], owners_after.owner[1])
        };
        let less = Capabilities { effective: 1, permitted: 3, ..Capabilities::ROOT };
        assert_eq!(program(less, [0; 3], [0; 3], false), ([ALL; 2], 0), "they come back");
        assert_eq!(program(less, [0; 3], [0; 3], true), ([3; 2], 0));
        let bounded = Capabilities { bounding: 5, ..less };
        assert_eq!(program(bounded, [0; 3], [0; 3], false), ([5; 2], 0));
        assert_eq!(program(NONE, USER, USER, false), ([0; 2], 1000));
        assert_eq!(program(NONE, USER, [1000, 0, 1000], false), ([ALL; 2], 0));
        assert_eq!(program(Capabilities::ROOT, [0, 1000, 0], [0, 1000, 0], false), ([0, ALL], 1000));
        let kept = Capabilities { effective: 8, permitted: 8, secure: KEEP, ..NONE };
        assert_eq!(program(kept, USER, USER, false), ([0; 2], 1000));
        let ambient = Capabilities { inheritable: 8, ambient: 8, ..kept };
        assert_eq!(program(ambient, USER, USER, false), ([8; 2], 1000));
        assert_eq!(program(ambient, USER, [1000, 7, 1000], false), ([0; 2], 7), "another owner's program");
        let no_root = Capabilities { secure: NO_ROOT, ..Capabilities::ROOT };
        assert_eq!(program(no_root, [0; 3], [0; 3], false), ([0; 2], 0));
        let mut owners_after = owners(USER);
        let new = kept.of_program(&mut owners_after, &owners(USER), false);
        assert_eq!(new.secure, 0, "it is for one program");
    }

    #[test]
    fn none_comes_back_by_itself() {
        let mut own = Capabilities::ROOT;
        assert_eq!(own.set(1, 3, 0), Ok(()));
        assert_eq!(own.set(1, 7, 0), Err(EPERM));
        assert_eq!(own.set(3, 1, 0), Err(EPERM));
        assert_eq!(own.set(1, 3, 4), Err(EPERM), "it is not permitted");
        assert_eq!(own.set(3, 3, 3), Ok(()));
        assert_eq!((own.raise(2), own.raise(4)), (Ok(()), Err(EPERM)));
        assert_eq!(own.set(1, 1, 3), Ok(()));
        assert_eq!(own.ambient, 0);
        assert_eq!(own.drop_bounding(3), Err(EPERM));
        let mut root = Capabilities::ROOT;
        assert_eq!((root.drop_bounding(3), root.drop_bounding(41)), (Ok(()), Err(EINVAL)));
        assert_eq!(root.bounding, ALL & !8);
        assert_eq!(root.set(ALL, ALL, 8), Err(EPERM), "no program may have it");
    }

    #[test]
    fn choices_are_locked() {
        let mut root = Capabilities::ROOT;
        assert_eq!((root.set_keeping(2), root.set_keeping(1)), (Err(EINVAL), Ok(())));
        assert_eq!(root.secure, KEEP);
        assert_eq!(root.set_secure(1 << 8), Err(EPERM));
        let locked = u64::from(NO_ROOT | KEEP << 1);
        assert_eq!(root.set_secure(locked | u64::from(KEEP)), Ok(()));
        assert_eq!(root.set_keeping(0), Err(EPERM));
        assert_eq!(root.set_secure(locked), Err(EPERM), "it changes what is locked");
        assert_eq!(root.set_secure(u64::from(KEEP)), Err(EPERM), "it opens a lock");
        assert_eq!(root.set_secure(locked | u64::from(KEEP | NO_FIXUP)), Ok(()));
        let mut none = NONE;
        assert_eq!(none.set_secure(0), Err(EPERM));
        assert_eq!(none.set_keeping(1), Ok(()), "that needs no capability");
    }
}
