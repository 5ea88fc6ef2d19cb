//! A driver that tells its device to write to memory that the bus server did not give for it. It says what became of that memory, so it is a test of
//! the IOMMU where there is one, and of itself where there is none.
//!
//! Needs an AHCI controller with a disk that nobody drives, and the right to drive disks. When the link to a disk is reset, the disk says what it is,
//! and the controller writes that to memory: twenty bytes at an address that a register names. No command has to be made up for it.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::time::Duration;
use rt::api::bus::{self, command};
use rt::api::{Failure, Name, Result, Status, names};
use rt::device::DeviceMemory;
use rt::door::{Door, Room};
use rt::frames::{Block, Supply, Upstream};
use rt::println;
use rt::sys::Uid;
use rt::time::sleep;

rt::entry!(main);

/// Class, subclass and interface of the controllers.
const CLASS_CODE: u32 = 0x01_06_01;

/// Base address register that leads to the registers.
const REGISTERS: u8 = 5;

/// Register of the whole controller, and its bit: it is one for SATA.
const CONTROL: usize = 0x04;
const IS_SATA: u32 = 1 << 31;

/// Registers of the first port: where to write what disks say, the command, whether there is a disk, and what the link should do.
const RECEIVED: usize = 0x108;
const PORT_COMMAND: usize = 0x118;
const LINK: usize = 0x128;
const LINK_CONTROL: usize = 0x12c;

/// Bits of the command: work off commands, write what disks say; and that the latter is being done.
const START: u32 = 1 << 0;
const RECEIVE: u32 = 1 << 4;
const RECEIVES: u32 = 1 << 14;

/// The part of the link's registers that says whether there is a disk, or that there is to be a reset.
const LINK_MASK: u32 = 0xf;
const CONNECTED: u32 = 3;
const RESET: u32 = 1;

/// Offset at which a disk says what it is, and the first byte of that.
const SAID: usize = 0x40;
const SAYS: u8 = 0x34;

/// Memory is filled with this before.
const FILLED: u8 = 0xa5;

const PAGE_LOG2: u32 = 12;

/// How long the device has for what it does, and how often that is looked at.
const PAUSE: Duration = Duration::from_millis(10);
const LOOKS: usize = 100;

/// The bus server tells of one function once in a second.
const BETWEEN_REPORTS: Duration = Duration::from_millis(1500);

fn main() -> i32 {
    match check() {
        Ok(()) => 0,
        Err(failure) => {
            println!("dma-test: {failure}");
            1
        }
    }
}

fn check() -> Result<()> {
    let server = names::resolve(rt::home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)?;
    let mut controller = Controller::claim(server)?;
    let own = controller.memory()?;
    controller.receive_at(own.device_address());
    let is_written = (0..LOOKS).any(|_| {
        sleep(PAUSE);
        own.read_u8(SAID) == SAYS
    });
    println!("dma-test: memory of its own is {}", if is_written { "written" } else { "not written" });

    // Memory from `root`, of which the bus server knows nothing: it could be anybody's.
    let mut victim: Block =
        Upstream(rt::home()).block(PAGE_LOG2).ok_or(Failure::Refused(Status::Exhausted))?;
    victim.bytes_mut().fill(FILLED);
    let victim = DeviceMemory::of(victim);
    controller.receive_at(victim.device_address());
    sleep(PAUSE * 10);
    controller.stop();
    sleep(PAUSE * 10);
    let is_whole = (0..1 << PAGE_LOG2).all(|at| victim.read_u8(at) == FILLED);
    println!("dma-test: memory of others is {}", if is_whole { "untouched" } else { "overwritten" });

    // The next driver of the device has nothing yet, so the device does not even reach what it reached before.
    let before = own.device_address();
    drop(controller);
    sleep(BETWEEN_REPORTS);
    let mut controller = Controller::claim(server)?;
    println!("dma-test: the next driver tells it to write to {before:#x}");
    controller.receive_at(before);
    sleep(PAUSE * 10);
    controller.stop();
    sleep(BETWEEN_REPORTS);

    let own = controller.memory()?;
    assert!((0..1 << PAGE_LOG2).all(|at| own.read_u8(at) == 0), "somebody's memory");
    controller.receive_at(own.device_address());
    let is_written = (0..LOOKS).any(|_| {
        sleep(PAUSE);
        own.read_u8(SAID) == SAYS
    });
    println!("dma-test: the next driver's memory is {}", if is_written { "written" } else { "not written" });
    controller.stop();
    println!("dma-test: done");
    Ok(())
}

/// The controller.
struct Controller {
    server: Uid,
    place: u32,
    registers: DeviceMemory,
    _lease: Door,
}

impl Controller {
    /// Claims the first one that has a disk.
    fn claim(server: Uid) -> Result<Controller> {
        for _ in 0..LOOKS {
            for place in 0.. {
                let entry = match bus::device(server, place) {
                    Err(Failure::Refused(Status::NotFound)) => break,
                    entry => entry?,
                };
                if entry.class_code == CLASS_CODE
                    && let Some(controller) = Controller::open(server, entry.vendor, entry.device)?
                {
                    return Ok(controller);
                }
            }
            sleep(PAUSE);
        }
        Err(Failure::Refused(Status::NotFound))
    }

    fn open(server: Uid, vendor: u16, device: u16) -> Result<Option<Controller>> {
        let room = Room::new().map_err(Failure::Kernel)?;
        let place = match bus::claim(server, (CLASS_CODE >> 16) as u8, vendor, device, room.window()) {
            Err(Failure::Refused(Status::Taken)) => return Ok(None),
            place => place?,
        };
        let lease = room.into_door();
        let mut registers = DeviceMemory::behind(server, place, REGISTERS)?;
        bus::set_command(server, place, command::MEMORY | command::MASTER | command::NO_INTERRUPT)?;
        registers.write_u32(CONTROL, IS_SATA);
        let has_disk = registers.read_u32(LINK) & LINK_MASK == CONNECTED;
        Ok(has_disk.then_some(Controller { server, place, registers, _lease: lease }))
    }

    /// Memory that it may use.
    fn memory(&self) -> Result<DeviceMemory> {
        DeviceMemory::shared(self.server, self.place, PAGE_LOG2)
    }

    /// It writes nothing any more.
    fn stop(&mut self) {
        for bit in [START, RECEIVE] {
            let before = self.registers.read_u32(PORT_COMMAND);
            self.registers.write_u32(PORT_COMMAND, before & !bit);
        }
        for _ in 0..LOOKS {
            if self.registers.read_u32(PORT_COMMAND) & RECEIVES == 0 {
                return;
            }
            sleep(PAUSE);
        }
    }

    /// Lets it write what the disk says of itself to an address.
    fn receive_at(&mut self, address: u64) {
        self.stop();
        self.registers.write_u32(RECEIVED, address as u32);
        self.registers.write_u32(RECEIVED + 4, (address >> 32) as u32);
        let before = self.registers.read_u32(PORT_COMMAND);
        self.registers.write_u32(PORT_COMMAND, before | RECEIVE);
        let link = self.registers.read_u32(LINK_CONTROL) & !LINK_MASK;
        self.registers.write_u32(LINK_CONTROL, link | RESET);
        sleep(PAUSE);
        self.registers.write_u32(LINK_CONTROL, link);
    }
}
