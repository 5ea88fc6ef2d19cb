//! Commands as they lie in memory: a list with one command, its table, and its data.
//!
//! ```text
//! 0x0000  the command list: the first of 32 headers is used   section 4.2.2
//! 0x0400  what the device says, of which nobody reads anything 4.2.1
//! 0x0500  the command's table: what the device is told, and    4.2.3
//!         one region of data
//! 0x1000  its data
//! ```
//!
//! The device may change all of that at any time. So everything is written anew for each command, and nothing of it is read but how many bytes
//! were moved, and data.

use crate::BYTES_MAX;

/// Where the list is; its address is a multiple of 1 KiB.
pub const LIST: usize = 0;
/// Where the device says something; a multiple of 256 bytes.
pub const RECEIVED: usize = 0x400;
/// Where the table is; a multiple of 128 bytes.
pub const TABLE: usize = 0x500;
/// Where data is.
pub const DATA: usize = 0x1000;

/// Bytes of a header in the list.
pub const HEADER_BYTES: usize = 32;
/// Where a header tells how many bytes were moved.
pub const MOVED: usize = LIST + 4;
/// Bytes of a table with one region.
pub const TABLE_BYTES: usize = REGION + 16;
/// Where the region is, in the table.
const REGION: usize = 0x80;

/// Length of a register FIS from host to device, which is what the device is told, in units of four bytes, as a header says it.
const WORDS: u32 = 5;
const HOST_TO_DEVICE: u8 = 0x27;
const IS_COMMAND: u8 = 0x80;
/// In [`Header`]'s first word.
const IS_WRITE: u32 = 1 << 6;
/// Number of regions, in the first word of a header.
const REGIONS_SHIFT: u32 = 16;
/// In the device register: an address counts sectors.
const BY_SECTOR: u8 = 1 << 6;

/// Sectors have addresses of 48 bits.
pub const SECTORS_MAX: u64 = 1 << 48;

/// A command of a disk (ATA8-ACS, chapter 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// The disk tells what it is, in 512 bytes.
    Identify,
    /// Moves sectors from the disk: the first and how many, and their bytes.
    Read(u64, u16, usize),
    /// Moves sectors to the disk.
    Write(u64, u16, usize),
    /// Makes all that was written survive a loss of power.
    Flush,
}

impl Command {
    const fn number(self) -> u8 {
        match self {
            Command::Identify => 0xec,
            Command::Read(..) => 0x25,
            Command::Write(..) => 0x35,
            Command::Flush => 0xea,
        }
    }

    /// Bytes that it moves.
    pub const fn len(self) -> usize {
        match self {
            Command::Identify => crate::identify::BYTES,
            Command::Read(_, _, len) | Command::Write(_, _, len) => len,
            Command::Flush => 0,
        }
    }

    /// Whether it moves no bytes.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The words for the device.
    pub fn words(self) -> [u8; 4 * WORDS as usize] {
        let (first, count) = match self {
            Command::Read(first, count, _) | Command::Write(first, count, _) => (first, count),
            Command::Identify | Command::Flush => (0, 0),
        };
        debug_assert!(first + u64::from(count) <= SECTORS_MAX);
        let (first, count) = (first.to_le_bytes(), count.to_le_bytes());
        let mut words = [0; 4 * WORDS as usize];
        words[..3].copy_from_slice(&[HOST_TO_DEVICE, IS_COMMAND, self.number()]);
        words[4..7].copy_from_slice(&first[..3]);
        words[7] = BY_SECTOR;
        words[8..11].copy_from_slice(&first[3..6]);
        words[12..14].copy_from_slice(&count);
        words
    }

    /// Its header in the list, for memory that the device knows at this address.
    pub fn header(self, memory: u64) -> [u8; HEADER_BYTES] {
        let write = if matches!(self, Command::Write(..)) { IS_WRITE } else { 0 };
        let regions = u32::from(!self.is_empty()) << REGIONS_SHIFT;
        let table = memory + TABLE as u64;
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(WORDS | write | regions).to_le_bytes());
        header[8..16].copy_from_slice(&table.to_le_bytes());
        header
    }

    /// Its table, for memory that the device knows at this address.
    pub fn table(self, memory: u64) -> [u8; TABLE_BYTES] {
        debug_assert!(self.len() <= BYTES_MAX && self.len().is_multiple_of(2));
        let mut table = [0; TABLE_BYTES];
        let words = self.words();
        table[..words.len()].copy_from_slice(&words);
        if let Some(last) = self.len().checked_sub(1) {
            let data = memory + DATA as u64;
            table[REGION..REGION + 8].copy_from_slice(&data.to_le_bytes());
            // The size is told less one, and is even.
            table[REGION + 12..REGION + 16].copy_from_slice(&(last as u32).to_le_bytes());
        }
        table
    }
}
