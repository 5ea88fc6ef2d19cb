//! Programs: what a program says to whoever started it, and how programs are started, watched and ended.
//!
//! Served by `root` to all programs; σ0 serves [`Request::Arguments`] and [`Request::Exit`] to `root`. A program finds
//! the server in its identity: it is the exception handler of the first thread.

use crate::wire::{self, Failure, Name, Reply, Result, Status, Text, interface::PROCESS};
use sys::{Error, Message, TaskId, Uid};

const ARGUMENTS: u32 = 0;
const EXIT: u32 = 1;
const STAGE: u32 = 2;
const START: u32 = 3;
const WAIT: u32 = 4;
const KILL: u32 = 5;
const TASKS: u32 = 6;
const THREADS: u32 = 7;
const MEMORY: u32 = 8;
const TRACE: u32 = 9;
const RECORD: u32 = 10;

/// Longest argument text of a program, in bytes.
pub const ARGUMENTS_LEN_MAX: usize = 1024;

/// Copies the caller's arguments into `buffer`; returns their length, which may be larger than the buffer.
pub fn arguments(server: Uid, buffer: &mut [u8]) -> Result<usize> {
    let mut at = 0;
    loop {
        let answer = wire::call(server, wire::label(PROCESS, ARGUMENTS), &[at as u64])?;
        let (total, text) = Text::from_words(&answer.words).ok_or(Failure::Garbled)?;
        let bytes = text.as_bytes();
        let len = bytes.len().min(buffer.len() - at);
        buffer[at..at + len].copy_from_slice(&bytes[..len]);
        at += len;
        if len == 0 || at == buffer.len() || at >= total as usize {
            return Ok(total as usize);
        }
    }
}

/// Ends the caller's task. Returns only if the server is gone.
pub fn exit(server: Uid, status: i32) -> Failure {
    match wire::call(server, wire::label(PROCESS, EXIT), &[status as u64]) {
        Ok(_) => Failure::Garbled,
        Err(failure) => failure,
    }
}

/// Starts a program from the boot archive with arguments.
pub fn start(server: Uid, name: &Name, arguments: &str) -> Result<TaskId> {
    if arguments.len() > ARGUMENTS_LEN_MAX {
        return Err(Failure::Refused(Status::BadRequest));
    }
    let mut rest = arguments.as_bytes();
    let mut offset = 0;
    while !rest.is_empty() {
        let (text, later) = Text::take(rest);
        wire::call(server, wire::label(PROCESS, STAGE), &text.words(offset))?;
        offset += text.as_bytes().len() as u32;
        rest = later;
    }
    let [low, high] = name.words();
    let answer = wire::call(server, wire::label(PROCESS, START), &[low, high, arguments.len() as u64])?;
    Ok(TaskId(answer.words[0]))
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By itself, with a status.
    Exited(i32),
    /// By an exception.
    Crashed(Crash),
    /// Somebody ended it.
    Killed,
}

/// An exception that ended a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Processor vector, or one of [`sys::abi::call::vector`].
    pub vector: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Faulting address, for page faults.
    pub address: u64,
}

impl core::fmt::Display for Crash {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "{} (vector {}) at ip {:#x}", vector_name(self.vector), self.vector, self.ip)?;
        match self.vector {
            14 | sys::abi::call::vector::UNRESOLVED_FAULT => write!(f, ", address {:#x}", self.address),
            _ => Ok(()),
        }
    }
}

/// What an exception vector means, in a few words.
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
    let words = wire::call(server, wire::label(PROCESS, WAIT), &[task.0, patience_ms])?.words;
    let [kind, first, ip, address, cpu_ns, faults, ..] = words;
    let end = match kind {
        0 => return Ok(None),
        1 => End::Exited(first as i32),
        2 => End::Crashed(Crash { vector: first, ip, address }),
        3 => End::Killed,
        _ => return Err(Failure::Garbled),
    };
    Ok(Some(Outcome { end, cpu_ns, faults }))
}

/// Ends a program.
pub fn kill(server: Uid, task: TaskId) -> Result<()> {
    wire::call(server, wire::label(PROCESS, KILL), &[task.0]).map(drop)
}

/// A line of the list of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskEntry {
    /// Which.
    pub task: TaskId,
    /// Its program.
    pub name: Name,
    /// Kernel memory that it may use, in frames.
    pub quota: u64,
    /// Kernel memory that it uses, in frames.
    pub used: u64,
    /// Pages mapped.
    pub pages: u64,
    /// Threads.
    pub threads: u64,
    /// Page faults so far.
    pub faults: u64,
    /// Highest priority of its threads.
    pub priority_max: u8,
}

/// The task at a place of the list; `None` behind its end.
pub fn task_at(server: Uid, index: u64) -> Result<Option<TaskEntry>> {
    let answer = match wire::call(server, wire::label(PROCESS, TASKS), &[index]) {
        Err(Failure::Refused(Status::NotFound)) => return Ok(None),
        answer => answer?,
    };
    let [task, low, high, memory, pages, faults, priority_max, _] = answer.words;
    let name = Name::from_words([low, high]).ok_or(Failure::Garbled)?;
    Ok(Some(TaskEntry {
        task: TaskId(task),
        name,
        quota: memory >> 32,
        used: memory & 0xffff_ffff,
        pages: pages >> 32,
        threads: pages & 0xffff_ffff,
        faults,
        priority_max: priority_max as u8,
    }))
}

/// A line of the list of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadEntry {
    /// Which.
    pub uid: Uid,
    /// Index into [`sys::abi::call::thread_op::STATES`].
    pub state: u8,
    /// Its own priority.
    pub priority: u8,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Page faults so far.
    pub faults: u64,
}

/// The thread after `previous` (nil: the first) of a task; `None` behind the last.
pub fn thread_after(server: Uid, task: TaskId, previous: Uid) -> Result<Option<ThreadEntry>> {
    let answer = match wire::call(server, wire::label(PROCESS, THREADS), &[task.0, previous.0]) {
        Err(Failure::Refused(Status::NotFound)) => return Ok(None),
        answer => answer?,
    };
    let [uid, state, cpu_ns, ip, faults, ..] = answer.words;
    Ok(Some(ThreadEntry {
        uid: Uid(uid),
        state: state as u8,
        priority: (state >> 8) as u8,
        cpu_ns,
        ip,
        faults,
    }))
}

/// Memory of the whole system.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryEntry {
    /// Memory that σ0 had at the start, and what it has left, in bytes.
    pub machine: crate::memory::Statistics,
    /// Memory that the memory manager has, and what of it is free, in bytes.
    pub manager: crate::memory::Statistics,
    /// Kernel memory of `root` and everything below it, and what of it is unused by `root` itself, in frames.
    pub kernel: crate::memory::Statistics,
}

/// Asks for [`MemoryEntry`].
pub fn memory(server: Uid) -> Result<MemoryEntry> {
    let [a, b, c, d, e, f, ..] = wire::call(server, wire::label(PROCESS, MEMORY), &[])?.words;
    let pair = |total, free| crate::memory::Statistics { total, free };
    Ok(MemoryEntry { machine: pair(a, b), manager: pair(c, d), kernel: pair(e, f) })
}

/// Records what all threads of programs and of `root` do, or no longer. For operators.
pub fn trace(server: Uid, on: bool) -> Result<()> {
    wire::call(server, wire::label(PROCESS, TRACE), &[on as u64]).map(drop)
}

/// A record, by its number ([`sys::abi::call::thread_op::READ_TRACE`]); `None` if it is not there (any more).
pub fn record(server: Uid, number: u64) -> Result<Option<[u64; 4]>> {
    match wire::call(server, wire::label(PROCESS, RECORD), &[number]) {
        Err(Failure::Refused(Status::NotFound)) => Ok(None),
        answer => answer.map(|Message { words: [a, b, c, d, ..], .. }| Some([a, b, c, d])),
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// The sender's arguments from this byte on.
    Arguments {
        /// Offset in bytes.
        from: usize,
    },
    /// End the sender's task.
    Exit(i32),
    /// Keep a piece of the arguments for the next [`Request::Start`].
    Stage {
        /// Where it belongs. 0 starts anew.
        offset: usize,
        /// The piece.
        text: Text,
    },
    /// Start a program.
    Start {
        /// Its name in the archive.
        name: Name,
        /// How much of the staged arguments it gets: all of it, or 0.
        arguments_len: usize,
    },
    /// Tell how a program ended.
    Wait {
        /// Which.
        task: TaskId,
        /// How long to wait for that.
        patience_ms: u64,
    },
    /// End a program.
    Kill(TaskId),
    /// A line of the list of tasks.
    TaskAt(u64),
    /// A line of the list of threads.
    ThreadAfter(TaskId, Uid),
    /// Memory of the system.
    Memory,
    /// Record what threads do, or no longer.
    Trace(bool),
    /// A record.
    Record(u64),
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        let words = &message.words;
        let bounded = |word: u64| {
            if word <= ARGUMENTS_LEN_MAX as u64 { Ok(word as usize) } else { Err(Status::BadRequest) }
        };
        Ok(match wire::operation_of(message) {
            ARGUMENTS => Request::Arguments { from: bounded(words[0])? },
            EXIT => Request::Exit(words[0] as i32),
            STAGE => {
                let (offset, text) = Text::from_words(words).ok_or(Status::BadRequest)?;
                bounded(offset as u64 + text.as_bytes().len() as u64)?;
                Request::Stage { offset: offset as usize, text }
            }
            START => Request::Start {
                name: Name::from_words([words[0], words[1]]).ok_or(Status::NotFound)?,
                arguments_len: bounded(words[2])?,
            },
            WAIT => Request::Wait { task: TaskId(words[0]), patience_ms: words[1] },
            KILL => Request::Kill(TaskId(words[0])),
            TASKS => Request::TaskAt(words[0]),
            THREADS => Request::ThreadAfter(TaskId(words[0]), Uid(words[1])),
            MEMORY => Request::Memory,
            TRACE => Request::Trace(words[0] != 0),
            RECORD => Request::Record(words[0]),
            _ => return Err(Status::BadRequest),
        })
    }
}

/// Successful answers that are more than a status.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// To [`Request::Arguments`].
    Arguments {
        /// The whole text.
        all: &'a [u8],
        /// Where the client wants to go on.
        from: usize,
    },
    /// To [`Request::Start`].
    Started(TaskId),
    /// To [`Request::Wait`]: still running.
    Running,
    /// To [`Request::Wait`].
    Ended(Outcome),
    /// To [`Request::TaskAt`].
    Task(TaskEntry),
    /// To [`Request::ThreadAfter`].
    Thread(ThreadEntry),
    /// To [`Request::Memory`].
    Memory(MemoryEntry),
    /// To [`Request::Record`].
    Record([u64; 4]),
}

impl From<Answer<'_>> for Reply {
    fn from(answer: Answer) -> Reply {
        match answer {
            Answer::Arguments { all, from } => {
                let (text, _) = Text::take(all.get(from..).unwrap_or_default());
                Reply::words(&text.words(all.len() as u32))
            }
            Answer::Started(task) => Reply::words(&[task.0]),
            Answer::Running => Reply::words(&[0]),
            Answer::Ended(Outcome { end, cpu_ns, faults }) => {
                let [kind, first, ip, address] = match end {
                    End::Exited(status) => [1, status as u64, 0, 0],
                    End::Crashed(Crash { vector, ip, address }) => [2, vector, ip, address],
                    End::Killed => [3, 0, 0, 0],
                };
                Reply::words(&[kind, first, ip, address, cpu_ns, faults])
            }
            Answer::Task(entry) => {
                let [low, high] = entry.name.words();
                let memory = entry.quota << 32 | entry.used & 0xffff_ffff;
                let pages = entry.pages << 32 | entry.threads & 0xffff_ffff;
                Reply::words(&[
                    entry.task.0,
                    low,
                    high,
                    memory,
                    pages,
                    entry.faults,
                    entry.priority_max as u64,
                ])
            }
            Answer::Thread(entry) => {
                let state = entry.state as u64 | (entry.priority as u64) << 8;
                Reply::words(&[entry.uid.0, state, entry.cpu_ns, entry.ip, entry.faults])
            }
            Answer::Record(record) => Reply::words(&record),
            Answer::Memory(MemoryEntry { machine, manager, kernel }) => Reply::words(&[
                machine.total,
                machine.free,
                manager.total,
                manager.free,
                kernel.total,
                kernel.free,
            ]),
        }
    }
}

/// What the kernel's answer to a failed look-up means to a client.
pub fn status_of(error: Error) -> Status {
    match error {
        Error::NoMemory | Error::Limit => Status::Exhausted,
        Error::NoSuch => Status::NotFound,
        Error::Denied => Status::Denied,
        _ => Status::BadRequest,
    }
}
