//! The stack of the network server: frames in, frames out, sockets in between. It knows no task, no device and no clock, so all of it runs on the
//! host, where it is tested.
//!
//! Protocols are the crate `smoltcp`'s, of which nothing is seen outside. In reading order: [`wire`], where frames go that stay in this machine and which
//! may leave it; `offload`, what only those need that leave; `ends`, acknowledgements that the crate should not get; [`leases`],
//! messages of servers that it should not get; `discovery` and `frames`, messages about the network, read and made; [`advertisements`], what routers say; [`claims`], addresses that
//! nobody else may have; [`names`], answers about names that are too long for a datagram; `refusals`, messages which say that nobody has a port; `neighbours`, machines of the network, and those that are not there; `held`, datagrams for several sockets; `once`, a device with one frame; [`random`] and `secrets`, numbers that nobody guesses; [`stack`], addresses and the turn of the whole; [`sockets`], what clients have; [`flows`], connections whose
//! bytes go through shared memory; [`waiters`], who waits for a socket.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod advertisements;
pub mod claims;
mod discovery;
mod ends;
pub mod flows;
mod frames;
mod held;
pub mod leases;
pub mod names;
mod neighbours;
mod offload;
mod once;
mod queues;
pub mod random;
mod refusals;
mod secrets;
pub mod sockets;
pub mod stack;
pub mod waiters;
pub mod wire;

#[cfg(test)]
mod tests;

pub use flows::Flow;
pub use sockets::{Id, Kind, Passage, Refusal, Sending, State, readiness};
pub use stack::{Fallback, Stack, Status};
pub use waiters::Waiters;
