// Messages with strings (row P3), after all checks of long.s and before its changes.
//
// Rust copies direct words and strings, through a window that is open here, on the own stack below a complete frame: whatever ends that, a
// fault, an interrupt that a long string lets in, or a part that has no place, the slow path finds the call as it came, and how much is done
// (`Tcb::ahead`). r11 is the own hot line, r15 the partner's. If all is there, rsp is the own hot line again, and edx says what is used of
// the block.

.Lstrings:
    test    edi, {strings_used}
    jz      .Lslow_long
    mov     r11d, {flags}
    lea     rsp, [rsp + 8 - {trap_part}]    // below the address to return to, which is on top of the frame
    save_registers
    mov     qword ptr [rsp + {mode}], {sysret}
    mov     qword ptr [rsp + {frame_r15}], 0
    mov     rdi, r15
    mov     rsi, [r15 + {block}]
    mov     rcx, [rsp + {frame} + {space}]
    cmp     rcx, [r15 + {space}]
    je      .Lstrings_shown
    cmp     byte ptr [{tagged}], 0
    jne     .Lstrings_tag
.Lstrings_open:
    mov     rcx, [rsp + {frame} + {slot}]   // open the window
    mov     rsi, [r15 + {entry}]
    mov     [rcx], rsi
    mov     rsi, [r15 + {shown_at}]
.Lstrings_shown:
    call    {on_strings}
    test    al, al
    jz      .Lstrings_left
    mov     rcx, [rsp + {frame} + {slot}]   // and close it: the switch forgets what it showed
    mov     qword ptr [rcx], 0
    mov     edx, [rsp + {frame_rdi}]
    mov     r8, [rsp + {frame_r8}]
    mov     r9, [rsp + {frame_r9}]
    mov     r10, [rsp + {frame_r10}]
    mov     rax, [rsp + {frame_rax}]
    add     rsp, {frame} - 8
    ret
.Lstrings_left:
    call    {on_strings_left}
.Lstrings_tag:
    or      rcx, {window_tag}
    btr     rcx, 63
    mov     cr3, rcx
    jmp     .Lstrings_open
