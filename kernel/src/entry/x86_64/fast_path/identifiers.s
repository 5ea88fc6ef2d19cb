// Identifiers on the fast path (fast_path.rs): a call hands one to a server, and a flush gives one up.
//
// The slow path of the two is `map_single` and `flush_single` in `mem::doors`. A call that is refused here goes there as it came, since
// everything is checked first, and nothing is changed before nothing can fail any more. Refused are numbers beyond
// the first page, a window of more than one number, a number in use, grants, other clans, an identifier that is
// its maker's or the last, and a call that makes or empties a slab of nodes. rsp is a register like the others meanwhile.

    .section .fastpath, "ax"
// A call through a door with an item. The registers that the server finds zero are free for use once they are kept in the Frame.
    .balign 64
.Ldoor_item_call:
    mov     r11, r13                    // r13: one of my first identifiers, to be called and not granted?
    and     r11, {near_mask} | {call_right} | {grant}
    cmp     r11, {identifier} | {call_right}
    jne     .Lgeneral
    mov     r11, [{current}]            // r11 = my hot line
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    movabs  rcx, {doors}
    mov     edx, edx
    mov     rsp, [rcx + rdx * 8]        // rsp = the door that is called
    test    rsp, rsp
    jns     .Lslow_identifier
    mov     rcx, [rsp + {door_pool}]
    mov     rcx, [rcx - 8]              // rcx = hot line of the first server that waits
    test    rcx, rcx
    jns     .Lslow_identifier
    mov     [r11 + {kept_rax}], rax
    mov     [r11 + {kept_rdx}], rdx
    mov     [r11 + {kept_rbx}], rbx
    mov     [r11 + {kept_rbp}], rbp
    mov     [r11 + {kept_r15}], r15
    mov     rdx, [rcx + {open_key}]     // in my clan, and I am not special? Servers in this list are not.
    cmp     rdx, [r11 + {open_key}]
    jne     .Lslow_item
    mov     r15, [r11 + {task}]
    mov     r15, [r15 + {near_nodes}]
    test    r15, r15
    jz      .Lslow_item
    mov     ebx, r13d
    shr     ebx, {number_shift}
    mov     r15, [r15 + rbx * 8]        // r15 = the node of what I give, with the right to hand on
    test    r15, r15
    jz      .Lslow_item
    cmp     qword ptr [r15 + {node_address}], 0
    jns     .Lslow_item
    mov     rdx, [rcx + {standing}]     // is the server's window one of its first numbers?
    mov     rbx, rdx
    and     rbx, {near_mask}
    cmp     rbx, {identifier}
    jne     .Lslow_item
    shr     edx, {number_shift}         // edx = that number
    mov     rbx, [rcx + {task}]
    mov     rbp, [rbx + {near_nodes}]
    test    rbp, rbp
    jz      .Lslow_item
    lea     rbp, [rbp + rdx * 8]        // rbp = the slot of its node, which must be empty
    cmp     qword ptr [rbp], 0
    jne     .Lslow_item
    mov     r11, [rbx + {near_words}]   // r11 = the words of the server's task
    mov     rbx, [rbx + {slabs}]        // rbx = a slab of that task
    test    rbx, rbx
    jz      .Lslow_item
    mov     rax, [rbx + {slab_free}]    // rax = a free node, which is not the last
    test    rax, rax
    jz      .Lslow_item
    cmp     qword ptr [rax + {node_next}], 0
    je      .Lslow_item
    mov     [rbp], rax                  // from here on nothing can fail
    mov     [rax + {node_slot}], rbp
    mov     rbp, [rax + {node_next}]
    mov     [rbx + {slab_free}], rbp
    inc     dword ptr [rbx + {slab_used}]
    mov     rbp, [r15 + {node_door}]    // rbp = the door that is handed on
    mov     [rax + {node_door}], rbp
    mov     [r11 + rdx * 8], rbp
    lea     rbx, [rdx + rdx]            // the number, with the right to hand on as its highest bit
    bt      r13d, {hand_on_bit}
    rcr     rbx, 1
    mov     [rax + {node_address}], rbx
    mov     qword ptr [rax + {node_entry}], 0
    movabs  rbx, {identifier_kind}
    mov     [rax + {node_kind}], rbx
    mov     rbp, [r15 + {node_next}]    // the new node comes behind the one that I have
    mov     [rax + {node_next}], rbp
    mov     [rax + {node_prev}], r15
    mov     [r15 + {node_next}], rax
    test    rbp, rbp
    jz      1f
    mov     [rbp + {node_prev}], rax
1:  shl     edx, {number_shift}         // r13 = where it arrived
    and     r13d, {rights}
    lea     r13, [r13 + rdx + {identifier}]
    xor     ebx, ebx
    xor     ebp, ebp
    xor     r15d, r15d
    mov     r11, rsp                    // the rest is a call with words
    mov     rdx, [{current}]
    mov     rax, [rdx + {kept_rax}]
    mov     rsp, [r11 + {door_pool}]
    jmp     .Ltake_server
.Lslow_item:
    mov     r11, [{current}]
    mov     rax, [r11 + {kept_rax}]
    mov     rdx, [r11 + {kept_rdx}]
    mov     rbx, [r11 + {kept_rbx}]
    mov     rbp, [r11 + {kept_rbp}]
    mov     r15, [r11 + {kept_r15}]
.Lslow_identifier:
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lsaved

// A number that is no short form may be a flush of one of the caller's first identifiers.
    .balign 64
.Lno_short_form:
    cmp     eax, {flush}
    jne     .Lgeneral
    mov     r11, rdi
    and     r11, {near_mask} | {call_right}
    cmp     r11, {identifier} | {call_right}
    jne     .Lgeneral
    cmp     rsi, {flush_self}
    jne     .Lgeneral
    mov     r11, [{current}]
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    test    byte ptr [r11 + {open_key}], 1
    jz      .Lslow_identifier           // I am special
    mov     rsp, [r11 + {task}]         // rsp = my task
    mov     rcx, [rsp + {near_nodes}]   // rcx = the nodes of its first numbers
    test    rcx, rcx
    jz      .Lslow_release
    mov     eax, edi
    shr     eax, {number_shift}         // rax = the number
    mov     rsi, [rcx + rax * 8]        // rsi = its node
    test    rsi, rsi
    jz      .Lslow_release
    mov     r11, [rsi + {node_prev}]    // r11 = the one before it: none if it is the maker's
    test    r11, r11
    jz      .Lslow_release
    cmp     qword ptr [rsi + {node_next}], 0
    jne     1f
    cmp     qword ptr [r11 + {node_prev}], 0
    je      .Lslow_release              // nobody else has one but the maker
1:  mov     [{scratch}], rdi
    mov     rdi, [rsi + {node_slab}]    // rdi = its slab, neither full nor empty without it
    cmp     dword ptr [rdi + {slab_used}], {slab_nodes}
    je      .Lslow_slab
    cmp     dword ptr [rdi + {slab_used}], 1
    je      .Lslow_slab
    mov     qword ptr [rcx + rax * 8], 0    // from here on nothing can fail
    mov     rcx, [rsp + {near_words}]
    mov     qword ptr [rcx + rax * 8], {flags}
    mov     rcx, [rsi + {node_next}]
    mov     [r11 + {node_next}], rcx
    test    rcx, rcx
    jz      2f
    mov     [rcx + {node_prev}], r11
2:  mov     rcx, [rdi + {slab_free}]
    mov     [rsi + {node_next}], rcx
    mov     [rdi + {slab_free}], rsi
    dec     dword ptr [rdi + {slab_used}]
    mov     esi, {flush_self}
    xor     edi, edi                    // no access to report, and no error
    xor     eax, eax
    mov     rsp, [{current}]
    mov     rcx, [rsp + {rip}]
    mov     rsp, [rsp + {rsp}]
    leave_short
.Lslow_slab:
    mov     rdi, [{scratch}]
.Lslow_release:
    mov     eax, {flush}
    mov     esi, {flush_self}
    mov     r11, [{current}]
    jmp     .Lslow_identifier
    .text
