//! `memfd_create`: memory behind a descriptor, which is read, written and mapped as a file is.

use super::files::position;
use super::number;
use crate::errno::{EBADF, EBUSY, EFBIG, EINVAL, ENAMETOOLONG, ENFILE, EOPNOTSUPP, EPERM, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::{FileNumber, Source, whole_pages};
use crate::open::{OPEN_BYTES, Object, Open};
use crate::system::{Answer, DONE, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;
use linux_raw_sys::general::{
    F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE, MFD_ALLOW_SEALING, MFD_CLOEXEC, MFD_EXEC, MFD_NOEXEC_SEAL, O_ACCMODE, O_CREAT,
    O_EXCL, O_PATH, O_RDONLY, O_RDWR, O_TRUNC,
};
use vfs::FileSystem;

/// Longest name, with the zero behind it.
const NAME_MAX: usize = 250;

/// All seals.
const SEALS: u32 = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

/// Seals that keep everybody from writing.
const NO_WRITES: u32 = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

/// Memory behind a descriptor.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    /// Its object, which this holds.
    pub object: FileNumber,
    /// Its name, as `/proc` shows it.
    pub name: Rc<[u8]>,
    /// Open files of one memory have one set of seals.
    seals: Rc<Cell<u32>>,
}

impl MemoryFile {
    /// Fails if it may not get another length, or bytes.
    fn check(&self, before: u64, len: u64, writes: bool) -> Result<()> {
        let seals = self.seals.get();
        let refused = [(len > before, F_SEAL_GROW), (len < before, F_SEAL_SHRINK), (writes, NO_WRITES)];
        if refused.iter().any(|(does, seal)| *does && seals & seal != 0) { Err(EPERM) } else { Ok(()) }
    }

    /// Fails if it may not be mapped so that its bytes are written to.
    pub(super) fn check_mapping(&self) -> Result<()> {
        if self.seals.get() & NO_WRITES != 0 { Err(EPERM) } else { Ok(()) }
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_memfd_create(&mut self, tid: Tid, [name, flags, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        let known = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC;
        if flags & !known != 0 || flags & (MFD_NOEXEC_SEAL | MFD_EXEC) == MFD_NOEXEC_SEAL | MFD_EXEC {
            return Err(EINVAL);
        }
        let room = self.room(tid)?;
        let text = self.store.text(&mut room.borrow_mut().memory, name, NAME_MAX);
        let text = text.map_err(|error| if error == ENAMETOOLONG { EINVAL } else { error })?;
        let name: Rc<[u8]> = [b"/memfd:", text.as_slice(), b" (deleted)"].concat().into();
        let share = self.budget.take(name.len() + OPEN_BYTES).ok_or(ENFILE)?;
        let object = self.store.frames.make_object(Some(0), Some(name.clone()))?;
        let seals = Rc::new(Cell::new(if flags & MFD_ALLOW_SEALING != 0 { 0 } else { F_SEAL_SEAL }));
        let open = Open::new(Object::Memory(MemoryFile { object, name, seals }), O_RDWR);
        open.share.replace(Some(share));
        number(self.add_descriptor(tid, open, flags & MFD_CLOEXEC != 0, 0))
    }

    /// Opens memory behind a descriptor once more. Its permissions let everybody do so.
    pub(super) fn open_memory_again(&mut self, file: &MemoryFile, flags: u32) -> Result<Rc<Open>> {
        let writes = flags & O_ACCMODE != O_RDONLY;
        if flags & (O_TRUNC | O_PATH) == O_TRUNC && writes {
            self.truncate_memory(file, 0)?;
        }
        self.store.frames.hold_object(file.object);
        Ok(Open::new(Object::Memory(file.clone()), flags & !(O_CREAT | O_EXCL | O_TRUNC)))
    }

    /// Writes memory behind a descriptor.
    pub(super) fn write_memory(&mut self, file: &MemoryFile, at: u64, from: &[u8]) -> Result<usize> {
        let before = self.store.frames.object_len(file.object);
        let end = at.checked_add(from.len() as u64).ok_or(EFBIG)?;
        file.check(before, end.max(before), !from.is_empty())?;
        self.store.frames.write_object(file.object, at, from)
    }

    /// Gives memory behind a descriptor another length.
    pub(super) fn truncate_memory(&mut self, file: &MemoryFile, len: u64) -> Result<()> {
        let before = self.store.frames.object_len(file.object);
        file.check(before, len, false)?;
        self.store.frames.set_object_len(file.object, len)?;
        if len < before {
            let offset = len.next_multiple_of(PAGE);
            self.store.cut.push(Source { file: file.object, offset });
        }
        Ok(())
    }

    /// Makes memory behind a descriptor long enough for a piece, or makes a hole in it.
    pub(super) fn allocate_memory(
        &mut self,
        tid: Tid,
        (open, file): (&Open, &MemoryFile),
        mode: u64,
        (at, len): (u64, u64),
    ) -> Answer {
        let end = position(at)?.checked_add(len).filter(|_| len > 0).ok_or(EINVAL)?;
        let mode = mode as u32;
        let is_hole = mode == FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        if !is_hole && mode & !FALLOC_FL_KEEP_SIZE != 0 {
            return Err(EOPNOTSUPP);
        }
        if !open.is_writable() {
            return Err(EBADF);
        }
        position(end).map_err(|_| EFBIG)?;
        let before = self.store.frames.object_len(file.object);
        if is_hole {
            file.check(before, before, true)?;
            self.make_holes(&[(file.object, at..end)]);
        } else if mode == 0 {
            self.check_length(tid, before, end)?;
            if end > before {
                self.truncate_memory(file, end)?;
            }
        }
        DONE
    }

    /// Makes parts of memory without a file zeros, for all that have them mapped, and gives back their frames. The parts are in order, and none meets another one.
    pub(super) fn make_holes(&mut self, holes: &[(FileNumber, Range<u64>)]) {
        let pages: Vec<_> = holes.iter().map(|(object, hole)| (*object, whole_pages(hole))).collect();
        for process in self.processes.values() {
            process.room.borrow_mut().memory.forget_pages(&mut self.store.frames, &pages);
        }
        for (object, hole) in holes {
            self.store.frames.clear_object(*object, hole);
        }
    }

    /// Adds seals to what is open.
    pub(super) fn add_seals(&mut self, open: &Open, seals: u64) -> Answer {
        let Object::Memory(file) = &open.object else { return Err(EINVAL) };
        if !open.is_writable() {
            return Err(EPERM);
        }
        let seals = u32::try_from(seals).ok().filter(|seals| seals & !SEALS == 0).ok_or(EINVAL)?;
        if file.seals.get() & F_SEAL_SEAL != 0 {
            return Err(EPERM);
        }
        let is_written = |system: &Self| {
            system
                .processes
                .values()
                .any(|process| process.room.borrow().memory.may_write_object(file.object))
        };
        if seals & F_SEAL_WRITE != 0 && is_written(self) {
            return Err(EBUSY);
        }
        file.seals.set(file.seals.get() | seals);
        DONE
    }

    /// Seals of what is open.
    pub(super) fn seals(&self, open: &Open) -> Answer {
        let Object::Memory(file) = &open.object else { return Err(EINVAL) };
        number(Ok(file.seals.get().into()))
    }
}

#[cfg(test)]
mod tests;
