//! Clans and chiefs: a message that crosses a clan's border goes to the chief (row C9).
//!
//! The tasks that a task created are its *clan*, it is their *chief*. Threads of one clan, and a chief and its clan, talk
//! directly. A message to anybody else is *diverted*: one that leaves the clan goes to its chief, one into a deeper clan to the
//! outermost chief that it meets. There it goes to the thread that created the task below, with the true sender and the intended
//! destination. A chief may send on what it wants, as itself or shown as the other side's.
//!
//! The fast path has the border in its keys, so in the unsupervised case this file costs nothing; here it is one comparison. Page
//! faults, exceptions, interrupts and answers to them are the kernel's and cross every border; so nobody becomes pager or handler to whom
//! the border would be closed.

use crate::kernel::Kernel;
use crate::object::thread::{Errand, Route, Wait};
use crate::object::{TaskRef, ThreadRef};
use abi::call::NOT_DIVERTED;
use abi::{Error, Uid};

/// Bit of `crossing`, which is valid from the beginning of a send to that of its receive: the message goes to another than its destination.
const DIVERTED: u8 = 1 << 0;

/// Bit of `crossing`: the message is shown to come from another thread.
const SHOWN: u8 = 1 << 1;

/// The thread to which a message between two tasks is diverted; `None` if it goes directly.
pub(crate) fn hop(from: TaskRef, to: TaskRef) -> Option<Uid> {
    let chief = from.chief.get();
    if from == to || Some(to) == chief || to.chief.get() == chief || from.is_chief_of(to) {
        return None;
    }
    // Up from the destination to a member of the sender's clan, or of the clan whose chief the sender is. The depth of clans
    // is limited.
    let mut below = to;
    while let Some(above) = below.chief.get() {
        if above.chief.get() == chief || from.is_chief_of(above) {
            return Some(below.supervisor.get());
        }
        below = above;
    }
    Some(from.supervisor.get())
}

/// Whether a message from `to`, for which a thread is about to wait, may come directly. `to` may have ended.
pub(super) fn is_direct(k: &Kernel, from: ThreadRef, to: Uid) -> bool {
    from.crossing.bits.get() & DIVERTED == 0 && route_to(k, from, to).is_none()
}

/// Chief by whose way a message from `from` has to come to `waiter`; `None` if it may come directly.
#[inline(never)]
pub fn route_to(k: &Kernel, waiter: ThreadRef, from: Uid) -> Option<Uid> {
    if from.as_interrupt().is_some() {
        return None;
    }
    hop(waiter.task(), k.thread(from)?.task())
}

/// Whether a thread of another clan has ended.
#[cold]
#[inline(never)]
pub(super) fn has_ended(k: &Kernel, uid: Uid) -> bool {
    k.thread(uid).is_none()
}

fn is_inside(task: TaskRef, chief: TaskRef) -> bool {
    core::iter::successors(task.chief.get(), |above| above.chief.get()).any(|above| above == chief)
}

/// Whether `chief` may show `to` a message as that of a thread of `shown`: the border of its own clan is between the two.
fn may_show(chief: TaskRef, shown: TaskRef, to: TaskRef) -> bool {
    shown != chief && to != chief && is_inside(shown, chief) != is_inside(to, chief)
}

/// Whether an identifier or page may go from one thread to the other by a call or return: not across the border of a clan, where a
/// chief has to see it. By ipc it goes to the chief.
pub(super) fn may_hand(sender: ThreadRef, receiver: ThreadRef) -> bool {
    sender.uid().clan() == receiver.uid().clan() || hop(sender.task(), receiver.task()).is_none()
}

/// Finds the receiver of the current thread's message to a thread outside of its clan, or shown as another thread's.
#[cold]
#[inline(never)]
pub(super) fn across(k: &Kernel, current: ThreadRef, to: ThreadRef, show: bool) -> Result<ThreadRef, Error> {
    let mut crossing = 0;
    let mut shown = Uid::NIL;
    if show {
        shown = Uid(current.frame.w[5].get());
        let thread = k.thread(shown).ok_or(Error::NoSuch)?;
        if !may_show(current.task(), thread.task(), to.task()) {
            return Err(Error::Denied);
        }
        current.crossing.shown.set(shown);
        crossing = SHOWN;
    }
    let mut partner = to;
    if to.wait() != Wait::Answer(current.uid()) {
        if let Some(chief) = hop(current.task(), to.task()) {
            partner = k.thread(chief).ok_or(Error::NoSuch)?;
            crossing |= DIVERTED;
        }
        note(k, current, to.uid(), shown, partner.uid());
    }
    current.crossing.bits.set(crossing);
    Ok(partner)
}

/// Notes that the current thread's message to `to`, shown as that of `shown` or as its own, goes to `hop`.
fn note(k: &Kernel, current: ThreadRef, to: Uid, shown: Uid, hop: Uid) {
    if k.notes_routes.get() {
        current.crossing.route.set(Route { to, shown, hop });
    }
}

/// Thread that the message of a thread in a queue is shown to come from.
pub(super) fn shown_as(sender: ThreadRef) -> Uid {
    let is_ipc = sender.errand.get() == Errand::Ipc;
    if is_ipc && sender.crossing.bits.get() & SHOWN != 0 { sender.crossing.shown.get() } else { sender.uid() }
}

/// Tells the receiver of a message that has just been delivered how it crossed the border.
#[cold]
#[inline(never)]
pub(super) fn mark(sender: ThreadRef, receiver: ThreadRef) {
    let crossing = sender.crossing.bits.get();
    if crossing & SHOWN != 0 {
        receiver.frame.set_partner(sender.crossing.shown.get().0);
        receiver.frame.w[5].set(0);
    }
    if crossing & DIVERTED != 0 {
        receiver.frame.w[10].set(sender.frame.partner());
        receiver.frame.set_head(receiver.frame.head() & !(NOT_DIVERTED as u64));
    }
}
