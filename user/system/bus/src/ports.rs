//! Configuration spaces by ports: an address register and four bytes of what it selects. All PCs have it, those with PCI Express
//! too, for the first 256 bytes of each function. No table of the firmware is needed for it.

use pci::{Address, Configuration};
use rt::api::{Result, memory};
use rt::device::Port;
use rt::sys::Fpage;

const FIRST_PORT: u16 = 0xcf8;
const PORTS_LOG2: u32 = 3;
const SELECT: Port = Port(FIRST_PORT);
const DATA: Port = Port(FIRST_PORT + 4);
const ENABLE: u32 = 1 << 31;

/// The two registers.
#[derive(Debug)]
pub struct Ports(());

impl Ports {
    /// Gets them. There is one pair, and nobody else has it.
    pub fn open() -> Result<Ports> {
        let ports = Fpage::ports(FIRST_PORT, PORTS_LOG2);
        memory::resource(rt::home(), ports, ports)?;
        Ok(Ports(()))
    }
}

fn select(address: Address, offset: u8) {
    SELECT.write_u32(ENABLE | u32::from(address.0) << 8 | u32::from(offset & !3));
}

impl Configuration for Ports {
    fn read(&self, address: Address, offset: u8) -> u32 {
        select(address, offset);
        DATA.read_u32()
    }

    fn write(&mut self, address: Address, offset: u8, value: u32) {
        select(address, offset);
        DATA.write_u32(value);
    }
}
