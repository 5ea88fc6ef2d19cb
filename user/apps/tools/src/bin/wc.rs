//! Counts lines, words and bytes: `wc [-clw] [PATH...]`, of files or of a pipe. With `-l` it shows lines alone, with `-w` words, with `-c` bytes.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use lines::{Wc, words};
use tools::{filters, usage};

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    match words(&arguments, "clw", None) {
        Some(words) => filters::run(&mut Wc::new(['l', 'w', 'c'].map(|flag| words.has(flag))), words.rest, 1),
        None => usage("[-clw] [PATH...]"),
    }
}
