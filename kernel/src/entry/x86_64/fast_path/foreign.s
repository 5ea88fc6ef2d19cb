// Foreign calls: those of another system, made by a thread to which native calls are denied, and the return from them.
//
// All registers are the caller's but for those that the processor itself overwrites, rcx and r11, and rsp. So rsp is the base of all
// accesses, and the user's is kept beside the current pointer. The caller's flags stay in the place of its key, which nobody needs while the
// thread is special; its instruction and stack pointers where every call leaves them.

    .section .fastpath, "ax"
// The call. A thread that makes no such calls has a word in `foreign_key` for which nobody waits.
    .balign 64
.Lforeign_call:
    mov     [{scratch}], rsp
    mov     rsp, [{current}]            // rsp = my hot line
    mov     [rsp + {rip}], rcx          // where I go on
    mov     [rsp + {key}], r11          // my flags
    mov     r11, [{scratch}]
    mov     [rsp + {rsp}], r11
    mov     r11, [rsp + {foreign_key}]
    mov     rcx, [rsp + {foreign_handler}]  // rcx = hot line of my handler (absent slots read as zero)
    cmp     [rcx + {accept}], r11       // takes foreign calls, is my handler, on this CPU?
    jne     .Lslow_foreign_call
    mov     [rsp + {accept}], r11       // from here on nothing can fail: I wait for it alone
    mov     qword ptr [rcx + {accept}], {never}
    mov     r11, [rsp + {shuttle}]      // it runs on my shuttle
    mov     [rcx + {shuttle}], r11
    mov     r11, [rcx + {space}]
    cmp     r11, [rsp + {space}]
    je      1f
    mov     cr3, r11
1:  mov     [{current}], rcx
    mov     r11, [rsp + {foreign_mark}] // it learns whose call it is
    exit_site .Lclear_foreign_call, .Lnever
    mov     rsp, [rcx + {rsp}]
    mov     rcx, [rcx + {rip}]
    sysretq
.Lslow_foreign_call:
    mov     r11, [rsp + {key}]          // Rust computes the key anew
    jmp     .Lsaved

// The return, to the owner of the shuttle that I carry, if it waits for me. The result is in rsp.
    .balign 64
.Lforeign_return:
    mov     [{scratch}], rsp
    mov     rsp, [{current}]            // rsp = my hot line
    mov     [rsp + {rip}], rcx
    mov     r11, [rsp + {shuttle}]
    mov     ecx, r11d
    and     ecx, {slot_mask}
    add     rcx, {hots}                 // rcx = hot line of the owner
    cmp     [rcx + {shuttle}], r11      // does it claim what I hold?
    jne     .Lslow_foreign_return
    mov     r11, [rsp + {key}]
    or      r11, {foreign}              // does it wait for the return from a call, from me? (never, while somebody queues to me)
    cmp     [rcx + {accept}], r11
    jne     .Lslow_foreign_return
    mov     [rsp + {accept}], r11       // from here on nothing can fail: I take the next call
    mov     qword ptr [rcx + {accept}], {never}
    mov     r11, [rsp + {foreign_stack}]
    mov     [rsp + {rsp}], r11
    mov     r11, [rcx + {space}]
    cmp     r11, [rsp + {space}]
    je      1f
    mov     cr3, r11
1:  mov     [{current}], rcx
    mov     rax, [{scratch}]
    mov     rsp, [rcx + {rsp}]
    exit_site .Lclear_foreign_return, .Lnever
    mov     r11, [rcx + {key}]          // its flags
    mov     rcx, [rcx + {rip}]
    sysretq
.Lslow_foreign_return:
    mov     rcx, [{scratch}]
    mov     [rsp + {rsp}], rcx
    mov     r11d, {flags}
    jmp     .Lsaved

// Twins of the two exits; see exit.s.
.Lclear_foreign_call:
    verw    word ptr [{selector}]
    mov     rsp, [rcx + {rsp}]
    mov     rcx, [rcx + {rip}]
    sysretq
.Lclear_foreign_return:
    verw    word ptr [{selector}]
    mov     r11, [rcx + {key}]
    mov     rcx, [rcx + {rip}]
    sysretq
