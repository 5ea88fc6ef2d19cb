//! Memory: blocks of frames, devices, and the spaces that a memory manager pages.
//!
//! The interface of a memory manager to its clients *and* to the manager above it, so that managers stack: σ0
//! serves it to `root`, a thread of `root` serves it to `mm`, and `mm` pages everybody else with it.

use crate::wire::{self, Failure, Reply, Result, Status, interface::MEMORY};
use sys::{Fpage, Message, TaskId, Uid};

const PAGES: u32 = 0;
const ARCHIVE: u32 = 1;
const RESOURCE: u32 = 2;
const REGISTER: u32 = 3;
const RELEASE: u32 = 4;
const STATISTICS: u32 = 5;
const GIVE_BACK: u32 = 6;

/// Gets `1 << log2` bytes of contiguous memory into a window of exactly that size, and their physical address.
pub fn pages(server: Uid, window: Fpage) -> Result<u64> {
    let answer = wire::call_item(server, wire::label(MEMORY, PAGES), &[window.log2() as u64], window)?;
    match answer.item() {
        Some(item) if !answer.flags.item_short() && item.log2() == window.log2() => Ok(answer.words[0]),
        _ => Err(Failure::Refused(Status::Exhausted)),
    }
}

/// Gives back a block that [`pages`] got, by its physical address, wherever it is mapped now: everybody loses it.
pub fn give_back(server: Uid, physical: u64, log2: u32) -> Result<()> {
    wire::call(server, wire::label(MEMORY, GIVE_BACK), &[physical, log2 as u64]).map(drop)
}

/// Address and size of the boot archive in the caller's space, which its pager fills on demand.
pub fn archive(server: Uid) -> Result<(u64, u64)> {
    wire::call(server, wire::label(MEMORY, ARCHIVE), &[]).map(|answer| (answer.words[0], answer.words[1]))
}

/// Gets device memory, ports or an interrupt into `window`.
pub fn resource(server: Uid, wanted: Fpage, window: Fpage) -> Result<()> {
    let answer = wire::call_item(server, wire::label(MEMORY, RESOURCE), &[wanted.0], window)?;
    match answer.item() {
        Some(_) if !answer.flags.item_short() => Ok(()),
        _ => Err(Failure::Refused(Status::Exhausted)),
    }
}

/// A program's file: where in the archive it lies.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Offset of the first byte from the start of the archive.
    pub offset: u64,
    /// Size in bytes.
    pub len: u64,
}

/// Makes the manager page a task that runs a program, with at most `pages_max` pages; returns the entry point.
pub fn register(server: Uid, task: TaskId, file: File, pages_max: u64) -> Result<u64> {
    wire::call(server, wire::label(MEMORY, REGISTER), &[task.0, file.offset, file.len, pages_max])
        .map(|answer| answer.words[0])
}

/// Takes a task's memory back. Call it when the task has ended.
pub fn release(server: Uid, task: TaskId) -> Result<()> {
    wire::call(server, wire::label(MEMORY, RELEASE), &[task.0]).map(drop)
}

/// How much memory a manager has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// All of it, in bytes.
    pub total: u64,
    /// What is not handed out, in bytes.
    pub free: u64,
}

/// Asks a manager how much memory it has.
pub fn statistics(server: Uid) -> Result<Statistics> {
    let answer = wire::call(server, wire::label(MEMORY, STATISTICS), &[])?;
    Ok(Statistics { total: answer.words[0], free: answer.words[1] })
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// A block of memory.
    Pages {
        /// Log2 of its size in bytes, 12 to 30.
        log2: u32,
    },
    /// A block of memory is not needed any more.
    GiveBack {
        /// Its physical address.
        physical: u64,
        /// Log2 of its size in bytes, 12 to 30.
        log2: u32,
    },
    /// Where the boot archive is.
    Archive,
    /// Device memory, ports or an interrupt; valid, and without rights beyond read and write.
    Resource(Fpage),
    /// Page a task.
    Register {
        /// Which.
        task: TaskId,
        /// Its program.
        file: File,
        /// Its limit.
        pages_max: u64,
    },
    /// A task has ended.
    Release(TaskId),
    /// How much memory there is.
    Statistics,
}

impl Request {
    /// Decodes a message for this interface.
    pub fn decode(message: &Message) -> core::result::Result<Request, Status> {
        let words = &message.words;
        match wire::operation_of(message) {
            PAGES if (12..=30).contains(&words[0]) => Ok(Request::Pages { log2: words[0] as u32 }),
            GIVE_BACK if (12..=30).contains(&words[1]) => {
                Ok(Request::GiveBack { physical: words[0], log2: words[1] as u32 })
            }
            ARCHIVE => Ok(Request::Archive),
            RESOURCE => {
                let wanted = Fpage(words[0]).with_rights(sys::Rights::RW);
                if wanted.is_valid() { Ok(Request::Resource(wanted)) } else { Err(Status::BadRequest) }
            }
            REGISTER => Ok(Request::Register {
                task: TaskId(words[0]),
                file: File { offset: words[1], len: words[2] },
                pages_max: words[3],
            }),
            RELEASE => Ok(Request::Release(TaskId(words[0]))),
            STATISTICS => Ok(Request::Statistics),
            _ => Err(Status::BadRequest),
        }
    }
}

/// Successful answers that are more than a status.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// To [`Request::Pages`].
    Pages {
        /// The block, in the server's addresses.
        block: Fpage,
        /// Its physical address.
        physical: u64,
    },
    /// To [`Request::Archive`].
    Archive {
        /// Address in the client's space.
        address: u64,
        /// Size in bytes.
        len: u64,
    },
    /// To [`Request::Resource`].
    Resource(Fpage),
    /// To [`Request::Register`]: the entry point.
    Registered(u64),
    /// To [`Request::Statistics`].
    Statistics(Statistics),
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Reply {
        match answer {
            Answer::Pages { block, physical } => Reply::item(&[physical], block, 0),
            Answer::Archive { address, len } => Reply::words(&[address, len]),
            Answer::Resource(fpage) => Reply::item(&[], fpage, 0),
            Answer::Registered(entry) => Reply::words(&[entry]),
            Answer::Statistics(statistics) => Reply::words(&[statistics.total, statistics.free]),
        }
    }
}
