//! Locks whose owner is known by its number in their word: those of which an owner's end tells others, and those that are handed from owner to owner.

use crate::errno::{EAGAIN, EDEADLK, EPERM, ESRCH, ETIMEDOUT, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::process::{Event, Word};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    FUTEX_CLOCK_REALTIME, FUTEX_LOCK_PI, FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS, ROBUST_LIST_LIMIT,
};
use vfs::FileSystem;

/// Bit of an entry of a list of locks: the lock is one that is handed over.
const IS_HANDED_OVER: u64 = 1;

/// The entry of a list of locks that is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// One of the list.
    Listed,
    /// A lock that was just being taken, or given up.
    Pending,
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Takes a lock whose word says that it is free. Otherwise says that it has to be waited for; whose it is stands in the word.
    fn take_word(&mut self, tid: Tid, address: u64, at: Word) -> Result<bool> {
        let word = self.word(tid, address)?;
        match word & FUTEX_TID_MASK {
            0 => {
                let waits = !self.waiters(Event::Lock(at)).is_empty();
                let waiters = if waits { FUTEX_WAITERS } else { 0 };
                let new = tid | word & FUTEX_OWNER_DIED | waiters;
                self.write(tid, address, &new.to_le_bytes())?;
                Ok(true)
            }
            owner if owner == tid => Err(EDEADLK),
            owner if !self.threads.contains_key(&owner) => Err(ESRCH),
            _ => {
                // The owner has to call to give it up.
                self.write(tid, address, &(word | FUTEX_WAITERS).to_le_bytes())?;
                Ok(false)
            }
        }
    }

    /// `FUTEX_LOCK_PI`: takes a lock, or waits until it is handed over. Threads have one priority, so nothing else is to be done for the owner.
    pub(super) fn lock(&mut self, tid: Tid, address: u64, op: u32, timeout: u64) -> Answer {
        if self.thread(tid)?.is_woken {
            return DONE;
        }
        let at = self.futex_at(tid, address, op)?;
        if self.take_word(tid, address, at)? {
            return DONE;
        }
        let is_date = super::futex::kind(op) == FUTEX_LOCK_PI || op & FUTEX_CLOCK_REALTIME != 0;
        let until = self.absolute_deadline(tid, timeout, is_date)?;
        let now = self.machine.now();
        if until.is_some_and(|until| until <= now) {
            return Err(ETIMEDOUT);
        }
        Ok(Outcome::Wait(Vec::from([Event::Lock(at)]), until))
    }

    /// `FUTEX_TRYLOCK_PI`: takes a lock if it is free.
    pub(super) fn try_lock(&mut self, tid: Tid, address: u64, op: u32) -> Answer {
        let at = self.futex_at(tid, address, op)?;
        if self.take_word(tid, address, at)? { DONE } else { Err(EAGAIN) }
    }

    /// `FUTEX_UNLOCK_PI`: hands a lock to the first who waits for it.
    pub(super) fn unlock(&mut self, tid: Tid, address: u64, op: u32) -> Answer {
        let at = self.futex_at(tid, address, op)?;
        if self.word(tid, address)? & FUTEX_TID_MASK != tid {
            return Err(EPERM);
        }
        match self.waiters(Event::Lock(at)).first() {
            None => self.write(tid, address, &[0; 4])?,
            Some(&(next, _)) => self.hand_over(tid, (address, at), next, 0)?,
        }
        DONE
    }

    /// Makes a thread that waits the owner of a lock, whose word a thread has at an address.
    fn hand_over(&mut self, tid: Tid, (address, at): (u64, Word), next: Tid, mark: u32) -> Result<()> {
        self.write(tid, address, &(next | FUTEX_WAITERS | mark).to_le_bytes())?;
        if let Some(thread) = self.threads.get_mut(&next) {
            thread.is_woken = true;
        }
        self.tell(Event::Lock(at));
        Ok(())
    }

    /// Locks of a thread that ends, or loses its memory, go to others.
    pub(crate) fn leave_locks(&mut self, tid: Tid) {
        self.leave_handed_over(tid);
        let (head, _) = self.threads.get(&tid).map_or((0, 0), |thread| thread.robust);
        if head != 0 {
            // A list that leads nowhere ends there.
            let _ = self.leave_list(tid, head);
        }
    }

    /// Locks for which others wait that will be handed over.
    fn leave_handed_over(&mut self, tid: Tid) {
        let all = self.waiters_by(|blocked| match blocked.on.first() {
            Some(Event::Lock(at)) => Some((blocked.registers.rdi, *at)),
            _ => None,
        });
        for (waiter, (address, at)) in all {
            if self.word(waiter, address).is_ok_and(|word| word & FUTEX_TID_MASK == tid) {
                let _ = self.hand_over(waiter, (address, at), waiter, FUTEX_OWNER_DIED);
            }
        }
    }

    /// Walks a thread's list of locks, which may be any bytes.
    fn leave_list(&mut self, tid: Tid, head: u64) -> Result<()> {
        let [mut entry, offset, pending] = self.words(tid, head)?;
        for _ in 0..ROBUST_LIST_LIMIT {
            let at = entry & !IS_HANDED_OVER;
            if at == head {
                break;
            }
            // The next is read first: whoever gets the lock may change the entry.
            let next = self.words::<1>(tid, at);
            if at != pending & !IS_HANDED_OVER {
                self.leave_lock(tid, (entry, offset), Entry::Listed)?;
            }
            [entry] = next?;
        }
        match pending {
            0 => Ok(()),
            pending => self.leave_lock(tid, (pending, offset), Entry::Pending),
        }
    }

    /// Marks a lock if its owner is the thread that ends, and wakes one that waits for it.
    fn leave_lock(&mut self, tid: Tid, (entry, offset): (u64, u64), kind: Entry) -> Result<()> {
        let is_handed_over = entry & IS_HANDED_OVER != 0;
        let address = (entry & !IS_HANDED_OVER).wrapping_add(offset);
        if !address.is_multiple_of(4) {
            return Err(crate::errno::EINVAL);
        }
        let word = self.word(tid, address)?;
        if kind == Entry::Pending && !is_handed_over && word == 0 {
            // It was given up, and whoever waits was not woken yet.
            return self.wake_at(tid, address, 1);
        }
        if word & FUTEX_TID_MASK != tid {
            return Ok(());
        }
        let new = word & FUTEX_WAITERS | FUTEX_OWNER_DIED;
        self.write(tid, address, &new.to_le_bytes())?;
        if word & FUTEX_WAITERS != 0 && !is_handed_over { self.wake_at(tid, address, 1) } else { Ok(()) }
    }
}
