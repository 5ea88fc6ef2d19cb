//! Names: made, moved, removed, and attributes of what has them.

use super::paths::{Meant, checked};
use super::stat::last;
use super::time::{MICROSECONDS, SECOND};
use super::way::{Way, split};
use super::{HERE, done, number};
use crate::errno::{EBUSY, EEXIST, EFAULT, EINVAL, EISDIR, ENOENT, EOPNOTSUPP, EPERM, EXDEV, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::special::Special;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::format;
use linux_raw_sys::general::{
    AT_EMPTY_PATH, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW, CAP_DAC_READ_SEARCH, IN_MODIFY,
    RENAME_EXCHANGE, RENAME_NOREPLACE, UTIME_NOW, UTIME_OMIT, W_OK,
};
use vfs::path::Last;
use vfs::{Changes, FileSystem, How, Inode, Kind};

/// Times that are those of the call.
const NOW: [u64; 4] = [0, UTIME_NOW as u64, 0, UTIME_NOW as u64];

/// An owner that stays.
const SAME: u32 = u32::MAX;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_readlink(&mut self, tid: Tid, [path, to, len, ..]: [u64; 6]) -> Answer {
        self.sys_readlinkat(tid, [HERE, path, to, len, 0, 0])
    }

    pub(crate) fn sys_readlinkat(&mut self, tid: Tid, [directory, path, to, len, ..]: [u64; 6]) -> Answer {
        if len as i64 <= 0 {
            return Err(EINVAL);
        }
        let path = self.path_or_empty(tid, path)?;
        if path.is_empty() && directory as u32 != HERE as u32 {
            let open = self.open_or_place(tid, directory)?;
            let Object::Link(link) = &open.object else { return Err(ENOENT) };
            return self.write_target(tid, &link.target, (to, len));
        }
        let path = if path.is_empty() { Err(ENOENT) } else { self.whole_path(tid, directory, path) }?;
        let path = self.reach(tid, &path, Last::Stay)?;
        let root = self.store.root;
        let special = Special::of(self.look(&path, Last::Stay)?.inode);
        if let Some(Special::OfProcess(pid, _)) = special {
            self.may_inspect(tid, pid)?;
        }
        let mut target = self.store.volume.readlink(root, &path)?;
        if let Some(Special::OfProcess(..) | Special::Descriptor(..)) = special {
            target = self.seen_path(tid, target)?;
        }
        self.write_target(tid, &target, (to, len))
    }

    fn write_target(&mut self, tid: Tid, target: &[u8], (to, len): (u64, u64)) -> Answer {
        let count = target.len().min(len as usize);
        self.write(tid, to, &target[..count])?;
        number(Ok(count as u64))
    }

    pub(crate) fn sys_mkdir(&mut self, tid: Tid, [path, mode, ..]: [u64; 6]) -> Answer {
        self.sys_mkdirat(tid, [HERE, path, mode, 0, 0, 0])
    }

    pub(crate) fn sys_mkdirat(&mut self, tid: Tid, [directory, path, mode, ..]: [u64; 6]) -> Answer {
        let path = self.path_at(tid, directory, path)?;
        let permissions = mode as u32 & 0o1777 & !self.process(tid)?.umask();
        self.may_make(tid, &path)?;
        let root = self.store.root;
        self.is_about_directory();
        // The root directory, and what ends with a dot, are there.
        match self.store.volume.mkdir(root, &path, permissions as u16) {
            Err(vfs::Error::Busy) => Err(EEXIST),
            Err(error) => Err(error.into()),
            Ok(()) => match self.new_owner(tid)? {
                Some(changes) => self.change_at(&path, Last::Name, &changes),
                None => DONE,
            },
        }
    }

    pub(crate) fn sys_rmdir(&mut self, tid: Tid, [path, ..]: [u64; 6]) -> Answer {
        self.sys_unlinkat(tid, [HERE, path, AT_REMOVEDIR.into(), 0, 0, 0])
    }

    pub(crate) fn sys_unlink(&mut self, tid: Tid, [path, ..]: [u64; 6]) -> Answer {
        self.sys_unlinkat(tid, [HERE, path, 0, 0, 0, 0])
    }

    pub(crate) fn sys_unlinkat(&mut self, tid: Tid, [directory, path, flags, ..]: [u64; 6]) -> Answer {
        let flags = checked(flags, AT_REMOVEDIR)?;
        let path = self.path_at(tid, directory, path)?;
        self.may_remove(tid, &path)?;
        let root = self.store.root;
        let removed = match flags {
            0 => {
                let last = self.last_name(&path);
                let removed = self.store.volume.unlink(root, &path);
                if removed.is_ok() {
                    self.lost_name(last);
                }
                removed
            }
            _ => {
                self.is_about_directory();
                return match self.remove_directory(&path) {
                    Err(EBUSY) if path.ends_with(b"/.") => Err(EINVAL),
                    removed => done(removed),
                };
            }
        };
        done(removed.map_err(Into::into))
    }

    pub(crate) fn sys_rename(&mut self, tid: Tid, [from, to, ..]: [u64; 6]) -> Answer {
        self.sys_renameat2(tid, [HERE, from, HERE, to, 0, 0])
    }

    pub(crate) fn sys_renameat(&mut self, tid: Tid, [from_at, from, to_at, to, ..]: [u64; 6]) -> Answer {
        self.sys_renameat2(tid, [from_at, from, to_at, to, 0, 0])
    }

    pub(crate) fn sys_renameat2(
        &mut self,
        tid: Tid,
        [from_at, from, to_at, to, flags, _]: [u64; 6],
    ) -> Answer {
        let flags = checked(flags, RENAME_NOREPLACE | RENAME_EXCHANGE)?;
        if flags == RENAME_NOREPLACE | RENAME_EXCHANGE {
            return Err(EINVAL);
        }
        let from = self.path_at(tid, from_at, from)?;
        let to = match self.path_at(tid, to_at, to) {
            Ok(to) => to,
            Err(error) => {
                // The directory of the old name is looked for before that of the new one.
                self.check_directory(tid, &from)?;
                return Err(error);
            }
        };
        self.check_names(tid, (&from, &to), flags)?;
        if flags & RENAME_NOREPLACE != 0 {
            self.reach(tid, &from, Last::Name)?;
            self.reach(tid, &to, Last::Name)?;
            if self.look(&to, Last::Name).is_ok() {
                self.look(&from, Last::Name)?;
                return Err(EEXIST);
            }
        }
        self.may_move(tid, &from, &to)?;
        if flags == RENAME_EXCHANGE {
            return self.exchange(tid, &from, &to);
        }
        // A name that is not there is no error before the directory of the other one.
        if self.has_watches() && self.look(&from, Last::Name).is_ok_and(|found| found.kind == Kind::Directory)
        {
            self.is_about_directory();
        }
        let last = self.last_name(&to);
        self.move_name(&from, &to)?;
        self.lost_name(last);
        DONE
    }

    /// Fails if one of two paths has no last name: behind errors of their directories, and in front of all others.
    fn check_names(&mut self, tid: Tid, (from, to): (&Way, &Way), flags: u32) -> Result<()> {
        if from.has_name() && to.has_name() {
            return Ok(());
        }
        self.check_directory(tid, from)?;
        self.check_directory(tid, to)?;
        let may_replace = flags & RENAME_NOREPLACE == 0;
        Err(if from.has_name() && !may_replace { EEXIST } else { EBUSY })
    }

    /// The file whose last name this is.
    fn last_name(&mut self, path: &[u8]) -> Option<Inode> {
        let found = self.look(path, Last::Name).ok()?;
        (found.kind == Kind::File && found.links == 1).then_some(found.inode)
    }

    /// A file may have lost its last name.
    fn lost_name(&mut self, file: Option<Inode>) {
        if let Some(inode) = file {
            self.store.lost_name(inode);
            self.let_removed_files_go();
        }
    }

    /// Two names change places. Meanwhile the first has one that nobody knows.
    fn exchange(&mut self, tid: Tid, from: &Way, to: &Way) -> Answer {
        self.check_directory(tid, from)?;
        self.check_directory(tid, to)?;
        self.may_move(tid, to, from)?;
        if self.look(from, Last::Name)?.inode == self.look(to, Last::Name)?.inode {
            return DONE;
        }
        // The paths may lead through what is moved, which is elsewhere then.
        let [from, to] = [&self.name_at(from)?, &self.name_at(to)?];
        // A directory cannot be in itself.
        if to.starts_with(&[from.as_slice(), b"/"].concat()) {
            return Err(EINVAL);
        }
        // Nobody can make it before.
        let mut number = [0; 16];
        self.machine.random(&mut number);
        let name = format!(".exchanged-{:032x}", u128::from_le_bytes(number));
        let aside = [split(from).0, name.as_bytes()].concat();
        self.move_name(from, &aside)?;
        if let Err(error) = self.move_name(to, from) {
            let _ = self.move_name(&aside, from);
            return Err(error);
        }
        if let Err(error) = self.move_name(&aside, to) {
            let _ = self.move_name(from, to);
            let _ = self.move_name(&aside, from);
            return Err(error);
        }
        DONE
    }

    pub(crate) fn sys_link(&mut self, tid: Tid, [from, to, ..]: [u64; 6]) -> Answer {
        self.sys_linkat(tid, [HERE, from, HERE, to, 0, 0])
    }

    pub(crate) fn sys_linkat(&mut self, tid: Tid, [from_at, from, to_at, to, flags, _]: [u64; 6]) -> Answer {
        let flags = checked(flags, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)?;
        let mut from = match self.meant(tid, from_at, from, flags)? {
            Meant::Open(open) => {
                let to = self.path_at(tid, to_at, to)?;
                return self.link_open(tid, &open, &to);
            }
            Meant::At(path) => path,
        };
        let last = if flags & AT_SYMLINK_FOLLOW != 0 { Last::Follow } else { Last::Stay };
        from = self.reach(tid, &from, last)?;
        self.look(&from, last)?;
        let to = self.path_at(tid, to_at, to)?;
        self.may_make(tid, &to)?;
        if flags & AT_SYMLINK_FOLLOW != 0 {
            from = Way::new(self.canonical(&from)?);
        }
        let root = self.store.root;
        linked(self.store.volume.link(root, &from, &to))
    }

    /// Gives what is open another name. That is for whoever reaches everything, since others may have something open that they cannot reach.
    fn link_open(&mut self, tid: Tid, open: &Open, to: &Way) -> Answer {
        if !self.can(tid, CAP_DAC_READ_SEARCH) {
            return Err(ENOENT);
        }
        self.may_make(tid, to)?;
        let inode = match &open.object {
            Object::Link(link) => Some(link.found.inode),
            _ => open.file(),
        };
        let root = self.store.root;
        match inode.filter(|inode| Special::of(*inode).is_none()) {
            Some(inode) => linked(self.store.volume.link_open(inode, root, to)),
            None if self.look(to, Last::Name).is_ok() => Err(EEXIST),
            None => Err(EXDEV),
        }
    }

    pub(crate) fn sys_symlink(&mut self, tid: Tid, [target, path, ..]: [u64; 6]) -> Answer {
        self.sys_symlinkat(tid, [target, HERE, path, 0, 0, 0])
    }

    pub(crate) fn sys_symlinkat(&mut self, tid: Tid, [target, directory, path, ..]: [u64; 6]) -> Answer {
        let target = self.path_or_empty(tid, target)?;
        if target.is_empty() {
            return Err(ENOENT);
        }
        let path = self.path_at(tid, directory, path)?;
        self.may_make(tid, &path)?;
        let root = self.store.root;
        done(self.store.volume.symlink(root, &target, &path).map_err(Into::into))
    }

    pub(crate) fn sys_truncate(&mut self, tid: Tid, [path, len, ..]: [u64; 6]) -> Answer {
        if len > i64::MAX as u64 {
            return Err(EINVAL);
        }
        let path = self.path_at(tid, HERE, path)?;
        let path = self.reach(tid, &path, Last::Follow)?;
        let found = self.look(&path, Last::Follow)?;
        match found.kind {
            Kind::Directory => return Err(EISDIR),
            Kind::File if self.store.node(&found).is_none() => {}
            _ => return Err(EINVAL),
        }
        self.may(tid, &found, W_OK)?;
        self.check_not_running(found.inode)?;
        self.with_file(&path, |system, inode| {
            system.check_length(tid, found.len, len)?;
            system.unmark(inode)?;
            system.store.truncate(inode, len)?;
            system.noticed(inode, IN_MODIFY);
            Ok(())
        })
    }

    /// Does something with a file that is open meanwhile.
    fn with_file(&mut self, path: &[u8], action: impl FnOnce(&mut Self, Inode) -> Result<()>) -> Answer {
        let root = self.store.root;
        let inode = self.store.volume.open(root, path, How::default(), 0)?;
        let outcome = action(self, inode);
        let _ = self.store.volume.close(inode);
        done(outcome)
    }

    /// Changes attributes of what is at a path.
    fn change_at(&mut self, path: &[u8], last: Last, changes: &Changes) -> Answer {
        let found = self.look(path, last)?;
        let root = self.store.root;
        match found.kind {
            Kind::File => {
                self.with_file(path, |system, inode| Ok(system.store.volume.change(inode, changes)?))
            }
            Kind::Directory => {
                self.is_about_directory();
                let inode = self.store.volume.enter(root, path)?;
                let changed = self.store.volume.change(inode, changes);
                let _ = self.store.volume.close(inode);
                done(changed.map_err(Into::into))
            }
            // Attributes of a link mean nothing.
            Kind::Symlink | Kind::Special => DONE,
        }
    }

    fn change_open(&mut self, open: &Open, changes: &Changes) -> Answer {
        if matches!(open.object, Object::Directory { .. }) {
            self.is_about_directory();
        }
        match open.file() {
            Some(inode) => done(self.store.volume.change(inode, changes).map_err(Into::into)),
            None => DONE,
        }
    }

    pub(crate) fn sys_chmod(&mut self, tid: Tid, [path, mode, ..]: [u64; 6]) -> Answer {
        self.sys_fchmodat(tid, [HERE, path, mode, 0, 0, 0])
    }

    pub(crate) fn sys_fchmodat(&mut self, tid: Tid, [directory, path, mode, ..]: [u64; 6]) -> Answer {
        self.sys_fchmodat2(tid, [directory, path, mode, 0, 0, 0])
    }

    pub(crate) fn sys_fchmodat2(&mut self, tid: Tid, [directory, path, mode, flags, ..]: [u64; 6]) -> Answer {
        let flags = checked(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
        let path = match self.meant(tid, directory, path, flags)? {
            Meant::Open(open) if matches!(open.object, Object::Link(_)) => return Err(EOPNOTSUPP),
            Meant::Open(open) => return self.give_permissions(tid, &open, mode),
            Meant::At(path) => path,
        };
        let last = last(flags);
        let path = self.reach(tid, &path, last)?;
        let found = self.look(&path, last)?;
        if found.kind == Kind::Symlink {
            return Err(EOPNOTSUPP);
        }
        let mode = self.given_permissions(tid, &found, mode)?;
        self.change_at(&path, last, &permissions(mode))
    }

    pub(crate) fn sys_fchmod(&mut self, tid: Tid, [fd, mode, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        self.give_permissions(tid, &open, mode)
    }

    fn give_permissions(&mut self, tid: Tid, open: &Open, mode: u64) -> Answer {
        let mode = match open.file() {
            Some(inode) => {
                let found = self.store.attributes(inode)?;
                self.given_permissions(tid, &found, mode)?
            }
            None => mode,
        };
        self.change_open(open, &permissions(mode))
    }

    pub(crate) fn sys_chown(&mut self, tid: Tid, [path, owner, group, ..]: [u64; 6]) -> Answer {
        self.sys_fchownat(tid, [HERE, path, owner, group, 0, 0])
    }

    pub(crate) fn sys_lchown(&mut self, tid: Tid, [path, owner, group, ..]: [u64; 6]) -> Answer {
        self.sys_fchownat(tid, [HERE, path, owner, group, AT_SYMLINK_NOFOLLOW.into(), 0])
    }

    pub(crate) fn sys_fchown(&mut self, tid: Tid, [fd, owner, group, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        self.give_owners(tid, &open, (owner, group))
    }

    fn give_owners(&mut self, tid: Tid, open: &Open, to: (u64, u64)) -> Answer {
        let Some(inode) = open.file() else { return DONE };
        let before = self.store.attributes(inode)?;
        let changes = owners(to, (before.owner, before.group));
        let changes = self.may_give(tid, &before, changes)?;
        self.change_open(open, &changes)
    }

    pub(crate) fn sys_fchownat(
        &mut self,
        tid: Tid,
        [directory, path, owner, group, flags, _]: [u64; 6],
    ) -> Answer {
        let flags = checked(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
        let path = match self.meant(tid, directory, path, flags)? {
            Meant::Open(open) => return self.give_owners(tid, &open, (owner, group)),
            Meant::At(path) => path,
        };
        let last = last(flags);
        let path = self.reach(tid, &path, last)?;
        let before = self.look(&path, last)?;
        let changes = owners((owner, group), (before.owner, before.group));
        let changes = self.may_give(tid, &before, changes)?;
        self.change_at(&path, last, &changes)
    }

    pub(crate) fn sys_utimensat(
        &mut self,
        tid: Tid,
        [directory, path, times, flags, ..]: [u64; 6],
    ) -> Answer {
        let flags = checked(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
        let words: [u64; 4] = if times == 0 { NOW } else { self.words(tid, times)? };
        let is_good = |nanoseconds: u64| {
            nanoseconds < SECOND || nanoseconds == UTIME_NOW.into() || nanoseconds == UTIME_OMIT.into()
        };
        if !is_good(words[1]) || !is_good(words[3]) {
            return Err(EINVAL);
        }
        // Nothing is changed, so nothing is looked for.
        if words[1] == UTIME_OMIT.into() && words[3] == UTIME_OMIT.into() {
            return DONE;
        }
        self.set_times_at(tid, (directory, path, flags), &words)
    }

    /// Sets the times of what a directory, a path and flags mean; without a path that is what is open, if it is no place.
    fn set_times_at(
        &mut self,
        tid: Tid,
        (directory, path, flags): (u64, u64, u32),
        words: &[u64; 4],
    ) -> Answer {
        let meant = match path {
            0 if directory as u32 == HERE as u32 => return Err(EFAULT),
            0 if flags != 0 => return Err(EINVAL),
            0 => Meant::Open(self.open_file(tid, directory)?),
            _ => self.meant(tid, directory, path, flags)?,
        };
        let is_now = words[1] == UTIME_NOW.into() && words[3] == UTIME_NOW.into();
        let path = match meant {
            Meant::Open(open) => return self.set_times(tid, &open, words, is_now),
            Meant::At(path) => path,
        };
        let last = last(flags);
        let path = self.reach(tid, &path, last)?;
        let found = self.look(&path, last)?;
        self.may_set_times(tid, &found, is_now)?;
        let changes = self.times(words, (found.accessed, found.modified));
        self.change_at(&path, last, &changes)
    }

    /// Sets the times of what is open.
    fn set_times(&mut self, tid: Tid, open: &Open, words: &[u64; 4], is_now: bool) -> Answer {
        let Some(inode) = open.file() else { return DONE };
        let found = self.store.attributes(inode)?;
        self.may_set_times(tid, &found, is_now)?;
        let changes = self.times(words, (found.accessed, found.modified));
        self.change_open(open, &changes)
    }

    fn times(&self, words: &[u64; 4], before: (u64, u64)) -> Changes {
        let now = self.machine.date();
        let time = |seconds: u64, nanoseconds: u64, before: u64| match nanoseconds as u32 {
            UTIME_NOW => now,
            UTIME_OMIT => before,
            // Times of the file systems begin in 1970. An earlier one becomes the first, as on file systems of Linux with such a beginning.
            _ if (seconds as i64) < 0 => 0,
            _ => seconds.saturating_mul(SECOND).saturating_add(nanoseconds),
        };
        let times = (time(words[0], words[1], before.0), time(words[2], words[3], before.1));
        Changes { times: Some(times), ..Changes::default() }
    }

    pub(crate) fn sys_utimes(&mut self, tid: Tid, [path, times, ..]: [u64; 6]) -> Answer {
        self.sys_futimesat(tid, [HERE, path, times, 0, 0, 0])
    }

    pub(crate) fn sys_futimesat(&mut self, tid: Tid, [directory, path, times, ..]: [u64; 6]) -> Answer {
        let words = match times {
            0 => NOW,
            at => {
                let [accessed, a, modified, b] = self.words(tid, at)?;
                if a >= MICROSECONDS || b >= MICROSECONDS {
                    return Err(EINVAL);
                }
                [accessed, a * 1000, modified, b * 1000]
            }
        };
        self.set_times_at(tid, (directory, path, 0), &words)
    }

    pub(crate) fn sys_utime(&mut self, tid: Tid, [path, times, ..]: [u64; 6]) -> Answer {
        let words = match times {
            0 => NOW,
            at => {
                let [accessed, modified] = self.words(tid, at)?;
                [accessed, 0, modified, 0]
            }
        };
        self.set_times_at(tid, (HERE, path, 0), &words)
    }

    pub(crate) fn sys_umask(&mut self, tid: Tid, [mask, ..]: [u64; 6]) -> Answer {
        let mut filesystem = self.process(tid)?.filesystem.borrow_mut();
        let before = core::mem::replace(&mut filesystem.umask, mask as u32 & 0o777);
        Ok(Outcome::Value(before.into()))
    }

    /// The file systems have no handles of files, nor extended attributes for the calls that newer versions of Linux have for them.
    pub(crate) fn sys_absent(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        Err(EOPNOTSUPP)
    }
}

/// Result of a call for another name, which no directory gets.
fn linked(made: vfs::Result<()>) -> Answer {
    match made {
        Err(vfs::Error::IsDirectory) => Err(EPERM),
        made => done(made.map_err(Into::into)),
    }
}

fn permissions(mode: u64) -> Changes {
    Changes { permissions: Some((mode & 0o7777) as u16), ..Changes::default() }
}

fn owners((owner, group): (u64, u64), before: (u32, u32)) -> Changes {
    let new = |new: u64, before: u32| if new as u32 == SAME { before } else { new as u32 };
    Changes { owner: Some((new(owner, before.0), new(group, before.1))), ..Changes::default() }
}

#[cfg(test)]
mod tests;
