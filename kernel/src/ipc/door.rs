//! Calls through doors, as far as the fast path leaves them to Rust (rows D1–D8, D10).
//!
//! A call through a door is a call whose partner the kernel chooses: a server of the door's task that waits for one, or the next
//! that will ([`super::serve`]). The server runs on the caller's shuttle and begins at the door's entry, on its own stack; a
//! return gives the shuttle back, and nothing of the call is left. The caller waits for the return of this very server
//! ([`Wait::Return`]), so a return to a caller that has been cut off, or has ended, finds nobody.

use super::{item, outcome, request, serve, taking};
use crate::kernel::Kernel;
use crate::mem::doors;
use crate::mem::space::Progress;
use crate::object::ThreadRef;
use crate::object::door::thread_at;
use crate::object::thread::{Wait, taken_by};
use crate::param::PREEMPTION_PAGES;
use crate::sched::Next;
use abi::op::{self, Carries, Op};
use abi::{Error, Fpage, Kind, Uid};

/// Rest of the work on a call or return.
pub(super) enum Step {
    /// Nothing: this is what the handler returns.
    Run(Next),
    /// To copy the block of the current thread to this receiver, which waits for it.
    Transfer(ThreadRef),
}

/// Calls through a door, for the current thread.
pub(super) fn call(k: &Kernel, current: ThreadRef) -> Step {
    current.crossing.bits.set(0);
    let flags = current.frame.op().short_flags();
    current.receiving.takes.set(taken_by(flags));
    let number = current.frame.partner() as u32;
    let Some(door) = doors::shown(k, current.task(), number) else {
        return Step::Run(serve::no_such_door(current));
    };
    let task = door.task();
    if task.is_dying() {
        return Step::Run(outcome::fail(current, Error::PartnerDied));
    }
    if flags.has(op::ALERTABLE) && !request::begin_alertable(current) {
        return Step::Run(outcome::fail(current, Error::SendAborted));
    }
    let Some(server) = task.doors.servers.take() else { return Step::Run(serve::queue(k, current, task)) };
    let carries = flags.carries();
    if carries == Carries::Words {
        serve::begin_call(k, server, current, door);
        return Step::Run(Next::To(server));
    }
    server.server.door.set(Some(door));
    go(k, current, server, carries, Uid::NIL).unwrap_or_else(|error| {
        task.doors.servers.enlist(server);
        Step::Run(outcome::fail(current, error))
    })
}

/// Returns from the call that the current thread serves; then it waits for its next.
pub(super) fn give_back(k: &Kernel, current: ThreadRef) -> Step {
    if current.server.pool.get().is_none() {
        return Step::Run(outcome::fail(current, Error::BadState));
    }
    current.crossing.bits.set(0);
    let caller =
        thread_at(current.server.caller.get()).filter(|caller| caller.wait() == Wait::Return(current.uid()));
    let Some(caller) = caller else {
        k.go_home(current);
        if current.frame.op() != Op::DOOR_RETURN {
            // The server still has the thing that it was to hand over.
            return Step::Run(outcome::fail(current, Error::PartnerDied));
        }
        return Step::Run(if serve::become_idle(k, current) { Next::Same } else { Next::Any });
    };
    if current.task().is_dying() {
        // It gains nothing any more, so its answer may come of something that it did not get.
        outcome::set_error(caller, Error::PartnerDied);
        return Step::Run(end_call(k, current, caller));
    }
    let carries = current.frame.op().short_flags().carries();
    if carries == Carries::Words {
        outcome::copy_words(current, caller, Kind::DoorReturn);
        serve::count(k, current, caller, (Carries::Words, false), 0);
        return Step::Run(end_call(k, current, caller));
    }
    match go(k, current, caller, carries, current.uid()) {
        Ok(step) => step,
        // The server could not do better, but it still has the thing that did not arrive.
        Err(error @ (Error::NoWindow | Error::Denied)) => {
            outcome::set_error(caller, error);
            outcome::set_error(current, error);
            Step::Run(let_go(k, current, caller, Then::GoesOn))
        }
        Err(error) => Step::Run(outcome::fail(current, error)),
    }
}

/// Sends a call or return of the current thread that carries something. `from`: nil for a call.
fn go(
    k: &Kernel,
    current: ThreadRef,
    receiver: ThreadRef,
    carries: Carries,
    from: Uid,
) -> Result<Step, Error> {
    if carries == Carries::Item {
        return go_with_item(k, current, receiver, from.is_nil()).map(Step::Run);
    }
    if let Some(error) = serve::refused(carries, current, receiver, from.is_nil()) {
        return Err(error);
    }
    taking::begin_transfer_from(k, current, receiver, from);
    Ok(Step::Transfer(receiver))
}

/// Lets a call or return of the current thread arrive, whose block or item is with the receiver, unless the door has gone meanwhile:
/// `deliver` brings the words, for a message of this kind. So many `bytes` were copied.
pub(super) fn arrive(
    k: &Kernel,
    current: ThreadRef,
    receiver: ThreadRef,
    (carries, is_call): (Carries, bool),
    bytes: u64,
    deliver: impl FnOnce(Kind),
) -> Next {
    k.wheel.remove(receiver);
    if !is_call {
        // The caller's wait tells whose shuttle it has lent, as long as there is one.
        end_claim(k, current, receiver);
        deliver(Kind::DoorReturn);
        serve::count(k, current, receiver, (carries, false), bytes);
        let then = if carries == Carries::Block { Then::IsIdleLater } else { Then::IsIdle };
        return part(k, current, receiver, then);
    }
    let Some(door) = receiver.server.door.get() else {
        serve::not_called(k, receiver);
        return outcome::fail(current, Error::NoSuch);
    };
    deliver(Kind::DoorCall);
    serve::count(k, current, receiver, (carries, true), bytes);
    serve::enter(k, receiver, current, door);
    // A server that was stopped meanwhile has the call, and begins with it when it is resumed.
    if receiver.is_stopped() { Next::Any } else { Next::To(receiver) }
}

/// Lets a call or return arrive whose item is mapped.
pub(super) fn finish_item(
    k: &Kernel,
    place: Fpage,
    (current, receiver): (ThreadRef, ThreadRef),
    is_call: bool,
    whole: bool,
) -> Next {
    arrive(k, current, receiver, (Carries::Item, is_call), 0, |kind| {
        item::deliver_as(kind, place, current, receiver, whole)
    })
}

/// Sends the item of a call or return of the current thread.
fn go_with_item(k: &Kernel, current: ThreadRef, receiver: ThreadRef, is_call: bool) -> Result<Next, Error> {
    if (is_call || receiver.takes_item())
        && let Some(place) = item::hand_identifier(k, current, receiver)
    {
        return Ok(finish_item(k, place, (current, receiver), is_call, true));
    }
    let plan = item::plan_by_door(current, receiver, is_call)?;
    let mut progress = Progress::START;
    if item::step(k, plan, current, receiver, &mut progress, PREEMPTION_PAGES) {
        return Ok(finish_item(k, item::place(plan), (current, receiver), is_call, progress.whole));
    }
    receiver.receiving.from.set(if is_call { Uid::NIL } else { current.uid() });
    taking::begin_map(k, current, receiver, progress);
    Ok(Next::Same)
}

/// Ends a call: its caller has what it waited for, and goes on; the current thread waits for its next call.
fn end_call(k: &Kernel, current: ThreadRef, caller: ThreadRef) -> Next {
    let_go(k, current, caller, Then::IsIdle)
}

/// State of a server whose call is over.
enum Then {
    /// It waits for its next call.
    IsIdle,
    /// It does so from its next step on, since this one was long.
    IsIdleLater,
    /// It goes on, since its return has failed.
    GoesOn,
}

/// Lets the caller go on, and the current thread, too, or wait for its next call.
#[inline(always)]
fn let_go(k: &Kernel, current: ThreadRef, caller: ThreadRef, then: Then) -> Next {
    end_claim(k, current, caller);
    part(k, current, caller, then)
}

/// Gives a caller, which still waits, its shuttle back. The current thread is on its own afterwards.
#[inline(always)]
fn end_claim(k: &Kernel, current: ThreadRef, caller: ThreadRef) {
    k.ends_call(current);
    if !k.regain(caller, Some(current)) {
        k.go_home(current);
    }
}

/// Does the rest of [`let_go`] for a caller that has its shuttle.
#[inline(always)]
fn part(k: &Kernel, current: ThreadRef, caller: ThreadRef, then: Then) -> Next {
    caller.frame.set_partner(0);
    caller.set_ready();
    let goes_on = match then {
        Then::IsIdle => serve::become_idle(k, current),
        Then::IsIdleLater => serve::become_idle_later(k, current),
        Then::GoesOn => true,
    };
    if goes_on {
        k.wake(current);
    }
    if caller.is_stopped() { Next::Any } else { Next::To(caller) }
}
