//! Every way from a user program into the kernel, in one table.
//!
//! Registers are described in [`abi::call`]; `ipc` has its own convention, all others share one: arguments and results in
//! `rdi rsi rdx r10 r8 r9`, error code in `rax`.

mod door_control;
mod flush;
mod go_on;
mod processor;
mod registers;
mod task_control;
mod thread_control;
mod thread_state;
mod unusual;

pub use go_on::continue_operation;

use crate::ipc;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::sched::Next;
use abi::Call;
use abi::call::NULL;
use abi::op::Op;
use unusual::{UNUSUAL, unusual_call, unusual_short};

const IPC: u32 = Call::Ipc as u32;
const FLUSH: u32 = Call::Flush as u32;
const THREAD_CONTROL: u32 = Call::ThreadControl as u32;
const TASK_CONTROL: u32 = Call::TaskControl as u32;
const THREAD_SWITCH: u32 = Call::ThreadSwitch as u32;
const CLOCK: u32 = Call::Clock as u32;
const DOOR_CONTROL: u32 = Call::DoorControl as u32;

/// Bits of the number in a call's word. Bits 8–15 are the sub-operation; of all calls but ipc the rest is reserved.
const NUMBER: u32 = 1 << 31 | 0xff;
const RESERVED: u32 = 0x7fff_0000;

/// The table: number to handler. The short forms of ipc have numbers of their own, see [`short_ipc`].
///
/// `leave` leaves the kernel with a thread that goes on at once, on the shuttle that the processor is on; with [`Next::To`] it is left to
/// the dispatcher to find that out.
#[inline(always)]
pub fn system_call(k: &Kernel, current: ThreadRef, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    let word = current.frame.head() as u32;
    if current.special.get() & UNUSUAL != 0 {
        return unusual_call(k, current, word);
    }
    if word & RESERVED != 0 { short_number(k, current, word) } else { ordinary_call(k, current, word, leave) }
}

/// Handles the short forms that the fast path leaves to Rust with all other calls, and any word with bits outside those of number and
/// sub-operation. A known number with bits that mean nothing yet is another number.
#[inline(never)]
fn short_number(k: &Kernel, current: ThreadRef, word: u32) -> Next {
    let op = Op(word);
    // Calls of doors come first, with the fewest compares.
    if op.is_door_call() {
        return ipc::carry::call_door(k, current);
    }
    if op.is_door_return() {
        return ipc::carry::return_from_door(k, current);
    }
    match op {
        _ if op.is_ordinary() => ipc::send::other(k, current),
        _ if word == NULL => Next::Same,
        _ if op.is_foreign_return() => ipc::foreign::answer(k, current),
        _ if op.is_general() => ipc::send::malformed(current),
        _ => ipc::fault::system_call_exception(k, current),
    }
}

/// Does a system call of a thread for which nothing unusual happens, off the usual way: the dispatcher finds out which thread goes on.
/// It is not inlined, so that the frames of its callers stay small: the kernel stack of a thread lies in the page of all else of it.
#[inline(never)]
fn late_call(k: &Kernel, current: ThreadRef, word: u32) -> Next {
    match word {
        _ if word & RESERVED != 0 => short_number(k, current, word),
        _ if word & NUMBER == IPC => ipc::send::late(k, current),
        _ => other_call(k, current, word),
    }
}

/// Does a system call that began on the fast path.
pub fn rest_of_call(k: &Kernel, current: ThreadRef) -> Next {
    let word = current.frame.head() as u32;
    if current.special.get() & UNUSUAL != 0 { unusual_call(k, current, word) } else { late_call(k, current, word) }
}

#[inline(always)]
fn ordinary_call(k: &Kernel, current: ThreadRef, word: u32, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    // The most frequent number by far is told without the table.
    if word & NUMBER == IPC { ipc::send::general(k, current, leave) } else { other_call(k, current, word) }
}

#[inline(always)]
fn other_call(k: &Kernel, current: ThreadRef, word: u32) -> Next {
    let operation = word >> 8;
    match word & NUMBER {
        FLUSH if operation & 0xff == 0 => flush::flush(k, current),
        THREAD_CONTROL => thread_control::thread_control(k, current, operation & 0xff),
        TASK_CONTROL => task_control::task_control(k, current, operation & 0xff),
        THREAD_SWITCH if operation & 0xff == 0 => processor::thread_switch(k, current),
        DOOR_CONTROL => door_control::door_control(k, current, operation & 0xff),
        CLOCK if operation & 0xff == 0 => processor::clock(current),
        _ => ipc::fault::system_call_exception(k, current),
    }
}

/// Handles call, or reply and wait, in their short forms. `leave`: as for [`system_call`].
#[inline(always)]
pub fn short_ipc(k: &Kernel, current: ThreadRef, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    if current.special.get() & UNUSUAL != 0 {
        return unusual_short(k, current);
    }
    ipc::send::short(k, current, leave)
}
