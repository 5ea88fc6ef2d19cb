//! The files of a directory. A path cannot lead out of it: its names are checked by the library `http`, and the file system begins each walk, and each
//! symbolic link, at the directory that was entered.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use files::{Directory, File};
use http::answer::{Found, Refusal, Site};
use http::page::Listed;
use http::part::{Parts, is_part};
use http::path::Path;
use rt::api::{self, Failure, Status};
use rt::sync::Mutex;
use rt::{println, time};
use vfs::{Attributes, Entry, How, Kind};

/// How often something is tried while servers end and start.
const TRIES: usize = 40;

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Folders of which it is remembered that nothing is left there of a server before. Beyond them it is looked again, which costs time and does no harm.
const CLEARED_MAX: usize = 64;

/// Pieces of a folder's list that are looked at for that, at most.
const PIECES_MAX: usize = 10_000;

/// How files are kept, by all threads.
pub struct Keeping {
    parts: Parts,
    /// Folders where nothing is left of a server before.
    cleared: Mutex<BTreeSet<Vec<u8>>>,
}

impl Keeping {
    /// Under these names files come.
    pub fn new(parts: Parts) -> Keeping {
        Keeping { parts, cleared: Mutex::new(BTreeSet::new()) }
    }

    /// Whether a file comes into a folder for the first time, as far as is known. From now on it is not.
    fn is_first_in(&self, folder: &[u8]) -> bool {
        let mut cleared = self.cleared.lock();
        if cleared.contains(folder) {
            return false;
        }
        if cleared.len() >= CLEARED_MAX {
            cleared.clear();
        }
        cleared.insert(folder.to_vec())
    }
}

/// Files below a directory.
pub struct Files {
    directory: String,
    /// How files are kept, if any are, and the number of this thread.
    keeping: Option<(Arc<Keeping>, usize)>,
    /// The directory, once it is needed.
    top: Option<Directory>,
}

/// A file that is open, and where it was.
pub struct Open {
    file: File,
    path: Vec<u8>,
    attributes: Attributes,
}

/// A file that comes.
pub struct Upload {
    file: File,
    /// Where it comes, and where it is to be.
    part: Vec<u8>,
    path: Vec<u8>,
    len: u64,
}

impl Upload {
    /// More of its bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.file.write_at(self.len, bytes).map_err(unkept)?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Whether the server has ended, or one behind it, so that all is looked for anew. Whatever was done can be done again: nothing is changed, or it is changed to
/// what it is already.
fn is_passing(failure: Failure) -> bool {
    matches!(failure, Failure::Kernel(_) | Failure::Refused(Status::Busy | Status::Io))
}

impl Files {
    /// Those below a directory, which need not be there yet. `keeping`: how files are kept there, if they are kept and deleted, and a number that no other thread has.
    pub fn of(directory: &str, keeping: Option<(Arc<Keeping>, usize)>) -> Files {
        Files { directory: directory.into(), keeping, top: None }
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

    /// A file begins to come.
    pub fn begin(&mut self, path: &Path) -> Result<Upload, Refusal> {
        let name = path.names().last().filter(|name| !is_part(name));
        let (Some(name), Some((keeping, thread)), false) = (name, &self.keeping, path.is_directory) else {
            return Err(Refusal::Conflict);
        };
        let path = path.bytes();
        let folder = &path[..path.len() - name.len()];
        let (keeping, part) = (keeping.clone(), [folder, keeping.parts.name(*thread).as_bytes()].concat());
        let how = How { create: true, truncate: true, ..How::default() };
        let file = self.with(|top| top.open(&part, how)).map_err(unkept)?;
        if keeping.is_first_in(folder) {
            self.clear(folder, &keeping.parts);
        }
        Ok(Upload { file, part, path, len: 0 })
    }

    /// Removes from a folder what came when a server before this one was ended. What cannot go takes room, and nothing else.
    fn clear(&mut self, folder: &[u8], parts: &Parts) {
        let mut next = 0;
        for _ in 0..PIECES_MAX {
            let entries = self.with(|top| match folder {
                b"" => top.some_entries(next),
                folder => top.enter(folder)?.some_entries(next),
            });
            let Ok(entries @ [.., Entry { next: behind, .. }]) = entries.as_deref() else { return };
            for Entry { name, kind, .. } in entries {
                if *kind == Kind::File && parts.is_earlier(name) {
                    let _ = self.with(|top| top.unlink([folder, name.as_slice()].concat()));
                }
            }
            next = *behind;
        }
    }

    /// A file has come whole: from now on it is the one of its name. Says whether there was none.
    pub fn finish(&mut self, upload: Upload) -> Result<bool, Refusal> {
        let Upload { file, part, path, len } = &upload;
        let outcome = file.sync().and_then(|()| {
            let is_new = match self.with(|top| top.stat(path, true)) {
                Err(Failure::Refused(Status::NotFound)) => true,
                found => found.map(|_| false)?,
            };
            match self.with(|top| top.rename(part, path)) {
                // A server that has ended since may have done it.
                Err(failure @ Failure::Refused(Status::NotFound)) => {
                    let found = self.with(|top| top.stat(path, true))?;
                    if found.len == *len { Ok(is_new) } else { Err(failure) }
                }
                outcome => outcome.map(|()| is_new),
            }
        });
        outcome.map_err(|failure| {
            self.abandon(upload);
            unkept(failure)
        })
    }

    /// A file that will not come whole goes.
    pub fn abandon(&mut self, upload: Upload) {
        // If it cannot go, the next that comes there takes its place.
        let _ = self.with(|top| top.unlink(&upload.part));
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

/// Reason why there is no file to show.
fn missing(failure: Failure) -> Refusal {
    match failure {
        Failure::Refused(
            Status::NotFound
            | Status::NotDirectory
            | Status::IsDirectory
            | Status::NameTooLong
            | Status::Loop
            | Status::Unsupported,
        ) => Refusal::NotFound,
        // Paths that a client can name are understood, so a server of files is at fault.
        Failure::Refused(Status::BadRequest) => {
            println!("httpd: the server of files understands no path: {failure}");
            Refusal::Unavailable
        }
        _ => Refusal::Unavailable,
    }
}

/// Reason why a file is not kept.
fn unkept(failure: Failure) -> Refusal {
    match failure {
        Failure::Refused(Status::Full | Status::TooLarge) => Refusal::Full,
        failure => match missing(failure) {
            Refusal::NotFound => Refusal::Conflict,
            other => other,
        },
    }
}

impl Site for Files {
    type File = Open;

    fn find(&mut self, path: &Path) -> Result<Found<Open>, Refusal> {
        if path.names().any(is_part) {
            return Err(Refusal::NotFound);
        }
        match self.open(path.bytes()) {
            Ok(open) if open.attributes.kind == Kind::File => {
                let len = open.attributes.len;
                Ok(Found::File(open, len))
            }
            Ok(open) => {
                println!("httpd: what was opened is {:?}", open.attributes.kind);
                Err(Refusal::Unavailable)
            }
            Err(Failure::Refused(Status::IsDirectory)) => Ok(Found::Directory),
            Err(failure) => Err(missing(failure)),
        }
    }

    fn list(&mut self, path: &Path) -> Result<Vec<Listed>, Refusal> {
        let path = path.bytes();
        let entries = self.with(|top| top.enter(&path)?.entries()).map_err(missing)?;
        let is_shown = |name: &[u8]| !matches!(name, b"." | b"..") && !is_part(name);
        let listed = entries.into_iter().filter(|entry| is_shown(&entry.name));
        let listed =
            listed.map(|entry| Listed { is_directory: entry.kind == Kind::Directory, name: entry.name });
        Ok(listed.collect())
    }

    fn is_writable(&self) -> bool {
        self.keeping.is_some()
    }

    fn delete(&mut self, path: &Path) -> Result<(), Refusal> {
        if path.is_top() {
            return Err(Refusal::Conflict);
        }
        if path.is_directory || path.names().any(is_part) {
            return Err(Refusal::NotFound);
        }
        let bytes = path.bytes();
        match self.with(|top| top.unlink(&bytes)) {
            Err(Failure::Refused(Status::IsDirectory)) => Err(Refusal::Conflict),
            outcome => outcome.map_err(missing),
        }
    }
}
