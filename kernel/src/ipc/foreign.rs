//! Foreign calls: system calls of another system, which a handler does for its threads (row C7, decision 0082).
//!
//! A thread to which native calls are denied calls with a number that is not native. The call goes to the handler of its exceptions. A handler
//! that takes foreign calls has it in all registers, as if it had been called itself, and returns in the same way; any other gets an
//! exception. The call lends its shuttle and its extended state like every call, so a thread and its handler are one activity.
//!
//! The fast path has such calls in `foreign.s`. *If it accepts, [`fault::deliver_foreign`] and [`answer`] would have done the same.*

use super::fault;
use super::outcome;
use super::receive::receive_rarely;
use super::request::Request;
use super::wait::hand_over;
use crate::kernel::Kernel;
use crate::lend::Passed;
use crate::lend::word::Stake;
use crate::object::ThreadRef;
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{Errand, NO_STACK, Operation, Wait};
use crate::sched::Next;
use abi::{Error, Uid};

/// Longest chain of callers, and most callers that are cut off, among which the one is sought whose foreign call a handler does.
const CHAIN_MAX: usize = 16;

/// Returns from a foreign call for the current thread, which then waits and takes others.
#[cold]
#[inline(never)]
pub fn answer(k: &Kernel, current: ThreadRef) -> Next {
    let (result, stack) = (current.hot.sp.get(), current.foreign.stack.get());
    if stack == NO_STACK {
        return outcome::fail(current, Error::BadState);
    }
    let in_chain = caller_in_chain(k, current);
    if in_chain.is_none() && !k.is_settled() {
        // Its caller's shuttle may just have been taken from it. The next dispatch, or one soon after that, says so.
        current.operation.set(Operation::ForeignReturn);
        k.set_busy(current);
        k.look_anew();
        return Next::Same;
    }
    let caller = in_chain.or_else(|| caller_cut_off(current));
    current.lost.set(ShuttleRef::NONE);
    current.hot.sp.set(stack);
    current.crossing.bits.set(0);
    let request = Request::foreign_return(current, caller.map_or(Uid::NIL, |caller| caller.uid()));
    let sent = caller.and_then(|caller| {
        caller.frame.take_registers(&current.frame, result);
        if !caller.is_folded_foreign() {
            return fault::finish(k, current, caller, false, true);
        }
        caller.frame.leave_with_flags(caller.hot.key.get());
        let passed = if k.regain(caller, Some(current)) { Passed::Returned } else { Passed::Kept };
        caller.set_ready();
        Some(hand_over(k, current, caller, passed))
    });
    receive_rarely(k, current, request, sent)
}

/// Returns from the foreign call of a thread that waits for it, and whose registers are set. The handler, which has more to do, goes on unless the thread is more
/// urgent, or it worked on the thread's shuttle.
pub fn answer_later(k: &Kernel, current: ThreadRef, caller: ThreadRef) -> Next {
    let passed = k.pass_in(current, caller, Wait::Answer(current.uid()), false);
    caller.errand.set(Errand::Ipc);
    caller.set_ready();
    if passed == Passed::Kept {
        k.wake(caller);
        return Next::Same;
    }
    hand_over(k, current, caller, passed).first.map_or(Next::Same, Next::To)
}

/// Whether a thread waits for the current one to return from its foreign call.
pub fn waits_for(current: ThreadRef, caller: ThreadRef) -> bool {
    caller.wait() == Wait::Answer(current.uid()) && caller.waits_for_return()
}

/// Goes on with a return whose caller was not known yet.
pub fn continue_answer(k: &Kernel, current: ThreadRef) -> Next {
    current.operation.set(Operation::None);
    answer(k, current)
}

/// The thread whose foreign call the current thread does: the last before it in the chain of calls that begins at the owner of its shuttle.
fn caller_in_chain(k: &Kernel, current: ThreadRef) -> Option<ThreadRef> {
    let mut thread = k.shuttle_of(current);
    for _ in 0..CHAIN_MAX {
        match thread.stake() {
            Stake::Claims(to) if to == current.uid() => {
                return Some(thread).filter(|&thread| thread.waits_for_return());
            }
            Stake::Claims(to) => thread = k.thread(to)?,
            _ => return None,
        }
    }
    None
}

/// The thread whose foreign call the current thread does, if the shuttle was taken from the chain: it is cut off, and is the last to claim the shuttle
/// that the current thread was on. Others that are cut off from it made calls which it has left unanswered.
fn caller_cut_off(current: ThreadRef) -> Option<ThreadRef> {
    let (lost, cut_off) = (current.lost.get(), &current.inherited.cut_off);
    let callers = core::iter::successors(cut_off.first(), |&caller| cut_off.after(caller)).take(CHAIN_MAX);
    let callers = callers.filter(|&caller| {
        caller.hot.shuttle.get().same_owner(lost)
            && caller.stake() == Stake::Claims(current.uid())
            && caller.waits_for_return()
    });
    // The current thread itself may have taken the shuttle back, from somebody whom it had called, under a newer reference than that of its caller.
    let cuts = |claim: ShuttleRef| lost.cuts_since(claim);
    let caller = callers.min_by_key(|caller| cuts(caller.hot.shuttle.get()))?;
    let unwanted = current.unwanted.get();
    let has_ended = unwanted.same_owner(lost) && cuts(unwanted) <= cuts(caller.hot.shuttle.get());
    (!has_ended).then_some(caller)
}
