//! Futexes: threads that wait at a word of memory, which is known by its frame, so that processes that share the memory meet there.

use super::number;
use crate::errno::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::Rights;
use crate::process::Event;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_PRIVATE_FLAG, FUTEX_REQUEUE, FUTEX_WAIT,
    FUTEX_WAIT_BITSET, FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_WAKE_OP,
};
use vfs::FileSystem;

/// Wakes at most so many threads that wait at a word with some of these bits. Gives back how many.
pub fn wake<M: Machine, B: Bytes, F: FileSystem>(
    system: &mut System<M, B, F>,
    tid: Tid,
    address: u64,
    count: u32,
    bits: u32,
) -> Result<u32> {
    let at = system.futex_at(tid, address)?;
    Ok(system.wake_waiters(at, count, bits))
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The word of a futex.
    fn futex_at(&mut self, tid: Tid, address: u64) -> Result<Event> {
        if !address.is_multiple_of(4) {
            return Err(EINVAL);
        }
        let room = self.room(tid)?;
        let memory = &mut room.borrow_mut().memory;
        // A page that a fork has left to both becomes the process's own, so that its word keeps its frame. One that may not be written stays as it is.
        let page = self.store.page(memory, address, Rights::WRITE);
        let (frame, _) =
            page.or_else(|_| self.store.page(memory, address, Rights::READ)).map_err(|_| EFAULT)?;
        Ok(Event::Futex(frame.0, (address % PAGE) as u32))
    }

    fn word(&mut self, tid: Tid, address: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.read(tid, address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Threads that wait at a word.
    fn waiters(&self, at: Event) -> Vec<(Tid, u32)> {
        let waits = |(tid, thread): (&Tid, &crate::process::Thread)| {
            let blocked = thread.blocked.as_ref()?;
            (blocked.on.first() == Some(&at) && !thread.is_woken).then_some((*tid, blocked.bits))
        };
        self.threads.iter().filter_map(waits).collect()
    }

    fn wake_waiters(&mut self, at: Event, count: u32, bits: u32) -> u32 {
        let mut woken = 0;
        for (tid, wanted) in self.waiters(at) {
            if woken == count {
                break;
            }
            if wanted & bits != 0
                && let Some(thread) = self.threads.get_mut(&tid)
            {
                thread.is_woken = true;
                woken += 1;
            }
        }
        if woken > 0 {
            self.tell(at);
        }
        woken
    }

    pub(crate) fn sys_futex(
        &mut self,
        tid: Tid,
        [address, op, value, timeout, other, bits]: [u64; 6],
    ) -> Answer {
        let op = op as u32;
        let (value, bits) = (value as u32, bits as u32);
        match op & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) {
            FUTEX_WAIT => self.wait_at(tid, address, value, (timeout, false, op), u32::MAX),
            FUTEX_WAIT_BITSET if bits == 0 => Err(EINVAL),
            FUTEX_WAIT_BITSET => self.wait_at(tid, address, value, (timeout, true, op), bits),
            FUTEX_WAKE => number(wake(self, tid, address, value, u32::MAX).map(u64::from)),
            FUTEX_WAKE_BITSET if bits == 0 => Err(EINVAL),
            FUTEX_WAKE_BITSET => number(wake(self, tid, address, value, bits).map(u64::from)),
            FUTEX_REQUEUE => self.move_waiters(tid, (address, other), value, timeout as u32),
            FUTEX_CMP_REQUEUE => {
                if self.word(tid, address)? != bits {
                    return Err(EAGAIN);
                }
                self.move_waiters(tid, (address, other), value, timeout as u32)
            }
            FUTEX_WAKE_OP => self.wake_two(tid, (address, other), (value, timeout as u32), bits),
            _ => Err(ENOSYS),
        }
    }

    fn wait_at(
        &mut self,
        tid: Tid,
        address: u64,
        value: u32,
        (timeout, is_absolute, op): (u64, bool, u32),
        bits: u32,
    ) -> Answer {
        if self.thread(tid)?.is_woken {
            return DONE;
        }
        let at = self.futex_at(tid, address)?;
        let is_again = self.thread(tid)?.until.is_some();
        if !is_again && self.word(tid, address)? != value {
            return Err(EAGAIN);
        }
        let until = match timeout {
            _ if is_again || !is_absolute || timeout == 0 => self.deadline(tid, timeout)?,
            timeout => {
                let wanted = super::time::nanoseconds(self.words(tid, timeout)?)?;
                let is_date = op & FUTEX_CLOCK_REALTIME != 0;
                let now = if is_date { self.machine.date() } else { self.machine.now() };
                Some(self.machine.now().saturating_add(wanted.saturating_sub(now)))
            }
        };
        if until.is_some_and(|until| until <= self.machine.now()) {
            return Err(ETIMEDOUT);
        }
        self.thread(tid)?.bits = bits;
        Ok(Outcome::Wait(Vec::from([at]), until))
    }

    /// Wakes some, and lets others wait at another word.
    fn move_waiters(&mut self, tid: Tid, (from, to): (u64, u64), count: u32, moved_max: u32) -> Answer {
        let (from, to) = (self.futex_at(tid, from)?, self.futex_at(tid, to)?);
        let woken = self.wake_waiters(from, count, u32::MAX);
        let mut moved = 0;
        for (waiter, _) in self.waiters(from).into_iter().take(moved_max as usize) {
            if let Some(blocked) = self.threads.get_mut(&waiter).and_then(|thread| thread.blocked.as_mut()) {
                blocked.on = Vec::from([to]);
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
        (count, other_count): (u32, u32),
        code: u32,
    ) -> Answer {
        let (at, other) = (self.futex_at(tid, first)?, self.futex_at(tid, second)?);
        let before = self.word(tid, second)?;
        let argument = code >> 12 & 0xfff;
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
        let (before, compared) = (before as i32, (code & 0xfff) as i32);
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
