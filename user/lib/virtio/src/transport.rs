//! The crate's way to a device by PCI, less the features that we do not want, and with one of which it knows nothing.
//!
//! A device that offers *access platform* reaches memory as the platform lets it, which is by an IOMMU where there is one, and takes no driver that does
//! not accept that (virtio 1.2, 6.1). The bus server has told the addresses by which the device knows its memory, so nothing else is to be done.
//! Without *flush* a device has nothing in a cache when it says that it has written (virtio 1.2, 5.2.5): so no request for that is needed,
//! for which the crate would spin. Without *event index* nobody has to compare numbers that wrap around. Indirect descriptors need a heap.

use crate::message::Vectors;
use virtio_drivers::PhysAddr;
use virtio_drivers::transport::pci::PciTransport;
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};
use virtio_drivers::{Error, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes};

const FLUSH: u64 = 1 << 9;
const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;

/// Features that no driver accepts.
const UNWANTED: u64 = FLUSH | INDIRECT | EVENT_INDEX;

/// Accepted wherever it is offered.
const ACCESS_PLATFORM: u64 = 1 << 33;

/// How often what may change meanwhile is read.
const TRIES: usize = 1000;

/// The way to a device.
#[derive(Debug)]
pub struct Plain {
    crates: PciTransport,
    /// Where queues are told which message they send, if the device interrupts by messages.
    vectors: Option<Vectors>,
}

impl Plain {
    /// The way of the crate's to a device, which interrupts by messages if there are `vectors`.
    pub(crate) fn new(crates: PciTransport, vectors: Option<Vectors>) -> Plain {
        Plain { crates, vectors }
    }
}

impl Transport for Plain {
    fn read_device_features(&mut self) -> u64 {
        self.crates.read_device_features() & !UNWANTED
    }

    fn device_type(&self) -> DeviceType {
        self.crates.device_type()
    }

    fn write_driver_features(&mut self, features: u64) {
        let platform = self.crates.read_device_features() & ACCESS_PLATFORM;
        self.crates.write_driver_features(features | platform);
    }

    fn max_queue_size(&mut self, queue: u16) -> u32 {
        self.crates.max_queue_size(queue)
    }

    fn notify(&mut self, queue: u16) {
        self.crates.notify(queue);
    }

    fn get_status(&self) -> DeviceStatus {
        self.crates.get_status()
    }

    fn set_status(&mut self, status: DeviceStatus) {
        self.crates.set_status(status);
    }

    fn set_guest_page_size(&mut self, bytes: u32) {
        self.crates.set_guest_page_size(bytes);
    }

    fn requires_legacy_layout(&self) -> bool {
        self.crates.requires_legacy_layout()
    }

    fn queue_set(
        &mut self,
        queue: u16,
        size: u32,
        descriptors: PhysAddr,
        driver: PhysAddr,
        device: PhysAddr,
    ) {
        // Before the queue is on. A device that has no room for it says so, and its requests will take too long.
        if self.vectors.as_mut().is_some_and(|vectors| !vectors.set(queue)) {
            rt::println!("virtio: the device does not take a message for queue {queue}");
        }
        self.crates.queue_set(queue, size, descriptors, driver, device);
    }

    fn queue_unset(&mut self, queue: u16) {
        self.crates.queue_unset(queue);
    }

    fn queue_used(&mut self, queue: u16) -> bool {
        self.crates.queue_used(queue)
    }

    fn ack_interrupt(&mut self) -> InterruptStatus {
        match self.vectors {
            // A message is over when it has come.
            Some(_) => InterruptStatus::empty(),
            None => self.crates.ack_interrupt(),
        }
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
        self.crates.read_config_generation()
    }

    fn read_config_space<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T> {
        self.crates.read_config_space(offset)
    }

    fn write_config_space<T: IntoBytes + Immutable>(&mut self, offset: usize, value: T) -> Result<()> {
        self.crates.write_config_space(offset, value)
    }
}
