//! What is set from outside: shown, for whoever has set it.

use rt::{environment, log, println};

/// Prints the variables, and logs a line of each level.
pub fn show() {
    for (name, value) in environment::variables() {
        println!("SDK variable {name} is {value:?}");
    }
    log::error!("an error");
    log::warn!("a warning");
    log::info!("information");
    log::debug!("what helps to find mistakes");
    log::trace!("every step");
    log::debug!(target: "elsewhere", "what helps elsewhere");
}
