//! A virtio disk, one request at a time.
//!
//! Each call waits for the device's interrupt, not for ever. A device that does not answer, or answers something else, is [`Broken`]: it may still
//! have the buffers, so its driver must end, and the bus server silences it.
#![allow(unsafe_code)]

use crate::function::Function;
use crate::memory::Hardware;
use crate::transport::Plain;
use alloc::boxed::Box;
use block::{BYTES_MAX, Trouble};
use rt::api::{Failure, Result};
use rt::sys::{Error, Timeout};
use rt::time;
use virtio_drivers::device::blk::{BlkReq, BlkResp, RespStatus, SECTOR_SIZE, VirtIOBlk};

/// Class of disks.
const CLASS: u8 = 1;

/// Numbers of virtio disks: as they are, and those that also understand what was before version 1.
const DEVICES: [u16; 2] = [0x1042, 0x1001];

/// How long a device may take for a request.
const PATIENCE_NS: u64 = 10_000_000_000;

/// A device on which nobody should rely any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

impl From<Broken> for Trouble {
    fn from(_: Broken) -> Trouble {
        Trouble::Broken
    }
}

/// A disk.
pub struct Disk {
    function: Function,
    device: VirtIOBlk<Hardware, Plain>,
    request: Box<BlkReq>,
    response: Box<BlkResp>,
    data: Box<[u8; BYTES_MAX]>,
}

impl Disk {
    /// Claims the first free disk, and starts it.
    pub fn claim() -> Result<Disk> {
        let mut function = Function::claim(CLASS, &DEVICES)?;
        let transport = function.open()?;
        let device = VirtIOBlk::new(transport).map_err(|error| {
            rt::println!("virtio: {error}");
            Failure::Garbled
        })?;
        let (request, response) = (Box::default(), Box::default());
        Ok(Disk { function, device, request, response, data: Box::new([0; BYTES_MAX]) })
    }

    /// Waits until the device is done with a request.
    fn wait(&mut self, token: u16) -> core::result::Result<(), Broken> {
        let end = time::now_ns() + PATIENCE_NS;
        loop {
            // Reading the status takes the interrupt back, so it comes before the look at the queue.
            self.device.ack_interrupt();
            match self.device.peek_used() {
                Some(done) if done == token => return Ok(()),
                Some(_) => return Err(Broken),
                None => {}
            }
            let left = end.checked_sub(time::now_ns()).ok_or(Broken)?;
            match self.function.wait(Timeout::from_us(left / 1000 + 1)) {
                Ok(()) | Err(Error::ReceiveTimeout) => {}
                Err(_) => return Err(Broken),
            }
        }
    }
}

impl block::Disk for Disk {
    fn sector_bytes(&self) -> usize {
        SECTOR_SIZE
    }

    fn sectors(&self) -> u64 {
        self.device.capacity()
    }

    fn is_read_only(&self) -> bool {
        self.device.readonly()
    }

    fn quiet(&mut self) {
        self.device.ack_interrupt();
    }

    fn read(&mut self, first: u64, len: usize) -> core::result::Result<&[u8], Trouble> {
        let Disk { device, request, response, data, .. } = self;
        // SAFETY: these buffers are used by nobody until the request is complete, or for ever if the device is broken: `self.wait` says so, and
        // then nobody calls again, since the driver ends. The device itself has copies.
        let token = unsafe { device.read_blocks_nb(first as usize, request, &mut data[..len], response) };
        let token = token.map_err(|_| Broken)?;
        self.wait(token)?;
        let Disk { device, request, response, data, .. } = self;
        // SAFETY: they are the same.
        let done = unsafe { device.complete_read_blocks(token, request, &mut data[..len], response) };
        check(done, self.response.status())?;
        Ok(&self.data[..len])
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> core::result::Result<(), Trouble> {
        let len = bytes.len();
        self.data[..len].copy_from_slice(bytes);
        let Disk { device, request, response, data, .. } = self;
        // SAFETY: as in `read`.
        let token = unsafe { device.write_blocks_nb(first as usize, request, &data[..len], response) };
        let token = token.map_err(|_| Broken)?;
        self.wait(token)?;
        let Disk { device, request, response, data, .. } = self;
        // SAFETY: they are the same.
        let done = unsafe { device.complete_write_blocks(token, request, &data[..len], response) };
        check(done, self.response.status())
    }

    fn flush(&mut self) -> core::result::Result<(), Trouble> {
        // Each write has waited until it was safe, so there is nothing left to wait for.
        Ok(())
    }
}

/// Judges what the device says of a request that is over.
fn check(done: virtio_drivers::Result<()>, status: RespStatus) -> core::result::Result<(), Trouble> {
    match done {
        Ok(()) => Ok(()),
        Err(_) if matches!(status, RespStatus::IO_ERR | RespStatus::UNSUPPORTED) => Err(Trouble::Failed),
        Err(_) => Err(Trouble::Broken),
    }
}
