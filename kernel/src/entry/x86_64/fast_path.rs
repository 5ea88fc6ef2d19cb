//! The fast path of ipc: *call* and *reply and wait* between two threads, from one `syscall` to the other's `sysret`.
//!
//! **When it applies.** Short forms only (no timeout but 0 and forever, no item, no window of its own). The partner exists,
//! has exactly this uid, and waits for the sender: openly in the same clan, or for this thread alone; both are on this
//! CPU and neither is special (stopped, traced, FPU or ports switched on, FS base, interrupt pending, senders queued
//! behind a reply). All of that is three compares, since it is folded into the words of
//! [`Hot`](crate::object::thread::Hot): uid; `accept` against the sender's key; and, for a reply, that the shuttle it
//! gives back is the one that the partner lent. If a compare fails, the slow path gets the call with all arguments intact.
//!
//! **Registers.** In: `rax` operation and label, `rdx` partner, `rcx` user instruction pointer, `rsp` user stack; eleven
//! message words in `rdi rsi r8 r9 r10 r12 r13 r14 rbx rbp r15`. Out: the same words and `rax` in the partner, `rdx`
//! the sender's uid. `r11` and flags come back as 0x202. Scratch: `rcx`, `r11`, and `rsp` itself, which becomes the
//! partner's control block: no stack is used, and none is needed, since nothing here can fault. NMI, #DB, #DF and
//! #MC have stacks of their own.
//!
//! **Memory.** Two lines of code each way, the hot line of each partner, and the per-CPU line of the
//! current pointer, which is also TSS.RSP0. No lock, no MSR, no swapgs. Intel SDM volume 2: SYSCALL, SYSRET.
//!
//! *If this path accepts, `ipc::send::short` would have done the same*: the guest tests compare them on random programs.
//!
//! **Files.** One assembly file for each mechanism, in `fast_path/`; here are the offsets that they use, and the recovery from a fault
//! in one of their copies. Each form is there for the users that a row of `./tern bench` stands for:
//!
//! | file | mechanism | rows that pay for it |
//! |---|---|---|
//! | `short.s` | call, reply and wait; a call that takes more in answer | `ipc.rt.*`; `map.page.rt` |
//! | `entry.s` | compares that find the other forms; calls of Rust | `null.syscall`; all that is slow |
//! | `long.s` | messages with a block of direct words, by ipc and by doors | `ipc.rt.inter.w16` … `w120`, `door.vanilla.*` |
//! | `strings.s` | messages with strings, which Rust copies | `ipc.string.*`, `idl.length.rt` |
//! | `door.s` | calls through doors and returns | `door.rt.*`, `door.chain4` |
//! | `foreign.s` | calls of another system, and the return from them | `redirect.rt` |
//! | `identifiers.s` | identifiers that are handed over in a call, and those that are flushed | `door.pass1` |
//! | `copy.s` | copies for Rust | copies of a page and more |
//! | `exit.s`, `isolated.s`, `traps.s` | exits from the kernel, page-table isolation, vectors | `fault.pager`, `ipc.rt.inter.w0.pti` |

use crate::arch::cpu::{self, AtExit, CR0_WRITE_PROTECT};
use crate::arch::frame::{USER_CODE, USER_DATA};
use crate::arch::instructions::{read_cr0, write_cr0};
use crate::arch::per_cpu::{self, CURRENT};
use crate::arch::{debug, paging, tables, user_copy};
use crate::mem::doors::NEAR;
use crate::object::block::Block;
use crate::object::door::{Doors, NO_DOOR, Servers};
use crate::object::mapping::{Node, Slab};
use crate::object::task::Task;
use crate::object::thread::{
    FOREIGN_MARK, Foreign, Frame, Hot, IDLE, NEVER, Server, TAKES_BLOCK, TAKES_ITEM, TAKING, Tcb,
};
#[cfg(doc)]
use crate::param::FAST_WORDS_MAX;
use crate::{global, layout, processor};
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_LONG_CALL, DOOR_LONG_RETURN, DOOR_RETURN, DOOR_TAKING_CALL, FLAGS,
    FLUSH_SELF, IPC_CALL, IPC_ITEM_TAKING_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_LONG_TAKING_CALL,
    IPC_TAKING_CALL, NULL,
};
use abi::op;
use abi::uid::SLOT_MASK;
use abi::{Call, Dope, Fpage, Rights};
use core::arch::global_asm;
use core::mem::{offset_of, size_of};

/// Word in the per-CPU page for a system call without a register to spare, as for the user's stack pointer on the way in.
const SCRATCH: u64 = per_cpu::FREE;

/// Byte in the per-CPU page that says whether address spaces are tagged, so that a switch forgets nothing.
const TAGGED: u64 = per_cpu::FREE + 8;

/// Word in the per-CPU page with a selector that can be written, for the instruction that clears buffers.
const SELECTOR: u64 = per_cpu::FREE + 10;

/// Word in the per-CPU page for `rax`, at entry and exit under page-table isolation.
const SAVED: u64 = per_cpu::FREE + 16;

/// Word in the per-CPU page with the value that the entry under page-table isolation loads into CR3.
const KERNEL_SPACE: u64 = per_cpu::FREE + 24;

/// Address of the hot line of slot 0; that of another slot follows at the distance of its control block.
const HOTS: u64 = layout::TCBS + Tcb::HOT_OFFSET as u64;

/// Distance from a hot line to the thread's line as a server.
const SERVER: i64 = Tcb::SERVER_FROM_HOT;

/// Distance from a hot line to the thread's words for foreign calls.
const FOREIGN_WORDS: i64 = Tcb::FOREIGN_FROM_HOT;

/// Shift of the number with which a flexpage of doors begins.
const NUMBER_SHIFT: u32 = 12;

/// Bits of a flexpage, rights apart, that tell whether it is one of the first identifiers.
const NEAR_MASK: i64 = (!((NEAR << NUMBER_SHIFT) - 1) | Fpage::SPACE_AND_SIZE) as i64;

/// Distance from a hot line to the Frame in which registers are kept.
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
    fn copy_of_call();
    fn copy_of_taking_call();
    fn copy_of_reply();
    fn copy_of_door_call();
    fn copy_of_door_return();
}

global_asm!(
    include_str!("fast_path/macros.s"),
    include_str!("fast_path/short.s"),
    include_str!("fast_path/entry.s"),
    include_str!("fast_path/long.s"),
    include_str!("fast_path/strings.s"),
    include_str!("fast_path/door.s"),
    include_str!("fast_path/foreign.s"),
    include_str!("../../arch/x86_64/copy.s"),
    include_str!("fast_path/exit.s"),
    include_str!("fast_path/isolated.s"),
    include_str!("fast_path/traps.s"),
    include_str!("fast_path/identifiers.s"),
    include_str!("fast_path/end.s"),
    ipc_call = const IPC_CALL as i32,
    null = const NULL as i32,
    door_call = const DOOR_CALL as i32,
    door_return = const DOOR_RETURN as i32,
    door_long_call = const DOOR_LONG_CALL as i32,
    door_long_return = const DOOR_LONG_RETURN as i32,
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
    foreign_handler = const FOREIGN_WORDS + offset_of!(Foreign, handler) as i64,
    foreign_key = const FOREIGN_WORDS + offset_of!(Foreign, key) as i64,
    foreign_mark = const FOREIGN_WORDS + offset_of!(Foreign, mark) as i64,
    foreign_stack = const FOREIGN_WORDS + offset_of!(Foreign, stack) as i64,
    foreign = const FOREIGN_MARK,
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
    not_taking_item = const !TAKES_ITEM as i64,
    takes_block = const TAKES_BLOCK,
    words_only = const op::TAKES,
    fast_below = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, fast_below) as i64,
    block = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, address) as i64,
    room = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, room) as i64,
    shown_at = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, shown_at) as i64,
    entry = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, entry) as i64,
    answer_key = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, answer_key) as i64,
    slot = const Tcb::BLOCK_FROM_HOT + offset_of!(Block, slot) as i64,
    tagged = const TAGGED as i64,
    window_tag = const crate::arch::four_level::space::WINDOW_TAG,
    current = const CURRENT as i64,
    scratch = const SCRATCH as i64,
    selector = const SELECTOR as i64,
    saved = const SAVED as i64,
    kernel_space = const KERNEL_SPACE as i64,
    trap_stack = const per_cpu::STACKS[0] as i64,
    task = const Tcb::TASK_FROM_HOT,
    user_space = const offset_of!(Task, user_space),
    debug_nothing = const debug::STATUS_ONES,
    exception_stack = sym tables::EXCEPTION_STACKS,
    exception_stack_size = const tables::EXCEPTION_STACK_BYTES,
    check_stack = sym super::checked::STACK,
    check_stack_size = const super::checked::STACK_BYTES,
    on_checked_exit = sym super::checked::on_exit,
    hots = const HOTS as i64 as i32,
    slot_mask = const SLOT_MASK as i32,
    uid = const offset_of!(Hot, uid),
    accept = const offset_of!(Hot, accept),
    key = const offset_of!(Hot, key),
    open_key = const offset_of!(Hot, open_key),
    rip = const offset_of!(Hot, ip),
    rsp = const offset_of!(Hot, sp),
    space = const offset_of!(Hot, space),
    shuttle = const offset_of!(Hot, shuttle),
    never = const NEVER,
    flags = const FLAGS,
    frame = const size_of::<Frame>(),
    mode = const offset_of!(Frame, mode),
    strings_used = const Dope::used(0, Dope::PARTS_MAX, 0).0 as i32,
    frame_rdi = const offset_of!(Frame, w) + 8 * Frame::RDI,
    frame_r8 = const offset_of!(Frame, w) + 8 * Frame::R8,
    frame_r9 = const offset_of!(Frame, w) + 8 * Frame::R9,
    frame_r10 = const offset_of!(Frame, w) + 8 * Frame::R10,
    frame_r15 = const offset_of!(Frame, w) + 8 * Frame::R15,
    frame_rax = const offset_of!(Frame, rax),
    trap_part = const size_of::<Frame>() - offset_of!(Frame, mode),
    from_rcx = const size_of::<Frame>() - offset_of!(Frame, rcx),
    sysret = const Frame::SYSRET,
    trap = const Frame::TRAP,
    idle_mode = const Frame::IDLE as u8,
    on_system_call = sym super::trap::on_system_call,
    on_short_ipc = sym super::trap::on_short_ipc,
    on_short_call = sym super::trap::on_short_call,
    on_strings = sym super::trap::on_strings,
    on_strings_left = sym super::trap::on_strings_left,
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

/// An exit from the kernel and its two twins, as distances from the table.
#[repr(C)]
struct Exit {
    site: i32,
    clearing: i32,
    isolating: i32,
}

/// Makes exceptions and interrupts enter here from now on; for system calls see [`set_entry`]. An exception of the kernel is reported
/// from here on.
pub fn init() {
    set_kernel_space(paging::kernel_cr3());
    if !cpu::features().smap {
        without_smap();
    }
    unsafe extern "C" {
        /// The entry of each vector.
        static TRAP_STUBS: [u64; 256];
        /// The entry of each vector under page-table isolation.
        static ISOLATED_STUBS: [u64; 256];
    }
    // SAFETY: tables of addresses in read-only memory.
    tables::init(unsafe { if cpu::features().isolates { &ISOLATED_STUBS } else { &TRAP_STUBS } });
}

/// Makes system calls enter here from now on, by the fast path or not. `tagged`: whether a switch of spaces forgets nothing.
pub fn set_entry(is_fast: bool, tagged: bool) {
    // SAFETY: a byte of the per-CPU page that boot leaves to the kernel.
    unsafe { (TAGGED as *mut u8).write(tagged as u8) };
    let entry = match is_fast {
        true => system_call_entry,
        false if cpu::features().isolates => system_call_entry_isolated,
        false => system_call_entry_slow,
    };
    per_cpu::set_syscall_entry(entry as *const () as u64);
}

/// Sets the space that the first entry under page-table isolation loads.
fn set_kernel_space(space: u64) {
    // SAFETY: a word of the per-CPU page that boot leaves to the kernel.
    unsafe { (KERNEL_SPACE as *mut u64).write(space) };
}

/// Makes each exit do more from now on: it becomes a jump to its twin. So processors that do not leak pay nothing,
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

/// Makes the kernel check itself whenever [`leave_kernel`] is called: its first instruction becomes a jump, so that otherwise there
/// is not even a test. Once, before the first user runs.
pub fn check_exits() {
    let (site, twin) = (leave_kernel as *const () as u64, leave_checked as *const () as u64);
    let jump = jump((twin as i64 - site as i64) as i32);
    // SAFETY: the first instruction is longer than a jump, and `leave_checked` repeats it.
    unsafe { write_text([(site as *mut u8, jump)].into_iter()) };
}

/// A jump by `distance` bytes, counted from its own first byte.
fn jump(distance: i32) -> [u8; 5] {
    const JUMP: u8 = 0xe9;
    let [a, b, c, d] = (distance - 5).to_le_bytes();
    [JUMP, a, b, c, d]
}

/// Adapts to a processor without SMAP: each `stac` and `clac`, around accesses to users' memory, becomes an instruction that does nothing.
/// Once, before the processor knows of traps.
fn without_smap() {
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
/// From `first` to `end` there are entries of this type, and nothing else.
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

/// Recovery from a fault that interrupted kernel code.
pub enum Recovery {
    /// None: the fault did not come in a copy.
    None,
    /// To the copy's end: `frame` leads there now.
    Return,
    /// To the slow path: `frame` is now that of a system call of the current thread.
    Slow,
}

/// Finds the recovery from a fault at `address`, and prepares `frame` for it.
pub fn copy_fault(frame: &Frame, address: u64) -> Recovery {
    if user_copy::end_by_fault(frame, address) {
        return Recovery::Return;
    }
    let at = |site: unsafe extern "C" fn()| frame.rip.get() == site as *const () as u64;
    if at(copy_of_call) || at(copy_of_taking_call) || at(copy_of_reply) {
        restore_call(frame, None);
        return Recovery::Slow;
    }
    if at(copy_of_door_call) || at(copy_of_door_return) {
        // SAFETY: a word of the per-CPU page, in which the fast path has just left the identifier, or whatever was there in its place.
        let kept = unsafe { (SCRATCH as *const u64).read() };
        restore_call(frame, Some(kept));
        return Recovery::Slow;
    }
    Recovery::None
}

/// Gives the registers back the user's values after a fault of the fast path, and closes the window. `kept`: the value of `rdx`, where
/// that is not the partner's uid.
fn restore_call(frame: &Frame, kept: Option<u64>) {
    let current = processor::current();
    let (words, left) = (frame.rdx.get(), frame.rcx.get());
    // SAFETY: the fast path had the address of the partner's hot line in this register.
    let partner = unsafe { &*(frame.w[Frame::R15].get() as *const Hot) };
    processor::copy::close_window(global::kernel(), current.task());
    frame.w[Frame::RDI].set(words);
    frame.w[Frame::RSI].set(frame.w[Frame::RSI].get() - 8 * (words - left));
    frame.w[Frame::R15].set(0);
    frame.rdx.set(kept.unwrap_or(partner.uid.get()));
    frame.r11.set(FLAGS);
    frame.mode.set(Frame::SYSRET);
}
