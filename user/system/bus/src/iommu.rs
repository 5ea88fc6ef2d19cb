//! Spaces of devices: what a device reaches of memory, where there is an IOMMU. A function that somebody drives has a space of its own, in which
//! there is what the bus server gave for it, and nothing else. All others reach nothing.
//!
//! Tables are in a block of memory of their own, which is larger than any that a driver gets: so memory that a device may have been told of in an
//! earlier life of this server never becomes a table.

use crate::configuration::ConfigurationSpaces;
use crate::firmware::Firmware;
use acpi::dmar::{self, Bridges};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::spin_loop;
use pci::{Address, Function};
use rt::device::DeviceMemory;
use rt::frames::{Supply, Upstream};
use rt::sync::Mutex;
use rt::sys::{Fpage, Rights};
use rt::{println, time};
use vtd::{Domain, Fault, Hardware, REGISTERS_BYTES, Trouble, Unit};

/// Log2 of the bytes of all tables together. More than [`BYTES_MAX`](crate::claims::BYTES_MAX), so no driver's memory is as large.
const TABLES_LOG2: u32 = 21;

/// Size of a table, in bytes.
const PAGE: usize = 4096;

/// Where a driver's memory begins in its device's space. Each PC has memory there, so no bridge takes such an address for a device's.
const FIRST_ADDRESS: u64 = 1 << 20;

/// All IOMMUs.
#[derive(Debug, Default)]
pub struct Iommus {
    units: Vec<Unit<Machine>>,
    /// Before each function, in the order of the functions.
    before: Vec<Before>,
    /// Pages with their registers: first and end of each.
    registers: Vec<(u64, u64)>,
}

/// An IOMMU before a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    /// There is none, or one that never did anything: the function reaches all memory.
    Nothing,
    /// It is one of those that work, by its number.
    Unit(usize),
    /// Somebody has told it to translate, and it cannot be told anything else any more. So nobody knows what the function reaches.
    Unknown,
}

/// Space of a function.
#[derive(Debug)]
pub struct Space {
    unit: usize,
    domain: Domain,
    /// Where there is nothing yet.
    next: u64,
}

impl Iommus {
    /// Finds all that the firmware tells of, and lets no device reach any memory. All functions are silent.
    pub fn open(
        firmware: &mut Firmware,
        configuration: &ConfigurationSpaces,
        functions: &[Function],
    ) -> Iommus {
        let found = firmware.table(dmar::NAME).map(|table| dmar::units(&table)).unwrap_or_default();
        let registers = found.iter().map(|unit| (unit.registers, unit.registers + REGISTERS_BYTES as u64));
        let mut iommus = Iommus { registers: registers.collect(), ..Iommus::default() };
        // Place of each among those that work.
        let mut places = Vec::new();
        let tables = if found.is_empty() { None } else { Tables::new() };
        for unit in &found {
            let wanted = Fpage::memory(unit.registers, dmar::REGISTERS_LOG2, Rights::RW);
            let registers = DeviceMemory::map(wanted).map_err(|_| Trouble::Unsuitable);
            let was_on = registers.as_ref().is_ok_and(|registers| vtd::is_on(|at| registers.read_u32(at)));
            let machine = registers.and_then(|registers| {
                tables.clone().ok_or(Trouble::Exhausted).map(|tables| Machine { registers, tables })
            });
            match machine.and_then(Unit::open) {
                Ok(unit) => {
                    places.push(Before::Unit(iommus.units.len()));
                    iommus.units.push(unit);
                }
                Err(trouble) => {
                    println!("bus: the IOMMU at {:#x} is not used: {trouble}", unit.registers);
                    places.push(if was_on { Before::Unknown } else { Before::Nothing });
                }
            }
        }
        let before = functions.iter().map(|function| {
            let mut bridges = Behind(configuration);
            let unit = dmar::unit_of(&found, &mut bridges, function.address.parts());
            unit.map_or(Before::Nothing, |at| places[at])
        });
        iommus.before = before.collect();
        iommus
    }

    /// Pages with their registers, which are no device's: first and end of each.
    pub fn registers(&self) -> &[(u64, u64)] {
        &self.registers
    }

    /// Whether there is one before a function.
    pub fn is_before(&self, place: usize) -> bool {
        matches!(self.before.get(place), Some(Before::Unit(_)))
    }

    /// Whether there is none that works.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether a function may use memory: not if its IOMMU has stopped doing what it is told.
    pub fn allows(&self, place: usize) -> bool {
        match self.before.get(place) {
            Some(&Before::Unit(unit)) => self.units[unit].is_sound(),
            Some(Before::Unknown) => false,
            Some(Before::Nothing) | None => true,
        }
    }

    /// Lets a function reach a block of memory. Gives back the address by which it does: its physical one if there is no IOMMU before it.
    pub fn give(
        &mut self,
        place: usize,
        address: Address,
        space: &mut Option<Space>,
        physical: u64,
        log2: u32,
    ) -> Result<u64, Trouble> {
        let number = match self.before.get(place) {
            Some(&Before::Unit(number)) => number,
            Some(Before::Unknown) => return Err(Trouble::Unsuitable),
            Some(Before::Nothing) | None => return Ok(physical),
        };
        let unit = &mut self.units[number];
        let space = match space {
            Some(space) => space,
            None => {
                space.insert(Space { unit: number, domain: unit.attach(address.0)?, next: FIRST_ADDRESS })
            }
        };
        let at = space.next.next_multiple_of(1 << log2);
        unit.map(&mut space.domain, at, physical, log2)?;
        space.next = at + (1 << log2);
        Ok(at)
    }

    /// Takes everything back that a function reached. If this fails it may still reach it.
    pub fn take_back(&mut self, space: Space) -> Result<(), Trouble> {
        self.units[space.unit].detach(space.domain)
    }

    /// Accesses that were refused.
    pub fn faults(&mut self, mut tell: impl FnMut(Fault)) {
        self.units.iter_mut().for_each(|unit| unit.faults(&mut tell));
    }
}

/// Bridges by their configuration spaces.
struct Behind<'a>(&'a ConfigurationSpaces);

impl Bridges for Behind<'_> {
    fn behind(&mut self, bus: u8, device: u8, function: u8) -> Option<(u8, u8)> {
        pci::buses_behind(self.0, Address::new(bus, device, function))
    }
}

/// Pages for the tables of all units.
#[derive(Debug)]
struct Tables {
    memory: DeviceMemory,
    /// Offset of the first page that was never used.
    next: usize,
    free: Vec<u64>,
}

impl Tables {
    fn new() -> Option<Arc<Mutex<Tables>>> {
        let memory = DeviceMemory::of(Upstream(rt::home()).block(TABLES_LOG2)?);
        Some(Arc::new(Mutex::new(Tables { memory, next: 0, free: Vec::new() })))
    }

    /// Place of an entry.
    fn at(&self, page: u64, index: usize) -> usize {
        (page - self.memory.device_address()) as usize + 8 * index
    }

    fn take(&mut self) -> Option<u64> {
        let page = match self.free.pop() {
            Some(page) => page,
            None if self.next < 1 << TABLES_LOG2 => {
                self.next += PAGE;
                self.memory.device_address() + (self.next - PAGE) as u64
            }
            None => return None,
        };
        (0..PAGE / 8).for_each(|index| self.memory.write_u64(self.at(page, index), 0));
        self.memory.write_back(self.at(page, 0), PAGE);
        Some(page)
    }
}

/// A unit's registers, and the tables.
#[derive(Debug)]
struct Machine {
    registers: DeviceMemory,
    tables: Arc<Mutex<Tables>>,
}

impl Hardware for Machine {
    fn read(&mut self, at: usize) -> u32 {
        self.registers.read_u32(at)
    }

    fn write(&mut self, at: usize, value: u32) {
        self.registers.write_u32(at, value);
    }

    fn take_page(&mut self) -> Option<u64> {
        self.tables.lock().take()
    }

    fn give_back(&mut self, page: u64) {
        self.tables.lock().free.push(page);
    }

    fn load(&mut self, page: u64, index: usize) -> u64 {
        let tables = self.tables.lock();
        tables.memory.read_u64(tables.at(page, index))
    }

    fn store(&mut self, page: u64, index: usize, entry: u64) {
        let mut tables = self.tables.lock();
        let at = tables.at(page, index);
        tables.memory.write_u64(at, entry);
        tables.memory.write_back(at, 8);
    }

    fn now_ns(&self) -> u64 {
        time::now_ns()
    }

    fn pause(&mut self) {
        spin_loop();
    }
}
