//! The other side: what a server of files is asked, and how calls of it fail.

use crate::{Attributes, Before, Changes, Entry, Error, How, Result, Space};
use alloc::vec::Vec;

/// Why a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The server refuses it.
    Refused(Error),
    /// The server was gone before.
    NotBegun,
    /// The server ended meanwhile, and may have done it.
    Broken,
}

/// Result of a call.
pub type Answer<T> = core::result::Result<T, Failure>;

/// Somebody who serves files.
pub trait Server {
    /// Its directories.
    type Directory: Directory;

    /// The directory with which all begins. Each counts as a client of its own. A server that was started anew is found again.
    fn connect(&mut self) -> Result<Self::Directory>;
}

/// A directory that is open. Paths begin there.
pub trait Directory: Sized {
    /// Files below.
    type File: File;

    /// Opens a file.
    fn open(&self, path: &[u8], how: How, permissions: u16) -> Answer<Self::File>;
    /// Opens a directory.
    fn enter(&self, path: &[u8]) -> Answer<Self>;
    /// Attributes of what is at a path, of a symbolic link its own.
    fn stat(&self, path: &[u8]) -> Answer<Attributes>;
    /// Some entries of this directory from a cursor on. None are the end.
    fn readdir(&self, cursor: u64) -> Answer<Vec<Entry>>;
    /// Makes a directory.
    fn mkdir(&self, path: &[u8], permissions: u16) -> Answer<()>;
    /// Makes a symbolic link.
    fn symlink(&self, target: &[u8], path: &[u8]) -> Answer<()>;
    /// Where a symbolic link leads.
    fn readlink(&self, path: &[u8]) -> Answer<Vec<u8>>;
    /// Another name for a file.
    fn link(&self, existing: &[u8], path: &[u8]) -> Answer<()>;
    /// Another place, in that of what was there.
    fn rename(&self, existing: &[u8], path: &[u8]) -> Answer<()>;
    /// Takes a name away from a file or symbolic link.
    fn unlink(&self, path: &[u8]) -> Answer<()>;
    /// Removes an empty directory.
    fn rmdir(&self, path: &[u8]) -> Answer<()>;
    /// Changes attributes of this directory.
    fn change(&self, changes: &Changes) -> Answer<()>;
    /// Value of an extended attribute of this directory.
    fn xattr(&self, name: &[u8]) -> Answer<Vec<u8>>;
    /// Names of all extended attributes of this directory, with a zero behind each.
    fn xattrs(&self) -> Answer<Vec<u8>>;
    /// Sets an extended attribute of this directory.
    fn set_xattr(&self, name: &[u8], value: &[u8], before: Before) -> Answer<()>;
    /// Removes an extended attribute of this directory.
    fn remove_xattr(&self, name: &[u8]) -> Answer<()>;
    /// Done when all of the file system survives a loss of power.
    fn sync(&self) -> Answer<()>;
    /// How much there is.
    fn space(&self) -> Answer<Space>;
    /// Changes that were made in the file system since its server began: each call that may make one counts one, and a [`change`](Directory::change)
    /// one for [each attribute](Changes::count). 0 if it does not know all.
    fn changes(&self) -> Answer<u64>;
}

/// A file that is open.
pub trait File {
    /// Its attributes.
    fn stat(&self) -> Answer<Attributes>;
    /// Some bytes from an offset on. None are the end.
    fn read(&self, offset: u64, to: &mut [u8]) -> Answer<usize>;
    /// Writes some bytes.
    fn write(&self, offset: u64, from: &[u8]) -> Answer<usize>;
    /// Makes it shorter, or longer by zeros.
    fn truncate(&self, len: u64) -> Answer<()>;
    /// Changes attributes.
    fn change(&self, changes: &Changes) -> Answer<()>;
    /// Value of an extended attribute.
    fn xattr(&self, name: &[u8]) -> Answer<Vec<u8>>;
    /// Names of all extended attributes, with a zero behind each.
    fn xattrs(&self) -> Answer<Vec<u8>>;
    /// Sets an extended attribute.
    fn set_xattr(&self, name: &[u8], value: &[u8], before: Before) -> Answer<()>;
    /// Removes an extended attribute.
    fn remove_xattr(&self, name: &[u8]) -> Answer<()>;
    /// Done when all of it survives a loss of power.
    fn sync(&self) -> Answer<()>;
}
