//! Shows one of the lines that follow one another and are the same: `uniq [-c] [-d|-u] [PATH]`, of a file or of a pipe. With `-c` it says how many there are, with `-d` it shows those alone that are there several times, with `-u` those
//! that are there once.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use lines::{Kept, Uniq, words};
use tools::{filters, usage};

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let typed = words(&arguments, "cdu", None).filter(|words| words.rest.len() <= 1);
    let Some(words) = typed else { return usage("[-c] [-d|-u] [PATH]") };
    let kept = match (words.has('d'), words.has('u')) {
        (false, false) => Kept::All,
        (true, false) => Kept::Repeated,
        (false, true) => Kept::Single,
        (true, true) => return usage("[-c] [-d|-u] [PATH]"),
    };
    filters::run(&mut Uniq::new(kept, words.has('c')), words.rest, 1)
}
