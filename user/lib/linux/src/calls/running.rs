//! Programs that run: nobody writes to their files meanwhile, and a file to which somebody may write does not begin.
//!
//! Both are found by a look at all processes, since calls that ask for it are rare, and a list of such files would have to follow each descriptor.

use crate::errno::{ETXTBSY, Result};
use crate::frames::Bytes;
use crate::machine::Machine;
use crate::memory::{END, FileNumber};
use crate::open::Open;
use crate::process::Process;
use crate::system::System;
use vfs::{FileSystem, Inode};

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Fails if a file is the program of a process: `ETXTBSY`. A process that has nothing of its program mapped any more keeps nobody from writing, since that file may be gone, and
    /// another one may have its number.
    pub(super) fn check_not_running(&self, file: Inode) -> Result<()> {
        let number = FileNumber(file.0);
        let has_it = |process: &Process| process.room.borrow().memory.files().contains(&number);
        let runs = self.processes.values().any(|process| process.image == Some(file) && has_it(process));
        if runs { Err(ETXTBSY) } else { Ok(()) }
    }

    /// Fails if somebody may write to a file, by a descriptor or where it is mapped: `ETXTBSY`.
    pub(super) fn check_not_written(&self, file: Inode) -> Result<()> {
        if self.is_open_to_write(file) || self.is_mapped_to_write(file) { Err(ETXTBSY) } else { Ok(()) }
    }

    fn is_open_to_write(&self, file: Inode) -> bool {
        // Most programs are open for their pages alone.
        if !self.store.has_users(file) {
            return false;
        }
        let is_it = |open: &Open| open.is_writable() && open.file() == Some(file);
        let mut descriptors = self.processes.values().flat_map(|process| process.descriptors.iter());
        descriptors.any(|(_, descriptor)| is_it(&descriptor.open))
    }

    fn is_mapped_to_write(&self, file: Inode) -> bool {
        let number = FileNumber(file.0);
        let files = |process: &Process| process.room.borrow().memory.shared_files(0..END);
        self.store.may_be_touched(file)
            && self.processes.values().any(|process| files(process).contains(&number))
    }
}

#[cfg(test)]
mod tests;
