//! A panic ends the program: one line, a report of where it was (see [`crash`]), then exit status 101, as in the standard
//! library.
#![allow(unsafe_code)]
#![cfg_attr(not(target_os = "none"), allow(dead_code))]

use crate::crash::{self, Registers};
use crate::layout::{STACK_SLOT, STACKS};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a program that panicked.
const STATUS: i32 = 101;

#[cfg_attr(target_os = "none", panic_handler)]
fn panic(info: &PanicInfo) -> ! {
    static PANICKING: AtomicBool = AtomicBool::new(false);
    // A panic while printing a panic ends the program without further words.
    if !PANICKING.swap(true, Ordering::Relaxed) {
        crate::eprintln!("{}: {info}", crate::start::name());
        report();
    }
    crate::exit(STATUS)
}

/// Tells the tools where this is called from. Threads whose stack is not the runtime's own have nothing to tell.
#[inline(never)]
fn report() {
    let mut registers = Registers::default();
    // SAFETY: reads registers and writes what `registers` holds.
    unsafe {
        core::arch::asm!(
            "lea {scratch}, [rip]",
            "mov [{to}], {scratch}",
            "mov [{to} + 8], rsp",
            "mov [{to} + 16], rbp",
            "mov [{to} + 24], rbx",
            "mov [{to} + 32], r12",
            "mov [{to} + 40], r13",
            "mov [{to} + 48], r14",
            "mov [{to} + 56], r15",
            to = in(reg) &raw mut registers,
            scratch = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
    let sp = registers[1];
    if STACKS.contains(&sp) {
        let end = sp.next_multiple_of(STACK_SLOT);
        crash::report(crate::start::name(), &registers, |from, line| {
            let len = line.len().min((end - from) as usize);
            for (to, at) in line[..len].iter_mut().zip(from..) {
                // SAFETY: between the stack pointer and the end of the stack all is mapped. The callers' variables there may be
                // anything at all, and are copied byte by byte as the processor finds them.
                *to = unsafe { core::ptr::with_exposed_provenance::<u8>(at as usize).read_volatile() };
            }
            len
        });
    }
}
