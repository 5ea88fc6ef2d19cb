# The measured loops.
#
# A marker is a no-operation that the counting emulator knows: START begins an iteration (and ends the one
# before), END ends it, DISCARD forgets it; IDLE begins one when the kernel is entered. Threads start with their
# argument in rdi; clients find there the server's uid and the number of iterations. All clients end by calling the
# chief with what they last got.
#
# An ipc destroys every register, but a server that touches none sends each word back where it came from: so
# the client's words, and its loop counter in r15, live in the message. The sender's uid comes in rdx, where
# the next send wants it.

.section .text.bench_loops, "ax", @progbits
.balign 4096                                                # one page: mapped once, never faults again

.macro MARK kind, region
    .byte 0x0f, 0x1f, 0x80, \kind, \region, 0x4e, 0x7e      # nop dword [rax + 0x7e4eRRKK]
.endm
.macro START region
    MARK 1, \region
.endm
.macro END region
    MARK 2, \region
.endm
.macro DISCARD region
    MARK 3, \region
.endm
.macro FUNCTION name
    .balign 64
    .global \name
\name:
.endm

# Does nothing until an interrupt comes, which is counted from the kernel's first instruction.
.macro IDLE region
1:  MARK 4, \region
    jmp 1b
.endm
# Call the chief with rax and rdx in w0 and w1, and never come back.
.macro REPORT
    mov rdi, rax
    mov rsi, rdx
    mov rdx, [bench_chief]
    mov eax, 0xfffffffe
    syscall
    ud2
.endm

# --- null call: rdi = iterations ------------------------------------------------------------------------

FUNCTION bench_null
1:  START 0
    mov eax, 0xfffffffd
    syscall
    dec rdi
    jnz 1b
    DISCARD 0
    ret

# --- short ipc ------------------------------------------------------------------------------------------

.macro CLIENT name, region
FUNCTION \name
    mov r15, [rdi + 8]
    mov rdx, [rdi]
    mov r8d, 0x1002                         # w2 … w7: the chief checks that they survive
    mov r9d, 0x1003
    mov r10d, 0x1004
    mov r12d, 0x1005
    mov r13d, 0x1006
    mov r14d, 0x1007
1:  START \region
    mov eax, 0xfffffffe
    syscall
    dec r15d
    jnz 1b
    DISCARD \region
    REPORT
.endm

CLIENT bench_client_w0, 1
CLIENT bench_client_intra, 4

FUNCTION bench_server
    xor edx, edx                            # the first time there is nobody to answer
1:  mov eax, 0xffffffff
    syscall
    jmp 1b

# Four system calls instead of two: each side sends, and receives afterwards. What a thread sends to one who does not wait yet
# stands in the queue. The counter is w7.
FUNCTION bench_client_apart
    mov r14, [rdi + 8]
    mov rdx, [rdi]
    xor ebp, ebp
1:  START 43
    xor ebx, ebx
    mov r15, -1
    mov eax, 0x80000001
    syscall
    mov rbx, rdx
    xor edx, edx
    mov eax, 0x80000001
    syscall
    dec r14d
    jnz 1b
    DISCARD 43
    REPORT

FUNCTION bench_server_apart
    xor ebp, ebp
1:  xor edx, edx
    mov rbx, -1
    mov r15, -1
    mov eax, 0x80000001
    syscall
    xor ebx, ebx
    mov r15, -1
    mov eax, 0x80000001
    syscall
    jmp 1b

# --- local ipc: rdi = arguments, rsi = own block; the loops are those of short ipc ----------------------------

.macro LOCAL_CLIENT name, region
FUNCTION \name
    mov rbx, rsi
    mov r15, [rdi + 8]
    mov rdx, [rdi]
    mov r8d, 0x1002
    mov r9d, 0x1003
    mov r10d, 0x1004
    mov r12d, 0x1005
    mov r13d, 0x1006
    mov r14d, 0x1007
1:  START \region
    mov rcx, rbx
    mov eax, 0xfffffffe
    call local_call
    dec r15d
    jnz 1b
    DISCARD \region
    REPORT
.endm

LOCAL_CLIENT bench_local_client, 35
LOCAL_CLIENT bench_local_own_client, 37

# The own block is in memory: words are the client's.
FUNCTION bench_local_server
    xor edx, edx
1:  mov rcx, [bench_local_block]
    mov eax, 0xffffffff
    call local_reply_wait
    jmp 1b

# A server in local ipc that takes its own kernel thread each time.
FUNCTION bench_local_own_server
    xor edx, edx
1:  mov rcx, [bench_local_block]
    mov eax, 0xffffffff
    call local_reply_wait
    mov rcx, [bench_local_block]
    call local_own
    jmp 1b

CLIENT bench_client_to_local, 36

# --- a chief in between -------------------------------------------------------------------------------------

# rdi: [server, iterations, pager, priority]. Makes a clan with a client, then passes on what the client says to the server, as
# its own, and the answer as the server's.
FUNCTION bench_forwarder
    mov r13, rdi
    mov edi, 24
    mov rsi, [r13 + 24]
    mov eax, 0x80000004
    syscall
    mov rsi, [r13 + 24]
    mov rdx, [r13 + 16]
    xor r10d, r10d
    mov eax, 0x80000003
    syscall
    lea rsi, [bench_forwarded]
    xor edx, edx
    mov r10, r13
    mov eax, 0x80000103
    syscall
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  mov rbx, rdx                            # the client: a word that comes back
    mov rdx, r15                            # the server, whom it meant
    mov eax, 0xfffffffe
    syscall
    mov r12, rdx                            # whom the answer is shown to come from
    mov rdx, rbx
    mov rbx, -1
    xor ebp, ebp
    mov r15, 0xffffffff00000000
    mov eax, 0x80002201
    dec dword ptr [bench_forwards]
    js 2f
    syscall
    jmp 1b
2:  xor eax, eax
    REPORT

FUNCTION bench_forwarded
    mov rdx, [rdi]
    mov r14, [rdi + 8]
    inc r14                                 # the last call is not answered
1:  START 30
    mov eax, 0xfffffffe
    syscall
    dec r14d
    jg 1b
    DISCARD 30
    ud2

# --- long messages: as much in the reply as in the call ----------------------------------------------------

# rdi: [server, iterations, address of the own block, dope]. What comes back lies in the own block and is sent on.
.macro LONG_CLIENT name, region
FUNCTION \name
    mov rbx, [rdi + 8]                      # a word of the message
    mov rdx, [rdi]
    mov rsi, [rdi + 16]
    mov rdi, [rdi + 24]
1:  START \region
    mov eax, 0xfffff9fe                     # the reply has a block, too
    syscall
    dec ebx
    jnz 1b
    DISCARD \region
    REPORT
.endm

LONG_CLIENT bench_client_w16, 20
LONG_CLIENT bench_client_w63, 21
LONG_CLIENT bench_client_w120, 22

FUNCTION bench_long_server
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  mov eax, 0xfffffbff
    syscall
    jmp 1b

# The reply is short, and what the server had in its registers: the client names its block anew.
.macro ONE_WAY_CLIENT name, region
FUNCTION \name
    mov rbx, [rdi + 8]
    mov rdx, [rdi]
    mov r8, [rdi + 16]
    mov r9, [rdi + 24]
1:  START \region
    mov rsi, r8
    mov rdi, r9
    mov eax, 0xfffffbfe
    syscall
    dec ebx
    jnz 1b
    DISCARD \region
    REPORT
.endm

ONE_WAY_CLIENT bench_client_string_64, 45
ONE_WAY_CLIENT bench_client_string_256, 46
ONE_WAY_CLIENT bench_client_string_1024, 47
ONE_WAY_CLIENT bench_client_string_4096, 48
ONE_WAY_CLIENT bench_client_block_64, 23
ONE_WAY_CLIENT bench_client_block_256, 24
ONE_WAY_CLIENT bench_client_block_1024, 25
ONE_WAY_CLIENT bench_client_block_4096, 26
ONE_WAY_CLIENT bench_client_string_64k, 27
ONE_WAY_CLIENT bench_client_string_1m, 28
ONE_WAY_CLIENT bench_client_string_scattered, 29
ONE_WAY_CLIENT bench_client_string_apart, 171

# A receiver of a string goes where its block says (rsi), and loads the first word. rcx is nobody's after an ipc.
FUNCTION bench_string_server
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  mov rcx, [rsi]
    mov rcx, [rcx]
    mov eax, 0xffffffff
    syscall
    jmp 1b

# --- a crowd of servers, each called once; an error (their wait is aborted) turns them into sleepers ------

FUNCTION bench_crowd_client
    mov r15, [rdi + 8]
    lea r14, [bench_crowd_servers - 8]
1:  START 12
    mov rdx, [r14 + r15 * 8]
    mov eax, 0xfffffffe
    syscall
    dec r15d
    jnz 1b
    DISCARD 12
    REPORT

FUNCTION bench_crowd
    xor edx, edx
1:  mov eax, 0xffffffff
    syscall
    test eax, eax
    js 1b
2:  mov eax, 0x80008001                     # wait for anybody until a point in time
    xor edx, edx
    mov rbx, -1
    xor ebp, ebp
    mov r15, [bench_crowd_until]
    syscall
    jmp 2b

# --- what a timeout adds to a call in the general form: r13 timeouts, which shrink by r10 -----------------

.macro TIMED name, region, first, step
FUNCTION \name
    mov r14, [rdi]
    mov r12d, [rdi + 8]
    mov r13, \first
    mov r10, \step
    mov rdx, r14
1:  START \region
    mov eax, 0x80000001
    mov rbx, r14
    xor ebp, ebp
    mov r15, r13
    syscall
    sub r13, r10
    dec r12d
    jnz 1b
    DISCARD \region
    REPORT
.endm

TIMED bench_call_forever, 13, -1, 0
TIMED bench_call_earlier, 16, (0x80000000 + 1000000) << 32 | 0xffffffff, 1000 << 32
TIMED bench_call_timed_again, 17, (0x80000000 + 1000000) << 32 | 0xffffffff, 0

# The first timeout of a thread.
FUNCTION bench_call_first
    mov r14, [rdi]
    mov r12, (0x80000000 + 1000000) << 32 | 0xffffffff
    mov rdx, r14
    START 14
    mov eax, 0x80000001
    mov rbx, r14
    xor ebp, ebp
    mov r15, r12
    syscall
    add r8, 0                               # as many instructions as the loops above
    add r9, 0
    nop
    END 14
    REPORT

FUNCTION bench_general_server
    xor edx, edx
1:  mov eax, 0x80000001
    mov rbx, -1
    xor ebp, ebp
    mov r15, 0xffffffff00000000             # do not wait to send, wait forever to receive
    syscall
    jmp 1b

# --- clock interrupt: a thread that does nothing is interrupted for one whose time has come --------------

FUNCTION bench_tick_idle
    IDLE 15

FUNCTION bench_tick_sleeper
1:  mov eax, 0x80008001
    xor edx, edx
    mov rbx, -1
    xor ebp, ebp
    mov r15, [bench_tick_next]
    syscall
    END 15
    cmp eax, 3                              # receive timeout
    jne 2f
    add qword ptr [bench_tick_next], 100000 # TICK_NS in crowd.rs
    dec dword ptr [bench_ticks]
    jnz 1b
    xor eax, eax
2:  REPORT

# --- registers beside those of a message, which pass to the partner -------------------------------------

    .pushsection .data.bench_loops, "aw", @progbits
    .balign 64
bench_thread_data:
    .quad bench_thread_data, 0
    .balign 64
bench_other_thread_data:
    .quad bench_other_thread_data, 0
bench_control_words:
    .long 0x1f80, 0x37f
    .popsection

# Steps of the two sides of a row: HIDE before a message, RESTORE and USE after it. rcx is free; block: the side's own.
.macro NOTHING block
.endm
.macro SET_FS block
    lea rcx, [\block]
    wrfsbase rcx
.endm
.macro USE_FS block
    mov rcx, fs:[0]
.endm
.macro KEEP_FS block
    rdfsbase rcx
    mov [\block + 8], rcx
.endm
.macro RETURN_FS block
    mov rcx, [\block + 8]
    wrfsbase rcx
.endm
.macro USE_VECTORS block
    movq xmm0, r15
    pxor xmm1, xmm0
    paddq xmm1, xmm0
.endm
.macro HIDE_VECTORS block
    vzeroall
.endm
.macro SET_MXCSR block
    ldmxcsr [bench_control_words]
.endm
.macro SET_ALL block
    lea rcx, [\block]
    wrfsbase rcx
    ldmxcsr [bench_control_words]
    fldcw [bench_control_words + 4]
.endm
.macro USE_ALL block
    mov rcx, fs:[0]
    USE_VECTORS \block
.endm

.macro STATEFUL name, region, hide, restore, use
FUNCTION bench_\name\()_client
    mov r15, [rdi + 8]
    mov rdx, [rdi]
    lea rcx, [bench_thread_data]
    wrfsbase rcx
1:  START \region
    \hide bench_thread_data
    mov eax, 0xfffffffe
    syscall
    \restore bench_thread_data
    \use bench_thread_data
    dec r15d
    jnz 1b
    DISCARD \region
    REPORT
FUNCTION bench_\name\()_server
    lea rcx, [bench_other_thread_data]
    wrfsbase rcx
    xor edx, edx
1:  \hide bench_other_thread_data
    mov eax, 0xffffffff
    syscall
    \restore bench_other_thread_data
    \use bench_other_thread_data
    jmp 1b
.endm

STATEFUL tls, 150, NOTHING, SET_FS, USE_FS
STATEFUL tls_kept, 151, KEEP_FS, RETURN_FS, USE_FS
STATEFUL vector, 152, NOTHING, NOTHING, USE_VECTORS
STATEFUL vector_hidden, 153, HIDE_VECTORS, NOTHING, USE_VECTORS
STATEFUL vector_control, 154, HIDE_VECTORS, SET_MXCSR, USE_VECTORS
STATEFUL program, 155, HIDE_VECTORS, SET_ALL, USE_ALL

# Two threads give the processor to each other.
.macro SWITCHING name, region, use
FUNCTION bench_\name\()_client
    mov r15, [rdi + 8]
1:  START \region
    xor edi, edi
    mov eax, 0x80000005
    syscall
    \use 0
    dec r15d
    jnz 1b
    DISCARD \region
    mov eax, 0xffffffff                     # as if the other had answered
    REPORT
FUNCTION bench_\name\()_server
1:  xor edi, edi
    mov eax, 0x80000005
    syscall
    \use 0
    jmp 1b
.endm

SWITCHING switch, 156, NOTHING
SWITCHING switch_vector, 157, USE_VECTORS

# The first use of a port since the task was left for another one.
FUNCTION bench_port_client
    mov r15, [rdi + 8]
    mov rdx, [rdi]
1:  mov eax, 0xfffffffe
    syscall
    mov r14, rdx
    mov edx, 0x70
    START 44
    in al, dx
    END 44
    mov rdx, r14
    dec r15d
    jnz 1b
    REPORT

# --- map a page: the client says where (w0), the server maps a fresh page there -------------------------

.set TAKING_CALL, 0xfffff7fe                # an item may come in answer
.set TAKING_IPC_MAP, 0x80000301             # the general form with an item, then whatever comes
.set MAP_WINDOW, 0x40000000
.set FAULT_WINDOW, 0x40100000
.set PAGES, 160                             # as in main.rs
.set PAGE_RW, 12 << 4 | 3
.set PAGE_RWX, 12 << 4 | 7
.set WHOLE, 47 << 4 | 7

FUNCTION bench_map_client
    mov r13, [rdi]
    xor edi, edi
    mov esi, WHOLE                          # its standing window: calls that take items have them there
    mov eax, 0x80000c03
    syscall
    mov rdx, r13
    mov edi, MAP_WINDOW
    mov r12d, MAP_WINDOW + PAGES * 4096
1:  START 5
    mov eax, TAKING_CALL
    syscall
    add rdi, 4096
    cmp rdi, r12
    jne 1b
    DISCARD 5
    mov ecx, [rdi - 4096]                   # the last page is there
    REPORT

# rdi: 0
FUNCTION bench_map_server
    lea rdi, [bench_map_pages]              # make sure of the pages first
    lea rsi, [rdi + PAGES * 4096]
1:  or dword ptr [rdi], 1
    add rdi, 4096
    cmp rdi, rsi
    jne 1b
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  mov eax, TAKING_IPC_MAP
    mov rbx, -1                             # then receive from anybody
    xor ebp, ebp
    lea r13, [rdi + bench_map_pages - MAP_WINDOW + PAGE_RW]
    mov r14, rdi
    mov r15, 0xffffffff00000000             # do not wait to send, wait forever to receive
    syscall
    jmp 1b

# --- flush the pages that the server mapped -------------------------------------------------------------

FUNCTION bench_unmap
    lea r12, [bench_map_pages + PAGE_RWX]
    lea r13, [r12 + PAGES * 4096]
    xor esi, esi
    xor r14d, r14d
1:  START 6
    mov rdi, r12
    mov eax, 0x80000002
    syscall
    END 6
    or r14, rax
    add r12, 4096
    cmp r12, r13
    jne 1b
    mov rax, r14
    REPORT

# --- sixteen pages at once: mapped by the answer to a call, then flushed; granted with a call, then granted back ------------

.set MANY_WINDOW, 0x40400000
.set MANY, 16 << 4                          # 64 KiB

.macro OWN_WINDOW
    mov r13, [rdi]
    mov r12, [rdi + 8]
    xor edi, edi
    mov esi, WHOLE                          # its standing window: calls that take items have them there
    mov eax, 0x80000c03
    syscall
    mov rdx, r13
.endm
.macro MANY_BASE register
    lea \register, [bench_many_pages + 0xffff]
    and \register, -0x10000
.endm

FUNCTION bench_many_client
    OWN_WINDOW
    mov ebx, r12d
1:  mov edi, MANY_WINDOW
    xor esi, esi
    START 31
    mov eax, TAKING_CALL
    syscall
    END 31
    mov ebp, [rdi]                          # they are there
    mov edi, MANY_WINDOW
    mov esi, 1                              # take them back
    mov eax, 0xfffffffe
    syscall
    dec r9d
    jg 1b
    REPORT

FUNCTION bench_many_server
    MANY_BASE rdi
    lea rsi, [rdi + 0x10000]
1:  or dword ptr [rdi], 1
    add rdi, 4096
    cmp rdi, rsi
    jne 1b
    xor edx, edx
    mov eax, 0xffffffff
    syscall
    mov r9d, PAGES                          # counts down in the client, as a word of the message
1:  test esi, esi
    jnz 2f
    MANY_BASE r13
    or r13, MANY + 3
    mov r14, rdi
    mov rbx, -1
    xor ebp, ebp
    mov r15, 0xffffffff00000000
    mov eax, TAKING_IPC_MAP
    syscall
    jmp 1b
2:  MANY_BASE rdi
    or rdi, MANY + 7
    xor esi, esi
    START 32
    mov eax, 0x80000002
    syscall
    END 32
    mov edi, MANY_WINDOW
    mov eax, 0xffffffff
    syscall
    jmp 1b

# --- 2 MiB at once, in the same way ------------------------------------------------------------------------------------------

.set LARGE_WINDOW, 0x40800000
.set LARGE_PLACE, 0x40c00000
.set LARGE, 21 << 4

.macro LARGE_PAIR name, map, unmap
FUNCTION bench_large_client_\name
    OWN_WINDOW
1:  mov edi, LARGE_WINDOW
    xor esi, esi
    START \map
    mov eax, TAKING_CALL
    syscall
    END \map
    mov ebp, [rdi]                          # it is there
    mov edi, LARGE_WINDOW
    mov esi, 1                              # take it back
    mov eax, 0xfffffffe
    syscall
    dec r9d
    jg 1b
    REPORT

FUNCTION bench_large_server_\name
    OWN_WINDOW
1:  mov rdx, [bench_chief]                  # which answers with a part of the memory
    mov eax, TAKING_CALL
    syscall
    dec dword ptr [bench_large_parts]
    jnz 1b
    xor edx, edx
    mov eax, 0xffffffff
    syscall
    mov r9d, PAGES                          # counts down in the client, as a word of the message
1:  test esi, esi
    jnz 2f
    mov r13d, LARGE_PLACE + LARGE + 3
    mov r14, rdi
    mov rbx, -1
    xor ebp, ebp
    mov r15, 0xffffffff00000000
    mov eax, TAKING_IPC_MAP
    syscall
    jmp 1b
2:  mov edi, LARGE_PLACE + LARGE + 7
    xor esi, esi
    START \unmap
    mov eax, 0x80000002
    syscall
    END \unmap
    mov edi, LARGE_WINDOW
    mov eax, 0xffffffff
    syscall
    jmp 1b
.endm

LARGE_PAIR whole, 39, 40
LARGE_PAIR small, 41, 42

# A small page out of a large one, of which half of all others are mapped already.
.set SMALL, 12 << 4
.set HALF, 20 << 4
.set HALF_BYTES, 1 << 20

FUNCTION bench_large_client_part
    OWN_WINDOW
    mov edi, LARGE_WINDOW + HALF_BYTES
    mov esi, 2
    mov eax, TAKING_CALL
    syscall
1:  mov edi, LARGE_WINDOW
    xor esi, esi
    mov eax, TAKING_CALL
    syscall
    mov ebp, [rdi]                          # it is there
    mov edi, LARGE_WINDOW
    mov esi, 1                              # take it back
    mov eax, 0xfffffffe
    syscall
    dec r9d
    jg 1b
    REPORT

.macro ANSWER_WITH item
    mov r13d, \item
    mov r14, rdi
    mov rbx, -1
    xor ebp, ebp
    mov r15, 0xffffffff00000000
    mov eax, TAKING_IPC_MAP
    syscall
.endm

FUNCTION bench_large_server_part
    OWN_WINDOW
    mov rdx, [bench_chief]                  # which answers with a large page
    mov eax, TAKING_CALL
    syscall
    xor edx, edx
    mov eax, 0xffffffff
    syscall
    mov r9d, PAGES                          # counts down in the client, as a word of the message
1:  cmp esi, 1
    je 2f
    ja 3f
    ANSWER_WITH LARGE_PLACE+SMALL+3
    jmp 1b
3:  ANSWER_WITH LARGE_PLACE+HALF_BYTES+HALF+3
    jmp 1b
2:  mov edi, LARGE_PLACE + SMALL + 7
    xor esi, esi
    START 162
    mov eax, 0x80000002
    syscall
    END 162
    mov edi, LARGE_WINDOW
    mov eax, 0xffffffff
    syscall
    jmp 1b

# The client's pages go to the server and come back, with the answer to a call that is not counted.
.macro GRANT_CLIENT name, region, size
FUNCTION \name
    OWN_WINDOW
    MANY_BASE rdi
    lea rsi, [rdi + 0x10000]
1:  or dword ptr [rdi], 1
    add rdi, 4096
    cmp rdi, rsi
    jne 1b
    mov r8d, r12d
1:  xor esi, esi
    MANY_BASE r13
    mov r14, r13
    or r13, (\size << 4) + 8 + 3
    mov rbx, rdx                            # send to the server, receive from it
    mov ebp, WHOLE
    mov r15, -1
    START \region
    mov eax, TAKING_IPC_MAP
    syscall
    END \region
    mov esi, \size
    mov eax, TAKING_CALL
    syscall
    dec r8d
    jg 1b
    REPORT
.endm

GRANT_CLIENT bench_grant_client_1, 33, 12
GRANT_CLIENT bench_grant_client_16, 34, 16

FUNCTION bench_grant_server
    xor edi, edi
    mov esi, WHOLE
    mov eax, 0x80000c03
    syscall
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  test esi, esi
    jnz 2f
    mov eax, 0xffffffff
    syscall
    jmp 1b
2:  MANY_BASE r13
    mov r14, r13
    shl esi, 4
    lea r13, [r13 + rsi + 8 + 3]
    xor esi, esi
    mov rbx, -1
    mov ebp, WHOLE
    mov r15, 0xffffffff00000000
    mov eax, TAKING_IPC_MAP
    syscall
    jmp 1b

# --- page fault: a fresh page each time -----------------------------------------------------------------

FUNCTION bench_fault_client
    mov edi, FAULT_WINDOW
1:  START 7
    mov ecx, [rdi]
    END 7
    add edi, 4096
    cmp edi, FAULT_WINDOW + PAGES * 4096
    jne 1b
    xor eax, eax
    REPORT

FUNCTION bench_pager
    lea rdi, [bench_fault_pages]
    lea rsi, [rdi + PAGES * 4096]
1:  or dword ptr [rdi], 1
    add rdi, 4096
    cmp rdi, rsi
    jne 1b
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  mov eax, TAKING_IPC_MAP
    mov rbx, -1
    xor ebp, ebp
    and rdi, -4096                          # w0: address, with the access in its low bits
    lea r13, [rdi + bench_fault_pages - FAULT_WINDOW + PAGE_RW]
    mov r14, rdi
    mov r15, 0xffffffff00000000
    syscall
    jmp 1b

# --- exception: the handler steps over ud2 --------------------------------------------------------------

FUNCTION bench_exception_client
    mov r15, [rdi + 8]
1:  START 8
    ud2
    END 8
    dec r15d
    jnz 1b
    xor eax, eax
    REPORT

FUNCTION bench_handler
    xor edx, edx
    mov eax, 0xffffffff
    syscall
1:  mov rax, 0x1ffffffff                    # label RESUME, reply and wait
    add r8, 2                               # w2: instruction pointer
    syscall
    jmp 1b

# --- interrupt: a thread that does nothing, in one task, is interrupted for the driver, in another -----------

FUNCTION bench_idle
    IDLE 9

.set CLOCK_LINE, 8
.set CLOCK_UID, CLOCK_LINE << 12 | 1

FUNCTION bench_driver
1:  mov eax, 0x80000001
    xor edx, edx
    mov ebx, CLOCK_UID
    xor ebp, ebp
    mov r15, -1
    syscall
    END 9
    cmp eax, 0xfffffffa                     # an interrupt's message
    jne 2f
    mov al, 0x0c                            # the clock goes on when this register was read
    out 0x70, al
    in al, 0x71
    dec dword ptr [bench_interrupts]
    jnz 1b
    xor eax, eax
2:  REPORT

# --- thread: rdi = iterations, rsi = priority; returns the errors seen ----------------------------------

FUNCTION bench_thread
    mov r9, rdi
    xor r8d, r8d
    xor edx, edx
    xor r10d, r10d
1:  START 10
    xor edi, edi                            # in the own task
    mov eax, 0x80000003
    syscall
    mov eax, 0x80000203
    syscall
    END 10
    or r8, rax
    dec r9
    jnz 1b
    mov rax, r8
    ret

# --- task: the new thread's first instructions; rdi = chief ---------------------------------------------

FUNCTION bench_first
    mov rdx, rdi
    mov eax, 0xfffffffe
    syscall
    ud2

.text

# --- foreign call: a thread to which native calls are denied, and its handler in another task -----------------

.macro FOREIGN_CLIENT name, region
FUNCTION \name
    mov r15, [rdi + 8]
1:  START \region
    mov eax, 39
    syscall
    dec r15d
    jnz 1b
    DISCARD \region
    ud2                                     # the last result is in rax
.endm

FOREIGN_CLIENT bench_foreign_client, 158
FOREIGN_CLIENT bench_foreign_rust_client, 159

FUNCTION bench_foreign_handler
    mov eax, 0x80004201                     # take a block, take foreign calls
    xor edx, edx
    mov rbx, -1
    xor ebp, ebp
    mov r15, 0xffffffff00000000
1:  syscall
    mov esp, 42
    test r11, r11
    mov eax, 0xfffffffb
    js 1b
    mov eax, 0xfffffffe
    mov rdx, [bench_chief]
    syscall
    ud2

# --- state of a thread: rdi = iterations, rsi = thread, rdx = block, rcx = operation; returns what is not 0 if one fails --------

.macro STATE_LOOP name, region
FUNCTION bench_state_\name
    push rbx
    push r12
    push r13
    push r14
    push r15
    mov r15, rdi
    mov r14, rsi
    mov r13, rdx
    mov r12, rcx
    xor ebx, ebx
1:  START \region
    mov rdi, r14
    mov rsi, r13
    mov edx, 1024
    mov eax, r12d
    syscall
    or ebx, eax
    dec r15
    jnz 1b
    DISCARD \region
    mov eax, ebx
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    ret
.endm

STATE_LOOP get, 160
STATE_LOOP set, 161
