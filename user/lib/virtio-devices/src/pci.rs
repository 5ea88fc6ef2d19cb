//! The way to a virtio device behind PCI (virtio 1.2, 4.1), which believes nothing that it reads.
//!
//! All places are checked once, when the way is [opened](Pci::open) or a queue is made, and then kept; so a device that says something else later moves nothing.
//! Some things that the crate's own way does without asking are errors here: a list of capabilities that goes in a circle, registers that are not all there, a doorbell that is
//! somewhere else, a reset that does not come, features that the device does not take.
//!
//! A device interrupts by its line, or by messages; of the latter the crate knows nothing. All queues send one message, since one thread drives them all, and no status has to be
//! read to take that back.
//!
//! A device that offers *access platform* reaches memory as the platform lets it, which is by an IOMMU where there is one, and takes no driver that does
//! not accept that (virtio 1.2, 6.1). The bus server has told the addresses by which the device knows its memory, so nothing else is to be done.
//! Without *flush* a device has nothing in a cache when it says that it has written (virtio 1.2, 5.2.5): so no request for that is needed,
//! for which the crate would spin. Without *event index* nobody has to compare numbers that wrap around. Indirect descriptors need a heap.

use crate::Refusal;
use virtio_drivers::transport::{DeviceStatus, InterruptStatus, Transport};
use virtio_drivers::{Error, PhysAddr, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use virtio_drivers::transport::DeviceType;

const FLUSH: u64 = 1 << 9;
const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;

/// Features that no driver accepts.
const UNWANTED: u64 = FLUSH | INDIRECT | EVENT_INDEX;

/// Offered by each device that is behind PCI by this way.
const VERSION_1: u64 = 1 << 32;

/// Accepted wherever it is offered.
const ACCESS_PLATFORM: u64 = 1 << 33;

/// How often what may change meanwhile is read, and what may take its time.
const TRIES: usize = 1000;

/// Queues of a device, at most.
const QUEUES: usize = 2;

/// No list of capabilities can be longer: each has four bytes at least, behind the header.
const CAPABILITIES_MAX: usize = 48;

const HAS_CAPABILITIES: u32 = 1 << 20;
const VENDOR_SPECIFIC: u8 = 9;
const TABLE_OF_MESSAGES: u8 = 0x11;

/// Number of the message that all queues send.
pub const MESSAGE: u16 = 0;

/// The way in which a device interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupts {
    /// By a line, which is asserted until its status is read.
    Line,
    /// By message number [`MESSAGE`] of its table.
    Messages,
}

/// Offsets in a configuration space.
mod offset {
    pub const COMMAND: u8 = 0x04;
    pub const CAPABILITIES: u8 = 0x34;
    pub const HEADER_END: u8 = 0x40;
}

/// Offsets in the common registers (virtio 1.2, 4.1.4.3).
mod common {
    pub const DEVICE_FEATURE_SELECT: usize = 0;
    pub const DEVICE_FEATURE: usize = 4;
    pub const DRIVER_FEATURE_SELECT: usize = 8;
    pub const DRIVER_FEATURE: usize = 12;
    pub const STATUS: usize = 20;
    pub const GENERATION: usize = 21;
    pub const QUEUE_SELECT: usize = 22;
    pub const QUEUE_SIZE: usize = 24;
    pub const QUEUE_MESSAGE: usize = 26;
    pub const QUEUE_ENABLE: usize = 28;
    pub const QUEUE_NOTIFY_OFF: usize = 30;
    pub const QUEUE_DESCRIPTORS: usize = 32;
    pub const QUEUE_DRIVER: usize = 40;
    pub const QUEUE_DEVICE: usize = 48;
    pub const BYTES: usize = 56;
}

/// Size of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// A byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
}

/// All that a function answers at.
pub trait Registers {
    /// Four bytes of its configuration space. All ones if they cannot be read.
    fn configuration(&self, offset: u8) -> u32;
    /// Bytes of memory behind a base address register; 0 if there is none.
    fn len_bytes(&self, bar: u8) -> u64;
    /// Reads from there. All ones outside.
    fn read(&self, bar: u8, at: usize, width: Width) -> u32;
    /// Writes there. Nothing outside.
    fn write(&mut self, bar: u8, at: usize, width: Width, value: u32);

    /// Whether it has a table of messages, and nothing else behind the base address register of that table.
    fn can_send_messages(&self) -> bool {
        let places = places(self);
        let is_there = |bar: u32| places.regions.iter().flatten().any(|[other, ..]| other & 0xff == bar);
        places.table.is_some_and(|bar| !is_there(bar))
    }
}

/// A piece of what is behind a base address register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    bar: u8,
    at: usize,
    len: usize,
}

impl Region {
    /// A piece that is there, aligned, and has so many bytes at least.
    fn new(
        registers: &impl Registers,
        [bar, at, len]: [u32; 3],
        len_min: usize,
        align: usize,
    ) -> Option<Region> {
        // Numbers from 6 on are reserved.
        let bar = u8::try_from(bar & 0xff).ok().filter(|&bar| bar < 6)?;
        let end = u64::from(at) + u64::from(len);
        let region = Region { bar, at: at as usize, len: len as usize };
        let fits = end <= registers.len_bytes(bar) && region.len >= len_min;
        (fits && region.at.is_multiple_of(align)).then_some(region)
    }
}

/// Types of places in the list of capabilities (virtio 1.2, 4.1.4), from 1 on.
const PLACES: usize = 4;
const COMMON: usize = 1;
const NOTIFY: usize = 2;
const INTERRUPT: usize = 3;
const DEVICE: usize = 4;

/// Places, as the device says.
#[derive(Default)]
struct Places {
    /// Bar, offset and length of each.
    regions: [Option<[u32; 3]>; PLACES + 1],
    /// Factor of the number of a queue's doorbell.
    multiplier: u32,
    /// Bar with the table of messages.
    table: Option<u32>,
}

/// Reads the list of capabilities. The first of each type counts.
fn places<R: Registers + ?Sized>(registers: &R) -> Places {
    let mut found = Places::default();
    if registers.configuration(offset::COMMAND) & HAS_CAPABILITIES == 0 {
        return found;
    }
    let mut at = registers.configuration(offset::CAPABILITIES) as u8 & !3;
    for _ in 0..CAPABILITIES_MAX {
        if at < offset::HEADER_END {
            break;
        }
        let head = registers.configuration(at);
        let [id, next, len, kind] = head.to_le_bytes();
        let has = |bytes: u8| len >= bytes && at.checked_add(bytes - 1).is_some();
        let kind = usize::from(kind);
        let is_wanted =
            id == VENDOR_SPECIFIC && (1..=PLACES).contains(&kind) && found.regions[kind].is_none();
        if is_wanted && has(if kind == NOTIFY { 20 } else { 16 }) {
            let words = [4, 8, 12].map(|offset| registers.configuration(at + offset));
            found.regions[kind] = Some(words);
            if kind == NOTIFY {
                found.multiplier = registers.configuration(at + 16);
            }
        }
        if id == TABLE_OF_MESSAGES && found.table.is_none() && at <= u8::MAX - 7 {
            found.table = Some(registers.configuration(at + 4) & 7);
        }
        at = next & !3;
    }
    found
}

/// The way to a device.
#[derive(Debug)]
pub struct Pci<R> {
    registers: R,
    kind: DeviceType,
    common: Region,
    notify: Region,
    interrupt: Region,
    /// The device's own registers, if it has some.
    device: Option<Region>,
    multiplier: u32,
    interrupts: Interrupts,
    /// Offsets of queues' doorbells.
    doorbells: [Option<usize>; QUEUES],
    /// Whether it did not do what it had to, so that no queue may be made.
    is_refused: bool,
}

impl<R: Registers> Pci<R> {
    /// Finds out where a device of this kind has its registers.
    pub fn open(
        registers: R,
        kind: DeviceType,
        interrupts: Interrupts,
    ) -> core::result::Result<Pci<R>, Refusal> {
        let Places { regions, multiplier, .. } = places(&registers);
        let region = |place: usize, len_min, align, what| {
            let found = regions[place].and_then(|words| Region::new(&registers, words, len_min, align));
            found.ok_or(Refusal::Place(what))
        };
        let common = region(COMMON, common::BYTES, 4, "common part")?;
        let notify = region(NOTIFY, 2, 2, "doorbell")?;
        let interrupt = region(INTERRUPT, 1, 1, "interrupt status")?;
        let device = match regions[DEVICE] {
            Some(_) => Some(region(DEVICE, 0, 4, "own part")?),
            None => None,
        };
        let doorbells = [None; QUEUES];
        Ok(Pci {
            registers,
            kind,
            common,
            notify,
            interrupt,
            device,
            multiplier,
            interrupts,
            doorbells,
            is_refused: false,
        })
    }

    fn read(&self, at: usize, width: Width) -> u32 {
        self.registers.read(self.common.bar, self.common.at + at, width)
    }

    fn write(&mut self, at: usize, width: Width, value: u32) {
        self.registers.write(self.common.bar, self.common.at + at, width, value);
    }

    fn write_address(&mut self, at: usize, address: PhysAddr) {
        self.write(at, Width::Four, address as u32);
        self.write(at + 4, Width::Four, (address >> 32) as u32);
    }

    fn select(&mut self, queue: u16) {
        self.write(common::QUEUE_SELECT, Width::Two, queue.into());
    }

    /// Offset of the selected queue's doorbell.
    fn doorbell(&self) -> Option<usize> {
        let number = self.read(common::QUEUE_NOTIFY_OFF, Width::Two);
        let offset = u64::from(number) * u64::from(self.multiplier);
        let is_there = offset.is_multiple_of(2) && offset + 2 <= self.notify.len as u64;
        is_there.then_some(offset as usize)
    }

    /// Has the selected queue send the message, if the device sends messages. False if it has no room for that.
    fn interrupts_by_message(&mut self) -> bool {
        if self.interrupts == Interrupts::Line {
            return true;
        }
        self.write(common::QUEUE_MESSAGE, Width::Two, MESSAGE.into());
        self.read(common::QUEUE_MESSAGE, Width::Two) == MESSAGE.into()
    }

    /// Place of so many bytes of the device's own registers.
    fn own(&self, at: usize, len: usize) -> Result<(u8, usize)> {
        if self.is_refused {
            return Err(Error::NotReady);
        }
        let device = self.device.ok_or(Error::ConfigSpaceMissing)?;
        match at.checked_add(len) {
            Some(end) if end <= device.len => Ok((device.bar, device.at + at)),
            _ => Err(Error::ConfigSpaceTooSmall),
        }
    }
}

/// Splits bytes as they are accessed: fields of two and four bytes in one piece, all others byte by byte.
fn width_of(len: usize) -> (usize, Width) {
    match len {
        2 => (2, Width::Two),
        4 => (4, Width::Four),
        _ => (1, Width::One),
    }
}

impl<R: Registers> Transport for Pci<R> {
    fn device_type(&self) -> DeviceType {
        self.kind
    }

    fn read_device_features(&mut self) -> u64 {
        let mut features = 0;
        for half in 0..2 {
            self.write(common::DEVICE_FEATURE_SELECT, Width::Four, half);
            features |= u64::from(self.read(common::DEVICE_FEATURE, Width::Four)) << (32 * half);
        }
        features & !UNWANTED
    }

    fn write_driver_features(&mut self, features: u64) {
        let platform = self.read_device_features() & ACCESS_PLATFORM;
        let features = features | platform;
        self.is_refused |= features & VERSION_1 == 0;
        for half in 0..2 {
            self.write(common::DRIVER_FEATURE_SELECT, Width::Four, half);
            self.write(common::DRIVER_FEATURE, Width::Four, (features >> (32 * half)) as u32);
        }
    }

    fn max_queue_size(&mut self, queue: u16) -> u32 {
        // The crate makes no queue of a device that has room for none.
        if self.is_refused || usize::from(queue) >= QUEUES {
            return 0;
        }
        self.select(queue);
        let doorbell = self.doorbell();
        self.doorbells[usize::from(queue)] = doorbell;
        match doorbell {
            // It would never interrupt.
            Some(_) if !self.interrupts_by_message() => 0,
            Some(_) => self.read(common::QUEUE_SIZE, Width::Two),
            None => 0,
        }
    }

    fn notify(&mut self, queue: u16) {
        if let Some(Some(offset)) = self.doorbells.get(usize::from(queue)) {
            self.registers.write(self.notify.bar, self.notify.at + offset, Width::Two, queue.into());
        }
    }

    fn get_status(&self) -> DeviceStatus {
        DeviceStatus::from_bits_truncate(self.read(common::STATUS, Width::One) & 0xff)
    }

    fn set_status(&mut self, status: DeviceStatus) {
        self.write(common::STATUS, Width::One, status.bits());
        if status.is_empty() {
            // A reset is over when the status says so.
            self.is_refused = !(0..TRIES).any(|_| self.get_status().is_empty());
        } else if status.contains(DeviceStatus::FEATURES_OK) {
            self.is_refused |= !self.get_status().contains(DeviceStatus::FEATURES_OK);
        }
    }

    /// By PCI nobody wants to know.
    fn set_guest_page_size(&mut self, _: u32) {}

    fn requires_legacy_layout(&self) -> bool {
        false
    }

    fn queue_set(
        &mut self,
        queue: u16,
        size: u32,
        descriptors: PhysAddr,
        driver: PhysAddr,
        device: PhysAddr,
    ) {
        self.select(queue);
        self.write(common::QUEUE_SIZE, Width::Two, size);
        self.write_address(common::QUEUE_DESCRIPTORS, descriptors);
        self.write_address(common::QUEUE_DRIVER, driver);
        self.write_address(common::QUEUE_DEVICE, device);
        self.write(common::QUEUE_ENABLE, Width::Two, 1);
    }

    /// By PCI a queue is there until the device is reset, which the bus server does when its driver ends.
    fn queue_unset(&mut self, _: u16) {}

    fn queue_used(&mut self, queue: u16) -> bool {
        self.select(queue);
        self.read(common::QUEUE_ENABLE, Width::Two) != 0
    }

    /// Reading the status takes a line's interrupt back. A message is over when it has come.
    fn ack_interrupt(&mut self) -> InterruptStatus {
        if self.interrupts == Interrupts::Messages {
            return InterruptStatus::empty();
        }
        let status = self.registers.read(self.interrupt.bar, self.interrupt.at, Width::One);
        InterruptStatus::from_bits_retain(status & 0xff)
    }

    /// Reads until nothing has changed meanwhile, but not for ever: a device could change all the time.
    fn read_consistent<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 0..TRIES {
            let before = self.read_config_generation();
            let found = read();
            if self.read_config_generation() == before {
                return found;
            }
        }
        Err(Error::NotReady)
    }

    fn read_config_generation(&self) -> u32 {
        self.read(common::GENERATION, Width::One) & 0xff
    }

    fn read_config_space<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T> {
        let (bar, at) = self.own(offset, size_of::<T>())?;
        let mut value = T::new_zeroed();
        let (step, width) = width_of(size_of::<T>());
        for (index, part) in value.as_mut_bytes().chunks_mut(step).enumerate() {
            let word = self.registers.read(bar, at + index * step, width);
            part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
        }
        Ok(value)
    }

    fn write_config_space<T: IntoBytes + Immutable>(&mut self, offset: usize, value: T) -> Result<()> {
        let (bar, at) = self.own(offset, size_of::<T>())?;
        let (step, width) = width_of(size_of::<T>());
        for (index, part) in value.as_bytes().chunks(step).enumerate() {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            self.registers.write(bar, at + index * step, width, u32::from_le_bytes(word));
        }
        Ok(())
    }
}
