//! The driver of SATA disks: serves sectors of the first disk behind an AHCI controller, under the name `block`.
//!
//! All that is hard is in two libraries: `sata`, which knows what controllers and disks understand and has no machine, and `block`, the server. Here is
//! the [`controller`], by which the first works on this machine.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod controller;

use alloc::boxed::Box;
use alloc::vec::Vec;
use block::{BYTES_MAX, Trouble};
use controller::Controller;
use rt::api::bus;
use rt::api::{self, Failure, Name, Status, names};
use rt::door::Door;
use rt::println;
use sata::Trouble as Fault;

rt::entry!(main);

/// Name of this program.
const NAME: &str = "ahci";

/// Class, subclass and interface of the controllers: mass storage, SATA, AHCI.
const CLASS_CODE: u32 = 0x01_06_01;

fn main() -> i32 {
    block::run(NAME, claim)
}

/// A disk that this task drives, and a piece of it.
struct Disk {
    disk: sata::Disk<Controller>,
    data: Box<[u8; BYTES_MAX]>,
    /// Keeps all others from the controller.
    _lease: Door,
}

/// Claims the controllers, one after the other, until one has a disk.
fn claim() -> api::Result<Disk> {
    let bus = names::resolve(rt::home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)?;
    // Kept as long as the search lasts, so that the next claim leads to another controller.
    let mut leases = Vec::new();
    let mut outcome = Failure::Refused(Status::NotFound);
    for place in 0.. {
        let entry = match bus::device(bus, place) {
            Err(Failure::Refused(Status::NotFound)) => break,
            entry => entry?,
        };
        if entry.class_code != CLASS_CODE {
            continue;
        }
        let (controller, lease) = match Controller::claim(bus, &entry) {
            Ok(claimed) => claimed,
            Err(failure) => {
                outcome = failure;
                continue;
            }
        };
        match sata::Disk::open(controller) {
            Ok(mut disk) => {
                disk.hardware().listen();
                return Ok(Disk { disk, data: Box::new([0; BYTES_MAX]), _lease: lease });
            }
            Err(Fault::NoDisk) => {}
            Err(fault) => {
                println!("{NAME}: {fault}");
                // One that is not understood will not be next time, either.
                if fault != Fault::Unsuitable {
                    outcome = Failure::Garbled;
                }
            }
        }
        leases.push(lease);
    }
    Err(outcome)
}

fn trouble(fault: Fault) -> Trouble {
    if fault == Fault::Broken { Trouble::Broken } else { Trouble::Failed }
}

impl block::Disk for Disk {
    fn sector_bytes(&self) -> usize {
        self.disk.geometry().sector_bytes
    }

    fn sectors(&self) -> u64 {
        self.disk.geometry().sectors
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn quiet(&mut self) {
        self.disk.quiet();
    }

    fn read(&mut self, first: u64, len: usize) -> Result<&[u8], Trouble> {
        let data = &mut self.data[..len];
        self.disk.read(first, data).map_err(trouble)?;
        Ok(data)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), Trouble> {
        self.disk.write(first, bytes).map_err(trouble)
    }

    fn flush(&mut self) -> Result<(), Trouble> {
        self.disk.flush().map_err(trouble)
    }
}
