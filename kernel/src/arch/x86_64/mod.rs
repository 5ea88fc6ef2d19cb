//! x86-64.
//!
//! Start with `boot.rs`, which goes through the other files in the order in which the machine comes up. Then
//! `fast_path.rs` (every way in and out) and `trap.rs` (what happens between).

pub mod acpi;
pub mod apic;
pub mod boot;
pub mod checked;
pub mod copy;
pub mod cpu;
pub mod debug;
mod door;
pub mod fast_path;
pub mod fpu;
pub mod instructions;
pub mod leaks;
pub mod paging;
pub mod per_cpu;
mod port_access;
pub mod power;
pub mod pte;
pub mod serial;
pub mod smp;
pub mod space;
pub mod tables;
pub mod tcb_array;
pub mod timer;
pub mod trap;
mod user_copy;
pub mod window;

use crate::kernel::Kernel;
use crate::layout;
use crate::mem::pool::Frame as PoolFrame;
use crate::object::mapping::Node;
use crate::object::thread::{Frame, Tcb, special};
use crate::object::{TaskRef, ThreadRef};
use crate::trace;
pub use apic::{irq_acknowledge, irq_is_level, irq_mask, irq_unmask};
pub use copy::{copy, copy_at_once, copy_openly, read_words, window_slot, window_view, write_words};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
pub use debug::{breakpoints_off, load_breakpoints};
pub use door::{door_page, hide_door_page, hide_doors, show_door_page, show_doors};
pub use space::{
    Forget, end_space, flush_space, init_space, invalidate, renew_tag, show, space_frames, tag_of,
};
pub use timer::{arm as arm_timer, now_ns};
pub use user_copy::COPIES_OPENLY;

/// The one kernel of this machine. Aligned, so that what shares a cache line in it depends on nothing else that is linked.
#[repr(align(64))]
struct Global(UnsafeCell<MaybeUninit<Kernel>>);

// SAFETY: written once by `install` before any other use; the kernel runs on one CPU, with interrupts off.
unsafe impl Sync for Global {}

static KERNEL: Global = Global(UnsafeCell::new(MaybeUninit::uninit()));

/// Puts the kernel in its place; once, by boot.
pub fn install(kernel: Kernel) -> &'static Kernel {
    // SAFETY: boot calls this once, before anything calls `kernel`.
    unsafe { (*KERNEL.0.get()).write(kernel) }
}

/// The kernel's state.
#[inline]
pub fn kernel() -> &'static Kernel {
    // SAFETY: every entry into the kernel happens after `install`.
    unsafe { (*KERNEL.0.get()).assume_init_ref() }
}

/// The one kernel. A function that is called through a pointer gets `k` as an address unknown to the compiler, which then passes it in a
/// register through all that the function calls; this replaces it by the constant one.
#[inline(always)]
pub fn known(_: &Kernel) -> &'static Kernel {
    kernel()
}

/// What an identifier of the running task leads to, if it is one: where the fast path looks.
#[inline(always)]
pub fn shown_door(_: &Kernel, _: TaskRef, number: u32) -> Option<&'static Node> {
    let place = (layout::DOORS + number as u64 * size_of::<u64>() as u64) as *const u64;
    // SAFETY: there is a word for every number, and it changes only here in the kernel.
    let word = unsafe { place.read_volatile() };
    // SAFETY: what has the highest bit is the address of what a door is, and is taken from there before the door goes.
    (word >> 63 == 1).then(|| unsafe { &*(word as *const Node) })
}

/// The control block of a slot. A slot without a thread shows zeroes.
#[inline]
pub fn tcb(slot: u32) -> Option<ThreadRef> {
    // SAFETY: every slot of the array is readable, and zeroes are a valid block; only blocks that `map_tcb` made
    // are written to.
    Some(ThreadRef::new(unsafe { &*(tcb_array::address(slot) as *const Tcb) }))
}

/// Puts a block into a slot, its cold part cleared. `None` if there is no memory for a table of the array.
pub fn map_tcb(k: &Kernel, slot: u32, frame: PoolFrame) -> Option<ThreadRef> {
    k.pool.clear_prefix(frame, Tcb::COLD_BYTES);
    tcb_array::map(slot, frame.0, || k.take_reserved().map(|table| table.0)).ok()?;
    tcb(slot)
}

/// Takes the block out of a slot.
pub fn unmap_tcb(slot: u32) {
    tcb_array::unmap(slot);
}

fn current_word() -> *mut u64 {
    per_cpu::CURRENT as *mut u64
}

/// Whether there is a current thread.
pub fn is_started() -> bool {
    per_cpu::current() != 0
}

/// The thread that the processor is on.
#[inline]
pub fn current() -> ThreadRef {
    // SAFETY: the per-CPU page holds the address of the current thread's hot line, at the end of its block.
    ThreadRef::new(unsafe { &*((current_word().read() - Tcb::HOT_OFFSET as u64) as *const Tcb) })
}

/// Whether there are pages of 1 GiB.
pub fn has_gib_pages() -> bool {
    cpu::features().gib_pages
}

/// Starts the machine on a thread.
pub fn set_current(thread: ThreadRef) {
    // SAFETY: see `current`.
    unsafe { current_word().write(&raw const thread.tcb().hot as u64) };
}

/// Switches to another thread: address space, and what only some threads have.
#[inline]
pub fn switch(k: &Kernel, from: ThreadRef, to: ThreadRef) {
    let leaving = from.special.get();
    if leaving & (special::FPU_LIVE | special::PORTS_LIVE | special::BREAKPOINTS) != 0 {
        switch_extras_off(from, leaving, to.special.get());
    }
    let arriving = to.special.get();
    if (leaving | arriving) & (special::HAS_FS | special::TRACED) != 0 {
        if (leaving | arriving) & special::TRACED != 0 {
            trace::switch(k, from, to);
        }
        if (leaving | arriving) & special::HAS_FS != 0 {
            load_fs(to.fs_base.get());
        }
    }
    if arriving & (special::FPU_LIVE | special::STEPPED | special::BREAKPOINTS) != 0 {
        switch_extras_on(to, arriving);
    }
    switch_space(from, to);
}

#[cold]
fn switch_extras_on(to: ThreadRef, arriving: u32) {
    if arriving & special::FPU_LIVE != 0 {
        fpu::arrive(to);
    }
    if arriving & special::STEPPED != 0 {
        to.set_trap_flag();
    }
    if arriving & special::BREAKPOINTS != 0 {
        debug::load_breakpoints(&to.breakpoints);
    }
}

/// The part of a switch that every thread needs: current thread and address space.
#[inline(always)]
pub fn switch_space(from: ThreadRef, to: ThreadRef) {
    set_current(to);
    let space = to.hot.space.get();
    if space != from.hot.space.get() {
        // SAFETY: a task's top-level table, which has the kernel half.
        unsafe { instructions::write_cr3(space) };
    }
}

#[cold]
fn switch_extras_off(from: ThreadRef, leaving: u32, arriving: u32) {
    if leaving & special::FPU_LIVE != 0 {
        fpu::leave(from, arriving & special::FPU_LIVE != 0);
    }
    if leaving & special::PORTS_LIVE != 0 {
        per_cpu::ports_off();
    }
    if leaving & special::BREAKPOINTS != 0 {
        debug::breakpoints_off();
    }
    from.set_special(0, special::PORTS_LIVE);
}

/// Loads the FS base.
pub fn load_fs(base: u64) {
    const FS_BASE: u32 = 0xc000_0100;
    // SAFETY: a user address, checked when it was set.
    unsafe { instructions::wrmsr(FS_BASE, base) };
}

/// Selectors of user mode in a trap frame.
pub fn set_user_segments(frame: &Frame) {
    frame.cs.set(per_cpu::USER_CODE as u64);
    frame.ss.set(per_cpu::USER_DATA as u64);
}

/// The caller's frame pointer: where a backtrace starts.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let frame;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}
