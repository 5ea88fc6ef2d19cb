//! The send phase of an ipc. It can do all that the fast path does, and the rest (rows P1, P8–P12, C6).
//!
//! A message goes from a sender to a receiver, both blocked or current, in one step that cannot fail half-way: [`send`] finds
//! out whether the partner takes it, [`outcome::deliver_words`] moves the words, [`hand_over`] decides which thread goes on on which
//! shuttle, [`receive_and_run`] is the second phase. A message that carries more than words goes to [`carry`], an answer to a fault to
//! [`fault`].

use super::outcome::fail;
use super::receive::{receive_after_answer, receive_and_run};
use super::request::{self, LENIENT, Request, SHORT};
use super::wait::{accepts, enqueue_sender, hand_over, set_timeout, wait_of};
use super::{carry, clan, fault, known_route, outcome, plain};
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Wait};
use crate::sched::Next;
use abi::op::{self, Op};
use abi::{Error, Kind, Timeout, Uid};

/// Does a short form of the system call. `leave` leaves the kernel with a thread that goes on at once.
#[inline(always)]
pub fn short(k: &Kernel, current: ThreadRef, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    perform(k, current, &Request::short(current), leave)
}

/// Whether the general form has none but frequent flags.
#[inline(always)]
pub fn is_usual(op: Op) -> bool {
    op.has_only(op::ITEM | op::TAKES_BLOCK | op::ABSOLUTE)
}

/// Does the general form with such flags. `leave`: as for [`short`].
#[inline(always)]
pub fn usual(k: &Kernel, current: ThreadRef, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    let op = current.frame.op();
    if op.has_only(op::TAKES_BLOCK) {
        return request(k, current, Request::of_words(current));
    }
    if op == plain::REPLY_WITH_ITEM
        && let Some(next) = carry::reply_with_item(k, current, leave)
    {
        return next;
    }
    common(k, current)
}

/// Does the general form with any flags, in a small frame.
#[inline(never)]
pub fn general(k: &Kernel, current: ThreadRef) -> Next {
    if is_usual(current.frame.op()) { common(k, current) } else { rare(k, current) }
}

#[inline(always)]
fn request(k: &Kernel, current: ThreadRef, request: Result<Request, Error>) -> Next {
    match request {
        Ok(request) => perform(k, current, &request, Next::To),
        Err(error) => fail(current, error),
    }
}

/// Does the general form with an item, or until a point in time.
#[inline(always)]
fn common(k: &Kernel, current: ThreadRef) -> Next {
    request(k, current, Request::general(current))
}

/// Does the general form with other flags, or without them.
#[inline(always)]
pub fn rare(k: &Kernel, current: ThreadRef) -> Next {
    match known_route::reply(k, current) {
        Some(partner) => Next::To(partner),
        None => anew(k, current),
    }
}

/// Does the general form, over a route that is not known.
#[inline(never)]
fn anew(k: &Kernel, current: ThreadRef) -> Next {
    let request = match Request::rare(current) {
        Ok(request) => request,
        Err(error) => return fail(current, error),
    };
    if current.frame.op().general_flags().has(op::ALERTABLE) && !request::begin_alertable(current) {
        let receives = request.dest.is_nil();
        return fail(current, if receives { Error::ReceiveAborted } else { Error::SendAborted });
    }
    perform(k, current, &request, Next::To)
}

/// Sends a message in a short form that carries a block, or may bring one back, where the fast path gave up.
pub fn other(k: &Kernel, current: ThreadRef) -> Next {
    perform(k, current, &Request::other(current), Next::To)
}

/// Refuses a general form with bits that mean nothing.
pub fn malformed(current: ThreadRef) -> Next {
    fail(current, Error::BadArgument)
}

#[inline(always)]
fn perform(k: &Kernel, current: ThreadRef, request: &Request, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    // Whether this message crosses a border, and how, is found out anew.
    current.crossing.bits.set(0);
    if request.dest.is_nil() {
        return receive_and_run(k, current, request, None);
    }
    send(k, current, request, leave)
}

/// Does the send phase of the current thread.
#[inline(always)]
fn send(k: &Kernel, current: ThreadRef, request: &Request, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    let error = match find(k, current, request) {
        Err(error) => error,
        Ok(partner) if accepts(wait_of(partner), shown(current, request)) => {
            return send_to(k, current, partner, request, leave);
        }
        Ok(_) if request.send_timeout() == Timeout::ZERO => Error::SendTimeout,
        Ok(partner) => return queue(k, current, partner, *request),
    };
    if request.has(LENIENT) { receive_and_run(k, current, request, None) } else { fail(current, error) }
}

/// Finds the thread that gets the message: its destination, or a chief on the way there.
#[inline(always)]
fn find(k: &Kernel, current: ThreadRef, request: &Request) -> Result<ThreadRef, Error> {
    match k.thread(request.dest) {
        None => Err(Error::NoSuch),
        Some(partner) if partner == current => Err(Error::BadArgument),
        Some(partner) if request.has(op::SHOWN) || partner.uid().clan() != current.uid().clan() => {
            clan::across(k, current, partner, request.has(op::SHOWN))
        }
        Some(partner) => Ok(partner),
    }
}

/// Thread that the current thread's message is shown to come from.
#[inline(always)]
fn shown(current: ThreadRef, request: &Request) -> Uid {
    if request.has(op::SHOWN) { current.crossing.shown.get() } else { current.uid() }
}

/// Blocks the current thread in the partner's queue.
fn queue(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    request.suspend(current);
    current.errand.set(Errand::Ipc);
    enqueue_sender(k, current, partner);
    set_timeout(k, current, request.send_timeout());
    Next::Any
}

/// Sends the current thread's message to a partner that waits for it.
#[inline(always)]
fn send_to(
    k: &Kernel,
    current: ThreadRef,
    partner: ThreadRef,
    request: &Request,
    leave: impl FnOnce(ThreadRef) -> Next,
) -> Next {
    if request.has(op::ITEM) {
        return carry::send_item(k, current, partner, request);
    }
    let answered = partner.common_wait();
    if let Wait::Answer(_) = answered {
        if fault::answer_plainly(k, current, partner) {
            return leave(partner);
        }
        return answer(k, current, partner, *request);
    }
    if request.has(op::BLOCK) {
        return carry::send_block(k, current, partner, *request);
    }
    // Only a thread that waits has a timeout: one that were left would end the next wait, if that began on the fast path.
    k.wheel.remove(partner);
    let kind = if request.is_call() { Kind::Request } else { Kind::Reply };
    let passed = k.pass_in(current, partner, answered, request.is_call());
    outcome::deliver_words(current, partner, kind as u32, request.has(SHORT));
    let sent = hand_over(k, current, partner, passed);
    receive_and_run(k, current, request, Some(sent))
}

/// Answers a fault or exception of a partner without an item, in any way.
#[inline(never)]
fn answer(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    let sent = fault::answer(k, current, partner, request.is_call());
    receive_after_answer(k, current, &request, sent)
}
