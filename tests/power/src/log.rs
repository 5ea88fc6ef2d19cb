//! Logs of writes, as QEMU's `blklogwrites` and Linux's `dm-log-writes` make them.
//!
//! A log is a superblock in a sector of its own, and entries one behind the other: a header in a sector, and then the bytes that were written, up to the next
//! whole sector. Numbers have their lowest byte first (Linux, `drivers/md/dm-log-writes.c`). The superblock says how many entries there are; QEMU brings it up to
//! date at each flush, so entries of writes behind the last flush may be there and not be counted.

use std::fmt;

/// First number of a superblock.
const MAGIC: u64 = 0x006a_7366_7773_6872;
/// Second number.
const VERSION: u64 = 1;

/// Bytes of a superblock, and of an entry's header, without what fills their sectors.
const SUPERBLOCK: usize = 28;
/// See [`SUPERBLOCK`].
const HEADER: usize = 32;

/// Sectors that a log may have, in bytes.
const SECTORS: std::ops::RangeInclusive<u32> = 512..=65_536;

/// Flags of an entry.
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
const METADATA: u64 = 16;

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Its kind.
    pub kind: Kind<'a>,
    /// All entries before are safe.
    pub is_flush: bool,
    /// This entry itself is safe.
    pub is_fua: bool,
}

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind<'a> {
    /// Bytes were written.
    Write {
        /// The first one's place on the disk.
        at: u64,
        /// The bytes; none in an entry that only flushes.
        bytes: &'a [u8],
    },
    /// Bytes are not needed any more.
    Discard {
        /// The first one's place on the disk.
        at: u64,
        /// How many.
        len: u64,
    },
    /// Somebody has left a text.
    Mark(&'a [u8]),
}

/// Damage of a log, or something that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// There is no whole superblock.
    NoSuperblock,
    /// It begins with another number.
    NotALog(u64),
    /// A version that is not known.
    Version(u64),
    /// Sectors of so many bytes cannot be.
    SectorBytes(u32),
    /// The log ends within the entry of this number.
    CutOff(u64),
    /// The entry of this number has flags that are not known, or do not go together.
    Flags(u64, u64),
    /// The entry of this number is at a place that no disk has.
    Place(u64),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Damage::NoSuperblock => write!(f, "the log of writes has no superblock"),
            Damage::NotALog(magic) => write!(f, "no log of writes begins with {magic:#x}"),
            Damage::Version(version) => write!(f, "a log of writes has version {version}"),
            Damage::SectorBytes(bytes) => write!(f, "a log of writes has sectors of {bytes} bytes"),
            Damage::CutOff(entry) => write!(f, "a log of writes ends within entry {entry}"),
            Damage::Flags(entry, flags) => write!(f, "entry {entry} of a log of writes has flags {flags:#x}"),
            Damage::Place(entry) => {
                write!(f, "entry {entry} of a log of writes is at a place that cannot be")
            }
        }
    }
}

impl std::error::Error for Damage {}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The entries of a log, as many as its superblock says.
pub fn parse(log: &[u8]) -> Result<Vec<Entry<'_>>, Damage> {
    let superblock = log.get(..SUPERBLOCK).ok_or(Damage::NoSuperblock)?;
    let number = |at| word(superblock, at).ok_or(Damage::NoSuperblock);
    let (magic, version, count) = (number(0)?, number(8)?, number(16)?);
    if magic != MAGIC {
        return Err(Damage::NotALog(magic));
    }
    if version != VERSION {
        return Err(Damage::Version(version));
    }
    let sector = superblock[24..].try_into().map(u32::from_le_bytes).map_err(|_| Damage::NoSuperblock)?;
    if !sector.is_power_of_two() || !SECTORS.contains(&sector) {
        return Err(Damage::SectorBytes(sector));
    }
    let mut reader = Reader { log, sector: sector.into(), at: sector.into() };
    // A count that is a lie does not get memory before the entries are there.
    (0..count).map(|number| reader.next(number)).collect()
}

/// Entries that are still to be read.
struct Reader<'a> {
    log: &'a [u8],
    /// Bytes of a sector.
    sector: u64,
    /// Where the next entry begins.
    at: u64,
}

impl<'a> Reader<'a> {
    /// Bytes of the log from here on, with what fills the last sector behind them.
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.log.get(usize::try_from(self.at).ok()?..usize::try_from(end).ok()?)?;
        self.at = end.checked_next_multiple_of(self.sector)?;
        Some(bytes)
    }

    /// The next entry, which has this number.
    fn next(&mut self, number: u64) -> Result<Entry<'a>, Damage> {
        let header = self.take(HEADER as u64).ok_or(Damage::CutOff(number))?;
        let field = |at| word(header, at).ok_or(Damage::CutOff(number));
        let (first, count, flags, mark) = (field(0)?, field(8)?, field(16)?, field(24)?);
        let is_known = flags & !(FLUSH | FUA | DISCARD | MARK | METADATA) == 0;
        if !is_known || flags & MARK != 0 && flags != MARK || flags & DISCARD != 0 && flags & FUA != 0 {
            return Err(Damage::Flags(number, flags));
        }
        let place = || {
            let (at, len) = (first.checked_mul(self.sector)?, count.checked_mul(self.sector)?);
            at.checked_add(len).map(|_| (at, len))
        };
        let (at, len) = place().ok_or(Damage::Place(number))?;
        let kind = if flags & MARK != 0 {
            Kind::Mark(self.take(mark).ok_or(Damage::CutOff(number))?)
        } else if flags & DISCARD != 0 {
            Kind::Discard { at, len }
        } else {
            Kind::Write { at, bytes: self.take(len).ok_or(Damage::CutOff(number))? }
        };
        Ok(Entry { kind, is_flush: flags & FLUSH != 0, is_fua: flags & FUA != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with sectors of 512 bytes and these entries: first sector, sectors, flags, bytes of a mark.
    fn log(entries: &[(u64, u64, u64, &[u8])]) -> Vec<u8> {
        let mut log = [MAGIC, VERSION, entries.len() as u64].map(u64::to_le_bytes).concat();
        log.extend(512u32.to_le_bytes());
        for (number, (first, count, flags, mark)) in entries.iter().enumerate() {
            log.resize(log.len().next_multiple_of(512), 0);
            log.extend([*first, *count, *flags, mark.len() as u64].map(u64::to_le_bytes).concat());
            log.resize(log.len().next_multiple_of(512), 0);
            log.extend(*mark);
            if flags & (DISCARD | MARK) == 0 {
                log.resize(log.len() + *count as usize * 512, number as u8 + 1);
            }
        }
        log.resize(log.len().next_multiple_of(512), 0);
        log
    }

    const ENTRIES: &[(u64, u64, u64, &[u8])] = &[
        (4, 2, 0, b""),
        (0, 0, FLUSH, b""),
        (7, 1, FUA | METADATA, b""),
        (9, 1, FLUSH | FUA, b""),
        (1, 100, DISCARD, b""),
        (0, 0, MARK, b"here"),
    ];

    #[test]
    fn entries_of_each_kind_are_read() {
        let write = |at, bytes| Kind::Write { at, bytes };
        let expected = [
            (write(2048, &[1; 1024][..]), false, false),
            (write(0, &[]), true, false),
            (write(3584, &[3; 512]), false, true),
            (write(4608, &[4; 512]), true, true),
            (Kind::Discard { at: 512, len: 51_200 }, false, false),
            (Kind::Mark(b"here"), false, false),
        ];
        let expected = expected.map(|(kind, is_flush, is_fua)| Entry { kind, is_flush, is_fua });
        assert_eq!(parse(&log(ENTRIES)).as_deref(), Ok(&expected[..]));
        assert_eq!(parse(&log(&[])).as_deref(), Ok(&[][..]));
    }

    #[test]
    fn a_log_that_is_cut_off_is_damaged() {
        let whole = log(ENTRIES);
        // Zeros that fill the last sector may be missing.
        let end = whole.len() - 512 + 4;
        for len in 0..end {
            let expected = if len < SUPERBLOCK { Damage::NoSuperblock } else { Damage::CutOff(0) };
            match parse(&whole[..len]) {
                Err(Damage::CutOff(entry)) if len >= SUPERBLOCK => assert!(entry < 6),
                outcome => assert_eq!(outcome, Err(expected), "{len}"),
            }
        }
        assert!(parse(&whole[..end]).is_ok());
    }

    #[test]
    fn other_things_are_no_logs() {
        let damaged = |at: usize, bytes: &[u8]| {
            let mut log = log(ENTRIES);
            log[at..at + bytes.len()].copy_from_slice(bytes);
            parse(&log).map(|entries| entries.len())
        };
        assert_eq!(damaged(0, &[0]), Err(Damage::NotALog(MAGIC & !0xff)));
        assert_eq!(damaged(8, &[2]), Err(Damage::Version(2)));
        for sector in [0u32, 1, 511, 513, 131_072, u32::MAX] {
            assert_eq!(damaged(24, &sector.to_le_bytes()), Err(Damage::SectorBytes(sector)));
        }
        assert_eq!(damaged(16, &[5]), Ok(5));
        assert_eq!(damaged(16, &[7]), Err(Damage::CutOff(6)));
        assert_eq!(damaged(16, &u64::MAX.to_le_bytes()), Err(Damage::CutOff(6)));
        for flags in [32, MARK | FLUSH, DISCARD | FUA, 1 << 63] {
            assert_eq!(damaged(512 + 16, &flags.to_le_bytes()), Err(Damage::Flags(0, flags)));
        }
        assert_eq!(damaged(512, &u64::MAX.to_le_bytes()), Err(Damage::Place(0)));
        assert_eq!(damaged(512 + 8, &u64::MAX.to_le_bytes()), Err(Damage::Place(0)));
        assert_eq!(damaged(512 + 8, &(1u64 << 50).to_le_bytes()), Err(Damage::CutOff(0)));
        assert_eq!(
            damaged(512, &(1u64 << 54).to_le_bytes()),
            Ok(6),
            "a place far out is the reader's matter"
        );
    }
}
