//! The last test: every error that a call can return was seen, and no other.

use crate::check;
use crate::kit::{Outcome, seen};

pub fn every_error_was_seen() -> Outcome {
    let (missing, unexpected) = (seen::missing().count(), seen::unexpected().count());
    for (call, error) in seen::missing() {
        rt::println!("    never seen: {call:?} {error:?}");
    }
    for (call, error) in seen::unexpected() {
        rt::println!("    seen, and not possible: {call:?} {error:?}");
    }
    check!(missing == 0, "{missing} pairs of call and error were never seen");
    check!(unexpected == 0, "{unexpected} pairs of call and error were seen that are not possible");
    Ok(())
}
