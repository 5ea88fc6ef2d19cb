//! Asks the bus server for what it should give and for what it should not. Needs a machine with a disk that somebody else drives, and
//! QEMU's IDE controller, which is free; and the right to drive disks. Without that right its claim is denied, and it says so.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::time::Duration;
use rt::api::bus::{self, command};
use rt::api::{Failure, Name, Result, Status, names, sigma0};
use rt::device::Port;
use rt::door::{Door, Room};
use rt::frames::{Frame, Supply, Upstream, View, reserve};
use rt::println;
use rt::sys::{Fpage, Rights, Uid};
use rt::thread::spawn;
use rt::time::sleep;

rt::entry!(main);

const CLASS: u8 = 1;
/// The disk: vendor and device.
const DISK: (u16, u16) = (0x1af4, 0x1042);
/// The controller, and the register that leads to its ports.
const CONTROLLER: (u16, u16) = (0x8086, 0x7010);
const PORTS: u8 = 4;

/// How often a device is claimed again that was given back, and how long to wait meanwhile.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(1);

/// Pieces of memory for one device, at most.
const BLOCKS_MAX: usize = 16;

const PAGE: u32 = 12;

fn main() -> i32 {
    match check() {
        Ok(()) => {
            println!("bus-test: all is well");
            0
        }
        Err(failure) => {
            println!("bus-test: {failure}");
            1
        }
    }
}

fn check() -> Result<()> {
    let server = names::resolve(rt::home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)?;
    let (disk, controller) = (place_of(server, DISK)?, place_of(server, CONTROLLER)?);
    expect("the driver's", bus::read(server, disk, 0), Status::Denied);
    expect_nothing(server, disk);
    assert_eq!(bus::read(server, controller, 0)?, u32::from(CONTROLLER.1) << 16 | u32::from(CONTROLLER.0));
    expect_nothing(server, controller);
    expect("no place", bus::device(server, u32::MAX).map(drop), Status::NotFound);
    expect("no place", bus::read(server, u32::MAX, 0), Status::NotFound);
    expect("the firmware's tables", sigma0::firmware(rt::home()).map(drop), Status::Denied);
    expect("other classes", claim(server, 2, CONTROLLER).map(drop), Status::Denied);
    expect("wild classes", claim(server, 0x81, CONTROLLER).map(drop), Status::Denied);

    let (lease, place) = claim(server, CLASS, CONTROLLER)?;
    assert_eq!(place, controller);
    expect("the driver's", claim(server, CLASS, DISK).map(drop), Status::Taken);
    expect("twice", claim(server, CLASS, CONTROLLER).map(drop), Status::Taken);
    expect("unknown", claim(server, CLASS, (0x8086, 0x7011)).map(drop), Status::NotFound);
    parts(server, place)?;
    let first = memory(server, place)?;
    let others = spawn(1, move || {
        expect("another thread's", bus::read(server, place, 0), Status::Denied);
        expect_nothing(server, place);
    });
    others.map_err(Failure::Kernel)?.join().ok_or(Failure::Garbled)?;

    drop(lease);
    let lease = again(server)?;
    let second = memory(server, place)?;
    assert!(second.iter().all(|physical| first.contains(physical)), "memory of a device stays with it");
    drop(lease);
    again(server).map(drop)
}

/// Fails unless something was refused for this reason.
fn expect<T>(what: &str, outcome: Result<T>, status: Status) {
    match outcome {
        Err(Failure::Refused(found)) if found == status => {}
        Err(failure) => panic!("{what}: {failure}"),
        Ok(_) => panic!("{what}: it was given"),
    }
}

/// Nothing of a function is given to somebody who does not drive it.
fn expect_nothing(server: Uid, place: u32) {
    let window = reserve(PAGE).expect("there is room");
    expect("command", bus::set_command(server, place, command::MASTER), Status::Denied);
    (0..=6).for_each(|number| expect("part", bus::part(server, place, number, window), Status::Denied));
    expect("interrupt", bus::interrupt(server, place), Status::Denied);
    expect("pages", bus::pages(server, place, window), Status::Denied);
}

fn place_of(server: Uid, (vendor, device): (u16, u16)) -> Result<u32> {
    for place in 0.. {
        let entry = bus::device(server, place)?;
        if (entry.vendor, entry.device) == (vendor, device) {
            return Ok(place);
        }
    }
    Err(Failure::Refused(Status::NotFound))
}

fn claim(server: Uid, class: u8, (vendor, device): (u16, u16)) -> Result<(Door, u32)> {
    let room = Room::new().map_err(Failure::Kernel)?;
    let place = bus::claim(server, class, vendor, device, room.window())?;
    Ok((room.into_door(), place))
}

/// Claims the controller, which somebody has just given back.
fn again(server: Uid) -> Result<Door> {
    for _ in 0..TRIES {
        match claim(server, CLASS, CONTROLLER) {
            Err(Failure::Refused(Status::Taken)) => sleep(PAUSE),
            outcome => return outcome.map(|(lease, _)| lease),
        }
    }
    Err(Failure::Refused(Status::Taken))
}

/// Things that a driver may do with its function, and things that it may not.
fn parts(server: Uid, place: u32) -> Result<()> {
    let (_, first, count) = bus::bar(server, place, PORTS)?;
    bus::part(server, place, PORTS, Fpage::ports(first as u16, count.ilog2()))?;
    bus::set_command(server, place, command::PORTS | command::NO_INTERRUPT)?;
    // It would end this program if the ports were not there.
    let _ = Port(first as u16).at(2).read();
    let written = bus::read(server, place, 4)? as u16;
    assert_eq!(written & command::ALL & !command::NO_INTERRUPT, command::PORTS, "{written:#x}");
    for bit in 0..16 {
        if command::ALL & 1 << bit == 0 {
            expect("bits of the bus server", bus::set_command(server, place, 1 << bit), Status::BadRequest);
        }
    }
    let window = reserve(PAGE).ok_or(Failure::Garbled)?;
    expect("no part", bus::part(server, place, 0, window), Status::NotFound);
    expect("no register", bus::part(server, place, 6, window), Status::BadRequest);
    expect("no register", bus::bar(server, place, 255), Status::BadRequest);
    expect("no line", bus::interrupt(server, place), Status::NotFound);
    expect("not a word's", bus::read(server, place, 2), Status::BadRequest);
    let large = Fpage::memory(0x200_0000_0000, 21, Rights::RW);
    expect("too much", bus::pages(server, place, large), Status::Exhausted);
    Ok(())
}

/// Gets as many pages as there are, and looks whether they are empty; then fills them. Their physical addresses.
fn memory(server: Uid, place: u32) -> Result<Vec<u64>> {
    let mut frame = frame()?;
    let mut all = Vec::new();
    loop {
        let view = View::new().ok_or(Failure::Garbled)?;
        match bus::pages(server, place, view.window()) {
            Ok(physical) => {
                assert!(!all.contains(&physical), "a page was given twice");
                all.push(physical);
                view.copy_to(&mut frame);
                assert!(frame.bytes_mut().iter().all(|&byte| byte == 0), "somebody's memory");
                frame.bytes_mut().fill(0xa5);
                view.copy_from(&mut frame);
            }
            Err(Failure::Refused(Status::Exhausted)) => break,
            Err(failure) => return Err(failure),
        }
    }
    assert_eq!(all.len(), BLOCKS_MAX);
    Ok(all)
}

/// A page of our own, to copy to.
fn frame() -> Result<Frame> {
    let block = Upstream(rt::home()).block(PAGE).ok_or(Failure::Refused(Status::Exhausted))?;
    block.into_frames().next().ok_or(Failure::Garbled)
}
