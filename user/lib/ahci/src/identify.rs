//! A disk's own description of itself: 256 words, of which few matter here (ATA8-ACS, 7.12).

use crate::BYTES_MAX;
use crate::command::SECTORS_MAX;

/// Bytes of the description.
pub const BYTES: usize = 512;

/// Words of the description.
mod word {
    /// Commands that there are, and whether this word says so.
    pub const COMMANDS: usize = 83;
    /// Number of sectors, in four words.
    pub const SECTORS: usize = 100;
    /// Kind of the sectors, and whether this word says so.
    pub const SECTOR: usize = 106;
    /// Words of a sector, in two.
    pub const SECTOR_WORDS: usize = 117;
}

/// Whether a word says something is told by its upper two bits.
const VALID: u16 = 0b11 << 14;
const IS_VALID: u16 = 0b01 << 14;
/// In [`word::COMMANDS`]: addresses of 48 bits.
const WIDE: u16 = 1 << 10;
/// In [`word::SECTOR`]: sectors are longer than usual.
const LONG: u16 = 1 << 12;

/// Bytes of a sector that is not longer.
const USUAL_BYTES: usize = 512;

/// Size of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes of a sector: a power of two, from 512 to [`BYTES_MAX`].
    pub sector_bytes: usize,
    /// How many sectors there are, from 1 to [`SECTORS_MAX`].
    pub sectors: u64,
}

impl Geometry {
    /// Reads a description. `None` if no disk says that, or one that is not understood: without addresses of 48 bits, or with sectors of another
    /// size.
    pub fn read(bytes: &[u8; BYTES]) -> Option<Geometry> {
        let word = |at: usize| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        let has = |at: usize, bit: u16| word(at) & VALID == IS_VALID && word(at) & bit != 0;
        let number = |at: usize, words: usize| {
            (0..words).fold(0u64, |sum, index| sum | u64::from(word(at + index)) << (16 * index))
        };
        let sector_bytes =
            if has(word::SECTOR, LONG) { 2 * number(word::SECTOR_WORDS, 2) } else { USUAL_BYTES as u64 };
        let sectors = number(word::SECTORS, 4);
        let is_usual =
            sector_bytes.is_power_of_two() && (USUAL_BYTES as u64..=BYTES_MAX as u64).contains(&sector_bytes);
        (has(word::COMMANDS, WIDE) && is_usual && (1..=SECTORS_MAX).contains(&sectors))
            .then_some(Geometry { sector_bytes: sector_bytes as usize, sectors })
    }

    /// Sectors of a request for bytes from one on: whole sectors that are there, one at least, and [`BYTES_MAX`] at most. `None` if it is not so.
    pub fn sectors_of(self, first: u64, bytes: usize) -> Option<u16> {
        let is_whole = bytes > 0 && bytes <= BYTES_MAX && bytes.is_multiple_of(self.sector_bytes);
        let count = bytes / self.sector_bytes;
        let end = first.checked_add(count as u64)?;
        (is_whole && end <= self.sectors).then_some(count as u16)
    }
}
