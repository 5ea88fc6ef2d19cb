//! The part of `thread_control` for debuggers: registers, single steps, breakpoints.
//!
//! Registers are handed over only while they are the whole truth about what the thread will do next: it is stopped with no
//! ipc under way, or it waits for an answer to a fault or an exception. At other times some of them are in a message, or
//! will be overwritten by one; then the call says `BadState`, and the debugger lets the ipc end or aborts it.

use super::thread_control::controlled;
use crate::arch::extended::{Extended, has_bases};
use crate::args::Args;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, Operation, State, special};
use crate::processor::{self, extended};
use abi::call::{REGISTERS, thread_op};
use abi::{Error, Uid};
use core::cell::Cell;

/// Whether the thread's frame and hot line hold all of its registers, for good.
pub fn stands_still(thread: ThreadRef) -> bool {
    let asks = matches!(thread.state.get(), State::Faulting | State::Sending)
        && matches!(thread.errand.get(), Errand::Fault | Errand::Exception);
    let stopped = thread.is_stopped() && thread.is_ready();
    (asks || stopped) && !is_in_call(thread)
}

/// Whether a thread is in the middle of a call that goes on when it runs again. That its frame is busy does not say so: the thread that is to take
/// away the block of one that ended itself is in no call.
pub fn is_in_call(thread: ThreadRef) -> bool {
    thread.operation.get() != Operation::None
}

/// Turns the frame of a thread in a system call into a trap's: all registers are loaded from it.
pub fn complete(thread: ThreadRef) {
    if !thread.is_trapped() {
        thread.frame.complete_call(thread.hot.ip.get(), thread.hot.sp.get());
    }
}

/// The FS base of a thread, whose extended state is given.
pub fn fs_base(thread: ThreadRef, extended: &Extended) -> &Cell<u64> {
    if has_bases() { &extended.fs_base } else { &thread.tcb().context.fs_base }
}

/// The cells of a group, in the order of [`REGISTERS`]; those that are no registers of a frame are the FS base.
fn group(thread: ThreadRef, base: &Cell<u64>, number: usize) -> [&Cell<u64>; 4] {
    thread.tcb().frame.group(number).map(|register| register.unwrap_or(base))
}

/// Lets `work` see the group that the arguments name, of a thread whose frame is complete.
fn with_group<T>(
    k: &Kernel,
    thread: ThreadRef,
    args: &Args,
    work: impl FnOnce([&Cell<u64>; 4]) -> Result<T, Error>,
) -> Result<T, Error> {
    if args.second() >= REGISTERS.len() as u64 {
        return Err(Error::BadArgument);
    }
    let number = args.second() as usize;
    let has_base = number == REGISTERS.len() - 1;
    if !stands_still(thread) || has_base && extended::is_with_another(k, thread) {
        return Err(Error::BadState);
    }
    complete(thread);
    if has_base {
        extended::with(k, thread, |extended| work(group(thread, fs_base(thread, extended), number)))
    } else {
        work(group(thread, &Cell::new(0), number))
    }
}

/// Reads or writes a group of registers of the thread that is named first.
#[inline(never)]
pub fn hand_over(k: &Kernel, current: ThreadRef, operation: u32, args: &Args) -> Result<(), Error> {
    let thread = controlled(k, current, Uid(args.first()))?;
    let sets = operation == thread_op::SET_REGISTERS;
    if thread.is_folded_foreign() {
        // Instruction pointer, stack pointer and flags are with the thread, whose other registers are with its handler: so it may go on waiting in a way that the fast path
        // ends, and goes on there.
        if args.second() == 0 && !(sets && args.sixth() != 0) {
            return hand_over_place(thread, args, sets);
        }
        thread.unfold();
    }
    if sets { set(k, thread, args) } else { get(k, thread, args) }
}

/// Reads or writes the first group of a thread in a foreign call, whose `rax` is with its handler.
fn hand_over_place(thread: ThreadRef, args: &Args, sets: bool) -> Result<(), Error> {
    if sets {
        let values = [args.third(), args.fourth(), args.fifth(), 0];
        let [ip, sp, flags, _] = Frame::checked_group(0, values).ok_or(Error::BadArgument)?;
        thread.set_place_of_foreign_call([ip, sp, flags]);
    } else {
        let [ip, sp, flags] = thread.place_of_foreign_call();
        args.give([args.first(), args.second(), ip, sp, flags, 0]);
    }
    Ok(())
}

/// Reads a group.
fn get(k: &Kernel, thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let [a, b, c, d] = with_group(k, thread, args, |cells| Ok(cells.map(Cell::get)))?;
    args.give([args.first(), args.second(), a, b, c, d]);
    Ok(())
}

/// Writes a group.
fn set(k: &Kernel, thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let values = [args.third(), args.fourth(), args.fifth(), args.sixth()];
    with_group(k, thread, args, |cells| {
        let values = Frame::checked_group(args.second() as usize, values).ok_or(Error::BadArgument)?;
        let len = if args.second() == 4 { 2 } else { 4 };
        for (cell, value) in cells.iter().zip(values).take(len) {
            cell.set(value);
        }
        Ok(())
    })
}

/// Turns single steps on or off.
pub fn step(thread: ThreadRef, on: bool) {
    let flag = special::STEPPED;
    thread.set_special(if on { flag } else { 0 }, flag);
    thread.set_trap_flag();
}

/// Sets one breakpoint.
pub fn breakpoint(thread: ThreadRef, is_current: bool, args: &Args) -> Result<(), Error> {
    thread.context.breakpoints.set(args.second(), args.third(), args.fourth(), args.fifth())?;
    let flag = special::BREAKPOINTS;
    thread.set_special(if thread.context.breakpoints.any() { flag } else { 0 }, flag);
    if is_current {
        processor::load_breakpoints(thread);
    }
    Ok(())
}
