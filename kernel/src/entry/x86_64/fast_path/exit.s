// Exits from the kernel: to a user, or nowhere yet. For processors that leak, `rewrite_exits` puts twins that stand here in their place.

// Leave the kernel with the thread whose hot line is in rdi.
    .globl leave_kernel
leave_kernel:
    lea     rsp, [rdi - {frame}]        // of five bytes or more: see check_exits
.Lleave:
    mov     rcx, [rsp + {mode}]
    test    rcx, rcx
    jnz     .Ltrapped
    load_registers
    mov     rcx, [rsp + {from_rcx} + {rip}]
    exit_site .Lclear_call, .Lisolate_call
    mov     rsp, [rsp + {from_rcx} + {rsp}]
    sysretq
.Ltrapped:
    js      .Lnot_yet
    load_registers
    pop     rcx
    exit_site .Lclear_trap, .Lisolate_trap
    add     rsp, 16                     // mode and error code
    iretq

// Twins of the exits, which clear the processor's buffers. After that nothing of the kernel is loaded but the user's own registers.
    .balign 32                          // one line, as for the exit that it stands for
.Lclear_short:
    verw    word ptr [{selector}]
    mov     r11d, {flags}
    sysretq
.Lclear_no_door:
    verw    word ptr [{selector}]
    mov     eax, {no_such}
    sysretq
.Lclear_call:
    verw    word ptr [{selector}]
    mov     rsp, [rsp + {from_rcx} + {rsp}]
    sysretq
.Lclear_trap:
    verw    word ptr [{selector}]
    add     rsp, 16
    iretq

// Idle, or in the middle of a long operation. Interrupts come below the saved frame; their handler does not return here
// but leaves the kernel anew.
.Lnot_yet:
    cmp     cl, {idle_mode}
    je      .Lidle
    sti
    nop
    cli
    call    {on_continue}
.Lidle:
    sti
    hlt
    jmp     .Lidle

    .section .text_isolated, "ax"
// Start of leave_kernel where the kernel checks itself first, on a stack of its own.
    .globl leave_checked
leave_checked:
    lea     rsp, [rip + {check_stack}]
    add     rsp, {check_stack_size}
    push    rdi
    push    rbp
    mov     rbp, rsp
    call    {on_checked_exit}
    pop     rbp
    pop     rdi
    lea     rsp, [rdi - {frame}]
    jmp     .Lleave
