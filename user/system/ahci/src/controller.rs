//! A claimed controller: its registers, memory that it may use, and its interrupt.

use core::time::Duration;
use rt::api::bus::{self, Entry, command};
use rt::api::{Failure, Result};
use rt::device::DeviceMemory;
use rt::door::{Door, Room};
use rt::sys::{self, Timeout, Uid};
use rt::time;
use sata::{Hardware, MEMORY_BYTES};

/// Base address register that leads to the registers.
const REGISTERS: u8 = 5;

/// A controller that this thread has claimed.
#[derive(Debug)]
pub struct Controller {
    server: Uid,
    place: u32,
    registers: DeviceMemory,
    memory: DeviceMemory,
    /// Its interrupt line. Without one the driver looks every now and then.
    line: Option<u8>,
}

impl Controller {
    /// Claims the first free function with these numbers, and lets it work. With it comes the lease, without which others get it.
    pub fn claim(server: Uid, entry: &Entry) -> Result<(Controller, Door)> {
        let room = Room::new().map_err(Failure::Kernel)?;
        let class = (entry.class_code >> 16) as u8;
        let place = bus::claim(server, class, entry.vendor, entry.device, room.window())?;
        let lease = room.into_door();
        let registers = DeviceMemory::behind(server, place, REGISTERS)?;
        let memory = DeviceMemory::shared(server, place, MEMORY_BYTES.next_power_of_two().ilog2())?;
        bus::set_command(server, place, command::MEMORY | command::MASTER | command::NO_INTERRUPT)?;
        Ok((Controller { server, place, registers, memory, line: None }, lease))
    }

    /// Gets its interrupt, if it can be had: a message, or else a line, which firmware may not have told, and which another driver may have. The
    /// later this is asked for, the fewer lines are taken from drivers that cannot do without.
    pub fn listen(&mut self) {
        let message = bus::message(self.server, self.place, 0);
        let Ok(line) = message.or_else(|_| bus::interrupt(self.server, self.place)) else { return };
        // The first receive from the line makes this thread its driver.
        let _ = sys::receive(Uid::interrupt(line), Timeout::ZERO);
        if bus::set_command(self.server, self.place, command::MEMORY | command::MASTER).is_ok() {
            self.line = Some(line);
        }
    }
}

impl Hardware for Controller {
    fn read(&mut self, at: usize) -> u32 {
        self.registers.read_u32(at)
    }

    fn write(&mut self, at: usize, value: u32) {
        self.registers.write_u32(at, value);
    }

    fn load(&mut self, at: usize, to: &mut [u8]) {
        self.memory.copy_from(at, to);
    }

    fn store(&mut self, at: usize, from: &[u8]) {
        self.memory.copy_to(at, from);
    }

    fn device_address(&self) -> u64 {
        self.memory.device_address()
    }

    fn now_ns(&self) -> u64 {
        time::now_ns()
    }

    fn pause(&mut self, ns: u64) {
        match self.line {
            Some(line) => {
                // That it came, or that the time is over, is all the same: the caller looks.
                let _ = sys::receive(Uid::interrupt(line), Timeout::from_us(ns / 1000 + 1));
            }
            None => time::sleep(Duration::from_nanos(ns)),
        }
    }
}
