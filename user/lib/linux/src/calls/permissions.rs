//! Permissions of files: owner, group and mode, as Linux checks them for the effective owner of a process.
//!
//! A thread that has all [capabilities](crate::capabilities) that are about files passes, and nothing is looked up for it: `root`, who has given up none. Symbolic links
//! belong to nobody, so a sticky directory keeps none of them.

use super::paths::{joined, names};
use super::way::Way;
use crate::capabilities::Set;
use crate::errno::{EACCES, ENOENT, ENOTDIR, EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::system::System;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_SYS_PTRACE, O_ACCMODE,
    O_PATH, O_RDONLY, O_TRUNC, O_WRONLY, R_OK, S_IFDIR, S_IFMT, S_ISGID, S_ISUID, S_ISVTX, S_IXGRP, W_OK,
    X_OK,
};
use vfs::path::Last;
use vfs::{Attributes, Changes, FileSystem, Inode, Kind};

/// Capabilities with which a thread passes all that is checked here.
const OF_FILES: Set =
    1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH | 1 << CAP_FOWNER | 1 << CAP_FSETID;

/// Owners for which something is checked, and capabilities.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The owner.
    pub owner: u32,
    /// The group.
    pub group: u32,
    /// Other groups.
    pub groups: Vec<u32>,
    /// Capabilities in effect.
    pub capabilities: Set,
}

impl Subject {
    fn is_in(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }

    fn can(&self, capability: u32) -> bool {
        self.capabilities & 1 << capability != 0
    }

    /// Whether something with an owner is its own, or as if it were.
    pub fn owns(&self, owner: u32) -> bool {
        self.owner == owner || self.can(CAP_FOWNER)
    }

    /// Whether something with a mode, an owner and a group allows all that is wanted: `R_OK` and its like. With the kind of a directory in the mode it is one.
    pub fn may(&self, mode: u32, (owner, group): (u32, u32), wanted: u32) -> bool {
        let shift = match () {
            () if self.owner == owner => 6,
            () if self.is_in(group) => 3,
            () => 0,
        };
        let is_directory = mode & S_IFMT == S_IFDIR;
        let only_reads = if is_directory { wanted & W_OK == 0 } else { wanted == R_OK };
        // Nobody begins a file that is no program for anybody.
        let is_possible = is_directory || wanted & X_OK == 0 || mode & 0o111 != 0;
        mode >> shift & wanted == wanted
            || only_reads && self.can(CAP_DAC_READ_SEARCH)
            || is_possible && self.can(CAP_DAC_OVERRIDE)
    }

    /// Fails unless it may do something with what was found.
    pub fn check(&self, found: &Attributes, wanted: u32) -> Result<()> {
        let kind = if found.kind == Kind::Directory { S_IFDIR } else { 0 };
        let mode = kind | u32::from(found.permissions);
        let is_allowed = self.may(mode, (found.owner, found.group), wanted);
        if is_allowed { Ok(()) } else { Err(EACCES) }
    }
}

/// Rights that flags of a call ask for which opens something: `R_OK` and its like.
pub(super) fn wanted(flags: u32) -> u32 {
    let access = match flags & O_ACCMODE {
        O_RDONLY => R_OK,
        O_WRONLY => W_OK,
        _ => R_OK | W_OK,
    };
    if flags & O_TRUNC != 0 { access | W_OK } else { access }
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
    /// Effective owners of a thread's process, and its capabilities.
    pub(super) fn identity(&mut self, tid: Tid) -> Result<Subject> {
        let capabilities = self.thread(tid)?.capabilities.effective;
        let owners = &self.process(tid)?.owners;
        let (owner, group, groups) = (owners.owner[1], owners.group[1], owners.groups.clone());
        Ok(Subject { owner, group, groups, capabilities })
    }

    /// Identity of a thread, or none if it passes all that is checked of files.
    pub(super) fn subject(&mut self, tid: Tid) -> Result<Option<Subject>> {
        if self.thread(tid)?.capabilities.effective & OF_FILES == OF_FILES {
            return Ok(None);
        }
        self.identity(tid).map(Some)
    }

    /// Fails unless a thread may do something with what was found: `R_OK` and its like.
    pub(super) fn may(&mut self, tid: Tid, found: &Attributes, wanted: u32) -> Result<()> {
        self.subject(tid)?.map_or(Ok(()), |subject| subject.check(found, wanted))
    }

    /// Walks a path, all directories of which have to be searchable, from that on in which it begins. Gives back the path without symbolic links; its last name need not be there.
    pub(super) fn reach(&mut self, tid: Tid, way: &Way, last: Last) -> Result<Way> {
        // With another root, a symbolic link at the end of the path does not begin in the sandbox's.
        if self.subject(tid)?.is_none() && !self.has_root(tid)? {
            return Ok(way.clone());
        }
        let (base, path) = way.parts();
        Ok(Way::walked(self.walk(tid, base, path, last, 0)?.path))
    }

    /// Fails unless a thread may look into a process, and have what that has open: the process is its own; or all owners and groups of that are those in
    /// effect here, and it has no capability that this one has not; or this one has `CAP_SYS_PTRACE`. So a program that has set another owner keeps what it has from who began it.
    pub(super) fn may_inspect(&mut self, tid: Tid, pid: Tid) -> Result<()> {
        let own = self.thread(tid)?.capabilities;
        if self.pid(tid)? == pid || own.can(CAP_SYS_PTRACE) {
            return Ok(());
        }
        let owners = &self.process(tid)?.owners;
        let (owner, group) = (owners.owner[1], owners.group[1]);
        let other = &self.other(pid).map_err(|_| ENOENT)?.owners;
        let is_same = other.owner == [owner; 3] && other.group == [group; 3];
        let has_more = self.capabilities_of(pid)?.permitted & !own.effective != 0;
        if is_same && !has_more { Ok(()) } else { Err(EACCES) }
    }

    /// Somebody writes to a file: it is no program any more that sets an owner or a group, unless that is somebody with `CAP_FSETID`.
    pub(super) fn unmark(&mut self, inode: Inode) -> Result<()> {
        let Some(tid) = self.current else { return Ok(()) };
        if self.can(tid, CAP_FSETID) {
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
        self.may(tid, found, wanted(flags))
    }

    /// Fails unless a thread may make a name at a path, if that is not there.
    pub(super) fn may_make(&mut self, tid: Tid, path: &Way) -> Result<()> {
        let Some(subject) = self.subject(tid)? else { return Ok(()) };
        let reached = self.reach(tid, path, Last::Name)?;
        // The call says itself that it is there.
        if !path.has_name() || matches!(self.look(&reached, Last::Name), Ok(_) | Err(ENOTDIR)) {
            return Ok(());
        }
        let directory = self.look(&parent(&reached), Last::Name)?;
        subject.check(&directory, W_OK | X_OK)
    }

    /// Fails unless a thread may remove the name at a path.
    pub(super) fn may_remove(&mut self, tid: Tid, path: &Way) -> Result<()> {
        let Some(subject) = self.subject(tid)? else { return Ok(()) };
        let reached = self.reach(tid, path, Last::Name)?;
        let found = self.look(&reached, Last::Name)?;
        if !path.has_name() {
            // The call says itself that there is no name to remove.
            return Ok(());
        }
        let directory = self.look(&parent(&reached), Last::Name)?;
        subject.check(&directory, W_OK | X_OK)?;
        let is_sticky = u32::from(directory.permissions) & S_ISVTX != 0 && found.kind != Kind::Symlink;
        if is_sticky && directory.owner != subject.owner && !subject.owns(found.owner) {
            return Err(EPERM);
        }
        Ok(())
    }

    /// Fails unless the directory is there in which a path has its last name, and may be searched.
    pub(super) fn check_directory(&mut self, tid: Tid, way: &Way) -> Result<()> {
        let (base, path) = way.parts();
        self.walk(tid, base, path, Last::Name, 0).map(drop)
    }

    /// Fails unless a thread may move a name. The directories of both names come before what is in them.
    pub(super) fn may_move(&mut self, tid: Tid, from: &Way, to: &Way) -> Result<()> {
        if self.subject(tid)?.is_none() {
            return Ok(());
        }
        let reached = [self.reach(tid, from, Last::Name)?, self.reach(tid, to, Last::Name)?];
        self.may_remove(tid, from)?;
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

    /// Fails unless what was found belongs to a thread's owner, or is as if it did.
    pub(super) fn owns(&mut self, tid: Tid, found: &Attributes) -> Result<()> {
        let subject = self.subject(tid)?;
        if subject.is_none_or(|subject| subject.owns(found.owner)) { Ok(()) } else { Err(EPERM) }
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
        let is_own = subject.is_none_or(|subject| subject.is_in(found.group) || subject.can(CAP_FSETID));
        Ok(if is_own { mode } else { mode & !u64::from(S_ISGID) })
    }

    /// Changes of owner and group that a thread may make. What makes a program another owner's goes by them.
    pub(super) fn may_give(&mut self, tid: Tid, found: &Attributes, changes: Changes) -> Result<Changes> {
        let (owner, group) = changes.owner.unwrap_or((found.owner, found.group));
        if let Some(subject) = self.subject(tid)?.filter(|subject| !subject.can(CAP_CHOWN)) {
            let stays = owner == found.owner && (group == found.group || subject.is_in(group));
            if subject.owner != found.owner || !stays {
                return Err(EPERM);
            }
        }
        let before = u32::from(found.permissions);
        let of_group = if before & S_IXGRP != 0 { S_ISGID } else { 0 };
        let marks = before & (S_ISUID | of_group);
        let permissions = (found.kind == Kind::File && marks != 0).then_some((before & !marks) as u16);
        Ok(Changes { permissions, ..changes })
    }

    /// Changes that give something new to the owner of the thread that has made it, unless that is `root`, whose it is.
    pub(super) fn new_owner(&mut self, tid: Tid) -> Result<Option<Changes>> {
        let owners = &self.process(tid)?.owners;
        let owner = (owners.owner[1], owners.group[1]);
        Ok((owner.0 != 0).then(|| Changes { owner: Some(owner), ..Changes::default() }))
    }

    /// Gives a file that was just made to its maker.
    pub(super) fn give_new(&mut self, tid: Tid, open: &Open) -> Result<()> {
        if let (Object::File { inode, .. }, Some(changes)) = (&open.object, self.new_owner(tid)?) {
            self.store.volume.change(*inode, &changes)?;
        }
        Ok(())
    }
}
