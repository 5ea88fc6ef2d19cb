//! The server of a disk, under the name `block`: what its drivers share, whatever the device is.
//!
//! One thread does everything, and a request waits for the one before. Requests are checked here, what the device says is checked by the driver. On a
//! machine without a device for it the driver ends with [`UNAVAILABLE`], so that `root` may start another.

#![no_std]
#![forbid(unsafe_code)]

use core::time::Duration;
use rt::admission::Admission;
use rt::api::block::{self, Room};
use rt::api::process::UNAVAILABLE;
use rt::api::stub::{self, Failure as Fault, Kind, Message, Reply};
use rt::api::{self, Failure, Name, Status, names};
use rt::sys::Uid;
use rt::{println, time};

/// Bytes that one request moves, at most.
pub const BYTES_MAX: usize = block::BYTES_MAX as usize;

/// Failure of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The device says that it could not do it.
    Failed,
    /// Nobody should rely on the device any more. It may still use memory, so its driver ends, and the bus server silences it.
    Broken,
}

/// A disk that this task drives.
pub trait Disk {
    /// Bytes of a sector, [`BYTES_MAX`] at most.
    fn sector_bytes(&self) -> usize;
    /// How many sectors it has.
    fn sectors(&self) -> u64;
    /// Whether it can only be read.
    fn is_read_only(&self) -> bool;
    /// Takes back an interrupt for which nobody waits.
    fn quiet(&mut self);
    /// Reads `len` bytes from a sector on: whole sectors, which are there, and [`BYTES_MAX`] at most.
    fn read(&mut self, first: u64, len: usize) -> Result<&[u8], Trouble>;
    /// Writes whole sectors, which are there, from one on.
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), Trouble>;
    /// Waits until what was written survives a loss of power.
    fn flush(&mut self) -> Result<(), Trouble>;
}

static ROOM: stub::Once<Room> = stub::Once::new(Room::new());

/// How often a disk is claimed whose last driver has just ended, and how long to wait before the next time.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

/// Interrupts between two requests, beyond which the device does nothing else.
const INTERRUPTS_MAX: u32 = 1000;

/// Claims a disk and serves it. Returns the status with which the driver of this name ends.
pub fn run<D: Disk>(driver: &'static str, claim: impl Fn() -> api::Result<D>) -> i32 {
    let disk = match patiently(claim) {
        Ok(disk) => disk,
        Err(Failure::Refused(Status::NotFound)) => return UNAVAILABLE,
        Err(failure) => {
            println!("{driver}: {failure}");
            return 1;
        }
    };
    let registered =
        Name::new(block::NAME).ok_or(Failure::Garbled).and_then(|name| names::register(rt::home(), &name));
    let (Ok(()), Some(room)) = (registered, ROOM.take()) else { return 1 };
    block::serve(
        &mut Own { driver, disk, interrupts: 0, clients: Admission::new(), admitted: Err(Status::Denied) },
        room,
    );
    1
}

/// Claims again and again as long as the last driver's end is being dealt with.
fn patiently<D>(claim: impl Fn() -> api::Result<D>) -> api::Result<D> {
    for _ in 0..TRIES {
        match claim() {
            Err(Failure::Refused(Status::Taken)) => time::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    claim()
}

struct Own<D> {
    driver: &'static str,
    disk: D,
    /// Interrupts since the last request.
    interrupts: u32,
    clients: Admission,
    /// Whether who has called now may.
    admitted: Result<(), Status>,
}

fn refused(status: Status) -> Fault {
    Fault::Refused(status as u32)
}

impl<D: Disk> Own<D> {
    /// Refuses who is no client.
    fn begin(&mut self) -> Result<(), Fault> {
        self.interrupts = 0;
        self.admitted.map_err(refused)
    }

    /// Refuses what is not there, is too much, or nothing; and who is no client.
    fn check(&mut self, first: u64, bytes: usize) -> Result<(), Fault> {
        self.begin()?;
        let sector = self.disk.sector_bytes();
        let is_whole = bytes > 0 && bytes <= BYTES_MAX && bytes.is_multiple_of(sector);
        let end = first.checked_add((bytes / sector) as u64);
        if is_whole && end.is_some_and(|end| end <= self.disk.sectors()) {
            Ok(())
        } else {
            Err(refused(Status::BadRequest))
        }
    }
}

/// A broken device may write to memory until the bus server has silenced it. That happens when this task ends; then `root` starts it again.
fn failed(driver: &str, trouble: Trouble) -> Fault {
    if trouble == Trouble::Broken {
        println!("{driver}: the disk does not do what it should");
        rt::exit(1);
    }
    refused(Status::Busy)
}

impl<D: Disk> block::Server for Own<D> {
    fn caller(&mut self, from: Uid) {
        self.admitted = self.clients.admit(from);
    }

    fn other(&mut self, message: &Message) -> Option<Reply> {
        // Interrupts come here, too, when nobody waits for them. A line that never falls would keep everybody from the processor.
        if message.kind == Kind::Interrupt {
            self.disk.quiet();
            self.interrupts += 1;
            if self.interrupts > INTERRUPTS_MAX {
                failed(self.driver, Trouble::Broken);
            }
        }
        stub::decline(message)
    }

    fn info(&mut self) -> Result<(u32, u64, bool), Fault> {
        self.begin()?;
        Ok((self.disk.sector_bytes() as u32, self.disk.sectors(), self.disk.is_read_only()))
    }

    fn read(&mut self, first: u64, count: u32) -> Result<&[u8], Fault> {
        let bytes = (count as usize).checked_mul(self.disk.sector_bytes());
        let bytes = bytes.ok_or(refused(Status::BadRequest))?;
        self.check(first, bytes)?;
        let driver = self.driver;
        self.disk.read(first, bytes).map_err(|trouble| failed(driver, trouble))
    }

    fn write(&mut self, first: u64, data: &[u8]) -> Result<(), Fault> {
        self.check(first, data.len())?;
        if self.disk.is_read_only() {
            return Err(refused(Status::Denied));
        }
        self.disk.write(first, data).map_err(|trouble| failed(self.driver, trouble))
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.begin()?;
        self.disk.flush().map_err(|trouble| failed(self.driver, trouble))
    }
}
