//! The files that came with the boot, programs among them, as a file system that can only be read, served under the name `boot`.
//!
//! Its pager shows it the boot archive where `root` says so, so nothing is copied but what somebody reads. The surprise: pages that are mapped are
//! copies, since files do not begin at pages in there.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::api::{Failure, Status};
use rt::println;
use rt::sys::abi::archive;
use vfs::{Cached, Fixed};

rt::entry!(main);

/// Name under which the server is found.
const NAME: &str = "boot";

/// Pages of files that clients have mapped, at most: 1 MiB.
const PAGES_MAX: usize = 256;

fn main() -> i32 {
    let failure = match rt::pager::archive(rt::home()) {
        Ok(archive) => {
            // Files behind damage are not there.
            let files = archive::files(archive.bytes).map_while(Result::ok);
            let files = Fixed::new(files.map(|file| (file.name.as_bytes(), file.data)));
            files::serve(NAME, Cached::new(files, PAGES_MAX))
        }
        Err(Failure::Refused(status)) => files::hand_out(NAME, |_| Err(status)),
        Err(_) => files::hand_out(NAME, |_| Err(Status::Io)),
    };
    println!("bootfs: {failure}");
    1
}
