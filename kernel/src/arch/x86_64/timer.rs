//! Time: the time-stamp counter as clock, the local APIC timer as alarm.
//!
//! The rate of the counter is measured against a clock of known rate, or taken from CPUID where both agree to one
//! percent: CPUID is exact where it is true, but emulators are known to repeat the figures of the processor that
//! they imitate. `ns = (tsc - start) * tsc_to_ns >> 32`, the same formula that users apply to the info page. Intel
//! SDM volume 3, 19.17 and 12.5.4.

use super::acpi::{Platform, PmTimer};
use super::apic::{self, TimerMode};
use super::cpu::features;
use super::instructions::{cpuid, inb, inl, outb, rdtsc, wrmsr};
use super::paging::map_device;
use crate::kprintln;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static TSC_HZ: AtomicU64 = AtomicU64::new(0);
static TSC_START: AtomicU64 = AtomicU64::new(0);
/// Rates, as fractions of 2³².
static TSC_TO_NS: AtomicU64 = AtomicU64::new(0);
static NS_TO_TSC: AtomicU64 = AtomicU64::new(0);
static TSC_TO_COUNT: AtomicU64 = AtomicU64::new(0);
/// Whether the alarm compares with the time-stamp counter.
static DEADLINE: AtomicBool = AtomicBool::new(false);

const SECOND_NS: u64 = 1_000_000_000;
const DEADLINE_REGISTER: u32 = 0x6e0;

/// The constants of the clock, for the info page.
pub struct Scale {
    /// Ticks per second.
    pub tsc_hz: u64,
    /// The counter when the clock stood at 0.
    pub tsc_start: u64,
    /// Nanoseconds per tick, as a fraction of 2³².
    pub tsc_to_ns: u64,
}

/// The constants of the clock.
pub fn scale() -> Scale {
    Scale {
        tsc_hz: TSC_HZ.load(Relaxed),
        tsc_start: TSC_START.load(Relaxed),
        tsc_to_ns: TSC_TO_NS.load(Relaxed),
    }
}

const fn multiply(value: u64, fraction: u64) -> u64 {
    ((value as u128 * fraction as u128) >> 32) as u64
}

/// `numerator / denominator` as a fraction of 2³².
const fn fraction(numerator: u64, denominator: u64) -> u64 {
    (((numerator as u128) << 32) / denominator as u128) as u64
}

/// Nanoseconds since the kernel started.
#[inline]
pub fn now_ns() -> u64 {
    multiply(rdtsc().wrapping_sub(TSC_START.load(Relaxed)), TSC_TO_NS.load(Relaxed))
}

/// Sets the alarm: an interrupt on [`TIMER_VECTOR`](super::tables::TIMER_VECTOR) at `deadline_ns`, or at once if that
/// has passed, or earlier if it is too far away to be counted. One alarm exists; a new one replaces it.
pub fn arm(deadline_ns: u64) {
    let ticks = multiply(deadline_ns, NS_TO_TSC.load(Relaxed)).min(u64::MAX >> 1);
    // A tick is added, so that rounding does not end it early.
    let deadline = TSC_START.load(Relaxed).saturating_add(ticks + 1);
    if DEADLINE.load(Relaxed) {
        // SAFETY: the processor offers the deadline mode. 0 would mean no alarm, and `deadline` is not 0.
        unsafe { wrmsr(DEADLINE_REGISTER, deadline) };
    } else {
        let count = multiply(deadline.saturating_sub(rdtsc()).min(1 << 40), TSC_TO_COUNT.load(Relaxed));
        apic::set_timer_count(count.clamp(1, u32::MAX.into()) as u32);
    }
}

/// Cancels the alarm. An interrupt that is already pending still comes.
pub fn disarm() {
    if DEADLINE.load(Relaxed) {
        // SAFETY: the processor offers the deadline mode.
        unsafe { wrmsr(DEADLINE_REGISTER, 0) };
    } else {
        apic::set_timer_count(0);
    }
}

/// Waits that long; for the boot only.
pub fn spin_ns(ns: u64) {
    let start = rdtsc();
    let ticks = multiply(ns, NS_TO_TSC.load(Relaxed));
    while rdtsc().wrapping_sub(start) < ticks {
        pause();
    }
}

/// Spends some instructions that access no device: emulators pay dearly for those that do.
fn pause() {
    for step in 0..200u32 {
        core::hint::black_box(step);
    }
}

/// Measures all rates and starts the clock. `None`: the machine has no clock of known rate.
pub fn init(platform: &Platform) -> Option<()> {
    let (tsc_hz, source) = tsc_rate(platform)?;
    TSC_HZ.store(tsc_hz, Relaxed);
    TSC_TO_NS.store(fraction(SECOND_NS, tsc_hz), Relaxed);
    NS_TO_TSC.store(fraction(tsc_hz, SECOND_NS), Relaxed);
    TSC_START.store(rdtsc(), Relaxed);

    let alarm = if features().tsc_deadline {
        DEADLINE.store(true, Relaxed);
        apic::set_timer_mode(TimerMode::Deadline);
        // The deadline register must not be written before the mode is; a store to the APIC's memory may be late.
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        "tsc deadline"
    } else {
        TSC_TO_COUNT.store(count_rate(), Relaxed);
        apic::set_timer_mode(TimerMode::OneShot);
        "apic count, no tsc deadline"
    };
    let invariant = if features().invariant_tsc { "invariant" } else { "not invariant" };
    let (mhz, khz) = (tsc_hz / 1_000_000, tsc_hz / 1000 % 1000);
    kprintln!("tern: clock     tsc {mhz}.{khz:03} MHz by {source}, {invariant}; alarm by {alarm}");
    Some(())
}

/// Ticks of the local APIC timer per tick of the time-stamp counter, as a fraction of 2³².
fn count_rate() -> u64 {
    apic::set_timer_mode(TimerMode::Off);
    apic::set_timer_count(u32::MAX);
    let (tsc0, count0) = sample(|| apic::timer_count().into());
    spin_ns(MEASURE_NS);
    let (tsc1, count1) = sample(|| apic::timer_count().into());
    apic::set_timer_count(0);
    fraction(count0.saturating_sub(count1), (tsc1 - tsc0).max(1))
}

/// How long one measurement takes.
const MEASURE_NS: u64 = 5_000_000;

/// A clock of known rate.
struct Reference {
    name: &'static str,
    hz: u64,
    /// Highest value before it starts again from 0.
    max: u64,
    device: Device,
}

enum Device {
    Hpet(u64),
    PmTimer(u16),
    Pit,
}

impl Device {
    fn read(&self) -> u64 {
        const HPET_COUNTER: u64 = 0xf0;
        match *self {
            // SAFETY: `hpet` mapped the registers; reading the counter changes nothing.
            Device::Hpet(base) => unsafe { ((base + HPET_COUNTER) as *const u32).read_volatile() }.into(),
            // SAFETY: ACPI says that this port is the timer.
            Device::PmTimer(port) => unsafe { inl(port) }.into(),
            // SAFETY: the ports of the interval timer. Latching freezes the value until both bytes are read.
            Device::Pit => unsafe {
                outb(PIT_CONTROL, 0);
                let (low, high) = (inb(PIT_CHANNEL0), inb(PIT_CHANNEL0));
                // It counts down.
                u64::from(!u16::from_le_bytes([low, high]))
            },
        }
    }
}

const PIT_CHANNEL0: u16 = 0x40;
const PIT_CONTROL: u16 = 0x43;

fn hpet(address: u64) -> Option<Reference> {
    const CAPABILITIES: u64 = 0;
    const CONFIGURATION: u64 = 0x10;
    const FEMTOSECONDS: u64 = 1_000_000_000_000_000;
    let base = map_device(address, 1);
    // SAFETY: the page was just mapped, and ACPI says that the HPET is there.
    let period = unsafe { ((base + CAPABILITIES) as *const u64).read_volatile() } >> 32;
    if period == 0 || period > 100_000_000 {
        return None;
    }
    // SAFETY: as above. Counting on; interrupts in place of the old timers off.
    unsafe { ((base + CONFIGURATION) as *mut u64).write_volatile(1) };
    let max = u32::MAX.into();
    Some(Reference { name: "hpet", hz: FEMTOSECONDS / period, max, device: Device::Hpet(base) })
}

fn pm_timer(timer: PmTimer) -> Reference {
    let max = if timer.wide { u32::MAX.into() } else { (1 << 24) - 1 };
    Reference { name: "acpi timer", hz: 3_579_545, max, device: Device::PmTimer(timer.port) }
}

/// Channel 0: the only one that counts on every machine without a gate. Its interrupt line is masked.
fn pit() -> Reference {
    // SAFETY: the ports of the interval timer or nothing. Mode 2, 65536 ticks a round.
    unsafe {
        outb(PIT_CONTROL, 0x34);
        outb(PIT_CHANNEL0, 0);
        outb(PIT_CHANNEL0, 0);
    }
    Reference { name: "interval timer", hz: 1_193_182, max: u16::MAX.into(), device: Device::Pit }
}

/// Reads a clock together with the time-stamp counter: of several tries the one that took least time.
fn sample(read: impl Fn() -> u64) -> (u64, u64) {
    let attempt = || {
        let before = rdtsc();
        let value = read();
        let after = rdtsc();
        (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), value)
    };
    let mut best = attempt();
    for _ in 0..4 {
        let next = attempt();
        if next.0 < best.0 {
            best = next;
        }
    }
    (best.1, best.2)
}

impl Reference {
    /// Ticks of the time-stamp counter per second by this clock, or nothing if it stands still. The middle of three
    /// measurements, because an emulator may be interrupted in any one.
    fn measure(&self) -> Option<u64> {
        let mut rates = [self.measure_once()?, self.measure_once()?, self.measure_once()?];
        rates.sort_unstable();
        Some(rates[1])
    }

    fn measure_once(&self) -> Option<u64> {
        /// Polls; a clock that has not moved enough by then stands still.
        const PATIENCE: u32 = 2_000_000;
        let wanted = self.hz * MEASURE_NS / SECOND_NS;
        let (tsc0, value0) = sample(|| self.device.read());
        for _ in 0..PATIENCE {
            pause();
            if self.device.read().wrapping_sub(value0) & self.max >= wanted {
                let (tsc1, value1) = sample(|| self.device.read());
                let ticks = value1.wrapping_sub(value0) & self.max;
                let rate = (tsc1 - tsc0) as u128 * self.hz as u128 / ticks.max(1) as u128;
                return u64::try_from(rate).ok().filter(|&rate| rate != 0);
            }
        }
        None
    }
}

/// Rate of the time-stamp counter, and the source of the figure.
fn tsc_rate(platform: &Platform) -> Option<(u64, &'static str)> {
    let references = [platform.hpet.and_then(hpet), platform.pm_timer.map(pm_timer)];
    let measured = references
        .into_iter()
        .flatten()
        .find_map(|reference| Some((reference.measure()?, reference.name)))
        .or_else(|| Some((pit().measure()?, "interval timer")));
    match (measured, told_rate()) {
        (Some((rate, _)), Some((told, source))) if told.abs_diff(rate) <= rate / 100 => Some((told, source)),
        (Some(measured), _) => Some(measured),
        (None, told) => told,
    }
}

/// Rate of the time-stamp counter by CPUID, and the source of the figure.
fn told_rate() -> Option<(u64, &'static str)> {
    const HYPERVISOR: u32 = 0x4000_0000;
    const HYPERVISOR_RATE: u32 = 0x4000_0010;
    let max = cpuid(0, 0).eax;
    if max >= 0x15 {
        let ratio = cpuid(0x15, 0);
        if ratio.eax != 0 && ratio.ebx != 0 && ratio.ecx != 0 {
            return Some((ratio.ecx as u64 * ratio.ebx as u64 / ratio.eax as u64, "cpuid"));
        }
    }
    if features().hypervisor && cpuid(HYPERVISOR, 0).eax >= HYPERVISOR_RATE {
        let khz = cpuid(HYPERVISOR_RATE, 0).eax;
        if khz != 0 {
            return Some((khz as u64 * 1000, "hypervisor"));
        }
    }
    None
}
