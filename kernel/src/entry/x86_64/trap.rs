//! Handlers between the entry code and the kernel proper: system calls, exceptions, interrupts.
//!
//! Each function here is entered from the assembly of `fast_path/` with interrupts off, on the current thread's stack, and
//! does not return: it leaves the kernel with the thread that is to run. Nothing on that stack survives, so there are
//! no registers of a caller to be restored; the handlers of frequent events are inlined for the same reason.

use super::fast_path::{Recovery, copy_fault, leave_kernel};
use super::port_access;
use crate::arch::instructions::read_cr2;
use crate::arch::{apic, debug, tables, user_copy};
use crate::global::kernel;
use crate::ipc;
use crate::kernel::Kernel;
use crate::life;
use crate::object::ThreadRef;
use crate::object::door::thread_at;
use crate::object::thread::{Frame, Operation};
use crate::processor;
use crate::sched::Next;
use crate::syscall::{self, Way};
use abi::Rights;
use core::arch::asm;
use core::ptr;

/// Vectors of the processor that the kernel treats on their own.
pub(super) mod vector {
    pub const DEBUG: u8 = 1;
    pub const NMI: u8 = 2;
    pub const DOUBLE_FAULT: u8 = 8;
    pub const PROTECTION: u8 = 13;
    pub const PAGE_FAULT: u8 = 14;
    pub const MACHINE_CHECK: u8 = 18;
    pub const EXCEPTIONS: u8 = 32;
}

#[inline(always)]
fn leave_with(k: &Kernel, next: Next) -> ! {
    leave_as(k.dispatch(next))
}

#[inline(always)]
fn leave_as(thread: ThreadRef) -> ! {
    assert!(thread.stack_ends_well(), "kernel stack overflow");
    // SAFETY: it is the thread that the dispatcher made current, and its frame is complete.
    unsafe { leave_kernel(&raw const thread.tcb().hot) }
}

/// Leaves the kernel with a thread that goes on in the current one's place, on the same shuttle.
#[inline(always)]
fn leave_plainly(thread: ThreadRef) -> Next {
    processor::switch_space(processor::current(), thread);
    leave_as(thread)
}

/// Handles a call that the fast path did not finish. If it leaves its clan, its route may be known.
pub extern "C" fn on_short_call() -> ! {
    let k = kernel();
    let current = processor::current();
    match ipc::known_route::call(k, current) {
        Some(partner) => {
            processor::switch_space(current, partner);
            leave_as(partner)
        }
        None => on_short_ipc(),
    }
}

/// Handles a call, or a reply and wait, that the fast path did not finish.
pub extern "C" fn on_short_ipc() -> ! {
    let k = kernel();
    leave_with(k, syscall::short_ipc(k, processor::current(), leave_plainly))
}

/// Handles any other system call. Each way has a frame of its own, which no other pays for.
pub extern "C" fn on_system_call() -> ! {
    match syscall::way(processor::current()) {
        Way::Usual => on_usual_ipc(),
        Way::Rare => on_rare_ipc(),
        Way::Ordinary => on_ordinary_call(),
        Way::Unusual => on_unusual_call(),
    }
}

#[inline(never)]
fn on_usual_ipc() -> ! {
    let k = kernel();
    leave_with(k, ipc::send::usual(k, processor::current(), leave_plainly))
}

#[inline(never)]
fn on_rare_ipc() -> ! {
    let k = kernel();
    leave_with(k, ipc::send::rare(k, processor::current()))
}

#[inline(never)]
fn on_ordinary_call() -> ! {
    let k = kernel();
    leave_with(k, syscall::ordinary_call(k, processor::current()))
}

#[cold]
fn on_unusual_call() -> ! {
    let k = kernel();
    leave_with(k, syscall::unusual_call(k, processor::current()))
}

/// Transfers direct words and strings for the fast path, which sends the message if this is true.
/// `shown`: address of the partner's block in the window, or its own in the space that is loaded.
pub extern "C" fn on_strings(partner: u64, shown: u64) -> bool {
    let partner = thread_at(partner).expect("the fast path has its hot line");
    ipc::block::run_ahead(kernel(), processor::current(), partner, shown)
}

/// Handles a message of whose strings the fast path has transferred as many as it could.
pub extern "C" fn on_strings_left() -> ! {
    let k = kernel();
    leave_with(k, send_rest(k, processor::current()))
}

fn send_rest(k: &Kernel, current: ThreadRef) -> Next {
    let next = syscall::any_call(k, current);
    // It is for this message alone.
    if let Operation::Ahead { .. } = current.operation.get() {
        current.operation.set(Operation::None);
    }
    next
}

/// Continues the operation of a busy thread, after interrupts had their moment.
pub extern "C" fn on_continue() -> ! {
    let k = kernel();
    life::bury(k);
    leave_with(k, syscall::continue_operation(k, processor::current()))
}

/// Handles an exception. Returns if the kernel code that it interrupted goes on.
pub extern "C" fn on_exception(frame: &Frame) {
    /// Exceptions that are more than a message to the thread's handler.
    const UNUSUAL: u32 = 1 << vector::DEBUG
        | 1 << vector::NMI
        | 1 << vector::DOUBLE_FAULT
        | 1 << vector::PROTECTION
        | 1 << vector::MACHINE_CHECK;
    let k = kernel();
    let number = frame.mode.get() as u8 % vector::EXCEPTIONS;
    if !frame.is_user() || UNUSUAL >> number & 1 != 0 {
        return on_unusual(k, frame, number);
    }
    leave_with(k, ipc::fault::exception(k, processor::current(), number as u64, leave_plainly))
}

#[cold]
fn on_unusual(k: &Kernel, frame: &Frame, number: u8) {
    match number {
        // An NMI has no owner yet; the thread goes on. It may have come at any instruction, so nothing is touched.
        vector::NMI => return,
        vector::DOUBLE_FAULT | vector::MACHINE_CHECK => fatal(frame, number),
        // A debug exception that a user's instruction delayed into the kernel: ignored.
        vector::DEBUG if !frame.is_user() => {
            debug::take_status();
            return;
        }
        vector::DEBUG => {
            adopt(frame);
            processor::current().frame.error.set(debug::take_status());
        }
        _ if !frame.is_user() => return in_kernel(frame, number, 0),
        _ => {}
    }
    let current = processor::current();
    let next = match number {
        vector::PROTECTION if processor::ports_on(current) => Next::Same,
        vector::PROTECTION
            if current.frame.error.get() == 0
                && let Some(ports) = port_access::denied(k, current) =>
        {
            ipc::fault::port_fault(k, current, ports)
        }
        _ => ipc::fault::raise(k, current, number as u64),
    };
    leave_with(k, next)
}

/// Handles an interrupt. It comes in the kernel only while that is idle, between two steps of a long operation, or during a copy.
pub extern "C" fn on_interrupt(frame: &Frame) -> ! {
    let k = kernel();
    life::bury(k);
    if !frame.is_user()
        && let Some(left) = user_copy::interrupted(frame)
    {
        begin_anew(on_interrupted_copy, (left, frame.mode.get()));
    }
    serve_interrupt(k, frame.mode.get())
}

/// Does the work of [`on_interrupt`]. `mode`: of the frame, with the interrupt's number.
fn serve_interrupt(k: &Kernel, mode: u64) -> ! {
    let next = match mode as u8 {
        number @ tables::LINE_VECTOR..tables::LEGACY_VECTOR => {
            match ipc::interrupt::fired(k, number - tables::LINE_VECTOR) {
                Some(driver) => leave_as(k.preempt(driver)),
                None => Next::Same,
            }
        }
        tables::TIMER_VECTOR => {
            apic::irq_acknowledge();
            crate::sched::timer::fired(k)
        }
        // Interrupts that the old controllers could not take back, and spurious ones, are not acknowledged.
        _ => Next::Same,
    };
    leave_with(k, next)
}

/// Leaves all that is on the current thread's kernel stack, where nothing goes on, and calls `next` with two arguments: so that, which may
/// go deep, has the whole stack again.
#[cold]
fn begin_anew(next: extern "C" fn(u64, u64) -> !, arguments: (u64, u64)) -> ! {
    let top = (&raw const processor::current().tcb().frame).addr();
    // SAFETY: the stack ends below the saved registers, aligned for a call, and nothing on it is used any more: `next` gets all that it
    // needs in registers, and does not return.
    unsafe {
        asm!(
            "mov rsp, {top}",
            "xor ebp, ebp",
            "call {next}",
            "ud2",
            top = in(reg) top,
            next = in(reg) next,
            in("rdi") arguments.0,
            in("rsi") arguments.1,
            options(noreturn),
        )
    }
}

/// Handles an interrupt with the number in `mode` that ended a copy of the current thread's with `left` bytes to go.
extern "C" fn on_interrupted_copy(left: u64, mode: u64) -> ! {
    let (k, current) = (kernel(), processor::current());
    processor::copy::close_window(k, current.task());
    if !ipc::block::copy_interrupted(current, left) {
        // The registers are saved already. This thread is busy from here on.
        let _ = send_rest(k, current);
    }
    serve_interrupt(k, mode)
}

/// Handles a fault of the kernel's own code: a copy of user memory ends, anything else is a bug.
#[cold]
fn in_kernel(frame: &Frame, number: u8, address: u64) {
    match copy_fault(frame, address) {
        Recovery::None => fatal(frame, number),
        Recovery::Return => {}
        Recovery::Slow => begin_anew(on_slow_call, (0, 0)),
    }
}

/// Handles a call that the fast path broke off at a fault of its own.
extern "C" fn on_slow_call(_: u64, _: u64) -> ! {
    let k = kernel();
    leave_with(k, syscall::any_call(k, processor::current()))
}

/// Handles a page fault. Returns if it ended a copy.
pub extern "C" fn on_page_fault(frame: &Frame) {
    const WRITE: u64 = 1 << 1;
    const USER: u64 = 1 << 2;
    const FETCH: u64 = 1 << 4;
    let k = kernel();
    let address = read_cr2();
    if !frame.is_user() {
        return in_kernel(frame, vector::PAGE_FAULT, address);
    }
    let error = frame.error.get();
    if error & USER == 0 {
        // The processor itself accessed memory that only the kernel may see: no pager can help.
        leave_with(k, ipc::fault::raise(k, processor::current(), vector::PAGE_FAULT.into()));
    }
    let rights = match error {
        error if error & FETCH != 0 => Rights::X,
        error if error & WRITE != 0 => Rights::W,
        _ => Rights::R,
    };
    leave_with(k, ipc::fault::page_fault(k, processor::current(), (address, rights), leave_plainly))
}

/// Copies a frame from an exception stack to that of the current thread.
fn adopt(frame: &Frame) {
    let to = &raw const processor::current().tcb().frame;
    if ptr::eq(frame, to) {
        return;
    }
    // SAFETY: both are frames; the target is the current thread's, and nothing runs on its stack.
    unsafe {
        ptr::copy_nonoverlapping(
            ptr::from_ref(frame).cast::<u64>(),
            to.cast::<u64>().cast_mut(),
            size_of::<Frame>() / 8,
        )
    };
}

fn fatal(frame: &Frame, number: u8) -> ! {
    let names = ["rdi", "rsi", "r8", "r9", "r10", "r12", "r13", "r14", "rbx", "rbp", "r15"];
    let mut registers = [("", 0); 20];
    for (slot, (name, word)) in registers.iter_mut().zip(names.iter().zip(&frame.w)) {
        *slot = (name, word.get());
    }
    let others = [
        ("rdx", &frame.rdx),
        ("rax", &frame.rax),
        ("r11", &frame.r11),
        ("rcx", &frame.rcx),
        ("error", &frame.error),
        ("rip", &frame.rip),
        ("cs", &frame.cs),
        ("rflags", &frame.rflags),
        ("rsp", &frame.rsp),
    ];
    for (slot, (name, word)) in registers[names.len()..].iter_mut().zip(others) {
        *slot = (name, word.get());
    }
    let what = format_args!("exception {number} in the kernel");
    crate::panic::fatal(&registers, frame.rip.get(), frame.w[Frame::RBP].get(), what)
}
