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

// Loads two pairs of words: those at rsi to rax and rdx, those at rdi to rsi and rdi. rcx: 0; after a fault 1 or 2, the pair that faulted.
    .globl load_two_pairs
load_two_pairs:
    user_access stac
    xor     ecx, ecx
    .globl load_first_pair
load_first_pair:
    mov     rax, [rsi]
    mov     rdx, [rsi + 8]
    .globl load_second_pair
load_second_pair:
    mov     rsi, [rdi]
    mov     rdi, [rdi + 8]
    .globl pairs_end
pairs_end:
    user_access clac
    ret

// Stores rax and rdx at rdi. rcx: 0; after a fault 1.
    .globl store_one_pair
store_one_pair:
    user_access stac
    xor     ecx, ecx
    .globl store_pair_words
store_pair_words:
    mov     [rdi], rax
    mov     [rdi + 8], rdx
    .globl store_pair_end
store_pair_end:
    user_access clac
    ret
