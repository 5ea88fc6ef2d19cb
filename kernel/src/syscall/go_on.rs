//! Busy threads: a long operation goes on, one step at a time.

use super::unusual::{DEBUGGED, leave_debugged, pause_breakpoints};
use super::{door_control, flush, thread_control};
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::{Frame, Operation};
use crate::sched::Next;
use crate::{ipc, life};

/// Goes on with the operation of a busy thread, after the kernel has looked for interrupts.
pub fn continue_operation(k: &Kernel, current: ThreadRef) -> Next {
    current.frame.mode.set(current.frame.mode.get() & !Frame::BUSY);
    pause_breakpoints(current);
    let next = match current.operation.get() {
        Operation::None => Next::Same,
        Operation::Receive => ipc::receive::continue_receive(k, current),
        Operation::Map { to, noted, whole } => ipc::carry::continue_map(k, current, to, noted, whole),
        Operation::Transfer { to, at } => ipc::carry::continue_transfer(k, current, to, at),
        Operation::Taken { .. } => unreachable!("its receiver does not run"),
        Operation::Ahead { .. } => unreachable!("it is sent at once"),
        Operation::Flush { at, status } => flush::continue_flush(k, current, at, status),
        Operation::EndThread { victim } => life::end_thread(k, current, victim),
        Operation::EndTask { victim, at } => life::end_task(k, current, victim, at),
        Operation::Serve => ipc::serve::continue_serve(k, current),
        Operation::ForeignReturn => ipc::foreign::continue_answer(k, current),
        Operation::Alert => thread_control::continue_alert(k, current),
        Operation::CreateDoor => door_control::create(k, current),
        Operation::CopyState => thread_control::begin_anew(k, current),
    };
    if current.operation.get() != Operation::None && current.is_ready() {
        k.set_busy(current);
    } else if current.special.get() & DEBUGGED != 0 {
        leave_debugged(current);
    }
    next
}
