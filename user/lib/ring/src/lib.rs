//! Rings of packets between two tasks: one puts, one takes, through memory that both have mapped. Neither believes the other.
//!
//! [`ring`] is all of it. It knows atomic words as `word`, so that `tests/waiting` can run it, as it is, through all interleavings of its
//! two sides. The surprise: nothing here sleeps or wakes. A ring says whether one may sleep and whether the other is to be woken; how that is
//! done is its users' affair.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod ring;
mod word;

#[cfg(test)]
mod tests;

pub use ring::{Broken, Consumer, PACKET_MAX, Producer, SLOT_WORDS};
