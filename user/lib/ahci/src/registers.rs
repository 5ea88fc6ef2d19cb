//! Registers of a controller and of its ports, and the bits that a driver needs: chapter 3.

/// Ports that a controller can have.
pub const PORTS_MAX: u32 = 32;

/// A register of the whole controller, by its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Host {
    /// Abilities.
    Abilities = 0x00,
    /// Control.
    Control = 0x04,
    /// Ports with interrupts, one bit each; ones clear.
    Interrupts = 0x08,
    /// Ports that there are, one bit each.
    Ports = 0x0c,
    /// More abilities.
    MoreAbilities = 0x24,
    /// Handoff between firmware and driver.
    Handoff = 0x28,
}

/// A register of a port, by its offset from the port's first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Port {
    /// Physical address of the command list.
    List = 0x00,
    /// Its upper half.
    ListHigh = 0x04,
    /// Physical address of what the device says.
    Received = 0x08,
    /// Its upper half.
    ReceivedHigh = 0x0c,
    /// Reasons of interrupts; ones clear.
    Interrupts = 0x10,
    /// Reasons that do interrupt.
    Enabled = 0x14,
    /// Command and status of the port itself.
    Command = 0x18,
    /// Status (byte 0) and error of the device.
    TaskFile = 0x20,
    /// Kind of the device.
    Signature = 0x24,
    /// State of the link.
    Link = 0x28,
    /// Control of the link.
    LinkControl = 0x2c,
    /// Errors of the link; ones clear.
    LinkErrors = 0x30,
    /// Commands that are under way; ones start them.
    Issue = 0x38,
}

const FIRST_PORT: usize = 0x100;
const PORT_BYTES: usize = 0x80;

impl Host {
    /// Its offset.
    pub const fn at(self) -> usize {
        self as usize
    }
}

impl Port {
    /// Its offset, for a port.
    pub const fn at(self, number: u32) -> usize {
        FIRST_PORT + PORT_BYTES * number as usize + self as usize
    }
}

/// Bits of [`Host::Abilities`].
pub mod abilities {
    /// Addresses may have 64 bits.
    pub const WIDE: u32 = 1 << 31;
}

/// Bits of [`Host::MoreAbilities`].
pub mod more_abilities {
    /// Firmware hands the controller off.
    pub const HANDOFF: u32 = 1 << 0;
}

/// Bits of [`Host::Handoff`].
pub mod handoff {
    /// Firmware has it.
    pub const FIRMWARE: u32 = 1 << 0;
    /// The driver wants it.
    pub const DRIVER: u32 = 1 << 1;
}

/// Bits of [`Host::Control`].
pub mod control {
    /// Resets everything; clears itself.
    pub const RESET: u32 = 1 << 0;
    /// Interrupts.
    pub const INTERRUPTS: u32 = 1 << 1;
    /// Is an AHCI controller, and nothing older.
    pub const AHCI: u32 = 1 << 31;
}

/// Bits of [`Port::Command`].
pub mod port_command {
    /// Works off the command list.
    pub const START: u32 = 1 << 0;
    /// Spins the device up.
    pub const SPIN_UP: u32 = 1 << 1;
    /// Gives the device power.
    pub const POWER: u32 = 1 << 2;
    /// Writes to memory what the device says.
    pub const RECEIVE: u32 = 1 << 4;
    /// Does so.
    pub const RECEIVES: u32 = 1 << 14;
    /// Does work off the list.
    pub const RUNS: u32 = 1 << 15;
}

/// Bits of [`Port::Interrupts`] and [`Port::Enabled`].
pub mod reason {
    /// The device has said that it is done.
    pub const DONE: u32 = 1 << 0;
    /// It has begun to send data word by word.
    pub const WORDS: u32 = 1 << 1;
    /// Data moves.
    pub const MOVES: u32 = 1 << 2;
    /// More came than fits: a fault of the controller's, of the link's, of memory, of the device's.
    pub const ERRORS: u32 = 1 << 24 | 1 << 27 | 1 << 28 | 1 << 29 | 1 << 30;
}

/// Bits of [`Port::TaskFile`].
pub mod task_file {
    /// The last command failed.
    pub const ERROR: u32 = 1 << 0;
    /// Wants to move data.
    pub const DATA: u32 = 1 << 3;
    /// The device itself is faulty.
    pub const FAULT: u32 = 1 << 5;
    /// Is busy.
    pub const BUSY: u32 = 1 << 7;
}

/// Values of [`Port::Link`].
pub mod link {
    /// Bits that tell whether a device is there.
    pub const DETECTION: u32 = 0xf;
    /// No device.
    pub const NOTHING: u32 = 0;
    /// A device, and it can be talked to.
    pub const UP: u32 = 3;
}

/// Values of [`Port::LinkControl`].
pub mod link_control {
    /// The link does not save power.
    pub const AWAKE: u32 = 3 << 8;
    /// Resets the link, as long as it is there.
    pub const RESET: u32 = 1;
}

/// [`Port::Signature`] of a disk.
pub const DISK: u32 = 0x0000_0101;
