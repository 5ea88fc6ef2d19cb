//! Completion of a word that is typed at the shell, without a terminal and without files, so all of it runs on the host.
//!
//! In reading order: [`word`] finds the word before the cursor and the place where its names are; [`Found`] takes the names of that place, and says how the word goes
//! on, or lists what it may become, in [`rows`]. The shell fetches the names in between.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod found;
mod word;

pub use found::{Found, NAMES_MAX, rows};
pub use word::{Place, Word, word};

#[cfg(test)]
mod tests;
