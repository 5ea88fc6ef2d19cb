//! Waits: how a thread begins to wait, for how long, the queue of those that wait to send, and the thread that runs when a message arrives.

use super::request::{ABSOLUTE, Request};
use super::{clan, outcome};
use crate::kernel::Kernel;
use crate::lend::Passed;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, State, Wait};
use abi::{Error, Fpage, Timeout, Uid};

/// Wait of a thread to which a message may go. A message of its handler ends the wait of a thread for the return from a foreign call as an
/// answer to an exception does, so the wait becomes one for that.
#[inline(always)]
pub(super) fn wait_of(partner: ThreadRef) -> Wait {
    match partner.common_wait() {
        Wait::Idle => partner.settle(),
        wait => wait,
    }
}

/// Whether a thread in this wait would take a message from `sender` now.
#[inline(always)]
pub(super) fn accepts(wait: Wait, sender: Uid) -> bool {
    match wait {
        Wait::Open => true,
        Wait::Closed(from) | Wait::Answer(from) => from == sender,
        Wait::No | Wait::Return(_) | Wait::Idle | Wait::Foreign(_) => false,
    }
}

/// Lets a thread, which holds a shuttle, stand in the queue of another.
pub(super) fn enqueue_sender(k: &Kernel, sender: ThreadRef, partner: ThreadRef) {
    sender.state.set(State::Sending);
    sender.partner.set(partner.uid());
    k.stand_before(sender, partner);
    partner.refold();
}

pub(super) fn dequeue_sender(k: &Kernel, sender: ThreadRef, partner: ThreadRef) {
    k.step_back(sender, partner);
    partner.refold();
}

/// Takes a thread that waits to send out of the queue. The partner may be ending, so that no uid leads to it any more.
pub(super) fn leave_queue(k: &Kernel, sender: ThreadRef) {
    let partner = ThreadRef::named(sender.partner.get());
    dequeue_sender(k, sender, partner.expect("a queue ends before its thread does"));
}

/// Files or drops the timeout of a thread that starts to wait.
#[inline(always)]
pub(super) fn set_timeout(k: &Kernel, thread: ThreadRef, timeout: Timeout) {
    match timeout.us() {
        None => k.wheel.remove(thread),
        Some(us) => file_timeout(k, thread, us),
    }
}

#[inline(never)]
fn file_timeout(k: &Kernel, thread: ThreadRef, us: u64) {
    let now = crate::arch::now_ns();
    let mut deadline = now + us * 1000;
    if us == ABSOLUTE.0 as u64 && is_absolute(thread) {
        deadline = thread.frame.timeouts().max(now);
    }
    file_deadline(k, thread, deadline);
}

#[inline(always)]
pub(super) fn file_deadline(k: &Kernel, thread: ThreadRef, deadline_ns: u64) {
    if k.wheel.insert(thread, deadline_ns) {
        k.arm(u64::MAX);
    }
}

#[cold]
fn is_absolute(thread: ThreadRef) -> bool {
    thread.frame.op().is_absolute()
}

/// Whether the thread from which `thread` is going to wait for an answer has ended meanwhile. That can be only if a chief
/// took the message in its place: a thread that has ended takes none.
#[inline(always)]
pub(super) fn has_ended(k: &Kernel, thread: ThreadRef, from: Uid) -> bool {
    from.clan() != thread.uid().clan() && clan::has_ended(k, from)
}

/// Makes a thread wait. `lent_to`: the thread to which it has lent its shuttle, nil if to none.
#[inline(always)]
pub(super) fn wait(k: &Kernel, thread: ThreadRef, from: Uid, timeout: Timeout, window: Fpage, lent_to: Uid) {
    thread.receiving.window.set(window);
    thread.errand.set(Errand::Ipc);
    // An answer that has to come by way of a chief may not come directly.
    let direct = from == Uid::ANY || from.clan() == thread.uid().clan() || clan::is_direct(k, thread, from);
    let plain = direct && timeout == Timeout::NEVER && thread.is_open_window(window);
    thread.set_wait(from, plain, lent_to);
    set_timeout(k, thread, timeout);
}

/// Begins the second half of a call whose first half just succeeded: the partner exists and sends nothing yet.
pub(super) fn wait_for_answer(k: &Kernel, current: ThreadRef, request: &Request, lent_to: Uid) -> bool {
    let error = if request.receive_timeout() == Timeout::ZERO {
        Error::ReceiveTimeout
    } else if has_ended(k, current, request.from) {
        Error::PartnerDied
    } else {
        wait(k, current, request.from, request.receive_timeout(), request.window, lent_to);
        return false;
    };
    outcome::set_error(current, error);
    if lent_to != Uid::NIL {
        k.take_back(current, lent_to);
    }
    true
}

/// Rest of a send phase whose message has arrived.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    /// The receiver, if it is to run at once. It is in no queue.
    pub(super) first: Option<ThreadRef>,
    /// The thread that received it.
    pub(super) receiver: ThreadRef,
    /// Fate of the sender's shuttle.
    pub(super) passed: Passed,
}

/// Decides whether the receiver of a message, which is ready, runs at once; otherwise it is put into a queue, unless it is stopped. The
/// sender is current, or about to be.
#[inline(always)]
pub(super) fn hand_over(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, passed: Passed) -> Sent {
    let runs = passed != Passed::Kept || k.priority(receiver) >= k.priority(sender);
    let first = Some(receiver).filter(|receiver| runs && !receiver.is_stopped());
    if !runs {
        k.wake(receiver);
    }
    Sent { first, receiver, passed }
}
