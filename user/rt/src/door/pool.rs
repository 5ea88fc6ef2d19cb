//! The threads that serve this program's doors. There is one from the first object on; when a caller would have to wait, the
//! *keeper* makes another, up to a limit; those that had nothing to do for a while end, except one.
//!
//! To end an idle server is to abort its wait. It must not begin a call meanwhile, since that would abort something
//! within the call. So it is stopped first, and its instruction pointer says whether it waits for a call.
#![allow(unsafe_code)]

use super::porter;
use crate::sync::Mutex;
use crate::thread::{Handle, spawn};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::Result;

/// Most servers, unless [`set_limit`] says something else. Each has a stack's slot, of which a program has 64.
const LIMIT: usize = 16;

/// Who does nothing for so long is too many, in nanoseconds. Long against a call, short against what a person notices.
pub const IDLE_NS: u64 = 250_000_000;

/// How long the keeper waits for a new server to begin, in µs.
const BEGIN_US: u64 = 100;
/// How long it waits when there can be no more servers, in µs.
const FULL_US: u64 = 10_000;

static POOL: Mutex<Pool> = Mutex::new(Pool { servers: Vec::new(), limit: LIMIT, is_kept: false });

struct Pool {
    servers: Vec<Server>,
    limit: usize,
    /// The keeper has begun.
    is_kept: bool,
}

struct Server {
    thread: Handle<()>,
    record: Arc<Record>,
    /// Its calls when somebody looked last.
    seen: u64,
}

/// What a server and those who look after it share. Its address is what doors' entries find on the stack.
#[repr(C)]
pub struct Record {
    /// How many calls it has begun; at offset 0. The entry raises it, and nobody else.
    calls: AtomicU64,
    /// It serves no more.
    has_ended: AtomicBool,
}

impl Server {
    fn begin() -> Result<Server> {
        let record = Arc::new(Record { calls: AtomicU64::new(0), has_ended: AtomicBool::new(false) });
        let own = record.clone();
        let thread = spawn(super::own_priority(), move || {
            // SAFETY: all doors of this program are the parent module's, whose entry wants a record that outlives the
            // service. Who makes others by `sys` promised that their entries run on any server.
            unsafe { sys::door_serve(Arc::as_ptr(&own).expose_provenance() as u64) };
            own.has_ended.store(true, Ordering::Release);
        })?;
        Ok(Server { thread, record, seen: u64::MAX })
    }

    fn has_ended(&self) -> bool {
        self.record.has_ended.load(Ordering::Acquire)
    }

    /// Whether it has begun nothing since this was asked last.
    fn is_idle(&mut self) -> bool {
        let calls = self.record.calls.load(Ordering::Relaxed);
        core::mem::replace(&mut self.seen, calls) == calls
    }

    /// Ends it, if it waits for a call. True if so.
    fn dismiss(&self) -> bool {
        let thread = self.thread.uid();
        if sys::thread_stop(thread).is_err() {
            return false;
        }
        let waits = sys::thread_info(thread).is_ok_and(|info| super::waits_for_call(info.ip));
        let is_dismissed = waits && sys::thread_abort(thread).is_ok();
        let _ = sys::thread_resume(thread);
        is_dismissed
    }
}

/// There is somebody who serves from now on.
pub fn open() -> Result<()> {
    let mut pool = POOL.lock();
    if pool.servers.is_empty() {
        let first = Server::begin()?;
        pool.servers.push(first);
    }
    if !pool.is_kept {
        spawn(super::own_priority(), || -> () { keep() })?.detach();
        pool.is_kept = true;
    }
    Ok(())
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
    let Ok(server) = Server::begin() else { return FULL_US };
    pool.servers.push(server);
    drop(pool);
    porter::tell_of_growth();
    0
}

/// Dismisses who had nothing to do since the last look. False if there is but one left.
pub fn shrink() -> bool {
    let mut pool = POOL.lock();
    let mut alive = pool.servers.iter().filter(|server| !server.has_ended()).count();
    for server in pool.servers.iter_mut().filter(|server| !server.has_ended()) {
        if alive > 1 && server.is_idle() && server.dismiss() {
            alive -= 1;
        }
    }
    // Whoever was dismissed now may need a moment; the next look finds it.
    let gone: Vec<Server> = pool.servers.extract_if(.., |server| server.has_ended()).collect();
    let is_large = pool.servers.len() > 1;
    drop(pool);
    // To drop a thread is to join it.
    drop(gone);
    is_large
}
