//! Map items: a flexpage that travels with a message, into the receiver's window (row C2).
//!
//! The sender drives: a mapping that takes longer than one budget makes the sender *busy* ([`Operation::Map`]) while the
//! receiver waits in [`State::Taking`], where no other sender reaches it, until its patience ends. If either of
//! them ends or is aborted, the other gets an error; what was mapped until then stays mapped.

use super::{
    Request, Taken, Wait, after_taken, door, fault, hand_over, receive_and_run, set_error, transfer,
};
use crate::kernel::Kernel;
use crate::lend::Stake;
use crate::mem::space::{self, Plan, Progress};
use crate::object::thread::{Errand, Frame, NEVER, Operation, State};
use crate::object::{ThreadRef, door as door_space};
use crate::param::{PREEMPTION_PAGES, TAKEN_PAGES};
use crate::sched::Next;
use abi::call::{ITEM_WHOLE, NO_ITEM};
use abi::op::Carries;
use abi::{Error, Fpage, Kind, PAGE_SIZE, Rights, Space, Uid};

/// Where the receiver takes items.
#[inline(always)]
fn window(receiver: ThreadRef) -> Fpage {
    if receiver.hot.accept.get() != NEVER {
        receiver.open_window()
    } else if receiver.errand.get() == Errand::Ipc {
        receiver.window.get()
    } else {
        Fpage::WHOLE
    }
}

/// Where the sender's item goes in the receiver's window. A fault is answered by memory or by ports.
#[inline(always)]
fn plan(sender: ThreadRef, receiver: ThreadRef) -> Option<Plan> {
    let item = Fpage(sender.frame.w[6].get());
    let window = window(receiver);
    let is_port = item.space() == Space::Port;
    let any = is_port && window == Fpage::WHOLE && receiver.errand.get() == Errand::Fault;
    let window = if any { Fpage::ports(0, 16) } else { window };
    space::plan(item, sender.frame.w[7].get(), window)
}

/// Maps an item of one page into a window of memory, if that is simple. Returns where it arrived.
#[inline(always)]
fn map_single(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) -> Option<Fpage> {
    const PAGE: u64 = 12 << 4;
    let (item, window) = (Fpage(sender.frame.w[6].get()), window(receiver));
    let is_page = item.0 & (Fpage::SPACE_AND_SIZE | Rights::GRANT.0 as u64) == PAGE;
    if !is_page || window.is_nil() || window.space() != Space::Memory {
        return None;
    }
    let hot_spot = sender.frame.w[7].get() & ((1 << window.log2()) - 1);
    let target = window.base() + (hot_spot & !(PAGE_SIZE - 1));
    let done = space::map_single(k, (sender.task(), item.base()), (receiver.task(), target), item.rights());
    done.then_some(Fpage(target | PAGE | item.rights().0 as u64))
}

/// The current thread sends a message with an item to a partner that waits for it.
#[inline(always)]
pub(super) fn send_item(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: &Request) -> Next {
    if let Some(place) = map_single(k, current, partner) {
        return finish(k, place, (current, partner), request, true);
    }
    send_long_item(k, current, partner, *request)
}

#[inline(never)]
fn send_long_item(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    let Some(plan) = plan(current, partner) else {
        set_error(current, Error::NoWindow);
        return Next::Same;
    };
    let mut progress = Progress::START;
    if step(k, plan, current, partner, &mut progress, PREEMPTION_PAGES) {
        return finish(k, place(plan), (current, partner), &request, progress.whole);
    }
    request.suspend(current);
    let is_answer = matches!(partner.wait(), Wait::Answer(_));
    begin_map(k, current, partner, progress);
    // Who faulted in the middle of an ipc of its own needs what that has left there.
    if !is_answer {
        partner.then_from.set(current.uid());
    }
    Next::Same
}

/// `thread` takes a message with an item from its queue; the sender is ready and in no queue.
pub(super) fn take_item(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> Taken {
    thread.errand.set(Errand::Ipc);
    let Some(plan) = plan(sender, thread) else {
        set_error(sender, Error::NoWindow);
        k.wake(sender);
        return Taken::Refused;
    };
    let mut progress = Progress::START_BEHIND;
    if step(k, plan, sender, thread, &mut progress, TAKEN_PAGES) {
        let is_call = sender.is_calling();
        deliver(place(plan), sender, thread, is_call, progress.whole);
        after_taken(k, thread, sender, is_call);
        return Taken::Message;
    }
    begin_map(k, sender, thread, progress);
    thread.then_from.set(Uid::ANY);
    k.wake(sender);
    Taken::Mapping
}

/// How the item of a door's call or return is to be mapped for the receiver, which waits for it.
#[inline(always)]
pub(super) fn plan_by_door(sender: ThreadRef, receiver: ThreadRef, is_call: bool) -> Result<Plan, Error> {
    let item = Fpage(sender.frame.w[6].get());
    if !item.is_valid() {
        return Err(Error::BadArgument);
    }
    if !door::may_hand(sender, receiver) {
        return Err(Error::Denied);
    }
    if !(is_call || receiver.takes_item()) {
        return Err(Error::NoWindow);
    }
    receiver.errand.set(Errand::Ipc);
    receiver.window.set(receiver.standing.get());
    space::plan(item, sender.frame.w[7].get(), receiver.standing.get()).ok_or(Error::NoWindow)
}

/// Hands the identifier that is an item of a door's call or return to its receiver, if that is simple. Returns where it arrived.
#[inline(always)]
fn hand_identifier(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) -> Option<Fpage> {
    let (item, window) = (Fpage(sender.frame.w[6].get()), receiver.standing.get());
    let is_simple = item.is_identifier() && window.is_identifier();
    if !is_simple || sender.uid().clan() != receiver.uid().clan() {
        return None;
    }
    let (number, target) = (item.0 >> 12, window.0 >> 12);
    let done = door_space::map_single(k, (sender.task(), number), (receiver.task(), target), item.rights());
    done.then_some(window.with_rights(item.rights().and(Rights::RWX)))
}

/// The current thread sends the item of a door's call or return.
pub(super) fn go(k: &Kernel, current: ThreadRef, receiver: ThreadRef, is_call: bool) -> Result<Next, Error> {
    if (is_call || receiver.takes_item())
        && let Some(place) = hand_identifier(k, current, receiver)
    {
        return Ok(finish_by_door(k, place, (current, receiver), is_call, true));
    }
    let plan = plan_by_door(current, receiver, is_call)?;
    let mut progress = Progress::START;
    if step(k, plan, current, receiver, &mut progress, PREEMPTION_PAGES) {
        return Ok(finish_by_door(k, place(plan), (current, receiver), is_call, progress.whole));
    }
    receiver.then_from.set(if is_call { Uid::NIL } else { current.uid() });
    begin_map(k, current, receiver, progress);
    Ok(Next::Same)
}

/// A caller that waited for a server, and is ready, sends it its item from now on.
pub(super) fn begin_by_door(k: &Kernel, caller: ThreadRef, server: ThreadRef) {
    server.then_from.set(Uid::NIL);
    begin_map(k, caller, server, Progress::START);
    k.wake(caller);
}

/// The item is mapped: the call or return arrives.
fn finish_by_door(
    k: &Kernel,
    place: Fpage,
    (current, receiver): (ThreadRef, ThreadRef),
    is_call: bool,
    whole: bool,
) -> Next {
    door::arrive(k, current, receiver, (Carries::Item, is_call), 0, |kind| {
        deliver_as(kind, place, current, receiver, whole)
    })
}

/// The sender of a mapping in progress gets an error.
fn end_sender(k: &Kernel, sender: ThreadRef, error: Error) {
    sender.operation.set(Operation::None);
    door::stays(k, sender);
    set_error(sender, error);
}

/// Maps for one budget. True when the item is done.
#[inline(always)]
fn step(
    k: &Kernel,
    plan: Plan,
    sender: ThreadRef,
    receiver: ThreadRef,
    progress: &mut Progress,
    mut budget: usize,
) -> bool {
    space::map(k, plan, sender.task(), receiver.task(), progress, &mut budget).is_ok()
}

fn begin_map(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, progress: Progress) {
    let (noted, whole) = (progress.noted(), progress.whole);
    begin(k, sender, receiver, Operation::Map { to: receiver.uid(), noted, whole });
    // For its pager a thread waits as long as that likes.
    if receiver.errand.get() == Errand::Ipc {
        transfer::limit(k, receiver);
    }
}

/// The sender is busy with `operation` from now on, and the receiver waits for that.
pub(super) fn begin(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, operation: Operation) {
    k.wheel.remove(receiver);
    match receiver.stake() {
        // What the thread does before the message is there, as a page fault, is its own.
        Stake::Nothing => k.go_home(receiver),
        Stake::Claims(from) => receiver.lent_to.set(from),
        Stake::Holds => {}
    }
    if receiver.hot.accept.get() != NEVER {
        receiver.window.set(receiver.open_window());
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

/// The busy sender goes on.
pub fn continue_map(k: &Kernel, current: ThreadRef, to: Uid, noted: u64, whole: bool) -> Next {
    let Some(receiver) = k.thread(to) else {
        end_sender(k, current, Error::PartnerDied);
        return Next::Same;
    };
    let plan = plan(current, receiver).expect("checked when the message was accepted");
    let mut progress = Progress::resumed(noted, whole);
    if !step(k, plan, current, receiver, &mut progress, PREEMPTION_PAGES) {
        let (noted, whole) = (progress.noted(), progress.whole);
        current.operation.set(Operation::Map { to, noted, whole });
        return Next::Same;
    }
    current.operation.set(Operation::None);
    current.frame.mode.set(Frame::SYSRET);
    if let Some((_, is_call)) = door::carried(current) {
        return finish_by_door(k, place(plan), (current, receiver), is_call, progress.whole);
    }
    let request = Request::resumed(current);
    finish(k, place(plan), (current, receiver), &request, progress.whole)
}

/// Delivers the words, with the item's place in w6.
#[inline(always)]
fn deliver(place: Fpage, sender: ThreadRef, receiver: ThreadRef, is_call: bool, whole: bool) {
    deliver_as(if is_call { Kind::Request } else { Kind::Reply }, place, sender, receiver, whole);
}

#[inline(always)]
fn deliver_as(kind: Kind, place: Fpage, sender: ThreadRef, receiver: ThreadRef, whole: bool) {
    transfer(sender, receiver, kind as u32 & !NO_ITEM & if whole { !0 } else { !ITEM_WHOLE }, false);
    receiver.frame.w[6].set(place.0);
}

/// Where an item arrived, in the receiver's addresses.
pub(super) fn place(plan: Plan) -> Fpage {
    let shift = if plan.space == Space::Memory { 0 } else { 12 };
    let place = plan.to << shift | (plan.space as u64) << 10 | (plan.log2 as u64) << 4;
    Fpage(place | plan.rights.and(Rights::RWX).0 as u64)
}

/// The item is mapped: the message arrives, and the current sender goes on with its receive phase.
#[inline(always)]
fn finish(
    k: &Kernel,
    place: Fpage,
    (current, receiver): (ThreadRef, ThreadRef),
    request: &Request,
    whole: bool,
) -> Next {
    if receiver.errand.get() != Errand::Ipc {
        return fault::answer_mapped(k, current, receiver, request, whole);
    }
    k.wheel.remove(receiver);
    let passed = k.pass(current, receiver, request.is_call());
    deliver(place, current, receiver, request.is_call(), whole);
    let sent = hand_over(k, current, receiver, passed);
    receive_and_run(k, current, request, Some(sent))
}

/// The receiver of a mapping in progress is aborted, or its patience is over: both sides get an error.
pub(super) fn abandon(k: &Kernel, receiver: ThreadRef, error: Error, senders: Error) {
    leave_mapping(k, receiver, senders);
    release_receiver(k, receiver, error);
}

/// The sender of a mapping in progress is aborted: both sides get an error.
pub(super) fn abandon_sending(k: &Kernel, sender: ThreadRef, to: Uid) {
    if let Some(receiver) = k.thread(to) {
        release_receiver(k, receiver, Error::ReceiveAborted);
    }
    end_sender(k, sender, Error::SendAborted);
}

/// Whoever is busy mapping to this thread, if somebody is, gets an error.
pub(super) fn leave_mapping(k: &Kernel, receiver: ThreadRef, error: Error) {
    let Some(sender) = k.thread(receiver.partner.get()) else { return };
    if matches!(sender.operation.get(), Operation::Map { to, .. } if to == receiver.uid()) {
        end_sender(k, sender, error);
    }
}

/// The sender of a mapping in progress is gone: the receiver gets an error.
pub(super) fn release_receiver(k: &Kernel, receiver: ThreadRef, error: Error) {
    k.wheel.remove(receiver);
    k.regain(receiver, None);
    if receiver.errand.get() != Errand::Ipc {
        return fault::unanswered(k, receiver);
    }
    if door::was_to_be_called(receiver) {
        return door::not_called(k, receiver);
    }
    set_error(receiver, error);
    receiver.set_ready();
    k.wake(receiver);
}
