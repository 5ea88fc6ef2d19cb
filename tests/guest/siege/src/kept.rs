//! Files that are kept and looked for while servers end. It fails when something that was acknowledged is not there, or when there is no answer for long.

use crate::{HAS_FAILED, IS_OVER, KEPT, check};
use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;
use files::Directory;
use rt::api::{Failure, Result, Status};
use rt::time::sleep;
use rt::{println, random};
use vfs::How;

/// Files, each written again and again.
const FILES: usize = 24;

/// Bytes of a file: pages, and a part of one.
const LEN: usize = 9000;

/// How often something is tried while servers end and start, and how long to wait in between.
const TRIES: usize = 500;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

/// Files below a directory, and the contents that each may have.
struct Load {
    place: Vec<u8>,
    directory: Option<Directory>,
    /// By the file: the byte of which the last acknowledged content consists, and behind it those that were tried since.
    may_be: Vec<Vec<u8>>,
    /// How often something was tried again.
    again: usize,
}

/// Whether a server may just have ended, so that it is worth another try.
fn is_passing(failure: Failure) -> bool {
    matches!(failure, Failure::Kernel(_) | Failure::Refused(Status::Busy | Status::Io))
}

impl Load {
    /// An operation in the directory, again and again while servers are gone.
    fn with<T>(&mut self, mut run: impl FnMut(&Directory) -> Result<T>) -> Result<T> {
        let mut tries = 1;
        loop {
            let found = match self.directory.take() {
                Some(directory) => Ok(directory),
                None => Directory::root().and_then(|root| root.enter(&self.place)),
            };
            let outcome = found.and_then(|directory| {
                let done = run(&directory);
                self.directory = Some(directory);
                done
            });
            match outcome {
                Err(failure) if is_passing(failure) && tries < TRIES => {
                    self.directory = None;
                    self.again += 1;
                    tries += 1;
                    sleep(PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    /// A file gets another content, all at once.
    fn write(&mut self, file: usize, byte: u8) -> Result<()> {
        self.may_be[file].push(byte);
        let (part, name) = (format!("part-{file}"), format!("file-{file}"));
        self.with(|directory| {
            directory.write(&part, &[byte; LEN])?;
            directory.open(&part, How::default())?.sync()
        })?;
        // A server that has ended may have done it before it did.
        match self.with(|directory| directory.rename(&part, &name)) {
            Err(Failure::Refused(Status::NotFound)) => {}
            outcome => outcome?,
        }
        let found = self.read(file)?;
        check(found == Some(byte), "what was written last is not there")?;
        self.may_be[file] = [byte].into();
        Ok(())
    }

    /// The byte of which a file consists; none if there is no file.
    fn read(&mut self, file: usize) -> Result<Option<u8>> {
        let name = format!("file-{file}");
        let content = match self.with(|directory| directory.read(&name, LEN)) {
            Err(Failure::Refused(Status::NotFound)) => return Ok(None),
            content => content?,
        };
        let first = content.first().copied();
        let is_whole = content.len() == LEN && content.iter().all(|&byte| Some(byte) == first);
        check(is_whole, "a file is not whole")?;
        Ok(first)
    }

    /// A file has a content that it may have.
    fn look(&mut self, file: usize) -> Result<()> {
        let found = self.read(file)?;
        let is_known = match found {
            Some(byte) => self.may_be[file].contains(&byte),
            None => self.may_be[file].is_empty(),
        };
        check(is_known, &format!("file {file} is {found:?}, and may be {:?}", self.may_be[file]))
    }
}

/// Works until all is over, and then looks for all files.
pub fn all(place: Vec<u8>) -> Result<()> {
    let may_be = (0..FILES).map(|_| Vec::new()).collect();
    let mut load = Load { place, directory: None, may_be, again: 0 };
    let mut rounds = 0;
    let random = random::generator().map_err(|_| Failure::Refused(Status::Unsupported))?;
    while !IS_OVER.load(Ordering::Relaxed) && !HAS_FAILED.load(Ordering::Relaxed) {
        rounds += 1;
        load.write(random.below(FILES as u64) as usize, rounds as u8)?;
        load.look(random.below(FILES as u64) as usize)?;
        KEPT.store(rounds, Ordering::Relaxed);
    }
    (0..FILES).try_for_each(|file| load.look(file))?;
    println!("siege: files: {rounds} rounds, {} tries more", load.again);
    Ok(())
}
