//! The last test: every error that a call can return was seen.

use crate::check;
use crate::kit::{Outcome, seen};

pub fn every_error_was_seen() -> Outcome {
    let mut missing = 0;
    for (call, error) in seen::missing() {
        rt::println!("    never seen: {call:?} {error:?}");
        missing += 1;
    }
    check!(missing == 0, "{missing} pairs of call and error were never seen");
    Ok(())
}
