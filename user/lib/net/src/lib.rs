//! The network, for those who serve it and those who use it. In reading order: [`link`], the way to a network card; [`sockets`], what
//! programs use.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod link;
pub mod sockets;

pub use ring;
