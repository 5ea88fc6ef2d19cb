//! Results of an ipc in a thread's registers: the words of a message, or an error.

use super::clan;
use crate::object::ThreadRef;
use crate::object::thread::Frame;
use crate::sched::Next;
use abi::call::{self, ITEM_WHOLE, NO_ITEM};
use abi::op::Op;
use abi::{Error, Kind, Uid};

/// Fills all registers in which a thread finds the result of its ipc.
pub(super) fn set_result(thread: ThreadRef, head: u64, sender: Uid) {
    thread.frame.finish(head);
    thread.frame.set_partner(sender.0);
    thread.frame.mode.set(Frame::SYSRET);
}

/// Sets the result of an ipc that failed: the code, and zeroes in the message registers.
pub(super) fn set_error(thread: ThreadRef, error: Error) {
    set_result(thread, error as u64, Uid::NIL);
    thread.frame.w.iter().for_each(|word| word.set(0));
}

pub(super) fn fail(thread: ThreadRef, error: Error) -> Next {
    set_error(thread, error);
    Next::Same
}

/// Moves the words of a message. Both threads' registers are in their frames.
#[inline(always)]
pub(super) fn deliver_words(sender: ThreadRef, receiver: ThreadRef, kind: u32, short: bool) {
    let (from, to) = (&sender.frame, &receiver.frame);
    for i in 0..8 {
        to.w[i].set(from.w[i].get());
    }
    for i in 8..11 {
        to.w[i].set(if short { from.w[i].get() } else { 0 });
    }
    let label = from.label();
    set_result(receiver, label | kind as u64, sender.uid());
    if sender.crossing.bits.get() != 0 {
        clan::mark(sender, receiver);
    }
    receiver.set_ready();
}

pub(super) fn copy_words(sender: ThreadRef, receiver: ThreadRef, kind: Kind) {
    for (to, from) in receiver.frame.w.iter().zip(&sender.frame.w) {
        to.set(from.get());
    }
    let label = sender.frame.label();
    set_result(receiver, label | kind as u64, Uid::NIL);
}

/// Delivers an interrupt's message. The thread is ready afterwards.
pub(super) fn deliver_interrupt(thread: ThreadRef, line: u8, count: u64) {
    thread.frame.w.iter().for_each(|word| word.set(0));
    thread.frame.w[0].set(count);
    set_result(thread, Kind::Interrupt as u64, Uid::interrupt(line));
    thread.set_ready();
}

const _: () = assert!(NO_ITEM & ITEM_WHOLE == 0 && call::NULL < Op::CALL.0);
