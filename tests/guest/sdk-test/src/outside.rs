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
