//! Files that are to be on the disk, or are soon to be read.

use super::done;
use super::files::position;
use crate::errno::{EINVAL, ESPIPE};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::Object;
use crate::store::Store;
use crate::system::{Answer, DONE, Outcome, System};
use linux_raw_sys::general::{RWF_DSYNC, RWF_SYNC};
use vfs::FileSystem;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_fsync(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        match &open.object {
            Object::File { inode, .. } => {
                self.store.write_back_all(*inode)?;
                done(self.store.volume.sync(*inode).map_err(Into::into))
            }
            Object::Directory { inode, .. } if Store::<B, F>::is_own(*inode) => {
                done(self.store.volume.sync(*inode).map_err(Into::into))
            }
            Object::Directory { .. } | Object::Memory(_) => DONE,
            _ => Err(EINVAL),
        }
    }

    /// Outcome of a write to a descriptor, with flags of `pwritev2`: if they want that, bytes that were written are on the disk first.
    pub(super) fn synced(&mut self, tid: Tid, fd: u64, flags: u32, written: Answer) -> Answer {
        if flags & (RWF_DSYNC | RWF_SYNC) != 0 && matches!(written, Ok(Outcome::Value(_))) {
            self.sys_fsync(tid, [fd, 0, 0, 0, 0, 0])?;
        }
        written
    }

    pub(crate) fn sys_sync(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        for file in self.store.written_files() {
            let _ = self.store.write_back_all(file);
        }
        let root = self.store.root;
        let _ = self.store.volume.sync(root);
        DONE
    }

    /// Bytes of a file that are to be on the disk: all of it are.
    pub(crate) fn sys_sync_file_range(&mut self, tid: Tid, [fd, at, len, flags, ..]: [u64; 6]) -> Answer {
        if flags & !7 != 0 || position(at)?.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
            return Err(EINVAL);
        }
        match self.open_file(tid, fd)?.object {
            Object::File { .. } | Object::Memory(_) => self.sys_fsync(tid, [fd, 0, 0, 0, 0, 0]),
            Object::Directory { .. } => DONE,
            _ => Err(ESPIPE),
        }
    }

    pub(crate) fn sys_syncfs(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        self.open_file(tid, fd)?;
        self.sys_sync(tid, [0; 6])
    }

    pub(crate) fn sys_advise(&mut self, tid: Tid, [fd, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if matches!(open.object, Object::Reader(_) | Object::Writer(_) | Object::Fifo(_)) {
            Err(ESPIPE)
        } else {
            DONE
        }
    }
}
