# Loops of the suite `tlb`: an application that calls a server and then looks at all its pages again. The macros are those of
# `loops.s`. A message leaves rax, rcx and r11 to the loops; the server's uid comes back in rdx.

.section .text.bench_tlb, "ax", @progbits
.balign 4096

# Look at so many pages.
.macro PAGES count
    lea rcx, [bench_map_pages]
    mov eax, \count
2:  mov r11, [rcx]
    add rcx, 4096
    dec eax
    jnz 2b
.endm

# With the call (region 64 and up), and without it (region 80 and up).
.macro APPLICATION number, count
FUNCTION bench_tlb_\count
    mov r15, [rdi + 8]
    mov rdx, [rdi]
    mov rbx, r15
1:  START 80+\number
    PAGES \count
    dec rbx
    jnz 1b
    DISCARD 80+\number
1:  START 64+\number
    mov eax, 0xfffffffe
    syscall
    PAGES \count
    dec r15d
    jnz 1b
    DISCARD 64+\number
    REPORT
.endm

APPLICATION 0, 2
APPLICATION 1, 4
APPLICATION 2, 8
APPLICATION 3, 16
APPLICATION 4, 32
APPLICATION 5, 48
APPLICATION 6, 64

# A server with two pages: this one and one of data.
FUNCTION bench_tlb_server
    xor edx, edx
1:  mov eax, 0xffffffff
    syscall
    mov rcx, [bench_fault_pages]
    jmp 1b
