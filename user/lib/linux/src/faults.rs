//! Page faults: accesses to pages that a process has and its task has not yet, and to others.

use crate::frames::{Bytes, Frame, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::{Fault, FileNumber, Rights};
use crate::open::{Object, Open};
use crate::process::{Process, Status};
use crate::signal::{Cause, Signal};
use crate::start::FIRST;
use crate::system::System;
use alloc::collections::{BTreeMap, BTreeSet};
use linux_raw_sys::general::{self, SIGBUS, SIGKILL, SIGSEGV};
use vfs::FileSystem;

/// The processor's number of the exception.
const VECTOR: u64 = 14;

/// Bits of its error code: there is a page, and it allows less; a write; an access of user code; an instruction is fetched.
mod error {
    pub const PRESENT: u64 = 1;
    pub const WRITE: u64 = 2;
    pub const USER: u64 = 4;
    pub const FETCH: u64 = 16;
}

/// Memory behind a process's descriptors.
fn objects(process: &Process) -> BTreeSet<FileNumber> {
    let object = |open: &Open| match &open.object {
        Object::Memory(file) => Some(file.object),
        _ => None,
    };
    process.descriptors.iter().filter_map(|(_, descriptor)| object(&descriptor.open)).collect()
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A thread accesses a page that its task has not. The frame to map, and what may be done there; for an error there is [`System::refuse_fault`].
    pub fn fault(
        &mut self,
        tid: Tid,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<(Frame, Rights), Fault> {
        self.store.volume.begin();
        let pid = self.pid(tid).map_err(|_| Fault::Nothing)?;
        self.budget.serve(pid);
        let room = self.room(tid).map_err(|_| Fault::Nothing)?;
        self.store.frames.was_out = false;
        self.store.map_page(&mut room.borrow_mut().memory, address, wanted)
    }

    /// Whether [`System::after_fault`] has something to do.
    #[inline]
    pub fn has_more_after_fault(&self, tid: Tid) -> bool {
        !self.store.cut.is_empty() || self.has_signal(tid)
    }

    /// A fault of a thread was answered, and its page is mapped: it loses that again if the fault has found it behind the end of its file, and takes a signal that has
    /// come meanwhile. If its process ends by that, others may have waited for it.
    pub fn after_fault(&mut self, tid: Tid) {
        self.take_cut_pages();
        if self.has_signal(tid) {
            self.notify(tid);
            self.settle();
        }
    }

    /// A thread faults, and no frame is to be had: all are used, or the machine has no memory left. As in Linux, the process ends that has most, and not the one that comes
    /// last; the first process does so only if no other is left. True if one has ended, so that the fault is to be tried again.
    pub fn make_room(&mut self, tid: Tid) -> bool {
        let Ok(own) = self.pid(tid) else { return false };
        // Otherwise the process's share of the budget is missing, which nobody else's end enlarges.
        if !self.store.frames.was_out {
            return false;
        }
        let mut holders: BTreeMap<FileNumber, u64> = BTreeMap::new();
        for object in self.processes.values().flat_map(objects) {
            *holders.entry(object).or_default() += 1;
        }
        let others = self.processes.iter().filter(|(pid, process)| **pid != FIRST && process.ended.is_none());
        let largest =
            others.max_by_key(|(_, process)| self.kept_bytes(process, &holders)).map(|(pid, _)| *pid);
        let Some(pid) = largest.filter(|pid| *pid != own) else { return false };
        self.end_process(pid, Status::killed(SIGKILL));
        self.settle();
        true
    }

    /// Bytes that a process keeps in frames: where it has them mapped, and in memory behind its descriptors, of which each of its `holders` keeps a part.
    fn kept_bytes(&self, process: &Process, holders: &BTreeMap<FileNumber, u64>) -> u64 {
        let (frames, memory) = (&self.store.frames, &process.room.borrow().memory);
        let behind = objects(process).into_iter().map(|object| {
            let part = frames.object_bytes(object) / holders.get(&object).copied().unwrap_or(1);
            part.saturating_sub(memory.mapped_of_object(frames, object))
        });
        memory.sizes().1 + behind.sum::<u64>()
    }

    /// A fault of a thread, which stands still in it, gets no page: a handler of its process begins in its place, or the process ends.
    pub fn refuse_fault(&mut self, tid: Tid, address: u64, wanted: Rights, fault: Fault) {
        let (signal, code, value): (Signal, u32, u64) = match fault {
            Fault::Nothing => (SIGSEGV, general::SEGV_MAPERR, address),
            Fault::Denied => (SIGSEGV, general::SEGV_ACCERR, address),
            Fault::BehindEnd => (SIGBUS, general::BUS_ADRERR, address),
            Fault::NoMemory => (SIGKILL, general::SI_KERNEL, 0),
        };
        let has_page = |room: crate::process::Shared| room.borrow().memory.has_page(address / PAGE);
        let is_there = fault == Fault::Denied && self.room(tid).is_ok_and(has_page);
        let bits = [
            (is_there, error::PRESENT),
            (wanted.has(Rights::WRITE), error::WRITE),
            (wanted.has(Rights::EXECUTE), error::FETCH),
        ];
        let bits = bits.into_iter().filter(|(is_set, _)| *is_set);
        let error = bits.fold(error::USER, |all, (_, bit)| all | bit);
        let cause = Cause { code: code as i32, sender: (0, 0), value };
        self.exception(tid, signal, cause, [address, error, VECTOR]);
    }
}
