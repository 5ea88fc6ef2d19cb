//! Calls of the system that waiting needs.

use sys::{Ipc, Timeout, Uid};

pub use super::{Mutex, MutexGuard};

/// The calling thread.
pub fn myself() -> Uid {
    sys::myself()
}

/// Nanoseconds since the kernel started.
pub fn now_ns() -> u64 {
    crate::time::now_ns()
}

/// Sleeps until the thread is alerted, and at most until a time. It may wake for no reason.
pub fn sleep(thread: Uid, until_ns: Option<u64>) {
    // A message from oneself cannot come.
    let ipc = Ipc { from: thread, receive_timeout: Timeout::NEVER, alertable: true, until_ns, ..Ipc::NONE };
    let _ = ipc.run();
}

/// Alerts a thread; says whether it was alerted before.
pub fn alert(thread: Uid) -> bool {
    // It fails only if the thread is gone, and nobody waits.
    sys::alert(thread).unwrap_or(false)
}

/// The calling thread is alerted no more; says whether it was.
pub fn clear_alert() -> bool {
    sys::clear_alert(Uid::NIL).unwrap_or(false)
}
