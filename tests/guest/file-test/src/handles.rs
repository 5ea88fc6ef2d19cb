//! `file-test handles`: numbers that nobody gave to this program, as references to objects, as tickets, as what a driver has, and as requests, at all servers that it finds. Nothing comes
//! of them, and what it has itself stays of use.

use crate::{CREATE, check};
use alloc::format;
use files::Directory;
use files::stubs::Watches::Waiting;
use rt::api::stub::Within;
use rt::api::{Failure, Name, Result, Status, block, bus, names, process};
use rt::frames::reserve;
use rt::home;
use rt::println;
use rt::sys::abi::call::DOORS_MAX;
use rt::sys::{self, Ipc, Timeout, Uid};
use vfs::How;

/// Numbers that are tried in the place of a reference.
const REFERENCES: usize = 40_000;

/// Requests that each thread of a server gets.
const REQUESTS: usize = 300;

/// Patience with a server, in microseconds.
const PATIENCE_US: u64 = 20_000;

/// Patience with a thread that may take no messages, or give no answer.
const SHORT: Timeout = Timeout::from_us(2000);

/// Requests without an answer, beyond which a thread is left alone.
const MISSED_MAX: usize = 30;

/// References below this number may be the program's own.
const OWN: u32 = 64;

/// Servers that are asked: all but those that do whatever they are asked by anybody, since that is what they are for.
const SERVERS: [&str; 9] =
    ["ramfs", "ext4", "bootfs", "mounts", "network", "virtio-net", "virtio-block", "bus", "services"];

struct Random(u64);

impl Random {
    /// A number, with one of few bits as often as any.
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let number = self.0.rotate_left(23) ^ self.0 >> 9;
        match self.0 >> 60 {
            0..4 => number >> (self.0 >> 40 & 63),
            4 => 1 << (number & 63),
            5 => (1 << (number & 63)) - 1,
            _ => number,
        }
    }

    fn words(&mut self) -> [u64; 8] {
        core::array::from_fn(|_| self.number())
    }
}

/// Tries all of it.
pub fn all() -> Result<()> {
    let mut random = Random(24_301);
    let root = Directory::root()?;
    root.write("/own", b"it is its own")?;
    let (file, mut watch) = (root.open("/own", How::default())?, root.watch("/own")?);
    let refused = references(&mut random)?;
    tickets(&mut random)?;
    devices(&mut random)?;
    let asked = requests(&mut random)?;
    println!("file-test: {refused} references lead nowhere, {asked} requests are answered or refused");
    // Its own are of use.
    check(file.len()? == 13 && watch.take()?.is_empty(), "something has happened to its own file")?;
    file.write_at(0, b"IT")?;
    check(watch.take()?.len() == 1, "nothing has happened to a file that was written")?;
    check(root.read("/own", 99)? == b"IT is its own", "its own file is another")?;
    root.open("/own", CREATE)?.sync()?;
    root.unlink("/own")
}

/// Numbers of identifiers that the program does not have lead to nobody's object.
fn references(random: &mut Random) -> Result<usize> {
    for number in 0..REFERENCES {
        let reference = match number % 3 {
            0 => random.number() as u32,
            1 => OWN + random.number() as u32 % (DOORS_MAX - OWN),
            _ => DOORS_MAX.wrapping_add(random.number() as u32 % 100),
        };
        if reference >= OWN {
            let outcome = sys::door_call(reference, random.number() as u32 % 64, random.words());
            check(outcome.is_err(), &format!("{reference:#x} leads somewhere: {outcome:?}"))?;
        }
    }
    Ok(REFERENCES)
}

/// A ticket that is nobody's tells that nothing more will come.
fn tickets(random: &mut Random) -> Result<()> {
    each_thread("ramfs", |thread| {
        for _ in 0..REQUESTS {
            let waiting = Waiting::Client { server: Within::us(thread, PATIENCE_US) };
            match waiting.wait(random.number(), random.number()) {
                Ok(is_ready) => check(is_ready, "somebody else's watch is waited for")?,
                // This thread takes no such messages.
                Err(_) => break,
            }
        }
        Ok(())
    })
}

/// Sectors, registers, parts, lines and memory of devices that others drive.
fn devices(random: &mut Random) -> Result<()> {
    const DENIED: Failure = Failure::Refused(Status::Denied);
    const NOT_FOUND: Failure = Failure::Refused(Status::NotFound);
    let server = names::resolve(home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)?;
    let window = reserve(12).ok_or(Failure::Refused(Status::Exhausted))?;
    for number in 0..REQUESTS as u32 {
        let place = if number < 32 { number } else { random.number() as u32 };
        let outcomes = [
            bus::set_command(server, place, random.number() as u16),
            bus::part(server, place, random.number() as u8, window),
            bus::interrupt(server, place).map(drop),
            bus::pages(server, place, window).map(drop),
            bus::claim(server, random.number() as u8, u16::MAX, u16::MAX, window).map(drop),
        ];
        for outcome in outcomes {
            let is_refused =
                matches!(outcome, Err(DENIED | NOT_FOUND | Failure::Refused(Status::BadRequest)));
            check(is_refused, &format!("the device at {place:#x}: {outcome:?}"))?;
        }
    }
    each_thread("virtio-block", |thread| {
        for _ in 0..REQUESTS {
            let disk = block::Client { server: Within::us(thread, PATIENCE_US) };
            let outcomes = [disk.info().map(drop), disk.write(random.number(), &[0; 512]), disk.flush()];
            check(outcomes.iter().all(core::result::Result::is_err), "a disk is somebody else's")?;
        }
        Ok(())
    })
}

/// Each server answers, or does not listen, whatever comes.
fn requests(random: &mut Random) -> Result<usize> {
    let mut count = 0;
    for server in SERVERS {
        each_thread(server, |thread| {
            let mut missed = 0;
            for _ in 0..REQUESTS {
                // Numbers of interfaces are small, and those of methods are smaller.
                let label = match random.number() % 4 {
                    0 => random.number() as u32,
                    _ => (random.number() % 32) as u32 | ((random.number() % 64) as u32) << 16,
                };
                let send = Ipc { to: thread, label, words: random.words(), send_timeout: SHORT, ..Ipc::NONE };
                // An answer may be an error, or wait for something that never comes.
                let outcome = Ipc { from: thread, receive_timeout: SHORT, ..send }.run();
                missed += usize::from(outcome.is_err());
                if missed > MISSED_MAX {
                    break;
                }
                count += 1;
            }
            Ok(())
        })?;
    }
    Ok(count)
}

/// Does something with each thread of a program.
pub fn each_thread(program: &str, mut with: impl FnMut(Uid) -> Result<()>) -> Result<()> {
    let mut place = 0;
    while let Some(entry) = process::task_at(home(), place)? {
        place += 1;
        if entry.program().as_str() != program {
            continue;
        }
        let mut thread = Uid::NIL;
        while let Some(next) = process::thread_after(home(), entry.id(), thread)? {
            thread = next.uid;
            with(thread)?;
        }
    }
    Ok(())
}
