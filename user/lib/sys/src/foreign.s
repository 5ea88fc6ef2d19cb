# Waits for foreign calls. The kernel enters with the stack pointer of the wait, and with registers that are all the caller's but rcx and r11.

    .section .text.tern_foreign, "ax", @progbits

    .macro keep
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    .endm
    .macro put_back
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    .endm
    .macro push_registers
    push    rax
    push    r15
    push    r14
    push    r13
    push    r12
    push    rbp
    push    rbx
    push    r9
    push    r8
    push    r10
    push    rdx
    push    rsi
    push    rdi
    .endm
    # All of them; the result becomes the stack pointer, where the kernel wants it.
    .macro pop_registers
    pop     rdi
    pop     rsi
    pop     rdx
    pop     r10
    pop     r8
    pop     r9
    pop     rbx
    pop     rbp
    pop     r12
    pop     r13
    pop     r14
    pop     r15
    pop     rsp
    .endm
    # Sends if there is something to be sent, and waits for anything.
    .macro send_and_wait
    mov     rbx, -1
    xor     ebp, ebp
    mov     r15, {forever}
    syscall
    .endm
    .macro wait_for_anything
    mov     eax, {wait}
    xor     edx, edx
    send_and_wait
    .endm

# rdi: Handler. Its registers are the stack on which a call arrives.
    .globl tern_foreign_wait
tern_foreign_wait:
    keep
    mov     [rdi + {stack}], rsp
    lea     rsp, [rdi + {stack}]
    wait_for_anything
.Larrived:
    push_registers
    push    r11
    mov     rsp, [rsp + {stack}]
    put_back
    ret

    .globl tern_foreign_answer
tern_foreign_answer:
    keep
    mov     [rdi + {stack}], rsp
    lea     rsp, [rdi + {registers}]
    pop_registers
    mov     eax, {foreign_return}
    syscall
    jmp     .Larrived

# rdi: Handler, rsi: who waits for an answer, rdx: label and form, rcx and r8: a map item, if the form has one. All other words are 0.
    .globl tern_foreign_reply
tern_foreign_reply:
    keep
    mov     [rdi + {stack}], rsp
    lea     rsp, [rdi + {stack}]
    mov     rax, rdx
    mov     rdx, rsi
    mov     r13, rcx
    mov     r14, r8
    xor     edi, edi
    xor     esi, esi
    xor     r8d, r8d
    xor     r9d, r9d
    xor     r10d, r10d
    xor     r12d, r12d
    send_and_wait
    jmp     .Larrived

# rdi: Table, rsi: Registers for the message that ends it. Below the return address there are the registers that C wants kept, these two
# addresses, and then, while a call is being done, its Registers.
    .balign 64
    .globl tern_foreign_serve
tern_foreign_serve:
    keep
    push    rsi
    push    rdi
    wait_for_anything
.Lnext:
    test    r11, r11
    jns     .Lmessage
    push_registers
    mov     rdi, rsp
    mov     rsi, r11
    mov     rcx, [rsp + {table}]
    cmp     rax, {functions}
    jae     .Lunknown
    call    [rcx + 8 * rax]
.Ldone:
    pop_registers
    mov     eax, {foreign_return}
    syscall
    jmp     .Lnext
.Lunknown:
    call    [rcx + {other}]
    jmp     .Ldone
.Lmessage:
    push_registers
    mov     rsi, rsp
    mov     rdi, [rsp + {table} + 8]
    mov     ecx, {table} / 8
    rep movsq
    add     rsp, {table} + 16
    put_back
    ret
    .text
