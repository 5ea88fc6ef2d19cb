//! Extended attributes of files, as far as their file system has them. There is something to look at first: the file, the name of the attribute, its value, and who may do what with names
//! of that kind.
//!
//! Lists of who may do what (`system.posix_acl_access`) are not there, as on a file system that is mounted without them.

use super::HERE;
use super::permissions::Subject;
use super::stat::Stat;
use crate::errno::{E2BIG, EACCES, EINVAL, ENAMETOOLONG, ENODATA, EOPNOTSUPP, EPERM, ERANGE, Errno, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    AT_SYMLINK_NOFOLLOW, CAP_SYS_ADMIN, R_OK, S_IFDIR, S_IFMT, S_IFREG, S_ISVTX, W_OK, XATTR_CREATE,
    XATTR_NAME_MAX, XATTR_REPLACE, XATTR_SIZE_MAX,
};
use vfs::{Before, Error, FileSystem, Inode};

/// Error of a file system that is asked for an attribute.
fn errno(error: Error) -> Errno {
    if error == Error::NotFound { ENODATA } else { error.into() }
}

/// Bytes of the longest name, with the zero behind it.
const NAME_BYTES: usize = XATTR_NAME_MAX as usize + 1;

/// Names of this kind are those of the system, and of its security.
const OF_SYSTEM: &[u8] = b"system.";
/// See [`OF_SYSTEM`]: `root` alone writes these.
const OF_SECURITY: &[u8] = b"security.";
/// Names of this kind are for `root`.
const TRUSTED: &[u8] = b"trusted.";
/// Names of this kind are for whoever may read and write the file, if that is a file or a directory.
const OF_USER: &[u8] = b"user.";

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Attributes of an open file whose extended ones are asked for. A place has none.
    fn stat_file(&mut self, tid: Tid, fd: u64) -> Result<Stat> {
        let open = self.open_file(tid, fd)?;
        self.stat_object(&open)
    }

    /// The name of an attribute. `ERANGE`: it is empty, or too long.
    fn attribute_name(&mut self, tid: Tid, at: u64) -> Result<Vec<u8>> {
        let room = self.room(tid)?;
        let name = self.store.text(&mut room.borrow_mut().memory, at, NAME_BYTES);
        match name {
            Err(ENAMETOOLONG) => Err(ERANGE),
            Ok(name) if name.is_empty() => Err(ERANGE),
            name => name,
        }
    }

    /// Fails unless a thread may read an attribute of a file (`R_OK`), or write it (`W_OK`), as far as file systems have no say in that.
    fn may_access_attribute(&mut self, tid: Tid, stat: &Stat, name: &[u8], wanted: u32) -> Result<()> {
        let subject = self.subject(tid)?;
        let writes = wanted == W_OK;
        let refused = Err(if writes { EPERM } else { ENODATA });
        if name.starts_with(OF_SYSTEM) {
            return Ok(());
        }
        if name.starts_with(OF_SECURITY) {
            return if writes && !self.can(tid, CAP_SYS_ADMIN) { Err(EPERM) } else { Ok(()) };
        }
        if name.starts_with(TRUSTED) {
            return if self.can(tid, CAP_SYS_ADMIN) { Ok(()) } else { refused };
        }
        if name.starts_with(OF_USER) {
            let kind = stat.mode & S_IFMT;
            let is_sticky = kind == S_IFDIR && stat.mode & S_ISVTX != 0;
            let is_other = subject.as_ref().is_some_and(|subject| !subject.owns(stat.owner));
            if kind != S_IFREG && kind != S_IFDIR || writes && is_sticky && is_other {
                return refused;
            }
        }
        let may = |subject: &Subject| subject.may(stat.mode, (stat.owner, stat.group), wanted);
        if subject.as_ref().is_none_or(may) { Ok(()) } else { Err(EACCES) }
    }

    /// The inode of a file whose attribute has this name.
    fn file_with(stat: &Stat, name: &[u8]) -> Result<Inode> {
        let is_kept = [OF_USER, TRUSTED, OF_SECURITY].iter().any(|kind| name.starts_with(kind));
        stat.file.filter(|_| is_kept).ok_or(EOPNOTSUPP)
    }

    /// Gives a process as many bytes as it has room for, which is all of them. Without any room it asks how many there are.
    fn give_whole(&mut self, tid: Tid, bytes: &[u8], [at, room]: [u64; 2]) -> Answer {
        if room != 0 {
            if room < bytes.len() as u64 {
                return Err(ERANGE);
            }
            self.write(tid, at, bytes)?;
        }
        Ok(Outcome::Value(bytes.len() as u64))
    }

    /// Reads the attribute of a file.
    fn get_attribute(&mut self, tid: Tid, stat: &Stat, [name, at, room]: [u64; 3]) -> Answer {
        let name = self.attribute_name(tid, name)?;
        self.may_access_attribute(tid, stat, &name, R_OK)?;
        let file = Self::file_with(stat, &name)?;
        let value = self.store.volume.xattr(file, &name).map_err(errno)?;
        self.give_whole(tid, &value, [at, room])
    }

    /// Lists the names of attributes that a thread may read: those for `root` are shown to nobody else.
    fn list_attributes(&mut self, tid: Tid, stat: &Stat, [at, room]: [u64; 2]) -> Answer {
        let Some(file) = stat.file else { return DONE };
        let names = self.store.volume.xattrs(file)?;
        let sees_all = self.can(tid, CAP_SYS_ADMIN);
        let shown = names.split_inclusive(|&byte| byte == 0);
        let shown: Vec<u8> =
            shown.filter(|name| sees_all || !name.starts_with(TRUSTED)).flatten().copied().collect();
        self.give_whole(tid, &shown, [at, room])
    }

    /// Gives a file an attribute.
    fn set_attribute(&mut self, tid: Tid, stat: &Stat, [name, value, len, flags]: [u64; 4]) -> Answer {
        if flags as u32 & !(XATTR_CREATE | XATTR_REPLACE) != 0 {
            return Err(EINVAL);
        }
        let name = self.attribute_name(tid, name)?;
        if len > XATTR_SIZE_MAX.into() {
            return Err(E2BIG);
        }
        let mut bytes = vec![0; len as usize];
        self.read(tid, value, &mut bytes)?;
        self.may_access_attribute(tid, stat, &name, W_OK)?;
        let file = Self::file_with(stat, &name)?;
        let before = match flags as u32 {
            0 => Before::Any,
            XATTR_CREATE => Before::None,
            XATTR_REPLACE => Before::One,
            _ => self.before_both(file, &name)?,
        };
        self.store.volume.set_xattr(file, &name, &bytes, before).map_err(errno)?;
        DONE
    }

    /// Both is wanted: that there is one, and that there is none. The error is that of the first which is not so.
    fn before_both(&mut self, file: Inode, name: &[u8]) -> Result<Before> {
        self.store.volume.xattr(file, name).map_err(errno)?;
        Ok(Before::None)
    }

    /// Takes an attribute from a file.
    fn remove_attribute(&mut self, tid: Tid, stat: &Stat, name: u64) -> Answer {
        let name = self.attribute_name(tid, name)?;
        self.may_access_attribute(tid, stat, &name, W_OK)?;
        let file = Self::file_with(stat, &name)?;
        self.store.volume.remove_xattr(file, &name).map_err(errno)?;
        DONE
    }

    pub(crate) fn sys_getxattr(&mut self, tid: Tid, [path, name, at, room, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, 0)?;
        self.get_attribute(tid, &stat, [name, at, room])
    }

    pub(crate) fn sys_lgetxattr(&mut self, tid: Tid, [path, name, at, room, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, AT_SYMLINK_NOFOLLOW)?;
        self.get_attribute(tid, &stat, [name, at, room])
    }

    pub(crate) fn sys_fgetxattr(&mut self, tid: Tid, [fd, name, at, room, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_file(tid, fd)?;
        self.get_attribute(tid, &stat, [name, at, room])
    }

    pub(crate) fn sys_setxattr(&mut self, tid: Tid, [path, name, value, len, flags, _]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, 0)?;
        self.set_attribute(tid, &stat, [name, value, len, flags])
    }

    pub(crate) fn sys_lsetxattr(&mut self, tid: Tid, [path, name, value, len, flags, _]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, AT_SYMLINK_NOFOLLOW)?;
        self.set_attribute(tid, &stat, [name, value, len, flags])
    }

    pub(crate) fn sys_fsetxattr(&mut self, tid: Tid, [fd, name, value, len, flags, _]: [u64; 6]) -> Answer {
        let stat = self.stat_file(tid, fd)?;
        self.set_attribute(tid, &stat, [name, value, len, flags])
    }

    pub(crate) fn sys_listxattr(&mut self, tid: Tid, [path, at, room, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, 0)?;
        self.list_attributes(tid, &stat, [at, room])
    }

    pub(crate) fn sys_llistxattr(&mut self, tid: Tid, [path, at, room, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, AT_SYMLINK_NOFOLLOW)?;
        self.list_attributes(tid, &stat, [at, room])
    }

    pub(crate) fn sys_flistxattr(&mut self, tid: Tid, [fd, at, room, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_file(tid, fd)?;
        self.list_attributes(tid, &stat, [at, room])
    }

    pub(crate) fn sys_removexattr(&mut self, tid: Tid, [path, name, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, 0)?;
        self.remove_attribute(tid, &stat, name)
    }

    pub(crate) fn sys_lremovexattr(&mut self, tid: Tid, [path, name, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_at(tid, HERE, path, AT_SYMLINK_NOFOLLOW)?;
        self.remove_attribute(tid, &stat, name)
    }

    pub(crate) fn sys_fremovexattr(&mut self, tid: Tid, [fd, name, ..]: [u64; 6]) -> Answer {
        let stat = self.stat_file(tid, fd)?;
        self.remove_attribute(tid, &stat, name)
    }
}

#[cfg(test)]
mod tests;
