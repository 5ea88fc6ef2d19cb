//! Watches, for programs that want to know what happens to a file or a directory.

use crate::stubs::Files::{Directory as directory, Watcher as watcher};
use crate::stubs::Watches::Waiting;
use crate::wire::{event_from_wire, failed};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use rt::api::stub::{Inbox, View};
use rt::api::{Failure, Result, Status};
use rt::door::Reference;
use rt::sys::Uid;
use rt::time;
use vfs::watch::{Change, Event};

/// A file or directory that is watched.
///
/// Events come in order. Of two equal ones that nobody has taken one may be left, so look at what an event names after it was taken.
/// [`Change::Lost`] says to look again at all of it: more has happened than the file system keeps, or its server has ended and is there again.
/// Bytes that others write to mapped pages are not told.
pub struct Watch {
    directory: Reference<directory::Client<View>>,
    path: Vec<u8>,
    found: Found,
    replies: Box<watcher::Replies>,
    is_over: bool,
}

/// The object that has the events, and where to wait for them.
struct Found {
    watch: Reference<watcher::Client<View>>,
    server: Uid,
    ticket: u64,
}

impl Found {
    fn new(directory: &directory::Client<View>, path: &[u8]) -> Result<Found> {
        let watch = directory.watch(path).map_err(failed)?;
        let (ticket, server) = watch.ticket().map_err(failed)?;
        Ok(Found { watch, server: Uid(server), ticket })
    }
}

impl Watch {
    /// Watches what a path leads to.
    pub(crate) fn new(directory: Reference<directory::Client<View>>, path: &[u8]) -> Result<Watch> {
        let found = Found::new(&directory, path)?;
        let replies = Box::new(watcher::Replies::new());
        Ok(Watch { directory, path: path.to_vec(), found, replies, is_over: false })
    }

    /// Takes what has happened: nothing, if nothing has. Fails with *not found* when the watch is over, and that was told.
    ///
    /// Any other failure says to try again: the file system's server has ended, and is not there yet. Afterwards all is to be looked at again, which the
    /// next events say.
    pub fn take(&mut self) -> Result<Vec<Event>> {
        if self.is_over {
            return Err(Failure::Refused(Status::NotFound));
        }
        let Watch { found, replies, .. } = self;
        let taken = Inbox::open(&mut **replies, |inbox| {
            found.watch.next(inbox).map(|events| events.iter().map(event_from_wire).collect())
        });
        let taken: Result<Vec<Event>> = taken.and_then(|taken| taken).map_err(failed);
        match taken {
            Err(Failure::Kernel(_) | Failure::Garbled) => self.begin_again(),
            Ok(events) => {
                self.is_over = events.iter().any(|event| event.change == Change::Gone);
                Ok(events)
            }
            refused => refused,
        }
    }

    /// The object is gone with all that it has kept. What has its path now is watched.
    fn begin_again(&mut self) -> Result<Vec<Event>> {
        let itself = |change| Event { change, pair: 0, name: Vec::new() };
        match Found::new(&self.directory, &self.path) {
            Ok(found) => {
                self.found = found;
                Ok(vec![itself(Change::Lost)])
            }
            Err(Failure::Refused(Status::NotFound)) => {
                self.is_over = true;
                Ok(vec![itself(Change::Lost), itself(Change::Gone)])
            }
            Err(failure) => Err(failure),
        }
    }

    /// Waits until something has happened, for at most so long, and [takes](Watch::take) it: nothing, if that took too long.
    pub fn wait(&mut self, patience: Option<Duration>) -> Result<Vec<Event>> {
        let patience_ns = patience.map(|patience| u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let until_ns = patience_ns.map_or(u64::MAX, |patience| time::now_ns().saturating_add(patience));
        loop {
            let events = self.take()?;
            if !events.is_empty() {
                return Ok(events);
            }
            // Rounded up, so that it is not asked again and again at the end.
            let left_ms = match until_ns {
                u64::MAX => u64::MAX,
                until_ns => until_ns.saturating_sub(time::now_ns()).div_ceil(1_000_000),
            };
            if left_ms == 0 {
                return Ok(events);
            }
            match (Waiting::Client { server: self.found.server }).wait(self.found.ticket, left_ms) {
                Ok(_) => {}
                // The server has ended, or so it seems.
                Err(failure) => match self.take() {
                    Ok(events) if events.is_empty() => return Err(failed(failure)),
                    outcome => return outcome,
                },
            }
        }
    }
}
