//! Single processor instructions as functions: ports, model-specific registers, control registers.
//!
//! Invariant: every function is exactly one instruction (or one loop around one), so that what the kernel does
//! to the machine can be found by searching for a name. Intel SDM volume 2; AMD APM volume 3.

use core::arch::asm;

/// Reads a byte from an I/O port.
///
/// # Safety
/// The read has no effect on the kernel's memory or on a device that somebody else drives.
#[inline(always)]
pub unsafe fn inb(port: u16) -> u8 {
    let value;
    // SAFETY: the caller answers for the device's reaction; the instruction touches no memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes a byte to an I/O port.
///
/// # Safety
/// The caller answers for the device's reaction.
#[inline(always)]
pub unsafe fn outb(port: u16, value: u8) {
    // SAFETY: the caller answers for the device's reaction; the instruction touches no memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) };
}

/// Reads 32 bits from an I/O port.
///
/// # Safety
/// The caller answers for the device's reaction.
#[inline(always)]
pub unsafe fn inl(port: u16) -> u32 {
    let value;
    // SAFETY: the caller answers for the device's reaction; the instruction touches no memory.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Reads a model-specific register.
///
/// # Safety
/// The register exists on this processor.
#[inline(always)]
pub unsafe fn rdmsr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller knows the register; reading has no side effect on memory.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high,
             options(nomem, nostack, preserves_flags));
    }
    (high as u64) << 32 | low as u64
}

/// Writes a model-specific register.
///
/// # Safety
/// The register exists, and the value keeps the machine in the state that the kernel relies on.
#[inline(always)]
pub unsafe fn wrmsr(register: u32, value: u64) {
    // SAFETY: the caller answers for the effect. Not `nomem`: some registers change what memory accesses mean.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// The time-stamp counter. Not serialising: neighbouring instructions may move across it.
#[inline(always)]
pub fn rdtsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    (high as u64) << 32 | low as u64
}

/// Result registers of CPUID.
#[derive(Clone, Copy, Default)]
pub struct Cpuid {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

/// CPUID of a leaf and subleaf, whether the processor has that leaf or not.
pub fn cpuid(leaf: u32, subleaf: u32) -> Cpuid {
    let result = core::arch::x86_64::__cpuid_count(leaf, subleaf);
    Cpuid { eax: result.eax, ebx: result.ebx, ecx: result.ecx, edx: result.edx }
}

macro_rules! control_register {
    ($read:ident, $write:ident, $name:literal) => {
        #[doc = concat!("Reads ", $name, ".")]
        #[inline(always)]
        pub fn $read() -> u64 {
            let value;
            // SAFETY: reads a register.
            unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags)) };
            value
        }

        #[doc = concat!("Writes ", $name, ".")]
        ///
        /// # Safety
        /// The processor has every feature that the value turns on, and the kernel stays mapped.
        #[inline(always)]
        pub unsafe fn $write(value: u64) {
            // SAFETY: the caller answers for the value. Not `nomem`: memory may mean something else afterwards.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) };
        }
    };
}

control_register!(read_cr0, write_cr0, "cr0");
control_register!(read_cr2, write_cr2, "cr2");
control_register!(read_cr3, write_cr3, "cr3");
control_register!(read_cr4, write_cr4, "cr4");

control_register!(read_dr6, write_dr6, "dr6");

macro_rules! debug_register {
    ($write:ident, $name:literal) => {
        #[doc = concat!("Writes ", $name, ".")]
        ///
        /// # Safety
        /// No breakpoint that is on lies in the kernel half, and general detect stays off.
        #[inline(always)]
        pub unsafe fn $write(value: u64) {
            // SAFETY: the caller answers for the value.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) };
        }
    };
}

debug_register!(write_dr0, "dr0");
debug_register!(write_dr1, "dr1");
debug_register!(write_dr2, "dr2");
debug_register!(write_dr3, "dr3");
debug_register!(write_dr7, "dr7");

/// Writes an extended control register (XCR).
///
/// # Safety
/// CR4.OSXSAVE is set and the processor has the state components in `value`.
pub unsafe fn xsetbv(register: u32, value: u64) {
    // SAFETY: the caller checked CPUID leaf 0xd.
    unsafe {
        asm!("xsetbv", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// Drops the translation of one page, and all paging-structure caches of the current address space.
#[inline(always)]
pub fn invlpg(address: u64) {
    // SAFETY: only forgets cached translations. Not `nomem`: accesses must not move across it.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

/// Drops translations by tag: kind 0 that of one page, kind 1 all of the tag. The processor has the instruction.
pub fn invpcid(kind: u64, tag: u64, address: u64) {
    let descriptor = [tag, address];
    // SAFETY: only forgets cached translations. Not `nomem`: accesses must not move across it.
    unsafe { asm!("invpcid {}, [{}]", in(reg) kind, in(reg) &raw const descriptor, options(nostack)) };
}

/// Waits for an interrupt that never comes: the end of every path that has nowhere to go.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: stops this processor with interrupts off.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
