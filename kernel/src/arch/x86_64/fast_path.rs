//! The fast path of ipc: *call* and *reply and wait* between two threads, from one `syscall` to the other's `sysret`.
//!
//! **When it applies.** Short forms only (no timeout but 0 and forever, no map item, no window). The partner exists,
//! has exactly this uid, and waits for the sender: openly in the same clan, or for this thread alone; both are on this
//! CPU and neither is special (stopped, traced, FPU or ports switched on, FS base, interrupt pending, senders queued
//! behind a reply). All of that is three compares, since it is folded into the words of
//! [`Hot`](crate::object::thread::Hot): uid; `accept` against the sender's key; and, for a reply, that the shuttle it
//! gives back is the one that the partner lent. Whatever fails goes to the slow path with all arguments intact.
//!
//! **Registers.** In: `rax` operation and label, `rdx` partner, `rcx` user instruction pointer, `rsp` user stack; eleven
//! message words in `rdi rsi r8 r9 r10 r12 r13 r14 rbx rbp r15`. Out: the same words and `rax` in the partner, `rdx`
//! the sender's uid. `r11` and flags come back as 0x202. Scratch: `rcx`, `r11`, and `rsp` itself, which becomes the
//! partner's control block: no stack is used, and none is needed, since nothing here can fault. NMI, #DB, #DF and
//! #MC have stacks of their own.
//!
//! **More than words in answer.** Only who says so takes that: a call whose answer may bring it has a form of its own, and leaves in
//! `accept` that a reply with a block may come ([`TAKING`]). So no block is written to in the middle of what its owner does with it.
//!
//! **Long messages.** The same forms with a block of direct words only, at most [`FAST_WORDS_MAX`], to a partner that has
//! registered room for them, and takes it if it is a reply. `rdi` and `rsi` are dope and address of the block, `r15` is lost. The words are copied after
//! all checks and before all changes: a fault in the copy finds everything as it was ([`copy_fault`]), and the slow
//! path starts anew. From the copy on `rsp` is the own control block, so that the fault has a stack.
//!
//! **Doors.** A call through a door takes the first of the servers that wait, of which all are plain; a return goes to the caller that
//! the server was taken for, if that waits for it, and puts the server back. `rdx` is the identifier, then the datum; a server
//! has the stack of its own every time, and keeps nothing in its control block. No wait of a door's is the wait
//! of an ipc, by the low bits of `accept`.
//!
//! **Memory.** Two lines of code each way, the hot line of each partner, and the per-CPU line of the
//! current pointer, which is also TSS.RSP0. No lock, no MSR, no swapgs. Intel SDM volume 2: SYSCALL, SYSRET.
//!
//! *If this path accepts, `ipc::short` would have done the same*: the guest tests compare them on random programs.

use super::cpu::CR0_WRITE_PROTECT;
use super::instructions::{read_cr0, write_cr0};
use super::per_cpu::{self, CURRENT, USER_CODE, USER_DATA};
use crate::layout;
use crate::object::block::Block;
use crate::object::door::{Doors, NEAR, NO_DOOR, Servers};
use crate::object::mapping::{Node, Slab};
use crate::object::task::Task;
use crate::object::thread::{Frame, Hot, IDLE, NEVER, Server, TAKES_BLOCK, TAKING, Tcb};
#[cfg(doc)]
use crate::param::FAST_WORDS_MAX;
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_LONG_CALL, DOOR_RETURN, DOOR_TAKING_CALL, FLAGS, FLUSH_SELF, IPC_CALL,
    IPC_ITEM_TAKING_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_LONG_TAKING_CALL, IPC_TAKING_CALL, NULL,
};
use abi::op;
use abi::uid::SLOT_MASK;
use abi::{Call, Fpage, Rights};
use core::arch::global_asm;
use core::mem::{offset_of, size_of};

/// Where a system call without a register to spare puts the user's stack pointer for two instructions.
const SCRATCH: u64 = per_cpu::FREE;

/// Byte in the per-CPU page that says whether address spaces are tagged, so that a switch forgets nothing.
pub const TAGGED: u64 = per_cpu::FREE + 8;

/// Word in the per-CPU page with a selector that can be written, for the instruction that clears buffers.
const SELECTOR: u64 = per_cpu::FREE + 10;

/// Where the entry and exit under page-table isolation keep `rax`, in the per-CPU page.
const SAVED: u64 = per_cpu::FREE + 16;

/// Where the entry under page-table isolation finds what to load into CR3.
const KERNEL_SPACE: u64 = per_cpu::FREE + 24;

/// The flag of RFLAGS with which interrupts are taken.
const INTERRUPTS: u64 = 1 << 9;

/// From the array of control blocks to the hot line of slot 0.
const HOTS: u64 = layout::TCBS + Tcb::HOT_OFFSET as u64;

/// From a hot line to the thread's line as a server.
const SERVER: i64 = Tcb::SERVER_FROM_HOT;

/// What number a flexpage of doors begins with stands above this bit.
const NUMBER_SHIFT: u32 = 12;

/// What of a flexpage, rights apart, says that it is one of the first identifiers.
const NEAR_MASK: i64 = (!((NEAR << NUMBER_SHIFT) - 1) | Fpage::SPACE_AND_SIZE) as i64;

/// From a hot line to the Frame, where registers are kept.
const KEPT: i64 = -(size_of::<Frame>() as i64);

unsafe extern "C" {
    /// Entry of `syscall` with the fast path on.
    pub fn system_call_entry();
    /// Entry of `syscall` with the fast path off.
    pub fn system_call_entry_slow();
    /// Entry of `syscall` under page-table isolation; the fast path is off.
    pub fn system_call_entry_isolated();
    /// Leaves the kernel with the thread whose hot line this is.
    pub fn leave_kernel(next: *const Hot) -> !;
    fn leave_checked();
    /// Copies `rcx` bytes from `rsi` to `rdi`; see `user_copy.rs`.
    pub fn copy_bytes();
    /// The same with interrupts let in.
    pub fn copy_openly();
    fn copy_words();
    fn copy_open_words();
    fn copy_open_end();
    fn copy_rest();
    fn copy_ended();
    fn copy_of_call();
    fn copy_of_taking_call();
    fn copy_of_reply();
    fn copy_of_door_call();
}

global_asm!(
    r#"
// The part of a Frame from rcx down, and back again up to r11.
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
// Where the kernel is left, and what goes there instead where processors leak: see rewrite_exits.
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
// stac or clac; nothing where the processor has neither: see without_smap.
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
// The rest of a Frame of a system call, whose instruction and stack pointers are saved; rsp is the hot line.
    .macro save_call
    lea     rsp, [rsp - {trap_part}]
    save_registers
    mov     qword ptr [rsp + {mode}], {sysret}
    .endm

// A short form leaves user mode: r11 is the own hot line, rsp that of the thread in rdx.
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

// Call whose answer may bring more than words: the same, but for what the caller waits for.
    .balign 64
.Ltaking_call:
    find_open_partner .Lslow_taking
    mov     ecx, eax                    // from here on nothing can fail: what I take is in what I wait for
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
    cmp     eax, {door_long_call}       // no number that is none of these is above this one
    jb      .Lno_short_form
    je      .Ldoor_long_call
    cmp     eax, {door_item_call}
    je      .Ldoor_item_call
    cmp     eax, {door_taking_call}
    je      .Ldoor_taking_call
    jmp     .Lgeneral
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

// Everything else: save the registers as a Frame on the thread's own stack and let Rust decide, which does not return.
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

// Long messages. r11 is the own hot line, r15 the partner's.
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
// edi words from rsi to the partner's block. Afterwards rsp is the own hot line and edx the number of words.
    .macro copy_block site
    cmp     edi, [r15 + {fast_below}]   // fits, and nothing but words?
    jae     .Lslow_long
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
    mov     rdi, [r15 + {window}]
.Lcopy_\site:
    user_access stac
    mov     ecx, edx
    .globl \site
\site:
    rep movsq
    mov     qword ptr [r11], 0          // and close it: the switch forgets what it showed
    .endm
// Within a space there is no window. Where the switch forgets nothing: the tag of windows first, which the load empties.
    .macro other_ways site
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
// What the partner finds; it is the current thread from here on.
    .macro arrive
    mov     rdi, [r15 + {room}]
    or      rdi, rdx
    mov     rsi, [r15 + {block}]
    mov     rdx, [rsp + {uid}]
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
    xor     r15d, r15d                  // it is lost anyway, and what is there is the kernel's
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lsaved

// A call through a door with a block. What the door is stands with the server while the copy needs the registers.
    .balign 64
.Ldoor_long_call:
    mov     r11, [{current}]
    mov     [r11 + {rip}], rcx
    mov     [r11 + {rsp}], rsp
    movabs  r15, {doors}
    mov     edx, edx
    mov     r15, [r15 + rdx * 8]        // r15 = what the door is
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
    mov     r15, rcx                    // r15 = it
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

// A call through a door: edx is an identifier, that is an index into words of which each is there.
    .macro find_server
    movabs  r11, {doors}
    mov     edx, edx
    mov     r11, [r11 + rdx * 8]        // r11 = what the door is; or my flags, if there is none
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

// The same where the return may bring more than words.
    .balign 64
.Ldoor_taking_call:
    find_server
    push    qword ptr [rcx + {next}]    // from here on nothing can fail
    mov     [rcx + {caller}], rdx
    mov     [rcx + {door}], r11
    mov     rsp, [rcx + {server_key}]
    or      rsp, {takes_block}
    or      ah, {words_only} >> 8       // it finds an ordinary call
    jmp     .Lentered

// The return from such a call, to the caller that the kernel recorded.
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
    xor     rcx, [rsp + {accept}]       // or for my return with more than words?
    and     rcx, {not_taking}
    jz      .Lwaited_for
.Lslow_return:
    mov     rsp, r11
    mov     r11d, {flags}
    jmp     .Lsaved

// Copies rcx bytes from rsi to rdi, either of which may be a user's. rax: bytes left. If there are any, rdx is the
// address that faulted and r8 the error code of the fault.
    .globl copy_bytes
copy_bytes:
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

// The same with interrupts let in. One that comes in the middle does not return here: see interrupted_copy.
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

// Leave the kernel with the thread whose hot line is in rdi.
    .globl leave_kernel
leave_kernel:
    lea     rsp, [rdi - {frame}]        // of five bytes or more: see check_exits
.Lleave:
    mov     rcx, [rsp + {mode}]
    test    rcx, rcx
    jnz     .Ltrapped
    load_registers
    mov     rcx, [rsp + {from_rcx} + {rip}]
    exit_site .Lclear_call, .Lisolate_call
    mov     rsp, [rsp + {from_rcx} + {rsp}]
    sysretq
.Ltrapped:
    js      .Lnot_yet
    load_registers
    pop     rcx
    exit_site .Lclear_trap, .Lisolate_trap
    add     rsp, 16                     // mode and error code
    iretq

// The same with the processor's buffers cleared. Nothing of the kernel's is loaded after it but the user's own registers.
    .balign 32                          // one line, as for the exit that it stands for
.Lclear_short:
    verw    word ptr [{selector}]
    mov     r11d, {flags}
    sysretq
.Lclear_no_door:
    verw    word ptr [{selector}]
    mov     eax, {no_such}
    sysretq
.Lclear_call:
    verw    word ptr [{selector}]
    mov     rsp, [rsp + {from_rcx} + {rsp}]
    sysretq
.Lclear_trap:
    verw    word ptr [{selector}]
    add     rsp, 16
    iretq

// --- Page-table isolation: users run on tables that show next to nothing of the kernel half. The kernel's own are loaded first
// on each way in, and the user's last on each way out. Between the two there is no stack but the one in the per-CPU page,
// and no register to spare but the stack pointer.

    .globl system_call_entry_isolated
system_call_entry_isolated:
    mov     [{scratch}], rsp
    mov     rsp, [{kernel_space}]
    mov     cr3, rsp
    mov     rsp, [{scratch}]
    jmp     system_call_entry_slow

// What the next way in will load, and in rax what the user's tables are. rsp is lost.
    .macro find_spaces
    mov     rax, [{current}]
    mov     rsp, [rax + {space}]
    mov     [{kernel_space}], rsp
    mov     rsp, [rax + {task}]
    mov     rax, [rsp + {user_space}]
    .endm
.Lisolate_call:
    mov     [{saved}], rax
    find_spaces
    mov     rsp, [{current}]
    mov     rsp, [rsp + {rsp}]
    mov     cr3, rax
    mov     rax, [{saved}]
    verw    word ptr [{selector}]
    sysretq
.Lisolate_trap:
    mov     [{saved}], rax
    add     rsp, 16
    pop     qword ptr [{trap_stack} - 40]
    pop     qword ptr [{trap_stack} - 32]
    pop     qword ptr [{trap_stack} - 24]
    pop     qword ptr [{trap_stack} - 16]
    pop     qword ptr [{trap_stack} - 8]
    find_spaces
    mov     rsp, {trap_stack} - 40
    mov     cr3, rax
    mov     rax, [{saved}]
    verw    word ptr [{selector}]
    iretq
// The fast path is not entered where this could be reached.
.Lnever:
    ud2

// Idle, or in the middle of a long operation. Interrupts come below the saved frame; their handler does not return here
// but leaves the kernel anew.
.Lnot_yet:
    cmp     cl, {idle_mode}
    je      .Lidle
    sti
    nop
    cli
    call    {on_continue}
.Lidle:
    sti
    hlt
    jmp     .Lidle

// Exceptions and interrupts: a stub for each vector completes the processor's frame to a Frame.
    .macro enter_trap
    save_registers
    cld
    user_access clac
    mov     rdi, rsp
    .endm

    .section .text.traps, "ax"
interrupt_common:
    enter_trap
    call    {on_interrupt}
exception_common:
    enter_trap
    call    {on_exception}
.Lback:
    // Back to where it came from, which was the kernel.
    load_registers
    pop     rcx
    add     rsp, 16
    iretq

// Page faults have an entry of their own: they are ipc, and come almost as often.
page_fault_entry:
    push    {trap} + 14
page_fault_common:
    enter_trap
    call    {on_page_fault}
    jmp     .Lback

    .altmacro
    .macro trap_stub vector
    .balign 16
trap_stub_\vector:
    .if (\vector != 8) && (\vector != 10) && (\vector != 11) && (\vector != 12) && (\vector != 13) && (\vector != 14) && (\vector != 17) && (\vector != 21) && (\vector != 29) && (\vector != 30)
    push    0
    .endif
    push    {trap} + \vector
    .if \vector < {exceptions}
    jmp     exception_common
    .else
    jmp     interrupt_common
    .endif
    .endm
    .set i, 0
    .rept 256
    trap_stub %i
    .set i, i + 1
    .endr

    .section .text_isolated, "ax"
// What leave_kernel begins with where the kernel checks itself first, on a stack of its own.
    .globl leave_checked
leave_checked:
    lea     rsp, [rip + {check_stack}]
    add     rsp, {check_stack_size}
    push    rdi
    push    rbp
    mov     rbp, rsp
    call    {on_checked_exit}
    pop     rbp
    pop     rdi
    lea     rsp, [rdi - {frame}]
    jmp     .Lleave

// The same under page-table isolation. All vectors come on stacks in the per-CPU page, from user mode on the user's tables.
// What the processor pushed there and the stub's two words go to where they would be without isolation.
    .macro move_frame common
    pop     qword ptr [rax - 56]
    pop     qword ptr [rax - 48]
    pop     qword ptr [rax - 40]
    pop     qword ptr [rax - 32]
    pop     qword ptr [rax - 24]
    pop     qword ptr [rax - 16]
    pop     qword ptr [rax - 8]
    lea     rsp, [rax - 56]
    mov     rax, [{saved}]
    jmp     \common
    .endm
    .macro enter_isolated name, common
\name:
    mov     [{saved}], rax
    test    byte ptr [rsp + 24], 3
    jz      1f
    mov     rax, [{kernel_space}]
    mov     cr3, rax
    mov     rax, [{current}]
    jmp     2f
1:  mov     rax, [rsp + 40]             // from the kernel: below what it has on its stack
    and     rax, -16
2:  move_frame \common
    .endm
    enter_isolated isolated_interrupt, interrupt_common
    enter_isolated isolated_exception, exception_common
    enter_isolated isolated_page_fault, page_fault_common

// A debug exception that a user's instruction delayed into the kernel may come before the entry has loaded CR3.
isolated_debug:
    test    byte ptr [rsp + 24], 3
    jnz     isolated_exception
    push    rax
    mov     eax, {debug_nothing}
    mov     dr6, rax
    pop     rax
    add     rsp, 16
    iretq
// Double fault and machine check end everything, whatever was loaded.
isolated_fatal:
    mov     [{saved}], rax
    mov     rax, [{kernel_space}]
    mov     cr3, rax
    lea     rax, [rip + {exception_stack}]
    add     rax, {exception_stack_size}
    move_frame exception_common

    .macro isolated_stub vector
    .balign 16
isolated_stub_\vector:
    .if \vector == 2                    // an NMI has no owner
    iretq
    .endif
    .if (\vector != 8) && (\vector != 10) && (\vector != 11) && (\vector != 12) && (\vector != 13) && (\vector != 14) && (\vector != 17) && (\vector != 21) && (\vector != 29) && (\vector != 30)
    push    0
    .endif
    push    {trap} + \vector
    .if \vector == 1
    jmp     isolated_debug
    .elseif (\vector == 8) || (\vector == 18)
    jmp     isolated_fatal
    .elseif \vector == 14
    jmp     isolated_page_fault
    .elseif \vector < {exceptions}
    jmp     isolated_exception
    .else
    jmp     isolated_interrupt
    .endif
    .endm
    .set i, 0
    .rept 256
    isolated_stub %i
    .set i, i + 1
    .endr

    .section .rodata.traps, "a"
    .balign 8
    .globl ISOLATED_STUBS
ISOLATED_STUBS:
    .macro isolated_entry vector
    .quad   isolated_stub_\vector
    .endm
    .set i, 0
    .rept 256
    isolated_entry %i
    .set i, i + 1
    .endr
    .globl TRAP_STUBS
TRAP_STUBS:
    .macro trap_entry vector
    .if \vector == 14
    .quad   page_fault_entry
    .else
    .quad   trap_stub_\vector
    .endif
    .endm
    .set i, 0
    .rept 256
    trap_entry %i
    .set i, i + 1
    .endr
    .noaltmacro
    .text
    "#,
    include_str!("identifiers.s"),
    r#"
// Behind everything that adds to the tables.
    .section .rodata.exits, "a"
    .globl EXITS_END
EXITS_END:
    .section .rodata.accesses, "a"
    .globl ACCESSES_END
ACCESSES_END:
    .text
    "#,
    ipc_call = const IPC_CALL as i32,
    null = const NULL as i32,
    door_call = const DOOR_CALL as i32,
    door_return = const DOOR_RETURN as i32,
    door_long_call = const DOOR_LONG_CALL as i32,
    door_item_call = const DOOR_ITEM_CALL as i32,
    door_taking_call = const DOOR_TAKING_CALL as i32,
    flush = const Call::Flush as u32 as i32,
    flush_self = const FLUSH_SELF as i32,
    identifier = const Fpage::doors(0, 0, Rights::NONE).0,
    near_mask = const NEAR_MASK,
    call_right = const Rights::R.0,
    grant = const Rights::GRANT.0,
    rights = const Rights::RWX.0,
    hand_on_bit = const Rights::W.0.trailing_zeros(),
    number_shift = const NUMBER_SHIFT,
    standing = const Tcb::STANDING_FROM_HOT,
    near_words = const offset_of!(Task, doors) + Doors::NEAR_WORDS,
    near_nodes = const offset_of!(Task, doors) + Doors::NEAR_NODES,
    slabs = const offset_of!(Task, slabs),
    slab_free = const Slab::FREE,
    slab_used = const Slab::USED,
    slab_nodes = const Slab::NODES,
    node_next = const Node::NEXT,
    node_prev = const Node::PREV,
    node_slab = const Node::SLAB,
    node_entry = const Node::ENTRY,
    node_slot = const Node::SLOT,
    node_address = const Node::ADDRESS,
    node_kind = const Node::KIND,
    node_door = const Node::DOOR,
    identifier_kind = const Node::IDENTIFIER_KIND,
    kept_rax = const KEPT + offset_of!(Frame, rax) as i64,
    kept_rdx = const KEPT + offset_of!(Frame, rdx) as i64,
    kept_rbx = const KEPT + (offset_of!(Frame, w) + 8 * Frame::RBX) as i64,
    kept_rbp = const KEPT + (offset_of!(Frame, w) + 8 * Frame::RBP) as i64,
    kept_r15 = const KEPT + (offset_of!(Frame, w) + 8 * Frame::R15) as i64,
    doors = const layout::DOORS,
    door_entry = const Node::DOOR_ENTRY,
    door_datum = const Node::DOOR_DATUM,
    door_pool = const Node::DOOR_POOL,
    next = const SERVER + offset_of!(Server, next) as i64,
    caller = const SERVER + offset_of!(Server, caller) as i64,
    door = const SERVER + offset_of!(Server, door) as i64,
    server_key = const SERVER + offset_of!(Server, key) as i64,
    stack = const SERVER + offset_of!(Server, stack) as i64,
    pool = const SERVER + offset_of!(Server, pool) as i64,
    wanted = const Servers::WANTED,
    idle = const IDLE as i32,
    no_such = const abi::Error::NoSuch as u32,
    long_call = const IPC_LONG_CALL as i32,
    long_reply = const IPC_LONG_REPLY_WAIT as i32,
    taking_call = const IPC_TAKING_CALL as i32,
    long_taking_call = const IPC_LONG_TAKING_CALL as i32,
    item_taking_call = const IPC_ITEM_TAKING_CALL as i32,
    taking = const TAKING,
    not_taking = const !TAKING as i64,
    takes_block = const TAKES_BLOCK,
    words_only = const op::TAKES,
    fast_below = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, fast_below) as i64,
    block = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, address) as i64,
    room = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, room) as i64,
    window = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, window) as i64,
    entry = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, entry) as i64,
    answer_key = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, answer_key) as i64,
    slot = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, slot) as i64,
    tagged = const TAGGED as i64,
    window_tag = const super::space::WINDOW_TAG,
    current = const CURRENT as i64,
    scratch = const SCRATCH as i64,
    selector = const SELECTOR as i64,
    saved = const SAVED as i64,
    kernel_space = const KERNEL_SPACE as i64,
    trap_stack = const per_cpu::STACKS[0] as i64,
    task = const Tcb::TASK_FROM_HOT,
    user_space = const offset_of!(Task, user_space),
    debug_nothing = const super::debug::STATUS_ONES,
    exception_stack = sym super::tables::EXCEPTION_STACKS,
    exception_stack_size = const super::tables::EXCEPTION_STACK_BYTES,
    check_stack = sym super::checked::STACK,
    check_stack_size = const super::checked::STACK_BYTES,
    on_checked_exit = sym super::checked::on_exit,
    hots = const HOTS as i64 as i32,
    slot_mask = const SLOT_MASK as i32,
    uid = const offset_of!(Hot, uid),
    accept = const offset_of!(Hot, accept),
    key = const offset_of!(Hot, key),
    open_key = const offset_of!(Hot, open_key),
    rip = const offset_of!(Hot, rip),
    rsp = const offset_of!(Hot, rsp),
    space = const offset_of!(Hot, space),
    shuttle = const offset_of!(Hot, shuttle),
    never = const NEVER,
    flags = const FLAGS,
    frame = const size_of::<Frame>(),
    mode = const offset_of!(Frame, mode),
    trap_part = const size_of::<Frame>() - offset_of!(Frame, mode),
    from_rcx = const size_of::<Frame>() - offset_of!(Frame, rcx),
    sysret = const Frame::SYSRET,
    trap = const Frame::TRAP,
    idle_mode = const Frame::IDLE as u8,
    on_system_call = sym super::trap::on_system_call,
    on_short_ipc = sym super::trap::on_short_ipc,
    on_short_call = sym super::trap::on_short_call,
    on_continue = sym super::trap::on_continue,
    exceptions = const super::trap::vector::EXCEPTIONS,
    on_exception = sym super::trap::on_exception,
    on_interrupt = sym super::trap::on_interrupt,
    on_page_fault = sym super::trap::on_page_fault,
);

const _: () = assert!(offset_of!(Tcb, hot) - offset_of!(Tcb, frame) == size_of::<Frame>());
const _: () = assert!(CURRENT as i64 as i32 as i64 == CURRENT as i64, "reached by a 32-bit displacement");
const _: () = assert!(HOTS as i64 as i32 as i64 == HOTS as i64, "added as a 32-bit constant");
const _: () =
    assert!(offset_of!(Servers, odd) == offset_of!(Servers, idle) + 8, "a door leads behind the list");
const _: () = assert!(NO_DOOR == FLAGS, "what no door is, is left in r11");
const _: () = assert!(USER_CODE == 0x2b && USER_DATA == 0x23);

/// What is to be done at each exit from the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AtExit {
    /// VERW, which clears the buffers from which some processors leak.
    ClearBuffers,
    /// The user's own tables are loaded, and VERW too.
    Isolate,
}

/// A way out of the kernel, and its twins; as distances from the table.
#[repr(C)]
struct Exit {
    site: i32,
    clearing: i32,
    isolating: i32,
}

/// What the first way in under page-table isolation loads.
pub fn set_kernel_space(space: u64) {
    // SAFETY: a word of the per-CPU page that boot leaves to the kernel.
    unsafe { (KERNEL_SPACE as *mut u64).write(space) };
}

/// From now on more is done at each exit: each way out becomes a jump to its twin. So processors that do not leak pay nothing,
/// not even a test. Once, before the first user runs.
pub fn rewrite_exits(how: AtExit) {
    unsafe extern "C" {
        static EXITS: [Exit; 0];
        static EXITS_END: u8;
    }
    let table = &raw const EXITS;
    // SAFETY: the assembly lays the table out, with `EXITS_END` behind it.
    let exits = unsafe { table_of(table.cast::<Exit>(), &raw const EXITS_END) };
    // SAFETY: a word of the per-CPU page that boot leaves to the kernel.
    unsafe { (SELECTOR as *mut u16).write(USER_DATA) };
    // SAFETY: sites begin with instructions of five bytes or more, which the jump's target repeats.
    unsafe {
        write_text(exits.iter().map(|exit| {
            let twin = if how == AtExit::Isolate { exit.isolating } else { exit.clearing };
            (table.cast::<u8>().wrapping_offset(exit.site as isize).cast_mut(), jump(twin - exit.site))
        }));
    }
}

/// From now on the kernel checks itself whenever [`leave_kernel`] is called: its first instruction becomes a jump, so that otherwise there
/// is not even a test. Once, before the first user runs.
pub fn check_exits() {
    let (site, twin) = (leave_kernel as *const () as u64, leave_checked as *const () as u64);
    let jump = jump((twin as i64 - site as i64) as i32);
    // SAFETY: the first instruction is longer than a jump, and `leave_checked` repeats it.
    unsafe { write_text([(site as *mut u8, jump)].into_iter()) };
}

/// A jump over so many bytes, from where it is.
fn jump(distance: i32) -> [u8; 5] {
    const JUMP: u8 = 0xe9;
    let [a, b, c, d] = (distance - 5).to_le_bytes();
    [JUMP, a, b, c, d]
}

/// The processor has no SMAP: what says that users' memory may be touched, or may not, becomes an instruction that does nothing.
/// Once, before the processor knows of traps.
pub fn without_smap() {
    const NOTHING: [u8; 3] = [0x0f, 0x1f, 0x00];
    unsafe extern "C" {
        static ACCESSES: [i32; 0];
        static ACCESSES_END: u8;
    }
    let table = &raw const ACCESSES;
    // SAFETY: the assembly lays the table out, with `ACCESSES_END` behind it.
    let sites = unsafe { table_of(table.cast::<i32>(), &raw const ACCESSES_END) };
    // SAFETY: at each site is one instruction of three bytes.
    unsafe {
        let place = |site: &i32| table.cast::<u8>().wrapping_offset(*site as isize).cast_mut();
        write_text(sites.iter().map(|site| (place(site), NOTHING)));
    }
}

/// A table that the assembly laid out.
///
/// # Safety
///
/// It is one of such entries, and ends there.
unsafe fn table_of<T>(first: *const T, end: *const u8) -> &'static [T] {
    let count = (end as usize - first as usize) / size_of::<T>();
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(first, count) }
}

/// Writes to the kernel's text.
///
/// # Safety
///
/// Whole instructions are replaced, one processor runs, and interrupts are off.
unsafe fn write_text<const N: usize>(sites: impl Iterator<Item = (*mut u8, [u8; N])>) {
    let cr0 = read_cr0();
    // SAFETY: the kernel's text can be written until the register is back.
    unsafe { write_cr0(cr0 & !CR0_WRITE_PROTECT) };
    for (site, bytes) in sites {
        // SAFETY: the caller's promise.
        unsafe { site.cast::<[u8; N]>().write(bytes) };
    }
    // SAFETY: the value it had; the write also makes the processor fetch what was changed anew.
    unsafe { write_cr0(cr0) };
}

/// What to do about a fault that interrupted kernel code.
pub enum Recovery {
    /// Nothing is known about it.
    None,
    /// `frame` now leads to the end of the copy.
    Return,
    /// `frame` is now that of a system call of the current thread, which the slow path is to do.
    Slow,
}

/// A fault in a copy, at `address`: makes the end of the copy out of it.
pub fn copy_fault(frame: &Frame, address: u64) -> Recovery {
    let at = |site: unsafe extern "C" fn()| frame.rip.get() == site as *const () as u64;
    if at(copy_words) || at(copy_open_words) || at(copy_rest) {
        let bytes = if at(copy_rest) { frame.rcx.get() } else { bytes_left(frame) };
        frame.rflags.set(frame.rflags.get() & !INTERRUPTS);
        frame.rax.set(bytes);
        frame.rdx.set(address);
        frame.w[Frame::R8].set(frame.error.get());
        frame.rip.set(copy_ended as *const () as u64);
        return Recovery::Return;
    }
    if at(copy_of_call) || at(copy_of_taking_call) || at(copy_of_reply) {
        restore_call(frame, None);
        return Recovery::Slow;
    }
    if at(copy_of_door_call) {
        // SAFETY: where the fast path has put it, and nothing has been since.
        let identifier = unsafe { (SCRATCH as *const u64).read() };
        restore_call(frame, Some(identifier));
        return Recovery::Slow;
    }
    Recovery::None
}

/// Of a copy that is at its words.
fn bytes_left(frame: &Frame) -> u64 {
    frame.rcx.get() * 8 + frame.rdx.get()
}

/// If an interrupt came in the middle of a copy that lets them in, how many bytes are left.
pub fn interrupted_copy(frame: &Frame) -> Option<u64> {
    let open = copy_open_words as *const () as u64..=copy_open_end as *const () as u64;
    open.contains(&frame.rip.get()).then(|| bytes_left(frame))
}

/// The fast path faulted: its registers as the user gave them. The window closes. `identifier`: of a door; otherwise the partner is
/// named by its uid.
fn restore_call(frame: &Frame, identifier: Option<u64>) {
    let current = crate::arch::current();
    let (words, left) = (frame.rdx.get(), frame.rcx.get());
    // SAFETY: both are what the fast path had in these registers: the partner's hot line, and the own window's slot.
    let partner = unsafe { &*(frame.w[Frame::R15].get() as *const Hot) };
    super::copy::close_window(super::kernel(), current.task());
    frame.w[Frame::RDI].set(words);
    frame.w[Frame::RSI].set(frame.w[Frame::RSI].get() - 8 * (words - left));
    frame.w[Frame::R15].set(0);
    frame.rdx.set(identifier.unwrap_or(partner.uid.get()));
    frame.r11.set(FLAGS);
    frame.mode.set(Frame::SYSRET);
}
