//! Shows lines in order: `sort [-nru] [PATH...]`, of files or of a pipe, which are sorted as one. With `-n` they are in the order of the numbers with which they begin, with `-r` the greatest is first, and with `-u` equal ones are shown
//! once. The order is that of the bytes. If a file cannot be read nothing is shown, and the status is 2.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use lines::{Order, Sort, words};
use tools::{filters, usage};

rt::entry!(main);

/// Status if something failed.
const FAILED: i32 = 2;

fn main() -> i32 {
    let arguments = rt::arguments();
    let Some(words) = words(&arguments, "nru", None) else { return usage("[-nru] [PATH...]") };
    let order = Order { is_numeric: words.has('n'), is_reverse: words.has('r'), is_unique: words.has('u') };
    let mut sort = Sort::new(order);
    match filters::read(&mut sort, words.rest, FAILED) {
        Ok(0) => filters::finish(&mut sort, FAILED),
        Ok(status) | Err(status) => status,
    }
}
