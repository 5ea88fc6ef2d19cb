//! Programs: what a program says to whoever started it, and how programs are started, watched and ended.
//!
//! Served by `root` to all programs; σ0 serves [`Request::Arguments`] and [`Request::Exit`] to `root`. A program finds
//! the server in its identity: it is the exception handler of the first thread.

use crate::memory::MemoryUse;
use crate::stubs::System::Ending;
use crate::stubs::System::Process::Client;
use crate::wire::{Failure, Name, Result, Status, Text, take};
use stub::Within;
use sys::abi::call::DOOR_SIZES;
use sys::{Error, TaskId, TaskInfo, ThreadInfo, Uid};

pub use crate::stubs::System::Process::{Answer, NUMBER, Request};
pub use crate::stubs::System::{TaskEntry, ThreadEntry};

/// Longest argument text of a program, in bytes, with the variables of its environment behind it.
pub const ARGUMENTS_LEN_MAX: usize = 1 << ARGUMENTS_LOG2;

/// Log2 of [`ARGUMENTS_LEN_MAX`].
pub const ARGUMENTS_LOG2: u32 = 17;

/// Most bytes that are [kept](keep) for a server.
pub const KEPT_LEN_MAX: usize = 8192;

/// Status of a server that ends because this machine has nothing for it, such as a driver without its device. `root` does not start it again, but
/// the one that the system description has in its place, if it has one.
pub const UNAVAILABLE: i32 = 69;

/// Copies the caller's arguments into `buffer`; returns their length, which may be larger than the buffer.
pub fn arguments(server: Uid, buffer: &mut [u8]) -> Result<usize> {
    piece_by_piece(buffer, |from| Ok((Client { server }).arguments(from)?))
}

/// Copies a text that comes from a byte on, with the length of all of it.
fn piece_by_piece(buffer: &mut [u8], mut from: impl FnMut(u32) -> Result<(Text, u32)>) -> Result<usize> {
    let mut at = 0;
    loop {
        let (text, total) = from(at as u32)?;
        let len = text.len().min(buffer.len() - at);
        buffer[at..at + len].copy_from_slice(&text[..len]);
        at += len;
        if len == 0 || at == buffer.len() || at >= total as usize {
            return Ok(total as usize);
        }
    }
}

/// The answer to [`Request::Arguments`].
pub fn shown(all: &[u8], from: u32) -> Answer {
    let (text, total) = piece(all, from);
    Answer::Arguments(text, total)
}

/// The answer to [`Request::Kept`].
pub fn shown_kept(all: &[u8], from: u32) -> Answer {
    let (text, total) = piece(all, from);
    Answer::Kept(text, total)
}

fn piece(all: &[u8], from: u32) -> (Text, u32) {
    (take(all.get(from as usize..).unwrap_or_default()).0, all.len() as u32)
}

/// Ends the caller's task. Returns only if the server is gone.
pub fn exit(server: Uid, status: i32) -> Failure {
    match (Client { server }.exit(status)) {
        Ok(()) => Failure::Garbled,
        Err(failure) => failure.into(),
    }
}

/// Starts a program from the boot archive with arguments, and variables behind them. Errors: [`Status::TooLarge`] if both together, or with those of the caller if it says
/// none, have more than [`ARGUMENTS_LEN_MAX`] bytes; [`Status::Exhausted`] if there is no memory for the program or for its arguments.
pub fn start(server: Uid, name: &Name, arguments: &str) -> Result<TaskId> {
    if arguments.len() > ARGUMENTS_LEN_MAX {
        return Err(Failure::Refused(Status::TooLarge));
    }
    stage(server, arguments.as_bytes())?;
    Ok(TaskId(Client { server }.start(name.bytes(), arguments.len() as u32)?))
}

/// Brings a text to the server, piece by piece.
fn stage(server: Uid, mut rest: &[u8]) -> Result<()> {
    let mut offset = 0;
    while !rest.is_empty() {
        let (text, later) = take(rest);
        Client { server }.stage(offset, &text)?;
        offset += text.len() as u32;
        rest = later;
    }
    Ok(())
}

/// Keeps a text of at most [`KEPT_LEN_MAX`] bytes for whoever is started in the caller's place when it has ended. What was kept before is lost then, and not
/// earlier. It is there until the system has no such server any more: one that ends too often, or for which the machine has nothing, begins anew. For
/// servers that `root` starts again.
pub fn keep(server: Uid, text: &[u8]) -> Result<()> {
    if text.len() > KEPT_LEN_MAX {
        return Err(Failure::Refused(Status::TooLarge));
    }
    stage(server, text)?;
    Ok(Client { server }.keep(text.len() as u32)?)
}

/// Copies into `buffer` what is kept for the caller; returns its length, which may be larger than the buffer, and is 0 if nothing is kept.
pub fn kept(server: Uid, buffer: &mut [u8]) -> Result<usize> {
    piece_by_piece(buffer, |from| Ok((Client { server }).kept(from)?))
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By itself, with a status.
    Exited(i32),
    /// By something that it should not have done.
    Crashed(Crash),
    /// Somebody ended it.
    Killed,
}

/// Crash of a program: its cause and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Cause.
    pub cause: Cause,
    /// Instruction pointer.
    pub ip: u64,
    /// Faulting address, for page faults.
    pub address: u64,
}

/// Cause of a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// An exception: processor vector, or one of [`sys::abi::call::vector`].
    Exception(u64),
    /// A thread, counted from 1 on, has used up its stack.
    StackOverflow(u64),
    /// It wanted a page, and there is none for it.
    OutOfMemory(Shortage),
}

/// Memory that is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// The program's own limit, in bytes.
    Limit(u64),
    /// The machine's.
    Machine,
    /// The kernel's, as much of it as there is for mappings of the program or of its memory manager.
    Kernel,
}

impl Shortage {
    const KERNEL: u64 = u64::MAX;

    const fn word(self) -> u64 {
        match self {
            Shortage::Limit(bytes) => bytes,
            Shortage::Machine => 0,
            Shortage::Kernel => Shortage::KERNEL,
        }
    }

    const fn from_word(word: u64) -> Shortage {
        match word {
            0 => Shortage::Machine,
            Shortage::KERNEL => Shortage::Kernel,
            bytes => Shortage::Limit(bytes),
        }
    }
}

impl core::fmt::Display for Cause {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match *self {
            Cause::Exception(vector) => f.write_str(vector_name(vector)),
            Cause::StackOverflow(thread) => write!(f, "stack overflow of thread {thread}"),
            Cause::OutOfMemory(Shortage::Limit(limit)) if limit % MIB == 0 => {
                write!(f, "out of memory: limit {} MiB", limit / MIB)
            }
            Cause::OutOfMemory(Shortage::Limit(limit)) => {
                write!(f, "out of memory: limit {} KiB", limit / 1024)
            }
            Cause::OutOfMemory(Shortage::Machine) => f.write_str("out of memory: the machine has none left"),
            Cause::OutOfMemory(Shortage::Kernel) => {
                f.write_str("out of memory: no kernel memory is left for mappings")
            }
        }
    }
}

const MIB: u64 = 1 << 20;

impl core::fmt::Display for Crash {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let Crash { cause, ip, address } = *self;
        match cause {
            Cause::Exception(vector @ (14 | sys::abi::call::vector::UNRESOLVED_FAULT)) => {
                write!(f, "{cause} (vector {vector}) at ip {ip:#x}, address {address:#x}")
            }
            Cause::Exception(vector) => write!(f, "{cause} (vector {vector}) at ip {ip:#x}"),
            Cause::StackOverflow(_) | Cause::OutOfMemory(_) => {
                write!(f, "{cause}, at ip {ip:#x}, address {address:#x}")
            }
        }
    }
}

/// Meaning of an exception vector, in a few words.
pub fn vector_name(vector: u64) -> &'static str {
    match vector {
        0 => "division error",
        1 => "debug exception",
        3 => "breakpoint",
        4 => "overflow",
        5 => "bound exceeded",
        6 => "invalid instruction",
        7 => "no floating-point unit",
        10..=12 => "segment error",
        13 => "protection violation",
        14 => "page fault",
        16 | 19 => "floating-point error",
        17 => "misaligned access",
        sys::abi::call::vector::SYSCALL => "unknown system call",
        sys::abi::call::vector::UNRESOLVED_FAULT => "unresolved page fault",
        _ => "exception",
    }
}

/// How a program ended and what it used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How.
    pub end: End,
    /// CPU time of the threads that it had at its end, in nanoseconds.
    pub cpu_ns: u64,
    /// Page faults.
    pub faults: u64,
}

/// Waits until a program that the caller's task started has ended. `None` if it still runs after `patience_ms`
/// (`u64::MAX`: wait forever). An outcome is told once.
pub fn wait(server: Uid, task: TaskId, patience_ms: u64) -> Result<Option<Outcome>> {
    let (ending, status, ip, address, cpu_ns, faults) = Client { server }.wait(task.0, patience_ms)?;
    Ok(end_of(ending, status, ip, address).map(|end| Outcome { end, cpu_ns, faults }))
}

/// The end that a message tells of; `None` while the program runs.
fn end_of(ending: Ending, status: u64, ip: u64, address: u64) -> Option<End> {
    Some(match ending {
        Ending::RUNNING => return None,
        Ending::EXITED => End::Exited(status as i32),
        Ending::CRASHED => End::Crashed(Crash { cause: Cause::Exception(status), ip, address }),
        Ending::STACK_OVERFLOW => End::Crashed(Crash { cause: Cause::StackOverflow(status), ip, address }),
        Ending::OUT_OF_MEMORY => {
            End::Crashed(Crash { cause: Cause::OutOfMemory(Shortage::from_word(status)), ip, address })
        }
        Ending::KILLED => End::Killed,
    })
}

/// The answer to [`Request::Wait`]; `None` while the program runs.
pub fn ended(outcome: Option<Outcome>) -> Answer {
    let Some(Outcome { end, cpu_ns, faults }) = outcome else {
        return Answer::Wait(Ending::RUNNING, 0, 0, 0, 0, 0);
    };
    let (ending, status, ip, address) = match end {
        End::Exited(status) => (Ending::EXITED, status as u64, 0, 0),
        End::Crashed(Crash { cause, ip, address }) => {
            let (ending, status) = match cause {
                Cause::Exception(vector) => (Ending::CRASHED, vector),
                Cause::StackOverflow(thread) => (Ending::STACK_OVERFLOW, thread),
                Cause::OutOfMemory(shortage) => (Ending::OUT_OF_MEMORY, shortage.word()),
            };
            (ending, status, ip, address)
        }
        End::Killed => (Ending::KILLED, 0, 0, 0),
    };
    Answer::Wait(ending, status, ip, address, cpu_ns, faults)
}

/// Ends a program.
pub fn kill(server: Uid, task: TaskId) -> Result<()> {
    Ok(Client { server }.kill(task.0)?)
}

/// Starts a server that stays down, by its own name or by one that it serves. For operators. Errors: [`Status::NotFound`] if the
/// system has no such server, [`Status::Taken`] if it runs.
pub fn restart(server: Uid, name: &Name) -> Result<()> {
    Ok(Client { server }.restart(name.bytes())?)
}

/// Classes of devices that a thread's program may drive, as bits by their number. For the bus server.
pub fn classes(server: Uid, thread: Uid) -> Result<u32> {
    Ok(Client { server }.classes(thread)?)
}

/// The task of a program's thread.
pub fn task_of(server: Uid, thread: Uid) -> Result<TaskId> {
    Ok(TaskId(Client { server }.task_of(thread)?))
}

/// Whether a thread's program is among those that may ask for what the caller serves: see `uses` and `clients` in the system description. For servers that give something to
/// whoever calls them, since a hostile program may have guessed where they are. They mostly ask by `rt::admission`.
pub fn is_client(server: Uid, thread: Uid) -> Result<bool> {
    Ok(Client { server }.is_client(thread)?)
}

/// [`is_client`] if the registry has time for it just now; else it fails with [`Error::SendTimeout`].
pub fn is_client_at_once(server: Uid, thread: Uid) -> Result<bool> {
    Ok(Client { server: Within::at_once(server) }.is_client(thread)?)
}

/// Whether a task's program may mount and unmount file systems: see `mount` in the system description. For the server of all file systems.
pub fn may_mount(server: Uid, task: TaskId) -> Result<bool> {
    Ok(Client { server }.may_mount(task.0)?)
}

/// `None` for what is not there.
fn found<T>(outcome: core::result::Result<T, stub::Failure>) -> Result<Option<T>> {
    match outcome.map_err(Failure::from) {
        Err(Failure::Refused(Status::NotFound)) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The task at a place of the list; `None` behind its end.
pub fn task_at(server: Uid, index: u64) -> Result<Option<TaskEntry>> {
    found(Client { server }.task_at(index))
}

/// The thread after `previous` (nil: the first) of a task; `None` behind the last. Its state is an index into
/// [`sys::abi::call::thread_op::STATES`].
pub fn thread_after(server: Uid, task: TaskId, previous: Uid) -> Result<Option<ThreadEntry>> {
    found(Client { server }.thread_after(task.0, previous))
}

impl TaskEntry {
    /// Number of the task.
    pub const fn id(&self) -> TaskId {
        TaskId(self.task)
    }

    /// Its program.
    pub fn program(&self) -> Name {
        Name::from_bytes(self.name).unwrap_or(Name::UNKNOWN)
    }
}

/// The line of a task.
pub fn task_entry(task: TaskId, name: &Name, info: &TaskInfo) -> TaskEntry {
    let &TaskInfo { quota, used, pages, threads, faults, priority_max } = info;
    let narrow = |number: u64| number.try_into().unwrap_or(u32::MAX);
    let [quota, used, pages, threads] = [quota, used, pages, threads].map(narrow);
    TaskEntry { task: task.0, name: *name.bytes(), quota, used, pages, threads, faults, priority_max }
}

/// The line of a thread, which works for a task, or nil.
pub fn thread_entry(uid: Uid, info: &ThreadInfo, works_for: TaskId) -> ThreadEntry {
    let &ThreadInfo { state, priority, cpu_ns, ip, faults, .. } = info;
    ThreadEntry { uid, state, priority, cpu_ns, ip, faults, works_for: works_for.0 }
}

/// Memory of the whole system.
#[derive(Clone, Debug)]
pub struct MemoryEntry {
    /// Memory that σ0 had at the start, and what it has left, in bytes.
    pub machine: MemoryUse,
    /// Memory that the memory manager has, and what of it is free, in bytes.
    pub manager: MemoryUse,
    /// Kernel memory of `root` and everything below it, and what of it is unused by `root` itself, in frames.
    pub kernel: MemoryUse,
}

/// Asks for [`MemoryEntry`].
pub fn memory(server: Uid) -> Result<MemoryEntry> {
    let (machine, manager, kernel) = Client { server }.memory()?;
    Ok(MemoryEntry { machine, manager, kernel })
}

/// Records what all threads of programs and of `root` do, or no longer. For operators.
pub fn trace(server: Uid, on: bool) -> Result<()> {
    Ok(Client { server }.trace(on)?)
}

/// A record, by its number ([`sys::abi::call::thread_op::READ_TRACE`]); `None` if it is not there (any more).
pub fn record(server: Uid, number: u64) -> Result<Option<[u64; 4]>> {
    Ok(found(Client { server }.record(number))?
        .map(|(time, thread, first, second)| [time, thread, first, second]))
}

/// How many calls or returns through doors recorded threads made, by size ([`sys::abi::call::DOOR_SIZES`]); `row` is an index in
/// [`sys::abi::call::DOOR_ROWS`]. Of one task, or of all if it is nil; `None` if it is not there (any more).
pub fn doors(server: Uid, task: TaskId, row: usize) -> Result<Option<[u32; DOOR_SIZES.len() + 1]>> {
    found(Client { server }.doors(task.0, row as u64))
}

/// Status for a client when a look-up failed with this error of the kernel.
pub fn status_of(error: Error) -> Status {
    match error {
        Error::NoMemory | Error::Limit => Status::Exhausted,
        Error::NoSuch => Status::NotFound,
        Error::Denied => Status::Denied,
        _ => Status::BadRequest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn crashes_say_what_they_are() {
        let text = |cause| format!("{}", Crash { cause, ip: 0x1000, address: 0x20 });
        assert_eq!(text(Cause::Exception(0)), "division error (vector 0) at ip 0x1000");
        assert_eq!(
            text(Cause::Exception(257)),
            "unresolved page fault (vector 257) at ip 0x1000, address 0x20"
        );
        assert_eq!(text(Cause::StackOverflow(1)), "stack overflow of thread 1, at ip 0x1000, address 0x20");
        let limit = |bytes| format!("{}", Cause::OutOfMemory(Shortage::Limit(bytes)));
        assert_eq!(limit(64 << 20), "out of memory: limit 64 MiB");
        assert_eq!(limit(12 << 10), "out of memory: limit 12 KiB");
    }

    /// Every end survives the way through a message.
    #[test]
    fn ends_travel() {
        let crash = |cause| End::Crashed(Crash { cause, ip: 1, address: 2 });
        for end in [
            End::Exited(-1),
            End::Killed,
            crash(Cause::Exception(13)),
            crash(Cause::StackOverflow(3)),
            crash(Cause::OutOfMemory(Shortage::Limit(1 << 20))),
            crash(Cause::OutOfMemory(Shortage::Machine)),
            crash(Cause::OutOfMemory(Shortage::Kernel)),
        ] {
            let Answer::Wait(ending, status, ip, address, ..) =
                ended(Some(Outcome { end, cpu_ns: 0, faults: 0 }))
            else {
                panic!("another answer");
            };
            assert_eq!(end_of(ending, status, ip, address), Some(end));
        }
    }
}
