//! `openat2`: what `openat` does, with flags that are all known and limits for the way to the file.

use super::way::Way;
use crate::errno::{E2BIG, EAGAIN, EINVAL, ENOENT, EOPNOTSUPP, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::system::{Answer, System};
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general::*;
use vfs::FileSystem;
use vfs::path::Last;

/// Bytes of `struct open_how`, in its first form.
const HOW_BYTES: u64 = 24;

/// Flags that there are.
const FLAGS: u32 = O_ACCMODE
    | O_CREAT
    | O_EXCL
    | O_NOCTTY
    | O_TRUNC
    | O_APPEND
    | O_NONBLOCK
    | O_SYNC
    | FASYNC
    | O_DIRECT
    | O_LARGEFILE
    | O_DIRECTORY
    | O_NOFOLLOW
    | O_NOATIME
    | O_CLOEXEC
    | O_PATH
    | O_TMPFILE;

/// The bit of `O_TMPFILE` that no other flag has.
const TEMPORARY: u32 = O_TMPFILE & !O_DIRECTORY;

/// Flags that go with `O_PATH`.
const PLACE: u32 = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Limits that there are.
const LIMITS: u32 = RESOLVE_NO_XDEV
    | RESOLVE_NO_MAGICLINKS
    | RESOLVE_NO_SYMLINKS
    | RESOLVE_BENEATH
    | RESOLVE_IN_ROOT
    | RESOLVE_CACHED;

/// Bits of a mode.
const MODE: u64 = 0o7777;

/// `struct open_how`.
struct Manner {
    flags: u32,
    mode: u32,
    limits: u32,
}

impl Manner {
    /// Flags, mode and limits, if they can be.
    fn of([flags, mode, limits]: [u64; 3]) -> Result<Manner> {
        let [flags, limits] = [(flags, FLAGS), (limits, LIMITS)].map(|(bits, known)| {
            let bits = u32::try_from(bits).ok();
            bits.filter(|bits| bits & !known == 0)
        });
        let (flags, limits) = (flags.ok_or(EINVAL)?, limits.ok_or(EINVAL)?);
        let both = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
        let makes = flags & (O_CREAT | TEMPORARY) != 0;
        let is_place = flags & O_PATH != 0 && flags & !PLACE != 0;
        if limits & both == both || is_place || mode & !(if makes { MODE } else { 0 }) != 0 {
            return Err(EINVAL);
        }
        Ok(Manner { flags, mode: u32::try_from(mode).map_err(|_| EINVAL)?, limits })
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Reads the structure. What it has more than is known has to be zeros.
    fn manner(&mut self, tid: Tid, at: u64, len: u64) -> Result<Manner> {
        if len < HOW_BYTES {
            return Err(EINVAL);
        }
        if len > PAGE {
            return Err(E2BIG);
        }
        let mut bytes = vec![0; len as usize];
        self.read(tid, at, &mut bytes)?;
        let (known, more) = bytes.split_at(HOW_BYTES as usize);
        if more.iter().any(|byte| *byte != 0) {
            return Err(E2BIG);
        }
        let mut words = known.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        Manner::of([(); 3].map(|()| words.next().unwrap_or(0)))
    }

    /// A path that was walked within limits, and the flags with which it is opened then: its last name is followed no more.
    fn limited_path(
        &mut self,
        tid: Tid,
        (directory, path): (u64, Vec<u8>),
        manner: &Manner,
    ) -> Result<(Way, u32)> {
        let flags = manner.flags;
        // Links in `/proc` are there when somebody looks, and the directory has to be one.
        let start = self.directory_path(tid, directory, &path, manner.limits & RESOLVE_IN_ROOT != 0)?;
        self.look_at_links(tid, &[&start, &b"/"[..], &path].concat());
        self.look_at_links(tid, &path);
        let last = match flags {
            _ if flags & O_CREAT != 0 && flags & O_EXCL != 0 => Last::Name,
            _ if flags & O_NOFOLLOW != 0 => Last::Stay,
            _ => Last::Follow,
        };
        let reached = self.walk(tid, &start, &path, last, manner.limits)?;
        let stays = if reached.is_descriptor { 0 } else { O_NOFOLLOW };
        Ok((Way::walked(reached.path), flags | stays))
    }

    pub(crate) fn sys_openat2(&mut self, tid: Tid, [directory, path, how, len, ..]: [u64; 6]) -> Answer {
        let manner = self.manner(tid, how, len)?;
        if manner.flags & TEMPORARY != 0 {
            return Err(EOPNOTSUPP);
        }
        if let Some(answer) = self.go_on_opening(tid) {
            return answer;
        }
        // Nothing is found without asking for it, which may take long.
        if manner.limits & RESOLVE_CACHED != 0 {
            return Err(EAGAIN);
        }
        if manner.limits == 0 {
            return self.sys_openat(tid, [directory, path, manner.flags.into(), manner.mode.into(), 0, 0]);
        }
        let path = self.path_or_empty(tid, path)?;
        if path.is_empty() {
            return Err(ENOENT);
        }
        let fd = self.reserve_descriptor(tid)?;
        let (path, flags) = self.limited_path(tid, (directory, path), &manner)?;
        let open = self.open_path(tid, &path, flags, manner.mode)?;
        if flags != manner.flags {
            open.flags.set(open.flags.get() & !O_NOFOLLOW);
        }
        self.give_opened(tid, open, manner.flags, fd)
    }

    /// The path of the directory in which a path begins. One that begins with a slash begins in the root, unless the directory stands for that.
    fn directory_path(&mut self, tid: Tid, directory: u64, path: &[u8], is_root: bool) -> Result<Vec<u8>> {
        if path.first() == Some(&b'/') && !is_root {
            return Ok(Vec::new());
        }
        self.base(tid, directory)
    }
}

#[cfg(test)]
mod tests;
