# The seven methods' stubs as one would write them by hand: the floor for what quill makes.
#
# They keep the same promises. Client: it is part of its caller, who keeps in memory what is to outlive the call,
# arguments included; nothing but the message may show, so words without a value are cleared; the result is checked.
# Server: it checks what came, finds the method in a table and calls it as a function with the server's data; methods
# keep rdx, rbx, rbp and r12 to r15, and take and leave their words where the message has them; whatever else they
# leave is cleared. They do not keep the compiler's promise that rbx and rbp survive a client's call.
#
# Labels are the methods' numbers. The bodies are empty: a method that has results makes them zero.

.section .text.bench_floor, "ax", @progbits
.balign 4096

.set CALL, 0xfffffffe
.set DONE, -1

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
NULL_CLIENT plain_client_small, 71, 1
NULL_CLIENT plain_client_large, 72, 2
NULL_CLIENT plain_client_larger, 73, 3
NULL_CLIENT plain_client_record, 74, 4

# --- clients: server at rsp, arguments at rsp + 16, results at rsp + 80 ----------------------------------

.macro CLEAR registers:vararg
    .irp register, \registers
    xor \register, \register
    .endr
.endm

.macro FLOOR_CLIENT name, region, body
FUNCTION \name
    mov rax, [rdi]
    mov ecx, [rdi + 8]
    sub rsp, 168
    mov [rsp], rax
    mov [rsp + 8], ecx
    xor ecx, ecx
2:  mov qword ptr [rsp + 16 + rcx * 8], 1
    inc ecx
    cmp ecx, 8
    jne 2b
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

.macro GO label
    mov rdx, [rsp]
    mov rax, CALL + (\label << 32)
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
    GO 1                                                    # the result is in edi
.endm

.macro LARGE
    mov edi, [rsp + 16]
    mov esi, [rsp + 20]
    mov r8d, [rsp + 24]
    mov r9d, [rsp + 28]
    mov r10d, [rsp + 32]
    mov r12d, [rsp + 36]
    mov r13d, [rsp + 40]
    mov r14d, [rsp + 44]
    mov ebx, [rsp + 48]
    CLEAR ebp, r15d
    GO 2
    mov [rsp + 80], edi
    mov [rsp + 84], esi
    mov [rsp + 88], r8d
    mov [rsp + 92], r9d
    mov [rsp + 96], r10d
    mov [rsp + 100], r12d
    mov [rsp + 104], r13d
    mov [rsp + 108], r14d
    mov [rsp + 112], ebx
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
    GO 3
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
    GO 4
.endm

FLOOR_CLIENT floor_client_tiny_rt, 50, TINY
FLOOR_CLIENT floor_client_small_rt, 51, SMALL
FLOOR_CLIENT floor_client_large_rt, 52, LARGE
FLOOR_CLIENT floor_client_larger_rt, 53, LARGER
FLOOR_CLIENT floor_client_record_rt, 54, RECORD
FLOOR_CLIENT floor_client_tiny, 60, TINY
FLOOR_CLIENT floor_client_small, 61, SMALL
FLOOR_CLIENT floor_client_large, 62, LARGE
FLOOR_CLIENT floor_client_larger, 63, LARGER
FLOOR_CLIENT floor_client_record, 64, RECORD

# --- server ----------------------------------------------------------------------------------------------

.balign 64
floor_table:
    .quad floor_tiny, floor_small, floor_large, floor_larger, floor_record, floor_none, floor_none, floor_none

# From an answer to the next request's method.
.macro ANSWER
    mov rax, DONE
    syscall
    cmp eax, CALL
    jne floor_odd
    shr rax, 32
    and eax, 7
    jmp [floor_table + rax * 8]
.endm

.macro METHOD name
    mov ecx, offset floor_data
    call \name
.endm

FUNCTION floor_server
    xor edx, edx
    ANSWER

floor_tiny:
    METHOD floor_body
    CLEAR edi, esi, r8d, r9d, r10d
    ANSWER
floor_small:
    METHOD floor_body_1
    CLEAR esi, r8d, r9d, r10d
    ANSWER
floor_large:
    METHOD floor_body_9
    ANSWER
floor_larger:
    METHOD floor_body_8
    ANSWER
floor_record:
    METHOD floor_body
    CLEAR edi, esi, r8d, r9d, r10d
    ANSWER
floor_none:
    mov rax, 0xffff0001ffffffff
    syscall
floor_odd:
    ud2

floor_body:
    ret
floor_body_1:
    xor edi, edi
    ret
floor_body_9:
    CLEAR edi, esi, r8d, r9d, r10d, r12d, r13d, r14d, ebx
    ret
floor_body_8:
    CLEAR edi, esi, r8d, r9d, r10d, r12d, r13d, r14d
    ret

.section .data.bench_floor, "aw", @progbits
floor_data:
    .quad 0

.text
