// Ends of the tables of exits and accesses: assembled after everything that adds to them.

    .section .rodata.exits, "a"
    .globl EXITS_END
EXITS_END:
    .section .rodata.accesses, "a"
    .globl ACCESSES_END
ACCESSES_END:
    .text
