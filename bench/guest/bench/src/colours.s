# Loops of the suite `colours`: a program that reads a word of each line of its pages, pass after pass. One for each region, 64 bytes
# apart. rdi: arguments, of which the third is where the pages are, and the fourth how many lines they have.

.section .text.bench_colours, "ax", @progbits
.balign 4096

FUNCTION bench_colours
.irp region, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    .balign 64
    mov r15, [rdi + 8]
    mov rsi, [rdi + 16]
    mov rbx, [rdi + 24]
1:  START \region
    mov rcx, rsi
    mov rax, rbx
2:  mov r11, [rcx]
    add rcx, 64
    dec rax
    jnz 2b
    dec r15
    jnz 1b
    DISCARD \region
    jmp bench_colours_end
.endr

bench_colours_end:
    xor edx, edx
    REPORT
