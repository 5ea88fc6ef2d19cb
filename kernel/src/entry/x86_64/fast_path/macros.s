// Macros of the other files: save and load a Frame, mark exits from the kernel and accesses to users' memory, find the partner.

// Saves the part of a Frame from rcx down; the other macro loads it, up to r11.
    .macro save_registers
    push    rcx
    push    r11
    push    rax
    push    rdx
    push    r15
    push    rbp
    push    rbx
    push    r14
    push    r13
    push    r12
    push    r10
    push    r9
    push    r8
    push    rsi
    push    rdi
    .endm
    .macro load_registers
    pop     rdi
    pop     rsi
    pop     r8
    pop     r9
    pop     r10
    pop     r12
    pop     r13
    pop     r14
    pop     rbx
    pop     rbp
    pop     r15
    pop     rdx
    pop     rax
    pop     r11
    .endm
// Tables of exits from the kernel, with the twins that replace them where processors leak (see rewrite_exits), and of accesses.
    .pushsection .rodata.exits, "a"
    .balign 4
    .globl EXITS
EXITS:
    .popsection
    .pushsection .rodata.accesses, "a"
    .balign 4
    .globl ACCESSES
ACCESSES:
    .popsection
    .macro exit_site clearing, isolating
    .pushsection .rodata.exits, "a"
    .long   .Lexit\@ - EXITS, \clearing - EXITS, \isolating - EXITS
    .popsection
.Lexit\@:
    .endm
// Executes stac or clac, or nothing on a processor that has neither: see without_smap.
    .macro user_access instruction
    .pushsection .rodata.accesses, "a"
    .long   .Laccess\@ - ACCESSES
    .popsection
.Laccess\@:
    \instruction
    .endm
    .macro leave_short
    exit_site .Lclear_short, .Lnever
    mov     r11d, {flags}
    sysretq
    .endm
// Saves the rest of a Frame of a system call, whose instruction and stack pointers are saved; rsp is the hot line.
    .macro save_call
    lea     rsp, [rsp - {trap_part}]
    save_registers
    mov     qword ptr [rsp + {mode}], {sysret}
    .endm

// Start of a short form: r11 becomes the own hot line, rsp that of the thread in rdx.
    .macro find_partner slow
    mov     r11, [{current}]            // r11 = my hot line
    mov     [r11 + {rip}], rcx          // where I go on
    mov     [r11 + {rsp}], rsp
    mov     esp, edx                    // rsp = hot line of the slot in rdx: one and, one add
    and     esp, {slot_mask}
    add     rsp, {hots}
    cmp     [rsp + {uid}], rdx          // the very thread? (absent slots read as zero)
    jne     \slow
    .endm
    .macro find_open_partner slow
    find_partner \slow
    mov     rcx, [r11 + {open_key}]     // waits openly, same clan, same CPU, neither of us special?
    cmp     [rsp + {accept}], rcx
    jne     \slow
    .endm
