//! Map items: a flexpage that travels with a message, into the receiver's window (row C2).

use super::{clan, outcome};
use crate::kernel::Kernel;
use crate::mem::at::At;
use crate::mem::doors;
use crate::mem::plan::Plan;
use crate::mem::space::{self, Progress};
use crate::object::ThreadRef;
use crate::object::thread::{Errand, NEVER};
use crate::param::PREEMPTION_PAGES;
use abi::call::{ITEM_WHOLE, NO_ITEM};
use abi::{Error, Fpage, Kind, PAGE_SIZE, Rights, Space};

/// Window in which the receiver takes items.
#[inline(always)]
fn window(receiver: ThreadRef) -> Fpage {
    if receiver.hot.accept.get() != NEVER {
        receiver.open_window()
    } else if receiver.errand.get() == Errand::Ipc {
        receiver.receiving.window.get()
    } else {
        Fpage::WHOLE
    }
}

/// Plan for the sender's item in the receiver's window. A fault is answered by memory or by ports.
#[inline(always)]
pub(super) fn plan(sender: ThreadRef, receiver: ThreadRef) -> Option<Plan> {
    let item = Fpage(sender.frame.w[6].get());
    let window = window(receiver);
    let is_port = item.space() == Space::Port;
    let any = is_port && window == Fpage::WHOLE && receiver.errand.get() == Errand::Fault;
    let window = if any { Fpage::ports(0, 16) } else { window };
    Plan::fit(item, sender.frame.w[7].get(), window)
}

/// Maps an item of one page into a window of memory, if that is simple. Returns the flexpage in which it arrived.
#[inline(always)]
pub(super) fn map_single(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) -> Option<Fpage> {
    const PAGE: u64 = 12 << 4;
    let (item, window) = (Fpage(sender.frame.w[6].get()), window(receiver));
    let is_page = item.0 & (Fpage::SPACE_AND_SIZE | Rights::GRANT.0 as u64) == PAGE;
    if !is_page || window.is_nil() || window.space() != Space::Memory {
        return None;
    }
    let hot_spot = sender.frame.w[7].get() & ((1 << window.log2()) - 1);
    let target = window.base() + (hot_spot & !(PAGE_SIZE - 1));
    let (from, to) = (At::new(sender.task(), item.base()), At::new(receiver.task(), target));
    let done = space::map_single(k, from, to, item.rights());
    done.then_some(Fpage(target | PAGE | item.rights().0 as u64))
}

/// Maps the first pages of an item as far as they are a run, which mostly are all. `None` if there is none.
#[inline(always)]
pub(super) fn map_run(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) -> Option<(Plan, Progress)> {
    let plan = plan(sender, receiver)?;
    let progress = space::map_run(k, &plan, (sender.task(), receiver.task()), PREEMPTION_PAGES)?;
    Some((plan, progress))
}

/// Plan for the item of a door's call or return to the receiver, which waits for it.
#[inline(always)]
pub(super) fn plan_by_door(sender: ThreadRef, receiver: ThreadRef, is_call: bool) -> Result<Plan, Error> {
    let item = Fpage(sender.frame.w[6].get());
    if !item.is_valid() {
        return Err(Error::BadArgument);
    }
    if !clan::may_hand(sender, receiver) {
        return Err(Error::Denied);
    }
    if !(is_call || receiver.takes_item()) {
        return Err(Error::NoWindow);
    }
    receiver.errand.set(Errand::Ipc);
    receiver.receiving.window.set(receiver.receiving.standing.get());
    Plan::fit(item, sender.frame.w[7].get(), receiver.receiving.standing.get()).ok_or(Error::NoWindow)
}

/// Hands the identifier that a door's call or return carries to its receiver, if that is simple. Returns the flexpage in which it arrived.
#[inline(always)]
pub(super) fn hand_identifier(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) -> Option<Fpage> {
    let (item, window) = (Fpage(sender.frame.w[6].get()), receiver.receiving.standing.get());
    let is_simple = item.is_identifier() && window.is_identifier();
    if !is_simple || sender.uid().clan() != receiver.uid().clan() {
        return None;
    }
    let (number, target) = (item.0 >> 12, window.0 >> 12);
    let (from, to) = (At::new(sender.task(), number), At::new(receiver.task(), target));
    let done = doors::map_single(k, from, to, item.rights());
    done.then_some(window.with_rights(item.rights().and(Rights::RWX)))
}

/// Maps for one budget. True when the item is done.
#[inline(always)]
pub(super) fn step(
    k: &Kernel,
    plan: Plan,
    sender: ThreadRef,
    receiver: ThreadRef,
    progress: &mut Progress,
    mut budget: usize,
) -> bool {
    space::map(k, plan, sender.task(), receiver.task(), progress, &mut budget).is_ok()
}

/// Flexpage in which an item arrived, in the receiver's addresses.
pub(super) fn place(plan: Plan) -> Fpage {
    let shift = if plan.space == Space::Memory { 0 } else { 12 };
    let place = plan.to << shift | (plan.space as u64) << 10 | (plan.log2 as u64) << 4;
    Fpage(place | plan.rights.and(Rights::RWX).0 as u64)
}

/// Delivers the words, with that flexpage in w6.
#[inline(always)]
pub(super) fn deliver(place: Fpage, sender: ThreadRef, receiver: ThreadRef, is_call: bool, whole: bool) {
    deliver_as(if is_call { Kind::Request } else { Kind::Reply }, place, sender, receiver, whole);
}

#[inline(always)]
pub(super) fn deliver_as(kind: Kind, place: Fpage, sender: ThreadRef, receiver: ThreadRef, whole: bool) {
    outcome::deliver_words(
        sender,
        receiver,
        kind as u32 & !NO_ITEM & if whole { !0 } else { !ITEM_WHOLE },
        false,
    );
    receiver.frame.w[6].set(place.0);
}
