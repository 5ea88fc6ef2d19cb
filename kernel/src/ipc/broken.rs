//! Ends transfers and mappings whose message does not arrive. Both sides get an error, but for two: a server whose reply is lost goes on to
//! its next receive, and a server that was to be called waits for its next call.

use super::{outcome, serve, taking, wait};
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, Operation, State, Wait};
use crate::processor;
use abi::Error;
use abi::op::{self, Op};

/// Ends the transfer that a thread takes part in, on either side, because of something that happened to this thread.
/// False if it is in none.
pub(super) fn interrupt(k: &Kernel, thread: ThreadRef, own: Error, other: Error) -> bool {
    let partner = k.thread(thread.partner.get());
    match (thread.operation.get(), thread.state.get()) {
        (Operation::Transfer { to, .. }, _) => end_both(k, Some(thread), k.thread(to), own, other),
        (Operation::Taken { from, .. }, _) => end_both(k, k.thread(from), Some(thread), other, own),
        (Operation::CopyState, _) => end_copy_of_state(k, thread),
        (_, State::Taking) if partner.is_some_and(taking::is_transferring) => {
            end_both(k, partner, Some(thread), other, own)
        }
        _ => return false,
    }
    true
}

/// Ends the transfer in whose middle a thread faulted, if nobody resolves that. False if there is no transfer.
pub(super) fn broken(k: &Kernel, thread: ThreadRef) -> bool {
    interrupt(k, thread, Error::NoAccess, Error::NoAccess)
}

pub(super) fn break_off(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, mine: Error, theirs: Error) {
    end_both(k, Some(sender), Some(receiver), mine, theirs);
}

/// Takes a thread that ends out of its transfer: the other side gets an error.
pub(super) fn leave(k: &Kernel, thread: ThreadRef) {
    match thread.operation.get() {
        Operation::Transfer { to, .. } => {
            end_both(k, None, k.thread(to), Error::PartnerDied, Error::PartnerDied)
        }
        Operation::Taken { from, .. } => {
            end_both(k, k.thread(from), None, Error::PartnerDied, Error::PartnerDied)
        }
        _ => {}
    }
}

fn end_both(k: &Kernel, sender: Option<ThreadRef>, receiver: Option<ThreadRef>, mine: Error, theirs: Error) {
    let at = |thread: ThreadRef| match thread.operation.get() {
        Operation::Transfer { at, .. } => at.moved,
        _ => 0,
    };
    let moved = sender.map_or(0, at);
    if let Some(receiver) = receiver {
        stop_waiting(k, receiver);
        receiver.operation.set(Operation::None);
        if serve::was_to_be_called(receiver) {
            serve::not_called(k, receiver);
        } else {
            outcome::set_error(receiver, theirs);
            receiver.frame.w[0].set(moved);
            k.wake(receiver);
        }
    }
    if let Some(sender) = sender {
        stop_waiting(k, sender);
        end_transfer(k, sender, mine, moved);
    }
}

/// Ends the call in which a thread got or set the state of another, since the fault of a page of its block is not resolved.
fn end_copy_of_state(k: &Kernel, thread: ThreadRef) {
    stop_waiting(k, thread);
    thread.operation.set(Operation::None);
    thread.frame.finish(Error::NoAccess as u64);
    thread.frame.mode.set(Frame::SYSRET);
    if thread != processor::current() {
        k.wake(thread);
    }
}

/// Takes a thread out of the wait to which a fault in the middle of a transfer has led. It is ready afterwards.
fn stop_waiting(k: &Kernel, thread: ThreadRef) {
    k.wheel.remove(thread);
    match (thread.wait(), thread.state.get()) {
        (Wait::No, State::Sending) => wait::leave_queue(k, thread),
        // Its pager may be the one that maps, on its shuttle.
        (Wait::No, State::Taking) => leave_mapping(k, thread, Error::SendAborted),
        _ => {}
    }
    k.regain(thread, None);
    thread.errand.set(Errand::Ipc);
    thread.set_ready();
}

/// Lets a sender whose reply did not arrive go on with its receive phase. False if it sent no reply.
fn goes_on(k: &Kernel, sender: ThreadRef) -> bool {
    let replies = sender.frame.op() == Op::REPLY_WAIT.with(op::BLOCK);
    if replies {
        sender.operation.set(Operation::Receive);
        sender.frame.mode.set(Frame::SYSRET);
        k.set_busy(sender);
    }
    replies
}

/// Ends the sender's ipc with an error, except that a reply by ipc which does not arrive is no error of the server's.
pub(super) fn end_transfer(k: &Kernel, sender: ThreadRef, error: Error, moved: u64) {
    sender.operation.set(Operation::None);
    serve::stays(k, sender);
    if error == Error::BadArgument || !goes_on(k, sender) {
        outcome::set_error(sender, error);
        sender.frame.w[0].set(moved);
    }
    if sender != processor::current() {
        k.wake(sender);
    }
}

/// Gives the thread that is busy mapping to this one, if there is one, an error.
pub(super) fn leave_mapping(k: &Kernel, receiver: ThreadRef, error: Error) {
    let Some(sender) = k.thread(receiver.partner.get()) else { return };
    if matches!(sender.operation.get(), Operation::Map { to, .. } if to == receiver.uid()) {
        end_mapping(k, sender, error);
    }
}

/// Gives the sender of a mapping in progress an error.
pub(super) fn end_mapping(k: &Kernel, sender: ThreadRef, error: Error) {
    sender.operation.set(Operation::None);
    serve::stays(k, sender);
    outcome::set_error(sender, error);
}
