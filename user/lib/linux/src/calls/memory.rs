//! Memory: what is mapped where.

use super::{done, number};
use crate::errno::{EACCES, EFAULT, EINVAL, ENAMETOOLONG, ENODEV, ENOMEM, ENOSPC, EOVERFLOW, EPERM, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::{END, FileNumber, Kind, Move, NAME_BYTES, Rights, Source};
use crate::open::{Object, Open};
use crate::process::Shared;
use crate::special::{Device, Special};
use crate::system::{Answer, DONE, System};
use alloc::collections::BTreeSet;
use linux_raw_sys::general::{
    CAP_IPC_LOCK, MADV_COLD, MADV_COLLAPSE, MADV_DODUMP, MADV_DOFORK, MADV_DONTFORK, MADV_DONTNEED,
    MADV_DONTNEED_LOCKED, MADV_FREE, MADV_KEEPONFORK, MADV_MERGEABLE, MADV_NORMAL, MADV_POPULATE_WRITE,
    MADV_REMOVE, MADV_WILLNEED, MADV_WIPEONFORK, MAP_32BIT, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE,
    MAP_GROWSDOWN, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_TYPE, MCL_CURRENT, MCL_FUTURE,
    MCL_ONFAULT, MLOCK_ONFAULT, MREMAP_FIXED, MREMAP_MAYMOVE, MS_ASYNC, MS_INVALIDATE, MS_SYNC,
    PKEY_ACCESS_MASK, PROT_EXEC, PROT_GROWSDOWN, PROT_GROWSUP, PROT_READ, PROT_WRITE, RLIMIT_AS,
    RLIMIT_MEMLOCK,
};
use linux_raw_sys::prctl::PR_SET_VMA_ANON_NAME;
use vfs::{FileSystem, Inode};

/// Most pages of one call of `mincore`: 4 GiB.
const MINCORE_MAX: u64 = 1 << 20;

/// Rights that a call names.
fn rights(bits: u64) -> Rights {
    Rights((bits as u32 & (PROT_READ | PROT_WRITE | PROT_EXEC)) as u8)
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_brk(&mut self, tid: Tid, [end, ..]: [u64; 6]) -> Answer {
        let room = self.room(tid)?;
        let before = room.borrow().memory.heap_end();
        if end > before && self.check_limit(tid, end - before).is_err() {
            return number(Ok(before));
        }
        let end = room.borrow_mut().memory.set_break(&mut self.store.frames, end);
        number(Ok(end))
    }

    pub(crate) fn sys_mmap(
        &mut self,
        tid: Tid,
        [at, len, protection, flags, fd, offset]: [u64; 6],
    ) -> Answer {
        let flags = flags as u32;
        let kind = flags & MAP_TYPE;
        let is_shared = kind == MAP_SHARED || kind == MAP_SHARED_VALIDATE;
        if !is_shared && kind != MAP_PRIVATE || offset % PAGE != 0 || len == 0 {
            return Err(EINVAL);
        }
        if flags & MAP_ANONYMOUS == 0 && len < END && offset > i64::MAX as u64 - len {
            return Err(EOVERFLOW);
        }
        self.check_limit(tid, len)?;
        let rights = rights(protection);
        let open = if flags & MAP_ANONYMOUS == 0 { Some(self.open_file(tid, fd)?) } else { None };
        let source = match &open {
            Some(open) => self.source(open, offset, is_shared && rights.has(Rights::WRITE))?,
            None => None,
        };
        // Memory of nobody else is an object that processes share, whoever touches it first.
        let is_own = is_shared && source.is_none();
        let own = if is_own { Some(self.store.frames.make_object(None, None)?) } else { None };
        let source = source.or(own.map(|file| (Source { file, offset: 0 }, true)));
        // A piece of a file does not begin earlier than it was asked for.
        let grows_down = flags & MAP_GROWSDOWN != 0 && source.is_none();
        let is_read_only = is_shared && source.is_some_and(|(_, may_write)| !may_write);
        let source = source.map(|(source, _)| source);
        let kind = Kind { is_shared, grows_down, is_read_only, source, ..Kind::private(rights) };
        let shared = self.room(tid)?;
        let mut room = shared.borrow_mut();
        let frames = &mut self.store.frames;
        let mut written = BTreeSet::new();
        let mapped = match flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) {
            0 if flags & MAP_32BIT != 0 => room.memory.map_low(frames, at, len, kind),
            0 => room.memory.map_near(frames, at, len, kind),
            MAP_FIXED => {
                written = room.memory.shared_files(at..at.saturating_add(len));
                room.memory.map(frames, Some(at), len, kind, true)
            }
            _ => room.memory.map(frames, Some(at), len, kind, false),
        };
        own.into_iter().for_each(|file| frames.leave_object(file));
        drop(room);
        if let (Ok(_), Some(open)) = (mapped, open) {
            self.note_mapped(&shared, &open);
        }
        self.bring_unmapped(written);
        number(mapped)
    }

    /// Notes by which path a file was opened of which something is mapped now.
    fn note_mapped(&mut self, room: &Shared, open: &Open) {
        let Object::File { inode, path } = &open.object else { return };
        let file = FileNumber(inode.0);
        if room.borrow().memory.knows_path(file, path) {
            return;
        }
        // It need not lead anywhere any more.
        let shown = self.canonical(path).unwrap_or_else(|_| path.clone());
        room.borrow_mut().memory.note_path(&mut self.store.frames, file, (path, &shown));
    }

    /// Fails if a process would have more mapped than it may.
    pub(super) fn check_limit(&mut self, tid: Tid, more: u64) -> Result<()> {
        let limit = self.process(tid)?.limits[RLIMIT_AS as usize][0];
        if limit == u64::MAX {
            return Ok(());
        }
        let room = self.room(tid)?;
        let (mapped, _) = room.borrow().memory.sizes();
        if mapped.saturating_add(more) > limit { Err(ENOMEM) } else { Ok(()) }
    }

    /// Source of a mapping of a descriptor, and whether it may be written to. None: zeros.
    fn source(&mut self, open: &Open, offset: u64, writes: bool) -> Result<Option<(Source, bool)>> {
        if !open.is_readable() || writes && !open.is_writable() {
            return Err(EACCES);
        }
        match &open.object {
            Object::File { inode, .. } => {
                self.let_mapped_files_go();
                let file = self.store.map_file(*inode)?;
                Ok(Some((Source { file, offset }, open.is_writable())))
            }
            Object::Memory(file) => {
                if writes {
                    file.check_mapping()?;
                }
                let may_write = open.is_writable() && file.check_mapping().is_ok();
                Ok(Some((Source { file: file.object, offset }, may_write)))
            }
            Object::Device { inode, .. } if Special::of(*inode) == Some(Special::Device(Device::Zero)) => {
                Ok(None)
            }
            _ => Err(ENODEV),
        }
    }

    pub(crate) fn sys_munmap(&mut self, tid: Tid, [at, len, ..]: [u64; 6]) -> Answer {
        let room = self.room(tid)?;
        let mut room = room.borrow_mut();
        let written = room.memory.shared_files(at..at.saturating_add(len));
        room.memory.unmap(&mut self.store.frames, at, len)?;
        drop(room);
        self.bring_unmapped(written);
        DONE
    }

    /// Gives files what a process has written to pages that it does not have any more: nobody would look for it at its end. What cannot be written stays, and
    /// is told by a sync, as in Linux.
    pub(super) fn bring_unmapped(&mut self, written: BTreeSet<FileNumber>) {
        for file in written {
            let _ = self.store.write_back_all(Inode(file.0));
        }
        self.let_removed_files_go();
        self.let_removed_segments_go();
    }

    pub(crate) fn sys_mprotect(&mut self, tid: Tid, [at, len, protection, ..]: [u64; 6]) -> Answer {
        if protection as u32 & !(PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN | PROT_GROWSUP) != 0 {
            return Err(EINVAL);
        }
        let room = self.room(tid)?;
        done(room.borrow_mut().memory.protect(&mut self.store.frames, at, len, rights(protection)))
    }

    pub(crate) fn sys_mremap(&mut self, tid: Tid, [old, old_len, len, flags, to, _]: [u64; 6]) -> Answer {
        let how = match flags as u32 {
            0 => Move::Never,
            MREMAP_MAYMOVE => Move::Anywhere,
            flags if flags == MREMAP_MAYMOVE | MREMAP_FIXED => Move::To(to),
            _ => return Err(EINVAL),
        };
        if len > old_len {
            self.check_limit(tid, len - old_len)?;
        }
        let room = self.room(tid)?;
        let mut room = room.borrow_mut();
        let mut written = BTreeSet::new();
        if len < old_len {
            written = room.memory.shared_files(old.saturating_add(len)..old.saturating_add(old_len));
        }
        if let Move::To(to) = how {
            written.append(&mut room.memory.shared_files(to..to.saturating_add(len)));
        }
        let moved = room.memory.remap(&mut self.store.frames, (old, old_len), len, how);
        drop(room);
        self.bring_unmapped(written);
        number(moved)
    }

    /// Shows another piece of a file or an object where shared memory shows one. Rights stay, and flags mean nothing.
    pub(crate) fn sys_remap_file_pages(
        &mut self,
        tid: Tid,
        [at, len, protection, page, ..]: [u64; 6],
    ) -> Answer {
        let (at, len) = (at / PAGE * PAGE, len / PAGE * PAGE);
        let end = at.checked_add(len).filter(|end| *end > at).ok_or(EINVAL)?;
        if protection != 0 || page.checked_add(len / PAGE).is_none() {
            return Err(EINVAL);
        }
        let is_good = |offset: &u64| offset.checked_add(len).is_some_and(|end| end <= i64::MAX as u64);
        let offset = page.checked_mul(PAGE).filter(is_good).ok_or(EOVERFLOW)?;
        let room = self.room(tid)?;
        let mut room = room.borrow_mut();
        let written = room.memory.shared_files(at..end);
        room.memory.show_elsewhere(&mut self.store.frames, (at, len), offset)?;
        drop(room);
        self.bring_unmapped(written);
        DONE
    }

    pub(crate) fn sys_madvise(&mut self, tid: Tid, [at, len, advice, ..]: [u64; 6]) -> Answer {
        if at % PAGE != 0 {
            return Err(EINVAL);
        }
        if len == 0 {
            return DONE;
        }
        let room = self.room(tid)?;
        match advice as u32 {
            MADV_DONTNEED | MADV_FREE | MADV_DONTNEED_LOCKED => {
                done(room.borrow_mut().memory.discard(&mut self.store.frames, at, len))
            }
            MADV_DONTFORK | MADV_DOFORK | MADV_WIPEONFORK | MADV_KEEPONFORK => {
                done(room.borrow_mut().memory.advise(&mut self.store.frames, (at, len), advice as u32))
            }
            MADV_REMOVE => {
                let shown = room.borrow().memory.objects_in(at, len);
                self.make_holes(&shown?);
                done(room.borrow().memory.check_mapped(at, len))
            }
            // Advice that changes nothing. Others may have an effect that programs count on: who asks for it hears that it is not there.
            MADV_NORMAL..=MADV_WILLNEED
            | MADV_MERGEABLE..=MADV_DODUMP
            | MADV_COLD..=MADV_POPULATE_WRITE
            | MADV_COLLAPSE => done(room.borrow().memory.check_mapped(at, len)),
            _ => Err(EINVAL),
        }
    }

    /// Gives memory that shows no file a name: `PR_SET_VMA`.
    pub(super) fn name_memory(&mut self, tid: Tid, [_, kind, at, len, name, _]: [u64; 6]) -> Answer {
        if kind != PR_SET_VMA_ANON_NAME.into() {
            return Err(EINVAL);
        }
        let room = self.room(tid)?;
        let memory = &mut room.borrow_mut().memory;
        let name = match name {
            0 => None,
            name => match self.store.text(memory, name, NAME_BYTES) {
                Err(ENAMETOOLONG) => return Err(EINVAL),
                name => Some(name?),
            },
        };
        let is_good = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\\`$[]".contains(byte);
        if !name.iter().flatten().all(is_good) {
            return Err(EINVAL);
        }
        done(memory.set_name(&mut self.store.frames, (at, len), name.as_deref()))
    }

    pub(crate) fn sys_msync(&mut self, tid: Tid, [at, len, flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if at % PAGE != 0
            || flags & !(MS_ASYNC | MS_SYNC | MS_INVALIDATE) != 0
            || flags & MS_ASYNC != 0 && flags & MS_SYNC != 0
        {
            return Err(EINVAL);
        }
        let room = self.room(tid)?;
        let end = at.checked_add(len).ok_or(ENOMEM)?;
        // Programs ask in this way whether there is something.
        room.borrow().memory.check_mapped(at, len)?;
        let files = room.borrow().memory.shared_files(at..end);
        for file in files.into_iter().map(|file| Inode(file.0)) {
            self.store.write_back_all(file)?;
            if flags & MS_SYNC != 0 {
                self.store.volume.sync(file)?;
            }
        }
        DONE
    }

    pub(crate) fn sys_mincore(&mut self, tid: Tid, [at, len, to, ..]: [u64; 6]) -> Answer {
        if at % PAGE != 0 {
            return Err(EINVAL);
        }
        let pages = len.div_ceil(PAGE);
        if pages > MINCORE_MAX {
            return Err(ENOMEM);
        }
        self.room(tid)?.borrow().memory.check_mapped(at, len)?;
        let mut done = 0;
        while done < pages {
            let piece = (pages - done).min(PAGE);
            self.write(tid, to.checked_add(done).ok_or(EFAULT)?, &[1; PAGE as usize][..piece as usize])?;
            done += piece;
        }
        DONE
    }

    /// The processor has no keys of protection for programs, and that of a call has to be none: −1.
    pub(crate) fn sys_pkey_mprotect(&mut self, tid: Tid, [at, len, protection, key, ..]: [u64; 6]) -> Answer {
        let grows = PROT_GROWSDOWN | PROT_GROWSUP;
        if key as i32 == -1 {
            return self.sys_mprotect(tid, [at, len, protection, 0, 0, 0]);
        }
        // Errors of the range come first.
        match () {
            () if protection as u32 & grows == grows || at % PAGE != 0 => Err(EINVAL),
            () if len == 0 => DONE,
            () if at.checked_add(len).is_none() => Err(ENOMEM),
            () => Err(EINVAL),
        }
    }

    /// No key is free.
    pub(crate) fn sys_pkey_alloc(&mut self, _: Tid, [flags, rights, ..]: [u64; 6]) -> Answer {
        let is_good = flags == 0 && rights & !u64::from(PKEY_ACCESS_MASK) == 0;
        Err(if is_good { ENOSPC } else { EINVAL })
    }

    /// None was given.
    pub(crate) fn sys_pkey_free(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        Err(EINVAL)
    }

    /// Fails unless a process may lock so many bytes. Nothing is paged out, so all is locked, and nobody counts what was locked before.
    fn may_lock(&mut self, tid: Tid, len: u64) -> Result<()> {
        let limit = self.process(tid)?.limits[RLIMIT_MEMLOCK as usize][0];
        match limit {
            _ if self.can(tid, CAP_IPC_LOCK) => Ok(()),
            0 => Err(EPERM),
            _ if len > limit => Err(ENOMEM),
            _ => Ok(()),
        }
    }

    /// Fails unless all pages that have bytes of a range are mapped.
    fn check_locked(&mut self, tid: Tid, at: u64, len: u64) -> Result<()> {
        let start = at / PAGE * PAGE;
        let len = len.wrapping_add(at % PAGE).wrapping_add(PAGE - 1) / PAGE * PAGE;
        let end = start.checked_add(len).ok_or(EINVAL)?;
        if end > start { self.room(tid)?.borrow().memory.check_mapped(start, len) } else { Ok(()) }
    }

    pub(crate) fn sys_mlock(&mut self, tid: Tid, [at, len, ..]: [u64; 6]) -> Answer {
        self.may_lock(tid, len)?;
        done(self.check_locked(tid, at, len))
    }

    pub(crate) fn sys_mlock2(&mut self, tid: Tid, [at, len, flags, ..]: [u64; 6]) -> Answer {
        if flags as u32 & !MLOCK_ONFAULT != 0 {
            return Err(EINVAL);
        }
        self.sys_mlock(tid, [at, len, 0, 0, 0, 0])
    }

    pub(crate) fn sys_munlock(&mut self, tid: Tid, [at, len, ..]: [u64; 6]) -> Answer {
        done(self.check_locked(tid, at, len))
    }

    pub(crate) fn sys_mlockall(&mut self, tid: Tid, [flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        if flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || flags & !MCL_ONFAULT == 0 {
            return Err(EINVAL);
        }
        let (mapped, _) = self.room(tid)?.borrow().memory.sizes();
        done(self.may_lock(tid, if flags & MCL_CURRENT != 0 { mapped } else { 0 }))
    }

    pub(crate) fn sys_munlockall(&mut self, _: Tid, _: [u64; 6]) -> Answer {
        DONE
    }
}

#[cfg(test)]
mod tests;
