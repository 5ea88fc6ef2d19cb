/* Messages of programs that use vector registers and thread-local storage.

   The kernel lets all registers beside those of a message pass to the partner as they are. So a program hides its vector registers before,
   and afterwards puts back what the compiler relies on: thread pointer and control words. The compiler keeps nothing else across. */

#include <tern.h>

    .bss
/* How the processor does that (tern_begin): TERN_HAS_BASES, TERN_HAS_AVX. */
    .globl tern_processor
tern_processor:
    .byte 0

    .data
/* The instruction syscall for an ipc: all registers but rcx and r11 are the message's. A pointer to the function for this processor. */
    .globl tern_ipc_system_call
    .balign 8
tern_ipc_system_call:
    .quad tern_ipc_by_any

    .text

/* A thread that was started without the library may have no thread pointer, so it is read from the register. What is kept lies in the red zone below the
   stack pointer: this function calls nobody, and nobody else writes there. */
    .globl tern_ipc_by_newest
    .balign 64
tern_ipc_by_newest:
    rdfsbase %rcx
    mov %rcx, -8(%rsp)
    stmxcsr -16(%rsp)
    fnstcw -12(%rsp)
    vzeroall
    syscall
    fninit                      /* whatever the partner left there */
    ldmxcsr -16(%rsp)
    fldcw -12(%rsp)
    mov -8(%rsp), %rcx
    wrfsbase %rcx
    ret

tern_ipc_by_any:
    sub $16, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    testb $TERN_HAS_BASES, tern_processor(%rip)
    jz 1f                       /* the kernel sees to the thread pointer */
    rdfsbase %rcx
    mov %rcx, 8(%rsp)
1:  call tern_hide_vectors
    syscall
    fninit
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    mov 8(%rsp), %rcx
    add $16, %rsp
    testb $TERN_HAS_BASES, tern_processor(%rip)
    jz 2f
    wrfsbase %rcx
2:  ret

/* Hides the vector registers, before the return from a call through a door. */
    .globl tern_hide_vectors
tern_hide_vectors:
    testb $TERN_HAS_AVX, tern_processor(%rip)
    jz 1f
    vzeroall
    ret
1:  .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    xorps %xmm\n, %xmm\n
    .endr
    ret

/* At the beginning of a call through a door: what tern_door_serve left on the stack becomes the thread's. Changes rcx alone. */
    .globl tern_door_restore
tern_door_restore:
    fninit
    ldmxcsr 16(%rsp)
    fldcw 20(%rsp)
    testb $TERN_HAS_BASES, tern_processor(%rip)
    jz 1f
    mov 8(%rsp), %rcx
    wrfsbase %rcx
1:  ret

    .section .note.GNU-stack, "", @progbits
