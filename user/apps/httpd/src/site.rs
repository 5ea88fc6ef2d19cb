//! The files of a directory. A path cannot lead out of it: its names are checked by the library `http`, and the file system begins each walk, and each
//! symbolic link, at the directory that was entered.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use files::{Directory, File};
use http::answer::{Found, Missing, Site};
use http::page::Listed;
use http::path::Path;
use rt::api::{self, Failure, Status};
use rt::time;
use vfs::{Attributes, How, Kind};

/// How often something is tried while servers end and start.
const TRIES: usize = 40;

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Files below a directory.
pub struct Files {
    directory: String,
    /// The directory, once it is needed.
    top: Option<Directory>,
}

/// A file that is open, and where it was.
pub struct Open {
    file: File,
    path: Vec<u8>,
    attributes: Attributes,
}

/// Whether the server has ended, or one behind it, so that all is looked for anew. Nothing is changed here, so whatever was done can be done again.
fn is_passing(failure: Failure) -> bool {
    matches!(failure, Failure::Kernel(_) | Failure::Refused(Status::Busy | Status::Io))
}

impl Files {
    /// Those below a directory, which need not be there yet.
    pub fn of(directory: &str) -> Files {
        Files { directory: directory.into(), top: None }
    }

    fn top(&mut self) -> api::Result<&Directory> {
        match &mut self.top {
            Some(top) => Ok(top),
            top => Ok(top.insert(Directory::root()?.enter(&self.directory)?)),
        }
    }

    /// An operation in the directory.
    fn with<T>(&mut self, mut run: impl FnMut(&Directory) -> api::Result<T>) -> api::Result<T> {
        let mut tries = 1;
        loop {
            match self.top().and_then(&mut run) {
                Err(failure) if is_passing(failure) && tries < TRIES => {
                    self.top = None;
                    tries += 1;
                    time::sleep(PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    fn open(&mut self, path: Vec<u8>) -> api::Result<Open> {
        let (file, attributes) = self.with(|top| {
            let file = top.open(&path, How::default())?;
            let attributes = file.stat()?;
            Ok((file, attributes))
        })?;
        Ok(Open { file, path, attributes })
    }

    /// Bytes of a file from an offset on, some at least. None if that cannot be; for example because another file has its name by now.
    pub fn read(&mut self, open: &mut Open, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut tries = 1;
        loop {
            let read = files::reading(|inbox| open.file.read(inbox, offset, len, <[u8]>::to_vec));
            match read {
                Ok(bytes) => return Some(bytes).filter(|bytes| !bytes.is_empty()),
                Err(failure) if is_passing(failure) && tries < TRIES => tries += 1,
                Err(_) => return None,
            }
            self.top = None;
            let new = self.open(core::mem::take(&mut open.path)).ok()?;
            let is_same = |get: fn(&Attributes) -> u64| get(&new.attributes) == get(&open.attributes);
            if !(is_same(|it| it.inode.0) && is_same(|it| it.len) && is_same(|it| it.modified)) {
                return None;
            }
            *open = new;
        }
    }
}

fn missing(failure: Failure) -> Missing {
    match failure {
        Failure::Refused(
            Status::NotFound
            | Status::NotDirectory
            | Status::IsDirectory
            | Status::NameTooLong
            | Status::Loop
            | Status::Unsupported
            | Status::BadRequest,
        ) => Missing::NotFound,
        _ => Missing::Unavailable,
    }
}

impl Site for Files {
    type File = Open;

    fn find(&mut self, path: &Path) -> Result<Found<Open>, Missing> {
        match self.open(path.bytes()) {
            Ok(open) if open.attributes.kind == Kind::File => {
                let len = open.attributes.len;
                Ok(Found::File(open, len))
            }
            Ok(_) => Err(Missing::NotFound),
            Err(Failure::Refused(Status::IsDirectory)) => Ok(Found::Directory),
            Err(failure) => Err(missing(failure)),
        }
    }

    fn list(&mut self, path: &Path) -> Result<Vec<Listed>, Missing> {
        let path = path.bytes();
        let entries = self.with(|top| top.enter(&path)?.entries()).map_err(missing)?;
        let listed = entries.into_iter().filter(|entry| !matches!(entry.name.as_slice(), b"." | b".."));
        let listed =
            listed.map(|entry| Listed { is_directory: entry.kind == Kind::Directory, name: entry.name });
        Ok(listed.collect())
    }
}
