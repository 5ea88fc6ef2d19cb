.globl counted_end
.text
counted_end:
.section .note.GNU-stack, "", @progbits
