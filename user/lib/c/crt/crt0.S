/* The first instructions of a C program.
   In: rdi length of the argument text, rsi own uid, rdx own task, rsp end of the stack. */

    .section .text._start, "ax"
    .globl _start
_start:
    xor %ebp, %ebp              /* the outermost frame has no caller */
    and $-16, %rsp
    call tern_begin
    ud2

    .section .note.GNU-stack, "", @progbits
