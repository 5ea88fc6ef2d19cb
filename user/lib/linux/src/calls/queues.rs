//! Queues of messages of System V: `msgget` and its like.
//!
//! A call that waits is done by whoever brings what it waits for, the longest wait first: a sender looks for a receiver of its message, and who takes a message sends those that
//! have room then, as they were when their calls were made. So each of them costs one look at those that wait, however many go on by that. A message is copied out before it is
//! taken, so an address that is wrong loses none.

use super::ipc::{Ipc, Kind, READS, Unsent, WRITES, structure, wait_at_object};
use super::number;
use crate::errno::{E2BIG, EAGAIN, EIDRM, EINVAL, ENOMEM, ENOMSG, EPERM, Result};
use crate::frames::Bytes;
use crate::ipc::numbers::{
    IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, MSG_COPY, MSG_EXCEPT, MSG_INFO, MSG_NOERROR, MSG_STAT,
    MSG_STAT_ANY, MSGMAX, MSGMNB,
};
use crate::ipc::{Ids, LastingShare, OBJECTS_MAX, Permissions};
use crate::machine::{Machine, Tid};
use crate::places::shorten_queue;
use crate::process::{Blocked, Event};
use crate::system::{Answer, DONE, System};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use linux_raw_sys::general::{__NR_msgrcv, __NR_msgsnd, CAP_SYS_RESOURCE};
use vfs::FileSystem;

/// Bytes of the budget that a queue counts for, and each message in it beside its text.
const QUEUE_BYTES: usize = 384;
/// See [`QUEUE_BYTES`].
const MESSAGE_BYTES: usize = 128;

/// Where the most bytes of a queue are in `struct msqid64_ds`.
const MOST_AT: u64 = 88;

/// A message.
#[derive(Debug)]
struct Message {
    kind: i64,
    text: Vec<u8>,
    _share: LastingShare,
}

/// Whether a kind is received by a wish: 0 for any one, a kind, or the negative of a kind that none is above.
fn is_wanted(kind: i64, wish: i64, flags: u32) -> bool {
    match wish {
        0 => true,
        ..0 => kind <= wish.checked_neg().unwrap_or(i64::MAX),
        _ => (kind == wish) != (flags & MSG_EXCEPT != 0),
    }
}

/// A queue of messages.
#[derive(Debug)]
pub struct Queue {
    messages: VecDeque<Message>,
    /// Bytes of all of them.
    bytes: u64,
    /// Most bytes, and most messages.
    most: u64,
    /// The process that has sent last, and the one that has received.
    last: [Tid; 2],
    /// When that was, each: seconds since 1970, or 0.
    used: [u64; 2],
    /// Number of what waiting threads wait for.
    number: u64,
}

impl Kind for Queue {
    const TELLS_ANY: u32 = MSG_STAT_ANY;

    fn all(ipc: &mut Ipc) -> &mut Ids<Queue> {
        &mut ipc.queues
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        let texts: usize = self.messages.iter().map(|message| MESSAGE_BYTES + message.text.len()).sum();
        QUEUE_BYTES + texts
    }
}

impl Queue {
    /// Place of the message that is received by a [wish](is_wanted), or of the one with a number if it is copied.
    fn find(&self, wish: i64, flags: u32) -> Option<usize> {
        if flags & MSG_COPY != 0 {
            return usize::try_from(wish).ok().filter(|at| *at < self.messages.len());
        }
        let kinds = self.messages.iter().map(|message| message.kind).enumerate();
        let mut wanted = kinds.filter(|(_, kind)| is_wanted(*kind, wish, flags));
        let found = if wish < 0 { wanted.min_by_key(|(_, kind)| *kind) } else { wanted.next() };
        found.map(|(at, _)| at)
    }

    fn has_room(&self, len: u64) -> bool {
        self.bytes + len <= self.most && (self.messages.len() as u64) < self.most
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_msgget(&mut self, tid: Tid, [key, flags, ..]: [u64; 6]) -> Answer {
        self.ipc_get(
            tid,
            (key, flags),
            |_: &Queue| true,
            |system, permissions| {
                let share = system.kept.ipc.lasting.take(&system.budget, QUEUE_BYTES);
                let (messages, number) = (VecDeque::new(), system.ring());
                let queue = Queue { messages, bytes: 0, most: MSGMNB, last: [0; 2], used: [0; 2], number };
                let now = system.seconds();
                system.kept.ipc.queues.add(permissions, now, queue, share)
            },
        )
    }

    pub(crate) fn sys_msgsnd(&mut self, tid: Tid, [id, from, len, flags, ..]: [u64; 6]) -> Answer {
        let thread = self.thread(tid)?;
        if let Some(result) = thread.outcome.take() {
            return number(result);
        }
        let id = id as i32;
        if thread.unsent.is_some() {
            // The receiver that makes room sends it.
            let queue = self.ipc_object::<Queue>(tid, id)?.of.number;
            return Ok(wait_at_object(tid, queue, None));
        }
        let (kind, text) = self.message_at(tid, id, from, len)?;
        let queue = &self.ipc_allowed::<Queue>(tid, id, WRITES)?.of;
        if queue.has_room(len) {
            self.queue_message(tid, id, kind, text)?;
            return DONE;
        }
        if flags as u32 & IPC_NOWAIT != 0 {
            return Err(EAGAIN);
        }
        let queue = queue.number;
        let share = self.share_of_unsent(text.len())?;
        self.thread(tid)?.unsent = Some(Box::new(Unsent { kind, text, share }));
        Ok(wait_at_object(tid, queue, None))
    }

    /// A message of a process, at its address: kind and text.
    fn message_at(&mut self, tid: Tid, id: i32, from: u64, len: u64) -> Result<(i64, Vec<u8>)> {
        let [kind] = self.words(tid, from)?;
        let kind = kind.cast_signed();
        if len > MSGMAX || id < 0 || kind < 1 {
            return Err(EINVAL);
        }
        let mut text = vec![0; len as usize];
        self.read(tid, from.wrapping_add(8), &mut text)?;
        Ok((kind, text))
    }

    /// A message of a thread comes into a queue that has room for it, or to somebody who waits for one like it.
    fn queue_message(&mut self, tid: Tid, id: i32, kind: i64, text: Vec<u8>) -> Result<()> {
        let share = self.kept.ipc.lasting.take(&self.budget, MESSAGE_BYTES + text.len()).ok_or(ENOMEM)?;
        let (pid, now) = (self.pid(tid)?, self.seconds());
        let queue = &mut self.ipc_object::<Queue>(tid, id)?.of;
        (queue.last[0], queue.used[0]) = (pid, now);
        if self.hand_to_receiver(id, kind, &text) {
            return Ok(());
        }
        let queue = &mut self.ipc_object::<Queue>(tid, id)?.of;
        queue.bytes += text.len() as u64;
        queue.messages.push_back(Message { kind, text, _share: share });
        Ok(())
    }

    /// Threads that wait at a queue with a call of one kind, and its arguments. The one that has waited longest comes first.
    fn waiting_with(&self, id: i32, call: u32) -> Vec<(Tid, [u64; 6])> {
        let Some(queue) = self.kept.ipc.queues.get(id) else { return Vec::new() };
        let event = Event::Ring(queue.of.number);
        self.waiters_by(|Blocked { registers, on, .. }| {
            let is_one = registers.rax == u64::from(call) && on.contains(&event);
            is_one.then(|| registers.arguments())
        })
    }

    /// Gives a message to the thread that has waited longest for one like it. False if nobody has. Those that it is too long for hear of it.
    fn hand_to_receiver(&mut self, id: i32, kind: i64, text: &[u8]) -> bool {
        for (tid, [_, to, room, wish, flags, _]) in self.waiting_with(id, __NR_msgrcv) {
            let (whole, flags) = (text.len() as u64, flags as u32);
            if !is_wanted(kind, wish.cast_signed(), flags) {
                continue;
            }
            let given = if whole > room && flags & MSG_NOERROR == 0 {
                Err(E2BIG)
            } else {
                let part = &text[..whole.min(room) as usize];
                self.for_other(tid, |system| system.take_message(tid, id, to, (kind, part)))
            };
            self.end_wait(tid, given);
            if given.is_ok() {
                return true;
            }
        }
        false
    }

    /// A thread receives a message, or as much of it as it wants: its length.
    fn take_message(&mut self, tid: Tid, id: i32, to: u64, (kind, text): (i64, &[u8])) -> Result<u64> {
        self.write(tid, to, &[&kind.to_le_bytes(), text].concat())?;
        let (pid, now) = (self.pid(tid)?, self.seconds());
        let queue = &mut self.ipc_object::<Queue>(tid, id)?.of;
        (queue.last[1], queue.used[1]) = (pid, now);
        Ok(text.len() as u64)
    }

    /// Sends messages of threads that wait for room in a queue, as far as there is some now.
    fn send_for_others(&mut self, id: i32) {
        for (tid, [_, _, len, ..]) in self.waiting_with(id, __NR_msgsnd) {
            let has_room = self.kept.ipc.queues.get(id).is_some_and(|queue| queue.of.has_room(len));
            let thread = self.threads.get_mut(&tid).filter(|_| has_room);
            let Some(unsent) = thread.and_then(|thread| thread.unsent.take()) else { continue };
            let Unsent { kind, text, share } = *unsent;
            // The message has a share that outlasts the process in its place.
            drop(share);
            let sent = self.for_other(tid, |system| {
                system.ipc_allowed::<Queue>(tid, id, WRITES)?;
                system.queue_message(tid, id, kind, text)
            });
            self.end_wait(tid, sent.map(|()| 0));
        }
    }

    pub(crate) fn sys_msgrcv(&mut self, tid: Tid, [id, to, len, wish, flags, _]: [u64; 6]) -> Answer {
        if let Some(result) = self.thread(tid)?.outcome.take() {
            return number(result);
        }
        let (id, flags) = (id as i32, flags as u32);
        let is_copy = flags & MSG_COPY != 0;
        if id < 0 || len > i64::MAX as u64 || is_copy && flags & (MSG_EXCEPT | IPC_NOWAIT) != IPC_NOWAIT {
            return Err(EINVAL);
        }
        let queue = &self.ipc_allowed::<Queue>(tid, id, READS)?.of;
        let Some(at) = queue.find(wish.cast_signed(), flags) else {
            let is_quick = flags & IPC_NOWAIT != 0;
            return if is_quick { Err(ENOMSG) } else { Ok(wait_at_object(tid, queue.number, None)) };
        };
        let message = queue.messages.get(at).ok_or(ENOMSG)?;
        let whole = message.text.len() as u64;
        if whole > len && flags & MSG_NOERROR == 0 {
            return Err(E2BIG);
        }
        let count = whole.min(len);
        let bytes = [&message.kind.to_le_bytes(), &message.text[..count as usize]].concat();
        self.write(tid, to, &bytes)?;
        if !is_copy {
            let (pid, now) = (self.pid(tid)?, self.seconds());
            let queue = &mut self.ipc_object::<Queue>(tid, id)?.of;
            queue.messages.remove(at);
            shorten_queue(&mut queue.messages);
            queue.bytes -= whole;
            (queue.last[1], queue.used[1]) = (pid, now);
            self.send_for_others(id);
        }
        number(Ok(count))
    }

    /// Owner, permissions and length of a queue are others: receivers that may not have its messages any more hear of it, and senders that have room now have sent.
    fn queue_changed(&mut self, id: i32) {
        for (tid, _) in self.waiting_with(id, __NR_msgrcv) {
            let denied = self.ipc_allowed::<Queue>(tid, id, READS).err();
            if let Some(error) = denied {
                self.end_wait(tid, Err(error));
            }
        }
        self.send_for_others(id);
    }

    pub(crate) fn sys_msgctl(&mut self, tid: Tid, [id, command, at, ..]: [u64; 6]) -> Answer {
        let (id, command) = (id as i32, command as u32);
        if id < 0 {
            return Err(EINVAL);
        }
        match command {
            IPC_STAT | MSG_STAT | MSG_STAT_ANY => {
                let (id, result) = self.ipc_told::<Queue>(tid, id, command)?;
                let found = self.kept.ipc.queues.get(id).ok_or(EINVAL)?;
                let Queue { messages, bytes, most, last, used, .. } = &found.of;
                let last = u64::from(last[1]) << 32 | u64::from(last[0]);
                let words =
                    [used[0], used[1], found.changed, *bytes, messages.len() as u64, *most, last, 0, 0];
                let bytes = structure(&found.permissions, &words);
                self.write(tid, at, &bytes)?;
                number(Ok(result))
            }
            IPC_SET => {
                let [most] = self.words(tid, at.wrapping_add(MOST_AT))?;
                self.ipc_owned::<Queue>(tid, id)?;
                if most > MSGMNB && !self.can(tid, CAP_SYS_RESOURCE) {
                    return Err(EPERM);
                }
                self.ipc_set::<Queue>(tid, id, at)?;
                self.ipc_object::<Queue>(tid, id)?.of.most = most;
                self.queue_changed(id);
                DONE
            }
            IPC_RMID => {
                let queue = self.ipc_owned::<Queue>(tid, id)?.of.number;
                self.kept.ipc.queues.remove(id);
                self.end_waits(queue, Err(EIDRM));
                DONE
            }
            IPC_INFO | MSG_INFO => self.queue_limits(tid, command, at),
            _ => Err(EINVAL),
        }
    }

    /// Limits, or what there is of them: `struct msginfo`.
    fn queue_limits(&mut self, tid: Tid, command: u32, at: u64) -> Answer {
        let (queues, most) = (&self.kept.ipc.queues, MSGMNB as u32);
        let sum = |of: fn(&Queue) -> u64| queues.iter().map(|(_, queue)| of(&queue.of)).sum::<u64>() as u32;
        let [pool, map, texts] = match command {
            MSG_INFO => {
                let messages = sum(|queue| queue.messages.len() as u64);
                [queues.count() as u32, messages, sum(|queue| queue.bytes)]
            }
            _ => [OBJECTS_MAX as u32 * (most / 1024), most, most],
        };
        let halves = [pool, map, MSGMAX as u32, most, OBJECTS_MAX as u32, 16, texts, 0xffff];
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        let highest = queues.highest().into();
        self.write(tid, at, &bytes)?;
        number(Ok(highest))
    }

    /// Text of `/proc/sysvipc/msg`.
    pub(super) fn queues_text(&self) -> String {
        let mut text = String::from(
            "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      \
             rtime      ctime\n",
        );
        for (id, found) in self.kept.ipc.queues.iter() {
            let (Permissions { key, owner, maker, mode, .. }, of) = (found.permissions, &found.of);
            // A `String` takes all that is written.
            let _ = writeln!(
                text,
                "{key:10} {id:10}  {mode:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
                of.bytes,
                of.messages.len(),
                of.last[0],
                of.last[1],
                owner.0,
                owner.1,
                maker.0,
                maker.1,
                of.used[0],
                of.used[1],
                found.changed
            );
        }
        text
    }
}

#[cfg(test)]
mod tests;
