//! Local ipc: a client and a server in one task, and what the server's taking part costs clients elsewhere.

use crate::{ARGUMENTS, Arguments, Chief, Entry, Failure, Result, bench_client_to_local};
use ::local::Local;
use core::ptr::addr_of;
use sys::{Kind, TaskId};

unsafe extern "C" {
    fn bench_local_client(arguments: *const Arguments, block: u64);
    fn bench_local_server();
    fn bench_local_own_server();
    fn bench_local_own_client(arguments: *const Arguments, block: u64);
}

/// The server's block.
#[unsafe(no_mangle)]
static mut bench_local_block: u64 = 0;

const STACK: usize = 8192;

/// Stacks of client and server.
#[repr(C, align(4096))]
struct Stacks([[u8; STACK]; 2]);

static mut STACKS: Stacks = Stacks([[0; STACK]; 2]);

fn stack(index: usize) -> u64 {
    // The stack pointer is that after a call: the stack is aligned to 16 bytes before it.
    addr_of!(STACKS) as u64 + ((index + 1) * STACK) as u64 - 8
}

fn take_part() -> Local {
    match Local::new() {
        Some(local) => local,
        None => panic!("two threads of the benchmark have the same place"),
    }
}

unsafe extern "C" fn serve() {
    let local = take_part();
    // SAFETY: the client starts later.
    unsafe {
        bench_local_block = local.block();
        bench_local_server();
    }
}

unsafe extern "C" fn serve_as_itself() {
    let local = take_part();
    // SAFETY: the client starts later.
    unsafe {
        bench_local_block = local.block();
        bench_local_own_server();
    }
}

unsafe extern "C" fn call() {
    let local = take_part();
    // SAFETY: the loop gets what it wants in `rdi` and `rsi`, and never returns.
    unsafe { bench_local_client(addr_of!(ARGUMENTS), local.block()) };
}

unsafe extern "C" fn call_to_own() {
    let local = take_part();
    // SAFETY: as above.
    unsafe { bench_local_own_client(addr_of!(ARGUMENTS), local.block()) };
}

/// All rows.
pub fn rows(chief: &Chief, near: TaskId, far: TaskId) -> Result<()> {
    row(chief, near, near, serve, call)?;
    row(chief, near, near, serve_as_itself, call_to_own)?;
    row(chief, far, near, serve, bench_client_to_local)
}

fn row(chief: &Chief, client_task: TaskId, server_task: TaskId, server: Entry, client: Entry) -> Result<()> {
    let server = chief.start_on(server_task, server, stack(0))?;
    chief.settle(server)?;
    // SAFETY: no client runs now.
    unsafe { ARGUMENTS.server = server.0 };
    let client = chief.start_on(client_task, client, stack(1))?;
    let report = chief.serve()?;
    sys::thread_destroy(client)?;
    sys::thread_destroy(server)?;
    let [rax, rdx, words @ ..] = report.words;
    if Kind::from_eax(rax as u32) != Some(Kind::Reply) || rdx != server.0 {
        return Err(Failure::Report(rax, rdx));
    }
    if words != [0x1002, 0x1003, 0x1004, 0x1005, 0x1006, 0x1007] {
        return Err(Failure::Unexpected(report));
    }
    Ok(())
}
