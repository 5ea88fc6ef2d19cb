//! Tells what happens to a file or a directory: `watch [-n COUNT] PATH`. It prints a line for each event, until it has printed COUNT of them, until what
//! it watches is gone, or until it is interrupted.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use files::{Directory, path_of};
use rt::api::{Failure, Result, Status};
use rt::{eprintln, println, time};
use vfs::watch::{Change, Event};

rt::entry!(main);

/// How often a server that has ended is looked for again, and how long to wait in between.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let (count, path) = match words[..] {
        [path] if path != "-n" => (Some(usize::MAX), path),
        ["-n", count, path] => (count.parse().ok(), path),
        _ => (None, ""),
    };
    let Some(count) = count else {
        eprintln!("usage: watch [-n COUNT] PATH");
        return 2;
    };
    match watch(path, count) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("watch: {path}: {failure}");
            1
        }
    }
}

fn watch(typed: &str, count: usize) -> Result<()> {
    let path = path_of(typed);
    let mut watch = Directory::root()?.watch(&path)?;
    println!("{typed} is watched");
    let (mut told, mut failed) = (0, 0);
    while told < count {
        let events = match watch.wait(None) {
            Ok(events) => events,
            // It is over, and that was told.
            Err(Failure::Refused(Status::NotFound)) => return Ok(()),
            Err(_) if failed < TRIES => {
                failed += 1;
                time::sleep(PAUSE);
                // The directory itself may be one of a server that has ended.
                if let Ok(again) = Directory::root().and_then(|root| root.watch(&path)) {
                    watch = again;
                    println!("events are lost: look again");
                }
                continue;
            }
            Err(failure) => return Err(failure),
        };
        failed = 0;
        for event in events.iter().take(count - told) {
            tell(event);
            told += 1;
        }
    }
    Ok(())
}

fn tell(event: &Event) {
    let what = match event.change {
        Change::Made => "made",
        Change::Removed => "removed",
        Change::MovedFrom => "moved from",
        Change::MovedTo => "moved to",
        Change::Contents => "contents of",
        Change::Attributes => "attributes of",
        Change::Moved => "moved",
        Change::Gone => "gone",
        Change::Lost => "events are lost: look again",
    };
    match (event.change, &event.name[..]) {
        (Change::Moved | Change::Gone | Change::Lost, _) => println!("{what}"),
        (_, b"") => println!("{what} it"),
        (_, name) => println!("{what} {}", String::from_utf8_lossy(name)),
    }
}
