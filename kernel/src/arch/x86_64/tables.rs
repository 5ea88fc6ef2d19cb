//! The interrupt descriptor table, and the stacks of the exceptions that can come at any time.
//!
//! Vectors: 0–31 the processor's, 32–223 interrupt lines, 224–239 what the old interrupt controllers could still
//! send, 240 the timer, 255 spurious. All gates turn interrupts off. NMI, double fault, machine check and debug
//! exception run on stacks of their own, because between `syscall` and the first store the stack pointer is the
//! user's. Intel SDM volume 3, 7.10 and 7.14.

use super::cpu::features;
use super::per_cpu::{self, KERNEL_CODE, TablePointer};
use super::stack::Stack;
use core::arch::asm;

/// Vector of the first interrupt line.
pub const LINE_VECTOR: u8 = 0x20;
/// Vector at which the masked 8259s send an interrupt that they cannot take back.
pub const LEGACY_VECTOR: u8 = 0xe0;
/// Vector of the timer.
pub const TIMER_VECTOR: u8 = 0xf0;
/// Vector of spurious interrupts of the local APIC; never acknowledged.
pub const SPURIOUS_VECTOR: u8 = 0xff;

const _: () = assert!(LINE_VECTOR as usize + crate::param::INTERRUPT_LINES <= LEGACY_VECTOR as usize);

/// Vectors with a stack of their own, in the order of the stack numbers 1 to 4: NMI, double fault, machine check,
/// debug.
const STACK_VECTORS: [u8; 4] = [2, 8, 18, 1];

const EXCEPTION_STACK_SIZE: usize = 0x2000;

/// Size of one of [`EXCEPTION_STACKS`].
pub const EXCEPTION_STACK_BYTES: usize = size_of::<Stack<EXCEPTION_STACK_SIZE>>();

/// The stacks of [`STACK_VECTORS`].
pub static mut EXCEPTION_STACKS: [Stack<EXCEPTION_STACK_SIZE>; STACK_VECTORS.len()] =
    [const { Stack::EMPTY }; STACK_VECTORS.len()];

fn exception_stack(index: usize) -> *const Stack<EXCEPTION_STACK_SIZE> {
    (&raw const EXCEPTION_STACKS).cast::<Stack<EXCEPTION_STACK_SIZE>>().wrapping_add(index)
}

/// The pages below the exception stacks.
pub fn guard_pages() -> [*const u8; STACK_VECTORS.len()] {
    core::array::from_fn(|index| Stack::bounds(exception_stack(index)).guard)
}

/// An interrupt gate.
#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    low: u64,
    high: u64,
}

impl Gate {
    const fn new(handler: u64, stack: u8, privilege: u64) -> Gate {
        const PRESENT_INTERRUPT_GATE: u64 = 0x8e << 40;
        Gate {
            low: handler & 0xffff
                | (KERNEL_CODE as u64) << 16
                | (stack as u64) << 32
                | PRESENT_INTERRUPT_GATE
                | privilege << 45
                | (handler >> 16 & 0xffff) << 48,
            high: handler >> 32,
        }
    }
}

#[repr(C, align(4096))]
struct Gates([Gate; 256]);

static mut GATES: Gates = Gates([Gate { low: 0, high: 0 }; 256]);

/// Loads descriptor tables and system-call registers; from here on an exception is reported. `stubs`: the entry of each vector.
pub fn init(stubs: &[u64; 256]) {
    let mut stacks = [0; 7];
    for (index, stack) in stacks.iter_mut().take(STACK_VECTORS.len()).enumerate() {
        *stack = Stack::bounds(exception_stack(index)).top as u64;
    }
    let isolates = features().isolates;
    if isolates {
        stacks[..per_cpu::STACKS.len()].copy_from_slice(&per_cpu::STACKS);
    }
    per_cpu::init(stacks);
    per_cpu::init_syscall();
    let gates = &raw mut GATES;
    // SAFETY: only the boot CPU runs, and the processor does not know the table yet.
    let gates = unsafe { &mut *gates };
    for (vector, (gate, &stub)) in gates.0.iter_mut().zip(stubs).enumerate() {
        // Under isolation the processor finds no other stack than those in the per-CPU page: the first is for all others.
        let (others, own) = if isolates { (1, 2) } else { (0, 1) };
        let stack = STACK_VECTORS.iter().position(|&own| own as usize == vector);
        let stack = stack.map_or(others, |index| index + own);
        // Users may raise a breakpoint and an overflow by instruction.
        let privilege = if matches!(vector, 3 | 4) { 3 } else { 0 };
        *gate = Gate::new(stub, stack as u8, privilege);
    }
    let pointer = TablePointer { limit: 4095, base: &raw const GATES as u64 };
    // SAFETY: the table is complete and static.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack, preserves_flags)) };
}

/// The page of the interrupt descriptor table.
pub fn gates_page() -> u64 {
    &raw const GATES as u64
}

/// Fills the table for parked processors, in which every vector leads to one place, and returns its pointer. It has
/// the exceptions only: interrupts are off there.
pub fn uniform(handler: u64) -> TablePointer {
    static mut PARKED_GATES: [Gate; 32] = [Gate { low: 0, high: 0 }; 32];
    // SAFETY: called once, before any processor uses the table.
    unsafe { PARKED_GATES = [Gate::new(handler, 0, 0); 32] };
    TablePointer { limit: 32 * 16 - 1, base: &raw const PARKED_GATES as u64 }
}
