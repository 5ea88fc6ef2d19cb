//! Route cache: among clan-mates there is the fast path; this file is for messages that leave a clan. It does a call, or a reply shown
//! as somebody else's, that takes the route of the sender's last one (row C9).
//!
//! [`clan::across`](super::clan::across) finds a route and notes it in the sender's [`Route`](crate::object::thread::Route).
//! The tree of tasks above a thread never changes while it lives, so the note is true for as long as its uids lead to threads,
//! and need not be undone.
//!
//! Like the fast path, this takes the plain case only, touches nothing before it is sure, and leaves all else to the
//! general path, which would have done the same. With the fast path off nothing is ever noted.

use super::outcome;
use crate::kernel::Kernel;
use crate::lend;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, NEVER, State, TAKING, WORDS, Wait};
use abi::call::{self, NOT_DIVERTED};
use abi::op::{self, Op};
use abi::{Fpage, Kind, Timeout, Uid};

/// Receiver of the current thread's message to `to` by the noted route, and whether that is a chief.
#[inline(always)]
fn find(k: &Kernel, current: ThreadRef, to: Uid, shown: Uid) -> Option<(ThreadRef, bool)> {
    let route = current.crossing.route.get();
    if route.to != to || route.shown != shown {
        return None;
    }
    let (dest, partner) = (k.thread(to)?, k.thread(route.hop)?);
    // An answer to a fault crosses every border.
    let plain = (current.special.get() | partner.special.get()) == 0 && dest.state.get() != State::Faulting;
    plain.then_some((partner, partner != dest))
}

/// Does a short call, if its receiver waits openly. That then runs on the caller's shuttle.
#[inline(always)]
pub fn call(k: &Kernel, current: ThreadRef) -> Option<ThreadRef> {
    let to = Uid(current.frame.partner());
    let (partner, diverted) = find(k, current, to, Uid::NIL)?;
    if partner.hot.accept.get() != partner.hot.open_key.get() {
        return None;
    }
    // From here on nothing can fail.
    for i in 0..11 {
        partner.frame.w[i].set(current.frame.w[i].get());
    }
    arrive(current, partner, Kind::Request, current.uid(), diverted);
    partner.hot.accept.set(NEVER);
    lend::fast_call(&current.hot, &partner.hot);
    // The fast path may not deliver an answer that comes by way of a chief.
    current.receiving.takes.set(0);
    wait(current, to, !diverted, partner.uid());
    Some(partner)
}

/// Does a reply and wait in the general form, shown as another thread's, if it gives back the shuttle that was lent.
#[inline(always)]
pub(super) fn reply(k: &Kernel, current: ThreadRef) -> Option<ThreadRef> {
    const FORM: Op = Op::GENERAL.with(op::SHOWN | op::TAKES_BLOCK);
    const TIMEOUTS: u64 = call::timeouts(Timeout::ZERO, Timeout::NEVER);
    let frame = &current.frame;
    let (to, shown) = (Uid(frame.partner()), Uid(frame.w[5].get()));
    let window = Fpage(frame.window());
    let plain = frame.op() == FORM
        && frame.then_from() == Uid::ANY.0
        && frame.timeouts() == TIMEOUTS
        && window == current.receiving.standing.get()
        && current.senders.is_empty()
        && current.line.get() == 0;
    if !plain {
        return None;
    }
    let (partner, diverted) = find(k, current, to, shown)?;
    // The shuttle must have been lent to this very thread: others may also speak for the one that is shown.
    let returns = partner.lent_to.get() == current.uid() && lend::fast_return(&current.hot, &partner.hot);
    if !returns || k.thread(shown).is_none() || partner.wait() != Wait::Closed(shown) {
        return None;
    }
    // From here on nothing can fail.
    for i in [0, 1, 2, 3, 4, 6, 7] {
        partner.frame.w[i].set(frame.w[i].get());
    }
    for i in [5, 8, 9, 10] {
        partner.frame.w[i].set(0);
    }
    k.wheel.remove(partner);
    arrive(current, partner, Kind::Reply, shown, diverted);
    k.give_back(current, partner);
    partner.set_ready();
    current.receiving.takes.set(TAKING);
    wait(current, Uid::ANY, true, Uid::NIL);
    Some(partner)
}

/// Delivers all of a message but its words.
#[inline(always)]
fn arrive(current: ThreadRef, partner: ThreadRef, kind: Kind, sender: Uid, diverted: bool) {
    let mut kind = kind as u32;
    if diverted {
        partner.frame.w[WORDS - 1].set(current.frame.partner());
        kind &= !NOT_DIVERTED;
    }
    outcome::set_result(partner, current.frame.label() | kind as u64, sender);
}

/// Makes the current thread wait, without a timeout, for the thread that it called or for anybody.
#[inline(always)]
fn wait(current: ThreadRef, from: Uid, plain: bool, lent_to: Uid) {
    current.receiving.window.set(current.open_window());
    current.errand.set(Errand::Ipc);
    current.set_wait(from, plain, lent_to);
}
