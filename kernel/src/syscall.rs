//! Every way from a user program into the kernel, in one table.
//!
//! Registers are described in [`abi::call`]; `ipc` has its own convention, all others share one: arguments and results in
//! `rdi rsi rdx r10 r8 r9`, error code in `rax`.

mod door_control;
mod flush;
mod foreign_return;
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
pub use unusual::unusual_call;
use unusual::{UNUSUAL, unusual_short};

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

/// Ways of a system call through the kernel. The short forms of ipc that come here by [`short_ipc`] do not ask.
pub enum Way {
    /// General form of ipc with frequent flags: [`ipc::send::usual`].
    Usual,
    /// General form with any flags: [`ipc::send::rare`].
    Rare,
    /// All else of a thread for which nothing unusual happens: [`ordinary_call`].
    Ordinary,
    /// All calls of other threads: [`unusual_call`].
    Unusual,
}

/// Way of the current thread's call.
#[inline(always)]
pub fn way(current: ThreadRef) -> Way {
    let word = current.frame.head() as u32;
    if current.special.get() & UNUSUAL != 0 {
        Way::Unusual
    } else if word & (NUMBER | RESERVED) != IPC {
        Way::Ordinary
    } else if ipc::send::is_usual(Op(word)) {
        Way::Usual
    } else {
        Way::Rare
    }
}

/// Does a system call of the current thread. The kernel's entry does the same with each way in a frame of its own: the kernel stack of a
/// thread lies in the page of all else of it.
///
/// `leave` leaves the kernel with a thread that goes on at once, on the shuttle that the processor is on; with [`Next::To`] it is left to
/// the dispatcher to find that out.
pub fn system_call(k: &Kernel, current: ThreadRef, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    match way(current) {
        Way::Usual => ipc::send::usual(k, current, leave),
        Way::Rare => ipc::send::rare(k, current),
        Way::Ordinary => ordinary_call(k, current),
        Way::Unusual => unusual_call(k, current),
    }
}

/// Does a system call by the longest way, which every call may take: none is cut short.
#[inline(always)]
pub fn any_call(k: &Kernel, current: ThreadRef) -> Next {
    if current.special.get() & UNUSUAL != 0 { unusual_call(k, current) } else { ordinary_call(k, current) }
}

/// The table: number to handler.
#[inline(always)]
pub fn ordinary_call(k: &Kernel, current: ThreadRef) -> Next {
    let word = current.frame.head() as u32;
    if word & RESERVED != 0 {
        return short_number(k, current, word);
    }
    let operation = word >> 8;
    match word & NUMBER {
        IPC => ipc::send::general(k, current),
        FLUSH if operation & 0xff == 0 => flush::flush(k, current),
        THREAD_CONTROL => thread_control::thread_control(k, current, operation & 0xff),
        TASK_CONTROL => task_control::task_control(k, current, operation & 0xff),
        THREAD_SWITCH if operation & 0xff == 0 => processor::thread_switch(k, current),
        DOOR_CONTROL => door_control::door_control(k, current, operation & 0xff),
        CLOCK if operation & 0xff == 0 => processor::clock(current),
        _ => ipc::fault::system_call_exception(k, current),
    }
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

/// Handles call, or reply and wait, in their short forms. `leave`: as for [`system_call`].
#[inline(always)]
pub fn short_ipc(k: &Kernel, current: ThreadRef, leave: impl FnOnce(ThreadRef) -> Next) -> Next {
    if current.special.get() & UNUSUAL != 0 {
        return unusual_short(k, current);
    }
    ipc::send::short(k, current, leave)
}
