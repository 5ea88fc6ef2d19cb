//! Directories and files, for programs.

use crate::stubs::Files::{Directory as directory, File as file, Joined as joined, PagedFile as paged};
use crate::watch::Watch;
use crate::wire::{
    BYTES_MAX, attributes_from_wire, before_to_wire, entry_from_wire, failed, how_to_bits, not_narrowed,
    space_from_wire,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use rt::api::stub::{self, View};
use rt::api::{Failure, Result, Status};
use rt::door::Reference;
use rt::module::ask;
use rt::page::{PAGE, Window};
use rt::sys::Fpage;
use vfs::{Attributes, Before, Changes, Entry, How, Space};

/// File systems that make one directory, at most.
const MOUNTS_MAX: u32 = 256;

/// Permissions of a file that a program makes.
const FILE: u16 = 0o644;

/// Most pages that are mapped at once: 4 GiB.
const MAPPED_MAX: usize = 1 << 20;

/// Permissions of a directory that a program makes.
const DIRECTORY: u16 = 0o755;

/// Changes attributes of an object.
macro_rules! change {
    ($object:expr, $changes:expr) => {{
        if let Some(permissions) = $changes.permissions {
            $object.chmod(permissions).map_err(failed)?;
        }
        if let Some((owner, group)) = $changes.owner {
            $object.chown(owner, group).map_err(failed)?;
        }
        if let Some((accessed, modified)) = $changes.times {
            $object.utimes(accessed, modified).map_err(failed)?;
        }
        Ok(())
    }};
}

/// Calls that concern extended attributes of an object of that interface.
macro_rules! xattrs {
    ($interface:ident) => {
        /// Value of an extended attribute, such as `user.comment`.
        pub fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
            let mut replies = Box::new($interface::Replies::new());
            let found = stub::Inbox::open(&mut *replies, |inbox| {
                self.0.xattr(inbox, name).map(|value| value.to_vec())
            });
            found.and_then(|found| found).map_err(failed)
        }

        /// Names of all extended attributes, with a zero behind each.
        pub fn xattrs(&self) -> Result<Vec<u8>> {
            let mut replies = Box::new($interface::Replies::new());
            let found =
                stub::Inbox::open(&mut *replies, |inbox| self.0.xattrs(inbox).map(|names| names.to_vec()));
            found.and_then(|found| found).map_err(failed)
        }

        /// Gives it an extended attribute of at most [`BYTES_MAX`] bytes.
        pub fn set_xattr(&self, name: &[u8], value: &[u8], before: Before) -> Result<()> {
            if value.len() > BYTES_MAX {
                return Err(Failure::Refused(Status::Full));
            }
            self.0.set_xattr(name, value, before_to_wire(before)).map_err(failed)
        }

        /// Takes an extended attribute from it.
        pub fn remove_xattr(&self, name: &[u8]) -> Result<()> {
            self.0.remove_xattr(name).map_err(failed)
        }
    };
}

/// A directory that the program has a reference to. Paths begin there, and no path leads out of it.
#[derive(Debug)]
pub struct Directory(Reference<directory::Client<View>>);

impl Directory {
    xattrs!(directory);

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
        self.open_with(path, how, FILE)
    }

    /// Opens a file. One that is made has these permissions.
    pub fn open_with(&self, path: impl AsRef<[u8]>, how: How, permissions: u16) -> Result<File> {
        self.0.open(path.as_ref(), how_to_bits(how), permissions).map(File).map_err(failed)
    }

    /// Another directory, by itself.
    pub fn enter(&self, path: impl AsRef<[u8]>) -> Result<Directory> {
        self.0.enter(path.as_ref()).map(Directory).map_err(failed)
    }

    /// All of a file. Fails if it is longer than that.
    pub fn read(&self, path: impl AsRef<[u8]>, len_max: usize) -> Result<Vec<u8>> {
        let file = self.open(path, How::default())?;
        let mut content = Vec::new();
        file.pieces(|_, piece| {
            content.extend_from_slice(piece);
            if content.len() > len_max { Err(Failure::Refused(Status::TooLarge)) } else { Ok(()) }
        })?;
        Ok(content)
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
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let more = self.some_entries(all.last().map_or(0, |entry| entry.next))?;
            if more.is_empty() {
                return Ok(all);
            }
            all.extend(more);
        }
    }

    /// Entries from a cursor on. None are the end.
    pub fn some_entries(&self, cursor: u64) -> Result<Vec<Entry>> {
        let mut replies = Box::new(directory::Replies::new());
        let found = stub::Inbox::open(&mut *replies, |inbox| {
            self.0.readdir(inbox, cursor).map(|entries| entries.iter().map(entry_from_wire).collect())
        });
        found.and_then(|found| found).map_err(failed)
    }

    /// Makes a directory.
    pub fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<()> {
        self.mkdir_with(path, DIRECTORY)
    }

    /// Makes a directory with these permissions.
    pub fn mkdir_with(&self, path: impl AsRef<[u8]>, permissions: u16) -> Result<()> {
        self.0.mkdir(path.as_ref(), permissions).map_err(failed)
    }

    /// Changes attributes of the directory.
    pub fn change(&self, changes: &Changes) -> Result<()> {
        change!(self.0, changes)
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<()> {
        self.0.symlink(target.as_ref(), path.as_ref()).map_err(failed)
    }

    /// Where a symbolic link leads.
    pub fn readlink(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        let mut replies = Box::new(directory::Replies::new());
        let found = stub::Inbox::open(&mut *replies, |inbox| {
            self.0.readlink(inbox, path.as_ref()).map(|target| target.to_vec())
        });
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

    /// Watches what is at a path, from now on: a file, or a directory and its entries.
    pub fn watch(&self, path: impl AsRef<[u8]>) -> Result<Watch> {
        let directory = self.0.duplicate().map_err(Failure::Kernel)?;
        Watch::new(directory, path.as_ref())
    }

    /// How much there is.
    pub fn space(&self) -> Result<Space> {
        self.0.statfs().map(space_from_wire).map_err(failed)
    }

    /// File systems that make this directory, the root of all, in the order in which they were mounted: of those that lead to a path the last one has it.
    /// Refused as not supported by a directory of one file system.
    pub fn mounts(&self) -> Result<Vec<Mounted>> {
        let root = self.joined()?;
        let mut replies = Box::new(joined::Replies::new());
        let mut all = Vec::new();
        for number in 0..MOUNTS_MAX {
            let found = stub::Inbox::open(&mut *replies, |inbox| {
                root.mounted(inbox, number).map(|text| text.to_vec())
            });
            match found.and_then(|found| found).map_err(failed) {
                Ok(text) => all.push(Mounted::read(&text).ok_or(Failure::Garbled)?),
                Err(Failure::Refused(Status::NotFound)) => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(all)
    }

    fn joined(&self) -> Result<Reference<joined::Client<View>>> {
        let copy = self.0.duplicate().map_err(Failure::Kernel)?;
        copy.narrow().map_err(not_narrowed)
    }

    /// Mounts a directory in the place of another one, for all programs: `SERVER` or `SERVER/DIRECTORY`, or, if it begins with a slash, the directory that has
    /// this path now. This directory is the root of all, and the program may mount: see `mount` in the system description.
    pub fn mount(&self, source: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<()> {
        self.joined()?.mount(source.as_ref(), path.as_ref()).map_err(failed)
    }

    /// Takes away what was mounted last at a path. Files that are open there stay.
    pub fn unmount(&self, path: impl AsRef<[u8]>) -> Result<()> {
        self.joined()?.unmount(path.as_ref()).map_err(failed)
    }

    /// Changes that were made in the file system since its server began; 0 if it does not know all. As long as it is the same number, all that was
    /// found before is still so, but for bytes that others write to mapped pages.
    pub fn changes(&self) -> Result<u64> {
        self.0.changes().map_err(failed)
    }
}

/// A file system, and the path at which it is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// The path, without `.`, `..` and symbolic links.
    pub path: Vec<u8>,
    /// The server, behind which a slash and a directory may stand.
    pub source: Vec<u8>,
}

impl Mounted {
    /// Reads both, with a zero between them.
    fn read(text: &[u8]) -> Option<Mounted> {
        let mut parts = text.splitn(2, |&byte| byte == 0).map(<[u8]>::to_vec);
        Some(Mounted { path: parts.next()?, source: parts.next()? })
    }
}

/// Where bytes arrive that are read from files.
pub type Inbox<'a> = stub::Inbox<'a, file::Replies>;

/// Lets `with` read from files. To make an inbox and to tell the kernel costs more than a call, so a program that reads in a loop has one around the loop.
pub fn reading<T>(with: impl FnOnce(&mut Inbox) -> Result<T>) -> Result<T> {
    let mut replies = Box::new(file::Replies::new());
    Inbox::open(&mut *replies, with).map_err(failed)?
}

/// A file that is open.
#[derive(Debug)]
pub struct File(Reference<file::Client<View>>);

impl File {
    xattrs!(file);

    /// How many bytes it has.
    pub fn len(&self) -> Result<u64> {
        self.0.len().map_err(failed)
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Maps pages, so many from an offset on, which is a multiple of [`PAGE`]. All of them begin in front of the file's end.
    pub fn map(&self, offset: u64, pages: usize, is_writable: bool) -> Result<Mapped> {
        let file = self.pages()?;
        if pages > MAPPED_MAX {
            return Err(Failure::Refused(Status::TooLarge));
        }
        let log2 = (pages * PAGE).next_power_of_two().max(PAGE).ilog2();
        let window = Window::new(log2).ok_or(Failure::Refused(Status::Exhausted))?;
        for number in 0..pages {
            let at = offset.saturating_add((number * PAGE) as u64);
            file.map(window.page(number), at, is_writable)?;
        }
        Ok(Mapped { window, pages, _file: file })
    }

    /// Its pages, to be mapped one by one.
    pub fn pages(&self) -> Result<Pages> {
        let copy = self.0.duplicate().map_err(Failure::Kernel)?;
        let file = copy.narrow::<paged::Client<View>>();
        file.map(Pages).map_err(not_narrowed)
    }

    /// Its attributes.
    pub fn stat(&self) -> Result<Attributes> {
        self.0.stat().map(|found| attributes_from_wire(&found)).map_err(failed)
    }

    /// Reads bytes from an offset on, at most `len` and at most [`BYTES_MAX`], and lets `with` look at them where they have arrived. None are the
    /// end.
    pub fn read<T>(
        &self,
        inbox: &mut Inbox,
        offset: u64,
        len: usize,
        with: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let bytes = self.0.read(inbox, offset, len.min(BYTES_MAX) as u32).map_err(failed)?;
        // By way of the iterator also where stubs that optimise nothing give back a list of the client's own.
        Ok(with(bytes.iter().as_slice()))
    }

    /// Reads from the first byte to the last, and lets `with` look at each piece, with its offset.
    pub fn pieces(&self, mut with: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        reading(|inbox| {
            let mut offset = 0;
            loop {
                let read = self.read(inbox, offset, BYTES_MAX, |piece| {
                    if piece.is_empty() { Ok(0) } else { with(offset, piece).map(|()| piece.len()) }
                })??;
                if read == 0 {
                    return Ok(());
                }
                offset += read as u64;
            }
        })
    }

    /// Writes all of that, in pieces if it is long.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < from.len() {
            match self.write_some(offset + done as u64, &from[done..])? {
                0 => return Err(Failure::Garbled),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Writes at most [`BYTES_MAX`] bytes, and gives back how many it were.
    pub fn write_some(&self, offset: u64, from: &[u8]) -> Result<usize> {
        let piece = &from[..from.len().min(BYTES_MAX)];
        let count = self.0.write(offset, piece).map_err(failed)? as usize;
        if count > piece.len() { Err(Failure::Garbled) } else { Ok(count) }
    }

    /// Changes its attributes.
    pub fn change(&self, changes: &Changes) -> Result<()> {
        change!(self.0, changes)
    }

    /// Writes at most [`BYTES_MAX`] bytes at the end, all or none, and gives back where that was.
    pub fn append(&self, from: &[u8]) -> Result<u64> {
        if from.len() > BYTES_MAX {
            return Err(Failure::Refused(Status::TooLarge));
        }
        self.0.append(from).map_err(failed)
    }

    /// Makes it shorter, or longer by zeros.
    pub fn truncate(&self, len: u64) -> Result<()> {
        self.0.truncate(len).map_err(failed)
    }

    /// Done when all of it survives a loss of power.
    pub fn sync(&self) -> Result<()> {
        self.0.sync().map_err(failed)
    }
}

/// Pages of a file that is open, to be mapped one by one. A page goes with the last reference to the file, or before, with [`unmap`](Pages::unmap).
#[derive(Debug)]
pub struct Pages(Reference<paged::Client<View>>);

impl Pages {
    /// Maps the page with that offset, a multiple of [`PAGE`] in front of the file's end, into a window.
    pub fn map(&self, window: Fpage, offset: u64, is_writable: bool) -> Result<()> {
        self.0.map(window, offset, is_writable).map(drop).map_err(failed)
    }

    /// Gives back what was mapped of that page by this reference, and by others to the file as it was opened there. When it comes back, what was written there is
    /// as safe as after a sync.
    pub fn unmap(&self, offset: u64) -> Result<()> {
        self.0.unmap(offset).map_err(failed)
    }
}

/// Pages of a file where its file system has them. Others who write to the file change them, and what is written here is in the file at once.
///
/// They stay as long as this is there, also if the file becomes shorter meanwhile: then they are the file's no more. Bytes behind the file's end are zeros,
/// and of what is written there nothing comes. If the file system's server ends, whoever looks at them has a page fault that nobody resolves.
#[derive(Debug)]
pub struct Mapped {
    window: Window,
    pages: usize,
    _file: Pages,
}

impl Mapped {
    /// The bytes, in words: the first one has the first eight, the lowest in front. To write is a page fault, unless they were mapped to be written.
    pub fn words(&self) -> &[AtomicU64] {
        self.window.words(self.pages)
    }
}
