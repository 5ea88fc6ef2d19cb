//! Interrupt controllers: the local APIC, the I/O APICs, and the old pair of 8259s, which is silenced.
//!
//! An interrupt *line* is a number below [`INTERRUPT_LINES`]: 0–15 are the ISA interrupts, wherever the machine
//! wired them, and from 16 on a line is the I/O APIC input of that number. Line n arrives at the boot CPU as vector
//! 32 + n. Every line starts masked. A level-triggered line must be masked before it is acknowledged, and stay so
//! until its driver has served the device. Intel SDM volume 3, chapter 12; 82093AA data sheet.

use super::acpi::{IoApic, IsaLine, Platform};
use super::cpu::features;
use super::instructions::{outb, rdmsr, wrmsr};
use super::paging::map_device;
use super::tables::{LEGACY_VECTOR, LINE_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR};
use crate::kprintln;
use crate::param::INTERRUPT_LINES;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Registers of the local APIC, by their offset in memory.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Register {
    Id = 0x20,
    TaskPriority = 0x80,
    EndOfInterrupt = 0xb0,
    Spurious = 0xf0,
    ErrorStatus = 0x280,
    Command = 0x300,
    CommandTarget = 0x310,
    LocalTimer = 0x320,
    LocalPin0 = 0x350,
    LocalPin1 = 0x360,
    LocalError = 0x370,
    InitialCount = 0x380,
    CurrentCount = 0x390,
    Divide = 0x3e0,
}

const APIC_BASE: u32 = 0x1b;
const APIC_BASE_ENABLE: u64 = 1 << 11;
const APIC_BASE_X2APIC: u64 = 1 << 10;
const X2APIC_FIRST: u32 = 0x800;

/// Address of the local APIC's registers; 0 if they are model-specific registers (x2APIC).
static LOCAL: AtomicU64 = AtomicU64::new(0);

fn local_read(register: Register) -> u32 {
    match LOCAL.load(Relaxed) {
        // SAFETY: `init` turned the x2APIC on.
        0 => unsafe { rdmsr(X2APIC_FIRST + register as u32 / 16) as u32 },
        // SAFETY: `init` mapped the registers.
        base => unsafe { ((base + register as u64) as *const u32).read_volatile() },
    }
}

fn local_write(register: Register, value: u32) {
    match LOCAL.load(Relaxed) {
        // SAFETY: as for `local_read`; the callers in this file know what the register does.
        0 => unsafe { wrmsr(X2APIC_FIRST + register as u32 / 16, value.into()) },
        // SAFETY: as above.
        base => unsafe { ((base + register as u64) as *mut u32).write_volatile(value) },
    }
}

/// The identifier of this processor's local APIC.
pub fn local_id() -> u32 {
    let id = local_read(Register::Id);
    if LOCAL.load(Relaxed) == 0 { id } else { id >> 24 }
}

const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const ACTIVE_LOW: u32 = 1 << 13;
const DELIVER_NMI: u32 = 4 << 8;

/// Silences everything old, turns the local APIC on and masks every line.
pub fn init(platform: &Platform) {
    silence_8259();
    init_local(platform.local_apic);
    for io_apic in platform.io_apics.iter() {
        init_io_apic(io_apic, platform);
    }
    let how = if LOCAL.load(Relaxed) == 0 { "x2apic" } else { "xapic, no x2apic" };
    let lines = LINES.iter().filter(|line| line.window.load(Relaxed) != 0).count();
    kprintln!("tern: irq       {how}, {lines} lines on {} io apic", platform.io_apics.len());
}

/// Masks the two 8259s. They can still send their lowest-priority vector, so they get vectors that nobody uses.
fn silence_8259() {
    const FIRST: u16 = 0x20;
    const SECOND: u16 = 0xa0;
    // SAFETY: on every PC these ports are the 8259s or nothing; no driver exists yet.
    unsafe {
        for (port, vector, cascade) in [(FIRST, LEGACY_VECTOR, 4), (SECOND, LEGACY_VECTOR + 8, 2)] {
            outb(port, 0x11);
            outb(port + 1, vector);
            outb(port + 1, cascade);
            outb(port + 1, 1);
            outb(port + 1, 0xff);
        }
    }
}

fn init_local(address: u64) {
    // SAFETY: the processor has an APIC, so it has this register.
    let base = unsafe { rdmsr(APIC_BASE) };
    // The firmware may have turned the x2APIC on already; there is no way back from it without a reset.
    if features().x2apic || base & APIC_BASE_X2APIC != 0 {
        // SAFETY: CPUID offers the x2APIC. The two steps are the allowed order.
        unsafe {
            wrmsr(APIC_BASE, base | APIC_BASE_ENABLE);
            wrmsr(APIC_BASE, base | APIC_BASE_ENABLE | APIC_BASE_X2APIC);
        }
    } else {
        // SAFETY: as above.
        unsafe { wrmsr(APIC_BASE, base | APIC_BASE_ENABLE) };
        LOCAL.store(map_device(address, 1), Relaxed);
    }
    for (register, value) in [
        (Register::TaskPriority, 0),
        (Register::LocalTimer, MASKED),
        (Register::LocalPin0, MASKED),
        (Register::LocalPin1, DELIVER_NMI),
        (Register::LocalError, MASKED),
        (Register::ErrorStatus, 0),
        (Register::Spurious, 1 << 8 | SPURIOUS_VECTOR as u32),
        (Register::EndOfInterrupt, 0),
    ] {
        local_write(register, value);
    }
}

/// A line: the I/O APIC that it ends at, and the low half of its entry there.
struct Line {
    /// Address of the I/O APIC's registers; 0 if the machine does not have the line.
    window: AtomicU64,
    register: AtomicU32,
    entry: AtomicU32,
}

static LINES: [Line; INTERRUPT_LINES] = [const {
    Line { window: AtomicU64::new(0), register: AtomicU32::new(0), entry: AtomicU32::new(MASKED) }
}; INTERRUPT_LINES];

fn io_read(window: u64, register: u32) -> u32 {
    // SAFETY: `init_io_apic` mapped the registers; only the boot CPU uses them.
    unsafe {
        (window as *mut u32).write_volatile(register);
        ((window + 0x10) as *const u32).read_volatile()
    }
}

fn io_write(window: u64, register: u32, value: u32) {
    // SAFETY: as for `io_read`.
    unsafe {
        (window as *mut u32).write_volatile(register);
        ((window + 0x10) as *mut u32).write_volatile(value);
    }
}

fn init_io_apic(io_apic: &IoApic, platform: &Platform) {
    const VERSION: u32 = 1;
    const FIRST_ENTRY: u32 = 0x10;
    let window = map_device(io_apic.address, 1);
    let inputs = (io_read(window, VERSION) >> 16 & 0xff) + 1;
    for pin in 0..inputs {
        let register = FIRST_ENTRY + 2 * pin;
        io_write(window, register, MASKED);
        io_write(window, register + 1, local_id() << 24);
        let Some((line, wiring)) = line_of(io_apic.first_input + pin, &platform.isa) else { continue };
        let polarity = if wiring.low { ACTIVE_LOW } else { 0 };
        let trigger = if wiring.level { LEVEL } else { 0 };
        let entry = MASKED | polarity | trigger | (LINE_VECTOR as u32 + line as u32);
        LINES[line].register.store(register, Relaxed);
        LINES[line].entry.store(entry, Relaxed);
        LINES[line].window.store(window, Relaxed);
        io_write(window, register, entry);
    }
}

/// Line of an I/O APIC input. An ISA line that was wired to another input leaves its own number unused.
fn line_of(input: u32, isa: &[IsaLine]) -> Option<(usize, IsaLine)> {
    // An entry that differs from its index was given by the firmware, so it wins over one that is merely assumed.
    let given =
        isa.iter().enumerate().find(|(line, wiring)| wiring.input == input && *line != input as usize);
    let same = isa.iter().enumerate().find(|(_, wiring)| wiring.input == input);
    if let Some((line, wiring)) = given.or(same) {
        return Some((line, *wiring));
    }
    let line = input as usize;
    // Inputs beyond the ISA's are PCI interrupts: level-triggered, active low.
    (isa.len()..INTERRUPT_LINES).contains(&line).then_some((line, IsaLine { input, low: true, level: true }))
}

fn write_entry(line: u8, change: impl FnOnce(u32) -> u32) {
    let Some(line) = LINES.get(line as usize) else { return };
    let entry = change(line.entry.load(Relaxed));
    line.entry.store(entry, Relaxed);
    match line.window.load(Relaxed) {
        0 => {}
        window => io_write(window, line.register.load(Relaxed), entry),
    }
}

/// Whether the machine has this line.
pub fn irq_exists(line: u8) -> bool {
    LINES.get(line as usize).is_some_and(|line| line.window.load(Relaxed) != 0)
}

/// Whether the line stays asserted until its device is served.
pub fn irq_is_level(line: u8) -> bool {
    LINES.get(line as usize).is_some_and(|line| line.entry.load(Relaxed) & LEVEL != 0)
}

/// Address and word of the message by which a device fires a line that has no wire: physical, edge-triggered, to the boot processor.
/// `None` for lines of pins and of the ISA, and on a machine where a message cannot name that processor. Intel SDM volume 3, section 12.11.
pub fn irq_message(line: u8) -> Option<(u64, u32)> {
    const FIRST: u64 = 0xfee0_0000;
    const ISA_LINES: u8 = 16;
    let is_free = (ISA_LINES..INTERRUPT_LINES as u8).contains(&line) && !irq_exists(line);
    let target = u8::try_from(local_id()).ok()?;
    is_free.then_some((FIRST | u64::from(target) << 12, u32::from(LINE_VECTOR) + u32::from(line)))
}

/// Lets the line interrupt.
pub fn irq_unmask(line: u8) {
    write_entry(line, |entry| entry & !MASKED);
}

/// Keeps the line from interrupting.
pub fn irq_mask(line: u8) {
    write_entry(line, |entry| entry | MASKED);
}

/// Acknowledges the interrupt being served; exactly once for each, never for a spurious one.
#[inline]
pub fn irq_acknowledge() {
    local_write(Register::EndOfInterrupt, 0);
}

/// Modes of the local APIC timer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TimerMode {
    /// Off.
    Off,
    /// Interrupt when the count reaches zero.
    OneShot,
    /// Interrupt when the time-stamp counter reaches a value.
    Deadline,
}

/// Chooses how the local APIC timer works.
pub fn set_timer_mode(mode: TimerMode) {
    const UNDIVIDED: u32 = 0b1011;
    local_write(Register::Divide, UNDIVIDED);
    let mode = match mode {
        TimerMode::Off => MASKED,
        TimerMode::OneShot => 0,
        TimerMode::Deadline => 2 << 17,
    };
    local_write(Register::LocalTimer, mode | TIMER_VECTOR as u32);
}

/// Starts the local APIC timer at a count; 0 stops it.
#[inline]
pub fn set_timer_count(count: u32) {
    local_write(Register::InitialCount, count);
}

/// Count that the local APIC timer has reached, downwards.
pub fn timer_count() -> u32 {
    local_read(Register::CurrentCount)
}

/// Messages that start another processor.
#[derive(Clone, Copy)]
pub enum Start {
    /// Reset.
    Init,
    /// Run from this page below 1 MiB.
    Page(u8),
}

/// Sends a start message to a processor.
pub fn send_start(target: u32, start: Start) {
    const INIT: u32 = 5 << 8;
    const STARTUP: u32 = 6 << 8;
    const ASSERT: u32 = 1 << 14;
    const PENDING: u32 = 1 << 12;
    const PATIENCE: u32 = 100_000;
    let command = match start {
        Start::Init => INIT | ASSERT,
        Start::Page(page) => STARTUP | ASSERT | page as u32,
    };
    if LOCAL.load(Relaxed) == 0 {
        // SAFETY: the x2APIC is on. The command register is one register of 64 bits there.
        unsafe {
            wrmsr(X2APIC_FIRST + Register::Command as u32 / 16, (target as u64) << 32 | command as u64)
        };
        return;
    }
    local_write(Register::CommandTarget, target << 24);
    local_write(Register::Command, command);
    for _ in 0..PATIENCE {
        if local_read(Register::Command) & PENDING == 0 {
            return;
        }
    }
}
