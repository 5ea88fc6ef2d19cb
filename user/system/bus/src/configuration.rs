//! Configuration spaces: by memory, where a table of the firmware says that they are and ports say the same; else by [`Ports`], which all PCs have.

use crate::firmware::Firmware;
use crate::ports::Ports;
use acpi::mcfg;
use alloc::collections::BTreeMap;
use core::cell::RefCell;
use pci::{Address, Configuration, offset};
use rt::api::Result;
use rt::device::DeviceMemory;
use rt::sys::{Fpage, Rights};

/// Log2 of the memory that is mapped at once, in bytes: that of two buses, which is as large as a large page.
const WINDOW_LOG2: u32 = mcfg::BUS_LOG2 + 1;

/// Log2 of the bytes of a function.
const FUNCTION_LOG2: u32 = 12;

/// The configuration spaces of all functions.
#[derive(Debug)]
pub struct ConfigurationSpaces {
    ports: Ports,
    memory: Option<mcfg::Spaces>,
    /// Memory of each two buses, by the number of the first. None where it cannot be had.
    windows: RefCell<BTreeMap<u8, Option<DeviceMemory>>>,
}

impl ConfigurationSpaces {
    /// Gets the ports, and looks whether there is memory.
    pub fn open(firmware: &mut Firmware) -> Result<ConfigurationSpaces> {
        let ports = Ports::open()?;
        let memory = firmware.table(mcfg::NAME).and_then(|table| mcfg::spaces(&table));
        let mut spaces = ConfigurationSpaces { ports, memory, windows: RefCell::new(BTreeMap::new()) };
        if !spaces.agree() {
            spaces.memory = None;
        }
        Ok(spaces)
    }

    /// Whether memory says of the first function, which each PC has, what ports say.
    fn agree(&self) -> bool {
        let first = Address::new(0, 0, 0);
        let mut offsets = [offset::NUMBERS, offset::CLASS].into_iter();
        offsets.all(|offset| {
            self.in_memory(first, offset, |memory, at| memory.read_u32(at))
                == Some(self.ports.read(first, offset))
        })
    }

    /// Memory that they take: first and end.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.memory.map(|memory| memory.range())
    }

    /// Does something with the four bytes at an offset, if they are in memory.
    fn in_memory<T>(
        &self,
        address: Address,
        offset: u8,
        act: impl FnOnce(&mut DeviceMemory, usize) -> T,
    ) -> Option<T> {
        let memory = self.memory?;
        let (bus, ..) = address.parts();
        let first = bus & !1;
        let mut windows = self.windows.borrow_mut();
        let window = windows.entry(first).or_insert_with(|| {
            let base = memory.of_bus(first)?;
            memory.of_bus(first | 1)?;
            let wanted = Fpage::memory(base, WINDOW_LOG2, Rights::RW);
            base.is_multiple_of(1 << WINDOW_LOG2).then(|| DeviceMemory::map(wanted).ok())?
        });
        let at = (usize::from(address.0) & ((1 << (WINDOW_LOG2 - FUNCTION_LOG2)) - 1)) << FUNCTION_LOG2;
        window.as_mut().map(|window| act(window, at + usize::from(offset & !3)))
    }
}

impl Configuration for ConfigurationSpaces {
    fn read(&self, address: Address, offset: u8) -> u32 {
        let read = self.in_memory(address, offset, |memory, at| memory.read_u32(at));
        read.unwrap_or_else(|| self.ports.read(address, offset))
    }

    fn write(&mut self, address: Address, offset: u8, value: u32) {
        if self.in_memory(address, offset, |memory, at| memory.write_u32(at, value)).is_none() {
            self.ports.write(address, offset, value);
        }
    }
}
