// Copies from and to users' memory, for Rust: see user_copy.rs.

// Copies rcx bytes from rsi to rdi, either of which may be a user's. rax: bytes left. If there are any, rdx is the
// address that faulted and r8 the error code of the fault.
    .globl copy_closed
copy_closed:
    user_access stac
    mov     rdx, rcx
    shr     rcx, 3
    and     edx, 7
    .globl copy_words
copy_words:
    rep movsq
    mov     ecx, edx
    .globl copy_rest
copy_rest:
    rep movsb
    xor     eax, eax
    .globl copy_ended
copy_ended:
    user_access clac
    ret

// Copies as copy_closed does, but with interrupts let in. One that comes in the middle does not return here: see user_copy::interrupted.
    .globl copy_openly
copy_openly:
    user_access stac
    mov     rdx, rcx
    shr     rcx, 3
    and     edx, 7
    sti
    .globl copy_open_words
copy_open_words:
    rep movsq
    .globl copy_open_end
copy_open_end:
    cli
    mov     ecx, edx
    jmp     copy_rest
