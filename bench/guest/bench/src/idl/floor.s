# The seven methods' stubs as well as one can write them by hand: the floor for what quill makes.
#
# The messages are those of quill, word by word, and so are the promises. Client: it is part of its caller, who keeps in memory
# what is to outlive the call, arguments included; nothing but the message may show, so words without a value are cleared; the
# result is checked. Server: it checks what came, finds the method in a table, and has the methods' bodies in it, as a server in C
# has. A body wants each argument in a register of its own, and has each result in one: 32 bits, with zeros above them. What is
# passed by reference has its address in a register and lies in memory (the bodies of the other servers are in body.rs and stubs.c).
# Bodies here are comments. What they leave in words without a value is the client's own. They do not keep the compiler's
# promise that rbx and rbp survive a client's call.
#
# Labels are the methods' numbers with the bits reversed, so that one shift finds the place in the table.

.section .text.bench_floor, "ax", @progbits
.balign 4096

.set CALL, 0xfffffffe
.set LONG_CALL, 0xfffffbfe
.set DONE, -1
.set STRING, 1 << 12                                        # one string, in a dope
.set TEXT_MAX, 4096
.set BYTES_MAX, 65536

# --- partners that are not measured: their instructions are taken off in bench/rows.tsv ------------------

# Three instructions for each request.
FUNCTION null_server
    xor edx, edx
1:  mov rax, DONE
    syscall
    jmp 1b

# Four instructions for each call. The sender's uid comes back in rdx; the count is in memory, as words may be lost.
.macro NULL_CLIENT name, region, label
FUNCTION \name
    mov rdx, [rdi]
    mov eax, [rdi + 8]
    sub rsp, 24
    mov [rsp], eax
1:  START \region
    mov rax, CALL + (\label << 32)
    syscall
    dec dword ptr [rsp]
    jnz 1b
    DISCARD \region
    inc rax                                                 # 0 if the last call was done
    REPORT
.endm

NULL_CLIENT null_client_tiny, 40, 0
NULL_CLIENT null_client_small, 41, 0x80000000
NULL_CLIENT null_client_large, 42, 0x40000000
NULL_CLIENT null_client_larger, 43, 0xc0000000
NULL_CLIENT null_client_record, 44, 0x20000000
NULL_CLIENT c_null_client_tiny, 90, 0
NULL_CLIENT c_null_client_small, 91, 0x80000000
NULL_CLIENT c_null_client_large, 92, 0x40000000
NULL_CLIENT c_null_client_larger, 93, 0xc0000000
NULL_CLIENT c_null_client_record, 94, 0x20000000
NULL_CLIENT plain_client_tiny, 70, 0
NULL_CLIENT plain_client_small, 71, 0x80000000
NULL_CLIENT plain_client_large, 72, 0x40000000
NULL_CLIENT plain_client_larger, 73, 0xc0000000
NULL_CLIENT plain_client_record, 74, 0x20000000

# With a part in memory; first, `words` fills the words that say so.
.macro NULL_LONG_CLIENT name, region, label, words, operation=LONG_CALL
FUNCTION \name
    mov rdx, [rdi]
    mov eax, [rdi + 8]
    sub rsp, 24
    mov [rsp], eax
1:  START \region
    \words
    mov rax, \operation + (\label << 32)
    syscall
    dec dword ptr [rsp]
    jnz 1b
    DISCARD \region
    inc rax
    REPORT
.endm

# Four instructions: as much as a short text needs.
.macro FILL_STR
    mov edi, 2
    lea rsi, [floor_text]
    mov r8, [floor_text + 8]
    mov r9d, 16
.endm
# And two for two strings.
.macro FILL_LENGTH
    mov edi, 2 * STRING
    lea rsi, [floor_lists]
.endm

# And for 112 of 128 numbers in memory, and for a call with one.
.macro FILL_ALL
    mov edi, 56
    lea rsi, [floor_bytes]
.endm
.macro FILL_ONE
    xor edi, edi
    xor esi, esi
.endm

NULL_LONG_CLIENT null_client_one, 47, 0, FILL_ONE, CALL
NULL_LONG_CLIENT null_client_all, 48, 0x80000000, FILL_ALL
NULL_LONG_CLIENT null_client_str, 45, 0xa0000000, FILL_STR
NULL_LONG_CLIENT null_client_length, 46, 0x60000000, FILL_LENGTH
NULL_LONG_CLIENT c_null_client_str, 110, 0xa0000000, FILL_STR
NULL_LONG_CLIENT c_counted_null_client_str, 97, 0xa0000000, FILL_STR
NULL_LONG_CLIENT c_null_client_length, 111, 0x60000000, FILL_LENGTH
NULL_LONG_CLIENT plain_client_str, 75, 0xa0000000, FILL_STR
NULL_LONG_CLIENT plain_client_length, 76, 0x60000000, FILL_LENGTH

# --- clients: server at rsp, arguments at rsp + 16, results at rsp + 80 ----------------------------------

.macro CLEAR registers:vararg
    .irp register, \registers
    xor \register, \register
    .endr
.endm

.macro NUMBERS
    xor ecx, ecx
2:  mov qword ptr [rsp + 16 + rcx * 8], 1
    inc ecx
    cmp ecx, 8
    jne 2b
.endm

# Where they lie, and how long they are: a text of 16 bytes, two lists of 1,000. This is what a descriptor of a string is, too.
.macro LISTS
    lea rax, [floor_text]
    mov [rsp + 16], rax
    mov qword ptr [rsp + 24], 16
    lea rax, [floor_bytes]
    mov [rsp + 32], rax
    mov qword ptr [rsp + 40], 1000
    add rax, 1000
    mov [rsp + 48], rax
    mov qword ptr [rsp + 56], 1000
.endm

.macro FLOOR_CLIENT name, region, body, arguments=NUMBERS
FUNCTION \name
    mov rax, [rdi]
    mov ecx, [rdi + 8]
    sub rsp, 168
    mov [rsp], rax
    mov [rsp + 8], ecx
    \arguments
1:  START \region
    \body
    END \region
    dec dword ptr [rsp + 8]
    jnz 1b
    xor eax, eax
    REPORT
9:  mov eax, 1
    REPORT
.endm

.macro GO label, operation=CALL
    mov rdx, [rsp]
    mov rax, \operation + (\label << 32)
    syscall
    cmp rax, DONE
    jne 9f
.endm

.macro TINY
    mov edi, [rsp + 16]
    CLEAR esi, r8d, r9d, r10d, r12d, r13d, r14d, ebx, ebp, r15d
    GO 0
.endm

.macro SMALL
    mov edi, [rsp + 16]
    movzx esi, word ptr [rsp + 20]
    movzx r8d, word ptr [rsp + 24]
    CLEAR r9d, r10d, r12d, r13d, r14d, ebx, ebp, r15d
    GO 0x80000000                                                    # the result is in edi
.endm

# Nine longs that lie in a row: the last two share a word.
.macro LARGE
    mov edi, [rsp + 16]
    mov esi, [rsp + 20]
    mov r8d, [rsp + 24]
    mov r9d, [rsp + 28]
    mov r10d, [rsp + 32]
    mov r12d, [rsp + 36]
    mov r13d, [rsp + 40]
    mov r14, [rsp + 44]
    CLEAR ebx, ebp, r15d
    GO 0x40000000
    mov [rsp + 80], edi
    mov [rsp + 84], esi
    mov [rsp + 88], r8d
    mov [rsp + 92], r9d
    mov [rsp + 96], r10d
    mov [rsp + 100], r12d
    mov [rsp + 104], r13d
    mov [rsp + 108], r14
.endm

# Sixteen longs that lie in a row are eight words: one move each.
.macro LARGER
    mov rdi, [rsp + 16]
    mov rsi, [rsp + 24]
    mov r8, [rsp + 32]
    mov r9, [rsp + 40]
    mov r10, [rsp + 48]
    mov r12, [rsp + 56]
    mov r13, [rsp + 64]
    mov r14, [rsp + 72]
    CLEAR ebx, ebp, r15d
    GO 0xc0000000
    mov [rsp + 80], rdi
    mov [rsp + 88], rsi
    mov [rsp + 96], r8
    mov [rsp + 104], r9
    mov [rsp + 112], r10
    mov [rsp + 120], r12
    mov [rsp + 128], r13
    mov [rsp + 136], r14
.endm

.macro RECORD
    mov rdi, [rsp + 16]
    mov rsi, [rsp + 24]
    mov r8, [rsp + 32]
    CLEAR r9d, r10d, r12d, r13d, r14d, ebx, ebp, r15d
    GO 0x20000000
.endm

# The text goes from where it lies, in whole words, and its last eight bytes in a register, since no word may show what is
# behind the text. The results are in edi and esi.
.macro STR
    mov rsi, [rsp + 16]
    mov r9, [rsp + 24]
    lea rax, [r9 - 8]
    cmp rax, TEXT_MAX - 8                                   # from 8 to the most
    ja 3f
    mov r8, [rsi + r9 - 8]
4:  mov edi, r9d
    shr edi, 3
    CLEAR r10d, r12d, r13d, r14d, ebx, ebp                  # the kernel clears the last word
    GO 0xa0000000, LONG_CALL
    .subsection 1
3:  cmp r9, TEXT_MAX
    ja 9f
    xor r8d, r8d                                            # fewer than eight: from the last to the first
    mov rcx, r9
6:  dec rcx
    js 4b
    shl r8, 8
    movzx eax, byte ptr [rsi + rcx]
    or r8, rax
    jmp 6b
    .previous
.endm

# Two strings: what says where the lists lie is what the kernel wants, once their lengths are no more than they may be.
.macro LENGTH
    cmp qword ptr [rsp + 40], BYTES_MAX
    ja 9f
    cmp qword ptr [rsp + 56], BYTES_MAX
    ja 9f
    mov edi, 2 * STRING
    lea rsi, [rsp + 32]
    CLEAR r8d, r9d, r10d, r12d, r13d, r14d, ebx, ebp
    GO 0x60000000, LONG_CALL
.endm

FLOOR_CLIENT floor_client_tiny_rt, 50, TINY
FLOOR_CLIENT floor_client_small_rt, 51, SMALL
FLOOR_CLIENT floor_client_large_rt, 52, LARGE
FLOOR_CLIENT floor_client_larger_rt, 53, LARGER
FLOOR_CLIENT floor_client_record_rt, 54, RECORD
FLOOR_CLIENT floor_client_str_rt, 55, STR, LISTS
FLOOR_CLIENT floor_client_length_rt, 56, LENGTH, LISTS
FLOOR_CLIENT floor_client_tiny, 60, TINY
FLOOR_CLIENT floor_client_small, 61, SMALL
FLOOR_CLIENT floor_client_large, 62, LARGE
FLOOR_CLIENT floor_client_larger, 63, LARGER
FLOOR_CLIENT floor_client_record, 64, RECORD
FLOOR_CLIENT floor_client_str, 65, STR, LISTS
FLOOR_CLIENT floor_client_length, 66, LENGTH, LISTS

# --- server ----------------------------------------------------------------------------------------------

# By the number's bits from the top down.
.balign 64
floor_table:
    .quad floor_tiny, floor_record, floor_large, floor_bad, floor_small, floor_bad, floor_larger, floor_none
floor_long_table:
    .quad floor_bad, floor_bad, floor_bad, floor_length, floor_bad, floor_str, floor_bad, floor_none

# From an answer to the next request's method.
.macro ANSWER
    mov rax, DONE
    syscall
    DISPATCH
.endm

.macro DISPATCH
    cmp eax, CALL
    jne floor_odd
    shr rax, 61
    jmp [floor_table + rax * 8]
.endm

# A word, of which the first result is the lower half, and a second result.
.macro JOIN word, second
    shl \second, 32
    or \word, \second
.endm

FUNCTION floor_server
    sub rsp, 32                                             # room for a record
    xor edx, edx
    ANSWER

floor_tiny:
    # a: edi
    ANSWER
floor_small:
    # a: edi, b: si, c: r8w; the result: edi
    ANSWER
floor_large:
    # a1 to a8: edi, esi, r8d, r9d, r10d, r12d, r13d, r14d
    shr r14, 32
    # a9: r14d; b1 to b9: edi, esi, r8d, r9d, r10d, r12d, r13d, r14d, eax
    JOIN r14, rax
    ANSWER
floor_larger:
    # a1, a3 … a15: edi, esi, r8d, r9d, r10d, r12d, r13d, r14d
    .irp word, rdi, rsi, r8, r9, r10, r12, r13, r14
    shr \word, 32
    .endr
    # a2, a4 … a16: likewise; of each two results the first is in the word's register, the second in eax
    .irp word, rdi, rsi, r8, r9, r10, r12, r13, r14
    JOIN \word, rax
    .endr
    ANSWER
floor_record:
    mov [rsp], rdi
    mov [rsp + 8], rsi
    mov [rsp + 16], r8
    # r: rsp
    ANSWER
# rdi: dope; rsi: block; r8: the last eight bytes; r9: how many there are.
floor_str:
    cmp r9, TEXT_MAX
    ja floor_bad
    mov eax, r9d
    shr eax, 3
    jz 5f
    cmp edi, eax                                            # whole words, all there, and nothing else
    jne floor_bad
    mov rcx, 0x8080808080808080
    mov [rsi + r9 - 8], r8                                  # the text is complete
1:  or r8, [rsi + rax * 8 - 8]
    dec eax
    jnz 1b
2:  test r8, rcx                                            # ASCII?
    jnz 4f
3:  # s: rsi, r9; a: edi, b: esi. r8 is a mix of the client's text.
    ANSWER
5:  test edi, edi
    jnz floor_bad
    mov rcx, 0x8080808080808080
    mov [rsi], r8
    jmp 2b
4:  push rdx
    push rsi
    push r9
    mov rdi, rsi
    mov rsi, r9
    call floor_other_text
    pop r9
    pop rsi
    pop rdx
    test al, al
    jz floor_bad
    CLEAR edi, r8d, r10d                                    # which the function may have used
    jmp 3b

# rdi: dope; rsi: block. The lists and their lengths are where the room has them, and no longer than they may be.
floor_length:
    cmp edi, 2 * STRING
    jne floor_bad
    mov rax, [rsi]
    mov ecx, [rsi + 8]
    # x: rax, rcx
    mov rax, [rsi + 16]
    mov esi, [rsi + 24]                                     # a length is the client's, the address of the block is not
    # y: rax, rsi
    ANSWER

floor_bad:
    CLEAR edi, esi, r8d, r9d, r10d
    mov rax, 0xffff0000ffffffff
    jmp floor_answer
floor_none:
    CLEAR edi, esi, r8d, r9d, r10d
    mov rax, 0xffff0001ffffffff
floor_answer:
    syscall
    DISPATCH
floor_odd:
    cmp eax, LONG_CALL
    jne 1f
    shr rax, 61
    jmp [floor_long_table + rax * 8]
1:  ud2

.section .data.bench_floor, "aw", @progbits
.balign 16
floor_text:
    .ascii "sixteen letters."
floor_lists:
    .quad floor_bytes, 1000, floor_bytes + 1000, 1000
floor_bytes:
    .fill 2000, 1, 1

.text
