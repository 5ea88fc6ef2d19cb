//! Contents of files, block by block, and the first blocks, which say how long files are.

use super::{Crypt, FILE_MAX, Header, SPARE_MAX};
use crate::block::{self, BLOCK, capacity, place};
use alloc::boxed::Box;
use vfs::{Attributes, Error, FileSystem, Inode, Result};

/// Most zeros that one call writes.
const ZEROS_MAX: u64 = 4 << 20;

pub(super) fn zeros() -> Box<[u8; BLOCK]> {
    Box::new([0; BLOCK])
}

impl<F: FileSystem> Crypt<F> {
    /// The first block of a file is read, unless it is kept in mind.
    pub(super) fn header(&mut self, file: Inode) -> Result<Header> {
        self.clock += 1;
        if let Some(header) = self.files.get_mut(&file) {
            header.used = self.clock;
            return Ok(*header);
        }
        let mut first = zeros();
        if self.fs.read(file, 0, &mut first[..])? < BLOCK {
            return Err(Error::Damaged);
        }
        let mut id = [0; block::ID];
        id.copy_from_slice(&first[..block::ID]);
        block::open(&self.keys, &id, 0, &mut first)?;
        let len = block::len(&first);
        if len > FILE_MAX || self.fs.len(file)? < block::count(len) * BLOCK as u64 {
            return Err(Error::Damaged);
        }
        let header =
            Header { id, len, stored: len, safe: block::count(len), is_held: false, used: self.clock };
        self.keep(file, header);
        self.last = Some((file, 0, first));
        Ok(header)
    }

    pub(super) fn keep(&mut self, file: Inode, header: Header) {
        let spare = self.files.iter().filter(|(_, header)| !header.is_held);
        if spare.clone().count() >= SPARE_MAX
            && let Some((&oldest, _)) = spare.min_by_key(|(_, header)| header.used)
        {
            // Nobody is left who could hear of an error.
            let _ = self.store(oldest);
            self.files.remove(&oldest);
        }
        self.files.insert(file, header);
    }

    /// A block of a file, decrypted, to be looked at.
    pub(super) fn block(&mut self, file: Inode, number: u64) -> Result<&mut [u8; BLOCK]> {
        let is_last = self.last.as_ref().is_some_and(|(of, at, _)| (*of, *at) == (file, number));
        if !is_last {
            let id = self.header(file)?.id;
            let mut found = zeros();
            if self.fs.read(file, number * BLOCK as u64, &mut found[..])? < BLOCK {
                return Err(Error::Damaged);
            }
            block::open(&self.keys, &id, number, &mut found)?;
            self.last = Some((file, number, found));
        }
        self.last.as_mut().map(|(_, _, found)| &mut **found).ok_or(Error::Io)
    }

    /// Encrypts a block and writes it. A first one says the length, if all that belongs to it survives, and else what it said before.
    pub(super) fn put(&mut self, file: Inode, number: u64, mut plain: Box<[u8; BLOCK]>) -> Result<()> {
        let mut header = self.header(file)?;
        if number == 0 {
            if block::count(header.len) <= header.safe {
                header.stored = header.len;
            }
            block::set_len(&mut plain, header.stored);
        }
        let mut sealed = plain.clone();
        block::seal(&self.keys, &header.id, number, &mut sealed, self.random)?;
        self.last = None;
        if self.fs.write(file, number * BLOCK as u64, &sealed[..])? < BLOCK {
            return Err(Error::NoSpace);
        }
        self.last = Some((file, number, plain));
        if let Some(known) = self.files.get_mut(&file) {
            known.stored = header.stored;
        }
        Ok(())
    }

    pub(super) fn set_len(&mut self, file: Inode, len: u64) {
        if let Some(header) = self.files.get_mut(&file) {
            header.len = len;
        }
    }

    /// Writes bytes, or zeros if there are none, from an offset on that is not behind the end. Gives back how many were written.
    pub(super) fn write_range(
        &mut self,
        file: Inode,
        offset: u64,
        count: u64,
        from: Option<&[u8]>,
    ) -> Result<u64> {
        let mut done = 0;
        while done < count {
            let header = self.header(file)?;
            let (number, at) = place(offset + done);
            let len = (capacity(number) - at).min(usize::try_from(count - done).unwrap_or(usize::MAX));
            // Of what is there, bytes behind the end are nobody's.
            let there = header.len.saturating_sub(block::start(number)).min(capacity(number) as u64) as usize;
            let is_whole = at == 0 && len >= there;
            let mut plain = if is_whole { zeros() } else { Box::new(*self.block(file, number)?) };
            let contents = block::contents(number, &mut plain);
            if is_whole {
                contents.fill(0);
            } else {
                contents[there..].fill(0);
            }
            match from {
                Some(from) => contents[at..at + len].copy_from_slice(&from[done as usize..][..len]),
                None => contents[at..at + len].fill(0),
            }
            self.set_len(file, header.len.max(offset + done + len as u64));
            if let Err(error) = self.put(file, number, plain) {
                self.set_len(file, header.len);
                return if done > 0 && error == Error::NoSpace { Ok(done) } else { Err(error) };
            }
            done += len as u64;
        }
        Ok(done)
    }

    /// Zeros from the end of a file to an offset.
    pub(super) fn lengthen(&mut self, file: Inode, to: u64) -> Result<()> {
        let len = self.header(file)?.len;
        if to <= len {
            return Ok(());
        }
        if to > FILE_MAX || to - len > ZEROS_MAX {
            return Err(Error::TooLarge);
        }
        let written = self.write_range(file, len, to - len, None);
        if written == Ok(to - len) {
            return Ok(());
        }
        self.shorten(file, len)?;
        written.and(Err(Error::NoSpace))
    }

    /// A file ends there, which is not behind its end.
    pub(super) fn shorten(&mut self, file: Inode, len: u64) -> Result<()> {
        let before = self.header(file)?;
        let (was, is) = (block::count(before.len), block::count(len));
        if before.stored > len {
            let first = Box::new(*self.block(file, 0)?);
            self.set_len(file, len);
            if let Err(error) = self.put(file, 0, first) {
                self.set_len(file, before.len);
                return Err(error);
            }
            if is < was {
                self.fs.sync(file)?;
            }
        }
        self.set_len(file, len);
        if is < was || self.fs.len(file)? > is * BLOCK as u64 {
            if self.last.as_ref().is_some_and(|(of, number, _)| *of == file && *number >= is) {
                self.last = None;
            }
            self.fs.truncate(file, is * BLOCK as u64)?;
        }
        if let Some(header) = self.files.get_mut(&file) {
            header.safe = header.safe.min(is);
        }
        Ok(())
    }

    /// Has the first block say the length, once all blocks survive. Says whether it did not before.
    pub(super) fn store(&mut self, file: Inode) -> Result<bool> {
        let Some(header) = self.files.get(&file).copied() else { return Ok(false) };
        if header.stored == header.len {
            return Ok(false);
        }
        self.fs.sync(file)?;
        if let Some(header) = self.files.get_mut(&file) {
            header.safe = block::count(header.len);
        }
        let first = Box::new(*self.block(file, 0)?);
        self.put(file, 0, first)?;
        Ok(true)
    }

    /// Bytes of a file that cannot be read: as many as it could have. So it can be seen, and removed.
    pub(super) fn len_or_guess(&mut self, found: &Attributes) -> Result<u64> {
        match self.header(found.inode) {
            Ok(header) => Ok(header.len),
            Err(Error::Damaged) => Ok(block::start(found.len / BLOCK as u64)),
            Err(error) => Err(error),
        }
    }
}
