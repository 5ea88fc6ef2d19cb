// Calls through doors and returns from them (rows D1, D3).
//
// A call takes the first server in the list of those that wait; none of these is special. A return goes to the caller for which the server
// was taken, if that caller waits for it, and puts the server back. rdx is the identifier, then the datum. A server begins on its own stack
// each time, and keeps nothing in its control block. The low bits of `accept` tell a wait for doors from a wait of ipc.

// Start of a call through a door: edx is an identifier, an index into the table of words, in which every number has one.
    .macro find_server
    movabs  r11, {doors}
    mov     edx, edx
    mov     r11, [r11 + rdx * 8]        // r11 = the door; or the flags that r11 gets on the way out, if there is none
    test    r11, r11
    jns     .Lno_door
    mov     [{scratch}], rdx
    mov     rdx, [{current}]            // rdx = my hot line
    mov     [rdx + {rip}], rcx
    mov     [rdx + {rsp}], rsp
    mov     rsp, [r11 + {door_pool}]    // behind the list of servers that wait
    mov     rcx, [rsp - 8]              // rcx = hot line of the first
    test    rcx, rcx
    jns     .Lslow_door
    test    byte ptr [rdx + {open_key}], 1
    jz      .Lslow_door                 // I am special
    .endm
    .balign 64
.Ldoor_call:
    find_server
.Ltake_server:
    push    qword ptr [rcx + {next}]    // from here on nothing can fail: the list goes on with the next
    mov     [rcx + {caller}], rdx
    mov     [rcx + {door}], r11
    mov     rsp, [rcx + {server_key}]
.Lentered:
    mov     [rdx + {accept}], rsp       // I wait for its return
    mov     qword ptr [rcx + {accept}], {never}
    mov     rsp, [rdx + {shuttle}]      // it runs on my shuttle
    mov     [rcx + {shuttle}], rsp
    mov     rsp, [rcx + {space}]
    cmp     rsp, [rdx + {space}]
    je      1f
    mov     cr3, rsp
1:  mov     rdx, [r11 + {door_datum}]
    mov     [{current}], rcx
    mov     rsp, [rcx + {stack}]
    mov     rcx, [r11 + {door_entry}]
    leave_short
.Lno_door:
    exit_site .Lclear_no_door, .Lnever
    mov     eax, {no_such}
    sysretq
.Lslow_door:
    mov     rsp, rdx
    mov     rdx, [{scratch}]
    mov     r11d, {flags}
    jmp     .Lsaved

// A call that takes more than words in return. It finds its server in the same way. The compare is here, since calls by ipc would be a
// line further behind one more where the others are.
    .balign 64
.Lrare_door:
    cmp     eax, {door_taking_call}
    jne     .Lrarest_door
    find_server
    push    qword ptr [rcx + {next}]    // from here on nothing can fail
    mov     [rcx + {caller}], rdx
    mov     [rcx + {door}], r11
    mov     rsp, [rcx + {server_key}]
    or      rsp, {takes_block}
    or      ah, {words_only} >> 8       // it finds an ordinary call
    jmp     .Lentered

// The return from a call through a door, to the caller that the kernel recorded.
    .balign 64
.Ldoor_return:
    mov     r11, [{current}]
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    mov     rsp, [r11 + {caller}]       // rsp = its hot line
    mov     rcx, [r11 + {server_key}]   // waits for my return? (never, while I am special)
    cmp     [rsp + {accept}], rcx
    jne     .Lother_return
.Lwaited_for:
    mov     rcx, [r11 + {shuttle}]      // is it its shuttle that I carry?
    cmp     [rsp + {shuttle}], rcx
    jne     .Lslow_return
    mov     rdx, [r11 + {pool}]
    mov     rcx, [rdx]
    cmp     ecx, {wanted}               // does anybody wait for a server?
    je      .Lslow_return
    mov     [r11 + {next}], rcx         // from here on nothing can fail: I am the first in the list
    mov     [rdx], r11
    mov     qword ptr [r11 + {accept}], {idle}
    mov     qword ptr [rsp + {accept}], {never}
    mov     rcx, [rsp + {space}]
    cmp     rcx, [r11 + {space}]
    je      1f
    mov     cr3, rcx
1:  mov     [{current}], rsp
    xor     edx, edx
    mov     rcx, [rsp + {rip}]
    mov     rsp, [rsp + {rsp}]
    leave_short
.Lother_return:
    xor     rcx, [rsp + {accept}]       // or for my return, with more than words?
    and     rcx, {not_taking}
    jz      .Lwaited_for
.Lslow_return:
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lsaved
