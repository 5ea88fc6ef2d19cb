//! Shows the lines in which a pattern is found: `grep [-Fcinv] PATTERN [PATH...]`, of files or of a pipe. With `-v` those in which it is not, with `-n` their numbers in front, with `-c` how many there are in each file
//! instead; `-i` takes small letters for capital ones, as far as ASCII has them. PATTERN is a regular expression as `grep -E` of other systems has them, over bytes, in which a blank is written `\s`; with `-F` it is a text.
//! The status is 0 if there is a line, 1 if there is none, and 2 if something failed.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use lines::{Choice, Grep, words};
use rt::eprintln;
use tools::{filters, usage};

rt::entry!(main);

/// Status if something failed.
const FAILED: i32 = 2;

fn main() -> i32 {
    let arguments = rt::arguments();
    let typed = words(&arguments, "Fcinv", None);
    let Some((words, [pattern, paths @ ..])) = typed.as_ref().map(|words| (words, words.rest)) else {
        return usage("[-Fcinv] PATTERN [PATH...]");
    };
    let choice = Choice {
        is_text: words.has('F'),
        ignores_case: words.has('i'),
        inverts: words.has('v'),
        numbers: words.has('n'),
        counts: words.has('c'),
    };
    let mut grep = match Grep::new(pattern, choice) {
        Ok(grep) => grep,
        Err(reason) => {
            eprintln!("grep: {pattern}: {reason}");
            return FAILED;
        }
    };
    match filters::run(&mut grep, paths, FAILED) {
        0 => i32::from(!grep.has_found()),
        status => status,
    }
}
