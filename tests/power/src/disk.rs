//! A disk in memory, for file systems.

use std::cell::RefCell;
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
