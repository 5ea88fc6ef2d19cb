//! Plain messages: the common cases of page faults, exceptions and the answers to them, and of replies that carry an item (rows C2, C7).
//!
//! Among clan-mates that exchange words there is the fast path; this file is what it would be for these messages. All that decides is in
//! the folded words of the two threads ([`crate::object::thread`]): a receiver whose `accept` is its open key takes anybody's message, and
//! a sender whose key is not poisoned may wait for anybody as soon as its own message has gone.
//!
//! Like the fast path, this takes the plain case only, touches nothing before it is sure, and leaves all else to the
//! general path, which would have done the same.

use super::outcome;
use crate::kernel::Kernel;
use crate::lend;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, NEVER, Operation, State, TAKING, WORDS};
use abi::call::{ITEM_WHOLE, NO_ITEM};
use abi::op::{self, Op};
use abi::{Fpage, Kind, Timeout, Uid};

/// Sends the message of a kernel for the current thread, which faulted, if `partner` waits for anybody. That thread then runs on the
/// current one's shuttle. False if nothing was done.
#[inline(always)]
pub(super) fn call(current: ThreadRef, partner: ThreadRef, kind: Kind, words: [u64; 8]) -> bool {
    let plain = partner.hot.accept.get() == partner.hot.open_key.get()
        && current.special.get() == 0
        && current.hot.shuttle.get() == current.home_ref();
    if !plain {
        return false;
    }
    for (to, word) in partner.frame.w.iter().zip(words.into_iter().chain([0; WORDS - 8])) {
        to.set(word);
    }
    outcome::set_result(partner, kind as u64, current.uid());
    partner.hot.accept.set(NEVER);
    lend::fast_call(&current.hot, &partner.hot);
    current.set_faulting(partner.uid(), true);
    true
}

/// Whether the current thread may wait for anybody, and nothing is there yet.
#[inline(always)]
fn may_wait(current: ThreadRef) -> bool {
    current.hot.key.get() & 0xf == 0
}

/// Whether a thread waits for the answer of the current thread, to which it lent its shuttle, to its fault or exception.
#[inline(always)]
fn waits_for_answer(current: ThreadRef, thread: ThreadRef) -> bool {
    thread.hot.accept.get() == NEVER
        && thread.state.get() == State::Faulting
        && thread.lent_to.get() == current.uid()
        && thread.special.get() == 0
        && lend::fast_return(&current.hot, &thread.hot)
        && !matches!(thread.operation.get(), Operation::Taken { .. })
}

/// Lets a thread that waits for such an answer go on, on its own shuttle, and the current thread wait for anybody.
#[inline(always)]
pub(super) fn resume(k: &Kernel, current: ThreadRef, thread: ThreadRef) {
    k.give_back(current, thread);
    thread.errand.set(Errand::Ipc);
    thread.state.set(State::Ready);
    wait(current);
}

#[inline(always)]
fn wait(current: ThreadRef) {
    current.errand.set(Errand::Ipc);
    current.hot.accept.set(current.hot.open_key.get());
}

/// Whether the current thread's answer to a fault or exception of `thread` is a plain one: [`resume`] may end it.
#[inline(always)]
pub(super) fn is_answer(current: ThreadRef, thread: ThreadRef) -> bool {
    current.frame.op() == Op::REPLY_WAIT && may_wait(current) && waits_for_answer(current, thread)
}

/// The general form in which pagers reply: with an item, and a receive that takes whatever comes.
pub(super) const REPLY_WITH_ITEM: Op = Op::GENERAL.with(op::ITEM | op::TAKES_BLOCK);

/// Thread to which the current one replies by [`REPLY_WITH_ITEM`], to wait for anybody then. It waits in a way that [`reply`] can end;
/// if it takes no item, it has no window, and nothing can be mapped.
#[inline(always)]
pub(super) fn receiver(k: &Kernel, current: ThreadRef) -> Option<ThreadRef> {
    let frame = &current.frame;
    let plain = frame.then_from() == Uid::ANY.0
        && Timeout((frame.timeouts() >> 32) as u32) == Timeout::NEVER
        && frame.window() == current.receiving.standing.get().0
        && Fpage(frame.w[6].get()).is_valid()
        && may_wait(current);
    if !plain {
        return None;
    }
    let partner = k.thread(Uid(frame.partner()))?;
    let waits = match partner.hot.accept.get() {
        NEVER => partner.errand.get() == Errand::Fault && waits_for_answer(current, partner),
        accept => accept & !TAKING == current.hot.key.get() && lend::fast_return(&current.hot, &partner.hot),
    };
    waits.then_some(partner)
}

/// Lets the reply arrive whose item was mapped to `place`. The [`receiver`] goes on.
#[inline(always)]
pub(super) fn reply(k: &Kernel, current: ThreadRef, partner: ThreadRef, place: Fpage) {
    if partner.hot.accept.get() == NEVER {
        return resume(k, current, partner);
    }
    let (from, to) = (&current.frame, &partner.frame);
    for i in [0, 1, 2, 3, 4, 5, 7] {
        to.w[i].set(from.w[i].get());
    }
    to.w[6].set(place.0);
    to.w[8..].iter().for_each(|word| word.set(0));
    let kind = Kind::Reply as u32 & !NO_ITEM;
    const { assert!(Kind::Reply as u32 & ITEM_WHOLE != 0) };
    outcome::set_result(partner, from.label() | kind as u64, current.uid());
    partner.hot.accept.set(NEVER);
    k.give_back(current, partner);
    wait(current);
}
