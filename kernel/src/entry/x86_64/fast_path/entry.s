// Compares that find the form, if it is not one of the two most frequent; and calls of Rust, for all that the fast path does not take.
//
// The compares are in the order of the numbers, with those of doors apart, so that none costs more than it has to. They rely on the
// numbers that abi/src/op.rs gives the forms.

// Doors, the null call, and all that is not short ipc.
.Lother:
    cmp     eax, {door_call}
    je      .Ldoor_call
    cmp     eax, {null}
    jne     1f
    sysretq
1:  cmp     al, {ipc_call} & 0xff       // ipc, or none of these?
    jae     .Lother_ipc
    cmp     eax, {door_return}
    je      .Ldoor_return
    ja      .Lforeign_return            // no other number is between that and the null call
    jns     .Lforeign_call              // bit 31 is clear, but for numbers that Rust looks at
    cmp     eax, {door_long_call}       // numbers below this one are no short forms
    jb      .Lno_short_form
    je      .Ldoor_long_call
    cmp     eax, {door_item_call}
    je      .Ldoor_item_call
    jmp     .Lrare_door
.Lother_ipc:
    cmp     eax, {long_taking_call}
    je      .Llong_taking_call
    cmp     eax, {long_call}
    je      .Llong_call
    cmp     eax, {long_reply}
    je      .Llong_reply
    cmp     eax, {item_taking_call}
    je      .Ltaking_call
    cmp     eax, {taking_call}
    je      .Ltaking_call

// Everything else: save the registers as a Frame on the thread's own stack and call Rust, which does not return.
.Lgeneral:
    mov     [{scratch}], rsp
    mov     rsp, [{current}]
    mov     [rsp + {rip}], rcx
    mov     rcx, [{scratch}]
    mov     [rsp + {rsp}], rcx
.Lsaved:
    save_call
    call    {on_system_call}
.Lshort:
    save_call
    call    {on_short_ipc}
.Lcall:
    save_call
    call    {on_short_call}

// The entry with the fast path off.
    .balign 64
    .globl system_call_entry_slow
system_call_entry_slow:
    cmp     eax, {ipc_call}
    jb      .Lgeneral
    mov     [{scratch}], rsp
    mov     rsp, [{current}]
    mov     [rsp + {rip}], rcx
    mov     rcx, [{scratch}]
    mov     [rsp + {rsp}], rcx
    jmp     .Lshort
