// Messages with a block of direct words (row P2), by ipc and through doors.
//
// The partner must have registered memory for the words; for a reply it must also take a block. rdi and rsi are dope and address of the
// block, r15 is lost. The words are copied after all checks and before all changes: a fault in the copy finds everything as it was
// (`copy_fault` in fast_path.rs), and the slow path starts anew. From the copy on rsp is the own control block, so that
// the fault has a stack.

// Start of a long message: r11 becomes the own hot line, r15 the partner's.
    .macro partner
    mov     r11, [{current}]
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    mov     r15d, edx
    and     r15d, {slot_mask}
    add     r15, {hots}
    cmp     [r15 + {uid}], rdx
    jne     .Lslow_long
    .endm
// Copies edi words from rsi to the partner's block. Afterwards rsp is the own hot line and edx the number of words.
    .macro copy_block site
    cmp     edi, [r15 + {fast_below}]   // fits, and nothing but words?
    jae     .Lstrings_\site
    test    rsi, rsi                    // not the kernel's?
    js      .Lslow_long
    mov     edx, edi
    mov     rsp, r11
    mov     r11, [rsp + {slot}]
    mov     rcx, [r15 + {space}]
    cmp     rcx, [rsp + {space}]
    je      .Lown_\site
    cmp     byte ptr [{tagged}], 0
    jne     .Ltag_\site
.Lopen_\site:
    mov     rdi, [r15 + {entry}]        // open the window
    mov     [r11], rdi
    mov     rdi, [r15 + {shown_at}]
.Lcopy_\site:
    user_access stac
    mov     ecx, edx
    .globl \site
\site:
    rep movsq
    mov     qword ptr [r11], 0          // and close it: the switch forgets what it showed
.Lthere_\site:
    .endm
// Other ways to the copy: in Rust, if there are strings (strings.s); within a space, without a window; where a switch forgets nothing,
// under the tag of windows, emptied by its load.
    .macro other_ways site
.Lstrings_\site:
    mov     rsp, r11
    call    .Lstrings
    jmp     .Lthere_\site
.Lown_\site:
    mov     rdi, [r15 + {block}]
    jmp     .Lcopy_\site
.Ltag_\site:
    mov     rcx, [rsp + {space}]
    or      rcx, {window_tag}
    btr     rcx, 63
    mov     cr3, rcx
    jmp     .Lopen_\site
    .endm
// Arrival at the partner: its registers, with the sender's uid, or 0 behind a return through a door. It is the current thread from here on.
    .macro arrive shows_uid=1
    mov     rdi, [r15 + {room}]
    or      rdi, rdx
    mov     rsi, [r15 + {block}]
    .if \shows_uid
    mov     rdx, [rsp + {uid}]
    .else
    xor     edx, edx
    .endif
    mov     rcx, [r15 + {space}]
    cmp     rcx, [rsp + {space}]
    je      1f
    mov     cr3, rcx
1:  mov     [{current}], r15
    mov     rcx, [r15 + {rip}]
    mov     rsp, [r15 + {rsp}]
    xor     r15d, r15d
    leave_short
    .endm

    .macro long_call_to site, takes
    partner
    mov     rcx, [r11 + {open_key}]
    cmp     [r15 + {accept}], rcx
    jne     .Lslow_long
    copy_block \site                    // from here on nothing can fail
    .if \takes
    mov     rcx, [r15 + {answer_key}]
    or      ah, {words_only} >> 8
    .else
    mov     rcx, [r15 + {key}]
    .endif
    mov     [rsp + {accept}], rcx
    mov     qword ptr [r15 + {accept}], {never}
    mov     rcx, [rsp + {shuttle}]
    mov     [r15 + {shuttle}], rcx
    arrive
    other_ways \site
    .endm

    .balign 64
.Llong_call:
    long_call_to copy_of_call, 0
    .balign 64
.Llong_taking_call:
    long_call_to copy_of_taking_call, 1

    .balign 64
.Llong_reply:
    partner
    mov     rcx, [r11 + {answer_key}]   // does it take a block?
    cmp     [r15 + {accept}], rcx
    jne     .Lslow_long
    mov     rcx, [r11 + {shuttle}]
    cmp     [r15 + {shuttle}], rcx
    jne     .Lslow_long
    copy_block copy_of_reply
    mov     rcx, [rsp + {open_key}]     // from here on nothing can fail
    mov     [rsp + {accept}], rcx
    mov     qword ptr [r15 + {accept}], {never}
    arrive
    other_ways copy_of_reply
.Lslow_long:
    xor     r15d, r15d                  // r15 is lost anyway, and must not show the user a kernel address
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lsaved

// A call through a door with a block. The server's line keeps the door while the copy needs the registers.
    .balign 64
.Ldoor_long_call:
    mov     r11, [{current}]
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    movabs  r15, {doors}
    mov     edx, edx
    mov     r15, [r15 + rdx * 8]        // r15 = the door
    test    r15, r15
    jns     .Lslow_long
    test    byte ptr [r11 + {open_key}], 1
    jz      .Lslow_long                 // I am special
    mov     rcx, [r15 + {door_pool}]
    mov     rcx, [rcx - 8]              // rcx = hot line of the first server that waits
    test    rcx, rcx
    jns     .Lslow_long
    mov     [{scratch}], rdx
    mov     [rcx + {door}], r15
    mov     r15, rcx                    // r15 = that server's hot line
    copy_block copy_of_door_call
    mov     rcx, [r15 + {pool}]         // from here on nothing can fail
    mov     rdi, [r15 + {next}]
    mov     [rcx], rdi
    mov     [r15 + {caller}], rsp
    mov     rcx, [r15 + {server_key}]
    mov     [rsp + {accept}], rcx
    mov     qword ptr [r15 + {accept}], {never}
    mov     rcx, [rsp + {shuttle}]
    mov     [r15 + {shuttle}], rcx
    mov     rdi, [r15 + {room}]
    or      rdi, rdx
    mov     rsi, [r15 + {block}]
    mov     rcx, [r15 + {space}]
    cmp     rcx, [rsp + {space}]
    je      1f
    mov     cr3, rcx
1:  mov     [{current}], r15
    mov     r11, [r15 + {door}]
    mov     rdx, [r11 + {door_datum}]
    mov     rcx, [r11 + {door_entry}]
    mov     rsp, [r15 + {stack}]
    xor     r15d, r15d
    leave_short
    other_ways copy_of_door_call

// The return from a call through a door, with a block. The caller that the kernel recorded takes one, and may take an item, too.
    .balign 64
.Lrarest_door:
    cmp     eax, {door_long_return}
    jne     .Lgeneral
    mov     r11, [{current}]
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    mov     r15, [r11 + {caller}]       // r15 = its hot line
    mov     rcx, [r11 + {server_key}]   // waits for my return? (never, while I am special)
    xor     rcx, [r15 + {accept}]
    and     rcx, {not_taking_item}
    cmp     rcx, {takes_block}
    jne     .Lslow_long
    mov     rcx, [r11 + {shuttle}]
    cmp     [r15 + {shuttle}], rcx      // is it its shuttle that I carry?
    jne     .Lslow_long
    mov     rcx, [r11 + {pool}]
    cmp     dword ptr [rcx], {wanted}   // does anybody wait for a server?
    je      .Lslow_long
    mov     [{scratch}], rdx
    copy_block copy_of_door_return
    mov     rcx, [rsp + {pool}]         // from here on nothing can fail: I am the first in the list
    mov     rdi, [rcx]
    mov     [rsp + {next}], rdi
    mov     [rcx], rsp
    mov     qword ptr [rsp + {accept}], {idle}
    mov     qword ptr [r15 + {accept}], {never}
    arrive  0
    other_ways copy_of_door_return
