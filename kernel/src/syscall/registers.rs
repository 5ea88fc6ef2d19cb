//! The part of `thread_control` for debuggers: registers, single steps, breakpoints.
//!
//! Registers are handed over only while they are the whole truth about what the thread will do next: it is stopped with no
//! ipc under way, or it waits for an answer to a fault or an exception. In between a part of them is in a message, or
//! will be overwritten by one; then the call says `BadState`, and the debugger lets the ipc end or aborts it.

use crate::args::Args;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, Operation, State, special};
use crate::{arch, ipc};
use abi::Error;
use abi::call::{FLAGS, REGISTERS};
use core::cell::Cell;

/// Whether the thread's frame and hot line hold all of its registers, for good.
fn stands_still(thread: ThreadRef) -> bool {
    let asks = matches!(thread.state.get(), State::Faulting | State::Sending)
        && matches!(thread.errand.get(), Errand::Fault | Errand::Exception);
    let stopped = thread.is_stopped() && thread.is_ready();
    let between = thread.operation.get() != Operation::None || thread.frame.mode.get() & Frame::BUSY != 0;
    (asks || stopped) && !between
}

/// Gives the frame of a thread that is in a system call the form of a trap's: `iret` loads all registers.
fn complete(thread: ThreadRef) {
    let frame = &thread.frame;
    if thread.is_trapped() {
        return;
    }
    frame.rip.set(thread.hot.rip.get());
    frame.rsp.set(thread.hot.rsp.get());
    frame.rflags.set(frame.r11.get() & ipc::fault::USER_FLAGS | FLAGS);
    frame.rcx.set(thread.hot.rip.get());
    frame.mode.set(Frame::TRAP | 0xff);
    arch::set_user_segments(frame);
}

/// The cells of a group, in the order of [`REGISTERS`].
fn group(thread: ThreadRef, number: usize) -> [&'static Cell<u64>; 4] {
    let (tcb, f) = (thread.tcb(), &thread.tcb().frame);
    let [rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15] = &f.w;
    match number {
        0 => [&f.rip, &f.rsp, &f.rflags, &f.rax],
        1 => [rbx, &f.rcx, &f.rdx, rsi],
        2 => [rdi, rbp, r8, r9],
        3 => [r10, &f.r11, r12, r13],
        _ => [r14, r15, &tcb.fs_base, &tcb.fs_base],
    }
}

/// The group that the arguments name, of a thread whose frame is complete.
fn group_of(thread: ThreadRef, args: &Args) -> Result<[&'static Cell<u64>; 4], Error> {
    if args.rsi() >= REGISTERS.len() as u64 {
        return Err(Error::BadArgument);
    }
    if !stands_still(thread) {
        return Err(Error::BadState);
    }
    complete(thread);
    Ok(group(thread, args.rsi() as usize))
}

/// Reads a group.
pub fn get(thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let [a, b, c, d] = group_of(thread, args)?.map(Cell::get);
    args.give([args.rdi(), args.rsi(), a, b, c, d]);
    Ok(())
}

/// Writes a group.
pub fn set(thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let [a, b, mut c, d] = [args.rdx(), args.r10(), args.r8(), args.r9()];
    let cells = group_of(thread, args)?;
    if args.rsi() == 0 {
        if a >= abi::USER_END || b >> 47 != 0 {
            return Err(Error::BadArgument);
        }
        c = c & ipc::fault::USER_FLAGS | FLAGS;
    }
    let len = if args.rsi() == 4 { 2 } else { 4 };
    for (cell, value) in cells.iter().zip([a, b, c, d]).take(len) {
        cell.set(value);
    }
    Ok(())
}

/// Turns single steps on or off.
pub fn step(thread: ThreadRef, on: bool) {
    let flag = special::STEPPED;
    thread.set_special(if on { flag } else { 0 }, flag);
    thread.set_trap_flag();
}

/// Sets one breakpoint.
pub fn breakpoint(thread: ThreadRef, is_current: bool, args: &Args) -> Result<(), Error> {
    thread.breakpoints.set(args.rsi(), args.rdx(), args.r10(), args.r8())?;
    let flag = special::BREAKPOINTS;
    thread.set_special(if thread.breakpoints.any() { flag } else { 0 }, flag);
    if is_current {
        arch::load_breakpoints(&thread.breakpoints);
    }
    Ok(())
}
