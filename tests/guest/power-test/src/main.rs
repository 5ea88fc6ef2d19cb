//! Losses of power. `power-test DIRECTORY SEED STEPS` does that many steps of a [mix] below a directory. Before each of them it writes a
//! [`Mark`] to the disk's last sector, past all file systems: so whoever has a log of all writes knows of each place in it which steps had been acknowledged there.
//! `power-test DIRECTORY` tells which files there are.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;
use files::Directory;
use files::wire::BYTES_MAX;
use mix::{DIRECTORIES, Mark, Mix, Name, Step};
use rt::api::block;
use rt::api::{self, Failure, Result, Status, names};
use rt::println;
use rt::sys::Uid;
use vfs::How;

rt::entry!(main);

/// Longest file that is read.
const LEN_MAX: usize = 1 << 20;

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let outcome = match words[..] {
        [directory] => Directory::root().and_then(|root| tell(&root.enter(directory)?)),
        [directory, seed, steps] => match (seed.parse(), steps.parse()) {
            (Ok(seed), Ok(steps)) => work(directory, seed, steps),
            _ => Err(Failure::Refused(Status::BadRequest)),
        },
        _ => {
            println!("usage: power-test DIRECTORY [SEED STEPS]");
            return 2;
        }
    };
    match outcome {
        Ok(()) => {
            println!("power-test: all is well");
            0
        }
        Err(failure) => {
            println!("power-test: {failure}");
            1
        }
    }
}

/// Tells the length of each file, and a sum of its bytes.
fn tell(directory: &Directory) -> Result<()> {
    for name in Name::all() {
        match directory.read(name.path(), LEN_MAX) {
            Ok(content) => println!("{}: {} bytes, {:016x}", name.path(), content.len(), mix::sum(&content)),
            Err(Failure::Refused(Status::NotFound)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// The disk's last sector.
struct Marks {
    server: Uid,
    sector: u64,
    bytes: Vec<u8>,
}

impl Marks {
    fn new() -> Result<Marks> {
        let server = names::resolve(rt::home(), &api::Name::new(block::NAME).ok_or(Failure::Garbled)?)?;
        let info = block::info(server)?;
        let sector = info.sectors.checked_sub(1).ok_or(Failure::Garbled)?;
        Ok(Marks { server, sector, bytes: vec![0; info.sector_bytes as usize] })
    }

    fn write(&mut self, mark: Mark) -> Result<()> {
        let bytes = mark.bytes();
        self.bytes.get_mut(..bytes.len()).ok_or(Failure::Garbled)?.copy_from_slice(&bytes);
        block::write(self.server, self.sector, &self.bytes)
    }
}

fn work(directory: &str, seed: u64, steps: u64) -> Result<()> {
    let directory = Directory::root()?.enter(directory)?;
    DIRECTORIES.iter().try_for_each(|name| directory.mkdir(name))?;
    directory.sync()?;
    let mut marks = Marks::new()?;
    for (number, step) in (0..steps).zip(Mix::new(seed)) {
        marks.write(Mark { acknowledged: number, begun: number + 1 })?;
        take(&directory, step)?;
        if step.is_sync() {
            println!("power-test: {} steps are acknowledged", number + 1);
        }
    }
    marks.write(Mark { acknowledged: steps, begun: steps })?;
    // QEMU counts what it has recorded when the disk is flushed.
    block::flush(marks.server)
}

fn take(directory: &Directory, step: Step) -> Result<()> {
    let open = |name: Name, how| directory.open(name.path(), how);
    match step {
        Step::Create(name) => open(name, How { create: true, exclusive: true, truncate: false }).map(drop),
        Step::Append { name, file, at, len } => {
            let opened = open(name, How::default())?;
            let bytes = mix::bytes(file, at, len);
            bytes.chunks(BYTES_MAX).zip((at..).step_by(BYTES_MAX)).try_for_each(|(piece, at)| {
                if opened.append(piece)? == at { Ok(()) } else { Err(Failure::Garbled) }
            })
        }
        Step::Stamp { name, number } => {
            let mapped = open(name, How::default())?.map(0, 1, true)?;
            mapped.words().first().ok_or(Failure::Garbled)?.store(number, Relaxed);
            Ok(())
        }
        Step::Sync(name) => open(name, How::default())?.sync(),
        Step::Rename(from, to) => directory.rename(from.path(), to.path()),
        Step::Unlink(name) => directory.unlink(name.path()),
    }
}
