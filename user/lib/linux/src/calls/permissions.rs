//! Permissions of files: owner, group and mode, as Linux checks them for the effective owner of a process.
//!
//! `root` passes, and nothing is looked up for it. Symbolic links belong to nobody, so a sticky directory keeps none of them.

use super::paths::{joined, names};
use crate::errno::{EACCES, EINVAL, ENOENT, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::system::{Answer, DONE, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    _LINUX_CAPABILITY_VERSION_3, O_ACCMODE, O_PATH, O_RDONLY, O_TRUNC, O_WRONLY, R_OK, S_ISGID, S_ISUID,
    S_ISVTX, S_IXGRP, W_OK, X_OK,
};
use vfs::path::Last;
use vfs::{Attributes, Changes, FileSystem, Inode, Kind};

/// Capabilities of `root`: all 41 that there are.
const ALL: u64 = (1 << 41) - 1;

/// Owners for which something is checked.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The owner.
    pub owner: u32,
    /// The group.
    pub group: u32,
    /// Other groups.
    pub groups: Vec<u32>,
}

impl Subject {
    fn is_in(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }

    /// Whether permissions of something with an owner and a group allow all that is wanted: `R_OK` and its like.
    pub fn may(&self, permissions: u32, (owner, group): (u32, u32), wanted: u32) -> bool {
        let shift = match () {
            () if self.owner == owner => 6,
            () if self.is_in(group) => 3,
            () => 0,
        };
        self.owner == 0 || permissions >> shift & wanted == wanted
    }

    /// Fails unless it may do something with what was found.
    pub fn check(&self, found: &Attributes, wanted: u32) -> Result<()> {
        let is_allowed = self.may(found.permissions.into(), (found.owner, found.group), wanted);
        if is_allowed { Ok(()) } else { Err(EACCES) }
    }
}

/// Path of the directory of a name.
fn parent(path: &[u8]) -> Vec<u8> {
    let mut all: Vec<Vec<u8>> = names(path).map(<[u8]>::to_vec).collect();
    all.pop();
    whole(&all)
}

/// Path of names, from the root on.
pub(super) fn whole(all: &[Vec<u8>]) -> Vec<u8> {
    if all.is_empty() { b"/".to_vec() } else { joined(all) }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Effective owners of a thread's process; none if that is `root`, which passes.
    pub(super) fn subject(&mut self, tid: Tid) -> Result<Option<Subject>> {
        let owners = &self.process(tid)?.owners;
        let (owner, group) = (owners.owner[1], owners.group[1]);
        Ok((owner != 0).then(|| Subject { owner, group, groups: owners.groups.clone() }))
    }

    /// Fails unless a thread may do something with what was found: `R_OK` and its like.
    pub(super) fn may(&mut self, tid: Tid, found: &Attributes, wanted: u32) -> Result<()> {
        self.subject(tid)?.map_or(Ok(()), |subject| subject.check(found, wanted))
    }

    /// Walks a path, all directories of which have to be searchable. Gives back the path without symbolic links; its last name need not be there.
    pub(super) fn reach(&mut self, tid: Tid, path: &[u8], last: Last) -> Result<Vec<u8>> {
        if self.subject(tid)?.is_none() {
            return Ok(path.to_vec());
        }
        Ok(self.walk(tid, b"", path, last, 0)?.path)
    }

    /// Fails unless a thread may look into a process, and have what that has open: the process is its own, or all owners and groups of that are those in
    /// effect here, or it is `root`. So a program that has set another owner keeps what it has from who began it.
    pub(super) fn may_inspect(&mut self, tid: Tid, pid: Tid) -> Result<()> {
        let own = self.pid(tid)?;
        let owners = &self.process(tid)?.owners;
        let (owner, group) = (owners.owner[1], owners.group[1]);
        if own == pid || owner == 0 {
            return Ok(());
        }
        let other = &self.other(pid).map_err(|_| ENOENT)?.owners;
        if other.owner == [owner; 3] && other.group == [group; 3] { Ok(()) } else { Err(EACCES) }
    }

    /// Somebody else than `root` writes to a file: it is no program any more that sets an owner or a group.
    pub(super) fn unmark(&mut self, inode: Inode) -> Result<()> {
        let Some(tid) = self.current else { return Ok(()) };
        if self.process(tid)?.owners.owner[1] == 0 {
            return Ok(());
        }
        let found = self.store.volume.attributes(inode)?;
        let before = u32::from(found.permissions);
        let of_group = if before & S_IXGRP != 0 { S_ISGID } else { 0 };
        if before & (S_ISUID | of_group) != 0 {
            let permissions = Some((before & !(S_ISUID | of_group)) as u16);
            self.store.volume.change(inode, &Changes { permissions, ..Changes::default() })?;
        }
        Ok(())
    }

    /// Fails unless a thread may open what was found.
    pub(super) fn may_open(&mut self, tid: Tid, found: &Attributes, flags: u32) -> Result<()> {
        if flags & O_PATH != 0 || found.kind == Kind::Symlink {
            return Ok(());
        }
        let access = match flags & O_ACCMODE {
            O_RDONLY => R_OK,
            O_WRONLY => W_OK,
            _ => R_OK | W_OK,
        };
        self.may(tid, found, if flags & O_TRUNC != 0 { access | W_OK } else { access })
    }

    /// Fails unless a thread may make a name at a path, if that is not there.
    pub(super) fn may_make(&mut self, tid: Tid, path: &[u8]) -> Result<()> {
        let Some(subject) = self.subject(tid)? else { return Ok(()) };
        let reached = self.reach(tid, path, Last::Stay)?;
        if self.look(&reached, Last::Name).is_ok() {
            // The call says itself that it is there.
            return Ok(());
        }
        let directory = self.look(&parent(&reached), Last::Name)?;
        subject.check(&directory, W_OK | X_OK)
    }

    /// Fails unless a thread may remove the name at a path.
    pub(super) fn may_remove(&mut self, tid: Tid, path: &[u8]) -> Result<()> {
        let Some(subject) = self.subject(tid)? else { return Ok(()) };
        let reached = self.reach(tid, path, Last::Stay)?;
        let found = self.look(&reached, Last::Name)?;
        let directory = self.look(&parent(&reached), Last::Name)?;
        subject.check(&directory, W_OK | X_OK)?;
        let is_sticky = u32::from(directory.permissions) & S_ISVTX != 0 && found.kind != Kind::Symlink;
        if is_sticky && ![found.owner, directory.owner].contains(&subject.owner) {
            return Err(EPERM);
        }
        Ok(())
    }

    /// Fails unless a thread may move a name.
    pub(super) fn may_move(&mut self, tid: Tid, from: &[u8], to: &[u8]) -> Result<()> {
        if self.subject(tid)?.is_none() {
            return Ok(());
        }
        self.may_remove(tid, from)?;
        let reached = [self.reach(tid, from, Last::Stay)?, self.reach(tid, to, Last::Stay)?];
        let found = self.look(&reached[0], Last::Name)?;
        if found.kind == Kind::Directory && parent(&reached[0]) != parent(&reached[1]) {
            // Its name for its parent changes.
            self.may(tid, &found, W_OK)?;
        }
        match self.look(&reached[1], Last::Name) {
            Ok(_) => self.may_remove(tid, to),
            Err(_) => self.may_make(tid, to),
        }
    }

    /// Fails unless what was found belongs to a thread's owner.
    pub(super) fn owns(&mut self, tid: Tid, found: &Attributes) -> Result<()> {
        let subject = self.subject(tid)?;
        if subject.is_none_or(|subject| subject.owner == found.owner) { Ok(()) } else { Err(EPERM) }
    }

    /// Fails unless a thread may set times of what was found. Whoever may write may set them to those of now.
    pub(super) fn may_set_times(&mut self, tid: Tid, found: &Attributes, is_now: bool) -> Result<()> {
        match self.owns(tid, found) {
            Err(_) if is_now => self.may(tid, found, W_OK),
            owned => owned,
        }
    }

    /// Permissions that a thread may give to what was found: a group that is not its own gets no rights by it.
    pub(super) fn given_permissions(&mut self, tid: Tid, found: &Attributes, mode: u64) -> Result<u64> {
        self.owns(tid, found)?;
        let subject = self.subject(tid)?;
        let is_own = subject.is_none_or(|subject| subject.is_in(found.group));
        Ok(if is_own { mode } else { mode & !u64::from(S_ISGID) })
    }

    /// Changes of owner and group that a thread may make. What makes a program another owner's goes by them.
    pub(super) fn may_give(&mut self, tid: Tid, found: &Attributes, changes: Changes) -> Result<Changes> {
        let (owner, group) = changes.owner.unwrap_or((found.owner, found.group));
        if let Some(subject) = self.subject(tid)? {
            self.owns(tid, found)?;
            if owner != found.owner || group != found.group && !subject.is_in(group) {
                return Err(EPERM);
            }
        }
        let before = u32::from(found.permissions);
        let of_group = if before & S_IXGRP != 0 { S_ISGID } else { 0 };
        let marks = before & (S_ISUID | of_group);
        let permissions = (found.kind == Kind::File && marks != 0).then_some((before & !marks) as u16);
        Ok(Changes { permissions, ..changes })
    }

    /// Changes that give something new to the owner of the thread that has made it, unless that is `root`.
    pub(super) fn new_owner(&mut self, tid: Tid) -> Result<Option<Changes>> {
        let subject = self.subject(tid)?;
        let of = |subject: Subject| Some((subject.owner, subject.group));
        Ok(subject.map(|subject| Changes { owner: of(subject), ..Changes::default() }))
    }

    /// Gives a file that was just made to its maker.
    pub(super) fn give_new(&mut self, tid: Tid, open: &Open) -> Result<()> {
        if let (Object::File { inode, .. }, Some(changes)) = (&open.object, self.new_owner(tid)?) {
            self.store.volume.change(*inode, &changes)?;
        }
        Ok(())
    }

    /// Capabilities that a process has: all of them as `root`, and none otherwise.
    fn capabilities(&self, pid: Tid) -> Result<u64> {
        Ok(if self.other(pid)?.owners.owner[1] == 0 { ALL } else { 0 })
    }

    /// The process that a header of capabilities names. A version that is not known is answered by the one that is.
    fn capability_header(&mut self, tid: Tid, at: u64) -> Result<Tid> {
        let [header] = self.words(tid, at)?;
        if header as u32 != _LINUX_CAPABILITY_VERSION_3 {
            self.write(tid, at, &_LINUX_CAPABILITY_VERSION_3.to_le_bytes())?;
            return Err(EINVAL);
        }
        match (header >> 32) as u32 {
            0 => self.pid(tid),
            pid => Ok(pid),
        }
    }

    pub(crate) fn sys_capget(&mut self, tid: Tid, [header, to, ..]: [u64; 6]) -> Answer {
        let pid = match self.capability_header(tid, header) {
            // Without a place for them this asks for the version.
            Err(EINVAL) if to == 0 => return DONE,
            pid => pid?,
        };
        let all = self.capabilities(pid)?;
        // Effective, permitted, and inheritable ones: the lower halves of all, then the upper ones.
        let halves = [all as u32, all as u32, 0, (all >> 32) as u32, (all >> 32) as u32, 0];
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        if to != 0 {
            self.write(tid, to, &bytes)?;
        }
        DONE
    }

    /// Capabilities are those of the owner: whoever asks for no others gets his way.
    pub(crate) fn sys_capset(&mut self, tid: Tid, [header, from, ..]: [u64; 6]) -> Answer {
        let pid = self.capability_header(tid, header)?;
        let own = self.pid(tid)?;
        let [first, middle, last] = self.words::<3>(tid, from)?;
        let effective = first & 0xffff_ffff | (middle >> 32) << 32;
        let permitted = first >> 32 | (last & 0xffff_ffff) << 32;
        let has = self.capabilities(own)?;
        if pid != own || (effective | permitted) & !has != 0 { Err(EPERM) } else { DONE }
    }
}
