//! The driver of virtio disks: serves sectors of the first disk, under the name `block`.
//!
//! One thread does everything, and a request waits for the one before. Requests are checked here, what the device says in the library `virtio`. On a
//! machine without a disk the driver waits, and says so to everybody who asks.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use core::time::Duration;
use rt::api::block::{self, Room};
use rt::api::stub::{self, Failure as Fault, Kind, Message, Reply};
use rt::api::{self, Failure, Name, Status, names, process};
use rt::sys::Uid;
use rt::{println, time};
use virtio::Disk;
use virtio::disk::{BYTES_MAX, SECTOR_BYTES, Trouble};

rt::entry!(main);

static ROOM: stub::Once<Room> = stub::Once::new(Room::new());

/// How often a disk is claimed whose last driver has just ended, and how long to wait before the next time.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

fn main() -> i32 {
    if rt::environment::variable("LOG").is_none() {
        // The library tells of each disk that it has found.
        rt::log::set_max_level(rt::log::LevelFilter::Warn);
    }
    let disk = match claim() {
        Ok(disk) => disk,
        Err(failure) => {
            println!("virtio-block: {failure}");
            return 1;
        }
    };
    let registered =
        Name::new(block::NAME).ok_or(Failure::Garbled).and_then(|name| names::register(rt::home(), &name));
    let (Ok(()), Some(room)) = (registered, ROOM.take()) else { return 1 };
    block::serve(&mut Own { disk, interrupts: 0, client: None }, room);
    1
}

/// The disk, if there is one.
fn claim() -> api::Result<Option<Disk>> {
    let mut tries = 0;
    loop {
        match Disk::claim() {
            Ok(disk) => return Ok(Some(disk)),
            Err(Failure::Refused(Status::NotFound)) => return Ok(None),
            Err(Failure::Refused(Status::Taken)) if tries < TRIES => time::sleep(PAUSE),
            Err(failure) => return Err(failure),
        }
        tries += 1;
    }
}

/// Interrupts between two requests, beyond which the device does nothing else.
const INTERRUPTS_MAX: u32 = 1000;

struct Own {
    disk: Option<Disk>,
    /// Interrupts since the last request.
    interrupts: u32,
    /// Thread that has called now, if it is a client's.
    client: Option<Uid>,
}

fn refused(status: Status) -> Fault {
    Fault::Refused(status as u32)
}

impl Own {
    fn disk(&mut self) -> Result<&mut Disk, Fault> {
        self.interrupts = 0;
        self.client.ok_or(refused(Status::Denied))?;
        self.disk.as_mut().ok_or(refused(Status::NotFound))
    }
}

/// Refuses what is not there, is too much, or nothing.
fn check(disk: &Disk, first: u64, bytes: usize) -> Result<(), Fault> {
    let is_whole = bytes > 0 && bytes <= BYTES_MAX && bytes.is_multiple_of(SECTOR_BYTES);
    let end = first.checked_add((bytes / SECTOR_BYTES) as u64);
    if is_whole && end.is_some_and(|end| end <= disk.sectors()) {
        Ok(())
    } else {
        Err(refused(Status::BadRequest))
    }
}

/// A broken device may write to memory until the bus server has silenced it. That happens when this task ends; then `root` starts it again.
fn failed(trouble: Trouble) -> Fault {
    if trouble == Trouble::Broken {
        println!("virtio-block: the disk does not do what it should");
        rt::exit(1);
    }
    refused(Status::Busy)
}

impl block::Server for Own {
    fn caller(&mut self, from: Uid) {
        // Somebody else may have guessed where this is. `root` is asked when another thread calls.
        if self.client != Some(from) {
            self.client = process::is_client(rt::home(), from).unwrap_or(false).then_some(from);
        }
    }

    fn other(&mut self, message: &Message) -> Option<Reply> {
        // Interrupts come here, too, when nobody waits for them. A line that never falls would keep everybody from the processor.
        if message.kind == Kind::Interrupt
            && let Some(disk) = &mut self.disk
        {
            disk.quiet();
            self.interrupts += 1;
            if self.interrupts > INTERRUPTS_MAX {
                failed(Trouble::Broken);
            }
        }
        stub::decline(message)
    }

    fn info(&mut self) -> Result<(u32, u64, bool), Fault> {
        let disk = self.disk()?;
        Ok((SECTOR_BYTES as u32, disk.sectors(), disk.is_read_only()))
    }

    fn read(&mut self, first: u64, count: u32) -> Result<&[u8], Fault> {
        let disk = self.disk()?;
        let bytes = (count as usize).checked_mul(SECTOR_BYTES).ok_or(refused(Status::BadRequest))?;
        check(disk, first, bytes)?;
        disk.read(first, bytes).map_err(failed)
    }

    fn write(&mut self, first: u64, data: &[u8]) -> Result<(), Fault> {
        let disk = self.disk()?;
        check(disk, first, data.len())?;
        if disk.is_read_only() {
            return Err(refused(Status::Denied));
        }
        disk.write(first, data).map_err(failed)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        // Each write has waited for the disk, so there is nothing left to wait for.
        self.disk().map(drop)
    }
}
