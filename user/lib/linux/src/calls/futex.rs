//! Futexes: threads that wait at a word of memory.
//!
//! A word is known by its address space and address if only one process has it, so that it stays the same when the page gets another frame; in shared memory
//! by its place in the file, or in the frame, so that processes that share the memory meet there. Locks whose owners are known are in [`super::locks`].

use super::number;
use crate::errno::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Registers, Tid};
use crate::memory::Rights;
use crate::process::{Event, Word};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, FUTEX_32, FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_LOCK_PI,
    FUTEX_LOCK_PI2, FUTEX_PRIVATE_FLAG, FUTEX_REQUEUE, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI, FUTEX_WAIT,
    FUTEX_WAIT_BITSET, FUTEX_WAITV_MAX, FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_WAKE_OP,
};
use vfs::FileSystem;

/// Kind of a call, without its flags.
pub(super) fn kind(op: u32) -> u32 {
    op & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)
}

/// Whether a wait begins again behind a handler, which wants that or not. One that ends at a time does not; one for a lock does in any case.
pub(crate) fn is_made_again(registers: &Registers, is_wanted: bool) -> bool {
    match kind(registers.rsi as u32) {
        FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => true,
        _ => is_wanted && registers.r10 == 0,
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The word that a call means.
    pub(super) fn futex_at(&mut self, tid: Tid, address: u64, op: u32) -> Result<Word> {
        if !address.is_multiple_of(4) {
            return Err(EINVAL);
        }
        let room = self.room(tid)?;
        let space = room.borrow().space;
        if op & FUTEX_PRIVATE_FLAG != 0 {
            return if address < crate::memory::END {
                Ok(Word::Private(space, address))
            } else {
                Err(EFAULT)
            };
        }
        let memory = &mut room.borrow_mut().memory;
        let kind = memory.kind_at(address).ok_or(EFAULT)?;
        match kind.source {
            _ if !kind.is_shared => Ok(Word::Own(space, address)),
            Some(source) => Ok(Word::OfFile(source.file, source.offset)),
            None => {
                let (frame, _) = self.store.page(memory, address, Rights::READ).map_err(|_| EFAULT)?;
                Ok(Word::OfFrame(frame, address % PAGE))
            }
        }
    }

    /// The number at a word.
    pub(super) fn word(&mut self, tid: Tid, address: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.read(tid, address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn wake_waiters(&mut self, at: Word, count: u32, bits: u32) -> u32 {
        let mut woken = 0;
        for (tid, wanted) in self.waiters(Event::Futex(at)) {
            if woken == count {
                break;
            }
            if wanted & bits != 0
                && let Some(thread) = self.threads.get_mut(&tid)
            {
                (thread.is_woken, thread.futex) = (true, Some(at));
                woken += 1;
            }
        }
        if woken > 0 {
            self.tell(Event::Futex(at));
        }
        woken
    }

    /// Wakes threads at a word that other processes may have.
    pub(crate) fn wake_at(&mut self, tid: Tid, address: u64, count: u32) -> Result<()> {
        let at = self.futex_at(tid, address, 0)?;
        self.wake_waiters(at, count, u32::MAX);
        Ok(())
    }

    fn wake(&mut self, tid: Tid, address: u64, (op, count): (u32, u32), bits: u32) -> Answer {
        if bits == 0 {
            return Err(EINVAL);
        }
        let at = self.futex_at(tid, address, op)?;
        // One is woken at least, in Linux, too.
        let count = (count as i32).max(1).unsigned_abs();
        number(Ok(self.wake_waiters(at, count, bits).into()))
    }

    pub(crate) fn sys_futex(
        &mut self,
        tid: Tid,
        [address, op, value, timeout, other, bits]: [u64; 6],
    ) -> Answer {
        let op = op as u32;
        let (value, bits) = (value as u32, bits as u32);
        match kind(op) {
            FUTEX_WAIT => self.wait_at_word(tid, (address, op), value, timeout, u32::MAX),
            FUTEX_WAIT_BITSET if bits == 0 => Err(EINVAL),
            FUTEX_WAIT_BITSET => self.wait_at_word(tid, (address, op), value, timeout, bits),
            FUTEX_WAKE => self.wake(tid, address, (op, value), u32::MAX),
            FUTEX_WAKE_BITSET => self.wake(tid, address, (op, value), bits),
            FUTEX_REQUEUE => self.move_waiters(tid, (address, other), op, (value, timeout as u32)),
            FUTEX_CMP_REQUEUE => {
                if self.word(tid, address)? != bits {
                    return Err(EAGAIN);
                }
                self.move_waiters(tid, (address, other), op, (value, timeout as u32))
            }
            FUTEX_WAKE_OP => self.wake_two(tid, (address, other), op, (value, timeout as u32), bits),
            FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => self.lock(tid, address, op, timeout),
            FUTEX_TRYLOCK_PI => self.try_lock(tid, address, op),
            FUTEX_UNLOCK_PI => self.unlock(tid, address, op),
            _ => Err(ENOSYS),
        }
    }

    /// When a call gives up that names a time of a clock, or none. A call that is made again has begun before.
    pub(super) fn absolute_deadline(&mut self, tid: Tid, timeout: u64, is_date: bool) -> Result<Option<u64>> {
        if timeout == 0 || self.thread(tid)?.until.is_some() {
            return self.deadline(tid, timeout);
        }
        let wanted = super::time::nanoseconds(self.words(tid, timeout)?)?;
        let now = if is_date { self.machine.date() } else { self.machine.now() };
        Ok(Some(self.machine.now().saturating_add(wanted.saturating_sub(now))))
    }

    fn wait_at_word(
        &mut self,
        tid: Tid,
        (address, op): (u64, u32),
        value: u32,
        timeout: u64,
        bits: u32,
    ) -> Answer {
        let thread = self.thread(tid)?;
        if thread.is_woken {
            return DONE;
        }
        let at = match thread.futex {
            Some(at) => at,
            None => {
                let at = self.futex_at(tid, address, op)?;
                if self.word(tid, address)? != value {
                    return Err(EAGAIN);
                }
                at
            }
        };
        let until = match kind(op) {
            FUTEX_WAIT_BITSET => self.absolute_deadline(tid, timeout, op & FUTEX_CLOCK_REALTIME != 0)?,
            _ => self.deadline(tid, timeout)?,
        };
        let now = self.machine.now();
        if until.is_some_and(|until| until <= now) {
            return Err(ETIMEDOUT);
        }
        let thread = self.thread(tid)?;
        (thread.bits, thread.futex) = (bits, Some(at));
        Ok(Outcome::Wait(Vec::from([Event::Futex(at)]), until))
    }

    /// Words of a call that waits at several of them, and whether each has the number that it names.
    fn several_words(&mut self, tid: Tid, list: u64, count: u64) -> Result<Vec<(Word, bool)>> {
        let mut words = Vec::new();
        for index in 0..count {
            let [value, address, flags] = self.words(tid, list.wrapping_add(24 * index))?;
            // The upper half is reserved.
            if flags & !u64::from(FUTEX_PRIVATE_FLAG) != FUTEX_32.into() || value > u32::MAX.into() {
                return Err(EINVAL);
            }
            let at = self.futex_at(tid, address, flags as u32)?;
            words.push((at, u64::from(self.word(tid, address)?) == value));
        }
        Ok(words)
    }

    /// Waits at several words, and answers which one was woken.
    pub(crate) fn sys_futex_waitv(
        &mut self,
        tid: Tid,
        [list, count, flags, timeout, clock, _]: [u64; 6],
    ) -> Answer {
        let clock = clock as u32;
        let is_clock = timeout == 0 || matches!(clock, CLOCK_MONOTONIC | CLOCK_REALTIME);
        if flags as u32 != 0 || !(1..=u64::from(FUTEX_WAITV_MAX)).contains(&count) || !is_clock {
            return Err(EINVAL);
        }
        let words = self.several_words(tid, list, count)?;
        let thread = self.thread(tid)?;
        if thread.is_woken {
            let woken = words.iter().position(|(at, _)| thread.futex == Some(*at));
            return number(Ok(woken.unwrap_or(0) as u64));
        }
        if thread.until.is_none() && words.iter().any(|(_, is_as_named)| !is_as_named) {
            return Err(EAGAIN);
        }
        let until = self.absolute_deadline(tid, timeout, clock == CLOCK_REALTIME)?;
        let now = self.machine.now();
        if until.is_some_and(|until| until <= now) {
            return Err(ETIMEDOUT);
        }
        Ok(Outcome::Wait(words.into_iter().map(|(at, _)| Event::Futex(at)).collect(), until))
    }

    /// Wakes some, and lets others wait at another word.
    fn move_waiters(
        &mut self,
        tid: Tid,
        (from, to): (u64, u64),
        op: u32,
        (count, moved_max): (u32, u32),
    ) -> Answer {
        if (count as i32) < 0 || (moved_max as i32) < 0 {
            return Err(EINVAL);
        }
        let (from, to) = (self.futex_at(tid, from, op)?, self.futex_at(tid, to, op)?);
        let woken = self.wake_waiters(from, count, u32::MAX);
        let mut moved = 0;
        for (waiter, _) in self.waiters(Event::Futex(from)).into_iter().take(moved_max as usize) {
            let Some(thread) = self.threads.get_mut(&waiter) else { continue };
            // One that waits at several words stays.
            if let Some(blocked) = thread.blocked.as_mut().filter(|blocked| blocked.on.len() == 1) {
                // It comes behind those that wait there already.
                self.turns += 1;
                blocked.on = Vec::from([Event::Futex(to)]);
                (thread.futex, thread.turn) = (Some(to), self.turns);
                moved += 1;
            }
        }
        number(Ok(u64::from(woken) + moved))
    }

    /// Changes the second word, wakes at the first, and at the second if it was what is asked for.
    fn wake_two(
        &mut self,
        tid: Tid,
        (first, second): (u64, u64),
        op: u32,
        (count, other_count): (u32, u32),
        code: u32,
    ) -> Answer {
        let (at, other) = (self.futex_at(tid, first, op)?, self.futex_at(tid, second, op)?);
        let before = self.word(tid, second)?;
        // Both numbers have a sign.
        let (argument, compared) = ((code << 8) as i32 >> 20, (code << 20) as i32 >> 20);
        let argument = argument as u32;
        let argument = if code >> 31 != 0 { 1u32.wrapping_shl(argument) } else { argument };
        let after = match code >> 28 & 7 {
            0 => argument,
            1 => before.wrapping_add(argument),
            2 => before | argument,
            3 => before & !argument,
            4 => before ^ argument,
            _ => return Err(ENOSYS),
        };
        self.write(tid, second, &after.to_le_bytes())?;
        let before = before as i32;
        let fits = match code >> 24 & 15 {
            0 => before == compared,
            1 => before != compared,
            2 => before < compared,
            3 => before <= compared,
            4 => before > compared,
            5 => before >= compared,
            _ => return Err(ENOSYS),
        };
        let mut woken = self.wake_waiters(at, count, u32::MAX);
        if fits {
            woken += self.wake_waiters(other, other_count, u32::MAX);
        }
        number(Ok(woken.into()))
    }
}
