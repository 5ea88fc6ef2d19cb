//! The ACPI tables, as far as the kernel needs them: processors, interrupt controllers, timers.
//!
//! Only static tables; the kernel runs no AML. Works on borrowed bytes, so it is tested on the host with hostile
//! ones; nothing is believed before its length and checksum fit. ACPI specification 6.5, chapter 5.2.

use core::ops::Deref;

/// Number of processors that are counted at most.
pub const CPU_MAX: usize = 256;
/// Number of I/O APICs that are used at most.
pub const IO_APIC_MAX: usize = 8;
/// Interrupt lines of the ISA bus.
pub const ISA_LINES: usize = 16;

/// Devices of the machine that the kernel uses, as ACPI describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Physical address of the local APICs.
    pub local_apic: u64,
    /// Local APIC identifiers of all usable processors.
    pub cpus: List<u32, CPU_MAX>,
    /// The I/O APICs.
    pub io_apics: List<IoApic, IO_APIC_MAX>,
    /// Wiring of each ISA interrupt.
    pub isa: [IsaLine; ISA_LINES],
    /// The ACPI power management timer.
    pub pm_timer: Option<PmTimer>,
    /// Physical address of the HPET.
    pub hpet: Option<u64>,
}

/// An I/O APIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoApic {
    /// Physical address.
    pub address: u64,
    /// Number of its first input, counted over all I/O APICs.
    pub first_input: u32,
}

/// How an ISA interrupt is wired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsaLine {
    /// Number of the I/O APIC input.
    pub input: u32,
    /// Whether it is active while low.
    pub low: bool,
    /// Whether it is asserted until served, as opposed to a pulse.
    pub level: bool,
}

/// The power management timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmTimer {
    /// I/O port.
    pub port: u16,
    /// Whether it counts to 2³² and not to 2²⁴.
    pub wide: bool,
}

/// A list of bounded length; items beyond it are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<T, const MAX: usize> {
    items: [T; MAX],
    len: usize,
}

impl<T: Copy + Default + PartialEq, const MAX: usize> List<T, MAX> {
    fn new() -> Self {
        List { items: [T::default(); MAX], len: 0 }
    }

    fn push(&mut self, item: T) {
        if self.len < MAX && !self.contains(&item) {
            self.items[self.len] = item;
            self.len += 1;
        }
    }
}

impl<T, const MAX: usize> Deref for List<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl Platform {
    /// Devices that every PC has, for a machine that does not describe itself.
    #[cfg_attr(test, expect(dead_code))]
    pub fn legacy() -> Platform {
        let mut platform = Platform::empty();
        platform.io_apics.push(IoApic { address: 0xfec0_0000, first_input: 0 });
        platform
    }

    fn empty() -> Platform {
        Platform {
            local_apic: 0xfee0_0000,
            cpus: List::new(),
            io_apics: List::new(),
            isa: core::array::from_fn(|line| IsaLine { input: line as u32, low: false, level: false }),
            pm_timer: None,
            hpet: None,
        }
    }
}

/// The root table: its address, and whether its pointers have 64 bits.
pub fn root(pointer: &[u8]) -> Option<(u64, bool)> {
    const OLD_LEN: usize = 20;
    const NEW_LEN: usize = 36;
    if !pointer.starts_with(b"RSD PTR ") || !sums_to_zero(pointer.get(..OLD_LEN)?) {
        return None;
    }
    let new = pointer.get(..NEW_LEN).filter(|new| new[15] >= 2 && sums_to_zero(new));
    match new.and_then(|new| word64(new, 24)) {
        Some(wide) if wide != 0 => Some((wide, true)),
        _ => Some((word32(pointer, 16)?.into(), false)),
    }
}

/// Reads all tables that hang on a root pointer. `read` gives bytes of physical memory.
pub fn discover<B: Deref<Target = [u8]>>(
    pointer: &[u8],
    read: impl Fn(u64, u64) -> Option<B>,
) -> Result<Platform, &'static str> {
    let (at, wide) = root(pointer).ok_or("damaged root pointer")?;
    let directory = table(at, &read).ok_or("damaged root table")?;
    let mut platform = Platform::empty();
    for entry in directory[HEADER..].chunks_exact(if wide { 8 } else { 4 }) {
        let at = if wide { word64(entry, 0) } else { word32(entry, 0).map(u64::from) };
        let Some(table) = at.and_then(|at| table(at, &read)) else { continue };
        match &table[..4] {
            b"APIC" => platform.read_interrupts(&table),
            b"FACP" => platform.read_fixed(&table),
            b"HPET" => platform.hpet = generic_address(&table, 40, MEMORY_SPACE),
            _ => {}
        }
    }
    if platform.io_apics.is_empty() { Err("no I/O APIC listed") } else { Ok(platform) }
}

const HEADER: usize = 36;
/// Longest table that is believed, in bytes; damaged lengths are greater.
const TABLE_MAX: u64 = 1 << 20;

/// The whole of a table whose length and checksum fit.
fn table<B: Deref<Target = [u8]>>(at: u64, read: &impl Fn(u64, u64) -> Option<B>) -> Option<B> {
    let len = word32(&read(at, HEADER as u64)?, 4)?.into();
    if len < HEADER as u64 || len > TABLE_MAX {
        return None;
    }
    read(at, len).filter(|table| sums_to_zero(table))
}

const MEMORY_SPACE: u8 = 0;
const PORT_SPACE: u8 = 1;

/// The address in a "generic address structure", if it lies in the wanted space.
fn generic_address(table: &[u8], at: usize, space: u8) -> Option<u64> {
    if *table.get(at)? != space {
        return None;
    }
    word64(table, at + 4).filter(|&address| address != 0)
}

impl Platform {
    /// The "multiple APIC description table".
    fn read_interrupts(&mut self, table: &[u8]) {
        const LOCAL_APIC: u8 = 0;
        const IO_APIC: u8 = 1;
        const OVERRIDE: u8 = 2;
        const LOCAL_APIC_ADDRESS: u8 = 5;
        const LOCAL_X2APIC: u8 = 9;
        const ENABLED: u32 = 1;

        if let Some(address) = word32(table, 36) {
            self.local_apic = address.into();
        }
        let mut rest = table.get(44..).unwrap_or(&[]);
        while let [kind, len, ..] = *rest {
            let Some(entry) = rest.get(..len as usize).filter(|entry| entry.len() >= 2) else { return };
            rest = &rest[len as usize..];
            let (word, byte) = (|at| word32(entry, at), |at| entry.get(at).copied());
            match kind {
                LOCAL_APIC => {
                    if let (Some(id), Some(flags)) = (byte(3), word(4))
                        && flags & ENABLED != 0
                    {
                        self.cpus.push(id.into());
                    }
                }
                LOCAL_X2APIC => {
                    if let (Some(id), Some(flags)) = (word(4), word(8))
                        && flags & ENABLED != 0
                    {
                        self.cpus.push(id);
                    }
                }
                IO_APIC => {
                    if let (Some(address), Some(first_input)) = (word(4), word(8)) {
                        self.io_apics.push(IoApic { address: address.into(), first_input });
                    }
                }
                OVERRIDE => {
                    if let (Some(line), Some(input), Some(flags)) = (byte(3), word(4), byte(8))
                        && let Some(isa) = self.isa.get_mut(line as usize)
                    {
                        *isa = IsaLine { input, low: flags & 3 == 3, level: flags >> 2 & 3 == 3 };
                    }
                }
                LOCAL_APIC_ADDRESS => {
                    if let Some(address) = word64(entry, 4) {
                        self.local_apic = address;
                    }
                }
                _ => {}
            }
        }
    }

    /// The "fixed ACPI description table".
    fn read_fixed(&mut self, table: &[u8]) {
        const TIMER_LEN: usize = 91;
        const WIDE: u32 = 1 << 8;
        if table.get(TIMER_LEN) != Some(&4) {
            return;
        }
        let narrow = word32(table, 76).map(u64::from).filter(|&port| port != 0);
        let port = generic_address(table, 208, PORT_SPACE).or(narrow);
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { return };
        self.pm_timer =
            Some(PmTimer { port, wide: word32(table, 112).is_some_and(|flags| flags & WIDE != 0) });
    }
}

fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn fix_sum(bytes: &mut [u8], at: usize) {
        bytes[at] = 0;
        bytes[at] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    }

    fn make_table(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut table = name.to_vec();
        table.extend((HEADER as u32 + body.len() as u32).to_le_bytes());
        table.resize(HEADER, 0);
        table.extend(body);
        fix_sum(&mut table, 9);
        table
    }

    const MADT: u64 = 0x1100;
    const FADT: u64 = 0x1200;
    const HPET: u64 = 0x1400;
    const ROOT: u64 = 0x1040;

    /// A machine of one block of memory at 0x1000.
    fn machine() -> Vec<u8> {
        let mut pointer = b"RSD PTR \0TERN  \x02".to_vec();
        pointer.extend([0; 4]);
        pointer.extend(36u32.to_le_bytes());
        pointer.extend(ROOT.to_le_bytes());
        pointer.extend([0; 4]);
        fix_sum(&mut pointer[..20], 8);
        fix_sum(&mut pointer, 32);

        let mut madt = 0xfee0_0000u32.to_le_bytes().to_vec();
        madt.extend([1, 0, 0, 0]);
        madt.extend([0, 8, 0, 0, 1, 0, 0, 0]);
        madt.extend([0, 8, 1, 1, 1, 0, 0, 0]);
        madt.extend([0, 8, 2, 2, 0, 0, 0, 0]);
        madt.extend([1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]);
        madt.extend([2, 10, 0, 0, 2, 0, 0, 0, 0, 0]);
        madt.extend([2, 10, 0, 9, 9, 0, 0, 0, 0xd, 0]);
        madt.extend([9, 16, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);

        let mut fadt = std::vec![0; 244 - HEADER];
        fadt[76 - HEADER..80 - HEADER].copy_from_slice(&0x608u32.to_le_bytes());
        fadt[91 - HEADER] = 4;
        fadt[113 - HEADER] = 1;

        let mut hpet = std::vec![0; 20];
        hpet[8..16].copy_from_slice(&0xfed0_0000u64.to_le_bytes());

        let mut memory = std::vec![0; 0x1000];
        let mut put =
            |at: u64, bytes: &[u8]| memory[at as usize - 0x1000..][..bytes.len()].copy_from_slice(bytes);
        put(0x1000, &pointer);
        let directory: Vec<u8> =
            [MADT, FADT, HPET, 0, u64::MAX].iter().flat_map(|at| at.to_le_bytes()).collect();
        put(ROOT, &make_table(b"XSDT", &directory));
        put(MADT, &make_table(b"APIC", &madt));
        put(FADT, &make_table(b"FACP", &fadt));
        put(HPET, &make_table(b"HPET", &hpet));
        memory
    }

    fn explore(memory: &[u8]) -> Result<Platform, &'static str> {
        discover(memory, |at, len| {
            let at = usize::try_from(at.checked_sub(0x1000)?).ok()?;
            memory.get(at..at.checked_add(usize::try_from(len).ok()?)?)
        })
    }

    #[test]
    fn an_ordinary_machine() {
        let platform = explore(&machine()).unwrap();
        assert_eq!(*platform.cpus, [0, 1, 256]);
        assert_eq!(*platform.io_apics, [IoApic { address: 0xfec0_0000, first_input: 0 }]);
        assert_eq!(platform.isa[0], IsaLine { input: 2, low: false, level: false });
        assert_eq!(platform.isa[9], IsaLine { input: 9, low: false, level: true });
        assert_eq!(platform.isa[4], IsaLine { input: 4, low: false, level: false });
        assert_eq!(platform.pm_timer, Some(PmTimer { port: 0x608, wide: true }));
        assert_eq!(platform.hpet, Some(0xfed0_0000));
    }

    #[test]
    fn damage_never_panics() {
        let memory = machine();
        for at in 0..0x500 {
            for value in [0, 1, 2, 0x7f, 0xff] {
                let mut bad = memory.clone();
                bad[at] = value;
                let _ = explore(&bad);
                // Damage as before, but with sums that fit.
                for (table, sum) in [(ROOT, 9), (MADT, 9), (FADT, 9), (HPET, 9)] {
                    let start = (table - 0x1000) as usize;
                    let len = word32(&bad, start + 4).unwrap() as usize;
                    if len > 10
                        && let Some(bytes) = bad.get_mut(start..start.saturating_add(len))
                    {
                        fix_sum(bytes, sum);
                    }
                }
                let _ = explore(&bad);
            }
        }
        for len in 0..memory.len() {
            let _ = explore(&memory[..len]);
        }
    }

    #[test]
    fn what_does_not_sum_up_is_not_believed() {
        let mut memory = machine();
        memory[0x150] ^= 1;
        assert_eq!(explore(&memory), Err("no I/O APIC listed"));
        let mut memory = machine();
        memory[0x50] ^= 1;
        assert_eq!(explore(&memory), Err("damaged root table"));
        let mut memory = machine();
        memory[3] ^= 1;
        assert_eq!(explore(&memory), Err("damaged root pointer"));
    }
}
