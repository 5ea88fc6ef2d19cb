//! Semaphores of System V: `semget` and its like.
//!
//! A call does all of its operations or none. It reads them once, and is looked at once whether it may do them: those of one that waits are kept with its thread. Whoever
//! changes a value does them as soon as they can be done, the longest wait first; when these have changed a value, all others are looked at once more from the first one on.
//! Operations that the end of a process takes back are kept in the set, by process.

use super::ipc::{Ipc, Kind, READS, WRITES, structure, wait_at_object};
use super::number;
use crate::budget::{Budget, Share};
use crate::errno::{E2BIG, EAGAIN, EFBIG, EIDRM, EINVAL, ENOMEM, ENOSPC, ERANGE, Result};
use crate::frames::Bytes;
use crate::ipc::numbers::{
    GETALL, GETNCNT, GETPID, GETVAL, GETZCNT, IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, SEM_INFO,
    SEM_STAT, SEM_STAT_ANY, SEM_UNDO, SEMMSL, SEMOPM, SEMVMX, SETALL, SETVAL,
};
use crate::ipc::{Ids, OBJECTS_MAX, Permissions};
use crate::machine::{Machine, Tid};
use crate::process::Event;
use crate::system::{Answer, DONE, System};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
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

/// Operations that a call may wait with without a share of the budget.
const OPERATIONS_FREE: usize = 16;

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
}

/// Operations of a call that waits, as they were when it was made.
#[derive(Debug)]
pub struct Operations {
    all: Vec<Operation>,
    /// The first one that cannot be done now.
    first: Operation,
    /// Number of the set.
    set: u64,
    /// Share of the budget that the list has, if it is long.
    _share: Option<Share>,
}

impl Operations {
    /// Bytes of the budget that the list counts for.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        if self.all.len() > OPERATIONS_FREE { size_of_val(&*self.all) } else { 0 }
    }
}

/// Whether operations do nothing but take from one semaphore.
fn only_take(operations: &[Operation]) -> bool {
    matches!(operations, [only] if only.change < 0)
}

/// Whether one of the operations changes a value.
fn alter(operations: &[Operation]) -> bool {
    operations.iter().any(|operation| operation.change != 0)
}

impl Semaphores {
    /// Numbers that are added when a process ends are there from now on, if it has not got any yet.
    fn keep_undo(&mut self, pid: Tid, budget: &Budget) -> Result<()> {
        if let Entry::Vacant(place) = self.undos.entry(pid) {
            let len = self.all.len();
            let share = budget.take(UNDO_BYTES + len * size_of::<i16>()).ok_or(ENOMEM)?;
            place.insert(Undo { added: vec![0; len], _share: share });
        }
        Ok(())
    }

    /// Does all operations for a process, or none. The first one that has to wait, if there is one. Numbers for those that are taken back are [there](Self::keep_undo).
    fn perform(&mut self, pid: Tid, operations: &[Operation]) -> Result<Option<Operation>> {
        let mut undo = self.undos.get_mut(&pid);
        let mut after: BTreeMap<u16, (i32, i32)> = BTreeMap::new();
        for operation in operations {
            let (at, change) = (usize::from(operation.semaphore), i32::from(operation.change));
            let before = || {
                let added = undo.as_ref().map_or(0, |undo| undo.added[at]);
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
        let set = Semaphores { all, undos, used: 0, number: self.ring() };
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
        if self.thread(tid)?.operations.is_some() {
            return self.wait_on(tid);
        }
        if count == 0 {
            return Err(EINVAL);
        }
        if u64::from(count) > SEMOPM {
            return Err(E2BIG);
        }
        let until = self.deadline(tid, timeout)?;
        let mut bytes = vec![0; count as usize * OPERATION_BYTES];
        self.read(tid, list, &mut bytes)?;
        let all: Vec<Operation> = bytes.chunks_exact(OPERATION_BYTES).map(Operation::read).collect();
        let places = self.ipc_object::<Semaphores>(tid, id)?.of.all.len();
        if all.iter().any(|operation| usize::from(operation.semaphore) >= places) {
            return Err(EFBIG);
        }
        let (pid, now, budget) = (self.pid(tid)?, self.seconds(), self.budget.clone());
        let wanted = if alter(&all) { WRITES } else { READS };
        let set = &mut self.ipc_allowed::<Semaphores>(tid, id, wanted)?.of;
        if all.iter().any(Operation::undoes) {
            set.keep_undo(pid, &budget)?;
        }
        let Some(first) = set.perform(pid, &all)? else {
            set.used = now;
            if alter(&all) {
                self.operate_for_others(id);
            }
            return DONE;
        };
        let set = set.number;
        let is_long = all.len() > OPERATIONS_FREE;
        let share = if is_long { Some(budget.take(size_of_val(&*all)).ok_or(ENOMEM)?) } else { None };
        if until.is_some_and(|until| until <= self.machine.now()) {
            return Err(EAGAIN);
        }
        self.thread(tid)?.operations = Some(Box::new(Operations { all, first, set, _share: share }));
        Ok(wait_at_object(tid, set, until))
    }

    /// A call that waits is made again: somebody has done its operations, its time is over, or it goes on to wait.
    fn wait_on(&mut self, tid: Tid) -> Answer {
        let now = self.machine.now();
        let thread = self.thread(tid)?;
        let until = thread.until.flatten();
        match (thread.outcome.take(), &thread.operations) {
            (Some(result), _) => number(result),
            (None, Some(operations)) if until.is_none_or(|until| until > now) => {
                Ok(wait_at_object(tid, operations.set, until))
            }
            _ => Err(EAGAIN),
        }
    }

    /// Does operations of threads that wait at a set, as far as they can be done now. Those that only take leave nothing to others that want to take, so one look is enough
    /// while there are no others.
    fn operate_for_others(&mut self, id: i32) {
        let Some(number) = self.kept.ipc.semaphores.get(id).map(|set| set.of.number) else { return };
        let (mut waiting, now) = (self.waiters(Event::Ring(number)), self.seconds());
        // Those that change nothing come first, as in Linux: behind others they might never find the value for which they wait.
        waiting.sort_by_key(|(tid, _)| {
            let operations = self.threads.get(tid).and_then(|thread| thread.operations.as_ref());
            operations.is_some_and(|operations| alter(&operations.all))
        });
        let (mut at, mut has_others) = (0, false);
        while let Some((tid, _)) = waiting.get(at).copied() {
            let (Some(thread), Some(set)) =
                (self.threads.get_mut(&tid), self.kept.ipc.semaphores.get_mut(id))
            else {
                return;
            };
            let Some(operations) = &mut thread.operations else { return };
            has_others |= !only_take(&operations.all);
            let done = match set.of.perform(thread.process, &operations.all) {
                Ok(Some(first)) => {
                    operations.first = first;
                    at += 1;
                    continue;
                }
                Ok(None) => {
                    set.of.used = now;
                    Ok(0)
                }
                Err(error) => Err(error),
            };
            waiting.remove(at);
            if done.is_ok() && has_others && alter(&operations.all) {
                (at, has_others) = (0, false);
            }
            self.end_wait(tid, done);
        }
    }

    /// A process ends: what it has done with semaphores is taken back as far as it has asked for that.
    pub(crate) fn undo_operations(&mut self, pid: Tid) {
        let mut changed = Vec::new();
        for (id, set) in self.kept.ipc.semaphores.iter_mut() {
            if set.of.undos.contains_key(&pid) {
                set.of.undo(pid);
                changed.push(id);
            }
        }
        changed.into_iter().for_each(|id| self.operate_for_others(id));
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
                let set = self.ipc_owned::<Semaphores>(tid, id)?.of.number;
                self.kept.ipc.semaphores.remove(id);
                self.end_waits(set, Err(EIDRM));
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
        for undo in found.of.undos.values_mut() {
            undo.added[first..first + values.len()].fill(0);
        }
        for (semaphore, value) in found.of.all[first..].iter_mut().zip(values) {
            *semaphore = Semaphore { value: value as u16, last: pid };
        }
        self.operate_for_others(id);
        DONE
    }

    /// Something about one semaphore.
    fn semaphore_value(&mut self, tid: Tid, id: i32, at: u32, command: u32) -> Answer {
        let set = &self.ipc_allowed::<Semaphores>(tid, id, READS)?.of;
        let (found, set) = (*set.all.get(at as usize).ok_or(EINVAL)?, set.number);
        number(Ok(match command {
            GETVAL => found.value.into(),
            GETPID => found.last.into(),
            _ => {
                let is_meant = |first: &Operation| {
                    u32::from(first.semaphore) == at && (first.change == 0) == (command == GETZCNT)
                };
                let first = |(tid, _): (Tid, u32)| Some(self.threads.get(&tid)?.operations.as_ref()?.first);
                self.waiters(Event::Ring(set)).into_iter().filter_map(first).filter(is_meant).count() as u64
            }
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
