/* Stubs of four methods as well as one can write them by hand for programs in C: the floor for what quill makes for these (idl.c.program.*).

   They are those of bench/guest/bench/src/idl/floor.s, with its messages and promises, between programs with thread-local storage and vector
   registers. So each side hides its vector registers before a message, and afterwards puts back its thread pointer, MXCSR and the x87 control word, and
   empties the x87 stack, whatever the partner has left there. All of that lies in its frame, as everything does that is to outlive a call: whoever
   writes both a stub and the program around it knows that it never changes. Counting in a thread-local double (floor_done) is a part of each side.
   Texts end with a zero, which a client looks for; a server ends them with one, and looks whether there is another. Both do it sixteen bytes at a time.

   The processor has FSGSBASE and AVX. */

    .intel_syntax noprefix
    .section .note.GNU-stack, "", @progbits
    .text

.set ITERATIONS, 160

.set CALL, 0xfffffffe
.set LONG_CALL, 0xfffffbfe
.set DONE, -1
.set TEXT_MAX, 4096

/* --- both sides: where the frame has them --- */

.set POINTER, 0
.set MXCSR, 8
.set CONTROL, 12

.macro FUNCTION name
    .globl \name
    .balign 64
\name:
.endm

.macro MARK kind, region
    .byte 0x0f, 0x1f, 0x80, \kind, \region, 0x4e, 0x7e
.endm

.macro CLEAR registers:vararg
    .irp register, \registers
    xor \register, \register
    .endr
.endm

.macro KEEP
    rdfsbase rax
    mov [rsp + POINTER], rax
    stmxcsr [rsp + MXCSR]
    fnstcw [rsp + CONTROL]
.endm

.macro SYSTEM_CALL
    vzeroall
    syscall
    fninit
    ldmxcsr [rsp + MXCSR]
    fldcw [rsp + CONTROL]
    mov rcx, [rsp + POINTER]
    wrfsbase rcx
.endm

.macro COUNT
    movsd xmm0, qword ptr one
    addsd xmm0, qword ptr fs:floor_done@tpoff
    movsd qword ptr fs:floor_done@tpoff, xmm0
.endm

/* --- clients: int name(tern_uid server, const char *text). 0 if all calls were answered --- */

.set SERVER, 16
.set LEFT, 24
.set TEXT, 32
.set ARGUMENTS, 40
.set RESULTS, 104
.set FRAME, 168

.macro FLOOR_CLIENT name, region, body
FUNCTION \name
    .irp register, rbx, rbp, r12, r13, r14, r15
    push \register
    .endr
    sub rsp, FRAME
    KEEP
    mov [rsp + SERVER], rdi
    mov [rsp + TEXT], rsi
    mov dword ptr [rsp + LEFT], ITERATIONS
    xor ecx, ecx
2:  mov qword ptr [rsp + ARGUMENTS + rcx * 8], 1
    inc ecx
    cmp ecx, 8
    jne 2b
1:  MARK 1, \region
    \body
    COUNT
    MARK 2, \region
    dec dword ptr [rsp + LEFT]
    jnz 1b
    xor eax, eax
8:  add rsp, FRAME
    .irp register, r15, r14, r13, r12, rbp, rbx
    pop \register
    .endr
    ret
9:  mov eax, 1
    jmp 8b
.endm

.macro GO label, operation=CALL
    mov rdx, [rsp + SERVER]
    mov rax, \operation + (\label << 32)
    SYSTEM_CALL
    cmp rax, DONE
    jne 9f
.endm

.macro TINY
    mov edi, [rsp + ARGUMENTS]
    CLEAR esi, r8d, r9d, r10d, r12d, r13d, r14d, ebx, ebp, r15d
    GO 0
.endm

/* The result is in edi. */
.macro SMALL
    mov edi, [rsp + ARGUMENTS]
    movzx esi, word ptr [rsp + ARGUMENTS + 4]
    movzx r8d, word ptr [rsp + ARGUMENTS + 8]
    CLEAR r9d, r10d, r12d, r13d, r14d, ebx, ebp, r15d
    GO 0x80000000
.endm

/* Nine longs that lie in a row: the last two share a word. */
.macro LARGE
    mov edi, [rsp + ARGUMENTS]
    mov esi, [rsp + ARGUMENTS + 4]
    mov r8d, [rsp + ARGUMENTS + 8]
    mov r9d, [rsp + ARGUMENTS + 12]
    mov r10d, [rsp + ARGUMENTS + 16]
    mov r12d, [rsp + ARGUMENTS + 20]
    mov r13d, [rsp + ARGUMENTS + 24]
    mov r14, [rsp + ARGUMENTS + 28]
    CLEAR ebx, ebp, r15d
    GO 0x40000000
    mov [rsp + RESULTS], edi
    mov [rsp + RESULTS + 4], esi
    mov [rsp + RESULTS + 8], r8d
    mov [rsp + RESULTS + 12], r9d
    mov [rsp + RESULTS + 16], r10d
    mov [rsp + RESULTS + 20], r12d
    mov [rsp + RESULTS + 24], r13d
    mov [rsp + RESULTS + 28], r14
.endm

/* The zero is looked for in pieces that lie at multiples of sixteen, so that no page is touched behind the text. The text goes from where it lies in
   whole words, and its last eight bytes in a register. The results are in edi and esi. */
.macro STR
    mov rsi, [rsp + TEXT]
    mov ecx, esi
    and ecx, 15
    mov r9, rsi
    and r9, -16
    pxor xmm0, xmm0
    pcmpeqb xmm0, [r9]
    pmovmskb eax, xmm0
    shr eax, cl                         /* what is in front of the text does not count */
    test eax, eax
    jnz 3f
4:  add r9, 16
    pxor xmm0, xmm0
    pcmpeqb xmm0, [r9]
    pmovmskb eax, xmm0
    bsf eax, eax
    jz 4b
    add r9, rax
    sub r9, rsi
10:                                     /* r9: the length */
    lea rax, [r9 - 8]
    cmp rax, TEXT_MAX - 8               /* from 8 to the most */
    ja 5f
    mov r8, [rsi + r9 - 8]
6:  mov edi, r9d
    shr edi, 3
    CLEAR r10d, r12d, r13d, r14d, ebx, ebp
    GO 0xa0000000, LONG_CALL
    .subsection 1
3:  bsf r9d, eax
    jmp 10b
5:  cmp r9, TEXT_MAX
    ja 9f
    xor r8d, r8d                        /* fewer than eight: from the last to the first */
    mov rcx, r9
7:  dec rcx
    js 6b
    shl r8, 8
    movzx eax, byte ptr [rsi + rcx]
    or r8, rax
    jmp 7b
    .previous
.endm

FLOOR_CLIENT floor_call_tiny, 146, TINY
FLOOR_CLIENT floor_call_small, 147, SMALL
FLOOR_CLIENT floor_call_large, 148, LARGE
FLOOR_CLIENT floor_call_str, 149, STR

/* --- the server: void floor_serve(void), which does not return --- */

/* From an answer to the next request's method. */
.macro ANSWER
    mov rax, DONE
    SYSTEM_CALL
    DISPATCH
.endm

.macro DISPATCH
    cmp eax, CALL
    jne floor_odd
    shr rax, 61
    jmp [floor_table + rax * 8]
.endm

FUNCTION floor_serve
    sub rsp, 24
    KEEP
    xor edx, edx
    ANSWER

floor_tiny:
    /* a: edi */
    COUNT
    ANSWER
floor_small:
    /* a: edi, b: si, c: r8w; the result: edi */
    COUNT
    ANSWER
floor_large:
    /* a1 to a8: edi, esi, r8d, r9d, r10d, r12d, r13d, r14d */
    shr r14, 32
    /* a9: r14d; b1 to b9: edi, esi, r8d, r9d, r10d, r12d, r13d, r14d, eax */
    COUNT
    shl rax, 32
    or r14, rax
    ANSWER

/* rdi: dope; rsi: block; r8: the last eight bytes; r9: how many there are. */
floor_str:
    cmp r9, TEXT_MAX
    ja floor_bad
    mov eax, r9d
    shr eax, 3
    jz 5f
    cmp edi, eax                        /* whole words, all there, and nothing else */
    jne floor_bad
    mov [rsi + r9 - 8], r8
6:  mov byte ptr [rsi + r9], 0
    pxor xmm1, xmm1
    xor ecx, ecx
1:  movdqu xmm0, [rsi + rcx]
    pcmpgtb xmm0, xmm1                  /* ASCII, and no zero? */
    pmovmskb eax, xmm0
    sub eax, 0xffff
    jnz 3f
    add ecx, 16
    cmp ecx, r9d
    jb 1b
2:  /* s: rsi; a: edi, b: esi. r8 is a part of the client's text. */
    COUNT
    ANSWER
3:  neg eax                             /* the first other byte may be the one behind the text */
    bsf eax, eax
    add eax, ecx
    cmp eax, r9d
    je 2b
    push rdx
    push rax                            /* a multiple of sixteen */
    mov rdi, rsi
    mov rsi, r9
    call floor_is_other_text
    pop rcx
    pop rdx
    CLEAR edi, esi, r8d, r9d, r10d      /* which the function may have used */
    test al, al
    jnz 2b
floor_bad:
    CLEAR edi, esi, r8d, r9d, r10d
    mov rax, 0xffff0000ffffffff
    jmp floor_answer
5:  test edi, edi
    jnz floor_bad
    mov [rsi], r8
    jmp 6b
floor_none:
    CLEAR edi, esi, r8d, r9d, r10d
    mov rax, 0xffff0001ffffffff
floor_answer:
    SYSTEM_CALL
    DISPATCH
floor_odd:
    cmp eax, LONG_CALL
    jne 1f
    shr rax, 61
    jmp [floor_long_table + rax * 8]
1:  ud2                                 /* nothing but requests comes here */

    .section .rodata
    .balign 64
/* By the bits of a method's number from the top down. */
floor_table:
    .quad floor_tiny, floor_bad, floor_large, floor_bad, floor_small, floor_bad, floor_bad, floor_none
floor_long_table:
    .quad floor_bad, floor_bad, floor_bad, floor_bad, floor_bad, floor_str, floor_bad, floor_none
one:
    .double 1.0
