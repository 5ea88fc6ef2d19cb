//! x86-64: mechanisms of the processor and the PC. Each file is one; they know words, tables and pointers, and no object of the kernel's.
//!
//! How a machine comes up, and every way into the kernel, is above: `entry/x86_64`, which begins with `boot.rs`.

pub mod acpi;
pub mod apic;
pub mod cpu;
pub mod debug;
pub mod extended;
pub mod instructions;
pub mod leaks;
pub mod paging;
pub mod per_cpu;
pub mod power;
pub mod serial;
pub mod smp;
pub mod stack;
pub mod tables;
pub mod tcb_array;
pub mod timer;
pub mod user_copy;
pub mod view;

use crate::layout;
pub use apic::{irq_acknowledge, irq_is_level, irq_mask, irq_message, irq_unmask};
pub use paging::{kernel_cr3 as kernel_space, read_mapped};
pub use per_cpu::{ports_off, ports_on};
pub use tcb_array::{map as map_slot, unmap as unmap_slot};
pub use timer::{arm as arm_timer, now_ns};
pub use user_copy::COPIES_OPENLY;

/// Whether [`shown_word`] can be used.
pub const SHOWS_DOORS: bool = true;

/// The word that the running task's tables show for an identifier.
#[inline(always)]
pub fn shown_word(number: u32) -> u64 {
    let place = (layout::DOORS + number as u64 * size_of::<u64>() as u64) as *const u64;
    // SAFETY: there is a word for every number, and it changes only here in the kernel.
    unsafe { place.read_volatile() }
}

/// The control block in a slot; never `None`, since a slot without a thread reads as zeroes.
#[inline(always)]
pub fn slot_block(slot: u32) -> Option<*const ()> {
    Some(tcb_array::address(slot) as *const ())
}

/// Where the hot line of the current thread is; null before there is one.
#[inline(always)]
pub fn current_line() -> *const () {
    // SAFETY: a word of the per-CPU page, which is there before any thread is.
    unsafe { (per_cpu::CURRENT as *const *const ()).read() }
}

/// Makes a thread the current one: the address of its hot line, at the end of its block.
#[inline(always)]
pub fn set_current_line(line: *const ()) {
    // SAFETY: as for `current_line`.
    unsafe { (per_cpu::CURRENT as *mut usize).write(line.expose_provenance()) };
}

/// The number that an ELF file for this machine carries.
pub const ELF_MACHINE: u16 = 62;

/// Width of a physical address in bits.
pub fn physical_bits() -> u32 {
    cpu::features().physical_bits
}

/// Registers that say more about a panic, with their names; and the current thread.
pub fn registers_at_panic() -> [(&'static str, u64); 3] {
    [("cr2", instructions::read_cr2()), ("cr3", instructions::read_cr3()), ("current", per_cpu::current())]
}

/// Ends the machine after a panic.
pub fn end_of_machine() -> ! {
    power::exit(power::FAILURE)
}

/// Whether there are pages of 1 GiB.
pub fn has_gib_pages() -> bool {
    cpu::features().gib_pages
}

/// Whether the processor can forget what it has learned of branches, and the boot options let it.
pub fn forgets_predictions() -> bool {
    cpu::features().forgets_predictions
}

/// Makes the processor predict the branches of programs by nothing that was learned before (IBPB), if it can.
#[cold]
pub fn forget_predictions() {
    const PREDICTION_COMMAND: u32 = 0x49;
    const BARRIER: u64 = 1;
    if forgets_predictions() {
        // SAFETY: CPUID says that the register exists, and has the bit.
        unsafe { instructions::wrmsr(PREDICTION_COMMAND, BARRIER) };
    }
}

/// Loads the FS base: a user address.
pub fn load_fs(base: u64) {
    const FS_BASE: u32 = 0xc000_0100;
    // SAFETY: a user address, checked when it was set.
    unsafe { instructions::wrmsr(FS_BASE, base) };
}

/// The caller's frame pointer: where a backtrace starts.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let frame;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}
