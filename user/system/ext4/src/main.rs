//! The file system of the disk, ext4, served under the name `disk`. Without a disk, or without such a file system on it, the server says so to
//! everybody who asks.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod disk;

use disk::Block;
use ext4::Mounted;
use files::wire::status;
use rt::api::{Failure, Status, clock};
use rt::module::Service;
use rt::{println, retry, time};
use vfs::{Cached, Error, FileSystem};

rt::entry!(main);

/// Name under which the server is found.
const NAME: &str = "disk";

/// Pages of files that clients have mapped, and of those that were used last, at most: 4 MiB.
const PAGES_MAX: usize = 1024;

fn main() -> i32 {
    let failure = match mount() {
        Ok(mounted) => files::serve(NAME, Cached::keeping(mounted, PAGES_MAX)),
        Err(status) => files::hand_out(NAME, |_| Err(status)),
    };
    println!("ext4: {failure}");
    1
}

fn mount() -> Result<Mounted<Block>, Status> {
    let disk = Block::new().map_err(|failure| match failure {
        Failure::Refused(status) => status,
        _ => Status::Io,
    })?;
    let mounted = Mounted::new(disk, now).map_err(|error| {
        if error != Error::Damaged {
            println!("ext4: the disk is not mounted: {}", status(error).describe());
        }
        status(error)
    })?;
    if mounted.is_read_only() {
        println!("ext4: the disk can only be read");
    }
    Ok(mounted)
}

/// Nanoseconds since 1970, by the clock if there is one.
fn now() -> u64 {
    static CLOCK: Service = Service::new(clock::NAME);
    static ZERO: rt::sync::Mutex<Option<u64>> = rt::sync::Mutex::new(None);
    let since = u64::try_from(time::now().as_nanos()).unwrap_or(u64::MAX);
    let zero = *ZERO.lock().get_or_insert_with(|| {
        let now = retry::while_gone(|| clock::now(&CLOCK));
        now.map_or(0, |now| now.saturating_sub(since))
    });
    zero.saturating_add(since)
}
