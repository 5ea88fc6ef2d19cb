//! A disk, one request at a time.
//!
//! Each call waits for the device's interrupt, not for ever. A device that does not answer, or answers something else, is [`Broken`].
#![allow(unsafe_code)]

use crate::pci::{Pci, Registers};
use crate::{Broken, Line, Refusal, wait_for};
use alloc::boxed::Box;
use virtio_drivers::device::blk::{BlkReq, BlkResp, RespStatus, SECTOR_SIZE, VirtIOBlk};
use virtio_drivers::{Error, Hal};

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = SECTOR_SIZE;

/// Bytes that one request moves, at most.
pub const BYTES_MAX: usize = 4096;

/// More sectors cannot be counted in bytes.
const SECTORS_MAX: u64 = u64::MAX / SECTOR_BYTES as u64;

/// Failure of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Sectors that are not there, a part of one, none, or too many.
    Refused,
    /// The device says that it could not do it.
    Failed,
    /// Nobody should rely on the device any more.
    Broken,
}

impl From<Broken> for Trouble {
    fn from(_: Broken) -> Trouble {
        Trouble::Broken
    }
}

/// A disk.
pub struct Disk<R: Registers, H: Hal, L> {
    line: L,
    device: VirtIOBlk<H, Pci<R>>,
    request: Box<BlkReq>,
    response: Box<BlkResp>,
    data: Box<[u8; BYTES_MAX]>,
    /// Set when a request went wrong, of which the device may still have the buffers.
    is_broken: bool,
}

impl<R: Registers, H: Hal, L: Line> Disk<R, H, L> {
    /// Starts it.
    pub fn new(way: Pci<R>, line: L) -> Result<Self, Refusal> {
        let device = VirtIOBlk::new(way)?;
        if device.capacity() > SECTORS_MAX {
            return Err(Refusal::Capacity(device.capacity()));
        }
        let (request, response) = (Box::default(), Box::default());
        Ok(Disk { line, device, request, response, data: Box::new([0; BYTES_MAX]), is_broken: false })
    }

    /// How many sectors it says that it has. Nothing else is known of that.
    pub fn sectors(&self) -> u64 {
        self.device.capacity()
    }

    /// Whether it can only be read.
    pub fn is_read_only(&self) -> bool {
        self.device.readonly()
    }

    /// Takes back an interrupt for which nobody waits.
    pub fn quiet(&mut self) {
        self.device.ack_interrupt();
    }

    /// Refuses what is not there, is too much, or nothing.
    fn check(&self, first: u64, len: usize) -> Result<(), Trouble> {
        if self.is_broken {
            return Err(Trouble::Broken);
        }
        let is_whole = len > 0 && len <= BYTES_MAX && len.is_multiple_of(SECTOR_BYTES);
        let end = first.checked_add((len / SECTOR_BYTES) as u64);
        if is_whole && end.is_some_and(|end| end <= self.sectors()) { Ok(()) } else { Err(Trouble::Refused) }
    }

    /// Waits until the device is done with a request.
    fn wait(&mut self, token: u16) -> Result<(), Broken> {
        let Disk { line, device, .. } = self;
        wait_for(token, line, || {
            // Reading the status takes the interrupt back, so it comes before the look at the queue.
            device.ack_interrupt();
            device.peek_used()
        })
    }

    /// Reads `len` bytes from a sector on.
    pub fn read(&mut self, first: u64, len: usize) -> Result<&[u8], Trouble> {
        self.check(first, len)?;
        let outcome = self.try_read(first, len);
        self.is_broken = outcome == Err(Trouble::Broken);
        outcome.map(|()| &self.data[..len])
    }

    fn try_read(&mut self, first: u64, len: usize) -> Result<(), Trouble> {
        let Disk { device, request, response, data, .. } = self;
        // A device that says that it is done, and has written nothing, finds a status that is none, and bytes that are nobody's.
        **response = BlkResp::default();
        data[..len].fill(0);
        // SAFETY: these buffers are used by nobody until the request is complete, or for ever if the device is broken: `self.is_broken` says so.
        // The device itself has copies.
        let token = unsafe { device.read_blocks_nb(first as usize, request, &mut data[..len], response) };
        let token = token.map_err(|_| Broken)?;
        self.wait(token)?;
        let Disk { device, request, response, data, .. } = self;
        // SAFETY: they are the same.
        let done = unsafe { device.complete_read_blocks(token, request, &mut data[..len], response) };
        judge(done, self.response.status())
    }

    /// Writes whole sectors from one on.
    pub fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), Trouble> {
        self.check(first, bytes.len())?;
        let outcome = self.try_write(first, bytes);
        self.is_broken = outcome == Err(Trouble::Broken);
        outcome
    }

    fn try_write(&mut self, first: u64, bytes: &[u8]) -> Result<(), Trouble> {
        let len = bytes.len();
        self.data[..len].copy_from_slice(bytes);
        let Disk { device, request, response, data, .. } = self;
        **response = BlkResp::default();
        // SAFETY: as in `try_read`.
        let token = unsafe { device.write_blocks_nb(first as usize, request, &data[..len], response) };
        let token = token.map_err(|_| Broken)?;
        self.wait(token)?;
        let Disk { device, request, response, data, .. } = self;
        // SAFETY: they are the same.
        let done = unsafe { device.complete_write_blocks(token, request, &data[..len], response) };
        judge(done, self.response.status())
    }
}

/// Judges the end of a request. A failure is what the device has a status for; all else, of the queue or of a status that there is not, is that of a broken one.
fn judge(done: virtio_drivers::Result<()>, status: RespStatus) -> Result<(), Trouble> {
    match (done, status) {
        (Ok(()), _) => Ok(()),
        (Err(Error::IoError), RespStatus::IO_ERR) => Err(Trouble::Failed),
        (Err(Error::Unsupported), RespStatus::UNSUPPORTED) => Err(Trouble::Failed),
        _ => Err(Trouble::Broken),
    }
}
