//! The threads that serve this program's doors. There is one from the first object on; when a caller would have to wait, the
//! *keeper* makes another, up to a limit; those that had nothing to do for a while end, except one.
//!
//! Requests with a part in memory arrive in a [`Block`] that each server has, if some interface of the program needs one.
//!
//! To end an idle server is to abort its wait. It must not begin a call meanwhile, since that would abort something
//! within the call. So it is stopped first, and its instruction pointer says whether it waits for a call. Whether it had one since
//! somebody looked last, its stack says: a word that each call changes is as it was left.
#![allow(unsafe_code)]

use super::memory::give_back;
use super::reference::{close_window, open_window};
use super::{Room, porter};
use crate::sync::Mutex;
use crate::thread::{Handle, spawn};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use api::stub::door::{BLOCK_STRINGS, Block, IDLE};
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::{Dope, Error, Fpage, Result, Timeout, Uid};

/// Most servers, unless [`set_limit`] says something else. Each has a stack's slot, of which a program has 64.
const LIMIT: usize = 16;

/// Idle time after which a server is one too many, in nanoseconds. Long against a call, short against what a person notices.
pub const IDLE_NS: u64 = 250_000_000;

/// How long the keeper waits for a new server to begin, in µs.
const BEGIN_US: u64 = 100;
/// How long it waits when there can be no more servers, in µs.
const FULL_US: u64 = 10_000;

/// How long a transfer to a server waits for the pager of who calls, in µs.
const PATIENCE_US: u64 = 1_000_000;

static POOL: Mutex<Pool> = Mutex::new(Pool { servers: Vec::new(), limit: LIMIT, room: None, is_kept: false });

struct Pool {
    servers: Vec<Server>,
    limit: usize,
    /// Room that servers have, if they have any.
    room: Option<Wanted>,
    /// The keeper has begun.
    is_kept: bool,
}

/// Room of a server: strings of so many bytes, and so many references at once.
#[derive(Clone, Default)]
struct Wanted {
    strings: Vec<u32>,
    windows: usize,
}

struct Server {
    thread: Handle<()>,
    record: Arc<Record>,
}

impl Pool {
    /// Servers have room for such requests; [`Error::NoWindow`] if they cannot any more.
    fn make_room(&mut self, strings: &[u32], windows: usize) -> Result<()> {
        let has = |room: &Wanted| {
            let is_enough = room.strings.iter().zip(strings).all(|(has, wanted)| has >= wanted);
            is_enough && room.strings.len() >= strings.len() && room.windows >= windows
        };
        if self.room.as_ref().is_some_and(has) {
            return Ok(());
        }
        let own = self.room.clone().unwrap_or_default();
        let (most, windows) = (own.strings.len().max(strings.len()), own.windows.max(windows));
        if !self.servers.is_empty() || most + windows > BLOCK_STRINGS {
            return Err(Error::NoWindow);
        }
        let mut room = Wanted { windows, ..own };
        room.strings.resize(most, 0);
        room.strings.iter_mut().zip(strings).for_each(|(has, &wanted)| *has = wanted.max(*has));
        self.room = Some(room);
        Ok(())
    }
}

/// Where requests with a part in memory arrive, while a thread serves; and references that come with them.
struct Memory {
    block: Box<Block>,
    buffers: Vec<Vec<u64>>,
    windows: usize,
}

impl Memory {
    /// Memory with room for that.
    fn new(Wanted { strings, windows }: &Wanted) -> Memory {
        let mut block = Box::new(Block::new());
        let mut buffers: Vec<Vec<u64>> =
            strings.iter().map(|&bytes| vec![0; bytes.div_ceil(8) as usize]).collect();
        for (number, (buffer, &bytes)) in buffers.iter_mut().zip(strings).enumerate() {
            if let Some(first) = NonNull::new(buffer.as_mut_ptr()) {
                // SAFETY: the buffers live as long as the block, and nobody else uses them.
                unsafe { block.lend(number, first, bytes) };
            }
        }
        let mut memory = Memory { block, buffers, windows: *windows };
        for [window, _] in memory.items() {
            // Without a number there is no window, and references do not arrive.
            if let Ok(room) = Room::new() {
                *window = room.window().0;
                room.leave();
            }
        }
        memory
    }

    fn dope(&self) -> Dope {
        Dope(Block::dope(self.buffers.len(), self.windows))
    }

    fn items(&mut self) -> &mut [[u64; 2]] {
        let dope = self.dope();
        self.block.items(dope.0)
    }

    /// Makes it the place where messages to the calling thread arrive.
    fn register(&mut self) -> Result<()> {
        let patience = Timeout::from_us(PATIENCE_US);
        sys::thread_set_block(Uid::NIL, self.block.address(), self.dope(), patience).map(drop)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Nothing arrives there any more.
        let _ = sys::thread_set_block(Uid::NIL, 0, Dope::NONE, Timeout::ZERO);
        for [window, _] in self.items() {
            drop(Room::of(Fpage(*window)));
        }
    }
}

/// State that a server shares with those who look after it.
struct Record {
    /// The stack pointer with which its calls begin, as soon as it serves.
    stack: AtomicU64,
    /// It serves no more.
    has_ended: AtomicBool,
}

impl Server {
    fn begin(room: Option<Wanted>) -> Result<Server> {
        let record = Arc::new(Record { stack: AtomicU64::new(0), has_ended: AtomicBool::new(false) });
        let own = record.clone();
        let thread = spawn(super::own_priority(), move || {
            let mut memory = room.as_ref().map(Memory::new);
            // It cannot fail: the block is where a program's data is.
            let _ = memory.as_mut().map(Memory::register);
            drop(open_window());
            // SAFETY: all doors of this program are the parent module's, whose entries want no other block than this. Who makes
            // others by `sys` promised that their entries run on any server.
            unsafe { sys::door_serve(&own.stack) };
            drop(close_window());
            // SAFETY: it serves no more.
            unsafe { give_back() };
            own.has_ended.store(true, Ordering::Release);
        })?;
        Ok(Server { thread, record })
    }

    fn has_ended(&self) -> bool {
        self.record.has_ended.load(Ordering::Acquire)
    }

    /// Ends it, if it waits for a call and had none since this was asked last. True if so.
    fn dismiss(&self) -> bool {
        let thread = self.thread.uid();
        if sys::thread_stop(thread).is_err() {
            return false;
        }
        let waits = sys::thread_info(thread).is_ok_and(|info| super::waits_for_call(info.ip));
        let is_dismissed = waits && self.was_idle() && sys::thread_abort(thread).is_ok();
        let _ = sys::thread_resume(thread);
        is_dismissed
    }

    /// Whether it has begun nothing since this was asked last. It is stopped, and waits for a call.
    fn was_idle(&self) -> bool {
        let below = self.record.stack.load(Ordering::Acquire) - size_of::<u64>() as u64;
        // SAFETY: it waits, so what lies below its stack pointer is nobody's, and it does not run before this is over.
        unsafe { with_exposed_provenance_mut::<u64>(below as usize).replace(IDLE) == IDLE }
    }
}

/// There is somebody who serves from now on, with room for requests with such strings in memory, and so many references.
pub fn open(strings: Option<&[u32]>, windows: usize) -> Result<()> {
    let mut pool = POOL.lock();
    strings.map_or(Ok(()), |strings| pool.make_room(strings, windows))?;
    if pool.servers.is_empty() {
        let first = Server::begin(pool.room.clone())?;
        pool.servers.push(first);
    }
    if !pool.is_kept {
        spawn(super::own_priority(), || -> () { keep() })?.detach();
        pool.is_kept = true;
    }
    Ok(())
}

/// Servers that begin from now on have room for requests with such strings in memory, and so many references.
pub fn make_room(strings: Option<&[u32]>, windows: usize) -> Result<()> {
    strings.map_or(Ok(()), |strings| POOL.lock().make_room(strings, windows))
}

/// Sets how many servers there can be at most. Those that there are stay.
pub fn set_limit(servers: usize) {
    POOL.lock().limit = servers.max(1);
}

/// How many servers there are.
pub fn servers() -> usize {
    POOL.lock().servers.len()
}

/// The keeper: makes servers when they are short.
fn keep() -> ! {
    loop {
        let pause_us = match sys::door_shortage() {
            Ok(serving) => grow(serving as usize),
            Err(_) => FULL_US,
        };
        if pause_us > 0 {
            let _ = sys::sleep_us(pause_us);
        }
    }
}

/// Callers wait, and so many threads serve. Says how long to wait before the next look.
fn grow(serving: usize) -> u64 {
    let mut pool = POOL.lock();
    let alive = pool.servers.iter().filter(|server| !server.has_ended()).count();
    if serving < alive {
        return BEGIN_US;
    }
    if pool.servers.len() >= pool.limit {
        return FULL_US;
    }
    let Ok(server) = Server::begin(pool.room.clone()) else { return FULL_US };
    pool.servers.push(server);
    drop(pool);
    porter::tell_of_growth();
    0
}

/// Dismisses who had nothing to do since the last look. False if there is but one left.
pub fn shrink() -> bool {
    let mut pool = POOL.lock();
    let mut alive = pool.servers.iter().filter(|server| !server.has_ended()).count();
    for server in pool.servers.iter().filter(|server| !server.has_ended()) {
        if alive > 1 && server.dismiss() {
            alive -= 1;
        }
    }
    // A thread that was dismissed now may need a moment; the next look finds it.
    let gone: Vec<Server> = pool.servers.extract_if(.., |server| server.has_ended()).collect();
    let is_large = pool.servers.len() > 1;
    drop(pool);
    // To drop a thread is to join it.
    drop(gone);
    is_large
}
