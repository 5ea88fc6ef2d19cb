//! The memory manager: pages every program that `root` starts, on demand and within its limit.
//!
//! The work is done in [`rt::pager`]. This server has frames and the archive from the pager above it, a thread of
//! `root`, and takes orders from `root`'s main thread. It calls nobody else: not even the console, whose pages
//! it provides.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::frames::{Pool, Upstream};
use rt::pager::{Manager, archive};
use rt::start::Hooks;

rt::entry!(main);

/// Log2 of the memory that it asks for at a time: often enough for a program. What it gets goes on page by page and is taken
/// back so, which is quicker out of small pages than out of a large one; hence less than that.
const CHUNK_LOG2: u32 = 20;

/// How long a line of output may take, in µs.
const PATIENCE_US: u64 = 100_000;

static HOOKS: Hooks = Hooks { write, exit };

fn main() -> i32 {
    rt::set_hooks(&HOOKS);
    let upstream = rt::own_pager();
    let Ok(archive) = archive(upstream) else { return 1 };
    let pool = Pool::new(Upstream(upstream), CHUNK_LOG2);
    let mut manager = Manager::new(rt::home(), false, archive, pool);
    rt::server::serve(|message| Some(manager.answer(message)))
}

/// The pager above passes it on to the serial port.
fn write(bytes: &[u8]) {
    // Output is best effort: a manager that cannot complain still manages.
    let _ = rt::api::console::write_within(rt::own_pager(), bytes, PATIENCE_US);
}

fn exit(status: i32) -> ! {
    rt::api::process::exit(rt::home(), status);
    loop {
        rt::time::sleep(core::time::Duration::from_secs(3600));
    }
}
