//! Virtio devices of this machine. All that they are, and all that is checked of them, is in the library `virtio-devices`; here is what that wants of a machine:
//! [`function`], the registers and the interrupt of a device that was claimed at the bus server, and [`memory`], which the device may use.
//!
//! **Unsafe code** is in `memory`, which answers for an address.

#![no_std]
#![deny(unsafe_code)]

mod disk;
pub mod function;
pub mod memory;

use core::ops::{Deref, DerefMut};
use function::{Interrupt, Parts, claim};
use memory::Own;
use rt::api::{Failure, Result};
use rt::door::Door;
use virtio_devices::pci::DeviceType;
use virtio_devices::{Hardware, Refusal};

pub use virtio_devices::{Broken, console, net};

/// A device, as long as this program has it.
#[derive(Debug)]
pub struct Leased<T> {
    device: T,
    /// Keeps all others from the function.
    _lease: Door,
}

impl<T> Deref for Leased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.device
    }
}

impl<T> DerefMut for Leased<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.device
    }
}

/// A disk.
pub type Disk = Leased<virtio_devices::Disk<Parts, Hardware<Own>, Interrupt>>;

/// A network card.
pub type Card = Leased<virtio_devices::Card<Parts, Hardware<Own>>>;

/// A source of random bytes.
pub type Entropy = Leased<virtio_devices::Entropy<Parts, Hardware<Own>, Interrupt>>;

/// A console.
pub type Console = Leased<virtio_devices::Console<Parts, Hardware<Own>>>;

/// Classes of devices, as PCI has them.
mod class {
    pub const UNCLASSIFIED: u8 = 0;
    pub const STORAGE: u8 = 1;
    pub const NETWORK: u8 = 2;
    pub const COMMUNICATION: u8 = 7;
}

/// Claims the first free disk, and starts it.
pub fn disk() -> Result<Disk> {
    // Numbers of one as it is, and of one that also understands what was before version 1.
    let (way, line, lease) = claim(DeviceType::Block, class::STORAGE, &[0x1042, 0x1001])?;
    let device = virtio_devices::Disk::new(way, line).map_err(refused)?;
    Ok(Leased { device, _lease: lease })
}

/// Claims the first free network card, and starts it.
pub fn card() -> Result<Card> {
    let (way, _, lease) = claim(DeviceType::Network, class::NETWORK, &[0x1041, 0x1000])?;
    let device = virtio_devices::Card::new(way).map_err(refused)?;
    Ok(Leased { device, _lease: lease })
}

/// Claims the first free source of random bytes, and starts it.
pub fn entropy() -> Result<Entropy> {
    let (way, line, lease) = claim(DeviceType::EntropySource, class::UNCLASSIFIED, &[0x1044, 0x1005])?;
    let device = virtio_devices::Entropy::new(way, line).map_err(refused)?;
    Ok(Leased { device, _lease: lease })
}

/// Claims the first free console, and starts it.
pub fn console() -> Result<Console> {
    let (way, _, lease) = claim(DeviceType::Console, class::COMMUNICATION, &[0x1043, 0x1003])?;
    let device = virtio_devices::Console::new(way).map_err(refused)?;
    Ok(Leased { device, _lease: lease })
}

/// Says why a device is not driven.
fn refused(refusal: Refusal) -> Failure {
    rt::println!("virtio: {refusal}");
    Failure::Garbled
}
