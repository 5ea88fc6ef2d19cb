//! A disk, one request at a time.
//!
//! A request that fails, or takes too long, stops the port, resets the link, and asks the disk again what it is: from then on nothing of the old
//! request is under way, and the next may come. A controller with which that does not succeed is [`Trouble::Broken`]: it may still use the
//! memory, so its driver must end.

use crate::command::{self, Command};
use crate::identify::{self, Geometry};
use crate::registers::{
    self, Host, PORTS_MAX, Port, control, handoff, link, link_control, reason, task_file,
};
use crate::registers::{abilities, more_abilities, port_command};
use crate::{BYTES_MAX, Hardware};
use core::fmt;

/// The longest time between two looks, in nanoseconds. An interrupt is no more than a reason to look earlier: where none comes, because of a line that
/// is another driver's or that firmware has not told, requests take this long.
const STEP_NS: u64 = 1_000_000;

/// Looks in vain for each step of a wait, and besides: interrupts that come without a reason shall end, too.
const LOOKS: u64 = 2;
/// See [`LOOKS`].
const LOOKS_MORE: u64 = 1000;

/// How long a disk may take for a request: it may have to spin up.
pub const PATIENCE_NS: u64 = 30_000_000_000;

/// How long firmware may take to hand the controller off (10.6.3).
const HANDOFF_NS: u64 = 2_000_000_000;
/// How long a reset of the controller may take (10.4.3).
const RESET_NS: u64 = 1_000_000_000;
/// How long a port may take to stop (10.1.2).
const STOP_NS: u64 = 500_000_000;
/// How long the link is held in reset (10.4.2).
const HOLD_NS: u64 = 1_000_000;
/// When a device that is there has begun to answer. The standard says 10 ms.
const DETECTION_NS: u64 = 100_000_000;
/// When the link of a device that has begun is up.
const LINK_NS: u64 = 1_000_000_000;
/// When a disk has spun up, all disks together.
const READY_NS: u64 = 30_000_000_000;

/// Command register of a port that does nothing.
const IDLE: u32 = port_command::SPIN_UP | port_command::POWER;

/// The one command of the list.
const SLOT: u32 = 1 << 0;

/// Failure of a request, or of the search for a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// There is no disk.
    NoDisk,
    /// There is one, which [`Geometry::read`] does not understand.
    Unsuitable,
    /// The request is not for whole sectors that are there. Nothing was moved.
    Refused,
    /// The disk could not do it, or not in time. The next request may be made.
    Failed,
    /// Nobody should rely on the controller any more.
    Broken,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Trouble::NoDisk => "there is no disk",
            Trouble::Unsuitable => "the disk has no addresses of 48 bits, or sectors of an unusual size",
            Trouble::Refused => "there are no such sectors",
            Trouble::Failed => "the disk could not do it",
            Trouble::Broken => "the controller does not do what it should",
        })
    }
}

/// Outcome of what may fail.
pub type Result<T> = core::result::Result<T, Trouble>;

/// The first disk behind a controller.
#[derive(Debug)]
pub struct Disk<H> {
    hardware: H,
    /// Its port.
    port: u32,
    /// Bits of the port's command register that were written last. The register may say anything, and some of them let the device use memory.
    commanded: u32,
    geometry: Geometry,
    is_broken: bool,
}

impl<H: Hardware> Disk<H> {
    /// Resets the controller, and starts the disk at the first port that has one.
    pub fn open(hardware: H) -> Result<Disk<H>> {
        let nothing = Geometry { sector_bytes: BYTES_MAX, sectors: 0 };
        let mut disk = Disk { hardware, port: 0, commanded: IDLE, geometry: nothing, is_broken: false };
        let since = disk.reset_controller()?;
        let ports = disk.get(Host::Ports);
        let mut trouble = Trouble::NoDisk;
        for port in (0..PORTS_MAX).filter(|port| ports >> port & 1 != 0) {
            disk.port = port;
            match disk.look(since) {
                Ok(geometry) => {
                    disk.geometry = geometry;
                    disk.set(Host::Control, control::AHCI | control::INTERRUPTS);
                    return Ok(disk);
                }
                Err(Trouble::NoDisk) => {}
                Err(other) => trouble = other,
            }
            disk.stop()?;
        }
        Err(trouble)
    }

    /// Its size.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The controller's, which the disk keeps.
    pub fn hardware(&mut self) -> &mut H {
        &mut self.hardware
    }

    /// Reads whole sectors that are there, from one on: [`BYTES_MAX`] at most. If that fails, `to` is as it was.
    pub fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        let count = self.checked(first, to.len())?;
        self.request(Command::Read(first, count, to.len()))?;
        self.hardware.load(command::DATA, to);
        Ok(())
    }

    /// Writes whole sectors that are there, from one on: [`BYTES_MAX`] at most. They survive a loss of power after [`Disk::flush`].
    pub fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        let count = self.checked(first, from.len())?;
        self.hardware.store(command::DATA, from);
        self.request(Command::Write(first, count, from.len()))
    }

    /// Waits until what was written survives a loss of power.
    pub fn flush(&mut self) -> Result<()> {
        self.request(Command::Flush)
    }

    /// Takes back an interrupt for which nobody waits.
    pub fn quiet(&mut self) {
        self.interrupts();
    }

    /// Sectors of a request that can be made. A broken controller may still use the memory, so nothing is written there any more.
    fn checked(&self, first: u64, bytes: usize) -> Result<u16> {
        let count = self.geometry.sectors_of(first, bytes).ok_or(Trouble::Refused)?;
        if self.is_broken { Err(Trouble::Broken) } else { Ok(count) }
    }

    fn get(&mut self, register: Host) -> u32 {
        self.hardware.read(register.at())
    }

    fn set(&mut self, register: Host, value: u32) {
        self.hardware.write(register.at(), value);
    }

    fn of_port(&mut self, register: Port) -> u32 {
        self.hardware.read(register.at(self.port))
    }

    fn set_port(&mut self, register: Port, value: u32) {
        self.hardware.write(register.at(self.port), value);
    }

    /// Sets and clears bits of the port's command register.
    fn command_port(&mut self, set: u32, clear: u32) {
        self.commanded = self.commanded & !clear | set;
        self.set_port(Port::Command, self.commanded);
    }

    /// Looks again and again, until something is as wanted or the time is over. Whether it is.
    fn until(&mut self, limit_ns: u64, mut is_so: impl FnMut(&mut Self) -> bool) -> bool {
        let begin = self.hardware.now_ns();
        for _ in 0..limit_ns / STEP_NS * LOOKS + LOOKS_MORE {
            if is_so(self) {
                return true;
            }
            let passed = self.hardware.now_ns().saturating_sub(begin);
            let Some(left) = limit_ns.checked_sub(passed).filter(|left| *left > 0) else { return false };
            self.hardware.pause(left.min(STEP_NS));
        }
        false
    }

    /// Gets the controller from firmware and resets it. No port does anything afterwards. Returns when that was.
    fn reset_controller(&mut self) -> Result<u64> {
        self.set(Host::Control, control::AHCI);
        if self.get(Host::MoreAbilities) & more_abilities::HANDOFF != 0 {
            let before = self.get(Host::Handoff);
            self.set(Host::Handoff, before | handoff::DRIVER);
            // Firmware that does not answer has nothing to say any more.
            self.until(HANDOFF_NS, |disk| disk.get(Host::Handoff) & handoff::FIRMWARE == 0);
        }
        self.set(Host::Control, control::AHCI | control::RESET);
        if !self.until(RESET_NS, |disk| disk.get(Host::Control) & control::RESET == 0) {
            return Err(Trouble::Broken);
        }
        self.set(Host::Control, control::AHCI);
        let is_wide = self.get(Host::Abilities) & abilities::WIDE != 0;
        let end = self.hardware.device_address() + crate::MEMORY_BYTES as u64;
        if !is_wide && end > 1 << 32 {
            return Err(Trouble::Broken);
        }
        let ports = self.get(Host::Ports);
        for port in (0..PORTS_MAX).filter(|port| ports >> port & 1 != 0) {
            self.port = port;
            self.command_port(IDLE, 0);
        }
        Ok(self.hardware.now_ns())
    }

    /// The disk at the port, started. The controller was reset at `since`.
    fn look(&mut self, since: u64) -> Result<Geometry> {
        if !self.is_linked(since) {
            return Err(Trouble::NoDisk);
        }
        self.start(since)?;
        self.identify()
    }

    /// Whether something is behind the port, and the link to it is up.
    fn is_linked(&mut self, since: u64) -> bool {
        let detection = |disk: &mut Self| disk.of_port(Port::Link) & link::DETECTION;
        let left = self.left(since, DETECTION_NS);
        self.until(left, |disk| detection(disk) != link::NOTHING);
        let left = if detection(self) == link::NOTHING { 0 } else { self.left(since, LINK_NS) };
        self.until(left, |disk| detection(disk) == link::UP)
    }

    /// Time that is left of a limit.
    fn left(&mut self, since: u64, limit_ns: u64) -> u64 {
        limit_ns.saturating_sub(self.hardware.now_ns().saturating_sub(since))
    }

    /// Starts the port, if a disk is behind it and gets ready.
    fn start(&mut self, since: u64) -> Result<()> {
        self.stop()?;
        let memory = self.hardware.device_address();
        for (low, high, at) in [
            (Port::List, Port::ListHigh, command::LIST),
            (Port::Received, Port::ReceivedHigh, command::RECEIVED),
        ] {
            let address = memory + at as u64;
            self.set_port(low, address as u32);
            self.set_port(high, (address >> 32) as u32);
        }
        self.set_port(Port::LinkErrors, u32::MAX);
        self.command_port(port_command::RECEIVE, 0);
        let left = self.left(since, READY_NS);
        // The disk says that it is ready by what it is, which the controller receives now.
        let is_ready =
            |disk: &mut Self| disk.of_port(Port::TaskFile) & (task_file::BUSY | task_file::DATA) == 0;
        if !self.until(left, is_ready) || self.of_port(Port::Signature) != registers::DISK {
            return Err(Trouble::NoDisk);
        }
        self.set_port(Port::LinkErrors, u32::MAX);
        self.interrupts();
        self.set_port(Port::Enabled, reason::DONE | reason::WORDS | reason::MOVES | reason::ERRORS);
        self.command_port(port_command::START, 0);
        Ok(())
    }

    /// Stops the port: commands first, then what the device says (10.3.2).
    fn stop(&mut self) -> Result<()> {
        self.set_port(Port::Enabled, 0);
        for (wanted, is) in
            [(port_command::START, port_command::RUNS), (port_command::RECEIVE, port_command::RECEIVES)]
        {
            self.command_port(0, wanted);
            if !self.until(STOP_NS, |disk| disk.of_port(Port::Command) & is == 0) {
                self.is_broken = true;
                return Err(Trouble::Broken);
            }
        }
        Ok(())
    }

    /// Asks the disk what it is.
    fn identify(&mut self) -> Result<Geometry> {
        let mut bytes = [0; identify::BYTES];
        self.hardware.store(command::DATA, &bytes);
        self.run(Command::Identify)?;
        self.hardware.load(command::DATA, &mut bytes);
        Geometry::read(&bytes).ok_or(Trouble::Unsuitable)
    }

    /// Has a command done. After a failure everything is ready for the next, or broken for ever.
    fn request(&mut self, command: Command) -> Result<()> {
        if self.is_broken {
            return Err(Trouble::Broken);
        }
        let outcome = self.run(command);
        if outcome.is_err() && self.recover() != Ok(self.geometry) {
            self.is_broken = true;
            return Err(Trouble::Broken);
        }
        outcome
    }

    /// Has a command done.
    fn run(&mut self, command: Command) -> Result<()> {
        let is_there = self.of_port(Port::Link) & link::DETECTION == link::UP;
        if !is_there || self.of_port(Port::Issue) != 0 {
            return Err(Trouble::Failed);
        }
        let memory = self.hardware.device_address();
        self.hardware.store(command::TABLE, &command.table(memory));
        self.hardware.store(command::LIST, &command.header(memory));
        self.interrupts();
        self.set_port(Port::Issue, SLOT);
        let mut outcome = Err(Trouble::Failed);
        self.until(PATIENCE_NS, |disk| match disk.outcome(command) {
            Some(found) => {
                outcome = found;
                true
            }
            None => false,
        });
        outcome
    }

    /// How a command went. `None` if it is not over.
    fn outcome(&mut self, command: Command) -> Option<Result<()>> {
        if self.interrupts() & reason::ERRORS != 0 {
            return Some(Err(Trouble::Failed));
        }
        if self.of_port(Port::Issue) & SLOT != 0 {
            return None;
        }
        let wrong = task_file::ERROR | task_file::DATA | task_file::FAULT | task_file::BUSY;
        let is_well = self.of_port(Port::TaskFile) & wrong == 0;
        let mut moved = [0; 4];
        self.hardware.load(command::MOVED, &mut moved);
        let is_whole = u32::from_le_bytes(moved) as usize == command.len();
        Some(if is_well && is_whole { Ok(()) } else { Err(Trouble::Failed) })
    }

    /// Reasons for interrupts, which are taken back: the port's first, since they are a reason of the controller's.
    fn interrupts(&mut self) -> u32 {
        let reasons = self.of_port(Port::Interrupts);
        self.set_port(Port::Interrupts, reasons);
        self.set(Host::Interrupts, 1 << self.port);
        reasons
    }

    /// Stops what is under way, resets the link, and starts anew. What is behind the link then.
    fn recover(&mut self) -> Result<Geometry> {
        self.stop()?;
        self.set_port(Port::LinkControl, link_control::AWAKE | link_control::RESET);
        self.until(HOLD_NS, |_| false);
        self.set_port(Port::LinkControl, link_control::AWAKE);
        let since = self.hardware.now_ns();
        self.look(since)
    }
}
