//! x86-64.
//!
//! Start with `boot.rs`, which goes through the other files in the order in which the machine comes up.

pub mod acpi;
pub mod apic;
pub mod boot;
pub mod cpu;
pub mod instructions;
pub mod paging;
pub mod per_cpu;
pub mod power;
pub mod serial;
pub mod smp;
mod stubs;
pub mod tables;
pub mod tcb_array;
pub mod timer;
pub mod window;

pub use apic::{irq_acknowledge, irq_is_level, irq_mask, irq_unmask};
pub use timer::{arm as arm_timer, disarm as disarm_timer, now_ns};

/// The caller's frame pointer: where a backtrace starts.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let frame;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}
