// Page-table isolation: users run on tables that show next to nothing of the kernel half. The kernel's own are loaded first
// on each way in, and the user's last on each way out. Between the two there is no stack but the one in the per-CPU page,
// and no register to spare but the stack pointer.

    .section .fastpath, "ax"

    .globl system_call_entry_isolated
system_call_entry_isolated:
    mov     [{scratch}], rsp
    mov     rsp, [{kernel_space}]
    mov     cr3, rsp
    mov     rsp, [{scratch}]
    jmp     system_call_entry_slow

// Notes the kernel's tables for the next entry, and puts the user's into rax. rsp is lost.
    .macro find_spaces
    mov     rax, [{current}]
    mov     rsp, [rax + {space}]
    mov     [{kernel_space}], rsp
    mov     rsp, [rax + {task}]
    mov     rax, [rsp + {user_space}]
    .endm
.Lisolate_call:
    mov     [{saved}], rax
    find_spaces
    mov     rsp, [{current}]
    mov     rsp, [rsp + {rsp}]
    mov     cr3, rax
    mov     rax, [{saved}]
    verw    word ptr [{selector}]
    sysretq
.Lisolate_trap:
    mov     [{saved}], rax
    add     rsp, 16
    pop     qword ptr [{trap_stack} - 40]
    pop     qword ptr [{trap_stack} - 32]
    pop     qword ptr [{trap_stack} - 24]
    pop     qword ptr [{trap_stack} - 16]
    pop     qword ptr [{trap_stack} - 8]
    find_spaces
    mov     rsp, {trap_stack} - 40
    mov     cr3, rax
    mov     rax, [{saved}]
    verw    word ptr [{selector}]
    iretq
// Twin of the exits of the fast path, which is off where this could be reached.
.Lnever:
    ud2

    .section .text_isolated, "ax"
    .altmacro
// Exceptions and interrupts under page-table isolation. All come on stacks in the per-CPU page, from user mode on the user's tables.
// The words that the processor and the stub pushed there are moved to where they would be without isolation.
    .macro move_frame common
    pop     qword ptr [rax - 56]
    pop     qword ptr [rax - 48]
    pop     qword ptr [rax - 40]
    pop     qword ptr [rax - 32]
    pop     qword ptr [rax - 24]
    pop     qword ptr [rax - 16]
    pop     qword ptr [rax - 8]
    lea     rsp, [rax - 56]
    mov     rax, [{saved}]
    jmp     \common
    .endm
    .macro enter_isolated name, common
\name:
    mov     [{saved}], rax
    test    byte ptr [rsp + 24], 3
    jz      1f
    mov     rax, [{kernel_space}]
    mov     cr3, rax
    mov     rax, [{current}]
    jmp     2f
1:  mov     rax, [rsp + 40]             // from the kernel: below what it has on its stack
    and     rax, -16
2:  move_frame \common
    .endm
    enter_isolated isolated_interrupt, interrupt_common
    enter_isolated isolated_exception, exception_common
    enter_isolated isolated_page_fault, page_fault_common

// A debug exception that a user's instruction delayed into the kernel may come before the entry has loaded CR3.
isolated_debug:
    test    byte ptr [rsp + 24], 3
    jnz     isolated_exception
    push    rax
    mov     eax, {debug_nothing}
    mov     dr6, rax
    pop     rax
    add     rsp, 16
    iretq
// Double fault and machine check end everything, whichever tables were loaded.
isolated_fatal:
    mov     [{saved}], rax
    mov     rax, [{kernel_space}]
    mov     cr3, rax
    lea     rax, [rip + {exception_stack}]
    add     rax, {exception_stack_size}
    move_frame exception_common

    .macro isolated_stub vector
    .balign 16
isolated_stub_\vector:
    .if \vector == 2                    // an NMI has no owner
    iretq
    .endif
    .if (\vector != 8) && (\vector != 10) && (\vector != 11) && (\vector != 12) && (\vector != 13) && (\vector != 14) && (\vector != 17) && (\vector != 21) && (\vector != 29) && (\vector != 30)
    push    0
    .endif
    push    {trap} + \vector
    .if \vector == 1
    jmp     isolated_debug
    .elseif (\vector == 8) || (\vector == 18)
    jmp     isolated_fatal
    .elseif \vector == 14
    jmp     isolated_page_fault
    .elseif \vector < {exceptions}
    jmp     isolated_exception
    .else
    jmp     isolated_interrupt
    .endif
    .endm
    .set i, 0
    .rept 256
    isolated_stub %i
    .set i, i + 1
    .endr

    .section .rodata.traps, "a"
    .balign 8
    .globl ISOLATED_STUBS
ISOLATED_STUBS:
    .macro isolated_entry vector
    .quad   isolated_stub_\vector
    .endm
    .set i, 0
    .rept 256
    isolated_entry %i
    .set i, i + 1
    .endr
    .noaltmacro
    .text
