//! Descriptors that a thread closes while another one waits with them. As in Linux, a call that waits has what was open when it began, until it is over, whatever gets
//! the number meanwhile: it is made again, and would find another file there.

use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::open::{Descriptor, Open};
use crate::system::System;
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general as nr;
use vfs::FileSystem;

/// Descriptors that a call names. A lock of `fcntl` is not waited for without its descriptor, and `poll` tells that one is closed.
fn named(registers: &Registers) -> [Option<u64>; 2] {
    let Registers { rax, rdi, rsi, rdx, .. } = *registers;
    match u32::try_from(rax) {
        Ok(
            nr::__NR_read
            | nr::__NR_readv
            | nr::__NR_write
            | nr::__NR_writev
            | nr::__NR_recvfrom
            | nr::__NR_recvmsg
            | nr::__NR_recvmmsg
            | nr::__NR_sendto
            | nr::__NR_sendmsg
            | nr::__NR_sendmmsg
            | nr::__NR_accept
            | nr::__NR_accept4
            | nr::__NR_connect
            | nr::__NR_flock
            | nr::__NR_epoll_wait
            | nr::__NR_epoll_pwait
            | nr::__NR_epoll_pwait2
            | nr::__NR_vmsplice,
        ) => [Some(rdi), None],
        Ok(nr::__NR_sendfile | nr::__NR_tee) => [Some(rdi), Some(rsi)],
        Ok(nr::__NR_splice) => [Some(rdi), Some(rdx)],
        _ => [None; 2],
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
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
            let is_named =
                blocked.is_some_and(|blocked| named(&blocked.registers).contains(&Some(number.into())));
            if is_named && thread.held.iter().all(|(held, _)| *held != number) {
                thread.held.push((number, open.clone()));
            }
        }
    }

    /// Makes a call again that waits with descriptors which are closed. They are there as long as it is made.
    #[cold]
    pub(crate) fn attempt_with_held(&mut self, tid: Tid, registers: &mut Registers) -> Option<bool> {
        let pid = self.pid(tid).ok()?;
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

    /// A thread waits no more: descriptors with which it has waited, and that others have closed, are closed now.
    pub(crate) fn let_held_go(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| !thread.held.is_empty()) else {
            return;
        };
        for (_, open) in core::mem::take(&mut thread.held) {
            self.close(open);
        }
    }
}
