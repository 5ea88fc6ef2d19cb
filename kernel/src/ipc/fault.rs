//! Page faults and exceptions: messages that the kernel sends for a thread (row C7).
//!
//! The thread waits for the answer with its registers untouched in its frame; it is a call like any other, so the
//! pager or handler runs on the thread's shuttle.

use super::wait::{Sent, enqueue_sender, hand_over, wait_of};
use super::{broken, outcome, plain, taking};
use crate::kernel::Kernel;
use crate::lend::Passed;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, Operation, Wait, special};
use crate::processor::extended;
use crate::sched::Next;
use abi::call::{PORT_FAULT, REFUSE, RESUME, RESUME_AS_IS, vector};
use abi::op::{self, Op};
use abi::{Call, Fpage, Kind, Rights, Uid};

/// Raises a page fault: the current thread, in user mode, touched a page that its task does not have, or not with these rights.
/// `leave` leaves the kernel with a thread that goes on at once, on the current one's shuttle.
#[inline(always)]
pub fn page_fault(
    k: &Kernel,
    current: ThreadRef,
    (address, rights): (u64, Rights),
    leave: impl FnOnce(ThreadRef) -> Next,
) -> Next {
    note(current, address, rights);
    if address < abi::USER_END
        && let Some(pager) = k.thread(current.fault.pager.get())
        && plain::call(current, pager, Kind::Fault, fault_words(current, current.frame.ip()))
    {
        current.errand.set(Errand::Fault);
        return leave(pager);
    }
    ask_pager(k, current, address)
}

/// Raises a page fault at an address of user memory that the kernel reads or writes in the middle of a system call of the current thread.
#[inline(never)]
pub fn fault_in_call(k: &Kernel, current: ThreadRef, address: u64, rights: Rights) -> Next {
    note(current, address, rights);
    ask_pager(k, current, address)
}

/// Calls the pager of the current thread, which wanted to use an address that a pager can make valid.
#[inline(never)]
fn ask_pager(k: &Kernel, current: ThreadRef, address: u64) -> Next {
    if address >= abi::USER_END {
        return raise_unresolved(k, current, vector::UNRESOLVED_FAULT);
    }
    call_pager(k, current, vector::UNRESOLVED_FAULT)
}

/// Raises a fault of ports that the current thread wanted and its task does not have: a page fault at an address that nobody has.
#[cold]
#[inline(never)]
pub fn port_fault(k: &Kernel, current: ThreadRef, ports: Fpage) -> Next {
    note(current, ports.0 | PORT_FAULT, ports.rights());
    call_pager(k, current, vector::PROTECTION)
}

/// Calls the pager of the current thread. `otherwise`: the exception that the fault becomes if there is no pager.
#[inline(always)]
fn call_pager(k: &Kernel, current: ThreadRef, otherwise: u64) -> Next {
    current.errand.set(Errand::Fault);
    match k.thread(current.fault.pager.get()).filter(|&pager| pager != current) {
        Some(pager) => call_for(k, current, pager),
        None => raise_unresolved(k, current, otherwise),
    }
}

#[cold]
fn raise_unresolved(k: &Kernel, current: ThreadRef, vector: u64) -> Next {
    if broken::broken(k, current) {
        return Next::Same;
    }
    raise(k, current, vector)
}

/// Records a page fault of a thread.
#[inline(always)]
pub(super) fn note(thread: ThreadRef, address: u64, rights: Rights) {
    thread.fault.count.set(thread.fault.count.get() + 1);
    let task = thread.task();
    task.faults.set(task.faults.get() + 1);
    thread.fault.address.set(address);
    thread.fault.rights.set(rights);
}

/// Raises an exception that the processor found in the current thread. `leave`: as for [`page_fault`].
#[inline(always)]
pub fn exception(k: &Kernel, current: ThreadRef, vector: u64, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    if let Some(handler) = k.thread(current.fault.handler.get())
        && plain::call(current, handler, Kind::Exception, exception_words(current, vector))
    {
        current.fault.exception.set(vector);
        current.errand.set(Errand::Exception);
        return leave(handler);
    }
    raise(k, current, vector)
}

/// Raises an exception of the current thread.
#[inline(never)]
pub fn raise(k: &Kernel, current: ThreadRef, vector: u64) -> Next {
    current.fault.exception.set(vector);
    current.errand.set(Errand::Exception);
    match k.thread(current.fault.handler.get()).filter(|&handler| handler != current) {
        Some(handler) => call_for(k, current, handler),
        None => {
            stop(current);
            Next::Any
        }
    }
}

/// Stops a thread whose exception nobody handles. Its chief sees it in the state *stopped*.
fn stop(thread: ThreadRef) {
    thread.errand.set(Errand::Ipc);
    thread.set_ready();
    thread.set_special(special::STOPPED, 0);
}

/// Sends the current thread's fault or exception, whatever its partner does.
#[inline(always)]
fn call_for(k: &Kernel, current: ThreadRef, partner: ThreadRef) -> Next {
    if current.hot.shuttle.get() != current.home_ref() {
        keep_state(k, current, partner);
    }
    let wait = wait_of(partner);
    if !takes_fault(wait, current) {
        enqueue_sender(k, current, partner);
        k.wheel.remove(current);
        return Next::Any;
    }
    k.wheel.remove(partner);
    let passed = k.pass_in(current, partner, wait, true);
    deliver(partner, current, passed);
    match hand_over(k, current, partner, passed).first {
        Some(partner) => Next::To(partner),
        None => Next::Any,
    }
}

/// Keeps the extended state of a thread that faults on a borrowed shuttle. A foreign call that is taken at once passes it on, like a message.
#[cold]
fn keep_state(k: &Kernel, current: ThreadRef, partner: ThreadRef) {
    let is_borrowed = k.shuttle_of(current) != current;
    if is_borrowed && !(partner.wait() == Wait::Open && takes_call(partner, current)) {
        extended::keep(current);
    }
}

/// Lets the state of a thread that was [kept](extended::keep) go with the shuttle that the thread is about to lend for its fault, if that is its own.
#[inline(always)]
pub(super) fn send_state_along(thread: ThreadRef) {
    if thread.special.get() & special::STATE_KEPT != 0 {
        extended::goes_along(thread);
    }
}

/// Whether a thread in this wait takes the fault or exception of `thread` now. In a wait for an answer to a fault it does not.
#[inline(always)]
fn takes_fault(wait: Wait, thread: ThreadRef) -> bool {
    match wait {
        Wait::Open => true,
        Wait::Closed(from) => from == thread.uid(),
        _ => false,
    }
}

/// Sends the fault or exception of a thread that is not running.
pub(super) fn post(k: &Kernel, thread: ThreadRef, partner: ThreadRef) {
    let wait = wait_of(partner);
    if !takes_fault(wait, thread) {
        k.wheel.remove(thread);
        return enqueue_sender(k, thread, partner);
    }
    k.wheel.remove(partner);
    k.shuttle_of(thread);
    send_state_along(thread);
    let passed = k.pass_in(thread, partner, wait, true);
    deliver(partner, thread, passed);
    k.wake(partner);
}

/// Writes the message into the registers of `receiver`, which is ready afterwards, and makes the thread wait. Its frame
/// is a trap's: that of the fault, of the exception, or of a system call that became one; or it is in the middle of a
/// long message.
#[inline(always)]
pub(super) fn deliver(receiver: ThreadRef, thread: ThreadRef, passed: Passed) {
    let (kind, words) = if thread.errand.get() == Errand::Fault {
        (Kind::Fault, fault_words(thread, thread.user_ip()))
    } else {
        if thread.fault.exception.get() == vector::SYSCALL {
            let is_foreign = takes_call(receiver, thread);
            thread.fault.is_foreign.set(is_foreign);
            if is_foreign {
                return deliver_foreign(receiver, thread, passed);
            }
        }
        (Kind::Exception, exception_words(thread, thread.fault.exception.get()))
    };
    for (cell, word) in receiver.frame.w.iter().zip(words.into_iter().chain([0; 3])) {
        cell.set(word);
    }
    outcome::set_result(receiver, kind as u64, thread.uid());
    receiver.set_ready();
    // A fault that called back to the thread whose shuttle it was on has lent nothing.
    thread.set_faulting(receiver.uid(), passed == Passed::Lent);
}

/// Words of the message about the page fault of a thread.
#[inline(always)]
fn fault_words(thread: ThreadRef, ip: u64) -> [u64; 8] {
    let access = thread.fault.address.get() & !7 | thread.fault.rights.get().0 as u64;
    [access, ip, thread.task().id.get().0, 0, 0, 0, 0, 0]
}

/// Words of the message about the exception of a thread.
#[inline(always)]
fn exception_words(thread: ThreadRef, exception: u64) -> [u64; 8] {
    let [ip, sp, flags, head] = thread.frame.at_trap();
    [
        exception,
        thread.frame.error.get(),
        ip,
        sp,
        flags,
        head,
        thread.task().id.get().0,
        thread.fault.address.get(),
    ]
}

/// Whether the exception that a thread sends is a foreign call, and its handler takes that as one.
#[cold]
fn takes_call(handler: ThreadRef, thread: ThreadRef) -> bool {
    let is_call = thread.errand.get() == Errand::Exception
        && thread.fault.exception.get() == vector::SYSCALL
        && thread.frame.op().is_foreign();
    is_call && handler.takes_foreign() && handler.may_do_calls_of(thread)
}

/// Gives the foreign call of a thread to a handler that takes it, which is ready afterwards, and makes the thread wait.
#[cold]
fn deliver_foreign(handler: ThreadRef, thread: ThreadRef, passed: Passed) {
    handler.frame.take_registers(&thread.frame, thread.frame.head());
    handler.frame.leave_with_flags(thread.foreign.mark.get());
    handler.set_ready();
    let lends = passed == Passed::Lent;
    if !(lends && thread.fold_foreign(handler)) {
        thread.set_faulting(handler.uid(), lends);
    }
}

/// Answers a fault or exception for the current thread, without a map item, by a call or not. Returns the rest of its send phase;
/// `None` if there is no receiver to hand over to.
#[inline(always)]
pub(super) fn answer(k: &Kernel, current: ThreadRef, thread: ThreadRef, is_call: bool) -> Option<Sent> {
    let label = (current.frame.head() >> 32) as u32;
    let words: [u64; 4] = core::array::from_fn(|i| current.frame.w[2 + i].get());
    let goes_on = match thread.errand.get() {
        Errand::Exception => label == RESUME_AS_IS || label == RESUME && resume(thread, words),
        _ if label == REFUSE => {
            refuse(k, current, thread);
            return None;
        }
        _ => true,
    };
    finish(k, current, thread, is_call, goes_on)
}

/// Answers an exception by a short reply and wait, after which the thread goes on. False if nothing was done.
#[inline(always)]
pub(super) fn answer_plainly(k: &Kernel, current: ThreadRef, thread: ThreadRef) -> bool {
    if thread.errand.get() != Errand::Exception || !plain::is_answer(current, thread) {
        return false;
    }
    let words: [u64; 4] = core::array::from_fn(|i| current.frame.w[2 + i].get());
    let label = (current.frame.head() >> 32) as u32;
    let goes_on = label == RESUME_AS_IS || label == RESUME && resume(thread, words);
    if goes_on {
        plain::resume(k, current, thread);
    }
    goes_on
}

/// Answers a fault with an item, which is mapped. Returns as [`answer`] does.
#[inline(always)]
pub(super) fn answer_mapped(
    k: &Kernel,
    current: ThreadRef,
    thread: ThreadRef,
    is_call: bool,
    whole: bool,
) -> Option<Sent> {
    if whole && thread.errand.get() == Errand::Fault {
        return finish(k, current, thread, is_call, true);
    }
    refuse(k, current, thread);
    None
}

/// Lets the thread go on on the shuttle that it lent, or stops it.
#[inline(always)]
pub(super) fn finish(
    k: &Kernel,
    current: ThreadRef,
    thread: ThreadRef,
    is_call: bool,
    goes_on: bool,
) -> Option<Sent> {
    if let Operation::Taken { from, returned } = thread.operation.get() {
        resume_taking(k, current, thread, (from, returned));
        return None;
    }
    let passed = k.pass_in(current, thread, Wait::Answer(current.uid()), is_call);
    thread.errand.set(Errand::Ipc);
    thread.set_ready();
    if !goes_on {
        stop(thread);
    }
    Some(hand_over(k, current, thread, passed))
}

/// Goes on with a long message in whose middle the thread, which receives it, faulted.
#[cold]
fn resume_taking(k: &Kernel, current: ThreadRef, thread: ThreadRef, (from, returned): (Uid, bool)) {
    k.regain(thread, Some(current));
    taking::resume(k, thread, from, returned);
}

/// Refuses a fault for its pager: it becomes an exception.
#[inline(never)]
fn refuse(k: &Kernel, current: ThreadRef, thread: ThreadRef) {
    k.regain(thread, Some(current));
    unanswered(k, thread);
}

/// Leaves a thread that is not running without an answer to its fault or exception: a fault becomes an exception, an exception
/// stops it. Its shuttle is its own again.
pub(super) fn unanswered(k: &Kernel, thread: ThreadRef) {
    thread.set_ready();
    if broken::broken(k, thread) {
        return;
    }
    let handler = k.thread(thread.fault.handler.get()).filter(|&handler| handler != thread);
    let (Errand::Fault, Some(handler)) = (thread.errand.get(), handler) else {
        return stop(thread);
    };
    let is_about_ports = thread.fault.address.get() & PORT_FAULT != 0;
    thread.fault.exception.set(if is_about_ports { vector::PROTECTION } else { vector::UNRESOLVED_FAULT });
    thread.errand.set(Errand::Exception);
    post(k, thread, handler);
}

/// Loads the registers with which the handler wants the thread to continue. False if they are not fit for user mode.
fn resume(thread: ThreadRef, [ip, sp, flags, head]: [u64; 4]) -> bool {
    if ip >= abi::USER_END || sp >> 47 != 0 {
        return false;
    }
    thread.frame.set_at_trap([ip, sp, Frame::user_flags(flags), head]);
    true
}

/// Turns the current thread's system call into an exception: its frame is completed as a trap's.
#[cold]
pub fn system_call_exception(k: &Kernel, current: ThreadRef) -> Next {
    // The fast path keeps the flags of a foreign call in the place of the thread's key.
    current.refold();
    // The fast path loses the flags of a call that it first takes for one of its forms; but for flush, no form has a lower number. In their
    // place it leaves a value that no user's flags may have.
    let op = current.frame.op();
    let has_flags = op.0 < Op::CALL.with(op::BLOCK | op::TAKES_BLOCK).0 && op.0 != Call::Flush as u32;
    current.frame.complete_refused(current.hot.ip.get(), current.hot.sp.get(), has_flags);
    raise(k, current, vector::SYSCALL)
}
