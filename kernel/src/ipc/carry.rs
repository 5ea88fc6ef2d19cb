//! Messages that carry an item or a block, step by step: the sender does the work, in its own space.
//!
//! A page fault on the sender's side of a block is the sender's, in the middle of its ipc. One on the receiver's side is sent to the
//! receiver's pager as the receiver's ([`Operation::Taken`]), and the sender waits for it ([`State::Stalled`]). If sender or receiver
//! ends or is aborted, the other gets an error; what was mapped until then stays mapped.
//!
//! Calls and returns through doors enter here too, since they may carry a block.

use super::block::{self, Halt};
use super::door::{self, Step};
use super::receive::{receive_after_answer, receive_and_run};
use super::request::{self, LENIENT, Request};
use super::wait::hand_over;
use super::{broken, end, fault, item, outcome, plain, taking};
use crate::kernel::Kernel;
use crate::mem::space::Progress;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, Operation, Place, State, Wait};
use crate::param::PREEMPTION_PAGES;
use crate::sched::Next;
use abi::{Error, Fpage, Kind, Rights, Uid};

/// Does [`plain::REPLY_WITH_ITEM`], if it is plain: `leave` leaves the kernel with its receiver. `None` if nothing was done.
#[inline(always)]
pub(super) fn reply_with_item(
    k: &Kernel,
    current: ThreadRef,
    leave: impl FnOnce(ThreadRef) -> Next,
) -> Option<Next> {
    let partner = plain::receiver(k, current)?;
    let place = match item::map_single(k, current, partner) {
        Some(place) => place,
        None => {
            let (plan, progress) = item::map_run(k, current, partner)?;
            if !progress.is_done(plan) {
                current.crossing.bits.set(0);
                let request = Request::general(current).expect("a plain reply is valid");
                return Some(go_on_later(k, current, partner, request, progress));
            }
            item::place(plan)
        }
    };
    plain::reply(k, current, partner, place);
    Some(leave(partner))
}

/// Sends the current thread's message with an item to a partner that waits for it.
#[inline(always)]
pub(super) fn send_item(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: &Request) -> Next {
    if let Some(place) = item::map_single(k, current, partner) {
        return finish_item(k, place, (current, partner), request, true);
    }
    send_long_item(k, current, partner, *request)
}

#[inline(never)]
fn send_long_item(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    let Some(plan) = item::plan(current, partner) else {
        outcome::set_error(current, Error::NoWindow);
        return Next::Same;
    };
    let mut progress = Progress::START;
    if item::step(k, plan, current, partner, &mut progress, PREEMPTION_PAGES) {
        return finish_item(k, item::place(plan), (current, partner), &request, progress.whole);
    }
    go_on_later(k, current, partner, request, progress)
}

/// Lets the current thread go on with an item that takes more than a step, after a look at the interrupts.
#[inline(never)]
fn go_on_later(
    k: &Kernel,
    current: ThreadRef,
    partner: ThreadRef,
    request: Request,
    progress: Progress,
) -> Next {
    request.suspend(current);
    let is_answer = matches!(partner.wait(), Wait::Answer(_));
    taking::begin_map(k, current, partner, progress);
    // A receiver that faulted in the middle of an ipc of its own needs what that ipc has left there.
    if !is_answer {
        partner.receiving.from.set(current.uid());
    }
    Next::Same
}

/// Goes on with the busy sender's item.
pub fn continue_map(k: &Kernel, current: ThreadRef, to: Uid, noted: u64, whole: bool) -> Next {
    let Some(receiver) = k.thread(to) else {
        broken::end_mapping(k, current, Error::PartnerDied);
        return Next::Same;
    };
    let plan = item::plan(current, receiver).expect("checked when the message was accepted");
    let mut progress = Progress::resumed(noted, whole);
    if !item::step(k, plan, current, receiver, &mut progress, PREEMPTION_PAGES) {
        let (noted, whole) = (progress.noted(), progress.whole);
        current.operation.set(Operation::Map { to, noted, whole });
        return Next::Same;
    }
    current.operation.set(Operation::None);
    current.frame.mode.set(Frame::SYSRET);
    if let Some((_, is_call)) = request::carried(current) {
        return door::finish_item(k, item::place(plan), (current, receiver), is_call, progress.whole);
    }
    let request = Request::resumed(current);
    finish_item(k, item::place(plan), (current, receiver), &request, progress.whole)
}

/// Lets a message arrive whose item is mapped; then the current sender goes on with its receive phase.
#[inline(always)]
fn finish_item(
    k: &Kernel,
    place: Fpage,
    (current, receiver): (ThreadRef, ThreadRef),
    request: &Request,
    whole: bool,
) -> Next {
    if receiver.errand.get() != Errand::Ipc {
        let sent = fault::answer_mapped(k, current, receiver, request.is_call(), whole);
        return receive_after_answer(k, current, request, sent);
    }
    k.wheel.remove(receiver);
    let passed = k.pass(current, receiver, request.is_call());
    item::deliver(place, current, receiver, request.is_call(), whole);
    let sent = hand_over(k, current, receiver, passed);
    receive_and_run(k, current, request, Some(sent))
}

/// Sends the current thread's message with a block to a partner that waits for it.
#[inline(never)]
pub(super) fn send_block(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    let error = match partner.takes_block() {
        _ if !block::is_block(current) => Error::BadArgument,
        false => Error::NoWindow,
        true => {
            request.suspend(current);
            taking::begin_transfer(k, current, partner);
            return start(k, current, partner);
        }
    };
    if request.has(LENIENT) && error == Error::NoWindow {
        // A partner that waits for this thread alone, and was meant, has got its answer, if one that it did not want.
        if partner.wait() != Wait::Open && partner.uid() == request.dest {
            end::fail_blocked(k, partner, error);
        }
        return receive_and_run(k, current, &request, None);
    }
    outcome::set_error(current, error);
    Next::Same
}

/// Goes on with the busy sender's block.
pub fn continue_transfer(k: &Kernel, current: ThreadRef, to: Uid, at: Place) -> Next {
    let Some(receiver) = k.thread(to) else {
        broken::end_transfer(k, current, Error::PartnerDied, at.moved);
        return Next::Same;
    };
    proceed(k, current, receiver, at)
}

/// Makes the first step of a transfer, unless the fast path has made it.
#[inline(always)]
fn start(k: &Kernel, current: ThreadRef, receiver: ThreadRef) -> Next {
    let Operation::Transfer { mut at, .. } = current.operation.get() else {
        unreachable!("the transfer has begun")
    };
    if core::mem::take(&mut at.pauses) {
        return stop(k, current, receiver, at, Halt::Again);
    }
    proceed(k, current, receiver, at)
}

fn proceed(k: &Kernel, current: ThreadRef, receiver: ThreadRef, mut at: Place) -> Next {
    match block::run(k, current, receiver, &mut at) {
        Ok(()) => finish_block(k, current, receiver, at),
        Err(halt) => stop(k, current, receiver, at, halt),
    }
}

/// Ends a step of a transfer.
fn stop(k: &Kernel, current: ThreadRef, receiver: ThreadRef, mut at: Place, halt: Halt) -> Next {
    if !core::mem::replace(&mut at.receiver_limited, true) {
        taking::limit(k, receiver);
    }
    current.operation.set(Operation::Transfer { to: receiver.uid(), at });
    k.set_busy(current);
    match halt {
        Halt::Again => Next::Same,
        Halt::Mine(address) => my_fault(k, current, receiver, at, address),
        Halt::Theirs(address, rights) => their_fault(k, current, receiver, at, (address, rights)),
        Halt::Failed(mine, theirs) => {
            broken::break_off(k, current, receiver, mine, theirs);
            Next::Same
        }
    }
}

/// Raises a fault at a page that the current sender does not have. The receiver waits for that no longer than it wants to.
#[inline(never)]
fn my_fault(k: &Kernel, current: ThreadRef, receiver: ThreadRef, mut at: Place, address: u64) -> Next {
    if current.fault.pager.get() == receiver.uid() || !taking::awaits_faults(receiver) {
        broken::break_off(k, current, receiver, Error::NoAccess, Error::NoAccess);
        return Next::Same;
    }
    at.faulted = true;
    current.operation.set(Operation::Transfer { to: receiver.uid(), at });
    fault::fault_in_call(k, current, address, Rights::R)
}

/// Raises a fault at a page that the receiver does not have. The sender waits for that no longer than it wants to.
fn their_fault(
    k: &Kernel,
    current: ThreadRef,
    receiver: ThreadRef,
    mut at: Place,
    (address, rights): (u64, Rights),
) -> Next {
    let pager = k.thread(receiver.fault.pager.get()).filter(|&pager| pager != receiver && pager != current);
    let (Some(pager), true) = (pager, taking::awaits_faults(current)) else {
        broken::break_off(k, current, receiver, Error::NoAccess, Error::NoAccess);
        return Next::Same;
    };
    if !core::mem::replace(&mut at.sender_limited, true) {
        taking::limit(k, current);
    } else if !taking::file_limit(k, current) {
        broken::break_off(k, current, receiver, Error::NoAccess, Error::NoAccess);
        return Next::Same;
    }
    k.wheel.remove(receiver);
    at.faulted = true;
    current.operation.set(Operation::Transfer { to: receiver.uid(), at });
    current.state.set(State::Stalled);
    current.partner.set(receiver.uid());
    // The fault is the receiver's, on its own shuttle, which the sender may still be on.
    k.ends_service(current);
    let returned = k.regain(receiver, Some(current));
    receiver.operation.set(Operation::Taken { from: current.uid(), returned });
    receiver.errand.set(Errand::Fault);
    fault::note(receiver, address, rights);
    fault::post(k, receiver, pager);
    Next::Any
}

/// Lets a message arrive all of whose block is there; then the current sender goes on with its receive phase.
fn finish_block(k: &Kernel, current: ThreadRef, receiver: ThreadRef, at: Place) -> Next {
    k.wheel.remove(receiver);
    current.operation.set(Operation::None);
    current.frame.mode.set(Frame::SYSRET);
    if let Some(carries) = request::carried(current) {
        let deliver = |kind| block::deliver(current, receiver, kind, at.cut);
        return door::arrive(k, current, receiver, carries, at.moved, deliver);
    }
    let request = Request::resumed(current);
    let kind = if request.is_call() { Kind::Request } else { Kind::Reply };
    let passed = k.pass(current, receiver, request.is_call());
    block::deliver(current, receiver, kind, at.cut);
    let sent = hand_over(k, current, receiver, passed);
    receive_and_run(k, current, &request, Some(sent))
}

/// Calls through a door, for the current thread.
pub fn call_door(k: &Kernel, current: ThreadRef) -> Next {
    act_on(k, current, door::call(k, current))
}

/// Returns from the call that the current thread serves; then it waits for its next.
pub fn return_from_door(k: &Kernel, current: ThreadRef) -> Next {
    act_on(k, current, door::give_back(k, current))
}

/// Goes on after the part of a call or return that needs no transfer.
#[inline(always)]
fn act_on(k: &Kernel, current: ThreadRef, step: Step) -> Next {
    match step {
        Step::Run(next) => next,
        Step::Transfer(receiver) => start(k, current, receiver),
    }
}
