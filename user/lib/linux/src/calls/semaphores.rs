//! Semaphores of System V: `semget` and its like.
//!
//! A call does all of its operations or none. One that waits is made again when a value of its set changes, the longest one first; when it has changed a value, all
//! others look once more from the first one on. Operations that the end of a process takes back are kept in the set, by process.

use super::ipc::{Ipc, Kind, READS, WRITES, structure};
use super::number;
use crate::budget::{Budget, Share};
use crate::errno::{E2BIG, EAGAIN, EFBIG, EINVAL, ENOMEM, ENOSPC, ERANGE, Result};
use crate::frames::Bytes;
use crate::ipc::numbers::{
    GETALL, GETNCNT, GETPID, GETVAL, GETZCNT, IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, SEM_INFO,
    SEM_STAT, SEM_STAT_ANY, SEM_UNDO, SEMMSL, SEMOPM, SEMVMX, SETALL, SETVAL,
};
use crate::ipc::{Ids, OBJECTS_MAX, Permissions};
use crate::machine::{Machine, Tid};
use crate::process::Event;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use vfs::FileSystem;

/// Semaphores of all sets, at most.
const SEMMNS: usize = 256_000;

/// Bytes of the budget that a set counts for, beside its semaphores.
const SET_BYTES: usize = 256;

/// Bytes of the budget that what one process takes back counts for, beside two for each semaphore.
const UNDO_BYTES: usize = 128;

/// Bytes of `struct sembuf`.
const OPERATION_BYTES: usize = 6;

/// A semaphore.
#[derive(Clone, Copy, Default, Debug)]
struct Semaphore {
    value: u16,
    /// The process that has changed it last, or waited for 0.
    last: Tid,
}

/// Numbers that are added when a process ends, one for each semaphore.
#[derive(Debug)]
struct Undo {
    added: Vec<i16>,
    _share: Share,
}

/// A set of semaphores.
#[derive(Debug)]
pub struct Semaphores {
    all: Vec<Semaphore>,
    /// By their processes.
    undos: BTreeMap<Tid, Undo>,
    /// When an operation was done last: seconds since 1970, or 0.
    used: u64,
    /// Number of what waiting threads wait for.
    number: u64,
    /// The round in which a call has changed a value last, of those in which calls are made again.
    altered: Option<u64>,
}

impl Kind for Semaphores {
    const TELLS_ANY: u32 = SEM_STAT_ANY;

    fn all(ipc: &mut Ipc) -> &mut Ids<Semaphores> {
        &mut ipc.semaphores
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        let undo = UNDO_BYTES + self.all.len() * size_of::<i16>();
        SET_BYTES + self.all.len() * size_of::<Semaphore>() + self.undos.len() * undo
    }
}

/// An operation: `struct sembuf`.
#[derive(Clone, Copy, Debug)]
struct Operation {
    semaphore: u16,
    change: i16,
    flags: u32,
}

impl Operation {
    fn read(bytes: &[u8]) -> Operation {
        let half =
            |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).unwrap_or_default();
        Operation {
            semaphore: u16::from_le_bytes(half(0)),
            change: i16::from_le_bytes(half(2)),
            flags: u16::from_le_bytes(half(4)).into(),
        }
    }

    fn undoes(&self) -> bool {
        self.flags & SEM_UNDO != 0 && self.change != 0
    }

    /// Number of the wait of a thread that cannot do it: the semaphore, and whether for 0.
    fn bits(&self) -> u32 {
        u32::from(self.semaphore) << 1 | u32::from(self.change == 0)
    }
}

impl Semaphores {
    /// Does all operations for a process, or none. The first one that has to wait, if there is one.
    fn perform(&mut self, pid: Tid, operations: &[Operation], budget: &Budget) -> Result<Option<Operation>> {
        let undo = self.undos.get(&pid);
        let mut after: BTreeMap<u16, (i32, i32)> = BTreeMap::new();
        for operation in operations {
            let (at, change) = (usize::from(operation.semaphore), i32::from(operation.change));
            let before = || {
                let added = undo.map_or(0, |undo| undo.added[at]);
                (self.all[at].value.into(), added.into())
            };
            let (value, added) = after.entry(operation.semaphore).or_insert_with(before);
            if change == 0 && *value != 0 || *value + change < 0 {
                return if operation.flags & IPC_NOWAIT != 0 { Err(EAGAIN) } else { Ok(Some(*operation)) };
            }
            *value += change;
            *added -= if operation.undoes() { change } else { 0 };
            if *value > SEMVMX || !(-SEMVMX - 1..=SEMVMX).contains(added) {
                return Err(ERANGE);
            }
        }
        if operations.iter().any(Operation::undoes) && undo.is_none() {
            let bytes = UNDO_BYTES + self.all.len() * size_of::<i16>();
            let share = budget.take(bytes).ok_or(ENOMEM)?;
            self.undos.insert(pid, Undo { added: vec![0; self.all.len()], _share: share });
        }
        let mut undo = self.undos.get_mut(&pid);
        for (at, (value, added)) in after {
            self.all[usize::from(at)] = Semaphore { value: value as u16, last: pid };
            if let Some(undo) = &mut undo {
                undo.added[usize::from(at)] = added as i16;
            }
        }
        Ok(None)
    }

    /// The end of a process takes back what it has done.
    fn undo(&mut self, pid: Tid) {
        let Some(undo) = self.undos.remove(&pid) else { return };
        for (semaphore, added) in self.all.iter_mut().zip(undo.added).filter(|(_, added)| *added != 0) {
            let value = i32::from(semaphore.value) + i32::from(added);
            *semaphore = Semaphore { value: value.clamp(0, SEMVMX) as u16, last: pid };
        }
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_semget(&mut self, tid: Tid, [key, count, flags, ..]: [u64; 6]) -> Answer {
        let count = count as u32;
        if count > SEMMSL {
            return Err(EINVAL);
        }
        let count = count as usize;
        let make = |system: &mut Self, permissions| system.make_semaphores(count, permissions);
        self.ipc_get(tid, (key, flags), |set: &Semaphores| count <= set.all.len(), make)
    }

    fn semaphore_count(&self) -> usize {
        self.kept.ipc.semaphores.iter().map(|(_, set)| set.of.all.len()).sum()
    }

    fn make_semaphores(&mut self, count: usize, permissions: Permissions) -> Result<i32> {
        if count == 0 {
            return Err(EINVAL);
        }
        if self.semaphore_count() + count > SEMMNS {
            return Err(ENOSPC);
        }
        let bytes = SET_BYTES + count * size_of::<Semaphore>();
        let share = self.kept.ipc.lasting.take(&self.budget, bytes).ok_or(ENOSPC)?;
        let (all, undos) = (vec![Semaphore::default(); count], BTreeMap::new());
        let set = Semaphores { all, undos, used: 0, number: self.ring(), altered: None };
        let now = self.seconds();
        self.kept.ipc.semaphores.add(permissions, now, set, Some(share))
    }

    pub(crate) fn sys_semop(&mut self, tid: Tid, [id, list, count, ..]: [u64; 6]) -> Answer {
        self.operate(tid, id as i32, (list, count as u32), 0)
    }

    pub(crate) fn sys_semtimedop(&mut self, tid: Tid, [id, list, count, timeout, ..]: [u64; 6]) -> Answer {
        self.operate(tid, id as i32, (list, count as u32), timeout)
    }

    fn operate(&mut self, tid: Tid, id: i32, (list, count): (u64, u32), timeout: u64) -> Answer {
        if count == 0 {
            return Err(EINVAL);
        }
        if u64::from(count) > SEMOPM {
            return Err(E2BIG);
        }
        let until = self.deadline(tid, timeout)?;
        let mut bytes = vec![0; count as usize * OPERATION_BYTES];
        self.read(tid, list, &mut bytes)?;
        let operations: Vec<Operation> = bytes.chunks_exact(OPERATION_BYTES).map(Operation::read).collect();
        let alters = operations.iter().any(|operation| operation.change != 0);
        let (pid, has_waited) = (self.pid(tid)?, self.thread(tid)?.until.is_some());
        let places = self.ipc_object::<Semaphores>(tid, id)?.of.all.len();
        if operations.iter().any(|operation| usize::from(operation.semaphore) >= places) {
            return Err(EFBIG);
        }
        if !has_waited {
            self.ipc_allowed::<Semaphores>(tid, id, if alters { WRITES } else { READS })?;
        }
        let (budget, now, round) = (self.budget.clone(), self.seconds(), self.rounds);
        let set = &mut self.ipc_object::<Semaphores>(tid, id)?.of;
        let wait_for = Event::Ring(set.number);
        if has_waited && set.altered == Some(round) {
            // One that has waited longer looks again before.
            return Ok(Outcome::Wait(Vec::from([wait_for]), until));
        }
        let Some(operation) = set.perform(pid, &operations, &budget)? else {
            set.used = now;
            if alters {
                set.altered = Some(round);
                self.tell(wait_for);
            }
            return DONE;
        };
        if until.is_some_and(|until| until <= self.machine.now()) {
            return Err(EAGAIN);
        }
        self.thread(tid)?.bits = operation.bits();
        Ok(Outcome::Wait(Vec::from([wait_for]), until))
    }

    /// A process ends: what it has done with semaphores is taken back as far as it has asked for that.
    pub(crate) fn undo_operations(&mut self, pid: Tid) {
        let mut changed = Vec::new();
        for (_, set) in self.kept.ipc.semaphores.iter_mut() {
            if set.of.undos.contains_key(&pid) {
                set.of.undo(pid);
                changed.push(Event::Ring(set.of.number));
            }
        }
        changed.into_iter().for_each(|event| self.tell(event));
    }

    pub(crate) fn sys_semctl(&mut self, tid: Tid, [id, at, command, argument, ..]: [u64; 6]) -> Answer {
        let (id, command) = (id as i32, command as u32);
        if id < 0 {
            return Err(EINVAL);
        }
        match command {
            IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
                let (id, result) = self.ipc_told::<Semaphores>(tid, id, command)?;
                let found = self.kept.ipc.semaphores.get(id).ok_or(EINVAL)?;
                let words = [found.of.used, 0, found.changed, 0, found.of.all.len() as u64, 0, 0];
                let bytes = structure(&found.permissions, &words);
                self.write(tid, argument, &bytes)?;
                number(Ok(result))
            }
            IPC_SET => self.ipc_set::<Semaphores>(tid, id, argument).and(DONE),
            IPC_RMID => {
                let event = Event::Ring(self.ipc_owned::<Semaphores>(tid, id)?.of.number);
                self.kept.ipc.semaphores.remove(id);
                self.tell(event);
                DONE
            }
            IPC_INFO | SEM_INFO => self.semaphore_limits(tid, command, argument),
            SETVAL => self.set_values(tid, id, Some(at as u32), |_, _| Ok(Vec::from([argument as i32]))),
            SETALL => self.set_values(tid, id, None, |system, count| {
                let mut bytes = vec![0; 2 * count];
                system.read(tid, argument, &mut bytes)?;
                Ok(bytes.chunks_exact(2).map(|half| i32::from(half[0]) | i32::from(half[1]) << 8).collect())
            }),
            GETALL => {
                let set = self.ipc_allowed::<Semaphores>(tid, id, READS)?;
                let bytes: Vec<u8> = set.of.all.iter().flat_map(|found| found.value.to_le_bytes()).collect();
                self.write(tid, argument, &bytes).and(DONE)
            }
            GETVAL | GETPID | GETNCNT | GETZCNT => self.semaphore_value(tid, id, at as u32, command),
            _ => Err(EINVAL),
        }
    }

    /// Limits, or what there is of them: `struct seminfo`.
    fn semaphore_limits(&mut self, tid: Tid, command: u32, at: u64) -> Answer {
        let is_used = command == SEM_INFO;
        let used = [self.kept.ipc.semaphores.count() as u32, self.semaphore_count() as u32];
        let [sets, all] = if is_used { used } else { [20, SEMVMX as u32] };
        let (most, operations) = (SEMMNS as u32, SEMOPM as u32);
        let halves =
            [most, OBJECTS_MAX as u32, most, most, SEMMSL, operations, operations, sets, SEMVMX as u32, all];
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        self.write(tid, at, &bytes)?;
        number(Ok(self.kept.ipc.semaphores.highest().into()))
    }

    /// Sets the value of a semaphore, or of all. No end of a process takes anything back there that came before.
    fn set_values(
        &mut self,
        tid: Tid,
        id: i32,
        at: Option<u32>,
        values: impl FnOnce(&mut Self, usize) -> Result<Vec<i32>>,
    ) -> Answer {
        let count = self.ipc_allowed::<Semaphores>(tid, id, WRITES)?.of.all.len();
        let values = values(self, count)?;
        if values.iter().any(|value| !(0..=SEMVMX).contains(value)) {
            return Err(ERANGE);
        }
        let first = at.map_or(0, |at| at as usize);
        if first >= count {
            return Err(EINVAL);
        }
        let (pid, now) = (self.pid(tid)?, self.seconds());
        let found = self.ipc_object::<Semaphores>(tid, id)?;
        found.changed = now;
        for (at, value) in (first..).zip(values) {
            found.of.all[at] = Semaphore { value: value as u16, last: pid };
            found.of.undos.values_mut().for_each(|undo| undo.added[at] = 0);
        }
        let event = Event::Ring(found.of.number);
        self.tell(event);
        DONE
    }

    /// Something about one semaphore.
    fn semaphore_value(&mut self, tid: Tid, id: i32, at: u32, command: u32) -> Answer {
        let set = &self.ipc_allowed::<Semaphores>(tid, id, READS)?.of;
        let found = *set.all.get(at as usize).ok_or(EINVAL)?;
        let event = Event::Ring(set.number);
        let wanted = at << 1 | u32::from(command == GETZCNT);
        number(Ok(match command {
            GETVAL => found.value.into(),
            GETPID => found.last.into(),
            _ => self.waiters(event).into_iter().filter(|(_, bits)| *bits == wanted).count() as u64,
        }))
    }

    /// Text of `/proc/sysvipc/sem`.
    pub(super) fn semaphores_text(&self) -> String {
        let mut text = String::from(
            "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n",
        );
        for (id, found) in self.kept.ipc.semaphores.iter() {
            let Permissions { key, owner, maker, mode, .. } = found.permissions;
            let (count, used, changed) = (found.of.all.len(), found.of.used, found.changed);
            // A `String` takes all that is written.
            let _ = writeln!(
                text,
                "{key:10} {id:10}  {mode:4o} {count:10} {:5} {:5} {:5} {:5} {used:10} {changed:10}",
                owner.0, owner.1, maker.0, maker.1
            );
        }
        text
    }
}

#[cfg(test)]
mod tests;
