// Behind everything that adds to the tables of exits and accesses.

    .section .rodata.exits, "a"
    .globl EXITS_END
EXITS_END:
    .section .rodata.accesses, "a"
    .globl ACCESSES_END
ACCESSES_END:
    .text
