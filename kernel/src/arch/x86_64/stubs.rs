//! Vector stubs that report and stop; replaced by those of the trap module wherever that defines the same symbol.

use super::instructions::read_cr2;
use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.weak_stubs, "ax"
    .altmacro
    .macro weak_stub vector
    .balign 16
weak_stub_\vector:
    .if (\vector != 8) && (\vector != 10) && (\vector != 11) && (\vector != 12) && (\vector != 13) && (\vector != 14) && (\vector != 17) && (\vector != 21)
    pushq $0
    .endif
    pushq $\vector
    jmp weak_stub_common
    .endm
    .set i, 0
    .rept 256
    weak_stub %i
    .set i, i + 1
    .endr
weak_stub_common:
    movq %rsp, %rdi
    movq %rbp, %rsi
    andq $-16, %rsp
    callq {report}
    .section .rodata.weak_stubs, "a"
    .balign 8
    .weak TRAP_STUBS
TRAP_STUBS:
    .macro weak_entry vector
    .quad weak_stub_\vector
    .endm
    .set i, 0
    .rept 256
    weak_entry %i
    .set i, i + 1
    .endr
    .noaltmacro
    .text
    "#,
    report = sym report,
    options(att_syntax)
);

#[repr(C)]
struct Frame {
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

unsafe extern "C" fn report(frame: *const Frame, rbp: u64) -> ! {
    // SAFETY: the stub passes its own stack.
    let frame = unsafe { &*frame };
    let registers = [("rip", frame.rip), ("rsp", frame.rsp), ("flags", frame.flags), ("error", frame.error)];
    let message = format_args!("vector {} (cr2 {:#x})", frame.vector, read_cr2());
    crate::panic::fatal(&registers, frame.rip, rbp, message)
}
