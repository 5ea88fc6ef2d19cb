//! Blocks: the part of a message that lies in memory, copied once from block to block (rows P2, P3).
//!
//! The block into which a thread receives is [`crate::object::block`]; [`crate::mem`] registers it. This file copies, one budget at a
//! time, and returns the reason if it cannot go on ([`Halt`]); [`super::carry`] acts on that.
//!
//! **Promise to the receiver.** It runs again only when everything is there, or with an error. Its block and buffers
//! may have changed before that: what a transfer that fails has copied stays copied, and other threads of its task see it
//! come. Nothing outside of the block and its buffers is ever written.

use super::{clan, item, outcome, request, taking};
use crate::arch::copy::{Shown, View};
use crate::arch::{self, CopyFault};
use crate::kernel::Kernel;
use crate::mem::budget::Again;
use crate::mem::plan::Plan;
use crate::mem::space::{self, Progress};
use crate::object::ThreadRef;
use crate::object::thread::{Operation, Place};
use crate::param::{PREEMPTION_BYTES, PREEMPTION_PAGES};
use crate::processor;
use abi::call::{ITEM_WHOLE, NO_BLOCK, NO_ITEM};
use abi::{Dope, Error, Fpage, Kind, Rights, StringPart};

/// Cost of a string's descriptors in bytes of a step's budget: so many could be copied while they are read and written.
const PART_BYTES: u64 = 1024;

/// Cost of a string that is not short: a long one, one that lies elsewhere than the window shows, or one with a fault.
const OTHER_BYTES: u64 = 4096;

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
    let used = dope(sender);
    let mut copying = Copying::new(k, sender, receiver);
    let result = copying.words_and_strings(at);
    let budget = copying.budget;
    copying.view.close();
    result?;
    let items = used.strings() + 1;
    if at.part as u64 >= items + used.items() {
        return Ok(());
    }
    let room = receiver.block.room().with_used(used);
    let number = at.part as u64 - items;
    if number >= room.room_as_used().items() {
        return Err(Halt::Failed(Error::Overflow, Error::Overflow));
    }
    // An item is a step of its own.
    if budget < PREEMPTION_BYTES {
        return Err(Halt::Again);
    }
    let from = sender.frame.w[1].get() + used.items_offset() + 16 * number;
    let to = receiver.block.address.get() + room.items_offset() + 16 * number;
    map_item(k, sender, receiver, (from, to), at)?;
    (at.part, at.done, at.begun) = (at.part + 1, 0, false);
    if at.part as u64 == items + used.items() { Ok(()) } else { Err(Halt::Again) }
}

/// Transfers direct words and strings for the fast path, before anything else of the message is done. `shown` is where the receiver's block
/// is shown, in a window that the fast path has opened, and closes. False if the slow path has to send the message; then the window is closed,
/// and it goes on where this came to ([`Operation::Ahead`]).
#[inline(always)]
pub fn run_ahead(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, shown: u64) -> bool {
    let (used, block) = (dope(sender), sender.frame.w[1].get());
    let room = receiver.block.room().room_as_used();
    let (words, count) = (used.words(), used.strings());
    let theirs = receiver.block.address.get();
    let shown = Shown::at(theirs, shown);
    debug_assert!(count != 0, "the fast path copies other blocks itself");
    // The slow path says what is wrong, if anything is.
    if !used.is_words_and_strings() || block > abi::USER_END - Dope::SIZE_MAX {
        return run_nothing_ahead(k, sender);
    }
    if words > room.words() || count > room.strings() {
        return run_nothing_ahead(k, sender);
    }
    if words != 0
        && let Err(done) = words_ahead(shown, (block, theirs), words)
    {
        let at = Place { done, moved: done, ..Place::default() };
        return run_rest_ahead(k, sender, receiver, shown, (at, PREEMPTION_BYTES));
    }
    // Words that are more than a step were not copied above.
    let budget = PREEMPTION_BYTES - 8 * words;
    let places = (block + used.strings_offset(), theirs + 8 * room.words());
    match short_strings(sender, shown, places, (1, count), budget) {
        Ok(_) => true,
        Err(rest) => {
            let mut at = Place { part: 1, moved: 8 * words, ..Place::default() };
            let budget = rest.note(&mut at, budget);
            run_rest_ahead(k, sender, receiver, shown, (at, budget))
        }
    }
}

/// Copies direct words, if they are few. The error is how many bytes are done.
#[inline(never)]
fn words_ahead(shown: Shown, (from, to): (u64, u64), words: u64) -> Result<(), u64> {
    let len = 8 * words;
    if len > CLOSED_BYTES_MAX {
        return Err(0);
    }
    shown.copy(from, to, len).map_err(|(left, ..)| len - left)
}

#[cold]
#[inline(never)]
fn run_nothing_ahead(k: &Kernel, sender: ThreadRef) -> bool {
    processor::copy::close_window(k, sender.task());
    false
}

/// Goes on where a message that the fast path transfers has more than short strings, or a fault.
#[inline(never)]
fn run_rest_ahead(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    shown: Shown,
    (mut at, budget): (Place, u64),
) -> bool {
    let is_there =
        if long_string_ahead(sender, receiver, shown, &mut at) && at.part as u64 > dope(sender).strings() {
            true
        } else {
            run_all_ahead(k, sender, receiver, (&mut at, budget))
        };
    // Progress that was noted for interrupts means nothing any more.
    if is_there {
        sender.operation.set(Operation::None);
    }
    is_there
}

/// Transfers all other parts, as far as this step goes.
fn run_all_ahead(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (at, budget): (&mut Place, u64),
) -> bool {
    let view = processor::copy::view(k, sender.task(), receiver.task());
    let view = view.opened_at(receiver.block.address.get());
    let mut copying = Copying { k, sender, receiver, view, budget };
    let Err(halt) = copying.words_and_strings(at) else {
        copying.view.leave();
        return true;
    };
    copying.view.close();
    note_ahead(sender, receiver, Place { pauses: matches!(halt, Halt::Again), ..*at });
    false
}

/// Notes progress for the slow path.
fn note_ahead(sender: ThreadRef, receiver: ThreadRef, at: Place) {
    sender.operation.set(Operation::Ahead { to: receiver.uid(), at });
}

/// Transfers the string that has just been begun, with interrupts let in, if it is a long one in one region. One that comes finds noted how
/// much of the message is done, as if this string were, and takes the rest of it back: [`copy_interrupted`]. False if it is not there.
#[inline(always)]
fn long_string_ahead(sender: ThreadRef, receiver: ThreadRef, shown: Shown, at: &mut Place) -> bool {
    let (from, to) = sender.string.get();
    let (from, room) = (StringPart::from_words(from), StringPart::from_words(to));
    let len = from.len as u64;
    let is_long = arch::COPIES_OPENLY && len > CLOSED_BYTES_MAX && from.len <= StringPart::MAX;
    if !is_long || !at.begun || at.done != 0 || from.len > room.capacity {
        return false;
    }
    if from.address > abi::USER_END - StringPart::MAX as u64 || !shown.holds(room.address, len) {
        return false;
    }
    at.advance(len as i64);
    note_ahead(sender, receiver, Place { pauses: true, ..*at });
    if let Err((left, ..)) = shown.copy_openly(from.address, room.address, len) {
        at.advance(-(left as i64));
        return false;
    }
    let there = receiver.block.address.get()
        + 8 * receiver.block.room().room_as_used().words()
        + 16 * (at.part as u64 - 1);
    let written = [room.address, StringPart { len: from.len, ..room }.sizes()];
    if shown.write_pair(there, written).is_err() {
        return false;
    }
    (at.part, at.done, at.begun) = (at.part + 1, 0, false);
    true
}

/// Rest of a message behind its short strings.
struct Rest {
    /// Number of the first part that is left.
    part: u64,
    /// Bytes of it that are done.
    done: u64,
    /// Whether it has been begun.
    begun: bool,
    /// Bytes that are left of the budget.
    budget: u64,
}

impl Rest {
    /// Brings up to date the progress with a message, of which the strings were begun at `at` and with that much `budget`. Returns what is
    /// left of that.
    fn note(self, at: &mut Place, budget: u64) -> u64 {
        // A string that is there has cost its length and a constant.
        let strings = budget - self.budget - PART_BYTES * (self.part - at.part as u64);
        at.moved += strings + self.done;
        (at.part, at.done, at.begun) = (self.part as u16, self.done, self.begun);
        self.budget
    }
}

/// Transfers short strings, of which there are some, from part to part, up to the first that is something else; nothing is looked at twice.
/// `places`: of the first descriptors in the sender's block and in the receiver's, which is shown. Returns what is left of the budget.
#[inline(always)]
fn short_strings(
    sender: ThreadRef,
    shown: Shown,
    (mine, theirs): (u64, u64),
    (mut part, last): (u64, u64),
    mut budget: u64,
) -> Result<u64, Rest> {
    loop {
        let place = 16 * (part - 1);
        let Some((from, to)) = shown.read_pairs(mine + place, theirs + place) else {
            return Err(Rest { part, done: 0, begun: false, budget });
        };
        let (string, room) = (StringPart::from_words(from), StringPart::from_words(to));
        let len = string.len as u64;
        let is_short = len <= CLOSED_BYTES_MAX && string.len <= room.capacity;
        let is_here = string.address <= abi::USER_END - CLOSED_BYTES_MAX && shown.holds_page_at(room.address);
        if !is_short || !is_here || budget < PART_BYTES + len {
            sender.string.set((from, to));
            return Err(Rest { part, done: 0, begun: true, budget });
        }
        let result = shown.copy(string.address, room.address, len);
        let written = [room.address, StringPart { len: string.len, ..room }.sizes()];
        if result.is_err() || shown.write_pair(theirs + place, written).is_err() {
            sender.string.set((from, to));
            let done = len - result.err().map_or(0, |(left, ..)| left);
            return Err(Rest { part, done, begun: true, budget });
        }
        budget -= PART_BYTES + len;
        if part == last {
            return Ok(budget);
        }
        part += 1;
    }
}

/// The direct words and strings of a message on their way.
struct Copying<'a> {
    k: &'a Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    /// The receiver's memory.
    view: View,
    /// Bytes that are left of this step.
    budget: u64,
}

impl Copying<'_> {
    #[inline(always)]
    fn new(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) -> Copying<'_> {
        let view = processor::copy::view(k, sender.task(), receiver.task());
        Copying { k, sender, receiver, view, budget: PREEMPTION_BYTES }
    }

    /// Transfers direct words, then strings, for one budget.
    #[inline(always)]
    fn words_and_strings(&mut self, at: &mut Place) -> Result<(), Halt> {
        let (used, block) = (dope(self.sender), self.sender.frame.w[1].get());
        let room = self.receiver.block.room().with_used(used);
        let theirs = self.receiver.block.address.get();
        if at.part == 0 {
            if used.words() > room.room_as_used().words() {
                return Err(Halt::Failed(Error::Overflow, Error::Overflow));
            }
            if used.words() != 0 {
                self.words((block, theirs), 8 * used.words(), at)?;
            }
            (at.part, at.done) = (1, 0);
        }
        if used.strings() == 0 {
            return Ok(());
        }
        let places = (block + used.strings_offset(), theirs + room.strings_offset());
        let (count, most) = (used.strings(), room.room_as_used().strings());
        if at.part as u64 > count { Ok(()) } else { self.strings(places, (count, most), at) }
    }

    /// Copies direct words, or what is left of them.
    #[inline(always)]
    fn words(&mut self, places: (u64, u64), len: u64, at: &mut Place) -> Result<(), Halt> {
        if at.done != 0 || len > CLOSED_BYTES_MAX {
            return self.copy(places, len, at);
        }
        self.budget -= len;
        let result = self.view.copy_here(places.0, places.1, len);
        at.advance(result.err().map_or(len, |fault| fault.done) as i64);
        result.map_err(|fault| halt(fault, Rights::W))
    }

    /// Transfers strings: short ones together, others one by one.
    #[inline(never)]
    fn strings(&mut self, places: (u64, u64), (count, most): (u64, u64), at: &mut Place) -> Result<(), Halt> {
        loop {
            self.some_strings(places, count.min(most), at);
            if at.part as u64 > count {
                return Ok(());
            }
            if self.budget < OTHER_BYTES {
                return Err(Halt::Again);
            }
            self.budget -= OTHER_BYTES;
            let number = at.part as u64 - 1;
            if number >= most {
                return Err(Halt::Failed(Error::Overflow, Error::Overflow));
            }
            self.string((places.0 + 16 * number, places.1 + 16 * number), at)?;
            (at.part, at.done, at.begun) = (at.part + 1, 0, false);
        }
    }

    /// Transfers short strings, up to the first other one.
    #[inline(always)]
    fn some_strings(&mut self, places: (u64, u64), last: u64, at: &mut Place) {
        if at.begun || at.part as u64 > last {
            return;
        }
        let shown = self.view.show(places.1);
        let rest = match short_strings(self.sender, shown, places, (at.part as u64, last), self.budget) {
            Ok(budget) => Rest { part: last + 1, done: 0, begun: false, budget },
            Err(rest) => rest,
        };
        self.budget = rest.note(at, self.budget);
    }

    /// Transfers one string. Its descriptors are read once: then their bounds hold until the string is there, whatever users write to them.
    fn string(&mut self, (mine, theirs): (u64, u64), at: &mut Place) -> Result<(), Halt> {
        if !at.begun {
            let read = self.view.read_pairs(mine, theirs);
            self.begin(read.map_err(|fault| halt(fault, Rights::R))?, at);
        }
        let (from, to) = self.sender.string.get();
        let (from, to) = (StringPart::from_words(from), StringPart::from_words(to));
        let end = |part: StringPart| part.address.checked_add(from.len as u64);
        if from.len > StringPart::MAX || end(from).is_none_or(|end| end > abi::USER_END) {
            return Err(Halt::Failed(Error::BadArgument, Error::NoAccess));
        }
        if from.len > to.capacity || end(to).is_none_or(|end| end > abi::USER_END) {
            return Err(Halt::Failed(Error::Overflow, Error::Overflow));
        }
        self.copy((from.address, to.address), from.len as u64, at)?;
        let written = [to.address, StringPart { len: from.len, ..to }.sizes()];
        let result = self.view.write_pair(theirs, written);
        result.map_err(|address| Halt::Theirs(address, Rights::W))
    }

    /// Notes the descriptors of a string that may not be there at the end of this step.
    fn begin(&self, descriptors: ([u64; 2], [u64; 2]), at: &mut Place) {
        self.sender.string.set(descriptors);
        at.begun = true;
    }

    /// Copies what is left of `len` bytes from the sender's to the receiver's address.
    #[inline(never)]
    fn copy(&mut self, (from, to): (u64, u64), len: u64, at: &mut Place) -> Result<(), Halt> {
        while at.done < len {
            let places = (from + at.done, to + at.done);
            let left = len - at.done;
            if arch::COPIES_OPENLY && left > CLOSED_BYTES_MAX {
                self.copy_openly(places, left, at).map_err(|fault| halt(fault, Rights::W))?;
                continue;
            }
            if self.budget == 0 {
                return Err(Halt::Again);
            }
            let now = left.min(self.budget);
            self.budget -= now;
            let result = self.view.copy(places.0, places.1, now);
            at.advance(result.err().map_or(now, |fault| fault.done) as i64);
            result.map_err(|fault| halt(fault, Rights::W))?;
        }
        Ok(())
    }

    /// Copies some of `len` bytes, with interrupts let in. One that comes finds the sender as if all of these were done, and takes
    /// the rest of them back: [`copy_interrupted`].
    fn copy_openly(&mut self, (from, to): (u64, u64), len: u64, at: &mut Place) -> Result<(), CopyFault> {
        let (sender, receiver) = (self.sender, self.receiver);
        let now = arch::copy_at_once(to, len);
        if let Operation::Transfer { .. } = sender.operation.get() {
            if !core::mem::replace(&mut at.receiver_limited, true) {
                taking::limit(self.k, self.receiver);
            }
            at.advance(now as i64);
            sender.operation.set(Operation::Transfer { to: receiver.uid(), at: *at });
            self.k.set_busy(sender);
        } else {
            at.advance(now as i64);
            note_ahead(sender, receiver, Place { pauses: true, ..*at });
        }
        let result = self.view.copy_openly(from, to, now);
        if let Err(fault) = result {
            at.advance(fault.done as i64 - now as i64);
        }
        result
    }
}

fn halt(fault: CopyFault, rights: Rights) -> Halt {
    if fault.at_target { Halt::Theirs(fault.address, rights) } else { Halt::Mine(fault.address) }
}

/// Ends a copy of the current thread's in whose middle an interrupt came, with `left` bytes to go. Then the thread is busy, and
/// goes on as after any step; or this is false, and it has not begun to send: the slow path has to, before anything else happens.
pub fn copy_interrupted(current: ThreadRef, left: u64) -> bool {
    match current.operation.get() {
        Operation::Transfer { to, mut at } => {
            at.advance(-(left as i64));
            current.operation.set(Operation::Transfer { to, at });
            true
        }
        Operation::Ahead { to, mut at } => {
            at.advance(-(left as i64));
            current.operation.set(Operation::Ahead { to, at });
            false
        }
        _ => unreachable!("only transfers can be interrupted"),
    }
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
