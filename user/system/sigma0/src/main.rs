//! σ0: the first task. It owns all memory, ports and interrupts, starts `root`, and is the gate to the machine.
//!
//! It answers `root` alone (and pages it); everybody else gets memory and devices from those below. Its addresses are
//! physical addresses, so what it hands out needs no bookkeeping but a list of free memory.
//!
//! Reading order: `main`, [`server`], [`machine`].

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod machine;
mod server;

use alloc::collections::BTreeMap;
use rt::boot::{Boot, Memory};
use rt::frames::Pool;
use rt::image::Image;
use rt::layout;
use rt::pager::{Archive, Space};
use rt::sys::abi::archive;
use rt::sys::abi::call::PRIORITIES;
use rt::sys::{self, TaskId};
use rt::thread::{First, start_first};
use server::Server;

rt::entry!(main);

/// Name of the program to start.
const ROOT: &str = "root";

/// The highest priority there is; σ0 runs on it.
const PRIORITY_MAX: u8 = (PRIORITIES - 1) as u8;

/// Log2 of the pieces of free memory that are set apart for `root`'s own pages.
const CHUNK_LOG2: u32 = 16;

/// Of all memory `root` keeps such a part of the books that a memory manager does: it knows programs, not pages.
const BOOKS_OF_ROOT: u64 = 8;

/// Kernel memory that σ0 keeps for itself, in frames: for its own tables and threads, and for each 2 MiB of memory
/// that it hands on (page table, its shadow, mapping nodes).
const FRAMES_KEPT: u64 = 64;
const FRAMES_PER_2_MIB: u64 = 11;

fn main() -> i32 {
    machine::install_hooks();
    let Some(boot) = rt::boot::take() else { machine::stop("no boot information") };
    machine::use_serial(boot.info.serial);
    let mut server = match start_root(boot) {
        Ok(server) => server,
        Err(reason) => machine::stop(reason),
    };
    rt::server::serve(|message| server.handle(message))
}

/// Makes the task `root` and lets it run; all that it needs comes by its faults and requests.
fn start_root(boot: Boot) -> Result<Server, &'static str> {
    let Boot { info, archive, memory } = boot;
    let file = find(archive, ROOT)?;
    let image = Image::parse(file).map_err(|_| "the program root is no program for this machine")?;
    let entry = image.entry();
    let mut space = Space::new(image, u64::MAX);
    // The low 30 bits stay, so that pages of any size fit.
    let shown = Archive { bytes: archive, address: layout::ARCHIVE + (info.archive & ((1 << 30) - 1)) };
    space.show(shown);
    let line = &info.command_line[..(info.command_line_len as usize).min(info.command_line.len())];
    let task = create_task(&memory).map_err(|_| "no kernel memory for the task root")?;
    let total = memory.total;
    let (mut pool, lent) = (Pool::new(memory, CHUNK_LOG2), BTreeMap::new());
    // Reserve of `root` when all memory is handed out: all of its program, and books about those who have it.
    if !pool.book(total / BOOKS_OF_ROOT) {
        return Err("there is no memory for root");
    }
    let server = Server { info, line, task, shown, space, pool, lent, total };
    let me = sys::myself();
    let priority = PRIORITY_MAX - 1;
    let first = First { priority, pager: me, handler: me, entry, argument: line.len() as u64 };
    start_first(task, first).map_err(|_| "no kernel memory for the thread of root")?;
    Ok(server)
}

fn find(archive: &'static [u8], name: &str) -> Result<&'static [u8], &'static str> {
    if archive.is_empty() {
        return Err("there is no boot archive");
    }
    for file in archive::files(archive) {
        match file {
            Ok(file) if file.name == name => return Ok(file.data),
            Ok(_) => {}
            Err(_) => return Err("the boot archive is damaged"),
        }
    }
    Err("the boot archive holds no program root")
}

fn create_task(memory: &Memory) -> sys::Result<TaskId> {
    let own = sys::task_info(TaskId::NIL)?;
    let kept = own.used + FRAMES_KEPT + (memory.total >> 21) * FRAMES_PER_2_MIB;
    sys::task_create(own.quota.saturating_sub(kept), PRIORITY_MAX)
}
