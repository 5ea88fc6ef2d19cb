//! Descriptors that a thread closes while another one waits with them. As in Linux, a call that waits has what was open when it began, until it is over, whatever gets
//! the number meanwhile: it is made again, and would find another file there. `poll` and `select` keep what they wait with open, too, but look at the numbers again when
//! something happens, and tell that one is closed.

use crate::decode;
use crate::errno::ENOMEM;
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::open::{Descriptor, Open};
use crate::process::{Blocked, Event, Polled};
use crate::sessions::Loss;
use crate::system::{Answer, Outcome, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general as nr;
use vfs::FileSystem;

/// Calls that do not wait for what they have named: a lock of `fcntl` is not waited for without its descriptor, and `ioctl` begins anew behind a stop.
const BEGIN_ANEW: [u32; 2] = [nr::__NR_fcntl, nr::__NR_ioctl];

/// Whether a call that waits names a descriptor, and means what that led to when the call began, whatever gets its number.
fn names(registers: &Registers, number: u32) -> bool {
    let is_one_of = |calls: &[u32]| calls.iter().any(|call| u64::from(*call) == registers.rax);
    if is_one_of(&[nr::__NR_waitid]) {
        return registers.rdi as u32 == nr::P_PIDFD && registers.rsi as u32 == number;
    }
    let arguments = registers.arguments();
    let is_it = |at: usize| arguments.get(at) == Some(&u64::from(number));
    !is_one_of(&BEGIN_ANEW) && decode::descriptors(registers.rax).any(is_it)
}

/// Whether a call is `poll`, `select` or one of their kind.
fn is_poll(registers: &Registers) -> bool {
    let calls = [nr::__NR_poll, nr::__NR_ppoll, nr::__NR_select, nr::__NR_pselect6];
    calls.iter().any(|call| u64::from(*call) == registers.rax)
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// `poll` or `select` waits with descriptors. Those with which it has begun to wait stay open until it is over.
    pub(super) fn wait_with(
        &mut self,
        tid: Tid,
        numbers: impl Iterator<Item = u32>,
        (on, until): (Vec<Event>, Option<u64>),
    ) -> Answer {
        let has_others = self.process(tid)?.threads.len() > 1;
        if has_others && self.thread(tid)?.until.is_none() {
            let polled = Polled::new(numbers.collect(), &self.budget).ok_or(ENOMEM)?;
            self.thread(tid)?.polled = polled;
        }
        Ok(Outcome::Wait(on, until))
    }

    /// A thread closes a descriptor: others of its process that wait with it go on to do so.
    pub(super) fn hold_for_others(&mut self, tid: Tid, number: u32, open: &Rc<Open>) {
        let Ok(process) = self.process(tid) else { return };
        if process.threads.len() < 2 {
            return;
        }
        let others: Vec<Tid> = process.threads.iter().copied().filter(|other| *other != tid).collect();
        for other in others {
            let Some(thread) = self.threads.get_mut(&other) else { continue };
            let blocked = thread.blocked.as_ref();
            let is_polled = blocked.is_some_and(|blocked| is_poll(&blocked.registers));
            let is_named = blocked.is_some_and(|blocked| names(&blocked.registers, number));
            let is_first = is_named && thread.held.iter().all(|(held, _)| *held != number);
            if is_first || is_polled && thread.polled.close(number) {
                thread.held.push((number, open.clone()));
            }
        }
    }

    /// Makes a call again that waits with descriptors which are closed. They are there as long as it is made.
    #[cold]
    pub(crate) fn attempt_with_held(&mut self, tid: Tid, registers: &mut Registers) -> Option<bool> {
        let pid = self.pid(tid).ok()?;
        if is_poll(registers) {
            let outcome = self.attempt(tid, registers);
            if outcome != Some(false) {
                self.let_held_go(tid);
            }
            return outcome;
        }
        let held = core::mem::take(&mut self.threads.get_mut(&tid)?.held);
        let mut others = Vec::new();
        for (number, open) in &held {
            let own = Descriptor { open: open.clone(), closes: false };
            others.push(self.exchange_descriptor(pid, *number, Some(own)));
        }
        let outcome = self.attempt(tid, registers);
        for ((number, _), other) in held.iter().zip(others) {
            self.exchange_descriptor(pid, *number, other);
        }
        match self.threads.get_mut(&tid) {
            Some(thread) if outcome == Some(false) => thread.held = held,
            _ => held.into_iter().for_each(|(_, open)| self.close(open)),
        }
        outcome
    }

    /// Puts something under a number of a process, and takes away what is there. Nothing is under numbers of one that has ended.
    fn exchange_descriptor(&mut self, pid: Tid, number: u32, new: Option<Descriptor>) -> Option<Descriptor> {
        let process = self.processes.get_mut(&pid).filter(|process| process.ended.is_none());
        match (process, new) {
            (Some(process), Some(new)) => process.descriptors.replace(number, new).ok().flatten(),
            (Some(process), None) => process.descriptors.take(number).ok(),
            (None, new) => {
                new.into_iter().for_each(|new| self.close(new.open));
                None
            }
        }
    }

    /// Whether a thread polls a descriptor that is closed by now.
    pub(crate) fn has_polled_closed(&self, tid: Tid) -> bool {
        let Some(thread) = self.threads.get(&tid).filter(|thread| !thread.held.is_empty()) else {
            return false;
        };
        let Some(process) = self.processes.get(&thread.process) else { return false };
        let is_closed = |(number, _): &(u32, Rc<Open>)| process.descriptors.get(*number).is_err();
        thread.blocked.as_ref().is_some_and(|blocked| is_poll(&blocked.registers))
            && thread.held.iter().any(is_closed)
    }

    /// A signal comes to a thread that polls a descriptor which is closed by now. As in Linux, it looks once more before the signal ends its wait, and tells that instead.
    /// Whether the signal has been seen to.
    #[cold]
    pub(crate) fn end_closed_poll(&mut self, tid: Tid) -> bool {
        // Another call is being made, for another process: behind it.
        if self.is_making {
            self.losses.push(Loss::Signal(tid));
            return true;
        }
        let Some(Blocked { mut registers, .. }) = self.unblock(tid) else { return false };
        match self.attempt_with_held(tid, &mut registers) {
            Some(true) => self.complete(tid, registers),
            // Somebody has written over the list, so nothing is told.
            Some(false) => return false,
            None => {}
        }
        true
    }

    /// A thread waits no more: descriptors with which it has waited, and that others have closed, are closed now.
    pub(crate) fn let_held_go(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.polled.clear();
        if thread.held.is_empty() {
            return;
        }
        for (_, open) in core::mem::take(&mut thread.held) {
            self.close(open);
        }
    }
}
