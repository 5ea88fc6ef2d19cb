//! File systems without a machine: what each must be able to do, and what all have in common.
//!
//! In reading order: [`FileSystem`], what one must be able to do, with inodes and single names only; [`path`], from a path to an inode;
//! [`Volume`], a file system that is in use: it walks paths, knows what is open, and keeps what has no name until it is closed;
//! [`page`], pages that others map; [`Ram`], a file system in memory; [`Fixed`], one of files that do not change; [`Cached`], pages for one
//! that has none of its own; [`watch`], what has happened, for whoever wants to know, and [`Waiters`], who sleep until then; [`mounts`], several
//! file systems as one; [`share`], how much of it all each client may have; [`Quota`], a file system of which a part is used; [`Places`], inodes that a file system over others has found; [`Merge`], a file system
//! over another one that stays as it is; [`remote`], a file system that somebody else serves.
//!
//! Nothing here talks to a kernel, so all of it runs on the host, where Linux's own file system is the oracle (`tests/files`).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cached;
mod fixed;
mod found;
mod merge;
pub mod mounts;
pub mod page;
pub mod path;
mod places;
mod quota;
mod ram;
pub mod remote;
pub mod share;
mod volume;
mod waiters;
pub mod watch;

pub use cached::Cached;
pub use fixed::Fixed;
pub use merge::Merge;
pub use places::Places;
pub use quota::{Amount, Quota};
pub use ram::Ram;
pub use share::{Part, Shares};
pub use volume::{How, TARGET_MAX, Volume};
pub use waiters::Waiters;

use alloc::vec::Vec;
use core::fmt;

/// Most bytes of a name.
pub const NAME_MAX: usize = 255;

/// Most bytes of the name of an extended attribute.
pub const XATTR_NAME_MAX: usize = 255;

/// Most bytes that the names of an inode's extended attributes have, a zero behind each counted, and most bytes of a value. No file system needs to have room for as many.
pub const XATTR_BYTES_MAX: usize = 4096;

/// Why an operation fails. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is nothing of that name.
    NotFound,
    /// There is something of that name.
    Exists,
    /// A name in front of a slash is none of a directory.
    NotDirectory,
    /// A directory is no file.
    IsDirectory,
    /// A directory has entries.
    NotEmpty,
    /// Nobody may write here.
    ReadOnly,
    /// The file system is full.
    NoSpace,
    /// A name has more than [`NAME_MAX`] bytes.
    NameTooLong,
    /// No file can be so long.
    TooLarge,
    /// A file has as many names as it can have.
    TooManyLinks,
    /// Symbolic links lead to one another, without end.
    Loop,
    /// That makes no sense: a name that is none, a directory that would be in itself.
    Invalid,
    /// This is kept from being removed: the directory itself, or one above it.
    Busy,
    /// The device does not read or write.
    Io,
    /// The device reads, and what it says is no file system, or no file of one.
    Damaged,
    /// This file system cannot do that.
    Unsupported,
    /// A file system below has as much open as it may.
    TooManyOpen,
}

/// Result of an operation.
pub type Result<T> = core::result::Result<T, Error>;

/// Number of a file, directory or symbolic link in its file system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Inode(pub u64);

/// Kind of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Something else, such as a device, that others have made. It has a name and attributes, and can be moved and removed.
    Special,
}

/// Meaning and size of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Its number.
    pub inode: Inode,
    /// Its kind.
    pub kind: Kind,
    /// The lower twelve bits of a mode in Unix.
    pub permissions: u16,
    /// Names that it has; of a directory one more, and one for each directory in it.
    pub links: u32,
    /// Number of its owner.
    pub owner: u32,
    /// Number of its group.
    pub group: u32,
    /// Bytes.
    pub len: u64,
    /// Bytes that it takes.
    pub allocated: u64,
    /// When its contents were read, in nanoseconds since 1970.
    pub accessed: u64,
    /// When its contents were written, in nanoseconds since 1970.
    pub modified: u64,
    /// When anything of it was changed, in nanoseconds since 1970.
    pub changed: u64,
}

/// Attributes that are to change; the others stay.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Changes {
    /// See [`Attributes::permissions`].
    pub permissions: Option<u16>,
    /// Owner and group.
    pub owner: Option<(u32, u32)>,
    /// Accessed and modified.
    pub times: Option<(u64, u64)>,
}

impl Changes {
    /// How many attributes change, of which each is a call to whoever serves files.
    pub fn count(&self) -> u64 {
        let is_changed = [self.permissions.is_some(), self.owner.is_some(), self.times.is_some()];
        is_changed.map(u64::from).iter().sum()
    }
}

/// Condition on which an extended attribute is set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Before {
    /// One of that name, or none.
    #[default]
    Any,
    /// None of that name, or it is [`Error::Exists`].
    None,
    /// One of that name, or it is [`Error::NotFound`].
    One,
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: Vec<u8>,
    /// Its inode.
    pub inode: Inode,
    /// The inode's kind.
    pub kind: Kind,
    /// Cursor of the next one.
    pub next: u64,
}

/// How much there is in a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes.
    pub total: u64,
    /// Bytes that are free.
    pub free: u64,
    /// Inodes.
    pub files: u64,
    /// Inodes that are free.
    pub files_free: u64,
}

/// An inode to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum New<'a> {
    /// An empty file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link that leads there.
    Symlink(&'a [u8]),
}

/// A name in a directory: 1 to [`NAME_MAX`] bytes without zeros and slashes, and neither `.` nor `..`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// Checks a name. `.` and `..` are [`Error::Invalid`].
    pub fn new(bytes: &'a [u8]) -> Result<Name<'a>> {
        if bytes.len() > NAME_MAX {
            Err(Error::NameTooLong)
        } else if matches!(bytes, b"" | b"." | b"..") || bytes.iter().any(|byte| matches!(byte, 0 | b'/')) {
            Err(Error::Invalid)
        } else {
            Ok(Name(bytes))
        }
    }

    /// Its bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// Operations that a file system must have. [`Volume`] makes of them the paths and open files that its users see.
///
/// Its caller promises: each inode that is named is [the root](FileSystem::root), was found by a method, and was not
/// [forgotten](FileSystem::forget) since; `directory` is one, and has a name; other inodes are of the kind that the method is for. A caller that
/// breaks the promise gets an error.
pub trait FileSystem {
    /// The directory in which all names begin.
    fn root(&self) -> Inode;

    /// Attributes of an inode.
    fn attributes(&mut self, inode: Inode) -> Result<Attributes>;

    /// Bytes of a file.
    fn len(&mut self, file: Inode) -> Result<u64> {
        self.attributes(file).map(|found| found.len)
    }

    /// Kind of an inode.
    fn kind_of(&mut self, inode: Inode) -> Result<Kind> {
        self.attributes(inode).map(|found| found.kind)
    }

    /// Changes some of them.
    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()>;

    /// Value of an extended attribute: something that users attach to a file or directory by a name, such as `user.comment`. The name has 1 to [`XATTR_NAME_MAX`] bytes without
    /// zeros. One that is not there is [`Error::NotFound`]; a file system that has none at all, or none with such a name, says [`Error::Unsupported`].
    fn xattr(&mut self, _inode: Inode, _name: &[u8]) -> Result<Vec<u8>> {
        Err(Error::Unsupported)
    }

    /// Names of all extended attributes, with a zero behind each.
    fn xattrs(&mut self, _inode: Inode) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Gives an inode an extended attribute. [`Error::NoSpace`]: there is no room for it, which may be so though there is room for files.
    fn set_xattr(&mut self, _inode: Inode, _name: &[u8], _value: &[u8], _before: Before) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Takes an extended attribute from an inode.
    fn remove_xattr(&mut self, _inode: Inode, _name: &[u8]) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// The inode of a name.
    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode>;

    /// At most so many entries from a cursor on, without `.` and `..`. Cursor 0 is the first entry, and no entries are the end. An
    /// entry that is there all the time comes once, even if others come and go meanwhile.
    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>>;

    /// Makes an inode with a name that is not there yet.
    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode>;

    /// Gives a file or symbolic link another name, that is not there yet.
    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()>;

    /// Takes a name away from a file or symbolic link. The inode stays, without names if that was the last, until it is
    /// [forgotten](FileSystem::forget).
    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()>;

    /// Takes the name away from an empty directory. The inode stays until it is [forgotten](FileSystem::forget).
    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()>;

    /// Moves a name, all at once. The inode that had the new name, of the same kind and if a directory, empty, loses it as by
    /// [`unlink`](FileSystem::unlink) or [`rmdir`](FileSystem::rmdir). The two names are of two inodes.
    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()>;

    /// An inode that has no names is not used any more.
    fn forget(&mut self, inode: Inode) -> Result<()>;

    /// Where a symbolic link leads.
    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>>;

    /// Bytes of a file from an offset on. Gives back how many there were: fewer than wanted only at the end.
    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize>;

    /// Writes to a file, and makes it longer where that is needed, with zeros between its end and the offset. Gives back how many
    /// bytes were written: fewer only if the file system is full then.
    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize>;

    /// Makes a file shorter, or longer by zeros.
    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()>;

    /// Done when all that was done to an inode, and to its names, survives a loss of power.
    fn sync(&mut self, inode: Inode) -> Result<()>;

    /// How much there is.
    fn space(&mut self) -> Result<Space>;

    /// Whether nothing can be written.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Something new begins, such as the next call of a program. A file system that somebody else serves asks then whether anybody has changed
    /// something, and not before each answer.
    fn begin(&mut self) {}

    /// A number that is another one as soon as anybody else may have changed something in here since it was asked for, from the next [`begin`](FileSystem::begin) on.
    /// A question to this value changes it only where that failed. `None` if it is not known what others do.
    fn others(&mut self) -> Option<u64> {
        None
    }

    /// Whether nothing in here ever changes but by what is asked of this value. Nobody can say so who has another file system below that others use, too.
    fn knows_all_changes(&self) -> bool {
        false
    }

    /// Somebody has an inode open from now on, once however many have it. A file system over others keeps it open there, so that it
    /// can be read when it has no name any more.
    fn hold(&mut self, _: Inode) -> Result<()> {
        Ok(())
    }

    /// Nobody has an inode open any more. It may have been [forgotten](FileSystem::forget) before.
    fn release(&mut self, _: Inode) {}
}
