//! What only σ0 can do: switch the machine off, and tell about itself. For `root` alone.
//!
//! σ0 also serves [`memory`](crate::memory) and the writing half of [`console`](crate::console).

use crate::process::{TaskEntry, ThreadEntry};
use crate::wire::{self, Name, Reply, Result, Status, interface::SIGMA0};
use sys::{Message, TaskId, Uid};

const POWER_OFF: u32 = 0;
const USAGE: u32 = 1;

/// Ends the machine with an exit status.
pub fn power_off(server: Uid, status: i32) -> Result<()> {
    wire::call(server, wire::label(SIGMA0, POWER_OFF), &[status as u64]).map(drop)
}

/// σ0's own entry in the list of tasks, and its only thread.
pub fn usage(server: Uid) -> Result<(TaskEntry, ThreadEntry)> {
    let [task, memory, pages, faults, thread, state, cpu_ns, uid] =
        wire::call(server, wire::label(SIGMA0, USAGE), &[])?.words;
    let halves = |word: u64| (word >> 32, word & 0xffff_ffff);
    let ((quota, used), (pages, threads), (thread_faults, ip)) =
        (halves(memory), halves(pages), halves(thread));
    let [state, priority, priority_max, ..] = state.to_le_bytes();
    let name = Name::new("sigma0").ok_or(wire::Failure::Garbled)?;
    Ok((
        TaskEntry { task: TaskId(task), name, quota, used, pages, threads, faults, priority_max },
        ThreadEntry { uid: Uid(uid), state, priority, cpu_ns, ip, faults: thread_faults },
    ))
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// End the machine with this status.
    PowerOff(i32),
    /// What σ0 uses itself.
    Usage,
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        match wire::operation_of(message) {
            POWER_OFF => Ok(Request::PowerOff(message.words[0] as i32)),
            USAGE => Ok(Request::Usage),
            _ => Err(Status::BadRequest),
        }
    }
}

/// The answer to [`Request::Usage`].
pub fn used(task: &TaskEntry, thread: &ThreadEntry) -> Reply {
    let join = |high: u64, low: u64| high << 32 | low & 0xffff_ffff;
    Reply::words(&[
        task.task.0,
        join(task.quota, task.used),
        join(task.pages, task.threads),
        task.faults,
        join(thread.faults, thread.ip),
        u64::from_le_bytes([thread.state, thread.priority, task.priority_max, 0, 0, 0, 0, 0]),
        thread.cpu_ns,
        thread.uid.0,
    ])
}
