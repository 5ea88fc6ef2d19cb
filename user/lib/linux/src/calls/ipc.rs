//! Calls of System V's ipc have this in common: how an object is found by its key or made, who may do what with it, commands that all kinds know, and how calls wait.
//!
//! A call that waits for an object is done, as in Linux, by the one that makes it possible, and comes back with that result: nobody is woken in vain, and others cannot
//! come in between.

use super::named_queues::NamedQueues;
use super::number;
use super::permissions::Subject;
use super::queues::Queue;
use super::segments::Segment;
use super::semaphores::Semaphores;
use super::time::SECOND;
use crate::budget::Share;
use crate::errno::{EACCES, EEXIST, EIDRM, EINVAL, ENOENT, ENOMEM, EPERM, Result};
use crate::frames::Bytes;
use crate::ipc::numbers::{IPC_CREAT, IPC_EXCL, IPC_PRIVATE, IPC_STAT, PERMISSIONS_BYTES};
use crate::ipc::{Ids, Lasting, Object, Permissions};
use crate::machine::{Machine, Tid};
use crate::process::Event;
use crate::system::{Answer, Outcome, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{CAP_IPC_OWNER, CAP_SYS_ADMIN};
use vfs::FileSystem;

/// Permission to read, for whichever class a process is of.
pub(super) const READS: u32 = 0o444;

/// Permission to write, in the same way.
pub(super) const WRITES: u32 = 0o222;

/// Bytes of the budget that a message which waits to be sent counts for, beside its text.
const UNSENT_BYTES: usize = 128;

/// All objects.
#[derive(Debug, Default)]
pub struct Ipc {
    /// Bytes of the budget that they have.
    pub lasting: Lasting,
    /// Shared memory.
    pub segments: Ids<Segment>,
    /// Segments that are removed, and that processes still have.
    pub(super) segments_removed: usize,
    /// Semaphores.
    pub semaphores: Ids<Semaphores>,
    /// Queues of messages.
    pub queues: Ids<Queue>,
    /// Queues of POSIX.
    pub named: NamedQueues,
}

/// A message that a call waits to send, as it was when the call was made.
#[derive(Debug)]
pub struct Unsent {
    /// Its kind, if it is one of System V.
    pub(super) kind: i64,
    /// Its text.
    pub(super) text: Vec<u8>,
    /// Share of the budget that it has until it is sent.
    pub(super) share: Share,
}

#[cfg(test)]
impl Unsent {
    /// Bytes of the budget that it counts for.
    pub fn held(&self) -> usize {
        UNSENT_BYTES + self.text.len()
    }
}

/// A kind of objects.
pub(super) trait Kind: Sized {
    /// The command that tells of any object at a place, whoever may read it.
    const TELLS_ANY: u32;

    /// All of that kind.
    fn all(ipc: &mut Ipc) -> &mut Ids<Self>;

    /// Bytes of the budget that it counts for, as they are found in it.
    #[cfg(test)]
    fn held(&self) -> usize;
}

#[cfg(test)]
impl Ipc {
    /// Bytes of the budget that all objects count for.
    pub fn held(&self) -> usize {
        fn sum<T: Kind>(ids: &Ids<T>) -> usize {
            ids.iter().map(|(_, object)| object.of.held()).sum()
        }
        sum(&self.segments) + sum(&self.semaphores) + sum(&self.queues)
    }
}

impl Permissions {
    /// Fails unless somebody may do with it what flags want: those that permissions would have that allow it.
    fn check(&self, subject: Option<&Subject>, flags: u32) -> Result<()> {
        let Some(subject) = subject else { return Ok(()) };
        let wanted = (flags >> 6 | flags >> 3 | flags) & 7;
        let is_in = |group: u32| subject.group == group || subject.groups.contains(&group);
        let granted = match () {
            () if [self.owner.0, self.maker.0].contains(&subject.owner) => self.mode >> 6,
            () if is_in(self.owner.1) || is_in(self.maker.1) => self.mode >> 3,
            () => self.mode,
        };
        if wanted & !granted == 0 { Ok(()) } else { Err(EACCES) }
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Seconds since 1970.
    pub(super) fn seconds(&self) -> u64 {
        self.machine.date() / SECOND
    }

    /// The object with a key, or a new one. `fits`: whether one that is there is as large as it is wanted.
    pub(super) fn ipc_get<T: Kind>(
        &mut self,
        tid: Tid,
        (key, flags): (u64, u64),
        fits: impl FnOnce(&T) -> bool,
        make: impl FnOnce(&mut Self, Permissions) -> Result<i32>,
    ) -> Answer {
        let (key, flags) = (key as i32, flags as u32);
        let subject = self.ipc_subject(tid)?;
        let found = T::all(&mut self.kept.ipc).of_key(key).filter(|_| key != IPC_PRIVATE);
        let id = match found {
            Some(_) if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL => return Err(EEXIST),
            Some((_, object)) if !fits(&object.of) => return Err(EINVAL),
            Some((id, object)) => object.permissions.check(subject.as_ref(), flags).map(|()| id)?,
            None if key != IPC_PRIVATE && flags & IPC_CREAT == 0 => return Err(ENOENT),
            None => {
                let owners = &self.process(tid)?.owners;
                let maker = (owners.owner[1], owners.group[1]);
                make(self, Permissions::new(key, flags, maker))?
            }
        };
        number(Ok(id as u64))
    }

    /// Effective owners of a thread's process; none if it passes all permissions of such objects.
    fn ipc_subject(&mut self, tid: Tid) -> Result<Option<Subject>> {
        Ok(if self.can(tid, CAP_IPC_OWNER) { None } else { Some(self.identity(tid)?) })
    }

    /// An object of an identifier. `EINVAL`: there is none; `EIDRM`: it was removed while the call has waited.
    pub(super) fn ipc_object<T: Kind>(&mut self, tid: Tid, id: i32) -> Result<&mut Object<T>> {
        let has_waited = self.thread(tid)?.until.is_some();
        let object = T::all(&mut self.kept.ipc).get_mut(id);
        object.ok_or(if has_waited { EIDRM } else { EINVAL })
    }

    /// That object, if a thread may do with it what it wants: [`READS`], [`WRITES`], or flags of a call.
    pub(super) fn ipc_allowed<T: Kind>(&mut self, tid: Tid, id: i32, wanted: u32) -> Result<&mut Object<T>> {
        let subject = self.ipc_subject(tid)?;
        let object = self.ipc_object(tid, id)?;
        object.permissions.check(subject.as_ref(), wanted)?;
        Ok(object)
    }

    /// That object, if it belongs to the owner of a thread's process, who may remove it.
    pub(super) fn ipc_owned<T: Kind>(&mut self, tid: Tid, id: i32) -> Result<&mut Object<T>> {
        let (owner, is_all) = (self.process(tid)?.owners.owner[1], self.can(tid, CAP_SYS_ADMIN));
        let object = self.ipc_object(tid, id)?;
        let owners = [object.permissions.owner.0, object.permissions.maker.0];
        if is_all || owners.contains(&owner) { Ok(object) } else { Err(EPERM) }
    }

    /// The identifier of the object that a command tells of, and the result of the command: one that names a place answers with the identifier.
    pub(super) fn ipc_told<T: Kind>(&mut self, tid: Tid, id: i32, command: u32) -> Result<(i32, u64)> {
        if command == IPC_STAT {
            return self.ipc_allowed::<T>(tid, id, READS).map(|_| (id, 0));
        }
        let id = T::all(&mut self.kept.ipc).at(id).ok_or(EINVAL)?;
        if command != T::TELLS_ANY {
            self.ipc_allowed::<T>(tid, id, READS)?;
        }
        Ok((id, id as u64))
    }

    /// Gives an object another owner and other permissions, as a structure of a process says.
    pub(super) fn ipc_set<T: Kind>(&mut self, tid: Tid, id: i32, at: u64) -> Result<()> {
        let mut bytes = [0; PERMISSIONS_BYTES];
        self.read(tid, at, &mut bytes)?;
        let now = self.seconds();
        let object = self.ipc_owned::<T>(tid, id)?;
        let mut permissions = object.permissions;
        permissions.set(&bytes);
        // Nobody is the last owner, or in the last group.
        if [permissions.owner.0, permissions.owner.1].contains(&u32::MAX) {
            return Err(EINVAL);
        }
        (object.permissions, object.changed) = (permissions, now);
        Ok(())
    }

    /// A share of the budget for a message that waits to be sent, with a text of so many bytes. `ENOMEM`: there is none.
    pub(super) fn share_of_unsent(&self, len: usize) -> Result<Share> {
        self.budget.take(UNSENT_BYTES.saturating_add(len)).ok_or(ENOMEM)
    }

    /// The call of a thread that waits is done, with a result.
    pub(super) fn end_wait(&mut self, tid: Tid, result: Result<u64>) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            (thread.is_woken, thread.outcome) = (true, Some(result));
            self.tell(Event::Done(tid));
        }
    }

    /// Calls of all threads that wait at an object are done, with one result.
    pub(super) fn end_waits(&mut self, number: u64, result: Result<u64>) {
        for (tid, _) in self.waiters(Event::Ring(number)) {
            self.end_wait(tid, result);
        }
    }

    /// Does something for a thread whose call waits, at the cost of its process.
    pub(super) fn for_other<T>(&mut self, tid: Tid, does: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let pid = self.pid(tid)?;
        let before = self.budget.serve(pid);
        let done = does(self);
        self.budget.serve(before);
        done
    }

    /// All objects are gone, with the first process.
    pub(crate) fn forget_ipc(&mut self) {
        self.forget_segments();
        self.kept.ipc = Ipc::default();
    }
}

/// A wait of a thread at an object with a number, until somebody has done the call, or a time.
pub(super) fn wait_at_object(tid: Tid, number: u64, until: Option<u64>) -> Outcome {
    Outcome::Wait(Vec::from([Event::Ring(number), Event::Done(tid)]), until)
}

/// Words of a structure behind its permissions.
pub(super) fn structure(permissions: &Permissions, words: &[u64]) -> Vec<u8> {
    let mut bytes = permissions.bytes().to_vec();
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}
