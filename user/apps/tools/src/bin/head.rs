//! Shows the first lines of files, or of a pipe: `head [-n COUNT] [PATH...]`, ten of each if nobody says how many.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use lines::{Head, words};
use tools::{filters, usage};

rt::entry!(main);

/// Lines, if nothing else is said.
const COUNT: &str = "10";

fn main() -> i32 {
    let arguments = rt::arguments();
    let typed = words(&arguments, "", Some('n'));
    let count = |value: Option<&str>| value.unwrap_or(COUNT).parse().ok();
    match typed.and_then(|words| Some((count(words.value)?, words.rest))) {
        Some((count, paths)) => filters::run(&mut Head::new(count), paths, 1),
        None => usage("[-n COUNT] [PATH...]"),
    }
}
