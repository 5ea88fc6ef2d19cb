//! The network, for those who serve it and those who use it. In reading order: [`link`], the way to a network card, and [`region`], the memory
//! through which its frames go; [`sockets`], what programs use.
//!
//! **Unsafe code** is in `region`, where memory of another task is.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod link;
pub mod region;
pub mod sockets;

pub use ring;
