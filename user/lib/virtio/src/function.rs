//! A claimed function, as the crate wants to see it: a configuration space in which it can size base address registers.
//!
//! The bus server has sized them and lets nobody write there. So writes are played: a register of which all ones were asked says its
//! size when it is read next.

use crate::memory;
use crate::message::{self, Vectors};
use crate::transport::Plain;
use rt::api::bus::{self, Kind, command};
use rt::api::{Failure, Name, Result, Status, names};
use rt::door::{Door, Room};
use rt::sys::{self, Timeout, Uid};
use virtio_drivers::transport::pci::bus::{ConfigurationAccess, DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, VIRTIO_VENDOR_ID};

const BARS: usize = 6;
const FIRST_BAR: u8 = 0x10;
const COMMAND: u8 = 0x04;
const IS_64_BITS: u32 = 0b110;

/// Number of the message that all queues send, where a device sends messages.
pub(crate) const MESSAGE: u16 = 0;

/// A function that this thread has claimed.
#[derive(Debug)]
pub struct Function {
    bus: Uid,
    place: u32,
    line: u8,
    /// Keeps all others from the function.
    _lease: Door,
}

impl Function {
    /// Claims the first free virtio device of a class that has one of these numbers. If there is one that somebody else has, it says so, since that one may be
    /// about to end.
    pub fn claim(class: u8, devices: &[u16]) -> Result<Function> {
        let bus = names::resolve(rt::home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)?;
        let mut outcome = Failure::Refused(Status::NotFound);
        for &device in devices {
            let room = Room::new().map_err(Failure::Kernel)?;
            match bus::claim(bus, class, VIRTIO_VENDOR_ID, device, room.window()) {
                Ok(place) => return Ok(Function { bus, place, line: 0, _lease: room.into_door() }),
                Err(Failure::Refused(Status::NotFound)) => {}
                Err(failure) => outcome = failure,
            }
        }
        Err(outcome)
    }

    /// Gets all that it answers at, its interrupt, and memory that it may use; and lets it work.
    pub fn open(&mut self) -> Result<Plain> {
        let (bus, place) = (self.bus, self.place);
        // Before its memory: the page with messages is not the driver's.
        let common = message::common(bus, place);
        let message = common.and_then(|_| bus::message(bus, place, MESSAGE).ok());
        let mut registers = [(0, 0); BARS];
        for number in 0..BARS as u8 {
            let (kind, base, len) = bus::bar(bus, place, number)?;
            if !matches!(kind, Kind::MEMORY | Kind::PREFETCHABLE) {
                continue;
            }
            let at = usize::from(number);
            let flags = bus::read(bus, place, FIRST_BAR + 4 * number)? & 0xf;
            registers[at] = (base as u32 | flags, !(len - 1) as u32 | flags);
            if flags & IS_64_BITS == 0b100 && at + 1 < BARS {
                registers[at + 1] = ((base >> 32) as u32, (!(len - 1) >> 32) as u32);
            }
            memory::map(bus, place, number, base, len)?;
        }
        memory::get(bus, place)?;
        let vectors = message.and(common).and_then(Vectors::of);
        self.line = match message {
            Some(line) => line,
            None => bus::interrupt(bus, place)?,
        };
        // The first receive from the line makes this thread its driver.
        let _ = sys::receive(Uid::interrupt(self.line), Timeout::ZERO);
        bus::set_command(bus, place, command::MEMORY | command::MASTER)?;
        let space = Space { bus, place, registers, is_sized: [false; BARS] };
        let here = DeviceFunction { bus: 0, device: 0, function: 0 };
        let transport = PciTransport::new::<memory::Hardware, _>(&mut PciRoot::new(space), here);
        transport.map(|transport| Plain::new(transport, vectors)).map_err(|error| {
            rt::println!("virtio: {error}");
            Failure::Garbled
        })
    }

    /// Waits for its interrupt, which can come too often, and for somebody else's reason.
    pub fn wait(&self, timeout: Timeout) -> sys::Result<()> {
        sys::receive(Uid::interrupt(self.line), timeout).map(drop)
    }
}

/// Configuration space of one function.
struct Space {
    bus: Uid,
    place: u32,
    /// Value and mask of base address registers.
    registers: [(u32, u32); BARS],
    is_sized: [bool; BARS],
}

/// Number of the base address register at an offset.
fn register_at(offset: u8) -> Option<usize> {
    let number = usize::from(offset.checked_sub(FIRST_BAR)? / 4);
    (number < BARS).then_some(number)
}

impl ConfigurationAccess for Space {
    fn read_word(&self, _: DeviceFunction, offset: u8) -> u32 {
        match register_at(offset) {
            Some(number) if self.is_sized[number] => self.registers[number].1,
            Some(number) => self.registers[number].0,
            None => bus::read(self.bus, self.place, offset).unwrap_or(u32::MAX),
        }
    }

    fn write_word(&mut self, _: DeviceFunction, offset: u8, value: u32) {
        match register_at(offset) {
            Some(number) => self.is_sized[number] = value == u32::MAX,
            // That it answers or not while it is sized is all that the crate wants.
            None if offset == COMMAND => {
                let _ = bus::set_command(self.bus, self.place, value as u16 & command::ALL);
            }
            None => {}
        }
    }

    #[allow(unsafe_code)]
    // SAFETY: each is a way to the server, which takes one request after another.
    unsafe fn unsafe_clone(&self) -> Space {
        Space { ..*self }
    }
}
