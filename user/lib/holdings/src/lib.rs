//! Texts that `root` holds for programs: arguments that somebody puts together, piece by piece, and those of programs that run.
//!
//! Short texts are in the heap. A long one lies in memory of its own, which is asked for when it is needed and given back afterwards, since the heap of `root` never
//! becomes smaller, and a page that it wants and does not get is the end of the system. Whoever is refused such memory hears it as an error.
//!
//! Reading order: [`Text`]; [`Staging`], texts of many threads and their limits. It knows no kernel, so that it is tested on the host.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod staging;
mod text;

pub use staging::{Owner, SHARE_LEN_MAX, Staging, THREADS_MAX};
pub use text::{Memory, SHORT_LEN_MAX, Text};
