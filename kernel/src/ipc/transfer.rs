//! Long messages: the part of a message that lies in memory, copied once from block to block (rows P2, P3).
//!
//! The sender drives, in its own space, as with map items: it is *busy* ([`Operation::Transfer`]) from one budget to the
//! next while the receiver waits in [`State::Taking`]. A page fault on the sender's side is the sender's, in the
//! middle of its ipc. One on the receiver's side is sent to the receiver's pager as the receiver's
//! ([`Operation::Taken`]), and the sender waits for it ([`State::Stalled`]). Each side bounds by its *patience* how long it takes part:
//! the receiver from the end of the first step, the sender from the receiver's first fault. So neither a pager nor a partner that is stopped,
//! or starved by its own priority, holds the other for longer.
//!
//! **What the receiver may rely on.** It runs again only when everything is there, or with an error. Its block and buffers
//! may have changed before that: what a transfer that fails has copied stays copied, and other threads of its task see it
//! come. Nothing outside of the block and its buffers is ever written.

use super::item::{self, begin};
use super::{
    LENIENT, Request, clan, door, fail_blocked, fault, file_deadline, hand_over, leave_queue,
    receive_and_run, set_error, set_result,
};
use crate::arch::{self, CopyFault};
use crate::kernel::Kernel;
use crate::mem::space::{self, Plan, Progress};
use crate::object::thread::{Errand, Frame, Operation, Place, State, Wait};
use crate::object::{TaskRef, ThreadRef};
use crate::param::{PREEMPTION_BYTES, PREEMPTION_PAGES};
use crate::sched::Next;
use abi::call::{ITEM_WHOLE, NO_BLOCK, NO_ITEM, PATIENCE_US};
use abi::op::{self, Op};
use abi::{Dope, Error, Fpage, Kind, Rights, StringPart, Timeout, Uid};

/// What the descriptors of a string cost of a step's budget: as long as reading and writing them takes, so much could be
/// copied. An item is a step of its own.
const PART_BYTES: u64 = 4096;

/// Longer copies let interrupts in, and cost nothing of the budget.
const CLOSED_BYTES_MAX: u64 = 4096;

/// Why a transfer does not go on just now.
enum Halt {
    /// The budget is used up.
    Again,
    /// A page fault on the sender's side, reading.
    Mine(u64),
    /// A page fault on the receiver's side.
    Theirs(u64, Rights),
    /// It ends here. The errors are the sender's and the receiver's.
    Failed(Error, Error),
}

/// Whether the message in a thread's registers has a block.
pub(super) fn is_long(sender: ThreadRef) -> bool {
    sender.frame.op().is_long()
}

fn dope(sender: ThreadRef) -> Dope {
    Dope(sender.frame.w[0].get())
}

/// Whether dope and address in the thread's registers describe a block at all: what is used of it lies in the user half. Room that a
/// dope still says from when the block came does not count.
pub(super) fn is_block(sender: ThreadRef) -> bool {
    let end = sender.frame.w[1].get().checked_add(dope(sender).used_size());
    dope(sender).0 & 0xf000_0000 == 0 && end.is_some_and(|end| end <= abi::USER_END)
}

/// The current thread sends a message with a block to a partner that waits for it.
#[inline(never)]
pub(super) fn send(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    let error = match partner.takes_block() {
        _ if !is_block(current) => Error::BadArgument,
        false => Error::NoWindow,
        true => {
            request.suspend(current);
            start(k, current, partner);
            return proceed(k, current, partner, Place::default());
        }
    };
    if request.has(LENIENT) && error == Error::NoWindow {
        // Who waits for this thread alone, and was meant, has got its answer, if one that it did not want.
        if partner.wait() != Wait::Open && partner.uid() == request.dest {
            fail_blocked(k, partner, error);
        }
        return receive_and_run(k, current, &request, None);
    }
    set_error(current, error);
    Next::Same
}

/// `thread` takes a long message from its queue; the sender is ready and in no queue. False if that cannot begin: then
/// the sender has the error.
pub(super) fn take(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> bool {
    thread.errand.set(Errand::Ipc);
    let can = is_block(sender) && thread.takes_block();
    if can {
        start(k, sender, thread);
    } else {
        set_error(sender, if is_block(sender) { Error::NoWindow } else { Error::BadArgument });
    }
    k.wake(sender);
    can
}

fn start(k: &Kernel, sender: ThreadRef, receiver: ThreadRef) {
    start_from(k, sender, receiver, sender.uid());
}

/// `from` is nil for a server that waited for a call through a door, and the sender for any other receiver.
pub(super) fn start_from(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, from: Uid) {
    // A sender that does not run now may be stopped, or never come to run.
    let limited = sender != arch::current();
    let at = Place { receiver_limited: limited, ..Place::default() };
    begin(k, sender, receiver, Operation::Transfer { to: receiver.uid(), at });
    receiver.then_from.set(from);
    if limited {
        limit(k, receiver);
    }
}

/// The current thread transfers the block of a door's call or return.
pub(super) fn go(k: &Kernel, current: ThreadRef, receiver: ThreadRef, from: Uid) -> Next {
    start_from(k, current, receiver, from);
    proceed(k, current, receiver, Place::default())
}

/// The busy sender goes on.
pub fn continue_transfer(k: &Kernel, current: ThreadRef, to: Uid, at: Place) -> Next {
    let Some(receiver) = k.thread(to) else {
        end_sender(k, current, Error::PartnerDied, at.moved);
        return Next::Same;
    };
    proceed(k, current, receiver, at)
}

fn proceed(k: &Kernel, current: ThreadRef, receiver: ThreadRef, mut at: Place) -> Next {
    let halt = match run(k, current, receiver, &mut at) {
        Ok(()) => return finish(k, current, receiver, at),
        Err(halt) => halt,
    };
    if !core::mem::replace(&mut at.receiver_limited, true) {
        limit(k, receiver);
    }
    current.operation.set(Operation::Transfer { to: receiver.uid(), at });
    k.set_busy(current);
    match halt {
        Halt::Again => Next::Same,
        Halt::Mine(address) => my_fault(k, current, receiver, at, address),
        Halt::Theirs(address, rights) => their_fault(k, current, receiver, at, (address, rights)),
        Halt::Failed(mine, theirs) => {
            break_off(k, current, receiver, mine, theirs);
            Next::Same
        }
    }
}

/// Transfers part after part, for one budget.
fn run(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, at: &mut Place) -> Result<(), Halt> {
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

/// Copies `len` bytes of the budget.
#[inline(always)]
fn copy_closed(
    k: &Kernel,
    (source, target): ((TaskRef, u64), (TaskRef, u64)),
    len: u64,
    at: &mut Place,
    budget: &mut u64,
) -> Result<(), Halt> {
    *budget -= len;
    let result = arch::copy(k, source, target, len);
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
/// back what is not: [`copy_interrupted`].
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
        limit(k, receiver);
    }
    let now = arch::copy_at_once(target.1, len);
    at.advance(now as i64);
    sender.operation.set(Operation::Transfer { to: receiver.uid(), at: *at });
    k.set_busy(sender);
    let result = arch::copy_openly(k, source, target, now);
    if let Err(fault) = result {
        at.advance(fault.done as i64 - now as i64);
    }
    result
}

/// An interrupt came in the middle of a copy of the current thread's, of which so many bytes are left. The thread is busy, and
/// goes on as after any step.
pub fn copy_interrupted(current: ThreadRef, left: u64) {
    let Operation::Transfer { to, mut at } = current.operation.get() else {
        unreachable!("only transfers can be interrupted")
    };
    at.advance(-(left as i64));
    current.operation.set(Operation::Transfer { to, at });
}

/// Two words of the sender's or of the receiver's block.
fn descriptor(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    (from, to): (u64, u64),
) -> Result<([u64; 2], [u64; 2]), Halt> {
    let mine = sender.task();
    let words = arch::read_words(k, mine, (mine, from)).map_err(Halt::Mine)?;
    let room = arch::read_words(k, mine, (receiver.task(), to))
        .map_err(|address| Halt::Theirs(address, Rights::R))?;
    Ok((words, room))
}

/// One string. The descriptors are read anew, and all of their bounds checked, each time: what a user changes meanwhile is its own affair.
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
    arch::write_words(k, sender.task(), (receiver.task(), place), words)
        .map_err(|address| Halt::Theirs(address, Rights::W))
}

/// One map item, into the window in the receiver's descriptor.
#[inline(never)]
fn map_item(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    places: (u64, u64),
    at: &mut Place,
) -> Result<(), Halt> {
    if door::carried(sender).is_some() && !door::may_hand(sender, receiver) {
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
    result.map_err(|space::Again| Halt::Again)?;
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
    let plan = if page.is_valid() && window.is_valid() { space::plan(page, hot_spot, window) } else { None };
    plan.map(|plan| (plan, hot_spot)).ok_or(Halt::Failed(Error::NoWindow, Error::NoAccess))
}

/// Everything is there: the message arrives, and the current sender goes on with its receive phase.
fn finish(k: &Kernel, current: ThreadRef, receiver: ThreadRef, at: Place) -> Next {
    k.wheel.remove(receiver);
    current.operation.set(Operation::None);
    current.frame.mode.set(Frame::SYSRET);
    if let Some(carries) = door::carried(current) {
        let deliver = |kind| deliver(current, receiver, kind, at.cut);
        return door::arrive(k, current, receiver, carries, at.moved, deliver);
    }
    let request = Request::resumed(current);
    let kind = if request.is_call() { Kind::Request } else { Kind::Reply };
    let passed = k.pass(current, receiver, request.is_call());
    deliver(current, receiver, kind, at.cut);
    let sent = hand_over(k, current, receiver, passed);
    receive_and_run(k, current, &request, Some(sent))
}

/// The words in registers: those of a block's message begin with its dope and address.
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
    let label = from.rax.get() >> 32 << 32;
    set_result(receiver, label | kind as u64, sender.uid());
    if sender.crossing.get() != 0 {
        clan::mark(sender, receiver);
    }
    receiver.set_ready();
}

/// The current sender touched a page that it has not. The receiver waits for that no longer than it wants to.
#[inline(never)]
fn my_fault(k: &Kernel, current: ThreadRef, receiver: ThreadRef, mut at: Place, address: u64) -> Next {
    if current.pager.get() == receiver.uid() || !awaits_faults(receiver) {
        break_off(k, current, receiver, Error::NoAccess, Error::NoAccess);
        return Next::Same;
    }
    at.faulted = true;
    current.operation.set(Operation::Transfer { to: receiver.uid(), at });
    fault::page_fault(k, current, address, Rights::R)
}

/// The receiver has not the page that is to be copied to: it faults, and the sender waits for that no longer than it wants to.
fn their_fault(
    k: &Kernel,
    current: ThreadRef,
    receiver: ThreadRef,
    mut at: Place,
    (address, rights): (u64, Rights),
) -> Next {
    let pager = k.thread(receiver.pager.get()).filter(|&pager| pager != receiver && pager != current);
    let (Some(pager), true) = (pager, awaits_faults(current)) else {
        break_off(k, current, receiver, Error::NoAccess, Error::NoAccess);
        return Next::Same;
    };
    if !core::mem::replace(&mut at.sender_limited, true) {
        limit(k, current);
    } else if !file_limit(k, current) {
        break_off(k, current, receiver, Error::NoAccess, Error::NoAccess);
        return Next::Same;
    }
    k.wheel.remove(receiver);
    at.faulted = true;
    current.operation.set(Operation::Transfer { to: receiver.uid(), at });
    current.state.set(State::Stalled);
    current.partner.set(receiver.uid());
    // The fault is the receiver's, on its own shuttle, which the sender may still be on.
    let returned = k.regain(receiver, Some(current));
    receiver.operation.set(Operation::Taken { from: current.uid(), returned });
    receiver.errand.set(Errand::Fault);
    fault::note(receiver, address, rights);
    fault::post(k, receiver, pager);
    Next::Any
}

/// Whether a thread waits for page faults of its partner's at all.
fn awaits_faults(thread: ThreadRef) -> bool {
    Timeout(thread.block.timeout.get()) != Timeout::ZERO
}

/// From now on a thread takes part in a transfer, or the mapping of an item, until its patience ends. That goes through all of it, so
/// that it is not prolonged by a pager whose answers give nothing.
pub(super) fn limit(k: &Kernel, thread: ThreadRef) {
    let patience = match Timeout(thread.block.timeout.get()) {
        Timeout::ZERO => Some(PATIENCE_US),
        patience => patience.us(),
    };
    let until = patience.map_or(u64::MAX, |us| arch::now_ns() + us * 1000);
    thread.block.patient_until.set(until);
    file_limit(k, thread);
}

/// Files the end of a thread's patience. False if that is over.
fn file_limit(k: &Kernel, thread: ThreadRef) -> bool {
    let (until, now) = (thread.block.patient_until.get(), arch::now_ns());
    if until != u64::MAX {
        // The wheel takes no point that has passed: then it is the next.
        file_deadline(k, thread, until.max(now));
    }
    until > now
}

/// The patience of a thread is over that takes part in a transfer or takes an item.
pub(super) fn out_of_patience(k: &Kernel, thread: ThreadRef) {
    let sender = Some(thread).filter(|it| is_transferring(*it)).or(k.thread(thread.partner.get()));
    let under_way = sender.map(|sender| sender.operation.get());
    let faults = matches!(under_way, Some(Operation::Transfer { at: Place { faulted: true, .. }, .. }));
    let (own, other) =
        if faults { (Error::NoAccess, Error::NoAccess) } else { (Error::ReceiveTimeout, Error::SendTimeout) };
    if !interrupt(k, thread, own, other) {
        item::abandon(k, thread, own, other);
    }
}

/// The receiver's fault is resolved, and it holds a shuttle: it takes on, and the sender goes on. If the fault `returned` the receiver's
/// shuttle from the sender, that has it again.
pub(super) fn resume(k: &Kernel, receiver: ThreadRef, from: Uid, returned: bool) {
    receiver.operation.set(Operation::None);
    receiver.errand.set(Errand::Ipc);
    receiver.hot.accept.set(crate::object::thread::NEVER);
    receiver.state.set(State::Taking);
    receiver.partner.set(from);
    if let Some(sender) = k.thread(from) {
        if returned {
            k.lend(receiver, sender);
            receiver.lent_to.set(from);
        }
        file_limit(k, receiver);
        k.wheel.remove(sender);
        sender.set_ready();
        k.wake(sender);
    }
}

/// If a thread's fault that nobody resolves came in the middle of a transfer, that ends, and true is returned.
pub(super) fn broken(k: &Kernel, thread: ThreadRef) -> bool {
    interrupt(k, thread, Error::NoAccess, Error::NoAccess)
}

/// Ends the transfer that a thread takes part in, on either side, because of something that happened to this thread.
/// False if it is in none.
pub(super) fn interrupt(k: &Kernel, thread: ThreadRef, own: Error, other: Error) -> bool {
    let partner = k.thread(thread.partner.get());
    match (thread.operation.get(), thread.state.get()) {
        (Operation::Transfer { to, .. }, _) => end_both(k, Some(thread), k.thread(to), own, other),
        (Operation::Taken { from, .. }, _) => end_both(k, k.thread(from), Some(thread), other, own),
        (_, State::Taking) if partner.is_some_and(is_transferring) => {
            end_both(k, partner, Some(thread), other, own)
        }
        _ => return false,
    }
    true
}

fn is_transferring(thread: ThreadRef) -> bool {
    matches!(thread.operation.get(), Operation::Transfer { .. })
}

/// Whether a message is on its way into a thread's block or window. Where that is stays what it was when the message was accepted.
pub fn is_taking(thread: ThreadRef) -> bool {
    thread.state.get() == State::Taking || matches!(thread.operation.get(), Operation::Taken { .. })
}

/// A thread that takes part in a transfer ends: the other gets an error.
pub(super) fn leave(k: &Kernel, thread: ThreadRef) {
    match thread.operation.get() {
        Operation::Transfer { to, .. } => {
            end_both(k, None, k.thread(to), Error::PartnerDied, Error::PartnerDied)
        }
        Operation::Taken { from, .. } => {
            end_both(k, k.thread(from), None, Error::PartnerDied, Error::PartnerDied)
        }
        _ => {}
    }
}

fn break_off(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, mine: Error, theirs: Error) {
    end_both(k, Some(sender), Some(receiver), mine, theirs);
}

fn end_both(k: &Kernel, sender: Option<ThreadRef>, receiver: Option<ThreadRef>, mine: Error, theirs: Error) {
    let at = |thread: ThreadRef| match thread.operation.get() {
        Operation::Transfer { at, .. } => at.moved,
        _ => 0,
    };
    let moved = sender.map_or(0, at);
    if let Some(receiver) = receiver {
        stop_waiting(k, receiver);
        receiver.operation.set(Operation::None);
        if door::was_to_be_called(receiver) {
            door::not_called(k, receiver);
        } else {
            set_error(receiver, theirs);
            receiver.frame.w[0].set(moved);
            k.wake(receiver);
        }
    }
    if let Some(sender) = sender {
        stop_waiting(k, sender);
        end_sender(k, sender, mine, moved);
    }
}

/// Takes a thread out of whatever a fault in the middle of a transfer made it wait for. It is ready afterwards.
fn stop_waiting(k: &Kernel, thread: ThreadRef) {
    k.wheel.remove(thread);
    match (thread.wait(), thread.state.get()) {
        (Wait::No, State::Sending) => leave_queue(thread),
        // It may be its pager who maps, on its shuttle.
        (Wait::No, State::Taking) => item::leave_mapping(k, thread, Error::SendAborted),
        _ => {}
    }
    k.regain(thread, None);
    thread.errand.set(Errand::Ipc);
    thread.set_ready();
}

/// A server whose message did not arrive goes on with what comes after it. False if the sender is none.
fn goes_on(k: &Kernel, sender: ThreadRef) -> bool {
    let replies = sender.frame.op() == Op::REPLY_WAIT.with(op::BLOCK);
    if replies {
        sender.operation.set(Operation::Receive);
        sender.frame.mode.set(Frame::SYSRET);
        k.set_busy(sender);
    }
    replies
}

/// The sender's ipc ends with an error, except that a reply by ipc which does not arrive is no error of the server's.
fn end_sender(k: &Kernel, sender: ThreadRef, error: Error, moved: u64) {
    sender.operation.set(Operation::None);
    door::stays(k, sender);
    if error == Error::BadArgument || !goes_on(k, sender) {
        set_error(sender, error);
        sender.frame.w[0].set(moved);
    }
    if sender != arch::current() {
        k.wake(sender);
    }
}
