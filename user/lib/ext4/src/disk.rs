//! A disk under the file system.

use crate::counts::Counts;
use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::log::Log;
use crate::padding::Padding;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rsext4::{BlockIo, DeviceCapabilities, DeviceGeometry, Ext4Error, Ext4Result, SectorId, WriteFlags};
use vfs::Result;

/// A disk: sectors that are read and written whole.
pub trait Disk {
    /// Bytes of a sector, a power of two.
    fn sector_bytes(&self) -> u32;

    /// How many sectors there are.
    fn sectors(&self) -> u64;

    /// Whether nothing can be written.
    fn is_read_only(&self) -> bool;

    /// Reads whole sectors from one on.
    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()>;

    /// Writes whole sectors from one on.
    fn write(&mut self, first: u64, from: &[u8]) -> Result<()>;

    /// Done when what was written survives a loss of power.
    fn flush(&mut self) -> Result<()>;
}

/// A disk that somebody else goes on with.
impl<D: Disk> Disk for &mut D {
    fn sector_bytes(&self) -> u32 {
        (**self).sector_bytes()
    }

    fn sectors(&self) -> u64 {
        (**self).sectors()
    }

    fn is_read_only(&self) -> bool {
        (**self).is_read_only()
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        (**self).read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        (**self).write(first, from)
    }

    fn flush(&mut self) -> Result<()> {
        (**self).flush()
    }
}

/// Most bytes that are kept of a journal which cannot be replayed on the disk: as many as the journal of a small disk has.
const KEPT_MAX: usize = 4 << 20;

/// A disk as the library wants it.
pub struct Sectors<D> {
    disk: D,
    padding: Padding,
    /// Corrects counts of blocks. None where the library writes nothing, or where it cannot be told what it writes.
    counts: Option<Counts>,
    log: Option<Log>,
    /// Sectors that cannot be written to a disk which can only be read, by their numbers: its journal is replayed in memory. None if the disk can be written.
    kept: Option<BTreeMap<u64, Vec<u8>>>,
}

impl<D: Disk> Sectors<D> {
    /// A disk with a file system on it.
    pub fn mounted(mut disk: D) -> Sectors<D> {
        let kept = disk.is_read_only().then(BTreeMap::new);
        // Whatever does not read is found by the library.
        let geometry = Geometry::of(&mut disk).ok().flatten();
        let geometry = geometry.filter(|found| found.block_bytes >= u64::from(disk.sector_bytes()));
        let padding = geometry.as_ref().map(Padding::of).unwrap_or_default();
        let counts = geometry.as_ref().map(Counts::of).filter(|_| kept.is_none());
        let log = Journal::of(&mut disk).ok().flatten().map(Log::of).filter(|_| counts.is_some());
        Sectors { disk, padding, counts, log, kept }
    }

    /// A disk on which a file system is to be made.
    pub fn empty(disk: D) -> Sectors<D> {
        Sectors { disk, padding: Padding::default(), counts: None, log: None, kept: None }
    }

    /// Bytes of a sector.
    fn sector_len(&self) -> usize {
        self.disk.sector_bytes() as usize
    }

    /// Writes sectors, and puts right what the library does not.
    fn write_corrected(&mut self, sector: u64, from: &[u8]) -> Result<()> {
        let at = sector * u64::from(self.disk.sector_bytes());
        let padded = self.padding.set(at, from);
        let from = padded.as_deref().unwrap_or(from);
        let Some(counts) = &mut self.counts else { return self.disk.write(sector, from) };
        let block_bytes = counts.block_bytes();
        let (first, is_whole) = (at / block_bytes as u64, at.is_multiple_of(block_bytes as u64));
        if let Some(log) = &mut self.log
            && log.has(first)
        {
            // It comes block by block.
            if is_whole && from.len() == block_bytes && log.write(first, from, counts) {
                return Ok(());
            }
            // Nothing that comes later is there before what was held back.
            if !log.is_in_descriptor() {
                self.finish_log()?;
            }
            return self.disk.write(sector, from);
        }
        let mut corrected = None;
        for (index, bytes) in from.chunks(block_bytes).enumerate() {
            let block = first + index as u64;
            counts.written(block);
            if is_whole && counts.concerns(block, bytes) {
                let range = index * block_bytes..index * block_bytes + bytes.len();
                let all = corrected.get_or_insert_with(|| from.to_vec());
                counts.correct(&mut self.disk, block, &mut all[range]);
            }
        }
        self.disk.write(sector, corrected.as_deref().unwrap_or(from))
    }

    /// Writes what was held back of a transaction.
    fn finish_log(&mut self) -> Result<()> {
        let (Some(log), Some(counts)) = (&mut self.log, &self.counts) else { return Ok(()) };
        if log.is_empty() {
            return Ok(());
        }
        let sectors = counts.block_bytes() as u64 / u64::from(self.disk.sector_bytes());
        log.finish(counts, &mut self.disk, |disk, block, bytes| disk.write(block * sectors, bytes))
    }

    /// Whether bytes are so many sectors, all of them there.
    fn check(&self, len: usize, sector: SectorId, count: u32) -> Ext4Result<()> {
        let is_whole = len as u64 == u64::from(count) * u64::from(self.disk.sector_bytes());
        let is_there = sector.checked_add(count)?.raw() <= self.disk.sectors();
        if is_whole && is_there {
            Ok(())
        } else {
            Err(Ext4Error::invalid_input().with_operation("disk:range"))
        }
    }
}

impl<D: Disk> BlockIo for Sectors<D> {
    fn write(&mut self, buffer: &[u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        self.check(buffer.len(), sector, count)?;
        let len = self.sector_len();
        if let Some(kept) = &mut self.kept {
            for (number, bytes) in (sector.raw()..).zip(buffer.chunks(len)) {
                if kept.len() * len >= KEPT_MAX && !kept.contains_key(&number) {
                    return Err(Ext4Error::read_only().with_operation("disk:journal"));
                }
                kept.insert(number, bytes.to_vec());
            }
            return Ok(());
        }
        self.write_corrected(sector.raw(), buffer).map_err(|_| Ext4Error::io())
    }

    fn read(&mut self, buffer: &mut [u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        self.check(buffer.len(), sector, count)?;
        self.disk.read(sector.raw(), buffer).map_err(|_| Ext4Error::io())?;
        let len = self.sector_len();
        let end = sector.raw() + u64::from(count);
        for (number, bytes) in self.kept.iter().flat_map(|kept| kept.range(sector.raw()..end)) {
            let at = (number - sector.raw()) as usize * len;
            buffer[at..at + len].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn write_with_flags(
        &mut self,
        buffer: &[u8],
        sector: SectorId,
        count: u32,
        flags: WriteFlags,
    ) -> Ext4Result<()> {
        if flags.contains(WriteFlags::FUA) {
            return Err(Ext4Error::unsupported());
        }
        self.write(buffer, sector, count)
    }

    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry::new(self.disk.sector_bytes(), self.disk.sectors())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        DeviceCapabilities {
            // To be written in memory suffices to replay a journal; the mounted file system is read alone.
            read_only: self.kept.is_none() && self.disk.is_read_only(),
            flush: true,
            ..DeviceCapabilities::default()
        }
    }

    fn flush(&mut self) -> Ext4Result<()> {
        if self.kept.is_some() {
            return Ok(());
        }
        self.finish_log().and_then(|()| self.disk.flush()).map_err(|_| Ext4Error::io())
    }
}
