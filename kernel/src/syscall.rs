//! Every way from a user program into the kernel, in one table.
//!
//! Registers are described in [`abi::call`]; `ipc` has its own convention, all others share one: arguments and results in
//! `rdi rsi rdx r10 r8 r9`, error code in `rax`.

mod door_control;
mod registers;
mod task_control;
mod thread_control;

pub use task_control::{boot_task, end_task};
pub use thread_control::{boot_thread, bury, end_thread, start_thread};

use crate::kernel::Kernel;
use crate::mem::space::{self, Stop};
use crate::object::thread::{Frame, Operation, special};
use crate::object::{ThreadRef, door};
use crate::sched::Next;
use crate::{arch, ipc, param, trace};
use abi::call::{DOORS_MAX, FLAGS, FLUSH_SELF, NULL};
use abi::op::{self, Form, Op};
use abi::{Call, Error, Fpage, Rights, Uid};

const IPC: u32 = Call::Ipc as u32;
const FLUSH: u32 = Call::Flush as u32;
const THREAD_CONTROL: u32 = Call::ThreadControl as u32;
const TASK_CONTROL: u32 = Call::TaskControl as u32;
const THREAD_SWITCH: u32 = Call::ThreadSwitch as u32;
const CLOCK: u32 = Call::Clock as u32;
const DOOR_CONTROL: u32 = Call::DoorControl as u32;

/// Where the number lies in `eax`; the sub-operation lies in bits 8–15, and of all calls but ipc the rest is reserved.
const NUMBER: u32 = 1 << 31 | 0xff;
const RESERVED: u32 = 0x7fff_0000;

/// The table: number to handler. The short forms of ipc have numbers of their own, see [`short_ipc`].
#[inline(always)]
pub fn system_call(k: &Kernel, current: ThreadRef) -> Next {
    let eax = current.frame.rax.get() as u32;
    if current.special.get() & UNUSUAL != 0 {
        return unusual_call(k, current, eax);
    }
    if eax & RESERVED != 0 { short_number(k, current, eax) } else { ordinary_call(k, current, eax) }
}

/// The short forms that the fast path leaves to Rust with all other calls, and any number with bits outside those of number and
/// sub-operation. Bits that mean nothing yet make another number of a known one.
fn short_number(k: &Kernel, current: ThreadRef, eax: u32) -> Next {
    let op = Op(eax);
    match op.form() {
        Some(Form::DoorCall) => ipc::door::call(k, current),
        Some(Form::DoorReturn) => ipc::door::give_back(k, current),
        Some(Form::Call | Form::ReplyWait) => ipc::other(k, current),
        _ if eax == NULL => Next::Same,
        _ if op.is_general() => ipc::malformed(current),
        _ => ipc::system_call_exception(k, current),
    }
}

/// Threads whose calls need more than the table.
const UNUSUAL: u32 = special::DENY_NATIVE | special::TRACED | special::ALERTABLE | DEBUGGED;

/// Threads that a debugger follows, but only outside the kernel.
const DEBUGGED: u32 = special::STEPPED | special::BREAKPOINTS;

#[inline(always)]
fn ordinary_call(k: &Kernel, current: ThreadRef, eax: u32) -> Next {
    // By far the most frequent one is told without the table.
    if eax & NUMBER == IPC { ipc::general(k, current) } else { other_call(k, current, eax) }
}

#[inline(always)]
fn other_call(k: &Kernel, current: ThreadRef, eax: u32) -> Next {
    let operation = eax >> 8;
    match eax & NUMBER {
        FLUSH if operation & 0xff == 0 => flush(k, current),
        THREAD_CONTROL => thread_control::thread_control(k, current, operation & 0xff),
        TASK_CONTROL => task_control::task_control(k, current, operation & 0xff),
        THREAD_SWITCH if operation & 0xff == 0 => thread_switch(k, current),
        DOOR_CONTROL => door_control::door_control(k, current, operation & 0xff),
        CLOCK if operation & 0xff == 0 => clock(current),
        _ => ipc::system_call_exception(k, current),
    }
}

/// Call, or reply and wait, in their short forms.
#[inline(always)]
pub fn short_ipc(k: &Kernel, current: ThreadRef) -> Next {
    if current.special.get() & UNUSUAL != 0 {
        return unusual_short(k, current);
    }
    ipc::short(k, current)
}

fn enter_unusual(k: &Kernel, current: ThreadRef) {
    if current.special.get() & special::TRACED != 0 {
        trace::call(k, current);
    }
    if current.special.get() & special::ALERTABLE != 0 {
        current.set_special(0, special::ALERTABLE);
    }
    pause_breakpoints(current);
}

/// What the kernel does with watched memory is no event: a debugger would learn nothing from it, and a copy that ends in an
/// exception at each of its strings would take long.
fn pause_breakpoints(current: ThreadRef) {
    if current.special.get() & special::BREAKPOINTS != 0 {
        arch::breakpoints_off();
    }
}

/// The thread is to leave the kernel, now or when it runs next: its debugger sees what it does.
fn leave_debugged(current: ThreadRef) {
    if current.special.get() & special::STEPPED != 0 {
        current.set_trap_flag();
    }
    if current.special.get() & special::BREAKPOINTS != 0 {
        arch::load_breakpoints(&current.breakpoints);
    }
}

#[cold]
fn unusual_short(k: &Kernel, current: ThreadRef) -> Next {
    enter_unusual(k, current);
    if current.special.get() & special::DENY_NATIVE != 0 {
        return ipc::system_call_exception(k, current);
    }
    let next = ipc::short(k, current);
    leave_debugged(current);
    next
}

/// Any number of a thread that is debugged or traced, or to which native calls are denied.
#[cold]
fn unusual_call(k: &Kernel, current: ThreadRef, eax: u32) -> Next {
    // The fast path finds that there is no such door before it looks at who calls: for it, this was no system call.
    let is_fast = Op(eax).without(op::TAKES_BLOCK) == Op::DOOR_CALL;
    if is_fast && !ipc::door::exists(k, current) {
        let next = ipc::door::call(k, current);
        leave_debugged(current);
        return next;
    }
    enter_unusual(k, current);
    let denied = current.special.get() & special::DENY_NATIVE != 0;
    let next = match eax {
        NULL => Next::Same,
        // The fast path finds that there is no such door before it finds that the thread is denied the call.
        _ if Op(eax).is_door_call() && !ipc::door::exists(k, current) => ipc::door::call(k, current),
        _ if denied => ipc::system_call_exception(k, current),
        _ if eax & RESERVED != 0 => short_number(k, current, eax),
        _ => ordinary_call(k, current, eax),
    };
    leave_debugged(current);
    next
}

/// A busy thread goes on with its operation, after the kernel has looked at the interrupts.
pub fn continue_operation(k: &Kernel, current: ThreadRef) -> Next {
    current.frame.mode.set(current.frame.mode.get() & !Frame::BUSY);
    pause_breakpoints(current);
    let next = match current.operation.get() {
        Operation::None => Next::Same,
        Operation::Receive => ipc::continue_receive(k, current),
        Operation::Map { to, noted, whole } => ipc::continue_map(k, current, to, noted, whole),
        Operation::Transfer { to, at } => ipc::continue_transfer(k, current, to, at),
        Operation::Taken { .. } => unreachable!("its receiver does not run"),
        Operation::Flush { at, status } => continue_flush(k, current, at, status),
        Operation::EndThread { victim } => end_thread(k, current, victim),
        Operation::EndTask { victim, at } => end_task(k, current, victim, at),
        Operation::Serve => ipc::door::continue_serve(k, current),
        Operation::Alert => thread_control::continue_alert(k, current),
        Operation::CreateDoor => door_control::create(k, current),
    };
    if current.operation.get() != Operation::None && current.is_ready() {
        k.set_busy(current);
    } else if current.special.get() & DEBUGGED != 0 {
        leave_debugged(current);
    }
    next
}

/// Arguments and results of every call but ipc.
struct Args<'a>(&'a Frame);

impl Args<'_> {
    fn rdi(&self) -> u64 {
        self.0.w[Frame::RDI].get()
    }

    fn rsi(&self) -> u64 {
        self.0.w[Frame::RSI].get()
    }

    fn rdx(&self) -> u64 {
        self.0.rdx.get()
    }

    fn r10(&self) -> u64 {
        self.0.w[Frame::R10].get()
    }

    fn r8(&self) -> u64 {
        self.0.w[Frame::R8].get()
    }

    fn r9(&self) -> u64 {
        self.0.w[Frame::R9].get()
    }

    /// Stores results in the argument registers, in order.
    fn give<const N: usize>(&self, results: [u64; N]) {
        let f = self.0;
        let registers =
            [&f.w[Frame::RDI], &f.w[Frame::RSI], &f.rdx, &f.w[Frame::R10], &f.w[Frame::R8], &f.w[Frame::R9]];
        for (register, result) in registers.into_iter().zip(results) {
            register.set(result);
        }
    }
}

/// Leaves the call with an error code or success.
fn done(thread: ThreadRef, result: Result<(), Error>) -> Next {
    thread.frame.rax.set(result.err().map_or(0, |error| error as u64));
    thread.frame.r11.set(FLAGS);
    Next::Same
}

/// A flexpage of one identifier with the right to call, whatever its number.
const ONE_IDENTIFIER: u64 = Fpage::doors(0, 0, Rights::R).0;
const ONE_IDENTIFIER_MASK: u64 = Fpage::SPACE_AND_SIZE | Rights::R.0 as u64;

/// What one step of a flush does. Two for each page: one to find it, one to take it from its only other owner.
const FLUSH_BUDGET: usize = 2 * param::PREEMPTION_PAGES;

fn flush(k: &Kernel, current: ThreadRef) -> Next {
    let args = Args(&current.frame);
    let is_one = args.rdi() & ONE_IDENTIFIER_MASK == ONE_IDENTIFIER && args.rsi() == FLUSH_SELF;
    if is_one && args.rdi() >> 12 < DOORS_MAX as u64 {
        let (at, mut budget) = (args.rdi() >> 12, FLUSH_BUDGET);
        return match door::flush_single(k, current.task(), at, &mut budget) {
            Ok(()) => flushed(current, 0),
            Err(stop) => stop_flush(k, current, stop, Operation::Flush { at, status: 0 }),
        };
    }
    if !Fpage(args.rdi()).is_valid() || args.rsi() & !FLUSH_SELF != 0 {
        return done(current, Err(Error::BadArgument));
    }
    continue_flush(k, current, 0, 0)
}

fn continue_flush(k: &Kernel, current: ThreadRef, mut at: u64, mut status: u64) -> Next {
    let args = Args(&current.frame);
    let page = Fpage(args.rdi());
    let page = page.with_rights(page.rights().and(Rights::RWX));
    let own = args.rsi() & FLUSH_SELF != 0;
    let mut budget = FLUSH_BUDGET;
    let result = space::flush(k, current.task(), page, own, &mut at, &mut status, &mut budget);
    if let Err(stop) = result {
        return stop_flush(k, current, stop, Operation::Flush { at, status });
    }
    current.operation.set(Operation::None);
    flushed(current, status)
}

#[inline(always)]
fn flushed(current: ThreadRef, status: u64) -> Next {
    Args(&current.frame).give([status]);
    done(current, Ok(()))
}

#[cold]
fn stop_flush(k: &Kernel, current: ThreadRef, why: Stop, rest: Operation) -> Next {
    if why == Stop::NoMemory {
        current.operation.set(Operation::None);
        return done(current, Err(Error::NoMemory));
    }
    current.operation.set(rest);
    k.set_busy(current);
    Next::Same
}

fn thread_switch(k: &Kernel, current: ThreadRef) -> Next {
    let to = Uid(Args(&current.frame).rdi());
    let thread = k.thread(to);
    let result = if to.is_nil() || thread.is_some() { Ok(()) } else { Err(Error::NoSuch) };
    let _ = done(current, result);
    match thread {
        Some(thread) if thread != current && thread.is_ready() && !thread.is_stopped() => {
            k.unqueue_thread(thread);
            k.wake(current);
            Next::To(thread)
        }
        _ if result.is_ok() => k.yield_now(current),
        _ => Next::Same,
    }
}

fn clock(current: ThreadRef) -> Next {
    Args(&current.frame).give([arch::now_ns()]);
    done(current, Ok(()))
}
