# --- calls through doors ----------------------------------------------------------------------------------
#
# A door's server is the thread that made it. All take identifiers from the chief, into numbers 0 and 1 of their own.

.section .text.bench_door, "ax", @progbits
.balign 4096

# A map item from the chief, into door number \number. rdi is kept.
.macro TAKE_DOOR number
    push rdi
    xor edx, edx
    mov rbx, [bench_chief]
    mov ebp, \number << 12 | 3 << 10 | 3
    mov r15, -1
    mov eax, 0x80000001
    syscall
    test eax, eax
    jns 9f
    pop rdi
.endm

# Make door \number with its calls at \entry, hand it to the chief, serve it. rdi: arguments.
.macro SERVE_DOOR entry, number=0
    mov edi, \number
    lea rsi, [rip + \entry]
    mov edx, 77
    mov eax, 0x80000007
    syscall
    test eax, eax
    jnz 9f
    mov rdx, [bench_chief]
    xor ebx, ebx
    xor ebp, ebp
    mov r13d, \number << 12 | 3 << 10 | 3
    xor r14d, r14d
    mov r15, -1
    mov eax, 0x80000101
    syscall
    test eax, eax
    jnz 9f
    mov eax, 0x80000107
    syscall
9:  REPORT
.endm

FUNCTION bench_door_server
    SERVE_DOOR bench_door_return
bench_door_return:
    mov eax, 0xfffffff9
    syscall
    ud2

# A server that calls the next one.
FUNCTION bench_door_link
    TAKE_DOOR 1
    SERVE_DOOR bench_door_on
bench_door_on:
    mov edx, 1
    mov eax, 0xfffffff8
    syscall
    mov eax, 0xfffffff9
    syscall
    ud2

.macro DOOR_CLIENT name, region
FUNCTION \name
    TAKE_DOOR 1
    mov r15, [rdi + 8]
    mov r8d, 0x1002
    mov r9d, 0x1003
    mov r10d, 0x1004
    mov r12d, 0x1005
    mov r13d, 0x1006
    mov r14d, 0x1007
1:  START \region
    mov edx, 1
    mov eax, 0xfffffff8
    syscall
    dec r15d
    jnz 1b
    DISCARD \region
9:  REPORT
.endm

DOOR_CLIENT bench_door_client_w0, 50
DOOR_CLIENT bench_door_client_w2, 51
DOOR_CLIENT bench_door_client_w8, 52
DOOR_CLIENT bench_door_client_intra, 53
DOOR_CLIENT bench_door_client_chain, 54

# A client and a server of small(long, short, short), result long, as written by hand, with the promises of idl/floor.s:
# arguments come from memory, words without a value are cleared, the reply is checked; the server checks the kind, finds the
# method in a table, calls it as a function with the datum in rdx, and clears what it leaves. The stack is of 64 bytes.
FUNCTION bench_door_client_small
    TAKE_DOOR 1
    mov eax, [rdi + 8]
    sub rsp, 24
    mov [rsp], eax
    mov qword ptr [rsp + 8], 1
    mov qword ptr [rsp + 16], 1
1:  START 65
    mov edi, [rsp + 8]
    movzx esi, word ptr [rsp + 16]
    movzx r8d, word ptr [rsp + 18]
    CLEAR r9d, r10d, r12d, r13d, r14d, ebx, ebp, r15d
    mov edx, 1
    mov rax, 0xfffffff8 + (0x80000000 << 32)
    syscall
    cmp rax, -7
    jne 9f
    END 65                                                  # the result is in edi
    dec dword ptr [rsp]
    jnz 1b
9:  REPORT

FUNCTION bench_door_small_server
    SERVE_DOOR bench_door_small, 2
.balign 64
bench_door_small:
    cmp eax, 0xfffffff8
    jne 9f
    shr rax, 61
    jmp [bench_door_table + rax * 8]
1:  call bench_door_small_body
    CLEAR esi, r8d, r9d, r10d
    mov rax, -7
    syscall
9:  ud2
bench_door_small_body:
    xor edi, edi
    ret
.balign 64
bench_door_table:
    .quad 9b, 9b, 9b, 9b, 1b, 9b, 9b, 9b                    # by the number's bits from the top down

# A number that is no identifier; it comes back.
FUNCTION bench_door_invalid
    mov r15, [rdi + 8]
    mov edx, 2
1:  START 55
    mov eax, 0xfffffff8
    syscall
    dec r15d
    jnz 1b
    DISCARD 55
    xor eax, eax
    REPORT

# Make a door, and give it up.
FUNCTION bench_door_create
    mov r15, [rdi + 8]
1:  START 56
    mov edi, 3
    xor esi, esi
    mov eax, 0x80000007
    syscall
    mov edi, 3 << 12 | 3 << 10 | 3
    mov esi, 1
    mov eax, 0x80000002
    syscall
    END 56
    test eax, eax
    jnz 9f
    dec r15d
    jnz 1b
    DISCARD 56
9:  REPORT

# --- data in memory: the block is in r12, its dope in r13, both of which come back as words -----------------

.macro DOOR_BLOCK_CLIENT name, region
FUNCTION \name
    TAKE_DOOR 1
    mov r12, [rdi + 16]
    mov r13, [rdi + 24]
    mov r14, [rdi + 8]
1:  START \region
    mov rdi, r13
    mov rsi, r12
    mov edx, 1
    mov eax, 0xfffffbf8
    syscall
    dec r14d
    jnz 1b
    DISCARD \region
9:  REPORT
.endm

DOOR_BLOCK_CLIENT bench_door_client_64, 58
DOOR_BLOCK_CLIENT bench_door_client_1024, 59
DOOR_BLOCK_CLIENT bench_door_client_5120, 60

# --- an item in registers: r9 is what goes there, r10 what comes back; both come back as words, and so does r12 -----------------

# An identifier in the call, that the server releases. It arrives as the server's number 2.
FUNCTION bench_door_client_pass
    TAKE_DOOR 1
    mov r12, [rdi + 8]
    mov r9, [rdi + 16]
1:  START 61
    mov r13, r9
    xor r14d, r14d
    mov edx, 1
    mov eax, 0xfffffef8
    syscall
    dec r12d
    jnz 1b
    DISCARD 61
9:  REPORT

FUNCTION bench_door_release_server
    SERVE_DOOR bench_door_release
bench_door_release:
    mov edi, 2 << 12 | 3 << 10 | 3
    mov esi, 1
    mov eax, 0x80000002
    syscall
    mov eax, 0xfffffff9
    syscall
    ud2

# Pages move in the call. Another one, which is not counted, moves them back.
.macro DOOR_BULK_CLIENT name, region
FUNCTION \name
    TAKE_DOOR 1
    mov r12, [rdi + 8]
    mov r9, [rdi + 16]
    mov r10, [rdi + 24]
    mov rbx, r9                             # it has all of them
    and rbx, -0x10000
    mov ecx, 16
2:  lock add dword ptr [rbx], 0
    add rbx, 4096
    loop 2b
1:  xor r8d, r8d
    START \region
    mov r13, r9
    xor r14d, r14d
    mov edx, 1
    mov eax, 0xfffffef8
    syscall
    END \region
    mov r8d, 1
    mov edx, 1
    mov r13, r10
    xor r14d, r14d
    mov eax, 0xfffff7f8                     # which brings them
    syscall
    dec r12d
    jnz 1b
    DISCARD \region
9:  REPORT
.endm

DOOR_BULK_CLIENT bench_door_client_bulk_1, 62
DOOR_BULK_CLIENT bench_door_client_bulk_16, 63

FUNCTION bench_door_bulk_server
    SERVE_DOOR bench_door_bulk
bench_door_bulk:
    test r8d, r8d
    jnz 1f
    mov eax, 0xfffffff9
    syscall
    ud2
1:  mov eax, 0xfffffef9
    syscall
    ud2

# Make door 2, whose calls go to the server of the task too, and hand it to the chief again and again.
FUNCTION bench_door_giver
    mov edi, 2
    lea rsi, [rip + bench_door_return]
    mov edx, 78
    mov eax, 0x80000007
    syscall
    test eax, eax
    jnz 9f
1:  mov rdx, [bench_chief]
    xor ebx, ebx
    xor ebp, ebp
    mov r13d, 2 << 12 | 3 << 10 | 3
    xor r14d, r14d
    mov r15, -1
    mov eax, 0x80000101
    syscall
    test eax, eax
    jz 1b
9:  REPORT
