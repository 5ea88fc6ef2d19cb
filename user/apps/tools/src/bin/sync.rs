//! Waits until all files are on the disk: `sync`. What was written before survives a loss of power.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use files::Directory;
use tools::{told, usage};

rt::entry!(main);

fn main() -> i32 {
    if !rt::arguments().is_empty() {
        return usage("");
    }
    told("/", Directory::root().and_then(|root| root.sync()))
}
