//! Somebody who does something to a thread after some time, from above all others: one at a time.

use super::{Outcome, Thread, pager, spawn};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::{TaskId, Timeout, Uid};

static WHOM: AtomicU64 = AtomicU64::new(0);
static HAS_ACTED: AtomicBool = AtomicBool::new(false);

/// A thread that waits for its moment. It ends when this is dropped.
pub struct Later {
    _thread: Thread,
}

impl Later {
    /// Whether it has done what it waited for.
    pub fn has_acted(&self) -> bool {
        HAS_ACTED.load(Ordering::Relaxed)
    }
}

/// Aborts a thread's ipc after so many microseconds.
pub fn abort_later(whom: Uid, us: u64) -> Outcome<Later> {
    extern "C" fn body(us: u64, _: u64) -> ! {
        act(us, sys::thread_abort)
    }
    start(whom, us, body)
}

/// Stops a thread after so many microseconds.
pub fn stop_later(whom: Uid, us: u64) -> Outcome<Later> {
    extern "C" fn body(us: u64, _: u64) -> ! {
        act(us, sys::thread_stop)
    }
    start(whom, us, body)
}

fn start(whom: Uid, us: u64, body: extern "C" fn(u64, u64) -> !) -> Outcome<Later> {
    WHOM.store(whom.0, Ordering::Relaxed);
    HAS_ACTED.store(false, Ordering::Relaxed);
    Ok(Later { _thread: spawn(TaskId::NIL, pager::priority() + 1, body, us)? })
}

fn act(us: u64, what: fn(Uid) -> sys::Result<()>) -> ! {
    let _ = sys::sleep_us(us);
    let _ = what(Uid(WHOM.load(Ordering::Relaxed)));
    HAS_ACTED.store(true, Ordering::Relaxed);
    loop {
        let _ = sys::receive(sys::myself(), Timeout::NEVER);
    }
}
