//! Messages that take more than one step: the sender is *busy* ([`Operation::Map`], [`Operation::Transfer`]), and the receiver
//! waits in [`State::Taking`], where no other sender reaches it.
//!
//! Each side bounds by its *patience* how long it takes part: the receiver from the end of the first step, the sender from the
//! receiver's first fault. So neither a pager nor a partner that is stopped, or starved by its own priority, holds the other
//! for longer.

use super::wait;
use crate::arch;
use crate::kernel::Kernel;
use crate::lend::word::Stake;
use crate::mem::space::Progress;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, NEVER, Operation, Place, State};
use crate::processor;
use abi::call::PATIENCE_US;
use abi::{Timeout, Uid};

/// Makes the sender busy with `operation` from now on, and the receiver wait for that.
fn begin(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, operation: Operation) {
    k.wheel.remove(receiver);
    match receiver.stake() {
        // The thread does things before the message is there, such as a page fault, on its own shuttle.
        Stake::Nothing => k.go_home(receiver),
        Stake::Claims(from) => receiver.lent_to.set(from),
        Stake::Holds => {}
    }
    if receiver.hot.accept.get() != NEVER {
        receiver.receiving.window.set(receiver.open_window());
        receiver.errand.set(Errand::Ipc);
        receiver.hot.accept.set(NEVER);
        // The fast path does not record that the thread is in a system call; the last trap is long over.
        receiver.frame.mode.set(Frame::SYSRET);
    }
    receiver.state.set(State::Taking);
    receiver.partner.set(sender.uid());
    sender.operation.set(operation);
    k.set_busy(sender);
}

pub(super) fn begin_map(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, progress: Progress) {
    let (noted, whole) = (progress.noted(), progress.whole);
    begin(k, sender, receiver, Operation::Map { to: receiver.uid(), noted, whole });
    // A thread waits for its pager as long as the pager likes.
    if receiver.errand.get() == Errand::Ipc {
        limit(k, receiver);
    }
}

/// Lets a caller that waited for a server, and is ready, send the server its item from now on.
pub(super) fn begin_map_by_door(k: &Kernel, caller: ThreadRef, server: ThreadRef) {
    server.receiving.from.set(Uid::NIL);
    begin_map(k, caller, server, Progress::START);
    k.wake(caller);
}

pub(super) fn begin_transfer(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) {
    begin_transfer_from(k, sender, receiver, sender.uid());
}

/// Begins a transfer, with what the fast path has done of it. `from`: nil for a server that waited for a call through a door, the sender for any other receiver.
pub(super) fn begin_transfer_from(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, from: Uid) {
    // A sender that does not run now may be stopped, or never come to run.
    let limited = sender != processor::current();
    let done = match sender.operation.get() {
        Operation::Ahead { to, at } if to == receiver.uid() => at,
        _ => Place::default(),
    };
    let at = Place { receiver_limited: limited, ..done };
    begin(k, sender, receiver, Operation::Transfer { to: receiver.uid(), at });
    receiver.receiving.from.set(from);
    if limited {
        limit(k, receiver);
    }
}

/// Bounds by a thread's patience, from now on, how long it takes part in a transfer or the mapping of an item. The bound is for all, so
/// that it is not prolonged by a pager whose answers give nothing.
pub(super) fn limit(k: &Kernel, thread: ThreadRef) {
    let patience = match Timeout(thread.block.timeout.get()) {
        Timeout::ZERO => Some(PATIENCE_US),
        patience => patience.us(),
    };
    let until = patience.map_or(u64::MAX, |us| arch::now_ns() + us * 1000);
    thread.block.patient_until.set(until);
    file_limit(k, thread);
}

/// Files the end of a thread's patience in the wheel. False if it has passed.
pub(super) fn file_limit(k: &Kernel, thread: ThreadRef) -> bool {
    let (until, now) = (thread.block.patient_until.get(), arch::now_ns());
    if until != u64::MAX {
        // The wheel takes no point in time that has passed: then it is the next.
        wait::file_deadline(k, thread, until.max(now));
    }
    until > now
}

/// Whether a thread waits for page faults of its partner's at all.
pub(super) fn awaits_faults(thread: ThreadRef) -> bool {
    Timeout(thread.block.timeout.get()) != Timeout::ZERO
}

/// Resumes a transfer: the receiver's fault is resolved, and it holds a shuttle; the sender goes on. If the fault `returned` the receiver's
/// shuttle from the sender, the sender has it again.
pub(super) fn resume(k: &Kernel, receiver: ThreadRef, from: Uid, returned: bool) {
    receiver.operation.set(Operation::None);
    receiver.errand.set(Errand::Ipc);
    receiver.hot.accept.set(NEVER);
    receiver.state.set(State::Taking);
    receiver.partner.set(from);
    if let Some(sender) = k.thread(from) {
        if returned {
            k.lend(receiver, sender);
            receiver.lent_to.set(from);
            k.begins_service(sender);
        }
        file_limit(k, receiver);
        k.wheel.remove(sender);
        sender.set_ready();
        k.wake(sender);
    }
}

pub(super) fn is_transferring(thread: ThreadRef) -> bool {
    matches!(thread.operation.get(), Operation::Transfer { .. })
}

/// Whether a message is on its way into a thread's block or window. Both stay as they were when the message was accepted.
pub fn is_taking(thread: ThreadRef) -> bool {
    thread.state.get() == State::Taking || matches!(thread.operation.get(), Operation::Taken { .. })
}
