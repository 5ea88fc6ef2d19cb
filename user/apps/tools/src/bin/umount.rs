//! Takes away what was mounted last at a path: `umount PATH...`. What the system description has mounted stays. Files that are open stay open. "busy" says that something is mounted below
//! PATH.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use files::{Directory, path_of};
use rt::api::{Failure, Status};
use rt::eprintln;
use tools::{told, usage};

rt::entry!(main);

fn main() -> i32 {
    let paths = rt::arguments();
    if paths.is_empty() {
        return usage("PATH...");
    }
    paths.iter().fold(0, |status, typed| unmount(typed).max(status))
}

fn unmount(typed: &str) -> i32 {
    match Directory::root().and_then(|root| root.unmount(path_of(typed))) {
        Err(Failure::Refused(Status::NotFound)) => {
            eprintln!("umount: {typed}: nothing is mounted there");
            1
        }
        outcome => told(typed, outcome),
    }
}
