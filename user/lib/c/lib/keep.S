/* Messages of pagers and handlers: what the processor holds beside a message belongs to the thread whose fault it is, and goes back to it with
   the answer. Other messages: ipc.S. */

#include <tern.h>

/* Where things are in a struct tern_message and a struct tern_state. */
#define KIND 0
#define PARTNER 8
#define WORDS 16
#define FS_BASE 160
#define GS_BASE 168
#define IMAGE 192

/* Own state, and what is put aside, on the stack. */
#define MXCSR 0
#define FCW 4
#define OWN_FS 8
#define RAX 16
#define RDX 24
#define KEPT 32
#define MESSAGE 40
#define ROOM 56

    .text

/* int tern_ipc_raw_keeping(uint32_t operation, struct tern_message *message, uint64_t rbx, uint64_t rbp, uint64_t r15, struct tern_state *kept) */
    .globl tern_ipc_raw_keeping
    .balign 64
tern_ipc_raw_keeping:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $ROOM, %rsp
    mov %r9, KEPT(%rsp)
    mov %rsi, MESSAGE(%rsp)
    call load
    mov %rdi, %rax              /* operation; the label is above it */
    mov 4(%rsi), %edi
    shl $32, %rdi
    mov %eax, %eax
    or %rdi, %rax
    mov %rdx, %rbx
    mov %rcx, %rbp
    mov %r8, %r15
    mov %rsi, %r11
    mov PARTNER(%r11), %rdx
    mov WORDS(%r11), %rdi
    mov WORDS + 8(%r11), %rsi
    mov WORDS + 16(%r11), %r8
    mov WORDS + 24(%r11), %r9
    mov WORDS + 32(%r11), %r10
    mov WORDS + 40(%r11), %r12
    mov WORDS + 48(%r11), %r13
    mov WORDS + 56(%r11), %r14
    syscall
    mov KEPT(%rsp), %r11
    mov %rax, RAX(%rsp)
    mov %rdx, RDX(%rsp)
    call save
    mov RAX(%rsp), %rax
    mov MESSAGE(%rsp), %r11
    test %eax, %eax             /* a kind, or 0, or an error, which leaves the message as it is */
    jg 1f
    mov RDX(%rsp), %rdx
    mov %rax, KIND(%r11)
    mov %rdx, PARTNER(%r11)
    mov %rdi, WORDS(%r11)
    mov %rsi, WORDS + 8(%r11)
    mov %r8, WORDS + 16(%r11)
    mov %r9, WORDS + 24(%r11)
    mov %r10, WORDS + 32(%r11)
    mov %r12, WORDS + 40(%r11)
    mov %r13, WORDS + 48(%r11)
    mov %r14, WORDS + 56(%r11)
    xor %eax, %eax
1:  add $ROOM, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

/* Puts the own state on the caller's stack, and loads *r9. Changes rax, r10 and r11. */
load:
    stmxcsr 8 + MXCSR(%rsp)
    fnstcw 8 + FCW(%rsp)
    testb $TERN_HAS_BASES, tern_processor(%rip)
    jz 1f
    rdfsbase %rax
    mov %rax, 8 + OWN_FS(%rsp)
    mov FS_BASE(%r9), %rax
    wrfsbase %rax
    mov GS_BASE(%r9), %rax
    wrgsbase %rax
1:  testb $TERN_HAS_AVX, tern_processor(%rip)
    jz 1f
    mov %rdx, %r10
    mov $7, %eax                /* x87, SSE, AVX */
    xor %edx, %edx
    xrstor64 IMAGE(%r9)
    mov %r10, %rdx
    ret
1:  fxrstor64 IMAGE(%r9)
    ret

/* Saves the state that has come to *r11, and loads the own one again. Changes rax, rcx and rdx. */
save:
    testb $TERN_HAS_AVX, tern_processor(%rip)
    jz 1f
    mov $7, %eax
    xor %edx, %edx
    xsave64 IMAGE(%r11)
    jmp 2f
1:  fxsave64 IMAGE(%r11)
2:  fninit
    ldmxcsr 8 + MXCSR(%rsp)
    fldcw 8 + FCW(%rsp)
    testb $TERN_HAS_BASES, tern_processor(%rip)
    jz 1f
    rdfsbase %rax
    rdgsbase %rdx
    mov %rax, FS_BASE(%r11)
    mov %rdx, GS_BASE(%r11)
    mov 8 + OWN_FS(%rsp), %rax
    wrfsbase %rax
1:  ret

    .section .note.GNU-stack, "", @progbits
