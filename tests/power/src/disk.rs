//! Disks in memory, for file systems.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use vfs::Result;

/// Bytes of a sector.
pub const SECTOR: usize = 512;

/// A disk in memory. Copies are the disk itself. A range that it does not have is an error.
#[derive(Clone, Debug)]
pub struct Memory(pub Rc<RefCell<Vec<u8>>>);

impl Memory {
    /// A disk of zeros.
    pub fn new(bytes: usize) -> Memory {
        Memory::of(vec![0; bytes])
    }

    /// A disk that has these bytes.
    pub fn of(bytes: Vec<u8>) -> Memory {
        Memory(Rc::new(RefCell::new(bytes)))
    }
}

impl ext4::Disk for Memory {
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn sectors(&self) -> u64 {
        (self.0.borrow().len() / SECTOR) as u64
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        let at = first as usize * SECTOR;
        to.copy_from_slice(self.0.borrow().get(at..at + to.len()).ok_or(vfs::Error::Io)?);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        let at = first as usize * SECTOR;
        let mut bytes = self.0.borrow_mut();
        bytes.get_mut(at..at + from.len()).ok_or(vfs::Error::Io)?.copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A disk that stays as it is: what is written to it lies beside, and goes with this. So a large disk is looked at again and again without a copy of it. A range that it
/// does not have is an error.
#[derive(Clone, Debug)]
pub struct Layer<'a> {
    base: &'a [u8],
    /// Sectors that were written, by their numbers.
    written: BTreeMap<u64, [u8; SECTOR]>,
}

impl<'a> Layer<'a> {
    /// Nothing is written yet.
    pub fn over(base: &'a [u8]) -> Layer<'a> {
        Layer { base, written: BTreeMap::new() }
    }

    /// Bytes of the disk below, if it has all of them.
    fn below(&self, first: u64, len: usize) -> Result<&'a [u8]> {
        let at = usize::try_from(first).ok().and_then(|first| first.checked_mul(SECTOR));
        let range = at.and_then(|at| Some(at..at.checked_add(len)?));
        range.and_then(|range| self.base.get(range)).ok_or(vfs::Error::Io)
    }
}

impl ext4::Disk for Layer<'_> {
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn sectors(&self) -> u64 {
        (self.base.len() / SECTOR) as u64
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(self.below(first, to.len())?);
        let end = first + (to.len() / SECTOR) as u64;
        for (number, sector) in self.written.range(first..end) {
            to[(number - first) as usize * SECTOR..][..SECTOR].copy_from_slice(sector);
        }
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.below(first, from.len())?;
        let (sectors, _) = from.as_chunks::<SECTOR>();
        self.written.extend((first..).zip(sectors.iter().copied()));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A disk of any kind. A file system on it is compiled once for all kinds of disks, and not once for each, for which a compiler wants ten seconds.
pub struct Any<'a>(Box<dyn ext4::Disk + 'a>);

/// A file system that is mounted on a disk of any kind.
pub type Mounted<'a> = ext4::Mounted<Any<'a>>;

/// Mounts a file system, whose clock this is.
pub fn mount<'a>(disk: impl ext4::Disk + 'a, clock: fn() -> u64) -> Result<Mounted<'a>> {
    ext4::Mounted::new(Any(Box::new(disk)), clock)
}

/// Makes an empty file system on a disk.
pub fn format<'a>(disk: impl ext4::Disk + 'a, clock: fn() -> u64) -> Result<()> {
    ext4::format(Any(Box::new(disk)), clock)
}

impl ext4::Disk for Any<'_> {
    fn sector_bytes(&self) -> u32 {
        self.0.sector_bytes()
    }

    fn sectors(&self) -> u64 {
        self.0.sectors()
    }

    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        self.0.read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.0.write(first, from)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ext4::Disk;

    #[test]
    fn what_is_written_lies_beside_the_disk() {
        let base: Vec<u8> = (0..8 * SECTOR).map(|at| (at / SECTOR) as u8).collect();
        let mut disk = Layer::over(&base);
        let mut found = vec![0; 4 * SECTOR];
        disk.write(2, &[0xff; 2 * SECTOR]).unwrap();
        disk.write(3, &[0xee; SECTOR]).unwrap();
        disk.read(1, &mut found).unwrap();
        let firsts: Vec<u8> = found.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert_eq!(firsts, [1, 0xff, 0xee, 4]);
        assert_eq!(base[2 * SECTOR], 2);
        assert_eq!(disk.sectors(), 8);
        for first in [5, 8, u64::MAX] {
            assert_eq!(disk.read(first, &mut found), Err(vfs::Error::Io), "{first}");
            assert_eq!(disk.write(first, &found), Err(vfs::Error::Io), "{first}");
        }
    }
}
