//! Directories and files, for programs.

use crate::stubs::Files::{Directory as directory, File as file};
use crate::wire::{BYTES_MAX, attributes_from_wire, entry_from_wire, failed, how_to_bits, space_from_wire};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use rt::api::stub::{Inbox, View};
use rt::api::{Failure, Result};
use rt::door::Reference;
use rt::module::ask;
use vfs::{Attributes, Entry, How, Space};

/// Permissions of a file that a program makes.
const FILE: u16 = 0o644;

/// Permissions of a directory that a program makes.
const DIRECTORY: u16 = 0o755;

/// A directory that the program has a reference to. Paths begin there, and no path leads out of it.
#[derive(Debug)]
pub struct Directory(Reference<directory::Client<View>>);

impl Directory {
    /// The directory that a server hands out.
    pub fn of(server: &str) -> Result<Directory> {
        ask(server).map(|door| Directory(door.into()))
    }

    /// All files that the program may have.
    pub fn root() -> Result<Directory> {
        Directory::of(crate::NAME)
    }

    /// The reference, to hand it on.
    pub fn into_reference(self) -> Reference<directory::Client<View>> {
        self.0
    }

    /// Opens a file.
    pub fn open(&self, path: impl AsRef<[u8]>, how: How) -> Result<File> {
        let open = self.0.open(path.as_ref(), how_to_bits(how), FILE).map_err(failed)?;
        Ok(File { open, replies: None })
    }

    /// Another directory, by itself.
    pub fn enter(&self, path: impl AsRef<[u8]>) -> Result<Directory> {
        self.0.enter(path.as_ref()).map(Directory).map_err(failed)
    }

    /// All of a file. Fails if it is longer than that.
    pub fn read(&self, path: impl AsRef<[u8]>, len_max: usize) -> Result<Vec<u8>> {
        let mut file = self.open(path, How::default())?;
        let mut content = Vec::new();
        loop {
            let before = content.len();
            file.read_at(before as u64, BYTES_MAX, &mut content)?;
            if content.len() == before {
                return Ok(content);
            }
            if content.len() > len_max {
                return Err(Failure::Refused(rt::api::Status::TooLarge));
            }
        }
    }

    /// Makes a file of that content, in the place of the one that was there.
    pub fn write(&self, path: impl AsRef<[u8]>, content: &[u8]) -> Result<()> {
        let file = self.open(path, How { create: true, truncate: true, ..How::default() })?;
        file.write_at(0, content)
    }

    /// Attributes of what is at a path, or of the symbolic link there.
    pub fn stat(&self, path: impl AsRef<[u8]>, follow: bool) -> Result<Attributes> {
        self.0.stat_at(path.as_ref(), follow).map(|found| attributes_from_wire(&found)).map_err(failed)
    }

    /// All entries, in no order.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut replies = Box::new(directory::Replies::new());
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let cursor = all.last().map_or(0, |entry| entry.next);
            let before = all.len();
            Inbox::open(&mut *replies, |inbox| {
                let entries = self.0.readdir(inbox, cursor)?;
                all.extend(entries.iter().map(entry_from_wire));
                Ok(())
            })
            .and_then(|done| done)
            .map_err(failed)?;
            if all.len() == before {
                return Ok(all);
            }
        }
    }

    /// Makes a directory.
    pub fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.mkdir(path.as_ref(), DIRECTORY).map_err(failed)
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.symlink(target.as_ref(), path.as_ref()).map_err(failed)
    }

    /// Where a symbolic link leads.
    pub fn readlink(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        let mut replies = Box::new(directory::Replies::new());
        let found =
            Inbox::open(&mut *replies, |inbox| self.0.readlink(inbox, path.as_ref()).map(<[u8]>::to_vec));
        found.and_then(|found| found).map_err(failed)
    }

    /// Another name for a file.
    pub fn link(&self, existing: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.link(existing.as_ref(), path.as_ref()).map_err(failed)
    }

    /// Another place, in that of what was there.
    pub fn rename(&self, existing: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.rename(existing.as_ref(), path.as_ref()).map_err(failed)
    }

    /// Takes a name away from a file or symbolic link.
    pub fn unlink(&self, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.unlink(path.as_ref()).map_err(failed)
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.rmdir(path.as_ref()).map_err(failed)
    }

    /// Done when all of the file system survives a loss of power.
    pub fn sync(&self) -> Result<()> {
        self.0.sync().map_err(failed)
    }

    /// How much there is.
    pub fn space(&self) -> Result<Space> {
        self.0.statfs().map(space_from_wire).map_err(failed)
    }
}

/// A file that is open.
pub struct File {
    open: Reference<file::Client<View>>,
    /// Where bytes arrive that are read, from the first time on.
    replies: Option<Box<file::Replies>>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.open.fmt(f)
    }
}

impl File {
    /// Its attributes.
    pub fn stat(&self) -> Result<Attributes> {
        self.open.stat().map(|found| attributes_from_wire(&found)).map_err(failed)
    }

    /// Reads bytes from an offset on, at most `len` and at most [`BYTES_MAX`], and lets `with` look at them where they have arrived. None are the
    /// end.
    pub fn read<T>(&mut self, offset: u64, len: usize, with: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let replies = self.replies.get_or_insert_with(|| Box::new(file::Replies::new()));
        Inbox::open(&mut **replies, |inbox| {
            self.open.read(inbox, offset, len.min(BYTES_MAX) as u32).map(with)
        })
        .and_then(|done| done)
        .map_err(failed)
    }

    /// Reads bytes from an offset on, behind those in `to`: at most `len`, and at most [`BYTES_MAX`]. None are the end.
    pub fn read_at(&mut self, offset: u64, len: usize, to: &mut Vec<u8>) -> Result<()> {
        self.read(offset, len, |bytes| to.extend_from_slice(bytes))
    }

    /// Writes all of that, in pieces if it is long.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < from.len() {
            let piece = &from[done..from.len().min(done + BYTES_MAX)];
            let count = self.open.write(offset + done as u64, piece).map_err(failed)? as usize;
            if count == 0 || count > piece.len() {
                return Err(Failure::Garbled);
            }
            done += count;
        }
        Ok(())
    }

    /// Writes at most [`BYTES_MAX`] bytes at the end, all or none, and gives back where that was.
    pub fn append(&self, from: &[u8]) -> Result<u64> {
        self.open.append(from).map_err(failed)
    }

    /// Makes it shorter, or longer by zeros.
    pub fn truncate(&self, len: u64) -> Result<()> {
        self.open.truncate(len).map_err(failed)
    }

    /// Done when all of it survives a loss of power.
    pub fn sync(&self) -> Result<()> {
        self.open.sync().map_err(failed)
    }
}
