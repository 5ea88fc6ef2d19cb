//! `file-test stranger`: a program that is no client of a disk's driver and of a file system's server. `root` does not tell it where they are, so it looks for them
//! in the list of all threads, as a hostile program would.

use crate::check;
use crate::handles::each_thread;
use files::Directory;
use rt::api::stub::{Failure as Fault, Within};
use rt::api::{Failure, Result, Status, block, desk, names, process};
use rt::door::Room;
use rt::home;
use rt::sys::{self, Uid};

/// Kernel memory of a task that does nothing, in frames.
const QUOTA: u64 = 16;

/// Patience with a thread that may take no messages, in µs.
const PATIENCE_US: u64 = 50_000;

/// Asks for what is not its.
pub fn all() -> Result<()> {
    for name in ["ram", "disk", block::NAME] {
        let name = rt::api::Name::new(name).ok_or(Failure::Garbled)?;
        check(names::resolve(home(), &name) == Err(Failure::Refused(Status::Denied)), "a name is told")?;
    }
    check(Directory::of("ram").err() == Some(Failure::Refused(Status::Denied)), "a directory is handed out")?;
    let refused = refusals("ramfs", |thread| {
        let room = Room::new().map_err(Fault::Kernel)?;
        desk::Client { server: Within::us(thread, PATIENCE_US) }.door(room.window()).map(drop)
    })?;
    check(refused == 1, "the server of a file system does not refuse")?;
    let info = |thread| block::Client { server: Within::us(thread, PATIENCE_US) }.info().map(drop);
    check(refusals("virtio-block", info)? == 1, "the driver of the disk does not refuse")
}

/// `file-test child`, where the description says that this program alone is a client of what it serves: a task that it has made is none, and no client of its own either.
pub fn child() -> Result<()> {
    let task = sys::task_create(QUOTA, 1).map_err(Failure::Kernel)?;
    let thread = sys::thread_create(task, 1, Uid::NIL, Uid::NIL).map_err(Failure::Kernel)?;
    check(process::is_client(home(), sys::myself())?, "the program is no client")?;
    check(!process::is_client(home(), thread)?, "a task that it has made is a client")?;
    check(process::task_of(home(), thread) == Err(Failure::Refused(Status::NotFound)), "it has a number")
}

/// Asks each thread of a program; says how many refuse, and fails if one does not.
fn refusals(program: &str, ask: impl Fn(Uid) -> core::result::Result<(), Fault>) -> Result<usize> {
    let mut refused = 0;
    each_thread(program, |thread| match ask(thread) {
        Ok(()) => check(false, "a stranger has what he asked for"),
        Err(fault) => {
            refused += usize::from(fault == Fault::Refused(Status::Denied as u32));
            Ok(())
        }
    })?;
    Ok(refused)
}
