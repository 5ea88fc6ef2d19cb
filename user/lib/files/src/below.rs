//! Files of another server, for a file system over them: [`Below`] is where [`vfs::remote::Remote`] begins.

use crate::client::{Directory, File, reading};
use crate::wire::error_of;
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::{self, Status};
use rt::retry::{self, PAUSE};
use rt::{sys, time};
use vfs::remote::{self, Answer, Failure};
use vfs::{Attributes, Before, Changes, Entry, Error, How, Result, Space};

/// How often a file system over others is begun anew.
const BEGINNINGS: usize = 10;

/// Begins a file system over others; and again, if a server below ends meanwhile, which looks as if its device did not read.
pub fn begin<T>(begin: impl Fn() -> T, is_passing: impl Fn(&T) -> bool) -> T {
    for _ in 1..BEGINNINGS {
        let begun = begin();
        if !is_passing(&begun) {
            return begun;
        }
        time::sleep(PAUSE);
    }
    begin()
}

/// A directory of a server.
#[derive(Clone, Debug)]
pub struct Below {
    server: String,
    path: Vec<u8>,
}

impl Below {
    /// Reads a server's name, behind which a path may stand, such as `disk` or `disk/vault`. A directory that is not there is made, if only the last name is
    /// missing.
    pub fn new(place: &str) -> Below {
        let (server, path) = place.split_once('/').unwrap_or((place, ""));
        Below { server: server.into(), path: path.as_bytes().to_vec() }
    }

    fn find(&self) -> api::Result<Directory> {
        let root = Directory::of(&self.server)?;
        if self.path.is_empty() {
            return Ok(root);
        }
        match root.enter(&self.path) {
            Err(api::Failure::Refused(Status::NotFound)) => {
                root.mkdir(&self.path)?;
                root.enter(&self.path)
            }
            found => found,
        }
    }
}

impl remote::Server for Below {
    type Directory = Directory;

    fn connect(&mut self) -> Result<Directory> {
        retry::while_gone(|| self.find()).map_err(|failure| match failure {
            api::Failure::Refused(status) => error_of(status),
            _ => Error::Io,
        })
    }
}

/// An answer as [`vfs::remote`] has it.
fn answer<T>(result: api::Result<T>) -> Answer<T> {
    result.map_err(|failure| match failure {
        api::Failure::Refused(status) => Failure::Refused(error_of(status)),
        // The object is gone, or nobody was there to be called.
        api::Failure::Kernel(sys::Error::NoSuch) => Failure::NotBegun,
        // This program has no room for one more reference.
        api::Failure::Kernel(sys::Error::Limit) => Failure::Refused(Error::TooManyOpen),
        api::Failure::Kernel(_) => Failure::Broken,
        api::Failure::Garbled => Failure::Refused(Error::Io),
    })
}

impl remote::Directory for Directory {
    type File = File;

    fn open(&self, path: &[u8], how: How, permissions: u16) -> Answer<File> {
        answer(self.open_with(path, how, permissions))
    }

    fn enter(&self, path: &[u8]) -> Answer<Directory> {
        answer(Directory::enter(self, path))
    }

    fn stat(&self, path: &[u8]) -> Answer<Attributes> {
        answer(Directory::stat(self, path, false))
    }

    fn readdir(&self, cursor: u64) -> Answer<Vec<Entry>> {
        answer(self.some_entries(cursor))
    }

    fn mkdir(&self, path: &[u8], permissions: u16) -> Answer<()> {
        answer(self.mkdir_with(path, permissions))
    }

    fn symlink(&self, target: &[u8], path: &[u8]) -> Answer<()> {
        answer(Directory::symlink(self, target, path))
    }

    fn readlink(&self, path: &[u8]) -> Answer<Vec<u8>> {
        answer(Directory::readlink(self, path))
    }

    fn link(&self, existing: &[u8], path: &[u8]) -> Answer<()> {
        answer(Directory::link(self, existing, path))
    }

    fn rename(&self, existing: &[u8], path: &[u8]) -> Answer<()> {
        answer(Directory::rename(self, existing, path))
    }

    fn unlink(&self, path: &[u8]) -> Answer<()> {
        answer(Directory::unlink(self, path))
    }

    fn rmdir(&self, path: &[u8]) -> Answer<()> {
        answer(Directory::rmdir(self, path))
    }

    fn change(&self, changes: &Changes) -> Answer<()> {
        answer(Directory::change(self, changes))
    }

    fn xattr(&self, name: &[u8]) -> Answer<Vec<u8>> {
        answer(Directory::xattr(self, name))
    }

    fn xattrs(&self) -> Answer<Vec<u8>> {
        answer(Directory::xattrs(self))
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], before: Before) -> Answer<()> {
        answer(Directory::set_xattr(self, name, value, before))
    }

    fn remove_xattr(&self, name: &[u8]) -> Answer<()> {
        answer(Directory::remove_xattr(self, name))
    }

    fn sync(&self) -> Answer<()> {
        answer(Directory::sync(self))
    }

    fn space(&self) -> Answer<Space> {
        answer(Directory::space(self))
    }

    fn changes(&self) -> Answer<u64> {
        answer(Directory::changes(self))
    }
}

impl remote::File for File {
    fn stat(&self) -> Answer<Attributes> {
        answer(File::stat(self))
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Answer<usize> {
        let copy = |piece: &[u8], to: &mut [u8]| {
            let count = piece.len().min(to.len());
            to[..count].copy_from_slice(&piece[..count]);
            count
        };
        answer(reading(|inbox| File::read(self, inbox, offset, to.len(), |piece| copy(piece, to))))
    }

    fn write(&self, offset: u64, from: &[u8]) -> Answer<usize> {
        answer(self.write_some(offset, from))
    }

    fn truncate(&self, len: u64) -> Answer<()> {
        answer(File::truncate(self, len))
    }

    fn change(&self, changes: &Changes) -> Answer<()> {
        answer(File::change(self, changes))
    }

    fn xattr(&self, name: &[u8]) -> Answer<Vec<u8>> {
        answer(File::xattr(self, name))
    }

    fn xattrs(&self) -> Answer<Vec<u8>> {
        answer(File::xattrs(self))
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], before: Before) -> Answer<()> {
        answer(File::set_xattr(self, name, value, before))
    }

    fn remove_xattr(&self, name: &[u8]) -> Answer<()> {
        answer(File::remove_xattr(self, name))
    }

    fn sync(&self) -> Answer<()> {
        answer(File::sync(self))
    }
}
