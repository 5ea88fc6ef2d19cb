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

# Make door 0 with its calls at \entry, hand it to the chief, serve it. rdi: arguments.
.macro SERVE_DOOR entry
    xor edi, edi
    lea rsi, [rip + \entry]
    mov edx, 77
    mov eax, 0x80000007
    syscall
    test eax, eax
    jnz 9f
    mov rdx, [bench_chief]
    xor ebx, ebx
    xor ebp, ebp
    mov r13d, 3 << 10 | 3
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
