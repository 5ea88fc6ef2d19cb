//! The receive phase: takes the message of a thread in the queue, or an interrupt; if there is neither, the thread waits.

use super::outcome::set_error;
use super::wait::{Sent, dequeue_sender, has_ended, wait, wait_for_answer};
use super::{block, clan, fault, interrupt, item, outcome, request::Request, taking};
use crate::kernel::Kernel;
use crate::lend::Passed;
use crate::mem::space::Progress;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, NEVER, Operation, State};
use crate::param::{self, TAKEN_PAGES};
use crate::sched::Next;
use abi::{Error, Fpage, Kind, Timeout, Uid};

/// Does the receive phase of the current thread, and chooses the thread that runs. `sent` is its send phase, if the message of one arrived.
#[inline(always)]
pub(super) fn receive_and_run(k: &Kernel, current: ThreadRef, request: &Request, sent: Option<Sent>) -> Next {
    let done = match sent {
        Some(sent) if request.is_call() => {
            let lent_to = if sent.passed == Passed::Lent { sent.receiver.uid() } else { Uid::NIL };
            wait_for_answer(k, current, request, lent_to)
        }
        _ => {
            let kind = if request.dest.is_nil() { Phase::Alone } else { Phase::Second };
            receive(k, current, request.from, request.receive_timeout(), request.window, kind)
        }
    };
    match sent.and_then(|sent| sent.first) {
        Some(partner) => Next::To(partner),
        None if done => Next::Same,
        None => Next::Any,
    }
}

/// Goes on after an answer to a fault. `sent`: none if nobody is to run at once, since the answer refused the fault, or the fault came in
/// the middle of a long message.
#[inline(always)]
pub(super) fn receive_after_answer(
    k: &Kernel,
    current: ThreadRef,
    request: &Request,
    sent: Option<Sent>,
) -> Next {
    match sent {
        Some(sent) => receive_and_run(k, current, request, Some(sent)),
        None => receive_rarely(k, current, *request, None),
    }
}

/// Does the work of [`receive_and_run`] after a send phase that is rare.
#[cold]
#[inline(never)]
pub(super) fn receive_rarely(k: &Kernel, current: ThreadRef, request: Request, sent: Option<Sent>) -> Next {
    receive_and_run(k, current, &request, sent)
}

/// Place of a receive phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The ipc has no send phase.
    Alone,
    /// Behind a send phase.
    Second,
    /// In a step of its own.
    Step,
}

/// Does the receive phase of a thread that runs or is about to. True if it is over; otherwise the thread waits.
#[inline(always)]
fn receive(k: &Kernel, thread: ThreadRef, from: Uid, timeout: Timeout, window: Fpage, phase: Phase) -> bool {
    let nothing_there = thread.senders.is_empty() && thread.line.get() == 0;
    if from == Uid::ANY && timeout == Timeout::NEVER && nothing_there {
        wait(k, thread, from, timeout, window, Uid::NIL);
        return false;
    }
    receive_looking(k, thread, from, timeout, window, phase)
}

/// Does the receive phase where there may be a message already.
#[inline(never)]
fn receive_looking(
    k: &Kernel,
    thread: ThreadRef,
    from: Uid,
    timeout: Timeout,
    window: Fpage,
    phase: Phase,
) -> bool {
    if from.is_nil() {
        let error = if phase == Phase::Alone { Error::NoSuch as u64 } else { 0 };
        thread.frame.finish(error);
        thread.frame.mode.set(Frame::SYSRET);
        return true;
    }
    if let Some(error) = cannot_receive(k, thread, from) {
        set_error(thread, error);
        return true;
    }
    thread.receiving.window.set(window);
    if let Some((line, count)) = interrupt::take_pending(k, thread, from) {
        outcome::deliver_interrupt(thread, line, count);
        return true;
    }
    let sender = match from {
        Uid::ANY => thread.senders.first(),
        _ => queued(k, thread, from),
    };
    let sender = match sender {
        None if may_be_shown(thread, from) && phase != Phase::Step => {
            look_again(k, thread, from, timeout);
            return true;
        }
        None if may_be_shown(thread, from) => shown_in_queue(thread, from),
        sender => sender,
    };
    if let Some(sender) = sender {
        match take(k, thread, sender) {
            Taken::Message => return true,
            Taken::Mapping => return false,
            // Nothing was delivered: look at the next sender, after a look at the interrupts.
            Taken::Refused => {
                look_again(k, thread, from, timeout);
                return true;
            }
        }
    }
    if timeout == Timeout::ZERO {
        set_error(thread, Error::ReceiveTimeout);
        return true;
    }
    interrupt::release(k, thread, from);
    wait(k, thread, from, timeout, window, Uid::NIL);
    false
}

/// Lets a thread look for a message again, in a step of its own. Its window is noted already.
fn look_again(k: &Kernel, thread: ThreadRef, from: Uid, timeout: Timeout) {
    thread.receiving.from.set(from);
    thread.receiving.timeout.set(timeout.0);
    thread.operation.set(Operation::Receive);
    thread.frame.mode.set(Frame::SYSRET);
    k.set_busy(thread);
}

/// The thread `from`, if it is in the queue of `thread` with a message of its own.
fn queued(k: &Kernel, thread: ThreadRef, from: Uid) -> Option<ThreadRef> {
    let is_queued = |it: &ThreadRef| {
        it.hot.accept.get() == NEVER && it.state.get() == State::Sending && it.partner.get() == thread.uid()
    };
    k.thread(from).filter(is_queued).filter(|it| clan::shown_as(*it) == from)
}

/// Whether a message that another thread shows as one from `from` may be in the queue. It can only come across the border of a clan.
fn may_be_shown(thread: ThreadRef, from: Uid) -> bool {
    let is_thread = from != Uid::ANY && from.as_interrupt().is_none();
    is_thread && from.clan() != thread.uid().clan() && !thread.senders.is_empty()
}

/// First sender in the queue of `thread` whose message is shown to come from `from`, among a limited number.
fn shown_in_queue(thread: ThreadRef, from: Uid) -> Option<ThreadRef> {
    core::iter::successors(thread.senders.first(), |it| thread.senders.after(*it))
        .take(param::QUEUE_SCAN)
        .find(|it| clan::shown_as(*it) == from)
}

fn cannot_receive(k: &Kernel, thread: ThreadRef, from: Uid) -> Option<Error> {
    if from == Uid::ANY {
        return None;
    }
    match from.as_interrupt() {
        Some(line) => interrupt::attach(k, thread, line).err(),
        None if k.thread(from).is_none() => Some(Error::NoSuch),
        None => None,
    }
}

/// Outcome of taking a message from the queue.
enum Taken {
    /// Its words are in the receiver's registers.
    Message,
    /// Its map item takes long; the receiver waits.
    Mapping,
    /// The receiver has no window for its map item; the sender has the error.
    Refused,
}

/// Takes the message of a sender in the queue of `thread`.
fn take(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> Taken {
    dequeue_sender(k, sender, thread);
    k.wheel.remove(sender);
    sender.set_ready();
    match sender.errand.get() {
        Errand::Ipc => take_ipc(k, thread, sender),
        Errand::Fault | Errand::Exception => {
            k.lend(sender, thread);
            fault::send_state_along(sender);
            fault::deliver(thread, sender, Passed::Lent);
            Taken::Message
        }
    }
}

fn take_ipc(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> Taken {
    if sender.frame.op().is_item() {
        return take_item(k, thread, sender);
    }
    let is_call = sender.is_calling();
    if block::is_long(sender) {
        return if take_block(k, thread, sender) { Taken::Mapping } else { Taken::Refused };
    }
    let short = sender.frame.op().is_short();
    outcome::deliver_words(sender, thread, if is_call { Kind::Request } else { Kind::Reply } as u32, short);
    after_taken(k, thread, sender, is_call);
    Taken::Message
}

/// Takes a message with an item from the queue of `thread`; the sender is ready and in no queue.
fn take_item(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> Taken {
    thread.errand.set(Errand::Ipc);
    let Some(plan) = item::plan(sender, thread) else {
        set_error(sender, Error::NoWindow);
        k.wake(sender);
        return Taken::Refused;
    };
    let mut progress = Progress::START_BEHIND;
    if item::step(k, plan, sender, thread, &mut progress, TAKEN_PAGES) {
        let is_call = sender.is_calling();
        item::deliver(item::place(plan), sender, thread, is_call, progress.whole);
        after_taken(k, thread, sender, is_call);
        return Taken::Message;
    }
    taking::begin_map(k, sender, thread, progress);
    thread.receiving.from.set(Uid::ANY);
    k.wake(sender);
    Taken::Mapping
}

/// Takes a long message from the queue of `thread`; the sender is ready and in no queue. False if that cannot begin: then
/// the sender has the error.
fn take_block(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> bool {
    thread.errand.set(Errand::Ipc);
    let can = block::is_block(sender) && thread.takes_block();
    if can {
        taking::begin_transfer(k, sender, thread);
    } else {
        set_error(sender, if block::is_block(sender) { Error::NoWindow } else { Error::BadArgument });
    }
    k.wake(sender);
    can
}

/// Lets the sender of a message that was taken from the queue go on; it is not current.
fn after_taken(k: &Kernel, thread: ThreadRef, sender: ThreadRef, is_call: bool) {
    if is_call {
        let timeout = Timeout(sender.receiving.timeout.get());
        sender.errand.set(Errand::Ipc);
        if timeout == Timeout::ZERO {
            set_error(sender, Error::ReceiveTimeout);
            k.wake(sender);
            return;
        }
        if has_ended(k, sender, sender.receiving.from.get()) {
            set_error(sender, Error::PartnerDied);
            k.wake(sender);
            return;
        }
        // A call that was queued lends its shuttle when the called thread takes it.
        k.lend(sender, thread);
        wait(k, sender, sender.receiving.from.get(), timeout, sender.receiving.window.get(), thread.uid());
        return;
    }
    if sender.receiving.from.get().is_nil() {
        sender.frame.finish(0);
        sender.frame.mode.set(Frame::SYSRET);
    } else {
        // Its receive phase may find a message of its own; it looks when it runs, so that this does not recurse.
        sender.operation.set(Operation::Receive);
        k.set_busy(sender);
    }
    k.wake(sender);
}

/// Continues a thread whose message was taken while it was queued, with its receive phase.
pub fn continue_receive(k: &Kernel, current: ThreadRef) -> Next {
    current.operation.set(Operation::None);
    let timeout = Timeout(current.receiving.timeout.get());
    let done = receive(
        k,
        current,
        current.receiving.from.get(),
        timeout,
        current.receiving.window.get(),
        Phase::Step,
    );
    if done { Next::Same } else { Next::Any }
}
