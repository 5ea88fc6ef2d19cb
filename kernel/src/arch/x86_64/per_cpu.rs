//! The per-CPU page: current thread, task state segment, descriptor table, at one fixed address.
//!
//! ```text
//!  000  60 bytes for the kernel
//!  03c  task state segment, 104 bytes; its RSP0 lies at 040
//!  0c0  global descriptor table, 8 entries
//!  100  for the kernel, to the end of the page; five small stacks at 300 to 7ff
//! ```
//!
//! The surprising part: RSP0, the stack pointer that the processor loads when an exception comes from user mode, *is*
//! the pointer to the current thread. A thread's stack lies below its hot words in its control block, so one store
//! switches both. The segment starts at 4 modulo 8, which aligns that field. Intel SDM volume 3, 8.7.

use super::instructions::wrmsr;
use super::paging;
use crate::arch::frame::{USER_CODE, USER_DATA};
use crate::layout;
use core::arch::asm;
use core::mem::offset_of;

/// Address of the page.
pub const ADDRESS: u64 = layout::PER_CPU;

/// Address of the pointer to the current thread, which is also TSS.RSP0.
pub const CURRENT: u64 = ADDRESS + 0x40;

/// First byte of the page behind the processor's tables; free for the kernel.
pub const FREE: u64 = ADDRESS + 0x100;

/// Tops of the stacks onto which the processor pushes a few words under page-table isolation: one for all vectors without a stack
/// of their own, then those of the others.
pub const STACKS: [u64; 5] =
    [ADDRESS + 0x400, ADDRESS + 0x500, ADDRESS + 0x600, ADDRESS + 0x700, ADDRESS + 0x800];

/// Kernel code, 64 bit.
pub const KERNEL_CODE: u16 = 0x08;
/// Kernel data.
pub const KERNEL_DATA: u16 = 0x10;
/// Base from which SYSRET counts: +8 is user data, +16 user code.
pub const USER_BASE: u16 = 0x18 | 3;
const TASK_STATE: u16 = 0x30;

/// The 64-bit task state segment.
#[repr(C, packed(4))]
struct TaskState {
    reserved0: u32,
    rsp: [u64; 3],
    reserved1: u64,
    interrupt_stacks: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    port_bitmap: u16,
}

/// The per-CPU page.
#[repr(C, align(4096))]
struct PerCpu {
    kernel_first: [u32; 15],
    task_state: TaskState,
    padding: [u32; 7],
    descriptors: [u64; 8],
    kernel_rest: [u8; 4096 - 0x100],
}

const TASK_STATE_AT: u64 = ADDRESS + offset_of!(PerCpu, task_state) as u64;
const BITMAP_OFFSET: u16 = (layout::PORT_BITMAP - TASK_STATE_AT) as u16;
/// The segment ends with the byte of ones that has to follow the bitmap.
const TASK_STATE_LIMIT: u64 = BITMAP_OFFSET as u64 + 0x2000;
/// A bitmap that starts behind the end of the segment allows no port.
const NO_BITMAP: u16 = u16::MAX;

const _: () = assert!(size_of::<TaskState>() == 104 && offset_of!(TaskState, port_bitmap) == 102);
const _: () = assert!(size_of::<PerCpu>() == 4096 && offset_of!(PerCpu, descriptors) == 0xc0);
const _: () = assert!(offset_of!(PerCpu, kernel_rest) as u64 + ADDRESS == FREE);
const _: () =
    assert!(TASK_STATE_AT + offset_of!(TaskState, rsp) as u64 == CURRENT && CURRENT.is_multiple_of(64));
const _: () = assert!(USER_DATA == USER_BASE + 8 && USER_CODE == USER_BASE + 16);
const _: () = assert!((NO_BITMAP as u64) > TASK_STATE_LIMIT);

fn page() -> *mut PerCpu {
    ADDRESS as *mut PerCpu
}

/// Pointer to a descriptor table as `lgdt` and `lidt` want it.
#[repr(C, packed)]
pub struct TablePointer {
    /// Size in bytes, minus one.
    pub limit: u16,
    /// Virtual address.
    pub base: u64,
}

/// The pointer to the descriptor table of this page.
pub fn descriptors_pointer() -> TablePointer {
    TablePointer { limit: 63, base: ADDRESS + offset_of!(PerCpu, descriptors) as u64 }
}

/// Fills descriptor table and task state segment, and makes the processor use them. There is no local descriptor table: after reset the
/// processor takes address 0 for one, where users could have written descriptors of their own, call gates into the kernel among them.
pub(super) fn init(interrupt_stacks: [u64; 7]) {
    const CODE: u64 = 0x0020_9b00_0000_0000;
    const DATA: u64 = 0x0000_9300_0000_0000;
    const USER: u64 = 3 << 45;
    let base = TASK_STATE_AT;
    let segment =
        TASK_STATE_LIMIT & 0xffff | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    let descriptors = [0, CODE, DATA, 0, DATA | USER, CODE | USER, segment, base >> 32];
    let task_state = TaskState {
        reserved0: 0,
        rsp: [0; 3],
        reserved1: 0,
        interrupt_stacks,
        reserved2: 0,
        reserved3: 0,
        port_bitmap: NO_BITMAP,
    };
    // SAFETY: the page is mapped and zero, and nobody else knows it yet.
    unsafe {
        (*page()).descriptors = descriptors;
        (*page()).task_state = task_state;
    }
    let pointer = descriptors_pointer();
    // SAFETY: the table just filled; the code segment is the one that runs. The far return loads it.
    unsafe {
        asm!(
            "lgdt [{pointer}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ss, {data:e}",
            "mov ds, {data:e}",
            "mov es, {data:e}",
            "lldt {none:x}",
            "ltr {task:x}",
            pointer = in(reg) &raw const pointer,
            code = const KERNEL_CODE,
            scratch = out(reg) _,
            data = in(reg) KERNEL_DATA as u32,
            none = in(reg) 0,
            task = in(reg) TASK_STATE,
        );
    }
}

/// Forbids user mode all ports.
#[inline]
pub fn ports_off() {
    // SAFETY: the processor reads the field at each `in` and `out` of a user; every value is valid.
    unsafe { (&raw mut (*page()).task_state.port_bitmap).write_unaligned(NO_BITMAP) };
}

/// Lets user mode use the ports whose bits are clear in the bitmap of 8 KiB in these two frames.
pub fn ports_on(frames: [u64; 2]) {
    paging::set_port_bitmap(frames);
    // SAFETY: as for `ports_off`; the three pages behind the segment are mapped.
    unsafe { (&raw mut (*page()).task_state.port_bitmap).write_unaligned(BITMAP_OFFSET) };
}

/// Address of the current thread's hot line, for the kernel's output; 0 before there is one.
pub fn current() -> u64 {
    if !paging::ready() {
        return 0;
    }
    // SAFETY: the page is mapped once `paging::ready`.
    unsafe { (CURRENT as *const u64).read_volatile() }
}

/// Model-specific registers of the system-call instructions.
const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const CSTAR: u32 = 0xc000_0083;
const FLAG_MASK: u32 = 0xc000_0084;
const SYSENTER_CS: u32 = 0x174;

/// RFLAGS bits that `syscall` clears: TF IF DF IOPL NT RF VM AC. With AC clear, SMAP holds in the kernel.
const CLEARED_FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 3 << 12 | 1 << 14 | 1 << 16 | 1 << 17 | 1 << 18;

/// Selectors and flags of `syscall`. SYSENTER stays unusable: code segment 0 makes it fault.
pub(super) fn init_syscall() {
    let star = (USER_BASE as u64) << 48 | (KERNEL_CODE as u64) << 32;
    for (register, value) in [(STAR, star), (FLAG_MASK, CLEARED_FLAGS), (SYSENTER_CS, 0)] {
        // SAFETY: every processor with long mode and SYSCALL has these registers; the selectors are those above.
        unsafe { wrmsr(register, value) };
    }
    set_syscall_entry(refuse_syscall as *const () as u64);
    // SAFETY: as above. Used by compatibility-mode code only, for which there is no segment.
    unsafe { wrmsr(CSTAR, refuse_syscall as *const () as u64) };
}

/// Sets the address at which `syscall` enters the kernel.
pub fn set_syscall_entry(address: u64) {
    // SAFETY: the caller gives an entry that expects the user's stack pointer and flags masked as above.
    unsafe { wrmsr(LSTAR, address) };
}

/// Stand-in while there is no kernel entry: returns at once to where a `syscall` came from.
#[unsafe(naked)]
extern "C" fn refuse_syscall() {
    core::arch::naked_asm!("sysretq");
}
