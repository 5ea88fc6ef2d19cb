//! The trace ring: the last events of traced threads, for a privileged task to read.
//!
//! Tracing is per thread and costs nothing while it is off: a traced thread is *special*, so it leaves the fast path, and the closer
//! look that the kernel takes at calls and switches of special threads finds the flag. No ordinary path has a hook. Faults and
//! interrupts are seen at the switch that they cause.
//!
//! With all threads traced the counters give the figure that the 1993 paper shows of lazy scheduling: messages for each
//! insertion into or removal from a ready queue.

pub mod ring;

use crate::kernel::Kernel;
use crate::object::thread::{Errand, Frame, State, special};
use crate::object::{TaskRef, ThreadRef};
use abi::call::{DOOR_ROWS, DOOR_SIZES};
use abi::op::{Carries, Form};
use abi::{Kind, Uid};
use ring::Event;

/// Turns tracing of a thread on or off.
pub fn set(thread: ThreadRef, on: bool) {
    thread.set_special(if on { special::TRACED } else { 0 }, special::TRACED);
}

/// Starts the counters anew.
pub fn restart(k: &Kernel) {
    k.trace.messages.set(0);
    k.trace.long.set(0);
    k.trace.doors.restart();
    k.trace.updates_before.set(k.sched.queue_updates.get());
}

/// Counters: records made; and since the counters were started, messages of traced threads, updates of the ready queues, and messages
/// that had a block in memory.
pub fn counters(k: &Kernel) -> [u64; 4] {
    let updates = k.sched.queue_updates.get() - k.trace.updates_before.get();
    [k.trace.made.get(), k.trace.messages.get(), updates, k.trace.long.get()]
}

/// Counts of calls and returns through doors, of a task's traced threads, or of all since the counters were started.
pub fn doors(k: &Kernel, task: Option<TaskRef>, row: u64) -> Option<[u64; DOOR_SIZES.len() + 1]> {
    task.map_or(&k.trace.doors, |task| &task.state().doors.counts).row(row)
}

/// Records a call or return of a traced thread that has arrived; `bytes` were copied in memory.
#[cold]
pub fn door(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (carries, is_call): (Carries, bool),
    bytes: u64,
) {
    // Stubs clear the words that they do not need.
    let words = match carries {
        Carries::Words => &receiver.frame.w[..],
        // The words in front, or behind, say where the rest is.
        Carries::Block => &receiver.frame.w[2..],
        Carries::Item => &receiver.frame.w[..6],
    };
    let bytes =
        bytes + words.iter().rposition(|word| word.get() != 0).map_or(0, |last| 8 * (last as u64 + 1));
    let size = DOOR_SIZES.iter().position(|&most| bytes <= most).unwrap_or(DOOR_SIZES.len());
    let row = carries as usize + if is_call { 0 } else { DOOR_ROWS.len() / 2 };
    k.trace.doors.count(row, size);
    sender.task().state().doors.counts.count(row, size);
    k.trace.long.set(k.trace.long.get() + (carries == Carries::Block) as u64);
    k.trace.record(Event::Door, sender.name.get(), receiver.name.get().0);
}

/// Records a system call of a traced thread.
#[cold]
pub fn call(k: &Kernel, current: ThreadRef) {
    let (op, to) = (current.frame.op(), Uid(current.frame.partner()));
    let is_ipc = matches!(op.number(), Some(Form::Call | Form::ReplyWait | Form::General));
    if is_ipc && !to.is_nil() {
        k.trace.long.set(k.trace.long.get() + op.is_long() as u64);
        k.trace.record(Event::Ipc, current.name.get(), to.0);
    }
    if op.is_item() {
        k.trace.record(Event::Map, current.name.get(), current.frame.w[6].get());
    }
}

/// Records a switch from one thread to another, of which one is traced.
#[cold]
pub fn switch(k: &Kernel, from: ThreadRef, to: ThreadRef) {
    let asks = matches!(from.state.get(), State::Faulting | State::Sending);
    match from.errand.get() {
        Errand::Fault if asks => {
            let access = from.fault.address.get() & !7 | from.fault.rights.get().0 as u64;
            k.trace.record(Event::Fault, from.name.get(), access);
        }
        Errand::Exception if asks => {
            k.trace.record(Event::Fault, from.name.get(), from.fault.exception.get())
        }
        _ => {}
    }
    // A thread that was just given an interrupt's message is still in the call in which it waited for it.
    if to.frame.mode.get() == Frame::SYSRET && to.frame.head() as u32 == Kind::Interrupt as u32 {
        k.trace.record(Event::Interrupt, to.name.get(), to.frame.partner());
    }
    k.trace.record(Event::Switch, from.name.get(), to.name.get().0);
}
