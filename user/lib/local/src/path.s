# The paths of local ipc. Registers as for the short forms of the system call: rax operation and label, rdx partner, eleven
# words; and rcx, the own block, which is lost like r11. The caller's stack holds where to go on.
#
# A thread *is* whoever runs on its stack. While it waits for an answer, that is nobody, and the one that it called brings
# it back. While it waits for anybody, whoever clears bit 0 of `open` becomes this thread: one instruction, which no
# interrupt divides. (On several processors it would need a `lock` prefix.) Bit 31 says that its kernel thread wants to be it.

# r11 = the block that the uid in rdx has, if it has one.
.macro local_find
    mov     r11d, edx
    shr     r11d, {index_shift}
    and     r11d, {index_mask}
    add     r11, offset {blocks}
.endm

.macro push_message
    push    rax
    push    rdx
    push    rdi
    push    rsi
    push    r8
    push    r9
    push    r10
    push    r12
    push    r13
    push    r14
    push    r15
    push    rbx
    push    rbp
.endm
.macro pop_message
    pop     rbp
    pop     rbx
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     r10
    pop     r9
    pop     r8
    pop     rsi
    pop     rdi
    pop     rdx
    pop     rax
.endm

.section .text.local, "ax", @progbits

    .balign 64
    .global local_call
local_call:
    local_find
    cmp     [r11 + {uid}], rdx
    jne     .Lcall_by_kernel
    btr     dword ptr [r11 + {open}], 0     # does it wait for anybody? Then it is mine
    jnc     .Lcall_by_kernel
    mov     [rcx + {stack}], rsp
    mov     [rcx + {partner}], r11          # I wait for its answer
    mov     rdx, [rcx + {uid}]
    mov     rcx, [rcx + {carrier}]          # the kernel knows it as whom it knows me
    mov     [r11 + {carrier}], rcx
    mov     rsp, [r11 + {stack}]
    ret

    .balign 64
    .global local_reply_wait
local_reply_wait:
    local_find
    cmp     [r11 + {partner}], rcx          # does it wait for my answer, here?
    jne     .Lreply_by_kernel
    cmp     [r11 + {uid}], rdx
    jne     .Lreply_by_kernel
    mov     qword ptr [r11 + {partner}], 0
    mov     [rcx + {stack}], rsp
    mov     rdx, [rcx + {uid}]
    mov     rsp, [r11 + {stack}]
    inc     dword ptr [rcx + {open}]        # from here on others may be me
    js      .Lgive
    ret

# A message by the kernel waits for the thread that just became free: unless somebody else has it already, its kernel thread
# gets it. I am the partner by now.
.Lgive:
    btr     dword ptr [rcx + {open}], 0
    jnc     1f
    mov     r11, [r11 + {carrier}]
    mov     [rcx + {carrier}], r11
    mov     dword ptr [rcx + {moving}], 2
    push_message
    mov     rdi, [rcx + {uid}]
    mov     eax, {abort}
    syscall
    mov     rdx, rdi
    mov     eax, {general}
    xor     ebx, ebx
    xor     ebp, ebp
    mov     r15, -1
    syscall
    pop_message
1:  ret

.Lcall_by_kernel:
    cmp     [rcx + {carrier}], rcx
    je      1f
    call    local_own
1:  syscall
    ret

.Lreply_by_kernel:
    cmp     [rcx + {carrier}], rcx
    jne     3f
1:  cmp     [r11 + {uid}], rdx
    je      4f
2:  mov     [rcx + {stack}], rsp
    mov     rsp, rcx                        # all that is needed later; the kernel keeps it
    cmp     dword ptr [rsp + {pending}], 0
    jne     .Lreply_only
    mov     dword ptr [rsp + {open}], 1
    syscall
    btr     dword ptr [rsp + {open}], 0
    jnc     .Ltaken
.Lmine:
    mov     [rsp + {carrier}], rsp
    mov     rsp, [rsp + {stack}]
    ret
3:  call    local_own
    local_find
    jmp     1b
4:  test    rdx, rdx
    jz      2b
    mov     r11, [r11 + {carrier}]          # the kernel knows it as this one
    mov     rdx, [r11 + {uid}]
    jmp     2b

# Somebody else is this thread. Is the message the call by which its carrier gives it back? Nothing else can be a request of
# the carrier: while it waited for an answer it could not carry.
.Ltaken:
    cmp     eax, {ipc_call}
    jne     .Lhold
    mov     rcx, [rsp + {carrier}]
    cmp     [rcx + {uid}], rdx
    jne     .Lhold
    cmp     dword ptr [rsp + {moving}], 1
    jne     .Lhold
    mov     dword ptr [rsp + {moving}], 0
    jmp     .Lmine

# Keep the message until this thread can be had, by waiting or by being given back.
.Lhold:
    mov     rcx, [rsp + {held}]
    mov     [rcx], rax
    mov     [rcx + 8], rdx
    mov     [rcx + 16], rdi
    mov     [rcx + 24], rsi
    mov     [rcx + 32], r8
    mov     [rcx + 40], r9
    mov     [rcx + 48], r10
    mov     [rcx + 56], r12
    mov     [rcx + 64], r13
    mov     [rcx + 72], r14
    mov     [rcx + 80], rbx
    mov     [rcx + 88], rbp
    mov     [rcx + 96], r15
    bts     dword ptr [rsp + {open}], 31
.Llook:
    btr     dword ptr [rsp + {open}], 0
    jnc     1f
    mov     dword ptr [rsp + {open}], 0
    jmp     .Ldeliver
1:  mov     eax, {general}
    xor     edx, edx
    xor     ebp, ebp
    cmp     dword ptr [rsp + {moving}], 0
    jne     2f
    mov     rbx, [rsp + {uid}]              # nobody sends to itself: a pause, until somebody ends it
    mov     r15, {pause}
    syscall
    jmp     .Llook
2:  mov     rbx, [rsp + {carrier}]
    mov     rbx, [rbx + {uid}]
    mov     r15, -1
    syscall
    cmp     eax, {aborted}                  # that wakes from pauses. Any other error: there is no carrier any more
    je      1b
    mov     dword ptr [rsp + {open}], 0
    cmp     dword ptr [rsp + {moving}], 2
    mov     dword ptr [rsp + {moving}], 0
    je      .Ldeliver
    mov     dword ptr [rsp + {pending}], 1
    jmp     .Lmine

# There is a next message already: answer without waiting.
.Lreply_only:
    mov     dword ptr [rsp + {pending}], 0
    test    rdx, rdx
    jz      .Ldeliver
    shr     rax, 32
    shl     rax, 32
    mov     ecx, {general}
    or      rax, rcx
    xor     ebx, ebx
    xor     ebp, ebp
    xor     r15d, r15d
    syscall
.Ldeliver:
    mov     [rsp + {carrier}], rsp
    mov     rcx, [rsp + {held}]
    mov     rsp, [rsp + {stack}]
    mov     rax, [rcx]
    mov     rdx, [rcx + 8]
    mov     rdi, [rcx + 16]
    mov     rsi, [rcx + 24]
    mov     r8, [rcx + 32]
    mov     r9, [rcx + 40]
    mov     r10, [rcx + 48]
    mov     r12, [rcx + 56]
    mov     r13, [rcx + 64]
    mov     r14, [rcx + 72]
    mov     rbx, [rcx + 80]
    mov     rbp, [rcx + 88]
    mov     r15, [rcx + 96]
    ret

# The thread of rcx's block goes on with its own kernel thread. The carrier makes the call that brought it here by the kernel,
# with no words, since they came already, and waits for the answer as the one who called. Changes r11 only.
    .global local_own
local_own:
    cmp     [rcx + {carrier}], rcx
    jne     1f
    ret
1:  push    rax
    push    rdx
    push    rdi
    push    rsi
    push    r8
    push    r9
    push    r10
    push    r12
    push    r13
    push    r14
    push    r15
    push    rbx
    push    rbp
    push    rcx
    lea     r11, [rip + 4f]
    push    r11
    mov     [rcx + {stack}], rsp
    lea     r11, [rip + {blocks}]
2:  cmp     [r11 + {partner}], rcx          # who called? There is one
    je      3f
    add     r11, 64
    jmp     2b
3:  mov     qword ptr [r11 + {partner}], 0
    mov     dword ptr [rcx + {moving}], 1
    mov     rdx, [rcx + {uid}]
    mov     rsp, [r11 + {stack}]
    cmp     dword ptr [rcx + {open}], 0     # if its kernel thread sleeps, it is to look now
    jge     5f
    mov     rdi, rdx
    mov     eax, {abort}
    syscall
5:  mov     eax, {ipc_call}
    syscall
    ret
4:  pop     rcx
    pop_message
    ret

.text
