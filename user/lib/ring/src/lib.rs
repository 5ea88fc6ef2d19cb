//! Rings between two tasks: one puts, one takes, through memory that both have mapped. Neither believes the other.
//!
//! [`ring`] has packets, [`stream`] has bytes. They know atomic words as `word`, so that `tests/waiting` can run them, as they are, through all interleavings of their
//! two sides. The surprise: nothing here sleeps or wakes. A ring says whether one may sleep and whether the other is to be woken; how that is
//! done is its users' affair.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod ring;
pub mod stream;
mod word;

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;

pub use ring::{Broken, Consumer, PACKET_MAX, Producer, SLOT_WORDS};
