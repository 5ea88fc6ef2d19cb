//! Errand and operation that a thread may have in each of its states: the table in `docs/spec/thread.md`, row by row.

use crate::object::ThreadRef;
use crate::object::thread::{Errand, NEVER, Operation, State};

/// Checks a thread against the table. While `accept` says that the thread waits, the others have the values of a running thread: the fast
/// path ends that wait by a change of `accept` alone.
pub(super) fn check(thread: ThreadRef) {
    let (state, errand, operation) = (thread.state.get(), thread.errand.get(), thread.operation.get());
    let fits = match thread.hot.accept.get() {
        NEVER => fits(state, errand, operation),
        _ => (state, errand, operation) == (State::Ready, Errand::Ipc, Operation::None),
    };
    let accept = thread.hot.accept.get();
    assert!(fits, "{thread:?} is in no state: {state:?}, {errand:?}, {operation:?}, accepts {accept:#x}");
}

#[rustfmt::skip]
fn fits(state: State, errand: Errand, operation: Operation) -> bool {
    use Operation::{CopyState, None, Taken, Transfer};
    match (state, errand) {
        // No code looks at errand and operation of a thread that never began, or ends.
        (State::Inactive, _) => true,
        (State::Ready, Errand::Ipc) => !matches!(operation, Taken { .. }),
        (State::Receiving, Errand::Ipc) => matches!(operation, None),
        (State::Sending, Errand::Ipc) => matches!(operation, None),
        (State::Sending, Errand::Fault) => matches!(operation, None | Transfer { .. } | Taken { .. } | CopyState),
        (State::Sending, Errand::Exception) => matches!(operation, None),
        (State::Faulting, Errand::Fault) => matches!(operation, None | Transfer { .. } | Taken { .. } | CopyState),
        (State::Faulting, Errand::Exception) => matches!(operation, None),
        (State::Taking, Errand::Ipc) => matches!(operation, None),
        (State::Taking, Errand::Fault) => matches!(operation, None | Transfer { .. } | Taken { .. } | CopyState),
        (State::Taking, Errand::Exception) => matches!(operation, None),
        (State::Stalled, Errand::Ipc) => matches!(operation, Transfer { .. }),
        (State::Calling, Errand::Ipc) => matches!(operation, None),
        (State::Queueing, Errand::Ipc) => matches!(operation, None),
        (State::Idle, Errand::Ipc) => matches!(operation, None),
        (State::Watching, Errand::Ipc) => matches!(operation, None),
        _ => false,
    }
}
