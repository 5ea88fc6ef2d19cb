//! The processor in terms of the kernel's objects: the current thread and the switch to another, the loaded space, extended state, and copies from the memory of one task to another's.
//!
//! Below is [`crate::arch`], which knows words, tables and pointers; here they become threads and tasks. Nothing in this folder depends on
//! the machine, so the simulated one runs all of it.
//!
//! **Unsafe code** turns a word of the machine back into an object: the address of the current thread, which comes from here
//! ([`set_current`]).

pub mod copy;
pub mod extended;
pub mod space;

use crate::arch::{self, debug};
use crate::kernel::Kernel;
use crate::mem::pool::Frame as PoolFrame;
use crate::object::ThreadRef;
use crate::object::thread::{Tcb, special};
use crate::trace;
use abi::TaskId;
use core::ptr;

/// Puts a block into a slot, its cold part cleared. `None` if there is no memory for a table of the array.
pub fn map_tcb(k: &Kernel, slot: u32, frame: PoolFrame) -> Option<ThreadRef> {
    k.pool.clear_prefix(frame, Tcb::COLD_BYTES);
    let block = k.pool.pointer(frame).cast_const().cast();
    arch::map_slot(slot, frame.0, block, || k.take_reserved().map(|table| table.0)).ok()?;
    ThreadRef::in_slot(slot)
}

/// Takes the block out of a slot.
pub fn unmap_tcb(slot: u32) {
    arch::unmap_slot(slot);
}

/// Whether there is a current thread.
pub fn is_started() -> bool {
    !arch::current_line().is_null()
}

/// The thread that the processor is on.
#[inline]
pub fn current() -> ThreadRef {
    let line = arch::current_line();
    debug_assert!(!line.is_null(), "the machine has been started");
    // From a number, since the compiler keeps two registers for a thread that it sees to be a pointer into a line.
    let block = ptr::with_exposed_provenance::<Tcb>(line.expose_provenance() - Tcb::HOT_OFFSET);
    // SAFETY: `set_current` left the address of a thread's hot line, at the end of its block.
    ThreadRef::new(unsafe { &*block })
}

/// Makes a thread the current one.
#[inline(always)]
pub fn set_current(thread: ThreadRef) {
    arch::set_current_line(ptr::from_ref(thread.tcb()).cast::<u8>().wrapping_add(Tcb::HOT_OFFSET).cast());
}

/// Switches to another thread: its address space, and state that only some threads have.
#[inline]
pub fn switch(k: &Kernel, from: ThreadRef, to: ThreadRef) {
    let leaving = from.special.get();
    if leaving & (special::PORTS_LIVE | special::BREAKPOINTS) != 0 {
        switch_extras_off(from, leaving);
    }
    let arriving = to.special.get();
    if (leaving | arriving) & (special::HAS_FS | special::TRACED | special::IN_DOMAIN) != 0 {
        switch_extras(k, from, to, leaving | arriving);
    }
    if arriving & (special::STATE_KEPT | special::STEPPED | special::BREAKPOINTS) != 0 {
        switch_extras_on(to, arriving);
    }
    switch_space(from, to);
}

#[cold]
fn switch_extras(k: &Kernel, from: ThreadRef, to: ThreadRef, either: u32) {
    if either & special::TRACED != 0 {
        trace::switch(k, from, to);
    }
    if either & special::HAS_FS != 0 {
        arch::load_fs(to.context.fs_base.get());
    }
    if either & special::IN_DOMAIN != 0 {
        enter_domain(k, to);
    }
}

/// Prediction domain of a thread. The idle thread, which has no task, is in the domain of all others.
pub fn domain_of(thread: ThreadRef) -> TaskId {
    thread.task.get().map_or(TaskId::NIL, |task| task.domain.get())
}

/// Lets the processor forget what it has learned of branches, if `to` is in another prediction domain than the thread before it.
fn enter_domain(k: &Kernel, to: ThreadRef) {
    let domain = domain_of(to);
    if k.domain.replace(domain) != domain {
        arch::forget_predictions();
    }
}

#[cold]
fn switch_extras_on(to: ThreadRef, arriving: u32) {
    if arriving & special::STATE_KEPT != 0 {
        extended::load_kept(to);
    }
    if arriving & special::STEPPED != 0 {
        to.set_trap_flag();
    }
    if arriving & special::BREAKPOINTS != 0 {
        load_breakpoints(to);
    }
}

/// The part of a switch that every thread needs: current thread and address space.
#[inline(always)]
pub fn switch_space(from: ThreadRef, to: ThreadRef) {
    set_current(to);
    let space = to.hot.space.get();
    if space != from.hot.space.get() {
        arch::space::load(space);
    }
}

#[cold]
fn switch_extras_off(from: ThreadRef, leaving: u32) {
    if leaving & special::PORTS_LIVE != 0 {
        arch::ports_off();
    }
    if leaving & special::BREAKPOINTS != 0 {
        debug::breakpoints_off();
    }
    from.set_special(0, special::PORTS_LIVE);
}

/// Switches the port bitmap on for a thread that may have used a port. False if it is on already, or the task has no ports.
pub fn ports_on(current: ThreadRef) -> bool {
    let task = current.task();
    if !task.has_ports() || current.special.get() & special::PORTS_LIVE != 0 {
        return false;
    }
    arch::ports_on([task.port_bitmap[0].get(), task.port_bitmap[1].get()]);
    current.set_special(special::PORTS_LIVE, 0);
    true
}

/// Turns the breakpoints of the current thread on.
pub fn load_breakpoints(thread: ThreadRef) {
    let breakpoints = &thread.context.breakpoints;
    debug::load_breakpoints(
        breakpoints.addresses.each_ref().map(|address| address.get()),
        breakpoints.control.get(),
    );
}
