//! The first instructions of a program. On the host, where tests run, the system has its own.
#![allow(unsafe_code)]

core::arch::global_asm!(
    // In: rdi argument, rsi own uid, rdx own task, rsp end of the stack. The outermost frame has no caller.
    ".section .text._start, \"ax\"",
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {begin}",
    "ud2",
    ".text",
    begin = sym begin,
);

unsafe extern "Rust" {
    /// Function that [`entry!`](macro@crate::entry) defines.
    safe fn tern_main() -> i32;
}

extern "C" fn begin(argument: u64) -> ! {
    crate::start::note(argument);
    crate::exit(tern_main())
}
