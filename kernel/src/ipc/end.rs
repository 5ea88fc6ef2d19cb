//! Waits that end without a message: timeouts, aborts, and partners that end.

use super::{broken, fault, outcome, serve, taking, wait};
use crate::kernel::Kernel;
use crate::lend::word::Stake;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, NEVER, Operation, Place, State, Wait};
use crate::param::EXPIRY_OF_TWO;
use abi::{Error, Uid};

/// Ends the wait of a thread whose timeout fired. The entry may be left from a wait that is over. Returns the weight of this, see
/// [`EXPIRIES`](crate::param::EXPIRIES).
pub fn expired(k: &Kernel, thread: ThreadRef) -> usize {
    if thread.hot.accept.get() != NEVER {
        return 1;
    }
    let (state, claims) = (thread.state.get(), matches!(thread.stake(), Stake::Claims(_)));
    match state {
        State::Stalled | State::Taking => out_of_patience(k, thread),
        State::Sending => fail_blocked(k, thread, Error::SendTimeout),
        State::Receiving => fail_blocked(k, thread, Error::ReceiveTimeout),
        _ => return 1,
    }
    if claims || matches!(state, State::Stalled | State::Taking) { EXPIRY_OF_TWO } else { 1 }
}

/// Ends the transfer or mapping in which a thread takes part whose patience is over.
fn out_of_patience(k: &Kernel, thread: ThreadRef) {
    let sender = Some(thread).filter(|it| taking::is_transferring(*it)).or(k.thread(thread.partner.get()));
    let under_way = sender.map(|sender| sender.operation.get());
    let faults = matches!(under_way, Some(Operation::Transfer { at: Place { faulted: true, .. }, .. }));
    let (own, other) =
        if faults { (Error::NoAccess, Error::NoAccess) } else { (Error::ReceiveTimeout, Error::SendTimeout) };
    if !broken::interrupt(k, thread, own, other) {
        abandon(k, thread, own, other);
    }
}

/// Ends the wait of a thread that is not running with an error, wherever it waits. A thread that waits for an answer
/// to a fault gets an exception instead, and one that waits for an answer to an exception stops.
pub fn fail_blocked(k: &Kernel, thread: ThreadRef, error: Error) {
    let waits = thread.wait();
    if thread.state.get() == State::Sending && waits == Wait::No {
        wait::leave_queue(k, thread);
        if thread.errand.get() != Errand::Ipc {
            return fault::unanswered(k, thread);
        }
    }
    k.wheel.remove(thread);
    if let Wait::Foreign(_) = waits {
        thread.unfold();
    }
    k.regain(thread, None);
    if let Wait::Answer(_) | Wait::Foreign(_) = waits {
        return fault::unanswered(k, thread);
    }
    thread.operation.set(Operation::None);
    outcome::set_error(thread, error);
    thread.set_ready();
    k.wake(thread);
}

/// Fails the send of a thread in the queue of one that ends; it is out of the queue already.
pub fn partner_died(k: &Kernel, sender: ThreadRef) {
    k.wheel.remove(sender);
    if sender.errand.get() != Errand::Ipc {
        return fault::unanswered(k, sender);
    }
    outcome::set_error(sender, Error::PartnerDied);
    sender.set_ready();
    k.wake(sender);
}

/// Aborts any ipc in which the thread waits, for `thread_control`. False if it waits in none.
pub fn abort(k: &Kernel, thread: ThreadRef) -> bool {
    let (own, other) = match thread.operation.get() {
        Operation::Transfer { .. } => (Error::SendAborted, Error::ReceiveAborted),
        _ => (Error::ReceiveAborted, Error::SendAborted),
    };
    match thread.operation.get() {
        // The thread's message has arrived, and it is going to wait for the next.
        Operation::Receive => {
            thread.operation.set(Operation::None);
            outcome::set_error(thread, Error::ReceiveAborted);
            return true;
        }
        Operation::Map { to, .. } => {
            abandon_sending(k, thread, to);
            return true;
        }
        _ => {}
    }
    // Between two steps of a message that it sends the thread is ready.
    let is_under_way = thread.state.get() != State::Ready || taking::is_transferring(thread);
    if is_under_way && broken::interrupt(k, thread, own, other) {
        return true;
    }
    if serve::abort(k, thread) {
        return true;
    }
    let error = match (thread.wait(), thread.state.get()) {
        (Wait::Open | Wait::Closed(_) | Wait::Return(_), _) => Error::ReceiveAborted,
        (Wait::No, State::Sending) => Error::SendAborted,
        (Wait::No, State::Taking) => Error::ReceiveAborted,
        (Wait::Answer(_) | Wait::Foreign(_), _) => {
            fail_blocked(k, thread, Error::ReceiveAborted);
            return true;
        }
        _ => return false,
    };
    if thread.state.get() == State::Taking && thread.wait() == Wait::No {
        abandon(k, thread, error, Error::SendAborted);
        return true;
    }
    fail_blocked(k, thread, error);
    true
}

/// Ends the ipc of a thread that is going to end: nobody keeps a link to it.
pub fn leave(k: &Kernel, thread: ThreadRef) {
    serve::leave(k, thread);
    if thread.wait() == Wait::No && thread.state.get() == State::Sending {
        wait::leave_queue(k, thread);
    }
    if let Operation::Map { to, .. } = thread.operation.get()
        && let Some(receiver) = k.thread(to)
    {
        release_receiver(k, receiver, Error::PartnerDied);
    }
    broken::leave(k, thread);
    k.wheel.remove(thread);
    // The thread may be busy with the end of another one, which goes on: see `end_thread`.
    if !matches!(thread.operation.get(), Operation::EndThread { .. }) {
        thread.operation.set(Operation::None);
    }
}

/// Ends a mapping in progress whose receiver is aborted, or whose receiver's patience is over: both sides get an error.
fn abandon(k: &Kernel, receiver: ThreadRef, error: Error, senders: Error) {
    broken::leave_mapping(k, receiver, senders);
    release_receiver(k, receiver, error);
}

/// Ends a mapping in progress whose sender is aborted: both sides get an error.
fn abandon_sending(k: &Kernel, sender: ThreadRef, to: Uid) {
    if let Some(receiver) = k.thread(to) {
        release_receiver(k, receiver, Error::ReceiveAborted);
    }
    broken::end_mapping(k, sender, Error::SendAborted);
}

/// Releases the receiver of a mapping in progress whose sender is gone: it gets an error.
fn release_receiver(k: &Kernel, receiver: ThreadRef, error: Error) {
    k.wheel.remove(receiver);
    k.regain(receiver, None);
    if receiver.errand.get() != Errand::Ipc {
        return fault::unanswered(k, receiver);
    }
    if serve::was_to_be_called(receiver) {
        return serve::not_called(k, receiver);
    }
    outcome::set_error(receiver, error);
    receiver.set_ready();
    k.wake(receiver);
}
