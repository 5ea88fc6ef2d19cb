//! A virtio disk, as the server of disks wants one.

use crate::Disk;
use block::Trouble;
use virtio_devices::disk::{self, SECTOR_BYTES};

fn trouble(trouble: disk::Trouble) -> Trouble {
    match trouble {
        // The server has refused that before.
        disk::Trouble::Refused | disk::Trouble::Failed => Trouble::Failed,
        disk::Trouble::Broken => Trouble::Broken,
    }
}

impl block::Disk for Disk {
    fn sector_bytes(&self) -> usize {
        SECTOR_BYTES
    }

    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn is_read_only(&self) -> bool {
        self.device.is_read_only()
    }

    fn quiet(&mut self) {
        self.device.quiet();
    }

    fn read(&mut self, first: u64, len: usize) -> Result<&[u8], Trouble> {
        self.device.read(first, len).map_err(trouble)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), Trouble> {
        self.device.write(first, bytes).map_err(trouble)
    }

    fn flush(&mut self) -> Result<(), Trouble> {
        // Each write has waited until it was safe, so there is nothing left to wait for.
        Ok(())
    }
}
