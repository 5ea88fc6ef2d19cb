//! The network, for those who serve it and those who use it. In reading order: [`link`], the way to a network card; [`sockets`], what
//! programs use; [`streams`], connections; [`memory`], which their bytes go through.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod link;
pub mod memory;
pub mod sockets;
pub mod streams;

pub use ring;
