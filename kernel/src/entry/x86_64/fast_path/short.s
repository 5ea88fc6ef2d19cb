// The short forms: call, and reply and wait, of eleven words (rows P1).
//
// Two lines of code each way, the hot line of each partner, and the per-CPU line of the current pointer. All checks are before all
// changes. A message is a reply if the partner waits for this thread alone. The last compare checks that the sender gives back the shuttle
// that the partner lent: without it the partner could run before a more urgent thread.
//
// A call takes more than words in answer only if it says so: it then has a form of its own, and leaves in `accept` what may come. So no
// block is written to while its owner works with it.

    .section .fastpath, "ax"
// The slow exit of the call, in front of it to be within reach of short jumps: with them each path fits two lines.
    .skip   50
.Lslow_call:
    mov     rsp, r11                    // instruction and stack pointer are saved already
    mov     r11d, {flags}
    jmp     .Lcall

    .balign 64
    .globl system_call_entry
system_call_entry:
    cmp     eax, {ipc_call}             // call? reply and wait is one above, all else below
    jne     .Lnot_call

// Call: send to rdx, then wait for rdx alone.
    find_open_partner .Lslow_call
    mov     rcx, [rsp + {key}]          // from here on nothing can fail
.Lcalled:
    mov     [r11 + {accept}], rcx       // I wait for it alone
    mov     qword ptr [rsp + {accept}], {never}
    mov     rcx, [r11 + {shuttle}]      // it runs on my shuttle
    mov     [rsp + {shuttle}], rcx
    mov     rdx, [r11 + {uid}]          // it learns who I am
    mov     rcx, [rsp + {space}]
    cmp     rcx, [r11 + {space}]
    je      1f
    mov     cr3, rcx
1:  mov     [{current}], rsp            // it is the current thread, and its block the stack for exceptions
    mov     rcx, [rsp + {rip}]
    mov     rsp, [rsp + {rsp}]
    leave_short

// Reply and wait: send to rdx if it waits for me alone, then wait for anybody.
    .balign 64
.Lnot_call:
    jb      .Lother
    find_partner .Lslow_reply
    mov     rcx, [r11 + {key}]          // waits for me alone? (never, while somebody queues to me)
    cmp     [rsp + {accept}], rcx
    jne     .Lother_wait
.Lit_waits:
    mov     rcx, [r11 + {shuttle}]      // is it the one whose shuttle I carry?
    cmp     [rsp + {shuttle}], rcx
    jne     .Lslow_reply
    mov     rcx, [r11 + {open_key}]     // from here on nothing can fail
    mov     [r11 + {accept}], rcx       // I wait for anybody
    mov     qword ptr [rsp + {accept}], {never}
    mov     rdx, [r11 + {uid}]
    mov     rcx, [rsp + {space}]
    cmp     rcx, [r11 + {space}]
    je      1f
    mov     cr3, rcx
1:  mov     [{current}], rsp
    mov     rcx, [rsp + {rip}]
    mov     rsp, [rsp + {rsp}]
    leave_short
.Lother_wait:
    xor     rcx, [rsp + {accept}]       // or for me alone, with more than words?
    and     rcx, {not_taking}
    jz      .Lit_waits
.Lslow_reply:
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lshort

// Call whose answer may bring more than words. Only the word for which the caller waits differs.
    .balign 64
.Ltaking_call:
    find_open_partner .Lslow_taking
    mov     ecx, eax                    // from here on nothing can fail: the caller takes what is in its `accept`
    not     ecx
    shr     ecx, 8
    and     ecx, {taking}
    or      rcx, [rsp + {key}]
    or      ah, {words_only} >> 8       // it finds an ordinary call
    jmp     .Lcalled
.Lslow_taking:
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lsaved
