// Exceptions and interrupts: a stub for each vector completes the processor's frame to a Frame.

    .macro enter_trap
    save_registers
    cld
    user_access clac
    mov     rdi, rsp
    .endm

    .section .text.traps, "ax"
interrupt_common:
    enter_trap
    call    {on_interrupt}
exception_common:
    enter_trap
    call    {on_exception}
.Lback:
    // Return to the interrupted code, which was the kernel's.
    load_registers
    pop     rcx
    add     rsp, 16
    iretq

// Page faults have an entry of their own: they are ipc, and come almost as often.
page_fault_entry:
    push    {trap} + 14
page_fault_common:
    enter_trap
    call    {on_page_fault}
    jmp     .Lback

    .altmacro
    .macro trap_stub vector
    .balign 16
trap_stub_\vector:
    .if (\vector != 8) && (\vector != 10) && (\vector != 11) && (\vector != 12) && (\vector != 13) && (\vector != 14) && (\vector != 17) && (\vector != 21) && (\vector != 29) && (\vector != 30)
    push    0
    .endif
    push    {trap} + \vector
    .if \vector < {exceptions}
    jmp     exception_common
    .else
    jmp     interrupt_common
    .endif
    .endm
    .set i, 0
    .rept 256
    trap_stub %i
    .set i, i + 1
    .endr

    .section .rodata.traps, "a"
    .balign 8
    .globl TRAP_STUBS
TRAP_STUBS:
    .macro trap_entry vector
    .if \vector == 14
    .quad   page_fault_entry
    .else
    .quad   trap_stub_\vector
    .endif
    .endm
    .set i, 0
    .rept 256
    trap_entry %i
    .set i, i + 1
    .endr
    .noaltmacro
    .text
