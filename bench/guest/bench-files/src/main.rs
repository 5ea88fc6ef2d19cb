//! The servers `ramfs` and `mounts` once more, with stubs of which nothing is optimised: `bench-files ram` is a file system in memory, and
//! `bench-files mounts` is that one as all files. `bench` starts both, and is their client.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

#[path = "../../../../user/system/mounts/src/clients.rs"]
mod clients;
#[path = "../../../../user/system/mounts/src/table.rs"]
mod table;
#[path = "../../../../user/system/mounts/src/tree.rs"]
mod tree;

use clients::Clients;
use rt::{println, time};
use vfs::Ram;
use vfs::mounts::Mounts;

rt::entry!(main);

/// Bytes of the file system.
const SIZE: u64 = 1 << 20;

/// Where that is among all files.
const MOUNT: &str = "/=plain-ram";

fn main() -> i32 {
    let failure = match rt::argument_text().as_str() {
        "ram" => files::serve(files::RAM, Ram::new(SIZE, now)),
        "mounts" => {
            let Some(mounts) = Mounts::new([MOUNT].into_iter()) else { return 2 };
            let mut clients = Clients::new(mounts);
            files::hand_out(files::NAME, |task| clients.root(task))
        }
        _ => {
            println!("bench-files: usage: bench-files ram|mounts");
            return 2;
        }
    };
    println!("bench-files: {failure}");
    1
}

/// Nanoseconds since the start.
fn now() -> u64 {
    u64::try_from(time::now().as_nanos()).unwrap_or(u64::MAX)
}
