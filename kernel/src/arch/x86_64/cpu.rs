//! Features of the processor, and the choice of those that are turned on.
//!
//! Only CPUID is believed: some emulators accept control bits of features that they lack. A required feature that is
//! missing ends the boot with one line; an optional one is used where offered, and [`describe`] says so. Intel SDM
//! volume 2, CPUID; volume 3, 2.5.

use super::instructions::{Cpuid, cpuid, rdmsr, read_cr0, read_cr4, write_cr0, write_cr4, wrmsr, xsetbv};
use super::{extended, leaks};
use crate::kprintln;
use core::cell::UnsafeCell;
use core::fmt;

/// Features that were found. All false before [`detect`].
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Vendor, as the processor spells it.
    pub vendor: [u8; 12],
    /// Model, for people; padded with zeroes or blanks.
    pub model: [u8; 48],
    /// The kernel cannot execute user pages.
    pub smep: bool,
    /// The kernel cannot access user pages by accident.
    pub smap: bool,
    /// Users cannot read descriptor-table addresses.
    pub umip: bool,
    /// TLB entries are tagged with an address space; CR4.PCIDE is on.
    pub pcid: bool,
    /// The instruction INVPCID.
    pub invpcid: bool,
    /// The local APIC is used through registers, not through memory.
    pub x2apic: bool,
    /// The local APIC timer can compare with the time-stamp counter.
    pub tsc_deadline: bool,
    /// The time-stamp counter runs at a constant rate in all power states.
    pub invariant_tsc: bool,
    /// Extended state is managed by XSAVE; CR4.OSXSAVE is on.
    pub xsave: bool,
    /// Extended state is exchanged by XSAVEOPT, XRSTOR and instructions for the bases: the processor has all of these.
    pub exchanges: bool,
    /// Users set FS base and GS base by instructions; CR4.FSGSBASE is on.
    pub fsgsbase: bool,
    /// State components that XSAVE manages (XCR0); 0 without XSAVE.
    pub xsave_mask: u64,
    /// Bits that MXCSR may have.
    pub mxcsr_mask: u32,
    /// Size of the area that XSAVE, or without it FXSAVE, needs; in bytes.
    pub fpu_area_bytes: u32,
    /// Pages of 1 GiB.
    pub gib_pages: bool,
    /// The processor may read kernel memory speculatively in user mode (CVE-2017-5754).
    pub meltdown: bool,
    /// The processor may show users what is left in its buffers (CVE-2018-12130 and its relatives).
    pub buffers_leak: bool,
    /// Page tables are isolated: users run on tables without the kernel's data.
    pub isolates: bool,
    /// VERW clears the buffers.
    pub clears_buffers: bool,
    /// Guard against users that choose where the kernel's branches are predicted to go.
    pub branches: Branches,
    /// The processor can forget what it has learned of branches (IBPB), and does so between prediction domains.
    pub forgets_predictions: bool,
    /// FXSAVE and XSAVE leave the x87 error pointers alone, where another thread finds them (CVE-2006-1056).
    pub x87_pointers_leak: bool,
    /// Runs under a hypervisor or emulator that says so.
    pub hypervisor: bool,
    /// Width of a physical address in bits.
    pub physical_bits: u32,
}

/// Guards against foreign predictions of branches (CVE-2017-5715) that are turned on once and for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Branches {
    /// No guard that could be turned on once.
    Unguarded,
    /// Enhanced IBRS: a bit of IA32_SPEC_CTRL, with a second one against branch histories where there is one.
    Enhanced {
        /// Whether there is the second bit.
        histories: bool,
    },
    /// Automatic IBRS: a bit of EFER.
    Automatic,
}

impl Features {
    const NONE: Features = Features {
        vendor: [0; 12],
        model: [0; 48],
        smep: false,
        smap: false,
        umip: false,
        pcid: false,
        invpcid: false,
        x2apic: false,
        tsc_deadline: false,
        invariant_tsc: false,
        xsave: false,
        exchanges: false,
        fsgsbase: false,
        xsave_mask: 0,
        mxcsr_mask: 0,
        fpu_area_bytes: FXSAVE_BYTES,
        gib_pages: false,
        meltdown: false,
        buffers_leak: false,
        isolates: false,
        clears_buffers: false,
        branches: Branches::Unguarded,
        forgets_predictions: false,
        x87_pointers_leak: false,
        hypervisor: false,
        physical_bits: 36,
    };
}

const FXSAVE_BYTES: u32 = 512;

/// Written by the boot CPU before anything reads it.
struct Once(UnsafeCell<Features>);

// SAFETY: `detect` writes once, while only the boot CPU runs and before any use.
unsafe impl Sync for Once {}

static FEATURES: Once = Once(UnsafeCell::new(Features::NONE));

/// The features of this processor.
#[inline]
pub fn features() -> &'static Features {
    // SAFETY: see `Once`.
    unsafe { &*FEATURES.0.get() }
}

const fn bit(word: u32, number: u32) -> bool {
    word >> number & 1 != 0
}

/// A leaf, or zeroes if the processor does not have it.
fn leaf(number: u32, subleaf: u32) -> Cpuid {
    let max = cpuid(number & 0xc000_0000, 0).eax;
    if number <= max { cpuid(number, subleaf) } else { Cpuid::default() }
}

fn text<const LEN: usize>(words: &[u32]) -> [u8; LEN] {
    let mut text = [0; LEN];
    for (bytes, word) in text.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    text
}

/// Finds out what the processor has. The error names a feature that the kernel needs and the processor lacks.
pub fn detect() -> Result<(), &'static str> {
    let (basic, one, seven) = (leaf(0, 0), leaf(1, 0), leaf(7, 0));
    let (extended, power, sizes) = (leaf(0x8000_0001, 0), leaf(0x8000_0007, 0), leaf(0x8000_0008, 0));
    let required = [
        (bit(extended.edx, 29), "long mode"),
        (bit(extended.edx, 20), "no-execute pages (NX)"),
        (bit(extended.edx, 11), "the syscall instruction"),
        (bit(one.edx, 5), "model-specific registers"),
        (bit(one.edx, 4), "a time-stamp counter"),
        (bit(one.edx, 9), "a local interrupt controller (APIC)"),
        (bit(one.edx, 13), "global pages (PGE)"),
        (bit(one.edx, 16), "page attributes (PAT)"),
        (bit(one.edx, 24), "FXSAVE"),
        (bit(one.edx, 26), "SSE2"),
    ];
    if let Some((_, missing)) = required.iter().find(|(present, _)| !present) {
        return Err(missing);
    }

    let vendor = text(&[basic.ebx, basic.edx, basic.ecx]);
    let mut model = [0; 48];
    for (part, number) in model.chunks_exact_mut(16).zip(0x8000_0002..) {
        let Cpuid { eax, ebx, ecx, edx } = leaf(number, 0);
        part.copy_from_slice(&text::<16>(&[eax, ebx, ecx, edx]));
    }
    let is_safe = leaks::is_safe(&vendor);
    let capabilities = if bit(seven.edx, 29) { architecture_capabilities() } else { 0 };
    let says = |number: u32| capabilities >> number & 1 != 0;
    let xsave = bit(one.ecx, 26);
    let features = Features {
        vendor,
        model,
        smep: bit(seven.ebx, 7),
        smap: bit(seven.ebx, 20),
        umip: bit(seven.ecx, 2),
        // Tags without the instruction that drops them are no use.
        pcid: bit(one.ecx, 17) && bit(seven.ebx, 10),
        invpcid: bit(seven.ebx, 10),
        x2apic: bit(one.ecx, 21),
        tsc_deadline: bit(one.ecx, 24),
        invariant_tsc: bit(power.edx, 8),
        xsave,
        exchanges: xsave && bit(leaf(0xd, 1).eax, 0) && bit(seven.ebx, 0),
        fsgsbase: bit(seven.ebx, 0),
        mxcsr_mask: 0,
        xsave_mask: if xsave { leaf(0xd, 0).eax as u64 & XSAVE_COMPONENTS } else { 0 },
        fpu_area_bytes: FXSAVE_BYTES,
        gib_pages: bit(extended.edx, 26),
        meltdown: !is_safe && !says(0),
        buffers_leak: !is_safe && leaks::buffers(says, bit(seven.ebx, 11)),
        isolates: false,
        clears_buffers: bit(seven.edx, 10) || says(17) || says(28),
        branches: match () {
            () if bit(seven.edx, 26) && says(1) => Branches::Enhanced { histories: bit(leaf(7, 2).edx, 4) },
            () if bit(leaf(0x8000_0021, 0).eax, 8) => Branches::Automatic,
            () => Branches::Unguarded,
        },
        forgets_predictions: leaks::has_barrier(seven.edx, sizes.ebx),
        x87_pointers_leak: leaks::x87_pointers(&vendor, sizes.ebx),
        hypervisor: bit(one.ecx, 31),
        physical_bits: (sizes.eax & 0xff).clamp(36, 52),
    };
    // SAFETY: see `Once`.
    unsafe { *FEATURES.0.get() = features };
    Ok(())
}

/// State components that are turned on: x87, SSE and AVX. Larger ones stay off: nobody would pay for them at each switch.
const XSAVE_COMPONENTS: u64 = 7;

/// IA32_ARCH_CAPABILITIES, of a processor that has it: the leaks that it does not have.
fn architecture_capabilities() -> u64 {
    const ARCH_CAPABILITIES: u32 = 0x10a;
    // SAFETY: CPUID says that the register exists.
    unsafe { rdmsr(ARCH_CAPABILITIES) }
}

const SPEC_CTRL: u32 = 0x48;
const SPEC_CTRL_IBRS: u64 = 1 << 0;
const SPEC_CTRL_NO_HISTORIES: u64 = 1 << 10;
const EFER_AUTOMATIC_IBRS: u64 = 1 << 21;

/// Turns on the guard against foreign predictions of branches. False if there is none.
fn guard_branches() -> bool {
    match features().branches {
        Branches::Unguarded => return false,
        Branches::Enhanced { histories } => {
            let control = SPEC_CTRL_IBRS | if histories { SPEC_CTRL_NO_HISTORIES } else { 0 };
            // SAFETY: CPUID says that the register exists, and has the bits.
            unsafe { wrmsr(SPEC_CTRL, control) };
        }
        // SAFETY: CPUID names the bit.
        Branches::Automatic => unsafe { wrmsr(EFER, rdmsr(EFER) | EFER_AUTOMATIC_IBRS) },
    }
    true
}

/// Decides whether page tables are isolated; before they are made. Then tags are not used: each exit loads another table, and
/// forgets what the kernel changed in the user's.
///
/// `wanted`: the choice of the boot options, if they make one.
pub fn choose_isolation(wanted: Option<bool>) {
    // SAFETY: see `Once`.
    let features = unsafe { &mut *FEATURES.0.get() };
    features.isolates = wanted.unwrap_or(features.meltdown);
    features.pcid &= !features.isolates;
}

/// Measure against leaks at each exit from the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AtExit {
    /// VERW, which clears the buffers from which some processors leak.
    ClearBuffers,
    /// The user's own tables are loaded, and VERW too.
    Isolate,
}

/// Takes the measures against leaks that this processor needs, or that the boot options `verw=` and `ibrs=` insist on, and prints
/// leaks and measures (decision 0033). Before the first user runs. Returns the measure that each exit has to take, if any.
pub fn guard(verw: Option<bool>, ibrs: Option<bool>) -> Option<AtExit> {
    let found = *features();
    let clears = verw.unwrap_or(found.buffers_leak) || found.isolates;
    let wanted = ibrs.unwrap_or(true);
    let guards = wanted && guard_branches();
    let forgets = wanted && found.forgets_predictions;
    // SAFETY: see `Once`.
    unsafe { (*FEATURES.0.get()).forgets_predictions = forgets };
    let leaks = [
        (found.meltdown, "meltdown"),
        (found.buffers_leak, "mds"),
        (found.x87_pointers_leak, "x87 pointers"),
    ];
    kprintln!("tern: leaks     {}", Choices(&leaks));
    let ibrs = match found.branches {
        Branches::Unguarded => "ibrs",
        Branches::Enhanced { .. } => "enhanced ibrs",
        Branches::Automatic => "automatic ibrs",
    };
    let measures = [
        (clears, "verw at each exit"),
        (guards, ibrs),
        (found.isolates, "page-table isolation"),
        (forgets, "ibpb between domains"),
    ];
    kprintln!("tern: measures  {}", Choices(&measures));
    if found.meltdown && !found.isolates {
        kprintln!(
            "tern: caution   this processor lets programs read kernel memory (Meltdown); tables are not split"
        );
    }
    if found.buffers_leak && !found.clears_buffers {
        kprintln!(
            "tern: caution   this processor's microcode does not let verw clear the buffers from which it leaks"
        );
    }
    clears.then_some(if found.isolates { AtExit::Isolate } else { AtExit::ClearBuffers })
}

const EFER: u32 = 0xc000_0080;
const EFER_SYSCALL: u64 = 1 << 0;
const EFER_NO_EXECUTE: u64 = 1 << 11;

const PAT: u32 = 0x277;
/// Values of PAT after reset: write-back, write-through, uncached-, uncached; twice.
const PAT_DEFAULT: u64 = 0x0007_0406_0007_0406;

const CR0_MONITOR: u64 = 1 << 1;
const CR0_EMULATION: u64 = 1 << 2;
const CR0_TASK_SWITCHED: u64 = 1 << 3;
const CR0_NUMERIC_ERROR: u64 = 1 << 5;
/// Bit of CR0: the kernel cannot write to pages that are read-only.
pub const CR0_WRITE_PROTECT: u64 = 1 << 16;

const CR4_PHYSICAL_EXTENSION: u64 = 1 << 5;
const CR4_MACHINE_CHECK: u64 = 1 << 6;
const CR4_GLOBAL: u64 = 1 << 7;
const CR4_FXSAVE: u64 = 1 << 9;
const CR4_SIMD_EXCEPTIONS: u64 = 1 << 10;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_PCID: u64 = 1 << 17;
const CR4_XSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Turns on features that the final page tables need: no-execute, write protection for the kernel.
pub fn enable() {
    // SAFETY: every processor with long mode has EFER; NX and SYSCALL were required.
    unsafe { wrmsr(EFER, rdmsr(EFER) | EFER_SYSCALL | EFER_NO_EXECUTE) };
    // SAFETY: PAT was required; these are its values after reset, on which the page-table flags rely.
    unsafe { wrmsr(PAT, PAT_DEFAULT) };
    let cr0 = read_cr0() & !(CR0_EMULATION | CR0_TASK_SWITCHED);
    // SAFETY: bits that every 64-bit processor has.
    unsafe {
        write_cr0(cr0 | CR0_MONITOR | CR0_NUMERIC_ERROR | CR0_WRITE_PROTECT);
    }
}

/// Turns on the rest, once the final page tables and the descriptor tables are in use.
pub fn enable_late() {
    let found = *features();
    let wanted = [
        (true, CR4_PHYSICAL_EXTENSION | CR4_FXSAVE | CR4_SIMD_EXCEPTIONS),
        (!found.isolates, CR4_GLOBAL),
        (bit(leaf(1, 0).edx, 7), CR4_MACHINE_CHECK),
        (found.umip, CR4_UMIP),
        (found.smep, CR4_SMEP),
        (found.smap, CR4_SMAP),
        (found.xsave, CR4_XSAVE),
        (found.fsgsbase, CR4_FSGSBASE),
        (found.pcid, CR4_PCID),
    ];
    let cr4 = wanted.iter().filter(|(present, _)| *present).fold(0, |all, (_, bits)| all | bits);
    // SAFETY: CPUID names every bit; CR3 holds a page-aligned address, as CR4.PCIDE wants; no kernel page is a
    // user page except the info page, which the kernel reaches by another address.
    unsafe { write_cr4(cr4) };
    debug_assert_eq!(read_cr4(), cr4);
    // SAFETY: see `Once`.
    unsafe { (*FEATURES.0.get()).mxcsr_mask = extended::mxcsr_mask() };
    if found.xsave {
        // SAFETY: CR4.OSXSAVE is on, and the mask holds only components that leaf 0xd offers.
        unsafe { xsetbv(0, found.xsave_mask) };
        // SAFETY: see `Once`. Leaf 0xd gives the size for what XCR0 turned on.
        unsafe { (*FEATURES.0.get()).fpu_area_bytes = leaf(0xd, 0).ebx.max(FXSAVE_BYTES + 64) };
    }
}

/// Bytes as text, without their padding.
struct Padded<'a>(&'a [u8]);

impl fmt::Display for Padded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        f.write_str(core::str::from_utf8(&self.0[..end]).unwrap_or("?").trim())
    }
}

/// Names, with "no" before those that are absent.
struct Choices<'a>(&'a [(bool, &'static str)]);

impl fmt::Display for Choices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (index, (present, name)) in self.0.iter().enumerate() {
            let (comma, no) = (if index > 0 { ", " } else { "" }, if *present { "" } else { "no " });
            write!(f, "{comma}{no}{name}")?;
        }
        Ok(())
    }
}

/// Prints the features that are used.
pub fn describe() {
    let found = features();
    kprintln!("tern: cpu       {} {}", Padded(&found.vendor), Padded(&found.model));
    let protection = [(found.smep, "smep"), (found.smap, "smap"), (found.umip, "umip")];
    kprintln!("tern: protect   nx, {}", Choices(&protection));
    let tagged = match found {
        Features { isolates: true, .. } => "flushed at each entry and exit",
        Features { pcid: true, .. } => "tagged with pcid",
        _ => "no pcid, flushed at each switch",
    };
    kprintln!("tern: tlb       {tagged}");
    let how = if found.xsave { "xsave" } else { "fxsave, no xsave" };
    let avx = if bit(found.xsave_mask as u32, 2) { "avx" } else { "no avx" };
    kprintln!("tern: fpu       {how}, {avx}, {} bytes", found.fpu_area_bytes);
}
