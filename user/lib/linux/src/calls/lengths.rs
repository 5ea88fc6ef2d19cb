//! How long files may become, by `RLIMIT_FSIZE`, and room that is set aside in them.

use super::files::position;
use crate::errno::{EBADF, EFBIG, EINVAL, EOPNOTSUPP, ESPIPE, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::signal::Cause;
use crate::system::{Answer, DONE, System};
use linux_raw_sys::general::{IN_MODIFY, O_APPEND, RLIMIT_FSIZE, SIGXFSZ};
use vfs::FileSystem;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    fn longest_file(&mut self, tid: Tid) -> Result<u64> {
        Ok(self.process(tid)?.limits.get(RLIMIT_FSIZE as usize).map_or(u64::MAX, |limit| limit[0]))
    }

    /// Whether files of a process end somewhere, so that each write is to be looked at.
    pub(super) fn has_longest(&mut self, tid: Tid) -> Result<bool> {
        Ok(self.longest_file(tid)? != u64::MAX)
    }

    /// A file of a process would be too long: it hears so by a signal.
    fn refuse_length<T>(&mut self, tid: Tid) -> Result<T> {
        let _ = self.send_to_thread(tid, SIGXFSZ, Cause::KERNEL);
        Err(EFBIG)
    }

    /// How many of so many bytes that are to be written lie in front of the end of the longest file that a process may make. `EFBIG` if none do.
    pub(super) fn limit_write(
        &mut self,
        tid: Tid,
        open: &Open,
        at: Option<u64>,
        count: usize,
    ) -> Result<usize> {
        if count == 0 || !matches!(open.object, Object::File { .. } | Object::Memory(_)) {
            return Ok(count);
        }
        let limit = self.longest_file(tid)?;
        if limit == u64::MAX {
            return Ok(count);
        }
        let len = match &open.object {
            Object::File { inode, .. } => self.store.volume.len(*inode)?,
            Object::Memory(file) => self.store.frames.object_len(file.object),
            _ => return Ok(count),
        };
        let position = if open.has(O_APPEND) { len } else { at.unwrap_or(open.offset.get()) };
        match limit.checked_sub(position) {
            None | Some(0) => self.refuse_length(tid),
            Some(room) => Ok(usize::try_from(room).map_or(count, |room| room.min(count))),
        }
    }

    /// Fails if a process may not make a file so long.
    pub(super) fn check_length(&mut self, tid: Tid, before: u64, len: u64) -> Result<()> {
        if len > before && len > self.longest_file(tid)? { self.refuse_length(tid) } else { Ok(()) }
    }

    pub(crate) fn sys_fallocate(&mut self, tid: Tid, [fd, mode, at, len, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        if let Object::Memory(file) = &open.object {
            return self.allocate_memory(tid, (&open, file), mode, (at, len));
        }
        let Object::File { inode, .. } = &open.object else { return Err(ESPIPE) };
        if position(at).is_err() || len == 0 || len > i64::MAX as u64 {
            return Err(EINVAL);
        }
        if mode != 0 {
            return Err(EOPNOTSUPP);
        }
        if !open.is_writable() {
            return Err(EBADF);
        }
        let end = position(at + len).map_err(|_| EFBIG)?;
        let before = self.store.volume.len(*inode)?;
        self.check_length(tid, before, end)?;
        if before < end {
            self.store.truncate(*inode, end)?;
        }
        self.noticed(*inode, IN_MODIFY);
        DONE
    }
}
