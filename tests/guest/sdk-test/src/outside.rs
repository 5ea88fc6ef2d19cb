//! What is set from outside: shown, for whoever has set it.

use alloc::string::String;
use alloc::vec::Vec;
use rt::{environment, log, println};

/// Prints the variables, and logs a line of each level.
pub fn show() -> i32 {
    for (name, value) in environment::variables() {
        println!("SDK variable {name} is {value:?}");
    }
    log::error!("an error");
    log::warn!("a warning");
    log::info!("information");
    log::debug!("what helps to find mistakes");
    log::trace!("every step");
    log::debug!(target: "elsewhere", "what helps elsewhere");
    0
}

/// Prints number, length and a sum of the words behind the first one, and of the variables.
pub fn sum() -> i32 {
    let words = rt::arguments().split_off(1);
    let values: Vec<String> = environment::variables().into_iter().map(|(_, value)| value).collect();
    for (kind, texts) in [("words", words), ("values", values)] {
        let bytes: usize = texts.iter().map(String::len).sum();
        // Bytes that are lost, or in other places, make another sum.
        let all = texts.iter().flat_map(|text| text.bytes());
        let sum = all.fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        println!("SDK {} {kind} of {bytes} bytes, sum {sum}", texts.len());
    }
    0
}

/// Words of a page, and of 64 pages that each begin with this number and their own; whoever looks at the machine's memory finds them.
const WORDS: usize = 512;
const PAGES: usize = 64;
const TAG: u64 = 0xc010_04ed_0000_0000;

/// Touches pages in an order of no order, and holds them until it is ended.
pub fn hold() -> i32 {
    let mut words: Vec<u64> = Vec::from([0; (PAGES + 1) * WORDS]);
    let first = words.as_ptr().align_offset(WORDS * size_of::<u64>());
    for step in 0..PAGES {
        let at = first + (step * 29 + 7) % PAGES * WORDS;
        words[at] = TAG + (&raw const words[at]).addr() as u64 / 4096;
    }
    println!("SDK {PAGES} pages are there");
    rt::time::sleep(core::time::Duration::from_secs(3600));
    // They are there until now.
    i32::from(words[first] == 0)
}
