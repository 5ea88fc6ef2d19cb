//! A file system in memory, as large as the argument says in KiB, served under the name `ram`. It is empty when the server starts.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::{println, time};
use vfs::Ram;

rt::entry!(main);

/// Size if there is no argument, in KiB.
const KIB: u64 = 16 * 1024;

fn main() -> i32 {
    let kib = rt::arguments().first().map_or(Ok(KIB), |size| size.parse());
    let Ok(kib) = kib else {
        println!("ramfs: usage: ramfs [KIB]");
        return 2;
    };
    let failure = files::serve("ram", Ram::new(kib << 10, now));
    println!("ramfs: {failure}");
    1
}

/// Nanoseconds since the start, in place of 1970: nobody needs a clock to have files.
fn now() -> u64 {
    u64::try_from(time::now().as_nanos()).unwrap_or(u64::MAX)
}
