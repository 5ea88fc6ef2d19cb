//! Blocks: the part of a message that lies in memory, copied once from block to block (rows P2, P3).
//!
//! The block into which a thread receives is [`crate::object::block`]; [`crate::mem`] registers it. This file copies, one budget at a
//! time, and returns the reason if it cannot go on ([`Halt`]); [`super::carry`] acts on that.
//!
//! **Promise to the receiver.** It runs again only when everything is there, or with an error. Its block and buffers
//! may have changed before that: what a transfer that fails has copied stays copied, and other threads of its task see it
//! come. Nothing outside of the block and its buffers is ever written.

use super::{clan, item, outcome, request, taking};
use crate::arch::{self, CopyFault};
use crate::kernel::Kernel;
use crate::mem::budget::Again;
use crate::mem::plan::Plan;
use crate::mem::space::{self, Progress};
use crate::object::thread::{Operation, Place};
use crate::object::{TaskRef, ThreadRef};
use crate::param::{PREEMPTION_BYTES, PREEMPTION_PAGES};
use crate::processor;
use abi::call::{ITEM_WHOLE, NO_BLOCK, NO_ITEM};
use abi::{Dope, Error, Fpage, Kind, Rights, StringPart};

/// Cost of a string's descriptors in bytes of a step's budget: so many could be copied while they are read and written. An item is a
/// step of its own.
const PART_BYTES: u64 = 4096;

/// Longest copy that lets no interrupts in, in bytes. Longer ones cost nothing of the budget.
const CLOSED_BYTES_MAX: u64 = 4096;

/// Reason why a transfer does not go on just now.
pub(super) enum Halt {
    /// The budget is used up.
    Again,
    /// A page fault on the sender's side, reading.
    Mine(u64),
    /// A page fault on the receiver's side.
    Theirs(u64, Rights),
    /// The end, with an error. The errors are the sender's and the receiver's.
    Failed(Error, Error),
}

/// Whether the message in a thread's registers has a block.
pub(super) fn is_long(sender: ThreadRef) -> bool {
    sender.frame.op().is_long()
}

pub(super) fn dope(sender: ThreadRef) -> Dope {
    Dope(sender.frame.w[0].get())
}

/// Whether dope and address in the thread's registers describe a block at all: its used part lies in the user half. Room that is left in a
/// dope from when the block was received does not count.
pub(super) fn is_block(sender: ThreadRef) -> bool {
    let end = sender.frame.w[1].get().checked_add(dope(sender).used_size());
    dope(sender).0 & 0xf000_0000 == 0 && end.is_some_and(|end| end <= abi::USER_END)
}

/// Transfers part after part, for one budget.
pub(super) fn run(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, at: &mut Place) -> Result<(), Halt> {
    let mut budget = PREEMPTION_BYTES;
    let (used, block) = (dope(sender), sender.frame.w[1].get());
    let room = receiver.block.room().with_used(used);
    let theirs = receiver.block.address.get();
    let parts = used.strings() + used.items();
    if at.part == 0 {
        if used.words() > room.room_as_used().words() {
            return Err(Halt::Failed(Error::Overflow, Error::Overflow));
        }
        copy(k, sender, receiver, (block, theirs), 8 * used.words(), at, &mut budget)?;
        (at.part, at.done) = (1, 0);
    }
    while (at.part as u64) <= parts {
        if budget < PART_BYTES {
            return Err(Halt::Again);
        }
        budget -= PART_BYTES;
        let number = at.part as u64 - 1;
        if number < used.strings() {
            let from = block + used.strings_offset() + 16 * number;
            let to = theirs + room.strings_offset() + 16 * number;
            if number >= room.room_as_used().strings() {
                return Err(Halt::Failed(Error::Overflow, Error::Overflow));
            }
            string(k, sender, receiver, (from, to), at, &mut budget)?;
        } else {
            let number = number - used.strings();
            let from = block + used.items_offset() + 16 * number;
            let to = theirs + room.items_offset() + 16 * number;
            if number >= room.room_as_used().items() {
                return Err(Halt::Failed(Error::Overflow, Error::Overflow));
            }
            if budget < PREEMPTION_BYTES - PART_BYTES {
                return Err(Halt::Again);
            }
            map_item(k, sender, receiver, (from, to), at)?;
            budget = 0;
        }
        (at.part, at.done, at.begun) = (at.part + 1, 0, false);
    }
    Ok(())
}

/// Copies what is left of `len` bytes from the sender's to the receiver's address.
#[inline(always)]
fn copy(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (from, to): (u64, u64),
    len: u64,
    at: &mut Place,
    budget: &mut u64,
) -> Result<(), Halt> {
    if at.done == 0 && len <= CLOSED_BYTES_MAX.min(*budget) {
        return copy_closed(k, ((sender.task(), from), (receiver.task(), to)), len, at, budget);
    }
    copy_in_steps(k, sender, receiver, (from, to), len, at, budget)
}

/// Copies `len` bytes, which the budget pays, with interrupts off.
#[inline(always)]
fn copy_closed(
    k: &Kernel,
    (source, target): ((TaskRef, u64), (TaskRef, u64)),
    len: u64,
    at: &mut Place,
    budget: &mut u64,
) -> Result<(), Halt> {
    *budget -= len;
    let result = processor::copy::copy(k, source, target, len);
    at.advance(result.err().map_or(len, |fault| fault.done) as i64);
    result.map_err(halt)
}

fn halt(fault: CopyFault) -> Halt {
    if fault.at_target { Halt::Theirs(fault.address, Rights::W) } else { Halt::Mine(fault.address) }
}

#[inline(never)]
fn copy_in_steps(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (from, to): (u64, u64),
    len: u64,
    at: &mut Place,
    budget: &mut u64,
) -> Result<(), Halt> {
    while at.done < len {
        let places = ((sender.task(), from + at.done), (receiver.task(), to + at.done));
        let left = len - at.done;
        if arch::COPIES_OPENLY && left > CLOSED_BYTES_MAX {
            copy_openly(k, sender, receiver, places, left, at).map_err(halt)?;
            continue;
        }
        if *budget == 0 {
            return Err(Halt::Again);
        }
        copy_closed(k, places, left.min(*budget), at, budget)?;
    }
    Ok(())
}

/// Copies some of `len` bytes, with interrupts let in. One that comes finds the sender as if all of these were done, and takes
/// the rest of them back: [`copy_interrupted`].
#[inline(never)]
fn copy_openly(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (source, target): ((TaskRef, u64), (TaskRef, u64)),
    len: u64,
    at: &mut Place,
) -> Result<(), CopyFault> {
    if !core::mem::replace(&mut at.receiver_limited, true) {
        taking::limit(k, receiver);
    }
    let now = arch::copy_at_once(target.1, len);
    at.advance(now as i64);
    sender.operation.set(Operation::Transfer { to: receiver.uid(), at: *at });
    k.set_busy(sender);
    let result = processor::copy::copy_openly(k, source, target, now);
    if let Err(fault) = result {
        at.advance(fault.done as i64 - now as i64);
    }
    result
}

/// Ends a copy of the current thread's in whose middle an interrupt came, with `left` bytes to go. The thread is busy, and
/// goes on as after any step.
pub fn copy_interrupted(current: ThreadRef, left: u64) {
    let Operation::Transfer { to, mut at } = current.operation.get() else {
        unreachable!("only transfers can be interrupted")
    };
    at.advance(-(left as i64));
    current.operation.set(Operation::Transfer { to, at });
}

/// Reads a descriptor, two words, in the sender's block, and its counterpart in the receiver's.
fn descriptor(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (from, to): (u64, u64),
) -> Result<([u64; 2], [u64; 2]), Halt> {
    let mine = sender.task();
    let words = processor::copy::read_words(k, mine, (mine, from)).map_err(Halt::Mine)?;
    let room = processor::copy::read_words(k, mine, (receiver.task(), to))
        .map_err(|address| Halt::Theirs(address, Rights::R))?;
    Ok((words, room))
}

/// Transfers one string. The descriptors are read anew, and all of their bounds checked, each time: a user that changes them harms itself.
fn string(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    places: (u64, u64),
    at: &mut Place,
    budget: &mut u64,
) -> Result<(), Halt> {
    let (words, room) = descriptor(k, sender, receiver, places)?;
    let (from, mut to) = (StringPart::from_words(words), StringPart::from_words(room));
    let end = |part: StringPart, len: u32| part.address.checked_add(len as u64);
    if from.len > StringPart::MAX || end(from, from.len).is_none_or(|end| end > abi::USER_END) {
        return Err(Halt::Failed(Error::BadArgument, Error::NoAccess));
    }
    if from.len > to.capacity || end(to, from.len).is_none_or(|end| end > abi::USER_END) {
        return Err(Halt::Failed(Error::Overflow, Error::Overflow));
    }
    copy(k, sender, receiver, (from.address, to.address), from.len as u64, at, budget)?;
    to.len = from.len;
    write(k, sender, receiver, places.1, [to.address, to.sizes()])
}

fn write(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    place: u64,
    words: [u64; 2],
) -> Result<(), Halt> {
    processor::copy::write_words(k, sender.task(), (receiver.task(), place), words)
        .map_err(|address| Halt::Theirs(address, Rights::W))
}

/// Maps one item into the window in the receiver's descriptor.
#[inline(never)]
fn map_item(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    places: (u64, u64),
    at: &mut Place,
) -> Result<(), Halt> {
    if request::carried(sender).is_some() && !clan::may_hand(sender, receiver) {
        return Err(Halt::Failed(Error::Denied, Error::Denied));
    }
    if !at.begun {
        sender.item.set(read_item(k, sender, receiver, places)?);
        at.begun = true;
    }
    let (plan, hot_spot) = sender.item.get();
    let (mut progress, mut budget) = (Progress::resumed(at.done, !at.cut), PREEMPTION_PAGES);
    let result = space::map(k, plan, sender.task(), receiver.task(), &mut progress, &mut budget);
    (at.done, at.cut) = (progress.noted(), !progress.whole);
    result.map_err(|Again| Halt::Again)?;
    write(k, sender, receiver, places.1, [item::place(plan).0, hot_spot])
}

/// Reads an item and its hot spot from the descriptors, once, when it is begun: both blocks are memory that users may write to
/// at any time.
fn read_item(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    places: (u64, u64),
) -> Result<(Plan, u64), Halt> {
    let ([page, hot_spot], [window, _]) = descriptor(k, sender, receiver, places)?;
    let (page, window) = (Fpage(page), Fpage(window));
    let plan = if page.is_valid() && window.is_valid() { Plan::fit(page, hot_spot, window) } else { None };
    plan.map(|plan| (plan, hot_spot)).ok_or(Halt::Failed(Error::NoWindow, Error::NoAccess))
}

/// Delivers the words in registers: in a message with a block they begin with its dope and address.
pub(super) fn deliver(sender: ThreadRef, receiver: ThreadRef, kind: Kind, cut: bool) {
    let (from, to) = (&sender.frame, &receiver.frame);
    let words = if from.op().is_general() { 8 } else { 10 };
    let used = dope(sender);
    to.w[0].set(receiver.block.room().with_used(used).0);
    to.w[1].set(receiver.block.address.get());
    for (i, word) in to.w.iter().enumerate().skip(2) {
        word.set(if i < words { from.w[i].get() } else { 0 });
    }
    let items = if used.items() == 0 { 0 } else { NO_ITEM };
    let flags = NO_BLOCK | items | if cut { ITEM_WHOLE } else { 0 };
    let kind = kind as u32 & !flags;
    let label = from.label();
    outcome::set_result(receiver, label | kind as u64, sender.uid());
    if sender.crossing.bits.get() != 0 {
        clan::mark(sender, receiver);
    }
    receiver.set_ready();
}
