//! A claimed function: its registers, and its interrupt.

use crate::memory;
use rt::api::bus::{self, command};
use rt::api::{Failure, Name, Result, Status, names};
use rt::device::DeviceMemory;
use rt::door::{Door, Room};
use rt::sys::{self, Error, Timeout, Uid};
use rt::time;
use virtio_devices::pci::{DeviceType, Interrupts, MESSAGE};
use virtio_devices::{Broken, Line, Pci, Registers, Width};

const VIRTIO: u16 = 0x1af4;
const BARS: usize = 6;

/// Registers of a function that this thread has claimed.
#[derive(Debug)]
pub struct Parts {
    bus: Uid,
    place: u32,
    bars: [Option<DeviceMemory>; BARS],
}

/// Interrupt of a function that this thread has claimed, and this machine's clock.
#[derive(Debug)]
pub struct Interrupt(u8);

/// Claims the first free virtio device of a class that has one of these numbers: the way to it, its interrupt, and the lease, without which others get it.
pub fn claim(kind: DeviceType, class: u8, devices: &[u16]) -> Result<(Pci<Parts>, Interrupt, Door)> {
    let bus = names::resolve(rt::home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)?;
    // If there is one that somebody else has, that is said: it may be about to end.
    let mut outcome = Failure::Refused(Status::NotFound);
    for &device in devices {
        let room = Room::new().map_err(Failure::Kernel)?;
        match bus::claim(bus, class, VIRTIO, device, room.window()) {
            Ok(place) => return open(kind, bus, place, room.into_door()),
            Err(Failure::Refused(Status::NotFound)) => {}
            Err(failure) => outcome = failure,
        }
    }
    Err(outcome)
}

/// Gets all that it answers at, memory that it may use, and its interrupt; and lets it work.
fn open(kind: DeviceType, bus: Uid, place: u32, lease: Door) -> Result<(Pci<Parts>, Interrupt, Door)> {
    let mut parts = Parts { bus, place, bars: [const { None }; BARS] };
    // Before its memory, since who takes a message does not get the memory with the messages.
    let message = parts.can_send_messages().then(|| bus::message(bus, place, MESSAGE).ok()).flatten();
    for (number, bar) in parts.bars.iter_mut().enumerate() {
        *bar = match DeviceMemory::behind(bus, place, number as u8) {
            Ok(memory) => Some(memory),
            // There is none, or it cannot be had: the device may do without.
            Err(Failure::Refused(Status::NotFound | Status::Denied)) => None,
            Err(failure) => return Err(failure),
        };
    }
    memory::get(bus, place)?;
    let line = match message {
        Some(line) => line,
        None => bus::interrupt(bus, place)?,
    };
    // The first receive from the line makes this thread its driver.
    let _ = sys::receive(Uid::interrupt(line), Timeout::ZERO);
    bus::set_command(bus, place, command::MEMORY | command::MASTER)?;
    let interrupts = if message.is_some() { Interrupts::Messages } else { Interrupts::Line };
    let way = Pci::open(parts, kind, interrupts).map_err(crate::refused)?;
    Ok((way, Interrupt(line), lease))
}

impl Registers for Parts {
    fn configuration(&self, offset: u8) -> u32 {
        bus::read(self.bus, self.place, offset).unwrap_or(u32::MAX)
    }

    fn len_bytes(&self, bar: u8) -> u64 {
        let memory = self.bars.get(usize::from(bar)).and_then(Option::as_ref);
        memory.map_or(0, |memory| memory.len_bytes() as u64)
    }

    fn read(&self, bar: u8, at: usize, width: Width) -> u32 {
        let Some(Some(memory)) = self.bars.get(usize::from(bar)) else { return u32::MAX };
        match width {
            Width::One => memory.read_u8(at).into(),
            Width::Two => memory.read_u16(at).into(),
            Width::Four => memory.read_u32(at),
        }
    }

    fn write(&mut self, bar: u8, at: usize, width: Width, value: u32) {
        let Some(Some(memory)) = self.bars.get_mut(usize::from(bar)) else { return };
        match width {
            Width::One => memory.write_u8(at, value as u8),
            Width::Two => memory.write_u16(at, value as u16),
            Width::Four => memory.write_u32(at, value),
        }
    }
}

impl Line for Interrupt {
    fn now_ns(&self) -> u64 {
        time::now_ns()
    }

    fn wait(&mut self, ns: u64) -> core::result::Result<(), Broken> {
        match sys::receive(Uid::interrupt(self.0), Timeout::from_us(ns / 1000 + 1)) {
            Ok(_) | Err(Error::ReceiveTimeout) => Ok(()),
            Err(_) => Err(Broken),
        }
    }
}
