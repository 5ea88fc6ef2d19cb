.globl counted_begin
.text
counted_begin:
.section .note.GNU-stack, "", @progbits
