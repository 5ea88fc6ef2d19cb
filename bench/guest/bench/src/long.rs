//! Long messages: direct words both ways, and strings one way.
//!
//! Both blocks, and the strings, lie in this program's memory, which both tasks share: only the addresses count.

use crate::{ARGUMENTS, Chief, Entry, Failure, ITERATIONS, Result, bench_server};
use core::ptr::{addr_of, addr_of_mut};
use sys::{Dope, Error, Kind, Rights, StringPart, TaskId, Timeout, Uid};

unsafe extern "C" {
    fn bench_client_w16();
    fn bench_client_w63();
    fn bench_client_w120();
    fn bench_long_server();
    fn bench_client_block_64();
    fn bench_client_block_256();
    fn bench_client_block_1024();
    fn bench_client_block_4096();
    fn bench_string_server();
    fn bench_client_string_64();
    fn bench_client_string_256();
    fn bench_client_string_1024();
    fn bench_client_string_4096();
    fn bench_client_string_64k();
    fn bench_client_string_1m();
    fn bench_client_string_scattered();
    fn bench_client_string_apart();
}

const LONGEST: usize = 1 << 20;
const PIECES: usize = 16;
const PIECE: usize = 256;

/// Distance from one piece to the next where each is on a page of its own.
const APART: usize = 3 * 4096 + 64;

/// Memory that is sent, or in which a message arrives.
#[repr(C, align(4096))]
struct Side {
    block: [u64; 512],
    bytes: [u8; LONGEST],
}

static mut FROM: Side = Side { block: [0; 512], bytes: [0; LONGEST] };
static mut TO: Side = Side { block: [0; 512], bytes: [0; LONGEST] };

/// Direct words each way, with the reply as long as the call.
fn both_ways(chief: &Chief, near: TaskId, far: TaskId, client: Entry, words: u64) -> Result<()> {
    let server = begin(chief, far, bench_long_server, Dope::room(words, 0, 0))?;
    let report = run(chief, near, client, server, Dope::used(words, 0, 0), Dope::room(words, 0, 0))?;
    if report != Kind::Reply as u32 & !sys::abi::call::NO_BLOCK {
        return Err(Failure::Report(report as u64, 0));
    }
    finish(server, words as usize * 8, 0)
}

/// One message to the server, a short reply.
fn one_way(
    chief: &Chief,
    (near, far): (TaskId, TaskId),
    (client, server): (Entry, Entry),
    used: Dope,
    (piece, apart): (usize, usize),
) -> Result<()> {
    let room = Dope::room(used.words(), used.strings(), 0);
    let server = begin(chief, far, server, room)?;
    describe(used.strings() as usize, piece, apart);
    let report = run(chief, near, client, server, used, Dope::NONE)?;
    if report != Kind::Reply as u32 {
        return Err(Failure::Report(report as u64, 0));
    }
    finish(server, used.words() as usize * 8, 0)?;
    // SAFETY: nobody else uses the two sides now.
    let (from, to) = unsafe { (&*addr_of!(FROM), &*addr_of!(TO)) };
    let is_there = |at: usize| from.bytes[at..at + piece] == to.bytes[at..at + piece];
    let all = (0..used.strings() as usize).all(|i| is_there(i * apart));
    if all { Ok(()) } else { Err(Failure::Call(Error::Overflow)) }
}

/// A server that waits, with room for a message. Its memory and the client's are there, and differ.
fn begin(chief: &Chief, task: TaskId, entry: Entry, room: Dope) -> Result<Uid> {
    // SAFETY: nobody else uses the two sides now.
    unsafe {
        let (from, to) = (&mut *addr_of_mut!(FROM), &mut *addr_of_mut!(TO));
        from.bytes.iter_mut().zip(0u8..).for_each(|(byte, i)| *byte = i.wrapping_mul(7));
        from.block.iter_mut().zip(1u64..).for_each(|(word, i)| *word = i);
        to.bytes.fill(0);
        to.block.fill(0);
    }
    let server = sys::thread_create(task, chief.priority, chief.uid, Uid::NIL)?;
    // SAFETY: only the address is taken.
    sys::thread_set_block(server, unsafe { addr_of!(TO.block) } as u64, room, Timeout::NEVER)?;
    chief.begin(server, entry)?;
    chief.settle(server)?;
    Ok(server)
}

/// Runs the client to its end. Returns the last `eax` that it got.
fn run(chief: &Chief, task: TaskId, client: Entry, server: Uid, used: Dope, room: Dope) -> Result<u32> {
    // SAFETY: no client runs now, and only the address of the block is taken.
    let block = unsafe {
        ARGUMENTS.server = server.0;
        ARGUMENTS.block = addr_of!(FROM.block) as u64;
        ARGUMENTS.dope = used.0;
        addr_of!(FROM.block) as u64
    };
    let client_thread = sys::thread_create(task, chief.priority, chief.uid, Uid::NIL)?;
    sys::thread_set_block(client_thread, block, room, Timeout::NEVER)?;
    chief.begin(client_thread, client)?;
    let report = chief.serve()?;
    sys::thread_destroy(client_thread)?;
    Ok(report.words[0] as u32)
}

/// The server ends; what it received must be what was sent.
fn finish(server: Uid, block_len: usize, string_len: usize) -> Result<()> {
    sys::thread_destroy(server)?;
    // SAFETY: nobody else uses the two sides now.
    let (from, to) = unsafe { (&*addr_of!(FROM), &*addr_of!(TO)) };
    let words = block_len / 8;
    let same = from.block[..words] == to.block[..words] && from.bytes[..string_len] == to.bytes[..string_len];
    if same { Ok(()) } else { Err(Failure::Call(Error::Overflow)) }
}

/// Describes `pieces` strings of `len` bytes in `FROM` and in `TO`, one every `apart` bytes.
fn describe(pieces: usize, len: usize, apart: usize) {
    // SAFETY: nobody else uses the two sides now.
    let (from, to) = unsafe { (&mut *addr_of_mut!(FROM), &mut *addr_of_mut!(TO)) };
    let (source, target) = (from.bytes.as_ptr() as u64, to.bytes.as_ptr() as u64);
    for piece in 0..pieces {
        let offset = (piece * apart) as u64;
        let send = StringPart::send(source + offset, len as u32);
        let room = StringPart::room(target + offset, len as u32);
        from.block[2 * piece..][..2].copy_from_slice(&[send.address, send.sizes()]);
        to.block[2 * piece..][..2].copy_from_slice(&[room.address, room.sizes()]);
    }
}

/// Makes the pages of both sides present in both tasks before anything is counted.
fn touch_all() {
    for side in [addr_of_mut!(FROM), addr_of_mut!(TO)] {
        for page in (side as u64..side as u64 + size_of::<Side>() as u64).step_by(4096) {
            crate::touch(page, Rights::RW);
        }
    }
}

/// All rows of long messages.
pub fn rows(chief: &Chief, near: TaskId, far: TaskId) -> Result<()> {
    const { assert!(ITERATIONS > 20 && PIECES * APART <= LONGEST) };
    touch_all();
    both_ways(chief, near, far, bench_client_w16, 8)?;
    both_ways(chief, near, far, bench_client_w63, 55)?;
    both_ways(chief, near, far, bench_client_w120, 112)?;
    let tasks = (near, far);
    let direct: [(Entry, u64); 4] = [
        (bench_client_block_64, 8),
        (bench_client_block_256, 32),
        (bench_client_block_1024, 128),
        (bench_client_block_4096, 512),
    ];
    for (client, words) in direct {
        one_way(chief, tasks, (client, bench_server), Dope::used(words, 0, 0), (0, 0))?;
    }
    let strings: [(Entry, Entry, usize, (usize, usize)); 8] = [
        (bench_client_string_64k, bench_server, 1, (64 << 10, 0)),
        (bench_client_string_1m, bench_server, 1, (LONGEST, 0)),
        (bench_client_string_scattered, bench_server, PIECES, (PIECE, PIECE)),
        (bench_client_string_apart, bench_server, PIECES, (PIECE, APART)),
        (bench_client_string_64, bench_string_server, 1, (64, 0)),
        (bench_client_string_256, bench_string_server, 1, (256, 0)),
        (bench_client_string_1024, bench_string_server, 1, (1024, 0)),
        (bench_client_string_4096, bench_string_server, 1, (4096, 0)),
    ];
    for (client, server, pieces, places) in strings {
        one_way(chief, tasks, (client, server), Dope::used(0, pieces as u64, 0), places)?;
    }
    Ok(())
}
