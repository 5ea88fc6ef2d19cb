//! Which errand and which operation a thread may have in each of its states: the table in `docs/spec/thread.md`, row by row.

use crate::object::ThreadRef;
use crate::object::thread::{Errand, NEVER, Operation, State};

/// Checks a thread against the table. A thread whose `accept` says that it waits has no other state.
pub(super) fn check(thread: ThreadRef) {
    let (state, errand, operation) = (thread.state.get(), thread.errand.get(), thread.operation.get());
    let fits = match thread.hot.accept.get() {
        NEVER => fits(state, errand, operation),
        _ => errand == Errand::Ipc && operation == Operation::None,
    };
    let accept = thread.hot.accept.get();
    assert!(fits, "{thread:?} is in no state: {state:?}, {errand:?}, {operation:?}, accepts {accept:#x}");
}

#[rustfmt::skip]
fn fits(state: State, errand: Errand, operation: Operation) -> bool {
    use Operation::{None, Taken, Transfer};
    match (state, errand) {
        // One that never began, or ends: nothing looks at its errand any more.
        (State::Inactive, _) => true,
        (State::Ready, Errand::Ipc) => !matches!(operation, Taken { .. }),
        (State::Receiving, Errand::Ipc) => matches!(operation, None),
        (State::Sending, Errand::Ipc) => matches!(operation, None),
        (State::Sending, Errand::Fault) => matches!(operation, None | Transfer { .. } | Taken { .. }),
        (State::Sending, Errand::Exception) => matches!(operation, None),
        (State::Faulting, Errand::Fault) => matches!(operation, None | Transfer { .. } | Taken { .. }),
        (State::Faulting, Errand::Exception) => matches!(operation, None),
        (State::Taking, Errand::Ipc) => matches!(operation, None),
        (State::Taking, Errand::Fault) => matches!(operation, None | Transfer { .. } | Taken { .. }),
        (State::Taking, Errand::Exception) => matches!(operation, None),
        (State::Stalled, Errand::Ipc) => matches!(operation, Transfer { .. }),
        (State::Calling, Errand::Ipc) => matches!(operation, None),
        (State::Queueing, Errand::Ipc) => matches!(operation, None),
        (State::Idle, Errand::Ipc) => matches!(operation, None),
        (State::Watching, Errand::Ipc) => matches!(operation, None),
        _ => false,
    }
}
