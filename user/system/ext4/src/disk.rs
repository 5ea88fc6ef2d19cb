//! The disk, as its driver serves it. When the driver is started anew, a request is made again: one that writes says the same once more.

use alloc::boxed::Box;
use alloc::vec;
use rt::api::block::{self, BYTES_MAX, Info, Replies};
use rt::api::{self, Failure, Name, Status, names};
use rt::retry::{self, PAUSE, TRIES};
use rt::sys::Uid;
use rt::{home, time};
use vfs::{Error, Result};

/// How often a request is made again that the disk could not do.
const BUSY_TRIES: usize = 50;

/// Where on a disk its file system has a number that no other has.
const MARK: usize = 1024 + 0x68;

/// Number of a file system; zeros if it is not known.
type Mark = [u8; 16];

/// The disk.
pub struct Block {
    server: Uid,
    info: Info,
    mark: Mark,
    replies: Box<Replies>,
}

fn find() -> api::Result<Uid> {
    names::resolve(home(), &Name::new(block::NAME).ok_or(Failure::Garbled)?)
}

/// Number of the file system on a disk.
fn mark(server: Uid, info: &Info, replies: &mut Replies) -> api::Result<Mark> {
    let bytes = info.sector_bytes as usize;
    let mut sector = vec![0; bytes];
    let (first, at) = (MARK / bytes, MARK % bytes);
    block::read(server, replies, first as u64, 1, &mut sector)?;
    let found = sector.get(at..at + size_of::<Mark>()).and_then(|found| found.try_into().ok());
    found.ok_or(Failure::Garbled)
}

impl Block {
    /// The disk that there is. Its driver may end before it says how large the disk is. That is no reason to be without a disk for good, since
    /// the next driver starts already.
    pub fn new() -> api::Result<Block> {
        let mut replies = Box::new(Replies::new());
        let (server, info, mark) = retry::while_gone(|| {
            let server = find()?;
            let info = block::info(server)?;
            if !info.sector_bytes.is_power_of_two() || info.sector_bytes as usize > BYTES_MAX as usize {
                return Err(Failure::Garbled);
            }
            let mark = match mark(server, &info, &mut replies) {
                Err(failure) if failure.server_is_gone() => return Err(failure),
                // Whether there is a file system is found later.
                mark => mark.unwrap_or_default(),
            };
            Ok((server, info, mark))
        })?;
        Ok(Block { server, info, mark, replies })
    }

    /// Finds the disk's next driver, if there is one by now. The driver of another disk is never kept, whatever is asked for afterwards: another disk is none of this file
    /// system's. A machine may have several, and a driver takes the first that is free.
    fn find_again(&mut self) -> Result<()> {
        let server = find().map_err(|_| Error::Io)?;
        if server == self.server {
            return Ok(());
        }
        // One that has ended already, or does not say which disk it has, is looked for once more.
        let Ok(info) = block::info(server) else { return Ok(()) };
        if info != self.info {
            return Err(Error::Io);
        }
        match mark(server, &info, &mut self.replies) {
            Ok(mark) if mark == self.mark || self.mark == Mark::default() => self.server = server,
            Ok(_) => return Err(Error::Io),
            Err(_) => {}
        }
        Ok(())
    }

    /// Makes a request, and again if its driver ends meanwhile.
    fn request<T>(&mut self, run: impl Fn(&mut Block) -> api::Result<T>) -> Result<T> {
        let mut busy = 0;
        for _ in 0..TRIES {
            let outcome = run(self);
            let is_busy = matches!(outcome, Err(Failure::Refused(Status::Busy)));
            busy += usize::from(is_busy);
            if busy > BUSY_TRIES {
                return Err(Error::Io);
            }
            match outcome {
                Err(failure) if failure.server_is_gone() || is_busy => {
                    time::sleep(PAUSE);
                    self.find_again()?;
                }
                Err(Failure::Refused(Status::Denied)) => return Err(Error::ReadOnly),
                outcome => return outcome.map_err(|_| Error::Io),
            }
        }
        Err(Error::Io)
    }
}

/// Sectors in one request.
fn step(sector_bytes: u32) -> usize {
    BYTES_MAX as usize / sector_bytes as usize
}

impl ext4::Disk for Block {
    fn sector_bytes(&self) -> u32 {
        self.info.sector_bytes
    }

    fn sectors(&self) -> u64 {
        self.info.sectors
    }

    fn is_read_only(&self) -> bool {
        self.info.is_read_only
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        let (bytes, step) = (self.info.sector_bytes as usize, step(self.info.sector_bytes));
        for (number, part) in to.chunks_mut(step * bytes).enumerate() {
            let (at, count) = (first + (number * step) as u64, (part.len() / bytes) as u32);
            let place = core::cell::RefCell::new(part);
            self.request(|disk| {
                block::read(disk.server, &mut disk.replies, at, count, &mut place.borrow_mut())
            })?;
        }
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        let (bytes, step) = (self.info.sector_bytes as usize, step(self.info.sector_bytes));
        for (number, part) in from.chunks(step * bytes).enumerate() {
            let at = first + (number * step) as u64;
            self.request(|disk| block::write(disk.server, at, part))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.request(|disk| block::flush(disk.server))
    }
}
