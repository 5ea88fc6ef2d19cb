//! Writes to the disk while another thread kills its driver, or the bus server, at random moments, and asks again where a request was lost. In the end each sector must
//! hold what was written there last and acknowledged. Arguments are the seed and the driver's name. The program must be an operator, and takes all of
//! the disk. With the argument `leave` it is a driver itself, one that ends when it is asked first.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use rt::api::block::{self, Replies};
use rt::api::{Failure, Name, Result, Status, names, process, stub};
use rt::println;
use rt::server;
use rt::sys::Uid;
use rt::thread::spawn;
use rt::time::sleep;

rt::entry!(main);

/// The bus server, which is killed instead every few times, and takes its drivers with it.
const BUS: &str = "bus";
const BUS_EVERY: u32 = 4;

/// How often it is killed: more often than `root` starts it again by itself.
const KILLS: u32 = 12;

/// The longest time between two of them, in microseconds: a few requests.
const PAUSE_US: u64 = 20_000;

/// How often a request is repeated.
const TRIES: usize = 50;

/// Sectors of one request, at most.
const COUNT_MAX: u64 = 8;

static REPLIES: stub::Once<Replies> = stub::Once::new(Replies::new());

/// Kills so far.
static KILLED: AtomicU32 = AtomicU32::new(0);

fn main() -> i32 {
    let arguments = rt::arguments();
    let (seed, driver) = match arguments.iter().map(|word| word.as_str()).collect::<Vec<_>>()[..] {
        ["leave"] => return leave(),
        [seed, driver] => (seed, driver),
        _ => {
            println!("usage: disk-test SEED DRIVER, or leave");
            return 2;
        }
    };
    let seed = seed.parse().unwrap_or(1);
    match check(driver, Random(seed)) {
        Ok((writes, lost)) => {
            println!("disk-test: seed {seed}: all is there: {} kills", KILLED.load(Ordering::Relaxed));
            println!("disk-test: {writes} writes; {lost} requests were repeated");
            0
        }
        Err(failure) => {
            println!("disk-test: seed {seed}: {failure}");
            1
        }
    }
}

/// Drives no disk: takes the first request, and ends without an answer, as if there were nothing to drive. `root` starts the next driver in its place.
fn leave() -> i32 {
    let registered =
        Name::new(block::NAME).ok_or(Failure::Garbled).and_then(|name| names::register(rt::home(), &name));
    if let Err(failure) = registered {
        println!("disk-test: {failure}");
        return 1;
    }
    server::wait();
    process::UNAVAILABLE
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

struct Disk {
    driver: Name,
    server: Uid,
    replies: &'static mut Replies,
    /// Requests that were repeated.
    lost: usize,
}

/// Writes and repetitions.
fn check(driver: &str, mut random: Random) -> Result<(usize, usize)> {
    let replies = REPLIES.take().ok_or(Failure::Garbled)?;
    let victim = String::from(driver);
    let driver = Name::new(driver).ok_or(Failure::Garbled)?;
    let mut disk = Disk { driver, server: find(&driver)?, replies, lost: 0 };
    let info = block::info(disk.server)?;
    let bytes = info.sector_bytes as usize;
    // The number of the write that filled a sector last; 0 for none.
    let mut last = vec![0u64; info.sectors as usize];
    let seed = random.below(u64::MAX);
    let killer = spawn(36, move || kill(&victim, Random(seed))).map_err(Failure::Kernel)?;
    let mut writes = 0;
    while KILLED.load(Ordering::Relaxed) < KILLS {
        let count = 1 + random.below(COUNT_MAX);
        let first = random.below(info.sectors - count);
        let sectors = first as usize..(first + count) as usize;
        writes += 1;
        last[sectors.clone()].fill(writes as u64);
        let data: Vec<u8> = sectors.flat_map(|sector| content(sector, last[sector], bytes)).collect();
        disk.repeat(|disk| block::write(disk.server, first, &data))?;
        let sector = random.below(info.sectors) as usize;
        disk.compare(sector, last[sector], bytes)?;
    }
    killer.join().ok_or(Failure::Garbled)??;
    for (sector, &last) in last.iter().enumerate() {
        disk.compare(sector, last, bytes)?;
    }
    Ok((writes, disk.lost))
}

/// Bytes of a sector after a write.
fn content(sector: usize, write: u64, bytes: usize) -> impl Iterator<Item = u8> {
    let word = (sector as u64) << 32 | write;
    word.to_le_bytes().into_iter().cycle().take(bytes)
}

impl Disk {
    /// Does something again that was under way when the driver ended.
    fn repeat(&mut self, mut act: impl FnMut(&mut Disk) -> Result<()>) -> Result<()> {
        for _ in 0..TRIES {
            match act(self) {
                Err(failure) if failure.server_is_gone() => {
                    self.lost += 1;
                    self.server = find(&self.driver)?;
                }
                outcome => return outcome,
            }
        }
        Err(Failure::Refused(Status::Busy))
    }

    fn compare(&mut self, sector: usize, write: u64, bytes: usize) -> Result<()> {
        if write == 0 {
            return Ok(());
        }
        let mut found = vec![0; bytes];
        self.repeat(|disk| block::read(disk.server, disk.replies, sector as u64, 1, &mut found))?;
        let expected: Vec<u8> = content(sector, write, bytes).collect();
        if found != expected {
            println!("disk-test: sector {sector} does not have write {write}, but {:?}", &found[..8]);
            return Err(Failure::Garbled);
        }
        Ok(())
    }
}

/// The driver. One that stays down, since it ended so often, is started.
fn find(driver: &Name) -> Result<Uid> {
    let name = Name::new(block::NAME).ok_or(Failure::Garbled)?;
    match names::resolve(rt::home(), &name) {
        Err(Failure::Refused(Status::NotFound)) => {
            match process::restart(rt::home(), driver) {
                Ok(()) | Err(Failure::Refused(Status::Taken)) => {}
                Err(failure) => return Err(failure),
            }
            names::resolve(rt::home(), &name)
        }
        outcome => outcome,
    }
}

/// Kills the driver or the bus server, whatever it does.
fn kill(driver: &str, mut random: Random) -> Result<()> {
    for number in 1..=KILLS {
        let victim = if number % BUS_EVERY == 0 { BUS } else { driver };
        sleep(Duration::from_micros(random.below(PAUSE_US)));
        for place in 0.. {
            let Some(entry) = process::task_at(rt::home(), place)? else { break };
            if entry.program().as_str() == victim {
                process::kill(rt::home(), entry.id())?;
                break;
            }
        }
        KILLED.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
