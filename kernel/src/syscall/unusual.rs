//! Calls of threads that are traced or debugged, that an alert may end, or to which native calls are denied.

use super::ordinary_call;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::special;
use crate::sched::Next;
use crate::{arch, ipc, processor, trace};
use abi::call::NULL;
use abi::op::{self, Op};

/// Flags of threads whose calls need more than the table.
pub const UNUSUAL: u32 = special::DENY_NATIVE | special::TRACED | special::ALERTABLE | DEBUGGED;

/// Flags of threads that a debugger follows, but only outside the kernel.
pub const DEBUGGED: u32 = special::STEPPED | special::BREAKPOINTS;

fn enter_unusual(k: &Kernel, current: ThreadRef) {
    if current.special.get() & special::TRACED != 0 {
        trace::call(k, current);
    }
    if current.special.get() & special::ALERTABLE != 0 {
        current.set_special(0, special::ALERTABLE);
    }
    pause_breakpoints(current);
}

/// Turns breakpoints off while the kernel works: its accesses to watched memory would tell a debugger nothing, and a copy that ends in an
/// exception at each of its strings would take long.
pub fn pause_breakpoints(current: ThreadRef) {
    if current.special.get() & special::BREAKPOINTS != 0 {
        arch::debug::breakpoints_off();
    }
}

/// Turns single steps and breakpoints on again, for a thread that is to leave the kernel, now or when it runs next.
pub fn leave_debugged(current: ThreadRef) {
    if current.special.get() & special::STEPPED != 0 {
        current.set_trap_flag();
    }
    if current.special.get() & special::BREAKPOINTS != 0 {
        processor::load_breakpoints(current);
    }
}

#[cold]
pub fn unusual_short(k: &Kernel, current: ThreadRef) -> Next {
    enter_unusual(k, current);
    if current.special.get() & special::DENY_NATIVE != 0 {
        return ipc::fault::system_call_exception(k, current);
    }
    let next = ipc::send::short(k, current, Next::To);
    leave_debugged(current);
    next
}

/// Handles any number of a thread that is debugged or traced, or to which native calls are denied.
#[cold]
pub fn unusual_call(k: &Kernel, current: ThreadRef) -> Next {
    let word = current.frame.head() as u32;
    // The fast path refuses a missing door before it looks at the caller, so that such a call is not recorded. Here it is the same.
    let is_fast = Op(word).without(op::TAKES_BLOCK) == Op::DOOR_CALL;
    if is_fast && !ipc::serve::exists(k, current) {
        let next = ipc::carry::call_door(k, current);
        leave_debugged(current);
        return next;
    }
    enter_unusual(k, current);
    let denied = current.special.get() & special::DENY_NATIVE != 0;
    let next = match word {
        NULL => Next::Same,
        // A missing door is refused before the thread's right to call, as on the fast path.
        _ if Op(word).is_door_call() && !ipc::serve::exists(k, current) => ipc::carry::call_door(k, current),
        _ if denied => ipc::fault::system_call_exception(k, current),
        _ => ordinary_call(k, current),
    };
    leave_debugged(current);
    next
}
