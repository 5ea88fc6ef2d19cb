//! Tests what the runtime offers programs, in the booted system: how threads wait for each other, channels, random numbers, the
//! environment, log levels.
//!
//! Prints a line for each test: `SDK name ... ok` or `SDK name ... FAILED: reason`. Tests are in [`cases`] and [`outside`]; the latter
//! are about what is set from outside, and `sdk-test outside` only prints it. `sdk-test sum …` prints how much it was given, `sdk-test hold` holds pages that
//! can be found in the machine's memory.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod cases;
mod outside;

use alloc::string::String;
use rt::println;

rt::entry!(main);

/// How a test ended.
type Outcome = Result<(), String>;

/// Ends a test unless something is so.
macro_rules! check {
    ($what:expr) => {
        if !$what {
            return Err(alloc::format!("{}:{}: {}", file!(), line!(), stringify!($what)));
        }
    };
}
pub(crate) use check;

fn main() -> i32 {
    match rt::arguments().first().map(String::as_str) {
        Some("outside") => return outside::show(),
        Some("sum") => return outside::sum(),
        Some("hold") => return outside::hold(),
        _ => {}
    }
    let mut failed = 0;
    for (name, case) in cases::ALL {
        match case() {
            Ok(()) => println!("SDK {name} ... ok"),
            Err(failure) => {
                failed += 1;
                println!("SDK {name} ... FAILED: {failure}");
            }
        }
    }
    println!("SDK-END failed={failed}");
    failed.min(1)
}
