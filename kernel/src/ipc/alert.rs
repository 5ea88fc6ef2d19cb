//! Alerts: a hint that runs forward along a chain of calls through doors, for its servers to come to an end early (row D9).
//!
//! An alert is a bit of a thread in [`special`], so that no path has to look for it that did not look before. It is set on demand, and when
//! a caller ends: then on the server of its call. The server that an alerted thread calls begins alerted, as
//! [`Tcb::set_call`](crate::object::thread::Tcb::set_call) says, and a return clears the bit. So a thread is alerted from when
//! one in front of it in the chain was, until its own part in the chain is over.
//!
//! An ipc or call through a door that was begun as *alertable* ends as if it were aborted. A chain may be long: the
//! thread that gave the alert walks along it in steps.

use super::end;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Operation, Wait, special};
use crate::param;
use abi::Uid;

/// Starts an alert at a thread; `by` is to go on with it.
pub fn start(by: ThreadRef, thread: ThreadRef) {
    // A server that waits for a call has no part in any chain.
    if thread.wait() != Wait::Idle {
        thread.set_special(special::ALERTED, 0);
        by.alerting.set(thread.uid());
    }
}

/// Starts an alert at the thread that was called by one which is going to end.
pub fn start_at_end(k: &Kernel, thread: ThreadRef) {
    if let Some(server) = called_by(k, thread) {
        start(thread, server);
    }
}

/// The server of the call that a thread waits for.
fn called_by(k: &Kernel, thread: ThreadRef) -> Option<ThreadRef> {
    match thread.wait() {
        Wait::Return(server) => k.thread(server),
        _ => None,
    }
}

/// Goes on with the alert that `by` is responsible for, some threads in each step. True when all have it.
pub fn go_on(k: &Kernel, by: ThreadRef) -> bool {
    for _ in 0..param::PREEMPTION_ALERTS {
        if by.alerting.get().is_nil() {
            return true;
        }
        // The thread may have ended meanwhile, or returned, and serve another caller.
        let reached = k.thread(by.alerting.replace(Uid::NIL));
        let Some(thread) = reached.filter(|it| it.special.get() & special::ALERTED != 0) else { return true };
        if let Some(server) = called_by(k, thread) {
            start(by, server);
        }
        if thread.special.get() & special::ALERTABLE != 0 {
            end_wait(k, thread);
        }
    }
    by.alerting.get().is_nil()
}

/// Ends the operation of a thread, if it is still the one that was begun as alertable, and not a fault after it.
fn end_wait(k: &Kernel, thread: ThreadRef) {
    match thread.operation.get() {
        Operation::Receive | Operation::Map { .. } | Operation::Transfer { .. } | Operation::Taken { .. } => {
            _ = end::abort(k, thread)
        }
        _ if thread.errand.get() == Errand::Ipc => _ = end::abort(k, thread),
        _ => {}
    }
}
