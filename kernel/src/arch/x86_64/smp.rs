//! The other processors: found, started, and parked.
//!
//! A started processor runs real-mode code in a page below 1 MiB, changes to long mode on the boot CPU's temporary
//! tables, takes the kernel's tables, counts itself and halts with interrupts off. It has no stack of its own: an
//! exception there (only an NMI can come) ends in the same halt. Processors that come too late park as well, and
//! stay uncounted, so the code and the temporary tables are kept. Intel SDM volume 3, 10.4.

use super::acpi::Platform;
use super::apic::{self, Start};
use super::per_cpu::{self, KERNEL_CODE, TablePointer};
use super::stack::Stack;
use super::{paging, timer, view};
use crate::{kprintln, layout};
use abi::PAGE_SIZE;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};

/// Offset of a copy of the ACPI root pointer in the low page.
pub const RSDP_OFFSET: u64 = PAGE_SIZE - 64;
/// Bytes of the ACPI root pointer that are kept.
pub const RSDP_MAX: usize = 36;

/// Longest wait for all processors.
const PATIENCE_NS: u64 = 1_000_000_000;

unsafe extern "C" {
    static TRAMPOLINE: u8;
    static TRAMPOLINE_END: u8;
}

global_asm!(
    r#"
    # Runs at any page below 1 MiB, with cs = page / 16 and ip = 0. The five fields at the start are filled in.
    .section .rodata.trampoline, "a"
    .balign 16
    .globl TRAMPOLINE
TRAMPOLINE:
    .code16
    jmp 1f
    .balign 8
trampoline_cr3:
    .long 0
trampoline_gdt_pointer:
    .short 15
    .long 0
trampoline_far:
    .long 0
    .short 8
    .balign 8
trampoline_gdt:
    .quad 0, 0x00209b0000000000
1:  cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    movl $0xa0, %eax                    # CR4: PGE PAE
    movl %eax, %cr4
    movl trampoline_cr3 - TRAMPOLINE, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx              # EFER: NXE LME
    rdmsr
    orl $0x900, %eax
    wrmsr
    lgdtl trampoline_gdt_pointer - TRAMPOLINE
    movl $0x80010033, %eax              # CR0: PG WP NE ET MP PE, straight into long mode
    movl %eax, %cr0
    ljmpl *(trampoline_far - TRAMPOLINE)
    .code64
trampoline_long:
    movabsq $parked_start, %rax
    jmpq *%rax
    .globl TRAMPOLINE_END
TRAMPOLINE_END:

    .section .text.parked, "ax"
parked_start:
    movq {cr3}(%rip), %rax
    movq %rax, %cr3
    lgdt {gdt}(%rip)
    lidt {idt}(%rip)
    leaq {stack} + {stack_size}(%rip), %rsp
    xorl %eax, %eax
    movl %eax, %ss
    pushq ${code}
    leaq 2f(%rip), %rax
    pushq %rax
    lretq
2:  lock incl {count}(%rip)
    .globl PARKED
PARKED:
    cli
    hlt
    jmp PARKED

    .section .rodata.trampoline_fields, "a"
    .balign 4
    .globl TRAMPOLINE_FIELDS
TRAMPOLINE_FIELDS:
    .long trampoline_cr3 - TRAMPOLINE
    .long trampoline_gdt_pointer + 2 - TRAMPOLINE
    .long trampoline_gdt - TRAMPOLINE
    .long trampoline_far - TRAMPOLINE
    .long trampoline_long - TRAMPOLINE
    .text
    "#,
    cr3 = sym PARKED_CR3,
    gdt = sym PARKED_GDT,
    idt = sym PARKED_IDT,
    stack = sym PARKED_STACK,
    stack_size = const size_of::<Stack<4096>>(),
    code = const KERNEL_CODE,
    count = sym PARKED_COUNT,
    options(att_syntax)
);

/// Tables that a started processor takes over.
static mut PARKED_CR3: u64 = 0;
static mut PARKED_GDT: TablePointer = TablePointer { limit: 0, base: 0 };
static mut PARKED_IDT: TablePointer = TablePointer { limit: 0, base: 0 };
/// Shared by all parked processors, because none of them ever returns from what it pushes here.
static mut PARKED_STACK: Stack<4096> = Stack::EMPTY;
static PARKED_COUNT: AtomicU32 = AtomicU32::new(0);

/// Addresses of pages from which a processor can start: above what firmware keeps, below what it cannot reach.
pub const LOW: core::ops::Range<u64> = 0x8000..0x9_0000;

/// Starts and parks all processors but this one; returns how many there are.
pub fn start(platform: &Platform, low_page: Option<u64>) -> u32 {
    let own = apic::local_id();
    let others = || platform.cpus.iter().copied().filter(move |&id| id != own);
    let wanted = others().count() as u32;
    if wanted > 0
        && let Some(page) = low_page
        && prepare(page).is_some()
    {
        others().for_each(|id| apic::send_start(id, Start::Init));
        timer::spin_ns(10_000_000);
        // Twice, as old processors may miss the first; one that runs already ignores it.
        for _ in 0..2 {
            others().for_each(|id| apic::send_start(id, Start::Page((page >> 12) as u8)));
            timer::spin_ns(200_000);
        }
        let end = timer::now_ns() + PATIENCE_NS;
        while PARKED_COUNT.load(Ordering::Acquire) < wanted && timer::now_ns() < end {
            core::hint::spin_loop();
        }
    }
    let parked = PARKED_COUNT.load(Ordering::Acquire);
    kprintln!("tern: cpus      {} found, {parked} parked", wanted + 1);
    wanted + 1
}

/// Puts the code where a processor can start from it. `None` if there is no view of the page.
fn prepare(page: u64) -> Option<()> {
    let (start, end) = (&raw const TRAMPOLINE, &raw const TRAMPOLINE_END);
    // SAFETY: both symbols bound one object in read-only memory.
    let code = unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) };
    unsafe extern "C" {
        static TRAMPOLINE_FIELDS: [u32; 5];
        static PARKED: u8;
    }
    // SAFETY: a constant table.
    let [cr3, gdt_base, gdt, far, long] = unsafe { TRAMPOLINE_FIELDS };

    // SAFETY: no other processor runs yet; from now on the statics are only read.
    unsafe {
        PARKED_CR3 = paging::kernel_cr3();
        PARKED_GDT = per_cpu::descriptors_pointer();
        PARKED_IDT = super::tables::uniform(&raw const PARKED as u64);
    }

    let mut view = view::open_mut(page, PAGE_SIZE)?;
    view[..code.len()].copy_from_slice(code);
    let temporary = &raw const paging::BOOT_TABLES as u64 - layout::IMAGE;
    for (at, value) in [(cr3, temporary), (gdt_base, page + u64::from(gdt)), (far, page + u64::from(long))] {
        view[at as usize..][..4].copy_from_slice(&(value as u32).to_le_bytes());
    }
    Some(())
}
