//! Memory: blocks of frames, devices, and the spaces that a memory manager pages.
//!
//! The interface of a memory manager to its clients *and* to the manager above it, so that managers stack: σ0
//! serves it to `root`, a thread of `root` serves it to `mm`, and `mm` pages everybody else with it.

use crate::stubs::System::Memory::Client;
use crate::wire::{Failure, Result, Status};
use sys::{Fpage, Rights, TaskId, Uid};

pub use crate::stubs::System::Memory::{Answer, NUMBER, Request};
pub use crate::stubs::System::{MemoryUse, Refusal};

/// Gets `1 << log2` bytes of contiguous memory into a window of exactly that size, and their physical address.
pub fn pages(server: Uid, window: Fpage) -> Result<u64> {
    let (physical, block) = Client { server }.pages(window, window.log2() as u8)?;
    if block.log2() == window.log2() { Ok(physical) } else { Err(Failure::Refused(Status::Exhausted)) }
}

/// Gives back a block that [`pages`] got, by its physical address, wherever it is mapped now: everybody loses it.
pub fn give_back(server: Uid, physical: u64, log2: u32) -> Result<()> {
    Ok(Client { server }.give_back(physical, log2 as u8)?)
}

/// Address and size of the boot archive in the caller's space, which its pager fills on demand.
pub fn archive(server: Uid) -> Result<(u64, u64)> {
    Ok(Client { server }.archive()?)
}

/// Lets a task read the boot archive; gives back its address there, and its size. For whoever registers tasks.
pub fn show_archive(server: Uid, task: TaskId) -> Result<(u64, u64)> {
    Ok(Client { server }.show_archive(task.0)?)
}

/// Gives pages of a task, from now on, frames of their colours: page n one whose number is n modulo `colours`, a power of two. For whoever registers tasks.
pub fn colour(server: Uid, task: TaskId, colours: u64) -> Result<()> {
    Ok(Client { server }.colour(task.0, colours)?)
}

/// Gets device memory, ports or an interrupt into `window`.
pub fn resource(server: Uid, wanted: Fpage, window: Fpage) -> Result<()> {
    Client { server }.resource(window, wanted.0)?;
    Ok(())
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
    Ok(Client { server }.register(task.0, file.offset, file.len, pages_max)?)
}

/// Takes a task's memory back. Call it when the task has ended.
pub fn release(server: Uid, task: TaskId) -> Result<()> {
    Ok(Client { server }.release(task.0)?)
}

/// Asks a manager how much memory it has.
pub fn statistics(server: Uid) -> Result<MemoryUse> {
    Ok(Client { server }.statistics()?)
}

/// Why the last page that was refused to a task was, and how many pages the task may have. For whoever registers tasks.
pub fn why_refused(server: Uid, task: TaskId) -> Result<(Refusal, u64)> {
    Ok(Client { server }.why_refused(task.0)?)
}

/// Copies what a task has in memory from an address on, as far as there is something. For whoever registers tasks.
pub fn look(server: Uid, task: TaskId, address: u64, to: &mut [u8]) -> Result<usize> {
    let mut len = 0;
    while len < to.len() {
        let bytes = Client { server }.look(task.0, address + len as u64)?;
        let room = &mut to[len..];
        let more = bytes.len().min(room.len());
        if more == 0 {
            break;
        }
        room[..more].copy_from_slice(&bytes[..more]);
        len += more;
    }
    Ok(len)
}

/// Log2 of the size of a block in a [`Request`], in bytes: 12 to 30.
pub fn block_log2(log2: u8) -> core::result::Result<u32, Status> {
    if (12..=30).contains(&log2) { Ok(log2.into()) } else { Err(Status::BadRequest) }
}

/// Resource that a [`Request::Resource`] wants: a flexpage, without rights beyond read and write.
pub fn wanted(fpage: u64) -> core::result::Result<Fpage, Status> {
    let wanted = Fpage(fpage).with_rights(Rights::RW);
    if wanted.is_valid() { Ok(wanted) } else { Err(Status::BadRequest) }
}
