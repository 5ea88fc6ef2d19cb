//! Ends of pipes: what a program prints when its output is not the console's, and what it reads when its input is not.
//!
//! The bytes lie in memory that both ends have mapped, and the pipe's thread is called only when an end sleeps.

use crate::page::PAGE;
use crate::region::Region;
use api::pipe::{self, End, MEMORY_LOG2};
use api::{Failure, Result};
use ring::Broken;
use ring::stream::{self, Store};
use sys::{Error, Uid};

/// Bytes of a pipe: all of its memory but the first page, which has its words.
#[derive(Clone, Copy, Debug)]
pub struct Body(Region);

impl Body {
    /// That of a pipe with this memory.
    pub const fn of(region: Region) -> Body {
        Body(region)
    }
}

impl Store for Body {
    fn size(&self) -> usize {
        self.0.size() - PAGE
    }

    fn get(&self, at: usize, to: &mut [u8]) {
        self.0.read(PAGE + at, to);
    }

    fn put(&self, at: usize, from: &[u8]) {
        self.0.write(PAGE + at, from);
    }
}

/// The other end is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl From<Broken> for Closed {
    /// Nothing can come out of memory that makes no sense.
    fn from(_: Broken) -> Closed {
        Closed
    }
}

/// Memory for a pipe, empty. For whoever joins two programs.
pub fn memory() -> Option<Region> {
    Region::new(MEMORY_LOG2)
}

/// The pipe's memory, as it is mapped to its ends.
fn attach(server: Uid, end: End) -> Result<Region> {
    let region = memory().ok_or(Failure::Kernel(Error::NoMemory))?;
    let arrived = pipe::attach(server, region.fpage(), end)?;
    if region.is(arrived) { Ok(region) } else { Err(Failure::Garbled) }
}

/// Waits for the other end.
fn wait(server: Uid, end: End) -> core::result::Result<(), Closed> {
    match pipe::wait(server, end) {
        // A thread that is torn out of its wait looks again.
        Ok(()) | Err(Failure::Kernel(Error::ReceiveAborted | Error::SendAborted)) => Ok(()),
        Err(_) => Err(Closed),
    }
}

/// The end that writes.
#[derive(Debug)]
pub struct Writer {
    side: stream::Writer<'static, Body>,
    server: Uid,
}

impl Writer {
    /// That of a pipe whose thread is known.
    pub fn attach(server: Uid) -> Result<Writer> {
        Writer::of(attach(server, End::WRITER)?, server)
    }

    /// That of a pipe whose memory is at hand.
    pub fn of(region: Region, server: Uid) -> Result<Writer> {
        let side = stream::Writer::new(region.words(), Body(region)).ok_or(Failure::Garbled)?;
        Ok(Writer { side, server })
    }

    /// Writes all of it, and waits while there is no room.
    pub fn write(&mut self, mut bytes: &[u8]) -> core::result::Result<(), Closed> {
        while !bytes.is_empty() {
            if self.side.is_over() {
                return Err(Closed);
            }
            let count = self.side.write(bytes)?;
            bytes = &bytes[count..];
            if self.side.wakes() && pipe::wake(self.server, End::READER).is_err() {
                self.side.could_not_wake();
            }
            if count == 0 && self.side.may_sleep()? {
                wait(self.server, End::WRITER)?;
            }
        }
        Ok(())
    }
}

/// The end that reads.
#[derive(Debug)]
pub struct Reader {
    side: stream::Reader<'static, Body>,
    server: Uid,
}

impl Reader {
    /// That of a pipe whose thread is known.
    pub fn attach(server: Uid) -> Result<Reader> {
        Reader::of(attach(server, End::READER)?, server)
    }

    /// That of a pipe whose memory is at hand.
    pub fn of(region: Region, server: Uid) -> Result<Reader> {
        let side = stream::Reader::new(region.words(), Body(region)).ok_or(Failure::Garbled)?;
        Ok(Reader { side, server })
    }

    /// Waits until there is something, and gives back how many bytes of it are in `to` now: none at the end.
    pub fn read(&mut self, to: &mut [u8]) -> usize {
        self.try_read(to).unwrap_or(0)
    }

    fn try_read(&mut self, to: &mut [u8]) -> core::result::Result<usize, Closed> {
        loop {
            let count = self.side.read(to)?;
            if self.side.wakes()? && pipe::wake(self.server, End::WRITER).is_err() {
                self.side.could_not_wake();
            }
            if count > 0 || to.is_empty() || self.side.is_over()? {
                return Ok(count);
            }
            if self.side.may_sleep()? {
                wait(self.server, End::READER)?;
            }
        }
    }
}
