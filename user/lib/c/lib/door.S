/* A server of doors: how it begins to serve, and how each call begins and ends. */

#include <tern.h>

    .text

/* int tern_door_serve(void): the kernel comes back with all registers changed but the stack pointer. */
    .globl tern_door_serve
tern_door_serve:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $24, %rsp               /* a multiple of 16 */
    testb $TERN_HAS_BASES, tern_processor(%rip)
    jz 1f
    rdfsbase %rax               /* where each call finds it: tern_door_restore */
    mov %rax, (%rsp)
1:  stmxcsr 8(%rsp)
    fnstcw 12(%rsp)
    mov $0x80000107, %eax       /* TERN_DOOR_CONTROL, TERN_DOOR_SERVE */
    syscall
    mov %rax, 16(%rsp)
    call tern_door_restore
    mov 16(%rsp), %rax
    add $24, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

    .data
/* Where a call begins, on this processor (tern_begin). In: rcx the handler, and what the call brings: rax label and kind, rdx datum, words. They
   become a struct tern_message on the stack, where the words of the return are found afterwards. */
    .globl tern_door_begin
    .balign 8
tern_door_begin:
    .quad tern_door_begin_by_any

    .text

/* Makes the thread's again what tern_door_serve left on the stack. */
.macro RESTORE_by_any
    mov %rcx, %r11
    call tern_door_restore
    mov %r11, %rcx
.endm
.macro RESTORE_by_newest
    fninit
    ldmxcsr 8(%rsp)
    fldcw 12(%rsp)
    mov (%rsp), %r11
    wrfsbase %r11
.endm

.macro HIDE_by_any
    call tern_hide_vectors
.endm
.macro HIDE_by_newest
    vzeroall
.endm

.macro BEGIN by
    .globl tern_door_begin_\by
    .balign 64
tern_door_begin_\by:
    RESTORE_\by
    xor %ebp, %ebp              /* the outermost frame has no caller */
    push %r14
    push %r13
    push %r12
    push %r10
    push %r9
    push %r8
    push %rsi
    push %rdi
    push %rdx
    push %rax
    mov %rsp, %rdi
    call *%rcx
    movl $0xfffffff9, (%rsp)    /* TERN_DOOR_RETURN, beside the label */
    pop %rax
    add $8, %rsp
    pop %rdi
    pop %rsi
    pop %r8
    pop %r9
    pop %r10
    pop %r12
    pop %r13
    pop %r14
    xor %ebx, %ebx              /* w8, w9, w10 */
    xor %r15d, %r15d
    xor %ebp, %ebp
    HIDE_\by
    syscall
    ud2                         /* a server's return does not come back */
.endm

BEGIN by_any
BEGIN by_newest

    .section .note.GNU-stack, "", @progbits
